//! Formatting a chip, which may hold an index or anything else.
//!
//! An existing index stays whole until the first leaf takes its place in one program: that leaf
//! owns all keys, has a new identity, and is the first page of its block. No page that the existing
//! index needs is erased before.

use super::leaves::Leaves;
use super::limits;
use crate::error::{Fault, OpenError};
use crate::flash::{BlockNumber, Flash};
use crate::log::{GAP, Survey};

impl<F: Flash> Leaves<'_, F> {
    /// Makes an empty index on the chip, in place of an older one.
    pub(super) fn format(&mut self) -> Result<(), OpenError<F::Error>> {
        let limit_pages = self.limit_pages();
        if limit_pages < limits::LIMIT_MIN {
            return Err(OpenError::ChipTooSmall { limit_pages });
        }
        let sequence = match self.find() {
            Ok(()) => {
                self.begin_last_session()?;
                // The next number: a mount that does not see the leaf gives a higher one.
                self.log.sequence()
            }
            Err(OpenError::Device(error)) => return Err(OpenError::Device(error)),
            Err(OpenError::Blank) => 0,
            Err(_) => self.survey_to_replace()?,
        };
        // From here on RAM has the identity of the new index, which the chip does not hold yet.
        self.state.doubt();
        self.log.restart((sequence as u32).wrapping_add(1), sequence);
        self.log.begin_at_once();
        if self.begins_in_first() {
            self.log.make_ready(BlockNumber(0))?;
        }
        self.batch.forget();
        self.directory.clear();
        self.torn.forget_suspects();
        self.torn.take_postponed();
        self.lost.forget();
        let form = self.form();
        self.log.frames.forget(0);
        form.begin(self.log.frames.bytes_mut(0));
        self.rewrite_leaf(0, 0, 0)?;
        // Nothing of the older index is needed any longer.
        self.log.blocks.forget_valid();
        if let Some(page) = self.directory.page(0) {
            self.log.blocks.set_valid(page, true);
            self.torn.note_newest(page, self.log.sequence());
        }
        self.checkpoints.leave(&mut self.log);
        self.torn.forget_newest_leaf();
        self.lost.count_unexplained(0);
        self.torn.set_settled(true);
        Ok(())
    }

    /// Marks the index that is to be replaced as open, as if it had not been closed.
    ///
    /// The new leaf may be torn, so that one mount sees it and another does not. Then each of them
    /// settles what it sees. If no more than one block is free, nothing is marked: the leaf is
    /// written into that block, and a mount reads it often.
    fn begin_last_session(&mut self) -> Result<(), Fault<F::Error>> {
        if self.log.room() > self.log.block_pages() {
            self.begin_session()?;
        }
        if self.has_checkpoints() {
            // No mount from the checkpoint would find the new leaf.
            self.checkpoints.erase_anchors(&mut self.log)?;
        }
        Ok(())
    }

    /// Whether the index begins in the first block.
    ///
    /// That erases a root that was replaced in place.
    fn begins_in_first(&self) -> bool {
        self.log.capabilities().rewrite && !self.log.medium.checkpoints
    }

    /// Surveys a chip whose index, if it has one, cannot be opened.
    ///
    /// Returns the number after which new pages are numbered. It is above everything that may be
    /// torn, and below what a mount of the present content would write. Only blocks that such an
    /// index does not need stay free, if there are any.
    // Apart from what formats, for the sake of the stack.
    #[inline(never)]
    fn survey_to_replace(&mut self) -> Result<u64, Fault<F::Error>> {
        let mut survey = Survey::default();
        self.survey(u64::MAX, &mut survey)?;
        if survey.has_anchors() {
            self.checkpoints.erase_anchors(&mut self.log)?;
        }
        let mut highest = survey.unread_sequence();
        highest = highest.max(survey.checkpoints);
        if let Some(newest) = survey.newest {
            let mut walk = super::order::Walk::START;
            if let Some(block) = self.order.next(&mut walk) {
                self.log.keep_newest(block);
                highest = highest.max(self.log.highest_in(block)?);
            }
            let begins = self.begins_in_first();
            self.log.hold_blocks_of(newest.identity, begins)?;
        }
        Ok(if survey.is_blank() { 0 } else { highest + GAP / 2 })
    }
}
