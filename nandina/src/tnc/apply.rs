//! What a change does to nodes in RAM: records, splits, merges, and the root.
//!
//! Nothing is written, and little is read: the path is in RAM already. A mount makes changes of the
//! journal again by the same code, so that it has the same tree.
//!
//! Neighbours below one parent whose records fit in one node are merged as soon as a removal makes
//! them so small: in RAM that costs no write. `form.rs` beside this has the bound that follows.

use super::TncIndex;
use super::arena::{Arena, NO_SLOT, NOWHERE, pointer_to};
use super::journal::Group;
use crate::engine::KEY_BYTES_MAX;
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::log::Frames;
use crate::node::POINTER_BYTES;

/// Where the value of a change is.
#[derive(Clone, Copy)]
pub enum Value<'v> {
    /// The value itself.
    Given(&'v [u8]),
    /// In this page buffer, from this offset on.
    InFrame(usize, usize),
    /// In a change that waits for its page of the journal: the one with this number.
    Waiting(usize),
    /// In the journal, to which the leaf has this pointer.
    At(u32),
}

impl<'v> Value<'v> {
    /// The bytes that a leaf stores. A pointer is written to `pointer`.
    fn bytes<'s>(
        self,
        frames: &'s Frames<'_>,
        group: &'s Group<'_>,
        bytes: usize,
        pointer: &'s mut [u8; POINTER_BYTES],
    ) -> &'s [u8]
    where
        'v: 's,
    {
        match self {
            Self::Given(value) => value,
            Self::InFrame(frame, at) => &frames.bytes(frame)[at..at + bytes],
            Self::Waiting(at) => group.entry(at).1.unwrap_or(&[]),
            Self::At(to) => {
                *pointer = to.to_le_bytes();
                pointer
            }
        }
    }

    /// The pointer, if the value is in the journal.
    const fn pointer(self) -> Option<u32> {
        if let Self::At(pointer) = self { Some(pointer) } else { None }
    }
}

/// A copy of a key that outlives its node.
#[derive(Clone, Copy)]
pub struct Key([u8; KEY_BYTES_MAX]);

impl Key {
    pub fn of(key: &[u8]) -> Self {
        let mut copy = [0; KEY_BYTES_MAX];
        copy[..key.len()].copy_from_slice(key);
        Self(copy)
    }

    pub fn bytes(&self, key_bytes: usize) -> &[u8] {
        &self.0[..key_bytes]
    }
}

