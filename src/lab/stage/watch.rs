//! The machine around a run: what it is like at the start of a boot, and what became of it and of its kernel during a run.
//!
//! A run counts only when its machine is after it what it was when the boot began, and when its kernel had nothing to say
//! of itself meanwhile. What is gathered for people beside the number never fails a run.

use super::fingerprint::{Asked, is_quick, quick, read, settled_cmdline, whole};
use super::look::{Look, SCHEDSTAT, counted, part, worst};
use super::trouble::{Trouble, done, ours};
use super::{Ground, Live, Stage, perf};
use crate::lab::splat::{Hurt, Splat};
use crate::model::{InfraKind, UntestableKind};
use crate::session::environment::{Between, Fields, Rules, of_role, words};
use crate::session::{SUT, Step};
use crate::workload::tunables::Settings;
use std::collections::BTreeMap;
use std::time::Duration;

/// Hashing the libraries of a database takes a moment; a guest under an emulator takes many.
const DEADLINE: Duration = Duration::from_secs(300);

/// What was seen before a run.
#[derive(Default)]
pub(super) struct Seen {
    look: Option<String>,
    /// What the start of perf told; or why it told nothing.
    perf: Option<Result<String, String>>,
}

/// What was gathered beside a run's number.
#[derive(Default)]
pub(super) struct Gathered {
    /// By name.
    pub evidence: BTreeMap<String, f64>,
    /// Where it is from, or why there is none.
    pub settings: Settings,
}

impl<G: Ground> Stage<G> {
    fn look(&self) -> Look {
        let environment = self.setup.environment.is_some();
        Look {
            schedstat: self.setup.evidence.schedstat,
            environment,
            log: environment && !self.ground.watches_the_kernel(),
        }
    }

    /// What every machine of the session is like, and the load that it is given.
    pub(super) async fn fingerprint(&mut self, live: &mut Live) -> Result<(), Trouble> {
        let Some(watch) = self.setup.environment.clone() else { return Ok(()) };
        let others = self.setup.roles.keys().filter(|role| *role != SUT).cloned();
        let roles: Vec<String> = std::iter::once(SUT.to_owned()).chain(others).collect();
        for role in roles {
            let commands = self.commands_on(&role);
            let also = if role == SUT { watch.also.as_slice() } else { &[] };
            let script = whole(&Asked { commands: &commands, also });
            let called = self.call(live, &role, "environment", &script, DEADLINE, false).await;
            let output = done(called, "environment", true)?;
            let fields = settled(read(&text(&output.stdout)), live);
            live.environment.extend(fields.into_iter().map(|(field, value)| (of_role(&role, &field), value)));
        }
        // What else the load is sized by stands in the plan, which never changes.
        let sized = live.env.iter().filter(|(name, _)| name.starts_with("SB_"));
        live.environment.extend(sized.map(|(name, value)| (format!("load.{name}"), value.clone())));
        self.look_again(live).await
    }

    /// As the runs of this boot find it. A script of its own, since it is compared after each of them: what changed since the
    /// first look is no change, nor is what its variant has set.
    pub(super) async fn look_again(&mut self, live: &mut Live) -> Result<(), Trouble> {
        if self.setup.environment.is_some() {
            let again = self.own(live, SUT, "environment again", &quick()).await?;
            live.quick = settled(read(&text(&again.stdout)), live);
        }
        Ok(())
    }

    /// The commands that run on a role.
    fn commands_on(&self, role: &str) -> Vec<String> {
        let runs_there = if self.setup.run_on.is_empty() { SUT } else { &self.setup.run_on } == role;
        let run = runs_there.then(|| self.ground.run_command().to_owned());
        let on = |step: &&Step| step.on == role;
        run.into_iter().chain(self.setup.steps.iter().filter(on).map(|step| step.command.clone())).collect()
    }

    /// Before a run.
    pub(super) async fn look_before(&mut self, live: &Live) -> Result<Seen, Trouble> {
        let mut seen = Seen::default();
        if let Some(script) = perf::start(&self.setup.evidence) {
            seen.perf = Some(self.perf(live, "perf", &script, true).await);
        }
        let look = self.look();
        if !look.is_nothing() {
            let output = self.own(live, SUT, "look before", &look.before()).await?;
            seen.look = Some(text(&output.stdout));
        }
        Ok(seen)
    }

    /// After a run: what was gathered, or why it does not count.
    pub(super) async fn look_after(&mut self, live: &Live, before: Seen) -> Result<Gathered, Trouble> {
        let mut gathered = Gathered::default();
        let looked = self.compare(live, before.look.as_deref(), &mut gathered).await;
        self.perf_after(live, before.perf, &mut gathered).await;
        looked.map(|()| gathered)
    }

