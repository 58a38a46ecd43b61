//! One million records of 8 bytes on MLC NAND of 64 MiB: what each kind of operation costs.
//!
//! All is counted: splits, merges, collection, checkpoints. Keys come in any order, by Zipf's law,
//! in clusters, and as a queue.

use std::collections::HashSet;

use nandina::flash::profile::MLC;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

use super::{SYSTEM, Scale, find, setup};
use crate::LabError;
use crate::reproduce::{Experiment, Row};
use crate::run::{SystemCost, run};
use crate::work::{Operation, Phase, SCAN_RECORDS, Work};

/// Blocks opened from one checkpoint to the next.
const EVERY: u32 = 8;

/// Records of a cluster of ascending keys.
const CLUSTER: u32 = 64;

/// Records that a queue holds at once.
const QUEUE: u32 = 1_000;

/// Leaves for which the directory has room, for each 10,000 records: random keys, and clusters.
const USUAL: u32 = 23;
const CLUSTERED: u32 = 45;

/// The exponent of Zipf's law.
const EXPONENT: f64 = 0.99;

/// Phases of the uniform work, and what the prototype measured: programs and reads an operation.
const UNIFORM: [(&str, Option<f64>, f64); 6] = [
    ("lookup", None, 1.0),
    ("absent", None, 1.0),
    ("scan", None, 1.37),
    ("update", Some(1.017), 1.014),
    ("insert", Some(1.0103), 1.007),
    ("delete", Some(1.016), 1.013),
];

/// Milliseconds of those that change something.
const UNIFORM_MS: [(&str, f64); 3] = [("update", 1.101), ("insert", 1.094), ("delete", 1.100)];

/// Operations of all runs of this file.
pub fn operations(scale: Scale) -> u64 {
    let Scale { records, operations, .. } = scale;
    let (records, operations) = (u64::from(records), u64::from(operations));
    let uniform = records + 5 * operations + operations / 10;
    let queue = 2 * operations;
    uniform + 2 * (records + operations) + queue
}

