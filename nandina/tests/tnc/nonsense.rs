//! Pages of the journal that are whole and say nonsense: counts that run over, changes of unknown
//! kinds, numbers that jump, and pointers behind the last change of a page.
//!
//! Whatever they say, nothing panics or walks for ever. And no value is returned that its key never
//! had: a change may be lost, and an older value read in its place, as where a page of the journal
//! rots.

use std::collections::BTreeSet;

use nandina::flash::profile::NOR;
use nandina::flash::{Geometry, PageNumber, Profile};
use nandina::node::{ONE_BY_ONE, PageHeader, PageLayout};
use nandina::{Damage, Options, ReadError};
use nandina_sim::Chip;

use crate::*;

/// Pages as those of SPI NOR, where each change is programmed by itself.
const SECTORS: Profile =
    Profile { geometry: Geometry { pages_per_block: 16, blocks: 64, ..NOR.geometry }, ..NOR };

/// The tag of a page of values that collection moved.
const MOVED: u8 = 17;

/// Bytes of a kind, a key and a value, and of a tag, a key and a value.
const ENTRY_BYTES: usize = 17;
const SLOT_BYTES: usize = 18;

/// Chip operations of a use after which it counts as endless.
const OPERATIONS_MAX: u64 = 1_000_000;

/// Pages that the journal has at least, of which each may be changed.
const JOURNAL_LEAST: usize = 2;

/// Changes of a chip that are tried, each of one page.
const TURNS: u32 = 100;

/// The keys of all changes.
const KEYS: u32 = 1 << 9;

/// Every value that each key ever had.
type History = BTreeSet<([u8; 4], [u8; 12])>;

/// Chips and options, each with values in the leaves and in the journal.
fn settings() -> impl Iterator<Item = (Profile, Options)> {
    let small = OPTIONS.fanout(8).arena_bytes(60 * 150).journal_pages(20);
    let all = [
        (LARGE, small),
        (LARGE, small.write_buffer(1)),
        (LARGE, OPTIONS.journal_pages(20)),
        (SECTORS, OPTIONS.fanout(4).arena_bytes(60 * 120)),
    ];
    let in_journal =
        move |apart| all.map(|(profile, options)| (profile, options.journal_values(apart)));
    [false, true].into_iter().flat_map(in_journal)
}

/// A page of the journal: whole, and found again after each change of it.
struct Page {
    number: PageNumber,
    header: PageHeader,
}

/// An index whose newest changes are in its journal.
struct Ground {
    chip: Chip,
    layout: PageLayout,
    /// Those after the last commit.
    journal: Vec<Page>,
    /// Pages of nodes without which something is missing.
    needed: Vec<Page>,
    history: History,
}

impl Ground {
    fn new(profile: Profile, options: &Options, seed: u64) -> Self {
        let Geometry { page_bytes, spare_bytes, .. } = profile.geometry;
        let layout = PageLayout::new(page_bytes as usize, spare_bytes as usize);
        let (mut chip, mut ram) = (Chip::new(profile), ram(&profile, options));
        let (mut numbers, mut history) = (Numbers(seed), History::new());
        let mut index = Tree::format(&mut chip, options, &mut ram).unwrap();
        // Ends in the middle of a journal.
        for turn in 0.. {
            let change = change(&mut numbers, KEYS);
            history.extend(change.1.map(|value| (change.0, value)));
            make(&mut index, change).unwrap();
            if turn % 37 == 0 {
                index.flush().unwrap();
                if turn > 2000 && pages_of(index.flash(), &layout).0.len() >= JOURNAL_LEAST {
                    break;
                }
            }
            assert!(turn < 10_000, "no journal of {JOURNAL_LEAST} pages");
        }
        let (journal, nodes) = pages_of(&chip, &layout);
        let is_needed = |page: &Page| {
            let mut copy = chip.clone();
            copy.corrupt_page(page.number, |main, _| main.fill(0));
            let found = Tree::open(&mut copy, options, &mut ram);
            found.map_or(true, |mut index| try_content(&mut index).is_err())
        };
        let needed = nodes.into_iter().filter(is_needed).collect();
        Self { journal, needed, chip, layout, history }
    }

