//! Trees that gather changes in RAM and write all changes of one leaf at once: IBSF and MB-tree.
//!
//! A change waits with its key. A newer change of a key takes the place of the older one, and a key
//! that comes and goes before it is on flash leaves nothing. When the buffer is full, one leaf is
//! written with all of its changes. What waits is lost at a cut.
//!
//! - `ibsf` writes the leaf of the *oldest* change.
//! - `mb` writes the leaf with the *most* changes; of equals, the youngest. Its leaves have several
//!   pages.
//!
//! The paper names both and describes neither. Chosen here: a change reads the way to its leaf, as
//! in the other trees, because the answer says whether the key was there; the buffer has room for a
//! change of each thousandth record; a leaf of `mb` has at most 4 pages, its header is in the first
//! of them, and of its pages those are written that changed.

use std::collections::{BTreeMap, BTreeSet};

use super::super::device::Events;
use super::model::{Model, OnFlash, Work};
use super::numbered::Numbered;
use super::store::{OwnPages, State, Store};
use super::tree::{Rule, Tree};

/// The most pages of a leaf of `mb`.
pub const LEAF_PAGES: usize = 4;

/// Which leaf is written when the buffer is full.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Oldest,
    Fullest,
}

/// A change that waits.
struct Change {
    is_there: bool,
    /// The number of changes before the first one of its key.
    age: u64,
}

/// Changes of the leaves, and which leaf has the most.
#[derive(Default)]
struct Fullness {
    /// For each leaf its changes, and the key of one of them.
    of: BTreeMap<u32, (u32, u32)>,
    order: BTreeSet<(u32, u32)>,
}

impl Fullness {
    fn add(&mut self, leaf: u32, key: u32) {
        let (count, of) = self.of.entry(leaf).or_insert((0, key));
        self.order.remove(&(*count, leaf));
        (*count, *of) = (*count + 1, key);
        self.order.insert((*count, leaf));
    }

    fn take(&mut self, leaf: u32, changes: u32) {
        let Some((count, _)) = self.of.get_mut(&leaf) else { return };
        self.order.remove(&(*count, leaf));
        *count -= changes.min(*count);
        if *count == 0 {
            self.of.remove(&leaf);
        } else {
            self.order.insert((*count, leaf));
        }
    }

    /// A key of the leaf with the most changes.
    fn most(&self) -> Option<u32> {
        self.order.last().map(|(_, leaf)| self.of[leaf].1)
    }
}

/// A tree on flash, and the changes that are not yet there.
pub struct Buffered<S> {
    flash: OnFlash<S>,
    victim: Victim,
    /// Levels of a leaf of several pages above its pages.
    above: usize,
    room: usize,
    changes: BTreeMap<u32, Change>,
    /// The keys by age.
    ages: BTreeMap<u64, u32>,
    next_age: u64,
    fullness: Fullness,
}

/// IBSF with room for so many changes.
pub fn ibsf(room: usize) -> Buffered<OwnPages> {
    let tree = Tree::new(Rule::Nodes { merges: true });
    Buffered::new(OnFlash { tree, store: OwnPages::default() }, Victim::Oldest, 0, room)
}

/// MB-tree with room for so many changes, and leaves of at most so many pages.
pub fn mb(room: usize, pages: usize) -> Buffered<Numbered> {
    let tree = Tree::new(Rule::Leaves { pages });
    Buffered::new(OnFlash { tree, store: Numbered::with_headers() }, Victim::Fullest, 1, room)
}

/// MB-tree with room for so many changes, whose leaves are nodes of one page.
pub fn mb_one_page(room: usize) -> Buffered<OwnPages> {
    let tree = Tree::new(Rule::Nodes { merges: true });
    Buffered::new(OnFlash { tree, store: OwnPages::default() }, Victim::Fullest, 0, room)
}

impl<S: Store> Buffered<S> {
    fn new(flash: OnFlash<S>, victim: Victim, above: usize, room: usize) -> Self {
        let (changes, ages, fullness) = (BTreeMap::new(), BTreeMap::new(), Fullness::default());
        Self { flash, victim, above, room: room.max(1), changes, ages, next_age: 0, fullness }
    }

