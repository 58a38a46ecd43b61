//! Table 2: eight properties of nine trees, each measured on the same work.
//!
//! The paper gives words and defines none of them. Here each column is a count, and a count becomes
//! a word by its ratio to that of the B-tree that merges.

use super::counts::LOG_BLOCKS;
use super::growth::{Growth, Tally};
use super::rivals::Rival;
use super::runs::{Case, Runs};
use super::{Experiment, Experiments, Side, begun, mu_trees};
use crate::LabError;
use crate::reproduce::Row;

/// Shares of ascending keys, in per cent: the work is done with each.
const RATIOS: [u32; 2] = [0, 100];

/// Up to so much more or less than the B-tree is as much.
const AS_MUCH: f64 = 0.1;

/// The columns in the paper's order, each with its definition.
const COLUMNS: [(&str, &str); 8] = [
    (
        "resource of buffer",
        "where the most changes waited at once for the page of their node (seen after each 4,096th \
         change): 'Main memory', 'Flash memory', or 'No' if none waited. In flash, changes of IPL \
         and LA-tree are counted, and pages of buffer blocks of WPCB.",
    ),
    (
        "nodes per page",
        "nodes in a page program that writes nodes, the mean: 'Many' from 1.5 on, else 'One'. \
         Sectors of a log and pages of waiting changes have no nodes. One by construction, except of \
         BFTL and of the μ-trees.",
    ),
    (
        "write operations",
        "programs of the index, with those of its own buffer, converter or log, and without those \
         of an FTL, for each insert and removal, by the B-tree's. A sector of a log is a program.",
    ),
    ("read operations", "pages that a lookup reads, the root apart, by the B-tree's."),
    (
        "split operations",
        "nodes that were divided for each 1,000 inserts, by the B-tree's. A leaf that is opened \
         beside a full one is not divided.",
    ),
    (
        "merge operations",
        "nodes that were joined, and logs that were merged with the nodes of their block, for each \
         1,000 inserts and removals, by the B-tree's; 'No' if there are none. An entry that moves \
         to a neighbour, an empty node that goes, and a conversion of WPCB are none.",
    ),
    (
        "risk of data loss",
        "changes that returned and are in RAM alone, the most at once (seen after each 4,096th \
         change): 'Yes' if there are any.",
    ),
    (
        "page occupancy",
        "pages that hold the index after the inserts, with its log, waiting changes and buffer \
         blocks, by the B-tree's. 'Low' and 'Reduced' are taken as the same.",
    ),
];

/// The trees in the paper's order, and their entries as it prints them.
const TREES: [(&str, &str, [&str; 8]); 9] = [
    (
        Rival::Bftl.key(),
        "BFTL",
        ["Main memory", "Many", "Reduced", "Increased", "Normal", "Normal", "Yes", "Low"],
    ),
    (
        Rival::Ibsf.key(),
        "IBSF",
        ["Main memory", "One", "Reduced", "Normal", "Normal", "Normal", "Yes", "Normal"],
    ),
    (
        Rival::La.key(),
        "LA-tree",
        ["Flash memory", "One", "Reduced", "Increased", "Normal", "Normal", "No", "Normal"],
    ),
    (
        Rival::Mb.key(),
        "MB-tree",
        ["Main memory", "One", "Reduced", "Normal", "Normal", "Normal", "Yes", "Normal"],
    ),
    (
        Rival::Mu.key(),
        "μ-tree",
        ["No", "Many", "Normal", "Normal", "Frequently", "Normal", "No", "High"],
    ),
    (
        Rival::MuStar.key(),
        "μ*-tree",
        ["No", "Many", "Normal", "Normal", "Frequently", "Normal", "No", "High"],
    ),
    (
        Rival::Ipl.key(),
        "IPL",
        ["Flash memory", "One", "Increased", "Increased", "Normal", "Frequently", "No", "High"],
    ),
    (
        Rival::Dipl.key(),
        "dIPL",
        ["Flash memory", "One", "Increased", "Increased", "Normal", "Frequently", "No", "High"],
    ),
    (
        WPCB,
        "WPCB",
        ["Flash memory", "One", "Increased", "Normal", "Reduced", "No", "No", "Reduced"],
    ),
];

const WPCB: &str = "wpcb";

/// Trees that test why an entry differs, and the columns that show it.
const VARIANTS: [(Rival, &[usize]); 3] =
    [(Rival::BftlSmall, &[7]), (Rival::LaDurable, &[2, 6]), (Rival::MbLarge, &[3])];

/// What a tree did, and for how many records.
#[derive(Clone, Copy, Default)]
struct Counts {
    tally: Tally,
    records: u64,
}

impl Counts {
    /// This and other work.
    fn and(self, other: Self) -> Self {
        Self { tally: self.tally.and(other.tally), records: self.records + other.records }
    }

