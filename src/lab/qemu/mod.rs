//! A machine under test that is a QEMU guest: a fresh one for each boot.
//!
//! Owns: the guest's root file system, the choice of the accelerator, the live guest. Must not do: judge a
//! number. Each boot is a new QEMU process that starts the artifact's `image` directly, with a root file
//! system made on the host (`initramfs`) and no disk, no network, no state of an earlier boot. The kernel's
//! console is the first serial port (`console`), commands travel over the second (`channel`).
//!
//! Invariants: a boot counts only when the running kernel read back as the artifact, under a boot id and a
//! token never used before (lab::identity); a number counts only when the kernel stayed whole while it was
//! made; every way to fail is a fact about the commit or ours (`failure`); nothing of a guest is left after
//! [`Machine::off`], a drop, or a killed program (lab::process). Tested in tests.rs with a program that plays
//! QEMU, and with a real kernel in tests/it/qemu_boot.rs.

mod accel;
mod channel;
mod cpio;
mod failure;
mod guest;
mod initramfs;
mod programs;
#[cfg(test)]
mod tests;

use self::accel::{Accel, Wanted};
use self::channel::{Answer, COMMAND_MAX};
use self::failure::{Failure, Phase, Trust};
use self::guest::{Guest, Log, Reply, Start};
use super::identity::Identity;
use super::shell::quoted;
use super::stage::{Call, Called, Ground};
use super::{BootJob, Machine, RunJob};
use crate::model::{
    BootNo, BootRecord, BootResult, InfraFailure, InfraKind, RunResult, Untestable, UntestableKind,
};
use crate::session::{Qemu, SUT};
use crate::workload::{Options, Output, Parser, Reader};
use async_trait::async_trait;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Name of the kernel image in an artifact's directory.
const IMAGE: &str = "image";

/// A guest that KVM really runs is up in a second.
const PROBE_DEADLINE: Duration = Duration::from_secs(20);

/// For a guest to kill what runs in it.
const INTERRUPT_GRACE: Duration = Duration::from_secs(20);

/// A plan that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QemuError {
    /// No such accelerator.
    #[error("use accelerator {0:?}: it is none of icount, tcg, kvm, auto")]
    Accel(String),
    /// No such parser.
    #[error("read the workload's output with {0:?}: it is none of {names}", names = parser_names())]
    Parser(String),
    /// The parser does not give what is judged.
    #[error("judge metric {metric:?}: the parser {parser:?} does not report it")]
    Metric {
        /// What is judged.
        metric: String,
        /// The parser's name.
        parser: String,
    },
    /// A command that does not fit into a request.
    #[error(
        "send the {what} command to the guest: it has {size} bytes, {COMMAND_MAX} is the limit; put it into a script among the programs"
    )]
    Command {
        /// "prepare" or "run".
        what: &'static str,
        /// Its size.
        size: usize,
    },
}

fn parser_names() -> String {
    Parser::ALL.map(Parser::name).join(", ")
}

/// See the module.
#[derive(Debug)]
pub struct QemuMachine {
    spec: Qemu,
    wanted: Wanted,
    reader: Reader,
    metric: String,
    owner: PathBuf,
    scratch: PathBuf,
    initramfs: Option<PathBuf>,
    /// Boot ids of this machine so far.
    seen: HashSet<String>,
    /// Whether a guest has come up here.
    proven: bool,
    live: Option<Live>,
}

/// A boot that is up.
#[derive(Debug)]
struct Live {
    boot: BootNo,
    guest: Guest,
}

