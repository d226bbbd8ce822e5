//! What is done around a run: tunables, steps on roles, settling, the canary, what shows that the SUT is the limit.
//!
//! Owns: the order of it in a boot, and what a failure of each part says about whom. Must not do: start a process or boot
//! a kernel (that is the [`Ground`] it stands on), judge a number. Invariants: a run counts only when every tunable read
//! back as it was set, before it and after it; what a load generator does wrong is never the commit's; a step that waits
//! for a service is tried until its own deadline, never longer. Tested in tests.rs over real shells.

mod checks;
mod fingerprint;
mod look;
mod perf;
#[cfg(test)]
mod tests;
mod trouble;
mod undo;
mod watch;
#[cfg(test)]
mod watch_tests;

pub use self::look::{ELAPSED, SCHEDSTAT};
pub use self::perf::PERF;

use self::checks::{CPU_TIMES, CPUS, cpus, idle_part};
use self::trouble::{Trouble, blamed, done, ours, words};
use super::{BootJob, Machine, RunJob};
use crate::model::{
    Artifact, BootNo, BootResult, InfraFailure, InfraKind, RunResult, StepId, Untestable, UntestableKind,
};
use crate::session::environment::Fields;
use crate::session::{LDG, Phase, SUT, Setup, Step};
use crate::workload::Output;
use crate::workload::tunables::{Settings, Tunables, Wrong, declared_invalid};
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// For the short scripts of our own: reading a file takes no time, but a machine under load answers late.
const OWN_DEADLINE: Duration = Duration::from_secs(60);

/// How often it is looked whether the SUT has settled.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Name under which the canary's number is recorded with a boot.
pub const CANARY: &str = "canary";

/// Name of the metric that tells how much of the SUT's CPU time was idle during a run, in percent.
pub const IDLE: &str = "sut.idle_percent";

/// Where a call belongs.
#[derive(Debug, Clone)]
pub struct Place {
    /// Step of the journal.
    pub step: StepId,
    /// What runs.
    pub artifact: Artifact,
    /// The live boot.
    pub boot: BootNo,
    /// Its directory.
    pub dir: PathBuf,
    /// Index of the run, from 1; 0 outside of one.
    pub repetition: u32,
    /// The log of the step; calls beside it put a word behind its name.
    pub log: PathBuf,
}

/// A script to run on a role of the live boot.
#[derive(Debug)]
pub struct Call<'a> {
    /// The role.
    pub role: &'a str,
    /// Its name for messages ("run", "step schema").
    pub what: &'a str,
    /// Run by `sh -c`.
    pub script: &'a str,
    /// Where it belongs.
    pub place: &'a Place,
    /// More environment.
    pub env: &'a [(String, String)],
    /// When to give up.
    pub deadline: Duration,
    /// File for its standard output; that for standard error has ".err" behind it.
    pub log: &'a Path,
    /// Whether what it leaves in the background may live until the boot is over.
    pub leaves_processes: bool,
}

/// How a call ended.
#[derive(Debug)]
pub enum Called {
    /// With exit status 0.
    Done(Output),
    /// It says that the commit cannot be measured (exit 125).
    CannotMeasure(String),
    /// With another status; the words, and its standard error.
    Failed {
        /// Why.
        reason: String,
        /// What it printed there.
        stderr: Vec<u8>,
    },
    /// It outlived its deadline; nothing of it runs any more.
    Late,
    /// Its kernel died.
    Untestable(Untestable),
    /// It ended, but the kernel complained meanwhile.
    Invalid(String),
    /// We failed.
    Infra(InfraFailure),
}

