//! A mount from a checkpoint finds the same index as a mount without one.
//!
//! This holds after any cut, with failing blocks and with damaged checkpoints; and it reads less.

use nandina::flash::{Geometry, PageNumber, Profile};
use nandina::node::PageLayout;
use nandina::store::Description;
use nandina::{BadOption, Cost, Index, OpenError, RelocationMode, System, WriteError, plan};
use nandina_sim::{Chip, ChipError, Counters, Cut, Faults, TINY};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::{
    Case, Check, LONG, Model, Outcome, compare, end, for_every_system, for_one_system_in, key,
    seed, text, value,
};

pub fn case(blocks: u32, every: u32, moves: RelocationMode, buffers: Option<usize>) -> Case {
    let mut case = Case::new(Profile { geometry: Geometry { blocks, ..TINY.geometry }, ..TINY });
    case.options.checkpoints = Some(every);
    case.options.moves = moves;
    case.options.page_buffers = buffers;
    case
}

/// A case in which a checkpoint takes several blocks: they are small and many.
fn of_several_blocks(every: u32) -> Case {
    let geometry = Geometry { page_bytes: 240, spare_bytes: 64, pages_per_block: 4, blocks: 200 };
    let mut case = Case::new(Profile { geometry, ..TINY });
    case.options.checkpoints = Some(every);
    case
}

/// Cuts power in a session, or behind it. Returns the most changes of the session.
///
/// Where sessions end by themselves, which writes a checkpoint, some come to their end; most
/// operations of a mount without one are reads there.
fn cut_session<S: System>(
    chip: &mut Chip,
    random: &mut ChaCha8Rng,
    (cut, until): (Cut, u64),
) -> u32 {
    let at = random.random_range(0..until);
    if S::DESCRIPTION.checkpoints_at_close {
        chip.cut_at_change(at / 2, cut);
        20
    } else {
        chip.cut_at(at, cut);
        150
    }
}

/// Makes changes until power fails or `most` are done. Then it ends the session.
///
/// `model` follows. Returns the change that was cut.
fn change<S: System>(
    chip: &mut Chip,
    case: &Case,
    ram: &mut [u8],
    random: &mut ChaCha8Rng,
    model: &mut Model,
    most: u32,
) -> Result<Option<Model>, String> {
    let mut index = match Index::<_, S>::open(chip, &case.options, ram) {
        Ok(index) => index,
        Err(OpenError::Device(ChipError::PowerLost)) => return Ok(None),
        Err(error) => return Err(format!("opening: {error:?}")),
    };
    for turn in 0..most {
        let number = random.random_range(0..150);
        let mut change = None;
        let result = match random.random_range(0..12) {
            0 => index.checkpoint().map(drop),
            1 => index.gc_step(60).map(drop),
            2..5 => {
                change = Some(None);
                index.remove(&key(number)).map(drop)
            }
            _ => {
                let new = value(number, turn + random.random_range(0..1_000_000));
                change = Some(Some(new));
                index.insert(&key(number), &new).map(drop)
            }
        };
        let apply = |model: &mut Model| match change {
            Some(Some(new)) => drop(model.insert(key(number).to_vec(), new.to_vec())),
            Some(None) => drop(model.remove(&key(number)[..])),
            None => {}
        };
        match result {
            Ok(_) => apply(model),
            Err(WriteError::Full { .. }) => {}
            Err(WriteError::Device(ChipError::PowerLost)) => {
                let mut next = model.clone();
                apply(&mut next);
                return Ok(Some(next));
            }
            Err(error) => return Err(format!("{error:?}")),
        }
    }
    end(index);
    Ok(None)
}

