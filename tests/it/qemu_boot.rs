//! The QEMU machine with a real kernel.
//!
//! Needs the environment variable SB_TEST_KERNEL: a directory with a kernel `image` for the guest (two 8250
//! serial ports, initramfs, devtmpfs, tmpfs, procfs, sysfs), and qemu-system-x86, busybox-static and rt-tests
//! on the host. Without the variable each test says that it is skipped.

use sched_bisect::lab::qemu::QemuMachine;
use sched_bisect::lab::stage::Stage;
use sched_bisect::lab::{BootJob, Machine as _, RunJob};
use sched_bisect::model::{
    Artifact, BootNo, BootRecord, BootResult, CommitId, InfraKind, RunResult, StepId, UntestableKind,
};
use sched_bisect::session::{NamedVariant, Qemu, Setup, Variant};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Generous: the test machine may be busy, and nothing waits for it unless something is broken.
const BOOT: Duration = Duration::from_secs(180);
const RUN: Duration = Duration::from_secs(180);

struct Lab {
    kernel: String,
    session: TempDir,
    scratch: TempDir,
    boots: u64,
    variant: NamedVariant,
}

impl Lab {
    /// `None`, said aloud, when there is no kernel to test with.
    fn new(test: &str) -> Option<Self> {
        let Ok(kernel) = std::env::var("SB_TEST_KERNEL") else {
            eprintln!("skipped {test}: SB_TEST_KERNEL names no directory with a kernel image");
            return None;
        };
        let dir = || tempfile::tempdir().expect("temporary directory");
        let variant = NamedVariant { name: "default".to_owned(), sets: Variant::default() };
        Some(Self { kernel, session: dir(), scratch: dir(), boots: 0, variant })
    }

    fn spec(run: &str, parser: &str) -> Qemu {
        Qemu {
            program: "qemu-system-x86_64".to_owned(),
            accel: "icount".to_owned(),
            cpus: 1,
            memory_mib: 512,
            cmdline: String::new(),
            programs: vec!["hackbench".to_owned()],
            prepare: String::new(),
            run: run.to_owned(),
            parser: parser.to_owned(),
        }
    }

    fn machine(&self, spec: Qemu) -> QemuMachine {
        let metric = if spec.parser == "hackbench" { "time" } else { "value" };
        QemuMachine::new(spec, metric, self.session.path(), self.scratch.path()).expect("a sound plan")
    }

    fn artifact(&self) -> Artifact {
        Artifact {
            dir: self.kernel.clone(),
            ..Artifact::of(CommitId::parse(&"c".repeat(40)).expect("an id"))
        }
    }

