//! What people and programs are told of a session.
//!
//! Owns: the [`Reporter`] trait (fed by the driver, event by event), the facts of a report ([`Report`]) and its forms:
//! JSON, text, Markdown, CSV, mail, a page of HTML, the log for people and for `git bisect replay`. Must not do: judge, or
//! read anything but state and records. Every form tells the same facts. Tested in tests/it/{report,forms,html}.rs.

mod ahead;
mod area;
mod csv;
mod culprit;
mod doubts;
mod environment;
mod events;
mod expense;
mod facts;
mod html;
mod live;
mod log;
mod mail;
mod markdown;
mod moved;
mod pairs;
mod path;
mod plot;
mod progress;
mod range;
mod read_back;
mod saturation;
mod search;
mod seen;
mod survey;
mod text;

pub use area::{Area, On};
pub use csv::csv;
pub use culprit::ParentFacts;
pub use environment::{EnvironmentFacts, FieldFacts};
pub use events::{EndLine, EventLines, EventReporter};
pub use expense::{HalvingFacts, SpentFacts};
pub use facts::{
    BootFacts, CandidateFacts, ChecksFacts, ConclusionFacts, EndpointFacts, EndpointsFacts, FurtherFacts,
    Report, RevertedFacts, StretchFacts,
};
pub use html::html;
pub use live::{Live, is_verdict};
pub use log::{git_log, people_log};
pub use mail::{People, mail};
pub use markdown::markdown;
pub use moved::{MovedFacts, MovedRow};
pub use path::{PathFacts, Phase, Stretch, stretches};
pub use plot::Look;
pub use progress::{Lines, ProgressLine, say};
pub use range::{DriftFacts, RangeCommit};
pub use read_back::ReadBackFacts;
pub use search::{GuardFacts, Leader, NextFacts, SearchFacts, outlook_words};
pub use seen::SeenFacts;
pub use survey::{AlsoFacts, CellFacts, CellState, KernelFacts, StepFacts, SurveyReport, View, word};
pub use text::{counted, status, text};

use crate::journal::Record;
use crate::search::Dag;
use crate::session::State;

/// Listens to a session's events.
pub trait Reporter {
    /// Called after each event is on disk and applied.
    fn on_event(&mut self, record: &Record, state: &State, dag: &Dag);
}
