//! Pages count with the last one of their group, and a damaged one is an error.

use nandina::flash::{Flash, PageNumber};
use nandina::log::layout_of;
use nandina::node::PageHeader;
use nandina::{Index, OpenError, System, key, plan, ram_needed};
use nandina_lab::rivals::{Bftl, LaTree, MbTree};
use nandina_sim::{Chip, Cut, TINY};

use crate::common::{CHIP, Model, chip, contents, options, with};

/// The header of each page that has one.
fn headers(chip: &mut Chip) -> Vec<(u32, PageHeader)> {
    let layout = layout_of(&chip.geometry());
    let mut frame = vec![0; layout.frame_bytes()];
    let mut headers = Vec::new();
    for page in 0..chip.geometry().pages() {
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        chip.read(PageNumber(page), main, spare).unwrap();
        headers.extend(layout.open(&frame).ok().map(|header| (page, header)));
    }
    headers
}

/// Pages of changes that wait for another node than the root, also of those that count no longer.
pub fn pages_below_the_root(chip: &mut Chip) -> usize {
    let layout = layout_of(&chip.geometry());
    let mut frame = vec![0; layout.frame_bytes()];
    let mut pages = 0;
    for (page, header) in headers(chip) {
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        chip.read(PageNumber(page), main, spare).unwrap();
        pages += usize::from(header.tag == 1 && frame[16..20] != [0xFF; 4]);
    }
    pages
}

/// Inserts a record, and looks another one up so often that buffers are emptied.
fn insert_and_look<S: System>(chip: &mut Chip, number: u32) -> bool {
    let done = with::<S, _>(chip, &options(0), false, |index| {
        let inserted = index.insert(&key::from_u32(number), &[1; 12]).is_ok();
        inserted && (0..80).all(|_| index.get(&key::from_u32(0)).is_ok())
    });
    done.unwrap_or(false)
}

/// A device on which power failed after the first of the pages that divide a node.
///
/// Returns it with the state before that change, and the pages of its group that are there.
fn half_a_division<S: System>() -> (Chip, Model, Vec<u32>) {
    let mut fresh = chip(64);
    with::<S, _>(&mut fresh, &options(0), true, |_| ()).unwrap();
    for records in (1..200u32).step_by(3) {
        let mut chip = fresh.clone();
        let found = with::<S, _>(&mut chip, &options(0), false, |index| {
            for number in 0..records {
                index.insert(&key::from_u32(number), &[1; 12]).unwrap();
            }
            contents(index)
        });
        let model = found.unwrap();
        // Cut behind each operation that follows the mount, until one leaves half of a group.
        for operation in 250..800 {
            let mut chip = chip.clone();
            chip.cut_at(operation, Cut::After);
            if insert_and_look::<S>(&mut chip, records) {
                break;
            }
            chip.restore_power();
            let all = headers(&mut chip);
            let commits = all.iter().filter(|(_, header)| header.height > 0);
            let commit = commits.map(|(_, header)| header.sequence).max();
            let newer = all.iter().filter(|(_, header)| Some(header.sequence) > commit);
            let pages: Vec<u32> = newer.map(|(page, _)| *page).collect();
            if !pages.is_empty() {
                return (chip, model, pages);
            }
        }
    }
    panic!("no node was divided in two pages");
}

fn ignore_half_a_division<S: System>() {
    let (mut chip, model, pages) = half_a_division::<S>();
    let mut found = with::<S, _>(&mut chip, &options(0), false, contents).unwrap();
    // The new record is there if it was durable before the node was divided.
    found.remove(&key::from_u32(model.len() as u32)[..]);
    assert_eq!(found, model);
    // The mount blanked them: a later commit must not make them count.
    let left = headers(&mut chip);
    let newest = left.iter().max_by_key(|(_, header)| header.sequence);
    assert!(newest.is_some_and(|(_, header)| header.height > 0), "{pages:?} are there: {newest:?}");
}

