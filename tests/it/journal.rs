//! Damage to a journal: what a crash leaves is cut off and told; everything else is refused, and nothing is changed.

use crate::common::live::{SESSION, Scene, Setting, files_below};
use crate::common::scripted::{Disk, Memory, Stage, commit, culprit};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sched_bisect::driver::{DriverError, End};
use sched_bisect::journal::{FORMAT_VERSION, FileStorage, Journal, JournalError, Storage, peek};
use sched_bisect::model::BootNo;
use sched_bisect::session::Event;
use std::ops::Range;

/// Seed of all that is sampled here.
const SEED: u64 = 20_240_501;

/// Where the slow commits begin in the line of a scripted session.
const SLOW_FROM: usize = 2;

/// A concluded session over five commits.
fn concluded() -> Stage {
    let stage = Stage::begin(5, SLOW_FROM, |_| {});
    assert_eq!(stage.conclude(), commit(SLOW_FROM));
    stage
}

/// Where each line of a journal stands, its line end included.
fn lines(journal: &[u8]) -> Vec<Range<usize>> {
    let ends = journal.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let ends: Vec<usize> = ends.collect();
    let begins = std::iter::once(0).chain(ends.iter().copied());
    begins.zip(&ends).map(|(begin, end)| begin..*end).collect()
}

/// Opens a journal with these bytes; fails the test if that changes anything.
fn refusal(bytes: &[u8], what: &str) -> JournalError {
    let disk = Disk::with(bytes);
    let Err(error) = Journal::open(Memory(disk.clone())) else { panic!("{what}: the journal was taken") };
    assert!(peek(&mut Memory(disk.clone())).is_err(), "{what}: the journal was read");
    assert_eq!(*disk.bytes.borrow(), bytes, "{what}: the journal was changed");
    assert!(disk.torn.borrow().is_empty(), "{what}: something was cut off");
    error
}

/// Fails the test unless a journal with these bytes is refused for the record that begins at `offset`.
fn assert_refused_at(bytes: &[u8], offset: usize, what: &str) {
    let error = refusal(bytes, what);
    let (JournalError::Damaged { offset: at, .. } | JournalError::Version { offset: at, .. }) = error else {
        panic!("{what}: {error}");
    };
    assert_eq!(at, offset as u64, "{what}");
}

fn kind(event: &Event) -> String {
    let json = serde_json::to_value(event).expect("events serialize");
    json["type"].as_str().expect("events have a type").to_owned()
}

/// Cuts the journal of a session at every byte of the middle one of its records of this kind.
fn cut_at_every_byte_of(wanted: &str) {
    let whole = concluded();
    let (bytes, records) = (whole.bytes(), whole.records());
    let of_kind: Vec<usize> = (0..records.len()).filter(|n| kind(&records[*n].event) == wanted).collect();
    let last = lines(&bytes)[of_kind[of_kind.len() / 2]].clone();
    // After one byte of the record; every other cut must lead to the same state, and so to the same end.
    let mut expected = None;
    for end in last.clone() {
        let what = format!("{wanted} cut after {} bytes", end - last.start);
        let stage = whole.with_journal(&bytes[..end]);
        let (driver, cut) = stage.take_up(0).expect(&what);
        assert_eq!(cut, (end - last.start) as u64, "{what}");
        let torn: Vec<Vec<u8>> = stage.disk.torn.borrow().clone();
        let told = stage.records().iter().filter(|r| r.event == Event::TailCut { bytes: cut }).count();
        if cut == 0 {
            assert!(torn.is_empty() && told == 0, "{what}: nothing was torn");
            continue;
        }
        assert_eq!(torn, [&bytes[last.start..end]], "{what}: the torn bytes");
        assert_eq!(told, 1, "{what}: the cut is in the journal");
        assert!(stage.bytes().starts_with(&bytes[..last.start]), "{what}: what was before");
        let state = format!("{:?}", driver.state);
        assert_eq!(expected.get_or_insert_with(|| state.clone()), &state, "{what}");
    }
    for end in [last.start, last.start + 1, last.end - 1] {
        let stage = whole.with_journal(&bytes[..end]);
        let (done, state) = stage.work().expect("the disk is sound");
        assert_eq!((done, culprit(&state)), (End::Done, Some(commit(SLOW_FROM))), "{wanted} cut at {end}");
        // Every run that was in the journal stays; the lab takes only what is missing.
        let runs = records.iter().filter(|record| kind(&record.event) == "run_finished");
        let kept = runs.filter(|record| lines(&bytes)[record.seq as usize].end <= end).count();
        let taken = stage.script.runs.borrow().len();
        assert_eq!(kept + taken, state.spent.runs as usize, "{wanted} cut at {end}");
    }
}

