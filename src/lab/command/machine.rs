//! [`Machine`] over the boot and run commands.

use super::call::{Answer, LeftBehind, absolute, infra};
use super::reading::{
    first_line, last_words, read_by, read_last, read_measurement, read_output, too_much, whole_output,
};
use super::role::{EXIT, end_script, far_script, told_exit};
use super::site::{Calling, SharedSite, with_suffix};
use crate::lab::shell::quoted;
use crate::lab::stage::{self, Called, Ground};
use crate::lab::{BootJob, Machine, RunJob};
use crate::model::{
    Artifact, BootRecord, BootResult, InfraFailure, InfraKind, RunResult, Untestable, UntestableKind,
};
use crate::workload::{Output, Reader};
use async_trait::async_trait;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::time::Duration;

/// The user's commands for a machine.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    /// Boot command; `None`: each run counts as a boot of its own.
    pub boot: Option<String>,
    /// Run command.
    pub run: String,
    /// How a shell on each role is started; a role that is not in it is here.
    pub roles: BTreeMap<String, String>,
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
    /// Name of the live boot's variant.
    variant: String,
    /// What the live boot left running on this host.
    live: Option<LeftBehind>,
    /// Calls of roles so far.
    calls: u64,
}

impl CommandMachine {
    /// A machine with no live boot. `metric` is the judged one; `seen` holds the boot ids that the session's journal
    /// knows already.
    pub fn new(site: SharedSite, commands: Commands, metric: String, seen: HashSet<String>) -> Self {
        Self { site, commands, metric, reader: None, seen, variant: String::new(), live: None, calls: 0 }
    }

    /// Reads what runs print in this way, instead of taking its last line for the measurement.
    pub fn read_by(self, reader: Reader) -> Self {
        Self { reader: Some(reader), ..self }
    }

    #[cfg(test)]
    pub(in crate::lab) fn replace_run(&mut self, run: &str) {
        run.clone_into(&mut self.commands.run);
    }

