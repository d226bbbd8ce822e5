//! The kernel builder on a tiny tree that answers like a kernel's.

use crate::common::kernel::{KCONFIG, first_commit, spec};
use crate::common::repo::{Repo, git_in};
use sched_bisect::history::History;
use sched_bisect::lab::kbuild::KbuildBuilder;
use sched_bisect::lab::{BuildJob, Builder};
use sched_bisect::model::{Artifact, BuildResult, CommitId, InfraKind, StepId, UntestableKind};
use sched_bisect::session::{Fixup, Kbuild};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub fn root(repo: &Repo) -> PathBuf {
    repo.path().join(".git/sched-bisect")
}

/// A builder for the session of that name.
pub fn open(repo: &Repo, spec: Kbuild, session: &str) -> KbuildBuilder {
    let session = repo.beside(session);
    fs::create_dir_all(&session).expect("session directory");
    let history = History::open(&repo.path()).expect("opens");
    KbuildBuilder::open(spec, &root(repo), &session, history.common_dir()).expect("a builder")
}

fn job(repo: &Repo, commit: &CommitId) -> BuildJob {
    BuildJob {
        step: StepId(1),
        commit: commit.clone(),
        deadline: Duration::from_secs(60),
        log: repo.beside("build.log"),
    }
}

pub fn log(repo: &Repo) -> String {
    fs::read_to_string(repo.beside("build.log")).expect("a log")
}

pub async fn built(builder: &mut KbuildBuilder, repo: &Repo, commit: &CommitId) -> Artifact {
    match builder.build(&job(repo, commit)).await {
        BuildResult::Built { artifact } => *artifact,
        BuildResult::Untestable(why) => panic!("{why:?}\n{}", log(repo)),
        BuildResult::Infra(why) => panic!("{why:?}\n{}", log(repo)),
    }
}

pub async fn untestable(
    builder: &mut KbuildBuilder,
    repo: &Repo,
    commit: &CommitId,
) -> (UntestableKind, String) {
    match builder.build(&job(repo, commit)).await {
        BuildResult::Untestable(why) => (why.kind, why.reason),
        BuildResult::Built { .. } => panic!("built\n{}", log(repo)),
        BuildResult::Infra(why) => panic!("{why:?}\n{}", log(repo)),
    }
}

pub async fn infra(builder: &mut KbuildBuilder, repo: &Repo, commit: &CommitId) -> (InfraKind, String) {
    match builder.build(&job(repo, commit)).await {
        BuildResult::Infra(why) => (why.kind, why.reason),
        BuildResult::Built { .. } => panic!("built\n{}", log(repo)),
        BuildResult::Untestable(why) => panic!("{why:?}\n{}", log(repo)),
    }
}

fn source(repo: &Repo) -> PathBuf {
    root(repo).join("builder-0/source")
}

