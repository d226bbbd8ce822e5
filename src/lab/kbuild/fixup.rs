//! Fix-up patches: put on for the build, taken off with the next checkout.
//!
//! A patch rewrites its files at each step, which would make everything that includes them compile again. So the time of
//! each patched file is remembered, and put back when the same content comes again: for make nothing has changed then.

use super::run::{Runner, Step, Stop, io_at};
use super::slot::Slot;
use crate::history::git;
use crate::model::{InfraKind, UntestableKind};
use crate::session::Fixup;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::SystemTime;

/// `git apply` found that the patch does not fit.
const DOES_NOT_FIT: i32 = 1;

/// A patched file as the last make saw it.
#[derive(Clone, Serialize, Deserialize)]
struct Seen {
    hash: String,
    modified: SystemTime,
}

/// Applies the patches in order to a pristine tree. Gives a line for each, for people.
pub(super) async fn apply_all(run: &Runner<'_>, slot: &Slot, fixups: &[&Fixup]) -> Step<Vec<String>> {
    let mut notes = Vec::new();
    for fixup in fixups {
        notes.push(apply(run, slot, fixup).await?);
    }
    let record = slot.file("patched.json");
    if fixups.is_empty() {
        let _ = fs::remove_file(&record);
        return Ok(notes);
    }
    let before =
        fs::read(&record).ok().and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
    let now = settle_times(&slot.source(), &changed_files(run, &slot.source()).await?, &before)?;
    let json = serde_json::to_vec(&now).expect("a map of plain data");
    fs::write(&record, json).map_err(io_at(&record))?;
    Ok(notes)
}

async fn apply(run: &Runner<'_>, slot: &Slot, fixup: &Fixup) -> Step<String> {
    let (name, patch) = (&fixup.name, slot.file("fixup.patch"));
    fs::write(&patch, &fixup.patch).map_err(io_at(&patch))?;
    let git_apply = async |options: &[&str]| {
        let mut command = git::command(&slot.source());
        command.args(["-c", "apply.ignoreWhitespace=no", "apply", "--whitespace=nowarn"]);
        command.args(options).arg(&patch);
        match run.execute(command).await? {
            0 => Ok(true),
            DOES_NOT_FIT => Ok(false),
            status => {
                let reason = format!(
                    "fix-up {name} is not a patch that git can read (git apply exits with {status}, see the log)"
                );
                Err(Stop::infra(InfraKind::BrokenCommand, reason))
            }
        }
    };
    // In this order: where the new text stands already, a patch that only adds might fit a second time.
    if git_apply(&["--check", "--reverse"]).await? {
        return Ok(format!("{name}: already there"));
    }
    if git_apply(&["--check"]).await? && git_apply(&[]).await? {
        return Ok(format!("{name}: applied"));
    }
    Err(Stop::untestable(UntestableKind::FixUp, format!("fix-up {name} does not apply")))
}

/// The files in which the tree differs from its commit.
async fn changed_files(run: &Runner<'_>, source: &Path) -> Step<Vec<String>> {
    let mut command = git::command(source);
    command.args([
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=all",
        "--ignored=traditional",
        "--no-renames",
    ]);
    let (status, output) = run.capture(command).await?;
    if status != 0 {
        return Err(Stop::infra(InfraKind::Other, format!("git status exits with {status}, see the log")));
    }
    // Each entry is two letters, a space and the path.
    let text = String::from_utf8_lossy(&output);
    Ok(text.split('\0').filter_map(|entry| entry.get(3..)).map(str::to_owned).collect())
}

/// Puts back the time of every file whose content the last make saw; gives what the coming make will see.
fn settle_times(
    source: &Path,
    files: &[String],
    before: &BTreeMap<String, Seen>,
) -> Step<BTreeMap<String, Seen>> {
    let mut now = BTreeMap::new();
    for name in files {
        let path = source.join(name);
        if !path.is_file() {
            continue;
        }
        let settle = || {
            let hash = blake3::hash(&fs::read(&path)?).to_hex().to_string();
            let file = File::options().write(true).open(&path)?;
            if let Some(seen) = before.get(name).filter(|seen| seen.hash == hash) {
                file.set_modified(seen.modified)?;
            }
            Ok(Seen { hash, modified: file.metadata()?.modified()? })
        };
        now.insert(name.clone(), settle().map_err(io_at(&path))?);
    }
    Ok(now)
}
