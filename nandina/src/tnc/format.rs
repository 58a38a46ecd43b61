//! Formatting: an empty tree takes the place of whatever the chip holds.
//!
//! It commits as any change does: the index that it replaces is mounted first, and its pages stay
//! until the new root is programmed, first in a block that the older index does not need. The root
//! takes the next number, so that no torn page of the older index is newer.

use super::arena::{NO_SLOT, NOWHERE};
use super::bounds::commit_pages;
use super::journal::JOURNAL;
use super::{Checkpoints, TncIndex};
use crate::error::{Fault, OpenError};
use crate::flash::{Flash, PageNumber};
use crate::log::{END, GAP, Label};
use crate::node::{SESSION_END, SESSION_START};
use crate::space::{Checkpointing, Kind};

use super::Tnc;

impl<F: Flash> TncIndex<'_, F> {
    /// Makes an empty tree on the chip, in place of an older index.
    pub(super) fn format(&mut self) -> Result<(), OpenError<F::Error>> {
        self.means().check_least()?;
        // The sequence number after which the new root is numbered, and whether a page that commits
        // nothing has to come before the root.
        let (before, begins) = match self.find() {
            Ok(()) => {
                self.begin_last_session()?;
                (self.space.log.sequence().saturating_sub(<Tnc as Kind>::GAP), false)
            }
            Err(OpenError::Device(error)) => return Err(OpenError::Device(error)),
            Err(OpenError::Blank) => (0, false),
            Err(_) => match self.survey_to_replace()? {
                // Above everything that was torn before, and below what a mount of the present
                // content writes, if its settings are different.
                Some(sequence) => (sequence.saturating_sub(GAP / 2), true),
                None => (0, false),
            },
        };
        let identity = if before == 0 { 1 } else { self.space.log.sequence().max(before) as u32 };
        // From here on RAM has the identity of the new index, which the chip does not hold yet.
        self.state.doubt();
        self.space.restart(identity.wrapping_add(1), before, before);
        if !begins {
            self.space.log.begin_at_once();
        }
        self.space.begin_where_roots_are_replaced()?;
        self.begin_empty()?;
        if self.space.room() < 2 {
            self.space.log.blocks.release();
        }
        self.commit()?;
        // What the older index had is garbage now.
        let root = PageNumber(self.arena.form.place_of(self.arena.place(self.tree.root())).0);
        self.space.log.blocks.forget_valid();
        self.space.log.blocks.set_valid(root, true);
        self.live.clear();
        self.live.add(root.0, self.arena.form.numbers());
        <Checkpoints as Checkpointing>::leave(&mut self.space);
        self.state.forget_unexplained();
        self.state.set_settled(true);
        self.state.note_ended(false);
        self.set_limits();
        Ok(())
    }

    /// Makes the tree in RAM an empty leaf.
    fn begin_empty(&mut self) -> Result<(), Fault<F::Error>> {
        self.arena.clear();
        self.group.clear();
        self.tree.become_leaf();
        self.tree.take_records(0);
        let root = self.free_slot(1, NO_SLOT, (NOWHERE, NO_SLOT))?;
        self.tree.set_root(root);
        Ok(())
    }

    /// Marks the index that is to be replaced as open, as if it had not been closed.
    ///
    /// The new root may be torn, so that one mount sees it and another does not. Then each of them
    /// settles what it sees.
    fn begin_last_session(&mut self) -> Result<(), Fault<F::Error>> {
        if !self.space.log.has_begun() && self.space.room() > self.space.log.block_pages() {
            self.mark(SESSION_START)?;
        }
        if self.space.log.medium.checkpoints {
            <Checkpoints as Checkpointing>::erase_anchors(&mut self.space)?;
        }
        Ok(())
    }

    /// Programs a page that no node leads to and that records the number `records`.
    fn mark(&mut self, records: u32) -> Result<(), Fault<F::Error>> {
        let frame = self.building();
        self.space.area_mut(frame).fill(0xFF);
        let page = self.program(frame, JOURNAL, Label { lowest: 1, height: 0, records })?;
        self.space.log.blocks.set_valid(page, false);
        Ok(())
    }

    /// Marks the end of the session on the chip: everything before it is whole.
    ///
    /// Does nothing if there is no room for that page, or if nothing was programmed.
    pub(super) fn mark_end(&mut self) -> Result<(), Fault<F::Error>> {
        let kept = self.room.limits().reserve_pages + self.space.room_to_fail();
        // The next session may write all that was changed since the last commit.
        let commit = commit_pages(&self.arena.form, self.arena.changed().max(1));
        if self.can_end() && self.space.room() > kept + commit {
            self.mark(SESSION_END)?;
        }
        Ok(())
    }

    /// Whether something was programmed in this session, and all of it is whole.
    pub(super) const fn can_end(&self) -> bool {
        self.state.is_settled() && !self.state.is_in_doubt() && self.space.log.has_begun()
    }

    /// Surveys a chip whose index, if it has one, cannot be opened.
    ///
    /// Returns the highest sequence number, unless nothing was ever written. Only blocks that such
    /// an index does not need stay free, if there are any.
    fn survey_to_replace(&mut self) -> Result<Option<u64>, OpenError<F::Error>> {
        let survey = self.space.survey(END, None)?;
        if survey.has_anchors() {
            <Checkpoints as Checkpointing>::erase_anchors(&mut self.space)?;
        }
        let mut highest = survey.unread_sequence();
        if let Some(newest) = survey.newest {
            self.space.log.keep_newest(newest.block);
            highest = highest.max(newest.sequence);
            highest = highest.max(self.space.log.highest_in(newest.block)?);
            let begins = self.space.begins_in_first();
            self.space.log.hold_blocks_of(newest.identity, begins)?;
        }
        Ok((!survey.is_blank()).then_some(highest))
    }
}
