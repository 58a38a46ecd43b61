//! The experiments of the TNC paper (Havasi, SOFSEM 2011): the tree of UBIFS, counted in nodes.
//!
//! Tables 1 to 3, Figures 3 and 4, and what the paper leaves out: bounds of the journal, buffers in
//! bytes, a sync, and UBIFS itself. The work is a model of UBIFS on a list of files; the index is a
//! model that counts nodes, without flash. Then come runs of the store `tnc` on simulated chips.

mod cache;
mod claims;
mod count;
#[cfg(test)]
mod golden;
mod least;
mod published;
mod real;
mod sample;
mod small;
mod sweep;
mod table_1;
mod table_2;
mod table_3;
mod tree;
mod which;

use std::fmt;

use super::{Experiment, Reproduction, Row};
use crate::LabError;
use crate::workload::manifest::{self, Entry};
use published::{BUFFERS, NEVER_SHRUNK, NODES, RATIOS, TABLE_2};
use sample::{FANOUT, Sample, records};

/// How much of the paper's work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// What the sizes are divided by.
    part: u64,
    /// Samples of each size.
    seeds: u64,
    /// Files of a tree made by rule.
    files: u32,
    quick: bool,
    words: &'static str,
    synthetic: &'static str,
}

impl Scale {
    /// As in the paper.
    pub const FULL: Self = Self {
        part: 1,
        seeds: 10,
        files: 84_000,
        quick: false,
        words: "full; files of the list given",
        synthetic: "full; SYNTHETIC: a tree of files made by rule, not Linux",
    };
    /// A tenth of each size, and three samples; takes seconds.
    pub const QUICK: Self = Self {
        part: 10,
        seeds: 3,
        files: 8_400,
        quick: true,
        words: "quick: a tenth of each size; files of the list given",
        synthetic: "quick: a tenth of each size; SYNTHETIC: a tree of files made by rule, not Linux",
    };

    /// As much as this run does of `whole`.
    const fn share(&self, whole: u64) -> u64 {
        whole / self.part
    }
}

/// The experiments to run.
pub struct Experiments {
    scale: Scale,
    seed: u64,
    list: Option<Vec<Entry>>,
}

/// A bound of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bound {
    bytes: Option<u64>,
    /// Whether it was fitted to Table 1's last rows.
    is_fitted: bool,
}

impl Bound {
    const NONE: Self = Self { bytes: None, is_fitted: false };

    /// Its name in the names of files.
    fn key(&self) -> String {
        match self.bytes {
            None => "no-bound".into(),
            Some(_) if self.is_fitted => "fitted".into(),
            Some(bytes) => format!("{}-kb", bytes / 1000),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            None => write!(to, "no journal bound"),
            Some(bytes) => write!(to, "journal {:.1} MB", bytes as f64 / 1e6),
        }
    }
}

/// Bounds of the journal in bytes, beside none and the fitted one.
const BOUNDS: [u64; 2] = [8_000_000, 64_000_000];

/// What Tables 1 and 2 run on.
struct Prepared {
    sample: Sample,
    bounds: Vec<Bound>,
}

/// Bytes in MiB, which the paper calls MB.
fn mega(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl Experiments {
    /// Prepares the work, on a list of files or on a tree made by rule.
    pub const fn new(scale: Scale, seed: u64, list: Option<Vec<Entry>>) -> Self {
        Self { scale, seed, list }
    }

    /// Runs of the model.
    pub fn total(&self) -> u64 {
        let bounds = BOUNDS.len() + 2;
        let tables = bounds * (RATIOS.len() * BUFFERS.len() + TABLE_2.len());
        tables as u64
            + small::runs(bounds)
            + table_3::runs(self.scale.seeds)
            + sweep::runs(self.scale.quick)
            + which::runs()
            + least::runs(self.scale.quick)
    }

    /// Runs everything. `progress` is called with the number of runs done since its last call.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Reproduction, LabError> {
        let by_rule;
        let (list, words) = match &self.list {
            Some(list) => (list, self.scale.words),
            None => {
                by_rule = manifest::by_rule(self.scale.files, self.seed);
                (&by_rule, self.scale.synthetic)
            }
        };
        let (prepared, fitted) = self.prepare(list)?;
        let cells = table_1::cells(self, &prepared, progress);
        let fanouts = table_2::fanouts(&prepared, progress);
        let draws = table_3::draws(self, list, progress)?;
        let mut experiments = vec![
            fitted,
            table_1::experiment(self, &prepared, &cells),
            table_2::experiment(self, &fanouts),
            table_3::experiment(self, &draws),
            small::buffers(self, &prepared, progress),
            small::sync(&prepared, progress),
            real::experiment(self.list.as_deref())?,
            claims::experiment(self, &cells, &fanouts, &draws),
            sweep::experiment(self, progress)?,
            which::experiment(self, progress)?,
            least::experiment(self, progress)?,
        ];
        if self.scale.quick {
            // A smaller tree: only orders and trends are meaningful.
            for row in experiments.iter_mut().flat_map(|experiment| &mut experiment.rows) {
                (row.ratio, row.verdict) = (None, None);
            }
        }
        Ok(Reproduction {
            paper: "tnc",
            seed: self.seed,
            seeds: 1,
            quick: self.scale.quick,
            scale: words,
            experiments,
        })
    }

    /// Fits the sample and one bound of the journal.
    fn prepare(&self, list: &[Entry]) -> Result<(Prepared, Experiment), LabError> {
        let nodes = self.scale.share(NODES);
        let sample = Sample::with_nodes(list, nodes)?;
        let bound = sample.bound_for(self.scale.share(NEVER_SHRUNK));
        let mut bounds = vec![Bound::NONE];
        let bytes = BOUNDS.map(|bytes| Some(self.scale.share(bytes)));
        bounds.extend(bytes.map(|bytes| Bound { bytes, is_fitted: false }));
        bounds.push(Bound { bytes: Some(bound), is_fitted: true });
        let title = "The sample: the head of the list whose tree has the paper's nodes at fanout 8";
        let mut experiment = Experiment::of("sample", title, Vec::new());
        let most = count::run(count::Settings::unbounded(FANOUT), &sample.made).most;
        let (made, removed) = (records(&sample.made), records(&sample.removed));
        let config = "unpacked, then removed";
        let rows = &mut experiment.rows;
        rows.push(Row::beside("ubifs", config, "most nodes", NODES as f64, most as f64, "nodes"));
        for (metric, ours, unit) in [
            ("entries", sample.entries as f64, ""),
            ("files", sample.files as f64, ""),
            ("bytes of files", sample.bytes as f64 / 1e6, "MB"),
            ("changes, unpacking", sample.made.len() as f64, ""),
            ("changes, removing", sample.removed.len() as f64, ""),
            ("records, unpacking", made as f64 / 1e6, "MB"),
            ("records, removing", removed as f64 / 1e6, "MB"),
            ("fitted journal bound", bound as f64 / 1e6, "MB"),
        ] {
            rows.push(Row::alone("ubifs", config, metric, ours, unit));
        }
        if most < nodes {
            experiment.refusals.push(format!("the list has {most} nodes: {nodes} are wanted"));
        }
        experiment.notes.push(
            "Two numbers are fitted: the length of the head to the paper's 23,158 nodes, and this bound of the \
             journal to its 12,457 nodes written where nothing is shrunk. Those are fewer than the tree has: a \
             commit comes while files are removed, and what was removed before it is never written."
                .into(),
        );
        Ok((Prepared { sample, bounds }, experiment))
    }
}
