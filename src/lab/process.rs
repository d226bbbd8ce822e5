//! Child processes that never outlive what started them.
//!
//! Every child of the program is started here: in a process group of its own, marked in its environment with the
//! session that owns it, and told by the kernel to die when the program does. Three nets, since each has a hole: the
//! group is killed when the guard is dropped; the death signal reaches the direct child when the program is killed
//! -9; the mark lets `resume` find and end every grandchild that is left ([`end_leftovers`]).

use rustix::process::{
    Pid, Signal, kill_process, kill_process_group, set_parent_process_death_signal, test_kill_process_group,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};

/// Environment variable that marks the children of a session; its value is the session directory.
pub const OWNER: &str = "SB_SESSION_DIR";

/// Between SIGTERM and SIGKILL when a deadline passes.
const GRACE: Duration = Duration::from_secs(2);

/// How often it is looked, a millisecond apart, whether killed processes are gone: they take a moment, and one may
/// fork while the list is read; but one that hangs in the kernel must not hang us.
const PASSES: u32 = 500;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this exit status (0 to 255).
    Exit(i32),
    /// By a signal.
    Signal(i32),
    /// By us: its deadline passed. Nothing of its group is left.
    Deadline,
}

/// A child with its whole process group. Dropping it kills the group.
#[derive(Debug)]
pub struct Group {
    child: Child,
    pid: Option<Pid>,
}

