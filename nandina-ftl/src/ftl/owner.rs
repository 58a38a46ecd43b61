//! The FTL as the owner of the pages that garbage collection moves.
//!
//! A moved page keeps what it says and takes the next sequence number. It is the newest copy, so it
//! stays the newest, and its content is that of the copy that it replaces. No stale copy is moved.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::gc::{self, Collector, PageOwner};
use nandina::log::Log;
use nandina::{Damage, Fault};

use super::bytes::{Kind, MOVED};
use super::{Ftl, FtlError};
use crate::mapping::{Extent, Mapping};

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Pages kept free for blocks that may still go bad.
    fn room_to_fail(&self) -> u32 {
        let spared = self.log.reserve_blocks().saturating_sub(self.log.blocks.bad_blocks());
        spared * self.log.block_pages()
    }

    /// Moves `page`, whose content counts.
    fn move_page(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        let kind = self.read_kind(page, 0)?;
        if self.current(kind) != Some(page) {
            return Err(Fault::Corrupt { page, reason: Damage::OtherIndex });
        }
        if let Kind::Data(logical) | Kind::Hole(logical) = kind
            && let Err(refusal) = self.mapping.admits(Extent::new(logical, 1))
        {
            self.refused = Some(refusal);
            return Err(Fault::NoRoom { limit_pages: self.limits.valid_pages });
        }
        self.close_buffer_of(page);
        self.turn(MOVED);
        self.program_moved(page, kind).map_err(|error| self.fault_of(error))?;
        self.statistics.moved += 1;
        Ok(())
    }

    /// Why a page could not be programmed, for collection.
    fn fault_of(&self, error: FtlError<F::Error>) -> Fault<F::Error> {
        match error {
            FtlError::Device(error) => Fault::Device(error),
            FtlError::WornOut { bad_blocks } => Fault::WornOut { bad_blocks },
            _ => Fault::NoRoom { limit_pages: self.limits.valid_pages },
        }
    }
}

/// Moves in the order of logical numbers.
impl<'b, F: Flash, M: Mapping> Ftl<'b, F, M> {
    /// From now on garbage collection moves the pages of a block in the order of logical numbers.
    ///
    /// So pages that follow one another logically come to follow one another on the chip, and a
    /// mapping of extents needs fewer of them. As many pages are sorted at a time as `order` has
    /// places: best as many as a block has pages. An empty `order` restores the default, the order
    /// in which the pages were written. Idle steps and collection that repairs the reserve after a
    /// cut keep to the default.
    ///
    /// Cost: one read more for each page moved. Nothing of it is on the medium.
    pub fn sort_moves(&mut self, order: &'b mut [u32]) {
        self.move_order = order;
    }

    /// Fills `order` with the logical numbers of valid pages of `block` from `from` on, and sorts.
    ///
    /// Returns how many it found, and the place behind the last page that it looked at.
    fn sort_pages(
        &mut self,
        block: BlockNumber,
        from: u32,
        order: &mut [u32],
    ) -> Result<(usize, u32), Fault<F::Error>> {
        let (mut count, mut place) = (0, from);
        while count < order.len()
            && let Some((page, at)) = gc::next_valid(self, block, place)?
        {
            place = at + 1;
            // Collection deals with a page that cannot be read.
            if let Ok(header) = self.log.read_raw(page, 0)?
                && let Kind::Data(logical) = Kind::of(header.lowest, header.records)
            {
                order[count] = logical;
                count += 1;
            }
        }
        order[..count].sort_unstable();
        Ok((count, place))
    }

    /// Moves the pages of `block` that `order` has room for, and then the next, in order.
    fn move_sorted(
        &mut self,
        block: BlockNumber,
        order: &mut [u32],
    ) -> Result<(), Fault<F::Error>> {
        let mut from = 0;
        loop {
            let (count, next) = self.sort_pages(block, from, order)?;
            if count == 0 {
                return Ok(());
            }
            for &logical in &order[..count] {
                let page = self.find(logical).filter(|&page| self.block_of(page) == block);
                if self.room() < self.move_pages() {
                    return Ok(());
                }
                if let Some(page) = page {
                    gc::save(self, page, None)?;
                }
            }
            from = next;
        }
    }
}

impl<'b, F: Flash, M: Mapping> PageOwner<'b, F> for Ftl<'b, F, M> {
    fn log(&self) -> &Log<'b, F> {
        &self.log
    }

    fn log_mut(&mut self) -> &mut Log<'b, F> {
        &mut self.log
    }

    fn collector(&self) -> &Collector {
        &self.collector
    }

    fn collector_mut(&mut self) -> &mut Collector {
        &mut self.collector
    }

    fn relocate(
        &mut self,
        page: PageNumber,
        _: Option<BlockNumber>,
    ) -> Result<(), Fault<F::Error>> {
        self.move_page(page)
    }

    fn kept(&self) -> u32 {
        // Volatile trims that wait need a page for their list.
        self.limits.room_pages + self.room_to_fail() + u32::from(!self.waiting.is_empty())
    }

    fn reserve_pages(&self) -> u32 {
        self.limits.reserve_pages + self.room_to_fail()
    }

    fn pages_to_empty(&self, valid: u32, _: bool) -> u32 {
        valid
    }

    fn move_cost(&self, _: u32) -> u32 {
        // Three attempts to read it, an erase and a program; and anchors may have to be erased.
        5 + 2 * u32::from(self.anchors.may_erase())
    }

    fn prepare_block(&mut self) -> Result<bool, Fault<F::Error>> {
        if self.anchors.may_erase() {
            // Blocks that are not listed wait for the change that needs them.
            let next = self.log.next_spared(self.log.active_block())?;
            if self.anchors.has_stale() || !next.is_some_and(|next| self.anchors.allow(next)) {
                return Ok(false);
            }
        }
        let is_prepared = self.log.prepare_block()?;
        if is_prepared {
            self.anchors.note_taken();
        }
        Ok(is_prepared)
    }

    fn begin_changes(&mut self) -> Result<bool, Fault<F::Error>> {
        self.begin_session().map_err(|error| self.fault_of(error))
    }

    fn collect_ahead(&mut self, victim: BlockNumber) -> Result<(), Fault<F::Error>> {
        let order = core::mem::take(&mut self.move_order);
        let moved = self.move_sorted(victim, order);
        self.move_order = order;
        moved
    }

    fn write_out(&mut self) -> Result<(), Fault<F::Error>> {
        // It frees blocks, and then there may be nothing to collect.
        self.list_waiting().map_err(|error| self.fault_of(error))
    }

    fn limit_pages(&self) -> u32 {
        self.limits.valid_pages
    }

    fn in_doubt(&self) -> bool {
        self.in_doubt
    }
}
