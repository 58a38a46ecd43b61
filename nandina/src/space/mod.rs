//! Where the next page goes and which block is collected: allocation, validity, wear, bad blocks.
//!
//! Pages are written one after another into the active block. A block is erased immediately before its
//! first page is written, or by an idle step of which only RAM knows, so a torn erase or a stale half-written block
//! can never be mistaken for free space (blocks of checkpoints, which say themselves what they hold, apart); after a mount the active block of before is not written again, because a
//! program that was cut may be invisible (rule 1 of the media contract). Only safe pages are programmed,
//! so a cut never damages a page that was programmed before (rule 13).
//!
//! A block whose program or erase fails is given up at once: the page goes elsewhere, what the block still
//! holds is moved as soon as there is time, and when it is empty the chip is told to mark it.
//!
//! A page that was superseded stays protected until the operation commits: a cut finds the old tree
//! whole. Nothing here knows what a node is.

mod budget;
mod buffers;
mod cache;
mod checkpoint;
mod failing;
mod frames;
mod kind;
mod mappings;
mod memory;
mod overwrite;
mod read;
mod session;
mod stage;
mod twins;
mod victim;
mod weak;
mod wear;
mod write;

pub use budget::{Budget, Extent, Moves};
pub(crate) use budget::{RIDERS, room_to_fail};
pub(crate) use buffers::{Buffers, layout_of, ram_needed};
use cache::Cached;
pub(crate) use cache::STAGED;
use checkpoint::Checkpoints;
pub use checkpoint::EVERY_MAX;
pub(crate) use checkpoint::{
    AREA_BLOCKS, ERASES_MAX as CHECKPOINT_ERASES_MAX, Found, LIST_MAX as LISTED_MAX, Tree,
    cost as checkpoint_cost, parts as checkpoint_parts,
};
pub(crate) use frames::Frames;
pub(crate) use kind::Any;
pub use kind::{Appends, InPlace, Kind, Maps, Paths};
use mappings::Mappings;
pub(crate) use mappings::mappings_in;
pub(crate) use overwrite::Image;
pub(crate) use read::LOST_MAX;
pub(crate) use session::SESSION as SESSION_TWIN;
pub(crate) use twins::{ROOT as ROOT_TWIN, twins};
pub(crate) use weak::WEAK_MAX;
use weak::Weak;

use core::num::Wrapping;

use memory::Memory;

use crate::blocks::{Blocks, NO_BLOCK, Victims};
use crate::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber};
use crate::node::{Medium, PageLayout};

/// Pages that one operation can supersede before it commits.
pub(crate) const RETIRED_MAX: usize = 48;

/// Changes each pointer of the inner nodes in a page buffer. A page holds nodes from the lowest level up, and
/// the root of a tree of some height unless that is 0.
pub(crate) type Relink = fn(
    bytes: &mut [u8],
    layout: &PageLayout,
    medium: &Medium,
    lowest: u8,
    height: u8,
    to: &Resolve<'_>,
);

/// The page that a pointer is to lead to.
pub(crate) type Resolve<'r> = dyn Fn(u32) -> u32 + 'r;

/// Sequence numbers that a mount leaves out, above the highest that it has seen: more than can have been given to
/// pages that were cut, or failed, and cannot be seen.
pub(crate) const GAP: u64 = 64;

/// The chip, the page buffers, and the account of every block.
pub struct Space<'b, F, K: Kind> {
    flash: F,
    pub(crate) medium: Medium,
    pub(crate) frames: Frames<'b>,
    pub(crate) blocks: Blocks<'b>,
    cache: K::Cache<'b>,
    pub(crate) mappings: Mappings<'b>,
    checkpoints: K::Checkpoints,
    keeps_pages: bool,
    memory: K::Memory,
    verify: bool,
    victims: Victims,
    /// The running operation programs its pages at once.
    at_once: bool,
    identity: u32,
    sequence: u64,
    /// So many pages from this sequence number on were there when the index was opened and belong to no tree of it.
    foreign: (u64, u32),
    /// Programs and erases that failed since the last one that did not.
    failures: u32,
    /// The block being written, or [`NO_BLOCK`], and the place of its next page among the safe ones.
    active: (BlockNumber, u32),
    /// A free block that was erased ahead of need, or [`NO_BLOCK`].
    ready: BlockNumber,
    /// A page was programmed since the mount.
    begun: bool,
    /// The mount settles what may be torn.
    pub(crate) settling: bool,
    /// Pages that the running operation superseded.
    retired: u8,
    weak: Weak,
    /// Some blocks were given up that the chip has not marked as bad.
    unmarked: bool,
    operations: Wrapping<u32>,
}

/// Pages of a block of such a chip that are programmed.
pub(crate) fn block_pages<F: Flash>(flash: &F) -> u32 {
    flash.capabilities().pairing.safe_pages(flash.geometry().pages_per_block)
}

