//! The bytes of checkpoints: the content of anchors and checkpoint parts.
//!
//! This module touches no chip. An area page is a page of an anchor or of a checkpoint.
//!
//! ```text
//! every area page:        0 kind u8   1 zero u8   2 part u16   4 parts u16   6 before u16
//!                         8 number u64
//! an anchor, kind 1:     16 for each block of the checkpoint its number u32, then 2^32 - 1
//! a checkpoint, kind 2:  16 the next bytes of its stream
//!
//! the stream:  0 page u32   4 nodes u32   8 records u32   12 height u8   13 listed u8
//!             14 zero u16   16 active block u32 (2^32 - 1: none)   20 its next place u32
//!             24 16 listed blocks u32
//!             88 a bit for each page: it is valid (not for all owners); then for each block its
//!                erase count, u32, and in the highest bit of that whether it is bad; then the
//!                owner's bytes
//! ```

use super::LIST_MAX;
use crate::bytes::{u16_at, u32_at};
use crate::flash::{BlockNumber, Geometry};

/// Whether checkpoints are built: otherwise none is found or written.
pub const IS_BUILT: bool = cfg!(feature = "checkpoints");

/// Bytes of the common start of an area page.
pub const PREFIX_BYTES: usize = 16;

/// Bytes of the stream before the bits of the pages.
pub const HEAD_BYTES: usize = 24 + 4 * LIST_MAX;

/// The bit in the erase count of a block that marks it as bad.
pub const BAD: u32 = 1 << 31;

const NO_BLOCK: u32 = u32::MAX;

/// The end of the checkpoint numbers: a higher number is damage.
///
/// No chip survives this many checkpoints.
const NUMBER_END: u64 = 1 << 47;

/// The kind of an area page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A page of an anchor: it says which block holds the checkpoints.
    Anchor,
    /// A part of a checkpoint.
    Checkpoint,
}

/// The start of an area page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    pub kind: Kind,
    /// Which part of its checkpoint it is, counted from 0, and of how many.
    pub part: u16,
    pub parts: u16,
    /// Checkpoints before it in its block.
    pub before: u16,
    /// Rises with every checkpoint. An anchor has that of the first in its block.
    pub number: u64,
}

impl Prefix {
    pub fn write(&self, page: &mut [u8]) {
        page[0] = match self.kind {
            Kind::Anchor => 1,
            Kind::Checkpoint => 2,
        };
        page[1] = 0;
        page[2..4].copy_from_slice(&self.part.to_le_bytes());
        page[4..6].copy_from_slice(&self.parts.to_le_bytes());
        page[6..8].copy_from_slice(&self.before.to_le_bytes());
        page[8..16].copy_from_slice(&self.number.to_le_bytes());
    }

    pub fn read(page: &[u8]) -> Option<Self> {
        let kind = match page[0] {
            1 => Kind::Anchor,
            2 => Kind::Checkpoint,
            _ => return None,
        };
        let number = u64::from(u32_at(page, 8)) | u64::from(u32_at(page, 12)) << 32;
        (number < NUMBER_END).then_some(Self {
            kind,
            part: u16_at(page, 2),
            parts: u16_at(page, 4),
            before: u16_at(page, 6),
            number,
        })
    }
}

/// The block at position `which` of those that a page of an anchor names.
pub fn anchored_block(page: &[u8], which: u32, geometry: &Geometry) -> Option<BlockNumber> {
    let at = PREFIX_BYTES + 4 * which as usize;
    let number = page.get(at..at + 4).map_or(NO_BLOCK, |bytes| u32_at(bytes, 0));
    (number < geometry.blocks).then_some(BlockNumber(number))
}

/// Blocks that may be opened after a checkpoint, in this order.
#[derive(Clone, Copy, Debug)]
pub struct List {
    blocks: [BlockNumber; LIST_MAX],
    first: u8,
    end: u8,
}

impl List {
    pub const EMPTY: Self = Self { blocks: [BlockNumber(0); LIST_MAX], first: 0, end: 0 };

    pub fn as_slice(&self) -> &[BlockNumber] {
        &self.blocks[self.first as usize..self.end as usize]
    }

