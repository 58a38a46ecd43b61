//! What is remembered of which pages are valid: a bit for each, or only how many of each block are.
//! Where only blocks have counts, the valid pages of a block are found by looking for each of its
//! pages from the root (VMTree paper, section 4.4). Nothing here reads a page.

use crate::flash::Geometry;

/// What is remembered of which pages are valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Validity {
    /// A bit for each page.
    #[default]
    Marked,
    /// A count for each block: a byte, or two where a block has more than 255 pages. A block that
    /// is collected has each of its written pages read and looked for from the root, at most as
    /// many reads more as the tree is high, and so has every page that a mount of a system with
    /// mappings finds. Idle steps gain no room. With the feature `paper-modes` of this library; not
    /// with a write cache, checkpoints or [`Victims::Tracked`](super::Victims), nor where logical
    /// pages are replaced in place.
    Searched,
}

impl Validity {
    /// Whether pages are searched for at all.
    pub(crate) const fn searches(self) -> bool {
        cfg!(feature = "paper-modes") && matches!(self, Self::Searched)
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
