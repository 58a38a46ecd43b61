//! Counts what the TNC writes and reads for a row of changes. No flash is touched, and no bytes.
//!
//! A change costs its record in the journal, which is counted nowhere here, as in the paper, and
//! changes nodes in RAM. A commit writes the dirty nodes: when the buffer is full, when the
//! journal's bound is reached, at a sync, and at the unmount.

use super::tree::Tree;
use crate::workload::ubifs::{Change, range};

/// Bytes of a page: as many nodes of a commit share one as fit.
pub const PAGE_BYTES: u64 = 2048;

/// How room is made in a full buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CleanUp {
    /// As in the paper: a commit, then this many per cent of the nodes leave.
    Shrink(u64),
    /// The least recently used node leaves; a commit only if none may.
    Oldest,
}

/// A buffer in RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// The most nodes.
    pub nodes: u64,
    /// What happens when there are more.
    pub clean_up: CleanUp,
}

/// How a TNC is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Most children of a node, at least 3.
    pub fanout: u64,
    /// The buffer; without one all nodes may be in RAM.
    pub buffer: Option<Buffer>,
    /// Bytes of records after which the journal demands a commit; never without.
    pub journal_bytes: Option<u64>,
}

impl Settings {
    /// No bound on anything.
    pub const fn unbounded(fanout: u64) -> Self {
        Self { fanout, buffer: None, journal_bytes: None }
    }

    /// Bytes of a node as the paper has them: 48, and 32 for each child.
    pub const fn node_bytes(&self) -> u64 {
        48 + 32 * self.fanout
    }

    /// Pages for nodes that are written together, one after another.
    const fn pages(&self, nodes: u64) -> u64 {
        match PAGE_BYTES / self.node_bytes() {
            0 => nodes * self.node_bytes().div_ceil(PAGE_BYTES),
            to_a_page => nodes.div_ceil(to_a_page),
        }
    }
}

/// Why a commit was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The buffer was full.
    Buffer,
    /// The journal's bound was reached.
    Journal,
    /// A sync.
    Sync,
    /// The unmount at the end.
    Unmount,
}

/// A commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Commit {
    /// Changes before it.
    pub after: u64,
    /// Nodes that it wrote.
    pub nodes: u64,
    /// Why.
    pub reason: Reason,
}

/// What was counted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Changes of the tree; a range that is removed is one.
    pub changes: u64,
    /// Nodes that a wandering tree writes.
    ///
    /// It is the path of each change. A range counts a path for each lowest node that is clean when
    /// it is found, as UBIFS makes that node dirty once.
    pub without: u64,
    /// Pages of these, if the nodes of a path are packed.
    pub pages_without: u64,
    /// Nodes that commits wrote.
    pub written: u64,
    /// Pages of these.
    pub pages: u64,
    /// Nodes that were read.
    pub loaded: u64,
    /// The most nodes in RAM.
    pub most: u64,
    /// The most dirty nodes.
    pub most_dirty: u64,
    /// How often nodes left because the buffer was full.
    pub shrinks: u64,
    /// The commits in order.
    pub commits: Vec<Commit>,
}

impl Counts {
    /// Nodes that were written, of a hundred that a wandering tree writes.
    pub fn per_cent(&self) -> f64 {
        100.0 * self.written as f64 / self.without as f64
    }
}

/// A TNC at work.
pub struct Tnc {
    settings: Settings,
    tree: Tree,
    /// Bytes of records since the last commit.
    journal: u64,
    counts: Counts,
}

impl Tnc {
    /// An empty one.
    pub fn new(settings: Settings) -> Self {
        let tree = Tree::new(settings.fanout as usize);
        Self { settings, tree, journal: 0, counts: Counts::default() }
    }

    /// Nodes of the tree, in RAM or not.
    pub fn nodes(&self) -> u64 {
        self.tree.nodes()
    }

    /// Counts a path of a wandering tree.
    fn wander(&mut self, height: u64) {
        self.counts.without += height;
        self.counts.pages_without += self.settings.pages(height);
    }

