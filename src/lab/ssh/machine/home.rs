//! The machine's own kernel: the way back to it, and the proof that there is one.

use super::{ANSWERS, Log, SshMachine};
use crate::lab::identity::Identity;
use crate::lab::power::Switch;
use crate::lab::ssh::far::FarError;
use crate::lab::ssh::job;
use crate::lab::ssh::kernels::Site;
use crate::lab::ssh::loader::{Loader, OWN_WORDS, command_line, own_word};
use crate::lab::ssh::notes::Rescue;
use crate::lab::ssh::outcome::Failure;
use crate::lab::ssh::restart::{self, Restarted};
use crate::lab::ssh::wait::{Sight, Stage};
use crate::model::{InfraFailure, InfraKind};
use std::time::Duration;

impl SshMachine {
    /// Some system that answers and stays up; where none does and there is a power switch, after a power cycle.
    pub(super) async fn reach(&mut self, within: Duration, log: &mut Log) -> Result<Identity, Failure> {
        // A restart that an earlier run of the program asked for may be under way: a power cycle in the middle of it would
        // make a good kernel look like one that does not come up.
        let patience = if self.parts.notes.known.trying.is_some() { within.max(ANSWERS) } else { ANSWERS };
        let mut error = None;
        // Again, since a connection that was there may be one that was lost.
        for _ in 0..2 {
            match self.parts.sut.connect("reach the SUT", patience).await {
                Ok(()) => {
                    if let Some(identity) = self.settled(within, log).await? {
                        return Ok(identity);
                    }
                }
                Err(refused @ FarError::Refused { .. }) => return Err(InfraFailure::from(refused).into()),
                Err(lost) => {
                    log.note(&format!("failed to {lost}"));
                    error = Some(lost);
                    break;
                }
            }
        }
        match (self.cycle(log).await?, error) {
            (true, _) => {}
            (false, Some(error)) => return Err(InfraFailure::from(error).into()),
            (false, None) => return self.account().await,
        }
        self.parts
            .sut
            .connect("reach the SUT after a power cycle", within)
            .await
            .map_err(InfraFailure::from)?;
        self.account().await
    }

    /// Who answers; a system that is going down is waited out, since what is done on it is lost. `None`: nobody.
    async fn settled(&mut self, within: Duration, log: &mut Log) -> Result<Option<Identity>, Failure> {
        let Sight::Account { identity, state, .. } = self.look().await? else { return Ok(None) };
        if state != "stopping" {
            return Ok(Some(identity));
        }
        log.note("the machine is going down: waiting for what comes up");
        self.parts.sut.close().await;
        let sut = &mut self.parts.sut;
        match restart::wait(sut, &identity.boot_id, within).await.map_err(InfraFailure::from)? {
            Restarted::Up(identity) => Ok(Some(identity)),
            Restarted::NotUp { words, .. } => {
                log.note(&format!("not up: {words}"));
                Ok(None)
            }
        }
    }

    /// Takes its power away and gives it again; `false`: nothing can.
    pub(super) async fn cycle(&mut self, log: &mut Log) -> Result<bool, Failure> {
        let Some(power) = &self.parts.power else { return Ok(false) };
        log.note("power cycle");
        self.parts.sut.close().await;
        power.switch(Switch::Cycle).await?;
        Ok(true)
    }

    /// What an earlier, killed run of the program still has running on the machines.
    pub(super) async fn clean(&mut self) -> Result<(), Failure> {
        if self.is_clean {
            return Ok(());
        }
        let marks = format!("{}-", self.mark());
        for link in std::iter::once(&mut self.parts.sut).chain(self.parts.roles.values_mut()) {
            job::end_all(link, &marks).await.map_err(InfraFailure::from)?;
        }
        self.is_clean = true;
        Ok(())
    }