    /// Both streams of a call that has ended well, without what the far side of a role told.
    fn output(log: &Path, err: &Path, is_far: bool) -> Called {
        match whole_output(log, err) {
            Ok(Some(mut output)) => {
                if let Some((_, stderr)) = told_exit(&output.stderr).filter(|_| is_far) {
                    output.stderr = stderr;
                }
                Called::Done(output)
            }
            Ok(None) => Called::Invalid(too_much()),
            Err(error) => Called::Infra(infra(&format!("read the output {}", log.display()), &error)),
        }
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
        self.variant.clone_from(&job.variant.name);
        let shared = self.site.clone();
        let mut site = shared.lock().await;
        // Step numbers are unique in a session, over interruptions too.
        let generated = format!("{}-boot-{}-step-{}", site.session(), job.boot, job.step);
        let Some(script) = self.commands.boot.clone() else {
            let record = BootRecord { boot_id: generated, ..BootRecord::default() };
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
            mark: None,
            leaves_processes: true,
        };
        let mut env = vec![
            ("SB_BOOT".to_owned(), job.boot.to_string().into()),
            ("SB_BOOT_DIR".to_owned(), dir.clone().into()),
            ("SB_VARIANT".to_owned(), self.variant.clone().into()),
        ];
        let cmdline = &job.variant.sets.cmdline;
        if !cmdline.is_empty() {
            env.push(("SB_CMDLINE".to_owned(), cmdline.into()));
        }
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
            mark: None,
            leaves_processes: false,
        };
        let env = vec![
            ("SB_BOOT".to_owned(), job.boot.to_string().into()),
            ("SB_BOOT_DIR".to_owned(), absolute(&job.dir).into()),
            ("SB_REPETITION".to_owned(), job.repetition.to_string().into()),
            ("SB_VARIANT".to_owned(), self.variant.clone().into()),
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

#[async_trait(?Send)]
impl Ground for CommandMachine {
    async fn call(&mut self, call: stage::Call<'_>) -> Called {
        let shared = self.site.clone();
        let mut site = shared.lock().await;
        let place = call.place;
        if let Err(failure) = site.ready(place.step, &place.artifact, call.log).await {
            return Called::Infra(failure);
        }
        let boot_dir = absolute(&place.dir);
        if call.leaves_processes {
            // Only where there is none: one that is dropped ends what it stands for.
            self.live.get_or_insert_with(|| LeftBehind::of_boot(site.owner(), boot_dir.as_os_str()));
        }
        self.calls += 1;
        // Two sessions may use one machine.
        let session = blake3::hash(site.owner().as_os_str().as_encoded_bytes()).to_hex();
        let mark = format!("{}-{}-{}", &session[..16], place.step, self.calls);
        let reached = self.commands.roles.get(call.role).map(String::as_str);
        let far = match reached.map(|reached| Far::new(reached, &call, &mark)).transpose() {
            Ok(far) => far,
            Err(error) => {
                let doing = format!("write the script of the {} beside {}", call.what, call.log.display());
                return Called::Infra(infra(&doing, &error));
            }
        };
        let err = with_suffix(call.log, ".err");
        let mut env = vec![
            ("SB_BOOT".to_owned(), place.boot.to_string().into()),
            ("SB_BOOT_DIR".to_owned(), boot_dir.into()),
            ("SB_ROLE".to_owned(), call.role.to_owned().into()),
            ("SB_VARIANT".to_owned(), self.variant.clone().into()),
        ];
        if place.repetition > 0 {
            env.push(("SB_REPETITION".to_owned(), place.repetition.to_string().into()));
        }
        env.extend(call.env.iter().map(|(name, value)| (name.clone(), value.clone().into())));
        let calling = |mark, script, deadline, out, err| Calling {
            mark: Some(mark),
            step: place.step,
            what: call.what,
            script,
            deadline,
            out,
            err,
            leaves_processes: call.leaves_processes,
        };
        let artifacts = site.artifacts_dir(&place.artifact);
        let script = far.as_ref().map_or(call.script, |far| &far.start);
        let near = site.call(calling(mark.clone(), script, call.deadline, call.log, &err));
        let answer = near.with(&place.artifact.commit, &artifacts, env.clone()).answer().await;
        let lost =
            far.is_some() && matches!(answer, Answer::Done | Answer::Failed(_) | Answer::CannotMeasure(_));
        let stderr = std::fs::read(&err).unwrap_or_default();
        if lost && told_exit(&stderr).is_none() {
            let reason = format!(
                "lost the role {} during the {}: its shell did not tell how it ended{}",
                call.role,
                call.what,
                last_words(&err, EXIT).map_or(String::new(), |words| format!(": {words}"))
            );
            return Called::Infra(InfraFailure { kind: InfraKind::Unreachable, reason });
        }
        match (answer, &far) {
            (Answer::Done, _) => Self::output(call.log, &err, far.is_some()),
            (Answer::CannotMeasure(reason), _) => Called::CannotMeasure(reason),
            (Answer::Failed(reason), _) => Called::Failed { reason, stderr },
            (Answer::Late(_), None) => Called::Late,
            (Answer::Late(_), Some(far)) => {
                let log = with_suffix(call.log, ".end");
                let end = site.call(calling(format!("{mark}-end"), &far.end, END_DEADLINE, &log, &log));
                match end.with(&place.artifact.commit, &artifacts, env).answer().await {
                    Answer::Done => Called::Late,
                    Answer::CannotMeasure(_) | Answer::Failed(_) | Answer::Late(_) | Answer::Infra(_) => {
                        let reason = format!(
                            "the {} outlived its deadline on {}, and could not be ended there (see {})",
                            call.what,
                            call.role,
                            log.display()
                        );
                        Called::Infra(InfraFailure { kind: InfraKind::Unreachable, reason })
                    }
                }
            }
            (Answer::Infra(failure), _) => Called::Infra(failure),
        }
    }

    fn run_command(&self) -> &str {
        &self.commands.run
    }

    fn read(&self, output: &Output) -> RunResult {
        match &self.reader {
            Some(reader) => read_by(reader, output, &self.metric),
            None => read_last(&output.stdout, &self.metric),
        }
    }

    fn boots_kernels(&self) -> bool {
        self.commands.boot.is_some()
    }

    fn watches_the_kernel(&self) -> bool {
        false
    }

    fn outlives_boots(&self) -> bool {
        true
    }
}

/// For a role to end what a call left on it.
const END_DEADLINE: Duration = Duration::from_secs(60);

/// The commands that start and end a script on a role.
struct Far {
    start: String,
    end: String,
}

impl Far {
    /// Writes the scripts beside the call's log, where they can be looked at later.
    fn new(reached: &str, call: &stage::Call<'_>, mark: &str) -> io::Result<Self> {
        let place = call.place;
        let mut env: Vec<(String, String)> = vec![
            ("SB_ROLE".to_owned(), call.role.to_owned()),
            ("SB_COMMIT".to_owned(), place.artifact.commit.to_string()),
            ("SB_BOOT".to_owned(), place.boot.to_string()),
            ("SB_REPETITION".to_owned(), place.repetition.to_string()),
        ];
        env.extend(call.env.iter().cloned());
        let (start, end) = (with_suffix(call.log, ".sh"), with_suffix(call.log, ".end.sh"));
        std::fs::write(&start, far_script(call.script, mark, &env))?;
        std::fs::write(&end, end_script(mark))?;
        // In braces: of a pipeline the first command is to read it, not the last.
        let command = |script: &Path| {
            let script = quoted(&absolute(script).display().to_string());
            format!("{{ {reached}\n}} <{script}")
        };
        Ok(Self { start: command(&start), end: command(&end) })
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
    let cmdline = read("cmdline")?.unwrap_or_default();
    Ok(BootRecord { boot_id, release, cmdline, ..BootRecord::default() })
}
