//! A change of one node, carried up to the root: split, growth, vanishing and shrinking on the way.
//!
//! The engine works from the bottom up. At each level it changes the node in its working buffer, has
//! the placement put it somewhere, and tells the parent. The root is put last and commits.

use super::descend::Path;
use super::flush::Changes;
use super::{Index, KEY_BYTES_MAX};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::node::{Node, NodeMut, SAME_PAGE};
use crate::place::{Level, Placement, node_mut_in};

/// What changes in the first node.
#[derive(Clone, Copy)]
pub enum Edit<'k> {
    /// Nothing; the node is only written anew.
    Move,
    Insert {
        index: usize,
        key: &'k [u8],
        value: &'k [u8],
    },
    Replace {
        index: usize,
        value: &'k [u8],
    },
    Remove {
        index: usize,
    },
    /// All changes of a leaf that wait in the write buffer.
    Batch(&'k Changes<'k>),
}

/// What a parent has to know of its changed child.
#[derive(Clone, Copy)]
enum Child {
    Moved(u32),
    Divided { left: u32, right: u32 },
    Gone,
}

/// A key that outlives the node it stands in.
pub struct Separator {
    pub bytes: [u8; KEY_BYTES_MAX],
}

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Applies `edit` to the node of level `start` on `path` and writes what must be written.
    ///
    /// `records` is what the index will hold; a batch says it itself. Pages in the block `victim` that are pointed to from the
    /// path are moved as well.
    pub(super) fn rewrite(
        &mut self,
        path: &Path,
        start: u8,
        edit: Edit<'_>,
        mut records: u32,
        victim: Option<BlockNumber>,
    ) -> Result<(), Fault<F::Error>> {
        self.in_doubt = true;
        self.space.begin_operation(matches!(edit, Edit::Move));
        for level in start..=self.height {
            if path.lowest(level) == level {
                self.space.retire(PageNumber(path.page(level)));
            }
        }
        let mut separator = Separator { bytes: [0; KEY_BYTES_MAX] };
        let mut level = start;
        let mut child = None;
        loop {
            self.bring(path, level)?;
            let divided = match child {
                None => self.edit_first(level, edit, path.right_edge, &mut separator)?,
                Some(child) => {
                    self.lower_first_key(level, edit)?;
                    self.edit_parent(
                        level,
                        path.slot(level),
                        child,
                        path.right_edge,
                        &mut separator,
                    )?
                }
            };
            if let Edit::Batch(changes) = edit {
                records = changes.records();
            }
            if let Some(victim) = victim
                && level > 1
            {
                self.carry_along(victim, level, records)?;
            }
            let is_root = level == self.height;
            child = Some(if divided {
                let (left, right) = self.put_halves(level, is_root, records)?;
                if is_root {
                    self.put_new_root(left, right, &separator, records)?;
                    break;
                }
                Child::Divided { left, right }
            } else if is_root {
                self.shrink()?;
                let root = self.level(self.height);
                self.root = self.place.put(&mut self.space, root, records)?;
                break;
            } else if self.node(self.working(level), level)?.count() == 0 {
                self.inner_nodes -= u32::from(level > 1);
                self.place.vanish(&mut self.space, level);
                Child::Gone
            } else {
                let node = self.level(level);
                Child::Moved(self.place.put(&mut self.space, node, records)?)
            });
            level += 1;
        }
        self.root = self.space.commit(self.root)?;
        self.records = records;
        self.budget = self.budget_for(self.height, self.inner_nodes);
        self.in_doubt = false;
        Ok(())
    }

    /// Makes sure that the working buffer of `level` holds its node.
    fn bring(&mut self, path: &Path, level: u8) -> Result<(), Fault<F::Error>> {
        let (working, buffers) = (self.working(level), self.space.frames.count());
        // A placement that works elsewhere than it reads has taken its copy during the descent.
        if working == S::reading(level, buffers) {
            self.space.load(path.page(level), working)?;
        }
        Ok(())
    }

    pub(super) fn working_node(&mut self, level: u8) -> Result<NodeMut<'_>, Fault<F::Error>> {
        let fault = self.corrupt("a node has more records than fit");
        let (working, level) = (self.working(level), self.level(level));
        node_mut_in::<S, F>(&mut self.space, working, level).ok_or(fault)
    }

    fn edit_first(
        &mut self,
        level: u8,
        edit: Edit<'_>,
        right_edge: bool,
        separator: &mut Separator,
    ) -> Result<bool, Fault<F::Error>> {
        match edit {
            Edit::Move => {}
            Edit::Insert { index, key, value } => {
                return self.insert_or_divide(level, index, key, value, right_edge, separator);
            }
            Edit::Replace { index, value } => self.working_node(level)?.set_payload(index, value),
            Edit::Remove { index } => self.working_node(level)?.remove(index),
            Edit::Batch(changes) => return self.edit_leaf(changes, right_edge, separator),
        }
        Ok(false)
    }

    /// A new key below all that a node knows becomes its first key.
    fn lower_first_key(&mut self, level: u8, edit: Edit<'_>) -> Result<(), Fault<F::Error>> {
        let key = match edit {
            Edit::Insert { key, .. } => Some(key),
            Edit::Batch(changes) => changes.lowest_key(),
            Edit::Move | Edit::Replace { .. } | Edit::Remove { .. } => None,
        };
        if let Some(key) = key {
            let mut node = self.working_node(level)?;
            if node.count() > 0 && key < node.as_node().key(0) {
                node.set_key(0, key);
            }
        }
        Ok(())
    }

    fn edit_parent(
        &mut self,
        level: u8,
        slot: usize,
        child: Child,
        right_edge: bool,
        separator: &mut Separator,
    ) -> Result<bool, Fault<F::Error>> {
        let fault = self.corrupt("a node is not what it was on the way down");
        let mut node = self.working_node(level)?;
        if slot >= node.count() {
            return Err(fault);
        }
        match child {
            Child::Gone => node.remove(slot),
            Child::Moved(pointer) => node.set_payload(slot, &pointer.to_le_bytes()),
            Child::Divided { left, right } => {
                node.set_payload(slot, &left.to_le_bytes());
                let key = separator.bytes;
                let key = &key[..usize::from(self.space.medium.key_bytes)];
                let right = right.to_le_bytes();
                return self.insert_or_divide(level, slot + 1, key, &right, right_edge, separator);
            }
        }
        Ok(false)
    }

    /// Puts a record into the node of `level`, or divides the node: then its lower half stays in the
    /// working buffer, its upper half goes to the last one, and `separator` becomes the first key of
    /// that. Answers whether the node was divided.
    pub(super) fn insert_or_divide(
        &mut self,
        level: u8,
        index: usize,
        key: &[u8],
        payload: &[u8],
        right_edge: bool,
        separator: &mut Separator,
    ) -> Result<bool, Fault<F::Error>> {
        let capacity = self.capacity(level);
        let mut node = self.working_node(level)?;
        let count = node.count();
        if count < capacity {
            node.insert(index, key, payload);
            return Ok(false);
        }
        // The halves of a larger node would not fit where they go.
        if count > capacity {
            return Err(self.corrupt("a node has more records than it may"));
        }
        let is_root = level == self.height;
        let area_bytes = self.space.layout.area_bytes();
        let before = S::extent(area_bytes, level, self.height);
        let after = S::extent(area_bytes, level, self.height + u8::from(is_root));
        // Ascending keys would leave half-full nodes behind them: at the right edge, nothing moves.
        let appends = right_edge && index == count && !is_root;
        let left_count = if appends { count } else { (count + 1).div_ceil(2) };
        let shape = self.level(level).shape;
        let (working, last) = (self.working(level), self.space.frames.count() - 1);
        self.space.frames.forget(last);
        let (working, last) = self.space.frames.pair(working, last);
        let mut right = NodeMut::empty(&mut last[after.clone()], shape);
        if let Some(mut left) = NodeMut::parse(&mut working[before.clone()], shape) {
            left.divide(&mut right, left_count, index, key, payload);
        }
        let first = right.as_node();
        separator.bytes[..key.len()].copy_from_slice(first.key(0));
        // A root that is divided leaves the root's place.
        if before.start != after.start {
            let used =
                Node::parse(&working[before.clone()], shape).map_or(0, |node| node.used().len());
            working.copy_within(before.start..before.start + used, after.start);
        }
        Ok(true)
    }

    fn put_halves(
        &mut self,
        level: u8,
        is_root: bool,
        records: u32,
    ) -> Result<(u32, u32), Fault<F::Error>> {
        self.height += u8::from(is_root);
        self.inner_nodes += u32::from(level > 1);
        let node = self.level(level);
        self.place.put_halves(&mut self.space, node, records)
    }

    fn put_new_root(
        &mut self,
        left: u32,
        right: u32,
        separator: &Separator,
        records: u32,
    ) -> Result<(), Fault<F::Error>> {
        self.inner_nodes += 1;
        let root = self.level(self.height);
        let key_bytes = root.shape.key_bytes;
        let mut node = self.empty_node(root);
        node.insert(0, &[0; KEY_BYTES_MAX][..key_bytes], &left.to_le_bytes());
        node.insert(1, &separator.bytes[..key_bytes], &right.to_le_bytes());
        self.root = self.place.put(&mut self.space, root, records)?;
        Ok(())
    }

    /// An empty node in the working buffer of `level`.
    pub(super) fn empty_node(&mut self, level: Level) -> NodeMut<'_> {
        let working = S::working(level.level, self.space.frames.count());
        let extent = S::extent(self.space.layout.area_bytes(), level.level, level.height);
        self.space.frames.forget(working);
        NodeMut::empty(&mut self.space.frames.bytes_mut(working)[extent], level.shape)
    }

    /// While the root has a single child, the child becomes the root (Algorithm 5, lines 3 to 10).
    fn shrink(&mut self) -> Result<(), Fault<F::Error>> {
        while self.height > 1 {
            let node = self.working_node(self.height)?;
            let node = node.as_node();
            if node.count() != 1 || node.pointer(0) == SAME_PAGE {
                break;
            }
            let page = node.pointer(0);
            let last = self.space.frames.count() - 1;
            let frame = self.space.load(page, last)?;
            let lowest = self.space.header(frame).lowest;
            if lowest == self.height - 1 {
                self.space.retire(PageNumber(page));
            }
            let area_bytes = self.space.layout.area_bytes();
            let from = S::extent(area_bytes, self.height - 1, self.height);
            let used = self.node(frame, self.height - 1)?.used().len();
            self.height -= 1;
            self.inner_nodes -= 1;
            let (level, working) = (self.level(self.height), self.working(self.height));
            let to = S::extent(area_bytes, self.height, self.height);
            self.place.begin(&mut self.space, self.height);
            self.space.frames.forget(working);
            if working == frame {
                self.space
                    .frames
                    .bytes_mut(frame)
                    .copy_within(from.start..from.start + used, to.start);
            } else {
                let (stage, read) = self.space.frames.pair(working, frame);
                stage[to][..used].copy_from_slice(&read[from][..used]);
            }
            if level.level > 1 {
                let mut root = self.working_node(level.level)?;
                if let Some(slot) = root.as_node().slot_of(SAME_PAGE) {
                    root.set_payload(slot, &page.to_le_bytes());
                }
            }
        }
        Ok(())
    }
}
