//! How a changed node reaches flash: one file for each system, and the registry of them all.
//!
//! The tree works on the nodes of one root-to-leaf path, from the leaf upwards. For each changed
//! node it asks the placement to put it somewhere, and learns the pointer that the parent must
//! take. The page with the root is programmed last: that is the commit point of an operation.
//!
//! A placement knows levels and page buffers. It never knows keys, and never decides what changes.

mod btree;
mod mu;
mod registry;
mod vm;
mod vm_ow;
mod wandering;

pub use btree::BTree;
pub use mu::Mu;
pub use registry::{SYSTEMS, Visitor, key_of, visit};
pub use vm::Vm;
pub use vm_ow::VmOw;
pub use wandering::Wandering;

use core::ops::Range;

use crate::cache::Resolve;
use crate::flash::{Flash, Needs};
use crate::node::{Medium, Node, NodeMut, PageLayout, SAME_PAGE, Shape};
use crate::space::{Kind, Space};

/// Why a placement could not write: it hands on what [`Space`] answered.
pub type PlaceFault<F> = crate::error::Fault<<F as Flash>::Error>;

/// What the registry says of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// The name by which programs choose it.
    pub key: &'static str,
    /// The name that people use.
    pub name: &'static str,
    /// One line on how a changed node reaches flash.
    pub summary: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// What it needs of a chip.
    pub needs: Needs,
    /// Its number on the medium. It is never given to another system.
    pub code: u8,
    /// Fewest page buffers it can work with.
    pub buffers_min: usize,
    /// Page buffers with which a tree of height three reads no page twice.
    pub buffers_default: usize,
    /// Each change writes new pages up to the root, and the root commits it. A write cache and
    /// checkpoints need that.
    pub writes_paths: bool,
    /// It keeps a table of virtual mappings,
    /// [`Options::mapping_bytes`](crate::Options::mapping_bytes) large.
    pub maps: bool,
    /// Nodes are replaced in place, on logical pages that are kept twice. Nothing is erased or
    /// collected.
    pub in_place: bool,
    /// Records are appended to pages that were programmed before.
    pub appends: bool,
}

/// The nodes of one level in a tree of one height.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// 1 for leaves.
    pub level: u8,
    /// Height of the tree; a node at this level is the root.
    pub height: u8,
    /// Sizes of the records of this level's nodes.
    pub shape: Shape,
}

/// What a placement has to know of a node that it puts somewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The pointer by which the parent knows the node, if it has a parent that does.
    pub name: Option<u32>,
    /// The parent has to take a new pointer, wherever the node goes.
    pub leave: bool,
}

impl Origin {
    /// A node that no parent knows.
    pub const NEW: Self = Self { name: None, leave: true };
}

/// A node that was divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Halves {
    /// The pointer by which the parent knows the node.
    pub name: u32,
    /// The page buffer of the lower half.
    pub left: usize,
    /// The page buffer of the upper half, which lies at the same place in it.
    pub right: usize,
}

/// Where a node is found from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// By the pointer that its parent has. No parent changes: the update is committed.
    Stays,
    /// By this pointer, which the parent must take.
    At(u32),
}

/// The page buffer of a node of `level`, where the root has the last one for itself and the other
/// levels share the rest in turn.
pub(crate) const fn seat(level: u8, height: u8, buffers: usize) -> usize {
    if level == height { buffers - 1 } else { (level as usize - 1) % (buffers - 1) }
}

/// The page buffer beside the [`seat`] of a node of `level`.
const fn spare_seat(level: u8, height: u8, buffers: usize) -> usize {
    if level == height { 0 } else { level as usize % (buffers - 1) }
}

/// A way to write a tree down.
pub trait Placement: Default {
    /// What it asks of the space that it writes to.
    type Kind: Kind;

    /// What the registry says of it.
    const DESCRIPTION: Description;

    /// A node that is divided need not be written at once: what it holds from its upper neighbour's
    /// first key on is not its own any more, and is trimmed wherever the node is read. So the
    /// parent, which is written alone and last, commits a division.
    const TRIMS: bool = false;

    /// What is put anew supersedes the page of before. Else the placement says what it supersedes.
    const RETIRES: bool = true;

