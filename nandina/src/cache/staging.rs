//! The write cache: staged pages, and pages that were written.
//!
//! A staged page is part of the tree and not yet on the chip. This module calls no chip.

use super::lookup::{self, Lookup};
use super::set::{self, Pages};
use super::slots::{self, List, Places, Slots};
use super::{Relink, STAGED};
use crate::bytes::u32_at;
use crate::flash::PageNumber;

/// The most staged pages that one operation can program before it ends.
const RENAMED_MAX: usize = 48;

/// Bytes for the number of a staged page and its place on the chip.
const RENAMED_BYTES: usize = 8;

/// Bytes of a note of a slot.
///
/// The number that its page had while it was staged, or 0 (u32); the records that its label counts
/// (u32); the lowest level of its nodes (u8); the height of the tree if the page holds the newest
/// root, and 0 otherwise (u8); two unused bytes.
const NOTE_BYTES: usize = 12;

/// The write cache, if the build has one.
pub trait Written<'b>: Sized {
    /// Creates a cache of `slots` pages. Returns the unused rest of `ram`.
    ///
    /// `pages` is the number of pages of the chip.
    fn new(
        ram: &'b mut [u8],
        frame_bytes: usize,
        slots: usize,
        pages: u32,
        relink: Relink,
    ) -> (Self, &'b mut [u8]);

    /// Forgets everything.
    fn clear(&mut self) {}

    /// The bytes of a slot.
    fn bytes(&self, slot: usize) -> &[u8] {
        let _ = slot;
        &[]
    }

    /// The bytes of a slot, mutable.
    fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        let _ = slot;
        &mut []
    }

    /// The slot that holds `page`.
    fn find(&self, page: u32) -> Option<usize> {
        let _ = page;
        None
    }

    /// Keeps a page that was programmed without being staged.
    ///
    /// Returns `false` if there is no write cache.
    fn remember(&mut self, page: PageNumber, bytes: &[u8]) -> bool {
        let _ = (page, bytes);
        false
    }

    /// Removes the page from its slot.
    fn forget(&mut self, page: u32) {
        let _ = page;
    }
}

/// No write cache.
#[cfg(feature = "read-cache")]
pub struct NoStaging;

#[cfg(feature = "read-cache")]
impl<'b> Written<'b> for NoStaging {
    fn new(ram: &'b mut [u8], _: usize, _: usize, _: u32, _: Relink) -> (Self, &'b mut [u8]) {
        (Self, ram)
    }
}

/// A write cache, possibly of zero pages.
pub struct Staging<'b> {
    slots: Slots<'b>,
    notes: &'b mut [u8],
    /// Slots of pages that were staged and are on the chip, by their former numbers.
    numbers: Lookup<'b>,
    renamed: &'b mut [u8],
    renamed_count: usize,
    /// Pages of the chip superseded by pages that are not all on the chip.
    superseded: Pages<'b>,
    next_number: u32,
    staged: u32,
    /// The slot of the newest staged root.
    root: Option<u16>,
    relink: Relink,
}

/// Bytes of RAM for a write cache of `slots` pages.
///
/// `pages` is the number of pages of the chip.
pub const fn ram_needed(frame_bytes: usize, slots: usize, pages: u32) -> usize {
    if slots == 0 {
        return 0;
    }
    slots::ram_needed(frame_bytes, slots)
        + slots * NOTE_BYTES
        + lookup::bytes_for(slots)
        + RENAMED_MAX * RENAMED_BYTES
        + set::ram_needed(pages)
}

