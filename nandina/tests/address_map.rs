//! A flat address map on the library's log and collector alone.
//!
//! It proves that these do not depend on a tree. Power is cut at each of its chip operations, and
//! again while it recovers.

use core::ops::Range;

use nandina::Fault;
use nandina::blocks::{Blocks, GcPolicy, LivenessTracking, WearPolicy};
use nandina::flash::profile::Profile;
use nandina::flash::{BlockNumber, Flash, Geometry, PageNumber};
use nandina::gc::{self, Budget, Collector, Extent, PageOwner, RelocationMode};
use nandina::log::{Codec, Frames, GAP, Label, Log, layout_of};
use nandina::node::Medium;
use nandina_sim::{Chip, ChipError, Cut, TINY};

const CODEC: Codec = Codec {
    seal: |layout, page, medium, header, _| layout.seal(page, medium, header),
    check: |layout, page, _| layout.open(page).map(drop),
    reads_max: 1,
};

/// Pages that a host writes under its own numbers; the newest copy of each counts.
struct Mapped<'b> {
    log: Log<'b, &'b mut Chip>,
    collector: Collector,
    /// By logical page, the page with its newest copy.
    map: Vec<Option<PageNumber>>,
    budget: Budget,
}

type Outcome<T> = Result<T, Fault<ChipError>>;

impl<'b> Mapped<'b> {
    /// Reads every page that was written, and keeps the newest copy of each logical page.
    fn mount(chip: &'b mut Chip, ram: &'b mut [u8]) -> Outcome<Self> {
        let geometry = chip.geometry();
        let frame_bytes = layout_of(&geometry).frame_bytes();
        let (frames, rest) = ram.split_at_mut(Frames::ram_needed(frame_bytes, 2, false));
        let block_pages = chip.capabilities().pairing.safe_pages(geometry.pages_per_block);
        let (validity, victims, wear) =
            (LivenessTracking::Marked, GcPolicy::Fewest, WearPolicy::Counted);
        let blocks = Blocks::new(rest, &geometry, validity, victims, wear, block_pages);
        let medium = Medium {
            system: 200,
            key_bytes: 0,
            value_bytes: 0,
            blocks: geometry.blocks,
            pages_per_block: geometry.pages_per_block as u16,
            checkpoints: false,
            appended: false,
            replaced: false,
            atomic: false,
        };
        let frames = Frames::new(frames, frame_bytes, 2);
        let mut log = Log::new(chip, &CODEC, medium, frames, blocks, (false, victims));
        let kept_blocks = log.reserve_blocks();
        let extent = Extent { block_pages, blocks: geometry.blocks - kept_blocks };
        let budget = Budget::new(&extent, RelocationMode::Alone, 1, (1, 1), 0);
        let mut map: Vec<Option<(PageNumber, u64)>> = vec![None; budget.limit_pages as usize];
        log.find_bad_blocks()?;
        let mut highest = 0;
        for block in log.blocks.all() {
            for place in 0..log.written(block, block_pages, 1)? {
                let page = log.page_at(block, place);
                let Ok(header) = log.read_raw(page, 0)? else { continue };
                highest = highest.max(header.sequence);
                log.blocks.set_erase_count(block, header.erase_count);
                let newest = &mut map[header.records as usize];
                if newest.is_none_or(|(_, sequence)| sequence < header.sequence) {
                    *newest = Some((page, header.sequence));
                }
            }
        }
        log.blocks.guess_erase_counts();
        log.restart(1, highest + GAP);
        let map: Vec<_> = map.into_iter().map(|newest| newest.map(|(page, _)| page)).collect();
        for &page in map.iter().flatten() {
            log.blocks.set_valid(page, true);
        }
        let mut mapped = Self { log, collector: Collector::default(), map, budget };
        gc::note_reserve(&mut mapped);
        Ok(mapped)
    }

    /// Writes a logical page, durably and whole.
    fn write(&mut self, logical: u32, byte: u8) -> Outcome<()> {
        gc::make_room(self, true)?;
        self.log.frames.forget(0);
        let area_bytes = self.log.layout().area_bytes();
        self.log.frames.bytes_mut(0)[..area_bytes].fill(byte);
        self.write_frame(logical)
    }

    fn write_frame(&mut self, logical: u32) -> Outcome<()> {
        let page = self.log.write(0, Label { lowest: 1, height: 0, records: logical })?;
        if let Some(before) = self.map[logical as usize].replace(page) {
            self.log.supersede(before);
        }
        self.log.blocks.release();
        Ok(())
    }

    fn read(&mut self, logical: u32) -> Outcome<Option<u8>> {
        let Some(page) = self.map[logical as usize] else { return Ok(None) };
        assert!(self.log.read_raw(page, 0)?.is_ok(), "{page} cannot be read");
        Ok(Some(self.log.frames.bytes(0)[0]))
    }
}

impl<'b> PageOwner<'b, &'b mut Chip> for Mapped<'b> {
    fn log(&self) -> &Log<'b, &'b mut Chip> {
        &self.log
    }

    fn log_mut(&mut self) -> &mut Log<'b, &'b mut Chip> {
        &mut self.log
    }

    fn collector(&self) -> &Collector {
        &self.collector
    }

