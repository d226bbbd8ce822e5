//! The order of a boot and the blame of each part, over real shells; roles are shells of this host.

use super::*;
use crate::lab::command::{CommandMachine, Commands, Site, SiteSpec, Tree};
use crate::model::{CommitId, Relative};
use crate::session::{Canary, NamedVariant, Saturation, Settle, Variant};
use crate::workload::{Options, Parser, Reader};
use std::collections::{BTreeMap, HashSet};

struct PlainTree(PathBuf);

#[async_trait(?Send)]
impl Tree for PlainTree {
    async fn checkout(&mut self, _: &CommitId) -> Result<(), String> {
        Ok(())
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

pub(super) struct Lab {
    dir: tempfile::TempDir,
    pub(super) machine: Stage<CommandMachine>,
    steps: u64,
    deadline: Duration,
}

fn step(name: &str, on: &str, when: Phase, command: &str) -> Step {
    Step {
        name: name.to_owned(),
        on: on.to_owned(),
        when,
        command: command.to_owned(),
        deadline_s: 20,
        every_s: None,
    }
}

/// A profile's part with a load generator that is another shell.
fn setup(steps: Vec<Step>) -> Setup {
    let roles = BTreeMap::from([("ldg".to_owned(), "sh".to_owned())]);
    Setup { roles, steps, ..Setup::default() }
}

impl Lab {
    pub(super) fn new(setup: Setup, run: &str) -> Self {
        Self::knowing(setup, run, Vec::new())
    }

    /// One whose boots are kernels of the candidates.
    pub(super) fn booting(setup: Setup, run: &str) -> Self {
        Self::with(setup, run, Some("true".to_owned()), Vec::new())
    }

    fn knowing(setup: Setup, run: &str, canaries: Vec<f64>) -> Self {
        Self::with(setup, run, None, canaries)
    }

    fn with(setup: Setup, run: &str, boot: Option<String>, canaries: Vec<f64>) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let tree = dir.path().join("tree");
        std::fs::create_dir(&tree).expect("makes");
        let spec = SiteSpec {
            session: "s1".to_owned(),
            owner: dir.path().to_owned(),
            build: None,
            build_deadline: OWN_DEADLINE,
            build_dir: dir.path().join("build"),
            artifacts: dir.path().join("artifacts"),
            variant: "default".to_owned(),
        };
        let site = Site::shared(spec, Box::new(PlainTree(tree)));
        let commands = Commands { boot, run: run.to_owned(), roles: setup.roles.clone() };
        let machine = CommandMachine::new(site, commands, "time".to_owned(), HashSet::new());
        let done = dir.path().join("once-0");
        let machine = Stage::new(machine, setup, done, canaries);
        Self { dir, machine, steps: 0, deadline: OWN_DEADLINE }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Text that commands write with `>>"$SB_SOURCE/NAME"` or, on the other role, by its path.
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path("tree").join(name)).unwrap_or_default()
    }

    fn artifact() -> Artifact {
        Artifact::of(CommitId::parse(&"1".repeat(40)).expect("40 digits"))
    }

    pub(super) async fn boot(&mut self) -> BootResult {
        self.steps += 1;
        let dir = self.path(&format!("boot-{}", self.steps));
        std::fs::create_dir(&dir).expect("makes");
        let (step, boot, log) = (StepId(self.steps), BootNo(self.steps), self.path("boot.log"));
        let variant = NamedVariant { name: "default".to_owned(), sets: self.machine.setup.variant.clone() };
        let (artifact, deadline) = (Self::artifact(), OWN_DEADLINE);
        self.machine.boot(&BootJob { step, artifact, boot, variant, dir, deadline, log }).await
    }

    pub(super) async fn run(&mut self) -> RunResult {
        let boot = self.machine.live.as_ref().map_or(BootNo(0), |live| live.place.boot);
        self.steps += 1;
        let job = RunJob {
            step: StepId(self.steps),
            artifact: Self::artifact(),
            boot,
            dir: self.path(&format!("boot-{boot}")),
            repetition: 1,
            deadline: self.deadline,
            log: self.path(&format!("run-{}.log", self.steps)),
        };
        self.machine.run(&job).await
    }

