//! The segments of a group of 256 units, in levels.
//!
//! Segments are in one row: those of the top level first, each level sorted and without overlaps. A
//! level ends where the next segment begins before the end of the last one. Where units are in
//! several segments, the first one counts. No group knows another one, or memory.

use super::fit::line;
use super::segment::{Point, SEGMENT, Segment, distance};

/// Units of a group.
pub(super) const UNITS: usize = 256;

/// The most segments of a group: each has a unit for which it counts.
pub(super) const SEGMENTS: usize = UNITS;

/// Where a unit of a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Hole,
    Exact(u32),
    /// At most the allowed error from there.
    Near(u32),
}

/// The segments of a group as they are worked on.
pub(super) struct Group {
    segments: [Segment; SEGMENTS + 2],
    count: usize,
    /// The approximate segment of each unit, by its owner; 0 for none. (A unit is in one at most.)
    owners: [u8; UNITS],
    has_approximate: bool,
}

impl Group {
    pub fn new() -> Self {
        Group {
            segments: [Segment::default(); SEGMENTS + 2],
            count: 0,
            owners: [0; UNITS],
            has_approximate: false,
        }
    }

    /// Drops all segments.
    pub fn clear(&mut self) {
        self.count = 0;
        if self.has_approximate {
            self.owners = [0; UNITS];
            self.has_approximate = false;
        }
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments[..self.count]
    }

    /// Adds a segment below all others. One too many is dropped.
    pub fn push(&mut self, segment: Segment) {
        if self.count < SEGMENTS {
            self.segments[self.count] = segment;
            self.count += 1;
            self.has_approximate |= segment.owner != 0;
        }
    }

    /// Adds a unit to the approximate segment of `owner`.
    pub fn own(&mut self, unit: u8, owner: u8) {
        self.owners[usize::from(unit)] = owner;
    }

    /// The units of an approximate segment, which rise.
    pub fn owned(&self, segment: &Segment) -> impl Iterator<Item = u8> {
        let owner = segment.owner;
        (segment.start..=segment.last).filter(move |&unit| self.owners[usize::from(unit)] == owner)
    }

    /// Bytes of segments and of the lists of units.
    pub fn bytes(&self) -> usize {
        let lists: usize = match self.has_approximate {
            false => 0,
            true => {
                let approximate = self.segments().iter().filter(|one| one.is_approximate());
                approximate.map(|segment| 1 + self.owned(segment).count()).sum()
            }
        };
        self.count * SEGMENT + lists
    }

    /// Passes each unit from `low` to `high` with its place.
    pub fn resolve(&self, low: u8, high: u8, mut pass: impl FnMut(u8, Place)) {
        let mut places = [None; UNITS];
        let mut missing = usize::from(high - low) + 1;
        for segment in self.segments() {
            if segment.last < low || segment.start > high {
                continue;
            }
            let (from, to) = (segment.start.max(low), segment.last.min(high));
            let mut set = |unit: usize, place: Place| {
                if let none @ None = &mut places[unit] {
                    *none = Some(place);
                    missing -= 1;
                }
            };
            if segment.is_approximate() {
                let owned = (from..=to).filter(|&at| self.owners[usize::from(at)] == segment.owner);
                owned.for_each(|at| set(usize::from(at), Place::Near(segment.predict(at))));
            } else {
                let units = segment.unit_from(from)..=usize::from(to);
                for unit in units.step_by(usize::from(segment.stride())) {
                    let exact = || Place::Exact(segment.predict(unit as u8));
                    set(unit, if segment.is_hole() { Place::Hole } else { exact() });
                }
            }
            if missing == 0 {
                break;
            }
        }
        (low..=high).for_each(|at| pass(at, places[usize::from(at)].unwrap_or(Place::Hole)));
    }

