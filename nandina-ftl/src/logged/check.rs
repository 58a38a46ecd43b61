//! Checks what must hold of an FTL with logs at any time. Nothing is written here.

use nandina::flash::{Flash, PageNumber};

use super::{Found, Logged};
use crate::ftl::{FtlError, Unsound};

impl<F: Flash> Logged<'_, F> {
    /// Checks each page that counts with its newest record, and how many each block holds.
    ///
    /// Cost: one read or two for each of them.
    pub fn check(&mut self) -> Result<Result<(), Unsound>, FtlError<F::Error>> {
        self.mount_if_in_doubt()?;
        let (mut mapped, mut held) = (0, 0);
        for logical in 0..self.logical_pages {
            let Some(home) = self.maps.home(logical) else { continue };
            mapped += 1;
            if !home.is_hole && self.fetch(logical)? != Found::Page {
                return Ok(Err(Unsound::Page { page: PageNumber(home.page), logical }));
            }
        }
        for block in self.media.blocks.all() {
            held += u32::from(self.maps.row(block.0).held);
        }
        Ok(if mapped == held { Ok(()) } else { Err(Unsound::ValidPages { mapped, valid: held }) })
    }
}
