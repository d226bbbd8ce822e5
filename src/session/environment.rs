//! What a machine was like when a boot was measured, and whether that is what it was like before.
//!
//! Owns: to whom each field of a fingerprint belongs, and what a difference means. Must not do: look at a machine (the lab
//! does). A difference that is not the kernel's own doing voids the boot: numbers from two machines that are called one
//! would be taken for two kernels. What a kernel decides by being another kernel is no fault of the lab: it is told.
//! Tested here.

use super::setup::{Setup, Variant};
use super::state::{Boot, State};
use crate::model::{BootNo, CommitId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Fields with their values; a field that a machine does not have is not there.
pub type Fields = BTreeMap<String, String>;

/// Between the role and the field, where the role is not the SUT ("ldg:governor").
const OF_ROLE: char = ':';

/// Differences that a message spells out.
const SPELT: usize = 3;

/// How much of a value a message quotes, in characters.
const QUOTED: usize = 80;

/// Part by which the memory that a kernel leaves to others may differ: what it takes for itself differs by its size.
const MEMORY_WITHIN: f64 = 0.02;

/// What a profile says of the environment (`[environment]`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Watch {
    /// Fields that may differ; "sysctl.*" names all that begin so. Without a role before it: on every role.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// More to look at on the SUT: files by absolute path, programs by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// To whom a field belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The machine and its user: the same in every boot of a session.
    Machine,
    /// A size of the machine, in KiB, of which each kernel takes a little for itself.
    Size,
    /// The kernel: the same in every boot of one kernel; between kernels it may differ, and is told.
    Kernel,
    /// The kernel, and chance: never compared, but told.
    Told,
    /// It says which kernel it is: that it differs between kernels is the point.
    Identity,
}

/// The first name that fits decides; a trailing `*` stands for any end. All others are the machine's.
const OWNERS: &[(&str, Owner)] = &[
    ("kernel.release", Owner::Identity),
    ("kernel.version", Owner::Identity),
    ("kernel.build_id", Owner::Identity),
    // The same lab configuration gives every candidate its own: symbols come and go. The builder checks those that matter.
    ("kernel.config", Owner::Kernel),
    // A kernel that warned on the way up is tainted; not every boot of it need be.
    ("kernel.taint", Owner::Told),
    // Whether it lets its log be read.
    ("kernel.log", Owner::Told),
    // It chooses, by what it thinks of the hardware. That one kernel chooses differently from boot to boot (a TSC that is
    // called unstable now and then) would be read as its noise.
    ("clocksource", Owner::Kernel),
    ("cpufreq_driver", Owner::Kernel),
    ("mitigation.*", Owner::Kernel),
    // How it schedules, where nobody set it.
    ("sched.*", Owner::Kernel),
    ("memory_kib", Owner::Size),
];

/// Fields that tell what the driver of another field offers: they are comparable only while that is the same.
const BY_DRIVER: [&str; 3] = ["governor", "boost", "frequency_limits"];

/// Beginning of the fields that are read from debugfs.
const OF_DEBUGFS: &str = "sched.";

/// Fields that a word of the kernel's command line may decide (nosmt, maxcpus=, noautogroup, sysctl.vm.swappiness=...),
/// beside those that are the kernel's own; and what is sized by them.
const BY_CMDLINE: [&str; 12] = [
    "cpus_online",
    "smt",
    "numa_nodes",
    "microcode",
    "memory_kib",
    "governor",
    "boost",
    "frequency_limits",
    "thp",
    "autogroup",
    "sysctl.*",
    "load.*",
];

/// Fields that are a kernel's own defaults where nobody sets them.
const BY_DEFAULT: [&str; 3] = ["sysctl.*", "thp", "autogroup"];

/// Beginnings of fields that do not come from the kernel: their absence is not its doing.
const NOT_OF_THE_KERNEL: [&str; 6] = ["program.", "library.", "file.", "load.", "tty", "hostname"];

/// To whom a field belongs. On a role other than the SUT nothing is the kernel's under test: all must stay.
pub fn owner(field: &str) -> Owner {
    let known = OWNERS.iter().find(|(name, _)| fits(name, bare(field))).map(|(_, owner)| *owner);
    match known.unwrap_or(Owner::Machine) {
        Owner::Kernel | Owner::Identity if is_elsewhere(field) => Owner::Machine,
        owner @ (Owner::Machine | Owner::Size | Owner::Kernel | Owner::Told | Owner::Identity) => owner,
    }
}

