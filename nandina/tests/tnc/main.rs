//! The tree of UBIFS against a `BTreeMap`, through cuts at every operation, on full chips, and
//! with every shape of its nodes.

#[cfg(feature = "node-counters")]
mod counters;
mod mounts;
mod nonsense;
mod packed;
mod shrink;
mod slots;
mod steps;
mod values;

use std::collections::BTreeMap;

use nandina::flash::profile::{MLC, NOR};
use nandina::flash::{Geometry, Profile};
use nandina::store::Tnc;
use nandina::{Index, Inserted, Options, ReadError, Removed, WriteError, ram_needed};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY};

type Model = BTreeMap<[u8; 4], [u8; 12]>;
type Tree<'c> = Index<'c, &'c mut Chip, Tnc>;

const SMALL: Profile =
    Profile { geometry: Geometry { blocks: 24, pages_per_block: 8, ..TINY.geometry }, ..TINY };

const LARGE: Profile = Profile {
    geometry: Geometry { page_bytes: 2048, spare_bytes: 64, blocks: 24, pages_per_block: 16 },
    ..TINY
};

/// As large as two of them, with fewer nodes in a page.
const DENSE: Profile = Profile {
    geometry: Geometry { page_bytes: 512, spare_bytes: 16, blocks: 48, pages_per_block: 16 },
    ..TINY
};

const OPTIONS: Options = Options::new(4, 12);

/// Small numbers from a seed: splitmix64.
#[derive(Clone)]
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % u64::from(end)) as u32
    }
}

fn ram(profile: &Profile, options: &Options) -> Vec<u8> {
    vec![0xA5; ram_needed::<Tnc>(&profile.geometry, options)]
}

fn value(number: u32, version: u32) -> [u8; 12] {
    let mut value = [0; 12];
    value[..4].copy_from_slice(&number.to_le_bytes());
    value[4..8].copy_from_slice(&version.to_le_bytes());
    value
}

/// A change of a record: its new value, or its removal.
type Change = ([u8; 4], Option<[u8; 12]>);

fn change(numbers: &mut Numbers, keys: u32) -> Change {
    let number = numbers.below(keys);
    let removes = numbers.below(3) == 0;
    (number.to_be_bytes(), (!removes).then(|| value(number, numbers.below(1 << 30))))
}

fn make(index: &mut Tree<'_>, (key, value): Change) -> Result<(), WriteError<ChipError>> {
    match value {
        Some(value) => index.insert(&key, &value).map(|_| ()),
        None => index.remove(&key).map(|_| ()),
    }
}

fn note(model: &mut Model, (key, value): Change) {
    match value {
        Some(value) => model.insert(key, value),
        None => model.remove(&key),
    };
}

fn content(index: &mut Tree<'_>) -> Model {
    try_content(index).unwrap()
}

fn try_content(index: &mut Tree<'_>) -> Result<Model, ReadError<ChipError>> {
    let mut found = Model::new();
    let mut range = index.range(..)?;
    while let Some((key, value)) = range.next()? {
        found.insert(key.try_into().unwrap(), value.try_into().unwrap());
    }
    Ok(found)
}

fn expect_sound(index: &mut Tree<'_>, what: &str) {
    let mut violations = Vec::new();
    index.check(|violation| violations.push(violation.to_string())).unwrap();
    assert!(violations.is_empty(), "{what}: {violations:?}");
    assert_eq!(index.statistics().unexplained_pages, 0, "{what}");
}

fn expect_content(index: &mut Tree<'_>, model: &Model, what: &str) {
    assert_eq!(&content(index), model, "{what}");
    assert_eq!(index.len() as usize, model.len(), "{what}");
    expect_sound(index, what);
}

