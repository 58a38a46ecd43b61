//! The leaves: what is known of them, and how one is read and written.
//!
//! A leaf is in a page buffer as it lies in its page; while it is changed the buffer counts as
//! changed. RAM follows a page as soon as that is programmed.

use super::batch::Batch;
use super::leaf::Fences;
use super::lost::Lost;
use super::separator::Separator;
use super::state::State;
use super::torn::Torn;
use super::trail::Trail;
use super::{CODEC, Directory, Form, Order, SESSION, leaf_label, limits, options};
use crate::blocks::Blocks;
use crate::engine::Options;
use crate::error::{Damage, Fault};
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::gc::Extent;
use crate::gc::{self, Collector};
use crate::log::Dimensions;
use crate::log::checkpoint::Checkpoints;
use crate::log::{Frames, Label, Log, Source};
use crate::node::{Node, PageFault};

/// The leaves on a chip, and the directory of them.
pub struct Leaves<'b, F> {
    pub(super) log: Log<'b, F>,
    pub(super) collector: Collector,
    pub(super) checkpoints: Checkpoints,
    pub(super) directory: Directory<'b>,
    /// The blocks as a mount meets them.
    pub(super) order: Order<'b>,
    pub(super) trail: Trail<'b>,
    /// What may be torn.
    pub(super) torn: Torn,
    /// What the mount found damaged.
    pub(super) lost: Lost,
    pub(super) state: State,
    /// The batch that is being made.
    pub(super) batch: Batch,
    limited: bool,
}

impl<'b, F: Flash> Leaves<'b, F> {
    /// An index that is neither formatted nor opened yet; its options were checked.
    pub(super) fn unmounted(flash: F, options: &Options, ram: &'b mut [u8]) -> Self {
        let geometry = flash.geometry();
        let block_pages = Dimensions::of(&flash).block_pages;
        let sizes = options::sizes(&geometry, options);
        let (frames, ram) = ram.split_at_mut(sizes.frames_bytes);
        let (directory, ram) = ram.split_at_mut(sizes.directory_bytes);
        let (order, ram) = ram.split_at_mut(sizes.order_bytes);
        let (trail, ram) = ram.split_at_mut(sizes.trail_bytes);
        let (validity, victims, wear) =
            (options.validity, options.victims, options::wear_of(options));
        let blocks = Blocks::new(ram, &geometry, validity, victims, wear, block_pages);
        let frames = Frames::new(frames, sizes.frame_bytes, sizes.frames);
        let medium = options::medium(&geometry, options);
        let every = options.checkpoints.unwrap_or(0);
        let parts = options::parts_max(&geometry, options, block_pages);
        Self {
            log: Log::new(flash, CODEC, medium, frames, blocks, (options.verify, victims)),
            collector: Collector::default(),
            checkpoints: Checkpoints::new(every, parts, block_pages),
            directory: Directory::new(directory, options.key_bytes, geometry.pages()),
            order: Order::new(order),
            trail: Trail::new(trail),
            torn: Torn::UNKNOWN,
            lost: Lost::NONE,
            state: State::UNKNOWN,
            batch: Batch::NONE,
            limited: options.leaves.is_some(),
        }
    }

    pub(super) fn form(&self) -> Form {
        Form::new(&self.log.layout(), &self.log.medium)
    }

    /// The part of the chip that the index can count on.
    fn extent_and_budget(&self) -> (Extent, crate::gc::Budget) {
        let lost = self.log.reserve_blocks().max(self.log.blocks.bad_blocks());
        let area = self.checkpoints.area_blocks();
        limits::budget(self.log.block_pages(), self.log.blocks.count().saturating_sub(lost + area))
    }

    /// How many pages must be free, and how many may be valid.
    pub(super) fn budget(&self) -> crate::gc::Budget {
        self.extent_and_budget().1
    }

    /// The most leaves: those that the chip and the directory have room for.
    ///
    /// A separator that does not fit the window of the others leaves room for fewer.
    // Large, and called in several places.
    #[inline(never)]
    pub(super) fn limit_pages(&self) -> u32 {
        let held = (self.directory.capacity() as u32).saturating_sub(options::MOUNTED);
        self.budget().limit_pages.min(held)
    }

    /// Whether the caller allows fewer leaves than the chip.
    pub(super) const fn is_limited(&self) -> bool {
        self.limited
    }

    /// Valid pages that hold no leaf: the session page, and one that stores a batch.
    pub(super) fn pages_beside(&self) -> u32 {
        u32::from(self.torn.session().is_some()) + u32::from(self.batch.page().is_some())
    }