/// What boots kernels and reaches roles.
#[async_trait(?Send)]
pub trait Ground: Machine {
    /// Runs a script on a role.
    async fn call(&mut self, call: Call<'_>) -> Called;

    /// The command that is a run.
    fn run_command(&self) -> &str;

    /// Reads what a run printed.
    fn read(&self, output: &Output) -> RunResult;

    /// Whether a boot starts a kernel of the candidate's.
    fn boots_kernels(&self) -> bool;

    /// Whether it reads the kernel's console itself: a call in which the kernel complained does not end well.
    fn watches_the_kernel(&self) -> bool;

    /// Whether the machine is the same one after the boot, so that what was set in it must be put back.
    fn outlives_boots(&self) -> bool;
}

/// A machine with everything that a profile asks for around a run.
pub struct Stage<G> {
    ground: G,
    setup: Setup,
    /// Those of the live boot's variant.
    tunables: Tunables,
    /// Where it is kept that a step was done for good.
    done: PathBuf,
    /// The canary's numbers in the session's boots so far.
    canaries: Vec<f64>,
    live: Option<Live>,
}

/// The SUT's CPU times from which on a run's idle time counts.
enum Times {
    /// As the run began.
    Now(Output),
    /// They are put into this directory of the SUT when the load is up.
    Later { dir: String, ramp_up_s: u64 },
}

/// A boot that is up.
struct Live {
    place: Place,
    /// What every call finds in its environment.
    env: Vec<(String, String)>,
    /// What the boot's variant adds to the kernel's command line.
    cmdline: String,
    /// Whether it is known how its tunables read before they were set.
    is_undoable: bool,
    /// Whether the SUT was looked at as its variant makes it.
    is_looked_at: bool,
    /// What belongs to every run of it.
    settings: Settings,
    /// What the machines are like.
    environment: Fields,
    /// What the SUT is like, as far as that can change while the boot lasts.
    quick: Fields,
}

impl<G: Ground> Stage<G> {
    /// Puts `setup` around what `ground` does. `done` is a directory of this machine in the session, made when it is
    /// needed; `canaries` are the numbers that the session's journal knows already.
    pub fn new(ground: G, setup: Setup, done: PathBuf, canaries: Vec<f64>) -> Self {
        let tunables = Tunables::of(&setup.variant);
        Self { ground, setup, tunables, done, canaries, live: None }
    }

    async fn prepare(&mut self, live: &mut Live) -> Result<(), Trouble> {
        self.undo(live).await?;
        self.count_cpus(live).await?;
        if self.setup.canary.is_some() {
            self.settle(live).await?;
            self.look_at_canary(live).await?;
        }
        self.steps(live, &[Phase::Once, Phase::Boot]).await?;
        // Last: as the runs will find it.
        self.fingerprint(live).await
    }

    /// SB_SUT_CPUS and SB_LDG_CPUS: a load is sized by the machine that is there.
    async fn count_cpus(&mut self, live: &mut Live) -> Result<(), Trouble> {
        let mut of_ldg = 0;
        let others = self.setup.roles.keys().filter(|role| *role != SUT).cloned();
        let roles: Vec<String> = std::iter::once(SUT.to_owned()).chain(others).collect();
        for role in roles {
            let output = self.own(live, &role, "count CPUs", CPUS).await?;
            let count = cpus(&output).ok_or_else(|| {
                ours(InfraKind::Other, format!("count the CPUs of {role}: neither nproc nor getconf tells"))
            })?;
            live.settings.insert(format!("{role}.cpus"), count.to_string());
            if role == SUT {
                live.env.push(("SB_SUT_CPUS".to_owned(), count.to_string()));
            } else if role.starts_with(LDG) {
                of_ldg += count;
            }
        }
        live.env.push(("SB_LDG_CPUS".to_owned(), of_ldg.to_string()));
        Ok(())
    }

    /// A boot in which a workload that no kernel can change moved is none.
    async fn look_at_canary(&mut self, live: &mut Live) -> Result<(), Trouble> {
        let Some(canary) = self.setup.canary.clone() else { return Ok(()) };
        let deadline = Duration::from_secs(canary.deadline_s);
        let called = self.call(live, &canary.on, CANARY, &canary.command, deadline, false).await;
        let output = done(called, "the canary", true)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let number = text
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .and_then(|l| l.trim().parse::<f64>().ok());
        let Some(number) = number.filter(|number| number.is_finite() && *number > 0.0) else {
            let reason = "read the canary: its last line of output is not one positive number".to_owned();
            return Err(ours(InfraKind::BrokenCommand, reason));
        };
        if !self.canaries.is_empty() {
            let usual = crate::stats::median(&self.canaries);
            let moved = number / usual - 1.0;
            if moved.abs() > canary.within.0 {
                let reason = format!(
                    "the canary moved by {:+.1} % ({number} in this boot, {usual} in those before; {:.1} % is allowed): \
                     the machine changed, not the kernel, so the boot does not count",
                    moved * 100.0,
                    canary.within.0 * 100.0
                );
                return Err(ours(InfraKind::Other, reason));
            }
        }
        self.canaries.push(number);
        live.settings.insert(CANARY.to_owned(), number.to_string());
        Ok(())
    }

