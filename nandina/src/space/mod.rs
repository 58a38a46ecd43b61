//! The space: everything that a tree asks of the log.
//!
//! It reads pages with nodes into page buffers, translates the numbers by which parents refer to
//! them, manages staged pages of the write cache, and commits an operation.
//!
//! A superseded page stays protected until the operation commits: a cut finds the old tree intact.
//! This module does not know nodes.

#[cfg(debug_assertions)]
mod audit;
mod buffers;
#[cfg(feature = "checkpoints")]
mod checkpointing;
mod kind;
mod mappings;
mod memory;
mod read;
mod running;
mod stage;
mod write;

pub(crate) use buffers::{Buffers, ram_needed};
pub(crate) use kind::Checkpointing;
pub(crate) use kind::{Absent, Any, BuiltCheckpoints, ReadCache};
pub use kind::{Appends, InPlace, Kind, Maps, Paths};
use mappings::table_bytes;
pub(crate) use mappings::{Mappings, mappings_in};

pub(crate) use memory::Memory;
pub(crate) use running::RETIRED_MAX;
use running::Running;

use crate::blocks::Blocks;
pub(crate) use crate::cache::STAGED;
use crate::cache::{Cached, Relink};
use crate::flash::Flash;
use crate::gc::Extent;
use crate::log::{Frames, Log, layout_of};
use crate::node::Medium;

/// The log, and the translation from the pointers of parents to its pages.
pub struct Space<'b, F, K: Kind> {
    pub(crate) log: Log<'b, F>,
    pub(crate) cache: K::Cache<'b>,
    pub(crate) mappings: Mappings<'b>,
    pub(crate) checkpoints: K::Checkpoints,
    keeps_pages: bool,
    pub(crate) memory: K::Memory,
    pub(crate) running: Running,
    /// Sequence numbers that belong to no tree: the first, and how many.
    ///
    /// They lie above that of the root and were used, or skipped, before the index was opened.
    foreign: (u64, u32),
    #[cfg(debug_assertions)]
    operation: audit::Operation,
}

impl<'b, F: Flash, K: Kind> Space<'b, F, K> {
    /// Before a mount; a checkpoint of `parts` pages is due after `every` blocks.
    pub(crate) fn new(
        flash: F,
        medium: Medium,
        buffers: &Buffers,
        (every, parts): (u32, u32),
        relink: Relink,
        ram: &'b mut [u8],
    ) -> Self {
        let Buffers { frames, beside, verify, reads, writes, victims, wear, .. } = *buffers;
        let Buffers { keeps_pages, mapping_bytes, validity, .. } = *buffers;
        let (geometry, capabilities) = (flash.geometry(), flash.capabilities());
        let frame_bytes = layout_of(&geometry).frame_bytes();
        let (frame_ram, rest) = ram.split_at_mut(Frames::ram_needed(frame_bytes, frames, beside));
        let (cache, rest) =
            K::Cache::new(rest, frame_bytes, reads, writes, geometry.pages(), relink);
        let (table, rest) = rest.split_at_mut(table_bytes(mapping_bytes, geometry.pages()));
        let safe_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
        let frames = Frames::new(frame_ram, frame_bytes, frames);
        let blocks = Blocks::new(rest, &geometry, validity, victims, wear, safe_pages);
        Self {
            log: Log::new(
                flash,
                kind::CodecOf::<K>::CODEC,
                medium,
                frames,
                blocks,
                (verify, victims),
            ),
            cache,
            mappings: Mappings::new(table, geometry.pages()),
            checkpoints: K::Checkpoints::new(every, parts, safe_pages),
            keeps_pages,
            memory: K::Memory::default(),
            running: Running::NONE,
            foreign: (0, 0),
            #[cfg(debug_assertions)]
            operation: audit::Operation::default(),
        }
    }

    /// The number of page buffers.
    pub const fn buffers(&self) -> usize {
        self.log.frames.count()
    }

    /// Bytes for nodes in a page, from the start of its page buffer.
    pub fn area_bytes(&self) -> usize {
        self.log.layout().area_bytes()
    }

    /// The bytes for nodes in page buffer `frame`, to build a page there.
    ///
    /// The buffer holds no page of the chip from now on.
    pub fn area_mut(&mut self, frame: usize) -> &mut [u8] {
        let bytes = self.area_bytes();
        self.log.frames.forget(frame);
        &mut self.log.frames.bytes_mut(frame)[..bytes]
    }

    /// The bytes for nodes in two page buffers, to copy nodes between them.
    ///
    /// They hold the pages that they held: call [`area_mut`](Self::area_mut) before a buffer is
    /// changed that holds one.
    pub fn areas_mut(&mut self, first: usize, second: usize) -> (&mut [u8], &mut [u8]) {
        let bytes = self.area_bytes();
        let (first, second) = self.log.frames.pair(first, second);
        (&mut first[..bytes], &mut second[..bytes])
    }

    /// The part of the chip that the index can count on.
    pub(crate) fn extent(&self) -> Extent {
        let lost = self.log.reserve_blocks().max(self.log.blocks.bad_blocks());
        let blocks = self.log.geometry().blocks;
        let blocks = blocks.saturating_sub(lost + self.checkpoints.area_blocks());
        Extent { block_pages: self.log.block_pages(), blocks }
    }

    /// Starts from what a mount found.
    ///
    /// `identity` says whose pages count, `root` is the sequence number of the root, and `sequence`
    /// the highest of all, above which new pages are numbered.
    pub(crate) fn restart(&mut self, identity: u32, root: u64, sequence: u64) {
        // A torn page that is invisible now may be visible later: no page written from here on gets
        // its number.
        let sequence = sequence + K::GAP;
        self.log.restart(identity, sequence);
        let foreign = u32::try_from(sequence.saturating_sub(root)).unwrap_or(u32::MAX);
        self.foreign = (root + 1, foreign);
        self.memory = K::Memory::default();
        self.memory.note_mount(sequence);
        self.running.end();
        self.cache.clear();
    }

    /// Accepts pages that are newer than the root: they are needed, too.
    pub(crate) const fn accept_newer(&mut self) {
        self.foreign = (0, 0);
    }

    /// Pages that belong to the tree, whether they are on the chip yet or not.
    pub(crate) fn valid_pages(&self) -> u32 {
        // After an operation that failed half way the counts are wrong until the next one has
        // mounted again.
        self.taken_pages().saturating_sub(self.mappings.len() as u32)
    }

    /// Valid pages, and pages kept because their numbers are logical addresses.
    pub(crate) fn taken_pages(&self) -> u32 {
        let (staged, superseded) = K::staged(self);
        (self.log.blocks.valid_pages() + staged).saturating_sub(superseded)
    }

    /// Pages that can be programmed before anything is collected.
    pub(crate) fn room(&self) -> u32 {
        K::room(self)
    }
}
