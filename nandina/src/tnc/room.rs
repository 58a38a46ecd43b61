//! Room on flash and in RAM: what must be free before a change.
//!
//! This file also limits the number of nodes. A change takes a page of the journal, and later a
//! part of a commit. There is always room for the largest commit, so no commit has to write into
//! the gaps between valid nodes.

use core::num::NonZeroU16;

use super::TncIndex;
use super::arena::NO_SLOT;
use super::bounds::{change_nodes, commit_pages, dirty_max, height_max, path_nodes, step_nodes};
use super::form::Form;
use crate::blocks::WearPolicy;
use crate::error::{Fault, OpenError};
use crate::flash::Flash;
use crate::gc::{self, PageOwner};
use crate::gc::{Extent, MOVED_ALONG_MAX};
use crate::log::checkpoint::voiding_cost;

/// Pages of a change beside those of a commit.
///
/// They are one of the journal, and the first of a session.
const CHANGE_PAGES: u32 = 2;

/// Blocks of the journal beside those that its pages fill.
///
/// If there are more, a commit is due.
const JOURNAL_BLOCKS: u32 = 2;

/// Rounds in which the numbers of commits and of written nodes bound each other.
const ROUNDS: u32 = 4;

/// Idle steps without a change between them, after which the index is at rest.
const RESTS: u8 = 8;

/// How many nodes there may be, and how many pages have to be free.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// The most nodes; where values stay in the journal, the most nodes and values.
    pub nodes: u32,
    /// Pages that are free before a change begins, the reserve included.
    pub room_pages: u32,
    /// Of these, what only collection after a cut, or after a block failed, may use.
    pub reserve_pages: u32,
}

/// The limits of the tree, and how commits make room for it.
#[derive(Default)]
pub struct Room {
    limits: Limits,
    /// What the limits follow from: height, inner nodes and reliable blocks.
    follows_from: (u8, u32, u32),
    /// Dirty nodes are written in steps now, and collection waits for that.
    drains: bool,
    /// Idle steps since the last change.
    rests: u8,
}

impl Room {
    /// The limits of the tree as it was when they were computed last.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether dirty nodes are written in steps now, and collection waits for that.
    pub const fn is_draining(&self) -> bool {
        self.drains
    }

    /// No node is dirty: collection waits no longer.
    pub const fn end_draining(&mut self) {
        self.drains = false;
    }
}

/// What the limits follow from, besides the tree itself.
#[derive(Clone, Copy)]
pub struct Means {
    pub form: Form,
    pub extent: Extent,
    /// Nodes that RAM has room for.
    pub slots: usize,
    /// Pages of a commit that the options let a change write.
    pub commit_step: Option<NonZeroU16>,
    /// Pages of the journal that a commit may write first.
    pub group_pages: u16,
}

/// What determines the chip operations of programs.
pub struct Writing {
    pub verify: bool,
    pub wear: WearPolicy,
    /// A checkpoint may have to be made void before a block is opened.
    pub checkpoints: bool,
}

impl Writing {
    /// Chip operations to program this many pages.
    fn cost(&self, programs: u32, block_pages: u32) -> u32 {
        let erases = programs / block_pages + 2;
        let voiding = if self.checkpoints { voiding_cost(self.verify) } else { 0 };
        programs * (1 + u32::from(self.verify))
            + erases * (1 + self.wear.reads_by_erase())
            + voiding
    }
}

impl Means {
    /// The most dirty nodes in a tree of `height`.
    pub fn dirty_max(&self, height: u8) -> usize {
        dirty_max(&self.form, self.slots, height, self.extent.block_pages)
    }

    /// Nodes that a step writes; `None` if commits are not divided into steps.
    #[inline(never)]
    pub fn step_nodes(&self, height: u8) -> Option<usize> {
        step_nodes(&self.form, self.dirty_max(height), height, self.commit_step)
    }

    /// Pages of a step; 0 if commits are not divided into steps.
    pub fn step_pages(&self, height: u8) -> u32 {
        self.step_nodes(height).map_or(0, |nodes| (nodes / self.form.per_page()) as u32)
    }

