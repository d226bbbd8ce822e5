//! A machine's console as a command of the user's prints it: `ipmitool sol activate`, `virsh console`, `nc lab 2001`, `cat`.
//!
//! Owns: the command's process, which runs as long as the session and is started again when it ends; the console's log, of
//! bounded size; and what in it means that the kernel is hurt ([`Console`]). Must not do: type into the console, decide what
//! follows from it. Invariants: everything the command printed is looked at, also what the log has no room for; the process
//! ends with the value that started it. Tested here.

use super::console::Console;
use super::process::{Ended, Group};
use super::splat::Splat;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::Command;
use tokio::task::JoinHandle;

/// How much is read at once.
const PIECE: usize = 16 << 10;

/// Where a console comes from and goes to.
#[derive(Debug, Clone)]
pub struct ConsoleSpec {
    /// Run by `sh -c`, on a terminal of its own: virsh and ipmitool refuse to work without one.
    pub command: String,
    /// More environment for it.
    pub env: Vec<(String, String)>,
    /// File that its output is appended to; what no longer fits is in the same with `.1`, older is gone.
    pub log: PathBuf,
    /// Bytes that both take together.
    pub limit: u64,
    /// Between its end and its next start.
    pub pause: Duration,
    /// Session directory, the mark of its processes.
    pub owner: PathBuf,
}

/// A place in the text of a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// A running console. Dropping it ends the command.
pub struct ConsoleCommand {
    shared: Arc<Mutex<Log>>,
    task: JoinHandle<()>,
}

impl Drop for ConsoleCommand {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ConsoleCommand {
    /// Opens the log and starts the command, in a task of the current runtime. A command that cannot be started is tried
    /// again like one that ended, see [`ConsoleCommand::trouble`].
    pub fn start(spec: ConsoleSpec) -> io::Result<Self> {
        let shared = Arc::new(Mutex::new(Log::open(&spec.log, spec.limit)?));
        let task = tokio::spawn(keep_running(spec, Arc::clone(&shared)));
        Ok(Self { shared, task })
    }

    /// Begins to look for splats anew; gives the place from which on.
    pub fn begin(&self) -> Mark {
        let mut log = locked(&self.shared);
        log.console.forget();
        Mark(log.end)
    }

    /// The worst splat since the last [`ConsoleCommand::begin`].
    pub fn worst(&self) -> Option<Splat> {
        locked(&self.shared).console.worst().cloned()
    }

    /// The last line that is not blank; empty before the first.
    pub fn last_line(&self) -> String {
        locked(&self.shared).console.last_line().to_owned()
    }

    /// The text since that place, as far as it is still kept.
    pub fn text_since(&self, mark: Mark) -> io::Result<String> {
        locked(&self.shared).text_since(mark)
    }

    /// Why there is no console at the moment: how the command ended, or why the log cannot be written. `None` while it runs.
    pub fn trouble(&self) -> Option<String> {
        locked(&self.shared).trouble.clone()
    }
}

fn locked(shared: &Mutex<Log>) -> MutexGuard<'_, Log> {
    // What a panic left half-done is a log, no truth.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn keep_running(spec: ConsoleSpec, shared: Arc<Mutex<Log>>) {
    loop {
        let ended = match run(&spec, &shared).await {
            Ok(Ended::Exit(status)) => format!("the console command ended with exit {status}"),
            Ok(Ended::Signal(signal)) => format!("the console command was killed by signal {signal}"),
            Ok(Ended::Deadline) => "the console command was ended".to_owned(),
            Err(error) => format!("the console command cannot be run: {error}"),
        };
        locked(&shared).ended(&ended, spec.pause);
        tokio::time::sleep(spec.pause).await;
    }
}

/// Runs the command once to its end.
async fn run(spec: &ConsoleSpec, shared: &Mutex<Log>) -> io::Result<Ended> {
    let (terminal, mut group) = spawn(spec)?;
    locked(shared).trouble = None;
    let reading = async {
        read_all(&terminal, shared).await;
        // It may have closed its terminal and live on.
        std::future::pending::<()>().await;
    };
    let status = tokio::select! {
        status = group.child().wait() => status?,
        () = reading => unreachable!("it is pending for ever"),
    };
    // What it started would go on printing beside the next one.
    group.kill();
    while let Ok(bytes) = read_now(terminal.get_ref())
        && !bytes.is_empty()
    {
        locked(shared).push(&bytes);
    }
    Ok(match status.code() {
        Some(code) => Ended::Exit(code),
        None => Ended::Signal(std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0)),
    })
}