    fn log(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn boot_job(&mut self, artifact: Artifact) -> BootJob {
        self.boots += 1;
        let dir = self.scratch.path().join(format!("boot{}", self.boots));
        std::fs::create_dir(&dir).expect("a new directory");
        BootJob {
            step: StepId(self.boots),
            artifact,
            boot: BootNo(self.boots),
            variant: self.variant.clone(),
            dir,
            deadline: BOOT,
            log: self.log("boot.log"),
        }
    }

    async fn boot(&mut self, machine: &mut QemuMachine) -> BootResult {
        let job = self.boot_job(self.artifact());
        machine.boot(&job).await
    }

    async fn up(&mut self, machine: &mut QemuMachine) -> BootRecord {
        match self.boot(machine).await {
            BootResult::Booted(record) => record,
            other @ (BootResult::Untestable(_) | BootResult::Infra(_)) => {
                panic!("{other:?}; console:\n{}", read(&self.log("boot.log")))
            }
        }
    }

    fn run_job(&self, deadline: Duration) -> RunJob {
        RunJob {
            step: StepId(1000),
            artifact: self.artifact(),
            boot: BootNo(self.boots),
            dir: self.scratch.path().join(format!("boot{}", self.boots)),
            repetition: 1,
            deadline,
            log: self.log("run.log"),
        }
    }

    async fn run(&self, machine: &mut QemuMachine) -> RunResult {
        machine.run(&self.run_job(RUN)).await
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

/// The QEMU processes of the session at `owner`.
fn emulators(owner: &Path) -> Vec<i32> {
    let mark = format!("SB_SESSION_DIR={}", owner.display());
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes()) {
            pids.push(pid);
        }
    }
    pids
}

#[tokio::test]
async fn hackbench_runs_five_times_in_a_boot_that_proved_itself() {
    let Some(mut lab) = Lab::new("hackbench_runs_five_times_in_a_boot_that_proved_itself") else { return };
    let mut machine = lab.machine(Lab::spec("hackbench -g 1 -l 200", "hackbench"));
    let started = Instant::now();
    let record = lab.up(&mut machine).await;
    eprintln!("up after {:.2?}: {record:?}", started.elapsed());
    assert!(record.cmdline.contains("sb.boot="), "{record:?}");
    for _ in 0..5 {
        let started = Instant::now();
        let result = lab.run(&mut machine).await;
        eprintln!("{:.2?}: {result:?}", started.elapsed());
        let RunResult::Measured { metrics, .. } = result else {
            panic!("{result:?}: {}", read(&lab.log("run.log")));
        };
        assert!(metrics["time"] > 0.0);
    }
    assert!(read(&lab.log("run.log")).contains("Running in process mode"), "the run's log has its output");
    machine.off().await;
    machine.off().await;
    assert_eq!(emulators(lab.session.path()), Vec::<i32>::new());

    let again = lab.up(&mut machine).await;
    assert_ne!(record.boot_id, again.boot_id);
    assert!(matches!(machine.run(&lab.run_job(RUN)).await, RunResult::Measured { .. }));
    machine.off().await;
}

#[tokio::test]
async fn a_kernel_that_is_not_the_artifact_does_not_count() {
    let Some(mut lab) = Lab::new("a_kernel_that_is_not_the_artifact_does_not_count") else { return };
    let mut machine = lab.machine(Lab::spec("echo 1", "number"));
    let record = lab.up(&mut machine).await;
    let other = Artifact { build_id: "00".repeat(20), release: record.release, ..lab.artifact() };
    let job = lab.boot_job(other);
    match machine.boot(&job).await {
        BootResult::Infra(failure) => {
            assert_eq!(failure.kind, InfraKind::WrongKernel);
            assert!(failure.reason.contains(&"00".repeat(20)), "{}", failure.reason);
        }
        other @ (BootResult::Booted(_) | BootResult::Untestable(_)) => panic!("{other:?}"),
    }
    assert_eq!(emulators(lab.session.path()), Vec::<i32>::new());
}

#[tokio::test]
async fn a_real_panic_is_a_fact_about_the_commit() {
    let Some(mut lab) = Lab::new("a_real_panic_is_a_fact_about_the_commit") else { return };
    let spec = Qemu { cmdline: "rdinit=/bin/false".to_owned(), ..Lab::spec("echo 1", "number") };
    let mut machine = lab.machine(spec);
    let started = Instant::now();
    match lab.boot(&mut machine).await {
        BootResult::Untestable(untestable) => {
            assert_eq!(untestable.kind, UntestableKind::Panic, "{untestable:?}");
            assert!(untestable.reason.contains("Kernel panic - not syncing"), "{untestable:?}");
        }
        other @ (BootResult::Booted(_) | BootResult::Infra(_)) => panic!("{other:?}"),
    }
    eprintln!("a panic takes {:.2?}", started.elapsed());
    assert_eq!(emulators(lab.session.path()), Vec::<i32>::new());
}

#[tokio::test]
async fn a_panic_under_load_and_a_restart_are_told_apart() {
    let Some(mut lab) = Lab::new("a_panic_under_load_and_a_restart_are_told_apart") else { return };
    for (run, kind, words) in [
        ("echo c >/proc/sysrq-trigger", UntestableKind::Panic, "sysrq triggered crash"),
        ("reboot -f", UntestableKind::Boot, "died silently under load"),
    ] {
        let mut machine = lab.machine(Lab::spec(run, "number"));
        lab.up(&mut machine).await;
        match lab.run(&mut machine).await {
            RunResult::Untestable(untestable) => {
                assert_eq!(untestable.kind, kind, "{untestable:?}");
                assert!(untestable.reason.contains(words), "{untestable:?}");
            }
            other @ (RunResult::Measured { .. }
            | RunResult::Invalid { .. }
            | RunResult::Failed { .. }
            | RunResult::Infra(_)) => panic!("{run}: {other:?}"),
        }
        let after = lab.run(&mut machine).await;
        assert!(matches!(after, RunResult::Infra(_)), "the boot is over: {after:?}");
    }
}

#[tokio::test]
async fn an_emulator_killed_in_mid_run_is_not_held_against_the_commit() {
    let Some(mut lab) = Lab::new("an_emulator_killed_in_mid_run_is_not_held_against_the_commit") else {
        return;
    };
    let mut machine = lab.machine(Lab::spec("hackbench -g 8 -l 100000", "hackbench"));
    lab.up(&mut machine).await;
    let pids = emulators(lab.session.path());
    assert_eq!(pids.len(), 1, "one emulator a guest");
    let job = lab.run_job(RUN);
    let kill = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let pid = rustix::process::Pid::from_raw(pids[0]).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it lives");
    };
    let (result, ()) = tokio::join!(machine.run(&job), kill);
    let RunResult::Infra(failure) = result else { panic!("{result:?}") };
    assert_eq!(failure.kind, InfraKind::Killed, "{failure:?}");
}

