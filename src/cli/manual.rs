//! Completions and manual pages, made from the arguments themselves. Tested in tests/it/manual.rs with the shells and page
//! readers that are there.

use super::examples::{self, PROGRAM};
use super::{CliError, exit, print};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{self, Write};
use std::path::Path;

/// What a person can set.
const ENVIRONMENT: [(&str, &str); 4] = [
    (
        "SCHED_BISECT_LOG",
        "What goes into trace.log of a session: error, warn, info (if it is not set), debug or trace, or a filter such as sched_bisect::lab=debug.",
    ),
    ("NO_COLOR", "If it is set and not empty, nothing is coloured, on a terminal either."),
    ("PATH", "Where git, make, compilers, qemu and ssh are looked for."),
    ("TMPDIR", "Where short-lived files go."),
];

/// Where things lie; DIR is sched-bisect/ in the git common directory, or what --state-dir names.
const FILES: [(&str, &str); 6] = [
    (
        "DIR",
        "sched-bisect/ in the git common directory (.git), or what --state-dir names. One directory for each session.",
    ),
    (
        "DIR/SESSION/journal.jsonl",
        "Everything that happened, one JSON record a line, each synced before it is relied on.",
    ),
    ("DIR/SESSION/logs/", "What builds, boots and runs printed."),
    ("DIR/SESSION/trace.log", "The program's own trace."),
    (
        "PREFIX/share/sched-bisect/profiles/",
        "The profiles in the program, to read and to copy; the program itself needs none of them.",
    ),
    (
        "PREFIX/share/sched-bisect/hooks/",
        "Hooks that build and that switch power, with the contract in README.md.",
    ),
];

/// `completions SHELL`.
pub(super) fn completions(shell: Shell) -> Result<u8, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut examples::command(), PROGRAM, &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(exit::DONE)
}

/// `man DIR`: a page for the program and one for each command.
pub(super) fn pages(dir: &Path) -> Result<u8, CliError> {
    let failed = |path: &Path| {
        let what = format!("write {}", path.display());
        move |source| CliError::Io { what, source }
    };
    std::fs::create_dir_all(dir).map_err(failed(dir))?;
    let mut whole = examples::command().disable_help_subcommand(true);
    whole.build();
    let mut all = Vec::new();
    collect(&whole, &[], &mut all);
    for (path, command) in all {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let file = dir.join(format!("{}.1", name(&path)));
        let text = page(&path, command).map_err(failed(&file))?;
        std::fs::write(&file, text).map_err(failed(&file))?;
    }
    Ok(exit::DONE)
}

/// The commands with their words; what is hidden has no page.
fn collect<'a>(command: &'a Command, path: &[String], all: &mut Vec<(Vec<String>, &'a Command)>) {
    all.push((path.to_vec(), command));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        collect(sub, &[path, &[sub.get_name().to_owned()]].concat(), all);
    }
}

fn name(path: &[&str]) -> String {
    [&[PROGRAM], path].concat().join("-")
}

fn page(path: &[&str], command: &Command) -> io::Result<Vec<u8>> {
    let name = name(path);
    let man = Man::new(command.clone().display_name(name.clone()));
    let mut out = Vec::new();
    // By hand, as the date is left empty: the same source gives the same page.
    let (title, version) = (name.to_uppercase(), env!("CARGO_PKG_VERSION"));
    writeln!(out, ".TH {title} 1 \"\" \"sched-bisect {version}\" \"sched-bisect manual\"")?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(&mut out)?;
    }
    write!(out, "{}", own_sections(path).render())?;
    Ok(out)
}

/// What the arguments do not tell.
fn own_sections(path: &[&str]) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    match examples::statuses(path) {
        "" => {
            roff.text([roman("0 when it was done, 2 for wrong arguments, another status for a failure; ")]);
            roff.text([bold("sched-bisect"), roman("(1) lists all.")]);
        }
        statuses => status_list(&mut roff, statuses),
    }
    roff.control("SH", ["ENVIRONMENT"]);
    ENVIRONMENT.iter().for_each(|(name, what)| entry(&mut roff, name, what));
    roff.control("SH", ["FILES"]);
    FILES.iter().for_each(|(name, what)| entry(&mut roff, name, what));
    roff.control("SH", ["EXAMPLES"]);
    for (at, (what, line)) in examples::of(path).iter().enumerate() {
        if at > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(format!("{what}:"))]);
        roff.control("PP", []).control("RS", ["4"]).control("nf", []);
        roff.text([roman(*line)]);
        roff.control("fi", []).control("RE", []);
    }
    roff.control("SH", ["SEE ALSO"]);
    let (first, others) =
        if path.is_empty() { ("sched-bisect-start", "sched-bisect-resume") } else { (PROGRAM, "git-bisect") };
    roff.text([bold(first), roman("(1), "), bold(others), roman("(1)")]);
    roff
}

fn entry(roff: &mut Roff, name: &str, what: &str) {
    roff.control("TP", []).text([bold(name)]).text([roman(what)]);
}

/// The lines "   N  words" as a list; what stands after them as a paragraph.
fn status_list(roff: &mut Roff, statuses: &str) {
    for line in statuses.lines().skip(1) {
        if let Some((status, words)) = line.trim().split_once("  ") {
            entry(roff, status, words);
        } else if line.is_empty() {
            roff.control("PP", []);
        } else {
            roff.text([roman(line.trim())]);
        }
    }
}