    /// Maps the units from `low` to `high` to those from `physical` on, or to none.
    ///
    /// The group grows by the bytes of a segment at most.
    pub fn write(&mut self, low: u8, high: u8, physical: Option<u32>, error: u32) {
        self.cut(low, high);
        let new = match physical {
            Some(physical) => Segment::accurate(low, high, 1, physical),
            None if self.segments().iter().all(|one| !one_has(one, low, high)) => return,
            None => Segment::hole(low, high),
        };
        let mut top = self.top_level();
        let mut at = self.segments[..top].partition_point(|segment| segment.last < low);
        if at < top && self.segments[at].start <= high {
            // What is around the new segment is moved to the next level.
            let around = self.take(at);
            top -= 1;
            self.insert(top, around);
        }
        // All units of the top level count. So its neighbours are learned together with the new one.
        let mut joined = new;
        if at > 0
            && let Some(both) = self.learn(self.segments[at - 1], joined, error)
        {
            joined = both;
            at -= 1;
            self.take(at);
            top -= 1;
        }
        if at < top
            && let Some(both) = self.learn(joined, self.segments[at], error)
        {
            joined = both;
            self.take(at);
        }
        self.insert(at, joined);
        if self.count > SEGMENTS {
            self.compact();
        }
    }

    fn take(&mut self, at: usize) -> Segment {
        let taken = self.segments[at];
        self.segments.copy_within(at + 1..self.count, at);
        self.count -= 1;
        taken
    }

    fn insert(&mut self, at: usize, segment: Segment) {
        self.segments.copy_within(at..self.count, at + 1);
        self.segments[at] = segment;
        self.count += 1;
    }

    /// How many segments the top level has.
    fn top_level(&self) -> usize {
        let pairs = self.segments().windows(2);
        let ends = pairs.take_while(|pair| pair[1].start > pair[0].last).count();
        if self.count == 0 { 0 } else { ends + 1 }
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        let pairs = self.segments().windows(2);
        usize::from(self.count > 0) + pairs.filter(|pair| pair[1].start <= pair[0].last).count()
    }

