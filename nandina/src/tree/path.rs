//! The nodes that a descent has passed, from the root down.
//!
//! No page is read here.

use super::HEIGHT_MAX;

/// The nodes from the root down to some level, and where each was found.
#[derive(Clone, Copy)]
pub struct Path {
    pages: [u32; HEIGHT_MAX as usize],
    slots: [u16; HEIGHT_MAX as usize],
    counts: [u16; HEIGHT_MAX as usize],
    lowest: [u8; HEIGHT_MAX as usize],
    frame: u8,
    right_edge: bool,
    #[cfg(feature = "write-buffer")]
    waiting: usize,
}

impl Path {
    pub const fn new() -> Self {
        Self {
            pages: [0; HEIGHT_MAX as usize],
            slots: [0; HEIGHT_MAX as usize],
            counts: [0; HEIGHT_MAX as usize],
            lowest: [0; HEIGHT_MAX as usize],
            frame: 0,
            right_edge: true,
            #[cfg(feature = "write-buffer")]
            waiting: usize::MAX,
        }
    }

    /// Begins at the node of `level`, the root, in `page`.
    pub const fn begin(&mut self, level: u8, page: u32) {
        self.right_edge = true;
        #[cfg(feature = "write-buffer")]
        {
            self.waiting = usize::MAX;
        }
        self.set_page(level, page);
    }

    /// The page buffer that holds the last node.
    pub const fn frame(&self) -> usize {
        self.frame as usize
    }

    /// Ends at the node in the page buffer `frame`.
    pub const fn end_in(&mut self, frame: usize) {
        self.frame = frame as u8;
    }

    /// Whether every step took the last child: the last node is at the right edge.
    pub const fn is_right_edge(&self) -> bool {
        self.right_edge
    }

    /// A step took another child than the last one.
    pub const fn leave_right_edge(&mut self) {
        self.right_edge = false;
    }

    /// Number of pending changes whose keys are below the nodes right of the path.
    ///
    /// Without the feature `write-buffer` no change is ever pending.
    pub const fn waiting(&self) -> usize {
        #[cfg(feature = "write-buffer")]
        return self.waiting;
        #[cfg(not(feature = "write-buffer"))]
        usize::MAX
    }

    /// At most `waiting` pending changes are below the nodes right of the path.
    pub const fn limit_waiting(&mut self, waiting: usize) {
        #[cfg(feature = "write-buffer")]
        if waiting < self.waiting {
            self.waiting = waiting;
        }
        #[cfg(not(feature = "write-buffer"))]
        let _ = waiting;
    }

    /// The page that holds the node of `level`.
    pub const fn page(&self, level: u8) -> u32 {
        self.pages[level as usize - 1]
    }

    /// The slot of the child that was taken in the node of `level`.
    pub const fn slot(&self, level: u8) -> usize {
        self.slots[level as usize - 1] as usize
    }

    pub const fn set_slot(&mut self, level: u8, slot: usize) {
        self.slots[level as usize - 1] = slot as u16;
    }

    /// Records in the node of `level`.
    pub const fn count(&self, level: u8) -> usize {
        self.counts[level as usize - 1] as usize
    }

    pub const fn set_count(&mut self, level: u8, count: usize) {
        self.counts[level as usize - 1] = count as u16;
    }

    /// Lowest level of the nodes in the page that holds the node of `level`.
    pub const fn lowest(&self, level: u8) -> u8 {
        self.lowest[level as usize - 1]
    }

    pub const fn set_lowest(&mut self, level: u8, lowest: u8) {
        self.lowest[level as usize - 1] = lowest;
    }

    pub const fn set_page(&mut self, level: u8, page: u32) {
        self.pages[level as usize - 1] = page;
    }
}

/// Which child of each inner node a descent takes.
#[derive(Clone, Copy)]
pub enum Toward<'k> {
    Key(&'k [u8]),
    First,
    Last,
}
