//! What the stores need of their space, as far as they differ.
//!
//! All of it is fixed at compile time: a system takes neither code nor RAM for a feature that only
//! other systems have. This module names no system.

use super::Space;
use super::memory::Memory;
use crate::blocks::WearPolicy;
use crate::cache::Cached;
#[cfg(not(feature = "read-cache"))]
use crate::cache::NoCache;
#[cfg(feature = "read-cache")]
use crate::cache::{Cache, NoStaging};
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber, Upkeep};
use crate::log::checkpoint::{self, Base, Checkpoint, Summary};
use crate::log::{Codec, GAP, Label};
use crate::node::{ONE_BY_ONE, PageLayout, UpdateScheme};

/// The checkpoints of a store. The defaults are those of a store that has none.
///
/// Such a store takes no code and no RAM for them.
pub trait Checkpointing: Sized {
    /// Creates the state before a mount; a checkpoint is due after `every` blocks.
    ///
    /// It has at most `parts` pages, in blocks of `block_pages`.
    fn new(every: u32, parts: u32, block_pages: u32) -> Self;

    /// Pages of a checkpoint, where these lie among the pages of the owner, or 0.
    fn pages_among_nodes(&self) -> u32 {
        0
    }

    /// Blocks that can hold no page of the owner.
    fn area_blocks(&self) -> u32 {
        0
    }

    /// Bounds the next checkpoints by one block, if they may have more.
    ///
    /// Returns whether it did anything.
    fn shrink(&mut self) -> bool {
        false
    }

    /// Pages of the blocks that the next checkpoint has more than the last one.
    fn taken<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        let _ = space;
        0
    }

    /// Forgets the checkpoints on the chip: one is due.
    fn forget<F: Flash, K: Kind<Checkpoints = Self>>(space: &mut Space<'_, F, K>) {
        let _ = space;
    }

    /// Notes that both anchors were erased: no page leads to a checkpoint.
    fn leave<F: Flash, K: Kind<Checkpoints = Self>>(space: &mut Space<'_, F, K>) {
        let _ = space;
    }

    /// The next block to erase and write, which a checkpoint may prescribe.
    ///
    /// The one before it, if there is one, was `filled`.
    fn next_block<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
        filled: Option<BlockNumber>,
    ) -> Result<BlockNumber, Fault<F::Error>> {
        space.log.next_block(filled)
    }

    /// Whether a checkpoint should be written before an operation of at most `pages`.
    fn is_due<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>, pages: u32) -> bool {
        let _ = (space, pages);
        false
    }

    /// Pages of the free blocks that are for checkpoints.
    fn room<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        let _ = space;
        0
    }

    /// The most chip operations that a checkpoint takes if no block fails.
    fn cost<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        let _ = space;
        0
    }

    /// Blocks that are free as soon as a mount has settled.
    fn held_blocks<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> u32 {
        space.log.blocks.held_blocks(true)
    }

    /// Ends the reservation of blocks that a mount reserved until it had settled.
    fn unreserve<F: Flash, K: Kind<Checkpoints = Self>>(space: &mut Space<'_, F, K>) {
        space.log.blocks.unreserve_all();
    }

    /// Panics unless only blocks of checkpoints and bad ones are reserved.
    ///
    /// While a mount settles, others are, too.
    #[cfg(debug_assertions)]
    fn check_reserved<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) {
        let _ = space;
    }

    /// Erases both anchors, so that a mount finds no checkpoint.
    fn erase_anchors<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<(), Fault<F::Error>> {
        checkpoint::erase_anchors(&mut space.log)
    }

    /// Reads the newest checkpoint into the block table.
    fn find_newest<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<Option<Checkpoint>, Fault<F::Error>> {
        let _ = space;
        Ok(None)
    }

    /// From what the index was mounted, if not from all blocks.
    fn base<F: Flash, K: Kind<Checkpoints = Self>>(space: &Space<'_, F, K>) -> Option<Base> {
        let _ = space;
        None
    }

    /// The block at position `at` of those that may hold new pages.
    fn scanned<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &Space<'_, F, K>,
        at: u32,
    ) -> Option<BlockNumber> {
        (at < space.log.blocks.count()).then_some(BlockNumber(at))
    }

    /// Makes the checkpoint on the chip unusable, and another one due.
    ///
    /// Cost: sometimes an erase, or two.
    fn void<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
    ) -> Result<(), Fault<F::Error>> {
        let _ = space;
        Ok(())
    }

    /// Writes a checkpoint. Returns `false` if there is no block for it.
    ///
    /// It records the tree and which pages are valid. Nothing may be staged, and no operation
    /// may be running.
    fn write<F: Flash, K: Kind<Checkpoints = Self>>(
        space: &mut Space<'_, F, K>,
        summary: &Summary,
    ) -> Result<bool, Fault<F::Error>> {
        let _ = (space, summary);
        Ok(false)
    }
}

