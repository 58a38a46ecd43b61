//! Chip operations of inserts: Table 1, Figures 2, 10 and 11.

use nandina_ftl::hybrid::Conversions;

use super::below::Below;
use super::cost::Cost;
use super::rivals::Rival;
use super::runs::{Case, Runs};
use super::{Experiment, Experiments, bars, begun, lines};
use crate::LabError;
use crate::reproduce::Row;
use crate::reproduce::figure::{Bar, Series};

/// Values of *C* in Figure 10.
pub const BUFFERS: [u32; 6] = [16, 32, 64, 128, 160, 192];

/// Values of *rs* in Figure 10.
const BUFFER_RATIOS: [u32; 3] = [0, 50, 100];

/// Log blocks of the FTL, which the paper does not give.
pub const LOG_BLOCKS: u32 = 16;

/// Log blocks in Figure 2, in blocks of a full run.
const FIGURE_2_LOG_BLOCKS: [u32; 2] = [LOG_BLOCKS, 100];

/// Log and buffer blocks of a full run, with all improvements, and what inserts of keys at random
/// may cost: programs and erases an insert, and the seconds of all of them.
const BOUNDS: [([u32; 2], f64, f64, f64); 5] = [
    ([12, 192], 2.05, 0.032, 565.0),
    ([LOG_BLOCKS, 192], 2.05, 0.032, 565.0),
    ([32, 192], 2.05, 0.032, 565.0),
    ([100, 192], 2.05, 0.032, 565.0),
    ([LOG_BLOCKS, 64], 4.1, 0.065, 1070.0),
];

/// WPCB with so many buffer blocks, in blocks of a full run.
pub fn figure_10(of: &Experiments, per_cent: u32, buffer: u32, printed: bool) -> Case {
    let fast = Below::fast(of.scale.blocks(LOG_BLOCKS));
    let blocks = of.scale.blocks(buffer);
    let below = if printed { fast.printed(blocks) } else { fast.improved(blocks) };
    Case { growth: of.inserts("wpcb", per_cent), below }
}

/// WPCB with so many log blocks and buffer blocks, with all improvements.
fn bounded(of: &Experiments, [log_blocks, buffer]: [u32; 2]) -> Case {
    Case { growth: of.inserts("wpcb", 0), below: Below::fast(log_blocks).improved(buffer) }
}

/// The cases of these experiments.
pub fn cases(of: &Experiments) -> Vec<Case> {
    let mut cases = Vec::new();
    for &per_cent in of.scale.ratios {
        for side in of.sides(LOG_BLOCKS) {
            let growth = of.inserts(side.system, per_cent);
            cases.extend(of.repeated(growth).map(|growth| Case { growth, below: side.below }));
        }
        // Each once: their figures are those of one seed.
        cases.extend(of.rival_cases(per_cent).map(|(_, case)| case));
    }
    for per_cent in BUFFER_RATIOS {
        for buffer in BUFFERS {
            cases.extend([true, false].map(|printed| figure_10(of, per_cent, buffer, printed)));
        }
    }
    if !of.scale.quick {
        cases.extend(BOUNDS.map(|(blocks, ..)| bounded(of, blocks)));
    }
    for log_blocks in FIGURE_2_LOG_BLOCKS {
        cases.extend([0, 100].map(|per_cent| figure_2_case(of, log_blocks, per_cent)));
    }
    cases
}

fn table_1() -> Experiment {
    let row = |metric, paper, ours| Row::beside("chip", "Table 1", metric, paper, ours, "us");
    let mut rows = vec![row("page_read", 25.0, 25.0), row("page_program", 200.0, 200.0)];
    rows.push(Row::beside("chip", "section 2.1", "block_erase", 2000.0, 1500.0, "us"));
    Experiment::of(
        "table1",
        "Latencies: a random write is a program here, whatever was written before",
        rows,
    )
}

/// The B-tree with so many log blocks of a full run, and this ratio *rs* in per cent.
fn figure_2_case(of: &Experiments, log_blocks: u32, per_cent: u32) -> Case {
    let [btree, ..] = of.sides(log_blocks);
    Case { growth: of.inserts(btree.system, per_cent), below: btree.below }
}

