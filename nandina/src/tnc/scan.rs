//! Scans: the records between two bounds, in the order of keys or against it.
//!
//! A scan remembers the last key, and finds the next one from the root: the path is in RAM already.
//! Keys that do not rise (or fall) end it with an error.

use core::ops::Bound;

use super::TncIndex;
use super::apply::Key;
use crate::engine::{Cursor, Record};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};

/// How far a scan over a range of keys has come: the last key.
pub type TncScan<'k> = Cursor<'k, Key>;

impl<F: Flash> TncIndex<'_, F> {
    /// The next record of `scan`.
    pub(super) fn next_record(
        &mut self,
        scan: &mut TncScan<'_>,
    ) -> Result<Option<Record<'_>>, Fault<F::Error>> {
        if !scan.step() {
            return Ok(None);
        }
        let found = self.next_place(scan)?;
        let Some((leaf, index)) = found else { return Ok(None) };
        let key_bytes = self.arena.form.key_bytes;
        let at = self.find_value(leaf, index)?;
        let key = self.arena.node(leaf).key(index);
        let before = scan.at().map(|last| last.bytes(key_bytes).cmp(key));
        if before
            .is_some_and(|before| if scan.is_downwards() { before.is_le() } else { before.is_ge() })
        {
            let page = PageNumber(self.arena.form.place_of(self.arena.place(leaf)).0);
            return Err(Fault::Corrupt { page, reason: Damage::KeysOutOfOrder });
        }
        if scan.is_beyond(key) {
            return Ok(None);
        }
        scan.continue_from(Key::of(key));
        Ok(Some((key, self.value(leaf, index, at))))
    }

    /// The leaf of the next record, and its index there.
    fn next_place(&mut self, scan: &TncScan<'_>) -> Result<Option<(u16, usize)>, Fault<F::Error>> {
        let last = scan.at();
        let key_bytes = self.arena.form.key_bytes;
        let from = match &last {
            Some(last) => Bound::Excluded(last.bytes(key_bytes)),
            None => scan.first(),
        };
        let mut slot = self.tree.root();
        self.arena.touch(slot);
        while self.arena.level(slot) > 1 {
            let node = self.arena.node(slot);
            let index = match from {
                Bound::Included(key) | Bound::Excluded(key) => node.child_slot(key),
                Bound::Unbounded if scan.is_downwards() => node.count().saturating_sub(1),
                Bound::Unbounded => 0,
            };
            slot = self.child(slot, index)?;
        }
        let node = self.arena.node(slot);
        // The index of the first record that is not before the bound, upwards or downwards.
        let index = match (from, scan.is_downwards()) {
            (Bound::Unbounded, false) => Some(0),
            (Bound::Unbounded, true) => node.count().checked_sub(1),
            (Bound::Included(key), false) => Some(node.search(key).unwrap_or_else(|at| at)),
            (Bound::Excluded(key), false) => {
                Some(node.search(key).map_or_else(|at| at, |at| at + 1))
            }
            (Bound::Included(key), true) => {
                node.search(key).map_or_else(|at| at.checked_sub(1), Some)
            }
            (Bound::Excluded(key), true) => node.search(key).unwrap_or_else(|at| at).checked_sub(1),
        };
        match index {
            Some(index) if index < node.count() => Ok(Some((slot, index))),
            _ => self.beside(slot, scan.is_downwards()),
        }
    }

    /// The first record of the leaf after `leaf`, or the last of the one before it.
    fn beside(
        &mut self,
        leaf: u16,
        downwards: bool,
    ) -> Result<Option<(u16, usize)>, Fault<F::Error>> {
        let mut slot = leaf;
        while let Some(index) = self.arena.index_of(slot) {
            slot = self.arena.parent(slot);
            let next = if downwards { index.checked_sub(1) } else { Some(index + 1) };
            let Some(next) = next.filter(|&next| next < self.arena.node(slot).count()) else {
                continue;
            };
            slot = self.child(slot, next)?;
            while self.arena.level(slot) > 1 {
                let last = self.arena.node(slot).count().saturating_sub(1);
                slot = self.child(slot, if downwards { last } else { 0 })?;
            }
            let last = self.arena.node(slot).count().saturating_sub(1);
            return Ok(Some((slot, if downwards { last } else { 0 })));
        }
        Ok(None)
    }
}
