//! Host programs for the guest: where they are, and what they need to start.
//!
//! Owns: the search on PATH, the reading of ELF and `#!` heads, and the list of shared libraries as the
//! program's own dynamic loader gives it. Must not do: put anything into an archive. Limits: a library that a
//! program opens by itself later (dlopen, NSS) is not found. Tested here.

use super::Failure;
use crate::lab::process::{Ended, run_to_files};
use crate::model::InfraKind;
use object::read::elf::{FileHeader, ProgramHeader as _};
use object::{Endianness, elf};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;

/// Debian packages of the programs people ask for.
const PACKAGES: [(&str, &str); 13] = [
    ("busybox", "busybox-static"),
    ("hackbench", "rt-tests"),
    ("cyclictest", "rt-tests"),
    ("signaltest", "rt-tests"),
    ("sysbench", "sysbench"),
    ("stress-ng", "stress-ng"),
    ("perf", "linux-perf"),
    ("pgbench", "postgresql-contrib"),
    ("netperf", "netperf"),
    ("fio", "fio"),
    ("numactl", "numactl"),
    ("chrt", "util-linux"),
    ("qemu-system-x86_64", "qemu-system-x86"),
];

/// Listing libraries is quick; a loader that takes longer hangs.
const LIST_DEADLINE: Duration = Duration::from_secs(30);

/// "hint" for a program that is not there.
pub(super) fn how_to_get(program: &str) -> String {
    match PACKAGES.iter().find(|(name, _)| *name == program) {
        Some((_, package)) => format!("install it (Debian: apt install {package})"),
        None => "install it, or give its full path".to_owned(),
    }
}

/// Where `program` is: on `path` (a list like $PATH), or as given when it has a slash. Links are followed for
/// the directories only, so that a program which looks at its own name still finds it.
pub(super) fn find(program: &str, path: &OsStr) -> Result<PathBuf, Failure> {
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![PathBuf::from(program)]
    } else {
        std::env::split_paths(path).map(|dir| dir.join(program)).collect()
    };
    let found = candidates.into_iter().find(|candidate| is_executable(candidate)).and_then(|candidate| {
        let directory = candidate.parent()?.canonicalize().ok()?;
        Some(directory.join(candidate.file_name()?))
    });
    found.ok_or_else(|| {
        Failure::infra(
            InfraKind::Missing,
            format!("find the program {program:?} for the guest on this host: {}", how_to_get(program)),
        )
    })
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// What starts a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    /// The kernel alone.
    Static,
    /// A dynamic loader at this path.
    Loader(String),
    /// An interpreter at this path.
    Script(String),
}

/// What starts the program with these bytes; `None` when it is neither ELF nor a script.
pub(super) fn start(bytes: &[u8]) -> Option<Start> {
    if let Some(head) = bytes.strip_prefix(b"#!") {
        let line = head.split(|&byte| byte == b'\n').next()?;
        let interpreter = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
        return Some(Start::Script(interpreter.to_owned()));
    }
    let loader = match object::FileKind::parse(bytes).ok()? {
        object::FileKind::Elf64 => loader::<elf::FileHeader64<Endianness>>(bytes)?,
        object::FileKind::Elf32 => loader::<elf::FileHeader32<Endianness>>(bytes)?,
        // The list of kinds is the crate's and grows.
        _ => return None,
    };
    Some(loader.map_or(Start::Static, Start::Loader))
}

/// The outer absence means: not a sound ELF file.
fn loader<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<Option<String>> {
    let header = H::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    for segment in header.program_headers(endian, bytes).ok()? {
        if let Some(path) = segment.interpreter(endian, bytes).ok()? {
            return Some(Some(String::from_utf8(path.to_vec()).ok()?));
        }
    }
    Some(None)
}

