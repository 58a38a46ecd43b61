//! `nandina trace`: what a block trace holds, and synthetic ones. It changes no existing file.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use nandina_lab::LabError;
use nandina_lab::block_trace::make::{self, Choice, RECIPES, Synthetic};
use nandina_lab::block_trace::{BlockTrace, Choices, FORMATS};
use nandina_lab::replay::{READINGS, Side, Stats, Unit};

use crate::output::{print, print_json, standard, written};
use crate::progress::Progress;
use crate::tables::{share, table};

#[derive(Subcommand)]
pub enum Trace {
    /// Prints a trace's requests, sizes and addresses, and the least runs that an address map needs
    Stats(TraceStats),
    /// Makes a synthetic trace that is fitted to a workload of the paper by Suh et al. (2014), as CSV
    Make(TraceMake),
}

impl Trace {
    pub fn run(&self) -> Result<(), LabError> {
        match self {
            Self::Stats(arguments) => arguments.run(),
            Self::Make(arguments) => arguments.run(),
        }
    }
}

#[derive(Args)]
pub struct TraceMake {
    /// The workload of the paper's Table 1
    #[arg(value_parser = RECIPES.iter().map(|recipe| recipe.key).collect::<Vec<_>>())]
    workload: String,
    /// Requests to make, the first ones of the whole trace [default: as many as in Table 1]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    requests: Option<u64>,
    /// GiB of the space, 16 to 1,024; only for spew [default: 16; of others Table 1's]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    space_gib: Option<u64>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to make, which must not exist [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl TraceMake {
    fn run(&self) -> Result<(), LabError> {
        let Self { requests, space_gib, seed, .. } = *self;
        let recipe = make::by_key(&self.workload)
            .ok_or_else(|| LabError(format!("there is no workload '{}'", self.workload)))?;
        let made = Synthetic::new(recipe, Choice { seed, requests, space_gib })?;
        let progress = Progress::of_requests(made.requests());
        let advance = |requests| progress.advance(requests);
        let result = match &self.output {
            Some(path) => make::save(made, path, &advance),
            None => {
                let to = std::io::BufWriter::new(standard()?);
                written(make::write(made, to, &advance))
            }
        };
        progress.finish();
        result
    }
}

#[derive(Args)]
pub struct TraceStats {
    #[command(flatten)]
    trace: Input,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A block trace, and how it is read.
#[derive(Args)]
pub struct Input {
    /// The block trace (docs/BLOCK-TRACES.md); may be compressed with gzip or zstd
    #[arg(value_name = "TRACE")]
    path: PathBuf,
    /// Format of the trace: cloudphysics, msr, spc, blkparse, fiu, disksim, ssdsim, fio or csv
    /// [default: the only one that its first lines fit]
    #[arg(long, value_parser = FORMATS.iter().map(|format| format.key).collect::<Vec<_>>())]
    #[arg(hide_possible_values = true)]
    format: Option<String>,
    /// Of a blkparse trace, the action whose lines are the requests: Q queued, I inserted, D sent to
    /// the drive, C completed
    /// [default: D]
    #[arg(long, value_parser = ["Q", "I", "D", "C"])]
    action: Option<String>,
    /// The only volume (disk, device or file) whose requests are used, as the trace calls it
    /// [default: all, one behind the other in one space]
    #[arg(long)]
    volume: Option<String>,
    /// Unit of the mapping: sector (512 bytes), page (4,096 bytes), or a power of two in bytes, 512
    /// to 1,048,576 [default: sector]
    #[arg(long, value_parser = unit)]
    unit: Option<Unit>,
}

/// Parses a unit of mappings.
fn unit(text: &str) -> Result<Unit, String> {
    match text {
        "sector" => Some(Unit::SECTOR),
        "page" => Some(Unit::PAGE),
        bytes => bytes.parse().ok().and_then(Unit::of),
    }
    .ok_or_else(|| "use sector, page, or a power of two in bytes, 512 to 1048576".to_owned())
}

impl Input {
    /// The unit that was chosen.
    pub const fn chosen_unit(&self) -> Option<Unit> {
        self.unit
    }

