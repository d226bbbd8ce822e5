//! Cases of range, history shape and git: each was met by people who bisect performance. The numbers are those of the
//! project's list of cases.

use crate::common::rig::{Profile, QUIET_RUN, RUN, Rig, parents_of};
use sched_bisect::model::CommitId;
use sched_bisect::session::Event;

const FAST: u32 = 100_000;
const SLOW: u32 = 92_600;

/// A run command that is slow only where both files are there, as two changes that hurt together.
const BOTH_RUN: &str = "if [ -e a ] && [ -e b2 ]; then echo 92600; else echo 100000; fi";

/// A build command that fails as the candidate's file `broken` says.
fn build_as_told() -> Option<String> {
    Some("if [ -e broken ]; then cat broken >&2; exit 2; fi".to_owned())
}

/// A line of `count` commits, slow from number `first` on.
fn step(count: usize, first: usize) -> Vec<u32> {
    (0..count).map(|n| if n < first { FAST } else { SLOW }).collect()
}

#[test]
fn swapped_endpoints_are_refused_before_anything_is_written() {
    // Case 1.
    let mut rig = Rig::new(&Profile::default());
    rig.line(&step(9, 5));
    let before = rig.fingerprint();
    let said = rig.start("c7", "c2").exits(2);
    assert!(said.err.contains("swap them") && said.err.contains("--find improvement"), "{}", said.err);
    assert_eq!(said.out, "");
    assert!(!rig.repo.path().join(".git/sched-bisect").exists(), "state was written");
    assert!(rig.fingerprint() == before, "the repository changed");
}

#[test]
fn an_improvement_is_found_and_told_as_the_metrics_own_change() {
    // Case 2, a throughput: 100000 to 106000.
    let mut rig = Rig::new(&Profile { find: "improvement", ..Profile::default() });
    let levels: Vec<u32> = (0..8).map(|n| if n < 5 { FAST } else { 106_000 }).collect();
    let c = rig.line(&levels);
    let said = rig.start("c0", "c7").exits(0);
    said.tells("(\"c5\") is the improvement").tells("nopm +6.0 %").tells("better, against its parent");
    let json = rig.json("s");
    assert_eq!(json["conclusion"]["commit"], c[5].as_str());
    assert_eq!(json["conclusion"]["sense"], "improvement");
    // Positive is worse, in every metric.
    let effect = json["conclusion"]["effect"]["relative"].as_f64().expect("a number");
    assert!((effect + 0.06).abs() < 0.001, "{effect}");
}

#[test]
fn a_shorter_time_is_an_improvement_with_a_negative_change() {
    // Case 2, a time: 4.00 s to 3.20 s.
    let profile =
        Profile { find: "any", direction: "lower", run: QUIET_RUN.to_owned(), ..Profile::default() };
    let mut rig = Rig::new(&profile);
    rig.line(&[4000, 4000, 4000, 3200, 3200]);
    rig.start("c0", "c4").exits(0).tells("(\"c3\") is the improvement").tells("nopm -20.0 %").tells("better");
}

#[test]
fn a_forty_fold_change_prints_as_such() {
    // Case 2: the robot's +3888.9 % for a commit that repaired an earlier regression.
    let profile = Profile { find: "improvement", run: QUIET_RUN.to_owned(), ..Profile::default() };
    let mut rig = Rig::new(&profile);
    rig.line(&[1000, 1000, 39_889, 39_889]);
    let said = rig.start("c0", "c3").exits(0);
    said.tells("(\"c2\") is the improvement").tells("nopm +3888.9 %").tells("better, against its parent");
}

#[test]
fn a_search_without_mention_of_improvements_stops_at_one() {
    // Case 2 the other way, and case 9: the ends differ, but not as asked.
    let mut rig = Rig::new(&Profile::default());
    rig.line(&[FAST, FAST, 106_000]);
    let said = rig.start("c0", "c2").exits(4);
    said.tells("OPPOSITE SIGN: endpoints do not show the asked regression").tells("--find any");
    assert_eq!(rig.json("s")["conclusion"]["kind"], "opposite_sign");
}

