//! The settings of an index, each with its range, and the RAM that they take.

use super::split::Separator;
use super::{Form, HEIGHT_MAX, KEY_BYTES_MAX, Placement, WritePolicy, batch};
use crate::blocks::{PAGES_MAX, TRACKED_MAX, Validity, Victims, Wear};
use crate::error::{BadOption, OpenError};
use crate::flash::Geometry;
use crate::log::{Frames, layout_of};
use crate::node::{HEADER_BYTES, Medium, Shape};
use crate::space::{self, Buffers, Dimensions, EVERY_MAX, Kind, Moves, STAGED};

/// When a node is written only to flush the mappings of its children.
///
/// A mapping for which the table has no room always writes the parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Folds {
    /// When the table is three quarters full and twice the node's share is mapped.
    ///
    /// A parent that is no longer in a page buffer is not read for that.
    #[default]
    Share,
    /// Only when the table has no room (VMTree paper, section 4.2).
    ///
    /// For comparison: it frees fewer mappings for each program.
    Full,
    /// As soon as this many children of the node are mapped, however full the table.
    ///
    /// See VMTree paper, section 4.2: 2 or more. With 0, whenever a child has moved. For
    /// comparison.
    Children(u8),
}

impl Folds {
    /// The one that is built: without the feature `paper-modes` there is one.
    pub(crate) const fn built(self) -> Self {
        if cfg!(feature = "paper-modes") { self } else { Self::Share }
    }
}

