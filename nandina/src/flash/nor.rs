//! Any `NorFlash` of the crate `embedded-storage` as a chip that carries an index.
//!
//! This needs the feature `embedded-storage`. No byte is written twice between erases, so plain
//! `NorFlash` suffices, unless a system overwrites: that takes a `MultiwriteNorFlash`.

use core::ops::Range;

use embedded_storage::nor_flash::{MultiwriteNorFlash, NorFlash, NorFlashError, NorFlashErrorKind};

use super::{
    BlockNumber, Capabilities, ErrorKind, Flash, FlashError, Geometry, PageNumber, Pairing, Reading,
};

/// A `NorFlash`, divided into pages of a size that the caller chooses.
///
/// A block is an erase unit, [`NorFlash::ERASE_SIZE`] bytes; any capacity past the last whole block
/// is not used. There is no spare area. A page may be larger than the part programs at once: its
/// checksum shows whether a power cut interrupted it.
///
/// If the flash refuses a valid write or erase, the sector counts as worn out, and the index writes
/// elsewhere. NOR flash has no place for bad-block marks, so after the next mount such a sector
/// costs one failed call again.
pub struct NorPages<F> {
    flash: F,
    page_bytes: u32,
    bad_blocks_per_mille: u8,
    /// The bytes of the flash may be written again between erases.
    multiwrite: bool,
}

/// Why a `NorFlash` cannot be divided into such pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NorLayoutError {
    /// The page size is not a multiple of the unit of reads or writes.
    Unit {
        /// Bytes read or written at once.
        unit_bytes: u32,
    },
    /// An erase unit is not a whole number of pages, two or more.
    Block {
        /// Bytes of an erase unit.
        block_bytes: u32,
    },
    /// The flash does not write single bytes, as overwriting requires.
    Overwrite {
        /// Bytes written at once.
        unit_bytes: u32,
    },
}

impl core::fmt::Display for NorLayoutError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unit { unit_bytes } => {
                write!(f, "a page must be a multiple of {unit_bytes} bytes")
            }
            Self::Block { block_bytes } => {
                write!(f, "a block of {block_bytes} bytes must hold two or more whole pages")
            }
            Self::Overwrite { unit_bytes } => {
                write!(f, "overwriting takes single bytes, the flash writes {unit_bytes} at once")
            }
        }
    }
}

impl core::error::Error for NorLayoutError {}

impl<F: NorFlash> NorPages<F> {
    /// Divides `flash` into pages of `page_bytes`.
    ///
    /// Smaller pages cost less RAM, larger ones carry higher trees: 512 to 4096 bytes are usual.
    pub fn new(flash: F, page_bytes: u32) -> Result<Self, NorLayoutError> {
        for unit_bytes in [F::READ_SIZE as u32, F::WRITE_SIZE as u32] {
            if page_bytes == 0 || !page_bytes.is_multiple_of(unit_bytes) {
                return Err(NorLayoutError::Unit { unit_bytes });
            }
        }
        let block_bytes = F::ERASE_SIZE as u32;
        if !block_bytes.is_multiple_of(page_bytes) || block_bytes / page_bytes < 2 {
            return Err(NorLayoutError::Block { block_bytes });
        }
        Ok(Self { flash, page_bytes, bad_blocks_per_mille: 0, multiwrite: false })
    }

    /// Keeps blocks in reserve for ones that wear out, in thousandths of the blocks.
    ///
    /// Default: 0; then the capacity of the index shrinks as sectors fail.
    pub fn with_bad_blocks_per_mille(self, bad_blocks_per_mille: u8) -> Self {
        Self { bad_blocks_per_mille, ..self }
    }

    /// Returns the flash.
    pub fn into_inner(self) -> F {
        self.flash
    }

    const fn offset(&self, page: PageNumber) -> u32 {
        page.0 * self.page_bytes
    }
}