/// The costs of `work` with room in the directory for so many leaves for each 10,000 records.
fn cost_of(
    scale: Scale,
    leaves: u32,
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SystemCost, LabError> {
    let blocks = MLC.geometry.blocks / scale.blocks_by;
    let profile = MLC.without_pairing().with_blocks(blocks.max(24));
    let leaves = scale.records / 10_000 * leaves + 20;
    run(SYSTEM, &setup(profile, leaves, Some(EVERY)), work, progress)?.cost()
}

/// Each operation on records with random keys.
pub fn uniform(
    scale: Scale,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let Scale { records, operations, .. } = scale;
    // Rows behind the first are new keys, those behind these are never there.
    let mut work = Work::random_rows(records + 2 * operations, 4, 4, seed)?;
    let order = Work::shuffled(records, seed ^ 1);
    let some = |from: u32| {
        order.iter().copied().cycle().skip((from * operations) as usize).take(operations as usize)
    };
    let new = records..records + operations;
    let absent = records + operations..records + 2 * operations;
    work.phases = vec![
        Phase::new("fill", (0..records).map(Operation::Insert).collect()),
        Phase::new("lookup", some(0).map(Operation::Lookup).collect()),
        Phase::new("absent", absent.map(Operation::Lookup).collect()),
        Phase::new(
            "scan",
            some(1)
                .take(operations as usize / 10)
                .map(|row| Operation::Scan { row, records: SCAN_RECORDS })
                .collect(),
        ),
        Phase::new("update", some(2).map(Operation::Update).collect()),
        Phase::new("insert", new.map(Operation::Insert).collect()),
        Phase::new("delete", some(3).map(Operation::Delete).collect()),
    ];
    let cost = cost_of(scale, USUAL, &work, progress)?;
    let mut rows = Vec::new();
    for (name, programs, reads) in UNIFORM {
        let phase = find(&cost, name)?;
        if let Some(programs) = programs {
            let measured = phase.programs_per_op;
            rows.push(Row::beside(SYSTEM, name, "programs", programs, measured, "pages"));
        }
        rows.push(Row::beside(SYSTEM, name, "reads", reads, phase.reads_per_op, "pages"));
        let ms = UNIFORM_MS.into_iter().find(|(of, _)| *of == name);
        rows.push(match ms {
            Some((_, ms)) => Row::beside(SYSTEM, name, "mean time", ms, phase.ms_mean, "ms"),
            None => Row::alone(SYSTEM, name, "mean time", phase.ms_mean, "ms"),
        });
        rows.push(Row::alone(SYSTEM, name, "longest", phase.ms_max, "ms"));
    }
    let fill = find(&cost, "fill")?;
    rows.push(Row::beside(SYSTEM, "fill", "programs", 1.0015, fill.programs_per_op, "pages"));
    rows.push(Row::beside(SYSTEM, "fill", "reads", 1.0, fill.reads_per_op, "pages"));
    rows.push(Row::beside(SYSTEM, "all", "RAM", 11_913.0, cost.ram_bytes as f64, "bytes"));
    rows.extend(
        cost.valid_pages.map(|pages| {
            Row::alone(SYSTEM, "all", "valid pages at the end", pages.into(), "pages")
        }),
    );
    rows.push(Row::alone(SYSTEM, "all", "most erases by mean", cost.wear_max_by_mean, "ratio"));
    let within = |name, most: f64| {
        let phase = find(&cost, name);
        phase.is_ok_and(|phase| phase.programs_per_op <= most && phase.reads_per_op <= most)
    };
    let orderings = vec![
        ("an insert takes at most 1.02 programs and reads".into(), within("insert", 1.02)),
        ("an update takes at most 1.02 programs and reads".into(), within("update", 1.02)),
        ("a delete takes at most 1.02 programs and reads".into(), within("delete", 1.02)),
        (
            "a lookup reads one page, whether it finds the key or not".into(),
            find(&cost, "lookup")?.reads_per_op <= 1.0
                && find(&cost, "absent")?.reads_per_op <= 1.0,
        ),
        (
            "a scan of 100 records reads at most 1.4 pages".into(),
            find(&cost, "scan")?.reads_per_op <= 1.4,
        ),
        ("all RAM is at most 12.5 KB".into(), cost.ram_bytes <= 12_500),
    ];
    let title = "Records of 4+4 bytes with random keys on MLC NAND";
    Ok(Experiment { orderings, ..Experiment::of("uniform", title, rows) })
}

/// Pages that are valid at the end, most of them leaves.
fn pages(cost: &SystemCost, config: &str, prototype: f64) -> Option<Row> {
    let pages = f64::from(cost.valid_pages?);
    Some(Row::beside(SYSTEM, config, "valid pages", prototype, pages, "pages"))
}

/// Rows of random keys, then of clusters of ascending keys, none of them twice.
fn clusters(records: u32, operations: u32, seed: u64) -> Result<Work, LabError> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut seen = HashSet::new();
    let mut keys = Vec::with_capacity(4 * (records + operations) as usize);
    while seen.len() < records as usize {
        let key: u32 = random.random();
        // No random key is in the way of a cluster: their lowest bit differs.
        if seen.insert(key | 1) {
            keys.extend((key | 1).to_be_bytes());
        }
    }
    let mut bases = HashSet::new();
    while keys.len() < 4 * (records + operations) as usize {
        let base: u32 = random.random_range(0..u32::MAX / (2 * CLUSTER));
        if bases.insert(base) {
            let left = (records + operations) as usize - keys.len() / 4;
            let ascending = (0..CLUSTER).map(|at| 2 * (base * CLUSTER + at));
            ascending.take(left).for_each(|key| keys.extend(key.to_be_bytes()));
        }
    }
    let values = keys.clone();
    Work::from_rows(4, 4, keys, values)
}