    /// The place on the path of the leaf with all of its pages.
    fn leaf_depth(&self) -> usize {
        (self.flash.tree.path().len() - 1).saturating_sub(self.above)
    }

    fn leaf(&self) -> u32 {
        self.flash.tree.path()[self.leaf_depth()]
    }

    fn is_there(&self, key: u32) -> bool {
        self.changes.get(&key).map_or_else(|| self.flash.tree.has(key), |change| change.is_there)
    }

    /// Notes a change of a key whose leaf is the last of the path.
    ///
    /// Returns the pages that it reads.
    fn note(&mut self, key: u32, is_there: bool, events: &mut Events) -> u32 {
        if let Some(change) = self.changes.get_mut(&key) {
            change.is_there = is_there;
            if !is_there && !self.flash.tree.has(key) {
                self.ages.remove(&change.age);
                self.changes.remove(&key);
                self.fullness.take(self.leaf(), 1);
            }
            return 0;
        }
        let mut read = 0;
        if self.changes.len() == self.room {
            read = self.write_a_leaf(events);
            self.flash.tree.seek(key);
        }
        let age = self.next_age;
        self.next_age += 1;
        self.changes.insert(key, Change { is_there, age });
        self.ages.insert(age, key);
        if self.victim == Victim::Fullest {
            self.fullness.add(self.leaf(), key);
        }
        read
    }

    /// Writes the victim with all of its changes.
    fn write_a_leaf(&mut self, events: &mut Events) -> u32 {
        let key = match self.victim {
            Victim::Oldest => self.ages.values().next().copied(),
            Victim::Fullest => self.fullness.most(),
        };
        let Some(key) = key else { return 0 };
        self.flash.tree.seek(key);
        let leaf = self.leaf();
        let (first, beyond) = self.flash.tree.range(self.leaf_depth());
        let of_leaf: Vec<(u32, bool)> = self
            .changes
            .range(first..)
            .take_while(|&(&key, _)| beyond.is_none_or(|beyond| key < beyond))
            .map(|(&key, change)| (key, change.is_there))
            .collect();
        for (key, _) in &of_leaf {
            if let Some(change) = self.changes.remove(key) {
                self.ages.remove(&change.age);
            }
        }
        self.fullness.take(leaf, of_leaf.len() as u32);
        let read = self.flash.apply(&of_leaf, events);
        let touched = self.flash.tree.touched();
        if touched.iter().any(|(node, _)| self.fullness.of.contains_key(node)) {
            // A neighbour gave or took keys, and its changes go with them.
            self.fullness = Fullness::default();
            for &key in self.changes.keys() {
                self.flash.tree.seek(key);
                let leaf = self.flash.tree.path()[self.leaf_depth()];
                self.fullness.add(leaf, key);
            }
        }
        read
    }
}

impl<S: Store> Model for Buffered<S> {
    fn work(&mut self, work: Work, key: u32, events: &mut Events) -> (bool, u32) {
        self.flash.tree.begin();
        self.flash.tree.seek(key);
        let was_there = self.is_there(key);
        if work == Work::LookUp && self.changes.contains_key(&key) {
            return (was_there, 0);
        }
        let mut read = self.flash.store.read(self.flash.tree.path());
        if work != Work::LookUp && was_there == (work == Work::Remove) {
            read += self.note(key, work == Work::Insert, events);
        }
        (was_there, read)
    }

    fn tree(&self) -> &Tree {
        &self.flash.tree
    }

    fn store(&mut self) -> &mut dyn Store {
        &mut self.flash.store
    }

    fn format(&mut self, events: &mut Events) {
        self.flash.format(events);
    }

