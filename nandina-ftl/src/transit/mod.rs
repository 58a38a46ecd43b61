//! The transit layer: buffer blocks that take the host's pages first, and their conversion.
//!
//! After Ho and Park (*WPCB-Tree: A Novel Flash-Aware B-Tree Index Using a Write Pattern
//! Converter*, 2018), sections 3.2 and 3.3 and algorithm 1. It knows logical pages and no nodes,
//! and the FTL below it only by what the trait `Below` asks. Nothing here decides where the FTL
//! below places a page, and no block is freed that holds a page that counts.
//!
//! A page is appended to the buffer block of its logical block. When that is full, it is
//! *converted*: the newest of each of its pages is written to the FTL below, in ascending order,
//! and the block is erased. When there are as many buffer blocks as allowed and another one is
//! needed, a neighbour's is shared, or the one with the fewest pages is converted first. A
//! conversion can end between any two pages and be continued.
//!
//! No page write waits for a conversion soon after idle steps that left none due: the page passes
//! the buffer, and the next idle steps convert.
//!
//! # Versions
//!
//! A conversion copies only pages that count, and nothing is written by the host meanwhile. So a
//! copy takes the next sequence number, and *the highest number counts wherever the page is*, as
//! without a buffer. What else an FTL does so that this holds is said where it does it: a merge of
//! a hybrid FTL may meet a page that the buffer supersedes, and labels its copy as old.
//!
//! After a cut in a conversion, the pages that were written below count there, the others in the
//! buffer block, which is free only after the last one. A mount reads, and converts nothing. Buffer
//! blocks that were begun before it are not written on.

mod buffer;
mod numbers;
mod summary;

pub use buffer::Buffer;
pub(crate) use numbers::LastNumbers;
pub(crate) use summary::{Entry, GROUP_PAGES_MAX, NONE, Summary};

use core::ops::Range;

use nandina::flash::{BlockNumber, PageNumber};

use crate::mapping::Extent;

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
    /// Page writes after idle steps that passed the buffer: no block was converted for them.
    pub passed: u64,
    /// Page writes that were appended to buffer blocks, whether these are converted or not.
    pub taken: u64,
    /// Of the buffer blocks, those that were converted for a page write because they were full.
    pub full: u64,
    /// Of the buffer blocks, those that made room for pages of another one.
    pub victims: u64,
    /// Blocks that were buffer blocks before the last mount. Nothing is appended to them.
    pub found: u64,
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

/// What the layer keeps in RAM.
pub(crate) struct State<'b> {
    /// The Summary table.
    pub summary: Summary<'b>,
    /// The settings.
    pub buffer: Buffer,
    /// What was converted.
    pub conversions: Conversions,
    /// Pages of a block, and of the host.
    block_pages: u32,
    logical_pages: u32,
    /// The pages of the run that the host writes, as far as it is known.
    run: Range<u32>,
    /// Buffer blocks that are kept for groups without one.
    kept: u32,
    /// Page writes for which nothing is converted, since idle steps left nothing due.
    rested: u32,
    /// Whether one of them found no buffer block for its group since then.
    lacks: bool,
}

impl<'b> State<'b> {
    /// Bytes of RAM for the buffer blocks of a chip of `blocks` blocks.
    pub const fn bytes_for(buffer: &Buffer, blocks: u32, block_pages: u32) -> usize {
        let entries = if buffer.blocks < blocks { buffer.blocks } else { blocks };
        Summary::bytes_for(entries, block_pages)
    }

    /// No buffer block, in as many bytes as [`bytes_for`](Self::bytes_for) says.
    pub fn new(
        bytes: &'b mut [u8],
        buffer: Buffer,
        blocks: u32,
        (logical_pages, block_pages): (u32, u32),
    ) -> Self {
        let neighbours = buffer.neighbours_of(block_pages);
        let entries = buffer.blocks.min(blocks);
        Self {
            summary: Summary::new(bytes, entries, block_pages, neighbours * block_pages),
            buffer,
            conversions: Conversions::default(),
            block_pages,
            logical_pages,
            run: 0..0,
            kept: 0,
            rested: 0,
            lacks: false,
        }
    }

