//! A checkpoint as the end of a session: what a mount finds by reading inner nodes.
//!
//! It stores which pages are valid and how many needed nodes each has, and where the root is.
//! [`TncIndex::end`] commits first, so the journal is empty. The checkpoint counts until the next
//! page is programmed: a commit writes no list of what it superseded. The first page of a session
//! commits nothing and lies in a block that the checkpoint lists, so a mount sees it; and if a
//! mount does not see it, that mount may still use the checkpoint.
//!
//! Cost of such a mount: the reads to find the checkpoint, its pages, one to five for each block
//! that it lists, and the root.

use super::TncIndex;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::gc::{self, PageOwner};
use crate::log::checkpoint::Summary;

impl<F: Flash> TncIndex<'_, F> {
    /// Whether the medium has checkpoints.
    const fn has_checkpoints(&self) -> bool {
        self.space.log.medium.checkpoints
    }

    /// Ends the session, if something was programmed: by a checkpoint or by a page.
    ///
    /// Cost: with checkpoints, a commit and a checkpoint, for which garbage may be collected.
    /// Without checkpoints, or without room for one, a program.
    pub(super) fn end(&mut self) -> Result<(), Fault<F::Error>> {
        if self.has_checkpoints() && self.can_end() && self.write_checkpoint()? {
            return Ok(());
        }
        self.mark_end()
    }

    /// Commits, and writes a checkpoint. Returns `false` if there is no room for it.
    fn write_checkpoint(&mut self) -> Result<bool, Fault<F::Error>> {
        self.write_out()?;
        self.set_limits();
        let taken = self.space.checkpoints.taken(&self.space.log, &self.live);
        if taken > 0 {
            match gc::gain_room(self, 0) {
                Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if !self.state.is_in_doubt() => {}
                gained => gained?,
            }
            self.write_out()?;
            if self.space.room() < self.reserve_pages() + taken {
                return Ok(false);
            }
        }
        let root = self.arena.form.place_of(self.arena.place(self.tree.root())).0;
        let (height, records) = (self.tree.height(), self.tree.records());
        let summary = Summary { page: root, height, records, nodes: self.tree.inner_nodes() };
        self.state.doubt();
        let written = self.space.checkpoints.write(&mut self.space.log, &summary, &self.live)?;
        self.state.trust();
        Ok(written)
    }

    /// Mounts from the newest checkpoint, if no page is newer.
    pub(super) fn mount_from_checkpoint(&mut self) -> Result<bool, Fault<F::Error>> {
        if !self.has_checkpoints() {
            return Ok(false);
        }
        match self.go_on_from_end() {
            // The mount without a checkpoint reports what is damaged.
            Err(Fault::Corrupt { .. }) => Ok(false),
            mounted => mounted,
        }
    }

    fn go_on_from_end(&mut self) -> Result<bool, Fault<F::Error>> {
        let found = self.space.checkpoints.find_newest(&mut self.space.log, &mut self.live)?;
        let Some(found) = found else { return Ok(false) };
        let opened = self.space.log.look_into(&found)?;
        let tree = found.summary;
        let values = if self.arena.form.apart() { tree.records } else { 0 };
        let counted = self.counted_units().and_then(|units| units.checked_sub(values));
        let Some(nodes) = counted else { return Ok(false) };
        if !tree.is_tree(nodes.saturating_sub(1)) || !opened.is_untouched(&found) {
            return Ok(false);
        }
        let root = PageNumber(tree.page);
        let Ok(header) = self.space.log.read_raw(root, 0)? else { return Ok(false) };
        if header.identity != found.header.identity
            || header.height != tree.height
            || !self.space.log.blocks.is_valid(root)
        {
            return Ok(false);
        }
        self.state.forget_unexplained();
        self.space.restart(header.identity, header.sequence, found.anchor_sequence());
        if let Some((block, _)) = found.active {
            self.space.log.keep_newest(block);
        }
        self.take_root(root, &header)?;
        self.tree.take_nodes(nodes - tree.nodes, tree.nodes);
        self.space.checkpoints.go_on_from(&found, &opened);
        self.take_records(root, tree.records)?;
        self.state.note_ended(true);
        self.take_pending()?;
        Ok(true)
    }

    /// The nodes and values that the pages hold.
    ///
    /// `None` if their counts do not agree with the valid pages.
    fn counted_units(&self) -> Option<u32> {
        let (mut units, numbers) = (0, self.arena.form.numbers());
        for page in (0..self.arena.form.pages).map(PageNumber) {
            let is_valid = self.space.log.blocks.is_valid(page);
            let count = self.live.count(page.0, numbers).unwrap_or(is_valid.into());
            if is_valid != (count > 0) || usize::from(count) > numbers {
                return None;
            }
            units += u32::from(count);
        }
        Some(units)
    }
}
