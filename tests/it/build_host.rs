//! Kernels built on another machine, over a real sshd and a network that is cut, on a tiny tree that answers like a kernel's.

use crate::common::kernel::{KCONFIG, first_commit, spec};
use crate::common::repo::Repo;
use crate::common::rig::said;
use crate::common::two::{Lab, ok, wait_for};
use crate::kbuild::{built, config, infra, log, open, root, untestable};
use sched_bisect::lab::kbuild::{BuildHost, KbuildBuilder};
use sched_bisect::lab::ssh::{Access, HostKeys, Wires};
use sched_bisect::model::{CommitId, InfraKind, UntestableKind};
use sched_bisect::session::Kbuild;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine that builds, and a repository here.
struct Scene {
    lab: Lab,
    repo: Repo,
    c0: CommitId,
}

impl Scene {
    fn new(test: &str) -> Option<Self> {
        let lab = Lab::new(test, &[])?;
        lab.enter();
        let mut repo = Repo::new();
        let c0 = first_commit(&mut repo, &format!("{KCONFIG}MODULES n\n"));
        Some(Self { lab, repo, c0 })
    }

    fn host(&self, session: &str) -> BuildHost {
        let access = Access {
            identity: Some(self.lab.path("user")),
            known_hosts: self.lab.path("hosts"),
            host_keys: HostKeys::Add,
            jump: Vec::new(),
            config: None,
        };
        let wires = Wires::new(access, &self.repo.beside(session)).expect("there is a place for connections");
        BuildHost::new(
            wires,
            "ssh://root@10.9.1.2".parse().expect("an address"),
            &self.dir().display().to_string(),
        )
    }

    /// Where it builds, which is a directory of this host's too.
    fn dir(&self) -> PathBuf {
        self.lab.path("builds")
    }

    fn builder(&self, spec: Kbuild, session: &str) -> KbuildBuilder {
        open(&self.repo, spec, session).on(self.host(session))
    }

    /// The builder's directory there.
    fn there(&self) -> PathBuf {
        let repositories =
            fs::read_dir(self.dir()).expect("it built").map(|entry| entry.expect("reads").path());
        let found: Vec<PathBuf> = repositories.collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].join("builder-0")
    }

    fn change(&mut self, parent: &CommitId, content: &str) -> CommitId {
        self.repo.commit("c1", &[parent], &[("kernel/sched/fair.c", Some(content))])
    }
}

fn with_modules() -> Kbuild {
    Kbuild { modules: true, config: "CONFIG_SMP=y\nCONFIG_MODULES=y\n".to_owned(), ..spec() }
}

fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// The sources that the last build compiled.
fn compiled(scene: &Scene) -> Vec<String> {
    log(&scene.repo).lines().filter_map(|line| line.strip_prefix("  CC      ")).map(str::to_owned).collect()
}

#[test]
fn a_kernel_built_elsewhere_is_the_one_built_here() {
    let Some(scene) = Scene::new("a_kernel_built_elsewhere") else { return };
    on_one_thread(async {
        let far = built(&mut scene.builder(with_modules(), "far"), &scene.repo, &scene.c0).await;
        fs::remove_dir_all(&far.dir).expect("so that it is built again");
        assert!(log(&scene.repo).contains("on ssh://root@10.9.1.2: make "), "{}", log(&scene.repo));
        let kept = far.clone();
        let near = built(&mut open(&scene.repo, with_modules(), "near"), &scene.repo, &scene.c0).await;
        assert_eq!((near.build_id, near.release, near.packed), (kept.build_id, kept.release, kept.packed));
        assert_eq!((near.image_hash, near.config_hash), (kept.image_hash, kept.config_hash));
        assert!(!scene.there().join("source/.git").exists(), "history stays here");
    });
}

