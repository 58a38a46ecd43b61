//! What a program can know about a system without an index of it.

use core::ops::Range;

use crate::flash::Needs;
use crate::node::{PageHeader, PageLayout, PageSharing, Shape, UpdateScheme};

/// What the registry records about a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// The key by which programs select the system.
    pub key: &'static str,
    /// The name shown to people.
    pub name: &'static str,
    /// One line on how a changed node reaches flash.
    pub summary: &'static str,
    /// The source: paper and section.
    pub source: &'static str,
    /// What the system needs of a chip.
    pub needs: Needs,
    /// The system's number on the medium, never given to another system.
    pub code: u8,
    /// Fewest page buffers that the system can work with.
    pub buffers_min: usize,
    /// Page buffers with which a tree of height three reads no page twice.
    pub buffers_default: usize,
    /// How a change reaches the chip.
    pub updates: UpdateScheme,
    /// The index can write checkpoints, so that a mount reads little.
    pub checkpoints: bool,
    /// Checkpoints are written by [`Index::close`](crate::Index::close) alone.
    ///
    /// Pages that are older than a checkpoint are changed after it, so it counts until then.
    pub checkpoints_at_close: bool,
}

impl Description {
    /// What a description leaves out.
    ///
    /// It needs nothing, has three page buffers, and writes paths.
    pub const EMPTY: Self = Self {
        key: "",
        name: "",
        summary: "",
        source: "",
        needs: Needs::NOTHING,
        code: 0,
        buffers_min: 3,
        buffers_default: 3,
        updates: UpdateScheme::Paths,
        checkpoints: false,
        checkpoints_at_close: false,
    };

    /// Whether blocks are collected, so that wear and victims are a choice.
    pub const fn collects(&self) -> bool {
        self.updates.collects()
    }

    /// Whether a changed node replaces itself on its page, so that no block is erased.
    pub const fn replaces(&self) -> bool {
        self.updates.replaces()
    }

    /// Whether records are appended to pages that are already programmed.
    pub const fn appends(&self) -> bool {
        self.updates.appends()
    }

    /// Whether only a root commits, with the path of pages that a change wrote.
    pub const fn root_commits(&self) -> bool {
        !self.updates.pages_commit()
    }

    /// Whether nodes above the leaves are on the chip.
    ///
    /// Otherwise, a lost leaf is noticed as records that are missing, but by no pointer to it.
    pub const fn has_inner_nodes(&self) -> bool {
        !self.has_directory()
    }

    /// Whether changes are on the chip before the nodes that hold them.
    ///
    /// A mount makes these changes again, and may write nodes and a commit of its own.
    pub const fn replays(&self) -> bool {
        matches!(self.updates, UpdateScheme::Journal)
    }

    /// Whether a mount takes the newest page of each node or leaf for the current one.
    ///
    /// If that page is lost, an older one counts, of which nothing on the chip says so.
    pub const fn newest_counts(&self) -> bool {
        self.has_mapping_table() || (self.has_directory() && !self.has_leaf_blocks())
    }

    /// Whether there is a mapping table.
    ///
    /// [`Options::mapping_bytes`](crate::Options::mapping_bytes) is its size.
    pub const fn has_mapping_table(&self) -> bool {
        matches!(self.updates, UpdateScheme::Mapped)
    }

    /// Whether there is a directory in RAM, which says which leaf owns which keys.
    ///
    /// [`Options::leaves`](crate::Options::leaves) is its size.
    pub const fn has_directory(&self) -> bool {
        matches!(self.updates, UpdateScheme::Leaves) || self.has_leaf_blocks()
    }

    /// Whether a leaf is a block, with a log of changes behind its records.
    pub const fn has_leaf_blocks(&self) -> bool {
        matches!(self.updates, UpdateScheme::LeafBlocks)
    }

    /// Whether pages that the ECC found weak are written elsewhere.
    ///
    /// A chip of which parts of pages are programmed has seldom an ECC.
    pub const fn refreshes(&self) -> bool {
        !self.has_leaf_blocks()
    }

    /// Whether nodes are changed in RAM.
    ///
    /// [`Options::arena_bytes`](crate::Options::arena_bytes) is the RAM for them.
    pub const fn has_arena(&self) -> bool {
        matches!(self.updates, UpdateScheme::Journal)
    }

    /// Whether there can be an [`Options::write_cache`](crate::Options::write_cache).
    pub const fn has_write_cache(&self) -> bool {
        matches!(self.updates, UpdateScheme::Paths)
    }

    /// Whether there can be [`Options::checkpoints`](crate::Options::checkpoints).
    pub const fn has_checkpoints(&self) -> bool {
        self.checkpoints && cfg!(feature = "checkpoints")
    }

    /// Whether there can be an [`Options::read_cache`](crate::Options::read_cache).
    ///
    /// Systems that write paths have it without its feature, too.
    pub const fn has_read_cache(&self) -> bool {
        !self.has_directory() && (self.has_write_cache() || cfg!(feature = "read-cache"))
    }

