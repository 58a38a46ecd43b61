//! Whether records fit, as far as it can be known before there is an index: what a plan says in
//! words, and which work is refused at once instead of in the middle of a run.

use std::collections::HashSet;

use nandina::flash::{Geometry, Profile};
use nandina::place::Placement;
use nandina::{Options, Plan, plan};

use crate::work::{Operation, Work};

/// Why records do not fit on a chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misfit {
    /// Pages have no room for a tree of more levels than this.
    TooHigh {
        /// The most levels.
        height: u8,
    },
    /// More pages would be valid than may be.
    Full {
        /// Pages that would be valid.
        valid_pages: u32,
        /// Pages that may be.
        limit_pages: u32,
    },
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooHigh { height } => write!(
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

/// Why `plan`, which is for so many `records`, does not fit, if it does not.
pub fn misfit<S: Placement>(
    profile: &Profile,
    options: &Options,
    records: u32,
    plan: &Plan,
) -> Option<Misfit> {
    let full = Misfit::Full { valid_pages: plan.valid_pages, limit_pages: plan.limit_pages };
    (!plan.fits).then(|| half_full_too_high::<S>(profile, options, records).unwrap_or(full))
}

/// The misfit, if a tree of `records` records in nodes that are half full is too high for the
/// pages.
fn half_full_too_high<S: Placement>(
    profile: &Profile,
    options: &Options,
    records: u32,
) -> Option<Misfit> {
    // On the largest chip of such pages only the height can be in the way.
    let geometry = profile.geometry;
    let blocks = (u32::MAX / geometry.pages_per_block.max(1)).min(1 << 20);
    let largest = Geometry { blocks, ..geometry };
    let plan = plan::<S>(&largest, &profile.capabilities, options, records).ok()?;
    (!plan.fits && plan.valid_pages <= plan.limit_pages)
        .then_some(Misfit::TooHigh { height: plan.height })
}

/// The misfit, if a tree of `records` records is too high for the pages however full its nodes are.
///
/// A full node holds at most twice what a half full one does, the root as much. A plan counts with
/// somewhat less, and on the highest levels, where nodes have few records, with fewer levels. So
/// what is too high for `records / 2^(height + 1)` by a plan is too high for `records`.
pub fn always_too_high<S: Placement>(
    profile: &Profile,
    options: &Options,
    records: u32,
) -> Option<Misfit> {
    let misfit = half_full_too_high::<S>(profile, options, records)?;
    let Misfit::TooHigh { height } = misfit else {
        return None;
    };
    half_full_too_high::<S>(profile, options, records >> (height + 1))
}

/// The misfit, if `records` records take more pages than may be valid even if leaves are filled to
/// the last byte and inner nodes take none.
pub fn always_full<S: Placement>(
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

/// Why system `S` cannot hold `records` records whatever happens, if that is known.
pub fn refusal<S: Placement>(profile: &Profile, options: &Options, records: u32) -> Option<String> {
    // What is refused for one record, such as a size, is refused for all.
    if let Err(error) = plan::<S>(&profile.geometry, &profile.capabilities, options, 1) {
        return Some(error.to_string());
    }
    let misfit = always_too_high::<S>(profile, options, records)
        .or_else(|| always_full::<S>(profile, options, records))?;
    Some(format!("{records} records do not fit on {}: {misfit}", profile.key))
}

/// Why `work` cannot be done whatever happens, if that is known.
pub fn refusal_of_work<S: Placement>(
    profile: &Profile,
    options: &Options,
    work: &Work,
) -> Option<String> {
    // There are never more records than rows; they are counted only if that matters.
    refusal::<S>(profile, options, work.rows() as u32)?;
    refusal::<S>(profile, options, most_at_once(work))
}

/// The most records that there ever are.
fn most_at_once(work: &Work) -> u32 {
    let (mut there, mut most) = (HashSet::new(), 0);
    for operation in work.phases.iter().flat_map(|phase| &phase.operations) {
        match *operation {
            Operation::Insert(row) | Operation::Update(row) => there.insert(work.key(row)),
            Operation::Delete(row) => there.remove(work.key(row)),
            Operation::Lookup(_) | Operation::Scan { .. } => false,
        };
        most = most.max(there.len());
    }
    most as u32
}
