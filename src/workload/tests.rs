//! Every parser over recorded outputs (tests/golden/outputs/, read as in tests/golden/parse/), damaged ones and noise.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A recorded run.
#[derive(Debug, Clone)]
struct Run {
    name: String,
    parser: Parser,
    output: Output,
}

/// Parser by the start of a file's name, the longer of two first.
const NAMED: [(&str, Parser); 14] = [
    ("cyclictest", Parser::Cyclictest),
    ("fio", Parser::Fio),
    ("hackbench", Parser::Hackbench),
    ("hammerdb", Parser::HammerDb),
    ("iperf3", Parser::Iperf3),
    ("netperf", Parser::Netperf),
    ("perf-bench", Parser::PerfBench),
    ("pgbench", Parser::Pgbench),
    ("schbench", Parser::Schbench),
    ("stress-ng", Parser::StressNg),
    ("sysbench", Parser::Sysbench),
    ("unixbench", Parser::UnixBench),
    ("will-it-scale", Parser::WillItScale),
    ("number", Parser::Number),
];

/// All of them: NAME.stderr is standard error, NAME with any other end standard output.
static RUNS: LazyLock<Vec<Run>> = LazyLock::new(|| {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/outputs");
    let mut runs: BTreeMap<String, Run> = BTreeMap::new();
    for entry in std::fs::read_dir(&dir).expect("the outputs are there") {
        let path = entry.expect("can be listed").path();
        let file = path.file_name().and_then(|name| name.to_str()).expect("a plain name").to_owned();
        if file == "README.md" {
            continue;
        }
        let (stem, end) = file.rsplit_once('.').expect("a name with an end");
        let name = stem.trim_end_matches(".facts").to_owned();
        let parser = NAMED.iter().find(|(start, _)| name.starts_with(start)).map(|(_, parser)| *parser);
        let parser = parser.unwrap_or_else(|| panic!("{file} names no parser"));
        let bytes = std::fs::read(&path).expect("can be read");
        let run = runs.entry(name.clone()).or_insert(Run { name, parser, output: Output::default() });
        match end {
            "stderr" => run.output.stderr = bytes,
            _ => run.output.stdout = bytes,
        }
    }
    runs.into_values().collect()
});

fn run(name: &str) -> Run {
    RUNS.iter().find(|run| run.name == name).unwrap_or_else(|| panic!("no output {name}")).clone()
}

fn read(name: &str) -> BTreeMap<String, f64> {
    let run = run(name);
    run.parser.read(&run.output).unwrap_or_else(|invalid| panic!("{name}: {invalid}")).values().clone()
}

fn reason(name: &str) -> String {
    let run = run(name);
    match run.parser.read(&run.output) {
        Ok(metrics) => panic!("{name} was read as {metrics:?}"),
        Err(invalid) => invalid.reason,
    }
}

/// What a snapshot shows.
fn shown(run: &Run) -> String {
    let mut text = format!("parser {}\n", run.parser);
    match run.parser.read(&run.output) {
        Err(invalid) => writeln!(text, "INVALID: {invalid}").expect("text takes it"),
        Ok(metrics) => {
            for (name, value) in metrics.values() {
                let declared = run.parser.declared(name).unwrap_or_else(|| panic!("{name} is not declared"));
                let direction = declared.direction.map_or("neither".to_owned(), |d| d.to_string());
                writeln!(text, "{name} = {value} [{}], {direction}", declared.unit).expect("text takes it");
            }
            for note in metrics.notes() {
                writeln!(text, "note: {note}").expect("text takes it");
            }
        }
    }
    text
}

#[test]
fn each_recorded_output_is_read_as_it_was() {
    for run in RUNS.iter() {
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/parse"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, { insta::assert_snapshot!(run.name.clone(), shown(run)); });
    }
}

/// What each parser reads of an output, where it reads anything.
fn read_by_all(output: &Output) -> String {
    let mut text = String::new();
    for parser in Parser::ALL.into_iter().filter(|parser| !parser.is_told()) {
        if let Ok(metrics) = parser.read(output) {
            writeln!(text, "    {parser}: {:?}", metrics.values()).expect("text takes it");
        }
    }
    if text.is_empty() { "    no parser reads it\n".to_owned() } else { text }
}

