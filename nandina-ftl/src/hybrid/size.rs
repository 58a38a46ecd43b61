//! How many logical pages a chip has room for, and the RAM that they take.
//!
//! Nothing here calls a chip.

use nandina::flash::{Capabilities, Geometry};
use nandina::log::GAP;

use super::label::LOGICAL_END;
use super::maps::Sizes;
use super::media;
use super::policy::Policy;
use crate::ftl::bytes::SUSPECT_BYTES;
use crate::logical::fewest_blocks;
use crate::transit::State;

/// The block with the pages that the FTL keeps about itself.
const OWN_BLOCKS: u32 = 1;

/// Free blocks: one for a merge, one for what a cut left behind in another.
const SPARE_BLOCKS: u32 = 2;

/// Log blocks that a mount describes beyond those of the policy.
///
/// They were merged, and power was cut before they were erased: a log block or a buffer block, two
/// data blocks of a logical block, and the copy that a cut ended.
const STALE_SLOTS: u32 = 4;

/// Log blocks beyond these, for blocks whose erase failed and that are not marked.
///
/// Their stale pages are compared at each mount. A mount of a chip with more of them can lack room.
const FAILED_SLOTS_MAX: u32 = 16;

/// Suspects that a page about the FTL itself has room for.
pub(super) const SUSPECTS: usize = 4;

/// Bytes of the suspects in that page. Trims follow them.
pub(super) const SUSPECTS_BYTES: usize = 4 + SUSPECTS * SUSPECT_BYTES;

/// The fewest bytes of a logical page: the suspects, and a list of two trims.
pub(super) const PAGE_BYTES_MIN: usize = SUSPECTS_BYTES + 12 + 2 * 8;

/// Bytes of the Summary table of the transit layer.
///
/// They are 10 for each buffer block and one for each of its pages.
pub fn summary_bytes<P: Policy>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    policy: &P,
) -> usize {
    let block_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
    State::bytes_for(&policy.buffer(), geometry.blocks, block_pages)
}

/// The maps for these logical pages.
pub(super) fn sizes_of<P: Policy>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    policy: &P,
    logical_pages: u32,
) -> Sizes {
    let block_pages = capabilities.pairing.safe_pages(geometry.pages_per_block).max(1);
    let bad = capabilities.bad_blocks_max(geometry.blocks).min(FAILED_SLOTS_MAX);
    let slots = policy.log_blocks().saturating_add(STALE_SLOTS + bad).min(geometry.blocks);
    Sizes { logical_blocks: logical_pages.div_ceil(block_pages), block_pages, slots }
}

/// Bytes of the maps alone: what papers count as a hybrid mapping table.
///
/// They are 4 bytes for each logical block, and for each log block 20 bytes and 10 for each of its
/// pages. Four log blocks more than the policy's are described, and one for each block that may go
/// bad, at most 16, because a mount can meet blocks that were merged or converted and not erased.
pub fn map_bytes<P: Policy>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    policy: &P,
    logical_pages: u32,
) -> usize {
    sizes_of(geometry, capabilities, policy, logical_pages).bytes()
}

/// Bytes of RAM for a hybrid FTL on this chip, all included.
///
/// They are [`map_bytes`], [`summary_bytes`], two pages with their headers, one bit for each page of the chip, and 4.6
/// bytes for each of its blocks.
pub fn ram_needed<P: Policy>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    policy: &P,
    logical_pages: u32,
) -> usize {
    media::ram_needed(geometry)
        + map_bytes(geometry, capabilities, policy, logical_pages)
        + summary_bytes(geometry, capabilities, policy)
}

/// The most logical pages on a chip, 0 if it has too few blocks.
///
/// Beside the data blocks there are the log blocks and buffer blocks of the policy, those that may go bad, one for
/// what the FTL notes about itself, and two free ones.
pub fn logical_pages_max<P: Policy>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    policy: &P,
) -> u32 {
    let kept = u64::from(capabilities.bad_blocks_max(geometry.blocks))
        + u64::from(policy.log_blocks())
        + u64::from(policy.buffer().blocks)
        + u64::from(OWN_BLOCKS + SPARE_BLOCKS);
    let block_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
    let pages = u64::from(geometry.blocks).saturating_sub(kept) * u64::from(block_pages);
    pages.min(LOGICAL_END.into()) as u32
}

/// The fewest blocks that a chip like this one needs for these logical pages.
///
/// Returns `u32::MAX` if no number suffices.
pub fn blocks_needed<P: Policy>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    policy: &P,
    logical_pages: u32,
) -> u32 {
    let most = |blocks| logical_pages_max(&Geometry { blocks, ..*geometry }, capabilities, policy);
    fewest_blocks(geometry, |blocks| most(blocks) >= logical_pages)
}

/// Sequence numbers that a mount skips.
///
/// More pages than that cannot have been programmed and be invisible now: a block of copies that
/// was being erased, and pages whose programs failed one after another.
pub(super) fn gap_of(geometry: &Geometry) -> u64 {
    GAP + u64::from(geometry.blocks) + u64::from(geometry.pages_per_block)
}
