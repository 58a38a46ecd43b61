//! Which pages may be torn, and which blocks an earlier state still needs.
//!
//! This is for systems whose pages commit for themselves. Nothing is written here.

use super::{Index, LOOKS, Placement};
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Whether a mount counts the page as one of the index.
    pub(crate) fn counts(&self, page: PageNumber, sequence: u64) -> bool {
        !self.is_outdated(sequence) && !self.torn.contains(&page.0)
    }

    /// Whether this number belongs to an operation that was cut and is torn.
    pub(crate) fn is_outdated(&self, sequence: u64) -> bool {
        (self.torn_from..=self.torn_to).contains(&sequence)
    }

    /// Whether `page` can be read every time.
    pub(crate) fn is_steady(&mut self, page: u32) -> Result<bool, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if self.space.log.read_raw(PageNumber(page), 0)?.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `page` reads the same every time, readable or not.
    pub(crate) fn reads_alike(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        let first = self.space.log.read_raw(page, 0)?.map(|header| header.sequence);
        for _ in 1..LOOKS {
            if self.space.log.read_raw(page, 0)?.map(|header| header.sequence) != first {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
