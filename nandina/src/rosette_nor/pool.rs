//! The state of each sector in RAM, and the turn in which sectors are taken.
//!
//! A leaf is always written to the first sector behind the last leaf that is neither live nor bad.
//! So a mount knows where the leaf must be whose write was cut: behind the newest one. Sectors are
//! *clean* only if this session erased them: what looks erased after a mount may be torn. Nothing
//! is read or written here.

use super::cells::Sector;

/// The most sectors that are erased ahead of need.
pub const READY_MAX: usize = 10;

/// What a sector is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// It must be erased before a leaf is written to it.
    Free = 0,
    /// It holds a leaf.
    Live = 1,
    /// This session erased it.
    Clean = 2,
    /// It can no longer be written.
    Bad = 3,
}

/// The states of all sectors.
pub struct Pool<'b> {
    /// Two bits for each sector.
    states: &'b mut [u8],
    sectors: usize,
    /// The sector that the last leaf was written to.
    turn: Sector,
    bad: u32,
    /// How often each clean sector was erased.
    erases: [(Sector, u32); READY_MAX + 1],
    clean: usize,
}

impl<'b> Pool<'b> {
    pub const fn new(states: &'b mut [u8], sectors: usize) -> Self {
        Self { states, sectors, turn: 0, bad: 0, erases: [(0, 0); READY_MAX + 1], clean: 0 }
    }

    /// Bytes for this many sectors.
    pub const fn ram_needed(sectors: usize) -> usize {
        sectors.div_ceil(4)
    }

    /// A mount begins: all sectors are free.
    pub fn clear(&mut self) {
        self.states.fill(0);
        (self.bad, self.clean) = (0, 0);
    }

    /// What a sector is.
    pub fn state(&self, sector: Sector) -> Use {
        let sector = usize::from(sector);
        match self.states[sector / 4] >> (sector % 4 * 2) & 3 {
            0 => Use::Free,
            1 => Use::Live,
            2 => Use::Clean,
            _ => Use::Bad,
        }
    }

    /// Notes what a sector is.
    pub fn set(&mut self, sector: Sector, state: Use) {
        let was = self.state(sector);
        self.bad = self.bad + u32::from(state == Use::Bad) - u32::from(was == Use::Bad);
        if was == Use::Clean
            && let Some(at) = self.erases[..self.clean].iter().position(|it| it.0 == sector)
        {
            self.clean -= 1;
            self.erases[at] = self.erases[self.clean];
        }
        let (byte, shift) = (usize::from(sector) / 4, usize::from(sector) % 4 * 2);
        self.states[byte] = self.states[byte] & !(3 << shift) | (state as u8) << shift;
    }

    /// A sector was erased, for the time `erases`.
    pub fn set_clean(&mut self, sector: Sector, erases: u32) {
        self.set(sector, Use::Clean);
        if self.clean < self.erases.len() {
            self.erases[self.clean] = (sector, erases);
            self.clean += 1;
        }
    }

    /// How often a clean sector was erased.
    pub fn erases(&self, sector: Sector) -> u32 {
        let found = self.erases[..self.clean].iter().find(|it| it.0 == sector);
        found.map_or(0, |it| it.1)
    }

    /// Notes where the last leaf was written.
    pub const fn set_turn(&mut self, sector: Sector) {
        self.turn = sector;
    }

    /// The sectors in the turn in which they are taken, without live and bad ones.
    fn in_turn(&self) -> impl Iterator<Item = Sector> {
        let behind = usize::from(self.turn) + 1;
        (behind..self.sectors)
            .chain(0..behind.min(self.sectors))
            .map(|sector| sector as Sector)
            .filter(|&sector| matches!(self.state(sector), Use::Free | Use::Clean))
    }

    /// The sector that the next leaf is written to.
    pub fn next(&self) -> Option<Sector> {
        self.in_turn().next()
    }

    /// The sector that is to be erased next, unless `wanted` are ready.
    pub fn next_to_erase(&self, wanted: usize) -> Option<Sector> {
        let next = |sector: &Sector| self.state(*sector) == Use::Free;
        self.in_turn().take(wanted.min(READY_MAX)).find(next)
    }

    /// How many leaves can be written before a sector is erased.
    pub fn ready(&self) -> usize {
        self.in_turn().take(READY_MAX).take_while(|&it| self.state(it) == Use::Clean).count()
    }

    /// How many sectors are bad.
    pub const fn bad(&self) -> u32 {
        self.bad
    }

    /// How many sectors are neither live nor bad.
    pub fn free(&self) -> u32 {
        self.in_turn().count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_written_in_turn_and_sectors_erased_in_the_same() {
        let mut states = [0; 3];
        let mut pool = Pool::new(&mut states, 9);
        pool.clear();
        pool.set_turn(6);
        for live in [7, 0] {
            pool.set(live, Use::Live);
        }
        pool.set(1, Use::Bad);
        assert_eq!((pool.next(), pool.ready(), pool.bad()), (Some(8), 0, 1));
        assert_eq!(pool.free(), 6);
        pool.set_clean(8, 3);
        pool.set_clean(2, 5);
        assert_eq!((pool.ready(), pool.next_to_erase(3)), (2, Some(3)));
        assert_eq!(pool.next_to_erase(2), None);
        // One that becomes free among the clean ones comes first.
        pool.set(7, Use::Free);
        assert_eq!((pool.next(), pool.ready(), pool.next_to_erase(1)), (Some(7), 0, Some(7)));
        pool.set(8, Use::Live);
        assert_eq!((pool.erases(2), pool.erases(8)), (5, 0));
    }
}