    async fn booted(setup: Setup, run: &str) -> Self {
        let mut lab = Self::new(setup, run);
        let result = lab.boot().await;
        assert!(matches!(result, BootResult::Booted(_)), "{result:?}");
        lab
    }
}

pub(super) fn reason_of_boot(result: BootResult) -> (&'static str, String) {
    match result {
        BootResult::Booted(record) => ("booted", format!("{record:?}")),
        BootResult::Untestable(untestable) => ("commit", untestable.reason),
        BootResult::Infra(failure) => ("ours", failure.reason),
    }
}

pub(super) fn reason_of_run(result: RunResult) -> (&'static str, String) {
    match result {
        RunResult::Measured { metrics, .. } => ("measured", format!("{metrics:?}")),
        RunResult::Invalid { reason } => ("invalid", reason),
        RunResult::Failed { reason } => ("failed", reason),
        RunResult::Untestable(untestable) => ("commit", untestable.reason),
        RunResult::Infra(failure) => ("ours", failure.reason),
    }
}

#[tokio::test]
async fn the_parts_of_a_boot_come_in_their_order_and_the_prepared_stays_prepared() {
    let note = |word: &str| format!("echo {word} $SB_ROLE >>\"$SB_SOURCE/order\"");
    let steps = vec![
        step("wipe", SUT, Phase::Clean, &note("clean")),
        step("fetch", SUT, Phase::Collect, &note("collect")),
        step("warm", SUT, Phase::Run, &note("before")),
        step("serve", SUT, Phase::Boot, &note("boot")),
        step("load", SUT, Phase::Once, &note("once")),
    ];
    let mut lab = Lab::booted(setup(steps), &format!("{}; echo 5", note("run"))).await;
    assert_eq!(reason_of_run(lab.run().await).0, "measured");
    assert_eq!(reason_of_run(lab.run().await).0, "measured");
    assert!(matches!(lab.boot().await, BootResult::Booted(_)));
    lab.machine.off().await;
    let run = "before sut\nrun sut\ncollect sut\n";
    assert_eq!(lab.read("order"), format!("boot sut\nonce sut\n{run}{run}clean sut\nboot sut\nclean sut\n"));
}

#[tokio::test]
async fn the_load_is_sized_by_the_sut_and_what_is_collected_is_read_with_the_run() {
    let steps = vec![step("profile", LDG, Phase::Collect, "echo users=$((8 * SB_SUT_CPUS))")];
    let env = BTreeMap::from([("SECONDS".to_owned(), "2.5".to_owned())]);
    let setup = Setup { run_on: LDG.to_owned(), env, ..setup(steps) };
    let mut lab = Lab::new(setup, "echo \"$SB_ROLE $SB_COMMIT\" >&2; echo time=$SECONDS");
    let regex = regex::Regex::new("time=(?P<time>[0-9.]+)|users=(?P<users>[0-9]+)").expect("sound");
    let reader = Reader::new(Parser::Regex, Options { regex: Some(regex), ..Options::default() });
    let Stage { ground, setup, tunables, done, canaries, live } = lab.machine;
    lab.machine = Stage { ground: ground.read_by(reader), setup, tunables, done, canaries, live };
    let BootResult::Booted(record) = lab.boot().await else { panic!("not booted") };
    let cpus: f64 = record.settings["sut.cpus"].parse().expect("a number");
    let RunResult::Measured { metrics, settings, .. } = lab.run().await else { panic!("not measured") };
    assert_eq!((metrics["time"], metrics["users"]), (2.5, 8.0 * cpus));
    assert_eq!(settings["ldg.cpus"], record.settings["sut.cpus"], "both are this host");
    let log = std::fs::read_to_string(lab.path("run-2.log.err")).expect("a log");
    assert!(log.starts_with(&format!("ldg {}\n", "1".repeat(40))), "{log}");
}