    /// A copy of the chip with another content of a page, under a right checksum.
    fn changed(&self, page: &Page, change: &mut dyn FnMut(&mut [u8], &mut PageHeader)) -> Chip {
        let (mut copy, layout) = (self.chip.clone(), self.layout);
        copy.corrupt_page(page.number, |main, spare| {
            let used = layout.frame_bytes() - main.len();
            let mut frame = [&*main, &spare[..used]].concat();
            let mut header = page.header;
            change(&mut frame[..layout.area_bytes()], &mut header);
            layout.reseal(&mut frame, &header);
            main.copy_from_slice(&frame[..main.len()]);
            spare[..used].copy_from_slice(&frame[main.len()..]);
        });
        copy
    }

    /// All records that a page may be read as, wherever they begin: those are no wrong values.
    fn said_by(&self, chip: &Chip, page: &Page) -> History {
        let mut said = History::new();
        chip.clone().corrupt_page(page.number, |main, _| {
            for record in main.windows(16) {
                said.insert((record[..4].try_into().unwrap(), record[4..].try_into().unwrap()));
            }
        });
        said
    }
}

/// The pages of the journal after the last commit, and all pages of nodes.
fn pages_of(chip: &Chip, layout: &PageLayout) -> (Vec<Page>, Vec<Page>) {
    let (mut chip, bytes) = (chip.clone(), layout.frame_bytes());
    let mut pages = Vec::new();
    for number in (0..chip.profile().geometry.pages()).map(PageNumber) {
        chip.corrupt_page(number, |main, spare| {
            let frame = [&*main, &spare[..bytes - main.len()]].concat();
            pages.extend(layout.open(&frame).ok().map(|header| Page { number, header }));
        });
    }
    let commits = pages.iter().filter(|page| page.header.height > 0);
    let last = commits.map(|page| page.header.sequence).max().unwrap();
    let is_own = |header: &PageHeader| header.begins_session() || header.ends_session();
    let (changes, nodes): (Vec<_>, Vec<_>) = pages
        .into_iter()
        .filter(|page| page.header.tag != MOVED && !is_own(&page.header))
        .partition(|page| page.header.tag == 0);
    (changes.into_iter().filter(|page| page.header.sequence > last).collect(), nodes)
}

/// What became of the uses.
#[derive(Default, Debug)]
struct Uses {
    refused: u32,
    used: u32,
    /// A read returned an error.
    failed: u32,
}

impl Uses {
    /// Opens and uses the index on `chip`. Each value must be in one of the histories.
    fn add(&mut self, mut chip: Chip, options: &Options, known: [&History; 2], what: &str) {
        let mut ram = ram(chip.profile(), options);
        chip.limit_operations(Some(OPERATIONS_MAX));
        let start = chip.counters().operations();
        let (mut written, mut numbers) = (History::new(), Numbers(5));
        let is_known = |written: &History, record: ([u8; 4], [u8; 12])| {
            known.iter().any(|known| known.contains(&record)) || written.contains(&record)
        };
        for session in 0..2 {
            let Ok(mut index) = Tree::open(&mut chip, options, &mut ram) else {
                self.refused += u32::from(session == 0);
                break;
            };
            self.used += u32::from(session == 0);
            for _ in 0..30 {
                let change = change(&mut numbers, KEYS);
                written.extend(change.1.map(|value| (change.0, value)));
                let _ = make(&mut index, change);
                let _ = index.gc_step(100);
            }
            let mut failed = false;
            for key in (0..KEYS).map(u32::to_be_bytes) {
                match index.get(&key) {
                    Ok(Some(value)) => {
                        let record = (key, value.try_into().unwrap());
                        assert!(is_known(&written, record), "{what}: {record:?}");
                    }
                    Ok(None) => {}
                    Err(_) => failed = true,
                }
            }
            match try_content(&mut index) {
                Ok(content) => {
                    for record in content {
                        assert!(is_known(&written, record), "{what}: {record:?}");
                    }
                }
                Err(_) => failed = true,
            }
            self.failed += u32::from(failed && session == 0);
            let _ = index.check(|_| ());
        }
        let took = chip.counters().operations() - start;
        assert!(took < OPERATIONS_MAX, "{what}: {took} chip operations");
    }
}

