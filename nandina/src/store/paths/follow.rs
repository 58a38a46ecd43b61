//! How the valid pages changed from the tree of a checkpoint to the current one.
//!
//! Pages are never changed in place, and after a checkpoint only blocks that it lists are erased.
//! So the old tree can still be read, and the content of an older page is the same in both trees.
//! Only nodes in newer pages are visited, and the older nodes that they replaced; leaves are not
//! read.

use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::node::SAME_PAGE;
use crate::space::{Paths, Tree};
use crate::tree::{Index, KEY_BYTES_MAX, Placement, Walk, node_in};

/// A node of the current tree, and the first key behind its range.
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

impl<F: Flash, S: Placement<Kind = Paths>> Index<'_, F, S> {
    /// Marks pages of the tree `old` that the current tree does not use as not valid.
    ///
    /// Cost: at most one read for each inner node that was replaced, one more for each of these
    /// with inner nodes below, and one for each newer inner node.
    pub(super) fn drop_replaced(&mut self, old: &Tree) -> Result<(), Fault<F::Error>> {
        if old.root == self.root {
            return Ok(());
        }
        if old.height == 1 {
            return self.disclaim(old.root);
        }
        let mut parent = Parent { level: 0, page: 0, end: None };
        let last = self.space.log.frames.count() - 1;
        let pages = self.space.log.geometry().pages();
        let mut walk = Walk::new(old.root, old.height, pages, 2);
        // Pages of the old tree are read into a buffer of their own.
        while !walk.is_over() {
            let (level, page, slot) = (walk.level(), walk.page(), walk.slot());
            let frame = self.space.load(page, last)?;
            let header = self.space.log.header(frame);
            let at = self.form().level::<S>(level, old.height);
            let Some(node) = node_in::<S, F>(&self.space, frame, at) else {
                let reason = Damage::CheckpointNodeTooFull;
                return Err(Fault::Corrupt { page: PageNumber(page), reason });
            };
            let child = (slot < node.count()).then(|| {
                let pointer = node.pointer(slot);
                (padded(node.key(slot)), if pointer == SAME_PAGE { page } else { pointer })
            });
            if walk.is_new() {
                let reason = Damage::CheckpointCountsTooFew;
                let corrupt = Fault::Corrupt { page: PageNumber(page), reason };
                self.inner_nodes = self.inner_nodes.checked_sub(1).ok_or(corrupt)?;
                if header.lowest == level {
                    self.disclaim(page)?;
                }
            }
            let Some((key, child)) = child else {
                walk.leave();
                continue;
            };
            if self.page_toward(&mut parent, &key, level - 1)? == Some(child) {
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

    /// The page of the current tree's node of `level` to which `key` belongs.
    ///
    /// Returns `None` if the tree is not that high. The page is not read. Keys rise from call to
    /// call, so the descent is repeated only when they leave a parent.
    fn page_toward(
        &mut self,
        parent: &mut Parent,
        key: &[u8],
        level: u8,
    ) -> Result<Option<u32>, Fault<F::Error>> {
        if level >= self.height {
            return Ok((level == self.height).then_some(self.root));
        }
        let key = &key[..usize::from(self.space.log.medium.key_bytes)];
        let others = self.space.log.frames.count() - 1;
        let holds = parent.level == level + 1
            && parent.end.as_ref().is_none_or(|end| key < &end[..key.len()]);
        if !holds {
            *parent = Parent { level: self.height, page: self.root, end: None };
        }
        loop {
            let frame = self.space.load(parent.page, usize::from(parent.level) % others)?;
            let node = self.node(frame, parent.level)?;
            if node.count() == 0 {
                let reason = Damage::LacksNode;
                return Err(Fault::Corrupt { page: PageNumber(parent.page), reason });
            }
            let slot = node.child_slot(key);
            let end = (slot + 1 < node.count()).then(|| padded(node.key(slot + 1)));
            let child = self.child(parent.page, frame, parent.level, slot)?;
            if parent.level == level + 1 {
                return Ok(Some(child));
            }
            *parent = Parent { level: parent.level - 1, page: child, end: end.or(parent.end) };
        }
    }

    fn disclaim(&mut self, page: u32) -> Result<(), Fault<F::Error>> {
        let page = PageNumber(page);
        if page.0 >= self.space.log.geometry().pages() || !self.space.log.blocks.is_valid(page) {
            let reason = Damage::NotInCheckpoint;
            return Err(Fault::Corrupt { page, reason });
        }
        self.space.log.blocks.set_valid(page, false);
        Ok(())
    }
}
