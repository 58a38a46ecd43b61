//! The tree as the engine of an index.

use super::range::TreeScan;
use super::{Placement, TreeIndex, WritePolicy};
use crate::engine::{
    Bounds, Engine, EngineFault, Inserted, Options, Record, Removed, Statistics, Violation,
};
use crate::error::OpenError;
use crate::flash::Flash;
use crate::gc::{self, Idle};
use crate::log::Dimensions;
use crate::space::Kind;

impl<'b, F: Flash, S: Placement> Engine<'b, F> for TreeIndex<'b, F, S> {
    type Scan<'k> = TreeScan<'k>;

    fn check_options(flash: &F, options: &Options, ram: &[u8]) -> Result<(), OpenError<F::Error>> {
        if let Some(missing) = S::DESCRIPTION.needs.missing(&flash.capabilities()) {
            return Err(OpenError::Unsuited(missing));
        }
        options.check::<S, F::Error>(&Dimensions::of(flash), ram.len())
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
        let _ = S::Kind::end_session(&mut self);
        self.space.log.into_flash()
    }

    fn flash(&self) -> &F {
        self.space.log.flash()
    }

    fn record_sizes(&self) -> (usize, usize) {
        let medium = &self.space.log.medium;
        (medium.key_bytes.into(), medium.value_bytes.into())
    }

    fn records(&self) -> u32 {
        self.state.records()
    }

    fn statistics(&self) -> Statistics {
        let counted = self.space.log.blocks.least_and_mean();
        Statistics {
            height: self.state.height(),
            records: self.state.records(),
            waiting_changes: self.batch.len() as u32,
            inner_nodes: self.state.inner_nodes(),
            valid_pages: self.space.valid_pages(),
            limit_pages: self.limit_pages(),
            mappings: self.space.mappings.len() as u32,
            mappings_max: self.space.mappings.capacity() as u32,
            free_pages: self.space.room(),
            collected_blocks: self.collector.collected_blocks().into(),
            moved_pages: self.state.moved_pages().into(),
            erases_least: counted.map(|(least, _)| least),
            erases_mean: counted.map(|(_, mean)| mean),
            erases_most: self.space.log.blocks.most_erased(),
            bad_blocks: self.space.log.blocks.bad_blocks(),
            refreshed_pages: self.collector.refreshed_pages().into(),
            unexplained_pages: self.state.unexplained_pages(),
            from_checkpoint: self.state.is_from_checkpoint(),
        }
    }

    fn refresh_due(&self) -> bool {
        self.space.log.has_weak()
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, EngineFault<F>> {
        if let Ok(at) = self.batch.search(key) {
            return Ok(self.batch.value(at));
        }
        self.settle()?;
        self.space.begin_walk();
        let found = S::Kind::look_up(self, key)?;
        Ok(found.map(|(frame, value)| &self.space.log.frames.bytes(frame)[value]))
    }

    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, EngineFault<F>> {
        self.put(key, value)
    }

    fn remove(&mut self, key: &[u8]) -> Result<Removed, EngineFault<F>> {
        self.remove_now(key)
    }

    fn scan<'k>(
        &mut self,
        bounds: Bounds<'k>,
        downwards: bool,
    ) -> Result<TreeScan<'k>, EngineFault<F>> {
        self.scan(bounds, downwards)
    }

    fn next(&mut self, scan: &mut TreeScan<'_>) -> Result<Option<Record<'_>>, EngineFault<F>> {
        self.next_record(scan)
    }

    fn flush(&mut self) -> Result<(), EngineFault<F>> {
        self.write_all()
    }

    fn tick(&mut self) -> Result<(), EngineFault<F>> {
        if self.batch.tick() { self.write_all() } else { Ok(()) }
    }

    fn checkpoint(&mut self) -> Result<bool, EngineFault<F>> {
        self.write_all()?;
        if S::Kind::CHECKPOINTS_END_SESSIONS {
            return Ok(false);
        }
        self.gain_checkpoint()
    }

    fn gc_step_least(&self) -> u32 {
        gc::least(self).max(S::Kind::device_work_least(&self.space))
    }

    fn gc_step(&mut self, budget: u32) -> Result<Idle, EngineFault<F>> {
        self.settle()?;
        self.write_out()?;
        let done = gc::step(self, budget)?;
        let left = budget.saturating_sub(done.operations);
        let device = S::Kind::let_device_work(&mut self.space, left)?;
        let operations = done.operations + device.operations;
        Ok(Idle { operations, more: done.more || device.more, ..done })
    }

    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>> {
        self.check(report)
    }
}
