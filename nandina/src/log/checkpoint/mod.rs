//! Checkpoints: copies of the block table on the chip, and of what the owner keeps.
//!
//! A tree stores the place of its root and its mapping table, an index of leaves its directory.
//! They are written from time to time, so that a mount need not look into every block (μ-Tree
//! paper, section 5.2).
//!
//! A checkpoint lists the blocks that may be opened after it, in order. So a mount that finds it
//! knows where all newer pages are. A checkpoint that is not the newest stays correct until its
//! last block is opened, after which it is not used. (It is used if the next one was torn, even if
//! that could be read before. So the next one does not list that block again.) Only if that list
//! ends early (because blocks fail) is the checkpoint erased before another block is opened.
//!
//! Two fixed blocks, the anchors, record in turn which block holds the checkpoints. That block is
//! taken from the free blocks like any other, filled with one checkpoint after another, erased, and
//! given back. So an anchor uses one page for each such block, and there is only one block of
//! checkpoints at a time. A checkpoint that does not fit in a block has several of its own, which
//! its anchor names in order; only the first of them is erased, for without it no other is found.
//!
//! A checkpoint is written between operations only, and no mount depends on it: if anything is
//! missing or damaged, the mount falls back to looking at every block.

mod anchors;
mod area;
mod find;
mod found;
mod opened;
mod page;
mod size;
mod stream;

pub use anchors::{ANCHORS, erase_anchors};
use anchors::{Anchors, program_area};
use area::Area;
pub use area::{AREA_MAX, area_blocks, erases_max};
pub use find::read_owned;
pub use found::Checkpoint;
pub use opened::Opened;
use page::{BAD, HEAD_BYTES, Head, Kind, List, PREFIX_BYTES, Prefix};
pub use page::{IS_BUILT, Summary};
pub use size::{VOIDING, cost, parts, parts_most, search_in_vain, voiding_cost};
pub use stream::Stream;

use super::Log;
use crate::blocks::Blocks;
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash};

/// The most blocks that are opened between two checkpoints.
pub const EVERY_MAX: u32 = 12;

/// The most blocks that a checkpoint lists.
pub const LIST_MAX: usize = 16;

/// Blocks listed beyond those that are opened until the next checkpoint is due.
///
/// They are for the operation that makes it due, and for the checkpoint itself.
const SLACK: usize = 4;

/// The state of the checkpoints on the chip.
pub struct Checkpoints {
    /// Blocks opened between two checkpoints; 0 if none are written.
    every: u32,
    /// The block of the newest anchor page, and where the next checkpoint goes in it.
    ///
    /// The place lies beyond the block's end if the block may no longer be written.
    last: Option<(BlockNumber, u32)>,
    anchors: Anchors,
    /// The most blocks that one checkpoint takes.
    blocks: u8,
    /// Blocks of the last one.
    held: u8,
    number: u64,
    /// The number of the first checkpoint in its block.
    first: u64,
    list: List,
    /// Blocks opened since the last checkpoint.
    opened: u32,
    /// The checkpoint from which the index was mounted.
    base: Option<Base>,
    /// The blocks that this checkpoint lists.
    scanned: List,
}

/// What a mount from a checkpoint need not look for: all that is older.
#[derive(Clone, Copy)]
pub struct Base {
    /// The number of the checkpoint's first page.
    pub sequence: u64,
    /// The highest number that is in use for certain.
    pub highest: u64,
    /// The block that was being written then.
    pub active: Option<BlockNumber>,
}

impl Base {
    /// Whether a page with the number `sequence` is newer.
    pub const fn is_older_than(&self, sequence: u64) -> bool {
        self.sequence < sequence
    }

    /// Whether `block`, which begins with the number `sequence`, has no newer page.
    pub fn has_all_of(&self, block: BlockNumber, sequence: u64) -> bool {
        !self.is_older_than(sequence) && self.active != Some(block)
    }
}