#[tokio::test]
async fn a_service_on_one_role_is_waited_for_from_another() {
    let mut wait = step("wait", LDG, Phase::Boot, "true");
    wait.every_s = Some(1);
    let serve = "setsid sh -c 'sleep 1; touch up' & sleep 0.2";
    let mut setup = setup(vec![step("serve", SUT, Phase::Boot, serve), wait]);
    let dir = tempfile::tempdir().expect("temporary directory");
    let up = dir.path().join("up");
    setup.steps[0].command = serve.replace("up", &up.display().to_string());
    setup.steps[1].command = format!("[ -e {} ] || {{ echo not yet >&2; exit 1; }}", up.display());
    Lab::booted(setup.clone(), "echo 1").await;
    assert!(up.exists());

    std::fs::remove_file(&up).expect("is there");
    setup.steps[0].command = "true".to_owned();
    setup.steps[1].deadline_s = 2;
    let (whose, reason) = reason_of_boot(Lab::new(setup, "echo 1").boot().await);
    assert_eq!(whose, "ours", "a load generator says nothing of a commit");
    assert!(reason.starts_with("the step wait waited 2 s in vain"), "{reason}");
    assert!(reason.ends_with(": not yet"), "{reason}");
}

#[tokio::test]
async fn a_step_that_fails_is_the_commits_on_the_sut_and_ours_elsewhere() {
    let failing = |on: &str| setup(vec![step("schema", on, Phase::Boot, "echo no room >&2; exit 1")]);
    let (whose, reason) = reason_of_boot(Lab::new(failing(SUT), "echo 1").boot().await);
    assert_eq!(whose, "commit");
    assert!(reason.contains("the step schema") && reason.ends_with("exit 1: no room"), "{reason}");
    let (whose, reason) = reason_of_boot(Lab::new(failing(LDG), "echo 1").boot().await);
    assert_eq!(whose, "ours");
    assert!(reason.ends_with("exit 1: no room"), "{reason}");
}

#[tokio::test]
async fn a_role_that_is_lost_is_our_failure_whatever_the_status() {
    let mut setup = setup(vec![]);
    setup.run_on = LDG.to_owned();
    setup.roles.insert(
        LDG.to_owned(),
        "sh -c 'if read -r line && [ \"${line#export SB_ROLE}\" != \"$line\" ]; then exec sh; fi'".to_owned(),
    );
    let mut lab = Lab::new(setup, "echo 1");
    // The count of CPUs is the first call.
    let (whose, reason) = reason_of_boot(lab.boot().await);
    assert_eq!(whose, "booted", "{reason}");
    lab.machine.setup.steps.push(step("cut", LDG, Phase::Run, "kill -9 $PPID"));
    let (whose, reason) = reason_of_run(lab.run().await);
    assert_eq!(whose, "ours", "{reason}");
}

#[tokio::test]
async fn case_63_what_outlives_its_deadline_on_a_role_is_ended_there() {
    let mut setup = setup(vec![]);
    setup.run_on = LDG.to_owned();
    let mut lab = Lab::booted(setup, "true").await;
    let mark = lab.path("late");
    lab.deadline = Duration::from_millis(400);
    let script = format!("setsid sh -c 'sleep 2; touch {}' & sleep 300", mark.display());
    let Stage { ground, .. } = &mut lab.machine;
    ground.replace_run(&script);
    let (what, reason) = reason_of_run(lab.run().await);
    assert_eq!(what, "failed", "{reason}");
    sleep(Duration::from_millis(2200)).await;
    assert!(!mark.exists(), "it went on there");
}

fn with_file(path: &str, value: &str) -> Setup {
    let files = BTreeMap::from([(path.to_owned(), value.to_owned())]);
    Setup { variant: Variant { files, ..Variant::default() }, ..Setup::default() }
}

#[tokio::test]
async fn a_tunable_is_recorded_with_the_sample_and_put_back_at_the_end() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let knob = dir.path().join("knob");
    std::fs::write(&knob, "7\n").expect("writes");
    let path = knob.display().to_string();
    let mut lab = Lab::booted(with_file(&path, "3"), &format!("cat {path}")).await;
    for _ in 0..2 {
        let RunResult::Measured { metrics, settings, .. } = lab.run().await else { panic!("not measured") };
        assert_eq!((metrics["time"], settings[&path].as_str()), (3.0, "3"));
    }
    lab.machine.off().await;
    assert_eq!(std::fs::read_to_string(&knob).expect("is there"), "7\n");
}

