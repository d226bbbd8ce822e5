//! The contract of hooks/README.md, line by line.

use super::*;
use crate::lab::process::end_leftovers;
use crate::lab::{BootJob, BuildJob, Builder, Machine, RunJob};
use crate::model::{Artifact, BootNo, BootResult, BuildResult, InfraKind, RunResult, StepId, UntestableKind};
use crate::session::{NamedVariant, Variant};
use crate::workload::{Options, Parser, Reader};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempDir;

/// A tree without git: a checkout writes the commit's first digit to `version` and removes all but ignored files.
struct PlainTree {
    dir: PathBuf,
    checkouts: Rc<RefCell<Vec<CommitId>>>,
    broken: Rc<RefCell<bool>>,
}

#[async_trait(?Send)]
impl Tree for PlainTree {
    async fn checkout(&mut self, commit: &CommitId) -> Result<(), String> {
        if *self.broken.borrow() {
            return Err("disk on fire".to_owned());
        }
        self.checkouts.borrow_mut().push(commit.clone());
        for entry in std::fs::read_dir(&self.dir).map_err(|e| e.to_string())? {
            let path = entry.map_err(|e| e.to_string())?.path();
            if !path.to_string_lossy().ends_with(".ignored") {
                std::fs::remove_file(path).map_err(|e| e.to_string())?;
            }
        }
        std::fs::write(self.dir.join("version"), &commit.as_str()[..1]).map_err(|e| e.to_string())
    }

    fn path(&self) -> &Path {
        &self.dir
    }
}

/// A session directory with a site in it.
struct Lab {
    dir: TempDir,
    checkouts: Rc<RefCell<Vec<CommitId>>>,
    broken: Rc<RefCell<bool>>,
    builder: CommandBuilder,
    machine: CommandMachine,
    steps: u64,
    deadline: Duration,
}

const PATIENT: Duration = Duration::from_secs(60);

fn commit(digit: char) -> CommitId {
    CommitId::parse(&digit.to_string().repeat(40)).expect("40 digits")
}

impl Lab {
    fn new(build: Option<&str>, boot: Option<&str>, run: &str) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let checkouts = Rc::new(RefCell::new(Vec::new()));
        let broken = Rc::new(RefCell::new(false));
        let source = dir.path().join("tree");
        std::fs::create_dir(&source).expect("makes the tree");
        let tree = PlainTree { dir: source, checkouts: checkouts.clone(), broken: broken.clone() };
        let spec = SiteSpec {
            session: "s1".to_owned(),
            owner: dir.path().to_owned(),
            build: build.map(str::to_owned),
            build_deadline: PATIENT,
            build_dir: dir.path().join("build"),
            artifacts: dir.path().join("artifacts"),
            variant: "default".to_owned(),
        };
        let site = Site::shared(spec, Box::new(tree));
        let commands = Commands { boot: boot.map(str::to_owned), run: run.to_owned(), ..Commands::default() };
        let machine = CommandMachine::new(site.clone(), commands, "time".to_owned(), HashSet::new());
        let builder = CommandBuilder::new(site);
        Self { dir, checkouts, broken, builder, machine, steps: 0, deadline: PATIENT }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn step(&mut self) -> StepId {
        self.steps += 1;
        StepId(self.steps)
    }

    async fn build(&mut self, commit: CommitId) -> BuildResult {
        let job =
            BuildJob { step: self.step(), commit, deadline: self.deadline, log: self.path("build.log") };
        self.builder.build(&job).await
    }

    async fn built(&mut self, commit: CommitId) -> Artifact {
        let BuildResult::Built { artifact } = self.build(commit).await else { panic!("not built") };
        *artifact
    }

    async fn boot(&mut self, artifact: &Artifact) -> BootResult {
        let step = self.step();
        let dir = self.path(&format!("boot-{step}"));
        std::fs::create_dir(&dir).expect("makes the boot directory");
        let job = BootJob {
            step,
            artifact: artifact.clone(),
            boot: BootNo(step.0),
            variant: NamedVariant { name: "default".to_owned(), sets: Variant::default() },
            dir,
            deadline: self.deadline,
            log: self.path("boot.log"),
        };
        self.machine.boot(&job).await
    }

