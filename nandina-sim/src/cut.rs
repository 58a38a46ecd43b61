//! Loss of power: when, and what it leaves behind.

use nandina::flash::PageNumber;
use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;

use crate::block::Block;

/// Where in an operation power goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Before the operation did anything.
    Before,
    /// Inside: a torn page or a torn block. A read has no inside.
    Inside,
    /// After the operation was complete, before the caller learned of it.
    After,
}

/// How far a torn program or erase had come.
enum Extent {
    Nothing,
    All,
    Prefix(usize),
    Bits,
}

impl Extent {
    fn choose(random: &mut ChaCha8Rng, bytes: usize) -> Self {
        match random.random_range(0..6) {
            0 => Self::Nothing,
            1 => Self::All,
            2 => Self::Prefix(random.random_range(0..=bytes)),
            _ => Self::Bits,
        }
    }
}

/// Mixes `new` into `old`: each bit ends as one or the other (rule 6).
pub fn tear_program(old: &mut [u8], new: &[u8], random: &mut ChaCha8Rng) {
    match Extent::choose(random, old.len()) {
        Extent::Nothing => {}
        Extent::All => old.copy_from_slice(new),
        Extent::Prefix(bytes) => old[..bytes].copy_from_slice(&new[..bytes]),
        Extent::Bits => {
            for (old, new) in old.iter_mut().zip(new) {
                let mask = random.next_u32() as u8;
                *old = *old & !mask | new & mask;
            }
        }
    }
}

/// Leaves every page of `block` in any state (rule 7).
pub fn tear_erase(block: &mut Block, pages: u32, random: &mut ChaCha8Rng) {
    for index in 0..pages {
        let page = block.page_bytes_mut(PageNumber(index));
        match Extent::choose(random, page.len()) {
            Extent::Nothing => {}
            Extent::All => page.fill(0xFF),
            Extent::Prefix(bytes) => page[..bytes].fill(0xFF),
            Extent::Bits if random.random() => random.fill_bytes(page),
            Extent::Bits => {
                for byte in page {
                    *byte |= random.next_u32() as u8;
                }
            }
        }
    }
}
