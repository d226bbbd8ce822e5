//! A journal in memory: for simulated sessions, which nobody resumes.

use super::{JournalError, Storage};
use std::path::Path;

/// Bytes that are on no disk.
#[derive(Debug, Default)]
pub struct MemoryStorage(Vec<u8>);

impl Storage for MemoryStorage {
    fn path(&self) -> &Path {
        Path::new("(memory)")
    }

    fn len(&self) -> Result<u64, JournalError> {
        Ok(self.0.len() as u64)
    }

    fn read(&mut self) -> Result<Vec<u8>, JournalError> {
        Ok(self.0.clone())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        Ok(())
    }

    fn cut_to(&mut self, length: u64) -> Result<(), JournalError> {
        self.0.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }
}
