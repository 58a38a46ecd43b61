//! Merges: the pages of a block are written with their records into a free one.
//!
//! Copies count from the program of the last one on, which names the block that they replace. So a
//! cut leaves the old block or the new one. The old one is erased then. What a cut leaves of it
//! does not count: each page that it held has a newer copy, also what was trimmed. A torn record in
//! it is ignored, because the newest merge names the block.
//!
//! A merge of [`Scheme::Dipl`] divides a block with too many pages, unless a page of it may be
//! torn: that page has to be the newest until its block is replaced. The lower half is written
//! first, as a merge that replaces nothing: its pages are what they were, in another place. Then
//! the rest replaces the block.

use nandina::flash::{BlockNumber, Flash};
use nandina::{Damage, Fault, covered};

use super::maps::{Home, Row};
use super::{Found, Logged, NO_BLOCK, OUT, Scheme};
use crate::hybrid::label::{Cause, Kind};

/// A logical page that a merge changes, and its new content; `None` if it is trimmed.
pub(super) type Change<'c> = Option<(u32, Option<&'c [u8]>)>;

impl<F: Flash> Logged<'_, F> {
    /// Writes the pages of a block into a free one, with a change, and erases the block.
    pub(super) fn merge(
        &mut self,
        block: BlockNumber,
        change: Change<'_>,
    ) -> Result<(), Fault<F::Error>> {
        let pages = self.copied(block, change, 0).count() as u32;
        let inside = self.copied(block, change, 0).filter(|&at| self.block_of(at) == Some(block));
        // Records of a damaged chip may be of more pages than a block has, or of other groups.
        if pages > self.block_pages || inside.count() != usize::from(self.maps.row(block.0).held) {
            let page = self.media.page_at(block, 0);
            return Err(Fault::Corrupt { page, reason: Damage::OtherIndex });
        }
        let is_full = pages > self.scheme.pages_in(self.block_pages);
        // The first half would commit while a page that may be torn is not the newest any more.
        let is_whole = self.settled && !self.media.blocks.is_bad(block);
        let has_room = self.media.blocks.free_blocks(None) > self.kept_blocks();
        if self.scheme == Scheme::Dipl && is_full && is_whole && has_room {
            self.copy(block, change, pages / 2, NO_BLOCK)?;
            self.merges.divisions += 1;
        }
        self.copy(block, change, u32::MAX, block.0)?;
        self.merges.blocks += 1;
        self.forget_block(block);
        self.media.free(block)
    }

    /// Free blocks that no division takes: two, and those that may still go bad.
    pub(super) fn kept_blocks(&self) -> u32 {
        let blocks = self.media.geometry().blocks;
        let most = self.media.flash.capabilities().bad_blocks_max(blocks);
        2 + most.saturating_sub(self.media.blocks.bad_blocks())
    }

    /// The logical pages of a block from `first` on that a merge copies, with its change.
    fn copied(
        &self,
        block: BlockNumber,
        change: Change<'_>,
        first: u32,
    ) -> impl Iterator<Item = u32> {
        let changed = change.map(|(logical, _)| logical);
        // Once the change was copied it is elsewhere.
        let is_copied = move |&logical: &u32| match self.block_of(logical) {
            Some(home) => home == block,
            None => changed == Some(logical),
        };
        let all = self.candidates(changed);
        (all.start.max(first)..all.end).filter(is_copied)
    }

    /// Copies at most `most` pages of a block into a free one, with the change.
    fn copy(
        &mut self,
        block: BlockNumber,
        change: Change<'_>,
        most: u32,
        replaced: u32,
    ) -> Result<(), Fault<F::Error>> {
        loop {
            let to = self.media.open()?;
            if self.copy_into(to, (block, change, most), replaced)? {
                return Ok(());
            }
            // Nothing of it counts, and nothing ever will.
            covered!("logged: a program of a merge fails");
            self.forget_block(to);
            self.media.blocks.set_reserved(to, false);
            self.media.mark_bad_blocks()?;
        }
    }

    /// The same into this block. Returns `false` if a program failed.
    fn copy_into(
        &mut self,
        to: BlockNumber,
        (block, change, most): (BlockNumber, Change<'_>, u32),
        replaced: u32,
    ) -> Result<bool, Fault<F::Error>> {
        let copies = (self.copied(block, change, 0).count() as u32).min(most);
        let mut next = 0;
        for place in 0..copies {
            let Some(logical) = self.copied(block, change, next).next() else { break };
            next = logical + 1;
            let kind = match change {
                Some((changed, Some(bytes))) if changed == logical => {
                    self.media.frames.bytes_mut(OUT)[..bytes.len()].copy_from_slice(bytes);
                    Kind::Data(logical)
                }
                Some((changed, None)) if changed == logical => Kind::Hole(logical),
                _ => match self.fetch(logical)? {
                    Found::Page => Kind::Data(logical),
                    Found::Nothing => Kind::Hole(logical),
                    Found::Damaged(..) => {
                        covered!("logged: a page that is to be copied has faded");
                        Kind::Lost(logical)
                    }
                },
            };
            let is_last = place + 1 == copies;
            let label = kind.label(Cause::copy(is_last));
            // The last copy names the block in place of an erase count.
            let count = if is_last { replaced } else { self.media.blocks.erase_count(to) };
            if !self.media.program_with(self.media.page_at(to, place), OUT, label, count)? {
                return Ok(false);
            }
            self.statistics.moved += 1;
        }
        // From here on the copies count.
        let row = Row { last: self.media.sequence, next: copies as u16, ..Row::default() };
        self.maps.set_row(to.0, row);
        let mut next = 0;
        for place in 0..copies {
            let Some(logical) = self.copied(block, change, next).next() else { break };
            next = logical + 1;
            let page = self.media.page_at(to, place);
            self.media.blocks.set_valid(page, true);
            let is_hole = match change {
                Some((changed, content)) if changed == logical => content.is_none(),
                _ => self.maps.home(logical).is_some_and(|home| home.is_hole),
            };
            self.put_home(logical, Some(Home { page: page.0, record: None, is_hole }));
        }
        Ok(true)
    }

    /// Forgets the pages of a block in which no logical page is.
    pub(super) fn forget_block(&mut self, block: BlockNumber) {
        self.maps.set_row(block.0, Row::default());
        for place in 0..self.block_pages {
            self.media.blocks.set_valid(self.media.page_at(block, place), false);
        }
    }
}
