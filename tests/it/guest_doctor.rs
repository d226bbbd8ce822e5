//! `doctor` on a real machine that is not fit to be one under test: names what is wrong, and what mends it.

use crate::common::guest::Guest;
use crate::common::rig::{Said, command_in, said};
use std::path::Path;

/// What `doctor` says of the guest for this user, with these keys of [machine].
fn doctor(guest: &Guest, dir: &Path, user: &str, more: &str, flags: &[&str]) -> Said {
    let profile = dir.join("guest.toml");
    let machine = guest.machine_toml(user, more, "echo 1");
    let text = format!(
        "[metric]\nname = \"n\"\ndirection = \"higher\"\n[build]\nkind = \"command\"\ncommand = \"true\"\n{machine}"
    );
    std::fs::write(&profile, text).expect("writes");
    let args = [&["doctor", "--profile", profile.to_str().expect("UTF-8")], flags].concat();
    let mut command = command_in(dir, &args);
    said(&command.env("HOME", dir).output().expect("the program starts"))
}

#[test]
#[ignore = "minutes: make check-extended"]
fn doctor_names_what_stands_in_the_way_on_a_real_machine_and_what_mends_it() {
    let Some(guest) = Guest::start("guest_doctor") else { return };
    let repo = crate::common::repo::Repo::new();
    guest.await_boot(None);
    let of = |user: &str, more: &str| doctor(&guest, &repo.path(), user, more, &[]);

    let sound = of("lab", "").exits(0);
    eprintln!("--- as it is\n{}", sound.out);
    sound.tells("booted by GRUB, default entry");
    sound.tells("not rehearsed yet");

    let said = of("nosudo", "").exits(5);
    eprintln!("--- no sudo\n{}", said.out);
    said.tells("let this user run sudo without a password, or log in as root");

    guest.run("fallocate -l $(($(df --output=avail -B1 /boot | tail -n 1) - 40000000)) /boot/filler");
    let said = of("lab", "").exits(5);
    eprintln!("--- /boot is full\n{}", said.out);
    said.tells("LACKING /boot has");
    said.tells("MiB free: room for 0 kernels of");
    said.tells("remove kernels that are not needed, enlarge it, or build with fewer drivers");
    guest.run("rm /boot/filler");

    guest.run(
        "mkdir -p /usr/local/sbin && cat >/usr/local/sbin/kexec <<'OLD'\n#!/bin/sh\n\
         case \" $* \" in *\" -s \"*) echo 'kexec: invalid option -- s' >&2; exit 1 ;; esac\n\
         [ \"$1\" != -v ] || { echo 'kexec-tools 2.0.4 released 21 March 2013'; exit; }\nexec /sbin/kexec \"$@\"\nOLD\n\
         chmod 755 /usr/local/sbin/kexec",
    );
    let said = of("lab", "loader = \"kexec\"\n").exits(0);
    eprintln!("--- an old kexec\n{}", said.out);
    said.tells("kexec 2.0.4 is old: it cannot load a kernel by file (-s)");
    said.tells("install kexec-tools 2.0.8 or newer");
    guest.run("rm /usr/local/sbin/kexec");

    // As a menu looks that was written for a default by number, without GRUB's environment.
    guest.run(
        "cp /boot/grub/grub.cfg /root/grub.cfg && sed -i 's/^GRUB_DEFAULT=.*/GRUB_DEFAULT=0/' /etc/default/grub && \
         awk '/^if \\[ \"\\$\\{next_entry\\}\" \\]/ { print \"set default=\\\"0\\\"\"; skip = 1 } !skip { print } /^fi/ { skip = 0 }' \
         /root/grub.cfg >/boot/grub/grub.cfg",
    );
    for more in ["", "loader = \"grub\"\n"] {
        let said = of("lab", more).exits(5);
        eprintln!("--- GRUB_DEFAULT=0\n{}", said.out);
        said.tells("grub.cfg does not look at next_entry, so no entry can be booted once");
        said.tells("run update-grub (Fedora: grub2-mkconfig -o /boot/grub2/grub.cfg)");
        said.tells("GRUB_DEFAULT=0: the default is whatever stands at that place of the menu");
        said.tells("set GRUB_DEFAULT=saved in /etc/default/grub, run update-grub, then grub-set-default");
    }
    guest.run("cp /root/grub.cfg /boot/grub/grub.cfg && sed -i 's/^GRUB_DEFAULT=.*/GRUB_DEFAULT=saved/' /etc/default/grub");
    of("lab", "").exits(0);

    // By kexec from the machine's own kernel into the same, and by a reset of its firmware back.
    let said = doctor(&guest, &repo.path(), "lab", "loader = \"kexec\"\n", &["--rehearse"]).exits(0);
    eprintln!("--- rehearsal by kexec\n{}", said.out);
    said.tells("booted by kexec");
    said.tells("rehearsal passed: an entry was booted once, and the machine came back by itself");
    assert!(!guest.run("cat /proc/cmdline").contains("sched_bisect"));
    assert_eq!(guest.grub(), ["saved_entry=rescue"]);
}
