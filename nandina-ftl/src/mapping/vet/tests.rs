//! The paper's examples: §2.2 and Figures 2, 3, 4, 5 and 6, with units of 8 bits.

use std::cell::RefCell;
use std::string::{String, ToString};
use std::vec::Vec;

use super::*;

const SPACE: Space = Space { logical: 256, physical: 100_000 };

/// A table that notes the keys that were looked up.
struct Noted<'m>(Chained<'m, false>, RefCell<Vec<u32>>);

impl Table for Noted<'_> {
    fn get(&self, key: u32) -> Option<Node> {
        self.1.borrow_mut().push(key);
        self.0.get(key)
    }

    fn put(&mut self, key: u32, node: Node) {
        self.0.put(key, node);
    }

    fn remove(&mut self, key: u32) {
        self.0.remove(key);
    }

    fn room(&self, more: usize) -> Result<(), Refusal> {
        self.0.room(more)
    }

    fn entries(&self) -> usize {
        self.0.entries()
    }

    fn bytes(&self) -> Bytes {
        self.0.bytes()
    }

    fn probes(&self) -> u64 {
        self.0.probes()
    }

    fn each(&self, visit: &mut dyn FnMut(u32, Node)) {
        self.0.each(visit);
    }

    fn check(&self) -> Result<(), Broken> {
        self.0.check()
    }
}

type Trie<'m> = Vet<Noted<'m>, Inline>;

/// The trie with e1, e2 and e3 of §2.2.
fn trie(memory: &mut [u8], insertion: Insertion) -> Trie<'_> {
    let table = Noted(Chained::new(memory), RefCell::default());
    let mut map = Vet::new(SPACE, insertion, table, Inline).unwrap();
    for (start, length, physical) in [(0, 144, 1000), (200, 16, 2000), (224, 32, 3000)] {
        map.update(Extent::new(start, length), physical, &mut |_| {}).unwrap();
        map.check().unwrap();
    }
    map
}

/// A key as the paper writes it, without its `*`.
fn prefix(key: u32) -> String {
    (0..key.ilog2()).rev().map(|bit| (key >> bit & 1).to_string()).collect()
}

/// Leaves and internal nodes, sorted.
fn nodes(map: &Trie) -> (Vec<String>, Vec<String>) {
    let (mut leaves, mut internal) = (Vec::new(), Vec::new());
    map.table.each(&mut |key, node| match node.length {
        0 => internal.push(prefix(key)),
        _ => leaves.push(prefix(key)),
    });
    leaves.sort();
    internal.sort();
    (leaves, internal)
}

#[test]
fn section_2_2_a_canonical_extent_is_a_prefix() {
    let levels = Levels::of(256);
    let (extent, level) = levels.canonical(Extent::new(8, 4)).next().unwrap();
    assert_eq!((extent, prefix(levels.key(8, level)).as_str()), (Extent::new(8, 4), "000010"));
    let of = |extent: Extent| {
        let keys = levels.canonical(extent).map(|(part, level)| levels.key(part.start, level));
        keys.map(prefix).collect::<Vec<_>>()
    };
    assert_eq!(of(Extent::new(0, 144)), ["0", "1000"]);
    assert_eq!(of(Extent::new(200, 16)), ["11001", "11010"]);
    assert_eq!(of(Extent::new(224, 32)), ["111"]);
}

#[test]
fn figure_2_lis_makes_every_node_above_a_leaf() {
    let mut memory = [0; 20 * 256];
    let (leaves, internal) = nodes(&trie(&mut memory, Insertion::Linear));
    assert_eq!(leaves, ["0", "1000", "11001", "11010", "111"]);
    assert_eq!(internal, ["", "1", "10", "100", "11", "110", "1100", "1101"]);
}

#[test]
fn figure_6_bis_makes_the_nodes_that_a_search_looks_at() {
    let mut memory = [0; 20 * 256];
    let (leaves, internal) = nodes(&trie(&mut memory, Insertion::Binary));
    assert_eq!(leaves, ["0", "1000", "11001", "11010", "111"]);
    // Above 11001, the search looks at 1100 only (§3.3).
    assert_eq!(internal, ["1", "11", "1100", "1101"]);
}

#[test]
fn figure_3_a_partly_superseded_leaf_becomes_the_leaves_of_its_rest() {
    for insertion in [Insertion::Linear, Insertion::Binary] {
        let mut memory = [0; 20 * 256];
        let mut map = trie(&mut memory, insertion);
        let mut superseded = Vec::new();
        // e4 = 1100100*.
        map.update(Extent::new(200, 2), 4000, &mut |run| superseded.push(run)).unwrap();
        assert_eq!(superseded, [Run { logical: 200, length: 2, physical: 2000 }]);
        map.check().unwrap();
        let (leaves, _) = nodes(&map);
        assert_eq!(leaves, ["0", "1000", "1100100", "1100101", "110011", "11010", "111"]);
    }
}

#[test]
fn figure_3_bis_evicts_the_leaf_above_a_new_internal_node() {
    let mut memory = [0; 20 * 256];
    let mut map = trie(&mut memory, Insertion::Binary);
    map.update(Extent::new(200, 2), 4000, &mut |_| {}).unwrap();
    let (leaves, internal) = nodes(&map);
    assert!(!leaves.contains(&"11001".to_string()), "node k is evicted");
    // The search for 1100100* looks at levels 4, 6 and 7: no node stays at 11001.
    assert_eq!(internal, ["1", "11", "1100", "110010", "1101"]);
}

