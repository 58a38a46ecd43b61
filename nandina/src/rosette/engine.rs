//! The index of leaves as an engine: each operation, and what it reports.

use super::leaves::Leaves;
use super::options;
use super::scan::LeafScan;
use crate::engine::{
    Bounds, Engine, EngineFault, Inserted, Options, Record, Removed, Statistics, Violation,
};
use crate::error::OpenError;
use crate::flash::Flash;
use crate::gc::{self, Idle};

impl<'b, F: Flash> Engine<'b, F> for Leaves<'b, F> {
    type Scan<'k> = LeafScan<'k>;

    fn check_options(flash: &F, options: &Options, ram: &[u8]) -> Result<(), OpenError<F::Error>> {
        options::check(&flash.geometry(), &flash.capabilities(), options, ram.len())
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
        self.log.into_flash()
    }

    fn flash(&self) -> &F {
        self.log.flash()
    }

    fn record_sizes(&self) -> (usize, usize) {
        (self.log.medium.key_bytes.into(), self.log.medium.value_bytes.into())
    }

    fn records(&self) -> u32 {
        self.state.records()
    }

    fn statistics(&self) -> Statistics {
        let counted = self.log.blocks.least_and_mean();
        Statistics {
            height: if self.directory.len() > 1 { 2 } else { 1 },
            records: self.state.records(),
            valid_pages: self.log.blocks.valid_pages() - self.pages_beside(),
            limit_pages: self.limit_pages(),
            free_pages: self.log.room(),
            collected_blocks: self.collector.collected_blocks().into(),
            moved_pages: self.state.moved_pages().into(),
            erases_least: counted.map(|(least, _)| least),
            erases_mean: counted.map(|(_, mean)| mean),
            erases_most: self.log.blocks.most_erased(),
            bad_blocks: self.log.blocks.bad_blocks(),
            refreshed_pages: self.collector.refreshed_pages().into(),
            unexplained_pages: self.lost.unexplained_pages(),
            from_checkpoint: self.checkpoints.base().is_some(),
            ..Statistics::default()
        }
    }

    fn refresh_due(&self) -> bool {
        self.log.has_weak()
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, EngineFault<F>> {
        self.mount_if_in_doubt()?;
        let page = self.page_at(self.directory.find(key))?;
        let frame = self.load(page, 0)?;
        let Ok(at) = self.node(frame, page)?.search(key) else { return Ok(None) };
        let value = self.form().value(at);
        Ok(Some(&self.log.frames.bytes(frame)[value]))
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
    ) -> Result<LeafScan<'k>, EngineFault<F>> {
        self.mount_if_in_doubt()?;
        Ok(LeafScan::new(bounds, downwards))
    }

    fn next(&mut self, scan: &mut LeafScan<'_>) -> Result<Option<Record<'_>>, EngineFault<F>> {
        self.next_record(scan)
    }

    fn flush(&mut self) -> Result<(), EngineFault<F>> {
        Ok(())
    }

    fn tick(&mut self) -> Result<(), EngineFault<F>> {
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<bool, EngineFault<F>> {
        self.mount_if_in_doubt()?;
        self.settle()?;
        self.begin_session()?;
        self.write_checkpoint()
    }

    fn gc_step_least(&self) -> u32 {
        gc::least(self)
    }

    fn gc_step(&mut self, budget: u32) -> Result<Idle, EngineFault<F>> {
        self.mount_if_in_doubt()?;
        self.settle()?;
        gc::step(self, budget)
    }

    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>> {
        self.check(report)
    }
}
