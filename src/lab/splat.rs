//! Lines of a kernel's log that mean it is hurt.
//!
//! Owns: recognising them, on a guest's console and in what `dmesg` of any SUT prints. Must not do: input or output, decide
//! what follows. Lines are matched from their start, after the time stamp, so that a program that mentions a panic is not
//! one. Tested with consoles (console.rs) and with logs (stage/).

/// How badly the kernel is hurt, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hurt {
    /// It complains and goes on.
    Warning,
    /// It killed a process for want of memory.
    OutOfMemory,
    /// A CPU or a task is stuck.
    Lockup,
    /// Kernel code failed; what ran there is gone.
    Oops,
    /// The end.
    Panic,
}

/// A line that means the kernel is hurt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splat {
    /// How badly.
    pub hurt: Hurt,
    /// The line, without its time stamp.
    pub line: String,
}

/// Starts of lines. The first that fits decides.
const STARTS: [(&str, Hurt); 25] = [
    ("Kernel panic - not syncing", Hurt::Panic),
    ("watchdog: BUG: soft lockup", Hurt::Lockup),
    ("BUG: soft lockup", Hurt::Lockup),
    ("BUG: workqueue lockup", Hurt::Lockup),
    ("NMI watchdog: BUG: soft lockup", Hurt::Lockup),
    ("NMI watchdog: Watchdog detected hard LOCKUP", Hurt::Lockup),
    ("watchdog: Watchdog detected hard LOCKUP", Hurt::Lockup),
    ("rcu: INFO: rcu_", Hurt::Lockup),
    ("INFO: rcu_", Hurt::Lockup),
    ("INFO: task ", Hurt::Lockup),
    ("BUG: ", Hurt::Oops),
    ("kernel BUG at ", Hurt::Oops),
    ("Oops: ", Hurt::Oops),
    ("Internal error: ", Hurt::Oops),
    ("Unable to handle kernel ", Hurt::Oops),
    ("general protection fault", Hurt::Oops),
    ("invalid opcode: ", Hurt::Oops),
    ("divide error: ", Hurt::Oops),
    ("stack segment: ", Hurt::Oops),
    ("double fault: ", Hurt::Oops),
    ("PANIC: double fault", Hurt::Oops),
    ("Out of memory: ", Hurt::OutOfMemory),
    ("Memory cgroup out of memory: ", Hurt::OutOfMemory),
    ("WARNING: ", Hurt::Warning),
    ("UBSAN: ", Hurt::Warning),
];

/// Recognises a line (with or without time stamp).
pub fn classify(line: &str) -> Option<Splat> {
    let text = without_stamp(line);
    let known = STARTS.iter().find(|(start, _)| text.starts_with(start)).map(|(_, hurt)| *hurt);
    // "watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3" has a number before the words.
    let hard_lockup = || text.starts_with("watchdog: CPU") && text.contains(" hard LOCKUP ");
    let hurt = known.or_else(|| hard_lockup().then_some(Hurt::Lockup))?;
    Some(Splat { hurt, line: text.to_owned() })
}

/// The line without `[    1.234567]` and `[    T12]` before it.
pub fn without_stamp(line: &str) -> &str {
    let mut text = line.trim();
    // `dmesg -r` has the level before the stamp.
    if let Some((level, rest)) = text.strip_prefix('<').and_then(|inner| inner.split_once('>'))
        && level.bytes().all(|byte| byte.is_ascii_digit())
    {
        text = rest.trim_start();
    }
    while let Some((stamp, rest)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        let inner = stamp.trim_start().trim_start_matches(['T', 'C']);
        if inner.is_empty() || !inner.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            break;
        }
        text = rest.trim_start();
    }
    text
}