    async fn run_in(&mut self, artifact: &Artifact, boot_dir: PathBuf) -> RunResult {
        let job = RunJob {
            step: self.step(),
            artifact: artifact.clone(),
            boot: BootNo(7),
            dir: boot_dir,
            repetition: 3,
            deadline: self.deadline,
            log: self.path("run.log"),
        };
        self.machine.run(&job).await
    }

    async fn run(&mut self, artifact: &Artifact) -> RunResult {
        let dir = self.path("boot");
        self.run_in(artifact, dir).await
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the file is there")
    }

    fn pid(&self, name: &str) -> i32 {
        self.read(name).trim().parse().expect("a pid")
    }
}

/// A candidate that was built into its tree.
fn in_tree() -> Artifact {
    Artifact::of(commit('a'))
}

fn measured(value: f64) -> RunResult {
    RunResult::measured(BTreeMap::from([("time".to_owned(), value)]))
}

fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// The class of an answer, without its words.
fn build_class(result: BuildResult) -> String {
    match result {
        BuildResult::Built { .. } => "done".to_owned(),
        BuildResult::Untestable(u) => format!("untestable {:?}", u.kind),
        BuildResult::Infra(i) => format!("infra {:?}", i.kind),
    }
}

fn boot_class(result: BootResult) -> String {
    match result {
        BootResult::Booted(_) => "done".to_owned(),
        BootResult::Untestable(u) => format!("untestable {:?}", u.kind),
        BootResult::Infra(i) => format!("infra {:?}", i.kind),
    }
}

fn run_class(result: RunResult) -> String {
    match result {
        RunResult::Measured { .. } => "done".to_owned(),
        RunResult::Invalid { .. } => "invalid".to_owned(),
        RunResult::Failed { .. } => "failed".to_owned(),
        RunResult::Untestable(u) => format!("untestable {:?}", u.kind),
        RunResult::Infra(i) => format!("infra {:?}", i.kind),
    }
}

/// What build, boot and run each make of this script.
async fn classes(script: &str, deadline: Duration) -> [String; 3] {
    let mut lab = Lab::new(Some(script), None, "true");
    lab.deadline = deadline;
    let build = build_class(lab.build(commit('a')).await);
    let mut lab = Lab::new(None, Some(script), "true");
    lab.deadline = deadline;
    let boot = boot_class(lab.boot(&in_tree()).await);
    let mut lab = Lab::new(None, None, script);
    lab.deadline = deadline;
    let run = run_class(lab.run(&in_tree()).await);
    [build, boot, run]
}

#[tokio::test]
async fn every_exit_status_means_what_the_contract_says() {
    let own = |kind: &str| [format!("infra {kind}"), format!("infra {kind}"), format!("infra {kind}")];
    let failed = || ["untestable Build", "untestable Boot", "failed"].map(str::to_owned);
    for code in [1, 2, 74, 76, 124, 128, 193, 255] {
        assert_eq!(classes(&format!("echo 5; exit {code}"), PATIENT).await, failed(), "exit {code}");
    }
    for code in [129, 137, 139, 192] {
        assert_eq!(classes(&format!("echo 5; exit {code}"), PATIENT).await, own("Killed"), "exit {code}");
    }
    assert_eq!(classes("echo 5", PATIENT).await, ["done", "done", "done"]);
    assert_eq!(classes("echo 5; exit 75", PATIENT).await, own("TryAgain"));
    assert_eq!(classes("echo 5; exit 125", PATIENT).await, ["untestable Declared"; 3]);
    for code in [126, 127] {
        assert_eq!(
            classes(&format!("echo 5; exit {code}"), PATIENT).await,
            own("BrokenCommand"),
            "exit {code}"
        );
    }
}

