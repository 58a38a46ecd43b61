//! A device that fails once and then works again.
//!
//! The operation that met the fault may be refused, but the same index, not opened again, holds the
//! old or the new state and continues.

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use nandina::{Index, System, WriteError};
use nandina_sim::{Chip, ChipError};

use crate::harness::*;

/// The error of the refused operation. The chip itself is never cut here.
const FAULT: ChipError = ChipError::PowerLost;

/// Refuses one chip operation without doing it.
struct Flaky {
    chip: Chip,
    until_fault: Option<u32>,
}

impl Flaky {
    fn fault(&mut self) -> Result<(), ChipError> {
        match self.until_fault {
            Some(0) => {
                self.until_fault = None;
                Err(FAULT)
            }
            left => {
                self.until_fault = left.map(|left| left - 1);
                Ok(())
            }
        }
    }
}

impl Bus for Flaky {
    fn simulated(&self) -> &Chip {
        &self.chip
    }
}

impl Flash for Flaky {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.chip.capabilities()
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.fault()?;
        self.chip.read(page, main, spare)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.fault()?;
        self.chip.program(page, main, spare)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.fault()?;
        self.chip.erase(block)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.fault()?;
        self.chip.rewrite(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        self.fault()?;
        self.chip.overwrite(page, offset, bytes)
    }
}

struct FaultAnywhere;

impl Check for FaultAnywhere {
    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL);
        let mut met = 0u64;
        let share = Share::one_in(11);
        // The first fault comes after the format, however many operations that takes.
        let formatting =
            with_index::<S, _>(&case, |index| Ok(index.flash().counters().operations()))?;
        for until_fault in share.of((formatting as u32..2_000).step_by(3)) {
            let at = |what| format!("fault {until_fault} operations on: {what}");
            let mut ram = case.ram::<S>();
            let mut flaky = Flaky {
                chip: Chip::new(suited::<S>(case.profile)),
                until_fault: Some(until_fault),
            };
            let bus: &mut dyn Bus = &mut flaky;
            let mut index = Index::<_, S>::format(bus, &case.options, &mut ram).map_err(text)?;
            let (mut model, met_before) = (Model::new(), met);
            for turn in 0..500u32 {
                let number = turn * 37 % 120;
                let (key, value) = (key(number), value(number, turn));
                let mut after = model.clone();
                let result = if turn % 3 == 2 {
                    after.remove(&key[..]);
                    index.remove(&key).map(drop)
                } else {
                    after.insert(key.to_vec(), value.to_vec());
                    index.insert(&key, &value).map(drop)
                };
                match result {
                    Ok(_) => model = after,
                    Err(WriteError::Device(FAULT)) => {
                        met += 1;
                        if compare(&mut index, &model).is_err() {
                            compare(&mut index, &after).map_err(at)?;
                            model = after;
                        }
                    }
                    Err(error) => return Err(at(text(error))),
                }
            }
            if met == met_before {
                // The run is over before the fault.
                break;
            }
            compare(&mut index, &model).map_err(at)?;
        }
        if met > share.least(100) { Ok(()) } else { Err(format!("only {met} faults were met")) }
    }
}

#[test]
fn a_fault_of_the_device_is_like_a_cut_and_the_index_goes_on() {
    for_every_system(&FaultAnywhere);
}
