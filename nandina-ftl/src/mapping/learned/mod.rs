//! `learned`: segments that predict where units are, in groups of 256 (LeaFTL).
//!
//! Sun, Li, Sun, Sun, Vucinic and Huang, *LeaFTL: a learning-based flash translation layer for
//! solid-state drives*, ASPLOS 2023. The paper that this crate follows has no such mapping. A segment
//! is 8 bytes (`segment.rs`): a line from logical to physical units. An *accurate* one is exact. An
//! *approximate* one is wrong by γ units at most; which units it has is listed beside it (LeaFTL's
//! conflict resolution buffer). The segments of a group are in log-structured levels
//! (`group.rs`): new ones on top, older ones keep what they do not show. A group that would need
//! more memory is compacted (there that is done after each million writes).
//!
//! A look-up that has to be right reads the page that was predicted. Its spare area tells which
//! logical units are around it. If the prediction was wrong, one more read follows: `flash_reads`
//! counts it. To tell what a change supersedes, the page that an approximate segment predicts is
//! read too, once for each unit, which LeaFTL does not count. Spare areas are behind the trait
//! [`Spare`], so that their bytes are not those of the mapping.
//!
//! What differs from LeaFTL: it sorts a write buffer before it numbers pages, and learns from that.
//! Here pages come with their numbers, one request after another. So a new run is learned together
//! with its neighbours in the top level, all of whose units count. An approximate segment is only
//! made where it takes fewer bytes than accurate ones. There are holes, as segments of slope 0.

mod fit;
mod group;
mod segment;
mod spare;
mod store;
#[cfg(test)]
mod tests;

use super::contract::{Broken, Bytes, Mapping, Scheme, Work};
use super::extent::{Extent, Joined, Piece, Run, Space};
use super::refusal::Refusal;
use group::{Group, Place, SEGMENTS, UNITS};
use segment::{SEGMENT, distance};
#[cfg(feature = "std")]
pub use spare::HeapSpare;
pub use spare::{NoSpare, Spare};
use store::{ENTRY, GRANULE, GRANULES_MAX, Store};

/// Units of a group, as a number of units.
const GROUP: u32 = UNITS as u32;

/// Learned segments, with spare areas that tell where mispredicted units are.
///
/// ```
/// use nandina_ftl::mapping::learned::{HeapSpare, Learned};
/// use nandina_ftl::mapping::{Extent, Mapping, Space};
///
/// let space = Space { logical: 1 << 20, physical: 1 << 21 };
/// let mut memory = [0; 1000];
/// let mut map = Learned::new(space, 4, &mut memory, HeapSpare::default())?;
/// // Two units 9 apart, stored 6 apart: one segment, whose line is wrong by 4 at most.
/// map.update(Extent::new(10, 1), 100, &mut |_| {})?;
/// map.update(Extent::new(19, 1), 106, &mut |_| {})?;
/// assert_eq!(map.entries(), 1);
/// map.look_up(Extent::new(19, 1), &mut |piece| assert_eq!(piece.physical, Some(106)))?;
/// assert_eq!(map.work().flash_reads, 1); // a misprediction
/// # Ok::<(), nandina_ftl::mapping::Refusal>(())
/// ```
pub struct Learned<'m, S> {
    space: Space,
    /// γ: the most units by which a prediction is wrong.
    error: u32,
    store: Store<'m>,
    spare: S,
    /// The group that is worked on.
    group: Group,
    probes: u64,
    nodes: u64,
    flash_reads: u64,
}

impl<'m, S: Spare> Learned<'m, S> {
    /// Bytes with which `runs` runs fit in the space, wherever they are.
    ///
    /// A run of any length takes a segment in each of its groups, so all groups are counted. Where
    /// runs are many, the bytes are those of the most segments that all groups can have.
    pub fn bytes_for(space: Space, runs: usize) -> usize {
        let groups = space.logical.div_ceil(GROUP) as usize;
        // A run and the hole before it are a segment each, and a slot may end with half a granule.
        let segments = (runs * 2 * (SEGMENT + GRANULE)).min(groups * GRANULES_MAX * GRANULE);
        groups * (GRANULE + ENTRY) + segments + 2 * GRANULE
    }

