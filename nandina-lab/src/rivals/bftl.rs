//! BFTL: a node is a list of pages, each with index units of many nodes.
//!
//! An *index unit* says of an entry of a node that it is there, or that it is gone. Units gather in
//! RAM, in the *reservation buffer*; when it is full, and at a flush, they are packed into as few
//! pages as first fit finds, the largest groups of one node first. These pages are one group that
//! counts as a whole ([`super::pages`]). The *translation table* in RAM leads from a node to its
//! pages; a mount reads all pages for it. A list of more than four pages is compacted: the node is
//! written anew, and its older units no longer count.
//!
//! Each node can take four pages, however little it has in them. So there are never more nodes than
//! have room in that way, beside the pages of one commit and of one compaction.

mod worst;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use nandina::engine::{Description, EngineFault, UpdateScheme};
use nandina::flash::{Flash, Needs, PageNumber};
use nandina::node::PageHeader;
use nandina::{Fault, Options, Violation};

use super::engine::{Heap, Leaf, Rival, has_pages_and_head};
use super::pages::{Body, HEAD_BYTES, Head, NoIndex, Pages, count_at, number_at};
use super::tree::{Bytes, Edit, Most, Node, Path, apply, descend, visit};
use super::worst::{Device, Worst};

/// The longest list of pages.
const LIST: usize = 4;

/// Units of a removal: it changes at most an entry of each level.
const LEVELS: usize = 16;

/// The most pages of a compacted node.
const COMPACTED: u32 = 2;

/// Bytes of the count of units, which a page begins with.
const COUNT_BYTES: usize = 2;

/// Bytes of a unit before its key: the number of its node, and what it says.
const UNIT_HEAD_BYTES: usize = 5;

/// The unit says that the entry is there.
const IS_THERE: u8 = 1;

/// The unit is the first one of a node that is written anew: older pages say nothing about it.
const BEGINS: u8 = 2;

/// A unit as it is in RAM: what an entry has, or that it is gone.
type Unit = Option<Bytes>;

/// The node and the key of a unit.
type Entry = (u32, Bytes);

/// An index of nodes in lists of pages.
pub struct Bftl<F> {
    pages: Pages<F>,
    most: Most,
    /// The state with all changes, also of those that wait.
    head: Head,
    /// The pages of each node, the oldest first.
    lists: BTreeMap<u32, Vec<u32>>,
    /// The reservation buffer.
    reserved: BTreeMap<Entry, Unit>,
    /// Nodes that are gone; the last commit needs their pages.
    gone: Vec<u32>,
    /// Nodes of the tree.
    nodes: u32,
    /// Changes that wait.
    waiting: u32,
    /// Units with which the buffer is full; with 0 no change waits.
    room: usize,
    waiting_max: u32,
    /// The root as it is now, if it was read.
    root: Option<Node>,
    key_bytes: usize,
    value_bytes: usize,
}

/// Bytes of what a unit has: a value, or the number of a child.
fn payload_bytes(options: &Options) -> usize {
    options.value_bytes.max(4)
}

/// Units of a page with an area of so many bytes.
const fn units(area_bytes: usize, key_bytes: usize, payload_bytes: usize) -> usize {
    area_bytes.saturating_sub(HEAD_BYTES + COUNT_BYTES)
        / (UNIT_HEAD_BYTES + key_bytes + payload_bytes)
}

/// The units in the body of a page: node, what it says, key, and what the entry has.
fn units_in(
    body: &[u8],
    key_bytes: usize,
    payload_bytes: usize,
) -> impl Iterator<Item = (u32, u8, &[u8], &[u8])> {
    let each = UNIT_HEAD_BYTES + key_bytes + payload_bytes;
    body[COUNT_BYTES..].chunks_exact(each).take(count_at(body, 0)).map(move |unit| {
        let (key, payload) = unit[UNIT_HEAD_BYTES..].split_at(key_bytes);
        (number_at(unit, 0), unit[4], key, payload)
    })
}

impl<F: Flash> Bftl<F> {
    fn payload_bytes(&self) -> usize {
        self.value_bytes.max(4)
    }

