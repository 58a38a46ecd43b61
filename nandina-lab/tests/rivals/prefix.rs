//! After cuts at every chip operation an index holds a prefix of the changes.
//!
//! It has all changes up to the last flush at least. The mount is cut, too, at each of its
//! operations, and every later mount finds the same prefix. None costs more than planned.

use nandina::flash::Flash;
use nandina::{OpenError, Options, System, WriteError, plan};
use nandina_lab::rivals::{Bftl, LaTree};
use nandina_sim::{Chip, ChipError, Cut};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::{HIGH, Model, chip, contents, key_of, options, with};

/// Changes from one flush to the next.
const FLUSH_TURNS: usize = 23;

/// A change of a record, or its removal.
type Change = (u32, Option<u8>);

/// What is cut.
struct Run {
    options: Options,
    blocks: u32,
    /// Records that are there before, and looked up.
    before: u32,
    changes: usize,
    /// Lookups after each change.
    looks: u32,
    /// Mounts that find fewer changes than were begun, and mounts that are cut, at least.
    least: usize,
}

impl Run {
    /// Many inserts, so that nodes are divided, and then more removals.
    fn changes(&self) -> Vec<Change> {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let change = |turn: usize| {
            let comes =
                random.random_range(0..10) < if turn < self.changes * 3 / 5 { 9 } else { 2 };
            (random.random_range(0..self.before.max(45) * 2), comes.then_some(turn as u8))
        };
        (0..self.changes).map(change).collect()
    }

    fn record(&self, (number, value): Change) -> (Vec<u8>, Option<Vec<u8>>) {
        let Options { key_bytes, value_bytes, .. } = self.options;
        (key_of(number, key_bytes), value.map(|value| vec![value; value_bytes]))
    }

    /// The states after none, one and more of the changes.
    fn states(&self, first: Model, changes: &[Change]) -> Vec<Model> {
        let mut states = vec![first];
        for change in changes {
            let mut next = states[states.len() - 1].clone();
            match self.record(*change) {
                (key, Some(value)) => drop(next.insert(key, value)),
                (key, None) => drop(next.remove(&key)),
            }
            states.push(next);
        }
        states
    }

    /// A device with the records that are there before, and these.
    fn begun<S: System>(&self) -> (Chip, Model) {
        let mut chip = chip(self.blocks);
        let found = with::<S, _>(&mut chip, &self.options, true, |index| {
            for turn in 0..self.before {
                let (key, value) = self.record((turn * 37 % self.before * 2, Some(1)));
                index.insert(&key, &value.unwrap()).unwrap();
                for look in 0..3 {
                    let (key, _) = self.record(((turn * 11 + look * 97) % (self.before * 2), None));
                    index.get(&key).unwrap();
                }
            }
            index.flush().unwrap();
            contents(index)
        });
        (chip, found.unwrap())
    }

    /// Makes the changes until power fails. Returns how many were flushed, and how many were begun.
    fn work<S: System>(&self, chip: &mut Chip, changes: &[Change]) -> (usize, usize) {
        let (mut flushed, mut begun) = (0, 0);
        let opened = with::<S, _>(chip, &self.options, false, |index| {
            for (at, &change) in changes.iter().enumerate() {
                begun = at + 1;
                let (key, value) = self.record(change);
                let mut done = match value {
                    Some(value) => index.insert(&key, &value).map(drop),
                    None => index.remove(&key).map(drop),
                };
                if at % FLUSH_TURNS == 0 && done.is_ok() {
                    done = index.flush();
                    flushed = if done.is_ok() { at + 1 } else { flushed };
                }
                match done {
                    Ok(()) => {}
                    Err(WriteError::Device(ChipError::PowerLost)) => return,
                    Err(error) => panic!("change {at}: {error:?}"),
                }
                for look in 1..=self.looks {
                    let (key, _) = self.record(((change.0 + 31 * look) % 90, None));
                    if index.get(&key).is_err() {
                        return;
                    }
                }
            }
        });
        let ended = matches!(opened, Ok(()) | Err(OpenError::Device(ChipError::PowerLost)));
        assert!(ended, "{opened:?}");
        (flushed, begun)
    }

