//! What is done around a run: `[variant.NAME]`, `[roles]`, `[[steps]]`, `[settle]`, `[canary]`, `[saturation]`,
//! `[environment]`, `[evidence]`.

mod beside;
mod variant;

use super::document::Plain;
use super::layers::Layers;
use super::value::{
    Read, count, duration, filled, flag, fraction, minimum_effect, number, one_of, quoted, show_duration,
    show_text, text,
};
use crate::model::Relative;
use crate::session::{
    Beside, Canary, LDG, MachineSpec, NamedVariant, Phase, SUT, Saturation, Settle, Setup, Steady, Step,
    Variant,
};
use std::collections::{BTreeMap, BTreeSet};

/// Deadlines where a profile gives none, in seconds.
const STEP_S: u64 = 600;
const SETTLE_S: u64 = 600;
const CANARY_S: u64 = 300;

/// Runs that a steady state may cost where a profile does not say: more are a workload that never settles.
const MOST_RUNS: u32 = 8;

/// Asks for all of it; gives the name of the variant too.
pub(super) fn setup(l: &mut Layers, machine: &MachineSpec) -> (String, Setup) {
    let known = variant::tables(l);
    let (name, also) = names(l);
    let chosen = pick(l, machine, &known, &name, "variant");
    let mut seen = BTreeSet::from([name.clone()]);
    if let Some(again) = also.iter().find(|other| !seen.insert((*other).clone())) {
        l.contradiction("variants", format!("the variant {again:?} is named twice"), "name it once");
    }
    let also: Vec<NamedVariant> = also
        .into_iter()
        .map(|other| NamedVariant { sets: pick(l, machine, &known, &other, "variants"), name: other })
        .collect();
    let mut setup = Setup {
        variant: chosen,
        also,
        roles: roles(l),
        env: env(l),
        run_on: l.optional("workload.on", filled, quoted).unwrap_or_default(),
        steps: (0..l.tables("steps")).map(|at| step(l, at)).collect(),
        settle: settle(l),
        canary: canary(l),
        saturation: saturation(l),
        steady: steady(l),
        environment: None,
        evidence: Beside::default(),
    };
    beside::read(l, machine, &mut setup);
    if setup.run_on == SUT {
        setup.run_on.clear();
    }
    (name, setup)
}

/// The variant to search under, and further ones.
fn names(l: &mut Layers) -> (String, Vec<String>) {
    let listed = l.given_list("variants");
    // On the command line the first stands apart from the others; a profile has one list.
    if l.is_given("variant") || listed.is_empty() {
        return (l.or("variant", "default".to_owned(), filled, quoted), listed);
    }
    let (first, rest) = listed.split_first().expect("it is not empty");
    (first.clone(), rest.to_vec())
}

fn pick(
    l: &mut Layers,
    machine: &MachineSpec,
    known: &BTreeMap<String, Variant>,
    name: &str,
    key: &str,
) -> Variant {
    if let Some(variant) = known.get(name) {
        return variant.clone();
    }
    // Commands are told the name (SB_VARIANT) and may know what it means.
    let is_theirs = known.is_empty() && matches!(machine, MachineSpec::Command { .. });
    if name != "default" && !is_theirs && l.is_sound() {
        let mut named: Vec<&str> = known.keys().map(String::as_str).collect();
        if !named.is_empty() && !named.contains(&"default") {
            named.insert(0, "default");
        }
        let help = if named.is_empty() {
            format!("describe it under [variant.{name}]")
        } else {
            format!("describe it under [variant.{name}], or choose one of {}", named.join(", "))
        };
        let key = if l.is_given(key) { key } else { "variants" };
        l.contradiction(key, format!("there is no variant {name:?} in the profile"), &help);
    }
    Variant::default()
}

fn roles(l: &mut Layers) -> BTreeMap<String, String> {
    let mut roles = BTreeMap::new();
    for name in l.keys_under("roles") {
        let reached = l.optional(&format!("roles.{name}"), filled, quoted);
        roles.extend(reached.map(|reached| (name, reached)));
    }
    roles
}

