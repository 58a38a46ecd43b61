//! Runs the commands: passes arguments to the lab and its results to the screen.

use std::process::ExitCode;

use nandina::flash::profile;
use nandina_lab::LabError;
use nandina_lab::replay::{Entry, MAPPINGS, PAPER};
use nandina_lab::systems::{Listed, listed};
use serde_json::json;

use crate::arguments::{Arguments, Command};
use crate::output::{print, print_json};
use crate::{plan, reproduce, tables, torture};

pub fn run(arguments: &Arguments) -> Result<ExitCode, LabError> {
    match &arguments.command {
        Command::Compare(arguments) => arguments.run(),
        Command::Workload(workload) => workload.run(),
        Command::Systems { json } => list(*json, systems_json(), tables::systems()),
        Command::Devices { json } => list(*json, devices_json(), tables::devices()),
        Command::Mappings { json } => list(*json, mappings_json(), tables::mappings()),
        Command::Trace(trace) => trace.run(),
        Command::Replay(arguments) => arguments.run(),
        Command::Reproduce(arguments) => reproduce::run(arguments),
        Command::Plan(arguments) => plan::run(arguments),
        Command::Torture(arguments) => return torture::run(arguments),
        Command::Image(arguments) => return arguments.run(),
        Command::Inspect(arguments) => arguments.run(),
        Command::Check(arguments) => return arguments.run(),
        Command::Wear(arguments) => arguments.run(),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool, object: serde_json::Value, table: String) -> Result<(), LabError> {
    if json { print_json(&object) } else { print(&table) }
}

fn systems_json() -> serde_json::Value {
    listed()
        .iter()
        .map(|Listed { key, system, runs_on, is_of_list }| {
            json!({
                "key": key, "name": system.name, "summary": system.summary,
                "source": system.source, "runs_on": runs_on, "of_list": is_of_list,
                "needs": {
                    "programs_per_page": system.needs.programs_per_page,
                    "rewrite": system.needs.rewrite,
                    "overwrite": system.needs.overwrite,
                },
            })
        })
        .collect()
}

fn mappings_json() -> serde_json::Value {
    let mapping = |entry: &Entry| json!({ "key": entry.name, "summary": entry.line, "section": entry.section, "needs_heap": entry.needs_heap, "paper": PAPER });
    MAPPINGS.iter().map(mapping).collect()
}

fn devices_json() -> serde_json::Value {
    profile::PROFILES
        .iter()
        .map(|profile| {
            json!({
                "key": profile.key, "summary": profile.summary, "source": profile.source,
                "page_bytes": profile.geometry.page_bytes,
                "spare_bytes": profile.geometry.spare_bytes,
                "pages_per_block": profile.geometry.pages_per_block,
                "blocks": profile.geometry.blocks,
                "programs_per_page": profile.capabilities.programs_per_page,
                "in_order": profile.capabilities.in_order,
                "rewrite": profile.capabilities.rewrite,
                "overwrite": profile.capabilities.overwrite,
                "safe_pages_per_block":
                    profile.capabilities.pairing.safe_pages(profile.geometry.pages_per_block),
                "bad_blocks_max": profile.capabilities.bad_blocks_max(profile.geometry.blocks),
                "ecc_bits": profile.ecc.bits,
                "ecc_codeword_bytes": profile.ecc.codeword_bytes,
                "endurance": profile.endurance,
                "read_us": profile.page_read_ns() as f64 / 1e3,
                "program_us": profile.page_program_ns() as f64 / 1e3,
                "erase_us": profile.timing.erase_ns as f64 / 1e3,
            })
        })
        .collect()
}