impl<F: Flash> TncIndex<'_, F> {
    /// Inserts a record or replaces its value. Returns whether the key was new.
    pub(super) fn apply_put(
        &mut self,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        let leaf = self.descend(key)?;
        self.mark_changed(leaf);
        let (frames, pointer) = (&self.space.log.frames, value.pointer());
        let mut bytes = [0; POINTER_BYTES];
        let value = value.bytes(frames, &self.group, self.arena.form.value_bytes, &mut bytes);
        let (index, is_full) = match self.arena.node(leaf).search(key) {
            Ok(index) => {
                match pointer {
                    Some(to) => self.point(leaf, index, to),
                    None => drop(self.arena.edit(leaf, |node| node.set_payload(index, value))),
                }
                return Ok(false);
            }
            Err(index) => (index, self.arena.node(leaf).count() >= self.arena.form.capacity(1)),
        };
        lower_first_keys(&mut self.arena, leaf, key);
        self.tree.count_record();
        if !is_full {
            self.arena.edit(leaf, |node| node.insert(index, key, value));
            pointer.into_iter().for_each(|to| self.claim_value(to));
            return Ok(true);
        }
        let left = left_count(&self.arena, leaf, index);
        let upper = free_slot(&mut self.arena, 1, leaf);
        let upper = upper.ok_or(Fault::TooHigh { height: self.tree.height() })?;
        self.arena.edit_both(leaf, upper, |low, high| low.split(high, left, index, key, value));
        pointer.into_iter().for_each(|to| self.claim_value(to));
        self.tree.count_node(1);
        self.arena.mark_dirty(upper);
        self.insert_upper(leaf, upper)?;
        Ok(true)
    }

    /// Notes that a change begins with this leaf.
    fn mark_changed(&mut self, leaf: u16) {
        self.journal.note_change();
        self.arena.mark_dirty(leaf);
    }

    /// Adds `upper`, split from `lower`, to the parent, which may split as well.
    fn insert_upper(&mut self, lower: u16, upper: u16) -> Result<(), Fault<F::Error>> {
        let (mut lower, mut upper) = (lower, upper);
        let key_bytes = self.arena.form.key_bytes;
        loop {
            let key = Key::of(self.arena.node(upper).key(0));
            let key = key.bytes(key_bytes);
            let level = self.arena.level(lower) + 1;
            let too_high = Fault::TooHigh { height: self.tree.height() };
            let parent = self.arena.parent(lower);
            if parent == NO_SLOT {
                let first = Key::of(self.arena.node(lower).key(0));
                let root = free_slot(&mut self.arena, level, lower).ok_or(too_high)?;
                self.arena.edit(root, |node| {
                    node.insert(0, first.bytes(key_bytes), &pointer_to(lower).to_le_bytes());
                    node.insert(1, key, &pointer_to(upper).to_le_bytes());
                });
                self.arena.adopt(root, 0, lower);
                self.arena.adopt(root, 1, upper);
                self.arena.mark_dirty(root);
                self.tree.grow(root);
                return Ok(());
            }
            let index = self.arena.node(parent).child_slot(key) + 1;
            let pointer = pointer_to(upper).to_le_bytes();
            if self.arena.node(parent).count() < self.arena.form.capacity(level) {
                self.arena.edit(parent, |node| node.insert(index, key, &pointer));
                self.arena.adopt(parent, index, upper);
                return Ok(());
            }
            let left = left_count(&self.arena, parent, index);
            let beside = free_slot(&mut self.arena, level, lower).ok_or(too_high)?;
            self.arena
                .edit_both(parent, beside, |low, high| low.split(high, left, index, key, &pointer));
            self.tree.count_node(level);
            let (at, to) = if index < left { (index, parent) } else { (index - left, beside) };
            self.arena.adopt(to, at, upper);
            self.arena.adopt_moved(beside);
            self.arena.mark_dirty(beside);
            (lower, upper) = (parent, beside);
        }
    }

    /// Removes a record. Returns whether there was one.
    pub(super) fn apply_remove(&mut self, key: &[u8]) -> Result<bool, Fault<F::Error>> {
        let leaf = self.descend(key)?;
        let Ok(index) = self.arena.node(leaf).search(key) else { return Ok(false) };
        self.mark_changed(leaf);
        if self.arena.form.apart() {
            self.retire_value(self.arena.node(leaf).pointer(index));
        }
        self.arena.edit(leaf, |node| node.remove(index));
        self.tree.count_record_less();
        let mut slot = leaf;
        while slot != self.tree.root() {
            let parent = self.arena.parent(slot);
            let Some(index) = self.arena.index_of(slot) else { break };
            if self.arena.node(slot).count() == 0 {
                self.drop_child(parent, index, slot)?;
            } else if !self.merge_with_neighbour(parent, index, slot)? {
                break;
            }
            slot = parent;
        }
        self.lower_root()?;
        Ok(true)
    }

    /// Removes the child at `index`, which is empty or was merged.
    fn drop_child(&mut self, parent: u16, index: usize, child: u16) -> Result<(), Fault<F::Error>> {
        self.count_node_less(self.arena.level(child))?;
        self.retire(self.arena.place(child));
        self.arena.edit(parent, |node| node.remove(index));
        self.arena.orphan(parent);
        self.arena.free(child);
        Ok(())
    }

    /// Counts one node of this level less.
    ///
    /// A checkpoint may count fewer nodes than its tree has, and a mount from it does not walk the
    /// tree.
    fn count_node_less(&mut self, level: u8) -> Result<(), Fault<F::Error>> {
        let page = self
            .arena
            .form
            .place_of(self.arena.place(self.tree.root()))
            .0
            .min(self.arena.form.pages - 1);
        let (page, reason) = (PageNumber(page), Damage::CheckpointCountsTooFew);
        self.tree.count_node_less(level).ok_or(Fault::Corrupt { page, reason })
    }

    /// Merges the node with a neighbour, if both fit in one.
    ///
    /// A neighbour that cannot be read is left alone.
    fn merge_with_neighbour(
        &mut self,
        parent: u16,
        index: usize,
        slot: u16,
    ) -> Result<bool, Fault<F::Error>> {
        let level = self.arena.level(slot);
        let beside = [Some(index + 1), index.checked_sub(1)];
        for at in beside.into_iter().flatten() {
            if at >= self.arena.node(parent).count() {
                continue;
            }
            let neighbour = match self.child_beside(parent, at, slot) {
                Err(Fault::Corrupt { .. }) => continue,
                neighbour => neighbour?,
            };
            let records = self.arena.node(slot).count() + self.arena.node(neighbour).count();
            if records > self.arena.form.capacity(level) {
                continue;
            }
            let (lower, upper) = if at > index { (slot, neighbour) } else { (neighbour, slot) };
            self.arena.mark_dirty(lower);
            self.arena.edit_both(lower, upper, |low, high| low.append(&high.as_node()));
            if level > 1 {
                self.arena.adopt_moved(lower);
            }
            self.drop_child(parent, index.max(at), upper)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns the child at `index`, in RAM. `pinned` does not leave RAM for it.
    fn child_beside(
        &mut self,
        parent: u16,
        index: usize,
        pinned: u16,
    ) -> Result<u16, Fault<F::Error>> {
        while self.arena.free_slots() == 0 && self.arena.evict(pinned) {}
        self.child(parent, index)
    }

    /// Makes the child of the root the new root, as long as it is the only one.
    fn lower_root(&mut self) -> Result<(), Fault<F::Error>> {
        if self.tree.height() > 1 && self.arena.node(self.tree.root()).count() == 0 {
            self.arena.empty_leaf(self.tree.root());
            self.tree.become_leaf();
        }
        while self.tree.height() > 1 && self.arena.node(self.tree.root()).count() == 1 {
            let child = match self.child(self.tree.root(), 0) {
                // The tree is valid without this change, too.
                Err(Fault::Corrupt { .. }) => break,
                child => child?,
            };
            self.count_node_less(self.tree.height())?;
            self.retire(self.arena.place(self.tree.root()));
            self.arena.free(self.tree.root());
            self.arena.uproot(child);
            self.arena.mark_dirty(child);
            self.tree.lower(child);
        }
        Ok(())
    }
}

/// Lowers the first keys above the node to `key`, if they are higher.
///
/// The first key of an inner node is a lower bound, by which the node is found again.
fn lower_first_keys(arena: &mut Arena<'_>, leaf: u16, key: &[u8]) {
    let mut slot = arena.parent(leaf);
    while slot != NO_SLOT && arena.node(slot).key(0) > key {
        arena.edit(slot, |node| node.set_key(0, key));
        slot = arena.parent(slot);
    }
}

/// The number of records that stay in a full node when a new one splits it.
///
/// The new record belongs at `index`. If that is after the last record, all others stay, so
/// ascending keys leave full nodes.
fn left_count(arena: &Arena<'_>, slot: u16, index: usize) -> usize {
    let count = arena.node(slot).count();
    if index == count { count } else { (count + 1).div_ceil(2) }
}

/// Returns a free slot for a new node, and keeps `pinned` in RAM.
fn free_slot(arena: &mut Arena<'_>, level: u8, pinned: u16) -> Option<u16> {
    while arena.free_slots() == 0 {
        if !arena.evict(pinned) {
            return None;
        }
    }
    arena.take(level, NO_SLOT, NOWHERE)
}
