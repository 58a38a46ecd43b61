//! LA-tree: changes wait in flash, above the nodes that they belong to, until lookups pay for them.
//!
//! The root and the nodes of every K-th level above the leaves have a buffer: pages of changes, in
//! the order in which they came. A lookup reads the buffers on its way, the newest page first,
//! until one has its key. When a buffer has cost the lookups as much as emptying it would, it is
//! emptied: into the buffers of the next such level, or into the leaves. So it waits for ever if
//! nothing is looked up.
//!
//! The paper names LA-tree without a description. Chosen here: K = 2. The last page of the root's
//! buffer gathers in RAM and is lost at a cut, unless each change is to be durable, which programs
//! a page for each. A change is made blindly, and reads nothing. Emptying is taken to read the
//! pages of the buffer, and to read and write one page for each of its changes, but at most one for
//! each node it can go to. A page has room for 128 changes.

use std::collections::BTreeMap;

use super::super::cost::{PROGRAM_NS, READ_NS};
use super::super::device::{Event, Events};
use super::model::{Model, OnFlash, Work};
use super::numbered::Numbered;
use super::store::{State, Store};
use super::tree::{Rule, Touch, Tree};

/// Levels from one with buffers to the next.
const LEVELS: usize = 2;

/// Changes of a page.
pub const CHANGES: usize = 128;

/// A key, and whether it is to be there.
type Change = (u32, bool);

/// Changes in flash.
#[derive(Default)]
struct Buffer {
    /// The number of each page and its changes, the oldest first.
    pages: Vec<(u32, Vec<Change>)>,
    /// What it has cost the lookups since it was emptied.
    cost_ns: u64,
}

impl Buffer {
    /// The newest change of a key, and the pages that finding it reads.
    fn find(&self, key: u32) -> (Option<bool>, u32) {
        for (read, (_, changes)) in (1..).zip(self.pages.iter().rev()) {
            if let Some(&(_, is_there)) = changes.iter().rev().find(|change| change.0 == key) {
                return (Some(is_there), read);
            }
        }
        (None, self.pages.len() as u32)
    }

    fn changes(&self) -> usize {
        self.pages.iter().map(|(_, changes)| changes.len()).sum()
    }
}

/// A tree with buffers in flash.
pub struct Lazy {
    flash: OnFlash<Numbered>,
    is_durable: bool,
    /// Levels from one with buffers to the next.
    levels: usize,
    /// Changes of a page.
    of_page: usize,
    /// Changes that are not yet in a page of the root's buffer.
    ram: Vec<Change>,
    root: Buffer,
    /// The buffers of other nodes.
    lower: BTreeMap<u32, Buffer>,
}

impl Lazy {
    /// An empty tree with pages of so many changes. If it is durable, each change programs a page.
    pub fn new(is_durable: bool, of_page: usize) -> Self {
        let (tree, store) = (Tree::new(Rule::Nodes { merges: true }), Numbered::new());
        let (ram, root, lower) = (Vec::new(), Buffer::default(), BTreeMap::new());
        Self {
            flash: OnFlash { tree, store },
            is_durable,
            levels: LEVELS,
            of_page,
            ram,
            root,
            lower,
        }
    }

    /// Adds a page to the root's buffer, or to that of a node.
    fn append(&mut self, node: Option<u32>, changes: &[Change], events: &mut Events) {
        let page = self.flash.store.numbers.take();
        events.push(Event::Write(page));
        let buffer = match node {
            Some(node) => self.lower.entry(node).or_default(),
            None => &mut self.root,
        };
        buffer.pages.push((page, changes.to_vec()));
    }

    fn note(&mut self, change: Change, events: &mut Events) {
        self.ram.retain(|&(key, _)| key != change.0);
        self.ram.push(change);
        if !self.is_durable && self.ram.len() < self.of_page {
            return;
        }
        match self.root.pages.last_mut() {
            // The page in which durable changes gather is replaced as a whole.
            Some((page, changes)) if changes.len() < self.of_page => {
                events.push(Event::Write(*page));
                changes.clone_from(&self.ram);
            }
            _ => {
                let changes = self.ram.clone();
                self.append(None, &changes, events);
            }
        }
        if self.ram.len() == self.of_page {
            self.ram.clear();
        }
    }

    /// The level of a place on the path, 0 for a leaf.
    fn level(&self, depth: usize) -> usize {
        self.flash.tree.path().len() - 1 - depth
    }

    /// The next level below this one that has buffers, or the leaves.
    const fn below(&self, level: usize) -> usize {
        level.saturating_sub(1) / self.levels * self.levels
    }

    /// How many nodes are so many levels below a node.
    fn nodes_below(&self, node: u32, levels: usize) -> u64 {
        let children = self.flash.tree.children(node);
        match levels {
            0 => 1,
            1 => children.len() as u64,
            _ => children.iter().map(|&child| self.nodes_below(child, levels - 1)).sum(),
        }
    }

