//! The transit layer: buffer blocks that take the host's pages first, and their conversion.
//!
//! After Ho and Park (*WPCB-Tree: A Novel Flash-Aware B-Tree Index Using a Write Pattern
//! Converter*, 2018), sections 3.2 and 3.3 and algorithm 1. It knows logical pages and no nodes.
//! Nothing here decides where the FTL below places a page, and no block is freed that holds a page
//! that counts.
//!
//! A page is appended to the buffer block of its logical block. When that is full, it is
//! *converted*: the newest of each of its pages is written to the FTL below, in ascending order,
//! and the block is erased. When there are as many buffer blocks as allowed and another one is
//! needed, the one with the fewest pages is converted first.
//!
//! # Versions
//!
//! A conversion copies only pages that count, and nothing is written by the host meanwhile. So a
//! copy takes the next sequence number, and *the highest number counts wherever the page is*, as
//! without a buffer. A merge below may meet a page that the buffer supersedes. Its copy is labelled
//! as old, and no mount counts it; else it would be newer than the page in the buffer.
//!
//! After a cut in a conversion, the pages that were written below count there, the others in the
//! buffer block, which is erased only after the last one. A mount reads, and merges nothing. Buffer
//! blocks that were begun before it are not written on: one is converted when a page of its logical
//! block is written, or as a victim.

use nandina::Fault;
use nandina::flash::{BlockNumber, Flash, PageNumber};

use super::Hybrid;
use super::label::{Cause, Kind};
use super::policy::{Logs, Policy};
use super::summary::{Entry, GROUP_PAGES_MAX};

/// How pages are buffered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The most buffer blocks (*C* in the paper); 0 for none.
    pub blocks: u32,
    /// Neighbouring logical blocks that share a buffer block, from 1. Printed: 1.
    ///
    /// They have at most 256 pages together; more are taken as what fits.
    pub neighbours: u32,
    /// Pages from which a conversion completes a logical block. Printed: never, `u32::MAX`.
    ///
    /// If a buffer block has as many newest pages of a logical block, all pages of that one are
    /// written into a free block, which becomes its data block. So a log block is switched, as it
    /// were, and never merged.
    pub completes_from: u32,
    /// Whether a conversion reads only the newest of each page. Printed: it reads all.
    pub reads_newest_only: bool,
    /// Whether the FTL below drops pages when the buffer supersedes them. Printed: it copies them.
    pub drops_superseded: bool,
    /// Unused buffer blocks that idle steps keep, by converting ahead of need. Printed: 0.
    ///
    /// If it is not 0, idle steps convert full blocks too.
    pub ahead: u32,
}

impl Buffer {
    /// No buffer.
    pub const NONE: Self = Self::as_printed(0);

    /// The buffer as the paper has it.
    pub const fn as_printed(blocks: u32) -> Self {
        Self {
            blocks,
            neighbours: 1,
            completes_from: u32::MAX,
            reads_newest_only: false,
            drops_superseded: false,
            ahead: 0,
        }
    }

    /// The buffer with all improvements, for a host that writes these logical pages.
    ///
    /// As many neighbours share a buffer block as are needed to give each logical block one, and a
    /// conversion completes a logical block from a quarter of its pages on.
    pub const fn improved(blocks: u32, logical_pages: u32, block_pages: u32) -> Self {
        let block_pages = if block_pages == 0 { 1 } else { block_pages };
        let logical_blocks = logical_pages.div_ceil(block_pages);
        let shared = if blocks == 0 { 1 } else { logical_blocks.div_ceil(blocks) };
        Self {
            blocks,
            neighbours: if shared == 0 { 1 } else { shared },
            completes_from: block_pages.div_ceil(4),
            reads_newest_only: true,
            drops_superseded: true,
            ahead: 1,
        }
    }

    /// The neighbours that share a buffer block, of those in a byte.
    pub(super) fn neighbours_of(&self, block_pages: u32) -> u32 {
        self.neighbours.clamp(1, (GROUP_PAGES_MAX / block_pages.max(1)).max(1))
    }
}

