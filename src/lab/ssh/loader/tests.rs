//! The real scripts over a root directory, with GRUB's real programs.

use super::*;
use crate::lab::ssh::fake_root::{Cut, FakeRoot, RESCUE, Snapshot};
use crate::lab::ssh::kernels::{Installed, Site, Wanted, install, remove};
use std::fs;

const C3: &str = "6.15.0-rc3-sb-333333333333";
const C4: &str = "6.15.0-rc3-sb-444444444444";

async fn put(far: &mut FakeRoot, loader: &Loader, release: &str) -> Installed {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("image"), release).expect("writes");
    fs::write(dir.path().join("config"), "# y").expect("writes");
    let site = Site { root: far.root(), ..Site::new(loader.clone()) };
    let wanted = Wanted { release, dir: dir.path(), session: "s1", at: 1, keep: &[] };
    install(far, &site, &wanted).await.expect("installs")
}

async fn choose(far: &mut FakeRoot, loader: &Loader, release: &str, words: &[&str]) -> Result<(), Error> {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    let entry = put(far, loader, release).await.entry(words);
    let root = far.root();
    loader.set_once(far, &root, &entry).await
}

#[tokio::test]
async fn grub_boots_a_kernel_once_and_the_users_own_text_stays() {
    for shell in [&["dash"][..], &["busybox", "sh"]] {
        let mut far = FakeRoot::new().with_grub("saved").with_shell(shell);
        let root = far.root();
        far.write("boot/grub/custom.cfg", "# mine\nset timeout=3");
        far.set_grub_variable("saved_entry", "gnulinux-simple-1");
        choose(&mut far, &Loader::Grub, C3, &["root=/dev/sda1", "a=$x;y", "panic=10"])
            .await
            .expect("chooses");
        choose(&mut far, &Loader::Grub, C4, &["ro"]).await.expect("chooses");
        choose(&mut far, &Loader::Grub, C3, &["root=/dev/sda1", "a=$x;y", "panic=11"])
            .await
            .expect("chooses");
        let text = far.read("boot/grub/custom.cfg");
        assert!(text.starts_with("# mine\nset timeout=3\n# sched-bisect begin "), "{text}");
        let line = format!(
            "\tlinux $prefix/../vmlinuz-{C3} root=/dev/sda1 'a=$x;y' panic=11\n\tinitrd $prefix/../initrd.img-{C3}\n}}\n"
        );
        assert!(text.contains(&line), "{text}");
        assert!(text.contains(&format!(
            "menuentry 'sched-bisect {C4}' --id 'sched-bisect-{C4}' --unrestricted {{\n"
        )));
        assert_eq!(text.matches("menuentry").count(), 2);
        assert_eq!(far.grub_variable("next_entry"), format!("sched-bisect-{C3}"));
        assert_eq!(Loader::Grub.pending(&mut far, &root).await, Ok(Some(C3.to_owned())));
        assert_eq!(far.grub_variable("saved_entry"), "gnulinux-simple-1");
        let site = Site { root: root.clone(), ..Site::new(Loader::Grub) };
        for release in [C3, C4, C4] {
            remove(&mut far, &site, release, false).await.expect("removes");
        }
        assert_eq!(far.read("boot/grub/custom.cfg"), "# mine\nset timeout=3\n");
        assert_eq!(Loader::Grub.pending(&mut far, &root).await, Ok(None));
    }
}

#[tokio::test]
async fn choosing_an_entry_killed_anywhere_costs_no_text_and_ends_the_same_when_repeated() {
    let wanted = Default::default();
    choosing_killed_at(0, &wanted).await;
    let mut number = 1;
    while choosing_killed_at(number, &wanted).await {
        number += 1;
    }
    assert!(number > 3, "{number}");
}

