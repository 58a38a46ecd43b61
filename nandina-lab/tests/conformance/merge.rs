//! Trees that were thinned out.
//!
//! The figures of `plan` hold for every work that never has more records, and a cut while two nodes
//! are merged leaves the previous state or the new one.

use nandina::store::Description;
use nandina::{Index, Plan, System, plan};
use nandina_sim::{Chip, Counters, Cut};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

/// Chips whose trees grow wide or high with few records.
fn cases() -> Vec<Case> {
    let mut wide = Case::new(SMALL);
    wide.profile.geometry.blocks = 48;
    let mut high = wide;
    high.profile.geometry.page_bytes = 256;
    high.profile.geometry.spare_bytes = 32;
    let mut long = Case::new(LONG);
    long.options.keep_pages = Some(true);
    vec![wide, high, long]
}

fn plan_of<S: System>(case: &Case, records: u32) -> Option<Plan> {
    let (geometry, capabilities) = (&case.profile.geometry, &case.profile.capabilities);
    plan::<S>(geometry, capabilities, &case.options, records).ok()
}

/// The most records, up to a bound, that fit by the plan.
fn most<S: System>(case: &Case) -> Option<(u32, Plan)> {
    let fits = |records| plan_of::<S>(case, records).is_some_and(|plan| plan.fits);
    let (mut low, mut high) = (0, 1_600);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    plan_of::<S>(case, low).filter(|plan| plan.fits).map(|plan| (low, plan))
}

/// Changes in several orders: numbers of keys, and whether the record is inserted or removed.
fn works(records: u32) -> Vec<(&'static str, Vec<(u32, bool)>)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed());
    let all: Vec<u32> = (0..records).map(|number| 64 * number).collect();
    let mut shuffled = all.clone();
    shuffled.shuffle(&mut random);
    let puts = |numbers: &[u32]| numbers.iter().map(|&number| (number, true)).collect::<Vec<_>>();
    let runs: Vec<u32> = (0..records / 5)
        .rev()
        .flat_map(|at| (0..5).map(move |run| 64 * (run * (records / 5) + at)))
        .collect();
    let mut churn = puts(&shuffled);
    for _ in 0..2 * records {
        let at = random.random_range(0..shuffled.len());
        churn.push((shuffled[at], false));
        shuffled[at] = random.random_range(0..64 * records);
        churn.push((shuffled[at], true));
    }
    // Full stretches one after the other; some records of each stay.
    let mut sparse = Vec::new();
    let (mut kept, mut at, keep) = (Vec::new(), 0, random.random_range(2..9));
    while at < 40 * records && kept.len() < records as usize - 1 {
        let stretch: Vec<u32> = (0..records - kept.len() as u32).map(|step| at + step).collect();
        at += records;
        sparse.extend(puts(&stretch));
        for &number in &stretch {
            if number % keep == 0 {
                kept.push(number);
            } else {
                sparse.push((number, false));
            }
        }
    }
    vec![
        ("random", churn[..records as usize].to_vec()),
        ("ascending", puts(&all)),
        ("descending", all.iter().rev().map(|&number| (number, true)).collect()),
        ("descending runs", puts(&runs)),
        ("churn", churn),
        ("sparse", sparse),
    ]
}

fn within(taken: Counters, bound: nandina::Cost, what: &str) -> Outcome {
    if taken.reads <= bound.reads
        && taken.programs <= bound.programs
        && taken.erases <= bound.erases
    {
        return Ok(());
    }
    Err(format!("{what} took {taken:?}, {bound:?} planned"))
}

struct WhatFits;

impl WhatFits {
    fn work<S: System>(case: &Case, plan: &Plan, changes: &[(u32, bool)]) -> Outcome {
        with_index::<S, _>(case, |index| {
            let mut model = Model::new();
            for (turn, &(number, puts)) in changes.iter().enumerate() {
                let (key, value) = (key(number), value(number, turn as u32));
                let before = index.flash().counters();
                if puts {
                    index.insert(&key, &value).map_err(|error| {
                        format!("{error} with {} records: {:?}", model.len(), index.statistics())
                    })?;
                    model.insert(key.to_vec(), value.to_vec());
                } else {
                    index.remove(&key).map_err(text)?;
                    model.remove(&key[..]);
                }
                within(index.flash().counters() - before, plan.change, "a change")?;
                let found = index.statistics();
                if found.height > plan.height || found.valid_pages > plan.valid_pages {
                    return Err(format!("the tree is larger than planned: {plan:?}, {found:?}"));
                }
                if turn % 8 == 0 {
                    let before = index.flash().counters();
                    index.get(&key).map_err(text)?;
                    within(index.flash().counters() - before, plan.get, "a lookup")?;
                }
                if turn % 500 == 0 {
                    compare(index, &model)?;
                }
            }
            compare(index, &model)
        })
    }
}

impl Check for WhatFits {
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut planned = 0;
        for case in cases() {
            let case = case.suited::<S>();
            let Some((records, plan)) = most::<S>(&case).filter(|(records, _)| *records >= 50)
            else {
                continue;
            };
            planned += 1;
            for (name, changes) in works(records) {
                Self::work::<S>(&case, &plan, &changes).map_err(|what| {
                    format!("{name}, {records} records that fit on {:?}: {what}", case.profile)
                })?;
            }
        }
        if planned > 1 { Ok(()) } else { Err("next to nothing fits".into()) }
    }
}

#[test]
fn what_fits_fits_in_any_order_and_under_churn() {
    for_one_system_in(5, &WhatFits);
}

