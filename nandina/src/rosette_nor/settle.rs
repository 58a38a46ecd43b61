//! What may be torn is settled before anything is acknowledged.
//!
//! After a cut, two things can read differently each time. One is the leaf that was being written,
//! which is the newest one or lies behind it; a mount settles that. The other is the last slot of
//! the log that was written last. Which log that was is not known, so each leaf is settled when it
//! is touched for the first time after such a mount, by a lookup as by a change.

use super::directory::Leaf;
use super::fingerprints;
use super::form::{GROUP, GROUP_BYTES};
use super::leaves::SectorLeaves;
use super::order::LOOKS_MAX;
use crate::engine::KEY_BYTES_MAX;
use crate::error::Fault;
use crate::flash::Flash;
use crate::node::slot::{self, Kind, State, TAG_BYTES};

/// What was found at the end of a log.
struct Found {
    /// What the last slot that counts does.
    counted: Option<Kind>,
    /// That slot; 0 if there is none.
    last: usize,
    /// The first slot behind all that do not look blank.
    end: usize,
    /// What a mount saw is not seen any longer.
    is_lost: bool,
}

impl<F: Flash> SectorLeaves<'_, F> {
    /// Settles the leaf at `rank` if it was not touched since the mount.
    ///
    /// A chip that rejects what is written leaves it as it is: it can be read.
    ///
    /// Cost: four programs, and one for each slot that earlier settlings killed since the last
    /// change of the leaf; if its log is full, the leaf is written again.
    pub(super) fn touch(&mut self, rank: usize) -> Result<(), Fault<F::Error>> {
        if self.directory.leaf(rank).is_untouched { self.settle_leaf(rank) } else { Ok(()) }
    }

    #[inline(never)]
    fn settle_leaf(&mut self, rank: usize) -> Result<(), Fault<F::Error>> {
        // An operation that has begun before is still in doubt.
        let was_in_doubt = self.state.is_in_doubt();
        self.state.doubt();
        while !self.settle(rank)? {}
        if !was_in_doubt {
            self.state.trust();
        }
        Ok(())
    }

    /// The last slot that counts is copied, and two blank ones before that are killed.
    ///
    /// Slots behind it that do not count are killed, too, and at last the slot that was copied. So
    /// it does not matter what any of them reads as later. It is two blank ones because settling
    /// may have been cut itself, between them.
    ///
    /// Returns whether that is done. It is not if the last slot, which may be torn, was seen once
    /// and then no more: it does not count, and there is one slot less to settle.
    fn settle(&mut self, rank: usize) -> Result<bool, Fault<F::Error>> {
        let found = self.find_last(rank)?;
        let leaf = self.directory.leaf(rank);
        if found.counted.is_some() && found.end + 2 >= self.log_of(&leaf).slots {
            // No slot is left for the copy.
            self.directory.set(rank, Leaf { used: found.last as u8 + 1, ..leaf });
            self.write_elsewhere(rank)?;
            self.state.set_records(self.directory.records());
            return Ok(true);
        }
        self.copy_last(rank, &found)
    }

    /// Finds the last slot that counts, and kills those behind it.
    #[inline(never)]
    fn find_last(&mut self, rank: usize) -> Result<Found, Fault<F::Error>> {
        let leaf = self.directory.leaf(rank);
        let used = usize::from(leaf.used);
        let (mut counted, mut last) = (None, used);
        // What the mount saw may not be seen any longer.
        let mut is_lost = false;
        while counted.is_none() && last > 0 {
            last -= 1;
            counted = self.seen(&leaf, last)?;
            is_lost |= counted.is_none();
        }
        let end = self.end_of_log(&leaf, used)?;
        for number in if counted.is_some() { last + 1 } else { 0 }..end {
            self.kill(&leaf, number)?;
        }
        self.order.forget();
        Ok(Found { counted, last, end, is_lost })
    }

    /// Copies the last slot that counts, behind two that are killed, and kills it then.
    ///
    /// Returns whether that is done.
    #[inline(never)]
    fn copy_last(&mut self, rank: usize, found: &Found) -> Result<bool, Fault<F::Error>> {
        let leaf = self.directory.leaf(rank);
        let log = self.log_of(&leaf);
        let Found { mut counted, last, end, is_lost } = *found;
        let mut used = end;
        if counted.is_some() && last % GROUP == GROUP - 1 {
            // Fingerprints are programmed when the last slot of their group is there.
            let group = log.group(last / GROUP);
            let mut bytes = [0; GROUP_BYTES];
            self.cells.read(leaf.sector, group, &mut bytes)?;
            if fingerprints::group_is_whole(&bytes) {
                self.cells.let_fall(leaf.sector, group, &bytes)?;
                if counted.is_some_and(|kind| kind.copies) {
                    self.kill_copied(&leaf, last, last)?;
                }
                counted = None;
            } else {
                // They may be torn: never to be seen again. More than one bit could be torn itself,
                // and leave fingerprints that look whole.
                bytes
                    .iter_mut()
                    .zip(fingerprints::group_killed())
                    .for_each(|(byte, bits)| *byte &= bits);
                self.cells.let_fall(leaf.sector, group, &bytes)?;
            }
        }
        for _ in 0..2 {
            if used < log.slots {
                self.kill(&leaf, used)?;
                used += 1;
            }
        }
        let mut leaf = Leaf { used: used as u8, ..leaf };
        if is_lost {
            let seen = if counted.is_some() { last as u8 + 1 } else { 0 };
            self.directory.set(rank, Leaf { used: seen, ..leaf });
            let span = self.span(rank)?;
            leaf = Leaf { live: self.count(&span)?, ..leaf };
            self.order.forget();
        }
        leaf = Leaf { is_untouched: false, ..leaf };
        self.directory.set(rank, leaf);
        self.state.set_records(self.directory.records());
        if counted.is_none() {
            return Ok(true);
        }
        let Some(kind) = self.seen(&leaf, last)? else {
            // It was not acknowledged, since it is torn.
            self.kill(&leaf, last)?;
            self.directory.set(rank, Leaf { is_untouched: true, used: last as u8 + 1, ..leaf });
            return Ok(false);
        };
        let kind = kind.as_copy();
        slot::seal(self.slot, kind);
        self.append(rank, kind)?;
        self.kill_copied(&leaf, used, end)?;
        Ok(true)
    }

    /// Kills the slots before `end` that are copied in the slot `copy`, which is whole.
    ///
    /// There may be several if settling was cut. What was killed already is killed once more: that
    /// kill may be torn.
    fn kill_copied(&mut self, leaf: &Leaf, copy: usize, end: usize) -> Result<(), Fault<F::Error>> {
        let log = self.log_of(leaf);
        for number in (0..end).rev() {
            let tag = self.read_tag(leaf.sector, &log, number)?;
            if !slot::is_killed(tag) && !self.is_copied(leaf, number, copy)? {
                break;
            }
            self.kill(leaf, number)?;
        }
        Ok(())
    }

    /// Whether a slot is the one that is copied in the slot `copy`.
    ///
    /// It is if it is torn. Another one with the same key and of the same kind may be it, too: the
    /// copy is newer.
    pub(super) fn is_copied(
        &mut self,
        leaf: &Leaf,
        number: usize,
        copy: usize,
    ) -> Result<bool, Fault<F::Error>> {
        let (log, key_bytes) = (self.log_of(leaf), self.form.key_bytes);
        let State::Whole(kind) = self.read_slot(leaf.sector, &log, number)? else {
            return Ok(true);
        };
        let mut key = [0; KEY_BYTES_MAX];
        let key = &mut key[..key_bytes];
        key.copy_from_slice(&self.slot[TAG_BYTES..TAG_BYTES + key_bytes]);
        let copied = self.seen(leaf, copy)?;
        Ok(copied == Some(kind.as_copy()) && self.slot[TAG_BYTES..TAG_BYTES + key_bytes] == *key)
    }

    /// What a slot does, if it is whole; it is in the buffer for slots then.
    ///
    /// It is looked at several times: one that is torn reads differently each time.
    pub(super) fn seen(
        &mut self,
        leaf: &Leaf,
        number: usize,
    ) -> Result<Option<Kind>, Fault<F::Error>> {
        let log = self.log_of(leaf);
        for _ in 0..LOOKS_MAX {
            match self.read_slot(leaf.sector, &log, number)? {
                State::Whole(kind) => return Ok(Some(kind)),
                State::Killed => break,
                State::Blank | State::Torn => {}
            }
        }
        Ok(None)
    }

    /// Kills a slot by one bit.
    fn kill(&mut self, leaf: &Leaf, number: usize) -> Result<(), Fault<F::Error>> {
        let log = self.log_of(leaf);
        let tag = slot::killed(self.read_tag(leaf.sector, &log, number)?);
        self.cells.let_fall(leaf.sector, log.slot(number), &tag.to_le_bytes())
    }
}
