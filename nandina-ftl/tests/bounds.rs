//! The memory that `compact` is bounded by, and the exact work of every mapping.
//!
//! Bytes are all bytes in use, with directory, slack and holes. Physical numbers have 28 bits.

mod numbers;
mod runs;

use nandina_ftl::mapping::registry::by_name;
use nandina_ftl::mapping::{Extent, MAPPINGS, Mapping, Space};

use numbers::Numbers;
use runs::least_runs;

const PHYSICAL: u32 = (1 << 28) - 1;

/// The extent of a turn in a space, and whether it is written; else it is removed.
type Stream = fn(&mut Numbers, u32, u32) -> (Extent, bool);

/// Streams with the space and the turns of each. Spaces are in pages or in sectors.
const STREAMS: &[(&str, u32, u32, Stream)] = &[
    ("random pages", 1 << 15, 200_000, |n, _, space| (Extent::new(n.below(space), 1), true)),
    ("pages all over 1 TB", (1 << 28) - 1, 30_000, |n, _, space| {
        (Extent::new(n.below((space - 256) / 2) * 2, 2 * (1 + n.below(128))), true)
    }),
    ("sectors all over 64 GB", 1 << 27, 30_000, |n, _, space| {
        (Extent::new(n.below(space - 64), 1 + n.below(64)), true)
    }),
    ("rising with gaps", 1 << 26, 30_000, |n, turn, _| {
        (Extent::new(turn * 300, 8 * (1 + n.below(32))), true)
    }),
    ("rising without gaps, not in a row", 1 << 22, 30_000, |_, turn, _| {
        (Extent::new(turn * 64, 64), true)
    }),
    ("eight rising streams", 1 << 26, 60_000, |n, turn, space| {
        let stream = n.below(8) * (space / 8);
        (Extent::new(stream + turn / 8 * 100, 8 + 8 * n.below(10)), true)
    }),
    ("pages of 8 sectors in a hot tenth", 1 << 24, 100_000, |n, _, space| {
        let most = if n.below(10) > 0 { space / 10 } else { space };
        (Extent::new(n.below(most / 8 - 1) * 8, 8), true)
    }),
    ("written and removed", 1 << 20, 60_000, |n, _, space| {
        (Extent::new(n.below(space - 16), 1 + n.below(16)), n.below(3) > 0)
    }),
    ("all sizes", 1 << 24, 60_000, |n, _, space| {
        let most = 1 << n.below(12);
        (Extent::new(n.below(space - 4096), 1 + n.below(most)), true)
    }),
    ("random pages, then rising over them", 1 << 15, 120_000, |n, turn, space| {
        if turn < 80_000 {
            (Extent::new(n.below(space), 1), true)
        } else {
            (Extent::new((turn - 80_000) * 5 % (space - 5), 5), true)
        }
    }),
];

/// Bytes that `page-2` uses after the extents that were written.
struct Leaves(Vec<bool>);

impl Leaves {
    fn write(&mut self, extent: Extent) {
        for leaf in extent.start / 1024..=(extent.end() - 1) / 1024 {
            self.0[leaf as usize] = true;
        }
    }

    fn bytes(&self) -> usize {
        4 * self.0.len() + 4096 * self.0.iter().filter(|made| **made).count()
    }
}

#[test]
fn compact_takes_at_most_8_bytes_a_run_and_never_more_than_page_or_page_2() {
    let entry = by_name("compact").unwrap();
    for &(name, logical, turns, stream) in STREAMS {
        let space = Space { logical, physical: PHYSICAL };
        let mut memory = vec![0; (entry.memory)(space, turns as usize)];
        let mut map = (entry.build)(space, &mut memory).unwrap();
        let mut numbers = Numbers(3);
        let mut physical = 0;
        let mut leaves = Leaves(vec![false; logical.div_ceil(1024) as usize]);
        for turn in 0..turns {
            let (extent, is_write) = stream(&mut numbers, turn, logical);
            // A request of another stream is stored between two that are logically in a row.
            physical = (physical + 2 * extent.length) % (PHYSICAL - 4096);
            match is_write {
                true => map.update(extent, physical, &mut |_| {}).unwrap(),
                false => map.remove(extent, &mut |_| {}).unwrap(),
            }
            if is_write {
                leaves.write(extent);
            }
            if turn % 1000 != 999 {
                continue;
            }
            let (used, runs, page_2) = (map.bytes().used, least_runs(&*map).0, leaves.bytes());
            let each = used as f64 / runs as f64;
            assert!(runs < 1000 || each <= 8.0, "{name}, turn {turn}: {each:.2} bytes a run");
            assert!(used <= 4 * logical as usize, "{name}, turn {turn}: {used}, above page");
            assert!(used <= page_2, "{name}, turn {turn}: {used}, above page-2's {page_2}");
        }
        map.check().unwrap();
    }
}

/// Streams of long runs in a space of 2^28 units.
const LONG: &[(&str, u32, f64, Stream)] = &[
    ("1,100 rising", 1_100, 11.0, |n, turn, _| {
        (Extent::new(turn * 61_000 + n.below(9_000), 20_000 + n.below(25_000)), true)
    }),
    ("4,000 rising", 4_000, 11.0, |n, turn, _| {
        (Extent::new(turn * 61_000 + n.below(9_000), 20_000 + n.below(25_000)), true)
    }),
    ("all over", 30_000, 14.0, |n, _, space| {
        (Extent::new(n.below(space - 45_000), 20_000 + n.below(25_000)), true)
    }),
    ("all over, and removed", 30_000, 14.0, |n, _, space| {
        (Extent::new(n.below(space - 45_000), 20_000 + n.below(25_000)), n.below(3) > 0)
    }),
];

