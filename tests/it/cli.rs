//! The contract of the command line: every subcommand, what is refused and how, exit statuses, what goes where.

use crate::common::repo::{Repo, assert_ok, git_in};
use crate::common::rig::{Profile, QUIET_RUN, RUN, Rig, command_in, said};
use sched_bisect::model::CommitId;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

const FAST: u32 = 100_000;
const SLOW: u32 = 92_600;
const LEVELS: [u32; 9] = [FAST, FAST, FAST, FAST, FAST, SLOW, SLOW, SLOW, SLOW];

/// A finished session "s" that named c5.
fn finished() -> (Rig, Vec<CommitId>) {
    let mut rig = Rig::new(&Profile::default());
    let c = rig.line(&LEVELS);
    rig.start("c0", "c8").exits(0);
    (rig, c)
}

#[test]
fn a_finished_session_is_told_by_every_command_that_reads() {
    let (rig, c) = finished();
    rig.run(&["status"]).exits(0).tells("session s").tells("(\"c5\") is the regression");
    let list = rig.run(&["list"]).exits(0);
    assert!(list.out.starts_with("s  ") && list.out.lines().count() == 1, "{}", list.out);
    rig.run(&["report", "s"]).exits(0).tells("CULPRIT").tells(c[5].as_str());
    assert_eq!(rig.run(&["report", "--format", "text"]).exits(0).out, rig.run(&["report"]).exits(0).out);
    assert_eq!(rig.json("s")["conclusion"]["commit"], c[5].as_str());
    rig.run(&["log", "s"]).exits(0).tells("plan: c0 .. c8").tells("concluded:");
    rig.run(&["audit"]).exits(0).tells("verdicts recomputed, 0 differ");
    // A concluded session is not worked on any more; its report is told again.
    let before = std::fs::read(rig.session("s").journal()).expect("the journal");
    rig.run(&["resume", "s"]).exits(0).tells("CULPRIT");
    assert!(std::fs::read(rig.session("s").journal()).expect("the journal") == before);
}

#[test]
fn profiles_are_listed_shown_and_checked() {
    let rig = Rig::new(&Profile::default());
    let file = rig.profile_path();
    let file = file.to_str().expect("UTF-8");
    rig.run(&["profile", "list"]).exits(0).tells("qemu-hackbench").tells("command");
    rig.run(&["profile", "show", file]).exits(0).tells("metric.name = \"nopm\" # file");
    rig.run(&["profile", "check", file]).exits(0).tells("rig: sound, complete");
    rig.run(&["profile", "check", "command"]).exits(0).tells("needs from the command line").tells("--run");
    let said = rig.run(&["profile", "check", "qemu-hackbenhc"]).exits(2);
    assert!(said.err.contains("\"qemu-hackbenhc\"") && said.err.contains("qemu-hackbench"), "{}", said.err);
    std::fs::write(file, "minimal_effect = \"2%\"\n").expect("writes");
    let said = rig.run(&["profile", "check", file]).exits(2);
    assert!(said.err.contains("minimal_effect") && said.err.contains("minimum_effect"), "{}", said.err);
}

#[test]
fn the_doctor_tells_what_a_profile_has_and_what_a_host_lacks() {
    let rig = Rig::new(&Profile::default());
    let file = rig.profile_path();
    let file = file.to_str().expect("UTF-8");
    let said = rig.run(&["doctor", "--profile", file]).exits(0);
    said.tells("ok profile rig is sound").tells("ok repository").tells("ok git at").tells("free at");

    let empty = tempfile::tempdir().expect("temporary directory");
    let mut command = rig.command(&["doctor", "--profile", "qemu-hackbench"]);
    command.env("PATH", empty.path());
    let lacking = said_by(&mut command).exits(5);
    lacking.tells("LACKING make").tells("LACKING qemu-system-x86_64").tells("apt-get install");
}

