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
//! Each of these has parameters that give Table 4's counts, and those of a twentieth of the work.
//! Each parameter's documentation says what the paper leaves open and what was chosen for the
//! counts.
//!
//! [`ubifs`] is of another paper, on keys of 8 bytes; Table 4 does not count it.

pub mod filesystem;
pub mod kernel_compile;
pub mod key;
pub mod manifest;
pub mod mp3;
pub mod postmark;
pub mod ubifs;

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

/// The names of all workloads.
pub const NAMES: [&str; 4] = ["kernel-compile", "postmark", "mp3", "ubifs"];

/// A workload as work for an index.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Its name, as in [`NAMES`].
    pub name: &'static str,
    /// The work.
    pub work: Work,
    /// Its tree operations.
    pub counts: Counts,
}

impl Workload {
    fn new<const N: usize>(name: &'static str, recorder: Recorder<N>) -> Result<Self, LabError> {
        let (work, counts) = recorder.finish()?;
        Ok(Self { name, work, counts })
    }

    /// The counts, beside Table 4's if it has the workload.
    pub fn table_4(&self) -> Vec<CountRow> {
        let paper = TABLE_4.iter().find(|(name, _)| *name == self.name).map(|(_, counts)| counts);
        let row = |operation, count: fn(&Counts) -> u64| {
            let (paper, ours) = (paper.map(count), count(&self.counts));
            let ratio = paper.map(|paper| ours as f64 / paper.max(1) as f64);
            CountRow { operation, paper, ours, ratio }
        };
        vec![
            row("retrieval", |counts| counts.retrievals),
            row("insertion", |counts| counts.insertions),
            row("deletion", |counts| counts.deletions),
        ]
    }
}

/// A count, beside the paper's if it has one.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CountRow {
    /// `retrieval`, `insertion` or `deletion`.
    pub operation: &'static str,
    /// Table 4's; absent for a workload that is not in it.
    pub paper: Option<u64>,
    /// Ours.
    pub ours: u64,
    /// Ours divided by the paper's; absent where the paper has none.
    pub ratio: Option<f64>,
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
        "ubifs" => ubifs::workload(&ubifs::Parameters::of(quick), None, seed),
        _ => {
            let known = NAMES.join(", ");
            Err(LabError(format!("there is no workload '{name}': choose from {known}")))
        }
    }
}
