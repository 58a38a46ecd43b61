//! What an operation leaves that was cut, reported as failed, or given up half way.

use nandina::flash::{BlockNumber, PageNumber};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::block::Block;
use crate::cut::{tear_erase, tear_partner, tear_program, tear_rewrite};
use crate::faults::strikes;
use crate::operations::store;
use crate::unstable::{Torn, Unstable, fall};
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
        let mut random = self.random_damage(by_cut);
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
        by_cut: bool,
        silent: bool,
    ) {
        let mut random = self.random_damage(by_cut);
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

    pub(crate) fn tear_block(&mut self, block: BlockNumber, tear: Tear, by_cut: bool) {
        let mut random = self.random_damage(by_cut);
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

impl Block {
    /// The two states of a page; equal if the page is not unstable.
    pub fn states(&self, page: PageNumber) -> (Vec<u8>, Vec<u8>) {
        if let Some(unstable) = self.unstable.get(&page.0) {
            return (unstable.old.clone(), unstable.new.clone());
        }
        let cells = self.page_bytes(page).map_or_else(|| self.ones(), <[u8]>::to_vec);
        (cells.clone(), cells)
    }

    /// Makes `page` unstable, which was in `states` and is torn now.
    pub fn unsettle(
        &mut self,
        page: PageNumber,
        states: (Vec<u8>, Vec<u8>),
        torn: &Torn<'_>,
        tear: Tear,
        random: &mut ChaCha8Rng,
    ) {
        let was = self.unstable.remove(&page.0);
        let (old, mut new) = states;
        let (mut old, overwritten) = match torn {
            Torn::Programmed(_) => (old, false),
            Torn::Overwritten(..) => (old, was.as_ref().is_none_or(|was| was.overwritten)),
            // The replaced content was one of the two states; which one is unknown.
            Torn::Rewritten(_) | Torn::Erased => {
                (if was.is_some() && random.random() { new.clone() } else { old }, false)
            }
        };
        match *torn {
            Torn::Programmed(bytes) => fall(&mut new, bytes),
            Torn::Overwritten(at, bytes) => fall(&mut new[at..at + bytes.len()], bytes),
            Torn::Rewritten(bytes) => {
                // The chip erases the page first.
                if tear == Tear::Ones {
                    old.fill(0xFF);
                }
                new.copy_from_slice(bytes);
            }
            Torn::Erased => new.fill(0xFF),
        }
        let still = matches!(torn, Torn::Programmed(_) | Torn::Overwritten(..));
        let was_faint = still && was.is_some_and(|was| was.faint);
        let faint = was_faint || (tear == Tear::Unreadable && !overwritten);
        if faint && let Some(damage) = self.damage.get_mut(&page.0) {
            damage.unreadable = false;
        }
        // The page counts as written: its cells are what the tear left of it.
        self.page_bytes_mut(page);
        self.unstable.insert(page.0, Unstable { old, new, faint, overwritten });
    }

    /// Clears the bits of a page that are 0 in `bytes`, in either state.
    ///
    /// `bytes` begin at byte `at` of the page.
    #[inline]
    pub fn fall_unstable(&mut self, page: PageNumber, at: usize, bytes: &[u8]) {
        if let Some(unstable) = self.unstable.get_mut(&page.0) {
            fall(&mut unstable.old[at..at + bytes.len()], bytes);
            fall(&mut unstable.new[at..at + bytes.len()], bytes);
        }
    }
}
