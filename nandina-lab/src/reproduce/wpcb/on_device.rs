//! BFTL, LA-tree and MB-tree that keep every record, beside models that count.
//!
//! The paper's keys are inserted, with a lookup of a record that is there after each, as in Table 2.
//! Nodes have 128 entries of 8 bytes. Pages that an insert writes and that a lookup reads are
//! counted; a flush, a mount, and the records are looked for again.

use nandina::flash::profile::SLC;
use nandina::flash::{Geometry, Profile};
use nandina::{Index, Options, System, ram_needed};
use nandina_sim::Chip;

use super::growth::Growth;
use super::keys::{Order, keys, looked_up};
use super::rivals::Rival;
use super::runs::{Runs, each};
use super::{Experiment, Experiments};
use crate::LabError;
use crate::reproduce::Row;
use crate::rivals::{Bftl, LaTree, MbTree};

/// Bytes of a page of BFTL, whose nodes are in no page by themselves: 77 units have room in it.
const BFTL_PAGE_BYTES: u32 = 128 * 8 + 42;

/// Bytes of a page of LA-tree, with room for a node of 128 entries, or for 113 changes.
const LA_PAGE_BYTES: u32 = 128 * 8 + 70;

/// Bytes of a page of MB-tree, with room for the header of a leaf and 128 entries.
const MB_PAGE_BYTES: u32 = 128 * 8 + 100;

/// Shares of ascending keys, in per cent.
const RATIOS: [u32; 2] = [0, 100];

/// The models, with as many units or changes in a page.
const MODELS: [Rival; 3] = [Rival::BftlUnits, Rival::LaChanges, Rival::Mb];

/// Up to so much more or less than the model is what it counts.
const NEAR: f64 = 0.05;

/// What the inserts and the lookups cost.
#[derive(Clone, Copy, Debug)]
struct Done {
    operations: u32,
    /// Pages that inserts and lookups wrote.
    writes: u64,
    /// Pages that inserts read.
    insert_reads: u64,
    /// Pages that lookups read.
    lookup_reads: u64,
    /// Pages that hold the index afterwards.
    held: u32,
}

impl Done {
    fn each(&self, of: u64) -> f64 {
        of as f64 / f64::from(self.operations.max(1))
    }
}

const fn chip(page_bytes: u32, blocks: u32) -> Profile {
    let geometry = Geometry { page_bytes, spare_bytes: 0, pages_per_block: 64, blocks };
    let mut capabilities = SLC.capabilities;
    capabilities.bad_blocks_per_mille = 0;
    (capabilities.rewrite, capabilities.atomic_rewrite) = (true, true);
    Profile { geometry, capabilities, ..SLC }
}

/// Inserts the keys and looks others up, flushes, and looks for some of them after a mount.
///
/// With so many changes in RAM a write is due, or with as many as there is room for.
fn insert<S: System>(
    keys: &[u32],
    looked_up: &[u32],
    page_bytes: u32,
    changes: Option<u32>,
) -> Result<Done, String> {
    let records = keys.len() as u32;
    // Four pages for a node of 64 entries.
    let mut chip = Chip::new(chip(page_bytes, records.div_ceil(64 * 16) * 9 / 8 + 8));
    let units = records.div_ceil(1000).div_ceil(77);
    let options = Options::new(4, 4).write_buffer(units.max(1) as usize);
    let options = Options { write_buffer_changes: changes, ..options };
    let mut ram = vec![0; ram_needed::<S>(&chip.profile().geometry, &options)];
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut done =
        Done { operations: records, writes: 0, insert_reads: 0, lookup_reads: 0, held: 0 };
    {
        let index = Index::<_, S>::format(&mut chip, &options, &mut ram);
        let mut index = index.map_err(|error| text(&error))?;
        let mut before = index.flash().counters();
        let mut looked_up = looked_up.iter();
        for key in keys.iter().map(|key| key.to_be_bytes()) {
            index.insert(&key, &key).map_err(|error| text(&error))?;
            let after = index.flash().counters();
            done.insert_reads += after.reads - before.reads;
            if let Some(key) = looked_up.next().map(|key| key.to_be_bytes())
                && index.get(&key).map_err(|error| text(&error))? != Some(&key)
            {
                return Err(format!("key {key:?} is not found"));
            }
            let looked = index.flash().counters();
            done.lookup_reads += looked.reads - after.reads;
            done.writes += looked.rewrites - before.rewrites;
            before = looked;
        }
        index.flush().map_err(|error| text(&error))?;
        done.held = index.statistics().valid_pages;
    }
    // As after a cut: what RAM knew is gone.
    let index = Index::<_, S>::open(&mut chip, &options, &mut ram);
    let mut index = index.map_err(|error| text(&error))?;
    for key in keys.iter().step_by(101).map(|key| key.to_be_bytes()) {
        if index.get(&key).map_err(|error| text(&error))? != Some(&key) {
            return Err(format!("key {key:?} is lost"));
        }
    }
    Ok(done)
}

