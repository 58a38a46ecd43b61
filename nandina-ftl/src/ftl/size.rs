//! How many logical pages a chip has room for, and the RAM that it takes. Nothing here calls a chip.

use nandina::blocks::{Blocks, Validity, Victims, Wear};
use nandina::flash::{Capabilities, Geometry};
use nandina::log::{Frames, GAP, layout_of};
use nandina::space::{Budget, Extent, Moves};

use super::bytes::SUSPECT_BYTES;
use crate::mapping::Space;

/// Page buffers: one for the page at hand, one for the list of trims.
pub(super) const FRAMES: usize = 2;

/// Pages that the FTL keeps about itself: the session page and the list of trims.
const OWN_PAGES: u32 = 2;

/// How blocks are described in RAM.
pub(super) const TABLE: (Validity, Victims, Wear) =
    (Validity::Marked, Victims::Fewest, Wear::Counted);

/// Blocks beside the reserve of the library: a session that is cut leaves one half written.
const SESSION_BLOCKS: u32 = 1;

/// Bytes of RAM for an FTL on this chip, without those of its mapping.
///
/// They are two pages with their headers, one bit for each page of the chip, and 4.5 bytes for each
/// of its blocks (20.5 on chips of 4,096 blocks and more where `nandina` has `large-devices`).
pub const fn ram_needed(geometry: &Geometry) -> usize {
    let (validity, victims, wear) = TABLE;
    let frame_bytes = layout_of(geometry).frame_bytes();
    Frames::ram_needed(frame_bytes, FRAMES, false)
        + Blocks::ram_needed(geometry, validity, victims, wear)
}

/// Bytes of a logical page.
///
/// All main data of a page, where its spare area has room for a header of 40 bytes; else less by
/// what the header takes of it.
pub const fn logical_page_bytes(geometry: &Geometry) -> usize {
    layout_of(geometry).area_bytes()
}

/// The fewest bytes of a logical page.
///
/// A list of the blocks that a settling can involve must fit in one.
pub(super) fn page_bytes_min(block_pages: u32) -> usize {
    4 + SUSPECT_BYTES * suspects_max(block_pages)
}

/// The most blocks with valid pages that may hold a torn page.
///
/// Each cut settling can add one. But the one with the fewest pages is emptied first, so each that
/// is added has at most half the pages of the fewest before.
pub(super) const fn suspects_max(block_pages: u32) -> usize {
    block_pages.ilog2() as usize + 3
}

/// The space that the mapping of an FTL must have been made for.
pub const fn space_of(geometry: &Geometry, logical_pages: u32) -> Space {
    Space { logical: logical_pages, physical: geometry.pages() }
}

/// The most logical pages for which a chip has enough spare blocks; 0 if it is too small.
///
/// The rest is for garbage collection, for cuts of power in it, and for blocks that go bad. Cost:
/// one step for each page of a block.
pub fn logical_pages_max(geometry: &Geometry, capabilities: &Capabilities) -> u32 {
    budget_of(geometry, capabilities).limit_pages.saturating_sub(OWN_PAGES)
}

/// The fewest blocks that a chip like this one needs for so many logical pages.
///
/// Returns `u32::MAX` if no number suffices.
pub fn blocks_needed(geometry: &Geometry, capabilities: &Capabilities, logical_pages: u32) -> u32 {
    let (mut few, mut enough) = (0, u32::MAX / geometry.pages_per_block.max(1));
    while enough - few > 1 {
        let blocks = few + (enough - few) / 2;
        if logical_pages_max(&Geometry { blocks, ..*geometry }, capabilities) >= logical_pages {
            enough = blocks;
        } else {
            few = blocks;
        }
    }
    let most = logical_pages_max(&Geometry { blocks: enough, ..*geometry }, capabilities);
    if most >= logical_pages { enough } else { u32::MAX }
}

/// The library's limits for pages that move one by one.
pub(super) fn budget_of(geometry: &Geometry, capabilities: &Capabilities) -> Budget {
    let block_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
    let kept = capabilities.bad_blocks_max(geometry.blocks) + SESSION_BLOCKS;
    let extent = Extent { block_pages, blocks: geometry.blocks.saturating_sub(kept) };
    Budget::new(&extent, Moves::Alone, 1, (1, 1), 0)
}

/// Sequence numbers that a mount skips.
///
/// More pages than that cannot have been programmed without success since the last that was.
pub(super) fn gap_of(geometry: &Geometry) -> u64 {
    GAP + u64::from(geometry.blocks)
}