impl Checkpoints {
    /// The state before a mount; a checkpoint is due after `every` blocks.
    ///
    /// It has at most `parts` pages, in blocks of `block_pages`.
    pub const fn new(every: u32, parts: u32, block_pages: u32) -> Self {
        let blocks = if every == 0 { 0 } else { parts.div_ceil(block_pages) };
        Self::unknown(every, blocks as u8)
    }

    /// The state in which nothing is known of the chip.
    const fn unknown(every: u32, blocks: u8) -> Self {
        let (list, last, base) = (List::EMPTY, None, None);
        Self {
            every,
            last,
            anchors: Anchors::unknown(every > 0),
            blocks,
            held: 0,
            number: 0,
            first: 0,
            list,
            opened: every,
            base,
            scanned: list,
        }
    }
}

impl Checkpoints {
    /// The checkpoint from which the index was mounted, if there was one.
    pub const fn base(&self) -> Option<Base> {
        if IS_BUILT { self.base } else { None }
    }

    /// Forgets the checkpoints on the chip: one is due.
    ///
    /// What the anchors say stays known: they may still say it after they were erased.
    pub fn forget<F: Flash>(&mut self, log: &mut Log<'_, F>) {
        if !IS_BUILT {
            return;
        }
        let (anchors, number) = (self.anchors.forgotten(self.every > 0), self.number);
        *self = Self { anchors, number, ..Self::unknown(self.every, self.blocks) };
        self.reserve_anchors(log);
    }

    /// Notes that both anchors were erased, and frees the block of checkpoints.
    pub fn leave<F: Flash>(&mut self, log: &mut Log<'_, F>) {
        if !IS_BUILT {
            return;
        }
        let anchors = self.anchors;
        if self.last.is_some() {
            self.release(log, &[]);
        }
        self.forget(log);
        self.anchors = anchors.erased();
    }

    /// Keeps the anchors from all other use.
    fn reserve_anchors<F: Flash>(&self, log: &mut Log<'_, F>) {
        if self.every > 0 {
            for block in ANCHORS {
                log.blocks.set_reserved(block, true);
            }
        }
    }

    /// Gives the blocks of the last checkpoint back, except those in `keep`.
    ///
    /// All but the first stay readable, but no anchor leads to them.
    fn release<F: Flash>(&mut self, log: &mut Log<'_, F>, keep: &[BlockNumber]) {
        self.held = 0;
        for block in log.blocks.all() {
            let is_kept = ANCHORS.contains(&block) || keep.contains(&block);
            if !is_kept && log.blocks.is_reserved(block) {
                log.blocks.set_reserved(block, false);
            }
        }
    }

    /// Bounds the next checkpoints by one block, if they may have more.
    ///
    /// Then a checkpoint that does not fit is not written. An index may be too full for the blocks
    /// of a larger checkpoint, because it was filled with a smaller table. Returns whether anything
    /// changed.
    pub const fn shrink(&mut self) -> bool {
        let shrinks = self.blocks > 1;
        if shrinks {
            self.blocks = 1;
        }
        shrinks
    }

    /// Notes the `number` of a checkpoint that was read, or of an anchor.
    const fn note_number(&mut self, number: u64) {
        self.number = number;
    }

    /// Notes that the anchor `which` leads to `block`.
    const fn note_anchor(&mut self, which: usize, block: BlockNumber) {
        self.anchors.note(which, block);
    }

    /// Begins with the checkpoint in `block`, to which the anchor `which` leads.
    ///
    /// It takes `held` blocks. A program that was cut may be invisible: `block` is not written
    /// again.
    fn take_found(&mut self, which: usize, block: BlockNumber, held: u8, block_pages: u32) {
        self.anchors.follow(which, block_pages);
        self.last = Some((block, block_pages));
        self.held = held;
    }