#[test]
fn a_torn_end_of_a_run_repeats_only_that_run() {
    cut_at_every_byte_of("run_finished");
}

#[test]
fn a_torn_end_of_a_build_repeats_only_that_build() {
    cut_at_every_byte_of("build_finished");
}

#[test]
fn a_torn_start_of_a_boot_repeats_only_that_boot() {
    cut_at_every_byte_of("boot_started");
}

#[test]
fn a_torn_verdict_is_given_again() {
    cut_at_every_byte_of("judged");
}

#[test]
fn a_torn_conclusion_is_drawn_again() {
    cut_at_every_byte_of("concluded");
}

#[test]
fn a_tail_of_zeros_as_a_power_loss_leaves_it_is_cut_off() {
    let whole = concluded();
    let bytes = whole.bytes();
    let last = lines(&bytes)[40].clone();
    for written in [0, 1, last.len() / 2, last.len() - 1] {
        let mut torn = bytes[..last.start + written].to_vec();
        torn.resize(last.end, 0);
        let stage = whole.with_journal(&torn);
        let (_, cut) = stage.take_up(0).expect("the tail is torn");
        assert_eq!(cut, last.len() as u64);
        assert_eq!(stage.conclude(), commit(SLOW_FROM));
    }
}

#[test]
fn a_second_cut_at_the_same_place_keeps_what_the_first_one_cut_off() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("journal.jsonl");
    let mut storage = FileStorage::create(&path).expect("a new file");
    for torn in ["first", "second"] {
        storage.append(b"whole\n").and_then(|()| storage.append(torn.as_bytes())).expect("writes");
        storage.cut_to(6).expect("cuts");
        assert_eq!(storage.read().expect("reads"), b"whole\n");
        storage.cut_to(0).expect("cuts");
    }
    let kept = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect(name);
    assert_eq!(kept("journal.torn-at-6"), "first");
    assert_eq!(kept("journal.torn-at-6.2"), "second");
}

#[test]
fn every_flipped_byte_of_a_middle_record_is_refused_with_its_place() {
    let bytes = concluded().bytes();
    let record = lines(&bytes)[40].clone();
    for at in record.clone() {
        for flipped in [bytes[at] ^ 0x01, bytes[at] ^ 0x20, bytes[at] ^ 0x80, b'\n', 0] {
            if flipped == bytes[at] {
                continue;
            }
            let mut damaged = bytes.clone();
            damaged[at] = flipped;
            assert_refused_at(&damaged, record.start, &format!("byte {at} is {flipped:#04x}"));
        }
    }
}

#[test]
fn flipped_bytes_anywhere_before_the_last_record_are_refused_with_their_place() {
    let bytes = concluded().bytes();
    let lines = lines(&bytes);
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    for _ in 0..300 {
        let record = lines[..lines.len() - 1].choose(&mut rng).expect("there are records").clone();
        let at = rng.random_range(record.clone());
        let mut damaged = bytes.clone();
        damaged[at] ^= rng.random_range(1..=u8::MAX);
        assert_refused_at(&damaged, record.start, &format!("seed {SEED}: byte {at} is {:#04x}", damaged[at]));
    }
}

