//! The driver over scripted labs: a disk that fails at any write, back-off, budget, stop requests.

use crate::common::live::interruptions;
use crate::common::scripted::{Failure, Stage, block_on, commit, culprit, stops};
use sched_bisect::driver::{DriverError, End, Stop};
use sched_bisect::journal::{JournalError, Record};
use sched_bisect::model::{InfraKind, RunResult, StepId};
use sched_bisect::session::{Event, Halt, State};
use std::time::Duration;

/// Commits of the line, and the first slow one.
const COMMITS: usize = 5;
const SLOW_FROM: usize = 2;

/// The ways in which a write fails.
const WAYS: [Failure; 3] = [Failure::Half, Failure::Nothing, Failure::Unsynced];

fn stage() -> Stage {
    Stage::begin(COMMITS, SLOW_FROM, |_| {})
}

/// Steps of measured runs.
fn measured(records: &[Record]) -> Vec<StepId> {
    let step = |record: &Record| {
        let Event::RunFinished { step, result: RunResult::Measured { .. }, .. } = record.event else {
            return None;
        };
        Some(step)
    };
    records.iter().filter_map(step).collect()
}

/// Fails the test unless every boot has the runs it was for, but one for each process that was lost.
#[track_caller]
fn assert_nothing_lost(stage: &Stage, state: &State, what: &str) {
    let lost = stage.records().iter().filter(|r| matches!(r.event, Event::Opened { .. })).count();
    let short = state.boots.iter().filter(|boot| boot.runs.len() < boot.wanted as usize).count();
    assert!(short <= lost, "{what}: {short} boots are short of runs after {lost} processes were lost");
}

/// Works on the session until it has named the culprit and has measured nothing twice.
#[track_caller]
fn assert_goes_on(stage: &Stage, what: &str) {
    let (end, state) = stage.work().expect("the disk is sound");
    assert_eq!(end, End::Done, "{what}");
    assert_eq!(culprit(&state), Some(commit(SLOW_FROM)), "{what}: {:?}", state.halted);
    assert_nothing_lost(stage, &state, what);
}

#[test]
fn a_disk_that_fails_at_any_write_loses_only_the_step_of_that_write() {
    let whole = stage();
    assert_goes_on(&whole, "nothing fails");
    let appends = u32::try_from(whole.records().len()).expect("few") - 1;
    assert!(appends > 40, "too short a session to break: {appends} appends");
    for k in 0..appends {
        // Each kind of event is appended often enough to fail in each way.
        let how = WAYS[k as usize % WAYS.len()];
        let what = format!("append {k} fails ({how:?})");
        let stage = stage();
        stage.disk.fails.set(Some((k, how)));
        let error = stage.work().expect_err(&what);
        assert!(matches!(error, DriverError::Journal(JournalError::Io { .. })), "{what}: {error}");
        assert_eq!(stage.script.running.get(), 0, "{what}: a run goes on");
        stage.disk.fails.set(None);
        let before = measured(&stage.records());
        assert_goes_on(&stage, &what);
        let after = measured(&stage.records());
        assert!(after.starts_with(&before), "{what}: {before:?} became {after:?}");
        // One write failed, so at most one run was done without its end in the journal.
        let runs = stage.script.runs.borrow().len();
        assert!(runs <= after.len() + 1, "{what}: {runs} runs for {} measurements", after.len());
    }
}

