//! How many records the nodes of a tree hold, level by level.
//!
//! This needs no medium.

use super::HEIGHT_MAX;
use super::{Level, Placement, WritePolicy};
use crate::node::{Medium, PageLayout, Shape};

/// The sizes that decide how a tree grows.
#[derive(Clone, Copy)]
pub struct Form {
    area_bytes: usize,
    key_bytes: usize,
    value_bytes: usize,
}

impl Form {
    pub const fn new(layout: &PageLayout, medium: &Medium) -> Self {
        Self {
            area_bytes: layout.area_bytes(),
            key_bytes: medium.key_bytes as usize,
            value_bytes: medium.value_bytes as usize,
        }
    }

    pub fn level<S: Placement>(&self, level: u8, height: u8) -> Level {
        let shape = if level == 1 {
            Shape::sorted(self.key_bytes, self.value_bytes)
        } else {
            Shape::inner(self.key_bytes)
        };
        let bytes = S::extent(self.area_bytes, level, height).len();
        Level { level, height, shape: S::Kind::shape(shape, bytes) }
    }

    /// Records that fit in the bytes that a node of `level` can always have.
    pub fn records_that_fit<S: Placement>(&self, level: u8, height: u8) -> usize {
        let share = S::share(self.area_bytes, level, height);
        self.level::<S>(level, height).shape.capacity(share)
    }

    /// Whether a full root at level `height` can be split below a new root.
    pub fn can_grow<S: Placement>(&self, height: u8) -> bool {
        height < HEIGHT_MAX
            && self.records_that_fit::<S>(height, height + 1) >= 2
            && self.records_that_fit::<S>(height + 1, height + 1) >= 2
    }

    /// Records that a node of `level` may hold.
    ///
    /// The halves of a root and one more record must fit into nodes below a root.
    pub fn capacity<S: Placement>(&self, level: u8, height: u8) -> usize {
        let fits = self.records_that_fit::<S>(level, height);
        if level == height && self.can_grow::<S>(level) {
            return fits.min(2 * self.records_that_fit::<S>(level, level + 1) - 1);
        }
        fits
    }
}
