//! `nandina replay`: what each address mapping costs on a block trace, alone or in an FTL.

use clap::{Args, ValueEnum};
use nandina::GcPolicy;
use nandina_lab::LabError;
use nandina_lab::block_trace::Refused;
use nandina_lab::layer::HYBRIDS;
use nandina_lab::replay::{
    DeviceReport, DeviceSetup, LeftOut, Report, Setup, mappings_on_chip, readings,
    readings_on_chip, replay, replay_on_chip,
};

use crate::choose::{HybridSettings, device, layers};
use crate::output::{print, print_json};
use crate::tables::table;
use crate::trace::{Input, bytes};
use crate::values::victims;

#[derive(Args)]
pub struct Replay {
    #[command(flatten)]
    trace: Input,
    /// Translation layer on a simulated chip: page, with the mappings, or a hybrid one, block, bast
    /// or fast, which has its own maps; with none the mappings run alone [default: none, or the
    /// hybrid one that --map names]
    #[arg(long, value_parser = ["none", "page", "block", "bast", "fast"])]
    ftl: Option<String>,
    #[command(flatten)]
    hybrid: HybridSettings,
    /// With an FTL: the chip; its number of blocks follows from the space. `nandina devices`
    /// lists them [default: mlc]
    #[arg(long)]
    device: Option<String>,
    /// With an FTL: how many such chips, 1 to 32, which pages are striped over; of NAND chips at
    /// most 12, because blocks go bad [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=32))]
    chips: Option<u32>,
    /// With an FTL: spare pages in per cent of the logical ones, 0 to 1,000; more if the FTL
    /// needs more [default: 7]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1000))]
    op: Option<u32>,
    /// Mappings to replay on, separated by commas, besides page and page-2; `nandina mappings` lists
    /// them; or block, bast or fast, as by --ftl [default: all]
    #[arg(long, value_name = "MAPPINGS", value_delimiter = ',')]
    map: Vec<String>,
    /// Bytes of the logical space; requests behind it are refused [default: what the trace names]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 60))]
    space: Option<u64>,
    /// With an FTL: only pages that the trace reads or writes have a place on the chip, moved
    /// together; else most of a large space stays free, and nothing is collected
    #[arg(long)]
    footprint: bool,
    /// With --ftl page: garbage collection moves pages in the order of their logical numbers, for a
    /// read more each
    #[arg(long)]
    sort_moves: bool,
    /// With --ftl page: how garbage collection chooses a block: fewest (valid pages), cost-benefit,
    /// or sampled:N, the best of N that are drawn at random [default: fewest]
    #[arg(long, value_parser = victims)]
    victims: Option<GcPolicy>,
    /// With --ftl page: what trims are; a cut may undo volatile ones, which programs less [default:
    /// durable]
    #[arg(long)]
    trims: Option<Trims>,
    /// How often the trace is replayed, 1 to 1,000
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    passes: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the trims of a trace are.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Trims {
    Durable,
    Volatile,
}

impl Replay {
    pub fn run(&self) -> Result<(), LabError> {
        // A hybrid FTL is its map: `--map fast` chooses it as well.
        let hybrid = match &self.map[..] {
            [map] if HYBRIDS.iter().any(|(name, ..)| name == map) => Some(&map[..]),
            _ => None,
        };
        match (self.ftl.as_deref(), hybrid) {
            (ftl, Some(map)) if ftl.is_none_or(|ftl| ftl == map) => self.on_chip(map, &[]),
            (None | Some("none"), _) => self.alone(),
            (Some(ftl), _) => self.on_chip(ftl, &self.map),
        }
    }

