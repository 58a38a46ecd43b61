//! A tree whose pages hold several nodes each, walked from its root.
//!
//! Changes that are newer than the root are in pages of a journal, and not in this tree.

use std::collections::BTreeSet;

use nandina::flash::PageNumber;
use nandina::node::Node;

use super::walk::{LevelFacts, Walker};
use crate::LabError;

impl Walker<'_> {
    /// Walks the tree whose root is the last node in the page `root`.
    pub fn run_packed(&mut self, root: PageNumber) -> Result<(), LabError> {
        let Some(packed) = self.reader.and_then(|reader| reader.packed) else { return Ok(()) };
        let (height, area_bytes) = (self.root.height, self.pages.layout.area_bytes());
        let chip_pages = self.pages.found.len() as u32;
        let area = &self.pages.bytes(root)?[..area_bytes];
        let places = (packed.places)(self.root.tag, area);
        let nodes = (packed.nodes)(self.root.tag, area);
        let node_bytes = (packed.node_bytes)(self.root.tag, area);
        if places == 0 || nodes == 0 {
            self.lose(root.0, height, "it holds no node");
            return Ok(());
        }
        let mut levels = LevelFacts::of_tree(height);
        // Each node is visited once, so pointers in a circle end.
        let mut seen = BTreeSet::new();
        let mut open = vec![(root.0, nodes - 1, height)];
        while let Some((page, place, level)) = open.pop() {
            if !seen.insert((page, place)) {
                self.lose(page, level, "two nodes point to it");
                continue;
            }
            if let Some(reason) = self.fault(page, level, root.0) {
                self.lose(page, level, reason);
                continue;
            }
            let tag = self.pages.found[page as usize].as_ref().map_or(0, |header| header.tag);
            let area = self.pages.bytes(PageNumber(page))?[..area_bytes].to_vec();
            let found = (packed.node_at)(tag, &area, place)
                .filter(|(found, _)| *found == level && (packed.places)(tag, &area) == places);
            let Some((_, range)) = found else {
                self.lose(page, level, "its page has no such node");
                continue;
            };
            let shape = self.shape(level);
            let capacity = shape.capacity(node_bytes);
            let Some(node) = area.get(range).and_then(|bytes| Node::parse(bytes, shape)) else {
                self.lose(page, level, "a node has more records than fit");
                continue;
            };
            self.valid.insert(page);
            levels[usize::from(height - level)].add(node.count(), capacity);
            if level > 1 {
                open.extend((0..node.count()).rev().map(|slot| {
                    let pointer = node.pointer(slot);
                    let (to, place) = (pointer / places as u32, pointer % places as u32);
                    (if to == chip_pages { page } else { to }, place as usize, level - 1)
                }));
            }
        }
        levels.iter_mut().for_each(LevelFacts::finish);
        self.facts.levels = levels;
        Ok(())
    }
}
