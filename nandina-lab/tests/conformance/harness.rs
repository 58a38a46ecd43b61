//! Shared by all checks: a model beside the index, and the comparison of the two.

use std::ops::Range;

use nandina::engine::{NodeArea, Nodes};
use nandina::flash::{Flash, Geometry, PageNumber, Profile};
use nandina::node::PageLayout;
use nandina::store::{Description, Visitor};
use nandina::{Index, Inserted, OpenError, Options, Removed, System, ram_needed};
use nandina_lab::systems::{SYSTEMS, visit};
use nandina_sim::{Chip, ChipError, TINY};

pub use nandina_lab::effort::Share;
pub use nandina_lab::torture::oracle::{Model, compare, text};
pub use nandina_lab::torture::{Bus, fitted, suited};
pub type Outcome = Result<(), String>;

/// A property that must hold for every system.
pub trait Check {
    fn run<S: System + 'static>(&self) -> Outcome;

    /// Whether the check applies to a system.
    fn concerns(&self, system: &Description) -> bool {
        let _ = system;
        true
    }
}

/// Whether pages are programmed, not rewritten.
pub const fn is_log(system: &Description) -> bool {
    system.collects()
}

/// Runs `check` for every system of the registry.
///
/// With `NANDINA_SYSTEM` set to the key of a system, for that one alone; tables of all then differ.
pub fn for_every_system(check: &impl Check) {
    for_systems(Share::WHOLE, check);
}

/// Runs a check that takes long for one system in `one_in`, others each day.
///
/// With full effort it runs for every system.
pub fn for_one_system_in(one_in: u64, check: &impl Check) {
    for_systems(Share::one_in(one_in), check);
}

fn for_systems(share: Share, check: &impl Check) {
    struct Run<'c, C>(&'c C);
    impl<C: Check> Visitor for Run<'_, C> {
        type Output = Outcome;
        fn visit<S: System + 'static>(self) -> Outcome {
            self.0.run::<S>()
        }
    }
    let alone = std::env::var("NANDINA_SYSTEM").ok();
    let share = if alone.is_some() { Share::WHOLE } else { share };
    let mut checked = 0;
    for system in share.of(SYSTEMS.iter().filter(|system| check.concerns(system))) {
        checked += 1;
        if alone.as_ref().is_some_and(|alone| alone != system.key) {
            continue;
        }
        match visit(system.key, Run(check)) {
            Some(Ok(())) => {}
            Some(Err(what)) => panic!("{}: {what}", system.key),
            None => panic!("{} is listed but cannot be visited", system.key),
        }
    }
    assert!(checked > 0, "no system has what is checked");
}

/// A chip and the settings of an index on it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub profile: Profile,
    pub options: Options,
}

pub const KEY_BYTES: usize = 4;
pub const VALUE_BYTES: usize = 12;

impl Case {
    pub const fn new(profile: Profile) -> Self {
        Self { profile, options: Options::new(KEY_BYTES, VALUE_BYTES) }
    }

    /// Adapts the case to `S`: adds the chip's missing capabilities, removes settings that `S`
    /// lacks.
    pub fn suited<S: System>(self) -> Self {
        Self { profile: suited::<S>(self.profile), options: fitted::<S>(self.options) }
    }

    pub fn ram<S: System>(&self) -> Vec<u8> {
        vec![0xA5; ram_needed::<S>(&self.profile.geometry, &self.options)]
    }
}

/// A small chip with few records a leaf, so that trees grow high with few records.
pub const SMALL: Profile =
    Profile { geometry: Geometry { blocks: 24, pages_per_block: 8, ..TINY.geometry }, ..TINY };

/// A chip with longer blocks, so that a cut can waste more.
pub const LONG: Profile =
    Profile { geometry: Geometry { blocks: 20, pages_per_block: 32, ..TINY.geometry }, ..TINY };

/// Whether the key of an insert was new; `None` if the change is pending.
pub fn is_new(inserted: Inserted) -> Option<bool> {
    (inserted != Inserted::Buffered).then_some(inserted == Inserted::New)
}

/// Whether there was a record to remove; `None` if the change is pending.
pub fn was_found(removed: Removed) -> Option<bool> {
    (removed != Removed::Buffered).then_some(removed == Removed::Found)
}

/// Where the nodes of system `S` are in its pages.
pub fn nodes_of<S: System>() -> Nodes {
    S::NODES.expect("the system stores a tree of nodes")
}

/// The range of the node of `level` in the page in `frame`, a page buffer.
pub fn extent_in<S: System>(
    layout: &PageLayout,
    frame: &[u8],
    level: u8,
    height: u8,
) -> Range<usize> {
    (nodes_of::<S>().extent)(&NodeArea::of(layout, frame), level, height)
}

/// Ends the session of `index` so that the next mount can use a checkpoint.
///
/// Some systems write checkpoints as they go on, others only when the index is closed.
pub fn end<F: Flash, S: System>(index: Index<'_, F, S>) {
    if S::DESCRIPTION.checkpoints_at_close {
        index.close();
    }
}

pub fn key(number: u32) -> [u8; KEY_BYTES] {
    nandina::key::from_u32(number)
}

/// The seed of everything random: the environment variable `NANDINA_SEED`, or 1.
pub fn seed() -> u64 {
    let seed = std::env::var("NANDINA_SEED").ok();
    seed.map_or(1, |seed| seed.parse().expect("NANDINA_SEED is a whole number"))
}

/// A value that contains its number and version.
pub fn value(number: u32, version: u32) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value[..4].copy_from_slice(&number.to_le_bytes());
    value[4..8].copy_from_slice(&version.to_le_bytes());
    value
}

/// Makes a page read as erased, or as damaged.
pub fn lose_page(chip: &mut Chip, page: PageNumber, as_erased: bool) {
    chip.corrupt_page(page, |main, spare| {
        if as_erased {
            main.fill(0xFF);
            spare.fill(0xFF);
        } else {
            main[9] ^= 1;
        }
    });
}

/// An index on any device, which is compiled once for each system: [`Bus`] says why.
pub type OnBus<'r, S> = Index<'r, &'r mut dyn Bus, S>;

/// Opens the index on a device of a test.
pub fn open_on<'r, S: System>(
    device: &'r mut dyn Bus,
    options: &Options,
    ram: &'r mut [u8],
) -> Result<OnBus<'r, S>, OpenError<ChipError>> {
    Index::open(device, options, ram)
}

/// Formats a device of a test.
pub fn format_on<'r, S: System>(
    device: &'r mut dyn Bus,
    options: &Options,
    ram: &'r mut [u8],
) -> Result<OnBus<'r, S>, OpenError<ChipError>> {
    Index::format(device, options, ram)
}

/// The device on which a test opened the index.
pub fn device_of<'i, D: 'static, S: System>(index: &'i OnBus<'_, S>) -> &'i D {
    let device = index.flash().itself().and_then(|device| device.downcast_ref());
    device.expect("the index is on another device")
}

/// Formats a new chip and passes the index to `job`.
pub fn with_index<S: System, R>(
    case: &Case,
    work: impl FnOnce(&mut Index<'_, &mut Chip, S>) -> Result<R, String>,
) -> Result<R, String> {
    let case = case.suited::<S>();
    let mut chip = Chip::new(case.profile);
    let mut ram = case.ram::<S>();
    let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
    work(&mut index)
}
