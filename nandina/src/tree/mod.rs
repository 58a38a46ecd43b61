//! The B+-tree, shared by all systems.
//!
//! It descends, inserts, replaces, removes, scans, and moves pages for garbage collection.
//!
//! The tree knows keys, nodes and levels. It knows nothing of chips: pages come from and go to
//! [`Space`], and the store decides where a changed node is written. No recursion, no heap.
//!
//! Nodes that become empty are removed, and removals merge no nodes (μ-Tree paper, section 3.4).
//! Only a tree that would grow beyond the size planned for its records merges nodes first
//! (`merge.rs` beside this).

mod batch;
mod change;
mod check;
mod collect;
mod cost;
mod descend;
mod flush;
mod form;
mod format;
mod identify;
mod idle;
mod leaf_changes;
mod limits;
mod merge;
mod mount;
mod options;
mod pairs;
mod placement;
mod policy;
mod promise;
mod range;
#[cfg(feature = "checkpoints")]
mod replaced;
mod rewrite;
mod search;
mod settle;
mod shrink;
mod split;
mod survey;
mod torn;
mod trim;
mod valid;
mod walk;

pub(crate) use batch::waiting_max;
pub use check::Violation;
pub(crate) use collect::move_cost;
pub use cost::Cost;
pub(crate) use cost::{Bounds, Opening};
pub(crate) use descend::Path;
pub(crate) use form::Form;
pub(crate) use format::Replaced;
pub use identify::{identify, ram_to_identify};
pub(crate) use merge::{Size, merges_max};
pub(crate) use options::path_options;
pub use options::{Folds, Options, ram_needed};
pub use pairs::{Pairs, Records};
pub(crate) use placement::relink;
pub use placement::{Description, Halves, Level, Origin, PlaceFault, Placement, Written};
pub use placement::{node_in, node_mut_in};
pub use policy::WritePolicy;
pub(crate) use policy::{Found, Limits};
pub use range::{KeyBounds, Range};
pub(crate) use settle::{LOOKS, NONE, TORN_MAX};
#[cfg(feature = "checkpoints")]
pub(crate) use survey::END;
pub(crate) use survey::Newest;
pub(crate) use walk::Top;

use batch::Batch;
use split::Separator;

use crate::error::{Damage, Fault, ReadError, WriteError};
use crate::flash::{BlockNumber, Flash, PageNumber};
use crate::gc::{self, Collector, PageOwner};
use crate::space::{Budget, Checkpointing, Kind, Moves, Space, Tree};

/// The height of the highest tree that is built.
pub const HEIGHT_MAX: u8 = 12;

/// Bytes of the longest key.
pub const KEY_BYTES_MAX: usize = 64;

/// The checkpoints of system `S`.
pub(crate) type CheckpointsOf<S> = <<S as Placement>::Kind as Kind>::Checkpoints;

/// A sorted map on a chip `F`, stored as system `S` does.
///
/// Without a write cache ([`Options::write_cache`]) and a write buffer ([`Options::write_buffer`])
/// every change is durable when it returns: a cut at any later instant does not undo it, and a
/// change that was cut is there wholly or not at all. Costs are given per operation for a tree of
/// height *h*, without those of garbage collection.
pub struct Index<'b, F, S: Placement> {
    pub(crate) space: Space<'b, F, S::Kind>,
    place: S,
    batch: Batch<'b>,
    pub(crate) separator: Separator<'b>,
    /// The key before which the node that is being read ends.
    bound: &'b mut [u8],
    pub(crate) root: u32,
    /// The last page programmed before the mount, as far as visible, and its number.
    /// It may be torn.
    pub(crate) newest: (u32, u64),
    /// First of the outdated numbers: pages from here to `torn_to` do not count.
    /// They turned out to be torn.
    pub(crate) torn_from: u64,
    /// The last of the outdated numbers: the highest when the torn page was detected.
    /// Pages written since then count.
    pub(crate) torn_to: u64,
    /// Pages that do not count because they could not be read each time.
    pub(crate) torn: [u32; TORN_MAX],
    /// A block whose erase was begun: none of its pages counts.
    pub(crate) torn_block: BlockNumber,
    /// The number from which pages may be torn, where pages commit for themselves.
    pub(crate) settle_from: u64,
    /// The sequence number of the page that marks the end of a session, or 0.
    pub(crate) ended: u64,
    /// No page on the chip can read otherwise than when the index was opened.
    settled: bool,
    pub(crate) height: u8,
    pub(crate) records: u32,
    pub(crate) inner_nodes: u32,
    pub(crate) budget: Budget,
    /// The height and the inner nodes of the tree that the budget is for.
    budget_height: u8,
    budget_inner_nodes: u32,
    /// How pages are to be moved, as set in the options.
    moves_asked: Moves,
    /// How pages are moved now.
    moves: Moves,
    pub(crate) folding: Folds,
    /// An operation failed half way.
    /// As after a cut, only the medium shows what is true.
    pub(crate) in_doubt: bool,
    collector: Collector,
    moved_pages: u32,
    /// Damaged pages behind the root that the mount found and that no cut explains.
    pub(crate) unexplained_pages: u32,
    pub(crate) from_checkpoint: bool,
}