    fn state(&self) -> State {
        State { in_ram: self.changes.len() as u32, ..self.flash.store.state() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::device::Event;
    use super::*;

    /// Does the work and returns the pages that it wrote.
    fn writes<S: Store>(tree: &mut Buffered<S>, work: Work, keys: &[u32]) -> usize {
        let mut events = Events::default();
        for &key in keys {
            let (was_there, _) = tree.work(work, key, &mut events);
            assert_eq!(was_there, work != Work::Insert, "{work:?} {key}");
        }
        events.iter().filter(|event| matches!(event, Event::Write(_))).count()
    }

    fn waiting<S: Store>(tree: &Buffered<S>) -> Vec<u32> {
        tree.changes.keys().copied().collect()
    }

    /// Two leaves with the keys 0, 10, 20 and so on; the second begins with 640.
    fn on_flash<S: Store>(mut tree: Buffered<S>) -> Buffered<S> {
        for at in 0..129 {
            tree.flash.apply(&[(at * 10, true)], &mut Events::default());
        }
        assert_eq!((tree.flash.tree.height(), tree.flash.tree.nodes()), (2, 3));
        tree
    }

    #[test]
    fn ibsf_writes_the_leaf_of_the_oldest_change_with_all_of_its_changes() {
        let mut tree = on_flash(ibsf(4));
        assert_eq!(writes(&mut tree, Work::Insert, &[5, 701, 702, 15]), 0);
        // 701 and 702 are more, but 5 is older.
        assert_eq!(writes(&mut tree, Work::Insert, &[703]), 1);
        assert_eq!(waiting(&tree), [701, 702, 703]);
        assert_eq!(writes(&mut tree, Work::Insert, &[25]), 0);
        assert_eq!(writes(&mut tree, Work::Insert, &[35]), 1);
        assert_eq!(waiting(&tree), [25, 35]);
        assert_eq!(writes(&mut tree, Work::LookUp, &[5, 15, 25, 35, 701, 702, 703]), 0);
    }

    #[test]
    fn ibsf_drops_what_is_redundant() {
        let mut tree = on_flash(ibsf(2));
        for _ in 0..50 {
            // It comes and goes in RAM.
            assert_eq!(writes(&mut tree, Work::Insert, &[5]), 0);
            assert_eq!(writes(&mut tree, Work::Remove, &[5]), 0);
            assert!(waiting(&tree).is_empty());
        }
        for _ in 0..50 {
            // Of the changes of a key on flash the last one waits.
            assert_eq!(writes(&mut tree, Work::Remove, &[10]), 0);
            assert_eq!(writes(&mut tree, Work::Insert, &[10]), 0);
            assert_eq!(waiting(&tree), [10]);
        }
    }

    #[test]
    fn mb_writes_the_leaf_with_the_most_changes() {
        let mut tree = mb(4, LEAF_PAGES);
        // Two leaves of 2 and 4 pages: the keys from 1,280 on are in the second.
        for key in 0..400 {
            tree.flash.apply(&[(key * 10, true)], &mut Events::default());
        }
        let root = tree.flash.tree.path()[0];
        let leaves = tree.flash.tree.children(root).to_vec();
        assert_eq!((tree.flash.tree.height(), leaves.len()), (3, 2));
        assert_eq!(tree.flash.tree.children(leaves[0]).len(), 2);
        // The oldest change is of the first leaf; three are in two pages of the second.
        assert_eq!(writes(&mut tree, Work::Insert, &[5, 1_301, 1_302, 2_501]), 0);
        assert_eq!(writes(&mut tree, Work::Insert, &[15]), 2);
        assert_eq!(waiting(&tree), [5, 15]);
    }

    #[test]
    fn a_leaf_of_mb_grows_and_shrinks_by_a_page() {
        let mut tree = mb(1, LEAF_PAGES);
        let pages = |tree: &Buffered<Numbered>| tree.state().held;
        let keys: Vec<u32> = (0..190).collect();
        writes(&mut tree, Work::Insert, &keys);
        // Two pages and no third for the header, which is in the first.
        assert_eq!((tree.flash.tree.height(), pages(&tree)), (2, 2));
        // The first page is in RAM with the root: only what is in the second is read.
        assert_eq!(tree.work(Work::LookUp, 3, &mut Events::default()), (true, 0));
        assert_eq!(tree.work(Work::LookUp, 180, &mut Events::default()), (true, 1));
        writes(&mut tree, Work::Remove, &keys[..150]);
        assert_eq!((tree.flash.tree.height(), pages(&tree)), (1, 1));
    }
}
