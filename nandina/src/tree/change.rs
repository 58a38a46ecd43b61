//! Upserts and removals of single records.
//!
//! This file decides what has to be done, and whether it may be; `rewrite.rs` changes the nodes.

use super::Placement;
use super::TreeIndex;
use super::WritePolicy;
use super::edit::Edit;
use super::merge::{Merges, Sparse};
use super::path::Path;
use super::split::left_count;
use crate::engine::{Inserted, Removed};
use crate::error::Fault;
use crate::flash::Flash;

/// What has to be done to upsert a record.
enum Look<E> {
    /// No change: the record is there with this value.
    Same,
    /// The record at this slot gets another value.
    Replace(usize),
    /// The record is inserted at this slot.
    Insert(usize),
    /// The node of this level is split first.
    Split(u8),
    /// Nodes are merged first.
    Merge(Sparse),
    /// There is no room for it.
    Refused(Fault<E>),
}

/// The outcome of one attempt to change a record.
enum Step<E> {
    /// The change is made; `true` if the record was new, or was there to remove.
    Done(bool),
    /// Something else had to be written first, and may have used up room.
    Again,
    /// Nodes are merged first.
    Merge(Sparse),
    /// There is no room for it.
    Refused(Fault<E>),
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Upserts a record, in the write buffer or in the tree.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, Fault<F::Error>> {
        if self.defer(key, Some(value))? {
            return Ok(Inserted::Buffered);
        }
        let (mut merges, mut first) = (Merges::default(), true);
        loop {
            self.make_room(core::mem::take(&mut first))?;
            // Room is made before anything of the change is on the stack.
            match self.try_put(key, value, &merges)? {
                Step::Merge(sparse) => self.merge(sparse, &mut merges)?,
                Step::Done(new) => {
                    // A change of this key that the tree refused earlier is obsolete. It was
                    // acknowledged: after it, the key was there or not.
                    let was_there = self.batch.forget(key).unwrap_or(!new);
                    return Ok(if was_there { Inserted::Replaced } else { Inserted::New });
                }
                Step::Again => {}
                Step::Refused(refusal) => S::Kind::reclaim(self, refusal)?,
            }
        }
    }

    /// Upserts a record, unless something else must be done first.
    #[inline(never)]
    fn try_put(
        &mut self,
        key: &[u8],
        value: &[u8],
        merges: &Merges,
    ) -> Result<Step<F::Error>, Fault<F::Error>> {
        let mut path = Path::new();
        let height = self.state.height();
        let (level, edit, new) = match self.look(&mut path, key, value, merges)? {
            Look::Same => {
                self.note_change(&path, height);
                return Ok(Step::Done(false));
            }
            Look::Merge(sparse) => return Ok(Step::Merge(sparse)),
            Look::Refused(refusal) => return Ok(Step::Refused(refusal)),
            Look::Replace(index) => (1, Edit::Replace { index, value }, Some(false)),
            Look::Insert(index) => (1, Edit::Insert { index, key, value }, Some(true)),
            Look::Split(level) => (level, Edit::Split, None),
        };
        let records = self.state.records() + u32::from(new == Some(true));
        self.rewrite(&mut path, level, &edit, records, None)?;
        Ok(match new {
            None => Step::Again,
            Some(new) => {
                self.note_change(&path, height);
                Step::Done(new)
            }
        })
    }

    /// Number of full nodes on `path`, counted from the leaf up.
    pub(super) fn full_levels(&self, path: &Path) -> u8 {
        let mut full = 0;
        while full < self.state.height() && path.count(full + 1) >= self.most(full + 1) {
            full += 1;
        }
        full
    }

    /// The level on `path` to split by itself before the leaf takes a record.
    ///
    /// The record goes to slot `index`. Where the parent alone commits a split, the parent needs
    /// room first.
    pub(super) fn to_split(&self, path: &Path, index: usize) -> Option<u8> {
        if !S::SPLITS.trims() {
            return None;
        }
        let full = self.full_levels(path);
        let stays = self.stays_full(1, path.is_right_edge());
        match full {
            0 => None,
            1 if !S::SPLITS.lower_stays() => None,
            1 if index >= left_count(path.count(1), index, stays) => None,
            _ => Some(full),
        }
    }

    /// Descends to a leaf, and decides what has to be done to upsert a record in it.
    // What it finds out is gone when nodes are written.
    #[inline(never)]
    fn look(
        &mut self,
        path: &mut Path,
        key: &[u8],
        value: &[u8],
        merges: &Merges,
    ) -> Result<Look<F::Error>, Fault<F::Error>> {
        self.descend_to_change(path, key, 1)?;
        let node = self.node(self.working(1), 1)?;
        let index = match node.search(key) {
            Ok(index) if node.payload(index) == value => return Ok(Look::Same),
            Ok(_) if self.divides_first(path, merges) => return Ok(Look::Split(1)),
            Ok(index) => return Ok(Look::Replace(index)),
            Err(index) => index,
        };
        let admitted = self.admit(path);
        if let Some(sparse) = self.sparse(self.full_levels(path), admitted.is_err(), merges) {
            return Ok(Look::Merge(sparse));
        }
        Ok(match admitted {
            Err(refusal) => Look::Refused(refusal),
            Ok(()) => self.to_split(path, index).map_or(Look::Insert(index), Look::Split),
        })
    }