    /// The machine's own kernel and its command line; where one of ours runs and it is not known, the machine is sent back
    /// to it.
    pub(super) async fn know_rescue(
        &mut self,
        now: Identity,
        within: Duration,
        log: &mut Log,
    ) -> Result<Identity, Failure> {
        let is_ours = now.cmdline.contains(OWN_WORDS);
        let now = match is_ours && self.parts.notes.known.rescue.is_none() {
            true => self.go_home(&now, within, log).await?,
            false => now,
        };
        if !now.cmdline.contains(OWN_WORDS) {
            let rescue = Rescue { release: now.release.clone(), cmdline: now.cmdline.clone() };
            self.note(|known| known.rescue = Some(rescue))?;
        }
        Ok(now)
    }

    /// Restarts it into whatever it has by itself.
    pub(super) async fn go_home(
        &mut self,
        now: &Identity,
        within: Duration,
        log: &mut Log,
    ) -> Result<Identity, Failure> {
        log.note("restart into the machine's own kernel");
        let Site { root, loader, .. } = self.site().await?;
        loader.clear_once(&mut self.parts.sut, &root).await.map_err(InfraFailure::from)?;
        loader.restart_home(&mut self.parts.sut, &root).await.map_err(InfraFailure::from)?;
        self.parts.sut.close().await;
        match restart::wait(&mut self.parts.sut, &now.boot_id, within).await.map_err(InfraFailure::from)? {
            Restarted::Up(identity) => Ok(identity),
            Restarted::NotUp { words, .. } => {
                let reason = format!(
                    "restart the machine into its own kernel: not up within {} s ({words})",
                    within.as_secs()
                );
                Err(Failure::infra(InfraKind::Unreachable, reason))
            }
        }
    }

    /// Once for each machine and loader: its own kernel is booted once, by an entry of ours, and the restart after it must
    /// come back without it. Whatever is wrong with that is found here, not with a candidate that cannot come back.
    pub(super) async fn rehearse(
        &mut self,
        now: Identity,
        within: Duration,
        log: &mut Log,
    ) -> Result<Identity, Failure> {
        let Site { root, loader, .. } = self.site().await?;
        if self.parts.notes.known.rehearsed == loader.name() {
            return Ok(now);
        }
        let home = match now.cmdline.contains(OWN_WORDS) {
            true => self.go_home(&now, within, log).await?,
            false => now,
        };
        log.note("rehearsal: the machine's own kernel, booted once by an entry of ours");
        let token = format!("rehearsal-{}", home.boot_id);
        let words = command_line(&home.cmdline, &[own_word(&token)]).map_err(InfraFailure::from)?;
        let sut = &mut self.parts.sut;
        loader.set_once_home(sut, &root, &home.release, words).await.map_err(InfraFailure::from)?;
        loader.restart(sut, &root).await.map_err(InfraFailure::from)?;
        sut.close().await;
        let up = restart::wait(sut, &home.boot_id, within).await.map_err(InfraFailure::from)?;
        let once = match up {
            Restarted::Up(identity) => identity,
            Restarted::NotUp { stage: Stage::Old, .. } if matches!(loader, Loader::Kexec) => {
                return Err(self.without_kexec());
            }
            Restarted::NotUp { words, .. } => {
                let reason = format!(
                    "rehearse a boot: {} chose the machine's own kernel once, and it was not up within {} s ({words})",
                    loader.name(),
                    within.as_secs()
                );
                return Err(Failure::infra(InfraKind::Unreachable, reason));
            }
        };
        if !once.cmdline.split_whitespace().any(|word| word == own_word(&token)) {
            let reason = format!(
                "one-shot boot not honoured: {} was told to boot an entry once, and the machine came up without it; see \
                 `sched-bisect doctor`, or name another machine.loader",
                loader.name()
            );
            return Err(Failure::infra(InfraKind::BrokenCommand, reason));
        }
        let back = self.go_home(&once, within, log).await?;
        if back.cmdline.contains(OWN_WORDS) {
            let reason = "the machine does not fall back: a boot that was chosen once came again; choose a kernel of yours as the \
                          default entry";
            return Err(Failure::infra(InfraKind::BrokenCommand, reason));
        }
        loader.leave(&mut self.parts.sut, &root, &home.release).await.map_err(InfraFailure::from)?;
        let name = loader.name().to_owned();
        self.note(|known| known.rehearsed = name)?;
        log.note("rehearsal passed");
        Ok(back)
    }
}
