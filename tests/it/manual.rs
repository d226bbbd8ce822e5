//! Completions and manual pages, over the real binary, held against the shells and page readers of this host.

use std::path::Path;
use std::process::{Command, Output};

fn program(args: &[&str]) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("sched-bisect"));
    let output = command.args(args).output().expect("the program starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// What a program of this host says of a file; `None` where it is not installed.
fn judged(tool: &str, args: &[&str], file: &Path) -> Option<Output> {
    let found = Command::new(tool).args(args).arg(file).env("LC_ALL", "C.UTF-8").output();
    found.inspect_err(|error| eprintln!("{tool} is left out: {error}")).ok()
}

#[test]
fn completions_are_accepted_by_the_shells_and_know_every_command() {
    let dir = tempfile::tempdir().expect("a directory");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = program(&["completions", shell]).stdout;
        let file = dir.path().join(shell);
        std::fs::write(&file, &text).expect("writes");
        let text = String::from_utf8(text).expect("UTF-8");
        for known in ["revert-test", "minimum-effect", "completions", "rehearse"] {
            assert!(text.contains(known), "{known} is not in the completions of {shell}");
        }
        if !["bash", "zsh", "fish"].contains(&shell) {
            continue;
        }
        match judged(shell, &["-n"], &file) {
            Some(said) => {
                assert!(said.status.success(), "{shell}: {}", String::from_utf8_lossy(&said.stderr));
            }
            None => assert_ne!(shell, "bash", "bash is on every host of ours"),
        }
    }
}

#[test]
fn each_command_has_a_manual_page_that_page_readers_accept() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("made/man1");
    program(&["man", at.to_str().expect("UTF-8")]);
    let mut pages: Vec<_> =
        std::fs::read_dir(&at).expect("made").map(|e| e.expect("an entry").path()).collect();
    pages.sort();
    let names: Vec<_> = pages.iter().map(|p| p.file_name().expect("a name").to_string_lossy()).collect();
    for page in ["sched-bisect.1", "sched-bisect-start.1", "sched-bisect-profile-show.1"] {
        assert!(names.iter().any(|name| name == page), "{page} is not among {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("-man.") || name.contains("help")), "{names:?}");
    for page in &pages {
        let text = std::fs::read_to_string(page).expect("a page");
        for section in ["NAME", "SYNOPSIS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"] {
            let quoted = format!("\"{section}\"");
            let is_there =
                text.lines().any(|l| l.strip_prefix(".SH ").is_some_and(|s| s == section || s == quoted));
            assert!(is_there, "{} lacks {section}", page.display());
        }
        for (tool, args) in [
            ("mandoc", &["-T", "lint", "-W", "warning"][..]),
            ("groff", &["-man", "-ww", "-z", "-Tutf8", "-rLL=80n"][..]),
        ] {
            let Some(said) = judged(tool, args, page) else { continue };
            let words = [said.stdout, said.stderr].concat();
            let words = String::from_utf8_lossy(&words);
            let faults: Vec<&str> = words.lines().filter(|line| !is_known(line)).collect();
            assert!(faults.is_empty(), "{tool}: {faults:#?}");
        }
    }
}

/// A page has no date, so that the same source gives the same page; and clap_mangen sets breaks around lists of values.
fn is_known(line: &str) -> bool {
    ["missing date", "br before sp", "br after sp"].iter().any(|known| line.contains(known))
}
