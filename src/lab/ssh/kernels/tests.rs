//! The real scripts over a root directory.

use super::*;
use crate::lab::ssh::fake_root::{Cut, FakeRoot, RESCUE};
use crate::lab::ssh::far::FarError;
use crate::model::{InfraFailure, InfraKind};
use std::fs;
use std::process::Command;
use tempfile::TempDir;

const C3: &str = "6.15.0-rc3-sb-333333333333";
const C4: &str = "6.15.0-rc3-sb-444444444444";
const C5: &str = "6.15.0-rc3-sb-555555555555";
const C6: &str = "6.15.0-rc3-sb-666666666666";

/// A build's directory.
fn built(release: &str, image: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
        fs::write(path, text).expect("writes");
    };
    write(IMAGE, image);
    write(CONFIG, &format!("# of {release}"));
    write(MAP, "0 t _text");
    let modules = format!("lib/modules/{release}");
    write(&format!("tree/{modules}/modules.dep"), "");
    write(&format!("tree/{modules}/kernel/a.ko"), &format!("module of {image}"));
    let (tar, tree) = (dir.path().join(MODULES), dir.path().join("tree"));
    let done = Command::new("tar").arg("-C").arg(tree).arg("-cf").arg(tar).arg(modules).status();
    assert!(done.expect("runs").success());
    dir
}

fn site(far: &FakeRoot) -> Site {
    Site { root: far.root(), ..Site::new(Loader::Grub) }
}

fn wanted<'a>(release: &'a str, dir: &'a TempDir, at: u64) -> Wanted<'a> {
    Wanted { release, dir: dir.path(), session: "s1", at, keep: &[] }
}

async fn put(far: &mut FakeRoot, release: &str, image: &str, at: u64) -> Result<Installed, Error> {
    let (site, dir) = (site(far), built(release, image));
    install(far, &site, &wanted(release, &dir, at)).await
}

/// With GRUB whose default entry is a stored one.
fn machine() -> FakeRoot {
    let far = FakeRoot::new().with_grub("saved");
    far.set_grub_variable("saved_entry", "gnulinux-simple-1");
    far
}

/// The files of a kernel.
fn files_of(far: &FakeRoot, release: &str) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    far.snapshot().into_iter().filter(|(path, _)| path.to_string_lossy().contains(release)).collect()
}

#[tokio::test]
async fn a_kernel_is_there_whole_with_modules_and_initramfs_under_every_shell() {
    for shell in [&["dash"][..], &["busybox", "sh"], &["bash"]] {
        let mut far = machine().with_shell(shell);
        let done = put(&mut far, C3, "image of c3", 1).await.expect("installs");
        assert!(!done.was_there && done.initramfs && done.removed.is_empty() && !done.put_back, "{done:?}");
        assert_eq!(done.default.expect("GRUB tells").release.as_deref(), Some(RESCUE));
        assert_eq!(far.read(&format!("boot/vmlinuz-{C3}")), "image of c3");
        assert_eq!(far.read(&format!("boot/initrd.img-{C3}")), format!("initramfs of {C3}\n"));
        assert_eq!(far.read(&format!("boot/config-{C3}")), format!("# of {C3}"));
        assert_eq!(far.read(&format!("boot/System.map-{C3}")), "0 t _text");
        assert_eq!(far.read(&format!("lib/modules/{C3}/kernel/a.ko")), "module of image of c3");
        assert!(!far.path("var/lib/sched-bisect/incoming").join(C3).exists());
        let site = site(&far);
        let there = list(&mut far, &site).await.expect("lists");
        assert_eq!(there.running, RESCUE);
        let [own] = there.own.as_slice() else { panic!("{there:?}") };
        assert_eq!((own.release.as_str(), own.session.as_str(), own.at, own.whole), (C3, "s1", 1, true));
    }
}

#[tokio::test]
async fn case_41_after_another_kernel_of_equal_version_the_first_ones_files_are_unchanged() {
    let mut far = machine();
    put(&mut far, C3, "image of c3", 1).await.expect("installs");
    let before = files_of(&far, C3);
    put(&mut far, C4, "image of c4", 2).await.expect("installs");
    assert_eq!(files_of(&far, C3), before);
    assert!(before.len() > 8, "{before:?}");
}

#[tokio::test]
async fn case_41_a_file_that_this_program_did_not_put_there_is_never_touched() {
    for theirs in
        [format!("boot/vmlinuz-{C3}"), format!("boot/config-{C3}"), format!("lib/modules/{C3}/x.ko")]
    {
        let mut far = machine();
        far.write(&theirs, "the user's");
        let before = files_of(&far, C3);
        let error = put(&mut far, C3, "image of c3", 1).await.expect_err("is refused");
        let Error::Foreign { files, .. } = &error else { panic!("{error}") };
        assert!(theirs.contains(files[0].trim_start_matches('/')), "{files:?}");
        assert_eq!(files_of(&far, C3), before);
        assert!(!InfraFailure::from(error).kind.is_retried());
    }
}

