//! How many logical pages a chip has room for, and the RAM that they take.
//!
//! Nothing here calls a chip.

use nandina::blocks::{Blocks, GcPolicy, LivenessTracking, WearPolicy};
use nandina::flash::{Capabilities, Geometry};
use nandina::gc;
use nandina::log::{Frames, GAP, layout_of};

use super::bytes::{REQUEST_PAGES_MAX, SUSPECT_BYTES};
use super::{Choices, anchors, block_set};
use crate::logical::fewest_blocks;
use crate::mapping::Space;
use crate::transit::{Buffer, State};

/// Page buffers: one for the page at hand, one for the list of trims.
pub(super) const FRAMES: usize = 2;

/// Pages that the FTL keeps about itself: the session page and the list of trims.
pub(super) const OWN_PAGES: u32 = 2;

/// How blocks are described in RAM, besides what the choice of victims takes.
pub(super) const TABLE: (LivenessTracking, WearPolicy) =
    (LivenessTracking::Marked, WearPolicy::Counted);

/// Pages that a change writes at most.
///
/// They are the page itself or the list of trims, and two session pages.
const CHANGE_PAGES: u32 = 3;

/// Blocks that the reserve does not count, as far as they are open at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenBlocks {
    /// Whether pages that collection moves have a block of their own.
    pub apart: bool,
    /// Buffer blocks.
    pub buffer: u32,
}

impl OpenBlocks {
    /// Blocks beside the reserve: a session that is cut leaves each open block half written.
    ///
    /// With buffer blocks, two more are free before another one is opened, and one more can be a
    /// suspect.
    const fn count(self) -> u32 {
        let more = if self.buffer > 0 { 3 } else { 0 };
        1 + self.apart as u32 + self.buffer.saturating_add(more)
    }
}

/// Bytes of RAM for an FTL on this chip, without those of its mapping.
///
/// They are two pages with their headers, one bit for each page of the chip, and 4.75 bytes for each
/// of its blocks (22.75 on chips of 4,096 blocks and more where `nandina` has `large-devices`).
pub const fn ram_needed(geometry: &Geometry) -> usize {
    ram_needed_with(geometry, GcPolicy::Fewest)
}

/// The same where garbage collection chooses `victims`.
///
/// [`GcPolicy::CostBenefit`] takes four bytes more for each block.
pub const fn ram_needed_with(geometry: &Geometry, victims: GcPolicy) -> usize {
    let (validity, wear) = TABLE;
    let frame_bytes = layout_of(geometry).frame_bytes();
    Frames::ram_needed(frame_bytes, FRAMES, false)
        + anchors::ram_needed(geometry.blocks)
        + Blocks::ram_needed(geometry, validity, victims, wear)
}

/// The same with these choices on this chip.
///
/// A transit buffer takes 10 bytes for each of its blocks, one for each of their pages, and one bit
/// for each block of the chip.
pub fn ram_needed_for(
    geometry: &Geometry,
    capabilities: &Capabilities,
    choices: &Choices,
) -> usize {
    let Choices { victims, buffer } = choices;
    ram_needed_with(geometry, *victims)
        + buffered_bytes(geometry, buffer)
        + state_bytes(geometry, capabilities, buffer)
}

/// Bytes of the set of buffer blocks.
pub(super) const fn buffered_bytes(geometry: &Geometry, buffer: &Buffer) -> usize {
    if buffer.blocks == 0 { 0 } else { block_set::bytes(geometry.blocks) }
}

