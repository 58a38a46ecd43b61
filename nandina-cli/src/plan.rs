//! `nandina plan`: the RAM and costs of an index on a chip, before there is one.
//!
//! Nothing is simulated here; the conformance suite shows that the bounds hold on the simulator.
//!
//! Above an FTL the costs are those of the chip below it, with collections, merges, conversions.

use clap::Args;
use nandina::flash::Profile;
use nandina::store::{Description, Visitor};
use nandina::{Cost, OpenError, Options, Plan, System};
use nandina_lab::LabError;
use nandina_lab::fit::{Misfit, lack, misfit};
use nandina_lab::layer::{CallCosts, Layer, Size, WriteCost};
use nandina_lab::rivals;
use nandina_lab::systems::{SYSTEMS, runs_over_ftls, stack, usual_layer, visit_any};
use serde_json::{Value, json};

use crate::choose::{HybridSettings, device, layers, with_rivals};
use crate::output::{print, print_json};
use crate::settings::Settings;
use crate::tables;
use crate::values::size;

#[derive(Args)]
pub struct Arguments {
    /// Chip; `nandina devices` lists them
    #[arg(long, default_value = "mlc")]
    device: String,
    /// Systems to plan, separated by commas; bftl, la and mb are no systems of the default; ipl
    /// or dipl, alone, is btree over ftl:ipl or ftl:dipl [default: all]
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
    /// Bytes of a value, 0 to 65,535, as long as two records fit in a leaf, or one in a page of a
    /// journal
    #[arg(long, default_value_t = 4, value_parser = size(0..=65_535))]
    value_size: usize,
    /// Page buffers, what the system needs to 16 [default: what each system needs]
    #[arg(long, value_parser = size(1..=16))]
    page_buffers: Option<usize>,
    #[command(flatten)]
    settings: Settings,
    /// FTL between the systems and the chip: ftl:page and the other mappings, ftl:block, ftl:bast,
    /// ftl:fast, ftl:ipl, ftl:dipl. For systems that replace pages in place, and others that are
    /// named [default: none; for wpcb alone ftl:fast with a transit buffer of up to 128 blocks]
    #[arg(long, value_name = "LAYER")]
    over: Option<String>,
    #[command(flatten)]
    hybrid: HybridSettings,
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
    let (systems, layer) = chosen(arguments, &profile)?;
    let below = layer.map(|layer| Below::new(layer, &profile)).transpose()?;
    let sizes = Options::new(arguments.key_size, arguments.value_size);
    let options = Options {
        page_buffers: arguments.page_buffers,
        verify: arguments.verify,
        ..arguments.settings.of(sizes, &systems)?
    };
    let device = below.as_ref().map_or(profile, |below| below.size.profile);
    let plans: Vec<_> = systems
        .into_iter()
        .filter_map(|system| {
            Some((system, visit_any(system, OfSystem { profile: device, options, arguments })?))
        })
        .collect();
    if let [(system, Err(reason)), ..] = &plans[..]
        && plans.iter().all(|(_, plan)| plan.is_err())
    {
        return Err(LabError(format!("{system}: {reason}")));
    }
    let below = below.as_ref();
    if arguments.json {
        let plans: Vec<_> = plans.iter().map(|plan| as_json(&profile, plan, below)).collect();
        let mut object = json!({
            "device": profile.key, "blocks": profile.geometry.blocks,
            "records": arguments.records, "plans": plans,
        });
        if let Some(below) = below {
            object["over"] = below.as_json(&profile);
        }
        return print_json(&object);
    }
    print(&table(&profile, arguments.records, &plans, below))
}

