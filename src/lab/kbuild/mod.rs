//! Kernels by the kernel's own build system.
//!
//! Owns: builder directories `ROOT/builder-N/` (a private worktree and a build directory at constant paths, so that a
//! step recompiles only what changed and ccache hits), and the artifact cache `ROOT/cache/`; both are shared by all
//! sessions of a repository, a builder by one process at a time. Must not do: let one step's tree, configuration or
//! environment reach the next, or take a failure of the host for a fact about a commit.
//! Invariants: the source tree is exactly the commit (plus its fix-ups) when `make` runs, also after a kill; every
//! configuration starts from the session's saved base; an artifact in the cache is whole or absent; the release names
//! the commit.
//! Tested beside each file and in tests/it/kbuild.rs with a tiny tree that answers like a kernel's.

mod cache;
mod config;
mod failure;
mod fixup;
mod host;
mod identity;
mod modules;
mod place;
mod run;
mod slot;
mod tools;

use self::cache::{Cache, Key, Product};
pub use self::host::BuildHost;
use self::place::Place;
use self::run::{Runner, Step, Stop, io_at};
use self::slot::Slot;
use self::tools::Tools;
use super::{BuildJob, Builder, process};
use crate::history::{Clean, History, Worktree};
use crate::model::{Artifact, BuildResult, CommitId, InfraKind, UntestableKind};
use crate::session::{Fixup, Kbuild};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The kernel's symbols with their addresses, as a machine with a disk keeps them beside the image.
const SYSTEM_MAP: &str = "System.map";

/// Of the build directory: what is resolved, how the kernel calls itself, the kernel as the linker leaves it.
const CONFIG: &str = ".config";
const RELEASE: &str = "include/config/kernel.release";
const VMLINUX: &str = "vmlinux";

/// File of the session that holds its base configuration.
const BASE_FILE: &str = "config.base";

/// Variables that only we may give to make.
const OUR_MAKE_VARIABLES: [&str; 6] =
    ["LOCALVERSION=", "O=", "KBUILD_OUTPUT=", "KBUILD_EXTMOD=", "INSTALL_MOD_PATH=", "MODLIB="];

/// Where depmod is, which is not always on the PATH of who is not root.
const SBIN: &str = ":/usr/local/sbin:/usr/sbin:/sbin";

/// Put behind every configuration: the release is ours to choose, nothing is added to it.
const OUR_SYMBOLS: &str = "\n# CONFIG_LOCALVERSION_AUTO is not set\n";

/// A builder that cannot be set up. Each text fits "failed to ...".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The profile asks for something impossible.
    #[error("set up the kernel build: {0}")]
    Spec(String),
    /// The repository or the worktree.
    #[error(transparent)]
    History(#[from] crate::history::Error),
    /// The operating system.
    #[error("set up the kernel build in {}: {reason}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
}

/// Builds kernels in the first free builder directory.
pub struct KbuildBuilder {
    spec: Kbuild,
    /// `make_args` of the profile, and what its other keys come to.
    make_args: Vec<String>,
    session: PathBuf,
    slot: Slot,
    host: Option<BuildHost>,
    cache: Cache,
    history: History,
    worktree: Worktree,
}

impl KbuildBuilder {
    /// A builder below `root`, for the session whose directory is `session`, of the repository with this common git
    /// directory.
    pub fn open(spec: Kbuild, root: &Path, session: &Path, common_dir: &Path) -> Result<Self, Error> {
        check_spec(&spec)?;
        let io = |reason| Error::Io { path: root.to_owned(), reason };
        fs::create_dir_all(root).map_err(io)?;
        let root = root.canonicalize().map_err(io)?;
        if root.to_string_lossy().contains([' ', ':', '\t']) {
            let shown = root.display();
            return Err(Error::Spec(format!(
                "the kernel's make cannot build in {shown}: no spaces or colons; move the repository"
            )));
        }
        let slot = Slot::take(&root).map_err(io)?;
        let cache = Cache::open(&root, &slot).map_err(io)?;
        let marks = vec![(process::OWNER.into(), session.as_os_str().to_owned())];
        let worktree = Worktree::open(common_dir, &slot.source(), marks)?;
        let history = History::open(common_dir)?;
        let make_args = all_make_args(&spec);
        Ok(Self { spec, make_args, session: session.to_owned(), slot, host: None, cache, history, worktree })
    }

    /// The same, with make on another machine.
    #[must_use]
    pub fn on(self, host: BuildHost) -> Self {
        Self { host: Some(host), ..self }
    }

