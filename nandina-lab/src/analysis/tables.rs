//! Table 3 and Figure 7 of the μ-Tree paper, from the model's equations.

use super::{Tree, entries_per_page, height, levels};

/// A row of Table 3: the cost of an operation.
///
/// The operation splits and removes no node, and collects no block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CostRow {
    /// `retrieval`, `insertion` or `deletion`.
    pub operation: &'static str,
    /// The tree.
    pub tree: Tree,
    /// Page reads.
    pub reads: u32,
    /// Page writes.
    pub writes: u32,
    /// Milliseconds: the reads and writes by their latencies.
    pub ms: f64,
}

/// Table 3 for trees of these heights, in the paper's order.
///
/// For each operation the wandering tree comes first. `read_ms` and `write_ms` are the latencies of
/// a page, *c_r* and *c_w*.
pub fn table_3(wandering_height: u32, mu_height: u32, read_ms: f64, write_ms: f64) -> Vec<CostRow> {
    let mut rows = Vec::with_capacity(6);
    for (operation, changes) in [("retrieval", false), ("insertion", true), ("deletion", true)] {
        for (tree, reads, path) in
            [(Tree::Wandering, wandering_height, wandering_height), (Tree::Mu, mu_height, 1)]
        {
            let writes = if changes { path } else { 0 };
            let ms = f64::from(reads) * read_ms + f64::from(writes) * write_ms;
            rows.push(CostRow { operation, tree, reads, writes, ms });
        }
    }
    rows
}

/// A point of Figure 7.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HeightPoint {
    /// Records.
    pub records: f64,
    /// *h_B*, equation (3).
    pub wandering: f64,
    /// *h_B* rounded up.
    pub wandering_levels: u32,
    /// *h_μ*, equation (6).
    pub mu: f64,
    /// *h_μ* rounded up.
    pub mu_levels: u32,
}

/// Figure 7: heights for 1 to 10^9 records.
///
/// Pages have 4 KiB and entries 8 bytes.
///
/// There are `points_per_decade` points for each power of ten (at least 1). A tree has at least one
/// level, so no height is rounded up to less.
pub fn figure_7(points_per_decade: u32) -> Vec<HeightPoint> {
    let f = f64::from(entries_per_page(4096, 8));
    let by = points_per_decade.max(1);
    let point = |step: u32| {
        let records = 10f64.powf(f64::from(step) / f64::from(by));
        Some(HeightPoint {
            records,
            wandering: height(Tree::Wandering, f, records)?,
            wandering_levels: levels(Tree::Wandering, f, records)?,
            mu: height(Tree::Mu, f, records)?,
            mu_levels: levels(Tree::Mu, f, records)?,
        })
    };
    (0..=9 * by).filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_writes_one_page_in_a_mu_tree_and_a_path_in_a_wandering_one() {
        let rows = table_3(3, 3, 0.1656, 0.9058);
        assert_eq!(rows.len(), 6);
        let row = |operation, tree| {
            *rows.iter().find(|row| row.operation == operation && row.tree == tree).unwrap()
        };
        for operation in ["insertion", "deletion"] {
            let (b, mu) = (row(operation, Tree::Wandering), row(operation, Tree::Mu));
            assert_eq!((b.reads, b.writes, mu.reads, mu.writes), (3, 3, 3, 1));
            // (c_r + c_w) h_B and c_r h_μ + c_w
            assert!((b.ms - (0.1656 + 0.9058) * 3.0).abs() < 1e-9);
            assert!((mu.ms - (0.1656 * 3.0 + 0.9058)).abs() < 1e-9);
        }
        // Section 6.2: 0.50 ms a retrieval at height three.
        assert!((row("retrieval", Tree::Mu).ms - 0.50).abs() < 0.005);
        assert_eq!(row("retrieval", Tree::Wandering).writes, 0);
    }

    #[test]
    fn a_mu_tree_is_at_most_one_level_higher_up_to_a_billion() {
        let points = figure_7(20);
        assert_eq!(points.len(), 181);
        assert!((points[180].records - 1e9).abs() < 1.0);
        for point in &points {
            let higher = point.mu_levels - point.wandering_levels;
            assert!(higher <= 1, "{point:?}");
        }
        assert!(points.iter().any(|point| point.mu_levels > point.wandering_levels));
        assert!(points.iter().any(|point| point.mu_levels == point.wandering_levels));
        assert!(points.is_sorted_by(|a, b| a.mu <= b.mu && a.wandering <= b.wandering));
        assert_eq!((points[180].wandering_levels, points[180].mu_levels), (4, 5));
    }
}