fn env(l: &mut Layers) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for name in l.keys_under("env") {
        let read = |value: &Plain| {
            env_name(&name)?;
            match value {
                Plain::Integer(Some(number)) => Ok(number.to_string()),
                Plain::Float(number) => Ok(number.to_string()),
                Plain::Text(_)
                | Plain::Argument(_)
                | Plain::Integer(None)
                | Plain::Flag(_)
                | Plain::List(_)
                | Plain::Other(_) => text(value),
            }
        };
        let value = l.optional(&format!("env.{name}"), read, quoted);
        env.extend(value.map(|value| (name.clone(), value)));
    }
    env
}

/// SB_ is for what the program itself tells.
fn env_name(name: &str) -> Read<()> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain && !name.starts_with("SB_") && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        Ok(())
    } else {
        Err("must be named by letters, digits and _, and not begin with SB_".to_owned())
    }
}

fn step(l: &mut Layers, at: usize) -> Step {
    let key = |leaf: &str| format!("steps[{at}].{leaf}");
    let phase = |value: &Plain| {
        let words = Phase::ALL.map(Phase::word);
        let word = one_of(value, &words)?;
        Ok(Phase::ALL.into_iter().find(|phase| phase.word() == word).unwrap_or(Phase::Boot))
    };
    let name = l.required(&key("name"), None, filled);
    let when = l.optional(&key("when"), phase, |phase| format!("{:?}", phase.word()));
    if when.is_none() && !l.is_given(&key("when")) {
        l.need(&key("when"), None);
    }
    Step {
        name,
        on: l.optional(&key("on"), filled, quoted).unwrap_or_else(|| SUT.to_owned()),
        when: when.unwrap_or(Phase::Boot),
        command: l.required(&key("command"), None, filled),
        deadline_s: l.optional(&key("deadline"), duration, show_duration).unwrap_or(STEP_S),
        every_s: l.optional(&key("every"), duration, show_duration),
    }
}

fn settle(l: &mut Layers) -> Option<Settle> {
    let running = l.optional("settle.running", |v| count(v, &(0..=100_000)), u32::to_string);
    let load = l.optional("settle.load", |value| number(value, 0.0, 10_000.0), f64::to_string);
    let temperature = l.optional("settle.temperature", |value| number(value, 1.0, 150.0), f64::to_string);
    let system = l.optional("settle.system", flag, bool::to_string).unwrap_or(false);
    let deadline_s = l.optional("settle.deadline", duration, show_duration);
    if running.is_none() && load.is_none() && temperature.is_none() && !system {
        if deadline_s.is_some() {
            let message = "`settle.deadline` is set, but nothing to wait for".to_owned();
            l.contradiction(
                "settle.deadline",
                message,
                "set `running`, `load`, `temperature` or `system` in [settle]",
            );
        }
        return None;
    }
    Some(Settle { running, load, temperature, system, deadline_s: deadline_s.unwrap_or(SETTLE_S) })
}

fn canary(l: &mut Layers) -> Option<Canary> {
    let command = l.optional("canary.command", filled, |text| show_text(text));
    let on = l.optional("canary.on", filled, quoted).unwrap_or_else(|| SUT.to_owned());
    let within = l.optional("canary.within", minimum_effect, |within| within.0.to_string());
    let deadline_s = l.optional("canary.deadline", duration, show_duration).unwrap_or(CANARY_S);
    if command.is_none() && within.is_some() {
        l.need("canary.command", None);
    }
    let within = within.unwrap_or(Relative(0.03));
    command.map(|command| Canary { command, on, within, deadline_s })
}

