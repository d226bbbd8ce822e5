//! `simulate`, with the real binary: what it tells, that it tells the same again, and what it refuses.

use crate::common::rig::{Said, command_in, said};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

fn simulate_in(dir: &Path, args: &[&str]) -> Said {
    let mut all = vec!["simulate"];
    all.extend(args);
    said(&command_in(dir, &all).output().expect("the program runs"))
}

/// In a directory that is no repository: none is needed.
fn simulate(args: &[&str]) -> Said {
    let dir = TempDir::new().expect("a directory");
    simulate_in(dir.path(), args)
}

fn json(args: &[&str]) -> Value {
    let mut all = vec!["--format", "json"];
    all.extend(args);
    serde_json::from_str(&simulate(&all).exits(0).out).expect("JSON")
}

#[test]
fn the_question_is_answered_in_a_sentence_within_80_columns() {
    let said = simulate(&[
        "--strategy",
        "sprt",
        "--strategy",
        "halving",
        "--searches",
        "40",
        "--unbuildable",
        "10%",
    ])
    .exits(0);
    let flat = said.flat();
    assert!(flat.contains("sprt: With this lab a 5 % change among 400 commits is found in "), "{}", said.out);
    assert!(flat.contains("as a set of suspects); median "), "{}", said.out);
    assert!(said.out.contains("times the hours of an oracle"), "{}", said.out);
    assert!(said.out.lines().all(|line| line.chars().count() < 80), "{}", said.out);
    assert!(said.err.is_empty(), "{}", said.err);
}

#[test]
fn the_same_seed_tells_the_same_and_another_one_does_not() {
    let args = |seed| ["--strategy", "sprt", "--commits", "100", "--searches", "50", "--seed", seed];
    let first = simulate(&args("7")).exits(0).out;
    assert_eq!(simulate(&args("7")).exits(0).out, first);
    assert_ne!(simulate(&args("8")).exits(0).out.replace("seed 8", "seed 7"), first);
}

#[test]
fn the_json_form_has_all_numbers_and_they_agree() {
    let told = json(&["--strategy", "sprt", "--searches", "60"]);
    let count = |key: &str| told[key].as_u64().expect("a count");
    assert_eq!(count("right") + count("wrong") + count("set") + count("none"), 60);
    let hours = |key: &str| told["hours"][key].as_f64().expect("hours");
    assert!(hours("median") <= hours("p90"));
    let spent = |key: &str| told[key]["mean"].as_f64().expect("a mean");
    let minutes = 20.0 * spent("builds") + 3.0 * spent("boots") + 10.0 * spent("runs");
    assert!((minutes / 60.0 - hours("mean")).abs() < 1e-9);
    let (oracle, bound) =
        (told["oracle_hours"].as_f64().expect("h"), told["bound_hours"].as_f64().expect("h"));
    assert!(bound < oracle && oracle < hours("mean"), "{told}");
    let band = &told["calibration"][0];
    assert_eq!((&band["stated"][0], &band["n"]), (&Value::from(0.99), &Value::from(60)));
}

#[test]
fn several_strategies_are_a_list_and_no_change_has_no_oracle() {
    let told = json(&[
        "--no-change",
        "--strategy",
        "pinpoint",
        "--strategy",
        "halving-3",
        "--commits",
        "64",
        "--searches",
        "20",
    ]);
    let [pinpoint, halving] = &told.as_array().expect("a list")[..] else { panic!("{told}") };
    assert_eq!((&pinpoint["strategy"], &halving["strategy"]), (&"pinpoint".into(), &"halving-3".into()));
    assert!(pinpoint["right"].as_u64() >= Some(15) && halving["wrong"] == 20, "{told}");
    assert!(pinpoint["oracle_hours"].is_null() && pinpoint["bound_hours"].is_null());
    simulate(&["--no-change", "--strategy", "pinpoint", "--searches", "5"]).exits(0).tells("no difference");
}

#[test]
fn a_budget_bounds_every_search() {
    let told = json(&["--strategy", "halving", "--budget", "10h", "--searches", "10"]);
    assert_eq!((&told["none"], &told["hours"]["p90"]), (&10.into(), &10.0.into()));
}

