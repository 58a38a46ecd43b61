//! The interface to checkpoints for all systems.
//!
//! For systems that cannot have checkpoints it does nothing and takes no code.

use super::{Found, Tree};
use crate::error::Fault;
use crate::flash::Flash;
use crate::space::{Kind, Space};

impl<F: Flash, K: Kind> Space<'_, F, K> {
    /// Forgets the checkpoints on the chip: one is due.
    pub(crate) fn forget_checkpoints(&mut self) {
        if let Some(space) = K::paths_mut(self) {
            space.forget_area();
        }
    }

    /// Notes that both anchors were erased, so nothing leads to a checkpoint.
    ///
    /// One is due.
    pub(crate) fn leave_checkpoints(&mut self) {
        if let Some(space) = K::paths_mut(self) {
            space.leave_area();
        }
    }

    /// Whether a checkpoint should be written before an operation of at most `pages`.
    pub(crate) fn checkpoint_due(&self, pages: u32) -> bool {
        K::paths(self).is_some_and(|space| space.is_due(pages))
    }

    /// The most chip operations that a checkpoint takes if no block fails.
    pub(crate) fn checkpoint_cost(&self) -> u32 {
        K::paths(self).map_or(0, |space| space.area_cost())
    }

    /// Erases both anchors, so that a mount finds no checkpoint.
    pub(crate) fn clear_anchors(&mut self) -> Result<(), Fault<F::Error>> {
        K::paths_mut(self).map_or(Ok(()), |space| space.erase_anchors())
    }

    /// Writes a checkpoint. Returns `false` if there is no block for it.
    ///
    /// It records where the tree and all valid pages are. Nothing may be staged, and no operation
    /// may be running.
    pub(crate) fn write_checkpoint(&mut self, tree: &Tree) -> Result<bool, Fault<F::Error>> {
        K::paths_mut(self).map_or(Ok(false), |space| space.write_area(tree))
    }

    /// Reads the newest checkpoint into the block table.
    ///
    /// From it the table knows which pages are valid, which blocks are bad, and how often each was
    /// erased.
    ///
    /// Cost: for each anchor and for the checkpoints' block the logarithm of its pages to the base
    /// 2, and a few; and the pages of the checkpoint.
    pub(crate) fn find_checkpoint(&mut self) -> Result<Option<Found>, Fault<F::Error>> {
        K::paths_mut(self).map_or(Ok(None), |space| space.find_newest())
    }

    /// Continues from a checkpoint.
    ///
    /// `unopened` says, for a position in its list, whether that block is still unopened. An anchor
    /// may have been written since.
    pub(crate) fn go_on(&mut self, found: &Found, unopened: impl Fn(usize) -> bool) {
        if let Some(space) = K::paths_mut(self) {
            space.go_on_from(found, unopened);
        }
    }
}
