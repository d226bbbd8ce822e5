//! Cases of builds, boots and workloads that fail: three kinds that never mix (a fact about the commit, a failure of
//! ours, a measurement), and none of them blames a commit.

use crate::common::rig::{Profile, QUIET_RUN, Rig, Said};
use sched_bisect::model::{BootResult, CommitId, RunResult, UntestableKind};
use sched_bisect::session::Event;

const FAST: u32 = 100_000;
const SLOW: u32 = 92_600;

/// What a command of a candidate does: nothing, unless the tree has a file of this name; then that is run.
fn as_told(name: &str) -> String {
    format!("if [ -e {name} ]; then . ./{name}; fi")
}

#[test]
fn a_failed_build_is_never_bad_and_its_benchmark_never_starts() {
    // Case 13.
    let mut rig = Rig::new(&Profile::default());
    let ran = rig.note("ran");
    let run = format!("echo $SB_COMMIT >> {}; {QUIET_RUN}", ran.display());
    rig.profile(&Profile { build: Some(as_told("broken")), run, ..Profile::default() });
    let mut c = rig.line(&[FAST, FAST, FAST, FAST]);
    c.push(rig.commit("c4", &[&c[3]], FAST, &[("broken", "echo 'cc: error' >&2; exit 2")]));
    for (n, level) in [(5, FAST), (6, SLOW), (7, SLOW), (8, SLOW)] {
        c.push(rig.commit(&format!("c{n}"), &[&c[n - 1]], level, &[("broken", ":")]));
    }
    rig.start("c0", "c8").exits(0).tells("(\"c6\") is the regression");
    let (_, state, _) = rig.load("s");
    let known = state.commit(&c[4]).expect("the middle was tried");
    let why = known.untestable.as_ref().expect("it cannot be measured");
    assert_eq!((why.kind, known.verdict.is_none()), (UntestableKind::Build, true));
    assert!(why.reason.contains("exit 2: cc: error"), "{}", why.reason);
    assert!(!rig.notes("ran").contains(&c[4].to_string()), "the benchmark of the failed build was started");
    assert!(rig.notes("ran").contains(&c[5].to_string()));
}

#[test]
fn failures_of_build_boot_and_workload_stay_three_kinds() {
    // Case 14.
    let mut rig = Rig::new(&Profile {
        build: Some(as_told("build")),
        boot: Some(as_told("boot")),
        run: format!("{}; {QUIET_RUN}", as_told("run")),
        boots: 2,
        ..Profile::default()
    });
    let c0 = rig.commit("c0", &[], FAST, &[]);
    let fails = |what: &'static str| (what, "echo \"oops: $0\" >&2; exit 1");
    let c1 = rig.commit("c1", &[&c0], FAST, &[fails("build")]);
    let c2 = rig.commit("c2", &[&c1], FAST, &[("build", ":"), fails("boot")]);
    let c3 = rig.commit("c3", &[&c2], FAST, &[("boot", ":"), fails("run")]);
    rig.commit("c4", &[&c3], SLOW, &[("run", ":")]);
    let said = rig.start("c0", "c4").exits(3);
    let json = rig.json("s");
    for (commit, kind, words) in [
        (&c1, "build", "the build command failed with exit 1: oops: sh"),
        (&c2, "boot", "the boot command failed with exit 1: oops: sh"),
        (&c3, "run", "the run command failed with exit 1: oops: sh"),
    ] {
        said.tells(&format!("{} {kind}: {words}", commit.short()));
        let candidates = json["candidates"].as_array().expect("a list");
        let facts = candidates.iter().find(|f| f["commit"] == commit.as_str()).expect("it was tried");
        assert_eq!(facts["verdict"], "untestable");
        assert_eq!(facts["reason"], format!("{kind}: {words}"));
    }
    assert_eq!(json["conclusion"]["suspects"].as_array().map(Vec::len), Some(4));
}

/// A session in which the commands of the only commit between the ends do as `code` says, in `hook`; a file beside the
/// repository mends it.
fn with_code(hook: &str, code: &str) -> (Rig, [CommitId; 3]) {
    let mut rig = Rig::new(&Profile::default());
    let mended = rig.note("mended");
    let tried = rig.note("tried");
    let told = format!(
        "if [ -e code ] && ! [ -e {} ]; then echo {hook} >> {}; . ./code; fi",
        mended.display(),
        tried.display()
    );
    let at = |name: &str| if name == hook { told.clone() } else { ":".to_owned() };
    rig.profile(&Profile {
        build: Some(at("build")),
        boot: Some(at("boot")),
        run: format!("{}; {QUIET_RUN}", at("run")),
        boots: 2,
        ..Profile::default()
    });
    let c0 = rig.commit("c0", &[], FAST, &[]);
    let c1 = rig.commit("c1", &[&c0], FAST, &[("code", code)]);
    let c2 = rig.repo.commit("c2", &[&c1], &[("code", None), ("level", Some("92600\n"))]);
    (rig, [c0, c1, c2])
}

