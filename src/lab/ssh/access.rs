//! How machines are reached: keys, host keys, jump hosts, time limits; written as a configuration for ssh.
//!
//! A file, since options on a command line do not reach jump hosts. What it says comes first, the user's own
//! configuration after it: aliases keep working, limits that this program relies on stay.

use crate::model::Address;
pub use crate::session::HostKeys;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Seconds for a connection to come up, a mute server included.
pub const CONNECT_S: u32 = 10;

/// Seconds of silence after which the far side is asked whether it is there.
pub const ALIVE_S: u32 = 5;

/// So many of its answers may be missing: then the link is lost, after about 20 s.
const ALIVE_COUNT: u32 = 3;

/// How machines are reached; the same for all of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Key file; `None`: what ssh has by itself, an agent included.
    pub identity: Option<PathBuf>,
    /// The lab's own file of host keys.
    pub known_hosts: PathBuf,
    /// What is done about a new one.
    pub host_keys: HostKeys,
    /// Machines on the way, first to last.
    pub jump: Vec<Address>,
    /// The user's own configuration, read behind ours; `None`: none.
    pub config: Option<PathBuf>,
}

/// A path that ssh's configuration cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tell ssh of {}: a path with quotes, percent signs, dollar signs or line ends; move it", path.display())]
pub struct PathError {
    path: PathBuf,
}

impl Access {
    /// The text of the configuration.
    pub fn config_text(&self) -> Result<String, PathError> {
        let mut text = String::from("Host *\n");
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "  {key} {value}");
        };
        line("BatchMode", "yes");
        line("ConnectTimeout", &CONNECT_S.to_string());
        line("ServerAliveInterval", &ALIVE_S.to_string());
        line("ServerAliveCountMax", &ALIVE_COUNT.to_string());
        line(
            "StrictHostKeyChecking",
            match self.host_keys {
                HostKeys::Strict => "yes",
                HostKeys::Add => "accept-new",
            },
        );
        line("UserKnownHostsFile", &quoted(&self.known_hosts)?);
        // Nothing of the far side's reaches ours, and no terminal changes what it prints.
        for key in ["ForwardAgent", "ForwardX11", "ClearAllForwardings", "RequestTTY", "PermitLocalCommand"] {
            line(key, if key == "ClearAllForwardings" { "yes" } else { "no" });
        }
        if let Some(identity) = &self.identity {
            line("IdentitiesOnly", "yes");
            line("IdentityFile", &quoted(identity)?);
        }
        if let Some(config) = &self.config {
            line("Include", &quoted(config)?);
        }
        if let Some((last, before)) = self.jump.split_last() {
            let way = before.iter().chain([last]).map(Address::to_string).collect::<Vec<_>>().join(",");
            let own = self.jump.iter().map(|jump| format!(" !{}", jump.host)).collect::<String>();
            // The machines on the way are reached without it.
            let _ = write!(text, "Host *{own}\n  ProxyJump {way}\n");
        }
        Ok(text)
    }
}

fn quoted(path: &Path) -> Result<String, PathError> {
    let refused = || PathError { path: path.to_owned() };
    let text = path.to_str().ok_or_else(refused)?;
    if text.chars().any(|c| "\"%$\\".contains(c) || c.is_control()) {
        return Err(refused());
    }
    Ok(format!("\"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access {
            identity: Some("/keys/lab key".into()),
            known_hosts: "/lab/known_hosts".into(),
            host_keys: HostKeys::Add,
            jump: vec!["ssh://me@gate:2022".parse().expect("an address")],
            config: Some("/home/me/.ssh/config".into()),
        }
    }

    #[test]
    fn limits_are_always_set_and_come_before_what_the_user_has() {
        let text = access().config_text().expect("harmless paths");
        let at = |needle: &str| text.find(needle).unwrap_or_else(|| panic!("no {needle} in {text}"));
        for key in ["ConnectTimeout 10", "ServerAliveInterval 5", "StrictHostKeyChecking accept-new"] {
            assert!(at(key) < at("Include"));
        }
        assert!(text.contains("IdentityFile \"/keys/lab key\"\n"));
        assert!(text.ends_with("Host * !gate\n  ProxyJump ssh://me@gate:2022\n"));
    }

    #[test]
    fn a_path_that_would_be_more_than_a_path_is_refused() {
        for path in ["/a\nProxyCommand x", "/a\"b", "/%h", "/${HOME}"] {
            let access = Access { identity: Some(path.into()), ..access() };
            assert!(access.config_text().is_err(), "{path}");
        }
    }
}
