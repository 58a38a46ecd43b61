//! The leaves of MB-tree have several pages, and the fullest of the buffer is written first.

use std::cell::Cell;

use nandina::flash::{Flash, PageNumber};
use nandina::log::layout_of;
use nandina::{Index, Statistics, WriteError, key, ram_needed};
use nandina_lab::hand_on;
use nandina_lab::rivals::MbTree;
use nandina_sim::{Chip, ChipError};

use crate::common::{Model, chip, contents, options, with};

/// Bytes of a page before the entries of a leaf, with its header.
const HEADS: usize = 16 + 12 + 4 * 8;

/// Records of a page.
fn most(chip: &Chip) -> u32 {
    ((layout_of(&chip.geometry()).area_bytes() - HEADS) / 16) as u32
}

fn insert(index: &mut Index<'_, &mut Chip, MbTree>, number: u32) -> u64 {
    let before = index.flash().counters().rewrites;
    index.insert(&key::from_u32(number), &[number as u8; 12]).unwrap();
    index.flash().counters().rewrites - before
}

fn remove(index: &mut Index<'_, &mut Chip, MbTree>, number: u32) -> u64 {
    let before = index.flash().counters().rewrites;
    index.remove(&key::from_u32(number)).unwrap();
    index.flash().counters().rewrites - before
}

/// Pages and levels; that of the newest commit is one of the pages.
fn shape(statistics: &Statistics) -> (u32, u8) {
    (statistics.valid_pages, statistics.height)
}

#[test]
fn a_leaf_grows_and_shrinks_by_a_page() {
    let mut chip = chip(64);
    let most = most(&chip);
    assert!(most >= 8, "{most} records in a page");
    with::<MbTree, _>(&mut chip, &options(0), true, |index| {
        assert!((0..most).all(|number| insert(index, number * 10) == 1));
        assert_eq!(shape(&index.statistics()), (1, 1));
        // The page is divided: two pages, and the header is in the first of them.
        assert_eq!(insert(index, most * 10), 2);
        assert_eq!(shape(&index.statistics()), (2, 2));
        // It grows to four pages: each new one is written with the page that it was a part of,
        // and with the first one, where the header is.
        let mut number = most + 1;
        while index.statistics().valid_pages < 4 {
            let pages = index.statistics().valid_pages;
            let written = insert(index, number * 10);
            assert_eq!(written, if index.statistics().valid_pages > pages { 3 } else { 1 });
            number += 1;
        }
        assert_eq!(index.statistics().height, 2);
        // Without the two last pages it shrinks: the pages join their neighbours.
        let (mut joined, all) = (0, number);
        while number > 1 {
            number -= 1;
            let pages = index.statistics().valid_pages;
            let written = remove(index, number * 10);
            let fewer = index.statistics().valid_pages < pages;
            joined += u32::from(fewer);
            // The joined page and the first one may be one and the same; so may the commit's page.
            assert!((1..=1 + u64::from(fewer)).contains(&written), "{number}: {written} pages");
        }
        assert_eq!((joined, shape(&index.statistics())), (3, (1, 1)), "{all} records");
        assert_eq!(contents(index).len(), 1);
    })
    .unwrap();
}

#[test]
fn a_leaf_of_four_pages_is_divided_and_the_node_above_says_so() {
    let mut chip = chip(64);
    let most = most(&chip);
    let found = with::<MbTree, _>(&mut chip, &options(0), true, |index| {
        let number = two_leaves(index);
        // Five pages of two leaves, and the root above them.
        assert_eq!(shape(&index.statistics()), (6, 3));
        assert_eq!(number, most / 2 * 5 + 1);
        // Pages change that are not the first of their leaf: neither header nor root are written.
        assert!((0..most / 2 - 1).all(|step| insert(index, number * 10 + step) == 1));
        contents(index)
    });
    let again = with::<MbTree, _>(&mut chip, &options(0), false, contents).unwrap();
    assert_eq!(again, found.unwrap());
}

