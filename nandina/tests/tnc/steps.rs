//! Commits in steps: no change waits for all dirty nodes, and a cut between two steps loses nothing.

use super::*;

use nandina::{Change as Part, plan};

/// Blocks so large that a commit writes 1,792 nodes.
const WIDE: Profile = Profile {
    geometry: Geometry { page_bytes: 2048, spare_bytes: 64, blocks: 64, pages_per_block: 256 },
    ..TINY
};

/// Bytes of a node in RAM there.
const NODE: usize = 306;

const AT_ONCE: u32 = u32::MAX;

/// What changes cost: the most chip operations of one, and the programs of all.
#[derive(Default, Debug)]
struct Costs {
    most: u64,
    programs: u64,
}

/// Makes as many changes as `next` yields.
fn cost(profile: Profile, options: &Options, changes: impl Iterator<Item = Change>) -> Costs {
    let (mut chip, mut ram) = (Chip::new(profile), ram(&profile, options));
    let mut index = Tree::format(&mut chip, options, &mut ram).unwrap();
    let mut costs = Costs::default();
    for change in changes {
        let before = index.flash().counters().operations();
        make(&mut index, change).unwrap();
        costs.most = costs.most.max(index.flash().counters().operations() - before);
    }
    costs.programs = index.flash().counters().programs;
    expect_sound(&mut index, "after all changes");
    costs
}

fn random_inserts() -> impl Iterator<Item = Change> {
    let mut numbers = Numbers(1);
    (0..40_000).map(move |at| {
        let number = numbers.below(40_000);
        (number.to_be_bytes(), Some(value(number, at)))
    })
}

#[test]
fn the_longest_insert_takes_a_twentieth_of_a_commit_at_once() {
    for (buffer, more_percent) in [(0, 1), (1, 12)] {
        let options = OPTIONS.arena_bytes(2400 * NODE).journal_pages(4000).write_buffer(buffer);
        let at_once = cost(WIDE, &options.commit_step(AT_ONCE), random_inserts());
        let steps = cost(WIDE, &options, random_inserts());
        println!("buffer of {buffer} pages: at once {at_once:?}, in steps {steps:?}");
        assert!(at_once.most >= 256, "{at_once:?}");
        assert!(steps.most * 20 <= at_once.most, "{steps:?}");
        assert!(steps.programs * 100 <= at_once.programs * (100 + more_percent), "{steps:?}");
        let planned = plan::<Tnc>(&WIDE.geometry, &WIDE.capabilities, &options, 40_000).unwrap();
        assert!(planned.fits && at_once.most <= planned.change.programs, "{planned:?}");
    }
}

/// Blocks of 64 pages, whose commits are smaller, and a chip that is nearly full.
#[test]
fn smaller_commits_in_steps_cost_little_more() {
    for (blocks, buffer, more_percent) in [(256, 0, 1), (256, 1, 4), (40, 0, 2), (40, 1, 10)] {
        let geometry = Geometry { blocks, pages_per_block: 64, ..WIDE.geometry };
        let profile = Profile { geometry, ..TINY };
        let options = OPTIONS.arena_bytes(600 * NODE).journal_pages(1000).write_buffer(buffer);
        let at_once = cost(profile, &options.commit_step(AT_ONCE), random_inserts());
        let steps = cost(profile, &options, random_inserts());
        println!("{blocks} blocks, buffer of {buffer}: at once {at_once:?}, in steps {steps:?}");
        assert!(blocks < 256 || at_once.most >= 65 && steps.most <= 8, "{at_once:?} {steps:?}");
        assert!(steps.programs * 100 <= at_once.programs * (100 + more_percent), "{steps:?}");
    }
}

/// Rising keys, random ones, removals of neighbours, and random removals take turns.
fn turns(length: u32) -> impl Iterator<Item = Change> {
    let mut numbers = Numbers(4);
    (0..12_000).map(move |at| {
        let turn = at / length % 4;
        let number = if turn.is_multiple_of(2) { at % (1 << 13) } else { numbers.below(1 << 13) };
        (number.to_be_bytes(), (turn < 2).then(|| value(number, at)))
    })
}

#[test]
fn steps_end_in_time_where_changes_begin_to_come_otherwise() {
    let options = OPTIONS.arena_bytes(2400 * NODE);
    for (name, options, most) in [
        ("as they are", options.journal_pages(4000), 12),
        ("a short journal", options.journal_pages(300), 12),
        ("many levels", OPTIONS.fanout(4).arena_bytes(4000 * 120).journal_pages(4000), 12),
        ("a write buffer", options.journal_pages(40).write_buffer(2), 12),
        ("small steps", options.journal_pages(1000).commit_step(1), 6),
    ] {
        for length in [150, 2_500] {
            let at_once = cost(WIDE, &options.commit_step(AT_ONCE), turns(length));
            let steps = cost(WIDE, &options, turns(length));
            let what = format!("{name}, turns of {length}: at once {at_once:?}, steps {steps:?}");
            println!("{what}");
            assert!(at_once.most > 20 && steps.most <= most, "{what}");
        }
    }
}

