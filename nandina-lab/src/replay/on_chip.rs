//! A trace on an FTL on a simulated chip, once for each mapping.
//!
//! The chip is as large as the trace's space and the spare blocks. It stores no zeros
//! ([`SparseChip`]), and every page that is written here has only zeros, since traces have no
//! contents. Which pages are programmed and collected does not depend on the mapping: all of them
//! must see the same chip operations and end with the same content. A difference is an error and
//! never a figure.
//!
//! One chip does one operation at a time. Several chips are a stripe with a clock for each: the
//! operations of one request overlap as far as they are on different chips, as if none needed
//! another one's result, so the time of a request is a lower bound there. Requests do not wait for
//! one another. No channel, bus or host interface is modelled.

use std::fmt::Display;

use nandina::blocks::GcPolicy;
use nandina::flash::{Geometry, Profile};
use nandina_ftl::ftl::{Choices, Ftl, logical_page_bytes, ram_needed_for, space_of};
use nandina_ftl::hybrid::Merges;
use nandina_ftl::mapping::emt::Runs;
use nandina_ftl::mapping::registry::{Entry, by_name};
use nandina_ftl::mapping::{Mapping, Space, Work};
use nandina_ftl::transit::Buffer;
use nandina_ftl::{Stripe, stripe_capabilities, stripe_geometry};
use nandina_sim::SparseChip;
use serde::Serialize;

use super::footprint::Footprint;
use super::host::{DeviceWork, Done, Host, OnChips};
use super::place::Place;
use super::run::{LeftOut, chosen, memory};
use super::tally::{Tally, content};
use crate::LabError;
use crate::block_trace::{Account, BlockTrace, Layout, Refused};
use crate::layer::{self, Layer, Room, TransitBuffer};
use crate::trace::ReadProgress;

/// Requests that are timed together.
const BATCH: usize = 16_384;
/// The mapping whose extents say how much memory the others get.
const SCOUT: &str = "emt-btreemap";
/// The mapping that the others are compared with.
const PAGE: &str = "page";
/// The mapping that takes memory for what is written.
const PAGE_2: &str = "page-2";
/// The layer whose chip is that of all mappings.
const PAGE_LAYER: &str = "ftl:page";

/// What is replayed, and on which device.
#[derive(Clone)]
pub struct DeviceSetup {
    /// Names of mappings, besides `page`, which always runs; empty for all.
    pub mappings: Vec<String>,
    /// A hybrid FTL instead of one with mappings.
    pub hybrid: Option<Layer>,
    /// The transit buffer before an FTL with mappings.
    pub transit: Option<TransitBuffer>,
    /// The chip; its number of blocks is computed.
    pub profile: Profile,
    /// How many such chips there are, as a stripe; at least 1.
    pub chips: u32,
    /// Spare pages in per cent of the logical ones.
    pub over_provisioning: u32,
    /// Bytes of the logical space; `None` for as much as the trace names.
    pub space_bytes: Option<u64>,
    /// Only pages that the trace reads or writes have a place on the chip, moved together.
    pub footprint: bool,
    /// Garbage collection moves the pages of a block in the order of their logical numbers.
    pub sorts_moves: bool,
    /// How garbage collection of an FTL with mappings chooses a block.
    pub victims: GcPolicy,
    /// Trims are volatile, where the FTL has such trims.
    pub volatile_trims: bool,
    /// How often the trace is replayed, at least once.
    pub passes: u32,
}

