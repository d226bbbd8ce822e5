//! The forms of a report: JSON for programs (its keys are a promise), text for people. The sessions are fixed, so that
//! each report is the same everywhere but for the time it took.

use crate::common::rig::{Profile, QUIET_RUN, RUN, Rig, parents_of};
use sched_bisect::model::CommitId;
use serde_json::{Value, json};

const FAST: u32 = 100_000;
const SLOW: u32 = 92_600;

macro_rules! golden {
    ($name:literal, $text:expr) => {
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/report"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, $text);
        });
    };
}

/// The text without what rests on the time it took, and without the command, which names a directory of the test's: the
/// recorded session of forms.rs shows them.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    let mut dropped = "";
    for line in text.lines() {
        dropped = match (line.split_whitespace().next(), dropped) {
            (Some("the"), _) if line == "the way:" => "way",
            (None, "way") => "",
            (Some("spent"), _) => {
                let (counts, _) = line.rsplit_once(", ").expect("it ends with the time");
                out.push_str(&format!("{counts}, TIME\n"));
                "spent"
            }
            (Some("again"), _) => "again",
            (Some("next"), _) | (Some("hand"), _) => "",
            (_, dropped) => dropped,
        };
        if dropped.is_empty() {
            out.push_str(&format!("{line}\n"));
        }
    }
    out
}

/// Rounds every number to six decimals: the last digits of logarithms are the machine's.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().map(|x| (x * 1e6).round() / 1e6 + 0.0);
            *value = json!(rounded);
        }
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(entries) => entries.values_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn timeless_json(rig: &Rig, session: &str) -> String {
    let mut report = rig.json(session);
    assert!(report["spent"]["seconds"].as_f64().is_some_and(|s| s >= 0.0), "{}", report["spent"]);
    for seconds in ["seconds", "build_seconds", "sut_seconds"] {
        report["spent"][seconds] = json!("TIME");
    }
    // What halving would have cost and why a step was taken rest on what builds and runs took; the recorded sessions of
    // forms.rs show them.
    if !report["spent"]["halving"].is_null() {
        report["spent"]["halving"]["seconds"] = json!("TIME");
    }
    report["path"] = json!(format!("{} steps", report["path"].as_array().map_or(0, Vec::len)));
    assert!(
        report["command"].as_str().is_some_and(|c| c.starts_with("sched-bisect ")),
        "{}",
        report["command"]
    );
    report["command"] = json!("COMMAND");
    round(&mut report);
    serde_json::to_string_pretty(&report).expect("it serializes")
}

fn text(rig: &Rig, session: &str) -> String {
    timeless(&rig.run(&["report", session]).exits(0).out)
}

/// c0 to c8, 7.4 % less from c5 on.
fn culprit() -> Rig {
    let mut rig = Rig::new(&Profile::default());
    let levels: Vec<u32> = (0..9).map(|n| if n < 5 { FAST } else { SLOW }).collect();
    rig.line(&levels);
    rig.start("c0", "c8").exits(0);
    rig
}

#[test]
fn the_report_of_a_culprit_is_as_recorded() {
    let rig = culprit();
    golden!("culprit_json", timeless_json(&rig, "s"));
    golden!("culprit_text", text(&rig, "s"));
}

#[test]
fn the_report_of_an_improvement_of_a_time_is_as_recorded() {
    let profile =
        Profile { direction: "lower", find: "any", run: QUIET_RUN.to_owned(), ..Profile::default() };
    let mut rig = Rig::new(&profile);
    rig.line(&[4000, 4000, 4000, 3200, 3200]);
    rig.start("c0", "c4").exits(0);
    golden!("improvement_text", text(&rig, "s"));
}

#[test]
fn the_report_of_suspects_is_as_recorded() {
    let mut rig = Rig::new(&Profile {
        build: Some("if [ -e broken ]; then cat broken >&2; exit 2; fi".to_owned()),
        ..Profile::default()
    });
    let mut c = rig.line(&[FAST, FAST, FAST]);
    for n in 3..=6 {
        let why =
            format!("kernel/sched/fair.c:{n}:1: error: 'struct sched_entity' has no member named 'vlag'\n");
        let level = if n < 5 { FAST } else { SLOW };
        c.push(rig.commit(&format!("c{n}"), &[&c[n - 1]], level, &[("broken", &why)]));
    }
    let last = rig.repo.commit("c7", &[&c[6]], &[("broken", None)]);
    rig.repo.run(&["update-ref", "refs/tags/c7", last.as_str()]);
    rig.start("c1", "c7").exits(3);
    golden!("suspects_text", text(&rig, "s"));
}

