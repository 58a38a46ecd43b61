//! The bounds of `plan` hold on the simulator.
//!
//! They are RAM, height, and the most chip operations that one call can cost, on full chips, after
//! cuts, with garbage collection at its worst. Steps of idle collection keep to their budget and
//! spare the changes after them.

use nandina::store::Description;
use nandina::{Cost, Index, OpenError, Plan, RelocationMode, System, WriteError, plan};
use nandina_sim::{Chip, Counters, Cut, Faults, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::*;

fn within(taken: Counters, bound: Cost, what: &str) -> Outcome {
    let bound_pairs = [
        ("reads", taken.reads, bound.reads),
        ("programs", taken.programs, bound.programs),
        ("erases", taken.erases, bound.erases),
    ];
    match bound_pairs.into_iter().find(|(_, taken, bound)| taken > bound) {
        Some((kind, taken, bound)) => Err(format!("{what} took {taken} {kind}, {bound} planned")),
        None => Ok(()),
    }
}

fn planned<S: System>(case: &Case, records: u32) -> Result<Plan, String> {
    plan::<S>(&case.profile.geometry, &case.profile.capabilities, &case.options, records)
        .map_err(text)
}

/// The plan for the actual tree of an index: of at least its height and inner nodes.
fn plan_for<S: System>(case: &Case, index: &Index<'_, &mut Chip, S>) -> Result<Plan, String> {
    let statistics = index.statistics();
    let mut records = 1;
    loop {
        let plan = planned::<S>(case, records)?;
        if plan.height >= statistics.height && plan.valid_pages >= statistics.valid_pages {
            return Ok(plan);
        }
        records += records / 4 + 1;
    }
}

#[derive(Default, Debug)]
struct Most {
    change: Counters,
    planned: Option<Cost>,
}

impl Most {
    fn note(&mut self, taken: Counters, bound: Cost) {
        self.change.reads = self.change.reads.max(taken.reads);
        self.change.programs = self.change.programs.max(taken.programs);
        self.change.erases = self.change.erases.max(taken.erases);
        self.planned = Some(bound);
    }
}

struct WorstChange {
    case: Case,
    cuts: bool,
    sessions: Share,
}

impl Check for WorstChange {
    fn run<S: System + 'static>(&self) -> Outcome {
        let case = self.case.suited::<S>();
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        let mut ram = case.ram::<S>();
        let mut chip = Chip::with_seed(suited::<S>(case.profile), seed());
        drop(Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?);
        let mut most = Most::default();
        if self.cuts {
            chip.set_faults(Faults { unstable_pages: 2, ..Faults::NONE });
        }
        for session in 0..self.sessions.length(120) {
            if self.cuts {
                let cut = Cut::ALL[random.random_range(0..Cut::ALL.len())];
                chip.cut_at(random.random_range(0..2_000), cut);
            }
            let start = chip.counters();
            let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram) else {
                chip.restore_power();
                continue;
            };
            let opening = index.flash().counters() - start;
            let plan = plan_for::<S>(&case, &index)?;
            within(opening, plan.open, &format!("session {session}: opening"))?;
            let mut bound = plan.change;
            for turn in 0..200u32 {
                let number = random.random_range(0..3_000);
                let plan = plan_for::<S>(&case, &index)?;
                let before = index.flash().counters();
                index.get(&key(number)).ok();
                within(index.flash().counters() - before, plan.get, "a lookup")?;
                let before = index.flash().counters();
                let result = if turn % 4 == 0 {
                    index.remove(&key(number)).map(drop)
                } else {
                    index.insert(&key(number), &value(number, turn)).map(drop)
                };
                let taken = index.flash().counters() - before;
                bound = if self.cuts { plan.change_after_cuts } else { plan.change };
                within(taken, bound, &format!("session {session}: a change"))?;
                most.note(taken, bound);
                match result {
                    Ok(()) | Err(WriteError::Full { .. } | WriteError::TooHigh { .. }) => {}
                    Err(WriteError::Device(_)) => break,
                    Err(error) => return Err(text(error)),
                }
            }
            let before = index.flash().counters();
            index.flush().ok();
            within(index.flash().counters() - before, bound, "a flush")?;
            if session % 3 == 0 {
                let plan = plan_for::<S>(&case, &index)?;
                let before = index.flash().counters();
                let taken = index.close().counters() - before;
                within(taken, plan.close, &format!("session {session}: closing"))?;
            } else {
                drop(index);
            }
            chip.restore_power();
        }
        println!("{} cuts {}: {most:?}", S::DESCRIPTION.key, self.cuts);
        Ok(())
    }
}

