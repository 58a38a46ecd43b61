//! Every mapping of the registry against a plain vector, under random changes.
//!
//! After each step the superseded runs, the content, the accounts and the mapping's own check are
//! compared. A refused change must have changed nothing. `PROPTEST_CASES` sets the cases.
//!
//! Mappings that are broken on purpose (`canaries`) must be found by the same comparison.

mod canaries;
mod numbers;

use nandina_ftl::mapping::registry::Entry;
use nandina_ftl::mapping::{Extent, MAPPINGS, Mapping, Piece, Refusal, Run, Space};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use numbers::Numbers;

/// A step of a test. Places are drawn from all of `u16` and scaled to the space.
#[derive(Clone, Debug)]
struct Step {
    kind: Kind,
    place: Place,
    at: u16,
    length: u16,
    /// Whether an update continues the physical units of the last one.
    in_a_row: bool,
    physical: u16,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Update,
    Remove,
    LookUp,
}

/// Where an extent lies.
#[derive(Clone, Copy, Debug)]
enum Place {
    Anywhere,
    Short,
    OneUnit,
    Whole,
    AtTheBegin,
    AtTheEnd,
    /// As the last extent, behind it, before it, in it, around it.
    Same,
    Behind,
    Before,
    Inside,
    Around,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    use Place::*;
    let kind =
        prop_oneof![6 => Just(Kind::Update), 2 => Just(Kind::Remove), 2 => Just(Kind::LookUp)];
    let place = prop_oneof![
        4 => Just(Anywhere), 12 => Just(Short), 8 => Just(OneUnit), 1 => Just(Whole),
        1 => Just(AtTheBegin), 1 => Just(AtTheEnd), 2 => Just(Same), 4 => Just(Behind),
        4 => Just(Before), 2 => Just(Inside), 2 => Just(Around),
    ];
    let step = (kind, place, any::<u16>(), any::<u16>(), any::<bool>(), any::<u16>()).prop_map(
        |(kind, place, at, length, in_a_row, physical)| Step {
            kind,
            place,
            at,
            length,
            in_a_row,
            physical,
        },
    );
    prop::collection::vec(step, 1..most)
}

impl Step {
    fn extent(&self, logical: u32, last: Extent) -> Extent {
        let scale = |number: u16, most: u32| ((u64::from(number) * u64::from(most)) >> 16) as u32;
        let at = scale(self.at, logical);
        let short = 1 + scale(self.length, logical.min(12));
        let clip = |start: u32, end: u32| {
            let start = start.min(logical - 1);
            Extent::between(start, end.clamp(start + 1, logical))
        };
        match self.place {
            Place::Anywhere => clip(at, at + 1 + scale(self.length, logical - at)),
            Place::Short => clip(at, at + short),
            Place::OneUnit => clip(at, at + 1),
            Place::Whole => clip(0, logical),
            Place::AtTheBegin => clip(0, short),
            Place::AtTheEnd => clip(logical.saturating_sub(short), logical),
            Place::Same => last,
            Place::Behind => clip(last.end(), last.end() + short),
            Place::Before => clip(last.start.saturating_sub(short), last.start),
            Place::Inside => clip(last.start + last.length / 3, last.end() - last.length / 3),
            Place::Around => clip(last.start.saturating_sub(short), last.end() + short),
        }
    }
}

type Model = Vec<Option<u32>>;

/// The units of runs or pieces one by one, so that their division does not count.
fn units(
    logical: u32,
    length: u32,
    physical: Option<u32>,
) -> impl Iterator<Item = (u32, Option<u32>)> {
    (0..length).map(move |at| (logical + at, physical.map(|physical| physical + at)))
}

fn compare(map: &dyn Mapping, model: &Model) -> Result<(), TestCaseError> {
    let mut found: Model = vec![None; model.len()];
    let mut end = 0;
    let mut rises = true;
    map.walk(&mut |run| {
        rises &= run.logical >= end;
        end = run.end();
        for (unit, physical) in units(run.logical, run.length, Some(run.physical)) {
            found[unit as usize] = physical;
        }
    });
    prop_assert!(rises, "runs of a walk must rise");
    prop_assert_eq!(&found, model);
    let bytes = map.bytes();
    prop_assert!(bytes.used <= bytes.peak && bytes.peak <= bytes.reserved, "{:?}", bytes);
    map.check().map_err(|broken| TestCaseError::fail(broken.0))
}

