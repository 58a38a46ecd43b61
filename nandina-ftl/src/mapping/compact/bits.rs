//! Fields of up to 32 bits at any bit of a buffer, least significant bit first.
//!
//! No access panics: bits behind the buffer read as 0 and take no write. An access loads up to 9
//! bytes, so that the last 8 bytes of a buffer hold no fields.

/// Bits that lie whole in 8 bytes wherever they begin.
pub(super) const CHUNK: usize = 56;

/// Bits of a word.
pub(super) const WORD: usize = 64;

#[inline]
fn load(memory: &[u8], byte: usize) -> u64 {
    match memory.get(byte..byte + 8) {
        Some(&[a, b, c, d, e, f, g, h]) => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

#[inline]
fn store(memory: &mut [u8], byte: usize, value: u64) {
    if let Some(bytes) = memory.get_mut(byte..byte + 8) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}

#[inline]
fn write(memory: &mut [u8], bit: usize, width: usize, value: u64) {
    let mask = ((1u64 << width) - 1) << (bit % 8);
    let old = load(memory, bit / 8);
    store(memory, bit / 8, (old & !mask) | ((value << (bit % 8)) & mask));
}

/// The field of `width` bits, at most 32, at `bit`.
#[inline]
pub(super) fn get(memory: &[u8], bit: usize, width: u32) -> u32 {
    part(load(memory, bit / 8), (bit % 8) as u32, width)
}

/// Writes the field of `width` bits, at most [`CHUNK`], at `bit`.
#[inline]
pub(super) fn set(memory: &mut [u8], bit: usize, width: u32, value: u64) {
    write(memory, bit, width as usize, value);
}

/// Writes the field of `width` bits, at most 64, at `bit`.
#[inline]
pub(super) fn put(memory: &mut [u8], bit: usize, width: usize, value: u64) {
    if width <= CHUNK {
        write(memory, bit, width, value);
    } else {
        write(memory, bit, 32, value & u64::from(u32::MAX));
        write(memory, bit + 32, width - 32, value >> 32);
    }
}

/// The highest number of `width` bits, at most 32.
#[inline]
pub(super) fn mask(width: u32) -> u32 {
    ((1u64 << width) - 1) as u32
}

/// The `width` bits, at most 32, of `word` from `bit` on.
#[inline]
pub(super) fn part(word: u64, bit: u32, width: u32) -> u32 {
    (word >> bit) as u32 & mask(width)
}

/// A word at `bit`, of which the lowest `width` bits are wanted.
#[inline]
pub(super) fn word(memory: &[u8], bit: usize, width: usize) -> u64 {
    let low = load(memory, bit / 8) >> (bit % 8);
    if width <= CHUNK {
        return low;
    }
    let above = memory.get(bit / 8 + 8).copied().unwrap_or(0);
    low | u64::from(above) << 1 << (63 - bit % 8)
}

/// Writes fields one behind the other, whole words at a time.
pub(super) struct Writer<'m> {
    memory: &'m mut [u8],
    byte: usize,
    /// Bits that are not written yet, and how many they are, fewer than 64.
    pending: u64,
    count: u32,
}

impl<'m> Writer<'m> {
    /// Writes from the begin of `memory` on.
    pub fn new(memory: &'m mut [u8]) -> Self {
        Writer { memory, byte: 0, pending: 0, count: 0 }
    }

    /// Writes a field of 1 to 64 bits.
    #[inline]
    pub fn push(&mut self, value: u64, width: u32) {
        self.pending |= value << self.count;
        let count = self.count + width;
        if count >= u64::BITS {
            store(self.memory, self.byte, self.pending);
            self.byte += 8;
            // What of the value did not fit.
            let written = u64::BITS - self.count;
            self.pending = value >> 1 >> (written - 1);
        }
        self.count = count % u64::BITS;
    }

    /// Writes what is pending, in whole bytes.
    pub fn finish(self) {
        let bytes = self.pending.to_le_bytes();
        let count = self.count.div_ceil(8) as usize;
        if let Some(target) = self.memory.get_mut(self.byte..self.byte + count) {
            target.copy_from_slice(&bytes[..count]);
        }
    }
}

/// Copies `count` bits from `from` to `to`; the two places may overlap.
///
/// Bits before both places stay as they are, and so do all bytes behind both.
/// All others may change.
pub(super) fn shift(memory: &mut [u8], from: usize, to: usize, count: usize) {
    if count == 0 {
        return;
    }
    let (first, end) = (from / 8, (from + count).div_ceil(8));
    let begin = from.min(to);
    let Some(&kept) = memory.get(begin / 8) else { return };
    if end > memory.len() || (to + count).div_ceil(8) > memory.len() {
        return;
    }
    // Whole bytes are moved first, then all of them by fewer bits than a byte.
    if to >= from {
        let (bytes, bits) = ((to - from) / 8, (to - from) % 8);
        memory.copy_within(first..end, first + bytes);
        if bits > 0 {
            raise(&mut memory[first + bytes..(to + count).div_ceil(8)], bits);
        }
    } else {
        let (bytes, bits) = ((from - to) / 8, (from - to) % 8);
        memory.copy_within(first..end, first - bytes);
        if bits > 0 {
            lower(&mut memory[to / 8..end - bytes], bits);
        }
    }
    // What is before both places keeps its bits.
    let before = (1u8 << (begin % 8)) - 1;
    memory[begin / 8] = (kept & before) | (memory[begin / 8] & !before);
}

/// Moves bits to higher places, by 1 to 7 bits.
fn raise(bytes: &mut [u8], by: usize) {
    let mut carry = 0;
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        let old = u64::from_le_bytes(*word);
        *word = (old << by | carry).to_le_bytes();
        carry = old >> (WORD - by);
    }
    let mut carry = carry as u8;
    for byte in rest {
        let old = *byte;
        *byte = old << by | carry;
        carry = old >> (8 - by);
    }
}

