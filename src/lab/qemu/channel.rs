//! The language spoken over the guest's second serial port.
//!
//! Owns: the frames and how they are told from anything else on the line. Must not do: input or output. The
//! guest's side is init.sh, which also lists the frames. Invariants: an answer counts only with this boot's
//! token, the id that was asked, the same header at its end, and sizes and CRC-32 of both streams that match;
//! what a command prints travels as base64 and so can never look like a frame; bytes outside a frame are
//! skipped, a frame that came damaged is reported as such and can be asked for again. Tested here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Bytes kept of each stream of a command; init.sh cuts there.
pub(super) const STREAM_MAX: u64 = 1 << 20;

/// Longest command. The guest's serial driver buffers 64 KiB while its shell is busy; base64 adds a third.
pub(super) const COMMAND_MAX: usize = 32 << 10;

/// Longer lines are no frame and no base64 of ours.
const LINE_MAX: usize = 1024;

/// The line that runs `command` in the guest as request `id`. With an id that was sent before, the guest runs
/// nothing and answers again.
pub(super) fn run_request(token: &str, id: u64, command: &str) -> String {
    let payload = BASE64.encode(command);
    format!("\nSB1 {token} {id} R {} {payload}\n", payload.len())
}

/// The line that kills everything that runs in the guest, except the shell that answers.
pub(super) fn kill_request(token: &str, id: u64) -> String {
    format!("\nSB1 {token} {id} K 0\n")
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// Exit status; 128 + number for a signal.
    pub status: i32,
    /// Standard output, at most [`STREAM_MAX`] bytes.
    pub stdout: Vec<u8>,
    /// Standard error, at most [`STREAM_MAX`] bytes.
    pub stderr: Vec<u8>,
    /// Bytes that the command wrote to standard output.
    pub stdout_size: u64,
    /// Bytes that the command wrote to standard error.
    pub stderr_size: u64,
    /// The kernel's taint flags before the command; absent where the guest does not show them.
    pub taint_before: Option<u64>,
    /// And after it.
    pub taint_after: Option<u64>,
}

/// What the guest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// The request is being worked on.
    Accepted(u64),
    /// The request came damaged; nothing was done.
    Refused(u64),
    /// Everything that ran is killed.
    Killed(u64),
    /// The command ended.
    Answer(u64, Answer),
    /// The command ended, and its answer came damaged.
    Garbled(u64),
}

/// Cuts frames out of what the port delivers, in pieces of any size.
#[derive(Debug)]
pub(super) struct Decoder {
    token: String,
    line: Vec<u8>,
    overlong: bool,
    body: Option<Body>,
}

/// An answer that is coming in.
#[derive(Debug)]
struct Body {
    id: u64,
    head: String,
    answer: Answer,
    stdout_crc: u32,
    stderr_crc: u32,
    in_stderr: bool,
    damaged: bool,
    stdout_text: Vec<u8>,
    stderr_text: Vec<u8>,
}

impl Decoder {
    /// For a guest that was started with `token`.
    pub(super) fn new(token: &str) -> Self {
        Self { token: token.to_owned(), line: Vec::new(), overlong: false, body: None }
    }

    /// Takes the next bytes; gives the frames that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for &byte in bytes {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                let overlong = std::mem::take(&mut self.overlong);
                frames.extend(if overlong { self.noise() } else { self.take(&line) });
            } else if self.line.len() < LINE_MAX {
                self.line.push(byte);
            } else {
                self.overlong = true;
            }
        }
        frames
    }

    fn take(&mut self, line: &[u8]) -> Option<Frame> {
        if line.is_empty() {
            return None;
        }
        if let Some(words) = self.words(line) {
            return self.frame(&words);
        }
        match &mut self.body {
            Some(body) if line.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte)) => {
                body.add(line);
                None
            }
            Some(_) | None => self.noise(),
        }
    }

    /// The line's words after the mark and the token, if it is a line of this boot's guest: the kind comes
    /// first.
    fn words<'a>(&self, line: &'a [u8]) -> Option<Vec<&'a str>> {
        let text = std::str::from_utf8(line).ok()?;
        let mut words = text.split(' ');
        let (mark, kind, token) = (words.next()?, words.next()?, words.next()?);
        (mark == "SB1" && token == self.token).then(|| std::iter::once(kind).chain(words).collect())
    }

    fn frame(&mut self, words: &[&str]) -> Option<Frame> {
        let Some(id) = words.get(1).and_then(|word| word.parse().ok()) else { return self.noise() };
        match (words[0], &words[2..]) {
            ("A", []) => Some(Frame::Accepted(id)),
            ("N", []) => Some(Frame::Refused(id)),
            ("K", []) => Some(Frame::Killed(id)),
            ("R", rest) => {
                self.body = Body::new(id, rest);
                self.body.is_none().then_some(Frame::Garbled(id))
            }
            ("S", []) => match &mut self.body {
                Some(body) if body.id == id => {
                    body.damaged |= body.in_stderr;
                    body.in_stderr = true;
                    None
                }
                Some(_) | None => self.noise(),
            },
            ("E", rest) => Some(match self.body.take() {
                Some(body) if body.id == id && body.head == rest.join(" ") => body.finish(),
                Some(_) | None => Frame::Garbled(id),
            }),
            (_, _) => self.noise(),
        }
    }

    /// Something that is no frame. In the middle of an answer it means that the answer is damaged.
    fn noise(&mut self) -> Option<Frame> {
        if let Some(body) = &mut self.body {
            body.damaged = true;
        }
        None
    }
}

