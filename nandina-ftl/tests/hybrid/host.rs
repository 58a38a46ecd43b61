//! A host that knows what each logical page must read as, in a vector.

use nandina::flash::profile::Profile;
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::{FtlError, Unsound};
use nandina_ftl::hybrid::{
    Bast, Block, Buffer, Conversions, Fast, Hybrid, Merges, Policy, SequentialRule, Transit,
    logical_pages_max, ram_needed,
};
use nandina_sim::{Chip, ChipError};

use crate::cutting::{Open, Subject, UseOf};
use crate::numbers::Numbers;

pub use crate::cutting::Outcome;

/// Which FTL.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    Block,
    Bast(u32),
    Fast(u32, SequentialRule),
    /// Buffer blocks over the block map.
    OverBlock(Buffer),
    /// Buffer blocks over that many log blocks of BAST.
    OverBast(u32, Buffer),
    /// Buffer blocks over that many log blocks of FAST.
    OverFast(u32, SequentialRule, Buffer),
}

impl Which {
    /// Whether random changes lead to switches and partial merges.
    pub const fn merges_in_parts(self) -> bool {
        match self {
            Self::Block | Self::OverBlock(_) => false,
            // A conversion that completes a logical block leaves log blocks little.
            Self::OverFast(_, _, buffer) => buffer.completes_from == u32::MAX,
            _ => true,
        }
    }

    /// Whether there are buffer blocks.
    pub const fn is_buffered(self) -> bool {
        matches!(self, Self::OverBlock(_) | Self::OverBast(..) | Self::OverFast(..))
    }
}

/// An FTL of the tests.
pub trait Device: LogicalPages<Error = FtlError<ChipError>> {
    fn merges(&self) -> Merges;
    fn conversions(&self) -> Conversions;
    /// For each buffer block the first logical block and the pages, and whether it is closed.
    fn buffered(&self) -> Vec<(u32, u32, bool)>;
    fn check(&mut self) -> Outcome<Result<(), Unsound>>;
    fn convert_all(&mut self) -> Outcome<()>;
    /// Operations of the chip, since it was made.
    fn operations(&self) -> u64;
}

impl<P: Policy> Device for Hybrid<'_, &mut Chip, P> {
    fn merges(&self) -> Merges {
        Self::merges(self)
    }

    fn conversions(&self) -> Conversions {
        Self::conversions(self)
    }

    fn buffered(&self) -> Vec<(u32, u32, bool)> {
        self.buffer_blocks().map(|it| (it.logical_block, it.pages, it.is_closed)).collect()
    }

    fn check(&mut self) -> Outcome<Result<(), Unsound>> {
        Self::check(self)
    }

    fn convert_all(&mut self) -> Outcome<()> {
        Self::convert_all(self)
    }

    fn operations(&self) -> u64 {
        self.flash().counters().operations()
    }
}

/// The RAM of an FTL, and merges over all of its sessions.
pub struct Memory {
    ram: Vec<u8>,
    which: Which,
    pub logical_pages: u32,
    pub merges: Merges,
    pub conversions: u64,
}

impl Memory {
    /// For the most logical pages that the chip has room for.
    pub fn new(profile: &Profile, which: Which) -> Self {
        let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
        fn sizes<P: Policy>(profile: &Profile, policy: P) -> (u32, usize) {
            let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
            let most = logical_pages_max(geometry, capabilities, &policy);
            (most, ram_needed(geometry, capabilities, &policy, most))
        }
        let (logical_pages, bytes) = match which {
            Which::Block => sizes(profile, Block),
            Which::Bast(log_blocks) => sizes(profile, Bast { log_blocks }),
            Which::Fast(log_blocks, sequential) => sizes(profile, Fast { log_blocks, sequential }),
            Which::OverBlock(buffer) => sizes(profile, Transit { over: Block, buffer }),
            Which::OverBast(log_blocks, buffer) => {
                sizes(profile, Transit { over: Bast { log_blocks }, buffer })
            }
            Which::OverFast(log_blocks, sequential, buffer) => {
                sizes(profile, Transit { over: Fast { log_blocks, sequential }, buffer })
            }
        };
        assert!(logical_pages > 0, "{geometry:?} {capabilities:?}");
        Self {
            ram: vec![0; bytes],
            which,
            logical_pages,
            merges: Merges::default(),
            conversions: 0,
        }
    }

