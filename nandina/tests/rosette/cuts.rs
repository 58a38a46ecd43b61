//! Power is cut at every operation that changes the chip, and again in the mount after that.

use nandina::flash::{Geometry, Profile};
use nandina::store::Rosette;
use nandina::{Index, OpenError, Options, WriteError, key};
use nandina_sim::{Chip, ChipError, Cut, Faults, TINY};

use crate::ways::{Compared, Model, Random, content, ram};

/// A chip on which a trail tells of four pages, and a block has more.
const SHORT: Profile =
    Profile { geometry: Geometry { blocks: 16, pages_per_block: 7, ..TINY.geometry }, ..TINY };

/// Records of which few fit in a leaf, so that leaves divide and join often.
const OPTIONS: Options = Options { checkpoints: Some(2), ..Options::new(4, 60) };

/// A change of a record.
#[derive(Clone, Copy, Debug)]
enum Change {
    Put(u32, u8),
    Remove(u32),
}

impl Change {
    fn apply(self, model: &mut Model) {
        match self {
            Self::Put(number, value) => {
                model.insert(key::from_u32(number).to_vec(), vec![value; 60]);
            }
            Self::Remove(number) => {
                model.remove(&key::from_u32(number)[..]);
            }
        }
    }

    fn make(self, index: &mut Index<'_, &mut Chip, Rosette>) -> Result<(), WriteError<ChipError>> {
        match self {
            Self::Put(number, value) => {
                index.insert(&key::from_u32(number), &[value; 60]).map(drop)
            }
            Self::Remove(number) => index.remove(&key::from_u32(number)).map(drop),
        }
    }
}

/// Inserts without order, values that are replaced, and removals.
fn changes(seed: u64, count: u32) -> Vec<Change> {
    let mut random = Random::new(seed);
    let change = |turn: u32| {
        let number = random.below(70);
        let puts = if turn < count / 2 { 7 } else { 3 };
        if random.below(8) < puts {
            Change::Put(number, turn as u8)
        } else {
            Change::Remove(number)
        }
    };
    (0..count).map(change).collect()
}

/// Opens the index, or `None` if power is lost meanwhile.
fn opened<'b>(chip: &'b mut Chip, ram: &'b mut [u8]) -> Option<Index<'b, &'b mut Chip, Rosette>> {
    match Index::<_, Rosette>::open(chip, &OPTIONS, ram) {
        Ok(index) => Some(index),
        Err(OpenError::Device(ChipError::PowerLost)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Makes changes with a cut at this change of the chip.
///
/// Returns the states that may be found after it, or `None` if power lasted.
fn run(chip: &mut Chip, changes: &[Change], before: &Model) -> Option<[Model; 2]> {
    let mut ram = ram(chip, &OPTIONS);
    let mut model = before.clone();
    let Some(mut index) = opened(chip, &mut ram) else { return Some([model.clone(), model]) };
    for change in changes {
        let mut after = model.clone();
        change.apply(&mut after);
        match change.make(&mut index) {
            Ok(()) => model = after,
            Err(WriteError::Device(ChipError::PowerLost)) => return Some([model, after]),
            Err(error) => panic!("{change:?}: {error}"),
        }
    }
    None
}

/// Cuts at every change of the chip, in each way, and at every `step`-th one of the next session.
fn cut_everywhere(seed: u64, unstable_pages: u32, step: usize) -> (Compared, u32) {
    let (mut compared, mut cuts) = (Compared::default(), 0);
    let changes = changes(seed, 150);
    let (first, later) = changes.split_at(90);
    let mut whole = Chip::with_seed(SHORT, seed);
    let (mut memory, mut model) = (ram(&whole, &OPTIONS), Model::new());
    {
        let mut index = Index::<_, Rosette>::format(&mut whole, &OPTIONS, &mut memory).unwrap();
        for change in first {
            change.make(&mut index).unwrap();
            change.apply(&mut model);
        }
    }
    whole.set_faults(Faults { unstable_pages, ..Faults::NONE });
    for kind in Cut::ALL {
        for at in 0.. {
            let mut chip = whole.clone();
            chip.cut_at_change(at, kind);
            let Some(states) = run(&mut chip, later, &model) else { break };
            cuts += 1;
            chip.restore_power();
            compared.compare(&chip, &OPTIONS);
            // Which of the two states counts is decided by the first mount that is not cut.
            for second in (0..).skip(at as usize % step).step_by(step) {
                let mut chip = chip.clone();
                chip.cut_at_change(second, Cut::ALL[(second as usize / step) % Cut::ALL.len()]);
                let found =
                    opened(&mut chip, &mut memory).and_then(|mut index| content(&mut index));
                let lasted = chip.has_power();
                chip.restore_power();
                cuts += u32::from(!lasted);
                compared.compare(&chip, &OPTIONS);
                let found = found.filter(|_| lasted).unwrap_or_else(|| {
                    content(&mut opened(&mut chip, &mut memory).unwrap()).unwrap()
                });
                assert!(states.contains(&found), "cut {at} {kind:?}, then {second}");
                compared.compare(&chip, &OPTIONS);
                let mut index = opened(&mut chip, &mut memory).unwrap();
                let mut violations = 0;
                index.check(|_| violations += 1).unwrap();
                assert_eq!(violations, 0, "cut {at} {kind:?}, then {second}");
                if lasted {
                    break;
                }
            }
        }
    }
    println!("{cuts} cuts: {compared:?}");
    (compared, cuts)
}

#[test]
fn after_every_cut_and_a_second_one_all_ways_lead_to_one_directory() {
    let (compared, cuts) = cut_everywhere(1, 0, 3);
    assert!(cuts > 1_000 && compared.behind * 2 > compared.mounts, "{cuts} cuts, {compared:?}");
    assert!(compared.shorter * 4 > compared.behind, "{compared:?}");
    assert_eq!(compared.unsteady, 0);
}

#[test]
fn after_every_cut_that_leaves_unstable_pages_they_do_as_well() {
    let (compared, cuts) = cut_everywhere(2, 1, 5);
    assert!(cuts > 1_000 && compared.behind * 2 > compared.mounts, "{cuts} cuts, {compared:?}");
    assert!(compared.unsteady * 50 < compared.mounts, "{compared:?}");
}
