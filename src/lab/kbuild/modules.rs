//! The modules of a kernel, as one archive that a machine with a disk unpacks at its root.
//!
//! Owns: `modules_install` into a private directory, and the archive `modules.tar` of what it put there. Must not do:
//! install anything on this host. Invariants: the archive holds `lib/modules/RELEASE/` and nothing beside it, neither `lib/`
//! nor `lib/modules/` (tar would put a directory in the place of a merged system's link `lib -> usr/lib`), no links, no
//! owner and no time of this host; the same files give the same archive. Tested here and in tests/it/kbuild.rs.

use super::run::{Step, Stop, io_at};
use crate::model::{InfraKind, UntestableKind};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// Name of the archive.
pub(super) const ARCHIVE: &str = "modules.tar";

/// Of all entries: 2000-01-01, as the kernel's own time stamp. tar takes 1970 for a mistake and says so.
const MTIME: u64 = 946_684_800;

/// Links to where the kernel was built, which is not on the machine.
const TO_THE_BUILD: [&str; 2] = ["build", "source"];

/// The arguments of the make that puts modules below `staging`.
pub(super) fn install_args(staging: &Path) -> Vec<String> {
    vec![
        "modules_install".to_owned(),
        format!("INSTALL_MOD_PATH={}", staging.display()),
        "INSTALL_MOD_STRIP=1".to_owned(),
    ]
}

