//! The chip: checks every rule, counts, keeps time, loses power when told.
//!
//! A clone is cheap: blocks are shared and copied when one side changes them. Nothing is random but the
//! damage of a cut, which comes from the chip's seed and the operation's ordinal.

use std::sync::Arc;

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Profile};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::block::Block;
use crate::cut::{tear_erase, tear_program};
use crate::{ChipError, Counters, Cut, Rule, TimeSplit, Wear};

/// A simulated chip.
#[derive(Clone, Debug)]
pub struct Chip {
    profile: Profile,
    seed: u64,
    blocks: Vec<Arc<Block>>,
    counters: Counters,
    /// Ordinal of the operation that is cut, and where in it.
    cut: Option<(u64, Cut)>,
    powered: bool,
}

impl Chip {
    /// A new chip of `profile`: all blocks erased, none ever by the user. Seed 0.
    pub fn new(profile: Profile) -> Self {
        Self::with_seed(profile, 0)
    }

    /// A new chip whose damage comes from `seed`.
    pub fn with_seed(profile: Profile, seed: u64) -> Self {
        let geometry = profile.geometry;
        let page_bytes = (geometry.page_bytes + geometry.spare_bytes) as usize;
        let block = Arc::new(Block::new(geometry.pages_per_block, page_bytes));
        Self {
            profile,
            seed,
            blocks: vec![block; geometry.blocks as usize],
            counters: Counters::default(),
            cut: None,
            powered: true,
        }
    }

    /// The chip's datasheet.
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What the chip did since it was made.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Modelled time that this took, by kind of operation.
    pub const fn time(&self) -> TimeSplit {
        TimeSplit {
            read_ns: self.counters.reads * self.profile.page_read_ns(),
            program_ns: self.counters.programs * self.profile.page_program_ns(),
            erase_ns: self.counters.erases * self.profile.timing.erase_ns,
        }
    }

    /// The virtual clock: nanoseconds since the chip was made.
    pub const fn now_ns(&self) -> u64 {
        self.time().total()
    }

    /// How often `block`, which lies on the chip, was erased.
    pub fn erase_count(&self, block: BlockNumber) -> u32 {
        self.blocks[block.0 as usize].erase_count
    }

    /// How often each block was erased.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().map(|block| block.erase_count)
    }

    /// How evenly the blocks were erased.
    pub fn wear(&self) -> Wear {
        let sum: u64 = self.erase_counts().map(u64::from).sum();
        Wear {
            least: self.erase_counts().min().unwrap_or(0),
            most: self.erase_counts().max().unwrap_or(0),
            mean: sum as f64 / self.blocks.len() as f64,
        }
    }

    /// Whether `page`, which lies on the chip, was not programmed since its block was erased, not even by a program that was cut.
    pub fn page_is_erased(&self, page: PageNumber) -> bool {
        let (block, page) = self.place(page);
        self.blocks[block].programs(page) == 0
    }

    /// Cuts power at the chip operation that comes after `operation` others from now on; reads, programs
    /// and erases all count.
    pub const fn cut_at(&mut self, operation: u64, cut: Cut) {
        self.cut = Some((self.counters.operations() + operation, cut));
    }

    /// Power is back, and no cut is armed.
    pub const fn restore_power(&mut self) {
        self.powered = true;
        self.cut = None;
    }

    /// Changes the bytes of a page on the chip against all rules, main data and spare area apart. An erased page
    /// counts as programmed afterwards.
    pub fn corrupt_page(&mut self, page: PageNumber, change: impl FnOnce(&mut [u8], &mut [u8])) {
        let main_bytes = self.profile.geometry.page_bytes as usize;
        let (block, page) = self.place(page);
        let block = Arc::make_mut(&mut self.blocks[block]);
        let (main, spare) = block.page_bytes_mut(page).split_at_mut(main_bytes);
        change(main, spare);
        block.count_program(page);
    }

    const fn place(&self, page: PageNumber) -> (usize, PageNumber) {
        let pages = self.profile.geometry.pages_per_block;
        ((page.0 / pages) as usize, PageNumber(page.0 % pages))
    }

    /// The damage of a cut at this operation.
    fn random(&self) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(self.counters.operations());
        random
    }

    fn check_page(&self, page: PageNumber, main: usize, spare: usize) -> Result<(), ChipError> {
        let geometry = &self.profile.geometry;
        if page.0 >= geometry.pages() {
            let evidence = format!("{page} was named, the chip has {} pages", geometry.pages());
            return Err(ChipError::rule(Rule::Bounds, evidence));
        }
        if main != geometry.page_bytes as usize || spare > geometry.spare_bytes as usize {
            let evidence = format!(
                "{main} + {spare} bytes were named for {page}, a page has {} + {}",
                geometry.page_bytes, geometry.spare_bytes
            );
            return Err(ChipError::rule(Rule::WholePages, evidence));
        }
        Ok(())
    }

    fn check_program(&self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.check_page(page, main.len(), spare.len())?;
        let (block, index) = self.place(page);
        let block = &self.blocks[block];
        let (programs, allowed) =
            (block.programs(index), self.profile.capabilities.programs_per_page);
        if programs >= allowed {
            let evidence = if block.is_exhausted(index) {
                format!(
                    "{page} lies in {}, whose erase was cut",
                    self.profile.geometry.block_of(page)
                )
            } else {
                format!("{page} had {programs} of {allowed} programs since its block was erased")
            };
            return Err(ChipError::rule(Rule::EraseBeforeProgram, evidence));
        }
        if self.profile.capabilities.in_order && index.0 + 1 < block.next_in_order {
            let evidence = format!(
                "{page} is page {} of its block, and page {} was programmed before",
                index.0,
                block.next_in_order - 1
            );
            return Err(ChipError::rule(Rule::Order, evidence));
        }
        if let Some(old) = block.page_bytes(index) {
            let rises = |(old, new): (&u8, &u8)| new & !old != 0;
            let spare_old = &old[main.len()..];
            if old.iter().zip(main).any(rises) || spare_old.iter().zip(spare).any(rises) {
                let evidence = format!("a program of {page} would change a bit from 0 to 1");
                return Err(ChipError::rule(Rule::BitsFall, evidence));
            }
        }
        Ok(())
    }

    /// Whether the operation about to be done is cut, and where.
    fn take_cut(&mut self) -> Option<Cut> {
        let cut = self.cut.filter(|&(operation, _)| operation == self.counters.operations());
        let (_, cut) = cut?;
        self.powered = false;
        Some(cut)
    }

    fn tear_program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) {
        let mut random = self.random();
        let (block, page) = self.place(page);
        let block = Arc::make_mut(&mut self.blocks[block]);
        let old = block.page_bytes_mut(page);
        let mut new = old.to_vec();
        store(&mut new, main, spare, false);
        tear_program(old, &new, &mut random);
        block.count_program(page);
    }

    fn tear_erase(&mut self, block: BlockNumber) {
        let mut random = self.random();
        let pages = self.profile.geometry.pages_per_block;
        let block = Arc::make_mut(&mut self.blocks[block.0 as usize]);
        tear_erase(block, pages, &mut random);
        block.exhaust();
        block.erase_count += 1;
    }
}

