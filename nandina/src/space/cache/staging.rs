//! Pages that are staged: part of the tree and not yet on the chip, in the slots of the write cache. Nothing here calls
//! a chip.

use super::slot::{Names, RENAMED_BYTES, SLOT_BYTES, Slot, State};
use super::{Cache, RENAMED_MAX, STAGED};
use crate::flash::PageNumber;
use crate::space::Relink;
use crate::space::kind::Nothing;

/// The account of a write cache, where there can be one.
pub trait Written: Sized {
    /// The account of `slots` slots.
    fn new(slots: usize, relink: Relink) -> Self;

    /// Slots of the write cache.
    fn slots(&self) -> usize;

    /// Nothing is staged.
    fn clear(&mut self);
}

impl Written for Nothing {
    fn new(_slots: usize, _relink: Relink) -> Self {
        Self
    }

    fn slots(&self) -> usize {
        0
    }

    fn clear(&mut self) {}
}

/// The account of a write cache.
pub struct Staging {
    writes: usize,
    next_staged: u32,
    staged: u32,
    superseded_pages: u32,
    renamed_count: usize,
    relink: Relink,
}

impl Written for Staging {
    fn new(slots: usize, relink: Relink) -> Self {
        Self {
            writes: slots,
            next_staged: 0,
            staged: 0,
            superseded_pages: 0,
            renamed_count: 0,
            relink,
        }
    }

    fn slots(&self) -> usize {
        self.writes
    }

    fn clear(&mut self) {
        (self.staged, self.superseded_pages, self.renamed_count) = (0, 0, 0);
    }
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

impl Cache<'_, Staging> {
    /// What tells a page where the pages stand that it points to.
    pub const fn relink(&self) -> Relink {
        self.written.relink
    }

    /// Whether pages are staged at all.
    pub const fn stages(&self) -> bool {
        self.written.writes > 0
    }

    /// Staged pages that are part of the tree.
    pub const fn staged(&self) -> u32 {
        self.written.staged
    }

    /// Pages on the chip that are part of the tree no more, once what is staged is on the chip.
    pub const fn superseded_pages(&self) -> u32 {
        self.written.superseded_pages
    }

    /// Whether an operation that stages `pages` can begin without any staged page being lost sight of.
    pub fn has_room_for(&self, pages: usize) -> bool {
        let staged = self.written.staged as usize;
        staged + pages <= self.written.writes || staged + pages <= RENAMED_MAX
    }

    /// Stages a page and answers its number for now; nothing if every slot of the write cache is staged.
    pub fn stage(&mut self, bytes: &[u8], lowest: u8, height: u8, records: u32) -> Option<u32> {
        let at = self.oldest(0..self.written.writes, |state| state == State::Clean)?;
        if height > 0 {
            // From now on, this is the root.
            self.forget_root();
        }
        self.written.next_staged = (self.written.next_staged + 1) % (STAGED - 1);
        let page = STAGED | self.written.next_staged;
        self.put(at, page, State::Staged, bytes, (lowest, height, records));
        self.written.staged += 1;
        Some(page)
    }

    /// The running operation supersedes `page`, which is staged.
    pub fn supersede(&mut self, page: u32) {
        if let Some(at) = self.find(page) {
            self.set_slot(at, Slot { state: State::Superseded, ..self.slot(at) });
            self.written.staged -= 1;
        }
    }

    /// The staged page to program next, in the order of allocation.
    pub fn next_pending(&self) -> Option<Pending> {
        self.all(0..self.written.writes)
            .filter(|(_, slot)| slot.state == State::Staged)
            .max_by_key(|(_, slot)| self.age(slot.stamp))
            .map(|(slot, Slot { page, lowest, height, records, .. })| Pending {
                slot,
                page,
                lowest,
                height,
                records,
            })
    }

