//! What a failed make says about the commit, and what about us.
//!
//! make has one exit status for everything, so this reads its output. Taken for ours: what no source text can cause
//! (a killed compiler, a full disk, no memory, a tool that is not installed). All else is the commit's.

use super::run::Stop;
use crate::model::{InfraKind, UntestableKind};
use std::path::Path;

/// Tools and headers that kernel builds need of the host, with the Debian package.
const PACKAGES: [(&str, &str); 34] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("cc", "gcc"),
    ("clang", "clang"),
    ("ld", "binutils"),
    ("ld.lld", "lld"),
    ("as", "binutils"),
    ("ar", "binutils"),
    ("nm", "binutils"),
    ("objcopy", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("awk", "mawk"),
    ("perl", "perl"),
    ("python3", "python3"),
    ("cpio", "cpio"),
    ("rsync", "rsync"),
    ("pahole", "dwarves"),
    ("depmod", "kmod"),
    ("openssl", "openssl"),
    ("gzip", "gzip"),
    ("bzip2", "bzip2"),
    ("xz", "xz-utils"),
    ("lzma", "xz-utils"),
    ("lzop", "lzop"),
    ("lz4", "lz4"),
    ("zstd", "zstd"),
    ("openssl/", "libssl-dev"),
    ("libelf.h", "libelf-dev"),
    ("gelf.h", "libelf-dev"),
    ("gmp.h", "libgmp-dev"),
    ("mpc.h", "libmpc-dev"),
    ("ncurses.h", "libncurses-dev"),
];

/// What a compiler driver, a linker, make and a shell say about a child that a signal ended.
const KILLED: [&str; 4] = [
    "Killed signal terminated program",
    "Terminated signal terminated program",
    "internal compiler error: Killed",
    "terminated with signal 9",
];
const KILLED_RECIPE: [&str; 4] = [" Killed", " Terminated", " Error 137", " Error 143"];

const DISK_FULL: [&str; 2] = ["No space left on device", "Disk quota exceeded"];
const NO_MEMORY: [&str; 4] =
    ["Cannot allocate memory", "virtual memory exhausted", "memory exhausted", "out of memory allocating"];
const HOST_BROKEN: [&str; 3] = ["Read-only file system", "Input/output error", "Too many open files"];

/// Sorts the end of a make that exited with `status` and printed `output`.
pub(super) fn sort(output: &str, status: i32, source: &Path) -> Stop {
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|line| !is_excerpt(line)).collect();
    if let Some(ours) = lines.iter().find_map(|line| host_failure(line)) {
        return ours;
    }
    let prefix = format!("{}/", source.display());
    let reason = first_error(&lines).map_or_else(
        || format!("make exits with {status} and names no error"),
        |line| line.trim().replace(&prefix, ""),
    );
    Stop::untestable(UntestableKind::Build, reason)
}

/// Whether a program says that there is no room left.
pub(super) fn is_disk_full(text: &str) -> bool {
    DISK_FULL.iter().any(|words| text.contains(words))
}

/// What to tell when a program or header is not there.
pub(super) fn missing(program: &str) -> String {
    match package(program) {
        Some(package) => format!("{program} is not installed; on Debian: apt install {package}"),
        None => format!("{program} is not installed or not in PATH"),
    }
}

/// The Debian package with a tool of kernel builds, also one for another architecture: "aarch64-linux-gnu-gcc" is in
/// gcc-aarch64-linux-gnu, "x86_64-linux-gnu-ld" in binutils-x86-64-linux-gnu.
fn package(tool: &str) -> Option<String> {
    let known = |tool: &str| PACKAGES.iter().find(|(name, _)| *name == tool).map(|(_, package)| *package);
    if let Some(package) = known(tool) {
        return Some(package.to_owned());
    }
    let (triplet, bare) = tool.rsplit_once('-')?;
    let package = known(bare).filter(|package| ["gcc", "binutils"].contains(package))?;
    // Others ("riscv64-unknown-elf-", "my-own-") are no names of Debian's.
    let of_debian = triplet.contains("-linux-gnu") && !triplet.contains('/');
    of_debian.then(|| format!("{package}-{}", triplet.replace('_', "-")))
}

/// Whether a line is source text that a compiler quotes ("   12 | ..."), which may say anything.
fn is_excerpt(line: &str) -> bool {
    line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start().starts_with('|')
}

