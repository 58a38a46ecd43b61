//! Whether records fit, as far as it is known before there is an index.
//!
//! It puts the limits of a plan into words, and refuses work at once that would fail in the middle
//! of a run.

use nandina::flash::{Geometry, Missing, Profile};
use nandina::{OpenError, Options, Plan, System, plan};

/// What a system needs of a chip that does not have it, and what helps.
pub fn lack(missing: Missing) -> String {
    match missing {
        Missing::Rewrite => format!("{missing}; over an FTL, such as ftl:fast, it runs there"),
        _ => missing.to_string(),
    }
}

/// Why records do not fit on a chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misfit {
    /// Pages, or the RAM for nodes, have no room for a tree of more levels than this.
    TooHigh {
        /// The most levels.
        height: u8,
        /// The nodes of the system are in RAM.
        in_ram: bool,
    },
    /// More pages would be valid than may be.
    Full {
        /// Pages that would be valid.
        valid_pages: u32,
        /// Pages that may be valid.
        limit_pages: u32,
    },
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooHigh { height, in_ram: true } => write!(
                f,
                "nodes of this size, or the RAM for them, allow no tree higher than {height}: choose a larger \
                 --fanout, more --arena-bytes or fewer records"
            ),
            Self::TooHigh { height, in_ram: false } => write!(
                f,
                "a page of this size cannot hold a tree higher than {height}: choose a --device with larger \
                 pages or fewer records"
            ),
            Self::Full { valid_pages, limit_pages } => write!(
                f,
                "{valid_pages} pages would be valid, {limit_pages} may be: choose a larger chip or fewer \
                 records"
            ),
        }
    }
}

/// Returns why `plan`, made for `records`, does not fit, or `None` if it does.
pub fn misfit<S: System>(
    profile: &Profile,
    options: &Options,
    records: u32,
    plan: &Plan,
) -> Option<Misfit> {
    let full = Misfit::Full { valid_pages: plan.valid_pages, limit_pages: plan.limit_pages };
    (!plan.fits).then(|| half_full_too_high::<S>(profile, options, records).unwrap_or(full))
}

/// Returns the misfit if a tree with half full nodes is too high for the pages.
fn half_full_too_high<S: System>(
    profile: &Profile,
    options: &Options,
    records: u32,
) -> Option<Misfit> {
    // On the largest chip of such pages only the height can be an obstacle.
    let geometry = profile.geometry;
    let blocks = (u32::MAX / geometry.pages_per_block.max(1)).min(1 << 20);
    // Where a page holds several nodes, pointers lead to fewer pages.
    let largest = (0..16).map(|halves| Geometry { blocks: blocks >> halves, ..geometry });
    let plan = largest
        .filter_map(|chip| plan::<S>(&chip, &profile.capabilities, options, records).ok())
        .next()?;
    let in_ram = S::DESCRIPTION.has_arena();
    (!plan.fits && plan.valid_pages <= plan.limit_pages)
        .then_some(Misfit::TooHigh { height: plan.height, in_ram })
}

/// Returns the misfit if the tree is too high even with full nodes.
///
/// A full node holds at most twice as many records as a half full one, and so does the root. A plan
/// assumes somewhat fewer, and fewer levels where high nodes have few records. So if a plan is too
/// high for `records / 2^(height + 1)`, the tree is too high for `records`.
pub fn always_too_high<S: System>(
    profile: &Profile,
    options: &Options,
    records: u32,
) -> Option<Misfit> {
    let misfit = half_full_too_high::<S>(profile, options, records)?;
    let Misfit::TooHigh { height, .. } = misfit else {
        return None;
    };
    half_full_too_high::<S>(profile, options, records >> (height + 1))
}

/// Returns the misfit if `records` records take more pages than may be valid.
///
/// It assumes full leaves and no inner nodes.
pub fn always_full<S: System>(
    profile: &Profile,
    options: &Options,
    records: u32,
) -> Option<Misfit> {
    let geometry = &profile.geometry;
    // The limit is highest for the smallest tree.
    let limits = [1, records].map(|records| {
        let plan = plan::<S>(geometry, &profile.capabilities, options, records);
        plan.map_or(0, |plan| plan.limit_pages)
    });
    let limit_pages = limits[0].max(limits[1]);
    let record_bytes = (options.key_bytes + options.value_bytes) as u64;
    let page_bytes = u64::from(geometry.page_bytes + geometry.spare_bytes);
    let valid_pages = (u64::from(records) * record_bytes).div_ceil(page_bytes);
    let valid_pages = u32::try_from(valid_pages).unwrap_or(u32::MAX);
    (valid_pages > limit_pages).then_some(Misfit::Full { valid_pages, limit_pages })
}

/// Returns why system `S` can never hold `records` records, if that is known.
pub fn refusal<S: System>(profile: &Profile, options: &Options, records: u32) -> Option<String> {
    // A refusal for one record, such as a size, is a refusal for all.
    if let Err(error) = plan::<S>(&profile.geometry, &profile.capabilities, options, 1) {
        return Some(match error {
            OpenError::Unsuited(missing) => lack(missing),
            error => error.to_string(),
        });
    }
    let misfit = always_too_high::<S>(profile, options, records)
        .or_else(|| always_full::<S>(profile, options, records))?;
    Some(format!("{records} records do not fit on {}: {misfit}", profile.key))
}
