//! Merging sparse nodes before a split would make the tree too large.
//!
//! Removals merge no nodes, so they cost no more for it, and most trees are never sparse. A change
//! that splits a node of a tree that is as large as [`Size`] allows looks for two neighbours below
//! one parent whose records fit in one node, and merges them first. If there are none, the tree is
//! no larger than `Size` allows for its records.
//!
//! The lower node takes in the upper one's records and is written; then its parent, which drops the
//! upper one and commits. Where a node is replaced in place before its parent, it is trimmed until
//! the parent is written as well: a cut leaves the two nodes in their previous state.
//!
//! Cost of a search: at most four reads for each node of the tree. So each change searches a level
//! once, and keeps no result.

use super::Placement;
use super::edit::{Edit, Upper};
use super::path::Path;
use super::walk::Walk;
use super::{Form, HEIGHT_MAX, TreeIndex, extent_of};
use crate::error::{Damage, Fault};
use crate::flash::Flash;
use crate::node::{Node, NodeMut, SAME_PAGE};

/// Most merges of inner nodes in one change.
///
/// The merge that keeps the tree from growing higher comes on top.
const INNER_MAX: u8 = 2;

/// Most merges in one change of a tree of `height`: of leaves, and of all nodes.
pub(crate) fn merges_max<S: Placement>(height: u8) -> (u8, u8) {
    if height == 1 {
        return (0, 0);
    }
    // Where nodes share a page, each of them that is split takes a page as a leaf does.
    let leaves = if S::SHARING.shares() { height } else { 1 };
    (leaves, leaves + 1 + INNER_MAX)
}

/// Rounds after which the numbers of nodes have converged, or never will.
const ROUNDS: usize = 48;

/// The largest tree that a number of records can form.
///
/// Underfull neighbours are merged when the tree is about to grow larger.
///
/// Let no two neighbours below one parent fit in one node of *c* records. Of the children of a
/// parent each two hold at least *c* + 1 records, and one may be left over: so a level of nodes
/// with *r* records has at most 2 *r* / (*c* + 1) nodes, and one more for each parent. One more is
/// about to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub height: u8,
    pub leaves: u32,
    pub inner_nodes: u32,
    /// There is no such tree: its pages have no room for the missing levels.
    pub too_high: bool,
}

impl Size {
    #[inline(never)]
    pub fn of<S: Placement>(form: &Form, records: u32) -> Self {
        let mut size = Self { height: 1, leaves: 1, inner_nodes: 0, too_high: false };
        if records as usize <= form.capacity::<S>(1, 1) {
            return size;
        }
        size.too_high = true;
        while size.too_high && form.can_grow::<S>(size.height) && size.height < HEIGHT_MAX {
            size.height += 1;
            size.settle::<S>(form, records);
        }
        if size.too_high {
            // The fewest nodes possible.
            let full = form.capacity::<S>(1, size.height).clamp(1, u16::MAX.into()) as u32;
            (size.leaves, size.inner_nodes) = (records.div_ceil(full), 1);
        }
        size
    }

    /// Computes how many nodes each level of a tree of this height can have.
    fn settle<S: Placement>(&mut self, form: &Form, records: u32) {
        let height = usize::from(self.height);
        let capacity =
            |level: usize| form.capacity::<S>(level as u8, self.height).min(u16::MAX.into()) as u32;
        let most = |below: u32, level: usize, above: u32| {
            let pairs = below.saturating_sub(1) / (capacity(level) + 1);
            pairs.saturating_mul(2).saturating_add(above).saturating_add(1)
        };
        // Nodes of each level from the leaves up.
        let mut nodes = [1u32; HEIGHT_MAX as usize + 1];
        let mut settled = false;
        for _ in 0..ROUNDS {
            let before = nodes;
            let inner = sum(&nodes[2..=height]);
            // Inner nodes that are not parents of leaves: the root, and two on each level between.
            let others = if height > 2 { 1 + 2 * (height as u32 - 3) } else { 0 };
            nodes[1] = most(records, 1, inner - others.min(inner - 1));
            for level in 2..height {
                nodes[level] = most(nodes[level - 1], level, nodes[level + 1]);
            }
            settled = nodes == before;
            if settled || nodes[1] > u32::MAX / 8 {
                break;
            }
        }
        self.leaves = nodes[1];
        self.inner_nodes = sum(&nodes[2..=height]);
        // It is not known which inner levels have these nodes.
        let below = match height {
            2 => records,
            3 => self.leaves,
            _ => self.inner_nodes,
        };
        let children = if height == 2 { nodes[1] } else { most(below, height - 1, 1) };
        self.too_high = !settled || children > capacity(height);
    }
}