/// Chooses a kernel, killed at this program, and again; the first call's end state is the `wanted` one. Gives whether it was
/// killed.
async fn choosing_killed_at(number: usize, wanted: &std::cell::OnceCell<Snapshot>) -> bool {
    let mut far = FakeRoot::new().with_grub("saved");
    let root = far.root();
    far.write("boot/grub/custom.cfg", "# mine\n");
    let entry = put(&mut far, &Loader::Grub, C3).await.entry(vec!["ro".to_owned()]);
    far.count_programs();
    far.cut = Some(Cut::Program { number, after: true });
    let done = Loader::Grub.set_once(&mut far, &root, &entry).await;
    let was_killed = number > 0 && far.programs() >= number;
    far.cut = None;
    assert_eq!(done.is_err(), was_killed, "{number}");
    assert!(far.read("boot/grub/custom.cfg").starts_with("# mine\n"), "{number}");
    assert!(matches!(far.grub_variable("next_entry").strip_prefix("sched-bisect-"), None | Some(C3)));
    Loader::Grub.set_once(&mut far, &root, &entry).await.expect("chooses");
    assert_eq!(&far.snapshot(), wanted.get_or_init(|| far.snapshot()), "{number}");
    was_killed
}

#[tokio::test]
async fn entries_of_a_loader_that_was_used_before_go_too() {
    let mut far = FakeRoot::new().with_grub("0");
    choose(&mut far, &Loader::Grub, C3, &["ro"]).await.expect("chooses");
    let site = Site { root: far.root(), ..Site::new(Loader::Kexec) };
    let done = crate::lab::ssh::kernels::cleanup(&mut far, &site, None, false).await.expect("cleans up");
    assert_eq!(done.removed, [C3]);
    assert!(!far.path("boot/grub/custom.cfg").exists());
    assert_eq!(far.grub_variable("next_entry"), "");
}

#[tokio::test]
async fn a_one_shot_that_others_chose_is_not_unset() {
    let mut far = FakeRoot::new().with_grub("0");
    far.set_grub_variable("next_entry", "theirs");
    let root = far.root();
    Loader::Grub.clear_once(&mut far, &root).await.expect("does nothing");
    assert_eq!(Loader::Grub.pending(&mut far, &root).await, Ok(Some("theirs".to_owned())));
}

#[tokio::test]
async fn where_grub_can_be_asked_images_are_found_by_file_system() {
    let mut far = FakeRoot::new().with_grub("0");
    far.program("grub-probe", "echo 1234-abcd");
    far.program("grub-mkrelpath", "echo /");
    choose(&mut far, &Loader::Grub, C3, &["ro"]).await.expect("chooses");
    let text = far.read("boot/grub/custom.cfg");
    let lines = format!("\tsearch --no-floppy --fs-uuid --set=root 1234-abcd\n\tlinux /vmlinuz-{C3} ro\n");
    assert!(text.contains(&lines), "{text}");
}

#[tokio::test]
async fn a_one_shot_that_does_not_read_back_is_an_error() {
    let mut far = FakeRoot::new().with_grub("0");
    far.program("grub-reboot", "exit 0");
    let error = choose(&mut far, &Loader::Grub, C3, &["ro"]).await.expect_err("nothing was set");
    assert!(matches!(error, Error::NotSet { .. }), "{error}");
}

#[tokio::test]
async fn a_kernel_whose_files_changed_is_not_chosen() {
    let mut far = FakeRoot::new().with_grub("0");
    let root = far.root();
    let entry = put(&mut far, &Loader::Grub, C3).await.entry(Vec::new());
    far.write(&format!("boot/initrd.img-{C3}"), "cut short");
    let error = Loader::Grub.set_once(&mut far, &root, &entry).await.expect_err("refused");
    assert!(error.to_string().contains("install it again"), "{error}");
    assert_eq!(Loader::Grub.pending(&mut far, &root).await, Ok(None));
}

#[tokio::test]
async fn words_that_grub_would_change_are_refused_before_anything_is_written() {
    let mut far = FakeRoot::new().with_grub("0");
    let error = choose(&mut far, &Loader::Grub, C3, &["a='b'"]).await.expect_err("refused");
    assert!(matches!(error, Error::Word { .. }), "{error}");
    assert!(!far.path("boot/grub/custom.cfg").exists());
}

#[tokio::test]
async fn a_broken_marker_costs_nobody_any_text() {
    let mut far = FakeRoot::new().with_grub("0");
    choose(&mut far, &Loader::Grub, C3, &["ro"]).await.expect("chooses");
    let text = far.read("boot/grub/custom.cfg").replace(&format!("# sched-bisect end {C3}\n"), "# mine\n");
    far.write("boot/grub/custom.cfg", &text);
    let root = far.root();
    assert!(Loader::Grub.leave(&mut far, &root, C3).await.is_err());
    assert_eq!(far.read("boot/grub/custom.cfg"), text);
}

