//! What a machine that outlives its boots must be given back, even if the program is killed meanwhile.
//!
//! Before the first tunable of a boot is set, the shell script that writes back what was there is on disk, synced. It goes
//! when it has been run: at the end of the boot, or at the start of the next one if the program did not come so far. Else
//! what one variant left would be measured under the next.

use super::trouble::{Trouble, done, ours};
use super::{Ground, Live, OWN_DEADLINE, Stage};
use crate::model::InfraKind;
use crate::session::SUT;
use crate::workload::tunables::Settings;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

/// In the machine's directory of the session; to be run on the SUT, by hand too.
const FILE: &str = "undo.sh";

impl<G: Ground> Stage<G> {
    fn undo_file(&self) -> PathBuf {
        self.done.join(FILE)
    }

    /// Keeps how to put back what the live boot's variant is about to change.
    pub(super) fn keep_undo(&self, before: &Settings) -> Result<(), Trouble> {
        let script = self.tunables.restore(before);
        if !self.ground.outlives_boots() || script.is_empty() {
            return Ok(());
        }
        let write = || -> io::Result<()> {
            std::fs::create_dir_all(&self.done)?;
            let mut file = File::create(self.undo_file())?;
            file.write_all(script.as_bytes())?;
            file.sync_all()?;
            File::open(&self.done)?.sync_all()
        };
        write().map_err(|error| self.unusable("write", &error))
    }

    /// Puts back what is still to be put back, if anything.
    pub(super) async fn undo(&mut self, live: &Live) -> Result<(), Trouble> {
        let script = match std::fs::read_to_string(self.undo_file()) {
            Ok(script) => script,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(self.unusable("read", &error)),
        };
        done(self.call(live, SUT, "restore", &script, OWN_DEADLINE, false).await, "put tunables back", true)?;
        std::fs::remove_file(self.undo_file()).map_err(|error| self.unusable("remove", &error))
    }

    fn unusable(&self, what: &str, error: &io::Error) -> Trouble {
        ours(InfraKind::Other, format!("{what} {}: {error}", self.undo_file().display()))
    }
}
