//! A directory plays /sys and /proc/sys; the shell is real.

use super::*;
use std::path::Path;
use std::process::Command;

/// Runs a script with the kernel's files under `root` (paths of the machine are replaced).
fn sh(script: &str, root: &Path) -> (bool, Vec<u8>, Vec<u8>) {
    let root = root.display().to_string();
    let script = script
        .replace("/proc/sys/", "@proc")
        .replace("/sys/kernel/", &format!("{root}/sys/kernel/"))
        .replace("/sys/devices/", &format!("{root}/sys/devices/"))
        .replace("@proc", &format!("{root}/proc/sys/"));
    let done = Command::new("sh").arg("-c").arg(script).output().expect("sh is there");
    (done.status.success(), done.stdout, done.stderr)
}

struct Kernel(tempfile::TempDir);

impl Kernel {
    fn with(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("makes");
            std::fs::write(path, text).expect("writes");
        }
        Self(dir)
    }

    fn set(&self, variant: &Variant) -> Result<Settings, String> {
        let tunables = Tunables::of(variant);
        let (_, stdout, _) = sh(&tunables.set(), self.0.path());
        reason(tunables.read_back(&stdout))
    }

    fn read(&self, variant: &Variant) -> Result<Settings, String> {
        let tunables = Tunables::of(variant);
        let (_, stdout, _) = sh(&tunables.read(), self.0.path());
        reason(tunables.read_back(&stdout))
    }

    fn found(&self, variant: &Variant) -> Settings {
        let tunables = Tunables::of(variant);
        tunables.found(&sh(&tunables.read(), self.0.path()).1)
    }

    fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.0.path().join(path)).expect("is there")
    }
}

fn reason(read: Result<Settings, Wrong>) -> Result<Settings, String> {
    read.map_err(|wrong| wrong.reason)
}

fn variant(set: impl FnOnce(&mut Variant)) -> Variant {
    let mut variant = Variant::default();
    set(&mut variant);
    variant
}

fn file_variant(path: &str, value: &str) -> Variant {
    variant(|v| drop(v.files.insert(path.to_owned(), value.to_owned())))
}

const SLICE: &str = "sys/kernel/debug/sched/base_slice_ns";

#[test]
fn a_slice_is_written_read_back_and_put_back() {
    let kernel = Kernel::with(&[(SLICE, "700000\n")]);
    let three = variant(|v| v.base_slice_ns = Some(3_000_000));
    let before = kernel.found(&three);
    assert_eq!(before["base_slice_ns"], "700000");
    assert_eq!(kernel.set(&three).expect("it is there")["base_slice_ns"], "3000000");
    let tunables = Tunables::of(&three);
    sh(&tunables.restore(&before), kernel.0.path());
    assert_eq!(kernel.file(SLICE).trim(), "700000");
    assert_eq!(
        kernel.read(&three),
        Err("base_slice_ns was set to 3000000 and reads back 700000 (the file is in nanoseconds); see what else on the SUT \
             writes it"
            .to_owned())
    );
}

#[test]
fn case_34_a_knob_that_is_absent_is_no_measurement_and_is_named() {
    let kernel = Kernel::with(&[("sys/kernel/debug/sched/features", "GENTLE NO_RUN_TO_PARITY\n")]);
    let reason = kernel.set(&variant(|v| v.base_slice_ns = Some(3_000_000))).expect_err("absent");
    let path = kernel.0.path().join(SLICE);
    assert_eq!(reason, format!("knob not available: base_slice_ns (no {})", path.display()));
    let reason = kernel.set(&variant(|v| v.features = vec!["NO_PLACE_LAG".to_owned()])).expect_err("absent");
    assert_eq!(
        reason,
        "knob not available: this kernel has no scheduler feature PLACE_LAG (neither in sched/features of debugfs nor as sysctl)"
    );
}

#[test]
fn a_knob_that_the_kernel_lacks_is_told_from_one_that_is_not_as_it_should_be() {
    let features = variant(|v| v.features = vec!["NO_PLACE_LAG".to_owned()]);
    let lacks = |answer: &[u8]| Tunables::of(&features).read_back(answer).expect_err("wrong").lacks;
    assert!(lacks(b"knob\t0\tabsent\t/sys/x\n"));
    assert!(!lacks(b"knob\t0\tis\tPLACE_LAG\n"));
    assert!(!lacks(b""));
    let service =
        variant(|v| (v.policy, v.processes) = (Some("batch".to_owned()), vec!["mysqld".to_owned()]));
    let absent = Tunables::of(&service).read_back(b"knob\t0\tabsent\tmysqld\n").expect_err("wrong");
    assert!(!absent.lacks, "that a service does not run is not the kernel's");
}

