//! Page caches (μ-Tree paper, section 5.3): pages that were read, the least recently used leaving first, and
//! pages that were written, in the order in which they were allocated. No page is in both.
//!
//! A page that is *staged* is part of the tree and not yet on the chip. It has a number of its own, with
//! [`STAGED`] set, until it is programmed; pages that point to it are told of its place then. A staged page that
//! is superseded leaves its slot without ever being programmed. A written page stays in its slot, to be read,
//! until the slot is needed.
//!
//! Nothing here calls a chip, and nothing here knows what a node is.

mod slot;

use slot::{Names, RENAMED_BYTES, SLOT_BYTES, Slot, State};

use crate::flash::PageNumber;

/// Bit of the number of a page that is staged.
pub const STAGED: u32 = 1 << 31;

/// Staged pages that can be programmed in the middle of one operation.
const RENAMED_MAX: usize = 48;

/// A staged page that is to be programmed.
#[derive(Clone, Copy)]
pub struct Pending {
    pub slot: usize,
    pub page: u32,
    pub lowest: u8,
    pub height: u8,
    pub records: u32,
}

/// The slots of both caches: first those of the write cache.
pub struct Cache<'b> {
    pages: &'b mut [u8],
    table: &'b mut [u8],
    renamed: &'b mut [u8],
    /// One bit for each page of the chip: superseded by a page that is not on it yet.
    superseded: &'b mut [u8],
    frame_bytes: usize,
    writes: usize,
    slots: usize,
    stamp: u32,
    next_staged: u32,
    staged: u32,
    superseded_pages: u32,
    renamed_count: usize,
}

/// Bytes of RAM for caches of so many pages.
pub const fn ram_needed(frame_bytes: usize, reads: usize, writes: usize, pages: u32) -> usize {
    let staging =
        if writes > 0 { RENAMED_MAX * RENAMED_BYTES + pages.div_ceil(8) as usize } else { 0 };
    (reads + writes) * (frame_bytes + SLOT_BYTES) + staging
}

impl<'b> Cache<'b> {
    pub fn new(
        ram: &'b mut [u8],
        frame_bytes: usize,
        reads: usize,
        writes: usize,
        pages: u32,
    ) -> (Self, &'b mut [u8]) {
        let slots = reads + writes;
        let (bytes, rest) = ram.split_at_mut(slots * frame_bytes);
        let (table, rest) = rest.split_at_mut(slots * SLOT_BYTES);
        let staging = if writes > 0 { RENAMED_MAX * RENAMED_BYTES } else { 0 };
        let (renamed, rest) = rest.split_at_mut(staging);
        let bitmap = if writes > 0 { pages.div_ceil(8) as usize } else { 0 };
        let (superseded, rest) = rest.split_at_mut(bitmap);
        let mut cache = Self {
            pages: bytes,
            table,
            renamed,
            superseded,
            frame_bytes,
            writes,
            slots,
            stamp: 0,
            next_staged: 0,
            staged: 0,
            superseded_pages: 0,
            renamed_count: 0,
        };
        cache.clear();
        (cache, rest)
    }

    /// Forgets everything, staged pages too.
    pub fn clear(&mut self) {
        self.table.fill(0);
        self.superseded.fill(0);
        (self.staged, self.superseded_pages, self.renamed_count) = (0, 0, 0);
    }

    /// Whether pages are staged at all.
    pub const fn stages(&self) -> bool {
        self.writes > 0
    }

    /// Staged pages that are part of the tree.
    pub const fn staged(&self) -> u32 {
        self.staged
    }

    /// Pages on the chip that are part of the tree no more, once what is staged is on the chip.
    pub const fn superseded_pages(&self) -> u32 {
        self.superseded_pages
    }

    /// Whether an operation that stages `pages` can begin without any staged page being lost sight of.
    pub fn has_room_for(&self, pages: usize) -> bool {
        let staged = self.staged as usize;
        staged + pages <= self.writes || staged + pages <= RENAMED_MAX
    }

    fn slot(&self, at: usize) -> Slot {
        Slot::read(&self.table[at * SLOT_BYTES..][..SLOT_BYTES])
    }

    fn set_slot(&mut self, at: usize, slot: Slot) {
        slot.write(&mut self.table[at * SLOT_BYTES..][..SLOT_BYTES]);
    }

    fn all(&self, slots: core::ops::Range<usize>) -> impl Iterator<Item = (usize, Slot)> {
        slots.map(|at| (at, self.slot(at)))
    }

    /// The slot that holds `page`.
    fn find(&self, page: u32) -> Option<usize> {
        self.all(0..self.slots)
            .find(|(_, slot)| slot.page == page && slot.state != State::Empty)
            .map(|(at, _)| at)
    }

    fn tick(&mut self) -> u32 {
        self.stamp = self.stamp.wrapping_add(1);
        self.stamp
    }

    /// How long ago `stamp` was given.
    const fn age(&self, stamp: u32) -> u32 {
        self.stamp.wrapping_sub(stamp)
    }

    pub fn bytes(&self, slot: usize) -> &[u8] {
        &self.pages[slot * self.frame_bytes..][..self.frame_bytes]
    }

