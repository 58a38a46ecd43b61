//! The store `tnc` itself on simulated chips: fanout, RAM, clean-up, groups and orders of keys.
//!
//! Unlike the tables of the paper this counts pages and modelled time. Every run inserts records
//! into a new index and looks up a tenth of them; each result is checked.

use nandina::Options;
use nandina::flash::Profile;
use nandina::flash::profile::{MLC, NOR};

use super::Experiments;
use crate::reproduce::figure::{Content, Figure, Series};
use crate::reproduce::{Experiment, Row};
use crate::run::{Setup, SystemCost, SystemRun, run};
use crate::work::{Operation, Phase, Work};
use crate::{LabError, parallel};

/// Bytes of a key.
pub const KEY_BYTES: usize = 4;

/// Bytes of a value.
pub const VALUE_BYTES: usize = 12;

/// Changes of a group.
pub const GROUP: u32 = 64;

/// Neighbours that come one after another in clustered keys.
const RUN: u32 = 50;

/// The order of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Random,
    Clustered,
    Ascending,
}

impl Order {
    /// Each.
    pub const ALL: [Self; 3] = [Self::Random, Self::Clustered, Self::Ascending];

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Clustered => "clustered",
            Self::Ascending => "ascending",
        }
    }

    /// The key that comes after `at` others.
    fn key(self, at: u32, seed: u64) -> u32 {
        let random = |at: u32| {
            let at = at.wrapping_add((seed as u32).wrapping_sub(1).wrapping_mul(1_000_003));
            at.wrapping_mul(0x9E37_79B1).rotate_left(7) ^ 0x5A5A_1234
        };
        match self {
            Self::Random => random(at),
            Self::Clustered => random(at / RUN) & !0xFFF | (at % RUN),
            Self::Ascending => at,
        }
    }

    /// Inserts of so many records, lookups of a tenth, and scans from a few of them.
    pub fn work(self, records: u32, seed: u64) -> Result<Work, LabError> {
        let keys = (0..records).flat_map(|at| self.key(at, seed).to_be_bytes()).collect();
        let values = (0..records).flat_map(|at| [at.to_le_bytes(); 3]).flatten().collect();
        let mut work = Work::from_rows(KEY_BYTES, VALUE_BYTES, keys, values)?;
        let rows = Work::shuffled(records, seed);
        let lookups = rows[..records as usize / 10].iter().map(|&row| Operation::Lookup(row));
        let scans = rows[..records as usize / 100].iter();
        let scans = scans.map(|&row| Operation::Scan { row, records: 100 });
        work.phases = vec![
            Phase::new("insert", (0..records).map(Operation::Insert).collect()),
            Phase::new("lookup", lookups.collect()),
            Phase::new("scan", scans.collect()),
        ];
        Ok(work)
    }
}

/// The chips: NAND whose pages are independent, and SPI NOR.
pub const CHIPS: [(&str, Profile); 2] = [("NAND", MLC.without_pairing()), ("NOR", NOR)];

/// Changes wait in groups of 64, or none waits.
pub const fn in_groups(options: Options, chip: &Profile, of: u32) -> Options {
    if of == 1 {
        return options;
    }
    let bytes = of as usize * (KEY_BYTES + VALUE_BYTES + 1);
    let pages = bytes.div_ceil(chip.geometry.page_bytes as usize) + 1;
    options.write_buffer(pages).write_buffer_changes(of)
}

/// The settings of one run.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    chip: usize,
    fanout: Option<u16>,
    bytes: usize,
    /// The share of the clean nodes that leaves at once, in per cent; 0: the oldest leaves.
    share: u8,
    group: u32,
    order: usize,
}

impl Cell {
    fn options(&self) -> Options {
        let options = Options {
            fanout: self.fanout,
            shrink_percent: (self.share > 0).then_some(self.share),
            ..Options::new(KEY_BYTES, VALUE_BYTES).arena_bytes(self.bytes)
        };
        in_groups(options, &CHIPS[self.chip].1, self.group)
    }

