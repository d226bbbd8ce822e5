//! `status --watch`: a session followed from another terminal, by its journal, without its lock. Tested in tests/it/live.rs.

use super::args::Place;
use super::{CliError, exit, print, root, session};
use crate::driver::{self, Clock, SessionDir, SystemClock};
use crate::journal::Holder;
use crate::profile::parse_duration;
use crate::report::{Area, Live, On, is_verdict, status};
use crate::search::Dag;
use crate::session::State;
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// `status --watch`. Ends when the session concludes, or by Ctrl-C.
pub(super) fn run(place: &Place, name: Option<&str>, interval: &str) -> Result<u8, CliError> {
    let pause = parse_duration(interval).map_err(|e| CliError::Usage(format!("use --interval: {e}")))?;
    let mut pause = Pause::new(Duration::from_secs(pause.max(1)))
        .map_err(|source| CliError::Io { what: "listen for signals".to_owned(), source })?;
    let mut watched = Watched::new(session(&root(place)?, name)?);
    let mut area = std::io::stdout().is_terminal().then(|| Area::start(On::Stdout, false));
    let mut shown = String::new();
    loop {
        let (dag, state) = watched.look()?;
        if state.conclusion.is_some() {
            drop(area.take());
            print(&status(dag, state))?;
            return Ok(exit::DONE);
        }
        match &mut area {
            Some(area) => area.set(&watched.lines(Some(SystemClock.now_ms()))),
            None => {
                let block = block(&watched.lines(None));
                // A reader that went away is nobody to watch for.
                if block != shown && !watched.tell(&block, shown.is_empty())? {
                    return Ok(exit::DONE);
                }
                shown = block;
            }
        }
        if !pause.take() {
            return Ok(exit::DONE);
        }
    }
}

/// The time between two looks.
struct Pause {
    runtime: Runtime,
    interrupt: Signal,
    length: Duration,
}

impl Pause {
    fn new(length: Duration) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let interrupt = runtime.block_on(async { signal(SignalKind::interrupt()) })?;
        Ok(Self { runtime, interrupt, length })
    }

    /// Whether it passed without Ctrl-C.
    fn take(&mut self) -> bool {
        let Self { runtime, interrupt, length } = self;
        runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(*length) => true,
                _ = interrupt.recv() => false,
            }
        })
    }
}

fn block(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "{line}");
        all
    })
}

/// A session that is watched.
struct Watched {
    dir: SessionDir,
    live: Live,
    length: u64,
    told: usize,
    seen: Option<(Dag, State)>,
}

impl Watched {
    fn new(dir: SessionDir) -> Self {
        Self { dir, live: Live::default(), length: 0, told: 0, seen: None }
    }

    /// Reads the journal again if it has grown.
    fn look(&mut self) -> Result<&(Dag, State), CliError> {
        let path = self.dir.journal();
        let length = path.metadata().map(|file| file.len());
        let length =
            length.map_err(|source| CliError::Io { what: format!("look at {}", path.display()), source })?;
        if self.seen.is_none() || length != self.length {
            let (dag, state, records) = driver::load(&self.dir)?;
            let new = records.get(self.told..).unwrap_or_default();
            new.iter().for_each(|record| drop(self.live.see(record)));
            if new.iter().any(|record| is_verdict(&record.event)) {
                self.live.look_ahead(&dag, &state);
            }
            (self.told, self.length, self.seen) = (records.len(), length, Some((dag, state)));
        }
        Ok(self.seen.as_ref().expect("it was just read"))
    }

    fn lines(&self, now_ms: Option<i64>) -> Vec<String> {
        let Some((_, state)) = &self.seen else { return Vec::new() };
        let resume = format!("`sched-bisect resume {}` goes on", self.dir.name());
        let who = match Holder::of(self.dir.path()) {
            Holder::Process(pid) => Some(format!("process {pid} works on it")),
            Holder::Nobody => Some(format!("no process of this host works on it; {resume}")),
            Holder::Unknown => None,
        };
        let mut lines = self.live.lines(state, now_ms);
        lines.insert(
            1,
            format!(
                "{:<10}{}{}",
                "session",
                self.dir.name(),
                who.map_or_else(String::new, |who| format!(": {who}"))
            ),
        );
        lines
    }

    /// Prints a block; whether there is somebody to read it.
    fn tell(&self, block: &str, is_first: bool) -> Result<bool, CliError> {
        use std::io::{ErrorKind, Write};
        let gap = if is_first { "" } else { "\n" };
        let mut out = std::io::stdout();
        match write!(out, "{gap}{block}").and_then(|()| out.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(source) => Err(CliError::Io { what: "write to standard output".to_owned(), source }),
        }
    }
}
