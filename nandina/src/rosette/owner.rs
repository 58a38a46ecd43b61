//! The index as the owner of the pages that garbage collection moves.
//!
//! A moved leaf is trimmed and written again, with fences around what it still owns. Nothing else
//! on the chip refers to it.

use super::checkpoint::Stored;
use super::leaves::Leaves;
use super::limits;
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::gc::room_to_fail;
use crate::gc::{Collector, PageOwner};
use crate::log::Log;

impl<F: Flash> Leaves<'_, F> {
    /// Pages kept free for blocks that may still go bad.
    fn room_to_fail(&self) -> u32 {
        let log = &self.log;
        room_to_fail(log.blocks.bad_blocks(), log.reserve_blocks(), log.block_pages())
    }

    /// Pages kept free for settling after a cut, and for blocks that may still go bad.
    fn kept_beside(&self) -> u32 {
        limits::settling_pages(self.log.block_pages()) + self.room_to_fail()
    }

    /// Pages that settling leaves free. It may use the room for checkpoints.
    // Large, and called in several places.
    #[inline(never)]
    pub(super) fn kept_to_settle(&self) -> u32 {
        self.budget().room_pages() + self.kept_beside()
    }

    /// Loads `page` and returns the rank of a range that it owns, if it owns any.
    ///
    /// Cost: one read at most.
    fn rank_of(&mut self, page: PageNumber) -> Result<Option<usize>, Fault<F::Error>> {
        let frame = self.load(page, 0)?;
        let fences = self.form().fences(self.log.frames.bytes(frame));
        Ok(fences.and_then(|fences| self.directory.rank_of(page, fences)))
    }

    /// Writes `page` elsewhere, if it is still needed.
    pub(super) fn move_page(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        self.begin_session()?;
        self.keep_checkpoint()?;
        if self.batch.open() == Some(page) {
            return Ok(());
        }
        // After a batch, a page without its mark ends the need for the one that stores it.
        if self.is_beside(page) {
            return self.write_session();
        }
        let Some(rank) = self.rank_of(page)? else {
            self.log.note_unreachable(page);
            return Ok(());
        };
        let frame = self.load_trimmed(rank, 0)?;
        self.state.note_move();
        self.rewrite_leaf(frame, rank, self.state.records())
    }
}

impl<'b, F: Flash> PageOwner<'b, F> for Leaves<'b, F> {
    fn log(&self) -> &Log<'b, F> {
        &self.log
    }

    fn log_mut(&mut self) -> &mut Log<'b, F> {
        &mut self.log
    }

    fn collector(&self) -> &Collector {
        &self.collector
    }

    fn collector_mut(&mut self) -> &mut Collector {
        &mut self.collector
    }

    fn relocate(
        &mut self,
        page: PageNumber,
        _: Option<BlockNumber>,
    ) -> Result<(), Fault<F::Error>> {
        self.move_page(page)
    }

    fn kept(&self) -> u32 {
        self.kept_to_settle() + self.checkpoints.room(&self.log)
    }

    fn reserve_pages(&self) -> u32 {
        self.budget().reserve_pages() + self.kept_beside()
    }

    fn pages_to_empty(&self, valid: u32, _: bool) -> u32 {
        valid
    }

    fn move_cost(&self, _: u32) -> u32 {
        let reads_by_erase = self.log.blocks.wear().reads_by_erase();
        limits::move_cost(self.log.verifies(), reads_by_erase)
            + self
                .checkpoints
                .cost(&self.log, &Stored::of(&self.directory, &self.torn, &self.batch))
    }

    fn limit_pages(&self) -> u32 {
        Leaves::limit_pages(self)
    }

    fn begin_changes(&mut self) -> Result<bool, Fault<F::Error>> {
        self.begin_session()
    }

    fn is_needed(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        if self.is_beside(page) {
            return Ok(true);
        }
        match self.rank_of(page) {
            // It is garbage, or its loss is reported when its keys are read.
            Err(Fault::Corrupt { .. }) => Ok(false),
            rank => Ok(rank?.is_some()),
        }
    }

    fn in_doubt(&self) -> bool {
        self.state.is_in_doubt()
    }

    fn prepare_block(&mut self) -> Result<bool, Fault<F::Error>> {
        // A checkpoint lists the blocks that may be opened after it.
        Ok(!self.log.medium.checkpoints && self.log.prepare_block()?)
    }
}
