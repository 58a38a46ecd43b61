//! The example of an engine of one's own (`nandina-lab/own/slots.rs`) under cuts and swarms.

mod example;
#[path = "../own/slots.rs"]
mod slots;

use example::{OPTIONS, hold_what_a_map_holds, survive_every_cut, survive_swarms};
use nandina::flash::{Capabilities, Flash, Geometry, PageNumber, Profile};
use nandina::{Index, OpenError, key, plan, ram_needed};
use nandina_lab::torture::CutRun;
use nandina_sim::{Chip, TINY};
use slots::Slots;

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
    hold_what_a_map_holds::<Slots>(CHIP);
}

#[test]
fn a_cut_at_every_operation_leaves_the_old_or_the_new_state() {
    // A change is one chip operation, so that there are more records than for other systems.
    survive_every_cut::<Slots>(CutRun { records: 40, ..CutRun::SMALL });
}

#[test]
fn swarms_of_faults_lose_nothing() {
    survive_swarms::<Slots>();
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