/// The systems that were chosen, and the FTL below them, if one was.
///
/// `ipl` and `dipl` run on an FTL of their own, and `wpcb` alone on the one that it usually has.
fn chosen(
    arguments: &Arguments,
    profile: &Profile,
) -> Result<(Vec<&'static str>, Option<Layer>), LabError> {
    let Arguments { systems: keys, over, hybrid, .. } = arguments;
    if let Some((name, (system, layer))) = keys.iter().find_map(|key| Some((key, stack(key)?))) {
        return if keys.len() > 1 || over.is_some() || hybrid.is_set() {
            let what =
                "has an FTL of its own: plan it alone, without --over, --log-blocks and --transit";
            Err(LabError(format!("{name} {what}")))
        } else {
            Ok((vec![system], Some(layer)))
        };
    }
    let systems = with_rivals(keys)?;
    if let (None, [system]) = (over, &systems[..])
        && let Some(layer) = usual_layer(system, profile)
    {
        return Ok((systems, Some(hybrid.of(layer, None)?)));
    }
    let Some(name) = over else {
        let what = "--log-blocks and --transit are for an FTL: choose one by --over";
        return if hybrid.is_set() { Err(LabError(what.into())) } else { Ok((systems, None)) };
    };
    let layer = layers(std::slice::from_ref(name), *hybrid, None)?[0];
    if layer.is_none() {
        return Ok((systems, None));
    }
    let known = SYSTEMS.iter().chain(rivals::SYSTEMS);
    let in_place: Vec<_> =
        known.filter(|system| system.replaces()).map(|system| system.key).collect();
    if keys.is_empty() {
        return Ok((systems.into_iter().filter(|key| in_place.contains(key)).collect(), layer));
    }
    match systems.iter().find(|key| !in_place.contains(key) && !runs_over_ftls(key)) {
        Some(other) => {
            Err(LabError(format!("--over is for systems that can run over an FTL, not {other}")))
        }
        None => Ok((systems, layer)),
    }
}

/// An FTL below the systems.
struct Below<'p> {
    layer: Layer,
    size: Size,
    profile: &'p Profile,
    write: WriteCost,
}

impl<'p> Below<'p> {
    fn new(layer: Layer, profile: &'p Profile) -> Result<Self, LabError> {
        let size = layer.size(profile).map_err(LabError)?;
        let write = layer.write_cost(profile, &size);
        Ok(Self { layer, size, profile, write })
    }

    /// What calls of a system cost below the FTL.
    fn call_costs(&self, system: &str) -> CallCosts<'p> {
        let known = SYSTEMS.iter().chain(rivals::SYSTEMS).find(|known| known.key == system);
        self.layer.call_costs(self.profile, &self.size, known.unwrap_or(&Description::EMPTY))
    }

    /// Bytes of RAM, with those of its map.
    const fn ram_bytes(&self) -> usize {
        self.size.ram_bytes + self.size.memory_bytes
    }

    /// What the write of a page costs at most: each part, and all.
    fn parts(&self) -> Vec<(&'static str, Cost)> {
        let WriteCost { page, conversion, maintenance, .. } = self.write;
        let mut parts = vec![("the page and what makes room for it", page)];
        if self.layer.buffer_blocks().is_some() {
            parts.push(("a conversion before it", conversion));
        }
        parts.push(("a block that is emptied beside it", maintenance));
        parts.push(("all", self.write.total()));
        if self.layer.buffer_blocks().is_some()
            && let Some(ahead) = self.write.ahead()
        {
            parts.push(("all, after idle steps", ahead));
        }
        parts
    }

    fn as_json(&self, profile: &Profile) -> Value {
        let part = |(what, cost): (&str, Cost)| {
            let mut object = cost_json(profile, cost);
            object["part"] = what.into();
            object
        };
        json!({
            "layer": self.layer.name(), "log_blocks": self.layer.log_blocks(),
            "logical_pages": self.size.logical_pages, "ram_bytes": self.ram_bytes(),
            "write_at_most": self.parts().into_iter().map(part).collect::<Vec<_>>(),
        })
    }

    fn text(&self, profile: &Profile) -> String {
        let mut costs = tables::table(&["write of a page", "reads", "programs", "erases", "ms"], 1);
        for (what, cost) in self.parts() {
            costs.add_row([
                what.to_string(),
                cost.reads.to_string(),
                cost.programs.to_string(),
                cost.erases.to_string(),
                format!("{:.2}", ms(profile, cost)),
            ]);
        }
        let logs = self.layer.log_blocks();
        let logs = logs.map_or(String::new(), |count| format!(", {count} log blocks"));
        format!(
            "{}{logs}: {} logical pages, {} bytes of RAM\n{costs}\n\nThe first write of a session \
             settles before that.\n\n",
            self.layer.name(),
            self.size.logical_pages,
            self.ram_bytes()
        )
    }
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
                OpenError::Unsuited(missing) => lack(missing),
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
    let ns = |count: u64, each: u64| count as f64 * each as f64;
    (ns(cost.reads, read) + ns(cost.programs, program) + ns(cost.erases, timing.erase_ns)) / 1e6
}

