//! Values that stay in the journal, where they were first written.
//!
//! If the options say so, a leaf has a pointer for each record: the page of the journal, and the
//! number of the change in it (TNC paper, section 6: the leaves stay in the journal). A page of the
//! journal is needed as long as a leaf points to it. Garbage collection writes its values to
//! another page and changes the pointers, and the next commit makes both durable. Such a page is
//! none of the journal: a mount does not make its changes again, so a cut before the commit leaves
//! every value where it was.
//!
//! A change that waits for its page has no place yet. Its pointer is its number in the group,
//! marked by a bit. No leaf with such a pointer is written: a commit writes the group first.

use core::ops::Range;

use super::TncIndex;
use super::apply::{Key, Value};
use super::bounds::commit_pages;
use super::changes::{COUNT_BYTES, entries_in, entry_start, has_slots, slot_range, slots_in};
use super::form::MOVED;
use super::journal::{PUT, pointer_to_waiting, waiting_in};
use super::mount::is_journal;
use crate::bytes::u16_at;
use crate::engine::RecordSizes;
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::gc::PageOwner;
use crate::log::Label;
use crate::node::PageHeader;
use crate::node::slot::{self, State, TAG_BYTES};

/// Whether a page with this header holds values, of the journal or moved ones.
const fn holds_values(header: &PageHeader) -> bool {
    is_journal(header) || (header.tag == MOVED && header.height == 0 && header.lowest > 0)
}

/// Where the key of a record begins in the area of a page with this header.
///
/// `None` if the change with the number `at` is a removal, or is not there.
pub fn record_at(header: &PageHeader, area: &[u8], sizes: RecordSizes, at: usize) -> Option<usize> {
    if !holds_values(header) {
        return None;
    }
    if has_slots(header) && header.tag != MOVED {
        if at >= slots_in(area.len(), sizes) {
            return None;
        }
        let range = slot_range(area.len(), sizes, at);
        let start = range.start + TAG_BYTES;
        let is_put = matches!(slot::state(&area[range]), State::Whole(kind) if kind.puts);
        return is_put.then_some(start);
    }
    let start = entry_start(sizes, at);
    let is_there = at < usize::from(u16_at(area, 0)) && at < entries_in(area.len(), sizes);
    (is_there && area[start] == PUT).then_some(start + 1)
}

/// Where the value of a record is.
#[derive(Clone, Copy)]
pub enum ValueAt {
    /// In its leaf.
    Leaf,
    /// In this page buffer, from this offset on.
    Frame(usize, usize),
    /// In the waiting change with this number.
    Group(usize),
}

/// What became of the needed values of some pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// There were none.
    Nothing,
    /// Some moved, from the first page on.
    Some,
    /// There is no room to move any.
    NoRoom,
}

