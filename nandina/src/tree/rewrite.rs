//! A change of one node, carried up to the root.
//!
//! Splits, growth, removal of empty nodes and shrinking happen on the way. The engine works from
//! the bottom up. At each level it changes the node in its working buffer, has the store write it,
//! and passes the new pointer to the parent. The root is written last and commits.

#[cfg(feature = "paper-modes")]
use super::edit::Rotation;
use super::edit::{Edit, Emptying, Upper};
use super::path::Path;
use super::split::{Record, Separator};
use super::{Halves, Level, Origin, Placement, WritePolicy, Written, node_mut_in};
use super::{TreeIndex, batch};
use crate::engine::KEY_BYTES_MAX;
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::node::NodeMut;

/// What a parent has to record about its changed child.
#[derive(Clone, Copy)]
enum Child {
    Moved(u32),
    Split {
        left: u32,
        right: u32,
    },
    /// The child is at this pointer and has taken in its upper neighbour.
    Merged(u32),
    /// The child stays, and its upper neighbour is at this pointer now.
    #[cfg(feature = "paper-modes")]
    Rotated(u32),
    Gone,
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Applies `edit` to the node of level `start` on `path` and writes the path.
    ///
    /// `records` is the number of records in the index afterwards; a batch counts them itself.
    pub(super) fn rewrite(
        &mut self,
        path: &mut Path,
        start: u8,
        edit: &Edit<'_>,
        mut records: u32,
        emptying: Option<Emptying>,
    ) -> Result<(), Fault<F::Error>> {
        // An operation that fails half way is treated as a cut: the next one mounts again.
        debug_assert!(
            !self.state.is_in_doubt(),
            "an operation begins before the index is mounted again"
        );
        self.state.doubt();
        self.space.begin_operation(matches!(edit, Edit::Move));
        let (mut level, mut child) = (start, None);
        loop {
            self.load_working(path, level)?;
            let divided = self.edit_node(path, level, edit, child)?;
            #[cfg(feature = "paper-modes")]
            if let Edit::Rotate(rotation) = edit
                && level == start
            {
                child = Some(self.put_rotated(path.page(level), level, rotation, records)?);
                level += 1;
                continue;
            }
            if let Edit::Batch(changes) = edit
                && batch::IS_BUILT
            {
                records = changes.records();
            }
            if path.lowest(level) == level {
                S::supersede(&mut self.space, path.page(level), divided);
            }
            if let Some(Emptying { block, together: true }) = emptying
                && level > 1
            {
                self.move_siblings(block, level, records)?;
            }
            if divided {
                let is_root = level == self.state.height();
                let (left, right) = self.write_halves(path.page(level), level, is_root, records)?;
                if is_root {
                    self.make_root(left, right);
                    self.put_root(Origin::NEW, records)?;
                    break;
                }
                child = Some(Child::Split { left, right });
            } else {
                let upper = match edit {
                    Edit::Merge(upper) if level == start => Some(upper),
                    _ => None,
                };
                child = self.put_node(path, level, upper.is_some(), emptying, records)?;
                if let Some(upper) = upper {
                    child = Some(self.drop_upper(path.page(level), level, child, upper)?);
                }
                if child.is_none() {
                    break;
                }
            }
            level += 1;
        }
        let root = self.space.commit(self.state.root())?;
        self.state.commit(root, records);
        self.keep_budget();
        self.state.trust();
        Ok(())
    }

    /// Changes the node in the working buffer of `level`. Returns whether it was split.
    ///
    /// The first node is changed as `edit` says; those above by what became of their child.
    #[inline(never)]
    fn edit_node(
        &mut self,
        path: &Path,
        level: u8,
        edit: &Edit<'_>,
        child: Option<Child>,
    ) -> Result<bool, Fault<F::Error>> {
        let at_edge = path.is_right_edge();
        self.with_separator(|tree, separator| match child {
            None => tree.edit_first(level, edit, at_edge, separator),
            Some(child) => {
                tree.lower_first_key(level, edit)?;
                tree.edit_parent(level, path.slot(level), child, at_edge, separator)
            }
        })
    }

    /// Writes the node of `level`, which was not split.
    ///
    /// Returns what its parent has to record, or `None` if the parent does not change.
    #[inline]
    fn put_node(
        &mut self,
        path: &Path,
        level: u8,
        merged: bool,
        emptying: Option<Emptying>,
        records: u32,
    ) -> Result<Option<Child>, Fault<F::Error>> {
        debug_assert!(self.state.is_in_doubt(), "a page is written while no operation runs");
        let is_root = level == self.state.height();
        let Some(leave) = self.prepare_node(path, level, merged, emptying)? else {
            return Ok(Some(Child::Gone));
        };
        // A root that has shrunk is at another level than before.
        let node = self.level(if is_root { self.state.height() } else { level });
        let origin = Origin { name: Some(path.page(level)), leave };
        Ok(match self.place.write(&mut self.space, node, origin, records)? {
            Written::Stays => None,
            Written::At(page) if is_root => {
                self.state.move_root(page);
                None
            }
            Written::At(pointer) => Some(Child::Moved(pointer)),
        })
    }

