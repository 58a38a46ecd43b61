//! A balanced search tree in the caller's memory, as the paper built (§5.3).
//!
//! A node is 24 bytes: the three numbers of a run, two children, and its height. Nodes are numbers
//! of places in the memory; there is no heap and no recursion. Heights of siblings differ by at
//! most 1, so that 2^31 nodes are at most 45 levels high.

use core::cell::Cell;

use super::ordered::Ordered;
use crate::mapping::memory::{WORD, set_word, word};
use crate::mapping::{Broken, Bytes, Refusal, Run, Work};

/// No node.
const NONE: u32 = u32::MAX;

/// Levels that a path has room for, more than a balanced tree of 2^32 nodes has.
const LEVELS: usize = 48;

/// The words of a node.
const START: usize = 0;
const LENGTH: usize = 1;
const PHYSICAL: usize = 2;
const LEFT: usize = 3;
const RIGHT: usize = 4;
const HEIGHT: usize = 5;
const WORDS: usize = 6;

/// An AVL tree of runs in memory of the caller, 24 bytes a run.
pub struct Arena<'m> {
    memory: &'m mut [u8],
    root: u32,
    /// The first free node that was used before; its left child is the next one.
    free: u32,
    /// Nodes that were ever used. They are the first ones in the memory.
    made: u32,
    entries: usize,
    nodes: Cell<u64>,
}

/// The nodes from the root down to one of them.
struct Path {
    nodes: [u32; LEVELS],
    depth: usize,
}

impl Path {
    fn new() -> Self {
        Path { nodes: [NONE; LEVELS], depth: 0 }
    }

    fn push(&mut self, node: u32) {
        if let Some(place) = self.nodes.get_mut(self.depth) {
            *place = node;
            self.depth += 1;
        }
    }

    fn pop(&mut self) -> Option<u32> {
        self.depth = self.depth.checked_sub(1)?;
        Some(self.nodes[self.depth])
    }
}

impl<'m> Arena<'m> {
    /// Bytes of a node.
    pub const NODE: usize = WORDS * WORD;

    /// An empty tree. It holds a run for each 24 bytes of `memory`.
    pub fn new(memory: &'m mut [u8]) -> Self {
        Arena { memory, root: NONE, free: NONE, made: 0, entries: 0, nodes: Cell::new(0) }
    }

    #[inline]
    fn field(&self, node: u32, field: usize) -> u32 {
        word(self.memory, node as usize * WORDS + field)
    }

    #[inline]
    fn set(&mut self, node: u32, field: usize, value: u32) {
        set_word(self.memory, node as usize * WORDS + field, value);
    }

    fn visit(&self) {
        self.nodes.set(self.nodes.get() + 1);
    }

    fn run(&self, node: u32) -> Run {
        Run {
            logical: self.field(node, START),
            length: self.field(node, LENGTH),
            physical: self.field(node, PHYSICAL),
        }
    }

    fn set_run(&mut self, node: u32, run: Run) {
        self.set(node, START, run.logical);
        self.set(node, LENGTH, run.length);
        self.set(node, PHYSICAL, run.physical);
    }

    /// The path to the node of `start`, or to the one below which it would be.
    fn path(&self, start: u32) -> Path {
        let mut path = Path::new();
        let mut node = self.root;
        while node != NONE {
            self.visit();
            path.push(node);
            node = match start.cmp(&self.field(node, START)) {
                core::cmp::Ordering::Less => self.field(node, LEFT),
                core::cmp::Ordering::Equal => break,
                core::cmp::Ordering::Greater => self.field(node, RIGHT),
            };
        }
        path
    }

    fn take_node(&mut self) -> u32 {
        if self.free == NONE {
            self.made += 1;
            self.made - 1
        } else {
            let node = self.free;
            self.free = self.field(node, LEFT);
            node
        }
    }

    fn height(&self, node: u32) -> u32 {
        if node == NONE { 0 } else { self.field(node, HEIGHT) }
    }

    /// Sets a node's height by its children's.
    fn measure(&mut self, node: u32) {
        let left = self.height(self.field(node, LEFT));
        let right = self.height(self.field(node, RIGHT));
        self.set(node, HEIGHT, 1 + left.max(right));
    }

    /// Turns the tree below `node` so that its child at `side` is the top.
    fn rotate(&mut self, node: u32, side: usize) -> u32 {
        let other = LEFT + RIGHT - side;
        let child = self.field(node, side);
        let middle = self.field(child, other);
        self.set(node, side, middle);
        self.set(child, other, node);
        self.measure(node);
        self.measure(child);
        child
    }

    /// Balances the tree below `node`, whose children are balanced; returns its top.
    fn balance(&mut self, node: u32) -> u32 {
        let heights = [LEFT, RIGHT].map(|side| self.height(self.field(node, side)));
        let side = if heights[0] > heights[1] + 1 {
            LEFT
        } else if heights[1] > heights[0] + 1 {
            RIGHT
        } else {
            self.measure(node);
            return node;
        };
        let other = LEFT + RIGHT - side;
        let child = self.field(node, side);
        if self.height(self.field(child, other)) > self.height(self.field(child, side)) {
            let top = self.rotate(child, other);
            self.set(node, side, top);
        }
        self.rotate(node, side)
    }

