//! The machine with a program that plays QEMU (fake-qemu.sh): every way to go wrong, without a kernel.

use super::*;
use crate::lab::process::end_leftovers;
use crate::model::{Artifact, CommitId, StepId};
use crate::session::{NamedVariant, Variant};
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

/// Passed only where a test is about a guest that does not answer.
const SHORT: Duration = Duration::from_secs(2);
/// Never passes.
const LONG: Duration = Duration::from_secs(100);

struct Lab {
    session: TempDir,
    machine: QemuMachine,
    boots: u64,
}

impl Lab {
    /// With a guest that does what the words of `mode` say.
    fn new(mode: &str) -> Self {
        Self::with(mode, |_| {})
    }

    fn with(mode: &str, change: impl FnOnce(&mut Qemu)) -> Self {
        let session = tempfile::tempdir().expect("temporary directory");
        let machine = machine(session.path(), "0", mode, change);
        Self { session, machine, boots: 0 }
    }

    fn artifact(&self) -> Artifact {
        artifact(&self.session.path().join("0"))
    }

    fn mode(&self, mode: &str) {
        std::fs::write(self.session.path().join("0").join(IMAGE), mode).expect("writes");
    }

    async fn boot_within(&mut self, deadline: Duration) -> BootResult {
        self.boots += 1;
        let job = boot_job(self.artifact(), self.boots, deadline, &self.session.path().join("boot.log"));
        self.machine.boot(&job).await
    }

    async fn boot(&mut self) -> BootResult {
        self.boot_within(LONG).await
    }

    async fn run_within(&mut self, deadline: Duration) -> RunResult {
        let job = run_job(self.artifact(), self.boots, deadline, &self.session.path().join("run.log"));
        self.machine.run(&job).await
    }

    async fn run(&mut self) -> RunResult {
        self.run_within(LONG).await
    }

    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.session.path().join(name)).expect("is there")
    }
}

/// A machine whose scratch directory, with program and image, is `name` in the session's.
fn machine(session: &Path, name: &str, mode: &str, change: impl FnOnce(&mut Qemu)) -> QemuMachine {
    let scratch = session.join(name);
    std::fs::create_dir(&scratch).expect("a new directory");
    let program = scratch.join("qemu");
    std::fs::write(&program, include_str!("fake-qemu.sh")).expect("writes");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("sets the mode");
    std::fs::write(scratch.join(IMAGE), mode).expect("writes");
    let mut spec = Qemu {
        program: program.display().to_string(),
        accel: "icount".to_owned(),
        cpus: 1,
        memory_mib: 64,
        cmdline: String::new(),
        programs: Vec::new(),
        prepare: String::new(),
        run: "echo talk; echo 2.5".to_owned(),
        parser: "number".to_owned(),
    };
    change(&mut spec);
    QemuMachine::new(spec, "value", session, &scratch).expect("a sound plan")
}

fn artifact(dir: &Path) -> Artifact {
    Artifact {
        dir: dir.display().to_string(),
        release: "6.12.0-rc1+".to_owned(),
        ..Artifact::of(CommitId::parse(&"a".repeat(40)).expect("an id"))
    }
}

fn boot_job(artifact: Artifact, boot: u64, deadline: Duration, log: &Path) -> BootJob {
    let dir = PathBuf::from(&artifact.dir);
    let variant = NamedVariant { name: "default".to_owned(), sets: Variant::default() };
    BootJob {
        step: StepId(boot),
        artifact,
        boot: BootNo(boot),
        variant,
        dir,
        deadline,
        log: log.to_path_buf(),
    }
}

fn run_job(artifact: Artifact, boot: u64, deadline: Duration, log: &Path) -> RunJob {
    let dir = PathBuf::from(&artifact.dir);
    let (step, boot, log) = (StepId(boot), BootNo(boot), log.to_path_buf());
    RunJob { step, artifact, boot, dir, repetition: 1, deadline, log }
}

/// "Ok", or the kind and the reason of a failure.
fn told(result: &BootResult) -> String {
    match result {
        BootResult::Booted(_) => "Ok".to_owned(),
        BootResult::Untestable(untestable) => format!("commit {:?}: {}", untestable.kind, untestable.reason),
        BootResult::Infra(failure) => format!("infra {:?}: {}", failure.kind, failure.reason),
    }
}

fn run_told(result: &RunResult) -> String {
    match result {
        RunResult::Measured { metrics, .. } => format!("{metrics:?}"),
        RunResult::Invalid { reason } => format!("invalid: {reason}"),
        RunResult::Failed { reason } => format!("failed: {reason}"),
        RunResult::Untestable(untestable) => format!("commit {:?}: {}", untestable.kind, untestable.reason),
        RunResult::Infra(failure) => format!("infra {:?}: {}", failure.kind, failure.reason),
    }
}

