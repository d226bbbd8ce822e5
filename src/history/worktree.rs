//! A private linked worktree.
//!
//! Owns: one directory and its entry below `worktrees/` of the repository. Must not do: touch any other entry (so no
//! `git worktree prune` or `repair`, which go over all of them). Invariant: after [`Worktree::checkout`] the directory
//! holds exactly the commit, whatever state an earlier, killed process left it in; unchanged files keep their times,
//! so that a build there stays incremental. One process at a time uses a worktree; the caller holds the lock.
//! Tested in tests/it/history.rs.

use super::{Error, git};
use crate::model::CommitId;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What of the files that git does not track is removed at a checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clean {
    /// Nothing.
    Nothing,
    /// All but those that `.gitignore` names (products of a build stay).
    Untracked,
    /// Everything.
    All,
}

/// A worktree of ours; made at the first checkout.
#[derive(Debug, Clone)]
pub struct Worktree {
    common_dir: PathBuf,
    path: PathBuf,
    marks: Vec<(OsString, OsString)>,
}

impl Worktree {
    /// The worktree at `path` of the repository with this common directory. `marks` are put into the environment of
    /// every git started here, so that leftovers can be told. Makes the parent of `path`, nothing else yet.
    pub fn open(common_dir: &Path, path: &Path, marks: Vec<(OsString, OsString)>) -> Result<Self, Error> {
        let refuse = |reason: &str| Error::Worktree { path: path.to_owned(), reason: reason.to_owned() };
        let parent = path.parent().ok_or_else(|| refuse("it is the root directory"))?;
        let name = path.file_name().ok_or_else(|| refuse("it has no last part"))?;
        let failed = |error| Error::io(path, error);
        fs::create_dir_all(parent).map_err(failed)?;
        // git stores real paths; ours must compare equal to them.
        let path = parent.canonicalize().map_err(failed)?.join(name);
        let common_dir = common_dir.canonicalize().map_err(failed)?;
        Ok(Self { common_dir, path, marks })
    }

    /// Where it is: absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts exactly `commit` there, overwriting every change. Makes or mends the worktree first if need be. Dropping
    /// the future leaves a state from which the next call recovers.
    pub async fn checkout(&self, commit: &CommitId, clean: Clean) -> Result<(), Error> {
        if !self.mend()? {
            self.add(commit).await?;
        }
        self.switch(commit).await?;
        match clean {
            Clean::Nothing => Ok(()),
            Clean::Untracked => self.git(&["clean", "-ffdq"]).await,
            Clean::All => self.git(&["clean", "-ffdxq"]).await,
        }
    }

    /// Takes it away, with its entry in the repository.
    pub async fn remove(self) -> Result<(), Error> {
        if let Some(entry) = self.entry()? {
            self.delete(&entry)?;
        }
        let path = self.path.clone();
        self.delete(&path)
    }

    async fn git(&self, args: &[&str]) -> Result<(), Error> {
        git::run(&self.path, args, &self.marks).await
    }

    async fn switch(&self, commit: &CommitId) -> Result<(), Error> {
        let args = ["checkout", "--quiet", "--force", "--detach", commit.as_str(), "--"];
        match self.git(&args).await {
            Err(Error::Command { reason, .. }) if reason.contains("index file") => {
                // A torn index (power loss). Without one git writes every file anew.
                if let Some(entry) = self.entry()? {
                    self.delete(&entry.join("index"))?;
                }
                self.git(&args).await
            }
            result => result,
        }
    }

    async fn add(&self, commit: &CommitId) -> Result<(), Error> {
        let path = self.path.to_str().ok_or_else(|| Error::Worktree {
            path: self.path.clone(),
            reason: "its path is not UTF-8".to_owned(),
        })?;
        let args =
            ["worktree", "add", "--quiet", "--force", "--detach", "--no-checkout", path, commit.as_str()];
        git::run(&self.common_dir, &args, &self.marks).await
    }

