//! How a transit buffer works: as the paper has it, or improved.
//!
//! No page is buffered here.

use super::summary::GROUP_PAGES_MAX;

/// How pages are buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The most buffer blocks (*C* in the paper); 0 for none.
    pub blocks: u32,
    /// Neighbouring logical blocks that may share a buffer block, from 1. Printed: 1.
    ///
    /// They share one only when too few buffer blocks are left for each to have its own. They have
    /// at most 256 pages together; more are taken as what fits.
    pub neighbours: u32,
    /// Pages from which a conversion completes a logical block. Printed: never, `u32::MAX`.
    ///
    /// If a buffer block has as many newest pages of a logical block, all pages of that one are
    /// written into a free block, which becomes its data block. So a log block is switched, as it
    /// were, and never merged.
    pub completes_from: u32,
    /// Pages from which a run of the host passes the buffer. Printed: never, `u32::MAX`.
    ///
    /// Log blocks take a run as well as a buffer block does, and what is rarely written again would
    /// only be written twice. Without log blocks only a run that continues a data block passes.
    pub passes_from: u32,
    /// Whether a conversion reads only the newest of each page. Printed: it reads all.
    pub reads_newest_only: bool,
    /// Whether the FTL below drops pages when the buffer supersedes them. Printed: it copies them.
    pub drops_superseded: bool,
    /// Unused buffer blocks that idle steps keep, by converting ahead of need. Printed: 0.
    ///
    /// If it is not 0, idle steps convert full blocks too. Where neighbours share, they convert
    /// others only if a page write found no buffer block for its group: most logical blocks can
    /// join that of a neighbour.
    ///
    /// If it is not 0, nothing is converted for the next [`RESTED_WRITES`](Self::RESTED_WRITES)
    /// page writes after idle steps that left nothing to convert.
    pub ahead: u32,
}

impl Buffer {
    /// Page writes after idle steps for which nothing is converted.
    ///
    /// A page for which a block would have to be converted passes the buffer. So many are more than
    /// a change of an index without a write buffer takes, however high its tree is (12 levels), and
    /// too few to matter if a host never rests again.
    pub const RESTED_WRITES: u32 = 64;

    /// No buffer.
    pub const NONE: Self = Self::as_printed(0);

    /// The buffer as the paper has it.
    pub const fn as_printed(blocks: u32) -> Self {
        Self {
            blocks,
            neighbours: 1,
            completes_from: u32::MAX,
            passes_from: u32::MAX,
            reads_newest_only: false,
            drops_superseded: false,
            ahead: 0,
        }
    }

    /// The buffer with all improvements, for a host that writes these logical pages.
    ///
    /// As many neighbours may share a buffer block as are needed to give each logical block one. A
    /// conversion completes a logical block from a quarter of its pages on, and runs of more than
    /// an eighth of a block pass the buffer, of a block of less than 8 pages those of three pages.
    pub const fn improved(blocks: u32, logical_pages: u32, block_pages: u32) -> Self {
        let block_pages = if block_pages == 0 { 1 } else { block_pages };
        let logical_blocks = logical_pages.div_ceil(block_pages);
        let shared = if blocks == 0 { 1 } else { logical_blocks.div_ceil(blocks) };
        Self {
            blocks,
            neighbours: if shared == 0 { 1 } else { shared },
            completes_from: block_pages.div_ceil(4),
            passes_from: if block_pages < 8 { 3 } else { 1 + block_pages / 8 },
            reads_newest_only: true,
            drops_superseded: true,
            ahead: 1,
        }
    }

    /// The neighbours that share a buffer block, of those in a byte.
    pub(crate) fn neighbours_of(&self, block_pages: u32) -> u32 {
        self.neighbours.clamp(1, (GROUP_PAGES_MAX / block_pages.max(1)).max(1))
    }
}