#[test]
fn outputs_of_programs_that_are_no_benchmark_are_not_taken_for_one() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/foreign");
    let entries = std::fs::read_dir(&dir).expect("the outputs are there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("can be listed").path()).collect();
    files.sort();
    let shown = |path: &PathBuf| {
        let output = Output { stdout: std::fs::read(path).expect("can be read"), ..Output::default() };
        format!("{}\n{}", path.file_name().unwrap_or_default().display(), read_by_all(&output))
    };
    insta::with_settings!({
        snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/parse"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!("foreign", files.iter().map(shown).collect::<String>()); });
}

#[test]
fn case_63_numbers_behind_a_terminals_line_ends_are_read_the_same() {
    for recorded in RUNS.iter() {
        let mut output = recorded.output.clone();
        for stream in [&mut output.stdout, &mut output.stderr] {
            *stream = String::from_utf8_lossy(stream).replace('\n', "\r\n").into_bytes();
        }
        let values = |output| recorded.parser.read(output).ok().map(|metrics| metrics.values().clone());
        assert_eq!(values(&output), values(&recorded.output), "{}", recorded.name);
    }
}

#[test]
fn every_parser_of_a_benchmark_has_recorded_outputs() {
    let seen: BTreeSet<&str> = RUNS.iter().map(|run| run.parser.name()).collect();
    for parser in Parser::ALL.into_iter().filter(|parser| !parser.is_told()) {
        assert!(seen.contains(parser.name()), "{parser}");
    }
}

#[test]
fn every_parser_is_found_by_its_name_and_no_other() {
    for parser in Parser::ALL {
        assert_eq!(Parser::named(parser.name()), Some(parser));
        assert_eq!(Parser::nearest(parser.name()), Some(parser));
        assert!(!parser.metrics().is_empty(), "{parser}");
    }
    assert_eq!(Parser::named("Hackbench"), None);
    assert_eq!(Parser::nearest("Hackbensh"), Some(Parser::Hackbench));
    assert_eq!(Parser::nearest("xyz"), None);
}

/// The tables of docs/parsers.md.
fn documented() -> String {
    let mut text = String::new();
    let cell = |text: &str| text.replace('|', "\\|");
    for parser in Parser::ALL {
        write!(text, "\n## {parser}\n\n{}.\n\n", parser.reads()).expect("text takes it");
        text.push_str("| metric | unit | better | what |\n|---|---|---|---|\n");
        for declared in parser.metrics() {
            let better = match declared.direction {
                Some(crate::model::Direction::Higher) => "higher",
                Some(crate::model::Direction::Lower) => "lower",
                None => "-",
            };
            let (name, unit, about) = (cell(declared.name), cell(declared.unit), cell(declared.about));
            writeln!(text, "| `{name}` | {unit} | {better} | {about} |").expect("text takes it");
        }
    }
    text
}

#[test]
fn the_documentation_lists_what_the_parsers_declare() {
    /// Where the tables begin.
    const MARK: &str = "<!-- below: written by the test the_documentation_lists_what_the_parsers_declare under SB_WRITE_DOCS=1 -->\n";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/parsers.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (head, tables) = page.split_once(MARK).expect("it has the mark");
    if std::env::var_os("SB_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{MARK}{}", documented())).expect("can be written");
    } else {
        assert_eq!(tables, documented(), "run the test with SB_WRITE_DOCS=1");
    }
}

#[test]
fn numbers_of_a_failed_run_are_not_read() {
    for recorded in RUNS.iter() {
        let output = Output { status: 1, ..recorded.output.clone() };
        let reason = recorded.parser.read(&output).expect_err("it failed").reason;
        assert!(reason.starts_with("exit status 1"), "{}: {reason}", recorded.name);
    }
}

#[test]
fn a_judged_metric_that_is_missing_is_named_beside_what_was_seen() {
    let recorded = run("pgbench-C");
    let reason = recorded.parser.parse("tps", &recorded.output).expect_err("with -C there is none").reason;
    assert!(reason.starts_with("no metric \"tps\" in it; seen: average_connection_ms, "), "{reason}");
    let recorded = run("hammerdb-timing-incomplete");
    let reason = recorded.parser.parse("neword_p99_ms", &recorded.output).expect_err("no profile").reason;
    assert!(reason.contains("Timing Data Incomplete"), "{reason}");
    assert_eq!(recorded.parser.parse("nopm", &recorded.output).map(|m| m["nopm"]), Ok(982_525.0));
}

#[test]
fn hammerdb_reads_either_order_and_both_layouts_of_the_profile() {
    let first = read("hammerdb-tpm-first");
    assert_eq!((first["nopm"], first["tpm"]), (982_525.0, 2_259_810.0));
    let old = read("hammerdb-4.12-xtprofile");
    assert_eq!((old["neword_p50_ms"], old["neword_p99_ms"], old["neword_sd"]), (9.231, 22.097, 4654.787));
    assert!(!old.contains_key("neword_p75_ms") && !old.contains_key("neword_sd_ms"));
    let new = read("hammerdb-6.0-result-and-profile");
    assert_eq!((new["neword_p50_ms"], new["nopm"]), (9.231, 12474.0), "P75 stands where P50 was");
    assert!(
        new.contains_key("neword_p75_ms")
            && new.contains_key("neword_sd_ms")
            && !new.contains_key("neword_sd")
    );
    let job = read("hammerdb-4.12-job-results");
    assert_eq!((job["nopm"], job["ostat_p99_ms"]), (12474.0, 15.32));
}