fn saturation(l: &mut Layers) -> Option<Saturation> {
    let part = |value: &Plain| {
        let part = fraction(value)?;
        if part > 0.0 && part < 1.0 {
            Ok(Relative(part))
        } else {
            Err("must be between 0 and 1 (100 %), both excluded".to_owned())
        }
    };
    let idle = l.optional("saturation.idle", part, |part| part.0.to_string());
    let ldg_cpus = l.optional("saturation.ldg_cpus", |value| number(value, 0.01, 1000.0), f64::to_string);
    let ramp_up_s = l.optional("saturation.ramp_up", duration, show_duration);
    if ramp_up_s.is_some() && idle.is_none() {
        let message = "`saturation.ramp_up` is set, but not how much may be idle".to_owned();
        l.contradiction("saturation.ramp_up", message, "set `idle = \"10%\"` in [saturation]");
    }
    (idle.is_some() || ldg_cpus.is_some()).then_some(Saturation { idle, ldg_cpus, ramp_up_s })
}

fn steady(l: &mut Layers) -> Option<Steady> {
    let within = l.optional("judging.steady", minimum_effect, |within| within.0.to_string());
    let most = l.optional("judging.steady_runs", |v| count(v, &(1..=1000)), u32::to_string);
    if within.is_none() && most.is_some() {
        let message = "`judging.steady_runs` is set, but not what is steady".to_owned();
        l.contradiction("judging.steady_runs", message, "set `steady = \"2%\"` in [judging]");
    }
    within.map(|within| Steady { within, most: most.unwrap_or(MOST_RUNS) })
}

/// Values that are each right and do not fit together.
pub(super) fn contradictions(l: &mut Layers, name: &str, setup: &Setup, machine: &MachineSpec) {
    let exists = |role: &str| role == SUT || setup.roles.contains_key(role);
    let mut used = vec![("workload.on".to_owned(), setup.run_on.clone())];
    used.extend(setup.steps.iter().enumerate().map(|(at, s)| (format!("steps[{at}].on"), s.on.clone())));
    used.extend(setup.canary.iter().map(|canary| ("canary.on".to_owned(), canary.on.clone())));
    for (key, role) in used.iter().filter(|(_, role)| !role.is_empty() && !exists(role)) {
        match plain_name(role) {
            // How it is reached is the lab's, so the command line may say it.
            Ok(()) => l.need(&format!("roles.{role}"), Some("--role")),
            Err(message) => {
                l.contradiction(key, format!("`{key}` {message}"), "name a role, e.g. \"ldg\"");
            }
        }
    }
    let mut names = BTreeSet::new();
    for (at, step) in setup.steps.iter().enumerate() {
        if !names.insert(&step.name) {
            let key = format!("steps[{at}].name");
            let message = format!("two steps have the name {:?}", step.name);
            l.contradiction(
                &key,
                message,
                "give each a name of its own: logs and messages tell them apart by it",
            );
        }
    }
    let has_ldg =
        used.iter().map(|(_, role)| role).chain(setup.roles.keys()).any(|role| role.starts_with(LDG));
    if setup.saturation.is_some_and(|s| s.ldg_cpus.is_some()) && !has_ldg {
        let message = "`saturation.ldg_cpus` is set, but there is no load generator".to_owned();
        l.contradiction("saturation.ldg_cpus", message, "name it in [roles]: ldg, or ldg1, ldg2 and so on");
    }
    if matches!(machine, MachineSpec::Qemu(_))
        && let Some(role) = setup.roles.keys().next()
    {
        let message = "a qemu guest has no way to another machine".to_owned();
        l.contradiction(
            &format!("roles.{role}"),
            message,
            "remove [roles], or use machine.kind = \"command\"",
        );
    }
    let also = setup.also.iter().map(|also| (also.name.as_str(), &also.sets));
    for (name, variant) in std::iter::once((name, &setup.variant)).chain(also) {
        variant::contradictions(l, (name, variant), setup, machine);
    }
}

/// A role's or variant's name.
fn plain_name(name: &str) -> Read<()> {
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-+".contains(c)) {
        Ok(())
    } else {
        Err("holds more than letters, digits and _ - +".to_owned())
    }
}
