//! The settings of an index, each with its range, and the RAM that they take.

use super::{HEIGHT_MAX, KEY_BYTES_MAX};
use crate::error::OpenError;
use crate::flash::Geometry;
use crate::node::{Medium, PageLayout, Shape};
use crate::place::Placement;
use crate::space::{self, Frames, Moves, PAGES_MAX};

/// Settings of an index. Sizes of keys and values are written on the medium; the others are not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Bytes of a key, 1 to [`KEY_BYTES_MAX`].
    pub key_bytes: usize,
    /// Bytes of a value, 0 to 65535, as long as two records fit in a leaf.
    pub value_bytes: usize,
    /// Page buffers, at most 16; `None` for the system's default. Each takes a page and up to 40
    /// bytes. Fewer than one for each level and one more make a wandering path read nodes twice.
    pub page_buffers: Option<usize>,
    /// How garbage collection moves pages. Default: [`Moves::Together`].
    pub moves: Moves,
    /// Reads each page back after its program, so that a chip which says that it programmed or erased
    /// and did not is found out while the data is still in RAM. Costs one read a program and one page
    /// buffer. Default: off.
    pub verify: bool,
}

impl Options {
    /// Settings for keys and values of these sizes in bytes, all else at its default.
    pub const fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Self { key_bytes, value_bytes, page_buffers: None, moves: Moves::Together, verify: false }
    }

    pub(crate) fn buffers<S: Placement>(&self) -> usize {
        self.page_buffers.unwrap_or(S::DESCRIPTION.buffers_default)
    }

    /// What pages of such an index say that they are for.
    pub(crate) const fn medium<S: Placement>(&self, geometry: &Geometry) -> Medium {
        Medium {
            system: S::DESCRIPTION.code,
            key_bytes: self.key_bytes as u16,
            value_bytes: self.value_bytes as u16,
            blocks: geometry.blocks,
            pages_per_block: geometry.pages_per_block as u16,
        }
    }

    pub(crate) fn check<S: Placement, E>(
        &self,
        geometry: &Geometry,
        ram_bytes: usize,
    ) -> Result<(), OpenError<E>> {
        let bad = |reason| Err(OpenError::BadOption { reason });
        if !(1..=KEY_BYTES_MAX).contains(&self.key_bytes) {
            return bad("key_bytes must be 1 to 64");
        }
        if self.value_bytes > u16::MAX.into() {
            return bad("value_bytes must be at most 65535");
        }
        if !(S::DESCRIPTION.buffers_min..=Frames::COUNT_MAX).contains(&self.buffers::<S>()) {
            return bad("page_buffers must be at least what the system needs, at most 16");
        }
        if !(2..=PAGES_MAX).contains(&geometry.pages_per_block) {
            return bad("a block must have 2 to 16383 pages");
        }
        let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
        let area_bytes = layout.frame_bytes().saturating_sub(crate::node::HEADER_BYTES);
        let leaf_bytes = S::extent(area_bytes, 1, HEIGHT_MAX).len();
        let shape = Shape { key_bytes: self.key_bytes, payload_bytes: self.value_bytes };
        if shape.capacity(leaf_bytes) < 2 {
            return Err(OpenError::RecordTooLarge {
                record_bytes: shape.record_bytes(),
                leaf_bytes,
            });
        }
        let needed = ram_needed::<S>(geometry, self);
        if ram_bytes < needed {
            return Err(OpenError::RamTooSmall { needed, given: ram_bytes });
        }
        Ok(())
    }
}

/// Bytes of the buffer that an index of system `S` needs on a chip of this geometry: its page buffers,
/// one bit for each page and six bytes for each block; with [`Options::verify`] one page buffer more. Nothing else is used but the struct itself.
pub fn ram_needed<S: Placement>(geometry: &Geometry, options: &Options) -> usize {
    let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
    space::ram_needed(geometry, &layout, options.buffers::<S>(), options.verify)
}