    fn words(&self) -> String {
        let fanout = self.fanout.map_or("default".into(), |fanout| fanout.to_string());
        let order = Order::ALL[self.order].words();
        let (chip, bytes, group) = (CHIPS[self.chip].0, self.bytes, self.group);
        let clean_up = clean_up(self.share);
        format!("{chip}, fanout {fanout}, {bytes} bytes, {clean_up}, groups of {group}, {order}")
    }
}

fn clean_up(share: u8) -> String {
    if share == 0 { "oldest first".into() } else { format!("{share} %") }
}

/// Fanouts, bytes of RAM for nodes, and clean-ups.
struct Grid {
    fanouts: &'static [Option<u16>],
    bytes: &'static [usize],
    shares: &'static [u8],
    records: u32,
}

const FULL: Grid = Grid {
    fanouts: &[Some(8), Some(16), Some(32), Some(64), None],
    bytes: &[4_096, 16_384, 65_536, 1 << 20],
    shares: &[0, 25, 75],
    records: 10_000,
};

const QUICK: Grid = Grid {
    fanouts: &[Some(8), Some(32), None],
    bytes: &[4_096, 65_536],
    shares: &[0, 25],
    records: 1_000,
};

const GROUPS: [u32; 2] = [1, GROUP];

impl Grid {
    const fn of(quick: bool) -> &'static Self {
        if quick { &QUICK } else { &FULL }
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for chip in 0..CHIPS.len() {
            for &fanout in self.fanouts {
                for &bytes in self.bytes {
                    for &share in self.shares {
                        for group in GROUPS {
                            let cell = |order| Cell { chip, fanout, bytes, share, group, order };
                            cells.extend((0..Order::ALL.len()).map(cell));
                        }
                    }
                }
            }
        }
        cells
    }
}

/// Runs of the sweep.
pub fn runs(quick: bool) -> u64 {
    Grid::of(quick).cells().len() as u64
}

/// What a run measured.
struct Measured {
    cell: Cell,
    programs: f64,
    reads: f64,
    erases: f64,
    ms: f64,
    lookup: f64,
    commits: f64,
    written: f64,
    most: f64,
}

impl Measured {
    fn of(cell: Cell, cost: &SystemCost) -> Self {
        let (insert, lookup) = (&cost.phases[0], &cost.phases[1]);
        let nodes = |of: fn(&crate::run::NodeCost) -> u64| cost.nodes.as_ref().map_or(0, of) as f64;
        Self {
            cell,
            programs: insert.programs_per_op,
            reads: insert.reads_per_op,
            erases: insert.erases_per_op,
            ms: insert.ms_mean,
            lookup: lookup.reads_per_op,
            commits: nodes(|nodes| nodes.commits),
            written: nodes(|nodes| nodes.written),
            most: nodes(|nodes| nodes.most.into()),
        }
    }

    fn add_rows(&self, rows: &mut Vec<Row>) {
        let config = self.cell.words();
        for (metric, measured, unit) in [
            ("programs", self.programs, "an insert"),
            ("reads", self.reads, "an insert"),
            ("erases", self.erases, "an insert"),
            ("time", self.ms, "ms an insert"),
            ("reads of a lookup", self.lookup, "pages"),
            ("commits", self.commits, ""),
            ("nodes written", self.written, "nodes"),
            ("most nodes in RAM", self.most, "nodes"),
        ] {
            rows.push(Row::alone("tnc", &config, metric, measured, unit));
        }
    }
}