    async fn try_build(&self, job: &BuildJob) -> Step<Artifact> {
        let run = Runner::start(&self.session, self.slot.dir(), job)?;
        let place = Place::find(self.host.as_ref(), &self.slot, &self.session, &run).await?;
        let tools = Tools::find(&run, &place, &self.make_args).await?;
        let fixups = self.fixups_for(&job.commit)?;
        if let Some(base) = self.saved_base()?
            && let Some(found) = self.cached(&run, &self.key(&job.commit, &fixups, &base, &tools))
        {
            return Ok(found);
        }
        let built = self.build_in_tree(&run, job, &tools, &place, &fixups).await;
        // The next step would do so too; but the tree should not lie about with patches in it.
        let restored = run.git(self.worktree.checkout(&job.commit, Clean::All)).await;
        if let Err(Stop::Infra(failure)) = restored {
            run.note(&format!("the tree was left as it is: {}", failure.reason));
        }
        built
    }

    async fn build_in_tree(
        &self,
        run: &Runner<'_>,
        job: &BuildJob,
        tools: &Tools,
        place: &Place<'_>,
        fixups: &[&Fixup],
    ) -> Step<Artifact> {
        let make = Make { builder: self, run, tools, place, commit: &job.commit };
        if !self.slot.goes_on(&make.stamp()) {
            place.start_anew().await?;
            self.slot.start_anew(&make.stamp()).await?;
        }
        run.git(self.worktree.checkout(&job.commit, Clean::All)).await?;
        let notes = fixup::apply_all(run, &self.slot, fixups).await?;
        place.send_tree(run).await?;
        let base = match self.saved_base()? {
            Some(base) => base,
            None => self.make_base(&make).await?,
        };
        let key = self.key(&job.commit, fixups, &base, tools);
        if let Some(found) = self.cached(run, &key) {
            return Ok(found);
        }
        let resolved = self.configure(&make, &base).await?;
        if let Err(reason) = config::check_required(&resolved, &self.spec.required) {
            return Err(Stop::untestable(UntestableKind::Config, reason));
        }
        let with_modules = self.spec.modules && config::has_modules(&resolved);
        make.run(&self.targets(with_modules)).await?;
        let artifact = Artifact {
            commit: job.commit.clone(),
            dir: String::new(),
            release: make.release()?,
            build_id: identity::build_id(&self.slot.build().join(VMLINUX))?,
            image_hash: String::new(),
            config_hash: String::new(),
            config_delta: config::delta(&base, &resolved),
            toolchain: tools.shown(),
            cached: false,
            fixups: notes,
            packed: BTreeMap::new(),
        };
        let image = self.slot.build().join(&self.spec.image);
        if !image.is_file() {
            let (image, targets) = (&self.spec.image, self.spec.targets.join(" "));
            let reason = format!("make {targets} made no {image}; correct image or targets in the profile");
            return Err(Stop::infra(InfraKind::BrokenCommand, reason));
        }
        let mut more = Vec::new();
        let map = self.slot.build().join(SYSTEM_MAP);
        if map.is_file() {
            more.push((SYSTEM_MAP, map));
        }
        if with_modules {
            more.push((modules::ARCHIVE, self.pack_modules(&make, &artifact.release).await?));
        }
        let product = Product { image: &image, config: &resolved, log: run.log(), more: &more };
        let stored = self.cache.store(&key, artifact, &product);
        let _ = fs::remove_file(self.slot.file(modules::ARCHIVE));
        stored
    }

    fn targets(&self, with_modules: bool) -> Vec<String> {
        let mut targets = self.spec.targets.clone();
        if with_modules && !targets.iter().any(|target| target == "modules") {
            targets.push("modules".to_owned());
        }
        targets
    }

    /// Installs the modules just made into a directory of the builder's and gives an archive of them.
    async fn pack_modules(&self, make: &Make<'_>, release: &str) -> Step<PathBuf> {
        make.place.clear_staging().await?;
        make.install(&modules::install_args(&make.place.staging())).await?;
        let (staging, archive) =
            (make.place.fetch_staging(make.run).await?, self.slot.file(modules::ARCHIVE));
        let release = release.to_owned();
        let pack = move || {
            modules::pack(&staging, &release, &archive)?;
            modules::clear(&staging)?;
            Ok(archive)
        };
        let packed = tokio::task::spawn_blocking(pack).await;
        packed.map_err(|error| Stop::infra(InfraKind::Other, format!("cannot pack the modules: {error}")))?
    }

