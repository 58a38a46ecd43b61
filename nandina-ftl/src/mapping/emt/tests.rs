//! Figure 7, and a test for each line of Algorithms 4 and 5 that loses data.
//!
//! The printed algorithms are kept here, as they are printed, so that each test shows the loss.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::*;

const SPACE: Space = Space { logical: 256, physical: 100_000 };

fn emt(memory: &mut [u8], runs: &[(u32, u32, u32)]) -> Vec<(u32, u32, u32)> {
    let mut map = Emt::new(SPACE, Arena::new(memory));
    for &(start, length, physical) in runs {
        map.update(Extent::new(start, length), physical, &mut |_| {}).unwrap();
        map.check().unwrap();
    }
    let mut found = Vec::new();
    map.walk(&mut |run| found.push((run.logical, run.length, run.physical)));
    found
}

/// The same writes through Algorithm 4 as it is printed; ends are inclusive there.
fn as_printed(runs: &[(u32, u32, u32)]) -> Vec<(u32, u32, u32)> {
    let mut tree: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for &(sn, ln, pn) in runs {
        let mut inserted = Vec::from([(sn, ln, pn)]); // line 1
        let mut et = tree.range(..=sn).next_back().map(|(&s, &(l, p))| (s, l, p)); // line 2
        while let Some((st, lt, pt)) = et {
            if st < sn && sn < st + lt - 1 {
                inserted.push((st, sn - st + 1, pt)); // lines 4 and 5
            }
            if st < sn + ln - 1 && sn + ln - 1 < st + lt - 1 {
                inserted.push((sn + ln, st + lt - sn - ln, pt)); // lines 7 and 8
            }
            et = tree.range(st + 1..).next().map(|(&s, &(l, p))| (s, l, p)); // line 11
            tree.remove(&st); // line 12
            if et.is_some_and(|(st, ..)| sn + ln - 1 < st) {
                break; // line 13
            }
        }
        tree.extend(inserted.into_iter().map(|(s, l, p)| (s, (l, p)))); // line 15
    }
    tree.into_iter().map(|(s, (l, p))| (s, l, p)).collect()
}

fn differs(runs: &[(u32, u32, u32)], meant: &[(u32, u32, u32)], printed: &[(u32, u32, u32)]) {
    let mut memory = [0; 24 * 8];
    assert_eq!(emt(&mut memory, runs), meant);
    assert_eq!(as_printed(runs), printed);
}

#[test]
fn figure_7_a_write_shortens_e1_and_e3_and_evicts_e2() {
    let mut memory = [0; 24 * 8];
    // e1, e2 and e3 of §2.2; then e7 = <80, 160>.
    let runs = [(0, 144, 1000), (200, 16, 2000), (224, 32, 3000), (80, 160, 7000)];
    assert_eq!(emt(&mut memory, &runs), [(0, 80, 1000), (80, 160, 7000), (240, 16, 3016)]);
}

#[test]
fn figure_7_each_superseded_part_is_passed_once() {
    let mut memory = [0; 24 * 8];
    let mut map = Emt::new(SPACE, Arena::new(&mut memory));
    for (start, length, physical) in [(0, 144, 1000), (200, 16, 2000), (224, 32, 3000)] {
        map.update(Extent::new(start, length), physical, &mut |_| {}).unwrap();
    }
    let mut superseded = Vec::new();
    let pass = &mut |run: Run| superseded.push((run.logical, run.length, run.physical));
    map.update(Extent::new(80, 160), 7000, pass).unwrap();
    assert_eq!(superseded, [(80, 64, 1080), (200, 16, 2000), (224, 16, 3000)]);
}

#[test]
fn algorithm_4_line_3_without_a_predecessor_overlaps_are_still_cut() {
    let runs = [(10, 10, 100), (5, 10, 200)];
    differs(&runs, &[(5, 10, 200), (15, 5, 105)], &[(5, 10, 200), (10, 10, 100)]);
}

#[test]
fn algorithm_4_line_4_an_overlap_of_one_unit_at_the_left_is_cut() {
    let runs = [(0, 10, 100), (9, 10, 200)];
    // Printed: no left part is kept at all, and units 0 to 8 are lost.
    differs(&runs, &[(0, 9, 100), (9, 10, 200)], &[(9, 10, 200)]);
}

#[test]
fn algorithm_4_line_5_the_left_part_ends_before_the_new_extent() {
    let runs = [(0, 10, 100), (5, 5, 200)];
    differs(&runs, &[(0, 5, 100), (5, 5, 200)], &[(0, 6, 100), (5, 5, 200)]);
}

#[test]
fn algorithm_4_line_7_a_write_of_one_unit_keeps_the_right_part() {
    let runs = [(10, 10, 100), (10, 1, 200)];
    // Printed: units 11 to 19 are lost.
    differs(&runs, &[(10, 1, 200), (11, 9, 101)], &[(10, 1, 200)]);
}

#[test]
fn algorithm_4_line_8_the_right_part_keeps_its_physical_units() {
    let runs = [(10, 10, 100), (10, 4, 200)];
    differs(&runs, &[(10, 4, 200), (14, 6, 104)], &[(10, 4, 200), (14, 6, 100)]);
}

#[test]
fn algorithm_4_line_12_a_predecessor_that_does_not_overlap_stays() {
    let runs = [(0, 5, 100), (20, 5, 200)];
    differs(&runs, &[(0, 5, 100), (20, 5, 200)], &[(20, 5, 200)]);
}

fn pieces(extent: Extent) -> Vec<(u32, u32, Option<u32>)> {
    let mut memory = [0; 24 * 8];
    let mut map = Emt::new(SPACE, Arena::new(&mut memory));
    for (start, length, physical) in [(10, 10, 100), (30, 10, 200)] {
        map.update(Extent::new(start, length), physical, &mut |_| {}).unwrap();
    }
    let mut found = Vec::new();
    let pass = &mut |piece: Piece| found.push((piece.logical, piece.length, piece.physical));
    map.look_up(extent, pass).unwrap();
    found
}

#[test]
fn algorithm_5_line_10_what_lies_behind_a_hole_is_found() {
    assert_eq!(pieces(Extent::new(5, 10)), [(5, 5, None), (10, 5, Some(100))]);
}

#[test]
fn algorithm_5_line_12_what_was_found_before_a_hole_is_kept() {
    let found = pieces(Extent::new(15, 20));
    assert_eq!(found, [(15, 5, Some(105)), (20, 10, None), (30, 5, Some(200))]);
}

#[test]
fn a_full_arena_still_takes_what_needs_no_further_node() {
    let mut memory = [0; 24 * 2];
    let mut map = Emt::new(SPACE, Arena::new(&mut memory));
    map.update(Extent::new(0, 10), 100, &mut |_| {}).unwrap();
    map.update(Extent::new(20, 10), 200, &mut |_| {}).unwrap();
    let refused = map.update(Extent::new(2, 2), 300, &mut |_| {});
    assert_eq!(refused, Err(Refusal::Full { needed: 24 * 4 }));
    assert_eq!(map.remove(Extent::new(2, 2), &mut |_| {}), Err(Refusal::Full { needed: 24 * 3 }));
    map.update(Extent::new(0, 10), 300, &mut |_| {}).unwrap();
    map.update(Extent::new(5, 20), 400, &mut |_| {}).unwrap_err();
    map.update(Extent::new(0, 20), 400, &mut |_| {}).unwrap();
    map.update(Extent::new(0, 30), 500, &mut |_| {}).unwrap();
    map.check().unwrap();
    assert_eq!(map.entries(), 1);
}