/// Moves bits to lower places, by 1 to 7 bits.
fn lower(bytes: &mut [u8], by: usize) {
    let mut carry = 0;
    let (rest, words) = bytes.as_rchunks_mut::<8>();
    for word in words.iter_mut().rev() {
        let old = u64::from_le_bytes(*word);
        *word = (old >> by | carry).to_le_bytes();
        carry = old << (WORD - by);
    }
    let mut carry = (carry >> (WORD - 8)) as u8;
    for byte in rest.iter_mut().rev() {
        let old = *byte;
        *byte = old >> by | carry;
        carry = old << (8 - by);
    }
}

/// Bits that hold every number up to `most`.
#[inline]
pub(super) fn width(most: u32) -> u32 {
    u32::BITS - most.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifted_bits_are_the_same_at_every_distance() {
        for (from, to) in [(3, 70), (70, 3), (9, 12), (12, 9), (8, 8), (0, 61), (6, 11), (5, 7)] {
            let mut memory = [0xFFu8; 64];
            for at in 0..20 {
                set(&mut memory, from + at * 11, 11, (at * 97 + 5) as u64);
            }
            shift(&mut memory, from, to, 220);
            for at in 0..20 {
                let expected = (at as u32 * 97 + 5) % 2048;
                assert_eq!(get(&memory, to + at * 11, 11), expected, "{from} to {to}");
            }
            let before = from.min(to) as u32;
            assert_eq!(
                get(&memory, 0, before.min(32)),
                mask(before.min(32)),
                "before {from}, {to}"
            );
            let behind = from.max(to) + 227;
            assert_eq!(get(&memory, behind, 16), mask(16), "behind {from}, {to}");
        }
    }

    #[test]
    fn a_written_field_leaves_its_neighbours() {
        let mut memory = [0xFFu8; 24];
        set(&mut memory, 37, 32, 0);
        assert_eq!(get(&memory, 36, 1), 1);
        assert_eq!(get(&memory, 37, 32), 0);
        assert_eq!(get(&memory, 69, 1), 1);
        assert_eq!([width(0), width(1), width(255), width(256)], [0, 1, 8, 9]);
    }
}
