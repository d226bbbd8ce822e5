//! What the knobs of the session's variant read while its runs were measured: a number without its setting is worth little.

use crate::session::State;
use crate::workload::tunables::Tunables;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The variant that was searched under, as it was read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadBackFacts {
    /// Its name.
    pub variant: String,
    /// Runs that it was read back around.
    pub runs: usize,
    /// What each knob read; more than one value only where that is as good (a list's spacing).
    pub knobs: BTreeMap<String, BTreeSet<String>>,
}

impl ReadBackFacts {
    /// "nopl: PLACE_LAG NO_PLACE_LAG, base_slice_ns 3000000; read back in all 12 runs".
    pub(super) fn words(&self) -> String {
        let words =
            |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(" or ");
        let knobs: Vec<String> =
            self.knobs.iter().map(|(name, values)| format!("{name} {}", words(values))).collect();
        let runs = if self.runs == 1 { "in 1 run".to_owned() } else { format!("in all {} runs", self.runs) };
        format!("{}: {}; read back {runs}", self.variant, knobs.join(", "))
    }
}

/// `None` where the variant sets nothing, or nothing was measured under it.
pub(super) fn facts(state: &State) -> Option<ReadBackFacts> {
    let recipe = &state.plan.recipe;
    let tunables = Tunables::of(&recipe.setup.variant);
    let names: Vec<&str> = tunables.names().collect();
    let mut facts = ReadBackFacts { variant: recipe.variant.clone(), runs: 0, knobs: BTreeMap::new() };
    for run in state.searched().flat_map(|boot| &boot.runs) {
        let read: Vec<_> = names.iter().filter_map(|name| Some((*name, run.settings.get(*name)?))).collect();
        facts.runs += usize::from(!read.is_empty());
        for (name, value) in read {
            facts.knobs.entry(name.to_owned()).or_default().insert(value.clone());
        }
    }
    (facts.runs > 0).then_some(facts)
}
