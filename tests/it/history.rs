//! Revisions, ranges, path limits and reverts, held against the git program.

use crate::common::repo::{Files, Repo, assert_ok, git_in};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sched_bisect::history::{History, Range};
use sched_bisect::model::CommitId;
use sched_bisect::session::Revert;
use std::collections::{BTreeMap, BTreeSet};

fn open(repo: &Repo) -> History {
    History::open(&repo.path()).expect("opens")
}

fn range(repo: &Repo, good: &CommitId, bad: &CommitId, paths: &[&str]) -> Range {
    let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
    open(repo).range(good, bad, &paths).expect("a range")
}

fn range_error(repo: &Repo, good: &CommitId, bad: &CommitId, paths: &[&str]) -> String {
    let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
    open(repo).range(good, bad, &paths).expect_err("no range").to_string()
}

/// Subjects of the candidates, in order.
fn candidates(range: &Range) -> Vec<&str> {
    range.dag.nodes().iter().filter(|node| !node.boundary).map(|node| node.subject.as_str()).collect()
}

fn on_path(range: &Range) -> BTreeSet<CommitId> {
    let nodes = range.dag.nodes().iter().filter(|node| node.on_path && !node.boundary);
    nodes.map(|node| node.commit.clone()).collect()
}

fn rev_list(repo: &Repo, args: &[&str]) -> BTreeSet<CommitId> {
    let output = repo.run(&[&["rev-list"], args].concat());
    output.lines().map(|line| CommitId::parse(line).expect("a full id")).collect()
}

#[test]
fn a_repository_is_found_from_below_from_a_linked_worktree_and_bare() {
    let mut repo = Repo::new();
    let c = repo.commit("c0", &[], &[("kernel/sched/fair.c", Some("x"))]);
    repo.check_out(&c);
    let linked = repo.beside("linked");
    repo.run(&["worktree", "add", "--quiet", "--detach", linked.to_str().expect("UTF-8")]);
    let bare = repo.beside("bare.git");
    repo.run(&["clone", "--quiet", "--bare", ".", bare.to_str().expect("UTF-8")]);

    let common = repo.path().join(".git").canonicalize().expect("exists");
    for dir in [repo.path(), repo.path().join("kernel/sched"), repo.path().join(".git"), linked] {
        assert_eq!(History::open(&dir).expect("opens").common_dir(), common, "from {}", dir.display());
    }
    let opened = History::open(&bare).expect("opens");
    assert_eq!(opened.common_dir(), bare.canonicalize().expect("exists"));
    assert_eq!(opened.resolve("main").expect("resolves").commit, c);
}

#[test]
fn a_directory_without_repository_is_named_with_the_option_that_helps() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let error = History::open(dir.path()).err().expect("no repository").to_string();
    assert!(error.contains(dir.path().to_str().expect("UTF-8")) && error.contains("--repo"), "{error}");
}

#[test]
fn a_shallow_clone_is_refused_even_from_its_linked_worktree_and_the_named_command_mends_it() {
    let mut repo = Repo::new();
    let c = repo.linear(3);
    repo.check_out(&c[2]);
    let shallow = repo.beside("shallow");
    let url = format!("file://{}", repo.path().display());
    repo.run(&["clone", "--quiet", "--depth=1", &url, shallow.to_str().expect("UTF-8")]);
    let linked = repo.beside("linked");
    let add = ["worktree", "add", "--quiet", "--detach", linked.to_str().expect("UTF-8")];
    assert_ok(&git_in(&shallow).args(add).output().expect("git runs"));

    for dir in [&shallow, &linked] {
        let error = History::open(dir).err().expect("refused").to_string();
        let (_, command) = error.split_once("complete it with: git ").expect("names a command");
        assert!(command.ends_with("fetch --unshallow"), "{error}");
        if dir == &linked {
            assert_ok(&git_in(dir).args(command.split(' ')).output().expect("git runs"));
        }
    }
    assert!(History::open(&shallow).is_ok());
}

