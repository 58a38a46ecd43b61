//! `page`: one flat table, 4 bytes a unit of the space (PMT, §1 and §6.3).
//!
//! Memory is taken once, for the whole space. So no change is refused for want of it, and the
//! memory never depends on what was written.

use super::contract::{Broken, Bytes, Mapping, Refusal, Work};
use super::extent::{Extent, Joined, Piece, Run, Space};
use super::memory::{WORD, set_word, word};

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

    /// Passes the old pieces of `extent` and gives each unit its new number.
    fn replace(
        &mut self,
        extent: Extent,
        new: impl Fn(u32) -> u32,
        superseded: &mut dyn FnMut(Run),
    ) {
        let mut pass = |piece: Piece| piece.run().into_iter().for_each(&mut *superseded);
        let mut pieces = Joined::to(&mut pass);
        for unit in extent.start..extent.end() {
            let old = self.piece(unit);
            let new = new(unit - extent.start);
            self.mapped += u32::from(new != HOLE);
            self.mapped -= u32::from(old.physical.is_some());
            set_word(self.table, unit as usize, new);
            pieces.push(old);
        }
        self.probes += u64::from(extent.length);
        pieces.end();
    }
}

impl Mapping for Page<'_> {
    fn space(&self) -> Space {
        self.space
    }

    fn look_up(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) -> Result<(), Refusal> {
        self.space.admit(extent)?;
        let mut pieces = Joined::to(found);
        (extent.start..extent.end()).for_each(|unit| pieces.push(self.piece(unit)));
        pieces.end();
        self.probes += u64::from(extent.length);
        Ok(())
    }

    fn update(
        &mut self,
        extent: Extent,
        physical: u32,
        superseded: &mut dyn FnMut(Run),
    ) -> Result<(), Refusal> {
        self.space.admit_run(extent, physical)?;
        self.replace(extent, |at| physical + at, superseded);
        Ok(())
    }

    fn remove(&mut self, extent: Extent, superseded: &mut dyn FnMut(Run)) -> Result<(), Refusal> {
        self.space.admit(extent)?;
        self.replace(extent, |_| HOLE, superseded);
        Ok(())
    }

    fn admits(&self, extent: Extent) -> Result<(), Refusal> {
        self.space.admit(extent)
    }

    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        let mut pass = |piece: Piece| piece.run().into_iter().for_each(&mut *visit);
        let mut pieces = Joined::to(&mut pass);
        (0..self.space.logical).for_each(|unit| pieces.push(self.piece(unit)));
        pieces.end();
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
