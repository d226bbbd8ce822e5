//! Cases that are about what a report says (2, 8, 10, 14, 108, 110, 111), each in every form that people read.

use crate::common::rig::{Profile, QUIET_RUN, Rig, parents_of};
use sched_bisect::model::CommitId;

const FAST: u32 = 100_000;
const SLOW: u32 = 92_600;

/// Text, Markdown and JSON of a session, each in one line.
fn forms(rig: &Rig, session: &str) -> Vec<String> {
    let form = |name: &str| rig.run(&["report", session, "--format", name]).exits(0).flat();
    // What Markdown escapes is the same text.
    vec![form("text"), form("markdown").replace('\\', "").replace("&gt;", ">"), form("json")]
}

#[track_caller]
fn people_read(rig: &Rig, session: &str, parts: &[&str]) {
    for form in &forms(rig, session)[..2] {
        for part in parts {
            assert!(form.contains(part), "{part:?} is not in\n{form}");
        }
    }
}

#[test]
fn case_2_an_improvement_is_called_one_with_its_own_sign() {
    let mut rig = Rig::new(&Profile { find: "improvement", ..Profile::default() });
    rig.line(&[FAST, FAST, FAST, FAST, FAST, 106_000, 106_000]);
    rig.start("c0", "c6").exits(0);
    people_read(&rig, "s", &["is the improvement", "+6.0 % (+", "better", "improved"]);
    let time = Profile { direction: "lower", find: "any", run: QUIET_RUN.to_owned(), ..Profile::default() };
    let mut rig = Rig::new(&time);
    rig.line(&[400, 400, 400, 320, 320]);
    rig.start("c0", "c4").exits(0);
    people_read(&rig, "s", &["is the improvement", "-20.0 % (-20.0 to -20.0 %), better"]);
    let letter = rig.run(&["report", "s", "--format", "mail"]).exits(0).out;
    assert!(letter.contains("Subject: [PERFORMANCE] nopm -20.0% since "), "{letter}");
    // The robot's +3888.9 % is what the throughput did.
    let mut rig = Rig::new(&Profile { find: "any", run: QUIET_RUN.to_owned(), ..Profile::default() });
    rig.line(&[1_000, 1_000, 39_889, 39_889]);
    rig.start("c0", "c3").exits(0);
    people_read(&rig, "s", &["+3888.9 %", "is the improvement"]);
}

#[test]
fn case_8_one_edge_of_several_is_named_as_one_and_the_pair_is_told() {
    let mut rig = Rig::new(&Profile { run: QUIET_RUN.to_owned(), ..Profile::default() });
    let levels: Vec<u32> = (0..9).map(|n| if [2, 3, 6, 7, 8].contains(&n) { SLOW } else { FAST }).collect();
    let n = rig.line(&levels);
    rig.start("c0", "c8").exits(0);
    people_read(&rig, "s", &["one of the edges between c0 and c8"]);
    let report = rig.json("s");
    assert_eq!(report["conclusion"]["commit"], n[6].as_str());
    // Where a good commit was measured after a bad one, the pair stands in every form.
    let pairs = report["conclusion"]["not_monotonic"].as_array().expect("a list").clone();
    for pair in &pairs {
        let short = |at: usize| pair[at].as_str().expect("a commit")[..12].to_owned();
        people_read(&rig, "s", &[&format!("{} is bad, its descendant {} good", short(0), short(1))]);
    }
}

#[test]
fn case_10_suspects_that_cannot_be_told_apart_are_listed_with_their_reasons() {
    let build = "if [ -e broken ]; then cat broken >&2; exit 2; fi".to_owned();
    let mut rig = Rig::new(&Profile { build: Some(build), ..Profile::default() });
    let mut c = rig.line(&[FAST, FAST, FAST]);
    for n in 3..=6 {
        let why = format!("fair.c:{n}:1: error: 'vlag' undeclared\n");
        c.push(rig.commit(&format!("c{n}"), &[&c[n - 1]], FAST, &[("broken", &why)]));
    }
    let last = rig.repo.commit("c7", &[&c[6]], &[("broken", None), ("level", Some("92600\n"))]);
    rig.repo.run(&["update-ref", "refs/tags/c7", last.as_str()]);
    rig.start("c1", "c7").exits(3);
    let suspects = rig.json("s")["conclusion"]["suspects"].as_array().expect("a list").clone();
    let named: Vec<&str> = suspects.iter().filter_map(|s| s["commit"].as_str()).collect();
    let mut expected: Vec<&str> = c[3..].iter().map(CommitId::as_str).chain([last.as_str()]).collect();
    expected.sort_unstable();
    let mut sorted = named.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    people_read(&rig, "s", &["SUSPECTS ONLY", "error: 'vlag' undeclared", c[3].short(), last.short()]);
    // A set is mailed as one: a range, and nobody's Fixes.
    let letter = rig.run(&["report", "s", "--format", "mail"]).exits(0).out;
    assert!(letter.contains("#regzbot introduced: c1..c7\n") && !letter.contains("\nFixes:"), "{letter}");
    assert!(letter.contains("from c1 to c7, one of 5 commits"), "{letter}");
}

