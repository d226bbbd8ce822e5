//! The keys of a profile, what each may be, and how they become a recipe.

use super::Resolver;
use super::arch;
use super::document::Plain;
use super::layers::{Kinds, Layers};
use super::reading::{self, direction_word, reading};
use super::setup;
use super::value::{
    Read, confidence, count, duration, filled, flag, minimum_effect, one_of, quoted, show_duration,
    show_text, text, word,
};
use crate::model::{CommitId, Direction, Find, Metric, Relative};
use crate::session::{
    Attempts, BuilderSpec, Costs, Deadlines, Fixup, Judging, Kbuild, MachineSpec, Qemu, Reading, Recipe,
};
use crate::workload::{Parser, declared_of};
use std::ops::RangeInclusive;
use std::path::{Component, Path};

/// More is a typing error, not a measurement.
const MANY: u32 = 10_000;

/// Fewer boots than this are never a verdict: what differs between boots would be unknown.
const MIN_BOOTS: u32 = 2;

/// Machines used at once where nothing else is said: a guest that counts instructions keeps one CPU of the host busy.
const GUESTS: usize = 2;

const BUILD_KEYS: &[(&str, &[&str])] = &[
    ("command", &["command"]),
    (
        "kbuild",
        &[
            "base",
            "config",
            "required",
            "targets",
            "image",
            "make_args",
            "arch",
            "cross_compile",
            "modules",
            "jobs",
            "fixups",
            "host",
        ],
    ),
];

const MACHINE_KEYS: &[(&str, &[&str])] = &[
    ("command", &["boot", "run"]),
    ("ssh", super::ssh::KEYS),
    ("qemu", &["program", "accel", "cpus", "memory_mib", "cmdline", "programs", "prepare", "run", "parser"]),
];

/// What a profile comes to.
pub(super) struct Assembled {
    pub recipe: Recipe,
    pub description: String,
    pub why: String,
    pub good: Option<String>,
    pub bad: Option<String>,
    pub paths: Vec<String>,
}

/// Asks the layers for every key. Where a value is wrong or missing, some stand-in is put and the problem noted in
/// `l`; the result is of use only when `l` has none.
pub(super) fn assemble(l: &mut Layers, resolve: Option<Resolver>) -> Assembled {
    let name = l.or("name", l.source.default_name.clone(), profile_name, quoted);
    let description = l.optional("description", text, quoted).unwrap_or_default();
    let why = l.optional("why", text, |why| show_text(why)).unwrap_or_default();
    let good = l.optional("good", filled, quoted);
    let bad = l.optional("bad", filled, quoted);
    let paths = l.list("paths", &[]);
    let machine = machine(l);
    let reading = reading(l);
    let (variant, setup) = setup::setup(l, &machine);
    let recipe = Recipe {
        profile: name,
        metric: metric(l, &reading, &machine),
        find: l.or("find", Find::Regression, word, |find| quoted(&find.to_string())),
        expected_effect: expected(l),
        minimum_effect: l.or("minimum_effect", Relative(0.02), minimum_effect, |effect| effect.0.to_string()),
        confidence: l.or("confidence", 0.99, confidence, f64::to_string),
        budget_s: budget(l),
        variant,
        suts: number(l, "suts", default_suts(&machine), 1..=MANY),
        judging: judging(l),
        costs: costs(l),
        attempts: Attempts {
            boot: number(l, "attempts.boot", 3, 1..=MANY),
            run: number(l, "attempts.run", 3, 1..=MANY),
            infra: number(l, "attempts.infra", 5, 1..=MANY),
        },
        deadlines: Deadlines {
            build_s: l.or("deadlines.build", 3600, duration, show_duration),
            boot_s: l.or("deadlines.boot", 600, duration, show_duration),
            run_s: l.or("deadlines.run", 1800, duration, show_duration),
        },
        builder: builder(l, &machine, resolve),
        machine,
        reading,
        setup,
    };
    if l.is_sound() {
        contradictions(l, &recipe);
    }
    Assembled { recipe, description, why, good, bad, paths }
}

