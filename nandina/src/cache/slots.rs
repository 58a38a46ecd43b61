//! The slots of a cache: which page each holds, and ordered lists of slots.
//!
//! All of it lies in the caller's RAM. Each operation takes constant time.
//!
//! ```text
//! entry | page u32 | previous slot u16 | next slot u16 |
//! ```

use super::lookup::{self, Lookup};
use crate::bytes::{u16_at, u32_at};

/// Bytes of the entry of a slot.
const ACCOUNT_BYTES: usize = 8;

/// Means "no slot": no slot has this number.
const NONE: u16 = u16::MAX;

/// Means "no page": no page has this number.
const NO_PAGE: u32 = u32::MAX;

/// The lists. Each slot is in one of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Empty slots.
    Empty,
    /// Pages that are on the chip; the first of the list is evicted first.
    Clean,
    /// Pages that are not on the chip yet, in the order of their allocation.
    Staged,
    /// Staged pages that the running operation supersedes.
    Superseded,
}

/// The first and the last slot of a list.
#[derive(Clone, Copy)]
struct Ends {
    first: u16,
    last: u16,
}

/// Slots and their pages.
pub struct Slots<'b> {
    pages: &'b mut [u8],
    frame_bytes: usize,
    accounts: &'b mut [u8],
    lookup: Lookup<'b>,
    lists: [Ends; 4],
}

/// Bytes of RAM for `slots` slots, at most 65,535.
pub const fn ram_needed(frame_bytes: usize, slots: usize) -> usize {
    slots * (frame_bytes + ACCOUNT_BYTES) + lookup::bytes_for(slots)
}

impl<'b> Slots<'b> {
    /// Creates empty slots. Returns the unused rest of `ram`.
    pub fn new(ram: &'b mut [u8], frame_bytes: usize, slots: usize) -> (Self, &'b mut [u8]) {
        debug_assert!(slots <= NONE.into());
        let (pages, rest) = ram.split_at_mut(slots * frame_bytes);
        let (accounts, rest) = rest.split_at_mut(slots * ACCOUNT_BYTES);
        let (places, rest) = rest.split_at_mut(lookup::bytes_for(slots));
        let lists = [Ends { first: NONE, last: NONE }; 4];
        let lookup = Lookup::new(places);
        let mut slots = Self { pages, frame_bytes, accounts, lookup, lists };
        slots.clear();
        (slots, rest)
    }

    /// Empties every slot.
    pub fn clear(&mut self) {
        self.lookup.clear();
        self.lists = [Ends { first: NONE, last: NONE }; 4];
        for slot in 0..self.count() {
            self.set_page(slot, NO_PAGE);
            self.append(List::Empty, slot);
        }
    }

    /// The number of slots, empty ones included.
    pub const fn count(&self) -> usize {
        self.accounts.len() / ACCOUNT_BYTES
    }

    /// The bytes of the page in `slot`.
    pub fn bytes(&self, slot: usize) -> &[u8] {
        &self.pages[slot * self.frame_bytes..][..self.frame_bytes]
    }

    /// The bytes of the page in `slot`, mutable, and the places of all pages.
    pub fn bytes_and_places(&mut self, slot: usize) -> (&mut [u8], Places<'_>) {
        let bytes = &mut self.pages[slot * self.frame_bytes..][..self.frame_bytes];
        (bytes, Places { accounts: self.accounts })
    }

