//! `git bisect` with a fixed number of boots a commit.

use super::super::{Found, Lab, World};
use super::{END_BOOTS, ends, mean, middle, range};

/// Source of the rule: git-bisect(1) and Documentation/git-bisect-lk2009 in git's tree (which commit is next); the verdict is
/// the mean of `boots` boots, one run each, against the middle between five boots of each end. No error is stated.
pub fn search(world: &World, boots: u32) -> Found {
    let mut lab = Lab::new(world);
    let (good, bad) = ends(world, &mut lab, END_BOOTS);
    let (middle, higher) = middle(&good, &bad);
    let suspects = range::halve(world, &mut lab, |lab, node| {
        let values: Vec<f64> = (0..boots).map(|_| lab.measure(node)).collect();
        Some((mean(&values) > middle) == higher)
    });
    Found::culprits(&lab, suspects.into_iter().collect(), f64::NAN)
}
