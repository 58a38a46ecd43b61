//! BFTL: a node is a list of pages, each with changes of many nodes.
//!
//! Each entry that a node gains or loses is an *index unit*. Units gather in RAM, the reservation
//! buffer; when it is full, they are packed into as few pages as the commit policy finds, and the
//! list of each of their nodes gains a page. The lists, the node translation table, are in RAM. A
//! list of more than 4 pages is compacted: its node is written into as few pages as hold it.
//!
//! The paper names BFTL without a description. Chosen here: a unit takes the room of two entries,
//! since it names its node and what was done, so a page has 64; a newer unit of an entry takes the
//! place of the older one in RAM; the policy keeps the units of a node together, the largest groups
//! first, each in the first page with room; a compacted node has its pages to itself; the buffer
//! has room for a change of each thousandth record, and a whole page at least.

use std::collections::BTreeMap;

use super::super::device::{Event, Events};
use super::numbers::Numbers;
use super::store::{State, Store, beside_the_root};
use super::tree::{Touch, Tree};

/// Units of a page, each with the room of two entries.
pub const UNITS: usize = 64;

/// The longest list of pages.
const LIST: usize = 4;

/// A unit in a page: the node, the key of the entry, and whether it is there.
type Unit = (u32, u32, bool);

/// The nodes in lists of pages.
#[derive(Default)]
pub struct IndexUnits {
    room: usize,
    /// Units of a page.
    units: usize,
    /// The reservation buffer, by node and key.
    reserved: BTreeMap<(u32, u32), bool>,
    /// The translation table: the pages of each node, the oldest first.
    lists: Vec<Vec<u32>>,
    /// The keys of each node, those in RAM included.
    keys: Vec<Vec<u32>>,
    /// The units of each page that some list names.
    pages: Vec<Vec<Unit>>,
    /// How many lists name each page.
    named: Vec<u32>,
    numbers: Numbers,
    nodes: u64,
    node_pages: u64,
}

impl IndexUnits {
    /// A reservation buffer for so many units, and pages of so many.
    pub fn new(room: usize, units: usize) -> Self {
        Self { room: room.max(1), units, ..Self::default() }
    }

    fn list(&self, node: u32) -> &[u32] {
        self.lists.get(node as usize).map_or(&[], Vec::as_slice)
    }

    /// Writes units into a new page, and adds it to the lists of their nodes.
    fn program(&mut self, units: Vec<Unit>, events: &mut Events) {
        let page = self.numbers.take();
        events.push(Event::Write(page));
        self.node_pages += 1;
        let at = page as usize;
        if self.pages.len() <= at {
            self.pages.resize(at + 1, Vec::new());
            self.named.resize(at + 1, 0);
        }
        for &(node, _, _) in &units {
            let list = &mut self.lists[node as usize];
            if list.last() != Some(&page) {
                list.push(page);
                self.named[at] += 1;
                self.nodes += 1;
            }
        }
        self.pages[at] = units;
    }

    /// Forgets the list of a node, and the pages that no other list names.
    fn let_go(&mut self, node: u32, events: &mut Events) {
        for page in std::mem::take(&mut self.lists[node as usize]) {
            let at = page as usize;
            self.named[at] -= 1;
            if self.named[at] == 0 {
                self.pages[at] = Vec::new();
                events.push(Event::Trim(page));
                self.numbers.give(page);
            }
        }
    }

    /// Notes what is other in a node than before.
    fn note(&mut self, node: u32, keys: &[u32]) {
        let before = std::mem::take(&mut self.keys[node as usize]);
        let gone = before.iter().filter(|key| keys.binary_search(key).is_err());
        let new = keys.iter().filter(|key| before.binary_search(key).is_err());
        for (key, is_there) in gone.map(|key| (key, false)).chain(new.map(|key| (key, true))) {
            self.reserved.insert((node, *key), is_there);
        }
        self.keys[node as usize] = keys.to_vec();
    }

    /// Writes the reservation buffer. Returns the pages that it reads for compacting.
    fn commit(&mut self, events: &mut Events) -> u32 {
        let mut groups: Vec<Vec<Unit>> = Vec::new();
        for ((node, key), is_there) in std::mem::take(&mut self.reserved) {
            match groups.last_mut() {
                Some(group) if group[0].0 == node && group.len() < self.units => {
                    group.push((node, key, is_there));
                }
                _ => groups.push(vec![(node, key, is_there)]),
            }
        }
        let mut nodes: Vec<u32> = groups.iter().map(|group| group[0].0).collect();
        nodes.dedup();
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        let mut pages: Vec<Vec<Unit>> = Vec::new();
        for group in groups {
            match pages.iter_mut().find(|page| page.len() + group.len() <= self.units) {
                Some(page) => page.extend(group),
                None => pages.push(group),
            }
        }
        for page in pages {
            self.program(page, events);
        }
        nodes.into_iter().map(|node| self.compact(node, events)).sum()
    }

    /// Writes a node into as few pages as hold it, if its list is too long.
    fn compact(&mut self, node: u32, events: &mut Events) -> u32 {
        let read = self.list(node).len();
        if read <= LIST {
            return 0;
        }
        self.let_go(node, events);
        let units: Vec<Unit> =
            self.keys[node as usize].iter().map(|&key| (node, key, true)).collect();
        for page in units.chunks(self.units) {
            self.program(page.to_vec(), events);
        }
        read as u32
    }
}

