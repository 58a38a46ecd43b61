//! Settling: a mount after a cut leaves no page that may be torn.
//!
//! The mount has found the newest page that is steady. What was programmed after it was torn; it
//! may not even be visible now. It can lie after that page in its block, which is then a *suspect*,
//! or first in another block, which holds no page that counts.
//!
//! 1. Blocks of the second kind are erased: those whose first page does not read as blank each
//!    time, and is not an older page.
//! 2. A session page is programmed. It lists the suspects, each with the sequence numbers that a
//!    page torn there can have: those after the number of the newest page, up to that of the
//!    session page. From now on no mount counts these.
//! 3. The newest leaf is written again. Until then no block is opened that would be needed without
//!    that leaf. Once cuts have touched the reserve, the leaf stays where it is.
//! 4. The changes of a batch are made that was cut (`batches.rs`).
//! 5. The valid pages of the suspects are moved, the suspect with the fewest of them first, and the
//!    suspects are erased. A cut in between adds a suspect, which has at most half as many.
//! 6. A session page is programmed that lists no suspects.
//!
//! Steps 5 and 6 use no page of what is kept free. Where room is short they wait: the session page
//! stays valid, collection continues, and changes empty a suspect as soon as there is room for it.
//!
//! So a mount decides once, and each later mount decides in the same way. If a page of a suspect
//! cannot be read, the other pages are moved and the suspect stays in the list. A block of either
//! kind that cannot be erased also stays in it until the chip has marked the block as bad: a torn
//! page in it can still be read.

use super::leaves::Leaves;
use super::suspects::{Places, Suspect, WAITING_MAX};
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, Flash};
use crate::gc::{self, PageOwner};
use crate::log::{LOOKS, Label};
use crate::node::{PageFault, SESSION_END};

/// Times that a mount begins again because its newest leaf can no longer be read.
const TRIES: u32 = 2;

