//! A device that fails once and goes on: the operation that met the fault may be refused, but the same
//! index, not opened anew, holds the old or the new state and works on.

use nandina::flash::{
    BlockNumber, Capabilities, ErrorKind, Flash, FlashError, Geometry, PageNumber, Reading,
};
use nandina::place::Placement;
use nandina::{Index, WriteError};
use nandina_sim::{Chip, ChipError};

use crate::harness::*;

/// Refuses one chip operation without doing it.
struct Flaky {
    chip: Chip,
    until_fault: Option<u32>,
}

#[derive(Debug)]
enum FlakyError {
    Fault,
    Chip(#[expect(dead_code, reason = "shown by Debug")] ChipError),
}

impl Flaky {
    fn fault(&mut self) -> Result<(), FlakyError> {
        match self.until_fault {
            Some(0) => {
                self.until_fault = None;
                Err(FlakyError::Fault)
            }
            left => {
                self.until_fault = left.map(|left| left - 1);
                Ok(())
            }
        }
    }
}

impl FlashError for FlakyError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

impl Flash for Flaky {
    type Error = FlakyError;

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
    ) -> Result<Reading, FlakyError> {
        self.fault()?;
        self.chip.read(page, main, spare).map_err(FlakyError::Chip)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), FlakyError> {
        self.fault()?;
        self.chip.program(page, main, spare).map_err(FlakyError::Chip)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), FlakyError> {
        self.fault()?;
        self.chip.erase(block).map_err(FlakyError::Chip)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), FlakyError> {
        self.fault()?;
        self.chip.rewrite(page, main, spare).map_err(FlakyError::Chip)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), FlakyError> {
        self.fault()?;
        self.chip.overwrite(page, offset, bytes).map_err(FlakyError::Chip)
    }
}

struct FaultAnywhere;

impl Check for FaultAnywhere {
    fn run<S: Placement + 'static>(&self) -> Outcome {
        let case = Case::new(SMALL);
        let mut met = 0;
        for until_fault in (40..2_000).step_by(3) {
            let at = |what| format!("fault {until_fault} operations on: {what}");
            let mut ram = case.ram::<S>();
            let flaky = Flaky {
                chip: Chip::new(suited::<S>(case.profile)),
                until_fault: Some(until_fault),
            };
            let mut index = Index::<_, S>::format(flaky, &case.options, &mut ram).map_err(text)?;
            let mut model = Model::new();
            for turn in 0..500u32 {
                let number = turn * 37 % 120;
                let (key, value) = (key(number), value(number, turn));
                let mut after = model.clone();
                let result = if turn % 3 == 2 {
                    after.remove(&key[..]);
                    index.remove(&key)
                } else {
                    after.insert(key.to_vec(), value.to_vec());
                    index.insert(&key, &value)
                };
                match result {
                    Ok(_) => model = after,
                    Err(WriteError::Device(FlakyError::Fault)) => {
                        met += 1;
                        if compare(&mut index, &model).is_err() {
                            compare(&mut index, &after).map_err(at)?;
                            model = after;
                        }
                    }
                    Err(error) => return Err(at(text(error))),
                }
            }
            if index.flash().until_fault.is_some() {
                // The run is over before the fault.
                break;
            }
            compare(&mut index, &model).map_err(at)?;
        }
        if met > 200 { Ok(()) } else { Err(format!("only {met} faults were met")) }
    }
}

#[test]
fn a_fault_of_the_device_is_like_a_cut_and_the_index_goes_on() {
    for_every_system(&FaultAnywhere);
}