    fn figure(&self, column: usize) -> f64 {
        let Self { tally, records } = self;
        let each = |of: u64, by: u64| of as f64 / by.max(1) as f64;
        match column {
            0 => f64::from(tally.in_ram.max(tally.in_flash)),
            1 => each(tally.nodes, tally.node_pages),
            2 => each(tally.programs, 2 * records),
            3 => each(tally.lookup_reads, tally.lookups),
            4 => each(1_000 * tally.splits, *records),
            5 => each(1_000 * tally.merges, 2 * records),
            6 => f64::from(tally.in_ram),
            _ => f64::from(tally.held),
        }
    }

    /// The paper's word for a column.
    fn word(&self, column: usize, btree: &Self) -> &'static str {
        let (figure, by) = (self.figure(column), self.figure(column) / btree.figure(column));
        match column {
            0 if figure == 0.0 => "No",
            0 if self.tally.in_ram > self.tally.in_flash => "Main memory",
            0 => "Flash memory",
            1 if figure < 1.5 => "One",
            1 => "Many",
            5 if figure == 0.0 => "No",
            6 if figure == 0.0 => "No",
            6 => "Yes",
            7 if by < 1.0 - AS_MUCH => "Low",
            _ if by < 1.0 - AS_MUCH => "Reduced",
            _ if by <= 1.0 + AS_MUCH => "Normal",
            7 => "High",
            4 | 5 => "Frequently",
            _ => "Increased",
        }
    }
}

/// The metric of a column in the rows, and its unit.
const METRICS: [(&str, &str); 8] = [
    ("waiting", "changes"),
    ("nodes", "a page"),
    ("writes", "a change"),
    ("reads", "a lookup"),
    ("splits", "of 1,000 inserts"),
    ("merges", "of 1,000 changes"),
    ("in_ram_alone", "changes"),
    ("pages", "pages"),
];

/// The most records of μ-tree, whose page of 128 entries has room for 6 levels.
const MU_RECORDS: u32 = 100_000;

/// How many records a tree gets.
fn records(of: &Experiments, system: &str) -> u32 {
    let all = of.scale.records;
    if system == Rival::Mu.key() { all.min(MU_RECORDS) } else { all }
}

fn work(of: &Experiments, system: &'static str, records: u32, per_cent: u32) -> Growth {
    Growth { records, then_removes: true, looks_up: true, ..of.inserts(system, per_cent) }
}

/// WPCB-tree as the paper has it.
fn wpcb(of: &Experiments, per_cent: u32) -> Case {
    let [_, Side { system, below, .. }, _] = of.sides(LOG_BLOCKS);
    Case { growth: work(of, system, of.scale.records, per_cent), below }
}

/// Systems that are counted without an FTL, in the order of the rows.
fn counted() -> impl Iterator<Item = &'static str> {
    let trees = TREES.into_iter().map(|(system, ..)| system).filter(|system| *system != WPCB);
    let variants = VARIANTS.into_iter().map(|(rival, _)| rival.key());
    trees.chain(variants).chain([Rival::WpcbTree.key()])
}

/// The cases of this experiment.
pub fn cases(of: &Experiments) -> Vec<Case> {
    RATIOS.map(|per_cent| wpcb(of, per_cent)).to_vec()
}

/// What is only counted for this experiment.
pub fn growths(of: &Experiments) -> Vec<Growth> {
    let trees = counted().map(|system| (system, records(of, system)));
    let bases = [of.scale.records, records(of, Rival::Mu.key())];
    let bases = bases.map(|records| (Rival::Merging.key(), records));
    trees
        .chain(bases)
        .flat_map(|(system, records)| RATIOS.map(|per_cent| work(of, system, records, per_cent)))
        .collect()
}

/// What WPCB-tree did. Its buffer is no part of the index, so the FTL counts it.
fn wpcb_tally(of: &Experiments, runs: &Runs, per_cent: u32) -> Result<Tally, LabError> {
    let case = wpcb(of, per_cent);
    let (costs, tally) = (runs.costs(&case)?, runs.grown(&case.growth)?.tally);
    let pages = |blocks: Option<&u32>| blocks.copied().unwrap_or(0) * of.scale.block_pages;
    Ok(Tally {
        in_flash: pages(costs.buffered.iter().max()),
        held: tally.held + pages(costs.buffered.last()),
        // The converter writes the newest pages of a buffer block.
        programs: tally.programs + costs.removals.conversions.newest,
        // The system does not count divisions. This tree has the same nodes.
        splits: runs.tally(&work(of, Rival::WpcbTree.key(), of.scale.records, per_cent))?.splits,
        ..tally
    })
}

/// Counts of one tree, for each ratio and for all of them.
fn counts(
    of: &Experiments,
    runs: &Runs,
    system: &'static str,
    records: u32,
) -> Result<Vec<Counts>, LabError> {
    let mut all = Vec::new();
    for per_cent in RATIOS {
        let tally = match system {
            WPCB => wpcb_tally(of, runs, per_cent)?,
            _ => *runs.tally(&work(of, system, records, per_cent))?,
        };
        all.push(Counts { tally, records: u64::from(records) });
    }
    let both = all.iter().fold(Counts::default(), |sum, counts| sum.and(*counts));
    all.push(both);
    Ok(all)
}

