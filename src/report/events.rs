//! A session's events as JSON lines, for programs.
//!
//! First the journal so far, then each event as it is durable: the same records, so that who reads them can fold them from
//! record 0 whatever the command was. A thread of its own writes: a reader that is slow, stands still or goes away never
//! holds a session up. docs/events.md is the description for readers. Tested in tests/it/telling.rs.

use super::{Reporter, say};
use crate::journal::Record;
use crate::search::Dag;
use crate::session::State;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long the reader gets at the end for what it has not taken yet.
const LAST_LINES: Duration = Duration::from_secs(10);

/// The last line: that nothing follows, and what the process exits with.
#[derive(Debug, Serialize)]
pub struct EndLine<'a> {
    /// "end"; no record has this key.
    pub r#type: &'static str,
    /// Session.
    pub session: &'a str,
    /// Exit status of the process.
    pub exit: u8,
    /// Kind of conclusion; "stopped" where there is none yet.
    pub conclusion: String,
    /// What it came to, in words.
    pub summary: String,
}

/// Where the lines go.
#[derive(Debug)]
pub struct EventLines {
    lines: Sender<Vec<u8>>,
    written: Receiver<()>,
}

/// The part of it that listens to a driver.
#[derive(Debug)]
pub struct EventReporter(Sender<Vec<u8>>);

impl EventLines {
    /// Begins with these lines.
    pub fn start(out: impl Write + Send + 'static, so_far: Vec<u8>) -> io::Result<Self> {
        let (lines, to_write) = channel::<Vec<u8>>();
        let (done, written) = channel();
        std::thread::Builder::new().name("events".to_owned()).spawn(move || {
            write_all(out, &to_write);
            // Nobody waits any more where this fails.
            let _ = done.send(());
        })?;
        let events = Self { lines, written };
        events.send(so_far);
        Ok(events)
    }

    /// A reporter for a driver.
    pub fn reporter(&self) -> EventReporter {
        EventReporter(self.lines.clone())
    }

    /// Writes the last line, once every reporter of this is gone.
    pub fn end(self, last: &EndLine<'_>) {
        self.send(line(last));
        drop(self.lines);
        if self.written.recv_timeout(LAST_LINES) == Err(RecvTimeoutError::Timeout) {
            say("warning: the reader of --json-events does not take the last lines; they are left");
        }
    }

    fn send(&self, bytes: Vec<u8>) {
        // Fails when the reader is gone, which was said.
        let _ = self.lines.send(bytes);
    }
}

impl Reporter for EventReporter {
    fn on_event(&mut self, record: &Record, _: &State, _: &Dag) {
        let _ = self.0.send(line(record));
    }
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("plain data with string keys");
    line.push(b'\n');
    line
}

fn write_all(mut out: impl Write, lines: &Receiver<Vec<u8>>) {
    for bytes in lines {
        if let Err(error) = out.write_all(&bytes).and_then(|()| out.flush()) {
            let why = if error.kind() == ErrorKind::BrokenPipe {
                "the reader is gone".to_owned()
            } else {
                error.to_string()
            };
            say(&format!(
                "warning: --json-events ends here ({why}); the session goes on, its journal has every event"
            ));
            return;
        }
    }
}
