//! The experiments of the paper on extent mapping (Suh, Moon, Efrat, Kim, Lee).
//!
//! Tables 1 to 4, Figures 8 to 16, the lemmas of section 5, and a verdict on each claim. The
//! paper's traces are not at hand: synthetic ones that were fitted to its figures take their
//! place, so what was fitted is no evidence. Recorded traces are shown apart, never in a row of the
//! paper.
//!
//! Mappings run alone, in sectors of 512 bytes. Times are processor times of this machine, and only
//! ratios within one run are compared with the paper's.

mod cache;
mod claims;
mod counts;
mod distribution;
mod hybrid;
mod lemmas;
mod measured;
mod memory;
mod published;
mod recorded;
mod vet;
mod workloads;

use std::path::PathBuf;

use super::figure::{Bar, Content, Figure};
use super::{Experiment, Reproduction};
use crate::LabError;
use crate::block_trace::make::{Choice, Recipe, Synthetic, by_key};
use counts::Counts;
use lemmas::Lemmas;
use measured::{Measured, measure};
use published::TRACES;

pub use cache::alone;
pub use recorded::Recorded;

/// How much of the paper's work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Requests of a trace at most, for memory and for VET against EMT.
    whole: Option<u64>,
    /// The same for the many ways to build VET.
    ways: u64,
    /// Writes of Spew, and GiB of its spaces.
    spew: Option<u64>,
    spaces: &'static [u64],
    /// Requests of a run under cachegrind; `None` for no such run.
    cache: Option<u64>,
    quick: bool,
    words: &'static str,
}

impl Scale {
    /// As in the paper.
    pub const FULL: Self = Self {
        whole: None,
        ways: 1_500_000,
        spew: None,
        spaces: &[16, 32, 64, 128, 256, 512, 1024],
        cache: Some(200_000),
        quick: false,
        words: "full; the ways to build VET are compared on the first 1,500,000 requests of each trace, \
                caches on 200,000",
    };
    /// Takes seconds: the first requests of each trace, and no cachegrind.
    pub const QUICK: Self = Self {
        whole: Some(60_000),
        ways: 20_000,
        spew: Some(5_000),
        spaces: &[16, 128, 1024],
        cache: None,
        quick: true,
        words: "quick: the first 60,000 requests of each trace, 20,000 for the ways to build VET, 5,000 writes of Spew",
    };
}

impl Scale {
    /// Requests after which a map is still small.
    const fn small(self) -> u64 {
        self.ways / 30
    }
}

/// Mappings of the runs of whole traces.
const WHOLE: [&str; 3] = ["vet", "emt", "compact"];
/// The ways to build VET, and EMT beside them.
const WAYS: [&str; 9] = [
    "vet",
    "vet-lis",
    "vet-pointers",
    "vet-cuckoo",
    "vet-intrusive",
    "vet-hashbrown",
    "emt",
    "emt-btreemap",
    "emt-yfast",
];

/// What was counted and measured on one trace.
struct Case {
    recipe: &'static Recipe,
    counts: Counts,
    whole: Measured,
    ways: Measured,
    /// The first requests, after which the maps are still small.
    small: Measured,
}

/// What was measured on Spew in a space of so many GiB.
struct SpewCase {
    space_gib: u64,
    counts: Counts,
    whole: Measured,
}

/// The experiments to run.
pub struct Experiments {
    scale: Scale,
    seed: u64,
    recorded: Option<Recorded>,
    program: Option<PathBuf>,
}

impl Experiments {
    /// Prepares the work.
    ///
    /// `recorded` is where recorded block traces are, `program` this program itself, which
    /// valgrind runs.
    pub fn new(
        scale: Scale,
        seed: u64,
        recorded: Option<Recorded>,
        program: Option<PathBuf>,
    ) -> Self {
        Self { scale, seed, recorded, program }
    }

    /// Requests of all runs on synthetic traces.
    pub fn total(&self) -> u64 {
        let scale = self.scale;
        let of = |recipe: &Recipe| {
            let all = recipe.requests();
            let whole = all.min(scale.whole.unwrap_or(all));
            let ways = all.min(scale.ways);
            let mappings = [WHOLE.len() as u64, WAYS.len() as u64];
            whole * (1 + mappings[0]) + ways * (1 + mappings[1]) + scale.small() * mappings[0]
        };
        let traces: u64 = TRACES.into_iter().filter_map(by_key).map(of).sum();
        let spew = scale.spew.unwrap_or(50_000) * scale.spaces.len() as u64;
        traces + spew * (1 + WHOLE.len() as u64) + cache::operations(scale.cache)
    }

