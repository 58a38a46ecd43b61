//! `nandina replay`: what each address mapping costs on a block trace.

use clap::Args;
use nandina_lab::LabError;
use nandina_lab::replay::{Report, Setup, readings, replay};

use crate::output::{print, print_json};
use crate::tables::table;
use crate::trace::{Input, bytes};

#[derive(Args)]
pub struct Replay {
    #[command(flatten)]
    trace: Input,
    /// Translation layer below the mappings; with none they run alone, without a chip
    #[arg(long, default_value = "none", value_parser = ["none"])]
    ftl: String,
    /// Mappings to replay on, separated by commas, besides page and page-2; `nandina mappings` lists
    /// them [default: all]
    #[arg(long, value_name = "MAPPINGS", value_delimiter = ',')]
    map: Vec<String>,
    /// Bytes of the logical space; requests behind it are refused [default: what the trace names]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 60))]
    space: Option<u64>,
    /// How often the trace is replayed, 1 to 1,000
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    passes: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Replay {
    pub fn run(&self) -> Result<(), LabError> {
        let (trace, progress) = self.trace.open(readings(self.passes))?;
        let setup = Setup {
            mappings: self.map.clone(),
            unit: self.trace.unit,
            space_bytes: self.space,
            passes: self.passes,
        };
        let report = replay(&trace, &setup, &|bytes| progress.advance(bytes));
        progress.finish();
        let report = report?;
        if self.json { print_json(&report) } else { print(&text(&report)) }
    }
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
    let digits = |number: Option<f64>, digits: usize| {
        number.map_or("-".into(), |number| format!("{number:.digits$}"))
    };
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
    let left_out: String = report
        .left_out
        .iter()
        .map(|left_out| format!("\nCannot run: {}: {}", left_out.mapping, left_out.reason))
        .collect();
    let not_replayed: String = report
        .not_replayed
        .iter()
        .map(|refused| format!(", {} {}", refused.requests, refused.reason))
        .collect();
    let passes =
        if report.passes == 1 { "once".into() } else { format!("{} times", report.passes) };
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