impl<'b, F: Flash, K: Kind> Space<'b, F, K> {
    pub(crate) fn new(
        flash: F,
        medium: Medium,
        buffers: &Buffers,
        checkpoint_every: u32,
        relink: Relink,
        ram: &'b mut [u8],
    ) -> Self {
        let Buffers { frames, beside, verify, reads, writes, victims, wear, .. } = *buffers;
        let Buffers { keeps_pages, mapping_bytes, validity, .. } = *buffers;
        let (geometry, capabilities) = (flash.geometry(), flash.capabilities());
        let layout = layout_of(&geometry);
        let frame_bytes = layout.frame_bytes();
        let (frame_ram, rest) = ram.split_at_mut(Frames::ram_needed(frame_bytes, frames, beside));
        let (cache, rest) =
            K::Cache::new(rest, frame_bytes, reads, writes, geometry.pages(), relink);
        let (table, rest) = rest.split_at_mut(mapping_bytes);
        let safe_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
        Self {
            flash,
            medium,
            frames: Frames::new(frame_ram, frame_bytes, frames),
            blocks: Blocks::new(rest, &geometry, validity, victims, wear, safe_pages),
            cache,
            mappings: Mappings::new(table, geometry.pages()),
            checkpoints: Checkpoints::new(checkpoint_every).into(),
            keeps_pages,
            memory: K::Memory::default(),
            verify,
            victims,
            at_once: true,
            identity: 0,
            sequence: 0,
            foreign: (0, 0),
            failures: 0,
            active: (NO_BLOCK, 0),
            ready: NO_BLOCK,
            begun: true,
            settling: false,
            retired: 0,
            weak: Weak::NONE,
            unmarked: false,
            operations: Wrapping(0),
        }
    }

    pub(crate) fn flash(&self) -> &F {
        &self.flash
    }

    pub(crate) fn into_flash(self) -> F {
        self.flash
    }

    /// The chip's. A driver answers the same as long as it lives, most of them a constant, so no RAM is spent on it.
    pub(crate) fn geometry(&self) -> Geometry {
        self.flash.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.flash.capabilities()
    }

    /// Whether a read can tell that a page should be written elsewhere.
    pub(crate) fn reports_corrections(&self) -> bool {
        self.flash.reports_corrections()
    }

    /// Where the parts of a page stand in a page buffer.
    pub(crate) fn layout(&self) -> PageLayout {
        layout_of(&self.geometry())
    }

    /// Reads, programs, erases and marks since the index was opened, modulo 2^32.
    pub(crate) const fn operations(&self) -> u32 {
        self.operations.0
    }

    /// Whether each program is read back.
    pub(crate) const fn verifies(&self) -> bool {
        self.verify
    }

    /// Pages of a block that are programmed.
    pub(crate) fn block_pages(&self) -> u32 {
        self.capabilities().pairing.safe_pages(self.geometry().pages_per_block)
    }

    /// The page at `place` among the safe pages of `block`.
    pub(crate) fn page_at(&self, block: BlockNumber, place: u32) -> PageNumber {
        self.geometry().page_in(block, self.capabilities().pairing.safe_page(place))
    }

    /// The page at `place` among the safe pages of `block`, or the one behind the block's last.
    pub(crate) fn place_or_end(&self, block: BlockNumber, place: u32) -> u32 {
        if place < self.block_pages() {
            self.page_at(block, place).0
        } else {
            (block.0 + 1) * self.geometry().pages_per_block
        }
    }

    /// What the index can count on.
    pub(crate) fn extent(&self) -> Extent {
        let lost = self.reserve_blocks().max(self.blocks.bad_blocks());
        let area = if self.medium.checkpoints { AREA_BLOCKS } else { 0 };
        let blocks = self.geometry().blocks.saturating_sub(lost + area);
        Extent { block_pages: self.block_pages(), blocks }
    }

    /// Starts from what a mount found: whose pages count, the sequence number of the root, and the highest
    /// of all, above which to go on.
    pub(crate) fn restart(&mut self, identity: u32, root: u64, sequence: u64) {
        self.identity = identity;
        // What was cut may not be seen now and be seen later: nothing that is written from here on has its number.
        // (Replaced in place, the session leaves the gap, when it begins.)
        self.sequence = if K::IN_PLACE { sequence } else { sequence + GAP };
        self.begun = false;
        self.settling = false;
        self.foreign = if K::IN_PLACE {
            (0, 0)
        } else {
            (root + 1, u32::try_from(self.sequence.saturating_sub(root)).unwrap_or(u32::MAX))
        };
        self.active = (NO_BLOCK, 0);
        self.ready = NO_BLOCK;
        self.memory = K::Memory::default();
        self.memory.note_mount(self.sequence);
        self.retired = 0;
        self.weak = Weak::NONE;
        self.failures = 0;
        self.frames.forget_all();
        self.cache.clear();
    }

    /// The index is of this formatting of the medium.
    pub(crate) const fn set_identity(&mut self, identity: u32) {
        self.identity = identity;
    }

    /// Which formatting of the medium the index is.
    pub(crate) const fn identity(&self) -> u32 {
        self.identity
    }

    /// The highest sequence number that was given or left out.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether something was programmed since the mount.
    pub(crate) const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Nothing was ever programmed that is still there: the next page may commit.
    pub(crate) const fn begin_at_once(&mut self) {
        self.begun = true;
    }

    /// Pages that belong to the tree, on the chip or not yet.
    pub(crate) fn valid_pages(&self) -> u32 {
        // After an operation that failed half way the account is not true before the next one has
        // mounted again.
        self.taken_pages().saturating_sub(if K::MAPS { self.mappings.len() as u32 } else { 0 })
    }

    /// The same, and the pages that are kept because their numbers are names.
    pub(crate) fn taken_pages(&self) -> u32 {
        let (staged, superseded) = self.staged();
        (self.blocks.valid_pages() + staged).saturating_sub(superseded)
    }

    /// Pages that can be programmed before anything is collected.
    pub(crate) fn room(&self) -> u32 {
        if K::IN_PLACE {
            return self.free_twins();
        }
        let remaining = self.active_block().map_or(0, |_| self.block_pages() - self.active.1);
        let room = remaining + self.blocks.free_blocks(self.active_block()) * self.block_pages();
        room.saturating_sub(self.staged().0)
    }

    pub(crate) fn active_block(&self) -> Option<BlockNumber> {
        Some(self.active.0).filter(|&block| block != NO_BLOCK)
    }
}
