//! Promises of single calls that were broken once.
//!
//! Changes that the write buffer accepted are applied, replacing needs no page, a lookup reads no
//! more pages than the tree is high, and `plan` refuses what `format` refuses.

use nandina::store::Description;
use nandina::{
    Eviction, GcPolicy, Index, OpenError, Options, RelocationMode, System, WriteError, plan,
    ram_needed,
};
use nandina_sim::{Chip, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// A key of `key_bytes` that begins with those of `number`.
fn long_key(number: u32, key_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; key_bytes];
    bytes[..4].copy_from_slice(&key(number));
    bytes
}

/// A chip with this many pages for records of these sizes.
fn case<S: System>(
    (page_bytes, pages_per_block, blocks): (u32, u32, u32),
    (key_bytes, value_bytes): (usize, usize),
) -> Case {
    let mut case = Case::new(TINY);
    case.profile.geometry.page_bytes = page_bytes;
    case.profile.geometry.spare_bytes = 40;
    case.profile.geometry.pages_per_block = pages_per_block;
    case.profile.geometry.blocks = blocks;
    case.options = Options { write_buffer: 1, ..Options::new(key_bytes, value_bytes) };
    case.suited::<S>()
}

/// Fills an index with a write buffer, repeatedly, after removing some records.
///
/// Only a new record may be refused.
struct TakenIsApplied;

/// The work of one life of an index.
struct Work {
    turns: u32,
    /// Keys are below this number.
    keys: u32,
    /// Whether they are inserted in descending order, and not at random.
    descends: bool,
    /// Removals among 100 changes.
    removals: u32,
}

impl TakenIsApplied {
    /// Runs a life of each seed. Returns how many new records were refused.
    fn lives<S: System>(
        case: &Case,
        work: &Work,
        seeds: impl IntoIterator<Item = u64>,
    ) -> Result<u32, String> {
        let refused = seeds.into_iter().map(|seed| {
            Self::life::<S>(case, work, seed).map_err(|what| {
                let (geometry, Options { mapping_bytes, victims, .. }) =
                    (case.profile.geometry, case.options);
                format!("{geometry:?}, table of {mapping_bytes}, {victims:?}, seed {seed}: {what}")
            })
        });
        refused.sum()
    }

    fn life<S: System>(case: &Case, work: &Work, seed: u64) -> Result<u32, String> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (key_bytes, value_bytes) = (case.options.key_bytes, case.options.value_bytes);
        with_index::<S, _>(case, |index| {
            let (mut model, mut refused) = (Model::new(), 0);
            for turn in 0..work.turns {
                let number = random.random_range(0..work.keys);
                let removes = random.random_range(0..100) < work.removals;
                let key = long_key(
                    if work.descends && !removes { (u32::MAX - turn) % work.keys } else { number },
                    key_bytes,
                );
                let value = vec![turn as u8; value_bytes];
                if removes {
                    index.remove(&key).map_err(text)?;
                    model.remove(&key);
                    continue;
                }
                match index.insert(&key, &value) {
                    Ok(_) => drop(model.insert(key, value)),
                    Err(WriteError::Full { .. } | WriteError::TooHigh { .. })
                        if !model.contains_key(&key) =>
                    {
                        refused += 1;
                    }
                    Err(error) => {
                        return Err(format!("turn {turn}, replacing: {error}"));
                    }
                }
                if turn % 16 == 0 {
                    index.flush().map_err(|error| {
                        format!("turn {turn}, flush: {error}, {:?}", index.statistics())
                    })?;
                    compare(index, &model)?;
                }
            }
            index.flush().map_err(text)?;
            compare(index, &model)?;
            Ok(refused)
        })
    }
}

impl Check for TakenIsApplied {
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut refused = 0;
        for (chip, records) in
            [((256, 4, 10), (32, 3)), ((264, 8, 12), (8, 16)), ((512, 4, 16), (4, 12))]
        {
            for (buffers, mapping_bytes) in [(None, 16), (Some(4), 64)] {
                let mut case = case::<S>(chip, records);
                case.options.page_buffers = buffers;
                if S::DESCRIPTION.has_mapping_table() {
                    case.options.mapping_bytes = mapping_bytes;
                }
                let work = Work { turns: 3_000, keys: 1_200, descends: false, removals: 15 };
                refused += TakenIsApplied::lives::<S>(&case, &work, Share::one_in(2).of(0..4))?;
            }
        }
        if refused > 0 { Ok(()) } else { Err("no chip was ever full".into()) }
    }
}

