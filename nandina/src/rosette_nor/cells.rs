//! The cells of the chip, by sector and position: any bytes of a sector.
//!
//! What crosses a page is several operations. Only bytes in which a bit falls are programmed.

use super::form::Form;
use super::head::TAIL_MAX;
use crate::bytes::is_erased;
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError, PageNumber};
use crate::log::Chip;

/// Attempts to read a page.
pub const READS_MAX: u32 = 3;

/// The number of a sector.
pub type Sector = u16;

/// The chip, and RAM for a page that is read.
pub struct Cells<'b, F> {
    chip: Chip<F>,
    /// A page that was read, of which a part is known.
    page: &'b mut [u8],
    form: Form,
    verify: bool,
    /// The sector whose program or erase the chip rejected.
    failed: Option<Sector>,
}

impl<'b, F: Flash> Cells<'b, F> {
    pub const fn new(flash: F, form: Form, verify: bool, page: &'b mut [u8]) -> Self {
        Self { chip: Chip::new(flash), page, form, verify, failed: None }
    }

    pub const fn flash(&self) -> &F {
        self.chip.flash()
    }

    pub fn into_flash(self) -> F {
        self.chip.into_flash()
    }

    /// Whether what is programmed or erased is read.
    pub const fn verifies(&self) -> bool {
        self.verify
    }

    /// Operations so far, modulo 2^32.
    pub const fn operations(&self) -> u32 {
        self.chip.operations()
    }

    /// The page at a position of a sector.
    pub const fn page(&self, sector: Sector, at: usize) -> PageNumber {
        let page = sector as usize * self.form.pages + at / self.form.page_bytes();
        PageNumber(page as u32)
    }

    /// The sector that the chip rejected last; it is forgotten.
    pub const fn take_failed(&mut self) -> Option<Sector> {
        self.failed.take()
    }

    /// Damage in the page at a position.
    pub const fn damage(&self, sector: Sector, at: usize, reason: Damage) -> Fault<F::Error> {
        Fault::Corrupt { page: self.page(sector, at), reason }
    }

