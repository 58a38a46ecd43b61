//! A tree on the medium, walked from a root as far as its pages allow.
//!
//! An unreachable node is reported, and the walk continues beside it. Only a page's own content is
//! trusted.

use std::collections::{BTreeMap, BTreeSet};

use nandina::engine::{KEY_BYTES_MAX, NodeArea};
use nandina::flash::PageNumber;
use nandina::node::{Node, PageFault, SAME_PAGE, Shape};
use nandina::tree::HEIGHT_MAX;
use serde::Serialize;

use super::header::Header;
use super::pages::Pages;
use super::reader::{Reader, reader_of};
use crate::LabError;

/// The nodes of one level of a tree.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LevelFacts {
    /// 1 for leaves.
    pub level: u8,
    /// Nodes that could be read.
    pub nodes: u32,
    /// Records in them; in inner nodes, children.
    pub records: u64,
    /// Records in percent of those that fit: mean over the nodes.
    pub fill_mean_percent: f64,
    /// The same of the emptiest node.
    pub fill_least_percent: f64,
}

impl LevelFacts {
    /// One level, of which no node has been read yet.
    pub(super) fn empty(level: u8) -> Self {
        Self { level, fill_least_percent: 100.0, ..Self::default() }
    }

    /// The levels of a tree, the root's first.
    pub(super) fn of_tree(height: u8) -> Vec<Self> {
        (1..=height).rev().map(Self::empty).collect()
    }

    /// Counts a node with `count` records, where `capacity` fit.
    pub(super) fn add(&mut self, count: usize, capacity: usize) {
        let fill = count as f64 * 100.0 / capacity.max(1) as f64;
        self.nodes += 1;
        self.records += count as u64;
        self.fill_mean_percent += fill;
        self.fill_least_percent = self.fill_least_percent.min(fill);
    }

    /// Turns the sum of all nodes into their mean.
    pub(super) fn finish(&mut self) {
        match self.nodes {
            0 => self.fill_least_percent = 0.0,
            nodes => self.fill_mean_percent /= f64::from(nodes),
        }
    }
}

/// A node that the tree needs and that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Loss {
    /// The page in which it should be.
    pub page: u32,
    /// Its level; all below it is lost too.
    pub level: u8,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Pages of a tree that hold several nodes each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PackedFacts {
    /// The most nodes that a page can hold.
    pub nodes_max: u32,
    /// Pages that hold a node that could be read.
    pub pages_of_nodes: u32,
    /// Whether leaves point to values that stay in the journal.
    pub values_in_journal: bool,
    /// Pages that hold such a value that could be read.
    pub pages_of_values: u32,
}

/// A tree, as far as it can be walked.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TreeFacts {
    /// Page of the root.
    pub root_page: u32,
    /// Sequence number of that page.
    pub sequence: u64,
    /// Levels.
    pub height: u8,
    /// Records that there were when the root was written.
    pub records: u32,
    /// Records in leaves that could be read.
    pub records_reached: u64,
    /// Pages that hold a node that could be read, or a value.
    pub valid_pages: u32,
    /// Where a page holds several nodes: how many at most, and what the pages hold.
    pub packed: Option<PackedFacts>,
    /// Each level, the root's first.
    pub levels: Vec<LevelFacts>,
    /// Nodes that could not be read.
    pub losses: Vec<Loss>,
}

/// A walked tree and the pages that it reached.
pub struct Walk {
    pub facts: TreeFacts,
    /// Pages that hold a node that could be read.
    pub valid: BTreeSet<u32>,
}

/// A node to visit.
///
/// The page that its parent points to, its level, and the first key that is no longer its own.
type Open = (u32, u8, Option<Vec<u8>>);

/// Walks the tree below the root in `page`.
pub fn walk(pages: &mut Pages, page: PageNumber) -> Result<Walk, LabError> {
    let root = match pages.found.get(page.0 as usize) {
        Some(Ok(header)) => *header,
        _ => return Err(LabError(format!("{page} holds no root"))),
    };
    let reader = reader_of(root.medium.system);
    let facts = TreeFacts {
        root_page: page.0,
        sequence: root.sequence,
        height: root.height,
        records: root.records,
        records_reached: 0,
        valid_pages: 0,
        packed: None,
        levels: Vec::new(),
        losses: Vec::new(),
    };
    let impossible = match reader {
        None => Some("its system is not known"),
        _ if root.lowest == 0 || root.height > HEIGHT_MAX => Some("its levels cannot be"),
        _ if !(1..=KEY_BYTES_MAX).contains(&root.medium.key_bytes.into()) => {
            Some("its keys have an impossible size")
        }
        _ => None,
    };
    let mut walker =
        Walker { pages, root, reader, facts, valid: BTreeSet::new(), names: BTreeMap::new() };
    match impossible {
        Some(reason) => walker.lose(page.0, root.height, reason),
        None if reader.is_some_and(|reader| reader.system.has_leaf_blocks()) => {
            walker.run_leaf_blocks()?
        }
        None if reader.is_some_and(|reader| !reader.system.has_inner_nodes()) => {
            walker.run_leaves()?
        }
        None if reader.is_some_and(|reader| reader.packed.is_some()) => walker.run_packed(page)?,
        None => walker.run(page.0)?,
    }
    let Walker { mut facts, valid, .. } = walker;
    facts.valid_pages = valid.len() as u32;
    facts.records_reached =
        facts.levels.iter().find(|level| level.level == 1).map_or(0, |level| level.records);
    Ok(Walk { facts, valid })
}

pub(super) struct Walker<'p> {
    pub pages: &'p mut Pages,
    /// The page from which the walk starts: a root, or the newest leaf.
    pub root: Header,
    pub reader: Option<Reader>,
    pub facts: TreeFacts,
    pub valid: BTreeSet<u32>,
    /// The page of each moved node, by its logical address.
    names: BTreeMap<u32, u32>,
}

