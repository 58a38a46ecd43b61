//! Devices that hide from the index what it must know.
//!
//! That is: which pages share cells, which reads the ECC corrected, which blocks are bad. The
//! suites must detect an index on each, and accept the chip itself.

use nandina::System;
use nandina::flash::{
    BlockNumber, Capabilities, Flash, Geometry, PageNumber, Pairing, Profile, Reading,
};
use nandina::store::{BTree, Mu, Wandering};
use nandina_lab::hand_on;
use nandina_lab::torture::{CutRun, Device, Mode, cut_everywhere, suited};
use nandina_sim::{Chip, ChipError, TINY};

use crate::media::{DISTURBED, SPOILED, Under};

/// What a device hides.
#[derive(Clone, Copy, PartialEq)]
enum Hides {
    Nothing,
    Pairing,
    Corrections,
    BadBlocks,
    /// That a page may be torn when it is replaced.
    Tears,
}

#[derive(Clone)]
struct Deaf {
    chip: Chip,
    hides: Hides,
}

impl Deaf {
    fn under(hides: Hides) -> impl Fn(Chip) -> Self {
        move |chip| Self { chip, hides }
    }
}

impl Device for Deaf {
    fn chip(&self) -> &Chip {
        &self.chip
    }

    fn chip_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }
}

impl Flash for Deaf {
    type Error = ChipError;

    hand_on!(chip: geometry, program, erase, rewrite, overwrite, mark_bad);

    fn capabilities(&self) -> Capabilities {
        let capabilities = self.chip.capabilities();
        match self.hides {
            Hides::Pairing => Capabilities { pairing: Pairing::None, ..capabilities },
            Hides::Tears => Capabilities { atomic_rewrite: true, ..capabilities },
            _ => capabilities,
        }
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        match self.chip.read(page, main, spare)? {
            Reading::Corrected if self.hides == Hides::Corrections => Ok(Reading::Clean),
            reading => Ok(reading),
        }
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, ChipError> {
        Ok(self.chip.is_bad(block)? && self.hides != Hides::BadBlocks)
    }
}

/// Whether one cut at every operation finds a violation on a chip whose pages share cells in pairs.
fn cuts_find<S: System>(hides: Hides) -> bool {
    // As many usable pages as the chip for exhaustive tests has: all, or every second one.
    let pages_per_block = match hides {
        Hides::Pairing => TINY.geometry.pages_per_block,
        _ => 2 * TINY.geometry.pages_per_block,
    };
    let geometry = Geometry { pages_per_block, ..TINY.geometry };
    let capabilities = Capabilities { pairing: Pairing::WordLines(2), ..TINY.capabilities };
    let chip = Chip::with_seed(Profile { geometry, capabilities, ..TINY }, 1);
    let report =
        cut_everywhere::<S, _>(Deaf::under(hides)(chip), CutRun::SMALL, Mode::Linear, 1, &|_| {});
    let tame = report.violations.iter().any(|violation| violation.what.contains("too tame"));
    assert!(!tame, "{:?}", report.violations);
    !report.violations.is_empty()
}

#[test]
fn cuts_catch_an_index_that_is_not_told_which_pages_share_cells() {
    assert!(cuts_find::<Wandering>(Hides::Pairing) && cuts_find::<Mu>(Hides::Pairing));
    assert!(!cuts_find::<Wandering>(Hides::Nothing) && !cuts_find::<Mu>(Hides::Nothing));
}

#[test]
fn cuts_catch_a_device_that_promises_whole_pages_and_tears_them() {
    let finds = |hides| {
        let chip = Chip::with_seed(suited::<BTree>(TINY), 1);
        let device = Deaf::under(hides)(chip);
        let report = cut_everywhere::<BTree, _>(device, CutRun::SMALL, Mode::Linear, 1, &|_| {});
        !report.violations.is_empty()
    };
    assert!(finds(Hides::Tears));
    assert!(!finds(Hides::Nothing));
}

/// Whether the check of weak pages, or of factory-bad blocks, finds a violation.
fn media_find<S: System + 'static>(hides: Hides) -> (bool, bool) {
    let finds = |under: &Under| under.on::<S, _>(Deaf::under(hides)).is_err();
    (finds(&DISTURBED), finds(&SPOILED))
}

#[test]
fn failing_media_catch_an_index_that_is_not_told_of_weak_pages_or_bad_blocks() {
    for find in [media_find::<Wandering>, media_find::<Mu>] {
        assert!(find(Hides::Corrections).0);
        assert!(find(Hides::BadBlocks).1);
        assert_eq!(find(Hides::Nothing), (false, false));
    }
}
