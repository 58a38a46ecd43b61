//! Formatting a chip, which may hold an index or anything else.
//!
//! An existing index stays whole until the new root takes its place in one program: no page that it
//! needs is erased before.

use super::Index;
use super::options::Options;
use super::survey::{END, survey};
use super::{CheckpointsOf, Origin, Placement, WritePolicy};
use crate::error::{Fault, OpenError};
use crate::flash::{Flash, PageNumber};
use crate::node::SESSION_START;

use crate::space::{Checkpointing, Kind};

/// What a new index replaces.
pub enum Replaced {
    Nothing,
    /// An index whose last session wrote the page with this sequence number.
    Continued(u64),
    /// Content that cannot be opened, and its highest visible sequence number.
    Damaged(u64),
}

impl<'b, F: Flash, S: Placement> Index<'b, F, S> {
    /// Makes an empty index on the chip, in place of an older one.
    ///
    /// The older index is gone once this returns `Ok`. After a cut during the format, the chip
    /// holds either the older index, unchanged, or none. (Over an index of another system or of
    /// other sizes, a cut may also restore an earlier state of the older index, if every block was
    /// written and none is left from before that index.)
    ///
    /// Cost: that of [`open`](Self::open) if the chip holds an index of these settings, else one
    /// read for each block (where pages are replaced in place, for each page); one or two erases
    /// and programs; with checkpoints, or over an index with them, two erases more.
    pub fn format(
        flash: F,
        options: &Options,
        ram: &'b mut [u8],
    ) -> Result<Self, OpenError<F::Error>> {
        Self::check_options(&flash, options, ram)?;
        let mut index = Self::new(flash, options, ram);
        // A root and two leaves are the smallest tree that can grow.
        let limit_pages = index.budget_for(2, 1).limit_pages;
        if limit_pages < 3 {
            return Err(OpenError::ChipTooSmall { limit_pages });
        }
        // The existing index stays whole until the new root takes its place: only blocks that it
        // does not need are erased.
        let replaced = match S::Kind::find_to_replace(&mut index) {
            Ok(()) => {
                S::Kind::begin_to_replace(&mut index)?;
                Replaced::Continued(index.space.log.sequence())
            }
            Err(OpenError::Device(error)) => return Err(OpenError::Device(error)),
            Err(OpenError::Blank) => Replaced::Nothing,
            Err(_) => index.survey_to_replace()?,
        };
        index.follow(replaced);
        index.space.begin_where_roots_are_replaced()?;
        index.in_doubt = true;
        index.height = 1;
        index.place.begin(&mut index.space, 1);
        let root = index.level(1);
        index.empty_node(root);
        index.space.begin_operation(true);
        if index.space.room() < 2 {
            index.free_held();
        }
        // The root of a format is the first page of a block.
        debug_assert!(index.space.log.active_block().is_none(), "the root shares a block");
        index.put_root(Origin::NEW, 0)?;
        index.own_root_alone();
        Ok(index)
    }

    /// Marks the index that is to be replaced as open, so that it does not end well.
    ///
    /// Then, if the new root is torn, so that one mount sees it and another does not, each of them
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
        let root = PageNumber(self.space.current_page(self.root));
        self.space.mappings.clear();
        self.space.log.blocks.release();
        self.space.log.blocks.forget_valid();
        self.space.log.blocks.set_valid(root, true);
        CheckpointsOf::<S>::leave(&mut self.space);
        // A format commits as any change does.
        #[cfg(debug_assertions)]
        self.space.check_commit();
        (self.records, self.inner_nodes, self.unexplained_pages) = (0, 0, 0);
        self.from_checkpoint = false;
        self.settled = true;
        self.set_budget();
        self.in_doubt = false;
    }

    /// Surveys a chip whose index, if it has one, cannot be opened.
    ///
    /// Finds the highest sequence number, unless nothing was ever written. Only blocks that such an
    /// index does not need stay free, if there are any.
    fn survey_to_replace(&mut self) -> Result<Replaced, OpenError<F::Error>> {
        self.torn_from = u64::MAX;
        let survey = survey(&mut self.space, END, None)?;
        if let Some(newest) = survey.newest {
            self.space.log.keep_newest(newest.block);
        }
        let highest = S::Kind::survey_to_replace(self, survey.newest)?;
        let sequence = survey.unread_sequence().max(highest);
        if survey.checkpoints {
            CheckpointsOf::<S>::erase_anchors(&mut self.space)?;
        }
        Ok(if survey.is_blank() { Replaced::Nothing } else { Replaced::Damaged(sequence) })
    }

    /// Holds the blocks with pages of the index `identity`, unless that is all blocks.
    pub(crate) fn hold_blocks_of(&mut self, identity: u32) -> Result<(), Fault<F::Error>> {
        let mut others = false;
        for block in self.space.log.blocks.all() {
            let first = self.space.log.read_raw(self.space.log.page_at(block, 0), 0)?;
            let is_other = match first {
                Ok(header) => header.identity != identity,
                Err(fault) => fault == crate::node::PageFault::Erased,
            };
            if !is_other {
                self.space.log.blocks.set_valid(self.space.log.page_at(block, 0), true);
            }
            others |= is_other && !self.space.log.blocks.is_bad(block);
            if is_other || !self.space.begins_in(block) {
                continue;
            }
            self.space.log.blocks.set_valid(self.space.log.page_at(block, 0), false);
        }
        if others {
            self.space.log.blocks.hold_valid();
        } else {
            self.space.log.blocks.forget_valid();
        }
        Ok(())
    }
}
