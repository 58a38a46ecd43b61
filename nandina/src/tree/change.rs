//! Records put and taken out. What a change does to the nodes is carried out in `rewrite.rs`; here
//! it is found out what has to be done, and whether it may be.

use super::Index;
use super::descend::Path;
use super::divide::left_count;
use super::merge::{Merges, Sparse};
use super::rewrite::Edit;
use crate::error::{Fault, WriteError};
use crate::flash::Flash;
use crate::place::Placement;

/// What has to be done to put a record.
enum Look<E> {
    /// Nothing: it is there.
    Same,
    /// The record at this place gets another value.
    Replace(usize),
    /// The record is put at this place.
    Insert(usize),
    /// The node of this level is divided first.
    Divide(u8),
    /// Nodes are merged first.
    Merge(Sparse),
    /// There is no room for it.
    Refused(Fault<E>),
}

/// What came of a try to change a record.
enum Step<E> {
    /// The change is made, and a record is new or was there.
    Done(bool),
    /// Something else had to be written first. There may be less room than before.
    Again,
    /// Nodes are merged first.
    Merge(Sparse),
    /// There is no room for it.
    Refused(Fault<E>),
}

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Puts a record, replacing the value that `key` had. Answers whether the key is new; nothing
    /// if the write buffer took it, for then the tree was not asked.
    ///
    /// Cost: at most *h* reads, and as many programs as the system's path has pages, one more for
    /// each split. In a tree that was thinned out a split may merge nodes first: at most four times
    /// that, and one or two reads for each node. A value that is already there costs no program.
    /// Nothing if the write buffer takes it; the cost of a [`flush`](Self::flush) more if it is
    /// full. If that flush fails, the change is refused as well and does not wait; the changes that
    /// waited before still do.
    pub fn insert(
        &mut self,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<bool>, WriteError<F::Error>> {
        self.check_key(key).map_err(|(expected, given)| WriteError::KeySize { expected, given })?;
        let expected = usize::from(self.space.log.medium.value_bytes);
        if value.len() != expected {
            return Err(WriteError::ValueSize { expected, given: value.len() });
        }
        Ok(self.put(key, value)?)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, Fault<F::Error>> {
        if self.defer(key, Some(value))? {
            return Ok(None);
        }
        let (mut merges, mut first) = (Merges::default(), true);
        loop {
            self.make_room(core::mem::take(&mut first))?;
            // Room is made while nothing of the change is on the stack.
            match self.try_put(key, value, &merges)? {
                Step::Merge(sparse) => self.merge(sparse, &mut merges)?,
                Step::Done(new) => {
                    // What the tree refused before waits no more if it was of this key.
                    self.batch.forget(key);
                    return Ok(Some(new));
                }
                Step::Again => {}
                Step::Refused(refusal) => self.reclaim_name(refusal)?,
            }
        }
    }

    /// Puts a record, or makes way for it.
    #[inline(never)]
    fn try_put(
        &mut self,
        key: &[u8],
        value: &[u8],
        merges: &Merges,
    ) -> Result<Step<F::Error>, Fault<F::Error>> {
        let mut path = Path::new();
        self.descend_to_change(&mut path, key, 1)?;
        let height = self.height;
        let (level, edit, new) = match self.look(&path, key, value, merges)? {
            Look::Same => {
                self.note_change(&path, height);
                return Ok(Step::Done(false));
            }
            Look::Merge(sparse) => return Ok(Step::Merge(sparse)),
            Look::Refused(refusal) => return Ok(Step::Refused(refusal)),
            Look::Replace(index) => (1, Edit::Replace { index, value }, Some(false)),
            Look::Insert(index) => (1, Edit::Insert { index, key, value }, Some(true)),
            Look::Divide(level) => (level, Edit::Divide, None),
        };
        let records = self.records + u32::from(new == Some(true));
        self.rewrite(&mut path, level, &edit, records, None)?;
        Ok(match new {
            None => Step::Again,
            Some(new) => {
                self.note_change(&path, height);
                Step::Done(new)
            }
        })
    }

    /// Nodes from the leaf up that are full.
    pub(super) fn full_levels(&self, path: &Path) -> u8 {
        let mut full = 0;
        while full < self.height && path.count(full + 1) >= self.capacity(full + 1) {
            full += 1;
        }
        full
    }

    /// The node on `path` that has to be divided by itself before the leaf takes a record at
    /// `index`: where the parent alone commits a division, it needs room for one.
    pub(super) fn to_divide(&self, path: &Path, index: usize) -> Option<u8> {
        if !S::TRIMS {
            return None;
        }
        let full = self.full_levels(path);
        let edge = path.right_edge && self.height > 1;
        match full {
            0 => None,
            1 if !S::LEFT_STAYS => None,
            1 if index >= left_count(path.count(1), index, edge) => None,
            _ => Some(full),
        }
    }

    /// What has to be done to put a record into the leaf at the end of `path`.
    fn look(
        &mut self,
        path: &Path,
        key: &[u8],
        value: &[u8],
        merges: &Merges,
    ) -> Result<Look<F::Error>, Fault<F::Error>> {
        let node = self.node(self.working(1), 1)?;
        let index = match node.search(key) {
            Ok(index) if node.payload(index) == value => return Ok(Look::Same),
            Ok(index) => return Ok(Look::Replace(index)),
            Err(index) => index,
        };
        let admitted = self.admit(path);
        if let Some(sparse) = self.sparse(self.full_levels(path), admitted.is_err(), merges) {
            return Ok(Look::Merge(sparse));
        }
        Ok(match admitted {
            Err(refusal) => Look::Refused(refusal),
            Ok(()) => self.to_divide(path, index).map_or(Look::Insert(index), Look::Divide),
        })
    }

    /// Takes the record of `key` out. Answers whether there was one; nothing if the write buffer
    /// took the change, for then the tree was not asked. Cost: as a replacing insert.
    pub fn remove(&mut self, key: &[u8]) -> Result<Option<bool>, WriteError<F::Error>> {
        self.check_key(key).map_err(|(expected, given)| WriteError::KeySize { expected, given })?;
        Ok(self.take_out(key)?)
    }

    fn take_out(&mut self, key: &[u8]) -> Result<Option<bool>, Fault<F::Error>> {
        if self.defer(key, None)? {
            return Ok(None);
        }
        let mut first = true;
        loop {
            self.make_room(core::mem::take(&mut first))?;
            if let Step::Done(found) = self.try_take_out(key)? {
                return Ok(Some(found));
            }
        }
    }

    /// Takes a record out, or makes way for that.
    #[inline(never)]
    fn try_take_out(&mut self, key: &[u8]) -> Result<Step<F::Error>, Fault<F::Error>> {
        let mut path = Path::new();
        self.descend_to_change(&mut path, key, 1)?;
        let height = self.height;
        let found = self.node(self.working(1), 1)?.search(key);
        if found.is_ok() && path.count(1) == 1 && self.clear_the_way(&mut path, key)? {
            return Ok(Step::Again);
        }
        if let Ok(index) = found {
            let records = self.records.saturating_sub(1);
            self.rewrite(&mut path, 1, &Edit::Remove { index }, records, None)?;
        }
        self.note_change(&path, height);
        // What the tree refused waits no more if it was of this key.
        Ok(Step::Done(self.batch.forget(key).unwrap_or(found.is_ok())))
    }

    /// Whether the index can take one more record at the end of `path`, before anything is written.
    pub(super) fn admit(&mut self, path: &Path) -> Result<(), Fault<F::Error>> {
        let divided = u32::from(self.full_levels(path));
        if divided == 0 {
            return Ok(());
        }
        let grows = divided == u32::from(self.height);
        if grows && !self.form().can_grow::<S>(self.height) {
            return Err(Fault::TooHigh { height: self.height });
        }
        let height = self.height + u8::from(grows);
        let more_pages = divided + self.pages_to_grow(height);
        let inner_nodes = self.inner_nodes + divided - 1 + u32::from(grows);
        let (limit_pages, beside) = self.limit_and_beside(height, inner_nodes);
        if self.space.taken_pages() + more_pages + beside <= limit_pages {
            return Ok(());
        }
        Err(self.space.log.no_room(limit_pages))
    }

    /// The tree was changed along `path`, when it had a height of `before`.
    pub(super) fn note_change(&mut self, path: &Path, before: u8) {
        self.batch.grant(0);
        self.batch.set_root_records(match self.height {
            height if height == before => path.count(height) as u32 + 1,
            height if height > before => 2,
            _ => u32::MAX,
        });
    }

    /// The tree may be another one than it was.
    pub(super) fn forget_root(&mut self) {
        self.batch.grant(0);
        self.batch.set_root_records(u32::MAX);
    }

    /// Pages that a tree takes which grows to `height`, beside one for each node that is divided: a
    /// new root's, and that of a root's lower half where the root's own page becomes the new
    /// root's.
    pub(super) fn pages_to_grow(&self, height: u8) -> u32 {
        if S::DESCRIPTION.in_place {
            return u32::from(height - self.height);
        }
        S::path_pages(height) - S::path_pages(self.height)
    }

    /// Pages that may be valid in a tree that grows to `height` and `inner_nodes`, and pages that
    /// mappings may need beside them at some step on the way. What may wait in the write buffer and
    /// what may be changed at once are measured by it alike.
    pub(super) fn limit_and_beside(&self, height: u8, inner_nodes: u32) -> (u32, u32) {
        let limit_pages = if (height, inner_nodes) == (self.height, self.inner_nodes) {
            self.budget.limit_pages
        } else {
            self.budget_for(height, inner_nodes).limit_pages
        };
        // A name that the change adds, and the places of all inner nodes.
        let beside = if S::DESCRIPTION.maps { 1 + self.kept_until(inner_nodes) } else { 0 };
        (limit_pages, beside)
    }
}
