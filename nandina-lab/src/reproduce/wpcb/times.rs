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
const COMPARED: [&str; 7] = [
    "B-tree",
    "B-tree, only true sequences",
    "B-tree, N + C log blocks",
    "B-tree, N + C log blocks, only true sequences",
    "WPCB as printed",
    "WPCB",
    "WPCB, only true sequences",
];

/// Seconds of each that is compared.
type Seconds = [f64; COMPARED.len()];

/// Those of WPCB with all improvements.
const WPCB: usize = 5;

/// What is compared at a number of log blocks.
struct AtLogBlocks {
    log_blocks: u32,
    seconds: Seconds,
    /// Bytes of RAM of the FTL with its buffer.
    ram: [f64; COMPARED.len()],
}

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
    let true_sequences = Map::Fast { log_blocks, rule: SequentialRule::Continues };
    [
        fast(log_blocks, SequentialRule::FirstPage),
        fast(log_blocks, SequentialRule::Continues),
        fast(equal_flash, SequentialRule::FirstPage),
        fast(equal_flash, SequentialRule::Continues),
        case("wpcb", printed.below),
        case("wpcb", improved.below),
        case("wpcb", Below { map: true_sequences, ..improved.below }),
    ]
}

/// The rivals of the sentences on creation, with so many log blocks.
fn rivals_at(of: &Experiments, log_blocks: u32) -> impl Iterator<Item = (f64, Side, Case)> {
    let log_blocks = of.scale.blocks(log_blocks);
    of.rival_cases(0).filter_map(move |(side, case)| {
        let paper = printed_against(side.system, "creation")?;
        let Map::Fast { rule, .. } = case.below.map else { return None };
        let below = Below { map: Map::Fast { log_blocks, rule }, ..case.below };
        let growth = of.inserts(side.system, 0);
        Some((paper, side, Case { growth, below }))
    })
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
    let rivals_at = of.scale.log_blocks.iter().flat_map(|&blocks| rivals_at(of, blocks));
    let rivals = rivals.chain(rivals_at.map(|(.., case)| case));
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
    let mut times: Vec<AtLogBlocks> = Vec::new();
    let rows = |case: &Case| {
        let costs = runs.costs(case)?;
        let (cost, ram) = (costs.inserts, costs.ram_bytes as f64);
        let (system, config) = (case.growth.system, case.below.name());
        let row = |metric, figure, unit| Row::alone(system, &config, metric, figure, unit);
        let programs = row("programs", cost.each(cost.programs), "an insert");
        let erases = row("erases", cost.each(cost.erases), "an insert");
        let creation = row("creation", cost.seconds, "s");
        let rows = [programs, erases, creation, row("ram", ram, "bytes")];
        Ok::<_, LabError>((cost.seconds, ram, rows))
    };
    for &paper_blocks in of.scale.log_blocks {
        let mut at = AtLogBlocks {
            log_blocks: of.scale.blocks(paper_blocks),
            seconds: Seconds::default(),
            ram: Seconds::default(),
        };
        for (place, case) in compared(of, paper_blocks).iter().enumerate() {
            let (seconds, ram, rows) = rows(case)?;
            (at.seconds[place], at.ram[place]) = (seconds, ram);
            experiment.rows.extend(rows);
        }
        for (paper, rival, case) in rivals_at(of, paper_blocks) {
            let seconds = runs.costs(&case)?.inserts.seconds;
            for (name, wpcb) in
                [("as printed", at.seconds[WPCB - 1]), ("improved", at.seconds[WPCB])]
            {
                let config = format!("N={}, {name} against {}", at.log_blocks, rival.name);
                let less = reduction(wpcb, seconds);
                let row = Row::beside("wpcb", &config, "creation", paper, less, "% less");
                experiment.rows.push(row);
            }
        }
        times.push(at);
    }
    let (page_map, _, page_rows) = rows(&page_map(of))?;
    experiment.rows.extend(page_rows);
    let [dipl, mu_star, paper] = REDUCTIONS;
    for (place, name) in [(WPCB - 1, "as printed"), (WPCB, "improved")] {
        let less = |at: &AtLogBlocks| reduction(at.seconds[place], at.seconds[0]);
        let distance = |at: &AtLogBlocks| (less(at) - paper).abs();
        let nearest = times.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let Some(nearest) = nearest else { continue };
        let config = format!("WPCB {name} against B-tree, nearest at N={}", nearest.log_blocks);
        let row = Row::beside("wpcb", &config, "creation", paper, less(nearest), "% less");
        experiment.rows.push(row);
    }
    experiment.notes = vec![
        pays(of, &times, "than B-tree over the N log blocks alone", |at| at.of_two(WPCB, 0)),
        pays(of, &times, "than B-tree with those blocks as more log blocks", |at| {
            at.of_two(WPCB, 2)
        }),
        pays(
            of,
            &times,
            "than B-tree over the N log blocks, both with only true sequences",
            |at| at.of_two(WPCB + 1, 1),
        ),
        pays(
            of,
            &times,
            "than B-tree with those blocks as more log blocks, both with only true sequences",
            |at| at.of_two(WPCB + 1, 3),
        ),
        pays(
            of,
            &times,
            "than B-tree with log blocks for as much RAM or more, the fewest of these",
            |at| {
                let others = times.iter().filter(|other| other.ram[0] >= at.ram[WPCB]);
                let other = others.min_by(|a, b| a.ram[0].total_cmp(&b.ram[0]))?;
                Some((at.seconds[WPCB], other.seconds[0]))
            },
        ),
        format!(
            "A page map on the flash of N={} and C takes {page_map:.0} s.",
            of.scale.blocks(LOG_BLOCKS)
        ),
        format!(
            "The paper's {paper} % are against B-tree, its {dipl} % against dIPL B-tree and its \
             {mu_star} % against μ*-tree."
        ),
    ];
    let series = COMPARED.into_iter().enumerate().map(|(place, name)| Series {
        name: name.into(),
        points: times.iter().map(|at| (f64::from(at.log_blocks), at.seconds[place])).collect(),
    });
    let figure = lines("log-blocks", title, super::LOG_BLOCKS, "seconds", series.collect());
    experiment.figures.push(figure);
    Ok(experiment)
}

impl AtLogBlocks {
    /// The seconds of two that are compared.
    const fn of_two(&self, one: usize, other: usize) -> Option<(f64, f64)> {
        Some((self.seconds[one], self.seconds[other]))
    }
}

/// Whether the buffer pays, in words for a reader who has to decide.
///
/// `two` are the seconds with it and without it, where there are any to compare.
fn pays(
    of: &Experiments,
    times: &[AtLogBlocks],
    than: &str,
    two: impl Fn(&AtLogBlocks) -> Option<(f64, f64)>,
) -> String {
    let list = |pays: bool| {
        let all = times.iter().filter_map(|at| Some((at.log_blocks, two(at)?)));
        let which = all.filter(|(_, (with, without))| (with < without) == pays);
        let which = which.map(|(blocks, (with, without))| {
            format!("N={blocks} ({:+.0} %)", -reduction(with, without))
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