    /// Whether `page` is valid and holds no leaf.
    pub(super) fn is_beside(&self, page: PageNumber) -> bool {
        self.torn.session() == Some(page) || self.batch.page() == Some(page)
    }

    pub(super) fn block_of(&self, page: PageNumber) -> BlockNumber {
        self.log.geometry().block_of(page)
    }

    /// Mounts again after an operation that failed half way.
    pub(super) fn mount_if_in_doubt(&mut self) -> Result<(), Fault<F::Error>> {
        if self.state.is_in_doubt() { self.mount() } else { Ok(()) }
    }

    /// The page that owns the range at `rank`, or the fault that none does.
    pub(super) fn page_at(&self, rank: usize) -> Result<PageNumber, Fault<F::Error>> {
        self.directory.page(rank).ok_or_else(|| {
            let page = self.lost.damaged().unwrap_or(self.torn.newest().0);
            Fault::Corrupt { page, reason: Damage::NoOwner }
        })
    }

    /// Loads a page of the index into a page buffer.
    ///
    /// Returns the buffer that holds it already, or `frame`.
    ///
    /// Cost: one read at most, more if it fails.
    pub(super) fn load(
        &mut self,
        page: PageNumber,
        frame: usize,
    ) -> Result<usize, Fault<F::Error>> {
        if let Some(held) = self.log.frames.holding(page) {
            return Ok(held);
        }
        let reason = match self.log.read_page(page, frame)? {
            Err(fault) => damage_of(fault),
            Ok(()) => {
                let header = self.log.header(frame);
                let is_ours = self.log.is_ours(frame) && header.identity == self.log.identity();
                if is_ours && header.height == 1 {
                    self.log.frames.hold(frame, page);
                    return Ok(frame);
                }
                Damage::OtherIndex
            }
        };
        Err(Fault::Corrupt { page, reason })
    }

