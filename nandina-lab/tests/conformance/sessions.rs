//! Torn shadow pages that later mounts read differently: the test decides their reads.
//!
//! A *session page* is the page in which a mount of `btree` records which page versions do not
//! count.

use std::cell::Cell;

use nandina::flash::profile::SD;
use nandina::flash::{Flash, PageNumber, Reading};
use nandina::store::BTree;
use nandina::{Index, Options, key, plan, ram_needed};
use nandina_lab::hand_on;
use nandina_sim::{Chip, ChipError};

/// The result of reads of torn pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    Old,
    New,
    /// By turns.
    Both,
}

/// A chip that can tear a rewrite and lose power there, and shows torn pages as set.
pub struct Torn {
    pub chip: Chip,
    /// Rewrites until one is torn.
    pub left: Cell<Option<u32>>,
    pub torn: Vec<(PageNumber, Vec<u8>)>,
    pub shown: Shown,
    reads: u64,
    pub rewrites: u64,
}

impl Torn {
    pub fn new() -> Self {
        let chip = Chip::new(SD.with_blocks(2));
        Self { chip, left: Cell::new(None), torn: vec![], shown: Shown::Old, reads: 0, rewrites: 0 }
    }
}

impl Flash for Torn {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, program, erase, overwrite, is_bad, mark_bad);

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.reads += 1;
        let reading = self.chip.read(page, main, spare);
        let is_new = match self.shown {
            Shown::Old => false,
            Shown::New => true,
            Shown::Both => self.reads.is_multiple_of(2),
        };
        if let Some((_, new)) = self.torn.iter().find(|torn| torn.0 == page)
            && is_new
        {
            main.copy_from_slice(new);
        }
        reading
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.rewrites += 1;
        self.torn.retain(|torn| torn.0 != page);
        match self.left.get() {
            Some(0) => {
                self.left.set(None);
                self.torn.push((page, main.to_vec()));
                Err(ChipError::PowerLost)
            }
            left => {
                self.left.set(left.map(|left| left - 1));
                self.chip.rewrite(page, main, spare)
            }
        }
    }
}

const OPTIONS: Options = Options::new(4, 60);

type Card<'c, 'b> = Index<'b, &'c mut Torn, BTree>;

fn ram() -> Vec<u8> {
    vec![0; ram_needed::<BTree>(&SD.with_blocks(2).geometry, &OPTIONS)]
}

/// Makes a card with keys from 0 on, of value 0.
fn filled(keys: u32) -> Torn {
    let mut card = Torn::new();
    let mut ram = ram();
    let mut index = Card::format(&mut card, &OPTIONS, &mut ram).unwrap();
    for number in 0..keys {
        put(&mut index, number, 0).unwrap();
    }
    card
}

fn put(index: &mut Card<'_, '_>, number: u32, value: u8) -> Result<(), ()> {
    index.insert(&key::from_u32(number), &[value; 60]).map(|_| ()).map_err(|_| ())
}

fn value(index: &mut Card<'_, '_>, number: u32) -> Option<u8> {
    index.get(&key::from_u32(number)).unwrap().map(|value| value[0])
}

