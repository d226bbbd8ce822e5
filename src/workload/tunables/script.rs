//! The shell behind the tunables.

use super::{CGROUP, Knob, Settings, What};
use crate::session::Variant;
use std::fmt::Write as _;

/// `say INDEX STATE VALUE`, `file INDEX PATH [VALUE]`, `feature INDEX WORD SYSCTL SET`, and so on. A read-back is one line.
const FUNCTIONS: &str = r#"
say() { printf 'knob\t%s\t%s\t%s\n' "$1" "$2" "$(printf %s "$3" | tr '\n\t' '  ')"; }
put() { { printf '%s\n' "$2" >"$1"; } 2>/dev/null; }
missing() {
    case $2 in "$DEBUG"/*) [ -z "$HIDDEN" ] || { say "$1" hidden "$2"; return; } ;; esac
    say "$1" absent "$2"
}
file() {
    [ -e "$2" ] || { missing "$1" "$2"; return; }
    if [ $# -gt 2 ]; then
        put "$2" "$3" || { say "$1" refused "$(cat "$2" 2>/dev/null)"; return; }
    fi
    say "$1" is "$(cat "$2" 2>/dev/null)"
}
state() {
    case " $(cat "$1") " in
        *" $2 "*) echo "$2" ;;
        *" NO_$2 "*) echo "NO_$2" ;;
    esac
}
toggle() {
    read -r toggle <"$1"
    if [ "$toggle" = 0 ]; then echo "NO_$2"; else echo "$2"; fi
}
feature() {
    bare=${2#NO_}
    for list in "$DEBUG/sched/features" "$DEBUG/sched_features"; do
        [ -e "$list" ] && [ -n "$(state "$list" "$bare")" ] || continue
        [ "$4" != 1 ] || put "$list" "$2"
        say "$1" is "$(state "$list" "$bare")"
        return
    done
    list=/proc/sys/kernel/$3
    [ -e "$list" ] || { missing "$1" "$DEBUG/sched/features"; return; }
    if [ "$4" = 1 ]; then
        if [ "$2" = "$bare" ]; then put "$list" 1; else put "$list" 0; fi
    fi
    say "$1" is "$(toggle "$list" "$bare")"
}
governor() {
    all=
    for list in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
        [ -e "$list" ] || { say "$1" absent "$list"; return; }
        read -r now <"$list"
        case " $all " in *" $now "*) ;; *) all="$all $now" ;; esac
    done
    if [ -z "$2" ]; then say "$1" is "$all"; return; fi
    for list in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do put "$list" "$2"; done
    governor "$1" ''
}
"#;

/// `look STAT`: policy and nice out of a /proc/.../stat, whose second field may hold anything.
const LOOK: &str = r#"
look() {
    stat=$(cat "$1" 2>/dev/null) || return 1
    set -f
    set -- ${stat##*) }
    set +f
    nice=${17} policy=${39}
    case $policy in
        0) policy=other ;;
        1) policy=fifo ;;
        2) policy=rr ;;
        3) policy=batch ;;
        5) policy=idle ;;
        6) policy=deadline ;;
        7) policy=ext ;;
    esac
}
"#;

/// Sets or only reads all of them.
pub(super) fn all(knobs: &[Knob], variant: &Variant, set: bool) -> String {
    let mut text = format!("DEBUG=/sys/kernel/debug HIDDEN=\n{FUNCTIONS}{LOOK}");
    let debugfs = knobs.iter().any(|knob| match &knob.what {
        What::Feature => true,
        What::File { path, .. } => path.starts_with("/sys/kernel/debug/"),
        What::Governor | What::Cmdline | What::Processes { .. } => false,
    });
    if debugfs {
        text.push_str(
            "listed() { [ -n \"$(ls \"$DEBUG\" 2>/dev/null)\" ]; }\n\
             listed || mount -t debugfs debugfs \"$DEBUG\" 2>/dev/null\n\
             listed || ! [ -d \"$DEBUG\" ] || HIDDEN=1\n",
        );
    }
    if set && !variant.cgroup.is_empty() {
        text.push_str(&make_cgroup(variant));
    }
    for (at, knob) in knobs.iter().enumerate() {
        match &knob.what {
            What::Feature => {
                let sysctl = format!("sched_{}_enabled", knob.name.to_lowercase());
                let _ = writeln!(text, "feature {at} {} {sysctl} {}", knob.wanted, u8::from(set));
            }
            What::File { path, written } if set && *written => {
                let _ = writeln!(text, "file {at} '{path}' '{}'", knob.wanted);
            }
            What::File { path, .. } => {
                let _ = writeln!(text, "file {at} '{path}'");
            }
            What::Governor => {
                let wanted = if set { knob.wanted.as_str() } else { "" };
                let _ = writeln!(text, "governor {at} '{wanted}'");
            }
            What::Cmdline => {
                let _ = writeln!(text, "file {at} /proc/cmdline");
            }
            What::Processes { comm } => text.push_str(&processes(at, comm, variant, set)),
        }
    }
    text
}

/// A cgroup of ours, with the controllers that its attributes are of.
fn make_cgroup(variant: &Variant) -> String {
    let mut text =
        "[ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null\n\
                    mkdir -p CGROUP 2>/dev/null\n"
            .replace("CGROUP", CGROUP);
    let mut controllers: Vec<&str> =
        variant.cgroup.keys().filter_map(|name| name.split('.').next()).collect();
    controllers.dedup();
    for controller in controllers {
        // Fails where it is on already or cannot be had; then the attribute is not there, and that is told.
        let _ = writeln!(text, "put /sys/fs/cgroup/cgroup.subtree_control +{controller}");
    }
    text
}

/// Commands that give a process or thread its policy and nice value.
fn give(variant: &Variant, id: &str) -> Vec<String> {
    let mut commands = Vec::new();
    if let Some(policy) = &variant.policy {
        let option = match policy.as_str() {
            "batch" => "-b",
            "idle" => "-i",
            "ext" => "--ext",
            _ => "-o",
        };
        commands.push(format!("chrt {option} -p 0 {id} >/dev/null"));
    }
    if let Some(nice) = variant.nice {
        commands.push(format!("renice {nice} -p {id} >/dev/null"));
    }
    commands
}

/// What [`super::process_words`] says, out of $policy, $nice and $group.
fn words(variant: &Variant) -> String {
    let mut words = Vec::new();
    if variant.policy.is_some() {
        words.push("policy $policy");
    }
    if variant.nice.is_some() {
        words.push("nice $nice");
    }
    if !variant.cgroup.is_empty() {
        words.push("$group");
    }
    words.join(" ")
}

/// Sets group to "in the cgroup" for what /proc/ID/cgroup says.
const GROUP: &str = "grep -q ':/.*sched-bisect$' \"/proc/$id/cgroup\" 2>/dev/null && group='in the cgroup' || group='not in the cgroup'";

fn processes(at: usize, comm: &str, variant: &Variant, set: bool) -> String {
    let wanted = super::process_words(variant);
    let mut each = String::new();
    if set {
        for command in give(variant, "$thread") {
            let _ = writeln!(each, "        {command} 2>/dev/null");
        }
    }
    let join = if set && !variant.cgroup.is_empty() {
        format!("    put {CGROUP}/cgroup.procs \"$id\"\n")
    } else {
        String::new()
    };
    format!(
        r#"seen=
for process in /proc/[0-9]*; do
    {{ read -r comm <"$process/comm"; }} 2>/dev/null || continue
    [ "$comm" = '{comm}' ] || continue
    id=${{process#/proc/}}
{join}    for thread in "$process"/task/*; do
        thread=${{thread##*/}}
{each}        look "$process/task/$thread/stat" || continue
        {GROUP}
        [ -n "$seen" ] && [ "$seen" != '{wanted}' ] || seen="{words}"
    done
