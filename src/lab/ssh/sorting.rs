//! What ssh's words on a failed connection mean: come back later, or never.

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Nothing answers, or it is on its way up or down.
    NotUp,
    /// It answers, and lets nobody in yet: the machine is booting.
    Booting,
    /// The host is not the one that is known.
    HostKey,
    /// It does not know us.
    Key,
    /// We cannot even ask: ssh is missing, its configuration is wrong.
    Ours,
}

/// Said by pam_nologin(8) to those who come too early or too late.
const BOOTING: [&str; 4] = [
    "System is booting up",
    "Unprivileged users are not permitted to log in yet",
    "System is going down",
    "by PAM account configuration",
];

const HOST_KEY: [&str; 3] =
    ["Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED", "host key is known for"];

const KEY: [&str; 4] =
    ["Permission denied (", "Too many authentication failures", "no such identity", "Load key"];

const OURS: [&str; 5] = [
    "Bad configuration option",
    "terminating, ",
    "too long for Unix domain socket",
    "Bad owner or permissions",
    "No such file or directory",
];

/// Sorts the whole log of a connection that did not come up. What is not known is "not up": it is tried again until its
/// deadline.
pub(super) fn why(log: &str) -> Why {
    let says = |words: &[&str]| words.iter().any(|words| log.contains(words));
    // First: who comes too early may be refused with both.
    if says(&BOOTING) {
        Why::Booting
    } else if says(&HOST_KEY) {
        Why::HostKey
    } else if says(&KEY) {
        Why::Key
    } else if says(&OURS) {
        Why::Ours
    } else {
        Why::NotUp
    }
}

/// The last line that says something.
pub(super) fn gist(log: &str) -> &str {
    log.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it did not say why")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_55_refused_by_pam_nologin_is_booting_and_not_a_wrong_key() {
        let log = "System is booting up. Unprivileged users are not permitted to log in yet. Please come back later. For \
                   technical details, see pam_nologin(8).\nroot@sut: Permission denied (publickey).\n";
        assert_eq!(why(log), Why::Booting);
        assert_eq!(why("lab@sut: Permission denied (publickey).\r\n"), Why::Key);
    }

    #[test]
    fn what_will_not_mend_itself_is_told_from_what_will() {
        for log in [
            "ssh: connect to host sut port 22: Connection refused",
            "ssh: connect to host sut port 22: No route to host",
            "ssh: connect to host sut port 22: Connection timed out",
            "Connection timed out during banner exchange",
            "kex_exchange_identification: Connection closed by remote host",
            "ssh: Could not resolve hostname sut: Temporary failure in name resolution",
            "",
        ] {
            assert_eq!(why(log), Why::NotUp, "{log}");
        }
        let changed =
            "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.";
        assert_eq!(why(changed), Why::HostKey);
        assert_eq!(
            why(
                "/x/config: line 3: Bad configuration option: foo\n/x/config: terminating, 1 bad configuration options"
            ),
            Why::Ours
        );
        assert_eq!(gist("a\nHost key verification failed.\r\n\n"), "Host key verification failed.");
    }
}