/// What a mapping costs in an FTL.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MappingRow {
    /// Its name.
    pub mapping: &'static str,
    /// Entries at the end: pages, nodes, extents or records.
    pub entries: u64,
    /// Bytes in use at the end; of containers of libraries a lower bound.
    pub bytes_used: u64,
    /// Bytes that it got, or its limit.
    pub bytes_reserved: u64,
    /// The most bytes that it used.
    pub bytes_peak: u64,
    /// Bytes in use for each of the least possible runs.
    pub bytes_per_run: Option<f64>,
    /// Bytes in use for each page that is mapped at the end.
    pub bytes_per_written_page: Option<f64>,
    /// Bytes in use, in per cent of `page`.
    pub percent_of_page: f64,
    /// Bytes in use, in per cent of `page-2`; absent if it could not run.
    pub percent_of_page_2: Option<f64>,
    /// Entries of tables for each request.
    pub probes_per_request: f64,
    /// Nodes of trees, or records, for each request.
    pub nodes_per_request: f64,
    /// Bytes moved for each request.
    pub moved_per_request: f64,
    /// Pages that the mapping read from flash of its own for each request.
    ///
    /// They are not among the operations of the chip; mispredictions are such reads.
    pub flash_reads_per_request: f64,
    /// Pages that the mapping wrote to flash of its own for each request.
    pub flash_writes_per_request: f64,
    /// Processor time of a request on this machine, the simulated chip included, by that of `page`.
    pub time_by_page: f64,
    /// Requests for each second of processor time, the simulated chip included.
    pub requests_per_second: f64,
    /// Logical pages for each second of processor time, the simulated chip included.
    pub pages_per_second: f64,
}

/// What a trace costs on an FTL.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceReport {
    /// The name of the file.
    pub trace: String,
    /// The key of its format.
    pub format: &'static str,
    /// The key of the chip.
    pub device: &'static str,
    /// The FTL: `page`, or a hybrid one such as `ftl:fast`.
    pub ftl: String,
    /// Its log blocks; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_blocks: Option<u32>,
    /// Blocks of its transit buffer; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_blocks: Option<u32>,
    /// Bytes of the maps of a hybrid FTL; absent with mappings, which have rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map_bytes: Option<u64>,
    /// The same in per cent of a page map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map_percent_of_page: Option<f64>,
    /// Chips, which are a stripe.
    pub chips: u32,
    /// Blocks of a chip.
    pub blocks: u32,
    /// Pages of a block of a chip.
    pub pages_per_block: u32,
    /// Bytes of a logical page.
    pub page_bytes: u64,
    /// Logical pages.
    pub logical_pages: u32,
    /// Spare pages in per cent of the logical ones, as built.
    pub over_provisioning: f64,
    /// How often the trace was replayed.
    pub passes: u32,
    /// The requests of one pass, each in exactly one count.
    pub account: Account,
    /// Requests of all passes that the FTL got.
    pub replayed: u64,
    /// Requests of all passes that it did not get, besides those refused in `account` and flushes.
    pub not_replayed: Vec<Refused>,
    /// Pages that are mapped at the end; absent with a hybrid FTL, which keeps no runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_pages: Option<u64>,
    /// Runs that no mapping can do without, at the end; absent with a hybrid FTL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_runs: Option<u64>,
    /// What happened on the chip.
    pub device_work: DeviceWork,
    /// The mappings, in the order of their list.
    pub mappings: Vec<MappingRow>,
    /// Mappings that could not run.
    pub left_out: Vec<LeftOut>,
}

/// How often [`replay_on_chip`] reads the file for each mapping and pass, and once before.
///
/// With a footprint it is read once more.
pub const fn readings_on_chip(mappings: usize, passes: u32, footprint: bool) -> u32 {
    1 + footprint as u32 + (mappings as u32 + 1) * passes
}

/// Names of the mappings that will run.
pub fn mappings_on_chip(names: &[String]) -> Result<Vec<&'static str>, LabError> {
    Ok(chosen(names)?.iter().map(|entry| entry.name).collect())
}

