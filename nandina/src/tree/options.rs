//! Which settings a tree can have, and the RAM that they take.

use super::split::Separator;
use super::{Form, HEIGHT_MAX, Placement, WritePolicy, batch};
use crate::blocks::{GcPolicy, LivenessTracking, TRACKED_MAX, WearPolicy};
use crate::engine::{
    CHECKPOINTS_MAX, CHIP_PAGES_MAX, Eviction, Folds, KEY_BYTES_MAX, Options, PAGE_BUFFERS_MAX,
    bounded, checkpoints_refused, unusable, unusable_sizes,
};
use crate::error::{BadOption, OpenError};
use crate::flash::Geometry;
use crate::gc::RelocationMode;
use crate::log::Dimensions;
use crate::log::checkpoint::EVERY_MAX;
use crate::log::{Frames, layout_of};
use crate::node::{Medium, Shape};
use crate::space::{self, Buffers, Kind, STAGED};

/// Bytes of the largest table of mappings.
const MAPPING_BYTES_MAX: usize = 1 << 24;

// What the options promise is what the log has.
const _: () = assert!(PAGE_BUFFERS_MAX == Frames::COUNT_MAX && CHECKPOINTS_MAX == EVERY_MAX);

// Numbers of staged pages are above those of the chip.
const _: () = assert!(CHIP_PAGES_MAX < STAGED);

impl Options {
    pub(crate) fn buffers<S: Placement>(&self) -> usize {
        self.page_buffers.unwrap_or(S::DESCRIPTION.buffers_default)
    }

    pub(crate) fn wear_of<S: Placement>(&self) -> WearPolicy {
        // A checkpoint stores the count of each block, if blocks are erased.
        let is_stored = self.checkpoints.is_some() && <S::Kind as Kind>::UPDATES.collects();
        let unset = if is_stored { WearPolicy::Counted } else { S::Kind::WEAR };
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
            replaced: !<S::Kind as Kind>::UPDATES.collects() && self.checkpoints.is_some(),
            appended: <S::Kind as Kind>::UPDATES.appends(),
            atomic: !<S::Kind as Kind>::UPDATES.collects() && chip.atomic,
        }
    }

    pub(crate) fn check<S: Placement, E>(
        &self,
        chip: &Dimensions,
        ram_bytes: usize,
    ) -> Result<(), OpenError<E>> {
        let bad = |reason| Err(OpenError::BadOption { reason });
        let geometry = &chip.geometry;
        if let Some(reason) = unusable_sizes(self) {
            return bad(reason);
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
        let paper_modes = matches!(self.victims, GcPolicy::Tracked(_))
            || self.moves != RelocationMode::Together
            || self.folds != Folds::Share
            || self.eviction != Eviction::All
            || self.rebalances
            || self.keep_pages.is_some();
        if !cfg!(feature = "paper-modes") && paper_modes {
            return bad(BadOption::PaperModesNotBuilt);
        }
        if self.rebalances && (<S::Kind as Kind>::UPDATES.collects() || self.write_buffer > 0) {
            return bad(BadOption::NoRebalancing);
        }
        if self.mapping_bytes > MAPPING_BYTES_MAX {
            return bad(BadOption::MappingBytes);
        }
        if self.validity == LivenessTracking::Searched {
            if !self.validity.searches() {
                return bad(BadOption::PaperModesNotBuilt);
            }
            let counted = matches!(self.victims, GcPolicy::Tracked(_));
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
        if matches!(self.victims, GcPolicy::Tracked(blocks) if !(1..=TRACKED_MAX).contains(&blocks))
        {
            return bad(BadOption::TrackedBlocks);
        }
        if self.checkpoints.is_some() {
            let is_counted = !<S::Kind as Kind>::UPDATES.collects()
                || self.wear_of::<S>() == WearPolicy::Counted;
            if let Some(reason) = checkpoints_refused(self, is_counted) {
                return bad(reason);
            }
            if checkpoint_pages::<S>(geometry, self, chip.block_pages) == 0 {
                return bad(BadOption::CheckpointTooLarge);
            }
        }
        let leaf_bytes = S::share(layout.area_bytes(), 1, HEIGHT_MAX);
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

/// Pages of each checkpoint; 0 if there are none.
pub(crate) fn checkpoint_pages<S: Placement>(
    geometry: &Geometry,
    options: &Options,
    block_pages: u32,
) -> u32 {
    if options.checkpoints.is_none() {
        return 0;
    }
    S::Kind::checkpoint_pages(geometry, options, block_pages)
}

/// Bytes of the buffer that an index of system `S` needs.
pub(crate) fn ram_needed<S: Placement>(geometry: &Geometry, options: &Options) -> usize {
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
