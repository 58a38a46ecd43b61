//! The newest leaf is settled at a mount, and what a cut has left beside it.
//!
//! Its write may have been cut, and then it may be seen now and not later. So it is written again
//! before anything is acknowledged, to a sector that holds nothing which would count without it.

use super::cells::Sector;
use super::directory::Leaf;
use super::head::{self, HEAD_MAX};
use super::leaves::{SectorLeaves, lacks_room};
use super::mount::TRIES;
use super::options::ENTRIES_BESIDE;
use super::pool::Use;
use crate::error::{Damage, Fault};
use crate::flash::Flash;

/// The class of a leaf that owns a key if the newest leaf is not seen.
const NEEDED: u8 = u8::MAX;

/// The most leaves that own no keys and that a mount erases.
///
/// A cut leaves at most two, those that one or two new ones replace. Mounts that were cut in a row
/// leave copies of one leaf, which take one entry of the directory.
pub const REST_MAX: usize = ENTRIES_BESIDE;

/// How many rejections a mount bears before the newest leaf stays unsettled.
const REJECTIONS_MAX: u32 = 8;

impl<F: Flash> SectorLeaves<'_, F> {
    /// Settles what a cut may have torn of what was found.
    ///
    /// Returns why the newest leaf cannot be settled, if that is so: then it can be read, and no
    /// change is made. A sector that the chip rejects is given up, and another one is taken.
    pub(super) fn settle_all(&mut self) -> Result<Option<Fault<F::Error>>, Fault<F::Error>> {
        let (mut tries, mut rejections, mut rest, mut worn) = (0, 0, true, None);
        let unsettled = loop {
            if self.state.is_ended() {
                break None;
            }
            let settled = self.settle_newest(worn == Some(self.state.newest()));
            let is_settled = settled.is_ok();
            let done = settled.and_then(|()| if rest { self.settle_rest() } else { Ok(()) });
            let Err(fault) = done else { break None };
            let failed = self.cells.take_failed();
            let goes_on = match fault {
                // What was written may be the newest leaf now, and not settled. The rest can wait.
                ref fault if lacks_room(fault) => is_settled,
                Fault::Corrupt { .. } if is_settled => true,
                ref fault if fault.rejects_writes() && failed.is_some() => {
                    rejections += 1;
                    rejections < REJECTIONS_MAX
                }
                // The newest leaf is torn, and cannot be seen any longer, or several may be. Or it
                // is damaged: then the others can be read.
                Fault::Corrupt { .. } => {
                    tries += 1;
                    tries < TRIES
                }
                fault => return Err(fault),
            };
            rest &= !is_settled;
            // What cannot be settled is looked at for longer.
            self.state.note_unsettled(!goes_on);
            self.look_at_all()?;
            match failed {
                Some(sector) if sector == self.state.newest() => worn = failed,
                Some(sector) => self.give_up_unless_needed(sector)?,
                None => {}
            }
            if !goes_on {
                break Some(fault);
            }
        };
        self.state.note_unsettled(unsettled.is_some());
        self.state.trust();
        Ok(unsettled)
    }

    /// Settles the leaf whose write was cut: the newest one, or one behind it.
    ///
    /// A leaf whose head was cut needs nothing: without its commit, which comes later, it never
    /// counts, and its sector is erased before it is used.
    ///
    /// Cost: at most two erases. If the newest leaf may be torn, it is written again; also if it is
    /// `worn`: the chip rejects what is programmed there.
    #[inline(never)]
    fn settle_newest(&mut self, worn: bool) -> Result<(), Fault<F::Error>> {
        self.erase_begun()?;
        let newest = self.state.newest();
        let mut ranks = 0..self.directory.len();
        let found = ranks.find(|&rank| self.directory.leaf(rank).sector == newest);
        let Some(rank) = found else { return Ok(()) };
        let leaf = self.directory.leaf(rank);
        if !self.is_acknowledged(newest, leaf.sorted)? {
            if let Err(fault) = self.verify(rank) {
                // Nothing of it was acknowledged, and it is not whole.
                if matches!(fault, Fault::Corrupt { .. }) {
                    self.erase(newest)?;
                }
                return Err(fault);
            }
            // Its log has nothing that was acknowledged.
            let begun = Leaf { live: leaf.sorted, used: 0, is_untouched: false, ..leaf };
            return self.copy_newest(rank, begun);
        }
        if worn {
            return self.copy_newest(rank, leaf);
        }
        // The mark may be torn itself; that its program was begun is enough.
        let Some(sum) = self.cells.committed(newest, self.form.marks_at())? else {
            return Err(self.cells.damage(newest, self.form.marks_at(), Damage::Checksum));
        };
        self.cells.let_fall(newest, self.form.acknowledged_at(), &head::commit(!sum))?;
        self.begin_session()
    }

    /// Erases a leaf that was begun and whose commit was not seen: it may be later.
    ///
    /// There are several if a mount was cut that wrote the newest leaf again, and that leaf is not
    /// seen any longer. Then a fault is returned, so that the next one is found by another look.
    fn erase_begun(&mut self) -> Result<(), Fault<F::Error>> {
        let Some((begun, has_others)) = self.state.take_begun() else { return Ok(()) };
        if self.pool.state(begun) == Use::Free {
            self.erase(begun)?;
        }
        if has_others {
            return Err(self.cells.damage(begun, self.form.marks_at(), Damage::Checksum));
        }
        Ok(())
    }

    /// Erases leaves that own no keys: a cut came before they were marked.
    ///
    /// The newest leaf is settled, so nothing needs them. Otherwise they would add up, and be too
    /// many for the directory. They are not marked: an erase of theirs may have been cut, and then
    /// nothing may be programmed there. Of more than [`REST_MAX`] the rest is left to later mounts.
    ///
    /// Cost: nothing if there are none, else that of finding the leaves, and an erase for each.
    #[inline(never)]
    fn erase_rest(&mut self) -> Result<(), Fault<F::Error>> {
        if self.state.found() <= self.directory.len() {
            return Ok(());
        }
        let mut rest = REST_MAX;
        for sector in 0..self.sectors as Sector {
            if rest == 0 {
                break;
            }
            if self.pool.state(sector) == Use::Free
                && let Some(head) = self.read_leaf(sector)?
                && head.identity == self.state.identity()
            {
                self.erase(sector)?;
                rest -= 1;
            }
        }
        self.state.note_found(self.directory.len());
        Ok(())
    }

    /// Puts in order what a cut has left beside the newest leaf, which is settled.
    fn settle_rest(&mut self) -> Result<(), Fault<F::Error>> {
        self.erase_rest()?;
        self.join_rest()
    }

    /// Joins leaves if there are more than there may be.
    ///
    /// A cut while two shared their records has left three.
    fn join_rest(&mut self) -> Result<(), Fault<F::Error>> {
        while self.directory.len() > self.leaves_max {
            if !self.join_some(self.form.capacity())? {
                break;
            }
        }
        Ok(())
    }

    /// Writes the newest leaf again, with the log that `leaf` has.
    #[inline(never)]
    fn copy_newest(&mut self, rank: usize, leaf: Leaf) -> Result<(), Fault<F::Error>> {
        self.directory.set(rank, leaf);
        self.order.forget();
        if leaf.is_trimmed {
            let span = self.span(rank)?;
            let live = self.count(&span)?;
            self.directory.set(rank, Leaf { live, ..leaf });
        }
        self.choose_sector(leaf.sector)?;
        self.write_copy(rank)?;
        self.state.set_records(self.directory.records());
        self.free_all();
        Ok(())
    }

    /// Leaves one sector to be taken next, erased, for a copy of the newest leaf.
    ///
    /// If that leaf cannot be seen later, those that it replaces count again. So a sector without a
    /// leaf is taken first, then one whose leaf was not acknowledged: an earlier copy, which may
    /// not be seen itself. Of the others one is taken that shares no key with the newest leaf, or
    /// at last the oldest one. A leaf that would own a key then is not taken: there is no room.
    #[inline(never)]
    fn choose_sector(&mut self, newest: Sector) -> Result<(), Fault<F::Error>> {
        let mut tail = [0; HEAD_MAX];
        self.read_head(newest, &mut tail)?;
        loop {
            let (mut to, mut least) = (None, (NEEDED, 0));
            while let Some(sector) = self.pool.next() {
                let rank = self.use_of_leaf(sector, newest, &tail)?;
                if rank < least {
                    (to, least) = (Some(sector), rank);
                }
                if rank.0 == 0 {
                    break;
                }
                self.pool.set(sector, Use::Live);
            }
            let Some(to) = to else {
                return Err(self.no_room());
            };
            if self.pool.state(to) == Use::Live {
                self.pool.set(to, Use::Free);
            }
            if self.pool.state(to) == Use::Free {
                self.erase(to)?;
            }
            if self.pool.state(to) == Use::Clean {
                return Ok(());
            }
            // The chip rejected that.
            self.free_all();
        }
    }

    /// Whether the leaf in a sector, with this many sorted records, was acknowledged.
    ///
    /// Its mark says so, which may be torn. A log that is not empty says so, too: it is begun only
    /// when the mark is there.
    #[inline(never)]
    fn is_acknowledged(&mut self, sector: Sector, sorted: u16) -> Result<bool, Fault<F::Error>> {
        if self.cells.committed(sector, self.form.acknowledged_at())?.is_some() {
            return Ok(true);
        }
        Ok(self.end_of_log(&Leaf::new(sector, sorted), 0)? > 0)
    }

    /// Gives up a sector that the chip rejects, unless it is needed.
    ///
    /// It is if its leaf owns a key, or may do so again. A mount reads nothing that is marked as
    /// bad.
    #[inline(never)]
    fn give_up_unless_needed(&mut self, sector: Sector) -> Result<(), Fault<F::Error>> {
        if self.pool.state(sector) != Use::Free || self.is_needed(sector)? {
            return Ok(());
        }
        self.give_up(sector)
    }

    /// Whether a leaf that is not live owns a key if the newest leaf is not seen later.
    fn is_needed(&mut self, sector: Sector) -> Result<bool, Fault<F::Error>> {
        let newest = self.state.newest();
        let mut tail = [0; HEAD_MAX];
        self.read_head(newest, &mut tail)?;
        if self.is_acknowledged(newest, head::sorted(&tail))? {
            return Ok(false);
        }
        Ok(self.use_of_leaf(sector, newest, &tail)?.0 == NEEDED)
    }

    /// How much a leaf in a sector that is not live may be needed: more is more.
    ///
    /// `newest_tail` is the head of the leaf in the sector `newest`, which may not be seen later.
    fn use_of_leaf(
        &mut self,
        sector: Sector,
        newest: Sector,
        newest_tail: &[u8; HEAD_MAX],
    ) -> Result<(u8, u64), Fault<F::Error>> {
        let Some(head) = self.read_leaf(sector)? else { return Ok((0, 0)) };
        let mut tail = [0; HEAD_MAX];
        let bytes = self.form.head_bytes();
        tail[..bytes].copy_from_slice(&self.page[..bytes]);
        if head.identity != self.state.identity() {
            // The older index counts again if the first leaf of this one cannot be seen.
            return Ok((3, head.sequence));
        }
        let acknowledged = self.is_acknowledged(sector, head.sorted)?;
        let (low, high) = head::fences(&self.form, newest_tail);
        let (begin, end) = head::fences(&self.form, &tail);
        let overlaps = end.is_none_or(|end| low < end) && high.is_none_or(|high| begin < high);
        let class = match (acknowledged, overlaps) {
            (false, _) => 1,
            (true, false) => 2,
            (true, true) => {
                let shared = (low.max(begin), lower_end(high, end));
                if self.is_owned_without([newest, sector], head.sequence, shared)? {
                    3
                } else {
                    NEEDED
                }
            }
        };
        Ok((class, head.sequence))
    }

    /// Whether a newer leaf that was acknowledged has a whole range of keys.
    ///
    /// The leaves of two sectors are left out. Cost: that of finding the leaves.
    fn is_owned_without(
        &mut self,
        without: [Sector; 2],
        sequence: u64,
        (low, high): head::Fences<'_>,
    ) -> Result<bool, Fault<F::Error>> {
        for sector in 0..self.sectors as Sector {
            if without.contains(&sector) || self.pool.state(sector) == Use::Bad {
                continue;
            }
            let Some(head) = self.read_leaf(sector)? else { continue };
            let (begin, end) = head::fences(&self.form, self.page);
            let has_all = begin <= low && lower_end(end, high) == high;
            if head.identity != self.state.identity() || head.sequence < sequence || !has_all {
                continue;
            }
            if self.is_acknowledged(sector, head.sorted)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sectors that were passed over, and hold no leaf that owns keys, are free again.
    fn free_all(&mut self) {
        for sector in 0..self.sectors as Sector {
            let mut ranks = 0..self.directory.len();
            let is_leaf = ranks.any(|rank| self.directory.leaf(rank).sector == sector);
            if self.pool.state(sector) == Use::Live && !is_leaf {
                self.pool.set(sector, Use::Free);
            }
        }
    }
}

/// The lower one of two ends of ranges.
fn lower_end<'k>(one: Option<&'k [u8]>, other: Option<&'k [u8]>) -> Option<&'k [u8]> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
