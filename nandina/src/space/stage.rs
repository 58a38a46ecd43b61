//! Pages staged in the write cache, and how they are written to the chip.
//!
//! Staged pages are programmed in the order of their allocation, children before parents, and the
//! newest root last. Until that root is on the chip, no page there that it supersedes can be
//! erased: a cut finds the tree of the previous root. So a cut costs the operations since then, and
//! never half of one.

use super::write::Bytes;
use super::{Paths, Space};
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::log::Label;

impl<F: Flash> Space<'_, F, Paths> {
    /// Stages the page in `frame` in the write cache.
    pub(crate) fn stage(
        &mut self,
        frame: usize,
        label: Label,
    ) -> Result<PageNumber, Fault<F::Error>> {
        let Label { lowest, height, records } = label;
        loop {
            if self.cache.staging().spilled() {
                let layout = self.log.layout();
                let (bytes, cache) = (self.log.frames.bytes_mut(frame), self.cache.staging());
                let to = |page| cache.resolve(page);
                cache.relink()(bytes, &layout, &self.log.medium, lowest, height, &to);
            }
            let header = self.log.header_of(label, 0, 0);
            self.log.layout().write_header(
                self.log.frames.bytes_mut(frame),
                &self.log.medium,
                &header,
            );
            let bytes = self.log.frames.bytes(frame);
            match self.cache.staging_mut().stage(bytes, lowest, height, records) {
                Some(page) => return Ok(PageNumber(page)),
                None => self.write_staged()?,
            }
        }
    }

    /// Programs every staged page that the running operation has not superseded.
    ///
    /// The slots of the others are freed.
    fn write_staged(&mut self) -> Result<(), Fault<F::Error>> {
        // A page with the previous root leads to pages that will never be on the chip.
        if self.cache.staging_mut().drop_superseded() {
            self.cache.staging_mut().forget_root();
        }
        let relink = self.cache.staging().relink();
        while let Some(pending) = self.cache.staging().next_pending() {
            let layout = self.log.layout();
            let (bytes, names) = self.cache.staging_mut().bytes_and_names(pending.slot);
            let (lowest, height) = (pending.lowest, pending.height);
            let to = |page| names.resolve(page);
            relink(bytes, &layout, &self.log.medium, lowest, height, &to);
            let label = Label { lowest, height, records: pending.records };
            let page = self.write(Bytes::Slot(pending.slot), label)?;
            self.cache.staging_mut().programmed(&pending, page);
        }
        Ok(())
    }

    /// Writes out all staged pages. Returns the new page of the root `root`.
    pub(crate) fn unstage(&mut self, root: u32) -> Result<u32, Fault<F::Error>> {
        self.write_staged()?;
        // The newest root is the last of the staged pages.
        #[cfg(debug_assertions)]
        self.operation.check_root();
        let root = self.cache.staging().resolve(root);
        let mut from = 0;
        while let Some(page) = self.cache.staging_mut().take_superseded(from) {
            from = page.0;
            self.log.supersede(page);
        }
        self.log.blocks.release();
        self.cache.staging_mut().end_operation();
        self.log.frames.forget_all();
        Ok(root)
    }

    /// Ends an operation.
    ///
    /// If it had to program staged pages before its end, all of its pages are written out.
    pub(crate) fn end_staging(&mut self, root: u32) -> Result<u32, Fault<F::Error>> {
        if self.cache.staging().spilled() {
            self.cache.staging_mut().drop_superseded();
            return self.unstage(root);
        }
        self.cache.staging_mut().end_operation();
        Ok(root)
    }
}