/// Changes something of a page of the journal at random. Returns what.
fn say_nonsense(numbers: &mut Numbers, area: &mut [u8], header: &mut PageHeader) -> &'static str {
    if header.lowest == ONE_BY_ONE && numbers.below(2) == 0 {
        return write_slot(numbers, area);
    }
    match numbers.below(9) {
        0 if header.lowest != ONE_BY_ONE => {
            area[..2].copy_from_slice(&(numbers.below(1 << 16) as u16).to_le_bytes());
            "any count"
        }
        1 if header.lowest != ONE_BY_ONE => {
            let entries = (area.len() - 2) / ENTRY_BYTES;
            let count = entries as u32 - 1 + numbers.below(3);
            area[..2].copy_from_slice(&(count as u16).to_le_bytes());
            "as many changes as fit, one less or one more"
        }
        2 if header.lowest != ONE_BY_ONE => {
            let at = numbers.below(8) as usize;
            area[2 + at * ENTRY_BYTES] = numbers.below(256) as u8;
            "an unknown kind"
        }
        3 => {
            let at = numbers.below(area.len() as u32) as usize;
            area[at] = numbers.below(256) as u8;
            "any byte"
        }
        4 => {
            header.sequence += 1 + u64::from(numbers.below(300));
            "a number that jumps"
        }
        5 => {
            header.sequence = match numbers.below(4) {
                0 => 1 << 40,
                1 => 0,
                _ => header.sequence.saturating_sub(numbers.below(300).into()),
            };
            "a number of long ago, or far ahead"
        }
        6 => {
            header.tag = numbers.below(32) as u8;
            "an unknown tag"
        }
        7 => {
            header.lowest = [0, 1, 2, 3, 254, ONE_BY_ONE][numbers.below(6) as usize];
            "another level"
        }
        _ => {
            (header.height, header.records) = (numbers.below(14) as u8, numbers.below(u32::MAX));
            "a root"
        }
    }
}

/// Writes a slot that is whole, killed, blank, or of an unknown tag.
fn write_slot(numbers: &mut Numbers, area: &mut [u8]) -> &'static str {
    let at = numbers.below((area.len() / SLOT_BYTES) as u32) as usize;
    let end = area.len() - at * SLOT_BYTES;
    let slot = &mut area[end - SLOT_BYTES..end];
    slot[2..6].copy_from_slice(&numbers.below(KEYS).to_be_bytes());
    slot[6..].fill(numbers.below(256) as u8);
    let kind = numbers.below(8) as u16;
    let zeros = slot[2..].iter().map(|byte| byte.count_zeros()).sum::<u32>() as u16;
    let tag = match numbers.below(4) {
        0 | 1 => 1 << 15 | (zeros + 3 - kind.count_ones() as u16) << 3 | kind,
        2 => numbers.below(1 << 16) as u16,
        _ => u16::MAX,
    };
    slot[..2].copy_from_slice(&tag.to_le_bytes());
    "a slot"
}

/// Up to two things are changed in a page.
#[test]
fn pages_of_the_journal_that_say_nonsense_lead_to_errors_and_to_no_wrong_value() {
    let mut whats = BTreeSet::new();
    for (at, (profile, options)) in settings().enumerate() {
        let ground = Ground::new(profile, &options, at as u64);
        let (mut numbers, mut uses) = (Numbers(at as u64), Uses::default());
        for turn in 0..TURNS {
            let mut what = String::new();
            let page = &ground.journal[numbers.below(ground.journal.len() as u32) as usize];
            let copy = ground.changed(page, &mut |area, header| {
                for _ in 0..=numbers.below(2) {
                    let said = say_nonsense(&mut numbers, area, header);
                    whats.insert(said);
                    what += said;
                    what += ", ";
                }
            });
            let said = ground.said_by(&copy, page);
            let what = format!("{at}, turn {turn}, {}: {what}", page.number);
            uses.add(copy, &options, [&ground.history, &said], &what);
        }
        println!("{at}: {} pages of the journal, {uses:?}", ground.journal.len());
        assert!(uses.used > TURNS / 2, "{at}: {uses:?}");
    }
    assert_eq!(whats.len(), 10, "{whats:?}");
}