#[test]
fn the_doctor_names_the_packages_that_a_kernel_for_another_architecture_needs() {
    let rig = Rig::new(&Profile::default());
    let dir = tempfile::tempdir().expect("temporary directory");
    let profile = dir.path().join("far.toml");
    let text = "[metric]\nname = \"x\"\ndirection = \"lower\"\n[machine]\nrun = \"true\"\n[build]\nkind = \"kbuild\"\n\
                arch = \"sh\"\ncross_compile = \"sh4-linux-gnu-\"\nmodules = true\ntargets = [\"zImage\"]\n\
                image = \"arch/sh/boot/zImage\"\n";
    std::fs::write(&profile, text).expect("writes");
    let said = rig.run(&["doctor", "--profile", profile.to_str().expect("UTF-8")]).exits(5);
    said.tells("LACKING sh4-linux-gnu-gcc is not installed; on Debian: apt install gcc-sh4-linux-gnu")
        .tells("LACKING sh4-linux-gnu-ld is not installed; on Debian: apt install binutils-sh4-linux-gnu")
        .tells("depmod");
}

fn said_by(command: &mut std::process::Command) -> crate::common::rig::Said {
    said(&command.output().expect("the program starts"))
}

#[test]
fn endpoints_are_taken_from_the_profile_when_none_are_given() {
    let mut rig =
        Rig::new(&Profile { more: "good = \"c0\"\nbad = \"c8\"\n".to_owned(), ..Profile::default() });
    rig.line(&LEVELS);
    rig.start_with(&[]).exits(0).tells("(\"c5\") is the regression").tells("session c0..c8 (rig)");
    // The command line comes first.
    let said = rig.start_with(&["c4", "c6"]).exits(0);
    said.tells("session c4..c6 (rig)").tells("2 commits");

    rig.profile(&Profile::default());
    let said = rig.start_with(&["c0"]).exits(2);
    assert!(said.err.contains("BAD is missing") && said.err.contains("profile"), "{}", said.err);
    let said = rig.start_with(&[]).exits(2);
    assert!(said.err.contains("GOOD is missing"), "{}", said.err);
}

#[test]
fn everything_of_a_run_can_be_said_on_the_command_line() {
    let mut rig = Rig::new(&Profile::default());
    let c = rig.line(&LEVELS);
    let build = "cp level \"$SB_ARTIFACTS/image\"";
    let run = "read -r l < \"$SB_ARTIFACTS/image\"; echo $((l + SB_BOOT * 7 % 11 - 5))";
    let args = [
        &["start", "c0", "c8", "--build", build, "--run", run, "--metric", "tps", "--direction", "higher"][..],
        &["--minimum-effect", "1%", "--confidence", "0.95", "--find", "any", "--budget", "1h", "--seed", "7"],
    ];
    let said = rig.run(&args.concat()).exits(0);
    said.tells("(\"c5\") is the regression").tells("tps, higher is better").tells("intervals at 95 %");
    let json = rig.json("c0..c8");
    assert_eq!(json["profile"], "command");
    assert_eq!(json["conclusion"]["commit"], c[5].as_str());
    let (_, state, _) = rig.load("c0..c8");
    assert_eq!((state.plan.seed, state.plan.recipe.budget_s), (7, Some(3600)));
}

#[test]
fn sessions_are_kept_where_the_state_dir_says() {
    let mut rig = Rig::new(&Profile::default());
    rig.line(&LEVELS);
    let kept = rig.note("kept");
    let place = ["--state-dir", kept.to_str().expect("UTF-8")];
    rig.start_with(&[&["c0", "c8", "--session", "s"][..], &place].concat()).exits(0);
    assert!(kept.join("s/journal.jsonl").is_file());
    assert!(!rig.repo.path().join(".git/sched-bisect").exists());
    rig.run(&[&["status"][..], &place].concat()).exits(0).tells("session s");
    // It need not be asked for inside the repository.
    let elsewhere = tempfile::tempdir().expect("temporary directory");
    said_by(&mut command_in(elsewhere.path(), &[&["report"][..], &place].concat())).exits(0).tells("CULPRIT");
    assert_eq!(rig.run(&["list"]).exits(0).out, "");
}

