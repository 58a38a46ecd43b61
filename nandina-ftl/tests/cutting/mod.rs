//! Cuts of power in the work of an FTL, of whichever kind: the loops that all its checks share.
//!
//! Each kind of FTL has a host that knows what its pages must read as. A loop cuts the work of the
//! host short, and expects of the next mounts that each page is old or new, and that all of them
//! agree on which.

#![allow(dead_code, reason = "each program of checks uses a part of it")]

use nandina::flash::BlockNumber;
use nandina::flash::profile::Profile;
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::FtlError;
use nandina_sim::{Chip, ChipError, Cut, Faults, Tear};

use crate::chips::is_full;
use crate::numbers::Numbers;

pub type Outcome<T> = Result<T, FtlError<ChipError>>;

/// Changes before the first cut.
const BEFORE: u32 = 250;

/// Changes after each recovery.
const AFTER: u32 = 12;

/// Operations in which a recovery has to end.
const RECOVERY_MAX: u64 = 200_000;

/// An FTL that is open, and its host.
pub trait Open {
    fn ftl(&mut self) -> &mut dyn LogicalPages<Error = FtlError<ChipError>>;

    /// Makes a random change.
    fn change(&mut self, numbers: &mut Numbers) -> Outcome<()>;

    /// Writes a logical page, with the number of its content.
    fn write(&mut self, logical: u32, content: u32) -> Outcome<()>;

    /// Expects that each page reads as is known, or as the change that was cut makes it.
    fn verify(&mut self, what: &str) -> Outcome<()>;

    /// Expects that the FTL is sound.
    fn expect_sound(&mut self, what: &str) -> Outcome<()>;
}

/// What is done with an FTL that is open.
pub type UseOf<'w> = dyn FnMut(&mut dyn Open) -> Outcome<()> + 'w;

/// An FTL and its RAM, as the loops of cuts use it.
pub trait Subject {
    /// What its host knows.
    type Host: Clone;

    /// A host that knows that every page is a hole.
    fn new_host(&self) -> Self::Host;

    /// Calls `work` with the FTL on the chip, formatted or opened.
    fn with(
        &mut self,
        chip: &mut Chip,
        host: &mut Self::Host,
        is_new: bool,
        work: &mut UseOf<'_>,
    ) -> Outcome<()>;

    /// Opens the FTL and makes changes: what power is cut in.
    fn session(
        &mut self,
        chip: &mut Chip,
        host: &mut Self::Host,
        numbers: &mut Numbers,
        changes: u32,
    ) -> Outcome<()> {
        let mut all = |open: &mut dyn Open| (0..changes).try_for_each(|_| open.change(numbers));
        self.with(chip, host, false, &mut all)
    }