fn number(l: &mut Layers, key: &str, default: u32, range: RangeInclusive<u32>) -> u32 {
    l.or(key, default, |value| count(value, &range), u32::to_string)
}

fn profile_name(value: &Plain) -> Read<String> {
    let name = filled(value)?;
    if name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
        Ok(name)
    } else {
        Err("holds more than letters, digits and . _ -".to_owned())
    }
}

fn budget(l: &mut Layers) -> Option<u64> {
    l.unset("budget", "no limit");
    l.optional("budget", duration, show_duration)
}

fn metric(l: &mut Layers, reading: &Reading, machine: &MachineSpec) -> Metric {
    let name = l.required("metric.name", Some("--metric"), filled);
    let (its_unit, its_direction) = declared_of(reading, machine, &name);
    let unit = l.or("metric.unit", its_unit, text, quoted);
    let read = |value: &Plain| {
        let direction: Direction = word(value)?;
        Ok(direction_word(direction).to_owned())
    };
    let direction = match its_direction {
        Some(direction) => l.or("metric.direction", direction_word(direction).to_owned(), read, quoted),
        None => l.required("metric.direction", Some("--direction"), read),
    };
    // A stand-in where it is missing or wrong; the problem is noted.
    Metric { name, unit, direction: direction.parse().unwrap_or(Direction::Lower) }
}

fn judging(l: &mut Layers) -> Judging {
    Judging {
        boots: number(l, "judging.boots", 3, MIN_BOOTS..=MANY),
        max_boots: number(l, "judging.max_boots", 0, 0..=MANY),
        warmup_runs: number(l, "judging.warmup_runs", 0, 0..=MANY),
    }
}

fn expected(l: &mut Layers) -> Option<Relative> {
    l.unset("expected_effect", "any, from the smallest worth finding on");
    l.optional("expected_effect", minimum_effect, |effect| effect.0.to_string())
}

/// What is guessed until the session has seen some: it decides what is worth measuring first, and `start --plan`.
fn costs(l: &mut Layers) -> Costs {
    let guess = Costs::default();
    let mut seconds = |key: &str, default: f64| l.or(key, default as u64, duration, show_duration) as f64;
    let (build_s, boot_s, run_s) = (
        seconds("costs.build", guess.build_s),
        seconds("costs.boot", guess.boot_s),
        seconds("costs.run", guess.run_s),
    );
    let mut spread = |key: &str, default: f64| {
        l.or(key, Relative(default), minimum_effect, |effect| effect.0.to_string()).0
    };
    let run_noise = spread("costs.run_noise", guess.run_noise);
    let boot_noise = spread("costs.boot_noise", guess.boot_noise);
    Costs { build_s, boot_s, run_s, run_noise, boot_noise }
}

fn default_suts(machine: &MachineSpec) -> u32 {
    match machine {
        MachineSpec::Command { .. } | MachineSpec::Ssh(_) => 1,
        MachineSpec::Qemu(_) => {
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            u32::try_from(cpus.min(GUESTS)).unwrap_or(1)
        }
    }
}

/// The kind of a table, the first of `kinds` where none is given; `None` when what is given is none of them: then
/// nothing can be said about the table's other keys.
fn kind(
    l: &mut Layers,
    table: &'static str,
    kinds: &[&'static str],
    keys: &'static [(&'static str, &'static [&'static str])],
) -> Option<&'static str> {
    let key = format!("{table}.kind");
    let given = l.is_given(&key);
    let read = |value: &Plain| one_of(value, kinds);
    let show = |kind: &&str| format!("{kind:?}");
    let kind = if given { l.optional(&key, read, show) } else { Some(l.or(&key, kinds[0], read, show)) };
    match kind {
        Some(kind) => l.kinds(Kinds { table, kind, keys }),
        None => l.ignore(table),
    }
    kind
}