fn assert_pristine(repo: &Repo) {
    let output =
        git_in(&source(repo)).args(["status", "--porcelain", "--ignored"]).output().expect("git runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

/// The sources that the last build compiled.
fn compiled(repo: &Repo) -> Vec<String> {
    log(repo).lines().filter_map(|line| line.strip_prefix("  CC      ")).map(str::to_owned).collect()
}

/// The configuration of an artifact, without comments.
pub fn config(artifact: &Artifact) -> String {
    fs::read_to_string(Path::new(&artifact.dir).join("config")).expect("a configuration")
}

/// A compiler that does `script` when it is asked to compile.
fn compiler(repo: &Repo, script: &str) -> String {
    let path = repo.beside("fake-cc");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec cc --version\n[ \"$1\" = -c ] || exec cc \"$@\"\n{script}\n"
    );
    fs::write(&path, text).expect("writes");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("changes the mode");
    format!("CC={}", path.display())
}

fn with_compiler(repo: &Repo, script: &str) -> Kbuild {
    Kbuild { make_args: vec![compiler(repo, script)], ..spec() }
}

/// A patch of one line in `kernel/sched/fair.c`.
fn fixup(from: &CommitId, old: &str, new: &str) -> Fixup {
    let patch = format!(
        "--- a/kernel/sched/fair.c\n+++ b/kernel/sched/fair.c\n@@ -1 +1,2 @@\n-{old}\n+{new}\n+int fixed;\n"
    );
    Fixup { name: "P".to_owned(), patch, from: Some(from.clone()), until: None }
}

#[tokio::test]
async fn an_artifact_names_its_commit_and_carries_what_a_boot_must_prove() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let mut builder = open(&repo, spec(), "s");
    let artifact = built(&mut builder, &repo, &c0).await;
    assert_eq!(artifact.commit, c0);
    assert_eq!(artifact.release, format!("6.15.0-sb-{}", c0.short()), "and no plus sign");
    assert!(artifact.build_id.len() == 40 && artifact.build_id.bytes().all(|b| b.is_ascii_hexdigit()));
    let dir = Path::new(&artifact.dir);
    assert!(dir.is_absolute() && dir.join("build.log").is_file() && dir.join("artifact.json").is_file());
    let image = fs::read(dir.join("image")).expect("an image");
    assert_eq!(artifact.image_hash, blake3::hash(&image).to_hex().to_string());
    assert_eq!(artifact.config_hash, blake3::hash(config(&artifact).as_bytes()).to_hex().to_string());
    assert_eq!(config(&artifact), "CONFIG_HZ=250\n# CONFIG_LOCALVERSION_AUTO is not set\nCONFIG_SMP=y\n");
    assert!(artifact.toolchain.contains("cc") && !artifact.cached && artifact.config_delta.is_empty());
    assert_pristine(&repo);
}

#[tokio::test]
async fn a_broken_commit_is_untestable_with_its_first_error_and_the_next_one_builds() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let c1 = repo.commit("c1", &[&c0], &[("kernel/sched/fair.c", Some("int fair = 1\nint x;\n"))]);
    let c2 = repo.commit("c2", &[&c1], &[("kernel/sched/fair.c", Some("int fair = 2;\n"))]);
    let mut builder = open(&repo, spec(), "s");
    built(&mut builder, &repo, &c0).await;
    let (kind, reason) = untestable(&mut builder, &repo, &c1).await;
    assert_eq!(kind, UntestableKind::Build);
    assert!(reason.starts_with("kernel/sched/fair.c:2:1: error: "), "{reason}");
    assert_eq!(built(&mut builder, &repo, &c2).await.commit, c2);
}

#[tokio::test]
async fn a_step_compiles_only_what_its_commit_changed() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let c1 = repo.commit("c1", &[&c0], &[("kernel/sched/fair.c", Some("int fair = 2;\n"))]);
    let mut builder = open(&repo, spec(), "s");
    built(&mut builder, &repo, &c0).await;
    assert_eq!(compiled(&repo).len(), 2);
    built(&mut builder, &repo, &c1).await;
    assert_eq!(compiled(&repo), ["kernel/sched/fair.o"]);
}

#[tokio::test]
async fn a_fixup_goes_on_where_it_is_needed_is_noted_where_it_is_there_and_is_no_guess_where_it_conflicts() {
    let mut repo = Repo::new();
    let file = "kernel/sched/fair.c";
    let c2 = first_commit(&mut repo, KCONFIG);
    let c3 = repo.commit("c3", &[&c2], &[(file, Some("int fair = 3;\n"))]);
    let c4 = repo.commit("c4", &[&c3], &[("note", Some("4"))]);
    let c5 = repo.commit("c5", &[&c4], &[(file, Some("int fair = 5;\n"))]);
    let c6 = repo.commit("c6", &[&c5], &[(file, Some("int fair = 3;\n"))]);
    let c7 = repo.commit("c7", &[&c6], &[(file, Some("int fair = 7;\nint fixed;\n"))]);
    let fixups = vec![fixup(&c3, "int fair = 3;", "int fair = 7;")];
    let mut builder = open(&repo, Kbuild { fixups, ..spec() }, "s");

    assert!(built(&mut builder, &repo, &c2).await.fixups.is_empty(), "before its range");
    for commit in [&c3, &c4] {
        assert_eq!(built(&mut builder, &repo, commit).await.fixups, ["P: applied"]);
        assert_pristine(&repo);
    }
    let refused = (UntestableKind::FixUp, "fix-up P does not apply".to_owned());
    assert_eq!(untestable(&mut builder, &repo, &c5).await, refused);
    assert_pristine(&repo);
    assert_eq!(built(&mut builder, &repo, &c6).await.fixups, ["P: applied"]);
    assert_eq!(built(&mut builder, &repo, &c7).await.fixups, ["P: already there"]);
    assert_pristine(&repo);
}

