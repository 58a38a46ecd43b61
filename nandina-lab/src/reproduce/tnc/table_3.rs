//! Table 3 and Figure 4: the most nodes, by the bytes of files and by the fanout.
//!
//! The paper does not say what its samples are. Here they are whole directories, drawn by ten
//! seeds. The test of a difference is a second draw, of directories whose files are larger.

use super::count::{Settings, run};
use super::published::{FANOUTS, TABLE_3};
use super::sample::Sample;
use super::{Experiments, mega};
use crate::LabError;
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};
use crate::workload::manifest::{Entry, sample};

/// The files of the second draw's directories have so many bytes on average, at least.
const LARGER_BYTES: u64 = 12_000;

/// The most nodes of one size and one fanout, over all seeds.
#[derive(Clone, Default)]
pub struct Spread {
    nodes: Vec<u64>,
}

impl Spread {
    /// The mean.
    pub fn mean(&self) -> f64 {
        self.nodes.iter().sum::<u64>() as f64 / self.nodes.len().max(1) as f64
    }

    fn least(&self) -> u64 {
        self.nodes.iter().copied().min().unwrap_or_default()
    }

    fn most(&self) -> u64 {
        self.nodes.iter().copied().max().unwrap_or_default()
    }

    fn holds(&self, nodes: u64) -> bool {
        (self.least()..=self.most()).contains(&nodes)
    }
}

/// Both draws: by size, then by fanout.
pub struct Draws {
    /// Directories of any files.
    pub any: Vec<[Spread; 4]>,
    /// Directories of larger files.
    larger: Vec<[Spread; 4]>,
    /// Sizes of the samples in bytes.
    sizes: Vec<u64>,
}

/// Runs of this experiment.
pub fn runs(seeds: u64) -> u64 {
    2 * seeds * (TABLE_3.len() * FANOUTS.len()) as u64
}

