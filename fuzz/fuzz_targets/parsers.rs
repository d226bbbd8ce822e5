//! Any bytes, read by every parser, give values or a reason: finite, declared, never a panic.
//!
//! The first byte chooses where the rest is cut into standard output and standard error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use regex::Regex;
use sched_bisect::workload::{Options, Output, Parser, Reader};
use std::sync::LazyLock;

static PATTERN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?P<a>[0-9.eE+-]+) (?P<b>\S+)").expect("a sound pattern"));

fuzz_target!(|data: &[u8]| {
    let Some((&share, bytes)) = data.split_first() else { return };
    let (stdout, stderr) = bytes.split_at(bytes.len() * usize::from(share) / 255);
    let output = Output { stdout: stdout.to_vec(), stderr: stderr.to_vec(), status: 0 };
    for parser in Parser::ALL {
        if let Ok(metrics) = parser.read(&output) {
            for (name, value) in metrics.values() {
                assert!(value.is_finite(), "{parser}: {name} is {value}");
                assert!(parser.is_told() || parser.declared(name).is_some(), "{parser}: {name} is not declared");
            }
        }
        let judged = parser.parse("/a/b", &output);
        assert!(judged.is_err() || judged.is_ok_and(|metrics| metrics.contains_key("/a/b")));
    }
    let regex = Options { regex: Some(PATTERN.clone()), ..Options::default() };
    let row = Options { row: Some(("tasks".to_owned(), "2".to_owned())), separator: b';', ..Options::default() };
    for reader in [Reader::new(Parser::Regex, regex), Reader::new(Parser::Csv, row)] {
        // Whatever it gives, it ends.
        let _ = reader.read(&output);
    }
});