#[test]
fn a_missing_object_of_a_partial_clone_is_explained_and_the_named_command_mends_it() {
    let mut repo = Repo::new();
    let c = repo.linear(3);
    repo.check_out(&c[2]);
    repo.run(&["config", "uploadpack.allowFilter", "true"]);
    let partial = repo.beside("partial.git");
    let url = format!("file://{}", repo.path().display());
    repo.run(&["clone", "--quiet", "--bare", "--filter=tree:0", &url, partial.to_str().expect("UTF-8")]);

    let paths = ["file".to_owned()];
    let whole = History::open(&partial).expect("opens").range(&c[0], &c[2], &[]).expect("needs no tree");
    assert_eq!(whole.dag.candidates(), 2);
    let error = History::open(&partial).expect("opens").range(&c[0], &c[2], &paths).expect_err("no trees");
    let error = error.to_string();
    let (_, command) = error.split_once("complete it with: git ").expect("names a command");
    assert_ok(&git_in(&partial).args(command.split(' ')).output().expect("git runs"));
    let limited = History::open(&partial).expect("opens").range(&c[0], &c[2], &paths).expect("complete now");
    assert_eq!(on_path(&limited).len(), 2);
}

#[test]
fn revisions_resolve_to_commits_and_everything_else_is_refused_with_its_reason() {
    let mut repo = Repo::new();
    let c = repo.linear(3);
    repo.check_out(&c[2]);
    repo.run(&["-c", "tag.gpgSign=false", "tag", "-a", "-m", "a tag", "v6.15", c[1].as_str()]);
    let history = open(&repo);
    let resolve = |rev: &str| history.resolve(rev).map(|endpoint| endpoint.commit);
    assert_eq!(resolve("v6.15").expect("a tag"), c[1]);
    assert_eq!(resolve("HEAD~2").expect("an ancestor"), c[0]);
    assert_eq!(resolve(c[1].short()).expect("an abbreviation"), c[1]);
    assert_eq!(history.resolve("main").expect("a branch").rev, "main");

    let zeros = "0".repeat(40);
    let refused = [
        ("", "empty"),
        ("--all", "option"),
        ("v6.15..main", "range"),
        ("v6.99", "git fetch --tags"),
        (zeros.as_str(), "git fetch --tags"),
        ("main^{tree}", "a tree, not a commit"),
        ("main:file", "a file, not a commit"),
        ("main^{nonsense}", "does not understand"),
    ];
    for (rev, reason) in refused {
        let error = resolve(rev).expect_err(rev).to_string();
        assert!(error.contains(&format!("{rev:?}")) && error.contains(reason), "{rev}: {error}");
    }
}

#[test]
fn an_abbreviation_that_fits_two_objects_is_refused_as_ambiguous() {
    let mut repo = Repo::new();
    // Of that many ids some two share four digits; being fixed, always the same two.
    let c = repo.linear(1100);
    let mut shorts: Vec<&str> = c.iter().map(|id| &id.as_str()[..4]).collect();
    shorts.sort_unstable();
    let twice = shorts.windows(2).find(|pair| pair[0] == pair[1]).expect("fixed ids of which two collide")[0];
    let error = open(&repo).resolve(twice).expect_err("ambiguous").to_string();
    assert!(error.contains("more digits"), "{error}");
}

#[test]
fn swapped_equal_and_unrelated_endpoints_are_refused_with_what_to_do() {
    let mut repo = Repo::new();
    let c = repo.linear(9);
    let swapped = range_error(&repo, &c[7], &c[2], &[]);
    assert!(swapped.contains("swap") && swapped.contains("--find improvement"), "{swapped}");
    assert!(range_error(&repo, &c[3], &c[3], &[]).contains("the same commit"));
    let other = repo.commit("another root", &[], &[("other", Some("x"))]);
    assert!(range_error(&repo, &c[7], &other, &[]).contains("unrelated"));
}

#[test]
fn a_linear_range_lists_its_candidates_parents_first_with_good_as_boundary() {
    let mut repo = Repo::new();
    let c = repo.linear(9);
    let found = range(&repo, &c[2], &c[6], &[]);
    assert_eq!(candidates(&found), ["c3", "c4", "c5", "c6"]);
    assert!(found.merge_bases.is_empty());
    let nodes = found.dag.nodes();
    assert!(nodes[0].boundary && nodes[0].commit == c[2] && nodes[0].parents.is_empty());
    assert_eq!(nodes[1].parents, [0]);
    assert_eq!(nodes.last().expect("not empty").commit, c[6]);
}