#[tokio::test]
async fn a_run_past_its_deadline_fails_and_the_next_one_finds_a_quiet_guest() {
    let Some(mut lab) = Lab::new("a_run_past_its_deadline_fails_and_the_next_one_finds_a_quiet_guest") else {
        return;
    };
    // Counts the processes of the first run that still live in the second.
    let run = "ps | grep -c 'wh[i]le true' >/tmp/left; if [ -e /tmp/second ]; then cat /tmp/left; \
               else touch /tmp/second; sh -c 'while true; do true; done' & setsid sh -c 'while true; do true; done'; fi";
    let mut machine = lab.machine(Lab::spec(run, "number"));
    lab.up(&mut machine).await;
    let result = machine.run(&lab.run_job(Duration::from_secs(3))).await;
    let RunResult::Failed { reason } = result else { panic!("{result:?}") };
    assert!(reason.contains("outlived its deadline of 3 s"), "{reason}");
    let result = lab.run(&mut machine).await;
    let RunResult::Measured { metrics, .. } = result else { panic!("{result:?}") };
    assert_eq!(metrics["value"], 0.0, "processes of the first run are left");
    machine.off().await;
}

/// Times of three runs in one boot under a variant, and what was read back with the last of them.
async fn under(lab: &mut Lab, variant: Variant) -> Result<(Vec<f64>, BTreeMap<String, String>), String> {
    lab.variant = NamedVariant { name: "of the test".to_owned(), sets: variant.clone() };
    let setup = Setup { variant, ..Setup::default() };
    let mut spec = Lab::spec("hackbench -g 1 -l 400", "hackbench");
    spec.programs.push("chrt".to_owned());
    let machine = lab.machine(spec);
    let mut machine = Stage::new(machine, setup, lab.scratch.path().join("once"), Vec::new());
    let job = lab.boot_job(lab.artifact());
    let BootResult::Booted(record) = machine.boot(&job).await else { panic!("console:\n{}", read(&job.log)) };
    assert_eq!(record.settings["sut.cpus"], "1");
    let (mut times, mut seen) = (Vec::new(), BTreeMap::new());
    for _ in 0..3 {
        match machine.run(&lab.run_job(RUN)).await {
            RunResult::Measured { metrics, settings, .. } => {
                times.push(metrics["time"]);
                seen = settings;
            }
            RunResult::Untestable(untestable) if untestable.kind == UntestableKind::Knob => {
                return Err(untestable.reason);
            }
            other @ (RunResult::Invalid { .. }
            | RunResult::Failed { .. }
            | RunResult::Untestable(_)
            | RunResult::Infra(_)) => {
                panic!("{other:?}")
            }
        }
    }
    machine.off().await;
    Ok((times, seen))
}

#[tokio::test]
async fn a_variant_is_set_in_the_guest_and_read_back_with_every_run() {
    let Some(mut lab) = Lab::new("a_variant_is_set_in_the_guest_and_read_back_with_every_run") else {
        return;
    };
    let (plain, seen) = under(&mut lab, Variant::default()).await.expect("nothing can be absent");
    assert!(!seen.contains_key("RUN_TO_PARITY"));
    let features = vec!["NO_PLACE_LAG".to_owned(), "NO_RUN_TO_PARITY".to_owned()];
    let (without, seen) =
        under(&mut lab, Variant { features, ..Variant::default() }).await.expect("this kernel has them");
    assert_eq!(
        (seen["PLACE_LAG"].as_str(), seen["RUN_TO_PARITY"].as_str()),
        ("NO_PLACE_LAG", "NO_RUN_TO_PARITY")
    );
    let batch = Variant { policy: Some("batch".to_owned()), nice: Some(5), ..Variant::default() };
    let (batch, seen) = under(&mut lab, batch).await.expect("every kernel has it");
    assert_eq!(seen["run"], "policy batch nice 5");
    let slice = Variant { base_slice_ns: Some(3_000_000), ..Variant::default() };
    let (slice, seen) = under(&mut lab, slice).await.expect("this kernel has it");
    assert_eq!(seen["base_slice_ns"], "3000000");
    eprintln!("plain {plain:?}, without {without:?}, batch {batch:?}, slice {slice:?}");

    // A feature of no kernel, and a frequency that a guest does not have.
    let features = vec!["NO_SUCH_THING".to_owned()];
    let governor = Some("performance".to_owned());
    let reason =
        under(&mut lab, Variant { features, governor, ..Variant::default() }).await.expect_err("absent");
    assert_eq!(
        reason,
        "knob not available: this kernel has no scheduler feature SUCH_THING (neither in sched/features of debugfs nor as \
         sysctl); knob not available: this machine has no cpufreq governor"
    );
}

