//! An erase that silently does a part of its work leaves old pages behind new ones.
//!
//! `Options::verify` reads programs back, so the new pages are whole. The old ones have valid
//! checksums, and are the last ones of their block.

use std::cell::Cell;

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Profile};
use nandina::store::Description;
use nandina::{Index, System};
use nandina_lab::hand_on;
use nandina_sim::{Chip, ChipError, TINY};

use crate::harness::*;

/// A chip of which one erase leaves the second half of a full block.
#[derive(Clone)]
struct ErasesHalf<'c> {
    chip: Chip,
    /// Erases of full blocks that are honest before that.
    honest: u32,
    has_struck: &'c Cell<bool>,
}

impl Bus for ErasesHalf<'_> {
    fn simulated(&self) -> &Chip {
        &self.chip
    }
}

impl Flash for ErasesHalf<'_> {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, program, rewrite, overwrite, is_bad, mark_bad);

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        let geometry = self.chip.geometry();
        let pages = geometry.pages_per_block;
        let left = (pages / 2..pages).map(|index| geometry.page_in(block, index));
        let is_full = !left.clone().any(|page| self.chip.page_is_erased(page));
        if !is_full || self.has_struck.get() || self.honest > 0 {
            self.honest -= u32::from(is_full && self.honest > 0);
            return self.chip.erase(block);
        }
        let mut read = |page: PageNumber| -> Result<_, ChipError> {
            let mut main = vec![0; geometry.page_bytes as usize];
            let mut spare = vec![0; geometry.spare_bytes as usize];
            self.chip.read(page, &mut main, &mut spare)?;
            Ok((page, main, spare))
        };
        let kept = left.map(&mut read).collect::<Result<Vec<_>, _>>()?;
        self.chip.erase(block)?;
        for (page, main, spare) in kept {
            self.chip.program(page, &main, &spare)?;
        }
        self.has_struck.set(true);
        Ok(())
    }
}

/// Records, each of which is replaced again and again.
const RECORDS: u32 = 5;

/// Inserts records behind that erase, then opens the index as after a cut.
struct LeftOver {
    checkpoints: Option<u32>,
}

impl LeftOver {
    fn open_after<S: System>(&self, honest: u32, changes: u32) -> Outcome {
        let geometry = Geometry { pages_per_block: 16, blocks: 24, ..TINY.geometry };
        let capabilities = Capabilities { in_order: false, ..TINY.capabilities };
        let mut case = Case::new(Profile { geometry, capabilities, ..TINY });
        (case.options.verify, case.options.checkpoints) = (true, self.checkpoints);
        if S::DESCRIPTION.replays() {
            // A commit in each block or two.
            case.options.journal_pages = Some(12);
        }
        let case = case.suited::<S>();
        let (profile, options) = (case.profile, case.options);
        let mut ram = case.ram::<S>();
        let has_struck = Cell::new(false);
        let mut device = ErasesHalf { chip: Chip::new(profile), honest, has_struck: &has_struck };
        let bus: &mut dyn Bus = &mut device;
        let mut index = Index::<_, S>::format(bus, &options, &mut ram).map_err(text)?;
        let (mut version, mut left) = (0, changes);
        while left > 0 {
            version += 1;
            let number = version % RECORDS;
            index.insert(&key(number), &value(number, version)).map_err(text)?;
            left -= u32::from(has_struck.get());
            if version > 20_000 {
                return Err("no full block was erased".into());
            }
        }
        drop(index);
        let bus: &mut dyn Bus = &mut device;
        let mut index = Index::<_, S>::open(bus, &options, &mut ram).map_err(text)?;
        for last in version + 1 - RECORDS..=version {
            let number = last % RECORDS;
            if index.get(&key(number)).map_err(text)? != Some(&value(number, last)[..]) {
                return Err(format!("record {number} of version {last} is missing"));
            }
        }
        Ok(())
    }
}

impl Check for LeftOver {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for (honest, changes) in (0..8).flat_map(|honest| (1..4).map(move |next| (honest, next))) {
            let at = |what| format!("{honest} honest erases, {changes} changes: {what}");
            self.open_after::<S>(honest, changes).map_err(at)?;
        }
        Ok(())
    }
}

#[test]
fn old_pages_that_an_erase_left_behind_new_ones_are_not_the_newest() {
    for_every_system(&LeftOver { checkpoints: None });
    for_every_system(&LeftOver { checkpoints: Some(1) });
}
