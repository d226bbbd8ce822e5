//! One look at the SUT before a run and one after it: what its kernel counted, what it is like, what it said.
//!
//! Each look is one script, since a shell on another machine is dear; its answer is cut at lines that begin with [`MARK`].
//! Nothing here fails: what a machine does not tell is not there.

use super::fingerprint;
use crate::lab::splat::{Splat, classify};
use crate::workload::schedstat::{Schedstat, is_off};
use std::collections::BTreeMap;

/// Begins the line before each part of an answer.
const MARK: &str = "@@";

/// Lines of the kernel's log that are looked at after a run; if none of them was there before it, all are new.
const LOG_LINES: usize = 2000;

/// Lines of it by which its end is known again. One is not enough: without time stamps a kernel says the same twice.
const LOG_END: usize = 50;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// `/proc/schedstat`.
    pub schedstat: bool,
    /// What the machine is like.
    pub environment: bool,
    /// The kernel's log.
    pub log: bool,
}

impl Look {
    /// Whether at nothing.
    pub fn is_nothing(self) -> bool {
        !(self.schedstat || self.environment || self.log)
    }

    /// The script before a run; what counts is read last.
    pub fn before(self) -> String {
        let mut script = String::new();
        if self.log {
            script.push_str(&format!("echo @@log; dmesg 2>/dev/null | tail -n {LOG_END}\n"));
        }
        if self.schedstat {
            script.push_str(
                "echo @@uptime; cat /proc/uptime; echo @@schedstat; cat /proc/schedstat 2>/dev/null\n",
            );
        }
        script.push_str("true\n");
        script
    }

    /// The script after a run; what counts is read first.
    pub fn after(self) -> String {
        let mut script = String::new();
        if self.schedstat {
            script.push_str(
                "echo @@schedstat; cat /proc/schedstat 2>/dev/null; echo @@uptime; cat /proc/uptime\n",
            );
        }
        if self.environment {
            script.push_str("echo @@environment\n");
            script.push_str(&fingerprint::quick());
        }
        if self.log {
            script.push_str(&format!("echo @@log; dmesg 2>/dev/null | tail -n {LOG_LINES}\n"));
        }
        script.push_str("true\n");
        script
    }
}

/// A part of an answer; empty where it has none.
pub(super) fn part(answer: &str, name: &str) -> String {
    let mut lines = answer.lines().skip_while(|line| line.strip_prefix(MARK) != Some(name));
    lines.next();
    let inside = lines.take_while(|line| !line.starts_with(MARK));
    inside.flat_map(|line| [line, "\n"]).collect()
}

/// The worst that the kernel said between two looks; of equal ones the first, since what follows is its echo.
pub(super) fn worst(before: &str, after: &str) -> Option<Splat> {
    let (last, log) = (part(before, "log"), part(after, "log"));
    let (end, lines): (Vec<&str>, Vec<&str>) = (last.lines().collect(), log.lines().collect());
    let known = (end.len()..=lines.len()).rev().find(|&at| !end.is_empty() && lines[..at].ends_with(&end));
    let new = &lines[known.unwrap_or(0)..];
    let splats = new.iter().filter_map(|line| classify(line));
    splats.reduce(|worst, splat| if splat.hurt > worst.hurt { splat } else { worst })
}

/// Name of the setting that tells what there is of `/proc/schedstat`.
pub const SCHEDSTAT: &str = "schedstat";

/// Name of the seconds between the two readings, among what was counted.
pub const ELAPSED: &str = "elapsed_s";

/// What was counted, or why nothing was; and which version counted it.
pub(super) fn counted(before: &str, after: &str) -> (BTreeMap<String, f64>, String) {
    let (first, last) = (part(before, SCHEDSTAT), part(after, SCHEDSTAT));
    if first.trim().is_empty() || last.trim().is_empty() {
        return (BTreeMap::new(), "not in this kernel (CONFIG_SCHEDSTATS is off)".to_owned());
    }
    let read = Schedstat::parse(&first).and_then(|first| {
        let last = Schedstat::parse(&last)?;
        Ok((first.version, first.until(&last)?))
    });
    let (version, mut counted) = match read {
        Ok(read) => read,
        Err(invalid) => return (BTreeMap::new(), format!("not read: {invalid}")),
    };
    let mut words = format!("version {version}");
    if is_off(&counted) {
        counted.retain(|name, _| ["rq_cpu_time_ns", "run_delay_ns", "pcount"].contains(&name.as_str()));
        words.push_str(", most counters are off (sysctl kernel.sched_schedstats is 0)");
    }
    // What stood still tells nothing, and there are hundreds of names.
    counted.retain(|_, value| *value != 0.0);
    let mut counted: BTreeMap<String, f64> =
        counted.into_iter().map(|(name, value)| (format!("{SCHEDSTAT}.{name}"), value)).collect();
    let elapsed = uptime(after).zip(uptime(before)).map(|(after, before)| after - before);
    counted.extend(elapsed.filter(|elapsed| *elapsed > 0.0).map(|elapsed| (ELAPSED.to_owned(), elapsed)));
    (counted, words)
}

