//! Makes the changes of a stored batch, for a call and for a mount alike.
//!
//! The changes are those that a page stores, sorted by key. Those of a leaf are made together, in
//! one program. A change that was made already is seen in the leaf, and writes nothing.
//!
//! `batches.rs` says when a mount makes a batch again. Here it also finds the one that a cut has
//! left half made.

use super::batch::{BatchForm, IS_BUILT, is_half_made, mark_in, stores_batch, value_in};
use super::leaves::{Leaves, damage_of};
use super::order::Walk;
use super::separator::Separator;
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::gc;
use crate::log::checkpoint::Checkpoint;
use crate::node::PageHeader;

/// The page buffer in which changes are stored before they are on the chip.
pub(super) const STORED: usize = 1;

/// What the next change of a batch does to a leaf.
pub(super) enum Step {
    /// Nothing: the leaf has it already.
    Same,
    /// The record at this place gets another value.
    Replace(usize),
    /// A record is inserted at this place.
    Insert(usize),
    /// The record at this place is removed.
    Remove(usize),
    /// A record belongs at this place, and the leaf is full.
    Full(usize),
    /// The change belongs to another leaf, or there is none.
    End,
}

/// A leaf in its page buffer, with the changes of a batch that were made in it.
pub(super) struct Changed {
    pub frame: usize,
    rank: usize,
    /// Where the range of the leaf ends.
    high: Option<Separator>,
    /// Records of the index with these changes.
    records: u32,
    differs: bool,
    removed: bool,
    /// Whether the lower half is kept, if the leaf was split.
    split: Option<bool>,
    /// Whether the next change found no room.
    pub is_full: bool,
}

