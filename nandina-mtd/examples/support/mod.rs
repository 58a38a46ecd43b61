//! The trial's support: a counting device, a bad block, a line for each outcome.
//!
//! It knows no system.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use nandina::flash::{
    BlockNumber, Capabilities, ErrorKind, Flash, FlashError, Geometry, PageNumber, Reading,
};
use nandina_mtd::{Mtd, MtdError};

/// Operations of a device, and how often they failed.
#[derive(Default)]
pub struct Counts {
    reads: u32,
    /// Reads that reported flipped bits.
    pub corrected: u32,
    programs: u32,
    erases: u32,
    failed_programs: u32,
    failed_erases: u32,
    failed_marks: u32,
    failed: BTreeSet<u32>,
}

impl Counts {
    /// Blocks in which a program or an erase failed.
    pub fn failed_blocks(&self) -> u32 {
        self.failed.len() as u32
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} reads ({} corrected), {} programs ({} failed), {} erases ({} failed), {} marks failed",
            self.reads,
            self.corrected,
            self.programs,
            self.failed_programs,
            self.erases,
            self.failed_erases,
            self.failed_marks
        )
    }
}

/// A device that counts.
pub struct Counted {
    /// The device.
    pub chip: Mtd,
    /// Its counts.
    pub counts: Counts,
}

impl Counted {
    /// Starts counting from zero.
    pub fn new(chip: Mtd) -> Self {
        Self { chip, counts: Counts::default() }
    }
}

impl Flash for Counted {
    type Error = MtdError;

    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.chip.capabilities()
    }

    fn reports_corrections(&self) -> bool {
        self.chip.reports_corrections()
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, MtdError> {
        self.counts.reads += 1;
        let reading = self.chip.read(page, main, spare)?;
        self.counts.corrected += u32::from(reading == Reading::Corrected);
        Ok(reading)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), MtdError> {
        self.counts.programs += 1;
        let programmed = self.chip.program(page, main, spare);
        if programmed.as_ref().is_err_and(|error| error.kind() == ErrorKind::ProgramFailed) {
            self.counts.failed_programs += 1;
            self.counts.failed.insert(self.geometry().block_of(page).0);
        }
        programmed
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), MtdError> {
        self.counts.erases += 1;
        let erased = self.chip.erase(block);
        if erased.as_ref().is_err_and(|error| error.kind() == ErrorKind::EraseFailed) {
            self.counts.failed_erases += 1;
            self.counts.failed.insert(block.0);
        }
        erased
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), MtdError> {
        self.chip.rewrite(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), MtdError> {
        self.chip.overwrite(page, offset, bytes)
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, MtdError> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), MtdError> {
        let marked = self.chip.mark_bad(block);
        self.counts.failed_marks += u32::from(marked.is_err());
        marked
    }
}

/// Marks the last block that is good and wholly erased.
///
/// The kernel erases what it marks, so the block must hold no data.
pub fn mark_an_erased_block(mtd: &mut Counted) -> Result<(), Box<dyn Error>> {
    let geometry = mtd.geometry();
    let mut main = vec![0; geometry.page_bytes as usize];
    for block in (0..geometry.blocks).rev().map(BlockNumber) {
        let mut erased = !mtd.is_bad(block)?;
        for index in 0..geometry.pages_per_block {
            if erased {
                mtd.read(geometry.page_in(block, index), &mut main, &mut [])?;
                erased = main.iter().all(|&byte| byte == 0xFF);
            }
        }
        if erased {
            return Ok(mtd.mark_bad(block)?);
        }
    }
    Err("no block is erased: none can be marked".into())
}

/// The outcome of a trial without a fault.
pub enum Outcome {
    /// It passed, with a summary.
    Passed(String),
    /// The device lacks what the system needs, with the reason.
    Skipped(String),
}

/// The exit code of a trial that passed.
pub const PASSED: u8 = 0;
/// That of one that failed.
pub const FAILED: u8 = 1;
/// That of one that was skipped.
pub const SKIPPED: u8 = 3;

/// Prints the one line of an outcome and returns its exit code.
pub fn tell(device: &str, what: &str, outcome: Result<Outcome, Box<dyn Error>>) -> u8 {
    let device = device.trim_start_matches("/dev/");
    match outcome {
        Ok(Outcome::Passed(seen)) => {
            println!("PASS {device} {what}: {seen}");
            PASSED
        }
        Ok(Outcome::Skipped(reason)) => {
            println!("SKIP {device} {what}: {reason}");
            SKIPPED
        }
        Err(error) => {
            println!("FAIL {device} {what}: {error}");
            FAILED
        }
    }
}