#[tokio::test]
async fn case_41_of_two_builds_with_one_release_the_older_goes_first_unless_it_runs() {
    let mut far = machine();
    put(&mut far, C3, "one build", 1).await.expect("installs");
    let done = put(&mut far, C3, "another build", 2).await.expect("installs");
    assert_eq!(done.removed, [C3]);
    assert_eq!(far.read(&format!("boot/vmlinuz-{C3}")), "another build");
    far.boot(C3);
    let before = far.snapshot();
    let error = put(&mut far, C3, "a third build", 3).await.expect_err("is refused");
    assert!(matches!(error, Error::Runs { .. }), "{error}");
    assert_eq!(far.snapshot(), before);
    // The same again is no matter.
    assert!(put(&mut far, C3, "another build", 4).await.expect("is there").was_there);
}

#[tokio::test]
async fn a_kernel_that_is_there_unchanged_is_left_alone_and_one_that_changed_is_mended() {
    let mut far = machine();
    put(&mut far, C3, "image", 1).await.expect("installs");
    let before = far.snapshot();
    assert!(put(&mut far, C3, "image", 9).await.expect("is there").was_there);
    assert_eq!(far.snapshot(), before);
    let module = format!("lib/modules/{C3}/kernel/a.ko");
    for (file, text) in [(module, "changed"), (format!("boot/initrd.img-{C3}"), "")] {
        far.write(&file, text);
        assert!(!put(&mut far, C3, "image", 1).await.expect("is mended").was_there);
        assert_eq!(far.snapshot(), before);
    }
}

#[tokio::test]
async fn a_file_that_arrives_changed_is_sent_again_once() {
    let mut far = machine();
    far.damage = 1;
    put(&mut far, C3, "image", 1).await.expect("installs");
    let mut far = machine();
    far.damage = 9;
    let error = put(&mut far, C3, "image", 1).await.expect_err("is refused");
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(!far.path(&format!("boot/vmlinuz-{C3}")).exists());
}

/// Installs c4, cut off; gives the machine, cut no more, and how it ended.
async fn cut_off(cut: Cut) -> (FakeRoot, Result<Installed, Error>) {
    let mut far = machine();
    far.count_programs();
    far.cut = Some(cut);
    let done = put(&mut far, C4, "image of c4", 2).await;
    far.cut = None;
    (far, done)
}

async fn ends_like(cut: Cut, wanted: &FakeRoot) {
    let (mut far, done) = cut_off(cut).await;
    assert!(matches!(done, Err(Error::Far(FarError::Lost { .. }))), "{cut:?}: {done:?}");
    let image = far.path(&format!("boot/vmlinuz-{C4}"));
    assert!(!image.exists() || far.path(&format!("boot/initrd.img-{C4}")).exists(), "{cut:?}");
    put(&mut far, C4, "image of c4", 2).await.unwrap_or_else(|error| panic!("{cut:?}: {error}"));
    assert_eq!(far.snapshot(), wanted.snapshot(), "{cut:?}");
}

#[tokio::test]
async fn an_installation_cut_off_at_any_call_ends_the_same_when_it_is_repeated() {
    let (whole, done) = cut_off(Cut::Call { number: 0, after: false }).await;
    done.expect("is not cut off");
    assert!(whole.calls > 10, "{}", whole.calls);
    // Behind one call is before the next.
    ends_like(Cut::Call { number: 1, after: false }, &whole).await;
    for number in 1..=whole.calls {
        ends_like(Cut::Call { number, after: true }, &whole).await;
    }
}

#[tokio::test]
async fn an_installation_killed_inside_its_scripts_ends_the_same_when_it_is_repeated() {
    let (whole, _) = cut_off(Cut::Program { number: 0, after: false }).await;
    let programs = whole.programs();
    assert!(programs > 20, "{programs}");
    // Behind one is before the next.
    ends_like(Cut::Program { number: 1, after: false }, &whole).await;
    for number in 1..=programs {
        ends_like(Cut::Program { number, after: true }, &whole).await;
    }
}

