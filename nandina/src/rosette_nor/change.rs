//! Changes of records: a slot of a log, or a leaf that is written again with it.

use super::cells::Sector;
use super::directory::Leaf;
use super::fingerprints;
use super::form::{GROUP, GROUP_BYTES, Log};
use super::leaves::{SectorLeaves, lacks_room};
use super::merge::Pending;
use crate::engine::{Inserted, Removed};
use crate::error::{Damage, Fault};
use crate::flash::Flash;
use crate::node::slot::{self, Kind, RECORD_MAX, TAG_BYTES};

/// Slots left in a log from which on a sector is erased ahead of need.
const SLOTS_LEFT: usize = 4;

/// Sectors that are to be ready before a leaf is written again: it may be divided.
const READY_MIN: usize = 2;

/// How often a change is tried on other sectors, if the chip rejects it.
pub const TRIES: u32 = 8;

/// Records of up to this many bytes take less of the stack.
///
/// The last one of a leaf is there while that is settled by writing it again.
const RECORD_SMALL: usize = 64;

/// What a change does to its leaf.
struct Step {
    rank: usize,
    /// The records of the leaf afterwards.
    live: usize,
    kind: Kind,
    /// Slots that its log has left for it; 0 if the leaf is written again.
    slots: usize,
    /// The log has no slot left.
    is_full: bool,
    /// First two other leaves have to be joined.
    lacks_leaf: bool,
}

