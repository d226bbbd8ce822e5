//! What a kernel says on its console, a guest's or a machine's.
//!
//! Owns: cutting the stream into lines and remembering the worst of those that mean the kernel is hurt
//! ([`splat`](crate::lab::splat)). Must not do: input or output, decide what follows from it. Invariant: any bytes are
//! accepted, memory is bounded. Tested here over recorded consoles.

use super::splat::{Hurt, Splat, classify, without_stamp};

/// Longer lines are cut.
const LINE_MAX: usize = 1024;

/// A console.
#[derive(Debug, Default)]
pub struct Console {
    line: Vec<u8>,
    last: String,
    worst: Option<Splat>,
    init: Option<String>,
}

impl Console {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.end_line();
            } else if byte != b'\r' && byte != 0 && self.line.len() < LINE_MAX {
                self.line.push(byte);
            }
        }
    }

    /// Ends a line that has no end: nothing more will come.
    pub fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.line);
        let line = without_escapes(&String::from_utf8_lossy(&bytes));
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        if let Some(splat) = classify(line).or_else(|| classify(after_prompt(line)?)) {
            // Of equal ones the first: what follows is its echo.
            if self.worst.as_ref().is_none_or(|worst| worst.hurt < splat.hurt) {
                self.worst = Some(splat);
            }
        }
        if let Some(reason) = line.strip_prefix("sched-bisect-init: ") {
            self.init = Some(reason.to_owned());
        }
        self.last.clear();
        self.last.push_str(without_stamp(line));
    }

    /// The last line that is not blank, without its time stamp; empty before the first.
    pub fn last_line(&self) -> &str {
        &self.last
    }

    /// The worst splat since the start or [`Console::forget`].
    pub fn worst(&self) -> Option<&Splat> {
        self.worst.as_ref()
    }

    /// Whether the kernel panicked since the start or [`Console::forget`].
    pub fn panicked(&self) -> bool {
        self.worst.as_ref().is_some_and(|splat| splat.hurt == Hurt::Panic)
    }

    /// Why the guest's first process gave up, if it did.
    pub fn init_failure(&self) -> Option<&str> {
        self.init.as_deref()
    }

    /// Forgets the splats so far: a new run begins.
    pub fn forget(&mut self) {
        self.worst = None;
    }
}

/// The line without what colours it and moves the cursor (ESC and what belongs to it): a BMC draws its console with that.
fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if chars.next() == Some('[') {
            // Ends with the first character from @ to ~.
            chars.by_ref().find(|c| ('@'..='~').contains(c));
        }
    }
    plain
}

