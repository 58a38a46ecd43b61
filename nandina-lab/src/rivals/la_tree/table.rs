//! What LA-tree knows in RAM of its pages: where each node is, and which changes wait for it.
//!
//! From that follow what emptying a buffer costs, and how many pages the device must have. Nothing
//! here reads or writes a device.

use std::collections::{BTreeMap, BTreeSet};

use super::buffers::{Buffer, Kept, ROOT, Seen};
use crate::rivals::pages::{Found, Head};
use crate::rivals::tree::{Most, Node};

/// Levels from one with buffers to the next.
pub const LEVELS: u8 = 2;

/// What a program costs, in reads: 200 and 25 microseconds in the WPCB-tree paper.
const PROGRAM_READS: u64 = 8;

/// Pages that stay free beside all that changes can need.
pub const SPARE: u64 = 12;

/// The level to which a buffer on this level is emptied: the next one with buffers, or the leaves.
pub const fn below(level: u8) -> u8 {
    level.saturating_sub(2) / LEVELS * LEVELS + 1
}

/// Nodes and buffers of a tree.
pub struct Table {
    /// The page and the level of each node.
    homes: BTreeMap<u32, (u32, u8)>,
    /// Nodes of each level.
    levels: Vec<u64>,
    /// From which page on the buffer of a node counts.
    since: BTreeMap<u32, u64>,
    buffers: BTreeMap<u32, Buffer>,
}

impl Table {
    pub fn new() -> Self {
        let levels = vec![0; 1 + usize::from(u8::MAX)];
        Self { homes: BTreeMap::new(), levels, since: BTreeMap::new(), buffers: BTreeMap::new() }
    }

    /// The page of a node, and its level.
    pub fn home(&self, number: u32) -> Option<(u32, u8)> {
        self.homes.get(&number).copied()
    }

    pub fn nodes(&self) -> usize {
        self.homes.len()
    }

    /// Nodes of a level.
    fn nodes_of(&self, level: u8) -> u64 {
        self.levels[usize::from(level)]
    }

    /// The first sequence that counts of a node's buffer.
    pub fn since(&self, number: u32) -> u64 {
        self.since.get(&number).copied().unwrap_or(0)
    }

    pub fn has_buffer(&self, owner: u32) -> bool {
        self.buffers.contains_key(&owner)
    }

    /// The pages of a buffer, the oldest first.
    pub fn buffer(&self, owner: u32) -> Vec<u32> {
        self.buffers.get(&owner).map_or_else(Vec::new, Buffer::numbers)
    }

    /// The owners of buffers with their levels, that of the oldest changes first.
    pub fn owners(&self) -> Vec<(u8, u32)> {
        let level = |owner: u32| self.home(owner).map_or(u8::MAX, |(_, level)| level);
        let mut owners: Vec<_> = self.buffers.keys().map(|&owner| (level(owner), owner)).collect();
        owners.sort_unstable();
        owners
    }

    /// Notes where a node is now. Returns the page where it was.
    pub fn put(&mut self, node: &Node, page: u32) -> Option<u32> {
        let before = self.homes.insert(node.number, (page, node.level));
        self.levels[usize::from(node.level)] += u64::from(before.is_none());
        before.map(|(page, _)| page)
    }

    /// Forgets a node. Returns its page.
    pub fn remove(&mut self, number: u32) -> Option<u32> {
        self.since.remove(&number);
        let (page, level) = self.homes.remove(&number)?;
        self.levels[usize::from(level)] -= 1;
        Some(page)
    }

    pub fn append(&mut self, owner: u32, kept: Kept) {
        self.buffers.entry(owner).or_default().pages.push(kept);
    }

    /// Empties a buffer, of which pages from `since` on will count. Returns its pages.
    pub fn clear(&mut self, owner: u32, since: u64) -> Vec<u32> {
        if owner != ROOT {
            self.since.insert(owner, since);
        }
        self.buffers.remove(&owner).map_or_else(Vec::new, |buffer| buffer.numbers())
    }

