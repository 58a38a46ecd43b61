//! The most that a call of BFTL costs, and the pages that records need.
//!
//! Nothing here reads or writes.

use nandina::Cost;

use super::{COMPACTED, LEVELS, LIST, payload_bytes, units};
use crate::rivals::worst::{Device, Worst};

/// The sizes that the costs follow from.
struct Sizes {
    /// Units of a page.
    units: u64,
    /// Units with which the buffer is full.
    room: u64,
}

impl Sizes {
    fn new(device: &Device<'_>) -> Self {
        let options = device.options;
        let units = units(device.area_bytes, options.key_bytes, payload_bytes(options)) as u64;
        Self { units, room: options.write_buffer as u64 * units }
    }

    /// The most pages of so many units: all but one are half full or more.
    const fn pages_of(&self, units: u64) -> u64 {
        (2 * units).div_ceil(self.units) + 1
    }
}

/// The most units of a change that divides every node of a path, with a new root.
///
/// Entries that move are taken from one node and added to another. The entry of the new half comes
/// on top, and the first one of an inner node may get another key.
fn units_of_change(device: &Device<'_>, height: u64) -> u64 {
    let divided = |most: usize| 2 * (most as u64 / 2 + 1) + 3;
    divided(device.most.leaf) + (height - 1) * divided(device.most.inner) + 2
}

/// Pages that a device must have for so many records that are only inserted.
pub fn pages_needed(device: &Device<'_>, records: u32) -> u64 {
    let nodes = device.nodes(records.into());
    let units = units_of_change(device, nodes.len() as u64).max(LEVELS as u64);
    let sizes = Sizes::new(device);
    nodes.iter().sum::<u64>() * LIST as u64
        + sizes.pages_of(sizes.room + units)
        + u64::from(COMPACTED)
        + 2
}

/// The most that one call costs.
///
/// A node is read from its list. When the buffer is full, each of its units can be of another node,
/// whose list was full: all of these lists are compacted, and read for it. The pages of a commit
/// are in many lists, and are read once. If room is short, pending changes are written before the
/// change.
pub fn worst(device: &Device<'_>, records: u32) -> Worst {
    let sizes = Sizes::new(device);
    let height = device.height(records.into());
    let of_change = units_of_change(device, height);
    let (list, pages) = (LIST as u64, device.pages);
    let others = device
        .options
        .write_buffer_changes
        .map_or(u64::MAX, |most| u64::from(most).saturating_sub(1).saturating_mul(of_change));
    let waiting = sizes.room.saturating_sub(1).min(others);
    let compacted = waiting + height;
    let written = sizes.pages_of(waiting) + sizes.pages_of(of_change);
    let commit = Cost {
        reads: list * compacted + written,
        programs: written + u64::from(COMPACTED) * compacted,
        // The lists of nodes that are compacted or gone, and each commit that is followed by another.
        erases: list * (compacted + height) + written + compacted + 2,
    };
    let get = Cost { reads: list * height, ..Cost::default() };
    // A mount reads each page, and then the lists of the nodes above the leaves, which take no more
    // pages than there are. It blanks what was begun, and compacts what the last commit left.
    let found = Cost { reads: 2 * pages + compacted + written, programs: written, erases: 0 };
    Worst { height, get, change: get.and(1, commit), open: found.and(1, commit) }
}