fn figure_2(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Page programs of inserts into a B-tree over FAST, random by ascending keys";
    let mut experiment = Experiment::of("figure2", title, Vec::new());
    let mut drawn = Vec::new();
    for log_blocks in FIGURE_2_LOG_BLOCKS {
        let [random, ascending] = [0, 100].map(|per_cent| figure_2_case(of, log_blocks, per_cent));
        let (system, config) = (random.growth.system, random.below.name());
        let (random, ascending) = (runs.costs(&random)?.inserts, runs.costs(&ascending)?.inserts);
        for (keys, cost) in [("random", &random), ("ascending", &ascending)] {
            let label = format!("{keys} keys, {config}");
            drawn.push(Bar { label, parts: vec![cost.each(cost.programs)] });
        }
        let ratio = |of: fn(&Cost) -> u64| of(&random) as f64 / of(&ascending).max(1) as f64;
        let (writes, erases) = (ratio(|cost| cost.programs), ratio(|cost| cost.erases));
        experiment.rows.extend([
            Row::beside(system, &config, "programs", 4.0, writes, "ratio"),
            Row::beside(system, &config, "erases", 1.0, erases, "ratio"),
        ]);
        if log_blocks == LOG_BLOCKS {
            experiment.orderings.push((
                "random keys cost about four times the programs".into(),
                (3.5..=4.5).contains(&writes),
            ));
        }
    }
    let (title, y) = ("Page programs of inserts into a B-tree over FAST", "programs an insert");
    experiment.figures.push(bars("figure2", title, "order of the keys", y, &["programs"], drawn));
    Ok(experiment)
}

fn figure_10_of(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Inserts by buffer blocks C, over FAST";
    let mut experiment = Experiment::of("figure10", title, Vec::new());
    let mut series = Vec::new();
    for per_cent in BUFFER_RATIOS {
        for printed in [true, false] {
            let (mut points, mut is_bounded) = (Vec::new(), true);
            for buffer in BUFFERS {
                let case = figure_10(of, per_cent, buffer, printed);
                let cost = runs.costs(&case)?.inserts;
                let config = format!("rs {}, {}", f64::from(per_cent) / 100.0, case.below.name());
                let row = |metric, figure| Row::alone("wpcb", &config, metric, figure, "an insert");
                experiment.rows.push(row("programs", cost.each(cost.programs)));
                experiment.rows.push(row("erases", cost.each(cost.erases)));
                points.push((f64::from(of.scale.blocks(buffer)), cost.each(cost.erases)));
                let Conversions { blocks, appended, newest, .. } = cost.conversions;
                is_bounded &=
                    newest <= appended && appended <= blocks * u64::from(case.growth.block_pages);
            }
            let name = if printed { "as printed" } else { "improved" };
            let claim = format!(
                "rs {}: a conversion writes at most the pages of a block, {name}",
                f64::from(per_cent) / 100.0
            );
            experiment.orderings.push((claim, is_bounded));
            let claim =
                format!("rs {}: erases fall as C rises, {name}", f64::from(per_cent) / 100.0);
            // A hundredth is what the place of the last conversion makes.
            let falls = points.windows(2).all(|two| two[1].1 <= two[0].1 * 1.01);
            experiment.orderings.push((claim, falls));
            if per_cent == 0 {
                let at = |blocks: u32| {
                    let at = BUFFERS.iter().position(|buffer| *buffer == blocks);
                    at.and_then(|at| points.get(at)).map_or(0.0, |point| point.1)
                };
                let claim =
                    format!("rs 0: beyond C = 128 erases fall by less than a tenth, {name}");
                experiment.orderings.push((claim, at(192) > 0.9 * at(128)));
            }
            series.push(Series {
                name: format!("rs {}, {name}", f64::from(per_cent) / 100.0),
                points,
            });
        }
    }
    if !of.scale.quick {
        for (blocks, programs, erases, seconds) in BOUNDS {
            let case = bounded(of, blocks);
            let cost = runs.costs(&case)?.inserts;
            let bounds = [
                ("programs", cost.each(cost.programs), programs, "an insert"),
                ("erases", cost.each(cost.erases), erases, "an insert"),
                ("time", cost.seconds, seconds, "s"),
            ];
            let config = format!("rs 0, {}, bounded", case.below.name());
            let rows = bounds
                .map(|(metric, found, _, unit)| Row::alone("wpcb", &config, metric, found, unit));
            experiment.rows.extend(rows);
            let claim = format!(
                "rs 0, {}: at most {programs} programs and {erases} erases an insert and \
                 {seconds} s, a bound of ours",
                case.below.name()
            );
            let holds = bounds.iter().all(|(_, found, most, _)| found <= most);
            experiment.orderings.push((claim, holds));
        }
    }
    let figure = lines("figure10", title, "buffer blocks C", "erases an insert", series);
    experiment.figures.push(figure);
    Ok(experiment)
}

