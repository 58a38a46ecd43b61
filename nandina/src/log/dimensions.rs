//! What an index has to know of its chip before it exists: sizes, not its kind.

use crate::flash::{Capabilities, Flash, Geometry};

/// The sizes of a chip, as its owners use it.
#[derive(Clone, Copy)]
pub(crate) struct Dimensions {
    pub geometry: Geometry,
    /// Pages of a block that are programmed: its safe pages.
    pub block_pages: u32,
    /// A page can be replaced as a whole or not at all.
    pub atomic: bool,
}

impl Dimensions {
    pub const fn new(geometry: &Geometry, capabilities: &Capabilities) -> Self {
        Self {
            geometry: *geometry,
            block_pages: capabilities.pairing.safe_pages(geometry.pages_per_block),
            atomic: capabilities.rewrite && capabilities.atomic_rewrite,
        }
    }

    /// Those of this chip.
    pub fn of<F: Flash>(flash: &F) -> Self {
        Self::new(&flash.geometry(), &flash.capabilities())
    }
}
