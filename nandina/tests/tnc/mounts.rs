//! Mounts: what they read after a cut anywhere, and mounts with less RAM than before.

use nandina::{OpenError, Options, Statistics};

use crate::*;

/// Chips of several blocks, where commits leave room for nodes that a mount writes.
const CHIP: Profile = Profile { geometry: Geometry { blocks: 60, ..LARGE.geometry }, ..LARGE };

/// Nodes for which there is much RAM.
const NODES: usize = 150;

/// The options with much RAM, and with so little that a mount has no room for all nodes.
fn shapes() -> [(Profile, Options, Options); 5] {
    let nodes = |options: Options, count: usize, bytes: usize| options.arena_bytes(count * bytes);
    let whole = OPTIONS.journal_pages(200);
    let small = whole.fanout(6);
    let slots = Profile { geometry: Geometry { blocks: 60, ..CHIP.geometry }, ..NOR };
    [
        (CHIP, nodes(small, NODES, 160), nodes(small, 22, 160)),
        (
            CHIP,
            nodes(small.journal_values(true), NODES, 120),
            nodes(small.journal_values(true), 22, 120),
        ),
        (CHIP, nodes(small.write_buffer(1), NODES, 160), nodes(small.write_buffer(1), 22, 160)),
        (slots, nodes(small, NODES, 160), nodes(small, 22, 160)),
        (SMALL_PAGES, nodes(whole.fanout(12), NODES, 320), nodes(whole.fanout(12), 14, 320)),
    ]
}

const SMALL_PAGES: Profile =
    Profile { geometry: Geometry { blocks: 120, pages_per_block: 16, ..TINY.geometry }, ..TINY };

/// Makes changes with much RAM, so that many nodes are dirty, and cuts the last one.
///
/// Returns the records that are durable for certain, and those with all changes since.
fn cut_session(
    chip: &mut Chip,
    (options, ram): (&Options, &mut [u8]),
    model: &mut Model,
    (numbers, count, keys): (&mut Numbers, u32, u32),
) -> Vec<Model> {
    let mut index = Tree::open(chip, options, ram).unwrap();
    let mut states = vec![model.clone()];
    for turn in 0..count {
        let change = change(numbers, keys);
        note(model, change);
        states.push(model.clone());
        if make(&mut index, change).is_err() {
            break;
        }
        if options.write_buffer == 0 || turn % 40 == 39 && index.flush().is_ok() {
            states.drain(..states.len() - 1);
        }
    }
    states
}

#[test]
fn a_mount_with_less_ram_loses_nothing() {
    for (at, (profile, much, little)) in shapes().into_iter().enumerate() {
        let (mut most, mut least) = (ram(&profile, &much), ram(&profile, &little));
        let (mut written, mut refused) = (0, 0);
        for seed in 0..4 {
            let mut chip = Chip::with_seed(profile, seed);
            chip.set_faults(Faults { unstable_pages: seed as u32 % 3, ..Faults::NONE });
            let (mut model, mut numbers) = (Model::new(), Numbers(seed));
            Tree::format(&mut chip, &much, &mut most).unwrap();
            cut_session(&mut chip, (&much, &mut most), &mut model, (&mut numbers, 400, 200));
            let what = format!("shape {at}, seed {seed}");
            let mut index = Tree::open(&mut chip, &much, &mut most).unwrap();
            model = content(&mut index);
            let cut = Cut::ALL[numbers.below(5) as usize];
            let mut whole = chip.clone();
            Tree::open(&mut whole, &much, &mut most).unwrap();
            let mount = whole.counters().operations() - chip.counters().operations();
            chip.cut_at(mount + 100 + u64::from(numbers.below(150)), cut);
            let states =
                cut_session(&mut chip, (&much, &mut most), &mut model, (&mut numbers, 400, 200));
            chip.restore_power();
            // Every operation of the mount is cut, and the next mount has the same state.
            let mut operation = 0;
            loop {
                let mut once = chip.clone();
                once.cut_at(operation, Cut::ALL[numbers.below(5) as usize]);
                match Tree::open(&mut once, &little, &mut least) {
                    Ok(_) => {}
                    Err(OpenError::Corrupt { .. }) => refused += 1,
                    Err(OpenError::Device(_)) => {}
                    Err(error) => panic!("{what}: {error}"),
                }
                let whole = once.has_power();
                written += u32::from(once.counters().programs > chip.counters().programs + 2);
                once.restore_power();
                let (options, ram) = match numbers.below(2) {
                    0 => (&little, &mut least[..]),
                    _ => (&much, &mut most[..]),
                };
                let mut index = Tree::open(&mut once, options, ram)
                    .unwrap_or_else(|error| panic!("{what}, cut at {operation}: {error}"));
                let mut model = content(&mut index);
                assert!(states.contains(&model), "{what}, cut at {operation}: another state");
                for _ in 0..8 {
                    let change = change(&mut numbers, 200);
                    make(&mut index, change).unwrap();
                    note(&mut model, change);
                }
                index.flush().unwrap();
                let mut index = Tree::open(&mut once, &little, &mut least).unwrap();
                expect_content(&mut index, &model, &what);
                if whole {
                    break;
                }
                operation += 1 + u64::from(numbers.below(17));
            }
        }
        assert!(written > 10, "shape {at}: nodes were written in {written} mounts");
        assert_eq!(refused, 0, "shape {at}");
    }
}