impl<F: Flash> TncIndex<'_, F> {
    /// What a leaf stores for a change: its value, or where that is.
    pub(super) const fn stored<'v>(&self, value: &'v [u8], pointer: u32) -> Value<'v> {
        if self.arena.form.apart() { Value::At(pointer) } else { Value::Given(value) }
    }

    /// Finds the value of the record at `index` of `leaf`.
    ///
    /// Cost: a read, if values are in the journal.
    #[inline(always)]
    pub(super) fn find_value(
        &mut self,
        leaf: u16,
        index: usize,
    ) -> Result<ValueAt, Fault<F::Error>> {
        if self.arena.form.apart() { self.follow(leaf, index) } else { Ok(ValueAt::Leaf) }
    }

    /// Finds the value to which the record at `index` of `leaf` points.
    fn follow(&mut self, leaf: u16, index: usize) -> Result<ValueAt, Fault<F::Error>> {
        let form = self.arena.form;
        let pointer = self.arena.node(leaf).pointer(index);
        if let Some(at) = waiting_in(pointer) {
            return Ok(ValueAt::Group(at));
        }
        let (page, at) = form.place_of(pointer);
        let frame = self.space.load(page, 0)?;
        let bytes = self.space.log.frames.bytes(frame);
        match self.record_in(frame, at) {
            Some(start)
                if &bytes[start..start + form.key_bytes] == self.arena.node(leaf).key(index) =>
            {
                Ok(ValueAt::Frame(frame, start + form.key_bytes))
            }
            _ => Err(Fault::Corrupt { page: PageNumber(page), reason: Damage::LacksValue }),
        }
    }

    /// The value of the record at `index` of `leaf`, which was found `at` a place.
    #[inline(always)]
    pub(super) fn value(&self, leaf: u16, index: usize, at: ValueAt) -> &[u8] {
        match at {
            ValueAt::Leaf => self.arena.node(leaf).payload(index),
            ValueAt::Frame(frame, start) => {
                &self.space.log.frames.bytes(frame)[start..start + self.arena.form.value_bytes]
            }
            ValueAt::Group(at) => self.group.entry(at).1.unwrap_or(&[]),
        }
    }

    /// Whether the record at `index` of `leaf` has this value.
    ///
    /// A value that cannot be read is another one.
    #[inline(always)]
    pub(super) fn has_value(
        &mut self,
        leaf: u16,
        index: usize,
        value: &[u8],
    ) -> Result<bool, Fault<F::Error>> {
        match self.find_value(leaf, index) {
            Ok(at) => Ok(self.value(leaf, index, at) == value),
            Err(Fault::Corrupt { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Where the key of a record begins in the page in `frame`, if it has that record.
    fn record_in(&self, frame: usize, at: usize) -> Option<usize> {
        let area = &self.space.log.frames.bytes(frame)[..self.space.area_bytes()];
        record_at(&self.space.log.header(frame), area, self.arena.form.sizes(), at)
    }

    /// Whether a change of the journal puts a record, and where its key begins.
    pub(super) fn entry_at(&self, at: usize, frame: usize) -> (bool, usize) {
        let start = entry_start(self.arena.form.sizes(), at);
        (self.space.log.frames.bytes(frame)[start] == PUT, start + 1)
    }

    /// Notes that a leaf points to a value.
    pub(super) fn claim_value(&mut self, pointer: u32) {
        if waiting_in(pointer).is_some() {
            return;
        }
        let ((page, _), numbers) = (self.arena.form.place_of(pointer), self.arena.form.numbers());
        if self.live.count(page, numbers).unwrap_or(0) == 0 {
            self.space.log.blocks.set_valid(PageNumber(page), true);
        }
        self.live.add(page, numbers);
    }

    /// Notes that a leaf no longer points to a value.
    pub(super) fn retire_value(&mut self, pointer: u32) {
        if waiting_in(pointer).is_none() {
            self.retire(pointer);
        }
    }

    /// Lets a record of `leaf` point to another place, where its value is, too.
    pub(super) fn point(&mut self, leaf: u16, index: usize, to: u32) {
        let before = self.arena.node(leaf).pointer(index);
        if before == to {
            return;
        }
        self.arena.mark_dirty(leaf);
        self.arena.edit(leaf, |node| node.set_payload(index, &to.to_le_bytes()));
        self.claim_value(to);
        self.retire_value(before);
    }

    /// The leaf that points to this place for `key`, and the index there.
    fn pointing_to(
        &mut self,
        key: &[u8],
        place: u32,
    ) -> Result<Option<(u16, usize)>, Fault<F::Error>> {
        let leaf = self.descend(key)?;
        let node = self.arena.node(leaf);
        let index = node.search(key).ok().filter(|&index| node.pointer(index) == place);
        Ok(index.map(|index| (leaf, index)))
    }

    /// Lets `key` point to the place `to`, if it points to `from`.
    pub(super) fn repoint(
        &mut self,
        key: &[u8],
        from: u32,
        to: u32,
    ) -> Result<(), Fault<F::Error>> {
        if let Some((leaf, index)) = self.pointing_to(key, from)? {
            self.point(leaf, index, to);
        }
        Ok(())
    }

    /// Lets the leaves point to the page of the journal with these waiting changes.
    pub(super) fn place_group(
        &mut self,
        changes: Range<usize>,
        page: PageNumber,
    ) -> Result<(), Fault<F::Error>> {
        let form = self.arena.form;
        for at in changes.clone() {
            let (key, value) = self.group.entry(at);
            if value.is_none() {
                continue;
            }
            let key = Key::of(key);
            let to = form.pointer(page.0, at - changes.start);
            self.repoint(key.bytes(form.key_bytes), pointer_to_waiting(at), to)?;
        }
        Ok(())
    }

    /// Whether the leaf has a value that waits for its page.
    pub(super) fn has_waiting(&self, slot: u16) -> bool {
        let node = self.arena.node(slot);
        self.arena.form.apart()
            && self.group.len() > 0
            && self.arena.level(slot) == 1
            && (0..node.count()).any(|index| waiting_in(node.pointer(index)).is_some())
    }

    /// Lets the leaves that point to the page `before` point to the page in `frame`.
    ///
    /// Both have the same changes.
    pub(super) fn repoint_page(
        &mut self,
        before: PageNumber,
        page: PageNumber,
        frame: usize,
    ) -> Result<(), Fault<F::Error>> {
        let form = self.arena.form;
        for at in 0..form.numbers() {
            let Some(start) = self.record_in(frame, at) else { continue };
            let key = self.key_at(frame, start);
            let (from, to) = (form.pointer(before.0, at), form.pointer(page.0, at));
            self.repoint(key.bytes(form.key_bytes), from, to)?;
        }
        Ok(())
    }

    /// The key that begins at `start` in `frame`.
    pub(super) fn key_at(&self, frame: usize, start: usize) -> Key {
        Key::of(&self.space.log.frames.bytes(frame)[start..start + self.arena.form.key_bytes])
    }

    /// Whether the page holds changes, of which some may be needed.
    pub(super) fn holds_values(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        if !self.arena.form.apart() {
            return Ok(false);
        }
        let frame = self.space.load(page.0, 0)?;
        Ok(holds_values(&self.space.log.header(frame)))
    }

    /// Whether the page may have a needed node or value.
    fn may_be_needed(&self, page: PageNumber) -> bool {
        match self.live.count(page.0, self.arena.form.numbers()) {
            Some(count) => count > 0,
            None => self.space.log.blocks.is_valid(page),
        }
    }

    /// Whether a leaf points to a value in `page`.
    pub(super) fn has_needed_value(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        Ok(self.next_needed(&mut (page.0, 0), page.0 + 1)?.is_some())
    }

    /// The next needed value from `next` on, in pages before `end`.
    ///
    /// Returns the page buffer and where the key begins. `next` moves behind it.
    fn next_needed(
        &mut self,
        next: &mut (u32, usize),
        end: u32,
    ) -> Result<Option<(usize, usize)>, Fault<F::Error>> {
        let form = self.arena.form;
        while next.0 < end {
            let (page, at) = *next;
            *next = (page + 1, 0);
            if !self.may_be_needed(PageNumber(page)) {
                continue;
            }
            let frame = match self.space.load(page, 0) {
                // Where pages are searched for, garbage may be anything.
                Err(Fault::Corrupt { .. }) if self.space.log.blocks.searches() => continue,
                loaded => loaded?,
            };
            if at >= form.numbers() || !holds_values(&self.space.log.header(frame)) {
                continue;
            }
            *next = (page, at + 1);
            let Some(start) = self.record_in(frame, at) else { continue };
            let (key, place) = (self.key_at(frame, start), form.pointer(page, at));
            if self.pointing_to(key.bytes(form.key_bytes), place)?.is_some() {
                // The way to the leaf may have displaced the page.
                return Ok(Some((self.space.load(page, 0)?, start)));
            }
        }
        Ok(None)
    }

    /// Writes the needed values of these pages elsewhere, as many to a page as fit.
    ///
    /// It ends where room is short. The caller commits next. Cost: a page for as many values as fit
    /// in one, and the nodes above each value are written once.
    pub(super) fn move_values(&mut self, pages: Range<u32>) -> Result<Moved, Fault<F::Error>> {
        let (mut next, mut moved) = ((pages.start, 0), Moved::Nothing);
        let (form, height) = (self.arena.form, usize::from(self.tree.height()));
        loop {
            // Before the page buffer is used: nodes may be written ahead.
            self.make_dirty_room()?;
            let to = self.building();
            self.space.area_mut(to).fill(0xFF);
            let mut count = 0;
            while count < form.entries() {
                let Some((frame, start)) = self.next_needed(&mut next, pages.end)? else { break };
                let [from, into] = [start - 1, entry_start(form.sizes(), count)];
                self.copy_entry((frame, from), (to, into));
                count += 1;
            }
            if count == 0 {
                return Ok(moved);
            }
            let dirty = (self.arena.dirty() + count * height).min(self.dirty_max());
            if self.space.log.room() <= commit_pages(&form, dirty) {
                self.space.log.frames.release(to);
                return Ok(if moved == Moved::Nothing { Moved::NoRoom } else { moved });
            }
            moved = Moved::Some;
            covered!("garbage collection of tnc moves values");
            self.space.area_mut(to)[..COUNT_BYTES].copy_from_slice(&(count as u16).to_le_bytes());
            let label = Label { lowest: 1, height: 0, records: self.tree.records() };
            let page = self.program(to, MOVED, label)?;
            let block = self.space.log.geometry().block_of(page);
            self.space.log.blocks.hold(block);
            self.space.log.supersede(page);
            self.journal.note_block(block);
            self.state.note_move();
            for at in 0..count {
                // Room for the first was made before, so that a commit finds the page needed.
                if at > 0 {
                    self.make_dirty_room()?;
                }
                let frame = self.space.load(page.0, 0)?;
                let (_, start) = self.entry_at(at, frame);
                let key = self.key_at(frame, start);
                let leaf = self.descend(key.bytes(form.key_bytes))?;
                if let Ok(index) = self.arena.node(leaf).search(key.bytes(form.key_bytes)) {
                    self.point(leaf, index, form.pointer(page.0, at));
                }
            }
        }
    }

    /// Copies a put from a page buffer to another one.
    ///
    /// Both places are those of its kind, which is in front of its key.
    fn copy_entry(&mut self, (from, start): (usize, usize), (to, into): (usize, usize)) {
        let bytes = self.arena.form.entry_bytes();
        let (source, target) = self.space.log.frames.pair(from, to);
        target[into] = PUT;
        target[into + 1..into + bytes].copy_from_slice(&source[start + 1..start + bytes]);
    }

    /// Makes room in RAM for a path that becomes dirty.
    ///
    /// A path may have more nodes than a page that is written ahead.
    pub(super) fn make_dirty_room(&mut self) -> Result<(), Fault<F::Error>> {
        while self.arena.dirty() + usize::from(self.tree.height()) > self.dirty_max() {
            if self.empties_blocks() { self.write_ahead(false)? } else { self.commit()? }
        }
        Ok(())
    }
}