#[test]
fn a_session_name_that_could_lead_elsewhere_is_refused() {
    let mut rig = Rig::new(&Profile::default());
    rig.line(&LEVELS);
    for name in ["../x", "", "-x", ".x", "a/b", "a b", "x\n"] {
        let said = rig.start_with(&["c0", "c8", &format!("--session={name}")]).exits(2);
        assert!(said.err.contains(&format!("--session {name:?}")), "{}", said.err);
        for command in ["status", "report", "log", "audit", "resume"] {
            let said = rig.run(&[command, "--", name]).exits(2);
            assert!(said.err.contains("failed to find session"), "{command} {name:?}: {}", said.err);
        }
    }
    assert!(!rig.repo.path().join(".git/sched-bisect").exists(), "nothing is left of a refused start");
}

#[test]
fn a_name_in_use_is_refused_while_its_session_goes_on_and_followed_up_afterwards() {
    let mut rig = Rig::new(&Profile { run: "exit 127".to_owned(), ..Profile::default() });
    rig.line(&LEVELS);
    rig.start_with(&["c0", "c8"]).exits(5);
    // Nothing was measured in it: a wrong command does not stand in the way of the right one.
    let breaks = "[ $SB_BOOT -lt 3 ] || exit 127; echo 100".to_owned();
    rig.profile(&Profile { run: breaks, ..Profile::default() });
    rig.start_with(&["c0", "c8"]).exits(5).tells("session c0..c8-2 (rig)");
    let said = rig.start_with(&["c0", "c8"]).exits(2);
    assert!(said.err.contains("it exists already") && said.err.contains("resume c0..c8-2"), "{}", said.err);

    let (rig, _) = finished();
    let said = rig.start("c0", "c8").exits(2);
    assert!(
        said.err.starts_with("error: failed to start session s\ncaused by: it exists already ("),
        "{}",
        said.err
    );
    assert!(
        said.err
            .ends_with("\nhint: `sched-bisect resume s` goes on with it, --session NAME starts another\n")
    );
    rig.start_with(&["c0", "c8"]).exits(0).tells("session c0..c8 (rig)");
    rig.start_with(&["c0", "c8"]).exits(0).tells("session c0..c8-2 (rig)");
    let list = rig.run(&["list"]).exits(0).out;
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["c0..c8-2", "c0..c8", "s"], "the newest first");
}

#[test]
fn what_cannot_be_used_is_named_with_the_reason_and_the_way_on() {
    let mut rig = Rig::new(&Profile::default());
    let c = rig.line(&LEVELS);
    let other = rig.repo.commit("root2", &[], &[("file", Some("x"))]);
    let cases: [(&[&str], &[&str]); 7] = [
        (&["nope", "c8"], &["\"nope\"", "no such commit, tag or branch", "git fetch --tags"]),
        (&["c0", "c8^{tree}"], &["\"c8^{tree}\"", "it is a tree, not a commit"]),
        (&["c0..c8", "c8"], &["\"c0..c8\"", "it is a range; name one commit"]),
        (&["c8", "c0"], &[c[8].as_str(), "bad is an ancestor of good", "swap them"]),
        (&["c0", "c0"], &["they are the same commit"]),
        (&[other.as_str(), "c8"], &["their histories are unrelated"]),
        (&["c0", "c8", "--path", "kernel/shced"], &["\"kernel/shced\""]),
    ];
    for (args, parts) in cases {
        let said = rig.start_with(args).exits(2);
        assert!(said.err.starts_with("error: failed to "), "{}", said.err);
        assert_eq!(said.out, "");
        for part in parts {
            assert!(said.err.contains(part), "{part:?} is not in {}", said.err);
        }
    }
    let nowhere = tempfile::tempdir().expect("temporary directory");
    let place = nowhere.path().to_str().expect("UTF-8");
    let said = rig.run(&["--repo", place, "status"]).exits(2);
    assert!(said.err.contains(place) && said.err.contains("--repo DIR"), "{}", said.err);
    assert!(!rig.repo.path().join(".git/sched-bisect").exists(), "nothing is left of a refused start");
}