    /// Makes `new` the child of the path's last node in place of `old`, or the root.
    fn replace_child(&mut self, path: &Path, old: u32, new: u32) {
        match path.depth.checked_sub(1).map(|last| path.nodes[last]) {
            None => self.root = new,
            Some(parent) => {
                let side = if self.field(parent, LEFT) == old { LEFT } else { RIGHT };
                self.set(parent, side, new);
            }
        }
    }

    /// Balances every node of the path, the lowest one first, until no height changes.
    fn balance_up(&mut self, mut path: Path) {
        while let Some(node) = path.pop() {
            self.visit();
            let before = self.field(node, HEIGHT);
            let top = self.balance(node);
            if top != node {
                self.replace_child(&path, node, top);
            }
            if self.field(top, HEIGHT) == before {
                break;
            }
        }
    }
}

impl Ordered for Arena<'_> {
    fn predecessor(&self, start: u32) -> Option<Run> {
        let (mut node, mut best) = (self.root, NONE);
        while node != NONE {
            self.visit();
            let at = self.field(node, START);
            if at <= start {
                best = node;
            }
            if at == start {
                break;
            }
            node = self.field(node, if at < start { RIGHT } else { LEFT });
        }
        (best != NONE).then(|| self.run(best))
    }

    fn successor(&self, start: u32) -> Option<Run> {
        let (mut node, mut best) = (self.root, NONE);
        while node != NONE {
            self.visit();
            let behind = self.field(node, START) > start;
            if behind {
                best = node;
            }
            node = self.field(node, if behind { LEFT } else { RIGHT });
        }
        (best != NONE).then(|| self.run(best))
    }

    fn insert(&mut self, run: Run) {
        let path = self.path(run.logical);
        let last = path.depth.checked_sub(1).map(|last| path.nodes[last]);
        if let Some(last) = last
            && self.field(last, START) == run.logical
        {
            self.set_run(last, run);
            return;
        }
        let node = self.take_node();
        self.set_run(node, run);
        self.set(node, LEFT, NONE);
        self.set(node, RIGHT, NONE);
        self.set(node, HEIGHT, 1);
        self.entries += 1;
        match last {
            None => self.root = node,
            Some(last) => {
                let side = if run.logical < self.field(last, START) { LEFT } else { RIGHT };
                self.set(last, side, node);
            }
        }
        self.balance_up(path);
    }

    fn delete(&mut self, start: u32) {
        let mut path = self.path(start);
        let Some(mut node) = path.pop() else { return };
        if self.field(node, START) != start {
            return;
        }
        if self.field(node, LEFT) != NONE && self.field(node, RIGHT) != NONE {
            // The next run takes this node; that run's own node, which has no left child, goes.
            let found = node;
            path.push(found);
            node = self.field(found, RIGHT);
            while self.field(node, LEFT) != NONE {
                self.visit();
                path.push(node);
                node = self.field(node, LEFT);
            }
            let next = self.run(node);
            self.set_run(found, next);
        }
        let left = self.field(node, LEFT);
        let child = if left == NONE { self.field(node, RIGHT) } else { left };
        self.replace_child(&path, node, child);
        self.set(node, LEFT, self.free);
        self.free = node;
        self.entries -= 1;
        self.balance_up(path);
    }

    fn room(&self, more: usize) -> Result<(), Refusal> {
        let needed = (self.entries + more) * Self::NODE;
        if needed <= self.memory.len() { Ok(()) } else { Err(Refusal::Full { needed }) }
    }

    fn entries(&self) -> usize {
        self.entries
    }

    fn bytes(&self) -> Bytes {
        // Nodes that were used before are kept in a list and count as used.
        let used = self.made as usize * Self::NODE;
        Bytes { used, reserved: self.memory.len(), peak: used }
    }

    fn work(&self) -> Work {
        Work { nodes: self.nodes.get(), ..Work::default() }
    }

    fn check(&self) -> Result<(), Broken> {
        let mut count = 0;
        let mut free = self.free;
        while free != NONE && count <= self.made as usize {
            count += 1;
            free = self.field(free, LEFT);
        }
        if count + self.entries != self.made as usize {
            return Err(Broken("a node is neither in the tree nor in the list of free ones"));
        }
        let mut seen = 0;
        let mut path = Path::new();
        path.push(self.root);
        while let Some(node) = path.pop() {
            if node == NONE {
                continue;
            }
            seen += 1;
            if seen > self.entries {
                return Err(Broken("the tree has more nodes than runs"));
            }
            let [left, right] = [LEFT, RIGHT].map(|side| self.field(node, side));
            let heights = [left, right].map(|child| self.height(child));
            if heights[0].abs_diff(heights[1]) > 1 {
                return Err(Broken("a node is not balanced"));
            }
            if self.field(node, HEIGHT) != 1 + heights[0].max(heights[1]) {
                return Err(Broken("the height of a node is wrong"));
            }
            path.push(left);
            path.push(right);
        }
        if seen != self.entries {
            return Err(Broken("the tree has fewer nodes than runs"));
        }
        Ok(())
    }
}
