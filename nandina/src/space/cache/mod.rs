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
mod staging;

use slot::{RENAMED_BYTES, SLOT_BYTES, Slot, State};
pub use staging::{Staging, Written};

use super::Relink;
use crate::flash::PageNumber;

/// Bit of the number of a page that is staged.
pub const STAGED: u32 = 1 << 31;

/// Staged pages that can be programmed in the middle of one operation.
const RENAMED_MAX: usize = 48;

/// Pages kept beside the page buffers.
pub trait Cached<'b>: Sized {
    /// Caches for so many pages, in the first bytes of `ram`, and the rest of it.
    fn new(
        ram: &'b mut [u8],
        frame_bytes: usize,
        reads: usize,
        writes: usize,
        pages: u32,
        relink: Relink,
    ) -> (Self, &'b mut [u8]);

    /// Forgets everything, staged pages too.
    fn clear(&mut self) {}

    /// The bytes of a slot.
    fn bytes(&self, slot: usize) -> &[u8];

    /// The bytes of a slot, to change.
    fn bytes_mut(&mut self, slot: usize) -> &mut [u8];

    /// The bytes of `page`, if a cache holds it.
    fn get(&mut self, page: PageNumber) -> Option<&[u8]> {
        let _ = page;
        None
    }

    /// Remembers a page that was read.
    fn remember(&mut self, page: PageNumber, bytes: &[u8]) {
        let _ = (page, bytes);
    }

    /// Remembers a page that was programmed without being staged.
    fn remember_written(&mut self, page: PageNumber, bytes: &[u8]) {
        let _ = (page, bytes);
    }

    /// The page is no page of the tree any more, or is about to be programmed anew.
    fn forget(&mut self, page: u32) {
        let _ = page;
    }
}

/// No caches.
#[cfg(not(feature = "read-cache"))]
pub struct NoCache;

#[cfg(not(feature = "read-cache"))]
impl<'b> Cached<'b> for NoCache {
    fn new(
        ram: &'b mut [u8],
        _: usize,
        _: usize,
        _: usize,
        _: u32,
        _: Relink,
    ) -> (Self, &'b mut [u8]) {
        (Self, ram)
    }

    fn bytes(&self, _slot: usize) -> &[u8] {
        &[]
    }

    fn bytes_mut(&mut self, _slot: usize) -> &mut [u8] {
        &mut []
    }
}

/// The slots of both caches: first those of the write cache.
pub struct Cache<'b, W> {
    pages: &'b mut [u8],
    /// The slots' accounts; with a write cache, the new numbers of staged pages, and a bit for each page of the chip:
    /// superseded by a page that is not on it yet.
    table: &'b mut [u8],
    frame_bytes: usize,
    slots: usize,
    stamp: u32,
    written: W,
}

/// Bytes of RAM for caches of so many pages.
pub const fn ram_needed(frame_bytes: usize, reads: usize, writes: usize, pages: u32) -> usize {
    (reads + writes) * frame_bytes + table_bytes(reads, writes, pages)
}

const fn table_bytes(reads: usize, writes: usize, pages: u32) -> usize {
    let staging =
        if writes > 0 { RENAMED_MAX * RENAMED_BYTES + pages.div_ceil(8) as usize } else { 0 };
    (reads + writes) * SLOT_BYTES + staging
}

impl<'b, W: Written> Cached<'b> for Cache<'b, W> {
    fn new(
        ram: &'b mut [u8],
        frame_bytes: usize,
        reads: usize,
        writes: usize,
        pages: u32,
        relink: Relink,
    ) -> (Self, &'b mut [u8]) {
        let slots = reads + writes;
        let (bytes, rest) = ram.split_at_mut(slots * frame_bytes);
        let (table, rest) = rest.split_at_mut(table_bytes(reads, writes, pages));
        let written = W::new(writes, relink);
        let mut cache = Self { pages: bytes, table, frame_bytes, slots, stamp: 0, written };
        cache.clear();
        (cache, rest)
    }

    fn clear(&mut self) {
        self.table.fill(0);
        self.written.clear();
    }

    fn bytes(&self, slot: usize) -> &[u8] {
        &self.pages[slot * self.frame_bytes..][..self.frame_bytes]
    }

    fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        &mut self.pages[slot * self.frame_bytes..][..self.frame_bytes]
    }

    fn get(&mut self, page: PageNumber) -> Option<&[u8]> {
        if self.slots == 0 {
            return None;
        }
        let at = self.find(page.0)?;
        if at >= self.written.slots() {
            let stamp = self.tick();
            self.set_slot(at, Slot { stamp, ..self.slot(at) });
        }
        Some(self.bytes(at))
    }

    fn remember(&mut self, page: PageNumber, bytes: &[u8]) {
        let oldest = self.oldest(self.written.slots()..self.slots, |state| state == State::Clean);
        if let Some(at) = oldest {
            self.put(at, page.0, State::Clean, bytes, (0, 0, 0));
        }
    }

    fn remember_written(&mut self, page: PageNumber, bytes: &[u8]) {
        self.forget(page.0);
        let slots = if self.written.slots() > 0 { 0..self.written.slots() } else { 0..self.slots };
        if let Some(at) = self.oldest(slots, |state| state == State::Clean) {
            self.put(at, page.0, State::Clean, bytes, (0, 0, 0));
        }
    }

    fn forget(&mut self, page: u32) {
        if self.slots > 0
            && let Some(at) = self.find(page)
        {
            self.set_slot(at, Slot { state: State::Empty, ..self.slot(at) });
        }
    }
}

impl<W: Written> Cache<'_, W> {
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
}
