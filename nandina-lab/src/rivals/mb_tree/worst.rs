//! The most that a call of MB-tree costs, and the pages that records need.
//!
//! Nothing here reads or writes.

use nandina::Cost;

use super::{HEADERS, SPARE, Sizes};
use crate::rivals::worst::{Device, Worst, half};

/// Changes with which the buffer is full.
fn room(device: &Device<'_>) -> u64 {
    let options = device.options;
    let room = options.write_buffer * Sizes::new(options).changes(device.area_bytes);
    (room as u64).min(options.write_buffer_changes.map_or(u64::MAX, u64::from))
}

/// Pages that a device must have for so many records that are only inserted.
///
/// A header has no page of its own. One more record can divide a page and all above it.
pub fn pages_needed(device: &Device<'_>, records: u32) -> u64 {
    let nodes = device.nodes(records.into());
    let headers = nodes.get(usize::from(HEADERS) - 1).copied().unwrap_or(0);
    let held = nodes.iter().sum::<u64>() - headers;
    held + 2 * (nodes.len() as u64 + 4) + SPARE
}

/// The most divisions of nodes with so many entries, which get `new` ones.
///
/// `entries` are there before. A node is full when it is divided, and each half gets as many new
/// ones as it has before it is divided again.
fn divisions(most: usize, entries: u64, new: u64) -> u64 {
    new.min((entries + new) / (most as u64 + 1) + new / half(most))
}

/// The most that one call costs.
///
/// A change that finds too little room writes all that wait: each of them can belong to another
/// page. A page is read on the way to its leaf and on the way to it, with the page beside it, and
/// the pages where headers are. It is written, and so is its header if it is divided, joined or
/// gone. Nodes that are divided change those above them.
pub fn worst(device: &Device<'_>, records: u32) -> Worst {
    let room = room(device);
    let records = u64::from(records) + room;
    let height = device.height(records);
    let changes = room.max(1);
    let get = Cost { reads: height, ..Cost::default() };
    let (mut programs, mut reads) = (2 * changes, (2 * height + 3) * changes);
    let mut divided = changes;
    for level in 1..=height as u8 {
        let below = if level > HEADERS { divided } else { 0 };
        divided = divisions(device.most.of(level), records, divided);
        programs += below + divided;
        reads += if level == HEADERS { divided } else { 0 };
    }
    // Older versions, a page and the nodes that lead to it alone, and the last commit.
    let erases = programs + changes * (height + 1);
    // Room is looked for, and the leaf of the key.
    let change = Cost { reads, programs, erases }.and(2, get);
    // What a cut left is of one page and its changes.
    let (mut begun, mut divided) = (0, changes);
    for level in 1..=height as u8 {
        divided = 1 + (divided - 1) / half(device.most.of(level));
        begun += 1 + divided;
    }
    let open = Cost { reads: device.pages, programs: begun, erases: 0 };
    Worst { height, get, change, open }
}
