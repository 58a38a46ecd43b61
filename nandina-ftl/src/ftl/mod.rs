//! The FTL: logical pages on a raw chip that survive cuts at any instant.
//!
//! A logical page is written where the log has room (`nandina::log`), any mapping remembers where,
//! and garbage collection moves it (`nandina::gc`). The header of each page carries its logical
//! number and a sequence number; the highest counts. So nothing on the chip needs to be rewritten,
//! and a mount needs nothing but the headers; [`Ftl::checkpoint`] spares it most of them. The FTL
//! knows no mapping by name, and no mapping knows it.
//!
//! What holds after cuts, blocks that fail, and mounts that are cut themselves:
//! - a write or a trim that returned `Ok` stays; of one that did not, each page is old or new;
//! - a volatile trim ([`Ftl::trim_volatile`]) stays, or is undone together with all volatile trims
//!   after it: then each page that was not written since is as it was right before the trim;
//! - of a request to [`Ftl::write_pages_atomic`] that did not return `Ok`, all pages are old, or
//!   all are new;
//! - a page that was read as new stays new, and one that was read as old stays old until it is
//!   written again, even if a torn page reads differently each time (rule 6 of the media contract);
//! - a stale copy never wins over a newer one, however garbage collection moved either of them.
//!
//! What does not hold: if the newest copy of a page fades beyond its ECC, a mount takes an older
//! one if the chip still has it ([`Statistics::unexplained_blocks`](crate::Statistics::unexplained_blocks) counts this). Idle steps read
//! pages before they fade. A chip that silently fails to program is not detected.
//!
//! ```
//! use nandina_ftl::ftl::{Ftl, logical_pages_max, ram_needed, space_of};
//! use nandina_ftl::mapping::Compact;
//! use nandina_sim::{Chip, TINY};
//!
//! let mut chip = Chip::new(TINY);
//! let logical_pages = logical_pages_max(&TINY.geometry, &TINY.capabilities);
//! let space = space_of(&TINY.geometry, &TINY.capabilities, logical_pages);
//! let (mut ram, mut memory) = ([0; 2048], [0; 2048]);
//! assert!(ram_needed(&TINY.geometry) <= ram.len());
//!
//! let map = Compact::new(space, &mut memory)?;
//! let mut ftl = Ftl::format(&mut chip, map, logical_pages, &mut ram)?;
//! for at in 0..100u8 {
//!     ftl.write(u32::from(at) % logical_pages, &[at; 512])?;
//! }
//! ftl.trim(1, 1)?;
//! // Blocks of the chip were used again and again.
//! assert!(ftl.statistics().erases > 2 * 8);
//!
//! // Power may fail at any instant: what returned Ok is still there.
//! let map = Compact::new(space, &mut memory)?;
//! let mut ftl = Ftl::open(&mut chip, map, logical_pages, &mut ram)?;
//! let mut page = [0; 512];
//! assert!(ftl.read(0, &mut page)?);
//! assert_eq!(u32::from(page[0]) % logical_pages, 0);
//! assert!(!ftl.read(1, &mut page)?, "it was trimmed");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod anchors;
mod block_set;
pub(crate) mod bytes;
mod check;
mod checkpoint;
mod disk;
pub(crate) mod error;
pub(crate) mod mount;
mod owner;
mod places;
mod read;
mod request;
mod restore;
mod settle;
mod size;
mod transit;
mod trim;
mod waiting;
mod worst;
mod write;

pub use check::Unsound;
pub use disk::{BadGroups, DISK, Disk};
pub use error::FtlError;
pub use size::{
    blocks_needed, blocks_needed_beside, logical_page_bytes, logical_pages_apart_beside,
    logical_pages_apart_max, logical_pages_beside, logical_pages_max, ram_needed, ram_needed_for,
    ram_needed_with, request_pages_max, space_of,
};
pub(crate) use worst::writes_of_trims;
pub use worst::{trim_writes, write_cost};

use nandina::blocks::{Blocks, GcPolicy};
use nandina::covered;
use nandina::flash::{BlockNumber, Flash, PageNumber};
use nandina::gc::{self, Collector, PageOwner};
use nandina::log::{Codec, Frames, Log, layout_of};
use nandina::node::Medium;
use nandina::{Fault, Idle};

