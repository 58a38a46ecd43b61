//! Removals that merge and rotate nodes keep each node half full, and a cut leaves the old or the
//! new state.

use nandina::store::Description;
use nandina::{Index, Removed, System, WriteError};
use nandina_sim::{Chip, ChipError, Cut};

use crate::harness::*;

fn case_of(rebalances: bool) -> Case {
    let mut case = Case::new(LONG);
    case.options.rebalances = rebalances;
    case
}

struct CutAnywhere;

impl Check for CutAnywhere {
    fn concerns(&self, system: &Description) -> bool {
        system.has_rebalancing()
    }

    /// Removes records one by one, each in a session of its own, and cuts those that write most.
    fn run<S: System + 'static>(&self) -> Outcome {
        let case = case_of(true).suited::<S>();
        let mut ram = case.ram::<S>();
        let (mut chip, mut model) = (Chip::new(case.profile), Model::new());
        {
            let mut index =
                Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
            for number in 0..900u32 {
                let number = number.wrapping_mul(7) % 900;
                index.insert(&key(number), &value(number, 1)).map_err(text)?;
                model.insert(key(number).to_vec(), value(number, 1).to_vec());
            }
        }
        let share = Share::one_in(7);
        let (mut cuts, mut written, mut least) = (0, [0; 8], u64::MAX);
        for turn in 0..820u32 {
            let number = turn.wrapping_mul(if turn % 2 == 0 { 1 } else { 7 }) % 900;
            let before = chip.clone();
            let start = chip.counters();
            let mut mounted = 0;
            {
                let mut index =
                    Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                mounted += index.flash().counters().operations() - start.operations();
                index.remove(&key(number)).map_err(text)?;
            }
            let done = chip.counters() - start;
            let writes = done.changes();
            written[writes.min(7) as usize] += 1;
            // A removal alone writes a page, and the first one of a session what begins it.
            least = least.min(writes);
            if writes > least + 1 {
                for at in mounted..done.operations() {
                    if !share.takes(u64::from(turn) * 13 + at) {
                        continue;
                    }
                    let what = format!("turn {turn}, cut at {at} of {}", done.operations());
                    let mut next = model.clone();
                    next.remove(&key(number)[..]);
                    cut_one::<S>(&before, &case, (at, number), [&model, &next])
                        .map_err(|error| format!("{what}: {error}"))?;
                    cuts += 1;
                }
            }
            model.remove(&key(number)[..]);
        }
        println!("{cuts} cuts; removals by their writes: {written:?}");
        if cuts > share.least(200) { Ok(()) } else { Err(format!("only {cuts} cuts")) }
    }
}

/// Cuts power in a removal, and expects one of the two states at two mounts.
fn cut_one<S: System>(
    before: &Chip,
    case: &Case,
    (at, number): (u64, u32),
    states: [&Model; 2],
) -> Outcome {
    let (mut chip, mut ram) = (before.clone(), case.ram::<S>());
    chip.cut_at(at, Cut::ALL[at as usize % Cut::ALL.len()]);
    if let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
        match index.remove(&key(number)) {
            Err(WriteError::Device(ChipError::PowerLost)) => {}
            done => return Err(format!("it was not cut: {done:?}")),
        }
    }
    chip.restore_power();
    let mut state = None;
    for mount in 0..2 {
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        let [old, new] = states.map(|model| compare(&mut index, model));
        let is_new = match (old, new) {
            (Ok(()), _) => false,
            (_, Ok(())) => true,
            (Err(old), Err(new)) => return Err(format!("mount {mount}: neither {old} nor {new}")),
        };
        if state.is_some_and(|state| state != is_new) {
            return Err(format!("mount {mount} finds the other state"));
        }
        state = Some(is_new);
        let mut violations = Vec::new();
        index.check(|violation| violations.push(violation)).map_err(text)?;
        if !violations.is_empty() {
            return Err(format!("{violations:?}"));
        }
        // It goes on from there.
        if mount == 1 {
            index.insert(&key(number), &value(number, 9)).map_err(text)?;
            let mut model = states[1].clone();
            model.insert(key(number).to_vec(), value(number, 9).to_vec());
            compare(&mut index, &model)?;
        }
    }
    Ok(())
}

#[test]
fn a_cut_in_a_merge_or_a_rotation_leaves_the_old_or_the_new_state() {
    for_every_system(&CutAnywhere);
}

struct HalfFull;

impl Check for HalfFull {
    fn concerns(&self, system: &Description) -> bool {
        system.has_rebalancing()
    }

    /// Removes all but some records in several orders, and compares the index with a map.
    fn run<S: System + 'static>(&self) -> Outcome {
        let records = 1_200u32;
        let pages = |rebalances, stride: u32| {
            with_index::<S, _>(&case_of(rebalances), |index| {
                let mut model = Model::new();
                for number in 0..records {
                    let number = number.wrapping_mul(7) % records;
                    index.insert(&key(number), &value(number, 1)).map_err(text)?;
                    model.insert(key(number).to_vec(), value(number, 1).to_vec());
                }
                let grown = index.statistics();
                for turn in 0..records - 100 {
                    let number = turn.wrapping_mul(stride) % records;
                    let removed = index.remove(&key(number)).map_err(text)?;
                    let was_there = model.remove(&key(number)[..]).is_some();
                    if (removed == Removed::Found) != was_there {
                        return Err(format!("turn {turn}: {removed:?}"));
                    }
                    if turn % 150 == 0 {
                        let mut violations = Vec::new();
                        index.check(|violation| violations.push(violation)).map_err(text)?;
                        if !violations.is_empty() {
                            return Err(format!("turn {turn}: {violations:?}"));
                        }
                    }
                }
                for number in 0..records {
                    let held = index.get(&key(number)).map_err(text)?.map(<[u8]>::to_vec);
                    if held != model.get(&key(number)[..]).cloned() {
                        return Err(format!("{number} reads {held:?}"));
                    }
                }
                Ok((grown, index.statistics()))
            })
        };
        let mut sparse = 0;
        for stride in [1, 7, 11, 1_199] {
            let ((grown, balanced), (_, lazy)) = (pages(true, stride)?, pages(false, stride)?);
            // A leaf has 29 records at most, and so 14 or more; with a root, and one that is left.
            let is_right = balanced.records == 100
                && balanced.valid_pages <= 100 / 14 + 2
                && balanced.valid_pages <= lazy.valid_pages;
            if !is_right {
                return Err(format!("stride {stride}: {grown:?}, {balanced:?}, lazy {lazy:?}"));
            }
            sparse = sparse.max(lazy.valid_pages);
        }
        if sparse < 20 {
            return Err(format!("removals that merge nothing leave {sparse} pages"));
        }
        Ok(())
    }
}

#[test]
fn removals_leave_nodes_half_full_and_the_tree_lower() {
    for_every_system(&HalfFull);
}
