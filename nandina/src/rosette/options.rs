//! Which settings such an index can have, and the RAM that they take.
//!
//! Nothing is read or written here.

use super::checkpoint::{STORED_BEFORE, STORED_BESIDE_MAX, Stored};
use super::directory::Directory;
use super::leaf::Form;
use super::order::Order;
use super::suspects::area_bytes_min;
use super::trail::{Trail, told_pages};
use super::{Rosette, limits};
use crate::blocks::{Blocks, GcPolicy, LivenessTracking, WearPolicy};
use crate::engine::{
    Eviction, Folds, KEY_BYTES_MAX, Options, System, bounded, checkpoints_refused, path_options,
    unusable, unusable_sizes,
};
use crate::error::{BadOption, OpenError};
use crate::flash::{Capabilities, Geometry};
use crate::gc::RelocationMode;
use crate::log::Dimensions;
use crate::log::checkpoint;
use crate::log::{Frames, layout_of};
use crate::node::Medium;

/// Entries of the directory that only a mount needs.
///
/// They are for the state before the newest change.
pub(super) const MOUNTED: u32 = 3;

/// How the RAM of an index is divided.
pub(super) struct Sizes {
    pub frames: usize,
    pub frame_bytes: usize,
    pub frames_bytes: usize,
    pub directory_bytes: usize,
    pub order_bytes: usize,
    pub trail_bytes: usize,
    pub blocks_bytes: usize,
}

/// Page buffers.
fn buffers(options: &Options) -> usize {
    options.page_buffers.unwrap_or(Rosette::DESCRIPTION.buffers_default)
}

/// The leaves in areas of `area_bytes`.
pub(super) const fn form_of(area_bytes: usize, options: &Options) -> Form {
    let sizes = (options.key_bytes, options.value_bytes);
    Form::of(area_bytes, sizes, options.checkpoints.is_some())
}

/// How worn blocks are spared.
pub(super) fn wear_of(options: &Options) -> WearPolicy {
    options.wear.unwrap_or(WearPolicy::Counted)
}

/// The sizes for such a chip and these options, which are in their ranges.
pub(super) fn sizes(geometry: &Geometry, options: &Options) -> Sizes {
    let frame_bytes = layout_of(geometry).frame_bytes();
    let frames = buffers(options);
    let leaves = leaves_max(geometry, options);
    Sizes {
        frames,
        frame_bytes,
        frames_bytes: Frames::ram_needed(frame_bytes, frames, options.verify),
        directory_bytes: Directory::ram_needed(
            options.key_bytes,
            geometry.pages(),
            leaves + MOUNTED,
        ),
        order_bytes: Order::ram_needed(geometry.blocks),
        trail_bytes: Trail::ram_needed(told_pages(
            layout_of(geometry).area_bytes(),
            options.checkpoints.is_some(),
        )),
        blocks_bytes: Blocks::ram_needed(
            geometry,
            options.validity,
            options.victims,
            wear_of(options),
        ),
    }
}

/// Bytes of the buffer that such an index needs.
pub(super) fn ram_needed(geometry: &Geometry, options: &Options) -> usize {
    let options = Options {
        key_bytes: options.key_bytes.min(KEY_BYTES_MAX),
        page_buffers: Some(buffers(options).min(Frames::COUNT_MAX)),
        ..*options
    };
    let sizes = sizes(&bounded(geometry), &options);
    let Sizes { frames_bytes, directory_bytes, order_bytes, trail_bytes, blocks_bytes, .. } = sizes;
    frames_bytes + directory_bytes + order_bytes + trail_bytes + blocks_bytes
}

/// The medium that the pages of such an index record.
pub(super) const fn medium(geometry: &Geometry, options: &Options) -> Medium {
    Medium {
        system: Rosette::DESCRIPTION.code,
        key_bytes: options.key_bytes as u16,
        value_bytes: options.value_bytes as u16,
        blocks: geometry.blocks,
        pages_per_block: geometry.pages_per_block as u16,
        checkpoints: options.checkpoints.is_some(),
        appended: false,
        replaced: false,
        atomic: false,
    }
}

