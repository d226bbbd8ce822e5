//! The gate: whether the endpoints differ at all.

use super::{
    CAP_NONE, CAPS, Costs, Decision, Engine, GATE_CHANGE, GATE_NONE, GATE_OPPOSITE, Gate, NO_CHANGE, Step,
    Why,
};

/// Error and power of the analysis that caps the gate: 1 % and 99 %, one-sided normal quantile each.
const POWER_QUANTILE: f64 = 2.326;

/// The effect may be this much smaller than claimed and still be found.
const SMALLER: f64 = 0.6;

/// Fewest and most boots an endpoint gets at the gate by the power analysis.
const GATE_BOOTS: (usize, usize) = (8, 400);

impl Engine {
    /// Boots that an endpoint may get at the gate, by the noise seen so far: as many as show the claimed effect with an
    /// error of 1 % and a power of 99 %.
    pub fn gate_cap(&self) -> usize {
        if self.options.most_boots > 0 {
            return self.options.most_boots;
        }
        let (_, _, scale) = self.belief.pilot();
        let size = SMALLER * self.options.claim.abs();
        let boots = 2.0 * (2.0 * POWER_QUANTILE * scale / size).powi(2);
        (boots.ceil() as usize).clamp(GATE_BOOTS.0, GATE_BOOTS.1)
    }

    pub(super) fn gate(&mut self, costs: Costs) -> Step {
        let (good, bad) = self.belief.end_boots();
        let fewest = good.min(bad);
        if self.belief.grid().is_none() {
            return self.boot_of_ends(1, Why::Gate);
        }
        let none = self.belief.p_no_change(NO_CHANGE);
        if none >= GATE_NONE {
            return Step::Decide(Decision::Gate(Gate::None));
        }
        let sign = self.sign_asked();
        if 1.0 - none >= if sign == Gate::Opposite { GATE_OPPOSITE } else { GATE_CHANGE } {
            return Step::Decide(Decision::Gate(sign));
        }
        if fewest >= self.gate_cap() && none >= CAP_NONE {
            return Step::Decide(Decision::Gate(Gate::None));
        }
        if fewest >= CAPS * self.gate_cap() {
            return Step::Decide(Decision::Gate(Gate::Open));
        }
        self.boot_of_ends(self.runs_per_boot(costs), Why::Gate)
    }

    fn sign_asked(&self) -> Gate {
        let levels = self.belief.levels(self.belief.leader());
        let sign = if levels.bad.mean >= levels.good.mean { 1 } else { -1 };
        match self.options.sign {
            Some(asked) if asked != sign => Gate::Opposite,
            Some(_) | None => Gate::Change(sign),
        }
    }
}
