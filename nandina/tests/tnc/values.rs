//! Values that stay in the journal: through cuts, on full chips, and where they cannot be read.

use nandina::flash::profile::{MLC, NOR};
use nandina::flash::{Capabilities, Geometry, PageNumber, Profile};
use nandina::{Change, Damage, Index, OpenError, Options, ReadError, WriteError};
use nandina_sim::{Chip, Cut, Faults};

use crate::*;

const IN_JOURNAL: Options = OPTIONS.journal_values(true);

/// Pages as those of SPI NOR, where each change is programmed by itself.
const SECTORS: Profile =
    Profile { geometry: Geometry { pages_per_block: 16, blocks: 24, ..NOR.geometry }, ..NOR };

/// The chips and options under which everything must hold.
fn settings() -> [(Profile, Options); 8] {
    [
        (SMALL, IN_JOURNAL.fanout(4)),
        (SMALL, IN_JOURNAL.fanout(6).journal_pages(3)),
        (LARGE, IN_JOURNAL.fanout(8)),
        (LARGE, IN_JOURNAL.fanout(4).arena_bytes(40 * 80)),
        (SMALL, IN_JOURNAL.fanout(5).read_cache(2).page_buffers(4).verify()),
        // Commits in steps.
        (LARGE, IN_JOURNAL.fanout(4).arena_bytes(160 * 80).commit_step(1)),
        // Slots.
        (SECTORS, IN_JOURNAL.fanout(4).journal_pages(3)),
        (SECTORS, IN_JOURNAL.fanout(4).verify()),
    ]
}

#[test]
fn a_cut_at_every_operation_leaves_the_old_or_the_new_state_for_good() {
    cut_each(settings());
}

#[test]
fn an_error_of_the_device_at_every_operation_is_the_old_or_the_new_state_for_good() {
    fail_each(settings());
}

#[test]
fn blocks_that_fail_and_cells_that_are_shared_cost_no_record() {
    let geometry = Geometry { pages_per_block: 16, blocks: 48, ..TINY.geometry };
    let shared = Profile { geometry, capabilities: MLC.capabilities, ..TINY };
    let capabilities = Capabilities { bad_blocks_per_mille: 200, ..SECTORS.capabilities };
    let geometry = Geometry { blocks: 64, ..SECTORS.geometry };
    let sectors = Profile { geometry, capabilities, ..SECTORS };
    fail_and_cut(0, shared, IN_JOURNAL.fanout(6), 4000);
    fail_and_cut(1, shared, IN_JOURNAL.fanout(6).verify(), 4000);
    fail_and_cut(2, sectors, IN_JOURNAL.fanout(4), 700);
}

/// Values that wait are read, survive a commit, and a cut leaves a first part of the changes.
#[test]
fn values_that_wait_for_their_page_are_read_and_a_cut_leaves_a_first_part_of_them() {
    let options = IN_JOURNAL.fanout(6).write_buffer(1).journal_pages(6);
    let mut ram = ram(&LARGE, &options);
    let (mut cuts, mut lost) = (0, 0);
    for seed in 0..120u64 {
        let mut chip = Chip::with_seed(LARGE, seed);
        chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
        Tree::format(&mut chip, &options, &mut ram).unwrap();
        let mut numbers = Numbers(seed);
        // All states since the last flush; one of them is there after a cut.
        let mut states = vec![Model::new()];
        for _ in 0..6 {
            chip.cut_at(u64::from(numbers.below(900)), Cut::ALL[numbers.below(5) as usize]);
            if let Ok(mut index) = Tree::open(&mut chip, &options, &mut ram) {
                'session: for turn in 1..400 {
                    let change = change(&mut numbers, 200);
                    let mut new = states.last().unwrap().clone();
                    note(&mut new, change);
                    states.push(new);
                    if make(&mut index, change).is_err() {
                        break 'session;
                    }
                    match index.get(&change.0) {
                        Ok(found) => {
                            assert_eq!(found.map(|found| found.try_into().unwrap()), change.1);
                        }
                        Err(_) => break 'session,
                    }
                    if turn % 90 == 0 {
                        match index.flush() {
                            Ok(()) => drop(states.drain(..states.len() - 1)),
                            Err(_) => break 'session,
                        }
                    }
                }
            }
            cuts += u32::from(!chip.has_power());
            chip.restore_power();
            let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
            let found = content(&mut index);
            let at = states.iter().rposition(|state| *state == found);
            assert!(at.is_some(), "seed {seed}: neither of {} states", states.len());
            lost += u32::from(at != Some(states.len() - 1));
            expect_content(&mut index, &found, "after a cut");
            states = vec![found];
        }
    }
    assert!(cuts > 300 && lost > 100, "{cuts} cuts, {lost} lost something");
}

