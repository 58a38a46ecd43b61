//! Nodes in RAM: the part of the tree that was read or changed.
//!
//! They lie in RAM that the caller provides. Together they are a subtree that contains the root
//! (TNC paper, section 6.1). Each node has a slot. A slot begins with a head, which says which node
//! is the parent, whether the node is dirty and where it is on flash; the bytes of the node follow.
//! If a child is in RAM, the pointer of its parent is the number of its slot, marked by a bit. This
//! file reads and writes no page.
//!
//! A slot is in one of five lists: free slots; clean nodes without children in RAM, in the order of
//! use; dirty nodes; nodes that were written ahead of the next commit; and the nodes of the page
//! that is being built. So no operation looks at all slots. Only clean nodes with children in RAM
//! are in no list. Such a node was used before its children, so it is the next to leave after the
//! last of them.
//!
//! A node that was written ahead stays in RAM until the commit. A mount changes again all nodes
//! that were changed since the last commit, and writes none of them. So at most as many nodes may
//! be changed as RAM holds.
//!
//! ```text
//! | place: u32 | before: u16 | behind: u16 | parent: u16 | children in RAM: u16 | level: u8 |
//! | state: u8 | node |
//! ```

use super::counters::Counters;
use super::form::{Form, SLOT_HEAD};
use crate::bytes::{u16_at, u32_at};
use crate::node::{Node, NodeMut};

/// Means "no slot": no arena has this many.
pub const NO_SLOT: u16 = u16::MAX;

/// The place of a node that was never written.
pub const NOWHERE: u32 = u32::MAX;

/// Marks a pointer to a node in RAM.
const IN_RAM: u32 = 1 << 31;

const BEFORE: usize = 4;
const BEHIND: usize = 6;
const PARENT: usize = 8;
const CHILDREN: usize = 10;
const LEVEL: usize = 12;
const STATE: usize = 13;

const FREE: u8 = 0;
const CLEAN: u8 = 1;
const DIRTY: u8 = 2;
const WRITTEN: u8 = 3;
const IN_PAGE: u8 = 4;

/// The number of states.
const STATES: usize = 5;

/// A list of slots.
#[derive(Clone, Copy)]
struct List {
    first: u16,
    last: u16,
}

impl List {
    const EMPTY: Self = Self { first: NO_SLOT, last: NO_SLOT };
}

/// The nodes in RAM.
pub struct Arena<'b> {
    bytes: &'b mut [u8],
    /// The sizes of nodes and pages, which never change.
    pub form: Form,
    /// What was counted of nodes. It is counted on when all nodes are forgotten.
    pub counters: Counters,
    slots: u16,
    /// Slots from this one on were never used.
    fresh: u16,
    used: u16,
    dirty: u16,
    /// Nodes that were written ahead of the next commit, and not changed since.
    written: u16,
    /// The list of each state.
    ///
    /// The list of clean nodes begins with the node that was used last.
    lists: [List; STATES],
}

/// The slot to which `pointer` leads, if the node is in RAM.
pub const fn slot_in(pointer: u32) -> Option<u16> {
    if pointer & IN_RAM != 0 && pointer != NOWHERE { Some(pointer as u16) } else { None }
}

/// The pointer to a node in RAM.
pub const fn pointer_to(slot: u16) -> u32 {
    IN_RAM | slot as u32
}

impl<'b> Arena<'b> {
    /// An empty arena.
    pub fn new(bytes: &'b mut [u8], form: Form) -> Self {
        let slots = form.slots(bytes.len()) as u16;
        let lists = [List::EMPTY; STATES];
        let counters = Counters::default();
        Self { bytes, form, counters, slots, fresh: 0, used: 0, dirty: 0, written: 0, lists }
    }

    /// Forgets all nodes.
    pub const fn clear(&mut self) {
        (self.fresh, self.used, self.dirty, self.written) = (0, 0, 0, 0);
        self.lists = [List::EMPTY; STATES];
    }

    /// The number of slots.
    pub const fn slots(&self) -> usize {
        self.slots as usize
    }

    /// The number of free slots.
    pub const fn free_slots(&self) -> usize {
        (self.slots - self.used) as usize
    }

    /// The number of nodes in RAM.
    pub const fn used(&self) -> usize {
        self.used as usize
    }

