//! Buffer blocks before a policy: how a hybrid FTL lies below the transit layer.
//!
//! The layer is `src/transit/mod.rs`. A merge here may meet a page that the buffer supersedes. Its
//! copy is labelled as old, and no mount counts it; else it would be newer than the page in the
//! buffer.
//!
//! Buffer blocks that were begun before a mount are not written on: one is converted when a page of
//! its logical block is written, or as a victim.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::{Fault, covered};

use super::Hybrid;
use super::label::{Cause, Kind};
use super::policy::{Logs, Policy};
use crate::ftl::FtlError;
use crate::transit::{Below, Buffer, BufferBlock, Completed, Conversions, State};

/// A policy with buffer blocks before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit<P> {
    /// The policy of the FTL below.
    pub over: P,
    /// The buffer blocks.
    pub buffer: Buffer,
}

impl<P: Policy> Policy for Transit<P> {
    const SYSTEM: u8 = P::SYSTEM + 3;
    const LOG_BLOCKS_MIN: u32 = P::LOG_BLOCKS_MIN;
    const OWNED: bool = P::OWNED;
    const BY_USE: bool = P::BY_USE;

    fn log_blocks(&self) -> u32 {
        self.over.log_blocks()
    }

    fn choose(&self, logs: &Logs<'_, '_>) -> super::policy::Choice {
        self.over.choose(logs)
    }

    fn buffer(&self) -> Buffer {
        self.buffer
    }
}

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// The buffer blocks.
    pub fn buffer_blocks(&self) -> impl Iterator<Item = BufferBlock> {
        self.transit.blocks()
    }

    /// Conversions since it was formatted or opened.
    pub const fn conversions(&self) -> Conversions {
        self.transit.conversions
    }

    /// Writes a page of the host through the buffer, or past it.
    pub(super) fn write_buffered(
        &mut self,
        logical: u32,
        bytes: &[u8],
    ) -> Result<(), Fault<F::Error>> {
        if !self.append(logical, bytes)? {
            self.media.frames.bytes_mut(0)[..bytes.len()].copy_from_slice(bytes);
            self.put(logical, Kind::Data(logical))?;
            self.previous = Some(logical);
        }
        Ok(())
    }

    /// Converts all buffer blocks.
    ///
    /// The paper does so at every mount: call it after [`open`](Self::open) to have it so. Nothing
    /// needs it.
    pub fn convert_all(&mut self) -> Result<(), FtlError<F::Error>> {
        self.change(Self::convert_each)
    }

    /// Makes a step of a conversion that is due, or of the merge that it has to wait for.
    pub(super) fn step_ahead(&mut self) -> Result<(), Fault<F::Error>> {
        let Some(at) = self.transit.due_ahead() else { return Ok(()) };
        match self.merged_first(at) {
            Some(logical_block) => self.merge(logical_block, None)?,
            None => {
                let is_done = self.convert_step(at)?;
                self.transit.conversions.ahead += u64::from(is_done);
            }
        }
        Ok(())
    }

    /// A logical block to be merged before the next page of a buffer block can be written below.
    ///
    /// Its pages are in the log block that is merged next. One by one they take fewer operations at a
    /// time.
    fn merged_first(&self, at: u32) -> Option<u32> {
        let logical = self.next_to_convert(at)?;
        let slot = self.retired_for(logical)?;
        let block = BlockNumber(self.maps.slot(slot).block);
        let mut counted = (0..self.block_pages()).filter_map(|at| self.logical_at(block, at));
        let is_random = self.maps.sequential(slot).is_none();
        counted.next().filter(|_| is_random).map(|logical| logical / self.block_pages())
    }

    /// The most chip operations that a step takes, if none of them fails.
    pub(super) fn cost_of_step(&self, at: u32) -> u32 {
        if self.transit.summary.get(at).is_doubtful {
            return self.cost_to_convert(at);
        }
        self.step_cost()
    }

    /// The most chip operations that a step of a conversion takes, if none of them fails.
    ///
    /// A merge reads, compares and programs each page, and erases four blocks. Another one may
    /// close the sequential log block.
    pub(super) fn step_cost(&self) -> u32 {
        4 * (2 * self.block_pages()) + 24
    }

    /// The most chip operations that a conversion takes, if none of them fails.
    ///
    /// Each page can set off a merge, and two log blocks can be merged that have pages of as many
    /// logical blocks as a block has pages.
    pub(super) fn cost_to_convert(&self, at: u32) -> u32 {
        let entry = self.transit.summary.get(at);
        let newest = match entry.is_doubtful {
            true => self.transit.summary.group_pages,
            false => self.media.blocks.valid_in(BlockNumber(entry.block)),
        };
        let merges = newest.saturating_mul(2).saturating_add(2 * self.block_pages());
        merges.saturating_mul(4 * self.block_pages() + 8).saturating_add(self.block_pages() + 1)
    }

    /// Notes that the copy of a logical page in a buffer block does not count.
    pub(super) fn forget_buffered(&mut self, logical: u32) {
        if let Some(page) = self.find_in_buffer(logical) {
            self.media.blocks.set_valid(page, false);
        }
    }
}

