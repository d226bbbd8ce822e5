//! Git: revisions, ranges, reverts, worktrees; never the user's own checkout.
//!
//! Owns: [`History`], which reads the user's repository through libgit2, and [`Worktree`], a private linked worktree
//! driven through the git program (a checkout of a big tree belongs to git, which knows filters and attributes).
//! Must not do: touch the user's checkout, HEAD, index, refs, configuration or a bisection of his; build anything;
//! print. The only things it adds to the repository are objects without a ref (reverts) and its own worktrees.
//! Invariants: an answer depends on the commits alone, not on the order in which git stored them; replace refs are
//! not followed, neither here nor in a worktree.
//! Tested beside each file and in tests/it/history.rs, partly against the git program.

mod error;
pub mod git;
mod paths;
mod range;
mod revert;
mod worktree;

pub use error::Error;
pub use range::Range;
pub use worktree::{Clean, Worktree};

use crate::model::CommitId;
use crate::session::{Endpoint, Lineage};
use git2::{Commit, ErrorCode, ObjectType, Oid, Repository};
use std::path::{Path, PathBuf};

/// A repository, open for reading.
pub struct History {
    repo: Repository,
    common_dir: PathBuf,
}

impl History {
    /// Opens the repository that `dir` lies in: its top, a directory below, a linked worktree, a bare repository or
    /// its git directory. Refuses shallow clones, since their history ends where no commit does.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let failed = |error: git2::Error| Error::open(dir, &error);
        let repo = Repository::discover(dir).map_err(failed)?;
        let common_dir =
            repo.commondir().canonicalize().map_err(|error| Error::io(repo.commondir(), error))?;
        // libgit2 looks for the mark in the worktree's own directory, where git never puts it.
        if std::fs::metadata(common_dir.join("shallow")).is_ok_and(|mark| mark.len() > 0) {
            return Err(Error::Shallow { dir: common_dir });
        }
        Ok(Self { repo, common_dir })
    }

    /// The git directory that all worktrees share, absolute.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// What a revision as git writes it ("v6.15-rc4", "HEAD~3", an abbreviated id) stands for.
    pub fn resolve(&self, rev: &str) -> Result<Endpoint, Error> {
        let refuse = |reason: &str| Error::Revision { rev: rev.to_owned(), reason: reason.to_owned() };
        if rev.is_empty() {
            return Err(refuse("it is empty"));
        }
        if rev.starts_with('-') {
            return Err(refuse("it begins with '-', so it is an option and not a revision"));
        }
        if rev.contains("..") {
            return Err(refuse("it is a range; name one commit"));
        }
        let object = self.repo.revparse_single(rev).map_err(|error| {
            let code = error.code();
            if code == ErrorCode::Ambiguous {
                refuse("several objects begin so; give more digits")
            } else if code == ErrorCode::NotFound {
                refuse("no such commit, tag or branch here; if it was published: git fetch --tags")
            } else {
                refuse(&format!("git does not understand it as a revision ({})", error.message()))
            }
        })?;
        let commit = object.peel_to_commit().map_err(|error| {
            if error.code() == ErrorCode::NotFound {
                return self.unreadable(&format!("what {rev} names"), error);
            }
            let inner = object.peel(ObjectType::Any).unwrap_or_else(|_| object.clone());
            refuse(&format!("it is a {}, not a commit", kind_name(inner.kind())))
        })?;
        Ok(Endpoint { rev: rev.to_owned(), commit: id(commit.id()) })
    }

    /// First line of a commit's message (its first paragraph, joined, as git shows it); bytes that are not UTF-8
    /// become U+FFFD.
    pub fn subject(&self, commit: &CommitId) -> Result<String, Error> {
        Ok(subject(&self.find(commit)?))
    }

    /// Who wrote a commit, as `Name <mail>`.
    pub fn author(&self, commit: &CommitId) -> Result<String, Error> {
        let found = self.find(commit)?;
        let author = found.author();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(format!("{} <{}>", text(author.name_bytes()), text(author.email_bytes())))
    }

    /// Top of the user's checkout; a bare repository has none.
    pub fn checkout(&self) -> Option<PathBuf> {
        self.repo.workdir().map(Path::to_path_buf)
    }

    /// Whether `ancestor` is `of` or one of its ancestors.
    pub fn is_ancestor(&self, ancestor: &CommitId, of: &CommitId) -> Result<bool, Error> {
        let (ancestor, of) = (self.find(ancestor)?.id(), self.find(of)?.id());
        if ancestor == of {
            return Ok(true);
        }
        self.repo
            .graph_descendant_of(of, ancestor)
            .map_err(|error| self.unreadable(&format!("the ancestors of {of}"), error))
    }

    /// How a commit stands to another.
    pub fn lineage(&self, commit: &CommitId, other: &CommitId) -> Result<Lineage, Error> {
        if self.is_ancestor(other, commit)? {
            return Ok(Lineage::Descendant);
        }
        if self.is_ancestor(commit, other)? {
            return Ok(Lineage::Ancestor);
        }
        match self.repo.merge_base(self.oid(commit)?, self.oid(other)?) {
            Ok(_) => Ok(Lineage::Diverged),
            Err(error) if error.code() == ErrorCode::NotFound && error.class() != git2::ErrorClass::Odb => {
                Ok(Lineage::Unrelated)
            }
            Err(error) => {
                Err(self.unreadable(&format!("the common ancestors of {commit} and {other}"), error))
            }
        }
    }

    /// The paths that a commit changes, sorted: against its parent; for a merge those that differ from every parent,
    /// as `git show` counts them (none for a merge without edits of its own); for a root commit all it has.
    pub fn touched_paths(&self, commit: &CommitId) -> Result<Vec<String>, Error> {
        paths::touched(self, &self.find(commit)?)
    }

    fn find(&self, commit: &CommitId) -> Result<Commit<'_>, Error> {
        self.commit(self.oid(commit)?)
    }

    fn commit(&self, oid: Oid) -> Result<Commit<'_>, Error> {
        self.repo.find_commit(oid).map_err(|error| self.unreadable(&format!("commit {oid}"), error))
    }

    fn oid(&self, commit: &CommitId) -> Result<Oid, Error> {
        Oid::from_str(commit.as_str()).map_err(|error| self.unreadable(&format!("commit {commit}"), error))
    }

    /// Says what could not be read, and how to mend it where that is known.
    fn unreadable(&self, what: &str, error: git2::Error) -> Error {
        let missing = error.code() == ErrorCode::NotFound;
        let mend = match (missing, self.promisor()) {
            (true, Some(remote)) => format!(
                "the repository is a partial clone; complete it with: git -C {} fetch --refetch --no-filter {remote}",
                self.common_dir.display()
            ),
            (true, None) => format!(
                "the repository is damaged or incomplete; look with: git -C {} fsck --connectivity-only",
                self.common_dir.display()
            ),
            (false, _) => format!("in {}", self.common_dir.display()),
        };
        Error::Unreadable { what: what.to_owned(), reason: error.message().to_owned(), mend }
    }

    /// The remote that a partial clone left its objects at.
    fn promisor(&self) -> Option<String> {
        let config = self.repo.config().ok()?;
        let remotes = self.repo.remotes().ok()?;
        remotes
            .iter()
            .filter_map(|name| name.ok().flatten())
            .find(|name| config.get_bool(&format!("remote.{name}.promisor")).unwrap_or(false))
            .map(str::to_owned)
    }
}

fn kind_name(kind: Option<ObjectType>) -> &'static str {
    kind.map_or("object of an unknown kind", |kind| match kind {
        ObjectType::Any => "object",
        ObjectType::Commit => "commit",
        ObjectType::Tree => "tree",
        ObjectType::Blob => "file",
        ObjectType::Tag => "tag",
    })
}

fn id(oid: Oid) -> CommitId {
    CommitId::parse(&oid.to_string()).expect("git prints an object id as lower-case hexadecimal digits")
}

fn subject(commit: &Commit<'_>) -> String {
    String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default()).into_owned()
}
