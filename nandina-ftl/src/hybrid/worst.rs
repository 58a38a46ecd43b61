//! The most that a write costs, before there is an FTL.
//!
//! The bounds hold on a chip whose blocks do not fail and whose pages do not fade. They leave out
//! what settles a cut: the first change of a session does that before anything else. Nothing here
//! calls a chip.

use nandina::Cost;
use nandina::flash::{Capabilities, Geometry};

use super::policy::Policy;
use super::size::{SUSPECTS_BYTES, sizes_of};
use crate::ftl::bytes::Trims;
use crate::ftl::{logical_page_bytes, writes_of_trims};
use crate::write_cost::{WriteCost, most};

/// The most that the write of a page costs in such an FTL for so many logical pages.
///
/// A merge reads and programs each page of a block once, and erases the block that it opens and the
/// one that it replaces. What differs is how many merges there are:
///
/// - A random log block is merged for each logical block of which it has pages that count, and it
///   has pages of as many as it has pages. A conversion writes a block of pages at most, so it
///   opens one random log block, and merges one for that. Each of its logical blocks can close the
///   sequential log block, and can be completed.
/// - A log block that belongs to a logical block takes one merge. A conversion fills one for each
///   logical block that it has pages of, opens another one, and takes one from someone else.
/// - Without log blocks each page takes a merge.
pub fn write_cost<P: Policy>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    policy: &P,
    logical_pages: u32,
) -> WriteCost {
    let sizes = sizes_of(geometry, capabilities, policy, logical_pages);
    let (pages, slots) = (u64::from(sizes.block_pages), u64::from(sizes.slots));
    let buffer = policy.buffer();
    // Logical blocks of the pages in a buffer block.
    let blocks = u64::from(buffer.neighbours_of(sizes.block_pages)).min(pages);
    let (for_a_page, for_a_log_block, for_a_conversion) = match (policy.log_blocks(), P::OWNED) {
        (0, _) => (1, 1, pages + blocks),
        (_, true) => (2, 1, 3 * blocks),
        (_, false) => (pages + 1, pages, pages + 2 * blocks),
    };
    // Log blocks that became empty are erased once, whichever merge it was.
    let merges = |count: u64| Cost {
        reads: count * pages,
        programs: count * pages,
        erases: 2 * count + slots,
    };
    // A new data block begins with a page that holds nothing. It is erased, as a log block is.
    let page = merges(for_a_page).and(1, Cost { reads: 0, programs: 2, erases: 2 });
    let conversion = if buffer.blocks == 0 {
        Cost::default()
    } else {
        // Each page is read and programmed, and each stale one may be read. The buffer block is
        // erased, and the block of the next one; for each logical block a data block that became
        // empty, a new one, and two log blocks.
        let beside = Cost { reads: 2 * pages, programs: pages + blocks, erases: 3 + 4 * blocks };
        merges(for_a_conversion).and(1, beside)
    };
    let emptied = merges(for_a_log_block).and(1, Cost { reads: 1, programs: 1, erases: 2 });
    let maintenance = most(emptied, conversion);
    WriteCost::new(page, conversion, maintenance, buffer.blocks == 0 || buffer.ahead > 0)
}

/// The most page writes that `trims` of so many `pages` each take in one call of a host.
///
/// They are those of [`ftl::trim_writes`](crate::ftl::trim_writes), with a shorter list.
pub fn trim_writes(geometry: &Geometry, logical_pages: u32, trims: u64, pages: u32) -> u64 {
    let bytes = logical_page_bytes(geometry).saturating_sub(SUSPECTS_BYTES);
    writes_of_trims(Trims::room(bytes), logical_pages, trims, pages)
}
