//! A script on a role of the live boot.

use super::{ANSWERS, Log, SshMachine};
use crate::lab::console_command::ConsoleCommand;
use crate::lab::ssh::called::called;
use crate::lab::ssh::far::FarError;
use crate::lab::ssh::job::{self, Job};
use crate::lab::ssh::link::Link;
use crate::lab::ssh::outcome::Failure;
use crate::lab::ssh::restart::{self, Restarted};
use crate::lab::ssh::wait::Sight;
use crate::lab::stage::{Call, Called};
use crate::model::{BootNo, InfraFailure, InfraKind, UntestableKind};
use crate::session::SUT;
use std::io;

/// Bytes of a stream that a call may print.
const MOST: u64 = 24 << 20;

impl SshMachine {
    /// The boot ids that a job on this role must run under.
    pub(super) async fn boot_id(&mut self, boot: BootNo, role: &str) -> Result<String, Failure> {
        let live = self.live.as_ref().filter(|live| live.boot == boot).ok_or_else(|| {
            Failure::infra(InfraKind::Unreachable, format!("run in boot {boot}: it is not up; boot again"))
        })?;
        if let Some(id) = live.boot_ids.get(role) {
            return Ok(id.clone());
        }
        let link = self.link(role)?;
        link.connect("reach the role", ANSWERS).await.map_err(InfraFailure::from)?;
        let Sight::Account { identity, .. } = restart::look(link).await.map_err(InfraFailure::from)? else {
            let reason = format!("failed to look at the role {role}: it does not tell its boot id");
            return Err(Failure::infra(InfraKind::Unreachable, reason));
        };
        if let Some(live) = &mut self.live {
            live.boot_ids.insert(role.to_owned(), identity.boot_id.clone());
        }
        Ok(identity.boot_id)
    }

    pub(super) fn link(&mut self, role: &str) -> Result<&mut Link, Failure> {
        if role == SUT {
            return Ok(&mut self.parts.sut);
        }
        self.parts.roles.get_mut(role).ok_or_else(|| {
            let reason = format!("reach the role {role}: the profile's [roles] does not have its address");
            Failure::infra(InfraKind::BrokenCommand, reason)
        })
    }

    pub(super) async fn do_call(&mut self, call: &Call<'_>) -> Result<Called, Failure> {
        let place = call.place;
        let boot_id = self.boot_id(place.boot, call.role).await?;
        self.jobs += 1;
        let mark = format!("{}-{}-{}", self.mark(), place.step, self.jobs);
        let before = self.last.insert(call.role.to_owned(), mark.clone());
        let mut env = vec![
            ("SB_ROLE".to_owned(), call.role.to_owned()),
            ("SB_COMMIT".to_owned(), place.artifact.commit.to_string()),
            ("SB_BOOT".to_owned(), place.boot.to_string()),
            ("SB_REPETITION".to_owned(), place.repetition.to_string()),
        ];
        env.extend(call.env.iter().cloned());
        let job = Job {
            mark: &mark,
            before: before.as_deref(),
            body: call.script,
            env: &env,
            deadline: call.deadline,
            most: MOST,
            boot_id: &boot_id,
            leaves_processes: call.leaves_processes,
        };
        let link = self.link(call.role)?;
        let end = match job::run(link, job).await {
            Ok(end) => end,
            Err(error) if call.role == SUT => return Err(self.lost_in_a_call(call, &boot_id, error).await),
            Err(error) => return Err(InfraFailure::from(error).into()),
        };
        keep_output(call, &end).map_err(|error| {
            Failure::infra(InfraKind::Other, format!("write {}: {error}", call.log.display()))
        })?;
        if matches!(end, job::JobEnd::Restarted(_)) {
            self.live = None;
        }
        let said = self.console.as_ref().and_then(ConsoleCommand::worst).map(|splat| splat.line);
        Ok(called(call.what, end, call.role == SUT, said))
    }

    /// The SUT is gone, and was not back by the deadline. A power cycle tells the kernel from the network: a machine that then
    /// answers at once had a network all the time.
    pub(super) async fn lost_in_a_call(
        &mut self,
        call: &Call<'_>,
        boot_id: &str,
        error: FarError,
    ) -> Failure {
        self.live = None;
        let path = call.log.with_extension("lost");
        let Ok(mut log) = Log::create(&path) else { return InfraFailure::from(error).into() };
        log.note(&format!("failed to {error}"));
        let splat = self.console.as_ref().and_then(ConsoleCommand::worst);
        match self.cycle(&mut log).await {
            Ok(true) => {}
            Ok(false) => return InfraFailure::from(error).into(),
            Err(failure) => return failure,
        }
        match restart::wait(&mut self.parts.sut, boot_id, call.deadline.max(ANSWERS * 10)).await {
            Ok(Restarted::Up(_)) => {
                let hung = match splat {
                    Some(splat) => format!("{} (under load: during the {})", splat.line, call.what),
                    None => format!(
                        "hangs under load: nothing answered during the {} until its deadline, and a power cycle brought the machine back",
                        call.what
                    ),
                };
                Failure::commit(UntestableKind::Panic, hung)
            }
            Ok(Restarted::NotUp { .. }) | Err(_) => InfraFailure::from(error).into(),
        }
    }
}

fn keep_output(call: &Call<'_>, end: &job::JobEnd) -> io::Result<()> {
    let job::JobEnd::Exit { stdout, stderr, .. } = end else { return Ok(()) };
    std::fs::write(call.log, stdout)?;
    let mut err = call.log.as_os_str().to_owned();
    err.push(".err");
    std::fs::write(err, stderr)
}