/// A policy with buffer blocks before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit<P> {
    /// The policy of the FTL below.
    pub over: P,
    /// The buffer blocks.
    pub buffer: Buffer,
}

impl<P: Policy> Policy for Transit<P> {
    const SYSTEM: u8 = P::SYSTEM + 3;
    const LOG_BLOCKS_MIN: u32 = P::LOG_BLOCKS_MIN;
    const OWNED: bool = P::OWNED;
    const BY_USE: bool = P::BY_USE;

    fn log_blocks(&self) -> u32 {
        self.over.log_blocks()
    }

    fn choose(&self, logs: &Logs<'_, '_>) -> super::policy::Choice {
        self.over.choose(logs)
    }

    fn buffer(&self) -> Buffer {
        self.buffer
    }
}

/// Conversions since the FTL was formatted or opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conversions {
    /// Buffer blocks that were converted.
    pub blocks: u64,
    /// Pages that had been appended to them.
    pub appended: u64,
    /// Of these, pages that counted: the newest of each logical page.
    pub newest: u64,
    /// Logical blocks that a conversion completed.
    pub completed: u64,
    /// Of the buffer blocks, those that idle steps converted.
    pub ahead: u64,
}

/// A buffer block as the Summary table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferBlock {
    /// The block of the chip.
    pub block: BlockNumber,
    /// The first logical block whose pages it takes.
    pub logical_block: u32,
    /// Pages that were appended to it.
    pub pages: u32,
    /// Whether nothing more is appended to it: it was begun before the mount.
    pub is_closed: bool,
}

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// The buffer blocks.
    pub fn buffer_blocks(&self) -> impl Iterator<Item = BufferBlock> {
        let neighbours = self.summary.group_pages / self.block_pages();
        self.summary.used().map(move |(_, entry)| BufferBlock {
            block: BlockNumber(entry.block),
            logical_block: entry.group * neighbours,
            pages: entry.next,
            is_closed: entry.is_closed,
        })
    }

    /// Conversions since it was formatted or opened.
    pub const fn conversions(&self) -> Conversions {
        self.conversions
    }

    /// Appends a page of the host to a buffer block.
    pub(super) fn append(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Fault<F::Error>> {
        loop {
            let at = self.buffer_block(logical)?;
            // A conversion uses the page buffer.
            self.media.frames.bytes_mut(0)[..bytes.len()].copy_from_slice(bytes);
            let entry = self.summary.get(at);
            let page = self.media.page_at(BlockNumber(entry.block), entry.next);
            if !self.media.program(page, 0, Kind::Data(logical).label(Cause::BUFFER))? {
                self.convert(at)?;
                continue;
            }
            if self.policy.buffer().drops_superseded {
                self.forget(logical);
            } else {
                self.forget_buffered(logical);
            }
            self.summary.set(at, Entry { next: entry.next + 1, ..entry });
            self.summary.set_logical(at, entry.next, logical);
            self.media.blocks.set_valid(page, true);
            return Ok(());
        }
    }

    /// A buffer block with room for a logical page. What has to be converted for it is.
    fn buffer_block(&mut self, logical: u32) -> Result<u32, Fault<F::Error>> {
        let group = self.summary.group_of(logical);
        loop {
            let own = self.summary.used().find(|(_, entry)| entry.group == group);
            if let Some((at, entry)) = own {
                if self.has_room(&entry) {
                    return Ok(at);
                }
                self.convert(at)?;
                continue;
            }
            if self.summary.used().count() >= self.policy.buffer().blocks as usize {
                if let Some(victim) = self.buffer_victim() {
                    self.convert(victim)?;
                }
                continue;
            }
            let block = self.media.open()?.0;
            let entry = Entry { block, group, next: 0, is_closed: false };
            return self.summary.add(entry).ok_or(Fault::NoRoom { limit_pages: 0 });
        }
    }

    const fn has_room(&self, entry: &Entry) -> bool {
        !entry.is_closed && entry.next < self.maps.sizes.block_pages
    }

    /// The buffer block with the fewest pages.
    fn buffer_victim(&self) -> Option<u32> {
        self.summary.used().min_by_key(|(_, entry)| entry.next).map(|(at, _)| at)
    }

    /// Writes the pages of a buffer block that count to the FTL below, and frees the block.
    pub(super) fn convert(&mut self, at: u32) -> Result<(), Fault<F::Error>> {
        let entry = self.summary.get(at);
        let (block, buffer) = (BlockNumber(entry.block), self.policy.buffer());
        self.conversions.blocks += 1;
        self.conversions.appended += u64::from(entry.next);
        self.conversions.newest += u64::from(self.media.blocks.valid_in(block));
        for place in (0..entry.next).rev() {
            let page = self.media.page_at(block, place);
            if !buffer.reads_newest_only && !self.media.blocks.is_valid(page) {
                let _ = self.media.read(page, 0)?;
            }
        }
        let pages = self.block_pages();
        let neighbours = self.summary.group_pages / pages;
        let first = entry.group * neighbours;
        let is_here = |this: &Self, logical| {
            this.find_buffered(logical).filter(|&page| this.media.block_of(page) == block)
        };
        for logical_block in first..(first + neighbours).min(self.maps.sizes.logical_blocks) {
            let logical_pages = self.pages_of(logical_block);
            let newest = logical_pages.clone().filter(|&at| is_here(self, at).is_some()).count();
            if newest == 0 {
                continue;
            }
            self.free_if_empty(logical_block)?;
            if newest >= buffer.completes_from as usize {
                self.complete(logical_block)?;
                self.conversions.completed += 1;
                continue;
            }
            for logical in logical_pages {
                let Some(page) = is_here(self, logical) else { continue };
                let kind = self.kind_to_copy(page, logical, 0)?;
                self.put(logical, kind)?;
                self.statistics.moved += 1;
                self.previous = Some(logical);
            }
        }
        self.summary.remove(at);
        self.media.free(block)
    }

    /// The buffer block that an idle step should convert.
    pub(super) fn due_ahead(&self) -> Option<u32> {
        let buffer = self.policy.buffer();
        if buffer.ahead == 0 {
            return None;
        }
        let full = self.summary.used().find(|(_, entry)| !self.has_room(entry)).map(|(at, _)| at);
        let used = self.summary.used().count() as u32;
        let is_short = used + buffer.ahead.min(buffer.blocks) > buffer.blocks;
        full.or_else(|| self.buffer_victim().filter(|_| is_short))
    }

    /// The most chip operations that a conversion takes, if none of them fails.
    ///
    /// Each page can set off a merge, and two log blocks can be merged that have pages of as many
    /// logical blocks as a block has pages.
    pub(super) fn cost_to_convert(&self, at: u32) -> u32 {
        let newest = self.media.blocks.valid_in(BlockNumber(self.summary.get(at).block));
        let merges = newest.saturating_mul(2).saturating_add(2 * self.block_pages());
        merges.saturating_mul(4 * self.block_pages() + 8).saturating_add(self.block_pages() + 1)
    }

    /// The page of a buffer block that holds a logical page.
    pub(super) fn find_buffered(&self, logical: u32) -> Option<PageNumber> {
        let group = self.summary.group_of(logical);
        for (at, entry) in self.summary.used().filter(|(_, entry)| entry.group == group) {
            for place in 0..self.block_pages() {
                let page = self.media.page_at(BlockNumber(entry.block), place);
                if self.summary.logical_at(at, place) == logical && self.media.blocks.is_valid(page)
                {
                    return Some(page);
                }
            }
        }
        None
    }

    /// Notes that the copy of a logical page in a buffer block does not count.
    pub(super) fn forget_buffered(&mut self, logical: u32) {
        if let Some(page) = self.find_buffered(logical) {
            self.media.blocks.set_valid(page, false);
        }
    }
}
