//! The μ-Tree paper's real workloads (section 6.1), made again by rule and seed.
//!
//! Table 4 has their counts.
//!
//! The paper replays the operations of ReiserFS on its tree while programs ran; the traces are not
//! published. So the programs are played here on a model of ReiserFS ([`filesystem`]), and its tree
//! operations are the work: keys of 16 bytes ([`key`]), values of 4 bytes (the address of the
//! item's record).
//!
//! | tree operation | in the index | counted as |
//! |---|---|---|
//! | search, found or not | `lookup` | retrieval |
//! | item inserted | `insert` | insertion |
//! | append to an item | the record moves: its value changes | insertion |
//! | part of an item cut off | the record moves: its value changes | deletion |
//! | item deleted | `delete` | deletion |
//!
//! Each workload has parameters that give Table 4's counts, and those of a twentieth of the work.
//! Each parameter's documentation says what the paper leaves open and what was chosen for the
//! counts.

pub mod filesystem;
pub mod kernel_compile;
pub mod key;
pub mod manifest;
pub mod mp3;
pub mod postmark;

mod recorder;

pub use recorder::{Counts, Recorder, VALUE_BYTES};

use serde::Serialize;

use crate::LabError;
use crate::work::Work;

/// Table 4: each trace and its counts in the paper.
pub const TABLE_4: [(&str, Counts); 3] = [
    ("kernel-compile", Counts { retrievals: 2_274_867, insertions: 260_974, deletions: 236_027 }),
    ("postmark", Counts { retrievals: 4_617_494, insertions: 574_148, deletions: 391_847 }),
    ("mp3", Counts { retrievals: 512_986, insertions: 223_188, deletions: 23_950 }),
];

/// A workload as work for an index.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Its name, as in [`TABLE_4`].
    pub name: &'static str,
    /// The work.
    pub work: Work,
    /// Its tree operations.
    pub counts: Counts,
}

impl Workload {
    fn new(name: &'static str, recorder: Recorder) -> Result<Self, LabError> {
        let (work, counts) = recorder.finish()?;
        Ok(Self { name, work, counts })
    }

    /// The counts beside Table 4's.
    pub fn table_4(&self) -> Vec<CountRow> {
        let paper = TABLE_4.iter().find(|(name, _)| *name == self.name).map(|(_, counts)| *counts);
        let paper = paper.unwrap_or_default();
        let ours = &self.counts;
        [
            ("retrieval", paper.retrievals, ours.retrievals),
            ("insertion", paper.insertions, ours.insertions),
            ("deletion", paper.deletions, ours.deletions),
        ]
        .map(|(operation, paper, ours)| CountRow {
            operation,
            paper,
            ours,
            ratio: ours as f64 / paper.max(1) as f64,
        })
        .into()
    }
}

/// A count beside the paper's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CountRow {
    /// `retrieval`, `insertion` or `deletion`.
    pub operation: &'static str,
    /// Table 4's.
    pub paper: u64,
    /// Ours.
    pub ours: u64,
    /// Ours divided by the paper's.
    pub ratio: f64,
}

/// Makes the workload named `name`, at full scale or a twentieth of it.
///
/// All parameters have their defaults.
pub fn by_name(name: &str, quick: bool, seed: u64) -> Result<Workload, LabError> {
    match name {
        "postmark" => postmark::workload(&postmark::Parameters::of(quick), seed),
        "kernel-compile" => {
            kernel_compile::workload(&kernel_compile::Parameters::of(false, quick), None, seed)
        }
        "mp3" => mp3::workload(&mp3::Parameters::of(quick), seed),
        _ => {
            let known = TABLE_4.map(|(name, _)| name).join(", ");
            Err(LabError(format!("there is no workload '{name}': choose from {known}")))
        }
    }
}
