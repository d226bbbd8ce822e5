//! Surveys: kernels under variants beside each other, over the real binary, killed and resumed, and their table in each form.

use crate::common::rig::{Profile, Rig, Said, said};
use sched_bisect::model::RunResult;
use sched_bisect::session::Event;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::{Duration, Instant};

macro_rules! golden {
    ($name:literal, $text:expr) => {
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/survey"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, $text);
        });
    };
}

/// Throughput by the level, 5 % more under "fast"; "gone" is a knob that only kernels below 95000 have; a latency beside it.
const RUN: &str = "read -r l < level; case $SB_VARIANT in fast) l=$((l * 105 / 100));; gone) [ $l -lt 95000 ] || exit 125;; \
                   esac; n=$((SB_BOOT * 7 % 11 - 5)); echo nopm $((l + 10 * n)) latency $((5000 + n))";

fn profile() -> Profile {
    Profile {
        run: RUN.to_owned(),
        build: Some("if [ -e broken ]; then cat broken >&2; exit 2; fi".to_owned()),
        more: "workload = { parser = \"regex\", regex = 'nopm (?P<nopm>\\d+) latency (?P<latency>\\d+)' }\n"
            .to_owned(),
        ..Profile::default()
    }
}

/// c0, c1, c2 (does not build), c3 (7.4 % less), c4.
fn rig() -> Rig {
    let mut rig = Rig::new(&profile());
    let mut c = rig.line(&[100_000, 100_000]);
    c.push(rig.commit(
        "c2",
        &[&c[1]],
        100_000,
        &[("broken", "kernel/sched/fair.c:7:1: error: no member 'vlag'\n")],
    ));
    for n in 3..5 {
        let name = format!("c{n}");
        let edits = [("level", Some("92600\n")), ("broken", None), ("n", Some(name.as_str()))];
        let commit = rig.repo.commit(&name, &[&c[n - 1]], &edits);
        rig.repo.run(&["update-ref", &format!("refs/tags/{name}"), commit.as_str()]);
        c.push(commit);
    }
    rig.repo.check_out(&c[4]);
    rig
}

fn survey(rig: &Rig, args: &[&str]) -> Said {
    let profile = rig.profile_path();
    let profile = profile.to_str().expect("UTF-8");
    rig.run(&[&["survey", "--profile", profile, "--session", "s"], args].concat())
}

const VARIANTS: [&str; 6] = ["--variant", "default", "--variant", "fast", "--variant", "gone"];