/// Successive inserts into a tree that was thinned out.
const INSERTS: u32 = 160;

/// Cuts power at each chip operation of the inserts that split and merge nodes.
struct CutMerges;

impl CutMerges {
    /// Leaves one record in `keep` of a full tree, then inserts keys in one place.
    fn life<S: System>(case: &Case, records: u32, keep: u32) -> Result<usize, String> {
        let case = case.suited::<S>();
        let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
        let (mut model, mut first_pages) = (Model::new(), 0);
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in 0..records {
            index.insert(&key(1_000 * number), &value(number, 0)).map_err(text)?;
        }
        for number in 0..records {
            if number % keep != 0 {
                index.remove(&key(1_000 * number)).map_err(text)?;
            } else {
                model.insert(key(1_000 * number).to_vec(), value(number, 0).to_vec());
            }
        }
        drop(index);
        let (mut cut_up, mut pages) = (0, 0);
        let room = records - records.div_ceil(keep);
        for number in 0..INSERTS.min(room) {
            let (key, value) = (key(500 * records + number), value(number, 1));
            let mut after = model.clone();
            after.insert(key.to_vec(), value.to_vec());
            let mut whole = chip.clone();
            let mut index =
                Index::<_, S>::open(&mut whole, &case.options, &mut ram).map_err(text)?;
            let (before, found) = (index.flash().counters(), index.statistics());
            pages = pages.max(found.valid_pages);
            if number == 0 {
                first_pages = found.valid_pages;
            }
            index.insert(&key, &value).map_err(text)?;
            let mut taken = index.flash().counters() - before;
            let mut others = index.statistics().valid_pages != found.valid_pages;
            drop(index);
            // Behind a journal the next mount commits, which writes the nodes that were divided.
            if S::DESCRIPTION.replays() {
                let mut next = whole.clone();
                let index =
                    Index::<_, S>::open(&mut next, &case.options, &mut ram).map_err(text)?;
                taken = index.flash().counters() - before;
                others = index.statistics().valid_pages != found.valid_pages;
            }
            // More than a path was written: nodes were split, and perhaps merged before. A leaf
            // alone is split by one program.
            let written = taken.programs + taken.rewrites + taken.overwrites;
            let divides = written > u64::from((nodes_of::<S>().path_pages)(found.height));
            let divided = match S::DESCRIPTION.replays() {
                true => others,
                false => divides || (!S::DESCRIPTION.has_inner_nodes() && others),
            };
            if divided && cut_up < 16 {
                cut_up += 1;
                for operation in 0..taken.operations() {
                    let cut = Cut::ALL[(operation as usize + cut_up) % Cut::ALL.len()];
                    let mut torn = chip.clone();
                    Self::cut::<S>(
                        &case,
                        &mut torn,
                        (operation, cut),
                        (&key, &value),
                        [&model, &after],
                    )
                    .map_err(|what| format!("{cut:?} at {operation} of insert {number}: {what}"))?;
                }
            }
            (chip, model) = (whole, after);
        }
        // Without merging, the tree would grow beyond the planned nodes.
        let planned = plan_of::<S>(&case, records).map_or(0, |plan| plan.valid_pages);
        if pages > planned.max(first_pages) + 2 {
            return Err(format!("{first_pages} pages became {pages}, {planned} planned"));
        }
        Ok(cut_up)
    }

    fn cut<S: System>(
        case: &Case,
        chip: &mut Chip,
        (operation, cut): (u64, Cut),
        (key, value): (&[u8], &[u8]),
        states: [&Model; 2],
    ) -> Outcome {
        let mut ram = case.ram::<S>();
        let before = chip.counters().operations();
        drop(Index::<_, S>::open(&mut *chip, &case.options, &mut ram).map_err(text)?);
        // Opening the index makes no program here, and costs the same each time.
        chip.cut_at(chip.counters().operations() - before + operation, cut);
        if let Ok(mut index) = Index::<_, S>::open(&mut *chip, &case.options, &mut ram) {
            let _ = index.insert(key, value);
        }
        // The cut may come here, where a mount writes what the insert divided.
        drop(Index::<_, S>::open(&mut *chip, &case.options, &mut ram));
        chip.restore_power();
        let mut index = Index::<_, S>::open(&mut *chip, &case.options, &mut ram).map_err(text)?;
        let state = states.into_iter().find(|state| compare(&mut index, state).is_ok());
        let Some(state) = state else {
            return compare(&mut index, states[0]);
        };
        // Dropped records do not come back.
        let mut state = state.clone();
        index.insert(key, value).map_err(text)?;
        state.insert(key.to_vec(), value.to_vec());
        let keys: Vec<_> = state.keys().step_by(2).cloned().collect();
        for key in keys {
            index.remove(&key).map_err(text)?;
            state.remove(&key);
        }
        compare(&mut index, &state)
    }
}

impl Check for CutMerges {
    fn concerns(&self, system: &Description) -> bool {
        // The pages that it cuts between are nodes.
        !system.has_leaf_blocks()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut cut_up = 0;
        for (case, keep) in cases().into_iter().zip([7, 5, 9]) {
            let Some((records, _)) = most::<S>(&case.suited::<S>()) else { continue };
            cut_up += Self::life::<S>(&case, records.min(900), keep)
                .map_err(|what| format!("{:?}: {what}", case.profile.geometry))?;
        }
        if cut_up > 0 { Ok(()) } else { Err("no node was divided".into()) }
    }
}

#[test]
fn a_cut_merge_leaves_the_state_of_before_or_after() {
    for_one_system_in(5, &CutMerges);
}
