//! How the valid pages changed from one tree to a later one.
//!
//! Pages are never changed in place, and a mount relies on a checkpoint only while the older tree
//! can still be read. The content of a page is the same in both trees. So only nodes that differ
//! are visited; leaves are not read.
//!
//! Nothing is written.

use super::walk::Walk;
use super::{Index, KEY_BYTES_MAX, Placement, Top, node_in};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::node::SAME_PAGE;

/// A node of the newer tree, and the first key behind its range.
struct Parent {
    level: u8,
    page: u32,
    end: Option<[u8; KEY_BYTES_MAX]>,
}

fn padded(key: &[u8]) -> [u8; KEY_BYTES_MAX] {
    let mut padded = [0; KEY_BYTES_MAX];
    padded[..key.len()].copy_from_slice(key);
    padded
}

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Marks pages below `old` that the tree below `new` does not use as not valid.
    ///
    /// Their mappings are dropped, and those that the newer tree flushed.
    ///
    /// Cost: at most one read for each inner node that was replaced, one more for each of these
    /// with inner nodes below, and one for each newer inner node.
    pub(crate) fn drop_replaced(&mut self, old: Top, new: Top) -> Result<(), Fault<F::Error>> {
        if old == new {
            return Ok(());
        }
        if old.level <= 1 {
            return self.disclaim(old.page);
        }
        let mut parent = Parent { level: 0, page: 0, end: None };
        let last = self.space.log.frames.count() - 1;
        let pages = self.space.log.geometry().pages();
        let mut walk = Walk::new(old, pages, 2);
        // Pages of the old tree are read into a buffer of their own.
        while !walk.is_over() {
            let (level, page, slot) = (walk.level(), walk.page(), walk.slot());
            let frame = self.space.load(page, last)?;
            let lowest = self.space.log.header(frame).lowest;
            let at = self.form().level::<S>(level, old.level);
            let Some(node) = node_in::<S, F>(&self.space, frame, at) else {
                let reason = Damage::CheckpointNodeTooFull;
                return Err(Fault::Corrupt { page: PageNumber(page), reason });
            };
            if slot >= node.count() {
                let reason = Damage::CheckpointCountsTooFew;
                let corrupt = Fault::Corrupt { page: PageNumber(page), reason };
                self.inner_nodes = self.inner_nodes.checked_sub(1).ok_or(corrupt)?;
                if lowest == level {
                    self.disclaim(page)?;
                }
                walk.leave();
                continue;
            }
            let (key, pointer) = (padded(node.key(slot)), node.pointer(slot));
            let child = if pointer == SAME_PAGE { page } else { pointer };
            let newer = self.page_toward(new, &mut parent, &key, level - 1)?;
            if newer == Some(child) {
                walk.pass();
            } else if newer == Some(self.space.current_page(child)) {
                // Its parent took the page in which it is: the mapping was flushed.
                self.flush_address(child)?;
                walk.pass();
            } else if level == 2 {
                self.disclaim(child)?;
                walk.pass();
            } else {
                walk.enter(child);
            }
        }
        self.walked(&walk)
    }

    /// The page of the node of `level` below `top` to which `key` belongs.
    ///
    /// Returns `None` if the tree is not that high. The page is not read. Keys rise from call to
    /// call, so the descent is repeated only when they leave a parent.
    fn page_toward(
        &mut self,
        top: Top,
        parent: &mut Parent,
        key: &[u8],
        level: u8,
    ) -> Result<Option<u32>, Fault<F::Error>> {
        if level >= top.level {
            return Ok((level == top.level).then_some(top.page));
        }
        let key = &key[..usize::from(self.space.log.medium.key_bytes)];
        let others = self.space.log.frames.count() - 1;
        let holds = parent.level == level + 1
            && parent.end.as_ref().is_none_or(|end| key < &end[..key.len()]);
        if !holds {
            *parent = Parent { level: top.level, page: top.page, end: None };
        }
        loop {
            let frame = self.space.load(parent.page, usize::from(parent.level) % others)?;
            let at = self.form().level::<S>(parent.level, top.level);
            let node = node_in::<S, F>(&self.space, frame, at).filter(|node| node.count() > 0);
            let Some(node) = node else {
                let reason = Damage::LacksNode;
                return Err(Fault::Corrupt { page: PageNumber(parent.page), reason });
            };
            let slot = node.child_slot(key);
            let end = (slot + 1 < node.count()).then(|| padded(node.key(slot + 1)));
            let child = self.pointed_to(parent.page, node.pointer(slot))?;
            if parent.level == level + 1 {
                return Ok(Some(child));
            }
            *parent = Parent { level: parent.level - 1, page: child, end: end.or(parent.end) };
        }
    }

    /// Marks the page of a node as not valid, and drops its mapping.
    fn disclaim(&mut self, page: u32) -> Result<(), Fault<F::Error>> {
        let current = self.space.current_page(page);
        if current != page {
            self.flush_address(page)?;
        }
        self.disclaim_page(PageNumber(current))
    }

    /// Drops the mapping of the logical address `name`. Its page is not kept any more.
    fn flush_address(&mut self, name: u32) -> Result<(), Fault<F::Error>> {
        self.disclaim_page(PageNumber(name))?;
        self.space.mappings.remove(name);
        Ok(())
    }

    fn disclaim_page(&mut self, page: PageNumber) -> Result<(), Fault<F::Error>> {
        if page.0 >= self.space.log.geometry().pages() || !self.space.log.blocks.is_valid(page) {
            let reason = Damage::NotInCheckpoint;
            return Err(Fault::Corrupt { page, reason });
        }
        self.space.log.blocks.set_valid(page, false);
        Ok(())
    }
}
