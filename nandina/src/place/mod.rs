//! How a changed node reaches flash: one file for each system, and the registry of them all.
//!
//! The tree works on the nodes of one root-to-leaf path, from the leaf upwards. For each changed node
//! it asks the placement to put it somewhere, and learns the pointer that the parent must take. The
//! page with the root is programmed last: that is the commit point of an operation.
//!
//! A placement knows levels and page buffers. It never knows keys, and never decides what changes.

mod mu;
mod registry;
mod wandering;

pub use mu::Mu;
pub use registry::{SYSTEMS, Visitor, key_of, visit};
pub use wandering::Wandering;

use core::ops::Range;

use crate::flash::{Flash, Needs};
use crate::node::{Medium, Node, NodeMut, PageLayout, SAME_PAGE, Shape};
use crate::space::{Resolve, Space};

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

/// A way to write a tree down.
pub trait Placement: Default {
    /// What the registry says of it.
    const DESCRIPTION: Description;

    /// The bytes of a node of `level` in the node area of a page, in a tree of `height`.
    fn extent(area_bytes: usize, level: u8, height: u8) -> Range<usize>;

    /// Pages that a path from the root to a leaf takes when all of its nodes change.
    fn path_pages(height: u8) -> u32;

    /// The page buffer that an update's descent reads a node of `level` into.
    fn reading(level: u8, buffers: usize) -> usize;

    /// The page buffer in which an update works on the node of `level`.
    fn working(level: u8, buffers: usize) -> usize;

    /// An update begins; the lowest node that it changes is at `lowest`.
    fn begin<F: Flash>(&mut self, space: &mut Space<'_, F>, lowest: u8);

    /// The descent of an update came past the node of `level`, which `page` holds.
    fn take<F: Flash>(&mut self, space: &mut Space<'_, F>, level: Level, page: u32);

    /// The path has no node at `level` or below any more.
    fn vanish<F: Flash>(&mut self, space: &mut Space<'_, F>, level: u8);

    /// The node of `level` is finished: puts it somewhere and answers the pointer to it. A root is
    /// programmed, with the number of `records` in the index, and commits the update.
    fn put<F: Flash>(
        &mut self,
        space: &mut Space<'_, F>,
        level: Level,
        records: u32,
    ) -> Result<u32, PlaceFault<F>>;

    /// The node of `level`, not a root, was divided: its lower half is in the working buffer, its
    /// upper half in the last buffer, at the same place. Puts both and answers their pointers.
    fn put_halves<F: Flash>(
        &mut self,
        space: &mut Space<'_, F>,
        level: Level,
        records: u32,
    ) -> Result<(u32, u32), PlaceFault<F>>;
}

/// Reads the node of `level` in page buffer `frame`, or nothing if the bytes are no node.
pub(crate) fn node_in<'s, S: Placement, F: Flash>(
    space: &'s Space<'_, F>,
    frame: usize,
    level: Level,
) -> Option<Node<'s>> {
    let extent = S::extent(space.layout.area_bytes(), level.level, level.height);
    Node::parse(&space.frames.bytes(frame)[extent], level.shape)
}

/// Changes the pointers in the inner nodes of a page that is written by system `S`, whose lowest node is of
/// level `lowest`, and which holds the root of a tree of `height` unless that is 0.
pub(crate) fn relink<S: Placement>(
    bytes: &mut [u8],
    layout: &PageLayout,
    medium: &Medium,
    lowest: u8,
    height: u8,
    to: &Resolve<'_>,
) {
    let shape = Shape::inner(medium.key_bytes.into());
    // Below a root, what a node takes does not depend on the height, and no page holds so many levels.
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
    space: &'s mut Space<'_, F>,
    frame: usize,
    level: Level,
) -> Option<NodeMut<'s>> {
    let extent = S::extent(space.layout.area_bytes(), level.level, level.height);
    space.frames.forget(frame);
    NodeMut::parse(&mut space.frames.bytes_mut(frame)[extent], level.shape)
}
