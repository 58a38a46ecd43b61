//! The μ-Tree paper's model (section 4) against real trees of both systems.
//!
//! The trees grow by random insertion.
//!
//! The difference: the model's nodes are full, real ones are between half and entirely full. So
//! with the real capacity of a page as *f*, a real tree has 1 to 2 times the model's leaves, about
//! 1.44 times (1 / ln 2) over sizes that span a doubling. Its height is the model's for the same
//! records, or for twice the records a level.

use std::sync::OnceLock;

use nandina::flash::profile::MLC;
use nandina::node::{PageLayout, Shape};
use nandina::store::{Mu, Wandering};
use nandina::{Index, Options, Statistics, System, ram_needed};
use nandina_lab::analysis::{Tree, levels, mu_pages, wandering_pages};
use nandina_lab::work::Work;
use nandina_sim::Chip;

const ENTRY: Shape = Shape::sorted(4, 4);

/// Entries of a page of the `mlc` chip with our header, the model's *f*.
fn entries() -> u32 {
    let geometry = MLC.geometry;
    let layout = PageLayout::new(geometry.page_bytes as usize, geometry.spare_bytes as usize);
    ENTRY.capacity(layout.area_bytes()) as u32
}

/// Statistics of a tree at each of [`sizes`], which ascend. Each tree is grown once for all checks.
fn grown<S: System>(once: &'static OnceLock<Vec<Statistics>>) -> &'static [Statistics] {
    once.get_or_init(|| grow::<S>(&sizes()))
}

static WANDERING: OnceLock<Vec<Statistics>> = OnceLock::new();
static MU: OnceLock<Vec<Statistics>> = OnceLock::new();

fn grow<S: System>(sizes: &[u32]) -> Vec<Statistics> {
    static WORK: OnceLock<Work> = OnceLock::new();
    let most = sizes.iter().copied().max().unwrap();
    let seed = crate::harness::seed();
    let work = WORK.get_or_init(|| Work::random_rows(most, 4, 4, seed).unwrap());
    let options = Options::new(4, 4);
    let profile = MLC.without_pairing();
    let mut ram = vec![0; ram_needed::<S>(&profile.geometry, &options)];
    let mut chip = Chip::new(profile);
    let mut index = Index::<_, S>::format(&mut chip, &options, &mut ram).unwrap();
    let (mut row, mut grown) = (0, Vec::new());
    for &size in sizes {
        while row < size {
            index.insert(work.key(row), work.value(row)).unwrap();
            row += 1;
        }
        grown.push(index.statistics());
    }
    grown
}

/// Sizes that span doublings evenly, from one leaf to three levels.
fn sizes() -> Vec<u32> {
    let spread = (0..32).map(|step| (60_000.0 * 2f64.powf(f64::from(step) / 16.0)) as u32);
    [100, 1_000, 5_000, 20_000].into_iter().chain(spread).collect()
}

/// The greatest height of a real tree: every node but the root is half full.
fn highest(tree: Tree, f: f64, records: f64) -> u32 {
    let half_full = |height: &u32| {
        let full = nandina_lab::analysis::records_at_height(tree, f, *height);
        // The root may have two entries; every other node is half full.
        full / 2f64.powi(*height as i32 - 1) >= records
    };
    (1..=12).find(half_full).unwrap()
}

fn heights_agree(tree: Tree, sizes: &[u32], grown: &[Statistics]) {
    let f = f64::from(entries());
    let mut as_modelled = 0;
    for (&size, statistics) in sizes.iter().zip(grown) {
        let records = f64::from(size);
        let least = levels(tree, f, records).unwrap();
        let height = u32::from(statistics.height);
        let most = highest(tree, f, records);
        assert!((least..=most).contains(&height), "{tree:?} {size}: {height}, {least} to {most}");
        assert!(height <= least + 1, "{tree:?} {size}: {height}, the model says {least}");
        as_modelled += usize::from(height == least);
    }
    assert!(as_modelled * 2 > sizes.len(), "{tree:?}: {as_modelled} of {} heights", sizes.len());
}

/// Compares real leaves with the model's.
///
/// The comparison is at each size, and over all sizes after the first four.
fn leaves_agree(tree: Tree, sizes: &[u32], leaves: &[u32], modelled: &[u64]) {
    let ratio: Vec<f64> =
        leaves.iter().zip(modelled).map(|(&real, &model)| f64::from(real) / model as f64).collect();
    for (ratio, size) in ratio.iter().zip(sizes) {
        // A little under 1 where the root of a tree of height 1 is larger than a leaf.
        assert!((0.99..=2.05).contains(ratio), "{tree:?} {size}: {ratio}");
    }
    let mean = ratio[4..].iter().sum::<f64>() / (ratio.len() - 4) as f64;
    let expected = 1.0 / 2f64.ln();
    assert!((mean / expected - 1.0).abs() < 0.05, "{tree:?}: {mean}, expected {expected}");
}

#[test]
fn wandering_trees_are_as_the_model_says() {
    let sizes = sizes();
    let grown = grown::<Wandering>(&WANDERING);
    heights_agree(Tree::Wandering, &sizes, grown);
    let pages: Vec<u32> = grown.iter().map(|statistics| statistics.valid_pages).collect();
    let modelled: Vec<u64> =
        sizes.iter().map(|&size| wandering_pages(entries(), u64::from(size))).collect();
    leaves_agree(Tree::Wandering, &sizes, &pages, &modelled);
    for (statistics, &modelled) in grown.iter().zip(&modelled) {
        // Equation (9): inner nodes hardly count.
        assert!(statistics.inner_nodes * 50 <= statistics.valid_pages.max(150), "{modelled}");
    }
}

#[test]
fn mu_trees_are_as_the_model_says() {
    let sizes = sizes();
    let grown = grown::<Mu>(&MU);
    heights_agree(Tree::Mu, &sizes, grown);
    let pages: Vec<u32> = grown.iter().map(|statistics| statistics.valid_pages).collect();
    let modelled: Vec<u64> =
        sizes.iter().map(|&size| mu_pages(entries(), u64::from(size))).collect();
    leaves_agree(Tree::Mu, &sizes, &pages, &modelled);
}

#[test]
fn a_mu_tree_takes_about_twice_the_pages_of_a_wandering_one() {
    let pages = |grown: &[Statistics]| -> f64 {
        grown[4..].iter().map(|statistics| f64::from(statistics.valid_pages)).sum()
    };
    // Equation (11), over sizes that span doublings evenly.
    let ratio = pages(grown::<Wandering>(&WANDERING)) / pages(grown::<Mu>(&MU));
    assert!((ratio - 0.5).abs() < 0.05, "{ratio}");
}
