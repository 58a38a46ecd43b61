//! A B-tree of keys in RAM that names the nodes which an operation changes.
//!
//! How these reach flash is the store's concern. A node of 2 KiB has room for 128 entries, as in
//! section 6.1 of the paper.

/// Entries of a node, or of all nodes of a path that share a page.
const ENTRIES: usize = 128;

/// The first level that has no share of a page.
const SHARES: usize = 7;

/// When nodes are divided and joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// A node that is full is divided in the middle.
    Nodes {
        /// A node below half is filled from a neighbour, an entry at a time, or joined with it.
        ///
        /// Otherwise only an empty node goes.
        merges: bool,
    },
    /// As nodes that do not merge, but a full leaf stays full if keys ascend.
    ///
    /// A new key that is higher than all of its leaf opens a leaf beside it.
    Ascending,
    /// A path must fit in a page: if it does not, its largest node is divided.
    Paths,
    /// A path has a page, and each of its levels a fixed share of that.
    ///
    /// A leaf has one half, each level above half of the one below, and the root what is left. A
    /// root whose share is full is divided, so that both halves fit the share of their new level.
    /// Nodes merge as above.
    Shares,
    /// As nodes that merge, but a leaf has several pages.
    ///
    /// The node above them is their header: it has few entries, and the leaf grows and shrinks a
    /// page at a time.
    Leaves {
        /// The most pages of a leaf.
        pages: usize,
    },
}

/// What an operation did to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// One of its entries is new, other or gone.
    Entry,
    /// Many of its entries moved to another node, or came from one.
    Moved,
    /// It was made from a part of `beside`.
    New {
        /// The node that was divided, or is now its child.
        beside: u32,
    },
    /// It is no longer part of the tree.
    Gone,
}

#[derive(Default)]
struct Node {
    /// Keys of a leaf; of an inner node the lowest key of each child, 0 for the first of all.
    keys: Vec<u32>,
    /// None in a leaf.
    children: Vec<u32>,
}

/// The tree, and what its last operation did.
pub struct Tree {
    rule: Rule,
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// The nodes of the last descent, from the root to the leaf.
    path: Vec<u32>,
    touched: Vec<(u32, Touch)>,
    beside: u32,
    splits: u64,
    leaf_splits: u64,
    joins: u64,
    rotations: u64,
}

impl Tree {
    /// An empty leaf.
    pub fn new(rule: Rule) -> Self {
        Self {
            rule,
            nodes: vec![Node::default()],
            free: Vec::new(),
            path: vec![0],
            touched: vec![(0, Touch::New { beside: 0 })],
            beside: 0,
            splits: 0,
            leaf_splits: 0,
            joins: 0,
            rotations: 0,
        }
    }

    /// The nodes of the last descent, from the root to the leaf.
    pub fn path(&self) -> &[u32] {
        &self.path
    }

    /// What the last operation did, each node once.
    pub fn touched(&self) -> &[(u32, Touch)] {
        &self.touched
    }

    /// Neighbours that the last operation read.
    pub const fn beside(&self) -> u32 {
        self.beside
    }

    /// Nodes that were divided so far.
    ///
    /// A leaf of several pages that grows by a page is not.
    pub const fn splits(&self) -> u64 {
        self.splits
    }

    /// Those of them that are leaves.
    pub const fn leaf_splits(&self) -> u64 {
        self.leaf_splits
    }

    /// Nodes that were joined with a neighbour so far.
    ///
    /// Pages of one leaf are not counted.
    pub const fn joins(&self) -> u64 {
        self.joins
    }

    /// Nodes that were filled from a neighbour so far, an entry at a time.
    ///
    /// Pages of one leaf are not counted.
    pub const fn rotations(&self) -> u64 {
        self.rotations
    }

    /// The keys of a node, in ascending order.
    pub fn keys(&self, node: u32) -> &[u32] {
        &self.at(node).keys
    }

    /// The children of a node: none of a leaf.
    pub fn children(&self, node: u32) -> &[u32] {
        &self.at(node).children
    }

    /// Levels.
    pub fn height(&self) -> u8 {
        self.path.len() as u8
    }

    /// Whether a page has no room for so many levels.
    pub fn is_too_high(&self) -> bool {
        self.rule == Rule::Shares && self.path.len() >= SHARES
    }

    /// Nodes.
    pub fn nodes(&self) -> u32 {
        (self.nodes.len() - self.free.len()) as u32
    }

    /// Whether a node is a leaf.
    pub fn is_leaf(&self, node: u32) -> bool {
        self.at(node).children.is_empty()
    }

