//! What a machine is like, and what its kernel says, over a host that a directory stands for: a `dmesg` on its PATH, files.

use super::tests::{Lab, reason_of_boot, reason_of_run};
use super::*;
use crate::session::{Beside, NamedVariant, Variant, Watch};
use std::os::unix::fs::PermissionsExt;

/// A SUT whose kernel's log is a file, and which watches another one.
struct Host {
    dir: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        let host = Self { dir: tempfile::tempdir().expect("temporary directory") };
        host.program("dmesg", &format!("cat {}", host.path("log").display()));
        host.program("bench", "echo 5");
        host.write("log", "[    1.0] WARNING: CPU: 0 PID: 1 at old.c:1\n[    2.0] eth0: link up\n");
        host.write("knob", "performance\n");
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("writes");
    }

    fn program(&self, name: &str, body: &str) {
        self.write(name, &format!("#!/bin/sh\n{body}\n"));
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o755)).expect("is ours");
    }

    /// A profile that watches it; its shell has the host's programs first.
    fn setup(&self) -> Setup {
        let knob = self.path("knob").display().to_string();
        let path = format!("{}:{}", self.dir.path().display(), std::env::var("PATH").expect("a path"));
        Setup {
            roles: [(SUT.to_owned(), "sh".to_owned())].into(),
            env: [("PATH".to_owned(), path)].into(),
            environment: Some(Watch { ignore: Vec::new(), also: vec![knob, "bench".to_owned()] }),
            ..Setup::default()
        }
    }

    /// A command that adds a line to the kernel's log.
    fn says(&self, line: &str) -> String {
        format!("echo '[    9.0] {line}' >>{}; bench", self.path("log").display())
    }
}

