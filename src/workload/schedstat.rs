//! What `/proc/schedstat` counted between two readings: versions 15, 16 and 17.
//!
//! Sources: `show_schedstat` in kernel/sched/stats.c of each version and Documentation/scheduler/sched-stats.rst. Traps:
//! version 16 changed the order of idle and busy, 17 put a name before the mask of a domain and four imbalances in the place
//! of one, so columns are read by the version and a line with another number of them is refused; most counters have 32 bits
//! and wrap; a domain that is rebuilt begins at 0 again, and a difference that ran backwards is refused rather than shown as
//! four thousand million; where the sysctl kernel.sched_schedstats is 0 most counters stand still.
//! Tested here over tests/golden/schedstat/.

use super::Invalid;
use std::collections::BTreeMap;

/// Columns of a CPU, in order. The second is a legacy of the O(1) scheduler and always 0.
const OF_CPU: [&str; 9] = [
    "yld_count",
    "legacy",
    "sched_count",
    "sched_goidle",
    "ttwu_count",
    "ttwu_local",
    "rq_cpu_time_ns",
    "run_delay_ns",
    "pcount",
];

/// Columns of a CPU from here on have 64 bits, all others 32.
const WIDE_FROM: usize = 6;

/// Columns of a domain for each kind of idleness.
const BALANCE_16: [&str; 8] = [
    "lb_count",
    "lb_balanced",
    "lb_failed",
    "lb_imbalance",
    "lb_gained",
    "lb_hot_gained",
    "lb_nobusyq",
    "lb_nobusyg",
];
const BALANCE_17: [&str; 11] = [
    "lb_count",
    "lb_balanced",
    "lb_failed",
    "lb_imbalance_load",
    "lb_imbalance_util",
    "lb_imbalance_task",
    "lb_imbalance_misfit",
    "lb_gained",
    "lb_hot_gained",
    "lb_nobusyq",
    "lb_nobusyg",
];

/// Columns of a domain after those.
const OF_DOMAIN: [&str; 12] = [
    "alb_count",
    "alb_failed",
    "alb_pushed",
    "sbe_count",
    "sbe_balanced",
    "sbe_pushed",
    "sbf_count",
    "sbf_balanced",
    "sbf_pushed",
    "ttwu_wake_remote",
    "ttwu_move_affine",
    "ttwu_move_balance",
];

/// One reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedstat {
    /// Version of the format.
    pub version: u32,
    /// Columns by CPU.
    pub cpus: BTreeMap<u32, Vec<u64>>,
    /// Columns by CPU and domain: its name from version 17 on ("MC"), before it "domain0".
    pub domains: BTreeMap<(u32, String), Vec<u64>>,
}

/// Names of a domain's columns in a version.
fn of_domain(version: u32) -> Vec<String> {
    let kinds = if version < 16 { ["idle", "busy", "newly_idle"] } else { ["busy", "idle", "newly_idle"] };
    let balance: &[&str] = if version < 17 { &BALANCE_16 } else { &BALANCE_17 };
    let of_kind = |kind: &'static str| balance.iter().map(move |name| format!("{name}.{kind}"));
    kinds.into_iter().flat_map(of_kind).chain(OF_DOMAIN.iter().map(|name| (*name).to_owned())).collect()
}

