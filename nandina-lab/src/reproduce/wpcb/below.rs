//! The page writes of an index on an FTL on a chip.
//!
//! The chip has pages of 512 bytes and stores no zeros, which changes no count: an FTL does not look
//! at what it stores. Times are the paper's latencies of 2 KiB pages.

use nandina::flash::{Geometry, Profile};
use nandina_ftl::LogicalPages;
use nandina_ftl::hybrid::SequentialRule;
use nandina_sim::{ChipError, SparseChip, TINY};

use super::cost::{Cost, Costs, nanoseconds};
use super::device::{Event, Events};
use super::growth::Grown;
use crate::LabError;
use crate::layer::{Layer, Pages, Room, TransitBuffer};

/// Which FTL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Map {
    /// None: the tree writes the blocks of the chip itself.
    Raw,
    /// A page map: every page may be anywhere.
    Page,
    /// Log blocks for any page, and a sequential one.
    Fast {
        /// Log blocks (*N*).
        log_blocks: u32,
        /// When the sequential one is opened.
        rule: SequentialRule,
    },
}

impl Map {
    /// Log blocks. With few of them FAST has the most to do.
    pub const fn log_blocks(self) -> Option<u32> {
        match self {
            Self::Raw | Self::Page => None,
            Self::Fast { log_blocks, .. } => Some(log_blocks),
        }
    }
}

/// The FTL below an index, and how much of the device the index fills.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Below {
    /// The FTL.
    pub map: Map,
    /// Its transit buffer, if there is one.
    pub buffer: Option<TransitBuffer>,
    /// The blocks of the index, in per cent of the logical ones.
    pub fill: u32,
    /// Blocks of the chip beside the logical ones; `None` for as many as the FTL needs.
    pub spare: Option<u32>,
}

impl Below {
    /// FAST with so many log blocks, without a buffer, on a device that the index fills.
    pub const fn fast(log_blocks: u32) -> Self {
        let map = Map::Fast { log_blocks, rule: SequentialRule::FirstPage };
        Self { map, buffer: None, fill: 100, spare: None }
    }

    /// The same behind a buffer of so many blocks, as the paper has it.
    pub const fn printed(self, blocks: u32) -> Self {
        Self { buffer: Some(TransitBuffer { blocks, as_printed: true }), ..self }
    }

    /// The same behind a buffer of so many blocks, with all improvements.
    pub const fn improved(self, blocks: u32) -> Self {
        Self { buffer: Some(TransitBuffer { blocks, as_printed: false }), ..self }
    }

    /// A page map with so many spare blocks.
    pub const fn page_map(spare: u32) -> Self {
        Self { map: Map::Page, buffer: None, fill: 100, spare: Some(spare) }
    }

    /// Raw flash, which the tree writes itself.
    pub const RAW: Self = Self { map: Map::Raw, buffer: None, fill: 100, spare: None };

    /// Its name in a report.
    pub fn name(&self) -> String {
        let map = match self.map {
            Map::Raw => "raw flash".into(),
            Map::Page => format!("page map, {} spare blocks", self.spare.unwrap_or(0)),
            Map::Fast { log_blocks, rule: SequentialRule::FirstPage } => {
                format!("FAST N={log_blocks}")
            }
            Map::Fast { log_blocks, rule: SequentialRule::Continues } => {
                format!("FAST N={log_blocks}, only true sequences")
            }
        };
        let buffer = match self.buffer {
            None => String::new(),
            Some(TransitBuffer { blocks, as_printed: true }) => format!(", C={blocks} as printed"),
            Some(TransitBuffer { blocks, as_printed: false }) => format!(", C={blocks}"),
        };
        let fill = if self.fill == 100 { String::new() } else { format!(", {} % full", self.fill) };
        map + &buffer + &fill
    }

    fn layer(&self) -> Result<Layer, LabError> {
        let layer = match self.map {
            Map::Raw => return Err(LabError("an index on raw flash has no FTL".into())),
            Map::Page => Layer::named("ftl:page")?,
            Map::Fast { log_blocks, rule } => {
                Layer::named("ftl:fast")?.with_log_blocks(log_blocks)?.with_sequential_rule(rule)
            }
        };
        let layer = layer.with_over_provisioning(0);
        self.buffer.map_or(Ok(layer), |buffer| layer.with_transit(buffer))
    }
}

/// Replays all phases of an index on a new chip.
pub fn replay(below: &Below, grown: &Grown) -> Result<Costs, LabError> {
    if let (Map::Raw, Some(costs)) = (below.map, &grown.raw) {
        return Ok(costs.clone());
    }
    let layer = below.layer()?;
    let block_pages = grown.block_pages;
    let chip = |blocks| Profile {
        geometry: Geometry { pages_per_block: block_pages, blocks, ..TINY.geometry },
        ..TINY
    };
    let logical_blocks = (grown.most_blocks * 100).div_ceil(below.fill);
    let logical_pages = logical_blocks * block_pages;
    let blocks = match below.spare {
        Some(spare) => logical_blocks + spare,
        None => layer.blocks_needed(&chip(1), logical_pages),
    };
    let profile = chip(blocks);
    let failed = |error: ChipError| LabError(format!("{}: {error}", below.name()));
    let size = layer.sized(&profile, logical_pages);
    let (mut chip, mut room) = (SparseChip::new(profile), Room::default());
    let mut costs = Costs { chip_blocks: blocks, ..Costs::default() };
    costs.ram_bytes = size.ram_bytes + size.memory_bytes;
    {
        let mut disk = layer.open(&size, &mut chip, &mut room, true).map_err(failed)?;
        run(disk.ftl(), &grown.format, None).map_err(failed)?;
        costs.inserts =
            run(disk.ftl(), &grown.inserts.events, Some(&mut costs.buffered)).map_err(failed)?;
        if let Some(lookups) = &grown.lookups {
            costs.lookups = run(disk.ftl(), &lookups.events, None).map_err(failed)?;
        }
        if let Some(removals) = &grown.removals {
            costs.removals = run(disk.ftl(), &removals.events, None).map_err(failed)?;
        }
    }
    let wear = chip.wear();
    costs.wear = f64::from(wear.most) / wear.mean.max(1.0);
    let before = chip.counters().reads;
    drop(layer.open(&size, &mut chip, &mut room, false).map_err(failed)?);
    costs.mount_reads = chip.counters().reads - before;
    Ok(costs)
}

