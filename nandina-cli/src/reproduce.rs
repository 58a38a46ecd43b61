//! `nandina reproduce`: a paper's experiments, its figures beside ours, and drawings of them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use nandina_lab::LabError;
use nandina_lab::reproduce::{
    Claim, Experiment, Reproduction, extents, mean, mu_tree, rosette, tnc, vm_tree, wpcb,
};
use nandina_lab::workload::manifest;

use crate::drawing;
use crate::output::{print, print_json};
use crate::progress::Progress;
use crate::tables::table;

#[derive(Args)]
pub struct Reproduce {
    /// The paper
    #[arg(value_enum)]
    pub paper: Paper,
    /// A smaller run: a quarter of the records and less of the rest; about a minute of processor
    /// time for mu-tree, seconds for the others
    #[arg(long)]
    pub quick: bool,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Repeat everything with so many seeds, 1 to 100, the given one and those after it: each
    /// figure is the mean, of three and more without the lowest and the highest [default: 1; Figure
    /// 11 of wpcb then has five]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: Option<u64>,
    /// Folder for drawings of the figures, each as SVG and PNG; it is created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// For vmtree: a folder with the sensor series sea100K.bin and uwa500K_only_100K.bin of the
    /// folder `data` of EmbedDB (https://github.com/ubco-db/EmbedDB), which may be compressed with
    /// zstd [default: the parts that need them are left out]
    #[arg(long, value_name = "DIR")]
    pub sensors: Option<PathBuf>,
    /// For extents: a folder with recorded block traces (docs/BLOCK-TRACES.md), or with folders of
    /// them, which are shown apart from the paper's [default: synthetic traces only]
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// With --traces: the format of a file that more than one fits, by the file's name, as in
    /// small.trace.zst=ssdsim; several are separated by commas [default: the only one that fits]
    #[arg(long, value_name = "FILE=FORMAT", value_delimiter = ',')]
    pub trace_format: Vec<String>,
    /// For tnc: a list of a tree's files, as for `nandina workload kernel-compile` [default: a
    /// synthetic tree made by rule and seed]
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// What the program does when it runs itself under valgrind for Figure 13 of extents
    #[arg(long, hide = true)]
    pub alone: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Paper {
    /// μ-Tree (Kang et al., EMSOFT 2007)
    MuTree,
    /// VMTree (Ould-Khessal, Fazackerley and Lawrence)
    #[value(name = "vmtree")]
    VmTree,
    /// Extent mapping, VET and EMT (Suh et al., 2014)
    Extents,
    /// WPCB-tree (Ho and Park, 2018)
    Wpcb,
    /// TNC, the tree of UBIFS (Havasi, 2011), counted in index nodes
    Tnc,
    /// Nandina's own rosette, beside the figures of its prototype
    Rosette,
}

pub fn run(arguments: &Reproduce) -> Result<(), LabError> {
    if !matches!(arguments.paper, Paper::VmTree) && arguments.sensors.is_some() {
        return Err(LabError("--sensors is for vmtree: leave it out".into()));
    }
    if !matches!(arguments.paper, Paper::Extents) && arguments.traces.is_some() {
        return Err(LabError("--traces is for extents: leave it out".into()));
    }
    if arguments.traces.is_none() && !arguments.trace_format.is_empty() {
        return Err(LabError("--trace-format is for --traces: leave it out".into()));
    }
    if !matches!(arguments.paper, Paper::Tnc) && arguments.manifest.is_some() {
        return Err(LabError("--manifest is for tnc: leave it out".into()));
    }
    if let Some(folder) = arguments.sensors.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(LabError(format!("--sensors {}: there is no such folder", folder.display())));
    }
    if let (Paper::Extents, Some(word)) = (arguments.paper, &arguments.alone) {
        return print(&extents::alone(word)?.to_string());
    }
    // A folder that cannot be written is reported before the minutes of work.
    if let Some(folder) = &arguments.figures {
        drawing::prepare(folder)?;
    }
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.seeds.unwrap_or(1));
    let runs: Result<Vec<_>, LabError> = seeds.map(|seed| run_once(arguments, seed)).collect();
    let reproduction = mean(runs?)?;
    if let Some(folder) = &arguments.figures {
        let figures = reproduction.experiments.iter().flat_map(|experiment| &experiment.figures);
        figures.into_iter().try_for_each(|figure| drawing::draw(folder, figure))?;
    }
    if arguments.json {
        return print_json(&reproduction);
    }
    print(&text(&reproduction))?;
    match &arguments.figures {
        Some(folder) => print(&format!("Drawings: {}", folder.display())),
        None => Ok(()),
    }
}