impl QemuMachine {
    /// A machine of the session at `owner`, whose own existing directory is `scratch`. `metric` is what is
    /// judged.
    pub fn new(spec: Qemu, metric: &str, owner: &Path, scratch: &Path) -> Result<Self, QemuError> {
        let wanted = Wanted::named(&spec.accel).ok_or_else(|| QemuError::Accel(spec.accel.clone()))?;
        let parser = Parser::named(&spec.parser).ok_or_else(|| QemuError::Parser(spec.parser.clone()))?;
        if !parser.reports(metric) {
            return Err(QemuError::Metric { metric: metric.to_owned(), parser: spec.parser });
        }
        for (what, command) in [("prepare", &spec.prepare), ("run", &spec.run)] {
            if command.len() > COMMAND_MAX {
                return Err(QemuError::Command { what, size: command.len() });
            }
        }
        Ok(Self {
            spec,
            wanted,
            reader: Reader::new(parser, Options::default()),
            metric: metric.to_owned(),
            owner: owner.to_path_buf(),
            scratch: scratch.to_path_buf(),
            initramfs: None,
            seen: HashSet::new(),
            proven: false,
            live: None,
        })
    }

    /// Reads what runs print in this way instead of the spec's.
    pub fn read_by(self, reader: Reader) -> Self {
        Self { reader, ..self }
    }

    async fn start_and_prove(&mut self, job: &BootJob) -> Result<BootRecord, Failure> {
        let deadline = Instant::now() + job.deadline;
        let image = Path::new(&job.artifact.dir).join(IMAGE);
        if !image.is_file() {
            let commit = job.artifact.commit.short();
            let reason = format!("boot {commit}: there is no kernel image {}", image.display());
            return Err(Failure::infra(InfraKind::Missing, reason));
        }
        let mut log = create_log(&job.log)?;
        let initramfs = self.initramfs().await?;
        let accel = self.accel(&image, &initramfs).await?;
        let token = token(job.boot);
        let mut guest =
            self.start(accel, (&image, &initramfs), &token, &job.variant.sets.cmdline, &mut log)?;
        match self.prove(&mut guest, job, &token, deadline, &mut log).await {
            Ok(record) => {
                guest.freeze();
                self.live = Some(Live { boot: job.boot, guest });
                Ok(record)
            }
            Err(failure) => {
                guest.stop().await;
                Err(failure)
            }
        }
    }

    /// Waits until the guest is up, and holds it against what was started.
    async fn prove(
        &mut self,
        guest: &mut Guest,
        job: &BootJob,
        token: &str,
        deadline: Instant,
        log: &mut Log,
    ) -> Result<BootRecord, Failure> {
        let failed = |error: io::Error| log_failed(&job.log, &error);
        let reply = guest.greeting(deadline, log).await.map_err(failed)?;
        let greeting = answered(reply, guest, Phase::Boot(self.trust()))?;
        let identity = Identity::parse(&greeting.stdout);
        let wrong = |reason| Failure::infra(InfraKind::WrongKernel, reason);
        identity.check(&job.artifact, &format!("sb.boot={token}"), &self.seen).map_err(wrong)?;
        self.seen.insert(identity.boot_id.clone());
        if let Some(failure) =
            identity.cpus.and_then(|cpus| failure::too_few(cpus, self.spec.cpus, self.proven))
        {
            return Err(failure);
        }
        self.proven = true;
        if !self.spec.prepare.is_empty() {
            log.note(&format!("prepare: {}", self.spec.prepare)).map_err(failed)?;
            let reply = guest.command(&self.spec.prepare, deadline, log).await.map_err(failed)?;
            let answer = answered(reply, guest, Phase::Boot(Trust::Proven))?;
            log_answer(&answer, log).map_err(failed)?;
            if answer.status != 0 {
                return Err(refused("prepare", &answer).unwrap_or_else(|reason| {
                    Failure::commit(UntestableKind::Boot, format!("the prepare command failed: {reason}"))
                }));
            }
        }
        match failure::hurt(&guest.console) {
            Some(failure) => Err(failure),
            None => Ok(BootRecord {
                boot_id: identity.boot_id,
                release: identity.release,
                cmdline: identity.cmdline,
                ..BootRecord::default()
            }),
        }
    }

    fn trust(&self) -> Trust {
        match (self.proven, self.wanted) {
            (true, _) => Trust::Proven,
            (false, Wanted::This(Accel::Kvm)) => Trust::Suspect,
            (false, Wanted::This(Accel::Icount | Accel::Tcg) | Wanted::Auto) => Trust::Untried,
        }
    }