fn is_elsewhere(field: &str) -> bool {
    field
        .split_once(OF_ROLE)
        .is_some_and(|(role, _)| role.chars().all(|c| c.is_ascii_alphanumeric() || "_-+".contains(c)))
}

/// The field without its role.
fn bare(field: &str) -> &str {
    if is_elsewhere(field) { field.split_once(OF_ROLE).map_or(field, |(_, bare)| bare) } else { field }
}

fn fits(pattern: &str, field: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == field, |start| field.starts_with(start))
}

/// The name of a role's field.
pub fn of_role(role: &str, field: &str) -> String {
    if role == super::SUT { field.to_owned() } else { format!("{role}{OF_ROLE}{field}") }
}

/// A field that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub field: String,
    /// What it is; absent = the machine does not have it any more.
    pub is: Option<String>,
    /// What it was.
    pub was: Option<String>,
}

impl Difference {
    /// "governor is powersave, was performance".
    fn words(&self) -> String {
        let value = |value: &Option<String>| value.as_deref().map_or("absent".to_owned(), quoted);
        format!("{} is {}, was {}", self.field, value(&self.is), value(&self.was))
    }
}

/// A value fit for a message.
pub fn quoted(value: &str) -> String {
    match value.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None if value.is_empty() => "empty".to_owned(),
        None => value.to_owned(),
    }
}

/// What two fingerprints are held against each other for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// Boots of one kernel.
    OneKernel,
    /// Boots of two kernels.
    Kernels,
    /// Boots of two kernels in guests of ours, in which nobody else sets anything.
    Guests,
    /// Boots with different kernel command lines, as their variants say, of one kernel or two.
    CommandLines,
}

/// The rules of a session: what is not compared in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    ignored: BTreeSet<String>,
    /// Whether a variant mounts debugfs: then it comes into sight, and stays where boots share a machine.
    may_mount: bool,
}

impl Rules {
    /// What the profile ignores.
    pub fn of(setup: &Setup) -> Self {
        let ignored = setup.environment.iter().flat_map(|watch| watch.ignore.iter().cloned()).collect();
        Self { ignored, may_mount: setup.variants().any(is_in_debugfs) }
    }

    /// What these variants set as well: what it was before does not reach their runs.
    fn but_for(&self, variants: [&Variant; 2]) -> Self {
        let mut rules = self.clone();
        rules.ignored.extend(variants.into_iter().flat_map(set_by));
        rules
    }

    /// Whether a field may differ.
    pub fn ignores(&self, field: &str) -> bool {
        self.ignored.iter().any(|pattern| fits(pattern, field) || fits(pattern, bare(field)))
    }

    /// Fields that must be the same and are not.
    pub fn differences(&self, is: &Fields, was: &Fields, between: Between) -> Vec<Difference> {
        let names: BTreeSet<&String> = is.keys().chain(was.keys()).collect();
        let differ = |name: &&String| {
            let moved = is.get(*name) != was.get(*name) && must_stay(name, is, was, between);
            moved && !self.ignores(name) && !self.came_into_sight(name, is, was)
        };
        names.into_iter().filter(differ).map(|name| difference(name, is, was)).collect()
    }

    /// What debugfs shows, where it was mounted in between.
    fn came_into_sight(&self, name: &str, is: &Fields, was: &Fields) -> bool {
        self.may_mount && name.starts_with(OF_DEBUGFS) && !(is.contains_key(name) && was.contains_key(name))
    }

    /// Fields that differ because the kernels do.
    pub fn of_the_kernel(&self, is: &Fields, was: &Fields, between: Between) -> Vec<Difference> {
        let names: BTreeSet<&String> = is.keys().chain(was.keys()).collect();
        let told = |name: &&String| {
            let same = is.get(*name) == was.get(*name) || owner(name) == Owner::Identity;
            !same && !self.ignores(name) && !must_stay(name, is, was, between)
        };
        let size = |name: &&String| owner(name) != Owner::Size;
        names.into_iter().filter(told).filter(size).map(|name| difference(name, is, was)).collect()
    }
}

