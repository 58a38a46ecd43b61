//! Durable systems of the registry beside the μ-trees that Table 2 only counts.
//!
//! Raw on the chip of Table 1, and over FAST. The paper must have run μ*-tree over its FTL.

use nandina::flash::Profile;
use nandina::flash::profile::SLC;

use super::{Experiment, Experiments};
use crate::LabError;
use crate::layer::Layer;
use crate::reproduce::Row;
use crate::run::run;
use crate::subject::Setup;
use crate::work::Work;

/// The systems.
const SYSTEMS: [&str; 2] = ["mu", "mu-star"];

/// The most records: an insert over FAST takes several programs.
const RECORDS_MAX: u32 = 100_000;

/// Bytes of a key and of a value: 128 records take a page of 2 KiB.
const RECORD: (usize, usize) = (8, 8);

/// A chip of which the tree fills a part, also below an FTL, without bad blocks.
fn chip(records: u32) -> Profile {
    let mut chip = SLC.with_blocks((records / 250).max(64));
    chip.capabilities.bad_blocks_per_mille = 0;
    chip
}

/// Adds what the systems cost to Table 2.
pub fn add(of: &Experiments, experiment: &mut Experiment) -> Result<(), LabError> {
    let records = of.scale.records.min(RECORDS_MAX);
    let work = Work::standard(records, RECORD.0, RECORD.1, of.seed)?;
    for system in SYSTEMS {
        let mut said = Vec::new();
        for (name, layer) in [("raw", None), ("over FAST", Some(Layer::named("ftl:fast")?))] {
            let options = nandina::Options::new(RECORD.0, RECORD.1);
            let setup = Setup { profile: chip(records), options, ram_bytes: None, layer };
            let cost = run(system, &setup, &work, &|_| {})?.cost()?;
            // The phases are inserts, lookups, scans, updates and removals.
            let phase = |at: usize| &cost.phases[at];
            let config = format!("durable, {name}, {records} records");
            let figures = [
                ("programs", phase(0).programs_per_op, "an insert"),
                ("reads", phase(1).reads_per_op, "a lookup"),
                ("programs of updates", phase(3).programs_per_op, "an update"),
                ("height", f64::from(cost.height.unwrap_or(0)), "levels"),
                ("pages", f64::from(cost.valid_pages.unwrap_or(0)), "pages"),
            ];
            experiment.rows.extend(
                figures.map(|(metric, figure, unit)| {
                    Row::alone(system, &config, metric, figure, unit)
                }),
            );
            said.push(format!("{:.3} programs an insert {name}", phase(0).programs_per_op));
        }
        experiment.notes.push(format!(
            "The durable system {system} of the registry, with {records} random records: {}. Each change \
             survives a cut.",
            said.join(", ")
        ));
    }
    Ok(())
}
