//! The append-only log of a session: the only truth.
//!
//! Owns: the record format, its version and checksums, torn-tail recovery, the lock, and the [`Storage`] trait that
//! tests fail on purpose. Must not do: interpret events. A record is one JSON line `{v, seq, at, event, sum}`; `sum`
//! is over the previous record's sum and this record's fields, so that a record cannot be changed, dropped or moved
//! unnoticed. Only the last record may be broken, as a crash during its append leaves it: it is cut off, kept beside the
//! journal, and the cut is recorded. Anything else is refused with its byte offset, and nothing is changed. Tested in tests/it/journal.rs.

mod file;
mod holder;
mod memory;
mod record;

pub use file::{FileStorage, Lock, Storage};
pub use holder::Holder;
pub use memory::MemoryStorage;
pub use record::{FORMAT_VERSION, Record};

use crate::session::Event;
use std::path::PathBuf;
use thiserror::Error;

/// Why a journal cannot be read or written.
#[derive(Debug, Error)]
pub enum JournalError {
    /// A record other than the last is broken.
    #[error(
        "read the journal {path}: the record at byte {offset} is damaged ({reason}); the journal is kept as it is. Restore it from a copy, or start a new session"
    )]
    Damaged {
        /// Journal.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// Not even record 0 is whole.
    #[error(
        "read the journal {path}: it holds no whole record ({bytes} bytes); nothing was changed. Restore it from a copy, or start a new session"
    )]
    Empty {
        /// Journal.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// Written by a newer program.
    #[error(
        "read the journal {path}: the record at byte {offset} has format version {found}, this program knows version {FORMAT_VERSION}; use the version of sched-bisect that wrote it"
    )]
    Version {
        /// Journal.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// Version found.
        found: u64,
    },
    /// Another process writes it.
    #[error("lock the session {path}: another sched-bisect works on it; wait for it or end it")]
    Locked {
        /// Session directory.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("write or read {path}: {source}{}", next_step(source))]
    Io {
        /// File.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What to do where the operating system refuses for a reason that a user can mend.
pub fn next_step(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    let kind = error.kind();
    if [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&kind) {
        "; make room there, then `sched-bisect resume` goes on: nothing that was measured is lost"
    } else if [ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied, ErrorKind::NotFound]
        .contains(&kind)
    {
        "; sessions need a directory that can be written: see to it, or give another by --state-dir"
    } else {
        ""
    }
}

/// The writer of a session's journal.
#[derive(Debug)]
pub struct Journal<S> {
    storage: S,
    next_seq: u64,
    last_sum: String,
    broken: bool,
}

/// A journal read to its end.
#[derive(Debug)]
pub struct Loaded<S> {
    /// Ready to append.
    pub journal: Journal<S>,
    /// All whole records.
    pub records: Vec<Record>,
    /// Bytes of a torn last record that were cut off; 0 = none.
    pub cut: u64,
}

impl<S: Storage> Journal<S> {
    /// A new, empty journal. Errors if there is something in it.
    pub fn create(storage: S) -> Result<Self, JournalError> {
        let bytes = storage.len()?;
        if bytes > 0 {
            return Err(JournalError::Damaged {
                path: storage.path().to_owned(),
                offset: 0,
                reason: format!("{bytes} bytes stand where a new journal should begin"),
            });
        }
        Ok(Self { storage, next_seq: 0, last_sum: String::new(), broken: false })
    }

    /// Reads all records and cuts a torn last one off. Call it with the session's lock held.
    pub fn open(mut storage: S) -> Result<Loaded<S>, JournalError> {
        let bytes = storage.read()?;
        let (records, whole) = record::read_all(storage.path(), &bytes)?;
        let Some(last) = records.last() else {
            return Err(JournalError::Empty { path: storage.path().to_owned(), bytes: bytes.len() as u64 });
        };
        let cut = bytes.len() as u64 - whole;
        if cut > 0 {
            storage.cut_to(whole)?;
        }
        let journal = Self { next_seq: last.seq + 1, last_sum: last.sum.clone(), storage, broken: false };
        Ok(Loaded { journal, records, cut })
    }

    /// Appends one event and syncs it to the disk. After an error the journal takes no more: what is on the disk is
    /// not known, and only reading it again tells.
    pub fn append(&mut self, at_ms: i64, event: &Event) -> Result<Record, JournalError> {
        if self.broken {
            return Err(JournalError::Io {
                path: self.storage.path().to_owned(),
                source: std::io::Error::other(
                    "an earlier write failed; resume the session to read it afresh",
                ),
            });
        }
        let record = Record::new(self.next_seq, at_ms, event.clone(), &self.last_sum);
        let written = self.storage.append(record.line().as_bytes()).and_then(|()| self.storage.sync());
        if let Err(error) = written {
            self.broken = true;
            return Err(error);
        }
        self.next_seq += 1;
        self.last_sum.clone_from(&record.sum);
        Ok(record)
    }
}

/// Reads the records of a journal without the lock and without mending anything: for `status`, `report` and `log` of
/// a session that may be running. A torn tail is left out.
pub fn peek(storage: &mut impl Storage) -> Result<Vec<Record>, JournalError> {
    let bytes = storage.read()?;
    let (records, _) = record::read_all(storage.path(), &bytes)?;
    if records.is_empty() {
        return Err(JournalError::Empty { path: storage.path().to_owned(), bytes: bytes.len() as u64 });
    }
    Ok(records)
}