    fn made(
        &self,
        trace: &str,
        requests: Option<u64>,
        space_gib: Option<u64>,
    ) -> Result<Synthetic, LabError> {
        let recipe = by_key(trace).ok_or_else(|| LabError(format!("no workload '{trace}'")))?;
        let requests = requests.map(|most| most.min(recipe.requests()));
        Synthetic::new(recipe, Choice { seed: self.seed, requests, space_gib })
    }

    fn case(&self, trace: &str, progress: &dyn Fn(u64)) -> Result<Case, LabError> {
        let whole = || self.made(trace, self.scale.whole, None);
        let counts = Counts::of(whole()?, progress);
        let measured = measure(whole()?, &WHOLE, counts.most, progress)?;
        let ways = || self.made(trace, Some(self.scale.ways), None);
        let most = Counts::of(ways()?, progress).most;
        let ways = measure(ways()?, &WAYS, most, progress)?;
        let small = self.made(trace, Some(self.scale.small()), None)?;
        let small = measure(small, &WHOLE, most, progress)?;
        Ok(Case { recipe: whole()?.recipe(), counts, whole: measured, ways, small })
    }

    fn spew(&self, space_gib: u64, progress: &dyn Fn(u64)) -> Result<SpewCase, LabError> {
        let made = || self.made("spew", self.scale.spew, Some(space_gib));
        let counts = Counts::of(made()?, progress);
        let whole = measure(made()?, &WHOLE, counts.most, progress)?;
        Ok(SpewCase { space_gib, counts, whole })
    }

    /// Runs everything. `progress` is called with the number of requests done since its last call.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Reproduction, LabError> {
        // A folder that cannot be read is reported before the minutes of work.
        let recorded = recorded::experiment(self.recorded.as_ref())?;
        let cases = TRACES
            .into_iter()
            .map(|trace| self.case(trace, progress))
            .collect::<Result<Vec<_>, _>>()?;
        let spaces = self.scale.spaces.iter();
        let spew =
            spaces.map(|&space| self.spew(space, progress)).collect::<Result<Vec<_>, _>>()?;
        let lemmas = Lemmas::count(self.seed)?;
        let (figure_13, pointer_free) =
            cache::figure_13(self.program.as_deref(), self.scale.cache, self.seed, progress)?;

        let mut experiments = vec![workloads::table_1(&cases, &spew), workloads::figure_8(&cases)];
        experiments.push(workloads::figure_9(&cases));
        experiments.push(vet::table_2(&cases)?);
        experiments.push(vet::table_3(&cases)?);
        for (at, figure) in ["figure10", "figure11"].into_iter().enumerate() {
            let requests = self.scale.ways.min(distribution::REQUESTS);
            let trace = |key: &str| self.made(key, Some(requests), None);
            experiments.push(distribution::experiment(figure, at, &cases, trace)?);
        }
        experiments.push(workloads::figure_12(&cases));
        experiments.push(vet::table_4(&cases)?);
        experiments.push(figure_13);
        experiments.push(vet::figure_14(&cases)?);
        experiments.push(memory::figure_15(&cases)?);
        experiments.push(memory::figure_16(&spew)?);
        experiments.iter_mut().for_each(label_as_synthetic);
        experiments.push(lemmas.experiment());
        experiments.extend(recorded);
        let quick = self.scale.quick;
        experiments.push(claims::experiment(&cases, &spew, &lemmas, pointer_free, quick)?);
        if self.scale.quick {
            // Fewer requests leave less behind: only orders and trends are meaningful.
            for row in experiments.iter_mut().flat_map(|experiment| &mut experiment.rows) {
                (row.ratio, row.verdict) = (None, None);
            }
        }
        Ok(Reproduction {
            paper: "extents",
            seed: self.seed,
            seeds: 1,
            quick: self.scale.quick,
            scale: self.scale.words,
            experiments,
        })
    }
}

/// Says of each row and drawing that its trace is synthetic.
fn label_as_synthetic(experiment: &mut Experiment) {
    for row in &mut experiment.rows {
        row.config += ", synthetic";
    }
    for figure in &mut experiment.figures {
        figure.title += " (synthetic traces)";
    }
}

/// A figure of bars, each of the named parts.
fn bars(id: &str, title: &str, x: &str, y: &str, parts: &[&str], bars: Vec<Bar>) -> Figure {
    let parts = parts.iter().map(|part| (*part).to_string()).collect();
    let content = Content::Bars { parts, bars };
    Figure { id: id.into(), title: title.into(), x: x.into(), y: y.into(), content }
}
