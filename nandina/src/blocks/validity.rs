//! How validity is stored: a bit for each page, or a count for each block.
//!
//! Where only blocks have counts, the valid pages of a block are found by looking for each of its
//! pages from the root (VMTree paper, section 4.4). This module reads no page.

use crate::flash::Geometry;

/// How the index knows which pages are valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum LivenessTracking {
    /// A bit for each page.
    #[default]
    Marked,
    /// A count for each block: a byte, or two if a block has more than 255 pages.
    ///
    /// When a block is collected, each of its written pages is read and looked for from the root,
    /// which takes at most as many further reads as the tree is high. The same holds for every page
    /// that a mount of a system with mappings finds. Idle steps gain no room. With the feature
    /// `paper-modes` of this library; not with a write cache, checkpoints or
    /// [`GcPolicy::Tracked`](super::GcPolicy), nor where logical pages are replaced in place.
    Searched,
}

impl LivenessTracking {
    /// Whether pages are searched for at all.
    pub(crate) const fn searches(self) -> bool {
        cfg!(feature = "paper-modes") && matches!(self, Self::Searched)
    }

    /// The number of bits for the pages of a chip.
    pub(super) const fn page_bits(self, geometry: &Geometry) -> usize {
        if self.searches() { 0 } else { geometry.pages() as usize }
    }

    /// Bytes of a block's count.
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
