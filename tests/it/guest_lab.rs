//! The lab's own test: the machine that reboots does what a server does, so that what is tried on it means something.
//!
//! `make check-extended` runs it: some six minutes on two cores, the disk's making among them.

use crate::common::guest::{Guest, USERS};
use crate::common::two::text;
use std::time::{Duration, Instant};

/// The rescue kernel twice more: with a mark on its command line, and without the initramfs that holds the drivers of its
/// disk, so that it panics.
fn add_entries(guest: &Guest) {
    let config = guest.run("cat /boot/grub/grub.cfg");
    let rescue = config.find("menuentry 'Debian").map(|at| &config[at..]).expect("has a rescue entry");
    let rescue = &rescue[..rescue.find("\n}").expect("ends") + 3];
    let once = rescue.replace("'rescue'", "'once'").replace(" quiet", " quiet candidate=1");
    let panics = rescue.replace("'rescue'", "'panics'").replace(" quiet", " panic=5");
    let panics: String =
        panics.lines().filter(|line| !line.contains("initrd")).map(|l| format!("{l}\n")).collect();
    guest.write("/boot/grub/custom.cfg", format!("{once}{panics}").as_bytes());
}

fn environment(guest: &Guest) -> Vec<String> {
    guest.run("grub-editenv - list").lines().map(str::to_owned).collect()
}

fn console(guest: &Guest) -> String {
    text(&std::fs::read(guest.console()).expect("QEMU writes it"))
}

fn say(what: &str, begin: Instant) {
    eprintln!("{what}: {:.0?}", begin.elapsed());
}

#[test]
#[ignore = "minutes; make check-extended"]
fn guest_boots_an_entry_once_comes_back_to_rescue_and_survives_its_power_switch() {
    let begin = Instant::now();
    let Some(guest) = Guest::start("guest_lab") else { return };
    say("disk", begin);
    let begin = Instant::now();
    let first = guest.await_boot(None);
    say("power-on to ssh", begin);
    assert_eq!(environment(&guest), ["saved_entry=rescue"]);
    users_are_who_they_are(&guest);

    add_entries(&guest);
    guest.run("grub-reboot once");
    assert_eq!(environment(&guest), ["saved_entry=rescue", "next_entry=once"]);
    let begin = Instant::now();
    guest.reboot();
    let second = guest.await_boot(Some(&first));
    say("reboot into the entry", begin);
    assert!(guest.run("cat /proc/cmdline").ends_with("candidate=1"));
    assert_eq!(environment(&guest), ["saved_entry=rescue", "next_entry="]);

    let begin = Instant::now();
    guest.reboot();
    let third = guest.await_boot(Some(&second));
    say("reboot back to rescue", begin);
    assert!(!guest.run("cat /proc/cmdline").contains("candidate"));

    guest.run("grub-reboot panics");
    let begin = Instant::now();
    guest.reboot();
    let third = guest.await_boot(Some(&third));
    say("reboot into a panic and by itself back to rescue", begin);
    assert_eq!(environment(&guest), ["saved_entry=rescue", "next_entry="]);
    let seen = console(&guest);
    assert_eq!(seen.matches("Kernel panic").count(), 1, "{seen}");

    assert_eq!(guest.power("status"), "on");
    let begin = Instant::now();
    guest.power("cycle");
    let fourth = guest.await_boot(Some(&third));
    say("power cycle to ssh", begin);

    guest.power("off");
    assert_eq!(guest.power("status"), "off");
    std::thread::sleep(Duration::from_secs(2));
    let begin = Instant::now();
    guest.power("on");
    guest.await_boot(Some(&fourth));
    say("off and on to ssh", begin);
    let seen = console(&guest);
    assert_eq!(seen.matches("Loading Linux").count(), 7, "one for each boot:\n{seen}");
}

/// Root, one with sudo and one without, and what a server's tools say of it.
fn users_are_who_they_are(guest: &Guest) {
    for user in USERS {
        let sudo = guest.ssh(user).arg("sudo -n id -u").output().expect("ssh is there");
        assert_eq!(sudo.status.success(), user != "nosudo", "{user}: {}", text(&sudo.stderr));
    }
    let state = guest.run("systemctl is-system-running --wait || true");
    assert!(["running", "degraded"].contains(&state.as_str()), "{state}");
    assert_eq!(guest.run("grub-probe -t fs /boot"), "ext2");
    assert_eq!(guest.run("grub-mkrelpath /boot/grub"), "/grub");
}
