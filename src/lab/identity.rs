//! Who a machine is, as read back from it.
//!
//! Owns: reading a machine's account of itself and holding it against what was started. Must not do: talk to the
//! machine. Invariant: nothing about a boot is believed that was not read from the running kernel. Tested here.

use super::build_id::build_id;
use crate::model::Artifact;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::collections::HashSet;

/// The machine's account (see `identity` in qemu/init.sh, and ssh/sut/sight.sh).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::lab) struct Identity {
    /// Of this boot; empty where the kernel shows none.
    pub boot_id: String,
    /// `uname -r`.
    pub release: String,
    /// Kernel command line.
    pub cmdline: String,
    /// CPUs that run; absent where the kernel does not say.
    pub cpus: Option<u32>,
    /// GNU build id, lower-case hex; empty where the kernel shows none.
    pub build_id: String,
}

impl Identity {
    /// Reads the account. What is not there stays empty.
    pub(in crate::lab) fn parse(stdout: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stdout);
        let mut identity = Self::default();
        let mut lines = text.lines();
        for line in lines.by_ref() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("boot_id", value) => identity.boot_id = value.to_owned(),
                ("release", value) => identity.release = value.to_owned(),
                ("cpus", value) => identity.cpus = count(value),
                ("cmdline", value) => identity.cmdline = value.to_owned(),
                ("notes", _) => break,
                (_, _) => {}
            }
        }
        let notes: String = lines.collect();
        identity.build_id = BASE64.decode(notes).ok().and_then(|notes| build_id(&notes)).unwrap_or_default();
        identity
    }

    /// Holds the account against what was started: `word` on the command line, the artifact's release and
    /// build id (where it names them), a boot id that is not in `seen`. The error tells what else runs.
    pub(in crate::lab) fn check(
        &self,
        artifact: &Artifact,
        word: &str,
        seen: &HashSet<String>,
    ) -> Result<(), String> {
        if !self.cmdline.split_whitespace().any(|there| there == word) {
            return Err(format!("boot with {word}: the running kernel's command line is {:?}", self.cmdline));
        }
        for (what, wanted, running) in
            [("release", &artifact.release, &self.release), ("build id", &artifact.build_id, &self.build_id)]
        {
            if !wanted.is_empty() && wanted != running {
                return Err(format!(
                    "boot {}: its {what} is {wanted:?}, the running kernel's is {running:?}",
                    artifact.commit.short()
                ));
            }
        }
        if self.boot_id.is_empty() {
            return Err(
                "read the boot id: the machine has no /proc/sys/kernel/random/boot_id (CONFIG_PROC_SYSCTL)"
                    .to_owned(),
            );
        }
        if seen.contains(&self.boot_id) {
            return Err(format!("boot anew: the boot id {} was seen before", self.boot_id));
        }
        Ok(())
    }
}

