//! The most that a write costs, before there is an FTL.
//!
//! The bound holds on a chip whose blocks do not fail and whose pages do not fade, without
//! checkpoints, and where garbage collection does not sort what it moves. It leaves out what
//! settles a cut: the first change of a session does that before anything else. Nothing here calls
//! a chip.

use nandina::Cost;
use nandina::blocks::GcPolicy;
use nandina::flash::{Capabilities, Geometry};
use nandina::gc::{self, SPARE_MOVES};

use super::Choices;
use super::bytes::Trims;
use super::size::{
    OWN_PAGES, OpenBlocks, limits_if, logical_page_bytes, logical_pages_apart_beside,
    logical_pages_beside,
};
use crate::write_cost::WriteCost;

/// What garbage collection does to empty a block.
struct Victims {
    block_pages: u64,
    /// The most pages that count in one.
    valid: u64,
}

impl Victims {
    /// The cost of collections that gain `pages` pages: each gains the pages that it need not move.
    fn gaining(&self, pages: u64) -> Cost {
        let count = pages.div_ceil(self.block_pages - self.valid);
        self.moves(count * self.valid)
    }

    /// The cost of moves.
    ///
    /// A block is opened for each that they fill, and for what is left.
    fn moves(&self, count: u64) -> Cost {
        Cost { reads: count, programs: count, erases: count.div_ceil(self.block_pages) }
    }
}

/// The most that the write of a page costs in an FTL that maps pages, for so many logical pages.
///
/// The victim has the fewest pages that count. All blocks are closed but those that are kept free
/// or open, and so it has no more than the mean of them. A policy that chooses other victims takes
/// none that gains less than an eighth of a block. A conversion moves a block of pages at most; the
/// next buffer block is opened when two more blocks are free.
///
/// No logical pages, or more than the chip has room for, have no bound: `Cost`s of 0.
pub fn write_cost(
    geometry: &Geometry,
    capabilities: &Capabilities,
    choices: &Choices,
    logical_pages: u32,
) -> WriteCost {
    let Choices { victims, buffer } = choices;
    let block_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
    let apart = logical_pages <= logical_pages_apart_beside(geometry, capabilities, buffer);
    let open = OpenBlocks { apart, buffer: buffer.blocks };
    let closed = limits_if(geometry, capabilities, open).closed_blocks;
    let is_possible = logical_pages <= logical_pages_beside(geometry, capabilities, buffer);
    if closed == 0 || !is_possible {
        return WriteCost::new(Cost::default(), Cost::default(), Cost::default(), false);
    }
    let fewest = (logical_pages + OWN_PAGES) / closed;
    let valid = match victims {
        GcPolicy::Fewest => fewest,
        _ => fewest.max(block_pages - gc::gain(block_pages)),
    };
    let block_pages = u64::from(block_pages);
    let victims = Victims { block_pages, valid: u64::from(valid).min(block_pages - 1) };
    // The page; a list of trims that wait, for which a page more is kept free meanwhile. Soon after
    // idle steps nothing is collected for a buffer block that the page opens.
    let page = victims.gaining(3).and(1, Cost { reads: 1, programs: 2, erases: 2 });
    let spare = u64::from(SPARE_MOVES);
    let (mut conversion, mut rounds) = (Cost::default(), 1);
    if buffer.blocks > 0 {
        // Room for the pages that are moved has to be gained. They leave their block free, and the
        // next buffer block needs two; or they stay where they are, and both have to be gained.
        // Each stale page may be read, and the buffer block is erased.
        conversion = victims
            .moves(block_pages)
            .and(1, victims.gaining(2 * block_pages + 4))
            .and(1, Cost { reads: block_pages + 1, programs: 1, erases: 3 });
        // Room is made before each page that a conversion moves, and three times beside it.
        rounds += block_pages + 3;
    }
    let maintenance = victims.moves(rounds * spare);
    WriteCost::new(page, conversion, maintenance, buffer.blocks == 0 || buffer.ahead > 0)
}

/// The most page writes that `trims` of so many `pages` each take in one call of a host.
///
/// The host writes holes from their start on, as the indexes of this project do: a write in the
/// midst of one would divide it, and the list could lack room for many at the next trim.
///
/// Each writes the list of trims. If that is full, the pages of its shortest extent are written as
/// holes instead: of these, the first trim can find more than the call trims. After it an extent of
/// the same call is in the list, or there is room.
pub fn trim_writes(geometry: &Geometry, logical_pages: u32, trims: u64, pages: u32) -> u64 {
    writes_of_trims(Trims::room(logical_page_bytes(geometry)), logical_pages, trims, pages)
}

/// The same with a list that has room for so many extents.
pub(crate) fn writes_of_trims(room: usize, logical_pages: u32, trims: u64, pages: u32) -> u64 {
    let shortest = u64::from(logical_pages).div_ceil(room as u64 + 1);
    if trims == 0 { 0 } else { trims * (1 + u64::from(pages)) + shortest }
}
