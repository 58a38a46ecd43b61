//! Sessions of `btree` with checkpoints, cut anywhere, whose torn pages come and go.
//!
//! Each mount may see the torn pages as they were, by turns, or as they should have become. In the
//! last case they are whole from then on, because a mount takes a page for whole after 24 equal
//! reads. In every case an index contains every acknowledged change, and no change comes back that
//! an earlier mount left out.

use std::collections::BTreeMap;

use nandina::flash::Flash;
use nandina::store::BTree;
use nandina::{Index, OpenError, Options, key, ram_needed};
use nandina_lab::effort::Share;
use nandina_sim::ChipError;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::harness::seed;
use crate::sessions::{Shown, Torn};

type Card<'c, 'b> = Index<'b, &'c mut Torn, BTree>;

/// Numbers of records, and their values.
type Model = BTreeMap<u32, u8>;

const OPTIONS: Options = Options::new(4, 60).checkpoints(1);

/// The settings of an index that replaces one of `OPTIONS`.
const OTHERS: Options = Options::new(4, 60);

/// Sessions of one card.
const SESSIONS: u32 = 14;

#[derive(Default)]
struct Met {
    sessions: u32,
    torn: u32,
    from_checkpoint: u32,
    formats: u32,
}

/// A card, what its index may hold, and the random numbers that decide.
struct Run {
    card: Torn,
    states: Vec<Model>,
    /// A mount may find the index of a format with other settings, which was cut.
    replaced: bool,
    random: ChaCha8Rng,
}

impl Run {
    fn ram(&self, options: &Options) -> Vec<u8> {
        vec![0; ram_needed::<BTree>(&self.card.chip.profile().geometry, options)]
    }

    /// A page that reads the same each time at a mount is whole.
    fn keep_what_is_shown(&mut self) {
        if self.card.shown == Shown::New {
            for (page, new) in self.card.torn.drain(..) {
                self.card.chip.rewrite(page, &new, &[]).unwrap();
            }
        }
    }

    /// Opens the index and makes changes until power fails, or the session ends otherwise.
    fn session(&mut self, met: &mut Met) {
        let shown = [Shown::Old, Shown::New, Shown::Both];
        self.card.shown = shown[self.random.random_range(0..3)];
        self.keep_what_is_shown();
        let left = self.random.random_bool(0.7).then(|| self.random.random_range(0..12));
        self.card.left.set(left);
        let changes = self.random.random_range(0..4);
        let closes = self.random.random_bool(0.6);
        let steps: Vec<_> = (0..changes).map(|_| self.random.random::<(u32, u8)>()).collect();
        let before = self.card.rewrites;
        let mut ram = self.ram(&OPTIONS);
        let mut index = match Card::open(&mut self.card, &OPTIONS, &mut ram) {
            Ok(index) => index,
            Err(OpenError::Device(ChipError::PowerLost)) => return,
            Err(OpenError::Mismatch { .. }) if self.replaced => {
                self.card.left.set(None);
                self.format_anew();
                return;
            }
            Err(error) => panic!("{error:?}"),
        };
        // An index that cannot be written can be read; but without power there is none.
        if left.is_some() && index.flash().left.get().is_none() {
            return;
        }
        met.from_checkpoint += u32::from(index.statistics().from_checkpoint);
        let found: Model = (0..90)
            .filter_map(|number| Some((number, index.get(&key::from_u32(number)).unwrap()?[0])))
            .collect();
        assert!(self.states.contains(&found), "{found:?} is none of {:?}", self.states);
        assert_eq!(index.len() as usize, found.len());
        let mut violations = Vec::new();
        index.check(|violation| violations.push(violation)).unwrap();
        assert_eq!(violations, []);
        // A mount that writes nothing decides nothing; then the first change does.
        let begun = index.flash().rewrites > before;
        let mut undecided = if begun { vec![] } else { self.states.clone() };
        self.states = vec![found];
        for (number, value) in steps {
            let (removes, number) = (number % 4 == 0, number / 4 % 90);
            let mut next = self.states[0].clone();
            let changed = if removes {
                next.remove(&number);
                index.remove(&key::from_u32(number)).map(|_| ())
            } else {
                next.insert(number, value);
                index.insert(&key::from_u32(number), &[value; 60]).map(|_| ())
            };
            match changed {
                Ok(()) if index.flash().rewrites > before => {
                    undecided.clear();
                    (self.states, self.replaced) = (vec![next], false);
                }
                // What is there already is not written.
                Ok(()) => assert_eq!(self.states, [next]),
                Err(_) => {
                    self.states.push(next);
                    self.states.append(&mut undecided);
                    return;
                }
            }
        }
        if closes {
            index.close();
        }
        // Nor does one whose end was cut.
        let was_cut = left.is_some() && self.card.left.get().is_none();
        if self.card.rewrites == before || was_cut {
            self.states.append(&mut undecided);
        }
    }

    /// Formats the card as it was at first.
    fn format_anew(&mut self) {
        let mut ram = self.ram(&OPTIONS);
        Card::format(&mut self.card, &OPTIONS, &mut ram).unwrap();
        (self.states, self.replaced) = (vec![Model::new()], false);
    }

    /// Formats the card, with these settings or others. A cut may leave the old index.
    fn format(&mut self) {
        self.card.left.set(Some(self.random.random_range(0..4)));
        let options = if self.random.random_bool(0.5) { OTHERS } else { OPTIONS };
        let mut ram = self.ram(&options);
        self.keep_what_is_shown();
        let formatted = Card::format(&mut self.card, &options, &mut ram).is_ok();
        self.card.left.set(None);
        match (formatted, options == OPTIONS) {
            (true, true) => (self.states, self.replaced) = (vec![Model::new()], false),
            (true, false) => self.format_anew(),
            (false, true) => self.states.push(Model::new()),
            (false, false) => self.replaced = true,
        }
    }
}

#[test]
fn a_session_that_is_cut_hides_no_change_whatever_later_mounts_see_of_torn_pages() {
    let mut met = Met::default();
    for number in Share::one_in(8).of(0..4_000u64) {
        let random = ChaCha8Rng::seed_from_u64(seed() + number);
        let mut run =
            Run { card: Torn::new(), states: vec![Model::new()], replaced: false, random };
        let mut ram = run.ram(&OPTIONS);
        Card::format(&mut run.card, &OPTIONS, &mut ram).unwrap();
        for session in 0..SESSIONS {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                if run.random.random_bool(0.05) {
                    run.format();
                    met.formats += 1;
                }
                run.session(&mut met);
            }));
            assert!(outcome.is_ok(), "card {number}, session {session}");
            run.card.left.set(None);
            met.sessions += 1;
            met.torn += u32::from(!run.card.torn.is_empty());
        }
    }
    let Met { sessions, torn, from_checkpoint, formats } = met;
    println!("{sessions} sessions: {torn} with torn pages, {from_checkpoint} from checkpoints");
    assert!(5 * torn > sessions, "{torn} of {sessions} with torn pages");
    assert!(10 * from_checkpoint > sessions, "{from_checkpoint} of {sessions} from checkpoints");
    assert!(100 * formats > sessions, "{formats} formats in {sessions} sessions");
}
