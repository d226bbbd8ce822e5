//! The real binary over a tiny repository, as a user meets it: a profile file, commands, exit status, output.
//!
//! A commit's speed is a number in its file `level`; what else its commands do stands in files of its own too, so that a
//! candidate behaves as its tree says and nothing else. Noise follows from the boot's number.

use super::repo::Repo;
use sched_bisect::driver::{self, SessionDir};
use sched_bisect::journal::Record;
use sched_bisect::model::CommitId;
use sched_bisect::search::Dag;
use sched_bisect::session::{Event, State};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A run that prints the level and adds -5 to +5 by the boot's number, each value once in eleven boots.
pub const RUN: &str = "read -r level < level; echo $((level + SB_BOOT * 7 % 11 - 5))";

/// A run without noise.
pub const QUIET_RUN: &str = "cat level";

/// What a test's profile says; the defaults are a quick, clear measurement.
pub struct Profile {
    /// Which way is better.
    pub direction: &'static str,
    /// What is looked for.
    pub find: &'static str,
    /// Smallest change worth finding.
    pub minimum_effect: &'static str,
    /// Boots of a kernel before its first verdict, and in a confirmation.
    pub boots: u32,
    /// Failures of ours in a row before it halts.
    pub infra: u32,
    /// Build command.
    pub build: Option<String>,
    /// Boot command.
    pub boot: Option<String>,
    /// Run command.
    pub run: String,
    /// Further top-level keys.
    pub more: String,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            direction: "higher",
            find: "regression",
            minimum_effect: "2%",
            boots: 3,
            infra: 2,
            build: None,
            boot: None,
            run: RUN.to_owned(),
            more: String::new(),
        }
    }
}

impl Profile {
    fn toml(&self) -> String {
        let Self { direction, find, minimum_effect, boots, infra, more, run, .. } = self;
        let build = self.build.as_ref().map_or_else(String::new, |command| {
            format!("[build]\nkind = \"command\"\ncommand = '''{command}'''\n")
        });
        let boot = self.boot.as_ref().map_or_else(String::new, |command| format!("boot = '''{command}'''\n"));
        format!(
            "find = \"{find}\"\nminimum_effect = \"{minimum_effect}\"\n{more}\n[metric]\nname = \"nopm\"\nunit = \"1/min\"\n\
             direction = \"{direction}\"\n[judging]\nboots = {boots}\n[attempts]\ninfra = {infra}\n{build}\
             [machine]\nkind = \"command\"\n{boot}run = '''{run}'''\n"
        )
    }
}

/// What the program said.
#[derive(Debug)]
pub struct Said {
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Fails the test, showing everything, unless the exit status is this one.
    #[track_caller]
    pub fn exits(self, status: i32) -> Self {
        assert_eq!(
            self.status, status,
            "\n--- standard output\n{}--- standard error\n{}",
            self.out, self.err
        );
        self
    }

    /// Standard output with every stretch of white space as one space: wrapping does not matter.
    pub fn flat(&self) -> String {
        self.out.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Fails the test unless the (unwrapped) output has this.
    #[track_caller]
    pub fn tells(&self, part: &str) -> &Self {
        assert!(self.flat().contains(part), "{part:?} is not in\n{}", self.out);
        self
    }
}

/// A repository with a profile beside it.
pub struct Rig {
    /// The repository.
    pub repo: Repo,
}

impl Rig {
    /// An empty repository with this profile.
    pub fn new(profile: &Profile) -> Self {
        let rig = Self { repo: Repo::new() };
        rig.profile(profile);
        rig
    }

    /// Replaces the profile.
    pub fn profile(&self, profile: &Profile) {
        std::fs::write(self.profile_path(), profile.toml()).expect("writes");
    }

    /// Where the profile is.
    pub fn profile_path(&self) -> PathBuf {
        self.repo.beside("rig.toml")
    }

    /// A file beside the repository that commands of a test write to or look for.
    pub fn note(&self, name: &str) -> PathBuf {
        self.repo.beside(name)
    }