/// A kernel prints from where the cursor is: behind "login: " or a shell's prompt. Told by the time stamp of a kernel, with its
/// six digits, so that a program that mentions a panic is none.
fn after_prompt(line: &str) -> Option<&str> {
    let stamped = |at: usize| {
        let (inner, _) = line[at + 1..].split_once("] ")?;
        let (seconds, rest) = inner.trim_start_matches(' ').split_once('.')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (digits(seconds) && digits(rest) && rest.len() == 6).then(|| &line[at..])
    };
    line.match_indices('[').find_map(|(at, _)| stamped(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn worst(text: &str) -> Option<(Hurt, String)> {
        let mut console = Console::default();
        console.push(text.as_bytes());
        console.end_line();
        console.worst().map(|splat| (splat.hurt, splat.line.clone()))
    }

    #[test]
    fn a_panic_outranks_the_oops_before_it_and_gives_its_own_line() {
        let text = "[    1.207000] BUG: kernel NULL pointer dereference, address: 0000000000000000\r\n\
                    [    1.207000] #PF: supervisor write access in kernel mode\r\n\
                    [    1.207000] Oops: 0002 [#1] PREEMPT SMP NOPTI\r\n\
                    [    1.211000] Kernel panic - not syncing: Fatal exception\r\n\
                    [    1.211000] ---[ end Kernel panic - not syncing: Fatal exception ]---\r\n";
        assert_eq!(
            worst(text),
            Some((Hurt::Panic, "Kernel panic - not syncing: Fatal exception".to_owned()))
        );
    }

    #[test]
    fn splats_are_told_apart() {
        let cases = [
            ("[    2.1] WARNING: CPU: 0 PID: 1 at kernel/sched/fair.c:5 pick_eevdf+0x1/0x2", Hurt::Warning),
            ("[   12.3][   T77] WARNING: kernel/sched/core.c:3 at f+0x1/0x2, CPU#0: a/1", Hurt::Warning),
            ("[    9.0] Out of memory: Killed process 77 (hackbench) total-vm:1kB", Hurt::OutOfMemory),
            ("[   30.0] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [hackbench:77]", Hurt::Lockup),
            ("[   30.0] watchdog: CPU1: Watchdog detected hard LOCKUP on cpu 1", Hurt::Lockup),
            ("[   30.0] rcu: INFO: rcu_sched self-detected stall on CPU", Hurt::Lockup),
            ("[  130.0] INFO: task hackbench:77 blocked for more than 120 seconds.", Hurt::Lockup),
            ("[    2.1] kernel BUG at kernel/sched/core.c:1!", Hurt::Oops),
            ("[    2.1] BUG: scheduling while atomic: swapper/0/0/0x00000002", Hurt::Oops),
            ("general protection fault, probably for non-canonical address 0x1: 0000 [#1]", Hurt::Oops),
        ];
        for (line, hurt) in cases {
            assert_eq!(worst(line).map(|(hurt, _)| hurt), Some(hurt), "{line}");
        }
    }

    #[test]
    fn a_splat_behind_a_prompt_or_in_colours_is_one() {
        let panic = "Kernel panic - not syncing: Fatal exception";
        for before in [
            "sut1 login: [   35.123456] ",
            "root@sut1:~# [12345.000001] ",
            "\u{1b}[0m\u{1b}[2;1H[    1.0] ",
            "\u{1b}c",
        ] {
            assert_eq!(
                worst(&format!("{before}{panic}\r\n")),
                Some((Hurt::Panic, panic.to_owned())),
                "{before}"
            );
        }
    }

    #[test]
    fn lines_that_only_mention_trouble_are_no_splats() {
        for line in [
            "[    0.0] Kernel command line: console=ttyS0 panic=-1 oops=panic",
            "[    0.1] traps: a[12] general protection fault ip:401000 sp:7ffc error:0 in a",
            "[    0.1] a[12]: segfault at 0 ip 0 sp 0 error 14",
            "[    0.1] rcu: Hierarchical RCU implementation.",
            "[    0.1] watchdog: Delayed init of the lockup detector failed: -19",
            "user says: Kernel panic - not syncing: no",
            "[fake] WARNING: not a stamp",
            "log of yesterday: [1.5] Kernel panic - not syncing: no",
        ] {
            assert_eq!(worst(line), None, "{line}");
        }
    }

    #[test]
    fn the_last_line_survives_blank_lines_nul_bytes_and_a_missing_end() {
        let mut console = Console::default();
        console.push(b"[    0.5] one\n[    0.6] \0two\r\n\n\0\n");
        assert_eq!(console.last_line(), "two");
        console.push(b"[    0.7] three");
        console.end_line();
        assert_eq!(console.last_line(), "three");
    }

    #[test]
    fn forgetting_starts_a_new_run() {
        let mut console = Console::default();
        console.push(b"WARNING: CPU: 0\n");
        console.forget();
        assert_eq!(console.worst(), None);
        console.push(b"BUG: x\n");
        assert_eq!(console.worst().map(|splat| splat.hurt), Some(Hurt::Oops));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_read_the_same(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            piece in 1usize..50,
        ) {
            let (mut whole, mut parts) = (Console::default(), Console::default());
            whole.push(&bytes);
            bytes.chunks(piece).for_each(|part| parts.push(part));
            prop_assert_eq!(whole.last_line(), parts.last_line());
            prop_assert_eq!(whole.worst(), parts.worst());
        }
    }
}
