//! Cases that no loop of cuts comes to: pages that fade and return while an FTL is open, lists
//! that are full, and mappings without memory.

use std::cell::{Cell, RefCell};

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Profile, Reading};
use nandina::log::layout_of;
use nandina::node::PageHeader;
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::{self, Ftl, FtlError, space_of};
use nandina_ftl::hybrid::{self, Block, Buffer, Hybrid, Transit};
use nandina_ftl::logged::{self, Logged};
use nandina_ftl::mapping::{Page, emt};
use nandina_sim::{Chip, ChipError, Cut, Faults, Tear};

use crate::chips::{CHIP, FAILING};
use crate::logged::kinds::{FAILING as LOGGED, SCHEMES};
use crate::numbers::Numbers;

/// A chip with more logical pages than a list of trims has places.
const WIDE: Profile =
    Profile { geometry: Geometry { blocks: 48, pages_per_block: 16, ..CHIP.geometry }, ..CHIP };

/// A chip that a test changes while an FTL has it.
///
/// One program fails where that is wanted, and its block from then on. One page may be faint.
struct Shared<'c> {
    chip: &'c RefCell<Chip>,
    fails: Option<&'c Cell<bool>>,
    faint: Option<Faint>,
}

/// A page that can be read some times, then cannot some times, and then can again.
struct Faint {
    page: PageNumber,
    reads: u32,
    failures: u32,
}

impl Faint {
    /// Whether this read fails.
    fn fails(&mut self) -> bool {
        if self.reads > 0 {
            self.reads -= 1;
            return false;
        }
        let fails = self.failures > 0;
        self.failures -= u32::from(fails);
        fails
    }
}

impl<'c> Shared<'c> {
    fn whole(chip: &'c RefCell<Chip>) -> Self {
        Self { chip, fails: None, faint: None }
    }

    fn failing(chip: &'c RefCell<Chip>, fails: &'c Cell<bool>) -> Self {
        Self { chip, fails: Some(fails), faint: None }
    }
}

impl Flash for Shared<'_> {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        self.chip.borrow().geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.chip.borrow().capabilities()
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let reading = self.chip.borrow_mut().read(page, main, spare)?;
        let faint = self.faint.as_mut().filter(|faint| faint.page == page);
        if faint.is_some_and(Faint::fails) {
            main[9] ^= 0x55;
        }
        Ok(reading)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        if self.fails.is_some_and(Cell::take) {
            return Err(ChipError::ProgramFailed(page));
        }
        self.chip.borrow_mut().program(page, main, spare)
    }

    fn overwrite(&mut self, page: PageNumber, at: u32, bytes: &[u8]) -> Result<(), ChipError> {
        self.chip.borrow_mut().overwrite(page, at, bytes)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.chip.borrow_mut().erase(block)
    }

    fn is_bad(&mut self, block: BlockNumber) -> Result<bool, ChipError> {
        self.chip.borrow_mut().is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockNumber) -> Result<(), ChipError> {
        self.chip.borrow_mut().mark_bad(block)
    }
}

/// Makes a page unreadable, or readable again.
fn flip(chip: &RefCell<Chip>, page: PageNumber) {
    chip.borrow_mut().corrupt_page(page, |main, _| main[9] ^= 0x55);
}

/// The pages of a chip with a header that is meant.
fn pages(chip: &RefCell<Chip>, is_meant: impl Fn(&PageHeader) -> bool) -> Vec<PageNumber> {
    let geometry = chip.borrow().geometry();
    let mut chip = chip.borrow_mut();
    let layout = layout_of(&geometry);
    let mut frame = vec![0; layout.frame_bytes()];
    let mut has = |page: &PageNumber| {
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        chip.read(*page, main, spare).unwrap();
        layout.open(&frame).is_ok_and(|header| is_meant(&header))
    };
    (0..geometry.pages()).map(PageNumber).filter(|page| has(page)).collect()
}

/// RAM for an FTL with a page map on `profile`, and for its map.
fn memory_of(profile: &Profile, logical: u32) -> (Vec<u8>, Vec<u8>) {
    let space = space_of(&profile.geometry, &profile.capabilities, logical);
    (vec![0; ftl::ram_needed(&profile.geometry)], vec![0; Page::bytes_needed(space)])
}

