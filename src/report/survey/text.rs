//! The table as text for a mail of 80 columns: a cell has its change and boots in one line, its interval below.

use super::{Column, KernelFacts, Shown, SurveyReport, interval, percent};
use crate::model::ConclusionKind;
use crate::report::environment;
use crate::report::text::{expense, line, moved, open_step, paragraph, wrapped};
use crate::session::State;
use std::fmt::Write;

/// Columns of a mail.
const WIDTH: usize = 80;

/// Between two columns of the table.
const GAP: usize = 2;

impl SurveyReport {
    /// The whole report.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let title = if self.kind == ConclusionKind::Surveyed { "SURVEY" } else { "SURVEY, NOT DONE" };
        paragraph(&mut out, &format!("{title}: {}", self.reason));
        out.push('\n');
        line(&mut out, "session", &format!("{} ({})", self.session, self.profile));
        line(&mut out, "metric", &self.metric_words());
        line(&mut out, "against", &self.against());
        let level = self.confidence * 100.0;
        line(
            &mut out,
            "cells",
            &format!("change [boots], below it the interval at {level:.0} %, in per cent"),
        );
        if let Some((first, [_, ..])) = self.variants.split_first() {
            let name = &self.metric.name;
            let heads = std::iter::once(name).chain(&self.columns).map(String::as_str);
            let heads = heads.collect::<Vec<_>>().join(", ");
            line(
                &mut out,
                "columns",
                &format!("{heads} under {first}; then {name} under each other variant"),
            );
        }
        out.push('\n');
        self.tables(&mut out);
        let notes = self.notes();
        for note in &notes {
            paragraph(&mut out, note);
        }
        for (at, step) in self.steps.iter().enumerate() {
            if at > 0 || !notes.is_empty() {
                out.push('\n');
            }
            paragraph(&mut out, &format!("* {}", step.words(self)));
            match &step.command {
                // Not wrapped: it is to be copied.
                Some(command) => {
                    let _ = writeln!(out, "  {command}");
                }
                None => paragraph(&mut out, "  (no search: their histories have nothing in common)"),
            }
            moved(&mut out, step.moved.as_ref());
        }
        // A table ends with a blank line.
        if !(notes.is_empty() && self.steps.is_empty()) {
            out.push('\n');
        }
        for (key, words) in self.environment.iter().flat_map(environment::lines) {
            line(&mut out, key, &words);
        }
        self.cut_short(&mut out, "");
        line(&mut out, "spent", &expense(&self.spent));
        line(&mut out, "next", &self.next_step);
        out
    }

    /// Where it stands, in a few lines.
    pub fn status(&self, state: &State) -> String {
        let mut out = String::new();
        line(&mut out, "session", &self.session);
        line(&mut out, "stands", &format!("survey: {}", self.reason));
        for step in state.open.values() {
            line(&mut out, "open step", &open_step(state, step));
        }
        let cells = self.kernels.iter().flat_map(|kernel| &kernel.cells);
        let done = cells.clone().filter(|cell| cell.boots >= self.boots as usize).count();
        let lost = cells.clone().filter(|cell| cell.reason.is_some()).count();
        let boots: usize = cells.clone().map(|cell| cell.boots).sum();
        let words = format!(
            "{done} of {} done, {lost} cannot be measured; {boots} boots of {} each",
            cells.count(),
            self.boots
        );
        line(&mut out, "cells", &words);
        self.cut_short(&mut out, "environment");
        line(&mut out, "spent", &expense(&self.spent));
        line(&mut out, "next", &self.next_step);
        out
    }

    /// Boots of a machine that was not what it had been.
    fn cut_short(&self, out: &mut String, key: &str) {
        if let Some(words) = self.environment.as_ref().and_then(|facts| environment::cut_short(&facts.moved))
        {
            line(out, key, &words);
        }
    }

    /// As many columns side by side as a mail holds; the others follow below.
    fn tables(&self, out: &mut String) {
        let names: Vec<String> = self.kernels.iter().map(|kernel| self.name(kernel)).collect();
        let first = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("kernel".len());
        let columns: Vec<Drawn> = self.columns().iter().map(|column| self.draw(column)).collect();
        let mut rest = &columns[..];
        while !rest.is_empty() {
            let mut used = first;
            let fit = rest.iter().take_while(|column| {
                used += GAP + column.width;
                used <= WIDTH
            });
            let (now, later) = rest.split_at(fit.count().max(1));
            self.table(out, &names, first, now);
            rest = later;
        }
    }

    fn name(&self, kernel: &KernelFacts) -> String {
        format!("{}{}", kernel.rev, if self.is_step(kernel) { " *" } else { "" })
    }

    fn draw(&self, column: &Column) -> Drawn {
        let head = self.head(column);
        let cell = |kernel: &KernelFacts| {
            if kernel.untestable.is_some() {
                return [String::new(), String::new()];
            }
            match self.shown(kernel, column) {
                Shown::Word(word) => [word.to_owned(), String::new()],
                Shown::Counted(word, boots) => [format!("{word} [{boots}]"), String::new()],
                Shown::Change(change, boots) => {
                    let top = format!("{} [{boots}]", percent(change.relative));
                    [top, interval(change).map_or(String::new(), |range| format!(" {range}"))]
                }
            }
        };
        let cells: Vec<[String; 2]> = self.kernels.iter().map(cell).collect();
        let lines = cells.iter().flatten().chain(std::iter::once(&head));
        let width = lines.map(|text| text.chars().count()).max().unwrap_or(0);
        Drawn { head, cells, width }
    }

    fn table(&self, out: &mut String, names: &[String], first: usize, columns: &[Drawn]) {
        let put = |out: &mut String, name: &str, cells: Vec<(&str, usize)>| {
            let mut text = format!("{name:first$}");
            for (cell, width) in cells {
                let _ = write!(text, "{:GAP$}{cell:width$}", "");
            }
            let _ = writeln!(out, "{}", text.trim_end());
        };
        put(out, "kernel", columns.iter().map(|c| (c.head.as_str(), c.width)).collect());
        for (at, kernel) in self.kernels.iter().enumerate() {
            if let Some(reason) = &kernel.untestable {
                let head = format!("{:first$}{:GAP$}", names[at], "");
                wrapped(out, &head, &format!("untestable: {reason}"));
                continue;
            }
            for (line, name) in [(0, names[at].as_str()), (1, "")] {
                let cells: Vec<(&str, usize)> =
                    columns.iter().map(|c| (c.cells[at][line].as_str(), c.width)).collect();
                if line == 0 || cells.iter().any(|(cell, _)| !cell.is_empty()) {
                    put(out, name, cells);
                }
            }
        }
        out.push('\n');
    }
}

/// A column with its texts: of each kernel two lines.
struct Drawn {
    head: String,
    cells: Vec<[String; 2]>,
    width: usize,
}