    /// Makes a change, and the commits that it demands.
    pub fn change(&mut self, change: Change) {
        self.counts.changes += 1;
        let height = self.tree.height();
        match change {
            Change::Put { key, bytes } => {
                self.wander(height);
                self.tree.put(key);
                self.journal += u64::from(bytes);
            }
            Change::Remove { key, bytes } => {
                if self.tree.remove(key) {
                    self.wander(height);
                }
                self.journal += u64::from(bytes);
            }
            Change::Forget { inode, .. } => self.forget(inode),
        }
        self.make_room();
        if self.settings.journal_bytes.is_some_and(|bound| self.journal >= bound) {
            self.commit(Reason::Journal);
        }
    }

    fn forget(&mut self, inode: u32) {
        let (first, last) = range(inode);
        loop {
            let height = self.tree.height();
            let Some(clean) = self.tree.remove_some(first, last) else {
                return;
            };
            if clean {
                self.wander(height);
            }
            self.make_room();
        }
    }

    fn make_room(&mut self) {
        let Some(Buffer { nodes, clean_up }) = self.settings.buffer else {
            return;
        };
        let in_ram = self.tree.cache().in_ram();
        if in_ram <= nodes {
            return;
        }
        let left = match clean_up {
            CleanUp::Shrink(per_cent) => {
                self.commit(Reason::Buffer);
                in_ram - in_ram * per_cent / 100
            }
            CleanUp::Oldest => nodes,
        };
        self.counts.shrinks += 1;
        while self.tree.cache().in_ram() > left && self.tree.cache_mut().evict() {}
        if self.tree.cache().in_ram() > nodes && self.tree.cache().dirty() > 0 {
            self.commit(Reason::Buffer);
            while self.tree.cache().in_ram() > left && self.tree.cache_mut().evict() {}
        }
    }

    /// Writes every dirty node.
    pub fn commit(&mut self, reason: Reason) {
        let nodes = self.tree.cache_mut().commit();
        self.counts.written += nodes;
        self.counts.pages += self.settings.pages(nodes);
        self.journal = 0;
        self.counts.commits.push(Commit { after: self.counts.changes, nodes, reason });
    }

    /// Unmounts; returns the counts.
    pub fn unmount(mut self) -> Counts {
        self.commit(Reason::Unmount);
        let cache = self.tree.cache();
        let (loaded, (most, most_dirty)) = (cache.loaded(), cache.most());
        Counts { loaded, most, most_dirty, ..self.counts }
    }
}

