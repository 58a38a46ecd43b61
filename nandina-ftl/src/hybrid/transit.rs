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
//! needed, a neighbour's is shared, or the one with the fewest pages is converted first. A
//! conversion can end between any two pages and be continued.
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

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::{Fault, covered};

use super::Hybrid;
use super::buffer::Buffer;
use super::label::{Cause, Kind};
use super::maps::NONE;
use super::policy::{Logs, Policy};
use super::summary::Entry;
use crate::ftl::FtlError;
use crate::mapping::Extent;

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

    /// Whether a page of the host is one of a run that passes the buffer.
    ///
    /// Nothing is appended any more to a buffer block that has pages of the logical block: so
    /// nothing is newer below than a page that is appended later.
    fn passes(&mut self, logical: u32) -> bool {
        let (run, from) = (&self.run, self.policy.buffer().passes_from);
        let is_run = run.contains(&logical) && run.end - run.start >= from;
        if !is_run || !(self.policy.log_blocks() > 0 || self.is_next_in_data(logical)) {
            return false;
        }
        // What is in doubt is decided before anything of its group is newer below.
        if self.doubtful(logical).is_some() {
            return false;
        }
        let Some(at) = self.own_buffer(logical) else { return true };
        let entry = self.summary.get(at);
        self.summary.set(at, Entry { is_closed: true, ..entry });
        true
    }

    /// Appends a page of the host to a buffer block.
    pub(super) fn append(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Fault<F::Error>> {
        if self.passes(logical) {
            self.media.frames.bytes_mut(0)[..bytes.len()].copy_from_slice(bytes);
            self.put(logical, Kind::Data(logical))?;
            self.previous = Some(logical);
            return Ok(());
        }
        loop {
            let at = self.buffer_block(logical)?;
            // A conversion uses the page buffer.
            self.media.frames.bytes_mut(0)[..bytes.len()].copy_from_slice(bytes);
            let entry = self.summary.get(at);
            let page = self.media.page_at(BlockNumber(entry.block), entry.next);
            let before =
                entry.next.checked_sub(1).map_or(logical, |it| self.summary.logical_at(at, it));
            let cause = Cause::buffer(self.summary.number_of(before));
            if !self.media.program(page, 0, Kind::Data(logical).label(cause))? {
                covered!("hybrid: a program into a buffer block fails");
                self.list_failed(BlockNumber(entry.block))?;
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
    ///
    /// A logical block has its own, or joins a neighbour's once too few are left. How many are kept
    /// for groups that have none rises whenever such a group finds none left.
    fn buffer_block(&mut self, logical: u32) -> Result<u32, Fault<F::Error>> {
        let (group, buffer) = (self.summary.group_of(logical), self.policy.buffer());
        loop {
            if let Some(at) = self.own_buffer(logical) {
                if self.has_room(&self.summary.get(at)) {
                    return Ok(at);
                }
                self.convert(at)?;
                continue;
            }
            let used = self.summary.used().count() as u32;
            let has_room = |at: &u32| self.has_room(&self.summary.get(*at));
            let shared = self.summary.entries_of(group).find(has_room);
            let kept = if shared.is_some() { self.kept } else { 0 };
            if used.saturating_add(kept) < buffer.blocks {
                let block = self.media.open()?.0;
                let entry = Entry::new(block, group);
                return self.summary.add(entry).ok_or(Fault::NoRoom { limit_pages: 0 });
            }
            if let Some(at) = shared {
                return Ok(at);
            }
            self.kept = (self.kept + 1).min(buffer.blocks);
            if let Some(victim) = self.buffer_victim() {
                self.convert(victim)?;
            }
        }
    }

    /// The buffer block that has pages of the logical block of a page, or may have.
    ///
    /// As long as it is written on, also one whose pages of it do not count any more: a page behind
    /// them must not be newer than a copy elsewhere.
    fn own_buffer(&self, logical: u32) -> Option<u32> {
        let (number, pages) = (self.summary.number_of(logical), self.block_pages());
        let is_own = |at: &u32| {
            let entry = self.summary.get(*at);
            let numbers = self.summary.numbers(*at).iter().take(entry.next as usize);
            let mut places = (0..).zip(numbers);
            entry.is_doubtful
                || places.any(|(place, other)| {
                    u32::from(*other) / pages == u32::from(number) / pages
                        && (!entry.is_closed
                            || self.media.blocks.is_valid(self.buffered(&entry, place)))
                })
        };
        self.summary.entries_of(self.summary.group_of(logical)).find(is_own)
    }

    /// Lets nothing be appended to buffer blocks that have, or had, a page of `extent`.
    ///
    /// Before a trim: so every page of these blocks is older than the trim, also one that is
    /// invisible and known by the page behind it alone.
    pub(super) fn close_buffers(&mut self, extent: Extent) {
        for at in 0..self.summary.len() {
            let entry = self.summary.get(at);
            let mut places = if entry.block == NONE { 0..0 } else { 0..entry.next };
            if places.any(|place| {
                (extent.start..extent.end()).contains(&self.summary.logical_at(at, place))
            }) {
                self.summary.set(at, Entry { is_closed: true, ..entry });
            }
        }
    }

    /// The page at a place of a buffer block.
    fn buffered(&self, entry: &Entry, place: u32) -> PageNumber {
        self.media.page_at(BlockNumber(entry.block), place)
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
        while !self.convert_step(at)? {}
        Ok(())
    }

    /// Converts all buffer blocks.
    ///
    /// The paper does so at every mount: call it after [`open`](Self::open) to have it so. Nothing
    /// needs it.
    pub fn convert_all(&mut self) -> Result<(), FtlError<F::Error>> {
        self.change(|this| {
            for at in 0..this.summary.len() {
                if this.summary.get(at).block != NONE {
                    this.convert(at)?;
                }
            }
            Ok(())
        })
    }

    /// The logical pages of a buffer block that count, in the order of its places.
    fn counted_in(&self, at: u32) -> impl Iterator<Item = u32> {
        let block = BlockNumber(self.summary.get(at).block);
        let places = (0..self.block_pages())
            .filter(move |&place| self.counts_buffered(self.media.page_at(block, place)));
        let pages = places.map(move |place| self.summary.logical_at(at, place));
        pages.filter(|&logical| logical < self.logical_pages)
    }

    /// Whether a page of a buffer block counts as one of the host's.
    ///
    /// On a chip that was tampered with, the page about the FTL itself may be in such a block.
    fn counts_buffered(&self, page: PageNumber) -> bool {
        self.media.blocks.is_valid(page) && self.own != Some(page)
    }

    /// The lowest logical page of a buffer block that counts.
    fn next_to_convert(&self, at: u32) -> Option<u32> {
        self.counted_in(at).min()
    }

    /// How many pages of a logical block a buffer block has that count.
    fn newest_of(&self, logical_block: u32, at: u32) -> usize {
        self.counted_in(at).filter(|it| it / self.block_pages() == logical_block).count()
    }

    /// Writes a page of a buffer block below, or completes a logical block, or frees the block.
    ///
    /// Nothing is appended to the block any more. Returns whether it is free. After each step every
    /// page counts where it is, so that power may fail, and the host may write, in between.
    fn convert_step(&mut self, at: u32) -> Result<bool, Fault<F::Error>> {
        let entry = Entry { is_closed: true, ..self.summary.get(at) };
        self.summary.set(at, entry);
        if entry.is_doubtful {
            covered!("hybrid: it is decided which pages are lost");
            self.end_doubt(at)?;
            return Ok(false);
        }
        let buffer = self.policy.buffer();
        let Some(logical) = self.next_to_convert(at) else {
            self.conversions.blocks += 1;
            self.conversions.appended += u64::from(entry.next);
            for place in (0..entry.next).rev().filter(|_| !buffer.reads_newest_only) {
                // It was converted, or it was superseded: that is one read more, as printed.
                if self.was_superseded(at, place) {
                    let _ = self.media.read(self.buffered(&entry, place), 0)?;
                }
            }
            self.summary.remove(at);
            self.media.free(BlockNumber(entry.block))?;
            return Ok(true);
        };
        let logical_block = logical / self.block_pages();
        if self.converting != (entry.block, logical_block) {
            self.converting = (entry.block, logical_block);
            self.free_if_empty(logical_block)?;
        }
        let newest = self.newest_of(logical_block, at);
        if newest >= buffer.completes_from as usize {
            self.complete(logical_block)?;
            self.conversions.completed += 1;
            self.conversions.newest += newest as u64;
            return Ok(false);
        }
        if let Some(page) = self.find_buffered(logical) {
            let kind = self.kind_to_copy(page, logical, 0)?;
            self.put(logical, kind)?;
            self.statistics.moved += 1;
            self.conversions.newest += 1;
            self.previous = Some(logical);
        }
        Ok(false)
    }

    /// Whether a later place of a buffer block has the same logical page.
    fn was_superseded(&self, at: u32, place: u32) -> bool {
        let written = &self.summary.numbers(at)[..self.summary.get(at).next as usize];
        let (place, behind) = (written[place as usize], &written[place as usize + 1..]);
        behind.contains(&place)
    }

    /// The buffer block that an idle step should convert.
    pub(super) fn due_ahead(&self) -> Option<u32> {
        let buffer = self.policy.buffer();
        if buffer.ahead == 0 {
            return None;
        }
        let full = self.summary.used().find(|(_, entry)| !self.has_room(entry)).map(|(at, _)| at);
        let used = self.summary.used().count() as u32;
        let is_alone = self.summary.group_pages <= self.block_pages();
        let is_short = is_alone && used + buffer.ahead.min(buffer.blocks) > buffer.blocks;
        full.or_else(|| self.buffer_victim().filter(|_| is_short))
    }

    /// Makes a step of a conversion that is due, or of the merge that it has to wait for.
    pub(super) fn step_ahead(&mut self) -> Result<(), Fault<F::Error>> {
        let Some(at) = self.due_ahead() else { return Ok(()) };
        match self.merged_first(at) {
            Some(logical_block) => self.merge(logical_block, None)?,
            None => self.conversions.ahead += u64::from(self.convert_step(at)?),
        }
        Ok(())
    }

    /// A logical block to be merged before the next page of a buffer block can be written below.
    ///
    /// Its pages are in the log block that is merged next. One by one they take fewer operations at a
    /// time.
    fn merged_first(&self, at: u32) -> Option<u32> {
        let logical = self.next_to_convert(at)?;
        let slot = self.retired_for(logical)?;
        let block = BlockNumber(self.maps.slot(slot).block);
        let mut counted = (0..self.block_pages()).filter_map(|at| self.logical_at(block, at));
        let is_random = self.maps.sequential(slot).is_none();
        counted.next().filter(|_| is_random).map(|logical| logical / self.block_pages())
    }

    /// The most chip operations that a step takes, if none of them fails.
    pub(super) fn cost_of_step(&self, at: u32) -> u32 {
        if self.summary.get(at).is_doubtful {
            return self.cost_to_convert(at);
        }
        // A merge reads, compares and programs each page, and erases four blocks. Another one may
        // close the sequential log block.
        4 * (2 * self.block_pages()) + 24
    }

    /// The most chip operations that a conversion takes, if none of them fails.
    ///
    /// Each page can set off a merge, and two log blocks can be merged that have pages of as many
    /// logical blocks as a block has pages.
    pub(super) fn cost_to_convert(&self, at: u32) -> u32 {
        let entry = self.summary.get(at);
        let newest = match entry.is_doubtful {
            true => self.summary.group_pages,
            false => self.media.blocks.valid_in(BlockNumber(entry.block)),
        };
        let merges = newest.saturating_mul(2).saturating_add(2 * self.block_pages());
        merges.saturating_mul(4 * self.block_pages() + 8).saturating_add(self.block_pages() + 1)
    }

    /// The page of a buffer block that holds a logical page.
    pub(super) fn find_buffered(&self, logical: u32) -> Option<PageNumber> {
        let number = self.summary.number_of(logical);
        self.summary.entries_of(self.summary.group_of(logical)).find_map(|at| {
            let block = BlockNumber(self.summary.get(at).block);
            let places = (0..).zip(self.summary.numbers(at)).filter(|(_, it)| **it == number);
            let mut pages = places.map(|(place, _)| self.media.page_at(block, place));
            pages.find(|&page| self.counts_buffered(page))
        })
    }

    /// Notes that the copy of a logical page in a buffer block does not count.
    pub(super) fn forget_buffered(&mut self, logical: u32) {
        if let Some(page) = self.find_buffered(logical) {
            self.media.blocks.set_valid(page, false);
        }
    }
}
