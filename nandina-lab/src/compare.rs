//! `compare`: the same work on several systems, side by side.

use nandina::{Eviction, GcPolicy, Options};
use serde::Serialize;

use crate::layer::{Layer, name_of};
use crate::run::{Refusal, Setup, SystemCost, SystemRun, refusal, run};
use crate::work::Work;
use crate::{LabError, parallel};

/// The result of `compare`, and its JSON form.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Key of the chip.
    pub device: &'static str,
    /// Seed of everything random; absent where the work is not random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Different records of the work, including those that are only looked up.
    pub records: u64,
    /// Description of the work.
    pub work: String,
    /// Settings that are not the default, in words; absent where all are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub settings: String,
    /// Each system that ran, in order.
    pub systems: Vec<SystemCost>,
    /// The systems that cannot run on this chip with these settings, and why.
    pub refused: Vec<Refusal>,
}

/// A system, and the FTL below it, where `None` is the chip itself.
pub type Chosen<'k> = (&'k str, Option<Layer>);

/// Runs `work` on each of `systems` above the FTL of the setup, two at a time.
pub fn run_all(
    systems: &[&str],
    setup: &Setup,
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<SystemRun>, LabError> {
    let chosen: Vec<Chosen<'_>> = systems.iter().map(|&system| (system, setup.layer)).collect();
    run_chosen(&chosen, setup, work, progress)
}

fn run_chosen(
    chosen: &[Chosen<'_>],
    setup: &Setup,
    work: &Work,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<SystemRun>, LabError> {
    parallel::each(chosen, |&(system, layer)| {
        run(system, &Setup { layer, ..*setup }, work, progress)
    })
}

/// Returns an error if none of `chosen` can hold `records` records of these sizes.
///
/// `sizes` are those of a key and of a value. The check comes before the work is made.
pub fn some_can_hold(
    chosen: &[Chosen<'_>],
    setup: &Setup,
    sizes: (usize, usize),
    records: u32,
) -> Result<(), LabError> {
    let mut refused = Vec::new();
    for &(system, layer) in chosen {
        match refusal(system, &Setup { layer, ..*setup }, sizes, records)? {
            Some(reason) => refused.push(format!("{}: {reason}", name_of(system, layer))),
            None => return Ok(()),
        }
    }
    Err(LabError(refused.join("; ")))
}

/// Runs `work` on each of `chosen`.
///
/// `described` is what the work is, and the seed of what is random in it.
pub fn compare(
    chosen: &[Chosen<'_>],
    setup: &Setup,
    work: &Work,
    described: (String, Option<u64>),
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Comparison, LabError> {
    let (mut ran, mut refused) = (Vec::new(), Vec::new());
    for run in run_chosen(chosen, setup, work, progress)? {
        match run {
            SystemRun::Ran(cost) => ran.push(cost),
            SystemRun::Refused(refusal) => refused.push(refusal),
        }
    }
    let (description, seed) = described;
    if ran.is_empty() {
        let reasons: Vec<_> = refused
            .iter()
            .map(|refusal| format!("{}: {}", refusal.name(), refusal.reason))
            .collect();
        return Err(LabError(reasons.join("; ")));
    }
    Ok(Comparison {
        device: setup.profile.key,
        seed,
        records: work.rows() as u64,
        work: description,
        settings: settings(&setup.options, work.idle_steps),
        systems: ran,
        refused,
    })
}

fn settings(options: &Options, idle_steps: bool) -> String {
    let Options { read_cache, write_cache, write_buffer, checkpoints, victims, .. } = *options;
    let mut settings = Vec::new();
    if read_cache + write_cache > 0 {
        settings.push(format!("caches of {read_cache} pages read and {write_cache} written"));
    }
    if write_buffer > 0 {
        let each =
            options.write_buffer_changes.map(|most| format!(", flushed after {most} changes"));
        let evicts = match options.eviction {
            Eviction::Ibsf => ", which writes the leaf of the oldest change",
            Eviction::Mb => ", which writes the leaf with the most changes",
            _ => "",
        };
        let each = each.unwrap_or_default();
        settings.push(format!("a write buffer of {write_buffer} pages{each}{evicts}"));
    }
    if options.rebalances {
        settings.push("removals that merge and rotate nodes".into());
    }
    if let Some(every) = checkpoints {
        settings.push(format!("a checkpoint every {every} blocks"));
    }
    let of_systems = [
        ("bytes for nodes of tnc", options.arena_bytes),
        ("children of a node of tnc", options.fanout.map(usize::from)),
        ("pages of a journal of tnc", options.journal_pages.map(|pages| pages as usize)),
        (
            "pages of a commit of tnc for each change",
            options.commit_step.map(|pages| pages as usize),
        ),
        (
            "per cent of the clean nodes of tnc leave at once",
            options.shrink_percent.map(usize::from),
        ),
        ("leaves of rosette", options.leaves.map(|leaves| leaves as usize)),
    ];
    if let Some(in_journal) = options.journal_values {
        let place = if in_journal { "the journal" } else { "its nodes" };
        settings.push(format!("the values of tnc in {place}"));
    }
    let given = |(what, most): (&str, Option<usize>)| most.map(|most| format!("{most} {what}"));
    settings.extend(of_systems.into_iter().filter_map(given));
    match victims {
        GcPolicy::Fewest => {}
        GcPolicy::CostBenefit => settings.push("victims by cost and benefit".into()),
        GcPolicy::Tracked(blocks) => settings.push(format!("victims of {blocks} tracked blocks")),
        GcPolicy::Sampled(draws) => settings.push(format!("victims of {draws} sampled blocks")),
        other => settings.push(format!("victims by {other:?}")),
    }
    if idle_steps {
        settings.push("an idle step after each change".into());
    }
    settings.join(", ")
}
