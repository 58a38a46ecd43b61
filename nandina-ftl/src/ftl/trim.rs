//! Trims: durable ones, and volatile ones that wait to be made durable together.
//!
//! A list of trims is a page that the FTL keeps about itself: what was written into its extents
//! before a number that it names does not count. It is rewritten by each durable trim, with the
//! holes that are left of its extents. So a mount brings nothing back, and blocks whose pages were
//! trimmed are free at once. An extent that does not fit in the list any more is trimmed page by
//! page: a page is programmed for each that says so.
//!
//! A volatile trim removes pages from the mapping, and its extent waits in RAM (`waiting.rs`). The
//! pages are garbage at once: collection need not move them. But a block that they leave without
//! valid pages is not free before the next list, which names all that waits. An erase before that
//! would be unsound. If it were cut, a mount might read a page of the block, and the next mount an
//! older copy, or none; and a checkpoint that maps a trimmed page would lead to what is written
//! there since.
//!
//! So what waits is lost as a whole or not at all: its newest copies are still on the chip, and the
//! list is one page. Before collection needs the blocks it programs that page, for which one page
//! more is kept free as long as trims wait. It always fits: the list is programmed before changes
//! and trims can have made too many runs of holes.

use nandina::covered;
use nandina::flash::Flash;
use nandina::gc::PageOwner;