    /// The number of dirty nodes.
    pub const fn dirty(&self) -> usize {
        self.dirty as usize
    }

    /// The number of nodes that were written ahead of the next commit.
    pub const fn written(&self) -> usize {
        self.written as usize
    }

    /// The number of nodes that were changed since the last commit.
    pub const fn changed(&self) -> usize {
        self.dirty() + self.written()
    }

    const fn at(&self, slot: u16) -> usize {
        slot as usize * self.form.slot_bytes()
    }

    fn byte(&self, slot: u16, field: usize) -> u8 {
        self.bytes[self.at(slot) + field]
    }

    fn set_byte(&mut self, slot: u16, field: usize, to: u8) {
        let at = self.at(slot) + field;
        self.bytes[at] = to;
    }

    fn word(&self, slot: u16, field: usize) -> u16 {
        u16_at(self.bytes, self.at(slot) + field)
    }

    fn set_word(&mut self, slot: u16, field: usize, to: u16) {
        let at = self.at(slot) + field;
        self.bytes[at..at + 2].copy_from_slice(&to.to_le_bytes());
    }

    /// Whether the slot is in the list of its state.
    fn is_listed(&self, slot: u16) -> bool {
        self.byte(slot, STATE) != CLEAN || !self.has_children(slot)
    }

    /// Puts the slot into the list of its state, `before` all others or after them.
    fn link(&mut self, slot: u16, before: bool) {
        let state = usize::from(self.byte(slot, STATE));
        let List { first, last } = self.lists[state];
        let (end, toward, away) =
            if before { (first, BEHIND, BEFORE) } else { (last, BEFORE, BEHIND) };
        self.set_word(slot, toward, end);
        self.set_word(slot, away, NO_SLOT);
        if end != NO_SLOT {
            self.set_word(end, away, slot);
        }
        let list = &mut self.lists[state];
        if before || last == NO_SLOT {
            list.first = slot;
        }
        if !before || first == NO_SLOT {
            list.last = slot;
        }
    }

    /// Takes the slot out of the list of its state.
    fn unlink(&mut self, slot: u16) {
        let (before, behind) = (self.word(slot, BEFORE), self.word(slot, BEHIND));
        let state = usize::from(self.byte(slot, STATE));
        match before {
            NO_SLOT => self.lists[state].first = behind,
            before => self.set_word(before, BEHIND, behind),
        }
        match behind {
            NO_SLOT => self.lists[state].last = before,
            behind => self.set_word(behind, BEFORE, before),
        }
    }

    /// Moves the slot to the list of another state.
    fn set_state(&mut self, slot: u16, to: u8) {
        if self.is_listed(slot) {
            self.unlink(slot);
        }
        self.dirty -= u16::from(self.is_dirty(slot));
        self.written -= u16::from(self.byte(slot, STATE) == WRITTEN);
        self.set_byte(slot, STATE, to);
        self.dirty += u16::from(to == DIRTY);
        self.counters.note_dirty(self.dirty);
        self.written += u16::from(to == WRITTEN);
        if self.is_listed(slot) {
            self.link(slot, true);
        }
    }

    /// Sets how many children of the node RAM holds.
    fn set_children(&mut self, slot: u16, to: u16) {
        let was_listed = self.is_listed(slot);
        if was_listed && to > 0 && self.byte(slot, STATE) == CLEAN {
            self.unlink(slot);
        }
        self.set_word(slot, CHILDREN, to);
        if !was_listed && self.is_listed(slot) {
            self.link(slot, false);
        }
    }

    /// Takes a free slot for an empty, clean node of `level`.
    pub fn take(&mut self, level: u8, parent: u16, place: u32) -> Option<u16> {
        let slot = match self.lists[usize::from(FREE)].first {
            NO_SLOT if self.fresh == self.slots => return None,
            NO_SLOT => {
                self.fresh += 1;
                self.fresh - 1
            }
            slot => {
                self.unlink(slot);
                slot
            }
        };
        self.used += 1;
        self.counters.note_nodes(self.used);
        self.set_place(slot, place);
        self.set_word(slot, PARENT, parent);
        self.set_word(slot, CHILDREN, 0);
        self.set_byte(slot, LEVEL, level);
        self.set_byte(slot, STATE, CLEAN);
        self.link(slot, true);
        let (shape, at) = (self.form.shape(level), self.at(slot) + SLOT_HEAD);
        NodeMut::empty(&mut self.bytes[at..at + self.form.node_bytes], shape);
        Some(slot)
    }