    /// Brings the worktree into a state from which a checkout succeeds; `false`: there is nothing, it must be added.
    fn mend(&self) -> Result<bool, Error> {
        match self.entry()? {
            Some(entry) if is_sound(&entry) => {
                self.write_link(&entry)?;
                // Only a git that was killed leaves these; nobody else works here.
                for lock in ["index.lock", "HEAD.lock"] {
                    self.delete(&entry.join(lock))?;
                }
                Ok(true)
            }
            Some(entry) => {
                self.clear_path(true)?;
                self.delete(&entry)?;
                Ok(false)
            }
            None => {
                self.clear_path(false)?;
                Ok(false)
            }
        }
    }

    /// The `.git` file, written again if something damaged it; the directory too.
    fn write_link(&self, entry: &Path) -> Result<(), Error> {
        let link = self.path.join(".git");
        let wanted = [b"gitdir: ", entry.as_os_str().as_encoded_bytes(), b"\n"].concat();
        if fs::read(&link).is_ok_and(|found| found == wanted) {
            return Ok(());
        }
        self.io(fs::create_dir_all(&self.path))?;
        self.delete(&link)?;
        self.io(fs::write(&link, wanted))
    }

    /// Removes what stands at our path, if it is ours to remove.
    fn clear_path(&self, registered: bool) -> Result<(), Error> {
        let names: Vec<OsString> = match fs::read_dir(&self.path) {
            Ok(entries) => self.io(entries.map(|e| e.map(|e| e.file_name())).collect())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return self.io(Err(error)),
        };
        let only_link = names.iter().all(|name| name == ".git");
        if registered || only_link || self.linked_entry().is_some() {
            return self.delete(&self.path);
        }
        Err(Error::Worktree {
            path: self.path.clone(),
            reason: "files are there that do not belong to a worktree of this repository; move them away"
                .to_owned(),
        })
    }

    /// Our entry below `worktrees/`: the one that names our path, or a half-made one that our `.git` file names.
    fn entry(&self) -> Result<Option<PathBuf>, Error> {
        let link = self.path.join(".git");
        let all = match fs::read_dir(self.common_dir.join("worktrees")) {
            Ok(all) => all,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return self.io(Err(error)),
        };
        for entry in all {
            let entry = self.io(entry)?.path();
            if read_path(&entry.join("gitdir")).is_some_and(|named| entry.join(named) == link) {
                return Ok(Some(entry));
            }
        }
        Ok(self.linked_entry().filter(|entry| entry.is_dir() && !entry.join("gitdir").exists()))
    }

    /// What our `.git` file names, if that is an entry of this repository.
    fn linked_entry(&self) -> Option<PathBuf> {
        let content = read_path(&self.path.join(".git"))?;
        let named = PathBuf::from(content.to_str()?.strip_prefix("gitdir: ")?);
        (named.parent()? == self.common_dir.join("worktrees")).then_some(named)
    }

    /// Deletes a file or directory that may be missing.
    fn delete(&self, path: &Path) -> Result<(), Error> {
        let is_dir = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        let deleted = if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match deleted {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(path, error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn io<T>(&self, result: io::Result<T>) -> Result<T, Error> {
        result.map_err(|error| Error::io(&self.path, error))
    }
}

/// Whether an entry has all that git needs to work with it.
fn is_sound(entry: &Path) -> bool {
    let head = fs::read_to_string(entry.join("HEAD")).unwrap_or_default();
    let has_head = head.starts_with("ref: ") || CommitId::parse(head.trim_end()).is_ok();
    has_head && entry.join("commondir").is_file() && entry.join("gitdir").is_file()
}

/// A file with one path in it.
fn read_path(file: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let mut content = fs::read(file).ok()?;
    while content.last().is_some_and(u8::is_ascii_whitespace) {
        content.pop();
    }
    Some(PathBuf::from(OsString::from_vec(content)))
}