    fn on_chip(&self, ftl: &str, maps: &[String]) -> Result<(), LabError> {
        if self.trace.chosen_unit().is_some() {
            return Err(LabError("--unit is for --ftl none: an FTL maps pages of its chip".into()));
        }
        let layer = format!("ftl:{ftl}");
        // Over-provisioning is set below, for page and hybrid FTLs alike.
        let layer = layers(&[layer], self.hybrid, None)?[0];
        let hybrid = layer.filter(|_| ftl != "page");
        if hybrid.is_some() && !maps.is_empty() {
            let what = "--map is for --ftl page: a hybrid FTL has maps of its own";
            return Err(LabError(what.into()));
        }
        if hybrid.is_some() && self.sort_moves {
            let what = "--sort-moves is for --ftl page: a hybrid FTL merges pages at their places";
            return Err(LabError(what.into()));
        }
        if hybrid.is_some() && self.victims.is_some() {
            let what = "--victims is for --ftl page: a hybrid FTL merges blocks in turn";
            return Err(LabError(what.into()));
        }
        if let Some(GcPolicy::Tracked(_)) = self.victims {
            return Err(LabError("--victims tracked:N is for indexes, not for an FTL".into()));
        }
        if hybrid.is_some() && self.trims == Some(Trims::Volatile) {
            let what = "--trims volatile is for --ftl page: trims of a hybrid FTL are durable";
            return Err(LabError(what.into()));
        }
        let setup = DeviceSetup {
            mappings: maps.to_vec(),
            hybrid,
            transit: self.hybrid.transit(),
            profile: device(self.device.as_deref().unwrap_or("mlc"))?,
            chips: self.chips.unwrap_or(1),
            over_provisioning: self.op.unwrap_or(7),
            space_bytes: self.space,
            footprint: self.footprint,
            sorts_moves: self.sort_moves,
            victims: self.victims.unwrap_or_default(),
            volatile_trims: self.trims == Some(Trims::Volatile),
            passes: self.passes,
        };
        let mappings = if hybrid.is_some() { 0 } else { mappings_on_chip(maps)?.len() };
        let (trace, progress) =
            self.trace.open(readings_on_chip(mappings, self.passes, self.footprint))?;
        let report = replay_on_chip(&trace, &setup, &|bytes| progress.advance(bytes));
        progress.finish();
        let report = report?;
        if self.json { print_json(&report) } else { print(&device_text(&report)) }
    }

