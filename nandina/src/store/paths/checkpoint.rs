//! Mounting from a checkpoint.
//!
//! Pages written after it are in the blocks that it lists, and behind the last page of the block
//! that was being written. Everything else is unchanged. Nothing is written here.

use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::log::GAP;
use crate::node::{PageFault, PageHeader};
use crate::space::{Found, LISTED_MAX, Paths};
use crate::tree::{HEIGHT_MAX, Index, Placement};

/// Upper bound of the inner nodes in one page.
const NODES_BY_PAGE: u32 = HEIGHT_MAX as u32;

/// Most reads for each newer page to find what it replaced.
///
/// These are the old node and the one above it, and three on the way to the new one. If there are
/// fewer inner nodes in all, they are read instead.
const COMPARING: u64 = 5;

/// What the first pages of the blocks record that a checkpoint lists.
struct Opened {
    /// For each listed block, the number of its first page.
    /// `None` if that is not newer than the checkpoint.
    since: [Option<u64>; LISTED_MAX],
    /// For each listed block, a bit: a mount began to write with its first page.
    sessions: u16,
    /// No page of a checkpoint of which no anchor was found has a higher number.
    checkpoint: u64,
    /// The index of the checkpoint is gone.
    /// One of the blocks holds newer pages of another formatting.
    outdated: bool,
}

impl Opened {
    /// Most pages numbered from `checkpoint` to `last`, in blocks of `block_pages`.
    ///
    /// Numbers that a mount skipped before it wrote its first page are no pages.
    fn pages_since(&self, checkpoint: u64, last: u64, block_pages: u32) -> u64 {
        let firsts = || (0..).zip(&self.since).filter_map(|(at, since)| Some(((*since)?, at)));
        let opened = firsts().map(|(first, _)| first).filter(|&first| first > 0);
        core::iter::once(checkpoint + 1)
            .chain(opened)
            .map(|first| {
                let next = firsts().filter(|&(next, _)| next > first).min();
                let (end, skipped) = match next {
                    Some((next, at)) if self.sessions >> at & 1 == 1 => (next, GAP),
                    Some((next, _)) => (next, 0),
                    None => (last + 1, 0),
                };
                end.saturating_sub(first + skipped).min(block_pages.into())
            })
            .sum()
    }
}