fn map_for<'m>(profile: &Profile, logical: u32, memory: &'m mut [u8]) -> Page<'m> {
    Page::new(space_of(&profile.geometry, &profile.capabilities, logical), memory).unwrap()
}

/// A page of the newest block fades behind the mount, before the first change.
pub fn fade_before_the_first_change() {
    let logical = 40;
    let (mut ram, mut memory) = memory_of(&CHIP, logical);
    let chip = RefCell::new(Chip::new(CHIP));
    let map = map_for(&CHIP, logical, &mut memory);
    let mut ftl = Ftl::format(Shared::whole(&chip), map, logical, &mut ram).unwrap();
    (0..20).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
    let map = map_for(&CHIP, logical, &mut memory);
    let mut ftl = Ftl::open(Shared::whole(&chip), map, logical, &mut ram).unwrap();
    let faded = pages(&chip, |header| header.records == 18)[0];
    flip(&chip, faded);
    ftl.write(2, &[2; 512]).unwrap();
    let found = ftl.read(18, &mut [0; 512]);
    assert!(matches!(found, Err(FtlError::Corrupt { .. })), "{found:?}");
    for at in (0..18).chain([19]) {
        let mut page = [0; 512];
        assert!(ftl.read(at, &mut page).unwrap());
        assert_eq!(page, [1 + u8::from(at == 2); 512], "page {at}");
    }
}

/// A mount reads a page that was trimmed, and cannot read it a second time to see how old it is.
pub fn trimmed_page_that_comes_and_goes() {
    let logical = hybrid::logical_pages_max(&CHIP.geometry, &CHIP.capabilities, &Block);
    let mut ram = vec![0; hybrid::ram_needed(&CHIP.geometry, &CHIP.capabilities, &Block, logical)];
    let chip = RefCell::new(Chip::new(CHIP));
    let mut ftl = Hybrid::format(Shared::whole(&chip), Block, logical, &mut ram).unwrap();
    (0..8).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
    // The last page of its block: none behind it tells how old it is.
    ftl.trim(7, 1).unwrap();
    let page = pages(&chip, |header| header.records == 7)[0];
    let faint = Some(Faint { page, reads: 1, failures: 24 });
    let mut ftl =
        Hybrid::open(Shared { faint, ..Shared::whole(&chip) }, Block, logical, &mut ram).unwrap();
    for at in 0..8 {
        let mut page = [0; 512];
        assert_eq!(ftl.read(at, &mut page).unwrap(), at != 7, "page {at}");
        assert_eq!(page, [if at == 7 { 0xFF } else { 1 }; 512], "page {at}");
    }
}

/// A page of a buffer block fades before its block is converted.
pub fn fade_in_a_buffer_block() {
    let logical = 36;
    let buffer = Buffer::as_printed(2);
    let choices = ftl::Choices::from(buffer);
    let (_, mut memory) = memory_of(&CHIP, logical);
    let mut ram = vec![0; ftl::ram_needed_for(&CHIP.geometry, &CHIP.capabilities, &choices)];
    let chip = RefCell::new(Chip::new(CHIP));
    let map = map_for(&CHIP, logical, &mut memory);
    let mut ftl = Ftl::format_with(Shared::whole(&chip), map, logical, choices, &mut ram).unwrap();
    (0..6).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
    let faded = pages(&chip, |header| header.records == 3)[0];
    flip(&chip, faded);
    // The third and fourth logical blocks need the buffer blocks.
    for at in (8..36).chain(8..36) {
        ftl.write(at, &[2; 512]).unwrap();
    }
    for at in 0..6 {
        let found = ftl.read(at, &mut [0; 512]);
        let is_error = matches!(found, Err(FtlError::Corrupt { page, .. }) if page == faded);
        assert!(if at == 3 { is_error } else { found == Ok(true) }, "{at}: {found:?}");
    }
    ftl.write(3, &[3; 512]).unwrap();
    assert_eq!((ftl.read(3, &mut [0; 512]), ftl.check()), (Ok(true), Ok(Ok(()))));
}