#[test]
fn the_report_of_a_merge_is_as_recorded() {
    let run = "if [ -e a ] && [ -e b ]; then echo 92600; else echo 100000; fi";
    let mut rig = Rig::new(&Profile { run: run.to_owned(), ..Profile::default() });
    let base = rig.commit("base", &[], 0, &[]);
    let side = rig.commit("side", &[&base], 0, &[("b", "1")]);
    let main1 = rig.commit("main1", &[&base], 0, &[("a", "1")]);
    rig.commit("merge", &[&main1, &side], 0, &[("b", "1")]);
    rig.start("base", "merge").exits(0);
    golden!("merge_text", text(&rig, "s"));
}

#[test]
fn the_report_of_a_history_that_is_not_monotonic_is_as_recorded() {
    let mut rig = Rig::new(&Profile { run: QUIET_RUN.to_owned(), ..Profile::default() });
    let mut n: Vec<CommitId> = Vec::new();
    for at in 0..8 {
        let parent = n.last().cloned();
        let parents: Vec<&CommitId> = parents_of(parent.as_ref());
        let level = if [2, 3].contains(&at) { SLOW } else { FAST };
        n.push(rig.commit(&format!("n{at}"), &parents, level, &[]));
    }
    let side = rig.commit("side", &[&n[3]], SLOW, &[]);
    let merge = rig.commit("merge", &[&n[7], &side], SLOW, &[]);
    rig.commit("last", &[&merge], SLOW, &[]);
    rig.start("n0", "last").exits(9);
    golden!("not_monotonic_text", text(&rig, "s"));
    // git takes no bad ancestor of a good commit; what it is given it replays.
    let log = rig.run(&["log", "--git"]).exits(0).out;
    assert!(!log.contains(&format!("bisect bad {}", n[3])), "{log}");
}

#[test]
fn the_reports_of_revert_tests_are_as_recorded() {
    let run = "l=$((100000 + SB_BOOT * 7 % 11 - 5)); for f in cost/*; do if [ -e $f ]; then read -r c < $f; \
               l=$((l - c)); fi; done; echo $l";
    let mut rig = Rig::new(&Profile { run: run.to_owned(), ..Profile::default() });
    let c0 = rig.commit("c0", &[], 0, &[]);
    let c1 = rig.commit("c1", &[&c0], 0, &[("cost/c1", "3400\n")]);
    let c2 = rig.commit("c2", &[&c1], 0, &[("cost/c2", "4000\n")]);
    let c3 = rig.commit("c3", &[&c2], 0, &[("cost/c1", "3400\n# touched again\n")]);
    rig.revert_test(&["c2", "--on", "c3", "--against", "c0"]).exits(3);
    golden!("revert_json", timeless_json(&rig, "r"));
    golden!("revert_text", text(&rig, "r"));
    let args = ["revert-test", c1.as_str(), "--on", c3.as_str(), "--against", "c0", "--session", "conflict"];
    let profile = rig.profile_path();
    rig.run(&[&args[..], &["--profile", profile.to_str().expect("UTF-8")]].concat()).exits(10);
    golden!("conflict_text", text(&rig, "conflict"));
}

#[test]
fn the_report_and_status_of_a_session_that_stands_still_are_as_recorded() {
    let mut rig = Rig::new(&Profile::default());
    let run = format!(
        "if [ -e odd ]; then echo 'ssh: connect to host sut: No route to host' >&2; exit 75; fi; {RUN}"
    );
    rig.profile(&Profile { run, ..Profile::default() });
    let c = rig.line(&[FAST, FAST, FAST, FAST]);
    let odd = rig.commit("odd", &[&c[3]], FAST, &[("odd", "1")]);
    let slow = rig.repo.commit("slow", &[&odd], &[("odd", None), ("level", Some("92600\n"))]);
    rig.commit("last", &[&slow], SLOW, &[]);
    rig.start("c0", "last").exits(5);
    golden!("halted_text", text(&rig, "s"));
    golden!("halted_status", timeless(&rig.run(&["status"]).exits(0).out));
}

