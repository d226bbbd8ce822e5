//! Layers, origins, and every message that a bad profile gets.

use super::*;
use crate::session::{BuilderSpec, MachineSpec};
use std::path::Path;

const WHOLE: &str = r#"
[metric]
name = "nopm"
unit = "NOPM"
direction = "higher"

[machine]
run = "./run.sh"
"#;

fn resolve(rev: &str) -> Result<CommitId, String> {
    match rev {
        "v6.15" => CommitId::parse(&"a".repeat(40)),
        "v6.16" => CommitId::parse(&"b".repeat(40)),
        _ => Err(format!("no revision {rev:?}")),
    }
}

fn over(set: impl FnOnce(&mut Overrides)) -> Overrides {
    let mut overrides = Overrides::default();
    set(&mut overrides);
    overrides
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Loads this text as a file `mine.toml`; messages show the directory as DIR.
fn load_text(text: &str, overrides: &Overrides) -> Result<Loaded, String> {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, text).expect("writes");
    std::fs::write(dir.path().join("small.config"), "CONFIG_SMP=y\nCONFIG_HZ=250\n").expect("writes");
    let path = path.to_str().expect("UTF-8");
    load(path, overrides, &resolve).map_err(|e| without_dir(&e.to_string(), dir.path()))
}

fn without_dir(text: &str, dir: &Path) -> String {
    text.replace(dir.to_str().expect("UTF-8"), "DIR")
}

/// The messages about each of these profiles, one after the other.
fn messages(profiles: &[&str]) -> String {
    let message = |text: &&str| match load_text(text, &Overrides::default()) {
        Ok(loaded) => format!("LOADED {loaded:?}"),
        Err(message) => message,
    };
    profiles.iter().map(message).collect::<Vec<_>>().join("\n\n")
}

macro_rules! golden {
    ($name:literal, $text:expr) => {
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/profile"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, $text);
        });
    };
}

mod build;
mod ssh;

fn origin(loaded: &Loaded, key: &str) -> String {
    let setting = loaded.settings.iter().find(|setting| setting.key == key);
    setting.map(|setting| setting.origin.to_string()).unwrap_or_default()
}

#[test]
fn every_embedded_profile_loads_and_survives_json() {
    let run = over(|o| {
        o.metric = some("time");
        o.direction = some("lower");
        o.run = some("./run.sh");
    });
    let ldg = over(|o| o.roles = vec!["ldg=sh".to_owned()]);
    for profile in list() {
        assert!(!profile.description.is_empty());
        let overrides = match profile.name.as_str() {
            "command" => run.clone(),
            "qemu-hackbench" => Overrides::default(),
            _ => ldg.clone(),
        };
        let loaded = load(&profile.name, &overrides, &resolve).expect("an embedded profile is valid");
        assert_eq!(loaded.recipe.profile, profile.name);
        assert!(!loaded.why.is_empty());
        let json = serde_json::to_string(&loaded.recipe).expect("a recipe is JSON");
        assert_eq!(serde_json::from_str::<Recipe>(&json).expect("reads back"), loaded.recipe);
    }
}

#[test]
fn qemu_hackbench_measures_time_in_a_guest_of_one_cpu() {
    let loaded = load("qemu-hackbench", &Overrides::default(), &resolve).expect("loads");
    let MachineSpec::Qemu(qemu) = &loaded.recipe.machine else { panic!("no qemu machine") };
    assert_eq!((qemu.cpus, qemu.memory_mib, qemu.accel.as_str()), (1, 512, "icount"));
    assert_eq!(qemu.run, "hackbench -g 1 -l 400");
    let BuilderSpec::Kbuild(kbuild) = &loaded.recipe.builder else { panic!("no kernel build") };
    assert!(kbuild.config.contains("CONFIG_HZ=250"));
    assert_eq!(kbuild.required, ["CONFIG_HZ=250"]);
    assert!((1..=2).contains(&loaded.recipe.suts));
}