    /// Those of these phases, in the order in which the profile has them.
    async fn steps(&mut self, live: &Live, phases: &[Phase]) -> Result<Vec<Output>, Trouble> {
        let steps: Vec<Step> =
            self.setup.steps.iter().filter(|step| phases.contains(&step.when)).cloned().collect();
        let mut outputs = Vec::new();
        for step in &steps {
            let once = step.when == Phase::Once;
            if once && self.mark(step).exists() {
                continue;
            }
            outputs.push(self.step(live, step).await?);
            if once {
                let mark = self.mark(step);
                std::fs::create_dir_all(&self.done)
                    .and_then(|()| std::fs::write(&mark, &step.command))
                    .map_err(|error| ours(InfraKind::Other, format!("write {}: {error}", mark.display())))?;
            }
        }
        Ok(outputs)
    }

    /// One that was changed is done again.
    fn mark(&self, step: &Step) -> PathBuf {
        let hash = blake3::hash(format!("{}\0{}\0{}", step.name, step.on, step.command).as_bytes());
        self.done.join(&hash.to_hex()[..16])
    }

    async fn step(&mut self, live: &Live, step: &Step) -> Result<Output, Trouble> {
        let what = format!("step {}", step.name);
        let until = Instant::now() + Duration::from_secs(step.deadline_s);
        let stays = matches!(step.when, Phase::Once | Phase::Boot);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let called = self.call(live, &step.on, &what, &step.command, left, stays).await;
            let again =
                step.every_s.map(Duration::from_secs).filter(|_| matches!(called, Called::Failed { .. }));
            match again {
                Some(every) if Instant::now() + every < until => sleep(every).await,
                Some(_) => {
                    let waited = format!(
                        "the step {} waited {} s in vain: {}",
                        step.name,
                        step.deadline_s,
                        words(called)
                    );
                    return Err(blamed(&step.on, waited));
                }
                None => return done(called, &format!("the step {}", step.name), step.on != SUT),
            }
        }
    }