/// What a store needs of the space that its nodes are written to.
///
/// The defaults are those of a log whose pages are programmed one after another, each at once.
pub trait Kind: Sized {
    /// How a change reaches the chip.
    const UPDATES: UpdateScheme;

    /// Changes may be programmed one by one, in pages of their own.
    const ONE_BY_ONE: bool = false;

    /// Pages of appended records are read, of this store or another.
    ///
    /// Checking them takes code.
    const READS_APPENDED: bool =
        Self::UPDATES.appends() || Self::ONE_BY_ONE || cfg!(feature = "other-systems");

    /// Page buffers keep their pages between operations, if the options do not say.
    const KEEPS_PAGES: bool = true;

    /// A checkpoint counts until the next change: only the end of a session writes one.
    ///
    /// Pages that are older than a checkpoint are changed after it.
    const CHECKPOINTS_END_SESSIONS: bool = false;

    /// Sequence numbers that a mount skips.
    const GAP: u64 = GAP;

    /// How erases are spread over the blocks, if the options do not say.
    const WEAR: WearPolicy = WearPolicy::Circular;

    /// The state of the checkpoints on the chip.
    type Checkpoints: Checkpointing;

    /// The page caches beside the buffer pool.
    type Cache<'b>: Cached<'b>;

    /// Whether there can be a read cache.
    const CACHES: bool = cfg!(feature = "read-cache");

    /// What such a store remembers of its writes.
    type Memory: Memory;

    /// The current page of the node to which pointers of the tree refer as `page`.
    fn resolve<F: Flash>(space: &Space<'_, F, Self>, page: u32) -> u32 {
        let _ = space;
        page
    }

    /// Pages that can be programmed before anything is collected.
    fn room<F: Flash>(space: &Space<'_, F, Self>) -> u32 {
        space.log.room()
    }

    /// Brings the node of a page that was read into its form for searches and edits.
    ///
    /// Returns `false` if the page holds no node.
    fn unpack(layout: &PageLayout, page: &mut [u8]) -> bool {
        let _ = (layout, page);
        true
    }

    /// Begins an operation. If `at_once`, its pages are not staged.
    fn begin_operation<F: Flash>(space: &mut Space<'_, F, Self>, at_once: bool) {
        let _ = (space, at_once);
    }

    /// Stages the page in `frame`, if this operation stages pages.
    fn stage<F: Flash>(
        space: &mut Space<'_, F, Self>,
        frame: usize,
        label: Label,
    ) -> Result<Option<PageNumber>, Fault<F::Error>> {
        let _ = (space, frame, label);
        Ok(None)
    }

    /// Notes that the running operation supersedes `page`.
    fn supersede<F: Flash>(space: &mut Space<'_, F, Self>, page: u32) {
        space.forget_superseded(page);
        space.log.supersede(PageNumber(page));
    }