/// Base, a side with two commits, a main line with one, and their merge; the merge alone is slow.
fn merge_of_two_good_parents(rig: &mut Rig) -> [CommitId; 5] {
    let base = rig.commit("base", &[], FAST, &[]);
    let s1 = rig.commit("s1", &[&base], FAST, &[("b1", "1")]);
    let s2 = rig.commit("s2", &[&s1], FAST, &[("b2", "2")]);
    let m1 = rig.commit("m1", &[&base], FAST, &[("a", "1")]);
    let merge = rig.commit("merge", &[&m1, &s2], FAST, &[("b1", "1"), ("b2", "2")]);
    rig.repo.check_out(&merge);
    [base, s1, s2, m1, merge]
}

#[test]
fn a_merge_of_two_good_parents_is_named_after_both_were_measured_and_the_way_on_is_told() {
    // Case 4.
    let mut rig = Rig::new(&Profile { run: BOTH_RUN.to_owned(), ..Profile::default() });
    let [_, _, s2, m1, merge] = merge_of_two_good_parents(&mut rig);
    let said = rig.start("base", "merge").exits(0);
    said.tells(
        "(\"merge\") is the regression; it is a merge, and its 2 parents, each measured, do not show it",
    );
    said.tells(&format!("revert-test {} --mainline 1", merge.short()));
    let rebase = format!("git rebase {} {}", m1.short(), s2.short());
    said.tells(&format!("{rebase} && sched-bisect start {} HEAD", m1.short()));

    let (_, state, _) = rig.load("s");
    for parent in [&m1, &s2] {
        let boots = state.boots.iter().filter(|b| b.commit == *parent && b.stage == 1 && !b.runs.is_empty());
        assert!(boots.count() > 0, "fresh boots of {parent}");
    }
    // The told way on does find which commit of the side it is.
    rig.repo.run(&["-c", "user.name=u", "-c", "user.email=e", "rebase", "--quiet", m1.as_str(), s2.as_str()]);
    let said = rig.start_with(&[m1.as_str(), "HEAD", "--session", "rest"]).exits(0);
    said.tells("(\"s2\") is the regression");
}

#[test]
fn a_search_limited_to_paths_does_not_blame_the_neighbour_on_the_path() {
    // Case 7: git bisect names p3.
    let mut rig = Rig::new(&Profile::default());
    let (sched, lib) = ("kernel/sched/fair.c", "lib/string.c");
    let mut last: Option<CommitId> = None;
    for (n, (path, level)) in
        [(sched, FAST), (sched, FAST), (lib, SLOW), (sched, SLOW), (sched, SLOW)].into_iter().enumerate()
    {
        let subject = format!("p{n}");
        let parents: Vec<&CommitId> = parents_of(last.as_ref());
        // The level is part of the tree, but belongs to no path of interest.
        last = Some(rig.commit(&subject, &parents, level, &[(path, &subject)]));
    }
    rig.repo.check_out(&last.expect("five commits"));
    let said = rig.start_with(&["p0", "p4", "--path", "kernel/sched", "--session", "s"]).exits(0);
    said.tells("(\"p2\") is the regression").tells("it is outside the given paths");
    let json = rig.json("s");
    assert_eq!(json["conclusion"]["subject"], "p2");
    assert_eq!(json["conclusion"]["outside_paths"], true);
}

#[test]
fn several_paths_limit_the_search_together() {
    let mut rig = Rig::new(&Profile { run: QUIET_RUN.to_owned(), ..Profile::default() });
    let mut last: Option<CommitId> = None;
    for n in 0..12 {
        let subject = format!("p{n}");
        let path = ["kernel/sched/fair.c", "mm/slab.c", "drivers/net/x.c", "fs/inode.c"][n % 4];
        let parents: Vec<&CommitId> = parents_of(last.as_ref());
        last = Some(rig.commit(&subject, &parents, if n < 9 { FAST } else { SLOW }, &[(path, &subject)]));
    }
    let limits = ["--path", "kernel/sched", "--path", "mm"];
    let args = [&["p0", "p11", "--session", "s"][..], &limits].concat();
    rig.start_with(&args).exits(0).tells("(\"p9\") is the regression");
    let json = rig.json("s");
    let measured: Vec<&str> =
        json["candidates"].as_array().expect("a list").iter().filter_map(|c| c["subject"].as_str()).collect();
    // Those on the paths, the ends, and the culprit's parent (which is off them).
    assert_eq!(measured, ["p0", "p5", "p8", "p9", "p11"]);
}