impl<'b, F: Flash, P: Policy> Below<'b> for Hybrid<'b, F, P> {
    type Error = Fault<F::Error>;

    fn transit(&self) -> &State<'b> {
        &self.transit
    }

    fn transit_mut(&mut self) -> &mut State<'b> {
        &mut self.transit
    }

    fn page_in(&self, block: BlockNumber, place: u32) -> PageNumber {
        self.media.page_at(block, place)
    }

    /// On a chip that was tampered with, the page about the FTL itself may be in such a block.
    fn counts(&self, page: PageNumber) -> bool {
        self.media.blocks.is_valid(page) && self.own != Some(page)
    }

    fn may_pass(&self, logical: u32) -> bool {
        // What is in doubt is decided before anything of its group is newer below.
        (self.policy.log_blocks() > 0 || self.is_next_in_data(logical))
            && self.doubtful(logical).is_none()
    }

    fn open_buffer(&mut self, _: bool) -> Result<Option<BlockNumber>, Self::Error> {
        self.media.open().map(Some)
    }

    fn program_buffered(
        &mut self,
        (block, place): (BlockNumber, u32),
        (logical, before): (u32, u32),
        bytes: &[u8],
    ) -> Result<bool, Self::Error> {
        // A conversion uses the page buffer.
        self.media.frames.bytes_mut(0)[..bytes.len()].copy_from_slice(bytes);
        let cause = Cause::buffer(self.transit.summary.number_of(before));
        let page = self.media.page_at(block, place);
        self.media.program(page, 0, Kind::Data(logical).label(cause))
    }

    fn give_up_buffer(&mut self, at: u32) -> Result<bool, Self::Error> {
        covered!("hybrid: a program into a buffer block fails");
        self.list_failed(BlockNumber(self.transit.summary.get(at).block))?;
        self.convert(at)?;
        Ok(true)
    }

    fn count_buffered(&mut self, logical: u32, page: PageNumber) -> Result<(), Self::Error> {
        if self.transit.buffer.drops_superseded {
            self.forget(logical);
        } else {
            self.forget_buffered(logical);
        }
        self.media.blocks.set_valid(page, true);
        Ok(())
    }

    fn turn_to(&mut self, at: u32, logical_block: u32) -> Result<(), Self::Error> {
        let now = (self.transit.summary.get(at).block, logical_block);
        if core::mem::replace(&mut self.converting, now) != now {
            self.free_if_empty(logical_block)?;
        }
        Ok(())
    }

    fn decide(&mut self, at: u32) -> Result<bool, Self::Error> {
        let is_doubtful = self.transit.summary.get(at).is_doubtful;
        if is_doubtful {
            covered!("hybrid: it is decided which pages are lost");
            self.end_doubt(at)?;
        }
        Ok(is_doubtful)
    }

    fn complete_from(&mut self, _: u32, logical_block: u32) -> Result<Completed, Self::Error> {
        self.complete(logical_block)?;
        Ok(Completed::Below)
    }

    fn put_below(&mut self, _: u32, logical: u32) -> Result<bool, Self::Error> {
        if let Some(page) = self.find_in_buffer(logical) {
            let kind = self.kind_to_copy(page, logical, 0)?;
            self.put(logical, kind)?;
            self.statistics.moved += 1;
            self.previous = Some(logical);
        }
        Ok(true)
    }

    fn read_stale(&mut self, page: PageNumber) -> Result<(), Self::Error> {
        self.media.read(page, 0).map(drop)
    }

    fn let_go(&mut self, block: BlockNumber) -> Result<(), Self::Error> {
        self.media.free(block)
    }
}