/// The directory of a checkpoint fades before another one lists more blocks.
pub fn fade_a_directory() {
    let geometry = Geometry { blocks: 96, ..CHIP.geometry };
    let profile = Profile { geometry, ..CHIP };
    let logical = 200;
    let (mut ram, mut memory) = memory_of(&profile, logical);
    let chip = RefCell::new(Chip::new(profile));
    let map = map_for(&profile, logical, &mut memory);
    let mut ftl = Ftl::format(Shared::whole(&chip), map, logical, &mut ram).unwrap();
    (0..logical).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
    assert!(ftl.checkpoint().unwrap());
    let firsts = [0, geometry.pages_per_block].map(PageNumber);
    for page in firsts {
        if !chip.borrow().page_is_erased(page) {
            flip(&chip, page);
        }
    }
    let mut numbers = Numbers(4);
    for _ in 0..700 {
        ftl.write(numbers.below(logical), &[2; 512]).unwrap();
    }
    assert!(!ftl.has_checkpoint(), "its directory cannot be read");
}

/// Every other page is trimmed, until the list of trims has no place left.
pub fn fill_the_lists_of_trims() {
    let logical = 400;
    let (mut ram, mut memory) = memory_of(&WIDE, logical);
    let mut chip = Chip::new(WIDE);
    let map = map_for(&WIDE, logical, &mut memory);
    let mut ftl = Ftl::format(&mut chip, map, logical, &mut ram).unwrap();
    trim_every_other(&mut ftl);

    let (geometry, capabilities) = (&WIDE.geometry, &WIDE.capabilities);
    let mut ram = vec![0; hybrid::ram_needed(geometry, capabilities, &Block, logical)];
    let mut chip = Chip::new(WIDE);
    let mut ftl = Hybrid::format(&mut chip, Block, logical, &mut ram).unwrap();
    trim_every_other(&mut ftl);
}

fn trim_every_other<F: LogicalPages<Error = FtlError<ChipError>>>(ftl: &mut F) {
    let logical = ftl.logical_pages();
    (0..logical).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
    (0..logical).step_by(2).for_each(|at| ftl.trim(at, 1).unwrap());
    for at in 0..logical {
        assert_eq!(ftl.read(at, &mut [0; 512]).unwrap(), at % 2 == 1, "page {at}");
    }
}

/// A mapping is so full that pages cannot move, while there is room for a change.
pub fn fill_a_mapping() {
    let logical = ftl::logical_pages_max(&WIDE.geometry, &WIDE.capabilities) / 2;
    let mut ram = vec![0; ftl::ram_needed(&WIDE.geometry)];
    for nodes in [40, 60, 80] {
        let mut memory = vec![0; nodes * emt::Arena::NODE];
        let space = space_of(&WIDE.geometry, &WIDE.capabilities, logical);
        let map = emt::Emt::new(space, emt::Arena::new(&mut memory));
        let mut chip = Chip::new(WIDE);
        let mut ftl = Ftl::format(&mut chip, map, logical, &mut ram).unwrap();
        let (mut numbers, mut refused) = (Numbers(nodes as u64), 0);
        for at in 0..4000 {
            // A few runs, and pages here and there.
            let start = numbers.below(logical - 16);
            let count = if at % 3 == 0 { 16 } else { 1 };
            match ftl.write_pages(start, &vec![at as u8; 512 * count]) {
                Ok(()) => {}
                Err(FtlError::Mapping(_)) => refused += 1,
                Err(error) => panic!("{nodes} nodes, change {at}: {error}"),
            }
        }
        assert!(refused > 10, "{nodes} nodes: {refused} changes were refused");
    }
}

/// Two pages in a row of a buffer block cannot be read at a mount, and can be read after it.
pub fn return_after_fading() {
    let policy = Transit { over: Block, buffer: Buffer::as_printed(2) };
    let logical = 48;
    let (geometry, capabilities) = (&CHIP.geometry, &CHIP.capabilities);
    let mut ram = vec![0; hybrid::ram_needed(geometry, capabilities, &policy, logical)];
    let chip = RefCell::new(Chip::new(CHIP));
    let mut ftl = Hybrid::format(Shared::whole(&chip), policy, logical, &mut ram).unwrap();
    (0..6).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
    let faded = pages(&chip, |header| [2, 3].contains(&header.records));
    faded.iter().for_each(|&page| flip(&chip, page));
    let mut ftl = Hybrid::open(Shared::whole(&chip), policy, logical, &mut ram).unwrap();
    faded.iter().for_each(|&page| flip(&chip, page));
    let found = ftl.read(2, &mut [0; 512]);
    assert!(matches!(found, Err(FtlError::Corrupt { .. })), "{found:?}");
    ftl.write(2, &[2; 512]).unwrap();
    let mut page = [0; 512];
    assert!(ftl.read(2, &mut page).unwrap() && page == [2; 512]);
}