#[test]
fn a_time_profile_of_another_run_is_not_this_runs() {
    let mut recorded = run("hammerdb-tpm-first");
    recorded.output.stdout.extend(run("hammerdb-4.12-xtprofile").output.stdout);
    let metrics = recorded.parser.read(&recorded.output).expect("the result is there");
    assert_eq!(metrics.values().len(), 2, "64 users ran, the summary is of 4");
    assert!(metrics.notes()[0].contains("another number of virtual users"), "{:?}", metrics.notes());
    let mut appended = run("hammerdb-4.12-xtprofile");
    let older =
        String::from_utf8(appended.output.stdout.clone()).expect("text").replace("22.097ms", "99.9ms");
    appended.output.stdout.splice(0..0, older.into_bytes());
    assert_eq!(
        appended.parser.parse("neword_p99_ms", &appended.output).map(|m| m["neword_p99_ms"]),
        Ok(22.097)
    );
}

#[test]
fn marks_of_a_broken_run_make_it_invalid_with_the_reason() {
    for (name, mark) in [
        ("hackbench-killed", "ended before it was done"),
        ("hammerdb-user-failed", "FINISHED FAILED"),
        ("hammerdb-wrapped", "wrapped"),
        ("hammerdb-4.12-buildschema", ""),
        ("sysbench-forced-shutdown", "FATAL"),
        ("sysbench-killed", "no final block"),
        ("sysbench-prepare", "no final block"),
        ("schbench-killed", "cut short"),
        ("stress-ng-not-implemented", "will be skipped"),
        ("pgbench-init", "no \"tps =\""),
        ("pgbench-aborted", "some clients aborted"),
        ("netperf-no-server", "netserver"),
        ("iperf3-no-server", "unable to connect to server: Connection refused"),
        ("fio-error", "0 operations"),
        ("fio-numjobs", "group_reporting"),
        ("will-it-scale-cut", "average"),
        ("will-it-scale-half", "Assertion"),
    ] {
        let reason = reason(name);
        assert!(reason.contains(mark), "{name}: {reason}");
    }
}

#[test]
fn marks_within_a_sound_output_make_it_invalid() {
    for (name, sound, broken) in [
        ("stress-ng-switch", "successful run completed", "metrics untrustworthy: 1"),
        ("stress-ng-switch", "successful run completed", "failed: 2: switch (2)"),
        ("stress-ng-switch", "successful run completed", "unsuccessful run completed"),
        ("stress-ng-switch", "1581267 ", "      0 "),
        ("cyclictest-json", "\"return_code\": 0", "\"return_code\": 1"),
        ("cyclictest", "C:    500", "C:      0"),
        ("fio-randread", "\"error\" : 0", "\"error\" : 5"),
        ("sysbench-oltp_read_only", "total number of events:              4032", "total number of events: 0"),
        ("pgbench-tpcb", "actually processed: 6828", "actually processed: 0"),
        ("will-it-scale-binary", "average:203167", "average:0"),
        ("netperf-tcp-stream", "36012.34", "0.00"),
        ("schbench-2021", "29801 total", "0 total"),
        ("perf-bench-sched-pipe", "0.231", "0.000"),
        ("iperf3-tcp", "18951807760.207226", "0"),
    ] {
        let mut recorded = run(name);
        for stream in [&mut recorded.output.stdout, &mut recorded.output.stderr] {
            *stream = String::from_utf8_lossy(stream).replace(sound, broken).into_bytes();
        }
        assert_ne!(recorded.output, run(name).output, "{name} has no {sound}");
        let read = recorded.parser.read(&recorded.output);
        assert!(read.is_err(), "{name} with {broken:?} was read as {read:?}");
    }
}

