//! The FTLs with log records of the checks, and the kinds of chips that they run on.

use nandina::flash::profile::Profile;
use nandina::flash::{Capabilities, Geometry};
use nandina_ftl::logged::Scheme;

use crate::chips::{self, CHIP};

/// Both FTLs.
pub const SCHEMES: [Scheme; 2] = [Scheme::Ipl, Scheme::Dipl];

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
pub const FAILING: Profile = Profile {
    capabilities: Capabilities { bad_blocks_per_mille: 150, ..IN_ORDER.capabilities },
    ..chips::FAILING
};

pub const CHIPS: [Profile; 3] = [IN_ORDER, ANY_ORDER, TWICE];