use crate::logical::{LogicalPages, Statistics};
use crate::mapping::{Extent, Mapping, Refusal, Run};
use crate::transit::{Buffer, Conversions, GROUP_PAGES_MAX, State};
use anchors::Anchors;
use bytes::{Kind, LOGICAL_END, NEW, Own, SUSPECT_BYTES, SUSPECTS_MAX, SYSTEM, Suspects};
use places::Places;
use size::{FRAMES, Limits, OpenBlocks, SUSPECTS_OF_BUFFER, TABLE};
use waiting::Waiting;

/// The most chip operations to list more blocks: three reads, two erases and a program; or, if a
/// block fails, two erases and marks.
const LISTING_COST: u32 = 10;

/// What can be chosen at each opening of an FTL. The chip does not say what was chosen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// How garbage collection chooses a block.
    pub victims: GcPolicy,
    /// The transit buffer before the log.
    pub buffer: Buffer,
}

impl From<GcPolicy> for Choices {
    fn from(victims: GcPolicy) -> Self {
        Self { victims, buffer: Buffer::NONE }
    }
}

impl From<Buffer> for Choices {
    fn from(buffer: Buffer) -> Self {
        Self { victims: GcPolicy::Fewest, buffer }
    }
}

/// How pages of an FTL are sealed and checked.
const CODEC: Codec = Codec {
    seal: |layout, page, medium, header, sum| layout.seal_as(page, medium, header, false, sum),
    check: |layout, page, sum| layout.check_as(page, true, sum),
    // A page that cannot be read would let an older copy of it count.
    reads_max: 3,
};

/// Logical pages on a chip.
///
/// Every operation that fails half way is treated as a cut: the next one mounts again.
pub struct Ftl<'b, F, M> {
    log: Log<'b, F>,
    collector: Collector,
    mapping: M,
    places: Places,
    limits: Limits,
    logical_pages: u32,
    /// Where the newest pages are that the FTL keeps about itself, by [`Own`].
    own: [Option<PageNumber>; Own::ALL.len()],
    /// Blocks that may hold a torn page, as the newest session page says.
    suspects: Suspects,
    /// Volatile trims that are not durable yet.
    waiting: Waiting,
    /// The newest page that the mount saw, and its sequence number.
    newest: (PageNumber, u64),
    /// The block with the last page of a request that the mount found incomplete.
    incomplete: Option<BlockNumber>,
    /// The other blocks that were open before the mount, if they may end in a torn page.
    beside: [Option<BlockNumber>; 2],
    /// Where the session before the mount began, if there were buffer blocks.
    buffered_from: Option<u64>,
    /// Whether pages that collection moves have a block of their own.
    moves_apart: bool,
    /// The buffer blocks before the log.
    transit: State<'b>,
    /// The directories of checkpoints on the chip, and the blocks that may be opened.
    anchors: Anchors<'b>,
    /// Whether no torn page is left that could be read.
    settled: bool,
    /// Whether a mount has begun and not ended: blocks that it leaves out are marked as stuck.
    is_scanning: bool,
    /// Whether an operation failed half way: RAM may differ from the chip.
    in_doubt: bool,
    /// Why a page could not be moved, if the mapping refused.
    refused: Option<Refusal>,
    statistics: Statistics,
    /// Erases of all blocks that the block table counts at the mount.
    erases_before: u64,
    /// Room for the logical numbers of pages that are moved in their order; empty for no order.
    move_order: &'b mut [u32],
}

impl<'b, F: Flash, M: Mapping> Ftl<'b, F, M> {
    /// Makes an FTL without any page on the chip, whatever the chip holds.
    ///
    /// `ram` has at least [`ram_needed`] bytes, and the mapping was made for [`space_of`] this chip
    /// and these pages. Refuses with [`FtlError::TooFewSpareBlocks`] if there are more than
    /// [`logical_pages_max`]; with up to [`logical_pages_apart_max`] it programs less. If a format
    /// is cut, format again: a later [`open`](Self::open) finds either the former FTL, or refuses.
    /// (A chip that held something else, or an FTL of more logical pages, is undefined.)
    ///
    /// Cost: a mount, an erase of every block and a program or two.
    pub fn format(
        flash: F,
        mapping: M,
        logical_pages: u32,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        Self::format_with(flash, mapping, logical_pages, GcPolicy::Fewest, ram)
    }

