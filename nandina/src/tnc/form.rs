//! The sizes of nodes, pages and RAM, computed from the settings.
//!
//! Nothing is read or written here.

use core::num::NonZeroU16;
use core::ops::Range;

use crate::engine::{NodeRange, Options};
use crate::flash::Geometry;
use crate::log::layout_of;
use crate::node::Shape;

/// The most levels of a tree.
pub const HEIGHT_MAX: u8 = 12;

/// Children of an inner node, if the options do not say.
///
/// TNC paper, Table 2: with this fanout the fewest bytes are written.
const FANOUT: usize = 32;

/// Records that a leaf has room for at least, where the page is large enough.
const LEAF_RECORDS: usize = 4;

/// The most nodes in a page. A page header has room for their number.
pub const NODES_MAX: usize = 15;

/// Bytes of the fanout with which a page of nodes ends.
const FANOUT_BYTES: usize = 2;

/// Bytes of the count with which a journal page begins.
pub const COUNT_BYTES: usize = 2;

/// Nodes that RAM has room for, if the options do not say.
const SLOTS: usize = 32;

/// The fewest nodes that RAM must have room for.
pub const SLOTS_MIN: usize = 11;

/// The most nodes in RAM: slots have numbers of 16 bits.
pub const SLOTS_MAX: usize = 0xFFF0;

/// Bytes in front of each node in RAM.
pub const SLOT_HEAD: usize = 16;

/// Pages that a commit may write even where blocks are smaller.
const COMMIT_PAGES: u32 = 64;

/// The fewest pages of a commit that a change writes, if the options do not say.
const COMMIT_STEP: usize = 4;

/// Steps of the largest commit, if the options do not say how many pages each has.
const STEPS: usize = 32;

/// The fewest steps into which a commit is divided, if the options do not say.
///
/// With fewer steps much is written twice, and little time is saved.
const STEPS_MIN: usize = 16;

/// The fewest steps, if the options say how many pages each has.
const STEPS_CHOSEN: usize = 4;

/// Pages of the journal, if the options do not say.
const JOURNAL_PAGES: u32 = 128;

/// The sizes of everything that is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    area_bytes: usize,
    pub key_bytes: usize,
    pub value_bytes: usize,
    /// Nodes in a page.
    pub per_page: usize,
    /// Bytes of a node.
    pub node_bytes: usize,
    /// The most children of an inner node, if nodes have room for them.
    fanout_max: usize,
    /// Pages of the chip.
    pub pages: u32,
}

impl Form {
    /// The sizes for an index with these settings on a chip.
    pub fn new(geometry: &Geometry, options: &Options) -> Self {
        let area_bytes = layout_of(geometry).area_bytes();
        let (key_bytes, value_bytes) = (options.key_bytes, options.value_bytes);
        let fanout_max = options.fanout.map_or(usize::MAX, usize::from);
        let inner = Shape::inner(key_bytes).at(options.fanout.map_or(FANOUT, usize::from));
        let leaf = Shape::sorted(key_bytes, value_bytes).at(LEAF_RECORDS);
        // Each node has a byte for its level beside it.
        let room = area_bytes.saturating_sub(FANOUT_BYTES);
        let per_page = (room / (inner.max(leaf) + 1)).clamp(1, NODES_MAX);
        let node_bytes = extent(area_bytes, per_page, 0).len();
        let pages = geometry.pages();
        Self { area_bytes, key_bytes, value_bytes, per_page, node_bytes, fanout_max, pages }
    }

    /// The shape of the nodes of `level`.
    pub const fn shape(&self, level: u8) -> Shape {
        if level == 1 {
            Shape::sorted(self.key_bytes, self.value_bytes)
        } else {
            Shape::inner(self.key_bytes)
        }
    }

    /// Records that a node of `level` may hold.
    pub fn capacity(&self, level: u8) -> usize {
        let fits = self.shape(level).capacity(self.node_bytes);
        if level == 1 { fits } else { fits.min(self.fanout_max) }
    }

    /// The offset of the node at `place` in a page, after the marks of all nodes.
    pub const fn node_at(&self, place: usize) -> usize {
        self.per_page + place * self.node_bytes
    }

    /// The mark of a node of `level` in its page.
    ///
    /// It also says how many nodes such a page has room for.
    pub const fn mark(&self, level: u8) -> u8 {
        (self.per_page as u8) << 4 | level
    }

    /// Writes the fanout into the area of a page of nodes.
    pub fn put_fanout(&self, area: &mut [u8]) {
        let at = area.len() - FANOUT_BYTES;
        area[at..].copy_from_slice(&self.fanout().to_le_bytes());
    }

