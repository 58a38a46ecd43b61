//! How far a scan over a range of keys has come, for any engine.
//!
//! An engine only says where its next record is. Nothing is read here.

use core::ops::Bound;

use super::Bounds;

/// The range of a scan, its direction, and the place `P` from which it continues.
#[derive(Clone, Copy)]
pub struct Cursor<'k, P> {
    low: Bound<&'k [u8]>,
    high: Bound<&'k [u8]>,
    downwards: bool,
    /// `None` before the first record.
    at: Option<P>,
    done: bool,
}

impl<'k, P: Copy> Cursor<'k, P> {
    /// A scan that begins.
    pub const fn new((low, high): Bounds<'k>, downwards: bool) -> Self {
        Self { low, high, downwards, at: None, done: false }
    }

    /// Whether it goes from the highest key to the lowest.
    pub const fn is_downwards(&self) -> bool {
        self.downwards
    }

    /// The bound at which it begins.
    pub const fn first(&self) -> Bound<&'k [u8]> {
        if self.downwards { self.high } else { self.low }
    }

    /// From where it continues.
    pub const fn at(&self) -> Option<P> {
        self.at
    }

    /// Begins a step. Returns `false` after the end.
    ///
    /// It was the last step unless [`continue_from`](Self::continue_from) follows: after an end or
    /// an error there are no more records.
    pub const fn step(&mut self) -> bool {
        let continues = !self.done;
        self.done = true;
        continues
    }

    /// Notes from where the next step continues.
    pub const fn continue_from(&mut self, at: P) {
        (self.at, self.done) = (Some(at), false);
    }

    /// Whether `key` is past the end of the range.
    pub fn is_beyond(&self, key: &[u8]) -> bool {
        match (self.downwards, self.low, self.high) {
            (false, _, Bound::Included(high)) => key > high,
            (false, _, Bound::Excluded(high)) => key >= high,
            (true, Bound::Included(low), _) => key < low,
            (true, Bound::Excluded(low), _) => key <= low,
            _ => false,
        }
    }
}
