//! Time: Figure 12, and the log blocks of the FTL, which the paper does not give.

use nandina_ftl::hybrid::SequentialRule;

use super::below::{Below, Map};
use super::cost::Costs;
use super::counts::LOG_BLOCKS;
use super::growth::Growth;
use super::runs::{Case, Runs};
use super::{Experiment, Experiments, Side, bars, begun, lines, reduction};
use crate::LabError;
use crate::reproduce::Row;
use crate::reproduce::figure::{Bar, Series};

/// What creation is said to take less than dIPL, μ*-tree and B-tree, in per cent (section 6.3).
const REDUCTIONS: [f64; 3] = [38.7, 50.9, 67.2];

fn whole_life(of: &Experiments, system: &'static str) -> Growth {
    Growth { then_removes: true, ..of.inserts(system, 0) }
}

fn whole_life_of(of: &Experiments, side: Side) -> Case {
    Case { growth: whole_life(of, side.system), below: side.below }
}

/// What is compared at each number of log blocks, and the name of each in the drawing.
const COMPARED: [&str; 6] = [
    "B-tree",
    "B-tree, only true sequences",
    "B-tree, N + C log blocks",
    "B-tree, N + C log blocks, only true sequences",
    "WPCB as printed",
    "WPCB",
];

/// Seconds of each that is compared.
type Seconds = [f64; COMPARED.len()];

/// The cases that are compared, in their order.
///
/// With the equal flash, FAST has the buffer blocks as log blocks. With true sequences, the
/// sequential log block takes only pages that follow one another.
pub fn compared(of: &Experiments, log_blocks: u32) -> [Case; COMPARED.len()] {
    let [btree, printed, improved] = of.sides(log_blocks);
    let case = |system, below| Case { growth: of.inserts(system, 0), below };
    let log_blocks = of.scale.blocks(log_blocks);
    let fast = |log_blocks, rule| {
        let below = Below { map: Map::Fast { log_blocks, rule }, ..btree.below };
        case("btree", below)
    };
    let equal_flash = log_blocks + of.buffer();
    [
        fast(log_blocks, SequentialRule::FirstPage),
        fast(log_blocks, SequentialRule::Continues),
        fast(equal_flash, SequentialRule::FirstPage),
        fast(equal_flash, SequentialRule::Continues),
        case("wpcb", printed.below),
        case("wpcb", improved.below),
    ]
}

/// The page map on the flash of FAST and its buffer.
fn page_map(of: &Experiments) -> Case {
    let spare = of.scale.blocks(LOG_BLOCKS) + of.buffer();
    Case { growth: of.inserts("btree", 0), below: Below::page_map(spare) }
}

/// The cases of these experiments.
pub fn cases(of: &Experiments) -> Vec<Case> {
    let lives = of.sides(LOG_BLOCKS).map(|side| whole_life_of(of, side));
    let sweep = of.scale.log_blocks.iter().flat_map(|&log_blocks| compared(of, log_blocks));
    let rivals = of.rival_cases(0).map(|(_, case)| case);
    lives.into_iter().chain(rivals).chain(sweep).chain([page_map(of)]).collect()
}

