//! What each command does: from arguments to the lab and from its answer to the screen.

use std::process::ExitCode;

use nandina::Options;
use nandina::flash::profile;
use nandina::place::SYSTEMS;
use nandina_lab::compare::compare;
use nandina_lab::run::Setup;
use nandina_lab::work::Work;
use nandina_lab::{LabError, input};
use serde_json::json;

use crate::arguments::{Arguments, Command, Compare, Duplicates};
use crate::choose::{device, systems};
use crate::progress::Progress;
use crate::tables::print_json;
use crate::{plan, reproduce, tables, torture};

pub fn run(arguments: &Arguments) -> Result<ExitCode, LabError> {
    match &arguments.command {
        Command::Compare(arguments) => run_compare(arguments),
        Command::Systems { json } => list(*json, systems_json(), tables::systems()),
        Command::Devices { json } => list(*json, devices_json(), tables::devices()),
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
    if json {
        print_json(&object)
    } else {
        tables::print(&table);
        Ok(())
    }
}

fn run_compare(arguments: &Compare) -> Result<(), LabError> {
    let profile = device(&arguments.device)?;
    let systems = systems(&arguments.systems)?;
    let (work, description) = compare_work(arguments)?;
    let setup = Setup { profile, options: Options::new(1, 0), ram_bytes: arguments.ram };
    let progress = Progress::new(work.operations() * systems.len() as u64);
    let advance = |operations| progress.advance(operations);
    let result = compare(&systems, &setup, &work, description, arguments.seed, &advance);
    progress.finish();
    let comparison = result?;
    if arguments.json {
        print_json(&comparison)
    } else {
        tables::print(&tables::comparison(&comparison));
        Ok(())
    }
}

fn compare_work(arguments: &Compare) -> Result<(Work, String), LabError> {
    let Compare { seed, key_size, value_size, .. } = *arguments;
    let Some(path) = &arguments.input else {
        let records = arguments.records.unwrap_or(100_000);
        let (key_bytes, value_bytes) = (key_size.unwrap_or(4), value_size.unwrap_or(4));
        let work = Work::standard(records, key_bytes, value_bytes, seed)?;
        let description = format!(
            "{records} random records of {key_bytes}-byte keys and {value_bytes}-byte values"
        );
        return Ok((work, description));
    };
    let (key, value) = (arguments.key.as_deref(), arguments.value.as_deref());
    let mut records = input::read(path, key, value, key_size, value_size)
        .map_err(|error| LabError(error.to_string()))?;
    if let Some(rows) = arguments.records {
        records = records.first(rows as usize);
    }
    let repeated = records.len() - records.distinct_keys;
    let mut description = format!(
        "{}, {} rows, key {}, value {}",
        records.description,
        records.len(),
        records.key_column,
        records.value_column
    );
    if repeated > 0 {
        let fate = match arguments.duplicates {
            Duplicates::Keep => "all are kept, with the row number as 4 more bytes behind each key",
            Duplicates::Replace => "each replaces the row before it with the same key",
        };
        description += &format!("; {} distinct keys: {fate}", records.distinct_keys);
        if arguments.duplicates == Duplicates::Keep {
            records = records.with_row_numbers();
        }
    }
    Ok((Work::from_records(&records, seed), description))
}

fn systems_json() -> serde_json::Value {
    SYSTEMS
        .iter()
        .map(|system| {
            json!({
                "key": system.key, "name": system.name, "summary": system.summary,
                "source": system.source,
                "needs": {
                    "programs_per_page": system.needs.programs_per_page,
                    "rewrite": system.needs.rewrite,
                },
            })
        })
        .collect()
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