fn run_once(arguments: &Reproduce, seed: u64) -> Result<Reproduction, LabError> {
    match arguments.paper {
        Paper::MuTree => mu_tree(arguments, seed),
        Paper::VmTree => vm_tree(arguments, seed),
        Paper::Extents => extents(arguments, seed),
        Paper::Wpcb => wpcb(arguments, seed),
        Paper::Tnc => tnc(arguments, seed),
        Paper::Rosette => rosette(arguments, seed),
    }
}

fn mu_tree(arguments: &Reproduce, seed: u64) -> Result<Reproduction, LabError> {
    use mu_tree::{Experiments, Scale};
    let scale = if arguments.quick { Scale::QUICK } else { Scale::FULL };
    let experiments = Experiments::new(scale, seed)?;
    shown(experiments.total(), |advance| experiments.run(advance))
}

fn vm_tree(arguments: &Reproduce, seed: u64) -> Result<Reproduction, LabError> {
    use vm_tree::{Experiments, Scale};
    let scale = if arguments.quick { Scale::QUICK } else { Scale::FULL };
    let experiments = Experiments::new(scale, seed, arguments.sensors.clone());
    shown(experiments.total(), |advance| experiments.run(advance))
}

fn extents(arguments: &Reproduce, seed: u64) -> Result<Reproduction, LabError> {
    use extents::{Experiments, Recorded, Scale};
    let scale = if arguments.quick { Scale::QUICK } else { Scale::FULL };
    let program = std::env::current_exe().ok();
    let formats = arguments.trace_format.iter().map(|chosen| match chosen.rsplit_once('=') {
        Some((file, format)) => Ok((file.to_owned(), format.to_owned())),
        None => Err(LabError(format!(
            "--trace-format {chosen}: expected the name of a file, '=' and a format"
        ))),
    });
    let formats = formats.collect::<Result<_, _>>()?;
    let recorded = arguments.traces.clone().map(|folder| Recorded { folder, formats });
    let experiments = Experiments::new(scale, seed, recorded, program);
    shown(experiments.total(), |advance| experiments.run(advance))
}

fn rosette(arguments: &Reproduce, seed: u64) -> Result<Reproduction, LabError> {
    use rosette::{Experiments, Scale};
    let scale = if arguments.quick { Scale::QUICK } else { Scale::FULL };
    let experiments = Experiments::new(scale, seed);
    shown(experiments.total(), |advance| experiments.run(advance))
}

fn wpcb(arguments: &Reproduce, seed: u64) -> Result<Reproduction, LabError> {
    use wpcb::{Experiments, Scale};
    let scale = if arguments.quick { Scale::QUICK } else { Scale::FULL };
    let scale = if arguments.seeds.is_some() { scale.once() } else { scale };
    let experiments = Experiments::new(scale, seed);
    shown(experiments.total(), |advance| experiments.run(advance))
}

fn tnc(arguments: &Reproduce, seed: u64) -> Result<Reproduction, LabError> {
    use tnc::{Experiments, Scale};
    let scale = if arguments.quick { Scale::QUICK } else { Scale::FULL };
    let list = arguments.manifest.as_deref().map(manifest::read).transpose()?;
    let experiments = Experiments::new(scale, seed, list);
    shown(experiments.total(), |advance| experiments.run(advance))
}

