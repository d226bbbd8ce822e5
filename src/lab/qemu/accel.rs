//! How guest instructions are executed.
//!
//! Owns: the accelerators, their command lines, and the session's choice where the plan leaves it open. Must
//! not do: start a guest. Invariant: all guests of a session run with the same accelerator, on every machine
//! and after every resume: the first choice is kept in the session directory. Tested here.

use super::Failure;
use std::io::Write as _;
use std::path::Path;

/// Name of the kept choice in the session directory.
const CHOICE: &str = "qemu-accel.txt";

/// The emulated processor. Of several AMD processors without an invariant TSC (which QEMU does not emulate)
/// Linux believes that their TSCs differ; a kernel without ACPI is then left with the tick for its clock.
const EMULATED: &str = "max,vendor=GenuineIntel";

/// An accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accel {
    /// Emulation whose clock counts instructions: slow, and the host's load does not reach the result.
    Icount,
    /// Emulation in host time.
    Tcg,
    /// The host's own processor.
    Kvm,
}

/// What a plan may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// This one.
    This(Accel),
    /// KVM where a guest really boots with it, else icount.
    Auto,
}

impl Wanted {
    /// Reads the plan's word.
    pub(super) fn named(name: &str) -> Option<Self> {
        if name == "auto" { Some(Self::Auto) } else { Accel::named(name).map(Self::This) }
    }
}

impl Accel {
    fn named(name: &str) -> Option<Self> {
        [Self::Icount, Self::Tcg, Self::Kvm].into_iter().find(|accel| accel.name() == name)
    }

    /// The plan's word for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Icount => "icount",
            Self::Tcg => "tcg",
            Self::Kvm => "kvm",
        }
    }

    /// Arguments for QEMU.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            // One nanosecond an instruction; idle time is skipped, not slept.
            Self::Icount => {
                &["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", EMULATED]
            }
            Self::Tcg => &["-accel", "tcg,thread=multi", "-cpu", EMULATED],
            Self::Kvm => &["-accel", "kvm", "-cpu", "host"],
        }
    }
}

/// The choice that the session at `owner` made, if any.
pub(super) fn kept(owner: &Path) -> Option<Accel> {
    Accel::named(std::fs::read_to_string(owner.join(CHOICE)).ok()?.trim())
}

/// Keeps `choice` for the session, unless another machine was first; gives what is kept.
pub(super) fn keep(choice: Accel, owner: &Path) -> Result<Accel, Failure> {
    let path = owner.join(CHOICE);
    let write = || -> std::io::Result<()> {
        let mut draft = tempfile::NamedTempFile::new_in(owner)?;
        writeln!(draft, "{}", choice.name())?;
        draft.as_file().sync_all()?;
        match draft.persist_noclobber(&path) {
            Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.error),
            Ok(_) | Err(_) => Ok(()),
        }
    };
    write().map_err(|error| Failure::io("keep the choice of the accelerator in", &path, &error))?;
    Ok(kept(owner).unwrap_or(choice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_choice_of_a_session_stays() {
        let session = tempfile::tempdir().expect("temporary directory");
        assert_eq!(kept(session.path()), None);
        assert_eq!(keep(Accel::Icount, session.path()), Ok(Accel::Icount));
        assert_eq!(keep(Accel::Kvm, session.path()), Ok(Accel::Icount), "another machine was first");
        assert_eq!(kept(session.path()), Some(Accel::Icount));
    }

    #[test]
    fn only_the_four_words_of_a_plan_are_known() {
        assert_eq!(Wanted::named("auto"), Some(Wanted::Auto));
        for accel in [Accel::Icount, Accel::Tcg, Accel::Kvm] {
            assert_eq!(Wanted::named(accel.name()), Some(Wanted::This(accel)));
        }
        assert_eq!(Wanted::named("KVM"), None);
    }
}
