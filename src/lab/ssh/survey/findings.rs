//! What stands in the way of booting candidates. Pure.

use super::{Grub, Survey};
use crate::lab::ssh::kernels::Initramfs;
use crate::lab::ssh::loader::{Loader, SetBy};
use std::fmt;

const MIB: u64 = 1024 * 1024;

/// File systems that GRUB cannot write to; its own list, in /etc/grub.d/00_header.
const READ_ONLY_FOR_GRUB: [&str; 4] = ["btrfs", "zfs", "squash4", "squashfs"];

/// First kexec that loads a kernel by file (-s), which signed kernels and lockdown need.
const KEXEC_BY_FILE: (u32, u32, u32) = (2, 0, 8);

/// What is to be done with the machine.
#[derive(Debug, Clone)]
pub struct Needs<'a> {
    /// What shall boot it.
    pub loader: &'a Loader,
    /// What makes initramfs there.
    pub initramfs: Initramfs,
    /// Kernels that must be there at the same time: both endpoints and a candidate.
    pub kernels: u64,
    /// Bytes that stay free.
    pub margin: u64,
}

/// Something found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub what: String,
    /// What mends it.
    pub mend: String,
    /// Whether nothing can be measured before it is mended.
    pub is_fatal: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.mend)
    }
}

fn fatal(what: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding { what: what.into(), mend: mend.into(), is_fatal: true }
}

fn risk(what: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding { is_fatal: false, ..fatal(what, mend) }
}

/// What stands in the way, the worst first.
pub fn findings(survey: &Survey, needs: &Needs<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    if !survey.is_root {
        found.push(fatal(
            format!("{}: scripts do not run as root", survey.host),
            "log in as root, or allow the user sudo without a password",
        ));
    }
    for program in ["sha256sum", "tar"] {
        if !survey.has(program) {
            found.push(fatal(format!("no {program}"), format!("install {program}")));
        }
    }
    found.extend(loaders(survey, needs.loader));
    found.extend(signatures(survey, needs.loader));
    found.extend(default_entry(survey));
    found.extend(room(survey, needs));
    found.extend(initramfs(survey, needs.initramfs));
    found.sort_by_key(|finding| !finding.is_fatal);
    found
}

fn loaders(survey: &Survey, loader: &Loader) -> Vec<Finding> {
    let none = survey.grub.is_none() && !survey.systemd_boot && survey.kexec.is_empty();
    match loader {
        Loader::Hook(_) => Vec::new(),
        Loader::Grub | Loader::SystemdBoot | Loader::Kexec if none => vec![fatal(
            "no boot loader known here: neither GRUB nor systemd-boot nor kexec",
            "install one of them, or give a command that chooses the next boot",
        )],
        Loader::Grub => grub(survey),
        Loader::SystemdBoot if survey.systemd_boot && survey.efi => Vec::new(),
        Loader::SystemdBoot => {
            vec![fatal(
                "systemd-boot did not boot this machine",
                "use another boot method, or run bootctl install",
            )]
        }
        Loader::Kexec => kexec(survey),
    }
}

fn grub(survey: &Survey) -> Vec<Finding> {
    let Some(grub) = &survey.grub else {
        return vec![fatal("no grub.cfg in /boot/grub or /boot/grub2", "use another boot method")];
    };
    let mut found = Vec::new();
    if !survey.has("grub-editenv") && !survey.has("grub2-editenv") {
        found.push(fatal(
            "no grub-editenv",
            "install GRUB's programs (Debian: grub2-common; Fedora: grub2-tools)",
        ));
    }
    let again = "run update-grub (Fedora: grub2-mkconfig -o /boot/grub2/grub.cfg)";
    if !grub.heeds_once {
        found.push(fatal("grub.cfg does not look at next_entry, so no entry can be booted once", again));
    }
    if !grub.reads_custom {
        found.push(fatal(
            "grub.cfg does not read custom.cfg",
            format!("make /etc/grub.d/41_custom executable, then {again}"),
        ));
    }
    if let Some(why) = unwritable(grub) {
        found.push(fatal(
            format!(
                "GRUB cannot write to {}/grubenv ({why}): an entry to boot once would be booted for ever",
                grub.directory
            ),
            "put /boot on a plain partition with ext4 or xfs, or use kexec",
        ));
    }
    found
}

/// Why GRUB cannot write to its environment; as GRUB's own configuration judges it.
fn unwritable(grub: &Grub) -> Option<String> {
    let below = grub.abstraction.split_whitespace().find(|below| matches!(*below, "lvm" | "diskfilter"));
    let below = below.map(|below| match below {
        "lvm" => "LVM".to_owned(),
        _ => "RAID".to_owned(),
    });
    below.or_else(|| READ_ONLY_FOR_GRUB.contains(&grub.fs.as_str()).then(|| grub.fs.clone()))
}

