//! Extents, runs and pieces: what callers and mappings exchange (§2.1).
//!
//! Nothing here allocates, and no arithmetic overflows: an extent that does not fit in its space
//! is refused before its end is used.

use super::refusal::Refusal;

/// The two ranges of numbers that a mapping leads between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Logical units: extents end at this number at most.
    pub logical: u32,
    /// Physical units: runs end at this number at most.
    pub physical: u32,
}

/// A row of logical units: the part of the space that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first unit.
    pub start: u32,
    /// How many units it has. An extent of 0 units is refused everywhere.
    pub length: u32,
}

/// A row of logical units that are stored in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first logical unit.
    pub logical: u32,
    /// How many units it has.
    pub length: u32,
    /// Where the first unit is stored; unit `i` is at `physical + i`.
    pub physical: u32,
}

/// A part of an extent that was looked up: stored in a row, or a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first logical unit.
    pub logical: u32,
    /// How many units it has.
    pub length: u32,
    /// Where the first unit is stored; `None` if no unit of the piece is mapped.
    pub physical: Option<u32>,
}

impl Space {
    /// Refuses an extent that is empty or ends behind the logical space.
    pub fn admit(&self, extent: Extent) -> Result<(), Refusal> {
        let fits = extent.start.checked_add(extent.length).is_some_and(|end| end <= self.logical);
        if fits && extent.length > 0 { Ok(()) } else { Err(Refusal::Outside) }
    }

    /// Refuses as [`Self::admit`] does, or a target behind the physical space.
    pub fn admit_run(&self, extent: Extent, physical: u32) -> Result<(), Refusal> {
        self.admit(extent)?;
        let end = physical.checked_add(extent.length);
        if end.is_some_and(|end| end <= self.physical) { Ok(()) } else { Err(Refusal::Physical) }
    }

    /// The whole logical space.
    pub fn whole(&self) -> Extent {
        Extent::new(0, self.logical)
    }
}

impl Extent {
    /// The extent of `length` units from `start`.
    pub const fn new(start: u32, length: u32) -> Self {
        Extent { start, length }
    }

    /// The extent between two units, the second one excluded.
    pub const fn between(start: u32, end: u32) -> Self {
        Extent { start, length: end.saturating_sub(start) }
    }

    /// The first unit behind it.
    pub const fn end(&self) -> u32 {
        self.start.saturating_add(self.length)
    }
}

impl Run {
    /// The first logical unit behind it.
    pub const fn end(&self) -> u32 {
        self.logical.saturating_add(self.length)
    }

    /// The part of it that lies in `extent`, if there is one.
    pub fn within(&self, extent: Extent) -> Option<Run> {
        Piece::from(*self).within(extent)?.run()
    }

    /// The part of it before the logical unit `end`, if there is one.
    pub fn before(&self, end: u32) -> Option<Run> {
        self.within(Extent::between(0, end))
    }

    /// The part of it from the logical unit `start` on, if there is one.
    pub fn from(&self, start: u32) -> Option<Run> {
        self.within(Extent::between(start, u32::MAX))
    }

    /// Whether `next` begins where it ends, in both spaces.
    pub fn continues_to(&self, next: &Run) -> bool {
        self.end() == next.logical && self.physical.checked_add(self.length) == Some(next.physical)
    }
}

impl From<Run> for Piece {
    fn from(run: Run) -> Self {
        Piece { logical: run.logical, length: run.length, physical: Some(run.physical) }
    }
}

impl Piece {
    /// A piece of no unit.
    pub(super) const NONE: Piece = Piece { logical: 0, length: 0, physical: None };

    /// The hole that covers `extent`.
    pub fn hole(extent: Extent) -> Self {
        Piece { logical: extent.start, length: extent.length, physical: None }
    }

    /// The first logical unit behind it.
    pub const fn end(&self) -> u32 {
        self.logical.saturating_add(self.length)
    }

    /// The part of it that lies in `extent`, if there is one.
    pub fn within(&self, extent: Extent) -> Option<Piece> {
        let start = self.logical.max(extent.start);
        let end = self.end().min(extent.end());
        (start < end).then(|| Piece {
            logical: start,
            length: end - start,
            physical: self.physical.map(|physical| physical + (start - self.logical)),
        })
    }

    /// Whether `next` begins where it ends, and both are holes or one run.
    pub fn continues_to(&self, next: &Piece) -> bool {
        match (self.run(), next.run()) {
            (Some(run), Some(next)) => run.continues_to(&next),
            (None, None) => self.end() == next.logical,
            _ => false,
        }
    }

    /// The piece as a run, unless it is a hole.
    pub fn run(&self) -> Option<Run> {
        let Piece { logical, length, physical } = *self;
        physical.map(|physical| Run { logical, length, physical })
    }
}

/// Joins pieces that continue one another before they are passed on.
pub(crate) struct Joined<'f> {
    pass: &'f mut dyn FnMut(Piece),
    last: Option<Piece>,
}

impl Joined<'_> {
    /// Passes the pieces that `fill` pushes to `pass`.
    pub fn pieces(pass: &mut dyn FnMut(Piece), fill: impl FnOnce(&mut Joined<'_>)) {
        let mut pieces = Joined { pass, last: None };
        fill(&mut pieces);
        if let Some(last) = pieces.last {
            (pieces.pass)(last);
        }
    }

    /// The same, for those that are no holes.
    pub fn runs(pass: &mut dyn FnMut(Run), fill: impl FnOnce(&mut Joined<'_>)) {
        Self::pieces(&mut |piece| piece.run().into_iter().for_each(&mut *pass), fill);
    }

    /// Takes the next piece, which begins behind the last one.
    pub fn push(&mut self, next: Piece) {
        if let Some(last) = &mut self.last {
            if last.continues_to(&next) {
                last.length += next.length;
                return;
            }
            (self.pass)(*last);
        }
        self.last = Some(next);
    }
}