#[test]
fn case_34_three_is_not_three_milliseconds() {
    let tunables = Tunables::of(&variant(|v| v.base_slice_ns = Some(3_000_000)));
    assert_eq!(
        reason(tunables.read_back(b"knob\t0\tis\t3\n")),
        Err("base_slice_ns was set to 3000000 and reads back 3 (the file is in nanoseconds: 3 ns, not 3 ms); see what else \
             on the SUT writes it"
            .to_owned())
    );
}

#[test]
fn a_debugfs_that_cannot_be_looked_into_is_no_kernel_that_lacks_the_knob() {
    let hidden = "base_slice_ns cannot be reached: debugfs is not at /sys/kernel/debug and cannot be mounted there; the kernel \
                  needs CONFIG_DEBUG_FS=y, and the SUT's shell must be root's";
    let slice = Tunables::of(&variant(|v| v.base_slice_ns = Some(3_000_000)));
    let kernel = Kernel::with(&[]);
    std::fs::create_dir_all(kernel.0.path().join("sys/kernel/debug")).expect("makes");
    // Not even root may mount it over the directory of this test.
    let script = slice.set().replace("mount -t", "false -t");
    let (_, stdout, _) = sh(&script, kernel.0.path());
    let wrong = slice.read_back(&stdout).expect_err("hidden");
    assert_eq!((wrong.reason.as_str(), wrong.lacks), (hidden, false));
}

#[test]
fn a_value_that_the_kernel_refuses_is_told_with_what_it_reads() {
    let tunables = Tunables::of(&file_variant("/proc/sys/vm/swappiness", "900"));
    let wrong = tunables.read_back(b"knob\t0\trefused\t60\n").expect_err("refused");
    assert_eq!(
        (wrong.reason.as_str(), wrong.lacks),
        (
            "/proc/sys/vm/swappiness cannot be set to 900: the kernel refused it; it reads 60; see that the value is within \
             its range, and that the SUT's shell is root's",
            false
        )
    );
}

#[test]
fn a_feature_is_set_where_this_kernel_has_it() {
    // A plain file shows the word alone that was written; that is how it reads when it is set.
    let features = variant(|v| v.features = vec!["NO_PLACE_LAG".to_owned()]);
    for list in ["sys/kernel/debug/sched/features", "sys/kernel/debug/sched_features"] {
        let kernel = Kernel::with(&[(list, "GENTLE PLACE_LAG NO_LAST\n")]);
        assert_eq!(kernel.found(&features)["PLACE_LAG"], "PLACE_LAG");
        assert_eq!(kernel.set(&features).expect("it is there")["PLACE_LAG"], "NO_PLACE_LAG");
        assert_eq!(kernel.file(list), "NO_PLACE_LAG\n");
    }
    let sysctl = "proc/sys/kernel/sched_place_lag_enabled";
    let kernel = Kernel::with(&[(sysctl, "1\n")]);
    assert_eq!(kernel.set(&features).expect("it is there")["PLACE_LAG"], "NO_PLACE_LAG");
    assert_eq!(kernel.file(sysctl), "0\n");
    assert!(kernel.read(&features).is_ok());
}

#[test]
fn the_choice_in_effect_is_read_out_of_a_list() {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let tunables = Tunables::of(&file_variant(path, "never"));
    assert!(tunables.read_back(b"knob\t0\tis\talways madvise [never]\n").is_ok());
    let reason = tunables.read_back(b"knob\t0\tis\t[always] madvise never\n").expect_err("another").reason;
    assert_eq!(
        reason,
        format!("{path} was set to never and reads back always; see what else on the SUT writes it")
    );
}

