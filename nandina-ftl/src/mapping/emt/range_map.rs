//! The crate `rangemap` as a mapping: values are physical minus logical (§2.3).
//!
//! The crate joins neighbouring ranges of equal value, so runs that continue one another are one
//! entry here. It allocates on the heap; bytes are those of the entries alone, a lower bound.

use core::ops::Range;

use rangemap::RangeMap;

use super::{growth, search};
use crate::mapping::{Broken, Bytes, Extent, Mapping, Piece, Refusal, Run, Space, Work};

/// Bytes of an entry: two bounds and a value.
const ENTRY: usize = 12;

/// Runs as ranges whose value, modulo 2^32, leads from logical to physical units.
pub struct Rangemap {
    space: Space,
    map: RangeMap<u32, u32>,
    limit: usize,
    peak: usize,
    calls: u64,
}

impl Rangemap {
    /// An empty mapping that takes entries of at most `limit` bytes together.
    pub fn new(space: Space, limit: usize) -> Self {
        Rangemap { space, map: RangeMap::new(), limit, peak: 0, calls: 0 }
    }

    fn overlapping(&self, extent: Extent) -> impl Iterator<Item = Run> {
        self.map.overlapping(extent.start..extent.end()).map(run)
    }

    fn fits(&self, extent: Extent, new: usize) -> Result<(), Refusal> {
        let all = |more: usize| (self.map.len() + more) * ENTRY;
        if all(new + 1) <= self.limit {
            return Ok(());
        }
        // Entries that the crate joins are not foreseen: a full mapping may refuse one too many.
        let needed = all(growth(extent, new, self.overlapping(extent)));
        if needed <= self.limit { Ok(()) } else { Err(Refusal::Full { needed }) }
    }

    fn pass(&mut self, extent: Extent, superseded: &mut dyn FnMut(Run)) {
        self.overlapping(extent).filter_map(|run| run.within(extent)).for_each(superseded);
        self.calls += 2;
    }
}

fn run((range, value): (&Range<u32>, &u32)) -> Run {
    Run {
        logical: range.start,
        length: range.end - range.start,
        physical: range.start.wrapping_add(*value),
    }
}

impl Mapping for Rangemap {
    fn space(&self) -> Space {
        self.space
    }

    fn look_up(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) -> Result<(), Refusal> {
        self.space.admit(extent)?;
        self.calls += 1;
        search(extent, self.overlapping(extent), found);
        Ok(())
    }

    fn update(
        &mut self,
        extent: Extent,
        physical: u32,
        superseded: &mut dyn FnMut(Run),
    ) -> Result<(), Refusal> {
        self.space.admit_run(extent, physical)?;
        self.fits(extent, 1)?;
        self.pass(extent, superseded);
        self.map.insert(extent.start..extent.end(), physical.wrapping_sub(extent.start));
        self.peak = self.peak.max(self.map.len());
        Ok(())
    }

    fn remove(&mut self, extent: Extent, superseded: &mut dyn FnMut(Run)) -> Result<(), Refusal> {
        self.space.admit(extent)?;
        self.fits(extent, 0)?;
        self.pass(extent, superseded);
        self.map.remove(extent.start..extent.end());
        self.peak = self.peak.max(self.map.len());
        Ok(())
    }

    fn admits(&self, extent: Extent) -> Result<(), Refusal> {
        self.space.admit(extent)?;
        self.fits(extent, 1)
    }

    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        self.map.iter().map(run).for_each(visit);
    }

    fn entries(&self) -> usize {
        self.map.len()
    }

    fn bytes(&self) -> Bytes {
        let [used, peak] = [self.map.len(), self.peak].map(|entries| entries * ENTRY);
        Bytes { used, reserved: self.limit, peak }
    }

    fn work(&self) -> Work {
        Work { probes: self.calls, ..Work::default() }
    }

    fn check(&self) -> Result<(), Broken> {
        let runs: std::vec::Vec<_> = self.map.iter().map(run).collect();
        if runs.iter().any(|run| run.end() > self.space.logical) {
            return Err(Broken("a run ends behind the logical space"));
        }
        if runs.windows(2).any(|pair| pair[0].end() > pair[1].logical) {
            return Err(Broken("two runs overlap"));
        }
        if runs.windows(2).any(|pair| pair[0].continues_to(&pair[1])) {
            return Err(Broken("two runs that continue one another are not joined"));
        }
        Ok(())
    }
}
