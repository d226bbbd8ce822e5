//! What machines are like, over whole sessions: a difference voids a boot and never mixes, what a kernel decides is told, and
//! a kernel that complains under load cannot be measured.

use crate::common::rig::{Profile, RUN, Rig};
use crate::common::scripted::{Environment, Stage, commit, culprit};
use sched_bisect::model::{CommitId, InfraKind, UntestableKind};
use sched_bisect::report::{Look, Report, status, text};
use sched_bisect::session::{Halt, MachineSpec, Plan, State, Watch};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

fn fields(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A session on a line of nine that watches a machine like this.
fn session(of: Environment, change: impl FnOnce(&mut Plan)) -> Stage {
    let stage = Stage::begin(9, 5, |plan| {
        plan.recipe.machine = MachineSpec::Command { boot: Some("boot".to_owned()), run: "run".to_owned() };
        plan.recipe.attempts.infra = 3;
        plan.recipe.setup.environment = Some(Watch::default());
        change(plan);
    });
    stage.script.environment.set(Some(of));
    stage
}

/// The report or status on one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn told(stage: &Stage, state: &State) -> String {
    let dag = crate::common::scripted::line(9);
    assert!(stage.records().len() > 1);
    flat(&text(&Report::of(&dag, state, &[]), Look::default()))
}

/// Works until it halts for the environment; the reason.
#[track_caller]
fn halts(stage: &Stage) -> (String, State) {
    let (_, state) = stage.work().expect("the disk is sound");
    let Some(Halt::Infra(failure)) = state.halted.clone() else { panic!("{:?}", state.conclusion) };
    assert_eq!(failure.kind, InfraKind::Environment);
    (failure.reason, state)
}

#[test]
fn cases_31_33_35_a_machine_that_is_not_what_it_was_stops_the_session_with_the_field_named() {
    let cases: [(&str, Environment); 6] = [
        ("governor is powersave, was performance", |boot, _| {
            fields(&[("governor", if boot > 4 { "powersave" } else { "performance" }), ("smt", "on")])
        }),
        ("hz is 250, was 1000", |_, of| fields(&[("hz", if *of == commit(8) { "1000" } else { "250" })])),
        (
            "program.hackbench is 2222222222222222 (rt-tests 2.5), was 1111111111111111 (rt-tests 2.4)",
            |boot, _| {
                let version = if boot > 3 {
                    "2222222222222222 (rt-tests 2.5)"
                } else {
                    "1111111111111111 (rt-tests 2.4)"
                };
                fields(&[("program.hackbench", version)])
            },
        ),
        ("ldg:library.libmysqlclient.so.21 is 02, was 01", |boot, _| {
            fields(&[("ldg:library.libmysqlclient.so.21", if boot > 3 { "02" } else { "01" })])
        }),
        ("autogroup is 0, was 1", |boot, _| fields(&[("autogroup", if boot > 2 { "0" } else { "1" })])),
        ("tty is no, was yes", |boot, _| fields(&[("tty", if boot > 1 { "no" } else { "yes" })])),
    ];
    for (words, of) in cases {
        let stage = session(of, |_| {});
        let (reason, state) = halts(&stage);
        assert!(
            reason.starts_with(&format!("environment: {words} in boot 1: put it back; or, ")),
            "{reason}"
        );
        assert!(reason.contains("start a new session with `ignore = [\""), "{reason}");
        assert_eq!(state.moved.len(), 3, "the attempt limit, then no more");
        let mixed = state.moved.iter().filter_map(|(boot, _)| state.boot(*boot)).any(|b| !b.runs.is_empty());
        assert!(!mixed, "a boot of another machine has runs");
        let report = told(&stage, &state);
        assert!(
            report.contains(&format!("environment 3 boots were cut short; the last, {}: ", state.moved[2].0)),
            "{report}"
        );
        let dag = crate::common::scripted::line(9);
        assert!(flat(&status(&dag, &state)).contains(words), "status tells it too");
    }
}

#[test]
fn a_machine_that_was_put_back_goes_on_to_the_culprit() {
    let stage = session(
        |boot, _| fields(&[("governor", if (5..8).contains(&boot) { "powersave" } else { "performance" })]),
        |_| {},
    );
    halts(&stage);
    let (_, state) = stage.work().expect("the disk is sound");
    assert_eq!(culprit(&state), Some(commit(5)));
}