impl Walker<'_> {
    pub fn lose(&mut self, page: u32, level: u8, reason: &'static str) {
        self.facts.losses.push(Loss { page, level, reason });
    }

    fn run(&mut self, root: u32) -> Result<(), LabError> {
        let Some(reader) = self.reader else { return Ok(()) };
        let height = self.root.height;
        if reader.system.has_mapping_table() {
            self.find_names(reader)?;
        }
        let mut levels = LevelFacts::of_tree(height);
        // Each node is visited once, so pointers in a circle end.
        let mut seen = BTreeSet::new();
        let mut open: Vec<Open> = vec![(root, height, None)];
        while let Some((pointer, level, bound)) = open.pop() {
            let page = self.place_of(pointer, reader);
            if !seen.insert((page, level)) {
                self.lose(page, level, "two nodes point to it");
                continue;
            }
            if let Some(reason) = self.fault(page, level, root) {
                self.lose(page, level, reason);
                continue;
            }
            let layout = self.pages.layout;
            let mut bytes = self.pages.bytes(PageNumber(page))?.to_vec();
            let range = (reader.nodes.extent)(&NodeArea::of(&layout, &bytes), level, height);
            let shape = self.shape(level);
            let shape = if reader.system.appends() {
                shape.appended(range.len()).unwrap_or(shape)
            } else {
                shape
            };
            let capacity = shape.capacity(range.len());
            if !layout.unpack(&mut bytes) {
                self.lose(page, level, "it is no node");
                continue;
            }
            let Some(node) = bytes.get(range).and_then(|bytes| Node::parse(bytes, shape)) else {
                self.lose(page, level, "a node has more records than fit");
                continue;
            };
            self.valid.insert(page);
            let facts = &mut levels[usize::from(height - level)];
            let count = match &bound {
                Some(bound) if reader.nodes.trims => node.search(bound).unwrap_or_else(|at| at),
                _ => node.count(),
            };
            facts.add(count, capacity);
            if level > 1 {
                let children = (0..count).rev().map(|slot| {
                    let pointer = node.pointer(slot);
                    let child = if pointer == SAME_PAGE { page } else { pointer };
                    let next = (slot + 1 < count).then(|| node.key(slot + 1).to_vec());
                    (child, level - 1, next.or_else(|| bound.clone()))
                });
                open.extend(children);
            }
        }
        levels.iter_mut().for_each(LevelFacts::finish);
        self.facts.levels = levels;
        Ok(())
    }

    /// Finds the page of each logical address.
    ///
    /// Of the pages with one logical address the newest holds the node, if it is newer than the
    /// page whose number that is.
    fn find_names(&mut self, reader: Reader) -> Result<(), LabError> {
        let pages: Vec<_> = self.pages.readable().map(|(page, header)| (page, *header)).collect();
        let area_bytes = self.pages.layout.area_bytes();
        for (page, header) in pages {
            if header.identity != self.root.identity || header.height == 0 || header.lowest == 0 {
                continue;
            }
            let Some(name) = (reader.nodes.address_in)(&self.pages.bytes(page)?[..area_bytes])
            else {
                continue;
            };
            let rival = self.names.get(&name).copied().unwrap_or(name);
            if self.sequence(rival) < header.sequence {
                self.names.insert(name, page.0);
            }
        }
        Ok(())
    }

    /// The sequence number of a page of this index that counts; 0 for any other page.
    fn sequence(&self, page: u32) -> u64 {
        let header = self.pages.found.get(page as usize).and_then(|found| found.as_ref().ok());
        let header = header
            .filter(|header| header.identity == self.root.identity && self.pages.counts(header));
        header.map_or(0, |header| header.sequence)
    }

    /// The page that holds the node that `pointer` refers to.
    fn place_of(&self, pointer: u32, reader: Reader) -> u32 {
        if reader.system.replaces() && !self.root.medium.atomic {
            let twins = [pointer & !1, pointer | 1];
            return twins.into_iter().max_by_key(|&page| self.sequence(page)).unwrap_or(pointer);
        }
        self.names.get(&pointer).copied().unwrap_or(pointer)
    }

    pub fn shape(&self, level: u8) -> Shape {
        let key_bytes = usize::from(self.root.medium.key_bytes);
        match level {
            1 => Shape::sorted(key_bytes, self.root.medium.value_bytes.into()),
            _ => Shape::inner(key_bytes),
        }
    }

    /// Returns why `page` cannot hold a node of `level` of this tree.
    pub fn fault(&self, page: u32, level: u8, root: u32) -> Option<&'static str> {
        let header = match self.pages.found.get(page as usize) {
            None => return Some("a pointer leads beyond the chip"),
            Some(Err(PageFault::Erased)) => return Some("it is erased but referenced"),
            Some(Err(PageFault::Damaged | PageFault::Appended)) => {
                return Some("its checksum does not match");
            }
            Some(Err(PageFault::Unreadable)) => {
                return Some("it has more wrong bits than the ECC corrects");
            }
            Some(Err(PageFault::Version(_))) => return Some("it has another format version"),
            Some(Ok(header)) => header,
        };
        if header.medium != self.root.medium || header.identity != self.root.identity {
            return Some("it belongs to another index");
        }
        // A root is written last: a newer page replaced the one that was meant.
        let paths = self.reader.is_some_and(|reader| reader.system.root_commits());
        if paths && page != root && header.sequence >= self.root.sequence {
            return Some("the page was written anew since");
        }
        (header.lowest == 0 || header.lowest > level).then_some("it has no node of this level")
    }
}
