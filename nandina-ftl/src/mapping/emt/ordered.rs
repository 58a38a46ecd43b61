//! What an Extent Mapping Tree requires of an ordered container (§2.3).
//!
//! The paper asks for *find*, *insert*, *delete*, and *successor* or *predecessor*. A container
//! knows nothing of overlaps; the tree sees to it that its runs never overlap.

use crate::mapping::{Broken, Bytes, Refusal, Run, Work};

/// Runs, ordered by their first logical unit.
pub trait Ordered {
    /// The run that begins at `start` or nearest before it.
    fn predecessor(&self, start: u32) -> Option<Run>;

    /// The run that begins nearest behind `start`.
    fn successor(&self, start: u32) -> Option<Run>;

    /// Adds a run, or replaces the one that begins at the same unit.
    ///
    /// There is room: the caller has asked [`Self::room`].
    fn insert(&mut self, run: Run);

    /// Drops the run that begins at `start`, if there is one.
    fn delete(&mut self, start: u32);

    /// Refuses with [`Refusal::Full`] if `more` further runs do not fit.
    fn room(&self, more: usize) -> Result<(), Refusal>;

    /// How many runs there are.
    fn entries(&self) -> usize;

    /// The memory that they take.
    fn bytes(&self) -> Bytes;

    /// The work so far.
    fn work(&self) -> Work;

    /// Checks the container's own invariants.
    fn check(&self) -> Result<(), Broken>;
}