    /// The unit.
    pub fn unit(&self) -> Unit {
        self.unit.unwrap_or(Unit::SECTOR)
    }

    /// Opens the trace, with progress for `readings` readings of its file.
    pub fn open(&self, readings: u32) -> Result<(BlockTrace, Progress), LabError> {
        let action = self.action.as_ref().and_then(|action| action.chars().next()).unwrap_or('D');
        let (format, volume) = (self.format.clone(), self.volume.clone());
        let trace = BlockTrace::open(&self.path, Choices { format, action, volume })?;
        if self.action.is_some() && trace.format().key != "blkparse" {
            return Err(LabError(format!(
                "--action is for traces of blkparse, and {} is one of {}: leave it out",
                self.path.display(),
                trace.format().key
            )));
        }
        let progress = Progress::of_bytes(trace.file_bytes() * u64::from(readings));
        Ok((trace, progress))
    }
}

impl TraceStats {
    fn run(&self) -> Result<(), LabError> {
        let (trace, progress) = self.trace.open(READINGS)?;
        let stats = Stats::of(&trace, self.trace.unit(), &|bytes| progress.advance(bytes));
        progress.finish();
        let stats = stats?;
        if self.json { print_json(&stats) } else { print(&text(&stats)) }
    }
}

/// A number of bytes with the largest unit that keeps it at least 1.
pub fn bytes(bytes: f64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut size, mut at) = (bytes, 0);
    while size >= 1024.0 && at + 1 < units.len() {
        size /= 1024.0;
        at += 1;
    }
    if at == 0 { format!("{size:.0} {}", units[at]) } else { format!("{size:.1} {}", units[at]) }
}

fn text(stats: &Stats) -> String {
    let Stats { trace, format, account, .. } = stats;
    let mut all = table(&["requests", "number", "share", "mean size", "canonical extents"], 1);
    let every = account.requests;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let mut row = |name: &str, side: &Side| {
        all.add_row([
            name.to_string(),
            side.requests.to_string(),
            share(side.requests, every),
            or_dash(side.mean_bytes.map(bytes)),
            or_dash(side.canonical.map(|mean| format!("{mean:.2}"))),
        ]);
    };
    row("writes", &stats.writes);
    row("reads", &stats.reads);
    row("trims", &stats.trims);

    let mut sizes = table(&["size up to", "writes", "share", "reads", "share"], 1);
    for size in &stats.sizes {
        sizes.add_row([
            size.up_to.map_or("more".into(), |up_to| bytes(up_to as f64)),
            size.writes.to_string(),
            share(size.writes, stats.writes.requests),
            size.reads.to_string(),
            share(size.reads, stats.reads.requests),
        ]);
    }
    let mut addresses = table(&["address from", "writes", "share", "reads", "share"], 1);
    for address in &stats.addresses {
        addresses.add_row([
            bytes(address.from as f64),
            address.writes.to_string(),
            share(address.writes, stats.writes.requests),
            address.reads.to_string(),
            share(address.reads, stats.reads.requests),
        ]);
    }
    let content = match &stats.content {
        Some(content) => format!(
            "At the end {} units of {} bytes are written, in {} runs at least; {} extents were kept at once.",
            content.written_units, stats.unit_bytes, content.least_runs, content.most_extents
        ),
        None => "The space has more units than 32 bits can number, so runs are not counted: \
                 choose a larger --unit, or one --volume."
            .into(),
    };
    let seconds = stats.seconds.map_or(String::new(), |seconds| format!(", {seconds:.1} s"));
    let volumes: Vec<_> = account.volumes.iter().map(|volume| &volume.name[..]).collect();
    let volumes = match volumes[..] {
        [""] => String::new(),
        [one] => format!(" in volume {one}"),
        _ => format!(" in {} volumes ({})", volumes.len(), volumes.join("; ")),
    };
    format!(
        "{trace} ({format}): address space {}{volumes}{seconds}\n{account}\n{all}\n\n{content}\n\n\
         Request sizes\n{sizes}\n\nRequest addresses\n{addresses}",
        bytes(stats.address_space_bytes as f64)
    )
}