    /// Blocks written from one commit to the next, beside those that the journal fills.
    ///
    /// If there are more, a commit is due. Steps write nodes between the pages of the journal, and
    /// a few of them twice.
    pub fn blocks_beside(&self, height: u8) -> u32 {
        if self.step_nodes(height).is_none() {
            return JOURNAL_BLOCKS;
        }
        let pages = commit_pages(&self.form, self.dirty_max(height));
        JOURNAL_BLOCKS + (pages + pages / 4).div_ceil(self.extent.block_pages)
    }

    /// Blocks that the steps before this many changes at once open at most.
    pub fn blocks_of_step(&self, height: u8, changes: u32) -> u32 {
        let most = commit_pages(&self.form, self.dirty_max(height));
        let pages = self.step_pages(height).saturating_mul(changes).min(most);
        pages.div_ceil(self.extent.block_pages)
    }

    /// The most nodes written to empty a block with `nodes` of them, and the commits.
    ///
    /// Each commit but the last is as large as RAM allows. It writes again the inner nodes above
    /// the nodes that move, at least the root. Children of one inner node that lie in the block
    /// move with one path. They take several paths only if there are more of them than a path can
    /// take along, or if a commit ends between them.
    fn written(&self, nodes: u32, height: u8, inner_nodes: u32, together: bool) -> (u32, u32) {
        let dirty_max = self.dirty_max(height) as u32;
        let height = u32::from(height);
        let dirty = dirty_max.saturating_sub(height);
        let each = dirty.saturating_sub(inner_nodes).max(dirty / height).max(1);
        let largest = dirty_max.saturating_sub(self.form.per_page() as u32 * height);
        let (mut above, mut commits) = (nodes * (height - 1), nodes.div_ceil(each));
        if together {
            for _ in 0..ROUNDS {
                let paths = inner_nodes + nodes / MOVED_ALONG_MAX + commits;
                above = above.min(commits * inner_nodes).min(paths * (height - 1));
                commits = commits.min((nodes + above).checked_div(largest).unwrap_or(nodes) + 1);
            }
        }
        (nodes + above, commits)
    }

    /// The most pages written to empty a block with `nodes` nodes.
    ///
    /// Where a page holds several, the last page of each commit may not be full; and each page that
    /// moves by itself takes a commit.
    pub fn pages_to_empty(&self, nodes: u32, height: u8, inner_nodes: u32, together: bool) -> u32 {
        self.page_by_page(nodes, height, inner_nodes, together).0
    }

    /// The most pages, as above, and the number of commits.
    fn page_by_page(&self, nodes: u32, height: u8, inner_nodes: u32, together: bool) -> (u32, u32) {
        let (written, commits) = self.written(nodes, height, inner_nodes, together);
        let per_page = self.form.per_page() as u32;
        let alone = nodes.min(self.extent.block_pages);
        let commits = if together { commits } else { alone };
        let partial = if per_page > 1 { commits } else { 0 };
        let of_values = if together { self.value_pages(nodes) } else { alone };
        let of_values = if self.form.apart() { of_values } else { 0 };
        (written.div_ceil(per_page) + partial + of_values, commits)
    }

    /// The most pages that these values of one block take when they move.
    fn value_pages(&self, values: u32) -> u32 {
        if self.form.apart() { values.div_ceil(self.form.entries().max(1) as u32) } else { 0 }
    }

    /// Pages written to move one page: a path, and perhaps a page of values.
    pub fn move_pages(&self, height: u8) -> u32 {
        u32::from(height) + u32::from(self.form.apart())
    }

    /// Full nodes, or nodes and values, that the pages of a block hold for each page.
    ///
    /// A value that moves takes its part of a page and that of the node above it.
    pub fn weight(&self) -> u32 {
        let (nodes, values) = (self.form.per_page(), self.form.entries().max(1));
        let weight = if self.form.apart() { nodes * values / (nodes + values) } else { nodes };
        weight.max(1) as u32
    }

    /// Whether one commit empties a victim, with nodes written ahead of it.
    ///
    /// If so, each page that is written ahead is full. Otherwise, every few pages of a victim take
    /// a commit.
    pub fn writes_ahead(&self, height: u8) -> bool {
        let path = 2 * usize::from(height) + 2;
        self.form.per_page() > 1 && self.dirty_max(height) >= self.form.per_page() + path
    }