impl<F: Flash, S: Placement<Kind = Paths>> Index<'_, F, S> {
    /// Mounts from the newest checkpoint.
    ///
    /// Returns `false` if there is none that can be used: then every block has to be read.
    pub(super) fn mount_from_checkpoint(&mut self) -> Result<bool, Fault<F::Error>> {
        let Some(found) = self.space.find_newest()? else {
            return Ok(false);
        };
        match self.go_on_from(&found) {
            Err(Fault::Corrupt { .. }) => {
                covered!("a checkpoint leads to damage");
                Ok(false)
            }
            gone_on => gone_on,
        }
    }

    fn go_on_from(&mut self, found: &Found) -> Result<bool, Fault<F::Error>> {
        self.unexplained_pages = 0;
        let opened = self.look_into(found)?;
        let listed = found.listed();
        // Once the last listed block is open, blocks that are not listed may be open as well.
        let end = opened.since[..listed.len()].last();
        if opened.outdated || end.is_none_or(Option::is_some) {
            covered!("the list of a checkpoint has ended");
            return Ok(false);
        }
        let identity = Some(found.header.identity);
        let mut sequence = found.header.sequence.max(opened.checkpoint);
        let mut before = u64::MAX;
        let mut root: Option<(PageNumber, PageHeader)> = None;
        while root.is_none()
            && let Some((first, block)) = opened
                .since
                .iter()
                .zip(listed)
                .filter_map(|(since, block)| Some(((*since)?, *block)))
                .filter(|&(since, _)| since < before && since > 0)
                .max_by_key(|&(since, _)| since)
        {
            if before == u64::MAX {
                self.space.log.keep_newest(block);
            }
            let last = self.last_root(block, identity, 0, u64::MAX)?;
            sequence = sequence.max(last.sequence).max(first);
            (root, before) = (last.root, first);
        }
        if root.is_none()
            && let Some((block, place)) = found.active
        {
            covered!("the root is looked for behind a checkpoint");
            if before == u64::MAX {
                self.space.log.keep_newest(block);
            }
            let last = self.last_root(block, identity, place, u64::MAX)?;
            sequence = sequence.max(last.sequence);
            root = last.root;
        }
        let root = root.filter(|(_, header)| header.sequence > found.header.sequence);
        let tree = found.tree;
        let from = match root {
            Some((page, header)) => {
                self.newest = (page.0, header.sequence);
                self.take_root(page, &header)?;
                header.sequence
            }
            None => {
                let (height, records) = (tree.height, tree.records);
                self.take_root(
                    PageNumber(tree.root),
                    &PageHeader { lowest: 1, height, records, ..found.header },
                )?;
                found.header.sequence
            }
        };
        let inner_nodes_max = self.space.log.geometry().pages().saturating_mul(NODES_BY_PAGE);
        if self.height == 0
            || !(1..=HEIGHT_MAX).contains(&tree.height)
            || tree.inner_nodes > inner_nodes_max
        {
            return Ok(false);
        }
        self.space.restart(found.header.identity, from, sequence);
        self.inner_nodes = tree.inner_nodes;
        if self.root == tree.root {
            // No change was made since.
        } else if COMPARING
            * opened.pages_since(found.header.sequence, from, self.space.log.block_pages())
            >= tree.inner_nodes.into()
        {
            self.space.log.blocks.forget_valid();
            self.inner_nodes = 0;
            self.find_valid_pages(|_| true)?;
        } else {
            self.drop_replaced(&tree)?;
            let geometry = self.space.log.geometry();
            let first = found
                .active
                .map(|(block, place)| (block, self.space.log.place_or_end(block, place)));
            self.find_valid_pages(|page| {
                let block = geometry.block_of(PageNumber(page));
                listed.contains(&block)
                    || first.is_some_and(|(active, first)| block == active && page >= first)
            })?;
        }
        if self.inner_nodes > inner_nodes_max {
            return Ok(false);
        }
        self.from_checkpoint = true;
        self.space.go_on_from(found, |at| opened.since[at].is_none());
        Ok(true)
    }

    /// Reads the first readable page of each block that the checkpoint lists.
    fn look_into(&mut self, found: &Found) -> Result<Opened, Fault<F::Error>> {
        let mut opened =
            Opened { since: [None; LISTED_MAX], sessions: 0, checkpoint: 0, outdated: false };
        let Opened { since, sessions, checkpoint, outdated } = &mut opened;
        for ((at, since), &block) in (0..).zip(since).zip(found.listed()) {
            // A block that was given up is not opened again, but the newest root may be in it.
            if self.space.log.blocks.is_bad(block) {
                covered!("a listed block is bad");
                *since = Some(0);
            }
            for place in 0..self.space.log.block_pages() {
                let page = self.space.log.page_at(block, place);
                match self.space.log.read_raw(page, 0)? {
                    Ok(header) => {
                        if header.sequence <= found.header.sequence {
                            break;
                        }
                        if header.identity != found.header.identity {
                            *outdated = true;
                        } else {
                            if header.lowest > 0 {
                                *since = Some(header.sequence);
                            } else {
                                // Pages of a checkpoint do not lead to a root. Their anchor may be
                                // torn, so that no page may get its number.
                                *since = Some(0);
                                let pages = u64::from(self.space.log.block_pages());
                                *checkpoint = (*checkpoint).max(header.sequence + pages);
                            }
                            if header.begins_session() {
                                *sessions |= 1 << at;
                            }
                            self.space.log.blocks.set_erase_count(block, header.erase_count);
                            self.space.log.blocks.set_opened_at(block, header.sequence);
                        }
                        break;
                    }
                    Err(PageFault::Damaged | PageFault::Unreadable) => {}
                    Err(PageFault::Erased | PageFault::Version(_) | PageFault::Appended { .. }) => {
                        break;
                    }
                }
            }
        }
        Ok(opened)
    }
}
