//! Datasheet profiles of chips: sizes, capabilities, latencies, ECC, endurance.
//!
//! Each profile cites its source. A profile is data only. No code in the library behaves
//! differently because of a chip's name.

use super::{Capabilities, Geometry, Pairing};

/// How long the operations of a chip take.
///
/// A read or program takes its fixed time plus the transfer of the page over the bus: all of its
/// main data and all of its spare area, since a controller moves the ECC bytes with every page.
/// A read of a part of a page, where the chip has such reads, transfers this part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Nanoseconds of a read, without the transfer.
    pub read_ns: u64,
    /// Nanoseconds for each byte read.
    pub read_byte_ns: u64,
    /// Nanoseconds of a program, without the transfer.
    pub program_ns: u64,
    /// Nanoseconds for each byte programmed.
    pub program_byte_ns: u64,
    /// Nanoseconds to erase a block.
    pub erase_ns: u64,
    /// Nanoseconds that a rewrite takes beyond a program.
    ///
    /// 0 if there is no rewrite, or no extra cost.
    pub rewrite_extra_ns: u64,
    /// Extra nanoseconds of a read that does not follow the page read before.
    pub random_read_extra_ns: u64,
    /// Extra nanoseconds of a program that does not follow the page programmed before.
    pub random_program_extra_ns: u64,
}

impl Timing {
    /// All times 0: a base for the timings of chips that lack some of these costs.
    const NOTHING: Self = Self {
        read_ns: 0,
        read_byte_ns: 0,
        program_ns: 0,
        program_byte_ns: 0,
        erase_ns: 0,
        rewrite_extra_ns: 0,
        random_read_extra_ns: 0,
        random_program_extra_ns: 0,
    };
}

/// The error correction that a controller does for a chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ecc {
    /// Bytes that are corrected together.
    pub codeword_bytes: u32,
    /// Wrong bits in a codeword that can be corrected.
    ///
    /// 0 means that there is no ECC: wrong bits are read uncorrected.
    pub bits: u8,
    /// Wrong bits in a codeword from which a read reports that a refresh is due.
    pub refresh_bits: u8,
}

impl Ecc {
    /// No error correction.
    pub const NONE: Self = Self { codeword_bytes: 512, bits: 0, refresh_bits: 0 };
}

/// A chip that is, or was, on the market.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The name by which programs choose this chip.
    pub key: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Datasheet or paper, and the assumptions beyond it.
    pub source: &'static str,
    /// Sizes and counts.
    pub geometry: Geometry,
    /// What the chip allows.
    pub capabilities: Capabilities,
    /// Latencies.
    pub timing: Timing,
    /// Error correction.
    pub ecc: Ecc,
    /// Erases of a block that the maker promises.
    pub endurance: u32,
}

impl Profile {
    const fn whole_page(&self) -> u64 {
        (self.geometry.page_bytes + self.geometry.spare_bytes) as u64
    }

    /// Nanoseconds of one page read that follows the previous page.
    pub const fn page_read_ns(&self) -> u64 {
        self.timing.read_ns + self.whole_page() * self.timing.read_byte_ns
    }

    /// Nanoseconds of one page program that follows the previous page.
    pub const fn page_program_ns(&self) -> u64 {
        self.timing.program_ns + self.whole_page() * self.timing.program_byte_ns
    }

    /// The same chip with another number of blocks.
    pub const fn with_blocks(mut self, blocks: u32) -> Self {
        self.geometry.blocks = blocks;
        self
    }

    /// The same chip with pages that share no cells.
    ///
    /// The papers' models assume this of MLC chips.
    pub const fn without_pairing(mut self) -> Self {
        self.capabilities.pairing = Pairing::None;
        self
    }
}

/// Nanoseconds to move `bytes` at `kib_per_second`.
const fn ns_at(bytes: u64, kib_per_second: u64) -> u64 {
    bytes * 1_000_000_000 / (kib_per_second * 1024)
}

const NAND: Capabilities = Capabilities {
    programs_per_page: Some(1),
    in_order: true,
    pairing: Pairing::None,
    rewrite: false,
    atomic_rewrite: false,
    overwrite: false,
    part_reads: false,
    bad_blocks_per_mille: 20,
};

