//! Writer of the cpio "newc" format, as Linux takes for its first root file system.
//!
//! Owns: the bytes of an archive. Must not do: touch a file. Invariant: the same tree gives the same bytes,
//! whatever the order of its making (no times, no owners, sorted names, numbers counted). Format: the
//! kernel's Documentation/driver-api/early-userspace/buffer-format.rst. Tested here against busybox's cpio.

use std::collections::BTreeMap;

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Directory,
    File { executable: bool, bytes: Vec<u8> },
    Symlink { target: String },
    CharacterDevice { major: u32, minor: u32 },
}

/// A tree to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
}

impl Tree {
    /// A directory, with those above it. Paths may start with a slash.
    pub(super) fn directory(&mut self, path: &str) {
        self.insert(path, Node::Directory);
    }

    /// A regular file; replaces what was there.
    pub(super) fn file(&mut self, path: &str, executable: bool, bytes: Vec<u8>) {
        self.insert(path, Node::File { executable, bytes });
    }

    /// A symbolic link; replaces what was there.
    pub(super) fn symlink(&mut self, path: &str, target: &str) {
        self.insert(path, Node::Symlink { target: target.to_owned() });
    }

    /// A character device.
    pub(super) fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.insert(path, Node::CharacterDevice { major, minor });
    }

    /// Whether there is something at `path`.
    pub(super) fn has(&self, path: &str) -> bool {
        self.nodes.contains_key(path.trim_matches('/'))
    }

    fn insert(&mut self, path: &str, node: Node) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            self.nodes.entry(path[..at].to_owned()).or_insert(Node::Directory);
        }
        self.nodes.insert(path.to_owned(), node);
    }

    /// The archive.
    pub(super) fn archive(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Parents sort before what is in them.
        for (number, (path, node)) in (1..).zip(&self.nodes) {
            let (mode, data, device): (u32, &[u8], (u32, u32)) = match node {
                Node::Directory => (DIRECTORY, &[], (0, 0)),
                Node::File { executable: true, bytes } => (FILE | 0o755, bytes, (0, 0)),
                Node::File { executable: false, bytes } => (FILE | 0o644, bytes, (0, 0)),
                Node::Symlink { target } => (SYMLINK, target.as_bytes(), (0, 0)),
                Node::CharacterDevice { major, minor } => (CHARACTER_DEVICE, &[], (*major, *minor)),
            };
            entry(&mut out, number, mode, path, data, device);
        }
        entry(&mut out, 0, 0, "TRAILER!!!", &[], (0, 0));
        out
    }
}

fn entry(out: &mut Vec<u8>, number: u32, mode: u32, path: &str, data: &[u8], device: (u32, u32)) {
    let size = u32::try_from(data.len()).expect("no program is as large as 4 GiB");
    let name = u32::try_from(path.len() + 1).expect("a path is shorter than 4 GiB");
    // Inode, mode, user, group, links, time, size, device of the file system, device, name, check sum.
    let fields = [number, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name, 0];
    out.extend_from_slice(b"070701");
    for field in fields {
        out.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    out.extend_from_slice(path.as_bytes());
    out.push(0);
    pad(out);
    out.extend_from_slice(data);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Command, Stdio};

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.file("/usr/bin/odd name", true, b"#!/bin/sh\n".to_vec());
        tree.file("etc/empty", false, Vec::new());
        tree.file("etc/five", false, b"12345".to_vec());
        tree.symlink("/bin/sh", "busybox");
        tree.directory("/proc");
        tree
    }

    #[test]
    fn an_archive_extracts_to_the_same_tree() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut cpio = Command::new("busybox")
            .args(["cpio", "-i", "-d"])
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .spawn()
            .expect("busybox is installed");
        cpio.stdin.take().expect("piped").write_all(&tree().archive()).expect("cpio reads");
        assert!(cpio.wait().expect("waits").success());

        let at = |path: &str| dir.path().join(path);
        let mode = |path: &str| std::fs::metadata(at(path)).expect("is there").permissions().mode() & 0o777;
        assert_eq!(std::fs::read(at("usr/bin/odd name")).expect("reads"), b"#!/bin/sh\n");
        assert_eq!(mode("usr/bin/odd name"), 0o755);
        assert_eq!(std::fs::read(at("etc/five")).expect("reads"), b"12345");
        assert_eq!(std::fs::read(at("etc/empty")).expect("reads"), b"");
        assert_eq!(mode("etc/five"), 0o644);
        assert_eq!(std::fs::read_link(at("bin/sh")).expect("a link").to_str(), Some("busybox"));
        assert!(at("proc").is_dir());
    }

    #[test]
    fn a_device_has_its_numbers() {
        let mut tree = Tree::default();
        tree.character_device("/dev/console", 5, 1);
        let mut cpio = Command::new("busybox")
            .args(["cpio", "-t", "-v"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("busybox is installed");
        cpio.stdin.take().expect("piped").write_all(&tree.archive()).expect("cpio reads");
        let list = String::from_utf8(cpio.wait_with_output().expect("waits").stdout).expect("text");
        let line = list.lines().find(|line| line.ends_with("dev/console")).expect("is listed");
        assert!(line.starts_with("crw-------"), "{line}");
        // The header has the numbers in hexadecimal, before the length of the name.
        let archive = String::from_utf8(tree.archive()).expect("text");
        assert!(archive.contains("00000005000000010000000c00000000dev/console"), "{archive}");
    }

    #[test]
    fn the_order_of_making_does_not_change_the_bytes() {
        let mut other = Tree::default();
        other.directory("/proc");
        other.symlink("/bin/sh", "busybox");
        other.file("etc/five", false, b"12345".to_vec());
        other.file("etc/empty", false, Vec::new());
        other.file("/usr/bin/odd name", true, b"#!/bin/sh\n".to_vec());
        assert_eq!(tree().archive(), other.archive());
    }

    #[test]
    fn directories_come_before_what_is_in_them() {
        let tree = tree();
        let names: Vec<&String> = tree.nodes.keys().collect();
        for name in &names {
            if let Some((parent, _)) = name.rsplit_once('/') {
                let at = |wanted: &str| names.iter().position(|name| name.as_str() == wanted);
                assert!(at(parent).is_some() && at(parent) < at(name), "{parent} before {name}");
            }
        }
    }
}