#[test]
fn a_lost_line_end_before_the_last_record_is_refused_and_not_cut_off() {
    let bytes = concluded().bytes();
    let lines = lines(&bytes);
    let before_last = lines[lines.len() - 2].clone();
    for flipped in [0x00, 0x0b, 0x8a, b' ', b'x'] {
        let mut damaged = bytes.clone();
        damaged[before_last.end - 1] = flipped;
        assert_refused_at(&damaged, before_last.start, &format!("line end is {flipped:#04x}"));
    }
}

#[test]
fn removed_swapped_and_repeated_lines_are_refused_with_their_place() {
    let bytes = concluded().bytes();
    let lines = lines(&bytes);
    let line = |n: usize| &bytes[lines[n].clone()];
    for n in 0..lines.len() {
        let Range { start, end } = lines[n];
        if n + 1 < lines.len() {
            let removed = [&bytes[..start], &bytes[end..]].concat();
            assert_refused_at(&removed, start, &format!("line {n} is removed"));
            let rest = &bytes[lines[n + 1].end..];
            let swapped = [&bytes[..start], line(n + 1), line(n), rest].concat();
            assert_refused_at(&swapped, start, &format!("lines {n} and {} are swapped", n + 1));
        }
        let repeated = [&bytes[..end], line(n), &bytes[end..]].concat();
        assert_refused_at(&repeated, end, &format!("line {n} is repeated"));
    }
}

#[test]
fn an_empty_journal_and_garbage_are_refused() {
    let mut garbage = vec![0_u8; 4096];
    ChaCha8Rng::seed_from_u64(SEED).fill_bytes(&mut garbage);
    assert!(matches!(refusal(b"", "empty"), JournalError::Empty { bytes: 0, .. }));
    assert!(matches!(refusal(b"{\"v\":1,\"seq\":0", "torn"), JournalError::Empty { bytes: 14, .. }));
    assert_refused_at(&garbage, 0, "garbage");
    assert_refused_at(b"\n\n", 0, "empty lines");
    assert_refused_at(b"[core]\n\tbare = false\n", 0, "another file");
}

#[test]
fn a_record_of_a_newer_format_is_refused_wherever_it_stands() {
    let bytes = concluded().bytes();
    let lines = lines(&bytes);
    let newer = format!("{{\"v\":{},", FORMAT_VERSION + 1);
    for n in [0, 1, 40, lines.len() - 1] {
        let Range { start, end } = lines[n];
        let rest = &bytes[start + newer.len()..];
        let other = [&bytes[..start], newer.as_bytes(), rest].concat();
        let error = refusal(&other, &format!("line {n}"));
        let JournalError::Version { offset, found, .. } = error else { panic!("line {n}: {error}") };
        assert_eq!((offset, found), (start as u64, FORMAT_VERSION + 1));
        // Its other fields are not ours to know.
        let unknown = [&bytes[..start], newer.as_bytes(), b"\"what\":\"?\"}\n", &bytes[end..]].concat();
        assert!(matches!(refusal(&unknown, "unknown fields"), JournalError::Version { .. }));
    }
}

#[test]
fn a_record_that_does_not_fit_those_before_it_is_refused_though_its_checksum_is_right() {
    let stage = Stage::begin(5, SLOW_FROM, |_| {});
    let mut journal = Journal::open(Memory(stage.disk.clone())).expect("the journal is sound").journal;
    journal.append(0, &Event::BootEnded { boot: BootNo(7) }).expect("the disk is sound");
    let before = stage.bytes();
    match stage.take_up(0) {
        Err(DriverError::State { seq: 1, .. }) => {}
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the journal was taken"),
    }
    assert_eq!(stage.bytes(), before);
}

