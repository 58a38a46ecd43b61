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

use std::collections::{BTreeMap, BTreeSet};

use nandina::engine::{Description, EngineFault, UpdateScheme};
use nandina::flash::{Flash, Needs, PageNumber};
use nandina::node::PageHeader;
use nandina::{Damage, Fault, Options, Violation};

use super::buffers::{
    Buffer, Changes, Kept, NODE_HEAD_BYTES, ROOT, Seen, Sizes, buffer_body, node_body, node_in,
    seen,
};
use super::engine::{Leaf, Rival};
use super::pages::{Body, Head, NoIndex, Pages};
use super::tree::{Change, Edit, Most, Node, Path, apply, descend, visit};

/// Levels from one with buffers to the next.
const LEVELS: u8 = 2;

/// What a program costs, in reads: 200 and 25 microseconds in the WPCB-tree paper.
const PROGRAM_READS: u64 = 8;

/// Pages that stay free beside all that changes can need.
const SPARE: u64 = 12;

/// A value, or that there is no record.
type Value = Option<Vec<u8>>;

/// The newest change of each key.
type Newest = BTreeMap<Vec<u8>, Value>;

/// What a commit writes and ends.
#[derive(Default)]
struct Group {
    nodes: Vec<(Node, bool)>,
    gone: Vec<u32>,
    appended: Vec<(u32, Vec<Change>)>,
    cleared: Vec<u32>,
}

/// What a lookup found, and the pages of buffers that it read for it.
struct Looked {
    value: Option<Vec<u8>>,
    of_root: u64,
    /// Of other buffers: their owner with its level and its children, and the pages.
    lower: Vec<(u32, u8, u64, u64)>,
}

