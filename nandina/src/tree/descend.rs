//! The way from the root down to a node, for reading or for a change.
//!
//! Nothing is written here.

use super::path::{Path, Toward};
use super::placement::default_buffer;
use super::{Placement, TreeIndex};
use crate::error::{Damage, Fault};
use crate::flash::Flash;
use crate::node::SAME_PAGE;
use crate::space::{Kind, STAGED};

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Reads the node of `level` on `path` into a page buffer.
    pub(super) fn visit(&mut self, path: &mut Path, level: u8) -> Result<usize, Fault<F::Error>> {
        self.load_trimmed(path, level, None)
    }

    /// The page buffer into which a node of `level` is read if no buffer holds it.
    #[inline(never)]
    pub(crate) fn visiting(&self, level: u8) -> usize {
        let buffers = self.space.log.frames.count();
        if self.space.keeps_pages() {
            default_buffer(level, self.state.height(), buffers)
        } else {
            (usize::from(level) - 1) % buffers
        }
    }

    /// The page of the child at `slot` of the node of `level` in `frame`, on `page`.
    pub(crate) fn child(
        &self,
        page: u32,
        frame: usize,
        level: u8,
        slot: usize,
    ) -> Result<u32, Fault<F::Error>> {
        let pointer = self.node(frame, level)?.pointer(slot);
        self.pointed_to(page, pointer)
    }

    /// The page to which `pointer` leads, in a node that is on `page`.
    #[inline(always)]
    pub(crate) fn pointed_to(&self, page: u32, pointer: u32) -> Result<u32, Fault<F::Error>> {
        if pointer == SAME_PAGE {
            return Ok(page);
        }
        let is_staged = pointer & STAGED != 0 && S::Kind::staged(&self.space) != (0, 0);
        if pointer >= self.space.log.geometry().pages() && !is_staged {
            return Err(self.corrupt_at(page, Damage::BeyondChip));
        }
        Ok(pointer)
    }

    /// Descends from the root to the node of level `stop` that `key` belongs to.
    #[inline]
    pub(crate) fn descend(
        &mut self,
        path: &mut Path,
        key: &[u8],
        stop: u8,
        change: bool,
    ) -> Result<(), Fault<F::Error>> {
        path.begin(self.state.height(), self.state.root());
        self.descend_from(path, self.state.height(), stop, Toward::Key(key), change)
    }

    /// Begins a change: descends toward `key` and passes each node to the store.
    #[inline(never)]
    pub(super) fn descend_to_change(
        &mut self,
        path: &mut Path,
        key: &[u8],
        stop: u8,
    ) -> Result<(), Fault<F::Error>> {
        self.space.begin_walk();
        self.place.begin(&mut self.space, stop);
        self.descend(path, key, stop, true)
    }

    /// Descends from level `from`, whose page is in `path`, to level `stop`.
    pub(super) fn descend_from(
        &mut self,
        path: &mut Path,
        from: u8,
        stop: u8,
        toward: Toward<'_>,
        change: bool,
    ) -> Result<(), Fault<F::Error>> {
        let mut level = from;
        let mut bounded = S::SPLITS.trims() && self.find_bound(path, level)?;
        loop {
            let reading = S::reading(level, self.state.height(), self.space.log.frames.count());
            let frame = self.load_bounded(path, level, change.then_some(reading), bounded)?;
            let child = self.choose_child(path, level, frame, toward, change && level > stop)?;
            if change {
                let (level, page) = (self.level(level), path.page(level));
                self.place.pass(&mut self.space, level, page);
            }
            if level == stop {
                path.end_in(frame);
                return Ok(());
            }
            if path.slot(level) + 1 < path.count(level) {
                path.leave_right_edge();
                if S::SPLITS.trims() {
                    self.keep_bound(frame, level, path.slot(level) + 1)?;
                    bounded = true;
                }
            }
            level -= 1;
            path.set_page(level, child);
        }
    }

    /// Notes in `path` which child of the node of `level` in `frame` is taken.
    ///
    /// Also notes how many pending changes are below the child's upper neighbour. Returns the page
    /// of the child; for a leaf the result has no meaning.
    #[inline(never)]
    fn choose_child(
        &self,
        path: &mut Path,
        level: u8,
        frame: usize,
        toward: Toward<'_>,
        change: bool,
    ) -> Result<u32, Fault<F::Error>> {
        let node = self.node(frame, level)?;
        let count = node.count();
        let slot = match toward {
            _ if level == 1 || count == 0 => 0,
            Toward::Key(key) => node.child_slot(key),
            Toward::First => 0,
            Toward::Last => count - 1,
        };
        if path.lowest(level) > level || (count == 0 && self.state.height() > 1) {
            return Err(self.corrupt_at(path.page(level), Damage::LacksNode));
        }
        if change && slot + 1 < count {
            path.limit_waiting(self.batch.below(node.key(slot + 1)));
        }
        path.set_slot(level, slot);
        if level == 1 {
            return Ok(0);
        }
        self.child(path.page(level), frame, level, slot)
    }
}
