//! A mount: which leaf owns which keys, from the heads of all sectors.
//!
//! The identity of the newest leaf counts. Its leaves come into the directory in the order of
//! their fences, and where the ranges of two overlap, the newer one owns the keys of both. Every
//! key has an owner then, or the medium is damaged. At last the logs are counted.

use super::cells::Sector;
use super::directory::Leaf;
use super::fingerprints;
use super::form::{COMMIT_BYTES, ENDS_BYTES, GROUP, GROUP_BYTES, Log};
use super::head::{self, Head};
use super::leaves::SectorLeaves;
use super::order::LOOKS_MAX;
use super::pool::Use;
use crate::engine::KEY_BYTES_MAX;
use crate::error::{Damage, Fault};
use crate::flash::Flash;
use crate::log::GAP;
use crate::node::PageLayout;
use crate::node::slot::{self, Kind, State};

/// How often a mount looks at a leaf that is there now and then.
pub const TRIES: u32 = 32;

/// How often a mount looks at all leaves before it finds the medium damaged.
const MOUNT_LOOKS: u32 = 8;

/// How often the last slot of a log must be seen in a row, so that it counts.
///
/// It is few times, because there is such a slot in each leaf, and settling decides about it.
const STEADY_LOOKS: u32 = 6;

/// How often where it cannot be settled.
///
/// What is shown then must be seen by every later mount.
const STEADY_LOOKS_UNSETTLED: u32 = 48;

/// The newest leaf of the chip.
#[derive(Clone, Copy)]
struct Newest {
    sector: Sector,
    identity: u32,
    sequence: u64,
}