/// Settings of an index.
///
/// The sizes of keys and values, and whether there are checkpoints, are written on the medium; the
/// other settings are not.
///
/// They are constants where the chip is fixed:
///
/// ```
/// use nandina::Options;
///
/// const OPTIONS: Options = Options::new(4, 8).write_buffer(2).verify();
/// assert_eq!((OPTIONS.write_buffer, OPTIONS.verify), (2, true));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Bytes of a key, 1 to [`KEY_BYTES_MAX`].
    pub key_bytes: usize,
    /// Bytes of a value, 0 to 65535, as long as two records fit in a leaf.
    pub value_bytes: usize,
    /// Page buffers, at most 16; `None` for the system's default.
    ///
    /// Each takes a page and up to 44 bytes. With fewer than one for each level and one more, the
    /// system `wandering` reads nodes twice.
    pub page_buffers: Option<usize>,
    /// How garbage collection moves pages. Default: [`Moves::Together`].
    ///
    /// Others need the feature `paper-modes` of this library.
    pub moves: Moves,
    /// How garbage collection chooses a block. Default: [`Victims::Fewest`].
    pub victims: Victims,
    /// What is remembered of valid pages. Default: [`Validity::Marked`].
    pub validity: Validity,
    /// How worn blocks are spared; `None` for the system's default.
    ///
    /// By default, systems that write paths count erases, and the others use blocks in turn.
    pub wear: Option<Wear>,
    /// Pages of the read cache, 0 to 65535. Default: none.
    ///
    /// It keeps the pages that were read last. Each takes a page, up to 40 bytes, and 12.
    pub read_cache: usize,
    /// Pages of the write cache, 0 to 65535. Default: none.
    ///
    /// It holds pages back from the chip until it is full. Each takes a page, up to 40 bytes, and
    /// 28; all of them together 384 bytes, a bit for each page of the chip, and one for each 256.
    ///
    /// With a write cache a change is durable only when [`Index::flush`](crate::Index::flush) has
    /// returned, or when later changes have filled the cache. After a cut, or an error of the
    /// device, the index is in its state after one of the changes since the last flush, with all
    /// changes before that one and none after.
    pub write_cache: usize,
    /// Pages of the write buffer, 0 to 65535. Default: none.
    ///
    /// It holds pending changes, one for each key, until it is full. Each page takes a page of main
    /// data; a change takes the bytes of key and value, and a bit.
    ///
    /// Pending changes are applied in the order of keys, all changes of one leaf in one write of
    /// it. A change is durable only when [`Index::flush`](crate::Index::flush) has returned, or
    /// when a later one has filled the buffer and there is no write cache. After a cut each change
    /// since the last flush is there wholly or not at all, each independently of the others, and no
    /// key has an older state than that of the flush. Source: VMTree paper, section 4.1.
    ///
    /// An upsert is buffered only if the limit allows the pages that all pending upserts can take;
    /// else it is applied at once, after the pending changes. Then only a new key can be refused,
    /// never another value for an existing one. A pending change is refused only if the device has
    /// worn out since. A buffered change does not report whether its key was there. The processor
    /// shifts half of the buffer for each change.
    pub write_buffer: usize,
    /// Number of pending changes in the write buffer that makes a flush due.
    ///
    /// At least 1; `None` for as many as there is room for. Default: `None`.
    pub write_buffer_changes: Option<u32>,
    /// Most calls of [`Index::tick`](crate::Index::tick) for which a change is pending.
    ///
    /// Then all changes are flushed. At least 1; `None` for no bound. Default: `None`.
    pub write_buffer_ticks: Option<u32>,
    /// Blocks opened from one checkpoint to the next, 1 to 12; `None` for none.
    ///
    /// With `None` there are no checkpoints. Whether there are any is written on the medium, how
    /// often is not. Default: `None`.
    ///
    /// With checkpoints a mount reads the newest one, a page of each block that it lists (at most
    /// 16), and what changed since. Where paths are written, these are about five pages for each
    /// that was programmed since, or every inner node if that is less; without checkpoints a mount
    /// reads a page of every block and every inner node. In `vm` they are every page that was
    /// programmed since, twice, and some three pages for each inner node among them; without
    /// checkpoints a mount reads every page of the chip for each level of the tree.
    ///
    /// Checkpoints take four blocks from the capacity, and a page (on large chips a few) each time.
    /// A block must have room for one: about a bit for each page of the chip, four bytes for each
    /// block, and the mapping table; and a page must have at least 144 bytes beside its header. So
    /// with checkpoints, [`mapping_bytes`](Self::mapping_bytes) has an upper bound. After a change
    /// of it, the next mount reads as if there were no checkpoint.
    /// [`Index::checkpoint`](crate::Index::checkpoint) writes one at once.
    pub checkpoints: Option<u32>,
    /// Bytes of the table of virtual mappings, 0 to 2^24; 0 for none. Default: 1024.
    ///
    /// For systems that have one (`vm`). A mapping takes 4 bytes, or 8 on a chip of 65535 pages and
    /// more, and a sixteenth of the table stays empty. With more mappings, fewer parents have to be
    /// written. An index must be opened with as many bytes as before, or more.
    pub mapping_bytes: usize,
    /// When a parent is written only to flush its children's mappings.
    ///
    /// For systems that have a table of mappings. Default: [`Folds::Share`]; others need the
    /// feature `paper-modes` of this library.
    pub folds: Folds,
    /// Page buffers keep their pages from one operation to the next.
    ///
    /// This helps the root above all. `None` for the system's default: systems that write every
    /// change up to the root read it anew each time, the others keep it. Other settings need the
    /// feature `paper-modes` of this library.
    pub keep_pages: Option<bool>,
    /// Reads each page back after its program. Default: off.
    ///
    /// So a chip that reports a program or an erase as done, although it was not, is detected while
    /// the data is still in RAM. Costs one read for each program, and one page buffer.
    pub verify: bool,
}

/// Bytes of the largest table of mappings.
const MAPPING_BYTES_MAX: usize = 1 << 24;

