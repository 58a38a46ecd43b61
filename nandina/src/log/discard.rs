//! Pages whose content nobody needs, for devices that can use their room.
//!
//! Nothing is programmed or erased here, and no later read relies on what such a page holds.

use super::Log;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};

impl<F: Flash> Log<'_, F> {
    /// Says that nobody needs the content of `page` any longer.
    pub fn discard(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        self.chip.discard(page).map_err(Fault::Device)
    }
}