    /// Takes the units from `low` to `high` from all segments that begin or end there.
    fn cut(&mut self, low: u8, high: u8) {
        let mut kept = 0;
        for at in 0..self.count {
            let mut segment = self.segments[at];
            if segment.last < low || segment.start > high || self.cut_one(&mut segment, low, high) {
                self.segments[kept] = segment;
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Returns whether units are left.
    fn cut_one(&mut self, segment: &mut Segment, low: u8, high: u8) -> bool {
        if segment.is_approximate() {
            let part = usize::from(segment.start.max(low))..=usize::from(segment.last.min(high));
            for owner in &mut self.owners[part] {
                *owner = if *owner == segment.owner { 0 } else { *owner };
            }
            return self.shrink(segment);
        }
        if segment.start >= low {
            let next = high.checked_add(1).map_or(UNITS, |behind| segment.unit_from(behind));
            segment.start = next.min(UNITS - 1) as u8;
            next < UNITS
        } else {
            if segment.last <= high {
                segment.last = low - 1 - (low - 1 - segment.start) % segment.stride();
            }
            true
        }
    }

    /// Lets an approximate segment begin and end with units that it has, if there are any.
    fn shrink(&self, segment: &mut Segment) -> bool {
        let mut owned = self.owned(segment);
        let Some(start) = owned.next() else { return false };
        let last = owned.last().unwrap_or(start);
        (segment.start, segment.last) = (start, last);
        true
    }

    /// One segment for two neighbours of the top level, if that takes fewer bytes.
    fn learn(&mut self, left: Segment, right: Segment, error: u32) -> Option<Segment> {
        if error == 0 || left.is_hole() || right.is_hole() {
            return left.joined(&right);
        }
        left.joined(&right).or_else(|| match (left.is_approximate(), right.is_approximate()) {
            (true, true) => None,
            (true, false) => self.extend(left, right, error),
            (false, true) => self.extend(right, left, error),
            (false, false) => self.approximate(left, right, error),
        })
    }

    /// The approximate segment with the units of its accurate neighbour, if they are near its line.
    fn extend(&mut self, segment: Segment, neighbour: Segment, error: u32) -> Option<Segment> {
        let near = |at: Point| distance(segment.predict(at.unit), at.physical) <= error;
        let is_smaller = neighbour.units() < SEGMENT;
        (is_smaller && neighbour.points().all(near)).then(|| {
            neighbour.points().for_each(|point| self.own(point.unit, segment.owner));
            let start = segment.start.min(neighbour.start);
            segment.part(start, segment.last.max(neighbour.last))
        })
    }

    /// An approximate segment for two accurate ones, if there is one that takes fewer bytes.
    fn approximate(&mut self, left: Segment, right: Segment, error: u32) -> Option<Segment> {
        let mut points = [Point::default(); SEGMENT];
        let count = left.units() + right.units();
        if 1 + count >= SEGMENT {
            return None;
        }
        for (place, point) in points.iter_mut().zip(left.points().chain(right.points())) {
            *place = point;
        }
        let is_free = |owner: &u8| self.segments().iter().all(|one| one.owner != *owner);
        let owner = (1..=u8::MAX).find(is_free)?;
        let segment = line(&points[..count], error, owner)?;
        points[..count].iter().for_each(|point| self.own(point.unit, owner));
        self.has_approximate = true;
        Some(segment)
    }

    /// Drops what counts for no unit, and moves segments to the highest level.
    pub fn compact(&mut self) {
        let mut covered = [false; UNITS];
        let mut kept = 0;
        for at in 0..self.count {
            let segment = self.segments[at];
            let below = at + 1..self.count;
            let (mut first, mut last) = (None, 0);
            let mut count_unit = |unit: u8| {
                let is_new = !core::mem::replace(&mut covered[usize::from(unit)], true);
                // A hole counts where it hides something.
                let hides = |below: &Segment| match below.is_approximate() {
                    true => self.owners[usize::from(unit)] == below.owner,
                    false => !below.is_hole() && one_has(below, unit, unit),
                };
                let counts = is_new
                    && (!segment.is_hole() || self.segments[below.clone()].iter().any(hides));
                if counts {
                    first = first.or(Some(unit));
                    last = unit;
                }
            };
            if segment.is_approximate() {
                self.owned(&segment).for_each(&mut count_unit);
            } else {
                let units = segment.start..=segment.last;
                units.step_by(usize::from(segment.stride())).for_each(&mut count_unit);
            }
            if let Some(start) = first {
                self.segments[kept] = segment.part(start, last);
                kept += 1;
            }
        }
        self.count = kept;
        self.rise();
    }

    /// Moves each segment to the highest level where it overlaps none, below those that hide it.
    fn rise(&mut self) {
        let mut levels = [0u16; SEGMENTS + 2];
        let mut depths = [0u16; UNITS];
        for (segment, level) in self.segments[..self.count].iter().zip(&mut levels) {
            let depths = &mut depths[usize::from(segment.start)..=usize::from(segment.last)];
            *level = depths.iter().copied().max().unwrap_or(0);
            depths.fill(*level + 1);
        }
        // Segments that were in order stay so: an insertion sort is short.
        for at in 1..self.count {
            let (segment, level) = (self.segments[at], levels[at]);
            let key = (level, segment.start);
            let mut to = at;
            while to > 0 && (levels[to - 1], self.segments[to - 1].start) > key {
                (self.segments[to], levels[to]) = (self.segments[to - 1], levels[to - 1]);
                to -= 1;
            }
            (self.segments[to], levels[to]) = (segment, level);
        }
    }
}

/// Whether a segment that is not approximate has a unit from `low` to `high`.
fn one_has(segment: &Segment, low: u8, high: u8) -> bool {
    !segment.is_approximate() && segment.unit_from(low) <= usize::from(high)
}
