//! A mount of a system with virtual mappings (VMTree paper, section 4.5).
//!
//! Parents do not show where their children are stored now, so the mappings have to be recovered.
//! Nothing is written.
//!
//! Every page carries its logical address, the pointer that its parent had for it, and commits the
//! operation that wrote it if it has one. The newest root is the root. Then, from the level below
//! it down, the pointers of the nodes above are the logical addresses; they are marked, or searched
//! for from the root ([`LivenessTracking`](crate::LivenessTracking)). Of the pages that carry such
//! an address, the newest is the node. A page does not count if it is older than the page whose
//! number is its logical address: then that number meant another node.
//!
//! Cost: one read of every written page for each level, one more for each node that was moved, and
//! two for each inner node.

use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::log::{LOST_MAX, Newest};
use crate::node::PageFault;
use crate::space::Maps;
use crate::store::page_commits::Found;
use crate::tree::{HEIGHT_MAX, Placement, TreeIndex, node_in};

impl<F: Flash, S: Placement<Kind = Maps>> TreeIndex<'_, F, S> {
    /// Takes the newest root, and decides which pages count.
    ///
    /// `newest` becomes a block of its formatting. If the newest commit wrote the root, returns the
    /// root before it, if there is one.
    // What is found is gone when the tree is walked.
    #[inline(never)]
    pub(super) fn take_root_from(
        &mut self,
        newest: &mut Newest,
    ) -> Result<Option<Option<PageNumber>>, Fault<F::Error>> {
        let mut found = Found::NOTHING;
        self.find_newest_root(newest, false, &mut found)?;
        self.take_newest_root(newest.identity, &found)?;
        let is_commit = found.root.is_some_and(|(root, _)| self.torn.is_newest(root));
        Ok(is_commit.then(|| found.root_before.map(|(page, _)| page)))
    }

    /// Finds mappings and valid pages of the index with this identity.
    // Apart from what decides on torn pages, which is not on the stack meanwhile.
    #[inline(never)]
    pub(super) fn recover_mapped(&mut self, identity: u32) -> Result<(), Fault<F::Error>> {
        self.space.mappings.clear();
        for level in (1..self.state.height()).rev() {
            self.space.log.blocks.forget_valid();
            if !self.space.log.blocks.searches() {
                self.mark_pointers(level)?;
            }
            self.find_named(identity, level)?;
        }
        self.space.log.blocks.forget_valid();
        self.state.begin_inner_nodes(0);
        self.find_valid_pages()?;
        self.count_unexplained();
        Ok(())
    }

    /// Finds the nodes of `level` that are not on the page of their logical address.
    #[inline(never)]
    fn find_named(&mut self, identity: u32, level: u8) -> Result<(), Fault<F::Error>> {
        for block in self.space.log.blocks.all() {
            // Nothing in it counts, but a torn page may be left there, to be read now and then.
            if self.space.log.is_marked(block)? {
                continue;
            }
            let mut blank = 0;
            for place in 0..self.space.log.block_pages() {
                let page = self.space.log.page_at(block, place);
                let header = match self.space.log.read_raw(page, 0)? {
                    Err(PageFault::Erased) if blank >= LOST_MAX => break,
                    Err(PageFault::Erased) => {
                        blank += 1;
                        continue;
                    }
                    Err(_) => continue,
                    Ok(header) => header,
                };
                blank = 0;
                if !self.counts(page, header.sequence) {
                    continue;
                }
                if header.identity != identity || header.lowest != level || header.height == 0 {
                    continue;
                }
                let area = &self.space.log.frames.bytes(0)[..self.space.log.layout().area_bytes()];
                let Some(name) = S::address_in(area).filter(|&name| {
                    name < self.space.log.geometry().pages()
                        && name != page.0
                        && (self.space.log.blocks.searches()
                            || self.space.log.blocks.is_valid(PageNumber(name)))
                }) else {
                    continue;
                };
                if self.space.log.blocks.searches() && !self.is_pointed_to(level, name)? {
                    continue;
                }
                // The page whose number is the logical address is not programmed again while it is
                // one, so pages with that address that are older than it are stale.
                let rival = PageNumber(self.space.current_page(name));
                let rival = self.space.log.read_raw(rival, 0)?;
                if rival.is_ok_and(|rival| {
                    rival.identity == identity && rival.sequence > header.sequence
                }) {
                    covered!("a page has the logical address of a newer one");
                    continue;
                }
                if !self.space.mappings.takes(name) {
                    let reason = Damage::TableTooSmall;
                    return Err(Fault::Corrupt { page, reason });
                }
                self.space.mappings.set(name, page.0);
            }
        }
        Ok(())
    }

    /// The page that the newest commit superseded, which wrote no root.
    ///
    /// Cost: one read for each written page.
    #[inline(never)]
    pub(super) fn before_commit(
        &mut self,
        identity: u32,
    ) -> Result<Option<PageNumber>, Fault<F::Error>> {
        let Some((commit, _)) = self.torn.newest() else { return Ok(None) };
        covered!("the newest commit is a mapped node");
        self.page_before(identity, commit)
    }

    /// Where pages commit for themselves: holds blocks that the newest commit freed.
    ///
    /// These hold `before`, the previous page of the committed node, and the pages to which that
    /// one pointed.
    #[inline(never)]
    pub(super) fn hold_before_commit(
        &mut self,
        before: Option<PageNumber>,
    ) -> Result<(), Fault<F::Error>> {
        let Some(before) = before else { return Ok(()) };
        self.space.log.blocks.hold(self.block_of(before.0));
        let Ok(header) = self.space.log.read_raw(before, 0)? else { return Ok(()) };
        if !(2..=HEIGHT_MAX).contains(&header.lowest) {
            return Ok(());
        }
        let level = self.form().level::<S>(header.lowest, header.lowest);
        let mut slot = 0;
        while let Some(node) = node_in::<S, F>(&self.space, 0, level)
            && slot < node.count()
        {
            let child = node.pointer(slot);
            if child < self.space.log.geometry().pages() {
                let block = self.block_of(child);
                self.space.log.blocks.hold(block);
            }
            slot += 1;
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
        let Some(name) = S::address_in(&self.space.log.frames.bytes(0)[..area_bytes]) else {
            return Ok(None);
        };
        let mut before: Option<(PageNumber, u64)> = None;
        for block in self.space.log.blocks.all() {
            if self.space.log.is_marked(block)? {
                continue;
            }
            for place in 0..self.space.log.block_pages() {
                let page = self.space.log.page_at(block, place);
                let Ok(header) = self.space.log.read_raw(page, 0)? else { continue };
                let area = &self.space.log.frames.bytes(0)[..area_bytes];
                if header.identity == identity
                    && header.lowest == newest.lowest
                    && header.sequence < newest.sequence
                    && (page.0 == name || S::address_in(area) == Some(name))
                    && before.is_none_or(|(_, sequence)| sequence < header.sequence)
                {
                    before = Some((page, header.sequence));
                }
            }
        }
        Ok(before.map(|(page, _)| page))
    }
}