    /// Whether the nodes of a page with this area have the sizes of this form.
    pub fn is_of(&self, area: &[u8]) -> bool {
        per_page_in(area) == self.per_page && fanout_in(area) == self.fanout()
    }

    /// The most children of an inner node, as a page of nodes says.
    pub fn fanout(&self) -> u16 {
        self.capacity(2).min(usize::from(u16::MAX)) as u16
    }

    /// Bytes of a change in the journal: its kind, its key and its value.
    pub const fn entry_bytes(&self) -> usize {
        1 + self.key_bytes + self.value_bytes
    }

    /// Changes that fit in a page of the journal.
    pub const fn entries(&self) -> usize {
        self.area_bytes.saturating_sub(COUNT_BYTES) / self.entry_bytes()
    }

    /// Bytes of a node in RAM.
    pub const fn slot_bytes(&self) -> usize {
        SLOT_HEAD + self.node_bytes
    }

    /// The pointer to the node at `place` in `page`.
    pub const fn pointer(&self, page: u32, place: usize) -> u32 {
        page * self.per_page as u32 + place as u32
    }

    /// The page of a pointer, and the place in it.
    ///
    /// The number of pages, as a page, means the page in which the pointer is.
    pub const fn place_of(&self, pointer: u32) -> (u32, usize) {
        let per_page = self.per_page as u32;
        (pointer / per_page, (pointer % per_page) as usize)
    }

    /// Whether every pointer has its own number.
    pub const fn can_point(&self) -> bool {
        (self.pages as u64 + 1) * (self.per_page as u64) < 1 << 31
    }

    /// Whether a leaf can hold two records, and an inner node two children.
    pub fn can_split(&self) -> bool {
        self.capacity(1) >= 2 && self.capacity(2) >= 2 && self.entries() >= 1
    }

    /// Bytes of RAM for nodes.
    pub fn arena_bytes(&self, options: &Options) -> usize {
        options.arena_bytes.unwrap_or(SLOTS * self.slot_bytes())
    }

    /// Nodes that RAM has room for.
    pub const fn slots(&self, arena_bytes: usize) -> usize {
        let slots = arena_bytes / self.slot_bytes();
        if slots > SLOTS_MAX { SLOTS_MAX } else { slots }
    }

    /// Bytes of RAM for the numbers of needed nodes in each page.
    pub const fn live_bytes(&self) -> usize {
        if self.per_page > 1 { (self.pages as usize).div_ceil(2) } else { 0 }
    }

    /// Bytes of RAM for the changes that wait for their page of the journal.
    pub const fn group_bytes(&self, page_bytes: u32, options: &Options) -> usize {
        options.write_buffer * page_bytes as usize
    }
}

/// The level that a mark encodes.
pub const fn level_in(mark: u8) -> u8 {
    mark & 0xF
}

/// How many nodes a page with this area has room for; 0 if it holds none.
pub fn per_page_in(area: &[u8]) -> usize {
    area.first().map_or(0, |mark| usize::from(mark >> 4))
}

