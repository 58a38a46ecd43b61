//! The reads of a mount from a checkpoint: few, however large the chip is.
//!
//! Where it compares the tree of the checkpoint with the current one, it finds exactly what
//! changed.

use nandina::flash::profile::{NOR, SLC};
use nandina::store::Description;
use nandina::{Index, RelocationMode, System, WriteError};
use nandina_sim::{Chip, ChipError, Cut};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::checkpoints::{case, recover};
use crate::harness::*;

/// The most reads of a mount from a checkpoint on 128 MiB of 2 KiB pages, after a clean end.
const READS_MAX: u64 = 300;

struct Reads;

impl Check for Reads {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut reads = Vec::new();
        for blocks in [256, 1024] {
            for checkpoints in [None, Some(4), Some(1)] {
                let mut case = Case::new(SLC.with_blocks(blocks));
                case.options.checkpoints = checkpoints;
                let case = case.suited::<S>();
                let mut chip = Chip::new(case.profile);
                let mut ram = case.ram::<S>();
                let mut index =
                    Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
                for number in 0..blocks * 100 {
                    let number = number.wrapping_mul(0x9E37_79B1);
                    index.insert(&key(number), &value(number, 0)).map_err(text)?;
                }
                let found = index.statistics();
                if checkpoints == Some(1) {
                    index.close();
                } else {
                    end(index);
                }
                let before = chip.counters().reads;
                let mut index =
                    Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                let statistics = index.statistics();
                reads.push(index.flash().counters().reads - before);
                // A commit at the end of a session, or of a mount, packs nodes into other pages.
                let pages = if S::DESCRIPTION.replays() { 0 } else { found.valid_pages };
                let same_pages = pages == 0 || pages == statistics.valid_pages;
                if statistics.from_checkpoint != checkpoints.is_some()
                    || !same_pages
                    || (found.records, found.inner_nodes)
                        != (statistics.records, statistics.inner_nodes)
                {
                    return Err(format!("before {found:?}, after {statistics:?}"));
                }
                let mut violations = 0;
                index.check(|_| violations += 1).map_err(text)?;
                if violations > 0 {
                    return Err(format!("{violations} violations"));
                }
            }
        }
        println!("{}: {reads:?} reads", S::DESCRIPTION.key);
        let [few_blocks, few, few_closed, many_blocks, many, closed] = reads[..] else {
            unreachable!()
        };
        let holds = few < few_blocks
            && 4 * many < many_blocks
            && many < 4 * few
            && closed < 4 * few_closed
            && closed <= READS_MAX;
        if holds { Ok(()) } else { Err(format!("{reads:?} reads")) }
    }
}

/// The most reads of a mount from a checkpoint on 1 GiB of 2 KiB pages, after a clean end.
const READS_OF_A_GIBIBYTE_MAX: u64 = 1100;

/// The least records that make the tree a few levels high.
const FEW_RECORDS: u32 = 20_000;

struct Gibibyte;

impl Check for Gibibyte {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let profile = SLC.with_blocks(8192);
        assert_eq!(profile.geometry.pages() / 1024 * (profile.geometry.page_bytes / 1024), 1 << 10);
        let mut case = Case::new(profile);
        case.options.checkpoints = Some(4);
        let case = case.suited::<S>();
        let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in 0..FEW_RECORDS {
            let number = number.wrapping_mul(0x9E37_79B1);
            index.insert(&key(number), &value(number, 0)).map_err(text)?;
        }
        index.close();
        let before = chip.counters().reads;
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        let reads = index.flash().counters().reads - before;
        println!("{}: {reads} reads", S::DESCRIPTION.key);
        let statistics = index.statistics();
        if !statistics.from_checkpoint || statistics.records != FEW_RECORDS {
            return Err(format!("{statistics:?}"));
        }
        if index.get(&key(0)).map_err(text)?.is_none() {
            return Err("a record is lost".to_owned());
        }
        if reads <= READS_OF_A_GIBIBYTE_MAX { Ok(()) } else { Err(format!("{reads} reads")) }
    }
}

/// Of a NOR chip of 16 MiB the block table alone takes 150 pages, and a sector has 16.
struct ManyBlocks;

impl Check for ManyBlocks {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut reads = Vec::new();
        for checkpoints in [None, Some(4)] {
            let mut case = Case::new(NOR.with_blocks(4096));
            case.options.checkpoints = checkpoints;
            let case = case.suited::<S>();
            let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
            let mut index =
                Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
            // A page of this size that holds a whole path has room for few levels.
            let keys = if nodes_of::<S>().sharing.shares() { 60 } else { 20_000 };
            for turn in 0..20_000u32 {
                let number = (turn % keys).wrapping_mul(0x9E37_79B1);
                index.insert(&key(number), &value(number, turn)).map_err(text)?;
            }
            end(index);
            let before = chip.counters().reads;
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            reads.push(index.flash().counters().reads - before);
            if index.statistics().from_checkpoint != checkpoints.is_some() {
                return Err(format!("{checkpoints:?}: {:?}", index.statistics()));
            }
            let mut violations = 0;
            index.check(|_| violations += 1).map_err(text)?;
            if violations > 0 {
                return Err(format!("{violations} violations"));
            }
        }
        println!("{}: {reads:?} reads", S::DESCRIPTION.key);
        if 2 * reads[1] < reads[0] { Ok(()) } else { Err(format!("{reads:?} reads")) }
    }
}

