//! A checkpoint where pages are replaced in place: it is the end of a session.
//!
//! A mount reads every node, to find the newer of its shadow pages and to count the records. Where
//! the last session ended by a close, all of that is known: the checkpoint is a bit for each page
//! that holds a node, and the last session page counts records and nodes. It is the *end* of the
//! session: it counts until the next session page, which is written before any other node. After a
//! cut in between, the mount takes as long as without checkpoints; nothing is lost.
//!
//! The pages of the checkpoint follow the session page, each written over the same page of the last
//! one. The end is written after them, and is one more session page: it lists the gaps as well, it
//! is checked for being torn in the same way, and the next one is written beside it. A mount takes
//! the checkpoint only if each of its pages has the number of that end, if no session page is
//! unreadable (it may be newer), and if the root belongs to the same index and is older. It knows
//! the age of no node, so it forgets no gap; if the list of them is full, it reads every node
//! instead.
//!
//! Cost: to write it, a rewrite for each of its pages and one for the end; to read it, a read for
//! each of its pages and for each page of the root. It takes a bit for each page of the chip, and
//! the logical pages in which it lies hold no nodes.

use super::session_end::{END_BYTES, End};
use super::shadow_pages::{ROOT as ROOT_PAGE, logical_pages};
use crate::error::Fault;
use crate::flash::{Flash, Geometry, PageNumber};
use crate::log::Label;
use crate::log::checkpoint::Summary;
use crate::node::{CHECKPOINT, Gaps, PageHeader, PageLayout};
use crate::space::{Checkpointing, InPlace, Space};
use crate::tree::{Placement, TreeIndex};

/// Bytes of a page before its bits: a count of no records, and its number.
const PREFIX_BYTES: usize = 4;

/// The checkpoints of such an index.
pub struct AmongNodes {
    /// Pages of one, or 0.
    pages: u32,
}

impl Checkpointing for AmongNodes {
    fn new(_every: u32, parts: u32, _block_pages: u32) -> Self {
        Self { pages: parts }
    }

    fn pages_among_nodes(&self) -> u32 {
        self.pages
    }
}

/// Bytes of bits in a page of a checkpoint.
const fn bits_each(layout: &PageLayout) -> usize {
    layout.area_bytes().saturating_sub(PREFIX_BYTES)
}

/// Pages of a checkpoint, or 0 if a chip of this geometry can have none.
///
/// Then its pages or the chip are too small for it, or it has more parts than can be numbered.
pub(super) fn checkpoint_pages(geometry: &Geometry, layout: &PageLayout) -> u32 {
    if layout.area_bytes() < Gaps::LEAST_BYTES + END_BYTES {
        return 0;
    }
    let pages = (geometry.pages() as usize).div_ceil(8).div_ceil(bits_each(layout)) as u32;
    // The page of the root and that of the sessions have two shadow pages each.
    let is_there = pages <= u16::MAX.into() && pages.saturating_add(4) <= geometry.pages();
    if is_there { pages } else { 0 }
}

