//! The settings of a swarm's episode: chip, index, faults and their frequency.

use nandina::blocks::TRACKED_MAX;
use nandina::flash::profile::{Ecc, PROFILES};
use nandina::flash::{Geometry, Needs, Profile};
use nandina::log::checkpoint::EVERY_MAX;
use nandina::{GcPolicy, LivenessTracking, Options, RelocationMode, System, WearPolicy};
use nandina_sim::{Chip, Faults};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::layer::{Layer, block_pages};

use super::device::{fitted, suited};
use super::hardships::Hardships;

/// Blocks that an index takes for its checkpoints.
const CHECKPOINT_BLOCKS: u32 = 4;

/// Small chips of every class: the profiles with other sizes.
pub fn chips() -> Vec<Profile> {
    let small = |profile: &Profile| {
        let Geometry { page_bytes, spare_bytes, pages_per_block, .. } = profile.geometry;
        let geometry = Geometry {
            page_bytes: page_bytes.min(1024),
            spare_bytes: spare_bytes.min(64),
            pages_per_block: pages_per_block.min(24),
            blocks: 24,
        };
        let ecc = Ecc { codeword_bytes: profile.ecc.codeword_bytes.min(512), ..profile.ecc };
        Profile { geometry, ecc, ..*profile }
    };
    PROFILES.iter().map(small).collect()
}

/// Derives a seed for the write buffer.
///
/// So the episodes that tests and documents name have no write buffer.
const APART: u64 = 0x0077_7269_7465_721D;

/// Derives a seed for hardships.
///
/// So an episode without any stays the one that its seed named before.
const HARD: u64 = 0x6861_7264_7368_6970;

/// Derives a seed for a small table of mappings, or a small directory.
///
/// So the episodes that tests name keep the default table.
const SMALL: u64 = 0x0073_6D61_6C6C_0003;

/// Derives a seed for nodes in RAM and a journal.
const NODES: u64 = 0x6E6F_6465_7300_0004;

/// Derives a seed for where values are.
const VALUES: u64 = 0x7661_6C75_6573_0005;

/// Derives a seed for small pages.
///
/// So the rest of an episode is as its seed named it before.
const NARROW: u64 = 0x6E61_7272_6F77_0001;

/// Names the draw of whether a narrow chip has many blocks.
const MANY: u64 = 0x6D61_6E79_0000_0001;

/// Small pages, in which a node has few records: the trees become high.
fn narrow(profile: &mut Profile, random: &mut ChaCha8Rng) {
    let page_bytes = random.random_range(40..80) * 4;
    profile.geometry.page_bytes = page_bytes.min(profile.geometry.page_bytes);
    profile.ecc.codeword_bytes = profile.ecc.codeword_bytes.min(profile.geometry.page_bytes);
}

/// The settings of an episode, drawn at its start.
pub(super) struct Settings {
    pub chip: Chip,
    pub options: Options,
    /// Logical pages of the FTL; 0 without one.
    pub logical_pages: u32,
    pub records: u32,
    /// Chip operations of a session before its cut, at most; 0: no cuts.
    pub cut_within: u64,
    pub remove_percent: u32,
    /// Each opening has other options.
    pub changed: bool,
    /// Changes from one format over the index to the next, about; 0: none.
    pub format_within: u32,
}

/// A frequency: never, or one in 8 up to one in 20,000, small and large alike.
pub(super) fn frequency(random: &mut ChaCha8Rng) -> u32 {
    if random.random_range(0..3) > 0 {
        return 0;
    }
    8 << random.random_range(0..12)
}

