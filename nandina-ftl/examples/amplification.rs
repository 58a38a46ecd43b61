//! Prints how many pages an FTL programs for each page that its host writes.
//!
//! The device is full, and single pages are written at random: all alike, or by Zipf's law with the
//! exponent 0.99. Blocks to collect are chosen in several ways. The first three device fulls do
//! not count, the next three do: `cargo run --release -p nandina-ftl --example amplification`.

use nandina::blocks::GcPolicy;
use nandina::flash::Geometry;
use nandina::flash::Profile;
use nandina::flash::profile::SLC;
use nandina_ftl::ftl::{Ftl, logical_page_bytes, logical_pages_max, ram_needed_with, space_of};
use nandina_ftl::mapping::Page;
use nandina_sim::SparseChip;

#[path = "../tests/numbers/mod.rs"]
mod numbers;
#[path = "../tests/zipf/mod.rs"]
mod zipf;

use numbers::Numbers;
use zipf::Zipf;

/// Device fulls of writes that do not count, and as many that do.
const FULLS: u32 = 3;

/// How blocks to collect are chosen.
const VICTIMS: [GcPolicy; 5] = [
    GcPolicy::Fewest,
    GcPolicy::CostBenefit,
    GcPolicy::Sampled(2),
    GcPolicy::Sampled(8),
    GcPolicy::Sampled(32),
];

fn main() {
    let geometry = Geometry { blocks: 1024, ..SLC.geometry };
    let profile = Profile { geometry, ..SLC };
    println!("{:>8} {:>10} {:>12} {:>9} {:>9}", "spare", "pages", "victims", "uniform", "Zipf");
    for spare in [7, 15, 25] {
        let logical_pages = geometry.pages() * 100 / (100 + spare);
        let logical_pages = logical_pages.min(logical_pages_max(&geometry, &profile.capabilities));
        let law = Zipf::new(logical_pages);
        for victims in VICTIMS {
            let measure = |draw: &dyn Fn(&mut Numbers) -> u32| {
                amplification(profile, logical_pages, victims, draw)
            };
            let uniform = measure(&|numbers| numbers.below(logical_pages));
            let zipf = measure(&|numbers| law.draw(numbers));
            let victims = format!("{victims:?}");
            println!("{spare:>7}% {logical_pages:>10} {victims:>12} {uniform:>9.3} {zipf:>9.3}");
        }
    }
}

/// The write amplification.
fn amplification(
    profile: Profile,
    logical_pages: u32,
    victims: GcPolicy,
    draw: &dyn Fn(&mut Numbers) -> u32,
) -> f64 {
    let Profile { geometry, capabilities, .. } = profile;
    let space = space_of(&geometry, &capabilities, logical_pages);
    let mut ram = vec![0; ram_needed_with(&geometry, victims)];
    let mut memory = vec![0; 4 * logical_pages as usize];
    let zeros = vec![0; logical_page_bytes(&geometry)];
    let map = Page::new(space, &mut memory).expect("the memory suffices");
    let chip = SparseChip::new(profile);
    let mut ftl =
        Ftl::format_with(chip, map, logical_pages, victims, &mut ram).expect("a new chip");
    let mut numbers = Numbers(1);
    for logical in 0..logical_pages {
        ftl.write(logical, &zeros).expect("a healthy chip");
    }
    let mut before = ftl.statistics();
    for turn in 0..2 * FULLS {
        if turn == FULLS {
            before = ftl.statistics();
        }
        for _ in 0..logical_pages {
            ftl.write(draw(&mut numbers), &zeros).expect("a healthy chip");
        }
    }
    let after = ftl.statistics();
    let written = after.host_writes - before.host_writes;
    let programmed = after.programmed - before.programmed;
    programmed as f64 / written as f64
}