#[tokio::test]
async fn the_default_entry_of_entry_files_is_read_by_id() {
    let mut far = FakeRoot::new();
    far.write("boot/grub2/grub.cfg", "set default=\"${saved_entry}\"\ninsmod blscfg\nblscfg\n");
    for release in ["6.5.6-300.fc39.x86_64", "6.5.12-300.fc39.x86_64"] {
        let text = format!("title Fedora ({release})\nversion {release}\nlinux /vmlinuz-{release}\n");
        far.write(&format!("boot/loader/entries/4f1c-{release}.conf"), &text);
    }
    let root = far.root();
    let release = |entry: DefaultEntry| entry.release;
    let found = Loader::Grub.default_entry(&mut far, &root).await.expect("reads").expect("tells");
    assert_eq!((found.set_by, release(found).as_deref()), (SetBy::Stored, Some("6.5.12-300.fc39.x86_64")));
    let env = far.path("boot/grub2/grubenv");
    let set = |args: &[&str]| {
        let done = std::process::Command::new("grub-editenv").arg(&env).args(args).status();
        assert!(done.expect("runs").success());
    };
    set(&["create"]);
    set(&["set", "saved_entry=4f1c-6.5.6-300.fc39.x86_64"]);
    let found = Loader::Grub.default_entry(&mut far, &root).await.expect("reads").expect("tells");
    assert_eq!(release(found).as_deref(), Some("6.5.6-300.fc39.x86_64"));
}

/// A machine with systemd-boot, whose variables are files.
fn with_systemd_boot() -> FakeRoot {
    let far = FakeRoot::new();
    far.write("efi/loader/loader.conf", "timeout 3\n");
    let entry = format!("title Debian\nversion {RESCUE}\nlinux /vmlinuz-{RESCUE}\n");
    far.write(&format!("efi/loader/entries/af1c-{RESCUE}+1-2.conf"), &entry);
    far.write("sys/firmware/efi/efivars/x", "");
    far.program(
        "bootctl",
        r#"vars=$ROOT/sys/firmware/efi/efivars
id=4a67b082-0a4c-41cf-b6c7-440b29bb8c4f
set_variable() {
	if [ -z "$2" ]; then rm -f "$vars/$1-$id"; return; fi
	{ printf '\007\000\000\000'; printf %s "$2" | sed 's/./&\n/g' | tr '\n' '\000'; printf '\000\000'; } >"$vars/$1-$id"
}
case $1 in
-x | -p) echo /efi ;;
set-oneshot) set_variable LoaderEntryOneShot "$2" ;;
set-default) set_variable LoaderEntryDefault "$2" ;;
*) exit 1 ;;
esac"#,
    );
    far
}

#[tokio::test]
async fn case_46_systemd_boot_boots_a_kernel_once_and_knows_renamed_entries() {
    for shell in [&["dash"][..], &["busybox", "sh"]] {
        let mut far = with_systemd_boot().with_shell(shell);
        let root = far.root();
        let loader = Loader::SystemdBoot;
        let before = loader.default_entry(&mut far, &root).await.expect("reads").expect("tells");
        assert_eq!(before.id, format!("af1c-{RESCUE}.conf"));
        assert_eq!((before.release.as_deref(), before.set_by), (Some(RESCUE), SetBy::First));
        choose(&mut far, &loader, C3, &["ro", "a=$x"]).await.expect("chooses");
        let entry = format!("efi/loader/entries/sched-bisect-{C3}");
        let text = format!(
            "title sched-bisect {C3}\nversion {C3}\nlinux /vmlinuz-{C3}\ninitrd /initrd.img-{C3}\noptions ro a=$x\n"
        );
        assert_eq!(far.read(&format!("{entry}.conf")), text);
        assert_eq!(far.read(&format!("efi/vmlinuz-{C3}")), C3);
        assert_eq!(loader.pending(&mut far, &root).await, Ok(Some(C3.to_owned())));
        // By its name it would now be the first of the menu.
        let now = loader.default_entry(&mut far, &root).await.expect("reads").expect("tells");
        assert_eq!((now.id.as_str(), now.set_by), (before.id.as_str(), SetBy::Stored));

        fs::rename(far.path(&format!("{entry}.conf")), far.path(&format!("{entry}+1-2.conf")))
            .expect("renames");
        choose(&mut far, &loader, C3, &["rw"]).await.expect("chooses");
        assert!(far.read(&format!("{entry}.conf")).ends_with("options rw\n"));
        assert!(!far.path(&format!("{entry}+1-2.conf")).exists());

        fs::rename(far.path(&format!("{entry}.conf")), far.path(&format!("{entry}+0-3.conf")))
            .expect("renames");
        let site = Site { root: root.clone(), ..Site::new(loader.clone()) };
        let done = crate::lab::ssh::kernels::cleanup(&mut far, &site, None, false).await.expect("cleans up");
        assert_eq!(done.removed, [C3]);
        assert!(!far.path(&format!("{entry}+0-3.conf")).exists());
        assert_eq!(loader.pending(&mut far, &root).await, Ok(None));
        let after = loader.default_entry(&mut far, &root).await.expect("reads");
        assert_eq!(after, Some(before));
    }
}