/// Replays a trace on an FTL, once for each mapping.
///
/// Refuses unknown names, chips whose pages can be replaced in place, and a space that is too large
/// for page numbers of 32 bits.
pub fn replay_on_chip(
    trace: &BlockTrace,
    setup: &DeviceSetup,
    progress: ReadProgress<'_>,
) -> Result<DeviceReport, LabError> {
    let account = trace.read(progress, &mut |_| {})?;
    let layout = Layout::of(&account);
    let layer = match setup.hybrid {
        Some(layer) => layer,
        None => {
            let layer = Layer::named(PAGE_LAYER)?;
            setup.transit.map_or(Ok(layer), |transit| layer.with_transit(transit))?
        }
    };
    let layer = layer.with_over_provisioning(setup.over_provisioning);
    let page_bytes = logical_page_bytes(&setup.profile.geometry) as u64;
    let pages = setup.space_bytes.unwrap_or(layout.bytes()).div_ceil(page_bytes).max(1);
    let mut place = Place { layout: &layout, page_bytes, pages, footprint: None };
    let touched;
    if setup.footprint {
        if pages > Footprint::PAGES_MAX {
            return Err(LabError(format!(
                "a space of {pages} pages of {page_bytes} bytes: --footprint takes at most {}",
                Footprint::PAGES_MAX
            )));
        }
        touched = place.touched(trace, &account, progress)?;
        place.footprint = Some(&touched);
    }
    let device = Device::of(setup, &layer, place.pages_on_chip())?;
    device.expect_memory()?;
    let replay = Replay { trace, setup, account: &account, place, device: &device };
    let report = DeviceReport {
        trace: trace.name(),
        format: trace.format().key,
        device: setup.profile.key,
        ftl: if setup.hybrid.is_some() { layer.name() } else { "page".into() },
        log_blocks: layer.log_blocks(),
        buffer_blocks: layer.buffer_blocks(),
        map_bytes: None,
        map_percent_of_page: None,
        chips: setup.chips,
        blocks: device.profile.geometry.blocks,
        pages_per_block: setup.profile.geometry.pages_per_block,
        page_bytes,
        logical_pages: device.logical_pages,
        over_provisioning: device.over_provisioning(),
        passes: setup.passes,
        account: account.clone(),
        replayed: 0,
        not_replayed: Vec::new(),
        written_pages: None,
        least_runs: None,
        device_work: DeviceWork::default(),
        mappings: Vec::new(),
        left_out: Vec::new(),
    };
    let report = if setup.hybrid.is_some() {
        let Hybrid { done, merges, not_replayed } = replay.run_hybrid(&layer, progress)?;
        let size = layer.sized(&device.profile, device.logical_pages);
        let map_bytes = layer.map_bytes(&device.profile, &size) as u64;
        DeviceReport {
            map_bytes: Some(map_bytes),
            map_percent_of_page: Some(100.0 * map_bytes as f64 / device.page_map_bytes()),
            replayed: done.replayed,
            not_replayed,
            device_work: DeviceWork {
                switch_merges: Some(merges.switch),
                partial_merges: Some(merges.partial),
                full_merges: Some(merges.full),
                ..done.work()
            },
            ..report
        }
    } else {
        replay.on_mappings(report, progress)?
    };
    let lost: u64 = report.not_replayed.iter().map(|refused| refused.requests).sum();
    let asked = u64::from(setup.passes) * (account.requests - account.refused() - account.flushes);
    assert_eq!(asked, report.replayed + lost, "a request was replayed twice or never");
    Ok(report)
}

/// The most pages of all chips together, before the first is programmed.
const PAGES_MAX: u64 = 1 << 29;

/// Bytes of memory that a page takes which is never programmed, with the tables of the FTL.
///
/// At most: 209 million pages took 9.8 bytes each over `ftl:page` on `slc`, and 5.9 on `mlc`.
const PAGE_MEMORY: u64 = 10;

/// The chips, and the logical pages on them.
struct Device {
    /// What the FTL sees: the stripe.
    profile: Profile,
    /// Each of the chips.
    chip: Profile,
    chips: u32,
    logical_pages: u32,
    /// The transit buffer of an FTL with mappings.
    buffer: Buffer,
}