    /// The records of the leaf in `frame`, stale ones included.
    pub(super) fn node(&self, frame: usize, page: PageNumber) -> Result<Node<'_>, Fault<F::Error>> {
        let node = self.form().node(self.log.frames.bytes(frame));
        node.ok_or(Fault::Corrupt { page, reason: Damage::NodeTooFull })
    }

    /// The separators around the range at `rank`.
    pub(super) fn range(&self, rank: usize) -> Range {
        Range { low: self.directory.separator(rank), high: self.directory.end(rank) }
    }

    /// Loads the leaf at `rank`.
    ///
    /// Returns its page buffer and the places of its own records.
    pub(super) fn load_leaf(
        &mut self,
        rank: usize,
        frame: usize,
    ) -> Result<(usize, core::ops::Range<usize>), Fault<F::Error>> {
        let page = self.page_at(rank)?;
        let frame = self.load(page, frame)?;
        Ok((frame, Form::owned(&self.node(frame, page)?, &self.directory, rank)))
    }

    /// Programs the page in `frame`, into the block that a checkpoint requires next.
    ///
    /// If it only takes over the range at `rank`, later pages tell so.
    pub(super) fn write(
        &mut self,
        frame: usize,
        label: Label,
        rank: Option<usize>,
    ) -> Result<PageNumber, Fault<F::Error>> {
        let page = self.program(frame, self.batch.mark(label), rank)?;
        self.end_batch();
        Ok(page)
    }

    fn program(
        &mut self,
        frame: usize,
        label: Label,
        rank: Option<usize>,
    ) -> Result<PageNumber, Fault<F::Error>> {
        if !self.has_checkpoints() {
            return self.log.write(frame, label);
        }
        let (form, sum) = (self.form(), self.directory.sum());
        let has_trail = form.told() > 0 && label.height > 0;
        let has_suspects = !self.torn.suspects().is_empty();
        let Self { log, checkpoints, trail, .. } = self;
        log.write_by(
            |log, filled| checkpoints.next_block(log, filled),
            |log| {
                log.frames.forget(frame);
                let next = log.next_place();
                if has_trail {
                    let page = log.frames.bytes_mut(frame);
                    trail.write(next, sum, form.trail_mut(page));
                    if has_suspects {
                        form.note_suspects(page);
                    }
                }
                let is_written = log.append(Source::Frame(frame), label)?;
                if is_written {
                    trail.note(next, rank);
                    log.frames.release(frame);
                }
                Ok(is_written)
            },
        )
    }

    /// Writes the fences of a leaf into its page buffer.
    ///
    /// From then on the buffer does not hold a page of the chip: a block that is opened for the
    /// leaf may need a buffer, for its erase count.
    pub(super) fn set_fences(&mut self, frame: usize, fences: Fences<'_>) {
        let form = self.form();
        self.log.frames.forget(frame);
        form.set_fences(self.log.frames.bytes_mut(frame), fences);
    }

    /// The leaf in `frame` is to own the ranges from `rank` to `last`.
    // Apart from what programs the leaf, for the sake of the stack.
    #[inline(never)]
    pub(super) fn set_range(&mut self, frame: usize, rank: usize, last: usize) {
        let range = Range { low: self.directory.separator(rank), high: self.directory.end(last) };
        self.set_fences(frame, range.fences());
    }

    /// Programs the leaf in `frame`, whose fences are set.
    ///
    /// From then on it is the newest there; the directory is to be changed. If it only takes over
    /// the range at `rank`, later pages tell so.
    pub(super) fn program_leaf(
        &mut self,
        frame: usize,
        records: u32,
        rank: Option<usize>,
    ) -> Result<PageNumber, Fault<F::Error>> {
        self.state.doubt();
        let page = self.write(frame, leaf_label(records), rank)?;
        self.log.frames.hold(frame, page);
        self.state.note_records(records);
        Ok(page)
    }

    /// Ends the write of a leaf: these pages no longer own anything in the directory.
    pub(super) fn end_write(&mut self, replaced: [Option<PageNumber>; 2]) {
        for before in replaced.into_iter().flatten() {
            // Where pages are lost, a page may own another range as well.
            if !(self.lost.are_apart() && self.directory.has(before)) {
                self.log.supersede(before);
            }
            self.log.frames.forget_page(before.0);
        }
        self.log.blocks.release();
        self.log.check_accounts();
        self.state.trust();
    }

    /// Programs the leaf in `frame` as the owner of the range at `rank`.
    pub(super) fn rewrite_leaf(
        &mut self,
        frame: usize,
        rank: usize,
        records: u32,
    ) -> Result<(), Fault<F::Error>> {
        self.set_range(frame, rank, rank);
        // A mount that does not see the newest leaf takes its range from the copy.
        let told = self.torn.newest_leaf().is_none().then_some(rank);
        let page = self.program_leaf(frame, records, told)?;
        let before = self.directory.page(rank);
        self.directory.set_page(rank, Some(page));
        self.end_write([before, None]);
        Ok(())
    }

    /// Programs a session page with the current suspects.
    ///
    /// It owns no key. It is a valid page as long as it lists suspects.
    pub(super) fn write_session(&mut self) -> Result<(), Fault<F::Error>> {
        let area_bytes = self.log.layout().area_bytes();
        self.log.frames.forget(0);
        self.torn.suspects().write(&mut self.log.frames.bytes_mut(0)[..area_bytes]);
        self.state.doubt();
        let page = self.write(0, SESSION, None)?;
        if let Some(before) = self.torn.note_session(page) {
            self.log.supersede(before);
        }
        if self.torn.session().is_none() {
            self.log.blocks.set_valid(page, false);
        }
        // Blocks that a mount holds become free only when the newest leaf was written again.
        if self.torn.newest_leaf().is_none() {
            self.log.blocks.release();
        }
        self.log.check_accounts();
        self.state.trust();
        Ok(())
    }

    /// Begins the session, unless that was done since the mount.
    ///
    /// The first page commits nothing. Returns whether the session began here.
    pub(super) fn begin_session(&mut self) -> Result<bool, Fault<F::Error>> {
        let begins = !self.log.has_begun();
        if begins {
            self.write_session()?;
        }
        Ok(begins)
    }

    /// Settles, begins the session, and collects garbage until a change fits.
    pub(super) fn make_room(&mut self, first: bool) -> Result<(), Fault<F::Error>> {
        self.mount_if_in_doubt()?;
        self.settle()?;
        self.begin_session()?;
        self.keep_checkpoint()?;
        gc::make_room(self, first)?;
        self.empty_postponed()
    }
}

/// A range of keys, by its separators.
pub(super) struct Range {
    pub low: Separator,
    pub high: Option<Separator>,
}

impl Range {
    /// The range as fences.
    pub fn fences(&self) -> Fences<'_> {
        (&self.low, self.high.as_deref())
    }
}

/// What is wrong with a page that cannot be read.
pub(super) const fn damage_of(fault: PageFault) -> Damage {
    match fault {
        PageFault::Erased => Damage::Erased,
        PageFault::Damaged => Damage::Checksum,
        PageFault::Unreadable => Damage::Uncorrectable,
        PageFault::Version(_) => Damage::OtherVersion,
        PageFault::Appended => Damage::OtherSystem,
    }
}
