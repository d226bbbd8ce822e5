//! What the machine is told, and tells, of a kernel that the program put there.

use super::call::Facts;
use super::error::Error;
use std::fmt::Write as _;

/// Longest release that a kernel takes for its `uname -r`, less the end of string.
const LONGEST_RELEASE: usize = 64;

/// A kernel that the program put on the machine, or began to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Its release; names all of its files.
    pub release: String,
    /// SHA-256 of its image.
    pub image: String,
    /// The session that installed it.
    pub session: String,
    /// When that began, seconds since 1970.
    pub at: u64,
    /// Whether the installation came to its end.
    pub whole: bool,
    /// Directory of image and initramfs.
    pub boot: String,
    /// Files and directories of it.
    pub paths: Vec<String>,
}

impl Own {
    /// As a manifest tells it.
    pub(super) fn read(release: String, facts: &Facts) -> Self {
        let text = |key| facts.one(key).unwrap_or_default().to_owned();
        Self {
            image: text("image"),
            session: text("session"),
            at: facts.number("at").unwrap_or(0),
            whole: facts.one("whole") == Some("1"),
            boot: text("boot"),
            paths: facts.all("file").chain(facts.all("dir")).map(str::to_owned).collect(),
            release,
        }
    }
}

/// What a manifest is made of before the installation.
pub(super) struct Manifest<'a> {
    pub release: &'a str,
    pub image: &'a str,
    pub session: &'a str,
    pub at: u64,
    pub boot: &'a str,
    pub config: bool,
    pub map: bool,
    /// What makes the initramfs.
    pub tool: Option<&'a str>,
}

impl Manifest<'_> {
    pub fn text(&self) -> String {
        let Self { release, image, session, at, boot, .. } = self;
        let mut text =
            format!("format=1\nrelease={release}\nimage={image}\nsession={session}\nat={at}\nboot={boot}");
        let mut add = |key: &str, path: &str| {
            write!(text, "\n{key}={path}-{release}").expect("writing to a string cannot fail");
        };
        add("file", &format!("{boot}/vmlinuz"));
        if self.tool.is_some() {
            add("file", &format!("{boot}/initrd.img"));
        }
        if self.config {
            add("file", "/boot/config");
        }
        if self.map {
            add("file", "/boot/System.map");
        }
        if self.tool == Some("update-initramfs") {
            if *boot != "/boot" {
                add("file", "/boot/initrd.img");
            }
            write!(text, "\nfile=/var/lib/initramfs-tools/{release}")
                .expect("writing to a string cannot fail");
        }
        write!(text, "\ndir=/lib/modules/{release}").expect("writing to a string cannot fail");
        text
    }
}

/// Whether a release can name files, menu entries and shell arguments without meaning anything else.
pub(in crate::lab::ssh) fn check_release(release: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '~');
    let reason = if release.is_empty() || !release.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        "is no kernel release: it must start with a letter or digit"
    } else if !release.chars().all(plain) || release.contains("..") {
        "is no kernel release that can name files: letters, digits and . _ - + ~ only"
    } else if release.len() > LONGEST_RELEASE {
        "is longer than the 64 characters a kernel's release may have; shorten the local version"
    } else {
        return Ok(());
    };
    Err(Error::Word { text: release.to_owned(), reason: reason.to_owned() })
}

/// Whether a session's name fits into a line of a manifest.
pub(super) fn check_session(session: &str) -> Result<(), Error> {
    if session.is_empty() || session.chars().any(char::is_control) {
        let reason = "is no name of a session for a manifest: one line, not empty".to_owned();
        return Err(Error::Word { text: session.to_owned(), reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_that_could_name_other_files_is_refused() {
        for good in ["6.12.0-sb-1a2b3c4d5e6f", "6.15.0-rc3+", "6.1.0-18-amd64"] {
            assert_eq!(check_release(good), Ok(()), "{good}");
        }
        let long = "6".repeat(65);
        for bad in ["", "..", "6.1/../x", "6.1 x", "-6", "6.1'", "6.1\n", "6..1", ".6", &long] {
            assert!(check_release(bad).is_err(), "{bad:?}");
        }
    }
}