#[tokio::test]
async fn a_command_that_is_missing_or_not_executable_stops_the_session() {
    let broken = ["infra BrokenCommand"; 3];
    assert_eq!(classes("no-such-command-anywhere", PATIENT).await, broken);
    assert_eq!(classes("./no/such/file", PATIENT).await, broken);
    assert_eq!(classes("./version", PATIENT).await, broken);
    assert_eq!(classes("echo \0", PATIENT).await, broken);
}

#[tokio::test]
async fn death_by_a_signal_is_never_the_commits_fault() {
    assert_eq!(classes("kill -9 $$", PATIENT).await, ["infra Killed"; 3]);
    assert_eq!(classes("sh -c 'kill -SEGV $$'; exit $?", PATIENT).await, ["infra Killed"; 3]);
}

#[tokio::test]
async fn a_command_past_its_deadline_is_ended_with_children_that_ignore_the_signal() {
    let script = "trap '' TERM; sleep 300 & echo $! >pid.ignored; wait; wait";
    let soon = Duration::from_millis(400);
    let mut building = Lab::new(Some(script), None, "true");
    let mut booting = Lab::new(None, Some(script), "true");
    let mut running = Lab::new(None, None, script);
    for lab in [&mut building, &mut booting, &mut running] {
        lab.deadline = soon;
    }
    let artifact = in_tree();
    let (build, boot, run) =
        tokio::join!(building.build(commit('a')), booting.boot(&artifact), running.run(&artifact));
    assert_eq!(build_class(build), "infra Timeout");
    let BootResult::Untestable(u) = boot else { panic!("another answer") };
    assert_eq!((u.kind, u.reason.as_str()), (UntestableKind::Boot, "not up within 400ms"));

    let RunResult::Failed { reason } = run else { panic!("another answer") };
    assert!(reason.contains("not done within 400ms"), "{reason}");
    for lab in [&building, &booting, &running] {
        assert!(!is_alive(lab.pid("tree/pid.ignored")));
    }
}

#[tokio::test]
async fn what_a_run_left_in_the_background_neither_hangs_the_step_nor_outlives_it() {
    // It left the process group and holds standard output open.
    let script =
        "setsid sh -c 'echo $$ >pid.ignored; exec sleep 300' & until [ -s pid.ignored ]; do :; done; echo 5";
    let mut lab = Lab::new(None, None, script);
    assert_eq!(lab.run(&in_tree()).await, measured(5.0));
    assert!(!is_alive(lab.pid("tree/pid.ignored")));
}

#[tokio::test]
async fn what_a_boot_started_lives_until_the_boot_is_over() {
    let boot = "setsid sh -c 'echo $$ >\"$SB_BOOT_DIR/pid\"; exec sleep 300' & until [ -s \"$SB_BOOT_DIR/pid\" ]; do :; done";
    let mut lab = Lab::new(None, Some(boot), "kill -0 $(cat \"$SB_BOOT_DIR/pid\") && echo 1");
    let artifact = in_tree();
    assert_eq!(boot_class(lab.boot(&artifact).await), "done");
    let first = lab.path("boot-1");
    assert_eq!(lab.run_in(&artifact, first).await, measured(1.0));
    assert_eq!(boot_class(lab.boot(&artifact).await), "done");
    assert!(!is_alive(lab.pid("boot-1/pid")), "the second boot ends the first");
    assert!(is_alive(lab.pid("boot-3/pid")));
    lab.machine.off().await;
    assert!(!is_alive(lab.pid("boot-3/pid")));
}

#[tokio::test]
async fn what_a_failed_boot_started_is_ended_at_once() {
    let boot =
        "setsid sh -c 'echo $$ >pid.ignored; exec sleep 300' & until [ -s pid.ignored ]; do :; done; exit 1";
    let mut lab = Lab::new(None, Some(boot), "true");
    assert_eq!(boot_class(lab.boot(&in_tree()).await), "untestable Boot");
    assert!(!is_alive(lab.pid("tree/pid.ignored")));
}

