//! Cases of noise, signs and sizes over the real binary. The arithmetic behind them is held in `statistics`.

use crate::common::rig::{Profile, QUIET_RUN, RUN, Rig};

/// Levels around 10000 with a standard deviation of 0.5 %.
const NOISY_RUN: &str = "read -r level < level; echo $((level + (SB_BOOT * 7 % 11 - 5) * 16))";

#[test]
fn ends_that_do_not_differ_are_told_and_no_candidate_is_built() {
    // Case 112: 100.2 and 100.0 with sd 0.5.
    let mut rig = Rig::new(&Profile::default());
    let built = rig.note("built");
    rig.profile(&Profile {
        direction: "lower",
        boots: 5,
        build: Some(format!("echo $SB_COMMIT >> {}; : > \"$SB_ARTIFACTS/image\"", built.display())),
        run: NOISY_RUN.to_owned(),
        ..Profile::default()
    });
    let c = rig.line(&[10_000, 10_000, 10_000, 10_020, 10_020]);
    let said = rig.start("c0", "c4").exits(4);
    said.tells(
        "NO DIFFERENCE SHOWN: cannot reproduce the difference: the endpoints do not differ by the 2.0 %",
    );
    said.tells("within the noise");
    let mut built = rig.notes("built");
    built.sort();
    let mut ends = [c[0].as_str(), c[4].as_str()];
    ends.sort();
    assert_eq!(built, ends);
    let json = rig.json("s");
    assert_eq!(json["conclusion"]["kind"], "no_difference");
    assert_eq!(json["conclusion"]["suspects"].as_array().map(Vec::len), Some(0));
    assert_eq!(json["spent"]["builds"], 2);
}

#[test]
fn a_difference_of_the_other_sign_is_told_and_not_searched() {
    // Case 73: a loss was reported, +1.2 % is measured.
    let mut rig = Rig::new(&Profile { minimum_effect: "1%", ..Profile::default() });
    let c = rig.line(&[100_000, 100_000, 101_200, 101_200]);
    let said = rig.start("c0", "c3").exits(4);
    said.tells("OPPOSITE SIGN: endpoints do not show the asked regression (opposite sign)");
    said.tells("nopm changes by +1.2 %").tells("better");
    let order = rig.boot_order("s");
    assert!(order.iter().all(|commit| *commit == c[0] || *commit == c[3]), "a candidate was booted");
}

#[test]
fn a_difference_smaller_than_asked_for_is_no_finding() {
    let mut rig = Rig::new(&Profile { minimum_effect: "3%", ..Profile::default() });
    rig.line(&[100_000, 100_000, 98_000, 98_000]);
    let said = rig.start("c0", "c3").exits(4);
    said.tells("the endpoints do not differ by the 3.0 % that was asked for").tells("nopm changes by -2.0 %");
}

#[test]
fn a_machine_that_changes_its_level_gets_no_innocent_named() {
    // Case 76: from the seventh boot on everything is 8 % slower, as after a loss of turbo. The fresh, interleaved boots of
    // the confirmation see through it: nobody but the culprit may be named.
    let mut rig = Rig::new(&Profile {
        run: format!(
            "{QUIET_RUN} | {{ read -r l; [ $SB_BOOT -le 6 ] || l=$((l * 92 / 100)); echo $((l + SB_BOOT * 7 % 11)); }}"
        ),
        ..Profile::default()
    });
    let c = rig.line(&[100_000, 100_000, 100_000, 100_000, 100_000, 95_000, 95_000, 95_000, 95_000]);
    let said = rig.start("c0", "c8");
    let json = rig.json("s");
    let named = json["conclusion"]["commit"].as_str();
    assert!(named.is_none_or(|commit| commit == c[5].as_str()), "{}", said.out);
    // The journal ends with the conclusion, and its verdicts can be computed again.
    rig.run(&["audit"]).exits(0).tells("0 differ");
}

#[test]
fn many_small_steps_have_no_culprit() {
    let mut rig = Rig::new(&Profile { run: QUIET_RUN.to_owned(), ..Profile::default() });
    let levels: Vec<u32> = (0..16).map(|n| 100_000 - 400 * n).collect();
    rig.line(&levels);
    let said = rig.start("c0", "c15").exits(3);
    said.tells("the difference is spread over several commits");
    // Which kernels are measured follows from what a boot and a run took, here some milliseconds: the search ends at a step
    // that is confirmed and too small, or at levels between which there is none.
    let ends = [
        "less than the 2.0 % worth finding",
        "no step between two of them is as large as the 2.0 % worth finding",
    ];
    assert!(ends.iter().any(|end| said.flat().contains(end)), "{}", said.out);
    assert_eq!(rig.json("s")["conclusion"]["commit"], serde_json::Value::Null);
}

#[test]
fn a_culprit_that_explains_a_part_says_so() {
    let mut rig = Rig::new(&Profile { run: QUIET_RUN.to_owned(), ..Profile::default() });
    rig.line(&[100_000, 99_000, 99_000, 99_000, 94_000, 94_000, 93_000, 93_000]);
    let said = rig.start("c0", "c7").exits(0);
    said.tells("(\"c4\") is the regression").tells("it explains only part of the endpoint difference (71 %)");
    said.tells("explains 71 % (71 to 71 %) of the endpoint difference");
    let explained = &rig.json("s")["conclusion"]["explained"];
    let share = explained["share"].as_f64().expect("a number");
    assert!((share - 5.0 / 7.0).abs() < 1e-6, "{explained}");
}

#[test]
fn a_number_that_is_no_positive_finite_number_never_counts() {
    // Case 84 and its kind: zero, negative, NaN, infinity, no number at all, two numbers.
    for output in ["0", "-5", "nan", "inf", "", "12 13", "12 ms", "1e999"] {
        let mut rig = Rig::new(&Profile::default());
        let run = format!("if [ -e odd ]; then echo '{output}'; else {RUN}; fi");
        rig.profile(&Profile { run, boots: 2, ..Profile::default() });
        let c0 = rig.commit("c0", &[], 100_000, &[]);
        let c1 = rig.commit("c1", &[&c0], 100_000, &[("odd", "1")]);
        let c2 = rig.repo.commit("c2", &[&c1], &[("odd", None), ("level", Some("92600\n"))]);
        let said = rig.start(c0.as_str(), c2.as_str()).exits(3);
        said.tells(&format!("{} invalid output:", c1.short()));
    }
}

#[test]
fn a_small_effect_is_named_with_the_caution_that_code_layout_was_not_ruled_out() {
    // Case 38: a layout can make 5 %; the check by forced alignment is told as not run.
    let mut rig = Rig::new(&Profile::default());
    rig.line(&[100_000, 100_000, 96_000, 96_000]);
    let said = rig.start("c0", "c3").exits(0);
    said.tells("alignment NOT RUN").tells("caution code layout alone can make a difference of this size");
    assert_eq!(rig.json("s")["checks"]["alignment"], "not_run");
    rig.line(&[100_000, 100_000, 80_000, 80_000]);
    let said = rig.start_with(&["c0", "c3", "--session", "big"]).exits(0);
    assert!(!said.out.contains("caution"), "{}", said.out);
}