/// The most children of an inner node, as a page with this area says.
pub fn fanout_in(area: &[u8]) -> u16 {
    area.last_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

/// The level and the range of the node at `place` in a page with this area.
pub fn node_in(area: &[u8], place: usize) -> Option<NodeRange> {
    let per_page = per_page_in(area);
    let mark = *area.get(..per_page)?.get(place)?;
    let range = extent(area.len(), per_page, place);
    let is_node = usize::from(mark >> 4) == per_page && range.end <= area.len();
    is_node.then(|| (level_in(mark), range))
}

/// The range of the node at `place` in a page that has room for `per_page`.
pub const fn extent(area_bytes: usize, per_page: usize, place: usize) -> Range<usize> {
    let node_bytes = (area_bytes.saturating_sub(FANOUT_BYTES) / per_page).saturating_sub(1);
    let start = per_page + place * node_bytes;
    start..start + node_bytes
}

/// The most changes that wait for their journal pages, in `bytes` of RAM.
pub fn group_max(form: &Form, bytes: usize, options: &Options) -> usize {
    let changes = options.write_buffer_changes.map_or(usize::MAX, |changes| changes as usize);
    (bytes / form.entry_bytes()).min(changes)
}

/// The most pages of the journal from one commit to the next.
pub const fn journal_max(options: &Options) -> u32 {
    match options.journal_pages {
        Some(pages) => pages,
        None => JOURNAL_PAGES,
    }
}

/// Pages of a step, as the options set them, but no more than there may be.
pub const fn commit_step(options: &Options) -> Option<NonZeroU16> {
    match options.commit_step {
        None => None,
        Some(pages) if pages < u16::MAX as u32 => NonZeroU16::new(pages as u16),
        Some(_) => Some(NonZeroU16::MAX),
    }
}

/// Nodes that a step of a commit writes, in a tree of `height`.
///
/// `None` if commits of at most `dirty` nodes are not divided into steps. `pages` are those of the
/// options. A step has at least twice as many nodes as a change makes dirty meanwhile.
pub fn step_nodes(
    form: &Form,
    dirty: usize,
    height: u8,
    pages: Option<NonZeroU16>,
) -> Option<usize> {
    let (pages, steps) = match pages {
        Some(pages) => (pages.get().into(), STEPS_CHOSEN),
        None => ((dirty / form.per_page / STEPS).max(COMMIT_STEP), STEPS_MIN),
    };
    let pages = pages.max((2 * path_nodes(height)).div_ceil(form.per_page));
    let nodes = pages.saturating_mul(form.per_page);
    (nodes.saturating_mul(steps) <= dirty).then_some(nodes)
}

/// The most nodes that each of many changes makes dirty.
///
/// A single change may split its whole path, but then the path is not full for many changes after
/// it.
pub const fn path_nodes(height: u8) -> usize {
    height as usize + 1
}

/// The highest tree whose longest change finds room in `slots` nodes.
///
/// A change holds its path, splits every node of it, and adds a root. Beside them there is room for
/// another path, so that reading needs no commit.
pub fn height_max(slots: usize) -> u8 {
    (slots.saturating_sub(2) / 3).min(HEIGHT_MAX.into()) as u8
}

/// The most nodes that a change of a tree of `height` makes dirty.
pub const fn change_nodes(height: u8) -> usize {
    2 * height as usize + 1
}

/// The most dirty nodes in a tree of `height`.
///
/// Where RAM has room for more, a commit still writes about a block, or as many pages as a large
/// block has, and no more than a sixteenth of the chip. So little room must be kept for it on the
/// chip.
pub fn dirty_max(form: &Form, slots: usize, height: u8, block_pages: u32) -> usize {
    let pages = block_pages.max(COMMIT_PAGES).min(form.pages / 16) as usize;
    let least = change_nodes(height);
    (pages * form.per_page).max(least).min(slots.saturating_sub(usize::from(height) + 1))
}

/// The most pages that a commit writes: its nodes, and the first page of a session.
pub const fn commit_pages(form: &Form, dirty: usize) -> u32 {
    dirty.div_ceil(form.per_page) as u32 + 1
}

/// The largest tree that a number of records can form.
///
/// Neighbours below one parent that fit in one node are merged at once. So any two neighbouring
/// children of a parent hold more records than one node can, and one child may be left over.
pub struct Size {
    pub height: u8,
    pub leaves: u32,
    pub inner_nodes: u32,
    /// No bound was found: nodes are too small.
    pub too_high: bool,
}

impl Size {
    /// Rounds after which the numbers of nodes have converged, or never will.
    const ROUNDS: usize = 48;

    /// The size of the largest tree of `records` records.
    pub fn of(form: &Form, records: u32) -> Self {
        let capacity = |level: u8| form.capacity(level).min(u16::MAX.into()) as u32;
        if records <= capacity(1) {
            return Self { height: 1, leaves: 1, inner_nodes: 0, too_high: false };
        }
        let most = |below: u32, level: u8, above: u32| {
            let pairs = below / (capacity(level) + 1);
            pairs.saturating_mul(2).saturating_add(above)
        };
        for height in 2..=HEIGHT_MAX {
            let mut nodes = [1u32; HEIGHT_MAX as usize + 2];
            let mut settled = false;
            for _ in 0..Self::ROUNDS {
                let before = nodes;
                nodes[1] = most(records, 1, nodes[2]);
                for level in 2..height {
                    let at = usize::from(level);
                    nodes[at] = most(nodes[at - 1], level, nodes[at + 1]);
                }
                settled = nodes == before;
                if settled || nodes[1] > u32::MAX / 8 {
                    break;
                }
            }
            let top = nodes[usize::from(height) - 1];
            if settled && top <= capacity(height) {
                let inner = nodes[2..=usize::from(height)].iter().sum();
                return Self { height, leaves: nodes[1], inner_nodes: inner, too_high: false };
            }
        }
        let leaves = records.div_ceil(capacity(1).max(1));
        Self { height: HEIGHT_MAX, leaves, inner_nodes: 1, too_high: true }
    }
}