fn host_failure(line: &str) -> Option<Stop> {
    let has = |texts: &[&str]| texts.iter().any(|text| line.contains(text));
    let failed_recipe = line.contains("*** [");
    if is_disk_full(line) {
        let reason = format!("no room left for the build: {line}; free some and resume");
        return Some(Stop::infra(InfraKind::OutOfDisk, reason));
    }
    if has(&KILLED) || (failed_recipe && KILLED_RECIPE.iter().any(|end| line.ends_with(end))) {
        let reason =
            format!("a process of the build was killed: {line}; look for the OOM killer, or use fewer jobs");
        return Some(Stop::infra(InfraKind::Killed, reason));
    }
    if has(&NO_MEMORY) {
        let reason = format!("the build ran out of memory: {line}; use fewer jobs");
        return Some(Stop::infra(InfraKind::Other, reason));
    }
    if has(&HOST_BROKEN) {
        return Some(Stop::infra(InfraKind::Other, format!("the build host is in trouble: {line}")));
    }
    let tool = missing_tool(line)?;
    Some(Stop::infra(InfraKind::Missing, missing(tool)))
}

/// The tool or header of [`PACKAGES`] that a line reports missing. Others may be the commit's own scripts.
fn missing_tool(line: &str) -> Option<&str> {
    if line.contains("please install libelf-dev") {
        return Some("libelf.h");
    }
    if line.contains("pahole") && line.contains("is not available") {
        return Some("pahole");
    }
    if let Some((_, header)) = line.split_once(": fatal error: ") {
        let header = header.strip_suffix(": No such file or directory")?;
        let known =
            |name: &&str| header.ends_with(*name) || (name.ends_with('/') && header.starts_with(*name));
        return PACKAGES.iter().map(|(name, _)| *name).filter(|name| name.contains(['/', '.'])).find(known);
    }
    let words = line.strip_suffix(": not found").or_else(|| line.strip_suffix(": command not found"));
    let words = words.or_else(|| line.strip_suffix(": No such file or directory"))?;
    let tool = words.rsplit(": ").next()?.trim_matches(['\'', '"', '\u{2018}', '\u{2019}']);
    // As a cross compiler's name ends in the tool's ("aarch64-linux-gnu-gcc").
    let bare = tool.rsplit('-').next()?;
    (!tool.contains(['/', ' ']) && package(bare).is_some()).then_some(tool)
}

