//! `page-2`: a page map of two levels, whose leaves are made at the first write.
//!
//! The paper compares with a flat table only (§6.3). This is its fair opponent: a large space of
//! which little is written costs little here too. A leaf stays when all its units were removed.

use super::contract::{Broken, Bytes, Mapping, Scheme, Work};
use super::extent::{Extent, Joined, Piece, Run, Space};
use super::memory::{WORD, set_word, word};
use super::refusal::Refusal;

/// Units of a leaf.
const LEAF: u32 = 1024;

/// An unmapped unit in a leaf, or a leaf that is not made in the directory.
const NONE: u32 = u32::MAX;

/// A page map of two levels: a directory of leaves, each of 1,024 units and 4 KiB.
pub struct Page2<'m> {
    space: Space,
    /// The directory, a word for each leaf; behind it the leaves as they were made.
    memory: &'m mut [u8],
    leaves: usize,
    mapped: u32,
    probes: u64,
}

impl<'m> Page2<'m> {
    /// Bytes of memory with which no write to `space` is refused.
    pub fn bytes_needed(space: Space) -> usize {
        let leaves = space.logical.div_ceil(LEAF) as usize;
        leaves * WORD + leaves * LEAF as usize * WORD
    }

    /// A map without any leaf.
    ///
    /// Refuses with [`Refusal::Full`] if the directory does not fit.
    pub fn new(space: Space, memory: &'m mut [u8]) -> Result<Self, Refusal> {
        let needed = space.logical.div_ceil(LEAF) as usize * WORD;
        memory.get_mut(..needed).ok_or(Refusal::Full { needed })?.fill(0xFF);
        Ok(Page2 { space, memory, leaves: 0, mapped: 0, probes: 0 })
    }

    fn directory(&self) -> usize {
        self.space.logical.div_ceil(LEAF) as usize
    }

    /// Bytes of the directory and of `leaves` leaves.
    fn bytes_with(&self, leaves: usize) -> usize {
        (self.directory() + leaves * LEAF as usize) * WORD
    }

    /// The place of a unit's number, counted in words, unless its leaf is not made.
    fn place(&self, unit: u32) -> Option<usize> {
        let leaf = word(self.memory, (unit / LEAF) as usize);
        (leaf != NONE)
            .then(|| self.directory() + leaf as usize * LEAF as usize + (unit % LEAF) as usize)
    }

    /// The units of `extent` that share a leaf with its unit `start`.
    fn in_leaf(extent: Extent, start: u32) -> Extent {
        let behind = (start / LEAF).saturating_add(1).saturating_mul(LEAF);
        Extent::between(start, behind.min(extent.end()))
    }

    fn piece(&self, unit: u32, place: usize) -> Piece {
        let physical = word(self.memory, place);
        Piece { logical: unit, length: 1, physical: (physical != NONE).then_some(physical) }
    }

    /// Passes the pieces of `extent` to `pieces`; returns how many words that read.
    fn collect(&self, extent: Extent, pieces: &mut Joined<'_>) -> u64 {
        let mut probes = 0;
        let mut start = extent.start;
        while start < extent.end() {
            let part = Self::in_leaf(extent, start);
            probes += 1;
            match self.place(start) {
                None => pieces.push(Piece::hole(part)),
                Some(place) => {
                    probes += u64::from(part.length);
                    for (unit, place) in (start..part.end()).zip(place..) {
                        pieces.push(self.piece(unit, place));
                    }
                }
            }
            start = part.end();
        }
        probes
    }

    /// Leaves that a write of `extent` makes.
    fn missing(&self, extent: Extent) -> usize {
        let leaves = extent.start / LEAF..=(extent.end() - 1) / LEAF;
        leaves.filter(|&leaf| word(self.memory, leaf as usize) == NONE).count()
    }

    fn make_leaf(&mut self, leaf: u32) {
        let bytes = self.bytes_with(self.leaves)..self.bytes_with(self.leaves + 1);
        if let Some(bytes) = self.memory.get_mut(bytes) {
            bytes.fill(0xFF);
        }
        set_word(self.memory, leaf as usize, self.leaves as u32);
        self.leaves += 1;
    }
}

impl Scheme for Page2<'_> {
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
        let mut probes = 0;
        Joined::pieces(found, |pieces| probes = self.collect(extent, pieces));
        self.probes += probes;
    }

    fn room(&self, extent: Extent, adds: bool) -> Result<(), Refusal> {
        // A removal makes no leaf.
        let needed = self.bytes_with(self.leaves + if adds { self.missing(extent) } else { 0 });
        if needed <= self.memory.len() { Ok(()) } else { Err(Refusal::Full { needed }) }
    }

    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        Joined::runs(superseded, |pieces| {
            let mut start = extent.start;
            while start < extent.end() {
                let part = Self::in_leaf(extent, start);
                self.probes += 1;
                if physical.is_some() && self.place(start).is_none() {
                    self.make_leaf(start / LEAF);
                }
                let Some(place) = self.place(start) else {
                    start = part.end();
                    continue;
                };
                self.probes += u64::from(part.length);
                for (unit, place) in (start..part.end()).zip(place..) {
                    let old = self.piece(unit, place);
                    let new = physical.map_or(NONE, |physical| physical + (unit - extent.start));
                    self.mapped += u32::from(new != NONE);
                    self.mapped -= u32::from(old.physical.is_some());
                    set_word(self.memory, place, new);
                    pieces.push(old);
                }
                start = part.end();
            }
        });
    }
}

impl Mapping for Page2<'_> {
    fn space(&self) -> Space {
        self.space
    }

    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        Joined::runs(visit, |pieces| _ = self.collect(self.space.whole(), pieces));
    }

    fn entries(&self) -> usize {
        self.mapped as usize
    }

    fn bytes(&self) -> Bytes {
        let used = self.bytes_with(self.leaves);
        Bytes { used, reserved: self.memory.len(), peak: used }
    }

    fn work(&self) -> Work {
        Work { probes: self.probes, ..Work::default() }
    }

    fn check(&self) -> Result<(), Broken> {
        let directory = 0..self.directory();
        let made = directory.map(|leaf| word(self.memory, leaf)).filter(|&leaf| leaf != NONE);
        if made.clone().any(|leaf| leaf as usize >= self.leaves) || made.count() != self.leaves {
            return Err(Broken("the directory leads to other leaves than were made"));
        }
        let mut mapped = 0;
        let mut outside = false;
        self.walk(&mut |run| {
            mapped += run.length;
            outside |= run.physical + run.length > self.space.physical;
        });
        if outside {
            return Err(Broken("a unit is mapped behind the physical space"));
        }
        if mapped != self.mapped {
            return Err(Broken("the number of mapped units is wrong"));
        }
        Ok(())
    }
}
