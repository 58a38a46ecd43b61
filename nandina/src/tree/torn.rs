//! Which pages may be torn, and which blocks an earlier state still needs.
//!
//! This is for systems whose pages commit for themselves. Nothing is written here.

use super::descend::Path;
use super::recover::Found;
use super::settle::{LOOKS, NONE, TORN_MAX};
use super::{HEIGHT_MAX, Index};
use crate::bytes::u32_at;
use crate::checksum;
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::node::PageFault;
use crate::place::{Placement, node_in};

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Whether a mount counts the page as one of the index.
    pub(super) fn counts(&self, page: PageNumber, sequence: u64) -> bool {
        !self.is_outdated(sequence) && !self.torn.contains(&page.0)
    }

    /// Whether this number belongs to an operation that was cut and is torn.
    pub(super) fn is_outdated(&self, sequence: u64) -> bool {
        (self.torn_from..=self.torn_to).contains(&sequence)
    }

    /// Where pages commit for themselves: decides which pages count despite a cut.
    ///
    /// This is decided before anything else is read. The pages that may be torn are the last ones
    /// of the blocks that were written since the last mount that settled. A page that cannot be
    /// read every time is torn, and does not count.
    ///
    /// Cost: two reads for each block, and some for each that may hold a torn page.
    pub(super) fn decide_on_torn(&mut self, identity: u32) -> Result<Found, Fault<F::Error>> {
        self.torn = [u32::MAX; TORN_MAX];
        self.torn_from = u64::MAX;
        self.newest = NONE;
        let found = self.read_all(identity)?;
        if self.ended == found.sequence {
            return Ok(found);
        }
        let from = found.settled.1;
        // A page that was not seen by now must not be seen later.
        (self.torn_from, self.torn_to) = (found.sequence + 1, u64::MAX);
        let mut torn = 0;
        // At the next read, its block may look as if it had never been written.
        let newest = self.newest.0;
        if newest != NONE.0 && !self.is_steady(newest)? {
            self.torn[torn] = newest;
            torn += 1;
        }
        for block in self.space.log.blocks.all() {
            match self.space.log.first_sequence(block)? {
                Some(first) if first < from => continue,
                Some(_) => {}
                None => {
                    // This block may have been the last to be opened.
                    let page = self.space.log.page_at(block, 0);
                    if torn < TORN_MAX && page.0 != newest && !self.reads_alike(page)? {
                        self.torn[torn] = page.0;
                        torn += 1;
                    }
                    continue;
                }
            }
            let written = self.space.log.written(block, self.space.log.block_pages(), 1)?;
            for place in written.saturating_sub(1)..(written + 1).min(self.space.log.block_pages())
            {
                let page = self.space.log.page_at(block, place);
                if page.0 == newest {
                    continue;
                }
                let is_steady = if place < written {
                    self.is_steady(page.0)?
                } else {
                    self.is_steadily_blank(page)?
                };
                if torn < TORN_MAX && !is_steady {
                    self.torn[torn] = page.0;
                    torn += 1;
                }
            }
        }
        if torn == 0 {
            return Ok(found);
        }
        self.newest = NONE;
        let steady = self.read_all(identity)?;
        Ok(Found { sequence: found.sequence, ..steady })
    }

    /// Whether `page` can be read every time.
    pub(super) fn is_steady(&mut self, page: u32) -> Result<bool, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if self.space.log.read_raw(PageNumber(page), 0)?.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The checksum of `page` before its last append, if its reads differ.
    ///
    /// Of the differing contents, the one with the most bits that are 1 was there before the
    /// append. `None` if all reads are alike.
    ///
    /// Cost: [`LOOKS`] reads.
    pub(super) fn before_append(
        &mut self,
        page: PageNumber,
    ) -> Result<Option<u32>, Fault<F::Error>> {
        let (mut before, mut differs) = (None, false);
        for _ in 0..LOOKS {
            if self.space.log.read_raw(page, 0)?.is_err() {
                continue;
            }
            let bytes = self.space.log.frames.bytes(0);
            let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            let read = Some((ones, checksum::of(&[bytes])));
            differs |= before.is_some() && before != read;
            before = before.max(read);
        }
        Ok(before.filter(|_| differs).map(|(_, sum)| sum))
    }

    /// Whether `page` reads the same every time, readable or not.
    pub(super) fn reads_alike(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        let first = self.space.log.read_raw(page, 0)?.map(|header| header.sequence);
        for _ in 1..LOOKS {
            if self.space.log.read_raw(page, 0)?.map(|header| header.sequence) != first {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the pages that may have been written last read the same every time.
    ///
    /// These are the end of the block that was opened last, and the first page of each block that
    /// may have been opened since.
    pub(super) fn ends_alike(&mut self) -> Result<bool, Fault<F::Error>> {
        let mut newest = None;
        for block in self.space.log.blocks.all() {
            match self.space.log.first_sequence(block)? {
                Some(first) => newest = newest.max(Some((first, block.0))),
                None if self.reads_alike(self.space.log.page_at(block, 0))? => {}
                None => return Ok(false),
            }
        }
        let Some((_, block)) = newest else { return Ok(true) };
        let (block, pages) = (BlockNumber(block), self.space.log.block_pages());
        let written = self.space.log.written(block, pages, 1)?;
        for place in written.saturating_sub(1)..(written + 1).min(pages) {
            if !self.reads_alike(self.space.log.page_at(block, place))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `page` reads as erased every time.
    fn is_steadily_blank(&mut self, page: PageNumber) -> Result<bool, Fault<F::Error>> {
        for _ in 0..LOOKS {
            if self.space.log.read_raw(page, 0)? != Err(PageFault::Erased) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where records are appended: reserves the blocks of all children of a parent.
    ///
    /// The parent may or may not have received the pointer to its child's new page. Until the mount
    /// has settled, no block is opened that holds a page to which that parent ever pointed.
    pub(super) fn hold_told_before(&mut self) -> Result<(), Fault<F::Error>> {
        let page = PageNumber(self.newest.0);
        let level = match self.keep_first_key(page) {
            Ok(level) if level < self.height => level,
            Ok(_) | Err(Fault::Corrupt { .. }) => return Ok(()),
            Err(fault) => return Err(fault),
        };
        let mut path = Path::new();
        let keys = core::mem::take(&mut self.separator);
        let descended = self.descend(&mut path, keys.high(), level + 1, false);
        self.separator = keys;
        match descended {
            Ok(()) => {}
            Err(Fault::Corrupt { .. }) => return Ok(()),
            Err(fault) => return Err(fault),
        }
        let parent = PageNumber(path.page(level + 1));
        if self.space.log.read_raw(parent, 0)?.is_err() {
            return Ok(());
        }
        let shape = self.level(level + 1).shape;
        let area_bytes = self.space.log.layout().area_bytes();
        for slot in 0..shape.capacity(area_bytes) {
            let at = shape.at(slot) + shape.key_bytes();
            let child = u32_at(self.space.log.frames.bytes(0), at);
            if child >= self.space.log.geometry().pages() {
                continue;
            }
            self.space.log.blocks.set_reserved(self.block_of(child), true);
            if level > 1 && self.space.log.read_raw(PageNumber(child), 0)?.is_ok() {
                // The child is an inner node with pointers of its own.
                for slot in 0..shape.capacity(area_bytes) {
                    let at = shape.at(slot) + shape.key_bytes();
                    let child = u32_at(self.space.log.frames.bytes(0), at);
                    if child < self.space.log.geometry().pages() {
                        self.space.log.blocks.set_reserved(self.block_of(child), true);
                    }
                }
            }
            if level > 1 {
                let _ = self.space.log.read_raw(parent, 0)?;
            }
        }
        Ok(())
    }

    /// Where pages commit for themselves: holds blocks that the newest commit freed.
    ///
    /// These hold the previous page of the committed node, and the pages to which that one pointed.
    ///
    /// Cost: one read for each written page, unless a root committed.
    pub(super) fn hold_before_commit(
        &mut self,
        identity: u32,
        found: &Found,
    ) -> Result<(), Fault<F::Error>> {
        let (Some((root, _)), commit) = (found.root, PageNumber(self.newest.0)) else {
            return Ok(());
        };
        let before = if commit == root {
            found.root_before.map(|(page, _)| page)
        } else {
            self.page_before(identity, commit)?
        };
        let Some(before) = before else { return Ok(()) };
        self.space.log.blocks.hold(self.block_of(before.0));
        let Ok(header) = self.space.log.read_raw(before, 0)? else { return Ok(()) };
        if !(2..=HEIGHT_MAX).contains(&header.lowest) {
            return Ok(());
        }
        let level = self.form().level::<S>(header.lowest, header.lowest);
        for slot in 0.. {
            let Some(node) = node_in::<S, F>(&self.space, 0, level) else { break };
            if slot >= node.count() {
                break;
            }
            let child = node.pointer(slot);
            if child < self.space.log.geometry().pages() {
                self.space.log.blocks.hold(self.block_of(child));
            }
        }
        Ok(())
    }

    /// The newest page other than `commit` that holds the same node.
    fn page_before(
        &mut self,
        identity: u32,
        commit: PageNumber,
    ) -> Result<Option<PageNumber>, Fault<F::Error>> {
        let Ok(newest) = self.space.log.read_raw(commit, 0)? else { return Ok(None) };
        let area_bytes = self.space.log.layout().area_bytes();
        let Some(name) = S::name_in(&self.space.log.frames.bytes(0)[..area_bytes]) else {
            return Ok(None);
        };
        let mut before: Option<(PageNumber, u64)> = None;
        for page in (0..self.space.log.geometry().pages()).map(PageNumber) {
            let Ok(header) = self.space.log.read_raw(page, 0)? else { continue };
            let area = &self.space.log.frames.bytes(0)[..area_bytes];
            if header.identity == identity
                && header.lowest == newest.lowest
                && header.sequence < newest.sequence
                && (page.0 == name || S::name_in(area) == Some(name))
                && before.is_none_or(|(_, sequence)| sequence < header.sequence)
            {
                before = Some((page, header.sequence));
            }
        }
        Ok(before.map(|(page, _)| page))
    }
}
