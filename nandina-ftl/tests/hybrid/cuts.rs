//! Power is cut at every chip operation, and again while the FTL recovers.
//!
//! Torn pages may read differently each time. After a cut each logical page is old or new, and all
//! later mounts and reads agree on which.

use nandina::flash::{Capabilities, Geometry, Pairing, Profile};
use nandina_ftl::hybrid::{Buffer, Merges, SequentialRule};
use nandina_sim::{Chip, Faults, TINY};

use crate::cutting::{
    Within, cut_everywhere, cut_format, cut_in_a_row, cut_what_settles, cut_while_blocks_fail,
    fill, start, tear_last, unstable,
};
use crate::host::{Change, Device, Host, Memory, Outcome, Step, Which};
use crate::numbers::Numbers;
use crate::{ALL, BARE, BUFFERED, CHIP, FAILING, Share, is_full, seeds};

/// Random changes that power is cut in.
const CHANGES: u32 = 24;

/// The smallest buffer: one block over the block map.
const SMALLEST: Which = Which::OverBlock(Buffer::as_printed(1));

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
    /// A tree trims the page of a node that has vanished.
    TrimmedPage,
}

impl Event {
    const ALL: [Self; 10] = [
        Self::Append,
        Self::NewBufferBlock,
        Self::FullBufferBlock,
        Self::Victim,
        Self::ConversionWithSwitch,
        Self::ConversionWithPartialMerge,
        Self::ConversionWithFullMerge,
        Self::ConversionByAnIdleStep,
        Self::PassedBuffer,
        Self::TrimmedPage,
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
            Self::TrimmedPage => after.trims > before.trims,
            Self::PassedBuffer => {
                blocks == 0 && !after.buffered.is_empty() && pages(after) == pages(before)
            }
        }
    }
}

