//! The short scripts that look at a machine, and what their answers mean.

use crate::lab::shell::quoted;
use crate::session::Settle;
use crate::workload::Output;
use std::fmt::Write as _;

/// CPUs that a load can use.
pub(super) const CPUS: &str = "nproc 2>/dev/null || getconf _NPROCESSORS_ONLN";

/// The first line of /proc/stat: time of all CPUs by what they did.
pub(super) const CPU_TIMES: &str = "read -r line </proc/stat && echo \"$line\"";

/// Reads the CPU times once more when `seconds` have passed, while the run goes on: it tells the directory in which the
/// line is put and goes on in the background. The line stands there as a whole or not at all. It has told its number from
/// within its own session before the script ends: whoever cleans up after the script would end it otherwise.
pub(super) fn later(seconds: u64) -> String {
    format!(
        "dir=$(mktemp -d) || exit 1\n\
         pid=$(setsid sh -c 'echo $$; exec >/dev/null 2>&1; sleep {seconds}; \
         head -n 1 /proc/stat >\"$0/part\" && mv \"$0/part\" \"$0/line\"' \"$dir\" </dev/null &)\n\
         echo \"$pid\" >\"$dir/pid\"\necho \"$dir\"\n"
    )
}

/// After a run: ends what [`later`] started, which told `dir`, and gives the line that it put there, if it came to that.
pub(super) fn gathered(dir: &str) -> String {
    let dir = quoted(dir.trim());
    format!(
        "read -r pid <{dir}/pid; cat {dir}/line 2>/dev/null\n\
         kill -9 -\"$pid\" 2>/dev/null; rm -rf {dir}\ntrue\n"
    )
}

/// The number that [`CPUS`] gave.
pub(super) fn cpus(output: &Output) -> Option<u32> {
    String::from_utf8_lossy(&output.stdout).trim().parse().ok().filter(|&count| count > 0)
}

/// Part of the CPU time between two looks that was idle, 0 to 1; waiting for a disk is idle too. `None` where the lines are
/// not what Linux prints, or no time has passed.
pub(super) fn idle_part(before: &Output, after: &Output) -> Option<f64> {
    let ((idle_before, all_before), (idle_after, all_after)) = (times(before)?, times(after)?);
    let all = all_after.checked_sub(all_before).filter(|&all| all > 0)?;
    let idle = idle_after.checked_sub(idle_before)?;
    Some((idle as f64 / all as f64).min(1.0))
}

/// Idle and all, in ticks: user, nice, system, idle, iowait, irq, softirq, steal. What guests took is in user and nice.
fn times(output: &Output) -> Option<(u64, u64)> {
    let text = String::from_utf8_lossy(&output.stdout);
    let ticks: Vec<u64> =
        text.strip_prefix("cpu ")?.split_whitespace().take(8).map_while(|t| t.parse().ok()).collect();
    let [_, _, _, idle, iowait, ..] = ticks[..] else { return None };
    Some((idle + iowait, ticks.iter().sum()))
}

/// Shell that prints a line for each thing that has not settled, and nothing when all has.
pub(super) fn settled(settle: &Settle) -> String {
    let mut script = String::from("read -r one five fifteen tasks rest </proc/loadavg\n");
    if let Some(most) = settle.running {
        // The shell that asks runs as well.
        let _ = writeln!(
            script,
            "running=$((${{tasks%%/*}} - 1))\n[ $running -le {most} ] || echo \"$running tasks run ({most} may)\""
        );
    }
    if let Some(most) = settle.load {
        let _ = writeln!(
            script,
            "[ \"$(awk -v l=\"$one\" 'BEGIN {{ print (l <= {most}) }}')\" = 1 ] || echo \"the load average is $one ({most} may be)\""
        );
    }
    if let Some(most) = settle.temperature {
        let milli = (most * 1000.0).round();
        let _ = writeln!(
            script,
            "for zone in /sys/class/thermal/thermal_zone*/temp; do\n\
             \x20   {{ read -r heat <\"$zone\"; }} 2>/dev/null || continue\n\
             \x20   [ \"$heat\" -le {milli} ] || echo \"$zone is at $heat mC ({milli} may be)\"\n\
             done"
        );
    }
    if settle.system {
        script.push_str(
            "if [ -d /run/systemd/system ]; then\n\
             \x20   state=$(systemctl is-system-running)\n\
             \x20   case $state in running | degraded) ;; *) echo \"systemd is $state\" ;; esac\n\
             fi\n",
        );
    }
    script.push_str("true\n");
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn output(text: &str) -> Output {
        Output { stdout: text.as_bytes().to_vec(), ..Output::default() }
    }

    #[test]
    fn the_idle_part_is_that_of_the_time_between() {
        let before = output("cpu  100 0 50 1000 10 0 0 0 0 0\n");
        let after = output("cpu  160 0 55 1030 15 0 0 0 0 0\n");
        assert_eq!(idle_part(&before, &after), Some(0.35));
        assert_eq!(idle_part(&before, &before), None);
        assert_eq!(idle_part(&before, &output("cpu0 1 2\n")), None);
        assert_eq!(idle_part(&after, &before), None, "a counter that ran backwards tells nothing");
    }

    #[test]
    fn a_look_that_is_due_later_is_taken_while_something_else_runs_and_leaves_nothing() {
        let sh = |script: &str| {
            let done = Command::new("sh").arg("-c").arg(script).output().expect("sh is there");
            assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
            String::from_utf8(done.stdout).expect("text")
        };
        let dir = sh(&later(0));
        let line = std::path::Path::new(dir.trim()).join("line");
        while !line.exists() {
            std::thread::yield_now();
        }
        assert!(sh(&gathered(&dir)).starts_with("cpu "));
        assert!(!std::path::Path::new(dir.trim()).exists());

        let dir = sh(&later(300));
        let pid = std::fs::read_to_string(std::path::Path::new(dir.trim()).join("pid")).expect("a pid");
        assert_eq!(sh(&gathered(&dir)), "", "it was not due yet");
        // What is killed is gone as soon as it comes to a CPU; the sleep itself would take five minutes.
        let lives = || {
            std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
                .is_ok_and(|stat| !stat.contains(") Z "))
        };
        for _ in 0..600 {
            if lives() {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
        assert!(!lives(), "it sleeps on");
    }

    #[test]
    fn what_has_not_settled_is_told_and_nothing_else() {
        let said = |settle: &Settle| {
            let done = Command::new("sh").arg("-c").arg(settled(settle)).output().expect("sh is there");
            assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
            String::from_utf8(done.stdout).expect("text")
        };
        let mut settle = Settle {
            running: Some(100_000),
            load: Some(9999.5),
            temperature: Some(150.0),
            system: false,
            deadline_s: 1,
        };
        assert_eq!(said(&settle), "");
        settle.load = Some(-1.0);
        assert!(said(&settle).starts_with("the load average is "));
    }
}
