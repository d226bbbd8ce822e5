//! All integration tests, in one binary.

#[path = "common/mod.rs"]
mod common;

#[path = "it/history.rs"]
mod history;
#[path = "it/kbuild.rs"]
mod kbuild;
#[path = "it/qemu_boot.rs"]
mod qemu_boot;
#[path = "it/worktree.rs"]
mod worktree;
