//! What the kernel builder packs for a machine with a disk, and kernels for another architecture, on a tiny tree that
//! answers like a kernel's.

use crate::common::kernel::{KCONFIG, first_commit, spec};
use crate::common::repo::Repo;
use crate::kbuild::{built, config, infra, log, open, root, untestable};
use sched_bisect::history::History;
use sched_bisect::lab::kbuild::KbuildBuilder;
use sched_bisect::model::{Artifact, InfraKind, UntestableKind};
use sched_bisect::session::Kbuild;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn with_modules() -> Kbuild {
    Kbuild { modules: true, config: "CONFIG_SMP=y\nCONFIG_MODULES=y\n".to_owned(), ..spec() }
}

/// A tree whose kernels can have modules.
fn kconfig() -> String {
    format!("{KCONFIG}MODULES n\n")
}

fn file(artifact: &Artifact, name: &str) -> PathBuf {
    Path::new(&artifact.dir).join(name)
}

/// Paths in the archive of modules, those of the kernel's own directory without it.
fn packed(artifact: &Artifact) -> Vec<String> {
    let mut archive = tar::Archive::new(fs::File::open(file(artifact, "modules.tar")).expect("an archive"));
    let own = format!("lib/modules/{}", artifact.release);
    let entries = archive.entries().expect("is an archive");
    let path = |entry: tar::Entry<'_, fs::File>| {
        let path = entry.path().expect("a path").display().to_string();
        path.strip_prefix(&own).unwrap_or(&path).to_owned()
    };
    entries.map(|entry| path(entry.expect("is whole"))).collect()
}

#[tokio::test]
async fn a_machine_with_a_disk_gets_the_modules_of_its_own_release_and_the_symbols() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, &kconfig());
    let artifact = built(&mut open(&repo, with_modules(), "s"), &repo, &c0).await;
    let paths = packed(&artifact);
    for wanted in ["", "/kernel/sched/fair.ko", "/modules.order", "/modules.dep", "/modules.dep.bin"] {
        assert!(paths.iter().any(|path| path == wanted), "{wanted} is not in {paths:?}");
    }
    assert!(paths.iter().all(|path| path.is_empty() || path.starts_with('/')), "{paths:?}");
    assert!(!paths.iter().any(|path| path == "/build" || path == "/source"), "{paths:?}");
    assert!(paths.is_sorted_by_key(|path| path.replace('/', "\0")), "{paths:?}");
    let map = fs::read_to_string(file(&artifact, "System.map")).expect("a map");
    assert!(map.lines().any(|line| line.ends_with(" fair")), "{map}");
    let names: Vec<&str> = artifact.packed.keys().map(String::as_str).collect();
    assert_eq!(names, ["System.map", "modules.tar"]);
    for (name, hash) in &artifact.packed {
        let bytes = fs::read(file(&artifact, name)).expect("reads");
        assert_eq!(&blake3::hash(&bytes).to_hex().to_string(), hash, "{name}");
    }
    assert!(
        !root(&repo).join("builder-0/staging").exists()
            && !root(&repo).join("builder-0/modules.tar").exists()
    );
}

#[tokio::test]
async fn an_archive_of_modules_unpacks_beside_others_and_follows_no_link_of_the_system() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, &kconfig());
    let artifact = built(&mut open(&repo, with_modules(), "s"), &repo, &c0).await;
    // As a merged system has it, with the user's own kernel in place.
    let machine = repo.beside("machine");
    fs::create_dir_all(machine.join("usr/lib/modules/6.1.0-users")).expect("creates");
    std::os::unix::fs::symlink("usr/lib", machine.join("lib")).expect("links");
    let archive = file(&artifact, "modules.tar");
    let unpacked = std::process::Command::new("tar").arg("-C").arg(&machine).arg("-xf").arg(archive).output();
    let unpacked = unpacked.expect("tar runs");
    assert!(unpacked.status.success() && unpacked.stderr.is_empty(), "{unpacked:?}");
    assert!(machine.join("lib").is_symlink(), "the link of a merged system stays a link");
    let kernels = fs::read_dir(machine.join("usr/lib/modules")).expect("reads");
    let mut names: Vec<String> =
        kernels.map(|entry| entry.expect("reads").file_name().display().to_string()).collect();
    names.sort();
    assert_eq!(names, ["6.1.0-users", artifact.release.as_str()]);
    let module = machine.join(format!("lib/modules/{}/kernel/sched/fair.ko", artifact.release));
    assert_eq!(fs::metadata(module).expect("is there").permissions().mode() & 0o777, 0o644);
}

