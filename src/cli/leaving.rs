//! What a session leaves on a machine that is reached by ssh: ended, removed, or at least told.
//!
//! Invariants: nothing here changes how a session ended; a machine that does not answer costs seconds, and what may still
//! be there is said with the command that sees to it. Tested in tests/it/ssh_machine.rs.

use super::CliError;
use super::assemble::{Places, build_host, builders, machine};
use super::cleanup::told;
use crate::driver::SessionDir;
use crate::lab::ssh::SshMachine;
use crate::report::{counted, say};
use crate::session::{BuilderSpec, MachineSpec, Plan, State};
use std::collections::HashSet;
use std::time::Duration;

/// For each machine to end what runs there: who interrupts the program waits for it.
const ENDING: Duration = Duration::from_secs(5);

/// For the machine to tell which kernels it has; the session is over, nobody wants to wait.
const TELLING: Duration = Duration::from_secs(15);

/// The session's machine; `None`: it is not one that this program reaches by ssh.
fn of(plan: &Plan, dir: &SessionDir) -> Result<Option<SshMachine>, CliError> {
    let MachineSpec::Ssh(spec) = &plan.recipe.machine else { return Ok(None) };
    let parts = machine(spec, &plan.recipe.setup, Places::of(dir))?;
    Ok(Some(SshMachine::new(parts, HashSet::new())))
}

/// After an interruption: ends what the session started on its machines, which else would go on to its deadline.
pub(super) async fn end_jobs(state: &State, dir: &SessionDir) -> Result<(), CliError> {
    let plan = &state.plan;
    end_build(plan, dir).await?;
    // A session that never booted anything has nothing running there.
    if state.boots.is_empty() {
        return Ok(());
    }
    let Some(machine) = of(plan, dir)? else { return Ok(()) };
    for (host, reason) in machine.end_jobs(ENDING).await {
        say(&format!(
            "note: what this session started on {host} may still run there, until its deadline: {reason}; `sched-bisect \
             resume {}` ends it",
            plan.session
        ));
    }
    Ok(())
}

/// The make on a build host.
async fn end_build(plan: &Plan, dir: &SessionDir) -> Result<(), CliError> {
    let BuilderSpec::Kbuild(spec) = &plan.recipe.builder else { return Ok(()) };
    let Some(spec) = &spec.host else { return Ok(()) };
    let host = build_host(spec, Places::of(dir))?;
    let ended = tokio::time::timeout(ENDING, host.end_jobs(&builders(dir), dir.path())).await;
    if !matches!(ended, Ok(Ok(()))) {
        say(&format!(
            "note: a build of this session may still run on {}, until its deadline; `sched-bisect resume {}` ends it",
            spec.address, plan.session
        ));
    }
    Ok(())
}

/// After the conclusion: says how many kernels of ours the machine has, and what removes them.
pub(super) fn tell_kernels(plan: &Plan, dir: &SessionDir) {
    let command = format!("sched-bisect cleanup {}", plan.session);
    let found = with_machine(plan, dir, async |machine| {
        let answer = tokio::time::timeout(TELLING, machine.count_kernels()).await;
        answer
            .map_err(|_| format!("no answer within {} s", TELLING.as_secs()))?
            .map_err(|failure| failure.reason)
    });
    match found {
        None | Some((_, Ok(0))) => {}
        Some((host, Ok(count))) => {
            let are = if count == 1 { "is" } else { "are" };
            let what = counted(count as u64, "kernel");
            say(&format!(
                "note: {what} of this program's {are} on {host}; `{command}` removes what it installed there"
            ));
        }
        Some((host, Err(reason))) => {
            say(&format!(
                "note: kernels of this program's may be on {host} ({reason}); `{command}` removes them"
            ));
        }
    }
}

/// After the conclusion: takes them away, as `cleanup` does.
pub(super) fn remove_kernels(plan: &Plan, dir: &SessionDir) {
    let cleaned =
        with_machine(plan, dir, async |machine| machine.clean_up().await.map_err(|failure| failure.reason));
    match cleaned {
        None => {}
        Some((host, Ok(cleaned))) => {
            told(&cleaned, &host).lines().for_each(|line| say(&format!("{host}: {line}")))
        }
        Some((host, Err(reason))) => say(&format!(
            "note: the kernels stay on {host}: {reason}; `sched-bisect cleanup {}` tries again",
            plan.session
        )),
    }
}

/// Does something with the session's machine; gives its address with what came of it.
fn with_machine<T>(
    plan: &Plan,
    dir: &SessionDir,
    act: impl AsyncFnOnce(SshMachine) -> Result<T, String>,
) -> Option<(String, Result<T, String>)> {
    let MachineSpec::Ssh(spec) = &plan.recipe.machine else { return None };
    let done = match of(plan, dir) {
        Err(error) => Err(error.to_string()),
        Ok(None) => return None,
        Ok(Some(machine)) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Err(error) => Err(format!("start the event loop: {error}")),
                Ok(runtime) => runtime.block_on(act(machine)),
            }
        }
    };
    Some((spec.address.clone(), done))
}
