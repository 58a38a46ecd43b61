//! Logical pages that are replaced in place, each stored as two shadow pages.
//!
//! A new state is written over the older of the two pages, so that a cut leaves the newer one
//! intact (rule 14 of the media contract leaves a torn page undefined).
//!
//! The even page of the two is the logical address; the valid one holds the current state. RAM: the
//! bit for each page that every index keeps. Nothing is erased, and nothing is written elsewhere.
//! `session_page.rs` beside this describes which of the two counts after a cut.

use super::session_page::SESSION;
use crate::cache::Cached;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::log::Label;
use crate::node::PageHeader;
use crate::space::{InPlace, Memory, Space};

/// The logical page of the root.
pub(crate) const ROOT: u32 = 0;

/// Logical pages for nodes on a chip of `pages`.
///
/// One logical page is that of the sessions.
pub(crate) const fn logical_pages(pages: u32) -> u32 {
    (pages / 2).saturating_sub(1)
}

impl<F: Flash> Space<'_, F, InPlace> {
    /// The number of free logical pages.
    pub(crate) fn free_logical_pages(&self) -> u32 {
        logical_pages(self.log.geometry().pages()).saturating_sub(self.log.blocks.valid_pages())
    }

    /// The page that holds the current state of the logical page `name`.
    pub(crate) fn newer_shadow_page(&self, name: u32) -> u32 {
        if self.log.blocks.is_valid(PageNumber(name | 1)) { name | 1 } else { name }
    }
}

impl<F: Flash> Space<'_, F, InPlace> {
    /// Writes the page in `frame` as the new state of the logical page `name`.
    pub(crate) fn replace(
        &mut self,
        frame: usize,
        name: u32,
        lowest: u8,
        height: u8,
        records: u32,
    ) -> Result<(), Fault<F::Error>> {
        // A session page commits all decisions of a mount: until it is written, only copies are.
        debug_assert!(
            self.log.has_begun() || self.log.settling,
            "logical page {name} is written before the session page"
        );
        let before = PageNumber(self.newer_shadow_page(name));
        let is_new = !self.log.blocks.is_valid(before);
        let page = if is_new { before } else { PageNumber(before.0 ^ 1) };
        self.log.frames.forget_page(page.0);
        self.cache.forget(page.0);
        self.log.rewrite(frame, page, Label { lowest, height, records })?;
        self.log.blocks.set_valid(before, false);
        self.log.blocks.set_valid(page, true);
        self.cache.forget(before.0);
        self.cache.remember_written(page, self.log.frames.bytes(frame));
        self.log.frames.hold(frame, page);
        Ok(())
    }

    /// Writes the page in `frame` as a free logical page. Returns its address.
    pub(crate) fn replace_free(
        &mut self,
        frame: usize,
        lowest: u8,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let pairs = self.log.geometry().pages() / 2;
        let free =
            (0..pairs).map(|step| 2 * ((self.memory.next_free + step) % pairs)).find(|&name| {
                name != ROOT
                    && name != SESSION
                    && !self.log.blocks.is_valid(PageNumber(name))
                    && !self.log.blocks.is_valid(PageNumber(name + 1))
            });
        let Some(name) = free else {
            return Err(self.log.no_room(pairs));
        };
        self.memory.next_free = name / 2 + 1;
        self.replace(frame, name, lowest, 0, records)?;
        Ok(name)
    }
}

impl<F: Flash> Space<'_, F, InPlace> {
    /// Finds the page that holds the logical page `name`, and counts it as valid.
    ///
    /// Returns it and its header, if one of the two shadow pages is readable, counts, and belongs
    /// to the index `identity`. Pages listed in `torn` do not count. Cost: two reads.
    pub(crate) fn find_logical_page(
        &mut self,
        name: u32,
        identity: Option<u32>,
        torn: &[u32],
    ) -> Result<Option<(PageNumber, PageHeader)>, Fault<F::Error>> {
        let mut newest: Option<(PageNumber, PageHeader)> = None;
        for page in [PageNumber(name), PageNumber(name | 1)] {
            let header = match self.log.read_raw(page, 0)? {
                Ok(header) if !torn.contains(&page.0) && self.memory.counts(&header) => header,
                Ok(_) | Err(_) => continue,
            };
            if identity.is_none_or(|identity| header.identity == identity)
                && newest.is_none_or(|(_, newest)| newest.sequence < header.sequence)
            {
                newest = Some((page, header));
            }
        }
        if let Some((page, header)) = newest {
            self.log.raise_sequence(header.sequence);
            self.memory.note_counted(header.sequence);
            self.log.blocks.set_valid(page, true);
        }
        Ok(newest)
    }
}
