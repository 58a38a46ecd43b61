//! The Summary table: which buffer blocks there are, and which logical page each place holds.
//!
//! Ten bytes a buffer block and one for each of its pages, in the caller's memory. Whether a page
//! counts is known from the block table alone. The groups of all blocks are stored first, then
//! their numbers, their next places and the pages of each, so that a search for a group passes over
//! groups alone. Nothing here calls a chip.

use nandina::flash::BlockNumber;

/// No block, or no group.
pub(crate) const NONE: u32 = u32::MAX;

/// Bytes of a block: its group, its number, and the next place.
const BLOCK_BYTES: usize = GROUP_BYTES + NUMBER_BYTES + NEXT_BYTES;
const GROUP_BYTES: usize = 4;
const NUMBER_BYTES: usize = 4;
const NEXT_BYTES: usize = 2;

/// In the next place: the block was begun before the mount.
const CLOSED: u16 = 1 << 15;

/// In the next place: the block has a page that no page names and that cannot be read.
const DOUBTFUL: u16 = 1 << 14;

/// Pages of a group that a byte can tell apart.
pub(crate) const GROUP_PAGES_MAX: u32 = 256;

/// A buffer block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The block, or [`NONE`] if the entry is free.
    pub block: u32,
    /// Its logical pages are those from `group` times the pages of a group on.
    pub group: u32,
    /// The place behind its last page.
    pub next: u32,
    /// Whether it may not be written on: it was begun before the mount.
    pub is_closed: bool,
    /// Whether it has a page that cannot be read, and that no other page names (`faded.rs`).
    pub is_doubtful: bool,
}

impl Entry {
    /// A buffer block without pages.
    pub const fn new(block: u32, group: u32) -> Self {
        Self { block, group, next: 0, is_closed: false, is_doubtful: false }
    }
}

/// The Summary table.
pub(crate) struct Summary<'b> {
    bytes: &'b mut [u8],
    entries: u32,
    block_pages: u32,
    /// Logical pages that share a buffer block.
    pub group_pages: u32,
}

impl<'b> Summary<'b> {
    /// Bytes of a table.
    pub const fn bytes_for(entries: u32, block_pages: u32) -> usize {
        entries as usize * (BLOCK_BYTES + block_pages as usize)
    }

    /// An empty table in `bytes`, which are as many as [`bytes_for`](Self::bytes_for) says.
    pub fn new(bytes: &'b mut [u8], entries: u32, block_pages: u32, group_pages: u32) -> Self {
        let mut table = Self { bytes, entries, block_pages, group_pages };
        table.clear();
        table
    }

    /// How many blocks can be described.
    pub const fn len(&self) -> u32 {
        self.entries
    }

    pub fn clear(&mut self) {
        self.bytes.fill(0xFF);
    }

    /// The group of a logical page.
    pub const fn group_of(&self, logical: u32) -> u32 {
        logical / self.group_pages
    }

    const fn group_at(entry: u32) -> usize {
        entry as usize * GROUP_BYTES
    }

    const fn number_at(&self, entry: u32) -> usize {
        Self::group_at(self.entries) + entry as usize * NUMBER_BYTES
    }

    const fn next_at(&self, entry: u32) -> usize {
        self.number_at(self.entries) + entry as usize * NEXT_BYTES
    }

