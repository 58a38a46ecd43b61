//! The chip as it is driven: checks every rule first, then meets its faults, then does, counts and keeps
//! time.

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use rand::Rng;

use crate::block::Block;
use crate::cut::{tear_erase, tear_partner, tear_program, tear_rewrite};
use crate::faults::{strikes, worst_codeword};
use crate::{Chip, ChipError, Cut, Tear};

/// What becomes of a program, an erase or a rewrite.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Done,
    Cut(Cut),
    Failed,
    Silent,
}

impl Fate {
    /// What the caller learns of it; `failure` if the chip reports one.
    pub fn result(self, failure: ChipError) -> Result<(), ChipError> {
        match self {
            Self::Done | Self::Silent => Ok(()),
            Self::Cut(_) => Err(ChipError::PowerLost),
            Self::Failed => Err(failure),
        }
    }
}

impl Chip {
    /// Whether the operation about to be done is cut, and where.
    fn take_cut(&mut self) -> Option<Cut> {
        let cut = self.cut.filter(|&(operation, _)| operation == self.counters.operations());
        let (_, cut) = cut?;
        self.powered = false;
        self.fault_counters.cuts += 1;
        Some(cut)
    }

    /// What becomes of the program, erase or rewrite in `block` that is about to be done.
    #[inline]
    pub(crate) fn fate(&mut self, block: usize, failures: u32, silent: u32) -> Fate {
        if self.cut.is_some() || self.blocks[block].failing || self.faults.any() {
            self.uncertain_fate(block, failures, silent)
        } else {
            Fate::Done
        }
    }

