//! `rosette`: an index of leaves only, without inner nodes on the chip.
//!
//! One rule carries it. Every leaf records which range of keys it owns, between two fences, and
//! when it was written, by the sequence number of its page: **the newest whole leaf whose range
//! holds a key owns that key.** From the rule follow, without any further protocol:
//!
//! - a change programs one page, and that page commits it;
//! - a split writes one page, the half with the change: the older page still owns the other;
//! - a merge writes one page, whose fences span both ranges;
//! - a leaf that garbage collection moves is written again, and only RAM changes;
//! - a mount goes from the newest page to the oldest, and gives each page what no newer one owns.
//!
//! A checkpoint stores the directory, so that such a mount ends where the checkpoint begins. From
//! there on, each leaf tells what the pages before it changed, so that few pages are read.
//!
//! The directory in RAM says which page owns which range, so a lookup is one read. Log, collection,
//! wear levelling, refresh and bad blocks are those of the other systems.
//!
//! Nothing here depends on a page that is not the newest of its range: where one is lost, its keys
//! are an error or, if an older page of them is left, that is read, and counted
//! ([`Statistics::unexplained_pages`](crate::Statistics::unexplained_pages)).
//!
//! Source: none of the papers; `docs/DESIGN.md` argues for it.

mod batch;
#[cfg(feature = "batches")]
mod batches;
mod change;
mod check;
mod checkpoint;
mod directory;
mod engine;
mod format;
mod leaf;
mod leaves;
mod limits;
mod lost;
mod make;
mod merge;
mod mount;
mod options;
mod order;
mod owner;
mod plan;
mod replay;
mod scan;
mod separator;
mod settle;
mod state;
mod suspects;
mod torn;
mod trail;
#[cfg(feature = "coverage-marks")]
mod ways;

pub use leaves::Leaves;
#[cfg(feature = "coverage-marks")]
pub use ways::{Led, Way};

use core::convert::Infallible;

use directory::Directory;
use leaf::Form;
use order::Order;

use crate::engine::{Description, Nodes, Options, PageSharing, Plan, System, UpdateScheme};
use crate::error::OpenError;
use crate::flash::{Capabilities, Flash, Geometry};
use crate::log::{Codec, Label};
use crate::node::SESSION_START;

/// An index of leaves only: the newest leaf of a range owns its keys.
///
/// It needs RAM for each leaf ([`Options::leaves`]), and in return every lookup is one read, and
/// every change one read and one program.
pub struct Rosette;

impl System for Rosette {
    const DESCRIPTION: Description = Description {
        key: "rosette",
        name: "leaves with a directory in RAM",
        summary: "a changed leaf is written to a new page, and the newest leaf of a range owns it",
        source: "Nandina's own; docs/DESIGN.md",
        code: 7,
        buffers_min: 2,
        buffers_default: 2,
        updates: UpdateScheme::Leaves,
        checkpoints: true,
        ..Description::EMPTY
    };

    const NODES: Option<Nodes> = Some(Nodes {
        extent: |area, _, _| 0..area.bytes.len(),
        address_in: |_| None,
        range_in: |area, key_bytes| Form::of(area.len(), (key_bytes, 0), false).fences(area),
        trims: true,
        sharing: PageSharing::Never,
        path_pages: |_| 1,
    });

    type Engine<'b, F: Flash> = Leaves<'b, F>;

    fn ram_needed(geometry: &Geometry, options: &Options) -> usize {
        options::ram_needed(geometry, options)
    }

    fn plan(
        geometry: &Geometry,
        capabilities: &Capabilities,
        options: &Options,
        records: u32,
    ) -> Result<Plan, OpenError<Infallible>> {
        plan::planned(geometry, capabilities, options, records)
    }
}

/// How the pages are sealed and checked.
const CODEC: &Codec = &Codec {
    seal: |layout, page, medium, header, sum| layout.seal_as(page, medium, header, false, sum),
    check: |layout, page, sum| layout.check_as(page, cfg!(feature = "other-systems"), sum),
    // A page that cannot be read would let an older one of its range count.
    reads_max: READS_MAX,
};

/// Attempts to read one page before it counts as unreadable.
const READS_MAX: u32 = 3;

/// The label of a leaf, in an index of `records` records. Each leaf commits.
const fn leaf_label(records: u32) -> Label {
    Label { lowest: 1, height: 1, records }
}

/// The label of a session page, which owns no key.
const SESSION: Label = Label { lowest: 1, height: 0, records: SESSION_START };
