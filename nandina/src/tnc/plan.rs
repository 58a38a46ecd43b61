//! The system: its options, its RAM, and the most that any call can cost.

use super::bounds::{self, Size, change_nodes, commit_pages, height_max};
use super::changes::changes_in;
use super::form::{self, Form, SLOTS_MIN};
use super::live::Live;
use super::mount::is_journal;
use super::opened::AT_ONCE;
use super::room::{Means, Writing};
use super::values::record_at;
use super::{Tnc, TncIndex};
use crate::blocks::{GcPolicy, LivenessTracking, WearPolicy};
use crate::engine::{
    Cost, Description, Eviction, KEY_BYTES_MAX, Nodes, Options, Packed, PageSharing, Plan, System,
    bounded, checkpoints_refused, ending_cost, unusable, unusable_sizes,
};
use crate::error::{BadOption, OpenError};
use crate::flash::{Capabilities, Flash, Geometry};
use crate::gc::{Extent, MOVED_ALONG_MAX, room_to_fail};
use crate::log::Dimensions;
use crate::log::{Frames, LOOKS, checkpoint, layout_of};
use crate::node::{Medium, Shape};
use crate::space::{self, Buffers};

/// How the bytes of the caller are divided.
pub struct Parts {
    pub arena: usize,
    pub live: usize,
    pub group: usize,
    pub buffers: Buffers,
}

/// The parts of RAM that the options request.
pub fn parts_of(form: &Form, page_bytes: u32, options: &Options) -> Parts {
    Parts {
        arena: form.arena_bytes(options),
        live: form.live_bytes(),
        group: form.group_bytes(page_bytes, options),
        buffers: Buffers {
            frames: page_buffers(options),
            verify: options.verify,
            beside: options.verify,
            reads: options.read_cache,
            writes: 0,
            validity: options.validity,
            victims: options.victims,
            wear: wear_of(options),
            keeps_pages: true,
            mapping_bytes: 0,
        },
    }
}

fn page_buffers(options: &Options) -> usize {
    options.page_buffers.unwrap_or(Tnc::DESCRIPTION.buffers_default)
}

fn wear_of(options: &Options) -> WearPolicy {
    options.wear.unwrap_or(WearPolicy::Counted)
}

/// Pages of each checkpoint; 0 if there are none.
pub fn checkpoint_pages(geometry: &Geometry, options: &Options, block_pages: u32) -> u32 {
    if options.checkpoints.is_none() {
        return 0;
    }
    let (layout, live) = (layout_of(geometry), Form::new(geometry, options).live_bytes());
    checkpoint::parts::<Live<'_>>(geometry, &layout, block_pages, live).unwrap_or(0)
}

/// What the pages of such an index record.
pub const fn medium_of(chip: &Dimensions, options: &Options) -> Medium {
    Medium {
        system: Tnc::DESCRIPTION.code,
        key_bytes: options.key_bytes as u16,
        value_bytes: options.value_bytes as u16,
        blocks: chip.geometry.blocks,
        pages_per_block: chip.geometry.pages_per_block as u16,
        checkpoints: options.checkpoints.is_some(),
        appended: false,
        replaced: false,
        atomic: false,
    }
}

