//! LA-tree: changes wait in flash, above the nodes that they belong to, until lookups pay for them.
//!
//! The root and the nodes of every second level above the leaves have a *buffer*: pages of changes,
//! in the order in which they came. A lookup reads the buffers on its way, the newest page first,
//! until one has its key. When a buffer has cost the lookups as much as emptying it would, it is
//! emptied: into the buffers of the next such level, or into the leaves. It is emptied also where
//! its changes would lack room otherwise. A change reads nothing, and so does not know whether its
//! key has a record.
//!
//! A node is written to another page each time; the table of their pages is in RAM, and a mount
//! rebuilds it. What goes to one node of the next level counts as a whole, with the nodes that it
//! divides ([`super::pages`]). Until the last of these commits the buffer counts, too: its changes
//! are newer than what is below, so whatever of them is there already is there twice. The last one
//! says from which page on the buffer counts.

mod buffers;
mod find;
mod table;
mod worst;

use std::collections::{BTreeMap, BTreeSet};

use nandina::engine::{Description, EngineFault, UpdateScheme};
use nandina::flash::{Flash, Needs, PageNumber};
use nandina::node::PageHeader;
use nandina::{Damage, Fault, Options, Violation};

use super::engine::{Heap, Leaf, Rival, has_pages_and_head};
use super::pages::{Head, NoIndex, Pages};
use super::tree::{Bytes, Change, Edit, Most, Node, Path, apply, descend, visit};
use super::worst::{Device, Worst};
use buffers::{Changes, Group, Kept, NODE_HEAD_BYTES, ROOT, Sizes, buffer_body, node_in, seen};
use table::{Table, below};

/// A value, or that there is no record.
type Value = Option<Bytes>;

/// The newest change of each key.
type Newest = BTreeMap<Bytes, Value>;

/// A tree with buffers in flash.
pub struct LaTree<F> {
    pages: Pages<F>,
    most: Most,
    sizes: Sizes,
    head: Head,
    table: Table,
    /// Changes that are not in a page of the root's buffer, or only in those that are open.
    ram: Vec<Change>,
    /// Pages that hold what RAM held at the last flush. The next pages take their place.
    open: Vec<Kept>,
    waiting: u32,
    waiting_max: u32,
    /// Changes with which RAM is full.
    room: usize,
    is_durable: bool,
    root: Option<Node>,
    /// Records, if all changes were counted.
    counted: Option<u32>,
}

impl<F: Flash> LaTree<F> {
    fn node(&mut self, number: u32, level: u8) -> Result<Node, EngineFault<F>> {
        if let Some(root) = self.root.as_ref().filter(|root| root.number == number) {
            return Ok(root.clone());
        }
        let Some((page, _)) = self.table.home(number) else {
            return Err(Fault::Corrupt { page: PageNumber(0), reason: Damage::LacksNode });
        };
        let node = node_in(self.pages.body(page)?, self.sizes, level);
        let Some(node) = node.filter(|node| node.number == number) else {
            return Err(Fault::Corrupt { page: PageNumber(page), reason: Damage::LacksNode });
        };
        if number == self.head.root {
            self.root = Some(node.clone());
        }
        Ok(node)
    }

    /// The way to a node of this level.
    fn path(
        &mut self,
        level: u8,
        is_before: impl Fn(&[u8]) -> bool,
    ) -> Result<Path, EngineFault<F>> {
        let head = self.head;
        descend(&head, level, is_before, |number, level| self.node(number, level))
    }

    /// All changes of a buffer, the newest of each key.
    fn changes_of(&mut self, owner: u32, changes: &mut Newest) -> Result<(), EngineFault<F>> {
        for page in self.table.buffer(owner) {
            changes.extend(Changes::of(self.pages.body(page)?, self.sizes).all());
        }
        Ok(())
    }