    const fn places_at(&self, entry: u32) -> usize {
        self.next_at(self.entries) + entry as usize * self.block_pages as usize
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = &self.bytes[at..][..4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    /// The block of an entry, or [`NONE`].
    fn block(&self, entry: u32) -> u32 {
        self.word(self.number_at(entry))
    }

    pub fn get(&self, entry: u32) -> Entry {
        let next = &self.bytes[self.next_at(entry)..][..NEXT_BYTES];
        let next = u16::from_le_bytes([next[0], next[1]]);
        Entry {
            block: self.block(entry),
            group: self.word(Self::group_at(entry)),
            next: (next & !(CLOSED | DOUBTFUL)).into(),
            is_closed: next & CLOSED != 0,
            is_doubtful: next & DOUBTFUL != 0,
        }
    }

    pub fn set(&mut self, entry: u32, to: Entry) {
        let closed = if to.is_closed { CLOSED } else { 0 };
        let doubtful = if to.is_doubtful { DOUBTFUL } else { 0 };
        let next = to.next as u16 | closed | doubtful;
        let (number_at, next_at) = (self.number_at(entry), self.next_at(entry));
        self.bytes[Self::group_at(entry)..][..GROUP_BYTES].copy_from_slice(&to.group.to_le_bytes());
        self.bytes[number_at..][..NUMBER_BYTES].copy_from_slice(&to.block.to_le_bytes());
        self.bytes[next_at..][..NEXT_BYTES].copy_from_slice(&next.to_le_bytes());
    }

    /// The entries in use.
    pub fn used(&self) -> impl Iterator<Item = (u32, Entry)> {
        let used = (0..self.entries).filter(|&at| self.block(at) != NONE);
        used.map(|at| (at, self.get(at)))
    }

    /// The entries in use of a group.
    pub fn entries_of(&self, group: u32) -> impl Iterator<Item = u32> {
        let groups = self.bytes[..Self::group_at(self.entries)].chunks_exact(GROUP_BYTES);
        let wanted = group.to_le_bytes();
        (0..).zip(groups).filter(move |(_, group)| **group == wanted).map(|(at, _)| at)
    }

    /// The entry of a block.
    pub fn entry_of(&self, block: BlockNumber) -> Option<u32> {
        (0..self.entries).find(|&at| self.block(at) == block.0)
    }

    /// Describes a block in a free entry.
    pub fn add(&mut self, entry: Entry) -> Option<u32> {
        let free = self.entry_of(BlockNumber(NONE))?;
        self.set(free, entry);
        Some(free)
    }

    /// Frees an entry.
    pub fn remove(&mut self, entry: u32) {
        self.set(entry, Entry::new(NONE, NONE));
    }

    /// The numbers of the logical pages at all places of a block.
    pub fn numbers(&self, entry: u32) -> &[u8] {
        &self.bytes[self.places_at(entry)..][..self.block_pages as usize]
    }

    /// The logical page that was written at a place, if anything was.
    pub fn logical_at(&self, entry: u32, place: u32) -> u32 {
        let number = self.numbers(entry)[place as usize];
        self.get(entry).group * self.group_pages + u32::from(number)
    }

    /// The number of a logical page among those of its group.
    pub const fn number_of(&self, logical: u32) -> u8 {
        (logical % self.group_pages) as u8
    }

    /// The logical page with this number in the group of another one.
    pub const fn page_of(&self, other: u32, number: u8) -> u32 {
        self.group_of(other) * self.group_pages + number as u32
    }

    /// Notes which logical page is at a place. It is one of the block's group.
    pub fn set_logical(&mut self, entry: u32, place: u32, logical: u32) {
        let at = self.places_at(entry) + place as usize;
        self.bytes[at] = self.number_of(logical);
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[test]
    fn the_table_takes_ten_bytes_a_block_and_one_a_page() {
        assert_eq!(Summary::bytes_for(128, 64), 10 * 128 + 128 * 64);
        let mut bytes = vec![0; Summary::bytes_for(2, 4)];
        let mut table = Summary::new(&mut bytes, 2, 4, 12);
        let group = table.group_of(30);
        let entry = Entry { next: 3, is_closed: true, is_doubtful: true, ..Entry::new(7, group) };
        assert_eq!(
            (table.add(entry), table.add(entry), table.add(entry)),
            (Some(0), Some(1), None)
        );
        table.set_logical(1, 2, 30);
        assert_eq!((table.logical_at(1, 2), table.get(1)), (30, entry));
        assert_eq!(table.entries_of(group).collect::<vec::Vec<_>>(), [0, 1]);
        table.remove(0);
        assert_eq!(table.entry_of(BlockNumber(7)), Some(1));
        assert_eq!(table.used().count(), 1);
        assert_eq!((table.entries_of(group).next(), table.entries_of(0).next()), (Some(1), None));
    }
}
