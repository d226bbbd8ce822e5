//! Putting a file on another machine in pieces, so that what got over before the link was lost is not sent again.

use super::far::{FarError, Script, Told};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// Bytes that are sent at once: what a lost link can cost.
const PIECE: u64 = 8 << 20;

/// For a piece, or a look at a whole file, over a slow link.
const DEADLINE: Duration = Duration::from_secs(300);

const LOOK: &str = include_str!("sut/put-look.sh");
const APPEND: &str = include_str!("sut/put-append.sh");
const FINISH: &str = include_str!("sut/put-finish.sh");

/// Asks what is there of the file `args[0]`.
pub(super) fn look<'a>(what: &'a str, args: &'a [&'a str]) -> Script<'a> {
    Script { what, text: LOOK, args, deadline: DEADLINE }
}

/// Puts the standard input behind the first `args[1]` bytes of `args[0]`.
pub(super) fn append<'a>(what: &'a str, args: &'a [&'a str]) -> Script<'a> {
    Script { what, text: APPEND, args, deadline: DEADLINE }
}

/// Checks `args[0]` against the hash `args[1]` and the size `args[2]`, and gives it its name.
pub(super) fn finish<'a>(what: &'a str, args: &'a [&'a str]) -> Script<'a> {
    Script { what, text: FINISH, args, deadline: DEADLINE }
}

/// An error about a file of ours.
pub(super) fn unreadable(what: &str, error: &io::Error) -> FarError {
    FarError::File { what: what.to_owned(), reason: error.to_string() }
}

/// Whether a script of this module did what it is for.
pub(super) fn accepted(what: &str, told: &Told) -> Result<(), FarError> {
    if told.status == 0 {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&told.stderr);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it did not say why");
    Err(FarError::File { what: what.to_owned(), reason: format!("{last} (status {})", told.status) })
}

/// A file of this machine.
pub(super) struct Local {
    file: File,
    pub size: u64,
}

impl Local {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { file, size })
    }

    /// SHA-256 of its first `size` bytes, in hex.
    pub fn hash(&mut self, size: u64) -> io::Result<String> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut hasher = Sha256::new();
        let mut file = (&mut self.file).take(size);
        let mut block = vec![0; 1 << 20];
        loop {
            match file.read(&mut block)? {
                0 => break,
                read => hasher.update(&block[..read]),
            }
        }
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The next piece from there on; empty at the end.
    pub fn piece(&mut self, from: u64) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(from))?;
        let mut piece = Vec::new();
        (&mut self.file).take(PIECE).read_to_end(&mut piece)?;
        Ok(piece)
    }

    /// How much of it need not be sent, by what the far side has; `None`: all of it is there under its name.
    pub fn there(&mut self, told: &Told) -> io::Result<Option<u64>> {
        let text = String::from_utf8_lossy(&told.stdout);
        let mut over = 0;
        for line in text.lines() {
            let mut words = line.split(' ');
            let (kind, size, hash) =
                (words.next(), words.next().and_then(|size| size.parse().ok()), words.next());
            let (Some(kind), Some(size), Some(hash)) = (kind, size, hash) else { continue };
            if size > self.size || self.hash(size)? != hash {
                continue;
            }
            match kind {
                "whole" if size == self.size => return Ok(None),
                "part" => over = size,
                _ => {}
            }
        }
        Ok(Some(over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Output, Stdio};

    fn local(content: &[u8]) -> (tempfile::TempDir, Local) {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("file"), content).expect("writes");
        let local = Local::open(&dir.path().join("file")).expect("is there");
        (dir, local)
    }

    fn told(output: Output) -> Told {
        Told { status: output.status.code().unwrap_or(-1), stdout: output.stdout, stderr: output.stderr }
    }

    fn run(script: Script<'_>, input: &[u8]) -> Told {
        use std::io::Write as _;
        let mut command = Command::new("sh");
        command.args(["-c", script.text, "sh"]).args(script.args);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sh is there");
        child.stdin.take().expect("a pipe").write_all(input).expect("is read");
        told(child.wait_with_output().expect("ends"))
    }

    #[test]
    fn what_is_over_is_not_sent_again_and_what_differs_is() {
        let (dir, mut file) = local(b"a whole kernel");
        let to = dir.path().join("there").display().to_string();
        let look = || run(super::look("look", &[&to]), b"");
        assert_eq!(file.there(&look()).expect("reads"), Some(0));
        accepted("append", &run(append("append", &[&to, "0"]), b"a whole")).expect("is there");
        assert_eq!(file.there(&look()).expect("reads"), Some(7));
        assert_eq!(run(append("append", &[&to, "3"]), b"x").status, 3, "not behind those");
        accepted("append", &run(append("append", &[&to, "7"]), b" kernel")).expect("is there");
        let hash = file.hash(file.size).expect("reads");
        accepted("finish", &run(finish("finish", &[&to, &hash, "14"]), b"")).expect("is whole");
        assert_eq!(file.there(&look()).expect("reads"), None);
        assert_eq!(std::fs::read(&to).expect("is there"), b"a whole kernel");
        accepted("append", &run(append("append", &[&to, "0"]), b"another")).expect("is there");
        let (_dir, mut other) = local(b"a longer kernel");
        assert_eq!(other.there(&look()).expect("reads"), Some(0), "neither is its own");
    }

    #[test]
    fn a_file_that_arrived_damaged_never_gets_its_name() {
        let (dir, mut file) = local(b"a kernel");
        let to = dir.path().join("there").display().to_string();
        run(append("append", &[&to, "0"]), b"A kernel");
        let hash = file.hash(file.size).expect("reads");
        let told = run(finish("finish", &[&to, &hash, "8"]), b"");
        let error = accepted("put it there", &told).expect_err("is damaged").to_string();
        assert!(error.contains("damaged"), "{error}");
        assert!(!Path::new(&to).exists() && !Path::new(&format!("{to}.sb-part")).exists());
    }
}