/// The sweep.
pub fn experiment(
    of: &Experiments,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let title =
        "The store itself: fanout, RAM, clean-up, groups and orders of keys, on NAND and NOR";
    let mut experiment = Experiment::of("sweep", title, Vec::new());
    experiment.is_wide = true;
    let grid = Grid::of(of.scale.quick);
    let works: Result<Vec<_>, _> =
        Order::ALL.iter().map(|order| order.work(grid.records, of.seed)).collect();
    let works = works?;
    let runs = parallel::each(&grid.cells(), |cell| {
        let (profile, options) = (CHIPS[cell.chip].1, cell.options());
        let setup = Setup { profile, options, ram_bytes: None, layer: None };
        let done = run("tnc", &setup, &works[cell.order], &|_| ())?;
        progress(1);
        Ok((*cell, done))
    })?;
    let mut measured = Vec::new();
    for (cell, run) in runs {
        match run {
            SystemRun::Ran(cost) => measured.push(Measured::of(cell, &cost)),
            SystemRun::Refused(refusal) => {
                experiment.refusals.push(format!("{}: {}", cell.words(), refusal.reason));
            }
        }
    }
    measured.iter().for_each(|run| run.add_rows(&mut experiment.rows));
    notes(&mut experiment, grid, &measured);
    experiment.figures = figures(grid, &measured);
    Ok(experiment)
}

/// The cells that differ from those of the oldest first only in their clean-up, in pairs.
fn beside_oldest(measured: &[Measured], share: u8) -> impl Iterator<Item = (&Measured, &Measured)> {
    let is_same = |one: &Cell, other: &Cell| {
        let of = |cell: &Cell| (cell.chip, cell.fanout, cell.bytes, cell.group, cell.order);
        of(one) == of(other)
    };
    measured.iter().filter(move |run| run.cell.share == share).filter_map(move |run| {
        let oldest =
            measured.iter().find(|other| other.cell.share == 0 && is_same(&other.cell, &run.cell));
        oldest.map(|oldest| (oldest, run))
    })
}

fn notes(experiment: &mut Experiment, grid: &Grid, measured: &[Measured]) {
    for &share in grid.shares.iter().filter(|&&share| share > 0) {
        let pairs: Vec<_> = beside_oldest(measured, share).collect();
        // Where all nodes fit in RAM nothing is cleaned up.
        let differ = pairs.iter().filter(|(oldest, run)| oldest.commits != run.commits);
        let slower = differ.clone().filter(|(oldest, run)| run.ms > oldest.ms).count();
        let ratio = |(oldest, run): &(&Measured, &Measured)| run.ms / oldest.ms;
        let worst = pairs.iter().map(ratio).fold(0.0, f64::max);
        let best = pairs.iter().map(ratio).fold(f64::INFINITY, f64::min);
        let commits = |of: fn(&(&Measured, &Measured)) -> f64| pairs.iter().map(of).sum::<f64>();
        experiment.notes.push(format!(
            "A commit and {share} % of the clean nodes, beside the oldest first: {} of {} pairs of runs \
             differ in commits, and it is slower in {slower} of these; an insert takes {best:.2} to {worst:.2} of the time. Commits of \
             all: {} and {}; nodes written: {} and {}.",
            differ.count(),
            pairs.len(),
            commits(|(_, run)| run.commits),
            commits(|(oldest, _)| oldest.commits),
            commits(|(_, run)| run.written),
            commits(|(oldest, _)| oldest.written),
        ));
    }
    for (chip, (name, _)) in CHIPS.iter().enumerate() {
        for group in GROUPS {
            for (order, words) in Order::ALL.iter().map(|order| order.words()).enumerate() {
                for &bytes in grid.bytes {
                    let cells = measured.iter().filter(|run| {
                        let cell = &run.cell;
                        (cell.chip, cell.group, cell.order, cell.bytes)
                            == (chip, group, order, bytes)
                    });
                    let Some(best) = cells.min_by(|one, other| one.ms.total_cmp(&other.ms)) else {
                        continue;
                    };
                    let fanout = best.cell.fanout;
                    experiment.notes.push(format!(
                        "Fastest inserts: {name}, groups of {group}, {words}, {bytes} bytes: fanout {}, {}: \
                         {:.3} ms, {:.3} programs, {:.2} reads of a lookup.",
                        fanout.map_or("default".into(), |fanout| fanout.to_string()),
                        clean_up(best.cell.share),
                        best.ms,
                        best.programs,
                        best.lookup,
                    ));
                }
            }
        }
    }
}

