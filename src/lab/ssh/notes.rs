//! What is known of a machine from one use of it to the next, as a file on this side.
//!
//! Nothing in it is evidence: losing it costs a restart of the machine into its own kernel, and a rehearsal.

use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often it is tried to be the only one.
const TRIES: u32 = 25;

/// The kernel that the machine has by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rescue {
    /// Its release.
    pub release: String,
    /// Its command line, as it runs.
    pub cmdline: String,
}

/// A kernel that was asked for and not seen yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trying {
    /// The session that wants it.
    pub session: String,
    /// Its release.
    pub release: String,
    /// The word by which its boot is known.
    pub token: String,
    /// The boot id before it.
    pub before: String,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// The machine's own kernel.
    pub rescue: Option<Rescue>,
    /// Name of the loader for which it was seen that a kernel is booted once and the machine then comes back to its own by
    /// itself; empty: for none.
    pub rehearsed: String,
    /// Whether kexec did nothing there.
    pub no_kexec: bool,
    /// What is being booted.
    pub trying: Option<Trying>,
}

/// The file.
#[derive(Debug)]
pub struct Notes {
    path: PathBuf,
    /// Held while the machine is used: two programs would restart it under each other.
    _lock: File,
    /// Its content.
    pub known: Known,
}

impl Notes {
    /// Opens it; one that is not there, or is damaged, knows nothing. Errors: the operating system's, or that somebody else
    /// uses the machine.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let lock = File::create(path.with_extension("lock"))?;
        take(&lock)?;
        let known = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Ok(Self { path, _lock: lock, known: known.unwrap_or_default() })
    }

    /// Changes it, on disk first; whole or not at all.
    pub fn change(&mut self, change: impl FnOnce(&mut Known)) -> io::Result<()> {
        let mut known = self.known.clone();
        change(&mut known);
        if known == self.known {
            return Ok(());
        }
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        serde_json::to_writer_pretty(&mut file, &known)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        self.known = known;
        Ok(())
    }
}

/// Tries for a moment: a process that is just being started holds what its parent has open until it has become its own.
fn take(lock: &File) -> io::Result<()> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if tries == 0 => {
                return Err(io::Error::other(
                    "another session uses the machine at this moment; wait for its end",
                ));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_known_again_and_a_damaged_file_knows_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("machines/sut.json");
        let open = || Notes::open(path.clone());
        let mut notes = open().expect("opens");
        notes.change(|known| known.rehearsed = "grub".to_owned()).expect("writes");
        let second = open().expect_err("is in use");
        assert!(second.to_string().contains("another session"), "{second}");
        drop(notes);
        assert_eq!(open().expect("opens").known.rehearsed, "grub");
        std::fs::write(&path, b"{\"rehearsed\": ").expect("writes");
        assert_eq!(open().expect("opens").known, Known::default());
    }
}