/// Stores `main` and the first bytes of the spare area. In a fresh page the rest of the spare area is set
/// to ones; else it stays, and bits only fall.
fn store(page: &mut [u8], main: &[u8], spare: &[u8], fresh: bool) {
    let (page_main, page_spare) = page.split_at_mut(main.len());
    if fresh {
        page_main.copy_from_slice(main);
        page_spare[..spare.len()].copy_from_slice(spare);
        page_spare[spare.len()..].fill(0xFF);
    } else {
        page_main.iter_mut().zip(main).for_each(|(old, new)| *old &= new);
        page_spare.iter_mut().zip(spare).for_each(|(old, new)| *old &= new);
    }
}

impl Flash for Chip {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        self.profile.geometry
    }

    fn capabilities(&self) -> Capabilities {
        self.profile.capabilities
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<(), ChipError> {
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
        self.check_page(page, main.len(), spare.len())?;
        let cut = self.take_cut();
        self.counters.reads += 1;
        self.counters.bytes_read += (main.len() + spare.len()) as u64;
        if cut.is_some() {
            return Err(ChipError::PowerLost);
        }
        let (block, page) = self.place(page);
        match self.blocks[block].page_bytes(page) {
            Some(bytes) => {
                let (page_main, page_spare) = bytes.split_at(main.len());
                main.copy_from_slice(page_main);
                spare.copy_from_slice(&page_spare[..spare.len()]);
            }
            None => {
                main.fill(0xFF);
                spare.fill(0xFF);
            }
        }
        Ok(())
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
        self.check_program(page, main, spare)?;
        let cut = self.take_cut();
        if cut == Some(Cut::Inside) {
            self.tear_program(page, main, spare);
        } else if cut != Some(Cut::Before) {
            let (block, page) = self.place(page);
            let block = Arc::make_mut(&mut self.blocks[block]);
            let fresh = block.programs(page) == 0;
            store(block.cells_mut(page), main, spare, fresh);
            block.count_program(page);
        }
        self.counters.programs += 1;
        self.counters.bytes_programmed += (main.len() + spare.len()) as u64;
        if cut.is_some() { Err(ChipError::PowerLost) } else { Ok(()) }
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        if !self.powered {
            return Err(ChipError::PowerLost);
        }
        if block.0 >= self.profile.geometry.blocks {
            let blocks = self.profile.geometry.blocks;
            let evidence = format!("{block} was named, the chip has {blocks} blocks");
            return Err(ChipError::rule(Rule::Bounds, evidence));
        }
        let cut = self.take_cut();
        if cut == Some(Cut::Inside) {
            self.tear_erase(block);
        } else if cut != Some(Cut::Before) {
            let block = Arc::make_mut(&mut self.blocks[block.0 as usize]);
            block.erase();
            block.erase_count += 1;
        }
        self.counters.erases += 1;
        if cut.is_some() { Err(ChipError::PowerLost) } else { Ok(()) }
    }
}
