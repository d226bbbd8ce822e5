//! Files that go to a build host and come back, by rsync.
//!
//! What is there is compared by content: times are that machine's own.

use super::{BuildHost, There, ours};
use crate::lab::kbuild::failure;
use crate::lab::kbuild::run::{Runner, Step, Stop, io_at};
use crate::model::InfraKind;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// Between two tries of rsync over a link that was lost.
const PAUSE: Duration = Duration::from_secs(2);

/// rsync's exit statuses for what the network or the far side did: protocol, socket and stream errors, time-outs, ssh's own.
const LINK_STATUSES: [i32; 6] = [5, 10, 12, 30, 35, 255];

/// rsync's exit status for a named file that is not there. That is no fault: it goes on the other side too, as it does with
/// status 0; which of both it is depends on whether the directory of the file is there.
const NOT_THERE: i32 = 24;

impl BuildHost {
    /// Makes the tree there what the one at `source` is.
    pub(in crate::lab::kbuild) async fn send_tree(
        &self,
        run: &Runner<'_>,
        there: &There,
        source: &Path,
    ) -> Step<()> {
        let flags = ["-rlpc", "--delete", "--exclude=/.git"].map(OsString::from).to_vec();
        self.rsync(run, flags, &[], inside(source), self.at(&there.source)).await
    }

    /// Makes these files of the build directory there what they are here; one that is not here goes there too.
    pub(in crate::lab::kbuild) async fn send(
        &self,
        run: &Runner<'_>,
        there: &There,
        build: &Path,
        names: &[&str],
    ) -> Step<()> {
        self.rsync(run, some_files(), names, inside(build), self.at(&there.build)).await
    }

    /// The other way round.
    pub(in crate::lab::kbuild) async fn fetch(
        &self,
        run: &Runner<'_>,
        there: &There,
        build: &Path,
        names: &[&str],
    ) -> Step<()> {
        self.rsync(run, some_files(), names, self.at(&there.build), inside(build)).await
    }

    /// Makes the directory here what the one there is.
    pub(in crate::lab::kbuild) async fn fetch_dir(
        &self,
        run: &Runner<'_>,
        from: &Path,
        to: &Path,
    ) -> Step<()> {
        let flags = ["-rlp", "--delete"].map(OsString::from).to_vec();
        self.rsync(run, flags, &[], self.at(from), inside(to)).await
    }

    /// Runs rsync until the link holds for long enough; it goes on with what has got over.
    async fn rsync(
        &self,
        run: &Runner<'_>,
        flags: Vec<OsString>,
        names: &[&str],
        from: OsString,
        to: OsString,
    ) -> Step<()> {
        let mut list = tempfile::NamedTempFile::new().map_err(io_at(&std::env::temp_dir()))?;
        list.write_all(names.join("\n").as_bytes()).map_err(io_at(list.path()))?;
        loop {
            let mut command = run.command("rsync");
            // What reaches machines may be said by the caller's agent.
            command.envs(std::env::var_os("SSH_AUTH_SOCK").map(|socket| ("SSH_AUTH_SOCK", socket)));
            command.args(["-z", "--partial-dir=.sb-partial", "--timeout=60", "-e"]).arg(self.shell());
            command.args(&flags);
            if !names.is_empty() {
                command.arg("--files-from").arg(list.path());
            }
            command.arg(&from).arg(&to);
            let since = run.log_size();
            let status = run.execute(command).await?;
            let said = run.log_from(since)?;
            match status {
                0 => return Ok(()),
                NOT_THERE if !names.is_empty() => return Ok(()),
                _ if failure::is_disk_full(&said) => {
                    let reason =
                        format!("no room left between here and {}: {}", self.address, last_line(&said));
                    return Err(Stop::infra(InfraKind::OutOfDisk, reason));
                }
                status if LINK_STATUSES.contains(&status) && run.left() > PAUSE => {
                    run.note(&format!("lost {} (rsync: {status}); tried again", self.address));
                    tokio::time::sleep(PAUSE).await;
                    // A refusal for good is found here, and told as what it is.
                    let mut link = self.link.lock().await;
                    link.connect("reach the build host", run.left()).await.map_err(ours)?;
                }
                status => {
                    let reason =
                        format!("rsync with {} exits with {status}: {}", self.address, last_line(&said));
                    return Err(Stop::infra(InfraKind::Other, reason));
                }
            }
        }
    }

    /// How rsync reaches it: as the links do, over a connection of its own.
    fn shell(&self) -> OsString {
        let mut words = OsString::from("ssh -S none -F ");
        words.push(self.wires.config());
        if let Some(port) = self.address.port {
            words.push(format!(" -p {port}"));
        }
        words
    }

    /// A directory there as rsync is told of it, with what is in it.
    fn at(&self, dir: &Path) -> OsString {
        let user = self.address.user.as_ref().map_or(String::new(), |user| format!("{user}@"));
        let host = match self.address.host.contains(':') {
            true => format!("[{}]", self.address.host),
            false => self.address.host.clone(),
        };
        let mut place = OsString::from(format!("{user}{host}:"));
        place.push(inside(dir));
        place
    }
}

/// A slash at its end is rsync's word for what is in it.
fn inside(dir: &Path) -> OsString {
    let mut text = dir.as_os_str().to_owned();
    text.push("/");
    text
}

/// For files by name, of which some may not be there: those go on the other side too.
fn some_files() -> Vec<OsString> {
    ["-lpc", "--relative", "--delete-missing-args"].map(OsString::from).to_vec()
}

fn last_line(text: &str) -> &str {
    let is_it = |line: &&str| !line.is_empty() && !line.starts_with("+ ");
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("rsync error:"))
        .rfind(is_it)
        .unwrap_or("no word why")
}
