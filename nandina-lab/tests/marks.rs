//! Every coverage mark of the library is reached: each rare branch is taken by some test.
//!
//! A mark is noted for a whole process, so this is a program of its own: among other tests, one of
//! them could reach a mark that the cases here no longer reach. The cases are the same every day. If
//! a change of the library moves the cuts away from a branch, more episodes lead to it again.

use nandina::flash::profile::NOR;
use nandina::flash::{Flash, Geometry, PageNumber, Profile};
use nandina::marks::{NAMES, REACHED};
use nandina::store::{Mu, Rosette, SYSTEMS, Tnc, Vm, VmOw};
use nandina::{Change, Index, Options, System, key, ram_needed};
use nandina_lab::effort::{Effort, effort};
use nandina_lab::torture::{CutRun, Hardships, Mode, Outcome, Torture, replay, torture};
use nandina_sim::{Chip, Cut, Faults, TINY, Tear};

/// Marks that only a long run reaches, each with the reason.
const RARE: &[(&str, &str)] = &[
    ("a checkpoint cannot be erased", "the erase of the one block of checkpoints has to fail"),
    (
        "a leaf owns two ranges because one between them is lost",
        "a page has to fade between two mounts, and of a leaf that was split and merged since",
    ),
    ("an anchor cannot be erased", "the erase of one of two blocks has to fail"),
    ("an erase silently did nothing", "that erase has to fail without a report"),
    ("an erase silently left a leaf", "that erase has to leave a page without a report"),
    ("an erase silently left a page", "that erase has to leave a page without a report"),
    (
        "an erase silently left a page behind a newest leaf",
        "that erase has to leave a page without a report",
    ),
    (
        "an erase silently left a page behind those of tnc",
        "that erase has to leave a page without a report",
    ),
    ("room ends while a mount settles", "a mount after a cut, on a chip that is nearly full"),
    ("settling begins with no room but what is held", "a cut on a full chip"),
    ("settling needs what was held", "a mount after a cut, on a chip that is nearly full"),
    ("the block of the last session page is written again", "cuts in a row, and no block is free"),
    ("the state before the newest leaf is gone", "cuts in a row while the directory is full"),
];

const SEED: u64 = 1;

const OPTIONS: Options = Options::new(4, 60);

/// Operations of each system in a swarm: 20 episodes, or 150 with full effort.
fn operations() -> u64 {
    if effort() == Effort::Full { 300_000 } else { 40_000 }
}

/// Tortures the systems with these keys.
fn survive(keys: &[&str], mode: Mode, run: CutRun) {
    for key in keys {
        let what = Torture { mode, seed: SEED, run, operations: operations() };
        let report = torture(key, what, &|_| {}).unwrap();
        assert_eq!(report.violations, [], "{key}");
    }
}

/// RAM for an index of system `S` on `chip`.
fn ram<S: System>(chip: &Chip, options: &Options) -> Vec<u8> {
    vec![0xA5; ram_needed::<S>(&chip.geometry(), options)]
}

/// Upserts records with the keys 0 to `count` - 1 until the device fails.
fn fill<S: System>(index: &mut Index<'_, &mut Chip, S>, count: u32, value: u8) {
    let _ = (0..count).try_for_each(|number| {
        index.insert(&key::from_u32(number), &[value; 60]).map(|_| ()).map_err(|_| ())
    });
}

/// Opens an index of which a page is damaged, each page in turn.
///
/// A swarm damages no page for good.
fn open_damaged() {
    let new = Chip::new(TINY);
    let mut ram = ram::<Vm>(&new, &OPTIONS);
    for count in 20..24 {
        let mut whole = new.clone();
        fill(&mut Index::<_, Vm>::format(&mut whole, &OPTIONS, &mut ram).unwrap(), count, 1);
        for page in (0..whole.geometry().pages()).map(PageNumber) {
            let mut chip = whole.clone();
            chip.corrupt_page(page, |main, _| main[9] ^= 0x55);
            // Whether it opens depends on the page.
            let _ = Index::<_, Vm>::open(&mut chip, &OPTIONS, &mut ram);
        }
    }
}

