//! After cuts at every chip operation an index holds a prefix of the changes.
//!
//! It has all changes up to the last flush at least. The mount is cut, too, at each of its
//! operations, and every later mount finds the same prefix.

use nandina::{OpenError, System, WriteError, key};
use nandina_lab::rivals::Bftl;
use nandina_sim::{Chip, ChipError, Cut};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::{Model, chip, contents, options, with};

/// Changes from one flush to the next.
const FLUSH_TURNS: usize = 23;

/// A change of a record, or its removal.
type Change = (u32, Option<[u8; 12]>);

/// Many inserts, so that nodes are divided, and then more removals.
fn changes() -> Vec<Change> {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let change = |turn: u8| {
        let comes = random.random_range(0..10) < if turn < 110 { 9 } else { 2 };
        (random.random_range(0..90), comes.then_some([turn; 12]))
    };
    (0..180).map(change).collect()
}

/// The states after none, one and more of the changes.
fn states(changes: &[Change]) -> Vec<Model> {
    let mut states = vec![Model::new()];
    for (number, value) in changes {
        let mut next = states[states.len() - 1].clone();
        let key = key::from_u32(*number).to_vec();
        match value {
            Some(value) => drop(next.insert(key, value.to_vec())),
            None => drop(next.remove(&key)),
        }
        states.push(next);
    }
    states
}

/// Makes the changes until power fails. Returns how many were flushed, and how many were begun.
fn work<S: System>(chip: &mut Chip, changes: &[Change], looks: bool) -> (usize, usize) {
    let (mut flushed, mut begun) = (0, 0);
    let opened = with::<S, _>(chip, &options(1), false, |index| {
        for (at, (number, value)) in changes.iter().enumerate() {
            begun = at + 1;
            let key = key::from_u32(*number);
            let mut done = match value {
                Some(value) => index.insert(&key, value).map(drop),
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
            if looks && index.get(&key).is_err() {
                return;
            }
        }
    });
    assert!(matches!(opened, Ok(()) | Err(OpenError::Device(ChipError::PowerLost))), "{opened:?}");
    (flushed, begun)
}

/// Mounts, and returns which states the index may be in.
fn mounted<S: System>(chip: &mut Chip, states: &[Model]) -> Vec<usize> {
    let found = with::<S, _>(chip, &options(1), false, contents).unwrap();
    (0..states.len()).filter(|&at| states[at] == found).collect()
}

/// Cuts the work of `S` everywhere, and each mount after a cut that tore what was written.
fn hold_a_prefix<S: System>(looks: bool) {
    let changes = changes();
    let states = states(&changes);
    let mut fresh = chip(64);
    with::<S, _>(&mut fresh, &options(1), true, |_| ()).unwrap();
    let mut whole = fresh.clone();
    let start = whole.counters().operations();
    assert_eq!(work::<S>(&mut whole, &changes, looks).1, changes.len());
    let operations = whole.counters().operations() - start;
    let (mut prefixes, mut cut_mounts) = (0, 0);
    for operation in 0..operations {
        for cut in Cut::ALL {
            let mut chip = fresh.clone();
            chip.cut_at(operation, cut);
            let torn = chip.fault_counters().torn;
            let writes = chip.counters().rewrites;
            let (flushed, begun) = work::<S>(&mut chip, &changes, looks);
            let tore = chip.fault_counters().torn > torn;
            let wrote = chip.counters().rewrites > writes;
            chip.restore_power();
            let again = chip.clone();
            let start = chip.counters().operations();
            let seen = mounted::<S>(&mut chip, &states);
            let mount = chip.counters().operations() - start;
            let is_permitted = |at: &usize| (flushed..=begun).contains(at);
            assert!(
                seen.iter().any(is_permitted),
                "{operation} {cut:?}: it has {seen:?} of {begun} changes, {flushed} were flushed"
            );
            prefixes += usize::from(!seen.contains(&begun));
            // What it mounts to stays, whatever is cut meanwhile.
            assert_eq!(mounted::<S>(&mut chip, &states), seen);
            let step = if tore { 1 } else { mount };
            for second in (0..mount).step_by(step.max(1) as usize) {
                let mut chip = again.clone();
                chip.cut_at(second, cut);
                let opened = with::<S, _>(&mut chip, &options(1), false, |_| ());
                let was_cut = matches!(opened, Err(OpenError::Device(ChipError::PowerLost)));
                cut_mounts += usize::from(was_cut);
                chip.restore_power();
                assert_eq!(mounted::<S>(&mut chip, &states), seen, "{operation} {cut:?} {second}");
            }
            if !tore && !wrote {
                // Cuts of a read are all alike.
                break;
            }
        }
    }
    assert!(prefixes > 500 && cut_mounts > 500, "{prefixes} prefixes, {cut_mounts} cuts in mounts");
}

#[test]
fn bftl_holds_a_prefix() {
    hold_a_prefix::<Bftl>(false);
}
