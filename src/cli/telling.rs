//! Who else is told of a session at work: a program that reads events, a command that is run at its end. docs/events.md is
//! the description for users.

use super::notify::{self, News};
use super::{CliError, args::Telling};
use crate::driver::{Driver, SessionDir};
use crate::journal::FileStorage;
use crate::report::{EndLine, EventLines};

/// What `--notify` and `--json-events` ask for, at work.
pub(super) struct Told<'a> {
    notify: Option<&'a str>,
    events: Option<EventLines>,
}

impl<'a> Told<'a> {
    /// Begins with the journal so far.
    pub fn start(telling: &'a Telling, driver: &mut Driver<FileStorage>) -> Result<Self, CliError> {
        let mut told = Self { notify: telling.notify.as_deref(), events: None };
        if telling.json_events {
            let path = driver.dir.journal();
            let so_far = std::fs::read(&path)
                .map_err(|source| CliError::Io { what: format!("read {}", path.display()), source })?;
            let events = EventLines::start(std::io::stdout(), so_far)
                .map_err(|source| CliError::Io { what: "start the writer of events".to_owned(), source })?;
            driver.report_to(Box::new(events.reporter()));
            told.events = Some(events);
        }
        Ok(told)
    }

    /// Whether standard output is taken by events.
    pub fn has_events(&self) -> bool {
        self.events.is_some()
    }

    /// Tells the end, once the driver reports no more. `worked`: whether there was anything to do in this process.
    pub fn end(self, dir: &SessionDir, news: &News, worked: bool) {
        if let Some(events) = self.events {
            let (session, conclusion) = (dir.name(), news.conclusion.clone());
            let summary = news.summary.clone();
            events.end(&EndLine { r#type: "end", session: &session, exit: news.exit, conclusion, summary });
        }
        if let Some(command) = self.notify.filter(|_| worked) {
            notify::run(command, dir, news);
        }
    }
}