    /// A mapping without any segment, whose predictions are wrong by `error` units at most (γ).
    ///
    /// Takes any memory: what does not fit is refused later.
    pub fn new(space: Space, error: u8, memory: &'m mut [u8], spare: S) -> Result<Self, Refusal> {
        Ok(Learned {
            space,
            error: u32::from(error),
            store: Store::new(memory),
            spare,
            group: Group::new(),
            probes: 0,
            nodes: 0,
            flash_reads: 0,
        })
    }
}

/// What a look-up needs of a mapping.
struct View<'v, 'm, S> {
    store: &'v Store<'m>,
    spare: &'v S,
    error: u32,
}

impl<S: Spare> View<'_, '_, S> {
    /// Passes the pieces of a group from unit `low` to `high`.
    ///
    /// `near` takes for each prediction that may be wrong whether it is.
    fn pieces(
        &self,
        (number, group): (u32, &Group),
        (low, high): (u8, u8),
        pass: &mut dyn FnMut(Piece),
        mut near: impl FnMut(bool),
    ) {
        let first = number * GROUP;
        group.resolve(low, high, |unit, place| {
            let logical = first + u32::from(unit);
            let physical = match place {
                Place::Hole => None,
                Place::Exact(physical) => Some(physical),
                Place::Near(predicted) => {
                    let found = self.spare.locate(logical, predicted, self.error);
                    near(found != Some(predicted));
                    found
                }
            };
            pass(Piece { logical, length: 1, physical });
        });
    }

    /// Passes the pieces of `extent`; returns directory entries and segments read, and wrong units.
    fn collect(
        &self,
        extent: Extent,
        group: &mut Group,
        pieces: &mut Joined<'_>,
    ) -> (u64, u64, u64) {
        let (first, last) = groups(extent);
        let (mut at, probes) = self.store.find(first);
        let (mut nodes, mut wrong, mut next) = (0, 0, extent.start);
        while at < self.store.entries() && self.store.group(at) <= last {
            let number = self.store.group(at);
            let (low, high) = part(extent, number);
            let start = number * GROUP + u32::from(low);
            if next < start {
                pieces.push(Piece::hole(Extent::between(next, start)));
            }
            self.store.read(at, group);
            let near = |is_wrong| wrong += u64::from(is_wrong);
            let pass = &mut |piece| pieces.push(piece);
            self.pieces((number, group), (low, high), pass, near);
            nodes += group.segments().len() as u64;
            next = start + u32::from(high - low) + 1;
            at += 1;
        }
        if next < extent.end() {
            pieces.push(Piece::hole(Extent::between(next, extent.end())));
        }
        (probes, nodes, wrong)
    }
}

/// The units of a group that `extent` has, as the first and the last one.
fn part(extent: Extent, group: u32) -> (u8, u8) {
    let first = group * GROUP;
    let low = extent.start.max(first) - first;
    let high = (extent.end() - 1 - first).min(GROUP - 1);
    (low as u8, high as u8)
}

/// The first and the last group of an extent.
fn groups(extent: Extent) -> (u32, u32) {
    (extent.start / GROUP, (extent.end() - 1) / GROUP)
}

