//! The maps in RAM: of data blocks, and of the pages of log blocks.
//!
//! Whether a page counts is known from the block table alone: a data block's page at its offset is
//! looked at first, and only if it does not count a page of a log block is looked for. Nothing here
//! calls a chip.

use nandina::flash::BlockNumber;

/// Means none: no block, logical page, entry or logical block has this number.
pub(super) const NONE: u32 = u32::MAX;

const WORD: usize = 4;

/// Words that describe a log block: block, owner, next place, and its age in two.
const SLOT_WORDS: usize = 5;

/// In the word of the next place: the block was begun before the mount.
const CLOSED: u32 = 1 << 31;

/// In the word of the next place: the last page of the block belongs to a log.
const LOG: u32 = 1 << 30;

/// In the word of the next place: it is a buffer block that the Summary table has no room for yet.
const BUFFER: u32 = 1 << 29;

/// In the word of the next place: such a one has a page that no page names.
const DOUBTFUL: u32 = 1 << 28;

/// Numbers in the caller's memory.
struct Words<'b>(&'b mut [u8]);

impl Words<'_> {
    fn get(&self, at: usize) -> u32 {
        let mut bytes = [0; WORD];
        bytes.copy_from_slice(&self.0[at * WORD..][..WORD]);
        u32::from_le_bytes(bytes)
    }

    fn set(&mut self, at: usize, to: u32) {
        self.0[at * WORD..][..WORD].copy_from_slice(&to.to_le_bytes());
    }
}

/// How large the maps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub logical_blocks: u32,
    pub block_pages: u32,
    /// Log blocks that can be described.
    pub slots: u32,
}

impl Sizes {
    const fn entries(&self) -> usize {
        self.slots as usize * self.block_pages as usize
    }

    /// Chains of entries: one for two of them.
    const fn chains(&self) -> usize {
        self.entries().div_ceil(2)
    }

    /// Bytes of the maps.
    pub const fn bytes(&self) -> usize {
        let slots = self.slots as usize * SLOT_WORDS;
        (self.logical_blocks as usize + slots + 2 * self.entries() + self.chains()) * WORD
    }
}

/// A log block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The block, or [`NONE`] if the slot is free.
    pub block: u32,
    /// The logical block that it belongs to, or [`NONE`].
    pub owner: u32,
    /// The place behind its last page.
    pub next: u32,
    /// Whether it may not be written on: it was begun before the mount.
    pub is_closed: bool,
    /// Whether its last page was appended to a log.
    pub is_log: bool,
    /// Whether it is a buffer block, and has a page that no page names.
    ///
    /// A mount describes it here until a block that the table has is known to be stale. Its owner
    /// is its group.
    pub buffer: Option<bool>,
    /// The sequence number by which the victim is chosen.
    pub age: u64,
}

/// The maps.
pub(super) struct Maps<'b> {
    words: Words<'b>,
    pub sizes: Sizes,
}

impl<'b> Maps<'b> {
    /// Empty maps in the first bytes of `memory`.
    pub fn new(memory: &'b mut [u8], sizes: Sizes) -> Self {
        let mut maps = Self { words: Words(&mut memory[..sizes.bytes()]), sizes };
        maps.clear();
        maps
    }

    pub fn clear(&mut self) {
        self.words.0.fill(0xFF);
    }

    /// The data block of a logical block.
    pub fn data(&self, logical_block: u32) -> Option<BlockNumber> {
        let block = self.words.get(logical_block as usize);
        (block != NONE).then_some(BlockNumber(block))
    }

    pub fn set_data(&mut self, logical_block: u32, to: Option<BlockNumber>) {
        self.words.set(logical_block as usize, to.map_or(NONE, |block| block.0));
    }

    /// The logical block whose data block is `block`. Cost: a look at each.
    pub fn data_of(&self, block: BlockNumber) -> Option<u32> {
        (0..self.sizes.logical_blocks).find(|&at| self.data(at) == Some(block))
    }

    const fn slot_at(&self, slot: u32) -> usize {
        self.sizes.logical_blocks as usize + slot as usize * SLOT_WORDS
    }

    /// The block of a slot, or [`NONE`].
    fn block_of(&self, slot: u32) -> u32 {
        self.words.get(self.slot_at(slot))
    }

    pub fn slot(&self, slot: u32) -> Slot {
        let at = self.slot_at(slot);
        let next = self.words.get(at + 2);
        let age = u64::from(self.words.get(at + 3)) | u64::from(self.words.get(at + 4)) << 32;
        Slot {
            block: self.words.get(at),
            owner: self.words.get(at + 1),
            next: next & !(CLOSED | LOG | BUFFER | DOUBTFUL),
            is_closed: next & CLOSED != 0,
            is_log: next & LOG != 0,
            buffer: (next & BUFFER != 0).then_some(next & DOUBTFUL != 0),
            age,
        }
    }

    pub fn set_slot(&mut self, slot: u32, to: Slot) {
        let at = self.slot_at(slot);
        let buffer = match to.buffer {
            None => 0,
            Some(false) => BUFFER,
            Some(true) => BUFFER | DOUBTFUL,
        };
        let (closed, log) =
            (if to.is_closed { CLOSED } else { 0 }, if to.is_log { LOG } else { 0 });
        let next = to.next | closed | log | buffer;
        for (word, value) in
            [to.block, to.owner, next, to.age as u32, (to.age >> 32) as u32].into_iter().enumerate()
        {
            self.words.set(at + word, value);
        }
    }

