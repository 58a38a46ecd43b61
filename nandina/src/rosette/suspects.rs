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

/// All blocks that may hold a torn page, as the bytes that a session page has.
///
/// They are large for a small stack, and are not copied.
pub(super) struct Suspects {
    bytes: [u8; BYTES_MAX],
}

impl Suspects {
    /// No block may hold a torn page.
    pub const NONE: Self = Self { bytes: [0; BYTES_MAX] };

    /// Forgets all suspects.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
    }

    /// How many suspects there are.
    pub const fn len(&self) -> usize {
        u16_at(&self.bytes, 0) as usize
    }

    fn set_len(&mut self, count: usize) {
        self.bytes[..COUNT_BYTES].copy_from_slice(&(count as u16).to_le_bytes());
    }

    /// Whether there is no suspect.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where a suspect is.
    const fn at(index: usize) -> core::ops::Range<usize> {
        let begin = COUNT_BYTES + index * SUSPECT_BYTES;
        begin..begin + SUSPECT_BYTES
    }

    /// The suspects.
    pub fn all(&self) -> impl Iterator<Item = Suspect> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The suspect at a place in the list.
    pub fn get(&self, index: usize) -> Suspect {
        let bytes = &self.bytes[Self::at(index)];
        let from = u64::from(u32_at(bytes, 4)) | u64::from(u32_at(bytes, 8)) << 32;
        Suspect { block: u32_at(bytes, 0), from, span: u32_at(bytes, 12) }
    }

    /// Adds a suspect.
    ///
    /// Returns `false` if there is no room in a page of `area_bytes`.
    pub fn add(&mut self, suspect: Suspect, area_bytes: usize) -> bool {
        let count = self.len();
        let room = (area_bytes.saturating_sub(COUNT_BYTES) / SUSPECT_BYTES).min(MOST);
        if count >= room {
            return false;
        }
        let bytes = &mut self.bytes[Self::at(count)];
        bytes[..4].copy_from_slice(&suspect.block.to_le_bytes());
        bytes[4..12].copy_from_slice(&suspect.from.to_le_bytes());
        bytes[12..].copy_from_slice(&suspect.span.to_le_bytes());
        self.set_len(count + 1);
        true
    }

    /// Removes the suspects in these places of the list.
    pub fn remove(&mut self, places: Places) {
        let count = self.len();
        let mut kept = 0;
        for index in (0..count).filter(|&index| !places.has(index)) {
            self.bytes.copy_within(Self::at(index), Self::at(kept).start);
            kept += 1;
        }
        self.bytes[Self::at(kept).start..Self::at(count).start].fill(0);
        self.set_len(kept);
    }

    /// Whether a page of `block` with this number does not count.
    pub fn exclude(&self, block: BlockNumber, sequence: u64) -> bool {
        self.all().any(|suspect| {
            suspect.block == block.0
                && sequence > suspect.from
                && sequence - suspect.from <= suspect.span.into()
        })
    }

    /// The suspects as the bytes of an area. All other bytes of it are 0.
    pub fn stored(&self) -> &[u8] {
        &self.bytes[..Self::at(self.len()).start]
    }

    /// Writes the suspects into the area of a page.
    pub fn write(&self, area: &mut [u8]) {
        area.fill(0);
        let stored = self.stored();
        area[..stored.len()].copy_from_slice(stored);
    }

    /// Reads the suspects from the area of a page of a chip with `blocks` blocks.
    ///
    /// If the bytes are not a valid list, returns `false`, and there is no suspect.
    pub fn read(&mut self, area: &[u8], blocks: u32) -> bool {
        self.clear();
        let end = Self::at(u16_at(area, 0).into()).start;
        let Some(stored) = area.get(..end).filter(|_| end <= BYTES_MAX) else { return false };
        self.bytes[..end].copy_from_slice(stored);
        let is_valid = self.all().all(|suspect| suspect.block < blocks);
        if !is_valid {
            self.clear();
        }
        is_valid
    }

    /// Bytes of the list that an area begins with.
    pub const fn bytes_in(area: &[u8]) -> usize {
        Self::at(u16_at(area, 0) as usize).start
    }

    /// Whether the area of a page lists no suspect.
    pub const fn lists_none(area: &[u8]) -> bool {
        u16_at(area, 0) == 0
    }
}

/// Places in the list of suspects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Places(u16);

const _: () = assert!(MOST <= u16::BITS as usize);

impl Places {
    /// No place.
    pub const NONE: Self = Self(0);

    /// Adds a place.
    pub const fn add(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    /// Whether a place is among these.
    pub const fn has(self, index: usize) -> bool {
        self.0 >> index & 1 != 0
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
        let mut read = Suspects::NONE;
        assert!(read.read(&area, 10) && read.all().eq(suspects.all()));
        assert!(!Suspects::lists_none(&area));
        assert!(!read.read(&area, 9) && read.is_empty(), "block 9 is beyond the chip");
        area[0] = 200;
        assert!(!read.read(&area, 10) && read.is_empty(), "more than the page holds");
        let long = [0xFF; BYTES_MAX + SUSPECT_BYTES];
        assert!(!read.read(&long, 10) && read.is_empty(), "more than any page lists");
        let from = (1 << 40) + 3;
        for (number, excluded) in
            [(from, false), (from + 1, true), (from + 64, true), (from + 65, false)]
        {
            assert_eq!(suspects.exclude(BlockNumber(3), number), excluded);
            assert!(!suspects.exclude(BlockNumber(4), number));
        }
        let mut places = Places::NONE;
        places.add(1);
        suspects.remove(places);
        assert!(!suspects.exclude(BlockNumber(3), from + 1));
        assert!(suspects.all().map(|suspect| suspect.block).eq([7, 9]));
        places.add(0);
        suspects.remove(places);
        assert!(suspects.is_empty() && suspects.stored() == [0, 0]);
    }
}
