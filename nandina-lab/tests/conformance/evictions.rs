//! Which leaf a full write buffer writes: the one that the choice names, with all of its changes.
//!
//! What has not been written is lost with RAM. So an index that is opened on a copy of the chip
//! shows which changes were.

use nandina::store::Description;
use nandina::{Eviction, Index, Removed, System};
use nandina_sim::Chip;

use crate::harness::*;

/// The records that a flush has made durable at the beginning.
const RECORDS: u32 = 300;

fn case_of(eviction: Eviction, changes: u32) -> Case {
    let mut case = Case::new(LONG);
    (case.options.write_buffer, case.options.eviction) = (2, eviction);
    case.options.write_buffer_changes = Some(changes);
    case
}

/// Which of these records are as in `version` after the loss of RAM.
fn durable<S: System>(
    index: &Index<'_, &mut Chip, S>,
    case: &Case,
    numbers: &[u32],
    version: u32,
) -> Result<Vec<u32>, String> {
    let (mut chip, case) = ((**index.flash()).clone(), case.suited::<S>());
    let mut ram = case.ram::<S>();
    let mut copy = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
    let mut found = Vec::new();
    for &number in numbers {
        let held = copy.get(&key(number)).map_err(text)?;
        if held == Some(&value(number, version)[..]) {
            found.push(number);
        }
    }
    Ok(found)
}

struct Named;

impl Check for Named {
    fn concerns(&self, system: &Description) -> bool {
        system.has_evictions()
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        // One change of the lowest leaf, then one of the middle, then some of the highest.
        let (oldest, middle, most) = (3, 150, [290, 291, 292, 293]);
        let order = [oldest, middle].into_iter().chain(most).collect::<Vec<_>>();
        for eviction in [Eviction::Ibsf, Eviction::Mb, Eviction::All] {
            let case = case_of(eviction, order.len() as u32);
            with_index::<S, _>(&case, |index| {
                for number in 0..RECORDS {
                    index.insert(&key(number), &value(number, 0)).map_err(text)?;
                }
                index.flush().map_err(text)?;
                for &number in &order {
                    index.insert(&key(number), &value(number, 1)).map_err(text)?;
                }
                let written = durable(index, &case, &order, 1)?;
                // Four neighbours are in two leaves at most.
                let highest = written.iter().filter(|number| most.contains(number)).count();
                let is_right = match eviction {
                    Eviction::Ibsf => written == [oldest],
                    Eviction::Mb => highest == written.len() && highest >= 2,
                    _ => written == order,
                };
                if !is_right {
                    return Err(format!("{eviction:?} wrote {written:?} of {order:?}"));
                }
                // What waits is read, and a flush is the promise.
                for &number in &order {
                    let held = index.get(&key(number)).map_err(text)?;
                    if held != Some(&value(number, 1)[..]) {
                        return Err(format!("{eviction:?}: {number} is not read"));
                    }
                }
                index.flush().map_err(text)?;
                let written = durable(index, &case, &order, 1)?;
                if written == order { Ok(()) } else { Err(format!("flushed {written:?}")) }
            })?;
        }
        Ok(())
    }
}

#[test]
fn a_full_write_buffer_writes_the_leaf_that_the_choice_names() {
    for_every_system(&Named);
}

struct AsAModel;

impl Check for AsAModel {
    fn concerns(&self, system: &Description) -> bool {
        system.has_evictions()
    }

    /// Random inserts and removals, which split leaves and empty them, against a map.
    fn run<S: System + 'static>(&self) -> Outcome {
        for (eviction, changes) in [(Eviction::Ibsf, 7), (Eviction::Mb, 7), (Eviction::Mb, 30)] {
            let case = case_of(eviction, changes);
            with_index::<S, _>(&case, |index| {
                let (mut model, mut random) = (Model::new(), 1u32);
                for turn in 0..6_000 {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let (number, removes) = (random >> 16 & 511, turn / 1_500 % 2 == 1);
                    if removes && random >> 8 & 3 > 0 {
                        let found = index.remove(&key(number)).map_err(text)?;
                        let was_there = model.remove(&key(number)[..]).is_some();
                        if found != Removed::Buffered && (found == Removed::Found) != was_there {
                            return Err(format!("{eviction:?}, turn {turn}: {found:?}"));
                        }
                    } else {
                        index.insert(&key(number), &value(number, turn)).map_err(text)?;
                        model.insert(key(number).to_vec(), value(number, turn).to_vec());
                    }
                    if turn % 500 == 499 {
                        index.flush().map_err(text)?;
                    }
                }
                for number in 0..512 {
                    let held = index.get(&key(number)).map_err(text)?.map(<[u8]>::to_vec);
                    if held != model.get(&key(number)[..]).cloned() {
                        return Err(format!("{eviction:?}: {number} reads {held:?}"));
                    }
                }
                let mut violations = Vec::new();
                index.check(|violation| violations.push(violation)).map_err(text)?;
                if violations.is_empty() { Ok(()) } else { Err(format!("{violations:?}")) }
            })?;
        }
        Ok(())
    }
}

#[test]
fn whichever_leaf_is_written_the_index_is_as_a_map() {
    for_every_system(&AsAModel);
}
