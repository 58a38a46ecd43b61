//! The experiments of the WPCB-tree paper (Ho and Park).
//!
//! Tables 1 and 2, Figures 2 and 9 to 15, the formulas of section 5, and what the paper leaves out:
//! the log blocks of its FTL, the same flash for both sides, a page map, larger trees, and fuller
//! chips. The charts have no printed values, so our figures are compared only with what its
//! sentences say.
//!
//! An index runs once in RAM, and its pages are then written through each FTL. All times are the
//! latencies of Table 1 and an erase of 1.5 ms, without processor time.

mod below;
mod beyond;
mod blocks;
mod causes;
mod claims;
mod cost;
mod counts;
mod device;
mod durable;
mod evictions;
mod growth;
mod keys;
mod model;
mod mu_trees;
mod on_device;
mod page_map;
mod pays;
mod rebalancing;
mod rivals;
mod runs;
mod splits;
mod table2;
mod times;
mod tree;

use super::figure::{Bar, Content, Figure, Series};
use super::{Experiment, Reproduction};
use crate::LabError;
use crate::reproduce::seeds::mean_of_middle;
use below::Below;
use cost::Cost;
use growth::Growth;
use keys::Order;
use rivals::Rival;
use runs::{Case, Runs};

/// The name of an axis.
const LOG_BLOCKS: &str = "log blocks N";

/// How much of the paper's work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    records: u32,
    /// Numbers of records of larger and smaller trees.
    sizes: &'static [u32],
    /// The same for μ*-tree, of which heights and pages are of interest.
    heights: &'static [u32],
    /// Values of *rs* in Figure 11, in per cent.
    ratios: &'static [u32],
    /// Values of *rs* for the trees that are only counted.
    rival_ratios: &'static [u32],
    /// Log blocks of the FTL, in blocks of a full run.
    log_blocks: &'static [u32],
    block_pages: u32,
    /// How many blocks of a full run one block stands for, in tenths.
    tenths: u32,
    /// Runs of which the mean of the middle ones is taken.
    repetitions: u64,
    quick: bool,
    words: &'static str,
}

impl Scale {
    /// As in the paper.
    pub const FULL: Self = Self {
        records: 1_000_000,
        sizes: &[100_000, 300_000, 1_000_000, 3_000_000, 10_000_000],
        heights: &[100_000, 300_000, 1_000_000, 3_000_000],
        ratios: &[0, 25, 50, 75, 100],
        rival_ratios: &[0, 25, 50, 75, 100],
        log_blocks: &[4, 8, 16, 32, 64, 100, 256, 512],
        block_pages: 64,
        tenths: 10,
        repetitions: 5,
        quick: false,
        words: "full; trees of up to 10,000,000 records beside",
    };
    /// Takes seconds: a tree of as many blocks as 0.4 of the paper's, each of 8 pages.
    pub const QUICK: Self = Self {
        records: 50_000,
        sizes: &[25_000, 50_000],
        heights: &[25_000, 50_000],
        ratios: &[0, 50, 100],
        rival_ratios: &[0, 100],
        log_blocks: &[4, 16, 100],
        block_pages: 8,
        tenths: 25,
        repetitions: 1,
        quick: true,
        words: "quick: 50,000 records, 8 pages a block; buffer blocks and log blocks are 0.4 of those of a full run",
    };

    /// The same, where each experiment runs once; Figure 11 has repetitions otherwise.
    pub const fn once(self) -> Self {
        Self { repetitions: 1, ..self }
    }

    /// As many blocks as `blocks` of the paper, at least 2.
    const fn blocks(self, blocks: u32) -> u32 {
        let scaled = blocks * 10 / self.tenths;
        if scaled < 2 { 2 } else { scaled }
    }
}

/// The experiments to run.
#[derive(Clone, Copy)]
pub struct Experiments {
    scale: Scale,
    seed: u64,
}

impl Experiments {
    /// Prepares the work.
    pub const fn new(scale: Scale, seed: u64) -> Self {
        Self { scale, seed }
    }

    fn cases(&self) -> Vec<Case> {
        let all = [
            counts::cases(self),
            times::cases(self),
            blocks::cases(self),
            model::cases(self),
            beyond::cases(self),
            table2::cases(self),
            page_map::cases(self),
            rebalancing::cases(self),
            splits::cases(self),
            causes::cases(self),
            pays::cases(self),
        ];
        all.into_iter().flatten().collect()
    }

    fn growths(&self) -> Vec<Growth> {
        [table2::growths(self), evictions::growths(self), on_device::growths(self)].concat()
    }

    /// Operations of all runs.
    pub fn total(&self) -> u64 {
        Runs::operations(&self.cases(), &self.growths())
    }

