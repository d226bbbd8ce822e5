//! A builder of tiny repositories. Every date and name is fixed, so that the same calls give the same ids; nothing of
//! the caller's git configuration gets in.

use git2::{Oid, Repository, Signature, Time};
use sched_bisect::model::CommitId;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Date of the first commit: 2024-01-01 00:00:00 UTC, in seconds.
const EPOCH_S: i64 = 1_704_067_200;

/// A directory tree: content by path.
pub type Files = BTreeMap<String, String>;

/// A repository below a temporary directory, with a checkout.
pub struct Repo {
    dir: tempfile::TempDir,
    git: Repository,
    trees: BTreeMap<CommitId, Files>,
    next_date_s: i64,
}

impl Repo {
    /// An empty one.
    pub fn new() -> Self {
        let dir = temporary();
        let path = dir.path().join("linux");
        std::fs::create_dir(&path).expect("directory");
        let made = git_in(&path).args(["init", "--quiet", "--template=", "-b", "main"]).output();
        assert_ok(&made.expect("git runs"));
        let git = Repository::open(&path).expect("opens");
        Self { dir, git, trees: BTreeMap::new(), next_date_s: EPOCH_S }
    }

    /// Its checkout.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("linux")
    }

    /// A place beside it for other things.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Commits the first parent's files with `edits` on top (`None` removes); dates go up by a minute.
    pub fn commit(
        &mut self,
        subject: &str,
        parents: &[&CommitId],
        edits: &[(&str, Option<&str>)],
    ) -> CommitId {
        let mut files = parents.first().map(|first| self.trees[*first].clone()).unwrap_or_default();
        for (path, content) in edits {
            match content {
                Some(content) => files.insert((*path).to_owned(), (*content).to_owned()),
                None => files.remove(*path),
            };
        }
        let date_s = self.next_date_s;
        self.next_date_s += 60;
        self.commit_files(subject.as_bytes(), parents, files, date_s)
    }

    /// Commits exactly `files`, at a date of the caller's.
    pub fn commit_files(
        &mut self,
        message: &[u8],
        parents: &[&CommitId],
        files: Files,
        date_s: i64,
    ) -> CommitId {
        let mut index = git2::Index::new().expect("an index in memory");
        for (path, content) in &files {
            let id = self.git.blob(content.as_bytes()).expect("blob");
            let mode = if content.starts_with("#!") { 0o100_755 } else { 0o100_644 };
            index.add(&entry(path, id, mode)).expect("entry");
        }
        let tree = index.write_tree_to(&self.git).expect("tree");
        let who = Signature::new("A U Thor", "author@example.com", &Time::new(date_s, 0)).expect("signature");
        let mut text = format!("tree {tree}\n");
        for parent in parents {
            text += &format!("parent {parent}\n");
        }
        for role in ["author", "committer"] {
            text += &format!("{role} A U Thor <author@example.com> {} +0000\n", who.when().seconds());
        }
        // Written raw: the message need not be UTF-8.
        let raw = [text.as_bytes(), b"\n", message, b"\n"].concat();
        let id = self.git.odb().expect("odb").write(git2::ObjectType::Commit, &raw).expect("commit");
        let id = CommitId::parse(&id.to_string()).expect("a full id");
        self.trees.insert(id.clone(), files);
        id
    }

    /// The files of a commit.
    pub fn files(&self, commit: &CommitId) -> Files {
        self.trees[commit].clone()
    }

    /// `count` commits in a row, "c0" to "cN"; each changes `file` to its subject.
    pub fn linear(&mut self, count: usize) -> Vec<CommitId> {
        let mut ids: Vec<CommitId> = Vec::new();
        for n in 0..count {
            let (subject, parents) = (format!("c{n}"), ids.last().cloned());
            let parents: Vec<&CommitId> = parents.iter().collect();
            ids.push(self.commit(&subject, &parents, &[("file", Some(&subject))]));
        }
        ids
    }

    /// Points branch `main` at a commit and checks it out.
    pub fn check_out(&self, commit: &CommitId) {
        self.run(&["update-ref", "refs/heads/main", commit.as_str()]);
        self.run(&["reset", "--quiet", "--hard"]);
    }

    /// Runs git there; it must succeed. Gives its output.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let output = git_in(&self.path()).args(args).output().expect("git runs");
        assert_ok(&output);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// As [`Self::run`], with `input` on standard input.
    pub fn pipe<S: AsRef<OsStr>>(&self, args: &[S], input: &str) -> String {
        let mut git = git_in(&self.path());
        let mut child =
            git.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git runs");
        child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("git reads");
        let output = child.wait_with_output().expect("git ends");
        assert_ok(&output);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A temporary directory; in memory where the system has such a place, since every record of a session is synced.
fn temporary() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).expect("temporary directory")
}

/// A git command that sees no configuration but the repository's.
pub fn git_in(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null").env("LC_ALL", "C");
    // Else git tidies up by itself, in the background, while a test compares files.
    command
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "maintenance.auto")
        .env("GIT_CONFIG_VALUE_0", "false");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "A U Thor");
        command.env(format!("GIT_{role}_EMAIL"), "author@example.com");
    }
    command
}

/// Fails the test with what a command said.
pub fn assert_ok(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn entry(path: &str, id: Oid, mode: u32) -> git2::IndexEntry {
    let time = git2::IndexTime::new(0, 0);
    let path = path.as_bytes().to_vec();
    git2::IndexEntry {
        ctime: time,
        mtime: time,
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path,
    }
}
