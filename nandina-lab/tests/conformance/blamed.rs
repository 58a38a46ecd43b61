//! Errors that name pages: whichever page is damaged, the error names that page.

use nandina::flash::PageNumber;
use nandina::node::{HEADER_BYTES, PageLayout};
use nandina::{Idle, Index, OpenError, Options, ReadError, System, WriteError};
use nandina_sim::Chip;

use crate::harness::*;

/// How a page is damaged.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Harm {
    /// Its checksum does not match.
    Checksum,
    /// Its node claims more records than fit, with a matching checksum.
    Count,
}

/// Damages each page of an index in turn, and then reads all its content.
struct Blamed(Harm);

const RECORDS: u32 = 900;

impl Blamed {
    /// Damages `page`. Returns `false` if this harm does not apply to it.
    fn damage<S: System>(&self, chip: &mut Chip, page: PageNumber, height: u8) -> bool {
        let layout = PageLayout::new(512, 64);
        let mut damaged = false;
        chip.corrupt_page(page, |main, spare| {
            let mut frame = [&*main, &spare[..HEADER_BYTES]].concat();
            match (self.0, layout.open(&frame)) {
                (Harm::Checksum, _) => spare[8] ^= 1,
                (Harm::Count, Ok(header)) if header.lowest > 0 && has_count::<S>() => {
                    let extent = extent_in::<S>(&layout, &frame, header.lowest, height);
                    frame[extent.start..extent.start + 2].fill(0xFF);
                    layout.reseal(&mut frame, &header);
                    main.copy_from_slice(&frame[..512]);
                    spare[..HEADER_BYTES].copy_from_slice(&frame[512..]);
                }
                (Harm::Count, _) => return,
            }
            damaged = true;
        });
        damaged
    }

    /// Reads everything in every way. Returns how many errors named `damaged`, or the first that
    /// named another page.
    fn ask<S: System>(
        index: &mut Index<'_, &mut Chip, S>,
        damaged: PageNumber,
    ) -> Result<u32, String> {
        let mut named = 0;
        let mut blame = |call: &str, page: PageNumber, reason| {
            named += 1;
            is_blamed::<S>(page, damaged).map_err(|what| format!("{call}: {what}: {reason}"))
        };
        for number in 0..RECORDS {
            match index.get(&key(number)) {
                Err(ReadError::Corrupt { page, reason }) => blame("get", page, reason)?,
                Err(error) => return Err(text(error)),
                Ok(_) => {}
            }
        }
        for counted in [
            index.range(..).and_then(|range| range.count()),
            index.range_down(..).and_then(|range| range.count()),
            index.check(|_| {}).map(|()| 0),
        ] {
            match counted {
                Err(ReadError::Corrupt { page, reason }) => blame("range or check", page, reason)?,
                Err(error) => return Err(text(error)),
                Ok(_) => {}
            }
        }
        Ok(named)
    }

    /// Changes every record, and lets collection work. Returns as [`Self::ask`] does.
    ///
    /// Each change has a chip of its own, so that none finds what another one wrote.
    fn change<S: System>(
        chip: &Chip,
        (options, ram): (&Options, &mut [u8]),
        damaged: PageNumber,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<u32, String> {
        let mut named = 0;
        for number in numbers {
            for call in ["insert", "remove", "gc_step"] {
                let mut chip = chip.clone();
                let Ok(mut index) = Index::<_, S>::open(&mut chip, options, ram) else { break };
                let changed = match call {
                    "insert" => index.insert(&key(number), &value(number, 1 << 20)).map(drop),
                    "remove" => index.remove(&key(number)).map(drop),
                    _ => index.gc_step(index.gc_step_least()).map(|_: Idle| ()),
                };
                match changed {
                    Err(WriteError::Corrupt { page, reason }) => {
                        named += 1;
                        is_blamed::<S>(page, damaged)
                            .map_err(|what| format!("{call}: {what}: {reason}"))?;
                    }
                    Err(error) => return Err(format!("{call}: {error}")),
                    Ok(()) => {}
                }
            }
        }
        Ok(named)
    }
}

/// Whether the number of records in a node is covered by the checksum of its page alone.
const fn has_count<S: System>() -> bool {
    !S::DESCRIPTION.appends() && !S::DESCRIPTION.has_leaf_blocks()
}

/// Whether an error may name `page` if `damaged` is damaged.
///
/// Of a logical page that is kept twice, both copies are unreadable.
fn is_blamed<S: System>(page: PageNumber, damaged: PageNumber) -> Outcome {
    let is_twin = S::DESCRIPTION.replaces() && page.0 / 2 == damaged.0 / 2;
    if page == damaged || is_twin { Ok(()) } else { Err(format!("{page} is blamed")) }
}

impl Check for Blamed {
    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL.with_blocks(40)).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut image = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut image, &case.options, &mut ram).map_err(text)?;
        for turn in 0..2 * RECORDS {
            let number = turn * 7 % RECORDS;
            index.insert(&key(number), &value(number, turn)).map_err(text)?;
        }
        let height = index.statistics().height;
        // So that no mount copies a page that is damaged.
        index.close();
        let (mut opens, mut reads, mut flagged, mut harmed, mut changes) = (0, 0, 0, 0, 0);
        let share = Share::one_in(50);
        for damaged in (0..case.profile.geometry.pages()).map(PageNumber) {
            let mut chip = image.clone();
            let mut is_harmed = self.damage::<S>(&mut chip, damaged, height);
            if S::DESCRIPTION.replaces() {
                // Damage both copies of a logical page, as one of them would be enough to read it.
                is_harmed |= self.damage::<S>(&mut chip, PageNumber(damaged.0 ^ 1), height);
            }
            if !is_harmed {
                continue;
            }
            harmed += 1;
            let at = |what: String| format!("{:?} in {damaged}: {what}", self.0);
            let numbers = (0..RECORDS).step_by(9).filter(|at| share.takes((*at).into()));
            let room = (&case.options, &mut ram[..]);
            changes += Self::change::<S>(&chip, room, damaged, numbers).map_err(at)?;
            match Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
                Ok(mut index) => {
                    flagged += u32::from(index.statistics().unexplained_pages > 0);
                    reads += Self::ask(&mut index, damaged).map_err(at)?;
                }
                Err(OpenError::Corrupt { page, reason }) => {
                    opens += 1;
                    is_blamed::<S>(page, damaged)
                        .map_err(|what| at(format!("open: {what}: {reason}")))?;
                }
                Err(error) => return Err(at(text(error))),
            }
        }
        println!(
            "{}, {:?}: {harmed} pages, {opens} not opened, {flagged} flagged, {reads} reads and \
             {changes} changes failed",
            S::DESCRIPTION.key,
            self.0
        );
        // Where the newest page of a range is lost, an older one is read: the mount flags that.
        let counts_newest = S::DESCRIPTION.newest_counts();
        let reported = if counts_newest { reads.max(flagged) } else { reads };
        // Only the first page of a block is damaged where a leaf is one.
        let reported = if S::DESCRIPTION.has_leaf_blocks() { 4 * opens } else { reported };
        if harmed == 0 || reported > 100 { Ok(()) } else { Err("too few errors".into()) }
    }
}

