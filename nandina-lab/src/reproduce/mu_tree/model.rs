//! Table 3 and Figure 7: the paper's model (section 4), without a run.

use nandina::flash::profile::MLC;

use crate::analysis::{self, Tree};
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};

/// Height of both trees of a million records.
const HEIGHT: u32 = 3;

fn key(tree: Tree) -> &'static str {
    match tree {
        Tree::Wandering => "wandering",
        Tree::Mu => "mu",
    }
}

/// Table 3 for the heights of Table 5 and the latencies of Table 1.
///
/// The paper's cells are formulas, so there are no figures to compare with.
pub fn table_3() -> Experiment {
    let latencies = [MLC.page_read_ns(), MLC.page_program_ns()].map(|ns| ns as f64 / 1e6);
    let mut rows = Vec::new();
    for row in analysis::table_3(HEIGHT, HEIGHT, latencies[0], latencies[1]) {
        let system = key(row.tree);
        for (metric, measured, unit) in [
            ("reads", f64::from(row.reads), "pages"),
            ("programs", f64::from(row.writes), "pages"),
            ("cost", row.ms, "ms"),
        ] {
            rows.push(Row::alone(system, row.operation, metric, measured, unit));
        }
    }
    let title = "Table 3: what the model says that an operation costs, for trees of height 3";
    Experiment::of("table3", title, rows)
}

/// Figure 7: heights from 1 to 10^9 records.
pub fn figure_7() -> Experiment {
    let points = analysis::figure_7(20);
    let series = |name: &str, levels: fn(&analysis::HeightPoint) -> u32| Series {
        name: name.into(),
        points: points.iter().map(|point| (point.records, levels(point).into())).collect(),
    };
    let mut rows = Vec::new();
    for point in points.iter().step_by(20) {
        let config = format!("{} records", point.records.round());
        rows.push(Row::alone("wandering", &config, "height", point.wandering_levels.into(), ""));
        rows.push(Row::alone("mu", &config, "height", point.mu_levels.into(), ""));
    }
    let higher = |most: u32| {
        points.iter().all(|point| point.mu_levels.abs_diff(point.wandering_levels) <= most)
    };
    let figure = Figure {
        id: "figure7".into(),
        title: "Height by records: 4 KiB pages, entries of 8 bytes".into(),
        x: "records".into(),
        y: "levels".into(),
        content: Content::Lines {
            logarithmic: true,
            series: vec![
                series("B+-tree", |point| point.wandering_levels),
                series("μ-Tree", |point| point.mu_levels),
            ],
        },
    };
    Experiment {
        orderings: vec![(
            "a μ-Tree is at most one level higher, from 1 to 10^9 records".into(),
            higher(1),
        )],
        figures: vec![figure],
        ..Experiment::of("figure7", "Figure 7: heights that the model gives", rows)
    }
}
