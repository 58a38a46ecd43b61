//! A map on demand whose translation pages are on a chip.

use nandina::flash::Geometry;
use nandina::flash::profile::Profile;
use nandina_ftl::ftl::{Ftl, logical_pages_max, ram_needed, space_of};
use nandina_ftl::mapping::demand::{Demand, OnPages};
use nandina_ftl::mapping::{Extent, Mapping, Page, Space};
use nandina_sim::{Chip, Cut, TINY};

use crate::numbers::Numbers;

/// What a map needs of the chip of its translation pages.
fn chip_for(space: Space) -> (Profile, u32) {
    let needed = OnPages::<Ftl<'_, Chip, Page<'_>>>::pages_needed(space, 512).unwrap();
    let geometry = Geometry { blocks: 32, ..TINY.geometry };
    assert!(needed <= logical_pages_max(&geometry, &TINY.capabilities), "{needed} pages");
    (Profile { geometry, ..TINY }, needed)
}

const SPACE: Space = Space { logical: 6000, physical: 9000 };

/// Calls `work` with a map on a new chip.
fn with<T>(
    cut_at: Option<u64>,
    work: impl FnOnce(&mut Demand<'_, OnPages<Ftl<'_, &mut Chip, Page<'_>>>>) -> T,
) -> T {
    let (profile, needed) = chip_for(SPACE);
    let Profile { geometry, capabilities, .. } = profile;
    let directory = space_of(&geometry, &capabilities, needed);
    let (mut ram, mut places) = (vec![0; ram_needed(&geometry)], vec![0; 4 * needed as usize]);
    let mut chip = Chip::new(profile);
    let places = Page::new(directory, &mut places).unwrap();
    if let Some(at) = cut_at {
        chip.cut_at(at, Cut::ALL[0]);
    }
    let ftl = Ftl::format(&mut chip, places, needed, &mut ram).unwrap();
    let mut memory = vec![0; Demand::<OnPages<Ftl<'_, Chip, Page<'_>>>>::bytes_for(SPACE)];
    let pages = OnPages::new(ftl).unwrap();
    work(&mut Demand::new(SPACE, &mut memory, pages).unwrap())
}

#[test]
fn a_map_whose_translation_pages_are_collected_leads_where_a_vector_does() {
    let mut model = vec![None; SPACE.logical as usize];
    with(None, |map| {
        let mut numbers = Numbers(5);
        for step in 0..4000 {
            let start = numbers.below(SPACE.logical);
            let length = (1 + numbers.below(4)).min(SPACE.logical - start);
            let (extent, physical) = (Extent::new(start, length), numbers.below(8990));
            let places = &mut model[start as usize..][..length as usize];
            let mut superseded = 0;
            if step % 10 == 9 {
                map.remove(extent, &mut |run| superseded += run.length).unwrap();
                assert_eq!(superseded as usize, places.iter().flatten().count());
                places.fill(None);
            } else {
                map.update(extent, physical, &mut |run| superseded += run.length).unwrap();
                assert_eq!(superseded as usize, places.iter().flatten().count());
                places.iter_mut().zip(physical..).for_each(|(place, at)| *place = Some(at));
            }
        }
        for (unit, expected) in (0..).zip(&model) {
            let mut found = None;
            map.look_up(Extent::new(unit, 1), &mut |piece| found = piece.physical).unwrap();
            assert_eq!(found, *expected, "unit {unit}");
        }
        let (done, work) = (map.pages().statistics(), map.work());
        println!("{done:?}, {work:?}");
        assert_eq!(done.host_writes, 8 * work.flash_writes);
        assert!(done.erases > 100, "{done:?}");
        assert!(!map.pages().has_failed());
        map.check().unwrap();
    });
}

#[test]
fn a_map_says_that_the_chip_of_its_translation_pages_has_failed() {
    let failed = with(Some(1000), |map| {
        let mut numbers = Numbers(5);
        (0..4000).any(|_| {
            map.update(Extent::new(numbers.below(SPACE.logical), 1), 1, &mut |_| {}).unwrap();
            map.pages().has_failed()
        })
    });
    assert!(failed);
}

#[test]
fn a_translation_page_is_a_whole_number_of_logical_pages() {
    type OnChip<'a> = OnPages<Ftl<'a, Chip, Page<'a>>>;
    let needed = |bytes| OnChip::pages_needed(SPACE, bytes);
    assert_eq!([512, 2048, 4096].map(needed), [Some(48), Some(12), Some(6)]);
    assert_eq!([0, 472, 8192].map(needed), [None; 3]);
}
