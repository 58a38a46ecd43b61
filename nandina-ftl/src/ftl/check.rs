//! Checks what must hold of an FTL at any time. Nothing is written here.

use core::fmt;

use nandina::flash::{Flash, PageNumber};

use super::bytes::Kind;
use super::{Ftl, FtlError};
use crate::mapping::{Broken, Extent, Mapping};

/// What does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// An invariant of the mapping.
    Mapping(Broken),
    /// A page that is mapped does not hold the logical page, or cannot be read.
    Page {
        /// The page of the chip.
        page: PageNumber,
        /// The logical page.
        logical: u32,
    },
    /// A page that is mapped does not count as valid, or the other way round.
    ValidPages {
        /// Pages that are mapped, or kept about the FTL itself.
        mapped: u32,
        /// Pages that are valid in the block table.
        valid: u32,
    },
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mapping(broken) => broken.fmt(f),
            Self::Page { page, logical } => write!(f, "{page} does not hold page {logical}"),
            Self::ValidPages { mapped, valid } => {
                write!(f, "{mapped} pages are mapped and {valid} valid")
            }
        }
    }
}

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Checks the mapping, the header of each page that is mapped, and the block table.
    ///
    /// Cost: one read for each of these pages.
    pub fn check(&mut self) -> Result<Result<(), Unsound>, FtlError<F::Error>> {
        self.mount_if_in_doubt()?;
        if let Err(broken) = self.mapping.check() {
            return Ok(Err(Unsound::Mapping(broken)));
        }
        let mut mapped = 0;
        for logical in 0..self.logical_pages {
            let Some(page) = self.find(logical) else { continue };
            mapped += u32::from(self.log.blocks.is_valid(page));
            let header = self.log.read_raw(page, 0)?;
            let kind = header.map(|header| Kind::of(header.lowest, header.records));
            if kind != Ok(Kind::Data(logical)) && kind != Ok(Kind::Hole(logical)) {
                return Ok(Err(Unsound::Page { page, logical }));
            }
        }
        let mut units = self.own.iter().flatten().count();
        mapped += units as u32;
        let valid = self.log.blocks.valid_pages();
        self.mapping.look_up(Extent::new(0, self.logical_pages), &mut |piece| {
            units += piece.physical.map_or(0, |_| piece.length as usize);
        })?;
        let is_right = mapped == valid && units == valid as usize;
        Ok(if is_right { Ok(()) } else { Err(Unsound::ValidPages { mapped, valid }) })
    }
}
