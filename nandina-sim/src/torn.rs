//! What an operation leaves that was cut, reported as failed, or given up half way.

use nandina::flash::{BlockNumber, PageNumber};
use rand_chacha::ChaCha8Rng;

use crate::block::Block;
use crate::cut::{tear_erase, tear_partner, tear_program, tear_rewrite};
use crate::faults::strikes;
use crate::operations::store;
use crate::unstable::Torn;
use crate::{Chip, Tear};

impl Chip {
    pub(crate) fn tear_page(
        &mut self,
        page: PageNumber,
        main: &[u8],
        spare: &[u8],
        tear: Tear,
        by_cut: bool,
    ) {
        let (block, index) = self.place(page);
        let mut new = self.blocks.change(block).page_bytes_mut(index).to_vec();
        store(&mut new, main, spare, false);
        self.tear_cells(page, &Torn::Programmed(&new), tear, by_cut, |block, page, random| {
            tear_program(block, page, &new, tear, random);
        });
        self.fault_counters.torn += u64::from(by_cut);
    }

    /// Tears a page with `damage`, and after a cut the pages that share its cells.
    ///
    /// `torn` is the content that the page was to get.
    pub(crate) fn tear_cells(
        &mut self,
        page: PageNumber,
        torn: &Torn<'_>,
        tear: Tear,
        by_cut: bool,
        damage: impl FnOnce(&mut Block, PageNumber, &mut ChaCha8Rng),
    ) {
        let mut random = self.random(self.counters.operations());
        let pages = self.profile.geometry.pages_per_block;
        let unsettles = self.unsettles(page, &mut random);
        let (block, page) = self.place(page);
        let block = self.blocks.change(block);
        let states = unsettles.then(|| block.states(page));
        damage(block, page, &mut random);
        block.count_program(page);
        if let Some(states) = states {
            block.unsettle(page, states, torn, tear, &mut random);
        }
        if by_cut {
            for partner in self.profile.capabilities.pairing.endangers(page.0, pages) {
                tear_partner(block, PageNumber(partner), tear, &mut random);
            }
        }
    }

    pub(crate) fn tear_rewritten(
        &mut self,
        page: PageNumber,
        main: &[u8],
        spare: &[u8],
        tear: Tear,
        silent: bool,
    ) {
        let mut random = self.random(self.counters.operations());
        let geometry = &self.profile.geometry;
        let mut new = vec![0xFF; (geometry.page_bytes + geometry.spare_bytes) as usize];
        store(&mut new, main, spare, true);
        let unsettles = !silent && self.unsettles(page, &mut random);
        let (block, page) = self.place(page);
        let block = self.blocks.change(block);
        let states = unsettles.then(|| block.states(page));
        tear_rewrite(block, page, &new, tear, &mut random);
        block.count_program(page);
        if let Some(states) = states {
            block.unsettle(page, states, &Torn::Rewritten(&new), tear, &mut random);
        }
    }

    pub(crate) fn tear_block(&mut self, block: BlockNumber, tear: Tear) {
        let mut random = self.random(self.counters.operations());
        let geometry = self.profile.geometry;
        let pages = geometry.pages_per_block;
        // Each page is drawn separately. A page that was erased before cannot be damaged.
        let mut unsettled = Vec::new();
        for page in (0..pages).map(PageNumber) {
            let holds = self.blocks[block.0 as usize].page_bytes(page).is_some();
            if holds && self.unsettles(geometry.page_in(block, page.0), &mut random) {
                unsettled.push((page, self.blocks[block.0 as usize].states(page)));
            }
        }
        let block = self.blocks.change(block.0 as usize);
        tear_erase(block, pages, tear, &mut random);
        for (page, states) in unsettled {
            block.unsettle(page, states, &Torn::Erased, tear, &mut random);
        }
        block.exhaust();
        block.erase_count += 1;
    }

    /// Draws whether the torn `page` becomes unstable. It stays so if it was before.
    pub(crate) fn unsettles(&mut self, page: PageNumber, random: &mut ChaCha8Rng) -> bool {
        let (block, index) = self.place(page);
        let was = self.blocks[block].unstable.contains_key(&index.0);
        let unsettles = was || strikes(random, self.faults.unstable_pages);
        self.fault_counters.unstable += u64::from(unsettles);
        unsettles
    }
}
