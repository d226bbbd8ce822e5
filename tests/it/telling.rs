//! `--notify` and `--json-events`: who else is told of a session, over the real binary and real commands.

use crate::common::live::{SESSION, Scene, Setting, wait_for};
use rustix::process::Signal;
use sched_bisect::journal::Record;
use serde_json::Value;
use std::io::Read;
use std::process::Stdio;

/// Notes everything that it is told, one line a variable, and that it was called.
fn notifier(scene: &Scene) -> String {
    let file = scene.note("told");
    format!(
        "for v in EVENT SESSION CONCLUSION EXIT STATE_DIR SUMMARY; do eval \"echo \\\"$v=\\$SB_$v\\\"\"; done >> {}; echo talk",
        file.display()
    )
}

fn told(scene: &Scene) -> Vec<String> {
    let text = std::fs::read_to_string(scene.note("told")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_command_is_told_of_the_conclusion_once_and_can_read_the_report() {
    let setting = Setting::default();
    let scene = Scene::new(setting);
    let program = assert_cmd::cargo::cargo_bin!("sched-bisect").display().to_string();
    let copy = scene.note("report");
    let command = format!("{}; {program} report \"$SB_SESSION\" > {}", notifier(&scene), copy.display());
    let said = scene.start(&["--notify", &command]).wait().exits(0);
    let lines = told(&scene);
    let state_dir = scene.session().path().parent().expect("a parent").display().to_string();
    assert_eq!(
        lines[..5],
        [
            "EVENT=concluded".to_owned(),
            format!("SESSION={SESSION}"),
            "CONCLUSION=culprit".to_owned(),
            "EXIT=0".to_owned(),
            format!("STATE_DIR={state_dir}"),
        ]
    );
    assert!(lines[5].starts_with("SUMMARY=") && lines[5].contains(scene.culprit().short()), "{lines:?}");
    // What it prints is talk, and no part of the report.
    assert!(said.err.contains("talk\n") && !said.out.contains("talk"), "{said:?}");
    assert_eq!(std::fs::read_to_string(copy).expect("it ran"), said.out);
    // A session that had concluded before has no news.
    scene.begin(&["resume", SESSION, "--notify", &command]).wait().exits(0);
    assert_eq!(told(&scene), lines);
    scene.assert_concluded(setting);
}

#[test]
fn a_command_is_told_of_a_stop_and_of_an_interrupt() {
    let scene = Scene::new(Setting { infra: 2, ..Setting::default() });
    let command = notifier(&scene);
    std::fs::write(scene.note("broken"), "").expect("writes");
    scene.start(&["--notify", &command]).wait().exits(5);
    let lines = told(&scene);
    assert_eq!(lines[0], "EVENT=infrastructure");
    assert_eq!(lines[2..4], ["CONCLUSION=stopped", "EXIT=5"]);
    assert!(lines[5].contains("no route to the machine"), "{lines:?}");

    std::fs::remove_file(scene.note("broken")).expect("removes");
    std::fs::remove_file(scene.note("told")).expect("removes");
    scene.hold("run 2.1");
    let running = scene.begin(&["resume", SESSION, "--notify", &command]);
    wait_for("a run", || (scene.executed("run").len() > 2).then_some(()));
    running.signal(Signal::TERM);
    scene.go();
    running.wait().exits(75);
    let lines = told(&scene);
    assert_eq!((lines[0].as_str(), lines[3].as_str()), ("EVENT=interrupted", "EXIT=75"));
}

#[test]
fn a_command_is_told_that_the_budget_is_used_up() {
    let scene = Scene::new(Setting::default());
    scene.start(&["--budget", "1s", "--notify", &notifier(&scene)]).wait().exits(6);
    let lines = told(&scene);
    assert_eq!((lines[0].as_str(), lines[3].as_str()), ("EVENT=budget", "EXIT=6"));
}

#[test]
fn a_command_that_fails_is_a_warning_and_changes_nothing() {
    let setting = Setting::default();
    let scene = Scene::new(setting);
    let said = scene.start(&["--notify", "exit 3"]).wait().exits(0);
    said.complains("warning: --notify: it exited with status 3");
    scene.assert_concluded(setting);
}

fn lines_of(out: &str) -> (Vec<Record>, Value) {
    let mut lines: Vec<&str> = out.lines().collect();
    let end = lines.pop().expect("a last line");
    let records = lines.iter().map(|line| serde_json::from_str(line).expect("a record")).collect();
    (records, serde_json::from_str(end).expect("JSON"))
}

#[test]
fn events_are_the_records_of_the_journal_line_by_line_with_an_end() {
    let scene = Scene::new(Setting::default());
    let said = scene.start(&["--json-events"]).wait().exits(0);
    let journal = std::fs::read_to_string(scene.session().journal()).expect("a journal");
    let (records, end) = lines_of(&said.out);
    assert!(said.out.starts_with(&journal), "byte for byte");
    assert_eq!(records, scene.load().1);
    assert_eq!(
        (&end["type"], &end["exit"], &end["conclusion"], &end["session"]),
        (&"end".into(), &0.into(), &"culprit".into(), &SESSION.into())
    );
    assert!(end["summary"].as_str().is_some_and(|s| s.contains(scene.culprit().short())), "{end}");
    said.complains("commits hold 95 %");
}

#[test]
fn events_of_a_resumed_session_begin_with_record_0() {
    let scene = Scene::new(Setting { infra: 2, ..Setting::default() });
    std::fs::write(scene.note("broken"), "").expect("writes");
    let (_, end) = lines_of(&scene.start(&["--json-events"]).wait().exits(5).out);
    assert_eq!((&end["exit"], &end["conclusion"]), (&5.into(), &"stopped".into()));
    std::fs::remove_file(scene.note("broken")).expect("removes");
    let said = scene.begin(&["resume", SESSION, "--json-events"]).wait().exits(0);
    let (records, _) = lines_of(&said.out);
    assert_eq!(records, scene.load().1);
}

#[test]
fn a_reader_of_events_that_goes_away_does_not_harm_the_session() {
    let setting = Setting::default();
    let scene = Scene::new(setting);
    let profile = scene.profile().display().to_string();
    let args = ["start", "c0", "c8", "--session", SESSION, "--profile", &profile, "--json-events"];
    let mut child = scene
        .command(&args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut first = [0];
    child.stdout.take().expect("piped").read_exact(&mut first).expect("there is a first byte");
    let said = child.wait_with_output().expect("it is our child");
    let err = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(0), "{err}");
    assert_eq!(err.matches("--json-events ends here (the reader is gone)").count(), 1, "{err}");
    scene.assert_concluded(setting);
}