impl Settings {
    /// Draws the settings of the episode of `seed`, on a chip or on an FTL.
    pub fn choose<S: System>(
        random: &mut ChaCha8Rng,
        seed: u64,
        hard: Hardships,
        layer: Option<Layer>,
    ) -> Self {
        // No chip replaces pages atomically by itself: `suited` makes it one that does.
        let needs = Needs { atomic_rewrite: false, ..S::DESCRIPTION.needs };
        let can = |chip: &Profile| match layer {
            None => needs.missing(&chip.capabilities).is_none(),
            Some(layer) => layer.size(&chip.with_blocks(1000)).is_ok(),
        };
        let chips: Vec<_> = chips().into_iter().filter(can).collect();
        let mut profile = chips[random.random_range(0..chips.len())];
        let checkpoints = random.random_bool(0.5).then(|| random.random_range(1..=EVERY_MAX));
        let taken = if checkpoints.is_some() { CHECKPOINT_BLOCKS } else { 0 };
        profile.geometry.blocks = random.random_range(12..40) + taken;
        profile.endurance = random.random_range(20..2_000);
        // Some makers permit more bad blocks: then failures do not wear the chip out.
        if random.random_range(0..2) == 0 {
            profile.capabilities.bad_blocks_per_mille = random.random_range(1..250);
        }
        let mut few = ChaCha8Rng::seed_from_u64(seed ^ NARROW);
        let is_narrow = hard.narrow && layer.is_none() && few.random_bool(0.5);
        if is_narrow {
            narrow(&mut profile, &mut few);
        }
        // So many that a checkpoint may take several.
        let mut many = ChaCha8Rng::seed_from_u64(seed ^ MANY);
        let stores = S::DESCRIPTION.checkpoints && checkpoints.is_some();
        let has_many = is_narrow && stores && many.random_bool(0.5);
        if has_many {
            profile.geometry.blocks += many.random_range(20..200);
        }
        let mut logical_pages = 0;
        let profile = match layer {
            None => suited::<S>(profile),
            // The index has so many blocks, the chip as many as the FTL needs for them, or a few
            // more.
            Some(layer) => {
                logical_pages = profile.geometry.blocks * block_pages(&profile);
                let needed = layer.blocks_needed(&profile, logical_pages);
                profile.with_blocks(needed + random.random_range(0..4))
            }
        };
        let silent_programs = frequency(random);
        let silent_erases = frequency(random);
        // An FTL does not read its programs back: it needs a chip that reports failures.
        let silent = |often: u32| if layer.is_some() { 0 } else { often };
        let (silent_programs, silent_erases) = (silent(silent_programs), silent(silent_erases));
        let mut harder = ChaCha8Rng::seed_from_u64(seed ^ HARD);
        let mut drawn = |hardship| harder.random_bool(0.6) && hardship;
        let (unstable, errors, changed, formats) =
            (drawn(hard.unstable), drawn(hard.errors), drawn(hard.changed), drawn(hard.formats));
        let faults = Faults {
            unstable_pages: if unstable { 1 << harder.random_range(0..3) } else { 0 },
            device_errors: if errors { 32 << harder.random_range(0..9) } else { 0 },
            program_failures: frequency(random) * 16,
            erase_failures: frequency(random) * 4,
            // Cells that were not erased and read differently the next time cannot be detected by
            // reading them back.
            silent_programs: if unstable { 0 } else { silent_programs * 16 },
            silent_erases: if unstable { 0 } else { silent_erases * 4 },
            disturbing_reads: frequency(random),
            retention_days: frequency(random),
            within_ecc: true,
            wear_out: random.random_range(0..4) == 0,
            // No system rewrites pages.
            ..Faults::default()
        };
        let mut chip = Chip::with_seed(profile, seed);
        let bad = profile.capabilities.bad_blocks_max(profile.geometry.blocks);
        chip.spoil_blocks(random.random_range(0..=bad));
        chip.set_faults(faults);
        let least = S::DESCRIPTION.buffers_min;
        // Drawn separately: an episode without a write buffer stays the one that its seed named
        // before.
        let mut apart = ChaCha8Rng::seed_from_u64(seed ^ APART);
        let write_buffer = apart.random_range(0..=2);
        let searched = apart.random_bool(0.3);
        let options = Options {
            page_buffers: Some(random.random_range(least..least + 4)),
            moves: if random.random() { RelocationMode::Together } else { RelocationMode::Alone },
            verify: silent_programs + silent_erases > 0 || random.random_range(0..4) == 0,
            checkpoints,
            victims: match random.random_range(0..4) {
                0 => GcPolicy::CostBenefit,
                1 => GcPolicy::Tracked(random.random_range(1..=TRACKED_MAX)),
                _ => GcPolicy::Fewest,
            },
            wear: [None, Some(WearPolicy::Counted), Some(WearPolicy::Circular)]
                [random.random_range(0..3)],
            read_cache: random.random_range(0..4),
            // Larger than an operation, smaller, and none.
            write_cache: [0, 0, 1, 3, 20][random.random_range(0..5)],
            write_buffer,
            validity: [LivenessTracking::Marked, LivenessTracking::Searched][usize::from(searched)],
            write_buffer_changes: apart.random_bool(0.3).then(|| apart.random_range(1..40)),
            write_buffer_ticks: apart.random_bool(0.5).then(|| apart.random_range(1..4)),
            ..Options::new(4, random.random_range(0..48))
        };
        let mut options = fitted::<S>(options);
        // Checkpoints of such tables have as many pages as those of still smaller ones, and a block
        // has room for them.
        let mut small = ChaCha8Rng::seed_from_u64(seed ^ SMALL);
        if options.checkpoints.is_some() && (is_narrow || changed && small.random_bool(0.25)) {
            options.mapping_bytes = small.random_range(8..64);
            if has_many {
                options.mapping_bytes = many.random_range(8..600);
            }
        }
        if S::DESCRIPTION.has_directory() && small.random_bool(0.25) {
            options.leaves = Some(small.random_range(2..60));
        }
        if S::DESCRIPTION.has_arena() {
            let mut nodes = ChaCha8Rng::seed_from_u64(seed ^ NODES);
            // A node is smaller than a page.
            let node_bytes = profile.geometry.page_bytes as usize + 16;
            options.fanout = nodes.random_bool(0.5).then(|| nodes.random_range(4..40));
            options.arena_bytes =
                nodes.random_bool(0.5).then(|| node_bytes * nodes.random_range(11..60));
            options.journal_pages = nodes.random_bool(0.5).then(|| nodes.random_range(1..40));
            options.commit_step = nodes.random_bool(0.5).then(|| nodes.random_range(1..4));
            let mut values = ChaCha8Rng::seed_from_u64(seed ^ VALUES);
            options.journal_values = Some(values.random_bool(0.5));
        }
        Self {
            chip,
            options,
            logical_pages,
            records: 1 << random.random_range(3..13),
            cut_within: if random.random_range(0..5) == 0 {
                0
            } else {
                16 << random.random_range(0..8)
            },
            remove_percent: random.random_range(0..60),
            changed,
            format_within: if formats { 64 << harder.random_range(0..4) } else { 0 },
        }
    }
}