/// Does what an index did, and times it.
///
/// `buffered` gets the number of buffer blocks in use after each tenth.
fn run(
    pages: &mut Pages<'_, SparseChip>,
    events: &Events,
    mut buffered: Option<&mut Vec<u32>>,
) -> Result<Cost, ChipError> {
    let zeros = vec![0; pages.page_bytes()];
    let before = pages.chip().counters();
    let operations = events.iter().filter(|event| matches!(event, Event::End(_))).count();
    let (mut since, mut index_reads, mut times) = (before, 0, Vec::with_capacity(operations));
    for event in events.iter() {
        match event {
            Event::Write(page) => pages.write(page, &zeros)?,
            Event::Trim(page) => pages.trim(page, 1)?,
            Event::End(reads) => {
                let now = pages.chip().counters();
                index_reads += u64::from(reads);
                let mut done = now - since;
                done.reads += u64::from(reads);
                times.push(nanoseconds(&done));
                since = now;
                if let Some(buffered) = &mut buffered
                    && times.len() * 10 / operations > buffered.len()
                {
                    buffered.push(pages.buffer_blocks_used());
                }
            }
        }
    }
    let mut done = pages.chip().counters() - before;
    // An FTL reads one page of the chip for each page that it returns.
    done.reads += index_reads;
    let mut cost = Cost {
        operations: operations as u64,
        reads: done.reads,
        programs: done.programs,
        erases: done.erases,
        merges: pages.merges().unwrap_or_default(),
        conversions: pages.conversions(),
        ..Cost::default()
    };
    cost.set_times(times);
    Ok(cost)
}

#[cfg(test)]
mod tests {
    use nandina::flash::Flash;
    use nandina::store::{BTree, Wpcb};
    use nandina::{Index, Options, System, ram_needed};
    use nandina_sim::Chip;

    use super::*;
    use crate::reproduce::wpcb::growth::Growth;
    use crate::reproduce::wpcb::keys::{Order, keys};
    use crate::reproduce::wpcb::tree::grow;

    /// Programs and erases of the index itself on the FTL, without those of the format.
    fn on_ftl<S: System>(below: &Below, blocks: u32, keys: &[u32]) -> (u64, u64) {
        let layer = below.layer().unwrap();
        let (page_bytes, spare_bytes, pages_per_block) = (1066, 64, 8);
        let chip = |blocks| Profile {
            geometry: Geometry { page_bytes, spare_bytes, pages_per_block, blocks },
            ..TINY
        };
        let profile = chip(layer.blocks_needed(&chip(1), blocks * pages_per_block));
        let size = layer.sized(&profile, blocks * pages_per_block);
        let (mut chip, mut room) = (Chip::new(profile), Room::default());
        let mut disk = layer.open(&size, &mut chip, &mut room, true).unwrap();
        let options = Options::new(4, 4);
        let mut ram = vec![0; ram_needed::<S>(&disk.geometry(), &options)];
        let mut index = Index::<_, S>::format(&mut disk, &options, &mut ram).unwrap();
        let before = index.flash().inspect().chip().counters();
        for key in keys.iter().map(|key| key.to_be_bytes()) {
            index.insert(&key, &key).unwrap();
        }
        let done = index.flash().inspect().chip().counters() - before;
        (done.programs, done.erases)
    }

    #[test]
    fn a_replay_costs_what_the_index_costs_on_the_ftl() {
        for (system, per_cent) in [("btree", 0), ("wpcb", 50)] {
            let order = Order::Mixed;
            let (records, block_pages, seed) = (20_000, 8, 3);
            let (then_removes, looks_up) = (false, false);
            let growth = Growth {
                system,
                records,
                per_cent,
                order,
                then_removes,
                looks_up,
                block_pages,
                seed,
            };
            let grown = grow(&growth, &|_| {}).unwrap();
            let keys = keys(records, per_cent, order, seed);
            let fast = Below::fast(4);
            for below in [fast, fast.printed(10), fast.improved(10)] {
                let replayed = replay(&below, &grown).unwrap().inserts;
                let direct = match system {
                    "btree" => on_ftl::<BTree>(&below, grown.blocks, &keys),
                    _ => on_ftl::<Wpcb>(&below, grown.blocks, &keys),
                };
                assert_eq!((replayed.programs, replayed.erases), direct, "{system} {below:?}");
                assert!(replayed.erases > 1_000, "{} erases", replayed.erases);
            }
        }
    }
}