    /// Forgets all buffer blocks, and what idle steps did.
    pub fn clear(&mut self) {
        self.summary.clear();
        (self.rested, self.lacks) = (0, false);
    }

    /// Whether there are buffer blocks at all.
    pub const fn is_there(&self) -> bool {
        self.buffer.blocks > 0
    }

    /// The buffer blocks.
    pub fn blocks(&self) -> impl Iterator<Item = BufferBlock> {
        let neighbours = self.summary.group_pages / self.block_pages;
        self.summary.used().map(move |(_, entry)| BufferBlock {
            block: BlockNumber(entry.block),
            logical_block: entry.group * neighbours,
            pages: entry.next,
            is_closed: entry.is_closed,
        })
    }

    /// Notes a request. Requests that follow one another are one run.
    pub const fn note_run(&mut self, extent: Extent) {
        let start = if self.run.end == extent.start { self.run.start } else { extent.start };
        self.run = start..extent.end();
    }

    /// Lets nothing be appended to a buffer block any more.
    pub fn close(&mut self, at: u32) {
        let entry = self.summary.get(at);
        self.summary.set(at, Entry { is_closed: true, ..entry });
    }

    const fn has_room(&self, entry: &Entry) -> bool {
        !entry.is_closed && entry.next < self.block_pages
    }

    /// The buffer block with the fewest pages.
    fn victim(&self) -> Option<u32> {
        self.summary.used().min_by_key(|(_, entry)| entry.next).map(|(at, _)| at)
    }

    /// Whether a later place of a buffer block has the same logical page.
    fn was_superseded(&self, at: u32, place: u32) -> bool {
        let written = &self.summary.numbers(at)[..self.summary.get(at).next as usize];
        let (place, behind) = (written[place as usize], &written[place as usize + 1..]);
        behind.contains(&place)
    }

    /// The buffer block that an idle step should convert.
    pub fn due_ahead(&self) -> Option<u32> {
        let buffer = self.buffer;
        if buffer.ahead == 0 {
            return None;
        }
        let full = self.summary.used().find(|(_, entry)| !self.has_room(entry)).map(|(at, _)| at);
        let used = self.summary.used().count() as u32;
        let is_alone = self.summary.group_pages <= self.block_pages;
        let is_short = used + buffer.ahead.min(buffer.blocks) > buffer.blocks;
        let is_needed = is_short && (is_alone || self.lacks);
        full.or_else(|| self.victim().filter(|_| is_needed))
    }

    /// Notes that idle steps have left nothing to convert.
    pub const fn note_rest(&mut self) {
        if self.buffer.ahead > 0 {
            (self.rested, self.lacks) = (Buffer::RESTED_WRITES, false);
        }
    }

    /// Notes a page write. Returns whether it may wait until a buffer block is converted.
    const fn note_write(&mut self) -> bool {
        let may_wait = self.rested == 0;
        self.rested = self.rested.saturating_sub(1);
        may_wait
    }
}

/// What a conversion did to a logical block of which many pages are newest.
pub(crate) enum Completed {
    /// All of its pages are below.
    Below,
    /// The buffer block is a block of the FTL below.
    Adopted,
}

