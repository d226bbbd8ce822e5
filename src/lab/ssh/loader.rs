//! Boot loaders: which kernel a machine boots once, and that its default stays what it is.
//!
//! Owns: entries named `sched-bisect-RELEASE`, the choice of the next boot, reading the default entry and putting it back.
//! Must not do: change the default on purpose, touch entries of others, wait for a machine. Invariants: what is set is
//! read back; a kernel whose files changed is not chosen; a one-shot that others set is never unset.
//! Tested beside each loader with the real scripts over a root directory of its own; GRUB with its real programs.

mod grub;
mod grub_menu;
mod hook;
mod kexec;
mod systemd_boot;
#[cfg(test)]
mod tests;
mod trial;
mod words;

pub use self::hook::Hook;
pub use self::trial::own_word;
pub use self::words::{OWN_WORDS, command_line};

use super::far::Far;
use super::kernels::call::{ABSENT, Call, Facts, LOOKS};
use super::kernels::{Error, check_release, verify};
use super::sut;
use std::fmt;

/// Before the release in the names of our entries.
const PREFIX: &str = "sched-bisect-";

/// What boots the machine once into a kernel.
#[derive(Debug, Clone)]
pub enum Loader {
    /// GRUB 2: entries in custom.cfg, `grub-reboot`.
    Grub,
    /// systemd-boot: entry files, `bootctl set-oneshot`.
    SystemdBoot,
    /// The running kernel itself: kexec. A reset boots the default entry.
    Kexec,
    /// A command of the user's, on this machine.
    Hook(Hook),
}

/// What a machine boots when nobody chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultEntry {
    /// The entry in the loader's own words (GRUB: id, title or position; systemd-boot: file name without counter).
    pub id: String,
    /// For people: its title, where known.
    pub title: String,
    /// Release of its kernel, where known.
    pub release: Option<String>,
    /// Who says so.
    pub set_by: SetBy,
    /// What is stored where it can be set: GRUB's saved_entry, systemd-boot's LoaderEntryDefault; empty: nothing.
    pub stored: String,
}

/// Who says what the default entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetBy {
    /// A variable that can be put back.
    Stored,
    /// A file of configuration names it.
    Configured,
    /// Nobody: it is the first of the menu, and a new kernel may become that.
    First,
}

impl SetBy {
    fn word(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Configured => "configured",
            Self::First => "first",
        }
    }
}

impl fmt::Display for DefaultEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = if self.id.is_empty() { "the first entry" } else { &self.id };
        match (&self.release, self.title.as_str()) {
            (Some(release), _) => write!(f, "{id:?} (kernel {release})"),
            (None, "") => write!(f, "{id:?}"),
            (None, title) => write!(f, "{id:?} ({title})"),
        }
    }
}

impl DefaultEntry {
    /// Whether the same kernel boots.
    fn is(&self, other: &Self) -> bool {
        self.id == other.id && self.release == other.release && self.title == other.title
    }

    /// As it is kept on the machine.
    pub(in crate::lab::ssh) fn text(&self) -> String {
        let Self { id, title, release, set_by, stored } = self;
        let release = release.as_deref().unwrap_or_default();
        format!("id={id}\ntitle={title}\nrelease={release}\nset_by={}\nstored={stored}\n", set_by.word())
    }

    /// Read again; `None` where nothing was kept.
    pub(in crate::lab::ssh) fn recall(facts: &Facts) -> Option<Self> {
        let set_by = facts.one("set_by")?;
        let known = [SetBy::Stored, SetBy::Configured, SetBy::First];
        let text = |key| facts.one(key).unwrap_or_default().to_owned();
        Some(Self {
            id: text("id"),
            title: text("title"),
            release: facts.one("release").map(str::to_owned),
            set_by: known.into_iter().find(|known| known.word() == set_by)?,
            stored: text("stored"),
        })
    }
}

