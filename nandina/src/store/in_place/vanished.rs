//! Pages of nodes that are gone: the device learns of them once that is committed.
//!
//! They are noted only where pages are replaced atomically. If they are not, a mount may find the
//! change torn and need the node. What is noted here is lost in a cut; such pages are written again
//! when they are the next free ones.

use crate::error::Fault;
use crate::flash::{Flash, PageNumber};
use crate::space::{InPlace, Space};
use crate::tree::HEIGHT_MAX;

/// The most nodes that one operation removes: the nodes of a path.
const MOST: usize = HEIGHT_MAX as usize;

/// Pages of nodes that the running operation removes.
#[derive(Default)]
pub struct Vanished {
    pages: [u32; MOST],
    count: usize,
}

impl Vanished {
    /// Notes a page.
    ///
    /// A page for which there is no room is forgotten: the device keeps it until it is written
    /// again.
    pub fn note(&mut self, page: u32) {
        if let Some(next) = self.pages.get_mut(self.count) {
            *next = page;
            self.count += 1;
        }
    }

    /// Forgets the pages, and returns them.
    fn take_all(&mut self) -> Self {
        core::mem::take(self)
    }
}

impl<F: Flash> Space<'_, F, InPlace> {
    /// Discards the pages of removed nodes, after the operation has committed.
    ///
    /// Cost: what the device takes to discard each of them.
    pub(super) fn discard_vanished(&mut self) -> Result<(), Fault<F::Error>> {
        let Vanished { pages, count } = self.memory.vanished.take_all();
        pages[..count].iter().try_for_each(|&page| self.log.discard(PageNumber(page)))
    }
}