/// Bytes of what the transit layer keeps.
pub(super) const fn state_bytes(
    geometry: &Geometry,
    capabilities: &Capabilities,
    buffer: &Buffer,
) -> usize {
    let block_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
    State::bytes_for(buffer, geometry.blocks, block_pages)
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

/// Suspects beyond these where there is a transit buffer: a buffer block.
pub(super) const SUSPECTS_OF_BUFFER: usize = 1;

/// The most blocks with valid pages that may hold a torn page.
///
/// Each cut settling can add one. But the one with the fewest pages is emptied first, so each that
/// is added has at most half the pages of the fewest before. One more holds nothing but pages of
/// a request that is incomplete, and one is the other block that was open.
pub(super) const fn suspects_max(block_pages: u32) -> usize {
    block_pages.ilog2() as usize + 5
}

/// The space that the mapping of an FTL must have been made for.
///
/// A physical number is a place: only pages that an FTL programs have one.
pub const fn space_of(
    geometry: &Geometry,
    capabilities: &Capabilities,
    logical_pages: u32,
) -> Space {
    let safe_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
    Space { logical: logical_pages, physical: safe_pages * geometry.blocks }
}

/// The most logical pages for which a chip has enough spare blocks.
///
/// 0 if the chip is too small.
///
/// The rest is for garbage collection, for cuts of power in it, and for blocks that go bad. Cost:
/// one step for each page of a block.
pub fn logical_pages_max(geometry: &Geometry, capabilities: &Capabilities) -> u32 {
    limits_of(geometry, capabilities).valid_pages.saturating_sub(OWN_PAGES)
}

/// The same beside a transit buffer: its blocks, and three more, are no room for them.
pub fn logical_pages_beside(
    geometry: &Geometry,
    capabilities: &Capabilities,
    buffer: &Buffer,
) -> u32 {
    let open = OpenBlocks { apart: false, buffer: buffer.blocks };
    limits_if(geometry, capabilities, open).valid_pages.saturating_sub(OWN_PAGES)
}

/// The fewest blocks that a chip like this one needs for so many logical pages beside a buffer.
///
/// Returns `u32::MAX` if no number suffices.
pub fn blocks_needed_beside(
    geometry: &Geometry,
    capabilities: &Capabilities,
    buffer: &Buffer,
    logical_pages: u32,
) -> u32 {
    let most =
        |blocks| logical_pages_beside(&Geometry { blocks, ..*geometry }, capabilities, buffer);
    fewest_blocks(geometry, |blocks| most(blocks) >= logical_pages)
}

/// The fewest blocks that a chip like this one needs for so many logical pages.
///
/// Returns `u32::MAX` if no number suffices.
pub fn blocks_needed(geometry: &Geometry, capabilities: &Capabilities, logical_pages: u32) -> u32 {
    let most = |blocks| logical_pages_max(&Geometry { blocks, ..*geometry }, capabilities);
    fewest_blocks(geometry, |blocks| most(blocks) >= logical_pages)
}

/// How many pages may be valid, and how many have to be free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// The most valid pages.
    pub valid_pages: u32,
    /// Pages that are free before a change begins, the reserve included.
    pub room_pages: u32,
    /// Of these, what only collection after a cut, or after a block failed, may use.
    pub reserve_pages: u32,
    /// Blocks that are at least closed whenever room is short.
    pub closed_blocks: u32,
}

/// The fewest pages that collecting a block gains: a thirty-second of it.
///
/// An index asks for an eighth (`nandina::gc::gain`), which bounds the cost of a change. An FTL
/// leaves this to its host, which chooses the number of logical pages.
const fn gain(block_pages: u32) -> u32 {
    if block_pages < 64 { 1 } else { block_pages / 32 }
}

/// The limits for pages that move one by one.
///
/// `nandina::gc::Budget` has the proof for the reserve. As there, of all possible numbers of
/// valid pages of a victim the one is taken that allows the most valid pages.
fn limits_of(geometry: &Geometry, capabilities: &Capabilities) -> Limits {
    limits_if(geometry, capabilities, OpenBlocks::default())
}

/// The limits, if so many blocks are open at a time.
pub(super) fn limits_if(
    geometry: &Geometry,
    capabilities: &Capabilities,
    open: OpenBlocks,
) -> Limits {
    limits_with(geometry, capabilities, (CHANGE_PAGES, open.count()))
}