/// Without the place of the profile and the time it took.
fn stable(rig: &Rig, text: &str) -> String {
    let text = text.replace(rig.profile_path().to_str().expect("UTF-8"), "PROFILE");
    let line = |line: &str| match line.strip_prefix("spent ").and_then(|rest| rest.rsplit_once(", ")) {
        Some((counts, _)) => format!("spent {counts}, TIME\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Six digits: the last ones of logarithms are the machine's.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            *value = json!(number.as_f64().map(|x| (x * 1e6).round() / 1e6 + 0.0));
        }
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(entries) => entries.values_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The same of the fields of a CSV.
fn rounded(csv: &str) -> String {
    let field = |field: &str| match field.parse::<f64>() {
        Ok(number) if field.contains('.') => format!("{:.6}", number),
        Ok(_) | Err(_) => field.to_owned(),
    };
    csv.lines().map(|line| line.split(',').map(field).collect::<Vec<_>>().join(",") + "\n").collect()
}

#[test]
fn the_table_is_told_in_four_forms() {
    let rig = rig();
    let args = [&["c0", "c1", "c2", "c3", "c4", "--boots", "4", "--also", "latency"], &VARIANTS[..]].concat();
    let told = survey(&rig, &args).exits(3);
    assert!(
        told.out.lines().filter(|l| !l.contains("sched-bisect start")).all(|l| l.chars().count() <= 80),
        "{}",
        told.out
    );
    golden!("text", stable(&rig, &told.out));
    let form = |form: &str| stable(&rig, &rig.run(&["report", "s", "--format", form]).exits(0).out);
    golden!("markdown", form("markdown"));
    golden!("csv", rounded(&form("csv")));
    let mut facts: Value = serde_json::from_str(&form("json")).expect("it is JSON");
    for time in ["seconds", "build_seconds", "sut_seconds"] {
        facts["spent"][time] = json!("TIME");
    }
    round(&mut facts);
    golden!("json", serde_json::to_string_pretty(&facts).expect("it serializes"));
    golden!("own_baseline", stable(&rig, &rig.run(&["report", "s", "--own-baseline"]).exits(0).out));
    golden!("status", stable(&rig, &rig.run(&["status", "s"]).exits(0).out));
    assert_eq!(rig.run(&["audit", "s"]).exits(0).out, "1 verdicts recomputed, 0 differ\n");
    rig.run(&["log", "s"]).exits(0).tells("under fast: measured latency");
}

#[test]
fn every_block_has_each_kernel_under_each_variant_once_in_an_order_of_its_own() {
    let rig = rig();
    survey(&rig, &["c0", "c1", "c3", "--boots", "5", "--variant", "default", "--variant", "fast"]).exits(0);
    let (_, state, _) = rig.load("s");
    let cells: Vec<_> = state.boots.iter().map(|b| (b.commit.clone(), b.variant.clone())).collect();
    assert_eq!(cells.len(), 5 * 6);
    let blocks: Vec<_> = cells.chunks(6).collect();
    for block in &blocks {
        assert_eq!(block.iter().collect::<BTreeSet<_>>().len(), 6, "{block:?}");
    }
    assert_eq!(blocks.iter().collect::<BTreeSet<_>>().len(), 5, "two blocks have one order");
    // The seed decides it.
    survey(
        &rig,
        &[
            "c0",
            "c1",
            "c3",
            "--boots",
            "5",
            "--variant",
            "default",
            "--variant",
            "fast",
            "--session",
            "again",
        ],
    )
    .exits(2);
}

#[test]
fn the_command_that_it_gives_finds_the_change_whichever_way_the_kernels_stand() {
    for (order, found) in [(["c1", "c3"], "c3"), (["c3", "c1"], "c3")] {
        let rig = rig();
        let told = survey(&rig, &[order[0], order[1], "--boots", "3"]).exits(0);
        let sense = if order[0] == "c1" { "was a regression" } else { "was an improvement" };
        told.tells(&format!("{} -> {} {sense}", order[0], order[1]));
        let command =
            told.out.lines().find_map(|line| line.trim().strip_prefix("sched-bisect ")).expect("a command");
        assert!(command.starts_with("start c1 c3 --find regression --profile "), "{command}");
        let words: Vec<&str> = command.split(' ').collect();
        // c2 does not build, so that the two are suspects together.
        let said = rig.run(&words).exits(3);
        said.tells("SUSPECTS ONLY");
        assert!(said.out.contains(found), "{}", said.out);
    }
}

#[test]
fn an_improvement_and_kernels_without_a_common_history_are_told_as_such() {
    let mut rig = Rig::new(&Profile::default());
    let slow = rig.commit("slow", &[], 92_600, &[]);
    let fast = rig.commit("fast", &[&slow], 100_000, &[]);
    rig.commit("alien", &[], 80_000, &[]);
    rig.repo.check_out(&fast);
    let told = survey(&rig, &["slow", "fast", "alien", "--boots", "3"]).exits(0);
    told.tells("slow -> fast was an improvement").tells("sched-bisect start slow fast --find improvement");
    told.tells("fast -> alien was a regression").tells("(no search: their histories have nothing in common)");
    let next = ["start", "slow", "fast", "--find", "improvement", "--profile"];
    let next = said(&rig.command(&next).arg(rig.profile_path()).output().expect("starts")).exits(0);
    next.tells("is the improvement");
}

#[test]
fn a_kernel_that_does_not_boot_is_tried_so_often_and_not_under_each_variant() {
    let mut rig = Rig::new(&Profile { boot: Some("! [ -e dead ]".to_owned()), ..profile() });
    let first = rig.commit("c0", &[], 100_000, &[]);
    let dead = rig.commit("c1", &[&first], 100_000, &[("dead", "yes")]);
    rig.repo.check_out(&first);
    survey(&rig, &["c0", "c1", "--boots", "2", "--variant", "default", "--variant", "fast"])
        .exits(3)
        .tells("untestable: boot: the boot command failed")
        .tells("cannot be measured: c1");
    let tried = rig.boot_order("s").into_iter().filter(|commit| *commit == dead).count();
    // Three attempts of one variant, and what was begun of the other before they failed.
    assert!((3..=5).contains(&tried), "{tried}");
}

#[test]
fn a_failure_of_ours_is_tried_again_and_a_baseline_that_cannot_be_measured_stops() {
    let mut rig = rig();
    let once = rig.note("once");
    let flaky = format!("[ -e {0} ] || {{ : >{0}; exit 75; }}; {RUN}", once.display());
    rig.profile(&Profile { run: flaky, ..profile() });
    survey(&rig, &["c0", "c3", "--boots", "2"]).exits(0);
    let (_, state, _) = rig.load("s");
    let counted = state.boots.iter().filter(|b| !b.runs.is_empty()).count();
    assert_eq!((counted, state.cells.len()), (4, 0));

    rig.profile(&profile());
    let said = rig.run(&[
        "survey",
        "c0",
        "c3",
        "--baseline",
        "c2",
        "--session",
        "b",
        "--profile",
        rig.profile_path().to_str().expect("UTF-8"),
    ]);
    said.exits(5).tells("the baseline c2 (").tells("nothing can be compared").tells("resume b");
    rig.commit("unused", &[], 1, &[]);
}

#[test]
fn a_survey_killed_at_any_moment_comes_to_a_whole_table_and_loses_one_step_a_kill() {
    let rig = rig();
    rig.profile(&Profile { run: format!("sleep 0.02; {RUN}"), ..profile() });
    let profile = rig.profile_path();
    let lines = || std::fs::read_to_string(rig.session("s").journal()).map_or(0, |text| text.lines().count());
    let start = [
        "survey",
        "c0",
        "c1",
        "c3",
        "--boots",
        "4",
        "--variant",
        "default",
        "--variant",
        "fast",
        "--session",
        "s",
    ];
    let mut kills = 0;
    for until in [9, 31, 60, 61, 90] {
        let mut command = if lines() == 0 { rig.command(&start) } else { rig.command(&["resume", "s"]) };
        if lines() == 0 {
            command.arg("--profile").arg(&profile);
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        let began = Instant::now();
        while lines() < until && child.try_wait().expect("it is ours").is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not go on");
            std::thread::sleep(Duration::from_millis(1));
        }
        kills += usize::from(child.try_wait().expect("it is ours").is_none());
        child.kill().and_then(|()| child.wait()).expect("it is ours");
    }
    assert!(kills >= 4, "{kills}");
    rig.run(&["report", "s", "--format", "markdown"]).exits(0).tells("Not done: no conclusion yet");
    let rows = rig.run(&["report", "s", "--format", "csv"]).exits(0).out.lines().count();
    assert_eq!(rows, 1 + 6 * 2, "a row for each cell and metric, whatever is measured of it");
    let told = rig.run(&["resume", "s"]).exits(0);
    told.tells("SURVEY: 3 kernels under 2 variants, 4 boots of each").tells("c1 -> c3 was a regression");
    let (_, state, records) = rig.load("s");
    let interrupted = records.iter().filter(|r| matches!(r.event, Event::StepInterrupted { .. })).count();
    let measured =
        |event: &Event| matches!(event, Event::RunFinished { result: RunResult::Measured { .. }, .. });
    let runs = records.iter().filter(|r| measured(&r.event)).count();
    assert!(interrupted <= kills, "{interrupted} steps were lost by {kills} kills");
    let mut cells: BTreeMap<_, usize> = BTreeMap::new();
    for boot in state.boots.iter().filter(|b| !b.runs.is_empty()) {
        *cells.entry((&boot.commit, &boot.variant)).or_default() += 1;
    }
    assert!(cells.len() == 6 && cells.values().all(|n| *n == 4), "{cells:?}");
    assert_eq!(runs, 24, "what was measured is not measured again");
    assert_eq!(rig.run(&["audit", "s"]).exits(0).out, "1 verdicts recomputed, 0 differ\n");
}

#[test]
fn what_cannot_be_surveyed_is_refused_with_the_reason_and_the_next_step() {
    let rig = rig();
    let with_variants = "[variant.batch]\npolicy = \"batch\"\n";
    let told = rig.note("told.toml");
    let text = std::fs::read_to_string(rig.profile_path()).expect("is there");
    std::fs::write(&told, format!("{text}{with_variants}")).expect("writes");
    let told = told.to_str().expect("UTF-8");
    let unknown = rig.run(&["survey", "c0", "c1", "--variant", "btach", "--profile", told]).exits(2);
    let mut all = vec![unknown.err.replace(told, "PROFILE")];
    for args in [
        &["c0"][..],
        &["c0", "c9"],
        &["c0", "c1", "--baseline", "v7.1"],
        &["c0", "--baseline", "c0"],
        &["c0", "HEAD~4", "c1"],
        &["c0", "c1", "--boots", "1"],
        &["c0", "c1", "--runs", "none"],
        &["c0", "c1", "--find", "any"],
        &["c0", "c1", "--path", "kernel"],
        &["c0", "c1", "--also", "latency_p99"],
        &["c0", "c1", "--also", "nopm"],
        &["c0", "c1", "--variant", "fast", "--variant", "default", "--variant", "fast"],
        &["c0", "c1", "--state-dir", "/proc/none"],
    ] {
        let said = survey(&rig, args);
        assert_eq!(said.status, if args.contains(&"--state-dir") { 5 } else { 2 }, "{}", said.err);
        all.push(said.err.replace(rig.profile_path().to_str().expect("UTF-8"), "PROFILE"));
    }
    survey(&rig, &["c0", "c1", "--boots", "2"]).exits(0);
    all.push(rig.run(&["log", "s", "--git"]).exits(2).err);
    for form in ["html", "mail"] {
        all.push(rig.run(&["report", "s", "--format", form]).exits(2).err);
    }
    rig.start_with(&["c1", "c3", "--session", "b"]).exits(3);
    all.push(rig.run(&["report", "b", "--own-baseline"]).exits(2).err);
    golden!("refused", all.concat());
}

/// A line of nine with the change at c5, which "flat" does not show; "gone" cannot be measured before it.
fn searched(variants: &[&str]) -> (Rig, Said) {
    let run = "read -r l < level; case $SB_VARIANT in flat) l=100000;; gone) [ $l -lt 95000 ] || exit 125;; esac; \
               echo $((l + SB_BOOT * 7 % 11 - 5))";
    let mut rig = Rig::new(&Profile { run: run.to_owned(), ..Profile::default() });
    let levels: Vec<u32> = (0..9).map(|n| if n < 5 { 100_000 } else { 92_600 }).collect();
    rig.line(&levels);
    let args = [&["c0", "c8", "--session", "s"], variants].concat();
    let said = rig.start_with(&args).exits(0);
    (rig, said)
}

#[test]
fn further_variants_of_a_search_stand_beside_the_verdict_and_are_no_part_of_it() {
    let further = ["--variant", "default", "--variant", "flat", "--variant", "gone"];
    let (plain, _) = searched(&[]);
    let (rig, said) = searched(&further);
    said.tells("CULPRIT").tells("(\"c5\") is the regression");
    said.tells("variants under flat: ").tells("within the noise; 2 and 2 boots");
    said.tells("under gone: not measured: declared: the run command says");
    said.tells("(culprit against parent, beside the verdict and no part of it)");
    let (with, without) = (rig.json("s"), plain.json("s"));
    for key in ["conclusion", "endpoints", "candidates", "checks"] {
        assert_eq!(with[key], without[key], "{key}");
    }
    let (_, state, _) = rig.load("s");
    let first = state.boots.iter().position(|b| !b.variant.is_empty()).expect("there are further boots");
    assert!(state.boots[first..].iter().all(|b| !b.variant.is_empty()), "the search is over before them");
    let per_cell = with["further"][0]["boots"].as_u64().expect("a number");
    assert!(per_cell >= 2 && with["further"][0]["parent_boots"] == json!(per_cell), "{}", with["further"]);
    assert_eq!(rig.run(&["audit", "s"]).exits(0).out, plain.run(&["audit", "s"]).exits(0).out);
    let culprit = with["conclusion"]["commit"].as_str().expect("named");
    let profile = rig.profile_path();
    let profile = profile.to_str().expect("UTF-8");
    let refused = rig.run(&[
        "revert-test",
        culprit,
        "--profile",
        profile,
        "--on",
        "c8",
        "--against",
        "c0",
        "--variant",
        "default",
        "--variant",
        "flat",
    ]);
    let refused = refused.exits(2).err;
    assert!(
        refused.contains("measure under flat beside default: a revert test has one variant"),
        "{refused}"
    );
}
