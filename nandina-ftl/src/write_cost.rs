//! The most that the write of a page costs, whichever FTL writes it.
//!
//! `hybrid/worst.rs`, `logged/worst.rs` and `ftl/worst.rs` say how much that is. Nothing here calls
//! a chip.

use nandina::Cost;

/// The most that the write of one page costs, in parts.
///
/// [`total`](Self::total) is for the longest call. If idle steps convert ahead of need so that none
/// of them has more to do when the host writes, no write waits for a conversion, and
/// [`ahead`](Self::ahead) is for the longest one.
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
    /// Whether idle steps can convert all ahead of need.
    converts_ahead: bool,
}

impl WriteCost {
    /// These parts. Idle steps may be able to convert all ahead of need.
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
    /// `None` where a write may have to convert whatever idle steps do: buffer blocks that
    /// neighbours share are converted as victims, and without
    /// [`ahead`](crate::transit::Buffer::ahead) none is converted before it is needed.
    pub fn ahead(&self) -> Option<Cost> {
        self.converts_ahead.then(|| self.page.and(1, self.maintenance))
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