/// Starts the command; gives our end of its terminal.
fn spawn(spec: &ConsoleSpec) -> io::Result<(AsyncFd<OwnedFd>, Group)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let no_ctty = i32::try_from(OFlags::NOCTTY.bits()).map_err(io::Error::other)?;
    let theirs = File::options()
        .read(true)
        .write(true)
        .custom_flags(no_ctty)
        .open(OsStr::from_bytes(name.as_bytes()))?;
    // As it comes: no CR added to line ends, no echo.
    let mut modes = tcgetattr(&theirs)?;
    modes.make_raw();
    tcsetattr(&theirs, OptionalActions::Now, &modes)?;
    let flags = fcntl_getfl(&ours)?;
    fcntl_setfl(&ours, flags | OFlags::NONBLOCK)?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(&spec.command).envs(spec.env.iter().map(|(name, value)| (name, value)));
    command.stdin(theirs.try_clone()?).stdout(theirs.try_clone()?).stderr(theirs);
    let group = Group::spawn(&mut command, &spec.owner)?;
    #[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor that it watches")]
    // SAFETY: an OwnedFd is open, and the same one, for as long as it lives; it lives in what is returned.
    let ours = unsafe { AsyncFd::register_with_interest(ours, Interest::READABLE) }?;
    Ok((ours, group))
}

/// Until nobody has the other end open.
async fn read_all(terminal: &AsyncFd<OwnedFd>, shared: &Mutex<Log>) {
    while let Ok(mut ready) = terminal.readable().await {
        match ready.try_io(|fd| read_now(fd.get_ref())) {
            Ok(Ok(bytes)) if !bytes.is_empty() => locked(shared).push(&bytes),
            Ok(Ok(_) | Err(_)) => return,
            Err(_would_block) => {}
        }
    }
}

fn read_now(terminal: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PIECE];
    let size = rustix::io::read(terminal, bytes.as_mut_slice())?;
    bytes.truncate(size);
    Ok(bytes)
}

/// What was printed, in two files: the current one and the one before it.
struct Log {
    path: PathBuf,
    file: File,
    /// Place where the file before begins, where the current one does, and where it ends.
    before: u64,
    base: u64,
    end: u64,
    limit: u64,
    console: Console,
    trouble: Option<String>,
}

impl Log {
    fn open(path: &Path, limit: u64) -> io::Result<Self> {
        let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        let base = size(&previous(path));
        let file = File::options().create(true).append(true).open(path)?;
        let end = base + size(path);
        let (console, trouble) = (Console::default(), None);
        Ok(Self { path: path.to_owned(), file, before: 0, base, end, limit, console, trouble })
    }

    /// Takes what the command printed.
    fn push(&mut self, bytes: &[u8]) {
        self.console.push(bytes);
        self.write(bytes);
    }

    /// Writes; a log that cannot be written is no reason to end a session.
    fn write(&mut self, bytes: &[u8]) {
        let written = self.make_room(bytes.len() as u64).and_then(|()| self.file.write_all(bytes));
        match written {
            Ok(()) => self.end += bytes.len() as u64,
            Err(error) => {
                let trouble = format!("the console's log {} cannot be written: {error}", self.path.display());
                tracing::warn!("{trouble}");
                self.trouble = Some(trouble);
            }
        }
    }

    fn make_room(&mut self, more: u64) -> io::Result<()> {
        if self.end > self.base && self.end - self.base + more > self.limit / 2 {
            fs::rename(&self.path, previous(&self.path))?;
            self.file = File::options().create(true).append(true).open(&self.path)?;
            (self.before, self.base) = (self.base, self.end);
        }
        Ok(())
    }

    fn ended(&mut self, how: &str, pause: Duration) {
        self.console.end_line();
        self.write(format!("\n+ {how}; started again in {} s\n", pause.as_secs()).as_bytes());
        self.trouble = Some(how.to_owned());
    }

    fn text_since(&self, Mark(mark): Mark) -> io::Result<String> {
        let mut bytes = Vec::new();
        if mark < self.base {
            let mut file = File::open(previous(&self.path))?;
            file.seek(SeekFrom::Start(mark.saturating_sub(self.before)))?;
            file.read_to_end(&mut bytes)?;
        }
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(mark.saturating_sub(self.base)))?;
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn previous(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(test)]
#[path = "console_command_tests.rs"]
mod tests;
