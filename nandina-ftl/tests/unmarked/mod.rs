//! A chip without marks for bad blocks.
//!
//! The block with a torn page can no longer be erased there.
//!
//! The page stays unstable, and no later mount knows that the block is bad. All mounts must decide
//! about the page as the first one did. Each kind of FTL is a [`Start`].

pub mod hybrid;
pub mod page;

use nandina::flash::{Flash, Profile};
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::FtlError;
use nandina_lab::torn::{Shown, Torn};
use nandina_sim::{Chip, ChipError};

/// An FTL on the chip of these tests.
pub trait Used: LogicalPages<Error = FtlError<ChipError>> {
    /// The chip.
    fn chip(&self) -> &Torn;
}

/// A kind of FTL, and its memory.
pub trait Start {
    /// Logical pages that it has.
    fn logical_pages(&self) -> u32;

    /// Formats or opens an FTL on the chip and uses it.
    fn with(&mut self, chip: &mut Torn, is_new: bool, work: &mut dyn FnMut(&mut dyn Used));
}

/// A page of the size of the chip's, with a version of its number.
fn content(logical: u32, version: u32, bytes: usize) -> Vec<u8> {
    let mut page = vec![logical as u8; bytes];
    page[..4].copy_from_slice(&version.to_le_bytes());
    page
}

fn expect(ftl: &mut dyn Used, model: &[Vec<u8>], what: &str) {
    let mut page = vec![0; ftl.page_bytes()];
    for (logical, expected) in (0..).zip(model) {
        assert!(ftl.read(logical, &mut page).is_ok_and(|held| held), "{what}: page {logical}");
        assert!(page == *expected, "{what}: page {logical} has another content");
    }
}

/// Writes the page that has its turn. Returns its number, and whether it was written.
fn write(ftl: &mut dyn Used, turn: u32, model: &mut [Vec<u8>]) -> (u32, bool) {
    let logical = turn * 13 % model.len() as u32;
    let page = content(logical, turn, ftl.page_bytes());
    let is_done = ftl.write(logical, &page).is_ok();
    if is_done {
        model[logical as usize] = page;
    }
    (logical, is_done)
}

/// Tears a write in one program, and mounts often. Returns whether a page was torn.
fn live(
    start: &mut impl Start,
    (profile, before): (&Profile, u32),
    (left, changes): (u32, u32),
    what: &str,
) -> bool {
    let pages = start.logical_pages();
    let mut chip = Torn::new(Chip::new(*profile));
    let (mut model, mut torn) = (Vec::new(), None);
    start.with(&mut chip, true, &mut |ftl| {
        let bytes = ftl.page_bytes();
        model = (0..pages).map(|logical| content(logical, 0, bytes)).collect();
        for (logical, page) in (0..).zip(&model) {
            assert!(ftl.write(logical, page).is_ok(), "{what}");
        }
        for turn in 1..before {
            assert!(write(ftl, turn, &mut model).1, "{what}");
        }
        ftl.chip().left.set(Some(left));
        torn = (before..before + 40).find_map(|turn| {
            let (logical, is_done) = write(ftl, turn, &mut model);
            (!is_done).then_some(logical)
        });
    });
    chip.left.set(None);
    let (Some(torn), Some(page)) = (torn, chip.hidden) else { return false };
    // Its block fails from now on, and takes no mark.
    let block = chip.geometry().block_of(page).0;
    chip.worn = block..block + 1;
    chip.shown = Shown::Both;
    let mut turn = 1000;
    start.with(&mut chip, false, &mut |ftl| {
        let mut page = vec![0; ftl.page_bytes()];
        assert!(ftl.read(torn, &mut page).is_ok_and(|held| held), "{what}");
        model[torn as usize] = page;
        expect(ftl, &model, what);
        for _ in 0..changes {
            turn += 1 + u32::from((turn + 1) * 13 % pages == torn);
            assert!(write(ftl, turn, &mut model).1, "{what}");
        }
    });
    let shows = [Shown::Both, Shown::Written, Shown::Erased, Shown::Both];
    for (mount, shown) in shows.into_iter().cycle().take(12).enumerate() {
        chip.shown = shown;
        let what = format!("{what}, mount {mount}");
        start.with(&mut chip, false, &mut |ftl| {
            expect(ftl, &model, &what);
            if mount % 2 == 1 {
                for _ in 0..changes.min(5) {
                    turn += 1 + u32::from((turn + 1) * 13 % pages == torn);
                    assert!(write(ftl, turn, &mut model).1, "{what}");
                }
                expect(ftl, &model, &what);
            }
        });
    }
    true
}

/// Tears a write at many places, before few and many changes.
pub fn live_everywhere(
    name: &str,
    start: &mut impl Start,
    profile: &Profile,
    befores: impl IntoIterator<Item = u32>,
) {
    let mut torn = 0;
    for before in befores {
        for left in 0..12 {
            for changes in [1, 7, 40] {
                let what = format!("{name}: {before}, {left}, {changes}");
                torn += u32::from(live(start, (profile, before), (left, changes), &what));
            }
        }
    }
    assert!(torn > 50, "{name}: {torn} programs were torn");
}