    /// Frees the slot.
    pub fn free(&mut self, slot: u16) {
        self.set_state(slot, FREE);
        self.used -= 1;
    }

    /// Notes that the node was used just now.
    pub fn touch(&mut self, slot: u16) {
        if self.byte(slot, STATE) == CLEAN && self.is_listed(slot) {
            self.unlink(slot);
            self.link(slot, true);
        }
    }

    /// Where the node is on flash, or [`NOWHERE`].
    pub fn place(&self, slot: u16) -> u32 {
        u32_at(self.bytes, self.at(slot))
    }

    pub fn set_place(&mut self, slot: u16, place: u32) {
        let at = self.at(slot);
        self.bytes[at..at + 4].copy_from_slice(&place.to_le_bytes());
    }

    /// The slot of the parent, or [`NO_SLOT`].
    pub fn parent(&self, slot: u16) -> u16 {
        self.word(slot, PARENT)
    }

    pub fn level(&self, slot: u16) -> u8 {
        self.byte(slot, LEVEL)
    }

    pub fn is_dirty(&self, slot: u16) -> bool {
        self.byte(slot, STATE) == DIRTY
    }

    /// Whether RAM holds a child of the node.
    fn has_children(&self, slot: u16) -> bool {
        self.word(slot, CHILDREN) > 0
    }