#[test]
fn what_the_write_buffer_took_is_applied_and_replacing_is_not_refused() {
    for_one_system_in(5, &TakenIsApplied);
}

/// The same where the full write buffer writes one leaf, and not all.
///
/// An upsert that was not buffered was made while others were pending, and took the tree's last
/// level from them.
struct EvictedIsApplied;

impl Check for EvictedIsApplied {
    fn concerns(&self, system: &Description) -> bool {
        system.has_evictions()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for (eviction, removals) in
            [(Eviction::Ibsf, 20), (Eviction::Ibsf, 40), (Eviction::Mb, 20), (Eviction::Mb, 40)]
        {
            let mut case = case::<S>((256, 4, 40), (4, 30));
            case.options.eviction = eviction;
            case.options.write_buffer_changes = Some(4);
            let work = Work { turns: 600, keys: 4_000, descends: false, removals };
            TakenIsApplied::lives::<S>(&case, &work, 0..8)?;
        }
        Ok(())
    }
}

#[test]
fn what_an_eviction_leaves_in_the_write_buffer_is_applied() {
    for_every_system(&EvictedIsApplied);
}

/// The same where merges leave fewer inner nodes than there were when a change was buffered.
///
/// `vm` keeps places of its mapping table for inner nodes, if there are enough for all of them. So
/// a merge may let it keep more of them, and each takes a page from the limit.
struct TakenBeforeAMerge;

impl Check for TakenBeforeAMerge {
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut refused = 0;
        for mapping_bytes in [16, 32, 48] {
            let mut case = case::<S>((256, 4, 13), (32, 0));
            case.options.write_buffer = 2;
            case.options.write_buffer_changes = Some(8);
            if S::DESCRIPTION.has_mapping_table() {
                case.options.mapping_bytes = mapping_bytes;
            }
            let work = Work { turns: 1_000, keys: 368, descends: true, removals: 30 };
            refused += TakenIsApplied::lives::<S>(&case, &work, 0..4)?;
        }
        if refused > 0 { Ok(()) } else { Err("no chip was ever full".into()) }
    }
}

#[test]
fn a_buffered_change_is_applied_though_merges_leave_fewer_inner_nodes() {
    for_one_system_in(4, &TakenBeforeAMerge);
}

/// The same in small trees of many levels, in which a change splits most of them.
///
/// A split makes `vm` map nodes, whose logical addresses must be freed again to make room.
struct TakenByAHighTree;

impl Check for TakenByAHighTree {
    fn concerns(&self, system: &Description) -> bool {
        system.has_mapping_table()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut refused = 0;
        for (chip, records) in [((192, 16, 8), (32, 33)), ((128, 13, 10), (32, 4))] {
            let mut case = case::<S>(chip, records);
            case.options.mapping_bytes = 100;
            let work = Work { turns: 64, keys: 1_200, descends: false, removals: 5 };
            refused += TakenIsApplied::lives::<S>(&case, &work, 0..40)?;
        }
        if refused > 0 { Ok(()) } else { Err("no chip was ever full".into()) }
    }
}

#[test]
fn a_buffered_change_is_applied_though_it_splits_most_levels() {
    for_one_system_in(2, &TakenByAHighTree);
}

/// The same where collection maps the parents of the leaves that it moves.
///
/// So there are always some logical addresses of inner nodes, whose places are kept for them.
struct TakenAmongMappedParents;

