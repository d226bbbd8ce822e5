//! The table as CSV: one row for each kernel, variant and metric, all metrics that were seen.

use super::{CellFacts, KernelFacts, SurveyReport};
use crate::model::Change;

/// Its first row.
const HEAD: [&str; 13] = [
    "kernel", "commit", "variant", "metric", "unit", "state", "boots", "runs", "median", "change", "low",
    "high", "reason",
];

impl SurveyReport {
    /// Numbers are plain: fractions, not per cent.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut rows = vec![HEAD.map(str::to_owned)];
        for kernel in &self.kernels {
            for cell in &kernel.cells {
                let (name, unit) = (self.metric.name.as_str(), self.metric.unit.as_str());
                rows.push(row(kernel, cell, (name, unit), cell.median, cell.change));
                rows.extend(
                    cell.also
                        .iter()
                        .map(|also| row(kernel, cell, (&also.metric, &also.unit), also.median, also.change)),
                );
            }
        }
        for row in rows {
            writer
                .write_record(&row)
                .expect("a buffer in memory takes all, and every row has as many fields");
        }
        let bytes = writer.into_inner().expect("a buffer in memory takes all");
        String::from_utf8(bytes).expect("it was made from text")
    }
}

fn row(
    kernel: &KernelFacts,
    cell: &CellFacts,
    (metric, unit): (&str, &str),
    median: Option<f64>,
    change: Option<Change>,
) -> [String; 13] {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let state = serde_json::to_value(cell.state).ok().and_then(|word| word.as_str().map(str::to_owned));
    let reason = kernel.untestable.clone().or_else(|| cell.reason.clone());
    [
        kernel.rev.clone(),
        kernel.commit.to_string(),
        cell.variant.clone(),
        metric.to_owned(),
        unit.to_owned(),
        state.unwrap_or_default(),
        cell.boots.to_string(),
        cell.runs.to_string(),
        number(median),
        number(change.map(|c| c.relative)),
        number(change.and_then(|c| c.low)),
        number(change.and_then(|c| c.high)),
        reason.unwrap_or_default(),
    ]
}