/// Opens the index after a cut and compares it with the permitted states.
///
/// These are `model` and, if a change was cut, the model after that change.
pub fn recover<S: System>(
    chip: &mut Chip,
    case: &Case,
    ram: &mut [u8],
    model: &mut Model,
    cut: Option<Model>,
) -> Result<bool, String> {
    let mut index = Index::<_, S>::open(chip, &case.options, ram)
        .map_err(|error| format!("opening after the cut: {error:?}"))?;
    let statistics = index.statistics();
    if statistics.unexplained_pages > 0 {
        return Err("a cut is said to be more than a cut".into());
    }
    if let Err(old) = compare(&mut index, model) {
        let Some(new) = cut else { return Err(old) };
        compare(&mut index, &new).map_err(|new| format!("neither old ({old}) nor new ({new})"))?;
        *model = new;
    }
    Ok(statistics.from_checkpoint)
}

struct CutAnywhere;

impl Check for CutAnywhere {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let (mut from_checkpoints, mut sessions) = (0, 0);
        let cases = [
            case(16, 1, RelocationMode::Together, None),
            case(16, 2, RelocationMode::Alone, None),
            case(14, 3, RelocationMode::Together, Some(2)),
            case(24, 5, RelocationMode::Alone, Some(6)),
            case(30, 12, RelocationMode::Together, None),
            of_several_blocks(1),
            of_several_blocks(4),
            of_several_blocks(12),
        ];
        for (run, case) in cases.into_iter().enumerate() {
            let case = case.suited::<S>();
            let mut random = ChaCha8Rng::seed_from_u64(seed() + run as u64);
            let mut chip = Chip::with_seed(case.profile, seed());
            let mut ram = case.ram::<S>();
            drop(Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?);
            let mut model = Model::new();
            for session in 0..250 {
                let cut = Cut::ALL[random.random_range(0..Cut::ALL.len())];
                let most = cut_session::<S>(&mut chip, &mut random, (cut, 200));
                let ram = &mut ram;
                let result = change::<S>(&mut chip, &case, ram, &mut random, &mut model, most)
                    .and_then(|cut| {
                        chip.restore_power();
                        recover::<S>(&mut chip, &case, ram, &mut model, cut)
                    });
                let at = |what| format!("run {run}, session {session}, {cut:?}: {what}");
                from_checkpoints += u32::from(result.map_err(at)?);
                sessions += 1;
            }
        }
        println!("{}: {from_checkpoints} of {sessions} from a checkpoint", S::DESCRIPTION.key);
        let share = if S::DESCRIPTION.checkpoints_at_close { 8 } else { 2 };
        if share * from_checkpoints < sessions {
            return Err(format!("only {from_checkpoints} of {sessions} mounts had a checkpoint"));
        }
        Ok(())
    }
}

#[test]
fn a_mount_from_a_checkpoint_is_right_after_any_cut() {
    for_one_system_in(3, &CutAnywhere);
}

struct FailingBlocks;

impl Check for FailingBlocks {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints && system.collects()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let (mut failed, mut from_checkpoints, mut from_blocks) = (0, 0, 0);
        for run in 0..30 {
            let every = 1 + run / 2 % 4;
            let mut case = match run % 3 {
                0 => of_several_blocks(every),
                _ => case(60, every, RelocationMode::Together, None),
            }
            .suited::<S>();
            case.profile.capabilities.bad_blocks_per_mille = 250;
            case.options.verify = run % 2 == 0;
            let mut random = ChaCha8Rng::seed_from_u64(1000 * seed() + u64::from(run));
            let mut chip = Chip::with_seed(case.profile, seed() + u64::from(run));
            let mut ram = case.ram::<S>();
            drop(Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?);
            chip.set_faults(Faults {
                program_failures: 300,
                erase_failures: 40,
                ..Faults::default()
            });
            let mut model = Model::new();
            for session in 0..60 {
                let cut = Cut::ALL[random.random_range(0..Cut::ALL.len())];
                let most = cut_session::<S>(&mut chip, &mut random, (cut, 300));
                let ram = &mut ram;
                let result = change::<S>(&mut chip, &case, ram, &mut random, &mut model, most)
                    .and_then(|cut| {
                        chip.restore_power();
                        recover::<S>(&mut chip, &case, ram, &mut model, cut)
                    });
                match result {
                    Ok(true) => from_checkpoints += 1,
                    Ok(false) => from_blocks += 1,
                    Err(what) if what.contains("WornOut") => break,
                    Err(what) => {
                        return Err(format!("run {run}, session {session}, {cut:?}: {what}"));
                    }
                }
            }
            failed += chip.fault_counters().injected();
        }
        println!(
            "{}: {failed} programs and erases failed, {from_checkpoints} mounts from checkpoints, {from_blocks} not",
            S::DESCRIPTION.key
        );
        if failed < 100 || from_checkpoints < 100 || from_blocks < 10 {
            return Err("too few failures, or mounts of one kind".into());
        }
        Ok(())
    }
}

