//! Pages with unstable bits: an operation was stopped half way there (rule 6).
//!
//! Each read of such a page may find something else. `torn` decides which pages these are; this
//! file decides what they read as.

use std::ops::Range;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::mix::mix;

/// A page between two states, until its block is erased or the page is rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unstable {
    /// Main data and spare area before the operation.
    pub old: Vec<u8>,
    /// Main data and spare area that the operation was to write.
    pub new: Vec<u8>,
    /// Half of the reads are uncorrectable, even where there is no ECC.
    pub faint: bool,
    /// Some bytes of a readable page were overwritten (rule 15).
    ///
    /// A read that is repeated at once does not fail twice.
    pub overwritten: bool,
}

/// The result of a read of an unstable page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sensed {
    Clean,
    Corrected,
    Uncorrectable,
}

impl Unstable {
    /// The result and the bytes of the read that is operation `turn` of the chip.
    ///
    /// The bytes are main data and spare area.
    pub fn sense(&self, has_ecc: bool, turn: u64, random: &mut ChaCha8Rng) -> (Sensed, Vec<u8>) {
        let mut page = self.old.clone();
        let state = random.random_range(0..3);
        match state {
            0 => {}
            1 => page.copy_from_slice(&self.new),
            _ => {
                let range = self.torn_bytes();
                mix(&mut page[range.clone()], &self.new[range], random);
            }
        }
        let mixed = has_ecc && state == 2;
        let fails = if self.overwritten {
            mixed && turn.is_multiple_of(2) && random.random()
        } else {
            (self.faint && random.random()) || (mixed && random.random_range(0..3) == 0)
        };
        let sensed = if fails {
            Sensed::Uncorrectable
        } else if has_ecc && random.random_range(0..4) == 0 {
            Sensed::Corrected
        } else {
            Sensed::Clean
        };
        (sensed, page)
    }

    /// The range from the first byte in which the states differ to the last.
    fn torn_bytes(&self) -> Range<usize> {
        let differs = |at: &usize| self.old[*at] != self.new[*at];
        let first = (0..self.old.len()).find(differs).unwrap_or(0);
        first..(first..self.old.len()).rev().find(differs).map_or(first, |last| last + 1)
    }

    /// The bytes with each bit that is 1 in at least one state.
    pub fn union(&self) -> impl Iterator<Item = u8> {
        self.old.iter().zip(&self.new).map(|(old, new)| old | new)
    }
}

/// The change that a page was about to undergo when it was torn.
pub enum Torn<'b> {
    /// A program of these bytes, main data and spare area: bits fall.
    Programmed(&'b [u8]),
    /// An overwrite of bytes from this one on: bits fall.
    Overwritten(usize, &'b [u8]),
    /// A rewrite to these bytes.
    Rewritten(&'b [u8]),
    /// An erase.
    Erased,
}

/// Clears the bits of `old` that are 0 in `new`.
pub fn fall(old: &mut [u8], new: &[u8]) {
    old.iter_mut().zip(new).for_each(|(old, new)| *old &= new);
}