    /// Makes an FTL as [`format`](Self::format) does, with these `choices`.
    ///
    /// `ram` has at least [`ram_needed_with`] bytes. The choice is not stored on the chip: it may
    /// be another one at each opening. [`GcPolicy::Tracked`] is for indexes that write paths, and
    /// means [`GcPolicy::Fewest`] here. A choice by cost and benefit looks at every block.
    ///
    /// With [`Choices`] a transit buffer may be before the log: it takes [`ram_needed_for`] bytes
    /// and leaves [`logical_pages_beside`] pages. Any FTL opens what one with a buffer leaves.
    pub fn format_with(
        flash: F,
        mapping: M,
        logical_pages: u32,
        choices: impl Into<Choices>,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        let mut ftl = Self::new(flash, mapping, logical_pages, choices.into(), ram)?;
        // From here on the former FTL is not opened any more, however many blocks are erased.
        let former = ftl.mount();
        let retired = former.and_then(|()| ftl.program_mark(Kind::Retired));
        if let Err(FtlError::Device(error)) = retired {
            return Err(FtlError::Device(error));
        }
        // So the block that says so comes last.
        let last = ftl.log.active_block();
        ftl.anchors.forget(&mut ftl.log);
        ftl.forget_all();
        for block in ftl.log.blocks.all() {
            if !ftl.log.blocks.is_bad(block) && Some(block) != last {
                ftl.log.erase(block)?;
            }
        }
        ftl.log.mark_bad_blocks()?;
        if let Some(last) = last {
            ftl.log.erase(last)?;
            ftl.log.mark_bad_blocks()?;
        }
        let identity = ftl.log.identity().wrapping_add(1);
        ftl.log.restart(identity, ftl.log.sequence());
        ftl.write_session()?;
        (ftl.settled, ftl.in_doubt, ftl.is_scanning) = (true, false, false);
        ftl.statistics = Statistics::default();
        ftl.transit.conversions = Conversions::default();
        ftl.erases_before = ftl.erases_counted();
        Ok(ftl)
    }

    /// Opens the FTL on a chip, and writes nothing.
    ///
    /// Reads every written page, or the newest [`checkpoint`](Self::checkpoint) and what was
    /// written since.
    ///
    /// The arguments are those of [`format`](Self::format). More logical pages than before are
    /// fine, as long as the chip has enough spare blocks. Fewer are refused as long as the chip
    /// holds any copy, even a stale one, of a page behind the last. The memory of the mapping has
    /// to suffice in between, too: a mount meets pages in the order of blocks, stale ones as well.
    ///
    /// Cost: for each block at most seven reads, for each written page one, for each page that has
    /// an older copy one more, for the newest page and the session page 24 each; and the reads of
    /// pages once more if the last session was cut while it settled a cut before it, or for each
    /// torn page at the end.
    ///
    /// Of a chip with a checkpoint, blocks and pages are those that the checkpoint lists and that
    /// were opened since. At most 16 blocks are listed, or twice as many as were opened, and some
    /// of their groups on chips with more blocks than a page has bits. Beside these it reads the
    /// anchors, the parts, and the directory once for each eight blocks of them.
    pub fn open(
        flash: F,
        mapping: M,
        logical_pages: u32,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        Self::open_with(flash, mapping, logical_pages, GcPolicy::Fewest, ram)
    }

    /// Opens the FTL as [`open`](Self::open) does; `choices` are as in
    /// [`format_with`](Self::format_with).
    pub fn open_with(
        flash: F,
        mapping: M,
        logical_pages: u32,
        choices: impl Into<Choices>,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        let mut ftl = Self::new(flash, mapping, logical_pages, choices.into(), ram)?;
        ftl.mount()?;
        Ok(ftl)
    }

