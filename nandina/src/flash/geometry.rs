//! Sizes, counts and typed numbers of a chip.
//!
//! Distinct types keep page numbers and block numbers apart.

use core::fmt;
use core::ops::Range;

/// Physical page number, counted over the whole chip from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageNumber(pub u32);

/// Block number, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockNumber(pub u32);

impl fmt::Display for PageNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}", self.0)
    }
}

impl fmt::Display for BlockNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}", self.0)
    }
}

/// The sizes and counts of a chip.
///
/// A driver may have any; an index and an FTL refuse chips that they cannot use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Bytes of main data in a page.
    ///
    /// For an index, enough for a node of two records, and for a header of 40 bytes where the spare
    /// area has no room for that.
    pub page_bytes: u32,
    /// Bytes of spare area beside a page's main data; 0 if there is none.
    pub spare_bytes: u32,
    /// Pages in a block, at least 1; for an index 2 to 4095.
    pub pages_per_block: u32,
    /// Blocks in the chip, at least 1.
    pub blocks: u32,
}

impl Geometry {
    /// Pages in the chip.
    pub const fn pages(&self) -> u32 {
        self.pages_per_block * self.blocks
    }

    /// Bytes of main data in the chip.
    pub const fn bytes(&self) -> u64 {
        self.pages() as u64 * self.page_bytes as u64
    }

    /// The block that `page` lies in.
    pub const fn block_of(&self, page: PageNumber) -> BlockNumber {
        BlockNumber(page.0 / self.pages_per_block)
    }

    /// The numbers of the pages of `block`.
    pub(crate) const fn pages_of(&self, block: BlockNumber) -> Range<u32> {
        let first = block.0 * self.pages_per_block;
        first..first + self.pages_per_block
    }

    /// The page at `index` of `block`.
    pub const fn page_in(&self, block: BlockNumber, index: u32) -> PageNumber {
        PageNumber(block.0 * self.pages_per_block + index)
    }
}
