//! A chip that gives up once when it is asked to mark a block as bad.

use core::cell::Cell;

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Profile, Reading};
use nandina_ftl::ftl::{Ftl, FtlError, ram_needed, space_of};
use nandina_ftl::mapping::Page;
use nandina_sim::{Chip, ChipError};

use crate::FAILING;

/// A chip whose next program fails, and that gives the next mark up, when that is wanted.
struct GivesUp {
    chip: Chip,
    fails: Cell<bool>,
    gives_up: Cell<bool>,
}

impl Flash for GivesUp {
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
        self.chip.read(page, main, spare)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if self.fails.take() {
            return Err(ChipError::ProgramFailed(page));
        }
        self.chip.program(page, main, spare)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.chip.erase(block)
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, ChipError> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        if self.gives_up.take() {
            return Err(ChipError::GaveUp);
        }
        self.chip.mark_bad(block)
    }
}

#[test]
fn a_block_that_failed_is_marked_though_the_device_gave_up_when_asked_to() {
    let Profile { geometry, capabilities, .. } = FAILING;
    let pages = 60;
    let space = space_of(&geometry, &capabilities, pages);
    let mut ram = vec![0; ram_needed(&geometry)];
    let mut memory = vec![0; 4 * space.logical as usize];
    let map = Page::new(space, &mut memory).unwrap();
    let device = GivesUp { chip: Chip::new(FAILING), fails: false.into(), gives_up: false.into() };
    let mut ftl = Ftl::format(device, map, pages, &mut ram).unwrap();
    for logical in 0..pages {
        ftl.write(logical, &[1; 512]).unwrap();
    }
    ftl.flash().fails.set(true);
    ftl.flash().gives_up.set(true);
    let mut gave_up = 0;
    for at in 0..200 {
        match ftl.write(at % pages, &[2; 512]) {
            Ok(()) => {}
            Err(FtlError::Device(ChipError::GaveUp)) => gave_up += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((gave_up, ftl.flash().chip.bad_blocks().count()), (1, 1));
}
