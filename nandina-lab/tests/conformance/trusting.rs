//! A canary for unstable pages: on this device an index trusts the previous last page.
//!
//! The torture must detect it.

use nandina::System;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use nandina::flash::{BlockNumber, Flash, PageNumber, Reading};
use nandina::store::{BTree, Mu, Wandering};
use nandina_lab::hand_on;
use nandina_lab::torture::{CutRun, Device, Hardships, Mode, Shares, cut_shares};
use nandina_sim::{Chip, ChipError};

/// Keeps in RAM what is programmed while the index is opened.
///
/// So an index on it relies on the last page written before: settling it changes nothing.
struct Trusting {
    chip: Chip,
    opens: AtomicBool,
    /// Main data and spare area of the pages that are only in RAM.
    kept: BTreeMap<u32, (Vec<u8>, Vec<u8>)>,
}

impl Trusting {
    const fn new(chip: Chip) -> Self {
        Self { chip, opens: AtomicBool::new(false), kept: BTreeMap::new() }
    }

    /// Keeps the page if an index is being opened. Returns whether it does.
    fn keeps(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> bool {
        let opens = self.opens.load(Ordering::Relaxed);
        if opens {
            self.kept.insert(page.0, (main.to_vec(), spare.to_vec()));
        }
        opens
    }
}

impl Clone for Trusting {
    fn clone(&self) -> Self {
        let opens = AtomicBool::new(self.opens.load(Ordering::Relaxed));
        Self { chip: self.chip.clone(), opens, kept: self.kept.clone() }
    }
}

impl Device for Trusting {
    fn chip(&self) -> &Chip {
        &self.chip
    }

    fn chip_mut(&mut self) -> &mut Chip {
        &mut self.chip
    }

    fn opening(&self) {
        self.opens.store(true, Ordering::Relaxed);
    }

    fn opened(&self) {
        self.opens.store(false, Ordering::Relaxed);
    }

    fn restore_power(&mut self) {
        self.kept.clear();
        self.chip.restore_power();
    }
}

impl Flash for Trusting {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, is_bad, mark_bad);

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let reading = self.chip.read(page, main, spare);
        let Some((kept_main, kept_spare)) = self.kept.get(&page.0) else {
            return reading;
        };
        if reading == Err(ChipError::PowerLost) {
            return reading;
        }
        main.copy_from_slice(kept_main);
        spare.fill(0xFF);
        spare[..kept_spare.len()].copy_from_slice(kept_spare);
        Ok(Reading::Clean)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if self.keeps(page, main, spare) {
            return Ok(());
        }
        self.chip.program(page, main, spare)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        let geometry = self.chip.geometry();
        self.kept.retain(|&page, _| geometry.block_of(PageNumber(page)) != block);
        self.chip.erase(block)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if self.keeps(page, main, spare) {
            return Ok(());
        }
        self.kept.remove(&page.0);
        self.chip.rewrite(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        if let Some((main, _)) = self.kept.get_mut(&page.0) {
            let main = &mut main[offset as usize..offset as usize + bytes.len()];
            main.iter_mut().zip(bytes).for_each(|(old, new)| *old &= new);
            return Ok(());
        }
        self.chip.overwrite(page, offset, bytes)
    }
}

/// Violations found by one cut at these operations, where torn pages are unstable.
fn violations_unstable<S: System, D: Device>(wrap: impl Fn(Chip) -> D, shares: Shares) -> usize {
    let run =
        CutRun { hardships: Hardships { unstable: true, ..Hardships::NONE }, ..CutRun::SMALL };
    let device = wrap(run.chip::<S>(1));
    cut_shares::<S, D>(device, run, Mode::Linear, 1, shares, &|_| {}).violations.len()
}

/// Few cuts catch it, so all are made.
#[test]
fn unstable_pages_catch_who_trusts_the_last_page() {
    assert!(violations_unstable::<Wandering, _>(Trusting::new, Shares::WHOLE) > 0);
    assert!(violations_unstable::<Mu, _>(Trusting::new, Shares::WHOLE) > 0);
}

#[test]
fn unstable_pages_do_not_catch_who_does_not() {
    let shares = Shares::one_in(7, 1);
    assert_eq!(violations_unstable::<Wandering, _>(|chip| chip, shares), 0);
    assert_eq!(violations_unstable::<Mu, _>(|chip| chip, shares), 0);
}

#[test]
fn unstable_pages_do_not_catch_twins() {
    assert_eq!(violations_unstable::<BTree, _>(|chip| chip, Shares::one_in(7, 1)), 0);
}
