//! The private worktree: exact after every accident, and the user's own things untouched.

use crate::common::repo::{Repo, git_in};
use sched_bisect::history::{Clean, History, Worktree};
use sched_bisect::model::CommitId;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

fn worktree(repo: &Repo) -> Worktree {
    let history = History::open(&repo.path()).expect("opens");
    Worktree::open(history.common_dir(), &repo.beside("builder-0/source"), Vec::new()).expect("a place")
}

/// Our entry in the repository.
fn entry(repo: &Repo) -> PathBuf {
    repo.path().join(".git/worktrees/source")
}

/// Asserts that the worktree holds exactly the commit.
fn assert_at(worktree: &Worktree, commit: &CommitId) {
    let git = |args: &[&str]| {
        let output = git_in(worktree.path()).args(args).output().expect("git runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(git(&["rev-parse", "HEAD"]), commit.as_str());
    assert_eq!(git(&["status", "--porcelain", "--ignored"]), "");
}

/// Every file below `top` with its content, but for what `skip` names.
fn snapshot(top: &Path, skip: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![top.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).expect("readable") {
            let path = entry.expect("readable").path();
            let relative = path.strip_prefix(top).expect("below");
            if skip.iter().any(|name| relative == Path::new(name)) {
                continue;
            }
            if path.is_dir() {
                left.push(path);
            } else {
                found.insert(relative.to_owned(), fs::read(&path).expect("readable"));
            }
        }
    }
    found
}

/// Two commits that differ in one of two files.
fn two_commits(repo: &mut Repo) -> [CommitId; 2] {
    let a = repo.commit(
        "a",
        &[],
        &[("same.c", Some("same")), ("kernel/fair.c", Some("1")), (".gitignore", Some("*.o\n"))],
    );
    let b = repo.commit("b", &[&a], &[("kernel/fair.c", Some("2"))]);
    repo.check_out(&b);
    [a, b]
}

#[tokio::test]
async fn a_checkout_is_exact_and_leaves_the_times_of_unchanged_files() {
    let mut repo = Repo::new();
    let [a, b] = two_commits(&mut repo);
    let worktree = worktree(&repo);
    worktree.checkout(&a, Clean::All).await.expect("checks out");
    assert_at(&worktree, &a);
    let times = || {
        let found = fs::metadata(worktree.path().join("same.c")).expect("exists");
        (found.modified().expect("has one"), found.ctime_nsec())
    };
    let before = times();

    fs::write(worktree.path().join("product.o"), "x").expect("writes");
    fs::write(worktree.path().join("stray"), "x").expect("writes");
    worktree.checkout(&b, Clean::Untracked).await.expect("checks out");
    assert!(worktree.path().join("product.o").exists() && !worktree.path().join("stray").exists());
    worktree.checkout(&b, Clean::All).await.expect("checks out");
    assert_at(&worktree, &b);
    assert_eq!(times(), before, "git did not write it again");
}

#[tokio::test]
async fn edits_and_directories_in_the_way_are_overwritten() {
    let mut repo = Repo::new();
    let [a, b] = two_commits(&mut repo);
    let worktree = worktree(&repo);
    worktree.checkout(&a, Clean::All).await.expect("checks out");
    fs::write(worktree.path().join("same.c"), "edited").expect("writes");
    fs::remove_file(worktree.path().join("kernel/fair.c")).expect("removes");
    fs::create_dir_all(worktree.path().join("kernel/fair.c/nested")).expect("makes");
    fs::write(worktree.path().join("kernel/fair.c/nested/file"), "x").expect("writes");
    worktree.checkout(&b, Clean::All).await.expect("checks out");
    assert_at(&worktree, &b);
}

#[tokio::test]
async fn every_broken_state_is_mended_by_the_next_checkout() {
    type Break = fn(&Repo, &Path);
    let accidents: [(&str, Break); 9] = [
        ("stale lock", |repo, _| fs::write(entry(repo).join("index.lock"), "").expect("writes")),
        ("directory deleted", |_, path| fs::remove_dir_all(path).expect("removes")),
        ("link damaged", |_, path| fs::write(path.join(".git"), "gitd").expect("writes")),
        ("link deleted", |_, path| fs::remove_file(path.join(".git")).expect("removes")),
        ("entry deleted", |repo, _| fs::remove_dir_all(entry(repo)).expect("removes")),
        ("head torn", |repo, _| fs::write(entry(repo).join("HEAD"), "").expect("writes")),
        ("index torn", |repo, _| fs::write(entry(repo).join("index"), "DIRC").expect("writes")),
        ("commondir lost", |repo, _| fs::remove_file(entry(repo).join("commondir")).expect("removes")),
        ("killed while adding", |repo, path| {
            // What `git worktree add` has written before it names the path.
            fs::remove_dir_all(entry(repo)).expect("removes");
            fs::create_dir(entry(repo)).expect("makes");
            fs::write(entry(repo).join("locked"), "initializing").expect("writes");
            fs::remove_dir_all(path).expect("removes");
            fs::create_dir(path).expect("makes");
            fs::write(path.join(".git"), format!("gitdir: {}\n", entry(repo).display())).expect("writes");
        }),
    ];
    for (name, accident) in accidents {
        let mut repo = Repo::new();
        let [a, b] = two_commits(&mut repo);
        let worktree = worktree(&repo);
        worktree.checkout(&a, Clean::All).await.expect("checks out");
        accident(&repo, worktree.path());
        let again = worktree.checkout(&b, Clean::All).await;
        assert!(again.is_ok(), "{name}: {again:?}");
        assert_at(&worktree, &b);
        let listed = repo.run(&["worktree", "list", "--porcelain"]);
        assert_eq!(listed.matches("worktree ").count(), 2, "{name}: {listed}");
    }
}

#[tokio::test]
async fn foreign_files_at_its_place_are_never_deleted() {
    let mut repo = Repo::new();
    let [a, _] = two_commits(&mut repo);
    let worktree = worktree(&repo);
    fs::create_dir_all(worktree.path()).expect("makes");
    fs::write(worktree.path().join("thesis.tex"), "years of work").expect("writes");
    let error = worktree.checkout(&a, Clean::All).await.expect_err("refused").to_string();
    assert!(error.contains("move them away"), "{error}");
    assert!(worktree.path().join("thesis.tex").exists());
}

#[tokio::test]
async fn a_removed_worktree_leaves_neither_files_nor_entry() {
    let mut repo = Repo::new();
    let [a, _] = two_commits(&mut repo);
    let worktree = worktree(&repo);
    worktree.checkout(&a, Clean::All).await.expect("checks out");
    let path = worktree.path().to_owned();
    worktree.remove().await.expect("removes");
    assert!(!path.exists() && !entry(&repo).exists());
}

#[tokio::test]
async fn hooks_filters_and_habits_of_the_user_do_not_reach_it() {
    let mut repo = Repo::new();
    let [a, _] = two_commits(&mut repo);
    let hook = repo.path().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().expect("has one")).expect("makes");
    fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", repo.beside("hook-ran").display())).expect("writes");
    assert!(std::process::Command::new("chmod").arg("+x").arg(&hook).status().expect("runs").success());
    for setting in ["core.autocrlf", "core.sparseCheckout", "core.fsmonitor"] {
        repo.run(&["config", setting, "true"]);
    }
    fs::create_dir_all(repo.path().join(".git/info")).expect("makes");
    fs::write(repo.path().join(".git/info/sparse-checkout"), "/kernel/\n").expect("writes");
    let worktree = worktree(&repo);
    worktree.checkout(&a, Clean::All).await.expect("checks out");
    assert_eq!(fs::read_to_string(worktree.path().join("same.c")).expect("is there"), "same");
    assert_eq!(fs::read_to_string(worktree.path().join(".gitignore")).expect("is there"), "*.o\n");
    assert!(!repo.beside("hook-ran").exists());
}

