//! Steps as they begin and end: builds, boots, runs, and what their failures mean.

use super::{Boot, BootStatus, Build, CommitState, Fact, OpenStep, Run, State};
use crate::model::{
    BootNo, BootResult, BuildResult, CommitId, InfraFailure, InfraKind, RunResult, StepId, SutId, Untestable,
    UntestableKind,
};

/// Boots lost to failures of the workload or the kernel, in all, after which a commit is untestable even though some
/// runs were measured between them; in units of the plan's boot attempts.
const FLAKY_FACTOR: usize = 3;

impl State {
    fn begin(&mut self, step: StepId, what: OpenStep) -> Result<(), String> {
        if step.0 <= self.last_step {
            return Err(format!("step {step} was given out before (last: {})", self.last_step));
        }
        self.last_step = step.0;
        self.open.insert(step, what);
        self.began_ms.insert(step, self.last_at_ms.unwrap_or_default());
        Ok(())
    }

    /// Seconds since a step began. A clock that was set back counts nothing.
    fn duration_of(&mut self, step: StepId) -> f64 {
        let began = self.began_ms.remove(&step).or(self.last_at_ms).unwrap_or_default();
        self.last_at_ms.unwrap_or_default().saturating_sub(began).max(0) as f64 / 1000.0
    }

    fn end(&mut self, step: StepId, expected: &OpenStep) -> Result<(), String> {
        match self.open.get(&step) {
            Some(open) if open == expected => {
                self.open.remove(&step);
                Ok(())
            }
            Some(open) => Err(format!("step {step} is {open:?}, not {expected:?}")),
            None => Err(format!("step {step} is not open")),
        }
    }

    pub(super) fn build_started(&mut self, step: StepId, commit: &CommitId) -> Result<(), String> {
        if self.commits.get(commit).is_some_and(|c| c.build != Build::None) {
            return Err(format!("{commit} is built or being built already"));
        }
        self.begin(step, OpenStep::Build(commit.clone()))?;
        self.commits.entry(commit.clone()).or_default().build = Build::Started;
        Ok(())
    }

    pub(super) fn build_finished(&mut self, step: StepId, result: &BuildResult) -> Result<(), String> {
        let Some(OpenStep::Build(commit)) = self.open.get(&step).cloned() else {
            return Err(format!("step {step} is no open build"));
        };
        self.open.remove(&step);
        let took = self.duration_of(step);
        let known = self.commits.entry(commit.clone()).or_default();
        known.build = Build::None;
        match result {
            BuildResult::Built { artifact } => {
                known.build = Build::Built(artifact.clone());
                if !artifact.cached {
                    self.spent.builds += 1;
                    self.took.builds.push(took);
                }
                self.infra.remove(&None);
            }
            BuildResult::Untestable(untestable) => {
                known.untestable = Some(untestable.clone());
                self.facts.push(Fact::Untestable { commit });
                self.spent.builds += 1;
                self.infra.remove(&None);
            }
            BuildResult::Infra(failure) => self.broke(None, failure),
        }
        Ok(())
    }

    pub(super) fn boot_started(
        &mut self,
        step: StepId,
        boot: BootNo,
        sut: SutId,
        (commit, variant): (&CommitId, &str),
        (stage, slot, wanted): (u32, u32, u32),
    ) -> Result<(), String> {
        if boot.0 != self.boots.len() as u64 + 1 {
            return Err(format!("boot {boot} does not follow boot {}", self.boots.len()));
        }
        if let Some(other) = self.boots.iter().find(|b| b.sut == sut && b.status != BootStatus::Ended) {
            return Err(format!("machine {sut} is taken by boot {}", other.boot));
        }
        if !matches!(self.commits.get(commit), Some(CommitState { build: Build::Built(_), .. })) {
            return Err(format!("{commit} is not built"));
        }
        self.begin(step, OpenStep::Boot(boot))?;
        self.boots.push(Boot {
            boot,
            commit: commit.clone(),
            sut,
            stage,
            slot,
            wanted,
            variant: variant.to_owned(),
            status: BootStatus::Starting,
            record: None,
            runs: Vec::new(),
            failed_attempts: 0,
            lost: Vec::new(),
        });
        Ok(())
    }