impl<F: Flash> Leaves<'_, F> {
    pub(super) fn batch_form(&self) -> BatchForm {
        BatchForm::new(&self.log.layout(), &self.log.medium)
    }

    /// Keeps the page that stores a batch where it is: its block is not collected.
    pub(super) fn pin_batch(&mut self) {
        if let Some(page) = self.batch.page() {
            let block = self.block_of(page);
            self.log.blocks.set_stuck(block);
        }
    }

    /// A page was written. After a batch the page that stores it is no longer needed.
    pub(super) fn end_batch(&mut self) {
        if let Some(page) = self.batch.note_written() {
            let block = self.block_of(page);
            self.log.blocks.take_stuck(block);
            self.log.supersede(page);
        }
    }

    /// The key of a stored change.
    pub(super) fn key_of(&self, stored: usize, at: usize) -> Option<Separator> {
        let form = self.batch_form();
        let changes = form.changes(self.log.frames.bytes(stored)).filter(|all| at < all.count())?;
        let mut key = Separator::lowest(changes.key(at).len());
        key.bytes_mut().copy_from_slice(changes.key(at));
        Some(key)
    }

    /// Loads the leaf at `rank` to change it.
    pub(super) fn load_changed(
        &mut self,
        rank: usize,
        frame: usize,
    ) -> Result<Changed, Fault<F::Error>> {
        let frame = self.load_trimmed(rank, frame)?;
        Ok(Changed {
            frame,
            rank,
            high: self.directory.end(rank),
            records: self.state.records(),
            differs: false,
            removed: false,
            split: None,
            is_full: false,
        })
    }

    /// Makes the changes that `page` stores, which were not made yet.
    pub(super) fn make(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        let (mut next, mut merged) = (0, None);
        loop {
            self.keep_checkpoint()?;
            match gc::gain_room(self, 0) {
                // The page that stores the changes keeps a block from being collected; or blocks
                // have failed. What is made already must not wait for the rest.
                Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if self.log.room() > 0 => {}
                gained => gained?,
            }
            let stored = self.load_batch(page)?;
            let Some(key) = self.key_of(stored, next) else { break };
            let rank = self.directory.find(&key);
            let mut leaf = self.load_changed(rank, usize::from(stored == 0))?;
            // As for a single change, two thin leaves are merged before a full one is split.
            let merges = merged != Some(next) && self.is_thin();
            let before = next;
            self.change(&mut leaf, stored, &mut next, !merges)?;
            if leaf.is_full && next == before {
                self.log.frames.release(leaf.frame);
                merged = Some(next);
                self.merge_thin()?;
                continue;
            }
            self.program_changed(&leaf)?;
        }
        self.batch.note_made();
        Ok(())
    }

    /// Makes the stored changes that belong to `leaf`, in its page buffer alone.
    ///
    /// A leaf that is full ends them, unless it is the first of them that finds no room, and the
    /// leaf is split then.
    pub(super) fn change(
        &mut self,
        leaf: &mut Changed,
        stored: usize,
        next: &mut usize,
        splits: bool,
    ) -> Result<(), Fault<F::Error>> {
        loop {
            let step = self.step(leaf, stored, *next);
            match step {
                Step::End => return Ok(()),
                Step::Full(_) if leaf.differs || !splits => {
                    leaf.is_full = true;
                    return Ok(());
                }
                Step::Full(at) => {
                    self.split_for(leaf, stored, *next, at)?;
                    continue;
                }
                Step::Same => {}
                Step::Replace(at) | Step::Insert(at) | Step::Remove(at) => {
                    self.change_by(leaf, stored, *next, &step, at);
                }
            }
            *next += 1;
        }
    }

    /// What the change at `next` does to `leaf`.
    pub(super) fn step(&self, leaf: &Changed, stored: usize, next: usize) -> Step {
        let (form, batch_form) = (self.form(), self.batch_form());
        let changes = batch_form.changes(self.log.frames.bytes(stored));
        let Some(changes) = changes.filter(|changes| next < changes.count()) else {
            return Step::End;
        };
        let Some(node) = form.node(self.log.frames.bytes(leaf.frame)) else { return Step::End };
        let key = changes.key(next);
        if leaf.high.as_deref().is_some_and(|high| key >= high) {
            return Step::End;
        }
        match (node.search(key), value_in(changes.payload(next))) {
            (Ok(at), Some(value)) if node.payload(at) == value => Step::Same,
            (Ok(at), Some(_)) => Step::Replace(at),
            (Ok(at), None) => Step::Remove(at),
            (Err(_), None) => Step::Same,
            (Err(at), Some(_)) if node.count() < form.capacity() => Step::Insert(at),
            (Err(at), Some(_)) => Step::Full(at),
        }
    }

    /// Makes one stored change at place `at` of `leaf`.
    fn change_by(
        &mut self,
        leaf: &mut Changed,
        stored: usize,
        next: usize,
        step: &Step,
        at: usize,
    ) {
        let (form, batch_form) = (self.form(), self.batch_form());
        self.log.frames.forget(leaf.frame);
        let (from, to) = self.log.frames.pair(stored, leaf.frame);
        let (Some(changes), Some(mut node)) = (batch_form.changes(from), form.node_mut(to)) else {
            return;
        };
        let value = value_in(changes.payload(next)).unwrap_or_default();
        match step {
            Step::Insert(_) => {
                node.insert(at, changes.key(next), value);
                leaf.records = leaf.records.saturating_add(1);
            }
            Step::Remove(_) => {
                node.remove(at);
                leaf.records = leaf.records.saturating_sub(1);
                leaf.removed = true;
            }
            _ => node.set_payload(at, value),
        }
        leaf.differs = true;
    }

    /// Splits the full `leaf`, and keeps the half of the change at `next`.
    fn split_for(
        &mut self,
        leaf: &mut Changed,
        stored: usize,
        next: usize,
        at: usize,
    ) -> Result<(), Fault<F::Error>> {
        let kept = match self.key_of(stored, next) {
            Some(key) => self.keep_half(leaf.frame, leaf.rank, at, (&key, None))?,
            None => None,
        };
        let Some(goes_left) = kept else { return Err(self.log.no_room(self.limit_pages())) };
        (leaf.split, leaf.differs) = (Some(goes_left), true);
        if goes_left {
            let form = self.form();
            let fences = form.fences(self.log.frames.bytes(leaf.frame));
            leaf.high = fences.and_then(|(_, high)| high).map(|high| {
                let mut separator = Separator::lowest(high.len());
                separator.bytes_mut().copy_from_slice(high);
                separator
            });
        }
        Ok(())
    }

    /// Programs a leaf with the changes that were made in it, if there were any.
    pub(super) fn program_changed(&mut self, leaf: &Changed) -> Result<(), Fault<F::Error>> {
        let &Changed { frame, rank, records, .. } = leaf;
        if !leaf.differs {
            // It may have been trimmed.
            if self.log.frames.holding(self.page_at(rank)?).is_none() {
                self.log.frames.release(frame);
            }
            return Ok(());
        }
        if let Some(goes_left) = leaf.split {
            return self.program_half(frame, rank, goes_left, records);
        }
        let count = self.form().node(self.log.frames.bytes(frame)).map_or(0, |node| node.count());
        if !leaf.removed || !self.join(frame, rank, count, records)? {
            self.rewrite_leaf(frame, rank, records)?;
        }
        Ok(())
    }

    /// Loads the page that stores a batch. Returns its page buffer.
    fn load_batch(&mut self, page: PageNumber) -> Result<usize, Fault<F::Error>> {
        if let Some(held) = self.log.frames.holding(page) {
            return Ok(held);
        }
        let reason = match self.log.read_raw(page, STORED)? {
            Err(fault) => damage_of(fault),
            Ok(header) => {
                let is_ours = self.log.is_ours(STORED) && header.identity == self.log.identity();
                if is_ours && stores_batch(&header) {
                    self.log.frames.hold(STORED, page);
                    return Ok(STORED);
                }
                Damage::OtherIndex
            }
        };
        Err(Fault::Corrupt { page, reason })
    }

    /// Makes the changes of a batch that a cut has left half made, as a mount found it.
    pub(super) fn make_again(&mut self) -> Result<(), Fault<F::Error>> {
        match self.batch.open() {
            Some(page) if IS_BUILT => {
                covered!("a batch that was cut is made by a mount");
                self.make(page)
            }
            _ => Ok(()),
        }
    }

    /// Finds the batch that a cut may have left half made.
    ///
    /// Looks from the newest page backwards.
    ///
    /// Cost: no read unless the newest page has the mark of a batch; then one for each page of it.
    pub(super) fn find_batch(
        &mut self,
        newest: &PageHeader,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<(), Fault<F::Error>> {
        if !IS_BUILT {
            return Ok(());
        }
        let stored = self.batch.take_stored();
        // If no page came after the checkpoint, the batch that it names is open.
        let is_last = checkpoint.is_some_and(|found| found.last_sequence() == newest.sequence);
        let mark = mark_in(newest).filter(|_| !is_last);
        if !is_last && !is_half_made(newest) {
            return Ok(());
        }
        let mut walk = Walk::START;
        while let Some(block) = mark.and_then(|_| self.order.next(&mut walk)) {
            for place in (0..self.log.written(block, self.log.block_pages(), 1)?).rev() {
                let page = self.log.page_at(block, place);
                let Ok(header) = self.log.read_raw(page, 0)? else { continue };
                let sequence = header.sequence;
                if self.order.is_left_over(block, sequence)
                    || sequence > newest.sequence
                    || self.torn.suspects().exclude(block, sequence)
                {
                    continue;
                }
                if header.identity != newest.identity || !self.log.is_ours(0) {
                    return Ok(());
                }
                if self.is_stored(sequence) {
                    break;
                }
                match mark_in(&header).filter(|&found| Some(found) == mark) {
                    Some(mark) if stores_batch(&header) => {
                        self.batch.begin(page, mark);
                        return Ok(());
                    }
                    Some(_) => {}
                    // A page without the mark came after it: all of the batch was made.
                    None => return Ok(()),
                }
            }
        }
        if let Some(page) = stored
            && let Ok(header) = self.log.read_raw(page, 0)?
            && let Some(found) = mark_in(&header)
            && mark.is_none_or(|mark| mark == found)
            && stores_batch(&header)
            && header.identity == newest.identity
            && header.sequence <= newest.sequence
            && self.log.is_ours(0)
        {
            covered!("a checkpoint names the batch that was cut");
            self.batch.begin(page, found);
        }
        Ok(())
    }
}
