//! Numbers as bytes: keys so that they order as the numbers do, values little-endian.

use nandina::key;

use super::Cells;

/// The most bytes of a key or value made from a number.
const SIZE_MAX: usize = 64;

/// Bytes of a cell and all cells in a row, or the row that does not fit and why.
pub fn encode(
    cells: &Cells,
    size: Option<usize>,
    is_key: bool,
) -> Result<(usize, Vec<u8>), (usize, String)> {
    let (natural, count) = match cells {
        Cells::Whole(numbers) => {
            let small = numbers.iter().all(|&number| fits_four(number));
            (if small { 4 } else { 8 }, numbers.len())
        }
        Cells::Decimal(numbers) => (8, numbers.len()),
    };
    let size = size.unwrap_or(natural);
    let option = if is_key { "--key-size" } else { "--value-size" };
    if size < 4 || (5..8).contains(&size) || size > SIZE_MAX {
        return Err((
            0,
            format!("{option} {size} is no size for a number: choose 4, 8, or up to 64"),
        ));
    }
    let mut bytes = Vec::with_capacity(size * count);
    for row in 0..count {
        let start = bytes.len();
        match cells {
            Cells::Whole(numbers) => {
                let number = numbers[row];
                if size == 4 && !fits_four(number) {
                    return Err((
                        row,
                        format!("{number} does not fit in 4 bytes: choose {option} 8"),
                    ));
                }
                put_whole(&mut bytes, number, size, is_key);
            }
            Cells::Decimal(numbers) => {
                if size == 4 {
                    return Err((row, format!("a decimal takes 8 bytes: choose {option} 8")));
                }
                put_decimal(&mut bytes, numbers[row], is_key);
            }
        }
        bytes.resize(start + size, 0);
    }
    Ok((size, bytes))
}

fn fits_four(number: i64) -> bool {
    i32::try_from(number).is_ok()
}

fn put_whole(bytes: &mut Vec<u8>, number: i64, size: usize, is_key: bool) {
    match (is_key, size) {
        (true, 4) => bytes.extend_from_slice(&key::from_i32(number as i32)),
        (true, _) => bytes.extend_from_slice(&key::from_i64(number)),
        (false, 4) => bytes.extend_from_slice(&(number as i32).to_le_bytes()),
        (false, _) => bytes.extend_from_slice(&number.to_le_bytes()),
    }
}

/// As integers, the bits of positive decimals order rightly and those of negative ones the other way.
fn put_decimal(bytes: &mut Vec<u8>, number: f64, is_key: bool) {
    if !is_key {
        bytes.extend_from_slice(&number.to_le_bytes());
        return;
    }
    // -0 and 0 are one key.
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    bytes.extend_from_slice(&ordered.to_be_bytes());
}