/// Asserts with the whole text, which says more than two enums.
#[track_caller]
fn assert_told(told: &str, start: &str, words: &str) {
    assert!(told.starts_with(start) && told.contains(words), "{told:?} is not {start:?} with {words:?}");
}

#[tokio::test]
async fn a_sound_guest_boots_runs_and_is_gone_afterwards() {
    let mut lab = Lab::with("sound", |spec| spec.prepare = "echo getting ready".to_owned());
    let BootResult::Booted(record) = lab.boot().await else { panic!("{}", lab.log("boot.log")) };
    assert_eq!(record.release, "6.12.0-rc1+");
    assert!(record.cmdline.contains("sb.boot=00000001-"), "{}", record.cmdline);
    assert!(lab.log("boot.log").contains("Linux version"), "the console is in the log");
    assert!(lab.log("boot.log").contains("getting ready"), "so is the prepare command");
    for _ in 0..3 {
        assert_eq!(run_told(&lab.run().await), "{\"value\": 2.5}");
    }
    assert!(lab.log("run.log").contains("talk\n2.5\n"), "{}", lab.log("run.log"));
    lab.machine.off().await;
    lab.machine.off().await;
    assert_eq!(end_leftovers(lab.session.path()).expect("/proc"), Vec::<i32>::new());
    assert_told(&run_told(&lab.run().await), "infra Unreachable", "not up");
}

#[tokio::test]
async fn a_new_boot_ends_the_one_before() {
    let mut lab = Lab::new("sound");
    let (first, second) = (lab.boot().await, lab.boot().await);
    assert_eq!((told(&first), told(&second)), ("Ok".to_owned(), "Ok".to_owned()));
    assert_ne!(first, second, "boot ids differ");
    lab.machine.off().await;
    assert_eq!(end_leftovers(lab.session.path()).expect("/proc"), Vec::<i32>::new());
}

#[tokio::test]
async fn the_channel_survives_damage_and_runs_nothing_twice() {
    for mode in ["damaged-once", "refuses-once"] {
        let mut lab = Lab::new(mode);
        assert_eq!(told(&lab.boot().await), "Ok", "{mode}");
        assert_eq!(run_told(&lab.run().await), "{\"value\": 2.5}", "{mode}");
        assert_eq!(lab.log("0/ran"), "ran\n", "{mode}");
    }
    let mut lab = Lab::new("always-damaged");
    assert_told(&told(&lab.boot().await), "infra Unreachable", "damaged every time");
}

#[tokio::test]
async fn what_goes_wrong_on_the_way_up_is_told_apart() {
    // Before and after another guest has come up here.
    for (mode, untried, proven, words) in [
        ("refuses", "infra BrokenCommand", "infra BrokenCommand", "-foo: invalid option"),
        ("ends-mute", "infra Other", "commit Boot", "nothing on the console"),
        ("panics-up", "commit Panic", "commit Panic", "VFS: no root"),
        ("oopses-up", "commit Panic", "commit Panic", "NULL pointer"),
        ("other-release", "infra WrongKernel", "infra WrongKernel", "6.12.0-rc2+"),
    ] {
        let mut lab = Lab::new(mode);
        assert_told(&told(&lab.boot().await), untried, words);
        lab.mode("sound");
        assert_eq!(told(&lab.boot().await), "Ok");
        lab.mode(mode);
        assert_told(&told(&lab.boot().await), proven, words);
        assert_eq!(end_leftovers(lab.session.path()).expect("/proc"), Vec::<i32>::new(), "{mode}");
    }
}

#[tokio::test]
async fn a_guest_that_does_not_come_up_in_time_is_ended() {
    for (mode, start, words) in [
        ("mute", "infra Other", "no guest has come up here yet"),
        ("hangs-up", "commit Boot", "hangs on the way up: last console line \"Linux version 6.12.0\""),
        ("greets-as-another", "commit Boot", "hangs on the way up"),
    ] {
        let mut lab = Lab::new(mode);
        assert_told(&told(&lab.boot_within(SHORT).await), start, words);
        assert_eq!(end_leftovers(lab.session.path()).expect("/proc"), Vec::<i32>::new(), "{mode}");
    }
}

#[tokio::test]
async fn a_boot_id_counts_once() {
    let mut lab = Lab::new("same-boot-id");
    assert_eq!(told(&lab.boot().await), "Ok");
    assert_told(&told(&lab.boot().await), "infra WrongKernel", "seen before");
}

