//! A driver whose CRC unit computes checksums is asked for each page that is read or programmed.

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use nandina_ftl::LogicalPages;
use nandina_ftl::hybrid::{
    Buffer, Fast, Hybrid, SequentialRule, Transit, logical_pages_max, ram_needed,
};
use nandina_sim::{Chip, ChipError, TINY};

/// A chip that counts checksums, and pages that have one.
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
        self.chip.checksum(pieces)
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
}

#[test]
fn a_crc_unit_is_asked_for_each_page() {
    let over = Fast { log_blocks: 3, sequential: SequentialRule::FirstPage };
    let policy = Transit { over, buffer: Buffer::as_printed(2) };
    let profile = TINY.with_blocks(24);
    let (geometry, capabilities) = (profile.geometry, profile.capabilities);
    let pages = logical_pages_max(&geometry, &capabilities, &policy);
    let mut ram = vec![0; ram_needed(&geometry, &capabilities, &policy, pages)];
    let mut driver = Driver { chip: Chip::new(profile), sums: 0, pages: 0 };
    let mut ftl = Hybrid::format(&mut driver, policy, pages, &mut ram).unwrap();
    for turn in 0..300u32 {
        ftl.write(turn * 7 % pages, &[turn as u8; 512]).unwrap();
    }
    let merges = ftl.merges();
    let mut ftl = Hybrid::open(&mut driver, policy, pages, &mut ram).unwrap();
    let mut bytes = [0; 512];
    assert!(ftl.read(299 * 7 % pages, &mut bytes).unwrap());
    assert_eq!(bytes, [299u32 as u8; 512]);
    assert!(merges.full > 10 && driver.pages > 600, "{merges:?}, {} pages", driver.pages);
    assert_eq!(driver.sums, driver.pages, "sums, and pages read or programmed");
}
