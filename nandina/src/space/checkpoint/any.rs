//! What any system asks of checkpoints: where there can be none, nothing is done, and no code is
//! for it.

use super::{Found, Tree};
use crate::error::Fault;
use crate::flash::Flash;
use crate::space::{Kind, Space};

impl<F: Flash, K: Kind> Space<'_, F, K> {
    /// Nothing is known of checkpoints on the chip any more: one is due.
    pub(crate) fn forget_checkpoints(&mut self) {
        if let Some(space) = K::paths_mut(self) {
            space.forget_area();
        }
    }

    /// Both anchors were erased, and nothing leads to the checkpoints on the chip: one is due.
    pub(crate) fn leave_checkpoints(&mut self) {
        if let Some(space) = K::paths_mut(self) {
            space.leave_area();
        }
    }

    /// Whether a checkpoint should be written before an operation of at most `pages`.
    pub(crate) fn checkpoint_due(&self, pages: u32) -> bool {
        K::paths(self).is_some_and(|space| space.is_due(pages))
    }

    /// The most chip operations that a checkpoint takes where no block fails.
    pub(crate) fn checkpoint_cost(&self) -> u32 {
        K::paths(self).map_or(0, |space| space.area_cost())
    }

    /// Erases both anchors, so that a mount finds no checkpoint.
    pub(crate) fn clear_anchors(&mut self) -> Result<(), Fault<F::Error>> {
        K::paths_mut(self).map_or(Ok(()), |space| space.erase_anchors())
    }

    /// Writes down where the tree and all valid pages are, unless there is no block for it. Answers
    /// whether it did. Nothing may be staged, and no operation under way.
    pub(crate) fn write_checkpoint(&mut self, tree: &Tree) -> Result<bool, Fault<F::Error>> {
        K::paths_mut(self).map_or(Ok(false), |space| space.write_area(tree))
    }

    /// Reads the newest checkpoint, and from it which pages are valid, which blocks are bad, and
    /// how often each was erased.
    ///
    /// Cost: for each anchor and for the checkpoints' block the logarithm of its pages to the base
    /// 2, and a few; and the pages of the checkpoint.
    pub(crate) fn find_checkpoint(&mut self) -> Result<Option<Found>, Fault<F::Error>> {
        K::paths_mut(self).map_or(Ok(None), |space| space.find_newest())
    }

    /// Goes on from a checkpoint: `unopened` of its list are left, and perhaps an anchor was
    /// written since. `unopened` is asked by the place in the list.
    pub(crate) fn go_on(&mut self, found: &Found, unopened: impl Fn(usize) -> bool) {
        if let Some(space) = K::paths_mut(self) {
            space.go_on_from(found, unopened);
        }
    }
}