    fn new(
        flash: F,
        mapping: M,
        logical_pages: u32,
        Choices { victims, buffer }: Choices,
        ram: &'b mut [u8],
    ) -> Result<Self, FtlError<F::Error>> {
        let victims = match victims {
            GcPolicy::Tracked(_) => GcPolicy::Fewest,
            victims => victims,
        };
        let (geometry, capabilities) = (flash.geometry(), flash.capabilities());
        let choices = Choices { victims, buffer };
        let (needed, given) = (ram_needed_for(&geometry, &capabilities, &choices), ram.len());
        if given < needed {
            return Err(FtlError::RamTooSmall { needed, given });
        }
        let needed_bytes = needed;
        let (given, most) = (geometry.pages_per_block, u16::MAX.into());
        if given > most {
            return Err(FtlError::TooLarge { most, given });
        }
        let block_pages = capabilities.pairing.safe_pages(geometry.pages_per_block);
        let most = logical_pages_beside(&geometry, &capabilities, &buffer).min(LOGICAL_END);
        if logical_pages > most || block_pages == 0 || logical_pages == 0 {
            let wanted = logical_pages.max(1);
            let blocks_needed = blocks_needed_beside(&geometry, &capabilities, &buffer, wanted);
            return Err(FtlError::TooFewSpareBlocks { logical_pages_max: most, blocks_needed });
        }
        let layout = layout_of(&geometry);
        if buffer.blocks > 0 && block_pages > GROUP_PAGES_MAX {
            return Err(FtlError::BufferPages { most: GROUP_PAGES_MAX, given: block_pages });
        }
        let more = if buffer.blocks > 0 { SUSPECTS_OF_BUFFER } else { 0 };
        let needed = size::page_bytes_min(block_pages) + more * SUSPECT_BYTES;
        if layout.area_bytes() < needed || size::suspects_max(block_pages) + more > SUSPECTS_MAX {
            return Err(FtlError::PagesTooSmall { needed, given: layout.area_bytes() });
        }
        let expected = space_of(&geometry, &capabilities, logical_pages);
        if mapping.space() != expected {
            return Err(FtlError::OtherSpace { expected, given: mapping.space() });
        }
        let frame_bytes = layout.frame_bytes();
        let (frames, rest) =
            ram[..needed_bytes].split_at_mut(Frames::ram_needed(frame_bytes, FRAMES, false));
        let (sets, rest) = rest.split_at_mut(anchors::ram_needed(geometry.blocks));
        let (buffered, rest) = rest.split_at_mut(size::buffered_bytes(&geometry, &buffer));
        let state_bytes = size::state_bytes(&geometry, &capabilities, &buffer);
        let (state, rest) = rest.split_at_mut(state_bytes);
        let sizes = (logical_pages, block_pages);
        let transit = State::new(state, buffer, geometry.blocks, sizes);
        let (validity, wear) = TABLE;
        let blocks = Blocks::new(rest, &geometry, validity, victims, wear, block_pages);
        let medium = Medium {
            system: SYSTEM,
            key_bytes: 0,
            value_bytes: 0,
            blocks: geometry.blocks,
            pages_per_block: geometry.pages_per_block as u16,
            checkpoints: false,
            appended: false,
            replaced: false,
            atomic: false,
        };
        let frames = Frames::new(frames, frame_bytes, FRAMES);
        let most = logical_pages_apart_beside(&geometry, &capabilities, &buffer);
        let moves_apart = logical_pages <= most;
        let open = OpenBlocks { apart: moves_apart, buffer: buffer.blocks };
        let log = Log::new(flash, &CODEC, medium, frames, blocks, (false, victims));
        Ok(Self {
            log,
            collector: Collector::default(),
            mapping,
            places: Places::of(&geometry, &capabilities),
            limits: size::limits_if(&geometry, &capabilities, open),
            logical_pages,
            own: [None; Own::ALL.len()],
            suspects: Suspects::default(),
            waiting: Waiting::NONE,
            newest: (PageNumber(0), 0),
            incomplete: None,
            beside: [None; 2],
            buffered_from: None,
            transit,
            moves_apart,
            is_scanning: false,
            anchors: Anchors::new(sets, buffered),
            settled: false,
            in_doubt: true,
            refused: None,
            statistics: Statistics::default(),
            erases_before: 0,
            move_order: &mut [],
        })
    }