    /// Mounts, and returns which states the index may be in.
    fn mounted<S: System>(&self, chip: &mut Chip, states: &[Model]) -> Vec<usize> {
        let found = with::<S, _>(chip, &self.options, false, contents).unwrap();
        (0..states.len()).filter(|&at| states[at] == found).collect()
    }

    /// Cuts the work of `S` everywhere, and each mount after a cut that tore what was written.
    fn hold_a_prefix<S: System>(&self) {
        let changes = self.changes();
        let (fresh, model) = self.begun::<S>();
        let states = self.states(model, &changes);
        let mut whole = fresh.clone();
        let start = whole.counters().operations();
        assert_eq!(self.work::<S>(&mut whole, &changes).1, changes.len());
        let operations = whole.counters().operations() - start;
        let (mut prefixes, mut cut_mounts) = (0, 0);
        let most = states.iter().map(Model::len).max().unwrap() as u32;
        let (geometry, capabilities) = (fresh.geometry(), fresh.capabilities());
        let open = plan::<S>(&geometry, &capabilities, &self.options, most).unwrap().open;
        // Cuts of the mount that only reads are all alike.
        let mounting = u64::from(fresh.geometry().pages());
        for operation in mounting - 2..operations {
            for cut in Cut::ALL {
                let mut chip = fresh.clone();
                chip.cut_at(operation, cut);
                let torn = chip.fault_counters().torn;
                let (flushed, begun) = self.work::<S>(&mut chip, &changes);
                let tore = chip.fault_counters().torn > torn;
                chip.restore_power();
                let mut again = chip.clone();
                let start = chip.counters().operations();
                with::<S, _>(&mut again, &self.options, false, |_| ()).unwrap();
                let mount = again.counters().operations() - start;
                let writes = again.counters().rewrites - chip.counters().rewrites;
                assert!(mount - writes <= open.reads && writes <= open.programs, "{open:?}");
                let again = chip.clone();
                let seen = self.mounted::<S>(&mut chip, &states);
                let is_permitted = |at: &usize| (flushed..=begun).contains(at);
                assert!(
                    seen.iter().any(is_permitted),
                    "{operation} {cut:?}: it has {seen:?} of {begun} changes, {flushed} are flushed"
                );
                prefixes += usize::from(!seen.contains(&begun));
                // What it mounts to stays, whatever is cut meanwhile.
                assert_eq!(self.mounted::<S>(&mut chip, &states), seen);
                let step = if writes > 0 { 1 } else { mount.max(1) };
                for second in (0..mount).step_by(step as usize) {
                    let mut chip = again.clone();
                    chip.cut_at(second, cut);
                    let opened = with::<S, _>(&mut chip, &self.options, false, |_| ());
                    let was_cut = matches!(opened, Err(OpenError::Device(ChipError::PowerLost)));
                    cut_mounts += usize::from(was_cut);
                    chip.restore_power();
                    let found = self.mounted::<S>(&mut chip, &states);
                    assert_eq!(found, seen, "{operation} {cut:?} {second}");
                }
                if !tore && cut == Cut::ALL[0] {
                    break;
                }
            }
        }
        let counts = format!("{prefixes} prefixes, {cut_mounts} cuts in mounts");
        assert!(prefixes >= self.least && cut_mounts >= self.least, "{counts}");
    }
}

const SMALL: Run =
    Run { options: options(1), blocks: 48, before: 0, changes: 180, looks: 0, least: 10 };

/// Trees that are so high that buffers are below the root, and are emptied.
const HIGH_RUN: Run =
    Run { options: HIGH, blocks: 160, before: 400, changes: 40, looks: 4, least: 25 };

#[test]
fn bftl_holds_a_prefix() {
    Run { least: 200, ..SMALL }.hold_a_prefix::<Bftl>();
}

#[test]
fn bftl_holds_a_prefix_of_a_high_tree() {
    Run { before: 150, changes: 25, looks: 0, ..HIGH_RUN }.hold_a_prefix::<Bftl>();
}

#[test]
fn la_holds_a_prefix() {
    SMALL.hold_a_prefix::<LaTree>();
}

#[test]
fn la_holds_a_prefix_while_lookups_empty_its_buffers() {
    Run { looks: 8, ..SMALL }.hold_a_prefix::<LaTree>();
}

#[test]
fn la_holds_a_prefix_where_buffers_are_below_the_root() {
    HIGH_RUN.hold_a_prefix::<LaTree>();
}
