//! Checkpoints: copies of the block table and the place of the root on the chip.
//!
//! Where there is a mapping table, they store that as well.
//! They are written from time to time, so that a mount need not look into every block and walk the
//! tree (μ-Tree paper, section 5.2).
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
//! checkpoints at a time.
//!
//! A checkpoint is written between operations only, and no mount depends on it: if anything is
//! missing or damaged, the mount falls back to looking at every block.

mod checkpointing;
mod find;
mod found;
mod opened;
mod page;

pub(crate) use found::Checkpoint;
pub(crate) use opened::Opened;
pub(crate) use page::Tree;
use page::{BAD, HEAD_BYTES, Head, Kind, List, PREFIX_BYTES, Prefix};

use super::Space;
use crate::blocks::Blocks;
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, Geometry};
use crate::log::{Label, Source};
use crate::node::PageLayout;

/// The most blocks that are opened between two checkpoints.
pub const EVERY_MAX: u32 = 12;

/// The most blocks that a checkpoint lists.
pub(crate) const LIST_MAX: usize = 16;

/// Blocks listed beyond those that are opened until the next checkpoint is due.
///
/// They are for the operation that makes it due, and for the checkpoint itself.
const SLACK: usize = 4;

/// The anchors: blocks that record where the checkpoints are.
const ANCHORS: [BlockNumber; 2] = [BlockNumber(0), BlockNumber(1)];

/// Blocks without pages of the tree.
///
/// These are the anchors, the block of checkpoints, and the block to which they move.
pub(crate) const AREA_BLOCKS: u32 = 4;

/// Pages of one checkpoint, or `None` if a block cannot hold one.
///
/// `mapping_bytes` is the size of the mapping table.
pub(crate) const fn parts(
    geometry: &Geometry,
    layout: &PageLayout,
    block_pages: u32,
    mapping_bytes: usize,
) -> Option<u32> {
    let area_bytes = layout.area_bytes();
    if area_bytes < PREFIX_BYTES + HEAD_BYTES || geometry.blocks <= AREA_BLOCKS {
        return None;
    }
    let stream_bytes = page::table_bytes(geometry) + mapping_bytes;
    let parts = stream_bytes.div_ceil(area_bytes - PREFIX_BYTES) as u32;
    if parts <= block_pages { Some(parts) } else { None }
}

/// The most chip operations of a checkpoint of `parts` pages if no block fails.
///
/// They are these pages and an anchor's page, and the erases of the checkpoints' block, of the
/// previous one, and of both anchors. With `verify` each is read back.
pub(crate) const fn cost(parts: u32, verify: bool) -> u32 {
    (parts + 1 + ERASES_MAX) * (1 + verify as u32)
}

/// The most blocks that one checkpoint erases.
pub(crate) const ERASES_MAX: u32 = 4;

/// The state of the checkpoints on the chip.
pub struct Checkpoints {
    /// Blocks opened between two checkpoints; 0 if none are written.
    every: u32,
    /// The block of the newest anchor page, and where the next checkpoint goes in it.
    ///
    /// The place lies beyond the block's end if the block may not be written any more.
    last: Option<(BlockNumber, u32)>,
    /// The anchor in use and the place of its next page.
    ///
    /// `None` after a mount without a checkpoint.
    anchor: Option<(usize, u32)>,
    /// The anchors may lead to a checkpoint that the mount did not use.
    ///
    /// None of its blocks may be opened until the anchors are erased.
    stale: bool,
    number: u64,
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
    pub const fn new(every: u32) -> Self {
        let (list, stale) = (List::EMPTY, every > 0);
        let (last, anchor, base) = (None, None, None);
        Self { every, last, anchor, stale, number: 0, list, opened: every, base, scanned: list }
    }
}

