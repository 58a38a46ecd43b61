//! Checkpoints, as a store has them that writes some.

use super::{Checkpointing, Kind, Space};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash};
use crate::log::checkpoint::{Base, Checkpoint, Checkpoints, Summary};

impl Checkpointing for Checkpoints {
    fn new(every: u32, parts: u32, block_pages: u32) -> Self {
        Self::new(every, parts, block_pages)
    }

    fn area_blocks(&self) -> u32 {
        self.area_blocks()
    }

    fn shrink(&mut self) -> bool {
        self.shrink()
    }

    fn taken<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        space.checkpoints.taken(&space.log, &space.mappings)
    }

    fn forget<F: Flash, K: Kind<Checkpoints = Self>>(space: &mut Space<'_, F, K>) {
        space.checkpoints.forget(&mut space.log);
    }

    fn leave<F: Flash, K: Kind<Checkpoints = Self>>(space: &mut Space<'_, F, K>) {
        space.checkpoints.leave(&mut space.log);
    }

    fn next_block<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
        filled: Option<BlockNumber>,
    ) -> Result<BlockNumber, Fault<F::Error>> {
        space.checkpoints.next_block(&mut space.log, filled)
    }

    fn is_due<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>, pages: u32) -> bool {
        space.checkpoints.is_due(&space.log, pages)
    }

    fn room<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        space.checkpoints.room(&space.log)
    }

    fn cost<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        space.checkpoints.cost(&space.log, &space.mappings)
    }

    fn held_blocks<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        space.checkpoints.held_blocks(&space.log)
    }

    fn unreserve<F: Flash, K: Kind<Checkpoints = Self>>(space: &mut Space<'_, F, K>) {
        space.checkpoints.unreserve(&mut space.log);
    }

    #[cfg(debug_assertions)]
    fn check_reserved<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) {
        space.checkpoints.check_reserved(&space.log);
    }

    fn erase_anchors<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<(), Fault<F::Error>> {
        space.checkpoints.erase_anchors(&mut space.log)
    }

    fn find_newest<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<Option<Checkpoint>, Fault<F::Error>> {
        space.checkpoints.find_newest(&mut space.log, &mut space.mappings)
    }

    fn base<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> Option<Base> {
        space.checkpoints.base()
    }

    fn scanned<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &Space<'_, F, K>,
        at: u32,
    ) -> Option<BlockNumber> {
        space.checkpoints.scanned_block(&space.log, at)
    }

    fn void<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<(), Fault<F::Error>> {
        space.checkpoints.void(&mut space.log)
    }

    fn write<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
        summary: &Summary,
    ) -> Result<bool, Fault<F::Error>> {
        space.checkpoints.write(&mut space.log, summary, &space.mappings)
    }
}