impl<'b> Written<'b> for Staging<'b> {
    fn new(
        ram: &'b mut [u8],
        frame_bytes: usize,
        slots: usize,
        pages: u32,
        relink: Relink,
    ) -> (Self, &'b mut [u8]) {
        let any = slots > 0;
        let (account, rest) = Slots::new(ram, frame_bytes, slots);
        let (notes, rest) = rest.split_at_mut(slots * NOTE_BYTES);
        let (numbers, rest) = rest.split_at_mut(lookup::bytes_for(slots));
        let (renamed, rest) = rest.split_at_mut(if any { RENAMED_MAX * RENAMED_BYTES } else { 0 });
        let (superseded, rest) =
            if any { Pages::new(rest, pages) } else { (Pages::nothing(), rest) };
        notes.fill(0);
        let staging = Self {
            slots: account,
            notes,
            numbers: Lookup::new(numbers),
            renamed,
            renamed_count: 0,
            superseded,
            next_number: 0,
            staged: 0,
            root: None,
            relink,
        };
        (staging, rest)
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.notes.fill(0);
        self.numbers.clear();
        self.superseded.clear();
        (self.renamed_count, self.staged, self.root) = (0, 0, None);
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        self.slots.bytes(slot)
    }

    fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        self.slots.bytes_and_places(slot).0
    }

    fn find(&self, page: u32) -> Option<usize> {
        self.slots.find(page)
    }

    fn remember(&mut self, page: PageNumber, bytes: &[u8]) -> bool {
        // Otherwise, pages would not be evicted in the order of their allocation.
        debug_assert!(self.staged == 0, "page {} is programmed before what is staged", page.0);
        if let Some(slot) = self.take() {
            self.slots.put(slot, page.0, List::Clean, bytes);
        }
        self.slots.count() > 0
    }

    fn forget(&mut self, page: u32) {
        if let Some(slot) = self.slots.find(page) {
            self.lose_number(slot);
            self.slots.forget(slot);
        }
    }
}