/// Counts and sizes of an index.
///
/// All numbers are exact; counts since the index was opened end at 2^32 - 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statistics {
    /// Height of the tree, 1 for a single leaf.
    pub height: u8,
    /// Records in the index, as of the last flush.
    pub records: u32,
    /// Pending changes in the write buffer.
    pub waiting_changes: u32,
    /// Nodes above the leaves.
    pub inner_nodes: u32,
    /// Valid pages: those that hold a reachable node.
    pub valid_pages: u32,
    /// Valid pages allowed for a tree of this height.
    ///
    /// At this limit, inserts that need a page are refused.
    pub limit_pages: u32,
    /// Virtual mappings in the table.
    pub mappings: u32,
    /// Virtual mappings that the table has room for; 0 for systems without one.
    pub mappings_max: u32,
    /// Pages that can be programmed before garbage is collected.
    pub free_pages: u32,
    /// Victim blocks collected since the index was opened.
    pub collected_blocks: u64,
    /// Valid pages that garbage collection moved since the index was opened.
    pub moved_pages: u64,
    /// Erase count of the least erased block that is not bad.
    ///
    /// `None` if erases are not counted ([`Wear`](crate::Wear)).
    pub erases_least: Option<u32>,
    /// Mean erase count, rounded down; `None` if erases are not counted.
    pub erases_mean: Option<u32>,
    /// Erase count of the most erased block that is not bad.
    pub erases_most: u32,
    /// Blocks that are bad.
    pub bad_blocks: u32,
    /// Pages rewritten since the index was opened because the ECC corrected much.
    pub refreshed_pages: u64,
    /// Damaged pages newer than the root with which the index was opened.
    ///
    /// The one damaged page in each block that a cut explains is not counted. If this is not 0, the
    /// medium has lost pages, and perhaps acknowledged changes: the index is in the state before
    /// them.
    pub unexplained_pages: u32,
    /// The last mount used a checkpoint and did not have to read every block.
    pub from_checkpoint: bool,
}