impl Device {
    /// Chips with room for so many logical pages and the spare ones.
    fn of(setup: &DeviceSetup, layer: &Layer, pages: u64) -> Result<Self, LabError> {
        let DeviceSetup { profile, chips, .. } = setup;
        if profile.capabilities.rewrite {
            let key = profile.key;
            return Err(LabError(format!("{key} replaces pages in place: it needs no FTL")));
        }
        let too_large = || {
            let page_bytes = logical_page_bytes(&profile.geometry);
            LabError(format!(
                "{pages} pages of {page_bytes} bytes: an FTL numbers fewer than 2^32: choose larger pages, or one --volume"
            ))
        };
        let mut logical_pages = u32::try_from(pages).map_err(|_| too_large())?;
        let mut stripe = Profile {
            geometry: stripe_geometry(&profile.geometry, &profile.capabilities, *chips),
            capabilities: stripe_capabilities(&profile.capabilities, *chips),
            ..*profile
        };
        if setup.hybrid.is_some() {
            // A hybrid FTL maps whole blocks.
            logical_pages = logical_pages.max(stripe.geometry.pages_per_block);
        }
        let mut few: Vec<_> =
            (0..*chips).map(|_| SparseChip::new(profile.with_blocks(1))).collect();
        Stripe::new(&mut few).map_err(|error| LabError(format!("{}: {error}", profile.key)))?;
        let blocks = layer.blocks_needed(&stripe, logical_pages);
        let block_pages = layer::block_pages(&stripe);
        // Where cells are shared, a chip has more pages than are safe.
        let most_pages = stripe.geometry.pages_per_block.max(profile.geometry.pages_per_block);
        if u64::from(blocks) * u64::from(most_pages) >= u64::from(u32::MAX) {
            return Err(too_large());
        }
        stripe.geometry.blocks = blocks;
        Ok(Self {
            profile: stripe,
            chip: profile.with_blocks(blocks),
            chips: *chips,
            logical_pages,
            buffer: layer.buffer(logical_pages, block_pages),
        })
    }

    /// Refuses chips whose simulation would take all memory of a usual machine.
    fn expect_memory(&self) -> Result<(), LabError> {
        let Geometry { pages_per_block, blocks, page_bytes, .. } = self.chip.geometry;
        let pages = u64::from(pages_per_block) * u64::from(blocks) * u64::from(self.chips);
        if pages <= PAGES_MAX {
            return Ok(());
        }
        let gib = |bytes: u64| bytes >> 30;
        let (taken, most) = (gib(pages * PAGE_MEMORY), gib(PAGES_MAX * u64::from(page_bytes)));
        Err(LabError(format!(
            "chips of {pages} pages take up to {taken} GiB of memory, those of more than {most} GiB are not simulated: --footprint leaves out what the trace does not touch, --space the end of the space"
        )))
    }

    /// New chips.
    fn chips(&self) -> Vec<SparseChip> {
        (0..self.chips).map(|_| SparseChip::new(self.chip)).collect()
    }

    /// The chips as one. The error is why they make no stripe.
    fn stripe<'c>(&self, chips: &'c mut [SparseChip]) -> Result<Stripe<'c, SparseChip>, LabError> {
        let key = self.chip.key;
        Stripe::new(chips).map_err(|error| LabError(format!("{key}: {error}")))
    }

    fn space(&self) -> Space {
        space_of(&self.profile.geometry, &self.profile.capabilities, self.logical_pages)
    }

    /// Bytes of a page map.
    fn page_map_bytes(&self) -> f64 {
        4.0 * f64::from(self.logical_pages)
    }

    /// Spare pages in per cent of the logical ones.
    fn over_provisioning(&self) -> f64 {
        let Geometry { pages_per_block, blocks, .. } = self.profile.geometry;
        let safe = self.profile.capabilities.pairing.safe_pages(pages_per_block);
        let physical = f64::from(safe) * f64::from(blocks);
        100.0 * (physical / f64::from(self.logical_pages) - 1.0)
    }
}

struct Replay<'r> {
    trace: &'r BlockTrace,
    setup: &'r DeviceSetup,
    account: &'r Account,
    place: Place<'r>,
    device: &'r Device,
}

