//! What a user is told when a profile, a knob, a unit or a metric is not as it should be: the whole message over the real
//! binary, with its exit status. Each names the thing, the reason and the next step.

use crate::common::rig::{Profile, RUN, Rig, Said};
use sched_bisect::model::{CommitId, UntestableKind};
use std::path::Path;

const FAST: u32 = 100_000;
const SLOW: u32 = 92_600;
const LINE: [u32; 5] = [FAST, FAST, FAST, SLOW, SLOW];

/// Whole messages, with the test's own directory as DIR.
macro_rules! golden {
    ($name:literal, $rig:expr, $said:expr) => {
        let dir = $rig.note("x");
        let dir = dir.parent().and_then(Path::to_str).expect("UTF-8");
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/messages"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, shown(&$said).replace(dir, "DIR"));
        });
    };
}

/// Everything that was said, by where it went.
fn shown(said: &[Said]) -> String {
    let one = |said: &Said| format!("exit {}\n{}{}", said.status, said.out, said.err);
    said.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// `profile check` and `start` with this as the profile; neither leaves a session.
fn refused(rig: &mut Rig, profile: &str) -> [Said; 2] {
    std::fs::write(rig.profile_path(), profile).expect("writes");
    let file = rig.profile_path().to_str().expect("UTF-8").to_owned();
    let said = [rig.run(&["profile", "check", &file]), rig.start("c0", "c4")];
    assert!(!rig.repo.path().join(".git/sched-bisect").exists(), "nothing is left of a refused start");
    said
}

const METRIC: &str = "[metric]\nname = \"tps\"\n";
const RUNS: &str = "[machine]\nrun = \"./bench\"\n[workload]\nparser = \"sysbench\"\n";

fn rig_on_a_line() -> Rig {
    let mut rig = Rig::new(&Profile::default());
    rig.line(&LINE);
    rig
}

#[test]
fn an_error_tells_what_failed_why_and_what_to_do_each_on_a_line_of_its_own() {
    let rig = rig_on_a_line();
    golden!(
        "no_such_session",
        rig,
        [rig.run(&["report", "nope"]), rig.run(&["status", "--state-dir", "/proc/1/none"])]
    );
}

#[test]
fn a_bad_profile_is_refused_by_check_and_start_alike() {
    let mut rig = rig_on_a_line();
    let bad = format!("minimum_efect = \"2%\"\nconfidence = \"high\"\n{METRIC}{RUNS}[judging]\nboots = 1\n");
    golden!("bad_profile", rig, refused(&mut rig, &bad));
    golden!("no_toml", rig, refused(&mut rig, "[metric\nname = 1\n"));
}

#[test]
fn a_unit_that_is_not_the_parsers_is_refused() {
    let mut rig = rig_on_a_line();
    golden!("wrong_unit", rig, refused(&mut rig, &format!("{METRIC}unit = \"ms\"\n{RUNS}")));
    // One that the profile itself gives where the number stands.
    let placed = "[metric]\nname = \"p99\"\nunit = \"ms\"\ndirection = \"lower\"\n[machine]\nrun = \"x\"\n[workload]\n\
                  parser = \"json\"\n[workload.metrics.p99]\npointer = \"/p99\"\nunit = \"us\"\n";
    golden!("wrong_unit_placed", rig, refused(&mut rig, placed));
    // The parser's own is no news.
    std::fs::write(rig.profile_path(), format!("{METRIC}unit = \"transactions/s\"\n{RUNS}")).expect("writes");
    let file = rig.profile_path().to_str().expect("UTF-8").to_owned();
    rig.run(&["profile", "check", &file]).exits(0).tells("sound, complete");
}

#[test]
fn a_slice_of_three_nanoseconds_is_refused_before_anything_runs() {
    // Case 34.
    let mut rig = rig_on_a_line();
    let three = format!("variants = [\"slow\"]\n{METRIC}{RUNS}[variant.slow]\nbase_slice_ns = 3\n");
    golden!("slice_of_three", rig, refused(&mut rig, &three));
}

#[test]
fn a_metric_that_the_parser_does_not_have_is_refused() {
    let mut rig = rig_on_a_line();
    golden!("no_such_metric", rig, refused(&mut rig, &format!("{}{RUNS}", METRIC.replace("tps", "nopm"))));
    let profile = format!("{METRIC}{RUNS}");
    std::fs::write(rig.profile_path(), profile).expect("writes");
    golden!("no_such_metric_flag", rig, [rig.start_with(&["c0", "c4", "--metric", "p99_ms"])]);
}

#[test]
fn a_variant_that_is_not_described_is_refused() {
    let rig = rig_on_a_line();
    let profile = format!("{METRIC}{RUNS}[variant.batch]\npolicy = \"batch\"\n");
    std::fs::write(rig.profile_path(), profile).expect("writes");
    golden!("no_such_variant", rig, [rig.start_with(&["c0", "c4", "--variant", "bacth"])]);
}

/// The reason of the conclusion and what to do next, as the report has them; and that it came to this exit status.
fn concluded(rig: &Rig, said: Said, exit: i32) -> (String, String) {
    said.exits(exit);
    let json = rig.json("s");
    let of = |key: &str| json["conclusion"][key].as_str().expect("text").to_owned();
    (of("reason"), of("next_step"))
}

/// An endpoint as it is told: by the name that it was given, and its commit.
fn endpoint(rig: &Rig, commit: &CommitId) -> String {
    let (_, state, _) = rig.load("s");
    let ends = [&state.plan.good, &state.plan.bad];
    let end = ends.into_iter().find(|end| end.commit == *commit).expect("an endpoint");
    format!("{} ({})", end.rev, commit.short())
}

#[test]
fn a_metric_that_this_output_does_not_have_makes_the_run_invalid_and_is_named() {
    // pgbench with -C reports no tps without connections.
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/outputs/pgbench-C.txt");
    let rig = rig_on_a_line();
    let profile = format!(
        "[metric]\nname = \"tps\"\n[machine]\nrun = \"cat {log}\"\n[workload]\nparser = \"pgbench\"\n[judging]\nboots = 2\n"
    );
    std::fs::write(rig.profile_path(), profile).expect("writes");
    let said = rig.start("c0", "c4");
    let (reason, next) = concluded(&rig, said, 5);
    let good = rig.boot_order("s")[0].clone();
    assert_eq!(
        reason,
        format!(
            "our side broke: the endpoint {} cannot be measured (invalid output: pgbench: no metric \"tps\" in it; seen: \
             average_connection_ms, failed_transactions, latency_avg_ms, tps_including_reconnecting, transactions); without it no \
             candidate can be judged. Mend the workload, or judge a metric that it prints (`sched-bisect parse` shows what a \
             log holds), or choose another endpoint",
            endpoint(&rig, &good)
        )
    );
    assert_eq!(
        next,
        "mend it, then sched-bisect resume s (the recipe is fixed: another one needs a new session)"
    );
    // The same by hand, before a session of hours.
    golden!("metric_not_in_output", rig, [rig.run(&["parse", "pgbench", log, "--metric", "tps"])]);
}

/// A rig whose SUT is a shell of this host with a directory of its own for /sys/kernel; a kernel whose tree holds `lacks`
/// has no PLACE_LAG. `run` finds the directory as $KERNEL.
fn with_sys(variant: &str, run: &str) -> Rig {
    let rig = Rig::new(&Profile::default());
    let kernel = rig.note("kernel");
    std::fs::create_dir_all(kernel.join("debug/sched")).expect("makes");
    let kernel = kernel.to_str().expect("UTF-8");
    let more = format!(
        "variants = [\"x\"]\nroles = {{ sut = \"sed 's|/sys/kernel/|{kernel}/|g' | sh\" }}\nenv = {{ KERNEL = \"{kernel}\" }}\n\
         environment = {{ watch = false }}\n[variant.x]\n{variant}\n"
    );
    let boot = format!(
        "cd {kernel}/debug/sched; echo 700000 >base_slice_ns; echo PLACE_LAG RUN_TO_PARITY >features; cd \"$SB_SOURCE\"; \
         if [ -e lacks ]; then echo RUN_TO_PARITY >{kernel}/debug/sched/features; fi"
    );
    rig.profile(&Profile { boots: 2, boot: Some(boot), run: run.to_owned(), more, ..Profile::default() });
    rig
}

const NO_PLACE_LAG: &str = "knob not available: this kernel has no scheduler feature PLACE_LAG (neither in sched/features of \
                            debugfs nor as sysctl)";

#[test]
fn an_endpoint_without_the_knob_ends_the_session_with_the_knob_named() {
    let mut rig = with_sys("features = [\"NO_PLACE_LAG\"]", RUN);
    let c0 = rig.commit("c0", &[], FAST, &[("lacks", "1")]);
    let c1 = rig.repo.commit("c1", &[&c0], &[("lacks", None), ("level", Some("92600\n"))]);
    rig.repo.check_out(&c1);
    let said = rig.start("c0", c1.as_str());
    let (reason, _) = concluded(&rig, said, 5);
    assert_eq!(
        reason,
        format!(
            "our side broke: the endpoint {} cannot be measured (knob: {NO_PLACE_LAG}); without it no candidate can be \
             judged. Leave the knob out of the variant, or choose another endpoint",
            endpoint(&rig, &c0)
        )
    );
}

#[test]
fn case_34_a_candidate_without_the_knob_is_not_measured_and_the_knob_is_named() {
    let mut rig = with_sys("features = [\"NO_PLACE_LAG\"]", RUN);
    let mut c = vec![rig.commit("c0", &[], FAST, &[])];
    c.push(rig.commit("c1", &[&c[0]], FAST, &[]));
    c.push(rig.commit("c2", &[&c[1]], FAST, &[("lacks", "1")]));
    c.push(rig.repo.commit("c3", &[&c[2]], &[("lacks", None), ("level", Some("92600\n"))]));
    rig.repo.run(&["update-ref", "refs/tags/c3", c[3].as_str()]);
    let said = rig.start("c0", "c3").exits(3);
    said.tells(&format!("{} knob: {NO_PLACE_LAG}", c[2].short()));
    let (_, state, _) = rig.load("s");
    let known = state.commit(&c[2]).expect("it was tried");
    let why = known.untestable.as_ref().expect("it cannot be measured");
    assert_eq!((why.kind, why.reason.as_str()), (UntestableKind::Knob, NO_PLACE_LAG));
    assert!(
        state.boots.iter().filter(|b| b.commit == c[2]).all(|b| b.runs.is_empty()),
        "no number of it counts"
    );
    let measured = state.boots.iter().flat_map(|b| &b.runs);
    assert!(
        measured.clone().count() > 0
            && measured.into_iter().all(|r| r.settings["PLACE_LAG"] == "NO_PLACE_LAG")
    );
}

#[test]
fn case_34_a_slice_that_reads_back_as_three_makes_every_run_invalid() {
    // As a script does that writes milliseconds into a file of nanoseconds.
    let writes = format!("echo 3 >$KERNEL/debug/sched/base_slice_ns; {RUN}");
    let mut rig = with_sys("base_slice_ns = \"3ms\"", &writes);
    rig.line(&[FAST, SLOW]);
    let said = rig.start("c0", "c1");
    let (reason, _) = concluded(&rig, said, 5);
    let of = rig.boot_order("s")[0].clone();
    assert_eq!(
        reason,
        format!(
            "our side broke: the endpoint {} cannot be measured (invalid output: after the run: base_slice_ns was set to \
             3000000 and reads back 3 (the file is in nanoseconds: 3 ns, not 3 ms); see what else on the SUT writes it); \
             without it no candidate can be judged. Mend the workload, or judge a metric that it prints (`sched-bisect parse` \
             shows what a log holds), or choose another endpoint",
            endpoint(&rig, &of)
        )
    );
    let (_, state, _) = rig.load("s");
    assert!(state.boots.iter().all(|b| b.runs.is_empty()), "no number of it counts");
}

#[test]
fn case_34_what_a_knob_read_back_stands_in_the_report() {
    let mut rig = with_sys("base_slice_ns = \"3ms\"", RUN);
    rig.line(&LINE);
    let said = rig.start("c0", "c4").exits(0);
    let (_, state, _) = rig.load("s");
    let runs = state.boots.iter().map(|b| b.runs.len()).sum::<usize>();
    said.tells(&format!("variant x: base_slice_ns 3000000; read back in all {runs} runs"));
}
