//! What is asked of a loader beside a candidate: which one the machine has, whether it began to start what it was told to,
//! and the way back to the machine's own kernel.

use super::words::OWN_WORDS;
use super::{Entry, Loader, grub, kexec, systemd_boot};
use crate::lab::ssh::far::Far;
use crate::lab::ssh::kernels::Error;
use crate::lab::ssh::kernels::call::{Call, LOOKS};
use crate::lab::ssh::sut;

/// Behind [`OWN_WORDS`]: the word by which a boot is known.
const BOOT: &str = "boot=";

/// The word of the command line by which a boot is known.
pub fn own_word(token: &str) -> String {
    format!("{OWN_WORDS}{BOOT}{token}")
}

impl Entry {
    /// What its boot is known by.
    pub(super) fn token(&self) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(OWN_WORDS)?.strip_prefix(BOOT))
    }
}

impl Loader {
    /// The one that the machine has.
    pub async fn found(far: &mut dyn Far, root: &str) -> Result<Self, Error> {
        let call = Call { what: "look for a boot loader", text: sut::SURVEY, args: &[], deadline: LOOKS };
        let told = call.facts(far, root).await?;
        if told.one("systemd_boot") == Some("yes") {
            return Ok(Self::SystemdBoot);
        }
        if told.one("grub").is_some() && told.one("grub_once").is_some() && told.one("grub_custom").is_some()
        {
            return Ok(Self::Grub);
        }
        Err(Error::Missing {
            what: "look for a boot loader".to_owned(),
            host: far.host().to_owned(),
            reason: "neither systemd-boot nor a GRUB whose menu knows next_entry and custom.cfg; run update-grub there, or \
                     name machine.loader in the profile (kexec, hook)"
                .to_owned(),
        })
    }

    /// Chooses the machine's own kernel of this release for the next boot, by an entry of ours with these words: what
    /// [`Loader::leave`] takes away again. Its files are the machine's and are not touched.
    pub async fn set_once_home(
        &self,
        far: &mut dyn Far,
        root: &str,
        release: &str,
        words: Vec<String>,
    ) -> Result<(), Error> {
        let boot = self.boot_directory(far, root).await?;
        let call = Call {
            what: "look for the machine's own kernel",
            text: sut::OWN,
            args: &[&boot, release],
            deadline: LOOKS,
        };
        let told = call.facts(far, root).await?;
        let entry =
            Entry { release: release.to_owned(), boot, initramfs: told.one("initramfs").is_some(), words };
        match self {
            Self::Grub => grub::set_once(far, root, &entry).await,
            Self::SystemdBoot => systemd_boot::set_once(far, root, &entry).await,
            Self::Kexec => kexec::set_once(far, root, &entry).await,
            Self::Hook(hook) => hook.set_once(far.host(), &entry.release, &entry.words).await,
        }
    }

    /// Whether the loader began to start the boot that is known by `token`; `None`: it cannot tell. Asked once another
    /// kernel runs.
    pub async fn was_started(
        &self,
        far: &mut dyn Far,
        root: &str,
        token: &str,
    ) -> Result<Option<bool>, Error> {
        match self {
            Self::Grub => grub::tried(far, root).await.map(|tried| Some(tried.as_deref() == Some(token))),
            // The firmware's variable is gone once the loader has taken it.
            Self::SystemdBoot => self.pending(far, root).await.map(|pending| Some(pending.is_none())),
            // It was loaded, and the kernel that loaded it runs no more.
            Self::Kexec => Ok(Some(true)),
            Self::Hook(_) => Ok(None),
        }
    }

    /// Asks the machine to restart into whatever it has by itself, by way of its firmware.
    pub async fn restart_home(&self, far: &mut dyn Far, root: &str) -> Result<(), Error> {
        let call = Call { what: "restart", text: sut::RESTART, args: &["reboot"], deadline: LOOKS };
        call.facts(far, root).await.map(|_| ())
    }
}
