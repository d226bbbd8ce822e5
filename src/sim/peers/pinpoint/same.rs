//! When two samples are "the same": the p value that samples which do differ by the asked size rarely exceed.
//!
//! The table is made by simulation (`make check-extended` makes it anew and compares): two normal samples whose means differ by a
//! multiple of their interquartile range; of the two-sided p values of Mann-Whitney the 99 % quantile, so that a real
//! difference is called "the same" in 1 % of comparisons.

/// Values a commit, on average of the two: what ten boots, doubled up to four times, can give.
const SIZES: [usize; 15] = [10, 15, 20, 25, 30, 40, 45, 50, 60, 80, 85, 90, 100, 120, 160];

/// The smallest difference of the table, in tenths of an interquartile range; a row is one tenth.
const FIRST_TENTH: usize = 3;

/// The threshold for a difference of so many interquartile ranges and so many values a commit. Between sizes that of
/// the smaller; beyond the table its nearest row.
pub(super) fn threshold(ranges: f64, size: usize) -> f64 {
    let row = ((ranges * 10.0) as usize).saturating_sub(FIRST_TENTH).min(TABLE.len() - 1);
    let column = SIZES.iter().rposition(|&known| known <= size).unwrap_or(0);
    TABLE[row][column]
}

include!("table.rs");

#[cfg(test)]
mod tests {
    use super::super::mann_whitney;
    use super::*;
    use crate::sim::random::{Draw, normal};

    /// Interquartile range of a standard normal variable.
    const RANGE: f64 = 1.348_979_5;

    fn simulate(tenth: usize, size: usize, pairs: u64) -> f64 {
        let seed = (tenth * 1000 + size) as u64;
        let sample = |pair: u64, side: u64, shift: f64| -> Vec<f64> {
            let value = |at: u64| shift + normal(seed, Draw::Run, [pair, side, at]);
            (0..size as u64).map(value).collect()
        };
        let shift = tenth as f64 / 10.0 * RANGE;
        let mut p: Vec<f64> =
            (0..pairs).map(|pair| mann_whitney(&sample(pair, 0, 0.0), &sample(pair, 1, shift))).collect();
        p.sort_by(f64::total_cmp);
        p[(pairs * 99 / 100) as usize]
    }

    #[test]
    #[ignore = "some minutes in a release build: make check-extended"]
    fn the_table_is_what_the_simulation_gives() {
        let cell = |row: usize, column: usize| -> f64 {
            let exact = simulate(FIRST_TENTH + row, SIZES[column], 10_000);
            format!("{exact:.1e}").parse().expect("it is a number")
        };
        let again: [[f64; SIZES.len()]; TABLE.len()] =
            std::array::from_fn(|row| std::array::from_fn(|column| cell(row, column)));
        // Where they differ, the message holds the table that belongs into table.rs.
        assert_eq!(TABLE, again);
    }

    #[test]
    fn the_table_agrees_with_a_fresh_simulation() {
        for (tenth, size) in [(3, 20), (7, 30), (10, 15), (15, 10)] {
            let (table, again) = (threshold(tenth as f64 / 10.0 + 0.01, size), simulate(tenth, size, 2000));
            assert!(
                (table - again).abs() < 0.12 * table.max(again) + 0.02,
                "{tenth} {size}: {table} {again}"
            );
        }
    }

    #[test]
    fn what_is_beyond_the_table_takes_its_nearest_row_and_column() {
        assert_eq!(threshold(0.0, 12), TABLE[0][0]);
        assert_eq!(threshold(99.0, 1000), TABLE[TABLE.len() - 1][SIZES.len() - 1]);
        assert_eq!(threshold(0.55, 35), TABLE[2][4]);
    }
}