#[tokio::test]
async fn what_goes_wrong_in_a_run_is_told_apart() {
    for (mode, start, words) in [
        ("panics-in-run", "commit Panic", "not syncing: in run (under load)"),
        ("restarts-in-run", "commit Boot", "died silently under load"),
        ("killed-in-run", "infra Killed", "signal 9"),
        ("told-to-end", "infra Killed", "terminating on signal 15"),
        ("warns-in-run", "invalid", "kernel splat during the run: WARNING: CPU: 0"),
        ("taints", "invalid", "taint went from 0 to 512"),
    ] {
        let mut lab = Lab::new(mode);
        assert_eq!(told(&lab.boot().await), "Ok", "{mode}");
        let result = lab.run().await;
        assert_told(&run_told(&result), start, words);
        if matches!(result, RunResult::Untestable(_) | RunResult::Infra(_)) {
            assert_told(&run_told(&lab.run().await), "infra Unreachable", "not up");
        }
    }
}

#[tokio::test]
async fn a_run_past_its_deadline_is_the_workloads_fault_only_if_the_guest_still_answers() {
    let mut lab = Lab::new("never-ends");
    assert_eq!(told(&lab.boot().await), "Ok");
    assert_told(&run_told(&lab.run_within(SHORT).await), "failed", "outlived its deadline");
}

#[tokio::test]
async fn a_guest_that_does_not_even_answer_a_kill_hangs_under_load() {
    let mut lab = Lab::new("never-ends deaf-to-kill");
    assert_eq!(told(&lab.boot().await), "Ok");
    // From here on only deadlines end what is waited for.
    tokio::time::pause();
    assert_told(&run_told(&lab.run().await), "commit Boot", "hangs under load");
    assert_told(&run_told(&lab.run().await), "infra Unreachable", "not up");
}

#[tokio::test]
async fn a_panic_that_does_not_end_the_guest_is_not_waited_out() {
    let mut lab = Lab::new("panics-and-stays");
    let started = Instant::now();
    assert_told(&told(&lab.boot().await), "commit Panic", "stuck");
    assert!(started.elapsed() < LONG / 2);
}

#[tokio::test]
async fn a_guest_that_counts_instructions_stands_still_between_runs() {
    let mut lab = Lab::new("sound");
    for step in 0..2 {
        match step {
            0 => assert_eq!(told(&lab.boot().await), "Ok"),
            _ => assert_eq!(run_told(&lab.run().await), "{\"value\": 2.5}"),
        }
        // A signal takes a moment to reach a process.
        let all_stand = async {
            while states(lab.session.path()).iter().any(|&state| state != 'T') {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, all_stand).await.expect("it stands still");
    }
    lab.machine.off().await;
    assert_eq!(states(lab.session.path()), Vec::<char>::new());
    let mut lab = Lab::with("sound", |spec| spec.accel = "tcg".to_owned());
    assert_eq!(told(&lab.boot().await), "Ok");
    assert!(!states(lab.session.path()).contains(&'T'), "a clock of the host's cannot be stopped");
}

#[tokio::test]
async fn a_splat_of_an_earlier_run_does_not_void_the_next() {
    let mut lab = Lab::with("sound", |spec| {
        spec.run = "[ -e $0.ran ] || echo '[ 1.0] WARNING: CPU: 0' >&4; : >$0.ran; echo 7".to_owned();
    });
    assert_eq!(told(&lab.boot().await), "Ok");
    assert_told(&run_told(&lab.run().await), "invalid", "kernel splat");
    assert_eq!(run_told(&lab.run().await), "{\"value\": 7.0}");
}

#[tokio::test]
async fn exit_statuses_keep_their_meaning() {
    for (status, run, prepare) in [
        (1, "failed", "commit Boot"),
        (75, "infra TryAgain", "infra TryAgain"),
        (125, "commit Declared", "commit Declared"),
        (127, "infra BrokenCommand", "infra BrokenCommand"),
        (137, "failed", "commit Boot"),
    ] {
        let command = format!("echo 1; echo because >&2; exit {status}");
        let mut lab = Lab::with("sound", |spec| spec.run.clone_from(&command));
        assert_eq!(told(&lab.boot().await), "Ok");
        assert_told(&run_told(&lab.run().await), run, "because");
        let mut lab = Lab::with("sound", |spec| spec.prepare = command);
        assert_told(&told(&lab.boot().await), prepare, "because");
    }
}

#[tokio::test]
async fn a_dropped_boot_and_a_dropped_run_leave_nothing() {
    let mut lab = Lab::new("hangs-up");
    assert!(tokio::time::timeout(SHORT, lab.boot()).await.is_err(), "it hangs");
    assert_nothing_left(&lab).await;
    let mut lab = Lab::new("never-ends");
    assert_eq!(told(&lab.boot().await), "Ok");
    assert!(tokio::time::timeout(SHORT, lab.run()).await.is_err(), "it hangs");
    assert_nothing_left(&lab).await;
}

/// A drop kills without waiting, so the processes are gone in a moment.
async fn assert_nothing_left(lab: &Lab) {
    for _ in 0..500 {
        if states(lab.session.path()).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a guest is left");
}

/// The states of the session's emulators, as /proc/PID/stat has them.
fn states(session: &Path) -> Vec<char> {
    let mark = session.join("0/qemu").display().to_string();
    let mut states = Vec::new();
    for process in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let read = |name: &str| std::fs::read(process.path().join(name)).unwrap_or_default();
        if String::from_utf8_lossy(&read("cmdline")).contains(&mark) {
            let stat = String::from_utf8_lossy(&read("stat")).into_owned();
            states.extend(stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()));
        }
    }
    states
}