/// The settings under which everything must hold.
fn settings() -> [(Profile, Options); 9] {
    [
        (SMALL, OPTIONS),
        (SMALL, OPTIONS.fanout(4)),
        (SMALL, OPTIONS.fanout(6).journal_pages(3)),
        (LARGE, OPTIONS),
        (LARGE, OPTIONS.fanout(4).arena_bytes(40 * 120)),
        (SMALL, OPTIONS.arena_bytes(40 * 496).read_cache(2).page_buffers(4).verify()),
        // Commits in steps.
        (LARGE, OPTIONS.fanout(4).arena_bytes(160 * 120).commit_step(1)),
        (LARGE, OPTIONS.fanout(6).arena_bytes(160 * 160).commit_step(1).journal_pages(20)),
        (DENSE, OPTIONS.fanout(12).arena_bytes(200 * 160).commit_step(2).verify()),
    ]
}

#[test]
fn random_changes_equal_a_map_and_survive_reopening() {
    for (at, (profile, options)) in settings().into_iter().enumerate() {
        let mut numbers = Numbers(at as u64);
        let mut chip = Chip::new(profile);
        let mut ram = ram(&profile, &options);
        let mut model = Model::new();
        Tree::format(&mut chip, &options, &mut ram).unwrap();
        for session in 0..12 {
            let what = format!("settings {at}, session {session}");
            let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
            expect_content(&mut index, &model, &what);
            for _ in 0..250 {
                let change = change(&mut numbers, 200);
                let found = index.get(&change.0).unwrap().map(<[u8]>::to_vec);
                assert_eq!(found.as_deref(), model.get(&change.0).map(|value| &value[..]));
                make(&mut index, change).unwrap_or_else(|error| panic!("{what}: {error}"));
                note(&mut model, change);
            }
            if session % 3 == 0 {
                for key in 0..200u32 {
                    let found = index.remove(&key.to_be_bytes()).unwrap();
                    let held = model.remove(&key.to_be_bytes()).is_some();
                    assert_eq!(found == Removed::Found, held, "{what}");
                }
            }
            expect_content(&mut index, &model, &what);
            if session % 2 == 0 {
                index.close();
            }
        }
    }
}

#[test]
fn ranges_of_a_tree_are_those_of_a_map() {
    let mut numbers = Numbers(5);
    for options in [OPTIONS, OPTIONS.fanout(4)] {
        let mut chip = Chip::new(SMALL);
        let mut ram = ram(&SMALL, &options);
        let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
        let mut model = Model::new();
        for _ in 0..150 {
            let change = change(&mut numbers, 300);
            make(&mut index, change).unwrap();
            note(&mut model, change);
        }
        for _ in 0..100 {
            let (a, b) = (numbers.below(310), numbers.below(310));
            let (low, high) = (a.min(b).to_be_bytes(), a.max(b).to_be_bytes());
            let mut range = index.range(&low[..]..&high[..]).unwrap();
            for (key, value) in model.range(low..high) {
                assert_eq!(range.next().unwrap(), Some((&key[..], &value[..])));
            }
            assert_eq!(range.next().unwrap(), None);
        }
    }
}

/// Makes changes up to a cut. Returns the state before the one that was cut, and that one.
fn changes_until_cut(
    chip: &mut Chip,
    (options, ram): (&Options, &mut [u8]),
    model: &mut Model,
    (numbers, count): (&mut Numbers, u32),
) -> Option<Change> {
    let Ok(mut index) = Tree::open(chip, options, ram) else { return None };
    let Ok(found) = try_content(&mut index) else { return None };
    assert_eq!(&found, model);
    for _ in 0..count {
        let change = change(numbers, 40);
        if make(&mut index, change).is_err() {
            return Some(change);
        }
        note(model, change);
    }
    None
}

#[test]
fn a_cut_at_every_operation_leaves_the_old_or_the_new_state_for_good() {
    cut_each(settings());
}

/// Cuts at every operation under each of the settings, with pages that may be unstable.
fn cut_each(settings: impl IntoIterator<Item = (Profile, Options)>) {
    for (at, (profile, options)) in settings.into_iter().enumerate() {
        for unstable in [0, 1, 2] {
            cut_everywhere(at, profile, options, unstable);
        }
    }
}

