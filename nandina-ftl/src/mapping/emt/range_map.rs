//! The crate `rangemap` as a mapping: values are physical minus logical (§2.3).
//!
//! The crate joins neighbouring ranges of equal value, so runs that continue one another are one
//! entry here. It allocates on the heap; bytes are those of the entries alone, a lower bound.

use core::ops::Range;

use rangemap::RangeMap;

use super::{growth, search};
use crate::mapping::{Broken, Bytes, Extent, Mapping, Piece, Refusal, Run, Scheme, Space, Work};

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
}

fn run((range, value): (&Range<u32>, &u32)) -> Run {
    Run {
        logical: range.start,
        length: range.end - range.start,
        physical: range.start.wrapping_add(*value),
    }
}

impl Scheme for Rangemap {
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
        self.calls += 1;
        search(extent, self.overlapping(extent), found);
    }

    fn room(&self, extent: Extent, adds: bool) -> Result<(), Refusal> {
        let new = usize::from(adds);
        let all = |more: usize| (self.map.len() + more) * ENTRY;
        if all(new + 1) <= self.limit {
            return Ok(());
        }
        // Entries that the crate joins are not foreseen: a full mapping may refuse one too many.
        let needed = all(growth(extent, new, self.overlapping(extent)));
        if needed <= self.limit { Ok(()) } else { Err(Refusal::Full { needed }) }
    }

    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        self.overlapping(extent).filter_map(|run| run.within(extent)).for_each(superseded);
        let units = extent.start..extent.end();
        match physical {
            Some(physical) => self.map.insert(units, physical.wrapping_sub(extent.start)),
            None => self.map.remove(units),
        }
        self.calls += 2;
        self.peak = self.peak.max(self.map.len());
    }
}

impl Mapping for Rangemap {
    fn space(&self) -> Space {
        self.space
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
