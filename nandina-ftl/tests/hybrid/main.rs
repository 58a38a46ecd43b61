//! Hybrid FTLs against a vector of contents, through cuts and faults; and counts.
//!
//! By default the checks that cut power take a share of their cases. With `NANDINA_EFFORT=full`
//! they take all.

mod counts;
mod cuts;
mod disk;
mod faults;
mod host;
mod model;
#[path = "../numbers/mod.rs"]
mod numbers;
mod small;

use nandina::flash::profile::Profile;
use nandina::flash::{Capabilities, Geometry};
use nandina_ftl::hybrid::SequentialRule;
use nandina_sim::TINY;

use host::Which;

/// A chip for cuts: 16 blocks of 8 pages, pages of 512 bytes.
const CHIP: Profile =
    Profile { geometry: Geometry { blocks: 16, pages_per_block: 8, ..TINY.geometry }, ..TINY };

/// The same chip, a tenth of whose blocks may go bad.
const FAILING: Profile = Profile {
    geometry: Geometry { blocks: 20, ..CHIP.geometry },
    capabilities: Capabilities { bad_blocks_per_mille: 150, ..CHIP.capabilities },
    ..CHIP
};

/// All that is tested.
const ALL: [Which; 4] = [
    Which::Block,
    Which::Bast(3),
    Which::Fast(3, SequentialRule::FirstPage),
    Which::Fast(4, SequentialRule::Continues),
];

/// Whether all cases are to be checked.
fn is_full() -> bool {
    std::env::var("NANDINA_EFFORT").is_ok_and(|effort| effort == "full")
}