    /// Moves the changes of a buffer to the next level with buffers, or to the leaves.
    fn empty(&mut self, owner: u32, level: u8) -> Result<(), EngineFault<F>> {
        self.pages.begin();
        let mut changes = BTreeMap::new();
        self.changes_of(owner, &mut changes)?;
        let first = changes.keys().next().cloned();
        // A node that is divided meanwhile divides its buffer: all parts are emptied.
        let mut owners = vec![owner];
        while let Some((key, _)) = changes.first_key_value() {
            let key = key.clone();
            // The tree may have become lower.
            let target = if below(level) < self.head.height { below(level) } else { 1 };
            let path = self.path(target, |low| low <= &key[..])?;
            let rest = match &path.keys.high {
                Some(high) => changes.split_off(high),
                None => BTreeMap::new(),
            };
            let moved: Vec<Change> = std::mem::replace(&mut changes, rest).into_iter().collect();
            let ends = changes.is_empty();
            let mut head = self.head;
            let mut group = if target == 1 {
                self.applied(path, &moved, &mut head, &mut owners, ends)?
            } else {
                let appended = vec![(path.last().number, moved)];
                Group { appended, ..Group::default() }
            };
            if ends {
                group.cleared.clone_from(&owners);
                self.hold_sinces(&mut group, &head)?;
            }
            self.commit(head, group)?;
        }
        match first {
            Some(key) if owner != ROOT => self.drop_empty(&key),
            _ => Ok(()),
        }
    }

    /// What changes make of a leaf and the nodes above it.
    ///
    /// A node that is divided gives the upper part its changes, unless these end here.
    fn applied(
        &mut self,
        path: Path,
        changes: &[Change],
        head: &mut Head,
        owners: &mut Vec<u32>,
        ends: bool,
    ) -> Result<Group, EngineFault<F>> {
        let leaf = path.last().clone();
        let stays = |number| self.table.has_buffer(number);
        let edits = apply(path.nodes, changes, self.most, head, stays);
        let mut group = Group::default();
        let parts: Vec<(u32, u32, Bytes)> = edits
            .iter()
            .filter_map(|edit| {
                let (divided, node) = (edit.divided?, edit.after.as_ref()?);
                let (key, _) = node.entries.first_key_value()?;
                self.table.has_buffer(divided).then(|| (divided, node.number, key.clone()))
            })
            .collect();
        let divided: BTreeSet<u32> = parts.iter().map(|part| part.0).collect();
        for owner in divided {
            let mut waiting = BTreeMap::new();
            self.changes_of(owner, &mut waiting)?;
            for (_, part, key) in parts.iter().rev().filter(|part| part.0 == owner) {
                let upper = waiting.split_off(key);
                group.appended.push((*part, upper.into_iter().collect()));
                if owners.contains(&owner) {
                    owners.push(*part);
                }
            }
            group.appended.push((owner, waiting.into_iter().collect()));
            group.cleared.push(owner);
        }
        if ends {
            group.appended.retain(|(owner, _)| !owners.contains(owner));
        }
        group.appended.retain(|(_, changes)| !changes.is_empty());
        for Edit { before, after, .. } in edits {
            match (before, after) {
                (Some(before), None) => group.gone.push(before.number),
                (_, Some(after)) => group.nodes.push(after),
                (None, None) => {}
            }
        }
        if group.nodes.is_empty() && group.gone.is_empty() && ends {
            // Nothing changes, but the commit needs a page.
            group.nodes.push(leaf);
        }
        Ok(group)
    }

    /// Adds those nodes whose buffers are cleared: their pages say so.
    fn hold_sinces(&mut self, group: &mut Group, head: &Head) -> Result<(), EngineFault<F>> {
        for owner in group.cleared.clone() {
            let has = |node: &Node| node.number == owner;
            if owner == ROOT || group.nodes.iter().any(has) || group.gone.contains(&owner) {
                continue;
            }
            let Some((_, level)) = self.table.home(owner) else { continue };
            let node = self.node(owner, level)?;
            debug_assert!(owner < head.next);
            group.nodes.push(node);
        }
        Ok(())
    }

