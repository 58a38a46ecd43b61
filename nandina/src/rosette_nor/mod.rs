//! `rosette-nor`: an index of leaves only, each of which is an erase sector.
//!
//! The rule is that of `rosette`: every leaf records which range of keys it owns, between two
//! fences, and when it was written, by its sequence number: **the newest whole leaf whose range
//! holds a key owns that key.** Where bytes of a page can be programmed one by one, as on NOR
//! flash, a leaf need not be written again for each change. It has sorted records, and behind them
//! a log of changes:
//!
//! - a change programs one slot of the log, and that slot commits it;
//! - a leaf whose log is full is written again to another sector: as one leaf, as several while
//!   there are few, or together with a neighbour;
//! - the new leaf owns its keys from its commit on, and the old sector is free.
//!
//! The directory in RAM says which sector owns which range. A mount reads the head of each sector,
//! and nothing else of a sector without a leaf. Reads and programs are of parts of pages.
//!
//! What a cut may have torn is settled before anything is acknowledged (`settle.rs`, `newest.rs`).
//!
//! Source: none of the papers; the log with its tags follows Berger (1961), and that sectors
//! describe themselves is from LFS (Rosenblum and Ousterhout, 1991).

mod cells;
mod change;
mod check;
mod directory;
mod engine;
mod fingerprints;
mod form;
mod format;
mod head;
mod leaves;
mod merge;
mod mount;
mod newest;
mod options;
mod order;
mod plan;
mod pool;
mod rewrite;
mod scan;
mod settle;
mod sort;
mod state;
mod write;

pub use leaves::SectorLeaves;

use core::convert::Infallible;

use crate::engine::{Description, Nodes, Options, PageSharing, Plan, System, UpdateScheme};
use crate::error::OpenError;
use crate::flash::{Capabilities, Flash, Geometry, Needs};

/// An index of leaves that are erase sectors with a log of changes.
///
/// It is for NOR flash: bytes of a page are programmed one by one, and a change programs one slot
/// of a log. It needs RAM for each leaf ([`Options::leaves`]), for the keys of one log, and for two
/// pages. Records have at most 500 bytes.
///
/// Sectors that fail are marked as bad, and their leaves are written elsewhere. If sectors can
/// fail, it needs a chip that keeps such marks ([`Flash::mark_bad`]). Weak pages are not refreshed:
/// chips like these seldom have an ECC.
pub struct RosetteNor;

impl System for RosetteNor {
    const DESCRIPTION: Description = Description {
        key: "rosette-nor",
        name: "sectors with a directory in RAM",
        summary: "a change is a slot in the log of a sector, and the newest sector of a range owns it",
        source: "Nandina's own; docs/DESIGN.md",
        code: 10,
        needs: Needs {
            programs_per_page: u8::MAX,
            overwrite: true,
            any_order: true,
            ..Needs::NOTHING
        },
        buffers_min: 2,
        buffers_default: 2,
        updates: UpdateScheme::LeafBlocks,
        ..Description::EMPTY
    };

    const NODES: Option<Nodes> = Some(Nodes {
        extent: |area, _, _| 0..area.bytes.len(),
        address_in: |_| None,
        range_in: head::fences_in,
        trims: true,
        sharing: PageSharing::Never,
        path_pages: |_| 1,
    });

    type Engine<'b, F: Flash> = SectorLeaves<'b, F>;

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