    /// The most nodes from the level `from` on, which is 3 or more.
    ///
    /// Two neighbours below one parent always have more children than one node can hold.
    fn upper_nodes(&self, from: u32, height: u8, inner_nodes: u32) -> u32 {
        let pair = self.form.capacity(2) as u32 + 1;
        let (mut most, mut below) = (1, inner_nodes);
        for level in 3..u32::from(height) {
            below = 2 * below / pair + 1;
            // One node below each parent may be left over, so each level adds to all levels below
            // it.
            most += if level < from { 0 } else { below * (level + 1 - from) + 1 };
        }
        most
    }

    /// The most pages written to empty a block with `nodes` nodes by one commit.
    ///
    /// Each node is written, and so are those above it. Upper levels that fit in RAM are written
    /// once; an inner node of another level is written as often as a node below it moves. The root
    /// is written once. Lower nodes are always written first, so every level from which on all
    /// nodes fit in RAM gives a bound, and the least of them holds.
    fn pages_at_once(&self, nodes: u32, height: u8, inner_nodes: u32) -> u32 {
        let per_page = self.form.per_page() as u32;
        let room =
            (self.dirty_max(height) as u32).saturating_sub(2 * (u32::from(height) + per_page));
        let above = match height {
            1 => 0,
            2 => 1,
            _ => (2..=u32::from(height))
                .filter_map(|from| {
                    let upper = self.upper_nodes(from.max(3), height, inner_nodes);
                    let (fits, below) = match from {
                        2 => (inner_nodes <= room, nodes.min(inner_nodes)),
                        _ => (upper <= room.max(1), nodes * (from - 2)),
                    };
                    fits.then_some(below + upper)
                })
                .min()
                .unwrap_or(0),
        };
        (nodes + above).div_ceil(per_page) + 1 + self.value_pages(nodes)
    }

    /// The most pages written to empty a block with `nodes` nodes, and its commits.
    pub fn pages_of_victim(&self, nodes: u32, height: u8, inner_nodes: u32) -> (u32, u32) {
        if self.writes_ahead(height) {
            (self.pages_at_once(nodes, height, inner_nodes), 1)
        } else {
            self.page_by_page(nodes, height, inner_nodes, true)
        }
    }

    /// The limits for a tree of `height` with `inner_nodes`.
    ///
    /// `gc/budget.rs` has the proof. Of all numbers of nodes that a victim may have, this takes
    /// the one that allows the most nodes. Here a move is one commit, or a whole victim is one
    /// commit. In the second case a cut leaves nothing moved; only the pages of the mount's commit
    /// are valid then, and the next commit supersedes them. Some block has no more nodes than the
    /// mean, however the nodes are spread over its pages.
    pub fn limits(&self, height: u8, inner_nodes: u32) -> Limits {
        let block = self.extent.block_pages;
        let commit = commit_pages(&self.form, self.dirty_max(height));
        let commit = commit + u32::from(self.group_pages);
        let (operation, settled) = (commit + CHANGE_PAGES, (commit + 1).div_ceil(block));
        let reserve_pages = (1 + settled) * block;
        let mut best = Limits { nodes: 0, room_pages: operation + reserve_pages, reserve_pages };
        for valid in 1..block {
            let nodes = valid * self.weight();
            let (pages, commits) = self.pages_of_victim(nodes, height, inner_nodes);
            if pages + self.extent.gain() > block {
                break;
            }
            // A session that is cut uses up the rest of a block, and its mount commits.
            let reserve_pages = (gc::reserve_blocks(commits.max(valid)) + settled) * block;
            let room_pages = operation + reserve_pages;
            let closed = self.closed_blocks(room_pages, height);
            let most = (u64::from(closed) * u64::from(nodes + 1)).saturating_sub(1);
            let most = most.min(u32::MAX.into()) as u32;
            if most > best.nodes {
                best = Limits { nodes: most, room_pages, reserve_pages };
            }
        }
        best
    }

    /// The most nodes and values of a victim, in a tree within its limits.
    pub fn nodes_in_victim(&self, limits: &Limits, height: u8) -> u32 {
        limits.nodes / self.closed_blocks(limits.room_pages, height).max(1)
    }

