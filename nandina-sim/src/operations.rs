//! The media operations of the chip.
//!
//! Each checks every rule first, then draws its faults, then takes effect, counts and advances the
//! clock.

use std::ops::Range;

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use rand::Rng;

use crate::block::Block;
use crate::chip::Stop;
use crate::faults::{strikes, worst_codeword};
use crate::unstable::Sensed;
use crate::{Chip, ChipError, Cut, Tear, checksum};

/// What the bytes are that a read of a part of a page leaves out.
const NOT_READ: u8 = 0xA5;

/// The outcome of a program, an erase or a rewrite.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Done,
    Cut(Cut),
    /// The device gives it up; power stays on.
    GaveUp(Cut),
    Failed,
    Silent,
}

impl Fate {
    const fn is_cut(self) -> bool {
        matches!(self, Self::Cut(_))
    }

    /// The caller's result; `failure` if the chip reports one.
    pub fn result(self, failure: ChipError) -> Result<(), ChipError> {
        match self {
            Self::Done | Self::Silent => Ok(()),
            Self::Cut(_) => Err(ChipError::PowerLost),
            Self::GaveUp(_) => Err(ChipError::GaveUp),
            Self::Failed => Err(failure),
        }
    }
}

impl Chip {
    /// Checks that power is on and that the next operation is within the limit.
    #[inline]
    pub(crate) fn demand_power(&self) -> Result<(), ChipError> {
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
        match self.limit {
            Some((end, allowed)) if self.counters.operations() >= end => {
                Err(ChipError::TooMany { allowed })
            }
            _ => Ok(()),
        }
    }

    /// The outcome of the next operation if it is to be cut or given up.
    fn take_stop(&mut self, is_change: bool) -> Option<Fate> {
        let (all, changes) = (self.counters.operations(), self.counters.changes());
        let is_due = |stop: &Stop| match stop.is_change {
            true => is_change && stop.operation == changes,
            false => stop.operation == all,
        };
        let stop = self.stop.filter(is_due)?;
        if stop.keeps_power {
            self.stop = None;
            self.fault_counters.device_errors += 1;
            return Some(Fate::GaveUp(stop.cut));
        }
        self.powered = false;
        self.fault_counters.cuts += 1;
        Some(Fate::Cut(stop.cut))
    }

    /// Whether the device gives up the next read or mark, which cannot be torn.
    fn gives_up(&mut self) -> bool {
        let often = self.faults.device_errors;
        let gives_up = often > 0 && strikes(&mut self.random_apart(), often);
        self.fault_counters.device_errors += u64::from(gives_up);
        gives_up
    }

    /// The outcome of the next program, erase or rewrite in `block`.
    #[inline]
    pub(crate) fn fate(&mut self, block: usize, failures: u32, silent: u32) -> Fate {
        if self.stop.is_some() || self.blocks[block].failing || self.faults.any() {
            self.uncertain_fate(block, failures, silent)
        } else {
            Fate::Done
        }
    }

    #[cold]
    fn uncertain_fate(&mut self, block: usize, failures: u32, silent: u32) -> Fate {
        if let Some(fate) = self.take_stop(true) {
            return fate;
        }
        if self.blocks[block].failing {
            return Fate::Failed;
        }
        if !self.faults.any() {
            return Fate::Done;
        }
        let mut random = self.random(self.counters.operations());
        let worn = self.faults.wear_out && self.blocks[block].erase_count >= self.profile.endurance;
        if strikes(&mut random, failures) || worn && strikes(&mut random, 4) {
            self.blocks.change(block).failing = true;
            return Fate::Failed;
        }
        if strikes(&mut random, self.faults.device_errors) {
            self.fault_counters.device_errors += 1;
            return Fate::GaveUp(Cut::ALL[random.random_range(0..Cut::ALL.len())]);
        }
        if strikes(&mut random, silent) { Fate::Silent } else { Fate::Done }
    }

