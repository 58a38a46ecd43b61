//! What the paper leaves out: larger trees, other orders, fuller chips, and other cells.

use nandina::flash::profile::{MLC, SLC, TLC};

use super::below::Below;
use super::cost::Costs;
use super::counts::LOG_BLOCKS;
use super::growth::Growth;
use super::keys::Order;
use super::rivals::Rival;
use super::runs::{Case, Runs};
use super::{Experiment, Experiments, begun, reduction};
use crate::LabError;
use crate::reproduce::Row;

/// How full the device is, in per cent of its logical blocks.
pub const FILLS: [u32; 2] = [50, 80];

/// The three systems on trees of these records.
fn sizes(of: &Experiments, records: u32) -> [Case; 3] {
    of.sides(LOG_BLOCKS).map(|side| Case {
        growth: Growth { records, ..of.inserts(side.system, 0) },
        below: side.below,
    })
}

/// μ*-tree with this many records.
fn mu_star(of: &Experiments, records: u32) -> Case {
    let fast = Below::fast(of.scale.blocks(LOG_BLOCKS));
    let then_removes = records == of.scale.records;
    let growth = Growth { records, then_removes, ..of.inserts(Rival::MuStar.key(), 0) };
    Case { growth, below: fast }
}

/// The three systems with half of the keys ascending.
fn orders(of: &Experiments, order: Order) -> [Case; 3] {
    of.sides(LOG_BLOCKS).map(|side| Case {
        growth: Growth { order, ..of.inserts(side.system, 50) },
        below: side.below,
    })
}

/// The three systems and a page map on a device that is so full.
pub fn fills(of: &Experiments, fill: u32) -> Vec<Case> {
    let sides = of.sides(LOG_BLOCKS).map(|side| Case {
        growth: of.inserts(side.system, 0),
        below: Below { fill, ..side.below },
    });
    let spare = of.scale.blocks(LOG_BLOCKS) + of.buffer();
    let below = Below { fill, ..Below::page_map(spare) };
    let page_map = Case { growth: of.inserts("btree", 0), below };
    sides.into_iter().chain([page_map]).collect()
}

/// The cases of these experiments.
pub fn cases(of: &Experiments) -> Vec<Case> {
    let mu_star = of.scale.heights.iter().map(|&records| mu_star(of, records));
    let sizes = of.scale.sizes.iter().flat_map(|&records| sizes(of, records)).chain(mu_star);
    let orders = [Order::Mixed, Order::AscendingFirst].map(|order| orders(of, order));
    let fills = FILLS.into_iter().flat_map(|fill| fills(of, fill));
    sizes.chain(orders.into_iter().flatten()).chain(fills).collect()
}

fn by_size(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Random inserts by records: the buffer against the blocks of the tree";
    let mut experiment = Experiment::of("sizes", title, Vec::new());
    for &records in of.scale.sizes {
        let mut seconds = Vec::new();
        for case in sizes(of, records) {
            let (grown, cost) = (runs.grown(&case.growth)?, runs.costs(&case)?.inserts);
            let config = format!(
                "{records} records, {} blocks, height {}, {}",
                grown.blocks,
                grown.height,
                case.below.name()
            );
            let system = case.growth.system;
            let row = |metric, figure, unit| Row::alone(system, &config, metric, figure, unit);
            experiment.rows.push(row("programs", cost.each(cost.programs), "an insert"));
            experiment.rows.push(row("erases", cost.each(cost.erases), "an insert"));
            experiment.rows.push(row(
                "time",
                1e3 * cost.seconds / f64::from(records),
                "ms an insert",
            ));
            seconds.push(cost.seconds);
        }
        let [btree, printed, improved] = seconds[..] else { continue };
        for (name, less) in [("as printed", printed), ("improved", improved)] {
            let config = format!("{records} records, {name} against B-tree");
            let less = reduction(less, btree);
            experiment.rows.push(Row::alone("wpcb", &config, "creation", less, "% less"));
        }
    }
    Ok(experiment)
}

/// Whether a page of μ*-tree has room for fewer records as the tree grows higher (section 6.2).
fn by_height(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Random inserts into μ*-tree by records: its height, and the records of a page";
    let mut experiment = begun("mu-star", title);
    let mut found = Vec::new();
    for &records in of.scale.heights {
        let case = mu_star(of, records);
        let (grown, cost) = (runs.grown(&case.growth)?, runs.costs(&case)?.inserts);
        let each = f64::from(records) / f64::from(grown.pages);
        let config = format!("{records} records, height {}", grown.height);
        let row = |metric, figure, unit| Row::alone("mu-star", &config, metric, figure, unit);
        experiment.rows.push(row("records", each, "a page"));
        experiment.rows.push(row("programs", cost.each(cost.programs), "an insert"));
        found.push(each);
    }
    let falls = found.windows(2).all(|two| two[1] < two[0]);
    experiment.orderings.push(("larger trees have fewer records in a page".into(), falls));
    Ok(experiment)
}