fn first_error<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let is_error = |line: &str| {
        line.contains(" error: ")
            || line.contains(": fatal error: ")
            || line.to_lowercase().starts_with("error:")
    };
    let by_linker =
        |line: &str| line.contains("undefined reference to") || line.contains("multiple definition of");
    let by_make = |line: &str| line.contains("*** ");
    let find = |wanted: &dyn Fn(&str) -> bool| lines.iter().copied().find(|line| wanted(line));
    find(&is_error)
        .or_else(|| find(&by_linker))
        .or_else(|| find(&by_make))
        .or_else(|| lines.iter().rev().copied().find(|line| !line.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Untestable;

    fn sorted(output: &str) -> Stop {
        sort(output, 2, Path::new("/b/source"))
    }

    #[test]
    fn what_no_source_text_can_cause_is_ours() {
        let cases = [
            (
                "gcc: fatal error: Killed signal terminated program cc1\ncompilation terminated.",
                InfraKind::Killed,
            ),
            (
                "{standard input}: Assembler messages:\ngcc: internal compiler error: Killed (program cc1)",
                InfraKind::Killed,
            ),
            ("collect2: fatal error: ld terminated with signal 9 [Killed]", InfraKind::Killed),
            ("make[3]: *** [/b/source/scripts/Makefile.build:229: mm/slub.o] Killed", InfraKind::Killed),
            ("make[2]: *** [scripts/Makefile.vmlinux:34: vmlinux] Error 137", InfraKind::Killed),
            (
                "/tmp/cc.s: fatal error: error writing to /tmp/cc.s: No space left on device",
                InfraKind::OutOfDisk,
            ),
            ("ld: final link failed: No space left on device", InfraKind::OutOfDisk),
            ("cc1: out of memory allocating 65536 bytes after a total of 1 bytes", InfraKind::Other),
            ("make[2]: fork: Cannot allocate memory", InfraKind::Other),
        ];
        for (output, wanted) in cases {
            let stop = sorted(output);
            let Stop::Infra(failure) = stop else { panic!("{output}: {stop:?}") };
            assert_eq!(failure.kind, wanted, "{output}");
        }
    }

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let cases = [
            ("/bin/sh: 1: flex: not found", "flex"),
            ("sh: line 1: bison: command not found", "bison"),
            ("make[3]: bc: No such file or directory", "bc"),
            ("make[1]: gcc: No such file or directory", "gcc"),
            (
                "/b/source/scripts/gcc-version.sh: 12: aarch64-linux-gnu-gcc: not found",
                "aarch64-linux-gnu-gcc",
            ),
            ("/usr/bin/env: 'python3': No such file or directory", "python3"),
            (
                "scripts/sign-file.c:25:10: fatal error: openssl/opensslv.h: No such file or directory",
                "libssl-dev",
            ),
            (
                "/b/source/tools/objtool/elf.h:10:10: fatal error: gelf.h: No such file or directory",
                "libelf-dev",
            ),
            ("BTF: .tmp_vmlinux.btf: pahole (pahole) is not available", "dwarves"),
        ];
        for (output, wanted) in cases {
            let stop = sorted(&format!("  CC x.o\n{output}\nmake: *** [Makefile:251: all] Error 2"));
            let Stop::Infra(failure) = stop else { panic!("{output}: {stop:?}") };
            assert_eq!(failure.kind, InfraKind::Missing, "{output}");
            assert!(failure.reason.contains(wanted), "{output}: {}", failure.reason);
        }
    }

    #[test]
    fn the_tools_of_a_cross_compiler_have_packages_of_their_own_names() {
        for (tool, wanted) in [
            ("gcc", Some("gcc")),
            ("aarch64-linux-gnu-gcc", Some("gcc-aarch64-linux-gnu")),
            ("x86_64-linux-gnu-ld", Some("binutils-x86-64-linux-gnu")),
            ("arm-linux-gnueabihf-gcc", Some("gcc-arm-linux-gnueabihf")),
            ("my-own-gcc", None),
            ("/opt/aarch64-linux-gnu-gcc", None),
            ("aarch64-linux-gnu-clang", None),
        ] {
            assert_eq!(package(tool).as_deref(), wanted, "{tool}");
        }
    }

    #[test]
    fn all_else_is_the_commits_with_its_first_error() {
        let cases = [
            (
                "kernel/a.c:1:2: warning: unused\n/b/source/kernel/sched/fair.c:12:3: error: expected ';'\n   12 | int x\nkernel/b.c:1:1: \
                 error: later\nmake[1]: *** [Makefile:1: x] Error 1",
                "kernel/sched/fair.c:12:3: error: expected ';'",
            ),
            (
                "ERROR: modpost: \"foo\" [drivers/a.ko] undefined!",
                "ERROR: modpost: \"foo\" [drivers/a.ko] undefined!",
            ),
            (
                "ld: kernel/a.o: in function `f':\na.c:(.text+0x1): undefined reference to `g'\nmake: *** [x] Error 1",
                "a.c:(.text+0x1): undefined reference to `g'",
            ),
            (
                "make[3]: *** No rule to make target 'debian/x.pem', needed by 'certs/x'.  Stop.",
                "make[3]: *** No rule to make target 'debian/x.pem', needed by 'certs/x'.  Stop.",
            ),
            (
                "a.c:1:10: fatal error: linux/gone.h: No such file or directory",
                "a.c:1:10: fatal error: linux/gone.h: No such file or directory",
            ),
            ("/bin/sh: 1: ./scripts/mine.sh: not found\n", "/bin/sh: 1: ./scripts/mine.sh: not found"),
            (
                "a.c:3:1: error: bad\n    3 | \"No space left on device\", Killed\n      | ^~~",
                "a.c:3:1: error: bad",
            ),
            ("", "make exits with 2 and names no error"),
        ];
        for (output, reason) in cases {
            let wanted = Untestable { kind: UntestableKind::Build, reason: reason.to_owned() };
            assert_eq!(sorted(output), Stop::Untestable(wanted), "{output}");
        }
    }
}
