//! How a changed node reaches flash: what the tree requires of a system.
//!
//! The tree works on the nodes of one root-to-leaf path, from the leaf upwards. It hands each
//! changed node to the store, which writes it and returns the pointer for the parent. The page with
//! the root is programmed last: that is the commit point of an operation.
//!
//! A store knows levels and page buffers. It never knows keys, and never decides what changes.

use core::ops::Range;

use super::WritePolicy;
use crate::cache::Resolve;
use crate::engine::Description;
use crate::flash::Flash;
use crate::node::{Medium, Node, NodeMut, PageLayout, SAME_PAGE, Shape};
use crate::space::Space;

/// The error of a store: it passes on the fault that [`Space`] returned.
pub type PlaceFault<F> = crate::error::Fault<<F as Flash>::Error>;

/// A level of nodes in a tree of a given height.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// The level; leaves are at level 1.
    pub level: u8,
    /// Height of the tree; a node at this level is the root.
    pub height: u8,
    /// Sizes of the records of this level's nodes.
    pub shape: Shape,
}

/// What a store has to know about a node that it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The pointer by which the parent refers to the node; `None` for a new node.
    pub name: Option<u32>,
    /// The parent must take a new pointer, so the node may not keep the old one.
    pub leave: bool,
}

impl Origin {
    /// A node to which no parent refers yet.
    pub const NEW: Self = Self { name: None, leave: true };
}

/// A node that was split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Halves {
    /// The pointer by which the parent refers to the node.
    pub name: u32,
    /// The page buffer of the lower half.
    pub left: usize,
    /// The page buffer of the upper half, which occupies the same range in it.
    pub right: usize,
}

/// Where a written node is found from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// By the pointer that its parent already has.
    ///
    /// No parent changes, so the update is committed.
    Stays,
    /// By this pointer, which the parent must store.
    At(u32),
}

/// The default page buffer for a node of `level`.
///
/// The root has the last one to itself; the other levels share the rest in turn.
pub(crate) const fn default_buffer(level: u8, height: u8, buffers: usize) -> usize {
    if level == height { buffers - 1 } else { (level as usize - 1) % (buffers - 1) }
}

/// The page buffer beside the [`default_buffer`] of a node of `level`.
const fn default_spare(level: u8, height: u8, buffers: usize) -> usize {
    if level == height { 0 } else { level as usize % (buffers - 1) }
}

/// A way to store a tree: decides where a changed node is written.
pub trait Placement: Default {
    /// What the system requires of the space that it writes to.
    type Kind: WritePolicy;

    /// What the registry records about the system.
    const DESCRIPTION: Description;

    /// Reads trim a node to the records below its upper neighbour's first key.
    ///
    /// So the lower half of a split need not be written at once, and the parent, which is written
    /// alone and last, commits the split.
    const TRIMS: bool = false;

    /// Writing a node makes its previous page obsolete.
    ///
    /// If `false`, the store calls `Space::retire` itself.
    const RETIRES: bool = true;

    /// The lower half of a split node stays where it is, untouched.
    const LEFT_STAYS: bool = false;

    /// A full leaf stays full if a record is added to its end, which opens a leaf.
    ///
    /// Default: only the last leaf of the tree does; other leaves are divided in the middle.
    const FULL_LEAVES_STAY: bool = false;

    /// A page can hold several nodes of a path: some inner nodes have no page.
    const SHARES_PAGES: bool = false;

    /// The range of a node of `level` in a page's node area, in a tree of `height`.
    ///
    /// Default: the whole area.
    fn extent(area_bytes: usize, level: u8, height: u8) -> Range<usize> {
        let _ = (level, height);
        0..area_bytes
    }

    /// Pages that a root-to-leaf path takes when all of its nodes change.
    ///
    /// Default: one page for each node.
    fn path_pages(height: u8) -> u32 {
        height.into()
    }

    /// Pages that a tree of height `from` takes to grow to height `to`.
    ///
    /// They come on top of one page for each split node. Default: those of the longer path.
    fn growth_pages(from: u8, to: u8) -> u32 {
        Self::path_pages(to) - Self::path_pages(from)
    }

    /// The page buffer into which an update's descent reads a node of `level`.
    ///
    /// Default: the [`working`](Self::working) buffer.
    fn reading(level: u8, height: u8, buffers: usize) -> usize {
        Self::working(level, height, buffers)
    }

