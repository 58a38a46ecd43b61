//! Trims, which are durable as writes are.
//!
//! A list of trims is a page that the FTL keeps about itself: what was written into its extents
//! before a number that it names does not count. It is rewritten by each trim, with the holes that
//! are left of its extents. So a mount brings nothing back, and blocks whose pages were trimmed are
//! free at once. An extent that does not fit in the list any more is trimmed page by page: a page
//! is programmed for each that says so.

use nandina::flash::Flash;

use super::bytes::{Kind, Own, Trims};
use super::{Ftl, FtlError};
use crate::mapping::{Extent, Mapping, Piece};

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// Makes `count` logical pages from `logical` on holes. They read as never written.
    ///
    /// After a cut in it, each of them is as before or a hole. Cost: one program, a read, and what
    /// garbage collection and settling take, as for a write; nothing if all are holes. If the list
    /// of trims is full (an extent takes 8 bytes of its page), one program more for each page of
    /// its shortest extent.
    pub fn trim(&mut self, logical: u32, count: u32) -> Result<(), FtlError<F::Error>> {
        self.expect_inside(logical, count)?;
        self.mount_if_in_doubt()?;
        let extent = Extent::new(logical, count);
        let mut mapped = 0;
        let mut add = |piece: Piece| mapped += piece.physical.map_or(0, |_| piece.length);
        self.mapping.look_up(extent, &mut add)?;
        if mapped == 0 {
            return Ok(());
        }
        loop {
            self.begin_change(extent)?;
            let Some(shortest) = self.list_trims(extent)? else { break };
            for logical in shortest.start..shortest.end() {
                self.begin_change(Extent::new(logical, 1))?;
                self.program_mark(Kind::Hole(logical))?;
            }
        }
        self.program(1, Kind::Own(Own::Trims))?;
        self.statistics.own += 1;
        self.in_doubt = true;
        let (log, places) = (&mut self.log, self.places);
        self.mapping.remove(extent, &mut |run| {
            log.supersede_all(
                (run.physical..run.physical + run.length).map(|place| places.page(place)),
            );
        })?;
        self.log.blocks.release();
        self.in_doubt = false;
        self.statistics.host_trims += u64::from(mapped);
        Ok(())
    }

    /// Writes a list of trims with `extent` into page buffer 1.
    ///
    /// If it does not fit, returns the shortest extent of the list that is still a hole.
    fn list_trims(&mut self, extent: Extent) -> Result<Option<Extent>, FtlError<F::Error>> {
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
        // The first extent grows by those that touch it.
        let mut first = extent;
        new.push(first);
        let (mut shortest, mut fits): (Option<Extent>, bool) = (None, true);
        for at in 0..old.count() {
            let mut keep = |piece: Piece| {
                let piece = match piece.physical {
                    None => Extent::new(piece.logical, piece.length),
                    Some(_) => return,
                };
                if piece.start <= first.end() && first.start <= piece.end() {
                    let (start, end) = (first.start.min(piece.start), first.end().max(piece.end()));
                    first = Extent::between(start, end);
                    return;
                }
                if shortest.is_none_or(|shortest| piece.length < shortest.length) {
                    shortest = Some(piece);
                }
                fits &= new.push(piece);
            };
            // An extent that is damaged was refused by the mount.
            self.mapping.look_up(old.get(at), &mut keep)?;
        }
        new.set(0, first);
        self.log.frames.release(0);
        Ok(if fits { None } else { shortest })
    }
}