#[test]
fn labels_are_read_wherever_their_lines_stand() {
    // Only the last set of an interval output counts, and interval lines do not.
    assert_eq!(read("schbench-2020")["latency_p99_us"], 41.0);
    assert_eq!(
        read("schbench")["sched_delay_message_us"],
        8.0,
        "the last before the end, where it is always 0"
    );
    assert_eq!(read("sysbench-oltp_read_write")["tps"], 1135.07);
    assert_eq!(read("pgbench-12")["tps"], 1709.897849, "neither the other definition nor that of one script");
    let (text, yaml) = (read("stress-ng-switch"), read("stress-ng-two"));
    assert_eq!(text["switch.nanosecs-per-context-switch-pipe-method"], 3831.12);
    assert!(yaml.contains_key("switch.nanosecs-per-context-switch-pipe-method"), "one name in both forms");
    let both = read("netperf-udp-stream");
    assert_eq!((both["sent_mbit_per_s"], both["received_mbit_per_s"]), (25269.70, 25249.11));
    assert_eq!(read("netperf-tcp-rr-latency")["usecs_per_transaction"], 40.247);
    let unixbench = read("unixbench-two-cpus");
    assert!(unixbench["copies1.index_score"] < unixbench["copies2.index_score"]);
    assert!(!read("unixbench-partial").contains_key("copies2.index_score"));
    let all = read("perf-bench-sched-all");
    assert_eq!((all["messaging_time_s"], all["pipe_time_s"]), (1.25, 3.801));
}

#[test]
fn a_percentile_beyond_the_histogram_does_not_exist() {
    let narrow = read("cyclictest-hist");
    assert!(!narrow.contains_key("p99") && !narrow.contains_key("p50"), "all samples but one overflowed");
    assert_eq!((narrow["overflows"], narrow["max"]), (999.0, 3081.0));
    let wide = read("cyclictest-hist-wide");
    assert!(wide["p50"] < wide["p99"] && wide["p99"] < wide["max"]);
}

/// A cut run of these is a shorter one: nothing at its end says that it is whole.
fn ends_anywhere(run: &Run) -> bool {
    run.parser == Parser::Cyclictest || run.name.starts_with("schbench-20")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_cut_output_gives_no_other_value_than_the_whole_one(at in any::<prop::sample::Index>(), share in 0.0..1.0f64) {
        let recorded = at.get(&RUNS);
        let mut output = recorded.output.clone();
        for stream in [&mut output.stdout, &mut output.stderr] {
            stream.truncate((stream.len() as f64 * share) as usize);
        }
        if let (Ok(cut), false) = (recorded.parser.read(&output), ends_anywhere(recorded)) {
            let whole = recorded.parser.read(&recorded.output).map(|metrics| metrics.values().clone()).unwrap_or_default();
            for (name, value) in cut.values() {
                // A run whose mark of being broken was cut off has values of its own.
                prop_assert!(whole.is_empty() || whole.get(name) == Some(value), "{}: {name} {value}", recorded.name);
            }
        }
    }

    #[test]
    fn no_damage_to_a_recorded_output_makes_a_parser_panic(
        at in any::<prop::sample::Index>(),
        doubled in any::<bool>(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        gone in (any::<prop::sample::Index>(), 0..200usize),
    ) {
        let recorded = at.get(&RUNS);
        let mut output = recorded.output.clone();
        for stream in [&mut output.stdout, &mut output.stderr] {
            if stream.is_empty() {
                continue;
            }
            for (place, byte) in &flips {
                let place = place.index(stream.len());
                stream[place] = *byte;
            }
            let from = gone.0.index(stream.len());
            let until = (from + gone.1).min(stream.len());
            stream.drain(from..until);
            if doubled {
                stream.extend_from_within(..);
            }
        }
        for parser in Parser::ALL {
            if let Ok(metrics) = parser.read(&output) {
                for (name, value) in metrics.values() {
                    prop_assert!(value.is_finite(), "{name}");
                    prop_assert!(parser.declared(name).is_some() || parser.is_told(), "{parser}: {name} is not declared");
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_a_parser_panic_or_report_a_value_that_is_not_finite(
        stdout in proptest::collection::vec(any::<u8>(), 0..300),
        stderr in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let output = Output { stdout, stderr, status: 0 };
        for parser in Parser::ALL {
            if let Ok(metrics) = parser.parse("m", &output) {
                prop_assert!(metrics.values().all(|value| value.is_finite()));
            }
        }
    }

    #[test]
    fn no_text_near_the_real_one_makes_a_parser_panic(
        head in "[a-zA-Z: \r\n]{0,20}", value in "[-+0-9.eEinfNa]{0,12}", tail in "(\r?\n|\\PC{0,20})",
    ) {
        let stdout = format!("{head}Time: {value}{tail}").into_bytes();
        let output = Output { stdout, stderr: Vec::new(), status: 0 };
        for parser in Parser::ALL {
            if let Ok(metrics) = parser.parse("m", &output) {
                prop_assert!(metrics.values().all(|value| value.is_finite()));
            }
        }
    }
}
