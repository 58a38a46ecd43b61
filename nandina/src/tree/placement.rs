//! How a changed node reaches flash: what the tree requires of a system.
//!
//! The tree works on the nodes of one root-to-leaf path, from the leaf upwards. It hands each
//! changed node to the store, which writes it and returns the pointer for the parent. The page with
//! the root is programmed last: that is the commit point of an operation.
//!
//! A store implements [`Placement`] for each of its systems, and [`WritePolicy`] once: how the tree
//! is found again, what a mount writes anew, how many pages may be valid, which options exist, and
//! what the worst call costs. It knows levels and page buffers. It never knows keys, and never
//! decides what changes; the tree never asks which store it belongs to.

use core::ops::Range;

use super::TreeIndex;
use super::cost::Opening;
use super::path::Path;
use crate::blocks::WearPolicy;
use crate::cache::Resolve;
use crate::engine::{Cost, Description, NodeArea, Options, PageSharing, SplitCommit, WorstChange};
use crate::error::{BadOption, Damage, Fault, OpenError};
use crate::flash::{Flash, Geometry, PageNumber};
use crate::gc::{Budget, Extent, RelocationMode};
use crate::log::checkpoint::{self, Checkpoint};
use crate::log::{END, Newest, layout_of};
use crate::node::{Medium, Node, NodeMut, PageLayout, SAME_PAGE, Shape};
use crate::space::{Kind, Mappings, Space};

