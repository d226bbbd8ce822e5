//! Tunables: how a variant is set on a machine, and what reading it back must show.
//!
//! Owns: the shell that sets and reads, and the comparison of what was read with what was wanted. Must not do: run it (the
//! lab does). A knob that is not there, or reads back other than it was set, is told by name: a number measured under
//! another setting than the profile says is not a measurement. The shell is plain POSIX, so that a guest's busybox runs it.
//! Tested here with a real shell over a directory that plays /sys.

mod script;
#[cfg(test)]
mod tests;

use crate::session::Variant;
use std::collections::BTreeMap;

/// The cgroup that the workload is put into.
const CGROUP: &str = "/sys/fs/cgroup/sched-bisect";

/// Names of a process as the kernel keeps them, in bytes.
const COMM: usize = 15;

/// One thing to set.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Knob {
    /// For people, and the key under which it is recorded.
    name: String,
    /// What it must read.
    wanted: String,
    what: What,
}

/// What a knob is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// A word of sched/features.
    Feature,
    /// A file.
    File {
        path: String,
        /// Whether it is written, or must read so by itself.
        written: bool,
    },
    /// The file of every CPU.
    Governor,
    /// Words on the kernel's command line.
    Cmdline,
    /// Policy, nice and cgroup of every thread of the programs of this name.
    Processes { comm: String },
}

/// The knobs of a variant. See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunables {
    variant: Variant,
    knobs: Vec<Knob>,
}

/// What was read back, by knob.
pub type Settings = BTreeMap<String, String>;

impl Tunables {
    /// Those of a variant.
    pub fn of(variant: &Variant) -> Self {
        let knob =
            |name: &str, wanted: &str, what| Knob { name: name.to_owned(), wanted: wanted.to_owned(), what };
        let file = |path: String, written| What::File { path, written };
        let mut knobs = Vec::new();
        for feature in &variant.features {
            knobs.push(knob(feature.strip_prefix("NO_").unwrap_or(feature), feature, What::Feature));
        }
        if let Some(slice) = variant.base_slice_ns {
            let path = "/sys/kernel/debug/sched/base_slice_ns".to_owned();
            knobs.push(knob("base_slice_ns", &slice.to_string(), file(path, true)));
        }
        for (name, value) in &variant.sysctl {
            let path = format!("/proc/sys/{}", sysctl_path(name));
            knobs.push(knob(name, value, file(path, true)));
        }
        for (path, value) in &variant.files {
            knobs.push(knob(path, value, file(path.clone(), true)));
        }
        for (path, value) in &variant.expect {
            knobs.push(knob(path, value, file(path.clone(), false)));
        }
        for (name, value) in &variant.cgroup {
            knobs.push(knob(&format!("cgroup {name}"), value, file(format!("{CGROUP}/{name}"), true)));
        }
        if let Some(governor) = &variant.governor {
            knobs.push(knob("governor", governor, What::Governor));
        }
        if !variant.cmdline.is_empty() {
            knobs.push(knob("cmdline", &variant.cmdline, What::Cmdline));
        }
        for name in variant.processes.iter().filter(|_| variant.is_about_processes()) {
            let comm = name.chars().take(COMM).collect();
            knobs.push(knob(&format!("process {name}"), &process_words(variant), What::Processes { comm }));
        }
        Self { variant: variant.clone(), knobs }
    }

