//! The papers' tables and figures beside our own: one file for each paper. Nothing is tuned to print a
//! paper's number.

pub mod mu_tree;

use serde::Serialize;

/// One figure beside the paper's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Key of the system.
    pub system: &'static str,
    /// The configuration, in the paper's words.
    pub config: &'static str,
    /// What was measured.
    pub metric: &'static str,
    /// The paper's value.
    pub paper: f64,
    /// Ours.
    pub measured: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Ours by the paper's; absent where the paper's is zero.
    pub ratio: Option<f64>,
    /// Whether ours is within a tenth of the paper's, else lower or higher.
    pub verdict: &'static str,
}

impl Row {
    fn new(
        system: &'static str,
        config: &'static str,
        metric: &'static str,
        paper: f64,
        measured: f64,
        unit: &'static str,
    ) -> Self {
        let ratio = (paper != 0.0).then(|| measured / paper);
        let verdict = match ratio {
            Some(ratio) if (0.9..=1.1).contains(&ratio) => "within a tenth",
            None if measured == 0.0 => "within a tenth",
            Some(ratio) if ratio < 1.0 => "lower",
            _ => "higher",
        };
        Self { system, config, metric, paper, measured, unit, ratio, verdict }
    }
}

/// One table or figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Experiment {
    /// Its name, such as `table5`.
    pub id: &'static str,
    /// Its figures.
    pub rows: Vec<Row>,
    /// Whether each ordering of systems that the paper shows came out: the claim, and the answer.
    pub orderings: Vec<(&'static str, bool)>,
}

/// What was reproduced of a paper.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Reproduction {
    /// Key of the paper.
    pub paper: &'static str,
    /// Seed that everything random came from.
    pub seed: u64,
    /// How the runs were scaled.
    pub scale: &'static str,
    /// Tables and figures in the paper's order.
    pub experiments: Vec<Experiment>,
}
