//! Records for an image from a CSV file with a header.
//!
//! All rows are parsed before the first is used, so a bad line is reported before any change.

use std::path::Path;

use super::Kind;
use crate::LabError;
use crate::input::{decompress, position};

/// The rows of a file, as bytes, in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rows {
    /// The file, for errors.
    pub(super) file: String,
    /// Key, value and line of each row.
    pub(super) rows: Vec<(Vec<u8>, Vec<u8>, u64)>,
}

impl Rows {
    /// Reads `path`, which may be compressed with zstd.
    ///
    /// Without names, the first column is the key, and the first other one the value. An error
    /// names the file, the line and the column.
    pub fn read(
        path: &Path,
        (key, key_kind): (Option<&str>, Kind),
        (value, value_kind): (Option<&str>, Kind),
    ) -> Result<Self, LabError> {
        let file = path.display().to_string();
        let fail = |what: String| LabError(format!("{file}: {what}"));
        let bytes =
            std::fs::read(path).map_err(|error| fail(format!("cannot be read: {error}")))?;
        let bytes = decompress(bytes).map_err(fail)?;
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(&bytes[..]);
        let explained = |error: csv::Error| fail(explain(&error));
        let header: Vec<String> =
            reader.headers().map_err(explained)?.iter().map(String::from).collect();
        if header.iter().all(String::is_empty) {
            return Err(fail("line 1: a header with the names of the columns was expected".into()));
        }
        let columns: Vec<&str> = header.iter().map(String::as_str).collect();
        let position = |name: &str| position(&columns, name).map_err(fail);
        let value_at = value.map(position).transpose()?;
        let key_at = match key {
            Some(key) => position(key)?,
            None => usize::from(value_at == Some(0) && header.len() > 1),
        };
        let other = (0..header.len()).find(|&at| at != key_at);
        let Some(value_at) = value_at.or(other) else {
            return Err(fail("line 1: two columns were expected, a key and a value".into()));
        };
        let mut rows = Vec::new();
        for row in reader.records() {
            let row = row.map_err(explained)?;
            let line = row.position().map_or(0, csv::Position::line);
            let wrong =
                |at: usize, what| fail(format!("line {line}, column {}: {what}", header[at]));
            let key = key_kind.key(&row[key_at]).map_err(|what| wrong(key_at, what))?;
            let value = value_kind.value(&row[value_at]).map_err(|what| wrong(value_at, what))?;
            rows.push((key, value, line));
        }
        Ok(Self { file, rows })
    }

    /// Rows of the file.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the file has a header only.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn explain(error: &csv::Error) -> String {
    let line = |position: &Option<csv::Position>| position.as_ref().map_or(0, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            format!(
                "line {}: {len} fields, {expected_len} were expected as in the header",
                line(pos)
            )
        }
        csv::ErrorKind::Utf8 { pos, err } => {
            format!("line {}, column {}: UTF-8 text was expected", line(pos), err.field() + 1)
        }
        _ => error.to_string().replace('\n', " "),
    }
}
