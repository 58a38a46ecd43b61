//! A simulated chip, small enough for a microcontroller.
//!
//! It checks the media contract and keeps its pages in a file of the host. An operation that breaks
//! a rule fails and changes no byte.

use nandina::flash::{
    BlockNumber, Capabilities, ErrorKind, Flash, FlashError, Geometry, Needs, PageNumber, Pairing,
    Reading,
};

use crate::{host::File, measure};

/// Small-page NAND of 2,016 pages: 2,000, rounded up to whole blocks.
pub const GEOMETRY: Geometry =
    Geometry { page_bytes: 512, spare_bytes: 0, pages_per_block: 32, blocks: 63 };

const PAGES: usize = GEOMETRY.pages() as usize;
const PAGE_BYTES: usize = GEOMETRY.page_bytes as usize;
const BLOCK_PAGES: usize = GEOMETRY.pages_per_block as usize;

/// Why the chip refused: a rule of the contract, or the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Rule 1: the page was programmed too often since its block was erased.
    EraseFirst,
    /// Rule 2: a bit would rise.
    BitRises,
    /// Rule 3: a page above it was programmed before.
    Order,
    /// Rule 4: not a whole page.
    Size,
    /// Rule 5: there is no such page or block.
    Bounds,
    /// Rule 14: the chip cannot replace pages.
    Rewrite,
    /// Rule 15: the chip cannot, or the page was not programmed before.
    Overwrite,
    /// The host could not read or write its file.
    Host,
}

impl FlashError for Refusal {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

/// Operations since the chip was as new.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// Pages read.
    pub reads: u32,
    /// Pages programmed.
    pub programs: u32,
    /// Pages replaced in place.
    pub rewrites: u32,
    /// Programs of some bytes of a page.
    pub overwrites: u32,
    /// Blocks erased.
    pub erases: u32,
}

/// The chip. It has the capabilities that its system needs and no more.
pub struct Chip<'c> {
    file: File,
    needs: Needs,
    /// Programs of each page since its block was erased. An erased page is not in the file.
    programs: &'c mut [u8; PAGES],
    /// Room to compare with the content of a page.
    held: &'c mut [u8; PAGE_BYTES],
    counts: Counts,
}

/// The RAM of a chip.
pub struct ChipRam {
    programs: [u8; PAGES],
    held: [u8; PAGE_BYTES],
}

impl ChipRam {
    /// RAM for one chip.
    pub const fn new() -> Self {
        Self { programs: [0; PAGES], held: [0; PAGE_BYTES] }
    }
}

impl Default for ChipRam {
    fn default() -> Self {
        Self::new()
    }
}

impl<'c> Chip<'c> {
    /// Makes an erased chip with the capabilities in `needs`, and its pages in `file`.
    pub fn new(file: File, needs: Needs, ram: &'c mut ChipRam) -> Self {
        ram.programs.fill(0);
        let ChipRam { programs, held } = ram;
        Self { file, needs, programs, held, counts: Counts::default() }
    }

    /// Erases everything, as if new, and counts from zero.
    pub fn reset(&mut self) {
        self.programs.fill(0);
        self.counts = Counts::default();
    }

    /// The counts since the chip was as new.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The index of `page`, if the operation moves one whole page.
    fn place(page: PageNumber, main: usize, spare: usize) -> Result<usize, Refusal> {
        if page.0 >= GEOMETRY.pages() {
            Err(Refusal::Bounds)
        } else if main != PAGE_BYTES || spare != 0 {
            Err(Refusal::Size)
        } else {
            Ok(page.0 as usize)
        }
    }

    fn store(&mut self, place: usize, main: &[u8]) -> Result<(), Refusal> {
        let stored = self.file.write((place * PAGE_BYTES) as u32, main);
        if stored { Ok(()) } else { Err(Refusal::Host) }
    }

    fn do_read(&mut self, page: PageNumber, main: &mut [u8], spare: usize) -> Result<(), Refusal> {
        let place = Self::place(page, main.len(), spare)?;
        self.counts.reads += 1;
        if self.programs[place] == 0 {
            main.fill(0xFF);
        } else if !self.file.read((place * PAGE_BYTES) as u32, main) {
            return Err(Refusal::Host);
        }
        Ok(())
    }

    /// Programs that a page permits between erases.
    ///
    /// Any number where records are appended, as on NOR.
    fn allowed(&self) -> Option<u8> {
        (!self.needs.overwrite).then_some(self.needs.programs_per_page)
    }

