//! Power is cut at every chip operation, and again while the FTL recovers.
//!
//! Torn pages may read differently each time. After a cut each logical page is old or new, and all
//! later mounts and reads agree on which.

use nandina::flash::{Capabilities, Geometry, Pairing, Profile};
use nandina_ftl::ftl::FtlError;
use nandina_ftl::hybrid::{Buffer, Merges};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY, Tear};

use crate::host::{Change, Device, Host, Memory, Outcome, Step, Which, expect_sound};
use crate::numbers::Numbers;
use crate::{ALL, BARE, BUFFERED, CHIP, FAILING, Share, is_full, seeds};

/// Changes before the first cut, and those that power is cut in.
const BEFORE: u32 = 250;
const CHANGES: u32 = 24;

/// Changes after each recovery.
const AFTER: u32 = 12;

/// The smallest buffer: one block over the block map.
const SMALLEST: Which = Which::OverBlock(Buffer::as_printed(1));

/// A chip in use, and what its host knows.
struct Start {
    chip: Chip,
    host: Host,
    numbers: Numbers,
}

fn start(profile: Profile, memory: &mut Memory, seed: u64, unstable: u32) -> Start {
    let mut chip = Chip::with_seed(profile, seed);
    chip.set_faults(Faults { unstable_pages: unstable, ..Faults::NONE });
    let (mut host, mut numbers) = (Host::new(memory.logical_pages), Numbers(seed));
    let work = |ftl: &mut dyn Device| (0..BEFORE).try_for_each(|_| host.change(ftl, &mut numbers));
    memory.with(&mut chip, true, work).unwrap();
    Start { chip, host, numbers }
}

/// Opens the FTL and makes changes: what power is cut in.
fn session(
    memory: &mut Memory,
    chip: &mut Chip,
    host: &mut Host,
    numbers: &mut Numbers,
    changes: u32,
) -> Outcome<()> {
    memory.with(chip, false, |ftl| (0..changes).try_for_each(|_| host.change(ftl, numbers)))
}

/// Writes that meet a switch, a partial and a full merge, between random changes.
fn merging_session(
    memory: &mut Memory,
    chip: &mut Chip,
    host: &mut Host,
    numbers: &mut Numbers,
) -> Outcome<()> {
    let pages = memory.logical_pages;
    // Logical blocks from the first to the last page, twice; the beginnings of two; pages in
    // others.
    let in_order = (0..24).chain(0..24).chain(7..11).chain(15..19).chain([29, 37, 45, 53, 1]);
    memory.with(chip, false, |ftl| {
        host.note(ftl);
        (0..CHANGES).try_for_each(|_| host.change(ftl, numbers))?;
        for (at, logical) in in_order.enumerate() {
            host.make(ftl, Change::Write(logical % pages, 1000 + at as u32))?;
            if at % 16 == 15 {
                ftl.idle(300)?;
                host.note(ftl);
            }
        }
        Ok(())
    })
}

/// What a cut can be in, where there are buffer blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Append,
    NewBufferBlock,
    FullBufferBlock,
    Victim,
    ConversionWithSwitch,
    ConversionWithPartialMerge,
    ConversionWithFullMerge,
    ConversionByAnIdleStep,
    PassedBuffer,
}

impl Event {
    const ALL: [Self; 9] = [
        Self::Append,
        Self::NewBufferBlock,
        Self::FullBufferBlock,
        Self::Victim,
        Self::ConversionWithSwitch,
        Self::ConversionWithPartialMerge,
        Self::ConversionWithFullMerge,
        Self::ConversionByAnIdleStep,
        Self::PassedBuffer,
    ];

    /// Whether it happened between two steps.
    fn is_between(self, before: &Step, after: &Step) -> bool {
        let pages = |step: &Step| step.buffered.iter().map(|it| it.1).sum::<u32>();
        let blocks = after.conversions.blocks - before.conversions.blocks;
        let converted = after.conversions.appended - before.conversions.appended;
        let full = u64::from(CHIP.geometry.pages_per_block);
        let has_grown = after.buffered.len() > before.buffered.len();
        match self {
            Self::Append => blocks == 0 && pages(after) > pages(before),
            Self::NewBufferBlock => blocks == 0 && has_grown,
            Self::FullBufferBlock => blocks == 1 && converted == full,
            Self::Victim => blocks == 1 && converted < full,
            Self::ConversionWithSwitch => blocks > 0 && after.merges.switch > before.merges.switch,
            Self::ConversionWithPartialMerge => {
                blocks > 0 && after.merges.partial > before.merges.partial
            }
            Self::ConversionWithFullMerge => blocks > 0 && after.merges.full > before.merges.full,
            Self::ConversionByAnIdleStep => after.conversions.ahead > before.conversions.ahead,
            Self::PassedBuffer => {
                blocks == 0 && !after.buffered.is_empty() && pages(after) == pages(before)
            }
        }
    }
}