    /// What emptying the buffer of the node at this place of the path is taken to cost.
    fn emptying_ns(&self, depth: usize, buffer: &Buffer) -> u64 {
        let level = self.level(depth);
        let levels = level - self.below(level);
        let targets = self.nodes_below(self.flash.tree.path()[depth], levels);
        let written = targets.min(buffer.changes() as u64);
        buffer.pages.len() as u64 * READ_NS + written * (READ_NS + PROGRAM_NS)
    }

    /// Finds a key.
    ///
    /// Returns whether it is there, and the pages read: of the root's buffer, of each other buffer
    /// on the way, and of nodes.
    fn find(&mut self, key: u32) -> (bool, u32, Vec<(usize, u32)>, u32) {
        let mut lower = Vec::new();
        self.flash.tree.seek(key);
        if let Some(&(_, is_there)) = self.ram.iter().find(|change| change.0 == key) {
            return (is_there, 0, lower, 0);
        }
        let (found, of_root) = self.root.find(key);
        if let Some(is_there) = found {
            return (is_there, of_root, lower, 0);
        }
        let path = self.flash.tree.path();
        for (depth, node) in path.iter().enumerate().skip(1) {
            let Some(buffer) = self.lower.get(node) else { continue };
            let (found, read) = buffer.find(key);
            lower.push((depth, read));
            if let Some(is_there) = found {
                return (is_there, of_root, lower, depth as u32);
            }
        }
        let of_nodes = path.len() as u32 - 1;
        (self.flash.tree.has(key), of_root, lower, of_nodes)
    }

    fn look_up(&mut self, key: u32, events: &mut Events) -> (bool, u32) {
        let (is_there, of_root, lower, of_nodes) = self.find(key);
        let mut read = of_root + of_nodes;
        self.root.cost_ns += u64::from(of_root) * READ_NS;
        let mut due = Vec::new();
        for (depth, pages) in lower {
            read += pages;
            let node = self.flash.tree.path()[depth];
            let Some(buffer) = self.lower.get_mut(&node) else { continue };
            buffer.cost_ns += u64::from(pages) * READ_NS;
            let cost_ns = buffer.cost_ns;
            if cost_ns >= self.emptying_ns(depth, &self.lower[&node]) {
                due.push(node);
            }
        }
        let root_is_due = of_root > 0 && self.root.cost_ns >= self.emptying_ns(0, &self.root);
        // From below, so that what is emptied first is not filled at once.
        for node in due.into_iter().rev() {
            if let Some(buffer) = self.lower.remove(&node) {
                read += self.empty(buffer, 0, events);
            }
        }
        if root_is_due {
            self.flash.tree.seek(key);
            let level = self.level(0);
            let buffer = std::mem::take(&mut self.root);
            if self.is_durable {
                self.ram.clear();
            }
            read += self.empty(buffer, self.below(level), events);
        }
        (is_there, read)
    }

    /// Moves the changes of a buffer to the nodes of a level.
    ///
    /// Returns the pages that it reads.
    fn empty(&mut self, buffer: Buffer, level: usize, events: &mut Events) -> u32 {
        let mut read = buffer.pages.len() as u32;
        let mut changes = BTreeMap::new();
        for (page, of_page) in buffer.pages {
            events.push(Event::Trim(page));
            self.flash.store.numbers.give(page);
            changes.extend(of_page);
        }
        while let Some((&key, _)) = changes.first_key_value() {
            self.flash.tree.seek(key);
            // The tree may have become lower meanwhile.
            let depth = (self.flash.tree.path().len() - 1).saturating_sub(level);
            let (_, beyond) = self.flash.tree.range(depth);
            let others = beyond.map_or_else(BTreeMap::new, |beyond| changes.split_off(&beyond));
            let group: Vec<Change> = std::mem::replace(&mut changes, others).into_iter().collect();
            if level == 0 || depth == 0 {
                read += self.flash.apply(&group, events);
                read += self.settle(events);
                continue;
            }
            let node = self.flash.tree.path()[depth];
            for page in group.chunks(self.of_page) {
                self.append(Some(node), page, events);
            }
        }
        read
    }

    /// Empties the buffers of nodes that gave keys to a neighbour or took some.
    ///
    /// So a change is never in the buffer of another node than the one that has its key.
    fn settle(&mut self, events: &mut Events) -> u32 {
        let touched = self.flash.tree.touched().iter();
        let moved: Vec<u32> = touched
            .filter(|(node, touch)| {
                !matches!(touch, Touch::New { .. }) && self.lower.contains_key(node)
            })
            .map(|&(node, _)| node)
            .chain(self.flash.tree.path().first().copied())
            .collect();
        let moved: Vec<Buffer> =
            moved.into_iter().filter_map(|node| self.lower.remove(&node)).collect();
        moved.into_iter().map(|buffer| self.empty(buffer, 0, events)).sum()
    }
}