fn difference(name: &str, is: &Fields, was: &Fields) -> Difference {
    Difference { field: name.to_owned(), is: is.get(name).cloned(), was: was.get(name).cloned() }
}

/// Fields of a fingerprint that a variant sets, as far as there are such.
fn set_by(variant: &Variant) -> Vec<String> {
    let mut fields: Vec<String> = variant.sysctl.keys().map(|name| format!("sysctl.{name}")).collect();
    let path = |path: &String| {
        let thp = path.starts_with("/sys/kernel/mm/transparent_hugepage/").then_some("thp");
        let sysctl = path.strip_prefix("/proc/sys/").map(|rest| format!("sysctl.{}", rest.replace('/', ".")));
        [Some(format!("file.{path}")), thp.map(str::to_owned), sysctl]
    };
    fields.extend(variant.files.keys().flat_map(path).flatten());
    fields.extend(variant.governor.as_ref().map(|_| "governor".to_owned()));
    if variant.sysctl.contains_key("kernel.sched_autogroup_enabled") {
        fields.push("autogroup".to_owned());
    }
    if !variant.features.is_empty() {
        fields.push("sched.features".to_owned());
    }
    fields.extend(variant.base_slice_ns.map(|_| "sched.base_slice_ns".to_owned()));
    fields
}

/// Whether setting a variant reaches for debugfs.
fn is_in_debugfs(variant: &Variant) -> bool {
    let has_file =
        variant.files.keys().chain(variant.expect.keys()).any(|path| path.starts_with("/sys/kernel/debug/"));
    has_file || !variant.features.is_empty() || variant.base_slice_ns.is_some()
}

fn must_stay(name: &str, is: &Fields, was: &Fields, between: Between) -> bool {
    let (now, before) = (is.get(name), was.get(name));
    let any = |names: &[&str]| !is_elsewhere(name) && names.iter().any(|pattern| fits(pattern, name));
    match between {
        Between::CommandLines if any(&BY_CMDLINE) => return false,
        Between::Guests if any(&BY_DEFAULT) => return false,
        Between::OneKernel | Between::Kernels | Between::Guests | Between::CommandLines => {}
    }
    match owner(name) {
        Owner::Identity | Owner::Told => false,
        Owner::Kernel => between == Between::OneKernel,
        Owner::Size => {
            match (now.and_then(|v| v.parse::<f64>().ok()), before.and_then(|v| v.parse::<f64>().ok())) {
                (Some(now), Some(before)) => (now - before).abs() > MEMORY_WITHIN * before,
                (Some(_), None) | (None, Some(_)) | (None, None) => between == Between::OneKernel,
            }
        }
        Owner::Machine => {
            let field = bare(name);
            let by_driver = BY_DRIVER.contains(&field) && driver(name, is) != driver(name, was);
            let of_the_kernel =
                !is_elsewhere(name) && !NOT_OF_THE_KERNEL.iter().any(|start| field.starts_with(start));
            // A kernel without a file is another kernel; one that shows another value was told so by somebody.
            let comes_or_goes = (now.is_none() || before.is_none()) && of_the_kernel;
            between == Between::OneKernel || !(by_driver || comes_or_goes)
        }
    }
}

fn driver<'f>(name: &str, fields: &'f Fields) -> Option<&'f String> {
    let driver = name.strip_suffix(bare(name)).map_or_else(String::new, str::to_owned) + "cpufreq_driver";
    fields.get(&driver)
}

/// What boots of two kernels are held against each other for in a session.
pub fn between_kernels(state: &State) -> Between {
    use super::plan::MachineSpec;
    match &state.plan.recipe.machine {
        // What runs is one kernel, whatever the commit.
        MachineSpec::Command { boot: None, .. } => Between::OneKernel,
        MachineSpec::Command { boot: Some(_), .. } | MachineSpec::Ssh(_) => Between::Kernels,
        MachineSpec::Qemu(_) => Between::Guests,
    }
}

