//! How a mount settles pages that a cut may have left torn.
//!
//! This happens before the index is read or changed. A torn page may read differently each time
//! (rule 6 of the media contract): as it was, as it should have become, or not at all. So a mount
//! decides once.
//!
//! A page that it takes as written is written anew, elsewhere. A page that it does not see is
//! outdated: every number that the mount assigns is above any that an unseen page can have. The
//! first page that is programmed after a mount commits nothing, so that each later mount knows this
//! number before a commit counts. Until that is done, no block is opened that became free only by
//! the newest commit.
//!
//! Cost of a mount that writes: see the functions below.

use super::{CheckpointsOf, Placement, TreeIndex, WritePolicy};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::gc::PageOwner;
use crate::node::SESSION_END;
use crate::space::Checkpointing;

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Whether a mount can begin again without the newest root because of `page`.
    ///
    /// `page` belongs to the tree of that root and could not be read. The mount can begin again if
    /// it is the page that was programmed last: then it is torn, and a torn page was never
    /// acknowledged. It can also do so if `page` reads differently each time: then the erase of its
    /// block was begun, so no tree that counts needs it.
    ///
    /// Cost: at most [`LOOKS`] reads.
    #[inline(never)]
    pub(super) fn is_torn(
        &mut self,
        page: PageNumber,
        reason: Damage,
    ) -> Result<bool, Fault<F::Error>> {
        let cannot_be_read = matches!(
            reason,
            Damage::Erased
                | Damage::Checksum
                | Damage::Uncorrectable
                | Damage::OtherVersion
                | Damage::OtherSystem
        );
        if !cannot_be_read || self.torn.outdates_newest() {
            return Ok(false);
        }
        let is_torn = S::Kind::is_torn(self, page)?;
        if is_torn {
            covered!("a mount begins again without the newest root");
            self.torn.outdate_newest(self.space.log.sequence());
        }
        Ok(is_torn)
    }

    /// Writes anew the pages that may be torn.
    ///
    /// If there is no room for that, the index can still be read.
    pub(super) fn settle_torn(&mut self) -> Result<(), Fault<F::Error>> {
        self.state.set_settled(true);
        if self.ended_well() {
            return Ok(());
        }
        let settled = S::Kind::settle(self);
        match settled {
            Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if !self.state.is_in_doubt() => {}
            Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) => {
                covered!("room ends while a mount settles");
                self.mount_as_seen()?;
            }
            // The chip cannot be written now, but all of it can be read.
            Err(fault) if fault.rejects_writes() => {
                covered!("the chip cannot be written while a mount settles");
                self.mount_as_seen()?;
            }
            settled => return settled,
        }
        covered!("an index is read unsettled");
        S::Kind::read_unsettled(self)?;
        self.state.set_settled(false);
        self.space.log.end_settling();
        self.free_held();
        Ok(())
    }

    /// Before a change: settles what the mount had no room to settle.
    ///
    /// The blocks that were held are free by now, so there may be room. A change that was built on
    /// a torn page would make the next mount count that page as settled. Returns whether it wrote.
    ///
    /// Cost: nothing if the mount has settled. Otherwise, that of settling, and of a mount if it
    /// fails.
    pub(crate) fn settle_before_change(&mut self) -> Result<bool, Fault<F::Error>> {
        if self.state.is_settled() {
            return Ok(false);
        }
        covered!("a change settles what the mount could not");
        let settled = S::Kind::settle(self);
        self.state.set_settled(settled.is_ok());
        // If it fails half way, only another mount knows what is torn now.
        if settled.is_err() {
            self.state.doubt();
        }
        settled.map(|()| true)
    }

    /// Whether the newest page on the chip is the end of a session.
    ///
    /// Then only a page that commits nothing, or a block that held no data, can be torn.
    pub(crate) fn ended_well(&self) -> bool {
        self.torn.ended_well(self.space.log.sequence())
    }

    /// Pages of the blocks that are held: [`free_held`](Self::free_held) frees them.
    pub(crate) fn held_pages(&self) -> u32 {
        CheckpointsOf::<S>::held_blocks(&self.space) * self.space.log.block_pages()
    }

    /// Frees the blocks that were held, except those of checkpoints.
    pub(crate) fn free_held(&mut self) {
        self.space.log.blocks.release();
        CheckpointsOf::<S>::unreserve(&mut self.space);
    }

    /// Programs a page that no node leads to and that records the number `records`.
    ///
    /// Cost: one read and one program.
    pub(crate) fn mark(&mut self, records: u32) -> Result<(), Fault<F::Error>> {
        self.space.begin_walk();
        let root = PageNumber(self.space.current_page(self.state.root()));
        if self.space.log.read_page(root, 0)?.is_ok() {
            self.state.doubt();
            self.space.program_mark(0, records)?;
            self.state.trust();
        }
        Ok(())
    }

    /// Marks the end of the session on the chip: everything before it is whole.
    ///
    /// So the next mount has nothing to settle. Does nothing if there is no room for that page, or
    /// if nothing was programmed.
    pub(crate) fn mark_end(&mut self) -> Result<(), Fault<F::Error>> {
        if self.can_end() && self.space.room() > self.kept() {
            self.mark(SESSION_END)?;
        }
        Ok(())
    }

    /// Whether something was programmed in this session, and all of it is whole.
    pub(crate) fn can_end(&self) -> bool {
        self.is_whole() && self.space.log.has_begun()
    }

    /// Whether all that the index needs is whole, on the chip as in RAM.
    pub(crate) fn is_whole(&self) -> bool {
        self.state.is_settled() && !self.state.is_in_doubt()
    }

    /// Fails unless `page`, which made the last commit, reads the same every time.
    ///
    /// There is no room to write it anew before other pages build on it. If it is steady, no block
    /// of the previous tree is needed.
    pub(crate) fn expect_steady(&mut self, page: u32) -> Result<(), Fault<F::Error>> {
        if self.space.log.is_steady(PageNumber(page))? {
            Ok(())
        } else {
            Err(Fault::Corrupt { page: PageNumber(page), reason: Damage::Checksum })
        }
    }
}
