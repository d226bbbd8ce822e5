//! Examples of each command, for its help and its manual page. Tested below: every command has one, and each is accepted.

use super::args::{Cli, EXIT_STATUS, PARSE_STATUS};
use clap::{Command, CommandFactory};
use std::fmt::Write;

/// The program's name, and that of its own pages.
pub(super) const PROGRAM: &str = "sched-bisect";

/// What is wanted, and the line that does it.
type Example = (&'static str, &'static str);

const PROGRAM_EXAMPLES: &[Example] = &[
    (
        "Search a kernel tree in QEMU guests, then prove the answer by a revert",
        "sched-bisect start v6.12 v6.13",
    ),
    ("Go on after Ctrl-C, a crash or a power cut", "sched-bisect resume"),
    ("What was found", "sched-bisect report"),
];

const START: &[Example] = &[
    ("What this host lacks for the default profile is told by `doctor`", "sched-bisect start v6.12 v6.13"),
    (
        "Any commands, as with `git bisect run`; the last prints one number",
        "sched-bisect start v2.1 v2.2 --metric seconds --direction lower --build 'make -j8' --run './bench | tail -1'",
    ),
    (
        "A profile of your own, twelve hours of machine time, a mail at the end",
        "sched-bisect start v6.15-rc3 v6.15-rc4 --profile rack.toml --budget 12h --notify 'echo \"$SB_SUMMARY\" | mail -s \"$SB_EVENT\" me'",
    ),
    (
        "What the search would cost; nothing is measured",
        "sched-bisect start v6.15-rc3 v6.15-rc4 --profile rack.toml --plan",
    ),
];

const RESUME: &[Example] = &[
    ("The session that was used last", "sched-bisect resume"),
    ("More machine time for one that used up its budget", "sched-bisect resume v6.12..v6.13 --budget 4h"),
];

const STATUS: &[Example] = &[
    ("Where the session used last stands, and what comes next", "sched-bisect status"),
    ("Follow one that runs in another terminal", "sched-bisect status --watch"),
];

const REPORT: &[Example] = &[
    ("What was found, for people", "sched-bisect report"),
    ("The same for programs", "sched-bisect report v6.12..v6.13 --format json"),
    (
        "For maintainers, to be read and then sent with git send-email",
        "sched-bisect report --format mail --out regression.mail",
    ),
];

const EXPORT: &[Example] = &[
    ("The session used last, for a colleague", "sched-bisect export"),
    ("Another one, under a name of its own", "sched-bisect export v6.12..v6.13 --out rc4.tar.gz"),
];

const IMPORT: &[Example] = &[(
    "Look at it elsewhere; no kernel tree is needed",
    "sched-bisect import rc4.tar.gz --state-dir sessions",
)];

const SURVEY: &[Example] = &[
    ("Three kernels against the first of them", "sched-bisect survey v6.12 v6.13 v6.14"),
    (
        "Under two variants that the profile describes, eight boots of each",
        "sched-bisect survey v6.12 v6.13 --profile rack.toml --boots 8 --variant default --variant batch",
    ),
];

const REVERT_TEST: &[Example] = &[
    ("The culprit that a session named: measured as there", "sched-bisect revert-test bbce3de72be5"),
    (
        "A suspect, before any search",
        "sched-bisect revert-test bbce3de72be5 --on v6.13 --against v6.12 --profile rack.toml",
    ),
];

const SIMULATE: &[Example] = &[
    (
        "A 5 % change among 400 commits, with noise of 3 % from run to run",
        "sched-bisect simulate --effect 5% --run-noise 3%",
    ),
    (
        "What goes wrong when nothing changed",
        "sched-bisect simulate --no-change --searches 50 --costs build=20m,boot=3m,run=10m",
    ),
];

const PARSE: &[Example] = &[
    ("The parsers", "sched-bisect parse"),
    (
        "Whether a log has the number that a session would judge",
        "sched-bisect parse sysbench sysbench.log --metric latency_p95_ms",
    ),
];

const LOG: &[Example] = &[
    ("Everything that happened", "sched-bisect log"),
    ("For git's own bisection", "sched-bisect log --git > log && git bisect replay log"),
];

const DOCTOR: &[Example] = &[
    ("What this host lacks for kernels in QEMU", "sched-bisect doctor"),
    (
        "Prove that a machine boots an entry once and comes back",
        "sched-bisect doctor --profile rack.toml --rehearse",
    ),
];

const CLEANUP: &[Example] = &[
    ("The machine of the session used last", "sched-bisect cleanup"),
    ("The machine of a profile", "sched-bisect cleanup --profile rack.toml"),
];