/// Draws the samples, and runs each at each fanout.
pub fn draws(
    of: &Experiments,
    list: &[Entry],
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Draws, LabError> {
    let sizes: Vec<u64> = TABLE_3.iter().map(|(mb, _)| of.scale.share(mb * 1_000_000)).collect();
    let draw = |mean_bytes: u64| -> Result<Vec<[Spread; 4]>, LabError> {
        let spreads = sizes.iter().map(|&bytes| {
            let mut spreads: [Spread; 4] = Default::default();
            for seed in 0..of.scale.seeds {
                let sample = Sample::of(&sample(list, bytes, mean_bytes, of.seed + seed))?;
                for (fanout, spread) in FANOUTS.into_iter().zip(&mut spreads) {
                    // Nothing is removed: the tree is largest then.
                    spread.nodes.push(run(Settings::unbounded(fanout), &sample.made).most);
                    progress(1);
                }
            }
            Ok(spreads)
        });
        spreads.collect()
    };
    Ok(Draws { any: draw(0)?, larger: draw(LARGER_BYTES)?, sizes })
}

/// The experiment of the samples.
pub fn experiment(of: &Experiments, draws: &Draws) -> Experiment {
    let title = "Table 3 and Figure 4: the most nodes, by bytes of files and by fanout";
    let mut experiment = Experiment::of("table3", title, Vec::new());
    let (mut within, mut within_both, mut outside) = (0, 0, Vec::new());
    for (at, (mb, paper)) in TABLE_3.into_iter().enumerate() {
        for (column, (fanout, nodes)) in FANOUTS.into_iter().zip(paper).enumerate() {
            let (any, larger) = (&draws.any[at][column], &draws.larger[at][column]);
            let config = format!("{} MB, fanout {fanout}", draws.sizes[at] as f64 / 1e6);
            let mean = any.mean();
            experiment.rows.push(Row::beside(
                "tnc",
                &config,
                "most nodes",
                nodes as f64,
                mean,
                "nodes",
            ));
            let bytes = mean as u64 * Settings::unbounded(fanout).node_bytes();
            let mut alone = |metric, ours: f64, unit| {
                experiment.rows.push(Row::alone("tnc", &config, metric, ours, unit));
            };
            alone("RAM", mega(bytes), "MiB");
            alone("least of the seeds", any.least() as f64, "nodes");
            alone("most of the seeds", any.most() as f64, "nodes");
            alone("larger files: least", larger.least() as f64, "nodes");
            alone("larger files: most", larger.most() as f64, "nodes");
            let nodes = of.scale.share(nodes);
            within += usize::from(any.holds(nodes));
            if (larger.least().min(any.least())..=larger.most().max(any.most())).contains(&nodes) {
                within_both += 1;
            } else {
                outside.push(format!("{mb} MB at fanout {fanout}"));
            }
        }
    }
    let cells = TABLE_3.len() * FANOUTS.len();
    experiment.orderings = vec![linear(draws), halves(draws)];
    if of.scale.quick {
        outside.clear();
    } else {
        let words =
            format!("the paper's values lie within the spread of the seeds: {within} of {cells}");
        experiment.orderings.push((words, within == cells));
        let words = format!(
            "they lie between directories of any files and those whose files have {LARGER_BYTES} bytes or more \
             on average: {within_both} of {cells}"
        );
        experiment.orderings.push((words, within_both == cells));
    }
    if !outside.is_empty() {
        experiment.notes.push(format!("Outside both draws: {}.", outside.join(", ")));
    }
    experiment.notes.push(own_proportions());
    experiment.figures.push(figure(draws));
    experiment
}

/// Whether nodes a byte are within a fifth of their mean at every size.
pub fn linear(draws: &Draws) -> (String, bool) {
    let mut farthest = 0.0f64;
    for column in 0..FANOUTS.len() {
        let shares = draws.any.iter().zip(&draws.sizes);
        let shares: Vec<f64> =
            shares.map(|(row, bytes)| row[column].mean() / *bytes as f64).collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        farthest = shares.iter().fold(farthest, |far, share| far.max((share / mean - 1.0).abs()));
    }
    let words = format!(
        "nodes at most grow linearly: nodes a byte differ from their mean by at most {:.0} %",
        100.0 * farthest
    );
    (words, farthest <= 0.2)
}

/// Whether twice the fanout needs about half the nodes, 0.45 to 0.55.
pub fn halves(draws: &Draws) -> (String, bool) {
    let pairs = draws.any.iter().flat_map(|row| row.windows(2));
    let ratios: Vec<f64> = pairs.map(|pair| pair[1].mean() / pair[0].mean()).collect();
    let least = ratios.iter().copied().fold(f64::MAX, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let words = format!("twice the fanout, about half the nodes: {least:.2} to {most:.2} of them");
    (words, least >= 0.45 && most <= 0.55)
}

/// The proportions in the paper's own table.
fn own_proportions() -> String {
    let of = |rows: &[(u64, [u64; 4])], column: usize| {
        let shares = rows.iter().map(|(_, row)| row[column + 1] as f64 / row[column] as f64);
        let (least, most) = (shares.clone().fold(f64::MAX, f64::min), shares.fold(0.0, f64::max));
        match (format!("{least:.2}"), format!("{most:.2}")) {
            (least, most) if least == most => least,
            (least, most) => format!("{least} to {most}"),
        }
    };
    format!(
        "In the paper's table, fanout 16 has {} of the nodes of fanout 8, and 64 has {} of those of 32 up to \
         200 MB and {} above. From 600 to 800 MB fanout 8 grows by {:.0} %, fanout 64 by {:.0} %. No one \
         tree does that: the columns of one size are not all of one sample.",
        of(&TABLE_3, 0),
        of(&TABLE_3[..3], 2),
        of(&TABLE_3[3..], 2),
        100.0 * (TABLE_3[5].1[0] as f64 / TABLE_3[4].1[0] as f64 - 1.0),
        100.0 * (TABLE_3[5].1[3] as f64 / TABLE_3[4].1[3] as f64 - 1.0),
    )
}

fn figure(draws: &Draws) -> Figure {
    let mut series = Vec::new();
    for (column, fanout) in FANOUTS.iter().enumerate() {
        let ours = draws.sizes.iter().zip(&draws.any);
        let ours = ours.map(|(bytes, row)| (*bytes as f64 / 1e6, row[column].mean()));
        series.push(Series { name: format!("fanout {fanout}"), points: ours.collect() });
        let paper = draws.sizes.iter().zip(TABLE_3);
        let paper = paper.map(|(bytes, (mb, row))| {
            let part = *bytes as f64 / (mb as f64 * 1e6);
            (*bytes as f64 / 1e6, row[column] as f64 * part)
        });
        series.push(Series { name: format!("fanout {fanout}, paper"), points: paper.collect() });
    }
    Figure {
        id: "tnc-figure4".into(),
        title: "Figure 4: the most nodes, by bytes of files".into(),
        x: "files (MB)".into(),
        y: "nodes".into(),
        content: Content::Lines { logarithmic: false, series },
    }
}
