//! What the workloads are: Table 1, Figures 8 and 9, and the canonical extents of Figure 12.

use super::published::{FOUND_MOST, GENERATED_MOST, OVERLAPPED_MOST};
use super::{Case, SpewCase, bars};
use crate::reproduce::figure::{Bar, Content, Figure, Series};
use crate::reproduce::{Experiment, Row};

/// Table 1.
pub fn table_1(cases: &[Case], spew: &[SpewCase]) -> Experiment {
    let mut rows = Vec::new();
    for Case { recipe, counts, .. } in cases {
        let [write, read] = counts.kib_means();
        let row =
            |metric, paper, ours, unit| Row::beside("trace", recipe.key, metric, paper, ours, unit);
        rows.push(row("writes", recipe.writes as f64, counts.writes as f64, ""));
        rows.push(row("mean write", recipe.write_kib.0, write, "KB"));
        rows.push(row("reads", recipe.reads as f64, counts.reads as f64, ""));
        rows.extend(recipe.read_kib.map(|paper| row("mean read", paper, read, "KB")));
    }
    for SpewCase { space_gib, counts, .. } in spew {
        let config = format!("spew, {space_gib} GB");
        let mean = counts.kib_means()[0];
        rows.push(match space_gib {
            16 => Row::beside("trace", &config, "mean write", 83.8, mean, "KB"),
            1024 => Row::beside("trace", &config, "mean write", 376.8, mean, "KB"),
            _ => Row::alone("trace", &config, "mean write", mean, "KB"),
        });
    }
    Experiment::of("table1", "Table 1: the workloads, synthetic and fitted to it", rows)
}

/// Shares in per cent of their sum.
fn shares(counts: &[u64]) -> impl Iterator<Item = f64> {
    let all = counts.iter().sum::<u64>().max(1) as f64;
    counts.iter().map(move |&count| 100.0 * count as f64 / all)
}

fn lines(id: &str, title: &str, x: &str, logarithmic: bool, series: Vec<Series>) -> Figure {
    let content = Content::Lines { logarithmic, series };
    Figure {
        id: format!("extents-{id}"),
        title: title.into(),
        x: x.into(),
        y: "writes in per cent".into(),
        content,
    }
}

/// Figure 8.
pub fn figure_8(cases: &[Case]) -> Experiment {
    let title = "Figure 8: writes by address, in 64 parts of each space (the paper's drawing has no numbers)";
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for Case { recipe, counts, .. } in cases {
        let parts = counts.addresses.len() as f64;
        let points = shares(&counts.addresses).zip(0..);
        let points = points.map(|(share, at)| (100.0 * f64::from(at) / parts, share)).collect();
        series.push(Series { name: recipe.key.into(), points });
        let mut sorted: Vec<_> = shares(&counts.addresses).collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let tenth: f64 = sorted.iter().take(sorted.len() / 10).sum();
        rows.push(Row::alone(
            "trace",
            recipe.key,
            "writes to the tenth of the space with the most",
            tenth,
            "%",
        ));
    }
    let figure = lines("figure8", title, "address in per cent of the space", false, series);
    Experiment { figures: vec![figure], ..Experiment::of("figure8", title, rows) }
}

/// Figure 9.
pub fn figure_9(cases: &[Case]) -> Experiment {
    let title = "Figure 9: writes by size (the paper's drawing has no numbers)";
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for Case { recipe, counts, .. } in cases {
        let points = shares(&counts.sizes).zip(0..);
        let points = points.map(|(share, log)| (0.5 * f64::from(1 << log), share)).collect();
        series.push(Series { name: recipe.key.into(), points });
        let small: f64 = shares(&counts.sizes).take(4).sum();
        rows.push(Row::alone("trace", recipe.key, "writes of up to 4 KB", small, "%"));
    }
    let figure = lines("figure9", title, "up to so many KB", true, series);
    Experiment { figures: vec![figure], ..Experiment::of("figure9", title, rows) }
}

/// Figure 12.
pub fn figure_12(cases: &[Case]) -> Experiment {
    let title = "Figure 12: canonical extents of a request; those overlapped and found also as whole extents";
    let mut rows = Vec::new();
    let mut drawn = Vec::new();
    for Case { recipe, counts, .. } in cases {
        let most = recipe.key == "finance";
        let row = |metric, paper: f64, ours| match most {
            true => Row::beside("vet", recipe.key, metric, paper, ours, ""),
            false => Row::alone("vet", recipe.key, metric, ours, ""),
        };
        let [extents, canonical] = counts.overlapped_means();
        let [found, found_canonical] = counts.found_means();
        rows.push(row("canonical extents of a write", GENERATED_MOST, counts.generated_mean()));
        rows.push(row("extents that a write overlaps", OVERLAPPED_MOST, extents));
        rows.push(Row::alone(
            "vet",
            recipe.key,
            "canonical extents that a write overlaps",
            canonical,
            "",
        ));
        rows.push(row("extents that a read finds", FOUND_MOST, found));
        rows.push(Row::alone(
            "vet",
            recipe.key,
            "canonical extents that a read finds",
            found_canonical,
            "",
        ));
        let heights =
            [("generated", counts.generated_mean()), ("overlapped", extents), ("found", found)];
        drawn.extend(heights.map(|(bar, height)| Bar {
            label: format!("{} {bar}", recipe.key),
            parts: vec![height],
        }));
    }
    let figure =
        bars("extents-figure12", title, "trace", "extents of a request", &["extents"], drawn);
    Experiment { figures: vec![figure], ..Experiment::of("figure12", title, rows) }
}
