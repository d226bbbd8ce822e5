//! The guest's root file system, made on the host.
//!
//! Owns: what is in it (a static busybox with links for its applets, the wanted programs with their
//! libraries, the first process, the mount table) and the record of what that was. Must not do: know the
//! archive format. Invariants: the same host files give the same bytes; within one session the guest's
//! programs never change, since samples of different programs are not comparable (a change is refused with
//! the file's name). Tested here; booted in tests/it/qemu_boot.rs.

use super::Failure;
use super::cpio::Tree;
use super::programs::{self, Start};
use crate::lab::process::{Ended, run_to_files};
use crate::model::InfraKind;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;

/// Name of the record in the session directory: one `<blake3> <path>` a line.
const RECORD: &str = "guest-files.txt";

/// The first process.
const INIT: &str = include_str!("init.sh");

/// Mounted in this order by one process. What a kernel lacks is skipped.
const FSTAB: &str = "dev /dev devtmpfs defaults 0 0
proc /proc proc defaults 0 0
sys /sys sysfs defaults 0 0
run /run tmpfs size=25% 0 0
tmp /tmp tmpfs defaults 0 0
shm /dev/shm tmpfs defaults 0 0
debug /sys/kernel/debug debugfs defaults 0 0
";

/// Makes the archive as a file in `scratch` and gives its path. `path` is the list of directories to search.
pub(super) async fn make(
    wanted: &[String],
    path: &OsStr,
    owner: &Path,
    scratch: &Path,
) -> Result<PathBuf, Failure> {
    let mut contents = Contents { files: BTreeMap::new(), owner, scratch };
    let mut tree = Tree::default();
    let busybox = contents.busybox(path).await?;
    for applet in &busybox.applets {
        tree.symlink(&format!("bin/{applet}"), "busybox");
    }
    contents.files.insert("/bin/busybox".to_owned(), busybox.bytes);
    for program in wanted {
        contents.program(&programs::find(program, path)?, &tree).await?;
    }
    refuse_changes(&contents.files, owner)?;

    for directory in ["proc", "sys", "run", "tmp", "root", "var/tmp", "dev/shm"] {
        tree.directory(directory);
    }
    // The kernel opens it for the first process before anything is mounted.
    tree.character_device("dev/console", 5, 1);
    tree.file("etc/fstab", false, FSTAB.into());
    tree.file("etc/passwd", false, b"root:x:0:0:root:/root:/bin/sh\n".to_vec());
    tree.file("etc/group", false, b"root:x:0:\n".to_vec());
    for (path, bytes) in contents.files {
        tree.file(&path, true, bytes);
    }
    tree.file("init", true, INIT.into());
    let archive = scratch.join("initramfs.cpio");
    std::fs::write(&archive, tree.archive()).map_err(|error| Failure::io("write", &archive, &error))?;
    Ok(archive)
}

struct Busybox {
    bytes: Vec<u8>,
    applets: Vec<String>,
}

/// Programs and libraries by their path in the guest.
struct Contents<'a> {
    files: BTreeMap<String, Vec<u8>>,
    owner: &'a Path,
    scratch: &'a Path,
}

impl Contents<'_> {
    async fn busybox(&self, path: &OsStr) -> Result<Busybox, Failure> {
        let program = programs::find("busybox", path)?;
        let bytes = read(&program)?;
        if programs::start(&bytes) != Some(Start::Static) {
            let reason = format!(
                "use {} in a guest: it is not statically linked; {}",
                program.display(),
                programs::how_to_get("busybox")
            );
            return Err(Failure::infra(InfraKind::Missing, reason));
        }
        let list = self.scratch.join("applets.txt");
        let mut command = Command::new(&program);
        command.arg("--list");
        let ended = run_to_files(&mut command, self.owner, Duration::from_secs(30), &list, &list).await;
        let text = std::fs::read_to_string(&list).map_err(|error| Failure::io("read", &list, &error))?;
        let applets: Vec<String> = text.lines().map(str::to_owned).filter(|name| name != "busybox").collect();
        let has_all = NEEDED_APPLETS.iter().all(|needed| applets.iter().any(|applet| applet == needed));
        match ended {
            Ok(Ended::Exit(0)) if has_all => Ok(Busybox { bytes, applets }),
            Ok(Ended::Exit(_) | Ended::Signal(_) | Ended::Deadline) | Err(_) => {
                let reason = format!(
                    "use {} in a guest: it lacks some of {NEEDED_APPLETS:?}; {}",
                    program.display(),
                    programs::how_to_get("busybox")
                );
                Err(Failure::infra(InfraKind::Missing, reason))
            }
        }
    }

    /// Adds `program` and all that it needs.
    async fn program(&mut self, program: &Path, tree: &Tree) -> Result<(), Failure> {
        let mut missing = vec![program.to_path_buf()];
        while let Some(file) = missing.pop() {
            let name = text(&file)?;
            if self.files.contains_key(&name) {
                continue;
            }
            let bytes = read(&file)?;
            match programs::start(&bytes) {
                Some(Start::Static) => {}
                Some(Start::Loader(loader)) => {
                    missing.push(PathBuf::from(&loader));
                    for library in programs::libraries(&file, &loader, self.owner, self.scratch).await? {
                        // A library has no loader of its own to ask and is in the list with all it needs.
                        let name = text(&library)?;
                        let bytes = read(&library)?;
                        self.files.entry(name).or_insert(bytes);
                    }
                }
                // A shell script runs with busybox.
                Some(Start::Script(interpreter)) if tree.has(&interpreter) => {}
                Some(Start::Script(interpreter)) => {
                    missing.push(programs::find(&interpreter, OsStr::new(""))?);
                }
                None => {
                    let reason =
                        format!("put {} into the guest: it is neither ELF nor a script", file.display());
                    return Err(Failure::infra(InfraKind::Missing, reason));
                }
            }
            self.files.insert(name, bytes);
        }
        Ok(())
    }
}