fn assert_nothing_is_blamed(rig: &Rig, said: &Said, c1: &CommitId) {
    let json = rig.json("s");
    assert_eq!(json["conclusion"]["commit"], serde_json::Value::Null, "{}", said.out);
    let candidates = json["candidates"].as_array().expect("a list");
    let facts = candidates.iter().find(|f| f["commit"] == c1.as_str()).expect("it was tried");
    assert!(["untestable", "none"].contains(&facts["verdict"].as_str().expect("a word")), "{facts}");
}

/// The status is a fact about the commit: it cannot be measured, after so many calls.
#[track_caller]
fn says_untestable(hook: &str, code: &str, kind: &str, calls: usize) {
    let (rig, [c0, c1, c2]) = with_code(hook, code);
    let said = rig.start(c0.as_str(), c2.as_str()).exits(3);
    assert_nothing_is_blamed(&rig, &said, &c1);
    said.tells(&format!("{} {kind}: the {hook} command ", c1.short()));
    assert_eq!(rig.notes("tried").len(), calls, "{hook}: {code}");
}

/// The status is a failure of ours: the session stops, and once mended it goes on to the right answer.
#[track_caller]
fn says_ours(hook: &str, code: &str, words: &str, calls: usize) {
    let (rig, [c0, c1, c2]) = with_code(hook, code);
    let said = rig.start(c0.as_str(), c2.as_str()).exits(5);
    assert_nothing_is_blamed(&rig, &said, &c1);
    said.tells(&format!("STOPPED: our side broke: the {hook} command {words}"));
    said.tells("mend it, then sched-bisect resume s (the recipe is fixed: another one needs a new session)");
    assert_eq!(rig.notes("tried").len(), calls, "{hook}: {code}");
    std::fs::write(rig.note("mended"), "").expect("writes");
    rig.run(&["resume"]).exits(0).tells(&format!("{} (\"c2\") is the regression", c2.short()));
}

#[test]
fn the_exit_status_of_a_build_command_says_whose_failure_it_is() {
    // Cases 57 and 58.
    let (rig, [c0, _, c2]) = with_code("build", "true");
    rig.start(c0.as_str(), c2.as_str()).exits(0).tells("(\"c2\") is the regression");
    says_untestable("build", "exit 1", "build", 1);
    says_untestable("build", "exit 255", "build", 1);
    says_untestable("build", "exit 125", "declared", 1);
    says_ours("build", "exit 126", "is broken (exit 126: not executable)", 1);
    says_ours("build", "exit 127", "is broken (exit 127: not found)", 1);
    says_ours("build", "exit 137", "was killed by signal 9", 2);
    says_ours("build", "kill -TERM $$", "was killed by signal 15", 2);
    says_ours("build", "exit 75", "asked to be tried again (exit 75)", 2);
}

#[test]
fn the_exit_status_of_a_boot_command_says_whose_failure_it_is() {
    // Cases 57 and 58. A boot that fails is tried thrice.
    let (rig, [c0, _, c2]) = with_code("boot", "true");
    rig.start(c0.as_str(), c2.as_str()).exits(0).tells("(\"c2\") is the regression");
    says_untestable("boot", "exit 1", "boot", 3);
    says_untestable("boot", "exit 255", "boot", 3);
    says_untestable("boot", "exit 125", "declared", 1);
    says_ours("boot", "exit 126", "is broken (exit 126: not executable)", 1);
    says_ours("boot", "exit 127", "is broken (exit 127: not found)", 1);
    says_ours("boot", "exit 137", "was killed by signal 9", 2);
    says_ours("boot", "kill -TERM $$", "was killed by signal 15", 2);
    says_ours("boot", "exit 75", "asked to be tried again (exit 75)", 2);
}

#[test]
fn the_exit_status_of_a_run_command_says_whose_failure_it_is() {
    // Cases 57 and 58. A run that fails is tried thrice in each of three boots.
    let (rig, [c0, _, c2]) = with_code("run", "true");
    rig.start(c0.as_str(), c2.as_str()).exits(0).tells("(\"c2\") is the regression");
    says_untestable("run", "exit 1", "run", 9);
    says_untestable("run", "exit 255", "run", 9);
    says_untestable("run", "exit 125", "declared", 1);
    says_ours("run", "exit 126", "is broken (exit 126: not executable)", 1);
    says_ours("run", "exit 127", "is broken (exit 127: not found)", 1);
    says_ours("run", "exit 137", "was killed by signal 9", 2);
    says_ours("run", "kill -TERM $$", "was killed by signal 15", 2);
    says_ours("run", "exit 75", "asked to be tried again (exit 75)", 2);
}

#[test]
fn a_run_that_declares_its_number_invalid_gives_no_number() {
    // Case 102, as far as commands go: a splat in the kernel's log.
    let code = "echo '{\"invalid\": \"Oops in dmesg\"}'; exit 0";
    let (rig, [c0, c1, c2]) = with_code("run", code);
    let said = rig.start(c0.as_str(), c2.as_str()).exits(3);
    assert_nothing_is_blamed(&rig, &said, &c1);
    said.tells(&format!("{} invalid output: Oops in dmesg", c1.short()));
    let (_, state, _) = rig.load("s");
    let runs: usize = state.boots.iter().filter(|b| b.commit == c1).map(|b| b.runs.len()).sum();
    assert_eq!(runs, 0);
}