#[test]
fn a_torn_journal_beside_a_wrong_range_is_left_as_it_is() {
    let stage = concluded();
    let bytes = stage.bytes();
    let torn = stage.with_journal(&bytes[..bytes.len() - 5]);
    std::fs::write(torn.range(), "[]").expect("writes");
    assert!(matches!(torn.take_up(0), Err(DriverError::Range { .. })));
    assert_eq!(torn.bytes(), bytes[..bytes.len() - 5]);
    assert!(torn.disk.torn.borrow().is_empty());
}

/// A session of the real binary, stopped in the middle of a run.
fn half_done() -> Scene {
    let scene = Scene::new(Setting::default());
    scene.hold("run 5.1");
    let running = scene.start(&[]);
    scene.await_held();
    running.kill_9();
    scene.go();
    scene
}

#[test]
fn the_program_cuts_a_torn_record_off_keeps_it_and_tells() {
    let scene = half_done();
    let journal = scene.session().journal();
    let bytes = std::fs::read(&journal).expect("a journal");
    let last = lines(&bytes).pop().expect("a record");
    let torn = last.len() / 2;
    std::fs::write(&journal, &bytes[..last.start + torn]).expect("writes");
    let said = scene.resume().wait().exits(0);
    said.complains(&format!("cut off the journal ({torn} bytes)"));
    let kept = journal.with_extension(format!("torn-at-{}", last.start));
    assert_eq!(std::fs::read(kept).expect("the torn bytes"), bytes[last.start..last.start + torn]);
    let log = scene.run(&["log", SESSION]).exits(0).out;
    assert!(log.contains(&format!("a torn last record was cut off ({torn} bytes)")), "{log}");
    assert_eq!(scene.load().0.conclusion.and_then(|c| c.commit).as_ref(), Some(scene.culprit()));
}

#[test]
fn the_program_refuses_a_damaged_session_names_the_place_and_changes_nothing() {
    let scene = half_done();
    let (journal, range) = (scene.session().journal(), scene.session().range());
    let whole = std::fs::read(&journal).expect("a journal");
    let graph = std::fs::read_to_string(&range).expect("a range");
    let lines = lines(&whole);
    let middle = lines[lines.len() / 2].clone();
    let place = format!("at byte {}", middle.start);
    let mut flipped = whole.clone();
    flipped[middle.start + middle.len() / 2] ^= 0x04;
    let removed = [&whole[..middle.start], &whole[middle.end..]].concat();
    let newer = String::from_utf8(whole.clone()).expect("JSON").replace("{\"v\":1,", "{\"v\":2,");
    let other_graph = graph.replace("\"c3\"", "\"d3\"");
    let damages = [
        (&*place, flipped, Some(&graph)),
        (&*place, removed, Some(&graph)),
        ("no whole record (0 bytes)", Vec::new(), Some(&graph)),
        ("at byte 0", b"garbage\nand more\n".to_vec(), Some(&graph)),
        ("at byte 0 has format version 2", newer.into_bytes(), Some(&graph)),
        ("range.json", whole.clone(), Some(&other_graph)),
        ("range.json", whole.clone(), None),
    ];
    for (told, damaged, graph) in damages {
        std::fs::write(&journal, damaged).expect("writes");
        match graph {
            Some(graph) => std::fs::write(&range, graph).expect("writes"),
            None => std::fs::remove_file(&range).expect("removes"),
        }
        let before = (files_below(scene.session().path()), scene.users_files());
        for command in ["resume", "status", "report", "log", "audit"] {
            scene.run(&[command, SESSION]).exits(7).complains(told);
        }
        let list = scene.run(&["list"]).exits(0).out;
        assert!(list.contains("unreadable") && list.contains(told), "{list}");
        assert_eq!((files_below(scene.session().path()), scene.users_files()), before, "{told}");
    }
    std::fs::write(&journal, whole).expect("writes");
    std::fs::write(&range, graph).expect("writes");
    scene.resume().wait().exits(0);
    scene.assert_concluded(Setting::default());
}
