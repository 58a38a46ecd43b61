//! `demand`: a page map on flash, of which RAM caches single entries (DFTL).
//!
//! Gupta, Kim and Urgaonkar, *DFTL: a flash translation layer employing demand-based selective
//! caching of page-level address mappings*, ASPLOS 2009. The paper that this crate follows has no
//! such mapping. The map is cut into *translation pages* of 1,024 units each, which are on flash. RAM
//! holds the global translation directory, which leads to them, and the cached mapping table:
//! entries of single units in the order of their use. An entry that leaves the table while it is
//! dirty takes all dirty entries of its translation page with it, in one write (batch update).
//!
//! What DFTL leaves open: a request reads a translation page once, however many of its units are
//! missing; so there are two page buffers, one for what is looked up and one for what is written
//! back. The table is ordered by plain use, not by segments of use. A translation page that was
//! never written is known to be empty, and is not read. No translation page is ever collected or
//! moved here: that is work of the store, for example of an FTL of their own ([`OnPages`]).

mod cache;
mod on_pages;
mod pages;
#[cfg(test)]
mod tests;

use super::contract::{Broken, Bytes, Mapping, Scheme, Work};
use super::extent::{Extent, Joined, Piece, Run, Space};
use super::memory::{WORD, set_word, word};
use super::refusal::Refusal;
use cache::Cache;
pub use on_pages::OnPages;
#[cfg(feature = "std")]
pub use pages::HeapPages;
pub use pages::{PAGE, TranslationPages};

/// Units of a translation page.
const UNITS: u32 = (PAGE / WORD) as u32;

/// A unit that is not mapped, or a translation page that was never written.
const NONE: u32 = u32::MAX;

/// The page buffers: one for look-ups, one for what is written back.
const BUFFERS: usize = 2 * PAGE;

/// Entries that a mapping of [`Demand::bytes_for`] bytes caches, at least.
const ENTRIES_LEAST: usize = 64;

/// A page map whose translation pages are in `pages`, with a cache of its entries.
///
/// ```
/// use nandina_ftl::mapping::demand::{Demand, HeapPages};
/// use nandina_ftl::mapping::{Extent, Mapping, Space};
///
/// let space = Space { logical: 1 << 20, physical: 1 << 21 };
/// let mut memory = vec![0; Demand::<HeapPages>::bytes_for(space)]; // a 32nd of a page map
/// let mut map = Demand::new(space, &mut memory, HeapPages::default())?;
/// map.update(Extent::new(7, 3), 100, &mut |_| {})?;
/// map.look_up(Extent::new(8, 1), &mut |piece| assert_eq!(piece.physical, Some(101)))?;
/// assert_eq!((map.work().flash_reads, map.work().flash_writes), (0, 0)); // all cached
/// # Ok::<(), nandina_ftl::mapping::Refusal>(())
/// ```
pub struct Demand<'m, P> {
    space: Space,
    /// The global translation directory, a word for each translation page; then the buffers.
    memory: &'m mut [u8],
    cache: Cache<'m>,
    pages: P,
    /// The translation page in the first buffer, as it is on flash.
    loaded: Option<u32>,
    reserved: usize,
    most_entries: usize,
    probes: u64,
    flash_reads: u64,
    flash_writes: u64,
}

impl<'m, P: TranslationPages> Demand<'m, P> {
    /// A 32nd of the bytes of `page`, or what is needed for 64 entries, if that is more.
    ///
    /// A page map takes 4 bytes for 4 KB, so this is 32 KB of RAM for 1 GB: what controllers without
    /// memory chips of their own have.
    pub fn bytes_for(space: Space) -> usize {
        let least = Self::fixed(space) + ENTRIES_LEAST * Cache::ENTRY;
        least.max(space.logical as usize / 32 * WORD)
    }

    /// Bytes of directory and buffers.
    fn fixed(space: Space) -> usize {
        space.logical.div_ceil(UNITS) as usize * WORD + BUFFERS
    }

    /// A map without any mapped unit, which caches as many entries as fit in `memory`.
    ///
    /// Refuses with [`Refusal::Full`] if directory, buffers and one entry do not fit. Later changes
    /// are never refused for want of memory.
    pub fn new(space: Space, memory: &'m mut [u8], pages: P) -> Result<Self, Refusal> {
        let needed = Self::fixed(space) + Cache::ENTRY;
        let reserved = memory.len();
        if reserved < needed {
            return Err(Refusal::Full { needed });
        }
        let (memory, cache) = memory.split_at_mut(Self::fixed(space));
        memory.fill(0xFF);
        Ok(Demand {
            space,
            memory,
            cache: Cache::new(cache),
            pages,
            loaded: None,
            reserved,
            most_entries: 0,
            probes: 0,
            flash_reads: 0,
            flash_writes: 0,
        })
    }

    /// The store of the translation pages.
    pub fn pages(&self) -> &P {
        &self.pages
    }

    /// The byte at which buffer `at` begins.
    fn buffer(&self, at: usize) -> usize {
        self.memory.len() - BUFFERS + at * PAGE
    }

    /// Where a translation page is on flash, if it was ever written.
    fn place(&self, page: u32) -> Option<u32> {
        Some(word(self.memory, page as usize)).filter(|&place| place != NONE)
    }

    /// Reads a translation page into a buffer; one that was never written is empty.
    fn load(&mut self, page: u32, buffer: usize) {
        self.probes += 1;
        let (place, at) = (self.place(page), self.buffer(buffer));
        let Some(bytes) = self.memory.get_mut(at..at + PAGE) else { return };
        match place {
            Some(place) => {
                self.pages.read(place, bytes);
                self.flash_reads += 1;
            }
            None => bytes.fill(0xFF),
        }
    }