/// The same of the B-tree that all are compared with.
fn base(of: &Experiments, runs: &Runs, records: u32) -> Result<Vec<Counts>, LabError> {
    counts(of, runs, Rival::Merging.key(), records)
}

/// What WPCB-tree's entries would be if they were counted in another way.
fn otherwise(
    of: &Experiments,
    runs: &Runs,
) -> Result<[(&'static str, usize, Counts); 2], LabError> {
    let (mut merges, mut held) = (0, 0);
    for case in RATIOS.map(|per_cent| wpcb(of, per_cent)) {
        merges += runs.costs(&case)?.removals.conversions.blocks;
        held += runs.grown(&case.growth)?.tally.held;
    }
    let tally = Tally { merges, held, ..Tally::default() };
    let counts = Counts { tally, records: u64::from(of.scale.records) * RATIOS.len() as u64 };
    let conversions = "WPCB if a conversion is a merge, as that of a log is";
    Ok([(conversions, 5, counts), ("WPCB without its buffer blocks", 7, counts)])
}

/// Rows and notes on why entries differ.
fn causes(
    of: &Experiments,
    runs: &Runs,
    base: &Counts,
    experiment: &mut Experiment,
) -> Result<(), LabError> {
    let mut all = Vec::new();
    for (rival, columns) in VARIANTS {
        let counts = counts(of, runs, rival.key(), of.scale.records)?;
        let both = counts[RATIOS.len()];
        all.extend(columns.iter().map(|&column| (rival.key(), rival.name(), column, both)));
    }
    let of_wpcb = otherwise(of, runs)?;
    all.extend(of_wpcb.map(|(name, column, counts)| (WPCB, name, column, counts)));
    for (system, name, column, counts) in all {
        let ((metric, unit), figure) = (METRICS[column], counts.figure(column));
        experiment.rows.push(Row::alone(system, name, metric, figure, unit));
        let detail = match base.figure(column) {
            0.0 => format!("{figure:.2} {unit}"),
            btree => format!("{:.2} of the B-tree's", figure / btree),
        };
        let (title, word) = (COLUMNS[column].0, counts.word(column, base));
        experiment.notes.push(format!("{name}: {title} {word}: {detail}."));
    }
    Ok(())
}

/// Table 2.
pub fn experiment(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "Table 2: eight properties of nine trees, by the B-tree that merges";
    let mut experiment = begun("table2", title);
    let trees = TREES.into_iter().map(|(system, ..)| system);
    let systems = [Rival::Merging.key()].into_iter().chain(trees);
    for system in systems {
        let records = records(of, system);
        let counts = counts(of, runs, system, records)?;
        let btree = base(of, runs, records)?;
        let (both, base) = (counts[RATIOS.len()], btree[RATIOS.len()]);
        let config = format!("rs 0 and 1, {records} records");
        for (column, (metric, unit)) in METRICS.into_iter().enumerate() {
            let figure = both.figure(column);
            experiment.rows.push(Row::alone(system, &config, metric, figure, unit));
        }
        let Some((_, name, printed)) = TREES.into_iter().find(|tree| tree.0 == system) else {
            continue;
        };
        for (column, ((title, _), printed)) in COLUMNS.into_iter().zip(printed).enumerate() {
            let word = both.word(column, &base);
            let holds = word == printed || (word, printed) == ("Low", "Reduced");
            let detail = if matches!(column, 2..=5 | 7) {
                let by = |at: usize| counts[at].figure(column) / btree[at].figure(column);
                format!("{:.2} of the B-tree's (rs 0: {:.2}, rs 1: {:.2})", by(2), by(0), by(1))
            } else {
                format!("{:.2} {}", both.figure(column), METRICS[column].1)
            };
            let claim = format!("{name}, {title}: printed {printed}, ours {word}: {detail}");
            experiment.orderings.push((claim, holds));
        }
    }
    let btree = base(of, runs, of.scale.records)?;
    causes(of, runs, &btree[RATIOS.len()], &mut experiment)?;
    let hold = experiment.orderings.iter().filter(|(_, holds)| *holds).count();
    experiment.notes.push(format!(
        "{hold} of {} entries are as printed. The work: {} inserts of unique keys and their removal in \
         random order, a lookup of a record that is there after each, once with random and once with \
         ascending keys; the figures are of both. Up to a tenth more or less than the B-tree that \
         merges is 'Normal'. WPCB as printed, C = {}, over FAST; the others as they write, without \
         what an FTL makes of it. μ-tree and the B-tree beside it have {} records: its page has no \
         room for more levels.",
        experiment.orderings.len(),
        of.scale.records,
        of.buffer(),
        records(of, Rival::Mu.key()),
    ));
    mu_trees::add(of, &mut experiment)?;
    let definitions = COLUMNS.into_iter().map(|(title, text)| format!("'{title}': {text}"));
    experiment.notes.extend(definitions);
    Ok(experiment)
}
