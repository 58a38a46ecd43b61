//! A flat address map on the library's log and collector alone.
//!
//! It proves that these do not depend on a tree. Power is cut at each of its chip operations.

use nandina::Fault;
use nandina::blocks::{Blocks, Validity, Victims, Wear};
use nandina::flash::profile::Profile;
use nandina::flash::{BlockNumber, Flash, Geometry, PageNumber};
use nandina::gc::{self, Collector, PageOwner};
use nandina::log::{Codec, Frames, GAP, Label, Log, layout_of};
use nandina::node::Medium;
use nandina::space::{Budget, Extent, Moves};
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
        let (validity, victims, wear) = (Validity::Marked, Victims::Fewest, Wear::Counted);
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
        let budget = Budget::new(&extent, Moves::Alone, 1, (1, 1), 0);
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
    let mut cuts = 0;
    for operation in (0..operations).step_by(7) {
        let mut chip = Chip::new(CHIP);
        let cut = Cut::ALL[operation as usize % Cut::ALL.len()];
        chip.cut_at(operation, cut);
        let mut model = [None; LOGICAL];
        let mut waiting = None;
        if let Ok(mut mapped) = Mapped::mount(&mut chip, &mut ram) {
            for (logical, byte) in work(WRITES) {
                waiting = Some((logical, byte));
                match mapped.write(logical, byte) {
                    Ok(()) => model[logical as usize] = Some(byte),
                    Err(fault) => {
                        assert_eq!(fault, Fault::Device(ChipError::PowerLost));
                        break;
                    }
                }
                waiting = None;
            }
        }
        cuts += 1;
        chip.restore_power();
        let mut mapped = Mapped::mount(&mut chip, &mut ram).unwrap();
        for (logical, expected) in model.iter_mut().enumerate() {
            let found = mapped.read(logical as u32).unwrap();
            let may = waiting.filter(|&(cut, _)| cut as usize == logical).map(|(_, byte)| byte);
            assert!(
                found == *expected || (found == may && may.is_some()),
                "{operation}: {logical}"
            );
            *expected = found;
        }
        // It continues, with all data in place.
        for (logical, byte) in work(60) {
            mapped.write(logical, byte.wrapping_add(1)).unwrap();
            model[logical as usize] = Some(byte.wrapping_add(1));
        }
        for (logical, expected) in model.iter().enumerate() {
            assert_eq!(mapped.read(logical as u32).unwrap(), *expected, "{operation}: {logical}");
        }
    }
    assert!(cuts > 100, "only {cuts} cuts");
}
