//! Which system for which work: `tnc` beside the others, also where it loses.
//!
//! All systems have the same RAM. `tnc` uses it for nodes, and the others for a directory of
//! leaves, a read cache and page buffers, as far as they have these.

use nandina::Options;
use nandina::flash::Profile;

use super::Experiments;
use super::sweep::{CHIPS, GROUP, KEY_BYTES, Order, VALUE_BYTES, in_groups};
use crate::reproduce::{Experiment, Row};
use crate::run::{Setup, SystemCost, SystemRun, run};
use crate::subject::{Maker, system};
use crate::{LabError, parallel, systems};

const SYSTEMS: [&str; 6] = ["tnc", "mu", "vm", "vm-ow", "rosette", "rosette-nor"];

/// Bytes of RAM for the buffer of an index on each chip, and the fanout of `tnc` there.
const MEANS: [(usize, u16); 2] = [(65_536, 32), (24_576, 8)];

/// Runs of a system on a chip: the order of keys, and changes of a group.
const RUNS: [(Order, u32); 4] =
    [(Order::Random, 1), (Order::Random, GROUP), (Order::Clustered, 1), (Order::Ascending, 1)];

/// Works: the name, its run, and the phase of that.
const WORKS: [(&str, usize, usize); 6] = [
    ("insert, random, each durable", 0, 0),
    ("insert, random, groups of 64", 1, 0),
    ("insert, clustered, each durable", 2, 0),
    ("insert, ascending, each durable", 3, 0),
    ("lookup", 0, 1),
    ("scan of 100", 0, 2),
];

const fn records(quick: bool) -> u32 {
    if quick { 1_000 } else { 10_000 }
}

/// Runs of the comparison.
pub const fn runs() -> u64 {
    (CHIPS.len() * SYSTEMS.len() * RUNS.len()) as u64
}

/// The largest of some steps from `most` down that is accepted; 0 if none is.
fn largest(most: usize, accepts: impl Fn(usize) -> bool) -> usize {
    let step = (most / 256).max(1);
    (0..=most / step).rev().map(|steps| steps * step).find(|&size| accepts(size)).unwrap_or(0)
}

/// A setup that uses the RAM, and whether changes come in groups.
fn setup(maker: &dyn Maker, chip: usize, group: u32, records: u32) -> (Setup, bool) {
    let (profile, (ram, fanout)) = (CHIPS[chip].1, MEANS[chip]);
    let of = |options: Options, ram_bytes| Setup { profile, options, ram_bytes, layer: None };
    let fits = |setup: &Setup| {
        maker.ram_bytes(setup).is_ok_and(|bytes| bytes <= ram)
            && maker.refusal(setup, records).is_none()
    };
    let plain = Options::new(KEY_BYTES, VALUE_BYTES);
    let grouped = in_groups(plain, &profile, group);
    let is_grouped = group > 1 && maker.refusal(&of(grouped, None), records).is_none();
    let options = if is_grouped { grouped } else { plain };
    let keeps_nodes =
        systems::SYSTEMS.iter().any(|system| system.key == maker.key() && system.has_arena());
    if keeps_nodes {
        let with = |bytes| of(options.fanout(fanout).arena_bytes(bytes), None);
        return (with(largest(ram, |bytes| fits(&with(bytes)))), is_grouped);
    }
    let with = |pages| of(Options { read_cache: pages, ..options }, Some(ram));
    let most = ram / profile.geometry.page_bytes as usize;
    (with(largest(most, |pages| fits(&with(pages)))), is_grouped)
}

/// The comparison.
pub fn experiment(
    of: &Experiments,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Experiment, LabError> {
    let title = "Which system for which work: milliseconds of an operation, with the same RAM";
    let mut experiment = Experiment::of("which", title, Vec::new());
    experiment.is_wide = true;
    let records = records(of.scale.quick);
    let works: Result<Vec<_>, _> =
        RUNS.iter().map(|(order, _)| order.work(records, of.seed)).collect();
    let works = works?;
    for (chip, (name, profile)) in CHIPS.iter().enumerate() {
        let runs: Vec<_> = (0..SYSTEMS.len() * RUNS.len())
            .map(|at| (SYSTEMS[at / RUNS.len()], at % RUNS.len()))
            .collect();
        let done = parallel::each(&runs, |&(key, at)| {
            let (setup, is_grouped) = setup(system(key)?, chip, RUNS[at].1, records);
            let done = run(key, &setup, &works[at], &|_| ())?;
            progress(1);
            Ok((done, is_grouped))
        })?;
        let mut table: Vec<(&'static str, [f64; WORKS.len()])> = Vec::new();
        for (key, runs) in SYSTEMS.into_iter().zip(done.chunks(RUNS.len())) {
            match costs(runs) {
                Ok(costs) => table.push((key, costs)),
                Err(reason) => experiment.refusals.push(format!("{key}, {name}: {reason}")),
            }
            if !runs[1].1 && matches!(runs[1].0, SystemRun::Ran(_)) {
                experiment.notes.push(format!(
                    "{key}, {name}: it has no write buffer, so that each change of a group is durable."
                ));
            }
        }
        for &(key, ref costs) in &table {
            for ((metric, ..), &ms) in WORKS.iter().zip(costs) {
                experiment.rows.push(Row::alone(key, name, metric, ms, "ms"));
            }
        }
        for (at, (work, ..)) in WORKS.iter().enumerate() {
            experiment.notes.push(place(name, profile, work, &table, at));
        }
    }
    Ok(experiment)
}

/// Mean times of each work, or why there are none.
fn costs(runs: &[(SystemRun, bool)]) -> Result<[f64; WORKS.len()], String> {
    let costs: Result<Vec<&SystemCost>, String> = runs
        .iter()
        .map(|(run, _)| match run {
            SystemRun::Ran(cost) => Ok(cost),
            SystemRun::Refused(refusal) => Err(refusal.reason.clone()),
        })
        .collect();
    let costs = costs?;
    Ok(WORKS.map(|(_, run, phase)| costs[run].phases[phase].ms_mean))
}

/// The best system for a work, and the place of `tnc`.
fn place(
    name: &str,
    profile: &Profile,
    work: &str,
    table: &[(&str, [f64; WORKS.len()])],
    at: usize,
) -> String {
    let mut ranked: Vec<_> = table.iter().map(|(key, costs)| (costs[at], *key)).collect();
    ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
    let place = ranked.iter().position(|(_, key)| *key == "tnc");
    let ranking: Vec<_> = ranked.iter().map(|(ms, key)| format!("{key} {ms:.3}")).collect();
    let place = match place {
        Some(0) => "tnc is the best".into(),
        Some(place) => format!("tnc loses, its place is {} of {}", place + 1, ranked.len()),
        None => "tnc cannot run".into(),
    };
    format!("{name} ({}), {work}: {place}: {} ms.", profile.key, ranking.join(", "))
}