impl Schedstat {
    /// Reads the file's text.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let head = lines.next().unwrap_or_default();
        let version = head.strip_prefix("version ").and_then(|version| version.parse::<u32>().ok());
        let version =
            version.ok_or_else(|| Invalid::because(format!("its first line is {head:?}, not a version")))?;
        if !(15..=17).contains(&version) {
            return Err(Invalid::because(format!("version {version} is none of 15, 16 and 17")));
        }
        let width = of_domain(version).len();
        let mut read = Self { version, cpus: BTreeMap::new(), domains: BTreeMap::new() };
        let mut cpu = None;
        for line in lines {
            let mut words = line.split(' ').filter(|word| !word.is_empty());
            let tag = words.next().unwrap_or_default();
            if let Some(number) = tag.strip_prefix("cpu").and_then(|number| number.parse().ok()) {
                cpu = Some(number);
                read.cpus.insert(number, columns(tag, words, OF_CPU.len(), version)?);
            } else if tag.starts_with("domain") {
                let of = cpu.ok_or_else(|| Invalid::because(format!("{tag} stands before any cpu")))?;
                let name = if version < 17 { tag } else { words.next().unwrap_or_default() };
                let _mask = words.next();
                read.domains.insert((of, name.to_owned()), columns(tag, words, width, version)?);
            } else if tag != "timestamp" {
                return Err(Invalid::because(format!("a line begins with {tag:?}")));
            }
        }
        if read.cpus.is_empty() {
            return Err(Invalid::because("it has no cpu".to_owned()));
        }
        Ok(read)
    }

    /// What was counted from `self` to `after`, summed over CPUs, by name: "sched_count", "MC.lb_count.busy". A CPU that came
    /// or went meanwhile is left out. Counters that stood still on all CPUs are there, as 0.
    pub fn until(&self, after: &Self) -> Result<BTreeMap<String, f64>, Invalid> {
        if self.version != after.version {
            let words = format!("its version went from {} to {}", self.version, after.version);
            return Err(Invalid::because(words));
        }
        let mut sums = BTreeMap::new();
        for (cpu, now) in &after.cpus {
            let Some(before) = self.cpus.get(cpu) else { continue };
            for (at, name) in OF_CPU.iter().enumerate().filter(|(_, name)| **name != "legacy") {
                let counted = counted(before[at], now[at], at >= WIDE_FROM);
                add(&mut sums, (*name).to_owned(), counted, &format!("cpu{cpu}"))?;
            }
        }
        let names = of_domain(self.version);
        for ((cpu, domain), now) in &after.domains {
            let Some(before) = self.domains.get(&(*cpu, domain.clone())) else { continue };
            for (at, name) in names.iter().enumerate() {
                let place = format!("{domain} of cpu{cpu}");
                add(&mut sums, format!("{domain}.{name}"), counted(before[at], now[at], false), &place)?;
            }
        }
        Ok(sums)
    }
}

/// Whether the scheduler's own counters are switched off: time slices were counted, and no call of schedule().
pub fn is_off(counted: &BTreeMap<String, f64>) -> bool {
    let of = |name: &str| counted.get(name).copied().unwrap_or(0.0);
    of("pcount") > 0.0 && of("sched_count") == 0.0 && of("ttwu_count") == 0.0
}

fn columns<'w>(
    tag: &str,
    words: impl Iterator<Item = &'w str>,
    width: usize,
    version: u32,
) -> Result<Vec<u64>, Invalid> {
    let read: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    let read = read.ok_or_else(|| Invalid::because(format!("{tag} has a column that is not a number")))?;
    if read.len() == width {
        Ok(read)
    } else {
        Err(Invalid::because(format!("{tag} has {} columns, version {version} has {width}", read.len())))
    }
}

/// `None`: it ran backwards.
fn counted(before: u64, now: u64, is_wide: bool) -> Option<u64> {
    if is_wide {
        return now.checked_sub(before);
    }
    let (before, now) = (u32::try_from(before).ok()?, u32::try_from(now).ok()?);
    let counted = now.wrapping_sub(before);
    (counted <= u32::MAX / 2).then_some(u64::from(counted))
}