/// Opens an index after a cut in an append, on a chip that takes no program any more.
///
/// A swarm mounts only chips of which most programs succeed.
fn open_read_only() {
    let mut whole = Chip::new(NOR.with_blocks(16));
    whole.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
    let mut ram = ram::<VmOw>(&whole, &OPTIONS);
    fill(&mut Index::<_, VmOw>::format(&mut whole, &OPTIONS, &mut ram).unwrap(), 20, 1);
    // Each leaf is written once after the mount; then its changes are appended to it.
    let change = |chip: &mut Chip, ram: &mut [u8]| {
        if let Ok(mut index) = Index::<_, VmOw>::open(&mut *chip, &OPTIONS, ram) {
            (2..5).for_each(|value| fill(&mut index, 3, value));
        }
        chip.counters().operations()
    };
    let operations = change(&mut whole.clone(), &mut ram) - whole.counters().operations();
    for operation in 0..operations {
        let mut chip = whole.clone();
        chip.cut_at(operation, Cut::Inside(Tear::Mixture));
        change(&mut chip, &mut ram);
        chip.restore_power();
        chip.set_faults(Faults { program_failures: 1, erase_failures: 1, ..Faults::NONE });
        let mut index = Index::<_, VmOw>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
        assert_eq!(index.get(&key::from_u32(9)).unwrap(), Some(&[1; 60][..]));
    }
}

/// Opens leaves after a cut, on a chip that takes no program any more.
fn open_leaves_read_only() {
    let mut chip = Chip::new(TINY);
    let mut ram = ram::<Rosette>(&chip, &OPTIONS);
    fill(&mut Index::<_, Rosette>::format(&mut chip, &OPTIONS, &mut ram).unwrap(), 20, 1);
    chip.set_faults(Faults { program_failures: 1, erase_failures: 1, ..Faults::NONE });
    let mut index = Index::<_, Rosette>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
    assert_eq!(index.get(&key::from_u32(9)).unwrap(), Some(&[1; 60][..]));
}

/// Opens an index again and again, each time with a cut at the same operation of the mount.
///
/// So one of these mounts opens a block and writes no checkpoint, until the list of the newest ends.
fn open_and_cut() {
    let options = OPTIONS.checkpoints(4);
    let mut whole = Chip::new(TINY.with_blocks(24));
    let mut ram = ram::<Mu>(&whole, &options);
    fill(&mut Index::<_, Mu>::format(&mut whole, &options, &mut ram).unwrap(), 60, 1);
    for operation in 0..50 {
        let mut chip = whole.clone();
        for _ in 0..12 {
            chip.cut_at(operation, Cut::Before);
            let _ = Index::<_, Mu>::open(&mut chip, &options, &mut ram);
            chip.restore_power();
        }
        let mut index = Index::<_, Mu>::open(&mut chip, &options, &mut ram).unwrap();
        assert_eq!(index.get(&key::from_u32(7)).unwrap(), Some(&[1; 60][..]));
    }
}

/// Opens an index in which programs have failed since its last checkpoint.
///
/// A swarm seldom ends a session between the two.
fn open_beside_bad_blocks() {
    let options = OPTIONS.checkpoints(4);
    for seed in 0..40 {
        let mut chip = Chip::with_seed(TINY.with_blocks(24), seed);
        let mut ram = ram::<Vm>(&chip, &options);
        let mut index = Index::<_, Vm>::format(&mut chip, &options, &mut ram).unwrap();
        fill(&mut index, 30, 1);
        assert!(index.checkpoint().unwrap());
        chip.set_faults(Faults { program_failures: 9, ..Faults::NONE });
        let mut index = Index::<_, Vm>::open(&mut chip, &options, &mut ram).unwrap();
        fill(&mut index, 5, 1);
        chip.set_faults(Faults::NONE);
        let mut index = Index::<_, Vm>::open(&mut chip, &options, &mut ram).unwrap();
        assert_eq!(index.get(&key::from_u32(7)).unwrap(), Some(&[1; 60][..]));
    }
}