/// A run of a space of 2^28 units may be too long to be stored with 8 bytes.
///
/// The 2,000 ends of 1,000 runs are one of (2^28 over 2,000) choices, 37 bits a run, and each has a
/// physical number of 28 bits: no mapping stores any such 1,000 runs in fewer than 8.1 bytes each.
#[test]
fn compact_takes_at_most_14_bytes_a_run_where_runs_are_long_and_few() {
    let entry = by_name("compact").unwrap();
    for &(name, turns, most, stream) in LONG {
        let space = Space { logical: (1 << 28) - 1, physical: PHYSICAL };
        let mut memory = vec![0; (entry.memory)(space, turns as usize)];
        let mut map = (entry.build)(space, &mut memory).unwrap();
        let mut numbers = Numbers(11);
        let mut worst = 0.0;
        for turn in 0..turns {
            let (extent, is_write) = stream(&mut numbers, turn, space.logical);
            match is_write {
                true => map.update(extent, numbers.below(PHYSICAL - 50_000), &mut |_| {}).unwrap(),
                false => map.remove(extent, &mut |_| {}).unwrap(),
            }
            if turn % 100 == 99 {
                let runs = least_runs(&*map).0;
                if runs >= 1000 {
                    worst = f64::max(worst, map.bytes().used as f64 / runs as f64);
                }
            }
        }
        println!("{name}: {worst:.2} bytes a run");
        assert!(worst > 0.0 && worst <= most, "{name}: {worst:.2} bytes a run");
        map.check().unwrap();
    }
}

/// In smaller spaces a page map is so small that 1,000 runs, and holes of the memory, exceed it.
#[test]
fn compact_never_peaks_above_page_from_8192_pages_on() {
    let entry = by_name("compact").unwrap();
    for logical in [1 << 13, 10_000, 1 << 14, 1 << 15] {
        let space = Space { logical, physical: PHYSICAL };
        let mut memory = vec![0; (entry.memory)(space, logical as usize)];
        let mut map = (entry.build)(space, &mut memory).unwrap();
        let mut numbers = Numbers(13);
        for turn in 0..9 * logical {
            map.update(Extent::new(numbers.below(logical), 1), 2 * turn, &mut |_| {}).unwrap();
        }
        let peak = map.bytes().peak;
        println!("{logical} pages: peak {peak} of {}", 4 * logical);
        assert!(peak <= 4 * logical as usize, "{logical} pages: {peak} bytes");
    }
}

#[test]
fn compact_takes_at_most_3_75_bytes_a_page_after_random_writes_everywhere() {
    let entry = by_name("compact").unwrap();
    let space = Space { logical: 1 << 16, physical: PHYSICAL };
    let mut memory = vec![0; (entry.memory)(space, 1 << 16)];
    let mut map = (entry.build)(space, &mut memory).unwrap();
    let mut numbers = Numbers(5);
    for turn in 0..9 << 16 {
        map.update(Extent::new(numbers.below(space.logical), 1), 2 * turn, &mut |_| {}).unwrap();
    }
    let bytes = map.bytes();
    let each = bytes.used as f64 / f64::from(space.logical);
    assert!(each <= 3.75, "{each:.3} bytes a page");
    assert!(bytes.peak <= 4 << 16, "{} bytes while filling", bytes.peak);
}

#[test]
fn exact_work_of_every_mapping() {
    let space = Space { logical: 1 << 14, physical: PHYSICAL };
    let mut found = String::new();
    for entry in MAPPINGS {
        let mut memory = vec![0; (entry.memory)(space, 4000)];
        let mut map = (entry.build)(space, &mut memory).unwrap();
        let mut numbers = Numbers(7);
        for turn in 0..4000 {
            let extent = Extent::new(numbers.below(space.logical / 8 - 2) * 8, 8 + turn % 9);
            map.update(extent, turn * 20, &mut |_| {}).unwrap();
        }
        let written = map.work();
        for _ in 0..1000 {
            let extent = Extent::new(numbers.below(space.logical - 8), 8);
            map.look_up(extent, &mut |_| {}).unwrap();
        }
        let all = map.work();
        found += &format!(
            "{}: {} entries, {} bytes, writes {} {} {}, look-ups {} {}",
            entry.name,
            map.entries(),
            map.bytes().used,
            written.probes,
            written.nodes,
            written.moved,
            all.probes - written.probes,
            all.nodes - written.nodes,
        );
        if (all.flash_reads, all.flash_writes) != (0, 0) {
            found += &format!(
                ", flash: writes {} {}, look-ups {} {}",
                written.flash_reads,
                written.flash_writes,
                all.flash_reads - written.flash_reads,
                all.flash_writes - written.flash_writes,
            );
        }
        found.push('\n');
    }
    let expected = include_str!("work.txt");
    assert_eq!(found, expected, "tests/work.txt has other figures; now:\n{found}");
}