impl Replay<'_> {
    /// Replays all passes on `chips`, as new. The inner error is why the mapping cannot run.
    fn run(
        &self,
        chips: &mut [SparseChip],
        entry: &Entry,
        length: usize,
        memory: &mut [u8],
        progress: ReadProgress<'_>,
    ) -> Result<Result<(Mapped, Vec<Refused>), String>, LabError> {
        let space = self.device.space();
        let mut unlimited = nandina_ftl::mapping::emt::Emt::new(space, Runs::new(length));
        let mut built;
        let map: &mut dyn Mapping = if memory.is_empty() {
            &mut unlimited
        } else {
            match (entry.build)(space, memory) {
                Ok(map) => built = map,
                Err(refusal) => return Ok(Err(refusal.to_string())),
            }
            &mut *built
        };
        let victims = self.setup.victims;
        let Profile { geometry, capabilities, .. } = self.device.profile;
        let choices = Choices { victims, buffer: self.device.buffer };
        let mut ram = vec![0; ram_needed_for(&geometry, &capabilities, &choices)];
        chips.iter_mut().for_each(SparseChip::renew);
        let stripe = self.device.stripe(chips)?;
        let logical_pages = self.device.logical_pages;
        let mut ftl = Ftl::format_with(stripe, map, logical_pages, choices, &mut ram)
            .map_err(|error| LabError(format!("{}: {error}", self.setup.profile.key)))?;
        let block_pages = self.device.profile.geometry.pages_per_block as usize;
        let mut order = vec![0; if self.setup.sorts_moves { block_pages } else { 0 }];
        ftl.sort_moves(&mut order);
        let (done, not_replayed) = self.drive(&mut ftl, progress)?;
        Ok(done.map(|done| (Mapped::new(entry.name, *ftl.mapping(), done), not_replayed)))
    }

    /// Replays on every mapping that was chosen, and completes the report.
    fn on_mappings(
        &self,
        report: DeviceReport,
        progress: ReadProgress<'_>,
    ) -> Result<DeviceReport, LabError> {
        let (device, entries) = (self.device, chosen(&self.setup.mappings)?);
        let scout = by_name(SCOUT).expect("the list has the scout");
        // All run on the same chips, for which the scout has taken the memory that they need.
        let mut chips = device.chips();
        let (scouted, not_replayed) =
            self.run(&mut chips, scout, usize::MAX, &mut [], progress)?.map_err(LabError)?;
        let runs = 2 * (scouted.bytes_peak as usize / Runs::ENTRY) + 1000;
        let (mut ran, mut left_out) = (Vec::new(), Vec::new());
        for entry in entries {
            let done = match memory(entry, device.space(), runs) {
                Ok(mut memory) => {
                    let length = memory.len();
                    self.run(&mut chips, entry, length, &mut memory, progress)?
                }
                Err(reason) => Err(reason),
            };
            match done {
                Ok((done, _)) if done.is_as(&scouted) => ran.push(done),
                Ok((done, _)) => {
                    return Err(LabError(format!(
                        "{} and {SCOUT} differ in content or chip operations: this is an error in one",
                        done.name
                    )));
                }
                Err(reason) => left_out.push(LeftOut { mapping: entry.name, reason }),
            }
        }
        let of = |name| ran.iter().find(|mapped| mapped.name == name);
        let page_ns = of(PAGE).map_or(1, |mapped| mapped.done.nanoseconds);
        let page_2_bytes = of(PAGE_2).map(|mapped| mapped.bytes_used);
        let beside = Beside { page_ns, page_bytes: device.page_map_bytes(), page_2_bytes };
        Ok(DeviceReport {
            replayed: scouted.done.replayed,
            not_replayed,
            written_pages: Some(scouted.content.0.units),
            least_runs: Some(scouted.content.1),
            device_work: scouted.done.work(),
            mappings: ran.iter().map(|done| done.row(&beside)).collect(),
            left_out,
            ..report
        })
    }

    /// The same on a hybrid FTL. Returns its merges, too.
    fn run_hybrid(&self, layer: &Layer, progress: ReadProgress<'_>) -> Result<Hybrid, LabError> {
        let failed = |error: &dyn Display| LabError(format!("{}: {error}", layer.name()));
        let size = layer.sized(&self.device.profile, self.device.logical_pages);
        let (mut chips, mut room) = (self.device.chips(), Room::default());
        let mut stripe = self.device.stripe(&mut chips)?;
        let opened = layer.open(&size, &mut stripe, &mut room, true);
        let mut disk = opened.map_err(|error| failed(&error))?;
        let (done, not_replayed) = self.drive(disk.ftl(), progress)?;
        let done = done.map_err(|error| failed(&error))?;
        let merges = disk.inspect().merges().unwrap_or_default();
        Ok(Hybrid { done, merges, not_replayed })
    }

    /// Does the requests of all passes on an FTL. The inner error is why one failed.
    fn drive<L: OnChips>(
        &self,
        ftl: &mut L,
        progress: ReadProgress<'_>,
    ) -> Result<(Result<Done, String>, Vec<Refused>), LabError>
    where
        L::Error: Display,
    {
        let mut host = Host::new(ftl, self.setup.volatile_trims);
        let mut batch = Vec::with_capacity(BATCH);
        let mut not_replayed: Vec<Refused> = Vec::new();
        for _ in 0..self.setup.passes {
            self.trace.read_again(self.account, progress, &mut |request| {
                match self.place.pages_of(request) {
                    Ok(Some(request)) => batch.push(request),
                    Ok(None) => {}
                    Err(reason) => Refused::count(&mut not_replayed, reason),
                }
                if batch.len() == BATCH {
                    host.run(&batch);
                    batch.clear();
                }
            })?;
        }
        host.run(&batch);
        Ok((host.finish(), not_replayed))
    }
}

