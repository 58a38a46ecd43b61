//! A checkpoint where records are appended: it is the end of a session.
//!
//! An append leaves no trace but in its page, which may be older than a checkpoint. So a checkpoint
//! counts only as long as nothing was programmed after it. Only the end of a session writes one,
//! in place of the page that marks the end: all that is older is whole, and nothing is to settle.
//!
//! The first page of the next session commits nothing and lies in a block that the checkpoint
//! lists. It is programmed before any append. If a cut tore it, and a mount does not see it, the
//! next session opens that block first; so a mount that still uses the checkpoint is right.
//!
//! Cost of such a mount: the reads to find the checkpoint, its pages, and one to five for each
//! block that it lists.

use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::log::checkpoint::Checkpoint;
use crate::node::PageHeader;
use crate::space::Appends;
use crate::tree::{Placement, TreeIndex};

impl<F: Flash, S: Placement<Kind = Appends>> TreeIndex<'_, F, S> {
    /// Ends the session with a checkpoint, or without one if there is no room for it.
    ///
    /// Does nothing if nothing was programmed: then the last checkpoint still counts.
    pub(super) fn end_with_checkpoint(&mut self) -> Result<(), Fault<F::Error>> {
        if self.can_end() && self.gain_checkpoint()? { Ok(()) } else { self.mark_end() }
    }

    /// Continues from the checkpoint `found`. Returns `false` if a page is newer.
    pub(super) fn go_on_from_end(&mut self, found: &Checkpoint) -> Result<bool, Fault<F::Error>> {
        self.state.begin_unexplained(0);
        let opened = self.space.log.look_into(found)?;
        let tree = found.summary;
        let pages = self.space.log.geometry().pages();
        if !tree.is_tree(pages) || !opened.is_untouched(found) {
            return Ok(false);
        }
        if let Some((block, _)) = found.active {
            self.space.log.keep_newest(block);
        }
        let header = PageHeader {
            lowest: tree.height,
            height: tree.height,
            records: tree.records,
            ..found.header
        };
        self.torn.forget();
        self.take_root(PageNumber(tree.page), &header)?;
        self.state.begin_inner_nodes(tree.nodes);
        let highest = found.anchor_sequence();
        self.space.restart(header.identity, header.sequence, highest);
        self.torn.note_ended(highest);
        self.state.continue_from_checkpoint();
        self.space.checkpoints.go_on_from(found, &opened);
        Ok(true)
    }
}
