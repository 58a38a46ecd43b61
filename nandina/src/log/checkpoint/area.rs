//! The blocks of one checkpoint.
//!
//! Where a checkpoint fits in a block, that block holds one after another. Where it does not, each
//! has blocks of its own, which its anchor names in order. Nothing is written here.

use super::anchors::ANCHORS;
use super::page::{Kind, PREFIX_BYTES, Prefix, anchored_block};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, Geometry, PageNumber};
use crate::log::Log;
use crate::node::{PageHeader, PageLayout};

/// The most blocks of a checkpoint.
pub const AREA_MAX: usize = 32;

/// Blocks without pages of the owner, where a checkpoint takes `blocks` blocks.
///
/// These are the anchors, the blocks of a checkpoint, and as many for the next one.
pub const fn area_blocks(blocks: u32) -> u32 {
    ANCHORS.len() as u32 + 2 * blocks
}

/// The most blocks that a checkpoint of `blocks` blocks erases.
///
/// These are its own, the first one of the checkpoint before it, and both anchors.
pub const fn erases_max(blocks: u32) -> u32 {
    blocks + 1 + ANCHORS.len() as u32
}

/// Blocks for a checkpoint of `parts` pages, or `None` if they are too many.
///
/// A page of an anchor must have room for their numbers. Where they are several, all blocks that
/// are kept for checkpoints are at most a quarter of the chip.
pub(super) const fn blocks_for(
    parts: usize,
    (geometry, layout): (&Geometry, &PageLayout),
    block_pages: u32,
) -> Option<u32> {
    let blocks = parts.div_ceil(block_pages as usize);
    let is_named = PREFIX_BYTES + 4 * blocks <= layout.area_bytes();
    let fits = blocks <= AREA_MAX && parts <= u16::MAX as usize && is_named;
    let area = area_blocks(blocks as u32);
    let there = geometry.blocks > area && (blocks == 1 || geometry.blocks / 4 >= area);
    if fits && there { Some(blocks as u32) } else { None }
}

/// Blocks that were taken for a checkpoint, in order.
pub(super) struct Area {
    blocks: [BlockNumber; AREA_MAX],
    count: usize,
}

impl Area {
    pub const EMPTY: Self = Self { blocks: [BlockNumber(0); AREA_MAX], count: 0 };

    /// The area of one block.
    pub const fn of(block: BlockNumber) -> Self {
        Self { blocks: [block; AREA_MAX], count: 1 }
    }

    pub fn as_slice(&self) -> &[BlockNumber] {
        &self.blocks[..self.count]
    }

    /// Appends a block, if there is room for it.
    pub fn push(&mut self, block: BlockNumber) {
        if let Some(next) = self.blocks.get_mut(self.count) {
            *next = block;
            self.count += 1;
        }
    }
}

/// Where a checkpoint on the chip is.
#[derive(Clone, Copy)]
pub struct Place {
    /// The page of the anchor that names its blocks.
    anchor: PageNumber,
    /// The block of the part that was read last, and which of its blocks that is.
    block: (BlockNumber, u32),
    /// The place of the first part in the first block.
    first: u32,
}

impl Place {
    /// A checkpoint whose first part is at `place` of `block`.
    pub(super) const fn new(anchor: PageNumber, (block, first): (BlockNumber, u32)) -> Self {
        Self { anchor, block: (block, 0), first }
    }

    /// The page of `part`, or `None` if the anchor can no longer be read.
    ///
    /// Cost: a read if it lies in another block than the previous part.
    pub(super) fn page_of<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        part: u32,
    ) -> Result<Option<PageNumber>, Fault<F::Error>> {
        let (at, block_pages) = (self.first + part, log.block_pages());
        let which = at / block_pages;
        if which != self.block.1 {
            covered!("a checkpoint is read from several blocks");
            let Some(block) = block_named(log, self.anchor, which)? else { return Ok(None) };
            self.block = (block, which);
        }
        Ok(Some(log.page_at(self.block.0, at % block_pages)))
    }
}

/// The block at position `which` of those that a page of an anchor names.
fn block_named<F: Flash>(
    log: &mut Log<'_, F>,
    anchor: PageNumber,
    which: u32,
) -> Result<Option<BlockNumber>, Fault<F::Error>> {
    let found = area_page(log, anchor)?;
    if found.is_none_or(|(_, prefix)| prefix.kind != Kind::Anchor) {
        return Ok(None);
    }
    let area_bytes = log.layout().area_bytes();
    Ok(anchored_block(&log.frames.bytes(0)[..area_bytes], which, &log.geometry()))
}

/// Reads a page into page buffer 0 if it is a page of checkpoints of this index.
pub(super) fn area_page<F: Flash>(
    log: &mut Log<'_, F>,
    page: PageNumber,
) -> Result<Option<(PageHeader, Prefix)>, Fault<F::Error>> {
    let header = match log.read_raw(page, 0)? {
        Ok(header) if header.lowest == 0 && log.is_ours(0) => header,
        _ => return Ok(None),
    };
    Ok(Prefix::read(log.frames.bytes(0)).map(|prefix| (header, prefix)))
}
