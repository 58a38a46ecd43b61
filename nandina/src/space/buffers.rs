//! What an index keeps in RAM beside its struct, and how many bytes it takes.
//!
//! Nothing is read or written here.

use crate::blocks::{Blocks, GcPolicy, LivenessTracking, WearPolicy};
use crate::cache;
use crate::flash::Geometry;
use crate::log::Frames;
use crate::node::PageLayout;

use super::mappings::table_bytes;

/// The sizes and options of what is kept in RAM.
#[derive(Clone, Copy)]
pub(crate) struct Buffers {
    /// The size of the buffer pool, in which operations work.
    pub frames: usize,
    /// Each program is read back.
    pub verify: bool,
    /// There is one more page buffer, for reads while the others are in use.
    pub beside: bool,
    /// The size of the read cache, in pages.
    pub reads: usize,
    /// The size of the write cache, in pages.
    pub writes: usize,
    /// How validity is stored.
    pub validity: LivenessTracking,
    /// The victim policy.
    pub victims: GcPolicy,
    /// How erases are spread over the blocks.
    pub wear: WearPolicy,
    /// Page buffers keep their pages from one operation to the next.
    pub keeps_pages: bool,
    /// Bytes for the mapping table, as set in the options.
    pub mapping_bytes: usize,
}

impl Buffers {
    /// A single page buffer: for reading pages one after another.
    pub const SINGLE: Self = Self {
        frames: 1,
        verify: false,
        beside: false,
        reads: 0,
        writes: 0,
        validity: LivenessTracking::Marked,
        victims: GcPolicy::Fewest,
        wear: WearPolicy::Circular,
        keeps_pages: false,
        mapping_bytes: 0,
    };
}

/// Bytes of RAM for the page buffers, the caches and the block table.
pub(crate) fn ram_needed(geometry: &Geometry, layout: &PageLayout, buffers: &Buffers) -> usize {
    let Buffers { frames, beside, reads, writes, validity, victims, wear, mapping_bytes, .. } =
        *buffers;
    let frame_bytes = layout.frame_bytes();
    Frames::ram_needed(frame_bytes, frames, beside)
        + cache::ram_needed(frame_bytes, reads, writes, geometry.pages())
        + Blocks::ram_needed(geometry, validity, victims, wear)
        + table_bytes(mapping_bytes, geometry.pages())
}