    async fn compare(
        &mut self,
        live: &Live,
        before: Option<&str>,
        gathered: &mut Gathered,
    ) -> Result<(), Trouble> {
        if let Some(before) = before {
            let look = self.look();
            let output = self.own(live, SUT, "look after", &look.after()).await?;
            let after = text(&output.stdout);
            if let Some(splat) = worst(before, &after).filter(|_| look.log) {
                return Err(self.blamed_on_kernel(&splat));
            }
            if look.environment {
                self.stayed(live, &part(&after, "environment"))?;
            }
            if look.schedstat {
                let (evidence, from) = counted(before, &after);
                gathered.evidence.extend(evidence);
                gathered.settings.insert(SCHEDSTAT.to_owned(), from);
            }
        }
        Ok(())
    }

    async fn perf(&mut self, live: &Live, what: &str, script: &str, stays: bool) -> Result<String, String> {
        let called = self.call(live, SUT, what, script, DEADLINE, stays).await;
        done(called, what, true)
            .map(|output| text(&output.stdout))
            .map_err(|trouble| trouble.words().to_owned())
    }

    /// Ends perf, whatever became of the run.
    async fn perf_after(
        &mut self,
        live: &Live,
        started: Option<Result<String, String>>,
        gathered: &mut Gathered,
    ) {
        let Some(started) = started else { return };
        let told = match &started {
            Ok(started) => match perf::stop(started) {
                Some(script) => self.perf(live, "perf report", &script, false).await,
                None => Ok(String::new()),
            },
            Err(why) => Err(why.clone()),
        };
        let (evidence, missing) = match (started, told) {
            (Ok(started), Ok(stopped)) => perf::read(&started, &stopped),
            (_, Err(why)) | (Err(why), Ok(_)) => (BTreeMap::new(), Some(why)),
        };
        gathered.evidence.extend(evidence);
        gathered.settings.extend(missing.map(|missing| (perf::PERF.to_owned(), missing)));
    }

    /// After a run that came to nothing: what its kernel said of it, if it did.
    pub(super) async fn said_by_kernel(&mut self, live: &Live, before: Seen) -> Option<Trouble> {
        self.perf_after(live, before.perf, &mut Gathered::default()).await;
        let look = Look { schedstat: false, environment: false, ..self.look() };
        let before = before.look.filter(|_| look.log)?;
        let output = self.own(live, SUT, "look after", &look.after()).await.ok()?;
        worst(&before, &text(&output.stdout)).map(|splat| self.blamed_on_kernel(&splat))
    }

    /// A kernel that is hurt makes no number. One that failed or is stuck is the candidate's and ends its boot; one that
    /// warned goes on, and its next run may be whole. Either is a candidate's own: after as many as a failing boot or run
    /// is allowed it cannot be measured. The kernel of a machine that boots none is nobody's.
    fn blamed_on_kernel(&self, splat: &Splat) -> Trouble {
        let line = &splat.line;
        if !self.ground.boots_kernels() {
            let reason = format!(
                "the kernel of the machine complained during the run: {line}; see to it, and boot it again"
            );
            return ours(InfraKind::Other, reason);
        }
        match splat.hurt {
            Hurt::Panic | Hurt::Oops | Hurt::Lockup => {
                Trouble::Commit(UntestableKind::Panic, format!("{line} (under load)"))
            }
            Hurt::Warning | Hurt::OutOfMemory => {
                Trouble::Invalid(format!("kernel splat during the run: {line}"))
            }
        }
    }

    /// Whether the SUT is what it was when the boot began.
    fn stayed(&self, live: &Live, told: &str) -> Result<(), Trouble> {
        let is: Fields = settled(read(told), live).into_iter().filter(|(field, _)| is_quick(field)).collect();
        let found = Rules::of(&self.setup).differences(&is, &live.quick, Between::OneKernel);
        if found.is_empty() {
            Ok(())
        } else {
            Err(ours(InfraKind::Environment, words(&found, "before the run")))
        }
    }
}

/// Without the words of the boot's own variant.
fn settled(mut fields: Fields, live: &Live) -> Fields {
    if let Some(cmdline) = fields.get_mut("cmdline") {
        *cmdline = settled_cmdline(cmdline, &live.cmdline);
    }
    fields
}

fn text(stdout: &[u8]) -> String {
    String::from_utf8_lossy(stdout).into_owned()
}
