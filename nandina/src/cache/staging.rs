//! The write cache: pages that are staged, that is part of the tree and not yet on the chip, and
//! pages that were written. Nothing here calls a chip.

use super::lookup::{self, Lookup};
use super::set::{self, Pages};
use super::slots::{self, List, Places, Slots};
use super::{Relink, STAGED};
use crate::bytes::u32_at;
use crate::flash::PageNumber;

/// Staged pages that can be programmed in the middle of one operation.
const RENAMED_MAX: usize = 48;

/// Bytes of a staged page's number and its place on the chip.
const RENAMED_BYTES: usize = 8;

/// Bytes of a note of a slot: the number that its page had while it was staged, or 0 (u32), the
/// records that it tells of (u32), the lowest level of its nodes (u8), the height of the tree if it
/// holds the root and no newer page does, else 0 (u8), and two that are not used.
const NOTE_BYTES: usize = 12;

/// The write cache, where there can be one.
pub trait Written<'b>: Sized {
    /// A cache of `slots` pages on a chip of `pages`, in the first bytes of `ram`, and the rest of
    /// it.
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

    /// The bytes of a slot, to change.
    fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        let _ = slot;
        &mut []
    }

    /// The slot that holds `page`.
    fn find(&self, page: u32) -> Option<usize> {
        let _ = page;
        None
    }

    /// Keeps a page that was programmed without being staged. Returns whether there is a write
    /// cache.
    fn remember(&mut self, page: PageNumber, bytes: &[u8]) -> bool {
        let _ = (page, bytes);
        false
    }

    /// The page leaves its slot.
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

/// A write cache, perhaps of no pages.
pub struct Staging<'b> {
    slots: Slots<'b>,
    notes: &'b mut [u8],
    /// Slots of pages that were staged and are on the chip, by the numbers that they had.
    numbers: Lookup<'b>,
    renamed: &'b mut [u8],
    renamed_count: usize,
    /// Pages of the chip that are superseded by pages which are not all on it.
    superseded: Pages<'b>,
    next_number: u32,
    staged: u32,
    /// The slot that was last given the root.
    root: Option<u16>,
    relink: Relink,
}

/// Bytes of RAM for a write cache of so many pages on a chip of `pages`.
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
        // Else pages would not leave in the order in which they were allocated.
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
    /// A slot for a page that is to be kept ([`Slots::take`]).
    fn take(&mut self) -> Option<usize> {
        let slot = self.slots.take()?;
        self.lose_number(slot);
        Some(slot)
    }

    /// The number that the page in `slot` had while it was staged, or 0.
    fn number(&self, slot: usize) -> u32 {
        number(self.notes, slot)
    }

    /// The page in `slot` was never staged, as far as is known.
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

    /// What changes each pointer of a page.
    pub const fn relink(&self) -> Relink {
        self.relink
    }

    /// Whether pages are staged at all.
    pub const fn stages(&self) -> bool {
        self.slots.count() > 0
    }

    /// Staged pages that are part of the tree.
    pub const fn staged(&self) -> u32 {
        self.staged
    }

    /// Pages on the chip that are part of the tree no more, once what is staged is on the chip.
    pub const fn superseded_pages(&self) -> u32 {
        self.superseded.len()
    }

    /// Whether an operation that stages `pages` can begin without any staged page being lost sight
    /// of.
    pub const fn has_room_for(&self, pages: usize) -> bool {
        let pages = self.staged as usize + pages;
        pages <= self.slots.count() || pages <= RENAMED_MAX
    }

    /// Stages a page and returns its number for now; `None` if every slot is staged.
    pub fn stage(&mut self, bytes: &[u8], lowest: u8, height: u8, records: u32) -> Option<u32> {
        let slot = self.take()?;
        if height > 0 {
            // From now on, this is the root.
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

    /// The running operation supersedes `page`, which is staged.
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

    /// The page of `pending` is now on the chip as `page`.
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

    /// Where the page with this number is now.
    pub fn resolve(&self, page: u32) -> u32 {
        if page & STAGED == 0 {
            return page;
        }
        let renamed = &self.renamed[..self.renamed_count * RENAMED_BYTES];
        Names { places: self.slots.places(), notes: self.notes, numbers: &self.numbers, renamed }
            .resolve(page)
    }

    /// The bytes of a slot, and where pages are now that they may point to.
    pub fn bytes_and_names(&mut self, slot: usize) -> (&mut [u8], Names<'_>) {
        let (bytes, places) = self.slots.bytes_and_places(slot);
        let renamed = &self.renamed[..self.renamed_count * RENAMED_BYTES];
        (bytes, Names { places, notes: self.notes, numbers: &self.numbers, renamed })
    }

    /// Superseded pages leave their slots: the operation has no more use for them. Returns whether
    /// there were any.
    pub fn drop_superseded(&mut self) -> bool {
        let mut dropped = false;
        while let Some(slot) = self.slots.first(List::Superseded) {
            self.slots.drop_from(List::Superseded, slot);
            dropped = true;
        }
        dropped
    }

    /// No staged page holds the root of a tree that is whole.
    pub fn forget_root(&mut self) {
        if let Some(slot) = self.root.take() {
            self.note(slot.into())[9] = 0;
        }
    }

    /// Whether pages were programmed since the last operation ended.
    pub const fn spilled(&self) -> bool {
        self.renamed_count > 0
    }

    /// The operation ends, and with it the need for the numbers of before.
    pub fn end_operation(&mut self) {
        self.renamed_count = 0;
        self.drop_superseded();
    }

    /// A page of the chip is superseded by pages that are not all on it.
    pub fn note_superseded(&mut self, page: PageNumber) {
        self.superseded.insert(page);
    }

    /// Takes one of the superseded pages, all of which are at page `from` or behind.
    pub fn take_superseded(&mut self, from: u32) -> Option<PageNumber> {
        self.superseded.take(from)
    }
}

/// The number that the page in `slot` had while it was staged, or 0.
fn number(notes: &[u8], slot: usize) -> u32 {
    u32_at(notes, slot * NOTE_BYTES)
}

/// A staged page that is to be programmed.
#[derive(Clone, Copy)]
pub struct Pending {
    pub slot: usize,
    pub page: u32,
    pub lowest: u8,
    pub height: u8,
    pub records: u32,
}

/// What staged pages are called now.
pub struct Names<'c> {
    places: Places<'c>,
    notes: &'c [u8],
    numbers: &'c Lookup<'c>,
    renamed: &'c [u8],
}

impl Names<'_> {
    /// Where the page with this number is now.
    pub fn resolve(&self, page: u32) -> u32 {
        if page & STAGED == 0 {
            return page;
        }
        if let Some(slot) = self.numbers.find(page, |slot| number(self.notes, slot)) {
            return self.places.page(slot);
        }
        // A page that was programmed in the middle of an operation may have left its slot since.
        let mut renamed = self.renamed.chunks_exact(RENAMED_BYTES);
        let entry = renamed.find(|entry| u32_at(entry, 0) == page);
        entry.map_or(page, |entry| u32_at(entry, 4))
    }
}