/// What the cuts of a run were in.
#[derive(Default)]
struct Met {
    cuts: usize,
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

/// Cuts power at a share of the operations of a session, in the middle of the first of each event,
/// and in each recovery.
fn cut_session(profile: Profile, which: Which, pages: u32, share: Share) -> Met {
    cut_beside(profile, which, unstable(pages), share)
}

/// The same with these faults in the session. After the first cut no block fails any more.
fn cut_beside(profile: Profile, which: Which, faults: Faults, share: Share) -> Met {
    let mut memory = Memory::new(&profile, which);
    let mut begun = start(profile, &mut memory, 11, unstable(faults.unstable_pages));
    begun.chip.set_faults(faults);
    (memory.merges, memory.conversions) = (Merges::default(), 0);
    let mut whole = begun.chip.clone();
    let mut noted = begun.host.clone();
    noted.steps = Some(Vec::new());
    let Numbers(seed) = begun.numbers;
    merging_session(&mut memory, &mut whole, &mut noted, &mut Numbers(seed)).unwrap();
    let failed = whole.fault_counters().program_failures + whole.fault_counters().erase_failures;
    let mut met = Met { merges: memory.merges, failed, ..Met::default() };
    assert_eq!(memory.conversions > 0, which.is_buffered(), "{which:?}");
    let before = begun.chip.counters().operations();
    let steps: Vec<Step> = noted.steps.take().into_iter().flatten().collect();
    let ranges = |event: Event| {
        let pairs = steps.windows(2).filter(move |it| event.is_between(&it[0], &it[1]));
        pairs.map(|it| it[0].operations - before..it[1].operations - before)
    };
    let events = if which.is_buffered() { &Event::ALL[..] } else { &[] };
    let middles: Vec<u64> = events
        .iter()
        .filter_map(|&event| ranges(event).next())
        .map(|range| (range.start + range.end) / 2)
        .collect();
    let takes = |at: u64| share.takes(at) || middles.contains(&at);
    let name = format!("{which:?}");
    let pages = faults.unstable_pages;
    let cuts = cut_everywhere(&mut memory, &begun, pages, &merging_session, &takes, &name);
    let is_partly_written = steps[0].buffered.iter().any(|it| it.1 < CHIP.geometry.pages_per_block);
    for operation in &cuts.first {
        met.partly_written += u32::from(*operation < cuts.mount && is_partly_written);
        for (count, &event) in met.events.iter_mut().zip(events) {
            *count += u32::from(ranges(event).any(|range| range.contains(operation)));
        }
    }
    met.cuts = cuts.first.len();
    met.second = if which.is_buffered() { cuts.second } else { 0 };
    met
}

#[test]
fn each_page_is_old_or_new_after_a_cut_anywhere_and_a_second_in_the_recovery() {
    let mut all = Met::default();
    for which in ALL {
        // Buffered, each session takes several times as many operations.
        let share = Share::one_in(if which.is_buffered() { 61 } else { 23 });
        for pages in [0, 1, 2] {
            let met = cut_session(CHIP, which, pages, share);
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
            cuts += cut_session(profile, which, 1, Share::one_in(41)).cuts;
        }
    }
    assert!(cuts > 40, "only {cuts} cuts");
}

/// Buffers whose idle steps convert ahead, over each policy; in the last, neighbours share blocks.
pub const RESTING: [Which; 3] = {
    let apart = Buffer { ahead: 1, ..Buffer::as_printed(2) };
    let shared = Buffer { neighbours: 3, ..apart };
    [
        Which::OverBlock(apart),
        Which::OverBast(2, apart),
        Which::OverFast(3, SequentialRule::FirstPage, shared),
    ]
};

/// Idle steps, and then more page writes in a few logical blocks than their buffer blocks have room
/// for: the last ones pass the buffer.
pub fn pass_after_rest(
    ftl: &mut dyn Device,
    host: &mut Host,
    numbers: &mut Numbers,
) -> Outcome<()> {
    let (pages, passed) = (host.pages.len() as u32, ftl.conversions().passed);
    while ftl.idle(300)?.more {}
    host.note(ftl);
    for at in 0..24 {
        let logical = match at % 4 {
            0 => numbers.below(pages),
            _ => numbers.below(12),
        };
        host.make(ftl, Change::Write(logical, 3000 + at))?;
    }
    assert!(ftl.conversions().passed > passed, "no page passes the buffer");
    Ok(())
}

fn resting_session(
    memory: &mut Memory,
    chip: &mut Chip,
    host: &mut Host,
    numbers: &mut Numbers,
) -> Outcome<()> {
    memory.with(chip, false, |ftl| (0..2).try_for_each(|_| pass_after_rest(ftl, host, numbers)))
}

#[test]
fn each_page_is_old_or_new_after_a_cut_where_pages_pass_after_idle_steps() {
    let mut cuts_in_passes = 0;
    for which in RESTING {
        for pages in [0, 1, 2] {
            let mut memory = Memory::new(&CHIP, which);
            let begun = start(CHIP, &mut memory, 12, unstable(pages));
            let mut noted = begun.host.clone();
            noted.steps = Some(Vec::new());
            let Numbers(seed) = begun.numbers;
            let (mut whole, before) = (begun.chip.clone(), begun.chip.counters().operations());
            resting_session(&mut memory, &mut whole, &mut noted, &mut Numbers(seed)).unwrap();
            let steps: Vec<Step> = noted.steps.take().into_iter().flatten().collect();
            let passes: Vec<_> = steps
                .windows(2)
                .filter(|it| it[1].conversions.passed > it[0].conversions.passed)
                .map(|it| it[0].operations - before..it[1].operations - before)
                .collect();
            let is_in_pass = |at: &u64| passes.iter().any(|range| range.contains(at));
            let share = Share::one_in(23);
            let takes = |at: u64| share.takes(at) || passes.iter().any(|it| it.start == at);
            let name = format!("{which:?}");
            let work = &resting_session;
            let cuts = cut_everywhere(&mut memory, &begun, pages, work, &takes, &name);
            cuts_in_passes += cuts.first.iter().filter(|at| is_in_pass(at)).count();
        }
    }
    println!("{cuts_in_passes} cuts in writes that pass the buffer");
    assert!(cuts_in_passes > 50, "only {cuts_in_passes}");
}

#[test]
fn cuts_in_a_row_never_use_up_the_spare_blocks() {
    fill_and_cut_in_a_row(&BARE);
}

#[test]
fn cuts_in_a_row_behind_a_buffer_never_use_up_the_spare_blocks() {
    fill_and_cut_in_a_row(&BUFFERED);
}

/// Cuts power again and again, mostly in what settles the cut before.
fn fill_and_cut_in_a_row(all: &[Which]) {
    for &which in all {
        for pages in [0, 1, 2] {
            let mut memory = Memory::new(&CHIP, which);
            let mut begun = start(CHIP, &mut memory, 5, unstable(pages));
            fill(&mut memory, &mut begun);
            // Shortly after the mount, so that most cuts are in what settles, or just behind.
            let within: Within = |round, _| if round % 3 == 0 { 750 } else { 210 };
            let rounds = if is_full() { 3000 } else { 60 };
            let name = format!("{which:?}, unstable {pages}");
            cut_in_a_row(&mut memory, begun, within, rounds, &name);
        }
    }
}

/// Cuts power in one of the first changes of each session, where settling programs its lists.
///
/// Five such cuts in a row once left a list of suspects without room for the next one.
#[test]
fn cuts_in_the_lists_of_suspects_leave_room_for_the_next_one() {
    for which in BUFFERED {
        for pages in [0, 1, 2] {
            let mut memory = Memory::new(&CHIP, which);
            let begun = start(CHIP, &mut memory, 7, unstable(pages));
            // Mostly in what settles; now and then in the work behind it.
            let within: Within = |_, numbers| if numbers.below(6) == 0 { 120 } else { 7 };
            let rounds = if is_full() { 20_000 } else { 400 };
            let name = format!("{which:?}, unstable {pages}");
            cut_in_a_row(&mut memory, begun, within, rounds, &name);
        }
    }
}

#[test]
fn cuts_in_a_row_while_blocks_fail_lose_nothing() {
    for which in ALL {
        let mut memory = Memory::new(&FAILING, which);
        cut_while_blocks_fail(&mut memory, FAILING, seeds(300, 3), &format!("{which:?}"));
    }
}

#[test]
fn a_format_that_is_cut_leaves_the_former_pages_or_no_ftl() {
    let (mut former, mut none) = (0, 0);
    for pages in [0, 1] {
        let mut memory = Memory::new(&CHIP, ALL[2]);
        let begun = start(CHIP, &mut memory, 6, unstable(pages));
        let found = cut_format(&mut memory, &begun, &format!("unstable {pages}"));
        (former, none) = (former + found.0, none + found.1);
    }
    println!("{former} former, {none} without an FTL");
    assert!(former > 0 && none > 20, "{former} former, {none} without an FTL");
}

#[test]
fn what_one_mount_decides_about_a_torn_page_every_later_mount_decides() {
    let mut second_cuts = 0;
    for seed in seeds(2000, 64) {
        let which = ALL[seed as usize % ALL.len()];
        let mut memory = Memory::new(&CHIP, which);
        let mut begun = start(CHIP, &mut memory, 100 + seed, unstable(1));
        let what = format!("{which:?}, seed {seed}");
        tear_last(&mut memory, &mut begun, seed, &what);
        second_cuts += cut_what_settles(&mut memory, begun, &what);
    }
    println!("{second_cuts} second cuts");
    assert!(second_cuts >= 240, "only {second_cuts} second cuts");
}
