//! A machine of its own, reached by ssh: what a plan says of it. Plain data.

use serde::{Deserialize, Serialize};

/// What is done about a host whose key is not known yet. One that has changed is always refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostKeys {
    /// Refused.
    Strict,
    /// Taken, and known from then on.
    Add,
}

/// How it is reached; roles with an ssh:// address are reached in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// Key file, absolute or below "~/"; empty: what ssh has by itself, an agent included.
    pub identity: String,
    /// The lab's file of host keys; empty: one beside the sessions.
    pub known_hosts: String,
    /// What is done about a new one.
    pub host_keys: HostKeys,
    /// Addresses of the machines on the way, first to last.
    pub jump: Vec<String>,
    /// ssh's configuration, read behind ours; empty: the user's own.
    pub config: String,
    /// Whether what needs root is run by sudo.
    pub sudo: bool,
}

/// The machine and what is done to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ssh {
    /// Where it is: ssh://USER@HOST:PORT.
    pub address: String,
    /// How it is reached.
    pub reach: Reach,
    /// What boots a kernel once: `grub`, `systemd-boot`, `kexec`, `hook`, or `auto` (the first of GRUB and systemd-boot that it has).
    pub loader: String,
    /// Command that boots a kernel once, for the loader `hook`; else empty.
    pub hook: String,
    /// What makes the initial file system: `auto`, `none`, or the name of a tool.
    pub initramfs: String,
    /// More kernel command line, beside what the machine's own kernel gets.
    pub cmdline: String,
    /// Command that switches it off and on (SB_POWER); empty: nothing can.
    pub power: String,
    /// Command that prints its console; empty: there is none.
    pub console: String,
    /// Command on it that is one run.
    pub run: String,
}