/// Why boot `boot` with this fingerprint does not count; `None`: its machine is like it was in the first boot there of each
/// variant, and its kernel like in its own first boots; or it is the first itself.
///
/// A fingerprint is taken before the boot's variant is set, and a machine that outlives the boot is put back after it: so
/// boots of all variants are comparable, but for what a variant of either sets anyway, and for the kernel's command line,
/// which is in effect from the start.
pub fn moved(state: &State, boot: BootNo, is: &Fields) -> Option<String> {
    let this = state.boot(boot)?;
    if is.is_empty() {
        return None;
    }
    let rules = Rules::of(&state.plan.recipe.setup);
    let sets = |boot: &Boot| state.plan.recipe.named(&boot.variant).sets;
    let mine = sets(this);
    references(state, this).into_iter().enumerate().find_map(|(at, other)| {
        let theirs = sets(other);
        let between = if mine.cmdline != theirs.cmdline {
            Between::CommandLines
        } else if this.commit == other.commit {
            Between::OneKernel
        } else {
            between_kernels(state)
        };
        let found = rules.but_for([&mine, &theirs]).differences(is, environment(other)?, between);
        let of = if at > 0 && this.commit == other.commit { " of the same kernel" } else { "" };
        (!found.is_empty()).then(|| words(&found, &format!("in boot {}{of}", other.boot)))
    })
}

/// The boots on a boot's machine that were looked at and are the first there under their variant, of any kernel or of this.
fn references<'s>(state: &'s State, this: &Boot) -> Vec<&'s Boot> {
    let mut seen: BTreeSet<(&str, bool)> = BTreeSet::new();
    let there =
        state.boots.iter().filter(|b| b.boot != this.boot && b.sut == this.sut && environment(b).is_some());
    there
        .filter(|b| {
            let is_first = seen.insert((&b.variant, false));
            (b.commit == this.commit && seen.insert((&b.variant, true))) || is_first
        })
        .collect()
}

fn environment(boot: &Boot) -> Option<&Fields> {
    boot.record.as_ref().map(|record| &record.environment).filter(|fields| !fields.is_empty())
}

/// The fingerprint of a kernel: that of its first boot that was looked at, under a search's variant or a survey's first.
pub fn of_kernel<'s>(state: &'s State, commit: &CommitId) -> Option<&'s Fields> {
    let is_plain = |b: &&Boot| b.variant.is_empty() || b.variant == state.plan.recipe.variant;
    state.boots.iter().filter(|b| b.commit == *commit).filter(is_plain).find_map(environment)
}

