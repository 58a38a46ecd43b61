//! How many pages may be valid, so that garbage collection always gains room.
//!
//! Collecting a victim with `v` valid pages writes `v` pages and, where a moved page takes its path
//! along, the rest of at most one path for each inner node. It gains room if that is less than a
//! block.
//!
//! A cut wastes the rest of the active block. Suppose that collection is cut again and again. The
//! moved part and the part left behind become victims of their own, so the fewest moves that empty
//! a victim at least halve each time, until one move is left, which frees a block for the one it
//! used. So cuts can never use up a reserve of `1 + log2(v)` blocks, as long as the victim that
//! takes the fewest moves is chosen once the reserve is touched. Where a moved page takes its path
//! along, that is not the victim with the fewest valid pages: a leaf and its path in one block are
//! several pages and one move.
//!
//! Nothing else may use that reserve. Pages that move for other reasons than to gain room (to level
//! wear, to refresh weak pages, to empty bad blocks, ahead of need) move only if a path more than
//! the reserve is free. Pages that a mount settles leave it alone as well, unless collection cannot
//! gain that much room.
//!
//! Failing blocks are not paid from it either: as many further blocks are kept free of garbage as
//! may still go bad ([`room_to_fail`]), because several can fail in one operation, and a mount
//! forgets those that a cut left unmarked. They are not part of the [`Extent`], so this costs no
//! capacity. The same holds for the free blocks that are for checkpoints.
//!
//! Paths are shared only when pages move together ([`RelocationMode`]).
//!
//! Enough pages are kept free of valid data that each victim gains at least an eighth of a block:
//! the capacity that is given up bounds the most that one change can cost.

use super::{gain, reserve_blocks};

/// The part of a chip that an index uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Pages of a block that are programmed: its safe pages.
    pub block_pages: u32,
    /// Blocks, without those that are bad or kept for blocks that go bad.
    pub blocks: u32,
}

impl Extent {
    /// The fewest pages that a victim gains.
    pub const fn gain(&self) -> u32 {
        gain(self.block_pages)
    }
}

/// How the valid pages of a victim are moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RelocationMode {
    /// The path of a page takes along other pages of the victim.
    ///
    /// These are the pages that the nodes of the path point to.
    #[default]
    Together,
    /// Each page writes a path of its own, as in the μ-Tree paper, section 5.1.
    ///
    /// For comparison: it costs the wandering tree more programs, so it allows fewer valid pages.
    Alone,
}

impl RelocationMode {
    /// The one that is built: without the feature `paper-modes` there is one.
    pub(crate) const fn built(self) -> Self {
        if cfg!(feature = "paper-modes") { self } else { Self::Together }
    }

    /// The most pages written to empty a victim with `valid` valid pages.
    pub(crate) fn pages(self, valid: u32, path_pages: u32, inner_nodes: u32) -> u32 {
        let paths = match self {
            Self::Together => valid.min(inner_nodes + valid / MOVED_ALONG_MAX),
            Self::Alone => valid,
        };
        valid + paths * (path_pages - 1)
    }
}

/// Limits for a tree of a given height and number of inner nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    /// The most valid pages allowed.
    pub limit_pages: u32,
    // Two bytes each: no operation writes a block, and no reserve has more than 13 blocks of 4,095
    // pages.
    room_pages: u16,
    reserve_pages: u16,
}

/// The most children that one path takes along when a victim is collected.
pub const MOVED_ALONG_MAX: u32 = 24;

/// Pages kept free for blocks that fail in the middle of an operation.
///
/// `bad_blocks` of the chip are bad, and `reserve_blocks` may go bad in its life.
pub const fn room_to_fail(bad_blocks: u32, reserve_blocks: u32, block_pages: u32) -> u32 {
    reserve_blocks.saturating_sub(bad_blocks) * block_pages
}

impl Budget {
    /// Limits where `pages` logical pages are replaced in place.
    ///
    /// Each of them may be used, and none is kept free.
    pub const fn in_place(pages: u32) -> Self {
        Self { limit_pages: pages, room_pages: 0, reserve_pages: 0 }
    }

    const fn with(limit_pages: u32, operation: u32, reserve_pages: u32) -> Self {
        let room_pages = operation + reserve_pages;
        debug_assert!(room_pages <= u16::MAX as u32);
        Self { limit_pages, room_pages: room_pages as u16, reserve_pages: reserve_pages as u16 }
    }

    /// The same limits where one page less may be valid.
    pub(crate) const fn without_page(self) -> Self {
        Self { limit_pages: self.limit_pages.saturating_sub(1), ..self }
    }

    /// Pages that must be free before an operation begins.
    ///
    /// The room kept for failing blocks comes on top.
    pub fn room_pages(&self) -> u32 {
        self.room_pages.into()
    }

    /// Of these, the pages that only garbage collection after a cut may use.
    pub fn reserve_pages(&self) -> u32 {
        self.reserve_pages.into()
    }

    /// The best limits for a tree of `height` with `inner_nodes`.
    ///
    /// A changed leaf writes `path_pages` pages, its own included, and a moved one writes
    /// `moved_path`.
    pub fn new(
        extent: &Extent,
        moves: RelocationMode,
        height: u8,
        (path_pages, moved_path): (u32, u32),
        inner_nodes: u32,
    ) -> Self {
        let block = extent.block_pages;
        // The longest operation splits every level.
        let operation = path_pages + u32::from(height) + 1;
        let mut best = Self::with(0, operation, block);
        for valid in 1..block {
            if moves.pages(valid, moved_path, inner_nodes) + extent.gain() > block {
                break;
            }
            let reserve_pages = reserve_blocks(valid) * block;
            let longest = operation + reserve_pages + path_pages - 1;
            let closed = extent.blocks.saturating_sub(longest / block + 1);
            let limit_pages = (closed * (valid + 1)).saturating_sub(1);
            if limit_pages > best.limit_pages {
                best = Self::with(limit_pages, operation, reserve_pages);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Extent = Extent { block_pages: 128, blocks: 128 };

    #[test]
    fn most_of_a_large_chip_can_be_valid() {
        let pages = LARGE.block_pages * LARGE.blocks;
        let mu = Budget::new(&LARGE, RelocationMode::Together, 3, (1, 1), 100);
        assert!(mu.limit_pages * 100 / pages >= 80, "{mu:?}");
        let wandering = Budget::new(&LARGE, RelocationMode::Together, 3, (3, 3), 10);
        assert!(wandering.limit_pages * 100 / pages >= 60, "{wandering:?}");
    }

    #[test]
    fn a_chip_without_room_allows_nothing() {
        let extent = Extent { blocks: 2, ..LARGE };
        assert_eq!(Budget::new(&extent, RelocationMode::Together, 1, (1, 1), 0).limit_pages, 0);
    }
}
