//! What is done to a machine beside measuring: taken back to what it was, looked at.

use super::{ANSWERS, Log, SshMachine};
use crate::lab::ssh::far::Far as _;
use crate::lab::ssh::job;
use crate::lab::ssh::kernels::{self, Cleaned, Site};
use crate::lab::ssh::loader::Loader;
use crate::lab::ssh::outcome::Failure;
use crate::lab::ssh::survey::{self, Needs};
use crate::model::{InfraFailure, InfraKind};
use std::time::Duration;

/// Kernels that are there at the same time: both endpoints and a candidate.
const AT_ONCE: u64 = 3;

/// For a restart that no session waits for.
const RESTART: Duration = Duration::from_secs(900);

impl SshMachine {
    /// Takes every kernel of this program's away, with its entries, and puts the default entry back; a machine that runs one of
    /// them is restarted into its own first.
    pub async fn clean_up(mut self) -> Result<Cleaned, InfraFailure> {
        let done = self.try_clean_up().await;
        self.parts.sut.close().await;
        match done {
            Ok(cleaned) => Ok(cleaned),
            Err(Failure::Infra(failure)) => Err(failure),
            Err(Failure::Commit(told)) => Err(InfraFailure { kind: InfraKind::Other, reason: told.reason }),
        }
    }

    /// How many kernels of this program's are on it.
    pub async fn count_kernels(mut self) -> Result<usize, InfraFailure> {
        let counted = self.try_count_kernels().await;
        self.parts.sut.close().await;
        counted.map_err(|failure| match failure {
            Failure::Infra(failure) => failure,
            Failure::Commit(told) => InfraFailure { kind: InfraKind::Other, reason: told.reason },
        })
    }

    async fn try_count_kernels(&mut self) -> Result<usize, Failure> {
        let site = self.site().await?;
        let there = kernels::list(&mut self.parts.sut, &site).await.map_err(InfraFailure::from)?;
        Ok(there.own.len())
    }

    /// Ends whatever the session has running on its machines, giving each so long. What is told are those where that could
    /// not be done, with the reason.
    pub async fn end_jobs(mut self, within: Duration) -> Vec<(String, String)> {
        let marks = format!("{}-", self.mark());
        let mut failed = Vec::new();
        for link in std::iter::once(&mut self.parts.sut).chain(self.parts.roles.values_mut()) {
            let reason = match tokio::time::timeout(within, job::end_all(link, &marks)).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("failed to {error}")),
                Err(_) => Some(format!("no answer within {} s", within.as_secs())),
            };
            failed.extend(reason.map(|reason| (link.host().to_owned(), reason)));
        }
        failed
    }

    pub(super) async fn try_clean_up(&mut self) -> Result<Cleaned, Failure> {
        let mut log = Log::none()?;
        let now = self.reach(RESTART, &mut log).await?;
        let site = self.site().await?;
        let there = kernels::list(&mut self.parts.sut, &site).await.map_err(InfraFailure::from)?;
        if there.own.iter().any(|own| own.release == there.running) {
            self.go_home(&now, RESTART, &mut log).await?;
        }
        kernels::cleanup(&mut self.parts.sut, &site, None, false)
            .await
            .map_err(|error| InfraFailure::from(error).into())
    }

    /// What `doctor` tells of the machine and of those beside it: a line each, and whether it is as it should be. With
    /// `rehearsal` it is restarted twice, to prove that it boots an entry once and then comes back.
    pub async fn look_over(mut self, rehearsal: bool) -> Vec<(bool, String)> {
        let mut lines = Vec::new();
        let reached = self.parts.sut.connect("reach the SUT", ANSWERS).await;
        match reached {
            Ok(()) => {
                let found = self.look_at_sut(rehearsal, &mut lines).await;
                lines.extend(found.err().map(|failure| (false, failure.words().to_owned())));
            }
            Err(error) => lines.push((false, format!("failed to {error}"))),
        }
        for (role, link) in &mut self.parts.roles {
            let reached = link.connect("reach it", ANSWERS).await;
            lines.push(match reached {
                Ok(()) => (true, format!("{role} at {}", link.host())),
                Err(error) => (false, format!("{role}: failed to {error}")),
            });
        }
        if let Some(power) = &self.parts.power {
            lines.push(match power.state().await {
                Ok(state) => (true, format!("power is {state:?}").to_lowercase()),
                Err(failure) => (false, failure.reason),
            });
        }
        self.parts.sut.close().await;
        lines
    }

    async fn look_at_sut(&mut self, rehearsal: bool, lines: &mut Vec<(bool, String)>) -> Result<(), Failure> {
        let now = self.account().await?;
        let site = match self.site().await {
            // None was found that would do; what GRUB lacks is told one by one.
            Err(_) if self.parts.loader.is_none() => {
                Site { initramfs: self.parts.initramfs, ..Site::new(Loader::Grub) }
            }
            site => site?,
        };
        let seen = survey::survey(&mut self.parts.sut, &site).await.map_err(InfraFailure::from)?;
        let needs =
            Needs { loader: &site.loader, initramfs: site.initramfs, kernels: AT_ONCE, margin: site.margin };
        let found = survey::findings(&seen, &needs);
        let default =
            seen.default.as_ref().map_or_else(String::new, |entry| format!(", default entry {entry}"));
        lines.push((
            true,
            format!("SUT {}: {} runs, booted by {}{default}", seen.host, seen.running, site.loader.name()),
        ));
        let may_rehearse = found.iter().all(|finding| !finding.is_fatal);
        lines.extend(found.into_iter().map(|finding| (!finding.is_fatal, finding.to_string())));
        let is_rehearsed = self.parts.notes.known.rehearsed == site.loader.name();
        if rehearsal && may_rehearse {
            self.note(|known| known.rehearsed = String::new())?;
            let mut log = Log::none()?;
            let now = self.know_rescue(now, RESTART, &mut log).await?;
            self.rehearse(now, RESTART, &mut log).await?;
            lines.push((
                true,
                "rehearsal passed: an entry was booted once, and the machine came back by itself".to_owned(),
            ));
        } else if is_rehearsed {
            lines.push((true, "rehearsed before: boots an entry once and comes back".to_owned()));
        } else {
            let note = "not rehearsed yet; the first candidate's boot does it, or `doctor --rehearse` (two restarts)";
            lines.push((true, note.to_owned()));
        }
        Ok(())
    }
}
