//! Counts of nodes: a commit writes each dirty node once, and the counts of fixed work are pinned.

use nandina::flash::Profile;
use nandina::{Change, NodeCounters, Options};
use nandina_sim::Chip;

use crate::*;

fn counters(index: &Tree<'_>) -> NodeCounters {
    index.node_counters().unwrap()
}

/// Chips of nodes of one and of several pages, with values in the nodes and in the journal.
fn unstepped() -> [(Profile, Options); 4] {
    [
        (SMALL, OPTIONS),
        (LARGE, OPTIONS.fanout(4).arena_bytes(40 * 120)),
        (LARGE, OPTIONS.fanout(16).arena_bytes(24 * 168)),
        (LARGE, OPTIONS.fanout(8).arena_bytes(60 * 104).journal_values(true)),
    ]
}

#[test]
fn a_commit_writes_as_many_nodes_as_were_dirty_and_none_twice() {
    for (at, (profile, options)) in unstepped().into_iter().enumerate() {
        // All at once.
        let options = options.commit_step(10_000);
        let (mut chip, mut ram) = (Chip::new(profile), ram(&profile, &options));
        let (mut numbers, mut model) = (Numbers(at as u64), Model::new());
        let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
        let (mut commits, mut before) = (0, counters(&index));
        for _ in 0..1500 {
            let moved = index.statistics().moved_pages;
            let change = change(&mut numbers, 120);
            make(&mut index, change).unwrap();
            note(&mut model, change);
            let after = counters(&index);
            // A page that is moved makes more nodes dirty, after the commit or before another one.
            let moved = index.statistics().moved_pages > moved;
            if after.commits == before.commits + 1 && !moved {
                commits += 1;
                let written = after.nodes_written - before.nodes_written;
                assert_eq!(written, u64::from(before.dirty), "settings {at}");
            } else if !moved {
                assert_eq!(
                    (after.nodes_written, after.commits),
                    (before.nodes_written, before.commits)
                );
            }
            assert!(after.dirty <= after.nodes && after.nodes <= after.most_nodes);
            assert!(after.dirty <= after.most_dirty && after.most_dirty <= after.most_nodes);
            before = after;
        }
        expect_content(&mut index, &model, "after commits");
        let whole = counters(&index);
        assert!(commits > 5, "settings {at}: {commits} commits of {}", whole.commits);
        assert_eq!(whole.replayed, 0);
        // The mount refuses a tree in which a node is reachable twice, and the check counts all
        // nodes that it reaches in each page.
        let mut index = Tree::open(&mut chip, &options, &mut ram).unwrap();
        expect_content(&mut index, &model, "after a mount");
        let mount = counters(&index);
        assert!(mount.replayed > 0 && mount.wandering == 0, "settings {at}: {mount:?}");
    }
}

/// Counts of 1,500 random changes and a batch.
const PINNED: &str = "\
a page each: 2307 wandering, 862 written, 0 loaded, most 21 and 8 dirty, 109 commits, 5 replayed
fanout 8: 4726 wandering, 2275 written, 1949 loaded, most 50 and 40 dirty, 93 commits, 9 replayed
in steps: 6630 wandering, 1329 written, 9 loaded, most 231 and 167 dirty, 10 commits, 7 replayed
in the journal: 4391 wandering, 3234 written, 260 loaded, most 75 and 38 dirty, 137 commits, 5 replayed
";

#[test]
fn counts_of_nodes_of_fixed_work_are_as_pinned() {
    let mut rows = String::new();
    let works: [(&str, Profile, Options); 4] = [
        ("a page each", SMALL, OPTIONS.arena_bytes(40 * 496)),
        ("fanout 8", LARGE, OPTIONS.fanout(8).arena_bytes(40 * 104)),
        ("in steps", LARGE, OPTIONS.fanout(4).arena_bytes(160 * 120).commit_step(1)),
        ("in the journal", LARGE, OPTIONS.fanout(8).arena_bytes(60 * 104).journal_values(true)),
    ];
    for (name, profile, options) in works {
        let (mut chip, mut ram) = (Chip::new(profile), ram(&profile, &options));
        let (mut numbers, mut model) = (Numbers(7), Model::new());
        let mut index = Tree::format(&mut chip, &options, &mut ram).unwrap();
        for _ in 0..1500 {
            let change = change(&mut numbers, 800);
            make(&mut index, change).unwrap();
            note(&mut model, change);
        }
        let batch = [
            Change::Put { key: &[0, 0, 1, 0], value: &[1; 12] },
            Change::Put { key: &[0, 0, 1, 1], value: &[2; 12] },
        ];
        index.write_batch(&batch[..index.batch_max().min(2)]).unwrap();
        let NodeCounters {
            wandering,
            nodes_written,
            loaded,
            most_nodes,
            most_dirty,
            commits,
            replayed,
            ..
        } = counters(&index);
        assert_eq!(replayed, 0);
        let index = Tree::open(&mut chip, &options, &mut ram).unwrap();
        let replayed = counters(&index).replayed;
        rows += &format!(
            "{name}: {wandering} wandering, {nodes_written} written, {loaded} loaded, most {most_nodes} \
             and {most_dirty} dirty, {commits} commits, {replayed} replayed\n"
        );
    }
    assert_eq!(rows, PINNED);
}
