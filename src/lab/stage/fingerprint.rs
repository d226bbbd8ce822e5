//! What a machine is like: one shell script that tells it, and how its answer is read.
//!
//! The machine may be a guest with nothing but busybox: a file or tool that is not there is a field that is not there,
//! never an error. Every fork is instructions that an emulator has to get through, so one `grep` reads all files. The shell's
//! own `read` would not do: it takes a byte at a time, and a number under /proc/sys is at its end after the first.
//! What a field means, and which may differ, is [`session::environment`](crate::session::environment)'s.

use crate::lab::build_id::build_id;
use crate::lab::shell::quoted;
use crate::session::environment::Fields;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Words of a command that are looked up as programs, at most: a script of a hundred lines has no hundred programs that
/// matter.
const WORDS: usize = 60;

/// How much of a value is kept, in bytes.
const VALUE: usize = 1000;

/// What does not change while a boot lasts is looked at once in it.
const SLOW: [&str; 7] = ["program.", "library.", "file.", "kernel.", "load.", "memory_kib", "hz"];

const PROC_SYS: &str = "/proc/sys/";

/// sysctls that decide how a workload is scheduled, woken or placed.
const SYSCTLS: &[&str] = &[
    "kernel/nmi_watchdog",
    "kernel/numa_balancing",
    "kernel/perf_event_paranoid",
    "kernel/randomize_va_space",
    "kernel/sched_cfs_bandwidth_slice_us",
    "kernel/sched_child_runs_first",
    "kernel/sched_energy_aware",
    "kernel/sched_rr_timeslice_ms",
    "kernel/sched_rt_period_us",
    "kernel/sched_rt_runtime_us",
    "kernel/sched_schedstats",
    "kernel/sched_util_clamp_max",
    "kernel/sched_util_clamp_min",
    "kernel/soft_watchdog",
    "kernel/timer_migration",
    "vm/dirty_background_ratio",
    "vm/dirty_ratio",
    "vm/overcommit_memory",
    "vm/swappiness",
    "vm/zone_reclaim_mode",
];

