//! Prints what a mount of the FTL reads, by the size of the chip and the age of the checkpoint.
//!
//! The device is two thirds full of pages in random order. A checkpoint is written, then pages
//! until the given number of blocks was opened, and the chip is mounted as after a cut:
//! `cargo run --release -p nandina-ftl --example mounts`.

use nandina::flash::profile::SLC;
use nandina::flash::{Geometry, Profile};
use nandina_ftl::ftl::{Ftl, logical_page_bytes, logical_pages_max, ram_needed, space_of};
use nandina_ftl::mapping::{Compact, Mapping};
use nandina_sim::SparseChip;

#[path = "../tests/numbers/mod.rs"]
mod numbers;

use numbers::Numbers;

/// Blocks opened since the checkpoint.
const OPENED: [u64; 4] = [0, 4, 16, 64];

fn main() {
    println!(
        "{:>7} {:>9} {:>10} {:>8} {:>8} {:>30}",
        "blocks", "pages", "map bytes", "parts", "without", "reads by blocks opened since"
    );
    println!("{:>47} {}", "", OPENED.map(|opened| format!("{opened:>7}")).join(""));
    for blocks in [128, 512, 2048, 8192] {
        let geometry = Geometry { blocks, ..SLC.geometry };
        row(Profile { geometry, ..SLC });
    }
}

fn row(profile: Profile) {
    let Profile { geometry, capabilities, .. } = profile;
    let most = logical_pages_max(&geometry, &capabilities);
    let logical_pages = most - most / 8;
    let space = space_of(&geometry, &capabilities, logical_pages);
    let mut ram = vec![0; ram_needed(&geometry)];
    let mut memory = vec![0; 8 * geometry.pages() as usize];
    let zeros = vec![0; logical_page_bytes(&geometry)];
    let (mut numbers, written) = (Numbers(1), logical_pages * 2 / 3);

    let map = Compact::new(space, &mut memory).expect("the memory suffices");
    let chip = SparseChip::new(profile);
    let mut ftl = Ftl::format(chip, map, logical_pages, &mut ram).expect("a new chip");
    for _ in 0..2 * written {
        ftl.write(numbers.below(written), &zeros).expect("a healthy chip");
    }
    let bytes = ftl.mapping().bytes().used;
    let mut chip = ftl.into_flash();

    let (mut reads, mut parts, mut without) = (Vec::new(), 0, 0);
    for opened in [None].into_iter().chain(OPENED.map(Some)) {
        let before = chip.counters();
        let map = Compact::new(space, &mut memory).expect("the memory suffices");
        let mut ftl = Ftl::open(chip, map, logical_pages, &mut ram).expect("an FTL");
        let taken = ftl.flash().counters() - before;
        if parts == 0 {
            without = taken.reads;
        } else {
            reads.push(taken.reads);
        }
        if let Some(opened) = opened {
            // The first change settles the cut.
            ftl.write(0, &zeros).expect("a healthy chip");
            let before = ftl.statistics();
            assert!(ftl.checkpoint().expect("a healthy chip"), "there is room for a checkpoint");
            parts = ftl.statistics().own - before.own;
            let erases = ftl.statistics().erases;
            while ftl.statistics().erases < erases + opened {
                ftl.write(numbers.below(written), &zeros).expect("a healthy chip");
            }
        }
        chip = ftl.into_flash();
    }
    let before = chip.counters();
    let map = Compact::new(space, &mut memory).expect("the memory suffices");
    let ftl = Ftl::open(chip, map, logical_pages, &mut ram).expect("an FTL");
    reads.push((ftl.flash().counters() - before).reads);
    let reads = reads.iter().map(|reads| format!("{reads:>7}")).collect::<String>();
    println!(
        "{blocks:>7} {:>9} {bytes:>10} {parts:>8} {without:>8} {reads}",
        geometry.pages(),
        blocks = geometry.blocks
    );
}
