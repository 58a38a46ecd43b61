//! CSV: the first line names the columns; selected cells are numbers.
//!
//! Numbers are whole or decimal.

use super::number::numbers;
use super::{Column, Table, position};

/// The longest part of a cell that an error shows.
const SHOWN: usize = 30;

pub fn read(text: &str, key: Option<&str>, value: Option<&str>) -> Result<Table, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| explain(text, &error))?.clone();
    let columns: Vec<&str> = header.iter().collect();
    if columns.iter().all(|column| column.is_empty()) {
        return Err("line 1: a header with the names of the columns was expected".into());
    }
    let Some(key) = key else {
        return Err(format!(
            "say which column is the key with --key COLUMN: it has {}",
            columns.join(", ")
        ));
    };
    let key_at = position(&columns, key)?;
    let value_at = match value {
        Some(value) => position(&columns, value)?,
        None => (0..columns.len()).find(|&at| at != key_at).unwrap_or(key_at),
    };
    let (mut keys, mut values, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for row in reader.records() {
        let row = row.map_err(|error| explain(text, &error))?;
        keys.push(row[key_at].to_string());
        values.push(row[value_at].to_string());
        lines.push(line(text, row.position()));
    }
    let column = |at: usize, cells: &[String], is_key| {
        let cells = numbers(cells, is_key, &lines).map_err(|(row, what)| {
            let shown: String = cells[row].chars().take(SHOWN).collect();
            format!(
                "line {}, column {}: '{shown}' {what}, or choose another column",
                lines[row], columns[at]
            )
        })?;
        Ok::<_, String>(Column { name: columns[at].to_string(), cells })
    };
    let (key, value) = (column(key_at, &keys, true)?, column(value_at, &values, false)?);
    Ok(Table {
        kind: "CSV",
        key,
        value,
        place: Box::new(move |row| format!("line {}", lines[row])),
    })
}

/// The line of a row.
///
/// The reader's position is after the previous row: at an end of line, or at empty lines.
fn line(text: &str, position: Option<&csv::Position>) -> u64 {
    let Some(position) = position else {
        return 0;
    };
    let behind = text.as_bytes().get(position.byte() as usize..).unwrap_or_default();
    let skipped = behind.iter().take_while(|byte| matches!(byte, b'\n' | b'\r'));
    position.line() + skipped.filter(|&&byte| byte == b'\n').count() as u64
}

fn explain(text: &str, error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => format!(
            "line {}: {len} fields where the header has {expected_len}: mend the line",
            line(text, pos.as_ref())
        ),
        _ => error.to_string().replace('\n', " "),
    }
}
