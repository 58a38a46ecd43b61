//! The chip's state and its controls: counters, clock, wear, cuts, faults.
//!
//! The media operations are in `operations`.
//!
//! A clone is cheap: it copies the block that was changed last, and shares the others until one
//! side changes them. All damage comes from the chip's seed and the operation's ordinal, so the
//! same calls cause the same damage.

use nandina::flash::{BlockNumber, PageNumber, Profile};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::block::Block;
use crate::blocks::Blocks;
use crate::faults::flip_bit;
use crate::{Counters, Cut, FaultCounters, Faults, TimeSplit, Wear};

/// A simulated chip.
#[derive(Clone, Debug)]
pub struct Chip {
    pub(crate) profile: Profile,
    pub(crate) seed: u64,
    pub(crate) blocks: Blocks,
    pub(crate) counters: Counters,
    pub(crate) time: TimeSplit,
    pub(crate) faults: Faults,
    pub(crate) fault_counters: FaultCounters,
    /// The operation that will be cut or given up.
    pub(crate) stop: Option<Stop>,
    /// Ordinal of the first operation beyond the limit, and how many were allowed.
    pub(crate) limit: Option<(u64, u64)>,
    pub(crate) powered: bool,
    /// The page after the last one read, and after the last one programmed.
    pub(crate) next_read: PageNumber,
    pub(crate) next_program: PageNumber,
    pub(crate) rests: u64,
}

/// An operation that will not be completed.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// Its ordinal among all operations, or among the changes.
    pub operation: u64,
    /// Where in it the operation stops.
    pub cut: Cut,
    /// `true` if the device gives the operation up and power stays on.
    pub keeps_power: bool,
    /// Whether only programs, erases and rewrites are counted.
    pub is_change: bool,
}

/// Streams of random numbers that never coincide with those of operations.
const FACTORY: u64 = u64::MAX;
const RESTS: u64 = u64::MAX / 2;
const READINGS: u64 = 1 << 62;
const APART: u64 = 1 << 61;
const DAMAGE: u64 = 1 << 60;
/// Bits of an operation's ordinal.
///
/// What a rest adds to the random stream of a reading lies above them.
const OPERATIONS_BITS: u32 = 44;

impl Chip {
    /// Makes a chip of `profile` with all blocks good, erased and unused.
    ///
    /// It has no faults, and its seed is 0.
    pub fn new(profile: Profile) -> Self {
        Self::with_seed(profile, 0)
    }

    /// Makes a chip whose damage comes from `seed`.
    pub fn with_seed(profile: Profile, seed: u64) -> Self {
        let geometry = profile.geometry;
        let page_bytes = (geometry.page_bytes + geometry.spare_bytes) as usize;
        let block = Block::new(geometry.pages_per_block, page_bytes);
        Self::with_blocks(profile, seed, Blocks::new(block, geometry.blocks as usize))
    }

    /// Makes the chip as new, with the same profile and seed.
    ///
    /// It keeps the memory of blocks that no other chip shares. So what is programmed next needs no
    /// memory from the system, whose time would count with that of the work.
    pub fn renew(&mut self) {
        let mut blocks = std::mem::replace(&mut self.blocks, Blocks::new(Block::new(0, 0), 0));
        blocks.renew();
        *self = Self::with_blocks(self.profile, self.seed, blocks);
    }

    fn with_blocks(profile: Profile, seed: u64, blocks: Blocks) -> Self {
        Self {
            profile,
            seed,
            blocks,
            counters: Counters::default(),
            time: TimeSplit::default(),
            faults: Faults::default(),
            fault_counters: FaultCounters::default(),
            stop: None,
            limit: None,
            powered: true,
            next_read: PageNumber(0),
            next_program: PageNumber(0),
            rests: 0,
        }
    }

    /// The chip's datasheet.
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Counts of the chip's operations since it was made.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Modelled time of these operations, by kind.
    pub const fn time(&self) -> TimeSplit {
        self.time
    }

    /// The virtual clock: nanoseconds since the chip was made.
    pub const fn now_ns(&self) -> u64 {
        self.time.total()
    }

    /// Counts of the faults since the chip was made.
    pub const fn fault_counters(&self) -> FaultCounters {
        self.fault_counters
    }

    /// Erase count of `block`. Panics if it is not a block of the chip.
    pub fn erase_count(&self, block: BlockNumber) -> u32 {
        self.blocks[block.0 as usize].erase_count
    }

