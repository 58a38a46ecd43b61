//! Which nodes are in RAM, which of these are dirty, and which may leave.
//!
//! A node in RAM has its parent in RAM; a change makes its whole path dirty. Only a clean node with
//! no child in RAM leaves. Nothing here knows keys.

use std::collections::BTreeSet;

/// The number of a node.
pub type Id = u32;

#[derive(Clone, Copy, Default)]
struct State {
    parent: Option<Id>,
    in_ram: bool,
    dirty: bool,
    /// Children that are in RAM.
    children: u32,
    /// When it was last used.
    used: u64,
}

/// The states of all nodes of a tree.
#[derive(Default)]
pub struct Cache {
    states: Vec<State>,
    /// The nodes that may leave, the least recently used first.
    idle: BTreeSet<(u64, Id)>,
    clock: u64,
    in_ram: u64,
    dirty: u64,
    most: u64,
    most_dirty: u64,
    loaded: u64,
}

impl Cache {
    /// Nodes in RAM.
    pub const fn in_ram(&self) -> u64 {
        self.in_ram
    }

    /// Dirty nodes; all are in RAM.
    pub const fn dirty(&self) -> u64 {
        self.dirty
    }

    /// The most nodes that were in RAM, and the most that were dirty.
    pub const fn most(&self) -> (u64, u64) {
        (self.most, self.most_dirty)
    }

    /// Nodes that were read from flash.
    pub const fn loaded(&self) -> u64 {
        self.loaded
    }

    /// The parent of a node; none of the root.
    pub fn parent(&self, id: Id) -> Option<Id> {
        self.states[id as usize].parent
    }

    /// Whether a node is dirty.
    pub fn is_dirty(&self, id: Id) -> bool {
        self.states[id as usize].dirty
    }

    /// Changes a state, and keeps the list of those that may leave.
    fn edit(&mut self, id: Id, edit: impl FnOnce(&mut State)) {
        let state = &mut self.states[id as usize];
        let idle = |state: &State| state.in_ram && !state.dirty && state.children == 0;
        let before = idle(state).then_some(state.used);
        edit(state);
        let after = idle(state).then_some(state.used);
        if before != after {
            before.map(|used| self.idle.remove(&(used, id)));
            after.map(|used| self.idle.insert((used, id)));
        }
    }

    fn count(&mut self) {
        self.most = self.most.max(self.in_ram);
        self.most_dirty = self.most_dirty.max(self.dirty);
    }

    /// A new node, dirty. Its number was given up before, or is the next.
    pub fn born(&mut self, id: Id) {
        let state = State { in_ram: true, dirty: true, used: self.clock, ..State::default() };
        if id as usize == self.states.len() {
            self.states.push(state);
        } else {
            self.states[id as usize] = state;
        }
        self.in_ram += 1;
        self.dirty += 1;
        self.count();
    }

    /// Gives a node another parent, or none.
    pub fn adopt(&mut self, id: Id, parent: Option<Id>) {
        let State { parent: before, in_ram, .. } = self.states[id as usize];
        self.states[id as usize].parent = parent;
        if in_ram {
            before.into_iter().for_each(|id| self.edit(id, |state| state.children -= 1));
            parent.into_iter().for_each(|id| self.edit(id, |state| state.children += 1));
        }
    }

    /// A node is in the tree no more. It has no child.
    pub fn gone(&mut self, id: Id) {
        self.adopt(id, None);
        let State { in_ram, dirty, .. } = self.states[id as usize];
        self.in_ram -= u64::from(in_ram);
        self.dirty -= u64::from(dirty);
        self.edit(id, |state| *state = State::default());
    }

    /// Begins an operation: what is used from now on was used last.
    pub fn begin(&mut self) {
        self.clock += 1;
    }

    /// Uses a node whose parent is in RAM; reads it if it is not.
    pub fn touch(&mut self, id: Id) {
        let State { in_ram, parent, .. } = self.states[id as usize];
        let clock = self.clock;
        self.edit(id, |state| (state.in_ram, state.used) = (true, clock));
        if !in_ram {
            parent.into_iter().for_each(|id| self.edit(id, |state| state.children += 1));
            self.loaded += 1;
            self.in_ram += 1;
            self.count();
        }
    }

    /// Marks a node and its path dirty.
    pub fn soil(&mut self, id: Id) {
        let mut next = Some(id);
        while let Some(id) = next {
            let State { parent, dirty, .. } = self.states[id as usize];
            if !dirty {
                self.edit(id, |state| state.dirty = true);
                self.dirty += 1;
            }
            next = parent;
        }
        self.count();
    }

    /// Writes every dirty node once; returns how many.
    pub fn commit(&mut self) -> u64 {
        for id in 0..self.states.len() as Id {
            if self.is_dirty(id) {
                self.edit(id, |state| state.dirty = false);
            }
        }
        std::mem::take(&mut self.dirty)
    }

    /// Lets the least recently used node leave that may.
    pub fn evict(&mut self) -> bool {
        let Some((_, id)) = self.idle.pop_first() else {
            return false;
        };
        let state = &mut self.states[id as usize];
        state.in_ram = false;
        let parent = state.parent;
        parent.into_iter().for_each(|id| self.edit(id, |state| state.children -= 1));
        self.in_ram -= 1;
        true
    }

    /// Checks the counts and that no node in RAM lacks its parent there.
    #[cfg(test)]
    pub fn check(&self) {
        let there: Vec<&State> = self.states.iter().filter(|state| state.in_ram).collect();
        assert_eq!(there.len() as u64, self.in_ram);
        assert_eq!(self.states.iter().filter(|state| state.dirty).count() as u64, self.dirty);
        let parents = there.iter().filter_map(|state| state.parent);
        assert!(parents.clone().all(|parent| self.states[parent as usize].in_ram));
        let children: u32 = there.iter().map(|state| state.children).sum();
        assert_eq!(children as usize, parents.count());
        let idle = |state: &&&State| !state.dirty && state.children == 0;
        assert_eq!(there.iter().filter(idle).count(), self.idle.len());
        // A dirty node has a dirty parent, so that a commit writes a tree.
        for state in self.states.iter().filter(|state| state.dirty) {
            assert!(state.in_ram && state.parent.is_none_or(|id| self.is_dirty(id)));
        }
    }
}