#[test]
fn a_merge_keeps_the_order_of_its_parents() {
    let mut repo = Repo::new();
    let base = repo.commit("base", &[], &[("a", Some("1")), ("b", Some("1"))]);
    let s1 = repo.commit("s1", &[&base], &[("b", Some("2"))]);
    let s2 = repo.commit("s2", &[&s1], &[("c", Some("2"))]);
    let m1 = repo.commit("m1", &[&base], &[("a", Some("2"))]);
    let merge = repo.commit("merge", &[&m1, &s2], &[("b", Some("2")), ("c", Some("2"))]);
    let found = range(&repo, &base, &merge, &[]);
    let at = |id: &CommitId| found.dag.index(id).expect("in the range");
    assert_eq!(found.dag.nodes()[at(&merge)].parents, [at(&m1), at(&s2)]);
    assert_eq!(found.dag.candidates(), 4);
    assert_eq!(candidates(&found).last(), Some(&"merge"));
}

#[test]
fn an_octopus_merge_has_all_its_parents() {
    let mut repo = Repo::new();
    let base = repo.commit("base", &[], &[]);
    let arms: Vec<CommitId> = (0..5).map(|n| repo.commit(&format!("arm {n}"), &[&base], &[])).collect();
    let octopus = repo.commit("octopus", &arms.iter().collect::<Vec<_>>(), &[]);
    let found = range(&repo, &base, &octopus, &[]);
    let last = found.dag.nodes().last().expect("not empty");
    assert_eq!((last.commit.clone(), last.parents.len()), (octopus, 5));
    assert_eq!(found.dag.candidates(), 6);
}

#[test]
fn a_side_branch_from_before_good_brings_its_own_boundary() {
    let mut repo = Repo::new();
    let c = repo.linear(4);
    let side = repo.commit("side", &[&c[0]], &[("side", Some("x"))]);
    let merge = repo.commit("merge", &[&c[3], &side], &[("side", Some("x"))]);
    let found = range(&repo, &c[2], &merge, &[]);
    let boundary: BTreeSet<_> =
        found.dag.nodes().iter().filter(|node| node.boundary).map(|node| node.subject.as_str()).collect();
    assert_eq!(boundary, BTreeSet::from(["c0", "c2"]));
    assert!(found.merge_bases.is_empty(), "good is an ancestor of bad");
}

#[test]
fn endpoints_on_two_branches_give_their_merge_base() {
    let mut repo = Repo::new();
    let c = repo.linear(3);
    let good = repo.commit("good", &[&c[1]], &[("g", Some("x"))]);
    let found = range(&repo, &good, &c[2], &[]);
    assert_eq!(found.merge_bases, [c[1].clone()]);
    assert_eq!(candidates(&found), ["c2"]);
    assert!(found.dag.index(&good).is_none());
}

#[test]
fn a_criss_cross_gives_both_merge_bases_as_boundary() {
    let mut repo = Repo::new();
    let root = repo.commit("root", &[], &[]);
    let (a, b) = (repo.commit("a", &[&root], &[]), repo.commit("b", &[&root], &[]));
    let (x, y) = (repo.commit("x", &[&a, &b], &[]), repo.commit("y", &[&b, &a], &[]));
    let (good, bad) = (repo.commit("good", &[&x], &[]), repo.commit("bad", &[&y], &[]));
    let found = range(&repo, &good, &bad, &[]);
    let mut both = [a, b];
    both.sort();
    assert_eq!(found.merge_bases, both);
    for base in both {
        assert!(found.dag.nodes()[found.dag.index(&base).expect("in the graph")].boundary);
    }
}

#[test]
fn a_subject_is_the_joined_first_paragraph_and_need_not_be_utf8() {
    let mut repo = Repo::new();
    let root = repo.commit("root", &[], &[]);
    let odd =
        repo.commit_files(b"sched: caf\xe9\nsecond line\n\nbody", &[&root], Files::new(), 1_704_070_000);
    let none = repo.commit_files(b"", &[&odd], Files::new(), 1_704_070_060);
    let history = open(&repo);
    assert_eq!(history.subject(&odd).expect("reads"), "sched: caf\u{fffd} second line");
    assert_eq!(history.subject(&none).expect("reads"), "");
    assert_eq!(candidates(&range(&repo, &root, &none, &[])), ["sched: caf\u{fffd} second line", ""]);
}

