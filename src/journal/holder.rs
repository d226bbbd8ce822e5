//! Who works on a session, seen without touching its lock: taking it for a moment, to see whether it is free, would refuse
//! a `resume` that comes just then.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Who holds a session's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// This process.
    Process(u32),
    /// No process of this host.
    Nobody,
    /// /proc does not tell.
    Unknown,
}

impl Holder {
    /// Of the session in a directory.
    pub fn of(session: &Path) -> Self {
        let path = session.join("lock");
        let (Ok(file), Ok(locks)) = (path.metadata(), std::fs::read_to_string("/proc/locks")) else {
            return Self::Unknown;
        };
        let mut holders = locks.lines().filter_map(|line| held(line, file.ino()));
        holders.find(|pid| has_open(*pid, &path)).map_or(Self::Nobody, Self::Process)
    }
}

/// The process of a line "1: FLOCK ADVISORY WRITE 4711 fd:01:1234 0 EOF", if it holds the file of this number. Who waits
/// has "->" before the kind. A file's device is left to [`has_open`]: some file systems show two.
fn held(line: &str, inode: u64) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK" | "POSIX" | "OFDLCK", _, "WRITE", pid, file, ..] = fields[..] else { return None };
    let same = file.rsplit(':').next()?.parse() == Ok(inode);
    same.then(|| pid.parse().ok()).flatten()
}

/// Whether a process has a file open; taken for true where another user's cannot be looked into.
fn has_open(pid: u32, path: &Path) -> bool {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
    let Ok(wanted) = path.metadata() else { return false };
    let is_it = |file: std::fs::Metadata| (file.dev(), file.ino()) == (wanted.dev(), wanted.ino());
    files.flatten().any(|entry| entry.path().metadata().is_ok_and(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Lock;

    #[test]
    fn the_holder_of_a_lock_is_named_and_nobody_once_it_is_free() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(Holder::of(dir.path()), Holder::Unknown, "there is no lock yet");
        let lock = Lock::take(dir.path()).expect("free");
        assert_eq!(Holder::of(dir.path()), Holder::Process(std::process::id()));
        drop(lock);
        assert_eq!(Holder::of(dir.path()), Holder::Nobody);
        drop(Lock::take(dir.path()).expect("looking at it does not take it"));
    }

    #[test]
    fn a_line_of_proc_locks_is_read_and_who_waits_is_no_holder() {
        assert_eq!(held("1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF", 1234), Some(4711));
        assert_eq!(held("1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF", 123), None);
        assert_eq!(held("1: -> FLOCK  ADVISORY  WRITE 4712 fd:01:1234 0 EOF", 1234), None);
        assert_eq!(held("2: POSIX  ADVISORY  READ 12 00:2e:1234 0 EOF", 1234), None);
    }
}