impl Options {
    /// Settings for keys and values of these sizes in bytes, all else at its default.
    pub const fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Self {
            key_bytes,
            value_bytes,
            page_buffers: None,
            moves: Moves::Together,
            victims: Victims::Fewest,
            validity: Validity::Marked,
            wear: None,
            read_cache: 0,
            write_cache: 0,
            write_buffer: 0,
            write_buffer_changes: None,
            write_buffer_ticks: None,
            checkpoints: None,
            mapping_bytes: 1024,
            folds: Folds::Share,
            keep_pages: None,
            verify: false,
        }
    }

    /// Sets [`page_buffers`](Self#structfield.page_buffers).
    #[must_use]
    pub const fn page_buffers(mut self, buffers: usize) -> Self {
        self.page_buffers = Some(buffers);
        self
    }

    /// Sets [`moves`](Self#structfield.moves).
    #[must_use]
    pub const fn moves(mut self, moves: Moves) -> Self {
        self.moves = moves;
        self
    }

    /// Sets [`victims`](Self#structfield.victims).
    #[must_use]
    pub const fn victims(mut self, victims: Victims) -> Self {
        self.victims = victims;
        self
    }

    /// Sets [`validity`](Self#structfield.validity).
    #[must_use]
    pub const fn validity(mut self, validity: Validity) -> Self {
        self.validity = validity;
        self
    }

    /// Sets [`wear`](Self#structfield.wear).
    #[must_use]
    pub const fn wear(mut self, wear: Wear) -> Self {
        self.wear = Some(wear);
        self
    }

    /// Sets [`read_cache`](Self#structfield.read_cache).
    #[must_use]
    pub const fn read_cache(mut self, pages: usize) -> Self {
        self.read_cache = pages;
        self
    }

    /// Sets [`write_cache`](Self#structfield.write_cache).
    #[must_use]
    pub const fn write_cache(mut self, pages: usize) -> Self {
        self.write_cache = pages;
        self
    }

    /// Sets [`write_buffer`](Self#structfield.write_buffer).
    #[must_use]
    pub const fn write_buffer(mut self, pages: usize) -> Self {
        self.write_buffer = pages;
        self
    }

    /// Sets [`write_buffer_changes`](Self#structfield.write_buffer_changes).
    #[must_use]
    pub const fn write_buffer_changes(mut self, changes: u32) -> Self {
        self.write_buffer_changes = Some(changes);
        self
    }

    /// Sets [`write_buffer_ticks`](Self#structfield.write_buffer_ticks).
    #[must_use]
    pub const fn write_buffer_ticks(mut self, ticks: u32) -> Self {
        self.write_buffer_ticks = Some(ticks);
        self
    }

    /// Sets [`checkpoints`](Self#structfield.checkpoints).
    #[must_use]
    pub const fn checkpoints(mut self, blocks: u32) -> Self {
        self.checkpoints = Some(blocks);
        self
    }

    /// Sets [`mapping_bytes`](Self#structfield.mapping_bytes).
    #[must_use]
    pub const fn mapping_bytes(mut self, bytes: usize) -> Self {
        self.mapping_bytes = bytes;
        self
    }

    /// Sets [`flushes_mappings`](Self#structfield.folds).
    #[must_use]
    pub const fn folds(mut self, folds: Folds) -> Self {
        self.folds = folds;
        self
    }

    /// Sets [`keep_pages`](Self#structfield.keep_pages).
    #[must_use]
    pub const fn keep_pages(mut self, keep: bool) -> Self {
        self.keep_pages = Some(keep);
        self
    }

    /// Sets [`verify`](Self#structfield.verify).
    #[must_use]
    pub const fn verify(mut self) -> Self {
        self.verify = true;
        self
    }

    pub(crate) fn buffers<S: Placement>(&self) -> usize {
        self.page_buffers.unwrap_or(S::DESCRIPTION.buffers_default)
    }

    pub(crate) fn wear_of<S: Placement>(&self) -> Wear {
        // A checkpoint stores the count of each block.
        let unset = if self.checkpoints.is_some() { Wear::Counted } else { S::Kind::WEAR };
        self.wear.unwrap_or(unset)
    }

    /// The pages that are kept in RAM.
    pub(crate) fn kept<S: Placement>(&self) -> Buffers {
        Buffers {
            frames: self.buffers::<S>(),
            verify: self.verify,
            beside: self.verify || S::Kind::reads_beside(self.wear_of::<S>()),
            reads: self.read_cache,
            writes: self.write_cache,
            validity: self.validity,
            victims: self.victims,
            wear: self.wear_of::<S>(),
            keeps_pages: self.keep_pages.unwrap_or(<S::Kind as Kind>::KEEPS_PAGES),
            mapping_bytes: S::Kind::mapping_bytes(self),
        }
    }

    /// The medium that pages of such an index record.
    pub(crate) const fn medium<S: Placement>(&self, chip: &Dimensions) -> Medium {
        Medium {
            system: S::DESCRIPTION.code,
            key_bytes: self.key_bytes as u16,
            value_bytes: self.value_bytes as u16,
            blocks: chip.geometry.blocks,
            pages_per_block: chip.geometry.pages_per_block as u16,
            checkpoints: self.checkpoints.is_some(),
            appended: S::DESCRIPTION.appends,
            atomic: <S::Kind as Kind>::REPLACES && chip.atomic,
        }
    }

    pub(crate) fn check<S: Placement, E>(
        &self,
        chip: &Dimensions,
        ram_bytes: usize,
    ) -> Result<(), OpenError<E>> {
        let bad = |reason| Err(OpenError::BadOption { reason });
        let geometry = &chip.geometry;
        if !(1..=KEY_BYTES_MAX).contains(&self.key_bytes) {
            return bad(BadOption::KeyBytes);
        }
        if self.value_bytes > u16::MAX.into() {
            return bad(BadOption::ValueBytes);
        }
        if !(S::DESCRIPTION.buffers_min..=Frames::COUNT_MAX).contains(&self.buffers::<S>()) {
            return bad(BadOption::PageBuffers);
        }
        if let Some(reason) = unusable(geometry) {
            return bad(reason);
        }
        if self.checkpoints.is_some() && !S::DESCRIPTION.checkpoints {
            return bad(BadOption::NoCheckpoints);
        }
        if let Some(reason) = S::Kind::refuses(self) {
            return bad(reason);
        }
        let paper_modes = matches!(self.victims, Victims::Tracked(_))
            || self.moves != Moves::Together
            || self.folds != Folds::Share
            || self.keep_pages.is_some();
        if !cfg!(feature = "paper-modes") && paper_modes {
            return bad(BadOption::PaperModesNotBuilt);
        }
        if self.mapping_bytes > MAPPING_BYTES_MAX {
            return bad(BadOption::MappingBytes);
        }
        if self.validity == Validity::Searched {
            if !self.validity.searches() {
                return bad(BadOption::PaperModesNotBuilt);
            }
            let counted = matches!(self.victims, Victims::Tracked(_));
            if self.write_cache > 0 || self.checkpoints.is_some() || counted {
                return bad(BadOption::NotSearched);
            }
        }
        if self.read_cache > 0 && !S::Kind::CACHES {
            return bad(BadOption::ReadCacheNotBuilt);
        }
        if self.read_cache > u16::MAX.into() || self.write_cache > u16::MAX.into() {
            return bad(BadOption::CachePages);
        }
        if self.write_buffer > 0 && !batch::IS_BUILT {
            return bad(BadOption::WriteBufferNotBuilt);
        }
        if self.write_buffer > u16::MAX.into() {
            return bad(BadOption::WriteBufferPages);
        }
        if self.write_buffer_changes == Some(0) || self.write_buffer_ticks == Some(0) {
            return bad(BadOption::WriteBufferBounds);
        }
        if self.write_buffer > 0 && batch::waiting_max(geometry.page_bytes as usize, self) == 0 {
            return bad(BadOption::WriteBufferTooSmall);
        }
        let layout = layout_of(geometry);
        if matches!(self.victims, Victims::Tracked(blocks) if !(1..=TRACKED_MAX).contains(&blocks))
        {
            return bad(BadOption::TrackedBlocks);
        }
        if self.checkpoints.is_some() {
            if !cfg!(feature = "checkpoints") {
                return bad(BadOption::CheckpointsNotBuilt);
            }
            if self.wear_of::<S>() == Wear::Circular {
                return bad(BadOption::CheckpointsUncounted);
            }
            if !(1..=EVERY_MAX).contains(&self.checkpoints.unwrap_or(0)) {
                return bad(BadOption::Checkpoints);
            }
            let mapping_bytes = S::Kind::mapping_bytes(self);
            if space::checkpoint_parts(geometry, &layout, chip.block_pages, mapping_bytes).is_none()
            {
                return bad(BadOption::CheckpointTooLarge);
            }
        }
        let leaf_bytes = S::extent(layout.area_bytes(), 1, HEIGHT_MAX).len();
        let shape = Shape::sorted(self.key_bytes, self.value_bytes);
        let form = Form::new(&layout, &self.medium::<S>(chip));
        if form.records_that_fit::<S>(1, HEIGHT_MAX) < 2 {
            return Err(OpenError::RecordTooLarge {
                record_bytes: shape.record_bytes(),
                leaf_bytes,
            });
        }
        let needed = ram_needed::<S>(geometry, self);
        if ram_bytes < needed {
            return Err(OpenError::RamTooSmall { needed, given: ram_bytes });
        }
        Ok(())
    }
}