/// The device gives operations up while trims wait.
pub fn give_up_while_trims_wait() {
    let logical = 60;
    let (mut ram, mut memory) = memory_of(&CHIP, logical);
    let mut undone = 0;
    for seed in 0..20 {
        let chip = RefCell::new(Chip::with_seed(CHIP, seed));
        let map = map_for(&CHIP, logical, &mut memory);
        let mut ftl = Ftl::format(Shared::whole(&chip), map, logical, &mut ram).unwrap();
        (0..logical).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
        ftl.trim_volatile(7, 1).unwrap();
        // The next program is given up, whether it was done or not.
        chip.borrow_mut().set_faults(Faults { device_errors: 1, ..Faults::NONE });
        assert!(ftl.write(9, &[2; 512]).is_err(), "seed {seed}");
        chip.borrow_mut().set_faults(Faults::NONE);
        undone += u32::from(ftl.read(7, &mut [0; 512]).unwrap());
    }
    assert!(undone > 0, "no trim was undone");
}

/// A program of a request fails, or is cut.
pub fn break_requests() {
    let logical = 60;
    let (mut ram, mut memory) = memory_of(&CHIP, logical);
    for seed in 0..8 {
        let chip = RefCell::new(Chip::with_seed(CHIP, seed));
        let map = map_for(&CHIP, logical, &mut memory);
        let mut ftl = Ftl::format(Shared::whole(&chip), map, logical, &mut ram).unwrap();
        (0..logical).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
        let most = ftl.request_pages_max().min(6);
        let request = vec![2; 512 * most as usize];
        chip.borrow_mut().set_faults(Faults { program_failures: 4, ..Faults::NONE });
        let written = ftl.write_pages_atomic(3, &request);
        chip.borrow_mut().set_faults(Faults::NONE);
        let is_new = |ftl: &mut Ftl<'_, Shared<'_>, Page<'_>>, at| {
            let mut page = [0; 512];
            assert!(ftl.read(at, &mut page).unwrap());
            page == [2; 512]
        };
        let new = (3..3 + most).filter(|&at| is_new(&mut ftl, at)).count() as u32;
        let expected = if written.is_ok() { most } else { 0 };
        assert_eq!(new, expected, "seed {seed}: {written:?}");
        if written.is_err() {
            continue;
        }
        chip.borrow_mut().cut_at_change(seed % u64::from(most), Cut::Inside(Tear::Ones));
        assert!(ftl.write_pages_atomic(20, &request).is_err(), "seed {seed}");
        chip.borrow_mut().restore_power();
        let map = map_for(&CHIP, logical, &mut memory);
        let mut ftl = Ftl::open(Shared::whole(&chip), map, logical, &mut ram).unwrap();
        let new = (20..20 + most).filter(|&at| is_new(&mut ftl, at)).count();
        assert_eq!(new, 0, "seed {seed}");
    }
}

/// A volatile trim meets a page in a block that has failed.
pub fn trim_in_a_block_that_failed() {
    let logical = 60;
    let (mut ram, mut memory) = memory_of(&FAILING, logical);
    let (chip, fails) = (RefCell::new(Chip::new(FAILING)), Cell::new(false));
    let map = map_for(&FAILING, logical, &mut memory);
    let mut ftl = Ftl::format(Shared::failing(&chip, &fails), map, logical, &mut ram).unwrap();
    (0..logical).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
    // The pages that were written last are in the block that fails.
    fails.set(true);
    ftl.write(3, &[2; 512]).unwrap();
    ftl.trim_volatile(logical - 1, 1).unwrap();
    let map = map_for(&FAILING, logical, &mut memory);
    let mut ftl = Ftl::open(Shared::failing(&chip, &fails), map, logical, &mut ram).unwrap();
    assert!(!ftl.read(logical - 1, &mut [0; 512]).unwrap(), "it was durable at once");
}