    /// The places of all pages.
    pub const fn places(&self) -> Places<'_> {
        Places { accounts: self.accounts }
    }

    /// The page in `slot`.
    pub fn page(&self, slot: usize) -> u32 {
        self.places().page(slot)
    }

    fn set_page(&mut self, slot: usize, page: u32) {
        self.accounts[slot * ACCOUNT_BYTES..][..4].copy_from_slice(&page.to_le_bytes());
    }

    /// The slot that holds `page`.
    pub fn find(&self, page: u32) -> Option<usize> {
        self.lookup.find(page, |slot| self.places().page(slot))
    }

    /// The first slot of `list`.
    pub fn first(&self, list: List) -> Option<usize> {
        let Ends { first, .. } = self.lists[list as usize];
        (first != NONE).then_some(first.into())
    }

    /// Takes a slot for a new page out of its list.
    ///
    /// It is an empty slot if there is one, and otherwise the first clean slot, whose page is
    /// evicted. `None` if there is neither. The caller then calls [`put`](Self::put).
    pub fn take(&mut self) -> Option<usize> {
        let slot = self.first(List::Empty).or_else(|| {
            let slot = self.first(List::Clean)?;
            self.forget(slot);
            Some(slot)
        })?;
        self.unlink(List::Empty, slot);
        Some(slot)
    }

    /// Stores `page` in `slot`, as the last of `list`.
    ///
    /// The slot was [taken](Self::take) before.
    pub fn put(&mut self, slot: usize, page: u32, list: List, bytes: &[u8]) {
        debug_assert!(self.find(page).is_none(), "page {page} is there twice");
        self.set_page(slot, page);
        self.lookup.insert(page, slot);
        self.append(list, slot);
        self.pages[slot * self.frame_bytes..][..self.frame_bytes].copy_from_slice(bytes);
    }

    /// Moves `slot`, which holds a page, from the list `from` to the end of `to`.
    pub fn shift(&mut self, slot: usize, from: List, to: List) {
        self.unlink(from, slot);
        self.append(to, slot);
    }

    /// Changes the number of the page in `slot`.
    pub fn rename(&mut self, slot: usize, page: u32) {
        self.lose(slot);
        self.set_page(slot, page);
        self.lookup.insert(page, slot);
    }

    /// Removes the clean page in `slot`.
    pub fn forget(&mut self, slot: usize) {
        self.drop_from(List::Clean, slot);
    }

    /// Removes the page in `slot`, which is in `list`.
    pub fn drop_from(&mut self, list: List, slot: usize) {
        self.lose(slot);
        self.set_page(slot, NO_PAGE);
        self.shift(slot, list, List::Empty);
    }

    fn lose(&mut self, slot: usize) {
        let places = Places { accounts: self.accounts };
        self.lookup.remove(places.page(slot), |slot| places.page(slot));
    }

    fn link(&self, slot: usize, at: usize) -> u16 {
        u16_at(self.accounts, slot * ACCOUNT_BYTES + at)
    }

    fn set_link(&mut self, slot: u16, at: usize, to: u16) {
        let at = usize::from(slot) * ACCOUNT_BYTES + at;
        self.accounts[at..at + 2].copy_from_slice(&to.to_le_bytes());
    }

    fn append(&mut self, list: List, slot: usize) {
        let (Ends { first, last }, slot) = (self.lists[list as usize], slot as u16);
        self.set_link(slot, BEFORE, last);
        self.set_link(slot, AFTER, NONE);
        if last != NONE {
            self.set_link(last, AFTER, slot);
        }
        let first = if first == NONE { slot } else { first };
        self.lists[list as usize] = Ends { first, last: slot };
    }

    fn unlink(&mut self, list: List, slot: usize) {
        let (before, after) = (self.link(slot, BEFORE), self.link(slot, AFTER));
        let mut ends = self.lists[list as usize];
        debug_assert_eq!(before == NONE, usize::from(ends.first) == slot, "slot {slot}");
        debug_assert_eq!(after == NONE, usize::from(ends.last) == slot, "slot {slot}");
        if before == NONE {
            ends.first = after;
        } else {
            self.set_link(before, AFTER, after);
        }
        if after == NONE {
            ends.last = before;
        } else {
            self.set_link(after, BEFORE, before);
        }
        self.lists[list as usize] = ends;
    }
}

/// Offsets of the links in a slot's entry.
const BEFORE: usize = 4;
const AFTER: usize = 6;

/// Maps slots to the pages that they hold.
#[derive(Clone, Copy)]
pub struct Places<'c> {
    accounts: &'c [u8],
}

impl Places<'_> {
    /// The page in `slot`.
    pub fn page(&self, slot: usize) -> u32 {
        u32_at(self.accounts, slot * ACCOUNT_BYTES)
    }
}
