//! The numbers of a column of cells.
//!
//! Cells with different numbers never become the same key, and no digit of a whole number is lost.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Cells;

/// The row of a cell that is refused, and what is wrong with it and how to fix it.
type Mistake = (usize, String);

/// The numbers of all cells: whole if all are, else decimals. `lines` are those of the file, by
/// row.
pub fn numbers(cells: &[String], is_key: bool, lines: &[u64]) -> Result<Cells, Mistake> {
    let whole: Option<Vec<i128>> = cells.iter().map(|cell| cell.parse().ok()).collect();
    match whole {
        Some(whole) => Ok(Cells::Whole(whole)),
        None => decimals(cells, is_key, lines).map(Cells::Decimal),
    }
}

fn decimals(cells: &[String], is_key: bool, lines: &[u64]) -> Result<Vec<f64>, Mistake> {
    let mut numbers = Vec::with_capacity(cells.len());
    // The row in which each decimal first occurs.
    let mut rows = HashMap::new();
    for (row, cell) in cells.iter().enumerate() {
        let number = decimal(cell).map_err(|what| (row, what.into()))?;
        if is_key {
            // -0 and 0 are one key.
            match rows.entry((number + 0.0).to_bits()) {
                Entry::Vacant(entry) => {
                    entry.insert(row);
                }
                Entry::Occupied(first) => {
                    let first = *first.get();
                    if digits(&cells[first]) != digits(cell) {
                        let what = format!(
                            "becomes the same decimal of 8 bytes as the other number in line {}: round both",
                            lines[first]
                        );
                        return Err((row, what));
                    }
                }
            }
        }
        numbers.push(number);
    }
    Ok(numbers)
}

/// The decimal of a cell, or what is wrong with it and how to fix it.
fn decimal(cell: &str) -> Result<f64, &'static str> {
    let number: f64 = cell.parse().map_err(|_| "is not a number: mend the cell")?;
    if !number.is_finite() {
        let has_digits = cell.contains(|c: char| c.is_ascii_digit());
        return Err(match has_digits {
            true => "is too large for a decimal of 8 bytes: mend the cell",
            false => "is not a number: mend the cell",
        });
    }
    // A program that writes all digits of a decimal loses none that it had.
    if is_whole(cell) && digits(cell) != digits(&number.to_string()) {
        return Err("loses digits as a decimal of 8 bytes: round it");
    }
    Ok(number)
}

fn is_whole(cell: &str) -> bool {
    let digits = cell.strip_prefix(['+', '-']).unwrap_or(cell);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number as written, without what does not change it.
///
/// Returns its sign, its digits without zeros at either end, and the power of ten of the last of
/// them.
fn digits(cell: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = cell.split_once(['e', 'E']).unwrap_or((cell, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let negative = whole.starts_with('-');
    let all = format!("{}{fraction}", whole.trim_start_matches(['+', '-']));
    let without_end = all.trim_end_matches('0');
    // An exponent of more digits is that of a decimal that is 0.
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MIN / 2);
    let zeros = (all.len() - without_end.len()) as i64;
    let last = exponent.saturating_add(zeros - fraction.len() as i64);
    match without_end.trim_start_matches('0') {
        "" => (false, String::new(), 0),
        digits => (negative, digits.into(), last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_written_differently_are_the_same_digits() {
        for same in [
            ["1.5", "+1.50"],
            ["0.1", "1e-1"],
            ["100", "1E2"],
            ["-0.0", "0"],
            [".5", "5.e-1"],
            ["007", "7.0"],
            ["0e9223372036854775807", "00e9223372036854775807"],
        ] {
            assert_eq!(digits(same[0]), digits(same[1]), "{same:?}");
        }
        for other in [["1.5", "-1.5"], ["1", "10"], ["0.1", "0.10000000000000001"]] {
            assert_ne!(digits(other[0]), digits(other[1]), "{other:?}");
        }
    }
}
