//! `page`: one flat table, 4 bytes a unit of the space (PMT, §1 and §6.3).
//!
//! Memory is taken once, for the whole space. So no change is refused for want of it, and the
//! memory never depends on what was written.

use super::contract::{Broken, Bytes, Mapping, Scheme, Work};
use super::extent::{Extent, Joined, Piece, Run, Space};
use super::memory::{WORD, set_word, word};
use super::refusal::Refusal;

/// What the table says of a unit that is not mapped.
const HOLE: u32 = u32::MAX;

/// A page map: the physical unit of every logical one.
pub struct Page<'m> {
    space: Space,
    table: &'m mut [u8],
    mapped: u32,
    probes: u64,
}

impl<'m> Page<'m> {
    /// Bytes of memory for `space`: 4 for each logical unit.
    pub fn bytes_needed(space: Space) -> usize {
        space.logical as usize * WORD
    }

    /// A map without any mapped unit. Refuses with [`Refusal::Full`].
    pub fn new(space: Space, memory: &'m mut [u8]) -> Result<Self, Refusal> {
        let needed = Self::bytes_needed(space);
        let table = memory.get_mut(..needed).ok_or(Refusal::Full { needed })?;
        table.fill(0xFF);
        Ok(Page { space, table, mapped: 0, probes: 0 })
    }

    fn piece(&self, unit: u32) -> Piece {
        let physical = word(self.table, unit as usize);
        Piece { logical: unit, length: 1, physical: (physical != HOLE).then_some(physical) }
    }

    /// Sets the word of `unit`, and returns what it said.
    fn set(&mut self, unit: u32, new: u32) -> Piece {
        let old = self.piece(unit);
        self.mapped += u32::from(new != HOLE);
        self.mapped -= u32::from(old.physical.is_some());
        set_word(self.table, unit as usize, new);
        old
    }
}

impl Scheme for Page<'_> {
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
        self.probes += u64::from(extent.length);
        if extent.length == 1 {
            // Most are, of a host that writes at random, and all that collection moves.
            return found(self.piece(extent.start));
        }
        Joined::pieces(found, |pieces| {
            (extent.start..extent.end()).for_each(|unit| pieces.push(self.piece(unit)));
        });
    }

    fn room(&self, _extent: Extent, _adds: bool) -> Result<(), Refusal> {
        Ok(())
    }

    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        self.probes += u64::from(extent.length);
        if extent.length == 1 {
            let old = self.set(extent.start, physical.unwrap_or(HOLE));
            return old.run().into_iter().for_each(superseded);
        }
        Joined::runs(superseded, |pieces| {
            for unit in extent.start..extent.end() {
                let new = physical.map_or(HOLE, |physical| physical + (unit - extent.start));
                pieces.push(self.set(unit, new));
            }
        });
    }
}

impl Mapping for Page<'_> {
    fn space(&self) -> Space {
        self.space
    }

    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        Joined::runs(visit, |pieces| {
            (0..self.space.logical).for_each(|unit| pieces.push(self.piece(unit)));
        });
    }

    fn entries(&self) -> usize {
        self.mapped as usize
    }

    fn bytes(&self) -> Bytes {
        let all = self.table.len();
        Bytes { used: all, reserved: all, peak: all }
    }

    fn work(&self) -> Work {
        Work { probes: self.probes, ..Work::default() }
    }

    fn check(&self) -> Result<(), Broken> {
        let mapped = (0..self.space.logical).filter_map(|unit| self.piece(unit).physical);
        if mapped.clone().any(|physical| physical >= self.space.physical) {
            return Err(Broken("a unit is mapped behind the physical space"));
        }
        if mapped.count() != self.mapped as usize {
            return Err(Broken("the number of mapped units is wrong"));
        }
        Ok(())
    }
}
