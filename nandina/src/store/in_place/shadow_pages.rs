//! Logical pages that are replaced in place, each stored as two shadow pages.
//!
//! A new state is written over the older of the two pages, so that a cut leaves the newer one
//! intact (rule 14 of the media contract leaves a torn page undefined). Where the device replaces a
//! page as a whole or not at all, a logical page is one page, and its number is the address.
//!
//! The even page of the two is the logical address; the valid one holds the current state. RAM: the
//! bit for each page that every index keeps. Nothing is erased, and nothing is written elsewhere.
//! `session_page.rs` beside this describes which of the two counts after a cut.

use crate::cache::Cached;
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::log::Label;
use crate::node::{Medium, PageHeader};
use crate::space::{InPlace, Memory, Space};

/// The logical page of the root.
pub(crate) const ROOT: u32 = 0;

/// Logical pages for nodes on a chip of `pages`.
///
/// Where pages are replaced atomically, all pages are logical pages. Otherwise, each logical page
/// has two shadow pages, and one of the logical pages is that of the sessions. A checkpoint of
/// `checkpoint_pages` takes that number of pages, and always a session page.
pub(crate) const fn logical_pages(pages: u32, atomic: bool, checkpoint_pages: u32) -> u32 {
    let each = if atomic { 1 } else { 2 };
    let has_sessions = !atomic || checkpoint_pages > 0;
    (pages / each).saturating_sub(has_sessions as u32 + checkpoint_pages.div_ceil(each))
}

impl<F: Flash> Space<'_, F, InPlace> {
    /// The number of free logical pages.
    pub(crate) fn free_logical_pages(&self) -> u32 {
        let pages = self.log.geometry().pages();
        let pages = logical_pages(pages, self.is_atomic(), self.checkpoint_pages());
        pages.saturating_sub(self.log.blocks.valid_pages())
    }

    /// Whether a logical page is one page, which is replaced as a whole or not at all.
    pub(crate) const fn is_atomic(&self) -> bool {
        self.log.medium.atomic
    }

    /// The pages of a logical page: one, or two shadow pages.
    pub(crate) const fn pages_each(&self) -> u32 {
        if self.is_atomic() { 1 } else { 2 }
    }

    /// Whether there is a logical page `name` that can hold a node.
    pub(crate) fn is_for_nodes(&self, name: u32) -> bool {
        let each = self.pages_each();
        let has_sessions = each > 1 || self.has_checkpoints();
        let checkpoint_end = self.checkpoint_page(self.checkpoint_pages()).next_multiple_of(each);
        let is_taken = has_sessions && (self.session_page()..checkpoint_end).contains(&name);
        let is_there = name.saturating_add(each) <= self.log.geometry().pages();
        name.is_multiple_of(each) && is_there && !is_taken
    }

    /// The pages of the logical page `name`.
    fn pages_of(&self, name: u32) -> impl Iterator<Item = PageNumber> + use<F> {
        (name..name + self.pages_each()).map(PageNumber)
    }

    /// The page that holds the current state of the logical page `name`.
    pub(crate) fn newer_shadow_page(&self, name: u32) -> u32 {
        let shadow = name | 1;
        let is_shadow = !self.is_atomic() && self.log.blocks.is_valid(PageNumber(shadow));
        if is_shadow { shadow } else { name }
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
            self.log.has_begun() || self.log.is_settling(),
            "logical page {name} is written before the session page"
        );
        // A pointer of a damaged medium.
        if !self.is_for_nodes(name) {
            let page = PageNumber(name);
            return Err(Fault::Corrupt { page, reason: Damage::NoLogicalPage });
        }
        let before = PageNumber(self.newer_shadow_page(name));
        let is_new = !self.log.blocks.is_valid(before);
        let stays = is_new || self.is_atomic();
        let page = if stays { before } else { PageNumber(before.0 ^ 1) };
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

    /// Writes the page in `frame` as the lowest logical page that is free.
    ///
    /// Returns its address. So the tree takes as few blocks of the device below as it can, and an
    /// FTL that maps blocks merges less. Called before the running operation removes a node: until
    /// it commits, the page of such a node may still be needed.
    pub(crate) fn replace_free(
        &mut self,
        frame: usize,
        lowest: u8,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        debug_assert!(!self.has_superseded(), "a node is written after another one was removed");
        let each = self.pages_each();
        let all = self.log.geometry().pages() / each;
        let names = (0..all).map(|step| each * ((self.memory.next_free() + step) % all));
        let mut names = names.filter(|&name| name != ROOT && self.is_for_nodes(name));
        let free =
            names.find(|&name| !self.pages_of(name).any(|page| self.log.blocks.is_valid(page)));
        let Some(name) = free else {
            return Err(self.log.no_room(all));
        };
        self.memory.set_next_free(name / each + 1);
        self.replace(frame, name, lowest, 0, records)?;
        Ok(name)
    }
}

/// The page that holds a logical page, its header, and the settings in it.
pub(super) type Current = (PageNumber, PageHeader, Medium);

impl<F: Flash> Space<'_, F, InPlace> {
    /// Finds the page that holds the logical page `name`, and counts it as valid.
    ///
    /// Returns it, its header and its settings, if one of its pages is readable, counts, and
    /// belongs to the index `identity`. Pages listed in `torn` do not count. Cost: a read for each
    /// of its pages.
    pub(super) fn find_logical_page(
        &mut self,
        name: u32,
        identity: Option<u32>,
        torn: &[u32],
    ) -> Result<Option<Current>, Fault<F::Error>> {
        let mut newest: Option<Current> = None;
        for page in self.pages_of(name) {
            let header = match self.log.read_raw(page, 0)? {
                Ok(header) if !torn.contains(&page.0) && self.memory.counts(&header) => header,
                Ok(_) | Err(_) => continue,
            };
            if identity.is_none_or(|identity| header.identity == identity)
                && newest.is_none_or(|(_, newest, _)| newest.sequence < header.sequence)
            {
                newest = Some((page, header, self.log.medium_in(0)));
            }
        }
        if let Some((page, header, _)) = newest {
            self.log.raise_sequence(header.sequence);
            self.memory.note_counted(header.sequence);
            self.log.blocks.set_valid(page, true);
        }
        Ok(newest)
    }
}
