//! Mounting from a checkpoint.
//!
//! Pages written after it are in the blocks that it lists, and after the last page of the block
//! that was being written. Everything else is unchanged. Nothing is written here.

use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::log::END;
use crate::log::checkpoint::Checkpoint;
use crate::node::PageHeader;
use crate::space::Paths;
use crate::tree::{HEIGHT_MAX, Placement, Top, TreeIndex};

/// Upper bound of the inner nodes in one page.
const NODES_BY_PAGE: u32 = HEIGHT_MAX as u32;

/// Most reads for each newer page to find what it replaced.
///
/// These are the old node and the one above it, and three on the way to the new one. If there are
/// fewer inner nodes in all, they are read instead.
const COMPARING: u64 = 5;

impl<F: Flash, S: Placement<Kind = Paths>> TreeIndex<'_, F, S> {
    /// Continues from the checkpoint `found`. Returns `false` if it cannot be used.
    pub(super) fn go_on_from_root(&mut self, found: &Checkpoint) -> Result<bool, Fault<F::Error>> {
        self.state.begin_unexplained(0);
        let opened = self.space.log.look_into(found)?;
        let listed = found.listed();
        if !opened.is_usable(found) {
            return Ok(false);
        }
        let identity = Some(found.header.identity);
        let mut sequence = found.anchor_sequence().max(opened.checkpoint);
        // Mounts that were cut may have begun two blocks with one number.
        let mut before = END;
        let mut root: Option<(PageNumber, PageHeader)> = None;
        while root.is_none()
            && let Some((first, block)) = opened
                .since
                .iter()
                .zip(listed)
                .filter_map(|(since, block)| Some(((*since)?, block.0)))
                .filter(|&age| age < before && age.0 > 0)
                .max()
        {
            let block = BlockNumber(block);
            if before == END {
                self.space.log.keep_newest(block);
            }
            let last = self.last_root(block, identity, (0, first), u64::MAX)?;
            sequence = sequence.max(last.sequence).max(first);
            (root, before) = (last.root, (first, block.0));
        }
        if root.is_none()
            && let Some((block, place)) = found.active
        {
            covered!("the root is looked for behind a checkpoint");
            if before == END {
                self.space.log.keep_newest(block);
            }
            let last = self.last_root(block, identity, (place, found.header.sequence), u64::MAX)?;
            sequence = sequence.max(last.sequence);
            root = last.root;
        }
        let root = root.filter(|(_, header)| header.sequence > found.header.sequence);
        let tree = found.summary;
        let from = match root {
            Some((page, header)) => {
                self.torn.set_newest(page, header.sequence);
                self.take_root(page, &header)?;
                header.sequence
            }
            None => {
                let (height, records) = (tree.height, tree.records);
                self.take_root(
                    PageNumber(tree.page),
                    &PageHeader { lowest: 1, height, records, ..found.header },
                )?;
                found.header.sequence
            }
        };
        let inner_nodes_max = self.space.log.geometry().pages().saturating_mul(NODES_BY_PAGE);
        if self.state.height() == 0 || tree.height > HEIGHT_MAX || !tree.is_tree(inner_nodes_max) {
            return Ok(false);
        }
        self.space.restart(found.header.identity, from, sequence);
        self.state.begin_inner_nodes(tree.nodes);
        if self.state.root() == tree.page {
            // No change was made since.
        } else if COMPARING
            * opened.pages_since(found.header.sequence, from, self.space.log.block_pages())
            >= tree.nodes.into()
        {
            self.space.log.blocks.forget_valid();
            self.state.begin_inner_nodes(0);
            self.find_valid_pages()?;
        } else {
            let old = Top { page: tree.page, level: tree.height };
            self.drop_replaced(old, old, self.top())?;
            let geometry = self.space.log.geometry();
            let first = found
                .active
                .map(|(block, place)| (block, self.space.log.place_or_end(block, place)));
            self.find_new_pages(self.top(), |_, page| {
                let block = geometry.block_of(PageNumber(page));
                listed.contains(&block)
                    || first.is_some_and(|(active, first)| block == active && page >= first)
            })?;
        }
        if self.state.inner_nodes() > inner_nodes_max {
            return Ok(false);
        }
        self.state.continue_from_checkpoint();
        self.space.checkpoints.go_on_from(found, &opened);
        Ok(true)
    }
}
