//! `cleanup`: takes every kernel that this program put on a machine away, and leaves it as it was.

use super::args::Place;
use super::assemble::{Places, machine};
use super::{CliError, exit, print, root, session};
use crate::driver::{self, DriverError, SessionDir};
use crate::history::History;
use crate::lab::ssh::SshMachine;
use crate::lab::ssh::kernels::Cleaned;
use crate::model::CommitId;
use crate::profile::{self, Overrides};
use crate::session::{MachineSpec, Recipe};
use std::collections::HashSet;
use std::fmt::Write as _;

/// Runs it for the machine of a session, or of a profile.
pub(super) fn run(place: &Place, name: Option<&str>, profile: Option<&str>) -> Result<u8, CliError> {
    let root = root(place)?;
    let scratch =
        tempfile::tempdir().map_err(|source| CliError::Io { what: "make a directory".to_owned(), source })?;
    let recipe = match profile {
        Some(profile) => of_profile(place, profile)?,
        None => of_session(&session(&root, name)?)?,
    };
    let MachineSpec::Ssh(spec) = &recipe.machine else {
        let reason = "clean up: this program installs kernels only on machines with machine.kind = \"ssh\"";
        return Err(CliError::Usage(reason.to_owned()));
    };
    let places = Places { owner: scratch.path(), lab: root.path() };
    let parts = machine(spec, &recipe.setup, places)?;
    let host = spec.address.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|source| CliError::Io { what: "start the event loop".to_owned(), source })?;
    let cleaned = runtime.block_on(SshMachine::new(parts, HashSet::new()).clean_up());
    let cleaned = cleaned.map_err(|failure| CliError::Lab(failure.reason))?;
    print(&told(&cleaned, &host))?;
    Ok(exit::DONE)
}

/// What was done, a line each.
pub(super) fn told(cleaned: &Cleaned, host: &str) -> String {
    let mut out = String::new();
    for release in &cleaned.removed {
        let _ = writeln!(out, "removed {release}");
    }
    if let Some(default) = &cleaned.put_back {
        let _ = writeln!(out, "default entry put back: {default}");
    }
    if out.is_empty() {
        out = format!("nothing of this program's is on {host}\n");
    }
    out
}

fn of_session(dir: &SessionDir) -> Result<Recipe, CliError> {
    if dir.imported().exists() {
        return Err(DriverError::Imported { name: dir.name() }.into());
    }
    Ok(driver::load(dir)?.1.plan.recipe)
}

fn of_profile(place: &Place, profile: &str) -> Result<Recipe, CliError> {
    let history = History::open(&place.repo);
    let resolve = |rev: &str| match &history {
        Ok(history) => history.resolve(rev).map(|end| end.commit).map_err(|error| error.to_string()),
        Err(_) => CommitId::parse(&"0".repeat(40)),
    };
    let overrides = Overrides::default();
    Ok(profile::load(profile, &overrides, &resolve)?.recipe)
}