impl Staging<'_> {
    /// Takes a slot for a new page ([`Slots::take`]).
    fn take(&mut self) -> Option<usize> {
        let slot = self.slots.take()?;
        self.lose_number(slot);
        Some(slot)
    }

    /// The number that the page in `slot` had while it was staged, or 0.
    fn number(&self, slot: usize) -> u32 {
        number(self.notes, slot)
    }

    /// Forgets the number that the page in `slot` had while it was staged.
    fn lose_number(&mut self, slot: usize) {
        let (notes, known_as) = (&*self.notes, self.number(slot));
        if known_as != 0 {
            self.numbers.remove(known_as, |slot| number(notes, slot));
            self.set_number(slot, 0);
        }
    }

    fn set_number(&mut self, slot: usize, number: u32) {
        self.notes[slot * NOTE_BYTES..][..4].copy_from_slice(&number.to_le_bytes());
    }

    fn note(&mut self, slot: usize) -> &mut [u8] {
        &mut self.notes[slot * NOTE_BYTES..][..NOTE_BYTES]
    }

    /// The function that changes each pointer of a page.
    pub const fn relink(&self) -> Relink {
        self.relink
    }

    /// Whether there is a write cache of at least one page.
    pub const fn stages(&self) -> bool {
        self.slots.count() > 0
    }

    /// The number of staged pages that are part of the tree.
    pub const fn staged(&self) -> u32 {
        self.staged
    }

    /// Pages on the chip that leave the tree once all staged pages are on the chip.
    pub const fn superseded_pages(&self) -> u32 {
        self.superseded.len()
    }

    /// Whether every page can still be resolved if an operation stages `pages` more.
    pub const fn has_room_for(&self, pages: usize) -> bool {
        let pages = self.staged as usize + pages;
        pages <= self.slots.count() || pages <= RENAMED_MAX
    }

    /// Stages a page. Returns its temporary number, or `None` if all slots are staged.
    pub fn stage(&mut self, bytes: &[u8], lowest: u8, height: u8, records: u32) -> Option<u32> {
        let slot = self.take()?;
        if height > 0 {
            // The page holds the new root.
            self.forget_root();
            self.root = Some(slot as u16);
        }
        self.next_number = (self.next_number + 1) % (STAGED - 1);
        let page = STAGED | self.next_number;
        self.slots.put(slot, page, List::Staged, bytes);
        let note = self.note(slot);
        note[4..8].copy_from_slice(&records.to_le_bytes());
        note[8..].copy_from_slice(&[lowest, height, 0, 0]);
        self.staged += 1;
        Some(page)
    }

    /// Notes that the running operation supersedes the staged page `page`.
    pub fn supersede(&mut self, page: u32) {
        if let Some(slot) = self.slots.find(page) {
            self.slots.shift(slot, List::Staged, List::Superseded);
            self.staged -= 1;
        }
    }

    /// The staged page to program next, in the order of allocation.
    pub fn next_pending(&self) -> Option<Pending> {
        let slot = self.slots.first(List::Staged)?;
        let note = &self.notes[slot * NOTE_BYTES..][..NOTE_BYTES];
        let (lowest, height, records) = (note[8], note[9], u32_at(note, 4));
        Some(Pending { slot, page: self.slots.page(slot), lowest, height, records })
    }

    /// Records that the page of `pending` is now on the chip as `page`.
    pub fn programmed(&mut self, pending: &Pending, page: PageNumber) {
        let Pending { slot, page: known_as, .. } = *pending;
        self.staged -= 1;
        self.slots.rename(slot, page.0);
        self.slots.shift(slot, List::Staged, List::Clean);
        self.set_number(slot, known_as);
        self.numbers.insert(known_as, slot);
        if self.renamed_count < RENAMED_MAX {
            let at = self.renamed_count * RENAMED_BYTES;
            let entry = &mut self.renamed[at..][..RENAMED_BYTES];
            entry[..4].copy_from_slice(&known_as.to_le_bytes());
            entry[4..].copy_from_slice(&page.0.to_le_bytes());
            self.renamed_count += 1;
        }
    }

    /// The current number of a page that may have been staged under this number.
    pub fn resolve(&self, page: u32) -> u32 {
        if page & STAGED == 0 {
            return page;
        }
        let renamed = &self.renamed[..self.renamed_count * RENAMED_BYTES];
        Names { places: self.slots.places(), notes: self.notes, numbers: &self.numbers, renamed }
            .resolve(page)
    }

    /// The bytes of a slot, mutable, and the resolver for the pages it points to.
    pub fn bytes_and_names(&mut self, slot: usize) -> (&mut [u8], Names<'_>) {
        let (bytes, places) = self.slots.bytes_and_places(slot);
        let renamed = &self.renamed[..self.renamed_count * RENAMED_BYTES];
        (bytes, Names { places, notes: self.notes, numbers: &self.numbers, renamed })
    }

    /// Frees the slots of superseded pages. Returns whether there were any.
    ///
    /// Called when the operation has no more use for them.
    pub fn drop_superseded(&mut self) -> bool {
        let mut dropped = false;
        while let Some(slot) = self.slots.first(List::Superseded) {
            self.slots.drop_from(List::Superseded, slot);
            dropped = true;
        }
        dropped
    }

    /// Notes that no staged page holds the root of a complete tree.
    pub fn forget_root(&mut self) {
        if let Some(slot) = self.root.take() {
            self.note(slot.into())[9] = 0;
        }
    }

    /// Whether staged pages were programmed since the last operation ended.
    pub const fn spilled(&self) -> bool {
        self.renamed_count > 0
    }

    /// Ends the operation: the former numbers are no longer needed.
    pub fn end_operation(&mut self) {
        self.renamed_count = 0;
        self.drop_superseded();
    }

    /// Notes that pages which are not all on the chip supersede `page`.
    pub fn note_superseded(&mut self, page: PageNumber) {
        self.superseded.insert(page);
    }

    /// Removes one of the superseded pages and returns it.
    ///
    /// All of them lie at `from` or after it.
    pub fn take_superseded(&mut self, from: u32) -> Option<PageNumber> {
        self.superseded.take(from)
    }
}

/// The number that the page in `slot` had while it was staged, or 0.
fn number(notes: &[u8], slot: usize) -> u32 {
    u32_at(notes, slot * NOTE_BYTES)
}

/// A staged page to be programmed.
#[derive(Clone, Copy)]
pub struct Pending {
    pub slot: usize,
    pub page: u32,
    pub lowest: u8,
    pub height: u8,
    pub records: u32,
}

/// Resolves the numbers of staged pages.
pub struct Names<'c> {
    places: Places<'c>,
    notes: &'c [u8],
    numbers: &'c Lookup<'c>,
    renamed: &'c [u8],
}

impl Names<'_> {
    /// The current number of a page that may have been staged under this number.
    pub fn resolve(&self, page: u32) -> u32 {
        if page & STAGED == 0 {
            return page;
        }
        if let Some(slot) = self.numbers.find(page, |slot| number(self.notes, slot)) {
            return self.places.page(slot);
        }
        // A page that was programmed in the middle of an operation may have been evicted since.
        let mut renamed = self.renamed.chunks_exact(RENAMED_BYTES);
        let entry = renamed.find(|entry| u32_at(entry, 0) == page);
        entry.map_or(page, |entry| u32_at(entry, 4))
    }
}