/// An installed kernel with the command line of its next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its release.
    pub release: String,
    /// Directory of image and initramfs, without the root.
    pub boot: String,
    /// Whether there is an initramfs.
    pub initramfs: bool,
    /// The command line, by words (see [`command_line`]).
    pub words: Vec<String>,
}

impl Entry {
    fn id(&self) -> String {
        format!("{PREFIX}{}", self.release)
    }
}

impl Loader {
    /// For messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Grub => "GRUB",
            Self::SystemdBoot => "systemd-boot",
            Self::Kexec => "kexec",
            Self::Hook(_) => "hook",
        }
    }

    /// Where images go, without the root.
    pub async fn boot_directory(&self, far: &mut dyn Far, root: &str) -> Result<String, Error> {
        match self {
            Self::SystemdBoot => systemd_boot::directory(far, root).await,
            Self::Grub | Self::Kexec | Self::Hook(_) => Ok("/boot".to_owned()),
        }
    }

    /// What the machine boots when nobody chooses; `None` where the loader cannot tell (kexec, hook).
    pub async fn default_entry(&self, far: &mut dyn Far, root: &str) -> Result<Option<DefaultEntry>, Error> {
        match self {
            Self::Grub => grub::default_entry(far, root).await.map(Some),
            Self::SystemdBoot => systemd_boot::default_entry(far, root).await.map(Some),
            Self::Kexec | Self::Hook(_) => Ok(None),
        }
    }

    /// Looks whether the default entry is still `before`; puts it back where it moved, and looks again. Gives whether it
    /// had moved.
    pub async fn keep_default(
        &self,
        far: &mut dyn Far,
        root: &str,
        before: &DefaultEntry,
    ) -> Result<bool, Error> {
        let Some(now) = self.default_entry(far, root).await? else { return Ok(false) };
        if now.is(before) {
            return Ok(false);
        }
        match self {
            Self::Grub => grub::put_back(far, root, before, &now).await?,
            Self::SystemdBoot => systemd_boot::put_back(far, root, before, &now).await?,
            Self::Kexec | Self::Hook(_) => {}
        }
        match self.default_entry(far, root).await? {
            Some(again) if !again.is(before) => Err(Error::DefaultMoved {
                host: far.host().to_owned(),
                before: before.to_string(),
                now: again.to_string(),
                mend: self.mend().to_owned(),
            }),
            Some(_) | None => Ok(true),
        }
    }

    /// Like [`Self::keep_default`] at the end of all: a default that cannot be put back, since it depends on which kernels
    /// there are, is the machine's own again once ours are gone.
    pub async fn restore_default(
        &self,
        far: &mut dyn Far,
        root: &str,
        before: &DefaultEntry,
    ) -> Result<bool, Error> {
        match before.set_by {
            SetBy::Stored => self.keep_default(far, root, before).await,
            SetBy::Configured | SetBy::First => {
                let Some(now) = self.default_entry(far, root).await? else { return Ok(false) };
                if now.stored == before.stored {
                    return Ok(false);
                }
                match self {
                    Self::Grub => grub::store(far, root, &before.stored).await?,
                    Self::SystemdBoot => systemd_boot::store(far, root, &before.stored).await?,
                    Self::Kexec | Self::Hook(_) => {}
                }
                Ok(true)
            }
        }
    }

    /// Makes the next boot, and only that, one of this kernel; reads it back. The entry is written anew, so that its
    /// command line is this boot's; the default entry stays.
    pub async fn set_once(&self, far: &mut dyn Far, root: &str, entry: &Entry) -> Result<(), Error> {
        check_release(&entry.release)?;
        let what = format!("boot {} once", entry.release);
        // A loader that cannot read them would stop at its menu.
        if !matches!(self, Self::Hook(_)) && !verify(far, root, &entry.release, "boot").await? {
            let reason = "its image or initramfs is missing or changed; install it again".to_owned();
            return Err(Error::Failed { what, host: far.host().to_owned(), status: ABSENT, reason });
        }
        let before = self.default_entry(far, root).await?;
        match self {
            Self::Grub => grub::set_once(far, root, entry).await?,
            Self::SystemdBoot => systemd_boot::set_once(far, root, entry).await?,
            Self::Kexec => kexec::set_once(far, root, entry).await?,
            Self::Hook(hook) => hook.set_once(far.host(), &entry.release, &entry.words).await?,
        }
        match before {
            Some(before) => self.keep_default(far, root, &before).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// What boots next, where it is not the default: a release of ours, or the loader's own word for another. A hook
    /// cannot tell.
    pub async fn pending(&self, far: &mut dyn Far, root: &str) -> Result<Option<String>, Error> {
        let id = match self {
            Self::Grub => grub::pending(far, root).await?,
            Self::SystemdBoot => systemd_boot::pending(far, root).await?,
            Self::Kexec => kexec::state(far, root, "look").await?,
            Self::Hook(_) => None,
        };
        Ok(id.map(|id| id.strip_prefix(PREFIX).map_or(id.clone(), str::to_owned)))
    }

    /// The next boot is the default's again, where a kernel of ours was to boot; what others chose stays.
    pub async fn clear_once(&self, far: &mut dyn Far, root: &str) -> Result<(), Error> {
        match self {
            Self::Grub => grub::clear_once(far, root).await,
            Self::SystemdBoot => systemd_boot::clear_once(far, root).await,
            Self::Kexec => kexec::state(far, root, "unload").await.map(|_| ()),
            Self::Hook(hook) => hook.set_once(far.host(), "", &[]).await,
        }
    }

    /// Removes the entry of a kernel.
    pub async fn leave(&self, far: &mut dyn Far, root: &str, release: &str) -> Result<(), Error> {
        check_release(release)?;
        match self {
            Self::Grub => grub::leave(far, root, release).await,
            Self::SystemdBoot => systemd_boot::leave(far, root, release).await,
            Self::Kexec | Self::Hook(_) => Ok(()),
        }
    }

    /// Removes the entries of a kernel from every loader that is there: the machine may have been booted by another before.
    pub(in crate::lab::ssh) async fn forget(
        &self,
        far: &mut dyn Far,
        root: &str,
        release: &str,
    ) -> Result<(), Error> {
        self.leave(far, root, release).await?;
        for other in [Self::Grub, Self::SystemdBoot] {
            if other.name() != self.name() {
                there(other.leave(far, root, release).await)?;
            }
        }
        Ok(())
    }

    /// [`Self::clear_once`] in every loader that is there, and nothing is left of what was booted once.
    pub(in crate::lab::ssh) async fn forget_once(&self, far: &mut dyn Far, root: &str) -> Result<(), Error> {
        self.clear_once(far, root).await?;
        for other in [Self::Grub, Self::SystemdBoot, Self::Kexec] {
            if other.name() != self.name() {
                there(other.clear_once(far, root).await)?;
            }
        }
        there(grub::forget_tried(far, root).await)
    }

    /// Asks the machine to restart, into the loaded kernel where it is one by kexec, and returns; services end in order.
    pub async fn restart(&self, far: &mut dyn Far, root: &str) -> Result<(), Error> {
        let how = match self {
            Self::Kexec => "kexec",
            Self::Grub | Self::SystemdBoot | Self::Hook(_) => "reboot",
        };
        let call = Call { what: "restart", text: sut::RESTART, args: &[how], deadline: LOOKS };
        call.facts(far, root).await.map(|_| ())
    }

    fn mend(&self) -> &'static str {
        match self {
            Self::Grub => {
                "set GRUB_DEFAULT=saved in /etc/default/grub, run update-grub, choose your kernel by grub-set-default"
            }
            Self::SystemdBoot => "choose your kernel by bootctl set-default",
            Self::Kexec | Self::Hook(_) => "choose your kernel in the boot loader",
        }
    }
}

/// A loader that is not there has nothing to undo.
fn there(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::Missing { .. }) => Ok(()),
        other => other,
    }
}
