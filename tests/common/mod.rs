//! What all integration tests share: tiny repositories with fixed contents, in temporary directories, and the real
//! binary over them.

pub mod engine;
pub mod guest;
pub mod http;
pub mod kernel;
pub mod live;
pub mod planted;
pub mod repo;
pub mod rig;
pub mod scripted;
pub mod server;
pub mod sim;
pub mod terminal;
pub mod two;