fn kexec(survey: &Survey) -> Vec<Finding> {
    let mut found = Vec::new();
    if survey.kexec.is_empty() {
        found.push(fatal("no kexec", "install kexec-tools"));
    } else if version(&survey.kexec).is_none_or(|version| version < KEXEC_BY_FILE) {
        found.push(risk(
            format!("kexec {} is old: it cannot load a kernel by file (-s)", survey.kexec),
            "install kexec-tools 2.0.8 or newer; until then the older way of loading is used",
        ));
    }
    if !survey.kexec_kernel {
        found.push(fatal(
            format!("kernel {} cannot load another by kexec", survey.running),
            "boot a kernel with CONFIG_KEXEC_FILE and kernel.kexec_load_disabled=0",
        ));
    }
    if !survey.has("systemctl") {
        found.push(fatal("no systemctl, which ends services before a kexec", "use another boot method"));
    }
    found
}

fn version(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split('.').map(|part| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse().ok()
    });
    Some((parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)))
}

fn signatures(survey: &Survey, loader: &Loader) -> Option<Finding> {
    let mend = "turn Secure Boot off in the firmware's settings for the time of the measurements";
    if survey.secure_boot {
        return Some(fatal("Secure Boot is on: kernels that nobody signed do not start", mend));
    }
    let locked = matches!(survey.lockdown.as_str(), "integrity" | "confidentiality");
    let what = format!("the running kernel is locked down ({})", survey.lockdown);
    match loader {
        Loader::Kexec if locked => {
            let mend = "take lockdown= off its command line, or use another boot method";
            Some(fatal(format!("{what}: kexec loads only signed kernels"), mend))
        }
        Loader::Grub | Loader::SystemdBoot | Loader::Kexec | Loader::Hook(_) if locked => Some(risk(
            format!("{what}: some tunables cannot be written"),
            "take lockdown= off the kernel command line",
        )),
        Loader::Grub | Loader::SystemdBoot | Loader::Kexec | Loader::Hook(_) => None,
    }
}

fn default_entry(survey: &Survey) -> Vec<Finding> {
    let mut found = Vec::new();
    if !survey.default_error.is_empty() {
        let mend =
            "without it nobody can tell whether it stays what it is; mend the boot loader's configuration";
        found.push(fatal(format!("the default entry cannot be read: {}", survey.default_error), mend));
    }
    let Some(default) = &survey.default else { return found };
    if default.set_by == SetBy::First {
        let (what, mend) = match &survey.grub {
            Some(grub) if !grub.default_setting.is_empty() => (
                format!("GRUB_DEFAULT={}", grub.default_setting),
                "set GRUB_DEFAULT=saved in /etc/default/grub, run update-grub, then grub-set-default with your kernel's entry",
            ),
            Some(_) | None => {
                ("no default entry is set".to_owned(), "set it (bootctl set-default, grub-set-default)")
            }
        };
        found.push(risk(
            format!("{what}: the default is whatever stands at that place of the menu; a newly installed kernel may become it"),
            mend,
        ));
    }
    match &default.release {
        Some(release) if !survey.kernels.is_empty() && !survey.kernels.contains(release) => {
            found.push(fatal(
                format!("the default entry is kernel {release}, which has no image in /boot"),
                "choose a kernel that is there",
            ))
        }
        Some(_) => {}
        None => found.push(risk(
            format!("it cannot be told which kernel the default entry {default} boots"),
            "choose an entry that names one",
        )),
    }
    found
}

/// Room for the kernels that are needed at once, as large as the machine's own.
fn room(survey: &Survey, needs: &Needs<'_>) -> Vec<Finding> {
    let image = survey.image_bytes + survey.initramfs_bytes;
    let mut places = vec![(&survey.boot, image)];
    if survey.modules.mount == survey.boot.mount {
        places[0].1 += survey.modules_bytes;
    } else {
        places.push((&survey.modules, survey.modules_bytes));
    }
    let mut found = Vec::new();
    for (space, each) in places {
        let fit = space.free.saturating_sub(needs.margin).checked_div(each).unwrap_or(needs.kernels);
        if fit < needs.kernels {
            let (free, each) = (space.free / MIB, each.div_ceil(MIB));
            found.push(fatal(
                format!(
                    "{} has {free} MiB free: room for {fit} kernels of {each} MiB like the machine's own, of {} needed at once",
                    space.mount, needs.kernels
                ),
                "remove kernels that are not needed, enlarge it, or build with fewer drivers",
            ));
        }
    }
    found
}

fn initramfs(survey: &Survey, chosen: Initramfs) -> Option<Finding> {
    let known = ["mkinitramfs", "dracut", "update-initramfs", "mkinitcpio"];
    match chosen {
        Initramfs::None => None,
        Initramfs::Auto if known.iter().any(|program| survey.has(program)) => None,
        Initramfs::Auto => Some(risk(
            "no program that makes an initramfs: candidates must find their root by themselves",
            "build the drivers of disk and file system into the kernel, name the root by PARTUUID or device; or install one",
        )),
        Initramfs::Mkinitramfs | Initramfs::Dracut | Initramfs::UpdateInitramfs | Initramfs::Mkinitcpio => {
            let program = chosen.program()?;
            (!survey.has(program)).then(|| {
                fatal(
                    format!("no {program}"),
                    format!("install {program}, or let another make the initramfs"),
                )
            })
        }
    }
}