#[tokio::test]
async fn a_fixup_ends_where_its_range_ends() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let c1 = repo.commit("c1", &[&c0], &[("note", Some("1"))]);
    let fixups = vec![Fixup { until: Some(c1.clone()), ..fixup(&c0, "int fair = 1;", "int fair = 7;") }];
    let mut builder = open(&repo, Kbuild { fixups, ..spec() }, "s");
    assert_eq!(built(&mut builder, &repo, &c0).await.fixups, ["P: applied"]);
    assert!(built(&mut builder, &repo, &c1).await.fixups.is_empty());
    assert_eq!(compiled(&repo), ["kernel/sched/fair.o"], "the patched file again, now without the patch");
}

#[tokio::test]
async fn a_patched_file_is_not_compiled_again_while_its_content_stays() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let c1 = repo.commit("c1", &[&c0], &[("kernel/sched/core.c", Some("int core = 2;\n"))]);
    let c2 = repo.commit("c2", &[&c1], &[("kernel/sched/core.c", Some("int core = 3;\n"))]);
    let fixups = vec![fixup(&c0, "int fair = 1;", "int fair = 7;")];
    let mut builder = open(&repo, Kbuild { fixups, ..spec() }, "s");
    built(&mut builder, &repo, &c0).await;
    for commit in [&c1, &c2] {
        built(&mut builder, &repo, commit).await;
        assert_eq!(compiled(&repo), ["kernel/sched/core.o"]);
    }
}

#[tokio::test]
async fn a_fixup_that_is_no_patch_is_the_profiles_fault() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let fixups = vec![Fixup { patch: "--- a/x\n+++ b/x\n@@ nonsense\n".to_owned(), ..fixup(&c0, "", "") }];
    let (kind, reason) = infra(&mut open(&repo, Kbuild { fixups, ..spec() }, "s"), &repo, &c0).await;
    assert_eq!(kind, InfraKind::BrokenCommand);
    assert!(reason.contains("fix-up P"), "{reason}");
}

#[tokio::test]
async fn an_artifact_is_reused_only_when_everything_that_decides_it_is_the_same() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let first = built(&mut open(&repo, spec(), "first"), &repo, &c0).await;
    let again = built(&mut open(&repo, spec(), "second"), &repo, &c0).await;
    assert_eq!(again, Artifact { cached: true, ..first.clone() }, "in another session too");
    assert!(compiled(&repo).is_empty() && log(&repo).contains(&first.dir), "the log says where it came from");

    let hz = |hz: &str| Kbuild {
        config: format!("CONFIG_SMP=y\nCONFIG_HZ={hz}\n"),
        required: vec![format!("CONFIG_HZ={hz}")],
        ..spec()
    };
    let others = [
        ("hz", hz("1000")),
        ("patch", Kbuild { fixups: vec![fixup(&c0, "int fair = 1;", "int fair = 2;")], ..spec() }),
        ("compiler", with_compiler(&repo, "exec cc \"$@\"")),
        ("arguments", Kbuild { make_args: vec!["W=1".to_owned()], ..spec() }),
    ];
    for (session, other) in others {
        let artifact = built(&mut open(&repo, other, session), &repo, &c0).await;
        assert!(!artifact.cached && artifact.dir != first.dir, "{session}");
    }
    assert!(config(&built(&mut open(&repo, hz("1000"), "hz"), &repo, &c0).await).contains("CONFIG_HZ=1000"));
}

#[tokio::test]
async fn a_damaged_cache_entry_is_built_again() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let mut builder = open(&repo, spec(), "s");
    let first = built(&mut builder, &repo, &c0).await;
    let file = |name: &str| Path::new(&first.dir).join(name);
    for name in ["image", "config", "artifact.json"] {
        let mut bytes = fs::read(file(name)).expect("reads");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file(name), bytes).expect("writes");
        let again = built(&mut builder, &repo, &c0).await;
        assert_eq!(again, first, "{name}: built, not cached, and the same");
        assert!(log(&repo).contains("is damaged"), "{name}: {}", log(&repo));
        fs::remove_file(file(name)).expect("removes");
        assert!(!built(&mut builder, &repo, &c0).await.cached, "{name} lost");
        assert!(built(&mut builder, &repo, &c0).await.cached, "{name} whole again");
    }
}

