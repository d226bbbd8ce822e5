//! One builder directory, used by one process at a time.
//!
//! Layout: `lock`, `source/` (worktree), `build/` (make's output), `unfinished` (a make runs or was killed), `stamp`
//! (what `build/` was made with), `patched.json` (see fixup.rs).

use super::run::{BUILDER, Step, Stop, io_at};
use crate::lab::process::end_marked;
use crate::model::InfraKind;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A builder directory; free for others once dropped.
pub(super) struct Slot {
    root: PathBuf,
    dir: PathBuf,
    lock: File,
}

impl Drop for Slot {
    /// Closing the file would not do: a child of this process between fork and exec still has it, and with it the lock.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

impl Slot {
    /// Takes the first free `root/builder-N`.
    pub(super) fn take(root: &Path) -> io::Result<Self> {
        for n in 0_u32.. {
            let dir = root.join(format!("builder-{n}"));
            fs::create_dir_all(&dir)?;
            let lock = File::options().create(true).truncate(false).write(true).open(dir.join("lock"))?;
            match lock.try_lock() {
                Ok(()) => return Ok(Self { root: root.to_owned(), dir, lock }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        unreachable!("the loop ends with a free number or an error")
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Its number as part of a file name that no other builder uses.
    pub(super) fn name(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn source(&self) -> PathBuf {
        self.dir.join("source")
    }

    pub(super) fn build(&self) -> PathBuf {
        self.dir.join("build")
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Marks that a make runs; durable, since what follows may end in a power cut.
    pub(super) fn begin(&self) -> Step<()> {
        let path = self.file("unfinished");
        File::create(&path).and_then(|mark| mark.sync_all()).map_err(io_at(&path))
    }

    /// Takes the mark back: make has ended by itself and left its directory consistent.
    pub(super) fn end(&self) -> Step<()> {
        let path = self.file("unfinished");
        fs::remove_file(&path).map_err(io_at(&path))
    }

    /// Whether the build directory can be used on: what is in it can be trusted (its make was not killed) and was made with
    /// the same compiler and arguments.
    pub(super) fn goes_on(&self, stamp: &str) -> bool {
        let same = fs::read(self.file("stamp")).is_ok_and(|found| found == stamp.as_bytes());
        same && !self.file("unfinished").exists()
    }

    /// Empties the build directory for what `stamp` says.
    pub(super) async fn start_anew(&self, stamp: &str) -> Step<()> {
        let path = self.file("stamp");
        if self.file("unfinished").exists() {
            // Where the program itself was killed, its make's own makes may still write here. The lock is ours, so
            // whatever bears this builder's mark is of the dead.
            end_marked(&[(BUILDER, self.dir.as_os_str())]).map_err(io_at(&self.dir))?;
        }
        let build = self.build();
        let emptied = tokio::task::spawn_blocking(move || match fs::remove_dir_all(&build) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => fs::create_dir_all(&build),
        });
        emptied
            .await
            .map_err(|error| {
                Stop::infra(InfraKind::Other, format!("cannot empty the build directory: {error}"))
            })?
            .map_err(io_at(&self.build()))?;
        fs::write(&path, stamp).map_err(io_at(&path))?;
        match fs::remove_file(self.file("unfinished")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at(&self.dir)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
