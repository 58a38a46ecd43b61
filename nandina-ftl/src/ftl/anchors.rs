//! The anchors: where the directory of a checkpoint is, and which blocks may be opened after it.
//!
//! The first two blocks that the chip has not marked as bad are the anchors, while there is a
//! checkpoint. One of them holds the directory of the checkpoint in its first page, and nothing
//! else. The directory lists all blocks that may be opened until another one is written; so a
//! mount that reads it need not look into any other block. Blocks that it lists come first
//! (`checkpoint.rs` lists more ahead of need). Before any other block is opened, the directory is
//! erased.
//!
//! **No directory on the chip misses a block that was opened after it.** A directory is erased, or
//! another one is durable and the old one erased, before such a block is opened. Where power was
//! cut in one of these steps, both anchors may hold a directory, or one may come and go that is
//! torn; nothing was opened in between, so each of them is right. The next session erases the one
//! that it does not use before it opens a block (`settle.rs`).

use nandina::Fault;
use nandina::flash::{BlockNumber, Flash};
use nandina::log::{Label, Log, Source};

use super::block_set::{self, BlockSet};

/// Bytes of RAM for a chip of `blocks` blocks.
pub(super) const fn ram_needed(blocks: u32) -> usize {
    2 * block_set::bytes(blocks)
}

/// Blocks that are listed and free, below which more are listed.
const SPARE: u32 = 6;

/// What is known of the directories on the chip.
pub(super) struct Anchors<'b> {
    /// The blocks that the directory in force lists.
    pub listed: BlockSet<'b>,
    /// The blocks that a mount reads: all, or those that may have pages newer than a checkpoint.
    pub unread: BlockSet<'b>,
    /// The blocks of the transit buffer, which stay reserved without a checkpoint.
    pub buffered: BlockSet<'b>,
    places: [BlockNumber; 2],
    /// The anchor that holds the directory in force.
    in_force: Option<usize>,
    /// Anchors that may show a directory which is not in force: they are erased before a block is
    /// opened.
    stale: [bool; 2],
    /// Blocks that are reserved for the checkpoint, the anchors included.
    held: u32,
    /// At least so many listed blocks are free.
    left: u32,
}

impl<'b> Anchors<'b> {
    /// Of a chip of which nothing is known; `ram` has [`ram_needed`] bytes.
    ///
    /// `buffered` has half as many, or none without a transit buffer.
    pub fn new(ram: &'b mut [u8], buffered: &'b mut [u8]) -> Self {
        let (listed, unread) = ram.split_at_mut(ram.len() / 2);
        Self {
            listed: BlockSet::new(listed),
            unread: BlockSet::new(unread),
            buffered: BlockSet::new(buffered),
            places: [BlockNumber(0); 2],
            in_force: None,
            stale: [false; 2],
            held: 0,
            left: 0,
        }
    }

    /// Forgets all, before a mount or a format.
    pub fn forget<F: Flash>(&mut self, log: &mut Log<'_, F>) {
        log.blocks.unreserve_all();
        self.listed.clear();
        self.buffered.clear();
        (self.in_force, self.stale, self.held, self.left) = (None, [false; 2], 0, 0);
    }

