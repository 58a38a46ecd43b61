//! Volatile trims that wait for the list of trims, in RAM.

use crate::mapping::Extent;

/// The most extents that wait.
const EXTENTS_MAX: usize = 16;

/// What volatile trims have made holes since the list of trims was programmed last.
pub(super) struct Waiting {
    /// No two of them touch.
    list: [Extent; EXTENTS_MAX],
    count: usize,
    /// Changes and trims after which the list of trims has still room for all holes.
    ///
    /// The list names the runs of a set of pages. A trim adds a row of pages to that set, and a
    /// write takes one out, so neither makes more than one run more.
    spare: usize,
    /// Bad blocks, when the first of them was trimmed.
    bad_blocks: u32,
}

impl Waiting {
    /// None waits.
    pub const NONE: Self =
        Self { list: [Extent::new(0, 0); EXTENTS_MAX], count: 0, spare: 0, bad_blocks: 0 };

    /// The extents. Pages of them may have been written since.
    pub fn all(&self) -> &[Extent] {
        &self.list[..self.count]
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub const fn clear(&mut self) {
        self.count = 0;
    }

    /// Whether a page of `extent` is among them.
    pub fn overlap(&self, extent: Extent) -> bool {
        self.all().iter().any(|other| other.start < extent.end() && extent.start < other.end())
    }

    /// Whether one extent more may wait beside those that do.
    pub fn admit(&self, extent: Extent) -> bool {
        let has_place = self.count < EXTENTS_MAX;
        self.spare > 0 && (has_place || self.all().iter().any(|other| touch(*other, extent)))
    }

    /// Begins with no extent: the list of trims has room for `spare` runs more.
    pub const fn begin(&mut self, spare: usize, bad_blocks: u32) {
        (self.count, self.spare, self.bad_blocks) = (0, spare, bad_blocks);
    }

    /// Adds an extent that is admitted.
    pub fn add(&mut self, mut extent: Extent) {
        let mut at = 0;
        while at < self.count {
            if touch(self.list[at], extent) {
                extent = hull(self.list[at], extent);
                self.count -= 1;
                self.list[at] = self.list[self.count];
            } else {
                at += 1;
            }
        }
        self.list[self.count] = extent;
        self.count += 1;
        // Pages of an extent that it touches may have been written: then it is a run of its own.
        self.spare -= 1;
    }

    /// Whether they cannot wait for another change any more.
    ///
    /// A block that failed is marked as bad once it holds nothing that counts, and no later mount
    /// reads it. The newest copies of what waits may lie there.
    pub const fn are_due(&self, bad_blocks: u32) -> bool {
        !self.is_empty() && (self.spare == 0 || self.bad_blocks != bad_blocks)
    }

    /// Notes that a row of pages is about to be written.
    pub const fn note_change(&mut self) {
        self.spare = self.spare.saturating_sub(1);
    }
}

/// Whether two extents are one if put together.
pub(super) const fn touch(one: Extent, other: Extent) -> bool {
    one.start <= other.end() && other.start <= one.end()
}

/// Both extents, and what is between them.
pub(super) fn hull(one: Extent, other: Extent) -> Extent {
    Extent::between(one.start.min(other.start), one.end().max(other.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_that_touch_wait_as_one_and_others_until_there_are_too_many() {
        let mut waiting = Waiting::NONE;
        waiting.begin(100, 0);
        for at in 0..EXTENTS_MAX as u32 {
            assert!(waiting.admit(Extent::new(10 * at, 4)));
            waiting.add(Extent::new(10 * at, 4));
        }
        assert!(!waiting.admit(Extent::new(5, 1)) && waiting.admit(Extent::new(4, 1)));
        assert!(waiting.overlap(Extent::new(2, 3)) && !waiting.overlap(Extent::new(4, 6)));
        // It fills the gap between two, and reaches into a third.
        waiting.add(Extent::new(4, 17));
        assert_eq!(waiting.all().len(), EXTENTS_MAX - 2);
        assert!(waiting.all().contains(&Extent::new(0, 24)));
    }

    #[test]
    fn they_are_due_when_the_list_of_trims_has_no_room_left_or_a_block_has_failed() {
        let mut waiting = Waiting::NONE;
        waiting.begin(2, 7);
        assert!(!waiting.are_due(8), "none waits");
        waiting.add(Extent::new(3, 1));
        assert!(!waiting.are_due(7) && waiting.are_due(8));
        waiting.note_change();
        assert!(waiting.are_due(7) && !waiting.admit(Extent::new(9, 1)));
    }
}