#[test]
fn each_value_is_that_of_the_highest_layer_and_knows_which() {
    let text = format!("confidence = 0.9\nvariant = \"batch\"\n{WHOLE}[judging]\nboots = 4\n");
    let overrides = over(|o| {
        o.variant = some("NO_PLACE_LAG");
        o.paths = vec!["kernel/sched".to_owned()];
        o.budget = some("1h30m");
    });
    let loaded = load_text(&text, &overrides).expect("loads");
    assert_eq!(loaded.recipe.profile, "mine");
    assert_eq!((loaded.recipe.confidence, loaded.recipe.variant.as_str()), (0.9, "NO_PLACE_LAG"));
    assert_eq!((loaded.recipe.judging.boots, loaded.recipe.judging.max_boots), (4, 0));
    assert_eq!(loaded.recipe.budget_s, Some(5400));
    assert_eq!(loaded.paths, ["kernel/sched"]);
    assert!(origin(&loaded, "confidence").ends_with("mine.toml:1"));
    assert_eq!(origin(&loaded, "variant"), "command line");
    assert_eq!(origin(&loaded, "paths"), "command line");
    assert_eq!(origin(&loaded, "find"), "default");
    assert!(origin(&loaded, "judging.boots").ends_with("mine.toml:12"));
    let embedded = load("qemu-hackbench", &Overrides::default(), &resolve).expect("loads");
    assert_eq!(origin(&embedded, "metric.name"), "profile qemu-hackbench");
}

#[test]
fn explain_shows_every_value_with_its_origin() {
    let overrides = over(|o| {
        o.metric = some("nopm");
        o.direction = some("higher");
        o.build = some("make -j8");
        o.run = some("./run.sh");
        o.good = some("v6.15");
    });
    let loaded = load("command", &overrides, &resolve).expect("loads");
    golden!("explain_command", loaded.explain().join("\n"));
    let mut loaded = load("qemu-hackbench", &Overrides::default(), &resolve).expect("loads");
    // Depends on the host.
    loaded.settings.retain(|setting| setting.key != "suts");
    golden!("explain_qemu_hackbench", loaded.explain().join("\n"));
}

#[test]
fn a_command_given_by_flag_replaces_what_the_profile_has_of_another_kind() {
    let run = over(|o| o.run = some("./run.sh"));
    let loaded = load("qemu-hackbench", &run, &resolve).expect("loads");
    let MachineSpec::Command { boot: None, run } = &loaded.recipe.machine else { panic!("another machine") };
    assert_eq!((run.as_str(), loaded.recipe.suts), ("./run.sh", 1));
    assert!(matches!(loaded.recipe.builder, BuilderSpec::Kbuild(_)), "what is built stays");
    let all = over(|o| {
        o.build = some("make");
        o.boot = some("./boot.sh");
        o.run = some("./run.sh");
    });
    let loaded = load("qemu-hackbench", &all, &resolve).expect("loads");
    assert_eq!(loaded.recipe.builder, BuilderSpec::Command { command: "make".to_owned() });
    assert_eq!(origin(&loaded, "machine.kind"), "command line");
    let text = format!("{WHOLE}boot = \"./boot.sh\"\n");
    let loaded = load_text(&text, &over(|o| o.run = some("./other.sh"))).expect("loads");
    let MachineSpec::Command { boot, run } = loaded.recipe.machine else { panic!("another machine") };
    assert_eq!((boot, run), (some("./boot.sh"), "./other.sh".to_owned()), "the same kind is kept");
}

#[test]
fn another_metric_by_flag_does_not_inherit_unit_and_direction() {
    let same = over(|o| o.metric = some("nopm"));
    assert_eq!(load_text(WHOLE, &same).expect("loads").recipe.metric.unit, "NOPM");
    let other = over(|o| o.metric = some("p99"));
    let message = load_text(WHOLE, &other).expect_err("no direction");
    assert!(message.contains("`metric.direction` is not set"), "{message}");
    let other = over(|o| {
        o.metric = some("p99");
        o.direction = some("lower");
    });
    assert_eq!(load_text(WHOLE, &other).expect("loads").recipe.metric.unit, "");
}

