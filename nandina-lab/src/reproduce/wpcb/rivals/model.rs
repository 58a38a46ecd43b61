//! The operations that each counted tree has, and the trees that write each change at once.

use super::super::device::Events;
use super::store::{State, Store};
use super::tree::Tree;

/// One kind of operation on a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Inserts a key that is absent.
    Insert,
    /// Looks a key up.
    LookUp,
    /// Removes a key.
    Remove,
}

/// A tree that is counted.
pub trait Model {
    /// Does one operation.
    ///
    /// Returns whether the key was there before, and the pages that it read.
    fn work(&mut self, work: Work, key: u32, events: &mut Events) -> (bool, u32);

    /// The tree as it is stored in flash.
    fn tree(&self) -> &Tree;

    /// How it reaches flash.
    fn store(&mut self) -> &mut dyn Store;

    /// Writes the empty tree.
    fn format(&mut self, events: &mut Events);

    /// The counts that Table 2 needs.
    fn state(&self) -> State;
}

/// A tree and its pages. As a model, each change is written at once.
pub struct OnFlash<S> {
    /// The tree.
    pub tree: Tree,
    /// Its pages.
    pub store: S,
}

impl<S: Store> OnFlash<S> {
    /// Makes these changes: whether each key is to be there.
    ///
    /// Each node is read and written once. Returns the pages that it reads.
    pub fn apply(&mut self, changes: &[(u32, bool)], events: &mut Events) -> u32 {
        self.tree.begin();
        let mut read = Vec::new();
        for &(key, is_there) in changes {
            self.tree.seek(key);
            for &node in self.tree.path() {
                let is_in_ram = self.tree.touched().iter().any(|&(touched, _)| touched == node);
                if !read.contains(&node) && (read.is_empty() || !is_in_ram) {
                    read.push(node);
                }
            }
            match is_there {
                true => self.tree.insert(key),
                false => self.tree.remove(key),
            };
        }
        // The store still knows where these nodes were.
        self.store.read(&read) + self.store.write(&self.tree, events)
    }
}

impl<S: Store> Model for OnFlash<S> {
    fn work(&mut self, work: Work, key: u32, events: &mut Events) -> (bool, u32) {
        self.tree.descend(key);
        let read = self.store.read(self.tree.path());
        match work {
            Work::LookUp => (self.tree.has(key), read),
            Work::Insert => (!self.tree.insert(key), read + self.store.write(&self.tree, events)),
            Work::Remove => (self.tree.remove(key), read + self.store.write(&self.tree, events)),
        }
    }

    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn store(&mut self) -> &mut dyn Store {
        &mut self.store
    }

    fn format(&mut self, events: &mut Events) {
        self.store.write(&self.tree, events);
        self.store.raw();
    }

    fn state(&self) -> State {
        self.store.state()
    }
}
