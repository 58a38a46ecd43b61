//! A mount does not erase the newest pages before a newer one is on the chip.
//!
//! Their sequence numbers are the highest. If an erase of their block is cut, one mount may see a
//! torn page of it and another may not, and both would give the same numbers to what they write.

use nandina::System;
use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::node::PageLayout;
use nandina::store::Description;
use nandina_lab::hand_on;
use nandina_lab::torn::{Shown, Torn};
use nandina_sim::{Chip, ChipError};

use crate::formats::filled;
use crate::harness::*;

/// A chip that remembers which block was erased first.
struct Watched {
    chip: Torn,
    first: Option<BlockNumber>,
}

impl Bus for Watched {
    fn simulated(&self) -> &Chip {
        &self.chip.chip
    }
}

impl Flash for Watched {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, program, rewrite, overwrite, is_bad, mark_bad);

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.first.get_or_insert(block);
        self.chip.erase(block)
    }
}

/// The block with the page that has the highest sequence number.
fn newest_block(chip: &mut Chip) -> Option<BlockNumber> {
    let geometry = chip.geometry();
    let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
    let mut bytes = vec![0; layout.frame_bytes()];
    let mut newest = None;
    for page in (0..geometry.pages()).map(PageNumber) {
        let (main, spare) = bytes.split_at_mut(layout.page_bytes());
        if chip.read(page, main, spare).is_ok()
            && let Ok(header) = layout.open(&bytes)
        {
            newest = newest.max(Some((header.sequence, geometry.block_of(page).0)));
        }
    }
    newest.map(|(_, block)| BlockNumber(block))
}

struct ErasedFirst;

impl Check for ErasedFirst {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut erased = 0;
        for records in 10..60 {
            let filled = filled::<S>(&case, records, &mut ram)?;
            for left in 0..4 {
                let mut torn = filled.clone();
                let mut index = open_on::<S>(&mut torn, &case.options, &mut ram).map_err(text)?;
                device_of::<Torn, S>(&index).left.set(Some(left));
                let _ = index.insert(&key(records), &value(records, 0));
                drop(index);
                torn.left.set(None);
                // Mounts that are cut at their first program leave blocks without a valid page.
                for again in 0..3 {
                    let newest = newest_block(&mut torn.chip);
                    torn.left.set(Some(again % 2));
                    let mut chip = Watched { chip: torn, first: None };
                    let opened = open_on::<S>(&mut chip, &case.options, &mut ram);
                    drop(opened);
                    torn = chip.chip;
                    torn.left.set(None);
                    torn.hidden = None;
                    erased += u32::from(chip.first.is_some());
                    if chip.first.is_some() && chip.first == newest {
                        return Err(format!(
                            "{records} records, program {left}, mount {again}: {newest:?} first"
                        ));
                    }
                }
            }
        }
        if erased < 50 { Err(format!("only {erased} mounts erased a block")) } else { Ok(()) }
    }
}

#[test]
fn a_mount_does_not_erase_the_newest_pages_first() {
    for_every_system(&ErasedFirst);
}

/// A chip that loses power after some programs.
pub struct Cut {
    pub chip: Torn,
    pub programs: u32,
}

impl Bus for Cut {
    fn simulated(&self) -> &Chip {
        &self.chip.chip
    }
}

impl Flash for Cut {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, erase, rewrite, overwrite, is_bad, mark_bad);

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if self.programs == 0 {
            return Err(ChipError::PowerLost);
        }
        self.programs -= 1;
        self.chip.program(page, main, spare)
    }
}

struct CutMounts;

impl Check for CutMounts {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system)
    }

    /// Some mounts are cut after their first page. Then the commit of another one is torn: a mount
    /// sees it and is cut while it settles, and the next one does not see it.
    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut torn = 0;
        for records in [1, 3, 20, 40] {
            let filled = filled::<S>(&case, records, &mut ram)?;
            for mounts in 0..4 {
                for left in 1..4 {
                    let mut chip = filled.clone();
                    for _ in 0..mounts {
                        let mut cut = Cut { chip, programs: 1 };
                        drop(open_on::<S>(&mut cut, &case.options, &mut ram));
                        chip = cut.chip;
                    }
                    chip.left.set(Some(left));
                    drop(open_on::<S>(&mut chip, &case.options, &mut ram));
                    chip.left.set(None);
                    torn += u32::from(chip.hidden.is_some());
                    chip.shown = Shown::Written;
                    let hidden = chip.hidden;
                    let mut cut = Cut { chip, programs: 0 };
                    drop(open_on::<S>(&mut cut, &case.options, &mut ram));
                    chip = cut.chip;
                    (chip.hidden, chip.shown) = (hidden, Shown::Erased);
                    let index =
                        open_on::<S>(&mut chip, &case.options, &mut ram).map_err(|error| {
                            format!("{records} records, {mounts} mounts, {left}: {error}")
                        })?;
                    if index.len() != records {
                        return Err(format!("{records} records, {mounts} mounts: {}", index.len()));
                    }
                }
            }
        }
        if torn < 5 { Err(format!("only {torn} pages were torn")) } else { Ok(()) }
    }
}

#[test]
fn mounts_that_were_cut_do_not_hide_the_tree_before_a_torn_commit() {
    for_one_system_in(2, &CutMounts);
}
