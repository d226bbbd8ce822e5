//! `profile list|show|check`.

use super::args::Profile;
use super::{CliError, exit, print};
use crate::model::CommitId;
use crate::profile::{self, Overrides};

/// Runs it.
pub(super) fn run(what: Profile) -> Result<u8, CliError> {
    let out = match what {
        Profile::List => {
            let line = |p: profile::Listed| format!("{:<18} {}\n", p.name, p.description);
            profile::list().into_iter().map(line).collect()
        }
        Profile::Show { profile } => show(&profile)?,
        Profile::Check { profile } => {
            let checked = profile::check(&profile)?;
            let needs = match checked.needs.as_slice() {
                [] => "complete".to_owned(),
                needs => format!("needs from the command line: {}", needs.join(", ")),
            };
            format!("{}: sound, {needs}\n", checked.name)
        }
    };
    print(&out)?;
    Ok(exit::DONE)
}

fn show(name: &str) -> Result<String, CliError> {
    // Revisions are shown as written: there is no repository to resolve them in.
    let unresolved = |_: &str| CommitId::parse(&"0".repeat(40));
    let loaded = profile::load(name, &Overrides::default(), &unresolved)?;
    let mut out = format!("# {}\n", loaded.description);
    for line in loaded.why.lines() {
        out.push_str(&format!("# {line}\n"));
    }
    for line in loaded.explain() {
        out.push_str(&line);
        out.push('\n');
    }
    Ok(out)
}
