//! The real binary as a process that is killed, signalled and watched, over a tiny repository.
//!
//! A candidate's speed is the number in its file `level`; the noise on it follows from the boot and the run, so that an
//! outcome can be told beforehand. Every command notes itself in a file outside the session, with its step, before it
//! does anything: what was executed is known whatever the journal says. A command named in `hold` waits for `go`.

use super::repo::{Repo, git_in};
use rustix::process::{Pid, Signal, kill_process};
use sched_bisect::driver::{self, SessionDir};
use sched_bisect::journal::Record;
use sched_bisect::model::{CommitId, RunResult, StepId};
use sched_bisect::session::{Boot, Event, State};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Name of the session in all scenes.
pub const SESSION: &str = "s";

/// How long something that must happen may take; generous, since the machine may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// The commit of a scene that makes the difference: "c5" of "c0" to "c8".
const CULPRIT: usize = 5;

/// Notes the step, then stands still if the test says so.
const PRELUDE: &str = r#"
note() {
    echo "$1 $SB_STEP $SB_COMMIT" >> "$NOTES/executed"
    if [ "$(cat "$NOTES/hold" 2>/dev/null)" = "$1 $2" ]; then
        : > "$NOTES/held"
        until [ -e "$NOTES/go" ]; do sleep 0.01; done
    fi
}
"#;

const BUILD: &str = r#"
note build "$(($(grep -c ^build "$NOTES/executed" 2>/dev/null) + 1))"
sleep 0.02
cp level "$SB_ARTIFACTS/level"
"#;

/// The boot leaves a process behind, as a virtual machine would be.
const BOOT: &str = r#"
note boot "$SB_BOOT"
cat /proc/sys/kernel/random/uuid > "$SB_BOOT_DIR/boot_id"
sleep 0.01
setsid sleep 300 > /dev/null 2>&1 &
"#;

const RUN: &str = r#"
note run "$SB_BOOT.$SB_REPETITION"
if [ -e "$NOTES/broken" ]; then echo "no route to the machine" >&2; exit 75; fi
sleep 0.03
read -r level < "$SB_ARTIFACTS/level"
echo $((level + (SB_BOOT * 7 + SB_REPETITION * 3) % 11 - 5))
"#;

/// What a scene's profile says.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Boots of a kernel before its first verdict, and in a confirmation.
    pub boots: u32,
    /// Runs before them that do not count.
    pub warmup_runs: u32,
    /// Failures of ours in a row before it halts.
    pub infra: u32,
}

impl Default for Setting {
    fn default() -> Self {
        Self { boots: 3, warmup_runs: 0, infra: 3 }
    }
}

/// A repository of nine commits, "c0" to "c8", of which "c5" is slower; a profile; a place for notes.
pub struct Scene {
    /// The repository.
    pub repo: Repo,
    /// Its commits.
    pub commits: Vec<CommitId>,
}

impl Scene {
    /// Builds it.
    pub fn new(setting: Setting) -> Self {
        let mut repo = Repo::new();
        let mut commits: Vec<CommitId> = Vec::new();
        for n in 0..9 {
            let (subject, level) = (format!("c{n}"), if n < CULPRIT { "1000\n" } else { "1100\n" });
            let edits =
                [("level", Some(level)), ("file", Some(subject.as_str())), ("README", Some("tiny\n"))];
            let parents: Vec<&CommitId> = commits.last().into_iter().collect();
            let commit = repo.commit(&subject, &parents, &edits);
            repo.run(&["update-ref", &format!("refs/tags/{subject}"), commit.as_str()]);
            commits.push(commit);
        }
        repo.check_out(commits.last().expect("nine commits"));
        let scene = Self { repo, commits };
        std::fs::create_dir(scene.notes()).expect("makes a directory");
        std::fs::write(scene.profile(), scene.toml(setting)).expect("writes");
        scene
    }

    fn toml(&self, setting: Setting) -> String {
        let Setting { boots, warmup_runs, infra } = setting;
        let notes = self.notes();
        let notes = notes.display();
        let command = |body: &str| format!("'''NOTES={notes}\n{PRELUDE}{body}'''");
        format!(
            "[metric]\nname = \"time\"\ndirection = \"lower\"\n\
             [judging]\nboots = {boots}\nwarmup_runs = {warmup_runs}\n[attempts]\ninfra = {infra}\n\
             [build]\nkind = \"command\"\ncommand = {}\n[machine]\nkind = \"command\"\nboot = {}\nrun = {}\n",
            command(BUILD),
            command(BOOT),
            command(RUN)
        )
    }

    /// The profile's file.
    pub fn profile(&self) -> PathBuf {
        self.repo.beside("scene.toml")
    }

    fn notes(&self) -> PathBuf {
        self.repo.beside("notes")
    }