fn cut_everywhere(setting: usize, profile: Profile, options: Options, unstable: u32) {
    const CHANGES: u32 = 30;
    let mut chip = Chip::with_seed(profile, setting as u64);
    chip.set_faults(Faults { unstable_pages: unstable, ..Faults::NONE });
    let mut ram = ram(&profile, &options);
    let (mut model, mut numbers) = (Model::new(), Numbers(9));
    Tree::format(&mut chip, &options, &mut ram).unwrap();
    let before = chip.clone();
    let made = changes_until_cut(&mut chip, (&options, &mut ram), &mut model, (&mut numbers, 300));
    assert!(made.is_none() && chip.counters().erases > before.counters().erases);
    let mut whole = chip.clone();
    let start = numbers.clone();
    changes_until_cut(
        &mut whole,
        (&options, &mut ram),
        &mut model.clone(),
        (&mut start.clone(), CHANGES),
    );
    let operations = whole.counters().operations() - chip.counters().operations();
    let mut choice = Numbers(u64::from(unstable));
    for operation in 0..operations {
        let cut = Cut::ALL[choice.below(5) as usize];
        let what = format!("settings {setting}, {unstable}: {cut:?} at {operation}");
        let (mut chip, mut model) = (chip.clone(), model.clone());
        chip.cut_at(operation, cut);
        let work = (&options, &mut ram[..]);
        let cut_change =
            changes_until_cut(&mut chip, work, &mut model, (&mut start.clone(), CHANGES));
        chip.restore_power();
        // A second cut in the mount that follows.
        let second = u64::from(choice.below(60));
        chip.cut_at(second, Cut::ALL[choice.below(5) as usize]);
        let _ = Tree::open(&mut chip, &options, &mut ram);
        chip.restore_power();
        chip.limit_operations(Some(100_000));
        let mut index = Tree::open(&mut chip, &options, &mut ram)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = content(&mut index);
        if found != model {
            let Some(change) = cut_change else {
                panic!("{what}: neither the old nor the new state");
            };
            note(&mut model, change);
            assert_eq!(found, model, "{what}: neither the old nor the new state");
        }
        expect_sound(&mut index, &what);
        let mut numbers = Numbers(operation);
        for _ in 0..6 {
            let change = change(&mut numbers, 40);
            make(&mut index, change).unwrap_or_else(|error| panic!("{what}: {error}"));
            note(&mut model, change);
        }
        let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
        expect_content(&mut index, &model, &what);
    }
}

#[test]
fn an_error_of_the_device_at_every_operation_is_the_old_or_the_new_state_for_good() {
    fail_each(settings());
}

/// Lets the device give up operations under each of the settings.
fn fail_each(settings: impl IntoIterator<Item = (Profile, Options)>) {
    for (at, (profile, options)) in settings.into_iter().enumerate() {
        errors_everywhere(at, profile, options);
    }
}

fn errors_everywhere(at: usize, profile: Profile, options: Options) {
    let mut chip = Chip::with_seed(profile, 3);
    chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
    let mut ram = ram(&profile, &options);
    let (mut model, mut numbers) = (Model::new(), Numbers(at as u64));
    Tree::format(&mut chip, &options, &mut ram).unwrap();
    let work = (&options, &mut ram[..]);
    changes_until_cut(&mut chip, work, &mut model, (&mut numbers, 150));
    for operation in (0..400).step_by(3) {
        let (mut chip, mut model) = (chip.clone(), model.clone());
        let mut numbers = Numbers(operation);
        let what = format!("settings {at}, operation {operation}");
        let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
        expect_content(&mut index, &model, &what);
        chip.give_up_at(operation, Cut::ALL[numbers.below(5) as usize]);
        let Ok(mut index) = Tree::open(&mut chip, &options, &mut ram) else { continue };
        for _ in 0..40 {
            let change = change(&mut numbers, 60);
            let made = make(&mut index, change);
            // The error may have come after the change; a lookup tells.
            let found = match index.get(&change.0) {
                Ok(found) => found.map(<[u8]>::to_vec),
                Err(error) => {
                    assert_eq!(error, ReadError::Device(ChipError::GaveUp), "{what}: {made:?}");
                    index.get(&change.0).unwrap().map(<[u8]>::to_vec)
                }
            };
            let (old, new) = (model.get(&change.0).copied(), change.1);
            if made.is_ok() || found.as_deref() != old.as_ref().map(|value| &value[..]) {
                assert_eq!(found.as_deref(), new.as_ref().map(|value| &value[..]), "{what}");
                note(&mut model, change);
            }
        }
        chip.restore_power();
        let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
        expect_content(&mut index, &model, &what);
    }
}