    /// The page of `pending` now stands on the chip as `page`.
    pub fn programmed(&mut self, pending: &Pending, page: PageNumber) {
        self.written.staged -= 1;
        let slot = self.slot(pending.slot);
        self.set_slot(pending.slot, Slot { page: page.0, state: State::Clean, ..slot });
        if self.written.renamed_count < RENAMED_MAX {
            let at = self.slots * SLOT_BYTES + self.written.renamed_count * RENAMED_BYTES;
            let entry = &mut self.table[at..][..RENAMED_BYTES];
            entry[..4].copy_from_slice(&pending.page.to_le_bytes());
            entry[4..].copy_from_slice(&page.0.to_le_bytes());
            self.written.renamed_count += 1;
        }
    }

    /// What staged pages are called now.
    fn names(&self) -> Names<'_> {
        let (slots, beside) = self.table.split_at(self.slots * SLOT_BYTES);
        Names {
            renamed: &beside[..self.written.renamed_count * RENAMED_BYTES],
            slots: &slots[..self.written.writes * SLOT_BYTES],
        }
    }

    /// Where the page with this number stands now.
    pub fn resolve(&self, page: u32) -> u32 {
        if page & STAGED == 0 { page } else { self.names().resolve(page) }
    }

    /// The bytes of a slot, and where pages stand now that they may point to.
    pub fn bytes_and_names(&mut self, slot: usize) -> (&mut [u8], Names<'_>) {
        let (slots, beside) = self.table.split_at(self.slots * SLOT_BYTES);
        let names = Names {
            renamed: &beside[..self.written.renamed_count * RENAMED_BYTES],
            slots: &slots[..self.written.writes * SLOT_BYTES],
        };
        (&mut self.pages[slot * self.frame_bytes..][..self.frame_bytes], names)
    }

    /// One bit for each page of the chip: superseded by a page that is not on it yet.
    fn superseded(&mut self) -> &mut [u8] {
        &mut self.table[self.slots * SLOT_BYTES + RENAMED_MAX * RENAMED_BYTES..]
    }

    /// Superseded pages leave their slots: the operation has no more use for them. Answers whether there were
    /// any.
    pub fn drop_superseded(&mut self) -> bool {
        let mut dropped = false;
        for at in 0..self.written.writes {
            let slot = self.slot(at);
            if slot.state == State::Superseded {
                self.set_slot(at, Slot { state: State::Empty, ..slot });
                dropped = true;
            }
        }
        dropped
    }

    /// No staged page holds the root of a tree that is whole.
    pub fn forget_root(&mut self) {
        for at in 0..self.written.writes {
            self.set_slot(at, Slot { height: 0, ..self.slot(at) });
        }
    }

    /// Whether pages were programmed since the last operation ended.
    pub const fn spilled(&self) -> bool {
        self.written.renamed_count > 0
    }

    /// The operation ends, and with it the need for the numbers of before.
    pub fn end_operation(&mut self) {
        self.written.renamed_count = 0;
        self.drop_superseded();
    }

    /// A page of the chip is superseded by pages that are not all on it.
    pub fn note_superseded(&mut self, page: PageNumber) {
        let (byte, bit) = (page.0 as usize / 8, 1 << (page.0 % 8));
        let bits = &mut self.superseded()[byte];
        let is_new = *bits & bit == 0;
        *bits |= bit;
        self.written.superseded_pages += u32::from(is_new);
    }

    /// Takes one of the superseded pages, at or after page `from`.
    pub fn take_superseded(&mut self, from: u32) -> Option<PageNumber> {
        if self.written.superseded_pages == 0 {
            return None;
        }
        let first = from as usize / 8;
        let superseded = self.superseded();
        let byte = first + superseded[first..].iter().position(|&bits| bits != 0)?;
        let bit = superseded[byte].trailing_zeros();
        superseded[byte] &= !(1 << bit);
        self.written.superseded_pages -= 1;
        Some(PageNumber(byte as u32 * 8 + bit))
    }
}