/// An FTL below a transit layer: what the layer asks of it, and what the layer does.
pub(crate) trait Below<'b> {
    /// Why an operation failed.
    type Error;

    /// The layer.
    fn transit(&self) -> &State<'b>;

    /// The layer, mutable.
    fn transit_mut(&mut self) -> &mut State<'b>;

    /// The page at a place of a block.
    fn page_in(&self, block: BlockNumber, place: u32) -> PageNumber;

    /// Whether a page of a buffer block counts as one of the host's.
    fn counts(&self, page: PageNumber) -> bool;

    /// Whether the FTL below can take a page of a run as well as a buffer block can.
    fn may_pass(&self, logical: u32) -> bool;

    /// Makes room for a page, before a buffer block is chosen for it. Default: there is room.
    fn prepare(&mut self, logical: u32) -> Result<(), Self::Error> {
        let _ = logical;
        Ok(())
    }

    /// Erases a free block, the least worn one, to be a buffer block; `None` if there is none.
    ///
    /// Whether the page may wait for work that makes a block free is given.
    fn open_buffer(&mut self, may_wait: bool) -> Result<Option<BlockNumber>, Self::Error>;

    /// Programs a logical page into a buffer block. The page before it there is given, too.
    ///
    /// Returns `false` if the program failed.
    fn program_buffered(
        &mut self,
        to: (BlockNumber, u32),
        logical_and_before: (u32, u32),
        bytes: &[u8],
    ) -> Result<bool, Self::Error>;

    /// Deals with a buffer block in which a program has failed.
    ///
    /// Returns whether the page may go to another buffer block; else it passes the buffer at once.
    fn give_up_buffer(&mut self, at: u32) -> Result<bool, Self::Error>;

    /// Notes that a page of a buffer block is the copy of `logical` that counts.
    fn count_buffered(&mut self, logical: u32, page: PageNumber) -> Result<(), Self::Error>;

    /// Begins to convert the pages of another logical block. Default: nothing is to do.
    fn turn_to(&mut self, at: u32, logical_block: u32) -> Result<(), Self::Error> {
        let _ = (at, logical_block);
        Ok(())
    }

    /// Decides what is in doubt about a buffer block. Returns whether there was anything.
    ///
    /// Default: nothing ever is.
    fn decide(&mut self, at: u32) -> Result<bool, Self::Error> {
        let _ = at;
        Ok(false)
    }

    /// The pages of a buffer block that a completion of the logical block would spare.
    ///
    /// Default: those of the logical block that count.
    fn newest_of(&self, logical_block: u32, at: u32) -> u32 {
        let block_pages = self.transit().block_pages;
        self.counted_in(at).filter(|it| it / block_pages == logical_block).count() as u32
    }

    /// Completes a logical block of which a buffer block has many pages that count.
    fn complete_from(&mut self, at: u32, logical_block: u32) -> Result<Completed, Self::Error>;

    /// Writes a page of a buffer block to the FTL below.
    ///
    /// Returns `false` if it cannot be read: its block is not a buffer block any more.
    fn put_below(&mut self, at: u32, logical: u32) -> Result<bool, Self::Error>;

    /// Reads a page of a buffer block that does not count, as the paper has it.
    fn read_stale(&mut self, page: PageNumber) -> Result<(), Self::Error>;

    /// Frees a block that was a buffer block. None of its pages counts.
    fn let_go(&mut self, block: BlockNumber) -> Result<(), Self::Error>;

    /// Whether a page of the host is one of a run that passes the buffer.
    ///
    /// Nothing is appended any more to a buffer block that has pages of the logical block: so
    /// nothing is newer below than a page that is appended later.
    fn passes(&mut self, logical: u32) -> bool {
        let State { run, buffer, .. } = self.transit();
        let is_run = run.contains(&logical) && run.end - run.start >= buffer.passes_from;
        if !is_run || !self.may_pass(logical) {
            return false;
        }
        self.close_own(logical);
        true
    }

    /// Lets nothing be appended to the buffer block of the logical block of a page.
    fn close_own(&mut self, logical: u32) {
        if let Some(at) = self.own_buffer(logical) {
            self.transit_mut().close(at);
        }
    }

    /// Appends a page of the host to a buffer block.
    ///
    /// Returns `false` if it passes the buffer: then the FTL below has to write it, at once.
    fn append(&mut self, logical: u32, bytes: &[u8]) -> Result<bool, Self::Error> {
        let may_wait = self.transit_mut().note_write();
        if self.passes(logical) {
            return Ok(false);
        }
        loop {
            let Some(at) = self.buffer_block(logical, may_wait)? else { return Ok(false) };
            let State { summary, .. } = self.transit();
            let entry = summary.get(at);
            let (block, place) = (BlockNumber(entry.block), entry.next);
            let before = place.checked_sub(1).map_or(logical, |it| summary.logical_at(at, it));
            if !self.program_buffered((block, place), (logical, before), bytes)? {
                if self.give_up_buffer(at)? {
                    continue;
                }
                return Ok(false);
            }
            self.count_buffered(logical, self.page_in(block, place))?;
            let State { summary, conversions, .. } = self.transit_mut();
            summary.set(at, Entry { next: place + 1, ..entry });
            summary.set_logical(at, place, logical);
            conversions.taken += 1;
            return Ok(true);
        }
    }

    /// A buffer block with room for a logical page. What has to be converted for it is.
    ///
    /// A logical block has its own, or joins a neighbour's once too few are left. How many are kept
    /// for groups that have none rises whenever such a group finds none left. `None` if the FTL
    /// below has no block to spare, or if the page would have to wait and may not.
    fn buffer_block(&mut self, logical: u32, may_wait: bool) -> Result<Option<u32>, Self::Error> {
        let (group, buffer) = (self.transit().summary.group_of(logical), self.transit().buffer);
        loop {
            self.prepare(logical)?;
            if let Some(at) = self.own_buffer(logical) {
                let state = self.transit();
                if state.has_room(&state.summary.get(at)) {
                    return Ok(Some(at));
                }
                // What is in doubt is decided before anything of its group is newer below.
                if !may_wait && !state.summary.get(at).is_doubtful {
                    let state = self.transit_mut();
                    state.close(at);
                    state.conversions.passed += 1;
                    return Ok(None);
                }
                let state = self.transit_mut();
                let is_full = state.summary.get(at).next == state.block_pages;
                state.conversions.full += u64::from(is_full);
                self.convert(at)?;
                continue;
            }
            let state = self.transit();
            let used = state.summary.used().count() as u32;
            let has_room = |at: &u32| state.has_room(&state.summary.get(*at));
            let shared = state.summary.entries_of(group).find(has_room);
            let kept = if shared.is_some() { state.kept } else { 0 };
            if used.saturating_add(kept) < buffer.blocks
                && let Some(block) = self.open_buffer(may_wait)?
            {
                return Ok(self.transit_mut().summary.add(Entry::new(block.0, group)));
            }
            let state = self.transit();
            if let Some(at) = shared.filter(|&at| state.has_room(&state.summary.get(at))) {
                return Ok(Some(at));
            }
            let state = self.transit_mut();
            state.kept = (state.kept + 1).min(buffer.blocks);
            if !may_wait {
                state.lacks = true;
                state.conversions.passed += 1;
                return Ok(None);
            }
            let Some(victim) = state.victim() else { return Ok(None) };
            state.conversions.victims += 1;
            self.convert(victim)?;
        }
    }

    /// The buffer block that has pages of the logical block of a page, or may have.
    ///
    /// As long as it is written on, also one whose pages of it do not count any more: a page behind
    /// them must not be newer than a copy elsewhere.
    fn own_buffer(&self, logical: u32) -> Option<u32> {
        let State { summary, block_pages: pages, .. } = self.transit();
        let number = summary.number_of(logical);
        let is_own = |at: &u32| {
            let entry = summary.get(*at);
            let numbers = summary.numbers(*at).iter().take(entry.next as usize);
            let mut places = (0..).zip(numbers);
            entry.is_doubtful
                || places.any(|(place, other)| {
                    u32::from(*other) / pages == u32::from(number) / pages
                        && (!entry.is_closed
                            || self.counts(self.page_in(BlockNumber(entry.block), place)))
                })
        };
        summary.entries_of(summary.group_of(logical)).find(is_own)
    }

    /// Lets nothing be appended to buffer blocks that have, or had, a page of `extent`.
    ///
    /// Before a trim: so every page of these blocks is older than the trim, also one that is
    /// invisible and known by the page behind it alone.
    fn close_buffers(&mut self, extent: Extent) {
        let state = self.transit_mut();
        for at in 0..state.summary.len() {
            let entry = state.summary.get(at);
            let mut places = if entry.block == NONE { 0..0 } else { 0..entry.next };
            if places.any(|place| {
                (extent.start..extent.end()).contains(&state.summary.logical_at(at, place))
            }) {
                state.close(at);
            }
        }
    }

    /// Writes the pages of a buffer block that count to the FTL below, and frees the block.
    fn convert(&mut self, at: u32) -> Result<(), Self::Error> {
        while !self.convert_step(at)? {}
        Ok(())
    }

    /// Converts all buffer blocks.
    fn convert_each(&mut self) -> Result<(), Self::Error> {
        for at in 0..self.transit().summary.len() {
            if self.transit().summary.get(at).block != NONE {
                self.convert(at)?;
            }
        }
        Ok(())
    }

    /// The logical pages of a buffer block that count, in the order of its places.
    fn counted_in(&self, at: u32) -> impl Iterator<Item = u32> {
        let block = BlockNumber(self.transit().summary.get(at).block);
        (0..self.transit().block_pages).filter_map(move |place| {
            let state = self.transit();
            let is_host = |logical: &u32| *logical < state.logical_pages;
            let counts = self.counts(self.page_in(block, place));
            counts.then(|| state.summary.logical_at(at, place)).filter(is_host)
        })
    }

    /// The lowest logical page of a buffer block that counts.
    fn next_to_convert(&self, at: u32) -> Option<u32> {
        self.counted_in(at).min()
    }

    /// Writes a page of a buffer block below, or completes a logical block, or frees the block.
    ///
    /// Nothing is appended to the block any more. Returns whether it is no buffer block any more.
    /// After each step every page counts where it is, so that power may fail, and the host may
    /// write, in between.
    fn convert_step(&mut self, at: u32) -> Result<bool, Self::Error> {
        self.transit_mut().close(at);
        if self.decide(at)? {
            return Ok(false);
        }
        let (entry, buffer) = (self.transit().summary.get(at), self.transit().buffer);
        let Some(logical) = self.next_to_convert(at) else {
            self.note_converted(&entry);
            for place in (0..entry.next).rev().filter(|_| !buffer.reads_newest_only) {
                // It was converted, or it was superseded: that is one read more, as printed.
                if self.transit().was_superseded(at, place) {
                    self.read_stale(self.page_in(BlockNumber(entry.block), place))?;
                }
            }
            self.transit_mut().summary.remove(at);
            self.let_go(BlockNumber(entry.block))?;
            return Ok(true);
        };
        let logical_block = logical / self.transit().block_pages;
        self.turn_to(at, logical_block)?;
        let newest = self.newest_of(logical_block, at);
        if newest >= buffer.completes_from {
            let completed = self.complete_from(at, logical_block)?;
            let conversions = &mut self.transit_mut().conversions;
            conversions.completed += 1;
            conversions.newest += u64::from(newest);
            if matches!(completed, Completed::Adopted) {
                self.note_converted(&entry);
                self.transit_mut().summary.remove(at);
                return Ok(true);
            }
            return Ok(false);
        }
        if !self.put_below(at, logical)? {
            self.transit_mut().summary.remove(at);
            return Ok(true);
        }
        self.transit_mut().conversions.newest += 1;
        Ok(false)
    }

    /// Counts a buffer block that is converted.
    fn note_converted(&mut self, entry: &Entry) {
        let conversions = &mut self.transit_mut().conversions;
        conversions.blocks += 1;
        conversions.appended += u64::from(entry.next);
    }

    /// The page of a buffer block that holds a logical page.
    fn find_in_buffer(&self, logical: u32) -> Option<PageNumber> {
        let State { summary, .. } = self.transit();
        let number = summary.number_of(logical);
        summary.entries_of(summary.group_of(logical)).find_map(|at| {
            let block = BlockNumber(summary.get(at).block);
            let places = (0..).zip(summary.numbers(at)).filter(|(_, it)| **it == number);
            let mut pages = places.map(|(place, _)| self.page_in(block, place));
            pages.find(|&page| self.counts(page))
        })
    }
}
