//! Batches: several changes, of which a cut leaves all or none.
//!
//! If one leaf has room for all of them, they are one program, as a single change is. Otherwise a
//! page stores the changes, and then they are made leaf by leaf, each leaf in one program. All
//! these pages carry the mark of the batch. A mount that finds the newest page marked makes the
//! changes again, from the page that stores them; where they were made already that writes nothing.
//!
//! 1. If the newest page is the one that stores the changes, none was made, and the batch is
//!    forgotten: it was not acknowledged, and the page itself may be torn.
//! 2. If the newest page is a later one with the mark, the page that stores the changes is whole,
//!    since a program came after it. It is neither moved nor erased before a page without the mark
//!    was written.
//! 3. If that page is gone nevertheless, such a page was written, so all changes were made. It was
//!    torn, and another mount saw it.
//!
//! So batches need no page on the chip that others refer to, and single changes cost nothing more.

use super::batch::mark_of;
use super::leaves::Leaves;
use super::make::{STORED, Step};
use super::options;
use crate::engine::{Batches, Change, EngineFault, KEY_BYTES_MAX};
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::gc;
use crate::log::Label;

impl<'b, F: Flash> Batches<'b, F> for Leaves<'b, F> {
    fn batch_max(&self) -> usize {
        self.batch_form().capacity().min(self.log.block_pages() as usize)
    }

    fn write_batch(&mut self, changes: &[Change<'_>]) -> Result<(), EngineFault<F>> {
        self.make_room(true)?;
        if changes.is_empty() {
            return Ok(());
        }
        let written = self.write_changes(changes);
        if written.is_err() && self.batch.open().is_some() {
            // Only a mount makes the other changes.
            self.state.doubt();
        }
        written
    }
}

impl<F: Flash> Leaves<'_, F> {
    fn write_changes(&mut self, changes: &[Change<'_>]) -> Result<(), Fault<F::Error>> {
        self.store_changes(changes);
        if self.is_in_one_leaf() && self.change_one_leaf()? {
            return Ok(());
        }
        self.admit(changes)?;
        self.gain_room_for(changes.len() as u32)?;
        self.store_changes(changes);
        let page = self.write_batch_page(changes.len() as u32)?;
        self.make(page)
    }

    /// Gains room for a batch ahead, if that is to be had.
    ///
    /// Each change may split a leaf. Where the leaves take that much room, it is gained on the way:
    /// collection would move all of them to find it.
    fn gain_room_for(&mut self, changes: u32) -> Result<(), Fault<F::Error>> {
        // Collection needs a page buffer.
        self.log.frames.release(STORED);
        let pages = 2 * changes + 1;
        if self.directory.len() as u32 + pages <= self.budget().limit_pages {
            match gc::gain_room(self, pages) {
                Err(Fault::NoRoom { .. }) => {}
                gained => return gained,
            }
        }
        gc::gain_room(self, 0)
    }

    /// Stores the changes in a page buffer.
    fn store_changes(&mut self, changes: &[Change<'_>]) {
        let form = self.batch_form();
        self.log.frames.forget(STORED);
        form.store(self.log.frames.bytes_mut(STORED), changes);
    }

    /// Programs the page that stores the changes of a batch.
    fn write_batch_page(&mut self, count: u32) -> Result<PageNumber, Fault<F::Error>> {
        let mark = mark_of(self.log.sequence());
        self.state.doubt();
        let page = self.write(STORED, Label { lowest: mark, height: 0, records: count }, None)?;
        self.log.frames.hold(STORED, page);
        self.batch.begin(page, mark);
        self.pin_batch();
        self.log.blocks.release();
        self.log.check_accounts();
        self.state.trust();
        Ok(page)
    }

    /// Whether the changes in [`STORED`] all belong to one leaf.
    fn is_in_one_leaf(&self) -> bool {
        let form = self.batch_form();
        let stored = form.changes(self.log.frames.bytes(STORED)).filter(|all| all.count() > 0);
        stored.is_some_and(|stored| {
            let [first, last] = [0, stored.count() - 1].map(|at| stored.key(at));
            self.directory.find(first) == self.directory.find(last)
        })
    }

    /// Makes the changes in [`STORED`] in the one leaf to which they belong.
    ///
    /// Returns `false`, and writes nothing, if it has no room for them.
    fn change_one_leaf(&mut self) -> Result<bool, Fault<F::Error>> {
        let Some(key) = self.key_of(STORED, 0) else { return Ok(true) };
        let (rank, mut next) = (self.directory.find(&key), 0);
        let mut leaf = self.load_changed(rank, 0)?;
        self.change(&mut leaf, STORED, &mut next, false)?;
        if leaf.is_full {
            self.log.frames.release(leaf.frame);
            return Ok(false);
        }
        // A block that is opened for the leaf may need it.
        self.log.frames.release(STORED);
        self.program_changed(&leaf)?;
        Ok(true)
    }

    /// Refuses the changes in [`STORED`] if the leaves that they may add have no room.
    ///
    /// Two leaves that fit in one are merged before. Cost: nothing if there is room for a leaf for
    /// each change; otherwise a read for each leaf that changes.
    fn admit(&mut self, changes: &[Change<'_>]) -> Result<(), Fault<F::Error>> {
        loop {
            let puts = changes.iter().filter(|change| change.value().is_some()).count();
            if self.has_room_for(puts) {
                return Ok(());
            }
            let splits = self.count_splits()?;
            if self.has_room_for(splits) {
                return Ok(());
            }
            self.log.frames.release(STORED);
            if !self.merge_thin()? {
                let leaves = self.directory.len() as u32;
                return Err(self.log.no_room(self.limit_pages().min(leaves)));
            }
            self.make_room(false)?;
            self.store_changes(changes);
        }
    }

    /// Whether there may be this many leaves more, whatever separates them.
    fn has_room_for(&mut self, leaves: usize) -> bool {
        let separator = &[0xFF; KEY_BYTES_MAX][..usize::from(self.log.medium.key_bytes)];
        leaves == 0
            || (self.directory.len() + leaves <= self.budget().limit_pages as usize
                && self.directory.has_room(separator, leaves + options::MOUNTED as usize))
    }

    /// The most leaves that the changes in [`STORED`] add. Cost: a read for each leaf.
    fn count_splits(&mut self) -> Result<usize, Fault<F::Error>> {
        let (mut next, mut splits) = (0, 0);
        while let Some(key) = self.key_of(STORED, next) {
            let rank = self.directory.find(&key);
            let leaf = self.load_changed(rank, 0)?;
            let (mut count, mut new) = (0, 0);
            loop {
                match self.step(&leaf, STORED, next) {
                    Step::End => break,
                    Step::Insert(_) | Step::Full(_) => new += 1,
                    Step::Same | Step::Replace(_) | Step::Remove(_) => {}
                }
                next += 1;
            }
            if let Some(node) = self.form().node(self.log.frames.bytes(leaf.frame)) {
                count = node.count();
            }
            if count + new > self.form().capacity() {
                splits += new;
            }
            // It may have been trimmed.
            if self.log.frames.holding(self.page_at(rank)?).is_none() {
                self.log.frames.release(leaf.frame);
            }
        }
        Ok(splits)
    }
}
