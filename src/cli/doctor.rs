//! `doctor`: what this host has and lacks for a profile, and what mends it.

use super::args::Place;
use super::assemble::{self, Places};
use super::{CliError, exit, print, root};
use crate::history::History;
use crate::lab::kbuild;
use crate::lab::ssh::SshMachine;
use crate::model::CommitId;
use crate::profile::{self, Overrides};
use crate::session::{BuildOn, BuilderSpec, Kbuild, MachineSpec, Recipe, Ssh};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// What a host that builds kernels needs.
const KBUILD_NEEDS: [&str; 7] = ["make", "gcc", "flex", "bison", "bc", "ld", "libelf.h"];

/// Debian package of a program that guests are given.
pub(super) const GUEST_PACKAGES: [(&str, &str); 3] =
    [("busybox", "busybox-static"), ("hackbench", "rt-tests"), ("cyclictest", "rt-tests")];

/// Runs it: one line a check. Exit status 5 when something is lacking.
pub(super) fn run(place: &Place, profile: &str, rehearse: bool) -> Result<u8, CliError> {
    let unresolved = |_: &str| CommitId::parse(&"0".repeat(40));
    let overrides = Overrides { run: None, ..Overrides::default() };
    let checked = profile::check(profile)?;
    let mut lines = vec![(true, format!("profile {} is sound", checked.name))];
    lines.push(repository(place));
    lines.push(program("git", "git"));
    match profile::load(profile, &overrides, &unresolved) {
        Ok(loaded) => {
            lines.extend(recipe(place, &loaded.recipe)?);
            match &loaded.recipe.machine {
                MachineSpec::Ssh(spec) => lines.extend(machine(place, spec, &loaded.recipe, rehearse)?),
                MachineSpec::Command { .. } | MachineSpec::Qemu(_) if rehearse => {
                    let reason = "doctor --rehearse: only a machine with machine.kind = \"ssh\" is restarted";
                    return Err(CliError::Usage(reason.to_owned()));
                }
                MachineSpec::Command { .. } | MachineSpec::Qemu(_) => {}
            }
        }
        Err(_) => lines.push((true, format!("left to the command line: {}", checked.needs.join(", ")))),
    }
    lines.push(room(place));
    let sound = lines.iter().all(|(ok, _)| *ok);
    let out: String = lines
        .iter()
        .map(|(ok, text)| format!("{} {text}\n", if *ok { "ok     " } else { "LACKING" }))
        .collect();
    print(&out)?;
    Ok(if sound { exit::DONE } else { exit::INFRASTRUCTURE })
}

fn repository(place: &Place) -> (bool, String) {
    match History::open(&place.repo) {
        Ok(history) => (true, format!("repository {}", history.common_dir().display())),
        Err(error) => (false, format!("repository: failed to {error}")),
    }
}

fn recipe(place: &Place, recipe: &Recipe) -> Result<Vec<(bool, String)>, CliError> {
    let mut lines = Vec::new();
    match &recipe.builder {
        BuilderSpec::Kbuild(spec) => {
            let needs = build_needs(spec);
            match &spec.host {
                None => lines.extend(here(&needs)),
                Some(host) => lines.extend(build_host(place, host, &needs)?),
            }
        }
        BuilderSpec::None | BuilderSpec::Command { .. } => {}
    }
    match &recipe.machine {
        MachineSpec::Qemu(qemu) => {
            lines.push(program(&qemu.program, "qemu-system-x86"));
            lines.push(program("busybox", "busybox-static"));
            let package =
                |name: &str| GUEST_PACKAGES.iter().find(|(n, _)| *n == name).map_or("?", |(_, p)| *p);
            lines.extend(qemu.programs.iter().map(|name| program(name, package(name))));
            lines.push(match Path::new("/dev/kvm").exists() {
                true => (
                    true,
                    format!("/dev/kvm exists; acceleration: {} (auto proves KVM by booting)", qemu.accel),
                ),
                false => (true, format!("no /dev/kvm; acceleration: {}", qemu.accel)),
            });
        }
        MachineSpec::Ssh(_) => lines.push(program("ssh", "openssh-client")),
        MachineSpec::Command { .. } => lines.push(program("sh", "dash")),
    }
    Ok(lines)
}

