//! Formatting a chip, which may hold an index or anything else.
//!
//! An existing index stays whole until the commit of the first leaf of the new one, which has a new
//! identity and a higher number than any leaf. Its sector is the next one in turn, which the older
//! index does not need. All other sectors are erased when their turn comes.

use super::cells::Sector;
use super::directory::Leaf;
use super::form::ENDS_BYTES;
use super::head;
use super::leaves::SectorLeaves;
use super::pool::Use;
use super::write::Writing;
use crate::engine::KEY_BYTES_MAX;
use crate::error::{Fault, OpenError};
use crate::flash::{Flash, PageNumber};
use crate::log::check_medium;
use crate::log::checkpoint::ANCHORS;
use crate::node::{Medium, PageFault};

/// A page that holds no head of a leaf, but may hold the root of another system.
const SECOND_PAGE: PageNumber = PageNumber(1);

/// The lowest key, with which the first range begins.
const LOWEST: &[u8] = &[0; KEY_BYTES_MAX];

/// Numbers between those of an index of other settings and the new one.
const FOREIGN_GAP: u64 = 1 << 20;

impl<F: Flash> SectorLeaves<'_, F> {
    /// Makes an empty index, in place of an older one.
    ///
    /// Cost: that of a mount, an erase and four programs. Over an index of other settings, or none,
    /// a read for each sector in place of a mount.
    pub(super) fn format(&mut self) -> Result<(), OpenError<F::Error>> {
        match self.find() {
            Ok(()) => {
                if let Err(fault) = self.begin_change() {
                    let failed = self.cells.take_failed().filter(|_| fault.rejects_writes());
                    self.evacuate_all(failed.ok_or(fault)?)?;
                }
            }
            Err(OpenError::Device(error)) => return Err(OpenError::Device(error)),
            Err(_) => self.survey()?,
        }
        self.state.doubt();
        let identity = self.state.identity().wrapping_add(1);
        self.state.set_identity(identity);
        self.directory.clear();
        if !self.directory.insert(0, &LOWEST[..self.form.key_bytes], Leaf::new(0, 0)) {
            return Err(OpenError::ChipTooSmall { limit_pages: 0 });
        }
        let sector = self.write_first()?;
        // Nothing of an older index is needed any longer.
        for other in 0..self.sectors as Sector {
            if other != sector && self.pool.state(other) == Use::Live {
                self.pool.set(other, Use::Free);
            }
        }
        self.directory.set(0, Leaf::new(sector, 0));
        self.order.forget();
        self.state.note_unsettled(false);
        self.state.begin(sector, identity, (0, false));
        self.state.set_records(0);
        self.state.trust();
        Ok(())
    }

    /// Writes the first leaf, in a sector that the chip can program; returns that one.
    #[inline(never)]
    fn write_first(&mut self) -> Result<Sector, Fault<F::Error>> {
        loop {
            let mut writing = Writing::NONE;
            self.begin_leaf(&mut writing, 0, 0)?;
            let sector = writing.sector();
            match self.commit(&mut writing, None) {
                Ok(()) => return Ok(sector),
                Err(fault) if fault.rejects_writes() => self.give_up(sector)?,
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Looks at a chip whose index, if it has one, cannot be opened.
    ///
    /// If anchors lead to checkpoints of that index, they are erased: its mount would not look at
    /// other blocks.
    #[inline(never)]
    fn survey(&mut self) -> Result<(), Fault<F::Error>> {
        let _ = self.cells.take_failed();
        self.directory.clear();
        self.pool.clear();
        let (mut highest, mut identity, mut newest) = (0, 0, None);
        let mut has_anchors = false;
        for sector in 0..self.sectors as Sector {
            if self.cells.is_bad(sector)? {
                self.pool.set(sector, Use::Bad);
            }
            let header = self.cells.foreign_header(self.cells.page(sector, 0))?;
            if header.as_ref().is_ok_and(|header| header.sequence >= head::SEQUENCE_END / 2)
                && self.pool.state(sector) != Use::Bad
            {
                // No chip lives to see this number, and leaves need higher ones.
                self.erase(sector)?;
                continue;
            }
            if let Ok(header) = header
                && newest.is_none_or(|newest| newest <= header.sequence)
            {
                newest = Some(header.sequence);
                (highest, identity) = (header.sequence + FOREIGN_GAP, header.identity);
                self.pool.set_turn(sector);
                let medium = self.cells.foreign_medium();
                has_anchors = medium.checkpoints && !medium.replaced;
            }
        }
        if self.cells.flash().capabilities().rewrite {
            // A system that replaces pages has its root in the first one: a leaf goes there.
            self.pool.set_turn((self.sectors - 1) as Sector);
        }
        if has_anchors && cfg!(feature = "other-systems") {
            for anchor in ANCHORS {
                if self.pool.state(anchor.0 as Sector) == Use::Free {
                    self.erase(anchor.0 as Sector)?;
                }
            }
        }
        self.state.note_sequence(highest);
        self.state.set_identity(identity);
        Ok(())
    }

    /// Opens the index on the chip.
    ///
    /// Nothing is written where the newest index is another one.
    #[inline(never)]
    pub(super) fn find(&mut self) -> Result<(), OpenError<F::Error>> {
        let damage = match self.look_at_all() {
            Ok(()) => None,
            Err(Fault::Corrupt { page, reason }) => Some(OpenError::Corrupt { page, reason }),
            Err(fault) => return Err(fault.into()),
        };
        if damage.is_some() || self.state.has_foreign() || self.has_other_root()? {
            if let Some(other) = self.identify()?.or(damage) {
                return Err(other);
            }
            self.erase_cut_format()?;
        }
        self.settle_all()?;
        Ok(())
    }

    /// Why a chip without a leaf of this index cannot be opened; `None` if it has one.
    #[inline(never)]
    fn identify(&mut self) -> Result<Option<OpenError<F::Error>>, Fault<F::Error>> {
        let (mut is_blank, mut version, mut newest) = (true, None, None);
        let mut found = None;
        let heads = self.sectors as u32 + u32::from(self.has_other_root()?);
        for number in 0..heads {
            // Behind the first pages of all sectors the second page of the first one.
            let (sector, page) = match number as usize == self.sectors {
                true => (0, SECOND_PAGE),
                false => (number as Sector, self.cells.page(number as Sector, 0)),
            };
            match self.cells.foreign_header(page)? {
                Ok(header) => {
                    is_blank = false;
                    let medium = self.cells.foreign_medium();
                    if self.is_of_cut_format(sector, &medium)? {
                        continue;
                    }
                    if newest.is_none_or(|newest| newest < header.sequence) {
                        newest = Some(header.sequence);
                        found = Some(medium);
                    }
                }
                Err(PageFault::Erased) => {}
                Err(PageFault::Version(other)) => (is_blank, version) = (false, Some(other)),
                Err(_) => is_blank = false,
            }
        }
        let Some(found) = found else {
            return Ok(Some(match version {
                Some(found) => OpenError::Version { found },
                None if is_blank => OpenError::Blank,
                None => OpenError::NotNandina,
            }));
        };
        Ok(check_medium(&found, &self.medium).err())
    }

    /// Whether the second page of the chip may hold the root of another system.
    ///
    /// A system that replaces pages has its root in one of the first two. Cost: a read on a chip
    /// that can do that.
    fn has_other_root(&mut self) -> Result<bool, Fault<F::Error>> {
        let can_be = self.cells.flash().capabilities().rewrite;
        Ok(can_be && self.cells.foreign_header(SECOND_PAGE)?.is_ok())
    }

    /// Whether a leaf of this medium is of a format to other settings that was cut.
    ///
    /// Its mark that it was acknowledged is not whole.
    fn is_of_cut_format(
        &mut self,
        sector: Sector,
        medium: &Medium,
    ) -> Result<bool, Fault<F::Error>> {
        if medium.system != self.medium.system || *medium == self.medium {
            return Ok(false);
        }
        match self.cells.committed(sector, self.form.acknowledged_at()) {
            Ok(mark) => Ok(mark.is_none()),
            Err(Fault::Corrupt { .. }) => Ok(true),
            Err(fault) => Err(fault),
        }
    }

    /// Erases what a format to other settings has left that was cut.
    ///
    /// A later mount could take it for whole.
    #[inline(never)]
    fn erase_cut_format(&mut self) -> Result<(), Fault<F::Error>> {
        for sector in 0..self.sectors as Sector {
            let first = self.cells.page(sector, 0);
            if self.pool.state(sector) == Use::Free && self.cells.foreign_header(first)?.is_ok() {
                let medium = self.cells.foreign_medium();
                if self.is_of_cut_format(sector, &medium)? {
                    self.erase(sector)?;
                }
            }
        }
        Ok(())
    }

    /// Ends the session: the next mount need not settle anything.
    ///
    /// Not if a leaf was not settled yet since a cut. Cost: one program.
    pub(super) fn end_session(&mut self) -> Result<(), Fault<F::Error>> {
        let is_settled = !self.state.is_in_doubt() && !self.state.is_unsettled();
        let is_open = is_settled && !self.state.is_ended();
        if is_open
            && !self.directory.has_untouched()
            && let Some(bytes) = head::end(self.state.session())
        {
            self.state.doubt();
            self.mark_session(bytes)?;
            self.state.note_end();
            self.state.trust();
        }
        Ok(())
    }

    /// Begins a session: the last one no longer counts as ended.
    ///
    /// Cost: one program.
    pub(super) fn begin_session(&mut self) -> Result<(), Fault<F::Error>> {
        if let Some(bytes) = head::begin_next(self.state.session()) {
            self.mark_session(bytes)?;
            self.state.note_session();
        }
        Ok(())
    }

    /// Lets bits fall in the marks of sessions, beside those that have fallen.
    fn mark_session(&mut self, bytes: [u8; ENDS_BYTES]) -> Result<(), Fault<F::Error>> {
        let (newest, at) = (self.state.newest(), self.form.ends_at());
        let mut marks = [0; ENDS_BYTES];
        self.cells.read(newest, at, &mut marks)?;
        marks.iter_mut().zip(bytes).for_each(|(mark, bits)| *mark &= bits);
        self.cells.let_fall(newest, at, &marks)
    }
}