#[test]
fn fixups_hold_the_patch_itself_and_resolved_commits() {
    let text = format!(
        "{WHOLE}[build]\nkind = \"kbuild\"\nconfig = \"small.config\"\n[[build.fixups]]\nname = \"gcc14\"\n\
         patch = {{ inline = '''\n--- a/x\n+++ b/x\n''' }}\nfrom = \"v6.15\"\nuntil = \"v6.16\"\n"
    );
    let loaded = load_text(&text, &Overrides::default()).expect("loads");
    let BuilderSpec::Kbuild(kbuild) = loaded.recipe.builder else { panic!("no kernel build") };
    assert_eq!(kbuild.config, "CONFIG_SMP=y\nCONFIG_HZ=250\n");
    let fixup = &kbuild.fixups[0];
    assert_eq!((fixup.name.as_str(), fixup.patch.as_str()), ("gcc14", "--- a/x\n+++ b/x\n"));
    assert_eq!((fixup.from.clone(), fixup.until.clone()), (resolve("v6.15").ok(), resolve("v6.16").ok()));
}

#[test]
fn a_parser_gives_unit_and_direction_of_what_it_reports() {
    let text = "[metric]\nname = \"tps\"\n[machine]\nrun = \"x\"\n[workload]\nparser = \"sysbench\"\n";
    let loaded = load_text(text, &Overrides::default()).expect("loads");
    let metric = &loaded.recipe.metric;
    assert_eq!((metric.unit.as_str(), metric.direction), ("transactions/s", crate::model::Direction::Higher));
    assert_eq!(loaded.recipe.reading.parser, "sysbench");
    let json = serde_json::to_string(&loaded.recipe).expect("a recipe is JSON");
    assert_eq!(serde_json::from_str::<Recipe>(&json).expect("reads back"), loaded.recipe);
    let flags = over(|o| {
        o.parser = some("pgbench");
        o.run = some("./pgbench.sh");
        o.metric = some("latency_avg_ms");
    });
    let loaded = load("qemu-hackbench", &flags, &resolve).expect("loads");
    assert_eq!(loaded.recipe.metric.direction, crate::model::Direction::Lower);
    let guest = load("qemu-hackbench", &over(|o| o.parser = some("hackbench")), &resolve).expect("loads");
    assert_eq!(guest.recipe.reading.parser, "hackbench", "the flag replaces the machine's parser");
}

#[test]
fn a_recipe_without_a_reading_is_as_it_was_before_there_were_any() {
    let loaded = load_text(WHOLE, &Overrides::default()).expect("loads");
    let json = serde_json::to_value(&loaded.recipe).expect("a recipe is JSON");
    assert_eq!(json.get("reading"), None, "an older version reads the plan");
    assert_eq!(serde_json::from_value::<Recipe>(json).expect("reads back"), loaded.recipe);
}

#[test]
fn the_profile_says_where_the_numbers_of_any_program_stand() {
    let text = "[metric]\nname = \"p99\"\n[machine]\nrun = \"x\"\n[workload]\nparser = \"json\"\n\
                [workload.metrics.p99]\npointer = \"/lat/p99\"\nunit = \"us\"\ndirection = \"lower\"\n\
                [workload.metrics.\"a.b\"]\npointer = \"/a/b\"\n";
    let loaded = load_text(text, &Overrides::default()).expect("loads");
    let reading = &loaded.recipe.reading;
    let names: Vec<&str> = reading.metrics.keys().map(String::as_str).collect();
    assert_eq!(names, ["a.b", "p99"]);
    assert_eq!((reading.metrics["p99"].at.as_str(), loaded.recipe.metric.unit.as_str()), ("/lat/p99", "us"));
    let reader = crate::workload::Reader::of(reading).expect("is sound").expect("there is one");
    let output =
        crate::workload::Output { stdout: b"{\"lat\": {\"p99\": 7}}\n".to_vec(), ..Default::default() };
    assert_eq!(reader.parse("p99", &output).map(|metrics| metrics["p99"]), Ok(7.0));
    let text = "[metric]\nname = \"tps\"\ndirection = \"higher\"\n[machine]\nrun = \"x\"\n\
                [workload]\nparser = \"csv\"\nseparator = \";\"\nrow = \"tasks=4\"\n[workload.metrics.tps]\ncolumn = \"ops\"\n";
    let loaded = load_text(text, &Overrides::default()).expect("loads");
    golden!("explain_workload", without_file(&loaded.explain().join("\n")));
}