impl<F: Flash> Leaves<'_, F> {
    /// Settles what a mount has found.
    ///
    /// If nothing can be written, the index can still be read: the newest page was read often
    /// enough to be known as steady.
    pub(super) fn settle_or_read(&mut self) -> Result<(), Fault<F::Error>> {
        let mut tries = TRIES;
        loop {
            match self.settle() {
                // A leaf that was steady can no longer be read.
                Err(Fault::Corrupt { reason, .. })
                    if tries > 0 && reason != Damage::NotAsWritten =>
                {
                    tries -= 1;
                    self.mount_as_seen()?;
                }
                // With half of a batch the index cannot be read.
                Err(fault)
                    if self.batch.open().is_none()
                        && (fault.rejects_writes()
                            || matches!(fault, Fault::NoRoom { .. } | Fault::WornOut { .. })) =>
                {
                    covered!("leaves are read unsettled");
                    return self.mount_as_seen();
                }
                settled => return settled,
            }
        }
    }

    /// Settles, unless that was done.
    pub(super) fn settle(&mut self) -> Result<(), Fault<F::Error>> {
        if self.torn.is_settled() {
            return Ok(());
        }
        // If it fails half way, only another mount knows what is torn now.
        let settled = self.settle_all();
        self.state.end_doubt(settled.is_err());
        self.torn.set_settled(settled.is_ok());
        settled
    }

    fn settle_all(&mut self) -> Result<(), Fault<F::Error>> {
        let (newest, number) = self.torn.newest();
        let block = self.block_of(newest);
        let mut cleared = Places::NONE;
        for at in 0..self.torn.suspects().len() {
            let suspect = BlockNumber(self.torn.suspects().get(at).block);
            // Each of the other suspects has valid pages, or is held. If it is held, it still has
            // the leaf that the newest one replaces, and is erased after the newest one was written
            // again.
            if suspect != block && self.clear_block(suspect)? {
                cleared.add(at);
            }
        }
        self.torn.remove_suspects(cleared);
        self.clear_torn_blocks(number)?;
        if newest != self.log.page_at(block, self.log.block_pages() - 1) {
            self.suspect(block, number)?;
        }
        if self.log.room() < self.reserve_pages() + 2 {
            // The newest page reads the same each time: what it superseded is no longer needed. If
            // the leaf were written again at each of several cuts, each would leave a block with
            // that leaf alone, and use up the reserve.
            covered!("the newest leaf stays where it is, since room is short");
            self.torn.forget_newest_leaf();
            self.log.blocks.release();
        }
        self.free_last_block();
        self.write_session()?;
        if let Some(leaf) = self.torn.newest_leaf() {
            self.move_page(leaf)?;
            self.torn.forget_newest_leaf();
        }
        self.make_again()?;
        self.torn.take_postponed();
        if !self.torn.suspects().is_empty() || self.state.lacks_checkpoint() {
            // Older checkpoints are no longer needed from then on.
            self.write_checkpoint()?;
        }
        if !self.torn.suspects().is_empty() {
            self.empty_suspects(self.torn.suspects().len() > WAITING_MAX)?;
        }
        self.log.mark_bad_blocks()
    }

    /// Frees the block of the newest session page, if no page is free.
    ///
    /// That block must hold nothing else. Nothing was acknowledged after that page. If the erase is
    /// cut, a mount finds the pages before it, and settles these.
    fn free_last_block(&mut self) {
        let Some(session) = self.torn.session().filter(|_| self.log.room() == 0) else { return };
        let block = self.block_of(session);
        if self.log.is_newest(block) && self.log.blocks.valid_in(block) == 1 {
            covered!("the block of the last session page is written again");
            self.log.blocks.set_valid(session, false);
            self.torn.forget_session();
        }
    }

    /// Empties suspects that had to wait, if there is room.
    pub(super) fn empty_postponed(&mut self) -> Result<(), Fault<F::Error>> {
        if !self.torn.take_postponed() {
            return Ok(());
        }
        let emptied = self.empty_suspects(false);
        if emptied.is_err() {
            self.state.doubt();
        }
        emptied
    }

    /// Moves the valid pages of all suspects, and erases them.
    ///
    /// Unless `at_once`, suspects for which there is no room above what is kept free have to wait.
    fn empty_suspects(&mut self, at_once: bool) -> Result<(), Fault<F::Error>> {
        let (mut tried, mut emptied) = (Places::NONE, Places::NONE);
        while let Some(at) = self.easiest(tried) {
            let block = BlockNumber(self.torn.suspects().get(at).block);
            let pages = self.log.blocks.valid_in(block) + 1;
            if !at_once && self.log.room() < self.kept_to_settle() + pages {
                // Each of the others has at least as many pages.
                self.torn.postpone();
                break;
            }
            tried.add(at);
            if self.empty_suspect(block)? {
                emptied.add(at);
            }
        }
        if emptied == Places::NONE {
            return Ok(());
        }
        self.torn.remove_suspects(emptied);
        self.write_session()
    }

    /// The place of the suspect with the fewest valid pages that was not `tried`.
    fn easiest(&self, tried: Places) -> Option<usize> {
        let suspects = self.torn.suspects();
        let left = (0..suspects.len()).filter(|&at| !tried.has(at));
        left.min_by_key(|&at| self.log.blocks.valid_in(BlockNumber(suspects.get(at).block)))
    }

    /// Moves all valid pages of a block, and erases it.
    ///
    /// Returns `false` if it remains a suspect: one of them cannot be read, or it cannot be erased.
    fn empty_suspect(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        if self.log.active_block() == Some(block) {
            // It held nothing, and was erased for the session page.
            return Ok(true);
        }
        let mut from = 0;
        while let Some((page, place)) = gc::next_valid(self, block, from)? {
            from = place + 1;
            match self.relocate(page, None) {
                Err(Fault::Corrupt { .. }) if !self.state.is_in_doubt() => {}
                moved => moved?,
            }
        }
        self.clear_block(block)
    }

    /// Erases the blocks without valid pages whose first page may be torn.
    ///
    /// Those that cannot be erased become suspects. Every page that is not torn has at most the
    /// number `newest`. Only blocks that may have been opened since the checkpoint of the mount are
    /// looked at. Cost: a read for each such block that was written, [`LOOKS`] for each that was
    /// not.
    fn clear_torn_blocks(&mut self, newest: u64) -> Result<(), Fault<F::Error>> {
        let mut position = 0;
        while let Some(block) = self.checkpoints.scanned_block(&self.log, position) {
            position += 1;
            if self.log.blocks.is_empty(block)
                && !self.log.is_newest(block)
                && self.may_begin_torn(block, newest)?
                && !self.clear_block(block)?
            {
                self.suspect(block, newest)?;
            }
        }
        Ok(())
    }

    /// Adds `block` to the suspects.
    ///
    /// A torn page in it has a higher number than `from`, and a lower one than the session page.
    fn suspect(&mut self, block: BlockNumber, from: u64) -> Result<(), Fault<F::Error>> {
        let span = u32::try_from(self.log.sequence().saturating_sub(from)).unwrap_or(u32::MAX);
        let suspect = Suspect { block: block.0, from, span };
        if self.torn.add_suspect(suspect, self.log.layout().area_bytes()) {
            Ok(())
        } else {
            Err(self.log.no_room(self.limit_pages()))
        }
    }

    /// Erases a free block that may hold a torn page.
    ///
    /// To a mount from a checkpoint that lists the block it would look as if it had never been
    /// opened, so from then on no checkpoint that is older than the mount is used.
    ///
    /// Returns whether its torn pages can no longer be read: it was erased, or the chip has marked
    /// it as bad.
    fn clear_block(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        let is_free = self.log.blocks.is_empty(block);
        if is_free {
            self.void_checkpoint()?;
            self.log.clear_block(block)?;
        }
        self.log.mark_bad_blocks()?;
        Ok(is_free && self.log.blocks.is_empty(block) || self.log.is_marked(block)?)
    }

    fn may_begin_torn(&mut self, block: BlockNumber, newest: u64) -> Result<bool, Fault<F::Error>> {
        let page = self.log.page_at(block, 0);
        for _ in 0..LOOKS {
            match self.log.read_raw(page, 0)? {
                Err(PageFault::Erased) => {}
                Ok(header) => return Ok(header.sequence > newest),
                Err(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Marks the end of the session on the chip: everything before it is whole.
    ///
    /// So the next mount has nothing to settle. Does nothing if there is no room for that page, or
    /// if nothing was programmed.
    pub(super) fn end_session(&mut self) -> Result<(), Fault<F::Error>> {
        let can_end = self.torn.is_settled() && !self.state.is_in_doubt() && self.log.has_begun();
        if can_end && self.log.room() > self.kept() {
            self.state.doubt();
            self.log.frames.forget(0);
            self.log.frames.bytes_mut(0).fill(0);
            let end = Label { lowest: 1, height: 0, records: SESSION_END };
            let page = self.write(0, end, None)?;
            self.log.blocks.set_valid(page, false);
        }
        Ok(())
    }
}
