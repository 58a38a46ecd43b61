//! Finding the index again where nodes are replaced in place. Nothing is written.
//!
//! The root is stored in the first logical page, and of each node the newer of its two shadow pages
//! counts; `session.rs` beside this decides which pages are torn. No page says how many records the
//! index holds: every node is read, and the records are counted on the way.
//!
//! Cost: three reads for each node, two where pages are replaced atomically, and the same again for
//! each page that is torn, of which there are at most two.

use super::shadow_pages::{Current, ROOT as ROOT_PAGE};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::node::{Medium, PageHeader};
use crate::space::InPlace;
use crate::tree::{HEIGHT_MAX, Placement, TreeIndex};

impl<F: Flash, S: Placement<Kind = InPlace>> TreeIndex<'_, F, S> {
    /// Takes the pages of a node as the medium has them: one, or two shadow pages.
    ///
    /// A device that replaces pages atomically may hold an index that was made elsewhere. Cost: two
    /// reads on such a device.
    pub(super) fn follow_medium(&mut self) -> Result<(), Fault<F::Error>> {
        if !self.space.log.capabilities().atomic_rewrite {
            return Ok(());
        }
        self.space.log.medium.atomic = true;
        for page in [ROOT_PAGE, ROOT_PAGE + 1].map(PageNumber) {
            if page.0 < self.space.log.geometry().pages()
                && let Ok(header) = self.space.log.read_raw(page, 0)?
                && let medium = self.space.log.medium_in(0)
                && medium.system == self.space.log.medium.system
                && header.height > 0
                && !medium.atomic
            {
                self.space.log.medium.atomic = false;
            }
        }
        Ok(())
    }

    /// Finds every node of an index that is replaced in place.
    ///
    /// Pages that turn out to be torn do not count. Returns the settings of the root, if there
    /// is one; if they differ from those of this index, nothing else is known about it.
    pub(super) fn recover_in_place(&mut self) -> Result<Option<Medium>, Fault<F::Error>> {
        self.torn.forget();
        loop {
            self.torn.forget_newest();
            self.space.restart(0, 0, 0);
            self.find_session()?;
            let found = self.find_in_place();
            // An operation writes one page after the other: of the pages that are newer than the
            // last session page only the newest may be torn.
            if !self.space.is_atomic()
                && !matches!(found, Err(Fault::Device(_)))
                && let Some((page, sequence)) = self.torn.newest()
                && sequence > self.last_session()
                && !self.reads_as(page, sequence)?
                && self.torn.exclude(page)
            {
                covered!("the newest shadow page is torn");
                continue;
            }
            return found;
        }
    }

    /// Finds every node, taking the torn pages as decided.
    fn find_in_place(&mut self) -> Result<Option<Medium>, Fault<F::Error>> {
        self.state.begin_mount();
        let Some((page, root, medium)) = self.root_in_place()? else { return Ok(None) };
        self.torn.note_newest(page, root.sequence);
        if medium != self.space.log.medium {
            return Ok(Some(medium));
        }
        if root.lowest == 0 || root.lowest != root.height || root.height > HEIGHT_MAX {
            return Err(self.corrupt_at(ROOT_PAGE, Damage::NoRoot));
        }
        self.space.log.set_identity(root.identity);
        self.take_root(PageNumber(ROOT_PAGE), &PageHeader { records: 0, ..root })?;
        let identity = root.identity;
        self.find_every_node(|index, child, level| {
            index.claim_logical_page(child, identity, level)
        })?;
        Ok(Some(medium))
    }

    /// The page that holds the root, its header and its settings.
    pub(super) fn root_in_place(&mut self) -> Result<Option<Current>, Fault<F::Error>> {
        self.space.log.blocks.forget_valid();
        self.space.find_logical_page(ROOT_PAGE, None, self.torn.excluded())
    }

    /// Finds the page of the logical page `child` and marks it as valid.
    ///
    /// It must hold a node of `level`.
    fn claim_logical_page(
        &mut self,
        child: u32,
        identity: u32,
        level: u8,
    ) -> Result<(), Fault<F::Error>> {
        let page = PageNumber(child);
        let corrupt = |reason| Err(Fault::Corrupt { page, reason });
        let each = self.space.pages_each();
        if !self.space.is_for_nodes(child) {
            return corrupt(Damage::NoLogicalPage);
        }
        if (child..child + each).any(|page| self.space.log.blocks.is_valid(PageNumber(page))) {
            return corrupt(Damage::ReferredTwice);
        }
        let found = self.space.find_logical_page(child, Some(identity), self.torn.excluded())?;
        if let Some((page, header, _)) = found {
            self.torn.note_newest(page, header.sequence);
        }
        if found.is_none() && level == 1 {
            self.space.log.blocks.set_valid(page, true);
        } else if found.is_none_or(|(_, header, _)| header.lowest != level) {
            return corrupt(Damage::NeitherTwin);
        }
        Ok(())
    }
}