/// Programs and headers that building these kernels takes.
fn build_needs(spec: &Kbuild) -> Vec<String> {
    let mut needs: Vec<String> = KBUILD_NEEDS.map(str::to_owned).to_vec();
    if !spec.cross_compile.is_empty() {
        needs.extend(["gcc", "ld"].map(|tool| format!("{}{tool}", spec.cross_compile)));
    }
    if spec.modules {
        needs.push("depmod".to_owned());
    }
    needs
}

/// Of a host that builds: this one.
fn here(needs: &[String]) -> Vec<(bool, String)> {
    let mut lines: Vec<(bool, String)> = needs.iter().map(|name| build_need(name)).collect();
    lines.push(match find("ccache") {
        Some(path) => (true, format!("ccache at {} (builds of neighbours are faster)", path.display())),
        None => (true, "ccache is not there; builds work without (apt-get install ccache)".to_owned()),
    });
    lines
}

/// Of another, and of the way there.
fn build_host(place: &Place, spec: &BuildOn, needs: &[String]) -> Result<Vec<(bool, String)>, CliError> {
    let mut lines = vec![program("ssh", "openssh-client"), program("rsync", "rsync")];
    if lines.iter().any(|(is_there, _)| !is_there) {
        return Ok(lines);
    }
    let scratch = scratch()?;
    let root = root(place)?;
    let host = assemble::build_host(spec, Places { owner: scratch.path(), lab: root.path() })?;
    let needs: Vec<&str> = std::iter::once("rsync").chain(needs.iter().map(String::as_str)).collect();
    lines.extend(runtime()?.block_on(host.look_over(&needs, ROOM >> 10)));
    Ok(lines)
}

fn scratch() -> Result<tempfile::TempDir, CliError> {
    tempfile::tempdir().map_err(|source| CliError::Io { what: "make a directory".to_owned(), source })
}

fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|source| CliError::Io { what: "start the event loop".to_owned(), source })
}

/// The machine itself, as it answers.
fn machine(
    place: &Place,
    spec: &Ssh,
    recipe: &Recipe,
    rehearse: bool,
) -> Result<Vec<(bool, String)>, CliError> {
    let scratch = scratch()?;
    let root = root(place)?;
    let parts = assemble::machine(spec, &recipe.setup, Places { owner: scratch.path(), lab: root.path() })?;
    Ok(runtime()?.block_on(SshMachine::new(parts, HashSet::new()).look_over(rehearse)))
}

fn program(name: &str, package: &str) -> (bool, String) {
    match find(name) {
        Some(path) => (true, format!("{name} at {}", path.display())),
        None => (false, format!("{name}: not on PATH; apt-get install {package}")),
    }
}

/// Of what a build needs: a header, depmod, which is outside of the PATH of who is not root, or a program.
fn build_need(name: &str) -> (bool, String) {
    let include = ["/usr/include", "/usr/local/include"].map(|dir| Path::new(dir).join(name));
    let sbin = ["/usr/sbin", "/sbin"].map(|dir| Path::new(dir).join(name));
    let found = match name.ends_with(".h") {
        true => include.into_iter().find(|path| path.exists()),
        false => find(name).or_else(|| sbin.into_iter().find(|path| path.exists())),
    };
    match found {
        Some(path) => (true, format!("{name} at {}", path.display())),
        None => (false, kbuild::missing(name)),
    }
}

fn find(name: &str) -> Option<PathBuf> {
    let direct = Path::new(name);
    if direct.is_absolute() {
        return direct.exists().then(|| direct.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// A kernel tree, its build and a few artifacts take some 4 GiB.
const ROOM: u64 = 4 << 30;

fn room(place: &Place) -> (bool, String) {
    let dir = place.state_dir.as_deref().unwrap_or(&place.repo);
    match rustix::fs::statvfs(dir) {
        Ok(stat) => {
            let free = stat.f_bavail * stat.f_frsize;
            (
                free >= ROOM,
                format!("{} GiB free at {} (a kernel bisection takes about 4)", free >> 30, dir.display()),
            )
        }
        Err(error) => (false, format!("free space at {}: {error}", dir.display())),
    }
}
