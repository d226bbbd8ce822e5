//! `export` and `import`: a session as a file for others.

use super::args::Place;
use super::{CliError, exit, print, root, session};
use crate::driver;
use crate::report::{counted, say};
use std::path::{Path, PathBuf};

/// `export`.
pub(super) fn export(place: &Place, name: Option<&str>, out: Option<&Path>) -> Result<u8, CliError> {
    let dir = session(&root(place)?, name)?;
    // What cannot be read here would not be read elsewhere.
    driver::load(&dir)?;
    let out =
        out.map_or_else(|| PathBuf::from(format!("{}.sched-bisect.tar.gz", dir.name())), Path::to_path_buf);
    let files = driver::export(&dir, &out)?;
    say(&format!(
        "wrote {}: {}; it holds the plan with all values of the profile, [env] among them, and all logs",
        out.display(),
        counted(files as u64, "file")
    ));
    Ok(exit::DONE)
}

/// `import`.
pub(super) fn import(place: &Place, file: &Path, name: Option<&str>) -> Result<u8, CliError> {
    let dir = driver::import(&root(place)?, file, name)?;
    print(&format!("{}\n", dir.name()))?;
    say(&format!("session {} can be read here: `sched-bisect report {}`", dir.name(), dir.name()));
    Ok(exit::DONE)
}