#[test]
fn blocks_may_fail_where_checkpoints_go() {
    for_one_system_in(3, &FailingBlocks);
}

struct Damaged;

impl Check for Damaged {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        damage::<S>(&case(24, 3, RelocationMode::Together, None))?;
        damage::<S>(&of_several_blocks(3))
    }
}

/// Damages each page of checkpoints by itself, and all of them.
fn damage<S: System>(case: &Case) -> Outcome {
    let case = &case.suited::<S>();
    let mut chip = Chip::with_seed(case.profile, seed());
    let mut ram = case.ram::<S>();
    drop(Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?);
    let (mut model, mut random) = (Model::new(), ChaCha8Rng::seed_from_u64(seed()));
    change::<S>(&mut chip, case, &mut ram, &mut random, &mut model, 1500)?;
    let layout = PageLayout::new(
        case.profile.geometry.page_bytes as usize,
        case.profile.geometry.spare_bytes as usize,
    );
    let mut pages = Vec::new();
    for page in (0..case.profile.geometry.pages()).map(PageNumber) {
        let mut is_of_checkpoints = false;
        chip.clone().corrupt_page(page, |main, spare| {
            let mut frame = [&*main, &*spare].concat();
            frame.truncate(layout.frame_bytes());
            let found = layout.open(&frame);
            is_of_checkpoints = found.is_ok_and(|header| {
                let ends = S::DESCRIPTION.replaces() && header.ends_session();
                header.lowest == 0 || header.is_of_checkpoint() || ends
            });
        });
        if is_of_checkpoints {
            pages.push(page);
        }
    }
    let (mut with, mut without) = (0, 0);
    // Each alone, then all of them.
    for damaged in pages.chunks(1).chain([&pages[..]]) {
        let mut chip = chip.clone();
        for &page in damaged {
            chip.corrupt_page(page, |main, _| main[20] ^= 4);
        }
        let (mut model, ram) = (model.clone(), &mut ram);
        let from = recover::<S>(&mut chip, case, ram, &mut model, None)
            .map_err(|what| format!("{damaged:?} of {pages:?}: {what}"))?;
        if from {
            with += 1
        } else {
            without += 1
        }
        // The index continues from there, with a new checkpoint.
        change::<S>(&mut chip, case, ram, &mut random, &mut model, 200)?;
        if !recover::<S>(&mut chip, case, ram, &mut model, None)? {
            return Err(format!("{damaged:?}: no checkpoint was written after it"));
        }
    }
    println!(
        "{}: {} pages, {with} with a checkpoint, {without} without",
        S::DESCRIPTION.key,
        pages.len()
    );
    // Where a checkpoint ends a session, only the newest one counts.
    let some = with > 0 || S::DESCRIPTION.checkpoints_at_close;
    if some && without > 0 { Ok(()) } else { Err(format!("{with} with, {without} without")) }
}

#[test]
fn a_damaged_checkpoint_costs_time_and_no_record() {
    for_one_system_in(3, &Damaged);
}

struct Costs;

