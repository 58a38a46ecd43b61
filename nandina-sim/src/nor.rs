//! A simulated NOR chip as a `NorFlash` of the crate `embedded-storage`.
//!
//! Other crates can so run on this simulator, with its rules, its clock, its cuts and its faults.

use std::borrow::BorrowMut;

use embedded_storage::nor_flash::{
    ErrorType, MultiwriteNorFlash, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
    check_erase, check_read, check_write,
};
use nandina::flash::{BlockNumber, Flash, PageNumber};

use crate::{Chip, ChipError};

/// A simulated chip of the profile `nor`, with any number of blocks.
///
/// It has sectors of 4 KiB and no spare area; its pages may be programmed any number of times, byte
/// by byte.
///
/// A write is one program for each page that it touches and takes the time of the bytes written; a
/// read is one read for each page.
///
/// It owns the chip, or borrows it (`NorChip<&mut Chip>`).
#[derive(Clone, Debug)]
pub struct NorChip<C = Chip> {
    inner: C,
}

impl<C: BorrowMut<Chip>> NorChip<C> {
    /// Wraps `chip` as a `NorFlash`; `None` if it is not of that class.
    pub fn new(chip: C) -> Option<Self> {
        let profile = chip.borrow().profile();
        let geometry = profile.geometry;
        let sector = (geometry.page_bytes * geometry.pages_per_block) as usize;
        let is_nor =
            profile.capabilities.programs_per_page.is_none() && !profile.capabilities.in_order;
        let fits = sector == Self::ERASE_SIZE && geometry.spare_bytes == 0 && is_nor;
        fits.then_some(Self { inner: chip })
    }

    /// The chip, for inspection.
    pub fn chip(&self) -> &Chip {
        self.inner.borrow()
    }

    /// The chip, for changing its state.
    pub fn chip_mut(&mut self) -> &mut Chip {
        self.inner.borrow_mut()
    }

    /// The parts of `length` bytes from `offset` on.
    ///
    /// Each has its page, its first byte in the page, and its range of the whole.
    fn parts(
        &self,
        offset: u32,
        length: usize,
    ) -> Vec<(PageNumber, usize, std::ops::Range<usize>)> {
        let page_bytes = self.chip().geometry().page_bytes as usize;
        let mut parts = Vec::new();
        let (mut at, mut done) = (offset as usize, 0);
        while done < length {
            let within = at % page_bytes;
            let count = (page_bytes - within).min(length - done);
            parts.push((PageNumber((at / page_bytes) as u32), within, done..done + count));
            at += count;
            done += count;
        }
        parts
    }
}

/// The chip's error, or a call that breaks the rules of `NorFlash`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NorChipError {
    /// The chip's own error.
    Chip(ChipError),
    /// Not aligned or out of bounds.
    Call(NorFlashErrorKind),
}

impl std::fmt::Display for NorChipError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Chip(error) => error.fmt(f),
            Self::Call(kind) => kind.fmt(f),
        }
    }
}

impl std::error::Error for NorChipError {}

impl NorFlashError for NorChipError {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::Chip(_) => NorFlashErrorKind::Other,
            Self::Call(kind) => *kind,
        }
    }
}

impl<C: BorrowMut<Chip>> ErrorType for NorChip<C> {
    type Error = NorChipError;
}

impl<C: BorrowMut<Chip>> ReadNorFlash for NorChip<C> {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorChipError> {
        check_read(self, offset, bytes.len()).map_err(NorChipError::Call)?;
        let parts = self.parts(offset, bytes.len());
        let chip = self.chip_mut();
        let mut main = vec![0; chip.geometry().page_bytes as usize];
        for (page, within, part) in parts {
            let count = part.len();
            Flash::read(chip, page, &mut main, &mut []).map_err(NorChipError::Chip)?;
            chip.take_back_read(main.len() - count);
            bytes[part].copy_from_slice(&main[within..within + count]);
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.chip().geometry().bytes() as usize
    }
}

impl<C: BorrowMut<Chip>> NorFlash for NorChip<C> {
    const WRITE_SIZE: usize = 1;
    const ERASE_SIZE: usize = 4096;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), NorChipError> {
        check_erase(self, from, to).map_err(NorChipError::Call)?;
        let sectors = from / Self::ERASE_SIZE as u32..to / Self::ERASE_SIZE as u32;
        for sector in sectors {
            Flash::erase(self.chip_mut(), BlockNumber(sector)).map_err(NorChipError::Chip)?;
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorChipError> {
        check_write(self, offset, bytes.len()).map_err(NorChipError::Call)?;
        let parts = self.parts(offset, bytes.len());
        let chip = self.chip_mut();
        for (page, within, part) in parts {
            // The bytes around the part keep their values, and bits only fall.
            let mut main = chip.cells(page);
            let cells = &mut main[within..within + part.len()];
            for (old, new) in cells.iter_mut().zip(&bytes[part.clone()]) {
                *old &= new;
            }
            if chip.capabilities().overwrite && !chip.page_is_erased(page) {
                let overwritten = chip.overwrite(page, within as u32, cells);
                overwritten.map_err(NorChipError::Chip)?;
                continue;
            }
            let result = chip.program(page, &main, &[]);
            chip.take_back_program(main.len() - part.len());
            result.map_err(NorChipError::Chip)?;
        }
        Ok(())
    }
}

impl<C: BorrowMut<Chip>> MultiwriteNorFlash for NorChip<C> {}