#[test]
fn a_path_limit_marks_commits_and_leaves_the_range_whole() {
    let mut repo = Repo::new();
    let p0 = repo.commit("p0", &[], &[("kernel/sched/fair.c", Some("0")), ("lib/sort.c", Some("0"))]);
    let p1 = repo.commit("p1", &[&p0], &[("kernel/sched/fair.c", Some("1"))]);
    let p2 = repo.commit("p2", &[&p1], &[("lib/sort.c", Some("2"))]);
    let p3 = repo.commit("p3", &[&p2], &[("kernel/sched/fair.c", Some("3"))]);
    let empty = repo.commit("empty", &[&p3], &[]);
    let limited = |paths: &[&str]| {
        let found = range(&repo, &p0, &empty, paths);
        assert_eq!(found.dag.candidates(), 4, "{paths:?}");
        on_path(&found)
    };
    let sched = BTreeSet::from([p1.clone(), p3.clone()]);
    for paths in [
        &["kernel/sched"][..],
        &["./kernel/sched/"],
        &[":/kernel/sched"],
        &["kernel/*.c"],
        &["*fair*"],
        &[":!lib"],
        &[".", ":(exclude)lib/*"],
    ] {
        assert_eq!(limited(paths), sched, "{paths:?}");
    }
    assert_eq!(limited(&["lib/sort.c"]), BTreeSet::from([p2]));
    assert_eq!(limited(&["."]).len(), 3, "an empty commit is on no path");
    assert!(range(&repo, &p0, &empty, &[]).dag.nodes().iter().all(|node| node.on_path));
}

#[test]
fn a_path_limit_that_fits_nothing_is_refused_by_name() {
    let mut repo = Repo::new();
    let a = repo.commit("a", &[], &[("kernel/sched/fair.c", Some("0")), ("lib/sort.c", Some("0"))]);
    let b = repo.commit("b", &[&a], &[("kernel/sched/fair.c", Some("1")), ("gone.c", Some("1"))]);
    let c = repo.commit("c", &[&b], &[("gone.c", None)]);
    let refused = [
        (&["kernel/shed"][..], "kernel/shed"),
        (&["kernel/sched", "*.rs"], "*.rs"),
        (&["lib"], "no commit between good and bad changes anything there"),
        (&["kernel/sched", ":!kernel"], "no commit between good and bad changes anything there"),
        (&["../linux"], "out of the repository"),
        (&["/kernel"], "absolute"),
        (&[""], "empty"),
        (&[":(attr:x)kernel"], "attr:x"),
    ];
    for (paths, reason) in refused {
        let error = range_error(&repo, &a, &c, paths);
        assert!(error.contains(reason), "{paths:?}: {error}");
    }
    assert_eq!(on_path(&range(&repo, &a, &c, &["gone.c"])).len(), 2, "made and removed inside the range");
}

/// A random history: every commit after the first hangs on one to three earlier ones; a merge takes each file from any
/// of its parents or writes it anew. Dates go up with jitter, as in real life.
fn random_history(repo: &mut Repo, rng: &mut StdRng, count: usize) -> Vec<CommitId> {
    const PATHS: [&str; 6] = ["a", "d/a", "d/b", "d/e/x.c", "d.c", "f/x.h"];
    let mut ids: Vec<CommitId> = Vec::new();
    for n in 0..count {
        let mut parents: Vec<CommitId> = Vec::new();
        for _ in 0..rng.random_range(1..=3) {
            if let Some(id) = ids.get(ids.len().saturating_sub(rng.random_range(1..=6)))
                && !parents.contains(id)
            {
                parents.push(id.clone());
            }
        }
        let mut files = Files::new();
        for path in PATHS {
            let from = parents.get(rng.random_range(0..parents.len().max(1)));
            let kept = from.and_then(|id| repo.files(id).get(path).cloned());
            let content = match rng.random_range(0..12) {
                0 => Some(format!("{n}")),
                1 => None,
                2..=5 => Some("common".to_owned()),
                _ => kept,
            };
            if let Some(content) = content {
                files.insert(path.to_owned(), content);
            }
        }
        let date_s = 1_704_067_200 + 60 * i64::try_from(n).expect("small") + rng.random_range(0..200);
        let parents: Vec<&CommitId> = parents.iter().collect();
        ids.push(repo.commit_files(format!("r{n}").as_bytes(), &parents, files, date_s));
    }
    let tags: Vec<String> =
        ids.iter().enumerate().map(|(n, id)| format!("create refs/tags/r{n} {id}\n")).collect();
    repo.pipe(&["update-ref", "--stdin"], &tags.concat());
    ids
}