    /// Opens the FTL and expects each page as it must be.
    fn verify(&mut self, chip: &mut Chip, host: &mut Self::Host, what: &str) {
        let verified = self.with(chip, host, false, &mut |open| open.verify(what));
        verified.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

/// A chip in use, and what its host knows.
pub struct Start<H> {
    pub chip: Chip,
    pub host: H,
    pub numbers: Numbers,
}

/// Formats a chip with these faults, and makes changes.
pub fn start<S: Subject>(
    profile: Profile,
    subject: &mut S,
    seed: u64,
    faults: Faults,
) -> Start<S::Host> {
    let mut chip = Chip::with_seed(profile, seed);
    chip.set_faults(faults);
    let (mut host, mut numbers) = (subject.new_host(), Numbers(seed));
    let mut work = |open: &mut dyn Open| (0..BEFORE).try_for_each(|_| open.change(&mut numbers));
    subject.with(&mut chip, &mut host, true, &mut work).unwrap();
    Start { chip, host, numbers }
}

/// A chip with so many unstable pages, and no other fault.
pub fn unstable(pages: u32) -> Faults {
    Faults { unstable_pages: pages, ..Faults::NONE }
}

/// Operations of a call of `work`, on a copy of the chip.
pub fn operations(chip: &Chip, work: impl FnOnce(&mut Chip)) -> u64 {
    let mut whole = chip.clone();
    work(&mut whole);
    whole.counters().operations() - chip.counters().operations()
}

/// Operations of a mount.
pub fn operations_of_mount<S: Subject>(subject: &mut S, chip: &Chip) -> u64 {
    let mut host = subject.new_host();
    operations(chip, |chip| subject.with(chip, &mut host, false, &mut |_| Ok(())).unwrap())
}

/// Expects that work ended because power was lost.
pub fn expect_cut(done: Outcome<()>, what: &str) {
    assert!(matches!(done, Err(FtlError::Device(ChipError::PowerLost))), "{what}: {done:?}");
}

/// Expects after cuts that nothing is lost, and that all mounts agree.
pub fn recover<S: Subject>(
    subject: &mut S,
    chip: &mut Chip,
    host: &mut S::Host,
    numbers: &mut Numbers,
    what: &str,
) {
    chip.limit_operations(Some(RECOVERY_MAX));
    let mut looks = |open: &mut dyn Open| {
        open.verify(what)?;
        assert_eq!(open.ftl().statistics().unexplained_blocks, 0, "{what}");
        open.expect_sound(what)
    };
    // The first mount writes nothing: another one sees the same. Its first change settles.
    let mut settles = |open: &mut dyn Open| {
        open.verify(what)?;
        open.change(numbers)?;
        open.verify(what)?;
        (0..AFTER).try_for_each(|_| open.change(numbers))?;
        open.verify(what)?;
        open.expect_sound(what)
    };
    let mounts: [&mut UseOf<'_>; 3] = [&mut looks, &mut settles, &mut |open| open.verify(what)];
    for (mount, work) in mounts.into_iter().enumerate() {
        let done = subject.with(chip, host, false, work);
        done.unwrap_or_else(|error| panic!("{what}, mount {mount}: {error}"));
    }
}

/// What a loop of cuts has done.
#[derive(Default)]
pub struct Cuts {
    /// The operations of the first cuts.
    pub first: Vec<u64>,
    /// Second cuts, in what settles the first ones.
    pub second: u32,
    /// Operations of the mount before the work.
    pub mount: u64,
}

/// Work of an FTL, from a mount on.
pub type Work<'w, S> =
    &'w dyn Fn(&mut S, &mut Chip, &mut <S as Subject>::Host, &mut Numbers) -> Outcome<()>;

/// Cuts power in `work`, at the operations behind the mount that `takes` names.
///
/// Each cut is followed by a second one in what settles it. After the first one no block fails any
/// more, and so many pages of the chip are unstable.
pub fn cut_everywhere<S: Subject>(
    subject: &mut S,
    begun: &Start<S::Host>,
    unstable_pages: u32,
    work: Work<'_, S>,
    takes: &dyn Fn(u64) -> bool,
    name: &str,
) -> Cuts {
    let Start { chip, host, numbers: Numbers(seed) } = begun;
    let all = operations(chip, |chip| {
        work(subject, chip, &mut host.clone(), &mut Numbers(*seed)).unwrap();
    });
    let mut cuts = Cuts { mount: operations_of_mount(subject, chip), ..Cuts::default() };
    let mut choice = Numbers(unstable_pages.into());
    // The mount only reads: of its operations a few suffice.
    let is_tried = |at: u64| if at < cuts.mount { at.is_multiple_of(64) } else { takes(at) };
    let tried: Vec<u64> = (0..all).filter(|&at| is_tried(at)).collect();
    for operation in tried {
        let kinds = if is_full() { &Cut::ALL[..] } else { &[Cut::ALL[choice.below(5) as usize]] };
        for &cut in kinds {
            let what = format!("{name}, unstable {unstable_pages}, {cut:?} at {operation}");
            let (mut chip, mut host) = (chip.clone(), host.clone());
            chip.cut_at(operation, cut);
            expect_cut(work(subject, &mut chip, &mut host, &mut Numbers(*seed)), &what);
            chip.restore_power();
            chip.set_faults(unstable(unstable_pages));
            cuts.first.push(operation);
            let (mut after, mut known) = (chip.clone(), host.clone());
            recover(subject, &mut after, &mut known, &mut Numbers(operation), &what);
            // What the mount before a second cut finds is what every later one finds.
            subject.verify(&mut chip.clone(), &mut host, &what);
            cuts.second += cut_again(subject, &chip, &host, &mut choice, &what);
        }
    }
    cuts
}

/// Cuts power in the programs and erases that settle a cut. Returns how often.
fn cut_again<S: Subject>(
    subject: &mut S,
    chip: &Chip,
    host: &S::Host,
    choice: &mut Numbers,
    what: &str,
) -> u32 {
    let mut whole = chip.clone();
    subject.session(&mut whole, &mut host.clone(), &mut Numbers(2), 1).unwrap();
    let changes = whole.counters().changes() - chip.counters().changes();
    // A change may have nothing to do, where there is nothing to settle.
    let times = if changes == 0 {
        0
    } else if is_full() {
        4
    } else {
        1
    };
    for _ in 0..times {
        let (mut chip, mut host) = (chip.clone(), host.clone());
        let (at, cut) = (choice.below(changes as u32), Cut::ALL[choice.below(5) as usize]);
        chip.cut_at_change(at.into(), cut);
        let what = format!("{what}, then {cut:?} at {at} of {changes}");
        let short = subject.session(&mut chip, &mut host, &mut Numbers(2), 1);
        assert!(short.is_err(), "{what}");
        chip.restore_power();
        recover(subject, &mut chip, &mut host, &mut Numbers(3), &what);
    }
    times
}

/// Before which program or erase of a session a cut in a row comes at most, by its round.
///
/// Reads leave the chip as it is: a cut in one is as a cut before the next program.
pub type Within = fn(u32, &mut Numbers) -> u32;

/// Cuts power again and again, mostly in what settles the cut before.
pub fn cut_in_a_row<S: Subject>(
    subject: &mut S,
    begun: Start<S::Host>,
    within: Within,
    rounds: u32,
    name: &str,
) {
    let Start { mut chip, mut host, mut numbers } = begun;
    for round in 0..rounds {
        let what = format!("{name}, round {round}");
        let most = within(round, &mut numbers);
        chip.cut_at_change(numbers.below(most).into(), Cut::ALL[numbers.below(5) as usize]);
        expect_cut(subject.session(&mut chip, &mut host, &mut numbers, 2000), &what);
        chip.restore_power();
        look(subject, &mut chip, &mut host, 2, &what);
    }
    recover(subject, &mut chip, &mut host, &mut numbers, "after all rounds");
}

/// Writes every logical page.
pub fn fill<S: Subject>(subject: &mut S, begun: &mut Start<S::Host>) {
    let mut write_all = |open: &mut dyn Open| {
        let pages = open.ftl().logical_pages();
        (0..pages).try_for_each(|logical| open.write(logical, 1 << 18))
    };
    subject.with(&mut begun.chip, &mut begun.host, false, &mut write_all).unwrap();
}

/// Mounts as often as said and expects the same pages each time.
pub fn look<S: Subject>(
    subject: &mut S,
    chip: &mut Chip,
    host: &mut S::Host,
    times: u32,
    what: &str,
) {
    for mount in 0..times {
        subject.verify(chip, host, &format!("{what}, mount {mount}"));
    }
}

/// Makes changes of which the last operation, a program most often, is torn.
pub fn tear_last<S: Subject>(subject: &mut S, begun: &mut Start<S::Host>, seed: u64, what: &str) {
    let changes = 1 + begun.numbers.below(30);
    let last = operations(&begun.chip, |chip| {
        subject.session(chip, &mut begun.host.clone(), &mut Numbers(seed), changes).unwrap();
    }) - 1;
    let tear = [Tear::Mixture, Tear::Ones, Tear::Unreadable][seed as usize % 3];
    begun.chip.cut_at(last, Cut::Inside(tear));
    let done = subject.session(&mut begun.chip, &mut begun.host, &mut Numbers(seed), changes);
    assert!(done.is_err(), "{what}");
    begun.chip.restore_power();
}

/// Cuts power in the changes that settle, behind a cut that one mount has decided about.
///
/// Returns how often.
pub fn cut_what_settles<S: Subject>(subject: &mut S, begun: Start<S::Host>, what: &str) -> u32 {
    let Start { mut chip, mut host, mut numbers } = begun;
    look(subject, &mut chip, &mut host, 1, what);
    // Another page is written, which settles. Power is cut before one of the last operations.
    let mut write_last = |open: &mut dyn Open| {
        let last = open.ftl().logical_pages() - 1;
        open.write(last, 1 << 19)
    };
    let mount = operations_of_mount(subject, &chip);
    let (mut settled, mut after) = (chip.clone(), host.clone());
    subject.with(&mut settled, &mut after, false, &mut write_last).unwrap();
    let all = settled.counters().operations() - chip.counters().operations();
    for _ in 0..4 {
        let (mut chip, mut host) = (chip.clone(), host.clone());
        let at = all - 1 - u64::from(numbers.below((all - mount).min(40) as u32));
        chip.cut_at(at, Cut::Before);
        assert!(subject.with(&mut chip, &mut host, false, &mut write_last).is_err(), "{what}");
        chip.restore_power();
        look(subject, &mut chip, &mut host, 4, &format!("{what}, again at {at}"));
    }
    look(subject, &mut settled, &mut after, 4, &format!("{what}, settled"));
    4
}

/// Cuts power in the programs and erases of a format, over pages that were written before.
pub fn cut_format<S: Subject>(subject: &mut S, begun: &Start<S::Host>, name: &str) -> (u32, u32) {
    let (mut former, mut none) = (0, 0);
    let Start { chip, host, .. } = begun;
    let format = |subject: &mut S, chip: &mut Chip| {
        let mut empty = subject.new_host();
        subject.with(chip, &mut empty, true, &mut |_| Ok(()))
    };
    let mut whole = chip.clone();
    format(subject, &mut whole).unwrap();
    for at in 0..whole.counters().changes() - chip.counters().changes() {
        for cut in Cut::ALL {
            let what = format!("{name}, {cut:?} at {at}");
            let mut chip = chip.clone();
            chip.cut_at_change(at, cut);
            assert!(format(subject, &mut chip).is_err(), "{what}");
            chip.restore_power();
            let (mut empty, mut held) = (subject.new_host(), 0);
            let opened = subject.with(&mut chip, &mut empty, false, &mut |open| {
                let mut page = vec![0; open.ftl().page_bytes()];
                for logical in 0..open.ftl().logical_pages() {
                    held += u32::from(open.ftl().read(logical, &mut page)?);
                }
                Ok(())
            });
            match opened {
                Ok(()) => {
                    let mut known = if held > 0 { host.clone() } else { empty.clone() };
                    subject.verify(&mut chip, &mut known, &what);
                    former += u32::from(held > 0);
                }
                Err(FtlError::Blank) => none += 1,
                Err(error) => panic!("{what}: {error}"),
            }
            // It can be formatted now, and is empty.
            let formatted =
                subject.with(&mut chip, &mut empty, true, &mut |open| open.verify(&what));
            formatted.unwrap_or_else(|error| panic!("{what}: {error}"));
            subject.verify(&mut chip, &mut empty, &what);
        }
    }
    (former, none)
}

/// Blocks of a chip that have failed.
pub fn lost(chip: &Chip) -> usize {
    let blocks = (0..chip.profile().geometry.blocks).map(BlockNumber);
    blocks.filter(|&block| chip.is_lost(block)).count()
}

/// Makes changes on a chip with these faults, and expects no loss.
///
/// A session has `few` changes while blocks may fail, of which two may before the next look, and
/// `many` afterwards. Faults end when as many blocks have failed as the chip is said to lose.
pub fn live<S: Subject>(
    subject: &mut S,
    (profile, seed, faults): (Profile, u64, Faults),
    (few, many): (u32, u32),
    name: &str,
) -> Chip {
    let (mut chip, mut numbers) = (Chip::with_seed(profile, seed), Numbers(seed));
    let mut host = subject.new_host();
    subject.with(&mut chip, &mut host, true, &mut |_| Ok(())).unwrap();
    let most = profile.capabilities.bad_blocks_max(profile.geometry.blocks) as usize;
    for session in 0..8 {
        let what = format!("{name}, seed {seed}, session {session}");
        let fails = session < 6 && lost(&chip) < most;
        let limited = Faults { program_failures: 0, erase_failures: 0, ..faults };
        chip.set_faults(if fails { faults } else { limited });
        let changes = if fails { few } else { many };
        if session % 2 == 1 {
            chip.cut_at(300 + u64::from(numbers.below(900)), Cut::ALL[session / 2 % 5]);
        }
        let mut work = |open: &mut dyn Open| -> Outcome<()> {
            for _ in 0..changes {
                match open.change(&mut numbers) {
                    // The next call mounts again.
                    Err(FtlError::Device(ChipError::GaveUp)) => open.verify(&what)?,
                    done => done?,
                }
            }
            open.verify(&what)?;
            open.expect_sound(&what)
        };
        match subject.with(&mut chip, &mut host, false, &mut work) {
            Ok(()) | Err(FtlError::Device(ChipError::PowerLost | ChipError::GaveUp)) => {}
            // More blocks have failed in one session than the chip was said to lose at all.
            Err(FtlError::WornOut { .. }) if lost(&chip) > most => return chip,
            Err(error) => panic!("{what}: {error}"),
        }
        chip.restore_power();
        chip.set_faults(Faults { device_errors: 0, ..limited });
        subject.verify(&mut chip, &mut host, &what);
    }
    chip
}

/// Cuts power in a row in the first programs and erases of sessions, while erases and programs fail.
///
/// A seed ends when more blocks have failed than the chip is said to lose.
pub fn cut_while_blocks_fail<S: Subject>(
    subject: &mut S,
    profile: Profile,
    seeds: impl IntoIterator<Item = u64>,
    name: &str,
) {
    let most = profile.capabilities.bad_blocks_max(profile.geometry.blocks) as usize;
    let (mut lives, mut cuts, mut failed) = (0, 0, 0);
    for seed in seeds {
        lives += 1;
        let Start { mut chip, mut host, mut numbers } =
            start(profile, subject, 300 + seed, unstable(1));
        for round in 0..40 {
            let what = format!("{name}, seed {seed}, round {round}");
            let (program_failures, erase_failures) =
                if lost(&chip) < most { (60, 12) } else { (0, 0) };
            chip.set_faults(Faults { program_failures, erase_failures, ..unstable(1) });
            chip.cut_at_change(numbers.below(9).into(), Cut::ALL[numbers.below(5) as usize]);
            let done = subject.session(&mut chip, &mut host, &mut numbers, 2000);
            if lost(&chip) > most {
                break;
            }
            expect_cut(done, &what);
            cuts += 1;
            chip.restore_power();
            subject.verify(&mut chip, &mut host, &what);
        }
        failed += lost(&chip);
    }
    assert!(cuts >= 10 * lives && failed >= lives, "{name}: {cuts} cuts, {failed} blocks failed");
}