impl Body {
    fn new(id: u64, words: &[&str]) -> Option<Self> {
        let &[status, before, after, stdout_size, stdout_crc, stderr_size, stderr_crc] = words else {
            return None;
        };
        let answer = Answer {
            status: status.parse().ok()?,
            stdout: Vec::new(),
            stderr: Vec::new(),
            stdout_size: stdout_size.parse().ok()?,
            stderr_size: stderr_size.parse().ok()?,
            taint_before: before.parse().ok(),
            taint_after: after.parse().ok(),
        };
        Some(Self {
            id,
            head: words.join(" "),
            answer,
            stdout_crc: u32::from_str_radix(stdout_crc, 16).ok()?,
            stderr_crc: u32::from_str_radix(stderr_crc, 16).ok()?,
            in_stderr: false,
            damaged: false,
            stdout_text: Vec::new(),
            stderr_text: Vec::new(),
        })
    }

    fn add(&mut self, line: &[u8]) {
        let text = if self.in_stderr { &mut self.stderr_text } else { &mut self.stdout_text };
        // A guest that never ends its answer must not fill the memory of the host.
        if text.len() > 2 * STREAM_MAX as usize {
            self.damaged = true;
        } else {
            text.extend_from_slice(line);
        }
    }

    fn finish(self) -> Frame {
        let stdout = stream(&self.stdout_text, self.answer.stdout_size, self.stdout_crc);
        let stderr = stream(&self.stderr_text, self.answer.stderr_size, self.stderr_crc);
        match (stdout, stderr) {
            (Some(stdout), Some(stderr)) if !self.damaged && self.in_stderr => {
                Frame::Answer(self.id, Answer { stdout, stderr, ..self.answer })
            }
            (_, _) => Frame::Garbled(self.id),
        }
    }
}

