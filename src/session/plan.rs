//! The plan: everything that was decided before the first measurement. Record 0 of the journal; never changes.

use super::setup::{NamedVariant, Setup};
use super::ssh::{Reach, Ssh};
use crate::model::{CommitId, Direction, Find, Metric, Relative};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A commit as the user named it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The revision as given ("v6.15-rc4").
    pub rev: String,
    /// What it resolved to.
    pub commit: CommitId,
}

/// What the session is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Purpose {
    /// Find the commit that made the difference.
    Bisect,
    /// Revert one commit on top of bad and see how much of the difference comes back.
    RevertTest {
        /// The commit to revert.
        commit: CommitId,
        /// Its subject.
        subject: String,
        /// For a merge: the parent (counted from 1) whose side stays.
        mainline: Option<u32>,
        /// What the revert came to in git.
        revert: Revert,
    },
    /// Measure kernels under variants and compare them, see [`Survey`].
    Survey(Box<Survey>),
}

/// Kernels that are measured beside each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// The kernels in the order given, the baseline among them; each commit once.
    pub kernels: Vec<Kernel>,
    /// Boots of each kernel under each variant; >= 2.
    pub boots: u32,
    /// Counted runs in each boot; >= 1.
    pub runs: u32,
    /// Whether a cell is compared with the baseline under the same variant, and not under the first.
    pub own_baseline: bool,
    /// Metrics beside the judged one that are columns of the table.
    pub also: Vec<String>,
    /// What a search between two of them is to be given of this one's arguments, as a shell takes it.
    pub arguments: String,
}

/// A kernel of a survey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// The revision as given ("v6.15-rc4").
    pub rev: String,
    /// What it resolved to.
    pub commit: CommitId,
    /// How it stands to each kernel before it, in the order given.
    pub lineage: Vec<Lineage>,
}

/// How a commit stands to another in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lineage {
    /// It contains the other.
    Descendant,
    /// The other contains it.
    Ancestor,
    /// They have a common ancestor.
    Diverged,
    /// They have none.
    Unrelated,
}

/// What git made of a revert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum Revert {
    /// A commit "bad + revert" exists.
    Clean {
        /// It; has no ref, its id follows from its inputs alone.
        commit: CommitId,
    },
    /// These files conflict.
    Conflicts {
        /// Paths, sorted.
        files: Vec<String>,
    },
    /// Reverting changes nothing.
    AlreadyReverted,
}

/// How candidates are built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum BuilderSpec {
    /// Nothing is built.
    None,
    /// A command of the user's (contract: hooks/README.md).
    Command {
        /// Run by `sh -c`.
        command: String,
    },
    /// The kernel's own build system, see [`Kbuild`].
    Kbuild(Box<Kbuild>),
}

/// A kernel build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kbuild {
    /// Make target that makes the first configuration (`tinyconfig`, `defconfig`), or empty when `config` is whole.
    pub base: String,
    /// Configuration text put on top of the base; then `olddefconfig`. The content, not a path.
    pub config: String,
    /// Symbols that must read so after `olddefconfig` ("CONFIG_HZ=250"); else the step is untestable(config).
    pub required: Vec<String>,
    /// Make targets ("bzImage").
    pub targets: Vec<String>,
    /// Image to keep, relative to the build directory ("arch/x86/boot/bzImage").
    pub image: String,
    /// More arguments for every make ("W=1").
    pub make_args: Vec<String>,
    /// The kernel's name of the architecture ("arm64"); empty = what `make_args` or this host says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// What stands before the names of compiler and linker ("aarch64-linux-gnu-"); empty = nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cross_compile: String,
    /// Whether modules are made and packed, where the configuration has any: for machines with a disk.
    #[serde(default, skip_serializing_if = "is_false")]
    pub modules: bool,
    /// Parallel jobs; 0 = one per CPU.
    pub jobs: u32,
    /// Fix-ups, in order.
    pub fixups: Vec<Fixup>,
    /// Another machine on which make runs; `None`: this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<BuildOn>,
}