/// What the cuts of a run were in.
#[derive(Default)]
struct Met {
    cuts: u32,
    merges: Merges,
    /// Cuts in each event.
    events: [u32; Event::ALL.len()],
    /// Cuts in mounts that met buffer blocks partly written, and second cuts in what settled them.
    partly_written: u32,
    second: u32,
    /// Programs and erases that failed in the whole session.
    failed: u64,
}

impl Met {
    fn add(&mut self, other: &Self) {
        self.cuts += other.cuts;
        self.events.iter_mut().zip(other.events).for_each(|(all, more)| *all += more);
        self.partly_written += other.partly_written;
        self.second += other.second;
        self.failed += other.failed;
    }
}

/// Operations of a call of `work`.
fn operations(chip: &Chip, work: impl FnOnce(&mut Chip)) -> u64 {
    let mut whole = chip.clone();
    work(&mut whole);
    whole.counters().operations() - chip.counters().operations()
}

/// Expects after cuts that nothing is lost, and that all mounts agree.
fn recover(
    memory: &mut Memory,
    chip: &mut Chip,
    host: &mut Host,
    numbers: &mut Numbers,
    what: &str,
) {
    chip.limit_operations(Some(200_000));
    let mut reopened = |work: &mut dyn FnMut(&mut dyn Device) -> Outcome<()>| {
        memory.with(chip, false, |ftl| work(ftl)).unwrap_or_else(|error| panic!("{what}: {error}"));
    };
    reopened(&mut |ftl| {
        host.verify(ftl, what)?;
        assert_eq!(ftl.statistics().unexplained_blocks, 0, "{what}");
        expect_sound(ftl, what)
    });
    // Nothing was written: another mount sees the same. The first change settles.
    reopened(&mut |ftl| {
        host.verify(ftl, what)?;
        host.change(ftl, numbers)?;
        host.verify(ftl, what)?;
        (0..AFTER).try_for_each(|_| host.change(ftl, numbers))?;
        host.verify(ftl, what)?;
        expect_sound(ftl, what)
    });
    reopened(&mut |ftl| host.verify(ftl, what));
}

/// Cuts power at a share of the operations of a session, in the middle of the first of each event,
/// and in each recovery.
fn cut_everywhere(profile: Profile, which: Which, unstable: u32, share: Share) -> Met {
    cut_beside(profile, which, Faults { unstable_pages: unstable, ..Faults::NONE }, share)
}