/// Members of a list like "0-2,5".
fn count(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CommitId;
    use proptest::prelude::*;

    const NEW: &str = "8e1b8d49-8a05-4d0e-9ba6-000000000001";

    /// A note as the linker lays it.
    fn note(name: &[u8], kind: u32, desc: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [name.len() as u32, desc.len() as u32, kind] {
            bytes.extend(number.to_le_bytes());
        }
        for part in [name, desc] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    fn artifact() -> Artifact {
        Artifact {
            release: "6.12.0-rc3+".to_owned(),
            build_id: "00ff10".to_owned(),
            ..Artifact::of(CommitId::parse(&"a".repeat(40)).expect("an id"))
        }
    }

    fn account() -> Identity {
        let notes = [note(b"Xen\0", 6, b"x"), note(b"GNU\0", 3, &[0, 0xff, 0x10])].concat();
        let text = format!(
            "boot_id {NEW}\nrelease 6.12.0-rc3+\ncpus 0-1\ncmdline console=ttyS0 sb.boot=7-f00\nnotes\n{}\n",
            BASE64.encode(notes)
        );
        Identity::parse(text.as_bytes())
    }

    #[test]
    fn an_account_is_read_back_whole() {
        let identity = account();
        assert_eq!(identity.boot_id, NEW);
        assert_eq!(identity.build_id, "00ff10");
        assert_eq!(identity.cpus, Some(2));
        assert_eq!(identity.check(&artifact(), "sb.boot=7-f00", &HashSet::new()), Ok(()));
    }

    #[test]
    fn another_kernel_is_refused_with_both_values() {
        let wrong = [
            Artifact { release: "6.12.0-rc3".to_owned(), ..artifact() },
            Artifact { release: "6.12.0-rc3+x".to_owned(), ..artifact() },
            Artifact { build_id: "00ff11".to_owned(), ..artifact() },
        ];
        for artifact in wrong {
            let failure =
                account().check(&artifact, "sb.boot=7-f00", &HashSet::new()).expect_err("another kernel");
            let (wanted, running) = (&artifact.release, "6.12.0-rc3+");
            let both = failure.contains(wanted.as_str()) && failure.contains(running);
            assert!(both || failure.contains("00ff11"), "{}", failure);
        }
    }

    #[test]
    fn case_39_of_two_kernels_with_one_release_the_other_is_told_by_its_build_id_or_its_word() {
        let c4 = Artifact { build_id: "00ff44".to_owned(), ..artifact() };
        let other_image = account().check(&c4, "sb.boot=7-f00", &HashSet::new()).expect_err("is c3's image");
        assert!(other_image.contains("00ff44") && other_image.contains("00ff10"), "{other_image}");
        let unmarked = Artifact { build_id: String::new(), ..artifact() };
        assert!(account().check(&unmarked, "sb.boot=8-f00", &HashSet::new()).is_err(), "it is another boot");
    }

    #[test]
    fn case_40_a_release_is_compared_whole_and_may_run_backwards() {
        let running =
            |release: &str| Identity { release: release.to_owned(), build_id: String::new(), ..account() };
        let wanted =
            |release: &str| Artifact { release: release.to_owned(), build_id: String::new(), ..artifact() };
        let check = |is: &str, want: &str| running(is).check(&wanted(want), "sb.boot=7-f00", &HashSet::new());
        assert!(
            check("6.14.0-rc1-sb-1a2b3c", "6.14.0-rc1-sb-1a2b3c").is_ok(),
            "of a topic branch inside rc3..rc4"
        );
        for (is, want) in [("6.15.0-rc4-x", "6.15"), ("6.12", "6.1"), ("6.1", "6.12")] {
            assert!(check(is, want).is_err(), "{is} is not {want}");
        }
    }

    #[test]
    fn an_artifact_that_names_no_kernel_is_not_compared() {
        let artifact = Artifact { release: String::new(), build_id: String::new(), ..artifact() };
        assert_eq!(account().check(&artifact, "sb.boot=7-f00", &HashSet::new()), Ok(()));
    }

    #[test]
    fn an_old_or_missing_boot_id_and_a_foreign_command_line_are_refused() {
        let seen = HashSet::from([NEW.to_owned()]);
        assert!(account().check(&artifact(), "sb.boot=7-f00", &seen).is_err());
        let nameless = Identity { boot_id: String::new(), ..account() };
        assert!(nameless.check(&artifact(), "sb.boot=7-f00", &HashSet::new()).is_err());
        assert!(
            account().check(&artifact(), "sb.boot=7-f0", &HashSet::new()).is_err(),
            "a token is compared whole"
        );
    }

    #[test]
    fn cpus_are_counted_over_ranges() {
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("0-1"), Some(2));
        assert_eq!(count("0-2,5"), Some(4));
        for list in ["", "1-0", "0-4294967295", "a"] {
            assert_eq!(count(list), None, "{list:?}");
        }
    }

    #[test]
    fn notes_without_a_build_id_have_none() {
        assert_eq!(build_id(&note(b"GNU\0", 1, &[1, 2, 3, 4])), None);
        assert_eq!(build_id(&note(b"Xen\0", 3, &[1, 2, 3, 4])), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_account_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Identity::parse(&bytes), build_id(&bytes));
        }
    }
}