/// A batch is one page, in which a key may come twice.
#[test]
fn a_batch_of_values_is_there_as_a_whole() {
    let options = IN_JOURNAL.fanout(6).arena_bytes(200 * 80);
    let mut ram = ram(&LARGE, &options);
    let keys: Vec<_> = (0..8u32).map(|key| (key * 7 % 8).to_be_bytes()).collect();
    let batch = |version| -> Vec<_> {
        let values: Vec<_> = (0..8).map(|at| value(at, version)).collect();
        keys.iter().copied().zip(values).collect()
    };
    for operation in 0..40 {
        let mut chip = Chip::with_seed(LARGE, operation);
        chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
        Tree::format(&mut chip, &options, &mut ram).unwrap();
        let write = |index: &mut Tree<'_>, version| {
            let records = batch(version);
            let mut changes: Vec<_> =
                records.iter().map(|(key, value)| Change::Put { key, value }).collect();
            changes.push(Change::Remove { key: &keys[0] });
            changes.push(Change::Put { key: &keys[1], value: &records[7].1 });
            index.write_batch(&changes)
        };
        let expected = |version| {
            let mut model: Model = batch(version).into_iter().collect();
            model.remove(&keys[0]);
            model.insert(keys[1], value(7, version));
            model
        };
        let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
        write(&mut index, 1).unwrap();
        expect_content(&mut index, &expected(1), "the first batch");
        chip.cut_at(operation, Cut::ALL[operation as usize % 5]);
        if let Ok(mut index) = Tree::open(&mut chip, &options, &mut ram) {
            let _ = write(&mut index, 2);
        }
        chip.restore_power();
        let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
        let found = content(&mut index);
        assert!(found == expected(1) || found == expected(2), "{operation}: {found:?}");
        expect_content(&mut index, &found, "after a cut");
    }
}

#[test]
fn an_index_is_refused_whose_values_are_elsewhere() {
    for in_journal in [false, true] {
        let options = OPTIONS.journal_values(in_journal);
        let (mut chip, mut ram) = (Chip::new(LARGE), vec![0; 1 << 20]);
        Tree::format(&mut chip, &options, &mut ram).unwrap().insert(&[1; 4], &[2; 12]).unwrap();
        let other = OPTIONS.journal_values(!in_journal);
        match Tree::open(&mut chip, &other, &mut ram).map(|_| ()) {
            Err(OpenError::Mismatch { setting: "values in the journal", found, expected }) => {
                assert_eq!((found, expected), (in_journal.into(), (!in_journal).into()));
            }
            other => panic!("{other:?}"),
        }
        let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
        assert_eq!(index.get(&[1; 4]).unwrap(), Some(&[2; 12][..]));
    }
}

/// Programs, erases and reads of 20,000 changes of 2,000 records, each in its page.
fn costs(value_bytes: usize, options: Options) -> [u64; 3] {
    let profile = MLC;
    let mut ram = ram(&profile, &options);
    let mut chip = Chip::new(profile);
    let mut index: Index<'_, _, nandina::store::Tnc> =
        Index::format(&mut chip, &options, &mut ram).unwrap();
    let mut numbers = Numbers(7);
    let mut bytes = vec![0; value_bytes];
    for turn in 0..20_000u32 {
        bytes[..4].copy_from_slice(&turn.to_le_bytes());
        index.insert(&numbers.below(2_000).to_be_bytes(), &bytes).unwrap();
    }
    index.flush().unwrap();
    let counters = index.flash().counters();
    [counters.programs, counters.erases, counters.reads]
}

