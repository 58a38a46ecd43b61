//! The work that `close` saves the next mount.

use std::cell::RefCell;

use expect_test::expect_file;
use nandina::store::Description;
use nandina::{Index, System};
use nandina_lab::systems::is_own;
use nandina_sim::{Chip, Counters};

use crate::harness::*;

const RECORDS: u32 = 60;

/// Programs and erases so far.
const fn written(chip: &Chip) -> u64 {
    let counters = chip.counters();
    counters.programs + counters.overwrites + counters.rewrites + counters.erases
}

struct Closed;

impl Check for Closed {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        for checkpoints in
            [None, Some(2)].into_iter().filter(|c| c.is_none() || S::DESCRIPTION.checkpoints)
        {
            let mut case = Case::new(LONG).suited::<S>();
            case.options.checkpoints = checkpoints;
            let mut ram = case.ram::<S>();
            let mut chip = Chip::new(case.profile);
            let mut model = Model::new();
            let mut index =
                Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
            for number in 0..RECORDS {
                index.insert(&key(number), &value(number, 0)).map_err(text)?;
                model.insert(key(number).to_vec(), value(number, 0).to_vec());
            }
            let before = written(index.flash());
            index.close();
            let cost = written(&chip) - before;
            // With a checkpoint, its page and that of an anchor, and the erases of their blocks;
            // where there is a journal, a commit.
            let most = match (checkpoints, S::DESCRIPTION.checkpoints_at_close) {
                (Some(_), true) if S::DESCRIPTION.replays() => 12,
                (Some(_), true) => 4,
                _ => 2,
            };
            if cost == 0 || cost > most {
                return Err(format!("closing programs and erases {cost} times"));
            }
            // Reading alone, and closing again, makes no program.
            for _ in 0..2 {
                let before = written(&chip);
                let mut index =
                    Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                compare(&mut index, &model)?;
                index.close();
                if written(&chip) != before {
                    return Err("a mount after an end wrote".into());
                }
            }
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            index.insert(&key(RECORDS), &value(RECORDS, 0)).map_err(text)?;
            model.insert(key(RECORDS).to_vec(), value(RECORDS, 0).to_vec());
            drop(index);
            // The index was dropped and not closed.
            let before = written(&chip);
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            compare(&mut index, &model)?;
            if written(index.flash()) == before {
                return Err("a mount that may follow a cut wrote nothing".into());
            }
        }
        Ok(())
    }
}

/// The chip operations of mounts, with the first change after each.
#[derive(Default)]
struct Mounts {
    table: RefCell<String>,
}

impl Check for Mounts {
    fn concerns(&self, system: &Description) -> bool {
        !is_own(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in 0..RECORDS {
            index.insert(&key(number), &value(number, 0)).map_err(text)?;
        }
        index.close();
        for (turn, before) in (1..).zip(["closed", "dropped"]) {
            let start = chip.counters();
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            let open = index.flash().counters();
            index.insert(&key(turn), &value(turn, turn)).map_err(text)?;
            let change = index.flash().counters();
            let cost = |end: Counters, start: Counters| {
                let written = |counters: Counters| {
                    counters.programs + counters.overwrites + counters.rewrites
                };
                let programs = written(end) - written(start);
                format!("{} {programs} {}", end.reads - start.reads, end.erases - start.erases)
            };
            *self.table.borrow_mut() += &format!(
                "{} {before}: {}, first change {}\n",
                S::DESCRIPTION.key,
                cost(open, start),
                cost(change, open)
            );
        }
        Ok(())
    }
}

/// Each line is `system end: reads programs erases` of the mount, and of the change behind it.
#[test]
fn mounts_cost_what_is_pinned() {
    let mounts = Mounts::default();
    for_every_system(&mounts);
    expect_file!["mounts.txt"].assert_eq(&mounts.table.borrow());
}

#[test]
fn a_mount_after_an_end_of_the_session_only_reads() {
    for_every_system(&Closed);
}