#[tokio::test]
async fn machines_of_one_session_do_not_collide() {
    let session = tempfile::tempdir().expect("temporary directory");
    let mut machines: Vec<QemuMachine> =
        ["0", "1"].map(|name| machine(session.path(), name, "sound", |_| {})).into();
    let (right, left) = machines.split_at_mut(1);
    let one = async |machine: &mut QemuMachine, name: &str, boot: u64| {
        let artifact = artifact(&session.path().join(name));
        let log = session.path().join(format!("{name}.log"));
        let up = machine.boot(&boot_job(artifact.clone(), boot, LONG, &log)).await;
        let run = machine.run(&run_job(artifact, boot, LONG, &log)).await;
        (told(&up), run_told(&run))
    };
    let (first, second) = tokio::join!(one(&mut right[0], "0", 1), one(&mut left[0], "1", 2));
    let sound = ("Ok".to_owned(), "{\"value\": 2.5}".to_owned());
    assert_eq!((first, second), (sound.clone(), sound));
}

#[tokio::test]
async fn what_is_missing_is_named_and_not_retried() {
    let mut lab = Lab::with("sound", |spec| spec.program = "qemu-system-x86_64-that-is-not".to_owned());
    assert_told(&told(&lab.boot().await), "infra Missing", "qemu-system-x86_64-that-is-not");
    let mut lab = Lab::with("sound", |spec| spec.programs = vec!["no-such-benchmark".to_owned()]);
    assert_told(&told(&lab.boot().await), "infra Missing", "no-such-benchmark");
    let mut lab = Lab::new("sound");
    std::fs::remove_file(lab.session.path().join("0").join(IMAGE)).expect("removes");
    assert_told(&told(&lab.boot().await), "infra Missing", "no kernel image");
}

#[tokio::test]
async fn an_open_choice_of_accelerator_is_made_once() {
    let mut lab = Lab::with("sound", |spec| spec.accel = "auto".to_owned());
    accel::keep(Accel::Tcg, lab.session.path()).expect("keeps");
    assert_eq!(told(&lab.boot().await), "Ok");
    assert!(lab.log("boot.log").contains("tcg,thread=multi"), "{}", lab.log("boot.log"));
}

#[test]
fn a_plan_that_cannot_work_is_refused_at_the_start() {
    let session = tempfile::tempdir().expect("temporary directory");
    let spec = || Qemu {
        program: "qemu".to_owned(),
        accel: "icount".to_owned(),
        cpus: 1,
        memory_mib: 64,
        cmdline: String::new(),
        programs: Vec::new(),
        prepare: String::new(),
        run: "x".to_owned(),
        parser: "hackbench".to_owned(),
    };
    let new = |spec| QemuMachine::new(spec, "time", session.path(), session.path()).map(|_| ());
    assert_eq!(new(spec()), Ok(()));
    assert!(matches!(new(Qemu { accel: "xen".to_owned(), ..spec() }), Err(QemuError::Accel(_))));
    assert!(matches!(new(Qemu { parser: "sysbensh".to_owned(), ..spec() }), Err(QemuError::Parser(_))));
    let long = Qemu { run: "x".repeat(COMMAND_MAX + 1), ..spec() };
    assert!(matches!(new(long), Err(QemuError::Command { .. })));
    let metric = QemuMachine::new(spec(), "latency", session.path(), session.path()).map(|_| ());
    assert!(matches!(metric, Err(QemuError::Metric { .. })));
}