#[test]
fn only_what_changed_is_compiled_there_whatever_the_clock_here_says() {
    let Some(mut scene) = Scene::new("only_what_changed") else { return };
    let c0 = scene.c0.clone();
    let c1 = scene.change(&c0, "int fair = 2;\n");
    on_one_thread(async {
        let mut builder = scene.builder(with_modules(), "s");
        let first = built(&mut builder, &scene.repo, &c0).await;
        let all = compiled(&scene);
        assert!(all.len() > 1, "{all:?}");
        // As if what lies here unchanged were written by a clock an hour ahead of that machine's.
        let here = root(&scene.repo).join("builder-0/source");
        let later = Command::new("find")
            .arg(&here)
            .args(["-type", "f", "-exec", "touch", "-d", "+1 hour", "{}", "+"])
            .output();
        ok(&later.expect("runs"));
        let second = built(&mut builder, &scene.repo, &c1).await;
        assert_ne!(first.build_id, second.build_id, "the change is in the kernel\n{}", log(&scene.repo));
        assert!(compiled(&scene).iter().all(|file| file.contains("fair")), "{:?}", compiled(&scene));
        // And what did change has that machine's time: by ours it could be older than what was made of it.
        let time =
            |source: &Path| fs::metadata(source.join("kernel/sched/fair.c")).and_then(|file| file.modified());
        assert_ne!(time(&scene.there().join("source")).expect("a time"), time(&here).expect("a time"));
        assert!(config(&second).contains("CONFIG_SMP=y"));
    });
}

#[test]
fn a_link_that_is_cut_during_a_build_costs_no_build() {
    let Some(scene) = Scene::new("a_link_that_is_cut_during_a_build") else { return };
    let (begun, go) = (scene.repo.beside("begun"), scene.repo.beside("go"));
    let script = format!(
        "echo x >>{}; while [ ! -e {} ]; do sleep 0.05; done; exec cc \"$@\"",
        begun.display(),
        go.display()
    );
    let spec = Kbuild { jobs: 1, make_args: vec![compiler(&scene.repo, &script)], ..spec() };
    let artifact = std::thread::scope(|threads| {
        threads.spawn(|| {
            wait_for("a compiler that runs", || begun.exists().then_some(()));
            scene.lab.cut_off("sut");
            std::thread::sleep(std::time::Duration::from_secs(25));
            scene.lab.reconnect("sut");
            fs::write(&go, "").expect("writes");
        });
        on_one_thread(async { built(&mut scene.builder(spec, "s"), &scene.repo, &scene.c0).await })
    });
    assert!(artifact.release.ends_with(scene.c0.short()));
    assert_eq!(log(&scene.repo).matches(" bzImage").count(), 1, "asked for once\n{}", log(&scene.repo));
}

#[test]
fn a_build_that_was_killed_is_ended_there_and_begun_anew() {
    let Some(scene) = Scene::new("a_build_that_was_killed") else { return };
    let (begun, go) = (scene.repo.beside("begun"), scene.repo.beside("go"));
    let script = format!(
        "echo $$ >>{}; while [ ! -e {} ]; do sleep 0.05; done; exec cc \"$@\"",
        begun.display(),
        go.display()
    );
    let spec = Kbuild { jobs: 1, make_args: vec![compiler(&scene.repo, &script)], ..spec() };
    // Numbers of that machine's own.
    let is_there =
        |pid: &str| scene.lab.on("sut", "kill").args(["-0", pid]).output().expect("runs").status.success();
    let running = |pids: &str| pids.lines().any(is_there);
    on_one_thread(async {
        let mut builder = scene.builder(spec.clone(), "s");
        let looked = async {
            while !begun.exists() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            _ = built(&mut builder, &scene.repo, &scene.c0) => panic!("it waits for us"),
            () = looked => {}
        }
        drop(builder);
        let left = lab_pids(&begun);
        assert!(running(&left), "a job outlives its link");
        scene.host("s").end_jobs(&builders(&scene.repo), &scene.repo.beside("s")).await.expect("is up");
        assert!(!running(&left), "an interruption ends it");
        fs::write(&go, "").expect("writes");
        built(&mut scene.builder(spec, "s"), &scene.repo, &scene.c0).await;
        assert!(compiled(&scene).len() > 1, "all of it: {:?}", compiled(&scene));
    });
}