/// The error of a store: it passes on the fault that [`Space`] returned.
pub type PlaceFault<F> = Fault<<F as Flash>::Error>;

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

    /// Which writes make a split visible.
    const SPLITS: SplitCommit = SplitCommit::Root;

    /// How the nodes of a path share pages.
    ///
    /// If they are packed, [`extent_in`](Self::extent_in) says where a node is, and
    /// [`most`](Self::most) how many records a leaf can have on its path.
    const SHARING: PageSharing = PageSharing::Never;

    /// Whether a full node of `level` stays full if a record is added to its end.
    ///
    /// Such a record opens a node beside it; otherwise, the node is divided in the middle. Default:
    /// the last node of each level stays full, but the root, which is divided.
    fn stays_full(level: u8, height: u8, right_edge: bool) -> bool {
        right_edge && level != height
    }

    /// The range of a node of `level` in a page's node area, in a tree of `height`.
    ///
    /// If the store [packs](Self::SHARING) nodes, the range in the page buffers in which a change
    /// works on them. Default: the whole area.
    fn extent(area_bytes: usize, level: u8, height: u8) -> Range<usize> {
        let _ = (level, height);
        0..area_bytes
    }

    /// The range of the node of `level` in the node area of a page.
    ///
    /// It is empty if there is no such node. Default: the [`extent`](Self::extent).
    fn extent_in(area: &NodeArea<'_>, level: u8, height: u8) -> Range<usize> {
        Self::extent(area.bytes.len(), level, height)
    }

    /// Bytes that a node of `level` can always have, whatever else its page holds.
    ///
    /// Default: those of the [`extent`](Self::extent).
    fn share(area_bytes: usize, level: u8, height: u8) -> usize {
        Self::extent(area_bytes, level, height).len()
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

    /// The most records that the node of `level` can have on the path of a change.
    ///
    /// A node of that level can always have `fits`, those of its [`share`](Self::share). Called
    /// after [`pass`](Self::pass). Default: `fits`.
    fn most<F: Flash>(&self, space: &Space<'_, F, Self::Kind>, level: Level, fits: usize) -> usize {
        let _ = (space, level);
        fits
    }

    /// Called before the lowest node of `page` is written again.
    ///
    /// If `divided`, it is written as halves. Default: the page becomes garbage, unless the lower
    /// half stays there. A store that can change the page itself decides when it writes.
    fn supersede<F: Flash>(space: &mut Space<'_, F, Self::Kind>, page: u32, divided: bool) {
        if !(divided && Self::SPLITS.lower_stays()) {
            space.retire(PageNumber(page));
        }
    }

    /// Called when the path has lost its nodes at `level` and below, which are empty.
    ///
    /// No parent refers to the node of `level` as `name` any more, and its page was
    /// [superseded](Self::supersede). Default: its logical address is free.
    fn remove_empty<F: Flash>(
        &mut self,
        space: &mut Space<'_, F, Self::Kind>,
        level: u8,
        name: u32,
    ) {
        let _ = level;
        space.forget_address(name);
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

/// What a new index replaces.
pub enum Replaced {
    Nothing,
    /// An index whose last session wrote the page with this sequence number.
    Continued(u64),
    /// Content that cannot be opened, and its highest visible sequence number.
    Damaged(u64),
}

/// What the page limits of a tree follow from.
#[derive(Clone, Copy)]
pub struct Limits<'l> {
    /// The blocks that the index can use.
    pub extent: &'l Extent,
    /// Pages of the chip.
    pub pages: u32,
    /// Pages are replaced atomically, so that none has a shadow.
    pub atomic: bool,
    /// Pages of a checkpoint, where these lie among the nodes, or 0.
    pub checkpoint_pages: u32,
    /// How garbage collection moves pages.
    pub moves: RelocationMode,
    /// Places of the mapping table.
    pub mappings: usize,
    /// Height of the tree.
    pub height: u8,
    /// Its nodes above the leaves.
    pub inner_nodes: u32,
}

/// Where a payload is in a page buffer, and a detail of it, if there is one.
pub type Found = (usize, Range<usize>);

/// A way to write a tree, and all that follows from it.
///
/// Each function is called for an index of a system of this policy. The defaults are those of a
/// log: pages are programmed one after another, and superseded ones are collected.
pub trait WritePolicy: Kind {
    /// Finds the tree on the chip and makes it the current one.
    ///
    /// `newest` is the newest block of the index, or becomes that if a format was cut. Nothing is
    /// written. Pages that may be torn, and blocks that the tree before the last commit needs, are
    /// noted for [`settle`](Self::settle).
    fn recover<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        newest: &mut Newest,
    ) -> Result<(), Fault<F::Error>>;

    /// Finds the index when it is opened, and checks that it is one of these settings.
    fn find<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), OpenError<F::Error>> {
        if index.mount_from_checkpoint()? {
            return Ok(());
        }
        let mut newest = index.newest_page();
        // Not moved out of the result, so that it is on the stack only once.
        match &mut newest {
            Ok(newest) => Ok(index.mount_from_blocks(newest)?),
            Err(_) => newest.map(|_| ()),
        }
    }

    /// Finds the index again after an operation that failed half way.
    fn find_again<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        if index.mount_from_checkpoint()? {
            return Ok(());
        }
        match index.survey_newest(END, None)? {
            Some(mut newest) => index.mount_from_blocks(&mut newest),
            None => Err(index.corrupt_at(index.state.root(), Damage::NoPage)),
        }
    }

    /// Continues from the checkpoint `found`, without writing anything.
    ///
    /// Returns `false` if it cannot be used: then all blocks have to be read.
    fn go_on_from<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        found: &Checkpoint,
    ) -> Result<bool, Fault<F::Error>> {
        let _ = (index, found);
        Ok(false)
    }

    /// Whether a mount can begin again without the newest commit: `page` is torn.
    ///
    /// `page` belongs to the tree of that commit and cannot be read.
    fn is_torn<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        page: PageNumber,
    ) -> Result<bool, Fault<F::Error>> {
        Ok(index.torn.is_newest(page))
    }

    /// Writes anew what a cut may have left torn.
    fn settle<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>>;

    /// Makes sure that the index can be read although nothing could be settled.
    fn read_unsettled<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        let _ = index;
        Ok(())
    }

    /// Called before the first change since a mount.
    ///
    /// Returns whether it wrote something.
    fn begin_changes<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<bool, Fault<F::Error>> {
        let _ = index;
        Ok(false)
    }

    /// Marks the end of a session on the chip, if there is room for that.
    fn end_session<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.mark_end()
    }

    /// Finds the index that a format replaces.
    ///
    /// Like every mount, it settles what may be torn of it.
    fn find_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), OpenError<F::Error>> {
        index.find()
    }

    /// Makes sure that the index that a format replaces does not end well.
    fn begin_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
    ) -> Result<(), Fault<F::Error>> {
        index.begin_last_session()
    }

    /// Finds what a format replaces if it is no index that can be opened.
    ///
    /// Returns the highest sequence number of it, and keeps the blocks that it needs from being
    /// opened.
    fn survey_to_replace<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        newest: Option<Newest>,
    ) -> Result<u64, Fault<F::Error>> {
        let Some(newest) = newest else { return Ok(0) };
        let begins = index.space.begins_in_first();
        index.space.log.hold_blocks_of(newest.identity, begins)?;
        // No page of its block has a number that is higher by more than the block has pages.
        Ok(newest.sequence + u64::from(index.space.log.block_pages()))
    }

    /// Whether a new index writes its root first.
    ///
    /// Otherwise a page that commits nothing comes before it.
    fn begins_at_once(replaced: &Replaced) -> bool {
        !matches!(replaced, Replaced::Damaged(_))
    }

    /// Looks `key` up.
    fn look_up<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        key: &[u8],
    ) -> Result<Option<Found>, Fault<F::Error>> {
        index.look_up_sorted(key)
    }

    /// The record layout of a node in `bytes`; that of a sorted node is `shape`.
    fn shape(shape: Shape, bytes: usize) -> Shape {
        let _ = bytes;
        shape
    }

    /// How many pages may be valid.
    fn budget<S: Placement<Kind = Self>>(of: &Limits<'_>) -> Budget {
        let paths = (S::path_pages(of.height), Self::moved_path::<S>(of));
        Budget::new(of.extent, of.moves, of.height, paths, of.inner_nodes)
    }

    /// Pages of a checkpoint, or 0 if a chip of this geometry can have none.
    fn checkpoint_pages(geometry: &Geometry, options: &Options, block_pages: u32) -> u32 {
        let (layout, bytes) = (layout_of(geometry), Self::mapping_bytes(options));
        checkpoint::parts::<Mappings<'_>>(geometry, &layout, block_pages, bytes).unwrap_or(0)
    }

    /// Pages that are written when a page is moved, its own included.
    fn moved_path<S: Placement<Kind = Self>>(of: &Limits<'_>) -> u32 {
        S::path_pages(of.height)
    }

    /// Pages that a change may need beside those of the nodes.
    ///
    /// The tree has at most `inner_nodes` inner nodes during the change.
    fn pages_beside<F: Flash, S: Placement<Kind = Self>>(
        index: &TreeIndex<'_, F, S>,
        inner_nodes: u32,
    ) -> u32 {
        let _ = (index, inner_nodes);
        0
    }

    /// Taken pages, without those that are counted beside the nodes already.
    fn counted_pages<F: Flash, S: Placement<Kind = Self>>(index: &TreeIndex<'_, F, S>) -> u32 {
        index.space.taken_pages()
    }

    /// The most pages beside the nodes of a tree of `inner_nodes` inner nodes or fewer.
    ///
    /// The table has `mappings` places.
    fn planned_beside<S: Placement<Kind = Self>>(
        height: u8,
        inner_nodes: u32,
        mappings: usize,
    ) -> u32 {
        let _ = (height, inner_nodes, mappings);
        0
    }

    /// Whether the node of `level` on `path` is written along with its changed child.
    fn writes_parent<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        path: &Path,
        level: u8,
    ) -> Result<bool, Fault<F::Error>> {
        let _ = (index, path, level);
        Ok(false)
    }

    /// Called before the first operation of a change. Default: does nothing.
    fn change_begins<F: Flash, S: Placement<Kind = Self>>(index: &mut TreeIndex<'_, F, S>) {
        let _ = index;
    }

    /// Frees a page after a `refusal` for lack of room, or returns the refusal.
    fn reclaim<F: Flash, S: Placement<Kind = Self>>(
        index: &mut TreeIndex<'_, F, S>,
        refusal: Fault<F::Error>,
    ) -> Result<(), Fault<F::Error>> {
        let _ = index;
        Err(refusal)
    }

    /// The option that this policy has no use for, if one is set.
    fn refuses(options: &Options) -> Option<BadOption>;

    /// Whether the read of an erase count needs a page buffer of its own.
    fn reads_beside(wear: WearPolicy) -> bool {
        let _ = wear;
        false
    }

    /// Bytes of RAM for the mapping table that the options ask for.
    fn mapping_bytes(options: &Options) -> usize {
        let _ = options;
        0
    }

    /// Places of a mapping table, on a chip of this geometry.
    fn mappings(options: &Options, geometry: &Geometry) -> usize {
        let _ = (options, geometry);
        0
    }

    /// The most that a change costs that finds `short_pages` too few pages free.
    fn change_cost(bounds: &WorstChange<'_>, short_pages: u32, reserve_touched: bool) -> Cost {
        bounds.change_in_log(short_pages, reserve_touched)
    }

    /// The most that opening the index costs.
    fn open_cost(opening: &Opening) -> Cost;

    /// The most that closing the index costs.
    ///
    /// `ending` is the cost of what ends a session, with the checkpoint if that is part of it.
    /// `collecting` is the most that making room for the checkpoint costs.
    fn close_cost(ending: Cost, collecting: Cost) -> Cost {
        let _ = collecting;
        ending
    }
}