fn sum(nodes: &[u32]) -> u32 {
    nodes.iter().fold(0, |sum, &nodes| sum.saturating_add(nodes))
}

/// Why nodes are to be merged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sparse {
    /// The tree would become higher.
    Height,
    /// There would be more leaves.
    Leaves,
    /// There would be more inner nodes.
    Inner,
}

/// How often a change has merged nodes for each cause, or [`NO_MORE`].
#[derive(Default)]
pub struct Merges {
    height: u8,
    leaves: u8,
    inner: u8,
}

/// There are no nodes to merge.
const NO_MORE: u8 = u8::MAX;

impl Merges {
    const fn count(&mut self, sparse: Sparse) -> &mut u8 {
        match sparse {
            Sparse::Height => &mut self.height,
            Sparse::Leaves => &mut self.leaves,
            Sparse::Inner => &mut self.inner,
        }
    }
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Whether nodes are to be merged before a split, and why.
    ///
    /// The `divided` lowest nodes of a path are to be split. If the change is `refused`, any merge
    /// helps.
    #[inline(never)]
    pub(super) fn sparse(&self, divided: u8, refused: bool, merges: &Merges) -> Option<Sparse> {
        if divided == 0 || self.state.height() == 1 {
            return None;
        }
        let size = Size::of::<S>(&self.form(), self.state.records().saturating_add(1));
        let grows = divided == self.state.height();
        let inner_nodes = self.state.inner_nodes() + u32::from(divided) - 1 + u32::from(grows);
        let pages = self.space.valid_pages();
        let more_leaves = if S::SHARING.shares() {
            // Where a page holds a part of a path only, a node that is moved may leave its page.
            let apart =
                if S::path_pages(self.state.height()) > 1 { self.state.inner_nodes() } else { 0 };
            pages + u32::from(divided) + apart > size.leaves + size.inner_nodes
        } else {
            pages + 1 > size.leaves + self.state.inner_nodes()
        };
        let higher = grows && self.state.height() >= size.height;
        // Where nodes share a page, writing a path without its leaf takes one more page.
        let none_free = S::SHARING.shares() && pages >= self.limit_pages();
        let due = |sparse, due: bool, is_left: bool| {
            let needs_page = sparse != Sparse::Leaves && self.state.height() > 2;
            Some(sparse).filter(|_| due && is_left && !(needs_page && none_free))
        };
        let more_pages = if S::SHARING.shares() { divided } else { 1 };
        due(Sparse::Height, grows && (higher || refused), merges.height == 0)
            .or_else(|| due(Sparse::Leaves, more_leaves || refused, merges.leaves < more_pages))
            .or_else(|| {
                let more = (divided > 1 && inner_nodes > size.inner_nodes) || refused;
                due(Sparse::Inner, more && self.state.height() > 2, merges.inner < INNER_MAX)
            })
            .filter(|_| !size.too_high || refused)
    }

    /// Merges two neighbours, if there are two that fit in one node.
    #[inline(never)]
    pub(super) fn merge(
        &mut self,
        sparse: Sparse,
        merges: &mut Merges,
    ) -> Result<(), Fault<F::Error>> {
        let (from, to) = match sparse {
            Sparse::Height => (self.state.height() - 1, self.state.height() - 1),
            Sparse::Leaves => (1, 1),
            Sparse::Inner => (2, self.state.height() - 1),
        };
        for level in from..=to {
            if let Some(upper) = self.find_pair(level)? {
                // Below a root of height two there are only leaves.
                if self.state.height() == 2 {
                    merges.leaves =
                        merges.leaves.saturating_add(u8::from(sparse == Sparse::Height));
                }
                *merges.count(sparse) += 1;
                return self.merge_with(level, upper);
            }
        }
        *merges.count(sparse) = NO_MORE;
        if from == 1 {
            merges.leaves = NO_MORE;
        }
        Ok(())
    }