    /// Logical pages, as it was opened.
    pub const fn logical_pages(&self) -> u32 {
        self.logical_pages
    }

    /// Bytes of a logical page.
    pub fn page_bytes(&self) -> usize {
        logical_page_bytes(&self.log.geometry())
    }

    /// The mapping.
    pub const fn mapping(&self) -> &M {
        &self.mapping
    }

    /// The chip.
    pub fn flash(&self) -> &F {
        self.log.flash()
    }

    /// What was done since it was formatted or opened.
    pub fn statistics(&self) -> Statistics {
        let erases = self.erases_counted().saturating_sub(self.erases_before);
        Statistics { erases: self.statistics.erases + erases, ..self.statistics }
    }

    /// Writes a logical page, durably and whole.
    ///
    /// If the mapping has no memory for it, it is refused before anything of it is programmed.
    ///
    /// Cost: one program, and what garbage collection takes; after a cut what it takes to settle:
    /// two programs, for each of the one or two blocks that were open an erase and a move for each
    /// of its valid pages, and 24 reads for each block without valid pages.
    pub fn write(&mut self, logical: u32, bytes: &[u8]) -> Result<(), FtlError<F::Error>> {
        self.expect_page(bytes.len())?;
        self.write_pages(logical, bytes)
    }

    /// Does work that is due, so that later writes need not wait.
    ///
    /// Takes at most `budget` chip operations. Settling after a cut is not counted, and done at
    /// once; nor is what begins a session before its first move (one program, two erases and 48
    /// reads at most). Volatile trims are made durable first, if `budget` is 5 or more, or 7 while
    /// there is a checkpoint. Then buffer blocks are converted as
    /// [`Buffer::ahead`](crate::transit::Buffer::ahead) says, where room is not short. Once none
    /// is, the next [`RESTED_WRITES`](crate::transit::Buffer::RESTED_WRITES) page writes convert
    /// none.
    pub fn idle(&mut self, budget: u32) -> Result<Idle, FtlError<F::Error>> {
        self.mount_if_in_doubt()?;
        self.settle()?;
        let before = self.log.operations();
        if !self.waiting.is_empty() {
            if budget < self.move_cost(0) {
                return Ok(Idle { operations: 0, more: true, left_to_change: false });
            }
            self.list_waiting()?;
        }
        let left = budget.saturating_sub(self.log.operations().wrapping_sub(before));
        if left >= LISTING_COST && self.log.has_begun() {
            self.list_ahead()?;
        }
        let listed = self.log.operations().wrapping_sub(before);
        let is_due = self.convert_ahead(budget.saturating_sub(listed))?;
        if !is_due {
            self.transit.note_rest();
        }
        let used = self.log.operations().wrapping_sub(before);
        let done = gc::step(self, budget.saturating_sub(used));
        let done = self.ended(done)?;
        Ok(Idle { operations: done.operations + used, more: done.more || is_due, ..done })
    }

    /// Marks that every page is whole, so that nothing is to settle, and returns the chip.
    ///
    /// Volatile trims are durable then. Cost: one program, if something was written, and what they
    /// take. If there is no room for the mark it is not written: the next mount settles then.
    pub fn close(mut self) -> Result<F, FtlError<F::Error>> {
        if self.settled && !self.in_doubt {
            self.list_waiting()?;
            if self.log.has_begun() && self.log.room() > 0 {
                self.program_mark(Kind::End)?;
            }
        }
        Ok(self.log.into_flash())
    }

    /// Returns the chip and ends nothing, as if power were cut.
    pub fn into_flash(self) -> F {
        self.log.into_flash()
    }

    fn expect_page(&self, given: usize) -> Result<(), FtlError<F::Error>> {
        FtlError::expect_page(self.page_bytes(), given)
    }

    fn expect_inside(&self, logical: u32, count: u32) -> Result<(), FtlError<F::Error>> {
        FtlError::expect_inside(self.logical_pages, logical, count)
    }

