//! Whether a kernel fits. Pure.

use super::call::{Call, Facts};
use super::error::Error;
use std::collections::BTreeMap;
use std::fmt;

const MIB: u64 = 1024 * 1024;

/// Stays free on each file system: packages update themselves, logs grow, an estimate is one.
pub const MARGIN: u64 = 32 * MIB;

/// Taken for an initramfs where the machine has none to compare with; larger than Debian's with all modules.
const UNKNOWN_INITRAMFS: u64 = 96 * MIB;

/// Bytes that an installation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    pub image: u64,
    /// Configuration and System.map.
    pub files: u64,
    /// The archive.
    pub modules: u64,
    pub initramfs: bool,
    pub margin: u64,
}

/// A file system, and what an installation would add to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Short {
    /// Where it is mounted.
    pub mount: String,
    /// Bytes needed, with the margin.
    pub needed: u64,
    /// Bytes free.
    pub free: u64,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(MIB);
        write!(f, "{} needs {} MiB, {} MiB free", self.mount, mib(self.needed), self.free / MIB)
    }
}

/// The file systems on which `need` does not fit, by what sut/room.sh told.
pub(super) fn shorts(call: &Call<'_>, host: &str, told: &Facts, need: &Need) -> Result<Vec<Short>, Error> {
    let number = |key: &str| told.number(key).ok_or_else(|| call.lacks(host, key));
    let initramfs = match (need.initramfs, number("initramfs")?) {
        (false, _) => 0,
        (true, 0) => UNKNOWN_INITRAMFS,
        (true, largest) => largest,
    };
    // tar pads to 512 bytes, file systems to 4096 and more: some thousand small files.
    let unpacked = need.modules + need.modules / 10;
    let wanted = [
        ("boot", need.image + initramfs, "boot_there"),
        ("files", need.files, ""),
        ("modules", unpacked, "modules_there"),
        ("state", need.image + need.files + need.modules, "state_there"),
    ];
    let mut mounts: BTreeMap<String, Short> = BTreeMap::new();
    for (place, bytes, there) in wanted {
        let key = format!("{place}_mount");
        let mount = told.one(&key).ok_or_else(|| call.lacks(host, &key))?.to_owned();
        let free = number(&format!("{place}_free"))?;
        let there = if there.is_empty() { 0 } else { number(there)? };
        let short = mounts.entry(mount.clone()).or_insert(Short { mount, needed: need.margin, free });
        short.needed += bytes.saturating_sub(there);
    }
    Ok(mounts.into_values().filter(|short| short.needed > short.free).collect())
}
