//! `emt`: the Extent Mapping Tree, over any ordered container (§2.3, §4).
//!
//! Runs in the tree never overlap and are never joined: the tree keeps one node for each write,
//! or for what is left of it. No algorithm here knows which container holds the runs.
//!
//! Algorithms 4 and 5 as printed lose data. What is built is what they mean; the tests are named
//! after the printed lines, and each shows what that line would do.

mod arena;
#[cfg(feature = "std")]
mod btree_map;
mod ordered;
#[cfg(feature = "std")]
mod range_map;
#[cfg(feature = "std")]
mod y_fast;

pub use arena::Arena;
#[cfg(feature = "std")]
pub use btree_map::Runs;
pub use ordered::Ordered;
#[cfg(feature = "std")]
pub use range_map::Rangemap;
#[cfg(feature = "std")]
pub use y_fast::YFast;

use super::contract::{Broken, Bytes, Mapping, Scheme, Work};
use super::extent::{Extent, Piece, Run, Space};
use super::refusal::Refusal;

/// An Extent Mapping Tree over the container `O`.
pub struct Emt<O> {
    space: Space,
    runs: O,
}

impl<O: Ordered> Emt<O> {
    /// A mapping over an empty container.
    pub fn new(space: Space, runs: O) -> Self {
        Emt { space, runs }
    }

    /// The first run that ends behind `start`.
    fn first(&self, start: u32) -> Option<Run> {
        let before = self.runs.predecessor(start).filter(|run| run.end() > start);
        before.or_else(|| self.runs.successor(start))
    }

    /// The runs that overlap `extent`, in order.
    fn overlapping(&self, extent: Extent) -> impl Iterator<Item = Run> {
        let next = |run: &Run| self.runs.successor(run.logical);
        let mut run = self.first(extent.start);
        core::iter::from_fn(move || {
            let found = run.filter(|run| run.logical < extent.end())?;
            // No second descent where the run covers the rest of the extent.
            run = if found.end() < extent.end() { next(&found) } else { None };
            Some(found)
        })
    }
}

/// How many runs a change adds that cuts `extent` out of `runs`; 0 if fewer.
fn growth(extent: Extent, new: usize, runs: impl Iterator<Item = Run>) -> usize {
    let (mut more, mut fewer) = (new, 0);
    for run in runs {
        fewer += 1;
        more += usize::from(run.logical < extent.start) + usize::from(run.end() > extent.end());
        // Only the last run can still add one.
        if fewer > more {
            break;
        }
    }
    more.saturating_sub(fewer)
}

/// Algorithm 5: passes the pieces of `extent`, given the runs that overlap it.
///
/// As printed the algorithm returns nothing once it meets a hole (lines 10 and 12): what it had
/// found before the hole is lost, and what lies behind is never searched. Here a hole is a piece.
fn search(extent: Extent, runs: impl Iterator<Item = Run>, found: &mut dyn FnMut(Piece)) {
    let mut at = extent.start;
    for run in runs.filter_map(|run| run.within(extent)) {
        if at < run.logical {
            found(Piece::hole(Extent::between(at, run.logical)));
        }
        found(run.into());
        at = run.end();
    }
    if at < extent.end() {
        found(Piece::hole(Extent::between(at, extent.end())));
    }
}

impl<O: Ordered> Scheme for Emt<O> {
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
        search(extent, self.overlapping(extent), found);
    }

    fn room(&self, extent: Extent, adds: bool) -> Result<(), Refusal> {
        let new = usize::from(adds);
        // A change adds at most its own run and the right part of a divided one.
        if self.runs.room(new + 1).is_ok() {
            return Ok(());
        }
        self.runs.room(growth(extent, new, self.overlapping(extent)))
    }

    /// Algorithm 4: cuts `extent` out of the runs it overlaps, then adds the new one.
    ///
    /// As printed the algorithm deletes the predecessor also where it does not overlap (line 12),
    /// does nothing where there is no predecessor (line 3), misses overlaps of exactly one unit at
    /// either end (lines 4 and 7), keeps one unit too many on the left (line 5), and leaves the
    /// right part with the physical start of the whole (line 8).
    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        let mut right = None;
        let mut next = self.first(extent.start);
        while let Some(run) = next.filter(|run| run.logical < extent.end()) {
            if let Some(cut) = run.within(extent) {
                superseded(cut);
            }
            right = run.from(extent.end());
            next = if right.is_none() { self.runs.successor(run.logical) } else { None };
            match run.before(extent.start) {
                Some(left) => self.runs.insert(left),
                // The new run takes the place of one that begins where it does.
                None if physical.is_some() && run.logical == extent.start => {}
                None => self.runs.delete(run.logical),
            }
        }
        if let Some(physical) = physical {
            let Extent { start: logical, length } = extent;
            self.runs.insert(Run { logical, length, physical });
        }
        if let Some(right) = right {
            self.runs.insert(right);
        }
    }
}

impl<O: Ordered> Mapping for Emt<O> {
    fn space(&self) -> Space {
        self.space
    }

    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        self.overlapping(self.space.whole()).for_each(visit);
    }

    fn entries(&self) -> usize {
        self.runs.entries()
    }

    fn bytes(&self) -> Bytes {
        self.runs.bytes()
    }

    fn work(&self) -> Work {
        self.runs.work()
    }

    fn check(&self) -> Result<(), Broken> {
        self.runs.check()?;
        let (mut end, mut count) = (0, 0);
        let mut next = self.runs.predecessor(0).or_else(|| self.runs.successor(0));
        while let Some(run) = next {
            count += 1;
            if run.length == 0 {
                return Err(Broken("a run has no units"));
            }
            if run.logical < end {
                return Err(Broken("two runs overlap"));
            }
            end = run.end();
            if end > self.space.logical || run.physical + run.length > self.space.physical {
                return Err(Broken("a run ends behind its space"));
            }
            next = self.runs.successor(run.logical);
        }
        if count != self.runs.entries() {
            return Err(Broken("successors do not lead to every run"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
