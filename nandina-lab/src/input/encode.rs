//! Numbers as bytes.
//!
//! Keys are encoded so that they order as the numbers do, values little-endian.

use nandina::key;

use super::Cells;

/// The most bytes of a key or value made from a number.
const SIZE_MAX: usize = 64;

/// Returns the bytes of a cell and all cells in a row.
///
/// An error is the row that does not fit, and why.
pub fn encode(
    cells: &Cells,
    size: Option<usize>,
    is_key: bool,
) -> Result<(usize, Vec<u8>), (usize, String)> {
    let (form, count) = match cells {
        Cells::Whole(numbers) => (form_of(numbers), numbers.len()),
        Cells::Decimal(numbers) => (Form::Eight, numbers.len()),
    };
    let natural = form.bytes();
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
                // More bytes than 4, but fewer than the column needs, are too few for some number
                // in it.
                let too_few = (size < natural && size < 8 && !fits_four(number))
                    || (size < natural && natural == 16 && i64::try_from(number).is_err());
                if too_few {
                    let what =
                        format!("{number} does not fit in {size} bytes: choose {option} {natural}");
                    return Err((row, what));
                }
                let form = if size == 4 { Form::Four } else { form };
                put_whole(&mut bytes, number, form, is_key);
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

/// How the whole numbers of a column are stored.
#[derive(Clone, Copy)]
enum Form {
    Four,
    Eight,
    /// No number is negative.
    EightUnsigned,
    Sixteen,
}

impl Form {
    const fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight | Self::EightUnsigned => 8,
            Self::Sixteen => 16,
        }
    }
}

/// The smallest form that can hold all numbers.
fn form_of(numbers: &[i128]) -> Form {
    let all = |fits: fn(i128) -> bool| numbers.iter().all(|&number| fits(number));
    if all(fits_four) {
        Form::Four
    } else if all(|number| i64::try_from(number).is_ok()) {
        Form::Eight
    } else if all(|number| u64::try_from(number).is_ok()) {
        Form::EightUnsigned
    } else {
        Form::Sixteen
    }
}

fn fits_four(number: i128) -> bool {
    i32::try_from(number).is_ok()
}

/// Appends a number that fits in the form.
fn put_whole(bytes: &mut Vec<u8>, number: i128, form: Form, is_key: bool) {
    match (is_key, form) {
        (true, Form::Four) => bytes.extend(key::from_i32(number as i32)),
        (true, Form::Eight) => bytes.extend(key::from_i64(number as i64)),
        (true, Form::EightUnsigned) => bytes.extend(key::from_u64(number as u64)),
        (true, Form::Sixteen) => bytes.extend((number as u128 ^ 1 << 127).to_be_bytes()),
        (false, Form::Sixteen) => bytes.extend(number.to_le_bytes()),
        // Little-endian, the lowest bytes come first.
        (false, form) => bytes.extend(&number.to_le_bytes()[..form.bytes()]),
    }
}

/// Appends a decimal. As integers, the bits of positive decimals order correctly and those of
/// negative ones in reverse.
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
