//! Replay: the changes of the journal after the last commit are made again.
//!
//! Blocks are taken in the order in which they were opened, and the pages of a block in the order
//! in which they were programmed. The changes meet the same tree as when they were first made, so
//! with the same amount of RAM nothing is written.
//!
//! With less RAM, nodes are written ahead of the commit that the mount makes, and leave RAM. Until
//! that commit nothing on flash leads to them. If the mount is cut, the next one finds the last
//! commit and its journal as this one did, since no block of the journal is erased before. A tree
//! that is too high for the RAM is refused, and so is one for whose nodes the chip has no room.

use super::TncIndex;
use super::apply::Value;
use super::bounds::{change_nodes, height_max};
use super::changes::has_slots;
use super::mount::{LastCommit, is_journal};
use super::opened::Opened;
use crate::bytes::u16_at;
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::log::GAP;

impl<F: Flash> TncIndex<'_, F> {
    /// Makes all changes of the journal after `commit`.
    ///
    /// The blocks of the journal are kept from being erased.
    pub(super) fn replay(&mut self, commit: &LastCommit) -> Result<(), Fault<F::Error>> {
        if self.arena.form.apart() {
            // All nodes of the commit have been read, and leaves will point to newer values.
            self.space.accept_newer();
        }
        let (mut opened, mut age) = (Opened::default(), commit.block);
        let mut before = None;
        loop {
            let (first, block) = (age.0, BlockNumber(age.1));
            let next = self.next_block(&mut opened, age, commit.extent())?;
            let lost_behind = self.replay_block(block, first, &mut before, commit)?;
            let Some(next) = next else { return Ok(()) };
            // A mount after a cut leaves a gap after the torn page. Without a gap the session
            // continued after the lost page, so that page was whole, unless its block failed with
            // its program.
            let went_on =
                lost_behind.is_some_and(|sequence| next.0.saturating_sub(sequence) < GAP / 2);
            let is_bad = self.space.log.blocks.is_bad(block);
            self.state.note_unexplained(went_on && !is_bad);
            age = next;
        }
    }

    /// Makes the changes of the journal in `block`.
    ///
    /// Its first page has the number `first`. `before` is the last page whose changes were made.
    ///
    /// Returns the number of the last page that can be read, if a page after it cannot be read.
    /// Returns `None` if the former is older than the commit.
    fn replay_block(
        &mut self,
        block: BlockNumber,
        first: u64,
        before: &mut Option<PageNumber>,
        commit: &LastCommit,
    ) -> Result<Option<u64>, Fault<F::Error>> {
        let frame = self.building();
        let written = self.written(block)?;
        let mut end = written;
        // A page that cannot be read counts as lost only if a later one of its block can. (One with
        // a lower number than the first is left from before an erase.)
        while end > 0 {
            let page = self.space.log.page_at(block, end - 1);
            if self.space.log.read_raw(page, frame)?.is_ok_and(|header| header.sequence >= first) {
                break;
            }
            end -= 1;
        }
        let mut is_held = false;
        // The highest number so far: that of the first readable page, if it is newer than the
        // commit.
        let mut since = if first > commit.header.sequence { first } else { 0 };
        for place in 0..end {
            let page = self.space.log.page_at(block, place);
            let header = match self.space.log.read_raw(page, frame)? {
                Ok(header) => header,
                Err(_) => {
                    // It can have been a page of the journal only if it came after the commit.
                    let is_torn = place + 1 == end;
                    self.state.note_unexplained(!is_torn && since >= commit.header.sequence);
                    continue;
                }
            };
            since = header.sequence;
            let counts = is_journal(&header)
                && header.identity == commit.header.identity
                && self.space.log.is_ours(frame)
                && header.sequence > commit.header.sequence;
            if !counts {
                continue;
            }
            let is_last = place + 1 == end;
            let may_be_torn = is_last && !self.state.has_ended();
            let slots = if has_slots(&header) {
                let whole = self.whole_slots(frame);
                self.state.note_unexplained(!is_last && self.has_more_than(whole, frame));
                let steady = match may_be_torn {
                    true => self.steady_slots(page, header.sequence, whole)?,
                    false => Some(whole),
                };
                let Some(steady) = steady else { continue };
                Some(steady)
            } else {
                let sequence = Some(Ok(header.sequence));
                if may_be_torn && self.space.log.steady_reading(page)? != sequence {
                    continue;
                }
                None
            };
            if !is_held {
                self.space.log.blocks.hold(block);
                is_held = true;
            }
            self.journal.note_page(block);
            let last = core::mem::replace(before, slots.is_none().then_some(page));
            if slots.is_none()
                && place == 0
                && let Some(last) = last
                && self.is_repeated(last, frame)?
            {
                if self.arena.form.apart() {
                    self.repoint_page(last, page, frame)?;
                }
                continue;
            }
            self.replay_page(page, frame, slots, commit)?;
        }
        Ok((end < written && since >= commit.header.sequence).then_some(since))
    }

    /// Whether the first page of a block, in `frame`, repeats the page `before`.
    ///
    /// If so, the program of that page failed, and it was programmed again here; between them there
    /// may be failed programs that cannot be read. Its changes are made once: if they were made
    /// twice, RAM might have no room for the nodes that they change.
    fn is_repeated(&mut self, before: PageNumber, frame: usize) -> Result<bool, Fault<F::Error>> {
        let is_read = self.space.log.read_raw(before, 0)?.is_ok();
        let area_bytes = self.space.log.layout().area_bytes();
        let area = |frame| &self.space.log.frames.bytes(frame)[..area_bytes];
        Ok(is_read && area(frame) == area(0))
    }

    /// Makes the changes of the page of the journal in `frame`.
    ///
    /// With `slots`, they were programmed one by one, and that number of them counts.
    fn replay_page(
        &mut self,
        page: PageNumber,
        frame: usize,
        slots: Option<usize>,
        commit: &LastCommit,
    ) -> Result<(), Fault<F::Error>> {
        let (form, key_bytes) = (self.arena.form, self.arena.form.key_bytes);
        let count = match slots {
            Some(slots) => slots,
            None => usize::from(u16_at(self.space.log.frames.bytes(frame), 0)),
        };
        if slots.is_none() && count > form.entries() {
            return Err(Fault::Corrupt { page, reason: Damage::NodeTooFull });
        }
        for at in 0..count {
            let (puts, start) = match slots {
                Some(_) => self.slot_at(at, frame),
                None => self.entry_at(at, frame),
            };
            let (key, pointer) = (self.key_at(frame, start), form.pointer(page.0, at));
            if slots.is_some() && self.is_made(&key, puts, (frame, start), pointer)? {
                continue;
            }
            if !self.has_ram_for_change() {
                self.write_ahead_in_mount(page, commit)?;
                if self.space.log.read_raw(page, frame)?.is_err() {
                    return Err(Fault::Corrupt { page, reason: Damage::Checksum });
                }
            }
            self.arena.counters.count_replayed();
            if puts {
                let value = match form.apart() {
                    true => Value::At(pointer),
                    false => Value::InFrame(frame, start + key_bytes),
                };
                self.apply_put(key.bytes(key_bytes), value)?;
            } else {
                self.apply_remove(key.bytes(key_bytes))?;
            }
        }
        Ok(())
    }

    /// Whether RAM has room for the nodes of another change.
    ///
    /// It has if it has room for as many nodes as when the change was made. A dirty root counts as
    /// one of the change.
    fn has_ram_for_change(&self) -> bool {
        let height = self.tree.height();
        let room = self.arena.slots().saturating_sub(usize::from(height) + 1);
        let changed = self.arena.changed() - usize::from(self.arena.is_dirty(self.tree.root()));
        height <= height_max(self.arena.slots()) && changed + change_nodes(height) <= room
    }

    /// Writes nodes ahead of this commit, until RAM has room for many changes.
    ///
    /// `page` is the page of the journal for which it has none.
    #[cold]
    #[inline(never)]
    fn write_ahead_in_mount(
        &mut self,
        page: PageNumber,
        commit: &LastCommit,
    ) -> Result<(), Fault<F::Error>> {
        covered!("a mount with less RAM writes nodes ahead of its commit");
        // No block of the journal is erased before that commit.
        let (mut opened, mut age) = (Opened::default(), commit.block);
        while let Some(next) = self.next_block(&mut opened, age, commit.extent())? {
            self.space.log.blocks.hold(BlockNumber(next.1));
            age = next;
        }
        while self.arena.dirty() > self.arena.slots() / 2 || !self.has_ram_for_change() {
            let dirty = self.arena.dirty();
            let least = self.commit_pages() + 2 * self.space.log.block_pages();
            if self.space.room() > least {
                self.write_ahead(false)?;
            }
            if self.arena.dirty() == dirty {
                break;
            }
        }
        if self.has_ram_for_change() {
            return Ok(());
        }
        Err(Fault::Corrupt { page, reason: Damage::ArenaTooSmall })
    }
}
