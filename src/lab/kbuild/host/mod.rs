//! Another machine on which make runs: the tree goes there, what is kept comes back.
//!
//! Owns: the directories there, make as a job that outlives a lost link, rsync both ways (sync), what doctor tells (look).
//! Must not do: decide what is built.
//! Invariants: a file there changes only where its content does, and then has that machine's own time: make compares times,
//! and no two clocks agree; nothing of a profile or a tree becomes part of a shell line; a make that is given up is gone.
//! Tested in tests/it/build_host.rs over a real sshd.

mod look;
mod sync;

use super::failure;
use super::run::{Runner, Step, Stop, kept, shown};
use crate::lab::ssh::far::{Far as _, FarError, Script, Told};
use crate::lab::ssh::job::{self, Job, JobEnd};
use crate::lab::ssh::{Link, Wires};
use crate::model::{Address, InfraFailure, InfraKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::process::Command;
use tokio::sync::Mutex;

/// For scripts that only look or make a directory; removing a build directory is the longest.
const SHORT: Duration = Duration::from_secs(300);

/// Of make's output that is taken.
const MOST: u64 = 64 << 20;

/// `$1`: the directory, below the home if it is no absolute path. Tells where it is, CPUs and the boot id.
const PREPARE: &str = r#"umask 077
case $1 in /*) dir=$1 ;; *) dir=$HOME/$1 ;; esac
command -v rsync >/dev/null || {
    echo "rsync is not installed there; on Debian: apt install rsync" >&2
    exit 4
}
mkdir -p "$dir/source" "$dir/build" "$dir/staging" && cd "$dir" && pwd -P && nproc && cat /proc/sys/kernel/random/boot_id"#;

/// Its exit status where rsync is not there.
const NO_RSYNC: i32 = 4;

/// `$1`: a directory of ours to empty.
const EMPTY: &str = r#"rm -rf "${1:?}" && mkdir -p "$1""#;

/// Runs the words of SB_WORD_1 to SB_WORD_n, with nothing of that machine's environment but what programs need to run.
const BODY: &str = r#"exec 2>&1
set -- env -i "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin" "HOME=$HOME" "SB_CALL=$SB_CALL" ${TMPDIR:+"TMPDIR=$TMPDIR"}
i=1
while [ "$i" -le "$SB_WORDS" ]; do
    eval "set -- \"\$@\" \"\$SB_WORD_$i\""
    i=$((i + 1))
done
exec "$@"
"#;

/// A machine that builds.
pub struct BuildHost {
    link: Mutex<Link>,
    wires: Rc<Wires>,
    address: Address,
    /// As the profile has it; empty: one of ours below the home.
    dir: String,
}

/// Where things are there, in this boot of it.
pub(in crate::lab::kbuild) struct There {
    /// Of all builders of this repository.
    pub root: PathBuf,
    pub source: PathBuf,
    pub build: PathBuf,
    pub staging: PathBuf,
    pub cpus: usize,
    boot_id: String,
    /// Begins the marks of this builder's jobs.
    mark: String,
}

/// What names the builder there: one of this repository's and of this host's.
pub(super) struct Who<'a> {
    /// Directory of all builders of the repository.
    pub root: &'a Path,
    /// The builder's own name ("builder-0").
    pub slot: &'a str,
    pub session: &'a Path,
}

impl Who<'_> {
    /// Of the repository on this host.
    fn repository(&self) -> String {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        short_hash(&[name.as_bytes(), b"\0", self.root.as_os_str().as_encoded_bytes()].concat())
    }

    fn mark(&self) -> String {
        format!("{}-{}-", self.repository(), self.slot)
    }
}

fn short_hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..12].to_owned()
}

impl BuildHost {
    /// The machine at `address`; `dir` is where it builds, below the home of who logs in if it is no absolute path; empty:
    /// `.cache/sched-bisect`.
    pub fn new(wires: Rc<Wires>, address: Address, dir: &str) -> Self {
        let link = Mutex::new(Link::new(Rc::clone(&wires), address.clone(), false));
        let dir = if dir.is_empty() { ".cache/sched-bisect" } else { dir };
        Self { link, wires, address, dir: dir.trim_end_matches('/').to_owned() }
    }

    /// Where it is.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Ends what the session at `session` runs there, of any builder below `root`.
    pub async fn end_jobs(&self, root: &Path, session: &Path) -> Result<(), String> {
        let who = Who { root, slot: "builder-[0-9]*", session };
        let marks = format!("{}{}-", who.mark(), short_hash(session.as_os_str().as_encoded_bytes()));
        job::end_all(&mut *self.link.lock().await, &marks).await.map_err(|error| error.to_string())
    }

    /// Connects, and sees to the directories.
    pub(super) async fn prepare(&self, run: &Runner<'_>, who: &Who<'_>) -> Step<There> {
        let mut link = self.link.lock().await;
        link.connect("reach the build host", run.left()).await.map_err(ours)?;
        let dir = format!("{}/{}/{}", self.dir, who.repository(), who.slot);
        let what = "make a build directory";
        let told =
            link.sh(Script { what, text: PREPARE, args: &[&dir], deadline: SHORT }).await.map_err(ours)?;
        let text = String::from_utf8_lossy(&told.stdout);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let [dir, cpus, boot_id] = lines[..] else {
            return Err(self.refuses("build", &told));
        };
        let dir = PathBuf::from(dir);
        let session = short_hash(who.session.as_os_str().as_encoded_bytes());
        Ok(There {
            root: dir.parent().unwrap_or(&dir).to_owned(),
            source: dir.join("source"),
            build: dir.join("build"),
            staging: dir.join("staging"),
            cpus: cpus.parse().unwrap_or(1),
            boot_id: boot_id.to_owned(),
            mark: format!("{}{session}-", who.mark()),
        })
    }

    /// Ends what an earlier run of the program left at work there in this builder, and empties its build directory.
    pub(super) async fn start_anew(&self, there: &There, who: &Who<'_>) -> Step<()> {
        job::end_all(&mut *self.link.lock().await, &who.mark()).await.map_err(ours)?;
        self.empty(&there.build).await
    }

    /// Empties a directory there.
    pub(super) async fn empty(&self, dir: &Path) -> Step<()> {
        let (what, dir) = ("empty a build directory", dir.display().to_string());
        let script = Script { what, text: EMPTY, args: &[&dir], deadline: SHORT };
        let told = self.link.lock().await.sh(script).await.map_err(ours)?;
        match told.status {
            0 => Ok(()),
            _ => Err(self.refuses(what, &told)),
        }
    }

    /// What a script of ours says that failed there.
    fn refuses(&self, what: &str, told: &Told) -> Stop {
        let said = String::from_utf8_lossy(&told.stderr).trim().to_owned();
        let kind = match told.status {
            NO_RSYNC => InfraKind::Missing,
            _ if failure::is_disk_full(&said) => InfraKind::OutOfDisk,
            _ => InfraKind::Other,
        };
        Stop::infra(kind, format!("cannot {what} on {}: {said} (status {})", self.address, told.status))
    }

    /// Runs a command there to its end, its output in the log; gives status and output.
    pub(super) async fn run(
        &self,
        run: &Runner<'_>,
        there: &There,
        command: &Command,
    ) -> Step<(i32, Vec<u8>)> {
        run.note(&format!("on {}: {}", self.address, shown(command)));
        let command = command.as_std();
        let set = command.get_envs().filter(|(name, _)| !kept(name));
        let set =
            set.filter_map(|(name, value)| Some(joined(name.to_string_lossy(), value?.to_string_lossy())));
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> = set.chain(words.map(|word| word.to_string_lossy().into_owned())).collect();
        let mut env = vec![("SB_WORDS".to_owned(), words.len().to_string())];
        env.extend(words.into_iter().enumerate().map(|(at, word)| (format!("SB_WORD_{}", at + 1), word)));
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let mark = format!("{}{nanos}", there.mark);
        let job = Job {
            mark: &mark,
            before: None,
            body: BODY,
            env: &env,
            deadline: run.left(),
            most: MOST,
            boot_id: &there.boot_id,
            leaves_processes: false,
        };
        match job::run(&mut *self.link.lock().await, job).await.map_err(ours)? {
            JobEnd::Exit { status, stdout, .. } => {
                run.append(&stdout)?;
                Ok((status, stdout))
            }
            JobEnd::Late => Err(run.timeout()),
            JobEnd::TooMuch(bytes) => {
                let reason = format!(
                    "make on {} printed {bytes} bytes; more is wrong there than a build",
                    self.address
                );
                Err(Stop::infra(InfraKind::Other, reason))
            }
            JobEnd::Died => {
                Err(Stop::infra(InfraKind::Killed, format!("the build on {} was killed there", self.address)))
            }
            JobEnd::Restarted(_) => {
                let reason = format!("{} restarted during the build", self.address);
                Err(Stop::infra(InfraKind::Unreachable, reason))
            }
        }
    }
}

fn joined(name: impl AsRef<str>, value: impl AsRef<str>) -> String {
    format!("{}={}", name.as_ref(), value.as_ref())
}

fn ours(error: FarError) -> Stop {
    Stop::Infra(InfraFailure::from(error))
}