/// Checks that there can be such an index on the chip, in so much RAM.
pub(super) fn check<E>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    options: &Options,
    ram_bytes: usize,
) -> Result<(), OpenError<E>> {
    if let Some(reason) = refused(geometry, options) {
        return Err(OpenError::BadOption { reason });
    }
    let block_pages = Dimensions::new(geometry, capabilities).block_pages;
    let area_bytes = layout_of(geometry).area_bytes();
    let form = form_of(area_bytes, options);
    if form.capacity() < 2 || area_bytes < area_bytes_min(block_pages) {
        return Err(OpenError::RecordTooLarge {
            record_bytes: form.record_bytes(),
            leaf_bytes: form.node_bytes(),
        });
    }
    if let Some(reason) = checkpoints_unfit(geometry, options, block_pages) {
        return Err(OpenError::BadOption { reason });
    }
    let needed = ram_needed(geometry, options);
    if ram_bytes < needed {
        return Err(OpenError::RamTooSmall { needed, given: ram_bytes });
    }
    Ok(())
}

/// Why the checkpoints that the options ask for are not possible, if so.
fn checkpoints_unfit(
    geometry: &Geometry,
    options: &Options,
    block_pages: u32,
) -> Option<BadOption> {
    options.checkpoints?;
    if let Some(reason) = checkpoints_refused(options, wear_of(options) == WearPolicy::Counted) {
        return Some(reason);
    }
    let parts = |leaves| parts_for(geometry, options, block_pages, leaves);
    // No checkpoint is written while the directory does not fit, but some directory must fit.
    parts(limits::LIMIT_MIN).is_none().then_some(BadOption::CheckpointTooLarge)
}

/// Pages of a checkpoint of this many leaves, or `None` without room for one.
fn parts_for(geometry: &Geometry, options: &Options, block_pages: u32, leaves: u32) -> Option<u32> {
    let bytes = Directory::ram_needed(options.key_bytes, geometry.pages(), leaves);
    let bytes = bytes + STORED_BEFORE + STORED_BESIDE_MAX;
    checkpoint::parts::<Stored<'_, '_>>(geometry, &layout_of(geometry), block_pages, bytes)
}

/// The most pages of a checkpoint; 0 if there are none.
///
/// No checkpoint is written while the directory is larger.
pub(super) fn parts_max(geometry: &Geometry, options: &Options, block_pages: u32) -> u32 {
    if options.checkpoints.is_none() {
        return 0;
    }
    let leaves = leaves_max(geometry, options);
    parts_for(geometry, options, block_pages, leaves)
        .unwrap_or_else(|| checkpoint::parts_most(geometry, &layout_of(geometry), block_pages))
}

/// The most leaves that may be there: those with the shortest separators possible.
pub(super) fn leaves_most(geometry: &Geometry, options: &Options) -> u32 {
    let held = Directory::leaves_most(
        options.key_bytes,
        geometry.pages(),
        sizes(geometry, options).directory_bytes,
    );
    held.saturating_sub(MOUNTED).min(limits::leaves_max(geometry, options.checkpoints.is_some()))
}

/// The leaves that there is RAM for whatever their keys.
fn leaves_max(geometry: &Geometry, options: &Options) -> u32 {
    let most = limits::leaves_max(geometry, options.checkpoints.is_some());
    options.leaves.map_or(most, |leaves| leaves.min(most)).max(1)
}

/// The option that does not suit, if there is one.
fn refused(geometry: &Geometry, options: &Options) -> Option<BadOption> {
    if let Some(reason) = unusable_sizes(options) {
        return Some(reason);
    }
    if !(Rosette::DESCRIPTION.buffers_min..=Frames::COUNT_MAX).contains(&buffers(options)) {
        return Some(BadOption::PageBuffers);
    }
    if let Some(reason) = unusable(geometry) {
        return Some(reason);
    }
    if let Some(reason) = path_options(options) {
        return Some(reason);
    }
    let paper_modes = matches!(options.victims, GcPolicy::Tracked(_))
        || options.moves != RelocationMode::Together
        || options.folds != Folds::Share
        || options.eviction != Eviction::All
        || options.rebalances
        || options.keep_pages.is_some()
        || options.validity == LivenessTracking::Searched;
    if !cfg!(feature = "paper-modes") && paper_modes {
        return Some(BadOption::PaperModesNotBuilt);
    }
    if options.read_cache > 0 || options.write_buffer > 0 {
        return Some(BadOption::NotBesideDirectory);
    }
    options.leaves.is_some_and(|leaves| leaves < limits::LIMIT_MIN).then_some(BadOption::Leaves)
}