#[test]
fn noise_of_every_kind_makes_the_search_worse() {
    let wrong = |noise: &str| {
        let told = json(&["--strategy", "halving-3", "--searches", "100", "--boot-noise", "0%", noise]);
        told["wrong"].as_u64().expect("a count")
    };
    let quiet = wrong("--build-noise=0%");
    for noise in
        ["--build-noise=2%", "--outliers=10%", "--drift=linear:0.2%", "--drift=walk:1%", "--bimodal=30%"]
    {
        let noisy = wrong(noise);
        assert!(noisy > quiet + 5, "{noise}: {noisy} for {quiet}");
    }
    let told = json(&["--strategy", "halving-3", "--searches", "100", "--boot-noise", "2%"]);
    assert!(told["wrong"].as_u64() > Some(quiet + 5), "{told}");
}

#[test]
fn a_graph_is_read_plain_or_gzipped() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    let dir = TempDir::new().expect("a directory");
    let text = "\n0\n0\n1\n2\n3 4\n5\n";
    std::fs::write(dir.path().join("plain"), text).expect("writes");
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).expect("packs");
    std::fs::write(dir.path().join("packed.gz"), packed.finish().expect("packs")).expect("writes");
    let args = |file| ["--strategy", "sprt", "--searches", "20", "--effect", "20%", "--dag", file];
    let plain = simulate_in(dir.path(), &args("plain")).exits(0).out;
    assert!(plain.contains("6 commits in a graph"), "{plain}");
    assert_eq!(simulate_in(dir.path(), &args("packed.gz")).exits(0).out, plain);
    let refused = simulate_in(dir.path(), &["--dag", "plain", "--strategy", "pinpoint"]).exits(2);
    assert!(refused.err.contains("line of commits") && refused.err.contains("--commits"), "{}", refused.err);
    std::fs::write(dir.path().join("torn"), "\n0\n5\n").expect("writes");
    let refused = simulate_in(dir.path(), &["--dag", "torn"]).exits(2);
    assert!(refused.err.contains("torn") && refused.err.contains("before its parent 5"), "{}", refused.err);
}

#[test]
fn two_culprits_are_judged_by_both() {
    let told = json(&[
        "--strategy",
        "sprt",
        "--searches",
        "60",
        "--commits",
        "64",
        "--effect",
        "20%",
        "--second-culprit",
        "-10%",
    ]);
    assert!(told["right"].as_u64() >= Some(50) && told["bound_hours"].is_null(), "{told}");
}

#[test]
fn a_bad_value_is_refused_with_its_reason_and_what_would_be_right() {
    for (argument, value, right) in [
        ("--commits", "0", "from 1"),
        ("--commits", "many", "whole number"),
        ("--dag", "nowhere", "No such file"),
        ("--effect", "0%", "more than 0"),
        ("--effect", "5", "\"5%\""),
        ("--run-noise", "0", "more than 0"),
        ("--boot-noise", "-1%", "at least 0%"),
        ("--build-noise", "x", "2%"),
        ("--outliers", "100%", "at most 99%"),
        ("--drift", "lin:2%", "linear:0.1%"),
        ("--drift", "walk:fast", "2%"),
        ("--bimodal", "2", "below 1"),
        ("--unbuildable", "1.5", "below 1"),
        ("--second-culprit", "-5%", "cancels"),
        ("--second-culprit", "0%", "leave it out"),
        ("--costs", "build=20m,reboot=3m", "build, boot and run"),
        ("--costs", "20m", "build=20m"),
        ("--costs", "run=0", "run=1s"),
        ("--budget", "soon", "12h"),
        ("--searches", "0", "from 1"),
        ("--strategy", "bisect", "git-bayesect"),
        ("--strategy", "halving-0", "from 1"),
    ] {
        let refused = simulate(&[&format!("{argument}={value}")]).exits(2);
        let names_all = refused.err.contains(argument) && refused.err.contains(value);
        assert!(names_all && refused.err.contains(right), "{argument} {value}: {}", refused.err);
        assert!(refused.out.is_empty());
    }
    for pair in [["--no-change", "--second-culprit=3%"], ["--commits=5", "--dag=file"]] {
        simulate(&pair).exits(2);
    }
}