impl Check for Costs {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut written = 0;
        // Of fewer records, whose nodes have few.
        let cases = [
            (case(32, 1, RelocationMode::Together, None), false, 400),
            (case(32, 2, RelocationMode::Alone, None), true, 400),
            (case(32, 12, RelocationMode::Together, None), false, 400),
            (of_several_blocks(1), true, 100),
            (of_several_blocks(5), false, 100),
        ];
        for (case, verify, records) in cases {
            let mut case = case.suited::<S>();
            case.options.verify = verify;
            let Profile { geometry, capabilities, .. } = case.profile;
            let plan = plan::<S>(&geometry, &capabilities, &case.options, records).map_err(text)?;
            let spent = |before: Counters, after: Counters| Cost {
                reads: after.reads - before.reads,
                programs: after.programs + after.rewrites - before.programs - before.rewrites,
                erases: after.erases - before.erases,
            };
            let within = |what: &str, cost: Cost, most: Cost| {
                let holds = cost.reads <= most.reads
                    && cost.programs <= most.programs
                    && cost.erases <= most.erases;
                if holds { Ok(()) } else { Err(format!("{what}: {cost:?}, planned {most:?}")) }
            };
            let mut chip = Chip::with_seed(case.profile, seed());
            let mut ram = case.ram::<S>();
            drop(Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?);
            let mut random = ChaCha8Rng::seed_from_u64(seed());
            for session in 0..40 {
                let before = chip.counters();
                let mut index =
                    Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                within("opening", spent(before, index.flash().counters()), plan.open)?;
                for turn in 0..80 {
                    let before = index.flash().counters();
                    let number = random.random_range(0..records);
                    match index.insert(&key(number), &value(number, random.random())) {
                        Ok(_) | Err(WriteError::Full { .. }) => {}
                        Err(error) => return Err(text(error)),
                    }
                    let cost = spent(before, index.flash().counters());
                    within("a change", cost, plan.change)?;
                    if turn % 10 == 0 {
                        let idle = index.gc_step(plan.gc_step_least).map_err(text)?;
                        if idle.operations > plan.gc_step_least {
                            return Err(format!("{idle:?}, budget {}", plan.gc_step_least));
                        }
                    }
                    written += cost.programs;
                }
                // Every other session ends by a checkpoint, where only its end writes one.
                if session % 2 == 0 {
                    end(index);
                }
            }
        }
        if written > 10_000 { Ok(()) } else { Err(format!("only {written} programs")) }
    }
}

#[test]
fn no_call_costs_more_than_planned_with_checkpoints() {
    for_every_system(&Costs);
}

/// An index that is opened with a mapping table of another size.
struct OtherTable;

impl Check for OtherTable {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints && system.has_mapping_table()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG);
        case.options.checkpoints = Some(2);
        let mut chip = Chip::with_seed(case.profile, seed());
        let mut ram = case.ram::<S>();
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        let records = |version| (0..150).map(move |number| (number, value(number * 7, version)));
        for version in 0..4 {
            for (number, value) in records(version) {
                index.insert(&key(number), &value).map_err(text)?;
            }
        }
        let mapped = index.statistics().mappings;
        index.checkpoint().map_err(text)?;
        index.close();
        let usual = case.options.mapping_bytes;
        let sizes = [usual, 2 * usual, usual, usual - 8, usual / 2, usual];
        let mut fell_back = 0;
        for mapping_bytes in sizes {
            case.options.mapping_bytes = mapping_bytes;
            let mut ram = case.ram::<S>();
            let mut index =
                Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
            for (number, value) in records(3) {
                if index.get(&key(number)).map_err(text)? != Some(&value[..]) {
                    return Err(format!("{mapping_bytes} bytes: record {number}"));
                }
            }
            let statistics = index.statistics();
            fell_back += u32::from(!statistics.from_checkpoint);
            if statistics.mappings != mapped {
                return Err(format!("{mapping_bytes} bytes: {mapped} mappings, {statistics:?}"));
            }
            index.close();
        }
        if fell_back == 3 { Ok(()) } else { Err(format!("{fell_back} mounts without it")) }
    }
}

#[test]
fn a_checkpoint_of_another_mapping_table_is_not_used() {
    for_every_system(&OtherTable);
}

/// Opens a copy of the chip now and then, as after a cut, while a tree grows and its nodes move.
///
/// After a split of an inner node its page still holds records that belong to the upper half.
struct Growing;