#[tokio::test]
async fn dropping_a_step_ends_its_processes_and_the_next_step_works() {
    let script = "echo $$ >pid.ignored; if [ -e go.ignored ]; then echo 5; else exec sleep 300; fi";
    let mut lab = Lab::new(None, None, script);
    let pid = lab.path("tree/pid.ignored");
    let started = async {
        while !std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) {
            tokio::task::yield_now().await;
        }
    };
    let artifact = in_tree();
    tokio::select! {
        result = lab.run(&artifact) => panic!("ended: {result:?}"),
        () = started => {}
    }
    assert_eq!(end_leftovers(lab.dir.path()).map(|left| left.into_iter().any(is_alive)).ok(), Some(false));
    std::fs::write(lab.path("tree/go.ignored"), "").expect("writes");
    assert_eq!(lab.run(&in_tree()).await, measured(5.0));
}

#[tokio::test]
async fn each_command_finds_the_contracts_variables_and_no_others() {
    let show = "env | grep '^SB_' | sort >\"$SB_BUILD_DIR/$0.env\"; [ \"$PWD\" = \"$SB_SOURCE\" ]";
    let call = |name: &str| format!("mkdir -p \"$SB_BUILD_DIR\"; sh -c '{show}' {name} && echo 1");
    let mut lab = Lab::new(Some(&call("build")), Some(&call("boot")), &call("run"));
    let artifact = lab.built(commit('a')).await;
    assert_eq!(boot_class(lab.boot(&artifact).await), "done");
    let boot_dir = lab.path("boot-2");
    assert_eq!(lab.run_in(&artifact, boot_dir).await, measured(1.0));
    let root = lab.dir.path().display().to_string();
    let seen = |name: &str| lab.read(&format!("build/{name}.env")).replace(&root, "ROOT");
    let id = commit('a');
    let common = format!("SB_COMMIT={id}\nSB_SESSION=s1\nSB_SESSION_DIR=ROOT\nSB_SOURCE=ROOT/tree\n");
    let front = format!("SB_ARTIFACTS=ROOT/artifacts/{id}\n");
    let dir = "SB_BUILD_DIR=ROOT/build\n";
    assert_eq!(seen("build"), format!("{front}{dir}{common}SB_STEP=1\nSB_VARIANT=default\n"));
    let boot = "SB_BOOT=2\nSB_BOOT_DIR=ROOT/boot-2\n";
    assert_eq!(seen("boot"), format!("{front}{boot}{dir}{common}SB_STEP=2\nSB_VARIANT=default\n"));
    let boot = "SB_BOOT=7\nSB_BOOT_DIR=ROOT/boot-2\n";
    let common = common.replace("SB_SESSION=", "SB_REPETITION=3\nSB_SESSION=");
    assert_eq!(seen("run"), format!("{front}{boot}{dir}{common}SB_STEP=3\nSB_VARIANT=default\n"));
}

#[tokio::test]
async fn the_runs_two_outputs_go_to_two_files_and_only_the_first_is_read() {
    let mut lab = Lab::new(None, None, "echo warming; echo 99 >&2; echo 5; echo 98 >&2");
    assert_eq!(lab.run(&in_tree()).await, measured(5.0));
    assert_eq!(lab.read("run.log"), "warming\n5\n");
    assert_eq!(lab.read("run.log.err"), "99\n98\n");
}

#[tokio::test]
async fn an_unusable_measurement_is_invalid_and_a_failure_says_its_last_words() {
    let mut lab = Lab::new(None, None, "printf 'ok\\n\\377\\000\\n'");
    assert_eq!(run_class(lab.run(&in_tree()).await), "invalid");
    let mut lab = Lab::new(None, None, "echo 5; echo 'cannot allocate\r' >&2; exit 3");
    let reason = "the run command failed with exit 3: cannot allocate".to_owned();
    assert_eq!(lab.run(&in_tree()).await, RunResult::Failed { reason });
}