impl<S: Spare> Scheme for Learned<'_, S> {
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
        let view = View { store: &self.store, spare: &self.spare, error: self.error };
        Joined::pieces(found, |pieces| {
            let (probes, nodes, wrong) = view.collect(extent, &mut self.group, pieces);
            self.probes += probes;
            self.nodes += nodes;
            self.flash_reads += wrong;
        });
    }

    fn room(&self, extent: Extent, adds: bool) -> Result<(), Refusal> {
        let (first, last) = groups(extent);
        let (from, to) = (self.store.find(first).0, self.store.find(last + 1).0);
        let known = to - from;
        let new = if adds { (last - first) as usize + 1 - known } else { 0 };
        // A group that is covered whole shrinks to one segment, or stays so.
        self.store.room(new * (GRANULE + ENTRY) + known.min(2) * GRANULE)
    }

    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        let (first, last) = groups(extent);
        let ((from, read), (mut to, more)) = (self.store.find(first), self.store.find(last + 1));
        self.probes += read + more;
        if physical.is_some() {
            self.store.add_groups((from, to), first, last);
            to = from + (last - first) as usize + 1;
        }
        Joined::runs(superseded, |old| {
            for at in from..to {
                let number = self.store.group(at);
                let (low, high) = part(extent, number);
                self.store.read(at, &mut self.group);
                let view = View { store: &self.store, spare: &self.spare, error: self.error };
                let mut is_mapped = false;
                let pass = &mut |piece: Piece| {
                    is_mapped |= piece.physical.is_some();
                    old.push(piece);
                };
                let near = |_| self.flash_reads += 1;
                view.pieces((number, &self.group), (low, high), pass, near);
                self.nodes += self.group.segments().len() as u64;
                if physical.is_none() && !is_mapped {
                    continue;
                }
                let unit = number * GROUP + u32::from(low);
                let new = physical.map(|physical| physical + (unit - extent.start));
                self.group.write(low, high, new, self.error);
                self.store.write(at, &mut self.group);
            }
        });
        match physical {
            Some(physical) => {
                let Extent { start: logical, length } = extent;
                self.spare.program(Run { logical, length, physical });
            }
            None => self.store.drop_groups(from, to),
        }
    }
}

impl<S: Spare> Mapping for Learned<'_, S> {
    fn space(&self) -> Space {
        self.space
    }

    /// Reads of spare areas are not counted: no request needs them.
    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        let view = View { store: &self.store, spare: &self.spare, error: self.error };
        let whole = self.space.whole();
        Joined::runs(visit, |pieces| _ = view.collect(whole, &mut Group::new(), pieces));
    }

    fn entries(&self) -> usize {
        (0..self.store.entries()).map(|at| self.store.segments(at)).sum()
    }

    fn bytes(&self) -> Bytes {
        self.store.bytes()
    }

    fn work(&self) -> Work {
        Work {
            probes: self.probes,
            nodes: self.nodes,
            moved: self.store.moved(),
            flash_reads: self.flash_reads,
            flash_writes: 0,
        }
    }

    fn check(&self) -> Result<(), Broken> {
        self.store.check()?;
        let mut group = Group::new();
        for at in 0..self.store.entries() {
            self.store.read(at, &mut group);
            self.check_group(self.store.group(at), &group)?;
        }
        Ok(())
    }
}

impl<S: Spare> Learned<'_, S> {
    fn check_group(&self, number: u32, group: &Group) -> Result<(), Broken> {
        if group.segments().is_empty() || group.segments().len() > SEGMENTS {
            return Err(Broken("a group has no segments, or too many"));
        }
        let first = number * GROUP;
        for segment in group.segments() {
            if segment.start > segment.last || first + u32::from(segment.last) >= self.space.logical
            {
                return Err(Broken("a segment ends behind its group or the space"));
            }
            if segment.is_approximate() {
                let mut owned = group.owned(segment);
                let start = owned.next();
                let last = owned.last().or(start);
                if self.error == 0 || start != Some(segment.start) || last != Some(segment.last) {
                    return Err(Broken("an approximate segment does not end with units it has"));
                }
            } else if segment.unit_from(segment.last) != usize::from(segment.last) {
                return Err(Broken("a segment does not end with a unit"));
            }
        }
        let mut broken = None;
        group.resolve(0, u8::MAX, |unit, place| {
            let logical = first + u32::from(unit);
            let physical = match place {
                Place::Hole => return,
                Place::Exact(physical) => physical,
                Place::Near(near) => match self.spare.locate(logical, near, self.error) {
                    Some(physical) if distance(physical, near) <= self.error => physical,
                    _ => {
                        broken = Some(Broken("a prediction is further off than allowed"));
                        return;
                    }
                },
            };
            if physical >= self.space.physical {
                broken = Some(Broken("a unit is mapped behind the physical space"));
            }
        });
        broken.map_or(Ok(()), Err)
    }
}