/// Opens leaves of which a batch was cut, at each of its changes of the chip.
///
/// A swarm writes no batches.
fn open_cut_batches() {
    let options = OPTIONS.checkpoints(1);
    let mut whole = Chip::new(TINY.with_blocks(24));
    let mut ram = ram::<Rosette>(&whole, &options);
    fill(&mut Index::<_, Rosette>::format(&mut whole, &options, &mut ram).unwrap(), 60, 1);
    let keys = [0, 16, 32, 48].map(key::from_u32);
    let batch = keys.each_ref().map(|key| Change::Put { key, value: &[2; 60] });
    for change in 0..60 {
        let mut chip = whole.clone();
        let mut index = Index::<_, Rosette>::open(&mut chip, &options, &mut ram).unwrap();
        index.write_batch(&batch).unwrap();
        chip.cut_at_change(change, Cut::After);
        if let Ok(mut index) = Index::<_, Rosette>::open(&mut chip, &options, &mut ram) {
            let again = keys.each_ref().map(|key| Change::Put { key, value: &[3; 60] });
            for batch in [again, batch, again, batch] {
                let _ = index.write_batch(&batch);
            }
        }
        chip.restore_power();
        let mut index = Index::<_, Rosette>::open(&mut chip, &options, &mut ram).unwrap();
        let mut value = |key| index.get(key).unwrap().map(<[u8]>::to_vec);
        let values = keys.each_ref().map(|key| value(key));
        assert!(values.iter().all(|other| *other == values[0]), "{values:?}");
    }
}

/// Opens an index of so many records of which a page has rotted, whichever it is.
fn open_rotten<S: System>(records: u32) {
    let options = OPTIONS.checkpoints(4);
    let mut whole = Chip::new(TINY.with_blocks(24));
    let mut ram = ram::<S>(&whole, &options);
    fill(&mut Index::<_, S>::format(&mut whole, &options, &mut ram).unwrap(), records, 1);
    for page in (0..whole.geometry().pages()).map(PageNumber) {
        let mut chip = whole.clone();
        if chip.page_is_erased(page) {
            continue;
        }
        chip.corrupt_page(page, |main, _| main.reverse());
        let Ok(mut index) = Index::<_, S>::open(&mut chip, &options, &mut ram) else { continue };
        // What is there was stored.
        let found = index.get(&key::from_u32(7));
        assert!(found.is_err() || [None, Some(&[1; 60][..])].contains(&found.unwrap()));
    }
}

/// Opens an index over which a format was cut in one of its last operations.
///
/// A swarm cuts few formats in the program of the root, and seldom does a mount read the torn root
/// in both ways.
fn open_after_torn_format() {
    let mut whole = Chip::new(TINY);
    whole.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
    let mut ram = ram::<Mu>(&whole, &OPTIONS);
    fill(&mut Index::<_, Mu>::format(&mut whole, &OPTIONS, &mut ram).unwrap(), 20, 1);
    let mut complete = whole.clone();
    assert!(Index::<_, Mu>::format(&mut complete, &OPTIONS, &mut ram).is_ok());
    let operations = complete.counters().operations() - whole.counters().operations();
    for operation in operations - 4..operations {
        let mut cut = whole.clone();
        cut.cut_at(operation, Cut::Inside(Tear::Mixture));
        assert!(Index::<_, Mu>::format(&mut cut, &OPTIONS, &mut ram).is_err());
        cut.restore_power();
        for rests in 0..32 {
            // With each rest the torn page reads otherwise.
            let mut chip = cut.clone();
            (0..rests).for_each(|_| chip.rest(0));
            let index = Index::<_, Mu>::open(&mut chip, &OPTIONS, &mut ram).unwrap();
            assert!([0, 20].contains(&index.len()), "{} records", index.len());
        }
    }
}

