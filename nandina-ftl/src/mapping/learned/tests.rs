//! Segments, levels and mispredictions of `learned`, by name and by count.

use std::vec;
use std::vec::Vec;

use super::group::Group;
use super::{HeapSpare, Learned, NoSpare, Spare};
use crate::mapping::emt::{Emt, Runs};
use crate::mapping::{Extent, Mapping, Piece, Run, Space};

const SPACE: Space = Space { logical: 3 * 256 - 5, physical: 1 << 24 };

fn update(map: &mut dyn Mapping, start: u32, length: u32, physical: u32) -> Vec<Run> {
    let mut superseded = Vec::new();
    map.update(Extent::new(start, length), physical, &mut |run| superseded.push(run)).unwrap();
    assert_eq!(map.check(), Ok(()));
    superseded
}

fn pieces(map: &mut dyn Mapping, start: u32, length: u32) -> Vec<(u32, Option<u32>)> {
    let mut found = Vec::new();
    map.look_up(Extent::new(start, length), &mut |piece| {
        found.push((piece.logical, piece.physical));
    })
    .unwrap();
    found
}

fn levels<S: Spare>(map: &Learned<'_, S>, at: usize) -> usize {
    let mut group = Group::new();
    map.store.read(at, &mut group);
    group.levels()
}

#[test]
fn units_at_a_regular_distance_are_one_exact_segment() {
    let mut memory = [0; 1000];
    let mut map = Learned::new(SPACE, 0, &mut memory, NoSpare).unwrap();
    for (at, unit) in (3..256).step_by(7).enumerate() {
        update(&mut map, unit, 1, 500 + at as u32);
    }
    assert_eq!(map.entries(), 1);
    assert_eq!(pieces(&mut map, 8, 4), [(8, None), (10, Some(501)), (11, None)]);
    // One unit of it is replaced: the segment stays below, in a level of its own.
    assert_eq!(update(&mut map, 10, 1, 900), [Run { logical: 10, length: 1, physical: 501 }]);
    assert_eq!((map.entries(), levels(&map, 0)), (2, 2));
    assert_eq!(pieces(&mut map, 10, 8), [(10, Some(900)), (11, None), (17, Some(502))]);
}

#[test]
fn segments_that_show_no_unit_are_dropped_and_the_others_rise() {
    let mut memory = [0; 4000];
    let mut map = Learned::new(SPACE, 0, &mut memory, NoSpare).unwrap();
    update(&mut map, 0, 256, 0);
    // Over and over in the middle: each is above what it hides in part.
    for turn in 0..40 {
        update(&mut map, 100 - turn % 7, 20 + turn % 5, 1000 + 100 * turn);
    }
    assert!(map.entries() <= 9, "{} segments", map.entries());
    assert!(levels(&map, 0) <= 4, "{} levels", levels(&map, 0));
    // What hides all is alone.
    update(&mut map, 0, 256, 9000);
    assert_eq!((map.entries(), levels(&map, 0), map.bytes().used), (1, 1, 24));
    // And holes above it hide it; without anything below there are no holes either.
    map.remove(Extent::new(50, 10), &mut |_| {}).unwrap();
    assert_eq!((map.entries(), levels(&map, 0)), (2, 2));
    map.remove(SPACE.whole(), &mut |_| {}).unwrap();
    assert_eq!((map.entries(), map.bytes().used), (0, 0));
}

