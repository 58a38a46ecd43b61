//! The most that any call can cost, and whether records fit.
//!
//! Nothing is read or written here.

use core::convert::Infallible;

use super::limits::{LIMIT_MIN, area_blocks, budget, dense, move_cost, settling_pages};
use super::suspects::{WAITING_MAX, suspects_max};
use super::{READS_MAX, options};
use crate::engine::{Cost, Options, Plan, WorstChange, ending_cost};
use crate::error::OpenError;
use crate::flash::{Capabilities, Geometry};
use crate::gc::room_to_fail;
use crate::log::Dimensions;
use crate::log::checkpoint::{self, LIST_MAX};
use crate::log::{LOOKS, LOST_MAX, layout_of};

/// The most leaves of an index that never holds more than `records` records.
const fn leaves_for(records: u32, capacity: usize) -> u32 {
    // No leaf is ever split before there are more records than fit in one.
    if records as usize <= capacity { 1 } else { dense(records, capacity) + 1 }
}

/// Plans an index for at most `records` records.
pub(super) fn planned(
    geometry: &Geometry,
    capabilities: &Capabilities,
    options: &Options,
    records: u32,
) -> Result<Plan, OpenError<Infallible>> {
    options::check(geometry, capabilities, options, usize::MAX)?;
    let block_pages = Dimensions::new(geometry, capabilities).block_pages;
    let reserve = capabilities.bad_blocks_max(geometry.blocks).min(geometry.blocks);
    let parts = options::parts_max(geometry, options, block_pages);
    let lost = reserve + area_blocks(parts, block_pages);
    let (extent, budget) = budget(block_pages, geometry.blocks.saturating_sub(lost));
    let limit_pages = budget.limit_pages.min(options.leaves.unwrap_or(u32::MAX));
    if limit_pages < LIMIT_MIN {
        return Err(OpenError::ChipTooSmall { limit_pages });
    }
    let form = options::form_of(layout_of(geometry).area_bytes(), options);
    let valid_pages = leaves_for(records.saturating_add(1), form.capacity());
    let fits = valid_pages <= limit_pages;
    // Records that do not fit may be inserted all the same, up to the limit.
    let most = budget.limit_pages.min(options::leaves_most(geometry, options));
    let leaves = u64::from(valid_pages.min(most));
    let bounds = WorstChange {
        extent,
        budget,
        path: 1,
        height: 1,
        parts,
        ends_sessions: false,
        options,
        wear: options::wear_of(options),
        trims: true,
        merges: 1,
        searched: u64::from(READS_MAX) * (2 * leaves + 4),
    };
    let change = bounds.change_in_log(budget.room_pages() - budget.reserve_pages(), false);
    let beside = settling_pages(block_pages) + room_to_fail(0, reserve, block_pages);
    // A suspect that had to wait for room is emptied, and the session page written again.
    // The blocks for checkpoints are missing as well.
    let area = 2 * parts.next_multiple_of(block_pages);
    let short_pages = budget.room_pages() + beside + block_pages + area;
    let after_cuts = bounds.change_in_log(short_pages, true);
    let reads_by_erase = options::wear_of(options).reads_by_erase();
    Ok(Plan {
        ram_bytes: options::ram_needed(geometry, options),
        height: if valid_pages > 1 { 2 } else { 1 },
        valid_pages,
        limit_pages,
        fits,
        open: open_cost(geometry, block_pages, parts, options.verify),
        get: Cost { reads: 1, programs: 0, erases: 0 },
        change,
        change_after_cuts: after_cuts,
        close: ending_cost((0, parts > 0), block_pages, options.verify, reads_by_erase),
        gc_step_least: move_cost(options.verify, reads_by_erase)
            + if parts > 0 { checkpoint::cost(parts, block_pages, options.verify) } else { 0 },
    })
}

/// The most that opening costs.
///
/// The first pages of all blocks and their ends are read, and at most every page, twice where the
/// state before the newest leaf is gone; and all of that again for each torn page. Before that, a
/// checkpoint of `parts` pages, or 0, and the pages after it may be read and found unusable; and
/// before that, the checkpoint and at most all of these pages, where their trails lead nowhere.
/// Then the valid pages of the blocks that may hold a torn page are moved, and a checkpoint is
/// written.
fn open_cost(geometry: &Geometry, block_pages: u32, parts: u32, verify: bool) -> Cost {
    let (blocks, pages) = (u64::from(geometry.blocks), u64::from(block_pages));
    let ends = u64::from(block_pages.ilog2() + 2 * LOST_MAX + 4);
    let suspects = suspects_max(block_pages) as u64;
    let looked_at = blocks * (3 * ends + 2 * pages) + LOOKS * (blocks + ends);
    let behind = if parts > 0 {
        let listed = LIST_MAX as u64 + 1;
        3 * ends
            + 5 * u64::from(parts + parts / block_pages)
            + listed * (4 * ends + 4 * pages + LOOKS)
    } else {
        0
    };
    let looked_at = looked_at + behind;
    // The suspects that waited, and one more, may be full. Each of the others has at most half the
    // pages of the previous one, from which they are moved.
    let moved = (WAITING_MAX as u64 + 1) * pages + suspects;
    // A checkpoint, and the anchor that leads to it.
    let stored = if parts > 0 { u64::from(parts) + 1 } else { 0 };
    let programs = moved + 2 + stored;
    let verifies = if verify { programs } else { 0 };
    Cost {
        reads: 4 * looked_at + u64::from(READS_MAX) * moved + verifies + 4 * blocks,
        programs,
        erases: programs.div_ceil(pages) + suspects + blocks,
    }
}
