//! Pages that were lost without a cut: all ways to mount lead to one directory, or to an error.

use nandina::flash::{Geometry, PageNumber, Profile};
use nandina::node::PageLayout;
use nandina::store::{Rosette, Way};
use nandina::{Index, OpenError, Options, ReadError, key};
use nandina_sim::{Chip, TINY};

use crate::ways::{Model, Random, found, ram};

/// Leaves of four records, so that every third page or so divides a range.
const OPTIONS: Options = Options { checkpoints: Some(8), ..Options::new(4, 100) };

/// An index whose last pages are newer than its checkpoint, and what it holds.
fn grown(seed: u64) -> (Chip, Model) {
    let geometry = Geometry { blocks: 40, pages_per_block: 11, ..TINY.geometry };
    let mut chip = Chip::with_seed(Profile { geometry, ..TINY }, seed);
    let (mut memory, mut model) = (ram(&chip, &OPTIONS), Model::new());
    let mut random = Random::new(seed);
    let mut index = Index::<_, Rosette>::format(&mut chip, &OPTIONS, &mut memory).unwrap();
    for turn in 0..400u32 {
        let key = key::from_u32(random.below(600)).to_vec();
        let value = [&turn.to_le_bytes()[..], &[7; 96]].concat();
        index.insert(&key, &value).unwrap();
        model.insert(key, value);
        if turn == 340 {
            assert!(index.checkpoint().unwrap());
        }
    }
    (chip, model)
}

/// The pages that were programmed last, from the newest on.
fn newest_pages(chip: &Chip, count: usize) -> Vec<PageNumber> {
    let geometry = chip.profile().geometry;
    let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
    let mut chip = chip.clone();
    let mut pages = Vec::new();
    for page in (0..geometry.pages()).map(PageNumber) {
        chip.corrupt_page(page, |main, spare| {
            let bytes = [&*main, &*spare].concat();
            if let Ok(header) = layout.open(&bytes[..layout.frame_bytes()]) {
                pages.push((header.sequence, page));
            }
        });
    }
    pages.sort_unstable();
    pages.into_iter().rev().take(count).map(|(_, page)| page).collect()
}

#[test]
fn a_page_that_is_lost_behind_the_checkpoint_is_an_error_or_its_range_has_the_page_before() {
    let (mut told, mut read, mut refused) = (0, 0, 0);
    for seed in 0..12 {
        let (whole, model) = grown(seed);
        let intact = found(&whole, &OPTIONS, Way::Trails).unwrap().0.unwrap();
        for lost in newest_pages(&whole, 50) {
            let mut chip = whole.clone();
            chip.corrupt_page(lost, |main, _| main[3] ^= 0x55);
            let by_trails = found(&chip, &OPTIONS, Way::Trails).unwrap().0.unwrap();
            let by_all = found(&chip, &OPTIONS, Way::Checkpoint).unwrap().0.unwrap();
            if by_trails == by_all {
                // It was read, and so were all others then; or a newer page owns its range.
                read += 1;
                continue;
            }
            // It was not read: the directory is that of the whole chip, and the page an error if it
            // still owns a range.
            told += 1;
            let owns = by_trails.directory != by_all.directory;
            assert_eq!(by_trails.directory, intact.directory, "{lost}");
            let mut memory = ram(&chip, &OPTIONS);
            let mut index = match Index::<_, Rosette>::open(&mut chip, &OPTIONS, &mut memory) {
                Ok(index) => index,
                Err(OpenError::Corrupt { .. }) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{lost}: {error}"),
            };
            let mut errors = 0;
            for (key, value) in &model {
                match index.get(key) {
                    Ok(found) => assert_eq!(found, Some(&value[..]), "{lost}"),
                    Err(ReadError::Corrupt { .. }) => errors += 1,
                    Err(error) => panic!("{lost}: {error}"),
                }
            }
            assert_eq!(errors > 0, owns, "{lost}: {errors} errors");
        }
    }
    println!("{told} of which a trail told, {read} that were read, {refused} refused");
    assert!(told > 20 && read > 20);
    assert_eq!(refused, 0);
}

#[test]
fn a_medium_whose_leaves_have_no_trails_is_told_by_its_version() {
    let (mut chip, _) = grown(1);
    let geometry = chip.profile().geometry;
    let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
    assert!(layout.has_header_beside());
    for page in (0..geometry.pages()).map(PageNumber) {
        chip.corrupt_page(page, |_, spare| {
            if spare[4..6] == *b"Nd" {
                assert_eq!(spare[6..8], [2, 7], "version and system");
                spare[6] = 1;
            }
        });
    }
    let mut memory = ram(&chip, &OPTIONS);
    let opened = Index::<_, Rosette>::open(&mut chip, &OPTIONS, &mut memory);
    assert!(matches!(opened, Err(OpenError::Version { found: 1 })));
}