#[tokio::test]
async fn big_outputs_arrive_whole_and_bigger_ones_are_refused() {
    let Some(mut lab) = Lab::new("big_outputs_arrive_whole_and_bigger_ones_are_refused") else { return };
    let run = "n=$(cat /tmp/n 2>/dev/null || echo 1000000); echo 1100000 >/tmp/n; \
               head -c $n /dev/zero | tr '\\0' x; echo; echo err >&2; echo 42";
    let mut machine = lab.machine(Lab::spec(run, "number"));
    lab.up(&mut machine).await;
    let started = Instant::now();
    let result = lab.run(&mut machine).await;
    eprintln!("1 MB takes {:.2?}", started.elapsed());
    let RunResult::Measured { metrics, .. } = result else { panic!("{result:?}") };
    assert_eq!(metrics["value"], 42.0);
    assert!(read(&lab.log("run.log")).len() > 1_000_000);
    let result = lab.run(&mut machine).await;
    let RunResult::Invalid { reason } = result else { panic!("{result:?}") };
    assert!(reason.contains("1100004 bytes"), "{reason}");
    machine.off().await;
}

#[tokio::test]
async fn what_the_kernel_says_in_a_run_voids_it_and_exit_statuses_keep_their_meaning() {
    let Some(mut lab) =
        Lab::new("what_the_kernel_says_in_a_run_voids_it_and_exit_statuses_keep_their_meaning")
    else {
        return;
    };
    let spec = Qemu { prepare: "echo 0 >/tmp/n".to_owned(), ..Lab::spec("", "number") };
    let steps = "read -r n </tmp/n; echo $((n + 1)) >/tmp/n; echo 5; case $n in \
        0) echo '<4>WARNING: CPU: 0 PID: 1 at made/up.c:1' >/dev/kmsg ;; \
        1) exit 125 ;; 2) nosuchprogram ;; 3) echo oh no >&2; exit 3 ;; 4) kill -9 $$ ;; esac";
    let mut machine = lab.machine(Qemu { run: steps.to_owned(), ..spec });
    lab.up(&mut machine).await;
    let mut results = Vec::new();
    for _ in 0..2 {
        results.push(format!("{:?}", lab.run(&mut machine).await));
    }
    assert!(results[0].starts_with("Invalid"), "{results:?}");
    assert!(results[1].contains("Declared"), "{results:?}");
    for (after, wanted) in [(2, "BrokenCommand"), (3, "exit status 3: oh no"), (4, "killed by signal 9")] {
        lab.up(&mut machine).await;
        // The guest is a new one: bring its counter to where it is wanted.
        drop(machine);
        let prepare = format!("echo {after} >/tmp/n");
        machine = lab.machine(Qemu { prepare, run: steps.to_owned(), ..Lab::spec("", "number") });
        lab.up(&mut machine).await;
        let result = format!("{:?}", lab.run(&mut machine).await);
        assert!(result.contains(wanted), "{result}");
    }
    machine.off().await;
}

#[tokio::test]
async fn a_real_splat_voids_the_run_and_a_kernel_without_the_second_port_says_so() {
    let Some(mut lab) = Lab::new("a_real_splat_voids_the_run_and_a_kernel_without_the_second_port_says_so")
    else {
        return;
    };
    let mut machine = lab.machine(Lab::spec("tail /dev/zero; echo 1", "number"));
    lab.up(&mut machine).await;
    let result = lab.run(&mut machine).await;
    let RunResult::Invalid { reason } = result else { panic!("{result:?}") };
    assert!(reason.contains("Out of memory: Killed process"), "{reason}");
    machine.off().await;

    let one_port = Qemu { cmdline: "8250.nr_uarts=1".to_owned(), ..Lab::spec("echo 1", "number") };
    let mut machine = lab.machine(one_port);
    let result = lab.boot(&mut machine).await;
    let BootResult::Untestable(untestable) = result else { panic!("{result:?}") };
    assert!(untestable.reason.contains("/dev/ttyS1"), "{untestable:?}");
}