    pub(super) fn boot_finished(
        &mut self,
        step: StepId,
        boot: BootNo,
        result: &BootResult,
    ) -> Result<(), String> {
        if let BootResult::Booted(record) = result
            && self.boots.iter().any(|b| b.record.as_ref().is_some_and(|r| r.boot_id == record.boot_id))
        {
            return Err(format!("boot id {} was seen before", record.boot_id));
        }
        self.end(step, &OpenStep::Boot(boot))?;
        let took = self.duration_of(step);
        if matches!(result, BootResult::Booted(_)) {
            self.took.boots.push(took);
        }
        let entry = self.boot_mut(boot)?;
        let machine = Some(entry.sut);
        match result {
            BootResult::Booted(record) => {
                entry.status = BootStatus::Live;
                entry.record = Some(record.clone());
                self.spent.boots += 1;
            }
            BootResult::Untestable(untestable) => {
                entry.status = BootStatus::Broken;
                entry.lost.push(untestable.reason.clone());
                self.failed(boot, untestable);
                self.infra.remove(&machine);
            }
            BootResult::Infra(failure) => {
                entry.status = BootStatus::Broken;
                self.has_moved(boot, failure);
                self.broke(machine, failure);
            }
        }
        Ok(())
    }

    pub(super) fn run_started(&mut self, step: StepId, boot: BootNo, repetition: u32) -> Result<(), String> {
        let entry = self.boot_mut(boot)?;
        if entry.status != BootStatus::Live {
            return Err(format!("boot {boot} is {:?}", entry.status));
        }
        if repetition as usize != entry.runs.len() + 1 {
            return Err(format!("run {repetition} of boot {boot} does not follow run {}", entry.runs.len()));
        }
        if self.open.values().any(|o| matches!(o, OpenStep::Run(other, _) if *other == boot)) {
            return Err(format!("a run goes on in boot {boot}"));
        }
        self.begin(step, OpenStep::Run(boot, repetition))
    }

    pub(super) fn run_finished(
        &mut self,
        step: StepId,
        boot: BootNo,
        result: &RunResult,
    ) -> Result<(), String> {
        let metric = self.plan.recipe.metric.name.clone();
        if let RunResult::Measured { metrics, .. } = result {
            match metrics.get(&metric) {
                Some(value) if value.is_finite() && *value > 0.0 => {}
                Some(value) => return Err(format!("{metric} = {value} is not a positive number")),
                None => return Err(format!("the judged metric {metric} is missing")),
            }
        }
        let repetition = self.boot(boot).map_or(0, |b| b.runs.len() + 1);
        let repetition = u32::try_from(repetition).unwrap_or(u32::MAX);
        self.end(step, &OpenStep::Run(boot, repetition))?;
        let took = self.duration_of(step);
        if let RunResult::Measured { .. } = result {
            self.took.runs.push(took);
            self.facts.push(Fact::Run { boot, index: repetition as usize - 1 });
        }
        let attempts = self.plan.recipe.attempts.run;
        let entry = self.boot_mut(boot)?;
        let machine = Some(entry.sut);
        match result {
            RunResult::Measured { metrics, settings, evidence } => {
                entry.runs.push(Run {
                    repetition,
                    metrics: metrics.clone(),
                    settings: settings.clone(),
                    evidence: evidence.clone(),
                });
                entry.failed_attempts = 0;
                self.spent.runs += 1;
                self.infra.remove(&machine);
                self.succeeded(boot);
            }
            RunResult::Invalid { reason } => {
                self.lost_run(boot, attempts, UntestableKind::InvalidOutput, reason)?
            }
            RunResult::Failed { reason } => self.lost_run(boot, attempts, UntestableKind::Run, reason)?,
            RunResult::Untestable(untestable) => {
                entry.status = BootStatus::Broken;
                entry.lost.push(untestable.reason.clone());
                self.failed(boot, untestable);
                self.infra.remove(&machine);
            }
            RunResult::Infra(failure) => {
                if failure.kind != InfraKind::TryAgain {
                    entry.status = BootStatus::Broken;
                }
                self.has_moved(boot, failure);
                self.broke(machine, failure);
            }
        }
        Ok(())
    }