    /// A file that the commands look for or write.
    pub fn note(&self, name: &str) -> PathBuf {
        self.notes().join(name)
    }

    /// Makes the named command ("run 4.2": second run in boot 4) stand still until [`Self::go`].
    pub fn hold(&self, what: &str) {
        std::fs::write(self.note("hold"), what).expect("writes");
    }

    /// Waits until it does.
    pub fn await_held(&self) {
        wait_for("the command to be held", || self.note("held").exists().then_some(()));
    }

    /// Lets it go on.
    pub fn go(&self) {
        std::fs::write(self.note("go"), "").expect("writes");
    }

    /// Steps of the commands of one kind that were executed, in order.
    pub fn executed(&self, what: &str) -> Vec<StepId> {
        let text = std::fs::read_to_string(self.note("executed")).unwrap_or_default();
        let step = |line: &str| {
            let mut words = line.split(' ');
            (words.next() == Some(what)).then(|| words.next().expect("a step").parse().expect("a number"))
        };
        text.lines().filter_map(step).map(StepId).collect()
    }

    /// The commit that made the difference.
    pub fn culprit(&self) -> &CommitId {
        &self.commits[CULPRIT]
    }

    /// The program in the repository, without anything of the caller's environment but the path.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("sched-bisect"));
        command.args(args).current_dir(self.repo.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command
    }

