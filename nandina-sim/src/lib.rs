//! Simulated flash chips.
//!
//! **Fault model.** A chip does exactly what is requested, or refuses it and names the broken rule
//! of [`nandina::flash::Flash`]. A power cut inside an operation tears it: a program leaves its
//! page, and on chips whose pages share cells perhaps an earlier one, undefined; an erase leaves
//! its whole block undefined. After a cut every operation fails until power is restored.
//!
//! In addition, [`Faults`] are switched on one by one: programs and erases that fail or silently do
//! nothing, torn pages that read differently each time, operations that the device gives up, bits
//! that flip as pages are read or rest, blocks that are bad from the factory or wear out.
//!
//! The bytes that were programmed are stored separately from the damage, and the ECC of the chip's
//! profile decides how much of the damage a read sees. All damage comes from the chip's seed.
//!
//! A chip can be stored in a file ([`Image`], [`Chip::save`]).
//!
//! ```
//! use nandina::flash::{Flash, PageNumber};
//! use nandina_sim::{Chip, ChipError, Cut, TINY};
//!
//! let mut chip = Chip::new(TINY);
//! chip.erase(nandina::flash::BlockNumber(0)).unwrap();
//! chip.program(PageNumber(0), &[7; 512], &[]).unwrap();
//! let twice = chip.program(PageNumber(0), &[7; 512], &[]).unwrap_err();
//! assert!(twice.to_string().starts_with("rule 1 (erase before program): page 0"));
//!
//! chip.cut_at(0, Cut::Before);
//! assert_eq!(chip.program(PageNumber(1), &[7; 512], &[]), Err(ChipError::PowerLost));
//! chip.restore_power();
//! assert!(chip.page_is_erased(PageNumber(1)));
//! ```

mod block;
mod blocks;
mod checksum;
mod chip;
mod counters;
mod cut;
mod error;
mod faults;
mod image;
mod mix;
mod nor;
mod operations;
mod overwrite;
mod rules;
mod sparse;
mod torn;
mod unstable;

pub use chip::Chip;
pub use counters::{Counters, TimeSplit, Wear};
pub use cut::{Cut, Tear};
pub use error::{ChipError, Rule};
pub use faults::{FaultCounters, Faults};
pub use image::{Image, ImageError, ImageErrorKind, Labels, blocks_max};
pub use nor::{NorChip, NorChipError};
pub use sparse::SparseChip;

use nandina::flash::{Capabilities, Geometry, Pairing, Profile, profile::MLC};

/// A chip for exhaustive tests: 512-byte pages, 4 pages a block, 8 blocks.
///
/// No block goes bad; the latencies are those of the MLC chip.
pub const TINY: Profile = Profile {
    key: "tiny",
    summary: "NAND for tests, 512 B pages, 4 pages a block, 8 blocks",
    source: "made up; latencies of the MLC profile",
    geometry: Geometry { page_bytes: 512, spare_bytes: 64, pages_per_block: 4, blocks: 8 },
    capabilities: Capabilities {
        pairing: Pairing::None,
        bad_blocks_per_mille: 0,
        ..MLC.capabilities
    },
    ..MLC
};
