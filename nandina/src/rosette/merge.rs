//! Merging: two neighbouring leaves become one, in one program.
//!
//! A removal that leaves little in a leaf joins it with a neighbour, and an empty leaf always joins
//! one. An insert that needs one more leaf first merges two neighbours that fit in one, if there
//! are more leaves than such records need. So keys that come at one end and go at the other fill no
//! chip with leaves that are almost empty.

use super::leaves::Leaves;
use crate::error::{Damage, Fault};
use crate::flash::Flash;

/// A leaf that holds fewer parts of a full one than this looks for a neighbour.
const THIN_PARTS: usize = 3;

/// Two leaves join if they hold at most this many parts together.
const JOINED_PARTS: usize = 6;

/// The parts of a full leaf.
const PARTS: usize = 8;

impl<F: Flash> Leaves<'_, F> {
    /// Writes the leaf in `frame` together with a neighbour, after a removal.
    ///
    /// It does so only if that is worth its cost. The leaf is trimmed and has `count` records left.
    /// A neighbour is read only when the leaf loses one of its last parts. Returns whether the leaf
    /// was written. Cost: at most two reads more than a removal.
    pub(super) fn join(
        &mut self,
        frame: usize,
        rank: usize,
        count: usize,
        records: u32,
    ) -> Result<bool, Fault<F::Error>> {
        let capacity = self.form().capacity();
        let parts = |count: usize| (PARTS * count).div_ceil(capacity);
        let is_due = count == 0 || (parts(count) < parts(count + 1) && parts(count) <= THIN_PARTS);
        if !is_due {
            return Ok(false);
        }
        let most = if count == 0 { capacity } else { capacity * JOINED_PARTS / PARTS };
        let other = usize::from(frame == 0);
        for neighbour in [rank + 1, rank.wrapping_sub(1)] {
            if neighbour >= self.directory.len() {
                continue;
            }
            let (held, owned) = match self.load_leaf(neighbour, other) {
                // Its keys are lost, and it stays as it is.
                Err(Fault::Corrupt { .. }) => continue,
                loaded => loaded?,
            };
            if owned.len() + count > most {
                continue;
            }
            let held = self.load_trimmed(neighbour, held)?;
            let (lower, frames) =
                if neighbour < rank { (neighbour, (held, frame)) } else { (rank, (frame, held)) };
            self.merge(lower, frames, records)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Merges the first two neighbours that fit in one leaf.
    ///
    /// It begins where the last search ended.
    /// Returns whether there were any. Cost: at most one read for each leaf, and one more; and a
    /// program.
    pub(super) fn merge_thin(&mut self) -> Result<bool, Fault<F::Error>> {
        let pairs = self.directory.len() - 1;
        let capacity = self.form().capacity();
        let mut lower = if self.state.sparse() < pairs { self.state.sparse() } else { 0 };
        for _ in 0..pairs {
            let frame = lower % 2;
            let pair = self.count_pair(lower, (frame, 1 - frame))?;
            if pair.is_some_and(|count| count <= capacity) {
                self.state.note_sparse(lower);
                let first = self.load_trimmed(lower, frame)?;
                let second = self.load_trimmed(lower + 1, usize::from(first == 0))?;
                self.merge(lower, (first, second), self.state.records())?;
                return Ok(true);
            }
            lower = if lower + 1 < pairs { lower + 1 } else { 0 };
        }
        Ok(false)
    }

    /// Records of the leaf at `rank` and of the next one.
    ///
    /// `None` if one of them cannot be read.
    fn count_pair(
        &mut self,
        rank: usize,
        (lower, upper): (usize, usize),
    ) -> Result<Option<usize>, Fault<F::Error>> {
        let page = self.directory.page(rank);
        if page.is_some() && page == self.directory.page(rank + 1) {
            // Only a directory that was tampered with names a page twice in a row.
            return Ok(None);
        }
        let mut count = 0;
        for (rank, frame) in [(rank, lower), (rank + 1, upper)] {
            match self.load_leaf(rank, frame) {
                Ok((_, owned)) => count += owned.len(),
                Err(Fault::Corrupt { .. }) => return Ok(None),
                Err(fault) => return Err(fault),
            }
        }
        Ok(Some(count))
    }

    /// Writes the leaf at `lower` and the next one as one leaf.
    ///
    /// They are trimmed, in two different page buffers. There must be room for the records of both.
    fn merge(
        &mut self,
        lower: usize,
        (first, second): (usize, usize),
        records: u32,
    ) -> Result<(), Fault<F::Error>> {
        let form = self.form();
        self.log.frames.forget(first);
        let page = self.page_at(lower)?;
        let (to, from) = self.log.frames.pair(first, second);
        let (Some(mut to), Some(from)) = (form.node_mut(to), form.node(from)) else {
            return Err(Fault::Corrupt { page, reason: Damage::NodeTooFull });
        };
        to.append(&from);
        self.log.frames.release(second);
        self.set_range(first, lower, lower + 1);
        let page = self.program_leaf(first, records, None)?;
        let before = [self.directory.page(lower), self.directory.page(lower + 1)];
        self.directory.remove(lower + 1);
        self.directory.set_page(lower, Some(page));
        self.end_write(before);
        Ok(())
    }
}