#[test]
fn case_14_three_ways_to_fail_stay_three_in_state_and_report() {
    let build = "if [ -e no-build ]; then echo 'error: no' >&2; exit 2; fi".to_owned();
    let boot = "if [ -e panics ]; then echo 'Kernel panic - not syncing: planted'; exit 1; fi; \
                printf '{\"boot_id\":\"%s-%s\"}' $SB_BOOT $SB_STEP"
        .to_owned();
    let run = format!("if [ -e crashes ]; then echo 'benchmark died' >&2; exit 3; fi; {QUIET_RUN}");
    let mut rig = Rig::new(&Profile { build: Some(build), boot: Some(boot), run, ..Profile::default() });
    let mut c: Vec<CommitId> = Vec::new();
    let faults = [(3, "no-build"), (5, "panics"), (7, "crashes")];
    for n in 0..12 {
        let parent = c.last().cloned();
        let level = if n < 6 { "100000\n" } else { "92600\n" };
        let mut edits: Vec<(&str, Option<&str>)> = vec![("level", Some(level))];
        let own = format!("log/c{n}");
        edits.push((&own, Some("x")));
        edits.extend(faults.iter().map(|(at, name)| (*name, (*at == n).then_some("1"))));
        let edits: Vec<_> = edits
            .into_iter()
            .filter(|(name, to)| {
                to.is_some() || n > 0 && faults.iter().any(|(at, f)| f == name && at + 1 == n)
            })
            .collect();
        let commit = rig.repo.commit(&format!("c{n}"), &parents_of(parent.as_ref()), &edits);
        rig.repo.run(&["update-ref", &format!("refs/tags/c{n}"), commit.as_str()]);
        c.push(commit);
    }
    rig.start("c0", "c11");
    let (_, state, _) = rig.load("s");
    let report = rig.json("s");
    let reason = |at: usize| {
        let all = report["candidates"].as_array().expect("a list");
        let found = all.iter().find(|k| k["commit"] == c[at].as_str());
        found.and_then(|k| k["reason"].as_str()).map(str::to_owned)
    };
    let mut kinds = Vec::new();
    for (at, _) in faults {
        let known = state.commit(&c[at]).and_then(|known| known.untestable.clone());
        // A search need not try each of them; those that it tried are told apart.
        if let Some(untestable) = known {
            kinds.push(untestable.kind.to_string());
            let told = reason(at).expect("it stands in the report");
            assert!(told.starts_with(&format!("{}: ", untestable.kind)), "{told}");
            people_read(&rig, "s", &[&told]);
        }
    }
    let mut apart = kinds.clone();
    apart.dedup();
    assert!(kinds.len() >= 2 && apart.len() == kinds.len(), "{kinds:?}");
}

#[test]
fn case_108_what_a_revert_restores_is_told_with_its_interval_and_the_next_step() {
    let run = "l=$((100000 + SB_BOOT * 7 % 11 - 5)); for f in cost/*; do if [ -e $f ]; then read -r c < $f; \
               l=$((l - c)); fi; done; echo $l";
    let mut rig = Rig::new(&Profile { run: run.to_owned(), ..Profile::default() });
    let c0 = rig.commit("c0", &[], 0, &[]);
    let c1 = rig.commit("c1", &[&c0], 0, &[("cost/c1", "3400\n")]);
    rig.commit("c2", &[&c1], 0, &[("cost/c2", "4000\n")]);
    rig.revert_test(&["c1", "--on", "c2", "--against", "c0"]).exits(3);
    people_read(&rig, "r", &["PARTLY RESTORED", "46 % (46 to 46 %) of the endpoint difference"]);
    let next = rig.json("r")["conclusion"]["next_step"].as_str().expect("text").to_owned();
    assert!(next.contains("rest"), "{next}");
    let letter = rig.run(&["report", "r", "--format", "mail"]).exits(0).out;
    assert!(letter.contains("brought back by reverting"), "{letter}");
}

#[test]
fn case_110_other_metrics_are_told_without_a_verdict() {
    let run = "if [ \"$(cat level)\" = 100000 ]; then printf '{\"metrics\":{\"nopm\":100,\"p999_us\":20}}'; \
               else printf '{\"metrics\":{\"nopm\":92,\"p999_us\":40}}'; fi";
    let mut rig = Rig::new(&Profile { run: run.to_owned(), ..Profile::default() });
    rig.line(&[FAST, FAST, FAST, SLOW, SLOW]);
    rig.start("c0", "c4").exits(0);
    people_read(&rig, "s", &["p999_us 20 to 40 (+100.0 %)", "not judged", "nopm -8.0 %"]);
}

#[test]
fn case_111_a_finished_search_tells_all_that_a_maintainer_asks() {
    let build = "if [ -e broken ]; then echo 'error: no' >&2; exit 2; fi".to_owned();
    let mut rig = Rig::new(&Profile { build: Some(build), ..Profile::default() });
    let mut c = rig.line(&[FAST, FAST, FAST, FAST]);
    c.push(rig.commit("c4", &[&c[3]], FAST, &[("broken", "1")]));
    let c5 = rig.repo.commit("c5", &[&c[4]], &[("broken", None), ("other", Some("1"))]);
    let c6 = rig.commit("c6", &[&c5], SLOW, &[]);
    rig.commit("c7", &[&c6], SLOW, &[]);
    rig.start("c0", "c7").exits(0);
    let short = c6.short();
    people_read(
        &rig,
        "s",
        &[
            short,
            "its parent, measured, does not show it",
            &format!("{} c5: ", c5.short()),
            "nopm -7.4 % (",
            "verify PASS, revert NOT RUN, alignment NOT RUN",
            "configuration",
            "above 99.99 %",
            "100 % (100 to 100 %) of the endpoint difference",
            "halving with ",
            &format!("sched-bisect revert-test {short}"),
        ],
    );
    let letter = rig.run(&["report", "s", "--format", "mail"]).exits(0).out;
    let flat = letter.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("nobody has looked at the code by hand. The commit may only bring to light"),
        "{letter}"
    );
    assert!(
        flat.contains("verify (fresh interleaved boots of commit and parents) PASS, revert NOT RUN"),
        "{letter}"
    );
    let report = rig.json("s");
    for key in ["parents", "path", "candidates", "commits"] {
        assert!(report[key].as_array().is_some_and(|list| !list.is_empty()), "{key}");
    }
}