    fn collector_mut(&mut self) -> &mut Collector {
        &mut self.collector
    }

    fn relocate(&mut self, page: PageNumber, _: Option<BlockNumber>) -> Outcome<()> {
        match self.log.read_raw(page, 0)? {
            Ok(header) if self.map[header.records as usize] == Some(page) => {
                self.write_frame(header.records)
            }
            found => panic!("{page} is valid, and holds {found:?}"),
        }
    }

    fn kept(&self) -> u32 {
        self.budget.room_pages()
    }

    fn reserve_pages(&self) -> u32 {
        self.budget.reserve_pages()
    }

    fn pages_to_empty(&self, valid: u32, _: bool) -> u32 {
        valid
    }

    fn move_cost(&self, _: u32) -> u32 {
        4
    }

    fn limit_pages(&self) -> u32 {
        self.budget.limit_pages
    }
}

const CHIP: Profile =
    Profile { geometry: Geometry { blocks: 16, pages_per_block: 8, ..TINY.geometry }, ..TINY };

/// Logical pages that are written: nearly as many as may be valid.
const LOGICAL: usize = 70;

const WRITES: u32 = 600;

/// The logical pages that are written, one after the other, and their bytes.
fn work(writes: u32) -> impl Iterator<Item = (u32, u8)> {
    (0..writes)
        .map(|at| ((at.wrapping_mul(0x9E37_79B1) >> 8) & 0xFFFF).rem_euclid(LOGICAL as u32))
        .zip((0..=255).cycle())
}

#[test]
fn a_flat_address_map_on_the_log_is_right_after_every_cut() {
    let mut chip = Chip::new(CHIP);
    let mut ram = vec![0; 16 << 10];
    // Enough logical pages that blocks have to be collected.
    let mut mapped = Mapped::mount(&mut chip, &mut ram).unwrap();
    assert!(
        mapped.budget.limit_pages as usize >= LOGICAL,
        "only {} pages",
        mapped.budget.limit_pages
    );
    for (logical, byte) in work(WRITES) {
        mapped.write(logical, byte).unwrap();
    }
    assert!(mapped.collector.collected_blocks() > 5);
    let operations = chip.counters().operations();
    let mut second_cuts = 0;
    for operation in 0..operations {
        let mut chip = Chip::new(CHIP);
        let mut model = Model { holds: [None; LOGICAL], may_hold: None };
        chip.cut_at(operation, Cut::ALL[operation as usize % Cut::ALL.len()]);
        model.write_until_cut(&mut chip, &mut ram, 0..WRITES);
        chip.restore_power();
        // A mount reads each page; the second cut is there, or in one of the first writes.
        let second = operation * 5 % 256;
        chip.cut_at(second, Cut::ALL[second as usize % Cut::ALL.len()]);
        second_cuts += u32::from(model.write_until_cut(&mut chip, &mut ram, WRITES..WRITES + 60));
        chip.restore_power();
        model.compare(&mut chip, &mut ram, operation);
        // It continues, with all data in place.
        assert!(!model.write_until_cut(&mut chip, &mut ram, WRITES + 60..WRITES + 120));
        model.compare(&mut chip, &mut ram, operation);
    }
    assert!(operations > 700, "only {operations} cuts");
    assert!(second_cuts > operations as u32 / 2, "only {second_cuts} second cuts");
}

/// What the map must hold.
struct Model {
    holds: [Option<u8>; LOGICAL],
    /// The write that was cut: its page is old or new.
    may_hold: Option<(u32, u8)>,
}

impl Model {
    /// Writes the given part of the work. Returns whether power was cut.
    fn write_until_cut(&mut self, chip: &mut Chip, ram: &mut [u8], part: Range<u32>) -> bool {
        let mut mapped = match Mapped::mount(chip, ram) {
            Ok(mapped) => mapped,
            Err(fault) => {
                assert_eq!(fault, Fault::Device(ChipError::PowerLost));
                return true;
            }
        };
        if self.settle(&mut mapped).is_err() {
            return true;
        }
        for (logical, byte) in work(part.end).skip(part.start as usize) {
            if let Err(fault) = mapped.write(logical, byte) {
                assert_eq!(fault, Fault::Device(ChipError::PowerLost));
                self.may_hold = Some((logical, byte));
                return true;
            }
            self.holds[logical as usize] = Some(byte);
        }
        false
    }

    /// Notes what became of the write that was cut.
    fn settle(&mut self, mapped: &mut Mapped<'_>) -> Outcome<()> {
        if let Some((logical, byte)) = self.may_hold {
            let (found, before) = (mapped.read(logical)?, self.holds[logical as usize]);
            assert!(found == before || found == Some(byte), "{logical} holds {found:?}");
            (self.holds[logical as usize], self.may_hold) = (found, None);
        }
        Ok(())
    }

    fn compare(&mut self, chip: &mut Chip, ram: &mut [u8], operation: u64) {
        let mut mapped = Mapped::mount(chip, ram).unwrap();
        self.settle(&mut mapped).unwrap();
        for (logical, expected) in (0..).zip(self.holds) {
            assert_eq!(mapped.read(logical).unwrap(), expected, "{operation}: {logical}");
        }
    }
}
