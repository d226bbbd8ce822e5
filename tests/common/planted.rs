//! A real kernel's tree with a short line of commits on it, for kernels that are built, installed and booted.
//!
//! Made in a clone that borrows the objects of a tree of demo/make-history.sh and has no checkout; names and dates are
//! fixed, so that the same tree gives the same commits, and a second run finds its kernels built.

use super::repo::{assert_ok, git_in};
use git2::{Oid, Repository, Signature, Time};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the line begins.
const BASE: &str = "v6.12-demo-good";

/// 2025-01-01 00:00:00 UTC, in seconds.
const EPOCH_S: i64 = 1_735_689_600;

/// Compiled in a second; each commit but the culprit changes it.
const SMALL: &str = "lib/ctype.c";

const SCHEDULER: &str = "kernel/sched/core.c";

/// Behind this the culprit's loop stands.
const IN_SCHEDULE: &str = "\tschedule_debug(prev, preempt);\n";

/// An emulated processor does it in a millisecond or two. One of 100,000 turns was lost in what a busy host does to
/// the emulated clock.
const SLOW: &str = "\tfor (int turn = 0; turn < 1000000; turn++)\n\t\tbarrier();\n";

const PANICS: &str = "\n#include <linux/init.h>\n#include <linux/panic.h>\nstatic int __init lab_dies(void)\n{\n\
                      \tpanic(\"planted\");\n\treturn 0;\n}\nlate_initcall(lab_dies);\n";

/// The line: "c0", which is where it begins, to "c4".
pub struct Planted {
    /// The clone.
    pub dir: PathBuf,
    /// All commits, by number.
    pub commits: Vec<String>,
}

/// The number of the commit whose kernel does not boot; the next one boots again.
pub const DIES: usize = 2;

/// The number of the commit that makes every switch of tasks slow.
pub const CULPRIT: usize = 4;

/// The last one: each further kernel would cost boots, which are what takes the time.
const LAST: usize = CULPRIT;

/// Makes the line at `dir`, of the tree `from`, or finds it there.
pub fn planted(from: &Path, dir: &Path) -> Planted {
    if !dir.join(".git").is_dir() {
        let parent = dir.parent().expect("is no root");
        fs::create_dir_all(parent).expect("makes");
        let mut clone = git_in(parent);
        clone.args(["clone", "--quiet", "--shared", "--no-checkout", "--template="]).arg(from).arg(dir);
        assert_ok(&clone.output().expect("git runs"));
    }
    let git = Repository::open(dir).expect("opens");
    let base =
        git.revparse_single(BASE).expect("make-history.sh tags it").peel_to_commit().expect("a commit");
    let mut commits = vec![base.id()];
    for number in 1..=LAST {
        commits.push(commit(&git, *commits.last().expect("has the base"), number));
    }
    for (number, id) in commits.iter().enumerate() {
        git.reference(&format!("refs/tags/c{number}"), *id, true, "planted").expect("writes");
    }
    Planted { dir: dir.to_owned(), commits: commits.iter().map(Oid::to_string).collect() }
}

fn commit(git: &Repository, parent: Oid, number: usize) -> Oid {
    let parent = git.find_commit(parent).expect("was just made");
    let tree = parent.tree().expect("has one");
    let base = git.revparse_single(BASE).expect("is there").peel_to_tree().expect("a tree");
    let mut update = git2::build::TreeUpdateBuilder::new();
    if number == CULPRIT {
        let source = read(git, &tree, SCHEDULER);
        let (before, after) = source.split_once(IN_SCHEDULE).expect("the scheduler has it");
        let slow = format!("{before}{IN_SCHEDULE}{SLOW}{after}");
        update.upsert(SCHEDULER, blob(git, &slow), git2::FileMode::Blob);
    } else {
        let more = if number == DIES { PANICS } else { "" };
        let plain = read(git, &base, SMALL);
        let text = format!("{plain}\nconst int lab_change __attribute__((used)) = {number};\n{more}");
        update.upsert(SMALL, blob(git, &text), git2::FileMode::Blob);
    }
    let tree = update.create_updated(git, &tree).expect("writes a tree");
    let tree = git.find_tree(tree).expect("was just made");
    let at = Time::new(EPOCH_S + 60 * i64::try_from(number).expect("is small"), 0);
    let who = Signature::new("A U Thor", "author@example.com", &at).expect("a signature");
    let subject = match number {
        DIES => "lib: say who we are at boot".to_owned(),
        CULPRIT => "sched: settle before a switch".to_owned(),
        _ => format!("lib: change {number}"),
    };
    git.commit(None, &who, &who, &subject, &tree, &[&parent]).expect("commits")
}

fn blob(git: &Repository, text: &str) -> Oid {
    git.blob(text.as_bytes()).expect("writes a blob")
}

fn read(git: &Repository, tree: &git2::Tree<'_>, path: &str) -> String {
    let entry = tree.get_path(Path::new(path)).expect("the kernel has it");
    let blob = git.find_blob(entry.id()).expect("is a file");
    String::from_utf8(blob.content().to_vec()).expect("UTF-8")
}
