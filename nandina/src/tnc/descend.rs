//! From the root down: nodes that are not in RAM are read into it.

use super::TncIndex;
use super::arena::{NO_SLOT, slot_in};
use super::form::{node_in, nodes_in};
use crate::error::{Damage, Fault};
use crate::flash::{Flash, PageNumber};

impl<F: Flash> TncIndex<'_, F> {
    /// The leaf to which `key` belongs, with its path in RAM.
    ///
    /// Cost: a read for each node of the path that is not in RAM.
    pub(super) fn descend(&mut self, key: &[u8]) -> Result<u16, Fault<F::Error>> {
        self.descend_to(key, 1)
    }

    /// The node of `level` on the way to `key`.
    pub(super) fn descend_to(&mut self, key: &[u8], level: u8) -> Result<u16, Fault<F::Error>> {
        let mut slot = self.tree.root();
        self.arena.touch(slot);
        while self.arena.level(slot) > level {
            let index = self.arena.node(slot).child_slot(key);
            slot = self.child(slot, index)?;
        }
        Ok(slot)
    }

    /// The child at `index` of the node in `parent`, in RAM.
    pub(super) fn child(&mut self, parent: u16, index: usize) -> Result<u16, Fault<F::Error>> {
        let pointer = self.arena.node(parent).pointer(index);
        if let Some(slot) = slot_in(pointer) {
            self.arena.touch(slot);
            return Ok(slot);
        }
        let level = self.arena.level(parent) - 1;
        let slot = self.read_node(pointer, level, parent)?;
        self.arena.adopt(parent, index, slot);
        Ok(slot)
    }

    /// Returns a free slot, for which a clean node may leave RAM.
    ///
    /// Neither the root nor `pinned` leaves. There is always a slot, since the number of dirty
    /// nodes is bounded.
    pub(super) fn free_slot(
        &mut self,
        level: u8,
        parent: u16,
        (place, pinned): (u32, u16),
    ) -> Result<u16, Fault<F::Error>> {
        while self.arena.free_slots() == 0 {
            if !self.arena.evict(pinned) {
                return Err(Fault::TooHigh { height: self.tree.height() });
            }
        }
        self.arena.take(level, parent, place).ok_or(Fault::TooHigh { height: self.tree.height() })
    }

    /// Reads the node to which `pointer` leads into a slot.
    pub(super) fn read_node(
        &mut self,
        pointer: u32,
        level: u8,
        parent: u16,
    ) -> Result<u16, Fault<F::Error>> {
        let (page, place) = self.arena.form.place_of(pointer);
        let slot = self.free_slot(level, parent, (pointer, parent))?;
        match self.read_into(slot, page, place) {
            Ok(()) => {
                self.arena.counters.count_loaded();
                Ok(slot)
            }
            Err(fault) => {
                self.arena.free(slot);
                Err(fault)
            }
        }
    }

    fn read_into(&mut self, slot: u16, page: u32, place: usize) -> Result<(), Fault<F::Error>> {
        let corrupt = |reason| Err(Fault::Corrupt { page: PageNumber(page), reason });
        let frame = self.space.load(page, 0)?;
        let bytes = &self.space.log.frames.bytes(frame)[..self.space.area_bytes()];
        let tag = self.space.log.header(frame).tag;
        let (form, level) = (self.arena.form, self.arena.level(slot));
        if place >= nodes_in(tag, bytes).min(form.places()) {
            return corrupt(Damage::LacksNode);
        }
        if !form.is_of(tag, bytes) {
            return corrupt(Damage::OtherFanout);
        }
        let Some((_, range)) = node_in(tag, bytes, place).filter(|(found, _)| *found == level)
        else {
            return corrupt(Damage::LacksNode);
        };
        let length = range.len();
        if length > form.node_bytes {
            return corrupt(Damage::NodeTooFull);
        }
        self.arena.node_bytes_mut(slot)[..length].copy_from_slice(&bytes[range]);
        let node = self.arena.parsed(slot).filter(|node| node.used().len() <= length);
        let Some(node) = node else { return corrupt(Damage::NodeTooFull) };
        let count = node.count();
        let is_root = self.arena.parent(slot) == NO_SLOT;
        if count == 0 && !(is_root && level == 1) {
            return corrupt(Damage::NodeEmpty);
        }
        if !(1..count).all(|at| node.key(at - 1) < node.key(at)) {
            return corrupt(Damage::KeysOutOfOrder);
        }
        if level > 1 {
            // A child that was written in the same page has no number of its own there.
            for index in 0..count {
                let (child, at) = form.place_of(self.arena.node(slot).pointer(index));
                if child > form.pages || (child == form.pages && at >= place) {
                    return corrupt(Damage::BeyondChip);
                }
                if child == form.pages {
                    let pointer = form.pointer(page, at).to_le_bytes();
                    self.arena.edit(slot, |node| node.set_payload(index, &pointer));
                }
            }
        }
        Ok(())
    }
}
