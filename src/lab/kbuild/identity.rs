//! The GNU build id of a kernel, by which a running kernel proves which one it is.

use super::run::{Step, Stop, io_at};
use crate::model::UntestableKind;
use object::{Object, ReadCache};
use std::fs::File;
use std::path::Path;

/// Reads it from an ELF file, in lower-case hexadecimal digits.
pub(super) fn build_id(vmlinux: &Path) -> Step<String> {
    let file = File::open(vmlinux).map_err(io_at(vmlinux))?;
    let cache = ReadCache::new(file);
    let found = object::File::parse(&cache).and_then(|elf| Ok(elf.build_id()?.map(hex)));
    match found {
        Ok(Some(id)) => Ok(id),
        Ok(None) => Err(unusable("it has no GNU build id, so a boot could not prove which kernel runs")),
        Err(error) => Err(unusable(&error.to_string())),
    }
}

fn unusable(reason: &str) -> Stop {
    Stop::untestable(UntestableKind::Build, format!("vmlinux cannot be used: {reason}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
