//! The μ-Tree paper's model (section 4): height, space and cost of both trees.
//!
//! The model's *f* is the number of entries that fill a page ([`entries_per_page`]). A real page
//! also has a header, and each node a count, so a comparison with a real tree passes the real
//! capacity instead. The model assumes full nodes. Nodes that grew by random insertion are 69 %
//! full (ln 2) in the long run and never less than half full: so a real tree has 1 to 2 times the
//! model's leaves, and may be one level higher where the model is close to full.
//! `tests/conformance/analysis.rs` compares the model with real trees.

mod tables;

pub use tables::{CostRow, HeightPoint, figure_7, table_3};

/// Entries that fill a page: *f* of Table 2. Sizes are in bytes, both at least 1.
///
/// The paper's *f* is 512: pages of 4 KiB, entries of 8 bytes (a key and a pointer of 4 each).
pub const fn entries_per_page(page_bytes: u32, entry_bytes: u32) -> u32 {
    page_bytes / entry_bytes
}

/// The system whose tree is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tree {
    /// The wandering B+-tree: a node fills a page.
    Wandering,
    /// μ-Tree: a path fills a page.
    Mu,
}

/// Equations (1) and (4): entries of a node at `level`, as a real number.
///
/// Level 1 is the leaf of a tree of `height`.
///
/// `f` is the entries of a page, at least 1; `level` is 1 to `height`. `None` for other levels.
pub fn node_entries(tree: Tree, f: f64, level: u32, height: u32) -> Option<f64> {
    if level == 0 || level > height {
        return None;
    }
    Some(match tree {
        Tree::Wandering => f,
        Tree::Mu if level == height => f / 2f64.powi(level as i32 - 1),
        Tree::Mu => f / 2f64.powi(level as i32),
    })
}

/// Equations (2) and (5): records that a full tree of `height` indexes.
///
/// `f` is the entries of a page, at least 1; `height` is at least 1.
pub fn records_at_height(tree: Tree, f: f64, height: u32) -> f64 {
    let height = height as i32;
    match tree {
        Tree::Wandering => f.powi(height),
        Tree::Mu => (1..=height).fold(2.0, |records, level| records * f / 2f64.powi(level)),
    }
}

/// Equations (3) and (6): the height of a tree of full nodes, as a real number.
///
/// `f` is the entries of a page, above 1; `records` is above 0. `None` for a μ-Tree of more records
/// than any height could hold: the square root of equation (6) is then of a negative number.
pub fn height(tree: Tree, f: f64, records: f64) -> Option<f64> {
    match tree {
        Tree::Wandering => Some(records.log2() / f.log2()),
        Tree::Mu => {
            let half = (2f64.sqrt() / f).log2();
            let root = half * half - 2.0 * (records / 2.0).log2();
            (root >= 0.0).then(|| -half - root.sqrt())
        }
    }
}

/// The height rounded up, and at least 1: the number of levels. `None` where [`height`] is.
///
/// It is computed by equations (2) and (5), so that rounding cannot add a level to a tree that is
/// exactly full.
pub fn levels(tree: Tree, f: f64, records: f64) -> Option<u32> {
    height(tree, f, records)?;
    (1..=64).find(|&height| records_at_height(tree, f, height) >= records)
}

/// Equations (7) and (8): valid pages of a wandering B+-tree of `records`.
///
/// The full nodes are counted level by level.
///
/// `f` is the entries of a page, at least 2.
pub fn wandering_pages(f: u32, records: u64) -> u64 {
    let (mut nodes, mut pages) = (records, 0);
    loop {
        nodes = nodes.div_ceil(u64::from(f.max(2)));
        pages += nodes;
        if nodes <= 1 {
            return pages;
        }
    }
}

/// Equation (9): the same, counting leaves only; accurate where `f` is above 100.
pub fn wandering_pages_about(f: u32, records: u64) -> u64 {
    records.div_ceil(u64::from(f.max(1)))
}

/// Equation (10): valid pages of a μ-Tree: its full leaves, half a page each.
///
/// `f` is the entries of a page, at least 2.
pub fn mu_pages(f: u32, records: u64) -> u64 {
    records.div_ceil(u64::from((f / 2).max(1)))
}

/// Equation (11): a wandering tree's pages divided by a μ-Tree's.
///
/// Both have the same records.
///
/// The paper's approximation is one half.
pub fn pages_ratio(f: u32, records: u64) -> f64 {
    wandering_pages(f, records) as f64 / mu_pages(f, records).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: f64 = 512.0;

    #[test]
    fn a_page_of_4_kib_has_512_entries_of_8_bytes() {
        assert_eq!(entries_per_page(4096, 8), 512);
    }

    #[test]
    fn nodes_of_a_path_share_one_page() {
        for height in 2..=6 {
            let entries =
                |tree| (1..=height).filter_map(move |level| node_entries(tree, F, level, height));
            assert_eq!(entries(Tree::Mu).sum::<f64>(), F, "height {height}");
            assert!(entries(Tree::Wandering).all(|entries| entries == F));
        }
        // Figure 4: the leaf has half of the page above height 2, the root what its children have.
        assert_eq!(node_entries(Tree::Mu, F, 1, 3), Some(256.0));
        assert_eq!(node_entries(Tree::Mu, F, 3, 3), node_entries(Tree::Mu, F, 2, 3));
        assert_eq!(node_entries(Tree::Mu, F, 1, 1), Some(F));
        assert_eq!(node_entries(Tree::Mu, F, 4, 3), None);
    }

    #[test]
    fn products_and_heights_are_inverse() {
        for tree in [Tree::Wandering, Tree::Mu] {
            for levels in 1..=4 {
                let product: f64 =
                    (1..=levels).filter_map(|level| node_entries(tree, F, level, levels)).product();
                assert_eq!(records_at_height(tree, F, levels), product);
                let height = height(tree, F, product).unwrap();
                assert!((height - f64::from(levels)).abs() < 1e-9, "{tree:?} {levels}: {height}");
                assert_eq!(super::levels(tree, F, product), Some(levels));
                assert_eq!(super::levels(tree, F, product + 1.0), Some(levels + 1));
            }
        }
    }

    #[test]
    fn a_million_records_make_both_trees_three_levels_high() {
        // Section 6.2.
        assert_eq!(levels(Tree::Wandering, F, 1e6), Some(3));
        assert_eq!(levels(Tree::Mu, F, 1e6), Some(3));
    }

    #[test]
    fn a_mu_tree_takes_twice_the_pages() {
        // Section 4.3, equations (9) to (11).
        for records in [100_000, 1_000_000, 1_000_000_000] {
            assert!((pages_ratio(512, records) - 0.5).abs() < 0.005, "{records}");
            let (all, about) = (wandering_pages(512, records), wandering_pages_about(512, records));
            assert!(all > about && (all - about) * 100 < all, "{records}: {all} and {about}");
        }
        assert_eq!(wandering_pages(512, 1_000_000), 1954 + 4 + 1);
        assert_eq!(mu_pages(512, 1_000_000), 3907);
    }

    #[test]
    fn no_mu_tree_holds_more_than_its_pages_allow() {
        assert_eq!(height(Tree::Mu, 512.0, 1e12), None);
        assert_eq!(levels(Tree::Mu, 512.0, 1e12), None);
    }
}