/// Files of one line, and the fields that they are. A `*` stands for one name of a directory.
const FILES: &[(&str, &str)] = &[
    (CLOCK, "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("cpufreq_driver", "/sys/devices/system/cpu/cpu*/cpufreq/scaling_driver"),
    ("governor", "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
    ("frequency_limits", "/sys/devices/system/cpu/cpu*/cpufreq/scaling_min_freq"),
    ("frequency_limits", "/sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq"),
    ("boost", "/sys/devices/system/cpu/cpufreq/boost"),
    (BOOST_OFF, "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("smt", "/sys/devices/system/cpu/smt/control"),
    ("cpus_online", "/sys/devices/system/cpu/online"),
    ("numa_nodes", "/sys/devices/system/node/online"),
    ("microcode", "/sys/devices/system/cpu/cpu0/microcode/version"),
    ("mitigation.*", "/sys/devices/system/cpu/vulnerabilities/*"),
    (THP, "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("autogroup", "/proc/sys/kernel/sched_autogroup_enabled"),
    ("sched.features", "/sys/kernel/debug/sched/features"),
    ("sched.base_slice_ns", "/sys/kernel/debug/sched/base_slice_ns"),
    (PREEMPT, "/sys/kernel/debug/sched/preempt"),
    ("cmdline", "/proc/cmdline"),
    ("hostname", "/proc/sys/kernel/hostname"),
    (VENDOR, "/sys/class/dmi/id/sys_vendor"),
    (MODEL, "/sys/class/dmi/id/product_name"),
    ("kernel.release", "/proc/sys/kernel/osrelease"),
    ("kernel.version", "/proc/sys/kernel/version"),
    ("kernel.taint", "/proc/sys/kernel/tainted"),
];

/// Fields whose values are read as what they mean.
const CLOCK: &str = "clocksource";
const THP: &str = "thp";
const PREEMPT: &str = "sched.preempt";
const BOOST_OFF: &str = "boost_off";
const VENDOR: &str = "vendor";
const MODEL: &str = "model";
const NOTES: &str = "kernel.notes";

const HEAD: &str = r#"
set +f
put() { [ -z "$2" ] || printf '%s\t%s\n' "$1" "$2"; }
[ ! -r /proc/device-tree/model ] || put model "$(tr -d '\0' </proc/device-tree/model)"
while IFS= read -r line; do
    case $line in 'model name'*) put cpu "${line#*: }"; break ;; esac
done </proc/cpuinfo
v=; { IFS= read -r v </proc/$$/stat; } 2>/dev/null
set -- ${v##*)}
case ${5:-} in '') ;; 0) put tty no ;; *) put tty yes ;; esac
"#;

const KERNEL: &str = r#"
[ ! -r /sys/kernel/notes ] || put kernel.notes "$(od -An -v -tx1 </sys/kernel/notes 2>/dev/null | tr -d ' \n')"
sum() {
    { sha256sum 2>/dev/null || md5sum 2>/dev/null || cksum; } | { read -r s rest; echo "${s%"${s#????????????????}"}"; }
}
config() {
    [ ! -r /proc/config.gz ] || { zcat </proc/config.gz; return; }
    release=; { read -r release </proc/sys/kernel/osrelease; } 2>/dev/null
    for f in "/boot/config-$release" "/lib/modules/$release/config"; do [ ! -r "$f" ] || { cat "$f"; return; }; done
}
v=$(config 2>/dev/null | grep '^CONFIG_')
[ -z "$v" ] || put kernel.config "$(printf '%s\n' "$v" | sum)"
case $v in *CONFIG_HZ=*) h=${v#*CONFIG_HZ=}; put hz "${h%%[!0-9]*}" ;; esac
dmesg >/dev/null 2>&1 || put kernel.log unreadable
while read -r name v unit; do case $name in MemTotal:) put memory_kib "$v"; break ;; esac; done </proc/meminfo
"#;

const PROGRAMS: &str = r#"
package() {
    case $1 in /usr/* | /bin/* | /sbin/* | /opt/*) ;; *) return ;; esac
    real=$(readlink -f "$1" 2>/dev/null) || real=$1
    if command -v dpkg-query >/dev/null; then
        for at in "$1" "$real"; do
            p=$(dpkg-query -S "$at" 2>/dev/null) || continue
            dpkg-query -W -f ' (${Package} ${Version})' "${p%%:*}" 2>/dev/null
            return
        done
    elif command -v rpm >/dev/null; then
        rpm -qf --qf ' (%{NAME} %{VERSION}-%{RELEASE})' "$real" 2>/dev/null
    fi
}
libraries() {
    if command -v ldd >/dev/null; then ldd "$1"; else
        for loader in /lib64/ld-linux*.so.* /lib/ld-linux*.so.* /lib/ld-musl*.so.*; do
            [ ! -x "$loader" ] || { "$loader" --list "$1"; return; }
        done
    fi 2>/dev/null
}
seen=' '
program() {
    path=$(command -v "$1" 2>/dev/null) || return 0
    case $path in /*) ;; *) return 0 ;; esac
    [ -f "$path" ] && [ -x "$path" ] && [ -r "$path" ] || return 0
    put "program.$1" "$(sum <"$path")$(package "$path")"
    for word in $(libraries "$path"); do
        case $word in /*) ;; *) continue ;; esac
        case $seen in *" $word "*) continue ;; esac
        seen="$seen$word "
        [ ! -r "$word" ] || put "library.${word##*/}" "$(sum <"$word")"
    done
}
file() {
    [ -r "$1" ] && [ ! -d "$1" ] || return 0
    v=$(head -c 400 <"$1" 2>/dev/null | tr '\t\n\0' '   ')
    [ "${#v}" -lt 200 ] || v="content $(sum <"$1")"
    put "file.$1" "${v:- }"
}
"#;

/// What is asked of a machine.
pub(super) struct Asked<'a> {
    /// Commands that run there: their words are looked up as programs.
    pub commands: &'a [String],
    /// More files and programs.
    pub also: &'a [String],
}

