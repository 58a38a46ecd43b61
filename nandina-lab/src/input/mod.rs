//! Records from a user's file: CSV with a header, or 512-byte pages of sensor loggers.
//!
//! Either may be compressed with zstd. No bytes make a reader panic; each refusal names the file
//! and the place.

mod csv;
mod encode;
mod number;
pub(crate) mod packed;
mod sensor;

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

/// Why a file gives no records: one line with file, place and remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputError(String);

impl InputError {
    fn new(path: &Path, what: impl std::fmt::Display) -> Self {
        // Quoted cells and names may have line ends.
        Self(format!("{}: {what}", path.display()).replace(char::is_control, " "))
    }
}

impl std::fmt::Display for InputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InputError {}

/// Records in the order of the file, as bytes. Keys order as the column's numbers do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Records {
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// The number of different keys.
    pub distinct_keys: usize,
    /// Name of the key's column.
    pub key_column: String,
    /// Name of the value's column.
    pub value_column: String,
    /// The file's name and kind.
    pub description: String,
    keys: Vec<u8>,
    values: Vec<u8>,
}

impl Records {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.keys.len() / self.key_bytes
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key of `row`.
    pub fn key(&self, row: usize) -> &[u8] {
        &self.keys[row * self.key_bytes..][..self.key_bytes]
    }

    /// The value of `row`.
    pub fn value(&self, row: usize) -> &[u8] {
        &self.values[row * self.value_bytes..][..self.value_bytes]
    }

    /// Keeps the first `rows` rows, or all if there are fewer.
    pub fn first(mut self, rows: usize) -> Self {
        self.keys.truncate(rows * self.key_bytes);
        self.values.truncate(rows * self.value_bytes);
        self.distinct_keys = distinct(&self.keys, self.key_bytes);
        self
    }

    /// Appends the row number, 4 bytes, to each key.
    ///
    /// Equal keys are then all kept, in the order of the file.
    pub fn with_row_numbers(mut self) -> Self {
        let rows = self.keys.chunks_exact(self.key_bytes).zip(0u32..);
        self.keys = rows.flat_map(|(key, row)| [key, &row.to_be_bytes()].concat()).collect();
        self.key_bytes += 4;
        self.distinct_keys = self.len();
        self
    }
}

fn distinct(keys: &[u8], key_bytes: usize) -> usize {
    keys.chunks_exact(key_bytes).collect::<HashSet<_>>().len()
}

/// A column of numbers, and the line of each in the file.
struct Column {
    name: String,
    cells: Cells,
}

/// The numbers of a column.
enum Cells {
    Whole(Vec<i128>),
    Decimal(Vec<f64>),
}

/// The selected columns, the kind of file, and how its places are named.
struct Table {
    kind: &'static str,
    key: Column,
    value: Column,
    /// Names the place of the row at an index, such as `line 17`.
    place: Box<dyn Fn(usize) -> String>,
}

/// Reads the records of `path`.
///
/// `key` and `value` name columns. A CSV file needs `key`; sensor pages have `key`, `v1`, `v2` and
/// `v3`, and `key` is the default there. The default value is the first other column, of sensor
/// pages `v1` or `v2`.
///
/// Sizes are in bytes; the default is 4 where all whole numbers of the column fit, else 8, and 16
/// where they need it. Decimals take 8. Different keys stay different, and whole numbers exact: a
/// file where they would not is refused.
pub fn read(
    path: &Path,
    key: Option<&str>,
    value: Option<&str>,
    key_bytes: Option<usize>,
    value_bytes: Option<usize>,
) -> Result<Records, InputError> {
    let fail = |what: String| InputError::new(path, what);
    let bytes = std::fs::read(path).map_err(|error| fail(format!("cannot be read: {error}")))?;
    let bytes = decompress(bytes).map_err(fail)?;
    let table = match std::str::from_utf8(&bytes) {
        Ok(text) if !text.contains('\0') => csv::read(text, key, value),
        _ if sensor::looks_like(&bytes) => sensor::read(&bytes, key, value),
        _ => Err("this is neither CSV text nor 512-byte sensor pages: give --input a file of \
                  either kind"
            .into()),
    }
    .map_err(fail)?;
    let encode = |column: &Column, size, is_key| {
        encode::encode(&column.cells, size, is_key).map_err(|(row, what)| {
            fail(format!("{}, column {}: {what}", (table.place)(row), column.name))
        })
    };
    let (key_bytes, keys) = encode(&table.key, key_bytes, true)?;
    let (value_bytes, values) = encode(&table.value, value_bytes, false)?;
    if keys.is_empty() {
        return Err(fail("there are no records in it: give a file with at least one".into()));
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    Ok(Records {
        key_bytes,
        value_bytes,
        distinct_keys: distinct(&keys, key_bytes),
        key_column: table.key.name,
        value_column: table.value.name,
        description: format!("{name} ({})", table.kind),
        keys,
        values,
    })
}

/// The first bytes of a zstd frame.
pub(crate) const ZSTD_MAGIC: [u8; 4] = 0xFD2F_B528u32.to_le_bytes();

/// The bytes, or what they decompress to.
pub(crate) fn decompress(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if !bytes.starts_with(&ZSTD_MAGIC) {
        return Ok(bytes);
    }
    let damaged = |what: String| {
        format!("its zstd compression is damaged ({what}): decompress it by hand and see")
    };
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(&bytes[..])
        .map_err(|error| damaged(error.to_string()))?;
    let mut plain = Vec::new();
    decoder.read_to_end(&mut plain).map_err(|error| damaged(error.to_string()))?;
    Ok(plain)
}

/// The position of the column called `name`, or what to do about it.
pub(crate) fn position(columns: &[&str], name: &str) -> Result<usize, String> {
    let mut found = (0..columns.len()).filter(|&at| columns[at] == name);
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(at),
        (Some(_), Some(_)) => Err(format!("there are two columns '{name}': rename one")),
        _ => Err(format!("there is no column '{name}': it has {}", columns.join(", "))),
    }
}
