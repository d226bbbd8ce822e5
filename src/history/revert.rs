//! Reverts as bare objects: no ref, no index, no checkout.

use super::{Error, History, id, subject};
use crate::model::CommitId;
use crate::session::Revert;
use git2::{Commit, Index, Oid, Signature};

/// Author and committer of a revert. Fixed, so that the same revert is the same commit everywhere.
const NAME: &str = "sched-bisect";
const EMAIL: &str = "sched-bisect@localhost";

impl History {
    /// Reverts `commit` on top of `on`. A clean one becomes a commit object whose id follows from the inputs alone (its
    /// date is that of `on`). A merge needs `mainline`, the parent (counted from 1) whose side stays.
    pub fn revert(&self, commit: &CommitId, on: &CommitId, mainline: Option<u32>) -> Result<Revert, Error> {
        let (culprit, base) = (self.find(commit)?, self.find(on)?);
        let refuse = |reason: String| Error::Revert { commit: commit.clone(), reason };
        check_mainline(&culprit, mainline).map_err(refuse)?;
        if !self.is_ancestor(commit, on)? {
            return Err(refuse(format!("{on} does not contain it, so there is nothing to take back there")));
        }
        let failed = |error| self.unreadable(&format!("what reverting {commit} needs"), error);
        let mut index =
            self.repo.revert_commit(&culprit, &base, mainline.unwrap_or(0), None).map_err(failed)?;
        if index.has_conflicts() {
            return Ok(Revert::Conflicts { files: conflicts(&index).map_err(failed)? });
        }
        let tree = index.write_tree_to(&self.repo).map_err(failed)?;
        if tree == base.tree_id() {
            return Ok(Revert::AlreadyReverted);
        }
        let commit = self.write(&message(&culprit, mainline), tree, &base).map_err(failed)?;
        Ok(Revert::Clean { commit: id(commit) })
    }

    fn write(&self, message: &str, tree: Oid, base: &Commit<'_>) -> Result<Oid, git2::Error> {
        let who = Signature::new(NAME, EMAIL, &base.time())?;
        self.repo.commit(None, &who, &who, message, &self.repo.find_tree(tree)?, &[base])
    }
}

fn check_mainline(commit: &Commit<'_>, mainline: Option<u32>) -> Result<(), String> {
    let count = commit.parent_count();
    let parents = || {
        let named = commit
            .parents()
            .enumerate()
            .map(|(at, parent)| format!("{} = {} ({})", at + 1, id(parent.id()).short(), subject(&parent)));
        named.collect::<Vec<_>>().join(", ")
    };
    match mainline {
        None if count > 1 => {
            Err(format!("it is a merge; say with --mainline N which parent's side stays: {}", parents()))
        }
        Some(_) if count < 2 => Err("it is not a merge; drop --mainline".to_owned()),
        Some(n) if n == 0 || n as usize > count => {
            Err(format!("--mainline {n} is none of its parents: {}", parents()))
        }
        None | Some(_) => Ok(()),
    }
}

fn conflicts(index: &Index) -> Result<Vec<String>, git2::Error> {
    let mut files = Vec::new();
    for conflict in index.conflicts()? {
        let conflict = conflict?;
        let sides = [conflict.ancestor, conflict.our, conflict.their];
        files
            .extend(sides.into_iter().flatten().map(|side| String::from_utf8_lossy(&side.path).into_owned()));
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// The message that `git revert` would write.
fn message(commit: &Commit<'_>, mainline: Option<u32>) -> String {
    let subject = subject(commit);
    let title = match subject.strip_prefix("Revert \"").and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) if !inner.starts_with("Revert \"") => format!("Reapply \"{inner}\""),
        Some(_) | None => format!("Revert \"{subject}\""),
    };
    let what = match mainline.and_then(|n| commit.parent_id(n as usize - 1).ok()) {
        Some(parent) => format!("{}, reversing\nchanges made to {parent}", commit.id()),
        None => commit.id().to_string(),
    };
    format!("{title}\n\nThis reverts commit {what}.\n")
}