    #[cold]
    fn uncertain_fate(&mut self, block: usize, failures: u32, silent: u32) -> Fate {
        if let Some(cut) = self.take_cut() {
            return Fate::Cut(cut);
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
        if strikes(&mut random, silent) { Fate::Silent } else { Fate::Done }
    }

    fn tear_page(&mut self, page: PageNumber, main: &[u8], spare: &[u8], tear: Tear, by_cut: bool) {
        let mut random = self.random(self.counters.operations());
        let pages = self.profile.geometry.pages_per_block;
        let (block, page) = self.place(page);
        let block = self.blocks.change(block);
        let mut new = block.page_bytes_mut(page).to_vec();
        store(&mut new, main, spare, false);
        tear_program(block, page, &new, tear, &mut random);
        block.count_program(page);
        if by_cut {
            for partner in self.profile.capabilities.pairing.endangers(page.0, pages) {
                tear_partner(block, PageNumber(partner), tear, &mut random);
            }
        }
        self.fault_counters.torn += u64::from(by_cut);
    }

    fn tear_rewritten(&mut self, page: PageNumber, main: &[u8], spare: &[u8], tear: Tear) {
        let mut random = self.random(self.counters.operations());
        let geometry = &self.profile.geometry;
        let mut new = vec![0xFF; (geometry.page_bytes + geometry.spare_bytes) as usize];
        store(&mut new, main, spare, true);
        let (block, page) = self.place(page);
        let block = self.blocks.change(block);
        tear_rewrite(block, page, &new, tear, &mut random);
        block.count_program(page);
    }

    fn tear_block(&mut self, block: BlockNumber, tear: Tear) {
        let mut random = self.random(self.counters.operations());
        let pages = self.profile.geometry.pages_per_block;
        let block = self.blocks.change(block.0 as usize);
        tear_erase(block, pages, tear, &mut random);
        block.exhaust();
        block.erase_count += 1;
    }

    fn disturb(&mut self, page: PageNumber) {
        let mut random = self.random(self.counters.operations());
        if strikes(&mut random, self.faults.disturbing_reads) {
            let geometry = self.profile.geometry;
            let other = random.random_range(0..geometry.pages_per_block);
            self.flip(geometry.page_in(geometry.block_of(page), other), &mut random);
        }
    }

    /// Puts the bytes of a page into `main` and `spare`, as far as its damage lets them be read.
    fn sense(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let (block, index) = self.place(page);
        let block = &self.blocks[block];
        let Some(bytes) = block.page_bytes(index) else {
            main.fill(0xFF);
            spare.fill(0xFF);
            return Ok(Reading::Clean);
        };
        let (page_main, page_spare) = bytes.split_at(main.len());
        main.copy_from_slice(page_main);
        spare.copy_from_slice(&page_spare[..spare.len()]);
        let Some(damage) = block.damage.get(&index.0) else {
            return Ok(Reading::Clean);
        };
        let ecc = &self.profile.ecc;
        let wrong = worst_codeword(&damage.flips, ecc);
        if damage.unreadable || (ecc.bits > 0 && wrong > ecc.bits.into()) {
            self.fault_counters.uncorrectable += 1;
            return Err(ChipError::Uncorrectable(page));
        }
        if ecc.bits == 0 {
            for &flip in &damage.flips {
                let (byte, bit) = (flip as usize / 8, 1 << (flip % 8));
                if byte < main.len() {
                    main[byte] ^= bit;
                } else if let Some(byte) = spare.get_mut(byte - main.len()) {
                    *byte ^= bit;
                }
            }
        } else if wrong >= ecc.refresh_bits.into() {
            self.fault_counters.corrected += 1;
            return Ok(Reading::Corrected);
        }
        Ok(Reading::Clean)
    }

    /// Programs the page in its cells, and counts the program.
    fn write(block: &mut Block, page: PageNumber, main: &[u8], spare: &[u8]) {
        let fresh = block.page_bytes(page).is_none();
        store(block.cells_mut(page), main, spare, fresh);
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

/// Stores `main` and the first bytes of the spare area. In a fresh page the rest of the spare area is set
/// to ones; else it stays, and bits only fall.
fn store(page: &mut [u8], main: &[u8], spare: &[u8], fresh: bool) {
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

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
        self.check_page(page, main.len(), spare.len())?;
        let cut = self.take_cut();
        if self.faults.disturbing_reads > 0 {
            self.disturb(page);
        }
        self.counters.reads += 1;
        self.counters.bytes_read += (main.len() + spare.len()) as u64;
        self.time.read_ns += self.profile.page_read_ns();
        if page != self.next_read {
            self.time.read_ns += self.profile.timing.random_read_extra_ns;
        }
        self.next_read = PageNumber(page.0 + 1);
        if cut.is_some() {
            return Err(ChipError::PowerLost);
        }
        self.sense(page, main, spare)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
        let (block, index) = self.check_program(page, main, spare)?;
        let fate = self.fate(block, self.faults.program_failures, self.faults.silent_programs);
        match fate {
            Fate::Done | Fate::Cut(Cut::After) => {
                Self::write(self.blocks.change(block), index, main, spare);
            }
            Fate::Cut(Cut::Before) => {}
            Fate::Cut(Cut::Inside(tear)) => self.tear_page(page, main, spare, tear, true),
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
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
        self.check_block(block)?;
        self.check_good(block)?;
        let number = block.0 as usize;
        let fate = self.fate(number, self.faults.erase_failures, self.faults.silent_erases);
        match fate {
            Fate::Done | Fate::Cut(Cut::After) => {
                let block = self.blocks.change(number);
                block.erase();
                block.erase_count += 1;
            }
            Fate::Cut(Cut::Before) => {}
            Fate::Cut(Cut::Inside(tear)) => {
                self.fault_counters.torn += 1;
                self.tear_block(block, tear);
            }
            Fate::Failed => {
                self.fault_counters.erase_failures += 1;
                self.tear_block(block, Tear::Mixture);
            }
            Fate::Silent => {
                self.fault_counters.silent += 1;
                let block = self.blocks.change(number);
                block.forget_programs();
                block.erase_count += 1;
            }
        }
        self.counters.erases += 1;
        self.time.erase_ns += self.profile.timing.erase_ns;
        fate.result(ChipError::EraseFailed(block))
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
        self.check_page(page, main.len(), spare.len())?;
        self.check_rewrite(page)?;
        self.check_good(self.profile.geometry.block_of(page))?;
        let (block, index) = self.place(page);
        let fate = self.fate(block, self.faults.rewrite_failures, self.faults.silent_rewrites);
        match fate {
            Fate::Done | Fate::Cut(Cut::After) => {
                let block = self.blocks.change(block);
                block.erase_page(index);
                Self::write(block, index, main, spare);
            }
            Fate::Cut(Cut::Before) => {}
            Fate::Cut(Cut::Inside(tear)) => {
                self.fault_counters.torn += 1;
                self.tear_rewritten(page, main, spare, tear);
            }
            Fate::Failed => {
                self.fault_counters.rewrite_failures += 1;
                self.tear_rewritten(page, main, spare, Tear::Mixture);
            }
            Fate::Silent => {
                self.fault_counters.silent += 1;
                self.tear_rewritten(page, main, spare, Tear::Mixture);
            }
        }
        self.count_program(page, main.len() + spare.len());
        self.counters.programs -= 1;
        self.counters.rewrites += 1;
        self.time.program_ns += self.profile.timing.rewrite_extra_ns;
        fate.result(ChipError::ProgramFailed(page))
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
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
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
        self.check_block(block)?;
        let cut = self.take_cut();
        // A torn mark is there or not: one bit is enough to say it.
        let marked = match cut {
            Some(Cut::Before) => false,
            Some(Cut::Inside(_)) => self.random(self.counters.operations()).random(),
            Some(Cut::After) | None => true,
        };
        if marked {
            self.blocks.change(block.0 as usize).bad = true;
        }
        self.counters.programs += 1;
        self.time.program_ns += self.profile.page_program_ns();
        if cut.is_some() { Err(ChipError::PowerLost) } else { Ok(()) }
    }
}
