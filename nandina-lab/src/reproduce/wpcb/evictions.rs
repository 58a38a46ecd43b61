//! IBSF and MB-tree as ways to empty a write buffer, beside the models that only count.
//!
//! A B-tree inserts the paper's keys on a chip through `ftl:page`, with a write buffer that holds a
//! change of each thousandth record. When it is full, the leaf of the oldest change is written, or
//! the one with the most; a flush at the end writes the others, and each record is then looked for
//! on the chip.

use nandina::flash::profile::SLC;
use nandina::flash::{Flash, Geometry, Profile};
use nandina::store::BTree;
use nandina::{Eviction, Index, Options, ram_needed};
use nandina_ftl::LogicalPages;
use nandina_sim::{Chip, Counters};

use super::growth::Growth;
use super::keys::{Order, keys};
use super::rivals::Rival;
use super::runs::Runs;
use super::{Experiment, Experiments};
use crate::LabError;
use crate::layer::{Layer, Room};
use crate::reproduce::Row;

/// Bytes of a page: a node of 128 entries of 8 bytes with its head and its header.
const PAGE_BYTES: u32 = 128 * 8 + 42;

/// Shares of ascending keys, in per cent.
const RATIOS: [u32; 2] = [0, 100];

/// The choices, and the models of the same rule.
///
/// Leaves of the library have one page. So the model of MB-tree is the one whose leaves do, too.
const PAIRS: [(Eviction, Rival); 2] =
    [(Eviction::Ibsf, Rival::Ibsf), (Eviction::Mb, Rival::MbOnePage)];

/// Writes of an insert with ascending keys, as the model and as the library have it.
///
/// What waits is then of the last leaf, which is written as often as the buffer is full. The model
/// halves a full leaf, and writes each node once for all changes; the library leaves it full, and
/// writes the new leaf and its parent for each that is opened.
fn ascending(records: u32) -> [f64; 2] {
    let room = f64::from(room_for(records));
    let (halves, full) = (room / 64.0, room / 128.0);
    [(1.0 + halves + halves.min(1.0)) / room, (1.0 + 2.0 * full) / room]
}

/// What the inserts cost, the flush at the end included.
#[derive(Clone, Copy, Debug)]
struct Done {
    inserts: u32,
    /// Pages that the index wrote.
    writes: u64,
    /// What the chip did for it.
    counters: Counters,
}

impl Done {
    fn each(&self, of: u64) -> f64 {
        of as f64 / f64::from(self.inserts.max(1))
    }
}

const fn chip(block_pages: u32, blocks: u32) -> Profile {
    let geometry =
        Geometry { page_bytes: PAGE_BYTES, pages_per_block: block_pages, blocks, ..SLC.geometry };
    let mut capabilities = SLC.capabilities;
    capabilities.bad_blocks_per_mille = 0;
    Profile { geometry, capabilities, ..SLC }
}

/// Changes that RAM has room for, as the models have it.
fn room_for(records: u32) -> u32 {
    records.div_ceil(1000)
}

/// Inserts the keys, flushes, and looks up some of them after a mount.
fn insert(eviction: Eviction, keys: &[u32], block_pages: u32) -> Result<Done, String> {
    let layer = Layer::named("ftl:page").map_err(|error| error.to_string())?;
    let logical_blocks = (keys.len() as u32).div_ceil(60 * block_pages) * 9 / 8 + 4;
    let logical_pages = logical_blocks * block_pages;
    let blocks = layer.blocks_needed(&chip(block_pages, 1), logical_pages);
    let profile = chip(block_pages, blocks);
    let size = layer.sized(&profile, logical_pages);
    let (mut chip, mut room) = (Chip::new(profile), Room::default());
    let changes = room_for(keys.len() as u32);
    // A change has eight bytes, perhaps four of its age or one of its leaf, and a bit.
    let pages = (changes * 13).div_ceil(PAGE_BYTES) as usize;
    let options =
        Options::new(4, 4).write_buffer(pages).write_buffer_changes(changes).eviction(eviction);
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let done = {
        let opened = layer.open(&size, &mut chip, &mut room, true);
        let mut disk = opened.map_err(|error| text(&error))?;
        let mut ram = vec![0; ram_needed::<BTree>(&disk.geometry(), &options)];
        let index = Index::<_, BTree>::format(&mut disk, &options, &mut ram);
        let mut index = index.map_err(|error| text(&error))?;
        let pages = index.flash().inspect();
        let (before, written) = (pages.chip().counters(), pages.statistics().host_writes);
        for key in keys.iter().map(|key| key.to_be_bytes()) {
            index.insert(&key, &key).map_err(|error| text(&error))?;
        }
        index.flush().map_err(|error| text(&error))?;
        let pages = index.flash().inspect();
        let writes = pages.statistics().host_writes - written;
        let counters = pages.chip().counters() - before;
        Done { inserts: keys.len() as u32, writes, counters }
    };
    // As after a cut: what RAM knew is gone.
    let opened = layer.open(&size, &mut chip, &mut room, false);
    let mut disk = opened.map_err(|error| text(&error))?;
    let mut ram = vec![0; ram_needed::<BTree>(&disk.geometry(), &options)];
    let index = Index::<_, BTree>::open(&mut disk, &options, &mut ram);
    let mut index = index.map_err(|error| text(&error))?;
    for key in keys.iter().step_by(101).map(|key| key.to_be_bytes()) {
        if index.get(&key).map_err(|error| text(&error))? != Some(&key) {
            return Err(format!("key {key:?} is lost"));
        }
    }
    Ok(done)
}

