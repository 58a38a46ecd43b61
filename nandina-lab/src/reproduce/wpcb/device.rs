//! Logical pages in RAM, and a record of what an index does to them.
//!
//! An index on an FTL reads and writes the same pages whatever the FTL is. So each index runs once,
//! here, and its pages are then replayed on every FTL (`below.rs` beside this). A page is replaced
//! as a whole, as an FTL does it. Nothing here fails or loses power.

use std::cell::{Cell, RefCell};

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use nandina::log::layout_of;
use nandina_ftl::ftl::DISK;
use nandina_sim::ChipError;

/// Bytes of a page. A leaf has room for 128 entries of 8 bytes, as in section 6.1 of the paper.
const PAGE_BYTES: u32 = 1066;

/// What an index did, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It wrote this page.
    Write(u32),
    /// It no longer needs this page.
    Trim(u32),
    /// An operation of the index ended, which read so many pages.
    End(u32),
}

/// Events in four bytes each: a million operations are about two million events.
#[derive(Clone, Default)]
pub struct Events(Vec<u32>);

const TRIM: u32 = 1 << 30;
const END: u32 = 1 << 31;

impl Events {
    /// Adds an event.
    pub fn push(&mut self, event: Event) {
        self.0.push(match event {
            Event::Write(page) => page,
            Event::Trim(page) => TRIM | page,
            Event::End(reads) => END | reads,
        });
    }

    /// The events in order.
    pub fn iter(&self) -> impl Iterator<Item = Event> {
        self.0.iter().map(|&event| match event {
            event if event & END != 0 => Event::End(event & !END),
            event if event & TRIM != 0 => Event::Trim(event & !TRIM),
            page => Event::Write(page),
        })
    }
}

/// Pages that an index took and gave up. It has a page for each node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// Writes of pages that the index did not have.
    pub new: u64,
    /// Those of them with a leaf.
    pub leaves: u64,
    /// Those of these with one record.
    pub of_one_record: u64,
    /// Pages that it gave up.
    pub given_up: u64,
}

impl std::ops::Sub for Taken {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            new: self.new - before.new,
            leaves: self.leaves - before.leaves,
            of_one_record: self.of_one_record - before.of_one_record,
            given_up: self.given_up - before.given_up,
        }
    }
}

/// The device, which grows with the pages that are written.
///
/// An index lends its device only for looking, so the record has cells.
pub struct Device {
    blocks: u32,
    block_pages: u32,
    pages: Vec<Option<Box<[u8]>>>,
    /// Whether the index needs each page.
    held: Vec<bool>,
    taken: Taken,
    events: RefCell<Events>,
    reads: Cell<u32>,
}

impl Device {
    /// A device of so many blocks of so many pages.
    pub fn new(blocks: u32, block_pages: u32) -> Self {
        let (events, reads, taken) = (RefCell::default(), Cell::new(0), Taken::default());
        let (pages, held) = (Vec::new(), Vec::new());
        Self { blocks, block_pages, pages, held, taken, events, reads }
    }

    /// The pages that were taken and given up so far.
    pub const fn taken(&self) -> Taken {
        self.taken
    }

    /// Notes that an operation ended, and returns how many pages it read.
    pub fn end_operation(&self) -> u32 {
        let reads = self.reads.take();
        self.events.borrow_mut().push(Event::End(reads));
        reads
    }

    /// What was done since the last call.
    pub fn take_events(&self) -> Events {
        self.events.take()
    }

    /// The highest page that was written, and one more.
    pub const fn pages(&self) -> u32 {
        self.pages.len() as u32
    }

    fn write(&mut self, page: PageNumber, main: &[u8]) {
        let at = page.0 as usize;
        if self.pages.len() <= at {
            self.pages.resize(at + 1, None);
            self.held.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.held[at], true) {
            self.taken.new += 1;
            let is_leaf = layout_of(&self.geometry()).header(main).lowest == 1;
            self.taken.leaves += u64::from(is_leaf);
            // A node begins with the number of its records.
            self.taken.of_one_record += u64::from(is_leaf && main[..2] == [1, 0]);
        }
        match &mut self.pages[at] {
            Some(bytes) => bytes.copy_from_slice(main),
            none => *none = Some(main.into()),
        }
        self.events.get_mut().push(Event::Write(page.0));
    }
}

impl Flash for Device {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        Geometry {
            page_bytes: PAGE_BYTES,
            spare_bytes: 0,
            pages_per_block: self.block_pages,
            blocks: self.blocks,
        }
    }

    fn capabilities(&self) -> Capabilities {
        DISK
    }

    fn reports_corrections(&self) -> bool {
        false
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        *self.reads.get_mut() += 1;
        spare.fill(0xFF);
        match self.pages.get(page.0 as usize) {
            Some(Some(bytes)) => main.copy_from_slice(bytes),
            _ => main.fill(0xFF),
        }
        Ok(Reading::Clean)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], _: &[u8]) -> Result<(), ChipError> {
        self.write(page, main);
        Ok(())
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], _: &[u8]) -> Result<(), ChipError> {
        self.write(page, main);
        Ok(())
    }

    fn discard(&mut self, page: PageNumber) -> Result<(), ChipError> {
        let held = self.held.get_mut(page.0 as usize);
        self.taken.given_up += u64::from(held.is_some_and(std::mem::take));
        self.events.get_mut().push(Event::Trim(page.0));
        Ok(())
    }

    fn erase(&mut self, _: BlockNumber) -> Result<(), ChipError> {
        Ok(())
    }

    fn is_bad(&mut self, _: BlockNumber) -> Result<bool, ChipError> {
        Ok(false)
    }

    fn mark_bad(&mut self, _: BlockNumber) -> Result<(), ChipError> {
        Ok(())
    }
}