impl Group {
    /// Starts `command` in a group of its own, owned by the session at `owner`. Errors are the operating system's.
    pub fn spawn(command: &mut Command, owner: &Path) -> io::Result<Self> {
        command.env(OWNER, owner).process_group(0).kill_on_drop(true);
        #[expect(
            unsafe_code,
            reason = "the only way to set the death signal between fork and exec; the call is async-signal-safe"
        )]
        // SAFETY: runs one system call that neither allocates nor locks.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let child = command.spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { child, pid })
    }

    /// The child, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the child, at most `deadline`; then ends the whole group (SIGTERM, then SIGKILL).
    pub async fn wait(&mut self, deadline: Duration) -> io::Result<Ended> {
        if let Ok(status) = tokio::time::timeout(deadline, self.child.wait()).await {
            let ended = ended(status?);
            self.end().await;
            return Ok(ended);
        }
        self.signal(Signal::TERM);
        // The status no longer matters: the deadline decides.
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
        self.kill();
        let _ = self.child.wait().await;
        self.end().await;
        Ok(Ended::Deadline)
    }

    /// Kills what is left of the group and waits until it is gone: a killed process takes a moment, and the next step
    /// must not be disturbed by it.
    async fn end(&self) {
        self.kill();
        let Some(pid) = self.pid else { return };
        for _ in 0..PASSES {
            if test_kill_process_group(pid).is_err() || !group_lives(pid) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Kills what is left of the group.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            // Fails only when the group is gone, which is what is wanted.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn ended(status: ExitStatus) -> Ended {
    match status.code() {
        Some(code) => Ended::Exit(code),
        None => Ended::Signal(status.signal().unwrap_or(0)),
    }
}

/// Runs `command` to its end with standard output in the file `out` and standard error in the file `err` (the same
/// path is allowed). Standard input is empty.
pub async fn run_to_files(
    command: &mut Command,
    owner: &Path,
    deadline: Duration,
    out: &Path,
    err: &Path,
) -> io::Result<Ended> {
    let stdout = File::create(out)?;
    let stderr = if out == err { stdout.try_clone()? } else { File::create(err)? };
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    Group::spawn(command, owner)?.wait(deadline).await
}

/// Kills every process that an earlier, killed run of the program left behind for the session at `owner`; gives
/// their pids. Call it only while holding the session's lock.
pub fn end_leftovers(owner: &Path) -> io::Result<Vec<i32>> {
    end_marked(&[(OWNER, owner.as_os_str())])
}

/// Kills every process, except this one, whose environment holds all of `marks` (name and value), and waits until
/// they are gone; gives their pids.
pub fn end_marked(marks: &[(&str, &OsStr)]) -> io::Result<Vec<i32>> {
    let mark = |name: &str, value: &OsStr| [name.as_bytes(), b"=", value.as_encoded_bytes()].concat();
    let wanted: Vec<Vec<u8>> = marks.iter().map(|(name, value)| mark(name, value)).collect();
    let mut ended = Vec::new();
    for _ in 0..PASSES {
        let mut settled = true;
        for pid in pids()? {
            match belongs(pid, &wanted) {
                Some(false) => continue,
                Some(true) => {
                    if let Some(process) = Pid::from_raw(pid) {
                        let _ = kill_process(process, Signal::KILL);
                    }
                    if !ended.contains(&pid) {
                        ended.push(pid);
                    }
                }
                None => {}
            }
            settled = false;
        }
        if settled {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(ended)
}

/// All processes but this one.
fn pids() -> io::Result<Vec<i32>> {
    let own = std::process::id().cast_signed();
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        pids.extend(pid.filter(|&pid| pid != own));
    }
    Ok(pids)
}

/// Whether the environment of a process holds all of `wanted`; `None` when that cannot be seen at this moment: one
/// that is just replaced by `exec` or just dying shows no environment.
fn belongs(pid: i32, wanted: &[Vec<u8>]) -> Option<bool> {
    /// Flag of a kernel thread.
    const PF_KTHREAD: u64 = 0x0020_0000;
    let proc = PathBuf::from(format!("/proc/{pid}"));
    // Gone meanwhile, or another user's: not ours to end.
    let Ok(environment) = std::fs::read(proc.join("environ")) else { return Some(false) };
    if !environment.is_empty() {
        let has = |mark: &Vec<u8>| environment.split(|&b| b == 0).any(|entry| entry == mark);
        return Some(wanted.iter().all(has));
    }
    // A live process that was started without any environment still shows its arguments.
    if std::fs::read(proc.join("cmdline")).is_ok_and(|arguments| !arguments.is_empty()) {
        return Some(false);
    }
    match stat(pid) {
        Some(stat) if stat.flags & PF_KTHREAD == 0 => None,
        Some(_) | None => Some(false),
    }
}

/// Whether a process of this group is there that is not dead.
fn group_lives(group: Pid) -> bool {
    let group = group.as_raw_nonzero().get();
    pids().is_ok_and(|pids| pids.into_iter().filter_map(stat).any(|stat| stat.group == group))
}

/// What /proc/PID/stat says.
struct Stat {
    group: i32,
    flags: u64,
}

/// What is known of a process; `None` when it is gone, or dead and only not yet waited for.
fn stat(pid: i32) -> Option<Stat> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name before it may hold anything.
    let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
    let [state, _parent, group, _session, _terminal, _foreground, flags, ..] = fields[..] else {
        return None;
    };
    let dead = matches!(state, "Z" | "X");
    if dead { None } else { Some(Stat { group: group.parse().ok()?, flags: flags.parse().ok()? }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        command
    }

    #[tokio::test]
    async fn a_command_past_its_deadline_is_ended_with_its_children() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let out = dir.path().join("out");
        let mut command = sh("trap '' TERM; sleep 300 & echo $!; wait");
        let ended = run_to_files(&mut command, dir.path(), Duration::from_millis(300), &out, &out).await;
        assert_eq!(ended.expect("runs"), Ended::Deadline);
        let child: i32 = std::fs::read_to_string(&out).expect("output").trim().parse().expect("a pid");
        assert!(!is_alive(child), "the grandchild {child} lives");
    }

    #[tokio::test]
    async fn leftovers_of_a_session_are_found_by_their_mark_and_ended() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut child = sh("exec setsid sleep 300").env(OWNER, dir.path()).spawn().expect("spawns");
        let mut ended = Vec::new();
        for _ in 0..200 {
            ended = end_leftovers(dir.path()).expect("/proc is readable");
            if !ended.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(ended, vec![child.id().expect("has a pid").cast_signed()]);
        assert_eq!(child.wait().await.expect("waits").signal(), Some(9));
    }

    fn is_alive(pid: i32) -> bool {
        stat(pid).is_some()
    }
}