#[test]
fn ranges_and_path_limits_agree_with_the_git_program_on_random_histories() {
    for seed in 0..12 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut repo = Repo::new();
        let ids = random_history(&mut repo, &mut rng, 50);
        for _ in 0..2 {
            let good = &ids[rng.random_range(0..40)];
            let bad = &ids[rng.random_range(40..50)];
            let span = format!("{good}..{bad}");
            let shown = format!("seed {seed}, {span}");
            let Ok(found) = open(&repo).range(good, bad, &[]) else { panic!("{shown}: no range") };
            let all: BTreeSet<CommitId> =
                found.dag.nodes().iter().filter(|n| !n.boundary).map(|n| n.commit.clone()).collect();
            assert_eq!(all, rev_list(&repo, &[&span]), "{shown}");
            assert_eq!(&found.dag.nodes().last().expect("not empty").commit, bad, "{shown}");
            let bases = repo.run(&["merge-base", "--all", good.as_str(), bad.as_str()]);
            let bases: BTreeSet<&str> = bases.lines().filter(|&line| line != good.as_str()).collect();
            assert_eq!(
                found.merge_bases.iter().map(CommitId::as_str).collect::<BTreeSet<_>>(),
                bases,
                "{shown}"
            );
            check_parents(&repo, &found, &shown);
            check_paths(&repo, good, bad, &shown);
        }
    }
}

fn check_parents(repo: &Repo, found: &Range, shown: &str) {
    let wanted = parents(repo);
    for node in found.dag.nodes().iter().filter(|node| !node.boundary) {
        let parents: Vec<&CommitId> = node.parents.iter().map(|&at| &found.dag.nodes()[at].commit).collect();
        assert_eq!(parents, wanted[&node.commit].iter().collect::<Vec<_>>(), "{shown}: {}", node.commit);
    }
}

/// The parents of every tagged commit and its ancestors.
fn parents(repo: &Repo) -> BTreeMap<CommitId, Vec<CommitId>> {
    let lines = repo.run(&["rev-list", "--parents", "--tags"]);
    let ids =
        |line: &str| line.split(' ').map(|id| CommitId::parse(id).expect("a full id")).collect::<Vec<_>>();
    lines.lines().map(ids).map(|mut ids| (ids.remove(0), ids)).collect()
}

fn check_paths(repo: &Repo, good: &CommitId, bad: &CommitId, shown: &str) {
    let all = rev_list(repo, &[&format!("{good}..{bad}")]);
    let limits: [&[&str]; 9] = [
        &["d"],
        &["a", "f/"],
        &["d.c"],
        &["*.c"],
        &["d*"],
        &["d", ":!d/e"],
        &[":!d"],
        &["d/e/x.c", ":^*.h"],
        &["[af]*"],
    ];
    for paths in limits {
        let wanted = different_from_every_parent(repo, &all, paths);
        let owned: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
        match open(repo).range(good, bad, &owned) {
            Ok(found) => assert_eq!(on_path(&found), wanted, "{shown} {paths:?}"),
            Err(error) => assert!(wanted.is_empty(), "{shown} {paths:?}: {error}"),
        }
    }
}

/// The commits that differ below `paths` from each of their parents, by `git diff-tree`, which prints the commit once
/// for every parent it differs from.
fn different_from_every_parent(repo: &Repo, all: &BTreeSet<CommitId>, paths: &[&str]) -> BTreeSet<CommitId> {
    let ids: String = all.iter().map(|id| format!("{id}\n")).collect();
    let text = repo.pipe(&[&["diff-tree", "--stdin", "--root", "-m", "-r", "--"], paths].concat(), &ids);
    let differs_from = |id: &CommitId| text.lines().filter(|line| line.starts_with(id.as_str())).count();
    let parents = parents(repo);
    all.iter().filter(|id| differs_from(id) == parents[id].len().max(1)).cloned().collect()
}

#[test]
fn touched_paths_are_those_that_git_show_lists() {
    for seed in 0..4 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut repo = Repo::new();
        for id in random_history(&mut repo, &mut rng, 20) {
            let shown = repo.run(&["show", "--name-only", "--no-renames", "--format=", id.as_str()]);
            let touched = open(&repo).touched_paths(&id).expect("reads");
            assert_eq!(touched, shown.lines().collect::<Vec<_>>(), "seed {seed}, {id}");
        }
    }
}

#[test]
fn ancestry_counts_the_commit_itself() {
    let mut repo = Repo::new();
    let c = repo.linear(3);
    let history = open(&repo);
    let is = |a: &CommitId, b: &CommitId| history.is_ancestor(a, b).expect("reads");
    assert!(is(&c[0], &c[2]) && is(&c[1], &c[1]) && !is(&c[2], &c[0]));
}

