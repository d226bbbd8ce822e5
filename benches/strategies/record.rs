//! One cell searched by one strategy, as a line of JSON.

use super::cells::Cell;
use sched_bisect::sim::{Costs, Outcome, Strategy, Tally};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    cell: String,
    strategy: String,
    /// Name of the costs that it weighed, or of any if it weighs none.
    costs: String,
    pub searches: u64,
    pub right: u32,
    pub wrong: u32,
    pub set: u32,
    pub none: u32,
    builds: f64,
    boots: f64,
    runs: f64,
    /// Standard error of the mean minutes at these costs.
    pub minutes_error: f64,
    /// Lower end, upper end, answers, right answers.
    pub calibration: Vec<(f64, f64, u32, u32)>,
    /// Processor time of one search, about.
    pub milliseconds: f64,
}

impl Record {
    pub fn of(cell: &Cell, strategy: Strategy, costs: &str, outcomes: &[Outcome], took: Duration) -> Self {
        let mut tally = Tally::default();
        outcomes.iter().for_each(|outcome| tally.add(outcome));
        let count = outcomes.len() as f64;
        let mean = |values: &[u32]| values.iter().copied().map(f64::from).sum::<f64>() / count;
        let minutes = tally.minutes.iter().sum::<f64>() / count;
        let variance = tally.minutes.iter().map(|m| (m - minutes).powi(2)).sum::<f64>() / count;
        Self {
            cell: cell.to_string(),
            strategy: strategy.to_string(),
            costs: costs.to_owned(),
            searches: outcomes.len() as u64,
            right: tally.right,
            wrong: tally.wrong,
            set: tally.set,
            none: tally.none,
            builds: mean(&tally.builds),
            boots: mean(&tally.boots),
            runs: mean(&tally.runs),
            minutes_error: (variance / count).sqrt(),
            calibration: tally.calibration(),
            milliseconds: took.as_secs_f64() * 1000.0 * super::THREADS as f64 / count,
        }
    }

    /// Whether it is this cell by this strategy, at costs that matter to it.
    pub fn is(&self, cell: &Cell, strategy: Strategy, costs: &str) -> bool {
        self.cell == cell.to_string()
            && self.strategy == strategy.to_string()
            && (self.costs == costs || !strategy.weighs_costs())
    }

    /// Mean minutes at some costs.
    pub fn minutes(&self, costs: &Costs) -> f64 {
        costs.build * self.builds + costs.boot * self.boots + costs.run * self.runs
    }

    /// Share of right answers, sets included.
    pub fn share(&self) -> f64 {
        f64::from(self.right + self.set) / self.searches as f64
    }

    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("plain numbers and text")
    }

    /// All records of a file; none if there is no file.
    pub fn read(path: &str) -> Result<Vec<Self>, String> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("read {path}: {error}")),
        };
        let read = |(at, line)| {
            serde_json::from_str(line).map_err(|error| format!("read {path}: line {}: {error}", at + 1))
        };
        text.lines().enumerate().map(read).collect()
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} right, {} sets, {} wrong, {} none; {:.1} builds, {:.1} boots, {:.1} runs; {:.2} ms a search",
            self.right,
            self.set,
            self.wrong,
            self.none,
            self.builds,
            self.boots,
            self.runs,
            self.milliseconds
        )
    }
}