/// More blocks fail than the chip was said to lose, while there is a checkpoint.
pub fn fail_beside_a_checkpoint() {
    let geometry = Geometry { blocks: CHIP.geometry.blocks + 16, ..CHIP.geometry };
    let profile = Profile { geometry, ..CHIP };
    let logical = ftl::logical_pages_max(&profile.geometry, &profile.capabilities) - 44;
    let (mut ram, mut memory) = memory_of(&profile, logical);
    for is_request in [false, true] {
        let (chip, fails) = (RefCell::new(Chip::new(profile)), Cell::new(false));
        let map = map_for(&profile, logical, &mut memory);
        let mut ftl = Ftl::format(Shared::failing(&chip, &fails), map, logical, &mut ram).unwrap();
        (0..logical).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
        assert!(ftl.checkpoint().unwrap());
        let (mut numbers, mut failed) = (Numbers(7), 0);
        let mut at = 0;
        while ftl.has_checkpoint() && failed < 12 {
            at += 1;
            if at % 40 == 0 {
                fails.set(true);
                failed += 1;
            }
            let start = numbers.below(logical - 4);
            let written = match is_request {
                true => ftl.write_pages_atomic(start, &[2; 4 * 512]),
                false => ftl.write(start, &[2; 512]),
            };
            if written.is_err() {
                break;
            }
        }
        assert!(!ftl.has_checkpoint(), "request {is_request}: {failed} blocks failed");
    }
}

/// The first program of a block fails: of the page that says what the chip is, and of a new page.
pub fn fail_first_programs() {
    for scheme in SCHEMES {
        let (geometry, capabilities) = (&LOGGED.geometry, &LOGGED.capabilities);
        let logical = logged::logical_pages_max(geometry, capabilities, scheme);
        let mut ram = vec![0; logged::ram_needed(geometry, logical)];
        let (chip, fails) = (RefCell::new(Chip::new(LOGGED)), Cell::new(true));
        let mut ftl =
            Logged::format(Shared::failing(&chip, &fails), scheme, logical, &mut ram).unwrap();
        assert!(!fails.get(), "a program has failed");
        fails.set(true);
        ftl.write(3, &[3; 512]).unwrap();
        let mut ftl =
            Logged::open(Shared::failing(&chip, &fails), scheme, logical, &mut ram).unwrap();
        let mut page = [0; 512];
        assert!(ftl.read(3, &mut page).unwrap() && page == [3; 512]);
        assert_eq!(chip.borrow().bad_blocks().count(), 2);
    }
}

/// Power is cut in each program of a request, wherever its blocks end.
pub fn cut_requests() {
    let logical = ftl::logical_pages_max(&CHIP.geometry, &CHIP.capabilities) - 8;
    let (mut ram, mut memory) = memory_of(&CHIP, logical);
    for shift in 0..24 {
        for cut in 0..6 {
            let chip = RefCell::new(Chip::new(CHIP));
            let map = map_for(&CHIP, logical, &mut memory);
            let mut ftl = Ftl::format(Shared::whole(&chip), map, logical, &mut ram).unwrap();
            (0..logical).for_each(|at| ftl.write(at, &[1; 512]).unwrap());
            (0..shift).for_each(|at| ftl.write(at * 7 % logical, &[1; 512]).unwrap());
            chip.borrow_mut().cut_at_change(cut, Cut::Inside(Tear::Ones));
            let written = ftl.write_pages_atomic(20, &[2; 512 * 6]);
            chip.borrow_mut().restore_power();
            let map = map_for(&CHIP, logical, &mut memory);
            let mut ftl = Ftl::open(Shared::whole(&chip), map, logical, &mut ram).unwrap();
            ftl.write(2, &[1; 512]).unwrap();
            let mut page = [0; 512];
            for at in 0..logical {
                assert!(ftl.read(at, &mut page).unwrap());
                let is_new = written.is_ok() && (20..26).contains(&at);
                assert_eq!(page, [1 + u8::from(is_new); 512], "{shift}, {cut}: page {at}");
            }
        }
    }
}
