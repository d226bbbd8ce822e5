//! perf beside a run: it counts or samples the whole SUT while the run goes on, wherever that is.
//!
//! perf runs a child that sleeps, and ends by itself when that is killed: nothing depends on how it takes a signal. What a
//! SUT does not have (perf, an event, a counter of its hardware) is said, and never fails a run.

use super::look::part;
use crate::lab::shell::quoted;
use crate::session::Beside;
use std::collections::BTreeMap;

/// Name of the setting that tells what perf could not do; and the beginning of the names of what it counted.
pub const PERF: &str = "perf";

/// Lines of a profile that are kept.
const LINES: usize = 200;

/// The script that starts it; `None`: it is not asked for. It prints the directory in which it works.
pub(super) fn start(asked: &Beside) -> Option<String> {
    let mut kinds: Vec<(&str, String)> = Vec::new();
    if !asked.perf_stat.is_empty() {
        let events = quoted(&asked.perf_stat.join(","));
        kinds.push(("stat", format!("perf stat -a -x ';' -e {events} -o stat.out")));
    }
    if asked.perf_record {
        kinds.push(("record", "perf record -a -g -q -o record.out".to_owned()));
    }
    if asked.perf_sched_stats {
        kinds.push(("sched", "perf sched stats record -o sched.out".to_owned()));
    }
    if kinds.is_empty() {
        return None;
    }
    let mut script = String::from(
        "command -v perf >/dev/null || { echo @@missing; exit 0; }\n\
         dir=$(mktemp -d) && cd \"$dir\" || exit 0\n\
         echo @@dir; echo \"$dir\"\n",
    );
    for (kind, command) in kinds {
        // Up when its child runs; perf that refuses has ended by then.
        script.push_str(&format!(
            "{command} -- sh -c 'echo $$ >{kind}.child; exec sleep 864000' </dev/null >{kind}.err 2>&1 &\n\
             echo $! >{kind}.pid\n\
             n=0; until [ -s {kind}.child ] || ! kill -0 $! 2>/dev/null || [ $n -ge 50 ]; do n=$((n + 1)); sleep 0.1; done\n"
        ));
    }
    script.push_str("true\n");
    Some(script)
}

/// The script that ends it and tells what it saw, after the answer of [`start`].
pub(super) fn stop(started: &str) -> Option<String> {
    let dir = part(started, "dir");
    let dir = dir.trim();
    if dir.is_empty() {
        return None;
    }
    Some(format!(
        r#"cd {} || exit 0
for kind in stat record sched; do
    [ -s $kind.child ] || continue
    read -r child <$kind.child; kill "$child" 2>/dev/null
done
for kind in stat record sched; do
    [ -s $kind.pid ] || continue
    read -r pid <$kind.pid
    n=0; while kill -0 "$pid" 2>/dev/null && [ $n -lt 100 ]; do n=$((n + 1)); sleep 0.1; done
    echo "@@$kind"
    if ! [ -s $kind.out ]; then echo "failed: $(tr '\n' ' ' <$kind.err)"; continue; fi
    case $kind in
        stat) cat stat.out ;;
        record) perf report --stdio --no-children -i record.out 2>/dev/null | head -n {LINES} ;;
        sched) perf sched stats report -i sched.out 2>/dev/null | head -n {LINES} ;;
    esac
done
cd / && rm -rf {}
true
"#,
        quoted(dir),
        quoted(dir)
    ))
}

/// What was counted, by name, and what could not be.
pub(super) fn read(started: &str, stopped: &str) -> (BTreeMap<String, f64>, Option<String>) {
    if started.contains("@@missing") {
        return (BTreeMap::new(), Some("not on the SUT".to_owned()));
    }
    let mut counted = BTreeMap::new();
    let mut missing = Vec::new();
    for line in part(stopped, "stat").lines() {
        let columns: Vec<&str> = line.split(';').collect();
        let [value, _unit, event, ..] = columns[..] else { continue };
        match value.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                counted.insert(format!("{PERF}.{event}"), value);
            }
            Ok(_) | Err(_) => missing.push(format!("{event} {}", value.trim_matches(['<', '>']))),
        }
    }
    for kind in ["stat", "record", "sched"] {
        if let Some(why) = part(stopped, kind).strip_prefix("failed: ") {
            let why: String = why.trim().chars().take(160).collect();
            missing.push(format!("{kind} failed: {why}"));
        }
    }
    (counted, (!missing.is_empty()).then(|| missing.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn sh(script: &str, path: &str) -> String {
        let done =
            Command::new("/bin/sh").arg("-c").arg(script).env("PATH", path).output().expect("sh is there");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("text")
    }

    /// A perf that behaves as the real one does as far as its child is concerned.
    const PERF_OF_A_TEST: &str = r#"#!/bin/sh
kind=$1; [ "$1" != sched ] || kind=$1-$2-$3
case $* in *report*) echo "the $kind of $4 $5"; exit 0 ;; esac
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
out=$2
while [ "$1" != -- ]; do shift; done
shift
"$@"
case $kind in
    stat) printf '# started on now\n\n1234;;context-switches;100;100.00;;\n<not supported>;;cycles;0;100.00;;\n' >"$out" ;;
    record) echo 'perf: no permission' >&2 ;;
    *) echo data >"$out" ;;
esac
"#;

    #[test]
    fn perf_counts_while_the_run_goes_on_and_says_what_it_cannot() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("temporary directory");
        let perf = dir.path().join("perf");
        std::fs::write(&perf, PERF_OF_A_TEST).expect("writes");
        std::fs::set_permissions(&perf, PermissionsExt::from_mode(0o755)).expect("is ours");
        let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").expect("a path"));
        let events = ["context-switches", "cycles"].map(str::to_owned).to_vec();
        let asked = Beside { schedstat: false, perf_stat: events, perf_record: true, perf_sched_stats: true };
        let started = sh(&start(&asked).expect("is asked for"), &path);
        let stopped = sh(&stop(&started).expect("it started"), &path);
        let (counted, missing) = read(&started, &stopped);
        assert_eq!(counted, BTreeMap::from([("perf.context-switches".to_owned(), 1234.0)]), "{stopped}");
        let missing = missing.expect("two things are missing");
        // Some shells say that their child was ended, too.
        assert!(missing.starts_with("cycles not supported, record failed: "), "{missing}");
        assert!(missing.ends_with("perf: no permission"), "{missing}");
        assert!(part(&stopped, "sched").starts_with("the sched-stats-report of"), "{stopped}");
        assert!(!std::path::Path::new(part(&started, "dir").trim()).exists(), "nothing is left");
    }

    #[test]
    fn a_sut_without_perf_says_so() {
        let asked = Beside { perf_record: true, ..Beside::default() };
        let started = sh(&start(&asked).expect("is asked for"), "/nonexistent");
        assert_eq!(stop(&started), None);
        assert_eq!(read(&started, "").1.as_deref(), Some("not on the SUT"));
        assert_eq!(start(&Beside { schedstat: true, ..Beside::default() }), None);
    }
}