impl Check for Growing {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints && !system.checkpoints_at_close
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = case(120, 12, RelocationMode::Together, None);
        case.options.mapping_bytes = 1024;
        let case = case.suited::<S>();
        let (mut chip, mut ram) = (Chip::new(case.profile), case.ram::<S>());
        let mut ram_of_copy = ram.clone();
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        let (mut high, mut from_checkpoints) = (0, 0);
        let mut random = ChaCha8Rng::seed_from_u64(seed());
        for step in 0..6_000 {
            // Every third key comes again and again in a few leaves.
            let number = if step % 3 == 0 { step % 200 } else { random.random_range(0..100_000) };
            match index.insert(&key(number), &value(number, step)) {
                Ok(_) => {}
                Err(WriteError::Full { .. }) => break,
                Err(error) => return Err(text(error)),
            }
            if step % 7 > 0 {
                continue;
            }
            let mut copy = Chip::clone(index.flash());
            let mut opened =
                Index::<_, S>::open(&mut copy, &case.options, &mut ram_of_copy).map_err(text)?;
            from_checkpoints += u32::from(opened.statistics().from_checkpoint);
            high = high.max(opened.statistics().height);
            let mut wrong = Vec::new();
            opened.check(|violation| wrong.push(violation)).map_err(text)?;
            if !wrong.is_empty() {
                return Err(format!("after {step} changes: {wrong:?}"));
            }
        }
        // An index of leaves only has no inner nodes to split.
        let high_least = if S::DESCRIPTION.has_inner_nodes() { 3 } else { 2 };
        if high < high_least || from_checkpoints < 20 {
            return Err(format!("height {high}, {from_checkpoints} mounts from checkpoints"));
        }
        Ok(())
    }
}

/// A checkpoint stores mappings that a smaller table has no room for.
struct SmallerTable;

impl Check for SmallerTable {
    fn concerns(&self, system: &Description) -> bool {
        system.checkpoints && system.has_mapping_table()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG);
        // So small that a checkpoint takes as many pages with any smaller one.
        let usual = 64;
        case.options.checkpoints = Some(2);
        case.options.mapping_bytes = usual;
        let mut chip = Chip::with_seed(case.profile, seed());
        let mut ram = case.ram::<S>();
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in 0..150 {
            index.insert(&key(number), &value(number, 0)).map_err(text)?;
        }
        let mapped = index.statistics().mappings;
        index.checkpoint().map_err(text)?;
        index.close();
        let (mut refused, mut opened) = (0, 0);
        for mapping_bytes in (0..=usual).step_by(4) {
            case.options.mapping_bytes = mapping_bytes;
            let (mut chip, mut ram) = (chip.clone(), case.ram::<S>());
            let mut index = match Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
                Err(OpenError::BadOption { reason: BadOption::TableTooSmall }) => {
                    refused += 1;
                    continue;
                }
                opened => opened.map_err(text)?,
            };
            opened += 1;
            for number in 0..150 {
                if index.get(&key(number)).map_err(text)? != Some(&value(number, 0)[..]) {
                    return Err(format!("{mapping_bytes} of {usual} bytes: record {number}"));
                }
            }
        }
        if refused > 0 && opened > 0 { Ok(()) } else { Err(format!("{mapped} mappings")) }
    }
}

#[test]
fn a_mount_from_a_checkpoint_drops_no_mapping_that_the_table_has_no_room_for() {
    for_every_system(&SmallerTable);
}

#[test]
fn a_mount_from_a_checkpoint_knows_to_which_node_moved_records_belong() {
    for_every_system(&Growing);
}

/// Both anchors were erased to void their checkpoints; one of the erases did nothing and said that
/// it had. With a larger table again, a mount continued from a checkpoint that was void.
#[test]
fn an_anchor_whose_erase_silently_did_nothing_leads_to_no_void_checkpoint() {
    crate::torn::assert_survives("swarm/vm/seed 300000555 changed narrow");
}