    /// Begins `start c0 c8`, with more arguments.
    pub fn start(&self, more: &[&str]) -> Running {
        self.begin(&self.start_args(more).iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn start_args(&self, more: &[&str]) -> Vec<String> {
        let profile = self.profile().display().to_string();
        let args = ["start", "c0", "c8", "--session", SESSION, "--profile", &profile];
        args.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
    }

    /// Begins `resume`.
    pub fn resume(&self) -> Running {
        self.begin(&["resume", SESSION])
    }

    /// Begins a command.
    pub fn begin(&self, args: &[&str]) -> Running {
        self.spawn(self.command(args))
    }

    /// Begins `start` with no room for files longer than this many bytes (a multiple of 512).
    pub fn start_in_little_room(&self, bytes: u32) -> Running {
        let program = self.command(&self.start_args(&[]));
        let mut command = Command::new("sh");
        let limit = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", bytes / 512);
        command.arg("-c").arg(limit).arg(program.get_program()).args(program.get_args());
        command.current_dir(self.repo.path()).env_clear();
        command.envs(program.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
        self.spawn(command)
    }

    fn spawn(&self, mut command: Command) -> Running {
        let talk = self.repo.beside(&format!("talk-{}", next_number()));
        let (out, err) = (talk.with_extension("out"), talk.with_extension("err"));
        let file = |path: &Path| File::create(path).expect("makes a file");
        let child = command.stdin(Stdio::null()).stdout(file(&out)).stderr(file(&err)).spawn();
        Running { child: child.expect("the program starts"), out, err }
    }

    /// Runs a command to its end.
    pub fn run(&self, args: &[&str]) -> Said {
        self.begin(args).wait()
    }

    /// The session's directory.
    pub fn session(&self) -> SessionDir {
        SessionDir::at(self.repo.path().join(".git/sched-bisect").join(SESSION))
    }

    /// Whether there is one.
    pub fn has_session(&self) -> bool {
        self.session().journal().exists()
    }

    /// Number of whole records in the journal; 0 without one.
    pub fn journal_lines(&self) -> usize {
        let bytes = std::fs::read(self.session().journal()).unwrap_or_default();
        bytes.iter().filter(|&&b| b == b'\n').count()
    }

    /// State and records of the session.
    pub fn load(&self) -> (State, Vec<Record>) {
        let (_, state, records) = driver::load(&self.session()).expect("the journal is sound");
        (state, records)
    }

    /// Steps that the journal calls interrupted.
    pub fn interruptions(&self) -> Vec<StepId> {
        interruptions(&self.load().1)
    }

    /// Processes that are marked as the session's.
    pub fn left_processes(&self) -> Vec<String> {
        let mark = [b"SB_SESSION_DIR=", self.session().path().as_os_str().as_encoded_bytes()].concat();
        let mut left = Vec::new();
        for entry in std::fs::read_dir("/proc").expect("/proc is readable").flatten() {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|&b| b == 0).any(|variable| variable == mark) {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                left.push(format!("{:?}: {}", entry.file_name(), String::from_utf8_lossy(&line)));
            }
        }
        left
    }

    /// Every file of the user's repository: content by path. Our own directories in it are left out.
    pub fn users_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let root = self.repo.path();
        let ours = [root.join(".git/sched-bisect"), root.join(".git/worktrees")];
        let mut files = files_below(&root);
        files.retain(|path, _| !ours.iter().any(|dir| path.starts_with(dir)));
        files
    }

    /// Fails the test unless the session came to its end in every respect: the right culprit, every measurement taken
    /// once, the audit clean, nothing left running.
    pub fn assert_concluded(&self, setting: Setting) {
        let (state, records) = self.load();
        let named = state.conclusion.as_ref().and_then(|c| c.commit.as_ref());
        assert_eq!(named, Some(self.culprit()), "the culprit");
        self.assert_nothing_repeated(setting, &state, &records);
        let audit = self.run(&["audit", SESSION]).exits(0);
        assert!(audit.out.contains(" 0 differ"), "{}", audit.out);
        assert_eq!(self.left_processes(), Vec::<String>::new(), "processes are left");
    }

    /// No finished measurement was taken again: what ran is what the journal says, and no slot has more than it asks.
    fn assert_nothing_repeated(&self, setting: Setting, state: &State, records: &[Record]) {
        let (mut started, mut measured, mut interrupted) = (Vec::new(), Vec::new(), 0);
        for record in records {
            if let Event::RunStarted { step, .. } = &record.event {
                started.push(*step);
            } else if let Event::RunFinished { step, result: RunResult::Measured { .. }, .. } = &record.event
            {
                measured.push(*step);
            } else if let Event::StepInterrupted { step } = &record.event {
                interrupted += usize::from(started.contains(step));
            }
        }
        let executed = self.executed("run");
        for step in &executed {
            let times = executed.iter().filter(|other| *other == step).count();
            assert_eq!(times, 1, "step {step} was executed {times} times");
            assert!(started.contains(step), "step {step} was executed, but its start is not in the journal");
        }
        for step in &measured {
            assert!(executed.contains(step), "step {step} was never executed, yet it has a measurement");
        }
        let most = measured.len() + interrupted;
        assert!(executed.len() <= most, "{} runs executed, {most} accounted for", executed.len());
        let processes = records.iter().filter(|r| matches!(r.event, Event::Opened { .. })).count();
        let warmup = setting.warmup_runs as usize;
        let short = |boot: &&Boot| boot.runs.len() < boot.wanted as usize + warmup;
        let short = state.boots.iter().filter(short).count();
        assert!(short < processes, "{short} boots are short of runs, with {processes} processes");
    }
}

/// The program at work. It is killed when the test forgets it.
pub struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process has a number");
        kill_process(pid, signal).expect("the program is there");
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_some()
    }

    /// Ends it with SIGKILL.
    pub fn kill_9(mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it is our child");
    }

    /// Waits until standard error has this.
    pub fn await_talk(&self, part: &str) {
        let said = || std::fs::read_to_string(&self.err).unwrap_or_default().contains(part).then_some(());
        wait_for(part, said);
    }

    /// Standard output so far.
    pub fn said_so_far(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// Waits for its end. A signal counts as 128 + its number.
    pub fn wait(mut self) -> Said {
        let status = wait_for("the program to end", || self.child.try_wait().expect("it is our child"));
        let read = |path: &Path| std::fs::read_to_string(path).expect("it wrote UTF-8");
        let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Said { status, out: read(&self.out), err: read(&self.err) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails when it has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the program said.
#[derive(Debug)]
pub struct Said {
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Said {
    /// Fails the test, showing everything, unless the exit status is this one.
    #[track_caller]
    pub fn exits(self, status: i32) -> Self {
        assert_eq!(
            self.status, status,
            "\n--- standard output\n{}--- standard error\n{}",
            self.out, self.err
        );
        self
    }

    /// Standard output with every stretch of white space as one space: wrapping does not matter.
    pub fn flat(&self) -> String {
        self.out.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Fails the test unless standard error has this.
    #[track_caller]
    pub fn complains(&self, part: &str) -> &Self {
        assert!(self.err.contains(part), "{part:?} is not in\n{}", self.err);
        self
    }
}

/// Steps that these records call interrupted.
pub fn interruptions(records: &[Record]) -> Vec<StepId> {
    let step = |record: &Record| {
        if let Event::StepInterrupted { step } = record.event { Some(step) } else { None }
    };
    records.iter().filter_map(step).collect()
}

/// Every file below a directory: content by path; of a symbolic link, what it names.
pub fn files_below(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let entry = entry.expect("an entry");
            let (path, kind) = (entry.path(), entry.file_type().expect("a type"));
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_symlink() {
                let named = std::fs::read_link(&path).expect("a link");
                files.insert(path, named.into_os_string().into_encoded_bytes());
            } else {
                files.insert(
                    path.clone(),
                    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())),
                );
            }
        }
    }
    files
}

/// Runs the user's git in the scene; its output.
pub fn users_git(scene: &Scene, args: &[&str]) -> String {
    let output = git_in(&scene.repo.path()).args(args).output().expect("git runs");
    super::repo::assert_ok(&output);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Looks again and again, until there is something or patience ends.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn next_number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
