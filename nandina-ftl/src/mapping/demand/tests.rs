//! What `demand` reads from and writes to flash, counted by its store, and tiny caches.

use std::cell::Cell;
use std::{vec, vec::Vec};

use super::cache::Cache;
use super::{Demand, HeapPages, TranslationPages, UNITS};
use crate::mapping::{Extent, Mapping, Page, Piece, Refusal, Run, Space, Work};

/// Pages that count what is done with them.
#[derive(Default)]
struct Counted {
    pages: HeapPages,
    reads: Cell<u64>,
    writes: u64,
}

impl TranslationPages for Counted {
    fn read(&self, place: u32, bytes: &mut [u8]) {
        self.reads.set(self.reads.get() + 1);
        self.pages.read(place, bytes);
    }

    fn write(&mut self, old: Option<u32>, bytes: &[u8]) -> u32 {
        self.writes += 1;
        self.pages.write(old, bytes)
    }
}

const SPACE: Space = Space { logical: 3 * UNITS - 7, physical: 1 << 20 };

fn memory(entries: usize) -> Vec<u8> {
    vec![0; Demand::<Counted>::fixed(SPACE) + entries * Cache::ENTRY]
}

fn flash(map: &Demand<'_, Counted>) -> (u64, u64) {
    let Work { flash_reads, flash_writes, .. } = map.work();
    assert_eq!((flash_reads, flash_writes), (map.pages().reads.get(), map.pages().writes));
    (flash_reads, flash_writes)
}

#[test]
fn a_dirty_entry_takes_those_of_its_translation_page_with_it() {
    let mut memory = memory(4);
    let mut map = Demand::new(SPACE, &mut memory, Counted::default()).unwrap();
    let write = |map: &mut Demand<'_, Counted>, unit, physical| {
        map.update(Extent::new(unit, 1), physical, &mut |_| {}).unwrap();
        flash(map)
    };
    // Three entries of the first translation page and one of the second; none is on flash.
    for (unit, physical) in [(5, 10), (900, 11), (UNITS, 12), (6, 13)] {
        assert_eq!(write(&mut map, unit, physical), (0, 0));
    }
    // The oldest leaves, and its page is written with all three; it was never written before.
    assert_eq!(write(&mut map, UNITS + 1, 14), (0, 1));
    // The next one is clean now: to write it costs a read of what it supersedes.
    assert_eq!(write(&mut map, 7, 15), (1, 1));
    // The oldest is of the second page, and dirty: one write for both entries, no read. The unit
    // that makes it leave is on the first page.
    assert_eq!(write(&mut map, 8, 16), (2, 2));
    let mut found = Vec::new();
    map.look_up(Extent::new(5, 4), &mut |piece| found.push((piece.logical, piece.physical)))
        .unwrap();
    // Units 7 and 8 are one piece.
    assert_eq!(found, [(5, Some(10)), (6, Some(13)), (7, Some(15))]);
    assert_eq!(map.check(), Ok(()));
}

#[test]
fn a_request_reads_a_translation_page_once() {
    let mut memory = memory(1000);
    let mut map = Demand::new(SPACE, &mut memory, Counted::default()).unwrap();
    map.update(Extent::new(0, 3 * UNITS - 7), 0, &mut |_| {}).unwrap();
    // Of each page 1,000 units leave in one write, when the next one has no room. The rest of the
    // page is then read, for what it supersedes, and is written when it leaves; of the third page
    // it stays.
    let (reads, writes) = flash(&map);
    assert_eq!((reads, writes), (3, 2 + 2 + 1));
    // 1,000 units that are not cached, on one page. The rest of the third is read and written back.
    let mut units = 0;
    map.look_up(Extent::new(0, 1000), &mut |piece| units += piece.length).unwrap();
    assert_eq!((units, flash(&map).0 - reads), (1000, 1 + 1));
    // The same again, which is cached.
    let before = flash(&map);
    map.look_up(Extent::new(0, 1000), &mut |_| {}).unwrap();
    assert_eq!(flash(&map), before);
    // A hole that was never written is known without a read.
    let mut memory = self::memory(2);
    let mut map = Demand::new(SPACE, &mut memory, Counted::default()).unwrap();
    map.look_up(SPACE.whole(), &mut |_| {}).unwrap();
    map.remove(SPACE.whole(), &mut |_| {}).unwrap();
    assert_eq!((flash(&map), map.entries()), ((0, 0), 0));
}

#[test]
fn caches_of_every_small_size_equal_a_page_map() {
    for entries in [1, 2, 3, 17, 300] {
        let mut bytes = memory(entries);
        let mut map = Demand::new(SPACE, &mut bytes, Counted::default()).unwrap();
        let mut table = vec![0; Page::bytes_needed(SPACE)];
        let mut page = Page::new(SPACE, &mut table).unwrap();
        let mut number = entries as u32;
        for turn in 0..900 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let length = 1 + (number >> 20) % 40;
            let extent = Extent::new((number >> 8) % (SPACE.logical - length), length);
            let (mut ours, mut theirs): (Vec<Piece>, Vec<Piece>) = Default::default();
            let both: [(&mut dyn Mapping, &mut Vec<Piece>); 2] =
                [(&mut map, &mut ours), (&mut page, &mut theirs)];
            for (map, passed) in both {
                let run = &mut |run: Run| passed.push(run.into());
                match turn % 5 {
                    0..3 => map.update(extent, turn * 50, run).unwrap(),
                    3 => map.remove(extent, run).unwrap(),
                    _ => map.look_up(extent, &mut |piece| passed.push(piece)).unwrap(),
                }
            }
            assert_eq!(ours, theirs, "{entries} entries, turn {turn}");
            if turn % 100 == 0 {
                assert_eq!(map.check(), Ok(()), "{entries} entries, turn {turn}");
            }
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        map.walk(&mut |run| ours.push(run));
        page.walk(&mut |run| theirs.push(run));
        assert_eq!(ours, theirs);
        assert!(map.work().flash_writes > 0 && map.entries() <= entries);
    }
}

#[test]
fn memory_for_no_entry_is_refused() {
    let mut memory = memory(1);
    let needed = memory.len();
    memory.pop();
    let refused = Demand::new(SPACE, &mut memory, HeapPages::default()).err();
    assert_eq!(refused, Some(Refusal::Full { needed }));
}
