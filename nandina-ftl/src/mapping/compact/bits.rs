//! Fields of up to 32 bits at any bit of a buffer, least significant bit first.
//!
//! No access panics: bits behind the buffer read as 0 and take no write. An access loads up to 9
//! bytes, so that the last 8 bytes of a buffer hold no fields.

use core::hint::select_unpredictable;

/// Bits that lie whole in 8 bytes wherever they begin.
pub(super) const CHUNK: usize = 56;

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

/// The bits at `bit`, of which at least [`CHUNK`] are right.
#[inline]
pub(super) fn low(memory: &[u8], bit: usize) -> u64 {
    load(memory, bit / 8) >> (bit % 8)
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
    /// Writes from the begin of `memory` on, of which all bytes may change.
    pub fn new(memory: &'m mut [u8]) -> Self {
        Writer { memory, byte: 0, pending: 0, count: 0 }
    }

    /// Writes a field of 1 to 64 bits.
    #[inline]
    pub fn push(&mut self, value: u64, width: u32) {
        self.pending |= value << self.count;
        // Also a word that is not full, so that nothing depends on it; its bits come again.
        store(self.memory, self.byte, self.pending);
        let count = self.count + width;
        let is_full = count >= u64::BITS;
        self.byte += usize::from(is_full) * 8;
        // What of the value did not fit.
        let rest = value >> 1 >> (u64::BITS - 1 - self.count);
        self.pending = select_unpredictable(is_full, rest, self.pending);
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

/// Bytes from the first item of a leaf on in which bits are moved.
///
/// So many are read and written without a question whether the buffer has them.
const WINDOW: usize = 1024;

/// The window, and what an access at its end reaches behind it.
type Window = [u8; WINDOW + LONG];

/// Bytes that a step of a move reads and writes.
const LONG: usize = 16;

/// Copies `count` bits from `from` to `to`; the two places may overlap.
///
/// Bits before both places stay as they are, and so do all bytes behind both.
/// All others may change. Nothing is moved to or from a place behind [`WINDOW`].
pub(super) fn shift(memory: &mut [u8], from: usize, to: usize, count: usize) {
    let end = (from.max(to) + count).div_ceil(8);
    if count == 0 || end > memory.len().min(WINDOW) {
        return;
    }
    if let Some(window) = memory.first_chunk_mut() {
        return shift_in(window, from, to, count);
    }
    let mut window: Window = [0; WINDOW + LONG];
    window[..memory.len()].copy_from_slice(memory);
    shift_in(&mut window, from, to, count);
    memory.copy_from_slice(&window[..memory.len()]);
}

fn shift_in(window: &mut Window, from: usize, to: usize, count: usize) {
    let begin = from.min(to);
    let kept = window[begin / 8 % WINDOW];
    if to >= from {
        raise(window, from, to, count);
    } else {
        lower(window, from, to, count);
    }
    // What is before both places keeps its bits.
    let before = (1u8 << (begin % 8)) - 1;
    let first = &mut window[begin / 8 % WINDOW];
    *first = (kept & before) | (*first & !before);
}

#[inline]
fn load_long(window: &Window, byte: usize) -> u128 {
    let byte = byte % WINDOW;
    window[byte..].first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes))
}

#[inline]
fn store_long(window: &mut Window, byte: usize, value: u128) {
    let byte = byte % WINDOW;
    window[byte..byte + LONG].copy_from_slice(&value.to_le_bytes());
}

/// Stores the first `bytes` bytes of `value`, fewer than all.
#[inline]
fn store_part(window: &mut Window, byte: usize, value: u128, bytes: usize) {
    let mask = (1 << (8 * bytes)) - 1;
    let old = load_long(window, byte);
    store_long(window, byte, (old & !mask) | (value & mask));
}

/// Moves bits to higher places, the highest first.
fn raise(window: &mut Window, from: usize, to: usize, count: usize) {
    let (bytes, bits) = ((to - from) / 8, (to - from) % 8);
    let first = to / 8;
    // Bytes from here on are moved. What is needed next is read before it is written over.
    let mut moved = (to + count).div_ceil(8);
    let below = (first - bytes).checked_sub(1).map_or(0, |byte| window[byte % WINDOW]);
    let lowest = load_long(window, first - bytes) << bits | u128::from(below) >> (8 - bits);
    let mut next = load_long(window, moved.wrapping_sub(LONG + bytes));
    while moved >= first + LONG {
        let long = next << bits;
        next = load_long(window, moved.wrapping_sub(2 * LONG - 1 + bytes));
        store_long(window, moved - LONG, long);
        // The lowest byte lacks bits; it is written again.
        moved -= LONG - 1;
    }
    store_part(window, first, lowest, moved - first);
}

/// Moves bits to lower places, the lowest first.
fn lower(window: &mut Window, from: usize, to: usize, count: usize) {
    let (bytes, bits) = ((from - to) / 8, (from - to) % 8);
    let end = (to + count).div_ceil(8);
    // Bytes up to here are moved.
    let mut moved = to / 8;
    let mut next = load_long(window, moved + bytes);
    while moved + LONG <= end {
        let long = next >> bits;
        next = load_long(window, moved + LONG - 1 + bytes);
        store_long(window, moved, long);
        // The highest byte lacks bits; it is written again.
        moved += LONG - 1;
    }
    store_part(window, moved, next >> bits, end - moved);
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
        // A buffer shorter than a window, and a longer one.
        shift_everywhere([0xFF; 64]);
        shift_everywhere([0xFF; 2 * WINDOW]);
    }

    fn shift_everywhere<const N: usize>(ones: [u8; N]) {
        let near = (0..80).map(|to| (3, to)).chain((0..80).map(|from| (from, 9)));
        for (from, to) in near.chain([(70, 3), (200, 8), (0, 192), (6, 11), (5, 7)]) {
            for count in [0, 1, 4, 11, 12, 20] {
                let mut memory = ones;
                for at in 0..count {
                    set(&mut memory, from + at * 11, 11, (at * 97 + 5) as u64);
                }
                shift(&mut memory, from, to, count * 11);
                for at in 0..count {
                    let expected = (at as u32 * 97 + 5) % 2048;
                    assert_eq!(get(&memory, to + at * 11, 11), expected, "{from} to {to}");
                }
                let before = from.min(to) as u32;
                assert_eq!(
                    get(&memory, 0, before.min(32)),
                    mask(before.min(32)),
                    "before {from}, {to}"
                );
                let behind = (from.max(to) + count * 11).next_multiple_of(8);
                assert_eq!(get(&memory, behind, 16), mask(16), "behind {from}, {to}");
            }
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
