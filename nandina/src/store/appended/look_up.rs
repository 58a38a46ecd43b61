//! A lookup where records are appended: nodes are searched within their pages.
//!
//! They are not unpacked for it. Nothing is written here.
//!
//! Stale records, which are trimmed elsewhere, need no bound here: the key is below the bounds of
//! all nodes on its path, and the stale records are not.

use core::ops::Range;

use crate::bytes::u32_at;
use crate::error::{Damage, Fault};
use crate::flash::Flash;
use crate::node::{Node, appended};
use crate::space::Appends;
use crate::tree::{Placement, TreeIndex};

/// Where a payload is in a page buffer, and a detail of it, if there is one.
type Found<T, F> = Result<Option<(T, Range<usize>)>, Fault<<F as Flash>::Error>>;

impl<F: Flash, S: Placement<Kind = Appends>> TreeIndex<'_, F, S> {
    /// The page buffer that holds the leaf of `key`, and where the value is in it.
    ///
    /// Cost: at most *h* page reads.
    pub(super) fn look_up_appended(&mut self, key: &[u8]) -> Found<usize, F> {
        let (mut page, mut level) = (self.state.root(), self.state.height());
        loop {
            let frame = self.space.fetch(page, self.visiting(level))?;
            let Some((is_key, payload)) = self.nearest(frame, level, key)? else {
                if self.state.height() > 1 {
                    return Err(self.corrupt_at(page, Damage::LacksNode));
                }
                return Ok(None);
            };
            if level == 1 {
                return Ok(is_key.then_some((frame, payload)));
            }
            let pointer = u32_at(&self.space.log.frames.bytes(frame)[payload], 0);
            page = self.pointed_to(page, pointer)?;
            level -= 1;
        }
    }

    /// The payload of `key`, or of the nearest key, in the node of `level` in `frame`.
    ///
    /// The nearest key is the highest one below, or the lowest of all. The flag states whether the
    /// payload is that of `key`. `None` if the node is empty.
    fn nearest(&self, frame: usize, level: u8, key: &[u8]) -> Found<bool, F> {
        let (bytes, layout) = (self.space.log.frames.bytes(frame), self.space.log.layout());
        if layout.lowest(bytes) > level {
            return Err(self.corrupt(frame, Damage::LacksNode));
        }
        let at = self.level(level);
        let extent = S::extent(layout.area_bytes(), level, self.state.height());
        let area = &bytes[extent.clone()];
        let found = if layout.is_packed(bytes) {
            let Ok(found) = appended::find(area, &at.shape, key) else {
                return Err(self.corrupt(frame, Damage::NoNode));
            };
            found
        } else {
            let Some(node) = Node::parse(area, at.shape) else {
                return Err(self.corrupt(frame, Damage::NodeTooFull));
            };
            (node.count() > 0).then(|| node.child_slot(key))
        };
        Ok(found.map(|slot| {
            let its = extent.start + at.shape.at(slot);
            let payload = its + at.shape.key_bytes();
            (&bytes[its..payload] == key, payload..payload + at.shape.payload_bytes())
        }))
    }
}
