//! Checks every invariant of the tree, in RAM and on flash.
//!
//! Nothing is written or repaired.

use super::TncIndex;
use super::apply::Key;
use super::arena::NOWHERE;
use super::bounds::HEIGHT_MAX;
use super::values::ValueAt;
use crate::engine::Violation;
use crate::error::Fault;
use crate::flash::{Flash, PageNumber};

/// What a walk through all nodes counts.
#[derive(Default)]
struct Counted {
    records: u32,
    leaves: u32,
    inner_nodes: u32,
    /// Nodes that are on flash, and values that leaves point to there.
    written: u32,
}

impl<F: Flash> TncIndex<'_, F> {
    /// Reads all nodes, and reports what does not hold.
    ///
    /// Cost: one read for each node that is not in RAM.
    pub(super) fn check_all(
        &mut self,
        report: &mut dyn FnMut(Violation),
    ) -> Result<(), Fault<F::Error>> {
        self.ready()?;
        let mut counted = Counted::default();
        let mut last: Option<Key> = None;
        let (mut slot, mut next) = (self.tree.root(), [0usize; HEIGHT_MAX as usize + 1]);
        self.check_node(slot, &mut counted, &mut last, report);
        self.check_values(slot, &mut counted, report)?;
        let nodes_max = u64::from(self.arena.form.pages) * self.arena.form.places() as u64
            + self.arena.slots() as u64;
        let mut visited = 0u64;
        loop {
            let level = self.arena.level(slot);
            let at = &mut next[usize::from(level)];
            let index = core::mem::replace(at, *at + 1);
            if level == 1 || index >= self.arena.node(slot).count() {
                next[usize::from(level)] = 0;
                if slot == self.tree.root() {
                    break;
                }
                slot = self.arena.parent(slot);
                continue;
            }
            visited += 1;
            if visited > nodes_max {
                self.violates(slot, "more nodes are reached than pages can hold", report);
                return Ok(());
            }
            let low = Key::of(self.arena.node(slot).key(index));
            slot = self.child(slot, index)?;
            let key_bytes = self.arena.form.key_bytes;
            if self.arena.node(slot).count() > 0
                && self.arena.node(slot).key(0) < low.bytes(key_bytes)
            {
                self.violates(slot, "a key is below the first key of its parent's entry", report);
            }
            self.check_node(slot, &mut counted, &mut last, report);
            self.check_values(slot, &mut counted, report)?;
        }
        self.check_counts(&counted, report);
        Ok(())
    }

    fn violates(&self, slot: u16, what: &'static str, report: &mut dyn FnMut(Violation)) {
        let place = self.arena.place(slot);
        let page = if place == NOWHERE {
            self.arena.form.pages
        } else {
            self.arena.form.place_of(place).0
        };
        report(Violation { page: PageNumber(page), what });
    }

    /// Checks that each value is where the leaf in this slot points to.
    fn check_values(
        &mut self,
        slot: u16,
        counted: &mut Counted,
        report: &mut dyn FnMut(Violation),
    ) -> Result<(), Fault<F::Error>> {
        if self.arena.level(slot) > 1 {
            return Ok(());
        }
        for index in 0..self.arena.node(slot).count() {
            let found = self.find_value(slot, index);
            match found {
                Ok(ValueAt::Frame(..)) => counted.written += 1,
                Ok(ValueAt::Leaf | ValueAt::Group(_)) => {}
                Err(Fault::Corrupt { page, .. }) => {
                    counted.written += 1;
                    report(Violation { page, what: "a leaf points to a value that is not there" });
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    fn check_node(
        &self,
        slot: u16,
        counted: &mut Counted,
        last: &mut Option<Key>,
        report: &mut dyn FnMut(Violation),
    ) {
        let node = self.arena.node(slot);
        let (place, level) = (self.arena.place(slot), self.arena.level(slot));
        if node.count() == 0 && slot != self.tree.root() {
            self.violates(slot, "a node is empty", report);
        }
        if node.count() > self.arena.form.capacity(level) {
            self.violates(slot, "a node has more records than it may", report);
        }
        if place == NOWHERE {
            if !self.arena.is_dirty(slot) {
                self.violates(slot, "a node that was never written is clean", report);
            }
        } else {
            counted.written += 1;
            let page = PageNumber(self.arena.form.place_of(place).0);
            if !self.space.log.blocks.is_valid(page) {
                self.violates(slot, "a page is needed and not counted as valid", report);
            }
        }
        if level > 1 {
            counted.inner_nodes += 1;
            return;
        }
        counted.leaves += 1;
        counted.records += node.count() as u32;
        for index in 0..node.count() {
            let key = node.key(index);
            if last.is_some_and(|last| last.bytes(self.arena.form.key_bytes) >= key) {
                self.violates(slot, "keys are out of order", report);
            }
            *last = Some(Key::of(key));
        }
    }

    fn check_counts(&self, counted: &Counted, report: &mut dyn FnMut(Violation)) {
        let numbers = self.arena.form.numbers();
        let live = (0..self.arena.form.pages).filter_map(|page| self.live.count(page, numbers));
        let live: u32 = live.map(u32::from).sum();
        let valid = self.space.log.blocks.valid_pages();
        let is_counted = numbers > 1;
        let claims = [
            (counted.records == self.tree.records(), "the number of records is wrong"),
            (counted.leaves == self.tree.leaves(), "the number of leaves is wrong"),
            (counted.inner_nodes == self.tree.inner_nodes(), "the number of inner nodes is wrong"),
            (
                counted.written == if is_counted { live } else { valid },
                "the number of nodes and values on flash is wrong",
            ),
            (valid <= counted.written, "a page is counted as valid and not needed"),
        ];
        for (_, what) in claims.into_iter().filter(|(holds, _)| !holds) {
            self.violates(self.tree.root(), what, report);
        }
    }
}