    /// Continues from a checkpoint.
    ///
    /// `opened` says which of its blocks were opened since. An anchor may have been written since.
    pub fn go_on_from(&mut self, found: &Checkpoint, opened: &Opened) {
        let listed = || opened.since.iter().zip(found.listed());
        let list = &mut self.list;
        listed().filter(|(since, _)| since.is_some()).for_each(|(_, &block)| list.push(block));
        self.opened = list.len() as u32;
        while list.pop().is_some() {}
        listed().filter(|(since, _)| since.is_none()).for_each(|(_, &block)| list.push(block));
        self.scanned = *list;
        let active = found.active.map(|(block, _)| block);
        let highest = found.anchor_sequence().max(opened.checkpoint);
        self.base = Some(Base { sequence: found.header.sequence, highest, active });
    }

    /// Blocks that are free as soon as a mount has settled.
    ///
    /// A mount reserves blocks of its own only where it used no checkpoint.
    pub fn held_blocks<F: Flash>(&self, log: &Log<'_, F>) -> u32 {
        if self.last.is_some() {
            return log.blocks.held_blocks(false);
        }
        // On a damaged medium a pointer may lead into an anchor.
        let is_reserved = |&block: &BlockNumber| {
            self.every > 0 && !log.blocks.is_bad(block) && log.blocks.valid_in(block) == 0
        };
        log.blocks.held_blocks(true)
            - ANCHORS.iter().filter(|block| is_reserved(block)).count() as u32
    }

    /// Ends the reservation of blocks that a mount reserved until it had settled.
    pub fn unreserve<F: Flash>(&self, log: &mut Log<'_, F>) {
        if self.last.is_none() {
            log.blocks.unreserve_all();
            self.reserve_anchors(log);
        }
    }

    /// Blocks that a checkpoint lists: those until the next one, and the next one's.
    ///
    /// If they are more than a list has, a checkpoint makes the one before it unusable when it
    /// takes the first block that is not listed.
    fn listed_blocks(&self) -> usize {
        (self.every as usize + SLACK + usize::from(self.blocks) - 1).min(LIST_MAX)
    }

    /// Whether a checkpoint should be written before an operation of at most `pages`.
    pub fn is_due<F: Flash>(&self, log: &Log<'_, F>, pages: u32) -> bool {
        let Self { every, last, list, opened, .. } = self;
        if *every == 0 || *opened == 0 {
            return false;
        }
        let left = list.len() as u32 * log.block_pages();
        let next =
            self.listed_blocks() as u32 + 1 - (self.every + SLACK as u32).min(LIST_MAX as u32);
        *opened >= *every || (last.is_some() && left < pages + (1 + next) * log.block_pages())
    }

    /// Pages of the free blocks that are for checkpoints.
    ///
    /// These are the blocks of the next one, and of the last if there is none. A mount may use the
    /// first.
    pub fn room<F: Flash>(&self, log: &Log<'_, F>) -> u32 {
        let blocks = if !IS_BUILT || self.every == 0 { 0 } else { 2 * u32::from(self.blocks) };
        blocks.saturating_sub(self.held.into()) * log.block_pages()
    }

    /// Pages of the blocks by which the next checkpoint is larger than the last one.
    pub fn taken<F: Flash>(&self, log: &Log<'_, F>, stream: &impl Stream) -> u32 {
        let blocks = parts_of(log, stream).div_ceil(log.block_pages());
        blocks.saturating_sub(self.held.into()) * log.block_pages()
    }

    /// Blocks that can hold no page of the owner.
    pub const fn area_blocks(&self) -> u32 {
        if !IS_BUILT || self.blocks == 0 { 0 } else { area_blocks(self.blocks as u32) }
    }

    /// The most chip operations that a checkpoint takes if no block fails.
    pub fn cost<F: Flash>(&self, log: &Log<'_, F>, stream: &impl Stream) -> u32 {
        if !IS_BUILT {
            return 0;
        }
        match (self.every, parts_of(log, stream)) {
            (0, _) | (_, TOO_LARGE) => 0,
            (_, parts) => cost(parts, log.block_pages(), log.verifies()),
        }
    }

