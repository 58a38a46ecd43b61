//! Prints what page writes of a growing B-tree cost with buffer blocks before FAST.
//!
//! The tree has one logical page a node, 128 records a leaf and 128 children an inner node; a node
//! is written when it changes. Keys are random and unique. The argument is the number of inserts
//! (50,000 by default; the paper has 1,000,000):
//! `cargo run --release -p nandina-ftl --example transit 1000000`.
//!
//! Time counts 25 us a read, 200 us a program and 1.5 ms an erase.
//!
//! Wear levelling is a part of the counts. With fewer buffer blocks than logical blocks, as
//! printed, buffer blocks are erased so often that data blocks are moved for it: of 1,000,000
//! inserts with N = 16 each takes 5.99 programs at C = 64 and 3.29 at C = 128; without wear
//! levelling they would be 4.36 and 2.87.

use std::collections::HashSet;

use nandina::flash::{Geometry, Profile};
use nandina_ftl::LogicalPages;
use nandina_ftl::hybrid::{
    Buffer, Fast, Hybrid, SequentialRule, Transit, logical_pages_max, ram_needed,
};
use nandina_sim::{Chip, TINY};

#[path = "../tests/numbers/mod.rs"]
mod numbers;
#[path = "../tests/tree/mod.rs"]
mod tree;

use numbers::Numbers;
use tree::Tree;

/// Pages of a block.
const PAGES: u32 = 64;

fn run(name: &str, log_blocks: u32, buffer: Buffer, inserts: u32) {
    let blocks = 260 + log_blocks + buffer.blocks;
    let geometry = Geometry { pages_per_block: PAGES, blocks, ..TINY.geometry };
    let profile = Profile { geometry, ..TINY };
    let over = Fast { log_blocks, sequential: SequentialRule::FirstPage };
    let policy = Transit { over, buffer };
    let pages = logical_pages_max(&geometry, &profile.capabilities, &policy);
    let mut ram = vec![0; ram_needed(&geometry, &profile.capabilities, &policy, pages)];
    let mut chip = Chip::new(profile);
    let mut ftl = Hybrid::format(&mut chip, policy, pages, &mut ram).unwrap();
    let (mut tree, mut numbers, mut used) = (Tree::new(), Numbers(1), HashSet::new());
    for _ in 0..inserts {
        let key = loop {
            let key = numbers.below(1 << 31);
            if used.insert(key) {
                break key;
            }
        };
        tree.insert(key, &mut |page| ftl.write(page, &[0; 512]).unwrap());
    }
    let (done, merges, conversions) = (ftl.statistics(), ftl.merges(), ftl.conversions());
    let of = |count: u64| count as f64 / f64::from(inserts);
    let counters = chip.counters();
    let time =
        counters.reads as f64 * 25e-6 + done.programmed as f64 * 2e-4 + done.erases as f64 * 1.5e-3;
    println!(
        "{name:26} {:4} {log_blocks:4} | {:6.3} {:6.4} {:6.3} {:7.1} | {:7} {:7} {:7} | {:7} {:5.1} {:5.1} {:7} | {}",
        buffer.blocks,
        of(done.programmed),
        of(done.erases),
        of(counters.reads),
        time,
        merges.switch,
        merges.partial,
        merges.full,
        conversions.blocks,
        conversions.appended as f64 / conversions.blocks.max(1) as f64,
        conversions.newest as f64 / conversions.blocks.max(1) as f64,
        conversions.completed,
        tree.pages(),
    );
}

fn main() {
    let inserts = std::env::args().nth(1).map_or(50_000, |it| it.parse().expect("a number"));
    println!("{inserts} inserts; programs, erases and reads of each, and seconds of all");
    println!(
        "                              C    N |   programs erases  reads    time |  switch partial    \
         full | converted pages newest completed | nodes"
    );
    for log_blocks in [16, 100] {
        run("btree", log_blocks, Buffer::NONE, inserts);
    }
    for (blocks, log_blocks) in [(64, 16), (128, 16), (128, 100), (192, 11), (192, 16)] {
        run("as printed", log_blocks, Buffer::as_printed(blocks), inserts);
    }
    // The logical blocks of the tree of 1,000,000 records: what a host knows of itself.
    let used = 184 * PAGES;
    for (blocks, log_blocks) in [(192, 12), (192, 16), (64, 16)] {
        run("improved", log_blocks, Buffer::improved(blocks, used, PAGES), inserts);
    }
    for (blocks, log_blocks) in [(64, 16), (128, 16), (192, 16)] {
        let (printed, all) = (Buffer::as_printed(blocks), Buffer::improved(blocks, used, PAGES));
        let Buffer { neighbours, completes_from, .. } = all;
        run("newest read only", log_blocks, Buffer { reads_newest_only: true, ..printed }, inserts);
        run(
            "superseded dropped",
            log_blocks,
            Buffer { drops_superseded: true, ..printed },
            inserts,
        );
        run("completed", log_blocks, Buffer { completes_from, ..printed }, inserts);
        run("neighbours", log_blocks, Buffer { neighbours, ..printed }, inserts);
        run(
            "neighbours, completed",
            log_blocks,
            Buffer { neighbours, completes_from, ..printed },
            inserts,
        );
        run("all", log_blocks, all, inserts);
    }
}