/// A machine that builds kernels, reached by ssh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildOn {
    /// Where it is: ssh://USER@HOST:PORT.
    pub address: String,
    /// Directory on it, below the home of who logs in if it is no absolute path; empty: `.cache/sched-bisect`.
    pub dir: String,
    /// How it is reached; `sudo` is not used.
    pub reach: Reach,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A patch that some candidates need in order to build or boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixup {
    /// Name for people and logs.
    pub name: String,
    /// The patch itself (unified diff), not a path.
    pub patch: String,
    /// Applied only to commits that contain this one; empty = from the start.
    pub from: Option<CommitId>,
    /// Not applied to commits that contain this one; empty = to the end.
    pub until: Option<CommitId>,
}

/// Where candidates run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum MachineSpec {
    /// Commands of the user's drive the machine (contract: hooks/README.md).
    Command {
        /// Boot command; absent: each run counts as a boot of its own.
        boot: Option<String>,
        /// Run command; its last line of output is the measurement, unless a parser is named ([`Reading`]).
        run: String,
    },
    /// A guest per boot under QEMU.
    Qemu(Qemu),
    /// A machine of its own, reached by ssh, on which kernels are installed.
    Ssh(Ssh),
}

/// A QEMU guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qemu {
    /// The emulator ("qemu-system-x86_64").
    pub program: String,
    /// `icount` (TCG that counts instructions), `tcg`, `kvm`, or `auto` (KVM if a probe guest boots, else icount).
    pub accel: String,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// More kernel command line.
    pub cmdline: String,
    /// Host programs put into the guest with the libraries they need ("hackbench").
    pub programs: Vec<String>,
    /// Shell command run once in the guest after boot; empty = none. Not zero = the boot failed.
    pub prepare: String,
    /// Shell command in the guest that is one run.
    pub run: String,
    /// How its output is read ("hackbench", "number").
    pub parser: String,
}

/// How the output of a run is read, where the machine's own way is not what is wanted. Plans of older versions have none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reading {
    /// Name of the parser ("sysbench"); empty = the machine's own.
    pub parser: String,
    /// For the parser "regex": the pattern, each named group a metric.
    pub regex: String,
    /// For "csv": what separates columns; absent = a comma.
    pub separator: Option<char>,
    /// For "csv": the row, as "COLUMN=VALUE"; empty = there is one.
    pub row: String,
    /// For "json" and "csv": where each metric stands.
    pub metrics: BTreeMap<String, Place>,
}

impl Reading {
    /// Whether the machine's own way is all.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a metric stands in an output that the profile describes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// A JSON pointer, or the name of a column.
    pub at: String,
    /// Its unit, for people.
    #[serde(default)]
    pub unit: String,
    /// Which way is better, where the profile says.
    #[serde(default)]
    pub direction: Option<Direction>,
}

/// Bounds on what is measured. How many boots and runs a kernel gets within them is decided as the session goes. Plans of
/// older versions hold fixed numbers of runs and of confirming boots beside these; they are read over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judging {
    /// Least boots of each endpoint before they are compared; >= 2.
    pub boots: u32,
    /// Most boots of each endpoint before they are compared for the last time; 0 = by a power analysis of their noise.
    pub max_boots: u32,
    /// Runs at the start of each boot that are recorded but not counted.
    pub warmup_runs: u32,
}

/// What a build, a boot and a run are guessed to take, in seconds, until the session has seen some.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// A build.
    pub build_s: f64,
    /// A boot without its runs.
    pub boot_s: f64,
    /// A run.
    pub run_s: f64,
    /// Spread of the runs of one boot, as a fraction of the metric.
    pub run_noise: f64,
    /// Spread of the boots of one kernel, likewise.
    pub boot_noise: f64,
}

