//! Simulated flash chips.
//!
//! **Fault model.** A chip does exactly what it is told, or refuses it and names the broken rule of
//! [`nandina::flash::Flash`]. Nothing is damaged unless power is cut inside an operation: a cut program
//! leaves any mixture of old and new bits in its page and nowhere else, a cut erase leaves its whole
//! block undefined and nothing else. What the damage is comes from the chip's seed. After a cut every
//! operation fails until power is restored.
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
mod chip;
mod counters;
mod cut;
mod error;

pub use chip::Chip;
pub use counters::{Counters, TimeSplit, Wear};
pub use cut::Cut;
pub use error::{ChipError, Rule};

use nandina::flash::{Geometry, Profile, profile::MLC};

/// A chip for exhaustive tests: 512-byte pages, 4 pages a block, 8 blocks; latencies of the MLC chip.
pub const TINY: Profile = Profile {
    key: "tiny",
    summary: "NAND for tests, 512 B pages, 4 pages a block, 8 blocks",
    source: "made up; latencies of the MLC profile",
    geometry: Geometry { page_bytes: 512, spare_bytes: 64, pages_per_block: 4, blocks: 8 },
    ..MLC
};
