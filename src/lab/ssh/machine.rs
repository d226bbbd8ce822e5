//! [`Machine`] over ssh: candidates installed on the SUT, booted once, proved, run in, and left behind.
//!
//! Owns: the order of it. Must not do: judge a number, change the machine's own default. Invariants: nothing is restarted
//! whose boot id is not known; a boot counts only when the running kernel read back as the artifact, under a boot id never
//! seen before and a word of its own on the command line; before the first candidate it was seen that the machine comes
//! back to its own kernel by itself. Tested in tests/it/ssh_machine.rs and, on a machine that reboots, in tests/it/guest_lab.rs.

mod boot;
mod call;
mod home;
mod upkeep;

use super::kernels::{Initramfs, Site};
use super::link::Link;
use super::loader::Loader;
use super::notes::{Known, Notes, Rescue};
use super::outcome::Failure;
use super::restart;
use super::wait::Sight;
use crate::lab::command::reading::{read_by, read_last};
use crate::lab::console_command::{ConsoleCommand, ConsoleSpec};
use crate::lab::identity::Identity;
use crate::lab::power::PowerCommand;
use crate::lab::stage::{Call, Called, Ground, Place};
use crate::lab::{BootJob, Machine, RunJob};
use crate::model::{BootNo, BootResult, InfraFailure, InfraKind, RunResult, Untestable, UntestableKind};
use crate::session::SUT;
use crate::workload::{Output, Reader};
use async_trait::async_trait;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For a machine that is up to answer.
const ANSWERS: Duration = Duration::from_secs(60);

/// What a machine is made of.
pub struct Parts {
    /// The connection to the SUT.
    pub sut: Link,
    /// Those to other roles.
    pub roles: BTreeMap<String, Link>,
    /// What boots a kernel once; `None`: what the machine has.
    pub loader: Option<Loader>,
    /// What makes the initial file system.
    pub initramfs: Initramfs,
    /// More kernel command line.
    pub cmdline: String,
    /// What switches it off and on.
    pub power: Option<PowerCommand>,
    /// Its console.
    pub console: Option<ConsoleSpec>,
    /// The run.
    pub run: String,
    /// Reads what it prints; `None`: its last line is the measurement.
    pub reader: Option<Reader>,
    /// The judged metric.
    pub metric: String,
    /// Name of the session.
    pub session: String,
    /// Its directory.
    pub owner: PathBuf,
    /// Ends of releases that stay on the machine: the endpoints'.
    pub keep: Vec<String>,
    /// What is known of the machine.
    pub notes: Notes,
}

/// See the module.
pub struct SshMachine {
    parts: Parts,
    /// How its kernels are seen, once it was reached.
    site: Option<Site>,
    console: Option<ConsoleCommand>,
    /// Boot ids of the session so far.
    seen: HashSet<String>,
    /// Whether what an earlier, killed run of the program left on the machines was ended.
    is_clean: bool,
    live: Option<Live>,
    /// Jobs so far; each role's last one.
    jobs: u64,
    last: BTreeMap<String, String>,
}

/// A boot that is up.
struct Live {
    boot: BootNo,
    /// By role: a load generator that restarts in the middle is another machine.
    boot_ids: BTreeMap<String, String>,
}

/// What is told of a boot as it goes.
struct Log {
    file: File,
}

impl Log {
    fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(path)? })
    }

    /// For what has no log of its own.
    fn none() -> Result<Self, Failure> {
        let path = Path::new("/dev/null");
        Self::create(path)
            .map_err(|error| Failure::infra(InfraKind::Other, format!("write {}: {error}", path.display())))
    }

    /// A log that cannot be written is no reason to lose a boot.
    fn note(&mut self, text: &str) {
        let _ = writeln!(self.file, "{text}");
    }
}

impl SshMachine {
    /// A machine with no live boot; `seen` holds the boot ids that the session's journal knows already.
    pub fn new(parts: Parts, seen: HashSet<String>) -> Self {
        Self {
            parts,
            site: None,
            console: None,
            seen,
            is_clean: false,
            live: None,
            jobs: 0,
            last: BTreeMap::new(),
        }
    }

    fn watch_console(&mut self) -> Result<(), Failure> {
        let Some(spec) = self.parts.console.take() else { return Ok(()) };
        let log = spec.log.display().to_string();
        let console = ConsoleCommand::start(spec)
            .map_err(|error| Failure::infra(InfraKind::Other, format!("write {log}: {error}")))?;
        self.console = Some(console);
        Ok(())
    }