/// Runs all of a row of changes.
pub fn run<'c>(settings: Settings, changes: impl IntoIterator<Item = &'c Change>) -> Counts {
    let mut tnc = Tnc::new(settings);
    changes.into_iter().for_each(|change| tnc.change(*change));
    tnc.unmount()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::workload::manifest;
    use crate::workload::ubifs::{Kind, Volume, key};

    fn changes(files: u32) -> (Vec<Change>, Vec<Change>) {
        let mut volume = Volume::new();
        for entry in manifest::by_rule(files, 5) {
            volume.unpack(&entry).unwrap();
        }
        let made = volume.take_changes();
        volume.remove_all();
        (made, volume.take_changes())
    }

    fn settings(fanout: u64, nodes: Option<u64>, clean_up: CleanUp) -> Settings {
        let buffer = nodes.map(|nodes| Buffer { nodes, clean_up });
        Settings { fanout, buffer, journal_bytes: Some(300_000) }
    }

    #[test]
    fn the_tree_holds_the_keys_that_a_set_holds() {
        let (made, removed) = changes(150);
        for (fanout, nodes) in [(3, Some(20)), (4, Some(12)), (8, Some(40)), (32, None)] {
            for clean_up in [CleanUp::Shrink(50), CleanUp::Oldest] {
                let mut tnc = Tnc::new(settings(fanout, nodes, clean_up));
                let mut keys = BTreeSet::new();
                for (step, change) in made.iter().chain(&removed).enumerate() {
                    match *change {
                        Change::Put { key, .. } => drop(keys.insert(key)),
                        Change::Remove { key, .. } => assert!(keys.remove(&key)),
                        Change::Forget { inode, blocks } => {
                            assert!(keys.remove(&key(inode, Kind::Inode, 0)));
                            let block = |block| key(inode, Kind::Block, block);
                            assert!((0..blocks).all(|at| keys.remove(&block(at))));
                        }
                    }
                    tnc.change(*change);
                    if step % 7 == 0 {
                        assert!(tnc.tree.check().iter().eq(&keys), "step {step}");
                    }
                    assert!(tnc.tree.height() <= 16);
                    let most = nodes.map_or(u64::MAX, |nodes| nodes.max(tnc.tree.height() + 2));
                    assert!(tnc.tree.cache().in_ram() <= most, "step {step}");
                }
                assert_eq!(tnc.tree.check(), [key(1, Kind::Inode, 0)]);
                assert_eq!((tnc.nodes(), tnc.tree.height()), (1, 1));
            }
        }
    }

    #[test]
    fn a_commit_writes_the_nodes_that_were_dirty_when_it_began_and_leaves_none() {
        let (made, removed) = changes(100);
        let mut tnc = Tnc::new(settings(8, Some(60), CleanUp::Shrink(25)));
        let mut sum = 0;
        for (step, change) in made.iter().chain(&removed).enumerate() {
            tnc.change(*change);
            if step % 50 == 0 {
                let dirty = tnc.tree.cache().dirty();
                tnc.commit(Reason::Sync);
                assert_eq!(tnc.counts.commits.last().map(|commit| commit.nodes), Some(dirty));
                assert_eq!(tnc.tree.cache().dirty(), 0);
                tnc.tree.check();
            }
        }
        sum += tnc.counts.commits.iter().map(|commit| commit.nodes).sum::<u64>();
        assert!(sum > 0 && sum == tnc.counts.written);
        // A change of one record: its path is dirty, and nothing else.
        tnc.commit(Reason::Sync);
        let mut tnc = Tnc::new(Settings::unbounded(8));
        made.iter().for_each(|change| tnc.change(*change));
        tnc.commit(Reason::Sync);
        tnc.change(Change::Put { key: key(70, Kind::Inode, 0), bytes: 160 });
        tnc.commit(Reason::Sync);
        assert_eq!(tnc.counts.commits[1].nodes, tnc.tree.height());
    }

    #[test]
    fn a_range_counts_a_path_for_each_lowest_node_that_is_clean() {
        let mut tnc = Tnc::new(Settings::unbounded(4));
        let block = |block| key(9, Kind::Block, block);
        for at in 0..40 {
            tnc.change(Change::Put { key: block(at), bytes: 8 });
        }
        tnc.change(Change::Put { key: key(10, Kind::Inode, 0), bytes: 8 });
        // Appended keys leave full nodes: 10 of blocks, and one with the inode.
        assert_eq!((tnc.nodes(), tnc.tree.height()), (11 + 3 + 1, 3));
        tnc.commit(Reason::Sync);
        let before = tnc.counts.without;
        tnc.change(Change::Put { key: block(5), bytes: 8 });
        assert_eq!(tnc.counts.without - before, 3);
        let before = tnc.counts.without;
        tnc.change(Change::Forget { inode: 9, blocks: 40 });
        // The node of block 5 is dirty; when four lowest nodes are left, the height is 2.
        let paths = tnc.counts.without - before;
        assert!((2 * 9..=3 * 9).contains(&paths), "{paths}");
        assert_eq!(tnc.tree.check(), [key(10, Kind::Inode, 0)]);
    }

    #[test]
    fn nodes_that_are_removed_before_a_commit_are_never_written() {
        let (made, removed) = changes(200);
        let counts = run(Settings::unbounded(8), made.iter().chain(&removed));
        assert_eq!((counts.written, counts.loaded, counts.commits.len()), (1, 0, 1));
        assert!(counts.most > 150 && counts.most == counts.most_dirty);
    }
}
