//! How long a search will still take, by playing it on: as many plays as fit into a moment, since an hour of the lab's waits
//! for nobody.

use crate::session::{Outlook, Planner, State};
use std::time::{Duration, Instant};

/// Plays of the search for its forecast: most, fewest, and the time after which no more begins.
const PLAYS: usize = 60;
const FEWEST_PLAYS: usize = 5;
const MOMENT: Duration = Duration::from_millis(700);

/// The same after a verdict, of which there are many.
const SHORT_MOMENT: Duration = Duration::from_millis(250);

/// Commits from which a range is huge.
const LARGE: usize = 5000;

/// What is remembered of how long plays took.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The fewest took so long that it is left after verdicts: a huge range.
    is_slow: bool,
}

impl Ahead {
    /// After the endpoints; fewest plays at least.
    pub fn first(state: &State, planner: &Planner) -> Outlook {
        plays(state, planner, FEWEST_PLAYS, MOMENT)
    }

    /// After a verdict; `None` where too few plays fit into the moment to tell their spread.
    pub fn again(&mut self, state: &State, planner: &Planner) -> Option<Outlook> {
        if self.is_slow {
            return None;
        }
        // On a huge range one play may take seconds; elsewhere a busy host must not decide what is told.
        let fewest = if planner.engine().belief().graph().len() > LARGE { 1 } else { FEWEST_PLAYS };
        let outlook = plays(state, planner, fewest, SHORT_MOMENT);
        self.is_slow = !outlook.is_empty() && outlook.len() < FEWEST_PLAYS;
        (!self.is_slow).then_some(outlook)
    }
}

fn plays(state: &State, planner: &Planner, fewest: usize, moment: Duration) -> Outlook {
    let began = Instant::now();
    let go_on = |played: usize| played < PLAYS && (played < fewest || began.elapsed() < moment);
    Outlook::of(planner.engine(), planner.costs(state), go_on)
}
