//! Different options for opening an index again.
//!
//! Everything that is not stored on the medium may differ.

use nandina::blocks::TRACKED_MAX;
use nandina::log::checkpoint::EVERY_MAX;
use nandina::{
    BadOption, Eviction, Folds, GcPolicy, LivenessTracking, OpenError, Options, RelocationMode,
    System, WearPolicy, plan,
};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::device::{Ground, fitted};

/// The fewest blocks of chips on which a checkpoint may take several of them.
const SEVERAL: u32 = 64;

/// Which changes a full write buffer writes, of a tree that has one.
fn eviction<S: System>(options: &Options) -> Eviction {
    let has_one = options.write_buffer > 0 && !S::DESCRIPTION.has_arena();
    match options.write_buffer_changes.filter(|_| has_one).map(|changes| changes % 3) {
        Some(0) => Eviction::Ibsf,
        Some(1) => Eviction::Mb,
        _ => Eviction::All,
    }
}

/// Draws options for the next opening after one with `options`.
///
/// A table of mappings only grows: with checkpoints on chips of [`SEVERAL`] blocks and more, as far
/// as one fits there. `verify` stays where the chip cannot be trusted without it. The pages of the
/// write cache and the write buffer, which decide when a change is acknowledged, are left to the
/// caller.
pub(super) fn changed<S: System>(
    options: &Options,
    ground: &impl Ground,
    random: &mut ChaCha8Rng,
) -> Options {
    let least = S::DESCRIPTION.buffers_min;
    let Options { key_bytes, value_bytes, .. } = *options;
    let changed = fitted::<S>(Options {
        page_buffers: random.random::<bool>().then(|| random.random_range(least..least + 5)),
        moves: [RelocationMode::Together, RelocationMode::Alone][random.random_range(0..2)],
        victims: match random.random_range(0..4) {
            0 => GcPolicy::CostBenefit,
            1 => GcPolicy::Tracked(random.random_range(1..=TRACKED_MAX)),
            _ => GcPolicy::Fewest,
        },
        validity: [LivenessTracking::Marked, LivenessTracking::Searched][random.random_range(0..2)],
        wear: [None, Some(WearPolicy::Counted), Some(WearPolicy::Circular)]
            [random.random_range(0..3)],
        read_cache: random.random_range(0..4),
        write_cache: options.write_cache,
        write_buffer: options.write_buffer,
        write_buffer_changes: random.random_bool(0.3).then(|| random.random_range(1..40)),
        write_buffer_ticks: random.random_bool(0.3).then(|| random.random_range(1..4)),
        checkpoints: options.checkpoints.map(|_| random.random_range(1..=EVERY_MAX)),
        mapping_bytes: {
            let more = [0, 0, 8, 64, 256][random.random_range(0..5)];
            let grows = options.checkpoints.is_none() || ground.geometry().blocks >= SEVERAL;
            options.mapping_bytes + if grows { more } else { 0 }
        },
        folds: match random.random_range(0..4) {
            0 => Folds::Full,
            1 => Folds::Children(random.random_range(0..4)),
            _ => Folds::Share,
        },
        keep_pages: [None, Some(true), Some(false)][random.random_range(0..3)],
        leaves: options.leaves,
        // Nodes are of one size.
        fanout: options.fanout,
        arena_bytes: options.arena_bytes,
        journal_pages: options.journal_pages,
        commit_step: options.commit_step,
        shrink_percent: options.shrink_percent,
        journal_values: options.journal_values,
        verify: options.verify || random.random_range(0..4) == 0,
        ..Options::new(key_bytes, value_bytes)
    });
    // Not drawn: the draws behind it stay as they were.
    let eviction = eviction::<S>(&changed);
    let changed = Options { eviction, ..changed };
    let planned = plan::<S>(&ground.geometry(), &ground.capabilities_seen(), &changed, 0);
    match planned {
        Err(OpenError::BadOption { reason: BadOption::CheckpointTooLarge }) => {
            Options { mapping_bytes: options.mapping_bytes, ..changed }
        }
        // Changes that wait take room where their values stay in the journal.
        Err(OpenError::ChipTooSmall { .. }) => {
            Options { write_buffer: 0, write_buffer_changes: None, ..changed }
        }
        _ => changed,
    }
}

/// Returns changed options for one opening, of which half have RAM for twice as many nodes.
///
/// So the next opening has less than before.
pub(super) fn with_ram_for_nodes(options: Options) -> Options {
    let times = if options.read_cache.is_multiple_of(2) { 1 } else { 2 };
    Options { arena_bytes: options.arena_bytes.map(|bytes| bytes * times), ..options }
}