    pub fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        &mut self.pages[slot * self.frame_bytes..][..self.frame_bytes]
    }

    /// The bytes of `page`, if a cache holds it.
    pub fn get(&mut self, page: PageNumber) -> Option<&[u8]> {
        if self.slots == 0 {
            return None;
        }
        let at = self.find(page.0)?;
        if at >= self.writes {
            let stamp = self.tick();
            self.set_slot(at, Slot { stamp, ..self.slot(at) });
        }
        Some(self.bytes(at))
    }

    /// Remembers a page that was read.
    pub fn remember(&mut self, page: PageNumber, bytes: &[u8]) {
        let oldest = self.oldest(self.writes..self.slots, |state| state == State::Clean);
        if let Some(at) = oldest {
            self.put(at, page.0, State::Clean, bytes, (0, 0, 0));
        }
    }

    /// Remembers a page that was programmed without being staged.
    pub fn remember_written(&mut self, page: PageNumber, bytes: &[u8]) {
        self.forget(page.0);
        let slots = if self.writes > 0 { 0..self.writes } else { 0..self.slots };
        if let Some(at) = self.oldest(slots, |state| state == State::Clean) {
            self.put(at, page.0, State::Clean, bytes, (0, 0, 0));
        }
    }

    /// An empty slot, else the oldest of those in a state that may go.
    fn oldest(
        &self,
        slots: core::ops::Range<usize>,
        may_go: impl Fn(State) -> bool,
    ) -> Option<usize> {
        self.all(slots)
            .filter(|(_, slot)| slot.state == State::Empty || may_go(slot.state))
            .max_by_key(|(_, slot)| match slot.state {
                State::Empty => (true, 0),
                _ => (false, self.age(slot.stamp)),
            })
            .map(|(at, _)| at)
    }

    fn put(
        &mut self,
        at: usize,
        page: u32,
        state: State,
        bytes: &[u8],
        (lowest, height, records): (u8, u8, u32),
    ) {
        let stamp = self.tick();
        let slot = Slot { page, staged_as: page, stamp, records, state, lowest, height };
        self.set_slot(at, slot);
        self.bytes_mut(at).copy_from_slice(bytes);
    }

    /// The page is no page of the tree any more, or is about to be programmed anew.
    pub fn forget(&mut self, page: u32) {
        if self.slots > 0
            && let Some(at) = self.find(page)
        {
            self.set_slot(at, Slot { state: State::Empty, ..self.slot(at) });
        }
    }

    /// Stages a page and answers its number for now; nothing if every slot of the write cache is staged.
    pub fn stage(&mut self, bytes: &[u8], lowest: u8, height: u8, records: u32) -> Option<u32> {
        let at = self.oldest(0..self.writes, |state| state == State::Clean)?;
        if height > 0 {
            // From now on, this is the root.
            self.forget_root();
        }
        self.next_staged = (self.next_staged + 1) % (STAGED - 1);
        let page = STAGED | self.next_staged;
        self.put(at, page, State::Staged, bytes, (lowest, height, records));
        self.staged += 1;
        Some(page)
    }

    /// The running operation supersedes `page`, which is staged.
    pub fn supersede(&mut self, page: u32) {
        if let Some(at) = self.find(page) {
            self.set_slot(at, Slot { state: State::Superseded, ..self.slot(at) });
            self.staged -= 1;
        }
    }

    /// The staged page to program next, in the order of allocation.
    pub fn next_pending(&self) -> Option<Pending> {
        self.all(0..self.writes)
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
        self.staged -= 1;
        let slot = self.slot(pending.slot);
        self.set_slot(pending.slot, Slot { page: page.0, state: State::Clean, ..slot });
        if self.renamed_count < RENAMED_MAX {
            let entry = &mut self.renamed[self.renamed_count * RENAMED_BYTES..][..RENAMED_BYTES];
            entry[..4].copy_from_slice(&pending.page.to_le_bytes());
            entry[4..].copy_from_slice(&page.0.to_le_bytes());
            self.renamed_count += 1;
        }
    }

    /// Where the page with this number stands now.
    pub fn resolve(&self, page: u32) -> u32 {
        let renamed = &self.renamed[..self.renamed_count * RENAMED_BYTES];
        Names { renamed, slots: &self.table[..self.writes * SLOT_BYTES] }.resolve(page)
    }

    /// The bytes of a slot, and where pages stand now that they may point to.
    pub fn bytes_and_names(&mut self, slot: usize) -> (&mut [u8], Names<'_>) {
        let renamed = &self.renamed[..self.renamed_count * RENAMED_BYTES];
        let names = Names { renamed, slots: &self.table[..self.writes * SLOT_BYTES] };
        (&mut self.pages[slot * self.frame_bytes..][..self.frame_bytes], names)
    }

    /// Superseded pages leave their slots: the operation has no more use for them. Answers whether there were
    /// any.
    pub fn drop_superseded(&mut self) -> bool {
        let mut dropped = false;
        for at in 0..self.writes {
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
        for at in 0..self.writes {
            self.set_slot(at, Slot { height: 0, ..self.slot(at) });
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
        let (byte, bit) = (page.0 as usize / 8, 1 << (page.0 % 8));
        self.superseded_pages += u32::from(self.superseded[byte] & bit == 0);
        self.superseded[byte] |= bit;
    }

    /// Takes one of the superseded pages, at or after page `from`.
    pub fn take_superseded(&mut self, from: u32) -> Option<PageNumber> {
        if self.superseded_pages == 0 {
            return None;
        }
        let first = from as usize / 8;
        let byte = first + self.superseded[first..].iter().position(|&bits| bits != 0)?;
        let bit = self.superseded[byte].trailing_zeros();
        self.superseded[byte] &= !(1 << bit);
        self.superseded_pages -= 1;
        Some(PageNumber(byte as u32 * 8 + bit))
    }
}
