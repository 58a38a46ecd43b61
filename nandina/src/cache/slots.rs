//! The account of a cache's slots, in the caller's RAM: which page each slot holds, and lists of
//! slots in an order. Each operation takes constant time.
//!
//! ```text
//! account | page u32 | slot before u16 | slot after u16 |
//! ```

use super::lookup::{self, Lookup};
use crate::bytes::{u16_at, u32_at};

/// Bytes of the account of a slot.
const ACCOUNT_BYTES: usize = 8;

/// No slot has this number.
const NONE: u16 = u16::MAX;

/// No page has this number.
const NO_PAGE: u32 = u32::MAX;

/// The lists, of which each slot is in one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Slots that hold nothing.
    Empty,
    /// Pages of the chip, the first to leave first.
    Clean,
    /// Pages that are not on the chip yet, in the order of their allocation.
    Staged,
    /// Pages that were staged and that the running operation supersedes.
    Superseded,
}

/// The first and the last slot of a list.
#[derive(Clone, Copy)]
struct Ends {
    first: u16,
    last: u16,
}

/// Slots and what they hold.
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
    /// Empty slots in the first bytes of `ram`, and the rest of it.
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

    /// Every slot is empty.
    pub fn clear(&mut self) {
        self.lookup.clear();
        self.lists = [Ends { first: NONE, last: NONE }; 4];
        for slot in 0..self.count() {
            self.set_page(slot, NO_PAGE);
            self.append(List::Empty, slot);
        }
    }

    /// Slots, empty ones included.
    pub const fn count(&self) -> usize {
        self.accounts.len() / ACCOUNT_BYTES
    }

    /// The bytes of the page in `slot`.
    pub fn bytes(&self, slot: usize) -> &[u8] {
        &self.pages[slot * self.frame_bytes..][..self.frame_bytes]
    }

    /// The same, to change, and beside them what tells which page is where.
    pub fn bytes_and_places(&mut self, slot: usize) -> (&mut [u8], Places<'_>) {
        let bytes = &mut self.pages[slot * self.frame_bytes..][..self.frame_bytes];
        (bytes, Places { accounts: self.accounts })
    }

    /// Which page is where.
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

    /// A slot for a page that is to be kept, out of its list: an empty one, else the first of the
    /// clean ones. [`put`](Self::put) follows. `None`, if there is neither.
    pub fn take(&mut self) -> Option<usize> {
        let slot = self.first(List::Empty).or_else(|| {
            let slot = self.first(List::Clean)?;
            self.forget(slot);
            Some(slot)
        })?;
        self.unlink(List::Empty, slot);
        Some(slot)
    }

    /// `slot`, which was [taken](Self::take), holds `page`, the last of `list`.
    pub fn put(&mut self, slot: usize, page: u32, list: List, bytes: &[u8]) {
        debug_assert!(self.find(page).is_none(), "page {page} is there twice");
        self.set_page(slot, page);
        self.lookup.insert(page, slot);
        self.append(list, slot);
        self.pages[slot * self.frame_bytes..][..self.frame_bytes].copy_from_slice(bytes);
    }

    /// `slot`, which holds a page and is in the list `from`, becomes the last of `to`.
    pub fn shift(&mut self, slot: usize, from: List, to: List) {
        self.unlink(from, slot);
        self.append(to, slot);
    }

    /// The page in `slot` is called `page` from now on.
    pub fn rename(&mut self, slot: usize, page: u32) {
        self.lose(slot);
        self.set_page(slot, page);
        self.lookup.insert(page, slot);
    }

    /// The clean page in `slot` leaves it.
    pub fn forget(&mut self, slot: usize) {
        self.drop_from(List::Clean, slot);
    }

    /// The page in `slot`, which is in `list`, leaves it.
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

/// Where the links of a slot stand in its account.
const BEFORE: usize = 4;
const AFTER: usize = 6;

/// Which page is in which slot.
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
