//! IPL and dIPL as FTLs that keep every record, beside the models that only count.
//!
//! A B-tree inserts the paper's random keys on a chip through `ftl:ipl` and `ftl:dipl`: each insert
//! has returned after the program that makes it durable. Nodes have 128 entries of 16 bytes, so
//! that a quarter of a page is a sector of 512 bytes. No page of the chip has to be programmed in
//! order, as the models have it.

use nandina::flash::profile::SLC;
use nandina::flash::{Flash, Geometry, Profile};
use nandina::store::BTree;
use nandina::{Index, Options, ram_needed};
use nandina_ftl::LogicalPages;
use nandina_ftl::Statistics;
use nandina_ftl::logged::LogMerges;
use nandina_sim::{Chip, Counters};

use super::keys::{Order, keys};
use super::rivals::Rival;
use super::runs::{Case, Runs};
use super::{Experiment, Experiments};
use crate::LabError;
use crate::layer::{Layer, Room};
use crate::reproduce::Row;

/// Bytes of a key and of a value: entries of 16 bytes.
const KEY: u16 = 4;
const VALUE: u16 = 12;

/// Bytes of a page: a node of 128 entries with its head and its header. A logical page is as large.
const PAGE_BYTES: u32 = 128 * 16 + 42;

/// The models and the FTLs that do what they count.
const PAIRS: [(Rival, &str); 2] = [(Rival::Ipl, "ftl:ipl"), (Rival::Dipl, "ftl:dipl")];

/// What a B-tree on an FTL with logs cost.
#[derive(Clone, Copy, Debug)]
struct Done {
    inserts: u32,
    counters: Counters,
    merges: LogMerges,
    statistics: Statistics,
}

impl Done {
    fn each(&self, of: u64) -> f64 {
        of as f64 / f64::from(self.inserts.max(1))
    }
}

/// A chip of so many blocks, whose pages are programmed in order or not.
const fn chip(block_pages: u32, blocks: u32, in_order: bool) -> Profile {
    let geometry =
        Geometry { page_bytes: PAGE_BYTES, pages_per_block: block_pages, blocks, ..SLC.geometry };
    let mut capabilities = SLC.capabilities;
    capabilities.in_order = in_order;
    capabilities.bad_blocks_per_mille = 0;
    Profile { geometry, capabilities, ..SLC }
}

/// Inserts the keys, and looks up some of them after a mount.
fn insert(layer: &str, keys: &[u32], block_pages: u32, in_order: bool) -> Result<Done, String> {
    let layer = Layer::named(layer).map_err(|error| error.to_string())?.with_over_provisioning(0);
    // Leaves are half full at worst.
    let logical_blocks = (keys.len() as u32).div_ceil(60 * block_pages) * 9 / 8 + 4;
    let logical_pages = logical_blocks * block_pages;
    let blocks = layer.blocks_needed(&chip(block_pages, 1, in_order), logical_pages);
    let profile = chip(block_pages, blocks, in_order);
    let size = layer.sized(&profile, logical_pages);
    let (mut chip, mut room) = (Chip::new(profile), Room::default());
    let options = Options::new(KEY.into(), VALUE.into());
    let mut value = [0; VALUE as usize];
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let done = {
        let opened = layer.open(&size, &mut chip, &mut room, true);
        let mut disk = opened.map_err(|error| text(&error))?;
        let mut ram = vec![0; ram_needed::<BTree>(&disk.geometry(), &options)];
        let index = Index::<_, BTree>::format(&mut disk, &options, &mut ram);
        let mut index = index.map_err(|error| text(&error))?;
        let before = index.flash().inspect().chip().counters();
        for key in keys.iter().map(|key| key.to_be_bytes()) {
            value[..4].copy_from_slice(&key);
            index.insert(&key, &value).map_err(|error| text(&error))?;
        }
        let pages = index.flash().inspect();
        let counters = pages.chip().counters() - before;
        let merges = pages.log_merges().unwrap_or_default();
        Done { inserts: keys.len() as u32, counters, merges, statistics: pages.statistics() }
    };
    // As after a cut: what RAM knew is gone.
    let opened = layer.open(&size, &mut chip, &mut room, false);
    let mut disk = opened.map_err(|error| text(&error))?;
    let mut ram = vec![0; ram_needed::<BTree>(&disk.geometry(), &options)];
    let index = Index::<_, BTree>::open(&mut disk, &options, &mut ram);
    let mut index = index.map_err(|error| text(&error))?;
    for key in keys.iter().step_by(101).map(|key| key.to_be_bytes()) {
        value[..4].copy_from_slice(&key);
        if index.get(&key).map_err(|error| text(&error))? != Some(&value) {
            return Err(format!("key {key:?} is lost"));
        }
    }
    Ok(done)
}