/// Asserts that `value` has exactly the kind of value that `shape` shows; an object's keys must all be there.
#[track_caller]
fn assert_shape(value: &Value, shape: &Value, at: &str) {
    match (shape, value) {
        (Value::Object(shape), Value::Object(value)) => {
            for (key, inner) in shape {
                let found = value.get(key).unwrap_or_else(|| panic!("{at}.{key} is missing"));
                assert_shape(found, inner, &format!("{at}.{key}"));
            }
        }
        (Value::Array(shape), Value::Array(value)) => {
            assert!(!value.is_empty() || shape.is_empty(), "{at} is empty");
            if let Some(inner) = shape.first() {
                value.iter().for_each(|found| assert_shape(found, inner, &format!("{at}[]")));
            }
        }
        (Value::String(_), Value::String(_))
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Null, _) => {}
        (shape, value) => panic!("{at} is {value}, not like {shape}"),
    }
}

#[test]
fn the_documented_keys_of_the_json_report_are_there() {
    // What stands here is a promise to programs: keys are added, never taken away or changed.
    let rig = culprit();
    let report = rig.json("s");
    let interval = json!({"relative": 0.1, "low": 0.1, "high": 0.1});
    let shape = json!({
        "schema": 1,
        "session": "",
        "good": {"rev": "", "commit": ""},
        "bad": {"rev": "", "commit": ""},
        "metric": {"name": "", "unit": "", "direction": ""},
        "endpoints": {"effect": interval, "boots": 1, "runs": 1},
        "conclusion": {
            "kind": "", "commit": "", "subject": "", "probability": 0.1, "confirmed": true, "effect": interval,
            "explained": {"share": 0.1, "low": 0.1, "high": 0.1}, "suspects": [], "restored": null,
        },
        "candidates": [{
            "commit": "", "verdict": "", "reason": null, "boots": [{"boot_id": "", "runs": [0.1]}],
        }],
        "spent": {"builds": 1, "boots": 1, "runs": 1, "seconds": 0.1},
    });
    assert_shape(&report, &shape, "report");
    assert_eq!(report["schema"], 1);
    assert_eq!(
        (&report["metric"]["direction"], &report["conclusion"]["kind"]),
        (&json!("higher"), &json!("culprit"))
    );
    // Relative effects: positive is worse, for a throughput too.
    let effect = report["endpoints"]["effect"]["relative"].as_f64().expect("a number");
    assert!((effect - 0.074).abs() < 0.001, "{effect}");
    // Every run that was measured is there.
    let candidates = report["candidates"].as_array().expect("a list");
    let boots = candidates.iter().flat_map(|c| c["boots"].as_array().expect("a list"));
    let runs: usize = boots.map(|b| b["runs"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!(report["spent"]["runs"], runs);
}

#[test]
fn suspects_and_what_a_revert_restores_have_their_documented_keys() {
    let mut rig = Rig::new(&Profile { build: Some("! [ -e broken ]".to_owned()), ..Profile::default() });
    let c0 = rig.commit("c0", &[], FAST, &[]);
    let c1 = rig.commit("c1", &[&c0], SLOW, &[("broken", "1")]);
    let c2 = rig.repo.commit("c2", &[&c1], &[("broken", None), ("other", Some("1"))]);
    rig.start("c0", c2.as_str()).exits(3);
    let report = rig.json("s");
    let suspects = &report["conclusion"]["suspects"];
    assert_shape(suspects, &json!([{"commit": "", "probability": 0.5, "reason": ""}]), "suspects");
    let sum: f64 =
        suspects.as_array().expect("a list").iter().filter_map(|s| s["probability"].as_f64()).sum();
    assert!((0.99..1.0 + 1e-9).contains(&sum), "{sum}");
    for key in ["commit", "subject", "restored"] {
        assert_eq!(report["conclusion"][key], Value::Null, "{key}: nothing is claimed");
    }
}
