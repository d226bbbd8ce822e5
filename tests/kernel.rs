//! End to end on real kernels: build, boot in QEMU, run hackbench, be killed in build, boot and run, name the commit.
//!
//! Needs a tree made by demo/make-history.sh in `SB_TEST_KERNEL_TREE` and a directory for its sessions and builds in
//! `SB_TEST_KERNEL_STATE`, which is kept, so that a second run builds only what differs; `make check` gives both. Takes some
//! ten minutes on two cores, half of it the first kernel build. Kernels with modules and for another architecture are built in
//! `make check-extended`.

use sched_bisect::history::History;
use sched_bisect::lab::kbuild::KbuildBuilder;
use sched_bisect::lab::{BuildJob, Builder};
use sched_bisect::model::{Artifact, BuildResult, CommitId, StepId};
use sched_bisect::session::Kbuild;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for a step to be seen in the journal; far above what any takes.
const PATIENCE: Duration = Duration::from_secs(1200);

struct Session {
    tree: PathBuf,
    state: PathBuf,
}

impl Session {
    /// Removes an earlier run's session and finished artifacts: each step is to be done, not found done.
    fn forget(&self) {
        for old in ["e2e", ".kbuild/cache"] {
            match std::fs::remove_dir_all(self.state.join(old)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{old}: {error}"),
                Ok(()) | Err(_) => {}
            }
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sched-bisect"));
        command.args(args).arg("--repo").arg(&self.tree).arg("--state-dir").arg(&self.state);
        command
    }

    fn output(&self, args: &[&str]) -> (i32, String) {
        let output = self.command(args).stderr(Stdio::inherit()).output().expect("the program starts");
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.state.join("e2e/journal.jsonl")).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .map(|r| r["event"].clone())
            .collect()
    }

    fn count(&self, kind: &str) -> usize {
        self.journal().iter().filter(|event| event["type"] == kind).count()
    }