/// The option that needs written paths, if one is set.
pub(crate) fn path_options(options: &Options) -> Option<BadOption> {
    if options.write_cache > 0 {
        Some(BadOption::NoPaths)
    } else if matches!(options.victims, Victims::Tracked(_)) {
        Some(BadOption::TrackedWithoutPaths)
    } else {
        None
    }
}

/// Why a chip of this geometry can hold no index, whatever its settings.
pub(super) fn unusable(geometry: &Geometry) -> Option<BadOption> {
    if !(2..=PAGES_MAX).contains(&geometry.pages_per_block) {
        return Some(BadOption::PagesPerBlock);
    }
    if geometry.blocks == 0 {
        return Some(BadOption::Blocks);
    }
    // So the product of both never overflows.
    if geometry.blocks > (STAGED - 1) / geometry.pages_per_block {
        return Some(BadOption::Pages);
    }
    (layout_of(geometry).frame_bytes() < HEADER_BYTES).then_some(BadOption::PageBytes)
}

/// The geometry, with numbers of pages and blocks reduced to their ranges.
///
/// A number beyond its range becomes the largest that is allowed.
pub(super) fn bounded(geometry: &Geometry) -> Geometry {
    let pages_per_block = geometry.pages_per_block.min(PAGES_MAX);
    let blocks = geometry.blocks.min((STAGED - 1) / pages_per_block.max(1));
    Geometry { pages_per_block, blocks, ..*geometry }
}