    /// Waits until the SUT is fit for a run.
    async fn settle(&mut self, live: &Live) -> Result<(), Trouble> {
        let Some(settle) = self.setup.settle.clone() else { return Ok(()) };
        let script = checks::settled(&settle);
        let until = Instant::now() + Duration::from_secs(settle.deadline_s);
        loop {
            let output = self.own(live, SUT, "settle", &script).await?;
            let unsettled = String::from_utf8_lossy(&output.stdout).trim().replace('\n', ", ");
            if unsettled.is_empty() {
                return Ok(());
            }
            if Instant::now() + LOOK_AGAIN >= until {
                let reason = format!("the SUT has not settled in {} s: {unsettled}", settle.deadline_s);
                return Err(ours(InfraKind::TryAgain, reason));
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    async fn run_once(&mut self, live: &mut Live, deadline: Duration) -> Result<RunResult, Trouble> {
        self.settle(live).await?;
        self.steps(live, &[Phase::Run]).await?;
        let mut settings = live.settings.clone();
        self.set_tunables(live).await?;
        let seen = self.look_before(live).await?;
        let times = self.times_before(live).await?;
        let mut output = match self.workload(live, deadline).await {
            Ok(output) => output,
            Err(failed) => {
                let said = self.said_by_kernel(live, seen).await;
                return Err(match said.filter(|_| matches!(failed, Trouble::Failed(_))) {
                    Some(said) => said,
                    None => self.whose(live, failed).await,
                });
            }
        };
        let idle = self.idle_part(live, times, &mut settings).await?;
        let gathered = self.look_after(live, seen).await?;
        settings.extend(gathered.settings);
        settings.extend(self.tunables_after(live).await?);
        settings.extend(self.tunables.of_the_run());
        for collected in self.steps(live, &[Phase::Collect]).await? {
            output.stdout.extend(collected.stdout);
        }
        Ok(match self.ground.read(&output) {
            RunResult::Measured { mut metrics, .. } => {
                metrics.extend(idle.map(|part| (IDLE.to_owned(), part * 100.0)));
                RunResult::Measured { metrics, settings, evidence: gathered.evidence }
            }
            other @ (RunResult::Invalid { .. }
            | RunResult::Failed { .. }
            | RunResult::Untestable(_)
            | RunResult::Infra(_)) => other,
        })
    }

    /// The SUT's CPU times as the run begins, or where they are put once its load is up; nothing where nobody asks.
    async fn times_before(&mut self, live: &Live) -> Result<Option<Times>, Trouble> {
        let Some(saturation) = self.setup.saturation.filter(|saturation| saturation.idle.is_some()) else {
            return Ok(None);
        };
        let Some(ramp_up_s) = saturation.ramp_up_s else {
            return Ok(Some(Times::Now(self.own(live, SUT, "CPU times", CPU_TIMES).await?)));
        };
        let script = checks::later(ramp_up_s);
        let called = self.call(live, SUT, "CPU times", &script, OWN_DEADLINE, true).await;
        let output = done(called, "CPU times", true)?;
        Ok(Some(Times::Later { dir: String::from_utf8_lossy(&output.stdout).into_owned(), ramp_up_s }))
    }

    /// Part of the SUT's CPU time that was idle since then.
    async fn idle_part(
        &mut self,
        live: &Live,
        times: Option<Times>,
        settings: &mut Settings,
    ) -> Result<Option<f64>, Trouble> {
        let Some(times) = times else { return Ok(None) };
        let after = self.own(live, SUT, "CPU times after", CPU_TIMES).await?;
        let (before, ramp_up_s) = match times {
            Times::Now(before) => (before, None),
            Times::Later { dir, ramp_up_s } => {
                let script = checks::gathered(&dir);
                (self.own(live, SUT, "CPU times gathered", &script).await?, Some(ramp_up_s))
            }
        };
        let part = idle_part(&before, &after);
        if let (None, Some(ramp_up_s)) = (part, ramp_up_s) {
            let reason = format!("the run was over before its ramp-up of {ramp_up_s} s was");
            settings.insert(IDLE.to_owned(), reason);
        }
        Ok(part)
    }

    /// A run that failed is the commit's, unless a step that looks into it then shows that we failed: a load generator that
    /// has lost its network fails as one whose server a kernel has killed.
    async fn whose(&mut self, live: &Live, failed: Trouble) -> Trouble {
        let Trouble::Failed(reason) = &failed else { return failed };
        match self.steps(live, &[Phase::Failed]).await {
            Err(Trouble::Infra(failure)) => ours(
                failure.kind,
                format!("{}; it was done since the run had failed: {reason}", failure.reason),
            ),
            Ok(_) | Err(Trouble::Commit(..) | Trouble::Invalid(_) | Trouble::Failed(_)) => failed,
        }
    }

    async fn workload(&mut self, live: &Live, deadline: Duration) -> Result<Output, Trouble> {
        let role = if self.setup.run_on.is_empty() { SUT.to_owned() } else { self.setup.run_on.clone() };
        let prelude = if role == SUT { self.tunables.prelude() } else { String::new() };
        let script = format!("{prelude}{}", self.ground.run_command());
        let place = live.place.clone();
        let call = Call {
            role: &role,
            what: "run",
            script: &script,
            place: &place,
            env: &live.env,
            deadline,
            log: &place.log,
            leaves_processes: false,
        };
        match self.ground.call(call).await {
            Called::Done(output) => Ok(output),
            Called::Failed { reason, stderr } => Err(match declared_invalid(&stderr) {
                Some(reason) => Trouble::Invalid(reason),
                None => Trouble::Failed(reason),
            }),
            Called::Late => Err(Trouble::Failed(format!(
                "the run command was not done within {deadline:?} and was ended"
            ))),
            other @ (Called::CannotMeasure(_)
            | Called::Untestable(_)
            | Called::Invalid(_)
            | Called::Infra(_)) => done(other, "the run", false),
        }
    }

    async fn set_tunables(&mut self, live: &mut Live) -> Result<(), Trouble> {
        if self.tunables.is_empty() {
            return Ok(());
        }
        // Of a later run it is the variant's own.
        if !live.is_undoable {
            let output = self.own(live, SUT, "tunables before", &self.tunables.read()).await?;
            self.keep_undo(&self.tunables.found(&output.stdout))?;
            live.is_undoable = true;
        }
        let output = self.own(live, SUT, "tunables", &self.tunables.set()).await?;
        self.tunables.read_back(&output.stdout).map_err(|wrong| {
            if wrong.lacks {
                Trouble::Commit(UntestableKind::Knob, wrong.reason)
            } else {
                Trouble::Invalid(wrong.reason)
            }
        })?;
        if !live.is_looked_at {
            self.look_again(live).await?;
            live.is_looked_at = true;
        }
        Ok(())
    }

    async fn tunables_after(&mut self, live: &Live) -> Result<Settings, Trouble> {
        if self.tunables.is_empty() {
            return Ok(Settings::new());
        }
        let output = self.own(live, SUT, "tunables after", &self.tunables.read()).await?;
        let answer = self.tunables.read_back(&output.stdout);
        answer.map_err(|wrong: Wrong| Trouble::Invalid(format!("after the run: {}", wrong.reason)))
    }

    /// A script of ours.
    async fn own(&mut self, live: &Live, role: &str, what: &str, script: &str) -> Result<Output, Trouble> {
        let called = self.call(live, role, what, script, OWN_DEADLINE, false).await;
        // Whether a kernel that no shell runs on any more is to blame, its console tells; else it is our script.
        done(called, what, true)
    }

    async fn call(
        &mut self,
        live: &Live,
        role: &str,
        what: &str,
        script: &str,
        deadline: Duration,
        leaves_processes: bool,
    ) -> Called {
        let mut log = live.place.log.as_os_str().to_owned();
        log.push(format!(".{}.{role}", what.replace(|c: char| !c.is_ascii_alphanumeric(), "-")));
        let log = PathBuf::from(log);
        let place = &live.place;
        let call = Call { role, what, script, place, env: &live.env, deadline, log: &log, leaves_processes };
        self.ground.call(call).await
    }

    /// Cleans up and puts back; what goes wrong is for the log only, since the boot's numbers are in. What could not be put back
    /// is tried again in the next boot, which needs it.
    async fn wind_up(&mut self, live: &Live) {
        if let Err(trouble) = self.steps(live, &[Phase::Clean]).await {
            tracing::warn!(boot = live.place.boot.0, reason = %trouble.words(), "could not clean up");
        }
        if let Err(trouble) = self.undo(live).await {
            tracing::warn!(boot = live.place.boot.0, reason = %trouble.words(), "could not put tunables back");
        }
    }
}

#[async_trait(?Send)]
impl<G: Ground> Machine for Stage<G> {
    async fn boot(&mut self, job: &BootJob) -> BootResult {
        self.off().await;
        let mut record = match self.ground.boot(job).await {
            BootResult::Booted(record) => record,
            other @ (BootResult::Untestable(_) | BootResult::Infra(_)) => return other,
        };
        let place = Place {
            step: job.step,
            artifact: job.artifact.clone(),
            boot: job.boot,
            dir: job.dir.clone(),
            repetition: 0,
            log: job.log.clone(),
        };
        let env = self.setup.env.clone().into_iter().collect();
        self.tunables = Tunables::of(&job.variant.sets);
        let mut live = Live {
            place,
            env,
            cmdline: job.variant.sets.cmdline.clone(),
            is_undoable: false,
            is_looked_at: false,
            settings: Settings::new(),
            environment: Fields::new(),
            quick: Fields::new(),
        };
        match self.prepare(&mut live).await {
            Ok(()) => {
                record.settings.extend(live.settings.clone());
                record.environment = std::mem::take(&mut live.environment);
                // It is the boot's; each run repeats what may differ between them.
                live.settings.remove(CANARY);
                self.live = Some(live);
                BootResult::Booted(record)
            }
            Err(trouble) => {
                self.wind_up(&live).await;
                self.ground.off().await;
                trouble.of_boot()
            }
        }
    }

    async fn run(&mut self, job: &RunJob) -> RunResult {
        let Some(mut live) = self.live.take().filter(|live| live.place.boot == job.boot) else {
            let reason = format!("run in boot {}: it is not up; boot again", job.boot);
            return RunResult::Infra(InfraFailure { kind: InfraKind::Unreachable, reason });
        };
        live.place = Place {
            step: job.step,
            artifact: job.artifact.clone(),
            boot: job.boot,
            dir: job.dir.clone(),
            repetition: job.repetition,
            log: job.log.clone(),
        };
        let result = self.run_once(&mut live, job.deadline).await;
        self.live = Some(live);
        result.unwrap_or_else(Trouble::of_run)
    }

    async fn off(&mut self) {
        if let Some(live) = self.live.take() {
            self.wind_up(&live).await;
        }
        self.ground.off().await;
    }
}
