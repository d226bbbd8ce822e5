//! A candidate's boot: installed, chosen once, started, proved; and who is to blame where that fails.

use super::{Live, Log, SshMachine};
use crate::lab::BootJob;
use crate::lab::console_command::ConsoleCommand;
use crate::lab::identity::Identity;
use crate::lab::ssh::kernels::{self, Site, Wanted};
use crate::lab::ssh::loader::{Loader, command_line, own_word};
use crate::lab::ssh::notes::Trying;
use crate::lab::ssh::outcome::{Failure, Fallen, not_up, other_kernel};
use crate::lab::ssh::restart::{self, Restarted};
use crate::lab::ssh::wait::Stage;
use crate::model::{BootRecord, InfraFailure, InfraKind};
use crate::session::SUT;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

/// A kernel that hurts itself restarts the machine, which then comes up with its own.
const FALL_BACK: [&str; 4] = ["panic=10", "oops=panic", "softlockup_panic=1", "hung_task_panic=1"];

/// How often a kernel that the boot loader passed over is chosen.
const CHOICES: u32 = 2;

impl SshMachine {
    pub(super) async fn start_and_prove(&mut self, job: &BootJob) -> Result<BootRecord, Failure> {
        let mut log = Log::create(&job.log).map_err(|error| {
            Failure::infra(InfraKind::Other, format!("write {}: {error}", job.log.display()))
        })?;
        self.watch_console()?;
        let mut now = self.reach(job.deadline, &mut log).await?;
        self.clean().await?;
        now = self.know_rescue(now, job.deadline, &mut log).await?;
        now = self.rehearse(now, job.deadline, &mut log).await?;
        self.fate_of_last(job, &now).await?;
        let entry = self.install(job, &mut log).await?;
        let mut choice = 1;
        loop {
            let token = format!("{}-{}-{}-{choice}", self.parts.session, job.boot, job.step);
            match self.boot_once(job, &entry, &token, &now, &mut log).await? {
                Ok(identity) => return self.proved(job, &identity, &token),
                Err((fallen, identity)) => {
                    let failure = other_kernel(&fallen);
                    let passed_over = fallen.was_started == Some(false);
                    if !passed_over || choice == CHOICES {
                        return Err(for_good(failure, passed_over));
                    }
                    log.note("the boot loader passed it over: chosen once more");
                    now = identity;
                    choice += 1;
                }
            }
        }
    }

    pub(super) fn proved(
        &mut self,
        job: &BootJob,
        identity: &Identity,
        token: &str,
    ) -> Result<BootRecord, Failure> {
        let wrong = |reason| Failure::infra(InfraKind::WrongKernel, reason);
        identity.check(&job.artifact, &own_word(token), &self.seen).map_err(wrong)?;
        self.seen.insert(identity.boot_id.clone());
        let boot_ids = BTreeMap::from([(SUT.to_owned(), identity.boot_id.clone())]);
        self.live = Some(Live { boot: job.boot, boot_ids });
        // Samples of two ways to start a kernel are not of one kind: hardware that kexec does not start anew may differ.
        let method = self.site.as_ref().map_or("", |site| site.loader.name());
        let settings = BTreeMap::from([("boot.method".to_owned(), method.to_owned())]);
        Ok(BootRecord {
            boot_id: identity.boot_id.clone(),
            release: identity.release.clone(),
            cmdline: identity.cmdline.clone(),
            settings,
            ..BootRecord::default()
        })
    }

    /// A kernel that was started and never seen, because this program or the machine's power was gone by then: the boot
    /// loader may know more.
    pub(super) async fn fate_of_last(&mut self, job: &BootJob, now: &Identity) -> Result<(), Failure> {
        let Some(trying) = self.parts.notes.known.trying.clone() else { return Ok(()) };
        self.note(|known| known.trying = None)?;
        let is_this = trying.session == self.parts.session && trying.release == job.artifact.release;
        let came_up = now.cmdline.contains(&own_word(&trying.token));
        if !is_this || came_up || now.boot_id == trying.before {
            return Ok(());
        }
        let was_started = self.was_started(&trying.token).await?;
        if was_started != Some(true) {
            return Ok(());
        }
        let fallen = Fallen { was_started, ..self.fallen(&trying.release, now)? };
        Err(other_kernel(&fallen))
    }

    pub(super) async fn was_started(&mut self, token: &str) -> Result<Option<bool>, Failure> {
        let Site { root, loader, .. } = self.site().await?;
        loader
            .was_started(&mut self.parts.sut, &root, token)
            .await
            .map_err(|error| InfraFailure::from(error).into())
    }

    pub(super) fn fallen(&self, wanted: &str, now: &Identity) -> Result<Fallen, Failure> {
        Ok(Fallen {
            wanted: wanted.to_owned(),
            running: now.release.clone(),
            rescue: self.rescue()?.release,
            was_started: None,
            splat: self.console.as_ref().and_then(ConsoleCommand::worst),
            last_line: self.console.as_ref().map(ConsoleCommand::last_line).unwrap_or_default(),
        })
    }

