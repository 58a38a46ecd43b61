//! What an index will cost, before it exists.
//!
//! The bounds hold for any keys in any order: every slot of a log is read, every key compared.

use core::convert::Infallible;

use super::form::{Form, GROUP};
use super::newest::REST_MAX;
use super::options::{self, ENTRIES_BESIDE, Sizes};
use super::order::LOOKS_MAX;
use super::rewrite::PIECES_MAX;
use crate::engine::{Cost, Options, Plan};
use crate::error::OpenError;
use crate::flash::{Capabilities, Geometry};

/// Reads that halving a row of this many takes.
const fn halvings(count: usize) -> u64 {
    (usize::BITS - count.leading_zeros()) as u64 + 1
}

/// What the bounds follow from.
struct Bounds {
    /// Operations for a record, a slot or a tail, which may cross pages.
    parts: u64,
    slots: u64,
    records: u64,
    pages: u64,
    sort: u64,
    verifies: bool,
}

impl Bounds {
    fn of(form: &Form, options: &Options) -> Self {
        let parts = form.slot_bytes().div_ceil(form.page_bytes()) as u64 + 1;
        let slots = form.slots_max() as u64;
        let compares = slots * halvings(form.slots_max());
        Self {
            parts,
            slots,
            records: form.capacity() as u64,
            pages: form.pages() as u64,
            sort: (slots + compares + u64::from(LOOKS_MAX)) * parts,
            verifies: options.verify,
        }
    }

    fn programs(&self, programs: u64) -> Cost {
        Cost { reads: if self.verifies { programs } else { 0 }, programs, erases: 0 }
    }

    /// A lookup in a leaf that is settled.
    fn look(&self) -> u64 {
        (2 * self.slots + self.slots / GROUP as u64 + halvings(self.records as usize) + 2)
            * self.parts
    }

    /// An erase, with the reads that tell how often the sector was erased.
    const fn erase(&self) -> Cost {
        Cost { reads: 3 + if self.verifies { self.pages } else { 0 }, programs: 0, erases: 1 }
    }

    /// Up to two leaves that are written again, with the erases of at most two sectors.
    fn rewrite(&self) -> Cost {
        let pieces = PIECES_MAX as u64;
        // Each pass over two leaves sorts both logs again; there are two passes and one a piece.
        let sorts = 16 * self.sort;
        let steps = 4 * 2 * (self.records + self.slots) * 2 * self.parts;
        let looks = pieces * self.slots * 2 * self.parts;
        let items = 2 * (self.records + self.slots + u64::from(LOOKS_MAX)) * self.parts;
        let reads = sorts + steps + looks + items + 4 * (self.pages + 8);
        let programs = 2 * self.pages + 4 * pieces + 2;
        Cost { reads, ..Cost::default() }.and(1, self.programs(programs)).and(2, self.erase())
    }

    /// A leaf that is touched for the first time after a cut.
    fn settle(&self) -> Cost {
        let reads = (3 * u64::from(LOOKS_MAX) + 3 * GROUP as u64 + 4) * self.parts
            + self.sort
            + 4 * (self.records + self.slots) * self.parts
            + 2 * self.slots * 4 * self.parts;
        // Kills of what earlier settlings killed are made again: they may be torn.
        let programs = self.programs((2 * self.slots + 6) * self.parts);
        self.rewrite().and(1, Cost { reads, ..programs })
    }
}

/// Chip operations of an idle step: an erase, and the reads before and after it.
pub const fn step(form: &Form, verify: bool) -> u32 {
    4 + if verify { form.pages() as u32 } else { 0 }
}

/// Plans an index for at most `records` records.
pub fn planned(
    geometry: &Geometry,
    capabilities: &Capabilities,
    options: &Options,
    records: u32,
) -> Result<Plan, OpenError<Infallible>> {
    options::check(geometry, capabilities, options)?;
    let form = Form::new(geometry, options.key_bytes, options.value_bytes);
    let leaves = Sizes::of(geometry, capabilities, options).leaves;
    let bounds = Bounds::of(&form, options);
    // Two neighbours share their records or have more than three quarters of what fits in one.
    let in_leaves = leaves.div_ceil(2) * (form.capacity() * 3 / 4);
    let append = bounds
        .programs(2 * bounds.parts)
        .and(GROUP as u64, Cost { reads: bounds.parts, ..Cost::default() });
    let look = Cost { reads: bounds.look(), ..Cost::default() };
    // Two leaves may be joined before; at last a sector is erased ahead of need.
    let change = look
        .and(1, look)
        .and(2, bounds.rewrite())
        .and(1, append)
        .and(1, bounds.erase())
        .and(1, bounds.programs(1))
        .and(1, Cost { reads: 1, ..Cost::default() });
    let get = look.and(1, bounds.settle());
    let sectors = u64::from(geometry.blocks);
    let counted = leaves as u64
        * (halvings(form.slots_max()) + bounds.slots + bounds.slots / GROUP as u64 + 8)
        * bounds.parts;
    let trimmed = 4 * (bounds.sort + 4 * (bounds.records + bounds.slots) * bounds.parts);
    let looked_at = Cost {
        reads: 2 * 4 * sectors + 6 * leaves as u64 + counted + trimmed + 4,
        ..Cost::default()
    };
    let joins = ENTRIES_BESIDE as u64;
    let open = looked_at
        .and(1, looked_at)
        .and(1, bounds.rewrite())
        .and(2, bounds.erase())
        .and(1, bounds.programs(2))
        // Leaves that own no keys are erased.
        .and(REST_MAX as u64, bounds.erase())
        .and(1, Cost { reads: 12 * sectors, ..Cost::default() })
        // As many leaves may be joined as the directory has entries beside.
        .and(joins, bounds.rewrite())
        .and(2 * joins, bounds.settle());
    let pages = geometry.pages_per_block;
    let valid_pages = leaves as u32 * pages;
    Ok(Plan {
        ram_bytes: options::ram_needed(geometry, options),
        height: if leaves > 1 { 2 } else { 1 },
        valid_pages,
        limit_pages: valid_pages,
        fits: records as usize <= in_leaves,
        open,
        get,
        change,
        // The leaf and two neighbours are settled, and two more to be joined.
        change_after_cuts: change.and(5, bounds.settle()),
        close: bounds.programs(1).and(1, Cost { reads: 1, ..Cost::default() }),
        gc_step_least: step(&form, options.verify),
    })
}
