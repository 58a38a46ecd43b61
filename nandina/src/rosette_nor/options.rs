//! Which settings such an index can have, and the RAM that they take.
//!
//! Nothing is read or written here.

use super::RosetteNor;
use super::directory::Directory;
use super::form::Form;
use super::order::ENTRY_BYTES;
use super::pool::Pool;
use crate::blocks::{GcPolicy, LivenessTracking};
use crate::engine::{
    Folds, KEY_BYTES_MAX, Options, System, bounded, path_options, unusable, unusable_sizes,
};
use crate::error::{BadOption, OpenError};
use crate::flash::{Capabilities, Geometry};
use crate::gc::RelocationMode;
use crate::node::Medium;
use crate::node::slot::RECORD_MAX;

/// Sectors that hold no leaf: two to replace others, and the one next in turn.
pub const SECTORS_BESIDE: u32 = 3;

/// The fewest leaves for which there must be room: one can be divided.
pub const LEAVES_MIN: usize = 2;

/// Entries of the directory beside: for leaves whose replacement was cut.
pub const ENTRIES_BESIDE: usize = 4;

/// How the RAM of an index is divided.
pub struct Sizes {
    pub leaves: usize,
    pub page_bytes: usize,
    pub order_bytes: usize,
    pub pool_bytes: usize,
    pub directory_bytes: usize,
}

/// The most leaves on a chip that expects this many bad blocks.
fn leaves_on(blocks: u32, bad_blocks: u32) -> usize {
    blocks.min(SECTORS_MAX).saturating_sub(SECTORS_BESIDE + bad_blocks) as usize
}

/// The most sectors: their numbers have two bytes. Blocks behind them are not used.
pub const SECTORS_MAX: u32 = 1 << 16;

impl Sizes {
    pub fn of(geometry: &Geometry, capabilities: &Capabilities, options: &Options) -> Self {
        let bad_blocks = capabilities.bad_blocks_max(geometry.blocks);
        Self::with_leaves(geometry, options, leaves_on(geometry.blocks, bad_blocks))
    }

    /// The sizes on a chip on which there can be this many leaves.
    fn with_leaves(geometry: &Geometry, options: &Options, most: usize) -> Self {
        let form = Form::new(geometry, options.key_bytes, options.value_bytes);
        let leaves = options.leaves.map_or(most, |leaves| most.min(leaves as usize));
        Self {
            leaves,
            page_bytes: form.layout.frame_bytes(),
            order_bytes: form.slots_max() * ENTRY_BYTES,
            pool_bytes: Pool::ram_needed(geometry.blocks.min(SECTORS_MAX) as usize),
            directory_bytes: Directory::ram_needed(options.key_bytes, leaves + ENTRIES_BESIDE),
        }
    }
}

/// Bytes of the buffer that such an index needs.
pub fn ram_needed(geometry: &Geometry, options: &Options) -> usize {
    let geometry = bounded(geometry);
    let options = Options {
        key_bytes: options.key_bytes.clamp(1, KEY_BYTES_MAX),
        value_bytes: options.value_bytes.min(u16::MAX.into()),
        ..*options
    };
    let form = Form::new(&geometry, options.key_bytes, options.value_bytes);
    let sizes = Sizes::with_leaves(&geometry, &options, leaves_on(geometry.blocks, 0));
    2 * sizes.page_bytes
        + form.record_bytes()
        + form.slot_bytes()
        + sizes.order_bytes
        + sizes.pool_bytes
        + sizes.directory_bytes
}

/// The medium that the sectors of such an index record.
pub const fn medium(geometry: &Geometry, options: &Options) -> Medium {
    Medium {
        system: RosetteNor::DESCRIPTION.code,
        key_bytes: options.key_bytes as u16,
        value_bytes: options.value_bytes as u16,
        blocks: geometry.blocks,
        pages_per_block: geometry.pages_per_block as u16,
        checkpoints: false,
        appended: false,
        replaced: false,
        atomic: false,
    }
}

/// Checks that there can be such an index on the chip.
pub fn check<E>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    options: &Options,
) -> Result<(), OpenError<E>> {
    if let Some(reason) = refused(geometry, options) {
        return Err(OpenError::BadOption { reason });
    }
    if let Some(missing) = RosetteNor::DESCRIPTION.needs.missing(capabilities) {
        return Err(OpenError::Unsuited(missing));
    }
    let form = Form::new(geometry, options.key_bytes, options.value_bytes);
    let record_bytes = form.record_bytes();
    let has_head = form.layout.area_bytes() >= form.head_bytes();
    if !has_head || record_bytes > RECORD_MAX || form.capacity() < 2 {
        let leaf_bytes = form.sector_bytes();
        return Err(OpenError::RecordTooLarge { record_bytes, leaf_bytes });
    }
    let leaves = Sizes::of(geometry, capabilities, options).leaves;
    if leaves < LEAVES_MIN {
        return Err(OpenError::ChipTooSmall { limit_pages: leaves as u32 });
    }
    Ok(())
}

/// Checks that there can be such an index on the chip, in so much RAM.
pub fn check_with_ram<E>(
    geometry: &Geometry,
    capabilities: &Capabilities,
    options: &Options,
    given: usize,
) -> Result<(), OpenError<E>> {
    check(geometry, capabilities, options)?;
    let needed = ram_needed(geometry, options);
    if given < needed { Err(OpenError::RamTooSmall { needed, given }) } else { Ok(()) }
}

/// The option that does not suit, if there is one.
fn refused(geometry: &Geometry, options: &Options) -> Option<BadOption> {
    if let Some(reason) = unusable_sizes(options) {
        return Some(reason);
    }
    // Both buffers for pages are always there; more are not used.
    if options.page_buffers.is_some_and(|buffers| buffers < 2) {
        return Some(BadOption::PageBuffers);
    }
    if let Some(reason) = unusable(geometry) {
        return Some(reason);
    }
    if options.validity == LivenessTracking::Searched {
        return Some(BadOption::NotSearched);
    }
    if let Some(reason) = path_options(options) {
        return Some(reason);
    }
    let paper_modes = matches!(options.victims, GcPolicy::Tracked(_))
        || options.moves != RelocationMode::Together
        || options.folds != Folds::Share
        || options.keep_pages.is_some();
    if !cfg!(feature = "paper-modes") && paper_modes {
        return Some(BadOption::PaperModesNotBuilt);
    }
    if options.checkpoints.is_some() {
        return Some(BadOption::NoCheckpoints);
    }
    if options.read_cache > 0 || options.write_buffer > 0 {
        return Some(BadOption::NotBesideDirectory);
    }
    options.leaves.is_some_and(|leaves| (leaves as usize) < LEAVES_MIN).then_some(BadOption::Leaves)
}
