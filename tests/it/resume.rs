//! Real processes, killed and signalled: nothing that was measured is lost, nothing is measured twice, and nobody
//! else's work is touched.

use crate::common::live::{Running, SESSION, Scene, Setting, users_git};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::Signal;
use sched_bisect::journal::Record;
use sched_bisect::model::{InfraKind, RunResult, StepId};
use sched_bisect::session::{Boot, Event, Halt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Seed of the moments at which the program is killed.
const SEED: u64 = 20_240_501;

/// Sessions that are killed.
const KILLED: u64 = 20;

/// Records of a session that is left alone, about.
const RECORDS: usize = 50;

/// Edits that are not committed: a modified file, a staged one, one that git does not know.
fn make_dirty(scene: &Scene) {
    let checkout = scene.repo.path();
    std::fs::write(checkout.join("README"), "edited\n").expect("writes");
    std::fs::write(checkout.join("staged"), "staged\n").expect("writes");
    users_git(scene, &["add", "staged"]);
    std::fs::write(checkout.join("scratch"), "scratch\n").expect("writes");
}

/// What a user may do between two steps; the third does nothing.
fn users_own_bisection(scene: &Scene, which: u64) {
    match which % 3 {
        0 => {
            users_git(scene, &["bisect", "start"]);
            users_git(scene, &["bisect", "bad", "c8"]);
            users_git(scene, &["bisect", "good", "c0"]);
        }
        1 => {
            users_git(scene, &["bisect", "start", "c8", "c0"]);
            users_git(scene, &["bisect", "reset"]);
        }
        _ => {}
    }
}

/// Lets the program work until the journal has so many records, and a moment longer; then kills it. Gives whether it was
/// still at work.
fn work_and_kill(scene: &Scene, records: usize, moment: Duration) -> bool {
    let mut running = if scene.has_session() { scene.resume() } else { scene.start(&[]) };
    while scene.journal_lines() < records && !running.has_ended() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Not to wait for anything: any moment will do.
    std::thread::sleep(moment);
    let at_work = !running.has_ended();
    running.kill_9();
    at_work
}

/// One session, killed once to three times; gives how often it was at work when it was killed.
fn kill_and_resume(seed: u64) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let setting = Setting::default();
    let scene = Scene::new(setting);
    make_dirty(&scene);
    let mut users = scene.users_files();
    let mut kills = 0;
    for kill in 0..rng.random_range(1..=3) {
        let records = rng.random_range(0..RECORDS);
        let moment = Duration::from_micros(rng.random_range(0..40_000));
        kills += usize::from(work_and_kill(&scene, records, moment));
        assert!(scene.users_files() == users, "the user's repository was changed before kill {kill}");
        users_own_bisection(&scene, rng.random());
        users = scene.users_files();
    }
    let last = if scene.has_session() { scene.resume() } else { scene.start(&[]) };
    let said = last.wait().exits(0);
    assert!(said.out.contains(scene.culprit().short()), "{}", said.out);
    scene.assert_concluded(setting);
    assert!(scene.users_files() == users, "the user's repository was changed");
    assert_cleaned_up(&scene);
    kills
}

/// The session's worktree is gone, and nothing of it is left in the user's repository.
fn assert_cleaned_up(scene: &Scene) {
    assert!(!scene.session().path().join("source").exists(), "the worktree stays");
    let entries = std::fs::read_dir(scene.repo.path().join(".git/worktrees")).map_or(0, Iterator::count);
    assert_eq!(entries, 0, "entries of worktrees stay");
}

#[test]
fn a_session_killed_at_any_moment_comes_to_the_same_end_and_measures_nothing_twice() {
    let (next, kills) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        loop {
            let seed = SEED + next.fetch_add(1, Ordering::Relaxed);
            if seed >= SEED + KILLED {
                break;
            }
            match std::panic::catch_unwind(|| kill_and_resume(seed)) {
                Ok(times) => drop(kills.fetch_add(times as u64, Ordering::Relaxed)),
                Err(_) => panic!("the session with seed {seed} (see above)"),
            }
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(work);
        }
    });
    let kills = kills.into_inner();
    assert!(kills >= KILLED, "only {kills} kills met the program at work");
}

#[test]
fn a_first_interrupt_finishes_the_open_step_and_keeps_its_measurement() {
    let setting = Setting { warmup_runs: 1, ..Setting::default() };
    let scene = Scene::new(setting);
    scene.hold("run 2.2");
    let running = scene.start(&[]);
    scene.await_held();
    running.signal(Signal::INT);
    running.await_talk("finishing the step that runs");
    scene.go();
    running.wait().exits(75).complains("resume s");
    assert_eq!(scene.left_processes(), Vec::<String>::new());
    let (state, records) = scene.load();
    let last_run = *scene.executed("run").last().expect("runs were executed");
    let kept = |record: &Record| matches!(record.event, Event::RunFinished { step, result: RunResult::Measured { .. }, .. } if step == last_run);
    assert!(records.iter().any(kept), "the run that was open was lost");
    assert!(state.open.is_empty(), "{:?}", state.open);
    scene.resume().wait().exits(0);
    scene.assert_concluded(setting);
    assert_eq!(scene.interruptions(), Vec::<StepId>::new());
}