    /// The blocks that are anchors if there is a checkpoint, if the chip has two.
    pub fn find_places<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
    ) -> Result<Option<[BlockNumber; 2]>, Fault<F::Error>> {
        let mut found = 0;
        for block in log.blocks.all() {
            if !log.is_marked(block)? {
                self.places[found] = block;
                found += 1;
                if found == self.places.len() {
                    return Ok(Some(self.places));
                }
            }
        }
        Ok(None)
    }

    /// The block that holds the directory in force.
    pub fn current(&self) -> Option<BlockNumber> {
        self.in_force.map(|which| self.places[which])
    }

    /// The block that is anchor `which`, unless it holds the directory in force.
    pub fn idle(&self, which: usize) -> Option<BlockNumber> {
        (self.in_force != Some(which)).then_some(self.places[which])
    }

    /// Blocks that are reserved for the checkpoint, the anchors included.
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Whether `block` may be opened without another directory.
    pub fn allow(&self, block: BlockNumber) -> bool {
        self.in_force.is_none() || self.listed.has(block)
    }

    /// Whether a mount found a directory that has to be erased.
    pub const fn has_stale(&self) -> bool {
        self.stale[0] || self.stale[1]
    }

    /// Whether opening a block may take erases of anchors: two at most.
    pub const fn may_erase(&self) -> bool {
        self.in_force.is_some() || self.has_stale()
    }

    /// Notes that an anchor shows a directory.
    pub const fn note_stale(&mut self, which: usize) {
        self.stale[which] = true;
    }

    /// The directory in anchor `which` is in force; `held` blocks are reserved.
    pub const fn put_in_force(&mut self, which: usize, held: u32) {
        (self.in_force, self.held, self.left) = (Some(which), held, 0);
        self.stale[which] = false;
    }

    /// Notes that a block was opened, or erased to be opened next.
    pub const fn note_taken(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Whether more blocks should be listed before the next change.
    ///
    /// Cost: none as long as enough are left, else a look at every block.
    pub fn lack<F: Flash>(&mut self, log: &Log<'_, F>) -> bool {
        let free = log.blocks.free_blocks(log.active_block());
        let has_enough = |left| left >= SPARE || left >= free;
        if self.in_force.is_none() || has_enough(self.left) {
            return false;
        }
        let active = log.active_block();
        let is_left = |&block: &BlockNumber| {
            self.listed.has(block) && log.blocks.is_empty(block) && Some(block) != active
        };
        self.left = log.blocks.all().filter(is_left).count() as u32;
        !has_enough(self.left)
    }

    /// Lists more blocks, until `enough` are listed if there are as many.
    ///
    /// These are free ones, the least worn first, and then those with the fewest valid pages. Cost:
    /// a look at every block for each different erase count, and for each eighth of a block.
    pub fn list_more<F: Flash>(&mut self, log: &Log<'_, F>, enough: u32) {
        let (blocks, listed) = (&log.blocks, &mut self.listed);
        let mut left = enough.saturating_sub(listed.count());
        let mut list = |listed: &mut BlockSet<'_>, block| {
            let is_wanted = left > 0 && !listed.has(block);
            if is_wanted {
                listed.insert(block);
                left -= 1;
            }
            left > 0
        };
        loop {
            let free = || blocks.all().filter(|&block| blocks.is_empty(block));
            let unlisted = free().filter(|&block| !listed.has(block));
            let Some(least) = unlisted.map(|block| blocks.erase_count(block)).min() else { break };
            for block in free().filter(|&block| blocks.erase_count(block) == least) {
                if !list(listed, block) {
                    return;
                }
            }
        }
        let block_pages = log.block_pages();
        let step = (block_pages / 8).max(1) as usize;
        for most in (0..block_pages).step_by(step).chain([block_pages]) {
            let is_kept = |block| blocks.is_reserved(block) || blocks.is_bad(block);
            for block in blocks.all().filter(|&block| !is_kept(block)) {
                if blocks.valid_in(block) <= most && !list(listed, block) {
                    return;
                }
            }
        }
    }

    /// Takes the directory out of force: it is erased before the next block is opened.
    ///
    /// The blocks of the checkpoint are free.
    pub fn leave<F: Flash>(&mut self, log: &mut Log<'_, F>) {
        if let Some(which) = self.in_force.take() {
            self.stale[which] = true;
        }
        for block in log.blocks.all() {
            if !self.buffered.has(block) {
                log.blocks.set_reserved(block, false);
            }
        }
        self.held = 0;
    }

    /// Erases the directories that are not in force.
    pub fn erase_stale<F: Flash>(&mut self, log: &mut Log<'_, F>) -> Result<(), Fault<F::Error>> {
        for which in 0..self.places.len() {
            if self.stale[which] {
                self.erase(log, which)?;
            }
        }
        Ok(())
    }

    /// Programs the directory in page buffer `frame`, and puts it in force.
    ///
    /// The anchor that held the former one is erased behind it. Returns `false` if a block failed.
    pub fn write<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        frame: usize,
        label: Label,
        held: u32,
    ) -> Result<bool, Fault<F::Error>> {
        let less_worn = |at: usize| log.blocks.erase_count(self.places[at]);
        let which = match self.in_force {
            Some(current) => 1 - current,
            None => usize::from(less_worn(1) < less_worn(0)),
        };
        // Without a directory in force, what the other block holds belongs to no checkpoint.
        let is_ready = self.in_force.is_some() || self.erase(log, 1 - which)?;
        if !is_ready || !self.erase(log, which)? {
            return Ok(false);
        }
        self.stale[which] = true;
        if !log.program_at(self.places[which], 0, Source::Frame(frame), label)? {
            return Ok(false);
        }
        let former = self.in_force;
        self.put_in_force(which, held);
        match former {
            Some(former) => {
                self.stale[former] = true;
                self.erase(log, former)
            }
            None => Ok(true),
        }
    }

    /// Erases an anchor that holds no page that counts.
    ///
    /// Returns `false` if it holds one, or if the erase failed: then the chip has marked it as bad.
    pub fn erase<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        which: usize,
    ) -> Result<bool, Fault<F::Error>> {
        let block = self.places[which];
        let holds_pages = log.blocks.valid_in(block) > 0;
        let is_erased = !holds_pages && !log.blocks.is_bad(block) && log.erase(block)?;
        if !is_erased && !holds_pages && !log.is_marked(block)? {
            // What it shows must not be believed.
            log.mark_bad(block)?;
            if !log.is_marked(block)? {
                return Err(Fault::WornOut { bad_blocks: log.blocks.bad_blocks() });
            }
        }
        self.stale[which] = false;
        Ok(is_erased)
    }

    /// The block to open next: one that the directory lists, if there is one.
    ///
    /// If no listed block is free, the directory is erased before another one is opened.
    pub fn next_block<F: Flash>(
        &mut self,
        log: &mut Log<'_, F>,
        filled: Option<BlockNumber>,
    ) -> Result<BlockNumber, Fault<F::Error>> {
        self.erase_stale(log)?;
        let mut next = log.next_spared(filled)?;
        if self.in_force.is_some() && next.is_none_or(|next| !self.listed.has(next)) {
            let listed = log.blocks.all().filter(|&block| {
                self.listed.has(block)
                    && log.blocks.is_empty(block)
                    && Some(block) != filled
                    && !log.is_newest(block)
            });
            next = listed.min_by_key(|&block| log.blocks.erase_count(block));
            if next.is_none() {
                self.leave(log);
                self.erase_stale(log)?;
                next = log.next_spared(filled)?;
            }
        }
        self.note_taken();
        next.ok_or_else(|| log.no_room(0))
    }
}