/// Opens an index with less RAM for nodes than its journal changes.
fn open_with_less_ram() {
    let geometry = Geometry { page_bytes: 2048, pages_per_block: 16, blocks: 60, ..TINY.geometry };
    let mut chip = Chip::new(Profile { geometry, ..TINY });
    let options = Options::new(4, 12).fanout(6).journal_pages(200);
    let (much, little) = (options.arena_bytes(24_000), options.arena_bytes(3_520));
    let mut memory = ram::<Tnc>(&chip, &much);
    let mut index = Index::<_, Tnc>::format(&mut chip, &much, &mut memory).unwrap();
    for number in 0..120 {
        index.insert(&key::from_u32(number * 37 % 120), &[1; 12]).unwrap();
    }
    let mut index = Index::<_, Tnc>::open(&mut chip, &little, &mut memory).unwrap();
    assert_eq!(index.get(&key::from_u32(59)).unwrap(), Some(&[1; 12][..]));
    assert_eq!(index.len(), 120);
}

#[test]
fn every_rare_branch_is_reached() {
    let keys: Vec<_> = SYSTEMS.iter().map(|system| system.key).collect();
    let hardships = Hardships { unstable: true, ..Hardships::NONE };
    survive(&keys, Mode::Swarm, CutRun { hardships, ..CutRun::SMALL });
    if effort() == Effort::Full {
        survive(&keys, Mode::Swarm, CutRun::SMALL);
    }
    // Cuts of a run with a checkpoint after every few changes.
    survive(&["mu"], Mode::Linear, CutRun { checkpoints: Some(1), ..CutRun::SMALL });
    // And of one in which a checkpoint takes several blocks.
    let narrow = Hardships { narrow: true, ..Hardships::NONE };
    let several = CutRun { checkpoints: Some(1), hardships: narrow, ..CutRun::NARROW };
    survive(&["mu"], Mode::Linear, several);
    // Pages that commit are also the first of a block.
    let unstable = Hardships { unstable: true, ..Hardships::NONE };
    survive(&["vm"], Mode::Linear, CutRun { hardships: unstable, ..CutRun::SMALL });
    // A session page is cut.
    survive(&["btree"], Mode::Linear, CutRun { hardships: unstable, ..CutRun::SMALL });
    // The erase of the only free block fails, which holds the newest pages. And a program fails,
    // and the one after it is cut.
    for episode in ["vm-ow/seed 142583", "vm/seed 3026116188"] {
        let case = format!("swarm/{episode} unstable changed formats errors");
        assert_eq!(replay(&case).unwrap(), Outcome::Survived);
    }
    open_damaged();
    open_rotten::<Vm>(50);
    // Pages after the last checkpoint, some of which divide ranges.
    (36..50).for_each(open_rotten::<Rosette>);
    open_read_only();
    open_leaves_read_only();
    open_and_cut();
    open_cut_batches();
    open_beside_bad_blocks();
    open_after_torn_format();
    open_with_less_ram();

    let reached: Vec<_> = REACHED.among(NAMES).collect();
    let is_due =
        |name: &&&str| effort() == Effort::Full || RARE.iter().all(|(rare, _)| rare != *name);
    let missing: Vec<_> =
        NAMES.iter().filter(is_due).filter(|name| !reached.contains(*name)).collect();
    assert!(missing.is_empty(), "not reached: {missing:#?}");
    println!("reached: {} of {}", reached.len(), NAMES.len());
}

#[test]
fn each_mark_that_is_rare_exists() {
    for (rare, reason) in RARE {
        assert!(NAMES.contains(rare), "{rare}: no such mark");
        assert!(!reason.is_empty(), "{rare}: no reason");
    }
}
