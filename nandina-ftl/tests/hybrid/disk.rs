//! An index in place (`btree`) on a hybrid FTL on raw NAND, through cuts.

use std::collections::BTreeMap;

use nandina::flash::{Flash, Geometry, Profile};
use nandina::store::BTree;
use nandina::{Index, Options, key, plan, ram_needed as index_ram_needed};
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::Disk;
use nandina_ftl::hybrid::{
    Buffer, Fast, Hybrid, Policy, SequentialRule, Transit, logical_pages_max, ram_needed,
    write_cost,
};
use nandina_sim::{Chip, Cut, Faults, TINY};

use crate::is_full;
use crate::numbers::Numbers;

const NAND: Profile =
    Profile { geometry: Geometry { blocks: 40, pages_per_block: 16, ..TINY.geometry }, ..TINY };

const FAST: Fast = Fast { log_blocks: 4, sequential: SequentialRule::FirstPage };

const GROUP: u32 = 16;

type Content = BTreeMap<u32, u64>;

/// Opens the disk on the chip and calls `work`, which ends if power does.
fn with_disk<P: Policy, T>(
    chip: &mut Chip,
    is_new: bool,
    policy: P,
    work: impl FnOnce(&mut Disk<Hybrid<'_, &mut Chip, P>>) -> Option<T>,
) -> Option<T> {
    let pages = logical_pages_max(&NAND.geometry, &NAND.capabilities, &policy);
    let mut ram = vec![0; ram_needed(&NAND.geometry, &NAND.capabilities, &policy, pages)];
    let make = if is_new { Hybrid::format } else { Hybrid::open };
    let ftl = make(chip, policy, pages, &mut ram).ok()?;
    work(&mut Disk::new(ftl, GROUP).unwrap())
}

/// A change of the index, and how often each merge was met.
#[derive(Default)]
struct Run {
    pending: Option<(u32, Option<u64>)>,
    full: u64,
    partial: u64,
    converted: u64,
}

/// Changes the index and `content`, until power fails.
fn change<P: Policy>(
    chip: &mut Chip,
    policy: P,
    content: &mut Content,
    numbers: &mut Numbers,
    most: u32,
) -> Run {
    let options = Options::new(4, 8);
    let mut run = Run::default();
    with_disk(chip, false, policy, |disk| {
        let mut ram = vec![0; index_ram_needed::<BTree>(&disk.geometry(), &options)];
        let mut index = Index::<_, BTree>::open(&mut *disk, &options, &mut ram).ok()?;
        let mut work = || {
            for _ in 0..most {
                let (number, value) = (numbers.below(900), u64::from(numbers.below(1 << 30)));
                let value = (numbers.below(4) > 0).then_some(value);
                run.pending = Some((number, value));
                match value {
                    Some(value) => {
                        index.insert(&key::from_u32(number), &value.to_le_bytes()).ok()?;
                        content.insert(number, value);
                    }
                    None => {
                        index.remove(&key::from_u32(number)).ok()?;
                        content.remove(&number);
                    }
                }
                run.pending = None;
            }
            Some(())
        };
        let _ = work();
        let merges = disk.ftl().merges();
        (run.full, run.partial) = (merges.full, merges.partial);
        run.converted = disk.ftl().conversions().blocks;
        Some(())
    });
    run
}

/// Expects the content in the index, where one record may be as `pending` makes it.
fn expect_content<P: Policy>(
    chip: &mut Chip,
    policy: P,
    content: &mut Content,
    pending: Option<(u32, Option<u64>)>,
    what: &str,
) {
    let options = Options::new(4, 8);
    let found = with_disk(chip, false, policy, |disk| {
        let mut ram = vec![0; index_ram_needed::<BTree>(&disk.geometry(), &options)];
        let mut index = Index::<_, BTree>::open(&mut *disk, &options, &mut ram).unwrap();
        let mut found = Content::new();
        let mut range = index.range(..).unwrap();
        while let Some((key, value)) = range.next().unwrap() {
            let number = u32::from_be_bytes(key.try_into().unwrap());
            found.insert(number, u64::from_le_bytes(value.try_into().unwrap()));
        }
        assert_eq!(disk.ftl().check().unwrap(), Ok(()), "{what}");
        Some(found)
    });
    let found = found.unwrap_or_else(|| panic!("{what}: the FTL cannot be opened"));
    if found != *content
        && let Some((number, value)) = pending
    {
        match value {
            Some(value) => content.insert(number, value),
            None => content.remove(&number),
        };
    }
    assert!(found == *content, "{what}: {} records, {} expected", found.len(), content.len());
}

/// Cuts power again and again below an index. Returns the cuts, and all that was merged.
fn live<P: Policy>(policy: P) -> (u32, Run) {
    let (mut chip, mut numbers) = (Chip::with_seed(NAND, 3), Numbers(9));
    chip.set_faults(Faults { unstable_pages: 1, ..Faults::NONE });
    let options = Options::new(4, 8);
    with_disk(&mut chip, true, policy, |disk| {
        let mut ram = vec![0; index_ram_needed::<BTree>(&disk.geometry(), &options)];
        Index::<_, BTree>::format(disk, &options, &mut ram).unwrap();
        Some(())
    })
    .unwrap();
    let mut content = Content::new();
    let run = change(&mut chip, policy, &mut content, &mut numbers, 1500);
    assert_eq!(run.pending, None);
    expect_content(&mut chip, policy, &mut content, None, "before any cut");
    assert!(content.len() > 500, "{} records", content.len());
    let (mut cuts, mut all) = (0, Run::default());
    for round in 0..if is_full() { 2000 } else { 30 } {
        let at = 1200 + u64::from(numbers.below(3000));
        let cut = Cut::ALL[numbers.below(5) as usize];
        chip.cut_at(at, cut);
        let run = change(&mut chip, policy, &mut content, &mut numbers, 1000);
        (all.full, all.partial) = (all.full + run.full, all.partial + run.partial);
        all.converted += run.converted;
        cuts += u32::from(!chip.has_power());
        chip.restore_power();
        let what = format!("round {round}, {cut:?} at {at}");
        expect_content(&mut chip, policy, &mut content, run.pending, &what);
    }
    let Run { full, partial, converted, .. } = all;
    println!("{cuts} cuts, {full} full and {partial} partial merges, {converted} conversions");
    (cuts, all)
}

#[test]
fn an_index_in_place_works_on_a_hybrid_ftl_through_cuts() {
    let (cuts, Run { full, partial, .. }) = live(FAST);
    assert!(cuts > 20 && full > 100 && partial > 20, "{cuts} cuts, {full}, {partial} merges");
}

#[test]
fn an_index_in_place_works_behind_buffer_blocks_through_cuts() {
    for buffer in [Buffer::as_printed(3), Buffer::improved(4, 400, 16)] {
        let (cuts, Run { converted, .. }) = live(Transit { over: FAST, buffer });
        assert!(cuts > 20 && converted > 50, "{buffer:?}: {cuts} cuts, {converted} conversions");
    }
}

/// Inserts records, with idle steps of the index in between or without.
///
/// Returns the conversions in idle steps, the others, and the most programs of one insert.
fn inserts_with_steps(buffer: Buffer, rests: bool) -> (u64, u64, u64) {
    let policy = Transit { over: FAST, buffer };
    let (mut chip, mut numbers, options) = (Chip::new(NAND), Numbers(5), Options::new(4, 8));
    let mut content = BTreeMap::new();
    with_disk(&mut chip, true, policy, |disk| {
        disk.ftl().set_wear_levelling(false);
        let mut ram = vec![0; index_ram_needed::<BTree>(&disk.geometry(), &options)];
        let mut index = Index::<_, BTree>::format(&mut *disk, &options, &mut ram).unwrap();
        let least = index.gc_step_least();
        let (geometry, capabilities) = (NAND.geometry, NAND.capabilities);
        let above = index.flash();
        let plan = plan::<BTree>(&above.geometry(), &above.capabilities(), &options, 900).unwrap();
        let below = logical_pages_max(&geometry, &capabilities, &policy);
        let below = write_cost(&geometry, &capabilities, &policy, below);
        let most = below.after_idle_steps(plan.change.programs).unwrap().programs;
        let mut longest = 0;
        for turn in 0..2_000u64 {
            let key = key::from_u32(numbers.below(900));
            let before = index.flash().inspect().statistics().programmed;
            index.insert(&key, &turn.to_le_bytes()).unwrap();
            content.insert(key, turn.to_le_bytes());
            longest = longest.max(index.flash().inspect().statistics().programmed - before);
            let mut steps = 0;
            while rests && index.gc_step(least).unwrap().more {
                steps += 1;
                assert!(steps < 1_000, "the steps come to no end");
            }
        }
        for (key, value) in &content {
            assert_eq!(index.get(key).unwrap(), Some(&value[..]));
        }
        assert!(!rests || longest <= most, "{longest} programs, at most {most}");
        let done = disk.ftl().conversions();
        Some((done.ahead, done.blocks - done.ahead, longest))
    })
    .unwrap()
}

/// So no insert waits for one.
#[test]
fn idle_steps_of_an_index_convert_buffer_blocks_ahead() {
    let apart = Buffer { ahead: 1, ..Buffer::as_printed(4) };
    // Where neighbours share a buffer block, too.
    for buffer in [apart, Buffer { blocks: 1, neighbours: 3, ..apart }] {
        let (none, others, waits) = inserts_with_steps(buffer, false);
        assert!(none == 0 && others > 20, "{none}, {others}");
        let (ahead, others, rested) = inserts_with_steps(buffer, true);
        println!("the longest insert: {waits} programs, {rested} with {ahead} conversions ahead");
        assert!(ahead > 20 && others == 0, "{ahead}, {others}");
        assert!(2 * rested < waits, "{rested} programs of {waits}");
    }
}