#[test]
fn of_several_edges_one_is_found_and_the_others_are_not_denied() {
    // Case 8: bad at 2, 3, 6, 7, 8; git bisect names n6 too.
    let mut rig = Rig::new(&Profile::default());
    let bad = [2, 3, 6, 7, 8];
    let mut last: Option<CommitId> = None;
    for n in 0..9 {
        let parents: Vec<&CommitId> = parents_of(last.as_ref());
        let level = if bad.contains(&n) { SLOW } else { FAST };
        last = Some(rig.commit(&format!("n{n}"), &parents, level, &[]));
    }
    let said = rig.start("n0", "n8").exits(0);
    said.tells("(\"n6\") is the regression").tells("one of the edges between n0 and n8");
}

#[test]
fn a_good_commit_after_a_bad_ancestor_is_told_as_a_pair_and_nothing_is_blamed() {
    // Case 8: the step at n2 is repaired at n4, but a side branch forked before the repair.
    let mut rig = Rig::new(&Profile::default());
    let mut n: Vec<CommitId> = Vec::new();
    for at in 0..8 {
        let parent = n.last().cloned();
        let parents: Vec<&CommitId> = parents_of(parent.as_ref());
        n.push(rig.commit(&format!("n{at}"), &parents, if [2, 3].contains(&at) { SLOW } else { FAST }, &[]));
    }
    let side = rig.commit("side", &[&n[3]], SLOW, &[("side", "1")]);
    let merge = rig.commit("merge", &[&n[7], &side], SLOW, &[("side", "1")]);
    rig.commit("last", &[&merge], SLOW, &[]);
    let said = rig.start("n0", "last").exits(9);
    let json = rig.json("s");
    assert_eq!(json["conclusion"]["kind"], "not_monotonic");
    assert_eq!(json["conclusion"]["commit"], serde_json::Value::Null);
    assert_eq!(json["conclusion"]["not_monotonic"][0][0], n[3].as_str());
    let good = json["conclusion"]["not_monotonic"][0][1].as_str().expect("a commit");
    said.tells(&format!("NOT MONOTONIC: {} is bad, its descendant {} good", n[3].short(), &good[..12]));
    // The way on is a range that has the step.
    said.tells(&format!("sched-bisect start n0 {}", n[3].short()));
    rig.start_with(&["n0", n[3].short(), "--session", "on"]).exits(0).tells("(\"n2\") is the regression");
}

#[test]
fn a_change_on_goods_own_branch_is_told_and_not_blamed_on_bads() {
    // Case 5: good is not an ancestor of bad, and what differs happened on the way to good.
    let mut rig = Rig::new(&Profile::default());
    let base = rig.commit("base", &[], SLOW, &[]);
    let fast = rig.commit("fast", &[&base], FAST, &[]);
    rig.commit("good", &[&fast], FAST, &[]);
    let b1 = rig.commit("b1", &[&base], SLOW, &[]);
    let bad = rig.commit("bad", &[&b1], SLOW, &[]);
    rig.repo.check_out(&bad);
    let before = rig.fingerprint();
    let said = rig.start("good", "bad").exits(4);
    said.tells("good is not an ancestor of bad, and their merge base").tells("shows the change already");
    let json = rig.json("s");
    assert_eq!(
        (&json["conclusion"]["kind"], &json["conclusion"]["confirmed"]),
        (&"stopped".into(), &false.into())
    );
    let booted = rig.boot_order("s");
    assert!(!booted.contains(&b1), "the way to bad was searched");
    said.tells(&format!("sched-bisect start {} good --find any", base.short()));
    assert!(rig.fingerprint() == before, "the session's worktree is left");

    rig.profile(&Profile { find: "any", ..Profile::default() });
    rig.start_with(&[base.short(), "good", "--session", "on"])
        .exits(0)
        .tells("(\"fast\") is the improvement");
}

#[test]
fn where_good_is_not_an_ancestor_the_merge_base_is_measured_before_the_search() {
    let mut rig = Rig::new(&Profile::default());
    let base = rig.commit("base", &[], FAST, &[]);
    let good = rig.commit("good", &[&base], FAST, &[]);
    let b1 = rig.commit("b1", &[&base], FAST, &[]);
    let b2 = rig.commit("b2", &[&b1], SLOW, &[]);
    let bad = rig.commit("bad", &[&b2], SLOW, &[]);
    rig.start("good", "bad").exits(0).tells("(\"b2\") is the regression");
    let first = rig.boot_order("s").into_iter().find(|c| *c != good && *c != bad);
    assert_eq!(first, Some(base), "right after the ends");
}

