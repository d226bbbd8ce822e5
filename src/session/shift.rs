//! A machine or a kernel whose level moved while it was measured: what was measured before does not count.
//!
//! Within one boot all may be quiet and yet the whole level be another one than an hour ago (a cloud host, a disk that
//! filled up, a service that woke). Slow drift is followed by the engine; a jump is not drift.

use super::event::Event;
use super::judge;
use super::planner::{Planner, counted, is_void};
use super::state::{Boot, State};
use crate::model::{BootNo, CommitId};
use crate::stats;

/// Probability of two parts so far apart by chance from which a level moved: small, as it is asked after every boot, of
/// every kernel and every place between its boots.
const SURE: f64 = 1e-5;

/// A jump is at least this many scales of a boot.
const LARGE: f64 = 1.5;

/// Boots that each part has at least.
const LEAST: usize = 2;

/// Sd below which the boots of a part are taken to be this apart, log units.
const SD_FLOOR: f64 = 1e-6;

/// How often the boots before a jump of the machine are given up; after that it is no machine to measure on.
const MOST: usize = 2;

/// A jump in the boots of one kernel.
struct Jump {
    /// First boot on the new level.
    at: BootNo,
    /// Log units, positive = worse.
    size: f64,
}

/// The boots to void now, if a level moved.
pub(super) fn due(planner: &Planner, state: &State) -> Option<Event> {
    let belief = planner.engine().belief();
    belief.grid()?;
    if planner.engine().drift().step > 0.0 {
        return None;
    }
    let scale = belief.levels(belief.leader()).scale;
    let ends = [&state.plan.good.commit, &state.plan.bad.commit];
    if state.voided.len() < MOST
        && let Some((end, jump)) = ends.into_iter().find_map(|c| Some((c, jump(state, c, scale)?)))
    {
        return Some(machine_moved(state, end, &jump));
    }
    let candidates = state.commits.keys().filter(|c| !ends.contains(c));
    candidates.filter(|c| !was_voided(state, c)).find_map(|commit| {
        let jump = jump(state, commit, scale)?;
        let boots = counting(state, commit).map(|b| b.boot).collect();
        let reason = format!(
            "the boots of {} lie on two levels {:.1} % apart, one after the other; it is measured anew",
            commit.short(),
            jump.size.abs().exp_m1() * 100.0
        );
        Some(Event::Voided { boots, reason })
    })
}

fn machine_moved(state: &State, end: &CommitId, jump: &Jump) -> Event {
    let boots: Vec<BootNo> = state
        .searched()
        .filter(|b| b.boot < jump.at && counted(state, b) > 0 && !is_void(state, b.boot))
        .map(|b| b.boot)
        .collect();
    let reason = format!(
        "the machine's level moved by {:.1} % before boot {} (seen at {}); everything before it is measured anew",
        jump.size.abs().exp_m1() * 100.0,
        jump.at,
        end.short()
    );
    Event::Voided { boots, reason }
}

fn counting<'a>(state: &'a State, commit: &CommitId) -> impl Iterator<Item = &'a Boot> {
    let commit = commit.clone();
    state.searched().filter(move |b| b.commit == commit && counted(state, b) > 0 && !is_void(state, b.boot))
}

fn was_voided(state: &State, commit: &CommitId) -> bool {
    let of = |boot: &BootNo| state.boot(*boot).is_some_and(|b| b.commit == *commit);
    state.voided.iter().any(|(boots, _)| boots.iter().all(of))
}

/// The clearest jump in time of a kernel's boots.
fn jump(state: &State, commit: &CommitId, scale: f64) -> Option<Jump> {
    let worse = state.plan.recipe.metric.direction.worse_sign();
    let boots: Vec<(BootNo, f64)> = counting(state, commit)
        .map(|boot| {
            let runs = judge::log_values(state, boot);
            (boot.boot, worse * runs.iter().sum::<f64>() / runs.len() as f64)
        })
        .collect();
    let mean = |part: &[(BootNo, f64)]| part.iter().map(|b| b.1).sum::<f64>() / part.len() as f64;
    let least = state.plan.recipe.minimum_effect.0.ln_1p() / 2.0;
    let jumps = (LEAST..(boots.len() + 1).saturating_sub(LEAST)).filter_map(|at| {
        let (before, after) = boots.split_at(at);
        let size = mean(after) - mean(before);
        // The spread inside the parts, so that a jump does not hide itself in a scale that it has blown up.
        let squares: f64 = [before, after]
            .iter()
            .map(|part| part.iter().map(|b| (b.1 - mean(part)).powi(2)).sum::<f64>())
            .sum();
        let df = (boots.len() - 2) as f64;
        let own = (squares / df).sqrt().max(SD_FLOOR);
        let error = own * (1.0 / before.len() as f64 + 1.0 / after.len() as f64).sqrt();
        let chance = 2.0 * stats::t_tail(df, size.abs() / error);
        let is_jump = chance < SURE && size.abs() > LARGE * scale && size.abs() > least;
        is_jump.then(|| (chance, Jump { at: after[0].0, size }))
    });
    jumps.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, jump)| jump)
}
