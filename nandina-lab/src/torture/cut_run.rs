//! The run that is cut at every point: its chip, its settings and its changes.
//!
//! This file only describes the run.

use nandina::flash::profile::Ecc;
use nandina::flash::{BlockNumber, Geometry, Profile};
use nandina::{Index, LivenessTracking, OpenError, Options, RelocationMode, System, ram_needed};
use nandina_ftl::ftl::DISK;
use nandina_sim::{Chip, Faults, TINY};

use super::oracle::Change;
use super::{Ground, Hardships, Layered, fitted, suited};
use crate::layer::{Layer, Room};

/// A run of changes that contains everything that a tree does.
///
/// These are splits, growth in height, replaced values, nodes that become empty, garbage
/// collection, idle steps, and the removal of all records at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutRun {
    /// Records, at least 1.
    pub records: u32,
    /// Bytes of a value; larger ones make a higher tree of fewer records.
    pub value_bytes: usize,
    /// Uses the least RAM.
    ///
    /// That is: the fewest page buffers, validity by search, and pages moved alone.
    pub lean: bool,
    /// Blocks opened from one checkpoint to the next, 1 to 12.
    ///
    /// `None` for no checkpoints.
    pub checkpoints: Option<u32>,
    /// The hardships of the run. A swarm draws from these as well.
    pub hardships: Hardships,
}

/// Blocks that an index takes for its checkpoints.
///
/// One of the four is needed only when the checkpoints move to another block: with three, garbage
/// is collected as early as in a run without checkpoints.
const CHECKPOINT_BLOCKS: u32 = 3;

/// Blocks that an index with a journal keeps free beside, for the commit of a mount.
const SETTLED_BLOCKS: u32 = 2;

/// Blocks less in a large run where a leaf has nearly the whole page; a small one has one less.
const LARGE_LEAVES_BLOCKS: u32 = 2;

/// Blocks of the chip for leaves alone: so few that some must be collected.
const LEAVES_BLOCKS: u32 = 7;

/// The chip of a run with narrow pages, most of whose blocks are bad.
///
/// So its block table is large, and a checkpoint takes two blocks.
const NARROW: Geometry =
    Geometry { page_bytes: 256, spare_bytes: 64, pages_per_block: 4, blocks: 200 };

/// Bytes of a mapping table, and leaves in a directory, with which they are not more.
const NARROW_MAPPING_BYTES: usize = 64;
const NARROW_LEAVES: u32 = 60;

/// Blocks of that chip that are good beside those of the other, for the larger checkpoints.
const NARROW_BLOCKS: u32 = 4;

/// Passes that write a record of each leaf in order, above a hybrid FTL.
const IN_ORDER: u32 = 2;

/// Children of a node where values are in the journal, or changes are programmed one by one.
const SMALL_FANOUT: u16 = 4;

/// Bytes of a page of the chip that programs parts of pages, and pages of a block.
///
/// There a commit, at most a sixteenth of the chip, has more nodes than one change makes dirty.
const OVERWRITE_PAGES: (u32, u32) = (192, 8);

/// Changes of a run there for each record, beside those that fill and empty the tree.
///
/// They change one in so many records again and again, so that cold nodes must move.
const OVERWRITE_AGAIN: Again = Again { rounds: 3, one_in: 4 };

/// Pages of the journal between two commits there: a page has room for many changes.
const OVERWRITE_JOURNAL: u32 = 1;

/// Such changes of a run whose values share pages of the journal, a small one and a large one.
///
/// So few pages are written that garbage is collected late. In a large run, most of the chip is
/// written in fewer rounds.
const SHARING_AGAIN: [Again; 2] = [Again { rounds: 6, one_in: 4 }, Again { rounds: 3, one_in: 2 }];

/// How often and which records a run changes again.
#[derive(Clone, Copy)]
struct Again {
    /// Changes for each record.
    rounds: u32,
    /// One in so many records is changed.
    one_in: u32,
}

/// Runs with more records than this are large: their chips have more blocks.
const SMALL_RECORDS: u32 = 50;

/// Records of a leaf of the smallest run, whose keys ascend.
const LEAF_RECORDS: usize = 6;

