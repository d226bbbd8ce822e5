//! The next action: a pure function of graph and state.

use super::conclude::conclusion;
use super::event::{Event, Halt};
use super::judge;
use super::phase::{Over, Phase, phase};
use super::schedule::{self, Target};
use super::state::{BootStatus, OpenStep, State};
use crate::model::{BootNo, CommitId, InfraFailure, InfraKind, SutId};
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

/// The next action. While steps are open it may name another one that can run beside them.
pub fn next_action(dag: &Dag, state: &State) -> Action {
    let over = state.conclusion.is_some() || state.halted.is_some();
    let stop = if over { None } else { halt(state) };
    let phase = phase(dag, state);
    // A reason to stop starts no further run either: what is up is ended.
    let targets = if over || stop.is_some() { Vec::new() } else { schedule::targets(&phase, state) };
    if let Some(action) = attend_boots(state, &targets) {
        return action;
    }
    if over {
        return if state.open.is_empty() { Action::Done } else { Action::Wait };
    }
    if let Some(event) = stop.or_else(|| decide(dag, state, &phase, &targets)) {
        return Action::Decide(event);
    }
    start(state, &targets).unwrap_or_else(|| idle(state, &phase))
}

/// Runs what is due in a boot that is up and idle, or ends it.
fn attend_boots(state: &State, targets: &[Target]) -> Option<Action> {
    let busy = |boot: BootNo| {
        state.open.values().any(|o| matches!(o, OpenStep::Boot(b) | OpenStep::Run(b, _) if *b == boot))
    };
    let boot = state.boots.iter().find(|b| b.status != BootStatus::Ended && !busy(b.boot))?;
    if boot.status == BootStatus::Live && schedule::wants_run(state, boot, targets) {
        let repetition = u32::try_from(boot.runs.len() + 1).unwrap_or(u32::MAX);
        return Some(Action::Run { boot: boot.boot, repetition });
    }
    Some(Action::EndBoot { boot: boot.boot })
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
    let broken = essential.iter().find_map(|c| state.commit(c)?.untestable.as_ref().map(|u| (c, u)));
    if let Some((commit, untestable)) = broken {
        let reason = format!(
            "the endpoint {} cannot be measured ({}: {}); without it no candidate can be judged. Mend its build, boot \
             or workload, or choose another endpoint",
            commit.short(),
            untestable.kind,
            untestable.reason
        );
        return Some(Event::Halted { halt: Halt::Infra(InfraFailure { kind: InfraKind::Other, reason }) });
    }
    let spent = state.spent.seconds;
    let allowed = recipe.budget_s.map(|s| s.saturating_add(state.more_budget_s));
    allowed
        .filter(|allowed| spent >= *allowed as f64)
        .map(|_| Event::Halted { halt: Halt::Budget { spent_s: spent as u64 } })
}

/// A decision that the samples allow now.
fn decide(dag: &Dag, state: &State, phase: &Phase, targets: &[Target]) -> Option<Event> {
    let complete = schedule::is_complete(state, targets);
    match phase {
        Phase::Endpoints | Phase::Revert if complete => {
            let (outcome, evidence) = judge::endpoints(state).ok()?;
            Some(Event::EndpointsJudged { outcome, evidence })
        }
        Phase::MergeBases(_) | Phase::Candidate(_) | Phase::Parents { .. } => {
            let full = |t: &&Target| schedule::is_complete(state, std::slice::from_ref(*t));
            let target = targets.iter().find(full)?;
            let (verdict, evidence) = judge::candidate(state, &target.commit).ok()?;
            Some(Event::Judged { commit: target.commit.clone(), verdict, evidence })
        }
        Phase::Confirm { culprit, parents } => decide_confirmation(state, culprit, parents, complete),
        Phase::DropPaths(commit) => Some(Event::PathsDropped { commit: commit.clone() }),
        Phase::Over(over) => conclude(dag, state, over),
        Phase::Endpoints | Phase::Revert => None,
    }
}

fn decide_confirmation(
    state: &State,
    culprit: &CommitId,
    parents: &[CommitId],
    complete: bool,
) -> Option<Event> {
    let started = Event::ConfirmationStarted { culprit: culprit.clone(), parents: parents.to_vec() };
    let Some(going) = state.confirmation.as_ref().filter(|c| c.culprit == *culprit) else {
        return Some(started);
    };
    match &going.result {
        None if complete => {
            let (confirmed, evidence) = judge::confirmation(state, going).ok()?;
            Some(Event::ConfirmationFinished { culprit: culprit.clone(), confirmed, evidence })
        }
        None => None,
        Some((true, _)) => None,
        // Refuted: what rests on the older boots alone does not stand. All boots together are judged again; where that
        // gives the same verdicts, fresh boots must decide once more.
        Some((false, evidence)) => {
            let stands = |c: &&CommitId| {
                !going.reconsidered.contains(*c)
                    && state.commit(c).is_some_and(|known| known.verdict.is_some())
            };
            let all: Vec<&CommitId> = std::iter::once(culprit).chain(parents).collect();
            match all.into_iter().filter(|c| !is_fixed(state, c)).find(stands) {
                Some(commit) => Some(Event::VerdictRetracted {
                    commit: commit.clone(),
                    reason: format!(
                        "between fresh boots of {} and its parent(s) {} changes by {}: not the change looked for",
                        culprit.short(),
                        state.plan.recipe.metric.name,
                        evidence.effect.words(state.plan.recipe.metric.direction)
                    ),
                }),
                None => Some(started),
            }
        }
    }
}

/// The endpoints are judged by their own gate, not by a verdict.
fn is_fixed(state: &State, commit: &CommitId) -> bool {
    *commit == state.plan.good.commit || *commit == state.plan.bad.commit
}

/// The conclusion, once nothing else goes on.
fn conclude(dag: &Dag, state: &State, over: &Over) -> Option<Event> {
    state.open.is_empty().then(|| Event::Concluded { conclusion: Box::new(conclusion(dag, state, over)) })
}

/// Starts a build or a boot where there is room.
fn start(state: &State, targets: &[Target]) -> Option<Action> {
    let building = state.open.values().any(|o| matches!(o, OpenStep::Build(_)));
    if let Some(commit) = schedule::next_build(state, targets) {
        return (!building).then_some(Action::Build { commit });
    }
    if building {
        return None;
    }
    let taken = |sut: SutId| state.boots.iter().any(|b| b.sut == sut && b.status != BootStatus::Ended);
    let sut = (0..state.plan.recipe.suts).map(SutId).find(|sut| !taken(*sut))?;
    let (target, slot) = schedule::next_slot(state, targets)?;
    Some(Action::Boot { commit: target.commit.clone(), stage: target.stage, slot, sut })
}

/// Nothing can start: an open step must end first. Without one the samples cannot be judged, which is told.
fn idle(state: &State, phase: &Phase) -> Action {
    if !state.open.is_empty() {
        return Action::Wait;
    }
    let reason =
        format!("nothing to do in {phase:?}, yet no conclusion: a fault of the program, please report it");
    Action::Decide(Event::Halted { halt: Halt::Infra(InfraFailure { kind: InfraKind::Other, reason }) })
}