    fn cached(&self, run: &Runner<'_>, key: &Key) -> Option<Artifact> {
        match self.cache.find(key) {
            Ok(Some(artifact)) => {
                run.note(&format!("taken from the cache, with its build log: {}", artifact.dir));
                Some(artifact)
            }
            Ok(None) => None,
            Err(reason) => {
                run.note(&format!("the cache entry {} is damaged, built again: {reason}", key.as_str()));
                None
            }
        }
    }

    fn fixups_for(&self, commit: &CommitId) -> Step<Vec<&Fixup>> {
        let contains = |limit: &CommitId| self.history.is_ancestor(limit, commit);
        let mut applied = Vec::new();
        for fixup in &self.spec.fixups {
            let begun = fixup.from.as_ref().map_or(Ok(true), contains)?;
            let over = fixup.until.as_ref().map_or(Ok(false), contains)?;
            if begun && !over {
                applied.push(fixup);
            }
        }
        Ok(applied)
    }

    /// Everything that decides what the build's product is. The configuration of a commit follows from the base and
    /// the commit, so it need not be resolved first.
    fn key(&self, commit: &CommitId, fixups: &[&Fixup], base: &str, tools: &Tools) -> Key {
        let spec = &self.spec;
        let mut parts = vec![
            vec![commit.as_str(), tools.identity()],
            vec![&spec.base, &spec.config, OUR_SYMBOLS, base, &spec.image],
            words(&spec.required),
            words(&spec.make_args),
            words(&spec.targets),
            fixups.iter().map(|fixup| fixup.patch.as_str()).collect(),
        ];
        // Only where they are set, so that what was built before these keys were there is still found.
        if !spec.arch.is_empty() || !spec.cross_compile.is_empty() || spec.modules {
            let modules = if spec.modules { "modules" } else { "" };
            parts.push(vec![&spec.arch, &spec.cross_compile, modules]);
        }
        Key::of(&parts)
    }

    fn saved_base(&self) -> Step<Option<String>> {
        let path = self.session.join(BASE_FILE);
        match fs::read_to_string(&path) {
            Ok(base) => Ok(Some(base)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_at(&path)(error)),
        }
    }

    /// Makes the base configuration with the candidate at hand, the first of the session, and saves it.
    async fn make_base(&self, make: &Make<'_>) -> Step<String> {
        let config = self.slot.build().join(CONFIG);
        fs::create_dir_all(self.slot.build()).map_err(io_at(&config))?;
        let mut first = String::new();
        if !self.spec.base.is_empty() {
            let _ = fs::remove_file(&config);
            make.run(std::slice::from_ref(&self.spec.base)).await?;
            first = fs::read_to_string(&config).map_err(io_at(&config))?;
        }
        let resolved = self.configure(make, &first).await?;
        // Another builder of the session may have been faster; then all follow that one.
        let path = self.session.join(BASE_FILE);
        let mut file = tempfile::NamedTempFile::new_in(&self.session).map_err(io_at(&path))?;
        io::Write::write_all(&mut file, resolved.as_bytes()).map_err(io_at(&path))?;
        file.as_file().sync_all().map_err(io_at(&path))?;
        match file.persist_noclobber(&path) {
            Ok(_) => {}
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io_at(&path)(error.error)),
        }
        fs::read_to_string(&path).map_err(io_at(&path))
    }

    /// `base` with the profile's text on top, resolved for the candidate at hand. The text comes again each time, since a
    /// symbol that the base's commit did not know is not in the base.
    async fn configure(&self, make: &Make<'_>, base: &str) -> Step<String> {
        let path = self.slot.build().join(CONFIG);
        fs::create_dir_all(self.slot.build()).map_err(io_at(&path))?;
        let text = [&self.spec.config, OUR_SYMBOLS].concat();
        fs::write(&path, config::overlay(base, &text)).map_err(io_at(&path))?;
        make.run(&["olddefconfig".to_owned()]).await?;
        fs::read_to_string(&path).map_err(io_at(&path))
    }
}

#[async_trait(?Send)]
impl Builder for KbuildBuilder {
    async fn build(&mut self, job: &BuildJob) -> BuildResult {
        match self.try_build(job).await {
            Ok(artifact) => BuildResult::Built { artifact: Box::new(artifact) },
            Err(Stop::Untestable(untestable)) => BuildResult::Untestable(untestable),
            Err(Stop::Infra(failure)) => BuildResult::Infra(failure),
        }
    }
}

