//! The address maps of our hybrid FTLs, `bast` and `fast`, in the paper's spaces.
//!
//! They stand beside the paper's hybrid map, of which it prints no formula. Counted is what those
//! FTLs keep in RAM to find a page, exactly: 4 bytes for each logical block, 20 for each log block,
//! and 10 for each page of a log block. Not counted are page buffers and the block table, which
//! every FTL has. Pages have 4 KB and blocks 64 of them, as in the paper's introduction.

use nandina::flash::Geometry;
use nandina::flash::profile::SLC;
use nandina_ftl::hybrid::{Bast, Fast, Policy, SequentialRule, blocks_needed, map_bytes};

use super::memory::page_map;
use crate::layer::Layer;
use crate::reproduce::Row;

/// Pages of a block: 256 KB of 4 KB each (§1).
const BLOCK_PAGES: u32 = 64;

/// How many log blocks an FTL has, in words, and the names of its rows.
#[derive(Clone, Copy)]
pub struct Logs {
    pub words: &'static str,
    map: &'static str,
    of_pmt: &'static str,
    percent: Option<u64>,
}

/// The default of our hybrid FTLs.
pub const FEW: Logs = Logs {
    words: "16 log blocks",
    map: "map, 16 log blocks",
    of_pmt: "map of PMT, 16 log blocks",
    percent: None,
};

/// What the paper says of hybrid FTLs: about 30 % of the usable capacity (§1).
pub const TYPICAL: Logs = Logs {
    words: "log blocks of 30 % of the space",
    map: "map, log blocks of 30 % of the space",
    of_pmt: "map of PMT, log blocks of 30 % of the space",
    percent: Some(30),
};

/// Our hybrid FTLs that have log blocks.
const SYSTEMS: [&str; 2] = ["bast", "fast"];

/// Bytes of the map in a space of so many GiB, on the smallest chip for it.
fn bytes(system: &str, logs: &Logs, space_gib: u64) -> f64 {
    let pages = (page_map(space_gib) / 4.0) as u32;
    let blocks = pages.div_ceil(BLOCK_PAGES);
    let of = |percent| (u64::from(blocks) * percent / 100) as u32;
    let log_blocks = logs.percent.map_or(Layer::LOG_BLOCKS, of);
    match system {
        "bast" => map(Bast { log_blocks }, pages),
        _ => map(Fast { log_blocks, sequential: SequentialRule::FirstPage }, pages),
    }
}

fn map(policy: impl Policy, pages: u32) -> f64 {
    let one =
        Geometry { page_bytes: 4096, spare_bytes: 128, pages_per_block: BLOCK_PAGES, blocks: 1 };
    let blocks = blocks_needed(&one, &SLC.capabilities, &policy, pages);
    map_bytes(&Geometry { blocks, ..one }, &SLC.capabilities, &policy, pages) as f64
}

/// The smaller one of the maps with these log blocks, in per cent of the page map.
pub fn share(logs: &Logs, space_gib: u64) -> f64 {
    let least = SYSTEMS.map(|system| bytes(system, logs, space_gib));
    100.0 * least[0].min(least[1]) / page_map(space_gib)
}

/// The bytes of each map, and its per cent of the page map.
pub fn rows(config: &str, space_gib: u64) -> Vec<Row> {
    let all = [FEW, TYPICAL].into_iter().flat_map(|logs| SYSTEMS.map(|system| (system, logs)));
    let of = |(system, logs): (&'static str, Logs)| {
        let bytes = bytes(system, &logs, space_gib);
        let share = 100.0 * bytes / page_map(space_gib);
        [
            Row::alone(system, config, logs.map, bytes / f64::from(1 << 20), "MB"),
            Row::alone(system, config, logs.of_pmt, share, "%"),
        ]
    };
    all.flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_has_four_bytes_a_block_and_ten_a_page_of_a_log_block() {
        for system in SYSTEMS {
            // 2^17 logical blocks; 4 more log blocks that a mount needs, 16 that may go bad.
            let (blocks, log_block) = (f64::from(1 << 17), f64::from(20 + 10 * BLOCK_PAGES));
            let few = 4.0 * blocks + (16.0 + 20.0) * log_block;
            let typical = 4.0 * blocks + ((0.3 * blocks).floor() + 20.0) * log_block;
            assert_eq!(bytes(system, &FEW, 32), few, "{system}");
            assert_eq!(bytes(system, &TYPICAL, 32), typical, "{system}");
        }
        assert_eq!(format!("{:.2}", share(&FEW, 32)), "1.63");
        assert_eq!(format!("{:.2}", share(&TYPICAL, 32)), "78.94");
        assert!(share(&FEW, 1024) < share(&FEW, 32));
    }
}
