//! Scripts on roles: how one reaches another machine, how its end is known there, and how it is ended there.
//!
//! A role is reached by a command that starts a shell on it, script on standard input: `ssh root@ldg sh`, `ip netns exec ldg
//! sh`, `docker exec -i ldg sh`. The far side prints its own exit status, since a lost connection and a dead process look
//! alike from here; and what it starts is marked, since ending the near side ends nothing there.

use super::call::CALL;
use crate::lab::shell::quoted;
use std::fmt::Write as _;

/// Begins the line on standard error by which the far side tells its exit status.
pub(super) const EXIT: &str = "sched-bisect: exit status ";

/// What the far shell is given: `body` as a process of its own, found again by `mark`, with `env`, and its status told.
/// Standard input is the script itself, so that the body gets an empty one.
pub(super) fn far_script(body: &str, mark: &str, env: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, value) in env {
        let _ = writeln!(text, "export {name}={}", quoted(value));
    }
    let _ = writeln!(text, "{CALL}={} sh -c {} </dev/null", quoted(mark), quoted(body));
    let _ = write!(text, "status=$?\nprintf '\\n%s%s\\n' '{EXIT}' $status >&2\nexit $status\n");
    text
}

/// Ends what a call started there, until nothing of it is left.
pub(super) fn end_script(mark: &str) -> String {
    format!(
        r"wanted={}
left() {{
    for process in /proc/[0-9]*; do
        tr '\0' '\n' 2>/dev/null <$process/environ | grep -qxF {CALL}=$wanted && echo ${{process#/proc/}}
    done 2>/dev/null
}}
for try in 1 2 3 4 5 6 7 8 9 10; do
    pids=$(left)
    [ -n {} ] || exit 0
    kill -9 $pids 2>/dev/null
done
exit 1
",
        quoted(mark),
        "\"$pids\""
    )
}

/// The exit status that the far side told, and `stderr` without that line. `None`: it never got to its end.
pub(super) fn told_exit(stderr: &[u8]) -> Option<(i32, Vec<u8>)> {
    let needle = [b"\n".as_slice(), EXIT.as_bytes()].concat();
    let at = stderr.windows(needle.len()).rposition(|window| window == needle)?;
    let rest = String::from_utf8_lossy(&stderr[at + needle.len()..]);
    // ssh may have its own last words behind it.
    let (status, after) = rest.split_once('\n')?;
    let status = status.trim().parse().ok()?;
    Some((status, [&stderr[..at], after.as_bytes()].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Output, Stdio};

    fn sh(script: &str) -> Output {
        let mut shell = Command::new("sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sh is there");
        shell.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("takes it");
        shell.wait_with_output().expect("ends")
    }

    #[test]
    fn the_far_side_has_its_environment_an_empty_input_and_tells_its_status() {
        let body = "cat; printf '%s' \"it's $A\"; echo oops >&2; exit 3";
        let done = sh(&far_script(body, "m1", &[("A".to_owned(), "b 'c' $d".to_owned())]));
        assert_eq!(String::from_utf8_lossy(&done.stdout), "it's b 'c' $d");
        assert_eq!(told_exit(&done.stderr), Some((3, b"oops\n".to_vec())));
        assert_eq!(done.status.code(), Some(3));
    }

    #[test]
    fn one_that_never_got_to_its_end_told_nothing() {
        assert_eq!(told_exit(b"Connection to ldg closed by remote host.\n"), None);
        assert_eq!(told_exit(format!("\n{EXIT}").as_bytes()), None);
        let done = told_exit(format!("a\n\n{EXIT}0\nConnection closed\n").as_bytes());
        assert_eq!(done, Some((0, b"a\nConnection closed\n".to_vec())));
    }

    #[test]
    fn what_a_call_started_is_found_there_and_ended_with_its_children() {
        let mark = format!("test-{}", std::process::id());
        let far = sh(&far_script("setsid sleep 300 >/dev/null 2>&1 & echo $!", &mark, &[]));
        let pid: u32 = String::from_utf8_lossy(&far.stdout).trim().parse().expect("a pid");
        let alive = || {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
        };
        assert!(alive());
        assert!(sh(&end_script(&mark)).status.success());
        assert!(!alive());
    }
}
