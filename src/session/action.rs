//! The next action: a pure function of graph and state (the planner is kept up to date from them).

use super::blocks;
use super::conclude::conclusion;
use super::event::{Event, Halt};
use super::planner::{Next, Planner, Wish, counted};
use super::state::{Boot, BootStatus, Build, OpenStep, State};
use crate::model::{BootNo, CommitId, InfraFailure, InfraKind, SutId, UntestableKind};
use crate::search::Dag;

/// What the driver is to do now.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Journal this decision and ask again.
    Decide(Event),
    /// Build a commit.
    Build {
        /// It.
        commit: CommitId,
    },
    /// Boot a built commit.
    Boot {
        /// It.
        commit: CommitId,
        /// Stage (see [`Event::BootStarted`]).
        stage: u32,
        /// Slot.
        slot: u32,
        /// Counted runs it is for.
        runs: u32,
        /// Variant, see [`Event::BootStarted`].
        variant: String,
        /// Free machine to use.
        sut: SutId,
    },
    /// Take the next run in a live boot.
    Run {
        /// The boot.
        boot: BootNo,
        /// Index of the run, from 1.
        repetition: u32,
    },
    /// End a boot.
    EndBoot {
        /// It.
        boot: BootNo,
    },
    /// Wait for the end of an open step.
    Wait,
    /// Nothing is left to do in this process: the session is concluded or halted and no boot is up.
    Done,
}

/// The next action.
pub fn next_action(planner: &mut Planner, dag: &Dag, state: &State) -> Action {
    let over = state.conclusion.is_some() || state.halted.is_some();
    let stop = if over { None } else { halt(state) };
    // A reason to stop starts no further run either: what is up is ended.
    if let Some(action) = attend_boots(planner, state, over || stop.is_some()) {
        return action;
    }
    if over {
        return if state.open.is_empty() { Action::Done } else { Action::Wait };
    }
    if let Some(event) = stop {
        return Action::Decide(event);
    }
    if !state.open.is_empty() {
        return boot_beside(planner, state).unwrap_or(Action::Wait);
    }
    match planner.next(state, None) {
        Next::Decide(event) => Action::Decide(event),
        Next::Boot(wish) => boot(state, wish),
        Next::Over => {
            Action::Decide(Event::Concluded { conclusion: Box::new(conclusion(dag, state, planner)) })
        }
        Next::Run(boot) => {
            let reason = format!(
                "a run is asked for in boot {boot}, which is not up: a fault of the program, please report it"
            );
            Action::Decide(Event::Halted {
                halt: Halt::Infra(InfraFailure { kind: InfraKind::Other, reason }),
            })
        }
    }
}

/// Runs what is due in a boot that is up and idle, or ends it.
fn attend_boots(planner: &mut Planner, state: &State, stopping: bool) -> Option<Action> {
    let busy = |boot: BootNo| {
        state.open.values().any(|o| matches!(o, OpenStep::Boot(b) | OpenStep::Run(b, _) if *b == boot))
    };
    let boot = state.boots.iter().find(|b| b.status != BootStatus::Ended && !busy(b.boot))?;
    if boot.status == BootStatus::Live && !stopping && wants_run(planner, state, boot) {
        let repetition = u32::try_from(boot.runs.len() + 1).unwrap_or(u32::MAX);
        return Some(Action::Run { boot: boot.boot, repetition });
    }
    Some(Action::EndBoot { boot: boot.boot })
}

/// Whether a live boot has runs to take: those it is for, and then as many as tell more than anything else.
fn wants_run(planner: &mut Planner, state: &State, boot: &Boot) -> bool {
    if blocks::untestable(state, &boot.commit, &boot.variant).is_some() {
        return false;
    }
    counted(state, boot) < boot.wanted.max(1) as usize
        || planner.next(state, Some(boot)) == Next::Run(boot.boot)
}