#[test]
fn where_only_unbuildable_commits_are_left_all_of_them_are_suspects() {
    // Case 10.
    let mut rig = Rig::new(&Profile { build: build_as_told(), ..Profile::default() });
    let mut c = rig.line(&[FAST, FAST, FAST]);
    for n in 3..=6 {
        let why = format!("fair.c:{n}: error: no member named 'vlag'\n");
        let level = if n < 5 { FAST } else { SLOW };
        c.push(rig.commit(&format!("c{n}"), &[&c[n - 1]], level, &[("broken", &why)]));
    }
    c.push(rig.repo.commit("c7", &[&c[6]], &[("broken", None)]));
    let said = rig.start(c[1].as_str(), c[7].as_str()).exits(3);
    let json = rig.json("s");
    assert_eq!(json["conclusion"]["kind"], "culprit_set");
    assert_eq!(json["conclusion"]["commit"], serde_json::Value::Null);
    let suspects = json["conclusion"]["suspects"].as_array().expect("a list");
    let named: Vec<&str> = suspects.iter().filter_map(|s| s["commit"].as_str()).collect();
    assert_eq!(named, c[3..=7].iter().map(CommitId::as_str).collect::<Vec<_>>());
    said.tells("the culprit is one of 5 commits");
    for (n, commit) in c.iter().enumerate().take(7).skip(3) {
        said.tells(&format!(
            "{} build: the build command failed with exit 2: fair.c:{n}: error",
            commit.short()
        ));
    }
}

#[test]
fn a_side_branch_that_never_boots_is_left_after_a_few_builds() {
    // Case 11: 200 commits, 40 of them on the side; git's skip drops into the branch again and again.
    let profile = Profile {
        boots: 2,
        boot: Some("! [ -e dead ]".to_owned()),
        run: QUIET_RUN.to_owned(),
        ..Profile::default()
    };
    let mut rig = Rig::new(&profile);
    let mut main = vec![rig.commit("m0", &[], FAST, &[])];
    let level = |n: usize| if n < 90 { FAST } else { SLOW };
    let grow = |rig: &mut Rig, main: &mut Vec<CommitId>, to: usize| {
        while main.len() < to {
            let (n, last) = (main.len(), main[main.len() - 1].clone());
            main.push(rig.commit(&format!("m{n}"), &[&last], level(n), &[]));
        }
    };
    grow(&mut rig, &mut main, 60);
    let mut side = vec![main[40].clone()];
    for n in 0..40 {
        let last = side[side.len() - 1].clone();
        side.push(rig.commit(&format!("side{n}"), &[&last], FAST, &[("dead", "1")]));
    }
    let n = main.len();
    let (left, right) = (main[n - 1].clone(), side[40].clone());
    main.push(rig.commit(&format!("m{n}"), &[&left, &right], level(n), &[("merged", "1")]));
    grow(&mut rig, &mut main, 161);
    let (good, bad) = (main[0].as_str(), main[160].as_str());
    let said = rig.start(good, bad).exits(0);
    said.tells("(\"m90\") is the regression").tells("200 commits");

    let (_, state, _) = rig.load("s");
    let built = |commits: &[CommitId]| commits.iter().filter(|c| state.commits.contains_key(c)).count();
    assert!(built(&side[1..]) <= 6, "{} builds in the branch", built(&side[1..]));
    // log2(200) is 7.6; the ends are two more.
    assert!(state.spent.builds <= 14 + 2, "{} builds", state.spent.builds);
}

#[test]
fn a_branch_that_never_boots_is_offered_as_a_range_to_skip_and_then_left_alone() {
    // Case 11: the merge of the branch shows the change, and nothing on the branch can be measured.
    let profile = Profile {
        boots: 2,
        boot: Some("! [ -e dead ]".to_owned()),
        run: QUIET_RUN.to_owned(),
        ..Profile::default()
    };
    let mut rig = Rig::new(&profile);
    let base = rig.commit("base", &[], FAST, &[]);
    let main = rig.commit("main", &[&base], FAST, &[]);
    let mut side = vec![base.clone()];
    for n in 0..12 {
        let last = side[side.len() - 1].clone();
        side.push(rig.commit(&format!("side{n}"), &[&last], FAST, &[("dead", "1")]));
    }
    let merge = rig.commit("merge", &[&main, &side[12]], SLOW, &[("merged", "1")]);
    let range = format!("{}..{}", base.short(), side[12].short());

    let said = rig.start(base.as_str(), merge.as_str()).exits(3);
    said.tells(&format!("--skip {range}")).tells("12 commits in a row");
    let (_, state, _) = rig.load("s");
    let tried = side[1..].iter().filter(|c| state.commits.contains_key(c)).count();
    assert!((3..=6).contains(&tried), "{tried} tried in the branch");

    let said =
        rig.start_with(&[base.as_str(), merge.as_str(), "--session", "again", "--skip", &range]).exits(3);
    said.tells("left out (--skip)");
    let (_, state, _) = rig.load("again");
    assert!(side[1..].iter().all(|c| !state.commits.contains_key(c)), "the branch is left alone");
    rig.start_with(&[base.as_str(), merge.as_str(), "--session", "wrong", "--skip", "side"]).exits(2);
}