fn stream(text: &[u8], size: u64, crc: u32) -> Option<Vec<u8>> {
    let bytes = BASE64.decode(text).ok()?;
    (bytes.len() as u64 == size.min(STREAM_MAX) && crc32fast::hash(&bytes) == crc).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: &str = "000007-00c0ffee00c0ffee";

    /// What the guest sends for an answer.
    fn sent(token: &str, id: u64, status: i32, stdout: &[u8], stderr: &[u8]) -> Vec<u8> {
        let wrap = |bytes: &[u8]| {
            let text = BASE64.encode(bytes).into_bytes();
            text.chunks(76).map(|line| [line, b"\n"].concat()).collect::<Vec<_>>().concat()
        };
        let kept = |bytes: &[u8]| bytes[..bytes.len().min(STREAM_MAX as usize)].to_vec();
        let fields = format!(
            "{id} {status} 0 512 {} {:08x} {} {:08x}",
            stdout.len(),
            crc32fast::hash(&kept(stdout)),
            stderr.len(),
            crc32fast::hash(&kept(stderr)),
        );
        let head = format!("\nSB1 R {token} {fields}\n");
        let middle = format!("\nSB1 S {token} {id}\n");
        let end = format!("\nSB1 E {token} {fields}\n");
        [head.as_bytes(), &wrap(&kept(stdout)), middle.as_bytes(), &wrap(&kept(stderr)), end.as_bytes()]
            .concat()
    }

    fn answer(stdout: &[u8], stderr: &[u8]) -> Answer {
        Answer {
            status: 3,
            stdout: stdout.to_vec(),
            stderr: stderr.to_vec(),
            stdout_size: stdout.len() as u64,
            stderr_size: stderr.len() as u64,
            taint_before: Some(0),
            taint_after: Some(512),
        }
    }

    #[test]
    fn noise_around_frames_and_nul_bytes_are_skipped() {
        let mut decoder = Decoder::new(TOKEN);
        let mut bytes = b"\0\0[    1.0] kernel noise \xff\xfe without an end".to_vec();
        bytes.extend(sent(TOKEN, 4, 3, b"out", b"err"));
        bytes.extend(b"\0SB1 garbage\n\nSB1 A ");
        bytes.extend(format!("{TOKEN} 5\n").bytes());
        assert_eq!(decoder.push(&bytes), vec![Frame::Answer(4, answer(b"out", b"err")), Frame::Accepted(5)]);
    }

    #[test]
    fn frames_of_another_boot_are_no_frames() {
        let mut decoder = Decoder::new(TOKEN);
        assert_eq!(decoder.push(&sent("000006-00c0ffee00c0ffee", 1, 0, b"old", b"")), vec![]);
        assert_eq!(decoder.push(b"SB1 K 000006-00c0ffee00c0ffee 1\n"), vec![]);
    }

    #[test]
    fn output_that_looks_like_a_frame_stays_output() {
        let mut decoder = Decoder::new(TOKEN);
        let fake = sent(TOKEN, 9, 0, b"1.0", b"");
        assert_eq!(
            decoder.push(&sent(TOKEN, 9, 3, &fake, &fake)),
            vec![Frame::Answer(9, answer(&fake, &fake))]
        );
    }

    #[test]
    fn a_torn_answer_is_garbled_and_the_repeated_one_counts() {
        let whole = sent(TOKEN, 2, 3, &[7; 500], b"e");
        let text = String::from_utf8(whole.clone()).expect("text");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        // Without its header, without a middle line, and with noise in the middle of a line.
        let headless = lines[2..].concat();
        let gap = [&lines[..4], &lines[5..]].concat().concat();
        let noisy = text.replacen("BwcHBwcH\n", "BwcH<4>noise\nBwcH\n", 1);
        assert!(noisy != text, "the noise is in");
        for damaged in [headless, gap, noisy] {
            let mut decoder = Decoder::new(TOKEN);
            assert_eq!(decoder.push(damaged.as_bytes()), vec![Frame::Garbled(2)], "{damaged}");
            assert_eq!(decoder.push(&whole), vec![Frame::Answer(2, answer(&[7; 500], b"e"))]);
        }
    }

    #[test]
    fn an_answer_past_the_limit_comes_cut_with_its_full_size() {
        let big = vec![b'x'; STREAM_MAX as usize + 5];
        let frames = Decoder::new(TOKEN).push(&sent(TOKEN, 1, 3, &big, b""));
        let [Frame::Answer(1, answer)] = frames.as_slice() else { panic!("{} frames", frames.len()) };
        assert_eq!((answer.stdout.len() as u64, answer.stdout_size), (STREAM_MAX, STREAM_MAX + 5));
    }

    #[test]
    fn a_line_without_an_end_does_not_grow_without_limit() {
        let mut decoder = Decoder::new(TOKEN);
        assert_eq!(decoder.push(&vec![b'a'; 1 << 20]), vec![]);
        assert!(decoder.line.len() <= LINE_MAX);
        assert_eq!(decoder.push(format!("\nSB1 A {TOKEN} 1\n").as_bytes()), vec![Frame::Accepted(1)]);
    }

    proptest! {
        #[test]
        fn any_streams_survive_any_cutting_into_pieces(
            stdout in proptest::collection::vec(any::<u8>(), 0..400),
            stderr in proptest::collection::vec(any::<u8>(), 0..400),
            piece in 1usize..97,
        ) {
            let mut decoder = Decoder::new(TOKEN);
            let bytes = sent(TOKEN, 12, 3, &stdout, &stderr);
            let frames: Vec<Frame> = bytes.chunks(piece).flat_map(|part| decoder.push(part)).collect();
            prop_assert_eq!(frames, vec![Frame::Answer(12, answer(&stdout, &stderr))]);
        }

        #[test]
        fn a_damaged_answer_is_never_taken_for_another_one(
            stdout in proptest::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut bytes = sent(TOKEN, 12, 3, &stdout, b"");
            let at = at.index(bytes.len());
            bytes[at] = byte;
            for frame in Decoder::new(TOKEN).push(&bytes) {
                if let Frame::Answer(..) = frame {
                    prop_assert_eq!(frame, Frame::Answer(12, answer(&stdout, b"")));
                }
            }
        }
    }
}
