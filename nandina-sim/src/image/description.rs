//! All of a chip but the bytes of its pages, as JSON.
//!
//! The description is validated before a chip is made of it. This file touches no file system.

use std::collections::BTreeMap;

use nandina::flash::{Geometry, PageNumber};
use serde::{Deserialize, Serialize};

use super::profile::ProfileFields;
use super::unstable::UnstableFields;
use super::{ImageErrorKind, Labels};
use crate::block::{Block, Damage};
use crate::{Chip, Counters, FaultCounters, Faults, TimeSplit};

/// The largest count that is accepted: below it, no counter can overflow later.
const COUNT_MAX: u64 = 1 << 60;
/// The same for the erase count of a block.
const ERASES_MAX: u32 = 1 << 31;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    labels: Labels,
    profile: ProfileFields,
    seed: u64,
    counters: Counters,
    time: TimeSplit,
    faults: Faults,
    fault_counters: FaultCounters,
    next_read: u32,
    next_program: u32,
    rests: u64,
    /// The blocks that are not as on a new chip, in rising order.
    blocks: Vec<BlockFields>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockFields {
    block: u32,
    erase_count: u32,
    next_in_order: u32,
    bad: bool,
    failing: bool,
    /// Programs of each page since the erase, in runs of equal numbers.
    ///
    /// 255: the page must be erased first.
    programs: Vec<Run<u8>>,
    /// Whether each page is stored in the file, in runs of equal values.
    written: Vec<Run<bool>>,
    damage: BTreeMap<u32, Damage>,
    /// Left out if empty, because older programs do not know it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unstable: BTreeMap<u32, UnstableFields>,
}

/// A run: a number of pages, and the value of each of them.
type Run<T> = (u32, T);

/// A block, and which of its pages are stored in the file.
type Written = (usize, Vec<bool>);

fn runs<T: Copy + PartialEq>(values: &[T]) -> Vec<Run<T>> {
    values.chunk_by(PartialEq::eq).map(|run| (run.len() as u32, run[0])).collect()
}

/// The values of `runs`, or `None` if they do not cover exactly `pages` pages.
fn expand<T: Copy>(runs: &[Run<T>], pages: u32) -> Option<Vec<T>> {
    let sum: u64 = runs.iter().map(|&(count, _)| u64::from(count)).sum();
    let values = || runs.iter().flat_map(|&(count, value)| (0..count).map(move |_| value));
    (sum == u64::from(pages)).then(|| values().collect())
}

impl Description {
    pub fn of(chip: &Chip, labels: &Labels) -> Self {
        let blocks = chip.blocks.iter().enumerate().filter(|(_, block)| !block.is_new());
        let blocks = blocks.map(|(number, block)| BlockFields {
            block: number as u32,
            erase_count: block.erase_count,
            next_in_order: block.next_in_order,
            bad: block.bad,
            failing: block.failing,
            programs: runs(block.programs_of_pages()),
            written: runs(block.written_pages()),
            damage: block.damage.clone(),
            unstable: block.unstable.iter().map(|(&page, is)| (page, is.into())).collect(),
        });
        Self {
            labels: labels.clone(),
            profile: ProfileFields::from(&chip.profile),
            seed: chip.seed,
            counters: chip.counters,
            time: chip.time,
            faults: chip.faults,
            fault_counters: chip.fault_counters,
            next_read: chip.next_read.0,
            next_program: chip.next_program.0,
            rests: chip.rests,
            blocks: blocks.collect(),
        }
    }

    /// Returns the chip's sizes and counts, or an error if no such chip can exist.
    pub fn geometry(&self) -> Result<Geometry, ImageErrorKind> {
        match self.profile.fault() {
            Some(what) => Err(ImageErrorKind::Geometry(what)),
            None => Ok(self.profile.geometry),
        }
    }