    /// Makes room for a page, and asks the mapping for room for `extent`.
    ///
    /// It will have at most `pages` valid pages more.
    fn begin_change(&mut self, extent: Extent, pages: u32) -> Result<(), FtlError<F::Error>> {
        self.mount_if_in_doubt()?;
        self.mapping.admits(extent)?;
        self.begin()?;
        self.make_way(pages)?;
        self.make_room()?;
        // Pages that moved may have taken memory.
        Ok(self.mapping.admits(extent)?)
    }

    fn make_room(&mut self) -> Result<(), FtlError<F::Error>> {
        let is_short = self.room() < self.kept();
        if is_short || self.waiting.are_due(self.log.blocks.bad_blocks()) {
            self.list_waiting()?;
        }
        self.list_ahead()?;
        self.waiting.note_change();
        // Work that is not for room may mark a block as bad, where the newest copies of pages lie
        // whose trims wait.
        let mut made = gc::make_room(self, self.waiting.is_empty());
        if made.is_err() && self.refused.is_some() && !self.in_doubt {
            // Work that may wait shall not refuse the change for the mapping's sake.
            covered!("ftl: the mapping has no memory for a page that may wait");
            self.refused = None;
            made = gc::make_room(self, false);
        }
        if self.is_without_room(&made) {
            covered!("ftl: a change gives a checkpoint up for room");
            self.give_up_checkpoint()?;
            made = gc::make_room(self, false);
        }
        self.ended(made)
    }

    /// Whether no room was found, and the checkpoint could make some.
    fn is_without_room<T>(&self, gained: &Result<T, Fault<F::Error>>) -> bool {
        let has_none = matches!(gained, Err(Fault::NoRoom { .. } | Fault::WornOut { .. }));
        has_none && self.has_checkpoint() && self.refused.is_none() && !self.in_doubt
    }

    /// The result of garbage collection, whose error may be that of the mapping.
    fn ended<T>(&mut self, done: Result<T, Fault<F::Error>>) -> Result<T, FtlError<F::Error>> {
        self.in_doubt |= matches!(done, Err(Fault::Device(_)));
        match (done, self.refused.take()) {
            (Err(_), Some(refusal)) if !self.in_doubt => Err(FtlError::Mapping(refusal)),
            (done, _) => done.map_err(FtlError::from),
        }
    }

    fn mount_if_in_doubt(&mut self) -> Result<(), FtlError<F::Error>> {
        if self.in_doubt { self.mount() } else { Ok(()) }
    }

    /// How many blocks may be open at a time.
    const fn open_blocks(&self) -> OpenBlocks {
        OpenBlocks { apart: self.moves_apart, buffer: self.transit.buffer.blocks }
    }

    /// The page that holds a logical page.
    fn find(&mut self, logical: u32) -> Option<PageNumber> {
        let mut found = None;
        // A number behind the space is nowhere.
        let _ = self.mapping.look_up(Extent::new(logical, 1), &mut |piece| found = piece.physical);
        found.map(|place| self.places.page(place))
    }

    /// The page that counts of this kind.
    fn current(&mut self, kind: Kind) -> Option<PageNumber> {
        match kind {
            Kind::Data(logical) | Kind::Hole(logical) => self.find(logical),
            Kind::Own(own) => self.own[own as usize],
            Kind::End | Kind::Retired | Kind::Part | Kind::Directory => None,
        }
    }

    /// Notes that `page` holds what is of this kind, and returns the page that held it.
    fn note(&mut self, kind: Kind, page: PageNumber) -> Result<Option<PageNumber>, Refusal> {
        let mut before = None;
        match kind {
            Kind::Data(logical) | Kind::Hole(logical) => {
                let places = self.places;
                let mut keep = |run: Run| before = Some(places.page(run.physical));
                self.mapping.update(Extent::new(logical, 1), places.place(page), &mut keep)?;
            }
            Kind::Own(own) => before = self.own[own as usize].replace(page),
            Kind::End | Kind::Retired | Kind::Part | Kind::Directory => {}
        }
        Ok(before)
    }

    /// Turns to the open block for pages with this tag.
    ///
    /// Until what a cut left is settled, there is one block for all.
    fn turn(&mut self, tag: u8) {
        if self.moves_apart && self.settled {
            self.log.turn(tag);
        }
    }