impl CutRun {
    /// The smallest run that contains all of this on the chip for exhaustive tests.
    pub const SMALL: Self = Self {
        records: 36,
        value_bytes: 60,
        lean: false,
        checkpoints: None,
        hardships: Hardships::NONE,
    };

    /// The same on narrow pages, of which each holds as many of its records.
    pub const NARROW: Self = Self { value_bytes: 28, ..Self::SMALL };

    /// A run on pages that are programmed in parts, with small nodes, of which a page holds many.
    pub const OVERWRITE: Self = Self { records: 60, value_bytes: 24, ..Self::SMALL };

    /// A run with higher trees and more collections.
    pub const LARGE: Self = Self {
        records: 168,
        value_bytes: 12,
        lean: false,
        checkpoints: None,
        hardships: Hardships::NONE,
    };

    /// The changes. Above a hybrid FTL some pages are written in order, so that it merges these.
    pub(super) fn changes<S: System>(&self, layer: Option<Layer>) -> Vec<Change> {
        let spread = |turn: u32| turn * 37 % self.records.max(1);
        let puts = (0..self.records).map(|turn| Change::Put(spread(turn), 1));
        // With a write buffer, and on a chip with a block more, garbage is collected later.
        let Hardships { buffered, changed, overwrite, journal_values, .. } = self.hardships;
        // Leaves alone leave little to collect.
        let later = buffered || changed || !S::DESCRIPTION.has_inner_nodes();
        // Values that share pages, in a write buffer or where collection gathers them on a large
        // chip. With other options at each opening there is more garbage.
        let large = self.is_large();
        let shares_pages = S::DESCRIPTION.has_arena()
            && journal_values
            && !changed
            && (buffered || (self.lean && large));
        let hot = match (overwrite, shares_pages) {
            (true, _) => Some(OVERWRITE_AGAIN),
            (false, true) => Some(SHARING_AGAIN[usize::from(large)]),
            (false, false) => None,
        };
        let (count, step) = match hot {
            Some(Again { rounds, .. }) => (rounds * self.records, 1),
            None if later => (2 * self.records, 1),
            None => (self.records.div_ceil(3), 3),
        };
        let key = |turn: u32| match hot {
            Some(Again { one_in, .. }) => turn % (self.records / one_in).max(1),
            None => spread(turn * step),
        };
        let again = (0..count).map(|turn| Change::Put(key(turn), 2 + turn / self.records));
        let is_in_order = layer.is_some_and(|layer| layer.is_hybrid()) && S::DESCRIPTION.replaces();
        let more = if is_in_order { self.records / 3 } else { 0 };
        let all = self.records + more;
        let more = (self.records..all).map(|key| Change::Put(key, 1));
        let passes = if is_in_order { IN_ORDER } else { 0 };
        let each =
            |pass| (0..all).step_by(LEAF_RECORDS).map(move |key| Change::Put(key, 90 + pass));
        let in_order = (0..passes).flat_map(each);
        let removals = (0..all).map(Change::Remove);
        puts.chain(again).chain(more).chain(in_order).chain(removals).collect()
    }

    /// Whether the chip has the blocks of a large run.
    const fn is_large(&self) -> bool {
        self.records > SMALL_RECORDS
    }

    pub(super) fn options<S: System>(&self) -> Options {
        let checkpoints = self.checkpoints;
        let write_buffer = usize::from(self.hardships.buffered);
        let Hardships { journal_values, overwrite, .. } = self.hardships;
        let options = Options::new(4, self.value_bytes).journal_values(journal_values);
        let mut options = Options { checkpoints, write_buffer, ..options };
        if journal_values || overwrite {
            // Records or pointers are small: so the tree has several levels.
            options.fanout = Some(SMALL_FANOUT);
        }
        if overwrite {
            options.journal_pages = Some(OVERWRITE_JOURNAL);
        }
        if self.hardships.narrow {
            options.mapping_bytes = NARROW_MAPPING_BYTES;
            options.leaves = S::DESCRIPTION.has_directory().then_some(NARROW_LEAVES);
        }
        fitted::<S>(if self.lean {
            Options {
                page_buffers: Some(2),
                moves: RelocationMode::Alone,
                validity: LivenessTracking::Searched,
                ..options
            }
        } else {
            options
        })
    }