    /// Whether there is an [`Options::write_buffer`](crate::Options::write_buffer).
    pub const fn has_write_buffer(&self) -> bool {
        !self.has_directory() && cfg!(feature = "write-buffer")
    }

    /// Whether there is an [`Options::eviction`](crate::Options::eviction) to choose.
    pub const fn has_evictions(&self) -> bool {
        self.has_write_buffer() && !self.has_arena() && cfg!(feature = "paper-modes")
    }

    /// Whether [`Options::rebalances`](crate::Options::rebalances) can be set.
    pub const fn has_rebalancing(&self) -> bool {
        self.replaces() && cfg!(feature = "paper-modes")
    }
}

/// The first key of a leaf's range, and the first key past it, if there is one.
pub type LeafRange<'a> = (&'a [u8], Option<&'a [u8]>);

/// The node area of a page, and what says where its nodes are.
#[derive(Clone, Copy)]
pub struct NodeArea<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The lowest level of the nodes in the page.
    pub lowest: u8,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
}

impl<'a> NodeArea<'a> {
    /// The node area of the page in `frame`, a page buffer.
    pub fn of(layout: &PageLayout, frame: &'a [u8]) -> Self {
        let medium = layout.medium(frame);
        Self {
            bytes: &frame[..layout.area_bytes()],
            lowest: layout.header(frame).lowest,
            key_bytes: medium.key_bytes.into(),
            value_bytes: medium.value_bytes.into(),
        }
    }

    /// The shape of the nodes of `level`, if their records are sorted.
    pub const fn shape(&self, level: u8) -> Shape {
        if level == 1 {
            Shape::sorted(self.key_bytes, self.value_bytes)
        } else {
            Shape::inner(self.key_bytes)
        }
    }
}

/// Where the nodes of a tree are in its pages: what inspectors and tests need.
#[derive(Clone, Copy)]
pub struct Nodes {
    /// The range of a node in the node area of a page.
    ///
    /// The arguments are that area, the node's level, and the height of the tree.
    pub extent: fn(&NodeArea<'_>, u8, u8) -> Range<usize>,
    /// The logical address in the node area of a page, if it has one.
    pub address_in: fn(&[u8]) -> Option<u32>,
    /// The range of keys that a leaf owns, if its page carries one.
    ///
    /// The first argument is the node area of the page, the second is the number of bytes of a key.
    /// The result is the first key of the range, and the first key past it, which is `None` if the
    /// range has no upper end.
    pub range_in: fn(&[u8], usize) -> Option<LeafRange<'_>>,
    /// A node may hold stale records beyond its own.
    pub trims: bool,
    /// How the nodes of a path share pages.
    pub sharing: PageSharing,
    /// Pages that a path takes when all of its nodes change, in a tree of this height.
    pub path_pages: fn(u8) -> u32,
}

/// The level of a node, and its range in the node area of a page.
pub type NodeRange = (u8, Range<usize>);

/// Bytes of a key and of a value.
pub type RecordSizes = (usize, usize);

/// A function that looks for a record in a page with this header and this area.
///
/// The number is that of a change in the page. Returns where its key begins.
pub type RecordAt = fn(&PageHeader, &[u8], RecordSizes, usize) -> Option<usize>;

/// How nodes of any level are packed into pages, and which pages hold changes.
///
/// The tag of a page of nodes is not 0. Where a page has N numbers, a pointer is N times the page
/// and the place of the node in it. The number of pages of the chip, as a page, is the
/// page in which the pointer is. The functions are given the tag and the node area of a page.
#[derive(Clone, Copy)]
pub struct Packed {
    /// How many places for nodes a page has; 0 if it holds none.
    pub places: fn(u8, &[u8]) -> usize,
    /// How many nodes a page holds.
    pub nodes: fn(u8, &[u8]) -> usize,
    /// The bytes of a full node.
    pub node_bytes: fn(u8, &[u8]) -> usize,
    /// The level and the range of the node at a place.
    pub node_at: fn(u8, &[u8], usize) -> Option<NodeRange>,
    /// Whether a page with this header holds changes of the journal.
    pub is_journal: fn(&PageHeader) -> bool,
    /// How many changes a page of the journal holds, the last of which may be torn.
    ///
    /// 0 if its count is impossible.
    pub changes: fn(&PageHeader, &[u8], RecordSizes) -> usize,
    /// Whether values are stored apart from the nodes, as a page of nodes says.
    pub apart: fn(&[u8]) -> bool,
    /// How many numbers pointers have for what is in a page.
    ///
    /// That is its nodes and, where values are stored apart from these, its values.
    pub numbers: fn(u8, &[u8], RecordSizes) -> usize,
    /// Where a record is whose value is stored apart from the nodes.
    pub record_at: RecordAt,
}