/// MLC NAND, 4 KiB pages, 64 MiB: the chip of the μ-Tree paper's evaluation.
pub const MLC: Profile = Profile {
    key: "mlc",
    summary: "MLC NAND, 4 KiB pages, 128 pages a block, 64 MiB",
    source: "Samsung K9GAG08U0M as in the μ-Tree paper, Table 1 (size as in section 6.1); 25 ns a byte \
             is assumed, 60 us and 800.2 us follow from the printed 165.6 us and 905.8 us; pairs of \
             pages, 4 bits of ECC a 512 bytes, 5,000 erases and 2 % of bad blocks are assumed for the class",
    geometry: Geometry { page_bytes: 4096, spare_bytes: 128, pages_per_block: 128, blocks: 128 },
    capabilities: Capabilities { pairing: Pairing::DistanceThree, ..NAND },
    timing: Timing {
        read_ns: 60_000,
        read_byte_ns: 25,
        program_ns: 800_200,
        program_byte_ns: 25,
        erase_ns: 1_500_000,
        ..Timing::NOTHING
    },
    ecc: Ecc { codeword_bytes: 512, bits: 4, refresh_bits: 3 },
    endurance: 5_000,
};

/// Large-block SLC NAND, 2 KiB pages, 64 MiB.
pub const SLC: Profile = Profile {
    key: "slc",
    summary: "SLC NAND, 2 KiB pages, 64 pages a block, 64 MiB",
    source: "Samsung K9WAG08U1A as in the μ-Tree paper, Table 1, cut to 512 blocks; 25 ns a byte is \
             assumed, 25 us and 200 us follow from the printed 77.8 us and 252.8 us; 4 bits of ECC a 512 \
             bytes that survives partial programs, 100,000 erases and 2 % of bad blocks are assumed for the \
             class",
    geometry: Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks: 512 },
    capabilities: Capabilities { programs_per_page: Some(4), overwrite: true, ..NAND },
    timing: Timing { read_ns: 25_000, program_ns: 200_000, ..MLC.timing },
    ecc: Ecc { codeword_bytes: 512, bits: 4, refresh_bits: 3 },
    endurance: 100_000,
};

/// 3D TLC NAND, 16 KiB pages, 384 MiB.
pub const TLC: Profile = Profile {
    key: "tlc",
    summary: "3D TLC NAND, 16 KiB pages, 384 pages a block, 384 MiB",
    source: "a class, no single part: word lines of three pages programmed in one pass of 2.1 ms, reads \
             of 70 us and erases of 10 ms, as simulators of 3D TLC take them; 64 blocks, 1 ns a byte, \
             40 bits of ECC a KiB, 3,000 erases and 2 % of bad blocks are assumed",
    geometry: Geometry { page_bytes: 16_384, spare_bytes: 2048, pages_per_block: 384, blocks: 64 },
    capabilities: Capabilities { pairing: Pairing::WordLines(3), ..NAND },
    timing: Timing {
        read_ns: 70_000,
        read_byte_ns: 1,
        program_ns: 700_000,
        program_byte_ns: 1,
        erase_ns: 10_000_000,
        ..Timing::NOTHING
    },
    ecc: Ecc { codeword_bytes: 1024, bits: 40, refresh_bits: 30 },
    endurance: 3_000,
};

/// SPI NOR, 256-byte pages, 4 KiB sectors, 4 MiB.
pub const NOR: Profile = Profile {
    key: "nor",
    summary: "SPI NOR, 256 B pages, 4 KiB sectors, 4 MiB",
    source: "Winbond W25Q class: first byte programmed in 30 us, each other in 2.5 us, sector erase 45 ms, \
             100,000 erases (datasheet, typical); SPI at 80 MHz and 0.5 us a command are assumed",
    geometry: Geometry { page_bytes: 256, spare_bytes: 0, pages_per_block: 16, blocks: 1024 },
    capabilities: Capabilities {
        programs_per_page: None,
        in_order: false,
        overwrite: true,
        part_reads: true,
        bad_blocks_per_mille: 0,
        ..NAND
    },
    timing: Timing {
        read_ns: 500,
        read_byte_ns: 100,
        program_ns: 30_500,
        program_byte_ns: 2_600,
        erase_ns: 45_000_000,
        ..Timing::NOTHING
    },
    ecc: Ecc::NONE,
    endurance: 100_000,
};

/// DataFlash, pages of 512 and 16 bytes, 4 MiB: a device of the VMTree paper.
pub const DATAFLASH: Profile = Profile {
    key: "dataflash",
    summary: "DataFlash, pages of 512 + 16 B, 8 pages a block, 4 MiB",
    source: "AT45DB321 class at the rates of the VMTree paper, Figure 4: 475 KiB/s read, 35 KiB/s \
             erase-then-write for 512 bytes; a program without erase takes 3 ms of that, however few bytes, \
             a block erase 45 ms (typical for the part); 100,000 erases (datasheet)",
    geometry: Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 8, blocks: 1024 },
    capabilities: Capabilities {
        programs_per_page: None,
        in_order: false,
        rewrite: true,
        atomic_rewrite: false,
        overwrite: true,
        bad_blocks_per_mille: 0,
        ..NAND
    },
    timing: Timing {
        read_ns: ns_at(512, 475),
        program_ns: 3_000_000,
        erase_ns: 45_000_000,
        rewrite_extra_ns: ns_at(512, 35) - 3_000_000,
        ..Timing::NOTHING
    },
    ecc: Ecc::NONE,
    endurance: 100_000,
};

