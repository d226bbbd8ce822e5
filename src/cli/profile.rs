//! `profile list|show|check`.

use super::args::Profile;
use super::{CliError, exit, print};
use crate::model::CommitId;
use crate::profile::{self, Overrides};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// Runs it.
pub(super) fn run(what: Profile) -> Result<u8, CliError> {
    let out = match what {
        Profile::List => {
            let line = |p: profile::Listed| format!("{:<20} {}\n", p.name, p.description);
            profile::list().into_iter().map(line).collect()
        }
        Profile::Show { profile } => show(&profile)?,
        Profile::New { file } => new(file.as_deref())?,
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

/// Never over a file that is there: it may be a profile of weeks.
fn new(file: Option<&Path>) -> Result<String, CliError> {
    let Some(path) = file else { return Ok(profile::template().to_owned()) };
    let written = File::create_new(path).and_then(|mut file| file.write_all(profile::template().as_bytes()));
    written.map_err(|source| CliError::Io { what: format!("write {}", path.display()), source })?;
    Ok(format!("{}: written; `sched-bisect profile check {0}` checks it\n", path.display()))
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
