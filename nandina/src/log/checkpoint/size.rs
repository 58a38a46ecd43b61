//! How many pages a checkpoint has, and what writing or finding one costs.
//!
//! Nothing is read or written here.

use super::anchors::ANCHORS;
use super::area::{AREA_MAX, blocks_for, erases_max};
use super::page::{self, HEAD_BYTES, PREFIX_BYTES};
use super::{LIST_MAX, Stream};
use crate::flash::Geometry;
use crate::log::LOST_MAX;
use crate::node::PageLayout;

/// Pages of one checkpoint, or `None` if [`AREA_MAX`] blocks cannot hold one.
///
/// `stream_bytes` are the bytes of the owner's part of type `S`.
pub const fn parts<S: Stream>(
    geometry: &Geometry,
    layout: &PageLayout,
    block_pages: u32,
    stream_bytes: usize,
) -> Option<u32> {
    let area_bytes = layout.area_bytes();
    if area_bytes < PREFIX_BYTES + HEAD_BYTES {
        return None;
    }
    let stream_bytes = page::table_bytes(geometry, S::STORES_VALID) + stream_bytes;
    let parts = stream_bytes.div_ceil(area_bytes - PREFIX_BYTES);
    if blocks_for(parts, (geometry, layout), block_pages).is_some() {
        Some(parts as u32)
    } else {
        None
    }
}

/// The most pages of one checkpoint on a chip of this geometry.
pub fn parts_most(geometry: &Geometry, layout: &PageLayout, block_pages: u32) -> u32 {
    let all = |blocks: u32| (block_pages * blocks) as usize;
    let fits = |&blocks: &u32| blocks_for(all(blocks), (geometry, layout), block_pages).is_some();
    (1..=AREA_MAX as u32).rev().find(fits).map_or(0, |blocks| all(blocks) as u32)
}

/// The most chip operations of a checkpoint of `parts` pages if no block fails.
///
/// They are these pages and an anchor's page, and the erases of the checkpoint's blocks, of the
/// previous one, and of both anchors. With `verify` each is read back.
pub const fn cost(parts: u32, block_pages: u32, verify: bool) -> u32 {
    (parts + 1 + erases_max(parts.div_ceil(block_pages))) * (1 + verify as u32)
}

/// The most erases that make a checkpoint void if no block fails.
///
/// They are that of its first block; or, if a mount did not use it, those of both anchors.
pub const VOIDING: u32 = ANCHORS.len() as u32;

/// The chip operations of these. With `verify` a page of each block is read.
pub const fn voiding_cost(verify: bool) -> u32 {
    VOIDING * (1 + verify as u32)
}

/// Reads to find a checkpoint of `parts` pages that leads nowhere.
///
/// Both anchors and its block are searched, and the first pages of the blocks that it lists.
pub const fn search_in_vain(parts: u32, block_pages: u32) -> u64 {
    3 * (block_pages.ilog2() + 3) as u64
        + 2 * (parts + parts.div_ceil(block_pages)) as u64
        + LIST_MAX as u64 * (1 + LOST_MAX) as u64
}