    fn at(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    fn at_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    fn len(&self, node: u32) -> usize {
        self.at(node).keys.len()
    }

    fn leaf(&self) -> u32 {
        self.path[self.path.len() - 1]
    }

    /// The place of the child with `key` in an inner node.
    fn slot(&self, node: u32, key: u32) -> usize {
        self.at(node).keys.partition_point(|&low| low <= key).max(1) - 1
    }

    /// Begins an operation, or a batch of them that is written at once.
    pub fn begin(&mut self) {
        self.touched.clear();
        self.beside = 0;
    }

    /// Begins an operation on `key`.
    pub fn descend(&mut self, key: u32) {
        self.begin();
        self.seek(key);
    }

    /// Goes from the root to the leaf of `key`.
    pub fn seek(&mut self, key: u32) {
        self.path.truncate(1);
        while !self.is_leaf(self.leaf()) {
            let node = self.leaf();
            self.path.push(self.at(node).children[self.slot(node, key)]);
        }
    }

    /// The keys that belong to the node at this place of the path.
    ///
    /// Returns the first of them, and the first beyond.
    pub fn range(&self, depth: usize) -> (u32, Option<u32>) {
        let (mut first, mut beyond) = (0, None);
        for two in self.path[..=depth].windows(2) {
            let inner = self.at(two[0]);
            let Some(slot) = inner.children.iter().position(|&child| child == two[1]) else {
                continue;
            };
            if slot > 0 {
                first = inner.keys[slot];
            }
            beyond = inner.keys.get(slot + 1).copied().or(beyond);
        }
        (first, beyond)
    }

    /// Whether the leaf has `key`.
    pub fn has(&self, key: u32) -> bool {
        self.at(self.leaf()).keys.binary_search(&key).is_ok()
    }

    /// Notes what was done to a node; the larger change counts.
    fn touch(&mut self, node: u32, touch: Touch) {
        match self.touched.iter_mut().find(|(touched, _)| *touched == node) {
            None => self.touched.push((node, touch)),
            Some((_, before)) => match (*before, touch) {
                (Touch::New { .. }, Touch::Entry | Touch::Moved) | (_, Touch::Entry) => {}
                _ => *before = touch,
            },
        }
    }

    fn make(&mut self, node: Node, beside: u32) -> u32 {
        let made = match self.free.pop() {
            Some(free) => {
                *self.at_mut(free) = node;
                free
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        self.touch(made, Touch::New { beside });
        made
    }

    /// Adds `key` to the leaf. Returns whether it is new.
    pub fn insert(&mut self, key: u32) -> bool {
        let leaf = self.leaf();
        let Err(place) = self.at(leaf).keys.binary_search(&key) else { return false };
        self.at_mut(leaf).keys.insert(place, key);
        self.touch(leaf, Touch::Entry);
        while let Some(depth) = self.crowded() {
            self.divide(depth, key);
        }
        true
    }

    /// The most entries of a node at this place of the path.
    const fn most(&self, depth: usize) -> usize {
        let level = self.path.len() - depth;
        match self.rule {
            Rule::Leaves { pages } if level == 2 => pages,
            // From level 7 on there is no share; the tree is then too high, and says so.
            Rule::Shares if level >= SHARES => 2,
            Rule::Shares if depth == 0 => (ENTRIES >> (level - 1)) - 1,
            Rule::Shares => ENTRIES >> level,
            _ => ENTRIES,
        }
    }

    /// The fewest entries of a node at this place of the path.
    ///
    /// With fewer, it is filled or goes.
    const fn least(&self, depth: usize) -> usize {
        match self.rule {
            Rule::Nodes { merges: true } | Rule::Leaves { .. } | Rule::Shares => {
                self.most(depth) / 2
            }
            _ => 1,
        }
    }

    /// The place on the path of a node that must be divided.
    fn crowded(&self) -> Option<usize> {
        let lens = self.path.iter().map(|&node| self.len(node));
        match self.rule {
            Rule::Nodes { .. } | Rule::Leaves { .. } | Rule::Shares | Rule::Ascending => {
                (0..self.path.len()).rfind(|&depth| self.len(self.path[depth]) > self.most(depth))
            }
            Rule::Paths if lens.sum::<usize>() <= ENTRIES => None,
            Rule::Paths => (0..self.path.len()).max_by_key(|&depth| self.len(self.path[depth])),
        }
    }

    /// Whether a node is one of the pages of a leaf.
    fn is_page(&self, node: u32) -> bool {
        matches!(self.rule, Rule::Leaves { .. }) && self.is_leaf(node)
    }

    /// Whether a full leaf stays full, because `key`, which is new, is its highest.
    fn stays_full(&self, node: u32, key: u32) -> bool {
        self.rule == Rule::Ascending
            && self.is_leaf(node)
            && self.at(node).keys.last() == Some(&key)
    }

    /// Divides a node in the middle; the path goes on in the half with `key`.
    fn divide(&mut self, depth: usize, key: u32) {
        let node = self.path[depth];
        let stays = self.stays_full(node, key);
        let half = match self.rule {
            _ if stays => self.len(node) - 1,
            Rule::Ascending => self.len(node).div_ceil(2),
            _ => self.len(node) / 2,
        };
        let is_split = !stays && !self.is_page(node);
        self.splits += u64::from(is_split);
        self.leaf_splits += u64::from(is_split && self.is_leaf(node));
        let keys = self.at_mut(node).keys.split_off(half);
        let children = match self.is_leaf(node) {
            true => Vec::new(),
            false => self.at_mut(node).children.split_off(half),
        };
        let first = keys[0];
        if stays {
            // It is as it was before the new entry.
            self.touched.retain(|&(touched, _)| touched != node);
        } else {
            self.touch(node, Touch::Moved);
        }
        let upper = self.make(Node { keys, children }, node);
        if depth == 0 {
            let root = Node { keys: vec![0, first], children: vec![node, upper] };
            let root = self.make(root, node);
            self.path.insert(0, root);
        } else {
            let parent = self.path[depth - 1];
            let slot = self.slot(parent, first) + 1;
            let inner = self.at_mut(parent);
            inner.keys.insert(slot, first);
            inner.children.insert(slot, upper);
            self.touch(parent, Touch::Entry);
        }
        let depth = if depth == 0 { 1 } else { depth };
        if key >= first {
            self.path[depth] = upper;
        }
    }

    /// Removes `key` from the leaf. Returns whether it was there.
    pub fn remove(&mut self, key: u32) -> bool {
        let leaf = self.leaf();
        let Ok(place) = self.at(leaf).keys.binary_search(&key) else { return false };
        self.at_mut(leaf).keys.remove(place);
        self.touch(leaf, Touch::Entry);
        let mut depth = self.path.len() - 1;
        while depth > 0 && self.len(self.path[depth]) < self.least(depth) {
            let slot = self.slot(self.path[depth - 1], key);
            let joined = match self.least(depth) {
                1 => {
                    self.drop_child(depth - 1, slot);
                    true
                }
                _ => self.fill(depth, slot),
            };
            if !joined {
                break;
            }
            depth -= 1;
        }
        while self.at(self.path[0]).children.len() == 1 {
            let root = self.path.remove(0);
            let child = self.at(root).children[0];
            self.discard(root);
            // The path may have led to a node that was joined with this one.
            match self.path.first_mut() {
                Some(top) => *top = child,
                None => self.path.push(child),
            }
        }
        true
    }

    fn discard(&mut self, node: u32) {
        *self.at_mut(node) = Node::default();
        self.touch(node, Touch::Gone);
        self.free.push(node);
    }

    /// Removes an empty child, unless it is the only one.
    fn drop_child(&mut self, depth: usize, slot: usize) {
        let parent = self.path[depth];
        if self.len(parent) == 1 && depth == 0 {
            return;
        }
        let inner = self.at_mut(parent);
        inner.keys.remove(slot);
        let child = inner.children.remove(slot);
        if slot == 0
            && let Some(first) = inner.keys.first_mut()
        {
            // What is inserted below goes to the first child.
            *first = 0;
        }
        self.touch(parent, Touch::Entry);
        self.discard(child);
    }

    /// Fills a node from its neighbour, or joins them. Returns whether they were joined.
    fn fill(&mut self, depth: usize, slot: usize) -> bool {
        let parent = self.path[depth - 1];
        let left = slot.min(self.len(parent) - 2);
        let [lower, upper] = [left, left + 1].map(|at| self.at(parent).children[at]);
        self.beside += 1;
        self.touch(parent, Touch::Entry);
        if self.len(lower) + self.len(upper) <= self.most(depth) {
            self.joins += u64::from(!self.is_page(lower));
            let moved = std::mem::take(self.at_mut(upper));
            let inner = self.at_mut(parent);
            inner.keys.remove(left + 1);
            inner.children.remove(left + 1);
            let node = self.at_mut(lower);
            node.keys.extend(moved.keys);
            node.children.extend(moved.children);
            self.touch(lower, Touch::Moved);
            self.discard(upper);
            return true;
        }
        self.rotations += u64::from(!self.is_page(lower));
        let (from, to, at) =
            if left == slot { (upper, lower, 0) } else { (lower, upper, self.len(lower) - 1) };
        let key = self.at_mut(from).keys.remove(at);
        let child = (!self.is_leaf(from)).then(|| self.at_mut(from).children.remove(at));
        let place = if left == slot { self.len(to) } else { 0 };
        self.at_mut(to).keys.insert(place, key);
        if let Some(child) = child {
            self.at_mut(to).children.insert(place, child);
        }
        let bound = self.at(upper).keys[0];
        self.at_mut(parent).keys[left + 1] = bound;
        self.touch(lower, Touch::Entry);
        self.touch(upper, Touch::Entry);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root over two leaves, with the keys below `count` in order.
    fn two_leaves(rule: Rule, count: u32) -> Tree {
        let mut tree = Tree::new(rule);
        for key in 0..count {
            tree.descend(key);
            assert!(tree.insert(key));
        }
        assert_eq!((tree.height(), tree.nodes()), (2, 3));
        tree
    }

    #[test]
    fn a_rotation_writes_three_nodes_and_a_merge_ends_two() {
        let merging = Rule::Nodes { merges: true };
        let mut tree = two_leaves(merging, 130);
        tree.descend(0);
        assert!(tree.remove(0));
        assert_eq!(tree.touched(), [(0, Touch::Entry), (2, Touch::Entry), (1, Touch::Entry)]);
        assert_eq!((tree.beside(), tree.nodes()), (1, 3));
        let mut tree = two_leaves(merging, 129);
        tree.descend(0);
        assert!(tree.remove(0));
        assert_eq!(tree.touched(), [(0, Touch::Moved), (2, Touch::Gone), (1, Touch::Gone)]);
        assert_eq!((tree.height(), tree.nodes()), (1, 1));
    }

    #[test]
    fn a_path_is_divided_when_its_nodes_no_longer_fit_together() {
        let mut tree = Tree::new(Rule::Paths);
        for key in 0..20_000 {
            tree.descend(key);
            assert!(tree.insert(key));
            assert!(tree.path().iter().map(|&node| tree.len(node)).sum::<usize>() <= ENTRIES);
        }
        assert!(tree.height() > 2);
    }

    #[test]
    fn a_leaf_that_ascending_keys_filled_stays_full() {
        let mut tree = two_leaves(Rule::Ascending, 129);
        assert_eq!((tree.keys(0).len(), tree.keys(1), tree.splits()), (128, &[128][..], 0));
        for key in 129..256 {
            tree.descend(key);
            assert!(tree.insert(key));
        }
        tree.descend(256);
        assert!(tree.insert(256));
        // Figure 8: the new leaf and its parent are written.
        assert_eq!(tree.touched(), [(3, Touch::New { beside: 1 }), (2, Touch::Entry)]);
        // A key within a full leaf divides it in the middle.
        let mut tree = Tree::new(Rule::Ascending);
        for key in (0..128).chain([1_000]) {
            tree.descend(key * 2);
            assert!(tree.insert(key * 2));
        }
        tree.descend(5);
        assert!(tree.insert(5));
        assert_eq!((tree.keys(0).len(), tree.splits()), (65, 1));
    }

    #[test]
    fn each_level_has_its_share_of_a_page() {
        let mut tree = Tree::new(Rule::Shares);
        let mut heights = Vec::new();
        for key in 0..40_000 {
            tree.descend(key);
            assert!(tree.insert(key));
            let height = tree.path().len();
            if height > heights.len() {
                heights.push(key + 1);
            }
            let lens: Vec<usize> = tree.path().iter().map(|&node| tree.len(node)).collect();
            let shares =
                (0..height).map(|depth| ENTRIES >> (height - depth).min(height - 1).max(1));
            assert!(height == 1 || lens.into_iter().zip(shares).all(|(len, share)| len <= share));
        }
        // The first leaf is full at 128 keys, the root at 64 leaves, each of which but one has 32.
        assert_eq!(heights[..3], [1, 128, 129 + 32 * 61]);
    }

    #[test]
    fn a_leaf_of_several_pages_is_divided_by_its_header() {
        let mut tree = Tree::new(Rule::Leaves { pages: 4 });
        for key in 0..1_000 {
            tree.descend(key);
            assert!(tree.insert(key));
            if tree.path().len() > 1 {
                assert!(tree.len(tree.path()[tree.path().len() - 2]) <= 4);
            }
        }
        assert_eq!((tree.height(), tree.range(1)), (3, (768, None)));
        tree.descend(0);
        assert_eq!((tree.range(1), tree.range(2)), ((0, Some(128)), (0, Some(64))));
    }
}
