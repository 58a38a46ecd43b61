//! Formats over anything: H7, and which chips and settings are refused.

use nandina::flash::{Geometry, Profile, profile::MLC, profile::NOR};
use nandina::store::{RosetteNor, VmOw};
use nandina::{BadOption, Index, OpenError, Options, key, ram_needed};
use nandina_sim::{Chip, Cut, Faults};

use crate::cuts::TINY;
use crate::model::{Model, OPTIONS, Random, SMALL, compare, ram, value};

fn opened<'b>(chip: &'b mut Chip, ram: &'b mut [u8]) -> Index<'b, &'b mut Chip, RosetteNor> {
    Index::<_, RosetteNor>::open(chip, &OPTIONS, ram).unwrap()
}

/// A chip with an index of some records.
fn filled(profile: Profile, unstable: bool, ends: bool) -> (Chip, Model) {
    let mut chip = Chip::new(profile);
    chip.set_faults(Faults { unstable_pages: u32::from(unstable), ..Faults::NONE });
    let mut ram = ram(&profile, &OPTIONS);
    let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    let (mut model, mut random) = (Model::new(), Random::new(8));
    for turn in 0..80 {
        let key = key::from_u32(random.below(60));
        index.insert(&key, &value(turn)).unwrap();
        model.insert(key, value(turn));
    }
    if ends {
        index.close();
    }
    (chip, model)
}

#[test]
fn h7_a_cut_at_every_operation_of_a_format_leaves_the_old_index_or_none() {
    let mut ram = ram(&TINY, &OPTIONS);
    let mut cuts = [0; 2];
    for (unstable, ends) in [(false, false), (false, true), (true, false), (true, true)] {
        let (whole, model) = filled(TINY, unstable, ends);
        for cut in Cut::ALL {
            for at in 0.. {
                let mut chip = whole.clone();
                chip.cut_at(at, cut);
                let formatted = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram);
                let is_done = formatted.is_ok();
                chip.restore_power();
                let mut index = opened(&mut chip, &mut ram);
                let is_empty = index.is_empty();
                let model = if is_empty { Model::new() } else { model.clone() };
                compare(&mut index, &model);
                assert!(is_empty || !is_done);
                // What it is now it stays, whatever is written.
                let mut model = model;
                for turn in 0..40 {
                    let key = key::from_u32(turn * 2);
                    index.insert(&key, &value(turn)).unwrap();
                    model.insert(key, value(turn));
                }
                for _ in 0..3 {
                    compare(&mut opened(&mut chip, &mut ram), &model);
                }
                if is_done {
                    break;
                }
                cuts[usize::from(is_empty)] += 1;
            }
        }
    }
    assert!(cuts[0] > 500 && cuts[1] > 10, "{cuts:?}");
}

#[test]
fn a_format_costs_one_erase() {
    let mut chip = Chip::new(NOR);
    let mut ram = ram(&NOR, &OPTIONS);
    Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).unwrap();
    assert_eq!(chip.counters().erases, 1);
    let mut index = opened(&mut chip, &mut ram);
    compare(&mut index, &Model::new());
}

#[test]
fn blank_foreign_and_other_media_are_told_apart() {
    let mut ram = ram(&SMALL, &OPTIONS);
    let mut chip = Chip::new(SMALL);
    let mut open = |chip: &mut Chip, options: Options| {
        ram.resize(ram.len().max(ram_needed::<RosetteNor>(&SMALL.geometry, &options)), 0);
        Index::<_, RosetteNor>::open(chip, &options, &mut ram).err()
    };
    assert!(matches!(open(&mut chip, OPTIONS), Some(OpenError::Blank)));
    for page in 0..20 {
        chip.corrupt_page(nandina::flash::PageNumber(page), |main, _| main.fill(0x5A));
    }
    assert!(matches!(open(&mut chip, OPTIONS), Some(OpenError::NotNandina)));
    let mut chip = filled(SMALL, false, true).0;
    let error = open(&mut chip, Options::new(4, 13));
    let is_other = matches!(
        error,
        Some(OpenError::Mismatch { setting: "value size", found: 12, expected: 13 })
    );
    assert!(is_other, "{error:?}");
    assert!(open(&mut chip, OPTIONS).is_none());
}

#[test]
fn a_format_replaces_an_index_of_another_system_and_is_replaced_by_it() {
    let profile = Profile { geometry: Geometry { blocks: 40, ..SMALL.geometry }, ..SMALL };
    let mut ours = ram(&profile, &OPTIONS);
    let mut theirs = vec![0; ram_needed::<VmOw>(&profile.geometry, &OPTIONS)];
    let mut chip = Chip::new(profile);
    for _ in 0..3 {
        let mut index = Index::<_, VmOw>::format(&mut chip, &OPTIONS, &mut theirs).unwrap();
        for turn in 0..60 {
            index.insert(&key::from_u32(turn), &value(turn)).unwrap();
        }
        index.close();
        let error = Index::<_, RosetteNor>::open(&mut chip, &OPTIONS, &mut ours).err();
        let is_other = matches!(error, Some(OpenError::Mismatch { setting: "system number", .. }));
        assert!(is_other, "{error:?}");
        let mut index = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ours).unwrap();
        let mut model = Model::new();
        for turn in 0..200 {
            let key = key::from_u32(turn % 90);
            index.insert(&key, &value(turn)).unwrap();
            model.insert(key, value(turn));
        }
        compare(&mut index, &model);
        compare(&mut Index::<_, RosetteNor>::open(&mut chip, &OPTIONS, &mut ours).unwrap(), &model);
        let error = Index::<_, VmOw>::open(&mut chip, &OPTIONS, &mut theirs).err();
        let is_other = matches!(error, Some(OpenError::Mismatch { setting: "system number", .. }));
        assert!(is_other, "{error:?}");
    }
}

#[test]
fn chips_and_settings_that_do_not_suit_are_refused() {
    let refused = |profile: Profile, options: Options| {
        let mut ram = vec![0; ram_needed::<RosetteNor>(&profile.geometry, &options)];
        Index::<_, RosetteNor>::format(&mut Chip::new(profile), &options, &mut ram).err()
    };
    assert!(matches!(refused(MLC.with_blocks(8), OPTIONS), Some(OpenError::Unsuited(_))));
    assert!(matches!(
        refused(SMALL.with_blocks(4), OPTIONS),
        Some(OpenError::ChipTooSmall { limit_pages: 1 })
    ));
    assert!(matches!(
        refused(SMALL, Options::new(4, 600)),
        Some(OpenError::RecordTooLarge { record_bytes: 604, .. })
    ));
    let options = Options { checkpoints: Some(2), ..OPTIONS };
    assert!(matches!(
        refused(SMALL, options),
        Some(OpenError::BadOption { reason: BadOption::NoCheckpoints })
    ));
    let mut ram = vec![0; ram_needed::<RosetteNor>(&SMALL.geometry, &OPTIONS) - 1];
    let mut chip = Chip::new(SMALL);
    let error = Index::<_, RosetteNor>::format(&mut chip, &OPTIONS, &mut ram).err();
    assert!(matches!(error, Some(OpenError::RamTooSmall { .. })));
}