    /// What becomes of a page that is replaced as a whole or not at all (rule 14).
    ///
    /// One draw decides which of the two it is where a page that can be torn is.
    fn whole(&mut self, fate: Fate) -> Fate {
        match fate {
            Fate::Cut(Cut::Inside(_)) | Fate::GaveUp(Cut::Inside(_)) => {
                self.fault_counters.torn += 1;
            }
            Fate::Failed => self.fault_counters.rewrite_failures += 1,
            _ => return fate,
        }
        let replaced = self.random_damage(fate.is_cut()).random();
        Fate::Cut(if replaced { Cut::After } else { Cut::Before })
    }

    fn disturb(&mut self, page: PageNumber) {
        let mut random = self.random(self.counters.operations());
        if strikes(&mut random, self.faults.disturbing_reads) {
            let geometry = self.profile.geometry;
            let other = random.random_range(0..geometry.pages_per_block);
            self.flip(geometry.page_in(geometry.block_of(page), other), &mut random);
        }
    }

    /// Reads a page, of which so many bytes are moved, in so many nanoseconds.
    fn read_at_cost(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
        (bytes, ns): (usize, u64),
    ) -> Result<Reading, ChipError> {
        let stop = self.take_stop(false);
        let gives_up = stop.is_none() && self.gives_up();
        if self.faults.disturbing_reads > 0 {
            self.disturb(page);
        }
        self.counters.reads += 1;
        self.counters.bytes_read += bytes as u64;
        self.time.read_ns += ns;
        if page != self.next_read {
            self.time.read_ns += self.profile.timing.random_read_extra_ns;
        }
        self.next_read = PageNumber(page.0 + 1);
        if gives_up {
            return Err(ChipError::GaveUp);
        }
        if let Some(stop) = stop {
            stop.result(ChipError::GaveUp)?;
        }
        self.sense(page, main, spare)
    }

    /// Reads a page into `main` and `spare`, as far as its damage permits.
    fn sense(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let (block, index) = self.place(page);
        let mut reading = Reading::Clean;
        let block = &self.blocks[block];
        let Some(bytes) = block.page_bytes(index) else {
            main.fill(0xFF);
            spare.fill(0xFF);
            return Ok(Reading::Clean);
        };
        let found;
        let mut bytes = bytes;
        if let Some(unstable) = block.unstable.get(&index.0) {
            let (has_ecc, turn) = (self.profile.ecc.bits > 0, self.counters.operations());
            let sensed;
            (sensed, found) = unstable.sense(has_ecc, turn, &mut self.random_reading());
            bytes = &found;
            match sensed {
                Sensed::Clean => {}
                Sensed::Corrected => reading = Reading::Corrected,
                Sensed::Uncorrectable => {
                    self.fault_counters.uncorrectable += 1;
                    return Err(ChipError::Uncorrectable(page));
                }
            }
        }
        let (page_main, page_spare) = bytes.split_at(main.len());
        main.copy_from_slice(page_main);
        spare.copy_from_slice(&page_spare[..spare.len()]);
        if let Some(damage) = block.damage.get(&index.0) {
            let ecc = &self.profile.ecc;
            let wrong = worst_codeword(&damage.flips, ecc);
            if damage.unreadable || (ecc.bits > 0 && wrong > ecc.bits.into()) {
                self.fault_counters.uncorrectable += 1;
                return Err(ChipError::Uncorrectable(page));
            }
            if ecc.bits == 0 {
                flip(&damage.flips, main, spare);
            } else if wrong >= ecc.refresh_bits.into() {
                reading = Reading::Corrected;
            }
        }
        self.fault_counters.corrected += u64::from(reading == Reading::Corrected);
        Ok(reading)
    }

    /// Programs the cells of a page, and counts the program.
    fn write(block: &mut Block, page: PageNumber, main: &[u8], spare: &[u8]) {
        let fresh = block.page_bytes(page).is_none();
        store(block.cells_mut(page), main, spare, fresh);
        block.fall_unstable(page, 0, main);
        block.fall_unstable(page, main.len(), spare);
        block.count_program(page);
    }