impl<F: Flash> SectorLeaves<'_, F> {
    /// Finds the leaves on the chip, and settles what a cut may have torn.
    ///
    /// What cannot be settled can be read.
    pub(super) fn mount(&mut self) -> Result<(), Fault<F::Error>> {
        self.look_at_all()?;
        self.settle_all().map(|_| ())
    }

    /// Mounts before a change, if that is needed: the newest leaf must be settled.
    ///
    /// Otherwise a change could be acknowledged in a leaf that a later mount does not see.
    pub(super) fn mount_to_change(&mut self) -> Result<(), Fault<F::Error>> {
        if self.state.is_in_doubt() || self.state.is_unsettled() {
            self.look_at_all()?;
            return self.settle_all()?.map_or(Ok(()), Err);
        }
        Ok(())
    }

    /// Finds the leaves on the chip. Nothing is written.
    ///
    /// A leaf that is torn may be seen at first and not later, so it may take several looks.
    ///
    /// Cost: a read for each sector, two for each leaf, and about twelve for each log. On a damaged
    /// medium up to eight times as much.
    pub(super) fn look_at_all(&mut self) -> Result<(), Fault<F::Error>> {
        self.state.doubt();
        let mut left = MOUNT_LOOKS;
        loop {
            left -= 1;
            match self.look_once() {
                Err(Fault::Corrupt { reason, .. }) if reason != Damage::NoRoot && left > 0 => {}
                looked => return looked,
            }
        }
    }

    fn look_once(&mut self) -> Result<(), Fault<F::Error>> {
        let Some(newest) = self.gather()? else {
            return Err(self.cells.damage(0, 0, Damage::NoRoot));
        };
        self.resolve()?;
        let mut bytes = [0; ENDS_BYTES];
        self.cells.read(newest.sector, self.form.ends_at(), &mut bytes)?;
        self.state.begin(newest.sector, newest.identity, head::session(&bytes));
        self.state.leave_gap(GAP);
        self.pool.set_turn(newest.sector);
        let looks = match (self.state.is_ended(), self.state.is_unsettled()) {
            (true, _) => 0,
            (false, false) => STEADY_LOOKS,
            (false, true) => STEADY_LOOKS_UNSETTLED,
        };
        for rank in 0..self.directory.len() {
            self.pool.set(self.directory.leaf(rank).sector, Use::Live);
            self.count_leaf(rank, looks)?;
        }
        self.state.set_records(self.directory.records());
        Ok(())
    }

    /// Reads all heads, and lists the leaves of the newest identity in order.
    #[inline(never)]
    fn gather(&mut self) -> Result<Option<Newest>, Fault<F::Error>> {
        let mut begun: Option<u32> = None;
        for _ in 0..TRIES {
            let mut newest: Option<Newest> = None;
            self.directory.clear();
            self.order.forget();
            self.pool.clear();
            let _ = self.state.take_begun();
            self.state.note_foreign(false);
            self.state.note_damaged(None);
            // Leaves of an older identity were listed, or were too many.
            let mut is_mixed = false;
            let mut leaves = 0;
            for sector in 0..self.sectors as Sector {
                if self.cells.is_bad(sector)? {
                    // Its leaf was written elsewhere before. What is torn there cannot be erased.
                    self.pool.set(sector, Use::Bad);
                    continue;
                }
                let Some(head) = self.read_leaf(sector)? else { continue };
                let Head { identity, sequence, sorted, .. } = head;
                if begun.is_some_and(|begun| begun != identity) {
                    continue;
                }
                if newest.is_none_or(|newest| newest.sequence < sequence) {
                    is_mixed |= newest.is_some_and(|newest| newest.identity != identity);
                    newest = Some(Newest { sector, identity, sequence });
                }
                if newest.is_some_and(|newest| newest.identity != identity) {
                    continue;
                }
                leaves += 1;
                // How many records it has is counted later.
                let leaf = Leaf { live: 0, ..Leaf::new(sector, sorted) };
                if self.replace_covered(sequence, leaf)? {
                    continue;
                }
                let (low, _) = head::fences(&self.form, self.page);
                if !self.directory.insert_in_order(low, leaf) {
                    if begun.is_some() {
                        let at = self.form.head_at();
                        return Err(self.cells.damage(sector, at, Damage::DirectoryTooSmall));
                    }
                    is_mixed = true;
                }
            }
            // A torn leaf of the newest identity may not be seen again: then it counts no longer.
            if !is_mixed && (newest.is_some() || begun.is_none()) {
                self.state.note_found(leaves);
                return Ok(newest);
            }
            begun = newest.map(|newest| newest.identity);
        }
        Ok(None)
    }

    /// Puts a leaf in the place of an older one whose range it has, or leaves it out.
    ///
    /// Only leaves are compared that begin with the same key, as copies do. Returns whether it is
    /// done. Cost: a read for each of these.
    fn replace_covered(&mut self, sequence: u64, leaf: Leaf) -> Result<bool, Fault<F::Error>> {
        let covers = |one: Option<&[u8]>, other: Option<&[u8]>| match (one, other) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(one), Some(other)) => other <= one,
        };
        for rank in (0..self.directory.len()).rev() {
            if self.directory.low(rank) != head::fences(&self.form, self.page).0 {
                continue;
            }
            let is_newer = self.read_owner(rank)? < sequence;
            let (_, high) = head::fences(&self.form, self.page);
            let (_, end) = head::fences(&self.form, self.cells.tail());
            if is_newer && covers(high, end) {
                self.directory.set(rank, leaf);
                return Ok(true);
            }
            if !is_newer && covers(end, high) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What the head says of a sector that holds a leaf.
    ///
    /// Its bytes are in the buffer for pages that are programmed: no leaf is being written.
    ///
    /// Cost: one read, and two more if it holds one.
    pub(super) fn read_leaf(&mut self, sector: Sector) -> Result<Option<Head>, Fault<F::Error>> {
        if self.form.has_header_inside() {
            // Most sectors hold none: a few bytes tell.
            let mut bytes = [0; MAGIC_BYTES];
            let at = self.form.head_at() + self.form.head_bytes() + MAGIC_AT;
            match self.cells.read(sector, at, &mut bytes) {
                Ok(()) => {}
                Err(Fault::Corrupt { page, .. }) => {
                    self.state.note_damaged(Some(page));
                    return Ok(None);
                }
                Err(fault) => return Err(fault),
            }
            if !PageLayout::begins_header(bytes) {
                return Ok(None);
            }
        }
        let first = self.cells.page(sector, 0);
        if !self.cells.look_at_tail(sector)? {
            self.state.note_damaged(Some(first));
            return Ok(None);
        }
        let Some(head) = self.cells.head(&self.medium) else {
            let header = &self.cells.tail()[self.form.head_bytes() + MAGIC_AT..][..MAGIC_BYTES];
            if PageLayout::begins_header([header[0], header[1], header[2], header[3]]) {
                self.state.note_foreign(true);
                self.state.note_damaged(Some(first));
            }
            return Ok(None);
        };
        let end = self.form.head_bytes();
        self.page[..end].copy_from_slice(&self.cells.tail()[..end]);
        let mut commit = [0; COMMIT_BYTES];
        match self.cells.read(sector, self.form.marks_at(), &mut commit) {
            Ok(()) => {}
            Err(Fault::Corrupt { page, .. }) => {
                self.state.note_damaged(Some(page));
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        }
        // One that was not committed has a number all the same.
        self.state.note_sequence(head.sequence);
        self.state.note_erases(head.erases);
        let fits = usize::from(head.sorted) <= self.form.capacity();
        let is_committed = head::committed(&commit).is_some();
        if !is_committed && commit != [0; COMMIT_BYTES] {
            self.state.note_begun(sector);
            self.state.note_damaged(Some(self.cells.page(sector, self.form.marks_at())));
        }
        Ok((fits && is_committed).then_some(head))
    }

    /// Gives each key to the newest leaf whose range has it.
    #[inline(never)]
    fn resolve(&mut self) -> Result<(), Fault<F::Error>> {
        let key_bytes = self.form.key_bytes;
        let mut expected = [0; KEY_BYTES_MAX];
        let expected = &mut expected[..key_bytes];
        let mut high = [0; KEY_BYTES_MAX];
        let high = &mut high[..key_bytes];
        let mut rank = 0;
        loop {
            let has_owner = rank < self.directory.len() && self.directory.low(rank) == expected;
            if !has_owner {
                let before = if rank > 0 { self.directory.leaf(rank - 1).sector } else { 0 };
                let page = self.state.damaged().unwrap_or(self.cells.page(before, 0));
                return Err(Fault::Corrupt { page, reason: Damage::NoOwner });
            }
            // Of those that begin here the newest owns.
            let (mut sequence, mut is_bounded) = self.read_end(rank, high)?;
            let mut same = rank + 1;
            while same < self.directory.len() && self.directory.low(same) == expected {
                if self.read_owner(same)? > sequence {
                    self.directory.exchange(rank, same);
                    (sequence, is_bounded) = self.read_end(rank, high)?;
                }
                same += 1;
            }
            let high = is_bounded.then_some(&*high);
            // The older ones have only what lies behind.
            while rank + 1 < self.directory.len()
                && high.is_none_or(|high| self.directory.low(rank + 1) < high)
            {
                if self.read_owner(rank + 1)? > sequence {
                    break;
                }
                self.cut_below(rank + 1, high)?;
            }
            rank += 1;
            match high {
                None if rank == self.directory.len() => return Ok(()),
                Some(high) if rank < self.directory.len() => {
                    // A newer one may begin before this one ends.
                    let next = self.directory.low(rank);
                    expected.copy_from_slice(next.min(high));
                }
                Some(high) => expected.copy_from_slice(high),
                None => expected.copy_from_slice(self.directory.low(rank)),
            }
        }
    }

    /// Reads the head of the leaf at a rank, and where its range ends.
    ///
    /// Returns its sequence number, and whether the range has an end, which is in `high` then.
    fn read_end(&mut self, rank: usize, high: &mut [u8]) -> Result<(u64, bool), Fault<F::Error>> {
        let sequence = self.read_owner(rank)?;
        let (_, end) = head::fences(&self.form, self.cells.tail());
        if let Some(end) = end {
            high.copy_from_slice(end);
        }
        Ok((sequence, end.is_some()))
    }

    /// Reads the head of the leaf at a rank. Returns its sequence number.
    ///
    /// It was right once. One that is torn is read again until it is so.
    #[inline(never)]
    fn read_owner(&mut self, rank: usize) -> Result<u64, Fault<F::Error>> {
        let sector = self.directory.leaf(rank).sector;
        for _ in 0..LOOKS_MAX {
            self.look_at_head(sector)?;
            if let Some(head) = self.cells.head(&self.medium) {
                return Ok(head.sequence);
            }
        }
        Err(self.cells.damage(sector, 0, Damage::Checksum))
    }

    /// Takes from the leaf at a rank the keys below `high`, or all.
    #[inline(never)]
    fn cut_below(&mut self, rank: usize, high: Option<&[u8]>) -> Result<(), Fault<F::Error>> {
        let leaf = self.directory.leaf(rank);
        self.directory.remove(rank);
        let Some(low) = high else { return Ok(()) };
        self.look_at_head(leaf.sector)?;
        let (_, end) = head::fences(&self.form, self.cells.tail());
        if end.is_none_or(|end| low < end) {
            self.directory.insert_in_order(low, Leaf { is_trimmed: true, ..leaf });
        }
        Ok(())
    }

    /// Looks for longer at the log of a leaf, if the chip rejects what settles it.
    pub(super) fn count_unsettled(&mut self, rank: usize) -> Result<(), Fault<F::Error>> {
        if self.directory.leaf(rank).is_untouched {
            self.order.forget();
            self.count_leaf(rank, STEADY_LOOKS_UNSETTLED)?;
            self.state.set_records(self.directory.records());
        }
        Ok(())
    }

    /// Finds how far the log of a leaf is used, and how many records it has.
    ///
    /// Its last slot must be seen `looks` times in a row. With none, nothing is torn.
    #[inline(never)]
    fn count_leaf(&mut self, rank: usize, looks: u32) -> Result<(), Fault<F::Error>> {
        let mut leaf = self.directory.leaf(rank);
        let is_untouched = looks > 0;
        let mut used = self.end_of_log(&leaf, 0)?;
        // What is torn or killed at the end does not count.
        let mut last = None;
        while is_untouched && used > 0 {
            last = self.seen_steadily(&leaf, used - 1, looks)?;
            if last.is_some() {
                break;
            }
            used -= 1;
        }
        leaf = Leaf { used: used as u8, is_untouched, ..leaf };
        leaf = Leaf { live: self.live_by_tags(&leaf, last)?, ..leaf };
        self.directory.set(rank, leaf);
        if leaf.is_trimmed {
            let span = self.span(rank)?;
            leaf = Leaf { live: self.count(&span)?, ..leaf };
            self.directory.set(rank, leaf);
        }
        Ok(())
    }

    /// The first slot of a log from which on all look blank, at least `from`.
    pub(super) fn end_of_log(
        &mut self,
        leaf: &Leaf,
        from: usize,
    ) -> Result<usize, Fault<F::Error>> {
        let log = self.log_of(leaf);
        let (mut low, mut high) = (from, log.slots);
        while low < high {
            let middle = low.midpoint(high);
            if self.is_blank(leaf, &log, middle)? { high = middle } else { low = middle + 1 }
        }
        // A slot that is torn may look blank, but the one behind it was killed then.
        while low + 1 < log.slots && !self.is_blank(leaf, &log, low + 1)? {
            low += 1;
            while low < log.slots && !self.is_blank(leaf, &log, low)? {
                low += 1;
            }
        }
        Ok(low)
    }

    /// Whether the tag of a slot is blank.
    fn is_blank(&mut self, leaf: &Leaf, log: &Log, number: usize) -> Result<bool, Fault<F::Error>> {
        Ok(slot::is_blank(self.read_tag(leaf.sector, log, number)?))
    }

    /// What a slot does, if it is whole whenever it is looked at.
    ///
    /// So a mount that can write nothing shows no slot that a later one may not see.
    fn seen_steadily(
        &mut self,
        leaf: &Leaf,
        number: usize,
        looks: u32,
    ) -> Result<Option<Kind>, Fault<F::Error>> {
        let log = self.log_of(leaf);
        let mut seen = None;
        for _ in 0..looks {
            match self.read_slot(leaf.sector, &log, number)? {
                State::Whole(kind) => seen = Some(kind),
                _ => return Ok(None),
            }
        }
        Ok(seen)
    }

    /// The records of a leaf, by its last whole group and the tags behind that.
    ///
    /// `last` is what the last slot does, if it was looked at.
    fn live_by_tags(&mut self, leaf: &Leaf, last: Option<Kind>) -> Result<u16, Fault<F::Error>> {
        let log = self.log_of(leaf);
        let used = usize::from(leaf.used);
        let (mut from, mut live) = (0, i32::from(leaf.sorted));
        for group in (0..used / GROUP).rev() {
            let mut bytes = [0; GROUP_BYTES];
            self.cells.read(leaf.sector, log.group(group), &mut bytes)?;
            if fingerprints::group_is_whole(&bytes) {
                (from, live) = ((group + 1) * GROUP, fingerprints::group_live(&bytes).into());
                break;
            }
        }
        // Slots that are copied behind count no longer, also if they were not killed yet.
        let mut copy = None;
        for number in (from..used).rev() {
            let tag = self.read_tag(leaf.sector, &log, number)?;
            let kind = match last {
                Some(last) if number + 1 == used => last,
                _ if slot::is_killed(tag) => continue,
                _ => Kind::of(tag),
            };
            if let Some(copy) = copy
                && self.is_copied(leaf, number, copy)?
            {
                continue;
            }
            copy = kind.copies.then_some(number);
            live += kind.gain();
        }
        Ok(live.clamp(0, 0x7FFF) as u16)
    }
}

/// The magic in a header, its version and the system.
const MAGIC_BYTES: usize = 4;

/// Where the magic begins in a header.
const MAGIC_AT: usize = 4;
