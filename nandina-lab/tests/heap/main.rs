//! The heap that rivals take, held against the RAM that they state.
//!
//! A binary and a single test of their own: nothing else may take memory while it counts.

use nandina::flash::{BlockNumber, Capabilities, Flash, Geometry, PageNumber, Reading};
use nandina::{Index, Options, System, WriteError, key, ram_needed};
use nandina_lab::rivals::{Bftl, LaTree, MbTree};
use nandina_sim::{ChipError, TINY};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Pages in RAM that are replaced whole. They take no memory after they were made.
struct Memory {
    geometry: Geometry,
    pages: Vec<u8>,
}

impl Memory {
    fn new(geometry: Geometry) -> Self {
        let bytes = (geometry.page_bytes + geometry.spare_bytes) * geometry.pages();
        Self { geometry, pages: vec![0xFF; bytes as usize] }
    }

    fn frame(&mut self, page: PageNumber) -> &mut [u8] {
        let bytes = (self.geometry.page_bytes + self.geometry.spare_bytes) as usize;
        &mut self.pages[page.0 as usize * bytes..][..bytes]
    }
}

impl Flash for Memory {
    type Error = ChipError;

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            rewrite: true,
            atomic_rewrite: true,
            bad_blocks_per_mille: 0,
            ..TINY.capabilities
        }
    }

    fn read(
        &mut self,
        page: PageNumber,
        main: &mut [u8],
        spare: &mut [u8],
    ) -> Result<Reading, ChipError> {
        let (of_main, of_spare) = self.frame(page).split_at(main.len());
        main.copy_from_slice(of_main);
        spare.copy_from_slice(&of_spare[..spare.len()]);
        Ok(Reading::Clean)
    }

    fn program(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        self.rewrite(page, main, spare)
    }

    fn rewrite(&mut self, page: PageNumber, main: &[u8], spare: &[u8]) -> Result<(), ChipError> {
        let (of_main, of_spare) = self.frame(page).split_at_mut(main.len());
        of_main.copy_from_slice(main);
        of_spare[..spare.len()].copy_from_slice(spare);
        Ok(())
    }

    fn erase(&mut self, _: BlockNumber) -> Result<(), ChipError> {
        Ok(())
    }
}

/// Fills a device with records in an order at random, reads them and removes them.
///
/// Returns the most heap between two calls, and what is stated.
fn heap<S: System>(geometry: Geometry, value_bytes: usize, write_buffer: usize) -> [usize; 2] {
    let options = Options { write_buffer, ..Options::new(4, value_bytes) };
    let stated = ram_needed::<S>(&geometry, &options);
    let (mut ram, memory) = (vec![0; stated], Memory::new(geometry));
    let (before, mut held) = (HEAP.current_usage(), 0);
    HEAP.reset_peak_usage();
    let mut index = Index::<_, S>::format(memory, &options, &mut ram).unwrap();
    let key = |turn: u32| key::from_u32(turn.wrapping_mul(2_654_435_761));
    let mut note = || held = held.max(HEAP.current_usage() - before);
    let (value, mut records) = (vec![1; value_bytes], 0);
    loop {
        match index.insert(&key(records), &value) {
            Ok(_) => records += 1,
            Err(WriteError::Full { .. }) => break,
            Err(error) => panic!("{error:?}"),
        }
        note();
    }
    for turn in 0..records {
        assert!(index.get(&key(turn)).unwrap().is_some());
        note();
    }
    for turn in 0..records {
        index.remove(&key(turn)).unwrap();
        note();
    }
    let most = HEAP.peak_usage() - before;
    println!(
        "{}: {records} records of 4 + {value_bytes} bytes, {} pages of {}, a write buffer of \
         {write_buffer}: {held} bytes between calls, {most} in one, {stated} stated",
        S::DESCRIPTION.key,
        geometry.pages(),
        geometry.page_bytes
    );
    [held, stated]
}

#[test]
fn rivals_hold_between_calls_what_they_state() {
    for (blocks, page_bytes, value_bytes) in
        [(64, 512, 12), (256, 512, 12), (64, 2048, 12), (64, 512, 4), (64, 512, 60)]
    {
        let geometry = Geometry { blocks, page_bytes, ..TINY.geometry };
        for write_buffer in [0, 1, 4] {
            for [held, stated] in [
                heap::<Bftl>(geometry, value_bytes, write_buffer),
                heap::<MbTree>(geometry, value_bytes, write_buffer),
                heap::<LaTree>(geometry, value_bytes, write_buffer),
            ] {
                assert!(held <= stated && stated <= 3 * held, "{held} of {stated} bytes");
            }
        }
    }
}
