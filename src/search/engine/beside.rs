//! A second machine: what can be measured beside what is being measured.

use super::{Engine, Measure, Mode};
use crate::search::worth::Costs;

/// A boot beside others: (measurement, stage).
pub type Beside = (Measure, u32);

impl Engine {
    /// A kernel of the present block whose turn would come next anyway, while `pending` boots (node, stage) are under way. In
    /// the search there is none: what is worth measuring depends on what the pending boot will say.
    pub fn beside(&self, costs: Costs, pending: &[(usize, u32)]) -> Option<Beside> {
        let (nodes, stage, first_stage) = match (&self.mode, &self.confirming) {
            (Mode::Gate, _) => {
                let (good, bad) = self.belief.ends();
                (vec![good, bad], 0, 0)
            }
            (Mode::Confirm, Some(going)) => {
                let all = going.parents.iter().copied().chain([going.tip]).collect();
                (all, going.stage, going.first_stage)
            }
            (Mode::Confirm | Mode::Search | Mode::Over(_), _) => return None,
        };
        let in_stages = |node: usize| {
            let measured = self.all.get(&node).map_or(&[][..], Vec::as_slice);
            measured.iter().filter(|b| (first_stage..=stage).contains(&b.stage)).count()
        };
        let block = nodes.iter().map(|&n| in_stages(n)).min()?;
        let is_pending = |node: usize| pending.iter().any(|&(other, _)| other == node);
        let node = nodes.iter().copied().find(|&n| in_stages(n) == block && !is_pending(n))?;
        // Only what is built: the builder may be at work for the pending one.
        let is_built = self.all.contains_key(&node);
        is_built.then(|| (Measure::Boot { node, runs: self.runs_per_boot(costs) }, stage))
    }
}
