//! Keys and values of the work, computed from numbers.
//!
//! So checking needs no storage.

use nandina::key;

/// Bytes of a key.
pub const KEY_BYTES: usize = 4;

/// Bytes of a value.
pub const VALUE_BYTES: usize = 12;

/// A small random number generator (xorshift, Marsaglia 2003).
///
/// It never repeats within 2^32 - 1 numbers.
pub struct Random(u32);

impl Random {
    /// Starts from `seed`, which is not 0.
    pub const fn new(seed: u32) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn draw(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

/// The key of `rank` among keys that are far apart.
pub const fn key_of(rank: u32) -> [u8; KEY_BYTES] {
    key::from_u32(rank * 20_000_003 + 7)
}

/// The value that `number` has in its `version`.
pub fn value_of(number: u32, version: u32) -> [u8; VALUE_BYTES] {
    let mut random = Random::new((number ^ version << 24) | 1);
    let mut value = [0; VALUE_BYTES];
    for bytes in value.chunks_exact_mut(4) {
        bytes.copy_from_slice(&random.draw().to_le_bytes());
    }
    value
}
