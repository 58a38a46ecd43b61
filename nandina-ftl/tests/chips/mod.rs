//! The chips of the checks of FTLs, and how many cases they take.

use nandina::flash::profile::Profile;
use nandina::flash::{Capabilities, Geometry};
pub use nandina_lab::effort::Share;
use nandina_lab::effort::{Effort, effort};
use nandina_sim::TINY;

/// A chip for cuts: 16 blocks of 8 pages, pages of 512 bytes.
pub const CHIP: Profile =
    Profile { geometry: Geometry { blocks: 16, pages_per_block: 8, ..TINY.geometry }, ..TINY };

/// The same chip, a tenth of whose blocks may go bad.
pub const FAILING: Profile = Profile {
    geometry: Geometry { blocks: 20, ..CHIP.geometry },
    capabilities: Capabilities { bad_blocks_per_mille: 150, ..CHIP.capabilities },
    ..CHIP
};

/// Whether all cases are to be checked.
pub fn is_full() -> bool {
    effort() == Effort::Full
}

/// The seeds below `all`; some `quick` of them, others each day, unless all are to be checked.
pub fn seeds(all: u64, quick: u64) -> Vec<u64> {
    Share::one_in(all / quick).of(0..all)
}