    /// The machine as its kernels see it.
    async fn site(&mut self) -> Result<Site, Failure> {
        if let Some(site) = &self.site {
            return Ok(site.clone());
        }
        let no_kexec = self.parts.notes.known.no_kexec;
        let loader = match self.parts.loader.clone() {
            Some(loader) if !(no_kexec && matches!(loader, Loader::Kexec)) => loader,
            Some(_) | None => Loader::found(&mut self.parts.sut, "").await.map_err(InfraFailure::from)?,
        };
        let site = Site { initramfs: self.parts.initramfs, ..Site::new(loader) };
        self.site = Some(site.clone());
        Ok(site)
    }

    async fn look(&mut self) -> Result<Sight, Failure> {
        restart::look(&mut self.parts.sut).await.map_err(|error| InfraFailure::from(error).into())
    }

    async fn account(&mut self) -> Result<Identity, Failure> {
        match self.look().await? {
            Sight::Account { identity, .. } => Ok(identity),
            Sight::Nothing | Sight::Booting => {
                let reason =
                    "failed to look at the SUT: it lets us in, and does not tell who it is".to_owned();
                Err(Failure::infra(InfraKind::Unreachable, reason))
            }
        }
    }

    /// Marks what this session runs on machines that others may use too.
    fn mark(&self) -> String {
        let hash = blake3::hash(self.parts.owner.as_os_str().as_encoded_bytes()).to_hex();
        format!("sb-{}", &hash[..16])
    }

    fn note(&mut self, change: impl FnOnce(&mut Known)) -> Result<(), Failure> {
        self.parts.notes.change(change).map_err(|error| {
            Failure::infra(InfraKind::Other, format!("keep what is known of the machine: {error}"))
        })
    }

    fn rescue(&self) -> Result<Rescue, Failure> {
        self.parts.notes.known.rescue.clone().ok_or_else(|| {
            let reason = "failed to tell which kernel the machine has by itself: it runs one of ours, also after a restart; choose a \
                          kernel of yours as the default entry";
            Failure::infra(InfraKind::BrokenCommand, reason)
        })
    }
}

#[async_trait(?Send)]
impl Machine for SshMachine {
    async fn boot(&mut self, job: &BootJob) -> BootResult {
        self.off().await;
        match self.start_and_prove(job).await {
            Ok(record) => BootResult::Booted(record),
            Err(Failure::Commit(untestable)) => BootResult::Untestable(untestable),
            Err(Failure::Infra(failure)) => BootResult::Infra(failure),
        }
    }

    async fn run(&mut self, job: &RunJob) -> RunResult {
        let place = Place {
            step: job.step,
            artifact: job.artifact.clone(),
            boot: job.boot,
            dir: job.dir.clone(),
            repetition: job.repetition,
            log: job.log.clone(),
        };
        let script = self.parts.run.clone();
        let call = Call {
            role: SUT,
            what: "run",
            script: &script,
            place: &place,
            env: &[],
            deadline: job.deadline,
            log: &job.log,
            leaves_processes: false,
        };
        match self.call(call).await {
            Called::Done(output) => self.read(&output),
            Called::CannotMeasure(reason) => {
                RunResult::Untestable(Untestable { kind: UntestableKind::Declared, reason })
            }
            Called::Failed { reason, .. } => RunResult::Failed { reason },
            Called::Late => RunResult::Failed {
                reason: format!("the run command was not done within {:?} and was ended", job.deadline),
            },
            Called::Untestable(untestable) => RunResult::Untestable(untestable),
            Called::Invalid(reason) => RunResult::Invalid { reason },
            Called::Infra(failure) => RunResult::Infra(failure),
        }
    }

    /// The machine stays in the candidate: whatever restarts it brings its own kernel back, and the next candidate is
    /// booted from here without a detour.
    async fn off(&mut self) {
        self.live = None;
    }
}

#[async_trait(?Send)]
impl Ground for SshMachine {
    async fn call(&mut self, call: Call<'_>) -> Called {
        match self.do_call(&call).await {
            Ok(called) => called,
            Err(Failure::Commit(untestable)) => Called::Untestable(untestable),
            Err(Failure::Infra(failure)) => Called::Infra(failure),
        }
    }

    fn run_command(&self) -> &str {
        &self.parts.run
    }

    fn read(&self, output: &Output) -> RunResult {
        match &self.parts.reader {
            Some(reader) => read_by(reader, output, &self.parts.metric),
            None => read_last(&output.stdout, &self.parts.metric),
        }
    }

    fn boots_kernels(&self) -> bool {
        true
    }

    fn watches_the_kernel(&self) -> bool {
        false
    }

    fn outlives_boots(&self) -> bool {
        false
    }
}