    /// Prepares the node of `level`: a root shrinks, an empty node is gone.
    ///
    /// Returns whether its parent is written as well, or `None` if the node is gone.
    // What it finds out is gone when the node is written.
    #[inline(never)]
    fn prepare_node(
        &mut self,
        path: &Path,
        level: u8,
        merged: bool,
        emptying: Option<Emptying>,
    ) -> Result<Option<bool>, Fault<F::Error>> {
        let (name, is_root) = (path.page(level), level == self.state.height());
        let mut leave = emptying.is_some_and(|it| self.block_of(name) == it.block);
        if is_root {
            self.shrink()?;
        } else if self.node(self.working(level), level)?.count() == 0 {
            self.count_node_less(level)?;
            self.place.remove_empty(&mut self.space, level, name);
            return Ok(None);
        } else {
            leave = leave || merged || S::Kind::writes_parent(self, path, level + 1)?;
        }
        Ok(Some(leave))
    }

    /// Removes `upper` after the node at `name` has taken in its records.
    ///
    /// `upper` is no longer needed once the parent is written. Returns what the parent has to
    /// record.
    #[inline(never)]
    fn drop_upper(
        &mut self,
        name: u32,
        level: u8,
        put: Option<Child>,
        upper: &Upper,
    ) -> Result<Child, Fault<F::Error>> {
        self.count_node_less(level)?;
        let (page, is_lowest) = upper.page(level);
        if is_lowest {
            self.space.retire(PageNumber(page));
        }
        self.space.forget_address(page);
        Ok(Child::Merged(match put {
            Some(Child::Moved(pointer)) => pointer,
            _ => name,
        }))
    }

    /// Counts one node of `level` less, if it is an inner node.
    ///
    /// A checkpoint may have counted fewer than its tree has: a mount from it walks no tree.
    #[inline(never)]
    pub(super) fn count_node_less(&mut self, level: u8) -> Result<(), Fault<F::Error>> {
        let fault = self.corrupt_at(self.state.root(), Damage::CheckpointCountsTooFew);
        if level == 1 || self.state.drop_inner_node() { Ok(()) } else { Err(fault) }
    }

    /// Makes sure that the working buffer of `level` holds its node.
    // Its frame is gone when the node is changed.
    #[inline(never)]
    fn load_working(&mut self, path: &mut Path, level: u8) -> Result<(), Fault<F::Error>> {
        let (working, buffers) = (self.working(level), self.space.log.frames.count());
        // A store that reads into another buffer than it works in has copied the node during the
        // descent. Otherwise the node is entered again even if the buffer holds its page, which may
        // have been read untrimmed, for the bound of a node below it.
        if working == S::reading(level, self.state.height(), buffers) {
            self.load_trimmed(path, level, Some(working))?;
        }
        Ok(())
    }

