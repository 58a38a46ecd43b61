//! Translation pages: parts of the map that are kept on flash, not in RAM.
//!
//! A mapping names no chip. It writes a page through [`TranslationPages`] and keeps the place that
//! it got. With the feature `std` there is a list of pages on the heap, for replays and tests.

/// Bytes of a translation page.
pub const PAGE: usize = 4096;

/// Where translation pages are written: flash.
///
/// A place is what [`Self::write`] returned. Reads succeed: a store on a chip corrects errors by
/// itself, and ends the use of the mapping if it cannot.
pub trait TranslationPages {
    /// Reads the [`PAGE`] bytes at `place` into `bytes`.
    fn read(&self, place: u32, bytes: &mut [u8]);

    /// Writes a page of [`PAGE`] bytes, out of place, and returns where.
    ///
    /// The page at `old` is superseded.
    fn write(&mut self, old: Option<u32>, bytes: &[u8]) -> u32;
}

/// Translation pages on the heap, in place of flash: no mapping's memory.
#[cfg(feature = "std")]
#[derive(Default)]
pub struct HeapPages {
    pages: std::vec::Vec<std::boxed::Box<[u8]>>,
    free: std::vec::Vec<u32>,
}

#[cfg(feature = "std")]
impl TranslationPages for HeapPages {
    fn read(&self, place: u32, bytes: &mut [u8]) {
        if let Some(page) = self.pages.get(place as usize) {
            bytes.copy_from_slice(page);
        }
    }

    fn write(&mut self, old: Option<u32>, bytes: &[u8]) -> u32 {
        let place = match self.free.pop() {
            Some(place) => {
                self.pages[place as usize].copy_from_slice(bytes);
                place
            }
            None => {
                self.pages.push(bytes.into());
                self.pages.len() as u32 - 1
            }
        };
        self.free.extend(old);
        place
    }
}
