//! A learned segment: 8 bytes that lead from units of a group to physical units.
//!
//! ```text
//! byte 0      start: the first unit, from the begin of its group on
//! byte 1      length: how many units further the last one is
//! bytes 2..4  slope, 15 bits, and in the lowest bit whether the segment is approximate
//! bytes 4..8  intercept
//! ```
//!
//! A unit `x` is at `intercept + slope * x`, rounded down, modulo 2^32. The slope of an accurate
//! segment is 1 through a whole number, its *stride*, which is stored in its place: its units are
//! `start`, `start + stride` and so on. The slope of an approximate one is a fraction of 2^14; which
//! units it has is stored elsewhere. A segment of slope 0 is a row of holes, which LeaFTL does not
//! have. Nothing here knows of levels.

/// A unit of a group and where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    pub unit: u8,
    pub physical: u32,
}

/// Bits behind the point of the slope of an approximate segment.
pub(super) const FRACTION: u32 = 14;

/// Bytes of a segment.
pub(super) const SEGMENT: usize = 8;

/// A segment as it is worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    pub start: u8,
    pub last: u8,
    slope: u16,
    intercept: u32,
    /// Which units an approximate one has: those of this owner; 0 for other segments.
    pub owner: u8,
}

impl Segment {
    /// The part of it from `start` to `last`, where it has units.
    pub fn part(&self, start: u8, last: u8) -> Self {
        Segment { start, last, ..*self }
    }
}

/// How far two physical numbers are apart.
pub(super) fn distance(one: u32, other: u32) -> u32 {
    (one.wrapping_sub(other) as i32).unsigned_abs()
}

impl Segment {
    /// The units from `start` to `last` in steps of `stride`, of which the first is at `physical`.
    pub fn accurate(start: u8, last: u8, stride: u8, physical: u32) -> Self {
        let intercept = physical.wrapping_sub(u32::from(start / stride.max(1)));
        Segment { start, last, slope: u16::from(stride) << 1, intercept, owner: 0 }
    }

    /// The holes from `start` to `last`.
    pub fn hole(start: u8, last: u8) -> Self {
        Segment { start, last, ..Segment::default() }
    }

    /// Units of `owner` near a line, whose slope is in parts of 2^[`FRACTION`].
    pub fn approximate(start: u8, last: u8, slope: u32, at_start: u32, owner: u8) -> Self {
        let rise = (slope * u32::from(start)) >> FRACTION;
        let intercept = at_start.wrapping_sub(rise);
        Segment { start, last, slope: ((slope << 1) | 1) as u16, intercept, owner }
    }

    /// The segment as two words.
    pub fn words(&self) -> [u32; 2] {
        let length = u32::from(self.last - self.start);
        [u32::from(self.start) | length << 8 | u32::from(self.slope) << 16, self.intercept]
    }

    /// The segment of these words; an approximate one gets its owner later.
    pub fn of_words([low, intercept]: [u32; 2]) -> Self {
        let start = low as u8;
        let last = start.saturating_add((low >> 8) as u8);
        Segment { start, last, slope: (low >> 16) as u16, intercept, owner: 0 }
    }

    pub fn is_approximate(&self) -> bool {
        self.slope & 1 == 1
    }

    pub fn is_hole(&self) -> bool {
        self.slope == 0
    }

    /// The distance between the units of a segment that is not approximate.
    pub fn stride(&self) -> u8 {
        (self.slope >> 1).clamp(1, 255) as u8
    }

    /// Where unit `x` is predicted.
    pub fn predict(&self, x: u8) -> u32 {
        let rise = if self.is_approximate() {
            (u32::from(self.slope >> 1) * u32::from(x)) >> FRACTION
        } else {
            u32::from(x / self.stride())
        };
        self.intercept.wrapping_add(rise)
    }

    /// The first unit of a segment that is not approximate, from `x` on; at least 256 if none is.
    pub fn unit_from(&self, x: u8) -> usize {
        let (start, stride) = (usize::from(self.start), usize::from(self.stride()));
        let steps = usize::from(x).saturating_sub(start).div_ceil(stride);
        let unit = start + steps * stride;
        if unit <= usize::from(self.last) { unit } else { 256 }
    }

    /// The units of a segment that is not approximate, with their places.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        let segment = *self;
        (self.start..=self.last)
            .step_by(usize::from(self.stride()))
            .map(move |unit| Point { unit, physical: segment.predict(unit) })
    }

    /// How many units a segment that is not approximate has.
    pub fn units(&self) -> usize {
        usize::from((self.last - self.start) / self.stride()) + 1
    }

    /// The accurate segment, or row of holes, of this and of `next`, which is behind it.
    pub fn joined(&self, next: &Segment) -> Option<Segment> {
        if self.is_approximate() || next.is_approximate() || self.is_hole() != next.is_hole() {
            return None;
        }
        let step = next.start - self.last;
        if self.is_hole() {
            return (step == 1).then(|| Segment::hole(self.start, next.last));
        }
        let fits = |segment: &Segment| segment.start == segment.last || segment.stride() == step;
        let is_row = self.predict(self.last).wrapping_add(1) == next.predict(next.start);
        (fits(self) && fits(next) && is_row)
            .then(|| Segment::accurate(self.start, next.last, step, self.predict(self.start)))
    }
}