    /// The root file system, made once.
    async fn initramfs(&mut self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.initramfs {
            return Ok(path.clone());
        }
        let search = std::env::var_os("PATH").unwrap_or_default();
        let path = initramfs::make(&self.spec.programs, &search, &self.owner, &self.scratch).await?;
        self.initramfs = Some(path.clone());
        Ok(path)
    }

    /// The accelerator; where the plan leaves it open, the session's choice, by a probe if there is none yet.
    async fn accel(&mut self, image: &Path, initramfs: &Path) -> Result<Accel, Failure> {
        if let Wanted::This(accel) = self.wanted {
            return Ok(accel);
        }
        let accel = match accel::kept(&self.owner) {
            Some(accel) => accel,
            None => {
                let probed = self.probe_kvm(image, initramfs).await?;
                accel::keep(if probed { Accel::Kvm } else { Accel::Icount }, &self.owner)?
            }
        };
        self.wanted = Wanted::This(accel);
        Ok(accel)
    }

    /// Whether a guest boots with KVM. Its device may be there and answer while every guest hangs.
    async fn probe_kvm(&self, image: &Path, initramfs: &Path) -> Result<bool, Failure> {
        if std::fs::File::options().read(true).write(true).open("/dev/kvm").is_err() {
            return Ok(false);
        }
        let path = self.scratch.join("kvm-probe.log");
        let mut log = create_log(&path)?;
        let mut guest = self.start(Accel::Kvm, (image, initramfs), &token(BootNo(0)), "", &mut log)?;
        let reply = guest.greeting(Instant::now() + PROBE_DEADLINE, &mut log).await;
        guest.stop().await;
        match reply.map_err(|error| log_failed(&path, &error))? {
            Reply::Answer(_) => Ok(true),
            Reply::Gone(_) | Reply::Silent | Reply::Broken => Ok(false),
        }
    }

    fn start(
        &self,
        accel: Accel,
        (image, initramfs): (&Path, &Path),
        token: &str,
        more_cmdline: &str,
        log: &mut Log,
    ) -> Result<Guest, Failure> {
        let cmdline = format!("{} {more_cmdline}", self.spec.cmdline);
        let start = Start {
            program: &self.spec.program,
            accel,
            cpus: self.spec.cpus,
            memory_mib: self.spec.memory_mib,
            kernel: image,
            initramfs,
            token,
            cmdline: cmdline.trim(),
        };
        let program = &self.spec.program;
        Guest::start(&start, &self.owner, &self.scratch.join("qemu.stderr"), log).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                let reason = format!("start {program}: it is not there; {}", programs::how_to_get(program));
                Failure::infra(InfraKind::Missing, reason)
            } else if error.kind() == io::ErrorKind::PermissionDenied {
                Failure::infra(InfraKind::BrokenCommand, format!("start {program}: {error}"))
            } else {
                Failure::io("start", Path::new(program), &error)
            }
        })
    }

    /// Runs a script in the guest.
    async fn call_once(
        guest: &mut Guest,
        title: &str,
        script: &str,
        within: Duration,
        path: &Path,
    ) -> Result<Called, Failure> {
        let failed = |error: io::Error| log_failed(path, &error);
        let mut log = create_log(path)?;
        guest.read_console(&mut log).map_err(failed)?;
        // A kernel that died between the runs is found out below; one that complained did not do it in this
        // run.
        if !guest.console.panicked() {
            guest.console.forget();
        }
        log.note(title).map_err(failed)?;
        let deadline = Instant::now() + within;
        let mut reply = guest.command(script, deadline, &mut log).await.map_err(failed)?;
        if matches!(reply, Reply::Silent) && !guest.console.panicked() {
            let grace = Instant::now() + INTERRUPT_GRACE;
            match guest.interrupt(grace, &mut log).await.map_err(failed)? {
                Some(worse) => reply = worse,
                None => return Ok(Called::Late),
            }
        }
        let answer = answered(reply, guest, Phase::Run)?;
        log_answer(&answer, &mut log).map_err(failed)?;
        ended(answer, guest)
    }

    /// A script in the live boot. Taken out meanwhile, so that a dropped future takes the guest with it.
    async fn call_live(
        &mut self,
        boot: BootNo,
        title: &str,
        script: &str,
        within: Duration,
        path: &Path,
    ) -> Result<Called, Failure> {
        let mut live = match self.live.take() {
            Some(live) if live.boot == boot => live,
            other => {
                self.live = other;
                let reason = format!("run in boot {boot}: it is not up; boot again");
                return Err(Failure::infra(InfraKind::Unreachable, reason));
            }
        };
        live.guest.thaw();
        match Self::call_once(&mut live.guest, title, script, within, path).await {
            Ok(called) => {
                live.guest.freeze();
                self.live = Some(live);
                Ok(called)
            }
            Err(failure) => {
                live.guest.stop().await;
                Err(failure)
            }
        }
    }

    fn read_output(&self, output: &Output) -> RunResult {
        match self.reader.parse(&self.metric, output) {
            Ok(metrics) => RunResult::measured(metrics),
            Err(invalid) => RunResult::Invalid { reason: invalid.reason },
        }
    }
}

