//! Where a session's commands work: its tree, its directories, and what the tree holds at the moment.

use super::Tree;
use super::call::{Answer, Call, absolute, infra};
use crate::model::{Artifact, CommitId, InfraFailure, InfraKind, StepId, Untestable, UntestableKind};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The site as builder and machines of a session share it. It is held for a whole step: the tree must not change
/// under a command.
pub type SharedSite = Rc<Mutex<Site>>;

/// What is fixed about a site.
#[derive(Debug, Clone)]
pub struct SiteSpec {
    /// Name of the session (SB_SESSION).
    pub session: String,
    /// Session directory: owner of all processes.
    pub owner: PathBuf,
    /// Build command; `None`: nothing is built, a candidate is its checked-out tree.
    pub build: Option<String>,
    /// Deadline of a build that a boot or run has to repeat.
    pub build_deadline: Duration,
    /// Directory that all builds of the session share (SB_BUILD_DIR); made when missing.
    pub build_dir: PathBuf,
    /// Parent of the candidates' own directories (SB_ARTIFACTS); made when missing.
    pub artifacts: PathBuf,
    /// Name of the set of tunables (SB_VARIANT).
    pub variant: String,
}

/// See the module's head.
pub struct Site {
    spec: SiteSpec,
    tree: Box<dyn Tree>,
    /// The commit that is checked out; `None`: unknown, as after a start or an interruption.
    at: Option<CommitId>,
    /// The candidate whose product is in the tree; `None`: none, or unknown.
    tree_holds: Option<CommitId>,
}

/// Why there is no product.
pub(super) enum NotBuilt {
    /// A fact about the commit.
    Untestable(Untestable),
    /// A failure of ours.
    Infra(InfraFailure),
}

impl Site {
    /// A site whose tree may hold anything.
    pub fn shared(spec: SiteSpec, tree: Box<dyn Tree>) -> SharedSite {
        let spec = SiteSpec {
            build_dir: absolute(&spec.build_dir),
            artifacts: absolute(&spec.artifacts),
            owner: absolute(&spec.owner),
            ..spec
        };
        Rc::new(Mutex::new(Self { spec, tree, at: None, tree_holds: None }))
    }

    /// Session directory.
    pub(super) fn owner(&self) -> &Path {
        &self.spec.owner
    }

    /// Name of the session.
    pub(super) fn session(&self) -> &str {
        &self.spec.session
    }

    /// Checks `commit` out and builds it. Gives the directory of its product; empty when that stays in the tree.
    pub(super) async fn build(
        &mut self,
        step: StepId,
        commit: &CommitId,
        deadline: Duration,
        log: &Path,
    ) -> Result<String, NotBuilt> {
        self.checkout(commit).await.map_err(NotBuilt::Infra)?;
        let artifacts = self.fresh_artifacts(commit).map_err(NotBuilt::Infra)?;
        if let Some(script) = self.spec.build.clone() {
            let answer = self
                .call(Calling {
                    what: "build",
                    script: &script,
                    out: log,
                    err: log,
                    deadline,
                    step,
                    mark: None,
                    leaves_processes: false,
                })
                .with(commit, &artifacts, Vec::new())
                .answer()
                .await;
            built(answer)?;
        }
        let empty = is_empty(&artifacts)
            .map_err(|error| NotBuilt::Infra(infra(&format!("read {}", artifacts.display()), &error)))?;
        if !empty {
            return Ok(artifacts.to_string_lossy().into_owned());
        }
        self.tree_holds = Some(commit.clone());
        Ok(String::new())
    }

    /// Makes the tree that of the artifact's commit, and builds again what stayed in a tree that has held another
    /// candidate since. A failure is ours: it did build before.
    pub(super) async fn ready(
        &mut self,
        step: StepId,
        artifact: &Artifact,
        log: &Path,
    ) -> Result<(), InfraFailure> {
        let commit = &artifact.commit;
        if !artifact.dir.is_empty() {
            if !Path::new(&artifact.dir).is_dir() {
                let reason =
                    format!("the artifact of {} is gone: no directory {}", commit.short(), artifact.dir);
                return Err(InfraFailure { kind: InfraKind::Missing, reason });
            }
            return if self.at.as_ref() == Some(commit) { Ok(()) } else { self.checkout(commit).await };
        }
        if self.tree_holds.as_ref() == Some(commit) {
            return Ok(());
        }
        let log = with_suffix(log, ".rebuild");
        match self.build(step, commit, self.spec.build_deadline, &log).await {
            Ok(_) => Ok(()),
            Err(NotBuilt::Infra(failure)) => Err(failure),
            Err(NotBuilt::Untestable(untestable)) => Err(InfraFailure {
                kind: InfraKind::Other,
                reason: format!(
                    "{} built before, but not again after the tree held another candidate: {} (see {})",
                    commit.short(),
                    untestable.reason,
                    log.display()
                ),
            }),
        }
    }