/// What init.sh calls.
const NEEDED_APPLETS: [&str; 9] =
    ["sh", "mount", "stty", "stat", "head", "crc32", "base64", "setsid", "reboot"];

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::io("read", path, &error))
}

fn text(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::infra(
            InfraKind::Missing,
            format!("put {} into the guest: its path is not UTF-8", path.display()),
        )
    })
}

/// Compares `files` with those the session began with; the first machine of a session writes the record.
fn refuse_changes(files: &BTreeMap<String, Vec<u8>>, owner: &Path) -> Result<(), Failure> {
    let lines: BTreeSet<String> =
        files.iter().map(|(path, bytes)| format!("{} {path}", blake3::hash(bytes).to_hex())).collect();
    let record = owner.join(RECORD);
    let failed = |error: &std::io::Error| Failure::io("record the guest's programs in", &record, error);
    let mut draft = tempfile::NamedTempFile::new_in(owner).map_err(|error| failed(&error))?;
    let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
    draft.write_all(whole.as_bytes()).map_err(|error| failed(&error))?;
    draft.as_file().sync_all().map_err(|error| failed(&error))?;
    match draft.persist_noclobber(&record) {
        Ok(_) => return Ok(()),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(&error.error)),
    }
    let earlier = std::fs::read_to_string(&record).map_err(|error| failed(&error))?;
    let earlier: BTreeSet<String> = earlier.lines().map(str::to_owned).collect();
    let changed: BTreeSet<&str> = lines
        .symmetric_difference(&earlier)
        .filter_map(|line| line.split_once(' '))
        .map(|(_, path)| path)
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let changed: Vec<&str> = changed.into_iter().collect();
    let reason = format!(
        "go on with this session's guest: {} changed on this host since it began, so new samples would not compare \
         with the old ones; put back the old version, or start a new session",
        changed.join(", ")
    );
    // Missing, since trying again cannot help: what the session measured with is gone.
    Err(Failure::infra(InfraKind::Missing, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_path() -> &'static OsStr {
        OsStr::new("/usr/local/bin:/usr/bin:/bin")
    }

    async fn archive(wanted: &[&str], session: &Path) -> Result<Vec<u8>, Failure> {
        let scratch = tempfile::tempdir().expect("temporary directory");
        let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        let path = make(&wanted, host_path(), session, scratch.path()).await?;
        Ok(std::fs::read(path).expect("was written"))
    }

    fn extract(archive: &[u8], into: &Path) {
        let mut cpio = std::process::Command::new("busybox")
            .args(["cpio", "-i", "-d", "bin/*", "lib*", "usr/*", "init"])
            .current_dir(into)
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("busybox is installed");
        cpio.stdin.take().expect("piped").write_all(archive).expect("cpio reads");
        assert!(cpio.wait().expect("waits").success());
    }

    #[tokio::test]
    async fn a_program_comes_with_its_loader_and_libraries() {
        let session = tempfile::tempdir().expect("temporary directory");
        let root = tempfile::tempdir().expect("temporary directory");
        extract(&archive(&["env"], session.path()).await.expect("is made"), root.path());
        // Started by the loader and with the libraries out of the tree alone.
        let bytes = std::fs::read(root.path().join("usr/bin/env")).expect("is in");
        let Some(Start::Loader(loader)) = programs::start(&bytes) else { panic!("is dynamic") };
        let in_tree = |path: &str| root.path().join(path.trim_start_matches('/'));
        let record = std::fs::read_to_string(session.path().join(RECORD)).expect("recorded");
        let directories: Vec<String> = record
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(_, path)| in_tree(path).parent().map(|dir| dir.display().to_string()))
            .collect();
        let status = std::process::Command::new(in_tree(&loader))
            .arg("--inhibit-cache")
            .arg("--library-path")
            .arg(directories.join(":"))
            .arg(root.path().join("usr/bin/env"))
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.expect("starts").success());
        assert_eq!(std::fs::read_link(root.path().join("bin/sh")).expect("link").to_str(), Some("busybox"));
    }

    #[tokio::test]
    async fn the_archive_is_the_same_every_time() {
        let session = tempfile::tempdir().expect("temporary directory");
        let first = archive(&["env", "sort"], session.path()).await.expect("is made");
        let second = archive(&["env", "sort"], session.path()).await.expect("is made again");
        assert!(first == second);
    }

    #[tokio::test]
    async fn a_program_that_changed_during_the_session_is_refused_by_name() {
        let session = tempfile::tempdir().expect("temporary directory");
        let programs = tempfile::tempdir().expect("temporary directory");
        let script = programs.path().join("bench");
        let write = |text: &str| {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::write(&script, text).expect("writes");
            std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("sets the mode");
        };
        let name = script.to_str().expect("text");
        write("#!/bin/sh\necho 1\n");
        archive(&[name], session.path()).await.expect("is made");
        write("#!/bin/sh\necho 2\n");
        let failure = archive(&[name], session.path()).await.expect_err("it changed");
        assert_eq!(failure.infra_kind(), Some(InfraKind::Missing));
        assert!(failure.reason().contains("bench changed on this host"), "{}", failure.reason());
    }

    #[test]
    fn every_command_of_init_is_checked_for() {
        for applet in NEEDED_APPLETS {
            let used = INIT
                .lines()
                .any(|line| line.split_whitespace().any(|word| word.trim_matches(['$', '(', ')']) == applet))
                || INIT.starts_with(&format!("#!/bin/{applet}"));
            assert!(used, "init.sh does not use {applet}");
        }
    }
}
