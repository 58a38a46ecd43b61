//! Opening: finding the index again after any cut.
//!
//! Sequence numbers rise with every program, and blocks are written one at a time, so the newest
//! block is the one whose first page has the highest number. The last root in it is the commit
//! point. Pages after it belong to an operation that was cut, and no node refers to them. The block
//! table is rebuilt by walking the inner nodes, which yields the valid pages. All of that only
//! reads. Pages that may be torn are written anew afterwards (`settle.rs` beside this), unless the
//! previous session ended by `close`.
//!
//! A cut damages at most the last page of a block, because the block is never written again. More
//! damage after the root that is found may have been newer roots: the mount counts it
//! ([`Statistics::unexplained_pages`](crate::Statistics)). A mount cannot detect a first page whose
//! program silently did nothing, or a block of which no page can be read; `Options::verify`
//! protects against the first.
//!
//! Cost: one read for each block, the logarithm of a block's pages to the base 2 and a few more,
//! and one for each inner node; in a block whose first page is damaged, one for each page up to the
//! first that is not. With checkpoints the newest one says where to look instead (`checkpoint.rs`
//! beside this).

use super::batch::{self, Batch};
use super::limits::PageLimits;
use super::split::Separator;
use super::state::State;
use super::torn_pages::{TRIES, TornPages};
use super::{
    CheckpointsOf, HEIGHT_MAX, Placement, TreeIndex, WritePolicy, checkpoint_pages, relink,
};
use crate::engine::Options;
use crate::error::{Damage, Fault, OpenError};
use crate::flash::{Flash, PageNumber};
use crate::gc::{self, Collector};
use crate::log::Dimensions;
use crate::log::{Age, END, Newest, Survey};
use crate::node::PageHeader;
use crate::space::{Checkpointing, Space};

impl<'b, F: Flash, S: Placement> TreeIndex<'b, F, S> {
    /// Finds the index on the chip, if it has one with these settings.
    #[inline(never)]
    pub(super) fn find(&mut self) -> Result<(), OpenError<F::Error>> {
        let mut tries = TRIES;
        loop {
            let found = self.find_once();
            match found {
                Err(OpenError::Corrupt { page, reason }) if tries > 0 => {
                    if !self.is_torn(page, reason)? {
                        return found;
                    }
                    tries -= 1;
                }
                found => return found,
            }
        }
    }

    fn find_once(&mut self) -> Result<(), OpenError<F::Error>> {
        self.find_as_seen()?;
        Ok(self.settle_torn()?)
    }

    /// Finds the index on the chip without rewriting pages that may be torn.
    // Its frame is gone when pages are written anew.
    #[inline(never)]
    pub(crate) fn find_as_seen(&mut self) -> Result<(), OpenError<F::Error>> {
        self.torn.forget_end();
        S::Kind::find(self)?;
        self.ready();
        Ok(())
    }

    /// A page of the newest block, if the chip holds an index of these settings.
    #[inline(never)]
    pub(crate) fn newest_page(&mut self) -> Result<Newest, OpenError<F::Error>> {
        let mut survey = Survey::default();
        self.space.survey_into(&mut survey, END, None)?;
        let (newest, medium) = survey.expect(self.space.log.medium.system)?;
        self.space.log.check_newest(newest, medium)?;
        Ok(*newest)
    }

    /// An unmounted index; `options` are already validated.
    pub(super) fn unmounted(flash: F, options: &Options, ram: &'b mut [u8]) -> Self {
        let geometry = flash.geometry();
        let chip = Dimensions::of(&flash);
        let medium = options.medium::<S>(&chip);
        let parts = checkpoint_pages::<S>(&geometry, options, chip.block_pages);
        let checkpoints = (options.checkpoints.unwrap_or(0), parts);
        let batch_bytes = batch::ram_needed(geometry.page_bytes as usize, options.write_buffer);
        let (batch, ram) = ram.split_at_mut(batch_bytes);
        let (bound, ram) = ram.split_at_mut(options.key_bytes);
        let (keys, ram) = ram.split_at_mut(Separator::ram_needed(options.key_bytes));
        Self {
            space: Space::new(flash, medium, &options.kept::<S>(), checkpoints, relink::<S>, ram),
            place: S::default(),
            batch: Batch::new(batch, options),
            separator: Separator::new(keys),
            bound,
            state: State::unmounted(),
            torn: TornPages::new(),
            page_limits: PageLimits::new(options.moves),
            folding: options.folds,
            #[cfg(feature = "paper-modes")]
            rebalances: options.rebalances,
            collector: Collector::default(),
        }
    }

