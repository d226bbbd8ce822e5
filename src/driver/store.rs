//! Where sessions lie on disk.
//!
//! `<root>/<session>/` holds `journal.jsonl` (the truth), `range.json` (the graph, named by its hash in the plan), `lock`,
//! `trace.log`, `logs/`, `boots/`, `artifacts/`, `source/` and `build/`. The root is `sched-bisect/` in the git common
//! directory, or what `--state-dir` names.

use super::DriverError;
use crate::model::{BootNo, CommitId, StepId};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The directory of all sessions of a repository.
#[derive(Debug, Clone)]
pub struct StateRoot(PathBuf);

/// The directory of one session.
#[derive(Debug, Clone)]
pub struct SessionDir(PathBuf);

impl StateRoot {
    /// `state_dir` if given, else `sched-bisect/` in the git common directory. Not made yet.
    pub fn of(common_dir: &Path, state_dir: Option<&Path>) -> Self {
        Self(state_dir.map_or_else(|| common_dir.join("sched-bisect"), Path::to_path_buf))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A session's directory, there or not.
    pub fn session(&self, name: &str) -> SessionDir {
        SessionDir(self.0.join(name))
    }

    /// Sessions with a journal, the one written last first.
    pub fn sessions(&self) -> Result<Vec<SessionDir>, DriverError> {
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(DriverError::Io { path: self.0.clone(), source }),
        };
        let mut found = Vec::new();
        for entry in entries {
            let dir = SessionDir(entry.map_err(io(&self.0))?.path());
            if let Ok(written) = dir.journal().metadata().and_then(|m| m.modified())
                && !dir.name().starts_with('.')
            {
                found.push((written, dir));
            }
        }
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.0.cmp(&b.1.0)));
        Ok(found.into_iter().map(|(_, dir)| dir).collect())
    }
}

impl SessionDir {
    /// A session at a path.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The session's name.
    pub fn name(&self) -> String {
        self.0.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.0.join("journal.jsonl")
    }

    /// The graph of the range.
    pub fn range(&self) -> PathBuf {
        self.0.join("range.json")
    }

    /// There where the session came as a file from elsewhere: it is read, and not gone on with.
    pub fn imported(&self) -> PathBuf {
        self.0.join("imported")
    }

    /// The program's own trace.
    pub fn trace(&self) -> PathBuf {
        self.0.join("trace.log")
    }

    /// Log file of a step.
    pub fn log(&self, step: StepId, what: &str, commit: &CommitId) -> PathBuf {
        self.0.join("logs").join(format!("{:05}-{what}-{}.log", step.0, commit.short()))
    }

    /// Directory of a boot (SB_BOOT_DIR).
    pub fn boot_dir(&self, boot: BootNo) -> PathBuf {
        self.0.join("boots").join(format!("{:04}", boot.0))
    }

    /// Makes it, empty.
    pub fn make_boot_dir(&self, boot: BootNo) -> Result<PathBuf, DriverError> {
        let dir = self.boot_dir(boot);
        std::fs::create_dir_all(&dir).map_err(io(&dir))?;
        Ok(dir)
    }

    /// Makes the directory with its parts.
    pub(super) fn make(&self) -> Result<(), DriverError> {
        for part in ["logs", "boots", "artifacts"] {
            let dir = self.0.join(part);
            std::fs::create_dir_all(&dir).map_err(io(&dir))?;
        }
        Ok(())
    }
}

/// Writes a file and syncs it.
pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), DriverError> {
    File::create(path).and_then(|mut f| f.write_all(bytes).and_then(|()| f.sync_all())).map_err(io(path))
}

/// Syncs the entries of a directory.
pub(super) fn sync_dir(path: &Path) -> Result<(), DriverError> {
    File::open(path).and_then(|d| d.sync_all()).map_err(io(path))
}

pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> DriverError {
    let path = path.to_owned();
    move |source| DriverError::Io { path, source }
}