/// DataFlash with the small pages of older parts, 256 and 8 bytes, 1 MiB.
pub const DATAFLASH_264: Profile = Profile {
    key: "dataflash-264",
    summary: "DataFlash, pages of 256 + 8 B, 8 pages a block, 1 MiB",
    source: "AT45DB081 class; rates of the dataflash profile for half the bytes, a program in 2 ms, the \
             erases the same, are assumed",
    geometry: Geometry { page_bytes: 256, spare_bytes: 8, pages_per_block: 8, blocks: 512 },
    timing: Timing {
        read_ns: ns_at(256, 475),
        program_ns: 2_000_000,
        rewrite_extra_ns: ns_at(256, 35) - 2_000_000,
        ..DATAFLASH.timing
    },
    ..DATAFLASH
};

/// SD card as a block device of 512-byte sectors: a device of the VMTree paper.
///
/// 16 MiB of it are used.
pub const SD: Profile = Profile {
    key: "sd",
    summary: "SD card behind its own FTL, 512 B sectors, 16 MiB of it",
    source: "SD card of the 32-bit device in the VMTree paper, Figure 4: sequential and random 500 and 400 \
             KiB/s read, 500 and 215 KiB/s write; groups of 64 sectors that the card erases in 1 ms and that \
             then read as ones are assumed",
    geometry: Geometry { page_bytes: 512, spare_bytes: 0, pages_per_block: 64, blocks: 512 },
    capabilities: Capabilities { rewrite: true, bad_blocks_per_mille: 0, in_order: false, ..NAND },
    timing: Timing {
        read_ns: ns_at(512, 500),
        program_ns: ns_at(512, 500),
        erase_ns: 1_000_000,
        random_read_extra_ns: ns_at(512, 400) - ns_at(512, 500),
        random_program_extra_ns: ns_at(512, 215) - ns_at(512, 500),
        ..Timing::NOTHING
    },
    ecc: Ecc::NONE,
    endurance: u32::MAX,
};

/// The SD card of the VMTree paper's 16-bit device, written in units of 2 KiB.
pub const SD_2K: Profile = Profile {
    key: "sd-2k",
    summary: "SD card behind its own FTL, units of 2 KiB, 16 MiB of it",
    source: "SD card of the 16-bit device in the VMTree paper, Figure 4: sequential and random 198 and 194 \
             KiB/s read, 108 and 93 KiB/s write; groups and erases as for the sd profile",
    geometry: Geometry { page_bytes: 2048, spare_bytes: 0, pages_per_block: 64, blocks: 128 },
    timing: Timing {
        read_ns: ns_at(2048, 198),
        program_ns: ns_at(2048, 108),
        erase_ns: 1_000_000,
        random_read_extra_ns: ns_at(2048, 194) - ns_at(2048, 198),
        random_program_extra_ns: ns_at(2048, 93) - ns_at(2048, 108),
        ..Timing::NOTHING
    },
    ..SD
};

/// The NAND chip of the VMTree paper's 16-bit device.
pub const NAND_2K: Profile = Profile {
    key: "nand-2k",
    summary: "NAND behind a slow bus, 2 KiB pages, 64 pages a block, 16 MiB",
    source: "NAND of the 16-bit device in the VMTree paper, Figure 4: 203 KiB/s read, 187 KiB/s write; spare \
             area, block size, order, NOP, overwriting and reliability of the slc profile are assumed",
    geometry: Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks: 128 },
    timing: Timing {
        read_ns: ns_at(2048, 203),
        program_ns: ns_at(2048, 187),
        erase_ns: 1_500_000,
        ..Timing::NOTHING
    },
    ..SLC
};

/// Every profile, in the order in which programs list them.
pub const PROFILES: &[Profile] =
    &[MLC, SLC, TLC, NAND_2K, NOR, DATAFLASH, DATAFLASH_264, SD, SD_2K];

/// The profile named `key`.
pub fn find(key: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.key == key)
}

// Table 1 of the μ-Tree paper, to the nanosecond.
const _: () = assert!(MLC.page_read_ns() == 165_600 && MLC.page_program_ns() == 905_800);
const _: () = assert!(SLC.page_read_ns() == 77_800 && SLC.page_program_ns() == 252_800);
// A whole NOR page, as in the W25Q datasheet: 0.7 ms.
const _: () = assert!(NOR.page_program_ns() == 696_100);