    /// Mounts: finds the last committed root, rebuilds RAM state, settles torn pages.
    pub(super) fn mount(&mut self) -> Result<(), Fault<F::Error>> {
        let mut tries = TRIES;
        self.torn.outdate_none();
        loop {
            self.state.doubt();
            match self.mount_as_seen().and_then(|()| self.settle_torn()) {
                Err(Fault::Corrupt { page, reason }) if tries > 0 => {
                    self.state.doubt();
                    if !self.is_torn(page, reason)? {
                        return Err(Fault::Corrupt { page, reason });
                    }
                    tries -= 1;
                }
                mounted => {
                    // The medium was read but not settled: the next operation mounts again.
                    if mounted.is_err() {
                        self.state.doubt();
                    }
                    return mounted;
                }
            }
        }
    }

    // Its frame is gone when pages are written anew.
    #[inline(never)]
    pub(super) fn mount_as_seen(&mut self) -> Result<(), Fault<F::Error>> {
        self.torn.forget_end();
        S::Kind::find_again(self)?;
        self.ready();
        Ok(())
    }

    /// Derives what depends on the mounted tree, which is now known.
    fn ready(&mut self) {
        // A mount decides once about torn pages: new ones are numbered above all that it saw.
        debug_assert!(
            self.torn.newest().is_none_or(|(_, newest)| newest <= self.space.log.sequence()),
            "new pages are numbered below one that a mount saw"
        );
        self.set_budget();
        self.collector.forget_reserve();
        gc::note_reserve(self);
        self.forget_root();
        self.state.trust();
    }

    /// Mounts from the newest checkpoint.
    ///
    /// Returns `false` if there is none that can be used.
    pub(super) fn mount_from_checkpoint(&mut self) -> Result<bool, Fault<F::Error>> {
        let Some(found) = CheckpointsOf::<S>::find_newest(&mut self.space)? else {
            return Ok(false);
        };
        if !(1..=HEIGHT_MAX).contains(&found.summary.height) {
            return Ok(false);
        }
        match S::Kind::go_on_from(self, &found) {
            Err(Fault::Corrupt { .. }) => {
                covered!("a checkpoint leads to damage");
                Ok(false)
            }
            gone_on => gone_on,
        }
    }

    /// Mounts by the first pages of all blocks: the last root, then the valid pages.
    ///
    /// The valid pages are found by walking the tree of that root.
    pub(crate) fn mount_from_blocks(&mut self, newest: &mut Newest) -> Result<(), Fault<F::Error>> {
        self.state.begin_mount();
        if !newest.is_ours {
            // Perhaps a format was cut, and this is its torn root.
            self.before_torn_format(newest)?;
        }
        self.space.log.keep_newest(newest.block);
        S::Kind::recover(self, newest)
    }

    /// Fails if the pages of a formatting are those of an index with other settings.
    ///
    /// All pages of one formatting carry the same settings, so one of them is looked at.
    pub(super) fn expect_ours(&self, newest: &Newest) -> Result<(), Fault<F::Error>> {
        if newest.is_ours {
            return Ok(());
        }
        let page = self.space.log.page_at(newest.block, 0);
        Err(Fault::Corrupt { page, reason: Damage::OtherRoot })
    }

    /// The newest block of those that were opened before `before`.
    ///
    /// With `of` only blocks of that formatting count.
    // The other findings of the survey are no longer on the stack when its blocks are read.
    #[inline(never)]
    pub(crate) fn survey_newest(
        &mut self,
        before: Age,
        of: Option<u32>,
    ) -> Result<Option<Newest>, Fault<F::Error>> {
        let mut survey = Survey::default();
        self.space.survey_into(&mut survey, before, of)?;
        Ok(survey.newest)
    }

    /// Makes the tree with the root `page` and its header `root` the current one.
    pub(crate) fn take_root(
        &mut self,
        page: PageNumber,
        root: &PageHeader,
    ) -> Result<(), Fault<F::Error>> {
        if root.lowest == 0 || root.height > HEIGHT_MAX {
            return Err(Fault::Corrupt { page, reason: Damage::OtherRoot });
        }
        let height = root.height.max(1);
        let leaf_bytes = S::extent(self.space.log.layout().area_bytes(), 1, height).len();
        let in_leaf = self.form().level::<S>(1, height).shape.capacity(leaf_bytes);
        let most = u64::from(self.space.log.geometry().pages()) * in_leaf as u64;
        if u64::from(root.records) > most {
            return Err(Fault::Corrupt { page, reason: Damage::TooManyRecords });
        }
        self.state.find(page.0, root.height, root.records);
        Ok(())
    }
}
