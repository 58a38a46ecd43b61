//! What may be torn is settled before anything is acknowledged.
//!
//! After a cut, two things can read differently each time. One is the leaf that was being written,
//! which is the newest one or lies behind it; a mount settles that. The other is the last slot of
//! the log that was written last. Which log that was is not known, so each leaf is settled when it
//! is touched for the first time after such a mount, by a lookup as by a change.

use super::directory::Leaf;
use super::leaves::SectorLeaves;
use super::slot::{self, Kind, State};
use super::order::LOOKS_MAX;
use crate::error::{Damage, Fault};
use crate::flash::Flash;

impl<F: Flash> SectorLeaves<'_, F> {
    /// Settles the leaf at `rank` if it was not touched since the mount.
    ///
    /// A chip that rejects what is written leaves it as it is: it can be read.
    ///
    /// Cost: at most four programs; if its log is full, the leaf is written again.
    pub(super) fn touch(&mut self, rank: usize) -> Result<(), Fault<F::Error>> {
        let leaf = self.directory.leaf(rank);
        if !leaf.is_untouched {
            return Ok(());
        }
        self.state.doubt();
        self.settle(rank, leaf)?;
        self.state.trust();
        Ok(())
    }

    /// The last slot, if it counts, is copied behind the first blank one, and that is killed.
    ///
    /// If it does not count, it is killed. So it does not matter what either of them reads as later.
    fn settle(&mut self, rank: usize, leaf: Leaf) -> Result<(), Fault<F::Error>> {
        let log = self.log_of(&leaf);
        let used = usize::from(leaf.used);
        let counted = if leaf.last_counts && used > 0 { self.seen(&leaf, used - 1)? } else { None };
        if used > 0 && counted.is_none() {
            self.kill(&leaf, used - 1)?;
        }
        self.order.forget();
        let lost = leaf.last_counts && counted.is_none() && used > 0;
        let mut leaf = Leaf { is_untouched: false, last_counts: true, ..leaf };
        if used < log.slots {
            self.kill(&leaf, used)?;
            leaf.used += 1;
        }
        self.directory.set(rank, leaf);
        if lost {
            // The mount saw it, and it cannot be seen any longer.
            let span = self.span(rank)?;
            let live = self.count(&span)?;
            self.directory.set(rank, Leaf { live, ..leaf });
            self.state.set_records(self.directory.records());
        }
        if used < log.slots {
            self.seal_group(&self.directory.leaf(rank))?;
        }
        let Some(kind) = counted else { return Ok(()) };
        if usize::from(leaf.used) >= log.slots {
            // No slot is left for the copy.
            return self.write_again(rank..rank + 1, 1, None);
        }
        if self.seen(&leaf, used - 1)? != Some(kind) {
            return Err(self.cells.damage(leaf.sector, log.slot(used - 1), Damage::Checksum));
        }
        let kind = Kind { copies: true, ..kind };
        slot::seal(self.slot, kind);
        self.append(rank, kind)
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
            if let State::Whole(kind) = self.read_slot(leaf.sector, &log, number)? {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    /// Kills a slot by one bit.
    fn kill(&mut self, leaf: &Leaf, number: usize) -> Result<(), Fault<F::Error>> {
        let at = self.log_of(leaf).slot(number);
        let mut tag = [0; super::form::TAG_BYTES];
        self.cells.read(leaf.sector, at, &mut tag)?;
        let tag = slot::killed(slot::tag(&tag));
        self.cells.program(leaf.sector, at, &tag.to_le_bytes())
    }
}
