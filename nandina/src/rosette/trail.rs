//! The trail: what each leaf records of the pages before it in its block.
//!
//! ```text
//! | sum of the separators: u32 | rank: u16 | rank: u16 | ... |
//! ```
//!
//! For each of these pages, the nearest first: the rank of the range that its leaf took over, as a
//! whole, when it was programmed; or all ones for any other page, which a mount has to read itself.
//! So a page that was moved, or in which a record was changed, is known without a read of it. The
//! sum is over the separators of the directory before the leaf itself: a mount that does not arrive
//! at the same separators uses no rank.
//!
//! There are trails only where there are checkpoints. No page is read or programmed here, and a
//! block that is opened begins without a trail.
//!
//! RAM: two bytes for each page that a trail tells of.

use crate::bytes::{u16_at, u32_at};
use crate::flash::BlockNumber;
use crate::log::checkpoint::IS_BUILT;

/// Bytes of an area for each page that its trail tells of.
const AREA_BYTES_EACH: usize = 128;

/// Bytes of a rank.
const RANK_BYTES: usize = 2;

/// Bytes of the sum of the separators.
const SUM_BYTES: usize = 4;

/// The rank of a page that has to be read.
const UNTOLD: u16 = u16::MAX;

/// Pages that a trail tells of, in areas of `area_bytes`.
pub(super) const fn told_pages(area_bytes: usize, checkpoints: bool) -> usize {
    if checkpoints && IS_BUILT { area_bytes / AREA_BYTES_EACH } else { 0 }
}

/// Bytes of a trail that tells of this many pages.
pub(super) const fn trail_bytes(told: usize) -> usize {
    if told == 0 { 0 } else { SUM_BYTES + RANK_BYTES * told }
}

/// The sum of the separators that the bytes of a trail begin with.
pub(super) const fn sum_in(trail: &[u8]) -> u32 {
    u32_at(trail, 0)
}

/// What the pages tell that were programmed last, or what one on the chip tells.
pub(super) struct Trail<'b> {
    ranks: &'b mut [u8],
    /// The place behind the pages that it tells of.
    next: Option<(BlockNumber, u32)>,
}

impl<'b> Trail<'b> {
    /// Bytes of RAM for a trail that tells of this many pages.
    pub const fn ram_needed(told: usize) -> usize {
        RANK_BYTES * told
    }

    /// Tells of no page yet, and of at most `ram.len() / 2`.
    pub fn new(ram: &'b mut [u8]) -> Self {
        let mut trail = Self { ranks: ram, next: None };
        trail.forget();
        trail
    }

    /// Pages of which it tells.
    pub const fn told(&self) -> u32 {
        (self.ranks.len() / RANK_BYTES) as u32
    }

    /// Forgets what it tells.
    pub fn forget(&mut self) {
        self.next = None;
        self.ranks.fill(0xFF);
    }

    /// Writes the trail of a page at the place `next`.
    ///
    /// `sum` is that of the separators.
    pub fn write(&mut self, next: Option<(BlockNumber, u32)>, sum: u32, trail: &mut [u8]) {
        if self.next != next {
            self.forget();
        }
        trail[..SUM_BYTES].copy_from_slice(&sum.to_le_bytes());
        trail[SUM_BYTES..].copy_from_slice(self.ranks);
    }

    /// Notes that the page at the place `next` was programmed.
    ///
    /// `rank` is that of the range that it took over, if it is to be told.
    pub fn note(&mut self, next: Option<(BlockNumber, u32)>, rank: Option<usize>) {
        if self.next != next {
            self.forget();
        }
        self.next = next.map(|(block, place)| (block, place + 1));
        let rank = rank.and_then(|rank| u16::try_from(rank).ok()).unwrap_or(UNTOLD);
        let end = self.ranks.len();
        if end > 0 {
            self.ranks.copy_within(..end - RANK_BYTES, RANK_BYTES);
            self.ranks[..RANK_BYTES].copy_from_slice(&rank.to_le_bytes());
        }
    }

    /// Takes the bytes of a trail that a mount has read.
    pub fn take(&mut self, trail: &[u8]) {
        self.next = None;
        self.ranks.copy_from_slice(&trail[SUM_BYTES..]);
    }

    /// The rank of the page that is `before` the nearest one.
    ///
    /// `None` if that page has to be read.
    pub fn rank(&self, before: u32) -> Option<usize> {
        let at = before as usize * RANK_BYTES;
        let rank = if at < self.ranks.len() { u16_at(self.ranks, at) } else { UNTOLD };
        (rank != UNTOLD).then_some(rank.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: BlockNumber = BlockNumber(7);

    fn ranks(trail: &mut Trail<'_>, next: (BlockNumber, u32)) -> [u8; 10] {
        let mut bytes = [9; 10];
        trail.write(Some(next), 0x0403_0201, &mut bytes);
        assert_eq!(sum_in(&bytes), 0x0403_0201);
        bytes
    }

    #[test]
    fn a_page_tells_of_the_pages_before_it_in_its_block() {
        let mut ram = [0; 6];
        let mut trail = Trail::new(&mut ram);
        for (place, rank) in [(0, None), (1, Some(3)), (2, Some(700)), (3, Some(0xFFFF))] {
            trail.note(Some((BLOCK, place)), rank);
        }
        let bytes = ranks(&mut trail, (BLOCK, 4));
        assert_eq!(bytes[4..], [0xFF, 0xFF, 0xBC, 2, 3, 0]);
        // A program that failed is repeated in another block.
        let other = (BlockNumber(8), 0);
        assert_eq!(ranks(&mut trail, other)[4..], [0xFF; 6]);
        trail.note(Some(other), Some(5));
        assert_eq!(ranks(&mut trail, (BlockNumber(8), 1))[4..], [5, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        trail.take(&bytes);
        let told = [0, 1, 2, 3].map(|before| trail.rank(before));
        assert_eq!(told, [None, Some(700), Some(3), None]);
        assert_eq!(ranks(&mut trail, other)[4..], [0xFF; 6], "it is that of no open block");
    }

    #[cfg(feature = "checkpoints")]
    #[test]
    fn a_trail_takes_a_sixtieth_of_a_page_or_nothing() {
        for (area, told, bytes) in [(100, 0, 0), (512, 4, 12), (2048, 16, 36), (4096, 32, 68)] {
            assert_eq!(told_pages(area, true), told);
            assert_eq!(trail_bytes(told), bytes);
        }
        assert_eq!(told_pages(4096, false), 0);
    }
}