#[test]
fn values_that_make_no_sense_are_refused_with_the_flag() {
    let mut rig = Rig::new(&Profile::default());
    rig.line(&LEVELS);
    for (flag, value) in [
        ("--minimum-effect", "0%"),
        ("--minimum-effect", "two"),
        ("--confidence", "1"),
        ("--confidence", "0.3"),
        ("--find", "regressions"),
        ("--budget", "4"),
        ("--direction", "up"),
    ] {
        let said = rig.start_with(&["c0", "c8", flag, value]).exits(2);
        assert!(said.err.contains(flag), "{flag} {value}: {}", said.err);
    }
    let said = rig.run(&["resume", "--budget", "soon"]).exits(2);
    assert!(said.err.contains("--budget"), "{}", said.err);
    rig.start_with(&["c0", "c8", "--seed", "-1"]).exits(2);
    rig.run::<&str>(&[]).exits(2);
}

#[test]
fn help_documents_the_exit_statuses() {
    let rig = Rig::new(&Profile::default());
    for args in [&["--help"][..], &["start", "--help"], &["resume", "--help"], &["revert-test", "--help"]] {
        let said = rig.run(args).exits(0);
        said.tells("Exit status: 0 culprit found").tells("75 interrupted (resumable)");
        for status in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 75] {
            assert!(said.out.contains(&format!("\n  {status:>2}  ")), "{status} in {args:?}");
        }
    }
}

#[test]
fn standard_output_is_data_and_the_talk_goes_to_standard_error() {
    let mut rig = Rig::new(&Profile::default());
    rig.line(&LEVELS);
    let said = rig.start("c0", "c8").exits(0);
    assert_eq!(said.out, rig.run(&["report"]).exits(0).out);
    assert!(
        said.err.contains("session s: 8 candidates") && said.err.contains("commits hold 95 %"),
        "{}",
        said.err
    );
    for text in [&said.out, &said.err] {
        assert!(!text.contains(['\u{1b}', '\r']), "colours or a moving line where there is no terminal");
    }
    assert_eq!(rig.run(&["report"]).exits(0).err, "");
}

