//! A driver whose CRC unit computes the checksums of pages: it is asked for each page that is read
//! or programmed, and what it wrote is what any driver reads.

use nandina::flash::profile::{DATAFLASH, SD};
use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use nandina::store::{BTree, Mu, Vm, VmOw, Wandering};
use nandina::{Index, Options, System, key, ram_needed};
use nandina_sim::{Chip, ChipError, TINY};

/// CRC-32C, a bit after the other, as a unit of hardware does it.
fn unit(pieces: &[&[u8]]) -> u32 {
    let bytes = pieces.iter().flat_map(|piece| piece.iter());
    !bytes.fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0x82F6_3B78 } else { 0 }
        })
    })
}

struct Driver {
    chip: Chip,
    sums: u64,
    pages: u64,
}

impl Flash for Driver {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        self.chip.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.chip.capabilities()
    }

    fn checksum(&mut self, pieces: &[&[u8]]) -> u32 {
        self.sums += 1;
        unit(pieces)
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let reading = self.chip.read(page, main, spare);
        // An erased page has no checksum.
        self.pages += u64::from(main.iter().chain(&*spare).any(|&byte| byte != 0xFF));
        reading
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.pages += 1;
        self.chip.program(page, main, spare)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.chip.erase(block)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.pages += 1;
        self.chip.rewrite(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, offset: u32, bytes: &[u8]) -> Result<(), ChipError> {
        self.chip.overwrite(page, offset, bytes)
    }
}

fn is_asked_for_each_page<S: System>(chip: Chip) {
    let (options, name) = (Options::new(4, 8), S::DESCRIPTION.key);
    let mut ram = vec![0; ram_needed::<S>(&chip.geometry(), &options)];
    let mut driver = Driver { chip, sums: 0, pages: 0 };
    let mut index = Index::<_, S>::format(&mut driver, &options, &mut ram).unwrap();
    for number in 0..60u32 {
        index.insert(&key::from_u32(number * 7 % 60), &[number as u8; 8]).unwrap();
    }
    drop(index);
    assert!(driver.sums > 0, "{name}");
    assert_eq!(driver.sums, driver.pages, "{name}: sums, and pages read or programmed");
    let mut index = Index::<_, S>::open(&mut driver.chip, &options, &mut ram).unwrap();
    assert_eq!(index.len(), 60, "{name}");
    assert_eq!(index.get(&key::from_u32(7)).unwrap(), Some(&[1; 8][..]), "{name}");
}

#[test]
fn a_crc_unit_is_asked_for_each_page() {
    is_asked_for_each_page::<Wandering>(Chip::new(TINY));
    is_asked_for_each_page::<Mu>(Chip::new(TINY));
    is_asked_for_each_page::<Vm>(Chip::new(TINY));
    is_asked_for_each_page::<BTree>(Chip::new(SD));
    is_asked_for_each_page::<VmOw>(Chip::new(DATAFLASH));
}