#[test]
fn figure_4_a_leaf_takes_the_place_of_a_subtree() {
    for insertion in [Insertion::Linear, Insertion::Binary] {
        let mut memory = [0; 20 * 256];
        let mut map = trie(&mut memory, insertion);
        let mut superseded = Vec::new();
        // e6 = 11******.
        map.update(Extent::new(192, 64), 6000, &mut |run| superseded.push(run)).unwrap();
        let expected = [(200, 16, 2000), (224, 32, 3000)];
        let expected =
            expected.map(|(logical, length, physical)| Run { logical, length, physical });
        assert_eq!(superseded, expected);
        map.check().unwrap();
        let (leaves, internal) = nodes(&map);
        assert_eq!(leaves, ["0", "1000", "11"]);
        assert!(internal.iter().all(|key| !key.starts_with("11")), "{internal:?}");
    }
}

#[test]
fn figure_5_a_search_for_204_looks_at_1100_then_110011_then_11001() {
    for insertion in [Insertion::Linear, Insertion::Binary] {
        let mut memory = [0; 20 * 256];
        let mut map = trie(&mut memory, insertion);
        map.table.1.borrow_mut().clear();
        let mut found = Vec::new();
        map.look_up(Extent::new(204, 1), &mut |piece| found.push(piece)).unwrap();
        assert_eq!(found, [Piece { logical: 204, length: 1, physical: Some(2004) }]);
        let keys: Vec<_> = map.table.1.borrow().iter().map(|&key| prefix(key)).collect();
        assert_eq!(keys, ["1100", "110011", "11001"]);
    }
}

#[test]
fn a_hole_ends_behind_the_prefix_that_failed_first() {
    let mut memory = [0; 20 * 256];
    let table = Noted(Chained::new(&mut memory), RefCell::default());
    let mut map = Vet::new(SPACE, Insertion::Binary, table, Inline).unwrap();
    map.update(Extent::new(16, 1), 500, &mut |_| {}).unwrap();
    // From 0, the prefix 0000 fails first and ends at 16; then 0 fails, though it has a leaf.
    let mut found = Vec::new();
    map.look_up(Extent::new(0, 32), &mut |piece| found.push((piece.logical, piece.physical)))
        .unwrap();
    assert_eq!(found, [(0, None), (16, Some(500)), (17, None)]);
    assert_eq!(map.table.get(map.levels.key(0, 1)), None);
}

#[test]
fn a_stale_internal_node_would_hide_a_leaf_above_it() {
    let mut memory = [0; 20 * 256];
    let mut map = trie(&mut memory, Insertion::Binary);
    map.update(Extent::new(192, 64), 6000, &mut |_| {}).unwrap();
    let stale = map.levels.key(204, 4);
    map.table.put(stale, Node { length: 0, word: 1 });
    let mut found = Vec::new();
    map.look_up(Extent::new(204, 1), &mut |piece| found.push(piece.physical)).unwrap();
    assert_eq!(found, [None], "unit 204 is mapped, but the search looked below 1100");
    map.check().unwrap_err();
    map.table.remove(stale);
    map.check().unwrap();
}

#[test]
fn lemma_5_1_a_leaf_of_one_unit_needs_every_level_or_their_logarithm() {
    let levels = Levels(31);
    assert_eq!(levels.path(31, Insertion::Linear).count(), 31);
    let most = (0..=31).map(|level| levels.path(level, Insertion::Binary).count()).max();
    assert_eq!(most, Some(5));
}

#[test]
fn lemma_5_4_a_level_has_at_most_two_canonical_extents() {
    let levels = Levels::of(64);
    for (start, end) in (0..64).flat_map(|start| (start + 1..=64).map(move |end| (start, end))) {
        let mut at_level = [0; 7];
        let parts = levels.canonical(Extent::between(start, end));
        let end_found = parts.fold(start, |at, (part, level)| {
            assert_eq!(part.start, at);
            at_level[level as usize] += 1;
            part.end()
        });
        assert_eq!(end_found, end);
        assert!(at_level.iter().all(|&count| count <= 2));
    }
}

#[test]
fn pointers_an_extent_goes_with_its_last_leaf() {
    let (mut memory, mut extents) = ([0; 20 * 256], [0; 16 * 8]);
    let (table, extents) = (Chained::<false>::new(&mut memory), Pointed::new(&mut extents));
    let mut map = Vet::new(SPACE, Insertion::Binary, table, extents).unwrap();
    map.update(Extent::new(3, 50), 100, &mut |_| {}).unwrap();
    map.update(Extent::new(10, 4), 200, &mut |_| {}).unwrap();
    map.check().unwrap();
    assert_eq!(map.extents.bytes().used, 2 * Pointed::EXTENT);
    map.remove(Extent::new(0, 256), &mut |_| {}).unwrap();
    map.check().unwrap();
    map.update(Extent::new(0, 5), 300, &mut |_| {}).unwrap();
    assert_eq!(map.extents.bytes().used, 2 * Pointed::EXTENT, "free extents are used again");
}