#[tokio::test]
async fn a_parser_reads_both_streams_of_a_run_and_its_reason_is_kept() {
    let by_hackbench = |run: &str| {
        let mut lab = Lab::new(None, None, run);
        let reader = Reader::new(Parser::Hackbench, Options::default());
        lab.machine = lab.machine.read_by(reader);
        lab
    };
    let mut lab = by_hackbench("echo 'Time: 0.25'; echo done");
    assert_eq!(lab.run(&in_tree()).await, measured(0.25));
    let mut lab = by_hackbench("echo 'Time: 0.25'; echo \"longjmp'ed out\" >&2");
    let RunResult::Invalid { reason } = lab.run(&in_tree()).await else { panic!("a killed run is invalid") };
    assert!(reason.starts_with("hackbench: hackbench was ended before it was done"), "{reason}");
}

#[tokio::test]
async fn a_product_in_the_tree_is_built_again_only_after_the_tree_held_another() {
    let build = "cp version product.ignored; echo x >>\"$SB_BUILD_DIR/builds\"";
    let mut lab = Lab::new(Some(build), None, "cat product.ignored; echo; cmp -s version product.ignored");
    let (one, two) = (lab.built(commit('1')).await, lab.built(commit('2')).await);
    assert_eq!((one.dir.as_str(), two.dir.as_str()), ("", ""));
    let builds = |lab: &Lab| lab.read("build/builds").lines().count();
    assert_eq!((lab.run(&two).await, builds(&lab)), (measured(2.0), 2));
    assert_eq!((lab.run(&one).await, builds(&lab)), (measured(1.0), 3));
    assert_eq!((lab.run(&one).await, builds(&lab)), (measured(1.0), 3));
    assert_eq!((lab.run(&two).await, builds(&lab)), (measured(2.0), 4));
    let wanted: Vec<CommitId> = ['1', '2', '1', '2'].map(commit).into();
    assert_eq!(*lab.checkouts.borrow(), wanted);
}

#[tokio::test]
async fn a_product_in_its_own_directory_is_never_built_again() {
    let build = "cp version \"$SB_ARTIFACTS/product\"; echo x >>\"$SB_BUILD_DIR/builds\"";
    let mut lab = Lab::new(Some(build), None, "cmp version \"$SB_ARTIFACTS/product\" && cat version");
    let (one, two) = (lab.built(commit('1')).await, lab.built(commit('2')).await);
    assert_eq!(one.dir, lab.path("artifacts").join(commit('1').as_str()).to_string_lossy());
    assert_eq!(lab.run(&one).await, measured(1.0));
    assert_eq!(lab.run(&two).await, measured(2.0));
    assert_eq!(lab.read("build/builds").lines().count(), 2);
    std::fs::remove_dir_all(&one.dir).expect("removes");
    assert_eq!(run_class(lab.run(&one).await), "infra Missing");
}

#[tokio::test]
async fn without_a_build_command_a_candidate_is_its_checked_out_tree() {
    let mut lab = Lab::new(None, None, "cat version");
    let (one, two) = (lab.built(commit('1')).await, lab.built(commit('2')).await);
    assert_eq!(lab.run(&one).await, measured(1.0));
    assert_eq!(lab.run(&two).await, measured(2.0));
}

#[tokio::test]
async fn a_rebuild_that_fails_is_a_failure_of_ours() {
    let build = "[ \"$(cat version)\" = 2 ] || [ ! -e fail.ignored ] || { echo broken >&2; exit 1; }";
    let mut lab = Lab::new(Some(build), Some("true"), "echo 1");
    let one = lab.built(commit('1')).await;
    lab.built(commit('2')).await;
    std::fs::write(lab.path("tree/fail.ignored"), "").expect("writes");
    let RunResult::Infra(failure) = lab.run(&one).await else { panic!("another answer") };
    assert_eq!(failure.kind, InfraKind::Other);
    assert!(failure.reason.contains("built before, but not again"), "{}", failure.reason);
    assert!(failure.reason.contains("exit 1: broken"), "{}", failure.reason);

    assert_eq!(boot_class(lab.boot(&one).await), "infra Other");
    std::fs::remove_file(lab.path("tree/fail.ignored")).expect("removes");
    assert_eq!(lab.run(&one).await, measured(1.0));
}

