//! The index as an engine: each operation, and what it reports.

use super::leaves::SectorLeaves;
use super::scan::SectorScan;
use super::{options, plan};
use crate::engine::{
    Bounds, Engine, EngineFault, Inserted, Options, Record, Removed, Statistics, Violation,
};
use crate::error::OpenError;
use crate::flash::Flash;
use crate::gc::Idle;

/// Sectors that idle steps keep ready beside those that are used again soon.
const READY_IDLE: usize = 2;

impl<'b, F: Flash> Engine<'b, F> for SectorLeaves<'b, F> {
    type Scan<'k> = SectorScan<'k>;

    fn check_options(flash: &F, options: &Options, ram: &[u8]) -> Result<(), OpenError<F::Error>> {
        options::check_with_ram(&flash.geometry(), &flash.capabilities(), options, ram.len())
    }

    fn new(flash: F, options: &Options, ram: &'b mut [u8]) -> Self {
        Self::unmounted(flash, options, ram)
    }

    fn format(&mut self) -> Result<(), OpenError<F::Error>> {
        self.format()
    }

    fn open(&mut self) -> Result<(), OpenError<F::Error>> {
        self.find()
    }

    fn close(mut self) -> F {
        // After a failure the next mount has more to do, and no data is lost.
        let _ = self.end_session();
        self.cells.into_flash()
    }

    fn flash(&self) -> &F {
        self.cells.flash()
    }

    fn record_sizes(&self) -> (usize, usize) {
        (self.form.key_bytes, self.form.value_bytes)
    }

    fn records(&self) -> u32 {
        self.state.records()
    }

    fn statistics(&self) -> Statistics {
        let pages = self.form.pages() as u32;
        Statistics {
            height: if self.directory.len() > 1 { 2 } else { 1 },
            records: self.state.records(),
            valid_pages: self.directory.len() as u32 * pages,
            limit_pages: self.leaves_max as u32 * pages,
            free_pages: self.pool.free() * pages,
            collected_blocks: self.state.collected().into(),
            erases_most: self.state.erases(),
            bad_blocks: self.pool.bad(),
            ..Statistics::default()
        }
    }

    fn refresh_due(&self) -> bool {
        false
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, EngineFault<F>> {
        self.mount_if_in_doubt()?;
        let mut leaf = self.directory.leaf(self.directory.find(key));
        if leaf.is_untouched {
            self.touch_to_read(self.directory.find(key))?;
            leaf = self.directory.leaf(self.directory.find(key));
        }
        match self.look(&leaf, key)? {
            Some(at) => self.value(&leaf, at).map(Some),
            None => Ok(None),
        }
    }

    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, EngineFault<F>> {
        self.put(key, value)
    }

    fn remove(&mut self, key: &[u8]) -> Result<Removed, EngineFault<F>> {
        self.take(key)
    }

    fn scan<'k>(
        &mut self,
        bounds: Bounds<'k>,
        downwards: bool,
    ) -> Result<SectorScan<'k>, EngineFault<F>> {
        self.mount_if_in_doubt()?;
        Ok(SectorScan::new(bounds, downwards))
    }

    fn next(&mut self, scan: &mut SectorScan<'_>) -> Result<Option<Record<'_>>, EngineFault<F>> {
        self.next_record(scan)
    }

    fn flush(&mut self) -> Result<(), EngineFault<F>> {
        Ok(())
    }

    fn tick(&mut self) -> Result<(), EngineFault<F>> {
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<bool, EngineFault<F>> {
        Ok(false)
    }

    fn gc_step_least(&self) -> u32 {
        plan::step(&self.form, self.cells.verifies())
    }

    fn gc_step(&mut self, budget: u32) -> Result<Idle, EngineFault<F>> {
        self.mount_if_in_doubt()?;
        let before = self.cells.operations();
        // What was erased is forgotten at the next mount, so no more than will be used.
        let wanted = READY_IDLE + self.state.written() as usize;
        let may_erase = !self.state.is_ended() && !self.state.is_unsettled();
        let is_due = may_erase && self.pool.next_to_erase(wanted).is_some();
        if budget >= plan::step(&self.form, self.cells.verifies()) && is_due {
            self.state.doubt();
            self.refill(wanted)?;
            self.state.trust();
        }
        let operations = self.cells.operations().wrapping_sub(before);
        let more = may_erase && self.pool.next_to_erase(wanted).is_some();
        Ok(Idle { operations, more, left_to_change: false })
    }

    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>> {
        self.check(report)
    }
}
