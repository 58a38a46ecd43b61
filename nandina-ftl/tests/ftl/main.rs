//! A whole FTL against a vector of contents, through cuts and faults.
//!
//! By default the checks that cut power take a share of their cases. With `NANDINA_EFFORT=full`
//! they take all.

mod cuts;
mod disk;
mod faults;
mod host;
mod hostile;
mod model;
#[path = "../numbers/mod.rs"]
mod numbers;
mod small;

use nandina::flash::profile::Profile;
use nandina::flash::{Capabilities, Geometry};
use nandina_sim::TINY;

/// A chip for cuts: 16 blocks of 8 pages, pages of 512 bytes.
const CHIP: Profile =
    Profile { geometry: Geometry { blocks: 16, pages_per_block: 8, ..TINY.geometry }, ..TINY };

/// The same chip, a tenth of whose blocks may go bad.
const FAILING: Profile = Profile {
    geometry: Geometry { blocks: 20, ..CHIP.geometry },
    capabilities: Capabilities { bad_blocks_per_mille: 150, ..CHIP.capabilities },
    ..CHIP
};

/// Mappings that the checks with cuts take.
const MAPPINGS: [&str; 4] = ["page", "compact", "emt", "vet"];

/// Whether all cases are to be checked.
fn is_full() -> bool {
    std::env::var("NANDINA_EFFORT").is_ok_and(|effort| effort == "full")
}
