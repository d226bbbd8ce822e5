//! What a profile asks for around a run: tunables, roles and their steps, and the checks that make a run count.
//!
//! Plain data of the plan. Plans of older versions have none of it; each part that is not asked for is not written.

use super::environment::Watch;
use crate::model::Relative;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the role that the kernel under test runs on.
pub const SUT: &str = "sut";

/// Name of the role that makes the load, where there is one.
pub const LDG: &str = "ldg";

/// A set of tunables. Empty: the kernel's own defaults, whatever they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variant {
    /// Scheduler features as `sched/features` of debugfs names them ("NO_PLACE_LAG").
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// `sched/base_slice_ns` of debugfs, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_slice_ns: Option<u64>,
    /// sysctls by dotted name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, String>,
    /// Files of sysfs, procfs or debugfs by absolute path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Files that must read so and are not written (`/sys/kernel/sched_ext/state`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub expect: BTreeMap<String, String>,
    /// cpufreq governor of every CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Scheduling policy of the workload: other, batch, idle, ext.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Its nice value, -20 to 19.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Attributes of the cgroup (v2) that the workload is put into ("cpu.weight").
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroup: BTreeMap<String, String>,
    /// What policy, nice and cgroup are for: services of the SUT by the name of their program; empty: the run itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<String>,
    /// More kernel command line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cmdline: String,
}

impl Variant {
    /// Whether the kernel's own defaults are all.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether something of it is about the workload's own processes.
    pub fn is_about_processes(&self) -> bool {
        self.policy.is_some() || self.nice.is_some() || !self.cgroup.is_empty()
    }
}

/// A variant with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedVariant {
    /// Its name.
    pub name: String,
    /// What it sets.
    pub sets: Variant,
}

/// When a step is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// As [`Phase::Boot`], but in the first boot of the session only.
    Once,
    /// In each boot, before its first run.
    Boot,
    /// Before each run.
    Run,
    /// After a run that failed, before the commit is blamed for it: one on another role that fails says that we did.
    Failed,
    /// After each run; what it prints is read behind what the run printed.
    Collect,
    /// At the end of each boot.
    Clean,
}

impl Phase {
    /// All, in the order of a boot.
    pub const ALL: [Self; 6] = [Self::Once, Self::Boot, Self::Run, Self::Failed, Self::Collect, Self::Clean];

    /// As a profile writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Boot => "boot",
            Self::Run => "run",
            Self::Failed => "failed",
            Self::Collect => "collect",
            Self::Clean => "clean",
        }
    }
}

/// A command on a role, beside the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name, for messages and logs; unique.
    pub name: String,
    /// The role that it runs on.
    pub on: String,
    /// When.
    pub when: Phase,
    /// Run by `sh -c`.
    pub command: String,
    /// When to give up, in seconds.
    pub deadline_s: u64,
    /// Tried again after so many seconds until it succeeds or the deadline passes: it waits for a service. Absent: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_s: Option<u64>,
}

/// What the SUT must be like before a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// Tasks that run or wait to run, at most, as `/proc/loadavg` counts them at the moment; without the asking shell.
    pub running: Option<u32>,
    /// Load average of the last minute, at most.
    pub load: Option<f64>,
    /// Hottest thermal zone, in degrees Celsius, at most; not asked of a machine that shows none.
    pub temperature: Option<f64>,
    /// Whether systemd must have done starting; not asked of a machine without it.
    pub system: bool,
    /// When to give up, in seconds.
    pub deadline_s: u64,
}

/// A workload that no kernel can change: when it moves, the machine moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// Run once in each boot, before its first run; its last line is one number.
    pub command: String,
    /// The role that it runs on.
    pub on: String,
    /// Largest change against the median of the boots before it, either way.
    pub within: Relative,
    /// When to give up, in seconds.
    pub deadline_s: u64,
}

/// What shows that the SUT, and not what makes its load, is the limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saturation {
    /// Largest part of the SUT's CPU time that may be idle during a run, 0 to 1.
    pub idle: Option<Relative>,
    /// CPUs of the load generators together for each one of the SUT, at least.
    pub ldg_cpus: Option<f64>,
    /// Seconds at the start of a run in which the load comes up; idle time in them does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_up_s: Option<u64>,
}

