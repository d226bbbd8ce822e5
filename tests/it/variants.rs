//! Variants on one machine, over the real binary: what one sets neither voids its own boots nor reaches those of another,
//! whatever kernels are booted, and whatever ends the program.
//!
//! The SUT is a shell in a mount namespace of its own, in which files beside the repository lie over those of the kernel.

use crate::common::rig::{Profile, Rig, Said};
use sched_bisect::session::State;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Files of the kernel, with the file that lies over each and what it says after a boot.
const KERNEL: [(&str, &str, &str); 3] = [
    ("/proc/cmdline", "cmdline", "root=/dev/vda"),
    ("/proc/sys/vm/swappiness", "swappiness", "60"),
    ("/sys/devices/system/cpu/online", "online", "0-3"),
];

const VARIANTS: &str = "variant.nosmt = { cmdline = \"nosmt\" }\nvariant.swap = { sysctl = { \"vm.swappiness\" = \"10\" } }\n\
                        variant.nopl = { features = [\"NO_PLACE_LAG\"] }\n";

/// The run tells what it ran under, for the tests to read.
const RUN: &str = "read -r l < level; echo \"$SB_VARIANT $(cat NOTES/swappiness)\" >>NOTES/runs; \
                   echo $((l + SB_BOOT * 7 % 11 - 5))";

/// A kernel comes up with its own features (a file of its tree), and with what its command line says.
const BOOT: &str = "echo \"root=/dev/vda $SB_CMDLINE\" >NOTES/cmdline; echo 60 >NOTES/swappiness; \
                    case $SB_CMDLINE in *nosmt*) echo 0-1;; *) echo 0-3;; esac >NOTES/online; \
                    cat features >NOTES/debug/sched/features";

fn may_mount() -> bool {
    let done = Command::new("unshare").args(["--mount", "true"]).output();
    let may = done.is_ok_and(|done| done.status.success());
    if !may {
        eprintln!("skipped: no mount namespace can be made here");
    }
    may
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("writes");
}

/// A rig with such a SUT; c0 and c2 are two kernels with different features, c2 is slower.
fn rig(boot: Option<&str>, run: &str) -> Rig {
    let mut rig = Rig::new(&Profile::default());
    let notes = rig.note("");
    let notes = notes.to_str().expect("UTF-8").trim_end_matches('/');
    std::fs::create_dir_all(rig.note("debug/sched")).expect("makes");
    let mut mounts = format!("mount --bind {notes}/debug /sys/kernel/debug");
    write(&rig.note("debug/sched/features"), "PLACE_LAG RUN_TO_PARITY\n");
    for (path, file, text) in KERNEL {
        write(&rig.note(file), &format!("{text}\n"));
        mounts.push_str(&format!(" && mount --bind {notes}/{file} {path}"));
    }
    let more = format!("{VARIANTS}[roles]\nsut = \"unshare --mount sh -c '{mounts} && exec sh'\"\n");
    rig.profile(&Profile {
        boot: boot.map(|boot| boot.replace("NOTES", notes)),
        run: run.replace("NOTES", notes),
        more,
        ..Profile::default()
    });
    let first = rig.commit("c0", &[], 100_000, &[("features", "PLACE_LAG RUN_TO_PARITY\n")]);
    let second = rig.commit("c1", &[&first], 100_000, &[]);
    let slow = "PLACE_LAG NO_RUN_TO_PARITY DELAY_ZERO\n";
    let third = rig.commit("c2", &[&second], 92_600, &[("features", slow)]);
    rig.repo.check_out(&third);
    rig
}

fn survey<'a>(rig: &Rig, variants: &[&'a str], more: &[&'a str]) -> Said {
    let profile = rig.profile_path();
    let mut args =
        vec!["survey", "c0", "c2", "--session", "s", "--profile", profile.to_str().expect("UTF-8")];
    args.extend(variants.iter().flat_map(|variant| ["--variant", variant]));
    args.extend(more);
    rig.run(&args)
}