    /// Writes a group of pages, and notes what it ends.
    fn commit(&mut self, mut head: Head, group: Group) -> Result<(), EngineFault<F>> {
        if group.is_empty() {
            return Ok(());
        }
        let first = self.pages.next_sequence();
        if group.cleared.contains(&ROOT) {
            head.since = self.open.first().map_or(first, |open| open.first);
        }
        let since =
            |number| if group.cleared.contains(&number) { first } else { self.table.since(number) };
        let (bodies, kept) = group.bodies(first, since, self.sizes);
        let pages = self.pages.write(&head, &bodies)?;
        self.head = head;
        let Group { nodes, gone, cleared, .. } = group;
        for owner in cleared {
            for page in self.table.clear(owner, first) {
                self.pages.release(page)?;
            }
        }
        for (owner, at, kept) in kept {
            self.pages.hold(pages[at]);
            self.table.append(owner, Kept { page: pages[at], ..kept });
        }
        for (node, page) in nodes.into_iter().zip(pages) {
            self.pages.hold(page);
            if let Some(before) = self.table.put(&node, page) {
                self.pages.release(before)?;
            }
            if node.number == self.head.root {
                self.root = Some(node);
            }
        }
        for number in gone {
            if let Some(page) = self.table.remove(number) {
                self.pages.release(page)?;
            }
        }
        self.root = self.root.take().filter(|root| root.number == self.head.root);
        Ok(())
    }

    /// Takes an empty leaf away that stayed because a buffer above it had changes.
    fn drop_empty(&mut self, key: &[u8]) -> Result<(), EngineFault<F>> {
        let path = self.path(1, |low| low <= key)?;
        if !path.last().entries.is_empty() || path.nodes.len() < 2 {
            return Ok(());
        }
        let mut head = self.head;
        let group = self.applied(path, &[], &mut head, &mut Vec::new(), false)?;
        self.commit(head, group)
    }

    /// Writes the changes in RAM, in place of the pages that are open.
    fn write_ram(&mut self, closes: bool) -> Result<(), EngineFault<F>> {
        let first = self.pages.next_sequence();
        let (mut bodies, mut kept) = (Vec::new(), Vec::new());
        for (at, chunk) in self.ram.chunks(self.sizes.changes).enumerate() {
            let first = self.open.get(at).map_or(first + at as u64, |open| open.first);
            bodies.push(buffer_body(ROOT, first, chunk, self.sizes));
            kept.push(Kept::new(first, chunk));
        }
        let pages = self.pages.write(&self.head, &bodies)?;
        let kept = kept.into_iter().zip(&pages).map(|(kept, &page)| Kept { page, ..kept });
        let before = std::mem::replace(&mut self.open, kept.collect());
        pages.into_iter().for_each(|page| self.pages.hold(page));
        self.waiting = 0;
        for kept in before {
            self.pages.release(kept.page)?;
        }
        if closes {
            self.close_open();
        }
        Ok(())
    }

    fn close_open(&mut self) {
        for kept in std::mem::take(&mut self.open) {
            self.table.append(ROOT, kept);
        }
        self.ram.clear();
    }

    /// Changes that wait anywhere and may bring a record.
    fn upserts(&self) -> u64 {
        let in_ram = self.ram.iter().filter(|change| change.1.is_some()).count() as u64;
        self.table.upserts() + in_ram
    }

    fn has_room(&self, upserts: u64) -> bool {
        let in_ram = 1 + (self.ram.len() as u64).div_ceil(self.sizes.changes as u64);
        let needed = self.table.needed(upserts, in_ram, self.most, self.head.height);
        needed <= u64::from(self.pages.count())
    }

    /// Empties all buffers, and RAM.
    fn empty_all(&mut self) -> Result<(), EngineFault<F>> {
        if self.waiting > 0 {
            self.write_ram(true)?;
        }
        self.close_open();
        while let Some((level, owner)) = self.table.owners().pop() {
            self.empty(owner, if owner == ROOT { self.head.height } else { level })?;
        }
        Ok(())
    }