/// Which runs at the start of a boot do not count, beside a fixed number of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// A run counts from the first on that differs from the one before by no more than this.
    pub within: Relative,
    /// Runs that it may cost, at most: then the boot counts as it is, as every other would.
    pub most: u32,
}

/// What is gathered beside each run's number, for people; never judged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Beside {
    /// What `/proc/schedstat` of the SUT counted during the run.
    pub schedstat: bool,
    /// Events that `perf stat` counts on the whole SUT during the run ("context-switches"); empty: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub perf_stat: Vec<String>,
    /// Whether `perf record` samples the whole SUT; its report is kept beside the run's log.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub perf_record: bool,
    /// Whether `perf sched stats` is recorded, where the SUT's perf has it; its report is kept likewise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub perf_sched_stats: bool,
}

impl Beside {
    /// Whether nothing is gathered.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setup {
    /// Tunables in effect.
    #[serde(skip_serializing_if = "Variant::is_default")]
    pub variant: Variant,
    /// Further variants: of a survey, and those that a search measures its culprit under.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<NamedVariant>,
    /// How a shell on each role is started, its script on standard input ("ssh root@ldg sh"). A role that is not in it,
    /// and the SUT where it is not, is where the run command runs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, String>,
    /// What every step and run finds in its environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The role of the run itself; empty: the SUT.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run_on: String,
    /// Steps beside it, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Before a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle: Option<Settle>,
    /// In each boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// During a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturation: Option<Saturation>,
    /// Which runs count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// In each boot and after each run: whether the machines are what they were. Absent: nobody looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Watch>,
    /// Around each run.
    #[serde(skip_serializing_if = "Beside::is_nothing")]
    pub evidence: Beside,
}

impl Setup {
    /// Whether the run is all there is to it.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// All variants that are measured under.
    pub fn variants(&self) -> impl Iterator<Item = &Variant> {
        std::iter::once(&self.variant).chain(self.also.iter().map(|also| &also.sets))
    }

    /// Whether a machine has more to do than to run the workload.
    pub fn is_staged(&self) -> bool {
        let Self {
            variant: _,
            also: _,
            roles,
            env,
            run_on,
            steps,
            settle,
            canary,
            saturation,
            steady: _,
            environment,
            evidence,
        } = self;
        !(self.variants().all(Variant::is_default)
            && roles.is_empty()
            && env.is_empty()
            && run_on.is_empty()
            && steps.is_empty()
            && settle.is_none()
            && canary.is_none()
            && saturation.is_none()
            && environment.is_none()
            && evidence.is_nothing())
    }

    /// Runs at the start of a boot that do not count, of `values` in the order in which they were measured; `least` do not
    /// in any case. What a run is depends on those before it only, so that it never changes afterwards.
    pub fn warmup(&self, least: usize, values: &[f64]) -> usize {
        let Some(steady) = self.steady else { return least };
        let most = least.saturating_add(steady.most as usize);
        let settled = (least + 1..values.len().min(most)).find(|&at| {
            let (before, now) = (values[at - 1], values[at]);
            (now - before).abs() <= steady.within.0 * before.abs()
        });
        settled.unwrap_or(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(most: u32) -> Setup {
        Setup { steady: Some(Steady { within: Relative(0.02), most }), ..Setup::default() }
    }

    #[test]
    fn runs_count_from_the_first_on_that_is_like_the_one_before() {
        let series = [27.7, 22.5, 19.9, 19.9, 19.8];
        assert_eq!(steady(8).warmup(0, &series), 3);
        assert_eq!(Setup::default().warmup(2, &series), 2);
        assert_eq!(steady(8).warmup(4, &series), 12, "none can be told from one run");
    }

    #[test]
    fn what_a_run_is_never_changes_with_later_runs() {
        let series = [27.7, 22.5, 19.9, 19.9, 15.0, 19.8, 19.8];
        for most in 0..8 {
            for at in 0..series.len() {
                let then = at < steady(most).warmup(1, &series[..=at]);
                let later = at < steady(most).warmup(1, &series);
                assert_eq!(then, later, "run {at}, at most {most}");
            }
        }
    }

    #[test]
    fn a_boot_that_never_settles_counts_after_so_many_runs() {
        assert_eq!(steady(3).warmup(1, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), 4);
    }
}