    /// Takes what a lookup has read of a buffer.
    ///
    /// Returns whether lookups have paid for emptying it. `children` are those of its node.
    pub fn pay(&mut self, owner: u32, level: u8, children: u64, read: u64) -> bool {
        let emptying = self.emptying(owner, level, children);
        let Some(buffer) = self.buffers.get_mut(&owner) else { return false };
        buffer.paid += read;
        read > 0 && buffer.paid >= emptying
    }

    /// What emptying a buffer is taken to cost, in reads.
    ///
    /// Its pages are read, and for each of its changes a page is read and written, but at most one
    /// for each node that it can go to.
    fn emptying(&self, owner: u32, level: u8, children: u64) -> u64 {
        let Some(buffer) = self.buffers.get(&owner) else { return u64::MAX };
        let targets = self.nodes_of(below(level));
        // Below another node than the root: as many as nodes of its level have on average.
        let beside = if owner == ROOT { 1 } else { self.nodes_of(level - 1).max(1) };
        let targets = if owner == ROOT { targets } else { (targets * children).div_ceil(beside) };
        let written = targets.min(buffer.changes());
        buffer.pages.len() as u64 + written * (1 + PROGRAM_READS)
    }

    /// Changes that wait in buffers and may bring a record.
    pub fn upserts(&self) -> u64 {
        self.buffers.values().map(Buffer::upserts).sum()
    }

    /// Pages that the device must have for this many changes that may bring a record.
    ///
    /// A node can be full, so that one record divides it and all above it; more of them make a node
    /// of each half of one. A node has another page while it is written, and so has what waits.
    pub fn needed(&self, upserts: u64, in_ram: u64, most: Most, height: u8) -> u64 {
        let (leaves, nodes) = (self.nodes_of(1), self.homes.len() as u64);
        let new = upserts.min(leaves + 2 * upserts / most.leaf as u64);
        let above = new.min(nodes - leaves + 2 * new / most.inner as u64) + u64::from(height) + 2;
        let new = if new == 0 { 0 } else { new + above };
        let in_flash: u64 = self.buffers.values().map(|buffer| buffer.pages.len() as u64).sum();
        let owners = (2..=height).filter(|level| (level - 1) % LEVELS == 0);
        let owners: u64 = owners.map(|level| self.nodes_of(level)).sum();
        nodes + 2 * (new + in_flash + in_ram + owners + u64::from(height)) + SPARE
    }

    /// All nodes that a mount found, also those that the root does not lead to.
    ///
    /// Returns the pages of changes: of each owner and first sequence the newest.
    pub fn find(&mut self, found: Vec<Found<Seen>>) -> BTreeMap<(u32, u64), Kept> {
        let mut kept = BTreeMap::new();
        for found in found {
            match found.content {
                Seen::Node { number, level, since } => {
                    self.put(&Node::new(number, level), found.page);
                    self.since.insert(number, since);
                }
                Seen::Buffer { owner, kept: of_page } => {
                    kept.insert((owner, of_page.first), Kept { page: found.page, ..of_page });
                }
            }
        }
        kept
    }

    /// Keeps the nodes to which the root leads, and the changes that count.
    ///
    /// Returns all of their pages, or `None` if a node is missing.
    pub fn settle(
        &mut self,
        live: &BTreeSet<u32>,
        head: &Head,
        kept: BTreeMap<(u32, u64), Kept>,
    ) -> Option<Vec<u32>> {
        let stale: Vec<u32> =
            self.homes.keys().copied().filter(|number| !live.contains(number)).collect();
        for number in stale {
            self.remove(number);
        }
        let mut pages: Vec<u32> = self.homes.values().map(|home| home.0).collect();
        for ((owner, first), kept) in kept {
            let since = if owner == ROOT { head.since } else { self.since(owner) };
            if first >= since && (owner == ROOT || self.homes.contains_key(&owner)) {
                pages.push(kept.page);
                self.append(owner, kept);
            }
        }
        (self.homes.len() == live.len()).then_some(pages)
    }
}