fn builder(l: &mut Layers, machine: &MachineSpec, resolve: Option<Resolver>) -> BuilderSpec {
    match kind(l, "build", &["none", "command", "kbuild"], BUILD_KEYS) {
        Some("command") => {
            BuilderSpec::Command { command: l.required("build.command", Some("--build"), filled) }
        }
        Some("kbuild") => BuilderSpec::Kbuild(Box::new(kbuild(l, machine, resolve))),
        Some(_) | None => BuilderSpec::None,
    }
}

fn kbuild(l: &mut Layers, machine: &MachineSpec, resolve: Option<Resolver>) -> Kbuild {
    let base = l.or("build.base", "defconfig".to_owned(), text, quoted);
    let config = content(l, "build.config").unwrap_or_default();
    let required = l.list("build.required", &[]);
    let make_args = l.list("build.make_args", &[]);
    let (arch, cross_compile) = architecture(l, &make_args);
    // Of one that is not known, targets and image must be given (see `kbuild_contradictions`).
    let known = arch::find(arch::effective(&arch, &make_args));
    let targets = l.list("build.targets", known.map(|arch| arch.target).as_slice());
    let its_image = known.map_or("vmlinux", |arch| arch.image);
    let image = l.or("build.image", its_image.to_owned(), relative_path, quoted);
    let modules = l.or("build.modules", false, flag, bool::to_string);
    let jobs = number(l, "build.jobs", 0, 0..=MANY);
    let fixups = (0..l.tables("build.fixups")).map(|at| fixup(l, at, resolve)).collect();
    let host = super::ssh::build_host(l, machine);
    Kbuild {
        base,
        config,
        required,
        targets,
        image,
        make_args,
        arch,
        cross_compile,
        modules,
        jobs,
        fixups,
        host,
    }
}

fn architecture(l: &mut Layers, make_args: &[String]) -> (String, String) {
    let of_make = |name: &str| make_args.iter().any(|arg| arg.starts_with(name));
    l.unset("build.arch", if of_make("ARCH=") { "as make_args say" } else { "of this host" });
    let arch = l.optional("build.arch", arch::name, quoted).unwrap_or_default();
    l.unset("build.cross_compile", if of_make("CROSS_COMPILE=") { "as make_args say" } else { "none" });
    let cross_compile = l.optional("build.cross_compile", arch::cross_compile, quoted).unwrap_or_default();
    (arch, cross_compile)
}

fn fixup(l: &mut Layers, at: usize, resolve: Option<Resolver>) -> Fixup {
    let table = format!("build.fixups[{at}]");
    let name = l.required(&format!("{table}.name"), None, filled);
    let key = format!("{table}.patch");
    let patch = content(l, &key);
    if patch.is_none() && !l.is_given(&key) && !l.is_given(&format!("{key}.inline")) {
        l.need(&key, None);
    }
    let mut revision = |end: &str| {
        let key = format!("{table}.{end}");
        let read = |value: &Plain| {
            let rev = filled(value)?;
            let id = resolve.map(|resolve| resolve(&rev)).transpose();
            let id = id.map_err(|reason| format!("names no commit: {reason}"))?;
            Ok((rev, id))
        };
        l.optional(&key, read, |(rev, _)| quoted(rev)).and_then(|(_, id): (_, Option<CommitId>)| id)
    };
    let (from, until) = (revision("from"), revision("until"));
    Fixup { name, patch: patch.unwrap_or_default(), from, until }
}

/// Text that stands in a file named relative to the profile (`key = "FILE"`) or in it (`key.inline = "TEXT"`).
fn content(l: &mut Layers, key: &str) -> Option<String> {
    let source = l.source;
    let named = |value: &Plain| {
        let name = filled(value)?;
        let content = source.attached(&name)?;
        Ok((name, content))
    };
    let shown = |(name, content): &(String, String)| format!("{name:?} {}", show_text(content));
    let from_file = l.optional(key, named, shown).map(|(_, content)| content);
    let inline = l.optional(&format!("{key}.inline"), text, |text| show_text(text));
    from_file.or(inline)
}

