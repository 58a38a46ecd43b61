//! Work that is refused before a run does not fit, and work that fits is not refused.

use nandina::flash::profile::{PROFILES, SLC};
use nandina::flash::{Flash, Profile};
use nandina::store::{Tnc, Visitor};
use nandina::{Index, OpenError, Options, System, WriteError, key, plan, ram_needed};
use nandina_lab::effort::Share;
use nandina_lab::fit::{Misfit, always_full, always_too_high, misfit};
use nandina_lab::run::{Setup, SystemRun, run};
use nandina_lab::systems::{SYSTEMS, visit};
use nandina_lab::work::Work;
use nandina_sim::Chip;

fn nor() -> Profile {
    *PROFILES.iter().find(|profile| profile.key == "nor").unwrap()
}

/// Fills an index until its tree is too high, if that happens before the chip is full.
struct Fill {
    options: Options,
    key: fn(u32) -> u32,
}

impl Visitor for Fill {
    type Output = bool;

    fn visit<S: System + 'static>(self) -> bool {
        let (profile, options) = (nor(), self.options);
        let mut chip = Chip::new(profile);
        let mut ram = vec![0; ram_needed::<S>(&chip.geometry(), &options)];
        let mut index = match Index::<_, S>::format(&mut chip, &options, &mut ram) {
            Ok(index) => index,
            Err(OpenError::Unsuited(_)) => return false,
            Err(error) => panic!("{}: {error}", S::DESCRIPTION.key),
        };
        let value = vec![1; options.value_bytes];
        let height = loop {
            let key = key::from_u32((self.key)(index.len()));
            match index.insert(&key, &value) {
                Ok(_) => {}
                Err(WriteError::TooHigh { height }) => break height,
                Err(error) => {
                    assert!(matches!(error, WriteError::Full { .. }), "{error}");
                    assert_eq!(always_too_high::<S>(&profile, &options, index.len()), None);
                    assert_eq!(always_full::<S>(&profile, &options, index.len()), None);
                    return false;
                }
            }
        };
        assert_eq!(always_too_high::<S>(&profile, &options, index.len()), None);
        assert_eq!(always_full::<S>(&profile, &options, index.len()), None);
        // Nodes were at least half full, so this is more than full ones hold.
        let certain = always_too_high::<S>(&profile, &options, index.len() << (2 * height));
        let in_ram = S::DESCRIPTION.has_arena();
        assert_eq!(certain, Some(Misfit::TooHigh { height, in_ram }));
        true
    }
}

#[test]
fn only_trees_that_are_too_high_in_any_order_are_refused_before() {
    let mut too_high = 0;
    let values = Share::one_in(2).of([0, 4, 20, 40]);
    for system in SYSTEMS {
        for &value_bytes in &values {
            for key in [|count| count, |count: u32| count.wrapping_mul(0x9E37_79B1)] {
                let fill = Fill { options: Options::new(4, value_bytes), key };
                too_high += u32::from(visit(system.key, fill).unwrap());
            }
        }
    }
    assert!(too_high > 0, "no tree came to its limit");
}

#[test]
fn a_run_that_cannot_end_is_not_begun() {
    let work = Work::standard(3000, 4, 4, 1).unwrap();
    let setup = Setup { profile: nor(), options: Options::new(1, 0), ram_bytes: None, layer: None };
    let progress = |_| panic!("an operation was done");
    let SystemRun::Refused(refusal) = run("mu", &setup, &work, &progress).unwrap() else {
        panic!("3,000 records are more than the pages have room for");
    };
    assert!(refusal.reason.starts_with("3000 records do not fit on nor: "), "{}", refusal.reason);
}

/// A tree of small nodes is too high for the RAM for nodes, and not for the chip.
#[test]
fn a_tree_that_is_too_high_for_ram_is_not_called_too_large_for_the_chip() {
    let options = Options::new(4, 4).fanout(16);
    let of = |options: &Options, records: u32| {
        let plan = plan::<Tnc>(&SLC.geometry, &SLC.capabilities, options, records).unwrap();
        misfit::<Tnc>(&SLC, options, records, &plan)
    };
    assert!(matches!(
        of(&options.arena_bytes(1800), 5000),
        Some(Misfit::TooHigh { in_ram: true, .. })
    ));
    assert_eq!(of(&options, 5000), None);
    let large = Options::new(4, 300);
    let Some(Misfit::Full { valid_pages, limit_pages }) = of(&large, 60_000) else {
        panic!("60,000 values of 300 bytes are more than the chip has room for");
    };
    assert!(valid_pages > limit_pages, "{valid_pages} of {limit_pages}");
}