#[tokio::test]
async fn a_checkout_that_fails_is_a_failure_of_ours_and_forgets_what_the_tree_held() {
    let mut lab = Lab::new(None, None, "cat version");
    let one = lab.built(commit('1')).await;
    *lab.broken.borrow_mut() = true;
    assert_eq!(build_class(lab.build(commit('2')).await), "infra Other");
    assert_eq!(run_class(lab.run(&one).await), "infra Other");
    *lab.broken.borrow_mut() = false;
    assert_eq!(lab.run(&one).await, measured(1.0));
}

#[tokio::test]
async fn half_a_product_of_an_interrupted_build_is_gone_before_the_next() {
    let mut lab = Lab::new(Some("touch \"$SB_ARTIFACTS/done\""), None, "true");
    let half = lab.path("artifacts").join(commit('1').as_str());
    std::fs::create_dir_all(&half).expect("makes");
    std::fs::write(half.join("half"), "").expect("writes");
    lab.built(commit('1')).await;
    assert!(half.join("done").exists() && !half.join("half").exists());
}

#[tokio::test]
async fn a_boot_id_must_be_new_and_what_the_kernel_says_of_itself_must_fit() {
    let boot = "cat \"$SB_BUILD_DIR/id\" >\"$SB_BOOT_DIR/boot_id\"; echo 6.1.0-x >\"$SB_BOOT_DIR/release\"; \
                echo quiet >\"$SB_BOOT_DIR/cmdline\"; echo abcd >\"$SB_BOOT_DIR/build_id\"";
    let mut lab = Lab::new(None, Some(boot), "true");
    let artifact = lab.built(commit('1')).await;
    let say = |lab: &Lab, id: &str| std::fs::write(lab.path("build/id"), id).expect("writes");
    say(&lab, "one\r\n");
    let BootResult::Booted(record) = lab.boot(&artifact).await else { panic!("another answer") };
    assert_eq!((record.boot_id.as_str(), record.release.as_str()), ("one", "6.1.0-x"));
    assert_eq!(record.cmdline, "quiet");

    assert_eq!(boot_class(lab.boot(&artifact).await), "infra WrongKernel");
    say(&lab, "");
    assert_eq!(boot_class(lab.boot(&artifact).await), "infra WrongKernel");
    say(&lab, "two");
    let other = Artifact { release: "6.1.0".to_owned(), ..artifact.clone() };
    assert_eq!(boot_class(lab.boot(&other).await), "infra WrongKernel");
    let other = Artifact { build_id: "ef".to_owned(), ..artifact.clone() };
    assert_eq!(boot_class(lab.boot(&other).await), "infra WrongKernel");
    assert_eq!(boot_class(lab.boot(&artifact).await), "done");
}

#[tokio::test]
async fn without_a_boot_command_every_boot_has_an_id_of_its_own() {
    let mut lab = Lab::new(None, None, "true");
    let mut ids = HashSet::new();
    for _ in 0..3 {
        let BootResult::Booted(record) = lab.boot(&in_tree()).await else { panic!("another answer") };
        assert!(ids.insert(record.boot_id));
    }
}

#[tokio::test]
async fn the_example_hooks_work_as_they_say() {
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks");
    let build = format!("'{}/build-make.sh' bench.ignored", hooks.display());
    let run = format!("'{}/run-number.sh' sh bench.ignored", hooks.display());
    let mut lab = Lab::new(Some(&build), None, &run);
    assert_eq!(build_class(lab.build(commit('1')).await), "untestable Declared");
    let build = format!("printf 'bench.ignored:\\n\\techo exit $$(cat version) >$@\\n' >Makefile; {build}");
    let mut lab = Lab::new(Some(&build), None, &run);
    let ok = lab.built(commit('0')).await;
    let RunResult::Measured { metrics, .. } = lab.run(&ok).await else { panic!("another answer") };
    assert!(metrics["time"] > 0.0);
    std::fs::remove_file(lab.path("tree/bench.ignored")).expect("removes");
    let failing = lab.built(commit('3')).await;
    let failed = lab.run(&failing).await;
    assert_eq!(run_class(failed), "failed");
}
