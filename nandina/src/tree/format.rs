//! Formatting a chip, which may hold an index or anything else.
//!
//! An existing index stays whole until the new root takes its place in one program: no page that it
//! needs is erased before.

use super::{CheckpointsOf, Origin, Placement, Replaced, TreeIndex, WritePolicy};
use crate::error::{Fault, OpenError};
use crate::flash::{Flash, PageNumber};
use crate::log::{END, Survey};
use crate::node::SESSION_START;
use crate::space::{Checkpointing, Kind};

impl<'b, F: Flash, S: Placement> TreeIndex<'b, F, S> {
    /// Makes an empty tree on the chip, in place of an older index.
    pub(super) fn format(&mut self) -> Result<(), OpenError<F::Error>> {
        // A root and two leaves are the smallest tree that can grow.
        let limit_pages = self.budget_for(2, 1).limit_pages;
        if limit_pages < 3 {
            return Err(OpenError::ChipTooSmall { limit_pages });
        }
        // The existing index stays whole until the new root takes its place: only blocks that it
        // does not need are erased.
        let replaced = self.find_to_replace()?;
        // From here on RAM has the identity of the new index, which the chip does not hold yet.
        self.state.doubt();
        self.batch.clear();
        self.follow(replaced);
        self.space.begin_where_roots_are_replaced()?;
        self.state.begin_leaf();
        self.place.begin(&mut self.space, 1);
        let root = self.level(1);
        self.empty_node(root);
        self.space.begin_operation(true);
        if self.space.room() < 2 {
            self.free_held();
        }
        // The root of a format is the first page of a block.
        debug_assert!(self.space.log.active_block().is_none(), "the root shares a block");
        self.put_root(Origin::NEW, 0)?;
        self.own_root_alone();
        Ok(())
    }

    /// What the chip holds, which is to be replaced.
    // Its frame is gone when the new root is written.
    #[inline(never)]
    fn find_to_replace(&mut self) -> Result<Replaced, OpenError<F::Error>> {
        match S::Kind::find_to_replace(self) {
            Ok(()) => {
                S::Kind::begin_to_replace(self)?;
                Ok(Replaced::Continued(self.space.log.sequence()))
            }
            Err(OpenError::Device(error)) => Err(OpenError::Device(error)),
            Err(OpenError::Blank) => Ok(Replaced::Nothing),
            Err(_) => self.survey_to_replace(),
        }
    }

    /// Marks the index that is to be replaced as open, so that it does not end well.
    ///
    /// The new root may be torn, so that one mount sees it and another does not. Then each of them
    /// settles what it sees. If no more than one block is free, nothing is marked: the root is
    /// written into that block, and a mount reads it often.
    pub(crate) fn begin_last_session(&mut self) -> Result<(), Fault<F::Error>> {
        if !self.space.log.has_begun() && self.space.room() > self.space.log.block_pages() {
            self.mark(SESSION_START)?;
        }
        if self.space.log.medium.checkpoints {
            CheckpointsOf::<S>::erase_anchors(&mut self.space)?;
        }
        Ok(())
    }

    /// Continues with a new identity and numbers above those of the replaced index.
    fn follow(&mut self, replaced: Replaced) {
        let (sequence, gap) = match replaced {
            Replaced::Nothing => (0, 0),
            // The next number: a mount that does not see the root outdates it.
            Replaced::Continued(sequence) => (sequence, S::Kind::GAP),
            // Above everything that was torn before, and below what a mount of the present content
            // writes, if its settings are different.
            Replaced::Damaged(sequence) => (sequence, S::Kind::GAP / 2),
        };
        let before = sequence.saturating_sub(gap);
        self.space.restart((sequence as u32).wrapping_add(1), before, before);
        if S::Kind::begins_at_once(&replaced) {
            self.space.log.begin_at_once();
        }
    }

    /// Makes the index own only its root, which was just written.
    fn own_root_alone(&mut self) {
        let root = PageNumber(self.space.current_page(self.state.root()));
        self.space.mappings.clear();
        self.space.log.blocks.release();
        self.space.log.blocks.forget_valid();
        self.space.log.blocks.set_valid(root, true);
        CheckpointsOf::<S>::leave(&mut self.space);
        // A format commits as any change does.
        #[cfg(debug_assertions)]
        self.space.check_commit();
        self.state.formatted();
        self.set_budget();
        self.state.trust();
    }

    /// Surveys a chip whose index, if it has one, cannot be opened.
    ///
    /// Finds the highest sequence number, unless nothing was ever written. Only blocks that such an
    /// index does not need stay free, if there are any.
    #[inline(never)]
    fn survey_to_replace(&mut self) -> Result<Replaced, OpenError<F::Error>> {
        self.torn.outdate_none();
        let mut survey = Survey::default();
        self.space.survey_into(&mut survey, END, None)?;
        if survey.has_anchors() {
            CheckpointsOf::<S>::erase_anchors(&mut self.space)?;
        }
        if let Some(newest) = survey.newest {
            self.space.log.keep_newest(newest.block);
        }
        let highest = S::Kind::survey_to_replace(self, survey.newest)?;
        let sequence = survey.unread_sequence().max(highest);
        Ok(if survey.is_blank() { Replaced::Nothing } else { Replaced::Damaged(sequence) })
    }
}