    /// Reads a part of a page into the page buffer.
    fn read_page(
        &mut self,
        page: PageNumber,
        start: usize,
        end: usize,
    ) -> Result<(), Fault<F::Error>> {
        let main_bytes = self.form.page_bytes();
        for _ in 0..READS_MAX {
            match self.chip.read_part(page, start..end, &mut self.page[..main_bytes]) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Uncorrectable => {}
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        Err(Fault::Corrupt { page, reason: Damage::Uncorrectable })
    }

    /// Reads the bytes from `at` on.
    ///
    /// Cost: one read for each page that they touch.
    pub fn read(
        &mut self,
        sector: Sector,
        mut at: usize,
        mut out: &mut [u8],
    ) -> Result<(), Fault<F::Error>> {
        let page_bytes = self.form.page_bytes();
        while !out.is_empty() {
            let start = at % page_bytes;
            let bytes = out.len().min(page_bytes - start);
            self.read_page(self.page(sector, at), start, start + bytes)?;
            let (now, rest) = out.split_at_mut(bytes);
            now.copy_from_slice(&self.page[start..start + bytes]);
            (out, at) = (rest, at + bytes);
        }
        Ok(())
    }

    /// Reads the head of a leaf and the header behind it into the start of `tail`.
    ///
    /// Returns whether the page could be read. Cost: one read.
    pub fn read_tail(
        &mut self,
        sector: Sector,
        tail: &mut [u8; TAIL_MAX],
    ) -> Result<bool, Fault<F::Error>> {
        let (at, bytes) = (self.form.head_at(), self.form.tail_bytes());
        let page = self.page(sector, 0);
        let read = if self.form.has_header_inside() {
            self.read_page(page, at, at + bytes)
        } else {
            self.read_whole(page)
        };
        match read {
            Ok(()) => {
                tail[..bytes].copy_from_slice(&self.page[at..at + bytes]);
                Ok(true)
            }
            Err(Fault::Corrupt { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Reads a page with its spare area.
    fn read_whole(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        let (main, spare) = self.page.split_at_mut(self.form.page_bytes());
        for _ in 0..READS_MAX {
            match self.chip.read(page, main, spare) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Uncorrectable => {}
                Err(error) => return Err(Fault::Device(error)),
            }
        }
        Err(Fault::Corrupt { page, reason: Damage::Uncorrectable })
    }

    /// The header of a page, of whatever system, if there is one.
    pub fn foreign_header(
        &mut self,
        page: PageNumber,
    ) -> Result<Result<crate::node::PageHeader, crate::node::PageFault>, Fault<F::Error>> {
        match self.read_whole(page) {
            Ok(()) => {}
            Err(Fault::Corrupt { .. }) => return Ok(Err(crate::node::PageFault::Unreadable)),
            Err(fault) => return Err(fault),
        }
        let (page, layout) = (&*self.page, self.form.layout);
        let chip = &mut self.chip;
        let checked = layout.check_as(page, true, &mut |pieces| chip.checksum(pieces));
        Ok(checked.map(|()| layout.header(page)))
    }

    /// The settings in the page that `foreign_header` read last.
    pub fn foreign_medium(&self) -> crate::node::Medium {
        self.form.layout.medium(self.page)
    }

    /// Programs bytes from `at` on, which were blank.
    ///
    /// Cost: one program for each page in which a bit falls.
    pub fn program(
        &mut self,
        sector: Sector,
        at: usize,
        bytes: &[u8],
    ) -> Result<(), Fault<F::Error>> {
        self.program_as(sector, at, bytes, true)
    }

    /// Lets those bits fall that are 0 in `bytes`; others may be torn.
    ///
    /// Cost: one program for each page in which a bit falls.
    pub fn let_fall(
        &mut self,
        sector: Sector,
        at: usize,
        bytes: &[u8],
    ) -> Result<(), Fault<F::Error>> {
        self.program_as(sector, at, bytes, false)
    }

    fn program_as(
        &mut self,
        sector: Sector,
        mut at: usize,
        mut bytes: &[u8],
        was_blank: bool,
    ) -> Result<(), Fault<F::Error>> {
        let page_bytes = self.form.page_bytes();
        while !bytes.is_empty() {
            let start = at % page_bytes;
            let (now, rest) = bytes.split_at(bytes.len().min(page_bytes - start));
            if !is_erased(now) {
                let page = self.page(sector, at);
                let done = self.chip.overwrite(page, start as u32, now);
                self.note(sector, done)?;
                if self.verify {
                    self.read_page(page, start, start + now.len())?;
                    let read = &self.page[start..start + now.len()];
                    let fell = read.iter().zip(now).all(|(read, wanted)| read & !wanted == 0);
                    if !fell || was_blank && read != now {
                        return self.reject(sector, page);
                    }
                }
            }
            (at, bytes) = (at + now.len(), rest);
        }
        Ok(())
    }

    /// Programs page 0 of a sector, its spare area included.
    pub fn program_first(&mut self, sector: Sector, frame: &[u8]) -> Result<(), Fault<F::Error>> {
        let page = self.page(sector, 0);
        let (main, spare) = frame.split_at(self.form.page_bytes());
        let done = self.chip.program(page, main, spare);
        self.note(sector, done)?;
        if self.verify {
            self.read_whole(page)?;
            if *self.page != *frame {
                return self.reject(sector, page);
            }
        }
        Ok(())
    }

    /// Erases a sector.
    ///
    /// With `verify` all of it is read. Slots are programmed one by one, so what an erase silently
    /// left behind them would be taken for changes.
    pub fn erase(&mut self, sector: Sector) -> Result<(), Fault<F::Error>> {
        let done = self.chip.erase(BlockNumber(sector.into()));
        self.note(sector, done)?;
        if self.verify {
            for at in (0..self.form.sector_bytes()).step_by(self.form.page_bytes()) {
                let page = self.page(sector, at);
                match self.read_whole(page) {
                    Ok(()) if is_erased(self.page) => {}
                    Ok(()) | Err(Fault::Corrupt { .. }) => return self.reject(sector, page),
                    Err(fault) => return Err(fault),
                }
            }
        }
        Ok(())
    }

    /// Whether the chip has marked a sector as bad.
    pub fn is_bad(&mut self, sector: Sector) -> Result<bool, Fault<F::Error>> {
        self.chip.is_bad(BlockNumber(sector.into())).map_err(Fault::Device)
    }

    /// Marks a sector as bad; it holds no leaf.
    pub fn mark_bad(&mut self, sector: Sector) -> Result<(), Fault<F::Error>> {
        self.chip.mark_bad(BlockNumber(sector.into())).map_err(Fault::Device)
    }

    /// The checksum of these bytes.
    pub fn checksum(&mut self, pieces: &[&[u8]]) -> u32 {
        self.chip.checksum(pieces)
    }

    /// Notes which sector the chip rejected.
    fn note(&mut self, sector: Sector, done: Result<(), F::Error>) -> Result<(), Fault<F::Error>> {
        done.map_err(|error| {
            if error.kind() != ErrorKind::Other {
                self.failed = Some(sector);
            }
            Fault::Device(error)
        })
    }

    const fn reject(&mut self, sector: Sector, page: PageNumber) -> Result<(), Fault<F::Error>> {
        self.failed = Some(sector);
        Err(Fault::Corrupt { page, reason: Damage::NotAsWritten })
    }
}
