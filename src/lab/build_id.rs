//! The GNU build id of a running kernel.

use object::Endianness;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::NoteIterator;
use std::fmt::Write as _;

/// The GNU build id among ELF notes, as /sys/kernel/notes holds them; lower-case hex.
pub(in crate::lab) fn build_id(notes: &[u8]) -> Option<String> {
    let mut iterator = NoteIterator::<FileHeader64<Endianness>>::new(Endianness::default(), 4, notes).ok()?;
    while let Ok(Some(note)) = iterator.next() {
        if note.name() == ELF_NOTE_GNU && note.n_type(Endianness::default()) == NT_GNU_BUILD_ID {
            return Some(note.desc().iter().fold(String::new(), |mut hex, byte| {
                write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
                hex
            }));
        }
    }
    None
}