    pub(super) async fn install(
        &mut self,
        job: &BootJob,
        log: &mut Log,
    ) -> Result<kernels::Installed, Failure> {
        let site = self.site().await?;
        let there = kernels::list(&mut self.parts.sut, &site).await.map_err(InfraFailure::from)?;
        let is_kept =
            |release: &&kernels::Own| self.parts.keep.iter().any(|end| release.release.ends_with(end));
        let keep: Vec<String> = there.own.iter().filter(is_kept).map(|own| own.release.clone()).collect();
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let wanted = Wanted {
            release: &job.artifact.release,
            dir: Path::new(&job.artifact.dir),
            session: &self.parts.session,
            at,
            keep: &keep,
        };
        let installed = kernels::install(&mut self.parts.sut, &site, &wanted).await;
        let installed = installed.map_err(InfraFailure::from)?;
        log.note(&format!("installed {}; it was there: {}", installed.release, installed.was_there));
        for removed in &installed.removed {
            log.note(&format!("made room: {removed} removed"));
        }
        Ok(installed)
    }

    /// Chooses the kernel for the next boot, restarts, and waits. The inner error: another kernel runs.
    pub(super) async fn boot_once(
        &mut self,
        job: &BootJob,
        entry: &kernels::Installed,
        token: &str,
        now: &Identity,
        log: &mut Log,
    ) -> Result<Result<Identity, (Fallen, Identity)>, Failure> {
        let rescue = self.rescue()?;
        let mut more: Vec<String> = FALL_BACK.map(str::to_owned).to_vec();
        more.extend([self.parts.cmdline.clone(), job.variant.sets.cmdline.clone(), own_word(token)]);
        let words = command_line(&rescue.cmdline, &more).map_err(InfraFailure::from)?;
        let Site { root, loader, .. } = self.site().await?;
        loader.set_once(&mut self.parts.sut, &root, &entry.entry(words)).await.map_err(InfraFailure::from)?;
        let trying = Trying {
            session: self.parts.session.clone(),
            release: entry.release.clone(),
            token: token.to_owned(),
            before: now.boot_id.clone(),
        };
        self.note(|known| known.trying = Some(trying))?;
        if let Some(console) = &self.console {
            console.begin();
        }
        log.note(&format!("restart into {} by {}", entry.release, loader.name()));
        let sut = &mut self.parts.sut;
        loader.restart(sut, &root).await.map_err(InfraFailure::from)?;
        sut.close().await;
        let came = restart::wait(sut, &now.boot_id, job.deadline).await.map_err(InfraFailure::from)?;
        let identity = match came {
            Restarted::Up(identity) => identity,
            Restarted::NotUp { stage, words } => {
                let failure = self.did_not_come_up(job, token, (stage, &words), now, log).await;
                return Err(failure);
            }
        };
        self.note(|known| known.trying = None)?;
        log.note(&format!("{} is up: {}", identity.release, identity.cmdline));
        if identity.release == job.artifact.release {
            return Ok(Ok(identity));
        }
        let was_started = self.was_started(token).await?;
        let fallen = Fallen { was_started, ..self.fallen(&entry.release, &identity)? };
        Ok(Err((fallen, identity)))
    }

    pub(super) async fn did_not_come_up(
        &mut self,
        job: &BootJob,
        token: &str,
        (stage, words): (Stage, &str),
        now: &Identity,
        log: &mut Log,
    ) -> Failure {
        log.note(&format!("not up: {words}"));
        let nothing = Identity::default();
        let mut fallen = match self.fallen(&job.artifact.release, &nothing) {
            Ok(fallen) => fallen,
            Err(failure) => return failure,
        };
        let within = job.deadline.as_secs();
        if stage == Stage::Old && self.site.as_ref().is_some_and(|site| matches!(site.loader, Loader::Kexec))
        {
            return self.without_kexec();
        }
        if stage == Stage::Old {
            return not_up(&fallen, stage, words, within, None);
        }
        match self.cycle(log).await {
            Ok(true) => {}
            Ok(false) => return not_up(&fallen, stage, words, within, None),
            Err(failure) => return failure,
        }
        let back = restart::wait(&mut self.parts.sut, &now.boot_id, job.deadline).await;
        let is_back = matches!(back, Ok(Restarted::Up(_)));
        if is_back {
            match self.was_started(token).await {
                Ok(was_started) => fallen.was_started = was_started,
                Err(failure) => return failure,
            }
            if let Err(failure) = self.note(|known| known.trying = None) {
                return failure;
            }
        }
        not_up(&fallen, stage, words, within, Some(is_back))
    }

    /// kexec did nothing. All candidates of a search are started in the same way, so it can be changed only before the first.
    pub(super) fn without_kexec(&mut self) -> Failure {
        let reason = "kexec did nothing: the machine kept running";
        if !self.seen.is_empty() {
            let reason = format!(
                "{reason}, and boots of this session were started by it; they are not held against boots of another kind: start a \
                 new session with another machine.loader"
            );
            return Failure::infra(InfraKind::BrokenCommand, reason);
        }
        if let Err(failure) = self.note(|known| known.no_kexec = true) {
            return failure;
        }
        self.site = None;
        Failure::infra(InfraKind::TryAgain, format!("{reason}; from now on its boot loader is used"))
    }
}

/// A boot loader that passes a kernel over twice would do so with every other: no use in trying on.
fn for_good(failure: Failure, passed_over: bool) -> Failure {
    match failure {
        Failure::Infra(InfraFailure { kind: InfraKind::WrongKernel, reason }) if passed_over => {
            Failure::infra(InfraKind::BrokenCommand, format!("{reason}; see `sched-bisect doctor`"))
        }
        other @ (Failure::Infra(_) | Failure::Commit(_)) => other,
    }
}
