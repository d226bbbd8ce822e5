//! All integration tests, in one binary.

#[path = "common/mod.rs"]
mod common;

#[path = "it/history.rs"]
mod history;
#[path = "it/worktree.rs"]
mod worktree;