#[test]
fn an_error_names_the_page_that_is_damaged_and_not_the_root() {
    for harm in [Harm::Checksum, Harm::Count] {
        for_one_system_in(7, &Blamed(harm));
    }
}

/// Does the same for the pairs of a secondary index, and with all leaves damaged at once.
struct BlamedPairs;

impl Check for BlamedPairs {
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL);
        case.options.key_bytes = 8;
        case.options.value_bytes = 0;
        let case = case.suited::<S>();
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(case.profile);
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        // Leaves that take a page nearly alone are few.
        for number in 0..if S::NODES.is_some_and(|nodes| nodes.sharing.packs()) { 600 } else { 300 }
        {
            let mut pairs = index.pairs(4).map_err(text)?;
            pairs.insert(&key(number % 30), &key(number)).map_err(text)?;
        }
        index.close();
        let layout = PageLayout::new(512, 64);
        let mut leaves = Vec::new();
        for page in (0..case.profile.geometry.pages()).map(PageNumber) {
            chip.corrupt_page(page, |main, spare| {
                let frame = [&*main, &spare[..HEADER_BYTES]].concat();
                // A page that also holds the root stays intact, so that the index opens.
                let is_leaf = |height| height == 0 || !S::DESCRIPTION.root_commits();
                if layout.open(&frame).is_ok_and(|it| it.lowest == 1 && is_leaf(it.height)) {
                    leaves.push(page);
                    spare[8] ^= 1;
                }
            });
        }
        let mut index = match Index::<_, S>::open(&mut chip, &case.options, &mut ram) {
            Ok(index) => index,
            Err(OpenError::Corrupt { page, .. }) if leaves.contains(&page) => return Ok(()),
            // No page is left of a system that has only leaves.
            Err(OpenError::NotNandina) if !S::DESCRIPTION.has_inner_nodes() => return Ok(()),
            Err(error) => return Err(text(error)),
        };
        let mut failed = 0;
        for number in 0..30 {
            let mut pairs = index.pairs(4).map_err(text)?;
            let value = key(number);
            let mut found = match pairs.find_all(&value) {
                Ok(found) => found,
                Err(error) => return Err(text(error)),
            };
            while let Some(next) = found.next().transpose() {
                match next {
                    Ok(_) => {}
                    Err(ReadError::Corrupt { page, .. }) => {
                        failed += 1;
                        let is_leaf = leaves.iter().any(|&leaf| is_blamed::<S>(page, leaf).is_ok());
                        if !is_leaf {
                            return Err(format!("{page} is blamed, {leaves:?} are damaged"));
                        }
                    }
                    Err(error) => return Err(text(error)),
                }
            }
        }
        if failed > 0 || leaves.is_empty() { Ok(()) } else { Err("nothing failed".into()) }
    }
}

#[test]
fn a_search_for_pairs_names_a_leaf_that_is_damaged() {
    for_every_system(&BlamedPairs);
}
