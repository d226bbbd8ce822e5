//! What is shown of a session at work, where it runs and from elsewhere: on a terminal of the test's own, and without one.

use crate::common::live::{SESSION, Scene, Setting, wait_for};
use crate::common::terminal::{COLUMNS, Terminal};
use rustix::process::Signal;
use std::io::Read;
use std::process::{Child, Command, Stdio};

fn on_terminal(mut command: Command) -> Command {
    command.env("TERM", "xterm").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn start(scene: &Scene) -> Command {
    let profile = scene.profile().display().to_string();
    on_terminal(scene.command(&["start", "c0", "c8", "--session", SESSION, "--profile", &profile]))
}

fn ends(mut child: Child, status: i32) {
    let ended = wait_for("the program to end", || child.try_wait().expect("it is our child"));
    assert_eq!(ended.code(), Some(status));
}

#[test]
fn on_a_terminal_what_happens_and_is_believed_stands_below_what_scrolls_within_80_columns() {
    let scene = Scene::new(Setting::default());
    // Held where something is believed already.
    let count = {
        let trial = Scene::new(Setting::default());
        trial.start(&[]).wait().exits(0);
        trial.executed("boot").len()
    };
    scene.hold(&format!("boot {count}"));
    let terminal = Terminal::new();
    let child = start(&scene).stdout(Stdio::null()).stderr(terminal.stdio()).spawn().expect("starts");
    scene.await_held();
    let held = format!(" boot {count} of ");
    let area = wait_for("the lines below", || {
        let rows = terminal.rows();
        let first = rows.iter().rposition(|row| row.contains(&held))?;
        let area = rows[first..].to_vec();
        area.iter().any(|row| row.starts_with("  last ")).then_some(area)
    });
    // One row each, in this order: nothing is wrapped, nothing is left of an earlier drawing.
    let heads: Vec<&str> = area.iter().map(|row| row.get(2..12).unwrap_or_default().trim()).collect();
    let at =
        |head: &str| heads.iter().position(|h| *h == head).unwrap_or_else(|| panic!("{head}: {area:#?}"));
    assert_eq!(at("believed"), 1, "{area:#?}");
    assert!(at("to come") < at("spent") && at("spent") < at("last"), "{area:#?}");
    assert!(area[at("to come") - 1].contains("of 8 commits hold 95 %"), "{area:#?}");
    assert!((2..=7).contains(&(at("to come") - at("believed"))), "five commits at most: {area:#?}");
    assert!(area.len() - at("last") <= 3, "{area:#?}");
    assert!(area[1..at("to come")].iter().any(|row| row.ends_with(" c5")), "{area:#?}");
    assert!(
        area[0].ends_with('s') && area[0].chars().count() == COLUMNS,
        "the time at the right edge: {area:#?}"
    );
    scene.go();
    ends(child, 0);
    let rows = wait_for("its end", || {
        let rows = terminal.rows();
        rows.iter().any(|row| row.starts_with("concluded: ")).then_some(rows)
    });
    let left = rows.iter().find(|row| row.starts_with("  believed") || row.starts_with("  spent"));
    assert_eq!(left, None, "what moved is taken away: {rows:#?}");
    assert!(!has_colour(&terminal.text()), "a colour, with NO_COLOR set");
}

/// Whether a sequence that begins with an escape ends in m.
fn has_colour(text: &str) -> bool {
    let ends = |part: &str| part.chars().find(char::is_ascii_alphabetic) == Some('m');
    text.split('\u{1b}').skip(1).any(ends)
}

#[test]
fn without_a_terminal_a_verdict_is_followed_by_what_is_still_expected() {
    let scene = Scene::new(Setting::default());
    let said = scene.start(&[]).wait().exits(0);
    let verdict = said.err.lines().find(|line| line.contains("commits hold 95 %")).expect("a verdict");
    assert!(verdict.contains("; expected: ") && verdict.contains("; 90 % within "), "{verdict}");
}

#[test]
fn a_session_at_work_is_watched_from_elsewhere_until_it_concludes() {
    let scene = Scene::new(Setting::default());
    scene.hold("run 3.1");
    let running = scene.start(&[]);
    scene.await_held();
    let watch = scene.begin(&["status", "--watch", "--interval", "1s"]);
    let terminal = Terminal::new();
    let shown = on_terminal(scene.command(&["status", SESSION, "--watch", "--interval", "1s"]))
        .stdout(terminal.stdio())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    terminal.await_text("works on it");
    terminal.await_text("run 1 in boot 3 of ");
    // Looking does not take the lock: another that works is refused for its own sake only.
    scene.run(&["resume", SESSION]).exits(2).complains("another sched-bisect works on it");
    scene.go();
    running.wait().exits(0);
    let said = watch.wait().exits(0);
    assert!(said.out.contains("run 1 in boot 3 of "), "{}", said.out);
    assert!(said.out.contains(": process ") && said.out.contains("stands        culprit"), "{}", said.out);
    assert!(!said.out.contains('\u{1b}'), "{:?}", said.out);
    ends(shown, 0);
    terminal.await_text("stands        culprit");
}

#[test]
fn who_watches_leaves_by_an_interrupt_and_the_session_goes_on() {
    let scene = Scene::new(Setting::default());
    scene.hold("run 1.1");
    let running = scene.start(&[]);
    scene.await_held();
    let watch = scene.begin(&["status", "--watch", "--interval", "1h"]);
    wait_for("its first block", || watch.said_so_far().contains("spent").then_some(()));
    watch.signal(Signal::INT);
    watch.wait().exits(0);
    scene.go();
    running.wait().exits(0);
}

#[test]
fn a_watched_session_on_which_nobody_works_says_so_and_a_block_comes_only_with_news() {
    let scene = Scene::new(Setting::default());
    std::fs::write(scene.note("broken"), "").expect("writes");
    scene.start(&[]).wait().exits(5);
    std::fs::remove_file(scene.note("broken")).expect("removes");
    let mut watch = scene
        .command(&["status", "--watch", "--interval", "1s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut out = watch.stdout.take().expect("piped");
    let mut text = String::new();
    let mut read_until = |part: &str| {
        while !text.contains(part) {
            let mut bytes = [0; 4096];
            let read = out.read(&mut bytes).expect("reads");
            assert_ne!(read, 0, "{part:?} is not in {text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        text.clone()
    };
    let first = read_until("spent");
    assert!(
        first.contains("no process of this host works on it; `sched-bisect resume s` goes on"),
        "{first}"
    );
    scene.resume().wait().exits(0);
    let all = read_until("stands        culprit");
    let blocks: Vec<&str> = all.split("\n\n").collect();
    assert!(blocks.windows(2).all(|two| two[0] != two[1]), "{all}");
    ends(watch, 0);
}