#[test]
fn blocks_that_fail_and_cells_that_are_shared_cost_no_record() {
    let shared = Profile {
        geometry: Geometry { pages_per_block: 16, blocks: 32, ..TINY.geometry },
        capabilities: MLC.capabilities,
        ..TINY
    };
    for (at, (profile, options)) in
        [(shared, OPTIONS), (shared, OPTIONS.fanout(6)), (shared, OPTIONS.verify())]
            .into_iter()
            .enumerate()
    {
        fail_and_cut(at, profile, options, 4000);
    }
}

/// One in `program_failures` programs fails, and power is cut again and again.
fn fail_and_cut(at: usize, profile: Profile, options: Options, program_failures: u32) {
    let mut chip = Chip::with_seed(profile, at as u64);
    chip.set_faults(Faults {
        program_failures,
        erase_failures: 1500,
        unstable_pages: 2,
        ..Faults::NONE
    });
    let mut ram = ram(&profile, &options);
    let (mut model, mut numbers) = (Model::new(), Numbers(at as u64));
    Tree::format(&mut chip, &options, &mut ram).unwrap();
    let mut cuts = 0;
    for session in 0..60 {
        let what = format!("settings {at}, session {session}");
        chip.cut_at(u64::from(numbers.below(900)), Cut::ALL[numbers.below(5) as usize]);
        let work = (&options, &mut ram[..]);
        let change = changes_until_cut(&mut chip, work, &mut model, (&mut numbers, 300));
        let failed = chip.has_power();
        cuts += u32::from(!failed);
        chip.restore_power();
        let mut index = match Tree::open(&mut chip, &options, &mut ram) {
            Ok(index) => index,
            Err(error) => panic!("{what}: {error}"),
        };
        let found = content(&mut index);
        if found != model
            && let Some(change) = change
        {
            note(&mut model, change);
        }
        expect_content(&mut index, &model, &what);
        let step = index.gc_step(100).unwrap();
        assert!(step.operations <= 100 + 40, "{what}: {step:?}");
        if failed && index.statistics().bad_blocks > 5 {
            break;
        }
    }
    assert!(cuts > 10, "only {cuts} cuts");
}

#[test]
fn a_full_chip_refuses_before_it_writes_and_still_removes() {
    for (at, (profile, options)) in settings().into_iter().enumerate() {
        let mut numbers = Numbers(at as u64 + 7);
        let mut chip = Chip::new(profile);
        let mut ram = ram(&profile, &options);
        let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
        let mut model = Model::new();
        let mut refused = 0;
        while refused < 200 {
            let number = numbers.below(1 << 20);
            let (key, value) = (number.to_be_bytes(), value(number, 0));
            match index.insert(&key, &value) {
                Ok(_) => drop(model.insert(key, value)),
                Err(WriteError::Full { .. }) => refused += 1,
                Err(error) => panic!("settings {at}: {error}"),
            }
        }
        expect_content(&mut index, &model, "full");
        // Churn: replacing and removing never fail, and what was removed makes room.
        let keys: Vec<_> = model.keys().copied().collect();
        for round in 0..2000 {
            let key = keys[numbers.below(keys.len() as u32) as usize];
            let change = (key, (round % 4 > 0).then(|| value(round, 1)));
            match make(&mut index, change) {
                Ok(()) => note(&mut model, change),
                Err(WriteError::Full { .. }) if !model.contains_key(&key) => {}
                Err(error) => panic!("settings {at}, round {round}: {error}"),
            }
        }
        expect_content(&mut index, &model, "after churn");
        for key in keys {
            index.remove(&key).unwrap();
        }
        assert!(index.is_empty());
        expect_sound(&mut index, "empty");
    }
}