done
if [ -n "$seen" ]; then say {at} is "$seen"; else say {at} absent '{comm}'; fi
"#,
        words = words(variant)
    )
}

/// Gives the shell that reads it the policy, nice value and cgroup, and ends it where that fails.
pub(super) fn prelude(variant: &Variant) -> String {
    if !variant.is_about_processes() {
        return String::new();
    }
    let mut text = String::from(LOOK);
    let _ = writeln!(text, "id=$$\nsb_fail() {{ echo \"{}$1\" >&2; exit 1; }}", super::INVALID);
    for command in give(variant, "$$") {
        let _ = writeln!(
            text,
            "{command} || sb_fail \"{} does not work on the SUT, so that the run cannot be given what its variant says\"",
            first(&command)
        );
    }
    if !variant.cgroup.is_empty() {
        let _ = writeln!(
            text,
            "echo $$ >{CGROUP}/cgroup.procs || sb_fail \"the run cannot be put into its cgroup\""
        );
    }
    let _ = writeln!(text, "{GROUP}\nlook /proc/$$/stat");
    let wanted = super::process_words(variant);
    let _ = writeln!(
        text,
        "[ \"{0}\" = '{wanted}' ] || sb_fail \"the run was given {wanted} and has {0}\"",
        words(variant)
    );
    text
}

fn first(command: &str) -> &str {
    command.split(' ').next().unwrap_or_default()
}

/// Writes back what was.
pub(super) fn restore(knobs: &[Knob], before: &Settings) -> String {
    let mut text = format!("DEBUG=/sys/kernel/debug HIDDEN=\n{FUNCTIONS}");
    let mut any = false;
    for (at, knob) in knobs.iter().enumerate().rev() {
        let Some(value) = before.get(&knob.name).filter(|value| !value.is_empty() && !value.contains('\''))
        else {
            continue;
        };
        match &knob.what {
            What::Feature => {
                let sysctl = format!("sched_{}_enabled", knob.name.to_lowercase());
                let _ = writeln!(text, "feature {at} {value} {sysctl} 1");
            }
            What::File { path, written: true } => {
                let _ = writeln!(text, "file {at} '{path}' '{value}'");
            }
            // Of CPUs that differed it is not known which was which.
            What::Governor if !value.contains(' ') => {
                let _ = writeln!(text, "governor {at} '{value}'");
            }
            What::File { written: false, .. } | What::Governor | What::Cmdline | What::Processes { .. } => {
                continue;
            }
        }
        any = true;
    }
    if any { text } else { String::new() }
}
