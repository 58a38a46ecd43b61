//! Section 5.5: SD cards whose sequential writes are 1.5 to 4 times as fast as random ones.

use nandina::flash::Profile;

use super::case::{Case, Costs};
use super::series::Kind;
use super::{Claims, board_32};
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};

/// Ratios of sequential to random write throughput, in halves.
const RATIOS_HALF: [u64; 5] = [2, 3, 4, 6, 8];

const SERIES: [Kind; 2] = [Kind::Random, Kind::Temperature];

/// The SD card with another ratio of random to sequential writes.
///
/// A random write takes `ratio_half / 2` times as long as a sequential one.
fn card(ratio_half: u64) -> Profile {
    let [mut card, _] = board_32();
    card.timing.random_program_extra_ns = card.page_program_ns() * (ratio_half - 2) / 2;
    card
}

fn pair(series: Kind, ratio_half: u64) -> [Case; 2] {
    ["btree", "vm"].map(|system| Case::new(system, card(ratio_half), series))
}

/// The cases of the section.
pub fn cases() -> Vec<Case> {
    let of = |series| RATIOS_HALF.into_iter().flat_map(move |ratio| pair(series, ratio));
    SERIES.into_iter().flat_map(of).collect()
}

/// The processor and bus time an insertion that would hide VMTree's lead.
///
/// With it VMTree leads by no more than 5 %.
fn hidden_ms(vm_ms: f64, btree_ms: f64) -> f64 {
    ((btree_ms - 1.05 * vm_ms) / 0.05).max(0.0)
}

/// Section 5.5.
pub fn experiment(costs: &Costs) -> Experiment {
    let title = "Section 5.5: SD cards by how much faster sequential writes are than random ones";
    let mut claims = Claims::new(costs, "section5-5", title, &cases());
    let mut lines = Vec::new();
    for series in SERIES {
        let mut points = Vec::new();
        for ratio_half in RATIOS_HALF {
            let [btree, vm] = pair(series, ratio_half);
            let Some((vm, btree)) = claims.pair(&vm, &btree, "insert") else { continue };
            let ratio = ratio_half as f64 / 2.0;
            let config = format!("{} ratio {ratio:.1}", series.name());
            let gain = btree.ms / vm.ms;
            let rows = &mut claims.experiment.rows;
            let metric = "throughput by btree's (within 5 %, with processor)";
            rows.push(Row::in_range("vm", &config, metric, (0.95, 1.05), gain, "ratio"));
            let metric = "operations by btree's";
            let operations = vm.operations() / btree.operations();
            rows.push(Row::alone("vm", &config, metric, operations, "ratio"));
            let metric = "processor and bus that would hide the lead, an insertion";
            rows.push(Row::alone("vm", &config, metric, hidden_ms(vm.ms, btree.ms), "ms"));
            points.push((ratio, gain));
        }
        if !points.is_empty() {
            let claim = format!(
                "{}: the slower random writes are, the further VMTree leads",
                series.name()
            );
            claims.claim(claim, points.is_sorted_by(|one, other| one.1 < other.1));
        }
        lines.push(Series { name: series.name().into(), points });
    }
    let figure = Figure {
        id: "vmtree-section5-5".into(),
        title: "VMTree's insert throughput by the B-tree's, by SD card".into(),
        x: "sequential by random throughput of writes".into(),
        y: "ratio, by the chip's latencies".into(),
        content: Content::Lines { logarithmic: false, series: lines },
    };
    claims.experiment.figures.push(figure);
    claims.done()
}