    /// Runs everything. `progress` is called with the number of operations done since its last
    /// call.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Reproduction, LabError> {
        let runs = Runs::run(&self.cases(), &self.growths(), progress)?;
        let mut experiments = counts::experiments(self, &runs)?;
        experiments.push(table2::experiment(self, &runs)?);
        experiments.push(durable::experiment(self, &runs)?);
        experiments.push(evictions::experiment(self, &runs)?);
        experiments.push(on_device::experiment(self, &runs)?);
        experiments.extend(times::experiments(self, &runs)?);
        experiments.push(page_map::experiment(self, &runs)?);
        experiments.push(rebalancing::experiment(self, &runs)?);
        experiments.extend(blocks::experiments(self, &runs)?);
        experiments.push(model::experiment(self, &runs)?);
        experiments.push(splits::experiment(self, &runs)?);
        experiments.extend(beyond::experiments(self, &runs)?);
        experiments.push(pays::experiment(self, &runs)?);
        experiments.extend(causes::experiments(self, &runs)?);
        experiments.push(claims::experiment(&experiments, self.scale));
        if self.scale.quick {
            // A smaller tree: only orders and trends are meaningful.
            for row in experiments.iter_mut().flat_map(|experiment| &mut experiment.rows) {
                (row.ratio, row.verdict) = (None, None);
            }
        }
        Ok(Reproduction {
            paper: "wpcb",
            seed: self.seed,
            seeds: 1,
            quick: self.scale.quick,
            scale: self.scale.words,
            experiments,
        })
    }

    /// The paper's *C* = 128, or as much of this run.
    const fn buffer(&self) -> u32 {
        self.scale.blocks(128)
    }

    /// The inserts of the paper with this ratio *rs*, in per cent.
    const fn inserts(&self, system: &'static str, per_cent: u32) -> Growth {
        Growth {
            system,
            records: self.scale.records,
            per_cent,
            order: Order::Mixed,
            then_removes: false,
            looks_up: false,
            block_pages: self.scale.block_pages,
            seed: self.seed,
        }
    }

    /// The same with each seed of the repetitions.
    fn repeated(&self, growth: Growth) -> impl Iterator<Item = Growth> {
        (0..self.scale.repetitions).map(move |at| Growth { seed: growth.seed + at, ..growth })
    }

    /// A figure of the repetitions of a case: the mean without the lowest and the highest.
    fn mean(
        &self,
        runs: &Runs,
        case: &Case,
        figure: impl Fn(&Cost) -> f64,
    ) -> Result<f64, LabError> {
        let figures = self
            .repeated(case.growth)
            .map(|growth| Ok(figure(&runs.costs(&Case { growth, ..*case })?.inserts)));
        Ok(mean_of_middle(figures.collect::<Result<Vec<_>, LabError>>()?))
    }
}

/// A system on an FTL, as the figures name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Side {
    system: &'static str,
    name: &'static str,
    below: Below,
}

impl Experiments {
    /// What the paper compares, on FAST with so many log blocks of a full run.
    const fn sides(&self, log_blocks: u32) -> [Side; 3] {
        let fast = Below::fast(self.scale.blocks(log_blocks));
        [
            Side { system: "btree", name: "B-tree", below: fast },
            Side { system: "wpcb", name: "WPCB as printed", below: fast.printed(self.buffer()) },
            Side { system: "wpcb", name: "WPCB", below: fast.improved(self.buffer()) },
        ]
    }
}

impl Experiments {
    /// The trees of the paper's figures that are only counted.
    fn rivals(&self) -> [Side; Rival::DRAWN.len()] {
        let fast = Below::fast(self.scale.blocks(counts::LOG_BLOCKS));
        Rival::DRAWN.map(|rival| Side {
            system: rival.key(),
            name: rival.name(),
            below: if rival.is_raw() { Below::RAW } else { fast },
        })
    }

    /// Cases of these trees with this ratio *rs*, in per cent.
    ///
    /// With random keys all records are then looked up and removed. A quick run has not all ratios.
    fn rival_cases(&self, per_cent: u32) -> impl Iterator<Item = (Side, Case)> {
        let then_removes = per_cent == 0;
        let runs = self.scale.rival_ratios.contains(&per_cent);
        self.rivals().into_iter().filter(move |_| runs).map(move |side| {
            let growth = Growth { then_removes, ..self.inserts(side.system, per_cent) };
            (side, Case { growth, below: side.below })
        })
    }
}

/// How much less `of` is than `than`, in per cent.
fn reduction(of: f64, than: f64) -> f64 {
    if than == 0.0 { 0.0 } else { 100.0 * (1.0 - of / than) }
}

/// A figure of lines. Its horizontal axis is logarithmic if it has log blocks.
fn lines(id: &str, title: &str, x: &str, y: &str, series: Vec<Series>) -> Figure {
    let content = Content::Lines { logarithmic: x == LOG_BLOCKS, series };
    Figure { id: format!("wpcb-{id}"), title: title.into(), x: x.into(), y: y.into(), content }
}

/// A figure of bars, each of the named parts.
fn bars(id: &str, title: &str, x: &str, y: &str, parts: &[&str], bars: Vec<Bar>) -> Figure {
    let parts = parts.iter().map(|part| (*part).to_string()).collect();
    let content = Content::Bars { parts, bars };
    Figure { id: format!("wpcb-{id}"), title: title.into(), x: x.into(), y: y.into(), content }
}

/// An experiment without rows yet, with the note on the trees that are only counted.
fn begun(id: &'static str, title: &'static str) -> Experiment {
    let mut experiment = Experiment::of(id, title, Vec::new());
    experiment.notes.push(rivals::NOTE.into());
    experiment
}