#[tokio::test]
async fn each_step_starts_from_the_same_configuration_in_whatever_order_commits_come() {
    let mut repo = Repo::new();
    let with_foo = format!("FOO y\n{KCONFIG}");
    let c0 = first_commit(&mut repo, &with_foo);
    let c4 = repo.commit("c4", &[&c0], &[("Kconfig", Some(KCONFIG))]);
    let c6 = repo.commit("c6", &[&c4], &[("Kconfig", Some(&format!("{with_foo}BAR m\n")))]);
    let wanted = Kbuild { config: "CONFIG_SMP=y\n# CONFIG_FOO is not set\n".to_owned(), ..spec() };
    for order in [[&c0, &c4, &c6], [&c4, &c0, &c6], [&c6, &c4, &c0]] {
        let session = format!("from-{}", order[0].short());
        let mut builder = open(&repo, wanted.clone(), &session);
        for commit in order {
            let artifact = built(&mut builder, &repo, commit).await;
            let has_foo = commit != &c4;
            assert_eq!(config(&artifact).contains("# CONFIG_FOO is not set"), has_foo, "{session}");
            if order[0] == &c0 {
                let delta: &[&str] = match commit {
                    _ if commit == &c4 => &["CONFIG_FOO: n -> absent"],
                    _ if commit == &c6 => &["CONFIG_BAR: absent -> m"],
                    _ => &[],
                };
                assert_eq!(artifact.config_delta, delta);
            }
        }
    }
}

#[tokio::test]
async fn a_required_symbol_that_did_not_survive_makes_a_step_untestable() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let c1 = repo.commit("c1", &[&c0], &[("Kconfig", Some("SMP n\nLOCALVERSION_AUTO y\n"))]);
    let mut builder = open(&repo, spec(), "s");
    built(&mut builder, &repo, &c0).await;
    let (kind, reason) = untestable(&mut builder, &repo, &c1).await;
    assert_eq!((kind, reason.as_str()), (UntestableKind::Config, "CONFIG_HZ is absent, required is 250"));
    assert!(compiled(&repo).is_empty(), "nothing is compiled for it");
}

#[tokio::test]
async fn a_killed_compiler_and_a_full_disk_say_nothing_about_the_commit() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let cases = [
        (
            "killed",
            "echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1",
            InfraKind::Killed,
        ),
        ("killed-itself", "kill -9 $$", InfraKind::Killed),
        ("disk", "echo 'as: /x/fair.o: No space left on device' >&2; exit 1", InfraKind::OutOfDisk),
        ("tool", "echo '/bin/sh: 1: flex: not found' >&2; exit 127", InfraKind::Missing),
    ];
    for (session, script, wanted) in cases {
        let (kind, reason) = infra(&mut open(&repo, with_compiler(&repo, script), session), &repo, &c0).await;
        assert_eq!(kind, wanted, "{session}: {reason}");
    }
}

#[tokio::test]
async fn a_compiler_that_is_not_there_is_missing() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let absent = Kbuild { make_args: vec!["CROSS_COMPILE=no-such-".to_owned()], ..spec() };
    let (kind, reason) = infra(&mut open(&repo, absent, "s"), &repo, &c0).await;
    assert_eq!(kind, InfraKind::Missing);
    assert!(reason.contains("no-such-gcc"), "{reason}");
}

#[tokio::test]
async fn a_build_past_its_deadline_is_ours_and_what_it_left_is_not_used() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    // Hangs on the second source, after it has half-written its object.
    let hang = format!(
        "[ -e {0} ] || case $* in *core.c) echo half > \"$3\"; exec sleep 300;; esac; exec cc \"$@\"",
        repo.beside("go").display()
    );
    let mut builder = open(&repo, with_compiler(&repo, &hang), "s");
    let short = BuildJob { deadline: Duration::from_millis(1500), ..job(&repo, &c0) };
    match builder.build(&short).await {
        BuildResult::Infra(why) => assert_eq!(why.kind, InfraKind::Timeout, "{}", why.reason),
        BuildResult::Built { .. } | BuildResult::Untestable(_) => panic!("not a timeout: {}", log(&repo)),
    }
    fs::write(repo.beside("go"), "").expect("writes");
    built(&mut builder, &repo, &c0).await;
    assert_eq!(compiled(&repo).len(), 2);
}

