//! The options that a system has, as its description says: `OptionsFor` offers no others.

use nandina::flash::profile::SLC;
use nandina::flash::{Geometry, Profile};
use nandina::store::Description;
use nandina::{
    BadOption, GcPolicy, Index, OpenError, Options, OptionsFor, System, WearPolicy, plan,
};
use nandina_sim::Chip;

use crate::harness::*;
use crate::mended::fill;

/// An option: its name, whether a system has it, and settings with it.
type Choice = (&'static str, fn(&Description) -> bool, fn(Options) -> Options);

/// The options that a system refuses which does not have them.
const REFUSED: [Choice; 6] = [
    ("read_cache", Description::has_read_cache, |options| options.read_cache(2)),
    ("write_cache", Description::has_write_cache, |options| options.write_cache(2)),
    ("write_buffer", Description::has_write_buffer, |options| options.write_buffer(1)),
    ("write_buffer_changes", Description::has_write_buffer, |options| {
        options.write_buffer(1).write_buffer_changes(3)
    }),
    ("write_buffer_ticks", Description::has_write_buffer, |options| {
        options.write_buffer(1).write_buffer_ticks(3)
    }),
    ("checkpoints", Description::has_checkpoints, |options| options.checkpoints(4)),
];

/// The options that mean nothing to a system which does not have them.
const UNUSED: [Choice; 10] = [
    ("wear", Description::collects, |options| options.wear(WearPolicy::Counted)),
    ("cost_benefit", Description::collects, |options| options.victims(GcPolicy::CostBenefit)),
    ("mapping_bytes", Description::has_mapping_table, |options| options.mapping_bytes(512)),
    ("leaves", |system| system.has_directory(), |options| options.leaves(50)),
    ("fanout", |system| system.has_arena(), |options| options.fanout(16)),
    ("arena_bytes", |system| system.has_arena(), |options| options.arena_bytes(16_384)),
    ("journal_pages", |system| system.has_arena(), |options| options.journal_pages(20)),
    ("commit_step", |system| system.has_arena(), |options| options.commit_step(1)),
    ("shrink_percent", |system| system.has_arena(), |options| options.shrink_percent(25)),
    ("journal_values", |system| system.has_arena(), |options| options.journal_values(true)),
];

struct Refused;

impl Check for Refused {
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SLC).suited::<S>();
        let (geometry, capabilities) = (case.profile.geometry, case.profile.capabilities);
        for (choices, refuses) in [(&REFUSED[..], true), (&UNUSED[..], false)] {
            for &(name, has, set) in choices {
                case.options = set(Options::new(KEY_BYTES, VALUE_BYTES));
                let planned = plan::<S>(&geometry, &capabilities, &case.options, 100);
                let is_refused = match planned {
                    Ok(_) => false,
                    Err(OpenError::BadOption { reason: BadOption::CheckpointTooLarge }) => {
                        return Err(format!("{name} has no room"));
                    }
                    Err(OpenError::BadOption { .. }) => true,
                    Err(error) => return Err(text(error)),
                };
                if is_refused != (refuses && !has(&S::DESCRIPTION)) {
                    return Err(format!("{name}: refused {is_refused}"));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn a_system_refuses_no_option_that_its_description_has() {
    for_every_system(&Refused);
}

struct Typed;

impl Check for Typed {
    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SLC).suited::<S>();
        let options =
            OptionsFor::<S>::new(KEY_BYTES, VALUE_BYTES).page_buffers(4).verify().checked();
        let (mut chip, mut ram) = (Chip::new(case.profile), vec![0; 1 << 20]);
        let mut index =
            nandina::Index::<_, S>::format(&mut chip, &options, &mut ram).map_err(text)?;
        index.insert(&key(1), &value(1, 0)).map_err(text)?;
        drop(index);
        let plain = Options::new(KEY_BYTES, VALUE_BYTES).page_buffers(4).verify();
        if *options != plain {
            return Err(format!("{options:?}, and {plain:?}"));
        }
        let mut index = nandina::Index::<_, S>::open(&mut chip, &plain, &mut ram).map_err(text)?;
        match index.get(&key(1)).map_err(text)? {
            Some(found) if found == value(1, 0) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }
}

#[test]
fn options_for_a_system_are_options() {
    for_every_system(&Typed);
}

#[test]
#[should_panic(expected = "checkpoints are for blocks whose erases are counted")]
fn options_out_of_their_range_are_not_checked() {
    let wear = std::hint::black_box(WearPolicy::Circular);
    let _ = OptionsFor::<nandina::store::Mu>::new(4, 8).checkpoints(4).wear(wear).checked();
}

/// Replaces every record, in an order that leaves hardly any neighbours, and removes all.
fn replace_and_remove<S: System>(index: &mut Index<'_, &mut Chip, S>, records: u32) -> Outcome {
    for turn in 0..records {
        let number = (u64::from(turn) * 7_919 % u64::from(records)) as u32;
        let replaced = index.insert(&key(number), &value(number, 1));
        replaced.map_err(|error| format!("replacing {number} of {records}: {error}"))?;
    }
    for number in 0..records {
        let removed = index.remove(&key(number));
        removed.map_err(|error| format!("removing {number} of {records}: {error}"))?;
    }
    Ok(())
}

/// Fills an index, and opens it with settings with which a checkpoint takes more blocks.
struct LargerCheckpoints;

impl Check for LargerCheckpoints {
    fn concerns(&self, system: &Description) -> bool {
        system.has_mapping_table()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut changed = 0;
        for (pages_per_block, blocks) in [(4, 32), (8, 24), (16, 20), (32, 16)] {
            for every in [1, 4, 8] {
                let geometry = Geometry { pages_per_block, blocks, ..LONG.geometry };
                let mut case = Case::new(Profile { geometry, ..LONG });
                case.options.checkpoints = Some(every);
                let mut case = case.suited::<S>();
                let mut chip = Chip::new(case.profile);
                let mut ram = case.ram::<S>();
                let records = fill::<S>(&mut chip, &case.options, &mut ram)?;
                case.options.mapping_bytes *= 4;
                let mut ram = case.ram::<S>();
                let opened = Index::<_, S>::open(&mut chip, &case.options, &mut ram);
                let Ok(mut index) = opened else { continue };
                let before = index.flash().counters().erases;
                for _ in 0..20 {
                    index.gc_step(2_000).map_err(text)?;
                }
                let erases = index.flash().counters().erases - before;
                if erases > u64::from(2 * blocks) {
                    return Err(format!("{erases} erases in idle steps"));
                }
                replace_and_remove(&mut index, records)?;
                changed += u32::from(records > 20 && index.is_empty());
            }
        }
        println!("{}: {changed} indexes", S::DESCRIPTION.key);
        if changed > 6 { Ok(()) } else { Err(format!("{changed} indexes")) }
    }
}

/// The same with a larger directory.
struct LargerDirectory;

impl Check for LargerDirectory {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints && system.has_directory()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut changed = 0;
        for leaves in [440, 470, 490, 503] {
            let geometry = Geometry { pages_per_block: 8, blocks: 74, ..LONG.geometry };
            let mut case = Case::new(Profile { geometry, ..LONG });
            case.profile.capabilities.bad_blocks_per_mille = 0;
            case.options.checkpoints = Some(2);
            case.options.leaves = Some(leaves);
            let mut chip = Chip::new(suited::<S>(case.profile));
            let mut ram = case.ram::<S>();
            let records = fill::<S>(&mut chip, &case.options, &mut ram)?;
            case.options.leaves = None;
            let mut ram = case.ram::<S>();
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            let done = replace_and_remove(&mut index, records);
            done.map_err(|what| format!("{leaves} leaves: {what}"))?;
            changed += u32::from(index.is_empty());
        }
        if changed == 4 { Ok(()) } else { Err(format!("{changed} indexes")) }
    }
}

#[test]
fn a_full_index_that_is_opened_with_larger_checkpoints_replaces_and_removes() {
    for_one_system_in(3, &LargerCheckpoints);
    for_every_system(&LargerDirectory);
}

/// A full index is opened with more or less RAM for its nodes.
struct OtherArenas;

impl Check for OtherArenas {
    fn concerns(&self, system: &Description) -> bool {
        system.has_arena()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut changed = 0;
        for (before, after) in [(12, 32), (32, 12), (35, 11)] {
            let geometry = Geometry { pages_per_block: 8, blocks: 64, ..LONG.geometry };
            let mut case = Case::new(Profile { geometry, ..LONG });
            // A node takes a page, and 16 bytes more in RAM.
            let arena = |slots: usize| Some(slots * (geometry.page_bytes as usize + 16));
            case.options.arena_bytes = arena(before);
            let mut chip = Chip::new(suited::<S>(case.profile));
            let mut ram = case.ram::<S>();
            let records = fill::<S>(&mut chip, &case.options, &mut ram)?;
            case.options.arena_bytes = arena(after);
            let mut ram = case.ram::<S>();
            let opened = Index::<_, S>::open(&mut chip, &case.options, &mut ram);
            let mut index = opened.map_err(text)?;
            let done = replace_and_remove(&mut index, records);
            done.map_err(|what| format!("{before} to {after} nodes: {what}"))?;
            changed += u32::from(index.is_empty());
        }
        if changed == 3 { Ok(()) } else { Err(format!("{changed} indexes")) }
    }
}

#[test]
fn a_full_index_that_is_opened_with_other_arenas_replaces_and_removes() {
    for_every_system(&OtherArenas);
}