    /// The page buffer in which an update works on the node of `level`.
    ///
    /// Default: the root has the last one to itself, the other levels share the rest in turn.
    fn working(level: u8, height: u8, buffers: usize) -> usize {
        default_buffer(level, height, buffers)
    }

    /// The page buffer for the upper half of a node of `level`, or a child's copy.
    ///
    /// Default: the one beside the [`working`](Self::working) buffer.
    fn spare(level: u8, height: u8, buffers: usize) -> usize {
        default_spare(level, height, buffers)
    }

    /// Called when an update begins whose lowest changed node is at level `lowest`.
    ///
    /// Default: does nothing.
    fn begin<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, lowest: u8) {
        let _ = (space, lowest);
    }

    /// Called after an update's descent has read the node of `level` on `page`.
    ///
    /// Default: does nothing.
    fn pass<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, level: Level, page: u32) {
        let _ = (space, level, page);
    }

    /// Called when the path has lost its nodes at `level` and below, which are empty.
    ///
    /// Default: does nothing.
    fn remove_empty<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, level: u8) {
        let _ = (space, level);
    }

    /// Writes the finished node of `level` and returns how its parent finds it.
    ///
    /// A root is programmed with the number of `records` in the index and commits the update. A
    /// node that [`Stays`](Written::Stays) commits it as well.
    fn write<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: Level,
        origin: Origin,
        records: u32,
    ) -> Result<Written, PlaceFault<F>>;

    /// Writes both halves of a split node of `level` and returns their pointers.
    ///
    /// The node is not a root, or no longer one.
    fn write_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: Level,
        halves: Halves,
        records: u32,
    ) -> Result<(u32, u32), PlaceFault<F>>;

    /// The logical address in the node area of a page, if it has one.
    ///
    /// It is the pointer by which the parent refers to the page, where that is not the page number.
    fn address_in(area: &[u8]) -> Option<u32> {
        let _ = area;
        None
    }

    /// Programs the unchanged page in `frame` elsewhere, and returns the new page.
    ///
    /// Its lowest node is of `level`.
    fn copy<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        frame: usize,
        level: Level,
        records: u32,
    ) -> Result<u32, PlaceFault<F>> {
        Ok(space.program(frame, level.level, 0, records)?.0)
    }
}

/// The node of `level` in page buffer `frame`, or `None` if the bytes are no node.
pub fn node_in<'s, S: Placement, F: Flash>(
    space: &'s Space<'_, F, S::Kind>,
    frame: usize,
    level: Level,
) -> Option<Node<'s>> {
    let extent = S::extent(space.log.layout().area_bytes(), level.level, level.height);
    Node::parse(&space.log.frames.bytes(frame)[extent], level.shape)
}

/// Applies `to` to the pointers in the inner nodes of a page of system `S`.
///
/// `lowest` is the level of the page's lowest node. `height` is that of the tree if the page holds
/// its root, else 0.
pub(crate) fn relink<S: Placement>(
    bytes: &mut [u8],
    layout: &PageLayout,
    medium: &Medium,
    lowest: u8,
    height: u8,
    to: &Resolve<'_>,
) {
    let shape = Shape::inner(medium.key_bytes.into());
    // Below a root, the extent of a node does not depend on the height; no page holds 16 levels.
    let (top, tree) = if height > 0 { (height, height) } else { (16, u8::MAX) };
    let first = S::extent(layout.area_bytes(), lowest, tree);
    for level in lowest.max(2)..=top {
        let extent = S::extent(layout.area_bytes(), level, tree);
        if level > lowest && extent.start < first.end && first.start < extent.end {
            break;
        }
        let Some(mut node) = NodeMut::parse(&mut bytes[extent], shape) else { continue };
        for slot in 0..node.count() {
            let pointer = node.as_node().pointer(slot);
            if pointer != SAME_PAGE && to(pointer) != pointer {
                node.set_payload(slot, &to(pointer).to_le_bytes());
            }
        }
    }
}

/// The node of `level` in page buffer `frame`, for changes.
pub fn node_mut_in<'s, S: Placement, F: Flash>(
    space: &'s mut Space<'_, F, S::Kind>,
    frame: usize,
    level: Level,
) -> Option<NodeMut<'s>> {
    let extent = S::extent(space.log.layout().area_bytes(), level.level, level.height);
    space.log.frames.forget(frame);
    NodeMut::parse(&mut space.log.frames.bytes_mut(frame)[extent], level.shape)
}