impl Default for Costs {
    /// A kernel built on a build host, a server's reboot, a database benchmark: what a lab's steps take.
    fn default() -> Self {
        Self { build_s: 1200.0, boot_s: 180.0, run_s: 600.0, run_noise: 0.02, boot_noise: 0.01 }
    }
}

/// How often a step is tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    /// Failed boots before a commit is untestable.
    pub boot: u32,
    /// Failed or invalid attempts of one run before its commit is untestable.
    pub run: u32,
    /// Infrastructure failures in a row before the session stops, resumable.
    pub infra: u32,
}

/// Deadlines, in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// One build.
    pub build_s: u64,
    /// One boot.
    pub boot_s: u64,
    /// One run.
    pub run_s: u64,
}

/// The resolved profile: how to build, boot, run, read and judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Name of the profile.
    pub profile: String,
    /// What is judged.
    pub metric: Metric,
    /// What is looked for.
    pub find: Find,
    /// Smallest change worth finding; > 0.
    pub minimum_effect: Relative,
    /// The change that was reported, as a fraction of the metric (`0.124` = 12.4 %, either way); the endpoints must show
    /// about that much. Absent: any change from the smallest on.
    #[serde(default)]
    pub expected_effect: Option<Relative>,
    /// Probability asked of a conclusion, in (0.5, 1).
    pub confidence: f64,
    /// Machine time allowed, in seconds; absent = no limit.
    pub budget_s: Option<u64>,
    /// Name of the set of tunables (SB_VARIANT).
    pub variant: String,
    /// Machines used at once.
    pub suts: u32,
    /// Amounts.
    pub judging: Judging,
    /// What things take.
    #[serde(default)]
    pub costs: Costs,
    /// Retries.
    pub attempts: Attempts,
    /// Deadlines.
    pub deadlines: Deadlines,
    /// Builder.
    pub builder: BuilderSpec,
    /// Machine.
    pub machine: MachineSpec,
    /// How what it prints is read.
    #[serde(default, skip_serializing_if = "Reading::is_default")]
    pub reading: Reading,
    /// What is done around a run.
    #[serde(default, skip_serializing_if = "Setup::is_default")]
    pub setup: Setup,
}

impl Recipe {
    /// Names of the variants that are measured under, that of the search first.
    pub fn variants(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.variant.as_str()).chain(self.setup.also.iter().map(|also| also.name.as_str()))
    }

    /// The variant of a boot, by the name that stands in its record; an empty or unknown one is that of the search.
    pub fn named(&self, name: &str) -> NamedVariant {
        let also = self.setup.also.iter().find(|also| also.name == name);
        let own = || NamedVariant { name: self.variant.clone(), sets: self.setup.variant.clone() };
        also.cloned().unwrap_or_else(own)
    }
}

/// Record 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the program that made it.
    pub tool_version: String,
    /// Name of the session.
    pub session: String,
    /// The user's repository (git common directory), absolute.
    pub repository: String,
    /// What for.
    pub purpose: Purpose,
    /// The given good endpoint.
    pub good: Endpoint,
    /// The given bad endpoint.
    pub bad: Endpoint,
    /// Where good is not an ancestor of bad: their merge bases, measured before the search.
    pub merge_bases: Vec<CommitId>,
    /// Path limits of the search; empty = none.
    pub paths: Vec<String>,
    /// Commits that the user leaves out (`--skip`): not measured in the search, still suspects.
    #[serde(default)]
    pub skipped: Vec<CommitId>,
    /// blake3 of the range file (the Dag as JSON), hex.
    pub range_digest: String,
    /// Candidates in the range.
    pub candidates: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Resolved profile.
    pub recipe: Recipe,
    /// Facts of the host that started it (kernel, CPUs), for the report.
    pub host: BTreeMap<String, String>,
    /// The command that starts such a session again, as a shell takes it; plans of older versions have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}