/// Only what [workload] is about.
fn without_file(explained: &str) -> String {
    let lines = explained.lines().filter(|line| line.starts_with("workload") || line.starts_with("metric"));
    lines.map(|line| line.split("  #").next().unwrap_or_default().trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_reading_that_cannot_work_is_refused() {
    let workload = |rest: &str| format!("{WHOLE}[workload]\n{rest}\n");
    golden!(
        "workload",
        messages(&[
            &workload("parser = \"sysbensh\""),
            &workload("parser = \"xyz\"\nseparator = \"ab\"\nrow = \"tasks\"\nregex = '(?P<tps>[0-9'"),
            &workload("parser = \"regex\""),
            &workload("parser = \"regex\"\nregex = 'tps: ([0-9]+)'"),
            &workload("parser = \"regex\"\nregex = 'tps: (?P<tps>[0-9]+)'"),
            &workload("parser = \"sysbench\"\nregex = '(?P<nopm>x)'\nrow = \"a=b\""),
            &workload("parser = \"sysbench\"\nseperator = \";\""),
            &workload("parser = \"json\"\n[workload.metrics.nopm]\npointer = \"a.b\""),
            &workload("parser = \"json\"\n[workload.metrics.nopm]\npointr = \"/a\"\ndirection = \"up\""),
            &workload("parser = \"csv\"\n[workload.metrics.tps]\npointer = \"/a\""),
            &workload("parser = \"sysbench\"\n[workload.metrics.tps]\npointer = \"/a\""),
            &WHOLE
                .replace("higher", "lower")
                .replace("[machine]", "[workload]\nparser = \"hammerdb\"\n[machine]"),
            &format!(
                "{}parser = \"number\"\n[build]\nkind = \"kbuild\"\n[workload]\nparser = \"hammerdb\"\n",
                WHOLE.replace("[machine]", "[machine]\nkind = \"qemu\"")
            ),
            &format!(
                "{}parser = \"regex\"\n[build]\nkind = \"kbuild\"\n",
                WHOLE.replace("[machine]", "[machine]\nkind = \"qemu\"")
            ),
        ])
    );
}

#[test]
fn the_template_is_a_sound_profile_as_it_is_and_with_every_key_in_use() {
    let checked = |text: &str| {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("new.toml");
        std::fs::write(&path, text).expect("writes");
        check(path.to_str().expect("UTF-8")).map_err(|error| error.to_string()).expect("is sound")
    };
    assert_eq!(checked(template()).needs, Vec::<String>::new());
    // A comment for people has a space behind its mark.
    let uncommented = |line: &str| match line.strip_prefix('#') {
        Some(key) if !key.starts_with(' ') => key.to_owned(),
        Some(_) | None => line.to_owned(),
    };
    let whole: Vec<String> = template().lines().map(uncommented).collect();
    let whole = whole.join("\n");
    assert!(!whole.lines().any(|line| line.starts_with('#') && !line.starts_with("# ")));
    assert_eq!(checked(&whole).needs, Vec::<String>::new());
}

#[test]
fn what_a_profile_leaves_to_the_lab_is_named_with_its_flag() {
    let needs = |name: &str| check(name).expect("is sound").needs;
    for name in ["mysql-hammerdb", "mariadb-sysbench-oltp", "postgres-pgbench"] {
        assert_eq!(needs(name), ["roles.ldg (--role)"], "{name}");
        let given = over(|o| {
            (o.roles, o.env) = (vec!["ldg=ssh ldg sh".to_owned()], vec!["DB_HOST=10.0.0.1".to_owned()])
        });
        let setup = load(name, &given, &resolve).expect("loads").recipe.setup;
        assert_eq!((setup.roles["ldg"].as_str(), setup.env["DB_HOST"].as_str()), ("ssh ldg sh", "10.0.0.1"));
    }
    for name in ["hackbench", "schbench", "perf-bench-sched", "stress-ng-context", "cyclictest"] {
        assert_eq!(needs(name), Vec::<String>::new(), "{name}");
    }
    let wrong = over(|o| (o.roles, o.env) = (vec!["ldg".to_owned()], vec!["SB_X=1".to_owned()]));
    golden!("bad_pairs", load("hackbench", &wrong, &resolve).expect_err("are no pairs").to_string());
}

#[test]
fn tunables_and_steps_become_the_setup_of_the_recipe() {
    let text = format!(
        "variants = [\"nopl\", \"batch\", \"default\"]\n{WHOLE}\
         [workload]\non = \"ldg\"\n[roles]\nldg = \"ssh root@ldg sh\"\n\
         [variant.nopl]\nfeatures = [\"NO_PLACE_LAG\", \"NO_RUN_TO_PARITY\"]\nbase_slice_ns = \"3ms\"\n\
         [variant.nopl.sysctl]\nkernel.sched_autogroup_enabled = 0\n\
         [variant.nopl.files]\n\"/sys/kernel/mm/transparent_hugepage/enabled\" = \"never\"\n\
         [variant.batch]\npolicy = \"batch\"\nnice = -5\nprocesses = [\"mysqld\"]\n\
         [[steps]]\nname = \"schema\"\non = \"ldg\"\nwhen = \"once\"\ncommand = \"./schema\"\ndeadline = \"1h\"\n\
         [[steps]]\nname = \"up\"\nwhen = \"boot\"\ncommand = \"nc -z db 3306\"\nevery = \"2s\"\n\
         [settle]\nload = 0.5\nsystem = true\n[canary]\ncommand = \"./spin\"\nwithin = \"3%\"\n\
         [saturation]\nidle = \"10%\"\nldg_cpus = 4\n[judging]\nsteady = \"2%\"\n"
    );
    let loaded = load_text(&text, &Overrides::default()).expect("loads");
    assert_eq!(loaded.recipe.variant, "nopl");
    let json = serde_json::to_string_pretty(&loaded.recipe.setup).expect("is plain data");
    golden!("setup", json);
    let explained = loaded.explain().join("\n");
    assert!(explained.contains("variant.nopl.base_slice_ns = 3000000"), "{explained}");

    let chosen = over(|o| (o.variant, o.also) = (some("batch"), vec!["nopl".to_owned()]));
    let loaded = load_text(&text, &chosen).expect("loads");
    assert_eq!(loaded.recipe.variant, "batch");
    assert_eq!(loaded.recipe.setup.also.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["nopl"]);
    let plain = over(|o| o.variant = some("default"));
    let loaded = load_text(&text, &plain).expect("loads");
    assert!(loaded.recipe.setup.variant.is_default() && loaded.recipe.setup.also.is_empty());
    let message = load_text(&text, &over(|o| o.variant = some("nopll"))).expect_err("there is none");
    golden!("no_such_variant", message);
}

#[test]
fn a_tunable_that_cannot_be_meant_is_refused() {
    let variant = |rest: &str| format!("{WHOLE}[variant.x]\n{rest}\n");
    golden!(
        "tunables",
        messages(&[
            // Case 34: 3 is not 3 ms.
            &variant("base_slice_ns = 3"),
            &variant("base_slice_ns = \"3s\""),
            &variant("base_slice_ns = 0.003"),
            &variant("features = [\"no_place_lag\"]\npolicy = \"fifo\"\nnice = 20\nfeature = [\"X\"]"),
            &variant("[variant.x.sysctl]\n\"kernel/../x\" = 1\nvm.swappiness = 0.5"),
            &variant("[variant.x.files]\n\"/etc/passwd\" = \"x\"\n\"/sys/a\" = true\n\"/sys/b\" = \"it's\""),
            &variant("[variant.x.cgroup]\ncpu = 50"),
            &format!("{WHOLE}[variant.\"a b\"]\nnice = 1\n"),
            &format!("variants = [\"y\"]\n{}", variant("nice = 1")),
            &format!("variants = [\"x\"]\n{}", variant("processes = [\"mysqld\"]")),
            &format!("variants = [\"x\"]\n{}", variant("cmdline = \"nosmt\"")),
            &format!(
                "variants = [\"x\"]\n{}[roles]\nldg = \"sh\"\n[workload]\non = \"ldg\"\n",
                variant("policy = \"batch\"")
            ),
            &format!(
                "variant = \"x\"\n{}",
                WHOLE.replace("[machine]", "[build]\nkind = \"kbuild\"\n[machine]\nkind = \"qemu\"")
            ),
        ])
    );
}

#[test]
fn a_step_or_check_that_cannot_work_is_refused() {
    let more = |rest: &str| format!("{WHOLE}{rest}\n");
    golden!(
        "steps",
        messages(&[
            &more("[[steps]]"),
            &more(
                "[[steps]]\nname = \"a\"\nwhen = \"always\"\ncommand = \"x\"\ndeadline = \"5\"\ndedline = 1"
            ),
            &more("[[steps]]\nname = \"a\"\non = \"ldg\"\nwhen = \"boot\"\ncommand = \"x\""),
            &more(
                "[[steps]]\nname = \"a\"\nwhen = \"boot\"\ncommand = \"x\"\n\
                 [[steps]]\nname = \"a\"\nwhen = \"clean\"\ncommand = \"y\""
            ),
            &more("[workload]\non = \"client\"\n[canary]\non = \"ldg2\"\ncommand = \"x\""),
            &more("[roles]\nldg = 5\n[canary]\nwithin = \"3%\""),
            &more("[saturation]\nidle = 10\n"),
            &more("[saturation]\nldg_cpus = 4\n"),
            &more("[saturation]\nramp_up = \"2m\"\n"),
            &more("[saturation]\nidle = \"10%\"\nramp_up = \"30m\"\n"),
            &more("[settle]\ndeadline = \"5m\"\n"),
            &more("[settle]\nload = \"low\"\nsystem = \"yes\"\nrunning = -1\ntemperature = 900\n"),
            &more("[judging]\nsteady_runs = 3\n"),
            &format!(
                "{}[build]\nkind = \"kbuild\"\n[roles]\nldg = \"sh\"\n",
                WHOLE.replace("[machine]", "[machine]\nkind = \"qemu\"")
            ),
        ])
    );
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    golden!(
        "unknown_keys",
        messages(&[
            &format!("{WHOLE}[judging]\nboot = 5\nwarmup_run = 3\nfrobnicate = 1\n"),
            &format!("boots = 5\nmin_effect = \"2%\"\n{WHOLE}"),
            &format!("{WHOLE}[jugding]\nboots = 5\nwarmup_runs = 3\n"),
            &format!("judging = 5\n{WHOLE}"),
            &format!("{WHOLE}[find]\nminimum_effect = \"2%\"\n"),
            &format!("{WHOLE}cpus = 2\n[build]\ncommand = \"make\"\n"),
            &format!("{WHOLE}[build]\nkind = \"kbuild\"\n[[build.fixup]]\nname = \"x\"\n"),
            &format!(
                "{WHOLE}[build]\nkind = \"kbuild\"\n[[build.fixups]]\nname = \"x\"\npatch = \"small.config\"\nform = \"v6.15\"\n"
            ),
        ])
    );
}

#[test]
fn values_of_the_wrong_type_are_refused() {
    golden!(
        "wrong_types",
        messages(&[
            &format!(
                "find = true\nconfidence = [0.9]\nbudget = 12\npaths = \"kernel\"\nvariant = 1979-05-27\n{WHOLE}\n\
                 [judging]\nboots = \"5\"\nwarmup_runs = 1.5\n[build]\nkind = \"kbuild\"\ntargets = [\"bzImage\", 5, \"\"]\n\
                 fixups = \"x\"\nconfig = 5\n"
            ),
            "metric = \"nopm\"\n[machine]\nrun = \"x\"\n",
        ])
    );
}

#[test]
fn values_out_of_range_are_refused() {
    golden!(
        "out_of_range",
        messages(&[
            &format!(
                "name = \"a b\"\nfind = \"regresion\"\nminimum_effect = \"0%\"\nconfidence = 0.5\nbudget = \"12\"\n\
                 suts = 0\n{WHOLE}[judging]\nboots = 1\nmax_boots = 99999999999\nwarmup_runs = -1\n\
                 [deadlines]\nbuild = \"0s\"\nboot = \"1.5s\"\nrun = \"-5m\"\n[attempts]\nboot = 0\n"
            ),
            &format!("minimum_effect = 10\nconfidence = 1\n{WHOLE}"),
            &format!("minimum_effect = nan\nconfidence = inf\n{WHOLE}"),
            &WHOLE.replace("higher", "up").replace("./run.sh", " "),
            &WHOLE.replace("[machine]", "[machine]\nkind = \"kvm\"\ncpus = 2"),
            &format!(
                "{WHOLE}[build]\nkind = \"kbuild\"\nimage = \"../x\"\nconfig = \"gone.config\"\n[[build.fixups]]\nname = \"x\"\n\
                 patch = \"small.config\"\nfrom = \"v9\"\n"
            ),
        ])
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let guest = WHOLE.replace("[machine]", "[machine]\nkind = \"qemu\"");
    let kbuild = "[build]\nkind = \"kbuild\"\n";
    golden!(
        "contradictions",
        messages(&[
            &format!("{WHOLE}[judging]\nboots = 5\nmax_boots = 4\n"),
            &format!("suts = 2\n{WHOLE}"),
            &guest,
            &format!("{guest}boot = \"./boot.sh\"\n{kbuild}"),
            &format!("{guest}[build]\nkind = \"command\"\ncommand = \"make\"\n"),
            &format!("{guest}parser = \"hackbench\"\n{kbuild}"),
            &format!("{WHOLE}{kbuild}[[build.fixups]]\nname = \"x\"\npatch = \"small.config\"\n"),
            &format!("{WHOLE}{kbuild}base = \"\"\ntargets = []\nrequired = [\"HZ=250\", \"CONFIG_X\"]\n"),
        ])
    );
}

#[test]
fn what_is_missing_is_named_with_the_flag_that_gives_it() {
    golden!(
        "missing",
        messages(&[
            "",
            "[metric]\nname = \"nopm\"\n[machine]\nkind = \"qemu\"\n[build]\nkind = \"command\"\n",
            &format!("{WHOLE}[build]\nkind = \"kbuild\"\n[[build.fixups]]\n"),
        ])
    );
    let message = load("command", &Overrides::default(), &resolve).expect_err("incomplete").to_string();
    golden!("missing_embedded", message);
}

#[test]
fn what_is_not_toml_is_refused_with_its_position() {
    golden!("not_toml", messages(&["[metric\nname = 1\n", "a = 1\na = 2\n", "\tname = 'x", "ü = \"é\" x\n"]));
}

#[test]
fn a_bad_flag_is_named_with_its_value() {
    let overrides = over(|o| {
        o.metric = some(" ");
        o.direction = some("up");
        o.minimum_effect = some("two");
        o.confidence = some("2");
        o.find = some("all");
        o.budget = some("soon");
        o.run = some("");
        o.good = some("");
        o.paths = vec![String::new()];
    });
    golden!("bad_flags", load_text(WHOLE, &overrides).expect_err("all are bad"));
}

#[test]
fn a_profile_that_is_nowhere_is_refused() {
    let message =
        |name: &str| load(name, &Overrides::default(), &resolve).expect_err("no profile").to_string();
    assert_eq!(
        message("qemu-hackbanch"),
        "find profile \"qemu-hackbanch\": there is none of that name (qemu-hackbench, hackbench, schbench, perf-bench-sched, \
         stress-ng-context, cyclictest, mysql-hammerdb, mariadb-sysbench-oltp, postgres-pgbench, command) and no such file"
    );
    assert!(message("/nowhere/x.toml").starts_with("read profile /nowhere/x.toml: No such file"));
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("latin1.toml");
    std::fs::write(&path, b"# one\nname = \"\xe9\"\n").expect("writes");
    let path = path.to_str().expect("UTF-8");
    assert_eq!(message(path), format!("read profile {path}: line 2 is not UTF-8 text"));
}

#[test]
fn check_accepts_what_the_command_line_can_complete_and_says_what() {
    let checked = check("command").expect("valid");
    assert_eq!(checked.name, "command");
    assert_eq!(
        checked.needs,
        ["machine.run (--run)", "metric.name (--metric)", "metric.direction (--direction)"]
    );
    assert_eq!(check("qemu-hackbench").expect("valid").needs, Vec::<String>::new());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_breaks_the_loader(text in "[\\[\\]{}=\"'.,#a-z0-9 \n\té]{0,120}") {
        let _ = load_text(&text, &Overrides::default());
    }

    #[test]
    fn no_value_breaks_a_known_key(value in "[\\[\\]{}=\"'.,a-z0-9 -]{0,40}") {
        for key in ["name", "paths", "confidence", "suts", "budget", "metric.name", "build.config", "build.fixups"] {
            let _ = load_text(&format!("{key} = {value}\n{WHOLE}"), &Overrides::default());
        }
    }
}
