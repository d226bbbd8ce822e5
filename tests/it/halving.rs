//! A session of version 0.1.0 (golden/journals/halving-0.1.0: c0 to c8, slower from c5 on), whose search halved the range and
//! judged each kernel by itself: what today's program makes of it.

use crate::common::rig::{Profile, Rig, Said};
use sched_bisect::journal::{FileStorage, Journal, Record};
use sched_bisect::model::CommitId;
use sched_bisect::session::Event;
use std::path::{Path, PathBuf};

/// Levels of the range that was searched.
const LEVELS: [u32; 9] = [100_000, 100_000, 100_000, 100_000, 100_000, 92_600, 92_600, 92_600, 92_600];

/// Its name.
const NAME: &str = "halving";

/// Its records: after the plan; between two runs of the third kernel; before the confirmation; all.
const CUTS: [usize; 4] = [1, 50, 91, 124];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journals/halving-0.1.0")
}

/// The repository of the session.
fn rig() -> (Rig, Vec<CommitId>) {
    let mut rig = Rig::new(&Profile::default());
    let commits = rig.line(&LEVELS);
    (rig, commits)
}

fn lines() -> Vec<String> {
    let text = std::fs::read_to_string(golden().join("journal.jsonl")).expect("the golden journal");
    text.lines().map(str::to_owned).collect()
}

/// The session with this much of its journal; the journal's bytes.
fn put(rig: &Rig, records: usize) -> Vec<u8> {
    let dir = rig.session(NAME);
    for part in ["logs", "boots", "artifacts"] {
        std::fs::create_dir_all(dir.path().join(part)).expect("directory");
    }
    std::fs::copy(golden().join("range.json"), dir.range()).expect("copies");
    let mut bytes = lines()[..records].join("\n").into_bytes();
    bytes.push(b'\n');
    std::fs::write(dir.journal(), &bytes).expect("writes");
    bytes
}

/// The same in today's words: each record is written again.
fn put_as_of_today(rig: &Rig, records: usize) {
    put(rig, records);
    let path = rig.session(NAME).journal();
    std::fs::remove_file(&path).expect("it is there");
    let mut journal = Journal::create(FileStorage::create(&path).expect("creates")).expect("it is empty");
    for line in &lines()[..records] {
        let Record { at, mut event, .. } =
            serde_json::from_str(line).expect("today's words hold the old ones");
        if let Event::Planned { plan } = &mut event {
            plan.repository = rig.repo.path().join(".git").to_str().expect("UTF-8").to_owned();
        }
        journal.append(at, &event).expect("writes");
    }
}

#[test]
fn a_session_of_version_0_1_is_read_and_nothing_of_it_is_lost() {
    for records in CUTS {
        let (rig, c) = rig();
        let before = put(&rig, records);
        let is_kept =
            || std::fs::read(rig.session(NAME).journal()).expect("the journal").starts_with(&before);
        for command in ["status", "report", "log", "audit"] {
            rig.run(&[command, NAME]).exits(0);
            assert!(is_kept(), "{command} of {records} records has changed them");
        }
        // Its repository is elsewhere.
        let said: Said = rig.run(&["resume", NAME]);
        assert!(is_kept(), "resume of {records} records has changed them: {said:?}");
        // It does not stand in the way of another.
        rig.run(&["list"]).exits(0).tells(NAME);
        rig.start("c0", "c8").exits(0).tells(c[5].as_str());
        assert!(is_kept());
    }
}

#[test]
fn what_version_0_1_measured_and_judged_holds_in_todays_words() {
    for records in CUTS {
        let (rig, c) = rig();
        put_as_of_today(&rig, records);
        rig.run(&["status", NAME]).exits(0).tells("session halving");
        rig.run(&["audit", NAME]).exits(0).tells("0 differ");
        let (_, before, _) = rig.load(NAME);
        rig.run(&["resume", NAME]).exits(0).tells("CULPRIT").tells(c[5].as_str());
        rig.run(&["audit", NAME]).exits(0).tells("0 differ");
        // It goes on from what there is: what was measured counts, and is not measured again.
        let (_, after, _) = rig.load(NAME);
        assert!(after.boots.starts_with(&before.boots[..before.boots.len().saturating_sub(1)]));
        let of_good = after.boots.iter().filter(|b| b.commit == c[0] && b.stage == 0).count();
        assert_eq!(of_good, 3, "the endpoints were judged");
        assert!(after.boots.len() <= 21, "{} boots", after.boots.len());
    }
    let (rig, c) = rig();
    put_as_of_today(&rig, lines().len());
    let told = rig.json(NAME);
    assert_eq!(told["conclusion"]["commit"], c[5].as_str());
    rig.run(&["audit", NAME]).exits(0).tells("5 verdicts recomputed, 0 differ");
}
