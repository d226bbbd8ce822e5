//! Beginning a session, taking one up again, reading one.

use super::store::{io, sync_dir, write_synced};
use super::{Clock, Driver, DriverError, SessionDir, StateRoot};
use crate::journal::{self, FileStorage, Journal, Loaded, Lock, Record, Storage};
use crate::lab::process::end_leftovers;
use crate::model::{BootNo, StepId};
use crate::search::Dag;
use crate::session::{BootStatus, Event, Plan, State};

/// Begin of the name of a session that is being made.
const HALF_MADE: &str = ".making-";

/// Digest of a graph, for the plan: blake3 of its JSON, hex.
pub fn range_digest(dag: &Dag) -> String {
    blake3::hash(&range_bytes(dag)).to_hex().to_string()
}

fn range_bytes(dag: &Dag) -> Vec<u8> {
    serde_json::to_vec(dag).expect("a graph is plain data with string keys")
}

/// Begins a session: its directory appears whole, with record 0 in its journal, or not at all.
pub fn create(
    root: &StateRoot,
    plan: Plan,
    dag: Dag,
    clock: Box<dyn Clock>,
) -> Result<(Driver<FileStorage>, Lock), DriverError> {
    let dir = root.session(&plan.session);
    let exists = || DriverError::Exists { name: plan.session.clone(), path: dir.path().to_owned() };
    if dir.path().exists() {
        return Err(exists());
    }
    std::fs::create_dir_all(root.path()).map_err(io(root.path()))?;
    // One creation at a time, so that what a killed one left can be told from one that goes on.
    let creating = Lock::wait(root.path())?;
    let making = half_made(root)?;
    let temporary = SessionDir::at(making.path().to_owned());
    temporary.make()?;
    write_synced(&temporary.range(), &range_bytes(&dag))?;
    let mut journal = Journal::create(FileStorage::create(&temporary.journal())?)?;
    journal.append(clock.now_ms(), &Event::Planned { plan: Box::new(plan.clone()) })?;
    let lock = Lock::take(temporary.path())?;
    sync_dir(temporary.path())?;
    if dir.path().exists() {
        return Err(exists());
    }
    std::fs::rename(making.path(), dir.path()).map_err(io(dir.path()))?;
    let _ = making.keep();
    drop(creating);
    sync_dir(root.path())?;
    // The writer knew the file by its old path; messages are to name the new one.
    let loaded = Journal::open(FileStorage::open(&dir.journal())?)?;
    let mut driver = Driver::new(dag, State::new(plan), dir, loaded.journal, clock);
    driver.record(&opened(0))?;
    Ok((driver, lock))
}

/// A directory for a session that is being made; what a killed one left goes. Whoever asks holds the root's lock.
pub(super) fn half_made(root: &StateRoot) -> Result<tempfile::TempDir, DriverError> {
    discard_half_made(root)?;
    tempfile::Builder::new().prefix(HALF_MADE).tempdir_in(root.path()).map_err(io(root.path()))
}

fn discard_half_made(root: &StateRoot) -> Result<(), DriverError> {
    for entry in std::fs::read_dir(root.path()).map_err(io(root.path()))? {
        let path = entry.map_err(io(root.path()))?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(HALF_MADE)) {
            std::fs::remove_dir_all(&path).map_err(io(&path))?;
        }
    }
    Ok(())
}

/// Takes a session up: reads, verifies, folds, ends what an earlier process left, and marks what was interrupted.
/// Gives the driver, the session's lock, and the bytes of a torn last record that was cut off.
pub fn resume(
    dir: SessionDir,
    more_budget_s: u64,
    clock: Box<dyn Clock>,
) -> Result<(Driver<FileStorage>, Lock, u64), DriverError> {
    if dir.imported().exists() {
        return Err(DriverError::Imported { name: dir.name() });
    }
    let lock = Lock::take(dir.path())?;
    let storage = FileStorage::open(&dir.journal())?;
    let (driver, cut) = take_up(dir, storage, more_budget_s, clock)?;
    Ok((driver, lock, cut))
}

/// What [`resume`] does once it holds the lock, for a journal in any storage.
pub fn take_up<S: Storage>(
    dir: SessionDir,
    mut storage: S,
    more_budget_s: u64,
    clock: Box<dyn Clock>,
) -> Result<(Driver<S>, u64), DriverError> {
    // Everything is verified before anything is changed, the torn tail included.
    let (dag, state) = fold(&dir, &journal::peek(&mut storage)?)?;
    let Loaded { journal, cut, .. } = Journal::open(storage)?;
    let mut driver = Driver::new(dag, state, dir, journal, clock);
    if cut > 0 {
        driver.record(&Event::TailCut { bytes: cut })?;
    }
    if driver.state.conclusion.is_none() {
        // Who cleared logs away to make room may still go on.
        driver.dir.make()?;
        let path = driver.dir.path().to_owned();
        end_leftovers(&path).map_err(io(&path))?;
        driver.record(&opened(more_budget_s))?;
        let open: Vec<StepId> = driver.state.open.keys().copied().collect();
        for step in open {
            driver.record(&Event::StepInterrupted { step })?;
        }
        while let Some(boot) = live_boot(&driver.state) {
            driver.record(&Event::BootEnded { boot })?;
        }
    }
    Ok((driver, cut))
}

/// Reads a session without touching it.
pub fn load(dir: &SessionDir) -> Result<(Dag, State, Vec<Record>), DriverError> {
    let records = journal::peek(&mut FileStorage::read_only(&dir.journal())?)?;
    let (dag, state) = fold(dir, &records)?;
    Ok((dag, state, records))
}

fn opened(more_budget_s: u64) -> Event {
    Event::Opened { tool_version: env!("CARGO_PKG_VERSION").to_owned(), more_budget_s }
}

/// A boot that is not over.
pub(super) fn live_boot(state: &State) -> Option<BootNo> {
    state.boots.iter().find(|b| b.status != BootStatus::Ended).map(|b| b.boot)
}

fn fold(dir: &SessionDir, records: &[Record]) -> Result<(Dag, State), DriverError> {
    let mut records = records.iter();
    let Some(Record { event: Event::Planned { plan }, .. }) = records.next() else {
        return Err(DriverError::Range {
            path: dir.journal(),
            reason: "its first record is not the plan of a session".to_owned(),
        });
    };
    let dag = read_range(dir, plan)?;
    let mut state = State::new((**plan).clone());
    for record in records {
        state.apply(record.at, &record.event).map_err(|source| DriverError::State {
            path: dir.journal(),
            seq: record.seq,
            source,
        })?;
    }
    Ok((dag, state))
}

fn read_range(dir: &SessionDir, plan: &Plan) -> Result<Dag, DriverError> {
    let path = dir.range();
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let reason = "the graph of the range is not there".to_owned();
            return Err(DriverError::Range { path, reason });
        }
        read => read.map_err(io(&path))?,
    };
    if blake3::hash(&bytes).to_hex().as_str() != plan.range_digest {
        let reason =
            "the graph of the range is not the one the plan was made with (its hash differs)".to_owned();
        return Err(DriverError::Range { path, reason });
    }
    serde_json::from_slice(&bytes).map_err(|e| DriverError::Range { path, reason: e.to_string() })
}
