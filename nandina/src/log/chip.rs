//! The chip of a log, and the number of operations on it.
//!
//! Each call is one operation, and is counted here. Which failures are blamed on a block, and what
//! is read again, the callers decide.

use core::num::Wrapping;
use core::ops::Range;

use crate::flash::{BlockNumber, Flash, PageNumber, Reading, Upkeep};

/// A chip whose operations are counted.
pub(crate) struct Chip<F> {
    flash: F,
    operations: Wrapping<u32>,
}

impl<F: Flash> Chip<F> {
    pub const fn new(flash: F) -> Self {
        Self { flash, operations: Wrapping(0) }
    }

    /// The driver of the chip.
    pub const fn flash(&self) -> &F {
        &self.flash
    }

    /// Returns the driver of the chip.
    pub fn into_flash(self) -> F {
        self.flash
    }

    /// Reads, programs, erases and marks so far, modulo 2^32.
    pub const fn operations(&self) -> u32 {
        self.operations.0
    }

    /// Reads a page.
    pub fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, F::Error> {
        self.operations += 1;
        self.flash.read(page, main, spare)
    }

    /// Reads part of a page to its place in `main`.
    pub fn read_part(
        &mut self,
        page: PageNumber,
        part: Range<usize>,
        main: &mut [u8],
    ) -> Result<Reading, F::Error> {
        self.operations += 1;
        self.flash.read_part(page, part, main)
    }

    /// Programs a page.
    pub fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), F::Error> {
        self.operations += 1;
        self.flash.program(page, main, spare)
    }

    /// Programs a page with the main data of another one, which was read.
    pub fn program_copy(
        &mut self,
        of: PageNumber,
        page: PageNumber,
        main: &[u8],
        spare: &[u8],
    ) -> Result<(), F::Error> {
        self.operations += 1;
        self.flash.program_copy(of, page, main, spare)
    }

    /// Programs part of a page again, from `offset` on.
    pub fn overwrite(
        &mut self,
        page: PageNumber,
        offset: u32,
        bytes: &[u8],
    ) -> Result<(), F::Error> {
        self.operations += 1;
        self.flash.overwrite(page, offset, bytes)
    }

    /// Replaces a page where it is.
    pub fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), F::Error> {
        self.operations += 1;
        self.flash.rewrite(page, main, spare)
    }

    /// Erases a block.
    pub fn erase(&mut self, block: BlockNumber) -> Result<(), F::Error> {
        self.operations += 1;
        self.flash.erase(block)
    }

    /// Marks a block as bad.
    pub fn mark_bad(&mut self, block: BlockNumber) -> Result<(), F::Error> {
        self.operations += 1;
        self.flash.mark_bad(block)
    }

    /// Whether the chip has marked the block as bad. It is not counted.
    pub fn is_bad(&mut self, block: BlockNumber) -> Result<bool, F::Error> {
        self.flash.is_bad(block)
    }

    /// Says that nobody needs the content of a page any longer. It is not counted.
    pub fn discard(&mut self, page: PageNumber) -> Result<(), F::Error> {
        self.flash.discard(page)
    }

    /// Lets the device do what is due. What it does is not counted.
    pub fn idle(&mut self, budget: u32) -> Result<Upkeep, F::Error> {
        self.flash.idle(budget)
    }

    /// The least budget with which it does something.
    pub fn idle_least(&self) -> u32 {
        self.flash.idle_least()
    }

    /// The checksum of these bytes.
    pub fn checksum(&mut self, pieces: &[&[u8]]) -> u32 {
        self.flash.checksum(pieces)
    }
}