#[test]
fn a_change_that_alters_nothing_says_that_others_wait() {
    let options = OPTIONS.write_buffer(1);
    let (mut chip, mut ram) = (Chip::new(SMALL), ram(&SMALL, &options));
    let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
    let (key, value) = ([1; 4], [2; 12]);
    assert_eq!(index.insert(&key, &value).unwrap(), Inserted::Buffered);
    // A cut may still take what these two found.
    assert_eq!(index.insert(&key, &value).unwrap(), Inserted::Buffered);
    assert_eq!(index.remove(&[9; 4]).unwrap(), Removed::Buffered);
    index.flush().unwrap();
    assert_eq!(index.insert(&key, &value).unwrap(), Inserted::Replaced);
    assert_eq!(index.remove(&[9; 4]).unwrap(), Removed::Absent);
}

#[test]
fn sessions_with_few_changes_leave_a_journal_in_few_blocks() {
    let options = OPTIONS.journal_pages(64);
    let profile = Profile { geometry: Geometry { blocks: 120, ..SMALL.geometry }, ..SMALL };
    let plan =
        nandina::plan::<Tnc>(&profile.geometry, &profile.capabilities, &options, 200).unwrap();
    let (mut chip, mut ram) = (Chip::new(profile), ram(&profile, &options));
    Tree::format(&mut chip, &options, &mut ram).unwrap();
    let mut most = 0;
    for session in 0..150u32 {
        let before = chip.counters().reads;
        let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
        most = most.max(index.flash().counters().reads - before);
        index.insert(&session.to_be_bytes(), &value(session, 0)).unwrap();
        index.close();
    }
    println!("{most} reads at a mount, planned {:?}", plan.open);
    // Else each session would leave a block of its own, up to 64 of them.
    assert!(most < 9_000 && most <= plan.open.reads, "{most} reads");
}

#[test]
fn changes_wait_for_their_page_and_a_cut_leaves_a_first_part_of_them() {
    let options = OPTIONS.write_buffer(1);
    let mut chip = Chip::new(SMALL);
    let mut memory = ram(&SMALL, &options);
    let mut numbers = Numbers(3);
    let mut index = Tree::format(&mut chip, &options, &mut memory).unwrap();
    let mut states = vec![Model::new()];
    let mut flushed = 0;
    for at in 0..400 {
        let change = change(&mut numbers, 60);
        make(&mut index, change).unwrap();
        let mut model = states.last().unwrap().clone();
        note(&mut model, change);
        states.push(model);
        if at % 50 == 49 {
            index.flush().unwrap();
            assert_eq!(index.statistics().waiting_changes, 0);
            flushed = states.len() - 1;
        }
        if at % 30 == 7 {
            let mut copy = Chip::clone(index.flash());
            let mut ram = ram(&SMALL, &options);
            let mut index = Tree::open(&mut copy, &options, &mut ram).unwrap();
            let found = content(&mut index);
            let part = states.iter().rposition(|state| *state == found);
            assert!(part.is_some_and(|part| part >= flushed), "change {at}");
            expect_sound(&mut index, "a first part");
        }
    }
    assert!(index.flash().counters().programs < 200);
}

/// With so little RAM for nodes that each change commits, blocks fill in equal steps.
///
/// A search for cold data at some places of a block only would never come to one of them.
#[test]
fn blocks_wear_evenly_where_every_change_commits() {
    let geometry = Geometry { page_bytes: 512, spare_bytes: 0, pages_per_block: 8, blocks: 128 };
    let options = OPTIONS.arena_bytes(11 * 510);
    let mut chip = Chip::new(Profile { geometry, ..NOR });
    let mut ram = vec![0xA5; ram_needed::<Tnc>(&geometry, &options)];
    let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
    let mut numbers = Numbers(5);
    let mut turn = 0;
    while index.flash().wear().mean < 20.0 {
        let number = if turn < 3_000 { turn * 7 % 3_000 } else { numbers.below(3_000) };
        index.insert(&number.to_be_bytes(), &value(number, turn)).unwrap();
        turn += 1;
    }
    let wear = index.flash().wear();
    assert!(wear.most - wear.least <= 12, "{wear:?}");
    assert!(f64::from(wear.most) <= 1.2 * wear.mean, "{wear:?}");
}
