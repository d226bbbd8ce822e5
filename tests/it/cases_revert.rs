//! Cases of the revert test: what a revert can come to, and that it leaves nothing behind.

use crate::common::rig::{Profile, Rig};
use sched_bisect::model::CommitId;
use std::collections::BTreeSet;

/// A run from 100000 down by what each file in `cost/` says, with a little noise.
const COST_RUN: &str = "l=$((100000 + SB_BOOT * 7 % 11 - 5)); for f in cost/*; do if [ -e $f ]; then read -r c < $f; \
                        l=$((l - c)); fi; done; echo $l";

fn rig() -> Rig {
    Rig::new(&Profile { run: COST_RUN.to_owned(), ..Profile::default() })
}

/// c0 to c3: c1 costs so much, c2 so much more.
fn two_costs(rig: &mut Rig, c1: &str, c2: &str) -> [CommitId; 4] {
    let first = rig.commit("c0", &[], 0, &[]);
    let second = rig.commit("c1", &[&first], 0, &[("cost/c1", c1)]);
    let third = rig.commit("c2", &[&second], 0, &[("cost/c2", c2)]);
    let last = rig.commit("c3", &[&third], 0, &[]);
    rig.repo.check_out(&last);
    [first, second, third, last]
}

#[test]
fn a_revert_that_brings_back_a_part_is_partial_with_its_interval() {
    // Case 108: good 100000, bad 92600, reverted 96000.
    let mut rig = rig();
    let [_, c1, _, c3] = two_costs(&mut rig, "3400\n", "4000\n");
    let said = rig.revert_test(&["c1", "--on", "c3", "--against", "c0"]).exits(3);
    said.tells("PARTLY RESTORED").tells("restored 46 % (46 to 46 %) of the endpoint difference");
    // The way on: the same range without the commit.
    let rebase = format!("git rebase --onto {0}^ {0} {1}", c1.short(), c3.short());
    said.tells(&format!("search the rest on top of the revert: {rebase} && sched-bisect start c0 HEAD"));
    let rebase = ["-c", "user.name=u", "-c", "user.email=e", "rebase", "--quiet", "--onto"];
    rig.repo.run(&[&rebase[..], &[&format!("{c1}^"), c1.as_str(), c3.as_str()]].concat());
    rig.start("c0", "HEAD").exits(0).tells("(\"c2\") is the regression");
    let restored = &rig.json("r")["conclusion"]["restored"];
    let at = |key: &str| restored[key].as_f64().expect("a number");
    assert!((at("share") - 3400.0 / 7400.0).abs() < 0.002, "{restored}");
    assert!(at("low") < at("share") && at("share") < at("high"), "{restored}");
}

#[test]
fn a_revert_that_brings_back_nearly_all_restores() {
    // Case 108: reverted 99800.
    let mut rig = rig();
    two_costs(&mut rig, "7200\n", "200\n");
    let said = rig.revert_test(&["c1", "--on", "c3", "--against", "c0"]).exits(0);
    said.tells("RESTORED: reverting").tells("restored 97 % (97 to 97 %) of the endpoint difference");
    said.tells("nopm +7.8 %").tells("better, against bad");
}

#[test]
fn a_revert_of_an_innocent_commit_has_no_effect() {
    let mut rig = rig();
    let [_, _, _, last] = two_costs(&mut rig, "7400\n", "0\n");
    let before = rig.fingerprint();
    let said = rig.revert_test(&["c2", "--on", "c3", "--against", "c0"]).exits(4);
    said.tells("NO EFFECT").tells("does not bring the difference back");
    said.tells("search for the commit that did it: sched-bisect start c0 c3");
    assert_eq!(rig.json("r")["bad"]["commit"], last.as_str());
    assert!(rig.fingerprint() == before, "the user's repository changed");
}

