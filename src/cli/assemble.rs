//! From a plan to the lab that it names.

mod ssh;

pub(super) use self::ssh::{Places, build_host, machine};

use super::CliError;
use crate::driver::{Lab, SessionDir};
use crate::history::{Clean, History, Worktree};
use crate::lab::command::{CommandBuilder, CommandMachine, Commands, SharedSite, Site, SiteSpec, Tree};
use crate::lab::kbuild::KbuildBuilder;
use crate::lab::process::OWNER;
use crate::lab::qemu::QemuMachine;
use crate::lab::ssh::SshMachine;
use crate::lab::stage::{CANARY, Ground, Stage};
use crate::lab::{Builder, Machine};
use crate::model::CommitId;
use crate::report::say;
use crate::session::{BuilderSpec, Kbuild, MachineSpec, Plan, Purpose, Qemu, Revert, State};
use crate::workload::Reader;
use async_trait::async_trait;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The session's own worktree as the commands' tree.
struct PrivateTree(Worktree);

#[async_trait(?Send)]
impl Tree for PrivateTree {
    async fn checkout(&mut self, commit: &CommitId) -> Result<(), String> {
        self.0.checkout(commit, Clean::Untracked).await.map_err(|e| format!("failed to {e}"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Builder and machines for the session in `dir`.
pub(super) fn lab(state: &State, dir: &SessionDir) -> Result<Lab, CliError> {
    let plan = &state.plan;
    restore_revert(plan)?;
    let seen: HashSet<String> =
        state.boots.iter().filter_map(|b| b.record.as_ref()).map(|r| r.boot_id.clone()).collect();
    let site = site(plan, dir)?;
    let builder: Box<dyn Builder> = match &plan.recipe.builder {
        BuilderSpec::None | BuilderSpec::Command { .. } => Box::new(CommandBuilder::new(site.clone())),
        BuilderSpec::Kbuild(spec) => Box::new(kbuild(spec, plan, dir)?),
    };
    let machines = match &plan.recipe.machine {
        MachineSpec::Command { boot, run } => {
            let setup = &plan.recipe.setup;
            let commands = Commands { boot: boot.clone(), run: run.clone(), roles: setup.roles.clone() };
            let machine = CommandMachine::new(site, commands, plan.recipe.metric.name.clone(), seen);
            let machine = match reader(plan)? {
                Some(reader) => machine.read_by(reader),
                None => machine,
            };
            vec![staged(machine, state, dir, 0)]
        }
        MachineSpec::Ssh(spec) => {
            let parts = ssh::parts(spec, plan, dir, reader(plan)?)?;
            vec![staged(SshMachine::new(parts, seen), state, dir, 0)]
        }
        MachineSpec::Qemu(spec) => {
            (0..plan.recipe.suts).map(|sut| guest(spec, state, dir, sut)).collect::<Result<_, _>>()?
        }
    };
    Ok(Lab { builder, machines })
}

/// Source tree, build directory and cache are shared by all sessions of a repository, beside their directories.
fn kbuild(spec: &Kbuild, plan: &Plan, dir: &SessionDir) -> Result<KbuildBuilder, CliError> {
    let builder = KbuildBuilder::open(spec.clone(), &builders(dir), dir.path(), Path::new(&plan.repository))
        .map_err(|e| CliError::Lab(e.to_string()))?;
    Ok(match &spec.host {
        Some(host) => builder.on(build_host(host, Places::of(dir))?),
        None => builder,
    })
}

/// Where the builders of a session's repository are.
pub(super) fn builders(dir: &SessionDir) -> PathBuf {
    dir.path().parent().unwrap_or(dir.path()).join(".kbuild")
}

fn guest(spec: &Qemu, state: &State, dir: &SessionDir, sut: u32) -> Result<Box<dyn Machine>, CliError> {
    let plan = &state.plan;
    let mut spec = spec.clone();
    // busybox has none.
    let has_policy = plan.recipe.setup.variants().any(|variant| variant.policy.is_some());
    let needs_chrt = has_policy && spec.programs.iter().all(|program| program != "chrt");
    spec.programs.extend(needs_chrt.then(|| "chrt".to_owned()));
    let scratch = dir.path().join(format!("qemu-{sut}"));
    std::fs::create_dir_all(&scratch)
        .map_err(|source| CliError::Io { what: format!("make {}", scratch.display()), source })?;
    let machine = QemuMachine::new(spec, &plan.recipe.metric.name, dir.path(), &scratch)
        .map_err(|e| CliError::Lab(e.to_string()))?;
    let machine = match reader(plan)? {
        Some(reader) => machine.read_by(reader),
        None => machine,
    };
    Ok(staged(machine, state, dir, sut))
}

/// The machine with what the profile asks for around a run; itself where that is nothing.
fn staged<M: Machine + Ground + 'static>(
    machine: M,
    state: &State,
    dir: &SessionDir,
    sut: u32,
) -> Box<dyn Machine> {
    let setup = &state.plan.recipe.setup;
    if !setup.is_staged() {
        return Box::new(machine);
    }
    let known = state.boots.iter().filter(|boot| boot.sut.0 == sut).filter_map(|boot| boot.record.as_ref());
    let canaries = known.filter_map(|record| record.settings.get(CANARY)?.parse().ok()).collect();
    let done = dir.path().join(format!("once-{sut}"));
    Box::new(Stage::new(machine, setup.clone(), done, canaries))
}

fn reader(plan: &Plan) -> Result<Option<Reader>, CliError> {
    Reader::of(&plan.recipe.reading)
        .map_err(|reason| CliError::Lab(format!("read the workload's output: {reason}")))
}

fn site(plan: &Plan, dir: &SessionDir) -> Result<SharedSite, CliError> {
    let build = match &plan.recipe.builder {
        BuilderSpec::Command { command } => Some(command.clone()),
        BuilderSpec::None | BuilderSpec::Kbuild(_) => None,
    };
    let spec = SiteSpec {
        session: plan.session.clone(),
        owner: dir.path().to_owned(),
        build,
        build_deadline: Duration::from_secs(plan.recipe.deadlines.build_s),
        build_dir: dir.path().join("build"),
        artifacts: dir.path().join("artifacts"),
        variant: plan.recipe.variant.clone(),
    };
    Ok(Site::shared(spec, Box::new(PrivateTree(worktree(plan, dir)?))))
}

fn worktree(plan: &Plan, dir: &SessionDir) -> Result<Worktree, CliError> {
    let marks = vec![(OWNER.into(), dir.path().into())];
    Ok(Worktree::open(Path::new(&plan.repository), &dir.path().join("source"), marks)?)
}

/// The reverted commit has no ref, so git may have collected it since: it is made again, under the same id.
fn restore_revert(plan: &Plan) -> Result<(), CliError> {
    let Purpose::RevertTest { commit, mainline, revert: Revert::Clean { commit: expected }, .. } =
        &plan.purpose
    else {
        return Ok(());
    };
    let history = History::open(Path::new(&plan.repository))?;
    match history.revert(commit, &plan.bad.commit, *mainline)? {
        Revert::Clean { commit } if commit == *expected => Ok(()),
        other @ (Revert::Clean { .. } | Revert::Conflicts { .. } | Revert::AlreadyReverted) => {
            Err(CliError::Lab(format!(
                "make the reverted kernel again: git now gives {other:?}, the session was planned with {expected}"
            )))
        }
    }
}

/// Takes away what a concluded session does not need any more: its worktree. Journal, logs and artifacts stay.
pub(super) fn clean_up(plan: &Plan, dir: &SessionDir) {
    if !dir.path().join("source").exists() {
        return;
    }
    let removed = worktree(plan, dir).and_then(|worktree| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|source| CliError::Io { what: "start the event loop".to_owned(), source })?;
        Ok(runtime.block_on(worktree.remove())?)
    });
    if let Err(error) = removed {
        say(&format!("note: the session's worktree stays: failed to {error}"));
    }
}