impl<F: Flash, K: super::Kind<Checkpoints = Checkpoints>> Space<'_, F, K> {
    /// Forgets the checkpoints on the chip: one is due.
    pub(crate) fn forget_area(&mut self) {
        self.checkpoints = Checkpoints::new(self.checkpoints.every);
        self.reserve_anchors();
    }

    /// Notes that both anchors were erased, and frees the block of checkpoints.
    pub(crate) fn leave_area(&mut self) {
        let Checkpoints { last, anchor, .. } = self.checkpoints;
        if let Some((block, _)) = last {
            self.log.blocks.set_reserved(block, false);
        }
        self.forget_area();
        self.checkpoints.anchor = anchor;
        self.checkpoints.stale = false;
    }

    /// Keeps the anchors from all other use.
    fn reserve_anchors(&mut self) {
        if self.checkpoints.every > 0 {
            for block in ANCHORS {
                self.log.blocks.set_reserved(block, true);
            }
        }
    }

    /// Whether a checkpoint should be written before an operation of at most `pages`.
    pub(crate) fn is_due(&self, pages: u32) -> bool {
        let Checkpoints { every, last, list, opened, .. } = &self.checkpoints;
        if *every == 0 || *opened == 0 {
            return false;
        }
        let left = list.len() as u32 * self.log.block_pages();
        *opened >= *every || (last.is_some() && left < pages + 2 * self.log.block_pages())
    }

    /// Pages of the free blocks that are for checkpoints.
    ///
    /// These are a block to which they move, and their own if there is none. A mount may use the
    /// first.
    pub(crate) fn area_room(&self) -> u32 {
        let Checkpoints { every, last, .. } = &self.checkpoints;
        let blocks = if *every == 0 { 0 } else { 1 + u32::from(last.is_none()) };
        blocks * self.log.block_pages()
    }

    /// The most chip operations that a checkpoint takes if no block fails.
    pub(crate) fn area_cost(&self) -> u32 {
        if self.checkpoints.every == 0 {
            return 0;
        }
        cost(self.parts(), self.log.verifies())
    }

    fn parts(&self) -> u32 {
        let (geometry, mapping_bytes) = (self.log.geometry(), self.mappings.bytes().len());
        parts(&geometry, &self.log.layout(), self.log.block_pages(), mapping_bytes)
            .unwrap_or(u32::MAX)
    }

    /// The block that the checkpoint requires to be opened next.
    ///
    /// If its list is empty, the checkpoint is made unusable and `None` is returned.
    pub(crate) fn listed_block(&mut self) -> Result<Option<BlockNumber>, Fault<F::Error>> {
        self.checkpoints.opened += 1;
        if let Some(block) = self.checkpoints.list.pop() {
            return Ok(Some(block));
        }
        self.void_checkpoint()?;
        // A block outside the list is opened only after the checkpoint was erased, and so is any
        // block after a mount that did not use the checkpoint.
        debug_assert!(
            self.checkpoints.last.is_none() && !self.checkpoints.stale,
            "a block is opened that the checkpoint does not list"
        );
        Ok(None)
    }

    /// Panics unless only anchors, the last checkpoint and bad blocks are reserved.
    #[cfg(debug_assertions)]
    pub(crate) fn check_reserved(&self) {
        for block in self.log.blocks.all() {
            let is_anchor = self.checkpoints.every > 0 && ANCHORS.contains(&block);
            let is_area = is_anchor || self.checkpoints.last.is_some_and(|last| last.0 == block);
            let is_reserved = self.log.blocks.is_reserved(block);
            let is_right = is_reserved == is_area || self.log.blocks.is_bad(block);
            assert!(is_right, "block {} is reserved: {is_reserved}", block.0);
        }
    }

    /// The block at position `at` of those that may hold new pages.
    ///
    /// After a mount from a checkpoint, these are the blocks of pages that are newer than that.
    /// They stay so while the mount settles, though that checkpoint may be erased meanwhile.
    fn scanned_block(&self, at: u32) -> Option<BlockNumber> {
        let Checkpoints { base, scanned, .. } = &self.checkpoints;
        match base {
            None => (at < self.log.blocks.count()).then_some(BlockNumber(at)),
            Some(Base { active, .. }) => {
                active.iter().chain(scanned.whole()).nth(at as usize).copied()
            }
        }
    }

    /// Makes the checkpoint on the chip unusable, and another one due.
    fn void_for_good(&mut self) -> Result<(), Fault<F::Error>> {
        self.void_checkpoint()?;
        self.checkpoints.opened = self.checkpoints.every;
        Ok(())
    }

    /// Makes the last checkpoint unusable: a block is opened that it does not list.
    fn void_checkpoint(&mut self) -> Result<(), Fault<F::Error>> {
        self.checkpoints.list = List::EMPTY;
        self.erase_checkpoints()
    }

    /// Erases the block of checkpoints. If that fails, erases the anchors.
    fn erase_checkpoints(&mut self) -> Result<(), Fault<F::Error>> {
        let Some((block, _)) = self.checkpoints.last.take() else {
            // All its listed blocks were opened, but one that is erased and then cut looks as if it
            // never was.
            return if self.checkpoints.stale { self.erase_anchors() } else { Ok(()) };
        };
        covered!("a checkpoint is erased when its list ends");
        self.log.blocks.set_reserved(block, false);
        if !self.log.blocks.is_bad(block) && self.log.erase_for_good(block)? {
            return Ok(());
        }
        // The checkpoint may still be readable: then no anchor may lead to it.
        covered!("a checkpoint cannot be erased");
        self.erase_anchors()
    }

    /// Erases both anchors, so that a mount finds no checkpoint.
    pub(crate) fn erase_anchors(&mut self) -> Result<(), Fault<F::Error>> {
        for block in ANCHORS {
            // An anchor that cannot be erased may still be readable: it has to be marked as bad, so
            // that no mount reads it.
            if !self.log.blocks.is_bad(block) && !self.log.erase_for_good(block)? {
                covered!("an anchor cannot be erased");
                self.log.mark_bad_blocks()?;
            }
        }
        let usable = ANCHORS.iter().position(|&block| !self.log.blocks.is_bad(block));
        self.checkpoints.anchor = usable.map(|which| (which, 0));
        self.checkpoints.stale = false;
        Ok(())
    }

    /// Writes a checkpoint. Returns `false` if there is no block for it.
    ///
    /// It records where the tree and all valid pages are. Nothing may be staged, and no operation
    /// may be running.
    pub(crate) fn write_area(&mut self, tree: &Tree) -> Result<bool, Fault<F::Error>> {
        self.log.frames.forget_all();
        self.checkpoints.number += 1;
        let before = self.checkpoints.last;
        let (block, next) = loop {
            let (block, place) = match self.checkpoints.last {
                Some((block, next)) if next + self.parts() <= self.log.block_pages() => {
                    (block, next)
                }
                _ if self.log.blocks.free_blocks(self.log.active_block()) < 2 => return Ok(false),
                _ => {
                    let block = self.next_block(self.log.active_block())?;
                    if !self.log.erase(block)? {
                        continue;
                    }
                    (block, 0)
                }
            };
            self.log.blocks.set_reserved(block, true);
            let list = self.list_for(block);
            if self.program_parts(block, place, &list, tree)? {
                self.checkpoints.list = list;
                break (block, place + self.parts());
            }
            // Older checkpoints in the block stay until there is a newer one.
            covered!("a part of a checkpoint cannot be programmed");
            let pages_per_block = self.log.geometry().pages_per_block;
            if let Some((last, next)) = &mut self.checkpoints.last
                && *last == block
            {
                *next = pages_per_block;
            }
        };
        if before.is_none_or(|(last, _)| last != block) || self.checkpoints.last.is_none() {
            // A page of an anchor that a cut tore may be visible at one mount and not at the next.
            // The blocks that the old checkpoint lists may have been opened twice by then, and look
            // as if they never were. So it is erased before an anchor leads to the new one.
            self.erase_checkpoints()?;
            if !self.write_anchor(block)? {
                covered!("no anchor can be written");
                self.log.blocks.set_reserved(block, false);
                self.checkpoints.every = 0;
                self.void_checkpoint()?;
                return Ok(false);
            }
        }
        self.checkpoints.last = Some((block, next));
        self.checkpoints.opened = 0;
        Ok(true)
    }

    /// The blocks to open after a checkpoint in `block`.
    ///
    /// The unopened blocks of the previous checkpoint come first, so that it stays correct as long
    /// as one of them is left. If both are in one block, its last block is not listed again once it
    /// was opened: when it is opened a second time, and that is cut, it looks as if it never was.
    fn list_for(&mut self, block: BlockNumber) -> List {
        let is_behind = self.checkpoints.last.is_some_and(|(last, _)| last == block);
        let end = self.checkpoints.list.last().filter(|_| is_behind);
        let except = end.filter(|&end| self.log.blocks.is_empty(end));
        if let Some(end) = except {
            self.log.blocks.set_reserved(end, true);
        }
        let mut list = List::EMPTY;
        for &left in self.checkpoints.list.as_slice() {
            list.push(left);
        }
        while list.len() < (self.checkpoints.every as usize + SLACK).min(LIST_MAX) {
            let free = self.log.blocks.next_free(self.log.active_block(), list.as_slice());
            let Some(free) = free.filter(|&free| free != block) else { break };
            list.push(free);
        }
        if let Some(end) = except {
            self.log.blocks.set_reserved(end, false);
        }
        list
    }

    /// Programs every part of a checkpoint. Returns `false` if a program failed.
    fn program_parts(
        &mut self,
        block: BlockNumber,
        place: u32,
        list: &List,
        tree: &Tree,
    ) -> Result<bool, Fault<F::Error>> {
        let mut head = [0; HEAD_BYTES];
        Head { tree: *tree, active: self.log.next_place(), list: *list }.write(&mut head);
        let parts = self.parts();
        let (number, area_bytes) = (self.checkpoints.number, self.log.layout().area_bytes());
        for part in 0..parts {
            let prefix =
                Prefix { kind: Kind::Checkpoint, part: part as u16, parts: parts as u16, number };
            let page = &mut self.log.frames.bytes_mut(0)[..area_bytes];
            prefix.write(page);
            let bytes = &mut page[PREFIX_BYTES..];
            let from = part as usize * bytes.len();
            fill(bytes, from, &head, &self.log.blocks, self.mappings.bytes());
            if !self.program_area(block, place + part)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Programs the anchor page for checkpoints in `block`.
    ///
    /// Returns `false` if no anchor could be written.
    fn write_anchor(&mut self, block: BlockNumber) -> Result<bool, Fault<F::Error>> {
        let (number, area_bytes) = (self.checkpoints.number, self.log.layout().area_bytes());
        while let Some((which, place)) = self.anchor_with_room()? {
            let page = &mut self.log.frames.bytes_mut(0)[..area_bytes];
            page.fill(0xFF);
            Prefix { kind: Kind::Anchor, part: 0, parts: 1, number }.write(page);
            page[PREFIX_BYTES..PREFIX_BYTES + 4].copy_from_slice(&block.0.to_le_bytes());
            self.checkpoints.anchor = Some((which, place + 1));
            if self.program_area(ANCHORS[which], place)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The anchor to write next, and the place in it.
    fn anchor_with_room(&mut self) -> Result<Option<(usize, u32)>, Fault<F::Error>> {
        let usable = |space: &Self, which: usize| !space.log.blocks.is_bad(ANCHORS[which]);
        let first = match self.checkpoints.anchor {
            Some((which, place)) if usable(self, which) && place < self.log.block_pages() => {
                return Ok(Some((which, place)));
            }
            // The other anchor first: the one in use leads to a checkpoint that is still correct.
            Some((which, _)) => 1 - which,
            None => return Ok(None),
        };
        for which in [first, 1 - first] {
            if usable(self, which) && self.log.erase(ANCHORS[which])? {
                return Ok(Some((which, 0)));
            }
        }
        Ok(None)
    }

    /// Programs page buffer 0 as a page of an anchor or a checkpoint.
    ///
    /// If the program fails, gives the block up and returns `false`.
    fn program_area(&mut self, block: BlockNumber, place: u32) -> Result<bool, Fault<F::Error>> {
        self.log.program_at(
            block,
            place,
            Source::Frame(0),
            Label { lowest: 0, height: 0, records: 0 },
        )
    }
}

/// Fills `out` with the bytes of a checkpoint's stream from `from` on.
fn fill(out: &mut [u8], from: usize, head: &[u8], blocks: &Blocks<'_>, mappings: &[u8]) {
    let bits = blocks.valid_bits();
    for (at, out) in (from..).zip(out) {
        *out = if at < head.len() {
            head[at]
        } else if at < head.len() + bits.len() {
            bits[at - head.len()]
        } else {
            let at = at - head.len() - bits.len();
            let block = BlockNumber(at as u32 / 4);
            if block.0 < blocks.count() {
                let bad = if blocks.is_bad(block) { BAD } else { 0 };
                (blocks.erase_count(block) & !BAD | bad).to_le_bytes()[at % 4]
            } else {
                mappings.get(at - 4 * blocks.count() as usize).copied().unwrap_or(0xFF)
            }
        };
    }
}