    fn do_program(&mut self, page: PageNumber, main: &[u8], spare: usize) -> Result<(), Refusal> {
        let place = Self::place(page, main.len(), spare)?;
        if self.programs[place] >= self.allowed().unwrap_or(u8::MAX) {
            return Err(Refusal::EraseFirst);
        }
        let block_end = (place / BLOCK_PAGES + 1) * BLOCK_PAGES;
        if self.programs[place] > 0 {
            if !self.file.read((place * PAGE_BYTES) as u32, self.held) {
                return Err(Refusal::Host);
            }
            if self.held.iter().zip(main).any(|(held, new)| new & !held != 0) {
                return Err(Refusal::BitRises);
            }
        } else if !self.needs.any_order
            && self.programs[place + 1..block_end].iter().any(|&programs| programs > 0)
        {
            return Err(Refusal::Order);
        }
        self.store(place, main)?;
        self.programs[place] += 1;
        self.counts.programs += 1;
        Ok(())
    }

    fn do_rewrite(&mut self, page: PageNumber, main: &[u8], spare: usize) -> Result<(), Refusal> {
        let place = Self::place(page, main.len(), spare)?;
        if !self.needs.rewrite {
            return Err(Refusal::Rewrite);
        }
        self.store(place, main)?;
        self.programs[place] = 1;
        self.counts.rewrites += 1;
        Ok(())
    }

    fn do_overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), Refusal> {
        let place = Self::place(page, PAGE_BYTES, 0)?;
        let end = offset as usize + bytes.len();
        let is_erased = self.programs[place] == 0;
        if !self.needs.overwrite || is_erased && !self.needs.any_order {
            return Err(Refusal::Overwrite);
        }
        if bytes.is_empty() || end > PAGE_BYTES {
            return Err(Refusal::Size);
        }
        if is_erased {
            self.held.fill(0xFF);
            if !self.file.write((place * PAGE_BYTES) as u32, self.held) {
                return Err(Refusal::Host);
            }
        }
        if self.programs[place] >= self.allowed().unwrap_or(u8::MAX) {
            return Err(Refusal::EraseFirst);
        }
        let at = (place * PAGE_BYTES) as u32 + offset;
        let held = &mut self.held[..bytes.len()];
        if !self.file.read(at, held) {
            return Err(Refusal::Host);
        }
        if held.iter().zip(bytes).any(|(held, new)| new & !held != 0) {
            return Err(Refusal::BitRises);
        }
        if !self.file.write(at, bytes) {
            return Err(Refusal::Host);
        }
        self.programs[place] += 1;
        self.counts.overwrites += 1;
        Ok(())
    }

    fn do_erase(&mut self, block: BlockNumber) -> Result<(), Refusal> {
        if block.0 >= GEOMETRY.blocks {
            return Err(Refusal::Bounds);
        }
        let first = GEOMETRY.page_in(block, 0).0 as usize;
        self.programs[first..][..BLOCK_PAGES].fill(0);
        self.counts.erases += 1;
        Ok(())
    }
}

/// Runs the body as the driver's work, whose instructions are not the index's.
macro_rules! driver {
    ($work:expr) => {{
        measure::enter_driver();
        let answer = $work;
        measure::leave_driver();
        answer
    }};
}

impl Flash for Chip<'_> {
    type Error = Refusal;

    fn geometry(&self) -> Geometry {
        GEOMETRY
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            programs_per_page: self.allowed(),
            in_order: self.needs.programs_per_page == 1 && !self.needs.rewrite,
            pairing: Pairing::None,
            rewrite: self.needs.rewrite,
            atomic_rewrite: self.needs.atomic_rewrite,
            overwrite: self.needs.overwrite,
            part_reads: false,
            bad_blocks_per_mille: 0,
        }
    }

    #[inline(never)]
    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, Refusal> {
        driver!(self.do_read(page, main, spare.len()))?;
        Ok(Reading::Clean)
    }

    #[inline(never)]
    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Refusal> {
        driver!(self.do_program(page, main, spare.len()))
    }

    #[inline(never)]
    fn erase(&mut self, block: BlockNumber) -> Result<(), Refusal> {
        driver!(self.do_erase(block))
    }

    #[inline(never)]
    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), Refusal> {
        driver!(self.do_rewrite(page, main, spare.len()))
    }

    #[inline(never)]
    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), Refusal> {
        driver!(self.do_overwrite(page, offset, bytes))
    }
}
