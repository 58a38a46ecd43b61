//! `nandina torture`: power cuts and faults of chips, and their effect on each system.
//!
//! Exit code 1 if an index did not survive a case; each such case is named, and the name replays
//! it. A replayed case whose cut is never reached also has exit code 1.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use nandina::flash::profile;
use nandina::store::Description;
use nandina_lab::LabError;
use nandina_lab::layer::{Layer, name_of};
use nandina_lab::systems::{SYSTEMS, runs_over_ftls, usual_layer};
use nandina_lab::torture::{
    CutRun, Hardships, Mode, Outcome, PAGES, Report, Torture, replay, torture,
};
use serde_json::json;

use crate::choose::{HybridSettings, chosen, layers};
use crate::output::{print, print_json};
use crate::progress::Progress;
use crate::tables;

#[derive(Args)]
pub struct Arguments {
    /// Mode: no cut; one cut at every chip operation; a second one at every operation of the
    /// recovery; or random faults of every kind
    #[arg(long, value_enum, default_value = "exhaustive")]
    mode: ModeArgument,
    /// Systems to torture, separated by commas; in a swarm also pages, the logical pages of the
    /// FTLs themselves; ipl, dipl, bftl, la and mb are none of the default [default: all systems
    /// that can]
    #[arg(long, value_delimiter = ',')]
    systems: Vec<String>,
    /// FTLs between the systems and the chip, separated by commas, such as ftl:page, ftl:compact,
    /// ftl:fast, 'ftl:fast with 2 buffer blocks'; none is the chip itself [default: none, and where
    /// it is no swarm, with one cut, wpcb over the latter, also as printed, and, if no systems are
    /// chosen, btree over ftl:compact and ftl:fast]
    #[arg(long, value_name = "LAYERS", value_delimiter = ',')]
    over: Vec<String>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Changes and lookups of each system in a swarm, 1 to 10,000,000,000, in whole episodes of
    /// about 2,000 [default: 200,000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    operations: Option<u64>,
    /// A larger run, higher trees and more collections for the modes that cut at every operation;
    /// takes minutes to hours
    #[arg(long)]
    large: bool,
    /// The fewest possible page buffers, and pages moved alone
    #[arg(long)]
    lean: bool,
    /// Blocks from one checkpoint to the next, 1 to 12, in the modes that cut at every operation; a
    /// swarm chooses itself [default: no checkpoints]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=12))]
    checkpoints: Option<u32>,
    /// Torn pages are unstable: each read of one may find something else
    #[arg(long)]
    unstable: bool,
    /// Use a write buffer, in the modes that cut at every operation
    #[arg(long)]
    buffered: bool,
    /// Each opening has other options, as far as they are not stored on the medium
    #[arg(long)]
    changed: bool,
    /// The chip is formatted over the index now and then
    #[arg(long)]
    formats: bool,
    /// The device gives operations up and keeps power; in the modes that cut at every operation,
    /// instead of the first cut
    #[arg(long)]
    errors: bool,
    /// Half of the chips of a swarm have pages of 160 to 316 bytes: nodes have few records, trees
    /// become high, and some checkpoints take several blocks. In the modes that cut at every
    /// operation, which need --checkpoints then, pages of 256 bytes, on a chip on which a checkpoint
    /// takes two blocks
    #[arg(long)]
    narrow: bool,
    /// Keep the values of tnc in the journal, in the modes that cut at every operation
    #[arg(long)]
    journal_values: bool,
    /// A chip that can program a part of a page again, like NOR flash, in the modes that cut at
    /// every operation: tnc programs its changes one by one there
    #[arg(long, conflicts_with_all = ["buffered", "narrow"])]
    overwrite: bool,
    /// Replay one case by the name that a failing run printed, and nothing else
    #[arg(long, value_name = "NAME", conflicts_with_all = [
        "mode", "systems", "over", "seed", "operations", "large", "lean", "checkpoints", "unstable", "buffered", "changed",
        "formats", "errors", "narrow", "journal_values", "overwrite",
    ])]
    case: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeArgument {
    None,
    Linear,
    Exhaustive,
    Swarm,
}

/// The layer that is none: the chip itself.
const NONE: &str = "none";

