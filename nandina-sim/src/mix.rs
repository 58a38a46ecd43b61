//! Mixtures of old and new bits, as half-programmed cells have them.

use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;

/// How far a torn program or erase got.
pub enum Extent {
    Nothing,
    All,
    Prefix(usize),
    /// The last bytes: of a program, the spare area and some of the main data.
    Suffix(usize),
    Bits,
}

impl Extent {
    pub fn choose(random: &mut ChaCha8Rng, bytes: usize) -> Self {
        match random.random_range(0..7) {
            0 => Self::Nothing,
            1 => Self::All,
            2 => Self::Prefix(random.random_range(0..=bytes)),
            3 => Self::Suffix(random.random_range(0..=bytes)),
            _ => Self::Bits,
        }
    }
}

/// Mixes `new` into `old`: each bit ends as one or the other.
pub fn mix(old: &mut [u8], new: &[u8], random: &mut ChaCha8Rng) {
    match Extent::choose(random, old.len()) {
        Extent::Nothing => {}
        Extent::All => old.copy_from_slice(new),
        Extent::Prefix(bytes) => old[..bytes].copy_from_slice(&new[..bytes]),
        Extent::Suffix(bytes) => {
            let start = old.len() - bytes;
            old[start..].copy_from_slice(&new[start..]);
        }
        Extent::Bits => mix_bits(old, new, random),
    }
}

pub fn mix_bits(old: &mut [u8], new: &[u8], random: &mut ChaCha8Rng) {
    for (old, new) in old.iter_mut().zip(new) {
        let mask = random.next_u32() as u8;
        *old = *old & !mask | new & mask;
    }
}
