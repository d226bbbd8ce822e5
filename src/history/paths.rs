//! Path limits: git's pathspecs, and which commits change a path they name.

use super::{Error, History};
use crate::model::CommitId;
use crate::search::Node;
use git2::{Commit, DiffOptions, Oid, Pathspec, PathspecFlags, Tree, TreeWalkMode, TreeWalkResult};
use std::collections::HashMap;
use std::path::Path;

/// Parsed path limits: a path is inside when an include matches it and no exclude does.
pub(super) struct Limits {
    includes: Vec<Spec>,
    excludes: Vec<Spec>,
}

/// One pathspec.
struct Spec {
    /// As the user wrote it.
    given: String,
    kind: Kind,
}

enum Kind {
    /// The whole tree.
    All,
    /// A file or a directory with all below it.
    Plain(String),
    /// git's wildcards, where `*` also matches `/`.
    Glob(Pathspec),
}

impl Limits {
    /// Parses the given pathspecs. Only excludes means "everything but", as in git.
    pub(super) fn parse(given: &[String]) -> Result<Self, Error> {
        let (mut includes, mut excludes) = (Vec::new(), Vec::new());
        for text in given {
            let (exclude, pattern) = strip_magic(text)?;
            let spec = Spec { given: text.clone(), kind: Kind::parse(text, pattern)? };
            if exclude { excludes.push(spec) } else { includes.push(spec) }
        }
        if includes.is_empty() {
            includes.push(Spec { given: ".".to_owned(), kind: Kind::All });
        }
        Ok(Self { includes, excludes })
    }