    /// Lines of such a file; none where there is no file.
    pub fn notes(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.note(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A commit with a level and further edits, tagged with its subject.
    pub fn commit(
        &mut self,
        subject: &str,
        parents: &[&CommitId],
        level: u32,
        edits: &[(&str, &str)],
    ) -> CommitId {
        let level = format!("{level}\n");
        // A file of its own: each commit changes something, and none conflicts with another.
        let own = format!("log/{subject}");
        let mut all = vec![(own.as_str(), Some(subject)), ("level", Some(level.as_str()))];
        all.extend(edits.iter().map(|(path, content)| (*path, Some(*content))));
        let commit = self.repo.commit(subject, parents, &all);
        self.repo.run(&["update-ref", &format!("refs/tags/{subject}"), commit.as_str()]);
        commit
    }

    /// A line of commits "c0", "c1", ... with these levels; the last one is checked out.
    pub fn line(&mut self, levels: &[u32]) -> Vec<CommitId> {
        let mut commits: Vec<CommitId> = Vec::new();
        for (n, level) in levels.iter().enumerate() {
            let parent = commits.last().cloned();
            let parents: Vec<&CommitId> = parents_of(parent.as_ref());
            commits.push(self.commit(&format!("c{n}"), &parents, *level, &[]));
        }
        self.repo.check_out(commits.last().expect("a line has commits"));
        commits
    }

    /// The program in the repository, without anything of the caller's environment but the path.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        command_in(&self.repo.path(), args)
    }

    /// Runs it.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Said {
        said(&self.command(args).output().expect("the program starts"))
    }

    /// Runs `start GOOD BAD` with the rig's profile, as session "s".
    pub fn start(&self, good: &str, bad: &str) -> Said {
        self.start_with(&[good, bad, "--session", "s"])
    }

    /// Runs `start` with the rig's profile and these arguments.
    pub fn start_with(&self, args: &[&str]) -> Said {
        let profile = self.profile_path();
        let profile = profile.to_str().expect("UTF-8");
        self.run(&[&["start", "--profile", profile], args].concat())
    }

    /// Runs `revert-test` with the rig's profile and these arguments, as session "r".
    pub fn revert_test(&self, args: &[&str]) -> Said {
        let profile = self.profile_path();
        let profile = profile.to_str().expect("UTF-8");
        self.run(&[&["revert-test", "--profile", profile, "--session", "r"], args].concat())
    }

    /// The JSON report of a session.
    pub fn json(&self, session: &str) -> Value {
        let said = self.run(&["report", session, "--format", "json"]).exits(0);
        serde_json::from_str(&said.out).expect("the JSON report is JSON")
    }

    /// Directory of a session in the default place.
    pub fn session(&self, name: &str) -> SessionDir {
        SessionDir::at(self.repo.path().join(".git/sched-bisect").join(name))
    }

    /// Graph, state and records of a session.
    pub fn load(&self, name: &str) -> (Dag, State, Vec<Record>) {
        driver::load(&self.session(name)).expect("the session can be read")
    }

    /// Commits in the order in which their boots began.
    pub fn boot_order(&self, session: &str) -> Vec<CommitId> {
        let (_, _, records) = self.load(session);
        let booted = records.into_iter().filter_map(|record| {
            if let Event::BootStarted { commit, .. } = record.event { Some(commit) } else { None }
        });
        booted.collect()
    }

    /// Everything of the user's that a session must leave alone: HEAD, index, refs, stash, bisect state, checkout.
    pub fn fingerprint(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        collect(&self.repo.path(), &self.repo.path(), &mut found);
        found.sort();
        found
    }
}

/// Reads all files but git's objects and the session's own directories.
fn collect(top: &Path, dir: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(top).expect("below").to_str().expect("UTF-8").to_owned();
        if [".git/objects", ".git/sched-bisect"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            collect(top, &path, found);
        } else {
            found.push((name, std::fs::read(&path).expect("a file")));
        }
    }
}

/// One parent or none, as the builder takes them.
pub fn parents_of(parent: Option<&CommitId>) -> Vec<&CommitId> {
    parent.into_iter().collect()
}

/// The program in a directory.
pub fn command_in<S: AsRef<OsStr>>(dir: &Path, args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sched-bisect"));
    command.args(args).current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null").env("LC_ALL", "C");
    command
}

/// Output as text.
pub fn said(output: &Output) -> Said {
    Said {
        status: output.status.code().expect("it ends by itself"),
        out: String::from_utf8(output.stdout.clone()).expect("UTF-8"),
        err: String::from_utf8(output.stderr.clone()).expect("UTF-8"),
    }
}