    async fn checkout(&mut self, commit: &CommitId) -> Result<(), InfraFailure> {
        // Forgotten first: dropped or failing half-way, the tree holds nothing that is known.
        self.at = None;
        self.tree_holds = None;
        self.tree.checkout(commit).await.map_err(|reason| InfraFailure {
            kind: InfraKind::Other,
            reason: format!(
                "failed to check {} out in {}: {reason}",
                commit.short(),
                self.tree.path().display()
            ),
        })?;
        self.at = Some(commit.clone());
        Ok(())
    }

    /// The candidate's own directory, empty: an interrupted build's half product must not pass for a whole one.
    fn fresh_artifacts(&self, commit: &CommitId) -> Result<PathBuf, InfraFailure> {
        let dir = self.artifacts_of(commit);
        let made = match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => fs::create_dir_all(&dir),
        };
        made.and_then(|()| fs::create_dir_all(&self.spec.build_dir)).map_err(|error| {
            let doing = format!("make {} and {}", dir.display(), self.spec.build_dir.display());
            infra(&doing, &error)
        })?;
        Ok(dir)
    }

    fn artifacts_of(&self, commit: &CommitId) -> PathBuf {
        self.spec.artifacts.join(commit.as_str())
    }

    /// SB_ARTIFACTS of an artifact, wherever its builder put it.
    pub(super) fn artifacts_dir(&self, artifact: &Artifact) -> PathBuf {
        if artifact.dir.is_empty() {
            self.artifacts_of(&artifact.commit)
        } else {
            absolute(artifact.dir.as_ref())
        }
    }

    /// A call in the tree.
    pub(super) fn call<'a>(&'a self, calling: Calling<'a>) -> Prepared<'a> {
        Prepared { site: self, calling }
    }
}

/// What differs between calls.
pub(super) struct Calling<'a> {
    /// The step it belongs to.
    pub step: StepId,
    /// "build", "boot", "run".
    pub what: &'a str,
    /// Run by `sh -c`.
    pub script: &'a str,
    /// When to give up.
    pub deadline: Duration,
    /// File for standard output.
    pub out: &'a Path,
    /// File for standard error.
    pub err: &'a Path,
    /// See [`Call::mark`].
    pub mark: Option<String>,
    /// See [`Call::leaves_processes`].
    pub leaves_processes: bool,
}

/// A call that lacks its candidate.
pub(super) struct Prepared<'a> {
    site: &'a Site,
    calling: Calling<'a>,
}

impl<'a> Prepared<'a> {
    /// The call, for this candidate, with `more` of the contract's variables.
    pub fn with(self, commit: &CommitId, artifacts: &Path, more: Vec<(String, OsString)>) -> Call<'a> {
        let Self { site, calling } = self;
        let spec = &site.spec;
        let of_all: [(&str, OsString); 6] = [
            ("SB_SESSION", spec.session.clone().into()),
            ("SB_COMMIT", commit.as_str().into()),
            ("SB_SOURCE", site.tree.path().into()),
            ("SB_BUILD_DIR", spec.build_dir.clone().into()),
            ("SB_ARTIFACTS", artifacts.into()),
            ("SB_VARIANT", spec.variant.clone().into()),
        ];
        let mut env: Vec<(String, OsString)> =
            of_all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        env.extend(more);
        Call {
            step: calling.step,
            what: calling.what,
            script: calling.script,
            dir: site.tree.path(),
            env,
            owner: &spec.owner,
            deadline: calling.deadline,
            out: calling.out,
            err: calling.err,
            mark: calling.mark,
            leaves_processes: calling.leaves_processes,
        }
    }
}

fn built(answer: Answer) -> Result<(), NotBuilt> {
    let untestable = |kind, reason| Err(NotBuilt::Untestable(Untestable { kind, reason }));
    match answer {
        Answer::Done => Ok(()),
        Answer::CannotMeasure(reason) => untestable(UntestableKind::Declared, reason),
        Answer::Failed(reason) => untestable(UntestableKind::Build, reason),
        Answer::Late(deadline) => Err(NotBuilt::Infra(InfraFailure {
            kind: InfraKind::Timeout,
            reason: format!(
                "the build command was not done within {deadline:?}; raise deadlines.build if it needs longer"
            ),
        })),
        Answer::Infra(failure) => Err(NotBuilt::Infra(failure)),
    }
}

fn is_empty(dir: &Path) -> io::Result<bool> {
    match fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        // The command removed it: nothing was left there.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// `log` with `suffix` after its whole name.
pub(super) fn with_suffix(log: &Path, suffix: &str) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
