//! The FTL as the owner of the pages that garbage collection moves.
//!
//! A moved page keeps what it says and takes the next sequence number. It is the newest copy, so it
//! stays the newest, and its content is that of the copy that it replaces. No stale copy is moved.

use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::gc::{Collector, PageOwner};
use nandina::log::Log;
use nandina::{Damage, Fault};

use super::bytes::Kind;
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
        match self.program(0, kind) {
            Ok(()) => {
                self.statistics.moved += 1;
                Ok(())
            }
            Err(FtlError::Device(error)) => Err(Fault::Device(error)),
            Err(FtlError::WornOut { bad_blocks }) => Err(Fault::WornOut { bad_blocks }),
            Err(_) => Err(Fault::NoRoom { limit_pages: self.limits.valid_pages }),
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
        self.limits.room_pages + self.room_to_fail()
    }

    fn reserve_pages(&self) -> u32 {
        self.limits.reserve_pages + self.room_to_fail()
    }

    fn pages_to_empty(&self, valid: u32, _: bool) -> u32 {
        valid
    }

    fn move_cost(&self, _: u32) -> u32 {
        // Three attempts to read it, an erase and a program.
        5
    }

    fn limit_pages(&self) -> u32 {
        self.limits.valid_pages
    }

    fn in_doubt(&self) -> bool {
        self.in_doubt
    }
}
