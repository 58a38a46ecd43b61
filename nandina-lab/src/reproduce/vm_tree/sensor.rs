//! Section 5.2: an index over the values of a sensor series, 8 bytes an entry.
//!
//! Figure 8 is on the 32-bit board, Figure 9 on the 16-bit board. The paper's health data is not
//! available; the series with the most duplicates replaces it.

use nandina::flash::profile::SD;

use super::case::{Case, Costs};
use super::random::rows;
use super::series::Kind;
use super::{Claims, SYSTEMS, bars, board_16, board_32};
use crate::reproduce::{Experiment, Row};

/// Pages of the write buffer.
const LOGS: [usize; 2] = [0, 1];

/// The series on the 32-bit board.
///
/// The paper's figure is of temperature; it says that others behave alike.
const FIGURE_8: [Kind; 3] = [Kind::Temperature, Kind::MinuteTemperature, Kind::Wind];

/// Temperature, and a replacement of the paper's health data.
///
/// It is the series with the most duplicates.
const FIGURE_9: [Kind; 3] = [Kind::Temperature, Kind::MinuteTemperature, Kind::Wind];

fn figure_8_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for chip in board_32() {
        for series in FIGURE_8 {
            for pages in LOGS {
                cases
                    .extend(SYSTEMS.map(|system| Case::new(system, chip, series).buffering(pages)));
            }
        }
    }
    cases
}

fn figure_9_cases() -> Vec<Case> {
    let [card, nand] = board_16();
    let mut cases = Vec::new();
    for series in FIGURE_9 {
        for pages in LOGS {
            for (system, chip) in [("btree", card), ("vm", card), ("vm", nand)] {
                cases.push(Case::new(system, chip, series).buffering(pages));
            }
        }
    }
    cases
}

/// Both systems on the whole card, where no block is collected.
fn whole_card(series: Kind) -> [Case; 2] {
    ["btree", "vm"].map(|system| Case::new(system, SD, series))
}

/// The cases of both figures.
pub fn cases() -> Vec<Case> {
    let whole: Vec<_> = FIGURE_8.into_iter().flat_map(whole_card).collect();
    [figure_8_cases(), figure_9_cases(), whole].concat()
}

fn label(case: &Case) -> String {
    let series = case.series.name();
    format!("{} {series} L{} {}", case.chip.key, case.write_buffer, case.system)
}

/// Figure 8.
pub fn figure_8(costs: &Costs) -> Experiment {
    let cases = figure_8_cases();
    let title = "Figure 8: entries of 8 bytes for sensor values on the 32-bit board, without and with a page \
                 of write buffer";
    let mut claims = Claims::new(costs, "figure8", title, &cases);
    claims.experiment.rows = cases.iter().flat_map(|case| rows(costs, case)).collect();
    for case in cases.iter().filter(|case| case.write_buffer == 0) {
        let Some((with, without)) = claims.pair(&case.buffering(1), case, "insert") else {
            continue;
        };
        let saved = |with: f64, without: f64| (1.0 - with / without) * 100.0;
        let config = case.config().replace("L0", "L1");
        let measured = [
            ("operations saved by L1", saved(with.operations(), without.operations())),
            ("time saved by L1", saved(with.ms, without.ms)),
        ];
        for (metric, saved) in measured {
            // The paper's range is for temperature.
            let row = if case.series == Kind::Wind {
                Row::alone(case.system, &config, metric, saved, "%")
            } else {
                Row::in_range(case.system, &config, metric, (63.0, 72.0), saved, "%")
            };
            claims.experiment.rows.push(row);
        }
    }
    let [card, dataflash] = board_32();
    for series in FIGURE_8 {
        let at = |system, chip| Case::new(system, chip, series);
        let name = series.name();
        if let Some((vm, btree)) = claims.pair(&at("vm", card), &at("btree", card), "insert") {
            let claim =
                format!("sd {name}: VMTree's operations are within 3 % of the B-tree's, or fewer");
            claims.claim(claim, vm.operations() <= 1.03 * btree.operations());
        }
        let [btree, vm] = whole_card(series);
        if let Some((vm, btree)) = claims.pair(&vm, &btree, "insert") {
            let config = format!("sd of 32,768 pages, {name} M3 L0");
            let ratio = vm.operations() / btree.operations();
            let metric = "operations by btree's (within 3 %)";
            let row = Row::in_range("vm", &config, metric, (0.97, 1.03), ratio, "ratio");
            claims.experiment.rows.push(row);
        }
        let (vm, btree) = (at("vm", dataflash), at("btree", dataflash));
        if let Some((vm, btree)) = claims.pair(&vm, &btree, "insert") {
            claims.claim(
                format!("dataflash {name}: VMTree is faster than the B-tree"),
                vm.ms < btree.ms,
            );
        }
        if let Some((ow, btree)) = claims.pair(&at("vm-ow", dataflash), &btree, "insert") {
            let config = format!("dataflash {name} M3 L0");
            let metric = "throughput by btree's";
            let row = Row::beside("vm-ow", &config, metric, 4.0, btree.ms / ow.ms, "ratio");
            claims.experiment.rows.push(row);
        }
    }
    for case in cases.iter().filter(|case| case.write_buffer == 0) {
        if let Some((with, without)) = claims.pair(&case.buffering(1), case, "query") {
            let claim = format!("{}: the write buffer changes no query (to 5 %)", label(case));
            claims.claim(claim, (with.reads / without.reads - 1.0).abs() < 0.05);
        }
    }
    let drawn: Vec<_> =
        cases.iter().copied().filter(|case| case.series == Kind::Temperature).collect();
    let throughput = |case: &Case| Some(costs.mean(case, "insert")?.a_second());
    let drawn = claims.bars(&drawn, label, throughput);
    let (title, x) =
        ("Inserts of temperatures, 32-bit board", "device, series, pages of write buffer");
    let y = "inserts a second, by the chip's latencies";
    claims.experiment.figures.push(bars("vmtree-figure8", title, x, y, drawn));
    claims.done()
}

