//! `parse`, with the real binary; and a session whose run command prints what a benchmark prints.

use crate::common::rig::{Profile, Rig, Said, command_in, said};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn output(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/outputs").join(name)
}

/// In a directory that is no repository: none is needed.
fn parse(args: &[&str]) -> Said {
    let dir = TempDir::new().expect("a directory");
    let mut all = vec!["parse"];
    all.extend(args);
    said(&command_in(dir.path(), &all).output().expect("the program runs"))
}

fn path(name: &str) -> String {
    output(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn the_judged_metric_comes_first_and_the_others_are_also_seen() {
    let said = parse(&["sysbench", &path("sysbench-cpu.txt"), "--metric", "latency_p95_ms"]).exits(0);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].starts_with("latency_p95_ms") && lines[0].ends_with("4.49  lower   ms"), "{}", said.out);
    assert_eq!(lines[1], "also seen:");
    assert!(said.out.contains("events_per_s") && said.err.is_empty(), "{}{}", said.out, said.err);
    let all = parse(&["sysbench", &path("sysbench-cpu.txt")]).exits(0);
    assert!(!all.out.contains("also seen") && all.out.lines().count() == lines.len() - 1, "{}", all.out);
}

#[test]
fn json_has_value_unit_and_direction_or_the_reason() {
    let read = parse(&["perf-bench", &path("perf-bench-sched-pipe.txt"), "--format", "json"]).exits(0);
    let read: Value = serde_json::from_str(&read.out).expect("JSON");
    assert_eq!(read["metrics"]["pipe_ops_per_s"]["value"], 216_124.0);
    assert_eq!(read["metrics"]["pipe_ops_per_s"]["direction"], "higher");
    assert_eq!(read["metrics"]["pipe_usecs_per_op"]["unit"], "us/op");
    let broken = parse(&["iperf3", &path("iperf3-no-server.json"), "--format", "json"]).exits(11);
    let broken: Value = serde_json::from_str(&broken.out).expect("JSON");
    assert!(
        broken["invalid"].as_str().is_some_and(|reason| reason.contains("Connection refused")),
        "{broken}"
    );
}

#[test]
fn an_invalid_run_exits_11_with_the_reason_on_standard_error() {
    let said = parse(&["hackbench", &path("hackbench-killed.txt")]).exits(11);
    assert!(said.out.is_empty() && said.err.starts_with("invalid run: hackbench was ended"), "{}", said.err);
    let said = parse(&["pgbench", &path("pgbench-C.txt"), "--metric", "tps"]).exits(11);
    assert!(said.err.contains("no metric \"tps\" in it; seen: average_connection_ms"), "{}", said.err);
    let said = parse(&["hackbench", &path("hackbench-process.txt"), "--status", "1"]).exits(11);
    assert!(said.err.contains("exit status 1"), "{}", said.err);
    // The mark is on the other stream.
    let sound = path("hackbench-process.txt");
    parse(&["hackbench", &sound, "--stderr", &path("hackbench-killed.stderr")]).exits(11);
    parse(&["hackbench", &sound]).exits(0);
}

#[test]
fn what_the_user_got_wrong_exits_2_and_says_what_helps() {
    let said = parse(&["sysbensh", &path("sysbench-cpu.txt")]).exits(2);
    assert!(said.err.contains("did you mean sysbench?"), "{}", said.err);
    let said = parse(&["xyz", "-"]).exits(2);
    assert!(said.err.contains("there are number, json"), "{}", said.err);
    let said = parse(&["sysbench", "/nowhere/x"]).exits(2);
    assert!(said.err.contains("read /nowhere/x: No such file"), "{}", said.err);
    let said = parse(&["regex", &path("sysbench-cpu.txt"), "--regex", "(?P<x>["]).exits(2);
    assert!(said.err.contains("is no regular expression"), "{}", said.err);
    parse(&["regex", &path("sysbench-cpu.txt")]).exits(11);
}

#[test]
fn anything_else_is_read_by_pointer_group_and_column() {
    let said = parse(&["json", &path("fio-randread.json"), "--metric", "/jobs/0/read/iops"]).exits(0);
    assert!(said.out.starts_with("/jobs/0/read/iops") && said.out.contains("14708.29"), "{}", said.out);
    let pattern = r"events per second:\s+(?P<eps>[0-9.]+)";
    let said = parse(&["regex", &path("sysbench-cpu.txt"), "--regex", pattern]).exits(0);
    assert!(said.flat().starts_with("eps 2029.28"), "{}", said.out);
    let table = path("will-it-scale-runtest.facts.txt");
    let said = parse(&["csv", &table, "--row", "tasks=2", "--metric", "threads"]).exits(0);
    assert!(said.flat().starts_with("threads 355090"), "{}", said.out);
}

#[test]
fn parsers_and_their_metrics_are_listed_without_an_output() {
    assert_eq!(parse(&[]).exits(0).out.lines().count(), 17);
    let said = parse(&["schbench"]).exits(0);
    said.tells("wakeup_latency_p{P}_us lower us").tells("rps_average higher requests/s");
    let declared: Value =
        serde_json::from_str(&parse(&["hackbench", "--format", "json"]).exits(0).out).expect("JSON");
    assert_eq!(declared["declares"][0]["direction"], "lower");
}

#[test]
fn standard_input_is_an_output_too() {
    let dir = TempDir::new().expect("a directory");
    let mut command = command_in(dir.path(), &["parse", "number", "-", "--metric", "tps"]);
    let file = dir.path().join("in");
    std::fs::write(&file, "warm\n12.5\n").expect("writes");
    command.stdin(std::fs::File::open(&file).expect("opens"));
    let said = said(&command.output().expect("the program runs")).exits(0);
    assert!(said.flat().starts_with("tps 12.5"), "{}", said.out);
}

/// Prints what pgbench does, at 10 transactions a second a level.
const PGBENCH: &str = "read -r l < level; n=$((l * 10 + SB_BOOT * 7 % 11 - 5)); \
    printf 'progress: 1.0 s, 1.0 tps, lat 1 ms stddev 1\\n' >&2; \
    printf 'number of transactions actually processed: 600\\nlatency average = %d.5 ms\\n' $((90000 / n)); \
    printf 'tps = %d.25 (without initial connection time)\\n' $n";

#[test]
fn a_session_judges_what_its_parser_reads_and_shows_what_else_was_seen() {
    let mut rig = Rig::new(&Profile::default());
    let c = rig.line(&[100, 100, 100, 90, 90]);
    let said =
        rig.run(&["start", "c0", "c4", "--run", PGBENCH, "--parser", "pgbench", "--metric", "tps"]).exits(0);
    said.tells("(\"c3\") is the regression").tells("tps [transactions/s], higher is better");
    said.tells("also seen latency_avg_ms");
    let json = rig.json("c0..c4");
    assert_eq!(json["conclusion"]["commit"], c[3].as_str());
    let (_, state, _) = rig.load("c0..c4");
    assert_eq!(state.plan.recipe.reading.parser, "pgbench");
    let refused =
        rig.run(&["start", "c0", "c4", "--run", PGBENCH, "--parser", "pgbench", "--metric", "nopm"]).exits(2);
    assert!(refused.err.contains("does not report the metric \"nopm\""), "{}", refused.err);
}