    /// Erase counts of all blocks, in order.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().map(|block| block.erase_count)
    }

    /// The blocks that are marked as bad.
    pub fn bad_blocks(&self) -> impl Iterator<Item = BlockNumber> {
        let bad = self.blocks.iter().enumerate().filter(|(_, block)| block.bad);
        bad.map(|(number, _)| BlockNumber(number as u32))
    }

    /// Whether `block` of the chip is no longer writable.
    ///
    /// It is marked as bad, or fails and is not yet marked.
    pub fn is_lost(&self, block: BlockNumber) -> bool {
        let block = &self.blocks[block.0 as usize];
        block.bad || block.failing
    }

    /// Least, most and mean erase count of the blocks that are not bad.
    pub fn wear(&self) -> Wear {
        let counts =
            || self.blocks.iter().filter(|block| !block.bad).map(|block| block.erase_count);
        let sum: u64 = counts().map(u64::from).sum();
        Wear {
            least: counts().min().unwrap_or(0),
            most: counts().max().unwrap_or(0),
            mean: sum as f64 / counts().count().max(1) as f64,
        }
    }

    /// Whether `page` of the chip was not programmed since its block was erased.
    ///
    /// A program that was cut counts as one.
    pub fn page_is_erased(&self, page: PageNumber) -> bool {
        let (block, page) = self.place(page);
        self.blocks[block].programs(page) == 0
    }

    /// Cuts power at the chip operation that comes after `operation` others.
    ///
    /// Reads, programs, erases, rewrites and marks all count.
    pub const fn cut_at(&mut self, operation: u64, cut: Cut) {
        let operation = self.counters.operations() + operation;
        self.stop = Some(Stop { operation, cut, keeps_power: false, is_change: false });
    }

    /// Cuts power at the program, erase or rewrite after `changes` others.
    ///
    /// Most operations of a caller may be reads, which a cut cannot tear: this aims at what it can.
    /// Replaces a cut that is armed.
    pub const fn cut_at_change(&mut self, changes: u64, cut: Cut) {
        let operation = self.counters.changes() + changes;
        self.stop = Some(Stop { operation, cut, keeps_power: false, is_change: true });
    }

    /// Lets the device give up the chip operation that comes after `operation` others.
    ///
    /// The call fails with [`ChipError::GaveUp`](crate::ChipError::GaveUp), as
    /// [`Faults::device_errors`] makes it do at random. Replaces a cut that is armed.
    pub const fn give_up_at(&mut self, operation: u64, cut: Cut) {
        let operation = self.counters.operations() + operation;
        self.stop = Some(Stop { operation, cut, keeps_power: true, is_change: false });
    }

    /// Limits the chip to `allowed` further operations.
    ///
    /// `None`, the default, is no limit.
    ///
    /// Each further operation fails with [`ChipError::TooMany`](crate::ChipError::TooMany) and is
    /// not counted. This detects a caller that loops for ever. An image does not keep the limit.
    pub fn limit_operations(&mut self, allowed: Option<u64>) {
        let now = self.counters.operations();
        self.limit = allowed.map(|allowed| (now.saturating_add(allowed), allowed));
    }

    /// Whether the chip has power.
    ///
    /// After a cut it has none until [`restore_power`](Self::restore_power).
    pub const fn has_power(&self) -> bool {
        self.powered
    }

    /// Restores power and disarms any cut.
    pub const fn restore_power(&mut self) {
        self.powered = true;
        self.stop = None;
    }

    /// The faults that the chip shows.
    pub const fn faults(&self) -> Faults {
        self.faults
    }

    /// Sets the faults that the chip shows from now on.
    pub const fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Marks `count` random blocks, at most all, as bad from the factory.
    pub fn spoil_blocks(&mut self, count: u32) {
        let mut random = self.random(FACTORY);
        let mut good: Vec<usize> =
            (0..self.blocks.len()).filter(|&block| !self.blocks[block].bad).collect();
        for _ in 0..good.len().min(count as usize) {
            let block = good.swap_remove(random.random_range(0..good.len()));
            self.blocks.change(block).bad = true;
        }
    }

    /// Marks a block as bad from the factory.
    pub fn spoil_block(&mut self, block: BlockNumber) {
        self.blocks.change(block.0 as usize).bad = true;
    }

    /// Lets the chip lie unused for `days`.
    ///
    /// Programmed pages lose bits ([`Faults::retention_days`]).
    pub fn rest(&mut self, days: u32) {
        self.rests += 1;
        let mean = self.faults.retention_days;
        if mean == 0 {
            return;
        }
        let mut random = self.random(RESTS + self.rests);
        for page in (0..self.profile.geometry.pages()).map(PageNumber) {
            let extra = random.random_range(0..mean) < days % mean;
            for _ in 0..days / mean + u32::from(extra) {
                self.flip(page, &mut random);
            }
        }
    }

    /// Changes main data and spare area of a page on the chip, against all rules.
    ///
    /// An erased page counts as programmed afterwards.
    pub fn corrupt_page(&mut self, page: PageNumber, change: impl FnOnce(&mut [u8], &mut [u8])) {
        let main_bytes = self.profile.geometry.page_bytes as usize;
        let (block, page) = self.place(page);
        let block = self.blocks.change(block);
        block.unstable.remove(&page.0);
        let (main, spare) = block.page_bytes_mut(page).split_at_mut(main_bytes);
        change(main, spare);
        block.count_program(page);
    }

    /// The bytes in the cells of a page, without the cost of a read.
    ///
    /// Of an unstable page, each bit that may be 1.
    pub(crate) fn cells(&self, page: PageNumber) -> Vec<u8> {
        let (block, index) = self.place(page);
        let geometry = &self.profile.geometry;
        let main_bytes = geometry.page_bytes as usize;
        if let Some(unstable) = self.blocks[block].unstable.get(&index.0) {
            return unstable.union().take(main_bytes).collect();
        }
        match self.blocks[block].page_bytes(index) {
            Some(bytes) => bytes[..main_bytes].to_vec(),
            None => vec![0xFF; main_bytes],
        }
    }

    /// Corrects the counts: the last program moved `bytes` less than a whole page.
    pub(crate) const fn take_back_program(&mut self, bytes: usize) {
        self.counters.bytes_programmed =
            self.counters.bytes_programmed.saturating_sub(bytes as u64);
        let ns = bytes as u64 * self.profile.timing.program_byte_ns;
        self.time.program_ns = self.time.program_ns.saturating_sub(ns);
    }

    /// Corrects the counts: the last read moved `bytes` less than a whole page.
    pub(crate) const fn take_back_read(&mut self, bytes: usize) {
        self.counters.bytes_read = self.counters.bytes_read.saturating_sub(bytes as u64);
        let ns = bytes as u64 * self.profile.timing.read_byte_ns;
        self.time.read_ns = self.time.read_ns.saturating_sub(ns);
    }

    /// Flips a random bit of `page` if the bounds of its damage allow it.
    pub(crate) fn flip(&mut self, page: PageNumber, random: &mut ChaCha8Rng) {
        let geometry = self.profile.geometry;
        let bits = (geometry.page_bytes + geometry.spare_bytes) * 8;
        let (block, page) = self.place(page);
        if self.blocks[block].page_bytes(page).is_none() {
            return;
        }
        let block = self.blocks.change(block);
        let within = self.faults.within_ecc;
        if flip_bit(block, page, bits, &self.profile.ecc, within, random) {
            self.fault_counters.flips += 1;
        }
    }

    pub(crate) const fn place(&self, page: PageNumber) -> (usize, PageNumber) {
        let pages = self.profile.geometry.pages_per_block;
        ((page.0 / pages) as usize, PageNumber(page.0 % pages))
    }

    /// Random numbers for a reading of an unstable page.
    ///
    /// They differ with each operation, and after a rest.
    pub(crate) fn random_reading(&self) -> ChaCha8Rng {
        self.random(READINGS ^ (self.rests << OPERATIONS_BITS) ^ self.counters.operations())
    }

    /// Random numbers of an operation, independent of those that decide its damage.
    pub(crate) fn random_apart(&self) -> ChaCha8Rng {
        self.random(APART ^ self.counters.operations())
    }

    /// Random numbers for the damage of an operation that a cut tears, or that fails.
    ///
    /// A cut is armed, so nothing was drawn before. Whether an operation fails was drawn from its
    /// own stream: its damage must not begin with that same number.
    pub(crate) fn random_damage(&self, by_cut: bool) -> ChaCha8Rng {
        let stream = if by_cut { 0 } else { DAMAGE };
        self.random(stream ^ self.counters.operations())
    }

    /// Random numbers of one stream; that of an operation is its ordinal.
    pub(crate) fn random(&self, stream: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(stream);
        random
    }
}
