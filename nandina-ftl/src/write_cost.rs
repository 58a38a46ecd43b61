//! The most that the write of a page costs, whichever FTL writes it.
//!
//! `hybrid/worst.rs`, `logged/worst.rs` and `ftl/worst.rs` say how much that is. Nothing here calls
//! a chip.

use nandina::Cost;

use crate::transit::Buffer;

/// The most that the write of one page costs, in parts.
///
/// [`total`](Self::total) is for the longest call. If idle steps convert ahead of need until none
/// of them has more to do, the next [`Buffer::RESTED_WRITES`] page writes wait for no conversion,
/// and [`ahead`](Self::ahead) is for the longest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteCost {
    /// The page itself, and the merges or the collections that make room for it.
    pub page: Cost,
    /// The buffer block that is converted before, and what its pages set off.
    ///
    /// Nothing without buffer blocks.
    pub conversion: Cost,
    /// The block that is emptied after it, because it is worn little or has a weak page.
    pub maintenance: Cost,
    /// Whether idle steps convert ahead of need.
    converts_ahead: bool,
}

impl WriteCost {
    /// These parts. Idle steps may convert ahead of need.
    pub(crate) const fn new(
        page: Cost,
        conversion: Cost,
        maintenance: Cost,
        converts_ahead: bool,
    ) -> Self {
        Self { page, conversion, maintenance, converts_ahead }
    }

    /// The most of a call.
    ///
    /// A page is written below with what makes room for it, or appended to a buffer block, which
    /// may wait for a conversion; not both.
    pub fn total(&self) -> Cost {
        let appended = Cost { reads: 0, programs: 1, erases: 1 }.and(1, self.conversion);
        most(self.page, appended).and(1, self.maintenance)
    }

    /// The parts without the conversion.
    ///
    /// `None` without [`ahead`](Buffer::ahead): then no buffer block is converted before it is
    /// needed.
    pub fn ahead(&self) -> Option<Cost> {
        self.converts_ahead.then(|| self.page.and(1, self.maintenance))
    }

    /// The most of so many page writes in a row after idle steps, where these convert.
    ///
    /// The first [`Buffer::RESTED_WRITES`] of them wait for no conversion.
    pub fn after_idle_steps(&self, writes: u64) -> Option<Cost> {
        let rested = writes.min(Buffer::RESTED_WRITES.into());
        let others = writes - rested;
        Some(Cost::default().and(rested, self.ahead()?).and(others, self.total()))
    }
}

/// The higher figure of each kind.
pub(crate) fn most(one: Cost, other: Cost) -> Cost {
    Cost {
        reads: one.reads.max(other.reads),
        programs: one.programs.max(other.programs),
        erases: one.erases.max(other.erases),
    }
}
