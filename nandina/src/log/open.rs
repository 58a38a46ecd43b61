//! Open blocks: the active one, the parked one, and one erased ahead.
//!
//! No block is erased or programmed here.

use crate::blocks::NO_BLOCK;
use crate::flash::BlockNumber;

/// The blocks that can be programmed without an erase.
pub(super) struct Open {
    /// The block being written, or [`NO_BLOCK`].
    active: BlockNumber,
    /// The other open block, of an owner that has two.
    parked: Parked,
    /// A free block that was erased ahead of need, or [`NO_BLOCK`].
    ready: BlockNumber,
    /// The place of the next page of the active block, in safe pages.
    place: u16,
    /// The owner's tag of the pages that are programmed from now on.
    tag: u8,
}

/// The block that is open and not written now.
///
/// Without the feature `second-block` this takes no RAM.
#[derive(Clone, Copy)]
struct Parked {
    /// The block, or [`NO_BLOCK`], and the place of its next page.
    #[cfg(feature = "second-block")]
    open: (BlockNumber, u32),
    /// The owner's tag of its pages.
    #[cfg(feature = "second-block")]
    tag: u8,
}

impl Parked {
    /// No block is parked.
    const NONE: Self = Self {
        #[cfg(feature = "second-block")]
        open: (NO_BLOCK, 0),
        #[cfg(feature = "second-block")]
        tag: 0,
    };
}

impl Open {
    /// No block is open or erased ahead of need.
    pub const NONE: Self =
        Self { active: NO_BLOCK, parked: Parked::NONE, ready: NO_BLOCK, place: 0, tag: 0 };

    /// The block being written, or [`NO_BLOCK`], and the place of its next page.
    pub const fn active(&self) -> (BlockNumber, u32) {
        (self.active, self.place as u32)
    }

    /// A block that was just erased becomes the active one.
    pub const fn begin(&mut self, block: BlockNumber) {
        (self.active, self.place) = (block, 0);
    }

    /// Takes the next page of the active block: the block, and the place of the page.
    pub const fn advance(&mut self) -> (BlockNumber, u32) {
        let (block, place) = self.active();
        self.place += 1;
        (block, place)
    }

    /// Closes the active block.
    pub const fn close(&mut self) {
        (self.active, self.place) = (NO_BLOCK, 0);
    }

    /// The block that was erased ahead of need, or [`NO_BLOCK`].
    pub const fn ready(&self) -> BlockNumber {
        self.ready
    }

    /// Notes the block that was erased ahead of need.
    pub const fn note_ready(&mut self, block: BlockNumber) {
        self.ready = block;
    }

    /// Takes the block that was erased ahead of need, or [`NO_BLOCK`].
    pub const fn take_ready(&mut self) -> BlockNumber {
        core::mem::replace(&mut self.ready, NO_BLOCK)
    }

    /// The parked block, if there is one, and the place of its next page.
    pub fn parked(&self) -> Option<(BlockNumber, u32)> {
        #[cfg(feature = "second-block")]
        return Some(self.parked.open).filter(|&(block, _)| block != NO_BLOCK);
        #[cfg(not(feature = "second-block"))]
        None
    }

    /// Closes the parked block.
    pub const fn close_parked(&mut self) {
        self.parked = Parked::NONE;
    }

    /// Continues in this block, at this place: it was parked.
    pub const fn fill_parked(&mut self, parked: (BlockNumber, u32)) {
        (self.active, self.place) = (parked.0, parked.1 as u16);
    }

    /// The owner's tag of the pages that are programmed from now on.
    pub const fn tag(&self) -> u8 {
        self.tag
    }

    /// From now on pages carry this tag.
    pub const fn set_tag(&mut self, tag: u8) {
        self.tag = tag;
    }

    /// Exchanges the active block, whose pages carry another tag, and the parked one.
    #[cfg(feature = "second-block")]
    pub fn exchange(&mut self, tag: u8) {
        let active = Parked { open: self.active(), tag: self.tag };
        let parked = core::mem::replace(&mut self.parked, active);
        let is_known = parked.open.0 == NO_BLOCK || parked.tag == tag;
        debug_assert!(is_known, "a third sort of pages");
        self.fill_parked(parked.open);
        self.tag = tag;
    }
}
