//! What a call of a system costs on the chip below its FTL, at most.
//!
//! The system says how many pages it reads and writes, and how often it erases a block or gives up
//! a page: these are trimmed. Nothing here makes or uses a chip.

use nandina::Cost;
use nandina::engine::Description;
use nandina::flash::Profile;
use nandina_ftl::hybrid::{self, Buffer};
use nandina_ftl::{WriteCost, ftl};

use super::{Kind, Layer, Size};

/// The costs of the requests of a system above an FTL.
#[derive(Clone, Copy, Debug)]
pub struct CallCosts<'p> {
    layer: Layer,
    profile: &'p Profile,
    logical_pages: u32,
    /// Pages that are trimmed at once: those of a block, or one.
    trimmed: u32,
    /// Whether the system replaces pages, and may count no erase for those that it gives up.
    replaces: bool,
    /// The most that the write of a page costs.
    pub write: WriteCost,
}

impl Layer {
    /// What requests of a system cost on this chip. `size` is what [`size`](Self::size) says.
    ///
    /// One that replaces pages gives up one at a time. The rivals count it as an erase. The trees
    /// of the library do not: of three pages that a change may write at most, for a level or for a
    /// merge of two nodes, it may give up one.
    pub fn call_costs<'p>(
        &self,
        profile: &'p Profile,
        size: &Size,
        system: &Description,
    ) -> CallCosts<'p> {
        let block_pages = size.profile.geometry.pages_per_block;
        let replaces = system.replaces();
        let trimmed = if replaces { 1 } else { block_pages };
        let write = self.write_cost(profile, size);
        CallCosts {
            layer: *self,
            profile,
            logical_pages: size.logical_pages,
            trimmed,
            replaces,
            write,
        }
    }
}

impl CallCosts<'_> {
    /// Reads of the chip.
    const fn reads(&self, reads: u64) -> Cost {
        // With log records a page is read from two pages.
        let pages = if matches!(self.layer.kind, Kind::Logged(_)) { 2 } else { 1 };
        Cost { reads: pages * reads, programs: 0, erases: 0 }
    }

    /// The pages that a call writes, with those that its trims write.
    fn writes(&self, above: Cost) -> u64 {
        let Self { trimmed, logical_pages, .. } = *self;
        let geometry = &self.profile.geometry;
        let trims = match self.replaces && above.erases == 0 {
            true => above.programs.div_ceil(3),
            false => above.erases,
        };
        above.programs
            + match self.layer.kind {
                Kind::Mapped(_) => ftl::trim_writes(geometry, logical_pages, trims, trimmed),
                Kind::Logged(_) => trims * u64::from(trimmed),
                _ => hybrid::trim_writes(geometry, logical_pages, trims, trimmed),
            }
    }

    /// What a call costs that costs so much above the FTL.
    pub fn of(&self, above: Cost) -> Cost {
        self.with_writes(self.reads(above.reads), self.writes(above))
    }

    /// The same if idle steps have converted all that is due, where they can.
    pub fn after_idle_steps(&self, above: Cost) -> Option<Cost> {
        self.layer.buffer_blocks()?;
        let writes = self.writes(above);
        let rested = writes.min(Buffer::RESTED_WRITES.into());
        let first = self.reads(above.reads).and(1, self.write.after_idle_steps(rested)?);
        Some(self.with_writes(first, writes - rested))
    }

    /// A cost and that of so many writes. Of millions of pages the product may be no number.
    fn with_writes(&self, cost: Cost, writes: u64) -> Cost {
        let each = self.write.total();
        Cost {
            reads: cost.reads.saturating_add(writes.saturating_mul(each.reads)),
            programs: cost.programs.saturating_add(writes.saturating_mul(each.programs)),
            erases: cost.erases.saturating_add(writes.saturating_mul(each.erases)),
        }
    }
}
