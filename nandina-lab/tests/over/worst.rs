//! No call of a system above an FTL costs more of the chip than planned.

use nandina::flash::Profile;
use nandina::flash::profile::SLC;
use nandina::store::Visitor;
use nandina::{Cost, Options, Plan, System, plan};
use nandina_lab::layer::{Layer, Room};
use nandina_lab::run::Setup;
use nandina_lab::subject::{Subject, system};
use nandina_lab::systems::visit_any;
use nandina_sim::{Chip, Counters};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A chip that these records make every FTL collect or merge on.
const CHIP: Profile = SLC.with_blocks(40);

const RECORDS: u32 = 1_500;

/// The plan for a system, above an FTL, and what a call costs below it.
struct Planned<'p> {
    device: &'p Profile,
    options: Options,
}

impl Visitor for Planned<'_> {
    type Output = (Plan, &'static nandina::store::Description);

    fn visit<S: System + 'static>(self) -> Self::Output {
        let Profile { geometry, capabilities, .. } = self.device;
        let plan = plan::<S>(geometry, capabilities, &self.options, RECORDS).unwrap();
        (plan, &S::DESCRIPTION)
    }
}

fn within(taken: Cost, bound: Cost, what: &str) {
    let of = |cost: Cost| [cost.reads, cost.programs, cost.erases];
    let within = of(taken).into_iter().zip(of(bound)).all(|(taken, bound)| taken <= bound);
    assert!(within, "{what} took {taken:?}, {bound:?} planned");
}

/// Idle steps until one writes nothing.
fn rest(subject: &mut dyn Subject) {
    for _ in 0..1_000 {
        let before = subject.chip().counters();
        subject.idle_step().unwrap();
        let Counters { programs, erases, .. } = subject.chip().counters();
        if (programs, erases) == (before.programs, before.erases) {
            return;
        }
    }
    panic!("idle steps do not end");
}

/// Random work of a system on a chip below an FTL. Returns the most that a change took.
fn no_call_exceeds_its_plan(key: &str, layer: &str, write_buffer: usize) {
    let mut layer = Layer::named(layer).unwrap();
    if layer.log_blocks().is_some() {
        layer = layer.with_log_blocks(4).unwrap();
    }
    let options = Options { write_buffer, ..Options::new(4, 60) };
    let size = layer.size(&CHIP).unwrap();
    let (plan, description) = visit_any(key, Planned { device: &size.profile, options }).unwrap();
    assert!(plan.fits, "{key}: {plan:?}");
    let below = layer.call_costs(&CHIP, &size, description);
    let (change, get) = (below.of(plan.change), below.of(plan.get));
    let rested = below.after_idle_steps(plan.change);

    let (mut chip, mut room) = (Chip::new(CHIP), Room::default());
    let mut disk = layer.open(&size, &mut chip, &mut room, true).unwrap();
    let setup = Setup { profile: size.profile, options, ram_bytes: None, layer: Some(layer) };
    let maker = system(key).unwrap();
    let mut ram = vec![0; maker.ram_bytes(&setup).unwrap()];
    let mut subject = maker.format_over(&setup, &mut disk, &mut ram).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut most = [Cost::default(); 2];
    for turn in 0..6_000u32 {
        let key_bytes = nandina::key::from_u32(random.random_range(0..RECORDS));
        let rests = rested.is_some() && turn % 40 == 2;
        if rests {
            rest(&mut *subject);
        }
        let before = subject.chip().counters();
        let kind = usize::from(turn % 4 == 0);
        match random.random_range(0..10) {
            _ if kind == 1 => drop(subject.get(&key_bytes).unwrap().is_some()),
            0..7 => drop(subject.insert(&key_bytes, &[turn as u8; 60]).unwrap()),
            7..9 => drop(subject.remove(&key_bytes).unwrap()),
            _ => subject.flush().unwrap(),
        }
        let taken = subject.chip().counters() - before;
        let taken = Cost { reads: taken.reads, programs: taken.programs, erases: taken.erases };
        let bound = if rests { rested.unwrap_or(change) } else { change };
        within(taken, [bound, get][kind], &format!("{key} over {}, {turn}", layer.name()));
        most[kind].reads = most[kind].reads.max(taken.reads);
        most[kind].programs = most[kind].programs.max(taken.programs);
        most[kind].erases = most[kind].erases.max(taken.erases);
    }
    // Nodes vanish.
    for record in 0..RECORDS {
        let before = subject.chip().counters();
        subject.remove(&nandina::key::from_u32(record)).unwrap();
        let taken = subject.chip().counters() - before;
        let taken = Cost { reads: taken.reads, programs: taken.programs, erases: taken.erases };
        within(taken, change, &format!("{key} over {}, without {record}", layer.name()));
    }
    println!("{key} over {}: change {:?} of {change:?}", layer.name(), most[0]);
    println!("    get {:?} of {get:?}", most[1]);
    assert!(most[0].programs > 1 && most[1].reads > 0, "{key}: {most:?}");
    // What is given up is trimmed, which is a part of the bound.
    let trims = subject.ftl().unwrap().statistics.host_trims;
    assert!(trims > 0, "{key}: {trims} trims");
}

const LAYERS: [&str; 7] = [
    "ftl:page",
    "ftl:block",
    "ftl:bast",
    "ftl:fast",
    "ftl:dipl",
    "ftl:fast with 2 buffer blocks",
    "ftl:fast with 2 buffer blocks as printed",
];

#[test]
fn no_call_of_a_rival_exceeds_its_plan() {
    for layer in LAYERS {
        for key in ["bftl", "la", "mb"] {
            no_call_exceeds_its_plan(key, layer, 0);
        }
    }
    for key in ["bftl", "la", "mb"] {
        no_call_exceeds_its_plan(key, "ftl:fast", 1);
    }
}

#[test]
fn no_call_of_a_system_of_the_list_exceeds_its_plan() {
    for layer in LAYERS {
        for key in ["btree", "wpcb", "mu-star"] {
            no_call_exceeds_its_plan(key, layer, 0);
        }
    }
    for key in ["wandering", "mu", "vm", "tnc", "rosette"] {
        no_call_exceeds_its_plan(key, "ftl:fast", 0);
    }
}