/// What a hybrid FTL made of the trace.
struct Hybrid {
    done: Done,
    merges: Merges,
    not_replayed: Vec<Refused>,
}

/// What a mapping is compared with.
struct Beside {
    /// Processor time of `page`.
    page_ns: u64,
    page_bytes: f64,
    /// Absent if it could not run.
    page_2_bytes: Option<u64>,
}

/// What one mapping made of the trace.
struct Mapped {
    name: &'static str,
    entries: u64,
    bytes_used: u64,
    bytes_reserved: u64,
    bytes_peak: u64,
    map_work: Work,
    content: (Tally, u64),
    done: Done,
}

impl Mapped {
    fn new(name: &'static str, map: &dyn Mapping, done: Done) -> Self {
        let bytes = map.bytes();
        Self {
            name,
            entries: map.entries() as u64,
            bytes_used: bytes.used as u64,
            bytes_reserved: bytes.reserved as u64,
            bytes_peak: bytes.peak as u64,
            map_work: map.work(),
            content: content(map),
            done,
        }
    }

    /// Whether chip and content are those of another run.
    fn is_as(&self, other: &Self) -> bool {
        self.content == other.content && self.done.is_as(&other.done)
    }

    fn row(&self, beside: &Beside) -> MappingRow {
        let per = |sum: u64, of: u64| (of > 0).then(|| sum as f64 / of as f64);
        let each = |sum: u64| per(sum, self.done.replayed).unwrap_or(0.0);
        let seconds = self.done.nanoseconds.max(1) as f64 / 1e9;
        let work = self.map_work;
        MappingRow {
            mapping: self.name,
            entries: self.entries,
            bytes_used: self.bytes_used,
            bytes_reserved: self.bytes_reserved,
            bytes_peak: self.bytes_peak,
            bytes_per_run: per(self.bytes_used, self.content.1),
            bytes_per_written_page: per(self.bytes_used, self.content.0.units),
            percent_of_page: 100.0 * self.bytes_used as f64 / beside.page_bytes,
            percent_of_page_2: beside
                .page_2_bytes
                .map(|page_2| 100.0 * self.bytes_used as f64 / page_2 as f64),
            probes_per_request: each(work.probes),
            nodes_per_request: each(work.nodes),
            moved_per_request: each(work.moved),
            flash_reads_per_request: each(work.flash_reads),
            flash_writes_per_request: each(work.flash_writes),
            time_by_page: self.done.nanoseconds as f64 / beside.page_ns.max(1) as f64,
            requests_per_second: self.done.replayed as f64 / seconds,
            pages_per_second: self.done.pages as f64 / seconds,
        }
    }
}
