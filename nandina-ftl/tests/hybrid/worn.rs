//! A chip without marks for bad blocks, on which the block with a torn page can no longer be erased.

use nandina::flash::{Flash, Profile};
use nandina_ftl::LogicalPages;
use nandina_ftl::hybrid::{Hybrid, Policy, logical_pages_max, ram_needed};
use nandina_lab::torn::{Shown, Torn};
use nandina_sim::Chip;

/// A page of the size of the chip's, with a version of its number.
fn content(logical: u32, version: u32, bytes: usize) -> Vec<u8> {
    let mut page = vec![logical as u8; bytes];
    page[..4].copy_from_slice(&version.to_le_bytes());
    page
}

fn expect<P: Policy>(ftl: &mut Hybrid<'_, &mut Torn, P>, model: &[Vec<u8>], what: &str) {
    let mut page = vec![0; ftl.page_bytes()];
    for (logical, expected) in (0..).zip(model) {
        let found = ftl.read(logical, &mut page);
        assert_eq!(found, Ok(true), "{what}: page {logical}");
        assert!(page == *expected, "{what}: page {logical} has another content");
    }
}

/// Tears a write in one program, and mounts often. Returns whether a page was torn.
pub fn live<P: Policy + Copy>(
    (profile, policy, before): (&Profile, P, u32),
    left: u32,
    changes: u32,
    what: &str,
) -> bool {
    let (geometry, capabilities) = (profile.geometry, profile.capabilities);
    let pages = logical_pages_max(&geometry, &capabilities, &policy) * 2 / 3;
    let mut ram = vec![0; ram_needed(&geometry, &capabilities, &policy, pages)];
    let mut chip = Torn::new(Chip::new(*profile));
    let mut ftl = Hybrid::format(&mut chip, policy, pages, &mut ram).unwrap();
    let bytes = ftl.page_bytes();
    let mut model: Vec<_> = (0..pages).map(|logical| content(logical, 0, bytes)).collect();
    for (logical, page) in (0..).zip(&model) {
        ftl.write(logical, page).unwrap();
    }
    let write = |ftl: &mut Hybrid<'_, &mut Torn, P>, turn: u32, model: &mut [Vec<u8>]| {
        let logical = turn * 13 % pages;
        let page = content(logical, turn, bytes);
        let done = ftl.write(logical, &page);
        if done.is_ok() {
            model[logical as usize] = page;
        }
        (logical, done.is_ok())
    };
    for turn in 1..before {
        assert!(write(&mut ftl, turn, &mut model).1, "{what}");
    }
    ftl.flash().left.set(Some(left));
    let mut turns = before..before + 40;
    let torn = turns.find_map(|turn| {
        let (logical, is_done) = write(&mut ftl, turn, &mut model);
        (!is_done).then_some(logical)
    });
    chip.left.set(None);
    let (Some(torn), Some(page)) = (torn, chip.hidden) else { return false };
    // Its block fails from now on, and takes no mark.
    let block = chip.geometry().block_of(page).0;
    chip.worn = block..block + 1;
    chip.shown = Shown::Both;
    let mut ftl = Hybrid::open(&mut chip, policy, pages, &mut ram).unwrap();
    let mut page = vec![0; bytes];
    assert!(ftl.read(torn, &mut page).unwrap(), "{what}");
    model[torn as usize] = page;
    expect(&mut ftl, &model, what);
    let mut turn = 1000;
    for _ in 0..changes {
        turn += 1 + u32::from((turn + 1) * 13 % pages == torn);
        assert!(write(&mut ftl, turn, &mut model).1, "{what}");
    }
    let shows = [Shown::Both, Shown::Written, Shown::Erased, Shown::Both];
    for (mount, shown) in shows.into_iter().cycle().take(12).enumerate() {
        chip.shown = shown;
        let what = format!("{what}, mount {mount}");
        let mut ftl = Hybrid::open(&mut chip, policy, pages, &mut ram).unwrap();
        expect(&mut ftl, &model, &what);
        if mount % 2 == 1 {
            for _ in 0..changes.min(5) {
                turn += 1 + u32::from((turn + 1) * 13 % pages == torn);
                assert!(write(&mut ftl, turn, &mut model).1, "{what}");
            }
            expect(&mut ftl, &model, &what);
        }
    }
    true
}
