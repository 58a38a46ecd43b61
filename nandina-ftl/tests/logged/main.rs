//! FTLs with log records against a vector of contents, through cuts and faults; and counts.
//!
//! By default the checks that cut power take a share of their cases. With `NANDINA_EFFORT=full`
//! they take all.

#[path = "../chips/mod.rs"]
mod chips;
mod counts;
mod cuts;
mod faded;
mod host;
mod model;
#[path = "../numbers/mod.rs"]
mod numbers;

use chips::{CHIP, Share, is_full, seeds};

use nandina::flash::profile::Profile;
use nandina::flash::{Capabilities, Geometry};
use nandina_ftl::logged::Scheme;

/// Both FTLs.
const SCHEMES: [Scheme; 2] = [Scheme::Ipl, Scheme::Dipl];

/// Four programs a page, in order: 14 blocks of 8 pages.
const IN_ORDER: Profile = Profile {
    geometry: Geometry { blocks: 14, pages_per_block: 8, ..CHIP.geometry },
    capabilities: Capabilities { programs_per_page: Some(4), overwrite: true, ..CHIP.capabilities },
    ..CHIP
};

/// The same in any order, without a spare area: as NOR.
const ANY_ORDER: Profile = Profile {
    geometry: Geometry { spare_bytes: 0, ..IN_ORDER.geometry },
    capabilities: Capabilities {
        programs_per_page: None,
        in_order: false,
        ..IN_ORDER.capabilities
    },
    ..IN_ORDER
};

/// Two programs a page, and no ECC.
const TWICE: Profile = Profile {
    capabilities: Capabilities { programs_per_page: Some(2), ..IN_ORDER.capabilities },
    ecc: nandina::flash::profile::Ecc::NONE,
    ..IN_ORDER
};

/// A tenth of whose blocks may go bad.
const FAILING: Profile = Profile {
    capabilities: Capabilities { bad_blocks_per_mille: 150, ..IN_ORDER.capabilities },
    ..chips::FAILING
};

const CHIPS: [Profile; 3] = [IN_ORDER, ANY_ORDER, TWICE];
