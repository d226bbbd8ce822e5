//! Finished artifacts, by everything that decided them.
//!
//! An entry is a directory with `image`, `config`, `build.log` and `artifact.json`, and for a machine with a disk
//! `System.map` and `modules.tar`. It is put together under another name, synced and renamed, so it is whole or absent; its
//! hashes are checked each time it is used.

use super::run::{Step, io_at};
use super::slot::Slot;
use crate::model::Artifact;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Changes whenever a build of the same key could come out otherwise than before.
const VERSION: &str = "1";

/// Names an entry: 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// The key of these texts; no two groupings of the same texts have the same key.
    pub(super) fn of(parts: &[Vec<&str>]) -> Self {
        let text = serde_json::to_string(&(VERSION, parts)).expect("lists of strings are always JSON");
        Self(blake3::hash(text.as_bytes()).to_hex().to_string())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a build made, still in the builder's directory.
pub(super) struct Product<'a> {
    /// The image.
    pub image: &'a Path,
    /// The resolved configuration.
    pub config: &'a str,
    /// The build's log.
    pub log: &'a Path,
    /// More files, under these names.
    pub more: &'a [(&'static str, PathBuf)],
}

/// `artifact.json`.
#[derive(Serialize, Deserialize)]
struct Record {
    artifact: Artifact,
    /// blake3 of the artifact as JSON, hex.
    sum: String,
}

/// The cache of one repository, as one builder sees it.
pub(super) struct Cache {
    dir: PathBuf,
    scratch: PathBuf,
}

impl Cache {
    pub(super) fn open(root: &Path, slot: &Slot) -> io::Result<Self> {
        let dir = root.join("cache");
        fs::create_dir_all(&dir)?;
        let scratch = dir.join(format!(".{}", slot.name()));
        Ok(Self { dir, scratch })
    }

    /// The entry of this key. Errors say how it is damaged; then it is gone.
    pub(super) fn find(&self, key: &Key) -> Result<Option<Artifact>, String> {
        let dir = self.dir.join(key.as_str());
        if !dir.exists() {
            return Ok(None);
        }
        load(&dir).map(Some).inspect_err(|_| {
            // Where that fails, storing fails too and says so.
            let _ = fs::remove_dir_all(&dir);
        })
    }

    /// Keeps an artifact; fills in its directory and hashes.
    pub(super) fn store(&self, key: &Key, mut artifact: Artifact, product: &Product<'_>) -> Step<Artifact> {
        let dir = self.dir.join(key.as_str());
        let put = || -> io::Result<Artifact> {
            remove(&self.scratch)?;
            fs::create_dir(&self.scratch)?;
            fs::copy(product.image, self.scratch.join("image"))?;
            fs::write(self.scratch.join("config"), product.config)?;
            fs::copy(product.log, self.scratch.join("build.log"))?;
            artifact.image_hash = hash(&self.scratch.join("image"))?;
            artifact.config_hash = blake3::hash(product.config.as_bytes()).to_hex().to_string();
            for (name, from) in product.more {
                let file = self.scratch.join(name);
                fs::copy(from, &file)?;
                artifact.packed.insert((*name).to_owned(), hash(&file)?);
            }
            artifact.dir = dir.to_string_lossy().into_owned();
            let record = Record { sum: sum(&artifact), artifact: artifact.clone() };
            let mut file = File::create(self.scratch.join("artifact.json"))?;
            file.write_all(&serde_json::to_vec_pretty(&record)?)?;
            let names = ["image", "config", "build.log", "artifact.json"].into_iter();
            for name in names.chain(product.more.iter().map(|(name, _)| *name)).chain(["."]) {
                File::open(self.scratch.join(name))?.sync_all()?;
            }
            if let Ok(other) = load(&dir) {
                // Another builder was faster. Its entry may be in use and stays.
                return Ok(Artifact { cached: false, ..other });
            }
            remove(&dir)?;
            fs::rename(&self.scratch, &dir)?;
            File::open(&self.dir)?.sync_all()?;
            Ok(artifact)
        };
        put().map_err(io_at(&self.dir))
    }
}

fn load(dir: &Path) -> Result<Artifact, String> {
    let json = fs::read(dir.join("artifact.json")).map_err(|error| format!("artifact.json: {error}"))?;
    let record: Record = serde_json::from_slice(&json).map_err(|error| format!("artifact.json: {error}"))?;
    let Record { mut artifact, sum: wanted } = record;
    if sum(&artifact) != wanted {
        return Err("artifact.json does not match its own sum".to_owned());
    }
    let fixed = [("image", &artifact.image_hash), ("config", &artifact.config_hash)];
    let more = artifact.packed.iter().map(|(name, hash)| (name.as_str(), hash));
    for (name, wanted) in fixed.into_iter().chain(more) {
        let found = hash(&dir.join(name)).map_err(|error| format!("{name}: {error}"))?;
        if &found != wanted {
            return Err(format!("{name} does not match its hash"));
        }
    }
    // Both depend on when it is asked, not on what was built.
    artifact.dir = dir.to_string_lossy().into_owned();
    artifact.cached = true;
    Ok(artifact)
}

fn sum(artifact: &Artifact) -> String {
    let json = serde_json::to_vec(artifact).expect("an artifact is plain data");
    blake3::hash(&json).to_hex().to_string()
}

fn hash(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