    /// The fewest full blocks while this many pages are free.
    fn closed_blocks(&self, room_pages: u32, height: u8) -> u32 {
        let longest = room_pages + u32::from(height) - 1;
        self.extent.blocks.saturating_sub(longest / self.extent.block_pages + 1)
    }

    /// Chip operations of one move with `beside` other nodes moving along.
    ///
    /// The dirty nodes are committed first. Then the nodes of a page, their paths and the other
    /// nodes are written.
    pub fn move_cost(&self, height: u8, beside: u32, writing: &Writing) -> u32 {
        let nodes = u32::from(height) * self.form.numbers() as u32 + beside;
        let commit = commit_pages(&self.form, self.dirty_max(height));
        let programs = commit + u32::from(self.group_pages) + nodes + 2;
        2 + 3 * nodes + writing.cost(programs, self.extent.block_pages)
    }

    /// Refuses a chip that has no room for two leaves and a root.
    ///
    /// Where values stay in the journal, they count with those that make a leaf split.
    pub fn check_least<E>(&self) -> Result<(), OpenError<E>> {
        let values = if self.form.apart() { self.form.capacity(1) as u32 + 1 } else { 0 };
        let limits = self.limits(2, 1);
        if limits.nodes < 3 + values {
            return Err(OpenError::ChipTooSmall { limit_pages: self.limit_pages(&limits) });
        }
        Ok(())
    }

    /// The limit in pages, if each page is full.
    pub fn limit_pages(&self, limits: &Limits) -> u32 {
        limits.nodes / self.weight()
    }
}