    fn units(&self) -> usize {
        let area_bytes = nandina::log::layout_of(&self.pages.flash.geometry()).area_bytes();
        units(area_bytes, self.key_bytes, self.payload_bytes())
    }

    /// Bytes of what an entry of this level has.
    fn entry_bytes(&self, level: u8) -> usize {
        if level == 1 { self.value_bytes } else { 4 }
    }

    /// The pages that hold this many units, in the worst case: all but one are half full.
    fn pages_of(&self, units: usize) -> u32 {
        (2 * units).div_ceil(self.units()) as u32 + 1
    }

    /// A node as its pages have it.
    fn stored(&mut self, number: u32, level: u8) -> Result<Node, EngineFault<F>> {
        let mut node = Node::new(number, level);
        let (key_bytes, payload_bytes) = (self.key_bytes, self.payload_bytes());
        let entry_bytes = self.entry_bytes(level);
        for &page in self.lists.get(&number).map_or(&[][..], Vec::as_slice) {
            let body = self.pages.body(page)?;
            for (of, says, key, payload) in units_in(body, key_bytes, payload_bytes) {
                if of != number {
                    continue;
                }
                if says & IS_THERE != 0 {
                    node.entries
                        .insert(Bytes::from_slice(key), Bytes::from_slice(&payload[..entry_bytes]));
                } else {
                    node.entries.remove(key);
                }
            }
        }
        Ok(node)
    }

    /// The units of a node that wait.
    fn waiting_of(number: u32) -> RangeInclusive<Entry> {
        (number, Bytes::new())
            ..=(number, Bytes::from_elem(u8::MAX, nandina::engine::KEY_BYTES_MAX + 1))
    }

    /// A node as it is now.
    fn node(&mut self, number: u32, level: u8) -> Result<Node, EngineFault<F>> {
        if let Some(root) = self.root.as_ref().filter(|root| root.number == number) {
            return Ok(root.clone());
        }
        let mut node = self.stored(number, level)?;
        for ((_, key), unit) in self.reserved.range(Self::waiting_of(number)) {
            match unit {
                Some(payload) => node.entries.insert(key.clone(), payload.clone()),
                None => node.entries.remove(key),
            };
        }
        if number == self.head.root {
            self.root = Some(node.clone());
        }
        Ok(node)
    }

    /// The way to a leaf.
    fn path(&mut self, is_before: impl Fn(&[u8]) -> bool) -> Result<Path, EngineFault<F>> {
        let head = self.head;
        descend(&head, 1, is_before, |number, level| self.node(number, level))
    }

    /// The units that make a node what it becomes.
    fn units_of(edit: &Edit) -> Vec<(Entry, Unit)> {
        let nothing = BTreeMap::new();
        let Some(after) = &edit.after else { return Vec::new() };
        let before = edit.before.as_ref().map_or(&nothing, |node| &node.entries);
        let gone = before.keys().filter(|key| !after.entries.contains_key(*key));
        let gone = gone.map(|key| ((after.number, key.clone()), None));
        let new = after.entries.iter().filter(|(key, has)| before.get(*key) != Some(*has));
        let new = new.map(|(key, has)| ((after.number, key.clone()), Some(has.clone())));
        gone.chain(new).collect()
    }

    /// Whether so many nodes have room, whatever their pages become, with a commit of these units.
    fn has_room(&self, nodes: u32, units: usize) -> bool {
        let nodes = nodes.max(self.lists.len() as u32);
        let commit = self.pages_of(self.room + units.max(LEVELS));
        nodes.saturating_mul(LIST as u32).saturating_add(commit + COMPACTED + 2)
            <= self.pages.count()
    }