#[test]
fn a_boot_that_is_odd_once_is_taken_again_and_the_session_does_not_stop() {
    let stage =
        session(|boot, _| fields(&[("cpus_online", if boot % 4 == 3 { "0-2" } else { "0-3" })]), |_| {});
    assert_eq!(stage.conclude(), commit(5));
    let (_, state) = stage.work().expect("the disk is sound");
    assert!(!state.moved.is_empty());
    for boot in state.boots.iter().filter(|b| b.boot.0 % 4 == 3) {
        assert!(boot.runs.is_empty(), "boot {} was of another machine", boot.boot);
    }
}

#[test]
fn what_the_profile_ignores_may_differ() {
    let stage = session(
        |boot, _| fields(&[("governor", if boot > 4 { "powersave" } else { "performance" })]),
        |plan| {
            let ignore = vec!["governor".to_owned()];
            plan.recipe.setup.environment = Some(Watch { ignore, also: Vec::new() });
        },
    );
    assert_eq!(stage.conclude(), commit(5));
    let (_, state) = stage.work().expect("the disk is sound");
    let report = told(&stage, &state);
    assert!(report.contains("not compared: governor"), "{report}");
}

#[test]
fn what_a_kernel_decides_is_told_and_voids_nothing_while_each_kernel_stays_itself() {
    let of: Environment = |_, of| {
        let slow = *of >= commit(5);
        let features =
            |parity: &str| format!("PLACE_LAG PLACE_DEADLINE_INITIAL {parity} NEXT_BUDDY A B C D E F");
        let mut fields =
            fields(&[("clocksource", if slow { "hpet" } else { "tsc" }), ("governor", "performance")]);
        fields.insert(
            "sched.features".to_owned(),
            features(if slow { "NO_RUN_TO_PARITY" } else { "RUN_TO_PARITY" }),
        );
        fields
    };
    let stage = session(of, |_| {});
    assert_eq!(stage.conclude(), commit(5));
    let (_, state) = stage.work().expect("the disk is sound");
    assert!(state.moved.is_empty());
    let report = told(&stage, &state);
    let (now, before) = (commit(5), commit(4));
    let (now, before) = (now.short(), before.short());
    assert!(
        report
            .contains(&format!("clocksource: hpet under {now}, tsc under {before}: the kernel's own doing")),
        "{report}"
    );
    assert!(
        report.contains(&format!(
            "sched.features: NO_RUN_TO_PARITY under {now}, RUN_TO_PARITY under {before}:"
        )),
        "{report}"
    );
}

#[test]
fn a_kernel_that_chooses_another_clock_from_boot_to_boot_is_not_measured_with_both() {
    let stage = session(|boot, _| fields(&[("clocksource", if boot > 2 { "hpet" } else { "tsc" })]), |_| {});
    let (reason, _) = halts(&stage);
    assert!(reason.starts_with("environment: clocksource is hpet, was tsc in boot "), "{reason}");
}

/// A rig whose SUT is a shell with programs of its own: `dmesg`, `nproc`, `bench`.
fn rig(infra: u32) -> Rig {
    let rig = Rig::new(&Profile::default());
    let bin = rig.note("bin");
    std::fs::create_dir(&bin).expect("makes");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path"));
    let more = format!("[roles]\nsut = \"sh\"\n[env]\nPATH = '{path}'\n");
    let run = format!("bench; if [ -e splat ]; then cat splat >>{}; fi; {RUN}", rig.note("log").display());
    rig.profile(&Profile { boot: Some("true".to_owned()), boots: 2, infra, run, more, ..Profile::default() });
    std::fs::write(rig.note("log"), "[    1.0] WARNING: CPU: 0 PID: 1 at old.c:1\n").expect("writes");
    program(&rig, "dmesg", &format!("cat {}", rig.note("log").display()));
    program(&rig, "nproc", &format!("cat {} 2>/dev/null || echo 8", rig.note("cpus").display()));
    program(&rig, "bench", ":");
    rig
}

fn program(rig: &Rig, name: &str, body: &str) {
    let path = rig.note("bin").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("writes");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("is ours");
}

/// A boot command that does this once, in the boot of this number.
fn in_boot(rig: &Rig, boot: u32, what: &str) -> String {
    let done = rig.note("done").display().to_string();
    format!("if [ \"$SB_BOOT\" -ge {boot} ] && ! [ -e {done} ]; then {what}; touch {done}; fi")
}

