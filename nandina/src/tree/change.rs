//! Records put and taken out. What a change does to the nodes is carried out in `rewrite.rs`; here it is found out what
//! has to be done, and whether it may be.

use super::Index;
use super::descend::Path;
use super::divide::left_count;
use super::fold::kept_for_parents;
use super::rewrite::Edit;
use crate::error::{Fault, WriteError};
use crate::flash::Flash;
use crate::place::Placement;

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Puts a record, replacing the value that `key` had. Answers whether the key is new; nothing if the write buffer
    /// took it, for then the tree was not asked.
    ///
    /// Cost: at most *h* reads, and as many programs as the system's path has pages, one more for each
    /// split. A value that is already there costs no program. Nothing if the write buffer takes it; the cost of a
    /// [`flush`](Self::flush) more if it is full. If that flush fails, the change is refused as well; but if it was due
    /// to [`Options::write_buffer_changes`](super::Options::write_buffer_changes), the change waits with the others.
    pub fn insert(
        &mut self,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<bool>, WriteError<F::Error>> {
        self.check_key(key).map_err(|(expected, given)| WriteError::KeySize { expected, given })?;
        let expected = usize::from(self.space.medium.value_bytes);
        if value.len() != expected {
            return Err(WriteError::ValueSize { expected, given: value.len() });
        }
        if self.defer(key, Some(value))? {
            return Ok(None);
        }
        loop {
            self.make_room()?;
            let (path, height) = (self.descend_to_change(key, 1)?, self.height);
            let node = self.node(self.working(1), 1)?;
            let new = match node.search(key) {
                Ok(index) if node.payload(index) == value => false,
                Ok(index) => {
                    self.rewrite(&path, 1, Edit::Replace { index, value }, self.records, None)?;
                    false
                }
                Err(index) => {
                    if let Err(refusal) = self.admit(&path) {
                        self.reclaim_name(refusal)?;
                        continue;
                    }
                    if let Some(level) = self.to_divide(&path, index) {
                        self.rewrite(&path, level, Edit::Divide, self.records, None)?;
                        continue;
                    }
                    let edit = Edit::Insert { index, key, value };
                    self.rewrite(&path, 1, edit, self.records + 1, None)?;
                    true
                }
            };
            self.note_change(&path, height);
            return Ok(Some(new));
        }
    }

    /// The node on `path` that has to be divided by itself before the leaf takes a record at `index`: where the
    /// parent alone commits a division, it needs room for one.
    pub(super) fn to_divide(&self, path: &Path, index: usize) -> Option<u8> {
        if !S::TRIMS {
            return None;
        }
        let full = |level: &u8| path.count(*level) >= self.capacity(*level);
        let full = (1..=self.height).take_while(full).count() as u8;
        let edge = path.right_edge && self.height > 1;
        match full {
            0 => None,
            1 if !S::LEFT_STAYS => None,
            1 if index >= left_count(path.count(1), index, edge) => None,
            _ => Some(full),
        }
    }

    /// Takes the record of `key` out. Answers whether there was one; nothing if the write buffer took the change, for
    /// then the tree was not asked. Cost: as a replacing insert.
    pub fn remove(&mut self, key: &[u8]) -> Result<Option<bool>, WriteError<F::Error>> {
        self.check_key(key).map_err(|(expected, given)| WriteError::KeySize { expected, given })?;
        if self.defer(key, None)? {
            return Ok(None);
        }
        let (path, height, found) = loop {
            self.make_room()?;
            let (path, height) = (self.descend_to_change(key, 1)?, self.height);
            let found = self.node(self.working(1), 1)?.search(key);
            if found.is_err() || path.count(1) > 1 || !self.clear_the_way(&path)? {
                break (path, height, found);
            }
        };
        if let Ok(index) = found {
            let records = self.records.saturating_sub(1);
            self.rewrite(&path, 1, Edit::Remove { index }, records, None)?;
        }
        self.note_change(&path, height);
        // What the tree refused waits no more if it was of this key.
        Ok(Some(self.batch.forget(key).unwrap_or(found.is_ok())))
    }

    /// Whether the index can take one more record at the end of `path`, before anything is written.
    pub(super) fn admit(&mut self, path: &Path) -> Result<(), WriteError<F::Error>> {
        let divided = (1..=self.height)
            .take_while(|&level| path.count(level) >= self.capacity(level))
            .count() as u32;
        if divided == 0 {
            return Ok(());
        }
        let grows = divided == u32::from(self.height);
        if grows && !self.form().can_grow::<S>(self.height) {
            return Err(WriteError::TooHigh { height: self.height });
        }
        let height = self.height + u8::from(grows);
        let more_pages = divided + S::path_pages(height) - S::path_pages(self.height);
        let inner_nodes = self.inner_nodes + divided - 1 + u32::from(grows);
        let budget = if inner_nodes == self.inner_nodes {
            self.budget
        } else {
            self.budget_for(height, inner_nodes)
        };
        let mapped = if S::DESCRIPTION.maps {
            1 + kept_for_parents(self.space.mappings.capacity(), self.inner_nodes)
        } else {
            0
        };
        let valid_pages = self.space.taken_pages() + more_pages + mapped;
        if valid_pages <= budget.limit_pages {
            return Ok(());
        }
        Err(match self.space.no_room(budget.limit_pages) {
            Fault::NoRoom { limit_pages, .. } => WriteError::Full { valid_pages, limit_pages },
            worn_out => worn_out.into(),
        })
    }
}