fn cost_json(profile: &Profile, cost: Cost) -> Value {
    json!({
        "reads": cost.reads, "programs": cost.programs, "erases": cost.erases,
        "ms": ms(profile, cost),
    })
}

/// The calls with a bound: above an FTL those without a mount, of which it has one of its own.
fn calls(below: Option<&Below<'_>>) -> &'static [Call] {
    if below.is_some() { &CALLS[..2] } else { &CALLS }
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

/// A change whose writes wait for no conversion, or few of them where it takes many.
const AFTER_IDLE_STEPS: &str = "change after idle steps";

fn as_json(profile: &Profile, (system, plan): &(&str, Answer), below: Option<&Below<'_>>) -> Value {
    match plan {
        Err(reason) => json!({ "system": system, "refused": reason }),
        Ok((plan, misfit)) => {
            let mut costs: serde_json::Map<_, _> = calls(below)
                .iter()
                .map(|(call, cost)| {
                    let cost =
                        below.map_or(cost(plan), |below| below.call_costs(system).of(cost(plan)));
                    (call.replace(' ', "_"), cost_json(profile, cost))
                })
                .collect();
            if let Some(ahead) =
                below.and_then(|below| below.call_costs(system).after_idle_steps(plan.change))
            {
                costs.insert(AFTER_IDLE_STEPS.replace(' ', "_"), cost_json(profile, ahead));
            }
            json!({
                "system": system, "ram_bytes": plan.ram_bytes, "height": plan.height,
                "valid_pages": plan.valid_pages, "limit_pages": plan.limit_pages,
                "fits": plan.fits, "reason": misfit.map(|misfit| misfit.to_string()),
                "gc_step_least": plan.gc_step_least, "at_most": costs,
            })
        }
    }
}

fn table(
    profile: &Profile,
    records: u32,
    plans: &[(&str, Answer)],
    below: Option<&Below<'_>>,
) -> String {
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
    let mut add = |call: &str, system: &str, cost: Cost| {
        costs.add_row([
            call.to_string(),
            system.to_string(),
            cost.reads.to_string(),
            cost.programs.to_string(),
            cost.erases.to_string(),
            format!("{:.2}", ms(profile, cost)),
        ]);
    };
    for (call, cost) in calls(below) {
        for (system, plan) in plans {
            if let Ok((plan, _)) = plan {
                add(
                    call,
                    system,
                    below.map_or(cost(plan), |below| below.call_costs(system).of(cost(plan))),
                );
            }
        }
    }
    for (system, plan) in plans {
        if let (Some(below), Ok((plan, _))) = (below, plan)
            && let Some(ahead) = below.call_costs(system).after_idle_steps(plan.change)
        {
            add(AFTER_IDLE_STEPS, system, ahead);
        }
    }
    let ftl = below.map_or(String::new(), |below| below.text(profile));
    let calls = match below {
        None => {
            " and with all pending changes of a write buffer; after cuts: when cuts have used up the \
             reserve. Open: a mount after all that, with what it writes before the first change; after \
             `close` it only reads, except that btree writes two pages."
        }
        Some(_) => {
            " with all pending changes of a write buffer, each of its pages at the most that the FTL \
             takes for one: no real work makes all of them wait."
        }
    };
    format!(
        "{ftl}{records} records on {}, {} blocks, nodes half full\n{sizes}\n\nThe most that one call costs on \
         a chip whose blocks do not fail\n{costs}{refused}\n\nRAM is the buffer; the index struct comes on \
         top. A change is an insert, a replacement or a remove with the garbage collection due,{calls} Time is \
         modelled, each operation at a random place.",
        profile.key, profile.geometry.blocks
    )
}
