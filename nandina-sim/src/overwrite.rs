//! Overwrites: programs of some bytes of a programmed page (rule 15).
//!
//! No other byte of the page changes, and its readability stays the same.

use std::ops::Range;

use nandina::flash::PageNumber;

use crate::cut::tear_overwrite;
use crate::operations::Fate;
use crate::unstable::Torn;
use crate::{Chip, ChipError, Cut, Tear};

impl Chip {
    /// Programs the bytes; the caller has checked that power is on.
    pub(crate) fn program_again(
        &mut self,
        page: PageNumber,
        offset: u32,
        bytes: &[u8],
    ) -> Result<(), ChipError> {
        let (block, index, range) = self.check_overwrite(page, offset, bytes)?;
        let fate = self.fate(block, self.faults.program_failures, self.faults.silent_programs);
        match fate {
            Fate::Done | Fate::Cut(Cut::After) | Fate::GaveUp(Cut::After) => {
                let block = self.blocks.change(block);
                block.fall_unstable(index, range.start, bytes);
                let cells = &mut block.page_bytes_mut(index)[range];
                cells.iter_mut().zip(bytes).for_each(|(old, new)| *old &= new);
                block.count_program(index);
            }
            Fate::Cut(Cut::Before) | Fate::GaveUp(Cut::Before) => {}
            Fate::Cut(Cut::Inside(tear)) => {
                self.fault_counters.torn += 1;
                self.tear_bytes(page, range, bytes, tear, true);
            }
            Fate::GaveUp(Cut::Inside(tear)) => {
                self.fault_counters.torn += 1;
                self.tear_bytes(page, range, bytes, tear, false);
            }
            Fate::Failed => {
                self.fault_counters.program_failures += 1;
                self.tear_bytes(page, range, bytes, Tear::Mixture, false);
            }
            Fate::Silent => {
                self.fault_counters.silent += 1;
                self.blocks.change(block).count_program(index);
            }
        }
        self.counters.programs += 1;
        self.counters.overwrites += 1;
        self.counters.bytes_programmed += bytes.len() as u64;
        let timing = &self.profile.timing;
        self.time.program_ns += timing.program_ns + bytes.len() as u64 * timing.program_byte_ns;
        fate.result(ChipError::ProgramFailed(page))
    }

    fn tear_bytes(
        &mut self,
        page: PageNumber,
        range: Range<usize>,
        bytes: &[u8],
        tear: Tear,
        by_cut: bool,
    ) {
        let torn = Torn::Overwritten(range.start, bytes);
        self.tear_cells(page, &torn, tear, by_cut, |block, page, random| {
            let cells = &mut block.page_bytes_mut(page)[range];
            let new: Vec<u8> = cells.iter().zip(bytes).map(|(old, new)| old & new).collect();
            tear_overwrite(cells, &new, tear, random);
        });
    }
}
