//! Chips that reject some operations while others succeed, and after a cut.

use core::ops::Range;

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use nandina::store::RosetteNor;
use nandina::{Index, key};
use nandina_sim::{Chip, ChipError, Cut};

use crate::cuts::{Change, TINY, changes, end, first_cut};
use crate::model::{OPTIONS, ram, value};

/// A chip that rejects the first page of some sectors.
struct Rejecting<'c> {
    chip: &'c mut Chip,
    /// Sectors that can be erased, but not programmed.
    sectors: Vec<u32>,
    rejections: u32,
}

impl Flash for Rejecting<'_> {
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

    fn read_part(
        &mut self,
        page: PageNumber,
        part: Range<usize>,
        main: &mut [u8],
    ) -> Result<Reading, ChipError> {
        self.chip.read_part(page, part, main)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        let geometry = self.chip.geometry();
        if self.sectors.contains(&(page.0 / geometry.pages_per_block)) {
            self.rejections += 1;
            return Err(ChipError::ProgramFailed(page));
        }
        self.chip.program(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        self.chip.overwrite(page, offset, bytes)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.chip.erase(block)
    }
}

/// What a change says is done, is there later, too: also where the newest leaf was not settled.
#[test]
fn a_change_after_a_cut_is_refused_or_kept_where_leaves_cannot_be_copied() {
    let changes = changes(3, 200);
    let mut ram = ram(&TINY, &OPTIONS);
    let (mut refused, mut made) = (0, 0);
    for cut in Cut::ALL {
        for at in 0.. {
            let mut chip = Chip::with_seed(TINY, at);
            let Some(allowed) = first_cut(&mut chip, &mut ram, &changes, at, cut) else { break };
            for number in (0..60).step_by(7) {
                let (mut chip, mut allowed) = (chip.clone(), allowed.clone());
                chip.restore_power();
                let sectors = (0..TINY.geometry.blocks).collect();
                let rejecting = Rejecting { chip: &mut chip, sectors, rejections: 0 };
                let mut index =
                    Index::<_, RosetteNor>::open(rejecting, &OPTIONS, &mut ram).unwrap();
                let (key, value) = (key::from_u32(number), value(1_000));
                let change = Change::Put(key, value);
                match index.insert(&key, &value) {
                    Ok(_) => {
                        made += 1;
                        allowed.all(|model| change.apply(model));
                    }
                    Err(_) => {
                        refused += 1;
                        allowed.cut(change);
                    }
                }
                drop(index);
                let what = format!("{cut:?} at {at}, key {number}");
                end(&mut chip, &mut ram, allowed, &what);
            }
        }
    }
    assert!(refused > 500 && made > 500, "{refused} changes were refused, {made} made");
}
