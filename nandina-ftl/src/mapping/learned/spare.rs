//! What spare areas tell a learned mapping: which logical unit a page holds.
//!
//! A mapping names no chip. Where a prediction may be wrong, it looks the truth up through
//! [`Spare`]. With the feature `std` there is a table on the heap in place of the spare areas.

use crate::mapping::Run;

/// Spare areas of flash pages.
///
/// LeaFTL writes into the spare area of a page the logical numbers of the pages around it,
/// so that one read tells them all.
pub trait Spare {
    /// Notes that the units of `run` were programmed, each with its logical number.
    ///
    /// On a chip this has happened before.
    fn program(&mut self, run: Run);

    /// The page that holds `logical`, at most `within` pages from `near`.
    ///
    /// Where several hold copies, it is the newest. `None` if no page there holds it.
    fn locate(&self, logical: u32, near: u32, within: u32) -> Option<u32>;
}

/// No spare areas: for a mapping whose predictions are always right (γ = 0).
pub struct NoSpare;

impl Spare for NoSpare {
    fn program(&mut self, _run: Run) {}

    fn locate(&self, _logical: u32, near: u32, _within: u32) -> Option<u32> {
        Some(near)
    }
}

/// The physical unit of every logical one on the heap, in place of spare areas: no mapping's memory.
#[cfg(feature = "std")]
#[derive(Default)]
pub struct HeapSpare {
    parts: std::vec::Vec<std::boxed::Box<[u32]>>,
}

/// Units of a part of the table, which is made at the first write.
#[cfg(feature = "std")]
const PART: u32 = 1024;

#[cfg(feature = "std")]
impl Spare for HeapSpare {
    fn program(&mut self, run: Run) {
        let parts = (run.end().div_ceil(PART)) as usize;
        if self.parts.len() < parts {
            self.parts.resize_with(parts, Default::default);
        }
        for at in 0..run.length {
            let unit = run.logical + at;
            let part = &mut self.parts[(unit / PART) as usize];
            if part.is_empty() {
                *part = std::vec![u32::MAX; PART as usize].into();
            }
            part[(unit % PART) as usize] = run.physical + at;
        }
    }

    fn locate(&self, logical: u32, near: u32, within: u32) -> Option<u32> {
        let part = self.parts.get((logical / PART) as usize)?;
        let physical = *part.get((logical % PART) as usize)?;
        (super::segment::distance(physical, near) <= within).then_some(physical)
    }
}
