//! Prefixes of units, and the levels that a search visits (§2.2, §3.2, §3.3).
//!
//! A key is a prefix behind a leading 1: that of the root is 1, and of `11**` with four bits 7. So
//! no key is 0. A path is the levels above a leaf whose internal nodes the leaf needs.

use crate::mapping::Extent;

/// How many bits a unit has, and so the levels below the root; at most 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels(pub u32);

/// Which internal nodes an insertion makes (§3.1.1 and §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// LIS: a node at every level above the leaf.
    Linear,
    /// BIS: a node where the search for the leaf looks before it continues below.
    Binary,
}

/// The levels between which a binary search has to look, both excluded.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    low: i32,
    high: i32,
}

impl Levels {
    /// The levels of a space of `logical` units.
    pub fn of(logical: u32) -> Levels {
        Levels(u32::BITS - logical.saturating_sub(1).leading_zeros())
    }

    /// The key of the prefix of `level` bits that `unit` has.
    pub fn key(self, unit: u32, level: u32) -> u32 {
        1 << level | unit >> (self.0 - level)
    }

    /// Units below a node of that level.
    pub fn length(self, level: u32) -> u32 {
        1 << (self.0 - level)
    }

    /// The units below the node of that level that has `unit`.
    pub fn prefix(self, unit: u32, level: u32) -> Extent {
        let length = self.length(level);
        Extent::new(unit & !(length - 1), length)
    }

    /// The extent and the level that a key encodes.
    pub fn decode(self, key: u32) -> (Extent, u32) {
        let level = key.ilog2();
        (Extent::new((key ^ 1 << level) << (self.0 - level), self.length(level)), level)
    }

    /// The level of the first canonical extent of `extent` (Definition 1).
    fn first_level(self, extent: Extent) -> u32 {
        let aligned = if extent.start == 0 { self.0 } else { extent.start.trailing_zeros() };
        self.0 - aligned.min(extent.length.ilog2()).min(self.0)
    }

    /// The canonical extents of `extent`, in order, each with its level.
    pub fn canonical(self, extent: Extent) -> impl Iterator<Item = (Extent, u32)> {
        let mut rest = extent;
        core::iter::from_fn(move || {
            (rest.length > 0).then(|| {
                let level = self.first_level(rest);
                let part = Extent::new(rest.start, self.length(level));
                rest = Extent::between(part.end(), rest.end());
                (part, level)
            })
        })
    }

    /// The search over all prefix lengths: between -1 and one more than the levels.
    pub fn search(self) -> Search {
        Search { low: -1, high: self.0 as i32 + 1 }
    }

    /// The levels above a leaf of `level` at which it needs an internal node.
    pub fn path(self, level: u32, insertion: Insertion) -> impl Iterator<Item = u32> {
        let mut next = 0;
        let mut search = self.search();
        core::iter::from_fn(move || match insertion {
            Insertion::Linear => {
                next += 1;
                (next <= level).then(|| next - 1)
            }
            Insertion::Binary => loop {
                let middle = search.middle()?;
                if middle >= level {
                    search.look_above(middle);
                    if middle == level {
                        return None;
                    }
                } else {
                    search.look_below(middle);
                    return Some(middle);
                }
            },
        })
    }
}

impl Search {
    /// The level to look at: the middle, rounded down; `None` where no level is left.
    pub fn middle(&self) -> Option<u32> {
        (self.high - self.low > 1).then(|| ((self.low + self.high) >> 1) as u32)
    }

    /// The node at `level` is internal: what is sought is below it.
    pub fn look_below(&mut self, level: u32) {
        self.low = level as i32;
    }

    /// There is no node at `level`: what is sought is above it.
    pub fn look_above(&mut self, level: u32) {
        self.high = level as i32;
    }
}
