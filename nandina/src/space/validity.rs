//! What is remembered of which pages are valid: a bit for each, or only how many of each block are. Where only blocks
//! have counts, the valid pages of a block are found by looking for each of its pages from the root (VMTree paper,
//! section 4.4). Nothing here reads a page.

use super::Blocks;
use crate::flash::{BlockNumber, Geometry, PageNumber};

/// What is remembered of which pages are valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Validity {
    /// A bit for each page.
    #[default]
    Marked,
    /// A count for each block: a byte, or two where a block has more than 255 pages. A block that is collected has
    /// each of its written pages read and looked for from the root, at most as many reads more as the tree is high,
    /// and so has every page that a mount of a system with mappings finds. Idle steps gain no room. With the feature
    /// `page-search` of this library; not with a write cache, checkpoints or [`Victims::Tracked`](super::Victims),
    /// nor where logical pages are replaced in place.
    Searched,
}

impl Validity {
    /// Whether pages are searched for at all.
    pub(crate) const fn searches(self) -> bool {
        cfg!(feature = "page-search") && matches!(self, Self::Searched)
    }

    /// Bits for the pages of a chip.
    pub(super) const fn page_bits(self, geometry: &Geometry) -> usize {
        if self.searches() { 0 } else { geometry.pages() as usize }
    }

    /// Bytes for the count of a block.
    pub(super) const fn count_bytes(self, pages_per_block: u32) -> usize {
        if !self.searches() {
            0
        } else if pages_per_block > 255 {
            2
        } else {
            1
        }
    }
}

impl Blocks<'_> {
    /// Whether the valid pages of a block are found by looking for each.
    pub const fn searches(&self) -> bool {
        self.validity.searches()
    }

    /// Where the count of `block` stands among the bits.
    const fn count_at(&self, block: BlockNumber) -> (usize, usize) {
        let size = self.validity.count_bytes(self.pages_per_block);
        (self.bits.len() - size * (self.count() as usize - block.0 as usize), size)
    }

    /// Valid pages of the block, where blocks are counted.
    pub(super) fn counted_in(&self, block: BlockNumber) -> u32 {
        let (at, size) = self.count_at(block);
        let mut count = [0; 4];
        count[..size].copy_from_slice(&self.bits[at..at + size]);
        u32::from_le_bytes(count)
    }

    /// The block has one valid page more, or less.
    pub(super) fn count_page(&mut self, block: BlockNumber, valid: bool) {
        let count = self.counted_in(block);
        let count = if valid { count + 1 } else { count.saturating_sub(1) };
        let (at, size) = self.count_at(block);
        self.bits[at..at + size].copy_from_slice(&count.to_le_bytes()[..size]);
    }

    /// A page of the block belongs to no node, as was just found out. Where pages are searched for, it never counted.
    pub fn note_unreachable(&mut self, page: PageNumber) {
        if !self.searches() {
            self.set_valid(page, false);
        }
    }

    /// Valid pages of the block.
    pub fn valid_in(&self, block: BlockNumber) -> u32 {
        if self.searches() {
            return self.counted_in(block);
        }
        let from = block.0 as usize * self.pages_per_block as usize;
        let to = from + self.pages_per_block as usize;
        let (first, last) = (from.div_ceil(8).min(to.div_ceil(8)), to / 8);
        if first > last {
            return (from..to).filter(|&page| self.bit(page)).count() as u32;
        }
        let edges = (from..first * 8).chain(last * 8..to);
        let edges = edges.filter(|&page| self.bit(page)).count() as u32;
        edges + self.bits[first..last].iter().map(|byte| byte.count_ones()).sum::<u32>()
    }

    /// Whether the page is valid; where pages are searched for, whether it may be.
    pub fn is_valid(&self, page: PageNumber) -> bool {
        if self.searches() {
            return self.valid_in(BlockNumber(page.0 / self.pages_per_block)) > 0;
        }
        self.bit(page.0 as usize)
    }

    pub fn set_valid(&mut self, page: PageNumber, valid: bool) {
        if !self.searches() && self.is_valid(page) == valid {
            return;
        }
        let block = BlockNumber(page.0 / self.pages_per_block);
        let endangered = u32::from(self.is_bad(block));
        if valid {
            self.empty_blocks -= u32::from(self.is_empty(block));
            self.valid_pages += 1;
            self.endangered_pages += endangered;
        } else {
            self.valid_pages -= 1;
            self.endangered_pages -= endangered;
        }
        if self.searches() {
            self.count_page(block, valid);
        } else {
            self.set_bit(page.0 as usize, valid);
        }
        if !valid {
            self.empty_blocks += u32::from(self.is_empty(block));
        }
    }

    /// Whether the block can have a valid page more: if not, two nodes refer to one.
    pub fn can_have(&self, page: PageNumber) -> bool {
        if self.searches() {
            self.valid_in(BlockNumber(page.0 / self.pages_per_block)) < self.pages_per_block
        } else {
            !self.is_valid(page)
        }
    }
}