    pub(super) fn working_node(&mut self, level: u8) -> Result<NodeMut<'_>, Fault<F::Error>> {
        let (working, level) = (self.working(level), self.level(level));
        let fault = self.corrupt(working, Damage::NodeTooFull);
        node_mut_in::<S, F>(&mut self.space, working, level).ok_or(fault)
    }

    fn edit_first(
        &mut self,
        level: u8,
        edit: &Edit<'_>,
        right_edge: bool,
        separator: &mut Separator<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        match *edit {
            Edit::Move => {}
            Edit::Insert { index, key, value } => {
                let record = Record { index, key: Some(key), payload: value };
                return self.insert_or_split(level, &record, right_edge, separator);
            }
            Edit::Replace { index, value } => self.working_node(level)?.set_payload(index, value),
            Edit::Remove { index } => self.working_node(level)?.remove(index),
            Edit::Split => {
                let count = self.count_to_split(level)?;
                return self.split(level, count.div_ceil(2), None, separator);
            }
            Edit::Merge(upper) => self.take_in(level, upper, separator.high())?,
            #[cfg(feature = "paper-modes")]
            Edit::Rotate(rotation) => self.shift(level, rotation.upper, separator)?,
            Edit::Batch(changes) if batch::IS_BUILT => {
                return self.edit_leaf(changes, right_edge, separator);
            }
            Edit::Batch(_) => {}
        }
        Ok(false)
    }

    /// Lowers the first key of an inner node if the new key is below it.
    fn lower_first_key(&mut self, level: u8, edit: &Edit<'_>) -> Result<(), Fault<F::Error>> {
        let key = match edit {
            Edit::Insert { key, .. } => Some(*key),
            Edit::Batch(changes) if batch::IS_BUILT => changes.lowest_key(),
            _ => None,
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
        separator: &mut Separator<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        let fault = self.corrupt(self.working(level), Damage::NodeChanged);
        if level == 2 && !matches!(child, Child::Moved(_)) {
            // While a batch is applied, its changes are elsewhere: all of the leaf's leave.
            self.batch.forget_leaves();
        }
        #[cfg(debug_assertions)]
        let capacity = self.capacity(level);
        let mut node = self.working_node(level)?;
        if slot >= node.count() {
            return Err(fault);
        }
        match child {
            Child::Gone => {
                // The upper neighbour takes the range. (The lower one may hold records that were
                // trimmed.)
                if S::SPLITS.trims() && slot + 1 < node.count() {
                    node.copy_key(slot, slot + 1);
                }
                node.remove(slot);
            }
            Child::Moved(pointer) => node.set_payload(slot, &pointer.to_le_bytes()),
            Child::Merged(_) if slot + 1 >= node.count() => return Err(fault),
            Child::Merged(pointer) => {
                node.set_payload(slot, &pointer.to_le_bytes());
                node.remove(slot + 1);
                // Both changes go into one program.
                node.make_whole();
            }
            #[cfg(feature = "paper-modes")]
            Child::Rotated(_) if slot + 1 >= node.count() => return Err(fault),
            #[cfg(feature = "paper-modes")]
            Child::Rotated(pointer) => {
                node.set_payload(slot + 1, &pointer.to_le_bytes());
                node.set_key(slot + 1, separator.high());
            }
            Child::Split { left, right } => {
                node.set_payload(slot, &left.to_le_bytes());
                if S::SPLITS.trims() && separator.high() <= node.as_node().key(0) {
                    node.set_key(0, separator.low());
                }
                // Each full node is split by itself, the highest first: the parent has room.
                #[cfg(debug_assertions)]
                assert!(!S::SPLITS.trims() || node.count() < capacity, "a parent lacks room");
                let right = right.to_le_bytes();
                let record = Record { index: slot + 1, key: None, payload: &right };
                return self.insert_or_split(level, &record, right_edge, separator);
            }
        }
        Ok(false)
    }

    /// Writes two nodes that were rotated, the upper one to a free page.
    ///
    /// That one is in the spare buffer. Until the parent is written, reads trim what the lower one
    /// has gained, and the former upper node counts.
    #[cfg(feature = "paper-modes")]
    fn put_rotated(
        &mut self,
        name: u32,
        level: u8,
        rotation: &Rotation,
        records: u32,
    ) -> Result<Child, Fault<F::Error>> {
        let (node, left, right) = (self.level(level), self.working(level), self.spare(level));
        let halves = Halves { name, left, right };
        let (_, upper) = self.place.write_halves(&mut self.space, node, halves, records)?;
        if rotation.lower_gains {
            let origin = Origin { name: Some(name), leave: true };
            self.place.write(&mut self.space, node, origin, records)?;
        } else {
            // The buffer still counts as the page on the chip, trimmed.
            self.space.log.frames.hold(left, PageNumber(self.space.current_page(name)));
        }
        self.space.retire(PageNumber(rotation.upper.page));
        self.space.forget_address(rotation.upper.page);
        Ok(Child::Rotated(upper))
    }

    #[inline(never)]
    fn write_halves(
        &mut self,
        name: u32,
        level: u8,
        is_root: bool,
        records: u32,
    ) -> Result<(u32, u32), Fault<F::Error>> {
        debug_assert!(self.state.is_in_doubt(), "a page is written while no operation runs");
        let halves = Halves { name, left: self.working(level), right: self.spare(level) };
        if is_root {
            self.state.grow();
        }
        if level > 1 {
            self.state.add_inner_node();
        }
        let node = self.level(level);
        let pointers = self.place.write_halves(&mut self.space, node, halves, records)?;
        if S::SPLITS.lower_stays() && pointers.0 == name {
            // The buffer still counts as the page on the chip, trimmed to the records that belong
            // to it.
            self.space.log.frames.hold(halves.left, PageNumber(self.space.current_page(name)));
        }
        Ok(pointers)
    }

    /// Writes the root, which commits.
    #[inline(never)]
    pub(super) fn put_root(&mut self, origin: Origin, records: u32) -> Result<(), Fault<F::Error>> {
        debug_assert!(self.state.is_in_doubt(), "a page is written while no operation runs");
        let root = self.level(self.state.height());
        match self.place.write(&mut self.space, root, origin, records)? {
            Written::At(page) => self.state.move_root(page),
            Written::Stays => {}
        }
        Ok(())
    }

    /// Makes a root, in its working buffer, above the halves of the one that was split.
    #[inline(never)]
    fn make_root(&mut self, left: u32, right: u32) {
        self.state.add_inner_node();
        let root = self.level(self.state.height());
        let key_bytes = root.shape.key_bytes();
        self.with_separator(|tree, separator| {
            let mut node = tree.empty_node(root);
            node.insert(0, &[0; KEY_BYTES_MAX][..key_bytes], &left.to_le_bytes());
            node.insert(1, separator.high(), &right.to_le_bytes());
        });
    }

    /// An empty node in the working buffer of `level`.
    pub(super) fn empty_node(&mut self, level: Level) -> NodeMut<'_> {
        let working = S::working(level.level, level.height, self.space.log.frames.count());
        let extent = S::extent(self.space.log.layout().area_bytes(), level.level, level.height);
        self.space.log.frames.forget(working);
        NodeMut::empty(&mut self.space.log.frames.bytes_mut(working)[extent], level.shape)
    }
}
