//! How many needed nodes or records each page holds: four bits a page, or a byte.
//!
//! Where a page holds one node, the block table knows enough, and nothing is stored here. Everyone
//! who asks says how many numbers a page has. No page is read or written.

use super::form::FIXED_MAX;
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

    fn get(&self, page: u32, places: usize) -> u8 {
        if places > FIXED_MAX {
            return self.0.get(page as usize).copied().unwrap_or(0);
        }
        match self.0.get(page as usize / 2) {
            Some(byte) => byte >> (4 * (page % 2)) & 0xF,
            None => 0,
        }
    }

    fn set(&mut self, page: u32, count: u8, places: usize) {
        let (at, shift, mask) =
            if places > FIXED_MAX { (page, 0, 0xFF) } else { (page / 2, 4 * (page % 2), 0xF) };
        if let Some(byte) = self.0.get_mut(at as usize) {
            *byte = *byte & !(mask << shift) | count << shift;
        }
    }

    /// Counts one node more. Returns `false` if the page has as many as places.
    pub fn add(&mut self, page: u32, places: usize) -> bool {
        let count = self.get(page, places);
        if self.0.is_empty() {
            return true;
        }
        if usize::from(count) >= places {
            return false;
        }
        self.set(page, count + 1, places);
        true
    }

    /// Counts one node less. Returns whether the page holds none now.
    pub fn remove(&mut self, page: u32, places: usize) -> bool {
        let count = self.get(page, places).saturating_sub(1);
        self.set(page, count, places);
        count == 0
    }

    /// Needed nodes in the page, where they are counted.
    pub fn count(&self, page: u32, places: usize) -> Option<u8> {
        (!self.0.is_empty()).then(|| self.get(page, places))
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
        for places in [2, 15, 16, 255] {
            let mut bytes = [0xFF; 4];
            let mut live = Live::new(&mut bytes);
            for page in [0, 1, 1, 2] {
                assert!(live.add(page, places));
            }
            let counts =
                |live: &Live<'_>| [0, 1, 2, 3].map(|page| live.count(page, places).unwrap());
            assert_eq!(counts(&live), [1, 2, 1, 0]);
            (2..places).for_each(|_| assert!(live.add(1, places)));
            assert!(!live.add(1, places));
            assert_eq!(counts(&live), [1, places as u8, 1, 0]);
            (1..places).for_each(|_| assert!(!live.remove(1, places)));
            assert!(live.remove(1, places) && live.remove(0, places));
            assert_eq!(counts(&live), [0, 0, 1, 0]);
        }
    }
}
