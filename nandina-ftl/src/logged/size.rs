//! How many logical pages a chip has room for, and the RAM that they take.
//!
//! Nothing here calls a chip.

use nandina::flash::{Capabilities, Geometry, Needs};

use super::Scheme;
use super::maps::{LOGICAL_BYTES, ROW_BYTES, block_pages_max};
use super::sector::Sectors;
use crate::ftl::{FtlError, logical_page_bytes};
use crate::hybrid::label::LOGICAL_END;
use crate::hybrid::media;
use crate::logical::fewest_blocks;

/// The block that says what the chip is, also while there is no page.
const MARKER_BLOCKS: u32 = 1;

/// Free blocks: one for a merge, one for what a cut left behind in another.
const SPARE_BLOCKS: u32 = 2;

/// What the chip has to allow: some bytes of a page are programmed after the page.
pub const NEEDS: Needs = Needs { programs_per_page: 2, overwrite: true, ..Needs::NOTHING };

/// The fewest pages of a block: two of a merge, one for the log, and one more.
const BLOCK_PAGES_MIN: u32 = 4;

/// How many pages of a block are used.
pub(super) const fn block_pages(geometry: &Geometry, capabilities: &Capabilities) -> u32 {
    capabilities.pairing.safe_pages(geometry.pages_per_block)
}

/// How log pages of this chip are divided, or why there can be none.
pub(super) fn sectors<E>(
    geometry: &Geometry,
    capabilities: &Capabilities,
) -> Result<Sectors, FtlError<E>> {
    if let Some(missing) = NEEDS.missing(capabilities) {
        return Err(FtlError::Chip(missing));
    }
    let given = geometry.page_bytes;
    let sectors = Sectors::of(geometry, capabilities);
    let sectors = sectors.ok_or(FtlError::PagesTooSmall { needed: 256, given: given as usize })?;
    let (most, pages) = (block_pages_max(sectors.count), geometry.pages_per_block);
    if pages > most {
        return Err(FtlError::TooLarge { most, given: pages });
    }
    // Positions in a page take two bytes.
    let most = 1 << 16;
    if given > most { Err(FtlError::TooLarge { most, given }) } else { Ok(sectors) }
}

/// Bytes of the maps alone.
///
/// They are 6 bytes for each logical page, and 19 for each block.
pub fn map_bytes(geometry: &Geometry, logical_pages: u32) -> usize {
    logical_pages as usize * LOGICAL_BYTES + geometry.blocks as usize * ROW_BYTES
}

/// Bytes of RAM for this FTL, all included.
///
/// They are [`map_bytes`], three pages, and what describes the blocks: a bit for each page of the
/// chip, and 4.6 bytes for each block.
pub fn ram_needed(geometry: &Geometry, logical_pages: u32) -> usize {
    media::ram_needed(geometry) + logical_page_bytes(geometry) + map_bytes(geometry, logical_pages)
}

/// The most logical pages on a chip; 0 if it has too few blocks, or cannot program sectors.
///
/// Beside the blocks of pages there are those that may go bad, the one that says what the chip is,
/// two free ones, and for [`Scheme::Dipl`] a third, for a division.
pub fn logical_pages_max(geometry: &Geometry, capabilities: &Capabilities, scheme: Scheme) -> u32 {
    let pages = block_pages(geometry, capabilities);
    if sectors::<()>(geometry, capabilities).is_err() || pages < BLOCK_PAGES_MIN {
        return 0;
    }
    let divided = u32::from(scheme == Scheme::Dipl);
    let kept =
        capabilities.bad_blocks_max(geometry.blocks) + MARKER_BLOCKS + SPARE_BLOCKS + divided;
    let blocks = u64::from(geometry.blocks.saturating_sub(kept));
    (blocks * u64::from(scheme.pages_in(pages))).min(LOGICAL_END.into()) as u32
}

/// The fewest blocks that a chip like this one needs for these logical pages.
///
/// Returns `u32::MAX` if no number suffices.
pub fn blocks_needed(
    geometry: &Geometry,
    capabilities: &Capabilities,
    scheme: Scheme,
    logical_pages: u32,
) -> u32 {
    let most = |blocks| logical_pages_max(&Geometry { blocks, ..*geometry }, capabilities, scheme);
    fewest_blocks(geometry, |blocks| most(blocks) >= logical_pages)
}