/// Bytes of a value; programs, erases and reads with values in the leaves, and in the journal.
///
/// They follow from the code alone: a change that costs more shows here.
const COSTS: [(usize, [u64; 3], [u64; 3]); 4] = [
    (12, [80, 2, 256], [80, 2, 13_633]),
    (60, [1_571, 25, 12_872], [645, 11, 17_582]),
    (120, [2_857, 45, 17_305], [641, 11, 17_615]),
    (240, [6_817, 107, 23_704], [1_289, 21, 17_954]),
];

#[test]
fn large_values_are_written_less_often_where_they_stay_in_the_journal() {
    let options = |bytes: usize| {
        let options = Options::new(4, bytes).write_buffer(1).fanout(32).arena_bytes(64 << 10);
        let in_leaves = costs(bytes, options);
        (bytes, in_leaves, costs(bytes, options.journal_values(true)))
    };
    let found: Vec<_> = [12, 60, 120, 240].map(options).into();
    for (at, (value_bytes, in_leaves, in_journal)) in found.into_iter().enumerate() {
        assert_eq!((value_bytes, in_leaves, in_journal), COSTS[at]);
    }
}

/// The page of a value that cannot be read is reported; its neighbours are there, and it can be
/// replaced.
#[test]
fn a_value_that_cannot_be_read_is_reported_with_its_page() {
    // A commit leads to the value: the journal behind it is short.
    let options = IN_JOURNAL.fanout(8).journal_pages(4);
    let mut ram = ram(&LARGE, &options);
    let mut chip = Chip::new(LARGE);
    let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
    for number in 0..60u32 {
        index.insert(&number.to_be_bytes(), &value(number, 0)).unwrap();
    }
    index.close();
    // Find the page that holds the value of 30 by damaging one after another.
    let pages = LARGE.geometry.pages();
    let mut damaged = 0;
    for page in (0..pages).map(PageNumber) {
        let mut chip = chip.clone();
        chip.corrupt_page(page, |main, _| main.iter_mut().for_each(|byte| *byte ^= 0x55));
        let Ok(mut index) = Tree::open(&mut chip, &options, &mut ram) else { continue };
        match index.get(&30u32.to_be_bytes()) {
            Err(ReadError::Corrupt { page: named, reason, .. }) if named == page => {
                damaged += 1;
                assert!(matches!(reason, Damage::Uncorrectable | Damage::Checksum), "{reason:?}");
                let mut violations = 0;
                index.check(|_| violations += 1).unwrap();
                assert_eq!(violations, 1);
                for number in (0..60u32).filter(|&number| number != 30) {
                    let found = index.get(&number.to_be_bytes()).unwrap();
                    assert_eq!(found, Some(&value(number, 0)[..]), "{number}");
                }
                index.insert(&30u32.to_be_bytes(), &value(30, 1)).unwrap();
                let found = index.get(&30u32.to_be_bytes()).unwrap();
                assert_eq!(found, Some(&value(30, 1)[..]));
            }
            // Without the newest commit there is an older state, and never a wrong value.
            Ok(found) => assert!(found.is_none_or(|found| found == value(30, 0))),
            Err(error) => assert!(matches!(error, ReadError::Corrupt { .. }), "{error}"),
        }
    }
    assert_eq!(damaged, 1);
}

#[test]
fn a_full_chip_refuses_a_record_and_still_replaces_and_removes() {
    let large = IN_JOURNAL.arena_bytes(16 << 10);
    for options in [large.fanout(4), large.fanout(8).write_buffer(1)] {
        let (mut chip, mut ram) = (Chip::new(LARGE), ram(&LARGE, &options));
        let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
        let (mut model, mut numbers) = (Model::new(), Numbers(3));
        let refused = loop {
            let change = (numbers.below(1 << 20).to_be_bytes(), Some(value(1, 0)));
            match make(&mut index, change) {
                Ok(()) => note(&mut model, change),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, WriteError::Full { .. }), "{refused}");
        let keys: Vec<_> = model.keys().copied().collect();
        for round in 0..3_000 {
            let key = keys[numbers.below(keys.len() as u32) as usize];
            let change = (key, Some(value(round, 1)));
            make(&mut index, change).unwrap();
            note(&mut model, change);
        }
        expect_content(&mut index, &model, "after replacements");
        for key in keys {
            make(&mut index, (key, None)).unwrap();
        }
        index.flush().unwrap();
        assert!(index.is_empty());
    }
}
