//! [`Machine`] over the boot and run commands.

use super::call::{Answer, LeftBehind, absolute, infra};
use super::reading::{first_line, read_measurement, read_output};
use super::site::{Calling, SharedSite, with_suffix};
use crate::lab::{BootJob, Machine, RunJob};
use crate::model::{
    Artifact, BootRecord, BootResult, InfraFailure, InfraKind, RunResult, Untestable, UntestableKind,
};
use crate::workload::Reader;
use async_trait::async_trait;
use std::collections::HashSet;
use std::path::Path;

/// The user's commands for a machine.
#[derive(Debug, Clone)]
pub struct Commands {
    /// Boot command; `None`: each run counts as a boot of its own.
    pub boot: Option<String>,
    /// Run command.
    pub run: String,
}

/// A machine that the user's commands drive.
pub struct CommandMachine {
    site: SharedSite,
    commands: Commands,
    /// Name of the judged metric.
    metric: String,
    /// Reads the run's output; `None`: its last line is the measurement.
    reader: Option<Reader>,
    /// Boot ids of the session so far.
    seen: HashSet<String>,
    /// What the live boot left running on this host.
    live: Option<LeftBehind>,
}

impl CommandMachine {
    /// A machine with no live boot. `metric` is the judged one; `seen` holds the boot ids that the session's journal
    /// knows already.
    pub fn new(site: SharedSite, commands: Commands, metric: String, seen: HashSet<String>) -> Self {
        Self { site, commands, metric, reader: None, seen, live: None }
    }

    /// Reads what runs print in this way, instead of taking its last line for the measurement.
    pub fn read_by(self, reader: Reader) -> Self {
        Self { reader: Some(reader), ..self }
    }

    fn booted(&mut self, record: BootRecord) -> BootResult {
        self.seen.insert(record.boot_id.clone());
        BootResult::Booted(record)
    }
}

#[async_trait(?Send)]
impl Machine for CommandMachine {
    async fn boot(&mut self, job: &BootJob) -> BootResult {
        self.off().await;
        let shared = self.site.clone();
        let mut site = shared.lock().await;
        // Step numbers are unique in a session, over interruptions too.
        let generated = format!("{}-boot-{}-step-{}", site.session(), job.boot, job.step);
        let Some(script) = self.commands.boot.clone() else {
            let record = BootRecord { boot_id: generated, release: String::new(), cmdline: String::new() };
            return self.booted(record);
        };
        if let Err(failure) = site.ready(job.step, &job.artifact, &job.log).await {
            return BootResult::Infra(failure);
        }
        let dir = absolute(&job.dir);
        let calling = Calling {
            step: job.step,
            what: "boot",
            script: &script,
            deadline: job.deadline,
            out: &job.log,
            err: &job.log,
        };
        let env = vec![("SB_BOOT", job.boot.to_string().into()), ("SB_BOOT_DIR", dir.clone().into())];
        let call = site.call(calling).with(&job.artifact.commit, &site.artifacts_dir(&job.artifact), env);
        let untestable = |kind, reason| BootResult::Untestable(Untestable { kind, reason });
        match call.answer().await {
            Answer::Done => {
                // Held from here on, so that what runs is ended whatever the identity says.
                self.live = Some(LeftBehind::of_boot(site.owner(), dir.as_os_str()));
                match identify(&dir, generated, &job.artifact, &self.seen) {
                    Ok(record) => self.booted(record),
                    Err(failure) => {
                        self.live = None;
                        BootResult::Infra(failure)
                    }
                }
            }
            Answer::CannotMeasure(reason) => untestable(UntestableKind::Declared, reason),
            Answer::Failed(reason) => untestable(UntestableKind::Boot, reason),
            Answer::Late(deadline) => untestable(UntestableKind::Boot, format!("not up within {deadline:?}")),
            Answer::Infra(failure) => BootResult::Infra(failure),
        }
    }

    async fn run(&mut self, job: &RunJob) -> RunResult {
        let mut site = self.site.lock().await;
        if let Err(failure) = site.ready(job.step, &job.artifact, &job.log).await {
            return RunResult::Infra(failure);
        }
        let err = with_suffix(&job.log, ".err");
        let calling = Calling {
            step: job.step,
            what: "run",
            script: &self.commands.run,
            deadline: job.deadline,
            out: &job.log,
            err: &err,
        };
        let env = vec![
            ("SB_BOOT", job.boot.to_string().into()),
            ("SB_BOOT_DIR", absolute(&job.dir).into()),
            ("SB_REPETITION", job.repetition.to_string().into()),
        ];
        let call = site.call(calling).with(&job.artifact.commit, &site.artifacts_dir(&job.artifact), env);
        match call.answer().await {
            Answer::Done => {
                let read = match &self.reader {
                    None => read_measurement(&job.log, &self.metric),
                    Some(reader) => read_output(&job.log, &err, reader, &self.metric),
                };
                read.unwrap_or_else(|error| {
                    RunResult::Infra(infra(&format!("read the run's output {}", job.log.display()), &error))
                })
            }
            Answer::CannotMeasure(reason) => {
                RunResult::Untestable(Untestable { kind: UntestableKind::Declared, reason })
            }
            Answer::Failed(reason) => RunResult::Failed { reason },
            Answer::Late(deadline) => RunResult::Failed {
                reason: format!("the run command was not done within {deadline:?} and was ended"),
            },
            Answer::Infra(failure) => RunResult::Infra(failure),
        }
    }

    async fn off(&mut self) {
        self.live = None;
    }
}

/// Reads back what the boot command wrote about the kernel that runs, and holds it against what should run.
fn identify(
    dir: &Path,
    generated: String,
    artifact: &Artifact,
    seen: &HashSet<String>,
) -> Result<BootRecord, InfraFailure> {
    let read = |name: &str| {
        let path = dir.join(name);
        first_line(&path).map_err(|error| infra(&format!("read {}", path.display()), &error))
    };
    let wrong = |reason| Err(InfraFailure { kind: InfraKind::WrongKernel, reason });
    let boot_id = match read("boot_id")? {
        None => generated,
        Some(id) if id.is_empty() => return wrong("the boot command wrote an empty boot_id".to_owned()),
        Some(id) if seen.contains(&id) => {
            return wrong(format!("boot id {id} was seen before: the machine did not start anew"));
        }
        Some(id) => id,
    };
    let release = read("release")?.unwrap_or_default();
    let build_id = read("build_id")?.unwrap_or_default();
    for (what, runs, wanted) in
        [("release", &release, &artifact.release), ("build id", &build_id, &artifact.build_id)]
    {
        if !runs.is_empty() && !wanted.is_empty() && runs != wanted {
            return wrong(format!("the kernel that runs has {what} {runs:?}, the candidate {wanted:?}"));
        }
    }
    Ok(BootRecord { boot_id, release, cmdline: read("cmdline")?.unwrap_or_default() })
}