#[test]
fn a_clean_revert_is_the_same_commit_each_time_and_reads_as_gits_own() {
    let mut repo = Repo::new();
    let a = repo.commit("a", &[], &[("x", Some("1\n")), ("y", Some("1\n"))]);
    let b = repo.commit("b: speed up", &[&a], &[("x", Some("2\n"))]);
    let c = repo.commit("c", &[&b], &[("y", Some("2\n"))]);
    let revert = |commit: &CommitId, on: &CommitId| match open(&repo).revert(commit, on, None) {
        Ok(Revert::Clean { commit }) => commit,
        other => panic!("not clean: {other:?}"),
    };
    let first = revert(&b, &c);
    assert_eq!(revert(&b, &c), first, "the same twice");
    let twice = revert(&first, &first);

    repo.check_out(&c);
    repo.run(&["revert", "--no-edit", b.as_str()]);
    let describe = |rev: &str| repo.run(&["show", "--no-patch", "--format=%T %P%n%B", rev]);
    assert_eq!(describe(first.as_str()), describe("HEAD"));
    let message = repo.run(&["show", "--no-patch", "--format=%B", twice.as_str()]);
    assert!(message.starts_with("Reapply \"b: speed up\"\n\nThis reverts commit "), "{message}");
}

#[test]
fn a_conflicting_revert_lists_its_files_and_leaves_nothing_behind() {
    let mut repo = Repo::new();
    let c4 = repo.commit("c4", &[], &[("z", Some("1\n")), ("fair.c", Some("1\n"))]);
    let c5 = repo.commit("c5", &[&c4], &[("z", Some("2\n")), ("fair.c", Some("2\n"))]);
    let c6 = repo.commit("c6", &[&c5], &[("z", Some("3\n")), ("fair.c", None)]);
    let c8 = repo.commit("c8", &[&c6], &[("other", Some("1\n"))]);
    repo.check_out(&c8);
    let revert = open(&repo).revert(&c5, &c8, None).expect("tries");
    assert_eq!(revert, Revert::Conflicts { files: vec!["fair.c".to_owned(), "z".to_owned()] });
    assert_eq!(repo.run(&["status", "--porcelain"]), "");
    assert!(!repo.path().join(".git/REVERT_HEAD").exists());
}

#[test]
fn a_revert_of_what_is_gone_already_changes_nothing() {
    let mut repo = Repo::new();
    let a = repo.commit("a", &[], &[("x", Some("1\n"))]);
    let b = repo.commit("b", &[&a], &[("x", Some("2\n"))]);
    let c = repo.commit("c", &[&b], &[("x", Some("1\n"))]);
    let revert = open(&repo).revert(&b, &c, None).expect("tries");
    assert_eq!(revert, Revert::AlreadyReverted);
}

#[test]
fn a_merge_is_reverted_only_with_a_valid_mainline() {
    let mut repo = Repo::new();
    let base = repo.commit("base", &[], &[("a", Some("1\n"))]);
    let main = repo.commit("main side", &[&base], &[("m", Some("1\n"))]);
    let side = repo.commit("topic side", &[&base], &[("s", Some("1\n"))]);
    let merge = repo.commit("merge", &[&main, &side], &[("s", Some("1\n"))]);
    let history = open(&repo);
    let error = |mainline| history.revert(&merge, &merge, mainline).expect_err("refused").to_string();
    for mainline in [None, Some(0), Some(3)] {
        let text = error(mainline);
        assert!(
            text.contains("--mainline") && text.contains("main side") && text.contains("topic side"),
            "{text}"
        );
    }
    let Ok(Revert::Clean { commit }) = history.revert(&merge, &merge, Some(1)) else { panic!("not clean") };
    assert_eq!(history.touched_paths(&commit).expect("reads"), ["s"]);
    let message = repo.run(&["show", "--no-patch", "--format=%B", commit.as_str()]);
    assert!(message.contains(&format!("{merge}, reversing\nchanges made to {main}.")), "{message}");

    let text = history.revert(&side, &merge, Some(1)).expect_err("no merge").to_string();
    assert!(text.contains("not a merge"), "{text}");
    let text = history.revert(&side, &main, None).expect_err("not in there").to_string();
    assert!(text.contains("does not contain it"), "{text}");
}