fn cases() -> Vec<Case> {
    let mut cases = vec![Case::new(TINY), Case::new(SMALL), Case::new(LONG)];
    let mut lean = Case::new(SMALL);
    lean.options.page_buffers = Some(2);
    lean.options.moves = RelocationMode::Alone;
    let mut verify = Case::new(LONG);
    verify.options.verify = true;
    let mut cached = Case::new(SMALL);
    (cached.options.read_cache, cached.options.write_cache) = (2, 12);
    let mut reserved = Case::new(SMALL);
    reserved.profile.capabilities.bad_blocks_per_mille = 100;
    let mut buffered = Case::new(SMALL);
    (buffered.options.write_buffer, buffered.options.write_cache) = (1, 3);
    let mut counted = Case::new(LONG);
    (counted.options.write_buffer, counted.options.write_buffer_changes) = (2, Some(5));
    let mut ended = Case::new(LONG);
    ended.options.checkpoints = Some(2);
    cases.extend([lean, verify, cached, reserved, buffered, counted, ended]);
    cases
}

#[test]
fn no_change_costs_more_than_planned() {
    let sessions = Share::one_in(3);
    for case in Share::one_in(7).of(cases()) {
        for_every_system(&WorstChange { case, cuts: false, sessions });
    }
}

#[test]
fn no_change_after_cuts_costs_more_than_planned() {
    let sessions = Share::one_in(3);
    for case in Share::one_in(7).of(cases()) {
        for_every_system(&WorstChange { case, cuts: true, sessions });
    }
}

struct RamAndHeight;

impl Check for RamAndHeight {
    fn run<S: System + 'static>(&self) -> Outcome {
        for case in Share::one_in(3).of(cases().into_iter().map(Case::suited::<S>)) {
            if planned::<S>(&case, 1)?.ram_bytes != case.ram::<S>().len() {
                return Err("the planned RAM is not what the index takes".into());
            }
            with_index::<S, _>(&case, |index| {
                let mut height = 1;
                for number in 0..4_000u32 {
                    let spread = number.wrapping_mul(2_654_435_761);
                    if index.insert(&key(spread), &value(number, 0)).is_err() {
                        break;
                    }
                    let plan = planned::<S>(&case, number + 1)?;
                    if index.statistics().height > plan.height {
                        return Err(format!("{number} records are higher than planned: {plan:?}"));
                    }
                    height = height.max(index.statistics().height);
                    // With no more inner nodes than planned, the limit of valid pages is the
                    // planned one.
                    let found = index.statistics();
                    if found.height == plan.height && found.limit_pages < plan.limit_pages {
                        return Err(format!("more pages were planned: {plan:?}, {found:?}"));
                    }
                }
                if height > 1 { Ok(()) } else { Err("the tree never grew".into()) }
            })?;
        }
        let mut tiny = Case::new(TINY).suited::<S>();
        tiny.profile.geometry.blocks = 2;
        // A system that collects no blocks keeps none free for it.
        let formats = with_index::<S, _>(&tiny, |_| Ok(())).is_ok();
        match plan::<S>(&tiny.profile.geometry, &tiny.profile.capabilities, &tiny.options, 1) {
            Err(OpenError::ChipTooSmall { .. }) if !formats => Ok(()),
            Ok(_) if formats => Ok(()),
            other => Err(format!("a chip of two blocks was planned: {other:?}")),
        }
    }
}

