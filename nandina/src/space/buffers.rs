//! What is kept in RAM beside the struct, and how many bytes it takes. Nothing is read or written
//! here.

use crate::blocks::{Blocks, Validity, Victims, Wear};
use crate::cache;
use crate::flash::Geometry;
use crate::log::Frames;
use crate::node::PageLayout;

/// Pages kept in RAM.
#[derive(Clone, Copy)]
pub(crate) struct Buffers {
    /// Page buffers that operations work in.
    pub frames: usize,
    /// What was programmed is read back.
    pub verify: bool,
    /// One more page buffer, for what is read while the others are in use.
    pub beside: bool,
    /// Pages of the read cache.
    pub reads: usize,
    /// Pages of the write cache.
    pub writes: usize,
    /// What is remembered of which pages are valid.
    pub validity: Validity,
    /// What else is kept of blocks.
    pub victims: Victims,
    /// How worn blocks are spared.
    pub wear: Wear,
    /// Page buffers keep their pages from one operation to the next.
    pub keeps_pages: bool,
    /// Bytes of the table of virtual mappings.
    pub mapping_bytes: usize,
}

impl Buffers {
    /// One page after the other.
    pub const SINGLE: Self = Self {
        frames: 1,
        verify: false,
        beside: false,
        reads: 0,
        writes: 0,
        validity: Validity::Marked,
        victims: Victims::Fewest,
        wear: Wear::Circular,
        keeps_pages: false,
        mapping_bytes: 0,
    };
}

/// Bytes of RAM for the page buffers, the caches and the blocks' account.
pub(crate) fn ram_needed(geometry: &Geometry, layout: &PageLayout, buffers: &Buffers) -> usize {
    let Buffers { frames, beside, reads, writes, validity, victims, wear, mapping_bytes, .. } =
        *buffers;
    let frame_bytes = layout.frame_bytes();
    Frames::ram_needed(frame_bytes, frames, beside)
        + cache::ram_needed(frame_bytes, reads, writes, geometry.pages())
        + Blocks::ram_needed(geometry, validity, victims, wear)
        + mapping_bytes
}