/// A tree with buffers in flash.
pub struct LaTree<F> {
    pages: Pages<F>,
    most: Most,
    sizes: Sizes,
    head: Head,
    /// The page and the level of each node.
    homes: BTreeMap<u32, (u32, u8)>,
    /// Nodes of each level.
    levels: Vec<u64>,
    /// From which page on the buffer of a node counts.
    since: BTreeMap<u32, u64>,
    buffers: BTreeMap<u32, Buffer>,
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

/// The level to which a buffer on this level is emptied: the next one with buffers, or the leaves.
const fn below(level: u8) -> u8 {
    level.saturating_sub(2) / LEVELS * LEVELS + 1
}

impl<F: Flash> LaTree<F> {
    fn node(&mut self, number: u32, level: u8) -> Result<Node, EngineFault<F>> {
        if let Some(root) = self.root.as_ref().filter(|root| root.number == number) {
            return Ok(root.clone());
        }
        let Some(&(page, _)) = self.homes.get(&number) else {
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

    /// Nodes of a level.
    fn nodes_of(&self, level: u8) -> u64 {
        self.levels.get(usize::from(level)).copied().unwrap_or(0)
    }

    /// The newest change of a key in a buffer, and the pages that finding it reads.
    fn search(&mut self, owner: u32, key: &[u8]) -> Result<(Option<Value>, u64), EngineFault<F>> {
        let kept: Vec<u32> = self.buffers.get(&owner).map_or_else(Vec::new, Buffer::numbers);
        for (read, page) in (1..).zip(kept.iter().rev()) {
            let changes = Changes::of(self.pages.body(*page)?, self.sizes);
            if let Some(value) = changes.last_of(key) {
                return Ok((Some(value), read));
            }
        }
        Ok((None, kept.len() as u64))
    }

    fn find(&mut self, key: &[u8]) -> Result<Looked, EngineFault<F>> {
        let mut looked = Looked { value: None, of_root: 0, lower: Vec::new() };
        if let Some((_, value)) = self.ram.iter().rfind(|change| change.0 == key) {
            looked.value.clone_from(value);
            return Ok(looked);
        }
        let (found, of_root) = self.search(ROOT, key)?;
        looked.of_root = of_root;
        if let Some(value) = found {
            looked.value = value;
            return Ok(looked);
        }
        let path = self.path(1, |low| low <= key)?;
        for node in &path.nodes {
            if !self.buffers.contains_key(&node.number) {
                continue;
            }
            let (found, read) = self.search(node.number, key)?;
            looked.lower.push((node.number, node.level, node.entries.len() as u64, read));
            if let Some(value) = found {
                looked.value = value;
                return Ok(looked);
            }
        }
        looked.value = path.last().entries.get(key).cloned();
        Ok(looked)
    }

    /// What emptying a buffer is taken to cost, in reads: its pages are read, and for each of its
    /// changes a page is read and written, but at most one for each node that it can go to.
    fn emptying(&self, owner: u32, level: u8, children: u64) -> u64 {
        let Some(buffer) = self.buffers.get(&owner) else { return u64::MAX };
        let targets = self.nodes_of(below(level));
        // Below another node than the root: as many as nodes of its level have on average.
        let beside = if owner == ROOT { 1 } else { self.nodes_of(level - 1).max(1) };
        let targets = if owner == ROOT { targets } else { (targets * children).div_ceil(beside) };
        let written = targets.min(buffer.changes());
        buffer.pages.len() as u64 + written * (1 + PROGRAM_READS)
    }

    /// Lets lookups pay, and empties what they have paid for.
    fn pay(&mut self, looked: &Looked) -> Result<(), EngineFault<F>> {
        let mut due = Vec::new();
        let lower = looked
            .lower
            .iter()
            .map(|&(owner, level, children, read)| (owner, level, children, read));
        let height = self.head.height;
        let all = std::iter::once((ROOT, height, 0, looked.of_root)).chain(lower);
        for (owner, level, children, read) in all {
            let emptying = self.emptying(owner, level, children);
            let Some(buffer) = self.buffers.get_mut(&owner) else { continue };
            buffer.paid += read;
            if read > 0 && buffer.paid >= emptying {
                due.push((owner, level));
            }
        }
        // From below, so that what is emptied first is not filled at once.
        due.into_iter().rev().try_for_each(|(owner, level)| self.empty(owner, level))
    }

    /// All changes of a buffer, the newest of each key.
    fn changes_of(&mut self, owner: u32, changes: &mut Newest) -> Result<(), EngineFault<F>> {
        for page in self.buffers.get(&owner).map_or_else(Vec::new, Buffer::numbers) {
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
        let stays = |number| self.buffers.contains_key(&number);
        let edits = apply(path.nodes, changes, self.most, head, stays);
        let mut group = Group::default();
        let parts: Vec<(u32, u32, Vec<u8>)> = edits
            .iter()
            .filter_map(|edit| {
                let (divided, node) = (edit.divided?, edit.after.as_ref()?);
                let (key, _) = node.entries.first_key_value()?;
                self.buffers.contains_key(&divided).then(|| (divided, node.number, key.clone()))
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
                (before, Some(after)) => group.nodes.push((after, before.is_none())),
                (None, None) => {}
            }
        }
        if group.nodes.is_empty() && group.gone.is_empty() && ends {
            // Nothing changes, but the commit needs a page.
            group.nodes.push((leaf, false));
        }
        Ok(group)
    }

    /// Adds those nodes whose buffers are cleared: their pages say so.
    fn hold_sinces(&mut self, group: &mut Group, head: &Head) -> Result<(), EngineFault<F>> {
        for owner in group.cleared.clone() {
            let has = |node: &(Node, bool)| node.0.number == owner;
            if owner == ROOT || group.nodes.iter().any(has) || group.gone.contains(&owner) {
                continue;
            }
            let Some(&(_, level)) = self.homes.get(&owner) else { continue };
            let node = self.node(owner, level)?;
            debug_assert!(owner < head.next);
            group.nodes.push((node, false));
        }
        Ok(())
    }

    /// Writes a group of pages, and notes what it ends.
    fn commit(&mut self, mut head: Head, group: Group) -> Result<(), EngineFault<F>> {
        let Group { nodes, gone, appended, cleared } = group;
        if nodes.is_empty() && gone.is_empty() && appended.is_empty() {
            return Ok(());
        }
        let first = self.pages.next_sequence();
        let mut sinces = Vec::new();
        for &owner in &cleared {
            if owner == ROOT {
                head.since = self.open.first().map_or(first, |open| open.first);
            } else {
                sinces.push(owner);
            }
        }
        let since = |number: u32| match sinces.contains(&number) {
            true => first,
            false => self.since.get(&number).copied().unwrap_or(0),
        };
        let mut bodies: Vec<Body> =
            nodes.iter().map(|(node, _)| node_body(node, since(node.number), self.sizes)).collect();
        let mut kept = Vec::new();
        for (owner, changes) in &appended {
            for chunk in changes.chunks(self.sizes.changes) {
                let first = first + bodies.len() as u64;
                bodies.push(buffer_body(*owner, first, chunk, self.sizes));
                kept.push((*owner, bodies.len() - 1, Kept::new(first, chunk)));
            }
        }
        if bodies.is_empty() {
            // A root that goes leaves no page, only another root.
            bodies.push(node_body(&Node::new(u32::MAX - 1, 1), 0, self.sizes));
        }
        let pages = self.pages.write(&head, &bodies)?;
        self.head = head;
        for owner in cleared {
            for page in self.buffers.remove(&owner).map_or_else(Vec::new, |of| of.numbers()) {
                self.pages.release(page)?;
            }
        }
        self.since.extend(sinces.into_iter().map(|owner| (owner, first)));
        for (owner, at, kept) in kept {
            self.pages.hold(pages[at]);
            let buffer = self.buffers.entry(owner).or_default();
            buffer.pages.push(Kept { page: pages[at], ..kept });
        }
        for (at, (node, _)) in nodes.into_iter().enumerate() {
            self.pages.hold(pages[at]);
            match self.homes.insert(node.number, (pages[at], node.level)) {
                Some((before, _)) => self.pages.release(before)?,
                None => self.levels[usize::from(node.level)] += 1,
            }
            if node.number == self.head.root {
                self.root = Some(node);
            }
        }
        for number in gone {
            self.since.remove(&number);
            if let Some((page, level)) = self.homes.remove(&number) {
                self.levels[usize::from(level)] -= 1;
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
        if !self.open.is_empty() {
            self.buffers.entry(ROOT).or_default().pages.append(&mut self.open);
        }
        self.ram.clear();
    }

    /// Pages that the device must have for this many changes that may bring a record.
    ///
    /// A node can be full, so that one record divides it and all above it; more of them make a node
    /// of each half of one. A node has another page while it is written, and so has what waits.
    fn needed(&self, upserts: u64) -> u64 {
        let (leaves, nodes) = (self.nodes_of(1), self.homes.len() as u64);
        let height = u64::from(self.head.height);
        let new = upserts.min(leaves + 2 * upserts / self.most.leaf as u64);
        let above = new.min(nodes - leaves + 2 * new / self.most.inner as u64) + height + 2;
        let new = if new == 0 { 0 } else { new + above };
        let in_flash: u64 = self.buffers.values().map(|buffer| buffer.pages.len() as u64).sum();
        let in_ram = 1 + (self.ram.len() as u64).div_ceil(self.sizes.changes as u64);
        let owners = (2..=self.head.height).filter(|level| (level - 1) % LEVELS == 0);
        let owners: u64 = owners.map(|level| self.nodes_of(level)).sum();
        nodes + 2 * (new + in_flash + in_ram + owners + height) + SPARE
    }

    /// Changes that wait anywhere and may bring a record.
    fn upserts(&self) -> u64 {
        let in_flash: u64 = self.buffers.values().map(Buffer::upserts).sum();
        in_flash + self.ram.iter().filter(|change| change.1.is_some()).count() as u64
    }

    fn has_room(&self, upserts: u64) -> bool {
        self.needed(upserts) <= u64::from(self.pages.count())
    }

    /// Empties all buffers, and RAM.
    fn empty_all(&mut self) -> Result<(), EngineFault<F>> {
        if self.waiting > 0 {
            self.write_ram(true)?;
        }
        self.close_open();
        while let Some((&owner, _)) = self.buffers.last_key_value() {
            let level = match self.homes.get(&owner) {
                Some(&(_, level)) if owner != ROOT => level,
                _ => self.head.height,
            };
            self.empty(owner, level)?;
        }
        Ok(())
    }

    /// What waits for each key, the newest change of each.
    fn all_changes(&mut self) -> Result<Newest, EngineFault<F>> {
        let mut changes = BTreeMap::new();
        let level = |owner: &u32| self.homes.get(owner).map_or(u8::MAX, |home| home.1);
        let mut owners: Vec<(u8, u32)> =
            self.buffers.keys().map(|owner| (level(owner), *owner)).collect();
        owners.sort_unstable();
        for (_, owner) in owners {
            self.changes_of(owner, &mut changes)?;
        }
        changes.extend(self.ram.iter().cloned());
        Ok(changes)
    }
}

impl<F: Flash> Rival<F> for LaTree<F> {
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
            homes: BTreeMap::new(),
            levels: vec![0; 1 + usize::from(u8::MAX)],
            since: BTreeMap::new(),
            buffers: BTreeMap::new(),
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
        Most { leaf: entries(value_bytes), inner: entries(4) }
    }

    fn pages(&self) -> &Pages<F> {
        &self.pages
    }

    fn pages_mut(&mut self) -> &mut Pages<F> {
        &mut self.pages
    }

    fn into_flash(self) -> F {
        self.pages.flash
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn records(&self) -> u32 {
        self.counted.unwrap_or(self.head.records)
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn format(&mut self) -> Result<(), EngineFault<F>> {
        self.forget();
        self.ram.clear();
        self.waiting = 0;
        self.head = Head { root: 0, next: 1, since: 0, height: 1, records: 0 };
        let nodes = vec![(Node::new(0, 1), true)];
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
        // By owner and first page; the newest page of each is the last.
        let mut kept: BTreeMap<(u32, u64), Kept> = BTreeMap::new();
        for found in found {
            match found.content {
                Seen::Node { number, level, since } => {
                    self.homes.insert(number, (found.page, level));
                    self.since.insert(number, since);
                }
                Seen::Buffer { owner, kept: of_page } => {
                    kept.insert((owner, of_page.first), Kept { page: found.page, ..of_page });
                }
            }
        }
        let mut live = BTreeSet::new();
        let read = |number, level| {
            self.pages.begin();
            self.node(number, level)
        };
        visit(&head, 2, read, |node, _| live.extend([node.number]))?;
        self.homes.retain(|number, _| live.contains(number));
        self.since.retain(|number, _| live.contains(number));
        if self.homes.len() != live.len() {
            return Err(Fault::Corrupt { page: PageNumber(0), reason: Damage::LacksNode });
        }
        for &(page, level) in self.homes.values() {
            self.pages.hold(page);
            self.levels[usize::from(level)] += 1;
        }
        for ((owner, first), kept) in kept {
            let since =
                if owner == ROOT { Some(head.since) } else { self.since.get(&owner).copied() };
            if since.is_some_and(|since| first >= since) {
                self.pages.hold(kept.page);
                self.buffers.entry(owner).or_default().pages.push(kept);
            }
        }
        Ok(None)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineFault<F>> {
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
        self.ram.retain(|change| change.0 != key);
        self.ram.push((key.to_vec(), value.map(<[u8]>::to_vec)));
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
            let is_there = |key: &Vec<u8>| changes.get(key).is_none_or(Option::is_some);
            records += node.entries.keys().filter(|key| is_there(key)).count() as u32;
            let new = changes.iter().filter(|(key, value)| {
                keys.have(key) && value.is_some() && !node.entries.contains_key(*key)
            });
            records += new.count() as u32;
        })?;
        if nodes != self.homes.len() || in_leaves != head.records {
            wrong("the counts of nodes and records are not those of the tree");
        }
        let owners: Vec<u32> = self.buffers.keys().copied().collect();
        for owner in owners {
            let is_owner = owner == ROOT || self.homes.get(&owner).is_some_and(|home| home.1 > 1);
            if !is_owner {
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
        self.homes.clear();
        self.levels.fill(0);
        self.since.clear();
        self.buffers.clear();
        self.open.clear();
        (self.root, self.counted) = (None, None);
    }
}