/// Checks the settings of an index.
pub fn check_options<E>(
    chip: &Dimensions,
    options: &Options,
    ram_bytes: usize,
) -> Result<(), OpenError<E>> {
    let geometry = &chip.geometry;
    let bad = |reason| Err(OpenError::BadOption { reason });
    if let Some(reason) = unusable_sizes(options) {
        return bad(reason);
    }
    let least = Tnc::DESCRIPTION.buffers_min;
    if !(least..=Frames::COUNT_MAX).contains(&page_buffers(options)) {
        return bad(BadOption::PageBuffers);
    }
    if let Some(reason) = unusable(geometry) {
        return bad(reason);
    }
    if options.write_cache > 0 {
        return bad(BadOption::NoPaths);
    }
    if matches!(options.victims, GcPolicy::Tracked(_)) {
        return bad(BadOption::TrackedWithoutPaths);
    }
    if options.validity == LivenessTracking::Searched && !options.validity.searches() {
        return bad(BadOption::PaperModesNotBuilt);
    }
    if options.read_cache > 0 && !cfg!(feature = "read-cache") {
        return bad(BadOption::ReadCacheNotBuilt);
    }
    if options.journal_values == Some(true) && !cfg!(feature = "journal-values") {
        return bad(BadOption::JournalValuesNotBuilt);
    }
    if options.read_cache > u16::MAX.into() {
        return bad(BadOption::CachePages);
    }
    if options.write_buffer > u16::MAX.into() {
        return bad(BadOption::WriteBufferPages);
    }
    if options.write_buffer_changes == Some(0) || options.write_buffer_ticks == Some(0) {
        return bad(BadOption::WriteBufferBounds);
    }
    if options.eviction != Eviction::All {
        return bad(BadOption::NoEviction);
    }
    if options.rebalances {
        return bad(BadOption::NoRebalancing);
    }
    if options.journal_pages == Some(0) {
        return bad(BadOption::JournalPages);
    }
    if options.commit_step == Some(0) {
        return bad(BadOption::CommitStep);
    }
    match options.shrink_percent {
        Some(0 | 101..) => return bad(BadOption::ShrinkPercent),
        Some(_) if !cfg!(feature = "paper-modes") => return bad(BadOption::PaperModesNotBuilt),
        _ => {}
    }
    if options.fanout.is_some_and(|fanout| fanout < 4) {
        return bad(BadOption::Fanout);
    }
    let form = Form::new(geometry, options);
    if options.write_buffer > 0 && !cfg!(feature = "write-buffer") {
        return bad(BadOption::WriteBufferNotBuilt);
    }
    let group = form.group_bytes(geometry.page_bytes, options);
    if options.write_buffer > 0 && bounds::group_max(&form, group, options) == 0 {
        return bad(BadOption::WriteBufferTooSmall);
    }
    if !form.can_point() {
        return bad(BadOption::Pages);
    }
    let shape = Shape::sorted(options.key_bytes, options.value_bytes);
    if !form.can_split() {
        return Err(OpenError::RecordTooLarge {
            record_bytes: shape.record_bytes(),
            leaf_bytes: form.node_bytes,
        });
    }
    if let Some(reason) = checkpoints_refused(options, wear_of(options) == WearPolicy::Counted) {
        return bad(reason);
    }
    if options.checkpoints.is_some() && checkpoint_pages(geometry, options, chip.block_pages) == 0 {
        return bad(BadOption::CheckpointTooLarge);
    }
    if form.slots(form.arena_bytes(options)) < SLOTS_MIN {
        return bad(BadOption::ArenaBytes { needed: form.arena_bytes_min() });
    }
    let needed = Tnc::ram_needed(geometry, options);
    if ram_bytes < needed {
        return Err(OpenError::RamTooSmall { needed, given: ram_bytes });
    }
    Ok(())
}

impl System for Tnc {
    const DESCRIPTION: Description = Description {
        key: "tnc",
        name: "TNC",
        summary: "a change is a record in the journal; changed nodes are written together",
        source: "TNC paper (Havasi, SOFSEM 2011), sections 6 and 7",
        code: 8,
        buffers_min: 2,
        buffers_default: 2,
        checkpoints: true,
        checkpoints_at_close: true,
        updates: <Self as space::Kind>::UPDATES,
        ..Description::EMPTY
    };

    const NODES: Option<Nodes> = Some(Nodes {
        extent: |area, _, _| form::extent(area.bytes.len(), 1, 0),
        address_in: |_| None,
        range_in: |_, _| None,
        trims: false,
        sharing: PageSharing::ByLevel,
        path_pages: |_| 1,
    });

    const PACKED: Option<Packed> = Some(Packed {
        places: form::places_in,
        nodes: form::nodes_in,
        node_bytes: form::node_bytes_in,
        node_at: form::node_in,
        is_journal,
        changes: changes_in,
        apart: form::apart_in,
        numbers: form::numbers_in,
        record_at,
    });

