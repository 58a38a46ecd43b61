//! Checks what must hold of a hybrid FTL at any time. Nothing is written here.

use nandina::flash::Flash;

use super::Hybrid;
use super::label::Kind;
use super::policy::Policy;
use crate::ftl::{FtlError, Unsound};

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// Checks the header of each page that counts, and the block table.
    ///
    /// Cost: one read for each of these pages.
    pub fn check(&mut self) -> Result<Result<(), Unsound>, FtlError<F::Error>> {
        self.mount_if_in_doubt()?;
        let mut mapped = u32::from(self.own.is_some());
        for logical in 0..self.logical_pages {
            let Some(page) = self.find(logical) else { continue };
            mapped += u32::from(self.media.blocks.is_valid(page));
            // The FTL below may have a page that the buffer supersedes.
            mapped += u32::from(self.find_below(logical).is_some_and(|below| below != page));
            let header = self.media.read(page, 1)?;
            let found = header.ok().and_then(|header| Kind::of(&header).0.logical());
            if found != Some(logical) {
                return Ok(Err(Unsound::Page { page, logical }));
            }
        }
        let valid = self.media.blocks.valid_pages();
        Ok(if mapped == valid { Ok(()) } else { Err(Unsound::ValidPages { mapped, valid }) })
    }
}
