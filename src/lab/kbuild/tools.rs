//! The compiler and linker that make will use, named and identified.

use super::failure;
use super::place::Place;
use super::run::{Runner, Step, Stop};
use crate::model::InfraKind;
use std::path::{Path, PathBuf};

/// Upper size of the compiler cache; a kernel's objects take 0.1 to 2 GB.
const CCACHE_SIZE: &str = "10G";

/// What compiles.
pub(super) struct Tools {
    /// The compiler, if make has to be told to use it through ccache.
    cached_cc: Option<String>,
    identity: String,
    shown: String,
}

impl Tools {
    /// Asks the tools that `make_args` select for their versions.
    pub(super) async fn find(run: &Runner<'_>, place: &Place<'_>, make_args: &[String]) -> Step<Self> {
        let version = async |tool: &str| version(run, place, tool).await;
        let cc = compiler(make_args);
        let cc_version = version(&cc).await?;
        let ld_version = version(&linker(make_args)).await?;
        let chosen_by_user = value(make_args, "CC").is_some();
        let ccache = if chosen_by_user { None } else { version("ccache").await.ok() };
        let mut shown = format!("{cc_version}; {ld_version}");
        if let Some(ccache) = &ccache {
            shown += &format!("; {ccache}");
        }
        let identity = format!("{cc}: {cc_version}; {ld_version}");
        Ok(Self { cached_cc: ccache.map(|_| cc), identity, shown })
    }

    /// Compiler, linker and their versions; without ccache, which does not change what comes out.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// For people.
    pub(super) fn shown(&self) -> String {
        self.shown.clone()
    }

    /// Arguments for make.
    pub(super) fn make_args(&self) -> Option<String> {
        self.cached_cc.as_ref().map(|cc| format!("CC=ccache {cc}"))
    }

    /// Environment for make. The cache is ours alone: it neither fills the user's nor follows his settings.
    pub(super) fn environment(&self, root: &Path) -> Vec<(&'static str, PathBuf)> {
        if self.cached_cc.is_none() {
            return Vec::new();
        }
        vec![
            ("CCACHE_DIR", root.join("ccache")),
            ("CCACHE_CONFIGPATH", root.join("ccache/ccache.conf")),
            ("CCACHE_MAXSIZE", PathBuf::from(CCACHE_SIZE)),
        ]
    }
}

/// The value that make's command line gives a variable; the last counts.
fn value<'a>(make_args: &'a [String], name: &str) -> Option<&'a str> {
    make_args.iter().rev().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='))
}

/// As the kernel's Makefile derives it from LLVM, CROSS_COMPILE and the variable itself.
fn tool(make_args: &[String], variable: &str, gnu: &str, llvm: &str) -> String {
    if let Some(given) = value(make_args, variable) {
        return given.to_owned();
    }
    match value(make_args, "LLVM") {
        Some(suffix) if suffix.starts_with('-') => format!("{llvm}{suffix}"),
        Some(dir) if dir.ends_with('/') => format!("{dir}{llvm}"),
        Some(any) if !any.is_empty() => llvm.to_owned(),
        Some(_) | None => format!("{}{gnu}", value(make_args, "CROSS_COMPILE").unwrap_or_default()),
    }
}

fn compiler(make_args: &[String]) -> String {
    tool(make_args, "CC", "gcc", "clang")
}

fn linker(make_args: &[String]) -> String {
    tool(make_args, "LD", "ld", "ld.lld")
}

/// First line of `TOOL --version`; `tool` may carry arguments ("ccache gcc").
async fn version(run: &Runner<'_>, place: &Place<'_>, tool: &str) -> Step<String> {
    let mut words = tool.split_whitespace();
    let program = words.next().unwrap_or_default();
    let mut command = run.command(program);
    command.args(words).arg("--version");
    let (status, output) = place.capture(run, command).await?;
    let text = String::from_utf8_lossy(&output);
    match text.lines().next() {
        Some(line) if status == 0 => Ok(line.trim().to_owned()),
        Some(_) | None if status == 127 => Err(Stop::infra(InfraKind::Missing, failure::missing(program))),
        Some(_) | None => {
            let reason = format!("{tool} --version exits with {status} and prints no version");
            Err(Stop::infra(InfraKind::Missing, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_follows_from_the_make_arguments_as_in_the_kernels_makefile() {
        let cases: [(&[&str], &str, &str); 6] = [
            (&[], "gcc", "ld"),
            (
                &["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"],
                "aarch64-linux-gnu-gcc",
                "aarch64-linux-gnu-ld",
            ),
            (&["LLVM=1"], "clang", "ld.lld"),
            (&["LLVM=-15", "CROSS_COMPILE=x-"], "clang-15", "ld.lld-15"),
            (&["LLVM=/opt/llvm/bin/"], "/opt/llvm/bin/clang", "/opt/llvm/bin/ld.lld"),
            (&["CC=gcc-11", "CC=ccache gcc-12", "LLVM=1"], "ccache gcc-12", "ld.lld"),
        ];
        for (args, cc, ld) in cases {
            let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
            assert_eq!((compiler(&args).as_str(), linker(&args).as_str()), (cc, ld), "{args:?}");
        }
    }
}