/// Interrupts a session in the named command; it must end at once, with everything it started, and go on later.
fn ends_at_once(held: &str, interrupt: impl Fn(&Running)) {
    let setting = Setting { warmup_runs: 1, ..Setting::default() };
    let scene = Scene::new(setting);
    make_dirty(&scene);
    let users = scene.users_files();
    scene.hold(held);
    let running = scene.start(&[]);
    scene.await_held();
    interrupt(&running);
    // The command that is held would never end by itself.
    running.wait().exits(75).complains("resume s");
    assert_eq!(scene.left_processes(), Vec::<String>::new(), "in {held}");
    assert!(scene.users_files() == users, "in {held}: the user's repository was changed");
    scene.go();
    scene.resume().wait().exits(0);
    scene.assert_concluded(setting);
    assert_eq!(scene.interruptions().len(), 1, "in {held}");
    assert!(scene.users_files() == users, "in {held}: the user's repository was changed");
}

fn interrupt_twice(running: &Running) {
    running.signal(Signal::INT);
    running.await_talk("finishing the step that runs");
    running.signal(Signal::INT);
}

#[test]
fn a_second_interrupt_ends_the_open_run_at_once() {
    ends_at_once("run 3.2", interrupt_twice);
}

#[test]
fn a_second_interrupt_ends_the_open_build_at_once() {
    ends_at_once("build 3", interrupt_twice);
}

#[test]
fn a_termination_ends_the_open_boot_at_once() {
    ends_at_once("boot 4", |running| running.signal(Signal::TERM));
}

#[test]
fn a_termination_ends_the_open_run_at_once() {
    ends_at_once("run 3.1", |running| running.signal(Signal::TERM));
}

#[test]
fn a_hang_up_ends_the_open_build_at_once() {
    ends_at_once("build 1", |running| running.signal(Signal::HUP));
}

/// Interrupts boot 2 in its last run: what was measured before stays, and later runs are in boots of their own.
fn interrupted_inside_a_boot(warmup_runs: u32) {
    let setting = Setting { warmup_runs, ..Setting::default() };
    let scene = Scene::new(setting);
    let last = warmup_runs + 1;
    scene.hold(&format!("run 2.{last}"));
    let running = scene.start(&[]);
    scene.await_held();
    interrupt_twice(&running);
    running.wait().exits(75);
    let before = scene.load().0;
    assert_eq!(before.boots[1].runs.len() as u32, last - 1, "runs before the interruption");
    scene.go();
    scene.resume().wait().exits(0);
    let (after, _) = scene.load();
    assert_eq!(after.boots[1].runs, before.boots[1].runs, "what was measured before");
    let id = |boot: &Boot| boot.record.as_ref().map(|record| record.boot_id.clone()).expect("it was up");
    assert!(after.boots[2..].iter().all(|boot| id(boot) != id(&after.boots[1])), "boots of their own");
    scene.assert_concluded(setting);
}

#[test]
fn runs_before_an_interrupt_stay_and_later_ones_are_in_boots_of_their_own() {
    interrupted_inside_a_boot(1);
}

#[test]
fn runs_before_an_interrupt_stay_and_the_new_boot_warms_up_again() {
    interrupted_inside_a_boot(3);
}

#[test]
fn a_session_at_work_is_not_taken_up_twice_but_can_be_looked_at() {
    let setting = Setting::default();
    let scene = Scene::new(setting);
    scene.hold("run 3.1");
    let running = scene.start(&[]);
    scene.await_held();
    let lines = scene.journal_lines();
    let session = scene.session().path().display().to_string();
    scene.run(&["resume", SESSION]).exits(2).complains(&session);
    scene.run(&["resume"]).exits(2).complains(&session);
    scene.start(&[]).wait().exits(2).complains(&session);
    for command in ["status", "report", "log", "audit"] {
        let said = scene.run(&[command, SESSION]).exits(0);
        assert!(!said.out.is_empty(), "{command} says nothing");
    }
    assert!(scene.run(&["list"]).exits(0).out.starts_with(SESSION));
    assert_eq!(scene.journal_lines(), lines, "somebody wrote to the journal");
    scene.go();
    running.wait().exits(0);
    scene.assert_concluded(setting);
}

#[test]
fn two_sessions_of_one_repository_work_at_once() {
    let setting = Setting::default();
    let scene = Scene::new(setting);
    scene.hold("run 3.1");
    let running = scene.start(&[]);
    scene.await_held();
    let profile = scene.profile();
    let profile = profile.to_str().expect("a temporary directory in UTF-8");
    std::fs::remove_file(scene.note("hold")).expect("removes");
    let other = ["start", "c4", "c6", "--session", "other", "--profile", profile];
    let said = scene.run(&other).exits(0);
    assert!(said.out.contains(scene.culprit().short()), "{}", said.out);
    scene.go();
    let said = running.wait().exits(0);
    assert!(said.out.contains(scene.culprit().short()), "{}", said.out);
    assert_cleaned_up(&scene);
}

