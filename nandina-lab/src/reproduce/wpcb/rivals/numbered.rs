//! Nodes in logical pages that take their numbers from one list; leaves may have several pages.
//!
//! The header of a leaf of several pages is in its first page: header and page are read and written
//! together. Other nodes have pages of their own.

use super::super::device::{Event, Events};
use super::numbers::{NOWHERE, Numbers};
use super::store::{State, Store, beside_the_root};
use super::tree::{Touch, Tree};

/// The page of each node.
pub struct Numbered {
    /// The numbers, which a buffer may share.
    pub numbers: Numbers,
    /// Whether the nodes above the leaves are headers.
    has_headers: bool,
    at: Vec<u32>,
    /// The nodes that are headers.
    headers: Vec<bool>,
}

impl Numbered {
    /// A page for each node.
    pub fn new() -> Self {
        let (at, headers) = (Vec::new(), Vec::new());
        Self { numbers: Numbers::default(), has_headers: false, at, headers }
    }

    /// The same, but a node above the leaves is in the page of its first leaf.
    pub fn with_headers() -> Self {
        Self { has_headers: true, ..Self::new() }
    }

    fn page_of(&self, node: u32) -> u32 {
        self.at.get(node as usize).copied().unwrap_or(NOWHERE)
    }

    fn set(&mut self, node: u32, page: u32, is_header: bool) {
        let node = node as usize;
        if self.at.len() <= node {
            self.at.resize(node + 1, NOWHERE);
            self.headers.resize(node + 1, false);
        }
        (self.at[node], self.headers[node]) = (page, is_header);
    }

    /// Whether a node has a page that is not that of a leaf below it.
    fn owns(&self, node: u32) -> bool {
        self.page_of(node) != NOWHERE && !self.headers[node as usize]
    }

    fn let_go(&mut self, node: u32, events: &mut Events) {
        if self.owns(node) {
            let page = self.page_of(node);
            events.push(Event::Trim(page));
            self.numbers.give(page);
        }
        self.set(node, NOWHERE, false);
    }
}

impl Store for Numbered {
    fn read(&mut self, nodes: &[u32]) -> u32 {
        let pages: Vec<u32> = nodes.iter().map(|&node| self.page_of(node)).collect();
        beside_the_root(&pages)
    }

    fn write(&mut self, tree: &Tree, events: &mut Events) -> u32 {
        let is_header = |node: u32| {
            self.has_headers && tree.children(node).first().is_some_and(|&page| tree.is_leaf(page))
        };
        let touched: Vec<(u32, bool, bool)> = tree
            .touched()
            .iter()
            .map(|&(node, touch)| (node, touch == Touch::Gone, is_header(node)))
            .collect();
        let mut pages = Vec::new();
        for &(node, is_gone, is_header) in &touched {
            if is_gone || is_header != (self.page_of(node) != NOWHERE && !self.owns(node)) {
                self.let_go(node, events);
            }
            if !is_gone && !is_header {
                if !self.owns(node) {
                    let page = self.numbers.take();
                    self.set(node, page, false);
                }
                pages.push(self.page_of(node));
            }
        }
        for &(node, _, _) in touched.iter().filter(|&&(_, is_gone, header)| header && !is_gone) {
            let page = self.page_of(tree.children(node)[0]);
            self.set(node, page, true);
            if !pages.contains(&page) {
                pages.push(page);
            }
        }
        for page in pages {
            events.push(Event::Write(page));
        }
        tree.beside()
    }

    fn pages(&self) -> u32 {
        self.numbers.end()
    }

    fn state(&self) -> State {
        State { held: self.numbers.taken(), node_pages: 1, nodes: 1, ..State::default() }
    }
}
