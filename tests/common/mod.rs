//! What all integration tests share: tiny repositories with fixed contents, in temporary directories, and the real
//! binary over them.

pub mod kernel;
pub mod repo;