/// `make` for one candidate.
struct Make<'a> {
    builder: &'a KbuildBuilder,
    run: &'a Runner<'a>,
    tools: &'a Tools,
    place: &'a Place<'a>,
    commit: &'a CommitId,
}

impl Make<'_> {
    /// Runs make; a failure is sorted into the commit's and the host's.
    async fn run(&self, targets: &[String]) -> Step<()> {
        self.execute(self.command(targets)).await
    }

    /// Likewise, where make needs the programs of an administrator.
    async fn install(&self, targets: &[String]) -> Step<()> {
        let mut command = self.command(targets);
        let mut path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        path.push(SBIN);
        command.env("PATH", path);
        self.execute(command).await
    }

    fn command(&self, targets: &[String]) -> tokio::process::Command {
        let (place, spec) = (self.place, &self.builder.spec);
        let jobs = match spec.jobs {
            0 => place.cpus(),
            jobs => jobs as usize,
        };
        let mut command = self.run.command("make");
        command
            .arg("-C")
            .arg(place.source())
            .arg(format!("-j{jobs}"))
            .arg(format!("O={}", place.build().display()))
            .arg(format!("LOCALVERSION={}", self.token()))
            .args(self.tools.make_args())
            .args(&self.builder.make_args)
            .args(targets);
        command.envs(self.tools.environment(place.root()));
        command
    }

    async fn execute(&self, command: tokio::process::Command) -> Step<()> {
        let (slot, place) = (&self.builder.slot, self.place);
        place.send(self.run, &[CONFIG]).await?;
        // A make that is killed leaves half-written objects that look up to date: remembered until it has ended.
        slot.begin()?;
        let from = self.run.log_size();
        let status = place.execute(self.run, command).await?;
        slot.end()?;
        if status == 0 {
            let products = [CONFIG, RELEASE, VMLINUX, SYSTEM_MAP, &self.builder.spec.image];
            return place.fetch(self.run, &products).await;
        }
        let output = self.run.log_from(from)?;
        Err(failure::sort(&output, status, &place.source()))
    }

    /// Ends the release of this candidate's kernel.
    fn token(&self) -> String {
        format!("-sb-{}", self.commit.short())
    }

    /// What a build directory can be used on with: another compiler or architecture starts from nothing.
    fn stamp(&self) -> String {
        format!("{}{}\n{}\n", self.place.stamp(), self.builder.make_args.join(" "), self.tools.identity())
    }

    fn release(&self) -> Step<String> {
        let path = self.builder.slot.build().join(RELEASE);
        let release = fs::read_to_string(&path).map_err(io_at(&path))?.trim().to_owned();
        if release.ends_with(&self.token()) {
            return Ok(release);
        }
        let token = self.token();
        let reason = format!(
            "the kernel's release is {release:?} and does not end in {token:?}, so a boot could not prove which kernel runs"
        );
        Err(Stop::infra(InfraKind::BrokenCommand, reason))
    }
}

/// What to tell when a tool or header of kernel builds is not there.
pub fn missing(tool: &str) -> String {
    failure::missing(tool)
}

fn all_make_args(spec: &Kbuild) -> Vec<String> {
    let mut args = spec.make_args.clone();
    for (name, value) in [("ARCH", &spec.arch), ("CROSS_COMPILE", &spec.cross_compile)] {
        if !value.is_empty() {
            args.push(format!("{name}={value}"));
        }
    }
    args
}

fn words(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

fn check_spec(spec: &Kbuild) -> Result<(), Error> {
    let refuse = |reason: String| Err(Error::Spec(reason));
    if spec.targets.is_empty() || spec.image.is_empty() {
        return refuse("the profile names no make target or no image".to_owned());
    }
    if spec.base.is_empty() && spec.config.is_empty() {
        return refuse("the profile names neither a base target nor a configuration".to_owned());
    }
    for arg in &spec.make_args {
        if OUR_MAKE_VARIABLES.iter().any(|name| arg.starts_with(name)) {
            return refuse(format!("make argument {arg:?} is set by the program itself; drop it"));
        }
        for (name, key, value) in
            [("ARCH=", "arch", &spec.arch), ("CROSS_COMPILE=", "cross_compile", &spec.cross_compile)]
        {
            if arg.starts_with(name) && !value.is_empty() {
                return refuse(format!(
                    "make argument {arg:?} and {key} = {value:?} are both given; drop one"
                ));
            }
        }
    }
    for line in &spec.required {
        config::parse_required(line).map_err(Error::Spec)?;
    }
    Ok(())
}