#[tokio::test]
async fn what_was_set_before_a_knob_refused_is_put_back_too() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("a-knob").display().to_string();
    std::fs::write(&path, "7\n").expect("writes");
    let mut setup = with_file(&path, "3");
    setup.variant.files.insert("/sys/kernel/no-such-knob".to_owned(), "3".to_owned());
    let mut lab = Lab::booted(setup, "echo 5").await;
    assert_eq!(reason_of_run(lab.run().await).0, "commit");
    assert_eq!(std::fs::read_to_string(&path).expect("is there"), "3\n");
    lab.machine.off().await;
    assert_eq!(std::fs::read_to_string(&path).expect("is there"), "7\n");
}

#[tokio::test]
async fn a_kernel_that_lacks_a_knob_is_not_measured_and_one_that_moves_makes_the_run_invalid() {
    let mut lab = Lab::booted(with_file("/sys/kernel/no-such-knob", "3"), "echo 5").await;
    let reason = "knob not available: /sys/kernel/no-such-knob (no /sys/kernel/no-such-knob)".to_owned();
    let RunResult::Untestable(untestable) = lab.run().await else { panic!("it is absent") };
    assert_eq!((untestable.kind, untestable.reason), (UntestableKind::Knob, reason));

    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("knob").display().to_string();
    std::fs::write(&path, "7\n").expect("writes");
    let mut lab = Lab::booted(with_file(&path, "3"), &format!("echo 4 >{path}; echo 5")).await;
    let reason =
        format!("after the run: {path} was set to 3 and reads back 4; see what else on the SUT writes it");
    assert_eq!(reason_of_run(lab.run().await), ("invalid", reason));
}

#[tokio::test]
async fn the_run_has_the_policy_of_its_variant() {
    let variant = Variant { policy: Some("batch".to_owned()), nice: Some(3), ..Variant::default() };
    let run = "awk '{ print $41 * 100 + $19 }' </proc/self/stat";
    let mut lab = Lab::booted(Setup { variant, ..Setup::default() }, run).await;
    let RunResult::Measured { metrics, settings, .. } = lab.run().await else { panic!("not measured") };
    assert_eq!((metrics["time"], settings["run"].as_str()), (303.0, "policy batch nice 3"));
}

#[tokio::test]
async fn case_83_a_boot_in_which_the_canary_moved_is_none_and_one_in_which_it_did_not_is() {
    let canary = |number: &str| {
        let command = format!("echo spinning; echo {number}");
        let canary = Canary { command, on: SUT.to_owned(), within: Relative(0.03), deadline_s: 20 };
        Setup { canary: Some(canary), ..Setup::default() }
    };
    let known = vec![10.0, 10.1, 9.9];
    let (whose, reason) = reason_of_boot(Lab::knowing(canary("10.6"), "echo 1", known.clone()).boot().await);
    assert_eq!(whose, "ours");
    assert!(
        reason.starts_with("the canary moved by +6.0 % (10.6 in this boot, 10 in those before;"),
        "{reason}"
    );
    let mut steady = Lab::knowing(canary("10.2"), "echo 1", known);
    let BootResult::Booted(record) = steady.boot().await else { panic!("it is steady") };
    assert_eq!(record.settings[CANARY], "10.2");
    let (whose, reason) = reason_of_boot(Lab::new(canary("fast"), "echo 1").boot().await);
    assert_eq!(
        (whose, reason.as_str()),
        ("ours", "read the canary: its last line of output is not one positive number")
    );
}

