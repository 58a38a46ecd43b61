//! A session page as bytes: which blocks may hold a torn page.
//!
//! ```text
//! | count: u16 | block: u32  from: u64  span: u32 | ... | 0 ... |
//! ```
//!
//! A page in such a block does not count if its sequence number is above `from`, by at most `span`.
//! No page is read here.

use crate::bytes::{u16_at, u32_at};
use crate::flash::BlockNumber;

/// Bytes of a suspect.
const SUSPECT_BYTES: usize = 16;

/// Bytes of the count.
const COUNT_BYTES: usize = 2;

/// Bytes of all suspects on any chip.
pub(super) const BYTES_MAX: usize = COUNT_BYTES + SUSPECT_BYTES * MOST;

/// The most suspects on any chip.
const MOST: usize = suspects_max(crate::blocks::PAGES_MAX);

/// The most suspects that wait until there is room to empty them.
///
/// If there are more, they are emptied at once.
pub(super) const WAITING_MAX: usize = 2;

/// The most suspects where a block has this many pages.
///
/// One more than may wait are emptied at once, the one with the fewest valid pages first. Each
/// settling that is cut adds one, which has at most half the pages of the fewest before, or none
/// but the newest leaf.
pub(super) const fn suspects_max(block_pages: u32) -> usize {
    let pages = if block_pages == 0 { 1 } else { block_pages };
    pages.ilog2() as usize + 4
}

/// The fewest bytes of a page that holds all suspects.
pub(super) const fn area_bytes_min(block_pages: u32) -> usize {
    COUNT_BYTES + SUSPECT_BYTES * suspects_max(block_pages)
}

/// A block that may hold a torn page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Suspect {
    /// The block.
    pub block: u32,
    /// The highest sequence number in it that counts.
    pub from: u64,
    /// How many sequence numbers after `from` do not count.
    pub span: u32,
}

/// All blocks that may hold a torn page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Suspects {
    suspects: [Suspect; MOST],
    count: u8,
}

impl Suspects {
    /// No block may hold a torn page.
    pub const NONE: Self =
        Self { suspects: [Suspect { block: 0, from: 0, span: 0 }; MOST], count: 0 };

    /// The suspects.
    pub fn all(&self) -> &[Suspect] {
        &self.suspects[..self.count.into()]
    }

    /// Whether there is no suspect.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a suspect.
    ///
    /// Returns `false` if there is no room in a page of `area_bytes`.
    pub fn add(&mut self, suspect: Suspect, area_bytes: usize) -> bool {
        let room = (area_bytes.saturating_sub(COUNT_BYTES) / SUSPECT_BYTES).min(MOST);
        if usize::from(self.count) >= room {
            return false;
        }
        self.suspects[usize::from(self.count)] = suspect;
        self.count += 1;
        true
    }

    /// Keeps the suspects that `is_kept` selects.
    pub fn keep(&mut self, mut is_kept: impl FnMut(&Suspect) -> bool) {
        let mut kept = 0;
        for at in 0..usize::from(self.count) {
            if is_kept(&self.suspects[at]) {
                self.suspects[kept] = self.suspects[at];
                kept += 1;
            }
        }
        self.count = kept as u8;
    }

    /// Whether a page of `block` with this number does not count.
    pub fn exclude(&self, block: BlockNumber, sequence: u64) -> bool {
        self.all().iter().any(|suspect| {
            suspect.block == block.0
                && sequence > suspect.from
                && sequence - suspect.from <= suspect.span.into()
        })
    }

    /// Bytes that the suspects take.
    pub const fn bytes(&self) -> usize {
        COUNT_BYTES + SUSPECT_BYTES * self.count as usize
    }

    /// Writes the suspects into the area of a page.
    pub fn write(&self, area: &mut [u8]) {
        area.fill(0);
        area[..COUNT_BYTES].copy_from_slice(&u16::from(self.count).to_le_bytes());
        for (suspect, bytes) in self.all().iter().zip(area[COUNT_BYTES..].chunks_mut(SUSPECT_BYTES))
        {
            bytes[..4].copy_from_slice(&suspect.block.to_le_bytes());
            bytes[4..12].copy_from_slice(&suspect.from.to_le_bytes());
            bytes[12..].copy_from_slice(&suspect.span.to_le_bytes());
        }
    }

    /// Reads the suspects from the area of a page of a chip with `blocks` blocks.
    ///
    /// Returns `None` if the bytes are not a valid list.
    pub fn read(area: &[u8], blocks: u32) -> Option<Self> {
        let count = usize::from(u16_at(area, 0));
        let bytes = area.get(COUNT_BYTES..COUNT_BYTES + count * SUSPECT_BYTES)?;
        let mut read = Self::NONE;
        for bytes in bytes.chunks_exact(SUSPECT_BYTES) {
            let from = u64::from(u32_at(bytes, 4)) | u64::from(u32_at(bytes, 8)) << 32;
            let suspect = Suspect { block: u32_at(bytes, 0), from, span: u32_at(bytes, 12) };
            if suspect.block >= blocks || !read.add(suspect, usize::MAX) {
                return None;
            }
        }
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_page_keeps_the_suspects_and_what_they_exclude() {
        let mut suspects = Suspects::NONE;
        for block in [7, 3, 9] {
            let from = (1 << 40) + u64::from(block);
            assert!(suspects.add(Suspect { block, from, span: 64 }, 50));
        }
        assert!(!suspects.add(Suspect::default(), 50));
        let mut area = [0xFF; 50];
        suspects.write(&mut area);
        assert_eq!(Suspects::read(&area, 10), Some(suspects));
        assert_eq!(Suspects::read(&area, 9), None, "block 9 is beyond the chip");
        area[0] = 200;
        assert_eq!(Suspects::read(&area, 10), None, "more than the page holds");
        let from = (1 << 40) + 3;
        for (number, excluded) in
            [(from, false), (from + 1, true), (from + 64, true), (from + 65, false)]
        {
            assert_eq!(suspects.exclude(BlockNumber(3), number), excluded);
            assert!(!suspects.exclude(BlockNumber(4), number));
        }
        suspects.keep(|suspect| suspect.block != 3);
        assert!(!suspects.exclude(BlockNumber(3), from + 1));
        assert_eq!(suspects.all().len(), 2);
    }
}
