//! `nandina plan`: the RAM and costs of an index on a chip, before there is one.
//!
//! Nothing is simulated here; the conformance suite shows that the bounds hold on the simulator.

use clap::Args;
use nandina::flash::Profile;
use nandina::store::Visitor;
use nandina::{Cost, OpenError, Options, Plan, System};
use nandina_lab::LabError;
use nandina_lab::fit::{Misfit, misfit};
use nandina_lab::systems::visit;
use serde_json::{Value, json};

use crate::choose::{device, systems};
use crate::output::{print, print_json};
use crate::settings::Settings;
use crate::tables;
use crate::values::size;

#[derive(Args)]
pub struct Arguments {
    /// Chip; `nandina devices` lists them
    #[arg(long, default_value = "mlc")]
    device: String,
    /// Systems to plan, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    systems: Vec<String>,
    /// Blocks of the chip that the index has, 1 to 1,048,576 [default: all of the profile]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    blocks: Option<u32>,
    /// The most records that ever exist at once, 0 to 100,000,000; removing some later leaves the
    /// tree as high as it was
    // More could overflow the plan's numbers of nodes.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    records: u32,
    /// Bytes of a key, 1 to 64
    #[arg(long, default_value_t = 4, value_parser = size(1..=64))]
    key_size: usize,
    /// Bytes of a value, 0 to 65,535, as long as two records fit in a leaf
    #[arg(long, default_value_t = 4, value_parser = size(0..=65_535))]
    value_size: usize,
    /// Page buffers, what the system needs to 16 [default: what each system needs]
    #[arg(long, value_parser = size(1..=16))]
    page_buffers: Option<usize>,
    #[command(flatten)]
    settings: Settings,
    /// Read each page back after its program
    #[arg(long)]
    verify: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), LabError> {
    let mut profile = device(&arguments.device)?;
    if let Some(blocks) = arguments.blocks {
        profile = profile.with_blocks(blocks);
    }
    let systems = systems(&arguments.systems)?;
    let sizes = Options::new(arguments.key_size, arguments.value_size);
    let options = Options {
        page_buffers: arguments.page_buffers,
        verify: arguments.verify,
        ..arguments.settings.of(sizes, &systems)?
    };
    let plans: Vec<_> = systems
        .into_iter()
        .filter_map(|system| {
            Some((system, visit(system, OfSystem { profile, options, arguments })?))
        })
        .collect();
    if let [(system, Err(reason)), ..] = &plans[..]
        && plans.iter().all(|(_, plan)| plan.is_err())
    {
        return Err(LabError(format!("{system}: {reason}")));
    }
    if arguments.json {
        let plans: Vec<_> = plans.iter().map(|plan| as_json(&profile, plan)).collect();
        return print_json(&json!({
            "device": profile.key, "blocks": profile.geometry.blocks,
            "records": arguments.records, "plans": plans,
        }));
    }
    print(&table(&profile, arguments.records, &plans))
}

/// The plan for a system and why the records do not fit; or why it cannot run.
type Answer = Result<(Plan, Option<Misfit>), String>;

struct OfSystem<'a> {
    profile: Profile,
    options: Options,
    arguments: &'a Arguments,
}

impl Visitor for OfSystem<'_> {
    type Output = Answer;

    fn visit<S: System + 'static>(self) -> Self::Output {
        let capabilities = &self.profile.capabilities;
        let geometry = &self.profile.geometry;
        let records = self.arguments.records;
        let plan = nandina::plan::<S>(geometry, capabilities, &self.options, records).map_err(
            |error| match error {
                OpenError::Unsuited(missing) => missing.to_string(),
                error => error.to_string(),
            },
        )?;
        Ok((plan, misfit::<S>(&self.profile, &self.options, records, &plan)))
    }
}

/// Milliseconds of a cost, with every operation at a random place.
fn ms(profile: &Profile, cost: Cost) -> f64 {
    let timing = &profile.timing;
    let read = profile.page_read_ns() + timing.random_read_extra_ns;
    let program = profile.page_program_ns() + timing.random_program_extra_ns;
    (cost.reads * read + cost.programs * program + cost.erases * timing.erase_ns) as f64 / 1e6
}

/// The name of a call and its bound.
type Call = (&'static str, fn(&Plan) -> Cost);

const CALLS: [Call; 5] = [
    ("get", |plan| plan.get),
    ("change", |plan| plan.change),
    ("change after cuts", |plan| plan.change_after_cuts),
    ("open", |plan| plan.open),
    ("close", |plan| plan.close),
];

fn as_json(profile: &Profile, (system, plan): &(&str, Answer)) -> Value {
    match plan {
        Err(reason) => json!({ "system": system, "refused": reason }),
        Ok((plan, misfit)) => {
            let costs: serde_json::Map<_, _> = CALLS
                .iter()
                .map(|(call, cost)| {
                    let cost = cost(plan);
                    let value = json!({
                        "reads": cost.reads, "programs": cost.programs, "erases": cost.erases,
                        "ms": ms(profile, cost),
                    });
                    (call.replace(' ', "_"), value)
                })
                .collect();
            json!({
                "system": system, "ram_bytes": plan.ram_bytes, "height": plan.height,
                "valid_pages": plan.valid_pages, "limit_pages": plan.limit_pages,
                "fits": plan.fits, "reason": misfit.map(|misfit| misfit.to_string()),
                "gc_step_least": plan.gc_step_least, "at_most": costs,
            })
        }
    }
}

fn table(profile: &Profile, records: u32, plans: &[(&str, Answer)]) -> String {
    let mut sizes = tables::table(
        &[
            "system",
            "RAM bytes",
            "height",
            "valid pages",
            "allowed",
            "fits",
            "gc_step, least budget",
        ],
        1,
    );
    let mut costs = tables::table(&["call", "system", "reads", "programs", "erases", "ms"], 2);
    let mut refused = String::new();
    for (system, plan) in plans {
        match plan {
            Err(reason) => refused += &format!("\nCannot run: {system}: {reason}"),
            Ok((plan, misfit)) => {
                if let Some(misfit) = misfit {
                    refused += &format!("\nDoes not fit: {system}: {misfit}");
                }
                sizes.add_row([
                    system.to_string(),
                    plan.ram_bytes.to_string(),
                    plan.height.to_string(),
                    plan.valid_pages.to_string(),
                    plan.limit_pages.to_string(),
                    match misfit {
                        None => "yes",
                        Some(Misfit::TooHigh { .. }) => "NO, tree too high",
                        Some(Misfit::Full { .. }) => "NO, too many pages",
                    }
                    .to_string(),
                    plan.gc_step_least.to_string(),
                ]);
            }
        }
    }
    for (call, cost) in CALLS {
        for (system, plan) in plans {
            if let Ok((plan, _)) = plan {
                let cost = cost(plan);
                costs.add_row([
                    call.to_string(),
                    system.to_string(),
                    cost.reads.to_string(),
                    cost.programs.to_string(),
                    cost.erases.to_string(),
                    format!("{:.2}", ms(profile, cost)),
                ]);
            }
        }
    }
    format!(
        "{records} records on {}, {} blocks, nodes half full\n{sizes}\n\nThe most that one call costs on \
         a chip whose blocks do not fail\n{costs}{refused}\n\nRAM is the buffer; the index struct comes on \
         top. A change is an insert, a replacement or a remove with the garbage collection due, and with all \
         pending changes of a write buffer; after cuts: when cuts have used up the reserve. \
         Open: a mount after all that, with what it writes before the first change; after `close` it only reads, except that btree writes two pages. Time is modelled, each operation at a random place.",
        profile.key, profile.geometry.blocks
    )
}