    /// What waits for each key, the newest change of each.
    fn all_changes(&mut self) -> Result<Newest, EngineFault<F>> {
        let mut changes = BTreeMap::new();
        for (_, owner) in self.table.owners() {
            self.changes_of(owner, &mut changes)?;
        }
        changes.extend(self.ram.iter().cloned());
        Ok(changes)
    }
}

impl<F: Flash> Rival<F> for LaTree<F> {
    const HEAP: Heap = Heap { page: 34, decoded: 4, waiting: 2 };
    const DESCRIPTION: Description = Description {
        key: "la",
        name: "LA-tree",
        summary: "changes wait in pages above the leaves until lookups have paid for moving them",
        source: "named in Table 2 of the WPCB-tree paper (Ho and Park, 2018)",
        code: 241,
        needs: Needs { rewrite: true, atomic_rewrite: true, no_bad_blocks: true, ..Needs::NOTHING },
        updates: UpdateScheme::InPlace,
        ..Description::EMPTY
    };

    fn new(pages: Pages<F>, most: Most, options: &Options) -> Self {
        let area_bytes = nandina::log::layout_of(&pages.flash.geometry()).area_bytes();
        let sizes = Sizes::new(area_bytes, options);
        Self {
            pages,
            most,
            sizes,
            head: Head::default(),
            table: Table::new(),
            ram: Vec::new(),
            open: Vec::new(),
            waiting: 0,
            waiting_max: options.write_buffer_changes.unwrap_or(u32::MAX),
            room: options.write_buffer.max(1) * sizes.changes,
            is_durable: options.write_buffer == 0,
            root: None,
            counted: None,
        }
    }

    fn most(area_bytes: usize, options: &Options) -> Most {
        let Options { key_bytes, value_bytes, .. } = *options;
        let entries = |has: usize| area_bytes.saturating_sub(NODE_HEAD_BYTES) / (key_bytes + has);
        Most { leaf: entries(value_bytes), parent: entries(4), inner: entries(4) }
    }

    fn pages_needed(device: &Device<'_>, records: u32) -> u64 {
        worst::pages_needed(device, records)
    }

    fn worst(device: &Device<'_>, _: u32) -> Worst {
        worst::worst(device)
    }

    has_pages_and_head!();