/// What a script that ended by itself comes to.
fn ended(answer: Answer, guest: &Guest) -> Result<Called, Failure> {
    if let Some(splat) = guest.console.worst() {
        return match failure::dead(&guest.console) {
            Some(failure) => Err(failure),
            None => Ok(Called::Invalid(format!("kernel splat during the run: {}", splat.line))),
        };
    }
    // The net below the console: its level may hide a warning.
    if let (Some(before), Some(after)) = (answer.taint_before, answer.taint_after)
        && before != after
    {
        let reason = format!("kernel splat during the run: its taint went from {before} to {after}");
        return Ok(Called::Invalid(reason));
    }
    if answer.status != 0 {
        return refused("run", &answer)
            .map_or_else(|reason| Ok(Called::Failed { reason, stderr: answer.stderr.clone() }), Err);
    }
    if answer.stdout_size > answer.stdout.len() as u64 {
        let reason = format!("it printed {} bytes, more than is kept", answer.stdout_size);
        return Ok(Called::Invalid(reason));
    }
    Ok(Called::Done(Output { stdout: answer.stdout, stderr: answer.stderr, status: answer.status }))
}

#[async_trait(?Send)]
impl Machine for QemuMachine {
    async fn boot(&mut self, job: &BootJob) -> BootResult {
        self.off().await;
        self.start_and_prove(job).await.map_or_else(BootResult::from, BootResult::Booted)
    }

    async fn run(&mut self, job: &RunJob) -> RunResult {
        let title = format!("run {} of boot {}: {}", job.repetition, job.boot, self.spec.run);
        let script = self.spec.run.clone();
        match self.call_live(job.boot, &title, &script, job.deadline, &job.log).await {
            Ok(Called::Done(output)) => self.read_output(&output),
            Ok(Called::Failed { reason, .. }) => RunResult::Failed { reason },
            Ok(Called::Late) => RunResult::Failed {
                reason: format!("it outlived its deadline of {} s", job.deadline.as_secs()),
            },
            Ok(Called::Invalid(reason)) => RunResult::Invalid { reason },
            Ok(Called::CannotMeasure(reason)) => {
                RunResult::Untestable(Untestable { kind: UntestableKind::Declared, reason })
            }
            Ok(Called::Untestable(untestable)) => RunResult::Untestable(untestable),
            Ok(Called::Infra(failure)) => RunResult::Infra(failure),
            Err(failure) => failure.into(),
        }
    }

    async fn off(&mut self) {
        if let Some(live) = self.live.take() {
            live.guest.stop().await;
        }
    }
}