    /// Names under which what was read back is recorded with a run.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let run = !self.of_the_run().is_empty();
        self.knobs.iter().map(|knob| knob.name.as_str()).chain(run.then_some("run"))
    }

    /// Whether there is nothing to set or read on the machine; the run's own shell may still have something to set.
    pub fn is_empty(&self) -> bool {
        self.knobs.is_empty()
    }

    /// Shell that sets every knob and prints how each reads afterwards, for [`Tunables::read_back`].
    pub fn set(&self) -> String {
        script::all(&self.knobs, &self.variant, true)
    }

    /// Shell that only reads, for [`Tunables::read_back`], or for [`Tunables::found`] before they are set.
    pub fn read(&self) -> String {
        script::all(&self.knobs, &self.variant, false)
    }

    /// Shell to be put before the run's own: policy, nice and cgroup are of the shell that runs it, so that what it
    /// starts inherits them. It ends with [`INVALID`] on standard error where that does not work.
    pub fn prelude(&self) -> String {
        if self.variant.processes.is_empty() { script::prelude(&self.variant) } else { String::new() }
    }

    /// What the prelude has seen to, once a run has ended well.
    pub fn of_the_run(&self) -> Settings {
        if !self.variant.processes.is_empty() || !self.variant.is_about_processes() {
            return Settings::new();
        }
        BTreeMap::from([("run".to_owned(), process_words(&self.variant))])
    }

    /// Shell that writes back what was before; knobs of which nothing is known stay.
    pub fn restore(&self, before: &Settings) -> String {
        script::restore(&self.knobs, before)
    }

    /// What the machine printed of each knob, whatever is wanted; of one that it has not, nothing.
    pub fn found(&self, stdout: &[u8]) -> Settings {
        let text = String::from_utf8_lossy(stdout);
        let is = self.answers(&text).filter(|answer| answer.state == "is");
        is.map(|answer| (answer.knob.name.clone(), answer.knob.chosen(&answer.value))).collect()
    }

    /// Holds what the machine printed against what is wanted. Errors with every knob that is not as it should be, and why.
    pub fn read_back(&self, stdout: &[u8]) -> Result<Settings, Wrong> {
        let text = String::from_utf8_lossy(stdout);
        let mut settings = Settings::new();
        let mut wrong = Vec::new();
        let mut lacks = false;
        let mut answered = vec![false; self.knobs.len()];
        for Answer { at, knob, state, value } in self.answers(&text) {
            match state {
                "is" => {
                    let value = knob.chosen(&value);
                    if !knob.accepts(&value) {
                        wrong.push(knob.differs(&value));
                    }
                    settings.insert(knob.name.clone(), value);
                }
                "refused" => wrong.push(knob.refused(&value)),
                "hidden" => wrong.push(knob.hidden()),
                _ => {
                    lacks |= knob.is_the_kernels();
                    wrong.push(knob.absent(&value));
                }
            }
            answered[at] = true;
        }
        for (knob, _) in self.knobs.iter().zip(&answered).filter(|(_, answered)| !**answered) {
            wrong.push(format!("{} was not read back", knob.name));
        }
        if wrong.is_empty() { Ok(settings) } else { Err(Wrong { reason: wrong.join("; "), lacks }) }
    }

    fn answers<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Answer<'t>> {
        text.lines().filter_map(|line| {
            let fields: Vec<&str> = line.splitn(4, '\t').collect();
            let ["knob", at, state, value] = fields[..] else { return None };
            let at = at.parse::<usize>().ok()?;
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(Answer { at, knob: self.knobs.get(at)?, state, value })
        })
    }
}

/// A line of the machine's answer.
struct Answer<'t> {
    at: usize,
    knob: &'t Knob,
    /// "is", "refused" or "absent".
    state: &'t str,
    value: String,
}

/// What is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Every knob of it, and why.
    pub reason: String,
    /// Whether the kernel has not one of them at all: then it cannot be measured so, however often it is tried.
    pub lacks: bool,
}

/// Mark on standard error of a run that could not be given its policy, nice or cgroup; the reason follows.
pub const INVALID: &str = "sched-bisect: invalid: ";

/// The reason that a run's standard error gives by [`INVALID`].
pub fn declared_invalid(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    text.lines().find_map(|line| line.strip_prefix(INVALID).map(str::to_owned))
}

impl Knob {
    /// Of a file that shows all choices ("always [madvise] never"): the one in effect.
    fn chosen(&self, value: &str) -> String {
        let bracketed = value.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        match (&self.what, bracketed) {
            (What::File { .. }, Some(word)) if value.contains(' ') => word.to_owned(),
            (
                What::File { .. } | What::Feature | What::Governor | What::Cmdline | What::Processes { .. },
                _,
            ) => value.to_owned(),
        }
    }