    /// The next block to erase and write.
    ///
    /// It is the block that the checkpoint requires, if it requires one.
    pub fn next_block<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        filled: Option<BlockNumber>,
    ) -> Result<BlockNumber, Fault<F::Error>> {
        self.next_block_but(log, filled, &[])
    }

    /// The next block; those in `taken` are for a checkpoint that is not complete.
    fn next_block_but<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        filled: Option<BlockNumber>,
        taken: &[BlockNumber],
    ) -> Result<BlockNumber, Fault<F::Error>> {
        match self.listed_block(log, taken)? {
            Some(block) => Ok(block),
            None => log.next_block(filled),
        }
    }

    /// The block that the checkpoint requires to be opened next.
    ///
    /// If its list is empty, the checkpoint is made unusable and `None` is returned.
    fn listed_block<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        taken: &[BlockNumber],
    ) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        self.opened += 1;
        while let Some(block) = self.list.pop() {
            // The erase of a listed block may have failed without opening it. The list of a damaged
            // checkpoint may name an anchor, or a block that is in use.
            if log.blocks.is_empty(block) {
                return Ok(Some(block));
            }
        }
        if !taken.is_empty() {
            covered!("the list of a checkpoint ends while the next one takes its blocks");
        }
        self.void_checkpoint(log, taken)?;
        // A block outside the list is opened only after the checkpoint was erased, and so is any
        // block after a mount that did not use the checkpoint.
        debug_assert!(
            self.last.is_none() && !self.anchors.are_stale(),
            "a block is opened that the checkpoint does not list"
        );
        Ok(None)
    }

    /// Panics unless only anchors, the last checkpoint and bad blocks are reserved.
    ///
    /// While a mount settles, it may have reserved others.
    #[cfg(debug_assertions)]
    pub fn check_reserved<F: Flash>(&self, log: &Log<'_, F>) {
        if log.is_settling() {
            return;
        }
        let mut held = 0;
        for block in log.blocks.all().filter(|&block| !log.blocks.is_bad(block)) {
            let is_anchor = self.every > 0 && ANCHORS.contains(&block);
            let is_first = self.last.is_some_and(|last| last.0 == block);
            let is_reserved = log.blocks.is_reserved(block);
            let is_right = is_reserved || !(is_anchor || is_first);
            assert!(is_right, "block {} is not reserved", block.0);
            held += u32::from(is_reserved && !is_anchor);
        }
        let most = u32::from(self.held);
        assert!(held <= most, "{held} blocks are reserved for a checkpoint of {most}");
    }

    /// The block at position `at` of those that may hold new pages.
    ///
    /// After a mount from a checkpoint, these are the blocks of pages that are newer than that.
    /// They stay the same while the mount settles, although that checkpoint may be erased
    /// meanwhile.
    pub fn scanned_block<F: Flash>(&self, log: &Log<'_, F>, at: u32) -> Option<BlockNumber> {
        let base = if IS_BUILT { self.base.as_ref() } else { None };
        match base {
            None => (at < log.blocks.count()).then_some(BlockNumber(at)),
            Some(Base { active, .. }) => {
                active.iter().chain(self.scanned.whole()).nth(at as usize).copied()
            }
        }
    }

    /// Makes the checkpoint on the chip unusable, and another one due.
    ///
    /// Cost: sometimes an erase, or two.
    pub fn void<F: Flash>(&mut self, log: &mut Log<'_, F>) -> Result<(), Fault<F::Error>> {
        self.void_checkpoint(log, &[])?;
        self.opened = self.every;
        Ok(())
    }

    /// Makes the last checkpoint unusable before a block that it does not list opens.
    fn void_checkpoint<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        taken: &[BlockNumber],
    ) -> Result<(), Fault<F::Error>> {
        self.list = List::EMPTY;
        self.erase_checkpoints(log, taken)
    }

    /// Erases the first block of checkpoints. If that fails, erases the anchors.
    ///
    /// The blocks in `taken` are for the next one.
    fn erase_checkpoints<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        taken: &[BlockNumber],
    ) -> Result<(), Fault<F::Error>> {
        let Some((block, _)) = self.last.take() else {
            // All its listed blocks were opened, but a block that was erased just before a cut
            // looks as if it had never been opened.
            return if self.anchors.are_stale() { self.erase_anchors(log) } else { Ok(()) };
        };
        covered!("a checkpoint is erased when its list ends");
        self.release(log, taken);
        if !log.blocks.is_bad(block) && log.erase_for_good(block)? {
            return Ok(());
        }
        // The checkpoint may still be readable: then no anchor may lead to it.
        covered!("a checkpoint cannot be erased");
        self.erase_anchors(log)
    }

    /// Erases both anchors, so that a mount finds no checkpoint.
    pub fn erase_anchors<F: Flash>(&mut self, log: &mut Log<'_, F>) -> Result<(), Fault<F::Error>> {
        if IS_BUILT { self.anchors.erase(log) } else { Ok(()) }
    }

    /// Writes a checkpoint.
    ///
    /// Returns `false` if there are no blocks for it, or if it does not fit in as many as it may
    /// have.
    ///
    /// It records what is known of the blocks, and the owner's `summary` and `stream`. No operation
    /// may be running.
    ///
    /// Cost: a program for each page of the checkpoint; one more and up to [`erases_max`] erases
    /// where its block is full, or where it takes several.
    pub fn write<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        summary: &Summary,
        stream: &impl Stream,
    ) -> Result<bool, Fault<F::Error>> {
        let parts = parts_of(log, stream);
        let blocks = parts.div_ceil(log.block_pages());
        if blocks > self.blocks.into() {
            return Ok(false);
        }
        if blocks > 1 {
            covered!("a checkpoint takes several blocks");
        }
        log.frames.forget_all();
        self.number += 1;
        let before = self.last;
        let (area, next) = loop {
            let (area, place) = match self.last {
                Some((block, next)) if next + parts <= log.block_pages() => (Area::of(block), next),
                _ => match self.take_area(log, blocks)? {
                    Some(area) => (area, 0),
                    None => return Ok(false),
                },
            };
            if place == 0 {
                self.first = self.number;
            }
            let list = self.list_for(log, area.as_slice()[0]);
            if self.program_parts(log, (&area, place), &list, (summary, stream))? {
                self.list = list;
                break (area, place + parts);
            }
            // Older checkpoints in the block stay until there is a newer one.
            covered!("a part of a checkpoint cannot be programmed");
            let pages_per_block = log.geometry().pages_per_block;
            match &mut self.last {
                Some((last, next)) if area.as_slice().contains(last) => *next = pages_per_block,
                _ => give_back(log, area.as_slice()),
            }
        };
        let area = area.as_slice();
        if before.is_none_or(|(last, _)| last != area[0]) || self.last.is_none() {
            // A page of an anchor that a cut tore may be visible at one mount and not at the next.
            // The blocks that the old checkpoint lists may have been opened twice by then, and look
            // as if they had never been opened. So the old checkpoint is erased before an anchor
            // leads to the new one.
            self.erase_checkpoints(log, area)?;
            if !self.anchors.write(log, (area, self.number))? {
                covered!("no anchor can be written");
                give_back(log, area);
                self.every = 0;
                self.void_checkpoint(log, &[])?;
                return Ok(false);
            }
        }
        self.held = blocks as u8;
        self.last = Some((area[0], next));
        self.opened = 0;
        Ok(true)
    }

    /// Takes and erases the `blocks` of a checkpoint; `None` if there are not enough.
    ///
    /// All are erased before the first part is programmed: it stores how often each was.
    fn take_area<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        blocks: u32,
    ) -> Result<Option<Area>, Fault<F::Error>> {
        let mut area = Area::EMPTY;
        loop {
            let left = blocks - area.as_slice().len() as u32;
            if left == 0 {
                return Ok(Some(area));
            }
            if log.blocks.free_blocks(log.active_block()) < left + 1 {
                give_back(log, area.as_slice());
                return Ok(None);
            }
            let block = self.next_block_but(log, log.active_block(), area.as_slice())?;
            if log.erase(block)? {
                log.blocks.set_reserved(block, true);
                area.push(block);
            }
        }
    }

    /// The blocks to open after a checkpoint in `block`.
    ///
    /// The unopened blocks of the previous checkpoint come first, so that it stays correct as long
    /// as one of them is left. If both are in one block, its last block is not listed again once it
    /// was opened: if a cut interrupts the second opening, the block looks as if it had never been
    /// opened.
    fn list_for<F: Flash>(&self, log: &mut Log<'_, F>, block: BlockNumber) -> List {
        let is_behind = self.last.is_some_and(|(last, _)| last == block);
        let end = self.list.last().filter(|_| is_behind);
        let except = end.filter(|&end| log.blocks.is_empty(end));
        if let Some(end) = except {
            log.blocks.set_reserved(end, true);
        }
        let mut list = List::EMPTY;
        for &left in self.list.as_slice() {
            list.push(left);
        }
        while list.len() < self.listed_blocks() {
            let free = log.blocks.next_free(log.active_block(), list.as_slice());
            let Some(free) = free.filter(|&free| free != block) else { break };
            list.push(free);
        }
        if let Some(end) = except {
            log.blocks.set_reserved(end, false);
        }
        list
    }

    /// Programs every part of a checkpoint. Returns `false` if a program failed.
    fn program_parts<F: Flash, S: Stream>(
        &self,
        log: &mut Log<'_, F>,
        (area, place): (&Area, u32),
        list: &List,
        (summary, stream): (&Summary, &S),
    ) -> Result<bool, Fault<F::Error>> {
        let mut head = [0; HEAD_BYTES];
        Head { summary: *summary, active: log.next_place(), list: *list }.write(&mut head);
        let parts = parts_of(log, stream);
        let (number, area_bytes) = (self.number, log.layout().area_bytes());
        let before = (number - self.first) as u16;
        for part in 0..parts {
            let (part_of, parts) = (part as u16, parts as u16);
            let prefix = Prefix { kind: Kind::Checkpoint, part: part_of, parts, before, number };
            let page = &mut log.frames.bytes_mut(0)[..area_bytes];
            prefix.write(page);
            let bytes = &mut page[PREFIX_BYTES..];
            let from = part as usize * bytes.len();
            fill(bytes, from, &head, &log.blocks, stream);
            let (which, at) =
                ((place + part) / log.block_pages(), (place + part) % log.block_pages());
            if !program_area(log, area.as_slice()[which as usize], at)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Gives blocks back that were taken for a checkpoint.
fn give_back<F: Flash>(log: &mut Log<'_, F>, area: &[BlockNumber]) {
    area.iter().for_each(|&block| log.blocks.set_reserved(block, false));
}

/// Pages of a checkpoint that does not fit.
const TOO_LARGE: u32 = u32::MAX;

/// Pages of a checkpoint with this part of the owner, or [`TOO_LARGE`].
fn parts_of<F: Flash, S: Stream>(log: &Log<'_, F>, stream: &S) -> u32 {
    let (geometry, layout) = (log.geometry(), log.layout());
    parts::<S>(&geometry, &layout, log.block_pages(), stream.bytes()).unwrap_or(TOO_LARGE)
}

/// Fills `out` with the bytes of a checkpoint's stream from `from` on.
fn fill<S: Stream>(out: &mut [u8], from: usize, head: &[u8], blocks: &Blocks<'_>, stream: &S) {
    let bits = if S::STORES_VALID { blocks.valid_bits() } else { &[] };
    let end = head.len() + bits.len() + 4 * blocks.count() as usize;
    let (out, owned) = out.split_at_mut(end.saturating_sub(from).min(out.len()));
    for (at, out) in (from..).zip(out) {
        *out = if at < head.len() {
            head[at]
        } else if at < head.len() + bits.len() {
            bits[at - head.len()]
        } else {
            let at = at - head.len() - bits.len();
            let block = BlockNumber(at as u32 / 4);
            let bad = if blocks.is_bad(block) { BAD } else { 0 };
            (blocks.erase_count(block) & !BAD | bad).to_le_bytes()[at % 4]
        };
    }
    stream.fill(from.max(end) - end, owned);
}
