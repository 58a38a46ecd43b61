//! No call costs more than its plan says, and the plans are of the order of what calls cost.

use std::cell::Cell;
use std::collections::BTreeSet;

use nandina::flash::{Flash, Geometry, PageNumber, Reading};
use nandina::{Cost, Index, Options, Plan, System, WriteError, plan, ram_needed};
use nandina_lab::hand_on;
use nandina_lab::rivals::{Bftl, LaTree, MbTree};
use nandina_sim::{Chip, ChipError};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::{CHIP, HIGH, key_of, options};

/// A device that counts what an index asks of it: `erases` are pages that are given up.
struct Counted<'c> {
    chip: Chip,
    taken: &'c Cell<Cost>,
}

impl Counted<'_> {
    fn add(&self, change: impl FnOnce(&mut Cost)) {
        let mut taken = self.taken.get();
        change(&mut taken);
        self.taken.set(taken);
    }
}

impl Flash for Counted<'_> {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, program, overwrite, erase);

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.add(|taken| taken.reads += 1);
        self.chip.read(page, main, spare)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.add(|taken| taken.programs += 1);
        self.chip.rewrite(page, main, spare)
    }

    fn discard(&mut self, _: PageNumber) -> Result<(), ChipError> {
        self.add(|taken| taken.erases += 1);
        Ok(())
    }
}

/// The most that calls of each kind took.
#[derive(Clone, Copy, Default, Debug)]
struct Most {
    get: Cost,
    change: Cost,
    open: Cost,
}

/// Work on an index, each call of which is held against the plan.
struct Work<'c, S: System> {
    index: Index<'c, Counted<'c>, S>,
    taken: &'c Cell<Cost>,
    geometry: Geometry,
    options: Options,
    /// Keys that have a record.
    there: BTreeSet<u32>,
    /// The most records at once, and the plan for them.
    planned: (usize, Plan),
    most: Most,
    /// Records that were there when one was refused for the first time.
    held: Option<usize>,
    turn: u8,
}

fn planned<S: System>(geometry: &Geometry, options: &Options, records: usize) -> Plan {
    plan::<S>(geometry, &CHIP.capabilities, options, records as u32).unwrap()
}

fn noted(most: &mut Cost, taken: Cost, bound: Cost, what: &str) {
    let of = |cost: Cost| [cost.reads, cost.programs, cost.erases];
    let within = of(taken).into_iter().zip(of(bound)).all(|(taken, bound)| taken <= bound);
    assert!(within, "{what} took {taken:?}, {bound:?} planned");
    most.reads = most.reads.max(taken.reads);
    most.programs = most.programs.max(taken.programs);
    most.erases = most.erases.max(taken.erases);
}

