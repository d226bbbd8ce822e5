//! The connection to one machine.
//!
//! Owns: connecting, connecting again, running short scripts of ours, putting files there. Invariants: every wait has a
//! limit of its own, since a shared connection to a machine that is gone hangs for ever; a script's end counts only when
//! the far side told its status, else the link is lost and what it did is unknown. Tested in tests/it/ssh.rs over real
//! sshd, with the faults of a real network.

use super::access::Access;
use super::control::ControlDir;
use super::far::{Far, FarError, Script, Told};
use super::put;
use super::sorting::{self, Why};
use crate::model::Address;
use async_trait::async_trait;
use openssh::{ControlPersist, KnownHosts, Session, SessionBuilder, Stdio};
use std::error::Error as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// A master that nobody uses ends by itself, should this program be killed.
const IDLE: NonZeroUsize = NonZeroUsize::new(120).expect("is not zero");

/// Behind a script's own deadline, for its end to be told.
const GRACE: Duration = Duration::from_secs(15);

/// More than this of a stream is not kept: an answer of any size must not fill our memory.
pub(super) const KEPT: usize = 64 << 20;

/// Name of the configuration in the control directory.
const CONFIG: &str = "config";

/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(500);

/// Runs `$2` with the rest of its arguments, ends it and its group after `$1` seconds. `timeout` tells that by 124, or 137
/// where it had to kill; no script of ours ends so by itself.
const WRAPPED: &str = r#"PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL
within=$1; text=$2; shift 2; exec timeout -k 5 "$within" sh -c "$text" sh "$@""#;

/// Exit statuses of timeout(1): ended, and killed.
const LATE: [i32; 2] = [124, 137];

/// What the links of a session share.
#[derive(Debug)]
pub struct Wires {
    /// How machines are reached.
    pub access: Access,
    control: ControlDir,
}

impl Wires {
    /// For the session at `owner`. The error is words that fit "failed to ...".
    pub fn new(access: Access, owner: &Path) -> Result<Rc<Self>, String> {
        let text = access.config_text().map_err(|error| error.to_string())?;
        let control =
            ControlDir::take(owner).map_err(|error| format!("make a directory for connections: {error}"))?;
        let path = control.path().join(CONFIG);
        std::fs::write(&path, text).map_err(|error| format!("write {}: {error}", path.display()))?;
        Ok(Rc::new(Self { access, control }))
    }

    /// The configuration for ssh, for programs that call it by themselves; there as long as this value.
    pub fn config(&self) -> PathBuf {
        self.control.path().join(CONFIG)
    }
}

/// The connection to one machine; made when it is first needed, and anew when it was lost.
#[derive(Debug)]
pub struct Link {
    wires: Rc<Wires>,
    address: Address,
    host: String,
    sudo: bool,
    session: Option<Session>,
    /// Whether it ever answered: until then a name that is not known is a typing error.
    was_up: bool,
}

impl Link {
    /// A link that is not connected yet. With `sudo`, scripts are run by `sudo -n`.
    pub fn new(wires: Rc<Wires>, address: Address, sudo: bool) -> Self {
        let host = address.to_string();
        Self { wires, address, host, sudo, session: None, was_up: false }
    }

