//! A session as one file: `export` packs it, `import` shows it elsewhere, read-only.
//!
//! Owns: what goes into the file (journal, graph of the range, logs, what boots left; no artifacts), and that nothing of
//! another's file gets out of its place or is believed unchecked: every file is named with its length and hash at the
//! front, and the journal is read by the rules for any journal before the session appears. Must not do: run anything.

use super::store::{io, sync_dir, write_synced};
use super::{DriverError, SessionDir, StateRoot, load};
use crate::journal::Lock;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

/// Version of the form.
const FORMAT: u32 = 1;

/// Name of the first entry.
const FRONT: &str = "session.json";

/// Most bytes of the first entry: some hundred thousand files.
const FRONT_BYTES: u64 = 64 << 20;

/// Most bytes of all files together.
const MOST_BYTES: u64 = 8 << 30;

/// What of a session's directory is taken along, files and directories.
const PARTS: [&str; 5] = ["journal.jsonl", "range.json", "logs", "boots", "console.log"];

/// The first entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Front {
    format: u32,
    tool_version: String,
    session: String,
    files: Vec<Entry>,
}

/// A file of the session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: String,
    bytes: u64,
    blake3: String,
}

fn refused(path: &Path, reason: impl Into<String>) -> DriverError {
    DriverError::Bundle { path: path.to_owned(), reason: reason.into() }
}

/// Packs a session into `out`, a gzipped tar archive that appears whole or not at all. Gives the number of files in it.
pub fn export(dir: &SessionDir, out: &Path) -> Result<usize, DriverError> {
    let mut files = BTreeMap::new();
    for part in PARTS {
        collect(&dir.path().join(part), part, &mut files)?;
    }
    let front = Front {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        session: dir.name(),
        files: files.iter().map(|(path, content)| entry(path, content)).collect(),
    };
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".export-").tempfile_in(parent).map_err(io(out))?;
    pack(file.as_file_mut(), &front, &files).map_err(io(out))?;
    file.as_file().sync_all().map_err(io(out))?;
    file.persist(out).map_err(|error| io(out)(error.error))?;
    Ok(files.len())
}

fn entry(path: &str, content: &[u8]) -> Entry {
    let blake3 = blake3::hash(content).to_hex().to_string();
    Entry { path: path.to_owned(), bytes: content.len() as u64, blake3 }
}

/// Reads files below `at`; each once, so that a journal that grows meanwhile is what its hash says.
fn collect(at: &Path, name: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<(), DriverError> {
    let Ok(found) = at.symlink_metadata() else { return Ok(()) };
    if found.is_dir() {
        for inner in fs::read_dir(at).map_err(io(at))? {
            let inner = inner.map_err(io(at))?;
            // A name that is no text is none of this program's.
            if let Some(own) = inner.file_name().to_str() {
                collect(&inner.path(), &format!("{name}/{own}"), files)?;
            }
        }
    } else if found.is_file() {
        let mut content = fs::read(at).map_err(io(at))?;
        if name == "journal.jsonl" {
            // A record that is being written belongs to nobody yet.
            let end = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            content.truncate(end);
        }
        files.insert(name.to_owned(), content);
    }
    Ok(())
}

fn pack(out: &mut File, front: &Front, files: &BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(out, Compression::default()));
    let front = serde_json::to_vec_pretty(front)?;
    let all = std::iter::once((FRONT, &front)).chain(files.iter().map(|(path, c)| (path.as_str(), c)));
    for (path, content) in all {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, format!("{}/{path}", "session"), content.as_slice())?;
    }
    archive.into_inner()?.finish()?.flush()
}

