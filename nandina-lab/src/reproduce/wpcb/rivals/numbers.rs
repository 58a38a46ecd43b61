//! Numbers of logical pages, which one counted tree after the other takes and gives back.

/// A node, or a buffer, that has no page.
pub const NOWHERE: u32 = u32::MAX;

/// Page numbers from 0 on.
#[derive(Default)]
pub struct Numbers {
    free: Vec<u32>,
    end: u32,
}

impl Numbers {
    /// The number that was given back last, or a new one.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        })
    }

    /// Gives a number back.
    pub fn give(&mut self, page: u32) {
        self.free.push(page);
    }

    /// One more than the highest number that was taken.
    pub const fn end(&self) -> u32 {
        self.end
    }

    /// How many are taken.
    pub const fn taken(&self) -> u32 {
        self.end - self.free.len() as u32
    }
}
