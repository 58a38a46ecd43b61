//! Reads work from a trace.
//!
//! Each mistake is reported with line, field and what was expected there.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use nandina::engine::KEY_BYTES_MAX;

use super::line::{Lines, Mistake};
use super::{DELETE, INSERT, LOOKUP, MAGIC, NAME_BYTES_MAX, PHASE, SCAN, VERSION, is_name};
use crate::LabError;
use crate::input::packed::{self, ReadProgress};
use crate::store::Kind;
use crate::work::{Operation, Phase, Work};

/// Operations of a trace, at most.
const OPERATIONS_MAX: usize = 100_000_000;
/// Bytes of its different keys and values, at most.
const RECORD_BYTES_MAX: usize = 1 << 32;
/// Phases of a trace, at most: each takes rows of the tables.
const PHASES_MAX: usize = 1000;

/// Returns an error if keys and values of these sizes are refused.
pub type Sizes<'s> = &'s dyn Fn(usize, usize) -> Result<(), LabError>;

/// Reads the trace in a file, which may be compressed with zstd or gzip.
///
/// `progress` is called with bytes of the file.
pub fn read(path: &Path, progress: ReadProgress<'_>) -> Result<Work, LabError> {
    read_sized(path, progress, &|_, _| Ok(()))
}

/// Reads a trace if `sizes` accepts the sizes in its first line.
///
/// The check comes early because each row takes that much memory.
pub fn read_sized(
    path: &Path,
    progress: ReadProgress<'_>,
    sizes: Sizes<'_>,
) -> Result<Work, LabError> {
    packed::open(path, progress, |from| {
        parse_sized(from, sizes).map_err(|Mistake { line, what }| {
            LabError(format!("{}: line {line}: {what}", path.display()))
        })
    })
}

/// Reads a trace.
pub fn parse(from: impl BufRead) -> Result<Work, Mistake> {
    parse_sized(from, &|_, _| Ok(()))
}

fn parse_sized(from: impl BufRead, sizes: Sizes<'_>) -> Result<Work, Mistake> {
    let mut lines = Lines::new(from);
    let (number, header) = lines.next()?.unwrap_or((1, ""));
    let kinds = kinds(header).map_err(|what| Mistake::new(number, what))?;
    let [key_bytes, value_bytes] = kinds.map(|kind| usize::from(kind.bytes()));
    sizes(key_bytes, value_bytes).map_err(|error| Mistake::new(number, error.0))?;
    let mut reader = Reader::new(kinds);
    while let Some((number, line)) = lines.next()? {
        reader.line(line).map_err(|what| Mistake::new(number, what))?;
    }
    reader.finish()
}

/// The kinds of keys and values that a header names.
fn kinds(header: &str) -> Result<[Kind; 2], String> {
    let expected = format!("'{MAGIC},{VERSION},KEY,VALUE' was expected");
    let fields: Vec<&str> = header.splitn(5, ',').collect();
    let &[magic, version, key, value] = &fields[..] else {
        return Err(format!(
            "{} fields: {expected}, KEY and VALUE being such as u32 or hex:16",
            fields.len()
        ));
    };
    if magic != MAGIC {
        return Err(format!("field 1: '{}' is no trace: {expected}", shown(magic)));
    }
    if version != VERSION.to_string() {
        return Err(format!(
            "field 2, version: '{}' cannot be read: {VERSION} was expected",
            shown(version)
        ));
    }
    let kind = |field, text: &str, sizes: std::ops::RangeInclusive<usize>| {
        let kind = text.parse::<Kind>().ok().filter(|kind| !matches!(kind, Kind::Text(_)));
        kind.filter(|kind| sizes.contains(&kind.bytes().into())).ok_or_else(|| {
            format!(
                "field {field}: '{}': u32, i32, u64, i64 or hex:N was expected, N being bytes, {} to {}",
                shown(text),
                sizes.start(),
                sizes.end()
            )
        })
    };
    Ok([kind("3, key", key, 1..=KEY_BYTES_MAX)?, kind("4, value", value, 0..=65_535)?])
}

/// Work in the making.
struct Reader {
    key: Kind,
    value: Kind,
    /// The row of each key: that of its last value.
    rows: HashMap<Box<[u8]>, u32>,
    /// For each row, whether its value was inserted. A key may be looked up before that.
    put: Vec<bool>,
    keys: Vec<u8>,
    values: Vec<u8>,
    phases: Vec<Phase>,
    operations: usize,
}

impl Reader {
    fn new([key, value]: [Kind; 2]) -> Self {
        let (rows, put, keys, values) = (HashMap::new(), Vec::new(), Vec::new(), Vec::new());
        Self { key, value, rows, put, keys, values, phases: Vec::new(), operations: 0 }
    }