/// The reads of a mount are those of a survey, of the journal, and of the nodes that it changes.
#[test]
fn a_mount_reads_the_journal_and_as_many_nodes_as_may_be_dirty() {
    for (at, (profile, options, _)) in shapes().into_iter().enumerate() {
        let options = options.journal_pages(60);
        let mut ram = ram(&profile, &options);
        let mut chip = Chip::with_seed(profile, at as u64);
        let (mut model, mut numbers) = (Model::new(), Numbers(at as u64));
        Tree::format(&mut chip, &options, &mut ram).unwrap();
        cut_session(&mut chip, (&options, &mut ram), &mut model, (&mut numbers, 500, 300));
        let start = chip.clone();
        let (mut least_left, mut mounts) = (u64::MAX, 0);
        for operation in 0.. {
            let (mut chip, mut numbers) = (start.clone(), numbers.clone());
            chip.cut_at(operation, Cut::ALL[(operation % 5) as usize]);
            if let Ok(mut index) = Tree::open(&mut chip, &options, &mut ram) {
                for _ in 0..60 {
                    if make(&mut index, change(&mut numbers, 300)).is_err() {
                        break;
                    }
                }
            }
            let whole = chip.has_power();
            chip.restore_power();
            let before = chip.counters().reads;
            let index = Tree::open(&mut chip, &options, &mut ram).unwrap();
            let statistics = index.statistics();
            let reads = chip.counters().reads - before;
            let most = reads_max(&profile.geometry, &options, &statistics);
            assert!(reads <= most, "shape {at}, {operation}: {reads} reads of {most}");
            least_left = least_left.min(most - reads);
            mounts += 1;
            if whole {
                break;
            }
        }
        println!("shape {at}: {mounts} mounts, at least {least_left} reads fewer than allowed");
        assert!(mounts > 100, "shape {at}: {mounts} mounts");
    }
}

/// The most reads of a mount: the journal, as many nodes as may be dirty, a path, and the survey.
fn reads_max(geometry: &Geometry, options: &Options, statistics: &Statistics) -> u64 {
    let Geometry { blocks, pages_per_block, .. } = *geometry;
    let journal = options.journal_pages.unwrap();
    let dirty = NODES as u32;
    // Blocks of the journal, and of nodes that steps wrote ahead.
    let since = journal.div_ceil(pages_per_block) + 5;
    // Each look at all blocks finds eight; of an erased block three pages are read. Each block
    // since the commit is searched for its end, and its last page is read 24 times.
    let looks = 1 + 5 * (since / 8 + 1);
    let leaves = if options.journal_values == Some(true) { statistics.records / 2 } else { 0 };
    let survey =
        3 * blocks * looks + since * (24 + pages_per_block) + 2 * statistics.inner_nodes + leaves;
    u64::from(journal + dirty + u32::from(statistics.height) + survey)
}
