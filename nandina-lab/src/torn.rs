//! A chip on which one page is torn, and reads as a test wants it to.
//!
//! The simulator tears pages at random. Here the test decides which program is torn, how its page
//! reads at each mount, and which blocks fail.

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;

use nandina::flash::{BlockNumber, Flash, PageNumber, Reading};
use nandina_sim::{Chip, ChipError};

use crate::hand_on;
use crate::layer::Bus;

/// The result of reads of the hidden page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// As before the program.
    Erased,
    /// As the program should have left it.
    Written,
    /// One of the two at random.
    Both,
}

/// A chip that tears one program and loses power there.
///
/// The test decides whether the page reads as written or as erased.
#[derive(Clone)]
pub struct Torn {
    /// The chip itself.
    pub chip: Chip,
    /// Programs until one is torn.
    pub left: Cell<Option<u32>>,
    /// The torn page.
    pub hidden: Option<PageNumber>,
    /// How it reads.
    pub shown: Shown,
    /// Whether a cut ends the next erase of its block: it destroys the first page of that alone.
    pub cuts_erase: bool,
    /// Blocks whose erase and bad-block mark fail.
    pub worn: Range<u32>,
    /// Reads so far.
    pub reads: u64,
}

impl Torn {
    /// A chip that tears nothing yet.
    pub fn new(chip: Chip) -> Self {
        Self {
            chip,
            left: Cell::new(None),
            hidden: None,
            shown: Shown::Erased,
            cuts_erase: false,
            worn: 0..0,
            reads: 0,
        }
    }

    /// The next reads of the hidden page return something else than they would have.
    pub const fn skip(&mut self) {
        self.reads += 1;
    }
}

impl Bus for Torn {
    fn simulated(&self) -> &Chip {
        &self.chip
    }

    fn itself(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Flash for Torn {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, rewrite, overwrite, is_bad);

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.reads += 1;
        let reading = self.chip.read(page, main, spare);
        let is_written = match self.shown {
            Shown::Erased => false,
            Shown::Written => true,
            Shown::Both => self.reads.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 1,
        };
        if self.hidden == Some(page) && !is_written {
            main.fill(0xFF);
            spare.fill(0xFF);
        }
        reading
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.chip.program(page, main, spare)?;
        if self.left.get() == Some(0) {
            self.left.set(None);
            self.hidden = Some(page);
            return Err(ChipError::PowerLost);
        }
        self.left.set(self.left.get().map(|left| left - 1));
        Ok(())
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        if self.worn.contains(&block.0) {
            return Err(ChipError::EraseFailed(block));
        }
        if self.hidden.is_some_and(|page| self.geometry().block_of(page) == block) {
            if self.cuts_erase {
                self.cuts_erase = false;
                let first = self.geometry().page_in(block, 0);
                self.chip.corrupt_page(first, |main, _| main.fill(0x5A));
                return Err(ChipError::PowerLost);
            }
            self.hidden = None;
        }
        self.chip.erase(block)
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        if self.worn.contains(&block.0) {
            Err(ChipError::EraseFailed(block))
        } else {
            self.chip.mark_bad(block)
        }
    }
}