    /// Makes the changes of nodes in RAM.
    fn reserve(&mut self, edits: Vec<Edit>, units: Vec<(Entry, Unit)>) {
        self.reserved.extend(units);
        for edit in edits {
            match (edit.before, edit.after) {
                (Some(before), None) => {
                    self.nodes -= 1;
                    self.gone.push(before.number);
                    self.reserved.retain(|(node, _), _| *node != before.number);
                }
                (before, Some(after)) => {
                    self.nodes += u32::from(before.is_none());
                    if after.number == self.head.root {
                        self.root = Some(after);
                    }
                }
                (None, None) => {}
            }
        }
        self.root = self.root.take().filter(|root| root.number == self.head.root);
    }

    /// Packs what waits into pages: groups of one node, the largest first, each where it fits.
    fn pack(&self) -> Vec<Vec<(Entry, Unit)>> {
        let most = self.units();
        let mut groups: Vec<Vec<(Entry, Unit)>> = Vec::new();
        for (entry, unit) in &self.reserved {
            let unit = (entry.clone(), unit.clone());
            match groups.last_mut() {
                Some(group) if group[0].0.0 == entry.0 && group.len() < most => group.push(unit),
                _ => groups.push(vec![unit]),
            }
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        let mut pages: Vec<Vec<(Entry, Unit)>> = Vec::new();
        for group in groups {
            match pages.iter_mut().find(|page| page.len() + group.len() <= most) {
                Some(page) => page.extend(group),
                None => pages.push(group),
            }
        }
        pages
    }

    /// The bytes of a page of units, of which the first begins its node or not.
    fn body(&self, units: &[(Entry, Unit)], begins: bool) -> Body {
        let payload_bytes = self.payload_bytes();
        let mut bytes = (units.len() as u16).to_le_bytes().to_vec();
        for (at, ((node, key), unit)) in units.iter().enumerate() {
            let begins = if begins && at == 0 { BEGINS } else { 0 };
            let says = if unit.is_some() { IS_THERE | begins } else { begins };
            bytes.extend(node.to_le_bytes());
            bytes.push(says);
            bytes.extend(key);
            let end = bytes.len() + payload_bytes;
            bytes.extend(unit.as_deref().unwrap_or(&[]));
            bytes.resize(end, 0);
        }
        Body { level: 1, tag: 0, bytes }
    }

    /// Adds a page to the list of a node, once.
    fn list(&mut self, node: u32, page: u32) {
        let list = self.lists.entry(node).or_default();
        if list.last() != Some(&page) {
            list.push(page);
            self.pages.hold(page);
        }
    }

    /// Forgets the list of a node.
    fn let_go(&mut self, node: u32) -> Result<(), EngineFault<F>> {
        for page in self.lists.remove(&node).unwrap_or_default() {
            self.pages.release(page)?;
        }
        Ok(())
    }

    /// Writes what waits.
    fn commit(&mut self) -> Result<(), EngineFault<F>> {
        if self.reserved.is_empty() && self.gone.is_empty() {
            self.waiting = 0;
            return Ok(());
        }
        let mut packed = self.pack();
        if packed.is_empty() {
            // A root that goes leaves no unit, only another root.
            packed.push(Vec::new());
        }
        let bodies: Vec<Body> = packed.iter().map(|units| self.body(units, false)).collect();
        let pages = self.pages.write(&self.head, &bodies)?;
        self.reserved.clear();
        self.waiting = 0;
        let mut longer = Vec::new();
        for (page, units) in pages.into_iter().zip(packed) {
            for ((node, _), _) in units {
                self.list(node, page);
                longer.push(node);
            }
        }
        for node in std::mem::take(&mut self.gone) {
            self.let_go(node)?;
        }
        longer.sort_unstable();
        longer.dedup();
        longer.into_iter().try_for_each(|node| self.compact(node))
    }

    /// Writes a node anew if its list is too long. Nothing waits.
    fn compact(&mut self, number: u32) -> Result<(), EngineFault<F>> {
        if self.lists.get(&number).is_none_or(|list| list.len() <= LIST) {
            return Ok(());
        }
        // The bytes of a value or a child, with zeros behind them.
        let whole = if self.value_bytes >= 4 { 1 } else { 2 };
        let node = self.stored(number, whole)?;
        let mut units: Vec<(Entry, Unit)> =
            node.entries.into_iter().map(|(key, has)| ((number, key), Some(has))).collect();
        if units.is_empty() {
            // A unit that takes nothing away, and begins the node.
            units.push(((number, Bytes::from_elem(0, self.key_bytes)), None));
        }
        let bodies: Vec<Body> = units
            .chunks(self.units())
            .enumerate()
            .map(|(at, units)| self.body(units, at == 0))
            .collect();
        let pages = self.pages.write(&self.head, &bodies)?;
        self.let_go(number)?;
        pages.into_iter().for_each(|page| self.list(number, page));
        Ok(())
    }
}

impl<F: Flash> Rival<F> for Bftl<F> {
    const HEAP: Heap = Heap { page: 20, decoded: 7, waiting: 4 };
    const DESCRIPTION: Description = Description {
        key: "bftl",
        name: "BFTL",
        summary: "a node is a list of pages, and a page has index units of many nodes",
        source: "named in Table 2 of the WPCB-tree paper (Ho and Park, 2018)",
        code: 240,
        needs: Needs { rewrite: true, atomic_rewrite: true, no_bad_blocks: true, ..Needs::NOTHING },
        updates: UpdateScheme::InPlace,
        ..Description::EMPTY
    };