fn by_order(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "rs = 0.5 in two orders: mixed, and the ascending half first";
    let mut experiment = Experiment::of("orders", title, Vec::new());
    for order in [Order::Mixed, Order::AscendingFirst] {
        for case in orders(of, order) {
            let (grown, cost) = (runs.grown(&case.growth)?, runs.costs(&case)?.inserts);
            let (system, config) =
                (case.growth.system, format!("{}, {}", order.name(), case.below.name()));
            let row = |metric, figure, unit| Row::alone(system, &config, metric, figure, unit);
            experiment.rows.push(row("tree", f64::from(grown.blocks), "blocks"));
            experiment.rows.push(row("programs", cost.each(cost.programs), "an insert"));
            experiment.rows.push(row("erases", cost.each(cost.erases), "an insert"));
            experiment.rows.push(row("creation", cost.seconds, "s"));
        }
    }
    Ok(experiment)
}

/// A figure of a run, and its unit.
type Figure = (&'static str, fn(&Costs) -> f64, &'static str);

const FIGURES: [Figure; 6] = [
    ("programs", |costs| costs.inserts.each(costs.inserts.programs), "an insert"),
    ("p99", |costs| costs.inserts.p99_ms, "ms"),
    ("longest", |costs| costs.inserts.longest_ms, "ms"),
    ("wear", |costs| costs.wear, "most by mean"),
    ("mount", |costs| costs.mount_reads as f64, "reads"),
    ("ram", |costs| costs.ram_bytes as f64, "bytes"),
];

fn by_fill(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title =
        "Random inserts into a device that is 50 and 80 % full in the end: tails, wear, mounts";
    let mut experiment = Experiment::of("fills", title, Vec::new());
    for fill in FILLS {
        for case in fills(of, fill) {
            let costs = runs.costs(&case)?;
            let (system, config) = (case.growth.system, case.below.name());
            for (metric, figure, unit) in FIGURES {
                experiment.rows.push(Row::alone(system, &config, metric, figure(costs), unit));
            }
            if case.below.buffer.is_some() {
                let claim = format!("{config}: no block has many more erases than the mean");
                experiment.orderings.push((claim, costs.wear < 1.1));
            }
        }
    }
    Ok(experiment)
}

/// Seconds of the same operations on chips whose cells hold more bits (section 6.1).
///
/// These program a page for longer, and their FTL may leave out no rule that counts here: its pages
/// are programmed in order, once. Latencies are those of the simulator's chips.
fn by_cells(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Random inserts by the cells of the chip, on a device that is 80 % full in the end";
    let mut experiment = Experiment::of("cells", title, Vec::new());
    for chip in [SLC, MLC, TLC] {
        let mut seconds = Vec::new();
        for case in fills(of, FILLS[1]) {
            let cost = runs.costs(&case)?.inserts;
            let each = [
                (cost.reads, chip.page_read_ns()),
                (cost.programs, chip.page_program_ns()),
                (cost.erases, chip.timing.erase_ns),
            ];
            let taken = each.map(|(count, ns)| count as f64 * ns as f64 / 1e9).iter().sum::<f64>();
            let config = format!("{}, {}", chip.key, case.below.name());
            experiment.rows.push(Row::alone(case.growth.system, &config, "creation", taken, "s"));
            seconds.push(taken);
        }
        let [btree, printed, improved, page_map] = seconds[..] else { continue };
        for (name, taken) in [("as printed", printed), ("improved", improved)] {
            let config = format!("{}, {name} against B-tree", chip.key);
            let less = reduction(taken, btree);
            experiment.rows.push(Row::alone("wpcb", &config, "creation", less, "% less"));
        }
        let claim = format!("{}: a page map takes the least time, then WPCB improved", chip.key);
        let holds = page_map < improved && improved < printed && improved < btree;
        experiment.orderings.push((claim, holds));
    }
    Ok(experiment)
}

/// Sizes, orders, fills and cells.
pub fn experiments(of: &Experiments, runs: &Runs) -> Result<Vec<Experiment>, LabError> {
    let (sizes, orders) = (by_size(of, runs)?, by_order(of, runs)?);
    Ok(vec![sizes, by_height(of, runs)?, orders, by_fill(of, runs)?, by_cells(of, runs)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::wpcb::below::replay;
    use crate::reproduce::wpcb::{Scale, tree};

    /// As with the 10,000,000 records of the report, at a smaller scale.
    #[test]
    fn the_improved_buffer_pays_for_a_tree_of_many_more_blocks() {
        let (records, log_blocks, buffer) = (300_000, 4, 8);
        let of = Experiments::new(Scale { records, ..Scale::FULL }, 1);
        let fast = Below::fast(log_blocks);
        let sides =
            [("btree", fast), ("wpcb", fast.printed(buffer)), ("wpcb", fast.improved(buffer))];
        let seconds = sides.map(|(system, below)| {
            let grown = tree::grow(&of.inserts(system, 0), &|_| {}).unwrap();
            let cost = replay(&below, &grown).unwrap().inserts;
            let (programs, erases) = (cost.each(cost.programs), cost.each(cost.erases));
            println!(
                "{system} over {}, {records} records, {} blocks, height {}: {programs:.3} programs \
                 and {erases:.4} erases an insert, {:.0} s",
                below.name(),
                grown.blocks,
                grown.height,
                cost.seconds
            );
            cost.seconds
        });
        let [btree, printed, improved] = seconds;
        assert!(improved < btree && improved < printed, "{seconds:?}");
    }
}