/// A line of points, of the cells that `shows`.
fn series(
    name: String,
    measured: &[Measured],
    shows: impl Fn(&Cell) -> bool,
    point: impl Fn(&Measured) -> Option<(f64, f64)>,
) -> Series {
    let points = measured.iter().filter(|run| shows(&run.cell)).filter_map(point);
    Series { name, points: points.collect() }
}

fn figures(grid: &Grid, measured: &[Measured]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut add = |id: String, title: String, (x, y): (&str, &str), series: Vec<Series>| {
        let content = Content::Lines { logarithmic: true, series };
        figures.push(Figure { id, title, x: x.into(), y: y.into(), content });
    };
    for (chip, (name, _)) in CHIPS.iter().enumerate() {
        let key = name.to_lowercase();
        let shares = |y: fn(&Measured) -> f64| -> Vec<Series> {
            let line = |&share: &u8| {
                let shows = |cell: &Cell| {
                    (cell.chip, cell.share, cell.group, cell.order, cell.fanout)
                        == (chip, share, 1, 0, Some(8))
                };
                let point = |run: &Measured| Some((run.cell.bytes as f64, y(run)));
                series(clean_up(share), measured, shows, point)
            };
            grid.shares.iter().map(line).collect()
        };
        let title = |what: &str| format!("{name}: {what}, random keys, each durable, fanout 8");
        let axes = |y| ("bytes of RAM for nodes", y);
        add(
            format!("tnc-sweep-{key}-commits"),
            title("commits"),
            axes("commits"),
            shares(|run| run.commits),
        );
        add(
            format!("tnc-sweep-{key}-clean-up"),
            title("an insert by clean-up"),
            axes("ms"),
            shares(|run| run.ms),
        );
        for (group, words) in [(1, "each durable"), (GROUP, "in groups of 64")] {
            let lines = grid.bytes.iter().map(|&bytes| {
                let shows = |cell: &Cell| {
                    (cell.chip, cell.share, cell.group, cell.order, cell.bytes)
                        == (chip, 0, group, 0, bytes)
                };
                let point = |run: &Measured| Some((f64::from(run.cell.fanout?), run.ms));
                series(format!("{bytes} bytes"), measured, shows, point)
            });
            add(
                format!("tnc-sweep-{key}-fanout-{group}"),
                format!("{name}: an insert of random keys, {words}, by fanout"),
                ("fanout", "ms"),
                lines.collect(),
            );
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs, reads and erases of 1,000 inserts, commits and nodes written.
    #[test]
    fn runs_of_the_store_have_exact_counts() {
        let mut found = Vec::new();
        for (chip, share, group, order) in
            [(0, 0, 1, 0), (0, 25, 1, 0), (0, 0, GROUP, 1), (1, 0, 1, 1), (1, 25, GROUP, 2)]
        {
            let cell = Cell { chip, fanout: Some(8), bytes: 4_096, share, group, order };
            let (profile, options) = (CHIPS[chip].1, cell.options());
            let setup = Setup { profile, options, ram_bytes: None, layer: None };
            let work = Order::ALL[order].work(1_000, 1).unwrap();
            let cost = run("tnc", &setup, &work, &|_| ()).unwrap().cost().unwrap();
            let (counters, nodes) = (cost.phases[0].counters, cost.nodes.unwrap());
            found.push([
                counters.programs,
                counters.reads,
                counters.erases,
                nodes.commits,
                nodes.written,
            ]);
        }
        assert_eq!(found, COUNTS);
    }

    const COUNTS: [[u64; 5]; 5] = [
        [1075, 1147, 8, 76, 2657],
        [1187, 1384, 9, 188, 3114],
        [21, 9, 0, 11, 367],
        [1118, 20, 12, 11, 367],
        [137, 0, 8, 25, 372],
    ];
}
