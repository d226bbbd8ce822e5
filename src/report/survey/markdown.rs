//! The table as Markdown.

use super::{KernelFacts, Shown, SurveyReport, whole};
use crate::model::ConclusionKind;
use crate::report::counted;
use std::fmt::Write;

impl SurveyReport {
    /// Table, notes and commands.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        if self.kind != ConclusionKind::Surveyed {
            let _ = writeln!(out, "Not done: {}\n", escaped(&self.reason));
        }
        let _ = writeln!(
            out,
            "{}; change against {}, interval at {:.0} %, boots.\n",
            self.metric_words(),
            self.against(),
            self.confidence * 100.0
        );
        let columns = self.columns();
        let heads: Vec<String> = columns.iter().map(|column| escaped(&self.head(column))).collect();
        let _ = writeln!(out, "| kernel | {} |", heads.join(" | "));
        let _ = writeln!(out, "|---|{}", "---|".repeat(columns.len()));
        for kernel in &self.kernels {
            let mark = if self.is_step(kernel) { " \\*" } else { "" };
            let cells: Vec<String> = match &kernel.untestable {
                // In the first of the cells; the others stay blank.
                Some(reason) => std::iter::once(format!("untestable: {}", escaped(reason)))
                    .chain(std::iter::repeat_n(String::new(), columns.len() - 1))
                    .collect(),
                None => columns.iter().map(|column| self.cell(kernel, column)).collect(),
            };
            let _ = writeln!(out, "| {}{mark} | {} |", escaped(&kernel.rev), cells.join(" | "));
        }
        let notes = self.notes();
        if !notes.is_empty() {
            out.push('\n');
        }
        for note in notes {
            let _ = writeln!(out, "- {}", escaped(&note));
        }
        for step in &self.steps {
            let _ = writeln!(out, "\n\\* {}", escaped(&step.words(self)));
            if let Some(command) = &step.command {
                let _ = writeln!(out, "\n    {command}");
            }
        }
        out
    }

    fn cell(&self, kernel: &KernelFacts, column: &super::Column) -> String {
        match self.shown(kernel, column) {
            Shown::Word(word) => word.to_owned(),
            Shown::Counted(word, boots) => format!("{word}, {}", counted(boots as u64, "boot")),
            Shown::Change(change, boots) => {
                format!("{}, {}", whole(change), counted(boots as u64, "boot"))
            }
        }
    }
}

/// What would end a cell or mean something.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace('*', "\\*").replace('_', "\\_").replace('\n', " ")
}