#[test]
fn ram_and_height_are_as_planned() {
    for_every_system(&RamAndHeight);
}

/// The costliest insert of a long run, with an idle step after each insert or without.
struct IdleStepsSpare;

/// A chip on which pages have to be moved.
fn idle_case<S: System>() -> Case {
    let mut case = Case::new(LONG);
    // Leaves alone, larger ones, or nodes that are written late, are so few pages that blocks
    // become free by themselves.
    let packs = nodes_of::<S>().sharing.packs();
    if !S::DESCRIPTION.has_inner_nodes() || S::DESCRIPTION.replays() || packs {
        case.profile.geometry.blocks = 12;
    }
    case
}

impl IdleStepsSpare {
    fn costliest<S: System>(case: &Case, idle: bool) -> Result<Counters, String> {
        with_index::<S, _>(case, |index| {
            let mut random = ChaCha8Rng::seed_from_u64(seed());
            let mut most = Counters::default();
            for turn in 0..8_000u32 {
                let number = random.random_range(0..1_200);
                for _ in 0..if idle { 8 } else { 0 } {
                    index.gc_step(4 * index.gc_step_least()).map_err(text)?;
                }
                let before = index.flash().counters();
                index.insert(&key(number), &value(number, turn)).map_err(text)?;
                let taken = index.flash().counters() - before;
                most.reads = most.reads.max(taken.reads);
                most.programs = most.programs.max(taken.programs);
                most.erases = most.erases.max(taken.erases);
            }
            Ok(most)
        })
    }
}

impl Check for IdleStepsSpare {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = idle_case::<S>();
        let without = Self::costliest::<S>(&case, false)?;
        let with = Self::costliest::<S>(&case, true)?;
        println!("{}: without idle steps {without:?}, with {with:?}", S::DESCRIPTION.key);
        if with.programs <= without.programs && with.reads < without.reads {
            Ok(())
        } else {
            Err(format!("idle steps spare too little: without {without:?}, with {with:?}"))
        }
    }
}

#[test]
fn idle_steps_spare_later_changes_the_garbage_collection() {
    for_one_system_in(4, &IdleStepsSpare);
}

/// Idle steps stay within their budget and return exactly how many operations they took.
struct IdleSteps;

impl Check for IdleSteps {
    fn concerns(&self, system: &Description) -> bool {
        system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = idle_case::<S>();
        with_index::<S, _>(&case, |index| {
            let mut random = ChaCha8Rng::seed_from_u64(seed());
            let mut model = Model::new();
            let mut steps = 0;
            for turn in 0..Share::one_in(4).length(8_000) {
                let number = random.random_range(0..1_200);
                index.insert(&key(number), &value(number, turn)).map_err(text)?;
                model.insert(key(number).to_vec(), value(number, turn).to_vec());
                let moved = index.statistics().moved_pages;
                for _ in 0..8 {
                    let budget = random.random_range(0..3 * index.gc_step_least());
                    let before = index.flash().counters().operations();
                    let done = index.gc_step(budget).map_err(text)?;
                    let taken = index.flash().counters().operations() - before;
                    if taken > budget.into() || taken != u64::from(done.operations) {
                        return Err(format!("{taken} of {budget} operations: {done:?}"));
                    }
                    steps += u64::from(index.statistics().moved_pages > moved);
                }
            }
            if steps == 0 {
                return Err("no idle step ever moved a page".into());
            }
            compare(index, &model)
        })
    }
}

#[test]
fn idle_steps_keep_to_their_budget() {
    for_every_system(&IdleSteps);
}

/// A lookup among records, after an insert was cut: the root may have been split for it.
struct CutInserts;

