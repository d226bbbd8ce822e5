//! The ends of a revert test.

use super::{bare, reason};
use crate::model::{CommitId, Conclusion, ConclusionKind, Explained};
use crate::session::judge;
use crate::session::plan::{Purpose, Revert};
use crate::session::planner::Planner;
use crate::session::state::State;

/// Share of the difference from which a revert counts as the whole of it, if its interval reaches 1.
const RESTORED_FROM: f64 = 0.8;

fn revert_of(state: &State) -> (Option<CommitId>, String) {
    match &state.plan.purpose {
        Purpose::RevertTest { commit, subject, .. } => {
            (Some(commit.clone()), format!("{} (\"{subject}\")", commit.short()))
        }
        Purpose::Bisect | Purpose::Survey(_) => (None, String::new()),
    }
}

pub(super) fn unmade(state: &State) -> Conclusion {
    let (commit, words) = revert_of(state);
    let on = &state.plan.bad.rev;
    let files = match &state.plan.purpose {
        Purpose::RevertTest { revert: Revert::Conflicts { files }, .. } => Some(files),
        Purpose::RevertTest { revert: Revert::Clean { .. } | Revert::AlreadyReverted, .. }
        | Purpose::Bisect
        | Purpose::Survey(_) => None,
    };
    let mut conclusion = match files {
        Some(files) => bare(
            ConclusionKind::CannotRevert,
            10,
            format!("{words} does not revert cleanly on {on}; conflicts in {}", files.join(", ")),
            format!(
                "revert it by hand on a BRANCH and compare that: sched-bisect start {on} BRANCH --find any"
            ),
        ),
        None => bare(
            ConclusionKind::AlreadyReverted,
            8,
            format!(
                "reverting {words} changes nothing on {on}: it is reverted there already, or changes nothing itself"
            ),
            "choose another commit, or another --on".to_owned(),
        ),
    };
    conclusion.commit = commit;
    conclusion
}

pub(super) fn untestable(state: &State) -> Conclusion {
    let (commit, words) = revert_of(state);
    let why = state.reverted().map_or_else(String::new, |c| reason(state, c));
    let mut conclusion = bare(
        ConclusionKind::NotMeasurable,
        11,
        format!(
            "with {words} reverted the kernel cannot be measured ({why}); that says nothing of the difference"
        ),
        commit.as_ref().map_or_else(String::new, |c| {
            format!(
                "compare the commit with its parent instead: sched-bisect start {0}^ {0} --find any",
                c.short()
            )
        }),
    );
    conclusion.commit = commit;
    conclusion
}

pub(super) fn measured(state: &State, planner: &Planner) -> Conclusion {
    let (commit, words) = revert_of(state);
    let (share, effect) = judge::restored(state, planner).unzip();
    let share = share.flatten();
    let Some(share) = share else {
        let mut conclusion = untestable(state);
        "the endpoint difference is too uncertain to tell a share of it".clone_into(&mut conclusion.reason);
        return conclusion;
    };
    let restored = Explained { share: share.value, low: share.low, high: share.high };
    let numbers = format!("{restored} of the difference came back");
    let on = &state.plan.bad.rev;
    let mut conclusion = if share.low <= 0.0 {
        bare(
            ConclusionKind::NoEffect,
            4,
            format!("reverting {words} on {on} does not bring the difference back: {numbers}"),
            format!("search for the commit that did it: sched-bisect start {} {on}", state.plan.good.rev),
        )
    } else if share.low >= 0.9 || (share.high >= 1.0 && share.value >= RESTORED_FROM) {
        bare(
            ConclusionKind::Restored,
            0,
            format!("reverting {words} on {on} restores it: {numbers}"),
            "report it with the session's report".to_owned(),
        )
    } else {
        bare(
            ConclusionKind::Partial,
            3,
            format!("reverting {words} on {on} restores a part: {numbers}"),
            rest_of(state, commit.as_ref()),
        )
    };
    conclusion.commit = commit;
    conclusion.confirmed = true;
    conclusion.effect = effect;
    conclusion.restored = Some(restored);
    conclusion
}

/// How to search for what a revert leaves.
fn rest_of(state: &State, commit: Option<&CommitId>) -> String {
    let Some(commit) = commit else { return String::new() };
    format!(
        "search the rest on top of the revert: git rebase --onto {0}^ {0} {1} && sched-bisect start {2} HEAD",
        commit.short(),
        state.plan.bad.commit.short(),
        state.plan.good.rev
    )
}
