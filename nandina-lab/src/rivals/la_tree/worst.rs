//! The most that a call of LA-tree costs, and the pages that records need.
//!
//! Changes wait until lookups have paid for moving them. As long as nothing is looked up, they fill
//! half of the device; the first lookup then reads all of them. And what it empties can change
//! every leaf. So the longest call takes a time that grows with the device, whatever the records
//! are: no smaller bound is true. Nothing here reads or writes.

use nandina::Cost;

use super::table::{LEVELS, SPARE, below};
use crate::rivals::worst::{Device, Worst, half};

/// Pages of the changes in RAM.
fn in_ram(device: &Device<'_>) -> u64 {
    device.options.write_buffer.max(1) as u64
}

/// Pages that a device must have for so many records that are only inserted.
///
/// All buffers are empty then; one more record can divide a leaf and all above it.
pub fn pages_needed(device: &Device<'_>, records: u32) -> u64 {
    let nodes = device.nodes(records.into());
    let height = nodes.len() as u64;
    let owners = (2..=height).filter(|level| (level - 1) % u64::from(LEVELS) == 0);
    let owners: u64 = owners.map(|level| nodes[level as usize - 1]).sum();
    nodes.iter().sum::<u64>() + 2 * (1 + height + 3 + 1 + owners + height) + SPARE
}

/// The most that one call costs.
///
/// Room is kept so that the nodes, and twice the pages of buffers and the nodes that their changes
/// can make, are no more than the pages of the device.
pub fn worst(device: &Device<'_>) -> Worst {
    let (pages, ram) = (device.pages, in_ram(device));
    let height = device.height(u64::MAX);
    let (mut stages, mut level) = (1, below(height as u8));
    while level > 1 {
        (stages, level) = (stages + 1, below(level));
    }
    let half = half(device.most.inner);
    let buffers = pages / 2;
    // A node that is divided writes what waits for it again, in two parts. Before it is divided once
    // more, half of its children are new, and half of theirs: these can be as many as the pages.
    let again = pages / half.pow(2);
    let again = buffers * (again + again / 3);
    let parts = 2 * pages / half;
    // Each buffer is read, by the lookup and to empty it. Each leaf is written, each node beside one
    // that is divided, and what moves; and then the nodes whose buffers are empty.
    let programs = pages + buffers + again + parts;
    // What is written twice is given up once; so are buffers, and nodes that go unwritten.
    let moved = Cost { reads: 2 * pages + again, programs, erases: programs };
    // The nodes to the owner of each buffer, and to a leaf that goes once its changes are made.
    let ways = |owners: u64| Cost {
        reads: owners * 2 * height,
        programs: owners * 3,
        erases: owners * (height + 2),
    };
    // A lookup reads the buffers on its way, and empties them: one on each such level.
    let look = Cost { reads: height, ..Cost::default() };
    let get = look.and(1, moved).and(1, ways(stages));
    // Without room all changes move from level to level, down to the leaves.
    let level = Cost { reads: buffers, programs: buffers, erases: buffers };
    let flush = Cost { reads: 0, programs: ram, erases: ram + 1 };
    let change = look.and(1, moved).and(stages - 1, level).and(1, ways(buffers / 2)).and(2, flush);
    // A mount reads each page, and the nodes above the leaves. It blanks what was begun.
    let open = Cost { reads: 2 * pages, programs: pages, erases: 0 };
    Worst { height, get, change, open }
}