    fn new(pages: Pages<F>, most: Most, options: &Options) -> Self {
        let Options { key_bytes, value_bytes, write_buffer, .. } = *options;
        let mut bftl = Self {
            pages,
            most,
            head: Head::default(),
            lists: BTreeMap::new(),
            reserved: BTreeMap::new(),
            gone: Vec::new(),
            nodes: 0,
            waiting: 0,
            room: 0,
            waiting_max: options.write_buffer_changes.unwrap_or(u32::MAX),
            root: None,
            key_bytes,
            value_bytes,
        };
        bftl.room = write_buffer * bftl.units();
        bftl
    }

    fn most(area_bytes: usize, options: &Options) -> Most {
        let Options { key_bytes, value_bytes, .. } = *options;
        // A node has as many entries as a page has room for, and its units fill two at most.
        let units = 2 * units(area_bytes, key_bytes, payload_bytes(options));
        let entries = |has: usize| (area_bytes.saturating_sub(2) / (key_bytes + has)).min(units);
        Most { leaf: entries(value_bytes), parent: entries(4), inner: entries(4) }
    }

    fn pages_needed(device: &Device<'_>, records: u32) -> u64 {
        worst::pages_needed(device, records)
    }

    fn worst(device: &Device<'_>, records: u32) -> Worst {
        worst::worst(device, records)
    }

    has_pages_and_head!();

