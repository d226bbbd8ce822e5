//! The directory of a session's connections: short, ours alone, cleared when it is taken and when it goes.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// ssh puts ".ssh-connectionXXXXXX/master.XXXXXXXXXXXXXXXX" behind it, and a socket's path has 107 bytes at most.
const LONGEST: usize = 107 - 46;

/// A directory of mode 0700 for the control sockets of one session, and for ssh's configuration. The session's lock is held
/// by whoever has one, so that what lies in it is nobody else's.
#[derive(Debug)]
pub struct ControlDir {
    path: PathBuf,
}

impl ControlDir {
    /// The one of the session at `owner`; what an earlier, killed run of the program left in it is taken away. Errors are
    /// the operating system's, or that there is no short enough place.
    pub fn take(owner: &Path) -> io::Result<Self> {
        let hash = blake3::hash(owner.as_os_str().as_encoded_bytes()).to_hex();
        let path = base()?.join(&hash[..16]);
        if path.as_os_str().len() > LONGEST {
            let reason = format!(
                "{} is too long a path for ssh's sockets; set XDG_RUNTIME_DIR to a shorter one",
                path.display()
            );
            return Err(io::Error::other(reason));
        }
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlDir {
    fn drop(&mut self) {
        // What is left is cleared by the next who takes it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Ours alone, whatever was put there before us.
fn base() -> io::Result<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let path = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir).join("sched-bisect"),
        _ if uid == 0 => PathBuf::from("/run/sched-bisect"),
        _ => PathBuf::from(format!("/tmp/sched-bisect-{uid}")),
    };
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(io::Error::new(error.kind(), format!("make {}: {error}", path.display())));
        }
        Ok(()) | Err(_) => {}
    }
    let found = fs::symlink_metadata(&path)?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o077 != 0 {
        let reason = format!(
            "{} is not a directory that only you can enter; remove it, or chmod 700 it",
            path.display()
        );
        return Err(io::Error::other(reason));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ours_alone_and_goes_with_its_owner() {
        let owner = tempfile::tempdir().expect("a directory");
        let taken = ControlDir::take(owner.path()).expect("there is room for it");
        let path = taken.path().to_owned();
        fs::write(path.join("left"), "").expect("writes");
        assert_eq!(fs::metadata(&path).expect("is there").mode() & 0o777, 0o700);
        drop(taken);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_run_left_in_it_is_cleared() {
        let owner = tempfile::tempdir().expect("a directory");
        let taken = ControlDir::take(owner.path()).expect("there is room for it");
        fs::write(taken.path().join("left"), "").expect("writes");
        let path = taken.path().to_owned();
        std::mem::forget(taken);
        let again = ControlDir::take(owner.path()).expect("there is room for it");
        assert_eq!(again.path(), path);
        assert!(!path.join("left").exists());
    }
}
