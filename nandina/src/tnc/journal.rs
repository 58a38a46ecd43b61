//! The journal: the changes since the last commit, in pages of their own.
//!
//! Without a write buffer each change has its page, or a slot of one (`slots.rs` beside this). With
//! one, changes wait in RAM until a page is full, or as many wait as the options allow, or they
//! have waited long enough, or they are flushed. They are made in the nodes at once, so reads see
//! them. This file finds no page again (`replay.rs` beside this does).
//!
//! ```text
//! | count: u16 | kind: u8, key, value | kind, key, value | ... |
//! ```

use super::TncIndex;
use super::bounds;
use super::changes::COUNT_BYTES;
use super::form::Form;
use crate::engine::{Change, Options};
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::gc::PageOwner;
use crate::log::Label;

/// The change inserts or replaces a record.
pub const PUT: u8 = 1;

/// The change removes a record. Its value has no meaning.
pub const REMOVE: u8 = 0;

/// The tag of a page of the journal.
///
/// The tag of a page of nodes is the number of its nodes.
pub const JOURNAL: u8 = 0;

/// Marks the pointer to a change that waits for its page.
const WAITS: u32 = 1 << 31;

/// The pointer to the waiting change with this number.
pub const fn pointer_to_waiting(at: usize) -> u32 {
    WAITS | at as u32
}

/// The number of the waiting change to which `pointer` leads.
pub fn waiting_in(pointer: u32) -> Option<usize> {
    (pointer & WAITS != 0).then_some((pointer & !WAITS) as usize)
}

/// Changes that wait for their page.
pub struct Group<'b> {
    bytes: &'b mut [u8],
    entry_bytes: usize,
    key_bytes: usize,
    /// Changes in a page of the journal.
    page_entries: usize,
    count: usize,
    /// Records before the changes that wait.
    records: u32,
    /// The most changes that wait.
    most: usize,
    ticks_max: u32,
    ticks: u32,
}

impl<'b> Group<'b> {
    pub fn new(bytes: &'b mut [u8], form: &Form, options: &Options) -> Self {
        let most = bounds::group_max(form, bytes.len(), options);
        Self {
            bytes,
            entry_bytes: form.entry_bytes(),
            key_bytes: form.key_bytes,
            page_entries: form.entries().max(1),
            count: 0,
            records: 0,
            most,
            ticks_max: options.write_buffer_ticks.unwrap_or(0),
            ticks: 0,
        }
    }

