//! MB-tree: changes wait in RAM, and leaves have several pages that come and go.
//!
//! A leaf has up to four pages. Its *header* says where the keys of each page begin, and is stored
//! in the first of them. So a leaf grows by a page where a page is divided, and shrinks by one
//! where two have room in one. The nodes above change only when a leaf of four pages is divided, or
//! its last page goes. To the tree the header is a node on level 2, and the pages are its children.
//!
//! When the buffer is full, the leaf with the most changes is written with all of its changes, of
//! equals the youngest; of its pages only those that change. Each of these is a group of its own
//! that counts as a whole ([`super::pages`]), with the nodes that it divides. So a cut may leave
//! newer changes where older ones are lost; a flush makes all durable. A change that waits reads
//! the way to its leaf, and not the leaf: it does not know whether its key has a record.

mod bytes;
mod join;
mod pending;
mod worst;

use std::collections::BTreeMap;

use nandina::engine::{Description, EngineFault, UpdateScheme};
use nandina::flash::{Flash, Needs, PageNumber};
use nandina::node::PageHeader;
use nandina::{Damage, Fault, Options, Violation};

use super::engine::{Heap, Leaf, Rival, has_pages_and_head};
use super::pages::{Head, NoIndex, Pages};
use super::tree::{Bytes, Change, Edit, Most, Node, Path, apply, descend, visit};
use super::worst::{Device, Worst};
use bytes::{Sizes, header_in, node_in, nodes_in};
use join::{join, neighbour};
use pending::Pending;

/// The level of the headers.
const HEADERS: u8 = 2;

/// Pages that stay free beside all that changes can need.
const SPARE: u64 = 8;

/// A tree whose leaves have several pages.
pub struct MbTree<F> {
    pages: Pages<F>,
    most: Most,
    sizes: Sizes,
    head: Head,
    /// The page of each node; that of a header is the page of its first child.
    homes: BTreeMap<u32, u32>,
    pending: Pending,
    /// Changes with which the buffer is full; with 0 no change waits.
    room: usize,
    root: Option<Node>,
    /// Records, if all changes were counted.
    counted: Option<u32>,
}