#[test]
fn what_fails_there_is_told_as_the_commits_or_ours() {
    let Some(mut scene) = Scene::new("what_fails_there") else { return };
    let c0 = scene.c0.clone();
    let broken = scene.change(&c0, "int fair = ;\n");
    on_one_thread(async {
        let mut builder = scene.builder(spec(), "s");
        let (kind, reason) = untestable(&mut builder, &scene.repo, &broken).await;
        assert_eq!(kind, UntestableKind::Build);
        assert!(reason.starts_with("kernel/sched/fair.c:1:"), "without the directory there: {reason}");
        let absent = Kbuild { make_args: vec!["CC=no-such-cc".to_owned()], ..spec() };
        let (kind, reason) = infra(&mut scene.builder(absent, "t"), &scene.repo, &c0).await;
        assert_eq!(kind, InfraKind::Missing);
        assert!(reason.contains("no-such-cc is not installed"), "{reason}");
    });
}

fn builders(repo: &Repo) -> PathBuf {
    root(repo).canonicalize().expect("is there")
}

fn lab_pids(path: &Path) -> String {
    fs::read_to_string(path).expect("a compiler ran")
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

#[test]
fn a_machine_without_room_is_ours() {
    let Some(scene) = Scene::new("a_machine_without_room") else { return };
    fs::create_dir_all(scene.dir()).expect("makes a directory");
    let small = ["-t", "tmpfs", "-o", "size=64k", "none"];
    ok(&scene.lab.on("sut", "mount").args(small).arg(scene.dir()).output().expect("runs"));
    on_one_thread(async {
        let big = Kbuild { config: format!("CONFIG_SMP=y\n{}", "# nothing\n".repeat(20_000)), ..spec() };
        let (kind, reason) = infra(&mut scene.builder(big, "s"), &scene.repo, &scene.c0).await;
        assert_eq!(kind, InfraKind::OutOfDisk, "{reason}");
        assert!(reason.contains("10.9.1.2"), "{reason}");
    });
}

#[test]
fn doctor_looks_at_the_machine_that_builds() {
    let Some(scene) = Scene::new("doctor_looks_at_the_machine_that_builds") else { return };
    let profile = scene.repo.beside("far.toml");
    let text = format!(
        "[metric]\nname = \"x\"\ndirection = \"lower\"\n[machine]\nrun = \"true\"\n[build]\nkind = \"kbuild\"\n\
         cross_compile = \"sh4-linux-gnu-\"\n[build.host]\naddress = \"ssh://root@10.9.1.2\"\nidentity = {:?}\n\
         known_hosts = {:?}\nhost_keys = \"add\"\ndir = {:?}\n",
        scene.lab.path("user"),
        scene.lab.path("hosts"),
        scene.dir(),
    );
    fs::write(&profile, text).expect("writes");
    let doctor = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sched-bisect"));
        command.arg("--repo").arg(scene.repo.path()).arg("--state-dir").arg(scene.repo.beside("sessions"));
        command.args(["doctor", "--profile"]).arg(&profile);
        said(&command.output().expect("the program starts"))
    };
    doctor()
        .exits(5)
        .tells("ok on ssh://root@10.9.1.2: make at /")
        .tells("ok on ssh://root@10.9.1.2: rsync at /")
        .tells("LACKING on ssh://root@10.9.1.2: sh4-linux-gnu-gcc is not installed; on Debian: apt install gcc-sh4-linux-gnu")
        .tells("GiB free at");
    scene.lab.cut_off("sut");
    doctor().exits(5).tells("LACKING failed to reach the build host: ssh://root@10.9.1.2 is not up");
}