#[tokio::test]
async fn a_build_that_was_killed_leaves_no_patch_in_the_tree_and_no_object_in_the_next_build() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let c1 = repo.commit("c1", &[&c0], &[("note", Some("1"))]);
    let reached = repo.beside("reached");
    let hang = format!(
        "[ -e {0} ] || case $* in *core.c) echo half > \"$3\"; echo $$ > {0}.tmp; mv {0}.tmp {0}; exec sleep 300;; esac; exec cc \"$@\"",
        reached.display()
    );
    let fixups = vec![Fixup { until: Some(c1.clone()), ..fixup(&c0, "int fair = 1;", "int fair = 7;") }];
    let spec = Kbuild { fixups, ..with_compiler(&repo, &hang) };
    let mut builder = open(&repo, spec, "s");
    let job0 = job(&repo, &c0);
    tokio::select! {
        _ = builder.build(&job0) => panic!("ended: {}", log(&repo)),
        () = exists(&reached) => {}
    }
    let patched = fs::read_to_string(source(&repo).join("kernel/sched/fair.c")).expect("reads");
    assert!(patched.contains("fixed"), "the patch was in the tree when it was killed");
    let pid = fs::read_to_string(&reached).expect("a pid");
    let stat = format!("/proc/{}/stat", pid.trim());
    // Killed it is at once; being gone takes the system a moment.
    let gone = async {
        while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the compiler is ended too");

    let artifact = built(&mut builder, &repo, &c1).await;
    assert!(artifact.fixups.is_empty());
    assert_eq!(compiled(&repo).len(), 2);
    assert_pristine(&repo);
}

#[tokio::test]
async fn what_a_killed_program_left_running_in_its_builder_is_ended_before_the_next_build() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let mut builder = open(&repo, spec(), "s");
    let dir = root(&repo).canonicalize().expect("exists").join("builder-0");
    fs::write(dir.join("unfinished"), "").expect("writes");
    let mut command = tokio::process::Command::new("sleep");
    let mut left = command.arg("300").env("SB_BUILDER_DIR", &dir).kill_on_drop(true).spawn().expect("spawns");
    // The mark is in place once the program runs that was asked for.
    let environment = format!("/proc/{}/environ", left.id().expect("runs"));
    let marked = async {
        while !String::from_utf8_lossy(&fs::read(&environment).expect("reads")).contains("SB_BUILDER_DIR=") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), marked).await.expect("it starts");
    built(&mut builder, &repo, &c0).await;
    assert_eq!(left.wait().await.expect("waits").signal(), Some(9));
}

async fn exists(path: &Path) {
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn builders_of_one_repository_take_a_directory_each_and_give_it_back() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let mut first = open(&repo, spec(), "s");
    let mut second = open(&repo, spec(), "s");
    built(&mut first, &repo, &c0).await;
    assert!(built(&mut second, &repo, &c0).await.cached, "found what the first one built");
    assert!(root(&repo).join("builder-1").is_dir());
    drop(first);
    let third = open(&repo, spec(), "s");
    assert!(!root(&repo).join("builder-2").exists(), "builder-0 was free again");
    drop((second, third));
}

#[tokio::test]
async fn nothing_of_the_callers_environment_reaches_make() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "a variable that cargo gives to its tests");
    built(&mut open(&repo, spec(), "s"), &repo, &c0).await;
    let log = log(&repo);
    let environment: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("env: ")).collect();
    assert!(environment.contains(&"KBUILD_BUILD_HOST=localhost") && environment.contains(&"LC_ALL=C"));
    assert!(
        !environment.iter().any(|line| line.starts_with("CARGO") || line.starts_with("RUST")),
        "{environment:?}"
    );
}

#[test]
fn a_profile_that_takes_over_the_release_is_refused() {
    let mut repo = Repo::new();
    first_commit(&mut repo, KCONFIG);
    let history = History::open(&repo.path()).expect("opens");
    let refuse = |spec: Kbuild| {
        let opened = KbuildBuilder::open(spec, &root(&repo), &repo.path(), history.common_dir());
        opened.err().expect("refused").to_string()
    };
    assert!(
        refuse(Kbuild { make_args: vec!["LOCALVERSION=-x".to_owned()], ..spec() }).contains("LOCALVERSION")
    );
    assert!(refuse(Kbuild { required: vec!["HZ=250".to_owned()], ..spec() }).contains("HZ=250"));
    assert!(refuse(Kbuild { targets: Vec::new(), ..spec() }).contains("target"));
}