impl<F: Flash> SectorLeaves<'_, F> {
    /// Inserts a record or replaces a value.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, Fault<F::Error>> {
        let was_there = self.tried(&Pending { key, value: Some(value) })?;
        Ok(if was_there { Inserted::Replaced } else { Inserted::New })
    }

    /// Removes a record.
    pub(super) fn take(&mut self, key: &[u8]) -> Result<Removed, Fault<F::Error>> {
        let was_there = self.tried(&Pending { key, value: None })?;
        Ok(if was_there { Removed::Found } else { Removed::Absent })
    }

    /// Makes a change, on other sectors if the chip rejects some.
    ///
    /// Returns whether its key had a record. If that fails, too, the first fault is reported: the
    /// change may have been made.
    fn tried(&mut self, change: &Pending<'_>) -> Result<bool, Fault<F::Error>> {
        let mut was_there = None;
        if let Err(fault) = self.mount_to_change() {
            return self.worse(None, fault);
        }
        match self.change(change, &mut was_there) {
            Err(fault) => self.tried_again(change, was_there, fault),
            done => done,
        }
    }

    /// Makes a change whose first attempt failed.
    #[inline(never)]
    fn tried_again(
        &mut self,
        change: &Pending<'_>,
        mut was_there: Option<bool>,
        mut fault: Fault<F::Error>,
    ) -> Result<bool, Fault<F::Error>> {
        let mut first = None;
        for attempt in 1..=TRIES {
            if self.mend(fault, &mut first, change, was_there)? {
                return Ok(was_there.unwrap_or_default());
            }
            if attempt == TRIES {
                break;
            }
            if let Err(fault) = self.mount_to_change() {
                return self.worse(first, fault);
            }
            match self.change(change, &mut was_there) {
                Err(again) => fault = again,
                done => return done,
            }
        }
        let last = first.unwrap_or_else(|| self.no_room());
        self.worse(None, last)
    }

    /// Prepares another attempt at a change, or finds that it was made.
    #[inline(never)]
    fn mend(
        &mut self,
        fault: Fault<F::Error>,
        first: &mut Option<Fault<F::Error>>,
        change: &Pending<'_>,
        was_there: Option<bool>,
    ) -> Result<bool, Fault<F::Error>> {
        if lacks_room(&fault) {
            // One of two leaves may have been written, and then no sector was left.
            if self.state.is_in_doubt() {
                self.mount()?;
                // If that is not known, its leaf could not even be settled.
                if was_there.is_some() && self.is_made(change)? {
                    return Ok(true);
                }
            }
            // Also where a sector failed before: the change was not made.
            return Err(self.no_room());
        }
        let failed = self.cells.take_failed().filter(|_| self.state.is_in_doubt());
        let Some(sector) = failed.filter(|_| fault.rejects_writes()) else {
            return self.worse(first.take(), fault);
        };
        first.get_or_insert(fault);
        match self.evacuate_all(sector) {
            Ok(()) => Ok(false),
            Err(fault) => self.worse(first.take(), fault),
        }
    }

    /// Which fault is reported of the first one and that of the last attempt.
    ///
    /// It is the first one, unless the device gave up later, or too many sectors are bad.
    #[inline(never)]
    fn worse(
        &self,
        first: Option<Fault<F::Error>>,
        last: Fault<F::Error>,
    ) -> Result<bool, Fault<F::Error>> {
        let fault = match last {
            Fault::Device(_) if !last.rejects_writes() => last,
            _ => first.unwrap_or(last),
        };
        let is_rejection = fault.rejects_writes() || lacks_room(&fault);
        Err(if is_rejection && self.is_worn_out() { self.no_room() } else { fault })
    }

    /// Whether a change was made, as far as can be read.
    #[inline(never)]
    fn is_made(&mut self, change: &Pending<'_>) -> Result<bool, Fault<F::Error>> {
        let rank = self.directory.find(change.key);
        let rank = self.touch_to_read(rank)?;
        let leaf = self.directory.leaf(rank);
        let found = self.look(&leaf, change.key)?;
        Ok(match (found, change.value) {
            (Some(at), Some(value)) => self.value(&leaf, at)? == value,
            (found, value) => found.is_none() && value.is_none(),
        })
    }

    /// Makes a change. Returns whether its key had a record.
    ///
    /// `was_there` says so already if the change was tried before.
    #[inline(never)]
    fn change(
        &mut self,
        change: &Pending<'_>,
        was_there: &mut Option<bool>,
    ) -> Result<bool, Fault<F::Error>> {
        while let Some(step) = self.step_of(change, was_there)? {
            if step.lacks_leaf {
                self.make_room()?;
                continue;
            }
            self.begin_change()?;
            self.state.doubt();
            match step.slots {
                0 => self.rewrite_with(change, &step)?,
                _ => self.append_change(change, &step)?,
            }
            self.state.set_records(self.state.records().saturating_add_signed(step.kind.gain()));
            self.state.trust();
            if let Some(left) = step.slots.checked_sub(1) {
                self.prepare(left)?;
            }
            break;
        }
        Ok(was_there.unwrap_or_default())
    }

    /// What a change has to do; `None` if it is nothing.
    #[inline(never)]
    fn step_of(
        &mut self,
        change: &Pending<'_>,
        was_there: &mut Option<bool>,
    ) -> Result<Option<Step>, Fault<F::Error>> {
        let rank = self.directory.find(change.key);
        self.touch(rank)?;
        let leaf = self.directory.leaf(rank);
        let log = self.log_of(&leaf);
        let is_there = self.look_in(&leaf, &log, change.key)?.is_some();
        was_there.get_or_insert(is_there);
        if !is_there && change.value.is_none() {
            return Ok(None);
        }
        let puts = change.value.is_some();
        let kind = Kind { puts, counts: puts != is_there, copies: false };
        // A record was found, so there is one.
        let Ok(live) = usize::try_from(i32::from(leaf.live) + kind.gain()) else {
            return Err(self.cells.damage(leaf.sector, 0, Damage::NodeChanged));
        };
        let joins = live == 0 && self.directory.len() > 1;
        // So every leaf fits in a sector, and what is replaced or removed needs no second one.
        let divides = kind.gain() > 0 && live > self.form.capacity();
        let lacks_leaf = divides
            && self.directory.len() >= self.leaves_max
            && self.sharing(rank, live).is_none();
        let is_full = usize::from(leaf.used) >= log.slots;
        let slots =
            if is_full || joins || divides { 0 } else { log.slots - usize::from(leaf.used) };
        Ok(Some(Step { rank, live, kind, slots, is_full, lacks_leaf }))
    }

    /// Writes a leaf again with a change, or begins one with it.
    #[inline(never)]
    fn rewrite_with(&mut self, change: &Pending<'_>, step: &Step) -> Result<(), Fault<F::Error>> {
        let rises = step.is_full && step.kind.gain() > 0;
        if rises && self.begin_behind(step.rank, change)? {
            return Ok(());
        }
        let grows = change.value.is_some();
        let Some((ranks, pieces)) = self.way_to_renew(step.rank, step.live, grows) else {
            return Err(self.no_room());
        };
        if ranks.len() == 2 {
            self.touch_two(ranks.start)?;
        }
        self.write_again(ranks, pieces, Some(change))
    }

    /// Programs a change as the next slot of its leaf.
    #[inline(never)]
    fn append_change(&mut self, change: &Pending<'_>, step: &Step) -> Result<(), Fault<F::Error>> {
        slot::write(self.slot, change.key, change.value, step.kind);
        self.append(step.rank, step.kind)
    }

    /// Joins two leaves, so that another one can be divided.
    #[inline(never)]
    fn make_room(&mut self) -> Result<(), Fault<F::Error>> {
        self.begin_change()?;
        self.state.doubt();
        let joined = self.join_some(self.form.capacity() * 15 / 16)?;
        self.state.trust();
        if joined { Ok(()) } else { Err(self.no_room()) }
    }

    /// A session begins with its first change: the last one no longer counts as ended.
    pub(super) fn begin_change(&mut self) -> Result<(), Fault<F::Error>> {
        if self.state.is_ended() {
            self.state.doubt();
            self.begin_session()?;
            self.state.trust();
        }
        Ok(())
    }

    /// Programs what is in the buffer for slots as the next slot of a leaf.
    ///
    /// Cost: one program, and one more with [`GROUP`] reads if a group is full then.
    pub(super) fn append(&mut self, rank: usize, kind: Kind) -> Result<(), Fault<F::Error>> {
        let leaf = self.directory.leaf(rank);
        let log = self.log_of(&leaf);
        let used = usize::from(leaf.used);
        let bytes = if kind.puts { self.slot.len() } else { TAG_BYTES + self.form.key_bytes };
        self.order.forget();
        self.cells.program(leaf.sector, log.slot(used), &self.slot[..bytes])?;
        // A copy counts what the slot counted that it copies.
        let gain = if kind.copies { 0 } else { kind.gain() };
        let live = leaf.live.saturating_add_signed(gain as i16);
        let leaf = Leaf { used: leaf.used + 1, live, ..leaf };
        self.directory.set(rank, leaf);
        if (used + 1).is_multiple_of(GROUP) { self.seal_group(&leaf, &log) } else { Ok(()) }
    }

    /// Programs the fingerprints of the last group of a leaf, which is full now.
    #[inline(never)]
    fn seal_group(&mut self, leaf: &Leaf, log: &Log) -> Result<(), Fault<F::Error>> {
        let used = usize::from(leaf.used);
        let mut group = [0; GROUP_BYTES];
        for (at, number) in (used - GROUP..used).enumerate() {
            let bytes = TAG_BYTES + self.form.key_bytes;
            self.cells.read(leaf.sector, log.slot(number), &mut self.slot[..bytes])?;
            group[at] = fingerprints::fingerprint(&self.slot[TAG_BYTES..bytes]);
        }
        fingerprints::seal_group(&mut group, leaf.live);
        self.cells.program(leaf.sector, log.group(used / GROUP - 1), &group)
    }

    /// Erases a sector ahead of need, if a log is full soon or many were written.
    #[inline(never)]
    fn prepare(&mut self, slots_left: usize) -> Result<(), Fault<F::Error>> {
        let by_use = 2 * self.state.written() as usize;
        let wanted = if slots_left < SLOTS_LEFT { by_use.max(READY_MIN) } else { by_use };
        self.state.doubt();
        if !self.refill(wanted)? {
            self.level_wear()?;
        }
        self.state.trust();
        Ok(())
    }

    /// Writes the leaf of a rejected sector elsewhere, and gives the sector up.
    ///
    /// Sectors that are rejected meanwhile are given up in the same way before.
    pub(super) fn evacuate_all(&mut self, rejected: Sector) -> Result<(), Fault<F::Error>> {
        let (mut sector, mut tries) = (rejected, 0);
        loop {
            match self.mount_to_change().and_then(|()| self.evacuate(sector)) {
                Ok(()) if sector == rejected => return Ok(()),
                Ok(()) => sector = rejected,
                Err(fault) => {
                    tries += 1;
                    let failed = self.cells.take_failed().filter(|_| fault.rejects_writes());
                    let Some(failed) = failed.filter(|_| tries < TRIES) else { return Err(fault) };
                    sector = failed;
                }
            }
        }
    }

    /// Writes the leaf of a sector elsewhere, and gives the sector up.
    fn evacuate(&mut self, sector: Sector) -> Result<(), Fault<F::Error>> {
        let mut ranks = 0..self.directory.len();
        if let Some(rank) = ranks.find(|&rank| self.directory.leaf(rank).sector == sector) {
            self.state.doubt();
            self.write_elsewhere(rank).or_else(|fault| {
                // To mark it as replaced is a program, too.
                let leaf = self.directory.leaf(rank);
                if leaf.sector != sector && fault.rejects_writes() { Ok(()) } else { Err(fault) }
            })?;
            self.state.set_records(self.directory.records());
            self.state.trust();
        }
        self.give_up(sector)
    }

    /// Writes a leaf again that may not be settled.
    ///
    /// The last slot that counts may be torn. It is read once, and written as a change of its own.
    pub(super) fn write_elsewhere(&mut self, rank: usize) -> Result<(), Fault<F::Error>> {
        let Some(kind) = self.take_last(rank)? else {
            return self.write_again(rank..rank + 1, 1, None);
        };
        // It is on the stack while the leaf is written.
        if self.record.len() <= RECORD_SMALL {
            self.write_with_last::<RECORD_SMALL>(rank, kind)
        } else {
            self.write_with_last::<RECORD_MAX>(rank, kind)
        }
    }

    /// What the last slot that counts does, if the leaf is not settled.
    ///
    /// It is in the buffer for slots, and the log ends before it then.
    #[inline(never)]
    fn take_last(&mut self, rank: usize) -> Result<Option<Kind>, Fault<F::Error>> {
        let leaf = self.directory.leaf(rank);
        if !leaf.is_untouched {
            return Ok(None);
        }
        let (mut last, mut counted) = (usize::from(leaf.used), None);
        while counted.is_none() && last > 0 {
            last -= 1;
            counted = self.seen(&leaf, last)?;
        }
        self.directory.set(rank, Leaf { used: last as u8, ..leaf });
        self.order.forget();
        Ok(counted)
    }

    /// Writes a leaf again with the change that is in the buffer for slots.
    #[inline(never)]
    fn write_with_last<const BYTES: usize>(
        &mut self,
        rank: usize,
        kind: Kind,
    ) -> Result<(), Fault<F::Error>> {
        let key_bytes = self.form.key_bytes;
        let bytes = if kind.puts { self.record.len() } else { key_bytes };
        let mut record = [0; BYTES];
        let record = &mut record[..bytes];
        record.copy_from_slice(&self.slot[TAG_BYTES..TAG_BYTES + bytes]);
        let (key, value) = record.split_at(key_bytes);
        let change = &Pending { key, value: kind.puts.then_some(value) };
        // Another leaf may own its key since.
        let is_owned = self.directory.low(rank) <= key
            && self.directory.high(rank).is_none_or(|high| key < high);
        self.write_again(rank..rank + 1, 1, is_owned.then_some(change))
    }
}