#[test]
fn what_must_be_so_is_only_read() {
    let path = "sys/kernel/sched_ext/state";
    let kernel = Kernel::with(&[(path, "disabled\n")]);
    let expect = |state: &str| variant(|v| drop(v.expect.insert(format!("/{path}"), state.to_owned())));
    assert!(kernel.set(&expect("disabled")).is_ok());
    let reason = kernel.set(&expect("enabled")).expect_err("another");
    assert!(reason.ends_with("sched_ext/state must read enabled and reads disabled"), "{reason}");
    assert_eq!(kernel.file(path), "disabled\n");
}

#[test]
fn every_cpu_has_the_governor_or_the_run_is_invalid() {
    let of = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let kernel = Kernel::with(&[(&of(0), "powersave\n"), (&of(11), "powersave\n")]);
    let governor = variant(|v| v.governor = Some("performance".to_owned()));
    assert_eq!(kernel.found(&governor)["governor"], "powersave");
    assert_eq!(kernel.set(&governor).expect("they are there")["governor"], "performance");
    std::fs::write(kernel.0.path().join(of(11)), "powersave\n").expect("writes");
    assert_eq!(
        kernel.read(&governor),
        Err("governor was set to performance and reads back performance powersave; see what else on the SUT sets it".to_owned())
    );
    let reason = Kernel::with(&[]).set(&governor).expect_err("absent");
    assert_eq!(reason, "knob not available: this machine has no cpufreq governor");
}

#[test]
fn an_answer_that_breaks_off_is_no_answer() {
    let tunables = Tunables::of(&file_variant("/sys/kernel/a", "1"));
    assert_eq!(
        reason(tunables.read_back(b"not a knob\t0\n")),
        Err("/sys/kernel/a was not read back".to_owned())
    );
}

#[test]
fn the_runs_own_shell_gets_policy_and_nice_and_says_so_when_it_does_not() {
    let batch = variant(|v| (v.policy, v.nice) = (Some("batch".to_owned()), Some(5)));
    let tunables = Tunables::of(&batch);
    assert!(tunables.is_empty(), "nothing of it is the machine's");
    let script = format!("{}\nawk '{{ print $41, $19 }}' </proc/self/stat", tunables.prelude());
    let (_, stdout, stderr) = sh(&script, Path::new("/"));
    assert_eq!(String::from_utf8_lossy(&stdout), "3 5\n", "{}", String::from_utf8_lossy(&stderr));
    assert_eq!(tunables.of_the_run()["run"], "policy batch nice 5");

    let script = format!("chrt() {{ :; }}\n{}\necho not reached", tunables.prelude());
    let (ok, stdout, stderr) = sh(&script, Path::new("/"));
    assert!(!ok && stdout.is_empty());
    assert_eq!(
        declared_invalid(&stderr).as_deref(),
        Some("the run was given policy batch nice 5 and has policy other nice 5")
    );
}

#[test]
fn a_services_threads_get_the_policy() {
    // A name of its own: the policy is set for every process of that name on the machine.
    let dir = tempfile::tempdir().expect("temporary directory");
    let name = format!("sb-{}", std::process::id());
    let program = dir.path().join(&name);
    // A link: of a copy that was just written, another thread's child may hold it open, and it would not start.
    std::os::unix::fs::symlink("/bin/sleep", &program).expect("a new directory");
    let mut sleep = Command::new("/bin/sh")
        .args(["-c", "exec \"$0\" 300", program.to_str().expect("UTF-8")])
        .spawn()
        .expect("sh is there");
    let comm = format!("/proc/{}/comm", sleep.id());
    while std::fs::read_to_string(&comm).expect("it lives").trim() != name {
        std::thread::yield_now();
    }
    let batch = variant(|v| {
        v.policy = Some("batch".to_owned());
        v.processes = vec![name.clone(), "no-such-service-here".to_owned()];
    });
    let tunables = Tunables::of(&batch);
    assert_eq!(tunables.prelude(), "");
    let stat = format!("/proc/{}/stat", sleep.id());
    let script = tunables.set();
    let (_, stdout, _) = sh(&script, Path::new("/"));
    let seen = std::fs::read_to_string(stat).expect("it lives");
    sleep.kill().and_then(|()| sleep.wait()).expect("it is ours");
    assert_eq!(seen.split(' ').nth(40), Some("3"));
    assert_eq!(
        reason(tunables.read_back(&stdout)),
        Err("process no-such-service-here does not run on the SUT".to_owned())
    );
}