fn add(
    sums: &mut BTreeMap<String, f64>,
    name: String,
    counted: Option<u64>,
    place: &str,
) -> Result<(), Invalid> {
    let counted = counted.ok_or_else(|| {
        Invalid::because(format!("{name} of {place} ran backwards: the scheduling domains were rebuilt"))
    })?;
    *sums.entry(name).or_default() += counted as f64;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(name: &str) -> String {
        let path = format!("{}/tests/golden/schedstat/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("it is recorded")
    }

    fn parsed(name: &str) -> Schedstat {
        Schedstat::parse(&recorded(name)).expect("it is sound")
    }

    fn table(counted: &BTreeMap<String, f64>) -> String {
        counted.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
    }

    macro_rules! golden {
        ($name:expr, $text:expr) => {
            insta::with_settings!({
                snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/schedstat"),
                prepend_module_to_snapshot => false,
                omit_expression => true,
            }, {
                insta::assert_snapshot!($name, $text);
            });
        };
    }

    #[test]
    fn a_run_of_hackbench_is_told_by_name_in_every_version() {
        for version in [15, 16, 17] {
            let facts = if version < 17 { "" } else { ".facts" };
            let name = |when: &str| format!("v{version}-{when}{facts}.txt");
            let counted = parsed(&name("before")).until(&parsed(&name("after"))).expect("it only grew");
            golden!(format!("v{version}"), table(&counted));
        }
    }

    /// The lines of the documentation: the n-th column is the number n.
    fn numbered(version: u32) -> Schedstat {
        let row = |count: usize| (1..=count).map(|n| format!(" {n}")).collect::<String>();
        let domain =
            if version < 17 { format!("domain0 f{}", row(36)) } else { format!("domain0 MC f{}", row(45)) };
        let text = format!("version {version}\ntimestamp 4294892295\ncpu0{}\n{domain}\n", row(9));
        Schedstat::parse(&text).expect("it is sound")
    }

    fn from_zero(after: &Schedstat) -> BTreeMap<String, f64> {
        let mut before = after.clone();
        before.cpus.values_mut().chain(before.domains.values_mut()).for_each(|columns| columns.fill(0));
        before.until(after).expect("it grew")
    }

    #[test]
    fn each_column_has_the_name_that_the_documentation_gives_it() {
        let of_cpu = [("yld_count", 1.0), ("sched_count", 3.0), ("ttwu_local", 6.0), ("pcount", 9.0)];
        let cases: [(u32, &[(&str, f64)]); 3] = [
            (
                15,
                &[
                    ("domain0.lb_count.idle", 1.0),
                    ("domain0.lb_count.busy", 9.0),
                    ("domain0.alb_count", 25.0),
                ],
            ),
            (
                16,
                &[
                    ("domain0.lb_count.busy", 1.0),
                    ("domain0.lb_gained.idle", 13.0),
                    ("domain0.ttwu_move_balance", 36.0),
                ],
            ),
            (
                17,
                &[
                    ("MC.lb_imbalance_misfit.busy", 7.0),
                    ("MC.lb_nobusyq.busy", 10.0),
                    ("MC.lb_count.idle", 12.0),
                    ("MC.lb_hot_gained.newly_idle", 31.0),
                    ("MC.alb_pushed", 36.0),
                    ("MC.ttwu_wake_remote", 43.0),
                ],
            ),
        ];
        for (version, of_domain) in cases {
            let counted = from_zero(&numbered(version));
            for (name, value) in of_cpu.iter().chain(of_domain) {
                assert_eq!(counted.get(*name), Some(value), "{name} in version {version}");
            }
            assert!(!counted.contains_key("legacy"));
        }
    }

    #[test]
    fn case_84_a_counter_that_wraps_is_counted_and_one_that_runs_backwards_is_refused() {
        let reading = |count: u64, delay: u64| {
            Schedstat::parse(&format!("version 17\ntimestamp 1\ncpu0 0 0 {count} 0 0 0 5 {delay} 7\n"))
                .expect("sound")
        };
        let counted = reading(u64::from(u32::MAX) - 1, 10).until(&reading(8, 10)).expect("it wrapped");
        assert_eq!(counted["sched_count"], 10.0);
        let back = reading(100, 10).until(&reading(50, 10)).expect_err("backwards");
        assert_eq!(back.reason, "sched_count of cpu0 ran backwards: the scheduling domains were rebuilt");
        assert!(reading(1, 10).until(&reading(1, 9)).is_err(), "64 bits do not wrap");
    }

    #[test]
    fn another_layout_is_refused_with_what_is_wrong() {
        for (text, reason) in [
            ("", "its first line is \"\", not a version"),
            ("version 18\ntimestamp 1\n", "version 18 is none of 15, 16 and 17"),
            ("version 17\ntimestamp 1\n", "it has no cpu"),
            ("version 17\ncpu0 1 2 3 4 5 6 7 8 9 10\n", "cpu0 has 10 columns, version 17 has 9"),
            (
                "version 16\ncpu0 1 2 3 4 5 6 7 8 9\ndomain0 3 1 2\n",
                "domain0 has 2 columns, version 16 has 36",
            ),
            ("version 16\ndomain0 3 1 2\n", "domain0 stands before any cpu"),
            ("version 16\ncpu0 1 x 3 4 5 6 7 8 9\n", "cpu0 has a column that is not a number"),
            ("version 16\nrq0 1\n", "a line begins with \"rq0\""),
        ] {
            assert_eq!(Schedstat::parse(text).expect_err("another layout").reason, reason);
        }
        assert!(numbered(16).until(&numbered(17)).is_err());
    }

    #[test]
    fn counters_that_are_switched_off_are_known() {
        let counted = |text: &str| from_zero(&Schedstat::parse(text).expect("sound"));
        assert!(is_off(&counted(
            "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 3363757224997 275119326171 32616635\n"
        )));
        assert!(!is_off(&from_zero(&numbered(16))));
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "(version 1[5-8]\n)?((cpu|domain)[0-9 ]{0,120}\n){0,4}.{0,40}") {
            if let Ok(read) = Schedstat::parse(&text) {
                prop_assert_eq!(read.until(&read).is_ok(), true);
            }
        }
    }
}
