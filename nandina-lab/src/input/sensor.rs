//! Sensor pages of 512 bytes.
//!
//! A page has a header of 16 bytes (record count, u16 at byte 4), then up to 31 records of a u32
//! key and three i32 values, little-endian. Only the count of the header is used.

use super::{Cells, Column, Table, position};

const PAGE_BYTES: usize = 512;
const HEADER_BYTES: usize = 16;
const RECORD_BYTES: usize = 16;
const RECORDS_MAX: usize = (PAGE_BYTES - HEADER_BYTES) / RECORD_BYTES;
const COLUMNS: [&str; 4] = ["key", "v1", "v2", "v3"];

fn count(page: &[u8]) -> usize {
    u16::from_le_bytes([page[4], page[5]]).into()
}

/// Whether the bytes may be sensor pages: whole pages with a possible first one.
pub fn looks_like(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes.len().is_multiple_of(PAGE_BYTES)
        && count(&bytes[..PAGE_BYTES]) <= RECORDS_MAX
}

pub fn read(bytes: &[u8], key: Option<&str>, value: Option<&str>) -> Result<Table, String> {
    let key = position(&COLUMNS, key.unwrap_or("key"))?;
    // The first column that is not the key, with measurements preferred over the time.
    let value = match value {
        Some(value) => position(&COLUMNS, value)?,
        None if key == 1 => 2,
        None => 1,
    };
    let (mut keys, mut values, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (number, page) in bytes.chunks_exact(PAGE_BYTES).enumerate() {
        let count = count(page);
        if count > RECORDS_MAX {
            return Err(format!(
                "page {number} (byte {}): its header says {count} records, a page has room for \
                 {RECORDS_MAX}: this is no sensor page",
                number * PAGE_BYTES
            ));
        }
        for index in 0..count {
            let record = &page[HEADER_BYTES + index * RECORD_BYTES..][..RECORD_BYTES];
            let cell = |column: usize| -> i128 {
                let at = column * 4;
                let raw = [record[at], record[at + 1], record[at + 2], record[at + 3]];
                if column == 0 {
                    u32::from_le_bytes(raw).into()
                } else {
                    i32::from_le_bytes(raw).into()
                }
            };
            keys.push(cell(key));
            values.push(cell(value));
            places.push((number, index));
        }
    }
    let column = |at: usize, cells| Column { name: COLUMNS[at].into(), cells: Cells::Whole(cells) };
    Ok(Table {
        kind: "sensor pages",
        key: column(key, keys),
        value: column(value, values),
        place: Box::new(move |row| format!("page {}, record {}", places[row].0, places[row].1)),
    })
}