    /// What the translation page on flash says of a unit that is not cached.
    fn on_flash(&mut self, unit: u32) -> u32 {
        let page = unit / UNITS;
        if self.place(page).is_none() {
            return NONE;
        }
        if self.loaded != Some(page) {
            self.load(page, 0);
            self.loaded = Some(page);
        }
        word(self.memory, self.buffer(0) / WORD + (unit % UNITS) as usize)
    }

    /// Writes a translation page with all its dirty entries, which are clean then.
    fn write_back(&mut self, page: u32) {
        let buffer = if self.loaded == Some(page) { 0 } else { 1 };
        if buffer == 1 {
            self.load(page, 1);
        }
        let at = self.buffer(buffer);
        let old = self.place(page);
        let Some(bytes) = self.memory.get_mut(at..at + PAGE) else { return };
        self.cache.clean(page * UNITS, UNITS, |unit, physical| {
            set_word(bytes, (unit % UNITS) as usize, physical);
        });
        let place = self.pages.write(old, bytes);
        set_word(self.memory, page as usize, place);
        self.flash_writes += 1;
        self.probes += 1;
    }

    /// Caches an entry. The oldest one makes room.
    fn insert(&mut self, unit: u32, physical: u32, is_dirty: bool) {
        if self.cache.is_full() {
            if let Some((oldest, true)) = self.cache.oldest() {
                self.write_back(oldest / UNITS);
            }
            self.cache.drop_oldest();
        }
        self.cache.insert(unit, physical, is_dirty);
        self.most_entries = self.most_entries.max(self.cache.entries());
    }

    fn piece(unit: u32, physical: u32) -> Piece {
        Piece { logical: unit, length: 1, physical: (physical != NONE).then_some(physical) }
    }

    /// Where a unit is; its entry is the newest one then.
    fn look_up_unit(&mut self, unit: u32) -> Piece {
        let physical = match self.cache.find(unit) {
            Some(entry) => {
                self.cache.touch(entry);
                self.cache.physical(entry)
            }
            None if self.place(unit / UNITS).is_none() => NONE,
            None => {
                let physical = self.on_flash(unit);
                self.insert(unit, physical, false);
                physical
            }
        };
        Self::piece(unit, physical)
    }

    /// Changes where a unit is and returns where it was.
    fn replace_unit(&mut self, unit: u32, new: u32) -> Piece {
        let old = match self.cache.find(unit) {
            Some(entry) => {
                let old = self.cache.physical(entry);
                self.cache.touch(entry);
                self.cache.change(entry, new);
                old
            }
            None => {
                let old = self.on_flash(unit);
                // A hole that stays a hole needs no entry.
                if old != new {
                    self.insert(unit, new, true);
                }
                old
            }
        };
        Self::piece(unit, old)
    }
}

impl<P: TranslationPages> Scheme for Demand<'_, P> {
    fn find(&mut self, extent: Extent, found: &mut dyn FnMut(Piece)) {
        self.loaded = None;
        Joined::pieces(found, |pieces| {
            (extent.start..extent.end()).for_each(|unit| pieces.push(self.look_up_unit(unit)));
        });
    }

    fn room(&self, _extent: Extent, _adds: bool) -> Result<(), Refusal> {
        Ok(())
    }

    fn replace(&mut self, extent: Extent, physical: Option<u32>, superseded: &mut dyn FnMut(Run)) {
        self.loaded = None;
        Joined::runs(superseded, |pieces| {
            for unit in extent.start..extent.end() {
                let new = physical.map_or(NONE, |physical| physical + (unit - extent.start));
                pieces.push(self.replace_unit(unit, new));
            }
        });
    }
}

impl<P: TranslationPages> Mapping for Demand<'_, P> {
    fn space(&self) -> Space {
        self.space
    }

    /// Reads every translation page. That is not counted: no request needs it.
    fn walk(&self, visit: &mut dyn FnMut(Run)) {
        let mut bytes = [0; PAGE];
        Joined::runs(visit, |pieces| {
            for page in 0..self.space.logical.div_ceil(UNITS) {
                match self.place(page) {
                    Some(place) => self.pages.read(place, &mut bytes),
                    None => bytes.fill(0xFF),
                }
                let first = page * UNITS;
                let behind = first.saturating_add(UNITS).min(self.space.logical);
                for unit in first..behind {
                    let cached = self.cache.peek(unit).map(|entry| self.cache.physical(entry));
                    let on_flash = word(&bytes, (unit - first) as usize);
                    pieces.push(Self::piece(unit, cached.unwrap_or(on_flash)));
                }
            }
        });
    }

    fn entries(&self) -> usize {
        self.cache.entries()
    }

    fn bytes(&self) -> Bytes {
        let all = |entries: usize| self.memory.len() + self.cache.bytes(entries);
        let (used, peak) = (all(self.cache.entries()), all(self.most_entries));
        Bytes { used, reserved: self.reserved, peak }
    }

    fn work(&self) -> Work {
        Work {
            probes: self.probes + self.cache.probes(),
            flash_reads: self.flash_reads,
            flash_writes: self.flash_writes,
            ..Work::default()
        }
    }

    fn check(&self) -> Result<(), Broken> {
        self.cache.check()?;
        let mut is_inside = true;
        self.walk(&mut |run| {
            is_inside &=
                run.physical.checked_add(run.length).is_some_and(|end| end <= self.space.physical);
        });
        if is_inside { Ok(()) } else { Err(Broken("a unit is mapped behind the physical space")) }
    }
}