    /// The slots in use.
    pub fn slots(&self) -> impl Iterator<Item = (u32, Slot)> {
        let used = (0..self.sizes.slots).filter(|&slot| self.block_of(slot) != NONE);
        used.map(|slot| (slot, self.slot(slot)))
    }

    /// The slot of a block.
    pub fn slot_of(&self, block: BlockNumber) -> Option<u32> {
        (0..self.sizes.slots).find(|&slot| self.block_of(slot) == block.0)
    }

    /// Describes a block in a free slot.
    pub fn add_slot(&mut self, slot: Slot) -> Option<u32> {
        let free = self.slot_of(BlockNumber(NONE))?;
        self.set_slot(free, slot);
        let first = free as usize * self.sizes.block_pages as usize;
        for entry in first..first + self.sizes.block_pages as usize {
            self.set_logical(entry, NONE);
        }
        Some(free)
    }

    /// Frees a slot.
    ///
    /// Its pages do not count any more. On a chip that was tampered with, one of them may be found
    /// all the same: so no entry stays in a chain.
    pub fn drop_slot(&mut self, slot: u32) {
        for place in 0..self.sizes.block_pages {
            if let Some(logical) = self.logical_at(slot, place)
                && self.find(logical) == Some((slot, place))
            {
                self.remove(logical);
            }
        }
        self.words.set(self.slot_at(slot), NONE);
    }

    const fn entries_at(&self) -> usize {
        self.slot_at(self.sizes.slots)
    }

    const fn entry(&self, slot: u32, place: u32) -> usize {
        slot as usize * self.sizes.block_pages as usize + place as usize
    }

    fn logical(&self, entry: usize) -> u32 {
        self.words.get(self.entries_at() + 2 * entry)
    }

    fn set_logical(&mut self, entry: usize, to: u32) {
        self.words.set(self.entries_at() + 2 * entry, to);
    }

    /// The word that leads to the first entry of the chain of a logical page.
    const fn chain(&self, logical: u32) -> usize {
        let chain = logical as usize % self.sizes.chains();
        self.entries_at() + 2 * self.sizes.entries() + chain
    }

    /// The logical page that was written at a place of a log block, if it is known.
    pub fn logical_at(&self, slot: u32, place: u32) -> Option<u32> {
        let logical = self.logical(self.entry(slot, place));
        (logical != NONE).then_some(logical)
    }

    /// The slot and the place of the log page that counts.
    pub fn find(&self, logical: u32) -> Option<(u32, u32)> {
        if self.sizes.slots == 0 {
            return None;
        }
        let mut entry = self.words.get(self.chain(logical));
        while entry != NONE {
            if self.logical(entry as usize) == logical {
                return Some((entry / self.sizes.block_pages, entry % self.sizes.block_pages));
            }
            entry = self.words.get(self.entries_at() + 2 * entry as usize + 1);
        }
        None
    }

    /// Notes the log page that counts. None did before.
    pub fn insert(&mut self, slot: u32, place: u32, logical: u32) {
        let (entry, chain) = (self.entry(slot, place), self.chain(logical));
        let first = self.words.get(chain);
        self.set_logical(entry, logical);
        self.words.set(self.entries_at() + 2 * entry + 1, first);
        self.words.set(chain, entry as u32);
    }

    /// Removes the log page that counted. What was written there stays known.
    pub fn remove(&mut self, logical: u32) {
        let mut link = self.chain(logical);
        loop {
            let entry = self.words.get(link);
            if entry == NONE {
                return;
            }
            let next = self.entries_at() + 2 * entry as usize + 1;
            if self.logical(entry as usize) == logical {
                let behind = self.words.get(next);
                self.words.set(link, behind);
                return;
            }
            link = next;
        }
    }

    /// The logical block whose pages a log block has, from the first on, in order.
    pub fn sequential(&self, slot: u32) -> Option<u32> {
        let pages = self.sizes.block_pages;
        let first = self.logical_at(slot, 0)?;
        let next = self.slot(slot).next;
        let in_place = (0..next).all(|at| self.logical_at(slot, at) == Some(first + at));
        (first.is_multiple_of(pages) && in_place).then_some(first / pages)
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[test]
    fn chains_find_what_was_inserted_and_not_removed() {
        let sizes = Sizes { logical_blocks: 3, block_pages: 4, slots: 2 };
        let mut memory = vec![0; sizes.bytes()];
        let mut maps = Maps::new(&mut memory, sizes);
        let slot = Slot {
            block: 7,
            owner: 1,
            next: 4,
            is_closed: true,
            is_log: true,
            buffer: Some(true),
            age: 1 << 40,
        };
        assert_eq!((maps.add_slot(slot), maps.add_slot(slot)), (Some(0), Some(1)));
        assert_eq!((maps.add_slot(slot), maps.slot(1)), (None, slot));
        // All of these are in one chain.
        for (place, logical) in [(0, 1), (1, 5), (2, 9)] {
            maps.insert(0, place, logical);
        }
        maps.remove(5);
        assert_eq!((maps.find(1), maps.find(5), maps.find(9)), (Some((0, 0)), None, Some((0, 2))));
        assert_eq!(maps.logical_at(0, 1), Some(5));
        assert_eq!(maps.sequential(0), None);
        (0..4).for_each(|at| maps.insert(1, at, 4 + at));
        assert_eq!(maps.sequential(1), Some(1));
        maps.drop_slot(0);
        assert_eq!(maps.slot_of(BlockNumber(7)), Some(1));
        maps.set_data(2, Some(BlockNumber(9)));
        assert_eq!((maps.data(2), maps.data_of(BlockNumber(9))), (Some(BlockNumber(9)), Some(2)));
    }
}
