//! Programmed pages by the level of their nodes.
//!
//! A wrapper of the chip reads the headers of the pages that pass, so the index itself counts
//! nothing for it. Every record is looked up at the end; a wrong index gives an error instead of a
//! figure.

use std::cell::Cell;

use nandina::flash::{Flash, PageNumber, Profile};
use nandina::node::PageLayout;
use nandina::store::Visitor;
use nandina::{Index, Options, System, ram_needed};
use nandina_sim::{Chip, ChipError, Counters};

use super::case::Outcome;
use crate::LabError;
use crate::hand_on;
use crate::torture::Bus;
use crate::work::Work;

/// A chip, and the numbers of leaf and inner pages that were written to it.
struct Watched<'w> {
    chip: Chip,
    layout: PageLayout,
    leaves: &'w Cell<u64>,
    parents: &'w Cell<u64>,
}

fn add_one(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

impl Watched<'_> {
    fn count(&mut self, main: &[u8], spare: &[u8]) {
        match self.layout.open(&[main, spare].concat()) {
            Ok(header) if header.lowest > 1 => add_one(self.parents),
            // Some bytes of a leaf, which are no page by themselves, count as one.
            _ => add_one(self.leaves),
        }
    }
}

impl Bus for Watched<'_> {
    fn simulated(&self) -> &Chip {
        &self.chip
    }
}

impl Flash for Watched<'_> {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, erase, is_bad, mark_bad);

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.count(main, spare);
        self.chip.program(page, main, spare)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.count(main, spare);
        self.chip.rewrite(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        add_one(self.leaves);
        self.chip.overwrite(page, offset, bytes)
    }
}

/// The cost of one step of the inserts, and the state of the index after it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// Records in the index after the step.
    pub records: u32,
    /// Chip operations of the step.
    pub counters: Counters,
    /// Pages of leaves that it wrote.
    pub leaves: u64,
    /// Pages of inner nodes that it wrote.
    pub parents: u64,
    /// Modelled time of the step, in seconds.
    pub seconds: f64,
    /// Valid pages after it.
    pub valid_pages: u32,
    /// Share of the table of mappings in use after it, in per cent.
    pub table_percent: f64,
    /// Valid pages that garbage collection has moved since the first step.
    pub moved_pages: u64,
}

impl Step {
    /// Pages that were written.
    pub const fn writes(&self) -> u64 {
        self.counters.programs + self.counters.rewrites
    }
}

/// A run of inserts in steps, and of lookups of all of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// Page reads of a lookup at the end.
    pub reads_per_lookup: f64,
    /// Bytes of RAM: buffer and struct.
    pub ram_bytes: usize,
}

impl Steps {
    /// Pages of leaves and of inner nodes that were written in all.
    pub fn written(&self) -> (u64, u64) {
        let sum = |of: fn(&Step) -> u64| self.steps.iter().map(of).sum();
        (sum(|step| step.leaves), sum(|step| step.parents))
    }
}

/// Inserts the rows of `work` in steps of `step` rows, then looks each up.
///
/// `system` is the key of the system.
pub fn run(
    system: &str,
    profile: Profile,
    options: Options,
    work: &Work,
    step: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Outcome<Steps>, LabError> {
    crate::systems::visit(system, Run { profile, options, work, step, progress })
        .unwrap_or_else(|| Ok(Outcome::not_there(system)))
}

struct Run<'r> {
    profile: Profile,
    options: Options,
    work: &'r Work,
    step: usize,
    progress: &'r (dyn Fn(u64) + Sync),
}

impl Visitor for Run<'_> {
    type Output = Result<Outcome<Steps>, LabError>;

    fn visit<S: System + 'static>(self) -> Self::Output {
        let Self { profile, work, .. } = self;
        let system = S::DESCRIPTION.key;
        let refused =
            |reason: String| Ok(Outcome::Skipped(format!("{system} on {}: {reason}", profile.key)));
        if let Some(missing) = S::DESCRIPTION.needs.missing(&profile.capabilities) {
            return refused(missing.to_string());
        }
        let (key_bytes, value_bytes) = (work.key_bytes, work.value_bytes);
        let options = Options { key_bytes, value_bytes, ..self.options };
        let geometry = profile.geometry;
        let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
        let (leaves, parents) = (Cell::new(0), Cell::new(0));
        let chip = Chip::new(profile);
        let mut watched = Watched { chip, layout, leaves: &leaves, parents: &parents };
        let bus: &mut dyn Bus = &mut watched;
        let mut ram = vec![0; ram_needed::<S>(&geometry, &options)];
        let mut index = match Index::<_, S>::format(bus, &options, &mut ram) {
            Ok(index) => index,
            Err(error) => return refused(error.to_string()),
        };
        let ram_bytes = ram_needed::<S>(&geometry, &options) + size_of_val(&index)
            - size_of::<&mut dyn Bus>()
            + size_of::<&Chip>();
        let at = |chip: &Chip| (chip.counters(), leaves.get(), parents.get(), chip.now_ns());
        let rows: Vec<u32> = (0..work.rows() as u32).collect();
        let mut steps = Vec::new();
        for rows in rows.chunks(self.step) {
            let before = at(index.flash().simulated());
            for &row in rows {
                if let Err(error) = index.insert(work.key(row), work.value(row)) {
                    return refused(format!("after {row} records, {error}"));
                }
            }
            (self.progress)(rows.len() as u64);
            let after = at(index.flash().simulated());
            let statistics = index.statistics();
            steps.push(Step {
                records: statistics.records,
                counters: after.0 - before.0,
                leaves: after.1 - before.1,
                parents: after.2 - before.2,
                seconds: (after.3 - before.3) as f64 / 1e9,
                valid_pages: statistics.valid_pages,
                table_percent: f64::from(statistics.mappings) * 100.0
                    / f64::from(statistics.mappings_max.max(1)),
                moved_pages: statistics.moved_pages,
            });
        }
        let before = index.flash().simulated().counters().reads;
        for rows in rows.chunks(self.step) {
            for &row in rows {
                let found = index
                    .get(work.key(row))
                    .map_err(|error| LabError(format!("{system}: lookup of row {row}: {error}")))?;
                if found != Some(work.value(row)) {
                    let what = format!("{system}: the index gave a wrong answer for row {row}");
                    return Err(LabError(what));
                }
            }
            (self.progress)(rows.len() as u64);
        }
        let reads = index.flash().simulated().counters().reads - before;
        let reads_per_lookup = reads as f64 / rows.len().max(1) as f64;
        Ok(Outcome::Ran(Steps { steps, reads_per_lookup, ram_bytes }))
    }
}
