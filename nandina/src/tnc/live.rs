//! How many needed nodes each page holds, four bits a page.
//!
//! Where a page holds one node, the block table knows enough, and nothing is stored here. No page
//! is read or written.

use crate::log::checkpoint::Stream;

/// The numbers of needed nodes.
pub struct Live<'b>(&'b mut [u8]);

impl<'b> Live<'b> {
    /// No page holds any. Without bytes, each page holds one node at most.
    pub fn new(bytes: &'b mut [u8]) -> Self {
        bytes.fill(0);
        Self(bytes)
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    fn get(&self, page: u32) -> u8 {
        match self.0.get(page as usize / 2) {
            Some(byte) => byte >> (4 * (page % 2)) & 0xF,
            None => 0,
        }
    }

    fn set(&mut self, page: u32, count: u8) {
        if let Some(byte) = self.0.get_mut(page as usize / 2) {
            let shift = 4 * (page % 2);
            *byte = *byte & !(0xF << shift) | count << shift;
        }
    }

    /// Counts one node more. Returns `false` if the page can hold no more than it has.
    pub fn add(&mut self, page: u32, most: usize) -> bool {
        let count = self.get(page);
        if self.0.is_empty() {
            return true;
        }
        if usize::from(count) >= most {
            return false;
        }
        self.set(page, count + 1);
        true
    }

    /// Counts one node less. Returns whether the page holds none now.
    pub fn remove(&mut self, page: u32) -> bool {
        let count = self.get(page).saturating_sub(1);
        self.set(page, count);
        count == 0
    }

    /// Needed nodes in the page, where they are counted.
    pub fn count(&self, page: u32) -> Option<u8> {
        (!self.0.is_empty()).then(|| self.get(page))
    }
}

impl Stream for Live<'_> {
    const STORES_VALID: bool = true;
    const HAS_FIXED_SIZE: bool = true;

    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn fill(&self, from: usize, out: &mut [u8]) {
        let bytes = self.0.get(from..).unwrap_or_default();
        let (stored, rest) = out.split_at_mut(bytes.len().min(out.len()));
        stored.copy_from_slice(&bytes[..stored.len()]);
        rest.fill(0xFF);
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn load(&mut self, from: usize, bytes: &[u8]) -> bool {
        let places = self.0.get_mut(from..).unwrap_or_default();
        places.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        true
    }

    // A mount compares it with the valid pages, which are known when all of it was loaded.
    fn is_sound(&mut self, _: u32) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Live;

    #[test]
    fn neighbours_are_counted_apart() {
        let mut bytes = [0xFF; 2];
        let mut live = Live::new(&mut bytes);
        for page in [0, 1, 1, 2] {
            assert!(live.add(page, 2));
        }
        assert!(!live.add(1, 2));
        assert_eq!([0, 1, 2, 3].map(|page| live.count(page)), [1, 2, 1, 0].map(Some));
        assert!(!live.remove(1) && live.remove(1) && live.remove(0));
        assert_eq!(live.count(2), Some(1));
    }
}
