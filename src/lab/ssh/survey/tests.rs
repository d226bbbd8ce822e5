//! One machine that is well, and each thing that may be wrong with it.

use super::*;
use crate::lab::ssh::fake_root::{FakeRoot, RESCUE};
use crate::lab::ssh::kernels::Initramfs;
use crate::lab::ssh::loader::{Loader, SetBy};
use std::time::Duration;

const GIB: u64 = 1 << 30;

/// A machine that everything is well with.
fn well() -> Survey {
    let default = DefaultEntry {
        id: "gnulinux-simple-1".to_owned(),
        title: "Debian".to_owned(),
        release: Some(RESCUE.to_owned()),
        set_by: SetBy::Stored,
        stored: "gnulinux-simple-1".to_owned(),
    };
    let programs = ["sha256sum", "tar", "grub-editenv", "kexec", "systemctl", "mkinitramfs", "bootctl"];
    Survey {
        host: "rack1".to_owned(),
        is_root: true,
        running: RESCUE.to_owned(),
        programs: programs.map(str::to_owned).to_vec(),
        grub: Some(Grub {
            directory: "/boot/grub".to_owned(),
            heeds_once: true,
            reads_custom: true,
            fs: "ext2".to_owned(),
            abstraction: String::new(),
            default_setting: "saved".to_owned(),
        }),
        systemd_boot: true,
        efi: true,
        lockdown: "none".to_owned(),
        kexec: "2.0.25".to_owned(),
        kexec_kernel: true,
        default: Some(default),
        boot: Space { mount: "/boot".to_owned(), free: GIB },
        modules: Space { mount: "/".to_owned(), free: 9 * GIB },
        kernels: vec![RESCUE.to_owned()],
        image_bytes: 8 << 20,
        initramfs_bytes: 60 << 20,
        modules_bytes: 300 << 20,
        ..Survey::default()
    }
}

fn needs(loader: &Loader) -> Needs<'_> {
    Needs { loader, initramfs: Initramfs::Auto, kernels: 3, margin: 32 << 20 }
}

/// What is found on a machine that `change` made of one that is well, with this loader.
fn found(loader: &Loader, change: impl FnOnce(&mut Survey)) -> Vec<Finding> {
    let mut survey = well();
    change(&mut survey);
    findings(&survey, &needs(loader))
}

/// The only finding must hold these texts in what it is and what mends it.
fn only(found: &[Finding], is_fatal: bool, what: &str, mend: &str) {
    let [one] = found else { panic!("{found:?}") };
    assert!(one.what.contains(what) && one.mend.contains(mend) && one.is_fatal == is_fatal, "{one:?}");
}

fn change_grub(change: impl FnOnce(&mut Grub)) -> Vec<Finding> {
    found(&Loader::Grub, |survey| change(survey.grub.as_mut().expect("has GRUB")))
}

#[test]
fn nothing_is_found_on_a_machine_that_is_well() {
    for loader in [Loader::Grub, Loader::SystemdBoot, Loader::Kexec] {
        assert_eq!(found(&loader, |_| {}), []);
    }
}

#[test]
fn grub_default_0_is_a_risk_with_the_mend() {
    let found = found(&Loader::Grub, |survey| {
        survey.grub.as_mut().expect("has GRUB").default_setting = "0".to_owned();
        survey.default.as_mut().expect("has one").set_by = SetBy::First;
    });
    only(&found, false, "GRUB_DEFAULT=0", "GRUB_DEFAULT=saved");
}

#[test]
fn a_full_boot_is_named_with_its_numbers() {
    let full = found(&Loader::Grub, |survey| survey.boot.free = 100 << 20);
    only(&full, true, "/boot has 100 MiB free: room for 1 kernels of 68 MiB", "remove kernels");
    let one = found(&Loader::Grub, |survey| survey.modules = survey.boot.clone());
    only(&one, true, "/boot has 1024 MiB free: room for 2 kernels of 368 MiB", "remove kernels");
}

#[test]
fn without_root_nothing_can_be_installed() {
    only(&found(&Loader::Grub, |survey| survey.is_root = false), true, "rack1", "sudo");
}

#[test]
fn an_old_kexec_is_named_and_a_missing_one_refused() {
    let old = found(&Loader::Kexec, |survey| survey.kexec = "2.0.4".to_owned());
    only(&old, false, "kexec 2.0.4 is old", "kexec-tools 2.0.8");
    only(&found(&Loader::Kexec, |survey| survey.kexec.clear()), true, "no kexec", "install kexec-tools");
    let kernel = found(&Loader::Kexec, |survey| survey.kexec_kernel = false);
    only(&kernel, true, "cannot load another", "CONFIG_KEXEC_FILE");
    assert_eq!(found(&Loader::Grub, |survey| survey.kexec.clear()), []);
}

#[test]
fn a_machine_without_any_boot_loader_is_refused() {
    let found = found(&Loader::Grub, |survey| {
        (survey.grub, survey.systemd_boot) = (None, false);
        survey.kexec.clear();
    });
    only(&found, true, "no boot loader", "command that chooses");
}

#[test]
fn lockdown_and_secure_boot_are_fatal_where_they_refuse_the_candidate() {
    let locked = |survey: &mut Survey| survey.lockdown = "integrity".to_owned();
    only(&found(&Loader::Kexec, locked), true, "locked down (integrity)", "lockdown=");
    only(&found(&Loader::Grub, locked), false, "locked down (integrity)", "lockdown=");
    only(&found(&Loader::Grub, |survey| survey.secure_boot = true), true, "Secure Boot", "off");
}