/// Opens the index with its torn pages `shown` this way, and runs `job` on it.
fn opened<T>(card: &mut Torn, shown: Shown, job: impl FnOnce(&mut Card<'_, '_>) -> T) -> T {
    card.shown = shown;
    let mut ram = ram();
    let mut index = Card::open(card, &OPTIONS, &mut ram).unwrap();
    let done = job(&mut index);
    let mut violations = Vec::new();
    index.check(|violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
    done
}

/// Writes `value` for `number`, cut in the write after `left` others.
fn tear(card: &mut Torn, number: u32, value: u8, left: u32) {
    card.shown = Shown::Old;
    let mut ram = ram();
    let mut index = Card::open(card, &OPTIONS, &mut ram).unwrap();
    // A change begins to write.
    put(&mut index, 1_000_000, value).unwrap();
    index.flash().left.set(Some(left));
    put(&mut index, number, value).unwrap_err();
}

#[test]
fn a_torn_twin_that_is_seen_only_at_the_second_mount_does_not_come_back() {
    let mut card = filled(40);
    tear(&mut card, 7, 1, 0);
    opened(&mut card, Shown::Old, |index| assert_eq!(value(index, 7), Some(0)));
    for shown in [Shown::New, Shown::Both, Shown::New] {
        opened(&mut card, shown, |index| assert_eq!(value(index, 7), Some(0), "{shown:?}"));
        // Nor with changes to other nodes in between.
        opened(&mut card, shown, |index| put(index, 39, 1).unwrap());
    }
    assert_eq!(card.torn.len(), 1);
}

#[test]
fn a_torn_twin_that_was_read_once_does_not_vanish() {
    let mut card = filled(40);
    tear(&mut card, 7, 1, 0);
    opened(&mut card, Shown::New, |index| assert_eq!(value(index, 7), Some(1)));
    for shown in [Shown::Old, Shown::Both, Shown::New, Shown::Old] {
        opened(&mut card, shown, |index| assert_eq!(value(index, 7), Some(1), "{shown:?}"));
    }
}

#[test]
fn a_torn_twin_that_does_not_read_the_same_each_time_does_not_count() {
    let mut card = filled(40);
    tear(&mut card, 7, 1, 0);
    for shown in [Shown::Both, Shown::New, Shown::Old, Shown::New] {
        opened(&mut card, shown, |index| assert_eq!(value(index, 7), Some(0), "{shown:?}"));
        opened(&mut card, shown, |index| put(index, 39, 1).unwrap());
    }
}

#[test]
fn a_torn_twin_does_not_come_back_after_more_sessions_than_a_page_lists() {
    let mut card = filled(40);
    tear(&mut card, 7, 1, 0);
    let geometry = card.geometry();
    let open = plan::<BTree>(&geometry, &card.capabilities(), &OPTIONS, 41).unwrap().open;
    let mut most = 0;
    for session in 0..40u8 {
        let shown = if session == 0 { Shown::Old } else { Shown::New };
        let (reads, rewrites) = (card.reads, card.rewrites);
        let mut ram = ram();
        card.shown = shown;
        let index = Card::open(&mut card, &OPTIONS, &mut ram).unwrap();
        let card_now = index.close();
        assert!(card_now.reads - reads <= open.reads, "session {session}");
        assert!(card_now.rewrites - rewrites <= open.programs, "session {session}");
        most = most.max(card_now.rewrites - rewrites);
        opened(&mut card, shown, |index| {
            assert_eq!(value(index, 7), Some(0), "session {session}");
            put(index, 39, session + 1).unwrap();
        });
    }
    // Each node was written again once, and the mount's session page.
    assert!(most > 5, "{most}");
    assert_eq!(card.torn.len(), 0);
}

#[test]
fn a_free_twin_that_was_torn_does_not_come_back_when_it_is_taken() {
    let mut card = filled(40);
    // A split writes the upper half to a free logical page: that write is torn.
    let mut number = 40;
    loop {
        let before = opened(&mut card, Shown::Old, |index| index.statistics().valid_pages);
        let mut clone = Torn { chip: card.chip.clone(), ..Torn::new() };
        let divides = opened(&mut clone, Shown::Old, |index| {
            put(index, 1_000_000, 1).unwrap();
            put(index, number, 1).unwrap();
            index.statistics().valid_pages > before
        });
        if divides {
            break;
        }
        opened(&mut card, Shown::Old, |index| put(index, number, 1).unwrap());
        number += 1;
    }
    tear(&mut card, number, 1, 0);
    for (at, shown) in [Shown::Old, Shown::New, Shown::Both].into_iter().enumerate() {
        opened(&mut card, shown, |index| {
            for more in 0..20 {
                put(index, 100 + 20 * at as u32 + more, 2).unwrap();
            }
        });
        opened(&mut card, Shown::New, |index| {
            assert!((100..120 + 20 * at as u32).all(|number| value(index, number) == Some(2)));
            assert!((40..number).all(|number| value(index, number) == Some(1)));
            assert_eq!(value(index, number), None);
        });
    }
}

#[test]
fn a_torn_session_page_does_not_hide_what_was_written_since() {
    for left in 0..3 {
        let mut card = filled(40);
        tear(&mut card, 7, 1, 0);
        // The next mount is cut: in the page that it writes again, in its session page, or not at
        // all.
        card.shown = Shown::Both;
        card.left.set(Some(left));
        let mut ram_1 = ram();
        let cut = Card::open(&mut card, &OPTIONS, &mut ram_1).is_err();
        assert_eq!(cut, left < 2, "{left}");
        card.left.set(None);
        opened(&mut card, Shown::Old, |index| put(index, 8, 5).unwrap());
        for shown in [Shown::New, Shown::Both, Shown::Old] {
            opened(&mut card, shown, |index| {
                assert_eq!(
                    (value(index, 7), value(index, 8)),
                    (Some(0), Some(5)),
                    "{left} {shown:?}"
                );
            });
            opened(&mut card, shown, |index| put(index, 39, 1).unwrap());
        }
    }
}

#[test]
fn a_torn_root_of_a_format_does_not_come_back() {
    let mut card = filled(40);
    card.left.set(Some(0));
    let mut ram = ram();
    assert!(Card::format(&mut card, &OPTIONS, &mut ram).is_err());
    for shown in [Shown::Old, Shown::New, Shown::Both] {
        opened(&mut card, shown, |index| {
            assert_eq!(index.len(), 40);
            put(index, 39, 1).unwrap();
        });
    }
}

#[test]
fn a_mount_after_which_nothing_was_changed_writes_nothing() {
    let mut card = filled(40);
    opened(&mut card, Shown::Old, |_| ());
    let rewrites = card.rewrites;
    for _ in 0..3 {
        opened(&mut card, Shown::Old, |index| assert_eq!(value(index, 7), Some(0)));
    }
    assert_eq!(card.rewrites, rewrites);
    opened(&mut card, Shown::Old, |index| put(index, 7, 1).unwrap());
    // The mount's session page, and the leaf.
    assert_eq!(card.rewrites, rewrites + 2);
}