/// A machine with kexec; its kernel takes no loading by file where `is_old`.
fn with_kexec(is_old: bool) -> FakeRoot {
    let far = FakeRoot::new();
    far.write("sys/kernel/kexec_loaded", "0\n");
    let file = if is_old { "echo 'kexec: invalid option -- s' >&2; exit 1" } else { "" };
    far.program(
        "kexec",
        &format!(
            "case \" $* \" in *' -s '*) {file} ;; esac\nprintf '%s\\n' \"$@\" >\"$ROOT/loaded\"\n\
             if [ \"$1\" = -u ]; then echo 0; else echo 1; fi >\"$ROOT/sys/kernel/kexec_loaded\""
        ),
    );
    far.program("systemctl", "echo \"$@\" >\"$ROOT/asked\"");
    far
}

#[tokio::test]
async fn kexec_loads_a_kernel_and_unloads_it_again() {
    for is_old in [false, true] {
        let mut far = with_kexec(is_old);
        let root = far.root();
        choose(&mut far, &Loader::Kexec, C3, &["ro", "a=\"b c\""]).await.expect("loads");
        let how = if is_old { "-l\n" } else { "-l\n-s\n" };
        let wanted = format!(
            "{how}{root}/boot/vmlinuz-{C3}\n--command-line=ro a=\"b c\"\n--initrd={root}/boot/initrd.img-{C3}\n"
        );
        assert_eq!(far.read("loaded"), wanted);
        assert_eq!(Loader::Kexec.pending(&mut far, &root).await, Ok(Some(C3.to_owned())));
        Loader::Kexec.restart(&mut far, &root).await.expect("asks");
        assert_eq!(far.read("asked"), "--no-block kexec\n");
        Loader::Kexec.clear_once(&mut far, &root).await.expect("unloads");
        assert_eq!(Loader::Kexec.pending(&mut far, &root).await, Ok(None));
        assert_eq!(far.read("sys/kernel/kexec_loaded"), "0\n");
    }
}

#[tokio::test]
async fn a_kernel_that_others_loaded_by_kexec_stays_loaded() {
    let mut far = with_kexec(false);
    let root = far.root();
    far.write("sys/kernel/kexec_loaded", "1\n");
    Loader::Kexec.clear_once(&mut far, &root).await.expect("does nothing");
    assert_eq!(Loader::Kexec.pending(&mut far, &root).await, Ok(Some("?".to_owned())));
}

#[tokio::test]
async fn a_hook_gets_the_release_and_its_end_is_sorted() {
    let dir = tempfile::tempdir().expect("a directory");
    let hook = |command: &str| {
        Loader::Hook(Hook {
            command: command.to_owned(),
            session: dir.path().to_owned(),
            log: dir.path().join("log"),
            deadline: std::time::Duration::from_secs(10),
        })
    };
    let mut far = FakeRoot::new();
    let root = far.root();
    let echo = hook("echo \"$SB_BOOT_ONCE|$SB_CMDLINE|$SB_HOST\"");
    choose(&mut far, &echo, C3, &["ro", "panic=10"]).await.expect("chooses");
    assert_eq!(
        fs::read_to_string(dir.path().join("log")).expect("reads"),
        format!("{C3}|ro panic=10|fake\n")
    );
    for (command, kind) in [("exit 75", "TryAgain"), ("exit 127", "BrokenCommand"), ("exit 1", "Other")] {
        let error = hook(command).clear_once(&mut far, &root).await.expect_err("fails");
        assert_eq!(format!("{:?}", error.kind()), kind);
    }
}
