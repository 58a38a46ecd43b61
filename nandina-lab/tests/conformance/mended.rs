//! What went wrong once on chips that were written apart from the simulator, and must not again.

use nandina::flash::{Flash, PageNumber};
use nandina::place::{Description, Placement};
use nandina::{Index, Moves, WriteError};
use nandina_lab::hand_on;
use nandina_lab::torture::Bus;
use nandina_sim::{Chip, ChipError};

use crate::harness::*;

/// A chip of which one program fails, and the erase behind it gives an error of the device.
struct FailsTwice {
    chip: Chip,
    /// Programs before the one that fails; then the erase errs, once.
    until: Option<u32>,
    errs: bool,
}

impl Bus for FailsTwice {
    fn simulated(&self) -> &Chip {
        &self.chip
    }
}

impl Flash for FailsTwice {
    type Error = ChipError;

    hand_on!(chip: geometry, capabilities, read, rewrite, overwrite, is_bad, mark_bad);

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        match self.until {
            Some(0) => {
                (self.until, self.errs) = (None, true);
                Err(ChipError::ProgramFailed(page))
            }
            until => {
                self.until = until.map(|until| until - 1);
                self.chip.program(page, main, spare)
            }
        }
    }

    fn erase(&mut self, block: nandina::flash::BlockNumber) -> Result<(), ChipError> {
        if std::mem::take(&mut self.errs) {
            return Err(ChipError::PowerLost);
        }
        self.chip.erase(block)
    }
}

struct RootsInAGivenUpBlock;

impl Check for RootsInAGivenUpBlock {
    fn concerns(&self, system: &Description) -> bool {
        system.writes_paths
    }

    fn run<S: Placement + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG);
        case.profile.capabilities.bad_blocks_per_mille = 100;
        case.options.checkpoints = Some(2);
        let mut met = 0;
        for until in 20..60 {
            let mut ram = case.ram::<S>();
            let chip = Chip::new(suited::<S>(case.profile));
            let mut device = FailsTwice { chip, until: Some(until), errs: false };
            let bus: &mut dyn Bus = &mut device;
            let mut index = Index::<_, S>::format(bus, &case.options, &mut ram).map_err(text)?;
            let mut model = Model::new();
            for number in 0..80 {
                match index.insert(&key(number), &value(number, 0)) {
                    Ok(_) => drop(model.insert(key(number).to_vec(), value(number, 0).to_vec())),
                    Err(WriteError::Device(_)) => {
                        met += 1;
                        break;
                    }
                    Err(error) => return Err(text(error)),
                }
            }
            for (key, value) in &model {
                let found = index.get(key).map_err(text)?;
                if found != Some(&value[..]) {
                    return Err(format!("{until} programs: {key:?} is lost"));
                }
            }
        }
        if met > 10 { Ok(()) } else { Err(format!("only {met} errors were met")) }
    }
}

#[test]
fn the_newest_roots_in_a_block_that_was_given_up_are_found_beside_a_checkpoint() {
    for_every_system(&RootsInAGivenUpBlock);
}

struct OtherMoves;

impl Check for OtherMoves {
    fn concerns(&self, system: &Description) -> bool {
        !system.in_place
    }

    fn run<S: Placement + 'static>(&self) -> Outcome {
        let mut case = Case::new(SMALL);
        let mut ram = case.ram::<S>();
        let mut chip = Chip::new(suited::<S>(case.profile));
        let mut index = Index::<_, S>::format(&mut chip, &case.options, &mut ram).map_err(text)?;
        let mut records = 0;
        while index.insert(&key(records), &value(records, 0)).is_ok() {
            records += 1;
        }
        drop(index);
        case.options.moves = Moves::Alone;
        let mut index = Index::<_, S>::open(&mut chip, &case.options, &mut ram).map_err(text)?;
        for number in 0..records {
            index.insert(&key(number), &value(number, 1)).map_err(text)?;
        }
        for number in 0..records {
            index.remove(&key(number)).map_err(text)?;
        }
        if records > 20 && index.is_empty() { Ok(()) } else { Err(format!("{records} records")) }
    }
}

#[test]
fn a_full_index_that_is_opened_with_other_moves_replaces_and_removes() {
    for_every_system(&OtherMoves);
}