/// The limits if `change_pages` pages have to be free before a change, beside the reserve.
///
/// There are up to `session_blocks` that a session which was cut left half written.
fn limits_with(
    geometry: &Geometry,
    capabilities: &Capabilities,
    (change_pages, session_blocks): (u32, u32),
) -> Limits {
    let block = capabilities.pairing.safe_pages(geometry.pages_per_block);
    let kept = capabilities.bad_blocks_max(geometry.blocks).saturating_add(session_blocks);
    let blocks = geometry.blocks.saturating_sub(kept);
    let mut best = Limits::default();
    for valid in 1..=block.saturating_sub(gain(block)) {
        let reserve_pages = gc::reserve_blocks(valid) * block;
        let room_pages = change_pages + reserve_pages;
        let closed = blocks.saturating_sub(room_pages / block + 1);
        let valid_pages = (u64::from(closed) * u64::from(valid + 1)).saturating_sub(1);
        let valid_pages = valid_pages.min(u32::MAX.into()) as u32;
        if valid_pages > best.valid_pages {
            best = Limits { valid_pages, room_pages, reserve_pages, closed_blocks: closed };
        }
    }
    best
}

/// The most logical pages beside which pages that collection moves have a block of their own.
///
/// So an FTL programs about a quarter less where pages are written by Zipf's law (the example
/// `amplification`). It does so wherever there are no more logical pages than these, a few blocks
/// less than [`logical_pages_max`]. Any FTL opens what it leaves. Cost: a step for each page of a
/// block.
pub fn logical_pages_apart_max(geometry: &Geometry, capabilities: &Capabilities) -> u32 {
    logical_pages_apart_beside(geometry, capabilities, &Buffer::NONE)
}

/// The same beside a transit buffer.
pub fn logical_pages_apart_beside(
    geometry: &Geometry,
    capabilities: &Capabilities,
    buffer: &Buffer,
) -> u32 {
    // The largest requests have room as well.
    let block = capabilities.pairing.safe_pages(geometry.pages_per_block);
    let (pages, open) =
        (block.min(REQUEST_PAGES_MAX), OpenBlocks { apart: true, buffer: buffer.blocks });
    valid_pages_before(geometry, capabilities, open, pages).saturating_sub(OWN_PAGES)
}

/// The most pages that may be valid before a request of `pages` pages is written.
pub(super) fn valid_pages_before(
    geometry: &Geometry,
    capabilities: &Capabilities,
    open: OpenBlocks,
    pages: u32,
) -> u32 {
    let change_pages = (CHANGE_PAGES - 1 + pages, open.count());
    limits_with(geometry, capabilities, change_pages).valid_pages
}

/// The most pages of a request that an FTL writes as a whole
/// ([`Ftl::write_pages_atomic`](super::Ftl::write_pages_atomic)).
///
/// They are at most 256, at most the safe pages of a block, and as many as always find room beside
/// these logical pages; 0 if even the logical pages do not. Fewer logical pages allow larger
/// requests. Cost: eight steps for each page of a block.
pub fn request_pages_max(
    geometry: &Geometry,
    capabilities: &Capabilities,
    logical_pages: u32,
) -> u32 {
    request_pages_beside(geometry, capabilities, OpenBlocks::default(), logical_pages)
}

/// The same where so many blocks are open at a time.
pub(super) fn request_pages_beside(
    geometry: &Geometry,
    capabilities: &Capabilities,
    open: OpenBlocks,
    logical_pages: u32,
) -> u32 {
    let block = capabilities.pairing.safe_pages(geometry.pages_per_block);
    let valid_pages = logical_pages.saturating_add(OWN_PAGES);
    let (mut fits, mut end) = (0, block.min(REQUEST_PAGES_MAX) + 1);
    while end - fits > 1 {
        let middle = fits + (end - fits) / 2;
        if valid_pages_before(geometry, capabilities, open, middle) >= valid_pages {
            fits = middle;
        } else {
            end = middle;
        }
    }
    fits
}

/// Sequence numbers that a mount skips.
///
/// More pages than that cannot have been programmed without success since the last that was.
pub(super) fn gap_of(geometry: &Geometry) -> u64 {
    GAP + u64::from(geometry.blocks)
}