#[test]
fn a_disk_that_fails_again_at_every_resume_still_comes_to_the_same_end() {
    // Each process gets six records on the disk; taking the session up needs one to four of them.
    let stage = stage();
    let mut resumes = 0;
    let state = loop {
        stage.disk.fails.set(Some((6, WAYS[resumes % WAYS.len()])));
        resumes += 1;
        assert!(resumes < 1000, "no progress");
        match stage.work() {
            Ok((_, state)) => break state,
            Err(DriverError::Journal(JournalError::Io { .. })) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert!(resumes > 15, "only {resumes} resumes: nothing was broken");
    assert_eq!(culprit(&state), Some(commit(SLOW_FROM)));
    assert_nothing_lost(&stage, &state, "after many resumes");
}

#[test]
fn nothing_is_appended_after_a_failed_write() {
    let stage = stage();
    let (mut driver, _) = stage.take_up(0).expect("the journal is sound");
    stage.disk.fails.set(Some((0, Failure::Half)));
    let event = Event::BuildStarted { step: StepId(1), commit: commit(1) };
    driver.record(&event).expect_err("the disk is full");
    let bytes = stage.bytes();
    stage.disk.fails.set(None);
    let error = driver.record(&event).expect_err("what is on the disk is not known");
    assert!(error.to_string().contains("resume"), "{error}");
    assert_eq!(stage.bytes(), bytes);
}

#[test]
fn a_run_that_asks_to_be_tried_again_is_after_a_wait_that_doubles() {
    let stage = stage();
    stage.script.runs_to_fail.set(4);
    assert_goes_on(&stage, "after four failures");
    let runs = stage.script.runs.borrow();
    let waits: Vec<Duration> = runs.windows(2).take(5).map(|pair| pair[1].1 - pair[0].1).collect();
    let ms = |ms: u64| Duration::from_millis(ms);
    assert_eq!(waits, [ms(250), ms(500), ms(1000), ms(2000), ms(0)]);
}

#[test]
fn too_many_failures_of_ours_in_a_row_halt_the_session_and_say_nothing_of_the_commit() {
    let stage = Stage::begin(COMMITS, SLOW_FROM, |plan| plan.recipe.attempts.infra = 3);
    stage.script.runs_to_fail.set(4);
    let (end, state) = stage.work().expect("the disk is sound");
    assert_eq!(end, End::Done);
    assert!(state.conclusion.is_none());
    let Some(Halt::Infra(failure)) = &state.halted else { panic!("halted: {:?}", state.halted) };
    assert_eq!(failure.kind, InfraKind::TryAgain);
    assert_eq!(stage.script.runs.borrow().len(), 3, "attempts before the halt");
    for (commit, known) in &state.commits {
        assert!(
            known.untestable.is_none() && known.verdict.is_none() && known.failures.is_empty(),
            "{commit}"
        );
    }
    assert!(state.boots.iter().all(|boot| boot.lost.is_empty() && boot.failed_attempts == 0));
    // The one failure that is left does not add to those before the resume.
    assert_goes_on(&stage, "after the halt");
}

#[test]
fn a_spent_budget_halts_between_steps_and_more_budget_goes_on() {
    let stage = Stage::begin(COMMITS, SLOW_FROM, |plan| plan.recipe.budget_s = Some(60));
    let (end, state) = stage.work().expect("the disk is sound");
    assert_eq!(end, End::Done);
    let Some(Halt::Budget { spent_s }) = state.halted else { panic!("halted: {:?}", state.halted) };
    assert!((60..=70).contains(&spent_s), "a tick is a second, a step a few: {spent_s}");
    assert!(state.open.is_empty());
    // Without more, it halts again and measures nothing.
    let runs = stage.script.runs.borrow().len();
    let (_, state) = stage.work().expect("the disk is sound");
    assert!(matches!(state.halted, Some(Halt::Budget { .. })), "{:?}", state.halted);
    assert_eq!(stage.script.runs.borrow().len(), runs);
    let (mut driver, _) = stage.take_up(3600).expect("the journal is sound");
    let (_send, stop) = stops(&[]);
    block_on(driver.run(stage.script.lab(), stop)).expect("the disk is sound");
    assert_eq!(culprit(&driver.state), Some(commit(SLOW_FROM)));
    assert!(driver.state.boots.iter().all(|boot| boot.runs.len() >= boot.wanted as usize), "after two halts");
}

#[test]
fn time_in_which_no_process_worked_is_not_spent() {
    let mut stage = stage();
    let (driver, _) = stage.take_up(0).expect("the journal is sound");
    let spent = driver.state.spent.seconds;
    // A million seconds go by before the next process writes its first record.
    stage.tick_ms = 1_000_000_000;
    let (driver, _) = stage.take_up(0).expect("the journal is sound");
    assert_eq!(driver.state.spent.seconds, spent);
}

#[test]
fn a_stop_after_the_step_keeps_its_measurement() {
    let stage = stage();
    let (mut driver, _) = stage.take_up(0).expect("the journal is sound");
    let (_send, stop) = stops(&[Stop::AfterStep]);
    let end = block_on(driver.run(stage.script.lab(), stop)).expect("the disk is sound");
    assert_eq!(end, End::Interrupted);
    assert!(driver.state.open.is_empty(), "the step has its end: {:?}", driver.state.open);
    assert!(!stage.records().iter().any(|r| matches!(r.event, Event::StepInterrupted { .. })));
    assert_goes_on(&stage, "after a stop");
}

#[test]
fn a_stop_now_ends_a_run_that_hangs_and_the_resume_repeats_it_alone() {
    let stage = stage();
    stage.script.run_hangs.set(true);
    let (mut driver, _) = stage.take_up(0).expect("the journal is sound");
    let (send, stop) = stops(&[]);
    let script = stage.script.clone();
    let ask = async {
        while script.running.get() == 0 {
            tokio::task::yield_now().await;
        }
        send.send(Stop::AfterStep).await.expect("the driver listens");
        send.send(Stop::Now).await.expect("the driver listens");
    };
    let (end, ()) = block_on(async { tokio::join!(driver.run(stage.script.lab(), stop), ask) });
    assert_eq!(end.expect("the disk is sound"), End::Interrupted);
    assert_eq!(stage.script.running.get(), 0, "the run goes on");
    let hung = stage.script.runs.borrow()[0].0;
    assert_goes_on(&stage, "after a hanging run");
    assert_eq!(interruptions(&stage.records()), [hung]);
}