    fn alone(&self) -> Result<(), LabError> {
        let is_chip_set = self.device.is_some() || self.chips.is_some() || self.op.is_some();
        if is_chip_set || self.hybrid.is_set() {
            let what = "--device, --chips, --op, --log-blocks and --transit are for an FTL: choose one by --ftl";
            return Err(LabError(what.into()));
        }
        if self.footprint || self.sort_moves || self.victims.is_some() || self.trims.is_some() {
            let what = "--footprint, --sort-moves, --victims and --trims are for an FTL: choose one by --ftl";
            return Err(LabError(what.into()));
        }
        let (trace, progress) = self.trace.open(readings(self.passes))?;
        let setup = Setup {
            mappings: self.map.clone(),
            unit: self.trace.unit(),
            space_bytes: self.space,
            passes: self.passes,
        };
        let report = replay(&trace, &setup, &|bytes| progress.advance(bytes));
        progress.finish();
        let report = report?;
        if self.json { print_json(&report) } else { print(&text(&report)) }
    }
}

/// A number with so many digits behind the point, or a dash.
fn digits(number: Option<f64>, digits: usize) -> String {
    number.map_or("-".into(), |number| format!("{number:.digits$}"))
}

fn left_out_text(left_out: &[LeftOut]) -> String {
    let line =
        |left_out: &LeftOut| format!("\nCannot run: {}: {}", left_out.mapping, left_out.reason);
    left_out.iter().map(line).collect()
}

/// Requests that were not replayed, by reason.
fn not_replayed_text(not_replayed: &[Refused]) -> String {
    let part = |refused: &Refused| format!(", {} {}", refused.requests, refused.reason);
    not_replayed.iter().map(part).collect()
}

fn device_text(report: &DeviceReport) -> String {
    let work = &report.device_work;
    let mut chip = table(&["on the chip", "pages or blocks", "for each page written"], 1);
    let each = |count: u64| {
        digits((work.host_writes > 0).then(|| count as f64 / work.host_writes as f64), 3)
    };
    for (name, count) in [
        ("pages written by requests", work.host_writes),
        ("of these, written in part", work.partial_writes),
        ("pages read by requests", work.host_reads),
        ("pages trimmed", work.host_trims),
        ("pages moved", work.moved),
        ("pages of the FTL's own", work.own),
        ("page reads", work.reads),
        ("page programs", work.programs),
        ("block erases", work.erases),
    ] {
        chip.add_row([name.to_string(), count.to_string(), each(count)]);
    }
    for (name, merges) in [
        ("switch merges", work.switch_merges),
        ("partial merges", work.partial_merges),
        ("full merges", work.full_merges),
    ] {
        if let Some(count) = merges {
            chip.add_row([name.to_string(), count.to_string(), each(count)]);
        }
    }
    let mut latency = table(&["modelled latency, µs", "mean", "p50", "p99", "p99.9", "max"], 1);
    for (name, of) in [("reads", work.read_latency), ("writes and trims", work.write_latency)] {
        let row = [of.mean_us, of.p50_us, of.p99_us, of.p999_us, of.max_us];
        let row = row.map(|us| format!("{us:.0}"));
        latency.add_row(std::iter::once(name.to_string()).chain(row));
    }
    let header = [
        "mapping",
        "entries",
        "bytes used",
        "reserved",
        "peak",
        "bytes/run",
        "bytes/page",
        "% of page",
        "% of page-2",
    ];
    let mut memory = table(&header, 1);
    let header = [
        "mapping",
        "probes/req.",
        "nodes/req.",
        "bytes moved/req.",
        "flash reads/req.",
        "flash writes/req.",
        "time/page",
        "requests/s",
        "pages/s",
    ];
    let mut times = table(&header, 1);
    for row in &report.mappings {
        memory.add_row([
            row.mapping.to_string(),
            row.entries.to_string(),
            row.bytes_used.to_string(),
            row.bytes_reserved.to_string(),
            row.bytes_peak.to_string(),
            digits(row.bytes_per_run, 2),
            digits(row.bytes_per_written_page, 3),
            format!("{:.2}", row.percent_of_page),
            digits(row.percent_of_page_2, 2),
        ]);
        times.add_row([
            row.mapping.to_string(),
            format!("{:.2}", row.probes_per_request),
            format!("{:.2}", row.nodes_per_request),
            format!("{:.1}", row.moved_per_request),
            format!("{:.3}", row.flash_reads_per_request),
            format!("{:.3}", row.flash_writes_per_request),
            format!("{:.2}", row.time_by_page),
            format!("{:.0}", row.requests_per_second),
            format!("{:.0}", row.pages_per_second),
        ]);
    }
    let DeviceReport { trace, format, account, device, blocks, pages_per_block, .. } = report;
    let chips =
        if report.chips == 1 { String::new() } else { format!("{} chips, each ", report.chips) };
    let overlap = match report.chips {
        1 => "",
        _ => {
            " Operations of a request overlap on different chips as if none waited for another: a lower bound."
        }
    };
    let not_replayed = not_replayed_text(&report.not_replayed);
    let mappings = match report.map_bytes {
        Some(_) => String::new(),
        None => format!(
            "Memory\n{memory}\n\nWork and time\n{times}{}\n\n\
             Every mapping saw the same chip operations. Flash reads and writes are of a mapping itself and not among \
             them. Times are processor time of this machine, the simulated chip included. ",
            left_out_text(&report.left_out),
        ),
    };
    let at_the_end = match (report.written_pages, report.least_runs) {
        (Some(pages), Some(runs)) => {
            let buffer = report.buffer_blocks.map_or(String::new(), |count| {
                format!(", behind a transit buffer of {count} blocks")
            });
            format!("At the end {pages} pages are written, in {runs} runs at least{buffer}")
        }
        _ => {
            let logs =
                report.log_blocks.map_or(String::new(), |count| format!(", {count} log blocks"));
            let map = report.map_bytes.unwrap_or(0);
            let share = report.map_percent_of_page.unwrap_or(0.0);
            format!("{}{logs}: maps of {map} bytes, {share:.1} % of a page map", report.ftl)
        }
    };
    let each_of = if report.map_bytes.is_some() { "" } else { " for each mapping" };
    format!(
        "{trace} ({format}): {account}\nReplayed {}: {} requests{each_of}{not_replayed}\n\
         {chips}{device}: {blocks} blocks of {pages_per_block} pages; {} logical pages of {} bytes ({}), {:.1} % spare\n\
         {at_the_end}\n\
         Write amplification {}; erases of a block: {:.2} on average, {} at most\n{chip}\n\n{latency}\n\n\
         {mappings}Erases of a block include that of the format. Latencies are those of chip operations alone: no \
         queue, no channels.{overlap}",
        times_text(report.passes),
        report.replayed,
        report.logical_pages,
        report.page_bytes,
        bytes(f64::from(report.logical_pages) * report.page_bytes as f64),
        report.over_provisioning,
        digits(work.write_amplification, 3),
        work.wear_mean,
        work.wear_most,
    )
}

/// How often a trace was replayed, in words.
fn times_text(passes: u32) -> String {
    if passes == 1 { "once".into() } else { format!("{passes} times") }
}

fn text(report: &Report) -> String {
    let header = [
        "mapping",
        "entries",
        "bytes used",
        "reserved",
        "peak",
        "bytes/run",
        "bytes/unit",
        "% of page",
        "% of page-2",
    ];
    let mut memory = table(&header, 1);
    let header = [
        "mapping",
        "probes/req.",
        "nodes/req.",
        "bytes moved/req.",
        "flash reads/req.",
        "flash writes/req.",
        "time/page",
        "refused",
    ];
    let mut work = table(&header, 1);
    for cost in &report.mappings {
        memory.add_row([
            cost.mapping.to_string(),
            cost.entries.to_string(),
            cost.bytes_used.to_string(),
            cost.bytes_reserved.to_string(),
            cost.bytes_peak.to_string(),
            digits(cost.bytes_per_run, 2),
            digits(cost.bytes_per_written_unit, 3),
            format!("{:.2}", cost.percent_of_page),
            digits(cost.percent_of_page_2, 2),
        ]);
        work.add_row([
            cost.mapping.to_string(),
            format!("{:.2}", cost.probes_per_request),
            format!("{:.2}", cost.nodes_per_request),
            format!("{:.1}", cost.moved_per_request),
            format!("{:.3}", cost.flash_reads_per_request),
            format!("{:.3}", cost.flash_writes_per_request),
            digits(cost.time_by_page, 2),
            cost.refused.to_string(),
        ]);
    }
    let Report { trace, format, account, unit_bytes, logical_units, physical_units, .. } = report;
    let left_out = left_out_text(&report.left_out);
    let not_replayed = not_replayed_text(&report.not_replayed);
    let passes = times_text(report.passes);
    format!(
        "{trace} ({format}): {account}\nReplayed {passes}: {} requests on each mapping{not_replayed}\n\
         Space of {logical_units} units of {unit_bytes} bytes ({}), {physical_units} physical units\n\
         At the end {} units are written, in {} runs at least\n{memory}\n\nWork of a request\n{work}{left_out}\n\n\
         Mappings alone, without a chip: physical units are given out in write order. Flash reads and writes \
         are pages that a mapping needs besides those of the host; mispredictions are reads. Times are of \
         this machine, by the time of page in the same run.",
        report.replayed,
        bytes(f64::from(*logical_units) * *unit_bytes as f64),
        report.written_units,
        report.least_runs,
    )
}
