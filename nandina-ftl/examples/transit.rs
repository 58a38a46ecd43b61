//! Prints what page writes of a growing B-tree cost with buffer blocks before FAST.
//!
//! The tree has one logical page a node, 128 records a leaf and 128 children an inner node; a node
//! is written when it changes. Keys are random and unique. The argument is the number of inserts
//! (50,000 by default; the paper has 1,000,000):
//! `cargo run --release -p nandina-ftl --example transit 1000000`. A second argument selects lines
//! by the beginning of their names.
//!
//! Time counts 25 us a read, 200 us a program and 1.5 ms an erase.
//!
//! Wear levelling is a part of the counts, unless a line says "unlevelled". With fewer buffer blocks
//! than logical blocks, as printed, buffer blocks are erased so often that data blocks are moved for
//! it. With "ascending" keys a B-tree halves its full leaves, and behind a buffer they stay full, as
//! in the WPCB-tree. "Part of a device" is a smaller tree on a large device, as `Buffer::improved`
//! sizes it; "continued" is FAST with a sequential log block only where pages follow one another.

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

/// Data blocks of the device.
const DATA_BLOCKS: u32 = 260;

/// FAST with a sequential log block for each write to the first page of a logical block.
const fn fast(log_blocks: u32) -> Fast {
    Fast { log_blocks, sequential: SequentialRule::FirstPage }
}

/// Whether the second argument selects a line.
fn is_wanted(name: &str) -> bool {
    std::env::args().nth(2).is_none_or(|wanted| name.starts_with(&wanted))
}

/// The beginning of a line's name that says that each key is the next one.
const ASCENDING: &str = "ascending";

/// The end of a line's name that says that nothing levels wear.
const UNLEVELLED: &str = "unlevelled";

fn run(name: &str, log_blocks: u32, buffer: Buffer, inserts: u32) {
    run_on(DATA_BLOCKS, name, fast(log_blocks), buffer, inserts);
}

fn run_on(data_blocks: u32, name: &str, over: Fast, buffer: Buffer, inserts: u32) {
    if !is_wanted(name) {
        return;
    }
    let log_blocks = over.log_blocks;
    let blocks = data_blocks + log_blocks + buffer.blocks;
    let geometry = Geometry { pages_per_block: PAGES, blocks, ..TINY.geometry };
    let profile = Profile { geometry, ..TINY };
    let policy = Transit { over, buffer };
    let pages = logical_pages_max(&geometry, &profile.capabilities, &policy);
    let mut ram = vec![0; ram_needed(&geometry, &profile.capabilities, &policy, pages)];
    let mut chip = Chip::new(profile);
    let mut ftl = Hybrid::format(&mut chip, policy, pages, &mut ram).unwrap();
    ftl.set_wear_levelling(!name.ends_with(UNLEVELLED));
    let is_ascending = name.starts_with(ASCENDING);
    let keeps_full_leaves = is_ascending && buffer.blocks > 0;
    let mut tree = if keeps_full_leaves { Tree::keeping_full_leaves() } else { Tree::new() };
    let (mut numbers, mut used) = (Numbers(1), HashSet::new());
    for next in 0..inserts {
        let key = loop {
            let key = if is_ascending { next } else { numbers.below(1 << 31) };
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

/// Prints what a mount costs that only reads, and one that converts all, as the paper has it.
fn mount(blocks: u32, inserts: u32) {
    if !is_wanted("a mount") {
        return;
    }
    let geometry = Geometry { pages_per_block: PAGES, blocks: 276 + blocks, ..TINY.geometry };
    let profile = Profile { geometry, ..TINY };
    let policy = Transit { over: fast(16), buffer: Buffer::as_printed(blocks) };
    let pages = logical_pages_max(&geometry, &profile.capabilities, &policy);
    let mut ram = vec![0; ram_needed(&geometry, &profile.capabilities, &policy, pages)];
    let mut chip = Chip::new(profile);
    let mut ftl = Hybrid::format(&mut chip, policy, pages, &mut ram).unwrap();
    let (mut tree, mut numbers) = (Tree::new(), Numbers(1));
    for _ in 0..inserts {
        tree.insert(numbers.below(1 << 31), &mut |page| ftl.write(page, &[0; 512]).unwrap());
    }
    let before = chip.counters();
    let mut ftl = Hybrid::open(&mut chip, policy, pages, &mut ram).unwrap();
    let opened = ftl.flash().counters();
    ftl.convert_all().unwrap();
    let converted = ftl.flash().counters();
    let time = |reads: u64, programs: u64, erases: u64| {
        reads as f64 * 25e-6 + programs as f64 * 2e-4 + erases as f64 * 1.5e-3
    };
    let reads = opened.reads - before.reads;
    println!("a mount, C = {blocks}: {reads} reads, {:.3} s", time(reads, 0, 0));
    let reads = converted.reads - opened.reads;
    let (programs, erases) =
        (converted.programs - opened.programs, converted.erases - opened.erases);
    let seconds = time(reads, programs, erases);
    println!(
        "converting all behind it: {reads} reads, {programs} programs, {erases} erases, {seconds:.3} s"
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
    for (blocks, log_blocks) in
        [(192, 12), (192, 16), (64, 16), (128, 16), (64, 100), (128, 100), (192, 100)]
    {
        run("improved", log_blocks, Buffer::improved(blocks, used, PAGES), inserts);
    }
    for blocks in [64, 128] {
        for log_blocks in [16, 100] {
            run("as printed, unlevelled", log_blocks, Buffer::as_printed(blocks), inserts);
        }
    }
    for log_blocks in [4, 16, 100] {
        run("ascending, btree", log_blocks, Buffer::NONE, inserts);
        run("ascending, as printed", log_blocks, Buffer::as_printed(128), inserts);
        let improved = Buffer::improved(128, used, PAGES);
        run("ascending, improved", log_blocks, improved, inserts);
        for (name, buffer) in [
            ("ascending, btree, unlevelled", Buffer::NONE),
            ("ascending, as printed, unlevelled", Buffer::as_printed(128)),
        ] {
            run(name, log_blocks, buffer, inserts);
        }
    }
    let improved = Buffer::improved(48, 2000 * PAGES, PAGES);
    for buffer in [Buffer::NONE, Buffer::as_printed(48), improved] {
        for part in [5, 3] {
            let name = if buffer == improved { "improved, part of" } else { "part of a device" };
            run_on(2000, name, fast(16), buffer, inserts / part);
        }
    }
    let continues = Fast { sequential: SequentialRule::Continues, ..fast(100) };
    run_on(DATA_BLOCKS, "btree, continued", continues, Buffer::NONE, inserts);
    run_on(DATA_BLOCKS, "as printed, continued", continues, Buffer::as_printed(128), inserts);
    for (blocks, log_blocks) in [(64, 16), (192, 16)] {
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
    for blocks in [64, 192] {
        mount(blocks, inserts);
    }
}
