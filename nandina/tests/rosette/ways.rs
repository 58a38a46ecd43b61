//! What the ways to mount find on one chip, and a map beside the index.

use std::collections::BTreeMap;

use nandina::engine::Engine;
use nandina::flash::PageNumber;
use nandina::store::{Rosette, Way};
use nandina::{Index, OpenError, Options, ReadError, System, ram_needed};
use nandina_sim::{Chip, ChipError, Faults};

pub use crate::random::Random;

/// What an index must hold.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub fn ram(chip: &Chip, options: &Options) -> Vec<u8> {
    vec![0xA5; ram_needed::<Rosette>(&chip.profile().geometry, options)]
}

/// All records, or `None` if power is lost meanwhile.
pub fn content(index: &mut Index<'_, &mut Chip, Rosette>) -> Option<Model> {
    let mut model = Model::new();
    let read = |index: &mut Index<'_, &mut Chip, Rosette>, model: &mut Model| {
        let mut range = index.range(..)?;
        while let Some((key, value)) = range.next()? {
            model.insert(key.to_vec(), value.to_vec());
        }
        Ok::<_, ReadError<ChipError>>(())
    };
    match read(index, &mut model) {
        Ok(()) => Some(model),
        Err(ReadError::Device(ChipError::PowerLost | ChipError::GaveUp)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// What a mount has found, and the reads that it took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    pub newest: (PageNumber, u64),
    pub directory: Vec<u8>,
    /// The records, and damage that no cut explains.
    pub counts: (u32, u32),
    /// Valid pages, and blocks that may hold a torn page.
    pub beside: (u32, usize),
    pub newest_leaf: Option<PageNumber>,
}

/// What a mount finds in this way, and its reads.
pub fn found(
    chip: &Chip,
    options: &Options,
    way: Way,
) -> Result<(Option<Found>, u64), OpenError<ChipError>> {
    let (mut chip, mut ram) = (chip.clone(), ram(chip, options));
    // A torn page may still read differently each time.
    chip.set_faults(Faults { unstable_pages: 0, ..Faults::NONE });
    chip.restore_power();
    let before = chip.counters().reads;
    let mut leaves =
        <Rosette as System>::Engine::<'_, &mut Chip>::new(&mut chip, options, &mut ram);
    let led = leaves.led(way)?.map(|led| Found {
        newest: led.newest,
        directory: led.directory.to_vec(),
        counts: (led.records, led.unexplained_pages),
        beside: (led.valid_pages, led.suspects),
        newest_leaf: led.newest_leaf,
    });
    let reads = leaves.flash().counters().reads - before;
    Ok((led, reads))
}

/// How often the ways to mount were compared.
#[derive(Default, Debug)]
pub struct Compared {
    pub mounts: u32,
    /// Mounts with a checkpoint.
    pub behind: u32,
    /// Mounts that read fewer pages by trails.
    pub shorter: u32,
    /// Mounts that do not agree which page is the newest: it is torn and was steady for a while.
    pub unsteady: u32,
}

impl Compared {
    /// All ways to mount lead to the same directory.
    pub fn compare(&mut self, chip: &Chip, options: &Options) {
        let ways = [Way::Trails, Way::Checkpoint, Way::Pages];
        let [by_trails, by_all, bare] = ways.map(|way| found(chip, options, way));
        self.mounts += 1;
        let (by_trails, by_all, bare) = match (by_trails, by_all, bare) {
            (Ok(by_trails), Ok(by_all), Ok(bare)) => (by_trails, by_all, bare),
            (Err(_), Err(_), Err(_)) => return,
            // A checkpoint lies where all pages are newer than the rest.
            (by_trails, by_all, bare) => panic!("{by_trails:?}\n{by_all:?}\n{bare:?}"),
        };
        let (Some(led), Some(read)) = (&by_trails.0, &by_all.0) else { return };
        let bare = bare.0.unwrap();
        self.behind += 1;
        self.shorter += u32::from(by_trails.1 < by_all.1);
        // If nothing is newer than the checkpoint, its own number is the newest.
        if led.newest != read.newest || led.newest.0 != bare.newest.0 {
            self.unsteady += 1;
            return;
        }
        assert_eq!(led, read, "by trails, and by all pages after the checkpoint");
        // A mount of all blocks ends before a session page that newer leaves make needless.
        assert_eq!(
            (&led.directory, led.counts),
            (&bare.directory, bare.counts),
            "by trails, and by the pages of all blocks"
        );
    }
}
