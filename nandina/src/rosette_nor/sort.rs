//! How the log of a leaf is sorted in RAM, and searched.
//!
//! Its slots are read from the oldest to the newest one, so that of each key the newest one stays.

use core::cmp::Ordering;

use super::directory::Leaf;
use super::form::Log;
use super::leaves::SectorLeaves;
use super::order::LOOKS_MAX;
use crate::error::Fault;
use crate::flash::Flash;
use crate::node::slot::{self, Kind, State, TAG_BYTES};

impl<F: Flash> SectorLeaves<'_, F> {
    /// Sorts the keys of a leaf's log, unless they are those that are there.
    ///
    /// Cost: a read for each slot that was used, and those of equal beginnings.
    pub(super) fn sort(&mut self, leaf: &Leaf) -> Result<(), Fault<F::Error>> {
        if self.order.is_of(leaf.sector, leaf.used) { Ok(()) } else { self.build(leaf) }
    }

    #[inline(never)]
    fn build(&mut self, leaf: &Leaf) -> Result<(), Fault<F::Error>> {
        let log = self.log_of(leaf);
        self.order.clear();
        for number in 0..leaf.used {
            let Some(kind) = self.read_logged(leaf, &log, number)? else { continue };
            let (to, is_there) = self.search_log(leaf, &log, None)?;
            let key = &self.slot[TAG_BYTES..TAG_BYTES + self.form.key_bytes];
            self.order.put(to, is_there, key, number, kind.puts);
        }
        self.order.note(leaf.sector, leaf.used);
        Ok(())
    }

    /// Reads the tag and the key of a slot at least; `None` if it does not count.
    #[inline(never)]
    fn read_logged(
        &mut self,
        leaf: &Leaf,
        log: &Log,
        number: u8,
    ) -> Result<Option<Kind>, Fault<F::Error>> {
        // Only the last slot may be torn, and read differently each time.
        let is_last = number + 1 == leaf.used;
        if !is_last && !leaf.is_untouched {
            let bytes = TAG_BYTES + self.form.key_bytes;
            self.cells.read(leaf.sector, log.slot(number.into()), &mut self.slot[..bytes])?;
            let tag = slot::tag(self.slot);
            return Ok((!slot::is_killed(tag)).then_some(Kind::of(tag)));
        }
        let mut looks = 1;
        loop {
            match self.read_slot(leaf.sector, log, number.into())? {
                State::Whole(kind) => return Ok(Some(kind)),
                State::Torn | State::Blank if is_last && looks < LOOKS_MAX => looks += 1,
                _ => return Ok(None),
            }
        }
    }

    /// The position of the first key of the sorted log that is not before `key`.
    ///
    /// Also whether it is the same. Without `key` it is that in the buffer for slots.
    #[inline(never)]
    pub(super) fn search_log(
        &mut self,
        leaf: &Leaf,
        log: &Log,
        key: Option<&[u8]>,
    ) -> Result<(usize, bool), Fault<F::Error>> {
        let key = key.unwrap_or(&self.slot[TAG_BYTES..TAG_BYTES + self.form.key_bytes]);
        let (mut low, mut high) = (0, self.order.len());
        while low < high {
            let middle = low.midpoint(high);
            let found = match self.order.compare_beginning(&self.form, middle, key) {
                Some(found) => found,
                None => {
                    let at = log.slot(self.order.slot(middle).0) + TAG_BYTES;
                    self.cells.compare(leaf.sector, at, key)?
                }
            };
            match found {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok((middle, true)),
                Ordering::Greater => high = middle,
            }
        }
        Ok((low, false))
    }

    /// Compares the key at a position of the sorted log with `key`.
    ///
    /// Without one it is compared with that in the buffer for records.
    #[inline(never)]
    pub(super) fn compare_in_log(
        &mut self,
        leaf: &Leaf,
        position: u8,
        key: Option<&[u8]>,
    ) -> Result<Ordering, Fault<F::Error>> {
        let (key, position) = (key.unwrap_or(&self.record[..self.form.key_bytes]), position.into());
        if let Some(found) = self.order.compare_beginning(&self.form, position, key) {
            return Ok(found);
        }
        let at = self.log_of(leaf).slot(self.order.slot(position).0) + TAG_BYTES;
        self.cells.compare(leaf.sector, at, key)
    }
}