/// The script that tells what changes while a boot lasts.
pub(super) fn quick() -> String {
    let files: Vec<&str> = FILES.iter().map(|(_, path)| *path).collect();
    let sysctls: Vec<String> = SYSCTLS.iter().map(|sysctl| format!("{PROC_SYS}{sysctl}")).collect();
    format!("{HEAD}grep -sH '' {} {}\ntrue\n", files.join(" "), sysctls.join(" "))
}

/// The script that tells all.
pub(super) fn whole(asked: &Asked) -> String {
    let mut script = quick();
    script.push_str(KERNEL);
    script.push_str(PROGRAMS);
    for word in words(asked) {
        let _ = writeln!(script, "program {}", quoted(&word));
    }
    for path in asked.also.iter().filter(|also| also.starts_with('/')) {
        let _ = writeln!(script, "file {}", quoted(path));
    }
    script.push_str("true\n");
    script
}

/// What may be the name of a program: in a shell's text it cannot be told from an argument, but what is found under it does
/// not change by itself either.
fn words(asked: &Asked) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_./+-".contains(c);
    let mut words: BTreeSet<String> =
        asked.also.iter().filter(|also| !also.starts_with('/')).cloned().collect();
    let text = asked.commands.join("\n");
    let mut from = 0;
    while let Some(start) = text[from..].find(is_part).map(|at| from + at) {
        let end = text[start..].find(|c| !is_part(c)).map_or(text.len(), |at| start + at);
        let (before, word) = (text[..start].chars().next_back(), &text[start..end]);
        // The value of a variable, an assignment, a relative path (it is the candidate's own) and an option are none.
        let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && !word.contains('/')
            && !text[end..].starts_with('=');
        let is_named = is_name || (word.starts_with('/') && before != Some('}'));
        if is_named && !before.is_some_and(|c| "$={".contains(c)) && words.len() < WORDS {
            words.insert(word.to_owned());
        }
        from = end;
    }
    words
}

/// The fields that a script told.
pub(super) fn read(text: &str) -> Fields {
    let mut fields = Fields::new();
    for line in text.lines() {
        let told = match line.split_once('\t').filter(|_| !line.starts_with('/')) {
            Some((name, value)) => Some((name.to_owned(), value)),
            None => line.split_once(':').and_then(|(path, value)| Some((field_of(path)?, value))),
        };
        let Some((name, value)) = told else { continue };
        let (name, value) = meant(name, value.trim());
        if value.is_empty() {
            continue;
        }
        // CPUs that differ show both values.
        match fields.get_mut(&name) {
            Some(known) if known.split(',').any(|one| *one == value) => {}
            Some(known) => *known = cut(format!("{known},{value}")),
            None => drop(fields.insert(name, cut(value))),
        }
    }
    join_model(&mut fields);
    fields
}

/// The field that a file is.
fn field_of(path: &str) -> Option<String> {
    if let Some(sysctl) = path.strip_prefix(PROC_SYS).filter(|sysctl| SYSCTLS.contains(sysctl)) {
        return Some(format!("sysctl.{}", sysctl.replace('/', ".")));
    }
    FILES.iter().find_map(|(field, pattern)| match pattern.split_once('*') {
        None => (*pattern == path).then(|| (*field).to_owned()),
        Some((start, end)) => {
            let name = path.strip_prefix(start)?.strip_suffix(end)?;
            (!name.contains('/')).then(|| field.replace('*', name))
        }
    })
}