impl<F: Flash> MbTree<F> {
    fn node(&mut self, number: u32, level: u8) -> Result<Node, EngineFault<F>> {
        if let Some(root) = self.root.as_ref().filter(|root| root.number == number) {
            return Ok(root.clone());
        }
        let Some(&page) = self.homes.get(&number) else {
            return Err(Fault::Corrupt { page: PageNumber(0), reason: Damage::LacksNode });
        };
        let body = self.pages.body(page)?;
        let node = match level {
            HEADERS => header_in(body, self.sizes),
            _ => node_in(body, self.sizes, level),
        };
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

    /// The number of the leaf that a key belongs to, which is that of its header.
    fn leaf_of(&mut self, key: &[u8]) -> Result<u32, EngineFault<F>> {
        if self.head.height <= HEADERS {
            return Ok(self.head.root);
        }
        let path = self.path(HEADERS + 1, |low| low <= key)?;
        let reason = Damage::LacksNode;
        path.last().child_of(key).ok_or(Fault::Corrupt { page: PageNumber(0), reason })
    }

    /// Whether the device has room for so many more records, wherever they belong.
    ///
    /// A page can be full, so that one record divides it and the nodes above it; more of them fill
    /// half of a page each time. What is written has its older page until it counts.
    fn has_room(&self, upserts: usize) -> bool {
        let (nodes, upserts) = (self.homes.len() as u64, upserts as u64);
        let new = upserts.min(nodes + 2 * upserts / self.most.leaf as u64);
        let above = new.min(nodes + 2 * new / self.most.inner as u64);
        let above = above + u64::from(self.head.height) + 2;
        u64::from(self.pages.held()) + 2 * (new + above) + SPARE <= u64::from(self.pages.count())
    }

    /// Writes all changes of the leaf to which a key belongs, a page of the leaf at a time.
    fn write_leaf(&mut self, key: &[u8]) -> Result<(), EngineFault<F>> {
        self.pages.begin();
        let leaf = self.path(HEADERS, |low| low <= key)?.keys;
        let mut changes = self.pending.within(&leaf);
        while let Some((key, _)) = changes.first() {
            self.pages.begin();
            let key = key.clone();
            let path = self.path(1, |low| low <= &key[..])?;
            let of_page = changes.partition_point(|(key, _)| path.keys.have(key));
            let rest = changes.split_off(of_page);
            self.write_page(path, &changes)?;
            self.pending.forget(&changes);
            changes = rest;
        }
        Ok(())
    }

    /// Makes changes of the page at the end of a path, and writes all nodes that they change.
    fn write_page(&mut self, path: Path, changes: &[Change]) -> Result<(), EngineFault<F>> {
        let mut head = self.head;
        let above = path.nodes.iter().rev().nth(1).cloned();
        let mut edits = apply(path.nodes, changes, self.most, &mut head, |_| false);
        if let Some(header) = &above
            && let Some(beside) = neighbour(&edits, header, self.most)
        {
            let beside = self.node(beside, 1)?;
            join(&mut edits, header, beside, self.most, &mut head);
        }
        self.commit(head, edits, above)
    }

    /// Writes nodes as one group. `above` is the header of the first page among them.
    fn commit(
        &mut self,
        head: Head,
        edits: Vec<Edit>,
        above: Option<Node>,
    ) -> Result<(), EngineFault<F>> {
        let (mut nodes, mut headers, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for edit in edits {
            match (edit.before, edit.after) {
                (_, Some(header)) if header.level == HEADERS => headers.push(header),
                (_, Some(node)) => nodes.push(node),
                (Some(before), None) => gone.push(before.number),
                (None, None) => {}
            }
        }
        if nodes.is_empty() && headers.is_empty() {
            if gone.is_empty() {
                return Ok(());
            }
            // What goes leaves another root, and the commit needs a page.
            let root = self.node(head.root, head.height)?;
            if head.height == HEADERS { headers.push(root) } else { nodes.push(root) }
        }
        for header in &headers {
            let first = first_child(header);
            if nodes.iter().all(|node| node.number != first) {
                let first = self.node(first, 1)?;
                nodes.push(first);
            }
        }
        // One that does not change is written wherever its first page is.
        let changes = |of: &Node| {
            headers.iter().any(|header| header.number == of.number) || gone.contains(&of.number)
        };
        let above = above.filter(|above| above.level == HEADERS && !changes(above));
        headers.extend(above);
        let header_of = |node: &Node| {
            headers.iter().find(|header| node.level == 1 && first_child(header) == node.number)
        };
        let bodies: Vec<_> =
            nodes.iter().map(|node| bytes::body(node, header_of(node), self.sizes)).collect();
        let pages = match (&bodies[..], nodes.first().and_then(|node| self.homes.get(&node.number)))
        {
            // A page by itself is replaced where it is.
            ([body], Some(&page)) => {
                self.pages.rewrite(&head, body, page)?;
                vec![page]
            }
            _ => self.pages.write(&head, &bodies)?,
        };
        let mut homes = Vec::new();
        for (node, page) in nodes.iter().zip(pages) {
            homes.push((node.number, page));
            homes.extend(header_of(node).map(|header| (header.number, page)));
        }
        self.head = head;
        let mut written = nodes.into_iter().chain(headers);
        let root = written.find(|node| node.number == head.root).or_else(|| self.root.take());
        self.root = root.filter(|root| root.number == head.root);
        for (number, page) in homes {
            self.pages.hold(page);
            if let Some(before) = self.homes.insert(number, page) {
                self.pages.release(before)?;
            }
        }
        for number in gone {
            if let Some(page) = self.homes.remove(&number) {
                self.pages.release(page)?;
            }
        }
        Ok(())
    }

    /// Makes a change durable at once. Returns whether the key had a record.
    fn write_through(&mut self, change: Change) -> Result<bool, EngineFault<F>> {
        let path = self.path(1, |low| *low <= change.0[..])?;
        let before = path.last().entries.get(&change.0);
        let was_there = before.is_some();
        if before == change.1.as_ref() {
            return Ok(was_there);
        }
        if change.1.is_some() && !was_there && !self.has_room(1) {
            return Err(Fault::NoRoom { limit_pages: self.pages.count() });
        }
        self.write_page(path, &[change])?;
        Ok(was_there)
    }

    /// What the pages hold for a key.
    fn stored(&mut self, key: &[u8]) -> Result<Option<Bytes>, EngineFault<F>> {
        Ok(self.path(1, |low| low <= key)?.last().entries.get(key).cloned())
    }

    /// Forgets what the device holds.
    fn forget(&mut self) {
        self.homes.clear();
        (self.root, self.counted) = (None, None);
    }
}

/// The page in which a header is stored.
fn first_child(header: &Node) -> u32 {
    header.children().next().map_or(u32::MAX, |(_, first)| first)
}

impl<F: Flash> Rival<F> for MbTree<F> {
    const HEAP: Heap = Heap { page: 40, decoded: 4, waiting: 5 };
    const DESCRIPTION: Description = Description {
        key: "mb",
        name: "MB-tree",
        summary: "a leaf has several pages, and that with the most changes is written with them",
        source: "named in Table 2 of the WPCB-tree paper (Ho and Park, 2018)",
        code: 242,
        needs: Needs { rewrite: true, atomic_rewrite: true, no_bad_blocks: true, ..Needs::NOTHING },
        updates: UpdateScheme::InPlace,
        ..Description::EMPTY
    };

    fn new(pages: Pages<F>, most: Most, options: &Options) -> Self {
        let area_bytes = nandina::log::layout_of(&pages.flash.geometry()).area_bytes();
        let sizes = Sizes::new(options);
        let room = options.write_buffer * sizes.changes(area_bytes);
        let room = room.min(options.write_buffer_changes.map_or(usize::MAX, |most| most as usize));
        let (head, homes, pending) = (Head::default(), BTreeMap::new(), Pending::default());
        Self { pages, most, sizes, head, homes, pending, room, root: None, counted: None }
    }

    fn most(area_bytes: usize, options: &Options) -> Most {
        Sizes::new(options).most(area_bytes)
    }

    fn pages_needed(device: &Device<'_>, records: u32) -> u64 {
        worst::pages_needed(device, records)
    }

    fn worst(device: &Device<'_>, records: u32) -> Worst {
        worst::worst(device, records)
    }

    has_pages_and_head!();

    fn records(&self) -> u32 {
        self.counted.unwrap_or(self.head.records)
    }

    fn waiting(&self) -> u32 {
        self.pending.len() as u32
    }

    fn waits(&self, key: &[u8]) -> bool {
        self.pending.get(key).is_some()
    }

    fn format(&mut self) -> Result<(), EngineFault<F>> {
        self.forget();
        self.pending = Pending::default();
        self.head = Head { root: 0, next: 1, since: 0, height: 1, records: 0 };
        let (before, after, divided) = (None, Some(Node::new(0, 1)), None);
        self.commit(self.head, vec![Edit { before, after, divided }], None)?;
        if self.has_room(1) {
            Ok(())
        } else {
            Err(Fault::NoRoom { limit_pages: self.pages.count() })
        }
    }

    fn mount(&mut self, keep: bool) -> Result<Option<NoIndex>, EngineFault<F>> {
        if keep {
            // A read that failed changed nothing.
            return Ok(None);
        }
        self.forget();
        self.pending = Pending::default();
        let sizes = self.sizes;
        let take = |header: &PageHeader, body: &[u8]| nodes_in(body, sizes, header.lowest);
        let (head, found) = match self.pages.mount(take)? {
            Ok(found) => found,
            Err(no_index) => return Ok(Some(no_index)),
        };
        self.head = head;
        let mut nodes = BTreeMap::new();
        for found in found {
            nodes.extend(found.content.into_iter().map(|node| (node.number, (node, found.page))));
        }
        let mut homes = BTreeMap::new();
        let reason = Damage::LacksNode;
        let read = |number, level| match nodes.remove(&number) {
            Some((node, page)) if node.level == level => {
                homes.insert(number, page);
                Ok(node)
            }
            _ => Err(Fault::Corrupt { page: PageNumber(0), reason }),
        };
        visit(&head, 1, read, |_, _| ())?;
        homes.values().for_each(|&page| self.pages.hold(page));
        self.homes = homes;
        Ok(None)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, EngineFault<F>> {
        self.pages.begin();
        match self.pending.get(key) {
            Some(value) => Ok(value.clone()),
            None => self.stored(key),
        }
    }

    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<Option<bool>, EngineFault<F>> {
        self.pages.begin();
        let (key, value) = (Bytes::from_slice(key), value.map(Bytes::from_slice));
        self.counted = None;
        if self.room == 0 {
            return self.write_through((key, value)).map(Some);
        }
        if value.is_some() && !self.has_room(self.pending.len() + 1) {
            self.flush()?;
            self.pages.begin();
            // What is there can be replaced: that divides no page.
            if !self.has_room(1) && self.stored(&key)?.is_none() {
                return Err(Fault::NoRoom { limit_pages: self.pages.count() });
            }
        }
        let leaf = self.leaf_of(&key)?;
        self.pending.add(key, value, leaf);
        if self.pending.len() >= self.room
            && let Some(key) = self.pending.of_fullest()
        {
            self.write_leaf(&key)?;
        }
        Ok(None)
    }

    fn leaf(&mut self, is_before: &dyn Fn(&[u8]) -> bool) -> Result<Leaf, EngineFault<F>> {
        self.pages.begin();
        let Path { mut nodes, keys } = self.path(1, is_before)?;
        let mut records = nodes.pop().map_or_else(BTreeMap::new, |page| page.entries);
        for (key, value) in self.pending.within(&keys) {
            match value {
                Some(value) => records.insert(key, value),
                None => records.remove(&key),
            };
        }
        Ok(Leaf { records: records.into_iter().collect(), keys })
    }

    fn flush(&mut self) -> Result<(), EngineFault<F>> {
        while let Some(key) = self.pending.first() {
            self.write_leaf(&key)?;
        }
        Ok(())
    }

    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>> {
        let mut wrong = |what| report(Violation { page: PageNumber(0), what });
        let (mut nodes, mut in_pages, mut records) = (0, 0, 0);
        let (head, most, pending) = (self.head, self.most, std::mem::take(&mut self.pending));
        let mut misplaced = 0;
        let read = |number, level| {
            self.pages.begin();
            let node = self.node(number, level)?;
            let home = self.homes.get(&number);
            misplaced += u32::from(level == HEADERS && home != self.homes.get(&first_child(&node)));
            Ok(node)
        };
        let visited = visit(&head, 1, read, |node, keys| {
            nodes += 1;
            node.fault(keys, most, &head).into_iter().for_each(&mut wrong);
            if node.level > 1 {
                return;
            }
            if node.entries.is_empty() && node.number != head.root {
                wrong("a page of a leaf is empty");
            }
            in_pages += node.entries.len() as u32;
            let mut all = node.entries.clone();
            for (key, value) in pending.within(keys) {
                match value {
                    Some(value) => all.insert(key, value),
                    None => all.remove(&key),
                };
            }
            records += all.len() as u32;
        });
        self.pending = pending;
        visited?;
        if misplaced > 0 {
            wrong("a header is not in the first page of its leaf");
        }
        if nodes != self.homes.len() || in_pages != head.records {
            wrong("the counts of nodes and records are not those of the tree");
        }
        self.counted = Some(records);
        Ok(())
    }
}