    /// Returns why the run cannot begin with system `S`: its sizes are the user's.
    pub fn refusal<S: System>(&self, mut ground: impl Ground) -> Option<String> {
        let options = self.options::<S>();
        if let Some(missing) = ground.layer().and_then(|_| S::DESCRIPTION.needs.missing(&DISK)) {
            return Some(missing.to_string());
        }
        let mut ram = vec![0; ram_needed::<S>(&ground.geometry(), &options)];
        let mut room = Room::default();
        let mut begun = match ground.begin(&mut room, true) {
            Ok(begun) => begun,
            Err(error) => return Some(error.to_string()),
        };
        match Index::<_, S>::format(begun.bus(), &options, &mut ram) {
            Err(
                error @ (OpenError::BadOption { .. }
                | OpenError::RecordTooLarge { .. }
                | OpenError::ChipTooSmall { .. }),
            ) => Some(error.to_string()),
            _ => None,
        }
    }

    /// The FTL for the run, on a chip that has as many blocks as it needs.
    pub fn layered<S: System>(&self, layer: Layer, seed: u64) -> Layered {
        let logical_pages = self.geometry::<S>().pages();
        let tiny = layer.suited(TINY);
        let blocks = layer.blocks_needed(&tiny, logical_pages);
        let mut chip = Chip::with_seed(tiny.with_blocks(blocks), seed);
        chip.set_faults(self.faults());
        Layered::new(chip, layer, logical_pages)
    }

    /// The chip for the run.
    pub fn chip<S: System>(&self, seed: u64) -> Chip {
        let mut geometry = self.geometry::<S>();
        if !S::DESCRIPTION.has_inner_nodes() {
            geometry.blocks = LEAVES_BLOCKS + u32::from(self.hardships.changed);
            if self.checkpoints.is_some() {
                geometry.blocks += CHECKPOINT_BLOCKS;
            }
        }
        if S::DESCRIPTION.replays() {
            geometry.blocks += SETTLED_BLOCKS;
        }
        let mut profile = suited::<S>(Profile { geometry, ..TINY });
        if self.hardships.overwrite {
            let capabilities = &mut profile.capabilities;
            (capabilities.overwrite, capabilities.in_order) = (true, false);
            capabilities.programs_per_page = None;
            // With an ECC a part that is torn may make its page fail.
            profile.ecc = Ecc::NONE;
            (profile.geometry.page_bytes, profile.geometry.pages_per_block) = OVERWRITE_PAGES;
        }
        let mut bad = 0..0;
        if self.hardships.narrow {
            bad = geometry.blocks + NARROW_BLOCKS..NARROW.blocks;
            profile.geometry = NARROW;
            profile.capabilities.bad_blocks_per_mille = u8::MAX;
        }
        let mut chip = Chip::with_seed(profile, seed);
        chip.set_faults(self.faults());
        bad.for_each(|block| chip.spoil_block(BlockNumber(block)));
        chip
    }

    /// The geometry that the index sees.
    fn geometry<S: System>(&self) -> Geometry {
        let blocks = if self.lean { 9 } else { 10 };
        let blocks = if self.is_large() { blocks } else { 8 };
        let blocks = blocks + if self.checkpoints.is_some() { CHECKPOINT_BLOCKS } else { 0 };
        // Other options may allow fewer valid pages.
        let blocks = blocks + u32::from(self.hardships.changed);
        let packs =
            S::NODES.is_some_and(|nodes| nodes.sharing.packs()) && self.checkpoints.is_none();
        let blocks = match (packs, self.is_large()) {
            (false, _) => blocks,
            (true, true) => blocks - LARGE_LEAVES_BLOCKS,
            (true, false) => blocks - 1,
        };
        Geometry { blocks, ..TINY.geometry }
    }

    fn faults(&self) -> Faults {
        let unstable_pages = u32::from(self.hardships.unstable);
        Faults { unstable_pages, ..Faults::NONE }
    }
}
