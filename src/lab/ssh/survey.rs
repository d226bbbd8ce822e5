//! What a machine can do as one under test, and what stands in the way; for `doctor`.
//!
//! Owns: reading it ([`survey`]) and judging it ([`findings`], pure). Must not do: change anything there.
//! Tested in survey/tests.rs.

mod findings;
#[cfg(test)]
mod tests;

pub use self::findings::{Finding, Needs, findings};

use super::far::Far;
use super::kernels::call::{Call, Facts, LOOKS};
use super::kernels::{Error, Site};
use super::loader::DefaultEntry;
use super::sut;

/// A machine, as it told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    /// Its name.
    pub host: String,
    /// Whether scripts run as root.
    pub is_root: bool,
    /// Release that runs.
    pub running: String,
    /// Its command line; the candidates' are made of it.
    pub cmdline: String,
    /// Programs that matter and are there.
    pub programs: Vec<String>,
    /// GRUB, where its configuration is there.
    pub grub: Option<Grub>,
    /// Whether systemd-boot is what booted it, by `bootctl is-installed`.
    pub systemd_boot: bool,
    /// Whether it booted by UEFI.
    pub efi: bool,
    /// Whether Secure Boot is on.
    pub secure_boot: bool,
    /// The kernel's lockdown: "none", "integrity" or "confidentiality"; empty: not built in.
    pub lockdown: String,
    /// Version of kexec; empty: not there.
    pub kexec: String,
    /// Whether the running kernel can load another.
    pub kexec_kernel: bool,
    /// What it boots when nobody chooses, where the loader can tell.
    pub default: Option<DefaultEntry>,
    /// Why the default entry could not be read.
    pub default_error: String,
    /// Room for images.
    pub boot: Space,
    /// Room for modules.
    pub modules: Space,
    /// Releases with an image in /boot.
    pub kernels: Vec<String>,
    /// Bytes of the largest image.
    pub image_bytes: u64,
    /// Bytes of the running kernel's initramfs.
    pub initramfs_bytes: u64,
    /// Bytes of the running kernel's modules.
    pub modules_bytes: u64,
}

/// GRUB on a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grub {
    /// Its directory.
    pub directory: String,
    /// Whether its menu heeds a one-shot entry.
    pub heeds_once: bool,
    /// Whether its menu reads custom.cfg.
    pub reads_custom: bool,
    /// File system of its directory, as GRUB or the kernel calls it.
    pub fs: String,
    /// What lies below that, in GRUB's words ("lvm", "diskfilter").
    pub abstraction: String,
    /// GRUB_DEFAULT in /etc/default/grub.
    pub default_setting: String,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Space {
    /// Where it is mounted.
    pub mount: String,
    /// Free bytes.
    pub free: u64,
}

impl Survey {
    fn has(&self, program: &str) -> bool {
        self.programs.iter().any(|found| found == program)
    }

    fn read(host: &str, told: &Facts) -> Self {
        let text = |key| told.one(key).unwrap_or_default().to_owned();
        let largest = |key| told.all(key).filter_map(|bytes| bytes.parse().ok()).max().unwrap_or(0);
        let space = |name: &str| Space {
            mount: told.one(&format!("{name}_mount")).unwrap_or_default().to_owned(),
            free: told.number(&format!("{name}_free")).unwrap_or(0),
        };
        // "none [integrity] confidentiality"
        let lockdown = text("lockdown").split(['[', ']']).nth(1).unwrap_or_default().to_owned();
        let kexec_is_allowed = told.one("kexec_disabled") != Some("1");
        Self {
            host: host.to_owned(),
            is_root: told.one("user") == Some("0"),
            running: text("running"),
            cmdline: text("cmdline"),
            programs: told.all("program").map(str::to_owned).collect(),
            grub: told.one("grub").map(|directory| Grub::read(directory, told)),
            systemd_boot: told.one("systemd_boot") == Some("yes"),
            efi: told.one("efi").is_some(),
            secure_boot: told.one("secure_boot") == Some("1"),
            lockdown,
            kexec: text("kexec").split_whitespace().nth(1).unwrap_or_default().to_owned(),
            kexec_kernel: told.one("kexec_kernel").is_some() && kexec_is_allowed,
            default: None,
            default_error: String::new(),
            boot: space("boot"),
            modules: space("modules"),
            kernels: told.all("kernel").map(str::to_owned).collect(),
            image_bytes: largest("kernel_bytes"),
            initramfs_bytes: largest("initramfs_bytes"),
            modules_bytes: largest("modules_bytes"),
        }
    }
}

impl Grub {
    fn read(directory: &str, told: &Facts) -> Self {
        let text = |key| told.one(key).unwrap_or_default().trim().to_owned();
        let mount = text("grub_mount");
        let (kernels_fs, device) = mount.split_once(' ').unwrap_or((&mount, ""));
        // Where GRUB's own program cannot tell, the kernel's mount does.
        let below = match device {
            _ if device.starts_with("/dev/md") => "diskfilter",
            _ if device.starts_with("/dev/mapper/") => "lvm",
            _ => "",
        };
        let or = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
        // The last one counts; a file of grub.cfg.d comes behind.
        let setting = told.all("setting.GRUB_DEFAULT").last().unwrap_or_default();
        Self {
            directory: directory.to_owned(),
            heeds_once: told.one("grub_once").is_some(),
            reads_custom: told.one("grub_custom").is_some(),
            fs: or(text("grub_fs"), kernels_fs),
            abstraction: or(text("grub_abstraction"), below),
            default_setting: setting.trim_matches(['"', '\'']).to_owned(),
        }
    }
}

/// Looks at a machine.
pub async fn survey(far: &mut dyn Far, site: &Site) -> Result<Survey, Error> {
    let call = Call { what: "look at the machine", text: sut::SURVEY, args: &[], deadline: LOOKS };
    let told = call.facts(far, &site.root).await?;
    let mut survey = Survey::read(far.host(), &told);
    match site.loader.default_entry(far, &site.root).await {
        Ok(default) => survey.default = default,
        Err(Error::Far(error)) => return Err(error.into()),
        // What is missing for it is found one by one.
        Err(error) => survey.default_error = error.to_string(),
    }
    Ok(survey)
}
