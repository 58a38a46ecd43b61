//! A mount from a checkpoint that reads few of the pages after it.
//!
//! The directory of the checkpoint follows the later pages in the order in which they were
//! programmed. The last page of each block and, where there are more pages before it than its trail
//! tells of, one more now and then are read; and all those that the trails say must be read: pages
//! that begin or end a session, or that divide or join ranges. Of all others the trails tell which
//! range they took over.
//!
//! Nothing is written here, and nothing is decided. Where a page cannot be read, where trails and
//! directory do not fit together, where a block has failed since the checkpoint, and while some
//! block may hold a torn page, the mount reads all pages after the checkpoint, as it does without
//! trails (`mount.rs`). Both ways lead to the same directory.

use super::leaves::Leaves;
use super::mount::{Found, NewestLeaf};
use super::order::Walk;
use super::suspects::Suspects;
use super::trail::sum_in;
use crate::error::Fault;
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::log::checkpoint::Checkpoint;
use crate::node::{PageHeader, SESSION_START};

/// The page buffer of the newest leaf that was read for its trail.
const NEWEST: usize = 1;

/// What a replay has found so far.
struct Replay<'f> {
    found: &'f Found<'f>,
    /// The newest leaf, in its page buffer. It owns nothing yet.
    leaf: Option<NewestLeaf>,
    /// Whether some block may hold a torn page, as of the newest page that says so.
    suspects: bool,
}

/// Why a replay cannot use a page.
enum Unusable<E> {
    /// It cannot be read.
    Unreadable,
    /// Trails and directory do not fit together.
    Lost,
    /// The device failed.
    Device(Fault<E>),
}

impl<E> From<Fault<E>> for Unusable<E> {
    fn from(fault: Fault<E>) -> Self {
        Self::Device(fault)
    }
}

