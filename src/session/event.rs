//! What happened: the only thing that changes a session's state. One event is one line of the journal.

use super::plan::Plan;
use crate::model::{
    BootNo, BootResult, BuildResult, CommitId, Conclusion, Evidence, InfraFailure, RunResult, Sense, StepId,
    SurveyCell, SurveyStep, SutId, Verdict,
};
use serde::{Deserialize, Serialize};

/// What the endpoints came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "sense")]
pub enum EndpointOutcome {
    /// They differ as asked, in this sense.
    Change(Sense),
    /// They do not differ by the minimum effect, or no difference was found with all boots taken.
    NoDifference,
    /// They differ, but the other way round.
    OppositeSign,
    /// More boots are needed.
    Undecided,
}

/// Why the search goes on in a part of the range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum Narrowing {
    /// There are three levels: one step of the asked sign is kept, the other told.
    ThreeLevels {
        /// A commit on the middle level.
        middle: CommitId,
    },
    /// A bad commit has a good descendant: the search goes on after the good one.
    NotMonotonic {
        /// The bad one.
        bad: CommitId,
        /// The good one.
        good: CommitId,
    },
    /// A culprit explains only part of the difference: the rest is looked for.
    Rest,
}

/// Why a session stops without an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum Halt {
    /// Our side broke, too often or beyond trying again.
    Infra(InfraFailure),
    /// The machine time allowed is used up.
    Budget {
        /// Seconds used.
        spent_s: u64,
    },
}

/// An event. `*_started` is written before an effect, its end after; a start without an end means "interrupted".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Event {
    /// Record 0: what was decided before anything was measured.
    Planned {
        /// The plan.
        plan: Box<Plan>,
    },
    /// A process took up the session (at the start, and at each resume).
    Opened {
        /// Its version.
        tool_version: String,
        /// Machine time added to the plan's budget, in seconds.
        more_budget_s: u64,
    },
    /// A torn last record was cut off the journal.
    TailCut {
        /// Bytes cut.
        bytes: u64,
    },
    /// A build begins.
    BuildStarted {
        /// Step.
        step: StepId,
        /// Candidate.
        commit: CommitId,
    },
    /// It ended.
    BuildFinished {
        /// Step.
        step: StepId,
        /// How.
        result: BuildResult,
    },
    /// A boot begins.
    BootStarted {
        /// Step.
        step: StepId,
        /// Number in the session.
        boot: BootNo,
        /// Where.
        sut: SutId,
        /// Candidate.
        commit: CommitId,
        /// 0 in the search; n in the n-th confirmation, whose boots are fresh.
        stage: u32,
        /// Which of the boots of this commit in this stage it is, from 0.
        slot: u32,
        /// Counted runs it is for; more may follow while it is up. 0 in journals of older versions, which had a fixed
        /// number.
        #[serde(default)]
        runs: u32,
        /// Variant that it is measured under; empty: that of the search, so that the search and its verdicts rest on it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        variant: String,
    },
    /// It is up, or not.
    BootFinished {
        /// Step.
        step: StepId,
        /// Number in the session.
        boot: BootNo,
        /// How.
        result: BootResult,
    },
    /// A run begins.
    RunStarted {
        /// Step.
        step: StepId,
        /// The boot it is in.
        boot: BootNo,
        /// Index in the boot, from 1.
        repetition: u32,
    },
    /// It ended.
    RunFinished {
        /// Step.
        step: StepId,
        /// The boot it was in.
        boot: BootNo,
        /// How.
        result: RunResult,
    },
    /// The boot is over; nothing of it runs any more.
    BootEnded {
        /// Number.
        boot: BootNo,
    },
    /// A step of an earlier process had no end; what it did does not count.
    StepInterrupted {
        /// Step.
        step: StepId,
    },
    /// What the endpoints showed.
    EndpointsJudged {
        /// Whether that is the change looked for.
        outcome: EndpointOutcome,
        /// Bad against good.
        evidence: Evidence,
    },
    /// A measured kernel's verdict: what the posterior says of it by now.
    Judged {
        /// Candidate.
        commit: CommitId,
        /// Verdict.
        verdict: Verdict,
        /// Numbers.
        evidence: Evidence,
    },
    /// A verdict does not stand any more.
    VerdictRetracted {
        /// Candidate.
        commit: CommitId,
        /// Why.
        reason: String,
    },
    /// The search goes on in a part of the range.
    Narrowed {
        /// Last commit before it; absent: the good endpoint.
        good: Option<CommitId>,
        /// First commit after it.
        bad: CommitId,
        /// Why.
        why: Narrowing,
    },
    /// Boots of a kernel do not count any more.
    Voided {
        /// They.
        boots: Vec<BootNo>,
        /// Why.
        reason: String,
    },
    /// The path limits were dropped: a parent outside them shows the change.
    PathsDropped {
        /// The parent.
        commit: CommitId,
    },
    /// Fresh boots of culprit and parents begin.
    ConfirmationStarted {
        /// Suspected culprit.
        culprit: CommitId,
        /// Its parents.
        parents: Vec<CommitId>,
    },
    /// They are over.
    ConfirmationFinished {
        /// Suspected culprit.
        culprit: CommitId,
        /// Whether it still shows the change against every parent.
        confirmed: bool,
        /// Culprit against the parent it differs least from, from the fresh boots alone; its `p_error` sums over the
        /// parents.
        evidence: Evidence,
    },
    /// The suspected culprit is not the likeliest any more, or a kernel of it cannot be measured: the search goes on.
    ConfirmationAbandoned {
        /// Suspected culprit.
        culprit: CommitId,
        /// Why.
        reason: String,
    },
    /// What a survey came to: all its boots are there.
    Surveyed {
        /// Its cells, kernel by kernel in the order given, variant by variant.
        cells: Vec<SurveyCell>,
        /// Neighbours that differ.
        steps: Vec<SurveyStep>,
    },
    /// The session stops without an end; `resume` goes on.
    Halted {
        /// Why.
        halt: Halt,
    },
    /// The end.
    Concluded {
        /// It.
        conclusion: Box<Conclusion>,
    },
}