/// Boots that count, by kernel and variant.
fn cells(state: &State) -> BTreeMap<(String, String), usize> {
    let mut cells = BTreeMap::new();
    for boot in state.boots.iter().filter(|boot| !boot.runs.is_empty()) {
        *cells.entry((boot.commit.as_str().to_owned(), boot.variant.clone())).or_default() += 1;
    }
    cells
}

#[test]
fn neither_what_a_variant_sets_nor_what_differs_between_kernels_voids_a_boot() {
    if !may_mount() {
        return;
    }
    let rig = rig(Some(BOOT), RUN);
    let told = survey(&rig, &["default", "nosmt", "swap", "nopl"], &["--boots", "3"]).exits(0);
    let (_, state, _) = rig.load("s");
    assert_eq!(state.moved, [], "no boot is voided");
    let cells = cells(&state);
    assert!(cells.len() == 8 && cells.values().all(|boots| *boots == 3), "{cells:?}");
    // It was looked at, and did differ.
    let seen = |field: &str, value: &str| {
        let records = state.boots.iter().filter_map(|boot| boot.record.as_ref());
        records.filter(|record| record.environment.get(field).is_some_and(|v| v == value)).count()
    };
    assert_eq!((seen("cpus_online", "0-1"), seen("cpus_online", "0-3")), (6, 18));
    assert_eq!((seen("cmdline", "root=/dev/vda"), seen("sysctl.vm.swappiness", "60")), (24, 24));
    assert_eq!(seen("sched.features", "PLACE_LAG NO_RUN_TO_PARITY DELAY_ZERO"), 12);
    told.tells("sched.features: PLACE_LAG NO_RUN_TO_PARITY DELAY_ZERO under ")
        .tells("the kernel's own doing");
    let expected = |variant: &str| format!("{variant} {}", if variant == "swap" { "10" } else { "60" });
    assert!(rig.notes("runs").iter().all(|run| *run == expected(run.split(' ').next().unwrap_or_default())));
}

#[test]
fn a_setting_that_one_variant_sets_may_not_move_by_itself_under_another() {
    if !may_mount() {
        return;
    }
    let moves = BOOT.replace("echo 60 >", "echo $((SB_BOOT > 5 ? 33 : 60)) >");
    let rig = rig(Some(&moves), RUN);
    let said = survey(&rig, &["default", "swap"], &["--boots", "3"]).exits(5);
    said.tells("environment: sysctl.vm.swappiness is 33, was 60 in boot ");
    rig.run(&["status", "s"]).exits(0).tells("environment ").tells("cut short");
    let runs = rig.notes("runs");
    assert!(runs.iter().all(|run| run != "default 33"), "{runs:?}");
}

#[test]
fn a_program_killed_under_a_variant_leaves_nothing_of_it_to_the_next_one() {
    if !may_mount() {
        return;
    }
    // One kernel, never booted anew: what was set stays until somebody puts it back.
    let slow = format!(
        "case $SB_VARIANT in swap) [ -e NOTES/killed ] || {{ : >NOTES/there; sleep 60; }};; esac; {RUN}"
    );
    let rig = rig(None, &slow);
    let profile = rig.profile_path();
    let args =
        ["survey", "c0", "c2", "--boots", "3", "--session", "s", "--variant", "default", "--variant", "swap"];
    let mut command = rig.command(&args);
    let mut child = command
        .arg("--profile")
        .arg(&profile)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let began = Instant::now();
    while !rig.note("there").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not come so far");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().and_then(|()| child.wait()).expect("it is ours");
    write(&rig.note("killed"), "");
    assert_eq!(rig.notes("swappiness"), ["10"], "nobody could put it back");
    rig.run(&["resume", "s"]).exits(0);
    let runs = rig.notes("runs");
    let default: Vec<&String> = runs.iter().filter(|run| run.starts_with("default")).collect();
    assert!(default.len() == 6 && default.iter().all(|run| *run == "default 60"), "{runs:?}");
    assert_eq!(runs.iter().filter(|run| *run == "swap 10").count(), 6, "{runs:?}");
    assert_eq!(rig.notes("swappiness"), ["60"]);
    let (_, state, _) = rig.load("s");
    assert_eq!(state.moved, []);
}