#[tokio::test]
async fn the_users_edits_index_refs_and_bisection_stay_byte_for_byte() {
    let mut repo = Repo::new();
    let c = repo.linear(8);
    repo.check_out(&c[7]);
    repo.run(&["bisect", "start", c[7].as_str(), c[0].as_str()]);
    fs::write(repo.path().join("file"), "an edit in work").expect("writes");
    fs::write(repo.path().join("untracked"), "notes").expect("writes");
    repo.run(&["stash", "list"]);
    let git_before = snapshot(&repo.path().join(".git"), &["objects", "worktrees", "sched-bisect"]);
    let files_before = snapshot(&repo.path(), &[".git"]);

    let history = History::open(&repo.path()).expect("opens");
    history.range(&c[0], &c[7], &["file".to_owned()]).expect("a range");
    history.revert(&c[7], &c[7], None).expect("reverts");
    let worktree = worktree(&repo);
    for commit in [&c[3], &c[5], &c[0]] {
        worktree.checkout(commit, Clean::All).await.expect("checks out");
        assert_at(&worktree, commit);
    }
    assert_eq!(snapshot(&repo.path().join(".git"), &["objects", "worktrees", "sched-bisect"]), git_before);
    worktree.remove().await.expect("removes");

    assert_eq!(snapshot(&repo.path(), &[".git"]), files_before);
    let now = snapshot(&repo.path().join(".git"), &["objects", "worktrees", "sched-bisect"]);
    assert_eq!(now, git_before);
    assert!(repo.run(&["bisect", "log"]).contains("git bisect start"));
}