#[tokio::test]
async fn a_kernel_without_modules_has_none_packed_whatever_the_profile_asks() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, &kconfig());
    let spec = Kbuild { config: "CONFIG_SMP=y\n".to_owned(), ..with_modules() };
    let artifact = built(&mut open(&repo, spec, "s"), &repo, &c0).await;
    assert_eq!(artifact.packed.keys().collect::<Vec<_>>(), ["System.map"]);
    assert!(!file(&artifact, "modules.tar").exists());
    assert!(config(&artifact).contains("# CONFIG_MODULES is not set"));
}

#[tokio::test]
async fn the_same_commit_gives_the_same_archive_in_another_builder() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, &kconfig());
    let mut first = open(&repo, with_modules(), "s");
    let second = open(&repo, Kbuild { jobs: 1, ..with_modules() }, "s");
    let one = built(&mut first, &repo, &c0).await;
    fs::remove_dir_all(&one.dir).expect("removes the entry, so that it is made again");
    drop(first);
    let mut second = second;
    let other = built(&mut second, &repo, &c0).await;
    assert!(!other.cached && root(&repo).join("builder-1/build").is_dir(), "the other builder made it");
    assert_eq!(one.packed["modules.tar"], other.packed["modules.tar"]);
}

#[tokio::test]
async fn an_entry_without_modules_is_not_taken_where_modules_are_asked_for_and_a_damaged_one_is_made_again() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, &kconfig());
    let without = Kbuild { modules: false, ..with_modules() };
    let first = built(&mut open(&repo, without.clone(), "s"), &repo, &c0).await;
    let second = built(&mut open(&repo, with_modules(), "s"), &repo, &c0).await;
    assert!(!second.cached && first.dir != second.dir);
    assert_eq!(built(&mut open(&repo, without, "t"), &repo, &c0).await, Artifact { cached: true, ..first });
    for name in ["modules.tar", "System.map"] {
        let mut bytes = fs::read(file(&second, name)).expect("reads");
        bytes[0] ^= 1;
        fs::write(file(&second, name), bytes).expect("writes");
        let again = built(&mut open(&repo, with_modules(), "s"), &repo, &c0).await;
        assert_eq!(again, second, "{name}: built, not cached, and the same");
        assert!(log(&repo).contains(&format!("{name} does not match its hash")), "{}", log(&repo));
    }
}

#[tokio::test]
async fn what_an_older_version_put_into_the_cache_is_still_found() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, &kconfig());
    let first = built(&mut open(&repo, spec(), "s"), &repo, &c0).await;
    // As before: nothing packed beside image and configuration.
    let path = file(&first, "artifact.json");
    let old = Artifact { packed: std::collections::BTreeMap::new(), cached: false, ..first.clone() };
    let sum = blake3::hash(&serde_json::to_vec(&old).expect("serializes")).to_hex().to_string();
    fs::write(&path, serde_json::json!({ "artifact": old, "sum": sum }).to_string()).expect("writes");
    fs::remove_file(file(&first, "System.map")).expect("removes");
    let json = fs::read_to_string(&path).expect("reads");
    assert!(!json.contains("packed"), "as older versions wrote it: {json}");
    let found = built(&mut open(&repo, spec(), "s"), &repo, &c0).await;
    assert_eq!(found, Artifact { cached: true, ..old });
}

#[tokio::test]
async fn modules_that_depmod_did_not_index_are_a_missing_tool() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, &kconfig());
    let c1 = repo.commit("c1", &[&c0], &[("also-install", Some("depmod() { return 127; }\n"))]);
    let (kind, reason) = infra(&mut open(&repo, with_modules(), "s"), &repo, &c1).await;
    assert_eq!(kind, InfraKind::Missing);
    assert!(reason.contains("apt install kmod"), "{reason}");
}