    /// Ends the connection, as before a planned reboot: one that outlives its machine hangs.
    pub async fn close(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = tokio::time::timeout(GRACE, session.close()).await;
        }
    }

    /// Connects, trying again until `within` has passed. Only what may mend itself is tried again.
    pub async fn connect(&mut self, what: &str, within: Duration) -> Result<(), FarError> {
        let until = tokio::time::Instant::now() + within;
        loop {
            match self.session(what).await {
                Err(FarError::NotUp { .. }) if tokio::time::Instant::now() + PAUSE < until => {
                    tokio::time::sleep(PAUSE).await;
                }
                other => return other.map(|_| ()),
            }
        }
    }

    async fn session(&mut self, what: &str) -> Result<&Session, FarError> {
        if self.session.is_none() {
            let connected = self.try_connect().await.map_err(|error| self.sorted(what, &error))?;
            self.was_up = true;
            self.session = Some(connected);
        }
        self.session.as_ref().ok_or_else(|| self.lost(what, "it was just there"))
    }

    async fn try_connect(&self) -> Result<Session, openssh::Error> {
        let mut builder = SessionBuilder::default();
        builder
            .config_file(self.wires.control.path().join(CONFIG))
            .control_directory(self.wires.control.path())
            .control_persist(ControlPersist::IdleFor(IDLE))
            .known_hosts_check(match self.wires.access.host_keys {
                super::access::HostKeys::Strict => KnownHosts::Strict,
                super::access::HostKeys::Add => KnownHosts::Add,
            });
        // No limit from here: ssh has its own, and one that is left alone would live on.
        builder.connect_mux(self.address.to_string()).await
    }

    fn sorted(&self, what: &str, error: &openssh::Error) -> FarError {
        let log = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        let (what, host) = (what.to_owned(), self.host.clone());
        let gist = sorting::gist(&log);
        let known = self.wires.access.known_hosts.display();
        match sorting::why(&log) {
            Why::NotUp if !self.was_up && log.contains("Name or service not known") => FarError::Refused {
                what,
                host,
                reason: format!("{gist}; correct the address in the profile"),
            },
            Why::NotUp => FarError::NotUp { what, host, reason: gist.to_owned() },
            Why::Booting => {
                FarError::NotUp { what, host, reason: "it is booting: nobody is let in yet".to_owned() }
            }
            Why::HostKey => FarError::Refused {
                what,
                host,
                reason: format!(
                    "its host key is not the one in {known} ({gist}); if the machine was installed anew, remove its line there with \
                     ssh-keygen -R"
                ),
            },
            Why::Key => FarError::Refused {
                what,
                host,
                reason: format!(
                    "{gist}; put your public key into its authorized_keys, or name the right key or user in the profile"
                ),
            },
            Why::Ours => FarError::Refused { what, host, reason: format!("ssh here says: {gist}") },
        }
    }

    pub(super) fn lost(&self, what: &str, reason: impl ToString) -> FarError {
        FarError::Lost { what: what.to_owned(), host: self.host.clone(), reason: reason.to_string() }
    }

    /// Runs a script with `input` as its standard input.
    pub(super) async fn sh_with(&mut self, script: Script<'_>, input: &[u8]) -> Result<Told, FarError> {
        let within = script.deadline.as_secs().max(1).to_string();
        let sudo = self.sudo;
        let session = self.session(script.what).await?;
        let mut command = session.command(if sudo { "sudo" } else { "sh" });
        if sudo {
            command.args(["-n", "--", "sh"]);
        }
        command.args(["-c", WRAPPED, "sh", &within, script.text]).args(script.args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let whole = tokio::time::timeout(script.deadline + GRACE, whole(&mut command, input)).await;
        let told = match whole {
            Ok(Ok(told)) => told,
            Ok(Err(error)) => return Err(self.broken(script.what, &error)),
            Err(_) => {
                let error = self.lost(script.what, "it neither ends nor answers");
                self.drop_session();
                return Err(error);
            }
        };
        if LATE.contains(&told.status) {
            let (what, host) = (script.what.to_owned(), self.host.clone());
            return Err(FarError::Late { what, host, deadline: script.deadline });
        }
        self.without_sudo(script.what, &told).map_or(Ok(told), Err)
    }

    /// sudo's own refusal, which has nothing to do with what was to be run.
    fn without_sudo(&self, what: &str, told: &Told) -> Option<FarError> {
        let said = String::from_utf8_lossy(&told.stderr);
        let refused = self.sudo && told.status == 1 && said.lines().any(|line| line.starts_with("sudo: "));
        refused.then(|| FarError::Refused {
            what: what.to_owned(),
            host: self.host.clone(),
            reason: format!(
                "{}; let this user run sudo without a password, or log in as root",
                sorting::gist(&said)
            ),
        })
    }

    /// After an error of the connection: whatever it was, the next call connects anew.
    fn broken(&mut self, what: &str, error: &openssh::Error) -> FarError {
        self.drop_session();
        let why = error.source().map_or_else(String::new, |why| format!(": {why}"));
        self.lost(what, format!("{error}{why}"))
    }

    fn drop_session(&mut self) {
        self.session = None;
    }
}

#[async_trait(?Send)]
impl Far for Link {
    fn host(&self) -> &str {
        &self.host
    }

    async fn sh(&mut self, script: Script<'_>) -> Result<Told, FarError> {
        self.sh_with(script, b"").await
    }

    async fn put(&mut self, from: &Path, to: &str) -> Result<(), FarError> {
        let what = format!("put {} there", from.display());
        let unreadable = |error: std::io::Error| put::unreadable(&what, &error);
        let mut file = put::Local::open(from).map_err(unreadable)?;
        let told = self.sh(put::look(&what, &[to])).await?;
        let Some(mut over) = file.there(&told).map_err(unreadable)? else { return Ok(()) };
        loop {
            let piece = file.piece(over).map_err(unreadable)?;
            if piece.is_empty() && over != 0 {
                break;
            }
            let told = self.sh_with(put::append(&what, &[to, &over.to_string()]), &piece).await?;
            put::accepted(&what, &told)?;
            over += piece.len() as u64;
            if piece.is_empty() {
                break;
            }
        }
        let hash = file.hash(over).map_err(unreadable)?;
        let told = self.sh(put::finish(&what, &[to, &hash, &over.to_string()])).await?;
        put::accepted(&what, &told)
    }
}

async fn whole(
    command: &mut openssh::OwningCommand<&'_ Session>,
    input: &[u8],
) -> Result<Told, openssh::Error> {
    let mut child = command.spawn().await?;
    let (stdin, stdout, stderr) = (child.stdin().take(), child.stdout().take(), child.stderr().take());
    let give = async {
        if let Some(mut stdin) = stdin {
            // One that reads no more has ended; its status tells.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
        }
    };
    let ((), stdout, stderr) = tokio::join!(give, all_of(stdout), all_of(stderr));
    let status = child.wait().await?;
    let status = status.code().ok_or(openssh::Error::RemoteProcessTerminated)?;
    Ok(Told {
        status,
        stdout: stdout.map_err(openssh::Error::ChildIo)?,
        stderr: stderr.map_err(openssh::Error::ChildIo)?,
    })
}

/// The stream to its end, of which no more than [`KEPT`] is kept.
async fn all_of(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let Some(mut stream) = stream else { return Ok(kept) };
    (&mut stream).take(KEPT as u64).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(kept)
}