/// Updates by Zipf's law, clusters of ascending keys, and a queue.
pub fn other_orders(
    scale: Scale,
    seed: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let Scale { records, operations, .. } = scale;
    let mut rows = Vec::new();
    let mut orderings = Vec::new();
    let fill = || Phase::new("fill", (0..records).map(Operation::Insert).collect());

    let mut skewed = Work::random_rows(records, 4, 4, seed)?;
    skewed.phases = vec![fill(), Phase::new("changes", zipf(records, operations, seed)?)];
    let cost = cost_of(scale, USUAL, &skewed, progress)?;
    let phase = find(&cost, "changes")?;
    let config = "updates, Zipf 0.99";
    rows.push(Row::beside(SYSTEM, config, "programs", 1.0258, phase.programs_per_op, "pages"));
    rows.push(Row::beside(SYSTEM, config, "reads", 1.023, phase.reads_per_op, "pages"));
    rows.push(Row::beside(SYSTEM, config, "mean time", 1.111, phase.ms_mean, "ms"));
    rows.push(Row::alone(SYSTEM, config, "most erases by mean", cost.wear_max_by_mean, "ratio"));
    orderings.push((
        "an update by Zipf's law takes at most 1.03 programs".into(),
        phase.programs_per_op <= 1.03,
    ));

    let mut clustered = clusters(records, operations, seed)?;
    let new = (records..records + operations).map(Operation::Insert).collect();
    clustered.phases = vec![fill(), Phase::new("changes", new)];
    let cost = cost_of(scale, CLUSTERED, &clustered, progress)?;
    let phase = find(&cost, "changes")?;
    let config = "inserts, 64 in a row";
    rows.push(Row::beside(SYSTEM, config, "programs", 1.144, phase.programs_per_op, "pages"));
    rows.push(Row::beside(SYSTEM, config, "reads", 1.141, phase.reads_per_op, "pages"));
    rows.push(Row::beside(SYSTEM, config, "mean time", 1.239, phase.ms_mean, "ms"));
    rows.extend(pages(&cost, config, 3_493.0));
    orderings.push((
        "an insert among 64 ascending keys takes at most 1.06 programs".into(),
        phase.programs_per_op <= 1.06,
    ));

    let mut queue = Work::from_rows(4, 4, ascending(operations), ascending(operations))?;
    let pushed =
        |row: u32| [Some(Operation::Insert(row)), row.checked_sub(QUEUE).map(Operation::Delete)];
    queue.phases =
        vec![Phase::new("changes", (0..operations).flat_map(pushed).flatten().collect())];
    let cost = cost_of(scale, USUAL, &queue, progress)?;
    let phase = find(&cost, "changes")?;
    let config = "queue of 1,000 records";
    rows.push(Row::alone(SYSTEM, config, "programs", phase.programs_per_op, "pages"));
    rows.push(Row::alone(SYSTEM, config, "reads", phase.reads_per_op, "pages"));
    rows.extend(pages(&cost, config, 9.0));
    orderings.push((
        "a queue of 1,000 records ends with at most 12 valid pages".into(),
        cost.valid_pages.is_some_and(|pages| pages <= 12),
    ));

    let title = "The same where keys are not uniform";
    Ok(Experiment { orderings, ..Experiment::of("orders", title, rows) })
}

/// The numbers from 0 on, as keys.
fn ascending(count: u32) -> Vec<u8> {
    (0..count).flat_map(u32::to_be_bytes).collect()
}

/// Changes of the values of rows, each to its other value.
///
/// An update gives a row its second value, and an insert its first again: no change is none.
pub fn changes(rows: impl IntoIterator<Item = u32>, records: u32) -> Vec<Operation> {
    let mut is_second = vec![false; records as usize];
    let change = |row: u32| {
        let is_second = &mut is_second[row as usize];
        *is_second = !*is_second;
        if *is_second { Operation::Update(row) } else { Operation::Insert(row) }
    };
    rows.into_iter().map(change).collect()
}

/// Changes of rows that are drawn by Zipf's law.
///
/// Which row is how frequent is random.
pub fn zipf(records: u32, operations: u32, seed: u64) -> Result<Vec<Operation>, LabError> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 2);
    let law = Zipf::new(f64::from(records), EXPONENT)
        .map_err(|error| LabError(format!("Zipf's law over {records} records: {error}")))?;
    let mut rank: Vec<u32> = (0..records).collect();
    rank.shuffle(&mut random);
    let draw = |_| {
        let drawn = law.sample(&mut random) as usize;
        rank[drawn.clamp(1, records as usize) - 1]
    };
    Ok(changes((0..operations).map(draw), records))
}