#[test]
fn a_bisection_of_the_users_own_is_left_alone() {
    // Case 17.
    let mut rig = Rig::new(&Profile::default());
    rig.line(&step(9, 5));
    rig.repo.run(&["bisect", "start", "c8", "c0"]);
    rig.repo.run(&["bisect", "good"]);
    let before = rig.fingerprint();
    assert!(before.iter().any(|(name, _)| name == ".git/BISECT_LOG"), "git keeps a log");
    rig.start("c0", "c8").exits(0).tells("(\"c5\") is the regression");
    assert!(rig.fingerprint() == before, "the user's repository changed");
}

#[test]
fn a_shallow_clone_is_refused_from_its_linked_worktree_too() {
    // Case 17: git keeps the mark of a shallow clone in the common directory.
    let mut rig = Rig::new(&Profile::default());
    rig.line(&step(5, 3));
    let shallow = rig.note("shallow");
    let url = format!("file://{}", rig.repo.path().display());
    rig.repo.run(&["clone", "--quiet", "--depth=2", &url, shallow.to_str().expect("UTF-8")]);
    let linked = rig.note("linked");
    let linked = linked.to_str().expect("UTF-8");
    rig.repo.run(&["-C", shallow.to_str().expect("UTF-8"), "worktree", "add", "--quiet", "--detach", linked]);
    for dir in [shallow.to_str().expect("UTF-8"), linked] {
        let said = rig.run(&["--repo", dir, "start", "HEAD~1", "HEAD", "--run", "true"]).exits(2);
        assert!(said.err.contains("shallow clone") && said.err.contains("--unshallow"), "{}", said.err);
    }
}

#[test]
fn a_modified_file_of_the_users_is_still_there_afterwards() {
    // Case 18.
    let mut rig = Rig::new(&Profile::default());
    rig.line(&step(9, 5));
    std::fs::write(rig.repo.path().join("level"), "my edit\n").expect("writes");
    std::fs::write(rig.repo.path().join("new"), "mine\n").expect("writes");
    let before = rig.fingerprint();
    rig.start("c0", "c8").exits(0).tells("(\"c5\") is the regression");
    assert!(rig.fingerprint() == before, "the user's checkout changed");
}

#[test]
fn a_reset_of_gits_bisection_loses_nothing_of_ours() {
    // Case 20.
    let profile = Profile::default();
    let mut rig = Rig::new(&profile);
    let stop = rig.note("stop");
    let c = rig.line(&step(9, 5));
    let run = format!("if [ -e {} ] && [ $SB_COMMIT = {} ]; then exit 127; fi; {RUN}", stop.display(), c[6]);
    rig.profile(&Profile { run, ..profile });
    std::fs::write(&stop, "").expect("writes");
    rig.start("c0", "c8").exits(5);
    let asked_before: Vec<CommitId> = rig.boot_order("s");
    assert_eq!(asked_before.last(), Some(&c[6]));

    rig.repo.run(&["bisect", "start", "c8", "c0"]);
    rig.repo.run(&["bisect", "reset"]);
    std::fs::remove_file(&stop).expect("removes");
    rig.run(&["resume"]).exits(0).tells("(\"c5\") is the regression");
    let asked = rig.boot_order("s");
    assert_eq!(asked[..asked_before.len()], asked_before[..], "what was done stays");
    assert_eq!(asked[asked_before.len()], c[6], "the same candidate comes next");

    let log = rig.run(&["log"]).exits(0);
    let (_, _, records) = rig.load("s");
    assert_eq!(log.out.lines().count(), records.len(), "a line for each step");
    let judged = records.iter().filter(|r| matches!(r.event, Event::Judged { .. })).count();
    assert!(judged >= 3, "{judged} verdicts are in the log");
}
