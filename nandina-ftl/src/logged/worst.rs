//! The most that a write costs, before there is an FTL.
//!
//! The bound holds on a chip whose blocks do not fail and whose pages do not fade. It leaves out
//! what settles a cut: the first change of a session does that before anything else. Nothing here
//! calls a chip.

use nandina::Cost;
use nandina::flash::{Capabilities, Geometry};

use super::size::block_pages;
use crate::write_cost::WriteCost;

/// The most that the write of a page costs in such an FTL, whichever scheme it has.
///
/// A write reads the base page and programs a sector or a page, or it merges the block. A merge
/// reads each page of the block and its record, and programs it once, in two blocks if it divides
/// them; it erases these and the block that they replace. Beside that one block is merged for wear,
/// or because a page of it is weak.
pub fn write_cost(geometry: &Geometry, capabilities: &Capabilities) -> WriteCost {
    let pages = u64::from(block_pages(geometry, capabilities));
    let merge = Cost { reads: 2 * pages, programs: pages, erases: 3 };
    let page = Cost { reads: 1, programs: 0, erases: 0 }.and(1, merge);
    WriteCost::new(page, Cost::default(), merge, true)
}