    /// The number of changes that wait.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether changes ever wait.
    pub const fn is_used(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The most changes that wait; without a limit where none ever waits.
    pub const fn most(&self) -> usize {
        if self.is_used() { self.most } else { usize::MAX }
    }

    /// Whether this many changes find room beside one another, in one page.
    pub const fn has_room_for(&self, changes: usize) -> bool {
        let in_page = self.page_entries - self.count % self.page_entries;
        changes <= in_page && self.count + changes <= self.most()
    }

    /// Records before the changes that wait.
    pub const fn records_before(&self) -> u32 {
        self.records
    }

    /// There are this many records before the changes that wait.
    pub const fn note_records(&mut self, records: u32) {
        self.records = records;
    }

    const fn is_full(&self) -> bool {
        self.count >= self.most
    }

    /// Forgets the changes: they are durable.
    pub const fn clear(&mut self) {
        (self.count, self.ticks) = (0, 0);
    }

    /// Forgets the changes that were added after the first `count`.
    const fn forget_behind(&mut self, count: usize) {
        self.count = count;
    }

    /// Counts a tick. Returns whether the oldest change has waited long enough.
    pub const fn tick(&mut self) -> bool {
        if self.count == 0 || self.ticks_max == 0 {
            return false;
        }
        self.ticks += 1;
        self.ticks >= self.ticks_max
    }

    /// Adds a change. Its value replaces an earlier one of the same key.
    ///
    /// It does so only if both share a page. After a cut a page is either there or not, so the
    /// changes that are there are still a first part of all changes. A removal replaces nothing,
    /// and nothing replaces it: without it, a replay would split and merge other nodes, and RAM may
    /// have no room for those.
    ///
    /// Returns the number of the change.
    fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> usize {
        let first = self.count / self.page_entries * self.page_entries;
        let same = (first..self.count).rev().find(|&at| self.entry(at).0 == key);
        let same = same.filter(|&at| value.is_some() && self.entry(at).1.is_some());
        match same {
            Some(at) => {
                write_entry(self.entry_mut(at), key, value);
                at
            }
            None => self.push(key, value),
        }
    }

    /// Adds a change after all others. Returns its number.
    fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> usize {
        write_entry(self.entry_mut(self.count), key, value);
        self.count += 1;
        self.count - 1
    }

    fn entry_mut(&mut self, at: usize) -> &mut [u8] {
        let start = at * self.entry_bytes;
        &mut self.bytes[start..start + self.entry_bytes]
    }

    /// Key and value of a change that waits; no value for a removal.
    pub fn entry(&self, at: usize) -> (&[u8], Option<&[u8]>) {
        let entry = &self.bytes[at * self.entry_bytes..][..self.entry_bytes];
        let (key, value) = entry[1..].split_at(self.key_bytes);
        (key, (entry[0] == PUT).then_some(value))
    }

    fn some(&self, from: usize, count: usize) -> &[u8] {
        &self.bytes[from * self.entry_bytes..][..count * self.entry_bytes]
    }
}

fn write_entry(out: &mut [u8], key: &[u8], value: Option<&[u8]>) {
    out[0] = if value.is_some() { PUT } else { REMOVE };
    let (to_key, to_value) = out[1..].split_at_mut(key.len());
    to_key.copy_from_slice(key);
    match value {
        Some(value) => to_value.copy_from_slice(value),
        None => to_value.fill(0),
    }
}

impl<F: Flash> TncIndex<'_, F> {
    /// Writes a change to the journal, or lets it wait there.
    ///
    /// `records` is the number of records after the change. Returns a pointer to it.
    pub(super) fn note_change(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        if self.group.is_used() {
            if self.group.is_full() {
                // The device failed when the change that filled the group was made.
                self.write_group()?;
            }
            self.begin_group();
            return Ok(pointer_to_waiting(self.group.add(key, value)));
        }
        if self.journal.has_slots() {
            return self.write_slot(key, value, records);
        }
        self.write_changes([(key, value)].into_iter(), records)
    }

    /// Writes the changes of a batch, which fit in one page, or lets them wait.
    ///
    /// Returns a pointer to the first; those to the others follow it.
    pub(super) fn note_changes(
        &mut self,
        changes: &[Change<'_>],
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let changes = changes.iter().map(|change| (change.key(), change.value()));
        if self.group.is_used() {
            self.begin_group();
            let first = self.group.len();
            changes.for_each(|(key, value)| {
                self.group.push(key, value);
            });
            return Ok(pointer_to_waiting(first));
        }
        self.write_changes(changes, records)
    }

    fn begin_group(&mut self) {
        if self.group.len() == 0 {
            self.group.note_records(self.tree.records());
        }
    }

    /// Programs a page of the journal with these changes.
    ///
    /// Returns a pointer to the first.
    fn write_changes<'c>(
        &mut self,
        changes: impl ExactSizeIterator<Item = (&'c [u8], Option<&'c [u8]>)>,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let (frame, entry_bytes) = (self.building(), self.arena.form.entry_bytes());
        let area = self.space.area_mut(frame);
        area.fill(0xFF);
        let (count, entries) = area.split_at_mut(COUNT_BYTES);
        count.copy_from_slice(&(changes.len() as u16).to_le_bytes());
        for ((key, value), entry) in changes.zip(entries.chunks_exact_mut(entry_bytes)) {
            write_entry(entry, key, value);
        }
        let page = self.program_journal(frame, 1, records)?;
        Ok(self.arena.form.pointer(page.0, 0))
    }

    /// Writes the pending changes if no more changes may wait.
    ///
    /// If that fails, the newest change is refused. It was already made in the nodes in RAM, so
    /// these are read again, and the other changes are made in them.
    pub(super) fn end_change(&mut self) -> Result<(), Fault<F::Error>> {
        self.end_changes(self.group.len().saturating_sub(1))
    }

