//! The clean-up of the paper: a commit when RAM is full, and a share of the clean nodes leaves.

use nandina::{BadOption, OpenError};
use nandina_sim::Chip;

use crate::*;

#[cfg(all(feature = "paper-modes", feature = "node-counters"))]
#[test]
fn an_index_that_shrinks_by_any_share_equals_a_map_through_cuts() {
    let shapes = [
        (SMALL, OPTIONS.arena_bytes(12 * 496)),
        (LARGE, OPTIONS.fanout(4).arena_bytes(40 * 120)),
        (LARGE, OPTIONS.fanout(8).arena_bytes(60 * 104).commit_step(1).journal_values(true)),
    ];
    for (at, (profile, options)) in shapes.into_iter().enumerate() {
        for percent in [1, 25, 75, 100] {
            let options = options.shrink_percent(percent);
            let what = format!("shape {at}, {percent} per cent");
            let (mut chip, mut ram) = (Chip::new(profile), ram(&profile, &options));
            let (mut numbers, mut model) = (Numbers(percent.into()), Model::new());
            Tree::format(&mut chip, &options, &mut ram).unwrap();
            let (mut shrinks, mut least) = (0, u32::MAX);
            for session in 0..6u8 {
                let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
                expect_content(&mut index, &model, &what);
                for _ in 0..300 {
                    let before = index.node_counters().unwrap();
                    let change = change(&mut numbers, 500);
                    make(&mut index, change).unwrap();
                    note(&mut model, change);
                    let after = index.node_counters().unwrap();
                    if after.shrinks > before.shrinks {
                        // What was dirty was written first.
                        let has_written = before.dirty == 0 || after.commits > before.commits;
                        assert!(has_written, "{what}");
                        least = least.min(after.nodes);
                    }
                }
                expect_content(&mut index, &model, &what);
                shrinks += index.node_counters().unwrap().shrinks;
                // The others end as a cut between two operations does.
                if session % 3 == 0 {
                    index.close();
                }
            }
            assert!(shrinks > 0, "{what}: no shrinks");
            if percent == 100 {
                // Root and the path of the change.
                assert!(least <= 12, "{what}: {least} nodes were left");
            }
        }
    }
}

/// Where all nodes fit in RAM nothing leaves, whatever the share; and lookups alone never shrink.
#[cfg(all(feature = "paper-modes", feature = "node-counters"))]
#[test]
fn lookups_never_shrink_nor_do_changes_with_room() {
    for (nodes, fits) in [(2000, true), (24, false)] {
        let options = OPTIONS.fanout(4).arena_bytes(nodes * 120).shrink_percent(75);
        let (mut chip, mut ram) = (Chip::new(LARGE), ram(&LARGE, &options));
        let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
        for number in 0..600u32 {
            index.insert(&number.to_be_bytes(), &value(number, 0)).unwrap();
        }
        let before = index.node_counters().unwrap();
        assert_eq!(before.shrinks == 0, fits, "{before:?}");
        let programs = index.flash().counters().programs;
        for number in 0..600u32 {
            let number = number * 7 % 600;
            assert_eq!(index.get(&number.to_be_bytes()).unwrap(), Some(&value(number, 0)[..]));
        }
        let after = index.node_counters().unwrap();
        assert_eq!((after.shrinks, after.commits), (before.shrinks, before.commits));
        assert_eq!(index.flash().counters().programs, programs);
        assert_eq!(after.loaded == before.loaded, fits, "{after:?}");
    }
}

#[test]
fn shares_of_none_and_of_more_than_all_are_refused() {
    for percent in [0, 101, 255] {
        let options = OPTIONS.shrink_percent(percent);
        let (mut chip, mut ram) = (Chip::new(LARGE), ram(&LARGE, &options));
        match Tree::format(&mut chip, &options, &mut ram).map(drop) {
            Err(OpenError::BadOption { reason }) => {
                assert_eq!(reason, BadOption::ShrinkPercent);
                assert_eq!(reason.to_string(), "shrink_percent must be None or 1 to 100");
            }
            other => panic!("{percent}: {other:?}"),
        }
    }
}

/// Without the feature the option is refused by name.
#[cfg(not(feature = "paper-modes"))]
#[test]
fn a_share_is_refused_by_name_where_it_is_not_built() {
    let options = OPTIONS.shrink_percent(25);
    let (mut chip, mut ram) = (Chip::new(LARGE), ram(&LARGE, &options));
    let Err(error) = Tree::format(&mut chip, &options, &mut ram) else { panic!("not refused") };
    let text = error.to_string();
    assert!(text.contains("shrink_percent") && text.contains("paper-modes"), "{text}");
}