/// More changes than fit are an error that names the page, wherever it is in the journal.
#[test]
fn a_count_that_runs_over_is_an_error() {
    for (at, (profile, options)) in settings().enumerate().filter(|(_, it)| it.0 == LARGE) {
        let ground = Ground::new(profile, &options, at as u64);
        let mut ram = ram(&profile, &options);
        let entries = ((ground.layout.area_bytes() - 2) / ENTRY_BYTES) as u16;
        for (page, count) in ground.journal.iter().flat_map(|page| {
            [entries + 1, 256, 0x7FFF, 0x8000, u16::MAX].map(|count| (page, count))
        }) {
            let mut copy = ground.changed(page, &mut |area, _| {
                area[..2].copy_from_slice(&count.to_le_bytes());
            });
            let found = Tree::open(&mut copy, &options, &mut ram).map(drop);
            let expected = Damage::NodeTooFull;
            assert!(
                matches!(found, Err(nandina::OpenError::Corrupt { page: found, reason })
                    if (found, reason) == (page.number, expected)),
                "{at}, {} changes in {}: {found:?}",
                count,
                page.number
            );
        }
    }
}

/// A pointer of a leaf to a change that its page does not have, or of another key, is an error.
#[test]
fn pointers_behind_the_changes_of_a_page_are_errors() {
    let mut errors = 0;
    for (at, (profile, options)) in settings().enumerate().skip(4) {
        let ground = Ground::new(profile, &options, at as u64);
        let (mut numbers, mut uses) = (Numbers(at as u64), Uses::default());
        let pages = profile.geometry.pages();
        for turn in 0..TURNS {
            let page = &ground.needed[numbers.below(ground.needed.len() as u32) as usize];
            let copy = ground.changed(page, &mut |area, _| {
                // Words after keys of this index: pointers of leaves or of inner nodes.
                let is_key = |at: &usize| {
                    let word: [u8; 4] = area[*at..*at + 4].try_into().unwrap();
                    (1..KEYS).contains(&u32::from_be_bytes(word))
                };
                let places: Vec<_> = (0..area.len() - 8).filter(is_key).collect();
                for _ in 0..=numbers.below(3) {
                    let Some(&place) =
                        places.get(numbers.below(places.len().max(1) as u32) as usize)
                    else {
                        break;
                    };
                    let bytes: [u8; 4] = area[place + 4..place + 8].try_into().unwrap();
                    let pointer = match numbers.below(4) {
                        0 => u32::from_le_bytes(bytes).wrapping_add(1 + numbers.below(260)),
                        1 => u32::from_le_bytes(bytes) | 1 << 31,
                        2 => numbers.below(pages * 256),
                        _ => u32::MAX - numbers.below(300),
                    };
                    area[place + 4..place + 8].copy_from_slice(&pointer.to_le_bytes());
                }
            });
            let what = format!("{at}, turn {turn}, {}", page.number);
            uses.add(copy, &options, [&ground.history, &History::new()], &what);
        }
        println!("{at}: {} pages of nodes, {uses:?}", ground.needed.len());
        errors += uses.failed + uses.refused;
        assert!(uses.used >= TURNS / 20, "{at}: {uses:?}");
    }
    assert!(errors > TURNS / 2, "{errors} errors");
}

/// A page of the journal whose number jumps takes no change of another page along unseen.
#[test]
fn a_journal_whose_numbers_jump_keeps_the_other_pages() {
    for (at, (profile, options)) in settings().enumerate() {
        let ground = Ground::new(profile, &options, at as u64);
        let mut memory = ram(&profile, &options);
        let mut whole = ground.chip.clone();
        let expected = content(&mut Tree::open(&mut whole, &options, &mut memory).unwrap());
        let last = ground.journal.iter().max_by_key(|page| page.header.sequence).unwrap();
        // Nothing is after the newest page, so it may have any higher number.
        for jump in [1, 63, 64, 65, 1 << 20, 1 << 40] {
            let mut copy = ground.changed(last, &mut |_, header| header.sequence += jump);
            let mut index = Tree::open(&mut copy, &options, &mut memory).unwrap();
            assert_eq!(content(&mut index), expected, "{at}, {jump}");
            let found: Result<_, ReadError<_>> = index.check(|it| panic!("{at}, {jump}: {it}"));
            found.unwrap();
        }
    }
}