/// The shared libraries that `program` needs, as its `loader` finds them.
pub(super) async fn libraries(
    program: &Path,
    loader: &str,
    owner: &Path,
    scratch: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let list = scratch.join("libraries.txt");
    let mut command = Command::new(loader);
    command.arg("--list").arg(program).env_remove("LD_PRELOAD").env("LC_ALL", "C");
    let failed = |why: String| {
        let reason = format!("list the shared libraries of {} with {loader}: {why}", program.display());
        Failure::infra(InfraKind::Missing, reason)
    };
    let ended = run_to_files(&mut command, owner, LIST_DEADLINE, &list, &list).await;
    let text = std::fs::read(&list).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&text);
    match ended {
        Ok(Ended::Exit(0)) => parse_list(&text).map_err(failed),
        Ok(Ended::Exit(status)) => Err(failed(format!("exit status {status}: {}", text.trim()))),
        Ok(Ended::Signal(signal)) => Err(failed(format!("killed by signal {signal}"))),
        Ok(Ended::Deadline) => Err(failed(format!("no answer in {} s", LIST_DEADLINE.as_secs()))),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Reads "name => /path (0x...)" lines. Lines without an arrow are the loader itself and the kernel's vDSO.
fn parse_list(text: &str) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for line in text.lines() {
        let Some((name, target)) = line.split_once("=>") else { continue };
        let target = target.trim();
        let path = target.rsplit_once(" (0x").map_or(target, |(path, _)| path);
        if !path.starts_with('/') {
            return Err(format!("the library {} is not found on this host: install it", name.trim()));
        }
        paths.push(PathBuf::from(path));
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_loader_list_gives_the_libraries_and_skips_loader_and_vdso() {
        let list = "\tlinux-vdso.so.1 (0x00007ff23780f000)\n\
                    \tlibpthread.so.0 => /lib/x86_64-linux-gnu/libpthread.so.0 (0x00007ff2377f2000)\n\
                    \tlibodd.so => /opt/odd (one)/libodd.so (0x00007ff237610000)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007ff237811000)\n";
        let paths = parse_list(list).expect("a list");
        assert_eq!(
            paths,
            [Path::new("/lib/x86_64-linux-gnu/libpthread.so.0"), Path::new("/opt/odd (one)/libodd.so")]
        );
    }

    #[test]
    fn a_library_that_is_missing_is_named() {
        let error = parse_list("\tlibfoo.so.1 => not found\n").expect_err("it is missing");
        assert!(error.contains("libfoo.so.1"), "{error}");
    }

    #[tokio::test]
    async fn a_real_program_lists_its_libc() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let program = find("env", OsStr::new("/nowhere:/usr/bin")).expect("coreutils");
        let bytes = std::fs::read(&program).expect("reads");
        let Some(Start::Loader(loader)) = start(&bytes) else { panic!("{:?}", start(&bytes)) };
        let paths = libraries(&program, &loader, dir.path(), dir.path()).await.expect("lists");
        assert!(paths.iter().any(|path| path.to_string_lossy().contains("libc.")), "{paths:?}");
    }

    #[test]
    fn scripts_and_static_programs_are_told_apart() {
        assert_eq!(start(b"#! /bin/sh -e\n"), Some(Start::Script("/bin/sh".to_owned())));
        assert_eq!(start(b"plain text"), None);
        let busybox = find("busybox", OsStr::new("/bin:/usr/bin")).expect("busybox-static");
        assert_eq!(start(&std::fs::read(busybox).expect("reads")), Some(Start::Static));
    }

    #[test]
    fn a_missing_program_names_its_package() {
        let error = find("hackbench", OsStr::new("/nowhere")).expect_err("not there");
        assert_eq!(error.infra_kind(), Some(InfraKind::Missing));
        assert!(error.reason().contains("apt install rt-tests"), "{}", error.reason());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_heads_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let elf = [b"\x7fELF\x02\x01\x01".as_slice(), &bytes].concat();
            let _ = (start(&bytes), start(&elf));
        }
    }
}
