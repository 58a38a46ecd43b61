//! How the valid pages changed from one tree to a later one.
//!
//! Pages are never changed in place, and a mount relies on a checkpoint only while the older tree
//! can still be read. The content of a page is the same in both trees. So only nodes that differ
//! are visited; leaves are not read.
//!
//! Nothing is written.

use super::walk::Walk;
use super::{HEIGHT_MAX, Placement, Top, TreeIndex, node_in};
use crate::engine::KEY_BYTES_MAX;
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};
use crate::node::SAME_PAGE;

/// The first key past the range of a node; `None` for the last node.
type End = Option<[u8; KEY_BYTES_MAX]>;

/// A node of the newer tree, and the end of its range.
struct Parent {
    level: u8,
    page: u32,
    end: End,
}

impl Parent {
    /// None was found yet.
    const NONE: Self = Self { level: 0, page: 0, end: None };
}

/// Whether `key` is before the end of a range.
fn is_before(key: &[u8; KEY_BYTES_MAX], end: Option<&[u8; KEY_BYTES_MAX]>) -> bool {
    end.is_none_or(|end| key < end)
}

fn padded(key: &[u8]) -> [u8; KEY_BYTES_MAX] {
    let mut padded = [0; KEY_BYTES_MAX];
    padded[..key.len()].copy_from_slice(key);
    padded
}

impl<F: Flash, S: Placement> TreeIndex<'_, F, S> {
    /// Marks pages below `old` that the tree below `new` does not use as not valid.
    ///
    /// `old` is a node of `tree`, or its root. Their mappings are dropped, and those that the newer
    /// tree flushed. A node that was split keeps its page, in which the records of its upper half
    /// stay: they belong to the new neighbour, which may have flushed mappings of theirs.
    ///
    /// Cost: at most one read for each inner node that was replaced or split, one more for each of
    /// these with inner nodes below, one for each newer inner node, and one for each level.
    pub(crate) fn drop_replaced(
        &mut self,
        tree: Top,
        old: Top,
        new: Top,
    ) -> Result<(), Fault<F::Error>> {
        if old == new {
            return Ok(());
        }
        if old.level <= 1 {
            return self.disclaim(old.page);
        }
        // The first key past the range of each node on the way, by level.
        let mut ends: [End; HEIGHT_MAX as usize + 1] = [None; HEIGHT_MAX as usize + 1];
        ends[usize::from(old.level)] = self.end_of(tree, old)?;
        let mut parent = Parent::NONE;
        let last = self.space.log.frames.count() - 1;
        let pages = self.space.log.geometry().pages();
        let mut walk = Walk::new(old, pages, 2);
        // Pages of the old tree are read into a buffer of their own.
        while !walk.is_over() {
            let (level, page, slot) = (walk.level(), walk.page(), walk.slot());
            let end = ends[usize::from(level)];
            let frame = self.space.load(page, last)?;
            let lowest = self.space.log.header(frame).lowest;
            let at = self.form().level::<S>(level, old.level);
            let Some(node) =
                node_in::<S, F>(&self.space, frame, at).filter(|node| node.count() > 0)
            else {
                let reason = Damage::CheckpointNodeTooFull;
                return Err(Fault::Corrupt { page: PageNumber(page), reason });
            };
            let key_at = |slot: usize| (slot < node.count()).then(|| padded(node.key(slot)));
            // A node keeps its first record.
            let key = key_at(slot).filter(|key| slot == 0 || is_before(key, end.as_ref()));
            let Some(key) = key else {
                let first = padded(node.key(0));
                let corrupt = Damage::CheckpointCountsTooFew;
                let corrupt = Fault::Corrupt { page: PageNumber(page), reason: corrupt };
                let stays = self.page_toward(new, &mut parent, &first, level)?;
                if stays.is_none_or(|(newer, _)| newer != page) {
                    if !self.state.drop_inner_node() {
                        return Err(corrupt);
                    }
                    if lowest == level {
                        self.disclaim(page)?;
                    }
                }
                walk.leave();
                continue;
            };
            let next = key_at(slot + 1).filter(|next| is_before(next, end.as_ref())).or(end);
            let pointer = node.pointer(slot);
            let child = if pointer == SAME_PAGE { page } else { pointer };
            let current = self.space.current_page(child);
            match self.page_toward(new, &mut parent, &key, level - 1)? {
                Some((newer, behind)) if newer == child || newer == current => {
                    if newer != child {
                        // Its parent took the page in which it is: the mapping was flushed.
                        self.flush_address(child)?;
                    }
                    let split = behind.as_ref().is_some_and(|end| is_before(end, next.as_ref()));
                    if S::SPLITS.trims() && level > 2 && split {
                        ends[usize::from(level - 1)] = next;
                        walk.enter(newer);
                    } else {
                        walk.pass();
                    }
                }
                _ if level == 2 => {
                    self.disclaim(child)?;
                    walk.pass();
                }
                _ => {
                    ends[usize::from(level - 1)] = next;
                    walk.enter(child);
                }
            }
        }
        self.walked(&walk)
    }

    /// The first key past the range of the node `of` of `tree`.
    ///
    /// `None` if there is none, or if no page holds records that belong elsewhere.
    fn end_of(&mut self, tree: Top, of: Top) -> Result<End, Fault<F::Error>> {
        if !S::SPLITS.trims() || of == tree {
            return Ok(None);
        }
        let frame = self.space.load(of.page, self.space.log.frames.count() - 1)?;
        let at = self.form().level::<S>(of.level, tree.level);
        let first = node_in::<S, F>(&self.space, frame, at).filter(|node| node.count() > 0);
        let Some(first) = first.map(|node| padded(node.key(0))) else { return Ok(None) };
        let mut parent = Parent::NONE;
        let found = self.page_toward(tree, &mut parent, &first, of.level)?;
        Ok(found.and_then(|(_, end)| end))
    }

    /// The page of the node of `level` to which `key` belongs, and its range's end.
    ///
    /// The node is one below `top`.
    ///
    /// Returns `None` if the tree is not that high. The page is not read. Keys rise from call to
    /// call, so the descent is repeated only when they leave a parent, or for another level.
    fn page_toward(
        &mut self,
        top: Top,
        parent: &mut Parent,
        key: &[u8],
        level: u8,
    ) -> Result<Option<(u32, End)>, Fault<F::Error>> {
        if level >= top.level {
            return Ok((level == top.level).then_some((top.page, None)));
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
            let end = end.filter(|end| is_before(end, parent.end.as_ref())).or(parent.end);
            let child = self.pointed_to(parent.page, node.pointer(slot))?;
            if parent.level == level + 1 {
                return Ok(Some((child, end)));
            }
            *parent = Parent { level: parent.level - 1, page: child, end };
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

    /// Drops the mapping of the logical address `name`. Its page is no longer kept.
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