/// The reason to stop without an end, if there is one.
fn halt(state: &State) -> Option<Event> {
    let recipe = &state.plan.recipe;
    let limit = recipe.attempts.infra as usize;
    let hopeless = |failures: &Vec<InfraFailure>| {
        let last = failures.last()?;
        (failures.len() >= limit || !last.kind.is_retried()).then(|| last.clone())
    };
    if let Some(failure) = state.infra.values().find_map(hopeless) {
        return Some(Event::Halted { halt: Halt::Infra(failure) });
    }
    let essential = state.essential();
    let is_survey = state.survey().is_some();
    let variant = if is_survey { recipe.variant.as_str() } else { "" };
    let broken = essential.iter().find_map(|c| Some((c, blocks::untestable(state, c, variant)?)));
    if let Some((commit, untestable)) = broken {
        let (what, without) = if is_survey {
            ("baseline", "nothing can be compared")
        } else {
            ("endpoint", "no candidate can be judged")
        };
        let reason = format!(
            "the {what} {} cannot be measured ({}: {}); without it {without}. {}, or choose another {what}",
            named(state, commit),
            untestable.kind,
            untestable.reason,
            mending(untestable.kind)
        );
        return Some(Event::Halted { halt: Halt::Infra(InfraFailure { kind: InfraKind::Other, reason }) });
    }
    let spent = state.spent.seconds;
    let allowed = recipe.budget_s.map(|s| s.saturating_add(state.more_budget_s));
    allowed
        .filter(|allowed| spent >= *allowed as f64)
        .map(|_| Event::Halted { halt: Halt::Budget { spent_s: spent as u64 } })
}

/// What helps against a commit that cannot be measured for this.
fn mending(kind: UntestableKind) -> &'static str {
    match kind {
        UntestableKind::Build | UntestableKind::FixUp | UntestableKind::Config => {
            "Mend its build (a fix-up patch, another configuration)"
        }
        UntestableKind::Boot | UntestableKind::Panic => "Mend its boot",
        UntestableKind::Run => "Mend the workload",
        UntestableKind::InvalidOutput => {
            "Mend the workload, or judge a metric that it prints (`sched-bisect parse` shows what a log holds)"
        }
        UntestableKind::Declared => "Mend what it is said to lack",
        UntestableKind::Knob => "Leave the knob out of the variant",
    }
}

/// A kernel as the user knows it, where it was given a name.
fn named(state: &State, commit: &CommitId) -> String {
    let ends = [&state.plan.good, &state.plan.bad];
    let end = ends.into_iter().find(|end| end.commit == *commit && !commit.as_str().starts_with(&end.rev));
    end.map_or(commit.short().to_owned(), |end| format!("{} ({})", end.rev, commit.short()))
}

/// While boots are under way on other machines: one more of the same block, on a free one.
fn boot_beside(planner: &mut Planner, state: &State) -> Option<Action> {
    let building = state.open.values().any(|o| matches!(o, OpenStep::Build(_)));
    let pending: Vec<&Boot> = state.boots.iter().filter(|b| b.status != BootStatus::Ended).collect();
    if building || pending.is_empty() || pending.len() >= state.plan.recipe.suts as usize {
        return None;
    }
    let wish = planner.beside(state, &pending)?;
    if blocks::untestable(state, &wish.commit, &wish.variant).is_some() {
        return None;
    }
    match boot(state, wish) {
        Action::Boot { commit, stage, slot, runs, variant, .. } => {
            let taken = |sut: SutId| pending.iter().any(|b| b.sut == sut);
            let sut = (0..state.plan.recipe.suts).map(SutId).find(|sut| !taken(*sut))?;
            Some(Action::Boot { commit, stage, slot, runs, variant, sut })
        }
        Action::Decide(_)
        | Action::Build { .. }
        | Action::Run { .. }
        | Action::EndBoot { .. }
        | Action::Wait
        | Action::Done => None,
    }
}

/// Boots a kernel, once it is built.
fn boot(state: &State, wish: Wish) -> Action {
    let Wish { commit, stage, runs, variant } = wish;
    if !matches!(state.commit(&commit).map(|c| &c.build), Some(Build::Built(_))) {
        return Action::Build { commit };
    }
    let same = |b: &&Boot| b.commit == commit && b.stage == stage && b.variant == variant;
    let slot = u32::try_from(state.boots.iter().filter(same).count()).unwrap_or(u32::MAX);
    Action::Boot { commit, stage, slot, runs, variant, sut: SutId(0) }
}