    /// Calls `work` with an FTL on the chip, formatted or opened.
    pub fn with<T>(
        &mut self,
        chip: &mut Chip,
        is_new: bool,
        work: impl FnOnce(&mut dyn Device) -> Outcome<T>,
    ) -> Outcome<T> {
        match self.which {
            Which::Block => self.run(chip, is_new, Block, work),
            Which::Bast(log_blocks) => self.run(chip, is_new, Bast { log_blocks }, work),
            Which::Fast(log_blocks, sequential) => {
                self.run(chip, is_new, Fast { log_blocks, sequential }, work)
            }
            Which::OverBlock(buffer) => {
                self.run(chip, is_new, Transit { over: Block, buffer }, work)
            }
            Which::OverBast(log_blocks, buffer) => {
                self.run(chip, is_new, Transit { over: Bast { log_blocks }, buffer }, work)
            }
            Which::OverFast(log_blocks, sequential, buffer) => {
                let over = Fast { log_blocks, sequential };
                self.run(chip, is_new, Transit { over, buffer }, work)
            }
        }
    }

    fn run<P: Policy, T>(
        &mut self,
        chip: &mut Chip,
        is_new: bool,
        policy: P,
        work: impl FnOnce(&mut dyn Device) -> Outcome<T>,
    ) -> Outcome<T> {
        let make = if is_new { Hybrid::format } else { Hybrid::open };
        let mut ftl = make(chip, policy, self.logical_pages, &mut self.ram)?;
        let done = work(&mut ftl);
        let merges = ftl.merges();
        self.merges.switch += merges.switch;
        self.merges.partial += merges.partial;
        self.merges.full += merges.full;
        self.conversions += ftl.conversions().blocks;
        done
    }
}

/// An FTL that is open, and its host.
struct Opened<'d>(&'d mut dyn Device, &'d mut Host);

impl Open for Opened<'_> {
    fn ftl(&mut self) -> &mut dyn LogicalPages<Error = FtlError<ChipError>> {
        self.0
    }

    fn change(&mut self, numbers: &mut Numbers) -> Outcome<()> {
        self.1.change(self.0, numbers)
    }

    fn write(&mut self, logical: u32, content: u32) -> Outcome<()> {
        self.1.make(self.0, Change::Write(logical, content))
    }

    fn verify(&mut self, what: &str) -> Outcome<()> {
        self.1.verify(self.0, what)
    }

    fn expect_sound(&mut self, what: &str) -> Outcome<()> {
        expect_sound(self.0, what)
    }
}

impl Subject for Memory {
    type Host = Host;

    fn new_host(&self) -> Host {
        Host::new(self.logical_pages)
    }

    fn with(
        &mut self,
        chip: &mut Chip,
        host: &mut Host,
        is_new: bool,
        work: &mut UseOf<'_>,
    ) -> Outcome<()> {
        Self::with(self, chip, is_new, |ftl| work(&mut Opened(ftl, host)))
    }
}

/// A change of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A logical page, and the number of its content.
    Write(u32, u32),
    /// A logical page, and how many from it on.
    Trim(u32, u32),
}

impl Change {
    /// What a page holds after the change, if the change concerns it.
    fn of(self, logical: u32) -> Option<Option<u32>> {
        match self {
            Self::Write(written, content) if written == logical => Some(Some(content)),
            Self::Trim(start, count) if (start..start + count).contains(&logical) => Some(None),
            _ => None,
        }
    }
}

/// What an FTL says after a change.
#[derive(Clone)]
pub struct Step {
    pub operations: u64,
    pub merges: Merges,
    pub conversions: Conversions,
    pub buffered: Vec<(u32, u32, bool)>,
    pub trims: u64,
}

/// What the host knows.
#[derive(Clone)]
pub struct Host {
    /// By logical page, the number of its content.
    pub pages: Vec<Option<u32>>,
    /// The change that was begun and did not return.
    pub pending: Option<Change>,
    /// What the FTL said after each change, if that is noted.
    pub steps: Option<Vec<Step>>,
    written: u32,
    /// The next page of a run of writes, and how many are left.
    run: (u32, u32),
}

