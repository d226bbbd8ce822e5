//! `[variant.NAME]`: sets of tunables.

use super::super::document::Plain;
use super::super::layers::Layers;
use super::super::value::{Read, filled, one_of, quoted, scalar, text};
use super::plain_name;
use crate::session::{MachineSpec, Setup, Variant};
use std::collections::BTreeMap;

/// Slices outside of this are not what anyone means: Linux itself takes 0.1 to 100 ms for a task's own slice.
const SLICE_NS: std::ops::RangeInclusive<u64> = 100_000..=100_000_000;

/// Policies that a workload can be given without a priority or budget of its own.
const POLICIES: [&str; 4] = ["other", "batch", "idle", "ext"];

/// All that the profile describes, by name.
pub(super) fn tables(l: &mut Layers) -> BTreeMap<String, Variant> {
    let mut all = BTreeMap::new();
    for name in l.tables_under("variant") {
        if let Err(message) = plain_name(&name) {
            l.table_problem(&format!("variant.{name}"), format!("the variant's name {name:?} {message}"));
        }
        let read = table(l, &name);
        all.insert(name, read);
    }
    all
}

fn table(l: &mut Layers, name: &str) -> Variant {
    let key = |leaf: &str| format!("variant.{name}.{leaf}");
    let features = l.given_list(&key("features"));
    for feature in &features {
        if !is_feature(feature) {
            let message = format!("`{}` holds {feature:?}, which is no scheduler feature", key("features"));
            l.contradiction(
                &key("features"),
                message,
                "write it as sched/features shows it, e.g. \"NO_PLACE_LAG\"",
            );
        }
    }
    Variant {
        features,
        base_slice_ns: l.optional(&key("base_slice_ns"), slice, u64::to_string),
        sysctl: map(l, &key("sysctl"), sysctl_name),
        files: map(l, &key("files"), kernel_file),
        expect: map(l, &key("expect"), kernel_file),
        governor: l.optional(&key("governor"), filled, quoted),
        policy: l.optional(&key("policy"), |value| one_of(value, &POLICIES).map(str::to_owned), quoted),
        nice: l.optional(&key("nice"), nice, i32::to_string),
        cgroup: map(l, &key("cgroup"), cgroup_attribute),
        processes: l.given_list(&key("processes")),
        cmdline: l.optional(&key("cmdline"), text, quoted).unwrap_or_default(),
    }
}

fn is_feature(feature: &str) -> bool {
    let starts = feature.starts_with(|c: char| c.is_ascii_uppercase());
    starts && feature.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// A table whose keys are knobs, each of which `check` accepts or says what is wrong with it.
fn map(l: &mut Layers, table: &str, check: fn(&str) -> Read<()>) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    for name in l.keys_under(table) {
        let read = |value: &Plain| {
            check(&name)?;
            scalar(value)
        };
        let value = l.optional(&format!("{table}.{name}"), read, quoted);
        map.extend(value.map(|value| (name.clone(), value)));
    }
    map
}

fn sysctl_name(name: &str) -> Read<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if name.chars().all(plain) && !name.contains("..") && !name.starts_with(['.', '/']) {
        Ok(())
    } else {
        Err("must be named as sysctl does, e.g. \"kernel.sched_autogroup_enabled\"".to_owned())
    }
}

fn kernel_file(path: &str) -> Read<()> {
    let inside = ["/sys/", "/proc/", "/dev/"].iter().any(|top| path.starts_with(top));
    // Quoted in shell as it is.
    if inside && !path.contains("..") && !path.contains(|c: char| c.is_control() || "'\"*?[".contains(c)) {
        Ok(())
    } else {
        Err("must be one file under /sys or /proc, by its full path".to_owned())
    }
}

fn cgroup_attribute(name: &str) -> Read<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    if name.contains('.') && name.chars().all(plain) {
        Ok(())
    } else {
        Err("must be an attribute of a cgroup (v2), e.g. \"cpu.weight\"".to_owned())
    }
}

/// A slice: a plain number is in nanoseconds, as the kernel's file is; text has its unit.
fn slice(value: &Plain) -> Read<u64> {
    let given = match value {
        Plain::Integer(Some(number)) => u64::try_from(*number).ok(),
        Plain::Text(text) | Plain::Argument(text) => with_unit(text),
        Plain::Integer(None) | Plain::Float(_) | Plain::Flag(_) | Plain::List(_) | Plain::Other(_) => None,
    };
    let Some(given) = given else {
        return Err("must be a number of nanoseconds, or a text with its unit like \"3ms\"".to_owned());
    };
    if SLICE_NS.contains(&given) {
        return Ok(given);
    }
    let meant = if (1..=100).contains(&given) {
        format!("; write \"{given}ms\" for {given} ms")
    } else {
        String::new()
    };
    Err(format!("is {given} ns, and a slice is from 100000 ns (0.1 ms) to 100000000 ns (100 ms){meant}"))
}

fn with_unit(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

fn nice(value: &Plain) -> Read<i32> {
    match value {
        Plain::Integer(Some(nice @ -20..=19)) => Ok(i32::try_from(*nice).unwrap_or(0)),
        Plain::Integer(_) => Err("must be from -20 to 19".to_owned()),
        Plain::Text(_)
        | Plain::Argument(_)
        | Plain::Float(_)
        | Plain::Flag(_)
        | Plain::List(_)
        | Plain::Other(_) => Err(format!("takes an integer, not {}", value.type_name())),
    }
}

/// What a chosen variant asks of the rest.
pub(super) fn contradictions(
    l: &mut Layers,
    (name, variant): (&str, &Variant),
    setup: &Setup,
    machine: &MachineSpec,
) {
    let key = if l.is_given("variant") { "variant" } else { "variants" };
    let mut say = |message: &str, help: &str| {
        l.contradiction(key, format!("the variant {name:?} {message}"), help);
    };
    if variant.processes.is_empty() && variant.is_about_processes() && !setup.run_on.is_empty() {
        say(
            "has a policy, nice value or cgroup for the run, but the run is not on the SUT",
            "name the services of the SUT that it is for: `processes = [\"mysqld\"]` in its [variant.NAME]",
        );
    }
    if !variant.processes.is_empty() && !variant.is_about_processes() {
        say(
            "names `processes`, but neither policy, nice value nor cgroup for them",
            "set one of them, or remove `processes`",
        );
    }
    if !variant.cmdline.is_empty() && matches!(machine, MachineSpec::Command { boot: None, .. }) {
        say(
            "has a kernel command line, but nothing is booted",
            "give a boot command (it finds the line in SB_CMDLINE), or remove `cmdline`",
        );
    }
}
