//! A tree whose pages hold several nodes each, walked from its root.
//!
//! Changes that are newer than the root are in pages of a journal, and not in this tree.

use std::collections::BTreeSet;

use nandina::engine::Packed;
use nandina::flash::PageNumber;
use nandina::node::Node;

use super::walk::{LevelFacts, PackedFacts, Walker};
use crate::LabError;

impl Walker<'_> {
    /// Walks the tree whose root is the last node in the page `root`.
    pub fn run_packed(&mut self, root: PageNumber) -> Result<(), LabError> {
        let Some(packed) = self.reader.and_then(|reader| reader.packed) else { return Ok(()) };
        let (height, area_bytes) = (self.root.height, self.pages.layout.area_bytes());
        let chip_pages = self.pages.found.len() as u32;
        let area = &self.pages.bytes(root)?[..area_bytes];
        let places = (packed.places)(self.root.tag, area);
        let medium = self.root.medium;
        let sizes = (usize::from(medium.key_bytes), usize::from(medium.value_bytes));
        let apart = (packed.apart)(area);
        let numbers = (packed.numbers)(self.root.tag, area, sizes) as u32;
        let nodes = (packed.nodes)(self.root.tag, area);
        let node_bytes = (packed.node_bytes)(self.root.tag, area);
        if places == 0 || nodes == 0 {
            self.lose(root.0, height, "it holds no node");
            return Ok(());
        }
        let mut levels = LevelFacts::of_tree(height);
        let (mut of_nodes, mut of_values) = (BTreeSet::new(), BTreeSet::new());
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
            // A pointer to a value is like one to a node.
            let shape = self.shape(if apart { level.max(2) } else { level });
            let capacity = shape.capacity(node_bytes);
            let Some(node) = area.get(range).and_then(|bytes| Node::parse(bytes, shape)) else {
                self.lose(page, level, "a node has more records than fit");
                continue;
            };
            of_nodes.insert(page);
            levels[usize::from(height - level)].add(node.count(), capacity);
            let places = (0..node.count()).rev().map(|slot| {
                let pointer = node.pointer(slot);
                let (to, place) = (pointer / numbers, pointer % numbers);
                (if to == chip_pages { page } else { to }, place as usize)
            });
            if level > 1 {
                open.extend(places.map(|(to, place)| (to, place, level - 1)));
            } else if apart {
                let keys = (0..node.count()).rev().map(|slot| node.key(slot).to_vec());
                let values: Vec<_> = places.zip(keys).collect();
                for ((to, place), key) in values {
                    if self.find_value(&packed, (to, place), &key, sizes)? {
                        of_values.insert(to);
                    }
                }
            }
        }
        levels.iter_mut().for_each(LevelFacts::finish);
        self.facts.levels = levels;
        self.facts.packed = Some(PackedFacts {
            nodes_max: places as u32,
            pages_of_nodes: of_nodes.len() as u32,
            values_in_journal: apart,
            pages_of_values: of_values.len() as u32,
        });
        self.valid.extend(of_nodes.into_iter().chain(of_values));
        Ok(())
    }

    /// Looks for the value of `key` where a leaf points to: at a place in a page of its own.
    ///
    /// Returns whether it is there.
    fn find_value(
        &mut self,
        packed: &Packed,
        (page, place): (u32, usize),
        key: &[u8],
        sizes: (usize, usize),
    ) -> Result<bool, LabError> {
        if let Some(reason) = self.fault(page, u8::MAX, page) {
            self.lose(page, 0, reason);
            return Ok(false);
        }
        let header = self.pages.found[page as usize].as_ref().ok().copied();
        let area_bytes = self.pages.layout.area_bytes();
        let area = &self.pages.bytes(PageNumber(page))?[..area_bytes];
        let start = header.and_then(|header| (packed.record_at)(&header, area, sizes, place));
        if start.is_none_or(|start| area[start..start + sizes.0] != *key) {
            self.lose(page, 0, "it lacks the value of a record");
            return Ok(false);
        }
        Ok(true)
    }
}
