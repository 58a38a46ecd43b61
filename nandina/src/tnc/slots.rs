//! Changes that are programmed one by one, in slots of a page of the journal.
//!
//! This is done where the chip can program any part of a page at any time, and changes do not wait.
//! The page is programmed with its header and the first slot, which lies next to the header. Each
//! next change is one small program of the slot before that one. It is sealed by itself: no slot of
//! which some bits have not fallen is whole (`node/slot.rs`), so the changes of a page end at the
//! first slot that is not whole.
//!
//! A slot is programmed only while its page is the newest on the chip. So a slot that is torn is in
//! the last page of its block, and a mount decides about it as about a page that is torn: it counts
//! if [`LOOKS`] reads find it whole, and a commit with a higher number outdates it before anything
//! is returned. If that mount is cut, the next one decides anew. After a mount nothing is
//! programmed into an older page.
//!
//! ```text
//! | blank | ... | tag: u16, key, value | tag: u16, key, value | header |
//! ```

use super::TncIndex;
use super::apply::Key;
use super::changes::{has_slots, whole_slots};
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::log::{Image, LOOKS};
use crate::node::ONE_BY_ONE;
use crate::node::slot::{self, Kind, TAG_BYTES};

impl<F: Flash> TncIndex<'_, F> {
    /// Programs a change into the next slot, or into the first one of a new page.
    ///
    /// Returns a pointer to it. Cost: one program; an erase where a block is opened. If the program
    /// of a slot fails, its block is given up, and the change is written once more.
    pub(super) fn write_slot(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        records: u32,
    ) -> Result<u32, Fault<F::Error>> {
        let (frame, form) = (self.building(), self.arena.form);
        let kind = Kind { puts: value.is_some(), counts: false, copies: false };
        let next = self.journal.next_slot(self.space.log.sequence());
        if let Some((page, at)) = next
            && !self.space.log.blocks.is_bad(self.space.log.geometry().block_of(page))
        {
            covered!("a change of tnc is programmed into a slot");
            // No copy of the page may be read that lacks the change.
            self.space.forget_copies(page);
            let image = &mut self.space.area_mut(frame)[..form.change_bytes()];
            slot::write(image, key, value, kind);
            let before = self.state.doubt();
            let image = Image::Frame(frame, form.change_bytes());
            let start = form.change_at(at.into()).start;
            let is_written = self.space.log.overwrite(page, start, image)?;
            self.state.end_doubt(before);
            if is_written {
                self.journal.note_slot();
                return Ok(form.pointer(page.0, at.into()));
            }
            covered!("a slot of tnc fails, and its change has another page");
            self.space.log.close_block();
        }
        let area = self.space.area_mut(frame);
        area.fill(0xFF);
        slot::write(&mut area[form.change_at(0)], key, value, kind);
        let page = self.program_journal(frame, ONE_BY_ONE, records)?;
        self.journal.begin(page, self.space.log.sequence());
        Ok(form.pointer(page.0, 0))
    }

    /// How many slots of the page in `frame` are whole, from the first one on.
    pub(super) fn whole_slots(&self, frame: usize) -> usize {
        let area = &self.space.log.frames.bytes(frame)[..self.space.area_bytes()];
        whole_slots(area, self.arena.form.sizes())
    }

    /// Whether the page in `frame` has anything behind that many slots.
    pub(super) fn has_more_than(&self, slots: usize, frame: usize) -> bool {
        let end = self.space.area_bytes() - slots * self.arena.form.change_bytes();
        !slot::looks_blank(&self.space.log.frames.bytes(frame)[..end])
    }

    /// How many of the `slots` in `page` are whole in every read.
    ///
    /// `None` if the page itself may be torn. Cost: [`LOOKS`] reads.
    pub(super) fn steady_slots(
        &mut self,
        page: PageNumber,
        sequence: u64,
        slots: usize,
    ) -> Result<Option<usize>, Fault<F::Error>> {
        let mut least = slots;
        for _ in 0..LOOKS {
            match self.space.log.read_raw(page, 0)? {
                Ok(header) if header.sequence == sequence && has_slots(&header) => {
                    least = least.min(self.whole_slots(0));
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(least))
    }

    /// Whether a slot of the page in `frame` puts a record, and where its key begins.
    pub(super) fn slot_at(&self, at: usize, frame: usize) -> (bool, usize) {
        let start = self.arena.form.change_at(at).start;
        let kind = Kind::of(slot::tag(&self.space.log.frames.bytes(frame)[start..]));
        (kind.puts, start + TAG_BYTES)
    }

    /// Whether the change in `frame`, whose key begins at `start`, was made already.
    ///
    /// Then the program of a slot failed and was repeated in another page, and both slots are
    /// whole. Without that no change leaves everything as it was. A leaf that points to the earlier
    /// slot points to `pointer` now.
    pub(super) fn is_made(
        &mut self,
        key: &Key,
        puts: bool,
        (frame, start): (usize, usize),
        pointer: u32,
    ) -> Result<bool, Fault<F::Error>> {
        let form = self.arena.form;
        let leaf = self.descend(key.bytes(form.key_bytes))?;
        let Ok(index) = self.arena.node(leaf).search(key.bytes(form.key_bytes)) else {
            return Ok(!puts);
        };
        if !puts {
            return Ok(false);
        }
        let at = match self.find_value(leaf, index) {
            Err(Fault::Corrupt { .. }) => return Ok(false),
            found => found?,
        };
        let value = &self.space.log.frames.bytes(frame)[start + form.key_bytes..];
        let is_made = self.value(leaf, index, at) == &value[..form.value_bytes];
        if is_made && form.apart() {
            self.point(leaf, index, pointer);
        }
        Ok(is_made)
    }
}