    fn records(&self) -> u32 {
        self.head.records
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn format(&mut self) -> Result<(), EngineFault<F>> {
        self.head = Head { root: 0, next: 1, since: 0, height: 1, records: 0 };
        self.lists.clear();
        self.reserved.clear();
        self.gone.clear();
        (self.nodes, self.waiting, self.root) = (1, 0, Some(Node::new(0, 1)));
        if !self.has_room(1, 0) {
            return Err(Fault::NoRoom { limit_pages: self.pages.count() });
        }
        let empty = [self.body(&[], false)];
        self.pages.write(&self.head, &empty).map(drop)
    }

    fn mount(&mut self, keep: bool) -> Result<Option<NoIndex>, EngineFault<F>> {
        if keep {
            // A read that failed changed nothing.
            return Ok(None);
        }
        self.lists.clear();
        self.reserved.clear();
        self.gone.clear();
        (self.nodes, self.waiting, self.root) = (0, 0, None);
        let (key_bytes, payload_bytes) = (self.key_bytes, self.payload_bytes());
        let most = self.units();
        let take = |_: &PageHeader, body: &[u8]| {
            let mut nodes: Vec<(u32, bool)> = Vec::new();
            if count_at(body, 0) <= most {
                for (node, says, ..) in units_in(body, key_bytes, payload_bytes) {
                    if nodes.last().is_none_or(|last| last.0 != node) {
                        nodes.push((node, says & BEGINS != 0));
                    }
                }
            }
            nodes
        };
        let (head, found) = match self.pages.mount(take)? {
            Ok(found) => found,
            Err(no_index) => return Ok(Some(no_index)),
        };
        self.head = head;
        let mut lists: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for found in found {
            for (node, begins) in found.content {
                let list = lists.entry(node).or_default();
                if begins {
                    list.clear();
                }
                list.push(found.page);
            }
        }
        // Only what the root leads to is a node; the rest is what older pages say.
        self.lists = lists;
        let mut live = Vec::new();
        let read = |number, level| {
            self.pages.begin();
            self.node(number, level)
        };
        visit(&head, 2, read, |node, _| live.push(node.number))?;
        self.nodes = live.len() as u32;
        let lists = std::mem::take(&mut self.lists);
        live.sort_unstable();
        for (node, list) in lists {
            if live.binary_search(&node).is_ok() {
                list.into_iter().for_each(|page| self.list(node, page));
            }
        }
        // A cut may have come between a commit and a compaction.
        live.into_iter().try_for_each(|node| self.compact(node))?;
        Ok(None)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, EngineFault<F>> {
        self.pages.begin();
        Ok(self.path(|low| low <= key)?.last().entries.get(key).cloned())
    }

    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<Option<bool>, EngineFault<F>> {
        self.pages.begin();
        let path = self.path(|low| low <= key)?;
        let before = path.last().entries.get(key);
        let was_there = before.is_some();
        if before.map(Bytes::as_slice) == value {
            return Ok(Some(was_there));
        }
        let mut head = self.head;
        let change = (Bytes::from_slice(key), value.map(Bytes::from_slice));
        let edits = apply(path.nodes, &[change], self.most, &mut head, |_| false);
        let units: Vec<(Entry, Unit)> = edits.iter().flat_map(Self::units_of).collect();
        let new = edits.iter().filter(|edit| edit.before.is_none()).count() as u32;
        let is_new = value.is_some() && !was_there;
        if is_new && !self.has_room(self.nodes + new, units.len()) {
            // Nodes that are gone have their pages until that is durable.
            self.commit()?;
            if !self.has_room(self.nodes + new, units.len()) {
                return Err(Fault::NoRoom { limit_pages: self.pages.count() });
            }
        }
        // The buffer may be larger than when its nodes were made.
        let free = self.pages.count() - self.pages.held();
        if self.pages_of(self.reserved.len() + units.len()) + COMPACTED > free {
            self.commit()?;
        }
        self.head = head;
        self.reserve(edits, units);
        self.waiting += 1;
        if self.reserved.len() >= self.room || self.waiting >= self.waiting_max {
            self.commit()?;
        }
        Ok(Some(was_there))
    }

    fn leaf(&mut self, is_before: &dyn Fn(&[u8]) -> bool) -> Result<Leaf, EngineFault<F>> {
        self.pages.begin();
        let Path { mut nodes, keys } = self.path(is_before)?;
        let records = nodes.pop().map_or_else(Vec::new, |leaf| leaf.entries.into_iter().collect());
        Ok(Leaf { records, keys })
    }

    fn flush(&mut self) -> Result<(), EngineFault<F>> {
        self.pages.begin();
        self.commit()
    }

    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>> {
        let mut wrong = |what| report(Violation { page: PageNumber(0), what });
        let (mut nodes, mut records) = (0, 0);
        let (head, most) = (self.head, self.most);
        let read = |number, level| {
            self.pages.begin();
            self.node(number, level)
        };
        visit(&head, 1, read, |node, keys| {
            nodes += 1;
            records += if node.level == 1 { node.entries.len() as u32 } else { 0 };
            node.fault(keys, most, &head).into_iter().for_each(&mut wrong);
            if node.entries.is_empty() && node.number != head.root {
                wrong("a node is empty");
            }
        })?;
        if (nodes, records) != (self.nodes, head.records) {
            wrong("the counts of nodes and records are not those of the tree");
        }
        if self.lists.values().any(|list| list.len() > LIST) {
            wrong("a list of pages is too long");
        }
        Ok(())
    }
}