    /// The node, for reading.
    pub fn node(&self, slot: u16) -> Node<'_> {
        // Every node was checked when it was read.
        self.parsed(slot).unwrap_or(Node::EMPTY)
    }

    /// The node, or `None` if its bytes are not those of a node.
    pub fn parsed(&self, slot: u16) -> Option<Node<'_>> {
        let level = self.level(slot);
        let node = Node::parse(self.node_bytes(slot), self.form.shape(level))?;
        (node.count() <= self.form.capacity(level)).then_some(node)
    }

    /// The bytes of the node.
    pub fn node_bytes(&self, slot: u16) -> &[u8] {
        &self.bytes[self.at(slot) + SLOT_HEAD..][..self.form.node_bytes]
    }

    /// The bytes of the node, to be read from a page.
    pub fn node_bytes_mut(&mut self, slot: u16) -> &mut [u8] {
        let at = self.at(slot) + SLOT_HEAD;
        &mut self.bytes[at..at + self.form.node_bytes]
    }

    /// Changes a node.
    pub fn edit<R>(&mut self, slot: u16, change: impl FnOnce(&mut NodeMut<'_>) -> R) -> Option<R> {
        let shape = self.form.shape(self.level(slot));
        NodeMut::parse(self.node_bytes_mut(slot), shape).map(|mut node| change(&mut node))
    }

    /// Changes two nodes of one level.
    pub fn edit_both<R>(
        &mut self,
        lower: u16,
        upper: u16,
        change: impl FnOnce(&mut NodeMut<'_>, &mut NodeMut<'_>) -> R,
    ) -> Option<R> {
        let shape = self.form.shape(self.level(lower));
        let (size, bytes) = (self.form.slot_bytes(), self.form.node_bytes);
        let (first, last) = (lower.min(upper), lower.max(upper));
        let (low, high) = self.bytes.split_at_mut(usize::from(last) * size);
        let first = &mut low[usize::from(first) * size + SLOT_HEAD..][..bytes];
        let last = &mut high[SLOT_HEAD..][..bytes];
        let (one, two) = if lower < upper { (first, last) } else { (last, first) };
        let (mut one, mut two) = (NodeMut::parse(one, shape)?, NodeMut::parse(two, shape)?);
        Some(change(&mut one, &mut two))
    }

    /// Makes `child` a child of `parent`, which points to it at `index`.
    pub fn adopt(&mut self, parent: u16, index: usize, child: u16) {
        self.set_word(child, PARENT, parent);
        self.set_children(parent, self.word(parent, CHILDREN) + 1);
        self.edit(parent, |node| node.set_payload(index, &pointer_to(child).to_le_bytes()));
    }

    /// Notes that `parent` lost a child in RAM.
    pub fn orphan(&mut self, parent: u16) {
        self.set_children(parent, self.word(parent, CHILDREN).saturating_sub(1));
    }

    /// Makes the node the root.
    pub fn uproot(&mut self, slot: u16) {
        self.set_word(slot, PARENT, NO_SLOT);
    }

    /// Makes `slot` the parent of all children in RAM to which it points.
    ///
    /// Some of them came from another node.
    pub fn adopt_moved(&mut self, slot: u16) {
        for index in 0..self.node(slot).count() {
            let child = slot_in(self.node(slot).pointer(index));
            if let Some(child) = child.filter(|&child| self.parent(child) != slot) {
                self.orphan(self.parent(child));
                self.adopt(slot, index, child);
            }
        }
    }

    /// Makes the node an empty leaf.
    pub fn empty_leaf(&mut self, slot: u16) {
        self.set_byte(slot, LEVEL, 1);
        self.set_children(slot, 0);
        let shape = self.form.shape(1);
        NodeMut::empty(self.node_bytes_mut(slot), shape);
    }

    /// The index at which its parent points to the node.
    pub fn index_of(&self, slot: u16) -> Option<usize> {
        let parent = self.parent(slot);
        if parent == NO_SLOT { None } else { self.node(parent).slot_of(pointer_to(slot)) }
    }

    /// Marks the node and its whole path as dirty.
    ///
    /// As the paper states it, a commit looks for "a dirty node that has no dirty child". If a
    /// clean node were between two dirty ones, the upper one would be written twice. So the whole
    /// path is dirty from the start.
    pub fn mark_dirty(&mut self, slot: u16) {
        let mut next = slot;
        while next != NO_SLOT && !self.is_dirty(next) {
            self.set_state(next, DIRTY);
            next = self.parent(next);
        }
    }

    /// Puts the node at `place` into the page that is being built.
    pub fn put_into_page(&mut self, slot: u16, place: u32) {
        self.set_state(slot, IN_PAGE);
        self.set_place(slot, place);
    }

    /// The first node of the page that is being built.
    pub fn first_in_page(&self) -> Option<u16> {
        let slot = self.lists[usize::from(IN_PAGE)].last;
        (slot != NO_SLOT).then_some(slot)
    }

    /// Notes that the node was written to `place`.
    ///
    /// If it was written in a step ahead of the next commit, it `stays` in RAM until that commit.
    pub fn mark_written(&mut self, slot: u16, place: u32, stays: bool) {
        self.counters.count_written();
        self.set_state(slot, if stays { WRITTEN } else { CLEAN });
        self.set_place(slot, place);
    }

    /// Notes that all nodes that were written ahead belong to a commit.
    pub fn release_written(&mut self) {
        while self.written > 0 {
            self.set_state(self.lists[usize::from(WRITTEN)].first, CLEAN);
        }
    }

    /// The next dirty node of `level` after `slot`; the first after [`NO_SLOT`].
    pub fn next_dirty(&self, level: u8, slot: u16) -> Option<u16> {
        let mut next = match slot {
            NO_SLOT => self.lists[usize::from(DIRTY)].first,
            slot => self.word(slot, BEHIND),
        };
        while next != NO_SLOT && self.level(next) != level {
            next = self.word(next, BEHIND);
        }
        (next != NO_SLOT).then_some(next)
    }

    /// Removes the least recently used clean node without children in RAM.
    ///
    /// The pointer of its parent leads to its place on flash again. Neither the root nor `pinned`
    /// leaves. Returns `false` if no node can leave.
    pub fn evict(&mut self, pinned: u16) -> bool {
        let mut slot = self.lists[usize::from(CLEAN)].last;
        while slot != NO_SLOT && (slot == pinned || self.parent(slot) == NO_SLOT) {
            slot = self.word(slot, BEFORE);
        }
        if slot == NO_SLOT {
            return false;
        }
        let (parent, place) = (self.parent(slot), self.place(slot));
        if let Some(index) = self.index_of(slot) {
            self.edit(parent, |node| node.set_payload(index, &place.to_le_bytes()));
        }
        self.free(slot);
        self.orphan(parent);
        true
    }
}
