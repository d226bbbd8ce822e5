//! A few lines at the bottom of a terminal that change in place, under what scrolls.
//!
//! Each line is cut to the terminal's width, and only as many are drawn as it has room for. No colour is used. Where there is
//! no terminal nothing is drawn. Tested in tests/it/live.rs in a terminal of its own.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::{Winsize, tcgetwinsize};
use std::fmt;
use std::os::fd::AsFd;
use std::time::Duration;

/// How often the first line's spinner moves and its clock goes on.
const TICK: Duration = Duration::from_millis(200);

/// Lines left to what scrolls.
const SCROLLED: usize = 4;

/// What is taken for the size of a terminal that does not tell it, and for the least that can be written to.
const USUAL: usize = 24;
const USUAL_COLUMNS: usize = 80;
const LEAST_COLUMNS: usize = 20;

/// Before the later lines of one that is wrapped.
const INDENT: &str = "      ";

/// Where it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The lines.
pub struct Area {
    on: On,
    all: MultiProgress,
    rows: Vec<ProgressBar>,
}

impl fmt::Debug for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Area").field("on", &self.on).field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

impl Area {
    /// Begins to draw: one line, empty yet, that moves. `with_clock`: at its end stands how long it has been the same.
    pub fn start(on: On, with_clock: bool) -> Self {
        let target = match on {
            On::Stdout => ProgressDrawTarget::stdout(),
            On::Stderr => ProgressDrawTarget::stderr(),
        };
        let all = MultiProgress::with_draw_target(target);
        let template = if with_clock { "{spinner} {wide_msg} {elapsed}" } else { "{spinner} {wide_msg}" };
        let first = all.add(ProgressBar::new_spinner().with_style(style(template)));
        first.enable_steady_tick(TICK);
        Self { on, all, rows: vec![first] }
    }

    /// A line that scrolls, above the area; wrapped between words.
    pub fn scroll(&self, line: &str) {
        let columns = self.size().map_or(USUAL_COLUMNS, |size| usize::from(size.ws_col)).max(LEAST_COLUMNS);
        // Fails when the terminal is gone; that stops no session.
        let _ = self.all.println(wrap(line, columns - 1));
    }

    /// Replaces the lines. The first stands beside the spinner.
    pub fn set(&mut self, lines: &[String]) {
        let wanted = lines.len().min(self.room()).max(1);
        while self.rows.len() > wanted {
            if let Some(row) = self.rows.pop() {
                row.finish_and_clear();
                self.all.remove(&row);
            }
        }
        while self.rows.len() < wanted {
            self.rows.push(self.all.add(ProgressBar::new_spinner().with_style(style("  {wide_msg}"))));
        }
        for (row, line) in self.rows.iter().zip(lines) {
            if row.message() != *line {
                row.reset_elapsed();
                row.set_message(line.clone());
            }
        }
    }

    fn room(&self) -> usize {
        let rows = self.size().map_or(USUAL, |size| usize::from(size.ws_row));
        rows.saturating_sub(SCROLLED)
    }

    /// The terminal's; `None` where it does not tell.
    fn size(&self) -> Option<Winsize> {
        let size = match self.on {
            On::Stdout => tcgetwinsize(std::io::stdout().as_fd()),
            On::Stderr => tcgetwinsize(std::io::stderr().as_fd()),
        };
        size.ok().filter(|size| size.ws_row > 0 && size.ws_col > 0)
    }
}

/// Wraps between words, with what goes on indented; a word that is longer than a line stays whole.
fn wrap(line: &str, columns: usize) -> String {
    let (mut out, mut used) = (String::new(), 0);
    for word in line.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > columns {
            out.push('\n');
            out.push_str(INDENT);
            used = INDENT.len();
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out
}

impl Drop for Area {
    fn drop(&mut self) {
        for row in self.rows.drain(..).rev() {
            row.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are constants that parse")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_wrapped_between_words_and_a_long_word_stays_whole() {
        assert_eq!(wrap("one two three", 80), "one two three");
        assert_eq!(wrap("one two three four", 13), "one two three\n      four");
        assert_eq!(wrap("a-word-of-more-than-ten columns", 10), "a-word-of-more-than-ten\n      columns");
    }
}