/// Runs experiments with a progress bar over their operations.
fn shown(
    operations: u64,
    run: impl FnOnce(&(dyn Fn(u64) + Sync)) -> Result<Reproduction, LabError>,
) -> Result<Reproduction, LabError> {
    let progress = Progress::new(operations);
    let result = run(&|operations| progress.advance(operations));
    progress.finish();
    result
}

/// The claims of a paper.
fn claims(claims: &[Claim]) -> String {
    let header = ["claim", "what is claimed", "what was measured", "shown by", "verdict"];
    let mut rows = table(&header, header.len());
    for Claim { id, claim, shown_by, measured, verdict } in claims {
        rows.add_row([id, claim, &measured[..], &shown_by[..], verdict]);
    }
    rows.to_string()
}

/// The figures of an experiment, one in a line, beside the paper's.
fn rows(experiment: &Experiment) -> String {
    let header = ["system", "configuration", "metric", "paper", "measured", "ratio", "verdict"];
    let mut rows = table(&header, 3);
    let or_none = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
    for row in &experiment.rows {
        let unit = if row.unit.is_empty() { String::new() } else { format!(" ({})", row.unit) };
        rows.add_row([
            row.system.to_string(),
            row.config.clone(),
            format!("{}{unit}", row.metric),
            or_none(row.paper),
            format!("{:.3}", row.measured),
            or_none(row.ratio),
            row.verdict.unwrap_or("-").to_string(),
        ]);
    }
    rows.to_string()
}

/// All figures of a system and a configuration in one line. Each has the same metrics.
fn wide(experiment: &Experiment) -> String {
    let lines = experiment
        .rows
        .chunk_by(|one, other| (one.system, &one.config) == (other.system, &other.config));
    let metrics = lines.clone().next().into_iter().flatten();
    let names: Vec<_> = metrics
        .map(|row| match row.unit {
            "" => row.metric.to_string(),
            unit => format!("{} ({unit})", row.metric),
        })
        .collect();
    let header: Vec<&str> =
        ["system", "configuration"].into_iter().chain(names.iter().map(|name| &name[..])).collect();
    let mut rows = table(&header, 2);
    for line in lines {
        let figures = line.iter().map(|row| match row.measured.fract() {
            0.0 => format!("{}", row.measured),
            _ => format!("{:.4}", row.measured),
        });
        let named = [line[0].system.to_string(), line[0].config.clone()];
        rows.add_row(named.into_iter().chain(figures));
    }
    rows.to_string()
}

fn text(reproduction: &Reproduction) -> String {
    let Reproduction { paper, scale, seed, seeds, .. } = reproduction;
    let mut text = format!("{paper}, {scale}, seed {seed}");
    if *seeds > 1 {
        text += &format!(
            " to {}: figures are means, of three and more without the lowest and the highest; notes \
             are those of seed {seed}",
            seed + seeds - 1
        );
    }
    for experiment in &reproduction.experiments {
        let rows = if experiment.is_wide { wide(experiment) } else { rows(experiment) };
        text += &format!("\n\n{} ({})", experiment.title, experiment.id);
        if experiment.claims.is_empty() {
            text += &format!("\n{rows}");
        } else {
            text += &format!("\n{}", claims(&experiment.claims));
        }
        for refusal in &experiment.refusals {
            text += &format!("\nnot run: {refusal}");
        }
        for note in &experiment.notes {
            text += &format!("\n{note}");
        }
        for (claim, holds) in &experiment.orderings {
            text += &format!("\n{}: {claim}", if *holds { "holds" } else { "DOES NOT HOLD" });
        }
    }
    text + if reproduction.quick {
        "\n\nA quick run: its trees and traces are smaller than the paper's, so only orders and trends count."
    } else {
        "\n\nWhat differs by more than a tenth is explained in docs/REPRODUCTION.md."
    }
}