fn meant(name: String, value: &str) -> (String, String) {
    match name.as_str() {
        // For its first second a kernel calls its TSC so; that it comes to trust it is no change.
        CLOCK => (name, value.strip_suffix("-early").unwrap_or(value).to_owned()),
        THP | PREEMPT => (name, selected(value)),
        NOTES => ("kernel.build_id".to_owned(), from_notes(value)),
        BOOST_OFF => ("boost".to_owned(), if value == "0" { "1" } else { "0" }.to_owned()),
        _ => (name, value.to_owned()),
    }
}

/// Vendor and model are one thing to a reader.
fn join_model(fields: &mut Fields) {
    let parts = [fields.remove(VENDOR), fields.remove(MODEL)];
    let model: Vec<String> = parts.into_iter().flatten().collect();
    if !model.is_empty() {
        fields.insert("machine".to_owned(), model.join(" "));
    }
}

/// "always [madvise] never" is "madvise": which others a kernel offers is not what it does.
fn selected(value: &str) -> String {
    let chosen = value
        .split_whitespace()
        .find_map(|w| w.trim_matches(['(', ')']).strip_prefix('[')?.strip_suffix(']'));
    let marked = value.split_whitespace().find_map(|w| w.strip_prefix('(')?.strip_suffix(')'));
    chosen.or(marked).unwrap_or(value).trim().to_owned()
}

fn from_notes(hex: &str) -> String {
    let byte = |at: usize| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let notes: Option<Vec<u8>> = (0..hex.len() / 2).map(|n| byte(2 * n)).collect();
    notes.and_then(|notes| build_id(&notes)).unwrap_or_default()
}

fn cut(mut value: String) -> String {
    if value.len() > VALUE {
        let end = (0..=VALUE).rev().find(|&at| value.is_char_boundary(at)).unwrap_or(0);
        value.truncate(end);
    }
    value
}

/// A command line without what differs from boot to boot by itself: our own token, what names the kernel and its root
/// file system, and the words of the boot's variant, which are checked where they are set.
pub(super) fn settled_cmdline(cmdline: &str, of_variant: &str) -> String {
    let words = cmdline.split_whitespace();
    let own = ["sb.boot=", "BOOT_IMAGE=", "initrd="];
    let kept = words.filter(|word| {
        !own.iter().any(|start| word.starts_with(start))
            && !of_variant.split_whitespace().any(|other| other == *word)
    });
    kept.collect::<Vec<&str>>().join(" ")
}