#[test]
fn a_grub_that_would_boot_the_candidate_for_ever_is_refused() {
    only(&change_grub(|grub| grub.fs = "btrfs".to_owned()), true, "btrfs", "ext4");
    only(&change_grub(|grub| grub.abstraction = "lvm".to_owned()), true, "LVM", "plain partition");
    only(
        &change_grub(|grub| grub.abstraction = "diskfilter mdraid1x".to_owned()),
        true,
        "RAID",
        "plain partition",
    );
    only(&change_grub(|grub| grub.heeds_once = false), true, "next_entry", "update-grub");
    only(&change_grub(|grub| grub.reads_custom = false), true, "custom.cfg", "41_custom");
}

#[test]
fn a_default_entry_without_a_kernel_is_refused() {
    let gone = found(&Loader::Grub, |survey| survey.kernels = vec!["6.2".to_owned()]);
    only(&gone, true, RESCUE, "choose a kernel");
    let broken = found(&Loader::Grub, |survey| survey.default_error = "no menu".to_owned());
    only(&broken, true, "no menu", "configuration");
}

#[test]
fn a_machine_that_makes_no_initramfs_is_a_risk_unless_none_is_wanted() {
    let mut survey = well();
    survey.programs.retain(|program| program != "mkinitramfs");
    only(&findings(&survey, &needs(&Loader::Grub)), false, "initramfs", "PARTUUID");
    let none = Needs { initramfs: Initramfs::None, ..needs(&Loader::Grub) };
    assert_eq!(findings(&survey, &none), []);
    let chosen = Needs { initramfs: Initramfs::Dracut, ..needs(&Loader::Grub) };
    only(&findings(&survey, &chosen), true, "no dracut", "install");
}

#[tokio::test]
async fn a_machine_tells_what_it_is_under_every_shell() {
    for shell in [&["dash"][..], &["busybox", "sh"], &["bash"]] {
        let mut far = FakeRoot::new().with_grub("0").with_shell(shell);
        far.write("etc/default/grub", "GRUB_DEFAULT=0\nGRUB_TIMEOUT=5\n");
        far.write("proc/cmdline", "BOOT_IMAGE=/x root=/dev/sda1 ro\n");
        far.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        far.write(
            "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
            "\u{6}\0\0\0\u{1}",
        );
        far.program("kexec", "echo kexec-tools 2.0.25");
        far.program("id", "echo 0");
        far.program("grub-probe", "case $1 in *fs) echo btrfs ;; *) echo ;; esac");
        let site = Site { root: far.root(), ..Site::new(Loader::Grub) };
        let survey = survey(&mut far, &site).await.expect("looks");
        let grub = survey.grub.clone().expect("has GRUB");
        assert_eq!((grub.default_setting.as_str(), grub.fs.as_str()), ("0", "btrfs"));
        assert!(grub.heeds_once && grub.reads_custom && survey.is_root && survey.secure_boot && survey.efi);
        assert_eq!((survey.lockdown.as_str(), survey.kexec.as_str()), ("integrity", "2.0.25"));
        assert_eq!(survey.cmdline, "BOOT_IMAGE=/x root=/dev/sda1 ro");
        assert_eq!(survey.kernels, [RESCUE]);
        assert_eq!(survey.image_bytes, 12);
        assert!(survey.boot.free > 0 && survey.modules.free > 0 && survey.has("mkinitramfs"));
        let default = survey.default.clone().expect("GRUB tells");
        assert_eq!((default.set_by, default.release.as_deref()), (SetBy::First, Some(RESCUE)));
        let whats: Vec<String> =
            findings(&survey, &needs(&Loader::Grub)).iter().map(ToString::to_string).collect();
        for word in ["btrfs", "Secure Boot", "GRUB_DEFAULT=0"] {
            assert!(whats.iter().any(|what| what.contains(word)), "{word}: {whats:?}");
        }
    }
}

#[tokio::test]
async fn where_grubs_own_program_cannot_tell_the_mount_does() {
    let mut far = FakeRoot::new().with_grub("saved");
    far.program("grub-probe", "exit 1");
    for (mount, wanted) in
        [("ext4 /dev/mapper/vg-boot", "LVM"), ("ext4 /dev/md0", "RAID"), ("btrfs /dev/sda1[/x]", "btrfs")]
    {
        far.program("findmnt", &format!("echo '{mount}'"));
        let site = Site { root: far.root(), ..Site::new(Loader::Grub) };
        let survey = survey(&mut far, &site).await.expect("looks");
        let found = findings(&survey, &needs(&Loader::Grub));
        assert!(found.iter().any(|finding| finding.is_fatal && finding.what.contains(wanted)), "{found:?}");
    }
}

#[tokio::test]
async fn a_bare_machine_can_be_looked_at() {
    let mut far = FakeRoot::new();
    far.program("id", "echo 1000");
    let hook = crate::lab::ssh::loader::Hook {
        command: "true".to_owned(),
        session: far.path(""),
        log: far.path("log"),
        deadline: Duration::from_secs(1),
    };
    for loader in [Loader::Grub, Loader::SystemdBoot, Loader::Kexec, Loader::Hook(hook)] {
        let site = Site { root: far.root(), ..Site::new(loader.clone()) };
        let survey = survey(&mut far, &site).await.expect("looks");
        assert!(!survey.is_root && survey.grub.is_none());
        assert!(findings(&survey, &needs(&loader))[0].is_fatal);
    }
}