    /// Returns the chip without the bytes of its pages, and which pages have bytes.
    ///
    /// The geometry must have been checked.
    pub fn into_chip(self) -> Result<(Chip, Labels, Vec<Written>), ImageErrorKind> {
        self.check_counts()?;
        let mut chip = Chip::with_seed(self.profile.into_profile(), self.seed);
        chip.counters = self.counters;
        chip.time = self.time;
        chip.faults = self.faults;
        chip.fault_counters = self.fault_counters;
        (chip.next_read, chip.next_program) =
            (PageNumber(self.next_read), PageNumber(self.next_program));
        chip.rests = self.rests;
        let mut written = Vec::with_capacity(self.blocks.len());
        let mut above = 0;
        for fields in self.blocks {
            let number = fields.block;
            if number < above || number >= chip.profile.geometry.blocks {
                let what = format!("block {number} is out of order or beyond the chip");
                return Err(ImageErrorKind::State(what));
            }
            above = number + 1;
            let block = chip.blocks.change(number as usize);
            let pages = fields
                .put_into(block, &chip.profile.geometry)
                .map_err(|what| ImageErrorKind::State(format!("block {number}: {what}")))?;
            written.push((number as usize, pages));
        }
        Ok((chip, self.labels, written))
    }

    fn check_counts(&self) -> Result<(), ImageErrorKind> {
        let (counters, time, faults) = (&self.counters, &self.time, &self.fault_counters);
        let counts = [
            counters.reads,
            counters.programs,
            counters.overwrites,
            counters.erases,
            counters.rewrites,
            counters.bytes_read,
            counters.bytes_programmed,
            time.read_ns,
            time.program_ns,
            time.erase_ns,
            faults.cuts,
            faults.torn,
            faults.program_failures,
            faults.erase_failures,
            faults.rewrite_failures,
            faults.silent,
            faults.unstable,
            faults.device_errors,
            faults.flips,
            faults.corrected,
            faults.uncorrectable,
            self.rests,
        ];
        if let Some(count) = counts.into_iter().find(|&count| count > COUNT_MAX) {
            let what = format!("a counter or a time is {count}, at most {COUNT_MAX} was expected");
            return Err(ImageErrorKind::State(what));
        }
        let pages = self.profile.geometry.pages();
        for page in [self.next_read, self.next_program] {
            if page > pages {
                let what = format!("page {page} comes next, the chip has {pages} pages");
                return Err(ImageErrorKind::State(what));
            }
        }
        Ok(())
    }
}

impl BlockFields {
    /// Writes the state into the new `block`.
    ///
    /// Returns which pages have bytes, or what is impossible.
    fn put_into(self, block: &mut Block, geometry: &Geometry) -> Result<Vec<bool>, String> {
        let pages = geometry.pages_per_block;
        if self.erase_count > ERASES_MAX {
            return Err(format!("it was erased {} times", self.erase_count));
        }
        if self.next_in_order > pages {
            return Err(format!("page {} comes next, it has {pages} pages", self.next_in_order));
        }
        let (Some(programs), Some(written)) =
            (expand(&self.programs, pages), expand(&self.written, pages))
        else {
            return Err(format!("its lists of pages do not name {pages} pages"));
        };
        let bits = (u64::from(geometry.page_bytes) + u64::from(geometry.spare_bytes)) * 8;
        for (&page, damage) in &self.damage {
            if page >= pages {
                return Err(format!("page {page} is damaged, it has {pages} pages"));
            }
            if damage.flips.len() as u64 > bits {
                return Err(format!("page {page} has more wrong bits than bits"));
            }
            if let Some(flip) = damage.flips.iter().find(|&&flip| u64::from(flip) >= bits) {
                return Err(format!("bit {flip} of page {page} is wrong, a page has {bits} bits"));
            }
        }
        block.set_programs(programs);
        (block.erase_count, block.next_in_order) = (self.erase_count, self.next_in_order);
        (block.bad, block.failing) = (self.bad, self.failing);
        block.damage = self.damage;
        for (page, fields) in self.unstable {
            let is_written = written.get(page as usize) == Some(&true);
            let unstable = fields.into_unstable(geometry).filter(|_| is_written);
            let Some(unstable) = unstable else {
                return Err(format!(
                    "page {page} is unstable, and its states are not those of a page"
                ));
            };
            block.unstable.insert(page, unstable);
        }
        Ok(written)
    }
}
