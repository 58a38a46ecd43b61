//! Datasheet profiles of chips: geometry, capabilities and latencies, each with its source.
//!
//! A profile is data only. No code in the library behaves differently because of a chip's name.

use super::{Capabilities, Geometry};

/// How long the operations of a chip take.
///
/// A read or program takes its fixed time plus the transfer of the page over the bus: all of its
/// main data and all of its spare area, since a controller moves the ECC bytes with every page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Nanoseconds from the cells to the chip's page register.
    pub read_ns: u64,
    /// Nanoseconds from the chip's page register to the cells.
    pub program_ns: u64,
    /// Nanoseconds to erase a block.
    pub erase_ns: u64,
    /// Nanoseconds to move one byte over the bus.
    pub byte_ns: u64,
}

/// A chip that can be bought, or could.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The name by which programs choose this chip.
    pub key: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Datasheet or paper, and what was assumed beyond it.
    pub source: &'static str,
    /// Sizes and counts.
    pub geometry: Geometry,
    /// What the chip allows.
    pub capabilities: Capabilities,
    /// Latencies.
    pub timing: Timing,
}

impl Profile {
    /// Nanoseconds to move one whole page, spare area included, over the bus.
    pub const fn transfer_ns(&self) -> u64 {
        (self.geometry.page_bytes + self.geometry.spare_bytes) as u64 * self.timing.byte_ns
    }

    /// Nanoseconds of one page read.
    pub const fn page_read_ns(&self) -> u64 {
        self.timing.read_ns + self.transfer_ns()
    }

    /// Nanoseconds of one page program.
    pub const fn page_program_ns(&self) -> u64 {
        self.timing.program_ns + self.transfer_ns()
    }

    /// The same chip with another number of blocks.
    pub const fn with_blocks(mut self, blocks: u32) -> Self {
        self.geometry.blocks = blocks;
        self
    }
}

/// MLC NAND, 4 KiB pages, 64 MiB: the chip of the μ-Tree paper's evaluation.
pub const MLC: Profile = Profile {
    key: "mlc",
    summary: "MLC NAND, 4 KiB pages, 128 pages a block, 64 MiB",
    source: "Samsung K9GAG08U0M as in the μ-Tree paper, Table 1 (size as in section 6.1); 25 ns a byte \
             is assumed, 60 us and 800.2 us follow from the printed 165.6 us and 905.8 us",
    geometry: Geometry { page_bytes: 4096, spare_bytes: 128, pages_per_block: 128, blocks: 128 },
    capabilities: Capabilities { programs_per_page: 1, in_order: true },
    timing: Timing { read_ns: 60_000, program_ns: 800_200, erase_ns: 1_500_000, byte_ns: 25 },
};

/// Large-block SLC NAND, 2 KiB pages, 64 MiB.
pub const SLC: Profile = Profile {
    key: "slc",
    summary: "SLC NAND, 2 KiB pages, 64 pages a block, 64 MiB",
    source: "Samsung K9WAG08U1A as in the μ-Tree paper, Table 1, cut to 512 blocks; 25 ns a byte is \
             assumed, 25 us and 200 us follow from the printed 77.8 us and 252.8 us",
    geometry: Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks: 512 },
    capabilities: Capabilities { programs_per_page: 4, in_order: true },
    timing: Timing { read_ns: 25_000, program_ns: 200_000, erase_ns: 1_500_000, byte_ns: 25 },
};

/// Every profile, in the order in which programs list them.
pub const PROFILES: &[Profile] = &[MLC, SLC];

/// The profile named `key`.
pub fn find(key: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.key == key)
}

// Table 1 of the μ-Tree paper, to the nanosecond.
const _: () = assert!(MLC.page_read_ns() == 165_600 && MLC.page_program_ns() == 905_800);
const _: () = assert!(SLC.page_read_ns() == 77_800 && SLC.page_program_ns() == 252_800);
