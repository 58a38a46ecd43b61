//! The papers' tables and figures beside our own: one folder for each paper, and one for `rosette`.
//!
//! No setting is tuned to print a paper's number.

pub mod extents;
pub mod figure;
pub mod mu_tree;
pub mod rosette;
mod seeds;
pub mod tnc;
pub mod vm_tree;
pub mod wpcb;

use serde::Serialize;

use figure::Figure;
pub use seeds::mean;

/// One of our figures, beside the paper's where it has one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Key of the system.
    pub system: &'static str,
    /// The configuration, in the paper's words.
    pub config: String,
    /// What was measured.
    pub metric: &'static str,
    /// The paper's value; absent where the paper has none.
    pub paper: Option<f64>,
    /// Ours.
    pub measured: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Ours divided by the paper's; absent where the paper has none, or zero.
    pub ratio: Option<f64>,
    /// Whether ours is within a tenth of the paper's, lower or higher.
    ///
    /// Absent where the paper has none.
    pub verdict: Option<&'static str>,
}

impl Row {
    /// A figure that the paper gives as well.
    fn beside(
        system: &'static str,
        config: &str,
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
        let (paper, verdict) = (Some(paper), Some(verdict));
        Self { system, config: config.into(), metric, paper, measured, unit, ratio, verdict }
    }

    /// A figure for which the paper gives a range.
    ///
    /// It is compared with the nearest value in the range.
    fn in_range(
        system: &'static str,
        config: &str,
        metric: &'static str,
        (least, most): (f64, f64),
        measured: f64,
        unit: &'static str,
    ) -> Self {
        let paper = measured.clamp(least, most);
        Self::beside(system, config, metric, paper, measured, unit)
    }

    /// A figure that the paper does not give.
    fn alone(
        system: &'static str,
        config: &str,
        metric: &'static str,
        measured: f64,
        unit: &'static str,
    ) -> Self {
        let config = config.into();
        Self { system, config, metric, paper: None, measured, unit, ratio: None, verdict: None }
    }
}

/// A claim of a paper, what shows it, and whether it holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Claim {
    /// Its number.
    pub id: &'static str,
    /// What is claimed, in our words.
    pub claim: &'static str,
    /// The experiments of the report, or the tests.
    pub shown_by: String,
    /// What was measured here.
    pub measured: String,
    /// `holds`, `in part` or `does not hold`.
    pub verdict: &'static str,
}

/// One table or figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Experiment {
    /// Its name, such as `table5`.
    pub id: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Its figures.
    pub rows: Vec<Row>,
    /// Each claim of the paper about an ordering, and whether it holds here.
    pub orderings: Vec<(String, bool)>,
    /// The runs that could not be made, and why.
    pub refusals: Vec<String>,
    /// What a reader should know of the figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The claims of the paper, in the table that sums them up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// A line of the table has all figures of a configuration.
    #[serde(skip)]
    pub is_wide: bool,
    /// Its drawings.
    pub figures: Vec<Figure>,
}

impl Experiment {
    /// Figures alone, without claims or drawings.
    const fn of(id: &'static str, title: &'static str, rows: Vec<Row>) -> Self {
        Self {
            id,
            title,
            rows,
            orderings: Vec::new(),
            refusals: Vec::new(),
            notes: Vec::new(),
            claims: Vec::new(),
            is_wide: false,
            figures: Vec::new(),
        }
    }
}

/// What was reproduced of a paper.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Reproduction {
    /// Key of the paper.
    pub paper: &'static str,
    /// Seed of everything random; the first of several.
    pub seed: u64,
    /// Seeds, one after another, of which the figures are means.
    pub seeds: u64,
    /// The runs are smaller than the paper's, so that figures have no verdicts.
    pub quick: bool,
    /// Description of the scale of the runs.
    pub scale: &'static str,
    /// Tables and figures in the paper's order.
    pub experiments: Vec<Experiment>,
}