impl<F: MultiwriteNorFlash> NorPages<F> {
    /// As [`NorPages::new`], with pages that can be overwritten (rule 15).
    ///
    /// They can be overwritten any number of times between erases. The flash must write single
    /// bytes.
    pub fn multiwrite(flash: F, page_bytes: u32) -> Result<Self, NorLayoutError> {
        if F::WRITE_SIZE != 1 {
            return Err(NorLayoutError::Overwrite { unit_bytes: F::WRITE_SIZE as u32 });
        }
        Ok(Self { multiwrite: true, ..Self::new(flash, page_bytes)? })
    }
}

/// An error of a `NorFlash`, or a call that a `NorFlash` cannot serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NorError<E> {
    /// The flash could not read.
    Read(E),
    /// The flash could not write.
    Write(E),
    /// The flash could not erase.
    Erase(E),
    /// NOR flash cannot replace a page in place.
    NoRewrite,
    /// These pages were not made by [`NorPages::multiwrite`].
    NoOverwrite,
}

impl<E: core::fmt::Debug> core::fmt::Display for NorError<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Read(error) => write!(f, "reading: {error:?}"),
            Self::Write(error) => write!(f, "writing: {error:?}"),
            Self::Erase(error) => write!(f, "erasing: {error:?}"),
            Self::NoRewrite => f.write_str("NOR flash cannot replace a page in place"),
            Self::NoOverwrite => f.write_str("this NOR flash is not known to write bytes again"),
        }
    }
}

impl<E: NorFlashError> FlashError for NorError<E> {
    fn kind(&self) -> ErrorKind {
        let in_order = |error: &E| error.kind() == NorFlashErrorKind::Other;
        match self {
            Self::Write(error) if in_order(error) => ErrorKind::ProgramFailed,
            Self::Erase(error) if in_order(error) => ErrorKind::EraseFailed,
            _ => ErrorKind::Other,
        }
    }
}

impl<F: NorFlash> Flash for NorPages<F> {
    type Error = NorError<F::Error>;

    fn geometry(&self) -> Geometry {
        Geometry {
            page_bytes: self.page_bytes,
            spare_bytes: 0,
            pages_per_block: F::ERASE_SIZE as u32 / self.page_bytes,
            blocks: (self.flash.capacity() / F::ERASE_SIZE) as u32,
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            programs_per_page: if self.multiwrite { None } else { Some(1) },
            in_order: false,
            pairing: Pairing::None,
            rewrite: false,
            atomic_rewrite: false,
            overwrite: self.multiwrite,
            part_reads: true,
            bad_blocks_per_mille: self.bad_blocks_per_mille,
        }
    }

    fn reports_corrections(&self) -> bool {
        false
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        _spare: &mut [u8],
    ) -> Result<Reading, Self::Error> {
        self.flash.read(self.offset(page), main).map_err(NorError::Read)?;
        Ok(Reading::Clean)
    }

    fn read_part(
        &mut self,
        page: PageNumber,
        part: Range<usize>,
        main: &mut [u8],
    ) -> Result<Reading, Self::Error> {
        // A page is a multiple of the unit of reads.
        let (start, end) = (part.start / F::READ_SIZE, part.end.div_ceil(F::READ_SIZE));
        let units = start * F::READ_SIZE..end * F::READ_SIZE;
        let offset = self.offset(page) + units.start as u32;
        self.flash.read(offset, &mut main[units]).map_err(NorError::Read)?;
        Ok(Reading::Clean)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], _spare: &[u8]) -> Result<(), Self::Error> {
        self.flash.write(self.offset(page), main).map_err(NorError::Write)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Self::Error> {
        let start = block.0 * F::ERASE_SIZE as u32;
        self.flash.erase(start, start + F::ERASE_SIZE as u32).map_err(NorError::Erase)
    }

    fn rewrite(&mut self, _: PageNumber, _: &[u8], _: &[u8]) -> Result<(), Self::Error> {
        Err(NorError::NoRewrite)
    }

    fn overwrite(
        &mut self,
        page: PageNumber,
        offset: u32,
        bytes: &[u8],
    ) -> Result<(), Self::Error> {
        if !self.multiwrite {
            return Err(NorError::NoOverwrite);
        }
        self.flash.write(self.offset(page) + offset, bytes).map_err(NorError::Write)
    }
}
