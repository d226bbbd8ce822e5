//! Kernel command lines. Pure.

use crate::lab::ssh::kernels::Error;

/// What our own words on a command line start with: a parameter of a module that does not exist, which the kernel leaves
/// alone.
pub const OWN_WORDS: &str = "sched_bisect.";

/// Longest command line that every architecture takes (x86: 2048 with its end).
const LONGEST: usize = 2047;

/// The rescue kernel's command line, as its /proc/cmdline shows it, without what its boot loader and we added, and with
/// `more` behind it.
pub fn command_line(rescue: &str, more: &[String]) -> Result<Vec<String>, Error> {
    let is_added =
        |word: &String| ["BOOT_IMAGE=", "initrd=", OWN_WORDS].iter().any(|added| word.starts_with(added));
    let mut words: Vec<String> = split(rescue).into_iter().filter(|word| !is_added(word)).collect();
    for word in more.iter().flat_map(|more| split(more)) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    for word in &words {
        if word.chars().any(char::is_control) {
            return Err(refused(word, "has a control character in it"));
        }
    }
    let line = words.join(" ");
    if line.len() > LONGEST {
        let reason = format!("is {} bytes long, and a kernel takes {LONGEST}; use fewer words", line.len());
        return Err(Error::Word { text: line, reason });
    }
    Ok(words)
}

/// Words as the kernel parts them: double quotes hold spaces.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for c in line.chars() {
        if c == '"' {
            quoted = !quoted;
        }
        if c == ' ' && !quoted {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(c);
        }
    }
    words.push(word);
    words.into_iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// The word as one of GRUB's script language. GRUB itself puts a backslash before quotes and backslashes that reach the
/// kernel, and quotes around a word with spaces; so the first are refused, and `key="a b"` becomes one word `key=a b`.
pub(super) fn for_grub(word: &str) -> Result<String, Error> {
    let bare = match word.split_once('=') {
        Some((key, value)) if value.len() > 1 && value.starts_with('"') && value.ends_with('"') => {
            format!("{key}={}", &value[1..value.len() - 1])
        }
        _ if word.len() > 1 && word.starts_with('"') && word.ends_with('"') => {
            word[1..word.len() - 1].to_owned()
        }
        _ => word.to_owned(),
    };
    if bare.contains(['"', '\'', '\\']) {
        return Err(refused(word, "has a quote or backslash inside, which GRUB would change"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%^~!".contains(c);
    if bare.chars().all(is_plain) { Ok(bare) } else { Ok(format!("'{bare}'")) }
}

fn refused(word: &str, why: &str) -> Error {
    Error::Word { text: word.to_owned(), reason: format!("{why}; leave it off the kernel command line") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(rescue: &str, more: &[&str]) -> Result<String, Error> {
        let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
        Ok(command_line(rescue, &more)?.join(" "))
    }

    #[test]
    fn a_candidate_gets_the_rescue_kernels_words_and_ours() {
        let rescue = "BOOT_IMAGE=/boot/vmlinuz-6.1 root=UUID=1 ro console=tty0 console=ttyS0 sched_bisect.token=old quiet\n";
        let wanted =
            "root=UUID=1 ro console=tty0 console=ttyS0 quiet panic=10 sched_bisect.token=new isolcpus=1,2";
        let more = ["panic=10", "sched_bisect.token=new", "isolcpus=1,2", "quiet"];
        assert_eq!(line(rescue, &more), Ok(wanted.to_owned()));
        assert_eq!(line(r"initrd=\6.1\initrd root=/dev/sda2", &[]), Ok("root=/dev/sda2".to_owned()));
        assert!(line("ro", &["a\nb"]).is_err());
        assert!(line("ro", &["x".repeat(2050).as_str()]).is_err());
    }

    #[test]
    fn what_grub_would_take_for_its_own_is_quoted_or_refused() {
        let cases = [
            ("root=UUID=1", Ok("root=UUID=1")),
            ("a=$x;b", Ok("'a=$x;b'")),
            ("x={1}", Ok("'x={1}'")),
            ("a|b&c<d>e#f*g?", Ok("'a|b&c<d>e#f*g?'")),
            (r#"dyndbg="file a.c +p""#, Ok("'dyndbg=file a.c +p'")),
            (r#""dyndbg=file a.c +p""#, Ok("'dyndbg=file a.c +p'")),
            ("it's", Err(())),
            (r"a\b", Err(())),
            (r#"a="b"c"d""#, Err(())),
        ];
        for (word, wanted) in cases {
            let found = for_grub(word).map_err(|_| ());
            assert_eq!(found, wanted.map(str::to_owned), "{word}");
        }
    }
}