    fn count_program(&mut self, page: PageNumber, bytes: usize) {
        let timing = &self.profile.timing;
        self.counters.programs += 1;
        self.counters.bytes_programmed += bytes as u64;
        self.time.program_ns += self.profile.page_program_ns();
        if page != self.next_program {
            self.time.program_ns += timing.random_program_extra_ns;
        }
        self.next_program = PageNumber(page.0 + 1);
    }
}

/// Inverts the bits with these numbers, counted over main data and spare area.
fn flip(flips: &[u32], main: &mut [u8], spare: &mut [u8]) {
    for &flip in flips {
        let (byte, bit) = (flip as usize / 8, 1 << (flip % 8));
        if byte < main.len() {
            main[byte] ^= bit;
        } else if let Some(byte) = spare.get_mut(byte - main.len()) {
            *byte ^= bit;
        }
    }
}

/// Stores `main` and the first bytes of the spare area.
///
/// In a fresh page the rest of the spare area is set to ones; otherwise it stays, and bits only
/// fall.
pub fn store(page: &mut [u8], main: &[u8], spare: &[u8], fresh: bool) {
    let (page_main, page_spare) = page.split_at_mut(main.len());
    if fresh {
        page_main.copy_from_slice(main);
        page_spare[..spare.len()].copy_from_slice(spare);
        page_spare[spare.len()..].fill(0xFF);
    } else {
        page_main.iter_mut().zip(main).for_each(|(old, new)| *old &= new);
        page_spare.iter_mut().zip(spare).for_each(|(old, new)| *old &= new);
    }
}

