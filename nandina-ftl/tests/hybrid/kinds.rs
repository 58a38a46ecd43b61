//! The hybrid FTLs of the checks: each policy, without a buffer and behind one.

use nandina_ftl::hybrid::{Buffer, SequentialRule};

use super::host::Which;

/// The buffer with all improvements, whatever the sizes.
const IMPROVED: Buffer = Buffer {
    blocks: 2,
    neighbours: 3,
    completes_from: 3,
    passes_from: 2,
    reads_newest_only: true,
    drops_superseded: true,
    ahead: 1,
};

/// The FTLs without a buffer.
pub const BARE: [Which; 4] = [
    Which::Block,
    Which::Bast(3),
    Which::Fast(3, SequentialRule::FirstPage),
    Which::Fast(4, SequentialRule::Continues),
];

/// The FTLs below a buffer, as printed and with improvements.
pub const BUFFERED: [Which; 5] = [
    Which::OverBlock(Buffer::as_printed(3)),
    Which::OverBast(2, Buffer::as_printed(2)),
    Which::OverFast(2, SequentialRule::FirstPage, Buffer::as_printed(3)),
    Which::OverFast(2, SequentialRule::Continues, IMPROVED),
    Which::OverFast(
        3,
        SequentialRule::FirstPage,
        Buffer { neighbours: 2, ..Buffer::as_printed(1) },
    ),
];

/// All that is tested.
pub const ALL: [Which; 9] = [
    BARE[0],
    BARE[1],
    BARE[2],
    BARE[3],
    BUFFERED[0],
    BUFFERED[1],
    BUFFERED[2],
    BUFFERED[3],
    BUFFERED[4],
];