#[tokio::test]
async fn a_commit_that_installs_outside_of_its_own_directory_is_untestable() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, &kconfig());
    let outside = "mkdir -p \"$3/lib/modules/other\" && cp \"$2/fair.o\" \"$3/lib/modules/other/fair.ko\"\n";
    let c1 = repo.commit("c1", &[&c0], &[("also-install", Some(outside))]);
    let mut builder = open(&repo, with_modules(), "s");
    let (kind, reason) = untestable(&mut builder, &repo, &c1).await;
    assert_eq!(kind, UntestableKind::Build);
    assert!(reason.contains("other"), "{reason}");
    built(&mut builder, &repo, &c0).await;
}

/// Tools whose names begin as that of a cross compiler.
fn cross_tools(repo: &Repo) -> String {
    let prefix = repo.beside("aarch64-linux-gnu-").display().to_string();
    for tool in ["gcc", "ld"] {
        let path = format!("{prefix}{tool}");
        let version = format!("[ \"$1\" = --version ] && echo '{tool} for arm64 12.2.0' && exit 0\n");
        fs::write(&path, format!("#!/bin/sh\n{version}exec {tool} \"$@\"\n")).expect("writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("changes the mode");
    }
    prefix
}

fn for_arm64(cross_compile: &str) -> Kbuild {
    Kbuild {
        arch: "arm64".to_owned(),
        cross_compile: cross_compile.to_owned(),
        targets: vec!["Image".to_owned()],
        image: "arch/arm64/boot/Image".to_owned(),
        ..spec()
    }
}

#[tokio::test]
async fn a_kernel_for_another_architecture_is_made_and_named_by_its_own_compiler() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let prefix = cross_tools(&repo);
    let artifact = built(&mut open(&repo, for_arm64(&prefix), "arm"), &repo, &c0).await;
    assert!(
        artifact.toolchain.starts_with("gcc for arm64 12.2.0; ld for arm64 12.2.0"),
        "{}",
        artifact.toolchain
    );
    assert!(log(&repo).contains(&format!("ARCH=arm64 CROSS_COMPILE={prefix}")), "{}", log(&repo));
    let own = built(&mut open(&repo, spec(), "own"), &repo, &c0).await;
    assert!(!own.cached && own.dir != artifact.dir && own.toolchain != artifact.toolchain);
    let again = built(&mut open(&repo, for_arm64(&prefix), "arm"), &repo, &c0).await;
    assert_eq!(again, Artifact { cached: true, ..artifact });
}

#[tokio::test]
async fn a_cross_compiler_that_is_not_there_is_missing_with_its_package() {
    let mut repo = Repo::new();
    let c0 = first_commit(&mut repo, KCONFIG);
    let absent = Kbuild { arch: "sh".to_owned(), ..for_arm64("sh4-linux-gnu-") };
    let (kind, reason) = infra(&mut open(&repo, absent, "s"), &repo, &c0).await;
    assert_eq!(kind, InfraKind::Missing);
    assert_eq!(reason, "sh4-linux-gnu-gcc is not installed; on Debian: apt install gcc-sh4-linux-gnu");
}

#[test]
fn an_architecture_given_twice_is_refused_with_both() {
    let mut repo = Repo::new();
    first_commit(&mut repo, KCONFIG);
    let history = History::open(&repo.path()).expect("opens");
    for (argument, key) in [("ARCH=riscv", "arch"), ("CROSS_COMPILE=x-", "cross_compile")] {
        let spec = Kbuild { make_args: vec![argument.to_owned()], ..for_arm64("aarch64-linux-gnu-") };
        let opened = KbuildBuilder::open(spec, &root(&repo), &repo.path(), history.common_dir());
        let reason = opened.err().expect("refused").to_string();
        assert!(reason.contains(argument) && reason.contains(&format!("{key} = ")), "{reason}");
    }
}
