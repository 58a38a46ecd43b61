//! Requests of several pages that are written as a whole: after a cut all are old, or all are new.
//!
//! The pages of a request are programmed one after another, and nothing between them. Each but the
//! last says that its request goes on behind it, and at which position of the request it is. The
//! last one is a logical page like any other, and commits. So a mount whose newest page leaves a
//! request open takes nothing of that request (`mount.rs`). Every page that is newer than the last
//! one shows that the request is complete: no mark is needed later, and collection moves its pages
//! as any others.
//!
//! An incomplete request lies in two blocks at most, because it has no more pages than a block and
//! begins anew if a program fails. What it would have superseded is valid until it is complete. The
//! mount that finds it settles it as it settles a torn page (`settle.rs`). No garbage is collected
//! between its pages: room for all of them is made before the first.

use nandina::covered;
use nandina::flash::{Flash, PageNumber};
use nandina::gc;
use nandina::log::Label;

use super::bytes::{Kind, NEW, open_label};
use super::size::OpenBlocks;
use super::{Ftl, FtlError, size};
use crate::mapping::{Extent, Mapping};
use crate::transit::Below as _;

impl<F: Flash, M: Mapping> Ftl<'_, F, M> {
    /// The most pages of a request that is written as a whole.
    ///
    /// It is that of [`request_pages_max`](super::request_pages_max) for this chip, and costs the
    /// same.
    pub fn request_pages_max(&self) -> u32 {
        let (geometry, capabilities) = (self.log.geometry(), self.log.capabilities());
        let open = OpenBlocks { apart: false, ..self.open_blocks() };
        size::request_pages_beside(&geometry, &capabilities, open, self.logical_pages)
    }

    /// Writes logical pages from `logical` on, as many as `bytes` holds, as a whole.
    ///
    /// After a cut in it all of them are old or all are new, and so they are if it returns an
    /// error. Refuses more than [`request_pages_max`](Self::request_pages_max) pages with
    /// [`FtlError::RequestPages`]. If its last page fades before anything else is programmed, it is
    /// as if the request had been cut; [`close`](Self::close) programs something.
    ///
    /// Cost: that of [`write_pages`](Self::write_pages), and what volatile trims take, which are
    /// durable then. Collection keeps as many more pages free
    /// as the request has; there is no RAM that it takes. If a program fails, a mount, and the
    /// request once more.
    pub fn write_pages_atomic(
        &mut self,
        logical: u32,
        bytes: &[u8],
    ) -> Result<(), FtlError<F::Error>> {
        let extent = self.expect_pages(logical, bytes)?;
        let (most, given) = (self.request_pages_max(), extent.length);
        if given > most {
            return Err(FtlError::RequestPages { most, given });
        }
        loop {
            self.begin_request(extent)?;
            // A block that fails is not written again, so this ends.
            if self.write_request(extent, bytes)? {
                self.statistics.host_writes += u64::from(extent.length);
                return Ok(());
            }
        }
    }

    /// Makes room for all pages of a request.
    fn begin_request(&mut self, extent: Extent) -> Result<(), FtlError<F::Error>> {
        self.mount_if_in_doubt()?;
        self.mapping.admits(extent)?;
        self.begin()?;
        // If a program of the request fails, a mount would undo volatile trims.
        self.list_waiting()?;
        let (geometry, capabilities) = (self.log.geometry(), self.log.capabilities());
        let most =
            size::valid_pages_before(&geometry, &capabilities, self.open_blocks(), extent.length);
        let held = self.held_pages();
        if held > 0 && self.log.blocks.valid_pages() > most.saturating_sub(held) {
            self.give_up_checkpoint()?;
        }
        self.make_way(extent.length)?;
        self.make_room()?;
        let mut gained = gc::gain_room(self, extent.length - 1);
        if self.is_without_room(&gained) {
            covered!("ftl: a request gives a checkpoint up for room");
            self.give_up_checkpoint()?;
            gained = gc::gain_room(self, extent.length - 1);
        }
        self.ended(gained)?;
        for logical in extent.start..extent.end() {
            self.close_own(logical);
        }
        self.turn(NEW);
        // Pages that moved may have taken memory.
        Ok(self.mapping.admits(extent)?)
    }

    /// Programs all pages of a request. Returns `false` if a program failed: none of them counts.
    ///
    /// Until the last one is programmed the FTL is in doubt: the next call mounts, and drops them.
    fn write_request(&mut self, extent: Extent, bytes: &[u8]) -> Result<bool, FtlError<F::Error>> {
        let each = self.page_bytes();
        let mut bytes = bytes.chunks_exact(each);
        let mut start = extent.start;
        while start < extent.end() {
            let in_block = self.in_open_block().unwrap_or(self.log.block_pages());
            let row = Extent::between(start, extent.end().min(start + in_block));
            self.mapping.admits(row)?;
            self.in_doubt = true;
            let mut first = None;
            for (logical, bytes) in (row.start..row.end()).zip(bytes.by_ref()) {
                let is_last = logical + 1 == extent.end();
                let position = (logical - extent.start) as u8;
                let open = open_label(logical, position);
                let label = if is_last { Kind::Data(logical).label() } else { open };
                let Some(page) = self.append_page(bytes, label)? else {
                    covered!("ftl: a program of a request fails");
                    return Ok(false);
                };
                self.statistics.programmed += 1;
                first = first.or(Some(self.places.place(page)));
            }
            if let Some(place) = first {
                self.map_row(row, place)?;
            }
            start = row.end();
        }
        // From now on the room of what they supersede is free.
        self.release();
        self.log.check_accounts();
        self.in_doubt = false;
        Ok(true)
    }

    /// Places that are left in the open block, if there is one that is not full.
    fn in_open_block(&self) -> Option<u32> {
        let (_, place) = self.log.next_place()?;
        Some(self.log.block_pages() - place).filter(|&left| left > 0)
    }

    /// Programs a page with this content. Returns `None` if that failed.
    fn append_page(
        &mut self,
        bytes: &[u8],
        label: Label,
    ) -> Result<Option<PageNumber>, FtlError<F::Error>> {
        loop {
            let Some(page) = self.log.next_page() else {
                let filled = self.log.close_block();
                if !self.log.open_ready() && !self.log.fill_parked(filled) {
                    let next = self.anchors.next_block(&mut self.log, filled)?;
                    self.log.open(next)?;
                }
                continue;
            };
            if !self.log.append_from(bytes, label)? {
                return Ok(None);
            }
            self.log.blocks.set_valid(page, true);
            return Ok(Some(page));
        }
    }
}