/// A phase: its name, its time in seconds, and what is printed of it against the B-tree.
type Phase = (&'static str, fn(&Costs) -> f64, Option<f64>);

const PHASES: [Phase; 3] = [
    ("creation", |costs| costs.inserts.seconds, Some(REDUCTIONS[2])),
    ("search", |costs| costs.lookups.seconds, None),
    ("delete", |costs| costs.removals.seconds, Some(93.4)),
];

/// How much less time WPCB is said to take than a rival, in per cent (section 6.3).
fn printed_against(rival: &str, phase: &str) -> Option<f64> {
    match (rival, phase) {
        ("dipl-ftl", "creation") => Some(REDUCTIONS[0]),
        ("mu-star", "creation") => Some(REDUCTIONS[1]),
        ("dipl-ftl", "search") => Some(14.3),
        ("mu-star", "search") => Some(11.1),
        ("dipl-ftl", "delete") => Some(57.7),
        ("mu-star", "delete") => Some(71.2),
        ("btree-merging", "delete") => Some(93.4),
        _ => None,
    }
}

fn figure_12(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Seconds for all records with random keys, over FAST";
    let mut experiment = begun("figure12", title);
    let sides = of.sides(LOG_BLOCKS);
    let drawn = sides.map(|side| (side.name, whole_life_of(of, side)));
    let drawn = drawn.into_iter().chain(of.rival_cases(0).map(|(side, case)| (side.name, case)));
    let drawn = drawn.map(|(name, case)| {
        let costs = runs.costs(&case)?;
        let parts = PHASES.iter().map(|(_, seconds, _)| seconds(costs)).collect();
        Ok(Bar { label: name.into(), parts })
    });
    let drawn = drawn.collect::<Result<Vec<_>, LabError>>()?;
    let phases = PHASES.map(|(phase, ..)| phase);
    experiment.figures.push(bars("figure12", title, "tree", "seconds", &phases, drawn));
    for (phase, seconds, printed) in PHASES {
        let mut found = Vec::new();
        for side in sides {
            let seconds = seconds(runs.costs(&whole_life_of(of, side))?);
            let config = side.below.name();
            experiment.rows.push(Row::alone(side.system, &config, phase, seconds, "s"));
            found.push((side, seconds));
        }
        let [(_, btree), others @ ..] = &found[..] else { continue };
        for (side, seconds) in others {
            let config = format!("{}, against B-tree", side.below.name());
            let less = reduction(*seconds, *btree);
            let row = match printed {
                Some(paper) => Row::beside("wpcb", &config, phase, paper, less, "% less"),
                None => Row::alone("wpcb", &config, phase, less, "% less"),
            };
            experiment.rows.push(row);
            let claim = format!("{phase}: {} is no slower than B-tree", side.name);
            // Trees that differ by a few leaves differ by some reads.
            experiment.orderings.push((claim, *seconds <= btree * 1.01));
            if let Some(paper) = printed {
                let claim = format!("{phase}: {} takes {paper} % less, within a tenth", side.name);
                experiment.orderings.push((claim, (0.9..=1.1).contains(&(less / paper))));
            }
        }
        let &(_, wpcb) = &others[0];
        for (rival, case) in of.rival_cases(0) {
            let rivals = seconds(runs.costs(&case)?);
            let config = rival.below.name();
            experiment.rows.push(Row::alone(rival.system, &config, phase, rivals, "s"));
            let less = reduction(wpcb, rivals);
            let config = format!("as printed, against {}", rival.name);
            let Some(paper) = printed_against(rival.system, phase) else {
                experiment.rows.push(Row::alone("wpcb", &config, phase, less, "% less"));
                continue;
            };
            experiment.rows.push(Row::beside("wpcb", &config, phase, paper, less, "% less"));
            let claim = format!(
                "{phase}: WPCB as printed takes {paper} % less than {}, within a tenth",
                rival.name
            );
            experiment.orderings.push((claim, (0.9..=1.1).contains(&(less / paper))));
        }
    }
    Ok(experiment)
}

fn log_blocks(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Creation by log blocks N of the FTL, rs = 0: the paper names none";
    let mut experiment = Experiment::of("log-blocks", title, Vec::new());
    let mut times: Vec<(u32, Seconds)> = Vec::new();
    let rows = |case: &Case| {
        let costs = runs.costs(case)?;
        let (cost, ram) = (costs.inserts, costs.ram_bytes as f64);
        let (system, config) = (case.growth.system, case.below.name());
        let row = |metric, figure, unit| Row::alone(system, &config, metric, figure, unit);
        let programs = row("programs", cost.each(cost.programs), "an insert");
        let erases = row("erases", cost.each(cost.erases), "an insert");
        let creation = row("creation", cost.seconds, "s");
        Ok::<_, LabError>((cost.seconds, [programs, erases, creation, row("ram", ram, "bytes")]))
    };
    for &paper_blocks in of.scale.log_blocks {
        let mut all = Seconds::default();
        for (case, of_case) in compared(of, paper_blocks).iter().zip(&mut all) {
            let (seconds, rows) = rows(case)?;
            *of_case = seconds;
            experiment.rows.extend(rows);
        }
        times.push((of.scale.blocks(paper_blocks), all));
    }
    let (page_map, page_rows) = rows(&page_map(of))?;
    experiment.rows.extend(page_rows);
    let [dipl, mu_star, paper] = REDUCTIONS;
    for (place, name) in [(4, "as printed"), (5, "improved")] {
        let less = |&(_, seconds): &(u32, Seconds)| reduction(seconds[place], seconds[0]);
        let distance = |of: &(u32, Seconds)| (less(of) - paper).abs();
        let nearest = times.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let Some(nearest) = nearest else { continue };
        let config = format!("WPCB {name} against B-tree, nearest at N={}", nearest.0);
        let row = Row::beside("wpcb", &config, "creation", paper, less(nearest), "% less");
        experiment.rows.push(row);
    }
    experiment.notes = vec![
        pays(of, &times, "than B-tree over the N log blocks alone", |seconds| seconds[0]),
        pays(of, &times, "than B-tree with those blocks as more log blocks", |seconds| seconds[2]),
        pays(of, &times, "than B-tree with those log blocks and only true sequences", |seconds| {
            seconds[3]
        }),
        format!(
            "A page map on the flash of N={} and C takes {page_map:.0} s.",
            of.scale.blocks(LOG_BLOCKS)
        ),
        format!(
            "The paper's {paper} % are against B-tree. Its {dipl} % are against dIPL B-tree and its \
             {mu_star} % against μ*-tree: figure12 compares those at N={}.",
            of.scale.blocks(LOG_BLOCKS)
        ),
    ];
    let series = COMPARED.into_iter().enumerate().map(|(place, name)| Series {
        name: name.into(),
        points: times
            .iter()
            .map(|(blocks, seconds)| (f64::from(*blocks), seconds[place]))
            .collect(),
    });
    let figure = lines("log-blocks", title, super::LOG_BLOCKS, "seconds", series.collect());
    experiment.figures.push(figure);
    Ok(experiment)
}

/// Whether the buffer pays, in words for a reader who has to decide.
fn pays(
    of: &Experiments,
    times: &[(u32, Seconds)],
    than: &str,
    other: impl Fn(&Seconds) -> f64,
) -> String {
    let list = |pays: bool| {
        let which = times.iter().filter(|(_, seconds)| (seconds[5] < other(seconds)) == pays);
        let which = which.map(|(blocks, seconds)| {
            format!("N={blocks} ({:+.0} %)", -reduction(seconds[5], other(seconds)))
        });
        let which = which.collect::<Vec<_>>().join(", ");
        if which.is_empty() { "nowhere".to_string() } else { which }
    };
    format!(
        "WPCB with a buffer of {} blocks takes less time {than}: {}; not less: {}.",
        of.buffer(),
        list(true),
        list(false),
    )
}

/// Figure 12, and the log blocks.
pub fn experiments(of: &Experiments, runs: &Runs) -> Result<Vec<Experiment>, LabError> {
    Ok(vec![figure_12(of, runs)?, log_blocks(of, runs)?])
}