    pub const fn len(&self) -> usize {
        (self.end - self.first) as usize
    }

    /// The block at the end, also if it was removed.
    pub fn last(&self) -> Option<BlockNumber> {
        self.blocks[..self.end as usize].last().copied()
    }

    /// All blocks, also those that were removed.
    pub fn whole(&self) -> &[BlockNumber] {
        &self.blocks[..self.end as usize]
    }

    /// Removes the next block and returns it.
    pub const fn pop(&mut self) -> Option<BlockNumber> {
        if self.first == self.end {
            return None;
        }
        self.first += 1;
        Some(self.blocks[self.first as usize - 1])
    }

    /// Appends a block, if there is room for it.
    pub const fn push(&mut self, block: BlockNumber) {
        if (self.end as usize) < LIST_MAX {
            self.blocks[self.end as usize] = block;
            self.end += 1;
        }
    }
}

/// What a checkpoint records of its owner in a few numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// A page of the owner: the root of a tree, or the newest leaf.
    pub page: u32,
    /// Height of a tree.
    pub height: u8,
    /// Records in the index.
    pub records: u32,
    /// Nodes above the leaves of a tree, or ranges of a directory.
    pub nodes: u32,
}

impl Summary {
    /// Whether a tree of this height can have this many inner nodes, at most `most`.
    ///
    /// It has one of each level above the leaves at least. A mount that believes the counts of a
    /// damaged checkpoint would overflow later.
    pub fn is_tree(&self, most: u32) -> bool {
        match self.height {
            0 => false,
            1 => self.nodes == 0,
            height => (u32::from(height) - 1..=most).contains(&self.nodes),
        }
    }
}

/// The start of a checkpoint's stream.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub summary: Summary,
    /// The block being written, and the place of its next page.
    pub active: Option<(BlockNumber, u32)>,
    pub list: List,
}

impl Head {
    pub fn write(&self, out: &mut [u8; HEAD_BYTES]) {
        let Summary { page, height, records, nodes } = self.summary;
        let (block, place) = self.active.unwrap_or((BlockNumber(NO_BLOCK), 0));
        out[0..4].copy_from_slice(&page.to_le_bytes());
        out[4..8].copy_from_slice(&nodes.to_le_bytes());
        out[8..12].copy_from_slice(&records.to_le_bytes());
        out[12..16].copy_from_slice(&[height, self.list.len() as u8, 0, 0]);
        out[16..20].copy_from_slice(&block.0.to_le_bytes());
        out[20..24].copy_from_slice(&place.to_le_bytes());
        out[24..].fill(0xFF);
        for (block, out) in self.list.as_slice().iter().zip(out[24..].chunks_exact_mut(4)) {
            out.copy_from_slice(&block.0.to_le_bytes());
        }
    }

    /// Returns `None` if it refers to pages or blocks that the chip does not have.
    pub fn read(bytes: &[u8], geometry: &Geometry) -> Option<Self> {
        let summary = Summary {
            page: u32_at(bytes, 0),
            nodes: u32_at(bytes, 4),
            records: u32_at(bytes, 8),
            height: bytes[12],
        };
        let block = u32_at(bytes, 16);
        let active = (block != NO_BLOCK).then_some((BlockNumber(block), u32_at(bytes, 20)));
        let mut list = List::EMPTY;
        for at in 0..usize::from(bytes[13]).min(LIST_MAX) {
            list.push(BlockNumber(u32_at(bytes, 24 + 4 * at)));
        }
        let mut blocks = list.as_slice().iter().chain(active.as_ref().map(|(block, _)| block));
        let there =
            summary.page < geometry.pages() && blocks.all(|block| block.0 < geometry.blocks);
        there.then_some(Self { summary, active, list })
    }
}

/// Bytes of a checkpoint's stream before those of the owner.
pub const fn table_bytes(geometry: &Geometry, stores_valid: bool) -> usize {
    valid_bytes(geometry, stores_valid) + HEAD_BYTES + 4 * geometry.blocks as usize
}

/// Bytes that store which pages are valid.
pub const fn valid_bytes(geometry: &Geometry, stores_valid: bool) -> usize {
    if stores_valid { geometry.pages().div_ceil(8) as usize } else { 0 }
}