impl Check for CutInserts {
    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(case.profile);
        drop(Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?);
        let mut cuts = 0;
        let mut height = 1;
        let records = if S::DESCRIPTION.has_leaf_blocks() { 250 } else { 45 };
        for number in 0..records {
            let key = key(u32::wrapping_mul(number, 2_654_435_761));
            let planned = planned::<S>(&case, number)?;
            let mut opened = chip.clone();
            let start = opened.counters().operations();
            drop(Index::<_, S>::open(&mut opened, &case.options, &mut ram).map_err(text)?);
            for operation in opened.counters().operations() - start.. {
                let mut chip = chip.clone();
                chip.cut_at(operation, Cut::Before);
                if let Ok(mut index) = Index::<_, S>::open(&mut chip, &case.options, &mut ram)
                    && index.insert(&key, &value(number, 0)).is_ok()
                {
                    break;
                }
                chip.restore_power();
                cuts += 1;
                let mut index =
                    Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                let before = index.flash().counters();
                let found = index.get(&key).map_err(text)?.is_some();
                let taken = index.flash().counters() - before;
                if !found {
                    within(taken, planned.get, &format!("a lookup among {number} records"))?;
                    height = height.max(index.statistics().height);
                    if index.statistics().height > planned.height {
                        return Err(format!(
                            "{number} records are higher than planned: {planned:?}"
                        ));
                    }
                }
            }
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            index.insert(&key, &value(number, 0)).map_err(text)?;
        }
        if cuts > 0 && height > 1 { Ok(()) } else { Err("no tree grew".into()) }
    }
}

#[test]
fn an_insert_that_was_cut_leaves_no_tree_higher_than_planned() {
    for_every_system(&CutInserts);
}

/// A flush that is cut at each of its chip operations. All pending changes belong below a full leaf.
struct CutFlushes;

/// Inserts records in descending order below `lower` until the write buffer is full, and flushes.
///
/// Returns the number of records.
fn flush_below<S: System>(index: &mut Index<'_, &mut Chip, S>, lower: u32) -> Option<u32> {
    let (start, mut records) = (index.flash().counters().operations(), 0);
    while records < 50 && index.flash().counters().operations() == start {
        records += 1;
        index.insert(&key(lower - records), &value(1, 0)).ok()?;
    }
    index.flush().ok()?;
    Some(records)
}

impl Check for CutFlushes {
    fn concerns(&self, system: &Description) -> bool {
        system.has_write_buffer()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL);
        case.options.write_buffer = 4;
        let case = case.suited::<S>();
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(case.profile);
        drop(Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?);
        let (mut cuts, mut lower) = (0, u32::MAX);
        // The fewer operations a flush takes, the more flushes are cut.
        for flush in 0..24 {
            if flush >= 4 && cuts > 25 {
                break;
            }
            let mut opened = chip.clone();
            let start = opened.counters().operations();
            drop(Index::<_, S>::open(&mut opened, &case.options, &mut ram).map_err(text)?);
            for operation in opened.counters().operations() - start.. {
                let mut chip = chip.clone();
                chip.cut_at(operation, Cut::Before);
                let mut index =
                    Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                if flush_below(&mut index, lower).is_some() {
                    break;
                }
                drop(index);
                chip.restore_power();
                cuts += 1;
                let index =
                    Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                let (statistics, records) = (index.statistics(), index.len());
                let planned = planned::<S>(&case, records)?;
                if statistics.height > planned.height
                    || statistics.valid_pages > planned.valid_pages
                {
                    return Err(format!("{records} records: {statistics:?}, {planned:?}"));
                }
            }
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            lower -= flush_below(&mut index, lower).ok_or("a flush without a cut failed")?;
        }
        if cuts > 25 { Ok(()) } else { Err(format!("{cuts} cuts")) }
    }
}

#[test]
fn a_flush_that_was_cut_leaves_no_more_nodes_than_planned() {
    for_every_system(&CutFlushes);
}