#[test]
fn a_mount_of_a_gibibyte_reads_little() {
    for_one_system_in(4, &Gibibyte);
}

#[test]
fn a_chip_of_many_small_blocks_has_checkpoints() {
    for_one_system_in(5, &ManyBlocks);
}

#[test]
fn a_mount_from_a_checkpoint_reads_little_however_large_the_chip() {
    for_one_system_in(8, &Reads);
}

struct Compared;

impl Check for Compared {
    fn concerns(&self, system: &Description) -> bool {
        system.root_commits()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let nodes = nodes_of::<S>();
        // Long keys make many inner nodes, so that few of them change between a checkpoint and a
        // cut; a page that holds a whole path needs room for its levels.
        let (page_bytes, key_bytes, records) = match (nodes.sharing.shares(), (nodes.path_pages)(9))
        {
            (true, 1 | 2) => (4096, 32, 20_000),
            (true, _) => (1024, 64, 4000),
            (false, _) => (512, 64, 2300),
        };
        let long = |number: u32| [&key(number)[..], &[7; 60]].concat()[..key_bytes].to_vec();
        for buffers in Share::one_in(3).of([None, Some(2), Some(8)]) {
            let buffers = buffers.map(|buffers| buffers.max(S::DESCRIPTION.buffers_min));
            let mut case = case(180, 4, RelocationMode::Together, buffers);
            case.profile.geometry.pages_per_block = 32;
            case.profile.geometry.page_bytes = page_bytes;
            case.options.key_bytes = key_bytes;
            let mut random = ChaCha8Rng::seed_from_u64(seed());
            let mut chip = Chip::with_seed(case.profile, seed());
            let mut ram = case.ram::<S>();
            let mut index =
                Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
            let mut model = Model::new();
            for number in (0..records).map(|number| number * 7919 % records) {
                index.insert(&long(number), &value(number, 0)).map_err(text)?;
                model.insert(long(number), value(number, 0).to_vec());
            }
            drop(index);
            let (mut compared, mut at_once) = (0, None);
            for session in 0..60u32 {
                let mut index =
                    Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                index.checkpoint().map_err(text)?;
                drop(index);
                if at_once.is_none() {
                    at_once = Some(reads_to_mount::<S>(&mut chip, &case, &mut ram)?.0);
                }
                let how = Cut::ALL[session as usize % Cut::ALL.len()];
                chip.cut_at(random.random_range(30..120), how);
                let mut cut = None;
                if let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
                    // Neighbours, so that whole nodes come and go.
                    let first = random.random_range(0..records);
                    for turn in 0..random.random_range(1..5) {
                        let key = long((first + turn) % records);
                        let new = (session % 3 > 0).then(|| value(first, session + 1).to_vec());
                        let result = match &new {
                            Some(value) => index.insert(&key, value).map(drop),
                            None => index.remove(&key).map(drop),
                        };
                        let apply = |model: &mut Model| match new {
                            Some(value) => drop(model.insert(key, value)),
                            None => drop(model.remove(&key)),
                        };
                        match result {
                            Ok(_) => apply(&mut model),
                            Err(WriteError::Device(ChipError::PowerLost)) => {
                                let mut next = model.clone();
                                apply(&mut next);
                                cut = Some(next);
                                break;
                            }
                            Err(error) => return Err(text(error)),
                        }
                    }
                }
                chip.restore_power();
                let (reads, inner_nodes) = reads_to_mount::<S>(&mut chip, &case, &mut ram)?;
                // A walk of the whole tree reads every inner node on top of what a mount reads at
                // once.
                compared += u32::from(reads < at_once.unwrap_or(0) + u64::from(inner_nodes));
                let at = |what| format!("{buffers:?}, session {session}: {what}");
                if !recover::<S>(&mut chip, &case, &mut ram, &mut model, cut).map_err(at)? {
                    return Err(at("no checkpoint".into()));
                }
            }
            println!("{}: {compared} of 60 mounts compared trees", S::DESCRIPTION.key);
            if compared < 30 {
                return Err(format!(
                    "{buffers:?}: {compared} mounts read fewer than all inner nodes"
                ));
            }
        }
        Ok(())
    }
}

/// Reads that a mount takes, and how many inner nodes there are.
fn reads_to_mount<S: System>(
    chip: &mut Chip,
    case: &Case,
    ram: &mut [u8],
) -> Result<(u64, u32), String> {
    let before = chip.counters().reads;
    let index = Index::<_, S>::open(chip, &case.options, ram).map_err(text)?;
    let reads = index.flash().counters().reads - before;
    Ok((reads, index.statistics().inner_nodes))
}

#[test]
fn a_mount_that_compares_two_trees_finds_what_changed() {
    for_one_system_in(2, &Compared);
}
