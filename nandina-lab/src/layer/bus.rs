//! The device below an index as one type, whatever it is.
//!
//! An index on `&mut dyn Bus` is compiled once for each system, not once more for each device.

use std::any::Any;

use nandina::flash::Flash;
use nandina_ftl::Statistics;
use nandina_ftl::hybrid::{Conversions, Merges};
use nandina_sim::{Chip, ChipError};

/// Any device above a simulated chip.
pub trait Bus: Flash<Error = ChipError> {
    /// The chip at the bottom, for inspection.
    fn simulated(&self) -> &Chip;

    /// What the FTL above the chip did since it was formatted or opened; `None` without one.
    fn ftl(&self) -> Option<FtlWork> {
        None
    }

    /// The device itself, for a test that made it and looks at it while an index holds it.
    ///
    /// `None` unless a device shows itself.
    fn itself(&self) -> Option<&dyn Any> {
        None
    }

    /// Called before an index is opened or formatted on it.
    fn opening(&self) {}

    /// Called after the opening or format has returned.
    fn opened(&self) {}
}

/// What an FTL did, and the memory of its map.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FtlWork {
    /// Pages written, moved and erased.
    pub statistics: Statistics,
    /// Merges of a hybrid FTL; `None` for one with a mapping.
    pub merges: Option<Merges>,
    /// What went through buffer blocks.
    pub conversions: Conversions,
    /// The most bytes that the map used.
    pub map_bytes: u64,
    /// Pages that a mapping read from flash of its own, which are no operations of the chip.
    pub map_reads: u64,
    /// Pages that a mapping wrote to flash of its own.
    pub map_writes: u64,
}