impl Model for Lazy {
    fn work(&mut self, work: Work, key: u32, events: &mut Events) -> (bool, u32) {
        self.flash.tree.begin();
        if work == Work::LookUp {
            return self.look_up(key, events);
        }
        // LA-tree does not look, so this look is not counted.
        let (was_there, ..) = self.find(key);
        if was_there == (work == Work::Remove) {
            self.note((key, work == Work::Insert), events);
        }
        (was_there, 0)
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
        let in_flash = self.lower.values().chain([&self.root]).map(Buffer::changes).sum::<usize>();
        let in_ram = if self.is_durable { 0 } else { self.ram.len() as u32 };
        State { in_ram, in_flash: in_flash as u32, ..self.flash.store.state() }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn written(events: &Events) -> usize {
        events.iter().filter(|event| matches!(event, Event::Write(_))).count()
    }

    fn inserted(tree: &mut Lazy, keys: std::ops::Range<u32>) -> usize {
        let mut events = Events::default();
        for key in keys {
            assert_eq!(tree.work(Work::Insert, key, &mut events), (false, 0));
        }
        written(&events)
    }

    #[test]
    fn a_buffer_is_emptied_when_lookups_have_paid_for_it() {
        let mut tree = Lazy::new(false, CHANGES);
        // Two pages of changes, and one change in RAM.
        assert_eq!(inserted(&mut tree, 0..257), 2);
        assert_eq!((tree.state().in_flash, tree.state().in_ram), (256, 1));
        // Key 0 is in the older page: 50 us each time. Emptying takes 2 reads, and one leaf that is
        // read and written: 50 + 225 us.
        let mut events = Events::default();
        for _ in 0..5 {
            assert_eq!(tree.work(Work::LookUp, 0, &mut events), (true, 2));
        }
        assert_eq!((written(&events), tree.state().in_flash), (0, 256));
        assert_eq!(tree.work(Work::LookUp, 0, &mut events), (true, 4));
        // The leaf becomes three and a root.
        assert_eq!((written(&events), tree.state().in_flash), (4, 0));
        assert_eq!(tree.flash.tree.height(), 2);
        assert_eq!(tree.work(Work::LookUp, 0, &mut events), (true, 1));
    }

    #[test]
    fn without_lookups_a_buffer_is_never_emptied() {
        let mut tree = Lazy::new(false, CHANGES);
        assert_eq!(inserted(&mut tree, 0..12_800), 100);
        assert_eq!(tree.flash.tree.nodes(), 1);
        assert_eq!(tree.state().held, 100);
    }

    #[test]
    fn a_durable_change_programs_a_page() {
        let mut tree = Lazy::new(true, CHANGES);
        assert_eq!(inserted(&mut tree, 0..300), 300);
        let state = tree.state();
        assert_eq!((state.in_flash, state.in_ram, state.held), (300, 0, 3));
    }

    #[test]
    fn the_buffer_of_the_root_is_emptied_into_those_below() {
        let mut tree = Lazy::new(false, CHANGES);
        let mut events = Events::default();
        tree.levels = 1;
        // Two nodes below the root, each over half of 140 leaves.
        for key in 0..9_000 {
            tree.flash.apply(&[(key * 2, true)], &mut events);
        }
        assert_eq!(tree.flash.tree.height(), 3);
        let odd: Vec<u32> = (0..1_280).map(|at| at * 14 + 1).collect();
        for &key in &odd {
            tree.work(Work::Insert, key, &mut events);
        }
        // A lookup reads 10 pages: 250 us. Emptying takes 10 reads, and two buffers that are read
        // and written: 250 + 450 us.
        let mut lookups = 0;
        while tree.lower.is_empty() {
            assert!(!tree.work(Work::LookUp, 3, &mut events).0);
            lookups += 1;
        }
        assert_eq!((lookups, tree.lower.len()), (3, 2));
        assert_eq!((tree.state().in_flash, tree.root.changes()), (1_280, 0));
        for key in odd {
            assert!(tree.work(Work::LookUp, key, &mut events).0, "{key}");
        }
    }

    #[test]
    fn changes_follow_their_keys_when_nodes_with_buffers_are_joined() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut tree = Lazy::new(false, CHANGES);
        tree.levels = 1;
        let mut events = Events::default();
        let mut is_there = vec![false; 40_000];
        let (mut highest, mut buffers) = (0, 0);
        for step in 0..160_000_u32 {
            let key: u32 = rng.random_range(0..40_000);
            let comes = step < 80_000 || rng.random_range(0..10) == 0;
            let work = if comes { Work::Insert } else { Work::Remove };
            assert_eq!(tree.work(work, key, &mut events).0, is_there[key as usize], "{step}");
            is_there[key as usize] = comes;
            let key: u32 = rng.random_range(0..40_000);
            assert_eq!(tree.work(Work::LookUp, key, &mut events).0, is_there[key as usize]);
            highest = highest.max(tree.flash.tree.height());
            buffers = buffers.max(tree.lower.len());
        }
        assert!(highest == 3 && buffers >= 3 && tree.flash.tree.joins() > 300);
        for (key, is_there) in (0..).zip(is_there) {
            assert_eq!(tree.work(Work::LookUp, key, &mut events).0, is_there, "{key}");
        }
    }
}