    /// Whether the leaf of `path` is split before one of its records is replaced.
    ///
    /// Its nodes do not fit in a page any more, so each change of it would write two. It stays as
    /// it is if that is the largest tree that there may be.
    #[inline]
    fn divides_first(&mut self, path: &Path, merges: &Merges) -> bool {
        S::SHARING.packs()
            && self.state.height() > 1
            && path.count(1) > self.most(1)
            && self.admit(path).is_ok()
            && self.sparse(self.full_levels(path), false, merges).is_none()
    }

    /// Removes a record, in the write buffer or in the tree.
    pub(super) fn remove_now(&mut self, key: &[u8]) -> Result<Removed, Fault<F::Error>> {
        if self.defer(key, None)? {
            return Ok(Removed::Buffered);
        }
        let mut first = true;
        loop {
            self.make_room(core::mem::take(&mut first))?;
            if let Step::Done(found) = self.try_remove_now(key)? {
                #[cfg(feature = "paper-modes")]
                if found && self.rebalances {
                    self.rebalance(key)?;
                }
                return Ok(if found { Removed::Found } else { Removed::Absent });
            }
        }
    }

    /// Removes a record, unless something else must be written first.
    #[inline(never)]
    fn try_remove_now(&mut self, key: &[u8]) -> Result<Step<F::Error>, Fault<F::Error>> {
        let mut path = Path::new();
        self.descend_to_change(&mut path, key, 1)?;
        let height = self.state.height();
        let found = self.node(self.working(1), 1)?.search(key);
        if found.is_ok() && path.count(1) == 1 && self.clear_the_way(&mut path, key)? {
            return Ok(Step::Again);
        }
        if let Ok(index) = found {
            let records = self.state.records().saturating_sub(1);
            self.rewrite(&mut path, 1, &Edit::Remove { index }, records, None)?;
        }
        self.note_change(&path, height);
        // A change of this key that the tree refused earlier is obsolete.
        Ok(Step::Done(self.batch.forget(key).unwrap_or(found.is_ok())))
    }

    /// Checks that the index can take one more record at the end of `path`.
    ///
    /// Called before anything is written.
    pub(super) fn admit(&mut self, path: &Path) -> Result<(), Fault<F::Error>> {
        let divided = u32::from(self.full_levels(path));
        if divided == 0 {
            return Ok(());
        }
        let grows = divided == u32::from(self.state.height());
        if grows && !self.form().can_grow::<S>(self.state.height()) {
            return Err(Fault::TooHigh { height: self.state.height() });
        }
        let height = self.state.height() + u8::from(grows);
        let more_pages = divided + self.pages_to_grow(height);
        let inner_nodes = self.state.inner_nodes() + divided - 1 + u32::from(grows);
        let (limit_pages, beside) = self.limit_and_beside(height, inner_nodes);
        if S::Kind::counted_pages(self) + more_pages + beside <= limit_pages {
            return Ok(());
        }
        Err(self.space.log.no_room(limit_pages))
    }

    /// Withdraws the promises of the write buffer after a change along `path`.
    ///
    /// Also notes how many records the root can have. `before` is the height before the change.
    pub(super) fn note_change(&mut self, path: &Path, before: u8) {
        self.batch.grant(0);
        self.batch.set_root_records(match self.state.height() {
            height if height == before => path.count(height) as u32 + 1,
            height if height > before => 2,
            _ => u32::MAX,
        });
    }

    /// Withdraws the promises of the write buffer: the tree may be a different one.
    pub(super) fn forget_root(&mut self) {
        self.batch.forget_leaves();
        self.batch.grant(0);
        self.batch.set_root_records(u32::MAX);
    }

    /// Pages that a tree of this height takes to grow to `height`.
    ///
    /// They come on top of one page for each split node. It is the page of the new root or, if the
    /// new root takes the old root's page, that of the lower half.
    pub(super) fn pages_to_grow(&self, height: u8) -> u32 {
        S::growth_pages(self.state.height(), height)
    }

    /// The page limit of a tree that grows to `height` and `inner_nodes`, and a margin.
    ///
    /// The first is the number of pages that may be valid. The second counts the pages that
    /// mappings may need beside them at some step on the way. Buffered changes and immediate ones
    /// are checked against the same limit.
    pub(super) fn limit_and_beside(&self, height: u8, inner_nodes: u32) -> (u32, u32) {
        let limit_pages =
            if (height, inner_nodes) == (self.state.height(), self.state.inner_nodes()) {
                self.limit_pages()
            } else {
                self.budget_for(height, inner_nodes).limit_pages
            };
        (limit_pages, S::Kind::pages_beside(self, inner_nodes))
    }
}