/// Whether a field can change while a boot lasts.
pub(super) fn is_quick(field: &str) -> bool {
    !SLOW.iter().any(|start| field.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn told(script: &str) -> Fields {
        let done = Command::new("sh").arg("-c").arg(script).output().expect("sh is there");
        assert!(done.status.success(), "{done:?}");
        assert_eq!(String::from_utf8_lossy(&done.stderr), "");
        read(&String::from_utf8(done.stdout).expect("text"))
    }

    #[test]
    fn this_machine_tells_what_it_is_and_which_programs_it_runs() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let file = dir.path().join("limits").display().to_string();
        std::fs::write(&file, "a\tb\nc\n").expect("writes");
        let asked = Asked {
            commands: &["for n in 1 2; do LC_ALL=C sort \"$TEST\" | ./relative x; done".to_owned()],
            also: &["cat".to_owned(), file.clone(), "/no/such/file".to_owned(), "no-such-program".to_owned()],
        };
        let fields = told(&whole(&asked));
        assert_eq!(
            fields["kernel.release"],
            std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux").trim()
        );
        assert!(fields["program.sort"].len() >= 16 && fields["program.cat"].len() >= 16, "{fields:?}");
        assert!(fields.keys().any(|name| name.starts_with("library.libc.")), "{fields:?}");
        assert!(fields["memory_kib"].parse::<u64>().expect("a number") > 0);
        assert_eq!(fields[&format!("file.{file}")], "a b c");
        assert!(!fields.keys().any(|name| name.contains("no-such") || name.contains("/no/")), "{fields:?}");
        assert!(["yes", "no"].contains(&fields["tty"].as_str()));
        let swappiness = std::fs::read_to_string("/proc/sys/vm/swappiness").expect("Linux");
        assert_eq!(fields["sysctl.vm.swappiness"], swappiness.trim(), "all of its digits");
        assert_eq!(fields["cpus_online"], told(&quick())["cpus_online"]);
    }

    #[test]
    fn a_shell_without_any_tool_tells_what_it_can() {
        let script = whole(&Asked { commands: &["sort".to_owned()], also: &["/etc/passwd".to_owned()] });
        let sh =
            ["/bin/sh", "/usr/bin/sh"].into_iter().find(|sh| std::path::Path::new(sh).exists()).expect("sh");
        let done = Command::new(sh).arg("-c").arg(script).env("PATH", "/nonexistent").output().expect("runs");
        assert!(done.status.success(), "{done:?}");
        let fields = read(&String::from_utf8(done.stdout).expect("text"));
        assert!(fields.contains_key("tty") && !fields.contains_key("program.sort"), "{fields:?}");
        assert_eq!(fields["kernel.log"], "unreadable");
    }

    #[test]
    fn words_that_may_name_programs_are_found_and_values_are_not() {
        let command =
            "exec /opt/bench/run -g 4 --size=big \"$TEST\" ${DIR}/bin/x; A=b stress-ng | ./mine >/dev/null";
        let found = words(&Asked { commands: &[command.to_owned()], also: &["mysqld".to_owned()] });
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["/dev/null", "/opt/bench/run", "exec", "mysqld", "stress-ng"]);
    }

    #[test]
    fn values_are_read_as_what_they_mean() {
        let text = "/sys/kernel/mm/transparent_hugepage/enabled:always [madvise] never\n\
                    /sys/kernel/debug/sched/preempt:none (voluntary) full\n/sys/class/dmi/id/sys_vendor:Acme\n\
                    /sys/devices/system/cpu/intel_pstate/no_turbo:1\nno tab\nmodel\tX1\nempty\t\n\
                    /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:powersave\n\
                    /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor:performance\n\
                    /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor:powersave\n\
                    /sys/devices/system/cpu/vulnerabilities/retbleed:Mitigation: untrained return thunk\n\
                    /sys/devices/system/clocksource/clocksource0/current_clocksource:tsc-early\n\
                    /proc/sys/vm/swappiness:60\n/proc/sys/vm/other:60\nkernel.notes\t0400000003000000030000 00474e5500\n";
        let fields = read(text);
        assert_eq!(fields["thp"], "madvise");
        assert_eq!(fields["sched.preempt"], "voluntary");
        assert_eq!(fields["clocksource"], "tsc");
        assert_eq!(fields["boost"], "0");
        assert_eq!(fields["governor"], "powersave,performance");
        assert_eq!(fields["mitigation.retbleed"], "Mitigation: untrained return thunk");
        assert_eq!(fields["sysctl.vm.swappiness"], "60");
        assert_eq!(fields.keys().filter(|name| name.contains("other")).count(), 0);
        assert_eq!(fields["machine"], "Acme X1");
        assert!(!fields.contains_key("empty") && !fields.contains_key("kernel.build_id"), "{fields:?}");
        let notes = "040000000300000003000000474e550000ff1000";
        assert_eq!(read(&format!("kernel.notes\t{notes}\n"))["kernel.build_id"], "00ff10");
    }

    #[test]
    fn a_command_line_is_compared_without_what_names_the_boot() {
        let cmdline = "BOOT_IMAGE=/vmlinuz-1 root=/dev/vda ro sb.boot=00000007-f00 nosmt quiet\n";
        assert_eq!(settled_cmdline(cmdline, "nosmt mitigations=off"), "root=/dev/vda ro quiet");
    }
}