#[test]
fn a_revert_that_conflicts_lists_the_files_and_leaves_nothing_behind() {
    // Case 103.
    let mut rig = rig();
    let mut c = vec![rig.commit("c0", &[], 0, &[])];
    for n in 1..9 {
        let (fair, core) = (format!("line of c{n}\n"), format!("{n}\n"));
        let edits: &[(&str, &str)] = match n {
            5 | 6 => &[("kernel/sched/fair.c", &fair), ("kernel/sched/core.c", &core), ("cost/c5", "7000\n")],
            _ => &[],
        };
        c.push(rig.commit(&format!("c{n}"), &[&c[n - 1]], 0, edits));
    }
    rig.repo.check_out(&c[8]);
    let before = rig.fingerprint();
    let said = rig.revert_test(&["c5", "--on", "c8", "--against", "c0"]).exits(10);
    said.tells("CANNOT REVERT").tells("conflicts in kernel/sched/core.c, kernel/sched/fair.c");
    assert!(rig.fingerprint() == before, "the user's repository changed");
    assert!(!rig.repo.path().join(".git/REVERT_HEAD").exists());
    let json = rig.json("r");
    assert_eq!(json["conclusion"]["kind"], "cannot_revert");
    assert_eq!(json["spent"]["boots"], 0, "nothing needs to be measured for that");
}

#[test]
fn what_is_reverted_already_is_told_without_measuring() {
    let mut rig = rig();
    let [_, _, c2, _] = two_costs(&mut rig, "7400\n", "100\n");
    let without = rig.repo.commit("c4", &[&c2], &[("cost/c1", None), ("log/c1", None)]);
    let said = rig.revert_test(&["c1", "--on", without.as_str(), "--against", "c0"]).exits(8);
    said.tells("ALREADY REVERTED").tells("it is reverted there already");
    assert_eq!(rig.json("r")["spent"]["builds"], 0);
}

#[test]
fn a_reverted_kernel_whose_workload_dies_is_not_measurable_and_never_without_effect() {
    // Case 107: the commit cures a crash.
    let run = format!(
        "if [ -e trigger ] && ! [ -e cure ]; then echo 'BUG: soft lockup' >&2; exit 1; fi; {COST_RUN}"
    );
    let mut rig = Rig::new(&Profile { run, ..Profile::default() });
    let c0 = rig.commit("c0", &[], 0, &[]);
    let c1 = rig.commit("c1", &[&c0], 0, &[("trigger", "1")]);
    let c2 = rig.commit("c2", &[&c1], 0, &[("cure", "1"), ("cost/c2", "7400\n")]);
    rig.commit("c3", &[&c2], 0, &[]);
    let said = rig.revert_test(&["c2", "--on", "c3", "--against", "c0"]).exits(11);
    said.tells("NOT MEASURABLE").tells("run: the run command failed with exit 1: BUG: soft lockup");
    said.tells("that says nothing of the difference");
    said.tells(&format!("sched-bisect start {0}^ {0}", c2.short()));
    let json = rig.json("r");
    assert_eq!(json["conclusion"]["restored"], serde_json::Value::Null);
    assert_eq!(json["conclusion"]["effect"], serde_json::Value::Null);
}

/// A merge whose side costs.
fn merge(rig: &mut Rig) -> CommitId {
    let base = rig.commit("base", &[], 0, &[]);
    let side = rig.commit("side", &[&base], 0, &[("cost/side", "7400\n")]);
    let main = rig.commit("main1", &[&base], 0, &[]);
    let merge = rig.commit("merge", &[&main, &side], 0, &[("cost/side", "7400\n"), ("log/side", "side")]);
    rig.commit("top", &[&merge], 0, &[]);
    merge
}

#[test]
fn a_merge_is_reverted_only_when_it_is_said_whose_side_stays() {
    let mut rig = rig();
    merge(&mut rig);
    let said = rig.revert_test(&["merge", "--on", "top", "--against", "base"]).exits(2);
    assert!(
        said.err.contains("it is a merge; say with --mainline N which parent's side stays"),
        "{}",
        said.err
    );
    assert!(said.err.contains("(main1)") && said.err.contains("(side)"), "{}", said.err);
    assert_eq!(rig.run(&["list"]).exits(0).out, "", "a refused command leaves no session");

    let args = ["merge", "--on", "top", "--against", "base", "--mainline", "1"];
    rig.revert_test(&args).exits(0).tells("RESTORED");
}

