//! Where a journal is kept.

use super::JournalError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What a journal needs of its medium. Implemented over a file; tests implement it to fail on purpose.
pub trait Storage {
    /// For messages.
    fn path(&self) -> &Path;
    /// Length in bytes.
    fn len(&self) -> Result<u64, JournalError>;
    /// Whether nothing is in it.
    fn is_empty(&self) -> Result<bool, JournalError> {
        Ok(self.len()? == 0)
    }
    /// Everything in it.
    fn read(&mut self) -> Result<Vec<u8>, JournalError>;
    /// Writes at the end.
    fn append(&mut self, bytes: &[u8]) -> Result<(), JournalError>;
    /// Returns once all that was appended is on the disk.
    fn sync(&mut self) -> Result<(), JournalError>;
    /// Shortens it to `length`; what is cut off is kept beside it. Synced.
    fn cut_to(&mut self, length: u64) -> Result<(), JournalError>;
}

/// A journal in a file.
#[derive(Debug)]
pub struct FileStorage {
    path: PathBuf,
    file: File,
}

impl FileStorage {
    /// Makes a new file; its directory entry is synced as well.
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        let file =
            OpenOptions::new().read(true).append(true).create_new(true).open(path).map_err(io(path))?;
        let storage = Self { path: path.to_owned(), file };
        storage.sync_directory()?;
        Ok(storage)
    }

    /// Opens an existing file for reading and appending.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(io(path))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Opens an existing file for reading only; appending to it fails.
    pub fn read_only(path: &Path) -> Result<Self, JournalError> {
        let file = File::open(path).map_err(io(path))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Keeps what is cut off at `length`, beside what was cut off there before.
    fn keep_aside(&self, length: u64, torn: &[u8]) -> Result<(), JournalError> {
        let path = |copy: u32| match copy {
            1 => self.path.with_extension(format!("torn-at-{length}")),
            n => self.path.with_extension(format!("torn-at-{length}.{n}")),
        };
        let mut copy = 1;
        let mut file = loop {
            match OpenOptions::new().write(true).create_new(true).open(path(copy)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => copy += 1,
                opened => break opened.map_err(io(&path(copy)))?,
            }
        };
        file.write_all(torn).and_then(|()| file.sync_all()).map_err(io(&path(copy)))
    }

    fn sync_directory(&self) -> Result<(), JournalError> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        File::open(directory).and_then(|d| d.sync_all()).map_err(io(directory))
    }
}

impl Storage for FileStorage {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64, JournalError> {
        Ok(self.file.metadata().map_err(io(&self.path))?.len())
    }

    fn read(&mut self) -> Result<Vec<u8>, JournalError> {
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.read_to_end(&mut bytes))
            .map_err(io(&self.path))?;
        Ok(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        self.file.write_all(bytes).map_err(io(&self.path))
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(io(&self.path))
    }

    fn cut_to(&mut self, length: u64) -> Result<(), JournalError> {
        let bytes = self.read()?;
        let keep = usize::try_from(length).unwrap_or(bytes.len()).min(bytes.len());
        self.keep_aside(length, &bytes[keep..])?;
        self.file.set_len(length).and_then(|()| self.file.sync_all()).map_err(io(&self.path))?;
        self.sync_directory()
    }
}

/// The right to write a session; held by one process, freed by the operating system when it ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    /// Closing the file would not do: a child of this process between fork and exec still has it, and with it the lock.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Takes the lock of a session directory. Errors at once when another process holds it.
    pub fn take(session: &Path) -> Result<Self, JournalError> {
        let (path, file) = Self::open(session)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(JournalError::Locked { path: session.to_owned() }),
            Err(TryLockError::Error(source)) => Err(JournalError::Io { path, source }),
        }
    }

    /// Takes the lock of a directory, waiting for whoever holds it. For what takes a moment only.
    pub fn wait(directory: &Path) -> Result<Self, JournalError> {
        let (path, file) = Self::open(directory)?;
        file.lock().map_err(io(&path))?;
        Ok(Self { file })
    }

    fn open(directory: &Path) -> Result<(PathBuf, File), JournalError> {
        let path = directory.join("lock");
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(io(&path))?;
        Ok((path, file))
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| JournalError::Io { path, source }
}
