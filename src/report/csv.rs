//! The runs as CSV: one row for each, and one for each kernel that has none.

use super::facts::{BootFacts, CandidateFacts, Report};

/// Its first row.
const HEAD: [&str; 14] = [
    "commit", "subject", "position", "role", "verdict", "reason", "boot", "boot_id", "stage", "run",
    "counted", "metric", "unit", "value",
];

/// Numbers are plain; `counted` is false for warm-up runs.
pub fn csv(report: &Report) -> String {
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for candidate in &report.candidates {
        let before = rows.len();
        for boot in &candidate.boots {
            let run = |(at, value): (usize, &f64)| row(report, candidate, Some((boot, at, *value)));
            rows.extend(boot.runs.iter().enumerate().map(run));
        }
        if rows.len() == before {
            rows.push(row(report, candidate, None));
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(&row).expect("a buffer in memory takes all, and every row has as many fields");
    }
    let bytes = writer.into_inner().expect("a buffer in memory takes all");
    String::from_utf8(bytes).expect("it was made from text")
}

fn row(report: &Report, candidate: &CandidateFacts, run: Option<(&BootFacts, usize, f64)>) -> Vec<String> {
    let mut row = vec![
        candidate.commit.to_string(),
        candidate.subject.clone(),
        candidate.position.map_or(String::new(), |at| at.to_string()),
        candidate.role.to_owned(),
        candidate.standing().to_owned(),
        candidate.reason.clone().unwrap_or_default(),
    ];
    match run {
        Some((boot, at, value)) => row.extend([
            boot.boot.to_string(),
            boot.boot_id.clone(),
            boot.stage.to_string(),
            (at + 1).to_string(),
            (at >= boot.warmup as usize).to_string(),
            report.metric.name.clone(),
            report.metric.unit.clone(),
            value.to_string(),
        ]),
        None => row.resize(HEAD.len(), String::new()),
    }
    row
}