/// Keys of changes that are cut.
const KEYS: u32 = 1_200;

/// A few changes, all of which are there after a cut, or none.
type Few = Vec<Change>;

/// Changes one by one and in batches.
fn few(numbers: &mut Numbers, keys: u32) -> Few {
    let count = if numbers.below(4) == 0 { 3 } else { 1 };
    (0..count).map(|_| change(numbers, keys)).collect()
}

fn make_few(index: &mut Tree<'_>, few: &Few) -> Result<(), WriteError<ChipError>> {
    if let [change] = few[..] {
        return make(index, change);
    }
    let parts = few.iter().map(|(key, value)| match value {
        Some(value) => Part::Put { key, value },
        None => Part::Remove { key },
    });
    index.write_batch(&parts.collect::<Vec<_>>())
}

/// The settings of cuts. In all of them a commit comes in steps.
fn stepped() -> [(Profile, Options); 3] {
    let packed = OPTIONS.fanout(4).arena_bytes(200 * 150);
    [
        (LARGE, packed.commit_step(1)),
        (LARGE, packed.commit_step(1).journal_pages(60).verify()),
        (DENSE, OPTIONS.fanout(12).arena_bytes(200 * 160).commit_step(2).checkpoints(4)),
    ]
}

/// Opens the index and makes changes. Returns how many operations each took, or what was cut.
fn work_until_cut(
    chip: &mut Chip,
    (options, ram): (&Options, &mut [u8]),
    model: &mut Model,
    (numbers, count): (&mut Numbers, u32),
) -> Result<Vec<u64>, Few> {
    let mut index = Tree::open(chip, options, ram).unwrap();
    let mut programs = Vec::new();
    for _ in 0..count {
        let few = few(numbers, KEYS);
        let before = index.flash().counters().programs;
        if make_few(&mut index, &few).is_err() {
            return Err(few);
        }
        programs.push(index.flash().counters().programs - before);
        few.into_iter().for_each(|change| note(model, change));
    }
    Ok(programs)
}

/// Whether these are steps: changes that write more than their page of the journal.
fn steps_in(programs: &[u64]) -> usize {
    programs.iter().filter(|&&programs| programs > 1).count()
}

#[test]
fn a_cut_at_every_operation_of_the_steps_leaves_the_old_or_the_new_state_for_good() {
    const CHANGES: u32 = 180;
    for (at, (profile, options)) in stepped().into_iter().enumerate() {
        let mut ram = ram(&profile, &options);
        let mut chip = Chip::with_seed(profile, at as u64);
        let (mut model, mut numbers) = (Model::new(), Numbers(at as u64));
        Tree::format(&mut chip, &options, &mut ram).unwrap();
        let work = (&options, &mut ram[..]);
        work_until_cut(&mut chip, work, &mut model, (&mut numbers, 900)).unwrap();
        // The next mount commits; so many changes later the first steps come.
        let mut changes = 0;
        loop {
            let (mut copy, mut end) = (chip.clone(), numbers.clone());
            let work = (&options, &mut ram[..]);
            let made = work_until_cut(&mut copy, work, &mut model.clone(), (&mut end, changes + 8));
            if steps_in(&made.unwrap()[changes as usize..]) >= 2 {
                break;
            }
            changes += 4;
            assert!(changes < 400, "settings {at}: no steps");
        }
        // A session that ends there leaves the next one with the same dirty nodes.
        if options.checkpoints.is_none() {
            let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
            for _ in 0..core::mem::take(&mut changes) {
                let few = few(&mut numbers, KEYS);
                make_few(&mut index, &few).unwrap();
                few.into_iter().for_each(|change| note(&mut model, change));
            }
            index.close();
        }
        let count = changes + CHANGES;
        let before = chip.counters().operations();
        let mut whole = chip.clone();
        Tree::open(&mut whole, &options, &mut ram).unwrap();
        let opened = whole.counters().operations() - before;
        let mut whole = chip.clone();
        let work = (&options, &mut ram[..]);
        let start = numbers.clone();
        let end = (&mut start.clone(), count);
        let made = work_until_cut(&mut whole, work, &mut model.clone(), end).unwrap();
        let operations = whole.counters().operations() - before;
        println!("settings {at}: {} steps, {opened} to {operations}", steps_in(&made));
        assert!(steps_in(&made) >= 6, "settings {at}: {made:?}");
        for operation in opened..operations {
            let mut choice = Numbers(operation);
            let cut = Cut::ALL[choice.below(5) as usize];
            let what = format!("settings {at}: {cut:?} at {operation}");
            let (mut chip, mut model) = (chip.clone(), model.clone());
            chip.set_faults(Faults { unstable_pages: choice.below(3), ..Faults::NONE });
            let gives_up = choice.below(3) == 0;
            if gives_up {
                chip.give_up_at(operation, cut)
            } else {
                chip.cut_at(operation, cut)
            }
            let (work, end) = ((&options, &mut ram[..]), (&mut start.clone(), count));
            let few = work_until_cut(&mut chip, work, &mut model, end).unwrap_err();
            chip.restore_power();
            chip.cut_at(choice.below(60).into(), Cut::ALL[choice.below(5) as usize]);
            let _ = Tree::open(&mut chip, &options, &mut ram);
            chip.restore_power();
            let mut index = Tree::open(&mut chip, &options, &mut ram)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = content(&mut index);
            if found != model {
                few.into_iter().for_each(|change| note(&mut model, change));
            }
            expect_content(&mut index, &model, &what);
            let mut numbers = Numbers(operation);
            for _ in 0..40 {
                let change = change(&mut numbers, KEYS);
                make(&mut index, change).unwrap_or_else(|error| panic!("{what}: {error}"));
                note(&mut model, change);
            }
            let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
            expect_content(&mut index, &model, &what);
        }
    }
}

