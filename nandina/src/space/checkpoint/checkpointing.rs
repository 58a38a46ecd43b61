//! Checkpoints, as a store has them that writes some.

use super::{Base, Checkpoint, Checkpoints, Tree};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash};
use crate::space::{Checkpointing, Kind, Space};

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