/// The counts of the models beside those of the FTLs.
pub fn experiment(of: &Experiments, runs: &Runs) -> Result<Experiment, LabError> {
    let title = "IPL and dIPL: a count of the model, and of a B-tree whose every record is durable";
    let mut experiment = Experiment::of("durable", title, Vec::new());
    let (scale, mut costs) = (of.scale, Vec::new());
    let keys = keys(scale.records, 0, Order::Mixed, of.seed);
    for (rival, layer) in PAIRS {
        let cases = of.rival_cases(0).find(|(side, _)| side.system == rival.key());
        let (_, case): (_, Case) = cases.ok_or_else(|| LabError("a model was not run".into()))?;
        let model = &runs.costs(&case)?.inserts;
        let failed = |error| LabError(format!("btree over {layer}: {error}"));
        let done = insert(layer, &keys, scale.block_pages, false).map_err(failed)?;
        let ours = [done.each(done.counters.programs), done.each(done.counters.erases)];
        let models = [model.each(model.programs), model.each(model.erases)];
        for ((metric, model), ours) in ["programs", "erases"].into_iter().zip(models).zip(ours) {
            let config = "rs 0, the model beside";
            experiment.rows.push(Row::beside(
                rival.key(),
                config,
                metric,
                model,
                ours,
                "an insert",
            ));
            let claim = format!("{}, {metric}: model {model:.4}, durable {ours:.4}", rival.name());
            experiment.orderings.push((claim, (0.95..=1.05).contains(&(ours / model))));
        }
        experiment.notes.push(format!(
            "{}: {} records, {} whole pages, {} merges, {} of them divisions, {} pages copied.",
            rival.name(),
            done.merges.records,
            done.counters.programs - done.merges.records - done.statistics.moved,
            done.merges.blocks,
            done.merges.divisions,
            done.statistics.moved,
        ));
        costs.push(ours);
    }
    let [ipl, dipl] = [costs[0], costs[1]];
    for (at, metric) in ["programs", "erases"].into_iter().enumerate() {
        let claim = format!(
            "dIPL takes at most half of the {metric} of IPL: {:.4} and {:.4}",
            dipl[at], ipl[at]
        );
        experiment.orderings.push((claim, 2.0 * dipl[at] <= ipl[at]));
    }
    experiment.notes.push(
        "The paper prints no such figure, so the model's is in its column. Orderings say whether a \
         figure is within a twentieth of the model's."
            .into(),
    );
    Ok(experiment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::{Effort, effort};
    use crate::reproduce::wpcb::growth::Growth;
    use crate::reproduce::wpcb::rivals;

    /// Programs and erases of an insert.
    fn costs(layer: &str, records: u32, block_pages: u32, in_order: bool) -> (f64, f64) {
        let keys = keys(records, 0, Order::Mixed, 7);
        let done = insert(layer, &keys, block_pages, in_order).unwrap();
        println!("{layer}, {records} records, in order {in_order}: {done:?}");
        (done.each(done.counters.programs), done.each(done.counters.erases))
    }

    #[test]
    fn dipl_takes_less_than_half_of_the_programs_and_erases_of_ipl() {
        for in_order in [false, true] {
            let [ipl, dipl] = ["ftl:ipl", "ftl:dipl"].map(|it| costs(it, 20_000, 64, in_order));
            println!("{ipl:?} {dipl:?}");
            assert!(2.0 * dipl.0 < ipl.0 && 2.0 * dipl.1 < ipl.1, "{ipl:?} {dipl:?}");
        }
    }

    /// Programs and erases of an insert, as the model counts them.
    fn model(rival: Rival, records: u32) -> (f64, f64) {
        let growth = Growth {
            system: rival.key(),
            records,
            per_cent: 0,
            order: Order::Mixed,
            then_removes: false,
            looks_up: false,
            block_pages: 64,
            seed: 7,
        };
        let grown = rivals::grow(&growth, &|_| {}).unwrap().unwrap();
        let costs = grown.raw.unwrap().inserts;
        println!("{}: {costs:?} {:?} {} nodes", rival.key(), grown.tally, grown.nodes);
        (costs.each(costs.programs), costs.each(costs.erases))
    }

    /// With full effort these are the paper's 10^6 records: a minute in release mode.
    #[test]
    fn what_is_durable_costs_what_the_models_count() {
        let is_full = effort() == Effort::Full;
        let records = if is_full { 1_000_000 } else { 100_000 };
        for (rival, layer) in PAIRS {
            let model = model(rival, records);
            for in_order in if is_full { &[false, true][..] } else { &[false] } {
                let durable = costs(layer, records, 64, *in_order);
                println!("{layer}: model {model:?}, durable {durable:?}");
                let is_near = |durable: f64, model: f64| (0.95..=1.05).contains(&(durable / model));
                assert!(is_near(durable.0, model.0), "{layer}: {model:?} {durable:?}");
                assert!(is_near(durable.1, model.1), "{layer}: {model:?} {durable:?}");
            }
        }
    }
}
