//! Trims, which are durable as writes are.
//!
//! A page about the FTL itself has the list of trims: what was written into its extents before a
//! number that it names does not count. Each trim programs it again, with what is still a hole. An
//! extent that does not fit is trimmed page by page, as a write of a page that says so.
//!
//! No trim is volatile here: merges erase blocks by the rules of each policy, and what waits would
//! have to be listed before each of these erases.

use nandina::flash::{Flash, PageNumber};
use nandina::{Damage, Fault, covered};

use super::Hybrid;
use super::ages::Ages;
use super::label::Kind;
use super::policy::Policy;
use super::size::SUSPECTS_BYTES;
use crate::ftl::FtlError;
use crate::ftl::bytes::Trims;
use crate::logical::LogicalPages;
use crate::mapping::Extent;
use crate::transit::Below as _;

impl<F: Flash, P: Policy> Hybrid<'_, F, P> {
    /// Makes `count` logical pages from `logical` on holes. They read as never written.
    ///
    /// After a cut in it, each of them is as before or a hole. Cost: one program and a read;
    /// nothing if all are holes. One erase for each block that becomes free, and one every
    /// `pages_per_block` trims. If the list of trims is full (an extent takes 8 bytes of a page), a
    /// write more for each page of its shortest extent; of several, if writes in the midst of holes
    /// have divided some since the last trim.
    pub fn trim(&mut self, logical: u32, count: u32) -> Result<(), FtlError<F::Error>> {
        self.expect_inside(logical, count)?;
        self.mount_if_in_doubt()?;
        let extent = Extent::new(logical, count);
        // What is in doubt could not be trimmed.
        for logical in logical..extent.end() {
            if self.doubtful(logical).is_some() {
                // What settles first may have ended the doubt.
                self.change(|this| this.doubtful(logical).map_or(Ok(()), |at| this.convert(at)))?;
            }
        }
        let held = (logical..extent.end()).filter(|&at| self.find(at).is_some()).count();
        if held == 0 {
            return Ok(());
        }
        self.settle()?;
        self.in_doubt = true;
        while let Some(shortest) = self.list_trims(extent)? {
            covered!("hybrid: the list of trims is full");
            for logical in shortest.start..shortest.end() {
                self.media.frames.bytes_mut(0).fill(0);
                self.put(logical, Kind::Hole(logical))?;
                self.statistics.own += 1;
            }
        }
        self.close_buffers(extent);
        self.program_own(0)?;
        for logical in logical..extent.end() {
            self.forget(logical);
        }
        self.statistics.host_trims += held as u64;
        let pages = self.block_pages();
        for logical_block in logical / pages..=(extent.end() - 1) / pages {
            self.free_if_empty(logical_block)?;
        }
        self.in_doubt = false;
        Ok(())
    }

    /// Whether an extent that was read lies in the space.
    pub(super) const fn is_inside(&self, extent: Extent) -> bool {
        extent.length <= self.logical_pages && extent.start <= self.logical_pages - extent.length
    }

    /// Writes a list of trims with `extent` into page buffer 0.
    ///
    /// If it does not fit, returns the shortest extent of the list that is still a hole.
    fn list_trims(&mut self, extent: Extent) -> Result<Option<Extent>, Fault<F::Error>> {
        self.read_own(1)?;
        let bytes = self.page_bytes();
        let as_of = self.media.sequence;
        let mut first = extent;
        let (mut shortest, mut fits): (Option<Extent>, bool) = (None, true);
        {
            let mut new = Trims(&mut self.media.frames.bytes_mut(0)[SUSPECTS_BYTES..bytes]);
            new.clear();
            new.set_as_of(as_of);
            new.push(first);
        }
        let old = |this: &mut Self, at| {
            let list = Trims(&mut this.media.frames.bytes_mut(1)[SUSPECTS_BYTES..bytes]);
            list.get(at)
        };
        let count = Trims(&mut self.media.frames.bytes_mut(1)[SUSPECTS_BYTES..bytes]).count();
        for at in 0..count {
            let listed = old(self, at);
            if !self.is_inside(listed) {
                let page = self.own.unwrap_or(PageNumber(0));
                return Err(Fault::Corrupt { page, reason: Damage::OtherIndex });
            }
            let mut start = listed.start;
            while start < listed.end() {
                let is_hole = |at: &u32| self.find(*at).is_none();
                let length = (start..listed.end()).take_while(is_hole).count() as u32;
                if length == 0 {
                    start += 1;
                    continue;
                }
                let hole = Extent::new(start, length);
                start += length;
                if hole.start <= first.end() && first.start <= hole.end() {
                    let (from, to) = (first.start.min(hole.start), first.end().max(hole.end()));
                    first = Extent::between(from, to);
                    continue;
                }
                if shortest.is_none_or(|shortest| hole.length < shortest.length) {
                    shortest = Some(hole);
                }
                let frame = self.media.frames.bytes_mut(0);
                fits &= Trims(&mut frame[SUSPECTS_BYTES..bytes]).push(hole);
            }
        }
        Trims(&mut self.media.frames.bytes_mut(0)[SUSPECTS_BYTES..bytes]).set(0, first);
        Ok(if fits { None } else { shortest })
    }

    /// Forgets what the list of trims names and what is older than the trim.
    ///
    /// Returns `false` if the number of such a page could not be read.
    pub(super) fn forget_trimmed(&mut self, ages: &mut Ages) -> Result<bool, FtlError<F::Error>> {
        let Some(page) = self.own else { return Ok(true) };
        let (bytes, mut all_known) = (self.page_bytes(), true);
        self.mark_kept(ages);
        self.read_own(1)?;
        // First pages of the blocks whose numbers are in page buffer 0, which takes the list
        // afterwards.
        for frame in [1, 0] {
            if frame == 0 {
                let (to, from) = self.media.frames.pair(0, 1);
                to.copy_from_slice(from);
                ages.leave_frame();
            }
            let list = Trims(&mut self.media.frames.bytes_mut(frame)[SUSPECTS_BYTES..bytes]);
            let (as_of, count) = (list.as_of(), list.count());
            for at in 0..count {
                let area = &mut self.media.frames.bytes_mut(frame)[SUSPECTS_BYTES..bytes];
                let extent = Trims(area).get(at);
                if !self.is_inside(extent) {
                    return Err(FtlError::Corrupt { page, reason: Damage::OtherIndex });
                }
                for logical in extent.start..extent.end() {
                    let Some(page) = self.find(logical) else { continue };
                    if self.media.is_clean(self.media.block_of(page)) != (frame == 1) {
                        continue;
                    }
                    match self.is_newer_than(ages, as_of, page)? {
                        Some(false) => {
                            covered!("hybrid: a mount trims a page again");
                            self.forget(logical);
                        }
                        Some(true) => {}
                        None => all_known = false,
                    }
                }
            }
        }
        Ok(all_known)
    }

    /// Whether the list of trims in page buffer 0 has a logical page, and is newer than `sequence`.
    pub(super) fn is_trimmed(&mut self, logical: u32, sequence: u64) -> bool {
        let bytes = self.page_bytes();
        let list = Trims(&mut self.media.frames.bytes_mut(0)[SUSPECTS_BYTES..bytes]);
        sequence <= list.as_of()
            && (0..list.count()).any(|at| {
                let extent = list.get(at);
                (extent.start..extent.end()).contains(&logical)
            })
    }
}
