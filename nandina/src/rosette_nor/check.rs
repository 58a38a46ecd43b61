//! Checks every invariant of an index on the chip. Nothing is repaired.

use super::directory::Leaf;
use super::fingerprints;
use super::form::{GROUP, GROUP_BYTES};
use super::head;
use super::leaves::SectorLeaves;
use super::pool::Use;
use crate::engine::{KEY_BYTES_MAX, Violation};
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::node::slot::{self, State, TAG_BYTES};

impl<F: Flash> SectorLeaves<'_, F> {
    /// Reads all leaves and reports each invariant that does not hold.
    ///
    /// Cost: that of a lookup in each leaf that was not touched yet, then all bytes of all leaves.
    pub(super) fn check(
        &mut self,
        report: &mut dyn FnMut(Violation),
    ) -> Result<(), Fault<F::Error>> {
        self.mount_if_in_doubt()?;
        let mut records = 0;
        for rank in 0..self.directory.len() {
            let rank = self.touch_to_read(rank)?;
            let leaf = self.directory.leaf(rank);
            let page = self.cells.page(leaf.sector, 0);
            self.check_head(rank, &leaf, page, report)?;
            self.check_log(&leaf, page, report)?;
            let span = self.span(rank)?;
            let (mut at, mut count) = (span.begin, 0);
            let mut before = [0; KEY_BYTES_MAX];
            let before = &mut before[..self.form.key_bytes];
            while let Some(item) = self.next_item(&span, &mut at, &mut None)? {
                self.read_item(&span, item, None)?;
                let key = &self.record[..before.len()];
                let is_inside = key >= self.directory.low(rank)
                    && self.directory.high(rank).is_none_or(|high| key < high);
                if !is_inside || count > 0 && *key <= *before {
                    report(Violation { page, what: "keys of a leaf are out of order" });
                }
                before.copy_from_slice(key);
                count += 1;
            }
            if count != leaf.live {
                report(Violation { page, what: "the number of records of a leaf is wrong" });
            }
            records += u32::from(count);
        }
        if records != self.state.records() {
            report(Violation { page: PageNumber(0), what: "the number of records is wrong" });
        }
        Ok(())
    }

    /// Checks head, fences and sorted records of a leaf.
    fn check_head(
        &mut self,
        rank: usize,
        leaf: &Leaf,
        page: PageNumber,
        report: &mut dyn FnMut(Violation),
    ) -> Result<(), Fault<F::Error>> {
        let mut violated = |what| report(Violation { page, what });
        if self.pool.state(leaf.sector) != Use::Live {
            violated("it owns keys but its sector is not live");
        }
        let Some(head) = self.read_leaf(leaf.sector)? else {
            violated("it owns keys but is no leaf");
            return Ok(());
        };
        if head.identity != self.state.identity() || head.sorted != leaf.sorted {
            violated("it is not the leaf that was found");
        }
        let (low, high) = head::fences(&self.form, self.page);
        let ends = match (high, self.directory.high(rank)) {
            (None, _) => true,
            (Some(fence), Some(high)) => high <= fence,
            (Some(_), None) => false,
        };
        if low > self.directory.low(rank) || !ends {
            violated("it owns keys outside of its fences");
        }
        if self.directory.high(rank).is_some_and(|high| high <= self.directory.low(rank)) {
            violated("separators are out of order");
        }
        let sum = self.cells.committed(leaf.sector, self.form.marks_at())?.unwrap_or(0);
        if !self.sorted_is_whole(leaf.sector, leaf.sorted.into(), sum)? {
            violated("its sorted records are damaged");
        }
        Ok(())
    }

    /// Checks that each slot counts or was killed, and that fingerprints lead to it.
    fn check_log(
        &mut self,
        leaf: &Leaf,
        page: PageNumber,
        report: &mut dyn FnMut(Violation),
    ) -> Result<(), Fault<F::Error>> {
        let log = self.log_of(leaf);
        let used = usize::from(leaf.used);
        let mut group = [0; GROUP_BYTES];
        for number in 0..log.slots {
            if number.is_multiple_of(GROUP) && number / GROUP < log.slots / GROUP {
                self.cells.read(leaf.sector, log.group(number / GROUP), &mut group)?;
            }
            match self.read_slot(leaf.sector, &log, number)? {
                State::Blank if number >= used => continue,
                // Where no sector takes it, it is not settled, and what is torn reads as anything.
                State::Blank | State::Torn | State::Killed if leaf.is_untouched => continue,
                State::Whole(_) if leaf.is_untouched && number >= used => continue,
                State::Whole(_) | State::Killed if number < used => {}
                _ => report(Violation { page, what: "a slot of a log is damaged" }),
            }
            let is_in = number < used / GROUP * GROUP && fingerprints::group_is_whole(&group);
            let key = &self.slot[TAG_BYTES..TAG_BYTES + self.form.key_bytes];
            let is_killed = slot::is_killed(slot::tag(self.slot));
            if is_in && !is_killed && group[number % GROUP] != fingerprints::fingerprint(key) {
                report(Violation { page, what: "a fingerprint leads past its slot" });
            }
        }
        Ok(())
    }
}