    /// Does the same for a batch, before which `waiting` changes were pending.
    pub(super) fn end_changes(&mut self, waiting: usize) -> Result<(), Fault<F::Error>> {
        if !self.group.is_used() || !self.group.is_full() {
            return Ok(());
        }
        let written = self.write_group();
        if written.is_err() {
            self.group.forget_behind(waiting);
            self.state.doubt();
        }
        written
    }

    /// Writes the changes that wait, as many to a page as fit.
    ///
    /// Where room is short a commit makes them durable instead, unless it would need these pages.
    pub(super) fn write_group(&mut self) -> Result<(), Fault<F::Error>> {
        let (frame, apart) = (self.building(), self.arena.form.apart());
        let mut from = 0;
        while from < self.group.len() {
            let kept = self.reserve_pages() + self.commit_pages();
            if !apart && self.space.room() <= kept {
                return self.commit();
            }
            let count = self.arena.form.entries().min(self.group.len() - from);
            let area = self.space.area_mut(frame);
            area.fill(0xFF);
            area[..COUNT_BYTES].copy_from_slice(&(count as u16).to_le_bytes());
            let entries = self.group.some(from, count);
            area[COUNT_BYTES..][..entries.len()].copy_from_slice(entries);
            let before = self.state.doubt();
            let page = self.program_journal(frame, 1, self.tree.records())?;
            if apart {
                self.place_group(from..from + count, page)?;
            }
            self.state.end_doubt(before);
            from += count;
        }
        self.group.clear();
        Ok(())
    }

    /// Programs the page of the journal in `frame`.
    ///
    /// The block of that page is not free before the next commit. The page itself is garbage, until
    /// a leaf points to a value in it.
    pub(super) fn program_journal(
        &mut self,
        frame: usize,
        lowest: u8,
        records: u32,
    ) -> Result<PageNumber, Fault<F::Error>> {
        let page = self.program(frame, JOURNAL, Label { lowest, height: 0, records })?;
        let block = self.space.log.geometry().block_of(page);
        self.space.log.blocks.hold(block);
        self.space.log.supersede(page);
        self.journal.note_page(block);
        Ok(page)
    }

    /// The page buffer in which pages are built.
    pub(super) const fn building(&self) -> usize {
        self.space.log.frames.count() - 1
    }

    /// Programs the page in `frame`.
    ///
    /// If this fails, only another mount can find out what is on the chip.
    pub(super) fn program(
        &mut self,
        frame: usize,
        tag: u8,
        Label { lowest, height, records }: Label,
    ) -> Result<PageNumber, Fault<F::Error>> {
        let before = self.state.doubt();
        self.space.log.set_tag(tag);
        let page = self.space.program(frame, lowest, height, records)?;
        self.state.end_doubt(before);
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::profile::SLC;

    #[test]
    fn a_value_replaces_a_value_and_a_removal_stays_where_it_is() {
        let options = Options::new(2, 1).write_buffer(1);
        let form = Form::new(&SLC.geometry, &options);
        let mut bytes = [0; 512];
        let mut group = Group::new(&mut bytes, &form, &options);
        let changes: [(&[u8], Option<&[u8]>); 6] = [
            (b"aa", Some(b"1")),
            (b"bb", Some(b"2")),
            (b"aa", Some(b"3")),
            (b"bb", None),
            (b"bb", Some(b"4")),
            (b"bb", Some(b"5")),
        ];
        let places = changes.map(|(key, value)| group.add(key, value));
        assert_eq!(places, [0, 1, 0, 2, 3, 3]);
        let found: [(&[u8], Option<&[u8]>); 4] =
            [(b"aa", Some(b"3")), (b"bb", Some(b"2")), (b"bb", None), (b"bb", Some(b"5"))];
        assert_eq!(group.len(), found.len());
        found.iter().enumerate().for_each(|(at, entry)| assert_eq!(group.entry(at), *entry));
    }
}
