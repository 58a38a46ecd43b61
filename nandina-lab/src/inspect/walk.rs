//! A tree as it stands on the medium, walked from a root as far as its pages allow. What cannot be reached
//! is named, and the walk goes on beside it. Nothing is believed that a page does not say itself.

use std::collections::BTreeSet;
use std::ops::Range;

use nandina::flash::PageNumber;
use nandina::node::{Node, PageFault, PageHeader, SAME_PAGE, Shape};
use nandina::place::{Placement, Visitor, key_of, visit};
use nandina::tree::{HEIGHT_MAX, KEY_BYTES_MAX};
use serde::Serialize;

use super::pages::Pages;
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
    /// Records in percent of those that would fit: mean over the nodes.
    pub fill_mean_percent: f64,
    /// The same of the emptiest node.
    pub fill_least_percent: f64,
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
    /// Pages that hold a node that could be read.
    pub valid_pages: u32,
    /// Each level, the root's first.
    pub levels: Vec<LevelFacts>,
    /// Nodes that could not be read.
    pub losses: Vec<Loss>,
}

/// A walked tree and the pages that it came to.
pub struct Walk {
    pub facts: TreeFacts,
    /// Pages that hold a node that could be read.
    pub valid: BTreeSet<u32>,
}

/// Where a system puts the nodes of a level: [`Placement::extent`].
type Extent = fn(usize, u8, u8) -> Range<usize>;

struct ExtentOf;

impl Visitor for ExtentOf {
    type Output = Extent;

    fn visit<S: Placement + 'static>(self) -> Extent {
        S::extent
    }
}

/// Walks the tree below the root in `page`.
pub fn walk(pages: &mut Pages, page: PageNumber) -> Result<Walk, LabError> {
    let root = match pages.found.get(page.0 as usize) {
        Some(Ok(header)) => *header,
        _ => return Err(LabError(format!("{page} holds no root"))),
    };
    let extent = key_of(root.medium.system).and_then(|system| visit(system, ExtentOf));
    let facts = TreeFacts {
        root_page: page.0,
        sequence: root.sequence,
        height: root.height,
        records: root.records,
        records_reached: 0,
        valid_pages: 0,
        levels: Vec::new(),
        losses: Vec::new(),
    };
    let impossible = match extent {
        None => Some("its system is not known"),
        _ if root.lowest == 0 || root.height > HEIGHT_MAX => Some("its levels cannot be"),
        _ if !(1..=KEY_BYTES_MAX).contains(&root.medium.key_bytes.into()) => {
            Some("its keys have an impossible size")
        }
        _ => None,
    };
    let mut walker = Walker { pages, root, extent, facts, valid: BTreeSet::new() };
    match impossible {
        Some(reason) => walker.lose(page.0, root.height, reason),
        None => walker.run(page.0)?,
    }
    let Walker { mut facts, valid, .. } = walker;
    facts.valid_pages = valid.len() as u32;
    facts.records_reached =
        facts.levels.iter().find(|level| level.level == 1).map_or(0, |level| level.records);
    Ok(Walk { facts, valid })
}

struct Walker<'p> {
    pages: &'p mut Pages,
    root: PageHeader,
    extent: Option<Extent>,
    facts: TreeFacts,
    valid: BTreeSet<u32>,
}

impl Walker<'_> {
    fn lose(&mut self, page: u32, level: u8, reason: &'static str) {
        self.facts.losses.push(Loss { page, level, reason });
    }

    fn run(&mut self, root: u32) -> Result<(), LabError> {
        let Some(extent) = self.extent else { return Ok(()) };
        let height = self.root.height;
        let mut levels: Vec<LevelFacts> = (1..=height)
            .rev()
            .map(|level| LevelFacts { level, fill_least_percent: 100.0, ..LevelFacts::default() })
            .collect();
        // Each node is come to once, so pointers in a circle end.
        let mut seen = BTreeSet::new();
        let mut open = vec![(root, height)];
        while let Some((page, level)) = open.pop() {
            if !seen.insert((page, level)) {
                self.lose(page, level, "two nodes point to it");
                continue;
            }
            if let Some(reason) = self.fault(page, level, root) {
                self.lose(page, level, reason);
                continue;
            }
            let shape = self.shape(level);
            let range = extent(self.pages.layout.area_bytes(), level, height);
            let capacity = shape.capacity(range.len());
            let bytes = self.pages.bytes(PageNumber(page))?;
            let Some(node) = bytes.get(range).and_then(|bytes| Node::parse(bytes, shape)) else {
                self.lose(page, level, "a node has more records than fit");
                continue;
            };
            self.valid.insert(page);
            let facts = &mut levels[usize::from(height - level)];
            let fill = node.count() as f64 * 100.0 / capacity.max(1) as f64;
            facts.nodes += 1;
            facts.records += node.count() as u64;
            facts.fill_mean_percent += fill;
            facts.fill_least_percent = facts.fill_least_percent.min(fill);
            if level > 1 {
                let children = (0..node.count()).rev().map(|slot| match node.pointer(slot) {
                    SAME_PAGE => (page, level - 1),
                    child => (child, level - 1),
                });
                open.extend(children);
            }
        }
        for level in &mut levels {
            match level.nodes {
                0 => level.fill_least_percent = 0.0,
                nodes => level.fill_mean_percent /= f64::from(nodes),
            }
        }
        self.facts.levels = levels;
        Ok(())
    }

    fn shape(&self, level: u8) -> Shape {
        let key_bytes = usize::from(self.root.medium.key_bytes);
        match level {
            1 => Shape::sorted(key_bytes, self.root.medium.value_bytes.into()),
            _ => Shape::inner(key_bytes),
        }
    }

    /// Why `page` cannot hold a node of `level` of this tree.
    fn fault(&self, page: u32, level: u8, root: u32) -> Option<&'static str> {
        let header = match self.pages.found.get(page as usize) {
            None => return Some("a pointer leads beyond the chip"),
            Some(Err(PageFault::Erased)) => return Some("it is erased but referenced"),
            Some(Err(PageFault::Damaged)) => return Some("its checksum does not match"),
            Some(Err(PageFault::Unreadable)) => {
                return Some("it has more wrong bits than the ECC corrects");
            }
            Some(Err(PageFault::Version(_))) => return Some("it has another format version"),
            Some(Ok(header)) => header,
        };
        if header.medium != self.root.medium || header.identity != self.root.identity {
            return Some("it belongs to another index");
        }
        // A root is written last: what is newer was written over the page that was meant.
        if page != root && header.sequence >= self.root.sequence {
            return Some("the page was written anew since");
        }
        (header.lowest == 0 || header.lowest > level).then_some("it has no node of this level")
    }
}