impl<F: Flash> Space<'_, F, InPlace> {
    /// Whether the index has checkpoints.
    pub(super) const fn has_checkpoints(&self) -> bool {
        self.checkpoint_pages() > 0
    }

    /// Pages of a checkpoint, or 0.
    pub(super) const fn checkpoint_pages(&self) -> u32 {
        if cfg!(feature = "checkpoints") { self.checkpoints.pages } else { 0 }
    }

    /// The logical page of the session pages, after that of the root.
    pub(super) fn session_page(&self) -> u32 {
        ROOT_PAGE + self.pages_each()
    }

    /// The page with this part of the checkpoint, or the page after its last part.
    pub(super) fn checkpoint_page(&self, part: u32) -> u32 {
        self.session_page() + self.pages_each() + part
    }

    /// Writes the pages of a checkpoint, each with the number that its end will have.
    ///
    /// So a mount that does not see that end continues with numbers above all of these.
    fn write_checkpoint(&mut self) -> Result<(), Fault<F::Error>> {
        let layout = self.log.layout();
        for part in 0..self.checkpoint_pages() {
            self.log.frames.forget(0);
            let area = &mut self.log.frames.bytes_mut(0)[..layout.area_bytes()];
            area.fill(0);
            area[2..PREFIX_BYTES].copy_from_slice(&(part as u16).to_le_bytes());
            let bits = self.log.blocks.valid_bits();
            let from = part as usize * bits_each(&layout);
            for (byte, &valid) in area[PREFIX_BYTES..].iter_mut().zip(&bits[from..]) {
                *byte = valid;
            }
            let label = Label { lowest: 1, height: 0, records: CHECKPOINT };
            let page = PageNumber(self.checkpoint_page(part));
            self.log.rewrite_as(0, page, label, self.log.sequence() + 1)?;
            self.log.frames.release(0);
        }
        Ok(())
    }

    /// Reads the pages of the checkpoint that `end` follows: which pages are valid.
    ///
    /// Returns `false` if one of them cannot be read, or was not written for it.
    fn read_checkpoint(&mut self, end: &End) -> Result<bool, Fault<F::Error>> {
        let (parts, number) = (self.checkpoint_pages(), self.session());
        let layout = self.log.layout();
        let pages = self.log.geometry().pages();
        self.log.blocks.forget_valid();
        for part in 0..parts {
            let header = self.log.read_raw(PageNumber(self.checkpoint_page(part)), 0)?;
            let is_part = header.is_ok_and(|header| {
                header.identity == end.identity
                    && header.sequence == number
                    && header.is_of_checkpoint()
            });
            if !is_part {
                return Ok(false);
            }
            let first = part * 8 * bits_each(&layout) as u32;
            for page in first..pages.min(first + 8 * bits_each(&layout) as u32) {
                let at = PREFIX_BYTES + ((page - first) / 8) as usize;
                if self.log.frames.bytes(0)[at] >> (page % 8) & 1 == 0 {
                    continue;
                }
                // Damage may claim a page that holds no node, or both shadow pages of one.
                let name = page - page % self.pages_each();
                let is_beside = page > name && self.log.blocks.is_valid(PageNumber(name));
                if !self.is_for_nodes(name) || is_beside {
                    return Ok(false);
                }
                self.log.blocks.set_valid(PageNumber(page), true);
            }
        }
        Ok(true)
    }
}

impl<F: Flash, S: Placement<Kind = InPlace>> TreeIndex<'_, F, S> {
    /// Ends the session with a checkpoint.
    ///
    /// Does nothing if the last checkpoint still counts. After a mount that read every node it
    /// writes one although nothing was changed, so that the next mount need not.
    pub(super) fn end_in_place(&mut self) -> Result<(), Fault<F::Error>> {
        let counts = self.state.is_from_checkpoint() && !self.space.log.has_begun();
        // A leaf that could not be read is not counted: the next mount tries again.
        if counts || !self.is_whole() || self.state.unexplained_pages() > 0 {
            return Ok(());
        }
        self.begin_session()?;
        let end = End {
            identity: self.space.log.identity(),
            records: self.state.records(),
            inner_nodes: self.state.inner_nodes(),
            height: self.state.height(),
        };
        self.state.doubt();
        self.space.write_checkpoint()?;
        self.space.end_session(end)
    }

    /// Continues from the checkpoint of the last session, if it ended with one.
    pub(super) fn continue_in_place(&mut self) -> Result<bool, Fault<F::Error>> {
        if !self.space.has_checkpoints() {
            return Ok(false);
        }
        self.torn.forget();
        self.space.restart(0, 0, 0);
        self.find_session()?;
        let Some(&end) = self.space.end() else { return Ok(false) };
        if self.space.has_unread_session() {
            return Ok(false);
        }
        let Some((page, root, medium)) = self.root_in_place()? else { return Ok(false) };
        let pages = self.space.log.geometry().pages();
        let tree = Summary {
            page: ROOT_PAGE,
            height: end.height,
            records: end.records,
            nodes: end.inner_nodes,
        };
        let fits = medium == self.space.log.medium
            && root.identity == end.identity
            && root.sequence < self.last_session()
            && root.height == end.height
            && root.lowest == end.height
            && tree.is_tree(pages);
        self.space.forget_oldest();
        if !fits || self.space.gaps_are_full() || !self.space.read_checkpoint(&end)? {
            return Ok(false);
        }
        let most = logical_pages(pages, self.space.is_atomic(), self.space.checkpoint_pages());
        let taken = self.space.log.blocks.valid_pages();
        if !self.space.log.blocks.is_valid(page) || !(end.inner_nodes..=most).contains(&taken) {
            return Ok(false);
        }
        self.space.log.set_identity(end.identity);
        let header = PageHeader { records: end.records, ..root };
        if self.take_root(PageNumber(ROOT_PAGE), &header).is_err() {
            return Ok(false);
        }
        self.state.begin_inner_nodes(end.inner_nodes);
        self.state.begin_unexplained(0);
        self.state.continue_from_checkpoint();
        Ok(true)
    }
}
