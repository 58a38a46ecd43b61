//! The example of an engine of one's own (`nandina-lab/own/slots.rs`) under cuts and swarms.

#[path = "../own/slots.rs"]
mod slots;

use std::collections::BTreeMap;

use nandina::flash::{Capabilities, Flash, Geometry, PageNumber, Profile};
use nandina::{Index, Inserted, OpenError, Options, Removed, key, plan, ram_needed};
use nandina_lab::torture::{CutRun, Episode, Hardships, Mode, cut_everywhere, episode};
use nandina_sim::{Chip, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slots::Slots;

const OPTIONS: Options = Options::new(4, 12);

/// A small device whose pages are replaced as a whole.
const CHIP: Profile = Profile {
    geometry: Geometry { blocks: 96, ..TINY.geometry },
    capabilities: Capabilities {
        rewrite: true,
        atomic_rewrite: true,
        bad_blocks_per_mille: 0,
        ..TINY.capabilities
    },
    ..TINY
};

#[test]
fn it_holds_what_a_map_holds() {
    let mut chip = Chip::new(CHIP);
    let mut ram = vec![0xA5; ram_needed::<Slots>(&chip.geometry(), &OPTIONS)];
    let mut index = Index::<_, Slots>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    let (mut model, mut random) = (BTreeMap::new(), ChaCha8Rng::seed_from_u64(1));
    for turn in 0..9_000u32 {
        let key = key::from_u32(random.random_range(0..1_500));
        if random.random_range(0..5) < 3 {
            let value = [turn as u8; 12];
            let is_new = index.insert(&key, &value).unwrap() == Inserted::New;
            assert_eq!(is_new, model.insert(key, value).is_none());
        } else {
            let removed = index.remove(&key).unwrap() == Removed::Found;
            assert_eq!(removed, model.remove(&key).is_some());
        }
        if turn % 500 == 0 {
            index.check(|violation| panic!("{violation}")).unwrap();
        }
    }
    assert_eq!(index.len() as usize, model.len());
    for number in 0..1_500 {
        let key = key::from_u32(number);
        assert_eq!(index.get(&key).unwrap(), model.get(&key).map(|value| &value[..]));
    }
}

#[test]
fn a_cut_at_every_operation_leaves_the_old_or_the_new_state() {
    // A change is one chip operation, so that there are more records than for other systems.
    let run = CutRun { records: 40, ..CutRun::SMALL };
    for run in [run, CutRun { lean: true, ..run }] {
        let chip = run.chip::<Slots>(1);
        let report = cut_everywhere::<Slots, _>(chip, run, Mode::Linear, 1, &|_| {});
        assert_eq!(report.violations, []);
        assert!(report.cuts > 500, "only {} cuts", report.cuts);
    }
}

#[test]
fn swarms_of_faults_lose_nothing() {
    let (mut operations, mut cuts) = (0, 0);
    for seed in 1..=20 {
        for unstable in [false, true] {
            let hardships = Hardships { unstable, ..Hardships::NONE };
            let mut done = Episode::default();
            episode::<Slots>(seed, hardships, &mut done).unwrap();
            operations += done.operations;
            cuts += done.faults.cuts;
        }
    }
    assert!(operations > 40_000 && cuts > 1_000, "{operations} operations, {cuts} cuts");
}

#[test]
fn a_change_writes_one_page() {
    let mut chip = Chip::new(CHIP);
    let mut ram = vec![0xA5; ram_needed::<Slots>(&chip.geometry(), &OPTIONS)];
    let mut index = Index::<_, Slots>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    let before = index.flash().counters().rewrites;
    for at in 0..200 {
        index.insert(&key::from_u32(at), &[1; 12]).unwrap();
    }
    assert_eq!(index.flash().counters().rewrites - before, 200);
}

#[test]
fn chips_that_cannot_carry_it_are_refused() {
    let geometry = Geometry { blocks: u32::MAX, pages_per_block: u32::MAX, ..CHIP.geometry };
    assert!(ram_needed::<Slots>(&geometry, &OPTIONS) > 0);
    let planned = plan::<Slots>(&geometry, &CHIP.capabilities, &OPTIONS, 1);
    assert!(matches!(planned, Err(OpenError::BadOption { .. })), "{planned:?}");
    let mut ram = vec![0; ram_needed::<Slots>(&TINY.geometry, &OPTIONS)];
    let refused = Index::<_, Slots>::format(&mut Chip::new(TINY), &OPTIONS, &mut ram).err();
    assert!(matches!(refused, Some(OpenError::Unsuited(_))), "{refused:?}");
}

#[test]
fn a_damaged_page_is_an_error_that_names_it() {
    let mut whole = Chip::new(CHIP);
    let mut ram = vec![0; ram_needed::<Slots>(&CHIP.geometry, &OPTIONS)];
    let mut index = Index::<_, Slots>::format(&mut whole, &OPTIONS, &mut ram).unwrap();
    for at in 0..60 {
        index.insert(&key::from_u32(at), &[1; 12]).unwrap();
    }
    for page in [0, 1, 2].map(PageNumber) {
        let mut chip = whole.clone();
        chip.corrupt_page(page, |main, _| main[9] ^= 0x55);
        let opened = Index::<_, Slots>::open(&mut chip, &OPTIONS, &mut ram).err();
        let is_named =
            matches!(opened, Some(OpenError::Corrupt { page: named, .. }) if named == page);
        assert!(is_named, "{page:?}: {opened:?}");
    }
}
