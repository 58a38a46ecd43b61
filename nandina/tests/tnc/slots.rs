//! Changes that are programmed one by one, on chips that program parts of pages.

use nandina::Options;
use nandina::flash::profile::NOR;
use nandina::flash::{Geometry, Profile};
use nandina_sim::{Chip, Cut, Faults};

use crate::{
    Model, Numbers, OPTIONS, Tree, changes_until_cut, cut_each, expect_content, fail_and_cut,
    fail_each, make, note, ram, value,
};

/// Seven changes to a page.
const PAGES: Profile = Profile {
    geometry: Geometry { page_bytes: 192, spare_bytes: 0, pages_per_block: 8, blocks: 40 },
    ..NOR
};

/// Pages as those of SPI NOR.
const SECTORS: Profile =
    Profile { geometry: Geometry { pages_per_block: 16, blocks: 24, ..NOR.geometry }, ..NOR };

/// A part of the header is in the spare area, so that first programs are of whole pages.
const SPARE: Profile = Profile {
    geometry: Geometry { page_bytes: 256, spare_bytes: 16, pages_per_block: 8, blocks: 32 },
    ..NOR
};

/// The chips and options under which everything must hold.
fn settings() -> [(Profile, Options); 6] {
    [
        (PAGES, OPTIONS),
        (SECTORS, OPTIONS),
        (SECTORS, OPTIONS.fanout(4).journal_pages(3)),
        (SECTORS, OPTIONS.arena_bytes(60 * 232).commit_step(1).verify()),
        (SPARE, OPTIONS),
        (SPARE, OPTIONS.fanout(6).verify()),
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
fn blocks_that_fail_cost_no_record() {
    for (at, (profile, options)) in settings().into_iter().enumerate() {
        let capabilities =
            nandina::flash::Capabilities { bad_blocks_per_mille: 200, ..profile.capabilities };
        let geometry = Geometry { blocks: 48, ..profile.geometry };
        fail_and_cut(at, Profile { geometry, capabilities, ..profile }, options, 700);
    }
}

/// A session is cut at every operation, and the mount after it at every one of its own.
#[test]
fn two_cuts_at_every_operation_leave_the_old_or_the_new_state_for_good() {
    let (profile, options) = (PAGES, OPTIONS);
    let mut chip = Chip::with_seed(profile, 1);
    chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
    let mut ram = ram(&profile, &options);
    let (mut model, mut numbers) = (Model::new(), Numbers(4));
    Tree::format(&mut chip, &options, &mut ram).unwrap();
    changes_until_cut(&mut chip, (&options, &mut ram), &mut model, (&mut numbers, 40));
    let mut runs = 0;
    for operation in 0.. {
        let (mut once, mut model) = (chip.clone(), model.clone());
        once.cut_at(operation, Cut::ALL[(operation % 5) as usize]);
        let work = (&options, &mut ram[..]);
        let change = changes_until_cut(&mut once, work, &mut model, (&mut numbers.clone(), 20));
        if once.has_power() {
            assert!(operation > 20, "{operation}");
            break;
        }
        once.restore_power();
        let new = change.map(|change| {
            let mut new = model.clone();
            note(&mut new, change);
            new
        });
        for second in 0.. {
            let mut twice = once.clone();
            twice.cut_at(second, Cut::ALL[numbers.below(5) as usize]);
            let opened = Tree::open(&mut twice, &options, &mut ram).is_ok();
            let what = format!("cut at {operation} and {second}");
            assert!(opened || !twice.has_power(), "{what}");
            let ends = twice.has_power();
            twice.restore_power();
            let mut found = None;
            for mount in 0..3 {
                let mut index = Tree::open(&mut twice, &options, &mut ram).unwrap();
                let content = crate::content(&mut index);
                assert!(content == model || new.as_ref() == Some(&content), "{what}: {mount}");
                // What was seen once is there for good.
                let seen = found.get_or_insert(content);
                expect_content(&mut index, seen, &what);
            }
            runs += 1;
            if ends {
                break;
            }
        }
    }
    assert!(runs > 100, "only {runs} runs");
}

/// A change is made once if both of its slots are whole, of which the first one failed.
///
/// Otherwise, a mount would count nodes of it twice, for which RAM has no room.
#[test]
fn a_mount_after_a_slot_that_failed_needs_no_more_ram_than_the_change() {
    let capabilities =
        nandina::flash::Capabilities { bad_blocks_per_mille: 250, ..PAGES.capabilities };
    let geometry = Geometry { blocks: 64, ..PAGES.geometry };
    let profile = Profile { geometry, capabilities, ..PAGES };
    let options = OPTIONS.arena_bytes(11 * 168);
    let mut ram = ram(&profile, &options);
    let mut failures = 0;
    for seed in 0..100 {
        let mut chip = Chip::with_seed(profile, seed);
        chip.set_faults(Faults { program_failures: 150, unstable_pages: 1, ..Faults::NONE });
        Tree::format(&mut chip, &options, &mut ram).unwrap();
        let (mut model, mut numbers) = (Model::new(), Numbers(seed));
        for _ in 0..300 {
            // After a close a mount reads each page of the journal once.
            let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
            assert_eq!(crate::content(&mut index), model, "seed {seed}");
            let failed = index.flash().fault_counters().program_failures;
            for _ in 0..30 {
                let change = crate::change(&mut numbers, 60);
                make(&mut index, change).unwrap();
                note(&mut model, change);
                if index.flash().fault_counters().program_failures > failed {
                    failures += 1;
                    break;
                }
            }
            index.close();
            if chip.fault_counters().program_failures > 10 {
                break;
            }
        }
    }
    assert!(failures > 500, "only {failures} failures");
}

/// 10,000 records of 16 bytes on SPI NOR of 4 MiB, each durable; 4 KiB for nodes of 8 children.
///
/// Chip operations follow from the code alone: a change that costs more shows here.
const COSTS: &str = "\
ascending: 11102 programs, 123 erases; 0.717 ms, 0.163 without erases; scan of 100 0.44 ms
clustered: 11461 programs, 147 erases; 0.851 ms, 0.190 without erases; scan of 100 0.58 ms
random: 22777 programs, 888 erases; 5.057 ms, 1.061 without erases; scan of 100 1.08 ms
";

#[test]
fn costs_of_ten_thousand_durable_changes_are_as_pinned() {
    let random = |at: u32| (at.wrapping_mul(0x9E37_79B1)).rotate_left(7) ^ 0x5A5A_1234;
    // Groups of 50 neighbours.
    let clustered = |at: u32| random(at / 50) & !0xFFF | (at % 50);
    let orders: [(&str, &dyn Fn(u32) -> u32); 3] =
        [("ascending", &|at| at), ("clustered", &clustered), ("random", &random)];
    let options = OPTIONS.arena_bytes(4096).fanout(8);
    let mut rows = String::new();
    for (order, key) in orders {
        let mut chip = Chip::new(NOR);
        let mut ram = ram(&NOR, &options);
        let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
        let state = |chip: &Chip| (chip.counters(), chip.now_ns(), chip.time().erase_ns);
        let before = state(index.flash());
        for at in 0..10_000 {
            index.insert(&key(at).to_be_bytes(), &value(at, 0)).unwrap();
        }
        let after = state(index.flash());
        let ms = |ns: u64, operations: u64| ns as f64 / 1e6 / operations as f64;
        let (all, erases) = (after.1 - before.1, after.2 - before.2);
        for at in (0..10_000).step_by(1000) {
            let key = key(at).to_be_bytes();
            let mut range = index.range(&key[..]..).unwrap();
            let read = (0..100).filter(|_| range.next().unwrap().is_some()).count();
            assert!(read > 0);
        }
        let scans = state(index.flash()).1 - after.1;
        rows += &format!(
            "{order}: {} programs, {} erases; {:.3} ms, {:.3} without erases; scan of 100 {:.2} ms\n",
            after.0.programs - before.0.programs,
            after.0.erases - before.0.erases,
            ms(all, 10_000),
            ms(all - erases, 10_000),
            ms(scans, 10),
        );
        let model = (0..10_000).map(|at| (key(at).to_be_bytes(), value(at, 0))).collect();
        expect_content(&mut index, &model, order);
    }
    assert_eq!(rows, COSTS);
}

/// A slot of the newest page may be torn: a mount counts it only after 24 equal reads.
#[test]
fn a_mount_reads_the_newest_page_of_slots_24_times() {
    let (mut chip, mut ram) = (Chip::new(SECTORS), ram(&SECTORS, &OPTIONS));
    let mut index = Tree::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    index.insert(&[0; 4], &value(0, 0)).unwrap();
    // The first page of a session is that of its first change.
    let mut index = Tree::open(&mut chip, &OPTIONS, &mut ram).unwrap();
    for number in 1..4u32 {
        index.insert(&number.to_be_bytes(), &value(number, 0)).unwrap();
    }
    // Of the blocks whose pages are read in a mount, only that of the journal is read so often.
    let reads_in_mount = |chip: &Chip, ram: &mut [u8]| {
        let mut chip = chip.clone();
        let before = chip.counters().reads;
        assert_eq!(Tree::open(&mut chip, &OPTIONS, ram).unwrap().len(), 4);
        chip.counters().reads - before
    };
    let after_cut = reads_in_mount(&chip, &mut ram);
    let mut closed = chip.clone();
    Tree::open(&mut closed, &OPTIONS, &mut ram).unwrap().close();
    let after_end = reads_in_mount(&closed, &mut ram);
    assert!(after_cut >= after_end + 24, "{after_cut} reads after a cut, {after_end} after an end");
    // A slot that reads differently in one of the 24 reads does not count.
    for reads in 0..200 {
        let mut unstable = Chip::with_seed(SECTORS, reads);
        unstable.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
        Tree::format(&mut unstable, &OPTIONS, &mut ram).unwrap();
        let mut index = Tree::open(&mut unstable, &OPTIONS, &mut ram).unwrap();
        index.insert(&[0; 4], &value(0, 0)).unwrap();
        let mut opened = unstable.clone();
        Tree::open(&mut opened, &OPTIONS, &mut ram).unwrap();
        let mount = opened.counters().operations() - unstable.counters().operations();
        unstable.cut_at(mount, Cut::Inside(nandina_sim::Tear::Mixture));
        let mut index = Tree::open(&mut unstable, &OPTIONS, &mut ram).unwrap();
        assert!(index.insert(&[1; 4], &value(1, 0)).is_err());
        unstable.restore_power();
        let len = Tree::open(&mut unstable, &OPTIONS, &mut ram).unwrap().len();
        // What one mount has decided, every later one finds.
        for _ in 0..3 {
            unstable.rest(0);
            assert_eq!(Tree::open(&mut unstable, &OPTIONS, &mut ram).unwrap().len(), len);
        }
    }
}