    /// Lets the device work ahead, with at most `budget` of its operations.
    fn let_device_work<F: Flash>(
        space: &mut Space<'_, F, Self>,
        budget: u32,
    ) -> Result<Upkeep, Fault<F::Error>> {
        let _ = (space, budget);
        Ok(Upkeep::default())
    }

    /// The least budget with which the device makes progress.
    fn device_work_least<F: Flash>(space: &Space<'_, F, Self>) -> u32 {
        let _ = space;
        0
    }

    /// Notes that no parent refers to a node by `name` any more.
    fn forget_address<F: Flash>(space: &mut Space<'_, F, Self>, name: u32) {
        let _ = (space, name);
    }

    /// Ends the running operation with its root. Returns the root's page.
    fn commit<F: Flash>(space: &mut Space<'_, F, Self>, root: u32) -> Result<u32, Fault<F::Error>> {
        let _ = space;
        Ok(root)
    }

    /// Writes out all staged pages. Returns the new page of the root `root`.
    fn write_out<F: Flash>(
        space: &mut Space<'_, F, Self>,
        root: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let _ = space;
        Ok(root)
    }

    /// Staged pages of the tree, and pages on the chip that they supersede.
    fn staged<F: Flash>(space: &Space<'_, F, Self>) -> (u32, u32) {
        let _ = space;
        (0, 0)
    }

    /// Whether an operation that stages at most `pages` can begin.
    fn can_stage<F: Flash>(space: &Space<'_, F, Self>, pages: u32) -> bool {
        let _ = (space, pages);
        true
    }
}

/// A cache of pages that were read.
#[cfg(feature = "read-cache")]
pub(crate) type ReadCache<'b> = Cache<'b, NoStaging>;
#[cfg(not(feature = "read-cache"))]
pub(crate) type ReadCache<'b> = NoCache;

/// The checkpoints of a store that can have some.
#[cfg(feature = "checkpoints")]
pub(crate) type BuiltCheckpoints = crate::log::checkpoint::Checkpoints;
#[cfg(not(feature = "checkpoints"))]
pub(crate) type BuiltCheckpoints = Absent;

/// A change writes new pages up to the root.
pub struct Paths;

/// A change writes new pages, and mappings lead to them.
pub struct Maps;

/// A change replaces logical pages in place.
pub struct InPlace;

/// A change is appended to pages that were programmed earlier.
pub struct Appends;

/// Reads of one page of appended records before it counts as unreadable.
///
/// An append that was cut may make a page fail that holds older records, and the next read of it
/// may succeed (rule 6 of the media contract).
pub(super) const PATIENCE: u32 = 13;

/// How the pages of such a system are sealed and checked.
pub(super) struct CodecOf<K>(core::marker::PhantomData<K>);

impl<K: Kind> CodecOf<K> {
    pub const CODEC: &'static Codec = &Codec {
        seal: |layout, page, medium, header, sum| {
            if K::ONE_BY_ONE && header.lowest == ONE_BY_ONE {
                layout.seal_header(page, medium, header, sum);
            } else {
                layout.seal_as(page, medium, header, K::UPDATES.appends(), sum);
            }
        },
        check: |layout, page, sum| layout.check_as(page, K::READS_APPENDED, sum),
        reads_max: if K::UPDATES.appends() { PATIENCE } else { 1 },
    };
}

/// Takes the place of a feature that a system does not have.
#[derive(Default)]
pub struct Absent;

impl Memory for Absent {}

impl Checkpointing for Absent {
    fn new(_every: u32, _parts: u32, _block_pages: u32) -> Self {
        Self
    }
}

/// Nothing is written, and pages of any system are read.
pub struct Any;

impl Kind for Any {
    const UPDATES: UpdateScheme = UpdateScheme::Mapped;
    const READS_APPENDED: bool = true;
    type Checkpoints = Absent;
    type Cache<'b> = ReadCache<'b>;
    type Memory = Absent;
}
