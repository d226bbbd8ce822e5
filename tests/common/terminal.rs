//! A terminal of a test's own, and what stands on it.

use super::live::wait_for;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

/// Its size.
pub const COLUMNS: usize = 80;
const ROWS: usize = 24;

/// What a program writes to it.
pub struct Terminal {
    bytes: Arc<Mutex<Vec<u8>>>,
    theirs: File,
}

impl Terminal {
    /// An empty one.
    pub fn new() -> Self {
        let ours =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it can be used");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let path = name.to_str().expect("UTF-8").to_owned();
        let theirs = OpenOptions::new().read(true).write(true).open(path).expect("its other end");
        let size = Winsize { ws_row: ROWS as u16, ws_col: COLUMNS as u16, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size).expect("it takes a size");
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (mut from, into) = (File::from(ours), Arc::clone(&bytes));
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut part) {
                into.lock().expect("no test panics with it").extend(&part[..read]);
            }
        });
        Self { bytes, theirs }
    }

    /// For a program to write to.
    pub fn stdio(&self) -> Stdio {
        self.theirs.try_clone().expect("duplicates").into()
    }

    /// Everything that was written.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("no test panics with it")).into_owned()
    }

    /// Waits until something was written.
    pub fn await_text(&self, part: &str) {
        wait_for(part, || self.text().contains(part).then_some(()));
    }

    /// What stands on it, with what scrolled out at the top; no spaces at the ends and no empty rows at the bottom.
    pub fn rows(&self) -> Vec<String> {
        let mut screen = Screen::default();
        screen.write(&self.text());
        let mut rows: Vec<String> =
            screen.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }
}

/// As much of a terminal as our program uses.
#[derive(Default)]
struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    fn write(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => self.column = 0,
                '\n' => self.row += 1,
                '\u{1b}' => {
                    let mut sequence = String::new();
                    for c in chars.by_ref() {
                        sequence.push(c);
                        if c.is_ascii_alphabetic() {
                            break;
                        }
                    }
                    self.obey(&sequence);
                }
                c => self.put(c),
            }
            self.grow();
        }
    }

    fn grow(&mut self) {
        if self.rows.len() <= self.row {
            self.rows.resize(self.row + 1, Vec::new());
        }
    }

    fn put(&mut self, c: char) {
        if self.column == COLUMNS {
            (self.row, self.column) = (self.row + 1, 0);
        }
        self.grow();
        let row = &mut self.rows[self.row];
        if row.len() <= self.column {
            row.resize(self.column + 1, ' ');
        }
        row[self.column] = c;
        self.column += 1;
    }

    fn obey(&mut self, sequence: &str) {
        let body = sequence.trim_start_matches('[');
        let (number, what) = body.split_at(body.len().saturating_sub(1));
        let top = self.rows.len().saturating_sub(ROWS);
        match (what, number) {
            ("A", n) => self.row = self.row.saturating_sub(n.parse().unwrap_or(1)).max(top),
            ("B", n) => self.row = (self.row + n.parse::<usize>().unwrap_or(1)).min(top + ROWS - 1),
            ("K", "2") => self.rows[self.row].clear(),
            ("K", "" | "0") => self.rows[self.row].truncate(self.column),
            ("h" | "l", _) => {}
            other => panic!("this terminal does not know {other:?}"),
        }
    }
}