    /// Merges a node of `level` with its upper neighbour `upper`.
    ///
    /// The lower of the keys in the separator leads to the node.
    #[inline(never)]
    pub(super) fn merge_with(&mut self, level: u8, upper: Upper) -> Result<(), Fault<F::Error>> {
        let (mut path, before) = (Path::new(), self.state.height());
        self.with_separator(|tree, keys| tree.descend_to_change(&mut path, keys.low(), level))?;
        self.rewrite(&mut path, level, &Edit::Merge(upper), self.state.records(), None)?;
        self.note_change(&path, before);
        Ok(())
    }

    /// Looks for two neighbours of `level` below one parent that fit in one node.
    ///
    /// Keeps the keys of both in their parent in the separator, which no split uses now.
    #[inline(never)]
    fn find_pair(&mut self, level: u8) -> Result<Option<Upper>, Fault<F::Error>> {
        let capacity = self.capacity(level);
        self.space.begin_walk();
        let mut lower = usize::MAX;
        let mut walk = Walk::new(self.top(), self.space.valid_pages(), level);
        while !walk.is_over() {
            let frame = match self.read_on(&mut walk) {
                // A damaged page must not prevent changes elsewhere.
                Err(Fault::Corrupt { .. }) if walk.level() < self.state.height() => None,
                frame => Some(frame?),
            };
            if walk.level() > level {
                match frame.map(|frame| self.next_child(&mut walk, frame)) {
                    Some(Ok(Some(child))) => walk.enter(child),
                    Some(Ok(None)) => {}
                    Some(Err(_)) => {
                        lower = usize::MAX;
                        walk.pass();
                    }
                    None => walk.leave(),
                }
                continue;
            }
            let path = &mut walk.path;
            let count = if frame.is_some() { path.count(level) } else { usize::MAX };
            if path.slot(level + 1) > 0 && lower.saturating_add(count) <= capacity {
                self.keep_keys(path, level + 1)?;
                let (page, lowest) = (path.page(level), path.lowest(level));
                return Ok(Some(Upper { page, count: count as u16, lowest }));
            }
            lower = count;
            walk.leave();
        }
        Ok(None)
    }

    /// Keeps the key at the slot of the node of `level` on `path`, and the one before.
    fn keep_keys(&mut self, path: &mut Path, level: u8) -> Result<(), Fault<F::Error>> {
        let (frame, slot) = (self.visit(path, level)?, path.slot(level));
        self.with_separator(|tree, keys| {
            tree.node(frame, level).map(|node| keys.set(node.key(slot - 1), node.key(slot)))
        })
    }

    /// Adds the records of the upper neighbour to the node of `level`.
    ///
    /// The node is in its working buffer. The range of the neighbour begins at `bound`.
    #[inline(never)]
    pub(super) fn take_in(
        &mut self,
        level: u8,
        upper: Upper,
        bound: &[u8],
    ) -> Result<(), Fault<F::Error>> {
        let fault = self.corrupt_at(upper.page, Damage::NodeTooFull);
        let (working, spare) = (self.working(level), self.spare(level));
        self.space.load_into(upper.page, spare)?;
        self.truncate(spare, level, upper.count.into());
        let (capacity, at) = (self.capacity(level), self.level(level));
        let to = S::extent(self.space.log.layout().area_bytes(), level, self.state.height());
        let extent = extent_of::<S, F>(&self.space, spare, at);
        self.space.log.frames.forget(working);
        self.space.log.frames.release(spare);
        let (into, from) = self.space.log.frames.pair(working, spare);
        let node = NodeMut::parse(&mut into[to], at.shape);
        let (Some(mut node), Some(from)) = (node, Node::parse(&from[extent], at.shape)) else {
            return Err(fault);
        };
        let first = node.count();
        if first == 0 || from.count() == 0 || first + from.count() > capacity {
            return Err(fault);
        }
        node.append(&from);
        if level > 1 {
            // The first child of the upper node owned all keys from the bound on.
            if bound < node.as_node().key(first) {
                node.set_key(first, bound);
            }
            if let Some(slot) = node.as_node().slot_of(SAME_PAGE) {
                node.set_payload(slot, &upper.page.to_le_bytes());
            }
        }
        Ok(())
    }
}