use super::bytes::{Kind, NEW, Own, Trims};
use super::{Ftl, FtlError};
use crate::mapping::{Extent, Joined, Mapping, Piece};
use crate::transit::Below as _;

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Makes `count` logical pages from `logical` on holes. They read as never written.
    ///
    /// After a cut in it, each of them is as before or a hole. Cost: one program, a read, and what
    /// garbage collection and settling take, as for a write; nothing if all are holes, unless by a
    /// volatile trim that waits. If the list of trims is full (an extent takes 8 bytes of its page),
    /// one program more for each page of its shortest extent; of several, if writes in the midst of
    /// holes have divided some since the last trim.
    pub fn trim(&mut self, logical: u32, count: u32) -> Result<(), FtlError<F::Error>> {
        self.expect_inside(logical, count)?;
        self.mount_if_in_doubt()?;
        let extent = Extent::new(logical, count);
        if self.mapped_in(extent)?.0 == 0 && !self.waiting.overlap(extent) {
            return Ok(());
        }
        loop {
            self.begin_change(extent, 1)?;
            let Some(shortest) = self.list_trims(Some(extent))? else { break };
            covered!("ftl: the list of trims is full");
            for logical in shortest.start..shortest.end() {
                self.begin_change(Extent::new(logical, 1), 1)?;
                self.program_mark(Kind::Hole(logical))?;
            }
        }
        self.close_buffers(extent);
        self.program_trims()?;
        self.unmap(extent)
    }

    /// Makes `count` logical pages from `logical` on holes, and programs nothing for it.
    ///
    /// They read as never written, and are garbage. The trim becomes durable with the next durable
    /// trim that changes something, a [`checkpoint`](Self::checkpoint), an idle step with a budget
    /// of at least seven operations, a [`close`](Self::close) or a request that is written as a
    /// whole; and when garbage collection needs the blocks that trims have emptied. Until then a
    /// cut, or a call that returns an error, may undo it: each page is a hole after the next mount,
    /// or as it was right before the trim, and never older. If it is undone, so are all volatile
    /// trims after it; and no later mount decides otherwise. A page that is written after it stays
    /// written.
    ///
    /// It is durable at once, and costs what [`trim`](Self::trim) does, if 16 extents wait that it
    /// does not touch, if the list of trims has no room (changes since the last list take some of
    /// it too), if free pages are short, or if one of the pages is in a block that has failed. Else
    /// it costs at most a read, and what settling takes.
    pub fn trim_volatile(&mut self, logical: u32, count: u32) -> Result<(), FtlError<F::Error>> {
        self.expect_inside(logical, count)?;
        self.mount_if_in_doubt()?;
        let extent = Extent::new(logical, count);
        if self.mapped_in(extent)?.0 == 0 {
            return Ok(());
        }
        self.mapping.admits(extent)?;
        self.begin()?;
        if !self.may_wait(extent)? {
            return self.trim(logical, count);
        }
        // A block that this leaves without valid pages is held unless it is parked. That for moved
        // pages may be: it gets no page before the list.
        self.turn(NEW);
        self.close_buffers(extent);
        self.waiting.add(extent);
        self.unmap(extent)
    }

    /// Whether a volatile trim of `extent` can wait.
    fn may_wait(&mut self, extent: Extent) -> Result<bool, FtlError<F::Error>> {
        if self.room() < self.kept() {
            covered!("ftl: no room is left for trims that wait");
            return Ok(false);
        }
        if self.mapped_in(extent)?.1 {
            covered!("ftl: a page that is trimmed is in a block that has failed");
            return Ok(false);
        }
        if self.waiting.is_empty() {
            if self.list_trims(Some(extent))?.is_some() {
                return Ok(false);
            }
            let bytes = self.page_bytes();
            let spare = Trims(&mut self.log.frames.bytes_mut(1)[..bytes]).spare();
            self.waiting.begin(spare + 1, self.log.blocks.bad_blocks());
        }
        Ok(self.waiting.admit(extent))
    }

    /// How many pages of `extent` are mapped, and whether one is in a block that has failed.
    fn mapped_in(&mut self, extent: Extent) -> Result<(u32, bool), FtlError<F::Error>> {
        let (mut mapped, mut has_failed) = (0, false);
        let (blocks, places, geometry) = (&self.log.blocks, self.places, self.log.geometry());
        self.mapping.look_up(extent, &mut |piece| {
            let Piece { length, physical: Some(place), .. } = piece else { return };
            mapped += length;
            has_failed |= blocks.bad_blocks() > 0
                && (place..place + length)
                    .any(|place| blocks.is_bad(geometry.block_of(places.page(place))));
        })?;
        Ok((mapped, has_failed))
    }

    /// Removes what is mapped of `extent`, as a trim.
    fn unmap(&mut self, extent: Extent) -> Result<(), FtlError<F::Error>> {
        self.in_doubt = true;
        let (log, places, mut removed) = (&mut self.log, self.places, 0);
        self.mapping.remove(extent, &mut |run| {
            removed += run.length;
            log.supersede_all(
                (run.physical..run.physical + run.length).map(|place| places.page(place)),
            );
        })?;
        self.release();
        self.log.check_accounts();
        self.in_doubt = false;
        self.statistics.host_trims += u64::from(removed);
        Ok(())
    }

    /// Makes the volatile trims that wait durable. Nothing is collected here.
    ///
    /// Cost: one program and a read; nothing if none waits.
    pub(super) fn list_waiting(&mut self) -> Result<(), FtlError<F::Error>> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        // It fits, unless the list on the chip was tampered with.
        if self.list_trims(None)?.is_some() {
            return Err(FtlError::NoRoom);
        }
        self.program_trims()
    }

    /// Programs the list of trims in page buffer 1. All that waits is durable then.
    fn program_trims(&mut self) -> Result<(), FtlError<F::Error>> {
        self.program(1, Kind::Own(Own::Trims))?;
        self.statistics.own += 1;
        self.waiting.clear();
        self.release();
        Ok(())
    }

    /// Blocks without valid pages are free from now on, unless volatile trims wait.
    pub(super) fn release(&mut self) {
        if self.waiting.is_empty() {
            self.log.blocks.release();
        }
    }

    /// Writes a list of trims into page buffer 1: `trim`, what waits, and what it listed before.
    ///
    /// If it does not fit, returns the shortest extent of the list that is still a hole.
    fn list_trims(&mut self, trim: Option<Extent>) -> Result<Option<Extent>, FtlError<F::Error>> {
        self.log.frames.forget(0);
        self.log.frames.forget(1);
        let bytes = self.page_bytes();
        match self.own[Own::Trims as usize] {
            Some(page) => {
                self.read_kind(page, 0)?;
            }
            None => self.log.frames.bytes_mut(0).fill(0),
        }
        let as_of = self.log.sequence();
        let (old, new) = self.log.frames.pair(0, 1);
        let old = Trims(&mut old[..bytes]);
        let mut new = Trims(&mut new[..bytes]);
        new.clear();
        new.set_as_of(as_of);
        // The first extent grows by those that touch it, and so do those that waited.
        let first = usize::from(trim.is_some());
        if let Some(trim) = trim {
            new.push(trim);
        }
        let (mut left, mut zone) = (None, first);
        let waiting = self.waiting.all();
        for at in 0..waiting.len() + old.count() {
            let mut keep = |Piece { logical, length, physical }: Piece| {
                let hole = Extent::new(logical, length);
                let fits = physical.is_some() || new.join(hole, zone);
                if !fits && left.is_none_or(|left: Extent| hole.length < left.length) {
                    left = Some(hole);
                }
            };
            // An extent that is damaged was refused by the mount.
            let waits = waiting.get(at).copied();
            let extent = waits.unwrap_or_else(|| old.get(at - waiting.len()));
            let mut done = Ok(());
            // A mapping may divide a hole.
            Joined::pieces(&mut keep, |pieces| {
                done = self.mapping.look_up(extent, &mut |piece| pieces.push(piece));
            });
            done?;
            if waits.is_some() {
                zone = new.count();
            }
        }
        let shortest = left.map(|left| {
            let listed = (first..new.count()).map(|at| new.get(at)).chain([left]);
            listed.min_by_key(|extent| extent.length).unwrap_or(left)
        });
        self.log.frames.release(0);
        Ok(shortest)
    }
}