    /// Whether it is the kernel that has it or has it not.
    fn is_the_kernels(&self) -> bool {
        match self.what {
            What::Feature | What::File { .. } | What::Governor => true,
            What::Cmdline | What::Processes { .. } => false,
        }
    }

    fn accepts(&self, value: &str) -> bool {
        if self.what == What::Cmdline {
            let has = |word: &str| value.split(' ').any(|seen| seen == word);
            return self.wanted.split_whitespace().all(has);
        }
        // Files have their own spacing: "cpu.max" takes "50000 100000".
        value == self.wanted.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn differs(&self, value: &str) -> String {
        let Self { name, wanted, what } = self;
        match what {
            What::File { path, written: true } => {
                let unit = if path.ends_with("_ns") { in_nanoseconds(wanted, value) } else { String::new() };
                format!(
                    "{name} was set to {wanted} and reads back {value}{unit}; see what else on the SUT writes it"
                )
            }
            What::File { written: false, .. } => format!("{name} must read {wanted} and reads {value}"),
            What::Feature | What::Governor => {
                format!("{name} was set to {wanted} and reads back {value}; see what else on the SUT sets it")
            }
            What::Cmdline => format!("the kernel command line lacks {wanted:?}; it is {value:?}"),
            What::Processes { .. } => format!("{name} was set to {wanted} and has a thread with {value}"),
        }
    }

    fn refused(&self, value: &str) -> String {
        let Self { name, wanted, .. } = self;
        format!(
            "{name} cannot be set to {wanted}: the kernel refused it; it reads {value}; see that the value is within its \
             range, and that the SUT's shell is root's"
        )
    }

    /// Of one below debugfs, where that cannot be looked into: whether the kernel has it is not known.
    fn hidden(&self) -> String {
        format!(
            "{} cannot be reached: debugfs is not at /sys/kernel/debug and cannot be mounted there; the kernel needs \
             CONFIG_DEBUG_FS=y, and the SUT's shell must be root's",
            self.name
        )
    }

    fn absent(&self, path: &str) -> String {
        let name = &self.name;
        match &self.what {
            What::Feature => format!(
                "knob not available: this kernel has no scheduler feature {name} (neither in sched/features of debugfs nor as sysctl)"
            ),
            What::Processes { .. } => format!("{name} does not run on the SUT"),
            What::Governor => "knob not available: this machine has no cpufreq governor".to_owned(),
            What::File { .. } | What::Cmdline => format!("knob not available: {name} (no {path})"),
        }
    }
}

/// What it means that a file in nanoseconds reads `value` instead of `wanted`: a number in another unit was written.
fn in_nanoseconds(wanted: &str, value: &str) -> String {
    let numbers = wanted.parse::<u64>().ok().zip(value.parse::<u64>().ok());
    let factor = numbers.filter(|(wanted, value)| *value > 0 && wanted % value == 0).map(|(w, v)| w / v);
    match factor {
        Some(1_000) => format!(" (the file is in nanoseconds: {value} ns, not {value} us)"),
        Some(1_000_000) => format!(" (the file is in nanoseconds: {value} ns, not {value} ms)"),
        Some(_) | None => " (the file is in nanoseconds)".to_owned(),
    }
}

/// "kernel.sched_x" as a path; as with sysctl, a name with slashes keeps its dots.
fn sysctl_path(name: &str) -> String {
    if name.contains('/') { name.to_owned() } else { name.replace('.', "/") }
}

/// "policy batch nice 5": as the scripts print it.
fn process_words(variant: &Variant) -> String {
    let mut words = Vec::new();
    words.extend(variant.policy.as_deref().map(|policy| format!("policy {policy}")));
    words.extend(variant.nice.map(|nice| format!("nice {nice}")));
    if !variant.cgroup.is_empty() {
        words.push("in the cgroup".to_owned());
    }
    words.join(" ")
}
