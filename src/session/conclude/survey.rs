//! The end of a survey.

use super::bare;
use crate::model::{Conclusion, ConclusionKind};
use crate::session::plan::Kernel;
use crate::session::state::State;
use crate::session::survey::lost;

/// All is measured that can be: 0, or 3 where a kernel cannot be measured at all.
pub(super) fn measured(state: &State) -> Conclusion {
    let (Some(survey), Some((_, steps))) = (state.survey(), &state.surveyed) else {
        return bare(ConclusionKind::Stopped, 1, "no survey was measured".to_owned(), String::new());
    };
    let variants: Vec<&str> = state.plan.recipe.variants().collect();
    let is_lost = |kernel: &&Kernel| lost(state, &kernel.commit).is_some();
    let lost: Vec<&str> = survey.kernels.iter().filter(is_lost).map(|k| k.rev.as_str()).collect();
    let mut reason = format!(
        "{} under {}, {} boots of each",
        counted(survey.kernels.len(), "kernel"),
        counted(variants.len(), "variant"),
        survey.boots
    );
    if !lost.is_empty() {
        reason.push_str(&format!("; cannot be measured: {}", lost.join(", ")));
    }
    let next = match steps.len() {
        0 => {
            "no neighbours differ by the minimum effect; more boots (--boots) would tell smaller differences"
                .to_owned()
        }
        n => format!(
            "search between neighbours that differ ({n}), by the command that the report gives for each"
        ),
    };
    bare(ConclusionKind::Surveyed, if lost.is_empty() { 0 } else { 3 }, reason, next)
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