/// "environment: governor is powersave, was performance in boot 1; ...", with the way on.
pub fn words(found: &[Difference], when: &str) -> String {
    let spelt: Vec<String> = found.iter().take(SPELT).map(Difference::words).collect();
    let more = found.len().saturating_sub(SPELT);
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    let field = found.first().map_or("", |first| bare(&first.field));
    format!(
        "environment: {} {when}{more}: put it back; or, if it may differ, start a new session with `ignore = [\"{field}\"]` \
         in [environment] of the profile; if it is the kernel's own doing, one that leaves the commit out (--skip)",
        spelt.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::NamedVariant;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn found(is: &[(&str, &str)], was: &[(&str, &str)], between: Between) -> Vec<String> {
        let differences = Rules::default().differences(&fields(is), &fields(was), between);
        differences.iter().map(Difference::words).collect()
    }

    #[test]
    fn what_the_machine_owns_must_stay_whatever_the_kernel() {
        for (field, is, was) in [
            ("governor", "powersave", "performance"),
            ("autogroup", "0", "1"),
            ("sysctl.vm.swappiness", "10", "60"),
            ("tty", "no", "yes"),
            ("cpus_online", "0-62", "0-63"),
            ("smt", "off", "on"),
            ("program.hackbench", "0123456789abcdef", "fedcba9876543210"),
            ("library.libc.so.6", "0123456789abcdef", "fedcba9876543210"),
            ("cmdline", "quiet nosmt", "quiet"),
            // Case 31: kernels that tick at different rates are not comparable, whoever chose it.
            ("hz", "1000", "250"),
        ] {
            let told = vec![format!("{field} is {is}, was {was}")];
            assert_eq!(found(&[(field, is)], &[(field, was)], Between::Kernels), told);
            assert_eq!(found(&[(field, is)], &[(field, was)], Between::OneKernel), told);
        }
    }

    #[test]
    fn what_a_kernel_decides_is_told_between_kernels_and_must_stay_within_one() {
        for (field, is, was) in [
            ("clocksource", "hpet", "tsc"),
            ("mitigation.retbleed", "Vulnerable", "Mitigation: untrained return thunk"),
            ("sched.features", "NO_RUN_TO_PARITY", "RUN_TO_PARITY"),
            ("kernel.config", "01", "02"),
        ] {
            assert!(found(&[(field, is)], &[(field, was)], Between::Kernels).is_empty(), "{field}");
            assert_eq!(found(&[(field, is)], &[(field, was)], Between::OneKernel).len(), 1, "{field}");
            let told = Rules::default().of_the_kernel(
                &fields(&[(field, is)]),
                &fields(&[(field, was)]),
                Between::Kernels,
            );
            assert_eq!(told.len(), 1, "{field}");
        }
        let (is, was) = (fields(&[("kernel.release", "6.15")]), fields(&[("kernel.release", "6.14")]));
        assert!(
            Rules::default().of_the_kernel(&is, &was, Between::Kernels).is_empty(),
            "that it is another kernel is no news"
        );
    }

    #[test]
    fn a_file_that_only_one_kernel_has_is_the_kernels_doing_and_another_value_is_not() {
        let has = [("sysctl.kernel.sched_child_runs_first", "0")];
        assert!(found(&[], &has, Between::Kernels).is_empty());
        assert_eq!(
            found(&[], &has, Between::OneKernel),
            ["sysctl.kernel.sched_child_runs_first is absent, was 0"]
        );
        let told = Rules::default().of_the_kernel(&fields(&[]), &fields(&has), Between::Kernels);
        assert_eq!(told.len(), 1);
        assert_eq!(
            found(&[], &[("program.hackbench", "01")], Between::Kernels),
            ["program.hackbench is absent, was 01"],
            "a program that is gone is nobody's kernel"
        );
    }

    #[test]
    fn governors_of_two_drivers_are_not_compared() {
        let (is, was) = (
            [("cpufreq_driver", "acpi-cpufreq"), ("governor", "schedutil")],
            [("cpufreq_driver", "intel_pstate"), ("governor", "powersave")],
        );
        assert!(found(&is, &was, Between::Kernels).is_empty());
        let told = Rules::default().of_the_kernel(&fields(&is), &fields(&was), Between::Kernels);
        assert_eq!(told.iter().map(|d| d.field.as_str()).collect::<Vec<_>>(), ["cpufreq_driver", "governor"]);
        assert_eq!(found(&is, &was, Between::OneKernel).len(), 2);
    }

    #[test]
    fn memory_may_differ_by_what_a_kernel_takes_for_itself() {
        let memory =
            |is: &str, was: &str| found(&[("memory_kib", is)], &[("memory_kib", was)], Between::Kernels);
        assert!(memory("498000", "500000").is_empty());
        assert_eq!(memory("250000", "500000"), ["memory_kib is 250000, was 500000"]);
    }

    #[test]
    fn on_another_role_the_kernel_must_stay_too() {
        let (is, was) = ([("ldg:kernel.release", "6.1.0-21")], [("ldg:kernel.release", "6.1.0-20")]);
        assert_eq!(
            found(&is, &was, Between::Kernels),
            ["ldg:kernel.release is 6.1.0-21, was 6.1.0-20"],
            "a load generator that was updated is another one"
        );
        assert_eq!(found(&[], &[("ldg:smt", "on")], Between::Kernels), ["ldg:smt is absent, was on"]);
    }

    #[test]
    fn what_is_ignored_is_not_compared_and_what_a_variant_sets_only_with_boots_under_it() {
        let ignore = ["sysctl.*", "ldg:governor"].map(str::to_owned).to_vec();
        let watch = Watch { ignore, also: Vec::new() };
        let sets = Variant {
            governor: Some("performance".to_owned()),
            features: vec!["NO_PLACE_LAG".to_owned()],
            ..Variant::default()
        };
        let also = vec![NamedVariant { name: "v".to_owned(), sets: sets.clone() }];
        let setup = Setup { environment: Some(watch), also, ..Setup::default() };
        let (rules, plain) = (Rules::of(&setup), Variant::default());
        let under = [rules.but_for([&plain, &sets]), rules.but_for([&sets, &plain])];
        for field in ["sysctl.vm.swappiness", "ldg:sysctl.vm.swappiness", "ldg:governor"] {
            assert!(rules.ignores(field), "{field}");
        }
        for field in ["governor", "sched.features"] {
            assert!(
                !rules.but_for([&plain, &plain]).ignores(field),
                "what one variant left reaches another: {field}"
            );
            assert!(under.iter().all(|rules| rules.ignores(field)), "{field}");
        }
        for field in ["smt", "ldg:smt", "thp", "sched.base_slice_ns"] {
            assert!(!under.iter().any(|rules| rules.ignores(field)), "{field}");
        }
    }

    #[test]
    fn what_debugfs_shows_may_come_into_sight_where_a_variant_mounts_it_and_may_not_change() {
        let sets = Variant { base_slice_ns: Some(700_000), ..Variant::default() };
        let also = vec![NamedVariant { name: "v".to_owned(), sets }];
        let mounts = Rules::of(&Setup { also, ..Setup::default() });
        let (none, full, lazy) =
            (fields(&[]), fields(&[("sched.preempt", "full")]), fields(&[("sched.preempt", "lazy")]));
        let found =
            |rules: &Rules, is: &Fields, was: &Fields| rules.differences(is, was, Between::OneKernel).len();
        assert_eq!((found(&mounts, &full, &none), found(&mounts, &none, &full)), (0, 0));
        assert_eq!(found(&mounts, &full, &lazy), 1);
        assert_eq!(found(&Rules::default(), &full, &none), 1);
    }

    #[test]
    fn of_two_command_lines_only_what_no_command_line_decides_must_stay() {
        for (field, is, was) in [
            ("cpus_online", "0-3", "0-7"),
            ("smt", "off", "on"),
            ("mitigation.retbleed", "Vulnerable", "Mitigation: untrained return thunk"),
            ("clocksource", "hpet", "tsc"),
            ("sched.preempt", "full", "voluntary"),
            ("memory_kib", "250000", "500000"),
            ("load.SB_SUT_CPUS", "4", "8"),
        ] {
            assert!(found(&[(field, is)], &[(field, was)], Between::CommandLines).is_empty(), "{field}");
            assert_eq!(found(&[(field, is)], &[(field, was)], Between::OneKernel).len(), 1, "{field}");
        }
        for field in [
            "program.bench",
            "library.libc.so.6",
            "file./etc/limits",
            "tty",
            "hz",
            "cmdline",
            "ldg:smt",
            "ldg:sysctl.x",
        ] {
            assert_eq!(found(&[(field, "1")], &[(field, "2")], Between::CommandLines).len(), 1, "{field}");
        }
    }

    #[test]
    fn a_default_that_differs_between_kernels_is_their_own_where_nobody_else_can_set_it() {
        for field in ["sysctl.kernel.sched_rr_timeslice_ms", "thp", "autogroup"] {
            assert!(found(&[(field, "1")], &[(field, "2")], Between::Guests).is_empty(), "{field}");
            assert_eq!(found(&[(field, "1")], &[(field, "2")], Between::Kernels).len(), 1, "{field}");
            assert_eq!(found(&[(field, "1")], &[(field, "2")], Between::OneKernel).len(), 1, "{field}");
            let (is, was) = (fields(&[(field, "1")]), fields(&[(field, "2")]));
            assert_eq!(Rules::default().of_the_kernel(&is, &was, Between::Guests).len(), 1, "and it is told");
        }
        for field in ["hz", "program.hackbench", "cmdline", "ldg:thp"] {
            assert_eq!(found(&[(field, "1")], &[(field, "2")], Between::Guests).len(), 1, "{field}");
        }
    }

    #[test]
    fn a_message_names_the_field_both_values_and_the_way_on() {
        let differences: Vec<Difference> = (0..5)
            .map(|n| Difference { field: format!("sysctl.{n}"), is: Some("x".repeat(100)), was: None })
            .collect();
        let text = words(&differences, "in boot 1");
        assert!(text.contains("(and 2 more)") && text.contains("was absent in boot 1"), "{text}");
        assert!(text.contains(&format!("sysctl.0 is {}..., was absent", "x".repeat(80))), "{text}");
        assert!(text.contains("`ignore = [\"sysctl.0\"]` in [environment]"), "{text}");
    }
}
