//! What the tree asks of checkpoints, also where a store has none.
//!
//! A store without checkpoints takes no code and no RAM for them.

use super::{Base, Checkpoint, Checkpoints, Tree};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash};
use crate::space::{Kind, Space};

/// The checkpoints of a store. The defaults are those of a store that has none.
pub trait Checkpointing: Sized {
    /// Creates the state before a mount; a checkpoint is due after `every` blocks.
    fn new(every: u32) -> Self;

    /// Forgets the checkpoints on the chip: one is due.
    fn forget<F: Flash, K: Kind<Checkpoints = Self>>(space: &mut Space<'_, F, K>) {
        let _ = space;
    }

    /// Notes that both anchors were erased: no page leads to a checkpoint.
    fn leave<F: Flash, K: Kind<Checkpoints = Self>>(space: &mut Space<'_, F, K>) {
        let _ = space;
    }

    /// The block that must be opened next, if it is prescribed.
    fn listed_block<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        let _ = space;
        Ok(None)
    }

    /// Whether a checkpoint should be written before an operation of at most `pages`.
    fn is_due<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>, pages: u32) -> bool {
        let _ = (space, pages);
        false
    }

    /// Pages of the free blocks that are for checkpoints.
    fn room<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        let _ = space;
        0
    }

    /// The most chip operations that a checkpoint takes if no block fails.
    fn cost<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        let _ = space;
        0
    }

    /// Panics unless only blocks of checkpoints and bad ones are reserved.
    #[cfg(debug_assertions)]
    fn check_reserved<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) {
        let _ = space;
    }

    /// Erases both anchors, so that a mount finds no checkpoint.
    fn erase_anchors<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<(), Fault<F::Error>> {
        let _ = space;
        Ok(())
    }

    /// Reads the newest checkpoint into the block table.
    fn find_newest<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<Option<Checkpoint>, Fault<F::Error>> {
        let _ = space;
        Ok(None)
    }

    /// From what the index was mounted, if not from all blocks.
    fn base<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> Option<Base> {
        let _ = space;
        None
    }

    /// The block at position `at` of those that may hold new pages.
    fn scanned<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &Space<'_, F, K>,
        at: u32,
    ) -> Option<BlockNumber> {
        (at < space.log.blocks.count()).then_some(BlockNumber(at))
    }

    /// Makes the checkpoint on the chip unusable, and another one due.
    ///
    /// Cost: sometimes an erase, or two.
    fn void<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<(), Fault<F::Error>> {
        let _ = space;
        Ok(())
    }

    /// Writes a checkpoint. Returns `false` if there is no block for it.
    ///
    /// It records where the tree and all valid pages are. Nothing may be staged, and no operation
    /// may be running.
    fn write<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
        tree: &Tree,
    ) -> Result<bool, Fault<F::Error>> {
        let _ = (space, tree);
        Ok(false)
    }
}

impl Checkpointing for Checkpoints {
    fn new(every: u32) -> Self {
        Self::new(every)
    }

    fn forget<F: Flash, K: Kind<Checkpoints = Self>>(space: &mut Space<'_, F, K>) {
        space.forget_area();
    }

    fn leave<F: Flash, K: Kind<Checkpoints = Self>>(space: &mut Space<'_, F, K>) {
        space.leave_area();
    }

    fn listed_block<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        space.listed_block()
    }

    fn is_due<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>, pages: u32) -> bool {
        space.is_due(pages)
    }

    fn room<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        space.area_room()
    }

    fn cost<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        space.area_cost()
    }

    #[cfg(debug_assertions)]
    fn check_reserved<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) {
        space.check_reserved();
    }

    fn erase_anchors<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<(), Fault<F::Error>> {
        space.erase_anchors()
    }

    fn find_newest<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<Option<Checkpoint>, Fault<F::Error>> {
        space.find_newest()
    }

    fn base<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> Option<Base> {
        space.checkpoints.base
    }

    fn scanned<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &Space<'_, F, K>,
        at: u32,
    ) -> Option<BlockNumber> {
        space.scanned_block(at)
    }

    fn void<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<(), Fault<F::Error>> {
        space.void_for_good()
    }

    fn write<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
        tree: &Tree,
    ) -> Result<bool, Fault<F::Error>> {
        space.write_area(tree)
    }
}