#[test]
fn text_is_at_most_80_columns_wide() {
    let mut rig = Rig::new(&Profile::default());
    let mut last = rig.commit("c0", &[], FAST, &[]);
    let long =
        "sched/fair: a subject of the length that subjects of this subsystem often have, which is long";
    for n in 1..9 {
        let level = if n < 5 { "100000\n" } else { "92600\n" };
        last = rig.repo.commit(&format!("{long} {n}"), &[&last], &[("level", Some(level))]);
    }
    rig.repo.check_out(&last);
    rig.start_with(&["c0", "main", "--session", "s"]).exits(0);
    rig.revert_test(&["main~3", "--on", "main", "--against", "c0"]).exits(0);
    for args in [["report", "s"], ["report", "r"], ["status", "s"], ["status", "r"]] {
        let said = rig.run(&args).exits(0);
        for line in said.out.lines() {
            assert!(line.chars().count() <= 80, "{args:?}: {line:?}");
        }
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let (rig, _) = finished();
    let mut child = rig
        .command(&["log"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let said = said(&child.wait_with_output().expect("it ends")).exits(0);
    assert_eq!(said.err, "");
}

/// Replays a session's git log in a clone; gives what git says at its end.
fn replayed(rig: &Rig, session: &str) -> String {
    let log = rig.run(&["log", session, "--git"]).exits(0);
    let (clone, file) = (rig.note(&format!("clone-{session}")), rig.note(&format!("log-{session}")));
    std::fs::write(&file, log.out).expect("writes");
    rig.repo.run(&["clone", "--quiet", "--no-local", ".", clone.to_str().expect("UTF-8")]);
    let output = git_in(&clone).arg("bisect").arg("replay").arg(&file).output().expect("git runs");
    assert_ok(&output);
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn git_replays_the_log_to_the_same_commit() {
    let (rig, c) = finished();
    let end = replayed(&rig, "s");
    assert!(end.contains(&format!("{} is the first bad commit", c[5])), "{end}");
}

#[test]
fn git_replays_a_search_over_merges_skips_and_paths_to_the_same_commit() {
    let build = "! [ -e broken ]".to_owned();
    let mut rig = Rig::new(&Profile { build: Some(build), ..Profile::default() });
    // Good is on a branch of its own: its merge base with bad is measured too.
    let base = rig.commit("base", &[], FAST, &[]);
    let good = rig.commit("good", &[&base], FAST, &[]);
    let m1 = rig.commit("m1", &[&base], FAST, &[("kernel/a", "1")]);
    let s1 = rig.commit("s1", &[&base], FAST, &[("kernel/b", "1")]);
    let s2 = rig.commit("s2", &[&s1], SLOW, &[("kernel/b", "2")]);
    let s3 = rig.commit("s3", &[&s2], SLOW, &[("kernel/b", "3"), ("broken", "1")]);
    let s4 = rig.repo.commit("s4", &[&s3], &[("kernel/b", Some("4")), ("broken", None)]);
    let merge = rig.repo.commit("merge", &[&m1, &s4], &[("kernel/b", Some("4")), ("level", Some("92600\n"))]);
    let top = rig.commit("top", &[&merge], SLOW, &[("kernel/c", "1")]);
    rig.repo.check_out(&top);
    rig.repo.run(&["branch", "keep", good.as_str()]);

    let said = rig.start("good", "top").exits(0);
    said.tells("(\"s2\") is the regression");
    let end = replayed(&rig, "s");
    assert!(end.contains(&format!("{s2} is the first bad commit")), "{end}");

    let args = ["good", "top", "--path", "kernel", "--session", "limited"];
    rig.start_with(&args).exits(0).tells("(\"s2\") is the regression");
    let end = replayed(&rig, "limited");
    assert!(end.contains(&format!("{s2} is the first bad commit")), "{end}");
}

#[test]
fn git_replays_what_is_left_of_a_search_that_found_only_suspects() {
    let mut rig = Rig::new(&Profile { build: Some("! [ -e broken ]".to_owned()), ..Profile::default() });
    let mut c = rig.line(&[FAST, FAST]);
    for n in 2..6 {
        c.push(rig.commit(&format!("c{n}"), &[&c[n - 1]], FAST, &[("broken", "1")]));
    }
    c.push(rig.repo.commit("c6", &[&c[5]], &[("broken", None), ("level", Some("92600\n"))]));
    rig.repo.check_out(&c[6]);
    rig.start("c0", c[6].as_str()).exits(3);
    // git ends with status 2 here: "there are only 'skip'ped commits left to test".
    let log = rig.run(&["log", "--git"]).exits(0);
    assert_eq!(log.out.matches("\ngit bisect skip ").count(), 4, "{}", log.out);
    let file = rig.note("log");
    std::fs::write(&file, &log.out).expect("writes");
    let clone = rig.note("clone");
    rig.repo.run(&["clone", "--quiet", "--no-local", ".", clone.to_str().expect("UTF-8")]);
    let output = git_in(&clone).arg("bisect").arg("replay").arg(&file).output().expect("git runs");
    let told = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(told.contains("The first bad commit could be any of"), "{told}");
    for commit in &c[2..] {
        assert!(told.contains(commit.as_str()), "{commit} is not in {told}");
    }
}

#[test]
fn the_budget_ends_a_session_that_more_budget_takes_up_again() {
    let mut rig = Rig::new(&Profile::default());
    let slow = rig.note("slow");
    let run = format!("if [ -e {} ]; then sleep 0.3; fi; {RUN}", slow.display());
    rig.profile(&Profile { run, ..Profile::default() });
    rig.line(&LEVELS);
    std::fs::write(&slow, "").expect("writes");
    let said = rig.start_with(&["c0", "c8", "--session", "s", "--budget", "1s"]).exits(6);
    said.tells("STOPPED: the budget is used up").tells("sched-bisect resume s --budget");
    let json = rig.json("s");
    assert_eq!((&json["conclusion"]["kind"], &json["conclusion"]["exit"]), (&"stopped".into(), &6.into()));
    assert!(json["spent"]["runs"].as_u64().expect("a number") <= 4, "{}", json["spent"]);
    std::fs::remove_file(&slow).expect("removes");
    rig.run(&["resume", "--budget", "1h"]).exits(0).tells("(\"c5\") is the regression");
}

/// Variables of the contract as a command found them, with its working directory as "PWD".
fn environment(dump: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(dump).expect("the command ran");
    text.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

#[test]
fn commands_find_what_their_contract_promises() {
    // As hooks/README.md states it.
    let mut rig = Rig::new(&Profile::default());
    let dump = |what: &str| {
        let file = rig.note(&format!("env-{what}"));
        format!(
            "[ -s {0} ] || {{ env | grep '^SB_'; echo PWD=$(pwd -P); ls -A \"$SB_ARTIFACTS\" | sed 's/^/HAS=/'; }} > {0}",
            file.display()
        )
    };
    let profile = Profile {
        build: Some(format!("{}; cp level \"$SB_ARTIFACTS/image\"", dump("build"))),
        boot: Some(format!("{}; [ -z \"$(ls -A \"$SB_BOOT_DIR\")\" ]", dump("boot"))),
        run: format!("{}; {QUIET_RUN}", dump("run")),
        more: "variant = \"NO_PLACE_LAG\"\n".to_owned(),
        ..Profile::default()
    };
    rig.profile(&profile);
    let c = rig.line(&LEVELS);
    let mut command = rig.command(&["start", "c0", "c8", "--session", "s", "--profile"]);
    // What an outer session left must not lie to ours.
    command.arg(rig.profile_path()).env("SB_BOOT", "99").env("SB_REPETITION", "99").env("KEPT", "1");
    said_by(&mut command).exits(0).tells("(\"c5\") is the regression");

    let dir = rig.session("s").path().canonicalize().expect("it exists");
    let at = |part: &str| dir.join(part).to_str().expect("UTF-8").to_owned();
    let (build, boot, run) = (
        environment(&rig.note("env-build")),
        environment(&rig.note("env-boot")),
        environment(&rig.note("env-run")),
    );
    for found in [&build, &boot, &run] {
        assert_eq!(found["SB_SESSION"], "s");
        assert_eq!(found["SB_VARIANT"], "NO_PLACE_LAG");
        assert_eq!(found["SB_SOURCE"], at("source"));
        assert_eq!(found["PWD"], at("source"), "the working directory is the tree");
        assert_eq!(found["SB_BUILD_DIR"], at("build"));
        assert!([&c[0], &c[8]].iter().any(|commit| found["SB_COMMIT"] == commit.as_str()));
        assert_eq!(found["SB_ARTIFACTS"], at(&format!("artifacts/{}", found["SB_COMMIT"])));
        assert_eq!(found["SB_SESSION_DIR"], at("").trim_end_matches('/'));
        assert!(found["SB_STEP"].parse::<u64>().is_ok());
    }
    assert!(!build.contains_key("HAS"), "the artifacts are empty when a build starts");
    assert_eq!(run["HAS"], "image");
    for name in ["SB_BOOT", "SB_BOOT_DIR", "SB_REPETITION"] {
        assert!(!build.contains_key(name), "{name} is not for builds");
    }
    assert!(!boot.contains_key("SB_REPETITION"));
    assert_eq!((boot["SB_BOOT"].as_str(), boot["SB_BOOT_DIR"].clone()), ("1", at("boots/0001")));
    assert_eq!((run["SB_BOOT"].as_str(), run["SB_REPETITION"].as_str()), ("1", "1"));
}

#[test]
fn the_tree_of_a_command_holds_its_candidate_at_every_step() {
    let mut rig = Rig::new(&Profile::default());
    let wrong = rig.note("wrong");
    let check = format!(
        "[ \"$(git -C \"$SB_SOURCE\" rev-parse HEAD)\" = $SB_COMMIT ] && git diff --quiet && ! [ -e junk ] || echo \
         $SB_COMMIT >> {}",
        wrong.display()
    );
    rig.profile(&Profile {
        build: Some(format!(
            "{check}; echo junk >> level; : > junk; git rev-parse HEAD > \"$SB_ARTIFACTS/id\""
        )),
        boot: Some(format!(
            "[ \"$(cat \"$SB_ARTIFACTS/id\")\" = $SB_COMMIT ] || echo artifacts >> {}",
            wrong.display()
        )),
        run: format!(
            "[ \"$(git rev-parse HEAD)\" = $SB_COMMIT ] || echo tree >> {}; head -n 1 level",
            wrong.display()
        ),
        ..Profile::default()
    });
    rig.line(&LEVELS);
    rig.start("c0", "c8").exits(0).tells("(\"c5\") is the regression");
    assert_eq!(rig.notes("wrong"), Vec::<String>::new());
}

#[test]
fn a_repository_without_a_checkout_is_enough() {
    let mut rig = Rig::new(&Profile::default());
    rig.line(&LEVELS);
    let bare = rig.note("bare.git");
    let place = bare.to_str().expect("UTF-8");
    rig.repo.run(&["clone", "--quiet", "--bare", ".", place]);
    rig.start_with(&["c0", "c8", "--repo", place]).exits(0).tells("(\"c5\") is the regression");
    assert!(bare.join("sched-bisect/c0..c8/journal.jsonl").is_file());
}

#[test]
fn a_repository_of_nothing_has_no_revisions() {
    let repo = Repo::new();
    let said = said_by(&mut command_in(
        &repo.path(),
        &["start", "HEAD~1", "HEAD", "--run", "true", "--metric", "t", "--direction", "lower"],
    ))
    .exits(2);
    assert!(said.err.contains("\"HEAD~1\""), "{}", said.err);
    assert_eq!(said_by(&mut command_in(&repo.path(), &["list"])).exits(0).out, "");
}

#[test]
fn a_session_runs_its_steps_on_their_roles_and_its_workload_under_its_variant() {
    let mut rig = Rig::new(&Profile::default());
    let order = rig.note("order");
    let note = |word: &str| format!("echo {word} $SB_ROLE $COLOUR >>{}", order.display());
    let step = |name: &str, on: &str, when: &str| {
        format!("{{ name = {name:?}, on = {on:?}, when = {when:?}, command = \"{}\" }}", note(name))
    };
    let profile = Profile {
        // Nice is the 19th field: a run that does not have it gives no number.
        run: format!("read -r stat </proc/$$/stat; set -- $stat; [ \"${{19}}\" = 5 ] || exit 1; {QUIET_RUN}"),
        more: format!(
            "variants = [\"nice\"]\nvariant = {{ nice = {{ nice = 5 }}, other = {{ policy = \"batch\" }} }}\n\
             roles = {{ ldg = \"sh\" }}\nenv = {{ COLOUR = \"red\" }}\nsteps = [{}, {}, {}]\n",
            step("load", "ldg", "once"),
            step("up", "sut", "boot"),
            step("down", "sut", "clean")
        ),
        ..Profile::default()
    };
    rig.profile(&profile);
    rig.line(&LEVELS);
    let env = ["start", "c0", "c8", "--session", "s", "--env", "COLOUR=blue", "--profile"];
    said_by(rig.command(&env).arg(rig.profile_path())).exits(0).tells("(\"c5\") is the regression");

    let seen = std::fs::read_to_string(&order).expect("steps were done");
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[..3], ["load ldg blue", "up sut blue", "down sut blue"]);
    assert!(lines[3..].chunks(2).all(|boot| boot == ["up sut blue", "down sut blue"]), "{lines:?}");
    let journal = std::fs::read_to_string(rig.session("s").path().join("journal.jsonl")).expect("is there");
    let runs: Vec<&str> = journal.lines().filter(|line| line.contains("\"outcome\":\"measured\"")).collect();
    assert!(!runs.is_empty() && runs.iter().all(|run| run.contains("\"run\":\"nice 5\"")), "{runs:?}");
}
