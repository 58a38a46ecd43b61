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

/// Writes the field of `width` bits, at most [`CHUNK`], at `bit`.
#[inline]
pub(super) fn set(memory: &mut [u8], bit: usize, width: u32, value: u64) {
    write(memory, bit, width as usize, value);
}

/// The lowest `width` bits, at most 32, of `word` from `bit` on.
#[inline]
pub(super) fn part(word: u64, bit: u32, width: u32) -> u32 {
    ((word >> bit) & ((1 << width) - 1)) as u32
}

/// The 64 bits at `bit`.
#[inline]
pub(super) fn word(memory: &[u8], bit: usize) -> u64 {
    match memory.get(bit / 8..).and_then(|bytes| bytes.first_chunk::<9>()) {
        Some(&[a, b, c, d, e, f, g, h, above]) => {
            let low = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            (low >> (bit % 8)) | (u64::from(above) << 1 << (63 - bit % 8))
        }
        None => 0,
    }
}

/// Writes fields one behind the other, whole words at a time.
pub(super) struct Writer<'m> {
    memory: &'m mut [u8],
    byte: usize,
    /// Bits that are not written yet, and how many they are, fewer than 32.
    pending: u64,
    count: u32,
}

impl<'m> Writer<'m> {
    /// Writes from `bit` on, where a byte begins.
    pub fn new(memory: &'m mut [u8], bit: usize) -> Self {
        Writer { memory, byte: bit / 8, pending: 0, count: 0 }
    }

    /// Writes a field of at most 32 bits.
    #[inline]
    pub fn push(&mut self, value: u64, width: u32) {
        self.pending |= value << self.count;
        self.count += width;
        if self.count >= u32::BITS {
            if let Some(bytes) = self.memory.get_mut(self.byte..self.byte + 4) {
                bytes.copy_from_slice(&(self.pending as u32).to_le_bytes());
            }
            self.byte += 4;
            self.pending >>= u32::BITS;
            self.count -= u32::BITS;
        }
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
/// Words are written that begin at a byte. Each word is read once, so that none is read again that
/// was just written, for which a processor would have to wait.
pub(super) fn shift(memory: &mut [u8], from: usize, to: usize, count: usize) {
    let mut copy = |at: usize, width: usize| {
        let bits = read(memory, from + at, width);
        write(memory, to + at, width, bits);
    };
    if to <= from {
        let head = count.min(to.next_multiple_of(8) - to);
        copy(0, head);
        let words = (count - head) / WORD;
        let (source, target) = (from + head, (to + head) / 8);
        let (byte, rest) = (source / 8, source % 8);
        let mut low = load(memory, byte);
        for at in (0..words * 8).step_by(8) {
            let high = load(memory, byte + at + 8);
            store(memory, target + at, (low >> rest) | (high << 1 << (63 - rest)));
            low = high;
        }
        let done = head + words * WORD;
        move_rest(memory, (from + done, to + done), count - done);
    } else {
        let tail = count.min((to + count) % 8);
        copy(count - tail, tail);
        let words = (count - tail) / WORD;
        let left = count - tail - words * WORD;
        let (source, target) = (from + left, (to + left) / 8);
        let (byte, rest) = (source / 8, source % 8);
        let mut high = load(memory, byte + words * 8);
        for at in (0..words).rev() {
            let low = load(memory, byte + at * 8);
            store(memory, target + at * 8, (low >> rest) | (high << 1 << (63 - rest)));
            high = low;
        }
        move_rest(memory, (from, to), left);
    }
}

/// Copies the `count` bits, fewer than a word, that are left at one end.
fn move_rest(memory: &mut [u8], (from, to): (usize, usize), count: usize) {
    let first = count.min(WORD / 2);
    let (low, high) = (read(memory, from, first), read(memory, from + first, count - first));
    write(memory, to, first, low);
    write(memory, to + first, count - first, high);
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
                set(&mut memory, from + at * 11, 11, (at * 97 + 5) as u64);
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
