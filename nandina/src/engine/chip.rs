//! Which chips an index can use, whatever its engine.

use crate::blocks::PAGES_MAX;
use crate::error::BadOption;
use crate::flash::Geometry;
use crate::log::layout_of;
use crate::node::HEADER_BYTES;

/// The most pages of a chip: their numbers have 31 bits.
pub const CHIP_PAGES_MAX: u32 = (1 << 31) - 1;

/// Why a chip of this geometry can hold no index, whatever its settings.
pub fn unusable(geometry: &Geometry) -> Option<BadOption> {
    if !(2..=PAGES_MAX).contains(&geometry.pages_per_block) {
        return Some(BadOption::PagesPerBlock);
    }
    if geometry.blocks == 0 {
        return Some(BadOption::Blocks);
    }
    // So the product of both never overflows.
    if geometry.blocks > CHIP_PAGES_MAX / geometry.pages_per_block {
        return Some(BadOption::Pages);
    }
    (layout_of(geometry).frame_bytes() < HEADER_BYTES).then_some(BadOption::PageBytes)
}

/// The geometry, with numbers of pages and blocks reduced to their ranges.
///
/// A number beyond its range becomes the largest that is allowed.
pub fn bounded(geometry: &Geometry) -> Geometry {
    let pages_per_block = geometry.pages_per_block.min(PAGES_MAX);
    let blocks = geometry.blocks.min(CHIP_PAGES_MAX / pages_per_block.max(1));
    Geometry { pages_per_block, blocks, ..*geometry }
}