#[tokio::test]
async fn a_removal_cut_off_anywhere_leaves_nothing_when_it_is_repeated() {
    let mut wanted = machine();
    put(&mut wanted, C3, "image of c3", 1).await.expect("installs");
    for number in 1.. {
        let mut far = machine();
        put(&mut far, C3, "image of c3", 1).await.expect("installs");
        put(&mut far, C4, "image of c4", 2).await.expect("installs");
        far.count_programs();
        far.cut = Some(Cut::Program { number, after: true });
        let site = site(&far);
        let done = remove(&mut far, &site, C4, false).await;
        let was_cut = far.programs() >= number;
        assert_eq!(done.is_err(), was_cut, "{number}");
        far.cut = None;
        remove(&mut far, &site, C4, false).await.expect("removes");
        assert_eq!(far.snapshot(), wanted.snapshot(), "{number}");
        if !was_cut {
            assert!(number > 5);
            break;
        }
    }
}

/// /boot of this size, as df tells it; the rest is large.
fn with_small_boot(far: &FakeRoot, kib: u64) {
    far.program(
        "df",
        &format!(
            r#"echo Filesystem 1024-blocks Used Available Capacity Mounted on
case $2 in
"$ROOT"/boot*)
	used=0
	for f in "$ROOT"/boot/* "$ROOT"/boot/.sched*; do [ -f "$f" ] && used=$((used + ($(wc -c <"$f") + 1023) / 1024)); done
	echo /dev/sda1 {kib} $used $(({kib} - used)) 50% /boot ;;
*) echo /dev/sda2 99999999 1 99999998 1% / ;;
esac"#
        ),
    );
    far.program("mkinitramfs", r#"head -c 40960 /dev/zero >"$2""#);
}

#[tokio::test]
async fn case_47_the_oldest_own_candidates_make_room_and_none_that_is_needed() {
    // 512 MB and 140 MB a kernel, a thousandth of it.
    let mut far = machine();
    with_small_boot(&far, 512);
    let image = |name: &str| format!("{name}{}", "x".repeat(100 * 1024));
    let small = Site { margin: 8 * 1024, ..site(&far) };
    let keep = [C3.to_owned()];
    let mut at = 0;
    let mut removed = Vec::new();
    for release in [C3, C4, C5, C6] {
        at += 1;
        let dir = built(release, &image(release));
        let wanted = Wanted { keep: &keep, ..wanted(release, &dir, at) };
        let done = install(&mut far, &small, &wanted).await.expect("fits");
        removed.push((release, done.removed));
    }
    let none = Vec::new;
    assert_eq!(removed, [(C3, none()), (C4, none()), (C5, none()), (C6, vec![C4.to_owned()])]);
    assert!(files_of(&far, C4).is_empty());
    assert!(far.path(&format!("boot/vmlinuz-{RESCUE}")).exists());

    // Now c5 runs, c3 and c6 are endpoints: nothing may go.
    far.boot(C5);
    let keep = [C3.to_owned(), C6.to_owned()];
    let (dir, before) = (built(C4, &image(C4)), far.snapshot());
    let wanted = Wanted { keep: &keep, ..wanted(C4, &dir, 9) };
    let error = install(&mut far, &small, &wanted).await.expect_err("does not fit");
    let Error::NoRoom { shorts, .. } = &error else { panic!("{error}") };
    assert_eq!(shorts.len(), 1);
    assert_eq!(shorts[0].mount, "/boot");
    assert!(shorts[0].needed > shorts[0].free);
    assert!(error.to_string().contains("/boot needs 1 MiB, 0 MiB free"), "{error}");
    assert_eq!(InfraFailure::from(error).kind, InfraKind::OutOfDisk);
    assert_eq!(far.snapshot(), before);
}

#[tokio::test]
async fn case_42_a_default_entry_that_moved_during_the_installation_is_put_back() {
    let mut far = machine();
    // As a hook of an installation does it.
    far.program(
        "mkinitramfs",
        r#"grub-editenv "$ROOT/boot/grub/grubenv" set "saved_entry=gnulinux-advanced-1>gnulinux-$3-advanced-1"; echo x >"$2""#,
    );
    let done = put(&mut far, C5, "image of c5", 1).await.expect("installs");
    assert!(done.put_back);
    assert_eq!(far.grub_variable("saved_entry"), "gnulinux-simple-1");
}

#[tokio::test]
async fn case_42_a_default_entry_that_cannot_be_put_back_is_told_with_the_mend() {
    let mut far = FakeRoot::new().with_grub("0");
    let moved = FakeRoot::new().with_grub("0");
    moved.write_grub_cfg("0", &[C5, RESCUE]);
    let cfg = moved.path("boot/grub/grub.cfg").display().to_string();
    far.program("mkinitramfs", &format!(r#"cp {cfg} "$ROOT/boot/grub/grub.cfg"; echo x >"$2""#));
    for _ in 0..2 {
        let error = put(&mut far, C5, "image of c5", 1).await.expect_err("the default is c5");
        let Error::DefaultMoved { before, now, mend, .. } = &error else { panic!("{error}") };
        assert!(now.contains(C5) && !before.contains(C5), "{error}");
        assert!(mend.contains("GRUB_DEFAULT=saved"), "{mend}");
        assert!(!error.kind().is_retried());
    }
}

#[tokio::test]
async fn a_cleanup_leaves_the_machine_as_it_was_and_can_be_repeated() {
    let mut far = machine();
    let before = far.snapshot();
    let site = site(&far);
    for (release, at) in [(C3, 1), (C4, 2)] {
        let done = put(&mut far, release, release, at).await.expect("installs");
        let entry = done.entry(vec!["panic=10".to_owned()]);
        site.loader.set_once(&mut far, &site.root, &entry).await.expect("chooses");
    }
    far.set_grub_variable("saved_entry", &format!("sched-bisect-{C3}"));
    let done = cleanup(&mut far, &site, None, false).await.expect("cleans up");
    assert_eq!(done.removed, [C3, C4]);
    assert_eq!(done.put_back.map(|entry| entry.id).as_deref(), Some("gnulinux-simple-1"));
    assert_eq!(far.grub_variable("next_entry"), "");
    // Directories that /var/lib needed stay; grubenv holds the same.
    let mut after = far.snapshot();
    after.retain(|path, content| before.contains_key(path) || content != b"directory");
    assert_eq!(after, before);
    assert_eq!(cleanup(&mut far, &site, None, false).await, Ok(Cleaned::default()));
}

#[tokio::test]
async fn a_cleanup_cut_off_at_any_call_ends_the_same_when_it_is_repeated() {
    let wanted = std::cell::OnceCell::new();
    for number in 0.. {
        let mut far = machine();
        let site = site(&far);
        let entry = put(&mut far, C3, "image", 1).await.expect("installs").entry(Vec::new());
        site.loader.set_once(&mut far, &site.root, &entry).await.expect("chooses");
        (far.calls, far.cut) = (0, Some(Cut::Call { number, after: true }));
        let done = cleanup(&mut far, &site, None, false).await;
        let was_cut = number > 0 && far.calls >= number;
        assert_eq!(done.is_err(), was_cut, "{number}");
        far.cut = None;
        cleanup(&mut far, &site, None, false).await.expect("cleans up");
        assert_eq!(&far.snapshot(), wanted.get_or_init(|| far.snapshot()), "{number}");
        assert!(files_of(&far, C3).is_empty());
        if number > 0 && !was_cut {
            assert!(number > 5);
            break;
        }
    }
}

#[tokio::test]
async fn a_cleanup_keeps_the_running_kernel_and_other_sessions_kernels() {
    let mut far = machine();
    let site = site(&far);
    for (release, at) in [(C3, 1), (C4, 2)] {
        put(&mut far, release, release, at).await.expect("installs");
    }
    let dir = built(C5, "image of c5");
    install(&mut far, &site, &Wanted { session: "s2", ..wanted(C5, &dir, 3) }).await.expect("installs");
    far.boot(C4);
    let done = cleanup(&mut far, &site, Some("s1"), false).await.expect("cleans up");
    assert_eq!((done.removed, done.kept_running), (vec![C3.to_owned()], Some(C4.to_owned())));
    assert!(far.path(&format!("boot/vmlinuz-{C5}")).exists());
    assert!(far.path(&format!("lib/modules/{C4}/kernel/a.ko")).exists());
    let done = cleanup(&mut far, &site, None, true).await.expect("cleans up");
    assert_eq!(done.removed, [C4, C5]);
    assert!(files_of(&far, C4).is_empty() && files_of(&far, C5).is_empty());
}

#[tokio::test]
async fn a_kernel_without_modules_or_initramfs_installs() {
    let mut far = machine();
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join(IMAGE), "image").expect("writes");
    let site = Site { initramfs: Initramfs::None, ..site(&far) };
    let done = install(&mut far, &site, &wanted(C3, &dir, 1)).await.expect("installs");
    assert!(!done.initramfs);
    assert!(!far.path(&format!("boot/initrd.img-{C3}")).exists());
    assert!(far.path(&format!("lib/modules/{C3}")).exists());
    assert!(install(&mut far, &site, &wanted(C3, &dir, 1)).await.expect("is there").was_there);
    let chosen = Site { initramfs: Initramfs::Dracut, ..site };
    let error = install(&mut far, &chosen, &wanted(C4, &dir, 1)).await.expect_err("there is no dracut");
    assert!(matches!(error, Error::Missing { .. }), "{error}");
}