/// What is only counted for this experiment.
pub fn growths(of: &Experiments) -> Vec<Growth> {
    let growths = |rival: Rival| RATIOS.map(|per_cent| of.inserts(rival.key(), per_cent));
    let rivals = PAIRS.into_iter().map(|(_, rival)| rival);
    rivals.chain([Rival::Mb]).flat_map(growths).collect()
}

/// The counts of the models beside those of the B-tree.
pub fn experiment(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title =
        "IBSF and MB-tree: a count of the model, and of a B-tree whose write buffer is emptied so";
    let mut experiment = Experiment::of("evictions", title, Vec::new());
    let (scale, inserts) = (of.scale, u64::from(of.scale.records));
    for per_cent in RATIOS {
        let keys = keys(scale.records, per_cent, Order::Mixed, of.seed);
        let rs = f64::from(per_cent) / 100.0;
        let model = |rival: Rival| {
            let tally = runs.tally(&of.inserts(rival.key(), per_cent))?;
            Ok::<_, LabError>(tally.programs as f64 / inserts as f64)
        };
        for (eviction, rival) in PAIRS {
            let failed = |error| LabError(format!("btree with {eviction:?}: {error}"));
            let done = insert(eviction, &keys, scale.block_pages).map_err(failed)?;
            let (model, ours) = (model(rival)?, done.each(done.writes));
            let (config, unit) = (format!("rs {rs}, the model beside"), "writes an insert");
            experiment.rows.push(Row::beside("btree", &config, rival.key(), model, ours, unit));
            let is_near = |ours: f64, other: f64| (0.95..=1.05).contains(&(ours / other));
            let claim = format!(
                "rs {rs}: {} writes what its model counts, within a twentieth: {ours:.4} and \
                 {model:.4}",
                rival.name()
            );
            experiment.orderings.push((claim, is_near(ours, model)));
            if per_cent == 100 {
                let [halves, full] = ascending(scale.records);
                let claim = format!(
                    "rs 1: {}: the model halves a leaf and writes its parent once a batch, the \
                     tree leaves it full and writes the parent with each: {halves:.4} and \
                     {full:.4} by that, within a twentieth",
                    rival.name()
                );
                let is_so = is_near(model, halves) && is_near(ours, full);
                experiment.orderings.push((claim, is_so));
            }
            for (metric, count) in [
                ("reads", done.counters.reads),
                ("programs", done.counters.programs),
                ("erases", done.counters.erases),
            ] {
                let config = format!("rs {rs}, {}, on a chip through a page map", rival.key());
                let row = Row::alone("btree", &config, metric, done.each(count), "an insert");
                experiment.rows.push(row);
            }
        }
        let [one, four] = [model(Rival::MbOnePage)?, model(Rival::Mb)?];
        experiment.notes.push(format!(
            "rs {rs}: with leaves of up to four pages the model of MB-tree writes {four:.3} pages an \
             insert, with leaves of one page {one:.3}."
        ));
    }
    experiment.notes.push(
        "The paper prints no such figure, so the model's is in its column. To find the leaf with the \
         most changes, the nodes above leaves with new changes are read."
            .into(),
    );
    Ok(experiment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::wpcb::rivals;

    #[test]
    fn a_write_buffer_writes_what_the_models_count() {
        let records = 50_000;
        for per_cent in RATIOS {
            let keys = keys(records, per_cent, Order::Mixed, 7);
            for (eviction, rival) in PAIRS {
                let growth = Growth {
                    system: rival.key(),
                    records,
                    per_cent,
                    order: Order::Mixed,
                    then_removes: false,
                    looks_up: false,
                    block_pages: 64,
                    seed: 7,
                };
                let grown = rivals::grow(&growth, &|_| {}).unwrap().unwrap();
                let model = grown.tally.programs as f64 / f64::from(records);
                let done = insert(eviction, &keys, 64).unwrap();
                let ours = done.each(done.writes);
                let what = format!("{per_cent} %, {eviction:?}: {model:.4} {ours:.4}");
                println!("rs {what} {done:?}");
                let is_near = |ours: f64, other: f64| (0.95..=1.05).contains(&(ours / other));
                let [halves, full] = ascending(records);
                // With ascending keys the paper's B-tree halves leaves, and ours leaves them full.
                assert!(is_near(ours, model) == (per_cent == 0), "{what}");
                assert!(per_cent == 0 || is_near(model, halves) && is_near(ours, full), "{what}");
            }
        }
    }
}