#[test]
fn the_blocks_of_a_revert_test_are_interleaved_and_their_order_is_drawn() {
    let mut rig = Rig::new(&Profile { run: COST_RUN.to_owned(), boots: 6, ..Profile::default() });
    let [good, _, _, bad] = two_costs(&mut rig, "7200\n", "200\n");
    rig.revert_test(&["c1", "--on", "c3", "--against", "c0"]).exits(0);
    let order = rig.boot_order("r");
    assert_eq!(order.len(), 18);
    let (_, state, _) = rig.load("r");
    let reverted = state.reverted().expect("it is clean").clone();
    let all = BTreeSet::from([&good, &bad, &reverted]);
    let blocks: Vec<&[CommitId]> = order.chunks(3).collect();
    for block in &blocks {
        assert_eq!(block.iter().collect::<BTreeSet<_>>(), all, "each block holds each kernel once");
    }
    let orders: BTreeSet<&[CommitId]> = blocks.iter().copied().collect();
    assert!(orders.len() >= 3, "{} different orders in 6 blocks", orders.len());

    // Another seed, another order; the same seed, the same.
    let args = ["c1", "--on", "c3", "--against", "c0", "--seed", "2"];
    let profile = rig.profile_path();
    let with = |name: &str, seed: &str| {
        let place = ["--profile", profile.to_str().expect("UTF-8"), "--session", name];
        rig.run(&[&["revert-test"], &args[..6], &[seed], &place].concat()).exits(0);
        rig.boot_order(name)
    };
    assert_eq!(with("same", "1"), order);
    assert_ne!(with("other", "2"), order);
}

#[test]
fn a_commit_that_a_session_named_is_tested_as_that_session_measured() {
    let mut rig = rig();
    let [c0, c1, _, c3] = two_costs(&mut rig, "7200\n", "0\n");
    rig.repo.run(&["update-ref", "refs/heads/tip", c3.as_str()]);
    rig.start("c0", "tip").exits(0).tells("(\"c1\") is the regression");
    // The branch goes on; the session's bad is still what it was.
    rig.repo.run(&["update-ref", "refs/heads/tip", c0.as_str()]);
    let said = rig.run(&["revert-test", c1.short()]).exits(0);
    said.tells("RESTORED").tells(&format!("session revert-{} (rig)", c1.short()));
    let json = rig.json(&format!("revert-{}", c1.short()));
    assert_eq!((&json["good"]["commit"], &json["bad"]["commit"]), (&c0.as_str().into(), &c3.as_str().into()));

    let said = rig.run(&["revert-test", c1.short(), "--budget", "4h"]).exits(2);
    assert!(
        said.err.contains("session s named this commit") && said.err.contains("--profile"),
        "{}",
        said.err
    );
}

#[test]
fn a_revert_test_that_nothing_tells_the_ends_of_is_refused() {
    let mut rig = rig();
    two_costs(&mut rig, "7400\n", "0\n");
    let said = rig.revert_test(&["c1", "--on", "c3"]).exits(2);
    assert!(said.err.contains("--against GOOD is missing"), "{}", said.err);
    let said = rig.revert_test(&["c3", "--on", "c2", "--against", "c0"]).exits(2);
    assert!(said.err.contains("does not contain it"), "{}", said.err);
}

#[test]
fn ends_that_do_not_differ_leave_a_revert_nothing_to_bring_back() {
    let mut rig = rig();
    two_costs(&mut rig, "0\n", "0\n");
    let said = rig.revert_test(&["c1", "--on", "c3", "--against", "c0"]).exits(4);
    said.tells("NO DIFFERENCE");
    assert_eq!(rig.json("r")["conclusion"]["kind"], "no_difference");
}