/// The same pages with a commit in the last of them: the tree is not what it was.
fn canary_half_a_division_that_counts_is_seen<S: System>() {
    let (mut chip, model, pages) = half_a_division::<S>();
    let layout = layout_of(&chip.geometry());
    let last = headers(&mut chip).into_iter().filter(|(page, _)| pages.contains(page));
    let (page, header) = last.max_by_key(|(_, header)| header.sequence).unwrap();
    let mut frame = vec![0; layout.frame_bytes()];
    let (main, spare) = frame.split_at_mut(layout.page_bytes());
    chip.read(PageNumber(page), main, spare).unwrap();
    layout.reseal(&mut frame, &PageHeader { height: 2, ..header });
    let (main, spare) = frame.split_at(layout.page_bytes());
    chip.rewrite(PageNumber(page), main, spare).unwrap();
    let seen = with::<S, _>(&mut chip, &options(0), false, |index| {
        let mut wrong = 0;
        let checked = index.check(|_| wrong += 1);
        let numbers = 0..model.len() as u32;
        let is_there = |number| matches!(index.get(&key::from_u32(number)), Ok(Some(_)));
        checked.is_err() || wrong > 0 || !numbers.into_iter().all(is_there)
    });
    assert!(seen.unwrap_or(true), "half of a division that counts goes unseen");
}

fn name_a_damaged_page<S: System>() {
    let mut whole = chip(64);
    with::<S, _>(&mut whole, &options(0), true, |index| {
        for number in 0..60 {
            index.insert(&key::from_u32(number), &[1; 12]).unwrap();
        }
    })
    .unwrap();
    for (page, _) in headers(&mut whole) {
        let page = PageNumber(page);
        let mut chip = whole.clone();
        chip.corrupt_page(page, |main, _| main[9] ^= 0x55);
        let opened = with::<S, _>(&mut chip, &options(0), false, |_| ()).err();
        let is_named =
            matches!(opened, Some(OpenError::Corrupt { page: named, .. }) if named == page);
        assert!(is_named, "{page:?}: {opened:?}");
    }
}

fn refuse_other_devices<S: System>() {
    let mut ram = vec![0; ram_needed::<S>(&TINY.geometry, &options(0))];
    let refused = Index::<_, S>::format(&mut Chip::new(TINY), &options(0), &mut ram).err();
    assert!(matches!(refused, Some(OpenError::Unsuited(_))), "{refused:?}");
    let blank = with::<S, _>(&mut chip(64), &options(0), false, |_| ()).err();
    assert!(matches!(blank, Some(OpenError::Blank)), "{blank:?}");
    let small = with::<S, _>(&mut chip(1), &options(0), true, |_| ()).err();
    assert!(matches!(small, Some(OpenError::ChipTooSmall { .. })), "{small:?}");
    let mut chip = chip(64);
    with::<S, _>(&mut chip, &options(0), true, |_| ()).unwrap();
    let other = nandina::Options { value_bytes: 13, ..options(0) };
    let other = with::<S, _>(&mut chip, &other, false, |_| ()).err();
    assert!(matches!(other, Some(OpenError::Mismatch { .. })), "{other:?}");
    let planned = plan::<S>(&CHIP.geometry, &CHIP.capabilities, &options(0), 1).unwrap();
    assert_eq!(planned.ram_bytes, ram_needed::<S>(&CHIP.geometry, &options(0)));
    assert!(planned.fits && planned.valid_pages < planned.limit_pages, "{planned:?}");
    let many = plan::<S>(&CHIP.geometry, &CHIP.capabilities, &options(0), 100_000).unwrap();
    assert!(!many.fits, "{many:?}");
}

#[test]
fn bftl_ignores_half_a_division() {
    ignore_half_a_division::<Bftl>();
}

#[test]
fn canary_half_a_division_of_bftl_that_counts_is_seen() {
    canary_half_a_division_that_counts_is_seen::<Bftl>();
}

#[test]
fn a_damaged_page_of_bftl_is_an_error_that_names_it() {
    name_a_damaged_page::<Bftl>();
}

#[test]
fn devices_that_cannot_carry_bftl_are_refused() {
    refuse_other_devices::<Bftl>();
}

#[test]
fn a_damaged_page_of_la_is_an_error_that_names_it() {
    name_a_damaged_page::<LaTree>();
}

#[test]
fn devices_that_cannot_carry_la_are_refused() {
    refuse_other_devices::<LaTree>();
}

#[test]
fn la_ignores_half_a_division() {
    ignore_half_a_division::<LaTree>();
}

#[test]
fn canary_half_a_division_of_la_that_counts_is_seen() {
    canary_half_a_division_that_counts_is_seen::<LaTree>();
}

#[test]
fn a_damaged_page_of_mb_is_an_error_that_names_it() {
    name_a_damaged_page::<MbTree>();
}

#[test]
fn devices_that_cannot_carry_mb_are_refused() {
    refuse_other_devices::<MbTree>();
}

#[test]
fn mb_ignores_half_a_division() {
    ignore_half_a_division::<MbTree>();
}

#[test]
fn canary_half_a_division_of_mb_that_counts_is_seen() {
    canary_half_a_division_that_counts_is_seen::<MbTree>();
}
