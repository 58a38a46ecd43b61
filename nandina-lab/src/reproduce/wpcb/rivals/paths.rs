//! μ-tree and μ*-tree over an FTL: the nodes of a path share the page of its leaf.
//!
//! Each leaf has a logical page. A change writes the path into it, so one page; the newest copy of
//! an inner node is in the page of the leaf that changed last below it. If nodes were divided, the
//! other halves go to one more page.
//!
//! Chosen here for μ*-tree, because the paper does not say: a page may be divided between its
//! levels in any proportion, and if a path does not fit, its largest node is divided; nodes are not
//! joined. In μ-tree each level has a fixed share, and nodes are joined and filled as in the
//! B-tree.

use super::super::device::{Event, Events};
use super::numbers::NOWHERE;
use super::store::{State, Store, beside_the_root};
use super::tree::{Touch, Tree};

/// Where the newest copy of each node is.
#[derive(Default)]
pub struct Paths {
    /// The page of each node.
    at: Vec<u32>,
    /// The number of nodes whose newest copy is in each page.
    held: Vec<u32>,
    free: Vec<u32>,
    /// Nodes that were written, and the programs of pages with them.
    written: (u64, u64),
}

impl Paths {
    fn page_of(&self, node: u32) -> u32 {
        self.at.get(node as usize).copied().unwrap_or(NOWHERE)
    }

    /// Makes `page` the page of `node`. Returns the page before, if nothing is left in it.
    fn set(&mut self, node: u32, page: u32) -> Option<u32> {
        let before = self.page_of(node);
        if self.at.len() <= node as usize {
            self.at.resize(node as usize + 1, NOWHERE);
        }
        self.at[node as usize] = page;
        if page != NOWHERE {
            if self.held.len() <= page as usize {
                self.held.resize(page as usize + 1, 0);
            }
            self.held[page as usize] += 1;
        }
        if before == NOWHERE {
            return None;
        }
        self.held[before as usize] -= 1;
        (self.held[before as usize] == 0).then(|| {
            self.free.push(before);
            before
        })
    }

    fn new_page(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.held.push(0);
            self.held.len() as u32 - 1
        })
    }

    /// Writes `nodes` into one page: that of their leaf, if it has one.
    fn write_page(&mut self, nodes: &[u32], tree: &Tree, events: &mut Events) {
        let leaf = nodes.iter().copied().find(|&node| tree.is_leaf(node));
        let own = leaf.map_or(NOWHERE, |leaf| self.page_of(leaf));
        let page = if own == NOWHERE { self.new_page() } else { own };
        events.push(Event::Write(page));
        self.written = (self.written.0 + nodes.len() as u64, self.written.1 + 1);
        for &node in nodes {
            if let Some(empty) = self.set(node, page) {
                events.push(Event::Trim(empty));
            }
        }
    }
}

impl Store for Paths {
    fn read(&mut self, nodes: &[u32]) -> u32 {
        let pages: Vec<u32> = nodes.iter().map(|&node| self.page_of(node)).collect();
        beside_the_root(&pages)
    }

    fn write(&mut self, tree: &Tree, events: &mut Events) -> u32 {
        for &(node, touch) in tree.touched() {
            if touch == Touch::Gone
                && let Some(empty) = self.set(node, NOWHERE)
            {
                events.push(Event::Trim(empty));
            }
        }
        let is_gone = |node: u32| tree.touched().contains(&(node, Touch::Gone));
        let path: Vec<u32> = tree.path().iter().copied().filter(|&node| !is_gone(node)).collect();
        self.write_page(&path, tree, events);
        let others = tree
            .touched()
            .iter()
            .filter(|(node, touch)| *touch != Touch::Gone && !path.contains(node));
        let others: Vec<u32> = others.map(|&(node, _)| node).collect();
        if !others.is_empty() {
            self.write_page(&others, tree, events);
        }
        0
    }

    fn pages(&self) -> u32 {
        self.held.len() as u32
    }

    fn state(&self) -> State {
        let (nodes, node_pages) = self.written;
        let held = self.pages() - self.free.len() as u32;
        State { held, node_pages, nodes, ..State::default() }
    }
}