    /// Adds a line, or returns what is wrong with it.
    fn line(&mut self, line: &str) -> Result<(), String> {
        let fields: Vec<&str> = line.splitn(4, ',').collect();
        let operation = match fields[..] {
            [PHASE, name] => return self.phase(name),
            [INSERT, key, value] => self.insert(key, value)?,
            [LOOKUP, key] => Operation::Lookup(self.row(key)?),
            [DELETE, key] => Operation::Delete(self.row(key)?),
            [SCAN, key, records] => {
                let row = self.row(key)?;
                let records = records.parse().ok().filter(|&records| records > 0);
                let records = records.ok_or_else(|| {
                    let text = shown(fields[2]);
                    format!(
                        "field 3, records: '{text}': a whole number from 1 to 65535 was expected"
                    )
                })?;
                Operation::Scan { row, records }
            }
            [name, ..] => return Err(unknown(name, fields.len())),
            [] => return Ok(()),
        };
        if self.operations == OPERATIONS_MAX {
            return Err(format!("a trace may have {OPERATIONS_MAX} operations: divide it"));
        }
        self.operations += 1;
        if self.phases.is_empty() {
            self.phases.push(Phase::new("trace", Vec::new()));
        }
        if let Some(phase) = self.phases.last_mut() {
            phase.operations.push(operation);
        }
        Ok(())
    }

    fn phase(&mut self, name: &str) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!(
                "field 2, name: '{}': a name of 1 to {NAME_BYTES_MAX} bytes was expected, without spaces \
                 around it",
                shown(name)
            ));
        }
        if self.phases.len() == PHASES_MAX {
            return Err(format!("a trace may have {PHASES_MAX} phases: leave some names out"));
        }
        self.phases.push(Phase::new(name.to_string(), Vec::new()));
        Ok(())
    }

    /// The row of a key; a new one, with a value of zeros, if the key is new.
    fn row(&mut self, key: &str) -> Result<u32, String> {
        let key = self.key.key(key).map_err(|what| format!("field 2, key: {what}"))?;
        if let Some(&row) = self.rows.get(&key[..]) {
            return Ok(row);
        }
        let value = vec![0; self.value.bytes().into()];
        self.new_row(key, &value, false)
    }

    fn new_row(&mut self, key: Vec<u8>, value: &[u8], put: bool) -> Result<u32, String> {
        if self.keys.len() + self.values.len() + key.len() + value.len() > RECORD_BYTES_MAX {
            return Err(format!("a trace may have {RECORD_BYTES_MAX} bytes of records: divide it"));
        }
        // There are no more rows than operations.
        let row = self.put.len() as u32;
        self.keys.extend_from_slice(&key);
        self.values.extend_from_slice(value);
        self.put.push(put);
        self.rows.insert(key.into(), row);
        Ok(row)
    }

    /// Adds an insert. Work has a row's value and its complement; any other value takes another
    /// row.
    fn insert(&mut self, key: &str, value: &str) -> Result<Operation, String> {
        let row = self.row(key)?;
        let value = self.value.value(value).map_err(|what| format!("field 3, value: {what}"))?;
        let index = row as usize;
        let there = &mut self.values[index * value.len()..][..value.len()];
        if !self.put[index] {
            there.copy_from_slice(&value);
            self.put[index] = true;
        }
        if there == value {
            return Ok(Operation::Insert(row));
        }
        if there.iter().zip(&value).all(|(there, byte)| *there == !byte) {
            return Ok(Operation::Update(row));
        }
        let key =
            self.keys[index * usize::from(self.key.bytes())..][..self.key.bytes().into()].to_vec();
        Ok(Operation::Insert(self.new_row(key, &value, true)?))
    }

    fn finish(mut self) -> Result<Work, Mistake> {
        if self.operations == 0 {
            return Err(Mistake::new(1, "no operation follows it: give at least one".into()));
        }
        self.phases.iter_mut().for_each(|phase| phase.operations.shrink_to_fit());
        let (key_bytes, value_bytes) = (self.key.bytes().into(), self.value.bytes().into());
        let mut work = Work::from_rows(key_bytes, value_bytes, self.keys, self.values)
            .map_err(|error| Mistake::new(1, error.to_string()))?;
        work.phases = self.phases;
        Ok(work)
    }
}

/// What is wrong with a line that is none of the operations.
fn unknown(name: &str, fields: usize) -> String {
    let form = match name {
        INSERT => "insert,KEY,VALUE",
        LOOKUP => "lookup,KEY",
        DELETE => "delete,KEY",
        SCAN => "scan,KEY,RECORDS",
        PHASE => "phase,NAME",
        _ => {
            return format!(
                "field 1: '{}' is no operation: insert, lookup, scan, delete or phase was expected",
                shown(name)
            );
        }
    };
    let fields = if fields > 3 { "more than 3".to_string() } else { fields.to_string() };
    format!("{fields} fields: {form} was expected")
}

/// The beginning of a field, in one line.
fn shown(text: &str) -> String {
    text.chars().take(30).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