#[test]
fn case_33_a_benchmark_that_is_updated_under_the_search_stops_it_until_it_is_put_back() {
    let mut rig = rig(2);
    let bench = rig.note("bin").join("bench").display().to_string();
    let text = std::fs::read_to_string(rig.profile_path()).expect("a profile");
    let update = in_boot(&rig, 3, &format!("echo '# 2.0' >>{bench}"));
    let text = text.replace("boot = '''true'''", &format!("boot = '''{update}'''"));
    std::fs::write(rig.profile_path(), text).expect("writes");
    rig.line(&[100_000, 100_000, 100_000, 92_600, 92_600]);
    let said = rig.start("c0", "c4").exits(5);
    said.tells("STOPPED: our side broke: environment: program.bench is ");
    said.tells("in boot 1: put it back; or, if it may differ, start a new session with `ignore = [\"program.bench\"]`");
    let (_, state, _) = rig.load("s");
    assert!(state.boots.iter().filter(|b| b.boot.0 > 2).all(|b| b.runs.is_empty()), "samples were mixed");
    rig.run(&["status", "s"]).exits(0).tells("environment 2 boots were cut short");
    program(&rig, "bench", ":");
    rig.run(&["resume", "s"]).exits(0).tells("(\"c3\") is the regression");
}

#[test]
fn case_9_another_load_is_another_run() {
    let mut rig = rig(2);
    let text = std::fs::read_to_string(rig.profile_path()).expect("a profile");
    let fewer = in_boot(&rig, 3, &format!("echo 4 >{}", rig.note("cpus").display()));
    let text = text.replace("boot = '''true'''", &format!("boot = '''{fewer}'''"));
    std::fs::write(rig.profile_path(), text).expect("writes");
    rig.line(&[100_000, 100_000, 92_600]);
    let said = rig.start("c0", "c2").exits(5);
    said.tells("environment: load.SB_SUT_CPUS is 4, was 8 in boot 1: put it back;");
}

/// A session in which runs of the commits c2 and c3 add this line to the kernel's log.
fn splats(line: &str) -> (Rig, Vec<CommitId>) {
    let mut rig = rig(2);
    let mut c = vec![rig.commit("c0", &[], 100_000, &[])];
    c.push(rig.commit("c1", &[&c[0]], 100_000, &[]));
    let line = format!("[    9.0] {line}\n");
    c.push(rig.commit("c2", &[&c[1]], 100_000, &[("splat", &line)]));
    c.push(rig.commit("c3", &[&c[2]], 92_600, &[]));
    let end = rig.repo.commit("c4", &[&c[3]], &[("splat", None), ("log/c4", Some("c4"))]);
    rig.repo.run(&["update-ref", "refs/tags/c4", end.as_str()]);
    c.push(end);
    (rig, c)
}

#[test]
fn case_102_a_kernel_that_complains_in_every_run_cannot_be_measured_and_is_no_failure_of_ours() {
    for (line, kind, reason) in [
        (
            "WARNING: CPU: 0 PID: 7 at kernel/sched/fair.c:5 pick_eevdf+0x1/0x2",
            UntestableKind::InvalidOutput,
            "kernel splat during the run: WARNING: CPU: 0 PID: 7 at kernel/sched/fair.c:5 pick_eevdf+0x1/0x2",
        ),
        (
            "Oops: 0002 [#1] PREEMPT SMP NOPTI",
            UntestableKind::Panic,
            "Oops: 0002 [#1] PREEMPT SMP NOPTI (under load)",
        ),
    ] {
        let (rig, c) = splats(line);
        rig.start("c0", "c4").exits(3);
        let (_, state, _) = rig.load("s");
        let known = state.commit(&c[2]).expect("it was tried");
        let why = known.untestable.as_ref().expect("it cannot be measured");
        assert_eq!((why.kind, why.reason.as_str()), (kind, reason));
        assert_eq!(known.failures_in_all, 3, "as many boots as a failing one is allowed");
        assert!(state.boots.iter().filter(|b| b.commit == c[2]).all(|b| b.runs.is_empty()));
        assert!(state.infra.values().all(Vec::is_empty) || state.infra.is_empty(), "{:?}", state.infra);
    }
}