/// Runs the steps and returns how many changes were refused.
fn run(entry: &Entry, space: Space, bytes: usize, steps: &[Step]) -> Result<usize, TestCaseError> {
    let mut memory = vec![0; bytes];
    let mut map = match (entry.build)(space, &mut memory) {
        Ok(map) => map,
        Err(Refusal::Full { needed }) => {
            prop_assert!(needed > bytes, "{} bytes suffice, there are {}", needed, bytes);
            return Ok(0);
        }
        Err(refusal) => return Err(TestCaseError::fail(refusal.to_string())),
    };
    let mut model: Model = vec![None; space.logical as usize];
    let mut last = Extent::new(0, 1);
    let mut log = 0;
    let mut refused = 0;
    for step in steps {
        let extent = step.extent(space.logical, last);
        last = extent;
        let range = extent.start as usize..extent.end() as usize;
        let mut passed = Vec::new();
        if let Kind::LookUp = step.kind {
            map.look_up(extent, &mut |piece| {
                passed.extend(units(piece.logical, piece.length, piece.physical));
            })
            .unwrap();
            let expected: Vec<_> = (extent.start..).zip(model[range].iter().copied()).collect();
            prop_assert_eq!(passed, expected);
            continue;
        }
        let most = space.physical - extent.length;
        let scattered = ((u64::from(step.physical) * u64::from(most + 1)) >> 16) as u32;
        let physical = if step.in_a_row && log <= most { log } else { scattered };
        let new = matches!(step.kind, Kind::Update).then_some(physical);
        let admitted = map.admits(extent);
        let pass = &mut |run: Run| {
            passed.extend(units(run.logical, run.length, Some(run.physical)));
        };
        let result = match new {
            Some(physical) => map.update(extent, physical, pass),
            None => map.remove(extent, pass),
        };
        if new.is_some() {
            prop_assert_eq!(admitted, result);
        }
        prop_assert!(admitted.is_err() || result.is_ok());
        match result {
            Ok(()) => {
                let old = (extent.start..).zip(model[range.clone()].iter().copied());
                let expected: Vec<_> = old.filter(|(_, physical)| physical.is_some()).collect();
                prop_assert_eq!(passed, expected);
                for (at, place) in (0..).zip(&mut model[range]) {
                    *place = new.map(|physical| physical + at);
                }
                log = new.map_or(log, |physical| physical + extent.length);
            }
            Err(Refusal::Full { needed }) => {
                refused += 1;
                prop_assert!(passed.is_empty(), "a refused change passed runs");
                prop_assert!(needed > bytes, "{} bytes suffice, there are {}", needed, bytes);
            }
            Err(refusal) => return Err(TestCaseError::fail(refusal.to_string())),
        }
        compare(&*map, &model)?;
    }
    Ok(refused)
}

/// Runs random steps on a mapping.
fn one_mapping(
    runner: &mut TestRunner,
    entry: &Entry,
    space: Space,
    most: usize,
    bytes: usize,
) -> Result<(), TestError<Vec<Step>>> {
    runner.run(&steps(most), |steps| run(entry, space, bytes, &steps).map(|_| ()))
}

/// Runs random steps on every mapping, in the memory that `bytes` gives it.
fn every_mapping(spaces: &[Space], most: usize, bytes: impl Fn(&Entry, Space) -> usize) {
    for entry in MAPPINGS {
        for &space in spaces {
            let config = Config { failure_persistence: None, ..Config::default() };
            // Large spaces are walked after each step, which takes longest.
            let cases = config.cases.div_ceil(if space.logical > 1000 { 32 } else { 8 });
            let mut runner = TestRunner::new(Config { cases, ..config });
            let bytes = bytes(entry, space);
            if let Err(error) = one_mapping(&mut runner, entry, space, most, bytes) {
                panic!("{} on {space:?}: {error}", entry.name);
            }
        }
    }
}

const SMALL: Space = Space { logical: 64, physical: 1000 };
const ODD: Space = Space { logical: 301, physical: u32::MAX };
const LARGE: Space = Space { logical: 4000, physical: 1 << 28 };

#[test]
fn every_mapping_equals_a_vector() {
    every_mapping(&[SMALL, ODD], 60, |entry, space| (entry.memory)(space, 600));
}

#[test]
fn every_mapping_equals_a_vector_over_many_leaves() {
    every_mapping(&[LARGE], 120, |entry, space| (entry.memory)(space, 4000));
}

#[test]
fn a_full_mapping_refuses_and_changes_nothing() {
    every_mapping(&[SMALL, LARGE], 60, |entry, space| (entry.memory)(space, 12));
}

#[test]
fn the_smallest_spaces_hold_what_they_can() {
    for logical in [1, 2, 3] {
        let space = Space { logical, physical: 3 };
        every_mapping(&[space], 12, |entry, space| (entry.memory)(space, 600));
    }
}