    fn lost_run(
        &mut self,
        boot: BootNo,
        attempts: u32,
        kind: UntestableKind,
        reason: &str,
    ) -> Result<(), String> {
        let entry = self.boot_mut(boot)?;
        let machine = Some(entry.sut);
        entry.failed_attempts += 1;
        entry.lost.push(reason.to_owned());
        if entry.failed_attempts >= attempts {
            entry.status = BootStatus::Broken;
            self.failed(boot, &Untestable { kind, reason: reason.to_owned() });
        }
        self.infra.remove(&machine);
        Ok(())
    }

    fn has_moved(&mut self, boot: BootNo, failure: &InfraFailure) {
        if failure.kind == InfraKind::Environment {
            self.moved.push((boot, failure.reason.clone()));
        }
    }

    fn broke(&mut self, source: Option<SutId>, failure: &InfraFailure) {
        self.infra.entry(source).or_default().push(failure.clone());
    }

    /// A run was measured: boots that failed before it were luck.
    fn succeeded(&mut self, boot: BootNo) {
        let Some(Boot { commit, variant, .. }) = self.boot(boot).cloned() else { return };
        if variant.is_empty() {
            self.commits.entry(commit).or_default().failures.clear();
        } else if let Some(cell) = self.cells.get_mut(&(commit, variant)) {
            cell.failures.clear();
        }
    }

    /// One more boot of a commit came to nothing. Under a variant of its own that says nothing of the commit.
    fn failed(&mut self, boot: BootNo, untestable: &Untestable) {
        let Some(Boot { commit, variant, .. }) = self.boot(boot).cloned() else { return };
        let attempts = self.plan.recipe.attempts.boot as usize;
        let is_enough = |recent: usize, in_all: usize| {
            untestable.kind.is_certain() || recent >= attempts || in_all >= FLAKY_FACTOR * attempts
        };
        if variant.is_empty() {
            let known = self.commits.entry(commit.clone()).or_default();
            known.failures.push(untestable.clone());
            known.failures_in_all += 1;
            if is_enough(known.failures.len(), known.failures_in_all) {
                known.untestable = Some(untestable.clone());
                self.facts.push(Fact::Untestable { commit });
            }
            return;
        }
        let cell = self.cells.entry((commit, variant)).or_default();
        cell.failures.push(untestable.clone());
        cell.failures_in_all += 1;
        if is_enough(cell.failures.len(), cell.failures_in_all) {
            cell.untestable = Some(untestable.clone());
        }
    }

    pub(super) fn boot_ended(&mut self, boot: BootNo) -> Result<(), String> {
        if self.open.values().any(|o| matches!(o, OpenStep::Boot(b) | OpenStep::Run(b, _) if *b == boot)) {
            return Err(format!("a step of boot {boot} is open"));
        }
        let entry = self.boot_mut(boot)?;
        if entry.status == BootStatus::Ended {
            return Err(format!("boot {boot} has ended before"));
        }
        entry.status = BootStatus::Ended;
        self.facts.push(Fact::BootOver { boot });
        Ok(())
    }

    pub(super) fn interrupted(&mut self, step: StepId) -> Result<(), String> {
        match self.open.remove(&step) {
            Some(OpenStep::Build(commit)) => self.commits.entry(commit).or_default().build = Build::None,
            Some(OpenStep::Boot(boot) | OpenStep::Run(boot, _)) => {
                self.boot_mut(boot)?.status = BootStatus::Broken
            }
            None => return Err(format!("step {step} is not open")),
        }
        Ok(())
    }

    fn boot_mut(&mut self, boot: BootNo) -> Result<&mut Boot, String> {
        let known = self.boots.len();
        let at = usize::try_from(boot.0).ok().and_then(|n| n.checked_sub(1));
        at.and_then(|at| self.boots.get_mut(at))
            .ok_or(format!("boot {boot} is not known (there are {known})"))
    }
}
