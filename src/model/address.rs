//! Where a machine is: `ssh://user@host:port`, `user@host`, or a name that the user's own ssh configuration knows.

use std::fmt;
use std::str::FromStr;

/// Where a machine is. Every part is made of harmless characters only: none can be an option or more than one word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// Who logs in; `None`: whom ssh takes.
    pub user: Option<String>,
    /// Host name, IPv4 or IPv6 address (without brackets), or an alias.
    pub host: String,
    /// TCP port; `None`: the one ssh takes.
    pub port: Option<u16>,
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no address: {reason}; write ssh://USER@HOST:PORT, or HOST")]
pub struct AddressError {
    text: String,
    reason: &'static str,
}

impl AddressError {
    /// What is wrong with it.
    pub fn reason(&self) -> &'static str {
        self.reason
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let refuse = |reason| AddressError { text: text.to_owned(), reason };
        let is_url = text.starts_with("ssh://");
        let rest = text.strip_prefix("ssh://").unwrap_or(text);
        let rest = rest.strip_suffix('/').filter(|_| is_url).unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if user.is_some_and(|user| user.is_empty() || user.starts_with('-') || !user.chars().all(is_name)) {
            return Err(refuse("the user name holds more than letters, digits and . _ -"));
        }
        let (host, port) = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':').or((!rest.is_empty()).then_some("no port"))),
            // ssh itself takes user@host:port for a host of that name.
            None if is_url => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
            None => (place, None),
        };
        let is_host = |c: char| is_name(c) || c == ':' || c == '%';
        if host.is_empty() || host.starts_with('-') || !host.chars().all(is_host) {
            return Err(refuse("there is no host, or it holds more than letters, digits and . _ - : %"));
        }
        if !place.starts_with('[') && host.matches(':').count() == 1 {
            return Err(refuse("a port needs ssh:// before it"));
        }
        let port = port
            .map(|port| port.parse().ok().filter(|&port| port != 0))
            .map(|port: Option<u16>| port.ok_or_else(|| refuse("the port is no number from 1 to 65535")));
        Ok(Self { user: user.map(str::to_owned), host: host.to_owned(), port: port.transpose()? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map_or(String::new(), |user| format!("{user}@"));
        let is_v6 = self.host.contains(':');
        let host = if is_v6 { format!("[{}]", self.host) } else { self.host.clone() };
        match self.port {
            Some(port) => write!(f, "ssh://{user}{host}:{port}"),
            None => write!(f, "ssh://{user}{host}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_is_read_whole_and_shown_as_it_is_read() {
        let whole = Address { user: Some("root".to_owned()), host: "10.0.0.1".to_owned(), port: Some(2202) };
        assert_eq!("ssh://root@10.0.0.1:2202".parse(), Ok(whole.clone()));
        assert_eq!(whole.to_string(), "ssh://root@10.0.0.1:2202");
        let short = |text: &str| text.parse::<Address>().expect("an address").to_string();
        assert_eq!(short("sut"), "ssh://sut");
        assert_eq!(short("root@sut.lab"), "ssh://root@sut.lab");
        assert_eq!(short("ssh://sut/"), "ssh://sut");
        assert_eq!(short("ssh://root@[fe80::1%eth0]:22"), "ssh://root@[fe80::1%eth0]:22");
        assert_eq!(short("fe80::1"), "ssh://[fe80::1]");
    }

    #[test]
    fn what_ssh_would_take_for_something_else_is_refused() {
        let wrong = [
            "",
            "ssh://",
            "root@",
            "@sut",
            "-oProxyCommand=x",
            "root@-v",
            "-l@sut",
            "root@sut:2202",
            "ssh://sut:0",
            "ssh://sut:70000",
            "ssh://sut:x",
            "ssh://[::1]x",
            "sut;reboot",
            "a b",
            "sut\nHost *",
            "$(x)@sut",
        ];
        for text in wrong {
            let error = text.parse::<Address>().expect_err(text);
            assert!(error.to_string().contains("ssh://USER@HOST:PORT"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_one_harmless_word(text in "\\PC{0,40}") {
            if let Ok(address) = text.parse::<Address>() {
                let shown = address.to_string();
                prop_assert!(!shown.contains(char::is_whitespace) && !address.host.starts_with('-'));
                prop_assert_eq!(shown.parse(), Ok(address));
            }
        }
    }
}
