//! The page writes of a growing B-tree, one logical page a node, for examples and tests.
//!
//! A node is written when it changes: a leaf at each insert, both halves and the parent at a split.
//! Nothing is ever removed or merged.

/// Records of a leaf, and children of an inner node.
const FANOUT: usize = 128;

/// A node: its logical page, its lowest key, and its records or children.
struct Node {
    page: u32,
    /// Keys of records, or the lowest keys of children.
    keys: Vec<u32>,
    /// Children by number; empty in a leaf.
    children: Vec<usize>,
}

/// A B-tree of keys.
pub struct Tree {
    nodes: Vec<Node>,
    root: usize,
    keeps_full_leaves: bool,
}

impl Tree {
    /// A tree of one empty leaf.
    pub fn new() -> Self {
        let leaf = Node { page: 0, keys: Vec::new(), children: Vec::new() };
        Self { nodes: vec![leaf], root: 0, keeps_full_leaves: false }
    }

    /// A tree whose full leaf stays full if the new key is its highest; that opens a leaf.
    #[allow(dead_code, reason = "only the example inserts ascending keys")]
    pub fn keeping_full_leaves() -> Self {
        Self { keeps_full_leaves: true, ..Self::new() }
    }

    /// Nodes, each a logical page; they are numbered from 0.
    pub fn pages(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Inserts a key, and calls `write` for each page.
    pub fn insert(&mut self, key: u32, write: &mut dyn FnMut(u32)) {
        let Some((separator, upper)) = self.insert_below(self.root, key, write) else { return };
        let lower = self.nodes[self.root].keys.first().copied().unwrap_or(0);
        let children = vec![self.root, upper];
        self.root = self.add(vec![lower, separator], children);
        write(self.nodes[self.root].page);
    }

    fn add(&mut self, keys: Vec<u32>, children: Vec<usize>) -> usize {
        let page = self.nodes.len() as u32;
        self.nodes.push(Node { page, keys, children });
        page as usize
    }

    /// Returns the lowest key and the number of the upper half, if the node was split.
    fn insert_below(
        &mut self,
        at: usize,
        key: u32,
        write: &mut dyn FnMut(u32),
    ) -> Option<(u32, usize)> {
        let behind = self.nodes[at].keys.partition_point(|&it| it <= key);
        if self.nodes[at].children.is_empty() {
            self.nodes[at].keys.insert(behind, key);
        } else {
            let place = behind.saturating_sub(1);
            let child = self.nodes[at].children[place];
            let (separator, upper) = self.insert_below(child, key, write)?;
            self.nodes[at].keys.insert(place + 1, separator);
            self.nodes[at].children.insert(place + 1, upper);
        }
        if self.nodes[at].keys.len() <= FANOUT {
            write(self.nodes[at].page);
            return None;
        }
        if self.keeps_full_leaves && self.nodes[at].children.is_empty() && behind == FANOUT {
            let keys = self.nodes[at].keys.split_off(FANOUT);
            let upper = self.add(keys, Vec::new());
            write(self.nodes[upper].page);
            return Some((key, upper));
        }
        let keys = self.nodes[at].keys.split_off(FANOUT / 2);
        let children = match self.nodes[at].children.is_empty() {
            true => Vec::new(),
            false => self.nodes[at].children.split_off(FANOUT / 2),
        };
        let separator = keys[0];
        let upper = self.add(keys, children);
        write(self.nodes[upper].page);
        write(self.nodes[at].page);
        Some((separator, upper))
    }
}