#[test]
fn idle_steps_write_a_commit_within_their_budget() {
    for (profile, options) in stepped() {
        let (mut chip, mut ram) = (Chip::new(profile), ram(&profile, &options));
        let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
        let (mut model, mut numbers, mut idle, mut parts) = (Model::new(), Numbers(6), 0, 0);
        for at in 0..2_000 {
            let few = few(&mut numbers, KEYS);
            make_few(&mut index, &few).unwrap();
            few.into_iter().for_each(|change| note(&mut model, change));
            let budget = [5, 6, 40][at % 3];
            let before = index.flash().counters();
            let step = index.gc_step(budget).unwrap();
            let after = index.flash().counters();
            assert_eq!(u64::from(step.operations), after.operations() - before.operations());
            assert!(step.operations <= budget, "{step:?} of {budget}");
            idle += after.programs - before.programs;
            parts += u32::from(step.more && after.programs > before.programs);
        }
        println!("{idle} programs of idle steps, {parts} of which left a part");
        assert!(idle > 50 && parts > 0, "{idle} programs, {parts} parts");
        expect_content(&mut index, &model, "after idle steps");
    }
}

/// A mount makes all changes since the last commit again, and writes no node meanwhile.
#[test]
fn a_mount_has_room_for_the_nodes_that_steps_wrote() {
    for (at, (profile, options)) in stepped().into_iter().enumerate() {
        // A tree that is much larger than RAM, on a chip with room for a long journal.
        let geometry = Geometry { blocks: 160, ..profile.geometry };
        let (profile, options) = (Profile { geometry, ..profile }, options.journal_pages(1_000));
        let (mut chip, mut memory) = (Chip::new(profile), ram(&profile, &options));
        let mut index = Tree::format(&mut chip, &options, &mut memory).unwrap();
        let (mut model, mut numbers) = (Model::new(), Numbers(2));
        for turn in 0..1_500 {
            let few = few(&mut numbers, 8_000);
            make_few(&mut index, &few).unwrap();
            few.into_iter().for_each(|change| note(&mut model, change));
            if turn % 7 == 0 {
                let (mut copy, mut ram) = (Chip::clone(index.flash()), ram(&profile, &options));
                let mut index = Tree::open(&mut copy, &options, &mut ram)
                    .unwrap_or_else(|error| panic!("settings {at}, turn {turn}: {error}"));
                expect_content(&mut index, &model, "a copy");
            }
        }
    }
}

/// Cold data is moved although that needs a commit, which comes in steps before it.
#[test]
fn blocks_with_cold_data_wear_as_well_where_commits_come_in_steps() {
    let geometry = Geometry { page_bytes: 512, spare_bytes: 0, pages_per_block: 8, blocks: 128 };
    let profile = Profile { geometry, ..NOR };
    let mut most = [0u64; 2];
    let wear = [AT_ONCE, 1].map(|pages| {
        let options = OPTIONS.arena_bytes(90 * 530).commit_step(pages);
        let (mut chip, mut ram) = (Chip::new(profile), ram(&profile, &options));
        let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
        let mut numbers = Numbers(5);
        for turn in 0.. {
            let number = if turn < 6_000 { turn } else { numbers.below(600) * 3 };
            let before = index.flash().counters().programs;
            index.insert(&number.to_be_bytes(), &value(number, turn)).unwrap();
            let after = index.flash().counters().programs;
            most[usize::from(pages == 1)] = most[usize::from(pages == 1)].max(after - before);
            if index.flash().wear().mean >= 30.0 {
                break;
            }
        }
        expect_sound(&mut index, "after many rounds");
        index.flash().wear()
    });
    println!("{wear:?}, most programs {most:?}");
    assert!(wear[1].most - wear[1].least <= wear[0].most - wear[0].least + 4, "{wear:?}");
    assert!(most[1] < most[0], "{most:?}");
}
