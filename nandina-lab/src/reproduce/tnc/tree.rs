//! A B+-tree of index nodes, as UBIFS changes it: the shape of the TNC and of a wandering tree.
//!
//! The lowest nodes point to records in the journal; these are no nodes. A full node is split in
//! halves, but one that a key is appended to stays full. No nodes are merged; an empty one goes,
//! and a root with one child as well.

use super::cache::{Cache, Id};
use crate::workload::ubifs::Key;

/// What an entry of a lowest node points to.
const RECORD: Id = Id::MAX;

#[derive(Default)]
struct Node {
    level: u8,
    /// The least key below, and the child.
    entries: Vec<(Key, Id)>,
}

/// A tree and what of it is in RAM.
pub struct Tree {
    nodes: Vec<Node>,
    free: Vec<Id>,
    root: Id,
    fanout: usize,
    height: u64,
    cache: Cache,
}

impl Tree {
    /// An empty tree: a root without an entry. The fanout is at least 3.
    pub fn new(fanout: usize) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            free: Vec::new(),
            root: 0,
            fanout,
            height: 1,
            cache: Cache::default(),
        };
        tree.make(Node::default());
        tree
    }

    /// Nodes from the root to a lowest one: what a wandering tree writes for a change.
    pub const fn height(&self) -> u64 {
        self.height
    }

    /// Nodes of the tree, in RAM or not.
    pub fn nodes(&self) -> u64 {
        (self.nodes.len() - self.free.len()) as u64
    }

    /// The nodes in RAM.
    pub const fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The nodes in RAM, to commit them or to let them leave.
    pub const fn cache_mut(&mut self) -> &mut Cache {
        &mut self.cache
    }

    fn make(&mut self, node: Node) -> Id {
        let id = self.free.pop().unwrap_or(self.nodes.len() as Id);
        if id as usize == self.nodes.len() {
            self.nodes.push(node);
        } else {
            self.nodes[id as usize] = node;
        }
        self.cache.born(id);
        id
    }

    fn drop(&mut self, id: Id) {
        self.nodes[id as usize] = Node::default();
        self.cache.gone(id);
        self.free.push(id);
    }

    fn entries(&self, id: Id) -> &[(Key, Id)] {
        &self.nodes[id as usize].entries
    }

    fn first_key(&self, id: Id) -> Key {
        self.entries(id)[0].0
    }

    /// The place of a child in its parent.
    fn place(&self, parent: Id, child: Id) -> usize {
        let entries = self.entries(parent).iter();
        entries.take_while(|(_, id)| *id != child).count()
    }

    /// The first place in a lowest node whose key is not below `key`.
    fn at(&self, id: Id, key: Key) -> usize {
        self.entries(id).partition_point(|(least, _)| *least < key)
    }

    fn has(&self, id: Id, at: usize, key: Key) -> bool {
        self.entries(id).get(at).is_some_and(|(found, _)| *found == key)
    }

    /// The lowest node in whose range `key` falls.
    fn find(&mut self, key: Key) -> Id {
        self.cache.begin();
        let mut id = self.root;
        self.cache.touch(id);
        while self.nodes[id as usize].level > 0 {
            let after = self.entries(id).partition_point(|(least, _)| *least <= key);
            id = self.entries(id)[after.saturating_sub(1)].1;
            self.cache.touch(id);
        }
        id
    }

    /// The lowest node behind this one.
    fn next(&mut self, mut id: Id) -> Option<Id> {
        loop {
            let parent = self.cache.parent(id)?;
            let place = self.place(parent, id);
            if let Some(&(_, next)) = self.entries(parent).get(place + 1) {
                id = next;
                break;
            }
            id = parent;
        }
        self.cache.touch(id);
        while self.nodes[id as usize].level > 0 {
            id = self.entries(id)[0].1;
            self.cache.touch(id);
        }
        Some(id)
    }

    /// Puts a key: it is new, or its record is elsewhere now.
    pub fn put(&mut self, key: Key) {
        let id = self.find(key);
        self.cache.soil(id);
        let at = self.at(id, key);
        if !self.has(id, at, key) {
            self.insert(id, at, (key, RECORD));
        }
    }

    /// Corrects the least key of a node in the nodes above it.
    fn correct(&mut self, mut id: Id) {
        while let Some(parent) = self.cache.parent(id) {
            let (place, key) = (self.place(parent, id), self.first_key(id));
            self.nodes[parent as usize].entries[place].0 = key;
            if place > 0 {
                return;
            }
            id = parent;
        }
    }

    fn insert(&mut self, mut id: Id, mut at: usize, mut entry: (Key, Id)) {
        while self.entries(id).len() == self.fanout {
            let new = self.split(id, at, entry);
            let Some(parent) = self.cache.parent(id) else {
                return self.grow(id, new);
            };
            if at == 0 {
                self.correct(id);
            }
            (at, entry) = (self.place(parent, id) + 1, (self.first_key(new), new));
            id = parent;
        }
        self.nodes[id as usize].entries.insert(at, entry);
        if entry.1 != RECORD {
            self.cache.adopt(entry.1, Some(id));
        }
        if at == 0 {
            self.correct(id);
        }
    }

    /// Moves the upper half of a full node to a new one; returns it. `entry` is in one of the two.
    fn split(&mut self, id: Id, at: usize, entry: (Key, Id)) -> Id {
        let level = self.nodes[id as usize].level;
        let keep = if at == self.fanout { self.fanout } else { self.fanout.div_ceil(2) };
        let entries = &mut self.nodes[id as usize].entries;
        entries.insert(at, entry);
        let upper = entries.split_off(keep);
        let new = self.make(Node { level, entries: upper });
        if level > 0 {
            if at < keep {
                self.cache.adopt(entry.1, Some(id));
            }
            for place in 0..self.entries(new).len() {
                self.cache.adopt(self.entries(new)[place].1, Some(new));
            }
        }
        new
    }

    fn grow(&mut self, low: Id, high: Id) {
        let level = self.nodes[low as usize].level + 1;
        let entries = vec![(self.first_key(low), low), (self.first_key(high), high)];
        self.root = self.make(Node { level, entries });
        self.cache.adopt(low, Some(self.root));
        self.cache.adopt(high, Some(self.root));
        self.height += 1;
    }

    /// Removes a key; returns whether it was there.
    pub fn remove(&mut self, key: Key) -> bool {
        let id = self.find(key);
        let at = self.at(id, key);
        let found = self.has(id, at, key);
        if found {
            self.cache.soil(id);
            self.delete(id, at);
        }
        found
    }

    /// Removes the keys from `first` to `last` that the first lowest node with any of them has.
    ///
    /// Returns whether that node was clean; nothing if there are no such keys.
    pub fn remove_some(&mut self, first: Key, last: Key) -> Option<bool> {
        let mut id = self.find(first);
        let mut at = self.at(id, first);
        if at == self.entries(id).len() {
            (id, at) = (self.next(id)?, 0);
        }
        let end = self.entries(id).partition_point(|(key, _)| *key <= last);
        if end <= at {
            return None;
        }
        let clean = !self.cache.is_dirty(id);
        self.cache.soil(id);
        self.nodes[id as usize].entries.drain(at + 1..end);
        self.delete(id, at);
        Some(clean)
    }

    /// Removes an entry, and the nodes that have none then.
    fn delete(&mut self, mut id: Id, mut at: usize) {
        loop {
            self.nodes[id as usize].entries.remove(at);
            if !self.entries(id).is_empty() {
                break;
            }
            let Some(parent) = self.cache.parent(id) else {
                // The last key is gone.
                self.nodes[id as usize].level = 0;
                self.height = 1;
                return;
            };
            at = self.place(parent, id);
            self.drop(id);
            id = parent;
        }
        while let (level @ 1.., &[(_, child)]) =
            (self.nodes[self.root as usize].level, self.entries(self.root))
        {
            self.cache.touch(child);
            self.cache.adopt(child, None);
            self.drop(self.root);
            self.root = child;
            self.cache.soil(child);
            self.height = u64::from(level);
        }
    }

    /// Checks the shape; returns all keys in order.
    #[cfg(test)]
    pub fn check(&self) -> Vec<Key> {
        self.cache.check();
        let mut keys = Vec::new();
        let mut seen = 0;
        let mut stack = vec![(self.root, self.height - 1, None)];
        while let Some((id, level, above)) = stack.pop() {
            seen += 1;
            let node = &self.nodes[id as usize];
            assert_eq!((u64::from(node.level), self.cache.parent(id)), (level, above));
            assert!(node.entries.len() <= self.fanout && node.entries.is_sorted());
            match level {
                0 => keys.extend(node.entries.iter().map(|(key, _)| *key)),
                _ => stack.extend(node.entries.iter().rev().map(|&(least, child)| {
                    assert!(least <= self.first_key(child));
                    (child, level - 1, Some(id))
                })),
            }
        }
        assert_eq!(seen, self.nodes());
        assert!(keys.is_sorted_by(|a, b| a < b));
        keys
    }
}