fn uptime(answer: &str) -> Option<f64> {
    part(answer, "uptime").split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::splat::Hurt;

    const ALL: Look = Look { schedstat: true, environment: true, log: true };

    fn log(lines: &str) -> String {
        format!("@@log\n{lines}")
    }

    #[test]
    fn case_102_what_the_kernel_said_during_the_run_counts_and_what_it_said_before_does_not() {
        let old = "[    1.0] WARNING: CPU: 0 PID: 1 at old.c:1\n[    2.0] eth0: link up\n";
        let before = log("[    2.0] eth0: link up\n");
        let worst = |new: &str| worst(&before, &log(&format!("{old}{new}"))).map(|s| (s.hurt, s.line));
        assert_eq!(worst(""), None);
        assert_eq!(worst("[    9.0] eth0: link down\n"), None);
        for (line, hurt) in [
            ("Oops: 0002 [#1] PREEMPT SMP NOPTI", Hurt::Oops),
            ("WARNING: CPU: 0 PID: 1 at kernel/sched/fair.c:5 pick_eevdf+0x1/0x2", Hurt::Warning),
            ("BUG: scheduling while atomic: swapper/0/0/0x00000002", Hurt::Oops),
            ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [mysqld:77]", Hurt::Lockup),
            ("watchdog: CPU1: Watchdog detected hard LOCKUP on cpu 1", Hurt::Lockup),
            ("rcu: INFO: rcu_sched self-detected stall on CPU", Hurt::Lockup),
            ("INFO: task mysqld:77 blocked for more than 120 seconds.", Hurt::Lockup),
            ("Out of memory: Killed process 77 (mysqld) total-vm:1kB", Hurt::OutOfMemory),
        ] {
            assert_eq!(worst(&format!("[    9.0] {line}\n")), Some((hurt, line.to_owned())));
            assert_eq!(worst(&format!("<4>[    9.0] {line}\n")), Some((hurt, line.to_owned())));
        }
    }

    #[test]
    fn a_log_that_rolled_over_is_new_as_a_whole_and_one_that_cannot_be_read_says_nothing() {
        let new = "[    9.0] Oops: 0002 [#1]\n[    9.1] more\n";
        let line = |splat: Option<Splat>| splat.map(|splat| splat.line);
        let oops = Some("Oops: 0002 [#1]".to_owned());
        assert_eq!(line(worst(&log("[    2.0] eth0: link up\n"), &log(new))), oops);
        assert_eq!(line(worst(&log(""), &log(new))), oops, "it was empty before");
        assert_eq!(line(worst(&log(""), &log(""))), None);
        let (once, twice) = (log("a\nOops: 1\n"), log("a\nOops: 1\nOops: 1\n"));
        assert_eq!(
            line(worst(&once, &twice)).as_deref(),
            Some("Oops: 1"),
            "said again, without a time stamp"
        );
        assert_eq!(line(worst(&twice, &twice)), None);
    }

    #[test]
    fn an_answer_is_cut_into_its_parts() {
        let answer = "@@uptime\n5.25 9.1\n@@schedstat\nversion 16\ntimestamp 1\n@@log\n";
        assert_eq!(part(answer, "schedstat"), "version 16\ntimestamp 1\n");
        assert_eq!((part(answer, "log"), part(answer, "environment")), (String::new(), String::new()));
        assert_eq!(uptime(answer), Some(5.25));
    }

    #[test]
    fn what_is_counted_stands_with_its_time_and_what_is_not_there_is_said() {
        let reading = |uptime: f64, n: u64| {
            format!(
                "@@uptime\n{uptime} 1\n@@schedstat\nversion 16\ntimestamp 1\ncpu0 0 0 {n} 0 {n} 0 {n} 5 {n}\n"
            )
        };
        let (values, words) = counted(&reading(1.0, 10), &reading(3.5, 30));
        assert_eq!(words, "version 16");
        assert_eq!(values[ELAPSED], 2.5);
        assert_eq!(values["schedstat.sched_count"], 20.0);
        assert!(!values.contains_key("schedstat.run_delay_ns"), "it stood still");

        let (values, words) = counted("@@uptime\n1 1\n@@schedstat\n", "@@schedstat\n@@uptime\n2 2\n");
        assert_eq!((values.len(), words.as_str()), (0, "not in this kernel (CONFIG_SCHEDSTATS is off)"));
        let off = |n: u64| format!("@@schedstat\nversion 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 {n} {n} {n}\n");
        let (values, words) = counted(&off(1), &off(2));
        assert_eq!(
            values.keys().collect::<Vec<_>>(),
            ["schedstat.pcount", "schedstat.rq_cpu_time_ns", "schedstat.run_delay_ns"]
        );
        assert_eq!(words, "version 15, most counters are off (sysctl kernel.sched_schedstats is 0)");
        let (_, words) = counted("@@schedstat\nversion 99\n", "@@schedstat\nversion 99\n");
        assert_eq!(words, "not read: version 99 is none of 15, 16 and 17");
    }

    #[test]
    fn both_looks_work_on_this_machine() {
        for script in [ALL.before(), ALL.after()] {
            let done = std::process::Command::new("sh").arg("-c").arg(script).output().expect("sh is there");
            assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
            let text = String::from_utf8_lossy(&done.stdout);
            assert!(uptime(&text).is_some_and(|seconds| seconds > 0.0), "{text}");
        }
    }
}