impl Store for IndexUnits {
    fn read(&mut self, nodes: &[u32]) -> u32 {
        // The root is in a page buffer; a page with units of several nodes of a path is read once.
        let lists = nodes.iter().skip(1).flat_map(|&node| self.list(node));
        let pages: Vec<u32> = [super::numbers::NOWHERE].into_iter().chain(lists.copied()).collect();
        beside_the_root(&pages)
    }

    fn write(&mut self, tree: &Tree, events: &mut Events) -> u32 {
        let mut read = 0;
        for &(node, touch) in tree.touched() {
            let at = node as usize;
            if self.lists.len() <= at {
                self.lists.resize(at + 1, Vec::new());
                self.keys.resize(at + 1, Vec::new());
            }
            if !matches!(touch, Touch::New { .. }) && !tree.path().contains(&node) {
                // A neighbour: the way to the leaf was read before.
                read += self.list(node).len() as u32;
            }
            if touch == Touch::Gone {
                self.let_go(node, events);
                self.keys[at].clear();
                let reserved: Vec<(u32, u32)> =
                    self.reserved.range((node, 0)..=(node, u32::MAX)).map(|(at, _)| *at).collect();
                for unit in reserved {
                    self.reserved.remove(&unit);
                }
            } else {
                self.note(node, tree.keys(node));
            }
        }
        if self.reserved.len() >= self.room {
            read += self.commit(events);
        }
        read
    }

    fn pages(&self) -> u32 {
        self.numbers.end()
    }

    fn state(&self) -> State {
        let in_ram = self.reserved.len() as u32;
        let (node_pages, nodes) = (self.node_pages, self.nodes);
        State { in_ram, held: self.numbers.taken(), node_pages, nodes, ..State::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::model::{Model, OnFlash, Work};
    use super::super::tree::Rule;
    use super::*;

    fn bftl(room: usize) -> OnFlash<IndexUnits> {
        let tree = Tree::new(Rule::Nodes { merges: true });
        OnFlash { tree, store: IndexUnits::new(room, UNITS) }
    }

    fn inserted(tree: &mut OnFlash<IndexUnits>, key: u32) -> (Vec<Event>, u32) {
        let mut events = Events::default();
        let (was_there, read) = tree.work(Work::Insert, key, &mut events);
        assert!(!was_there);
        (events.iter().collect(), read)
    }

    #[test]
    fn a_list_of_five_pages_is_compacted() {
        let mut tree = bftl(1);
        for key in 0..4 {
            assert_eq!(inserted(&mut tree, key), (vec![Event::Write(key)], 0));
        }
        assert_eq!(tree.store.list(0), [0, 1, 2, 3]);
        let compacted =
            [vec![Event::Write(4)], (0..5).map(Event::Trim).collect(), vec![Event::Write(4)]];
        assert_eq!(inserted(&mut tree, 4), (compacted.concat(), 5));
        assert_eq!(tree.store.list(0), [4]);
        assert_eq!(tree.store.state().held, 1);
    }

    #[test]
    fn units_of_many_nodes_share_a_page() {
        let mut store = IndexUnits::new(300, UNITS);
        (store.lists, store.keys) = (vec![Vec::new(); 5], vec![Vec::new(); 5]);
        // Groups of 40, 30, 20, 24 and 100 units: the last is a full page and 36.
        for (node, units) in [(0, 40), (1, 30), (2, 20), (3, 24), (4, 100)] {
            store.note(node, &(0..units).collect::<Vec<_>>());
        }
        let mut events = Events::default();
        assert_eq!(store.commit(&mut events), 0);
        let lens: Vec<usize> = store.pages.iter().map(Vec::len).collect();
        assert_eq!(lens, [64, 64, 56, 30]);
        let lists: Vec<&[u32]> = (0..5).map(|node| store.list(node)).collect();
        assert_eq!(lists, [&[1][..], &[3], &[2], &[1], &[0, 2]]);
        assert_eq!((store.state().nodes, store.state().node_pages), (6, 4));
    }

    /// The keys of a node, from its pages and from RAM.
    fn keys_of(store: &IndexUnits, node: u32) -> BTreeSet<u32> {
        let in_pages = store.list(node).iter().flat_map(|&page| &store.pages[page as usize]);
        let in_pages = in_pages.filter(|unit| unit.0 == node).map(|&(_, key, is)| (key, is));
        let in_ram = store.reserved.range((node, 0)..=(node, u32::MAX));
        let mut keys = BTreeSet::new();
        for (key, is_there) in in_pages.chain(in_ram.map(|(&(_, key), &is)| (key, is))) {
            if is_there {
                keys.insert(key);
            } else {
                keys.remove(&key);
            }
        }
        keys
    }

    #[test]
    fn pages_and_ram_together_hold_every_node() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut tree = bftl(100);
        let mut keys: Vec<u32> = (0..4_000).collect();
        keys.shuffle(&mut rng);
        let mut is_there = vec![false; keys.len()];
        for step in 0..12_000_usize {
            let key = keys[rng.random_range(0..keys.len())];
            let comes = step < 6_000 || rng.random_range(0..4) == 0;
            let work = if comes { Work::Insert } else { Work::Remove };
            let (was_there, _) = tree.work(work, key, &mut Events::default());
            assert_eq!(was_there, is_there[key as usize]);
            is_there[key as usize] = comes;
            if step % 500 == 0 {
                let mut nodes = vec![tree.tree.path()[0]];
                while let Some(node) = nodes.pop() {
                    let keys: BTreeSet<u32> = tree.tree.keys(node).iter().copied().collect();
                    assert_eq!(keys_of(&tree.store, node), keys);
                    assert!(tree.store.list(node).len() <= LIST);
                    nodes.extend(tree.tree.children(node));
                }
            }
        }
    }
}