/// A kind of chip operations, and its name in rows.
type Kind = (&'static str, fn(&Cost) -> f64);

const KINDS: [Kind; 3] = [
    ("reads", |cost| cost.each(cost.reads)),
    ("programs", |cost| cost.each(cost.programs)),
    ("erases", |cost| cost.each(cost.erases)),
];

fn figure_11(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Chip operations of inserts by rs, over FAST";
    let mut experiment = begun("figure11", title);
    let sides = of.sides(LOG_BLOCKS);
    for (metric, figure) in KINDS {
        let names = sides.into_iter().chain(of.rivals()).map(|side| side.name.to_string());
        let mut series: Vec<Series> =
            names.map(|name| Series { name, points: Vec::new() }).collect();
        for &per_cent in of.scale.ratios {
            let rs = f64::from(per_cent) / 100.0;
            let mut found = Vec::new();
            for (side, line) in sides.iter().zip(&mut series) {
                let case = Case { growth: of.inserts(side.system, per_cent), below: side.below };
                let mean = of.mean(runs, &case, figure)?;
                let config = format!("rs {rs}, {}", side.below.name());
                experiment.rows.push(Row::alone(side.system, &config, metric, mean, "an insert"));
                line.points.push((rs, mean));
                found.push(mean);
            }
            let [btree, printed, improved] = found[..] else { continue };
            for (side, found) in sides[1..].iter().zip([printed, improved]) {
                let claim = format!("rs {rs}: {} needs fewer {metric} than B-tree", side.name);
                experiment.orderings.push((claim, found < btree));
                if metric == "erases" {
                    let paper = if per_cent == 100 { 1.0 / 3.0 } else { 0.5 };
                    let config = format!("rs {rs}, {}, by B-tree", side.below.name());
                    let row = Row::beside("wpcb", &config, "erases", paper, found / btree, "ratio");
                    experiment.rows.push(row);
                }
            }
            for ((rival, case), line) in of.rival_cases(per_cent).zip(&mut series[sides.len()..]) {
                let rivals = figure(&runs.costs(&case)?.inserts);
                let config = format!("rs {rs}, {}", rival.below.name());
                let row = Row::alone(rival.system, &config, metric, rivals, "an insert");
                experiment.rows.push(row);
                line.points.push((rs, rivals));
                let name = rival.name;
                if rival.below == Below::RAW {
                    let claim = format!("rs {rs}: {name} needs more {metric} than WPCB as printed");
                    experiment.orderings.push((claim, rivals > printed));
                    continue;
                }
                let claim = format!("rs {rs}: WPCB as printed needs fewer {metric} than {name}");
                experiment.orderings.push((claim, printed < rivals));
                if metric == "erases" {
                    let config = format!("rs {rs}, as printed, by {name}");
                    let by = printed / rivals;
                    experiment.rows.push(Row::beside("wpcb", &config, "erases", 0.5, by, "ratio"));
                    let claim = format!(
                        "rs {rs}: WPCB as printed needs about half of the erases of {name}"
                    );
                    experiment.orderings.push((claim, (0.4..0.6).contains(&by)));
                }
            }
        }
        let id = format!("figure11-{metric}");
        let figure = lines(&id, title, "rs", &format!("{metric} an insert"), series);
        experiment.figures.push(figure);
    }
    overflows(of, runs, &mut experiment)?;
    Ok(experiment)
}

/// How often a log area of dIPL overflows, and a buffer block is converted (section 6.2).
fn overflows(of: &Experiments, runs: &Runs, experiment: &mut Experiment) -> Result<(), LabError> {
    let [_, printed, _] = of.sides(LOG_BLOCKS);
    for &per_cent in of.scale.ratios {
        let wpcb = Case { growth: of.inserts(printed.system, per_cent), below: printed.below };
        let mut rivals = of.rival_cases(per_cent);
        let dipl = rivals.find(|(rival, _)| rival.system == Rival::Dipl.key());
        let Some((_, dipl)) = dipl else { continue };
        let dipl = runs.costs(&dipl)?.inserts;
        let wpcb = runs.costs(&wpcb)?.inserts;
        let rs = f64::from(per_cent) / 100.0;
        let [full, converted] = [dipl.each(dipl.erases), wpcb.each(wpcb.conversions.blocks)];
        let rows = [("dipl", "full_log_areas", full), ("wpcb", "conversions", converted)];
        for (system, metric, figure) in rows {
            let row = Row::alone(system, &format!("rs {rs}"), metric, figure, "an insert");
            experiment.rows.push(row);
        }
        let claim =
            format!("rs {rs}: dIPL's log areas overflow more often than blocks are converted");
        experiment.orderings.push((claim, full > converted));
    }
    Ok(())
}

/// Table 1, Figures 2, 10 and 11.
pub fn experiments(of: &Experiments, runs: &Runs) -> Result<Vec<Experiment>, LabError> {
    Ok(vec![table_1(), figure_2(of, runs)?, figure_10_of(of, runs)?, figure_11(of, runs)?])
}