impl<F: Flash, S: Placement> Index<'_, F, S> {
    /// Records in the index.
    ///
    /// With a write buffer, as of the last [`flush`](Self::flush): pending changes do not count.
    /// Cost: none.
    pub const fn len(&self) -> u32 {
        self.records
    }

    /// Whether the index holds no record.
    ///
    /// With a write buffer as of the last flush, like [`len`](Self::len). Cost: none.
    pub const fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The chip that holds the index.
    pub fn flash(&self) -> &F {
        self.space.log.flash()
    }

    /// Ends the use of the index and returns the chip.
    ///
    /// With a write cache or a write buffer, call [`flush`](Self::flush) before, or their content
    /// is lost.
    ///
    /// A page on the chip then records that nothing on it is torn, so that the next
    /// [`open`](Self::open) only reads. Without `close` nothing is lost, but that `open` rewrites
    /// the pages that a cut may have left torn. If the device fails here, the index is in the same
    /// state as without `close`.
    ///
    /// Cost: one read and one program, sometimes an erase. No chip operation if nothing was written
    /// since the index was opened, where nodes are replaced in place, or if the chip is too full
    /// for one more page.
    pub fn close(mut self) -> F {
        // After a failure the next mount has more to do, and no data is lost.
        let _ = S::Kind::end_session(&mut self);
        self.space.log.into_flash()
    }

    /// Makes every change durable.
    ///
    /// Without a write cache and a write buffer every change is durable already, and this does
    /// nothing.
    ///
    /// After an error the changes that were not applied stay in the write buffer; a later flush
    /// continues. A pending change is refused only if the device has worn out since it was
    /// buffered.
    ///
    /// Cost: at most that of one insert for each leaf with pending changes, and as many programs as
    /// the write cache has pages.
    pub fn flush(&mut self) -> Result<(), WriteError<F::Error>> {
        Ok(self.write_all()?)
    }

    fn write_all(&mut self) -> Result<(), Fault<F::Error>> {
        self.settle()?;
        let applied = self.apply_waiting();
        if !self.in_doubt {
            self.write_out()?;
        }
        applied
    }

    /// Makes every change durable and writes a checkpoint.
    ///
    /// With [`Options::checkpoints`], the next mount then has the least to read. This is worthwhile
    /// before power is switched off; without it nothing is lost. Returns whether a checkpoint was
    /// written: `false` without the option, if no block is free for it, or if both anchors are bad.
    ///
    /// Cost: [`flush`](Self::flush), the pages of a checkpoint, and sometimes an anchor's page and
    /// two erases. If there was no checkpoint, garbage may be collected for its block.
    pub fn checkpoint(&mut self) -> Result<bool, WriteError<F::Error>> {
        self.flush()?;
        if CheckpointsOf::<S>::room(&self.space) > self.space.log.block_pages() {
            match self.settle().and_then(|()| gc::gain_room(self, 0)) {
                Err(Fault::NoRoom { .. } | Fault::WornOut { .. }) if !self.in_doubt => {}
                gained => gained?,
            }
        }
        Ok(self.space.log.medium.checkpoints && self.write_checkpoint()?)
    }

    fn write_checkpoint(&mut self) -> Result<bool, Fault<F::Error>> {
        // The first one takes a block for good, which must not be one of the reserve.
        let block_pages = self.space.log.block_pages();
        let takes = CheckpointsOf::<S>::room(&self.space) > block_pages;
        if takes && self.space.room() < self.reserve_pages() + block_pages {
            return Ok(false);
        }
        let Self { root, height, records, inner_nodes, .. } = *self;
        self.in_doubt = true;
        let tree = Tree { root, height, records, inner_nodes };
        let written = CheckpointsOf::<S>::write(&mut self.space, &tree)?;
        self.in_doubt = false;
        Ok(written)
    }

    /// Writes a checkpoint if one is due before the longest operation or move.
    ///
    /// None is written while a mount settles: the next mount would begin behind what is not settled
    /// yet. If the list of the last one ends meanwhile, that is erased.
    pub(crate) fn keep_checkpoint(&mut self) -> Result<(), Fault<F::Error>> {
        let operation = S::path_pages(self.height) + u32::from(self.height) + 1;
        if !self.space.log.settling && CheckpointsOf::<S>::is_due(&self.space, operation) {
            self.write_out()?;
            self.write_checkpoint()?;
        }
        Ok(())
    }

    /// Programs the content of the write cache.
    fn write_out(&mut self) -> Result<(), Fault<F::Error>> {
        if S::Kind::staged(&self.space) != (0, 0) {
            self.in_doubt = true;
            self.root = S::Kind::write_out(&mut self.space, self.root)?;
            self.in_doubt = false;
        }
        Ok(())
    }

    /// Counts and sizes of the index.
    ///
    /// Cost: no chip operation.
    pub fn statistics(&self) -> Statistics {
        let counted = self.space.log.blocks.least_and_mean();
        Statistics {
            height: self.height,
            records: self.records,
            waiting_changes: self.batch.len() as u32,
            inner_nodes: self.inner_nodes,
            valid_pages: self.space.valid_pages(),
            limit_pages: self.budget.limit_pages,
            mappings: self.space.mappings.len() as u32,
            mappings_max: self.space.mappings.capacity() as u32,
            free_pages: self.space.room(),
            collected_blocks: self.collector.collected_blocks().into(),
            moved_pages: self.moved_pages.into(),
            erases_least: counted.map(|(least, _)| least),
            erases_mean: counted.map(|(_, mean)| mean),
            erases_most: self.space.log.blocks.most_erased(),
            bad_blocks: self.space.log.blocks.bad_blocks(),
            refreshed_pages: self.collector.refreshed_pages().into(),
            unexplained_pages: self.unexplained_pages,
            from_checkpoint: self.from_checkpoint,
        }
    }

    /// Whether pages that were read must be rewritten before more of their bits fade.
    ///
    /// The next change rewrites them, or [`gc_step`](Self::gc_step); lookups alone never write.
    /// Cost: none.
    pub fn refresh_due(&self) -> bool {
        self.space.log.has_weak()
    }

    /// The value of `key`, or `None` if the index has no such record.
    ///
    /// Cost: at most *h* page reads; none if a change of the key is pending in the write buffer.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, ReadError<F::Error>> {
        self.check_key(key).map_err(|(expected, given)| ReadError::KeySize { expected, given })?;
        if let Ok(at) = self.batch.search(key) {
            return Ok(self.batch.value(at));
        }
        self.settle()?;
        self.space.begin_walk();
        let found = S::Kind::look_up(self, key)?;
        Ok(found.map(|(frame, value)| &self.space.log.frames.bytes(frame)[value]))
    }

    /// Looks `key` up in nodes whose records are sorted.
    pub(crate) fn look_up_sorted(&mut self, key: &[u8]) -> Result<Option<Found>, Fault<F::Error>> {
        let mut path = Path::new();
        self.descend(&mut path, key, 1, false)?;
        let node = self.node(path.frame, 1)?;
        let Ok(index) = node.search(key) else { return Ok(None) };
        let level = self.level(1);
        let start = S::extent(self.space.log.layout().area_bytes(), 1, self.height).start
            + level.shape.at(index)
            + level.shape.key_bytes();
        Ok(Some((path.frame, start..start + level.shape.payload_bytes())))
    }

    fn check_key(&self, key: &[u8]) -> Result<(), (usize, usize)> {
        let expected = usize::from(self.space.log.medium.key_bytes);
        if key.len() == expected { Ok(()) } else { Err((expected, key.len())) }
    }

    /// Mounts the medium again after an operation that failed half way.
    fn settle(&mut self) -> Result<(), Fault<F::Error>> {
        if self.in_doubt {
            self.mount()?;
        }
        Ok(())
    }

    pub(crate) fn form(&self) -> Form {
        Form::new(&self.space.log.layout(), &self.space.log.medium)
    }

    /// The root.
    pub(crate) const fn top(&self) -> Top {
        Top { page: self.root, level: self.height }
    }

    pub(crate) fn level(&self, level: u8) -> Level {
        self.form().level::<S>(level, self.height)
    }

    fn capacity(&self, level: u8) -> usize {
        self.form().capacity::<S>(level, self.height)
    }

    pub(crate) fn working(&self, level: u8) -> usize {
        S::working(level, self.height, self.space.log.frames.count())
    }

    fn spare(&self, level: u8) -> usize {
        S::spare(level, self.height, self.space.log.frames.count())
    }

    pub(crate) fn node(
        &self,
        frame: usize,
        level: u8,
    ) -> Result<crate::node::Node<'_>, Fault<F::Error>> {
        node_in::<S, F>(&self.space, frame, self.level(level))
            .ok_or_else(|| self.corrupt(frame, Damage::NodeTooFull))
    }

    /// The fault for the damaged page that `frame` holds.
    /// It is the root if the content of `frame` was changed since it was read.
    pub(crate) fn corrupt(&self, frame: usize, reason: Damage) -> Fault<F::Error> {
        let held = self.space.log.frames.held(frame);
        let is_page = held < self.space.log.geometry().pages();
        self.corrupt_at(if is_page { held } else { self.root }, reason)
    }

    /// The fault for the damaged page with the logical address `name`.
    pub(crate) fn corrupt_at(&self, name: u32, reason: Damage) -> Fault<F::Error> {
        Fault::Corrupt { page: PageNumber(self.space.current_page(name)), reason }
    }

    pub(crate) fn block_of(&self, page: u32) -> BlockNumber {
        self.space.log.geometry().block_of(PageNumber(page))
    }
}
