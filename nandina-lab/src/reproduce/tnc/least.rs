//! The settings of `tnc` with the fastest clustered inserts on SPI NOR, in 4 KB of nodes.

use nandina::Options;
use nandina::flash::profile::NOR;

use super::Experiments;
use super::sweep::{KEY_BYTES, Order, VALUE_BYTES};
use crate::reproduce::{Experiment, Row};
use crate::run::{Setup, SystemRun, run};
use crate::{LabError, parallel};

/// Bytes of RAM for nodes.
const BYTES: usize = 4_096;

/// Pages of a step: few, or more than a commit has, so that it comes at once.
const STEPS: [Option<u32>; 2] = [Some(1), None];

/// The settings of a run.
struct Cell {
    fanout: u16,
    journal: u32,
    step: Option<u32>,
    /// Values stay in the journal.
    apart: bool,
}

impl Cell {
    fn options(&self) -> Options {
        Options::new(KEY_BYTES, VALUE_BYTES)
            .arena_bytes(BYTES)
            .fanout(self.fanout)
            .journal_pages(self.journal)
            .commit_step(self.step.unwrap_or(u32::MAX))
            .journal_values(self.apart)
    }

    fn words(&self) -> String {
        let Self { fanout, journal, step, apart } = self;
        let step = step.map_or("at once".into(), |pages| format!("steps of {pages}"));
        let values = if *apart { "the journal" } else { "nodes" };
        format!("fanout {fanout}, journal {journal}, {step}, values in {values}")
    }
}

/// Fanouts, pages of the journal, and records.
struct Grid {
    fanouts: &'static [u16],
    journals: &'static [u32],
    records: u32,
}

const FULL: Grid =
    Grid { fanouts: &[6, 7, 8, 9, 10, 12, 14, 16, 20, 24], journals: &[16, 128], records: 10_000 };

const QUICK: Grid = Grid { fanouts: &[8, 16], journals: &[32, 128], records: 1_000 };

impl Grid {
    const fn of(quick: bool) -> &'static Self {
        if quick { &QUICK } else { &FULL }
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &fanout in self.fanouts {
            let cell = |journal, step, apart| Cell { fanout, journal, step, apart };
            for &journal in self.journals {
                cells.extend(STEPS.map(|step| cell(journal, step, false)));
            }
            cells.push(cell(128, None, true));
        }
        cells
    }
}

/// Runs of the search.
pub fn runs(quick: bool) -> u64 {
    Grid::of(quick).cells().len() as u64
}

/// The search.
pub fn experiment(
    of: &Experiments,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let title = "SPI NOR, 4 KB of nodes, clustered keys, each durable: the fastest settings";
    let mut experiment = Experiment::of("nor", title, Vec::new());
    experiment.is_wide = true;
    let grid = Grid::of(of.scale.quick);
    let work = Order::Clustered.work(grid.records, of.seed)?;
    let runs = parallel::each(&grid.cells(), |cell| {
        let setup = Setup { profile: NOR, options: cell.options(), ram_bytes: None, layer: None };
        let done = run("tnc", &setup, &work, &|_| ())?;
        progress(1);
        Ok((cell.words(), done))
    })?;
    let mut best: Option<(f64, f64, String)> = None;
    for (config, run) in runs {
        let cost = match run {
            SystemRun::Ran(cost) => cost,
            SystemRun::Refused(refusal) => {
                experiment.refusals.push(format!("{config}: {}", refusal.reason));
                continue;
            }
        };
        let insert = &cost.phases[0];
        let erases = insert.erases_per_op * NOR.timing.erase_ns as f64 / 1e6;
        for (metric, measured, unit) in [
            ("time", insert.ms_mean, "ms an insert"),
            ("without erases", insert.ms_mean - erases, "ms an insert"),
            ("longest", insert.ms_max, "ms"),
            ("programs", insert.programs_per_op, "an insert"),
            ("erases", insert.erases_per_op, "an insert"),
            ("commits", cost.nodes.map_or(0.0, |nodes| nodes.commits as f64), ""),
            ("scan of 100", cost.phases[2].ms_mean, "ms"),
        ] {
            experiment.rows.push(Row::alone("tnc", &config, metric, measured, unit));
        }
        if best.as_ref().is_none_or(|best| insert.ms_mean < best.0) {
            best = Some((insert.ms_mean, insert.ms_mean - erases, config));
        }
    }
    if let Some((all, without, config)) = best {
        experiment.notes.push(format!(
            "The least: {all:.3} ms an insert, {without:.3} without erases, at {config}."
        ));
    }
    Ok(experiment)
}
