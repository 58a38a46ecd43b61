//! The encoding of data on the medium and in tables in RAM.
//!
//! These are little-endian integers, records in the order of their keys, and sets of small numbers.

use core::cmp::Ordering;

pub const fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

pub const fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// The bytes from `at`. An index for each byte would be checked once for each.
const fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    if let Some((_, rest)) = bytes.split_at_checked(at)
        && let Some(&array) = rest.first_chunk()
    {
        return array;
    }
    past_the_end()
}

#[cold]
#[inline(never)]
const fn past_the_end() -> ! {
    panic!("an integer is past the end")
}

/// The position of `key` among `count` ascending keys (`Ok`).
///
/// If it is not there, the position at which it would be inserted (`Err`).
#[inline]
pub fn bisect<'k>(
    count: usize,
    key_at: impl Fn(usize) -> &'k [u8],
    key: &[u8],
) -> Result<usize, usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        match key_at(middle).cmp(key) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return Ok(middle),
        }
    }
    Err(low)
}

/// A set of small numbers, a bit each: 0 is the lowest bit of the first byte.
#[derive(Clone, Copy, Default)]
pub struct Bits<B>(pub B);

impl<B: AsRef<[u8]>> Bits<B> {
    /// Whether `number` is in the set.
    pub fn has(&self, number: usize) -> bool {
        self.0.as_ref()[number / 8] & (1 << (number % 8)) != 0
    }
}

impl<B: AsMut<[u8]>> Bits<B> {
    /// Adds `number` to the set, or removes it.
    pub fn set(&mut self, number: usize, is_in: bool) {
        let (byte, bit) = (&mut self.0.as_mut()[number / 8], 1 << (number % 8));
        *byte = if is_in { *byte | bit } else { *byte & !bit };
    }
}

/// Whether every byte is 0xFF, as after an erase.
///
/// It is called for each page that a mount reads as erased, so it compares 16 bytes at once.
pub fn is_erased(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks();
    chunks.iter().all(|&chunk| u128::from_ne_bytes(chunk) == u128::MAX)
        && rest.iter().all(|&byte| byte == 0xFF)
}

/// How many of the bits from `from` to before `to` are set.
pub fn count_bits(bytes: &[u8], from: usize, to: usize) -> u32 {
    let (first, last) = (from.div_ceil(8).min(to.div_ceil(8)), to / 8);
    if first > last {
        return (from..to).filter(|&at| Bits(bytes).has(at)).count() as u32;
    }
    let edges = (from..first * 8).chain(last * 8..to);
    let edges = edges.filter(|&at| Bits(bytes).has(at)).count() as u32;
    edges + bytes[first..last].iter().map(|byte| byte.count_ones()).sum::<u32>()
}

/// Whether one of the bits from `from` to before `to` is set.
pub fn has_bits(bytes: &[u8], from: usize, to: usize) -> bool {
    let (first, last) = (from.div_ceil(8).min(to.div_ceil(8)), to / 8);
    if first > last {
        return (from..to).any(|at| Bits(bytes).has(at));
    }
    bytes[first..last].iter().any(|&byte| byte != 0)
        || (from..first * 8).chain(last * 8..to).any(|at| Bits(bytes).has(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_not_taken_out() {
        let mut bits = Bits([0u8; 3]);
        for number in [0, 7, 8, 23] {
            bits.set(number, true);
        }
        bits.set(7, false);
        assert_eq!(bits.0, [0x01, 0x01, 0x80]);
        assert!((0..24).filter(|&number| bits.has(number)).eq([0, 8, 23]));
    }

    #[test]
    fn a_cleared_bit_anywhere_is_not_erased() {
        for length in 0..=50 {
            let bytes = &mut [0xFF; 50][..length];
            assert!(is_erased(bytes));
            for at in 0..8 * length {
                bytes[at / 8] ^= 1 << (at % 8);
                assert!(!is_erased(bytes), "bit {at} of {length} bytes");
                bytes[at / 8] = 0xFF;
            }
        }
    }

    #[test]
    fn bits_of_a_range_are_counted_and_found() {
        let bytes = [0b1000_0001, 0, 0b0000_0100, 0xFF];
        for from in 0..=32 {
            for to in from..=32 {
                let count = (from..to).filter(|&at| Bits(&bytes[..]).has(at)).count();
                assert_eq!(count_bits(&bytes, from, to) as usize, count, "{from}..{to}");
                assert_eq!(has_bits(&bytes, from, to), count > 0, "{from}..{to}");
            }
        }
    }
}