impl<F: Flash> Leaves<'_, F> {
    /// Finds the state before the newest leaf by the trails after the checkpoint.
    ///
    /// Returns the newest leaf, which may be older than the checkpoint and is not known then; or
    /// `None` if all pages must be read.
    pub(super) fn replay(
        &mut self,
        checkpoint: &Checkpoint,
        found: &Found<'_>,
    ) -> Result<Option<Option<NewestLeaf>>, Fault<F::Error>> {
        let mut blocks = checkpoint.listed().iter().chain(checkpoint.active.iter().map(|at| &at.0));
        let is_usable = self.has_checkpoints()
            && self.form().told() > 0
            && found.highest > checkpoint.last_sequence()
            && !blocks.any(|&block| self.log.blocks.is_bad(block));
        if !is_usable {
            return Ok(None);
        }
        self.directory.clear();
        self.torn.forget_suspects();
        self.lost.forget();
        if !self.paint_checkpoint(checkpoint, false)? || !self.directory.is_whole() {
            return Ok(None);
        }
        let suspects = !self.torn.suspects().is_empty();
        let mut replay = Replay { found, leaf: None, suspects };
        match self.replay_blocks(checkpoint, &mut replay) {
            Ok(()) if !replay.suspects => {
                self.torn.forget_suspects();
                Ok(Some(replay.leaf))
            }
            Ok(()) => Ok(None),
            Err(Unusable::Device(fault)) => Err(fault),
            Err(_) => {
                covered!("trails lead nowhere");
                Ok(None)
            }
        }
    }

    /// Follows the pages after the checkpoint, up to the newest page.
    fn replay_blocks(
        &mut self,
        checkpoint: &Checkpoint,
        replay: &mut Replay<'_>,
    ) -> Result<(), Unusable<F::Error>> {
        let (newest, _) = self.torn.newest();
        let newest_block = self.block_of(newest);
        let mut walk = Walk::START;
        while let Some(block) = self.order.next_newer(&mut walk) {
            let active = checkpoint.active.filter(|&(active, _)| active == block);
            let first = active.map_or(0, |(_, place)| place);
            if block != newest_block {
                self.replay_older(block, first, replay)?;
                continue;
            }
            let mut places = first..self.log.block_pages();
            let last = places.find(|&place| self.log.page_at(block, place) == newest);
            return self.replay_pages(block, first..last.ok_or(Unusable::Lost)? + 1, replay);
        }
        Err(Unusable::Lost)
    }

    /// Follows the pages from the place `first` on of a block that is not the newest.
    ///
    /// It is full unless a program failed there, or a session ended.
    fn replay_older(
        &mut self,
        block: BlockNumber,
        first: u32,
        replay: &mut Replay<'_>,
    ) -> Result<(), Unusable<F::Error>> {
        let step = self.trail.told() + 1;
        let mut next = first;
        while next < self.log.block_pages() {
            let stop = next + (self.log.block_pages() - 1 - next) % step;
            match self.replay_to(block, next, stop, replay) {
                Ok(()) => next = stop + 1,
                Err(Unusable::Unreadable) => {
                    let end = self.readable_end(block, stop)?;
                    return self.replay_pages(block, next..end, replay);
                }
                Err(unusable) => return Err(unusable),
            }
        }
        Ok(())
    }

    /// The end of the pages of `block` that can be read: the page at `stop` cannot.
    ///
    /// Only the last page that was programmed may be unreadable.
    fn readable_end(&mut self, block: BlockNumber, stop: u32) -> Result<u32, Unusable<F::Error>> {
        let written = self.log.written(block, self.log.block_pages(), 1)?;
        let Some(last) = written.checked_sub(1).filter(|&last| last <= stop) else {
            return if written == 0 { Ok(0) } else { Err(Unusable::Lost) };
        };
        let page = self.log.page_at(block, last);
        Ok(if self.log.read_raw(page, 0)?.is_ok() { written } else { last })
    }

    /// Follows the pages at these places of a block.
    fn replay_pages(
        &mut self,
        block: BlockNumber,
        places: core::ops::Range<u32>,
        replay: &mut Replay<'_>,
    ) -> Result<(), Unusable<F::Error>> {
        let step = self.trail.told() + 1;
        let mut next = places.start;
        while next < places.end {
            let stop = next + (places.end - 1 - next) % step;
            match self.replay_to(block, next, stop, replay) {
                Err(Unusable::Unreadable) => return Err(Unusable::Lost),
                done => done?,
            }
            next = stop + 1;
        }
        Ok(())
    }

    /// Follows the pages at the places from `first` to `stop`.
    ///
    /// The last leaf of them tells of the others.
    fn replay_to(
        &mut self,
        block: BlockNumber,
        first: u32,
        stop: u32,
        replay: &mut Replay<'_>,
    ) -> Result<(), Unusable<F::Error>> {
        let (mut place, mut suspects) = (stop, None);
        let header = loop {
            match self.read_counted(block, place, replay) {
                Ok(header) if header.height > 0 => break header,
                Ok(header) if header.records == SESSION_START => {
                    let area_bytes = self.log.layout().area_bytes();
                    let area = &self.log.frames.bytes(0)[..area_bytes];
                    suspects = suspects.or(Some(!Suspects::lists_none(area)));
                }
                Ok(_) => {}
                Err(Unusable::Unreadable) if place < stop => return Err(Unusable::Lost),
                Err(unusable) => return Err(unusable),
            }
            if place == first {
                replay.suspects = suspects.unwrap_or(replay.suspects);
                return Ok(());
            }
            place -= 1;
        };
        // The leaf that was the newest so far is followed by another one.
        if let Some((page, _)) = replay.leaf {
            self.cover_from(NEWEST, page)?;
        }
        let page = self.log.page_at(block, place);
        replay.leaf = Some((page, header.records));
        let form = self.form();
        self.log.frames.release(NEWEST);
        let (to, from) = self.log.frames.pair(NEWEST, 0);
        to.copy_from_slice(from);
        replay.suspects = suspects.unwrap_or(form.has_suspects(from));
        let trail = form.trail(from);
        self.trail.take(trail);
        let sum = sum_in(trail);
        for at in first..place {
            match self.trail.rank(place - 1 - at) {
                Some(rank) if rank < self.directory.len() => {
                    self.directory.set_page(rank, Some(self.log.page_at(block, at)));
                }
                Some(_) => return Err(Unusable::Lost),
                None => self.follow_untold(block, at, replay)?,
            }
        }
        if sum == self.directory.sum() { Ok(()) } else { Err(Unusable::Lost) }
    }

    /// Follows a page that no trail tells of.
    fn follow_untold(
        &mut self,
        block: BlockNumber,
        place: u32,
        replay: &Replay<'_>,
    ) -> Result<(), Unusable<F::Error>> {
        match self.read_counted(block, place, replay) {
            Ok(header) if header.height > 0 => self.cover_from(0, self.log.page_at(block, place)),
            Err(Unusable::Unreadable) => Err(Unusable::Lost),
            read => read.map(drop),
        }
    }

    /// Gives the leaf in `frame`, which is in `page`, its whole range.
    fn cover_from(&mut self, frame: usize, page: PageNumber) -> Result<(), Unusable<F::Error>> {
        let form = self.form();
        let fences = form.fences(self.log.frames.bytes(frame)).ok_or(Unusable::Lost)?;
        let rank = self.directory.find(fences.0);
        let covers = self.directory.cover(fences, page);
        // A page that owns keys on both sides of it has lost the one between them.
        let owner = |rank| (rank < self.directory.len()).then(|| self.directory.page(rank))?;
        let is_apart = (rank..rank + 2).any(|at| {
            at > 0
                && owner(at) == Some(page)
                && owner(at - 1) == owner(at + 1)
                && owner(at + 1).is_some()
        });
        if covers && !is_apart { Ok(()) } else { Err(Unusable::Lost) }
    }

    /// Reads a page after the checkpoint into page buffer 0.
    ///
    /// It must be one that counts if no block holds a torn page.
    fn read_counted(
        &mut self,
        block: BlockNumber,
        place: u32,
        replay: &Replay<'_>,
    ) -> Result<PageHeader, Unusable<F::Error>> {
        let page = self.log.page_at(block, place);
        let header = self.log.read_raw(page, 0)?.map_err(|_| Unusable::Unreadable)?;
        let counts = header.identity == replay.found.identity
            && self.log.is_ours(0)
            && header.height <= 1
            && header.sequence <= replay.found.highest
            && !self.is_stored(header.sequence)
            && !self.order.is_left_over(block, header.sequence);
        if counts { Ok(header) } else { Err(Unusable::Lost) }
    }
}