fn relative_path(value: &Plain) -> Read<String> {
    let path = filled(value)?;
    let inside = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
    if Path::new(&path).components().all(inside) {
        Ok(path)
    } else {
        Err("must be a path inside the build directory".to_owned())
    }
}

fn machine(l: &mut Layers) -> MachineSpec {
    match kind(l, "machine", &["command", "qemu", "ssh"], MACHINE_KEYS) {
        Some("qemu") => MachineSpec::Qemu(qemu(l)),
        Some("ssh") => MachineSpec::Ssh(super::ssh::ssh(l)),
        Some(_) => {
            l.unset("machine.boot", "none: each run counts as a boot");
            MachineSpec::Command {
                boot: l.optional("machine.boot", filled, |boot| show_text(boot)),
                run: l.required("machine.run", Some("--run"), filled),
            }
        }
        None => MachineSpec::Command { boot: None, run: String::new() },
    }
}

fn qemu(l: &mut Layers) -> Qemu {
    let word = |value: &Plain, words: &[&'static str]| one_of(value, words).map(str::to_owned);
    let accels = ["icount", "tcg", "kvm", "auto"];
    let parsers = Parser::ALL.map(Parser::name);
    Qemu {
        program: l.or("machine.program", "qemu-system-x86_64".to_owned(), filled, quoted),
        accel: l.or("machine.accel", "icount".to_owned(), |value| word(value, &accels), quoted),
        cpus: number(l, "machine.cpus", 2, 1..=1024),
        memory_mib: number(l, "machine.memory_mib", 512, 32..=1 << 24),
        cmdline: l.or("machine.cmdline", String::new(), text, quoted),
        programs: l.list("machine.programs", &[]),
        prepare: l.or("machine.prepare", String::new(), text, |text| show_text(text)),
        run: l.required("machine.run", None, filled),
        parser: l.or("machine.parser", "number".to_owned(), |value| word(value, &parsers), quoted),
    }
}

/// Values that are each right and do not fit together.
fn contradictions(l: &mut Layers, recipe: &Recipe) {
    let judging = &recipe.judging;
    if judging.max_boots != 0 && judging.max_boots < judging.boots {
        let message = format!("`judging.max_boots` is less than judging.boots ({})", judging.boots);
        l.contradiction("judging.max_boots", message, "raise it, or lower judging.boots");
    }
    if let BuilderSpec::Kbuild(kbuild) = &recipe.builder {
        kbuild_contradictions(l, kbuild);
    }
    match &recipe.machine {
        MachineSpec::Command { .. } => command_contradictions(l, recipe),
        MachineSpec::Qemu(_) => qemu_contradictions(l, recipe),
        MachineSpec::Ssh(_) => super::ssh::contradictions(l, recipe),
    }
    ramp_up_contradictions(l, recipe);
    setup::contradictions(l, &recipe.variant, &recipe.setup, &recipe.machine);
    reading::contradictions(l, &recipe.metric, &recipe.reading, &recipe.machine);
}

fn kbuild_contradictions(l: &mut Layers, kbuild: &Kbuild) {
    if kbuild.base.trim().is_empty() && kbuild.config.trim().is_empty() {
        let message = "`build.base` is empty, and there is no `build.config`".to_owned();
        l.contradiction(
            "build.base",
            message,
            "name a make target such as \"defconfig\", or give the configuration",
        );
    }
    if kbuild.targets.is_empty() {
        let message = "`build.targets` is empty: nothing would be built".to_owned();
        l.contradiction("build.targets", message, "name the make targets, e.g. [\"bzImage\"]");
    }
    arch_contradictions(l, kbuild);
    for (at, fixup) in kbuild.fixups.iter().enumerate() {
        let keys = ["patch", "patch.inline"].map(|key| format!("build.fixups[{at}].{key}"));
        // One that is missing is reported as that.
        let given = keys.iter().find(|key| l.is_given(key));
        let is_patch = fixup.patch.lines().any(|line| line.starts_with("+++ "));
        if let (Some(key), false) = (given, is_patch) {
            let message = format!("`{key}` is not a unified diff");
            l.contradiction(key, message, "make it with git diff or git format-patch");
        }
    }
    for symbol in &kbuild.required {
        let is_symbol = symbol.split_once('=').is_some_and(|(name, value)| {
            let plain = name.strip_prefix("CONFIG_").is_some_and(|name| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            });
            plain && !value.is_empty()
        });
        if !is_symbol {
            let message = format!("`build.required` holds {symbol:?}, which is no symbol with its value");
            l.contradiction("build.required", message, "write it as in a .config, e.g. \"CONFIG_HZ=250\"");
        }
    }
}

