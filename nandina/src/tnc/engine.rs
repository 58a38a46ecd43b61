//! The operations of the tree as an engine of an index.

use super::arena::Arena;
use super::bounds;
use super::form::Form;
use super::journal::Group;
use super::length::Length;
use super::live::Live;
use super::plan::{check_options, checkpoint_pages, medium_of, parts_of};
use super::room::Room;
use super::scan::TncScan;
use super::shrink::Shrink;
use super::state::State;
use super::tree::Tree;
use super::{Checkpoints, Tnc, TncIndex};
use crate::engine::{
    Bounds, Engine, EngineFault, Inserted, NodeCounters, Options, Record, Removed, Statistics,
    System, Violation,
};
use crate::error::OpenError;
use crate::flash::Flash;
use crate::gc::{self, Collector, Idle, PageOwner};
use crate::log::Dimensions;
use crate::space::{Checkpointing, Space};

impl<'b, F: Flash> Engine<'b, F> for TncIndex<'b, F> {
    type Scan<'k> = TncScan<'k>;

    fn check_options(flash: &F, options: &Options, ram: &[u8]) -> Result<(), OpenError<F::Error>> {
        if let Some(missing) = Tnc::DESCRIPTION.needs.missing(&flash.capabilities()) {
            return Err(OpenError::Unsuited(missing));
        }
        check_options(&Dimensions::of(flash), options, ram.len())
    }

    fn new(flash: F, options: &Options, ram: &'b mut [u8]) -> Self {
        let geometry = flash.geometry();
        let form = Form::new(&geometry, options);
        let chip = Dimensions::of(&flash);
        let medium = medium_of(&chip, options);
        let checkpoints = checkpoint_pages(&geometry, options, chip.block_pages);
        let parts = parts_of(&form, geometry.page_bytes, options);
        let (arena, ram) = ram.split_at_mut(parts.arena);
        let (live, ram) = ram.split_at_mut(parts.live);
        let (group, ram) = ram.split_at_mut(parts.group);
        // With an ECC, a slot that is torn may make its page fail.
        let slots = match flash.reports_corrections() {
            true => 0,
            false => form.changes_by_one(&flash.capabilities(), options),
        };
        Self {
            space: Space::new(
                flash,
                medium,
                &parts.buffers,
                (options.checkpoints.unwrap_or(0), checkpoints),
                |_, _, _, _, _, _| {},
                ram,
            ),
            arena: Arena::new(arena, form),
            live: Live::new(live),
            group: Group::new(group, &form, options),
            tree: Tree::UNKNOWN,
            journal: Length::new(bounds::journal_max(options), slots),
            commit_step: bounds::commit_step(options),
            shrink: Shrink::of(options),
            group_pages: bounds::group_pages(&form, parts.group, options),
            room: Room::default(),
            state: State::UNKNOWN,
            collector: Collector::default(),
        }
    }

    fn format(&mut self) -> Result<(), OpenError<F::Error>> {
        self.format()
    }

    fn open(&mut self) -> Result<(), OpenError<F::Error>> {
        self.find()
    }

    fn close(mut self) -> F {
        // After a failure the next mount has more to do, and no data is lost.
        #[cfg(feature = "checkpoints")]
        let _ = self.end();
        #[cfg(not(feature = "checkpoints"))]
        let _ = self.mark_end();
        self.space.log.into_flash()
    }

    fn flash(&self) -> &F {
        self.space.log.flash()
    }

    fn record_sizes(&self) -> (usize, usize) {
        (self.arena.form.key_bytes, self.arena.form.value_bytes)
    }

    fn records(&self) -> u32 {
        if self.group.len() == 0 { self.tree.records() } else { self.group.records_before() }
    }

    fn statistics(&self) -> Statistics {
        let log = &self.space.log;
        let counted = log.blocks.least_and_mean();
        Statistics {
            height: self.tree.height(),
            records: self.records(),
            waiting_changes: self.group.len() as u32,
            inner_nodes: self.tree.inner_nodes(),
            valid_pages: log.blocks.valid_pages(),
            limit_pages: self.limit_pages(),
            free_pages: self.space.room(),
            collected_blocks: self.collector.collected_blocks().into(),
            moved_pages: self.state.moved_pages().into(),
            erases_least: counted.map(|(least, _)| least),
            erases_mean: counted.map(|(_, mean)| mean),
            erases_most: log.blocks.most_erased(),
            bad_blocks: log.blocks.bad_blocks(),
            refreshed_pages: self.collector.refreshed_pages().into(),
            unexplained_pages: self.state.unexplained_pages(),
            from_checkpoint: <Checkpoints as Checkpointing>::base(&self.space).is_some(),
            ..Statistics::default()
        }
    }

    fn node_counters(&self) -> Option<NodeCounters> {
        let (nodes, dirty) = (self.arena.used() as u32, self.arena.dirty() as u32);
        self.arena.counters.counts().map(|counts| NodeCounters { nodes, dirty, ..counts })
    }

    fn refresh_due(&self) -> bool {
        self.space.log.has_weak()
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, EngineFault<F>> {
        self.ready()?;
        let leaf = self.descend(key)?;
        let Ok(index) = self.arena.node(leaf).search(key) else { return Ok(None) };
        let at = self.find_value(leaf, index)?;
        Ok(Some(self.value(leaf, index, at)))
    }

    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, EngineFault<F>> {
        self.make_room()?;
        let leaf = self.descend(key)?;
        let is_new = match self.arena.node(leaf).search(key) {
            Ok(index) if self.has_value(leaf, index, value)? => {
                // It may have this value because of a pending change.
                let waits = self.group.len() > 0;
                return Ok(if waits { Inserted::Buffered } else { Inserted::Replaced });
            }
            Ok(_) => false,
            Err(_) => {
                self.allow_split(leaf)?;
                true
            }
        };
        let records = self.tree.records().saturating_add(u32::from(is_new));
        let pointer = self.note_change(key, Some(value), records)?;
        self.state.doubt();
        let before = self.tree_size();
        self.apply_put(key, self.stored(value, pointer))?;
        self.count_change(before);
        self.state.trust();
        self.end_change()?;
        Ok(match is_new {
            _ if self.group.is_used() => Inserted::Buffered,
            true => Inserted::New,
            false => Inserted::Replaced,
        })
    }

    fn remove(&mut self, key: &[u8]) -> Result<Removed, EngineFault<F>> {
        self.make_room()?;
        let leaf = self.descend(key)?;
        if self.arena.node(leaf).search(key).is_err() {
            // It may be absent because of a pending change.
            return Ok(if self.group.len() > 0 { Removed::Buffered } else { Removed::Absent });
        }
        self.note_change(key, None, self.tree.records().saturating_sub(1))?;
        self.state.doubt();
        let before = self.tree_size();
        self.apply_remove(key)?;
        self.count_change(before);
        self.state.trust();
        self.end_change()?;
        Ok(if self.group.is_used() { Removed::Buffered } else { Removed::Found })
    }

    fn scan<'k>(
        &mut self,
        bounds: Bounds<'k>,
        downwards: bool,
    ) -> Result<TncScan<'k>, EngineFault<F>> {
        self.ready()?;
        Ok(TncScan::new(bounds, downwards))
    }

    fn next(&mut self, scan: &mut TncScan<'_>) -> Result<Option<Record<'_>>, EngineFault<F>> {
        self.next_record(scan)
    }

    fn flush(&mut self) -> Result<(), EngineFault<F>> {
        self.ready()?;
        self.write_group()
    }

    fn tick(&mut self) -> Result<(), EngineFault<F>> {
        if self.group.tick() { self.flush() } else { Ok(()) }
    }

    fn checkpoint(&mut self) -> Result<bool, EngineFault<F>> {
        self.flush()?;
        Ok(false)
    }

    fn gc_step_least(&self) -> u32 {
        gc::least(self)
    }

    fn gc_step(&mut self, budget: u32) -> Result<Idle, EngineFault<F>> {
        self.ready()?;
        let before = self.space.log.operations();
        let more = self.commit_within(budget)?;
        let operations = self.space.log.operations().wrapping_sub(before);
        let idle = gc::step(self, budget.saturating_sub(operations))?;
        Ok(Idle { operations: idle.operations + operations, more: idle.more || more, ..idle })
    }

    fn check(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), EngineFault<F>> {
        self.check_all(report)
    }
}