    /// Whether `commit` changes a path inside the limits against its parent; a merge only if it differs there from
    /// each of its parents, as `git log -- PATHS` sees it.
    pub(super) fn touched_by(&self, history: &History, commit: &Commit<'_>) -> Result<bool, Error> {
        let tree = tree(history, commit)?;
        if commit.parent_count() == 0 {
            return self.differs(history, None, &tree);
        }
        for parent in commit.parent_ids() {
            let parent = self::tree(history, &history.commit(parent)?)?;
            if !self.differs(history, Some(&parent), &tree)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Refuses limits that name nothing, be it by a typing error or since the range leaves it alone.
    pub(super) fn check_used(
        &self,
        history: &History,
        nodes: &[Node],
        endpoints: [&CommitId; 2],
    ) -> Result<(), Error> {
        for spec in &self.includes {
            if !spec.is_in_any(history, endpoints)? && !spec.is_touched(history, nodes)? {
                let reason = "neither endpoint has such a file or directory, and no commit between them changes one; \
                              paths count from the top of the repository";
                return Err(Error::Path { path: spec.given.clone(), reason: reason.to_owned() });
            }
        }
        if !nodes.iter().any(|node| node.on_path && !node.boundary) {
            let given: Vec<&str> =
                self.includes.iter().chain(&self.excludes).map(|spec| spec.given.as_str()).collect();
            let reason = "no commit between good and bad changes anything there; drop the limit or widen it";
            return Err(Error::Path { path: given.join(" "), reason: reason.to_owned() });
        }
        Ok(())
    }

    fn differs(&self, history: &History, old: Option<&Tree<'_>>, new: &Tree<'_>) -> Result<bool, Error> {
        if old.is_some_and(|old| old.id() == new.id()) {
            return Ok(false);
        }
        if self.excludes.is_empty() && !self.includes.iter().any(Spec::is_glob) {
            // Comparing the entries' ids costs a few lookups; a diff costs as much as the commit is big.
            for spec in &self.includes {
                let was = old.map_or(Ok(None), |old| spec.entry(history, old))?;
                if was != spec.entry(history, new)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        Ok(changed(history, old, new)?.iter().any(|path| self.contains(path)))
    }

    fn contains(&self, path: &[u8]) -> bool {
        self.includes.iter().any(|spec| spec.matches(path))
            && !self.excludes.iter().any(|spec| spec.matches(path))
    }
}

impl Spec {
    fn is_glob(&self) -> bool {
        matches!(self.kind, Kind::Glob(_))
    }

    fn matches(&self, path: &[u8]) -> bool {
        match &self.kind {
            Kind::All => true,
            Kind::Plain(plain) => path
                .strip_prefix(plain.as_bytes())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")),
            Kind::Glob(glob) => glob.matches_path(bytes_path(path), PathspecFlags::DEFAULT),
        }
    }

    /// Id and mode of what a plain path names in a tree.
    fn entry(&self, history: &History, tree: &Tree<'_>) -> Result<Option<(Oid, i32)>, Error> {
        let plain = match &self.kind {
            Kind::All => return Ok(Some((tree.id(), 0))),
            Kind::Glob(_) => return Ok(None),
            Kind::Plain(plain) => plain,
        };
        match tree.get_path(Path::new(plain)) {
            Ok(entry) => Ok(Some((entry.id(), entry.filemode()))),
            Err(error) if error.class() == git2::ErrorClass::Tree => Ok(None),
            Err(error) => Err(history.unreadable(&format!("{plain} of tree {}", tree.id()), error)),
        }
    }

    fn is_in_any(&self, history: &History, commits: [&CommitId; 2]) -> Result<bool, Error> {
        for commit in commits {
            let tree = tree(history, &history.find(commit)?)?;
            let is_in = if self.is_glob() {
                self.matches_in(history, &tree)?
            } else {
                self.entry(history, &tree)?.is_some()
            };
            if is_in {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn matches_in(&self, history: &History, tree: &Tree<'_>) -> Result<bool, Error> {
        let mut found = false;
        let walked = tree.walk(TreeWalkMode::PreOrder, |parent, entry| {
            let is_file = entry.kind() != Some(git2::ObjectType::Tree);
            found = is_file && self.matches(&[parent.as_bytes(), entry.name_bytes()].concat());
            if found { TreeWalkResult::Abort } else { TreeWalkResult::Ok }
        });
        match walked {
            Err(error) if !found => Err(history.unreadable(&format!("tree {}", tree.id()), error)),
            Ok(()) | Err(_) => Ok(found),
        }
    }

    /// Whether a commit changes what this names, though neither endpoint has it (made and removed in between).
    fn is_touched(&self, history: &History, nodes: &[Node]) -> Result<bool, Error> {
        for node in nodes.iter().filter(|node| !node.boundary) {
            let commit = history.find(&node.commit)?;
            let new = tree(history, &commit)?;
            let old = match commit.parent_ids().next() {
                Some(parent) => Some(tree(history, &history.commit(parent)?)?),
                None => None,
            };
            if changed(history, old.as_ref(), &new)?.iter().any(|path| self.matches(path)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Kind {
    fn parse(given: &str, pattern: &str) -> Result<Self, Error> {
        let refuse = |reason: &str| Err(Error::Path { path: given.to_owned(), reason: reason.to_owned() });
        let bare = pattern.trim_start_matches("./").trim_end_matches('/');
        if pattern.is_empty() {
            return refuse("it is empty; \".\" is the whole tree");
        }
        if pattern.starts_with('/') {
            return refuse("it is absolute; give it relative to the top of the repository");
        }
        if bare.split('/').any(|part| part == "..") {
            return refuse("it leads out of the repository");
        }
        if bare.is_empty() || bare == "." {
            return Ok(Self::All);
        }
        if !bare.contains(['*', '?', '[', '\\']) {
            return Ok(Self::Plain(bare.to_owned()));
        }
        match Pathspec::new([bare]) {
            Ok(glob) => Ok(Self::Glob(glob)),
            Err(error) => refuse(error.message()),
        }
    }
}

/// Takes git's `:` prefixes off: whether it excludes, and the pattern.
fn strip_magic(given: &str) -> Result<(bool, &str), Error> {
    let Some(rest) = given.strip_prefix(':') else { return Ok((false, given)) };
    if let Some(long) = rest.strip_prefix('(')
        && let Some((words, pattern)) = long.split_once(')')
    {
        let known = |word: &&str| matches!(*word, "exclude" | "top");
        if let Some(word) = words.split(',').find(|word| !known(word)) {
            let reason = format!("the pathspec word {word:?} is not supported; \"exclude\" and \"top\" are");
            return Err(Error::Path { path: given.to_owned(), reason });
        }
        return Ok((words.split(',').any(|word| word == "exclude"), pattern));
    }
    let pattern = rest.trim_start_matches(['!', '^', '/']);
    let signs = &rest[..rest.len() - pattern.len()];
    Ok((signs.contains(['!', '^']), pattern.strip_prefix(':').unwrap_or(pattern)))
}

/// The paths that a commit changes, see [`History::touched_paths`].
pub(super) fn touched(history: &History, commit: &Commit<'_>) -> Result<Vec<String>, Error> {
    let new = tree(history, commit)?;
    let mut parents = Vec::new();
    for parent in commit.parent_ids() {
        parents.push(Some(tree(history, &history.commit(parent)?)?));
    }
    if parents.is_empty() {
        parents.push(None);
    }
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    for old in &parents {
        for path in changed(history, old.as_ref(), &new)? {
            *counts.entry(path).or_default() += 1;
        }
    }
    let mut paths: Vec<String> = counts
        .into_iter()
        .filter(|(_, differs_from)| *differs_from == parents.len())
        .map(|(path, _)| String::from_utf8_lossy(&path).into_owned())
        .collect();
    paths.sort();
    Ok(paths)
}

/// The paths in which two trees differ, each once.
fn changed(history: &History, old: Option<&Tree<'_>>, new: &Tree<'_>) -> Result<Vec<Vec<u8>>, Error> {
    let mut options = DiffOptions::new();
    options.skip_binary_check(true).include_typechange(true);
    let diff = history
        .repo
        .diff_tree_to_tree(old, Some(new), Some(&mut options))
        .map_err(|error| history.unreadable(&format!("the changes of tree {}", new.id()), error))?;
    // Without rename detection both sides of a delta have the same path.
    Ok(diff.deltas().filter_map(|delta| delta.new_file().path_bytes().map(<[u8]>::to_vec)).collect())
}

fn tree<'h>(history: &History, commit: &Commit<'h>) -> Result<Tree<'h>, Error> {
    commit.tree().map_err(|error| history.unreadable(&format!("the tree of commit {}", commit.id()), error))
}

fn bytes_path(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path))
}