fn arch_contradictions(l: &mut Layers, kbuild: &Kbuild) {
    for (key, name) in [("build.arch", "ARCH="), ("build.cross_compile", "CROSS_COMPILE=")] {
        if let Some(argument) = kbuild.make_args.iter().find(|arg| arg.starts_with(name))
            && l.is_given(key)
        {
            let message = format!("`{key}` and {argument:?} in `build.make_args` are both given");
            l.contradiction(key, message, "remove one of them");
        }
    }
    let arch = arch::effective(&kbuild.arch, &kbuild.make_args);
    if arch::find(arch).is_none() && !(l.is_given("build.image") && l.is_given("build.targets")) {
        let message = format!("of the architecture {arch:?} it is not known what its image is called");
        l.contradiction("build.arch", message, "set `targets` and `image` in [build]");
    }
    let lacks = |arch| arch::lacks_cross_compile(arch, &kbuild.cross_compile, &kbuild.make_args);
    // What another machine's own compiler builds for is known there.
    if let Some(prefix) = arch::find(arch).and_then(lacks)
        && kbuild.host.is_none()
    {
        let message = format!("kernels for {arch:?} are not built by this host's own compiler");
        let help = format!("set `cross_compile = {prefix:?}` in [build], or LLVM=1 in `make_args`");
        l.contradiction("build.arch", message, &help);
    }
}

/// A run that is over before its load is up has no time of which the idle part could be told.
fn ramp_up_contradictions(l: &mut Layers, recipe: &Recipe) {
    let ramp_up = recipe.setup.saturation.and_then(|saturation| saturation.ramp_up_s);
    let run = recipe.deadlines.run_s;
    if ramp_up.is_some_and(|ramp_up| ramp_up >= run) {
        let message =
            format!("`saturation.ramp_up` is not shorter than deadlines.run ({})", show_duration(&run));
        l.contradiction(
            "saturation.ramp_up",
            message,
            "give the time at the start of a run in which the load comes up, e.g. \"2m\"",
        );
    }
}

fn command_contradictions(l: &mut Layers, recipe: &Recipe) {
    if recipe.suts != 1 {
        let message = "`suts` must be 1 with commands: they are not told which machine to use".to_owned();
        l.contradiction("suts", message, "remove it");
    }
}

fn qemu_contradictions(l: &mut Layers, recipe: &Recipe) {
    match &recipe.builder {
        BuilderSpec::Kbuild(_) => {}
        BuilderSpec::None | BuilderSpec::Command { .. } => {
            let key = if l.is_given("build.kind") { "build.kind" } else { "machine.kind" };
            let message = "a qemu machine boots only what build.kind = \"kbuild\" builds".to_owned();
            l.contradiction(
                key,
                message,
                "set `kind = \"kbuild\"` in [build], or give a run command (--run)",
            );
        }
    }
}
