//! The experiments of the VMTree paper (Ould-Khessal, Fazackerley and Lawrence).
//!
//! These are the RAM of section 5, Figures 6 to 11, sections 5.4 and 5.5. Beside the figures of the
//! paper are those of its authors' published C code.
//!
//! All times are the chips' latencies, without processor time. The paper's times were measured on
//! boards and include both.

mod cards;
mod case;
mod folds;
mod levels;
mod memory;
mod published;
mod ram;
mod random;
mod sensor;
mod series;
mod size;

use std::path::PathBuf;

use nandina::flash::Profile;
use nandina::flash::profile::{DATAFLASH, NAND_2K, SD, SD_2K};

use super::figure::{Bar, Content, Figure};
use super::{Experiment, Reproduction};
use crate::LabError;
use case::{Case, Costs, Mean};
use series::{Kind, Series};

/// The systems that the paper compares, in its order.
const SYSTEMS: [&str; 3] = ["btree", "vm", "vm-ow"];

/// Metrics that grow with the work.
const TOTALS: [&str; 2] = [size::WRITES, folds::ALL_WRITES];

/// How much of the paper's work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Records of Figures 6 to 11.
    records: u32,
    /// The divisor of the records in the large sections.
    ///
    /// The storage and the table shrink by the same divisor.
    by: u32,
    /// The paper's *M* in Figures 10 and 11.
    memories: &'static [usize],
    quick: bool,
    words: &'static str,
}

impl Scale {
    /// As in the paper.
    pub const FULL: Self = Self {
        records: 10_000,
        by: 1,
        memories: &[3, 4, 5, 6, 7, 8, 9, 10],
        quick: false,
        words: "full",
    };
    /// Less work, done in some seconds.
    pub const QUICK: Self = Self {
        records: 2_500,
        by: 10,
        memories: &[3, 4, 10],
        quick: true,
        words: "quick: 2,500 records instead of 10,000; 10,000 instead of 100,000, on a tenth of the storage with a \
                tenth of the table",
    };
}

/// The paper's SD card and DataFlash of the 32-bit board.
///
/// They have as many pages as there are bits in its 251 bytes.
fn board_32() -> [Profile; 2] {
    [SD.with_blocks(32), DATAFLASH.with_blocks(251)]
}

/// The paper's SD card and NAND of the 16-bit board.
///
/// They have as many pages as there are bits in its 127 bytes, and 8 more that make whole blocks.
fn board_16() -> [Profile; 2] {
    [SD_2K.with_blocks(16), NAND_2K.with_blocks(16)]
}

/// The experiments to run.
pub struct Experiments {
    scale: Scale,
    seed: u64,
    sensors: Option<PathBuf>,
    series: Vec<Series>,
    cases: Vec<Case>,
}

impl Experiments {
    /// Makes the work.
    ///
    /// `sensors` is the folder of the sensor series; without it, the parts that need them are
    /// skipped.
    pub fn new(scale: Scale, seed: u64, sensors: Option<PathBuf>) -> Self {
        let folder = sensors.as_deref();
        let series = Kind::ALL.map(|kind| Series::new(kind, scale.records, seed, folder)).into();
        let cases = [
            ram::cases(),
            random::cases(),
            sensor::cases(),
            memory::cases(scale),
            cards::cases(),
            published::cases(),
        ];
        let cases = case::distinct(cases.into_iter().flatten().collect());
        Self { scale, seed, sensors, series, cases }
    }

    /// Operations of all runs.
    pub fn total(&self) -> u64 {
        let cases = self.cases.iter();
        let cases: u64 = cases.map(|case| case.series.find(&self.series).operations()).sum();
        cases + size::operations(self.scale) + folds::operations(self.scale)
    }

    /// Runs everything. `progress` is called with the number of operations done since its last
    /// call.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Reproduction, LabError> {
        let costs = Costs::run(&self.cases, &self.series, progress)?;
        let mut experiments = vec![
            ram::experiment(&costs),
            random::figure_6(&costs),
            random::figure_7(&costs),
            random::causes(&costs),
            sensor::figure_8(&costs),
            sensor::figure_9(&costs),
        ];
        experiments.extend(memory::experiments(&costs, self.scale));
        experiments.push(size::experiment(
            self.scale,
            self.seed,
            self.sensors.as_deref(),
            progress,
        )?);
        experiments.push(cards::experiment(&costs));
        experiments.push(published::experiment(&costs));
        experiments.push(folds::experiment(self.scale, self.seed, progress)?);
        if self.scale.quick {
            // Trees are smaller than the paper's: only orders and trends are meaningful.
            for row in experiments.iter_mut().flat_map(|experiment| &mut experiment.rows) {
                (row.ratio, row.verdict) = (None, None);
                // A total of a tenth of the work cannot be compared with one of all of it.
                if TOTALS.contains(&row.metric) {
                    row.paper = None;
                }
            }
        }
        Ok(Reproduction {
            quick: self.scale.quick,
            paper: "vmtree",
            seed: self.seed,
            seeds: 1,
            scale: self.scale.words,
            experiments,
        })
    }
}

/// An experiment that is filled claim by claim.
///
/// Claims about cases that did not run are left out; the reason is given once.
struct Claims<'c> {
    costs: &'c Costs,
    experiment: Experiment,
}

impl<'c> Claims<'c> {
    fn new(costs: &'c Costs, id: &'static str, title: &'static str, cases: &[Case]) -> Self {
        let mut experiment = Experiment::of(id, title, Vec::new());
        experiment.refusals = costs.skipped(cases);
        Self { costs, experiment }
    }

    /// The means of a phase of two cases, if both ran.
    fn pair(&self, of: &Case, by: &Case, phase: &str) -> Option<(Mean, Mean)> {
        Some((self.costs.mean(of, phase)?, self.costs.mean(by, phase)?))
    }

    /// A claim of the paper and whether it holds.
    fn claim(&mut self, claim: impl Into<String>, holds: bool) {
        self.experiment.orderings.push((claim.into(), holds));
    }

    /// Bars of a figure of a phase, in the order of `cases`.
    fn bars(
        &self,
        cases: &[Case],
        label: impl Fn(&Case) -> String,
        of: impl Fn(&Case) -> Option<f64>,
    ) -> Vec<Bar> {
        let bar = |case: &Case| Some(Bar { label: label(case), parts: vec![of(case)?] });
        cases.iter().filter_map(bar).collect()
    }

    fn done(self) -> Experiment {
        self.experiment
    }
}

/// A figure of bars of one part.
fn bars(id: &str, title: &str, x: &str, y: &str, bars: Vec<Bar>) -> Figure {
    let content = Content::Bars { parts: vec![y.into()], bars };
    Figure { id: id.into(), title: title.into(), x: x.into(), y: y.into(), content }
}