/// The bytes of a content.
fn bytes_of(logical: u32, content: u32, bytes: usize) -> Vec<u8> {
    let word = (logical << 20 ^ content).to_le_bytes();
    word.into_iter().cycle().take(bytes).collect()
}

impl Host {
    pub fn new(logical_pages: u32) -> Self {
        let pages = vec![None; logical_pages as usize];
        Self { pages, pending: None, steps: None, written: 0, run: (0, 0) }
    }

    /// Makes a random change: some are trims, and some begin runs of writes.
    pub fn change(&mut self, ftl: &mut dyn Device, numbers: &mut Numbers) -> Outcome<()> {
        let pages = self.pages.len() as u32;
        let logical = numbers.below(pages);
        self.written += 1;
        let (next, left) = self.run;
        let change = if left > 0 && next < pages && numbers.below(8) > 0 {
            self.run = (next + 1, left - 1);
            Change::Write(next, self.written)
        } else {
            match numbers.below(24) {
                0 | 1 => Change::Trim(logical, 1 + numbers.below(12).min(pages - logical - 1)),
                2 | 3 => {
                    let start = logical / 8 * 8;
                    self.run = (start + 1, numbers.below(20));
                    Change::Write(start, self.written)
                }
                // Every other write goes to an eighth of the pages.
                at if at % 2 == 0 => Change::Write(logical / 8, self.written),
                _ => Change::Write(logical, self.written),
            }
        };
        self.make(ftl, change)
    }

    pub fn make(&mut self, ftl: &mut dyn Device, change: Change) -> Outcome<()> {
        self.pending = Some(change);
        match change {
            Change::Write(logical, content) => {
                ftl.write(logical, &bytes_of(logical, content, ftl.page_bytes()))?;
            }
            Change::Trim(logical, count) => ftl.trim(logical, count)?,
        }
        self.pending = None;
        for (logical, page) in (0..).zip(&mut self.pages) {
            *page = change.of(logical).unwrap_or(*page);
        }
        self.note(ftl);
        Ok(())
    }

    /// Notes what the FTL says, if that is to be noted.
    pub fn note(&mut self, ftl: &mut dyn Device) {
        if let Some(steps) = &mut self.steps {
            steps.push(Step {
                operations: ftl.operations(),
                merges: ftl.merges(),
                conversions: ftl.conversions(),
                buffered: ftl.buffered(),
                trims: ftl.statistics().host_trims,
            });
        }
    }

    /// Expects that a page reads as is known.
    pub fn expect(&self, ftl: &mut dyn Device, logical: u32, what: &str) {
        let mut bytes = vec![0; ftl.page_bytes()];
        let is_there = ftl.read(logical, &mut bytes).unwrap();
        let known = self.pages[logical as usize];
        let expected = known.map(|content| bytes_of(logical, content, bytes.len()));
        assert_eq!(is_there.then_some(bytes), expected, "{what}: page {logical}");
    }

    /// Reads every page: each is as known, or as the pending change makes it.
    ///
    /// What is found is known from then on.
    pub fn verify(&mut self, ftl: &mut dyn Device, what: &str) -> Outcome<()> {
        let mut bytes = vec![0; ftl.page_bytes()];
        for (logical, known) in (0..).zip(&mut self.pages) {
            let is_there = ftl.read(logical, &mut bytes)?;
            let content = |content: u32| bytes_of(logical, content, bytes.len()) == bytes;
            let is = |page: &Option<u32>| match *page {
                Some(number) => is_there && content(number),
                None => !is_there && bytes.iter().all(|&byte| byte == 0xFF),
            };
            let new = self.pending.and_then(|change| change.of(logical));
            let found = [Some(*known), new].into_iter().flatten().find(is);
            *known = found.unwrap_or_else(|| {
                panic!("{what}: page {logical} reads {:?}, {known:?} or {new:?}", &bytes[..4])
            });
        }
        self.pending = None;
        Ok(())
    }
}

/// Expects that an FTL is sound.
pub fn expect_sound(ftl: &mut dyn Device, what: &str) -> Outcome<()> {
    let found = ftl.check()?;
    assert_eq!(found, Ok(()), "{what}");
    Ok(())
}
