//! Random operations beside a `BTreeMap`, shrunk when they fail. A failure prints the seed.

use nandina::{Index, System};
use nandina_sim::{Chip, TINY};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::harness::*;

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Put(u32, u32),
    Remove(u32),
    Get(u32),
    Reopen,
}

/// Keys from a few narrow bands, so that nodes fill, split, become empty and are removed.
pub fn steps(length: usize) -> impl Strategy<Value = Vec<Step>> {
    let number = prop_oneof![0..40u32, 1_000..1_200u32, any::<u32>()];
    let step = prop_oneof![
        8 => (number.clone(), any::<u32>()).prop_map(|(number, version)| Step::Put(number, version)),
        5 => number.clone().prop_map(Step::Remove),
        2 => number.prop_map(Step::Get),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..length)
}

/// Does the steps on a chip and compares after each reopening and at the end.
pub fn replay<S: System>(case: &Case, steps: &[Step]) -> Outcome {
    let mut chip = Chip::new(suited::<S>(case.profile));
    let mut ram = case.ram::<S>();
    let mut model = Model::new();
    let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
    for &step in steps {
        match step {
            Step::Put(number, version) => {
                let (key, value) = (key(number), value(number, version));
                match index.insert(&key, &value) {
                    Ok(new) => {
                        if is_new(new) != Some(model.insert(key.to_vec(), value.to_vec()).is_none())
                        {
                            return Err(format!("insert of {number} answered new = {new:?}"));
                        }
                    }
                    // Refused: the model does not have the record either, and no other record may
                    // be lost.
                    Err(nandina::WriteError::Full { .. } | nandina::WriteError::TooHigh { .. }) => {
                    }
                    Err(error) => return Err(text(error)),
                }
            }
            Step::Remove(number) => {
                let removed = index.remove(&key(number)).map_err(text)?;
                if was_found(removed) != Some(model.remove(&key(number)[..]).is_some()) {
                    return Err(format!("remove of {number} answered {removed:?}"));
                }
            }
            Step::Get(number) => {
                let found = index.get(&key(number)).map_err(text)?.map(<[u8]>::to_vec);
                if found.as_ref() != model.get(&key(number)[..]) {
                    return Err(format!("get of {number} answered {found:?}"));
                }
            }
            Step::Reopen => {
                compare(&mut index, &model)?;
                drop(index);
                ram.fill(0x5A);
                index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
                compare(&mut index, &model)?;
            }
        }
    }
    compare(&mut index, &model)
}

struct RandomSteps {
    case: Case,
    length: usize,
    cases: u32,
}

impl Check for RandomSteps {
    fn run<S: System + 'static>(&self) -> Outcome {
        let share = Share::one_in(12);
        let cases = share.length(self.cases);
        let config = ProptestConfig { cases, failure_persistence: None, ..Default::default() };
        let seed = share.seed(seed());
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        TestRunner::new_with_rng(config, random)
            .run(&steps(self.length), |steps| {
                replay::<S>(&self.case, &steps).map_err(TestCaseError::fail)
            })
            .map_err(|error| format!("NANDINA_SEED={seed}: {error}"))
    }
}

#[test]
fn random_operations_equal_a_btree_map() {
    for_every_system(&RandomSteps { case: Case::new(SMALL), length: 1_500, cases: 60 });
}

#[test]
fn random_operations_on_a_tiny_chip_equal_a_btree_map() {
    for_every_system(&RandomSteps { case: Case::new(TINY), length: 300, cases: 100 });
}

struct FewestBuffers;

impl Check for FewestBuffers {
    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL);
        case.options.page_buffers = Some(S::DESCRIPTION.buffers_min);
        RandomSteps { case, length: 1_000, cases: 30 }.run::<S>()
    }
}

#[test]
fn the_fewest_page_buffers_are_enough() {
    for_every_system(&FewestBuffers);
}

struct ReopenAfterEach;

impl Check for ReopenAfterEach {
    fn run<S: System + 'static>(&self) -> Outcome {
        let steps: Vec<Step> = (0..300u32)
            .flat_map(|turn| {
                let number = turn.wrapping_mul(2_654_435_761) % 150;
                let step =
                    if turn % 3 == 2 { Step::Remove(number) } else { Step::Put(number, turn) };
                [step, Step::Reopen]
            })
            .collect();
        replay::<S>(&Case::new(TINY), &steps)
    }
}

#[test]
fn every_operation_survives_reopening() {
    for_every_system(&ReopenAfterEach);
}
