//! Whether the buffer pays, for a reader who has to decide: in time and in erases.
//!
//! It compares with the B-tree on the same FTL, and with that on the same flash: an FTL that has
//! the buffer blocks as more log blocks.

use super::below::{Below, Map};
use super::beyond::{FILLS, fills};
use super::cost::Cost;
use super::counts::{BUFFERS, LOG_BLOCKS, figure_10};
use super::runs::{Case, Runs};
use super::times::compared;
use super::{Experiment, Experiments, reduction};
use crate::LabError;
use crate::reproduce::Row;

/// A choice, and the inserts of the B-tree and of WPCB with it.
struct Choice {
    name: String,
    btree: Case,
    wpcb: Case,
}

impl Choice {
    /// The B-tree on the flash of both.
    fn on_equal_flash(&self) -> Case {
        let Case { growth, below } = self.btree;
        let more = self.wpcb.below.buffer.map_or(0, |buffer| buffer.blocks);
        let map = match below.map {
            Map::Fast { log_blocks, rule } => Map::Fast { log_blocks: log_blocks + more, rule },
            map => map,
        };
        Case { growth, below: Below { map, ..below } }
    }
}

/// The cases of this experiment that no other has.
pub fn cases(of: &Experiments) -> Vec<Case> {
    let choices = choices(of).into_iter().flat_map(|(_, choices)| choices);
    choices.map(|choice| choice.on_equal_flash()).collect()
}

/// The B-tree, and WPCB with all improvements, with this ratio *rs* in per cent.
fn by_ratio(of: &Experiments, per_cent: u32) -> Choice {
    let [btree, _, wpcb] = of
        .sides(LOG_BLOCKS)
        .map(|side| Case { growth: of.inserts(side.system, per_cent), below: side.below });
    Choice { name: format!("rs={}", f64::from(per_cent) / 100.0), btree, wpcb }
}

/// What can be chosen, and each choice.
///
/// What is not named is N = 16, C = 128, rs = 0, and a full device.
fn choices(of: &Experiments) -> [(&'static str, Vec<Choice>); 4] {
    let log_blocks = of.scale.log_blocks.iter().map(|&blocks| {
        let all = compared(of, blocks);
        Choice { name: format!("N={}", of.scale.blocks(blocks)), btree: all[0], wpcb: all[5] }
    });
    let buffers = BUFFERS.iter().map(|&blocks| Choice {
        name: format!("C={}", of.scale.blocks(blocks)),
        wpcb: figure_10(of, 0, blocks, false),
        ..by_ratio(of, 0)
    });
    let ratios = of.scale.ratios.iter().map(|&per_cent| by_ratio(of, per_cent));
    let filled = FILLS.into_iter().map(|fill| {
        let all = fills(of, fill);
        Choice { name: format!("{fill} % full"), btree: all[0], wpcb: all[2] }
    });
    [
        ("log blocks N of the FTL", log_blocks.collect()),
        ("buffer blocks C", buffers.collect()),
        ("the ratio rs of ascending keys", ratios.collect()),
        ("how full the device is", filled.collect()),
    ]
}

/// What is compared: a name, and the figure of an insert.
type Measure = (&'static str, fn(&Cost) -> f64);

const MEASURES: [Measure; 2] = [
    ("time", |cost| cost.seconds / cost.operations.max(1) as f64),
    ("erases", |cost| cost.each(cost.erases)),
];

/// A line for each choice and measure.
pub fn experiment(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Whether WPCB with all improvements pays against the B-tree";
    let mut experiment = Experiment::of("pays", title, Vec::new());
    for (what, choices) in choices(of) {
        for (measure, figure, is_equal) in MEASURES
            .into_iter()
            .flat_map(|(measure, figure)| [false, true].map(|equal| (measure, figure, equal)))
        {
            let than =
                if is_equal { "with the buffer blocks as log blocks" } else { "without them" };
            let (mut pays, mut costs) = (Vec::new(), Vec::new());
            for choice in &choices {
                let Choice { name, btree, wpcb } = choice;
                let btree = if is_equal { &choice.on_equal_flash() } else { btree };
                let less = reduction(
                    figure(&runs.costs(wpcb)?.inserts),
                    figure(&runs.costs(btree)?.inserts),
                );
                let config = format!("{name}, against B-tree {than}");
                experiment.rows.push(Row::alone("wpcb", &config, measure, less, "% less"));
                let side = if less > 0.0 { &mut pays } else { &mut costs };
                side.push(format!("{name} ({:+.0} %)", -less));
            }
            let verdict = match (&pays[..], &costs[..]) {
                (pays, []) => format!("it pays everywhere: {}", pays.join(", ")),
                ([], costs) => format!("it pays nowhere: {}", costs.join(", ")),
                (pays, costs) => format!(
                    "it pays with {}; it does not with {}",
                    pays.join(", "),
                    costs.join(", ")
                ),
            };
            experiment
                .notes
                .push(format!("By {what}, in {measure}, against B-tree {than}: {verdict}."));
        }
    }
    Ok(experiment)
}