/// Bytes of the buffer that an index of system `S` needs on such a chip.
///
/// These are its page buffers, three keys, one bit for each page, and for each block half a byte
/// and what [`Wear`] states; with [`Options::verify`] one page buffer more; the caches and the
/// write buffer that the options request, and what [`Victims`] states. The index uses no other
/// memory except the struct itself.
///
/// Sizes and counts beyond their ranges are reduced to the largest that is allowed: no index can be
/// opened with them.
pub fn ram_needed<S: Placement>(geometry: &Geometry, options: &Options) -> usize {
    let pages_max = usize::from(u16::MAX);
    let options = Options {
        key_bytes: options.key_bytes.min(KEY_BYTES_MAX),
        page_buffers: Some(options.buffers::<S>().min(Frames::COUNT_MAX)),
        read_cache: options.read_cache.min(pages_max),
        write_cache: options.write_cache.min(pages_max),
        write_buffer: options.write_buffer.min(pages_max),
        mapping_bytes: options.mapping_bytes.min(MAPPING_BYTES_MAX),
        ..*options
    };
    let geometry = &bounded(geometry);
    space::ram_needed(geometry, &layout_of(geometry), &options.kept::<S>())
        + batch::ram_needed(geometry.page_bytes as usize, options.write_buffer)
        + Separator::ram_needed(options.key_bytes)
        + options.key_bytes
}