#[test]
fn a_misprediction_costs_one_read_and_the_right_page_is_found() {
    let mut memory = [0; 1000];
    let mut map = Learned::new(SPACE, 4, &mut memory, HeapSpare::default()).unwrap();
    // Slopes from 2/9 to 1 lead near the second: with 11/18, unit 19 is predicted at 105.
    update(&mut map, 10, 1, 100);
    update(&mut map, 19, 1, 106);
    assert_eq!(map.entries(), 1);
    assert_eq!(pieces(&mut map, 10, 1), [(10, Some(100))]);
    assert_eq!(map.work().flash_reads, 0);
    assert_eq!(pieces(&mut map, 19, 1), [(19, Some(106))]);
    assert_eq!(map.work().flash_reads, 1);
    // What a write supersedes is read too, right or wrong.
    assert_eq!(update(&mut map, 10, 1, 300), [Run { logical: 10, length: 1, physical: 100 }]);
    assert_eq!(map.work().flash_reads, 2);
    // Unit 19 alone is not near a line with 300: it stays where it is.
    assert_eq!(pieces(&mut map, 19, 1), [(19, Some(106))]);
}

/// Sorted pages with gaps, numbered in a row, as LeaFTL writes them.
fn sorted<S: Spare>(map: &mut Learned<'_, S>) -> Vec<u32> {
    let (mut unit, mut number, mut units) = (0, 9u32, Vec::new());
    while unit < 700 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        update(map, unit, 1, 5000 + units.len() as u32);
        units.push(unit);
        unit += 1 + (number >> 30);
    }
    units
}

#[test]
fn an_allowed_error_saves_segments_where_pages_are_sorted() {
    let [mut exact_memory, mut near_memory] = [[0; 8000]; 2];
    let mut exact = Learned::new(SPACE, 0, &mut exact_memory, NoSpare).unwrap();
    let mut near = Learned::new(SPACE, 4, &mut near_memory, HeapSpare::default()).unwrap();
    let units = sorted(&mut exact);
    assert_eq!(sorted(&mut near), units);
    assert!(3 * near.entries() < 2 * exact.entries(), "{} {}", near.entries(), exact.entries());
    assert!(near.bytes().used < exact.bytes().used, "{:?} {:?}", near.bytes(), exact.bytes());
    let reads = near.work().flash_reads;
    for (&unit, physical) in units.iter().zip(5000..) {
        assert_eq!(pieces(&mut near, unit, 1), [(unit, Some(physical))]);
        assert_eq!(pieces(&mut exact, unit, 1), [(unit, Some(physical))]);
    }
    let wrong = near.work().flash_reads - reads;
    assert!(wrong > 0 && wrong < units.len() as u64, "{wrong} of {}", units.len());
    assert_eq!(exact.work().flash_reads, 0);
}

#[test]
fn a_sparse_space_of_2_to_the_32_units_equals_a_tree() {
    let space = Space { logical: u32::MAX, physical: u32::MAX };
    let mut memory = vec![0; 400_000];
    let mut map = Learned::new(space, 0, &mut memory, NoSpare).unwrap();
    let mut tree = Emt::new(space, Runs::new(usize::MAX));
    let mut number = 5u32;
    for turn in 0..4000u32 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = 1 + (number >> 3) % 900;
        // Near a few places, one of them the end of the space.
        let place = (number >> 29) * (1 << 29) + (number >> 8) % 5000;
        let start = if turn % 9 == 0 { u32::MAX - length } else { place };
        let extent = Extent::new(start, length);
        let (mut ours, mut theirs): (Vec<Piece>, Vec<Piece>) = Default::default();
        let both: [(&mut dyn Mapping, &mut Vec<Piece>); 2] =
            [(&mut map, &mut ours), (&mut tree, &mut theirs)];
        for (map, passed) in both {
            let mut units = |piece: Piece| match passed.last_mut() {
                Some(last) if last.continues_to(&piece) => last.length += piece.length,
                _ => passed.push(piece),
            };
            match turn % 4 {
                0 | 1 => map.update(extent, turn * 1000, &mut |run| units(run.into())).unwrap(),
                2 => map.remove(extent, &mut |run| units(run.into())).unwrap(),
                _ => map.look_up(extent, &mut units).unwrap(),
            }
        }
        assert_eq!(ours, theirs, "turn {turn}");
    }
    assert_eq!(map.check(), Ok(()));
}
