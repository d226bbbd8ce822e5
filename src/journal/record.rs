//! One record: one line of JSON.

use super::JournalError;
use crate::session::Event;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::path::Path;

/// Major version of the record format. A journal of a higher one is refused.
pub const FORMAT_VERSION: u64 = 1;

/// Hexadecimal digits kept of a checksum: 64 bits, far more than an accident needs.
const SUM_DIGITS: usize = 16;

/// A record of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Format version.
    pub v: u64,
    /// Position, from 0, without gaps.
    pub seq: u64,
    /// When it was written: Unix time in milliseconds.
    pub at: i64,
    /// What happened.
    pub event: Event,
    /// blake3 over the previous record's sum and this record's other fields, hex, 16 digits.
    pub sum: String,
}

impl Record {
    /// A record that follows the one with `previous_sum` ("" for record 0).
    pub(super) fn new(seq: u64, at: i64, event: Event, previous_sum: &str) -> Self {
        let sum = checksum(previous_sum, (FORMAT_VERSION, seq, at), &json(&event));
        Self { v: FORMAT_VERSION, seq, at, event, sum }
    }

    /// The line as it stands in the journal, with its end.
    pub(super) fn line(&self) -> String {
        let mut line = json(self);
        line.push('\n');
        line
    }
}

/// A record whose event is kept as it was written: an earlier version's has fields that today's lacks, and lacks others.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<'a> {
    v: u64,
    seq: u64,
    at: i64,
    #[serde(borrow)]
    event: &'a RawValue,
    sum: String,
}

fn checksum(previous_sum: &str, (v, seq, at): (u64, u64, i64), event: &str) -> String {
    let body = format!("{previous_sum}\n{v}\n{seq}\n{at}\n{event}");
    blake3::hash(body.as_bytes()).to_hex()[..SUM_DIGITS].to_owned()
}

fn json(value: &impl Serialize) -> String {
    // Maps have string keys and non-finite numbers are refused where they enter, so serializing cannot fail.
    serde_json::to_string(value).expect("records serialize")
}

/// All whole records and the bytes they take. What a crash left of the last append is left out; any other broken line
/// is an error.
pub(super) fn read_all(path: &Path, bytes: &[u8]) -> Result<(Vec<Record>, u64), JournalError> {
    let mut records: Vec<Record> = Vec::new();
    let mut offset = 0;
    while offset < bytes.len() {
        let rest = &bytes[offset..];
        let line_end = rest.iter().position(|&b| b == b'\n');
        let line = &rest[..line_end.unwrap_or(rest.len())];
        let is_last = offset + line.len() + 1 >= bytes.len();
        let parsed = match line_end {
            Some(_) => parse(line, records.last()),
            None => Err("no line end".to_owned()),
        };
        match parsed {
            Ok(record) => records.push(record),
            Err(reason) => {
                if let Some(error) = version_error(path, offset, line) {
                    return Err(error);
                }
                if is_last && is_torn(line, records.len() as u64) {
                    break;
                }
                return Err(JournalError::Damaged { path: path.to_owned(), offset: offset as u64, reason });
            }
        }
        offset += line.len() + 1;
    }
    Ok((records, offset as u64))
}

/// Whether a broken last line can be what a crash left of the append of record `due`: a part of it, perhaps with zeros
/// where the disk was not written yet. One that holds a whole record and more has lost a line end, and a whole one of
/// another number has lost its predecessor: records that were on the disk, and cutting the line off would hide that.
fn is_torn(line: &[u8], due: u64) -> bool {
    let mut whole = serde_json::Deserializer::from_slice(line).into_iter::<Record>();
    match whole.next() {
        Some(Ok(record)) => record.seq == due && line[whole.byte_offset()..].iter().all(|&b| b == 0),
        Some(Err(_)) | None => true,
    }
}

fn parse(line: &[u8], previous: Option<&Record>) -> Result<Record, String> {
    let written: Written<'_> = serde_json::from_slice(line).map_err(|e| e.to_string())?;
    let (v, seq, at) = (written.v, written.seq, written.at);
    let expected = previous.map_or(0, |p| p.seq + 1);
    if seq != expected {
        return Err(format!("record {seq} stands where record {expected} should"));
    }
    // Every byte must be as it was written: one flipped in a key's spelling or a number's form would otherwise pass
    // where it decodes to the same value.
    let sum = checksum(previous.map_or("", |p| &p.sum), (v, seq, at), written.event.get());
    if json(&written).as_bytes() != line || sum != written.sum {
        return Err(format!("record {seq} does not match its checksum"));
    }
    let event = serde_json::from_str(written.event.get()).map_err(|e| e.to_string())?;
    Ok(Record { v, seq, at, event, sum })
}

/// Whether the line fails because a newer program wrote it.
fn version_error(path: &Path, offset: usize, line: &[u8]) -> Option<JournalError> {
    #[derive(Deserialize)]
    struct Version {
        v: u64,
    }
    let Version { v: found } = serde_json::from_slice(line).ok()?;
    let (path, offset) = (path.to_owned(), offset as u64);
    (found > FORMAT_VERSION).then_some(JournalError::Version { path, offset, found })
}
