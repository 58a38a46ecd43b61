//! Fields of up to 32 bits at any bit of a buffer, least significant bit first.
//!
//! No access panics: bits behind the buffer read as 0 and take no write. Every access loads 8
//! bytes, so that the last 7 bytes of a buffer hold no fields.

/// Bits that [`shift`] moves at a time: whole in 8 bytes wherever they begin.
const CHUNK: usize = 56;

#[inline]
fn load(memory: &[u8], byte: usize) -> u64 {
    match memory.get(byte..byte + 8) {
        Some(bytes) => {
            let mut copy = [0; 8];
            copy.copy_from_slice(bytes);
            u64::from_le_bytes(copy)
        }
        None => 0,
    }
}

#[inline]
fn store(memory: &mut [u8], byte: usize, value: u64) {
    if let Some(bytes) = memory.get_mut(byte..byte + 8) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}

#[inline]
fn read(memory: &[u8], bit: usize, width: usize) -> u64 {
    (load(memory, bit / 8) >> (bit % 8)) & ((1 << width) - 1)
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
    read(memory, bit, width as usize) as u32
}

/// Writes the field of `width` bits, at most 32, at `bit`.
#[inline]
pub(super) fn set(memory: &mut [u8], bit: usize, width: u32, value: u32) {
    write(memory, bit, width as usize, u64::from(value));
}

/// Copies `count` bits from `from` to `to`; the two places may overlap.
pub(super) fn shift(memory: &mut [u8], from: usize, to: usize, count: usize) {
    if to <= from {
        let mut done = 0;
        while done < count {
            let width = CHUNK.min(count - done);
            let bits = read(memory, from + done, width);
            write(memory, to + done, width, bits);
            done += width;
        }
    } else {
        let mut left = count;
        while left > 0 {
            let width = CHUNK.min(left);
            left -= width;
            let bits = read(memory, from + left, width);
            write(memory, to + left, width, bits);
        }
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
        for (from, to) in [(3, 70), (70, 3), (9, 12), (12, 9), (8, 8), (0, 61)] {
            let mut memory = [0u8; 64];
            for at in 0..20 {
                set(&mut memory, from + at * 11, 11, (at * 97 + 5) as u32);
            }
            shift(&mut memory, from, to, 220);
            for at in 0..20 {
                let expected = (at as u32 * 97 + 5) % 2048;
                assert_eq!(get(&memory, to + at * 11, 11), expected, "{from} to {to}");
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