#[async_trait(?Send)]
impl Ground for QemuMachine {
    async fn call(&mut self, call: Call<'_>) -> Called {
        if call.role != SUT {
            let reason =
                format!("reach the role {} from a guest: it has no way to another machine", call.role);
            return Called::Infra(InfraFailure { kind: InfraKind::BrokenCommand, reason });
        }
        let place = call.place;
        let title = format!("{} in boot {}", call.what, place.boot);
        let mut env: Vec<String> = vec![format!("export SB_ROLE={SUT} SB_BOOT={}", place.boot)];
        env.extend(call.env.iter().map(|(name, value)| format!("export {name}={}", quoted(value))));
        let script = format!("{}\n{}", env.join("\n"), call.script);
        if script.len() > COMMAND_MAX {
            let what = call.what;
            let size = script.len();
            let reason =
                format!("send the {what} to the guest: it has {size} bytes, {COMMAND_MAX} is the limit");
            return Called::Infra(InfraFailure { kind: InfraKind::BrokenCommand, reason });
        }
        match self.call_live(place.boot, &title, &script, call.deadline, call.log).await {
            Ok(called) => called,
            Err(Failure::Commit(untestable)) => Called::Untestable(untestable),
            Err(Failure::Infra(failure)) => Called::Infra(failure),
        }
    }

    fn run_command(&self) -> &str {
        &self.spec.run
    }

    fn read(&self, output: &Output) -> RunResult {
        self.read_output(output)
    }

    /// A guest is thrown away.
    fn boots_kernels(&self) -> bool {
        true
    }

    fn watches_the_kernel(&self) -> bool {
        true
    }

    fn outlives_boots(&self) -> bool {
        false
    }
}

/// The answer, or whose fault it is that there is none.
fn answered(reply: Reply, guest: &Guest, phase: Phase) -> Result<Answer, Failure> {
    match reply {
        Reply::Answer(answer) => Ok(answer),
        Reply::Gone(ended) => Err(failure::gone(ended, &guest.console, &guest.stderr(), phase)),
        Reply::Silent => Err(failure::silent(&guest.console, phase)),
        Reply::Broken => Err(Failure::infra(
            InfraKind::Unreachable,
            "read the guest's answer: it came damaged every time; does something in the guest use /dev/ttyS1?",
        )),
    }
}

/// What an exit status with a meaning says (as for commands on this side); else the reason in words.
fn refused(what: &str, answer: &Answer) -> Result<Failure, String> {
    let stderr = String::from_utf8_lossy(&answer.stderr);
    let words =
        stderr.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing on stderr");
    match answer.status {
        75 => {
            Ok(Failure::infra(InfraKind::TryAgain, format!("{what} in the guest: exit status 75: {words}")))
        }
        125 => Ok(Failure::commit(UntestableKind::Declared, format!("the {what} command says so: {words}"))),
        status @ (126 | 127) => Ok(Failure::infra(
            InfraKind::BrokenCommand,
            format!("{what} in the guest: exit status {status}: {words}; is the program among `programs`?"),
        )),
        status @ 129..=192 => Err(format!("killed by signal {}: {words}", status - 128)),
        status => Err(format!("exit status {status}: {words}")),
    }
}

fn log_answer(answer: &Answer, log: &mut Log) -> io::Result<()> {
    for (name, bytes, size) in
        [("stdout", &answer.stdout, answer.stdout_size), ("stderr", &answer.stderr, answer.stderr_size)]
    {
        let kept = bytes.len() as u64;
        let cut = if kept < size { format!(", cut after {kept}") } else { String::new() };
        log.note(&format!("{name}, {size} bytes{cut}"))?;
        log.write(bytes)?;
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            log.write(b"\n")?;
        }
    }
    log.note(&format!("exit status {}", answer.status))
}

fn create_log(path: &Path) -> Result<Log, Failure> {
    Log::create(path).map_err(|error| log_failed(path, &error))
}

fn log_failed(path: &Path, error: &io::Error) -> Failure {
    Failure::io("write the log", path, error)
}

/// Marks one start of one guest; as long every time, so that it never changes what a guest has to read.
fn token(boot: BootNo) -> String {
    format!("{:08}-{:016x}", boot.0, rand::random::<u64>())
}