const COMPLETIONS: &[Example] = &[
    ("For bash", "sched-bisect completions bash > ~/.local/share/bash-completion/completions/sched-bisect"),
    ("For zsh, into a directory of $fpath", "sched-bisect completions zsh > ~/.zfunc/_sched-bisect"),
    ("For fish", "sched-bisect completions fish > ~/.config/fish/completions/sched-bisect.fish"),
];

const PROFILE: &[Example] =
    &[("What a recipe says, and where each value comes from", "sched-bisect profile show qemu-hackbench")];

const PROFILE_NEW: &[Example] = &[
    ("Begin one", "sched-bisect profile new rack.toml"),
    ("Every key with its comment", "sched-bisect profile new | less"),
];

/// Examples of a command, named by its words after the program's.
pub(super) fn of(path: &[&str]) -> &'static [Example] {
    match path {
        [] => PROGRAM_EXAMPLES,
        ["start"] => START,
        ["resume"] => RESUME,
        ["status"] => STATUS,
        ["list"] => &[("The sessions of this repository", "sched-bisect list")],
        ["report"] => REPORT,
        ["export"] => EXPORT,
        ["import"] => IMPORT,
        ["survey"] => SURVEY,
        ["revert-test"] => REVERT_TEST,
        ["log"] => LOG,
        ["audit"] => {
            &[("Compute every verdict again from the raw samples", "sched-bisect audit v6.12..v6.13")]
        }
        ["simulate"] => SIMULATE,
        ["parse"] => PARSE,
        ["profile"] => PROFILE,
        ["profile", "list"] => &[("The recipes in the program", "sched-bisect profile list")],
        ["profile", "show"] => PROFILE,
        ["profile", "new"] => PROFILE_NEW,
        ["profile", "check"] => &[("With line and column", "sched-bisect profile check rack.toml")],
        ["cleanup"] => CLEANUP,
        ["doctor"] => DOCTOR,
        ["completions"] => COMPLETIONS,
        _ => &[],
    }
}

/// What a command's exit statuses are; empty where only success and failure are to be told apart.
pub(super) fn statuses(path: &[&str]) -> &'static str {
    match path {
        [] | ["start" | "resume" | "survey" | "revert-test"] => EXIT_STATUS,
        ["parse"] => PARSE_STATUS,
        _ => "",
    }
}

/// The arguments, with the examples in every help.
pub(super) fn command() -> Command {
    with_help(Cli::command(), &[])
}

fn with_help(command: Command, path: &[&str]) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| {
        let below = [path, &[name.as_str()]].concat();
        command.mut_subcommand(name, |sub| with_help(sub, &below))
    });
    let text = help(path);
    if text.is_empty() { command } else { command.after_help(text) }
}

fn help(path: &[&str]) -> String {
    let mut text = String::new();
    for (what, line) in of(path) {
        let head = if text.is_empty() { "Examples:\n" } else { "" };
        let _ = writeln!(text, "{head}  # {what}\n  {line}");
    }
    let statuses = statuses(path);
    if !statuses.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{gap}{statuses}");
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// Every command that is not hidden, by its words.
    fn commands(command: &Command, path: &[String], found: &mut Vec<Vec<String>>) {
        found.push(path.to_vec());
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            commands(sub, &[path, &[sub.get_name().to_owned()]].concat(), found);
        }
    }

    /// The program's arguments in a line of shell: up to what the shell does with its output.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(std::mem::take(&mut word)),
                '>' | '|' if !quoted => return words,
                _ => word.push(c),
            }
        }
        words.push(word);
        words
    }

    #[test]
    fn every_command_has_an_example_in_its_help_and_each_is_accepted() {
        let mut all = Vec::new();
        commands(&Cli::command(), &[], &mut all);
        assert!(all.len() > 15, "{all:?}");
        for path in &all {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let examples = of(&path);
            assert!(!examples.is_empty(), "{path:?} has no example");
            let mut shown = command();
            let at =
                path.iter().fold(&mut shown, |c, name| c.find_subcommand_mut(name).expect("it is there"));
            let help = at.render_long_help().to_string();
            for (_, line) in examples {
                assert!(help.contains(line), "{line} is not in\n{help}");
                let found = Cli::try_parse_from(words(line));
                assert!(found.is_ok(), "{line}: {}", found.err().map_or_else(String::new, |e| e.to_string()));
            }
            assert!(help.contains(statuses(&path)), "{path:?} lacks its exit statuses");
        }
    }
}