/// The system that keeps every record, in the place of its model.
fn insert_in(model: Rival, keys: &[u32], looked_up: &[u32]) -> Result<Done, String> {
    // The model of MB-tree writes before it takes one more.
    let changes = Some((keys.len() as u32).div_ceil(1000) + 1);
    match model {
        Rival::LaChanges => insert::<LaTree>(keys, looked_up, LA_PAGE_BYTES, None),
        Rival::Mb => insert::<MbTree>(keys, looked_up, MB_PAGE_BYTES, changes),
        _ => insert::<Bftl>(keys, looked_up, BFTL_PAGE_BYTES, None),
    }
}

/// The work of a model.
fn growth(of: &Experiments, model: Rival, per_cent: u32) -> Growth {
    Growth { looks_up: true, ..of.inserts(model.key(), per_cent) }
}

/// What is only counted for this experiment.
pub fn growths(of: &Experiments) -> Vec<Growth> {
    MODELS.iter().flat_map(|&model| RATIOS.map(|per_cent| growth(of, model, per_cent))).collect()
}

/// The counts of the models beside those of the systems.
pub fn experiment(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title =
        "BFTL, LA-tree and MB-tree: counts of the models, and of systems that keep every record";
    let mut experiment = Experiment::of("on-device", title, Vec::new());
    let records = of.scale.records;
    // Those that take longest first.
    let all: Vec<_> = MODELS.iter().flat_map(|&model| RATIOS.map(|rs| (rs, model))).collect();
    let done = each(&all, |&(per_cent, model)| {
        let keys = keys(records, per_cent, Order::Mixed, of.seed);
        let looks = looked_up(&keys, true, of.seed);
        let failed = |error| LabError(format!("{}: {error}", model.name()));
        insert_in(model, &keys, &looks).map_err(failed)
    })?;
    for per_cent in RATIOS {
        let rs = f64::from(per_cent) / 100.0;
        for model in MODELS {
            let tally = runs.tally(&growth(of, model, per_cent))?;
            let Some((_, done)) = done.iter().find(|(of, _)| *of == (per_cent, model)) else {
                continue;
            };
            let counted = |of: u64| of as f64 / f64::from(records.max(1));
            let config = format!("rs {rs}, the model beside");
            for (metric, model_has, has) in [
                ("writes an insert", counted(tally.programs), done.each(done.writes)),
                ("reads a lookup", counted(tally.lookup_reads), done.each(done.lookup_reads)),
                ("pages held", f64::from(tally.held), f64::from(done.held)),
            ] {
                let row = Row::beside(model.key(), &config, model.key(), model_has, has, metric);
                experiment.rows.push(row);
                let is_near = (1.0 - NEAR..=1.0 + NEAR).contains(&(has / model_has));
                let claim = format!(
                    "rs {rs}: {}: {metric} are what its model counts, within a twentieth: {has:.4} \
                     and {model_has:.4}",
                    model.name()
                );
                experiment.orderings.push((claim, is_near));
            }
        }
    }
    experiment.notes.push(
        "The paper prints no such figure, so the model's is in its column. A page has room for 77 \
         units of BFTL and for 113 changes of LA-tree, in these models, too."
            .into(),
    );
    Ok(experiment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::wpcb::rivals;

    #[test]
    fn the_systems_write_what_their_models_count() {
        let records = 50_000;
        for per_cent in RATIOS {
            let keys = keys(records, per_cent, Order::Mixed, 7);
            let looks = looked_up(&keys, true, 7);
            for model in MODELS {
                let growth = Growth {
                    system: model.key(),
                    records,
                    per_cent,
                    order: Order::Mixed,
                    then_removes: false,
                    looks_up: true,
                    block_pages: 64,
                    seed: 7,
                };
                let grown = rivals::grow(&growth, &|_| {}).unwrap().unwrap();
                let tally = grown.tally;
                let inserts_read = grown.inserts.reads - tally.lookup_reads;
                let done = insert_in(model, &keys, &looks).unwrap();
                println!(
                    "{per_cent} % {model:?}: {done:?}, {tally:?}, inserts read {inserts_read}"
                );
                let is_near = |ours: u64, model: u64| {
                    (1.0 - NEAR..=1.0 + NEAR).contains(&(ours as f64 / model as f64))
                };
                let what = format!("{per_cent} % {model:?}: {done:?}");
                // Of leaves with as many changes MB-tree and its model choose different ones.
                let is_exact = model != Rival::Mb;
                assert!(is_near(done.writes, tally.programs), "{what}");
                assert!(!is_exact || done.writes == tally.programs, "{what}");
                assert!(is_near(done.lookup_reads, tally.lookup_reads), "{what}");
                assert!(is_near(done.held.into(), tally.held.into()), "{what}");
            }
        }
    }
}