async fn booted(lab: &mut Lab) -> crate::model::BootRecord {
    match lab.boot().await {
        BootResult::Booted(record) => record,
        other @ (BootResult::Untestable(_) | BootResult::Infra(_)) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_boot_records_what_each_role_is_like() {
    let host = Host::new();
    let mut setup = host.setup();
    setup.roles.insert(LDG.to_owned(), "sh".to_owned());
    let record = booted(&mut Lab::new(setup, "bench")).await;
    let fields = &record.environment;
    assert_eq!(fields[&format!("file.{}", host.path("knob").display())], "performance");
    assert!(fields["program.bench"].len() >= 16, "{fields:?}");
    assert_eq!(fields["ldg:kernel.release"], fields["kernel.release"]);
    assert!(fields.contains_key("load.SB_SUT_CPUS") && fields.contains_key("tty"), "{fields:?}");
    assert!(!fields.contains_key("kernel.log"), "it can be read");
}

#[tokio::test]
async fn case_102_a_run_in_which_the_kernel_complained_does_not_count_and_the_line_is_quoted() {
    let host = Host::new();
    let mut lab = Lab::booting(host.setup(), "bench");
    booted(&mut lab).await;
    assert_eq!(reason_of_run(lab.run().await).0, "measured", "what it said before the run is old");
    for (line, what, told) in [
        ("Oops: 0002 [#1] SMP", "commit", "Oops: 0002 [#1] SMP (under load)"),
        (
            "rcu: INFO: rcu_sched self-detected stall on CPU",
            "commit",
            "rcu: INFO: rcu_sched self-detected stall on CPU (under load)",
        ),
        (
            "WARNING: CPU: 1 PID: 7 at kernel/sched/fair.c:5",
            "invalid",
            "kernel splat during the run: WARNING: CPU: 1 PID: 7 at kernel/sched/fair.c:5",
        ),
        (
            "Out of memory: Killed process 77 (bench)",
            "invalid",
            "kernel splat during the run: Out of memory: Killed process 77 (bench)",
        ),
    ] {
        lab.machine.ground.replace_run(&host.says(line));
        assert_eq!(reason_of_run(lab.run().await), (what, told.to_owned()));
    }
    lab.machine.ground.replace_run(&format!("{}; exit 1", host.says("BUG: scheduling while atomic: bench")));
    let (what, reason) = reason_of_run(lab.run().await);
    assert_eq!((what, reason.as_str()), ("commit", "BUG: scheduling while atomic: bench (under load)"));
    lab.machine.ground.replace_run("bench; exit 1");
    assert_eq!(reason_of_run(lab.run().await).0, "failed", "a workload that fails by itself");
    lab.machine.ground.replace_run("bench");
    assert_eq!(reason_of_run(lab.run().await).0, "measured");
}

#[tokio::test]
async fn the_kernel_of_a_machine_that_boots_none_is_nobodys() {
    let host = Host::new();
    let mut lab = Lab::new(host.setup(), "bench");
    booted(&mut lab).await;
    lab.machine.ground.replace_run(&host.says("Oops: 0002 [#1] SMP"));
    let (what, reason) = reason_of_run(lab.run().await);
    assert_eq!(what, "ours");
    assert!(reason.contains("complained during the run: Oops: 0002 [#1] SMP; see to it"), "{reason}");
}

/// A view of this machine with a sysctl of its own: a mount namespace in which a file lies over it. The real one is the same for
/// every test that runs at this time.
struct View {
    holder: std::process::Child,
}

impl View {
    /// `None` where the user may make no such view.
    fn with(sysctl: &Path, file: &Path) -> Option<Self> {
        let script =
            format!("mount --bind {} {} && echo there && exec sleep 600", file.display(), sysctl.display());
        let mut holder = std::process::Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .ok()?;
        let mut said = String::new();
        let mut out = std::io::BufReader::new(holder.stdout.take().expect("it is piped"));
        std::io::BufRead::read_line(&mut out, &mut said).expect("reads");
        let view = Self { holder };
        (said == "there\n").then_some(view)
    }

    fn shell(&self) -> String {
        format!("nsenter --mount --target {} sh", self.holder.id())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[tokio::test]
async fn a_machine_that_changes_under_a_run_voids_it_and_one_that_its_variant_changes_does_not() {
    let host = Host::new();
    host.write("swappiness", "60\n");
    let Some(view) = View::with(Path::new("/proc/sys/vm/swappiness"), &host.path("swappiness")) else {
        eprintln!("skipped: no mount namespace can be made here");
        return;
    };
    let mut setup = host.setup();
    setup.roles.insert(SUT.to_owned(), view.shell());
    let set = "echo 61 >/proc/sys/vm/swappiness; echo 5";
    let mut lab = Lab::new(setup.clone(), set);
    booted(&mut lab).await;
    let result = lab.run().await;
    host.write("swappiness", "60\n");
    let RunResult::Infra(failure) = result else { panic!("{result:?}") };
    assert_eq!(failure.kind, InfraKind::Environment);
    let told = "environment: sysctl.vm.swappiness is 61, was 60 before the run: put it back";
    assert!(failure.reason.starts_with(told), "{}", failure.reason);

    let sysctl = [("vm.swappiness".to_owned(), "61".to_owned())].into();
    let sets = Variant { sysctl, ..Variant::default() };
    let also = vec![NamedVariant { name: "other".to_owned(), sets: sets.clone() }];
    let mut lab = Lab::new(Setup { also, ..setup.clone() }, set);
    booted(&mut lab).await;
    let (whose, words) = reason_of_run(lab.run().await);
    assert_eq!(whose, "ours", "what another variant sets may not change under this one: {words}");

    host.write("swappiness", "60\n");
    let mut lab = Lab::new(Setup { variant: sets, ..setup }, "echo 5");
    booted(&mut lab).await;
    for _ in 0..2 {
        let (whose, words) = reason_of_run(lab.run().await);
        assert_eq!(whose, "measured", "{words}");
    }
    lab.machine.off().await;
    assert_eq!(std::fs::read_to_string(host.path("swappiness")).expect("is there"), "60\n");
}

#[tokio::test]
async fn what_was_counted_stands_beside_the_number_or_why_nothing_was() {
    let host = Host::new();
    let evidence = Beside { schedstat: true, perf_record: true, ..Beside::default() };
    host.program("perf", "echo no permission >&2; exit 1");
    let mut lab = Lab::new(Setup { evidence, ..host.setup() }, "bench");
    booted(&mut lab).await;
    let RunResult::Measured { settings, evidence, .. } = lab.run().await else { panic!("not measured") };
    if Path::new("/proc/schedstat").exists() {
        assert!(evidence["schedstat.pcount"] > 0.0, "{evidence:?}");
    } else {
        assert_eq!(settings["schedstat"], "not in this kernel (CONFIG_SCHEDSTATS is off)");
        assert!(evidence.is_empty(), "{evidence:?}");
    }
    assert_eq!(settings["perf"], "record failed: no permission");
}

#[tokio::test]
async fn a_guest_without_a_log_to_read_is_measured_all_the_same() {
    let host = Host::new();
    host.program("dmesg", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1");
    let mut lab = Lab::new(host.setup(), "bench");
    assert_eq!(booted(&mut lab).await.environment["kernel.log"], "unreadable");
    assert_eq!(reason_of_run(lab.run().await).0, "measured");
    let (whose, words) = reason_of_boot(lab.boot().await);
    assert_eq!(whose, "booted", "{words}");
}