    /// The lower half of a divided node stays where it is, untouched.
    const LEFT_STAYS: bool = false;

    /// The bytes of a node of `level` in the node area of a page, in a tree of `height`. Default:
    /// all of them.
    fn extent(area_bytes: usize, level: u8, height: u8) -> Range<usize> {
        let _ = (level, height);
        0..area_bytes
    }

    /// Pages that a path from the root to a leaf takes when all of its nodes change. Default: one
    /// for each node.
    fn path_pages(height: u8) -> u32 {
        height.into()
    }

    /// The page buffer that an update's descent reads a node of `level` into. Default: the one it
    /// works in.
    fn reading(level: u8, height: u8, buffers: usize) -> usize {
        Self::working(level, height, buffers)
    }

    /// The page buffer in which an update works on the node of `level`. Default: the root has the
    /// last one for itself, the other levels share the rest in turn.
    fn working(level: u8, height: u8, buffers: usize) -> usize {
        seat(level, height, buffers)
    }

    /// The page buffer in which the upper half of a node of `level` is made, and its children are
    /// copied. Default: the one beside that in which an update works.
    fn spare(level: u8, height: u8, buffers: usize) -> usize {
        spare_seat(level, height, buffers)
    }

    /// An update begins; the lowest node that it changes is at `lowest`. Default: nothing has to be
    /// done.
    fn begin<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, lowest: u8) {
        let _ = (space, lowest);
    }

    /// The descent of an update came past the node of `level`, which `page` holds. Default: nothing
    /// has to be done.
    fn take<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, level: Level, page: u32) {
        let _ = (space, level, page);
    }

    /// The path has no node at `level` or below any more. Default: nothing has to be done.
    fn vanish<F: Flash>(&mut self, space: &mut Space<'_, F, Self::Kind>, level: u8) {
        let _ = (space, level);
    }

    /// The node of `level` is finished: puts it somewhere and answers how its parent finds it. A
    /// root is programmed, with the number of `records` in the index, and commits the update; so
    /// does what [`Stays`](Put::Stays).
    fn put<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: Level,
        origin: Origin,
        records: u32,
    ) -> Result<Put, PlaceFault<F>>;

    /// The node of `level`, not a root, was divided. Puts both halves and answers their pointers.
    fn put_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: Level,
        halves: Halves,
        records: u32,
    ) -> Result<(u32, u32), PlaceFault<F>>;

    /// The pointer by which the parent of the page with this node area knows it, if it is not its
    /// number.
    fn name_in(area: &[u8]) -> Option<u32> {
        let _ = area;
        None
    }

    /// Programs the page in `frame`, whose lowest node is of `level`, elsewhere and as it is.
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

/// Reads the node of `level` in page buffer `frame`, or nothing if the bytes are no node.
pub(crate) fn node_in<'s, S: Placement, F: Flash>(
    space: &'s Space<'_, F, S::Kind>,
    frame: usize,
    level: Level,
) -> Option<Node<'s>> {
    let extent = S::extent(space.log.layout().area_bytes(), level.level, level.height);
    Node::parse(&space.log.frames.bytes(frame)[extent], level.shape)
}

/// Changes the pointers in the inner nodes of a page that is written by system `S`, whose lowest
/// node is of level `lowest`, and which holds the root of a tree of `height` unless that is 0.
pub(crate) fn relink<S: Placement>(
    bytes: &mut [u8],
    layout: &PageLayout,
    medium: &Medium,
    lowest: u8,
    height: u8,
    to: &Resolve<'_>,
) {
    let shape = Shape::inner(medium.key_bytes.into());
    // Below a root, what a node takes does not depend on the height, and no page holds so many
    // levels.
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

/// The node of `level` in page buffer `frame`, to change.
pub(crate) fn node_mut_in<'s, S: Placement, F: Flash>(
    space: &'s mut Space<'_, F, S::Kind>,
    frame: usize,
    level: Level,
) -> Option<NodeMut<'s>> {
    let extent = S::extent(space.log.layout().area_bytes(), level.level, level.height);
    space.log.frames.forget(frame);
    NodeMut::parse(&mut space.log.frames.bytes_mut(frame)[extent], level.shape)
}