impl<F: Flash> TncIndex<'_, F> {
    pub(super) fn means(&self) -> Means {
        let (form, extent, slots) = (self.arena.form, self.space.extent(), self.arena.slots());
        let (commit_step, group_pages) = (self.commit_step, self.group_pages);
        Means { form, extent, slots, commit_step, group_pages }
    }

    /// The most dirty nodes.
    pub(super) fn dirty_max(&self) -> usize {
        self.means().dirty_max(self.tree.height())
    }

    /// Pages of a commit of the nodes that are dirty now, and of what it writes first.
    pub(super) fn commit_pages(&self) -> u32 {
        let waiting = match self.arena.form.apart() {
            true => self.group.len().div_ceil(self.arena.form.entries().max(1)) as u32,
            false => 0,
        };
        commit_pages(&self.arena.form, self.arena.dirty().max(1)) + waiting
    }

    /// The nodes, and where values stay in the journal the values, too.
    pub(super) const fn units(&self) -> u32 {
        let values = if self.arena.form.apart() { self.tree.records() } else { 0 };
        self.tree.leaves().saturating_add(self.tree.inner_nodes()).saturating_add(values)
    }

    /// Refuses this many new records if there is no room for their values.
    pub(super) fn allow_records(&self, records: u32) -> Result<(), Fault<F::Error>> {
        if !self.arena.form.apart() || self.units() + records <= self.room.limits().nodes {
            return Ok(());
        }
        Err(self.space.log.no_room(self.limit_pages()))
    }

    /// Computes the limits of the tree as it is.
    pub(super) fn set_limits(&mut self) {
        let follows_from =
            (self.tree.height(), self.tree.inner_nodes(), self.space.extent().blocks);
        if self.room.follows_from != follows_from {
            self.room.limits = self.means().limits(self.tree.height(), self.tree.inner_nodes());
            self.room.follows_from = follows_from;
        }
    }

    /// Prepares a change: makes room on flash, and for dirty nodes in RAM.
    ///
    /// Cost: a commit if the journal or RAM is full, or a step of a commit; and that of garbage
    /// collection. In the clean-up of the paper RAM is full if no slot is free for the change.
    pub(super) fn make_room(&mut self) -> Result<(), Fault<F::Error>> {
        self.make_room_for(1, 0)
    }

    /// Prepares several changes, between which no commit may come.
    ///
    /// They may make the tree higher by `growth`. Refuses them if RAM has no room for their nodes.
    pub(super) fn make_room_for(
        &mut self,
        changes: usize,
        growth: u8,
    ) -> Result<(), Fault<F::Error>> {
        self.room.rests = 0;
        self.ready()?;
        self.settle()?;
        let height = self.tree.height() + growth;
        let (nodes, most) = (changes * change_nodes(height), self.means().dirty_max(height));
        if nodes > most && changes > 1 {
            return Err(Fault::TooHigh { height: self.tree.height() });
        }
        let is_full = self.arena.changed() + nodes > most || self.journal_is_full();
        let is_short = self.space.room() < self.kept_for(changes) && self.has_journal();
        let shrinks = self.shrinks_before(nodes);
        if is_full || is_short || (shrinks && self.has_journal()) {
            self.commit()?;
        } else {
            self.take_step(changes)?;
        }
        if shrinks {
            self.shrink(nodes);
        }
        self.set_limits();
        let collects = !self.room.drains || self.is_drained();
        gc::make_room(self, collects)?;
        // The pages that were to be moved have been moved, or have become garbage meanwhile.
        self.room.drains &= !collects;
        Ok(())
    }

    /// Writes a step of the next commit, if one is due before this many changes.
    ///
    /// It is not inlined, so that it does not add to the stack of what follows.
    #[inline(never)]
    fn take_step(&mut self, changes: usize) -> Result<(), Fault<F::Error>> {
        let Some(step) = self.means().step_nodes(self.tree.height()) else { return Ok(()) };
        if self.step_is_due(changes, step) {
            let pages = changes as u32 * self.means().step_pages(self.tree.height());
            self.write_steps(pages, step, changes)?;
        }
        self.room.drains |= self.arena.dirty() > step && self.collection_is_due()?;
        Ok(())
    }

    /// Whether a commit would write no more than a step.
    #[inline(never)]
    fn is_drained(&self) -> bool {
        self.means().step_nodes(self.tree.height()).is_none_or(|step| self.arena.dirty() <= step)
    }

    /// Pages that must be free before this many changes.
    ///
    /// The next commit need not write again what steps have written, unless the changes make it
    /// dirty.
    #[inline(never)]
    pub(super) fn kept_for(&self, changes: usize) -> u32 {
        let again = (changes * usize::from(self.tree.height())).min(self.arena.written());
        self.kept() + again.div_ceil(self.arena.form.per_page()) as u32
    }

    /// Whether a change writes a step of the next commit. A step has `step` nodes.
    ///
    /// It does so once the steps need all the changes that are expected before RAM or the journal
    /// is full, or before room is short. A node that is written early may be changed again before
    /// the commit, so steps begin no sooner than they must.
    fn step_is_due(&self, changes: usize, step: usize) -> bool {
        let (dirty, path) = (self.arena.dirty(), path_nodes(self.tree.height()));
        if dirty <= step {
            return false;
        }
        // Each change makes nodes dirty, even while steps write others.
        let needed = (dirty - step).div_ceil(step - path);
        let changed = self.arena.changed();
        let used = changed + changes * change_nodes(self.tree.height());
        let left = self.dirty_max().saturating_sub(used);
        // Each change takes as many nodes as the previous ones did on average, and at least one.
        let before = usize::from(self.journal.changes()).clamp(1, changed);
        let in_ram = left * before / changed;
        let in_journal = self.journal.pages_max().saturating_sub(self.journal.pages()) as usize;
        // A page of the journal, and those of the nodes that become dirty.
        let pages = 1 + path.div_ceil(self.arena.form.per_page());
        let on_flash = self.space.room().saturating_sub(self.kept_for(changes)) as usize / pages;
        self.room.drains || in_ram.min(in_journal).min(on_flash) <= needed + changes
    }

    /// Whether pages are to be moved, before which all dirty nodes are written.
    fn collection_is_due(&mut self) -> Result<bool, Fault<F::Error>> {
        if self.space.log.has_weak() || self.space.log.blocks.failing().is_some() {
            return Ok(true);
        }
        Ok(self.wear_due() && self.space.log.rested()?.is_some())
    }

    /// Commits in an idle step if a commit is due, or writes a part of it.
    ///
    /// Takes no more than `budget`. Returns whether a part is left.
    #[inline(never)]
    pub(super) fn commit_within(&mut self, budget: u32) -> Result<bool, Fault<F::Error>> {
        let is_due = self.commit_is_due();
        if !self.state.is_settled() {
            return Ok(false);
        }
        if is_due && budget >= self.commit_cost() {
            self.commit()?;
            return Ok(false);
        }
        let Some(step) = self.means().step_nodes(self.tree.height()) else { return Ok(false) };
        let before = self.space.log.operations();
        while is_due || self.step_is_due(1, step) {
            let used = self.space.log.operations().wrapping_sub(before);
            let dirty = self.arena.dirty();
            if budget < used + self.page_cost() {
                return Ok(dirty > step);
            }
            self.write_steps(1, step, 1)?;
            if self.arena.dirty() == dirty {
                break;
            }
        }
        Ok(false)
    }

    /// Whether the journal has no room for another change.
    ///
    /// Sessions with few changes leave the journal in many blocks, and a mount looks for each of
    /// these.
    fn journal_is_full(&self) -> bool {
        let blocks = self.journal.pages_max() / self.space.log.block_pages();
        let has_slot = self.journal.next_slot(self.space.log.sequence()).is_some();
        self.journal.pages() >= self.journal.pages_max() && !has_slot
            || self.journal.blocks() > blocks + self.means().blocks_beside(self.tree.height())
    }

    /// Whether an idle step commits, and counts the step.
    ///
    /// It does so if the next change would commit, or lacks room. It also does so after several
    /// steps without a change between them: the patrol reads the pages of nodes but not those of
    /// the journal, so changes must not stay in the journal while the index is at rest.
    pub(super) fn commit_is_due(&mut self) -> bool {
        self.room.rests = self.room.rests.saturating_add(1);
        let change = change_nodes(self.tree.height());
        let is_short = self.space.room() < gc::floor(self) + self.space.log.block_pages();
        let is_full = self.arena.changed() + 2 * change > self.dirty_max()
            || self.journal.pages() + 1 >= self.journal.pages_max()
            || self.journal_is_full();
        self.has_journal() && (is_short || is_full || self.room.rests > RESTS)
    }

    /// The most chip operations of a commit now.
    pub(super) fn commit_cost(&self) -> u32 {
        self.writing().cost(self.commit_pages() + 1, self.space.log.block_pages())
    }

    /// The most chip operations of a page of nodes that is written ahead.
    fn page_cost(&self) -> u32 {
        self.writing().cost(2, self.space.log.block_pages())
    }

    /// How pages are written.
    pub(super) fn writing(&self) -> Writing {
        let log = &self.space.log;
        let (verify, wear, checkpoints) =
            (log.verifies(), log.blocks.wear(), log.medium.checkpoints);
        Writing { verify, wear, checkpoints }
    }

    /// Whether a commit would free pages of the journal, or has nodes to write.
    pub(super) fn has_journal(&self) -> bool {
        self.journal.pages() > 0 || self.arena.dirty() > 0
    }

    /// Refuses a new record of `leaf` if there is no room for the nodes that it splits.
    pub(super) fn allow_split(&self, leaf: u16) -> Result<(), Fault<F::Error>> {
        let (mut slot, mut splits) = (leaf, 0u8);
        while slot != NO_SLOT
            && self.arena.node(slot).count() >= self.arena.form.capacity(self.arena.level(slot))
        {
            splits += 1;
            slot = self.arena.parent(slot);
        }
        if splits == 0 {
            return self.allow_records(1);
        }
        let grows = slot == NO_SLOT;
        let height = self.tree.height() + u8::from(grows);
        if height > height_max(self.arena.slots()) {
            return Err(Fault::TooHigh { height: self.tree.height() });
        }
        let inner_nodes = self.tree.inner_nodes() + u32::from(splits) - 1 + u32::from(grows);
        let limits = self.means().limits(height, inner_nodes);
        let means = self.means();
        let extent = Extent { blocks: u32::MAX, ..means.extent };
        let more_blocks = Means { extent, ..means };
        if limits.nodes == 0 && more_blocks.limits(height, inner_nodes).nodes == 0 {
            // With so few nodes in RAM, or in a block, no block of such a tree can be emptied.
            return Err(Fault::TooHigh { height: self.tree.height() });
        }
        let more = 1 + inner_nodes - self.tree.inner_nodes() + u32::from(means.form.apart());
        if self.units() + more > limits.nodes {
            return Err(self.space.log.no_room(self.means().limit_pages(&limits)));
        }
        Ok(())
    }
}
