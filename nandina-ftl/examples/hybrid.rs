//! Prints what page writes of a growing B-tree cost on hybrid FTLs, and their RAM.
//!
//! The tree has one logical page a node and 128 records a leaf; inner nodes are written when a leaf
//! is divided. Keys are random. The first argument is the number of inserts (50,000 by default),
//! the others are numbers of log blocks (4, 16 and 100). Up to 100,000 inserts there are rows for
//! the block map and BAST too, which take much longer:
//! `cargo run --release -p nandina-ftl --example hybrid 1000000 16 100`.

use std::time::Instant;

use nandina::flash::{Geometry, Profile};
use nandina_ftl::LogicalPages;
use nandina_ftl::hybrid::{
    Bast, Block, Fast, Hybrid, Policy, SequentialRule, logical_pages_max, map_bytes, ram_needed,
};
use nandina_sim::{Chip, TINY};

#[path = "../tests/numbers/mod.rs"]
mod numbers;

use numbers::Numbers;

/// Records of a leaf.
const FANOUT: usize = 128;

/// The page writes of a growing tree.
struct Tree {
    /// Leaves in key order: page and keys.
    leaves: Vec<(u32, Vec<u32>)>,
    pages: u32,
    /// Children of the inner node that is written at the next division.
    divided: usize,
    inner: u32,
}

impl Tree {
    fn new() -> Self {
        Self { leaves: vec![(0, Vec::new())], pages: 2, divided: 0, inner: 1 }
    }

    /// Inserts a key, and calls `write` for each page.
    fn insert(&mut self, key: u32, write: &mut dyn FnMut(u32)) {
        let at = self.leaves.partition_point(|(_, keys)| keys.first().is_some_and(|&it| it <= key));
        let at = at.saturating_sub(1);
        let (page, keys) = &mut self.leaves[at];
        let place = keys.partition_point(|&it| it < key);
        keys.insert(place, key);
        if keys.len() <= FANOUT {
            write(*page);
            return;
        }
        let upper = keys.split_off(FANOUT / 2);
        write(self.pages);
        write(*page);
        self.leaves.insert(at + 1, (self.pages, upper));
        self.pages += 1;
        self.divided += 1;
        if self.divided.is_multiple_of(FANOUT * 2 / 3) {
            self.inner = self.pages;
            self.pages += 1;
        }
        write(self.inner);
    }
}

fn run<P: Policy>(name: &str, policy: P, log_blocks: u32, inserts: u32) {
    let blocks = 300 + log_blocks;
    let geometry = Geometry { pages_per_block: 64, blocks, ..TINY.geometry };
    let profile = Profile { geometry, ..TINY };
    let pages = logical_pages_max(&geometry, &profile.capabilities, &policy);
    let mut ram = vec![0; ram_needed(&geometry, &profile.capabilities, &policy, pages)];
    let mut chip = Chip::new(profile);
    let mut ftl = Hybrid::format(&mut chip, policy, pages, &mut ram).unwrap();
    let (mut tree, mut numbers) = (Tree::new(), Numbers(1));
    let start = Instant::now();
    for _ in 0..inserts {
        let key = numbers.below(1 << 31);
        tree.insert(key, &mut |page| ftl.write(page, &[0; 512]).unwrap());
    }
    let (done, merges) = (ftl.statistics(), ftl.merges());
    let of = |count: u64| count as f64 / f64::from(inserts);
    println!(
        "{name:16} {log_blocks:4} | {:8.2} {:8.4} | {:8} {:8} {:8} | {:7} {:5.1} % | {:4} s",
        of(done.programmed),
        of(done.erases),
        merges.switch,
        merges.partial,
        merges.full,
        map_bytes(&geometry, &profile.capabilities, &policy, pages),
        100.0 * map_bytes(&geometry, &profile.capabilities, &policy, pages) as f64
            / (4.0 * f64::from(geometry.pages())),
        start.elapsed().as_secs(),
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|it| it.parse().expect("a number"));
    let inserts = arguments.next().unwrap_or(50_000);
    let mut counts: Vec<u32> = arguments.collect();
    if counts.is_empty() {
        counts = vec![4, 16, 100];
    }
    println!("{inserts} inserts; programs and erases of each, merges of all, bytes of the map");
    println!(
        "FTL       log blocks | programs   erases |   switch  partial     full | map, of a page map"
    );
    if inserts <= 100_000 {
        run("block", Block, 0, inserts);
    }
    for log_blocks in counts {
        if inserts <= 100_000 {
            run("bast", Bast { log_blocks }, log_blocks, inserts);
        }
        for (name, sequential) in [
            ("fast, first page", SequentialRule::FirstPage),
            ("fast, continues", SequentialRule::Continues),
        ] {
            run(name, Fast { log_blocks, sequential }, log_blocks, inserts);
        }
    }
}