    fn records(&self) -> u32 {
        self.counted.unwrap_or(self.head.records)
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn waits(&self, key: &[u8]) -> bool {
        self.ram.iter().any(|change| &change.0[..] == key)
    }

    fn format(&mut self) -> Result<(), EngineFault<F>> {
        self.forget();
        self.ram.clear();
        self.waiting = 0;
        self.head = Head { root: 0, next: 1, since: 0, height: 1, records: 0 };
        let nodes = vec![Node::new(0, 1)];
        self.commit(self.head, Group { nodes, ..Group::default() })?;
        if self.has_room(1) {
            Ok(())
        } else {
            Err(Fault::NoRoom { limit_pages: self.pages.count() })
        }
    }

    fn mount(&mut self, keep: bool) -> Result<Option<NoIndex>, EngineFault<F>> {
        self.forget();
        if !keep {
            self.ram.clear();
            self.waiting = 0;
        }
        let sizes = self.sizes;
        let take = |header: &PageHeader, body: &[u8]| seen(header, body, sizes);
        let (head, found) = match self.pages.mount(take)? {
            Ok(found) => found,
            Err(no_index) => return Ok(Some(no_index)),
        };
        self.head = head;
        let kept = self.table.find(found);
        let mut live = BTreeSet::new();
        let read = |number, level| {
            self.pages.begin();
            self.node(number, level)
        };
        visit(&head, 2, read, |node, _| live.extend([node.number]))?;
        let Some(pages) = self.table.settle(&live, &head, kept) else {
            return Err(Fault::Corrupt { page: PageNumber(0), reason: Damage::LacksNode });
        };
        pages.into_iter().for_each(|page| self.pages.hold(page));
        Ok(None)
    }

    fn get(&mut self, key: &[u8]) -> Result<Value, EngineFault<F>> {
        self.pages.begin();
        let looked = self.find(key)?;
        self.pay(&looked)?;
        Ok(looked.value)
    }

    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<Option<bool>, EngineFault<F>> {
        self.pages.begin();
        if !self.has_room(self.upserts() + u64::from(value.is_some())) {
            self.empty_all()?;
            self.pages.begin();
            // What is there can be replaced: that divides no node.
            if value.is_some() && !self.has_room(1) && self.find(key)?.value.is_none() {
                return Err(Fault::NoRoom { limit_pages: self.pages.count() });
            }
        }
        self.counted = None;
        self.ram.retain(|change| &change.0[..] != key);
        self.ram.push((Bytes::from_slice(key), value.map(Bytes::from_slice)));
        self.waiting += 1;
        let is_full = self.ram.len() >= self.room;
        if self.is_durable || is_full || self.waiting >= self.waiting_max {
            self.write_ram(is_full)?;
        }
        Ok(None)
    }

    fn leaf(&mut self, is_before: &dyn Fn(&[u8]) -> bool) -> Result<Leaf, EngineFault<F>> {
        self.pages.begin();
        let Path { mut nodes, keys } = self.path(1, is_before)?;
        let Some(leaf) = nodes.pop() else { return Ok(Leaf { records: Vec::new(), keys }) };
        let mut changes = BTreeMap::new();
        for node in nodes.iter().rev() {
            self.changes_of(node.number, &mut changes)?;
        }
        self.changes_of(ROOT, &mut changes)?;
        changes.extend(self.ram.iter().cloned());
        let mut records = leaf.entries;
        for (key, value) in changes.into_iter().filter(|(key, _)| keys.have(key)) {
            match value {
                Some(value) => records.insert(key, value),
                None => records.remove(&key),
            };
        }
        Ok(Leaf { records: records.into_iter().collect(), keys })
    }

    fn flush(&mut self) -> Result<(), EngineFault<F>> {
        if self.waiting > 0 { self.write_ram(false) } else { Ok(()) }
    }

    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>> {
        let mut wrong = |what| report(Violation { page: PageNumber(0), what });
        self.pages.begin();
        let changes = self.all_changes()?;
        let (mut nodes, mut in_leaves, mut records) = (0, 0, 0);
        let (head, most) = (self.head, self.most);
        let read = |number, level| {
            self.pages.begin();
            self.node(number, level)
        };
        visit(&head, 1, read, |node, keys| {
            nodes += 1;
            node.fault(keys, most, &head).into_iter().for_each(&mut wrong);
            if node.level > 1 {
                return;
            }
            in_leaves += node.entries.len() as u32;
            let is_there = |key: &Bytes| changes.get(key).is_none_or(Option::is_some);
            records += node.entries.keys().filter(|key| is_there(key)).count() as u32;
            let new = changes.iter().filter(|(key, value)| {
                keys.have(key) && value.is_some() && !node.entries.contains_key(*key)
            });
            records += new.count() as u32;
        })?;
        if nodes != self.table.nodes() || in_leaves != head.records {
            wrong("the counts of nodes and records are not those of the tree");
        }
        for (level, owner) in self.table.owners() {
            if owner != ROOT && (level == u8::MAX || level == 1) {
                wrong("a buffer has no node");
            }
        }
        self.counted = Some(records);
        Ok(())
    }
}

impl<F: Flash> LaTree<F> {
    /// Forgets what the device holds, but not what waits in RAM.
    fn forget(&mut self) {
        self.table = Table::new();
        self.open.clear();
        (self.root, self.counted) = (None, None);
    }
}