#[tokio::test]
async fn a_sut_that_does_not_settle_is_tried_again_and_no_evidence() {
    let settle = Settle { running: None, load: Some(-1.0), temperature: None, system: false, deadline_s: 1 };
    let mut lab = Lab::booted(Setup { settle: Some(settle), ..Setup::default() }, "echo 1").await;
    let RunResult::Infra(failure) = lab.run().await else { panic!("it cannot settle") };
    assert_eq!(failure.kind, InfraKind::TryAgain);
    assert!(
        failure.reason.starts_with("the SUT has not settled in 1 s: the load average is"),
        "{}",
        failure.reason
    );
}

#[tokio::test]
async fn how_much_of_the_sut_was_idle_stands_beside_the_number() {
    let saturation = Some(Saturation { idle: Some(Relative(0.1)), ldg_cpus: None, ramp_up_s: None });
    let mut lab = Lab::booted(Setup { saturation, ..Setup::default() }, "sleep 0.3; echo 1").await;
    let RunResult::Measured { metrics, .. } = lab.run().await else { panic!("not measured") };
    assert!((0.0..=100.0).contains(&metrics[IDLE]), "{metrics:?}");
}

#[tokio::test]
async fn idle_time_of_a_runs_ramp_up_does_not_count() {
    // A file plays /proc/stat: idle until the load is up, then busy.
    let dir = tempfile::tempdir().expect("temporary directory");
    let stat = dir.path().join("stat");
    let counts = |user: u32, idle: u32| format!("cpu  {user} 0 0 {idle} 0 0 0 0 0 0\n");
    let run = |first: &str, then: &str| {
        let stat = stat.display();
        format!("printf '{first}' >{stat}; sleep 4; printf '{then}' >{stat}; echo 1")
    };
    let run = run(&counts(0, 1000), &counts(900, 1100)).replace('\n', "\\n");
    let saturation = |ramp_up_s| Some(Saturation { idle: Some(Relative(0.1)), ldg_cpus: None, ramp_up_s });
    for (ramp_up_s, idle) in [(Some(1), 10.0), (None, 55.0)] {
        std::fs::write(&stat, counts(0, 0)).expect("writes");
        let mut setup = Setup { saturation: saturation(ramp_up_s), ..setup(vec![]) };
        setup.roles.insert(SUT.to_owned(), format!("sed 's|/proc/stat|{}|' | sh", stat.display()));
        let mut lab = Lab::booted(setup, &run).await;
        let RunResult::Measured { metrics, settings, .. } = lab.run().await else { panic!("not measured") };
        assert!((metrics[IDLE] - idle).abs() < 1e-9, "{ramp_up_s:?}: {metrics:?}");
        assert!(!settings.contains_key(IDLE));
    }

    // One that is over before its load was up has no such time, and says so.
    let mut lab =
        Lab::booted(Setup { saturation: saturation(Some(300)), ..Setup::default() }, "echo 1").await;
    let RunResult::Measured { metrics, settings, .. } = lab.run().await else { panic!("not measured") };
    assert_eq!(metrics.get(IDLE), None);
    assert_eq!(settings[IDLE], "the run was over before its ramp-up of 300 s was");
}

#[tokio::test]
async fn a_run_that_fails_is_ours_where_the_load_generator_then_shows_it_and_the_commits_where_not() {
    for (look, on, whose) in [("exit 1", LDG, "ours"), ("true", LDG, "failed"), ("exit 1", SUT, "failed")] {
        let steps = vec![step("reach", on, Phase::Failed, &format!("echo no route >&2; {look}"))];
        let setup = Setup { run_on: LDG.to_owned(), ..setup(steps) };
        let (found, reason) = reason_of_run(Lab::booted(setup, "echo lost it >&2; exit 3").await.run().await);
        assert_eq!(found, whose, "{look} on {on}: {reason}");
        assert!(reason.contains("failed with exit 3: lost it"), "{reason}");
        assert_eq!(reason.contains("the step reach"), whose == "ours", "{reason}");
    }
    let look = vec![step("reach", LDG, Phase::Failed, "echo looked >>\"$SB_SOURCE/order\"; exit 1")];
    let mut lab = Lab::booted(setup(look), "echo 5").await;
    assert_eq!(reason_of_run(lab.run().await).0, "measured", "a run that went well is not looked into");
}