impl Flash for Chip {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        self.profile.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.profile.capabilities
    }

    fn reports_corrections(&self) -> bool {
        self.profile.ecc.bits > 0
    }

    fn checksum(&mut self, pieces: &[&[u8]]) -> u32 {
        checksum::after(checksum::NONE, pieces)
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.demand_power()?;
        self.check_page(page, main.len(), spare.len())?;
        let (bytes, ns) = (main.len() + spare.len(), self.profile.page_read_ns());
        self.read_at_cost(page, main, spare, (bytes, ns))
    }

    fn read_part(
        &mut self,
        page: PageNumber,
        part: Range<usize>,
        main: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.demand_power()?;
        self.check_page(page, main.len(), 0)?;
        self.check_part(page, &part)?;
        if !self.profile.capabilities.part_reads {
            return self.read(page, main, &mut []);
        }
        let timing = &self.profile.timing;
        let ns = timing.read_ns + part.len() as u64 * timing.read_byte_ns;
        let reading = self.read_at_cost(page, main, &mut [], (part.len(), ns));
        // Whoever uses what was not read is to notice.
        main[..part.start].fill(NOT_READ);
        main[part.end..].fill(NOT_READ);
        reading
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.demand_power()?;
        let (block, index) = self.check_program(page, main, spare)?;
        let fate = self.fate(block, self.faults.program_failures, self.faults.silent_programs);
        match fate {
            Fate::Done | Fate::Cut(Cut::After) | Fate::GaveUp(Cut::After) => {
                Self::write(self.blocks.change(block), index, main, spare);
            }
            Fate::Cut(Cut::Before) | Fate::GaveUp(Cut::Before) => {}
            Fate::Cut(Cut::Inside(tear)) => self.tear_page(page, main, spare, tear, true),
            Fate::GaveUp(Cut::Inside(tear)) => {
                self.fault_counters.torn += 1;
                self.tear_page(page, main, spare, tear, false);
            }
            Fate::Failed => {
                self.fault_counters.program_failures += 1;
                self.tear_page(page, main, spare, Tear::Mixture, false);
            }
            Fate::Silent => {
                self.fault_counters.silent += 1;
                self.blocks.change(block).count_program(index);
            }
        }
        self.count_program(page, main.len() + spare.len());
        fate.result(ChipError::ProgramFailed(page))
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.demand_power()?;
        self.check_block(block)?;
        self.check_good(block)?;
        let number = block.0 as usize;
        let fate = self.fate(number, self.faults.erase_failures, self.faults.silent_erases);
        match fate {
            Fate::Done | Fate::Cut(Cut::After) | Fate::GaveUp(Cut::After) => {
                let block = self.blocks.change(number);
                block.erase();
                block.erase_count += 1;
            }
            Fate::Cut(Cut::Before) | Fate::GaveUp(Cut::Before) => {}
            Fate::Cut(Cut::Inside(tear)) | Fate::GaveUp(Cut::Inside(tear)) => {
                self.fault_counters.torn += 1;
                self.tear_block(block, tear, fate.is_cut());
            }
            Fate::Failed => {
                self.fault_counters.erase_failures += 1;
                self.tear_block(block, Tear::Mixture, false);
            }
            Fate::Silent => {
                self.fault_counters.silent += 1;
                // Some change a part of the cells.
                let unstable = core::mem::take(&mut self.faults.unstable_pages);
                if self.random(!self.counters.operations()).random() {
                    self.tear_block(block, Tear::Mixture, false);
                } else {
                    self.blocks.change(number).erase_count += 1;
                }
                self.faults.unstable_pages = unstable;
                self.blocks.change(number).forget_programs();
            }
        }
        self.counters.erases += 1;
        self.time.erase_ns += self.profile.timing.erase_ns;
        fate.result(ChipError::EraseFailed(block))
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.demand_power()?;
        self.check_page(page, main.len(), spare.len())?;
        self.check_rewrite(page)?;
        self.check_good(self.profile.geometry.block_of(page))?;
        let (block, index) = self.place(page);
        let fate = self.fate(block, self.faults.rewrite_failures, self.faults.silent_rewrites);
        let becomes =
            if self.profile.capabilities.atomic_rewrite { self.whole(fate) } else { fate };
        match becomes {
            Fate::Done | Fate::Cut(Cut::After) | Fate::GaveUp(Cut::After) => {
                let block = self.blocks.change(block);
                block.erase_page(index);
                Self::write(block, index, main, spare);
            }
            Fate::Cut(Cut::Before) | Fate::GaveUp(Cut::Before) => {}
            Fate::Cut(Cut::Inside(tear)) | Fate::GaveUp(Cut::Inside(tear)) => {
                self.fault_counters.torn += 1;
                self.tear_rewritten(page, main, spare, tear, fate.is_cut(), false);
            }
            Fate::Failed => {
                self.fault_counters.rewrite_failures += 1;
                self.tear_rewritten(page, main, spare, Tear::Mixture, false, false);
            }
            Fate::Silent => {
                self.fault_counters.silent += 1;
                self.tear_rewritten(page, main, spare, Tear::Mixture, false, true);
            }
        }
        self.count_program(page, main.len() + spare.len());
        self.counters.programs -= 1;
        self.counters.rewrites += 1;
        self.time.program_ns += self.profile.timing.rewrite_extra_ns;
        fate.result(ChipError::ProgramFailed(page))
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        self.demand_power()?;
        self.program_again(page, offset, bytes)
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, ChipError> {
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
        self.check_block(block)?;
        Ok(self.blocks[block.0 as usize].bad)
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.demand_power()?;
        self.check_block(block)?;
        let fate = match self.take_stop(true) {
            Some(fate) => fate,
            None if self.gives_up() => Fate::GaveUp(Cut::Inside(Tear::Mixture)),
            None => Fate::Done,
        };
        // A torn mark exists or does not: one bit decides it.
        let marked = match fate {
            Fate::Cut(Cut::Before) | Fate::GaveUp(Cut::Before) => false,
            Fate::Cut(Cut::Inside(_)) | Fate::GaveUp(Cut::Inside(_)) => {
                self.random(self.counters.operations()).random()
            }
            _ => true,
        };
        if marked {
            self.blocks.change(block.0 as usize).bad = true;
        }
        self.counters.programs += 1;
        self.time.program_ns += self.profile.page_program_ns();
        fate.result(ChipError::GaveUp)
    }
}