/// The range of the node of `level` in page buffer `frame`.
#[inline(always)]
pub(crate) fn extent_of<S: Placement, F: Flash>(
    space: &Space<'_, F, S::Kind>,
    frame: usize,
    level: Level,
) -> Range<usize> {
    let area_bytes = space.log.layout().area_bytes();
    if !S::SHARING.packs() {
        return S::extent(area_bytes, level.level, level.height);
    }
    let medium = &space.log.medium;
    let area = NodeArea {
        bytes: &space.log.frames.bytes(frame)[..area_bytes],
        lowest: space.log.lowest(frame),
        key_bytes: medium.key_bytes.into(),
        value_bytes: medium.value_bytes.into(),
    };
    S::extent_in(&area, level.level, level.height)
}

/// The node of `level` in page buffer `frame`, or `None` if the bytes are no node.
pub fn node_in<'s, S: Placement, F: Flash>(
    space: &'s Space<'_, F, S::Kind>,
    frame: usize,
    level: Level,
) -> Option<Node<'s>> {
    let extent = extent_of::<S, F>(space, frame, level);
    Node::parse(&space.log.frames.bytes(frame)[extent], level.shape)
}

/// Applies `to` to the pointers in the inner nodes of a page of system `S`.
///
/// `lowest` is the level of the page's lowest node. `height` is that of the tree if the page holds
/// its root, and 0 otherwise.
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
    let area_bytes = layout.area_bytes();
    let extent_in = |bytes: &[u8], level: u8| {
        if !S::SHARING.packs() {
            return S::extent(area_bytes, level, tree);
        }
        let (key_bytes, value_bytes) = (medium.key_bytes.into(), medium.value_bytes.into());
        let bytes = &bytes[..area_bytes];
        S::extent_in(&NodeArea { bytes, lowest, key_bytes, value_bytes }, level, tree)
    };
    let first = extent_in(bytes, lowest);
    for level in lowest.max(2)..=top {
        let extent = extent_in(bytes, level);
        // A packed node ends where the next one begins.
        let meets = extent.start < first.end && first.start < extent.end;
        if !S::SHARING.packs() && level > lowest && meets {
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
    let extent = extent_of::<S, F>(space, frame, level);
    space.log.frames.forget(frame);
    NodeMut::parse(&mut space.log.frames.bytes_mut(frame)[extent], level.shape)
}
