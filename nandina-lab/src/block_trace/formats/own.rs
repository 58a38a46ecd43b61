//! CSV of our own: the header names each column and its unit.
//!
//! For example `time_ms,op,start_sectors,length_bytes`. The columns may be in any order; `time` and
//! `volume` may be missing.

use crate::block_trace::field::{
    MICROSECONDS, MILLISECONDS, NANOSECONDS, SECONDS, TimeUnit, bytes, number_wrong, sectors,
    shown, time, wrong,
};
use crate::block_trace::format::{Format, Line, Parser, Stated};
use crate::block_trace::request::Kind;

pub(in crate::block_trace) const FORMAT: Format = Format {
    key: "csv",
    name: "CSV with units in its header",
    columns: "time_{s,ms,us,ns},volume,op,start_{bytes,sectors},length_{bytes,sectors}",
    parser: |_| Box::new(Own { columns: Vec::new() }),
};

/// What a column holds.
#[derive(Clone, Copy)]
enum Column {
    Time(TimeUnit),
    Volume,
    Operation,
    Start(Length),
    Length(Length),
}

/// Reads a length in the column's unit, in bytes.
type Length = fn(usize, &str, &str) -> Result<u64, String>;

/// Every column by its name. Of those with the same first word there is one at most.
const COLUMNS: &[(&str, Column)] = &[
    ("time_s", Column::Time(SECONDS)),
    ("time_ms", Column::Time(MILLISECONDS)),
    ("time_us", Column::Time(MICROSECONDS)),
    ("time_ns", Column::Time(NANOSECONDS)),
    ("volume", Column::Volume),
    ("op", Column::Operation),
    ("start_bytes", Column::Start(bytes)),
    ("start_sectors", Column::Start(sectors)),
    ("length_bytes", Column::Length(bytes)),
    ("length_sectors", Column::Length(sectors)),
];

struct Own {
    /// Empty before the header.
    columns: Vec<Column>,
}

impl Parser for Own {
    fn line<'l>(&mut self, line: &'l str) -> Result<Line<'l>, String> {
        if self.columns.is_empty() {
            self.columns = header(line)?;
            return Ok(Line::Aside("header"));
        }
        let mut stated =
            Stated { kind: Kind::Flush, volume: "", start: 0, bytes: 0, time_ns: None };
        let mut fields = line.split(',').map(str::trim);
        for (at, column) in (1..).zip(&self.columns) {
            let Some(text) = fields.next() else {
                return Err(number_wrong(&(at - 1).to_string(), "a field for each of the header"));
            };
            match column {
                Column::Time(unit) => stated.time_ns = time(at, text, *unit)?,
                Column::Volume => stated.volume = text,
                Column::Operation => stated.kind = kind(at, text)?,
                Column::Start(read) => stated.start = read(at, "start", text)?,
                Column::Length(read) => stated.bytes = read(at, "length", text)?,
            }
        }
        match fields.next() {
            None => Ok(Line::Request(stated)),
            Some(_) => Err(number_wrong("more", "a field for each of the header")),
        }
    }
}

fn kind(field: usize, text: &str) -> Result<Kind, String> {
    match text {
        "read" => Ok(Kind::Read),
        "write" => Ok(Kind::Write),
        "trim" => Ok(Kind::Trim),
        "flush" => Ok(Kind::Flush),
        _ => Err(wrong(field, "op", text, "read, write, trim or flush")),
    }
}

/// The columns that a header names.
fn header(line: &str) -> Result<Vec<Column>, String> {
    let (mut columns, mut words) = (Vec::new(), Vec::new());
    for (at, name) in (1..).zip(line.split(',').map(str::trim)) {
        let Some((_, column)) = COLUMNS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = COLUMNS.iter().map(|(known, _)| *known).collect();
            return Err(format!(
                "field {at} of the header: '{}': one of {} was expected",
                shown(name),
                known.join(", ")
            ));
        };
        let word = name.split('_').next().unwrap_or_default();
        if words.contains(&word) {
            return Err(format!("field {at} of the header: there is a second column of {word}"));
        }
        words.push(word);
        columns.push(*column);
    }
    match ["op", "start", "length"].into_iter().find(|word| !words.contains(word)) {
        None => Ok(columns),
        Some(word) => Err(format!("the header has no column of {word}: name it with its unit")),
    }
}