#[test]
fn a_command_that_asks_to_be_tried_again_halts_the_session_until_its_cause_is_gone() {
    let setting = Setting { infra: 2, ..Setting::default() };
    let scene = Scene::new(setting);
    std::fs::write(scene.note("broken"), "").expect("writes");
    let said = scene.start(&[]).wait().exits(5);
    assert!(
        said.flat().contains("resume s") && said.flat().contains("no route to the machine"),
        "{}",
        said.out
    );
    assert_eq!(scene.executed("run").len(), 2, "attempts");
    let (state, _) = scene.load();
    let Some(Halt::Infra(failure)) = &state.halted else { panic!("halted: {:?}", state.halted) };
    assert_eq!(failure.kind, InfraKind::TryAgain);
    assert!(state.commits.values().all(|known| known.untestable.is_none() && known.verdict.is_none()));
    assert_eq!(scene.left_processes(), Vec::<String>::new());
    scene.resume().wait().exits(5);
    assert_eq!(scene.executed("run").len(), 4, "attempts");
    std::fs::remove_file(scene.note("broken")).expect("removes");
    scene.resume().wait().exits(0);
    let (state, _) = scene.load();
    assert_eq!(state.conclusion.and_then(|c| c.commit).as_ref(), Some(scene.culprit()));
    assert_eq!(scene.executed("run").len() as u64, state.spent.runs + 4, "runs beside the failed attempts");
}

#[test]
fn a_spent_budget_halts_and_more_budget_goes_on_without_measuring_anything_twice() {
    // The runs of the endpoints alone take longer: each sleeps for 30 ms.
    let setting = Setting { warmup_runs: 8, ..Setting::default() };
    let scene = Scene::new(setting);
    let said = scene.start(&["--budget", "1s"]).wait().exits(6);
    assert!(said.out.contains("--budget"), "{}", said.out);
    assert_eq!(scene.left_processes(), Vec::<String>::new());
    let runs = scene.executed("run").len();
    scene.resume().wait().exits(6);
    assert_eq!(scene.executed("run").len(), runs, "a run without budget");
    scene.run(&["resume", SESSION, "--budget", "1h"]).exits(0);
    scene.assert_concluded(setting);
}

#[test]
fn a_session_whose_logs_were_cleared_away_goes_on() {
    let setting = Setting { warmup_runs: 8, ..Setting::default() };
    let scene = Scene::new(setting);
    scene.start(&["--budget", "1s"]).wait().exits(6);
    for part in ["logs", "boots"] {
        std::fs::remove_dir_all(scene.session().path().join(part)).expect("removes");
    }
    scene.run(&["resume", SESSION, "--budget", "1h"]).exits(0);
    scene.assert_concluded(setting);
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_record_costs_that_record_alone() {
    let setting = Setting::default();
    let scene = Scene::new(setting);
    let room = 12_288;
    let said = scene.start_in_little_room(room).wait().exits(5);
    said.complains("journal.jsonl");
    assert_eq!(scene.left_processes(), Vec::<String>::new());
    let journal = std::fs::read(scene.session().journal()).expect("a journal");
    assert_eq!(journal.len(), room as usize, "there was more room, or less");
    // How long the records before are depends on the host's names; hardly ever does one end just there.
    let torn = !journal.ends_with(b"\n");
    let said = scene.resume().wait().exits(0);
    assert_eq!(said.err.contains("cut off the journal"), torn, "{}", said.err);
    scene.assert_concluded(setting);
}

#[test]
fn a_concluded_session_is_reported_again_and_measures_nothing() {
    let setting = Setting::default();
    let scene = Scene::new(setting);
    let said = scene.start(&[]).wait().exits(0);
    let journal = std::fs::read(scene.session().journal()).expect("a journal");
    assert_eq!(scene.resume().wait().exits(0).out, said.out);
    assert_eq!(std::fs::read(scene.session().journal()).expect("a journal"), journal);
    scene.assert_concluded(setting);
}

#[test]
fn a_session_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let scene = Scene::new(Setting::default());
    let users = scene.users_files();
    let file = scene.repo.beside("file");
    std::fs::write(&file, "").expect("writes");
    for place in [file.join("below"), "/proc/nobody-makes-this".into(), file.clone()] {
        let place = place.to_str().expect("UTF-8");
        scene.start(&["--state-dir", place]).wait().exits(5).complains(place);
        assert!(!Path::new(place).join(SESSION).exists());
    }
    assert_eq!(scene.executed("build"), Vec::<StepId>::new());
    assert!(scene.users_files() == users, "the user's repository was changed");
}

#[test]
fn what_a_killed_start_left_half_made_is_cleared_away_by_the_next() {
    let scene = Scene::new(Setting::default());
    let session = scene.session();
    let left = session.path().with_file_name(".making-left");
    std::fs::create_dir_all(left.join("logs")).expect("makes");
    scene.start(&[]).wait().exits(0);
    assert!(session.journal().exists() && !left.exists());
}