    /// Programs the page in `frame` behind the new pages. Once that is done it counts.
    fn program(&mut self, frame: usize, kind: Kind) -> Result<(), FtlError<F::Error>> {
        self.turn(NEW);
        self.program_here(frame, kind)
    }

    /// The same, into the block to which the log was turned.
    fn program_here(&mut self, frame: usize, kind: Kind) -> Result<(), FtlError<F::Error>> {
        self.in_doubt = true;
        let anchors = &mut self.anchors;
        let next = |log: &mut Log<'_, F>, filled| anchors.next_block(log, filled);
        let page = self.log.write_into(frame, kind.label(), next)?;
        self.note_here(page, kind)
    }

    /// The same for the page `of`, which is in page buffer 0 as it was read.
    fn program_moved(&mut self, of: PageNumber, kind: Kind) -> Result<(), FtlError<F::Error>> {
        self.in_doubt = true;
        let anchors = &mut self.anchors;
        let next = |log: &mut Log<'_, F>, filled| anchors.next_block(log, filled);
        let page = self.log.write_moved(of, 0, kind.label(), next)?;
        self.note_here(page, kind)
    }

    /// Notes that `page` was programmed: it counts.
    fn note_here(&mut self, page: PageNumber, kind: Kind) -> Result<(), FtlError<F::Error>> {
        self.statistics.programmed += 1;
        match self.note(kind, page)? {
            Some(before) => self.log.supersede(before),
            None if matches!(kind, Kind::End | Kind::Retired) => {
                self.log.blocks.set_valid(page, false);
            }
            None => {}
        }
        self.release();
        self.in_doubt = false;
        Ok(())
    }

    /// Programs a page that says something by itself, and holds nothing.
    fn program_mark(&mut self, kind: Kind) -> Result<(), FtlError<F::Error>> {
        self.log.frames.forget(0);
        self.log.frames.bytes_mut(0).fill(0);
        self.program(0, kind)?;
        self.statistics.own += 1;
        Ok(())
    }

    /// Erases of all blocks, as far as they are known.
    fn erases_counted(&self) -> u64 {
        let blocks = &self.log.blocks;
        blocks.all().map(|block| u64::from(blocks.erase_count(block))).sum()
    }

    fn block_of(&self, page: PageNumber) -> BlockNumber {
        self.log.geometry().block_of(page)
    }
}

impl<F: Flash, M: Mapping> LogicalPages for Ftl<'_, F, M> {
    type Error = FtlError<F::Error>;

    fn logical_pages(&self) -> u32 {
        Self::logical_pages(self)
    }

    fn page_bytes(&self) -> usize {
        Self::page_bytes(self)
    }

    fn read(&mut self, logical: u32, bytes: &mut [u8]) -> Result<bool, Self::Error> {
        Self::read(self, logical, bytes)
    }

    fn read_pages(&mut self, logical: u32, bytes: &mut [u8]) -> Result<u32, Self::Error> {
        Self::read_pages(self, logical, bytes)
    }

    fn write(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        Self::write(self, logical, bytes)
    }

    fn write_pages(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        Self::write_pages(self, logical, bytes)
    }

    fn request_pages_max(&self) -> u32 {
        Self::request_pages_max(self)
    }

    fn write_pages_atomic(&mut self, logical: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        Self::write_pages_atomic(self, logical, bytes)
    }

    fn trim(&mut self, logical: u32, count: u32) -> Result<(), Self::Error> {
        Self::trim(self, logical, count)
    }

    fn trim_volatile(&mut self, logical: u32, count: u32) -> Result<(), Self::Error> {
        Self::trim_volatile(self, logical, count)
    }

    fn idle(&mut self, budget: u32) -> Result<Idle, Self::Error> {
        Self::idle(self, budget)
    }

    fn idle_least(&self) -> u32 {
        // A list, and a page that moves with those beside it, or whose buffer block is read.
        let moves = self.move_cost(self.pages_beside()) + self.log.block_pages();
        LISTING_COST + moves.max(gc::least(self))
    }

    fn statistics(&self) -> Statistics {
        Self::statistics(self)
    }
}