/// Figure 9.
pub fn figure_9(costs: &Costs) -> Experiment {
    let cases = figure_9_cases();
    let title = "Figure 9: entries of 8 bytes for sensor values on the 16-bit board (wind, which has the most \
                 duplicates, in place of the paper's health data)";
    let mut claims = Claims::new(costs, "figure9", title, &cases);
    claims.experiment.refusals.push("health data: it is not at hand".into());
    claims.experiment.rows = cases.iter().flat_map(|case| rows(costs, case)).collect();
    for case in cases.iter().filter(|case| case.write_buffer == 0) {
        let Some((with, without)) = claims.pair(&case.buffering(1), case, "insert") else {
            continue;
        };
        let (paper, metric) = match case.series {
            Kind::Temperature | Kind::MinuteTemperature => (9.0, "throughput of L1 by that of L0"),
            _ => (5.0, "throughput of L1 by that of L0 (the paper's is of health data)"),
        };
        let config = case.config().replace("L0", "L1");
        let ratio = without.ms / with.ms;
        claims.experiment.rows.push(Row::beside(
            case.system,
            &config,
            metric,
            paper,
            ratio,
            "ratio",
        ));
    }
    let [card, nand] = board_16();
    for series in FIGURE_9 {
        for pages in LOGS {
            let at = |system, chip| Case::new(system, chip, series).buffering(pages);
            let on_nand = costs.mean(&at("vm", nand), "insert");
            let on_card = SYSTEMS.map(|system| costs.mean(&at(system, card), "insert"));
            if let Some(on_nand) = on_nand
                && on_card.iter().any(Option::is_some)
            {
                let claim = format!(
                    "{} L{pages}: VMTree on NAND has the highest throughput",
                    series.name()
                );
                claims.claim(claim, on_card.iter().flatten().all(|other| on_nand.ms < other.ms));
            }
        }
    }
    let throughput = |case: &Case| Some(costs.mean(case, "insert")?.a_second());
    let drawn = claims.bars(&cases, label, throughput);
    let (title, x) =
        ("Inserts of sensor values, 16-bit board", "device, series, pages of write buffer");
    let y = "inserts a second, by the chip's latencies";
    // Without the sensor series nothing was run.
    if !drawn.is_empty() {
        claims.experiment.figures.push(bars("vmtree-figure9", title, x, y, drawn));
    }
    claims.done()
}