/// The same with these faults in the session. After the first cut no block fails any more.
fn cut_beside(profile: Profile, which: Which, faults: Faults, share: Share) -> Met {
    let unstable = faults.unstable_pages;
    let mut memory = Memory::new(&profile, which);
    let Start { mut chip, host, numbers: Numbers(seed) } =
        start(profile, &mut memory, 11, unstable);
    chip.set_faults(faults);
    (memory.merges, memory.conversions) = (Merges::default(), 0);
    let mut noted = host.clone();
    noted.steps = Some(Vec::new());
    let mut failed = 0;
    let all = operations(&chip, |chip| {
        merging_session(&mut memory, chip, &mut noted, &mut Numbers(seed)).unwrap();
        let faults = chip.fault_counters();
        failed = faults.program_failures + faults.erase_failures;
    });
    let mut met = Met { merges: memory.merges, failed, ..Met::default() };
    assert_eq!(memory.conversions > 0, which.is_buffered(), "{which:?}");
    let mount = operations(&chip, |chip| memory.with(chip, false, |_| Ok(())).unwrap());
    let mut choice = Numbers(unstable.into());
    let begun = chip.counters().operations();
    let steps: Vec<Step> = noted.steps.take().into_iter().flatten().collect();
    let ranges = |event: Event| {
        let pairs = steps.windows(2).filter(move |it| event.is_between(&it[0], &it[1]));
        pairs.map(|it| it[0].operations - begun..it[1].operations - begun)
    };
    let events = if which.is_buffered() { &Event::ALL[..] } else { &[] };
    let middles: Vec<u64> = events
        .iter()
        .filter_map(|&event| ranges(event).next())
        .map(|range| (range.start + range.end) / 2)
        .collect();
    let is_partly_written = steps[0].buffered.iter().any(|it| it.1 < CHIP.geometry.pages_per_block);
    // The mount only reads: of its operations a few suffice.
    let tried = |at: u64| {
        let is_mount = at < mount && at.is_multiple_of(64);
        is_mount || at >= mount && share.takes(at) || middles.contains(&at)
    };
    for operation in (0..all).filter(|&at| tried(at)) {
        let kinds = if is_full() { &Cut::ALL[..] } else { &[Cut::ALL[choice.below(5) as usize]] };
        for &cut in kinds {
            let what = format!("{which:?}, unstable {unstable}, {cut:?} at {operation}");
            let (mut cut_chip, mut after) = (chip.clone(), host.clone());
            cut_chip.cut_at(operation, cut);
            let mut random = Numbers(seed);
            let done = merging_session(&mut memory, &mut cut_chip, &mut after, &mut random);
            assert!(
                matches!(done, Err(FtlError::Device(ChipError::PowerLost))),
                "{what}: {done:?}"
            );
            cut_chip.restore_power();
            cut_chip.set_faults(Faults { unstable_pages: unstable, ..Faults::NONE });
            met.cuts += 1;
            met.partly_written += u32::from(operation < mount && is_partly_written);
            for (count, &event) in met.events.iter_mut().zip(events) {
                *count += u32::from(ranges(event).any(|range| range.contains(&operation)));
            }
            let (mut chip, mut host) = (cut_chip.clone(), after.clone());
            recover(&mut memory, &mut chip, &mut host, &mut Numbers(operation), &what);
            // A second cut, in what settles the first one.
            let recovery = operations(&cut_chip, |chip| {
                session(&mut memory, chip, &mut after.clone(), &mut Numbers(2), 1).unwrap();
            });
            let mount = operations(&cut_chip, |chip| memory.with(chip, false, |_| Ok(())).unwrap());
            let (mut again, mut after) = (cut_chip.clone(), after.clone());
            let at = mount + u64::from(choice.below((recovery - mount).max(1) as u32));
            let second = Cut::ALL[choice.below(5) as usize];
            again.cut_at(at.min(recovery - 1), second);
            let what = format!("{what}, then {second:?} at {at}");
            // What the mount before it found is what every later one finds.
            let mut seen = cut_chip.clone();
            let verified = memory.with(&mut seen, false, |ftl| after.verify(ftl, &what));
            verified.unwrap_or_else(|error| panic!("{what}: {error}"));
            let short = session(&mut memory, &mut again, &mut after, &mut Numbers(2), 1);
            assert!(short.is_err(), "{what}");
            again.restore_power();
            met.second += u32::from(which.is_buffered());
            recover(&mut memory, &mut again, &mut after, &mut Numbers(3), &what);
        }
    }
    met
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_and_a_second_in_the_recovery() {
    let mut all = Met::default();
    for which in ALL {
        // Buffered, each session takes several times as many operations.
        let share = Share::one_in(if which.is_buffered() { 61 } else { 23 });
        for unstable in [0, 1, 2] {
            let met = cut_everywhere(CHIP, which, unstable, share);
            all.add(&met);
            let met = met.merges;
            assert!(met.full > 0, "{which:?}: {met:?}");
            let in_parts = which.merges_in_parts();
            assert!(!in_parts || (met.switch > 0 && met.partial > 0), "{which:?}: {met:?}");
        }
    }
    let Met { cuts, partly_written, second, events, .. } = all;
    println!("{cuts} first cuts, {partly_written} in mounts, {second} second ones, {events:?}");
    assert!(cuts > 100, "only {cuts} cuts");
    assert!(partly_written > 10 && second > 50, "{partly_written}, {second}");
    for (event, count) in Event::ALL.into_iter().zip(events) {
        assert!(count > 0, "no cut in {event:?}: {events:?}");
    }
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_where_a_block_fails() {
    let mut all = Met::default();
    for which in ALL {
        let failing = Faults { program_failures: 500, erase_failures: 500, ..Faults::NONE };
        let faults = Faults { unstable_pages: 1, ..failing };
        let share = Share::one_in(if which.is_buffered() { 61 } else { 23 });
        all.add(&cut_beside(FAILING, which, faults, share));
    }
    let Met { cuts, failed, .. } = all;
    println!("{cuts} first cuts, {failed} blocks failed");
    assert!(cuts > 100 && failed >= 4, "{cuts} cuts, {failed} failures");
}

#[test]
fn cuts_on_the_smallest_chip_on_shared_cells_and_without_a_spare_area() {
    let pairing = Pairing::DistanceThree;
    let capabilities = Capabilities { pairing, ..CHIP.capabilities };
    let no_spare = Geometry { spare_bytes: 0, ..CHIP.geometry };
    let profiles = [TINY, Profile { capabilities, ..CHIP }, Profile { geometry: no_spare, ..CHIP }];
    let mut cuts = 0;
    for profile in profiles {
        for which in [Which::Block, Which::Bast(1), ALL[2], SMALLEST] {
            let which = match which {
                Which::Fast(_, rule) => Which::Fast(2, rule),
                which => which,
            };
            cuts += cut_everywhere(profile, which, 1, Share::one_in(41)).cuts;
        }
    }
    assert!(cuts > 40, "only {cuts} cuts");
}

#[test]
fn cuts_in_a_row_never_use_up_the_spare_blocks() {
    cut_in_a_row(&BARE);
}

#[test]
fn cuts_in_a_row_behind_a_buffer_never_use_up_the_spare_blocks() {
    cut_in_a_row(&BUFFERED);
}

/// Cuts power again and again, mostly in what settles the cut before.
fn cut_in_a_row(all: &[Which]) {
    for &which in all {
        for unstable in [0, 1, 2] {
            let mut memory = Memory::new(&CHIP, which);
            let Start { mut chip, mut host, mut numbers } = start(CHIP, &mut memory, 5, unstable);
            // The device is full.
            memory
                .with(&mut chip, false, |ftl| {
                    for logical in 0..host.pages.len() as u32 {
                        host.make(ftl, Change::Write(logical, 1 << 18))?;
                    }
                    Ok(())
                })
                .unwrap();
            for round in 0..if is_full() { 3000 } else { 60 } {
                let what = format!("{which:?}, unstable {unstable}, round {round}");
                // Shortly after the mount, so that most cuts are in what settles, or just behind.
                let mount = operations(&chip, |chip| memory.with(chip, false, |_| Ok(())).unwrap());
                let at = mount + u64::from(numbers.below(if round % 3 == 0 { 1500 } else { 420 }));
                chip.cut_at(at, Cut::ALL[numbers.below(5) as usize]);
                let done = session(&mut memory, &mut chip, &mut host, &mut numbers, 2000);
                let is_cut = matches!(done, Err(FtlError::Device(ChipError::PowerLost)));
                assert!(is_cut, "{what}: {done:?}");
                chip.restore_power();
                for mount in 0..2 {
                    let what = format!("{what}, mount {mount}");
                    let verified = memory.with(&mut chip, false, |ftl| host.verify(ftl, &what));
                    verified.unwrap_or_else(|error| panic!("{what}: {error}"));
                }
            }
            recover(&mut memory, &mut chip, &mut host, &mut numbers, "after all rounds");
        }
    }
}

/// Cuts power in one of the first changes of each session, where settling programs its lists.
///
/// Five such cuts in a row once left a list of suspects without room for the next one.
#[test]
fn cuts_in_the_lists_of_suspects_leave_room_for_the_next_one() {
    for which in BUFFERED {
        for unstable in [0, 1, 2] {
            let mut memory = Memory::new(&CHIP, which);
            let Start { mut chip, mut host, mut numbers } = start(CHIP, &mut memory, 7, unstable);
            for round in 0..if is_full() { 20_000 } else { 400 } {
                let what = format!("{which:?}, unstable {unstable}, round {round}");
                // Mostly in what settles; now and then in the work behind it.
                let within = if numbers.below(6) == 0 { 120 } else { 7 };
                chip.cut_at_change(
                    numbers.below(within).into(),
                    Cut::ALL[numbers.below(5) as usize],
                );
                let done = session(&mut memory, &mut chip, &mut host, &mut numbers, 2000);
                let is_cut = matches!(done, Err(FtlError::Device(ChipError::PowerLost)));
                assert!(is_cut, "{what}: {done:?}");
                chip.restore_power();
                let verified = memory.with(&mut chip, false, |ftl| host.verify(ftl, &what));
                verified.unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            recover(&mut memory, &mut chip, &mut host, &mut numbers, "after all rounds");
        }
    }
}

#[test]
fn a_format_that_is_cut_leaves_the_former_pages_or_no_ftl() {
    let (mut former, mut none) = (0, 0);
    for unstable in [0, 1] {
        let mut memory = Memory::new(&CHIP, ALL[2]);
        let Start { chip, host, .. } = start(CHIP, &mut memory, 6, unstable);
        let all = operations(&chip, |chip| memory.with(chip, true, |_| Ok(())).unwrap());
        // What is before are the reads of the mount.
        for operation in (0..all).rev().take(24) {
            for cut in Cut::ALL {
                let what = format!("{cut:?} at {operation}");
                let mut chip = chip.clone();
                chip.cut_at(operation, cut);
                assert!(memory.with(&mut chip, true, |_| Ok(())).is_err(), "{what}");
                chip.restore_power();
                let empty = Host::new(memory.logical_pages);
                let opened = memory.with(&mut chip, false, |ftl| {
                    let mut page = [0; 512];
                    let pages = 0..ftl.logical_pages();
                    let mut held = 0;
                    for logical in pages {
                        held += u32::from(ftl.read(logical, &mut page)?);
                    }
                    let mut host = if held > 0 { host.clone() } else { empty.clone() };
                    host.verify(ftl, &what)?;
                    Ok(held > 0)
                });
                match opened {
                    Ok(is_former) => former += u32::from(is_former),
                    Err(FtlError::Blank) => none += 1,
                    Err(error) => panic!("{what}: {error}"),
                }
                // It can be formatted now, and is empty.
                let mut empty = empty.clone();
                memory.with(&mut chip, true, |ftl| empty.verify(ftl, &what)).unwrap();
                memory.with(&mut chip, false, |ftl| empty.verify(ftl, &what)).unwrap();
            }
        }
    }
    println!("{former} former, {none} without an FTL");
    assert!(former > 0 && none > 20, "{former} former, {none} without an FTL");
}

/// Mounts as often as said and expects the same pages each time.
fn look(memory: &mut Memory, chip: &mut Chip, host: &mut Host, times: u32, what: &str) {
    for mount in 0..times {
        let what = format!("{what}, mount {mount}");
        let verified = memory.with(chip, false, |ftl| host.verify(ftl, &what));
        verified.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

#[test]
fn what_one_mount_decides_about_a_torn_page_every_later_mount_decides() {
    let mut second_cuts = 0;
    for seed in seeds(2000, 64) {
        let which = ALL[seed as usize % ALL.len()];
        let mut memory = Memory::new(&CHIP, which);
        let Start { mut chip, mut host, mut numbers } = start(CHIP, &mut memory, 100 + seed, 1);
        // The last operation of a change, a program most often, is torn.
        let changes = 1 + numbers.below(30);
        let last = operations(&chip, |chip| {
            session(&mut memory, chip, &mut host.clone(), &mut Numbers(seed), changes).unwrap();
        }) - 1;
        let tear = [Tear::Mixture, Tear::Ones, Tear::Unreadable][seed as usize % 3];
        chip.cut_at(last, Cut::Inside(tear));
        let done = session(&mut memory, &mut chip, &mut host, &mut Numbers(seed), changes);
        assert!(done.is_err(), "seed {seed}");
        chip.restore_power();
        let what = format!("{which:?}, seed {seed}, {tear:?} at {last}");
        look(&mut memory, &mut chip, &mut host, 1, &what);
        // Another page is written, which settles. Power is cut in what that programs and erases.
        let other = Change::Write(host.pages.len() as u32 - 1, 1 << 19);
        let mount = operations(&chip, |chip| memory.with(chip, false, |_| Ok(())).unwrap());
        let (mut settled, mut after) = (chip.clone(), host.clone());
        memory.with(&mut settled, false, |ftl| after.make(ftl, other)).unwrap();
        let all = settled.counters().operations() - chip.counters().operations();
        for _ in 0..4 {
            let (mut chip, mut host) = (chip.clone(), host.clone());
            let at = all - 1 - u64::from(numbers.below((all - mount).min(40) as u32));
            chip.cut_at(at, Cut::Before);
            assert!(memory.with(&mut chip, false, |ftl| host.make(ftl, other)).is_err());
            chip.restore_power();
            look(&mut memory, &mut chip, &mut host, 4, &format!("{what}, again at {at}"));
            second_cuts += 1;
        }
        look(&mut memory, &mut settled, &mut after, 4, &format!("{what}, settled"));
    }
    println!("{second_cuts} second cuts");
    assert!(second_cuts >= 240, "only {second_cuts} second cuts");
}
