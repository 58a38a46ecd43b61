//! Commits: every dirty node is written once, and the root last.
//!
//! Nodes go to a page one after another, those of lower levels first, until it is full (TNC paper,
//! section 6.2, *Commit*). The page with the root is the commit: with it all changes so far are in
//! the tree, and the journal before it is garbage. A pointer to a child in the same page has only
//! its place, because that page has no number yet.
//!
//! Where many nodes move, they are written ahead as RAM fills up, and the commit writes the rest.
//!
//! A large commit comes in steps, so that no change waits for all of it. Each change writes a few
//! pages of nodes ahead, early enough that the commit itself has no more than a few left to write.
//! The commit covers the tree as it is then. A node that is changed after it was written is dirty
//! again, and is written once more; so no copy of it is needed, and the journal is replayed as if
//! there were no steps. `room.rs` beside this says when they begin.

use super::TncIndex;
use super::arena::{NO_SLOT, NOWHERE, slot_in};
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::log::Label;

/// The nodes of the page that is being built.
#[derive(Default)]
struct Building {
    count: usize,
    /// Where the next node begins.
    end: usize,
    lowest: u8,
}

impl<F: Flash> TncIndex<'_, F> {
    /// Writes all dirty nodes, at least the root.
    ///
    /// Cost: as many programs as full pages hold the dirty nodes; an erase for each block.
    pub(super) fn commit(&mut self) -> Result<(), Fault<F::Error>> {
        if self.arena.form.apart() {
            // The leaves need a place to point to.
            self.write_group()?;
        }
        self.state.doubt();
        self.arena.mark_dirty(self.tree.root());
        self.space.begin_operation(true);
        let mut building = Building::default();
        for level in 1..=self.tree.height() {
            let mut next = self.arena.next_dirty(level, NO_SLOT);
            while let Some(slot) = next {
                next = self.arena.next_dirty(level, slot);
                if !self.has_room(&building, slot) {
                    self.write_nodes(&mut building, false, false)?;
                }
                self.put_node(&mut building, slot);
            }
        }
        // The root came last.
        let last = self.write_nodes(&mut building, true, false)?;
        self.space.commit(last)?;
        self.arena.release_written();
        self.arena.counters.count_commit();
        self.journal.forget();
        self.group.clear();
        self.room.end_draining();
        self.state.trust();
        Ok(())
    }

    /// Writes at most `pages` pages of the next commit.
    ///
    /// It stops when only `left` nodes are dirty, or when room is short. The caller makes `changes`
    /// changes next.
    pub(super) fn write_steps(
        &mut self,
        pages: u32,
        left: usize,
        changes: usize,
    ) -> Result<(), Fault<F::Error>> {
        for _ in 0..pages {
            if self.arena.dirty() <= left || self.space.room() <= self.kept_for(changes) + 1 {
                break;
            }
            covered!("a step writes a page of the next commit");
            self.write_ahead(true)?;
        }
        Ok(())
    }

    /// Writes a page of dirty nodes before their commit.
    ///
    /// Those of the lowest levels come first. A node is written only after its dirty children, or
    /// in one page with them. The root is left for the commit. Until then nothing on flash leads to
    /// these nodes, so a cut makes them garbage. In a step they also stay in RAM. Cost: one
    /// program, and an erase for each block.
    pub(super) fn write_ahead(&mut self, is_step: bool) -> Result<(), Fault<F::Error>> {
        let before = self.state.doubt();
        let mut building = Building::default();
        'page: for level in 1..self.tree.height() {
            let mut next = self.arena.next_dirty(level, NO_SLOT);
            while let Some(slot) = next {
                next = self.arena.next_dirty(level, slot);
                if self.has_dirty_child(slot) || self.has_waiting(slot) {
                    continue;
                }
                if !self.has_room(&building, slot) {
                    break 'page;
                }
                self.put_node(&mut building, slot);
            }
        }
        if building.count > 0 {
            covered!("nodes are written ahead of their commit");
            let page = self.write_nodes(&mut building, false, is_step)?;
            if is_step {
                self.journal.note_block(self.space.log.geometry().block_of(PageNumber(page)));
            }
        }
        self.state.end_doubt(before);
        Ok(())
    }

    /// Whether a child of the node is dirty and not in the page that is being built.
    fn has_dirty_child(&self, slot: u16) -> bool {
        let node = self.arena.node(slot);
        self.arena.level(slot) > 1
            && (0..node.count())
                .filter_map(|index| slot_in(node.pointer(index)))
                .any(|child| self.arena.is_dirty(child))
    }

    /// Whether the page that is being built has room for the node.
    fn has_room(&self, building: &Building, slot: u16) -> bool {
        let used = self.arena.node(slot).used().len();
        self.arena.form.has_room(building.count, building.end, used)
    }

    /// Puts a node into the page that is being built, which has room for it.
    fn put_node(&mut self, building: &mut Building, slot: u16) {
        let (form, frame, at) = (self.arena.form, self.building(), building.count);
        self.retire(self.arena.place(slot));
        self.arena.put_into_page(slot, form.pointer(form.pages, at));
        let area = self.space.area_mut(frame);
        if at == 0 {
            area.fill(0xFF);
            (building.lowest, building.end) = (self.arena.level(slot), form.first_at());
        }
        let (node, level) = (self.arena.node(slot), self.arena.level(slot));
        let (from, used) = (building.end, node.used());
        building.end = form.put_mark(area, (at, level), (from, used.len()));
        let out = &mut area[from..from + used.len()];
        out.copy_from_slice(used);
        if level > 1 {
            let shape = form.shape(2);
            for index in 0..node.count() {
                if let Some(child) = slot_in(node.pointer(index)) {
                    let to = shape.at(index) + shape.key_bytes();
                    let place = self.arena.place(child).to_le_bytes();
                    out[to..to + place.len()].copy_from_slice(&place);
                }
            }
        }
        building.count += 1;
    }

    /// Programs the page that is being built, and notes where its nodes are.
    ///
    /// The nodes of a step `stay` in RAM until their commit.
    fn write_nodes(
        &mut self,
        building: &mut Building,
        has_root: bool,
        stay: bool,
    ) -> Result<u32, Fault<F::Error>> {
        let (form, frame) = (self.arena.form, self.building());
        let Building { count, lowest, .. } = core::mem::take(building);
        let height = if has_root { self.tree.height() } else { 0 };
        let label = Label { lowest, height, records: self.tree.records() };
        let tag = form.end_page(self.space.area_mut(frame), count);
        let page = self.program(frame, tag, label)?;
        let mut at = 0;
        while let Some(slot) = self.arena.first_in_page() {
            self.arena.mark_written(slot, form.pointer(page.0, at), stay);
            self.live.add(page.0, form.numbers());
            at += 1;
        }
        Ok(page.0)
    }

    /// Notes that the node or value at `place` is not needed after the next commit.
    pub(super) fn retire(&mut self, place: u32) {
        if place == NOWHERE {
            return;
        }
        let (page, _) = self.arena.form.place_of(place);
        let numbers = self.arena.form.numbers();
        if self.live.count(page, numbers).is_none() || self.live.remove(page, numbers) {
            self.space.retire(PageNumber(page));
        }
    }
}