    type Engine<'b, F: Flash> = TncIndex<'b, F>;

    fn ram_needed(geometry: &Geometry, options: &Options) -> usize {
        let options = Options {
            key_bytes: options.key_bytes.min(KEY_BYTES_MAX),
            value_bytes: options.value_bytes.min(u16::MAX.into()),
            page_buffers: Some(page_buffers(options).min(Frames::COUNT_MAX)),
            read_cache: options.read_cache.min(u16::MAX.into()),
            write_buffer: options.write_buffer.min(u16::MAX.into()),
            ..*options
        };
        let geometry = &bounded(geometry);
        let form = Form::new(geometry, &options);
        let parts = parts_of(&form, geometry.page_bytes, &options);
        parts.arena
            + parts.live
            + parts.group
            + space::ram_needed(geometry, &layout_of(geometry), &parts.buffers)
    }

    fn plan(
        geometry: &Geometry,
        capabilities: &Capabilities,
        options: &Options,
        records: u32,
    ) -> Result<Plan, OpenError<core::convert::Infallible>> {
        let chip = Dimensions::new(geometry, capabilities);
        check_options(&chip, options, usize::MAX)?;
        let form = Form::new(geometry, options);
        let slots = form.slots(form.arena_bytes(options));
        let size = Size::of(&form, records.saturating_add(1));
        let reserve = capabilities.bad_blocks_max(geometry.blocks).min(geometry.blocks);
        let block_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
        let parts = checkpoint_pages(geometry, options, block_pages);
        let area_blocks = parts.div_ceil(block_pages);
        let area = if parts > 0 { checkpoint::area_blocks(area_blocks) } else { 0 };
        let blocks = geometry.blocks.saturating_sub(reserve + area);
        let extent = Extent { block_pages, blocks };
        let group_bytes = form.group_bytes(geometry.page_bytes, options);
        let (commit_step, group_pages) =
            (bounds::commit_step(options), bounds::group_pages(&form, group_bytes, options));
        let means = Means { form, extent, slots, commit_step, group_pages };
        let group = bounds::group_max(&form, group_bytes, options);
        let waits = options.write_buffer > 0;
        let batch_max = if waits { form.entries().min(group) } else { form.entries() } as u32;
        means.check_least()?;
        let too_high = size.too_high || size.height > height_max(slots);
        let values = if form.apart() { records } else { 0 };
        let nodes = size.leaves.saturating_add(size.inner_nodes).saturating_add(values);
        let limits = means.limits(size.height, size.inner_nodes);
        let fits = !too_high && nodes <= limits.nodes;
        // Pages of full nodes, and of values.
        let full = (nodes - values).div_ceil(form.per_page() as u32);
        let mut valid_pages = full + values.div_ceil(form.entries() as u32);
        if nodes > limits.nodes {
            // As many pages as the nodes and values count for, to be compared with the limit.
            valid_pages = valid_pages.max(nodes.div_ceil(means.weight()));
        }
        let limit_pages = means.limit_pages(&limits);
        let height = u64::from(size.height);
        let limits = means.limits(size.height, if fits { size.inner_nodes } else { 1 });
        let dirty = means.dirty_max(size.height);
        let commit = u64::from(commit_pages(&form, dirty)) + u64::from(group_pages);
        let value_read = u64::from(form.apart());
        let (blocks, block) = (u64::from(geometry.blocks), u64::from(block_pages));
        let checked = 1 + u64::from(options.verify);
        let erase = |programs: u64| programs / block + 2;
        // Nodes of the path, and two neighbours of each.
        let journal_pages = group.div_ceil(form.entries()).max(1) as u64;
        let programs = 1 + journal_pages;
        let path = Cost { reads: 3 * height + value_read, programs, erases: erase(programs) };
        let whole = Cost { reads: 0, programs: commit, erases: erase(commit) };
        let spare = Cost { reads: 8 * height, programs: 4 * (height + 1), erases: 4 };
        // Any block is emptied. A value is read twice, and its leaf is looked for twice.
        let looks = 2 + height + value_read * (2 + height);
        let in_block = block_pages * form.numbers() as u32;
        let emptied = means.pages_of_victim(in_block, size.height, size.inner_nodes).0;
        let emptied = u64::from(emptied) + value_read * block;
        let any = Cost {
            reads: 2 * (u64::from(in_block) + block) * looks,
            programs: emptied + block,
            erases: erase(emptied + 2 * block),
        };
        // A victim that gains room has no more nodes than the mean, and is emptied by fewer pages
        // than a block has.
        let in_victim = u64::from(means.nodes_in_victim(&limits, size.height));
        let victim = match options.victims {
            GcPolicy::Fewest => {
                Cost { reads: 2 * (in_victim + block) * looks, programs: 2 * block, erases: 4 }
            }
            _ => any,
        };
        let collected = |pages: u32| {
            let rounds = u64::from(pages.div_ceil(extent.gain()));
            any.and(1, any).and(rounds, victim)
        };
        let change = path
            .and(2, whole)
            .and(3, spare)
            .and(1, collected(limits.room_pages - limits.reserve_pages));
        let short = limits.room_pages
            + room_to_fail(0, reserve, block_pages)
            + 2 * area_blocks * block_pages;
        let after_cuts = path.and(2, whole).and(3, spare).and(1, collected(short));
        // The nodes that a mount reads.
        let leaves = if form.apart() { size.leaves } else { 0 };
        let nodes = if fits { size.inner_nodes + leaves } else { geometry.pages() };
        let journal = u64::from(bounds::journal_max(options));
        // Changes of each page of the journal: in slots, together, or of a batch.
        let in_slots = u32::from(form.changes_by_one(capabilities, options));
        let in_ram = (means.dirty_max(size.height) / change_nodes(size.height)).max(1) as u32;
        let changes = match waits {
            true => batch_max,
            false => in_slots.max(batch_max.min(in_ram)),
        };
        let changes = u64::from(changes.max(1));
        // A lower tree may have steps where the planned one has none.
        let beside = (1..=size.height)
            .map(|height| means.blocks_beside(height) + means.blocks_of_step(height, batch_max))
            .max();
        let journal_blocks = journal / block + u64::from(beside.unwrap_or(0)) + 2;
        // Where the last commit may be torn, the blocks of the journal and those before them are
        // looked for five times, several at once, and three pages of an erased block are read.
        let at_once = AT_ONCE as u64;
        let looks = 1 + 5 * ((journal_blocks + 2) / at_once + 1);
        let reads = 3 * blocks * looks
            + journal_blocks * (2 * LOOKS + 2 * block)
            + 2 * u64::from(nodes)
            + journal * (1 + (3 * height + value_read) * changes);
        // A mount that settles commits. Then it collects garbage, to gain the room that a series of
        // cuts has used up.
        let (reads, erases) = match parts {
            0 => (reads, 0),
            _ => (reads + checkpoint::search_in_vain(parts, block_pages), 2),
        };
        let open = Cost { reads, programs: 0, erases }.and(1, after_cuts);
        Ok(Plan {
            ram_bytes: Self::ram_needed(geometry, options),
            height: size.height.min(height_max(slots)),
            valid_pages,
            limit_pages,
            fits,
            open: checked_cost(open, checked),
            get: Cost { reads: height + value_read, programs: 0, erases: 0 },
            change: checked_cost(change, checked),
            change_after_cuts: checked_cost(after_cuts, checked),
            // The commit and garbage collection come before a checkpoint.
            close: ending_cost(
                (parts, false),
                block_pages,
                options.verify,
                wear_of(options).reads_by_erase(),
            )
            .and(u64::from(parts > 0), checked_cost(after_cuts, checked)),
            gc_step_least: means.move_cost(
                size.height,
                MOVED_ALONG_MAX,
                &Writing {
                    verify: options.verify,
                    wear: wear_of(options),
                    checkpoints: options.checkpoints.is_some(),
                },
            ),
        })
    }
}

/// The cost where each program is read back.
const fn checked_cost(cost: Cost, checked: u64) -> Cost {
    Cost { reads: cost.reads + (checked - 1) * cost.programs, ..cost }
}
