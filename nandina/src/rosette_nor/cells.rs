//! The cells of the chip, by sector and position: any bytes of a sector.
//!
//! What crosses a page is several operations. Only bytes in which a bit falls are programmed.

use core::cmp::Ordering;

use super::form::{COMMIT_BYTES, Form};
use super::head::{self, Head};
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, ErrorKind, Flash, FlashError, PageNumber};
use crate::log::Chip;
use crate::node::Medium;
use crate::node::slot::looks_blank;

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
    /// The page size as a power of two; 0 if it is none.
    page_shift: u8,
    verify: bool,
    /// The sector whose program or erase the chip rejected.
    failed: Option<Sector>,
}

impl<'b, F: Flash> Cells<'b, F> {
    pub const fn new(flash: F, form: Form, verify: bool, page: &'b mut [u8]) -> Self {
        let bytes = form.page_bytes();
        let page_shift = if bytes.is_power_of_two() { bytes.trailing_zeros() as u8 } else { 0 };
        Self { chip: Chip::new(flash), page, form, page_shift, verify, failed: None }
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
        self.locate(sector, at).0
    }

    /// Where a position is in its page.
    pub const fn in_page(&self, at: usize) -> usize {
        self.locate(0, at).1
    }

    /// The page at a position of a sector, and where in that page it is.
    const fn locate(&self, sector: Sector, at: usize) -> (PageNumber, usize) {
        let page_bytes = self.form.page_bytes();
        // A small processor divides slowly, and this is done for each read.
        let page = if self.page_shift > 0 { at >> self.page_shift } else { at / page_bytes };
        let first = sector as usize * self.form.pages();
        (PageNumber((first + page) as u32), at - page * page_bytes)
    }

    /// The sector that the chip rejected last; it is forgotten.
    pub const fn take_failed(&mut self) -> Option<Sector> {
        self.failed.take()
    }

    /// Damage in the page at a position.
    #[inline(never)]
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
            let (page, start) = self.locate(sector, at);
            let bytes = out.len().min(page_bytes - start);
            self.read_page(page, start, start + bytes)?;
            let (now, rest) = out.split_at_mut(bytes);
            now.copy_from_slice(&self.page[start..start + bytes]);
            (out, at) = (rest, at + bytes);
        }
        Ok(())
    }

    /// The checksum in the commit at a position; `None` if it is not whole.
    #[inline(never)]
    pub fn committed(&mut self, sector: Sector, at: usize) -> Result<Option<u32>, Fault<F::Error>> {
        let mut commit = [0; COMMIT_BYTES];
        self.read(sector, at, &mut commit)?;
        Ok(head::committed(&commit))
    }

    /// The bytes from `at` on, as many as `scratch` has.
    ///
    /// They are there if they cross a page, else in the page buffer.
    ///
    /// Cost: as [`read`](Self::read), but the bytes of one page are not copied.
    pub fn view<'a>(
        &'a mut self,
        sector: Sector,
        at: usize,
        scratch: &'a mut [u8],
    ) -> Result<&'a [u8], Fault<F::Error>> {
        let (page, start) = self.locate(sector, at);
        let end = start + scratch.len();
        if scratch.is_empty() || end > self.form.page_bytes() {
            self.read(sector, at, scratch)?;
            return Ok(scratch);
        }
        self.read_page(page, start, end)?;
        Ok(&self.page[start..end])
    }

    /// Compares the key at a position with `key`, which may be shorter.
    ///
    /// Cost: as [`read`](Self::read) of that key.
    pub fn compare(
        &mut self,
        sector: Sector,
        mut at: usize,
        mut key: &[u8],
    ) -> Result<Ordering, Fault<F::Error>> {
        let mut bytes = self.form.key_bytes;
        let mut found = Ordering::Equal;
        while bytes > 0 {
            let (page, start) = self.locate(sector, at);
            let now = bytes.min(self.form.page_bytes() - start);
            self.read_page(page, start, start + now)?;
            let (same, rest) = key.split_at(now.min(key.len()));
            found = found.then(self.page[start..start + now].cmp(same));
            (key, at, bytes) = (rest, at + now, bytes - now);
        }
        Ok(if key.is_empty() { found } else { found.then(Ordering::Less) })
    }

    /// Reads the head of a leaf and the header behind it into the page buffer.
    ///
    /// Returns whether the page could be read. Cost: one read.
    pub fn look_at_tail(&mut self, sector: Sector) -> Result<bool, Fault<F::Error>> {
        let (at, bytes) = (self.form.head_at(), self.form.tail_bytes());
        let page = self.page(sector, 0);
        let read = if self.form.has_header_inside() {
            self.read_page(page, at, at + bytes)
        } else {
            self.read_whole(page)
        };
        match read {
            Ok(()) => Ok(true),
            Err(Fault::Corrupt { .. }) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// The head that was read just now, and the header behind it.
    pub fn tail(&self) -> &[u8] {
        &self.page[self.form.head_at()..][..self.form.tail_bytes()]
    }

    /// What the head says that was read just now, if it is one of this medium.
    #[inline(never)]
    pub fn head(&mut self, medium: &Medium) -> Option<Head> {
        let tail = &self.page[self.form.head_at()..][..self.form.tail_bytes()];
        let chip = &mut self.chip;
        head::read(&self.form, tail, medium, &mut |pieces| chip.checksum(pieces))
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
            let (page, start) = self.locate(sector, at);
            let (now, rest) = bytes.split_at(bytes.len().min(page_bytes - start));
            if !looks_blank(now) {
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
                    Ok(()) if looks_blank(self.page) => {}
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