/// Empties the directory that modules are installed into.
pub(super) fn clear(staging: &Path) -> Step<()> {
    match fs::remove_dir_all(staging) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at(staging)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Packs what was installed below `staging` for the kernel of that release into `archive`.
pub(super) fn pack(staging: &Path, release: &str, archive: &Path) -> Step<()> {
    only_child(staging, "lib")?;
    only_child(&staging.join("lib"), "modules")?;
    only_child(&staging.join("lib/modules"), release)?;
    let inside = Path::new("lib/modules").join(release);
    if !staging.join(&inside).join("modules.dep").is_file() {
        let reason = format!("no modules.dep was made: {}", super::failure::missing("depmod"));
        return Err(Stop::infra(InfraKind::Missing, reason));
    }
    let file = File::create(archive).map_err(io_at(archive))?;
    let mut tar = Builder::new(BufWriter::new(file));
    add(&mut tar, staging, &inside)?;
    let done = tar.into_inner().and_then(|mut out| out.flush());
    done.map_err(io_at(archive))
}

/// Anything beside would be unpacked outside of the candidate's own directory.
fn only_child(dir: &Path, wanted: &str) -> Step<()> {
    let names = sorted(dir)?;
    if names == [dir.join(wanted)] && names[0].symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    let names: Vec<String> =
        names.iter().filter_map(|path| Some(path.file_name()?.display().to_string())).collect();
    let reason = format!(
        "make modules_install put {:?} where only {wanted:?} belongs; its modules would not be the candidate's alone",
        names.join(", ")
    );
    Err(Stop::untestable(UntestableKind::Build, reason))
}

fn sorted(dir: &Path) -> Step<Vec<PathBuf>> {
    let read = || fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>();
    let mut paths = read().map_err(io_at(dir))?;
    paths.sort();
    Ok(paths)
}

/// Adds the directory `inside` of `staging` with all that is in it.
fn add<W: Write>(tar: &mut Builder<W>, staging: &Path, inside: &Path) -> Step<()> {
    let dir = staging.join(inside);
    tar.append_data(&mut header(EntryType::Directory, 0o755, 0), inside, io::empty()).map_err(io_at(&dir))?;
    for path in sorted(&dir)? {
        let kind = path.symlink_metadata().map_err(io_at(&path))?;
        let name = inside.join(path.file_name().unwrap_or_default());
        if kind.is_dir() {
            add(tar, staging, &name)?;
        } else if kind.is_file() {
            let file = File::open(&path).map_err(io_at(&path))?;
            let header = &mut header(EntryType::Regular, 0o644, kind.len());
            tar.append_data(header, &name, file).map_err(io_at(&path))?;
        } else if !is_link_to_the_build(&path) {
            let reason =
                format!("make modules_install made {}, which is neither file nor directory", name.display());
            return Err(Stop::untestable(UntestableKind::Build, reason));
        }
    }
    Ok(())
}

fn is_link_to_the_build(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    path.is_symlink() && TO_THE_BUILD.iter().any(|link| name == *link)
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(MTIME);
    header.set_uid(0);
    header.set_gid(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const RELEASE: &str = "6.15.0-sb-0123456789ab";

    /// What `make modules_install` leaves, made in this order.
    fn installed(files: &[&str]) -> tempfile::TempDir {
        let staging = tempfile::tempdir().expect("a directory");
        let root = staging.path().join("lib/modules").join(RELEASE);
        for name in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("is below the root")).expect("creates");
            fs::write(&path, name).expect("writes");
        }
        staging
    }

    fn packed(staging: &Path) -> Step<Vec<u8>> {
        let archive = tempfile::NamedTempFile::new().expect("a file");
        pack(staging, RELEASE, archive.path())?;
        Ok(fs::read(archive.path()).expect("reads"))
    }

    fn names(archive: &[u8]) -> Vec<String> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().expect("an archive");
        entries.map(|entry| entry.expect("whole").path().expect("a path").display().to_string()).collect()
    }

    #[test]
    fn an_archive_holds_the_kernels_own_directory_sorted_and_nothing_above_it() {
        let staging = installed(&["modules.dep", "kernel/fs/b.ko", "kernel/a.ko"]);
        symlink("/tmp", staging.path().join(format!("lib/modules/{RELEASE}/build"))).expect("links");
        let wanted = ["", "/kernel", "/kernel/a.ko", "/kernel/fs", "/kernel/fs/b.ko", "/modules.dep"];
        let wanted: Vec<String> = wanted.iter().map(|path| format!("lib/modules/{RELEASE}{path}")).collect();
        assert_eq!(names(&packed(staging.path()).expect("packs")), wanted);
    }

    #[test]
    fn the_same_files_give_the_same_archive_whoever_made_them_and_when() {
        let one = installed(&["modules.dep", "kernel/a.ko"]);
        let other = installed(&["kernel/a.ko", "modules.dep"]);
        let file = other.path().join(format!("lib/modules/{RELEASE}/kernel/a.ko"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("changes the mode");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        File::open(&file).and_then(|file| file.set_modified(time)).expect("changes the time");
        assert_eq!(packed(one.path()), packed(other.path()));
    }

    #[test]
    fn long_names_survive() {
        let long = format!("kernel/{}/{}.ko", "d".repeat(90), "m".repeat(120));
        let staging = installed(&["modules.dep", &long]);
        let names = names(&packed(staging.path()).expect("packs"));
        assert!(names.contains(&format!("lib/modules/{RELEASE}/{long}")), "{names:?}");
    }

    #[test]
    fn what_would_leave_the_kernels_own_directory_is_refused() {
        let beside = installed(&["modules.dep", "../other/x.ko"]);
        let outside = installed(&["modules.dep", "../../../etc/passwd"]);
        let link = installed(&["modules.dep"]);
        symlink("/etc", link.path().join(format!("lib/modules/{RELEASE}/kernel"))).expect("links");
        for (staging, word) in [(beside, "other"), (outside, "etc"), (link, "kernel")] {
            let Err(Stop::Untestable(why)) = packed(staging.path()) else { panic!("packed {word}") };
            assert!(why.reason.contains(word), "{}", why.reason);
        }
    }

    #[test]
    fn modules_without_depmod_are_no_modules() {
        let Err(Stop::Infra(why)) = packed(installed(&["kernel/a.ko"]).path()) else { panic!("packed") };
        assert_eq!(why.kind, InfraKind::Missing);
        assert!(why.reason.contains("apt install kmod"), "{}", why.reason);
    }
}