#[test]
fn a_single_invalid_run_is_repeated_and_told() {
    // Case 102: the sample is void, the commit is not.
    let mut rig = Rig::new(&Profile::default());
    let once = rig.note("once");
    let run = format!(
        "if ! [ -e {0} ]; then : > {0}; echo '{{\"invalid\": \"WARNING in dmesg\"}}'; else {QUIET_RUN}; fi",
        once.display()
    );
    rig.profile(&Profile { run, ..Profile::default() });
    rig.line(&[FAST, FAST, SLOW]);
    rig.start("c0", "c2").exits(0).tells("(\"c2\") is the regression");
    let (_, _, records) = rig.load("s");
    let invalid = records.iter().filter(|r| {
        matches!(&r.event, Event::RunFinished { result: RunResult::Invalid { reason }, .. } if reason == "WARNING in dmesg")
    });
    assert_eq!(invalid.count(), 1);
    let json = rig.json("s");
    let lost: Vec<&serde_json::Value> = json["candidates"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|c| c["boots"].as_array().expect("a list"))
        .flat_map(|b| b["lost"].as_array().expect("a list"))
        .collect();
    assert_eq!(lost, ["WARNING in dmesg"]);
}

#[test]
fn an_endpoint_that_cannot_be_measured_stops_the_session_and_blames_nobody() {
    // Case 49: what breaks the ends too is no fact about a candidate.
    let mut rig = Rig::new(&Profile { boot: Some("exit 1".to_owned()), ..Profile::default() });
    rig.line(&[FAST, FAST, SLOW]);
    let said = rig.start("c0", "c2").exits(5);
    said.tells("cannot be measured (boot: the boot command failed with exit 1)");
    assert_eq!(rig.json("s")["conclusion"]["commit"], serde_json::Value::Null);
}

#[test]
fn case_50_a_change_among_kernels_that_do_not_boot_is_a_set_of_suspects_and_never_the_edge() {
    let mut rig = Rig::new(&Profile { boot: Some(as_told("boot")), boots: 2, ..Profile::default() });
    let mut c = rig.line(&[FAST, FAST, FAST]);
    for n in 3..=9 {
        let level = if n < 6 { FAST } else { SLOW };
        let fails = ("boot", "echo 'VFS: unable to mount root' >&2; exit 1");
        c.push(rig.commit(&format!("c{n}"), &[&c[n - 1]], level, &[fails]));
    }
    for n in 10..=12 {
        c.push(rig.commit(&format!("c{n}"), &[&c[n - 1]], SLOW, &[("boot", ":")]));
    }
    let said = rig.start("c0", "c12").exits(3);
    let json = rig.json("s");
    assert_eq!(json["conclusion"]["commit"], serde_json::Value::Null, "{}", said.out);
    let suspects = json["conclusion"]["suspects"].as_array().expect("a list");
    let is_suspect = |commit: &CommitId| {
        let id =
            |suspect: &serde_json::Value| suspect["commit"].as_str().or(suspect.as_str()).map(str::to_owned);
        suspects.iter().any(|suspect| id(suspect).as_deref() == Some(commit.as_str()))
    };
    // Both edges of the stretch too: neither is more than a suspect.
    assert!(c[3..=10].iter().all(is_suspect) && !is_suspect(&c[0]), "{}", said.out);
    let words = "boot: the boot command failed with exit 1: VFS: unable to mount root";
    let candidates = json["candidates"].as_array().expect("a list");
    let tried: Vec<&CommitId> = c[3..=9]
        .iter()
        .filter(|commit| candidates.iter().any(|facts| facts["commit"] == commit.as_str()))
        .collect();
    assert!(tried.len() >= 3, "{}", said.out);
    for commit in tried {
        let facts = candidates.iter().find(|facts| facts["commit"] == commit.as_str()).expect("was tried");
        assert_eq!((&facts["verdict"], &facts["reason"]), (&"untestable".into(), &words.into()), "{facts}");
        said.tells(&format!("{} {words}", commit.short()));
    }
}

#[test]
fn a_machine_that_never_restarted_gives_no_sample() {
    // Case 53: the boot id is that of the boot before.
    let boot = "echo 5a1c6f1e-0000-4000-8000-000000000001 > \"$SB_BOOT_DIR/boot_id\"";
    let mut rig = Rig::new(&Profile { boot: Some(boot.to_owned()), ..Profile::default() });
    rig.line(&[FAST, FAST, SLOW]);
    rig.start("c0", "c2").exits(5).tells("was seen before: the machine did not start anew");
    let (_, state, records) = rig.load("s");
    assert_eq!(state.boots.iter().filter(|b| !b.runs.is_empty()).count(), 1);
    let up = |r: &&sched_bisect::journal::Record| {
        matches!(r.event, Event::BootFinished { result: BootResult::Booted(_), .. })
    };
    assert_eq!(records.iter().filter(up).count(), 1);
}