impl<S: System> Work<'_, S> {
    fn plan(&mut self) -> Plan {
        if self.there.len() > self.planned.0 {
            let records = self.there.len();
            self.planned = (records, planned::<S>(&self.geometry, &self.options, records));
        }
        self.planned.1
    }

    fn insert(&mut self, number: u32) -> bool {
        let was_there = !self.there.insert(number);
        let bound = self.plan().change;
        self.taken.set(Cost::default());
        let key = key_of(number, self.options.key_bytes);
        self.turn = self.turn.wrapping_add(1);
        let done = self.index.insert(&key, &vec![self.turn; self.options.value_bytes]);
        noted(&mut self.most.change, self.taken.get(), bound, "an insert");
        match done {
            Ok(_) => true,
            Err(WriteError::Full { .. }) => {
                assert!(!was_there, "a replacement was refused");
                self.there.remove(&number);
                self.held = self.held.or(Some(self.there.len()));
                false
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    fn remove(&mut self, number: u32) {
        let bound = self.plan().change;
        self.taken.set(Cost::default());
        self.index.remove(&key_of(number, self.options.key_bytes)).unwrap();
        noted(&mut self.most.change, self.taken.get(), bound, "a removal");
        self.there.remove(&number);
    }

    fn get(&mut self, number: u32) {
        let bound = self.plan().get;
        self.taken.set(Cost::default());
        let found = self.index.get(&key_of(number, self.options.key_bytes)).unwrap();
        assert_eq!(found.is_some(), self.there.contains(&number));
        noted(&mut self.most.get, self.taken.get(), bound, "a lookup");
    }

    /// Reads records one after another.
    fn scan(&mut self, records: usize) {
        let bound = self.plan().get;
        let mut range = self.index.range(..).unwrap();
        for _ in 0..records {
            self.taken.set(Cost::default());
            range.next().unwrap();
            noted(&mut self.most.get, self.taken.get(), bound, "a step of a scan");
        }
    }

    fn flush(&mut self) {
        let bound = self.plan().change;
        self.taken.set(Cost::default());
        self.index.flush().unwrap();
        noted(&mut self.most.change, self.taken.get(), bound, "a flush");
    }
}

/// A device with so many blocks.
fn geometry(blocks: u32) -> Geometry {
    Geometry { blocks, ..CHIP.geometry }
}

/// Formats a device, does `work` on it, and opens it again. Returns the most that calls took.
fn work<S: System>(
    geometry: Geometry,
    options: Options,
    work: impl FnOnce(&mut Work<'_, S>),
) -> (Most, Option<usize>, Plan) {
    let taken = Cell::new(Cost::default());
    let mut ram = vec![0; ram_needed::<S>(&geometry, &options)];
    let profile = nandina::flash::Profile { geometry, ..CHIP };
    let flash = Counted { chip: Chip::new(profile), taken: &taken };
    let index = Index::format(flash, &options, &mut ram).unwrap();
    let planned = (1, planned::<S>(&geometry, &options, 1));
    let (there, most) = (BTreeSet::new(), Most::default());
    let mut of = Work::<S> {
        index,
        taken: &taken,
        geometry,
        options,
        there,
        planned,
        most,
        held: None,
        turn: 0,
    };
    work(&mut of);
    of.flush();
    let (mut most, held, plan) = (of.most, of.held, of.plan());
    let chip = of.index.close().chip;
    taken.set(Cost::default());
    let mut ram = vec![0; ram_needed::<S>(&geometry, &options)];
    let flash = Counted { chip, taken: &taken };
    drop(Index::<_, S>::open(flash, &options, &mut ram).unwrap());
    noted(&mut most.open, taken.get(), plan.open, "a mount");
    (most, held, plan)
}

/// Random inserts, replacements and removals, with lookups or without.
fn random<S: System>(of: &mut Work<'_, S>, seed: u64, keys: u32, turns: u32, looks: u32) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for turn in 0..turns {
        let number = random.random_range(0..keys);
        // The tree grows, is thinned out, and grows again.
        if random.random_range(0..10) < if turn % 1_000 < 600 { 8 } else { 3 } {
            of.insert(number);
        } else {
            of.remove(number);
        }
        if looks > 0 && turn % looks == 0 {
            of.get(random.random_range(0..keys));
        }
    }
    of.scan(200);
}

/// Inserts records in the order of this step until one is refused, then looks up and replaces.
fn fill<S: System>(of: &mut Work<'_, S>, step: u32) {
    let mut number = 0u32;
    while of.insert(number) {
        number = number.wrapping_add(step);
    }
    of.get(1);
    of.scan(200);
    let all: Vec<u32> = of.there.iter().copied().collect();
    for number in all.iter().step_by(3) {
        of.insert(*number);
    }
    of.get(2);
    for number in all.iter().step_by(2) {
        of.remove(*number);
    }
    of.get(3);
}

/// Changes records of other leaves in turn, then as many as can wait, and looks up what waits.
fn in_turn<S: System>(of: &mut Work<'_, S>, records: u32, step: u32) {
    for number in 0..records {
        assert!(of.insert(number));
        of.get(number);
    }
    for turn in 0..3 * records {
        of.insert((turn * step + turn * step / records) % records);
        if turn % 400 == 399 {
            of.flush();
        }
    }
    for looks in [400, 40, 400] {
        (0..looks).for_each(|_| of.get(records));
        (0..records / 2).for_each(|turn| assert!(of.insert(turn * step % records)));
    }
}

fn print(name: &str, (most, _, plan): &(Most, Option<usize>, Plan)) {
    let of = |cost: Cost| (cost.reads, cost.programs, cost.erases);
    let pair = |most, bound| format!("{:?} of {:?}", of(most), of(bound));
    println!("{name}, {} levels: get {}", plan.height, pair(most.get, plan.get));
    let rest = (pair(most.change, plan.change), pair(most.open, plan.open));
    println!("    change {}, open {}", rest.0, rest.1);
}

fn all<S: System>(name: &str) {
    for write_buffer in 0..=2 {
        let options = options(write_buffer);
        for looks in [0, 1] {
            let of = |of: &mut Work<'_, S>| random(of, 1, 1_500, 4_000, looks);
            print(
                &format!("{name} {write_buffer} random {looks}"),
                &work(geometry(256), options, of),
            );
            let high = Options { write_buffer, ..HIGH };
            let of = |of: &mut Work<'_, S>| random(of, 2, 400, 1_200, looks);
            print(&format!("{name} {write_buffer} high {looks}"), &work(geometry(256), high, of));
        }
        for step in [1, u32::MAX, 2_654_435_761] {
            let run = work::<S>(geometry(24), options, |of| fill(of, step));
            print(&format!("{name} {write_buffer} full {step}"), &run);
        }
        let run = work::<S>(geometry(480), options, |of| in_turn(of, 1_500, 17));
        print(&format!("{name} {write_buffer} in turn"), &run);
    }
}

/// Asserts that a bound is no more than so many times what calls of some kind took.
fn is_of_the_order(most: Cost, bound: Cost, reads: u64, programs: u64) {
    let is_near = |most: u64, bound: u64, times: u64| bound <= times.saturating_mul(most.max(1));
    let is_near =
        is_near(most.reads, bound.reads, reads) && is_near(most.programs, bound.programs, programs);
    assert!(is_near, "{most:?} of {bound:?}");
}

#[test]
fn no_call_of_bftl_costs_more_than_planned() {
    all::<Bftl>("bftl");
    // All units of a full buffer are of nodes whose lists are full.
    let (most, _, plan) = work::<Bftl>(geometry(480), options(1), |of| in_turn(of, 1_500, 17));
    is_of_the_order(most.get, plan.get, 6, 0);
    is_of_the_order(most.change, plan.change, 5, 5);
    is_of_the_order(most.open, plan.open, 3, u64::MAX);
}

#[test]
fn no_call_of_mb_costs_more_than_planned() {
    all::<MbTree>("mb");
    // A flush writes a page for each change; that each divides all nodes on its path is too rare.
    let (most, _, plan) = work::<MbTree>(geometry(480), options(1), |of| in_turn(of, 1_500, 17));
    is_of_the_order(most.get, plan.get, 5, 0);
    is_of_the_order(most.change, plan.change, 10, 18);
    is_of_the_order(most.open, plan.open, 1, u64::MAX);
}

#[test]
fn no_call_of_la_costs_more_than_planned() {
    all::<LaTree>("la");
    // Removals that change nothing wait in half of the device: a lookup reads all of them.
    let (most, _, plan) = work::<LaTree>(geometry(160), options(0), |of| {
        (0..400).for_each(|number| assert!(of.insert(10 * number)));
        (0..50).for_each(|_| of.get(1));
        (0..40_000).for_each(|turn| of.remove(10 * (turn * 997 % 4_000) + 1 + turn % 8));
        (0..10).for_each(|_| of.get(9));
    });
    is_of_the_order(most.get, plan.get, 3, u64::MAX);
    // Leaves in a third of the device are replaced as a whole.
    let (most, _, plan) = work::<LaTree>(geometry(160), options(0), |of| {
        for number in 0..4_000 {
            assert!(of.insert(number));
            of.get(number);
        }
        for _ in 0..2 {
            (0..5_500).for_each(|turn| assert!(of.insert(turn * 997 % 4_000)));
            (0..300).for_each(|_| of.get(4_000));
        }
    });
    is_of_the_order(most.get, plan.get, 13, 16);
    is_of_the_order(most.change, plan.change, 40, 15);
}

/// The most records for which a plan says that they fit.
fn capacity<S: System>(geometry: &Geometry, options: &Options) -> usize {
    let (mut few, mut many) = (0, 100_000);
    while many - few > 1 {
        let middle = (few + many) / 2;
        let fits = planned::<S>(geometry, options, middle).fits;
        if fits { few = middle } else { many = middle }
    }
    few
}

fn take_what_is_planned<S: System>() {
    for (blocks, options) in [24, 64].into_iter().flat_map(|blocks| {
        let of = (0..=2).map(options).chain([HIGH]);
        of.map(move |options| (blocks, options))
    }) {
        let capacity = capacity::<S>(&geometry(blocks), &options);
        for step in [1, u32::MAX, 2_654_435_761] {
            let (_, held, _) = work::<S>(geometry(blocks), options, |of| fill(of, step));
            let held = held.unwrap();
            // The device takes as many as planned, and twice as many if all leaves are full.
            let what = format!("{blocks} blocks {options:?}: {held} of {capacity}");
            assert!(held >= capacity && held <= 2 * capacity + 50, "{what}");
        }
    }
}

#[test]
fn a_device_takes_the_records_that_are_planned() {
    take_what_is_planned::<Bftl>();
    take_what_is_planned::<LaTree>();
    take_what_is_planned::<MbTree>();
}