/// The same steps on every day, 64 cases of them.
fn fixed_runner() -> TestRunner {
    let config = Config {
        cases: 64,
        max_shrink_iters: 10_000,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn canaries_are_caught_and_shrunk_to_the_steps_that_they_need() {
    for canary in canaries::CANARIES {
        let bytes = (canary.memory)(SMALL, 600);
        let found = one_mapping(&mut fixed_runner(), canary, SMALL, 60, bytes);
        let Err(TestError::Fail(reason, steps)) = found else {
            panic!("{} is not caught: {found:?}", canary.name);
        };
        println!("{}: {} steps, {reason}", canary.name, steps.len());
        // Two changes make each of them wrong; a shrinker may end with a few more.
        assert!((2..=6).contains(&steps.len()), "{}: {steps:?}", canary.name);
        run(canary, SMALL, bytes, &steps).unwrap_err();
        for entry in MAPPINGS {
            let refused = run(entry, SMALL, (entry.memory)(SMALL, 600), &steps).unwrap();
            assert_eq!(refused, 0, "{}", entry.name);
        }
    }
}

#[test]
fn algorithm_4_as_it_is_meant_passes_where_its_printed_lines_fail() {
    let entry = &canaries::AS_MEANT;
    let bytes = (entry.memory)(SMALL, 600);
    one_mapping(&mut fixed_runner(), entry, SMALL, 60, bytes).unwrap();
}

#[test]
fn what_lies_outside_of_the_space_is_refused() {
    for entry in MAPPINGS {
        let mut memory = vec![0; (entry.memory)(SMALL, 600)];
        let mut map = (entry.build)(SMALL, &mut memory).unwrap();
        for extent in
            [Extent::new(0, 0), Extent::new(64, 1), Extent::new(60, 5), Extent::new(9, u32::MAX)]
        {
            assert_eq!(map.look_up(extent, &mut |_| ()), Err(Refusal::Outside));
            assert_eq!(map.update(extent, 0, &mut |_| ()), Err(Refusal::Outside));
            assert_eq!(map.remove(extent, &mut |_| ()), Err(Refusal::Outside));
            assert_eq!(map.admits(extent), Err(Refusal::Outside));
        }
        for physical in [999, 1000, u32::MAX] {
            let refused = map.update(Extent::new(0, 2), physical, &mut |_| ());
            assert_eq!(refused, Err(Refusal::Physical), "{}", entry.name);
        }
        map.update(Extent::new(0, 2), 998, &mut |_| ()).unwrap();
    }
}

#[test]
fn every_mapping_has_a_name_of_its_own() {
    for (at, entry) in MAPPINGS.iter().enumerate() {
        assert!(MAPPINGS[..at].iter().all(|other| other.name != entry.name));
        assert!(!entry.line.is_empty() && !entry.section.is_empty());
        let mut memory = vec![0; (entry.memory)(SMALL, 600)];
        let mut found = None;
        let lent = (entry.lend)(SMALL, &mut memory, &mut |map| {
            map.update(Extent::new(3, 2), 7, &mut |_| {}).unwrap();
            map.look_up(Extent::new(4, 1), &mut |piece| found = piece.physical).unwrap();
        });
        assert_eq!((lent, found), (Ok(()), Some(8)), "{}", entry.name);
    }
}

/// A stream of changes: an extent, and whether it is written.
type Stream = fn(&mut Numbers, u32, u32) -> (Extent, bool);

/// Streams whose maps differ in form: dense, sparse, rising, shrinking, mixed.
const STREAMS: &[(&str, Stream)] = &[
    ("units at random", |n, _, space| (Extent::new(n.below(space), 1), true)),
    ("sparse", |n, _, space| (Extent::new(n.below(space / 8) * 8, 1 + n.below(3)), true)),
    ("touching", |n, _, space| (Extent::new(n.below(space / 8) * 8, 8), true)),
    ("rising", |_, turn, space| (Extent::new(turn * 5 % (space - 8), 1 + turn % 4), true)),
    ("three rising", |_, turn, space| {
        (Extent::new(turn % 3 * (space / 3) + turn * 2 % (space / 3 - 8), 1 + turn % 2), true)
    }),
    ("written and removed", |n, _, space| {
        (Extent::new(n.below(space - 8), 1 + n.below(8)), n.below(5) < 3)
    }),
    ("all sizes", |n, _, space| {
        let most = 1 << n.below(12);
        let start = n.below(space - 1);
        (Extent::new(start, (1 + n.below(most)).min(space - start)), n.below(8) > 0)
    }),
    ("units, then long ones", |n, turn, space| {
        let most = if turn % 1800 < 1200 { 1 } else { 60 };
        (Extent::new(n.below(space - 64), most + n.below(3)), true)
    }),
];

/// Runs every stream on every mapping, in memory for `runs` runs; returns how many were refused.
fn long_runs(turns: u32, runs: usize) -> usize {
    let space = Space { logical: 12_000, physical: (1 << 28) - 1 };
    let mut refused = 0;
    for (entry, (name, stream)) in
        MAPPINGS.iter().flat_map(|entry| STREAMS.iter().map(move |stream| (entry, stream)))
    {
        let mut memory = vec![0; (entry.memory)(space, runs)];
        let mut map = (entry.build)(space, &mut memory).unwrap();
        let mut model: Model = vec![None; space.logical as usize];
        let mut numbers = Numbers(9);
        for turn in 0..turns {
            let (extent, is_write) = stream(&mut numbers, turn, space.logical);
            let range = extent.start as usize..extent.end() as usize;
            let physical = numbers.below(1 << 27);
            let mut passed = Vec::new();
            let pass = &mut |run: Run| {
                passed.extend(units(run.logical, run.length, Some(run.physical)));
            };
            let result = match is_write {
                true => map.update(extent, physical, pass),
                false => map.remove(extent, pass),
            };
            if result.is_ok() {
                let old = (extent.start..).zip(model[range.clone()].iter().copied());
                let expected: Vec<_> = old.filter(|(_, physical)| physical.is_some()).collect();
                assert_eq!(passed, expected, "{}, {name}, turn {turn}", entry.name);
                for (at, place) in (0..).zip(&mut model[range]) {
                    *place = is_write.then_some(physical + at);
                }
            } else {
                refused += 1;
                assert!(passed.is_empty(), "{}, {name}: a refused change passed runs", entry.name);
            }
            if turn % 400 == 399
                && let Err(error) = compare(&*map, &model)
            {
                panic!("{}, {name}, turn {turn}: {error}", entry.name);
            }
        }
    }
    refused
}

#[test]
fn long_runs_equal_a_vector() {
    assert_eq!(long_runs(2400, 30_000), 0);
}

#[test]
fn long_runs_in_too_little_memory_lose_nothing() {
    assert!(long_runs(800, 250) > 1000);
}

/// Mappings whose memory rises with the units of an extent: too large on extents of 2^31 units.
const UNIT_BY_UNIT: &[&str] = &["page", "page-2", "demand", "learned", "learned-4"];

/// Runs joined where they continue one another, so that mappings can be compared.
fn joined(mut walk: impl FnMut(&mut dyn FnMut(Run))) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    walk(&mut |run| match runs.last_mut() {
        Some(last) if last.continues_to(&run) => last.length += run.length,
        _ => runs.push(run),
    });
    runs
}

#[test]
fn mappings_agree_on_the_largest_spaces() {
    for logical in [1 << 31, u32::MAX] {
        let space = Space { logical, physical: u32::MAX };
        let lists = |entry: &&Entry| !UNIT_BY_UNIT.contains(&entry.name);
        let mut expected = None;
        for entry in MAPPINGS.iter().filter(lists) {
            let mut memory = vec![0; (entry.memory)(space, 3000)];
            let mut map = match (entry.build)(space, &mut memory) {
                Err(Refusal::Space { logical_max }) if logical > logical_max => continue,
                map => map.unwrap(),
            };
            let mut numbers = Numbers(4);
            let mut all = Vec::new();
            for turn in 0..1500 {
                let length = (1u32 << numbers.below(if turn % 50 == 0 { 32 } else { 12 })).max(1);
                let length = length.min(logical - 1) - numbers.below(length.min(5));
                let start = match turn % 7 {
                    0 => 0,
                    1 => logical - length,
                    _ => numbers.below(u32::MAX >> 1) % (logical - length),
                };
                let physical = numbers.below(1 << 30).min(u32::MAX - length);
                let extent = Extent::new(start, length);
                all.extend(joined(|pass| match turn % 5 {
                    4 => map.remove(extent, pass).unwrap(),
                    _ => map.update(extent, physical, pass).unwrap(),
                }));
                let find = |pass: &mut dyn FnMut(Run)| {
                    let found = &mut |piece: Piece| {
                        piece.run().into_iter().for_each(&mut *pass);
                    };
                    map.look_up(Extent::new(start / 2, length), found).unwrap();
                };
                all.extend(joined(find));
            }
            map.check().unwrap_or_else(|broken| panic!("{}: {broken}", entry.name));
            all.extend(joined(|pass| map.walk(pass)));
            let expected = expected.get_or_insert_with(|| all.clone());
            assert!(*expected == all, "{} of {logical} units differs", entry.name);
        }
        assert!(expected.is_some_and(|runs| runs.len() > 1000));
    }
}