/// Unpacks `file` as a session that can be read and not gone on with, under its own name or `name`. Gives its directory.
pub fn import(root: &StateRoot, file: &Path, name: Option<&str>) -> Result<SessionDir, DriverError> {
    let opened = File::open(file).map_err(io(file))?;
    let mut archive = tar::Archive::new(GzDecoder::new(opened));
    let mut entries = archive.entries().map_err(|e| refused(file, e.to_string()))?;
    let front = front(file, &mut entries)?;
    let session = name.unwrap_or(&front.session);
    if !is_plain(session) {
        return Err(refused(
            file,
            format!("its name {session:?} is no name of a session; give --session NAME"),
        ));
    }
    let dir = root.session(session);
    let exists = || DriverError::Exists { name: session.to_owned(), path: dir.path().to_owned() };
    if dir.path().exists() {
        return Err(exists());
    }
    fs::create_dir_all(root.path()).map_err(io(root.path()))?;
    let making = Lock::wait(root.path())?;
    let half = super::open::half_made(root)?;
    let inside = SessionDir::at(half.path().to_owned());
    unpack(file, &mut entries, &front, inside.path())?;
    write_synced(&inside.imported(), front.tool_version.as_bytes())?;
    // The journal's own rules: sums, order, the hash of the range.
    load(&inside)?;
    if dir.path().exists() {
        return Err(exists());
    }
    fs::rename(half.path(), dir.path()).map_err(io(dir.path()))?;
    let _ = half.keep();
    drop(making);
    sync_dir(root.path())?;
    Ok(dir)
}

/// Whether a name is one path part that cannot lead elsewhere.
pub fn is_plain(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._+-=@".contains(c);
    !name.is_empty() && name.len() <= 100 && !name.starts_with(['.', '-']) && name.chars().all(allowed)
}

fn front<R: Read>(file: &Path, entries: &mut tar::Entries<'_, R>) -> Result<Front, DriverError> {
    let no_session = "it is no session of this program's: `sched-bisect export` makes one";
    let first = entries.next().and_then(Result::ok).ok_or_else(|| refused(file, no_session))?;
    if first.path().ok().as_deref() != Some(&Path::new("session").join(FRONT)) {
        return Err(refused(file, no_session));
    }
    let mut text = Vec::new();
    first.take(FRONT_BYTES).read_to_end(&mut text).map_err(|e| refused(file, e.to_string()))?;
    let version: serde_json::Value =
        serde_json::from_slice(&text).map_err(|e| refused(file, format!("its front is damaged: {e}")))?;
    if version["format"] != FORMAT {
        return Err(refused(
            file,
            format!("it has the form {}, this program reads {FORMAT}", version["format"]),
        ));
    }
    let front: Front =
        serde_json::from_value(version).map_err(|e| refused(file, format!("its front is damaged: {e}")))?;
    let bytes = front.files.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.bytes));
    if bytes > MOST_BYTES {
        return Err(refused(file, format!("it holds {bytes} bytes, more than {MOST_BYTES}")));
    }
    Ok(front)
}

fn unpack<R: Read>(
    file: &Path,
    entries: &mut tar::Entries<'_, R>,
    front: &Front,
    into: &Path,
) -> Result<(), DriverError> {
    let mut wanted: BTreeMap<PathBuf, &Entry> =
        front.files.iter().map(|entry| (Path::new("session").join(&entry.path), entry)).collect();
    for found in entries {
        let found = found.map_err(|e| refused(file, format!("it is damaged: {e}")))?;
        let path = found.path().map_err(|e| refused(file, e.to_string()))?.into_owned();
        let entry = wanted.remove(&path).ok_or_else(|| {
            refused(file, format!("{} is in it and not named at its front", path.display()))
        })?;
        if !found.header().entry_type().is_file() || !stays_inside(&entry.path) {
            return Err(refused(file, format!("{} is no file of a session", path.display())));
        }
        let mut content = Vec::new();
        let limit = entry.bytes.saturating_add(1);
        found
            .take(limit)
            .read_to_end(&mut content)
            .map_err(|e| refused(file, format!("it is damaged: {e}")))?;
        if content.len() as u64 != entry.bytes || blake3::hash(&content).to_hex().as_str() != entry.blake3 {
            return Err(refused(
                file,
                format!("{} is not what its front says (its hash differs)", path.display()),
            ));
        }
        let to = into.join(&entry.path);
        let parent = to.parent().unwrap_or(into);
        fs::create_dir_all(parent).map_err(io(parent))?;
        write_synced(&to, &content)?;
    }
    match wanted.keys().next() {
        Some(missing) => Err(refused(file, format!("{} is missing; copy the file again", missing.display()))),
        None => Ok(()),
    }
}

/// A path of plain parts below one of [`PARTS`].
fn stays_inside(path: &str) -> bool {
    let path = Path::new(path);
    let mut parts = path.components();
    let is_ours = parts.next().is_some_and(|first| PARTS.iter().any(|part| first.as_os_str() == *part));
    is_ours && path.components().all(|part| matches!(part, Component::Normal(_)))
}