    /// Lets `child` work until one more event of this type is in the journal, then kills it -9.
    fn kill_at(&self, mut child: Child, kind: &str) {
        let before = self.count(kind);
        let began = Instant::now();
        while self.count(kind) == before {
            assert!(began.elapsed() < PATIENCE, "no {kind} within {PATIENCE:?}");
            let ended = child.try_wait().expect("the child can be waited for");
            assert!(ended.is_none(), "it ended before a {kind}: {ended:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
        // Into the step, not beside its record.
        std::thread::sleep(Duration::from_millis(700));
        child.kill().expect("it lives");
        child.wait().expect("it is gone");
    }
}

#[test]
fn a_search_over_real_kernels_survives_kills_and_names_the_planted_commit() {
    let Some(tree) = std::env::var_os("SB_TEST_KERNEL_TREE") else {
        eprintln!("skipped: SB_TEST_KERNEL_TREE names no kernel tree (make check sets it)");
        return;
    };
    let state = std::env::var_os("SB_TEST_KERNEL_STATE").expect("SB_TEST_KERNEL_STATE goes with the tree");
    let session = Session { tree: PathBuf::from(tree), state: PathBuf::from(state) };
    session.forget();
    let start =
        ["start", "v6.12-short-good", "v6.12-short-bad", "--session", "e2e", "--profile", "qemu-hackbench"];

    session.kill_at(session.command(&start).spawn().expect("starts"), "build_started");
    session.kill_at(session.command(&["resume", "e2e"]).spawn().expect("resumes"), "boot_started");
    session.kill_at(session.command(&["resume", "e2e"]).spawn().expect("resumes"), "run_started");
    let measured_before = session.count("run_finished");
    let (status, report) = session.output(&["resume", "e2e"]);
    assert_eq!(status, 0, "{report}");

    let (_, json) = session.output(&["report", "e2e", "--format", "json"]);
    let report: Value = serde_json::from_str(&json).expect("the report is JSON");
    assert_planted(&session.tree, &report);
    assert_measured(&report);
    assert_eq!(
        interrupted(&session.journal()),
        BTreeSet::from(["boot_started", "build_started", "run_started"])
    );
    assert!(session.count("run_finished") > measured_before);
    assert_eq!(finished_twice(&session.journal()), Vec::<Value>::new());
    let (audit, text) = session.output(&["audit", "e2e"]);
    assert_eq!(audit, 0, "{text}");
}

/// The smallest kernel that can load a module, with one.
fn with_a_module(config: &str) -> Kbuild {
    Kbuild {
        base: "tinyconfig".to_owned(),
        config: format!("CONFIG_MODULES=y\nCONFIG_CRC_CCITT=m\n{config}"),
        required: vec!["CONFIG_MODULES=y".to_owned(), "CONFIG_CRC_CCITT=m".to_owned()],
        targets: vec!["bzImage".to_owned()],
        image: "arch/x86/boot/bzImage".to_owned(),
        make_args: Vec::new(),
        arch: String::new(),
        cross_compile: String::new(),
        modules: true,
        jobs: 0,
        fixups: Vec::new(),
        host: None,
    }
}

/// Builds the tree's good endpoint anew; says how long it took.
async fn built(name: &str, spec: Kbuild) -> Option<Artifact> {
    let (tree, state) = (std::env::var_os("SB_TEST_KERNEL_TREE")?, std::env::var_os("SB_TEST_KERNEL_STATE")?);
    let root = PathBuf::from(state).join(format!("pack-{name}"));
    for old in ["cache", "session"] {
        let _ = std::fs::remove_dir_all(root.join(old));
    }
    std::fs::create_dir_all(root.join("session")).expect("creates");
    let history = History::open(Path::new(&tree)).expect("opens");
    let mut git = Command::new("git");
    let id =
        git.arg("-C").arg(&tree).args(["rev-parse", "v6.12-short-good^{commit}"]).output().expect("git runs");
    let commit = CommitId::parse(String::from_utf8_lossy(&id.stdout).trim()).expect("an id");
    let log = root.join("build.log");
    let job = BuildJob { step: StepId(1), commit, deadline: 3 * PATIENCE, log: log.clone() };
    let mut builder =
        KbuildBuilder::open(spec, &root, &root.join("session"), history.common_dir()).expect("a builder");
    let began = Instant::now();
    let result = builder.build(&job).await;
    let BuildResult::Built { artifact } = result else { panic!("{result:?}, see {}", log.display()) };
    eprintln!("{name}: built and packed in {} s by {}", began.elapsed().as_secs(), artifact.toolchain);
    Some(*artifact)
}

/// The archive holds the module, made for the very kernel, and depmod's index of it.
fn assert_packed(artifact: &Artifact) {
    let dir = Path::new(&artifact.dir);
    let own = format!("lib/modules/{}", artifact.release);
    let mut archive = tar::Archive::new(std::fs::File::open(dir.join("modules.tar")).expect("an archive"));
    let mut files = std::collections::BTreeMap::new();
    for entry in archive.entries().expect("is an archive") {
        let mut entry = entry.expect("is whole");
        let path = entry.path().expect("a path").display().to_string();
        let path = path.strip_prefix(&own).unwrap_or_else(|| panic!("{path} is not below {own}")).to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("reads");
        files.insert(path, bytes);
    }
    let module = &files["/kernel/lib/crc-ccitt.ko"];
    let magic = format!("vermagic={} ", artifact.release);
    assert!(module.windows(magic.len()).any(|bytes| bytes == magic.as_bytes()), "no {magic:?} in the module");
    let index = String::from_utf8_lossy(&files["/modules.dep"]);
    assert_eq!(index.trim(), "kernel/lib/crc-ccitt.ko:", "{index}");
    let map = std::fs::read_to_string(dir.join("System.map")).expect("a map");
    assert!(map.lines().any(|line| line.ends_with(" start_kernel")));
}

#[tokio::test]
#[ignore = "a kernel from nothing, some minutes: make check-extended"]
async fn a_real_kernel_is_packed_with_its_module() {
    if let Some(artifact) = built("x86", with_a_module("CONFIG_64BIT=y\n")).await {
        assert_packed(&artifact);
    }
}

#[tokio::test]
#[ignore = "a kernel from nothing, ten minutes on a busy host, and a cross compiler: make check-extended"]
async fn a_real_kernel_for_arm64_is_built_and_packed_on_another_host() {
    let spec = Kbuild {
        arch: "arm64".to_owned(),
        cross_compile: "aarch64-linux-gnu-".to_owned(),
        targets: vec!["Image".to_owned()],
        image: "arch/arm64/boot/Image".to_owned(),
        ..with_a_module("")
    };
    let Some(artifact) = built("arm64", spec).await else { return };
    assert_packed(&artifact);
    assert!(artifact.toolchain.starts_with("aarch64-linux-gnu-gcc"), "{}", artifact.toolchain);
    let image = std::fs::read(Path::new(&artifact.dir).join("image")).expect("an image");
    assert_eq!(&image[56..60], b"ARM\x64", "the header of an arm64 Image");
}

/// The commit named is the one whose change turns RUN_TO_PARITY off.
fn assert_planted(tree: &Path, report: &Value) {
    assert_eq!(report["conclusion"]["kind"], "culprit", "{report:#}");
    let commit = report["conclusion"]["commit"].as_str().expect("a commit is named");
    let shown = Command::new("git").arg("-C").arg(tree).args(["show", commit]).output().expect("git runs");
    let diff = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(diff.contains("-SCHED_FEAT(RUN_TO_PARITY, true)"), "{commit} is not the planted commit:\n{diff}");
    assert_eq!(report["conclusion"]["confirmed"], true);
}

/// At least three kernels, each booted at least twice.
fn assert_measured(report: &Value) {
    let candidates = report["candidates"].as_array().expect("candidates are listed");
    let boots = |c: &&Value| c["boots"].as_array().map_or(0, Vec::len);
    let measured = candidates.iter().filter(|c| boots(c) >= 2).count();
    assert!(measured >= 3, "{report:#}");
}

/// Kinds of the steps that were interrupted. With two guests a kill interrupts two.
fn interrupted(journal: &[Value]) -> BTreeSet<&str> {
    let steps: BTreeSet<u64> = journal
        .iter()
        .filter(|event| event["type"] == "step_interrupted")
        .filter_map(|event| event["step"].as_u64())
        .collect();
    journal
        .iter()
        .filter(|event| event["step"].as_u64().is_some_and(|step| steps.contains(&step)))
        .filter_map(|event| event["type"].as_str().filter(|kind| kind.ends_with("_started")))
        .collect()
}

/// Runs measured more than once under the same boot and repetition.
fn finished_twice(journal: &[Value]) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    let started = journal.iter().filter(|e| e["type"] == "run_started");
    let finished: std::collections::HashSet<u64> = journal
        .iter()
        .filter(|e| e["type"] == "run_finished" && e["result"]["outcome"] == "measured")
        .filter_map(|e| e["step"].as_u64())
        .collect();
    started
        .filter(|e| e["step"].as_u64().is_some_and(|step| finished.contains(&step)))
        .filter(|e| !seen.insert((e["boot"].to_string(), e["repetition"].to_string())))
        .cloned()
        .collect()
}
