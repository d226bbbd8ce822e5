//! `make install` and `make uninstall`, with the binary of the tests.

use crate::common::live::files_below;
use std::path::Path;
use std::process::Command;

fn make(what: &str, dest: &Path) {
    let mut make = Command::new("make");
    make.arg(what).arg(format!("BINARY={}", assert_cmd::cargo::cargo_bin!("sched-bisect").display()));
    make.arg("PREFIX=/usr").arg(format!("DESTDIR={}", dest.display()));
    // Of a `make` that runs the tests nothing is meant for this one.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS");
    let output = make.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("make starts");
    assert!(output.status.success(), "make {what}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn make_install_puts_everything_in_its_place_and_make_uninstall_takes_it_away() {
    let dir = tempfile::tempdir().expect("a directory");
    // A space must not split it.
    let dest = dir.path().join("dest dir");
    make("install", &dest);
    for file in [
        "bin/sched-bisect",
        "share/bash-completion/completions/sched-bisect",
        "share/zsh/site-functions/_sched-bisect",
        "share/fish/vendor_completions.d/sched-bisect.fish",
        "share/man/man1/sched-bisect.1",
        "share/man/man1/sched-bisect-revert-test.1",
        "share/sched-bisect/profiles/qemu-hackbench.toml",
        "share/sched-bisect/hooks/power-ipmitool.sh",
        "share/sched-bisect/hooks/README.md",
        "share/doc/sched-bisect/README.md",
        "share/doc/sched-bisect/docs/parsers.md",
    ] {
        let path = dest.join("usr").join(file);
        assert!(path.metadata().is_ok_and(|file| file.len() > 0), "{} is missing", path.display());
    }
    let version =
        Command::new(dest.join("usr/bin/sched-bisect")).arg("--version").output().expect("it starts");
    assert_eq!(version.stdout, format!("sched-bisect {}\n", env!("CARGO_PKG_VERSION")).into_bytes());
    // What another package put beside it stays.
    let other = dest.join("usr/share/man/man1/sched-bisector.1");
    std::fs::write(&other, "another's").expect("writes");
    make("uninstall", &dest);
    assert_eq!(files_below(&dest).into_keys().collect::<Vec<_>>(), [other]);
}
