//! Lookups of LA-tree, which pay for emptying the buffers that they read.
//!
//! A lookup takes an entry of each page on its way, and decodes no node. Nothing is written here.

use nandina::engine::EngineFault;
use nandina::flash::{Flash, PageNumber};
use nandina::{Damage, Fault};

use super::buffers::{Changes, Entries, ROOT};
use super::{LaTree, Value};
use crate::rivals::pages::number_at;
use crate::rivals::tree::{Bytes, Node};

/// What a lookup found, and the pages of buffers that it read for it.
pub(super) struct Looked {
    pub value: Value,
    of_root: u64,
    /// Of other buffers: their owner with its level and its children, and the pages.
    lower: Vec<(u32, u8, u64, u64)>,
}

impl<F: Flash> LaTree<F> {
    /// The newest change of a key in a buffer, and the pages that finding it reads.
    fn search(&mut self, owner: u32, key: &[u8]) -> Result<(Option<Value>, u64), EngineFault<F>> {
        let kept = self.table.buffer(owner);
        for (read, page) in (1..).zip(kept.iter().rev()) {
            let changes = Changes::of(self.pages.body(*page)?, self.sizes);
            if let Some(value) = changes.last_of(key) {
                return Ok((Some(value), read));
            }
        }
        Ok((None, kept.len() as u64))
    }

    pub(super) fn find(&mut self, key: &[u8]) -> Result<Looked, EngineFault<F>> {
        let mut looked = Looked { value: None, of_root: 0, lower: Vec::new() };
        if let Some((_, value)) = self.ram.iter().rfind(|change| &change.0[..] == key) {
            looked.value.clone_from(value);
            return Ok(looked);
        }
        let (found, of_root) = self.search(ROOT, key)?;
        looked.of_root = of_root;
        if let Some(value) = found {
            looked.value = value;
            return Ok(looked);
        }
        let (mut nodes, mut number) = (Vec::new(), self.head.root);
        for level in (2..=self.head.height).rev() {
            let (children, child) = self.step(number, level, key)?;
            nodes.push((number, level, children));
            number = child;
        }
        let value = self.record(number, key)?;
        for (number, level, children) in nodes {
            if !self.table.has_buffer(number) {
                continue;
            }
            let (found, read) = self.search(number, key)?;
            looked.lower.push((number, level, children, read));
            if let Some(value) = found {
                looked.value = value;
                return Ok(looked);
            }
        }
        looked.value = value;
        Ok(looked)
    }

    /// The entries of a node, for one lookup: in RAM if it is the root, else in its page.
    ///
    /// The root is read once, as it stays in RAM.
    fn look<T>(
        &mut self,
        (number, level): (u32, u8),
        in_ram: impl FnOnce(&Node) -> T,
        in_page: impl FnOnce(&Entries<'_>) -> T,
    ) -> Result<T, EngineFault<F>> {
        if number == self.head.root && self.root.is_none() {
            self.node(number, level)?;
        }
        if let Some(root) = self.root.as_ref().filter(|root| root.number == number) {
            return Ok(in_ram(root));
        }
        let Some((page, _)) = self.table.home(number) else {
            return Err(Fault::Corrupt { page: PageNumber(0), reason: Damage::LacksNode });
        };
        let body = self.pages.body(page)?;
        let entries = Entries::of(body, self.sizes, level).filter(|_| number_at(body, 0) == number);
        let reason = Damage::LacksNode;
        entries.as_ref().map(in_page).ok_or(Fault::Corrupt { page: PageNumber(page), reason })
    }

    /// The children of an inner node, and the one that a search for a key goes to.
    fn step(&mut self, number: u32, level: u8, key: &[u8]) -> Result<(u64, u32), EngineFault<F>> {
        let in_ram = |node: &Node| (node.entries.len() as u64, node.child_of(key));
        let in_page = |entries: &Entries<'_>| (entries.count(), entries.child_of(key));
        match self.look((number, level), in_ram, in_page)? {
            (children, Some(child)) => Ok((children, child)),
            _ => Err(Fault::Corrupt { page: PageNumber(0), reason: Damage::LacksNode }),
        }
    }

    /// What a leaf has for a key.
    fn record(&mut self, number: u32, key: &[u8]) -> Result<Value, EngineFault<F>> {
        let in_page = |entries: &Entries<'_>| entries.value_of(key).map(Bytes::from_slice);
        self.look((number, 1), |node| node.entries.get(key).cloned(), in_page)
    }

    /// Lets lookups pay, and empties what they have paid for.
    pub(super) fn pay(&mut self, looked: &Looked) -> Result<(), EngineFault<F>> {
        let mut due = Vec::new();
        let root = (ROOT, self.head.height, 0, looked.of_root);
        for &(owner, level, children, read) in [root].iter().chain(&looked.lower) {
            if self.table.pay(owner, level, children, read) {
                due.push((owner, level));
            }
        }
        // From below, so that what is emptied first is not filled at once.
        due.into_iter().rev().try_for_each(|(owner, level)| self.empty(owner, level))
    }
}
