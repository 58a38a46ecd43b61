//! A mount that counts records: nodes are replaced in place or appended to.
//!
//! In such systems no page records how many records the index holds. Nothing is written.
//!
//! Where nodes are replaced in place, the root is stored in the first logical page, and of each
//! node the newer of its two shadow pages counts; `session.rs` beside this decides which pages are
//! torn. Where records are appended, the newest root of all pages is the root. Every node is
//! visited, and the records are counted on the way.
//!
//! Cost: in place, three reads for each node, and the same again for each page that is torn, of
//! which there are at most two; else one read for each written page and each node.

use super::recover::Found;
use super::settle::{NONE, TORN_MAX};
use super::walk::Walk;
use super::{HEIGHT_MAX, Index};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::node::PageHeader;
use crate::place::Placement;
use crate::space::{ROOT_TWIN, SESSION_TWIN};

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Finds every node of an index whose records are appended.
    pub(super) fn recover_appended(
        &mut self,
        identity: u32,
        found: &Found,
    ) -> Result<(), Fault<F::Error>> {
        // Pages programmed since the last mount that settled everything may have been appended to.
        self.settle_from = if found.start <= found.settled.0 {
            found.start
        } else {
            self.start_before(found.settled.0)?
        };
        let Some((page, root)) = found.root else {
            return Err(self.no_root()?);
        };
        self.take_root(page, &PageHeader { records: 0, ..root })?;
        // Pages newer than the root belong to it as well: a parent was appended a pointer to them.
        self.space.restart(identity, found.sequence, found.sequence);
        self.space.log.blocks.forget_valid();
        self.claim_page(page)?;
        self.unexplained_pages = 0;
        self.find_every_node(identity)?;
        let unreadable = self.unexplained_pages;
        self.count_unexplained();
        self.unexplained_pages = self.unexplained_pages.max(unreadable);
        Ok(())
    }

    /// Counts records and valid pages anew.
    pub(super) fn count_anew(&mut self) -> Result<(), Fault<F::Error>> {
        self.records = 0;
        self.space.log.blocks.forget_valid();
        self.claim_page(PageNumber(self.root))?;
        self.find_every_node(self.space.log.identity())
    }

    /// Finds every node of an index that is replaced in place.
    ///
    /// Pages that turn out to be torn do not count. Returns the header of the root, if there is
    /// one; if that is of an index of other sizes, nothing else is known about it.
    pub(super) fn recover_in_place(&mut self) -> Result<Option<PageHeader>, Fault<F::Error>> {
        self.torn = [u32::MAX; TORN_MAX];
        loop {
            self.newest = NONE;
            self.space.restart(0, 0, 0);
            self.find_session()?;
            let found = self.find_in_place();
            // An operation writes one page after the other: of the pages since the session began
            // only the newest may be torn.
            let (page, sequence) = self.newest;
            if !matches!(found, Err(Fault::Device(_)))
                && self.newest != NONE
                && sequence > self.last_session()
                && !self.reads_as(page, sequence)?
                && self.exclude(page)
            {
                continue;
            }
            return found;
        }
    }

    /// Finds every node, taking the torn pages as decided.
    fn find_in_place(&mut self) -> Result<Option<PageHeader>, Fault<F::Error>> {
        self.unexplained_pages = 0;
        self.from_checkpoint = false;
        let Some((page, root)) = self.root_in_place()? else { return Ok(None) };
        self.note_newest(page, root.sequence);
        if root.medium != self.space.log.medium {
            return Ok(Some(root));
        }
        if root.lowest == 0 || root.lowest != root.height || root.height > HEIGHT_MAX {
            return Err(self.corrupt_at(ROOT_TWIN, Damage::NoRoot));
        }
        self.space.log.set_identity(root.identity);
        self.take_root(PageNumber(ROOT_TWIN), &PageHeader { records: 0, ..root })?;
        self.find_every_node(root.identity)?;
        Ok(Some(root))
    }

    /// The page that holds the root, and its header.
    pub(super) fn root_in_place(
        &mut self,
    ) -> Result<Option<(PageNumber, PageHeader)>, Fault<F::Error>> {
        self.space.log.blocks.forget_valid();
        self.space.find_twin(ROOT_TWIN, None, &self.torn)
    }

    /// Walks the whole tree: marks referenced pages as valid and counts the records.
    fn find_every_node(&mut self, identity: u32) -> Result<(), Fault<F::Error>> {
        self.inner_nodes = 0;
        let pages = self.space.log.geometry().pages();
        let mut walk = Walk::new(self.root, self.height, pages, 1);
        while !walk.is_over() {
            let frame = match self.read_on(&mut walk) {
                // An unreadable leaf is reported on access; the rest of the tree stays reachable.
                Err(Fault::Corrupt { .. }) if walk.level() == 1 && self.height > 1 => {
                    self.unexplained_pages += 1;
                    walk.leave();
                    continue;
                }
                frame => frame?,
            };
            if walk.level() == 1 {
                self.records += walk.path.count(1) as u32;
            } else if walk.is_new() {
                self.inner_nodes += 1;
            }
            let Some(child) = self.next_child(&mut walk, frame)? else { continue };
            if S::DESCRIPTION.in_place {
                self.claim_twin(child, identity, walk.level() - 1)?;
            } else {
                self.claim_page(PageNumber(child))?;
            }
            walk.enter(child);
        }
        self.walked(&walk)
    }

    /// Finds the page of the logical page `child` and marks it as valid.
    ///
    /// It must hold a node of `level`.
    fn claim_twin(&mut self, child: u32, identity: u32, level: u8) -> Result<(), Fault<F::Error>> {
        let page = PageNumber(child);
        let corrupt = |reason| Err(Fault::Corrupt { page, reason });
        if child % 2 == 1 || child == SESSION_TWIN || child + 1 >= self.space.log.geometry().pages()
        {
            return corrupt(Damage::NoLogicalPage);
        }
        if self.space.log.blocks.is_valid(page)
            || self.space.log.blocks.is_valid(PageNumber(child + 1))
        {
            return corrupt(Damage::ReferredTwice);
        }
        let found = self.space.find_twin(child, Some(identity), &self.torn)?;
        if let Some((page, header)) = found {
            self.note_newest(page, header.sequence);
        }
        if found.is_none() && level == 1 {
            self.space.log.blocks.set_valid(page, true);
        } else if found.is_none_or(|(_, header)| header.lowest != level) {
            return corrupt(Damage::NeitherTwin);
        }
        Ok(())
    }
}