impl Check for TakenAmongMappedParents {
    fn concerns(&self, system: &Description) -> bool {
        system.has_mapping_table()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut refused = 0;
        for victims in [GcPolicy::CostBenefit, GcPolicy::Fewest] {
            let mut case = case::<S>((192, 32, 37), (16, 33));
            case.profile.geometry.spare_bytes = 0;
            case.options.mapping_bytes = 1_696;
            case.options.moves = RelocationMode::Alone;
            case.options.write_buffer = 2;
            case.options.victims = victims;
            let work = Work { turns: 1_000, keys: 3_556, descends: false, removals: 20 };
            refused += TakenIsApplied::lives::<S>(&case, &work, [17, 76, 90])?;
        }
        if refused > 0 { Ok(()) } else { Err("no chip was ever full".into()) }
    }
}

#[test]
fn a_buffered_change_is_applied_though_collection_maps_parents() {
    for_one_system_in(2, &TakenAmongMappedParents);
}

/// A high tree and few page buffers.
///
/// The bound key of a node lies in a parent that was evicted from its buffer.
struct LookupsOfHighTrees;

impl Check for LookupsOfHighTrees {
    fn concerns(&self, system: &Description) -> bool {
        // Of a block, parts are read.
        !system.has_leaf_blocks()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = case::<S>((256, 16, 128), (58, 4));
        case.options.write_buffer = 0;
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        with_index::<S, _>(&case, |index| {
            for _ in 0..700 {
                let key = long_key(random.random_range(0..1_000_000), 58);
                match index.insert(&key, &[1; 4]) {
                    Ok(_) => {}
                    Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => break,
                    Err(error) => return Err(text(error)),
                }
                let height = index.statistics().height;
                for _ in 0..4 {
                    let before = index.flash().counters().reads;
                    let key = long_key(random.random_range(0..1_000_000), 58);
                    index.get(&key).map_err(text)?;
                    let reads = index.flash().counters().reads - before;
                    // A directory leads to the leaf itself.
                    let most = if S::DESCRIPTION.has_inner_nodes() { height } else { 1 };
                    if reads > most.into() {
                        return Err(format!("{reads} reads in a tree of height {height}"));
                    }
                }
            }
            let height = index.statistics().height;
            // Where a page holds a whole path, it has no room for such records. A directory is no
            // level.
            let few_levels = !S::DESCRIPTION.has_inner_nodes()
                || (S::DESCRIPTION.root_commits() && (nodes_of::<S>().path_pages)(9) <= 2);
            if height >= 6 || few_levels {
                Ok(())
            } else {
                Err(format!("the tree has only a height of {height}"))
            }
        })
    }
}

#[test]
fn a_lookup_reads_no_more_pages_than_the_tree_is_high() {
    for_every_system(&LookupsOfHighTrees);
}

/// Chips from two blocks up.
struct TooSmall;

impl Check for TooSmall {
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut refused = 0;
        for blocks in 2..14 {
            for (pages_per_block, bad) in [(4, 0), (8, 100), (4, 250)] {
                let mut case = case::<S>((512, pages_per_block, blocks), (4, 12));
                case.profile.capabilities.bad_blocks_per_mille = bad;
                let case = case.suited::<S>();
                let (geometry, capabilities) = (case.profile.geometry, case.profile.capabilities);
                let mut ram = vec![0; ram_needed::<S>(&geometry, &case.options)];
                let mut chip = Chip::new(case.profile);
                let formatted = Index::<_, S>::format(&mut chip, &case.options, &mut ram);
                let formats = match formatted {
                    Ok(_) => true,
                    Err(OpenError::ChipTooSmall { .. }) => false,
                    Err(error) => return Err(text(error)),
                };
                refused += u32::from(!formats);
                for records in [1, 10, 1_000_000] {
                    let planned = plan::<S>(&geometry, &capabilities, &case.options, records);
                    match planned {
                        Ok(_) if formats => {}
                        Err(OpenError::ChipTooSmall { .. }) if !formats => {}
                        other => {
                            return Err(format!("{records} records on {geometry:?}: {other:?}"));
                        }
                    }
                }
            }
        }
        // For a system that replaces in place, the smallest of these is large enough.
        if refused > 0 || !S::DESCRIPTION.collects() {
            Ok(())
        } else {
            Err("none too small".into())
        }
    }
}

#[test]
fn plan_refuses_the_chips_that_format_refuses() {
    for_every_system(&TooSmall);
}