/// Makes a tree of two leaves, which have two and three pages of half of their records each.
///
/// Returns the number of its records.
fn two_leaves(index: &mut Index<'_, &mut Chip, MbTree>) -> u32 {
    let mut number = 0;
    while index.statistics().height < 3 {
        insert(index, number * 10);
        number += 1;
    }
    number
}

#[test]
fn the_leaf_with_the_most_changes_is_written_with_all_of_them() {
    let mut chip = chip(64);
    with::<MbTree, _>(&mut chip, &options(0), true, two_leaves).unwrap();
    let most = most(&chip);
    let second = most / 2 * 2 * 10;
    let buffered = options(1).write_buffer_changes(5);
    let expected: Model = with::<MbTree, _>(&mut chip, &buffered, false, |index| {
        let before = contents(index).len();
        // The oldest change is one of the first leaf; three are of two pages of the second.
        let changes = [5, second + 1, second + 2, second + most * 5 + 1];
        assert!(changes.iter().all(|&number| insert(index, number) == 0));
        assert_eq!(index.statistics().waiting_changes, 4);
        assert_eq!(insert(index, 15), 2);
        assert_eq!(index.statistics().waiting_changes, 2);
        // A newer change of a key takes the place of the older one.
        assert_eq!(insert(index, 5) + remove(index, 15), 0);
        assert_eq!(index.statistics().waiting_changes, 2);
        assert_eq!(index.get(&key::from_u32(15)).unwrap(), None);
        let found = contents(index);
        assert_eq!(found.len(), before + 4);
        found
    })
    .unwrap();
    // What waited is durable, as the index was closed with a flush, or lost without one.
    let found = with::<MbTree, _>(&mut chip, &buffered, false, contents).unwrap();
    let lost: Vec<_> = expected.keys().filter(|key| !found.contains_key(*key)).collect();
    assert_eq!(lost, [&key::from_u32(5).to_vec()]);
}

/// A chip that refuses the write after `left` others.
struct FailsOnce<'c> {
    chip: &'c mut Chip,
    left: &'c Cell<u32>,
}

impl Flash for FailsOnce<'_> {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, program, overwrite, erase);

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        let left = self.left.get();
        self.left.set(left.wrapping_sub(1));
        if left == 0 { Err(ChipError::PowerLost) } else { self.chip.rewrite(page, main, spare) }
    }
}

/// Changes that wait are made again after an error of the device, each key as it was last.
#[test]
fn what_waited_before_an_error_waits_again() {
    let (mut chip, left) = (chip(64), Cell::new(u32::MAX));
    let options = options(1);
    let mut ram = vec![0; ram_needed::<MbTree>(&chip.geometry(), &options)];
    let device = FailsOnce { chip: &mut chip, left: &left };
    let mut index = Index::<_, MbTree>::format(device, &options, &mut ram).unwrap();
    // Few keys, so often that older changes of each are forgotten meanwhile.
    for turn in 0..2_000u32 {
        index.insert(&key::from_u32(turn % 3), &[turn as u8; 12]).unwrap();
    }
    index.remove(&key::from_u32(1)).unwrap();
    assert_eq!(index.statistics().waiting_changes, 3);
    left.set(0);
    assert!(matches!(index.flush(), Err(WriteError::Device(ChipError::PowerLost))));
    assert_eq!(index.get(&key::from_u32(0)).unwrap(), Some(&[1_998u32 as u8; 12][..]));
    assert_eq!(index.get(&key::from_u32(1)).unwrap(), None);
    assert_eq!(index.statistics().waiting_changes, 3);
    index.flush().unwrap();
    drop(index);
    let found = with::<MbTree, _>(&mut chip, &options, false, contents).unwrap();
    let value = |turn: u32| vec![turn as u8; 12];
    let expected = [(0, value(1_998)), (2, value(1_997))];
    assert_eq!(
        found,
        expected.map(|(number, value)| (key::from_u32(number).to_vec(), value)).into()
    );
}