/// Systems over FTLs that are tortured where none is chosen.
const OVER_FTLS: [&str; 4] = [
    "btree over ftl:compact",
    "btree over ftl:fast",
    "wpcb over ftl:fast with 2 buffer blocks as printed",
    "wpcb over ftl:fast with 2 buffer blocks",
];

pub fn run(arguments: &Arguments) -> Result<ExitCode, LabError> {
    if let Some(name) = &arguments.case {
        return run_case(name, arguments.json);
    }
    let swarm = matches!(arguments.mode, ModeArgument::Swarm);
    if !swarm && arguments.operations.is_some() {
        return Err(LabError("--operations is for a swarm: add --mode swarm".into()));
    }
    let &Arguments { large, lean, narrow, checkpoints, overwrite, .. } = arguments;
    let hardships = Hardships {
        unstable: arguments.unstable,
        buffered: arguments.buffered,
        changed: arguments.changed,
        formats: arguments.formats,
        errors: arguments.errors,
        narrow,
        journal_values: arguments.journal_values,
        overwrite,
    };
    let is_for_cuts =
        hardships.buffered || hardships.journal_values || overwrite || checkpoints.is_some();
    if swarm && (large || lean || is_for_cuts) {
        let what = "--large, --lean, --buffered, --journal-values, --overwrite and --checkpoints are for cuts, and a \
                    swarm chooses itself: leave them out";
        return Err(LabError(what.into()));
    }
    let over = if arguments.over.is_empty() { &[NONE.to_string()][..] } else { &arguments.over };
    let layers = layers(over, HybridSettings::default(), None)?;
    let mut subjects = subjects(&arguments.systems, &layers)?;
    if arguments.systems.is_empty() {
        subjects.retain(|(system, layer)| layer.is_none() || runs_over_ftls(system));
    }
    if narrow && subjects.iter().any(|(_, layer)| layer.is_some()) {
        let what = "--narrow is for a chip without an FTL: leave --over, ipl and dipl out";
        return Err(LabError(what.into()));
    }
    let keeps_nodes =
        |key: &&str| SYSTEMS.iter().any(|system| system.key == *key && system.has_arena());
    if hardships.journal_values && !subjects.iter().all(|(key, _)| keeps_nodes(key)) {
        let what = "--journal-values is for tnc, whose leaves can point to values in its journal: add \
                    --systems tnc";
        return Err(LabError(what.into()));
    }
    // With a journal, a chip of small pages either has no room for the commit of each mount, or
    // collects nothing.
    if narrow && !swarm && arguments.systems.iter().any(|name| keeps_nodes(&name.as_str())) {
        let what = "--narrow is not for tnc where every operation is cut: on so small a chip of narrow pages its \
                    journal leaves nothing to collect: leave --narrow out, or add --mode swarm";
        return Err(LabError(what.into()));
    }
    let stores = |(key, _): &(&str, _)| {
        let stores = |system: &Description| system.checkpoints && system.collects();
        SYSTEMS.iter().any(|system| system.key == *key && stores(system))
    };
    if narrow && !swarm && (checkpoints.is_none() || !subjects.iter().all(stores)) {
        let what = "--narrow is for a swarm, or for systems that write checkpoints: add --mode swarm, or \
                    --checkpoints 1 --systems wandering,mu,vm,vm-ow,rosette";
        return Err(LabError(what.into()));
    }
    if overwrite && subjects.iter().any(|(key, layer)| layer.is_some() || !keeps_nodes(key)) {
        let what = "--overwrite is for tnc, which programs changes one by one on such a chip (vm-ow and \
                    rosette-nor always have one): add --systems tnc";
        return Err(LabError(what.into()));
    }
    let what = Torture {
        mode: match arguments.mode {
            ModeArgument::None => Mode::None,
            ModeArgument::Linear => Mode::Linear,
            ModeArgument::Exhaustive => Mode::Exhaustive,
            ModeArgument::Swarm => Mode::Swarm,
        },
        seed: arguments.seed,
        run: CutRun {
            lean,
            checkpoints,
            hardships,
            ..match (large, narrow && !swarm) {
                (true, _) => CutRun::LARGE,
                (false, true) => CutRun::NARROW,
                (false, false) if overwrite => CutRun::OVERWRITE,
                (false, false) => CutRun::SMALL,
            }
        },
        operations: arguments.operations.unwrap_or(200_000),
    };
    let mut campaigns: Vec<_> =
        subjects.iter().map(|&(system, layer)| (name_of(system, layer), what)).collect();
    if arguments.over.is_empty() && !swarm && !narrow {
        // A second cut takes an hour over an FTL, whose every mount reads all pages.
        let mode = if what.mode == Mode::None { Mode::None } else { Mode::Linear };
        let what = Torture { mode, ..what };
        let all = arguments.systems.is_empty();
        // A system that usually has an FTL below it is tortured above one, too.
        let has_usual = |key: &str| usual_layer(key, &profile::SLC).is_some();
        let is_named = |name: &str| {
            let mut named = subjects.iter().filter(|(key, _)| has_usual(key));
            named.any(|(key, _)| name.starts_with(key))
        };
        let over = OVER_FTLS.iter().filter(|name| all || is_named(name));
        campaigns.extend(over.map(|name| (name.to_string(), what)));
    }
    let progress = Progress::new(1000 * campaigns.len() as u64);
    let reports: Result<Vec<Report>, LabError> = campaigns
        .iter()
        .map(|(name, what)| torture(name, *what, &|parts| progress.advance(parts)))
        .collect();
    progress.finish();
    let reports = reports?;
    if arguments.json {
        print_json(&reports)?;
    } else {
        print(&table(&reports))?;
    }
    let survived = reports.iter().all(|report| report.violations.is_empty());
    Ok(if survived { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Systems by name above each layer, and the logical pages of FTLs.
fn subjects(
    names: &[String],
    layers: &[Option<Layer>],
) -> Result<Vec<(&'static str, Option<Layer>)>, LabError> {
    let (pages, others): (Vec<_>, Vec<_>) = names.iter().cloned().partition(|name| name == PAGES);
    let mut all =
        if pages.is_empty() || !others.is_empty() { chosen(&others, layers)? } else { vec![] };
    if !pages.is_empty() {
        all.extend(layers.iter().map(|&layer| (PAGES, layer)));
    }
    Ok(all)
}

fn run_case(name: &str, json: bool) -> Result<ExitCode, LabError> {
    let outcome = replay(name)?;
    let (key, what) = match &outcome {
        Outcome::Survived => ("survived", None),
        Outcome::NotReached => {
            let what = "a cut was never reached: the run ends before it, so the case shows nothing";
            ("not reached", Some(what))
        }
        Outcome::Violated(what) => ("violated", Some(what.as_str())),
    };
    if json {
        print_json(&json!({ "case": name, "outcome": key, "what": what }))?;
    } else {
        print(&format!("{name}: {}", what.unwrap_or(key)))?;
    }
    Ok(ExitCode::from(u8::from(outcome != Outcome::Survived)))
}

fn table(reports: &[Report]) -> String {
    let header = [
        "system",
        "mode",
        "seed",
        "runs",
        "operations",
        "chip operations",
        "cuts",
        "torn",
        "other faults",
        "violations",
    ];
    let mut table = tables::table(&header, 2);
    for report in reports {
        table.add_row([
            report.system.to_string(),
            report.mode.key().to_string(),
            report.seed.to_string(),
            report.runs.to_string(),
            report.operations.to_string(),
            report.chip_operations.to_string(),
            report.cuts.to_string(),
            report.torn.to_string(),
            report.faults.to_string(),
            report.violations.len().to_string(),
        ]);
    }
    let mut text = table.to_string();
    for report in reports {
        let met = report.met.all().into_iter().filter(|&(_, count)| count > 0);
        let met: Vec<_> = met.map(|(event, count)| format!("{event}: {count}")).collect();
        if !met.is_empty() {
            text += &format!("\n{} met {}", report.system, met.join(", "));
        }
    }
    for violation in reports.iter().flat_map(|report| &report.violations) {
        text += &format!(
            "\n{}\n  replay it with: nandina torture --case '{}'",
            violation.what, violation.case
        );
    }
    text
}
