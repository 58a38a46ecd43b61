//! The settings of an index, each with its range and its default.
//!
//! Every system has the same settings; an engine refuses those that it has no use for.

use crate::blocks::{GcPolicy, LivenessTracking, WearPolicy};
use crate::error::BadOption;
use crate::gc::RelocationMode;

/// When a node is written only to flush the mappings of its children.
///
/// A mapping for which the table has no room always writes the parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Folds {
    /// When the table is three quarters full and twice the node's share is mapped.
    ///
    /// A parent that is no longer in a page buffer is not read for that.
    #[default]
    Share,
    /// Only when the table has no room (VMTree paper, section 4.2).
    ///
    /// For comparison: it frees fewer mappings for each program.
    Full,
    /// As soon as this many children of the node are mapped, however full the table.
    ///
    /// See VMTree paper, section 4.2: 2 or more. With 0, whenever a child has moved. For
    /// comparison.
    Children(u8),
}

impl Folds {
    /// The one that is built: without the feature `paper-modes` there is one.
    pub(crate) const fn built(self) -> Self {
        if cfg!(feature = "paper-modes") { self } else { Self::Share }
    }
}

/// Which changes a full write buffer writes to the tree.
///
/// With each of them [`Index::flush`](crate::Index::flush) writes all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Eviction {
    /// All of them (VMTree paper, section 4.1).
    #[default]
    All,
    /// The leaf of the oldest change, with all changes of that leaf (IBSF).
    ///
    /// A change that replaces another one of its key is as old as that. Each change has four
    /// bytes more in the buffer. For comparison.
    Ibsf,
    /// The leaf with the most changes, with all of them (MB-tree).
    ///
    /// Of equals, it is the one with the highest keys. To find it, the parents of the leaves with
    /// new changes are read. Each change has a byte more in the buffer. For comparison.
    Mb,
}

impl Eviction {
    /// The one that is built: without the feature `paper-modes` there is one.
    pub(crate) const fn built(self) -> Self {
        if cfg!(feature = "paper-modes") { self } else { Self::All }
    }

    /// Bytes of a change that it needs.
    pub(crate) const fn change_bytes(self) -> usize {
        match self.built() {
            Self::All => 0,
            Self::Ibsf => 4,
            Self::Mb => 1,
        }
    }
}

/// The most page buffers.
pub(crate) const PAGE_BUFFERS_MAX: usize = 16;

/// The most blocks from one checkpoint to the next.
pub(crate) const CHECKPOINTS_MAX: u32 = 12;

/// The option that needs written paths, if one is set.
pub(crate) const fn path_options(options: &Options) -> Option<BadOption> {
    if options.write_cache > 0 {
        Some(BadOption::NoPaths)
    } else if matches!(options.victims, GcPolicy::Tracked(_)) {
        Some(BadOption::TrackedWithoutPaths)
    } else {
        None
    }
}

/// Why checkpoints with these `options` are refused, if there are to be any.
///
/// `is_counted` says whether the erases of each block are, where blocks are erased.
pub(crate) fn checkpoints_refused(options: &Options, is_counted: bool) -> Option<BadOption> {
    let every = options.checkpoints?;
    if !cfg!(feature = "checkpoints") {
        Some(BadOption::CheckpointsNotBuilt)
    } else if options.validity == LivenessTracking::Searched {
        Some(BadOption::NotSearched)
    } else if !is_counted {
        Some(BadOption::CheckpointsUncounted)
    } else if !(1..=CHECKPOINTS_MAX).contains(&every) {
        Some(BadOption::Checkpoints)
    } else {
        None
    }
}

/// Settings of an index.
///
/// The sizes of keys and values, and whether there are checkpoints, are written on the medium; the
/// other settings are not.
///
/// They are constants where the chip is fixed:
///
/// ```
/// use nandina::Options;
///
/// const OPTIONS: Options = Options::new(4, 8).write_buffer(2).verify();
/// assert_eq!((OPTIONS.write_buffer, OPTIONS.verify), (2, true));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Bytes of a key, 1 to [`KEY_BYTES_MAX`](crate::engine::KEY_BYTES_MAX).
    pub key_bytes: usize,
    /// Bytes of a value, 0 to 65535, as long as two records fit in a leaf.
    ///
    /// Where values stay in the journal ([`journal_values`](Self#structfield.journal_values)), as
    /// long as one record fits in a page.
    pub value_bytes: usize,
    /// Page buffers, at most 16; `None` for the system's default.
    ///
    /// Each takes a page and up to 44 bytes. With fewer than one for each level and one more, the
    /// system `wandering` reads nodes twice.
    pub page_buffers: Option<usize>,
    /// How garbage collection moves pages. Default: [`RelocationMode::Together`].
    ///
    /// Others need the feature `paper-modes` of this library. In `tnc` nodes always move together.
    pub moves: RelocationMode,
    /// How garbage collection chooses a block. Default: [`GcPolicy::Fewest`].
    pub victims: GcPolicy,
    /// What is remembered of valid pages. Default: [`LivenessTracking::Marked`].
    pub validity: LivenessTracking,
    /// How worn blocks are spared; `None` for the system's default.
    ///
    /// By default, systems that write paths and `rosette` count erases, and the others use blocks
    /// in turn.
    pub wear: Option<WearPolicy>,
    /// Pages of the read cache, 0 to 65535. Default: none.
    ///
    /// It keeps the pages that were read last. Each takes a page, up to 40 bytes, and 12.
    pub read_cache: usize,
    /// Pages of the write cache, 0 to 65535. Default: none.
    ///
    /// It holds pages back from the chip until it is full. Each takes a page, up to 40 bytes, and
    /// 28; all of them together 384 bytes, a bit for each page of the chip, and one for each 256.
    ///
    /// With a write cache a change is durable only when [`Index::flush`](crate::Index::flush) has
    /// returned, or when later changes have filled the cache. After a cut, or an error of the
    /// device, the index is in its state after one of the changes since the last flush, with all
    /// changes before that one and none after.
    pub write_cache: usize,
    /// Pages of the write buffer, 0 to 65535. Default: none.
    ///
    /// It holds pending changes, one for each key, until it is full. Each page takes a page of main
    /// data; a change takes the bytes of key and value, and a bit.
    ///
    /// Pending changes are applied in the order of keys, all changes of one leaf in one write of
    /// it. A change is durable only when [`Index::flush`](crate::Index::flush) has returned, or
    /// when a later one has filled the buffer and there is no write cache. After a cut each change
    /// since the last flush is there wholly or not at all, each independently of the others, and no
    /// key has an older state than that of the flush. Source: VMTree paper, section 4.1.
    ///
    /// An upsert is buffered only if the limit allows the pages that all pending upserts can take.
    /// Otherwise, it is applied at once, after the pending changes. Then only a new key can be
    /// refused, never another value for an existing one. A pending change is refused only if the
    /// device has worn out since. A buffered change does not report whether its key was there. The
    /// processor shifts half of the buffer for each change.
    pub write_buffer: usize,
    /// Number of pending changes in the write buffer that makes a flush due.
    ///
    /// At least 1; `None` for as many as there is room for. Default: `None`.
    pub write_buffer_changes: Option<u32>,
    /// Most calls of [`Index::tick`](crate::Index::tick) for which a change is pending.
    ///
    /// Then all changes are flushed. At least 1; `None` for no bound. Default: `None`.
    pub write_buffer_ticks: Option<u32>,
    /// Which changes a full write buffer writes to the tree.
    ///
    /// Default: [`Eviction::All`]. It counts as full with `write_buffer_changes` changes, too. For
    /// systems whose engine is the tree; others than the default need the feature `paper-modes` of
    /// this library.
    pub eviction: Eviction,
    /// Blocks opened from one checkpoint to the next, 1 to 12; `None` for none.
    ///
    /// With `None` there are no checkpoints. Whether there are any is written on the medium, how
    /// often is not. Default: `None`.
    ///
    /// With checkpoints a mount reads the newest one, a page of each block that it lists (at most
    /// 16), and what changed since. Where paths are written, these are about five pages for each
    /// that was programmed since, or every inner node if that is less; without checkpoints a mount
    /// reads a page of every block and every inner node. In `vm` they are every page that was
    /// programmed since, twice, and some three pages for each inner node among them; without
    /// checkpoints a mount reads every page of the chip for each level of the tree. In `rosette`
    /// they are every page that was programmed since, once, and the checkpoint is read twice;
    /// after a cut, up to 24 reads more for each listed block that is blank.
    ///
    /// In `vm-ow` records are appended to pages that are older than a checkpoint, in `tnc` no page
    /// says what a commit superseded, and in `btree` and `wpcb` pages are replaced in place. There
    /// a checkpoint counts only until the next change: [`Index::close`](crate::Index::close) writes
    /// it, whatever the number of blocks. The next mount then reads only that, and the root in
    /// `tnc`, `btree` and `wpcb`; a mount after a cut reads as much as without checkpoints.
    ///
    /// Checkpoints take four blocks from the capacity, and a page (on large chips a few) each time.
    /// One stores about a bit for each page of the chip, four bytes for each block, and the mapping
    /// table; a page must have at least 144 bytes beside its header. After a change of
    /// [`mapping_bytes`](Self::mapping_bytes), the next mount reads as if there were no checkpoint.
    /// In `rosette` the directory takes the place of bits and table: a key and 2 to 4 bytes for
    /// each leaf. In `btree` and `wpcb` a checkpoint is a bit for each page, in pages that are kept
    /// for it and for its end.
    ///
    /// Where it does not fit in a block, it takes as many blocks as it fills. Each checkpoint takes
    /// other blocks, which are erased for it, and as many more are kept free for the next one. The
    /// most are 32 blocks and an eighth of the chip. Options that need more are an error, except in
    /// `rosette`: no checkpoint is written while its directory is larger.
    /// [`Index::checkpoint`](crate::Index::checkpoint) writes one at once.
    pub checkpoints: Option<u32>,
    /// Bytes of the table of virtual mappings, 0 to 2^24; 0 for none. Default: 1024.
    ///
    /// For systems that have one (`vm`). A mapping takes 4 bytes, or 8 on a chip of 65535 pages and
    /// more, and a sixteenth of the table stays empty. With more mappings, fewer parents have to be
    /// written. An index must be opened with as many bytes as before, or more. Without the feature
    /// `checkpoints`, the table takes only three quarters of them on a chip of less than 4095
    /// pages.
    pub mapping_bytes: usize,
    /// Leaves that there is RAM for, at least 2. Default: `None`, the chip's most.
    ///
    /// For systems that keep a directory of their leaves in RAM (`rosette`, `rosette-nor`). In
    /// `rosette` each takes a key and the number of a page at most: 2 bytes, 3 on a chip of 65536
    /// pages and more, 4 from 2^24 on. Of the keys that separate leaves only those bytes are kept
    /// in which they differ: two for random keys of any size in thousands of leaves. Then the
    /// same RAM holds more leaves, with keys of 16 bytes 4.5 times as many. Inserts that need one
    /// more leaf than there is RAM for are refused. An index must be opened with as many as before,
    /// or more.
    pub leaves: Option<u32>,
    /// When a parent is written only to flush its children's mappings.
    ///
    /// For systems that have a table of mappings. Default: [`Folds::Share`]; others need the
    /// feature `paper-modes` of this library.
    pub folds: Folds,
    /// Removals merge and rotate nodes that are less than half full.
    ///
    /// Default: they merge none. For systems that replace nodes in place, without a write buffer;
    /// it needs the feature `paper-modes` of this library. For comparison: a removal writes up to
    /// three pages a level, by default one page (WPCB-tree paper, sections 4.2 and 5). An error of
    /// a merge is that of the removal, which is durable then.
    pub rebalances: bool,
    /// Page buffers keep their pages from one operation to the next.
    ///
    /// This helps the root above all. `None` for the system's default: systems that write every
    /// change up to the root read it anew each time, the others keep it. Other settings need the
    /// feature `paper-modes` of this library.
    pub keep_pages: Option<bool>,
    /// Reads each page back after its program. Default: off.
    ///
    /// So a chip that reports a program or an erase as done, although it was not, is detected while
    /// the data is still in RAM. Costs one read for each program and for each erase that voids a
    /// checkpoint, and one page buffer. `rosette-nor` reads all of a sector after its erase.
    pub verify: bool,
    /// Children of an inner node at most, 4 or more; `None` for as many as fit.
    ///
    /// For systems that pack several nodes into a page (`tnc`). Nodes have room for this many
    /// children, or for 4 records, and each takes only the bytes that it uses: a page has up to 127
    /// full ones. With `None` nodes have fixed places, at most 15 in a page, with room for at least
    /// 32 children or 4 records, as far as a page has that. The medium says which it is, and an
    /// opening with another one is refused ([`OpenError::Mismatch`](crate::OpenError::Mismatch)).
    /// Default: `None`.
    pub fanout: Option<u16>,
    /// Bytes of RAM for nodes; `None` for 32 nodes.
    ///
    /// For systems that change nodes in RAM (`tnc`): 11 nodes or more, each of 16 bytes more than
    /// on flash, at most 65520 of them. A mount with fewer bytes than before may have to write
    /// nodes ahead of its commit, and refuses a tree that is too high for them. Default: `None`.
    pub arena_bytes: Option<usize>,
    /// Pages of the journal after which the changed nodes are written, at least 1.
    ///
    /// For systems that have a journal (`tnc`). A mount reads as many. `None` for 128. Default:
    /// `None`.
    pub journal_pages: Option<u32>,
    /// Pages of a commit that one change writes, at least 1; `None` for the default.
    ///
    /// For systems that have a journal (`tnc`). A commit of at least four times this comes in
    /// steps: as RAM, the journal or the chip fills up, each change writes this many pages ahead,
    /// or as many as have room for two paths, and the commit writes the rest. With more than a
    /// commit has, it comes at once, as in the paper. By default a step has 4 pages, or a
    /// thirty-second of the largest commit, and commits of fewer than 16 steps come at once.
    /// Default: `None`.
    pub commit_step: Option<u32>,
    /// Clean nodes that leave RAM at once when it is full, in per cent, 1 to 100.
    ///
    /// For systems that change nodes in RAM (`tnc`); it needs the feature `paper-modes` of this
    /// library. A change for which too few slots are free commits first; then this share of the
    /// clean nodes leaves, or as many as the change needs, the least recently used first, and only
    /// nodes with no child in RAM (TNC paper, section 6.2). Lookups never write, so the oldest
    /// clean node leaves there. For comparison: almost every change that misses commits. Default:
    /// `None`, the oldest clean node leaves where a slot is needed, and a commit comes when none
    /// can.
    pub shrink_percent: Option<u8>,
    /// Whether values stay in the journal, where they were first written.
    ///
    /// For systems that have a journal (`tnc`). The lowest nodes of the tree hold a pointer of 4
    /// bytes for each record then, and a lookup reads one page more. Garbage collection writes the
    /// values of a block elsewhere. The medium says which it is, and an opening with the other one
    /// is refused ([`OpenError::Mismatch`](crate::OpenError::Mismatch)). Default: `None`, only
    /// values of at least an eighth of a page do. Without the feature `journal-values` of this
    /// library none do.
    pub journal_values: Option<bool>,
}

impl Options {
    /// Settings for keys and values of these sizes in bytes, with all other defaults.
    pub const fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Self {
            key_bytes,
            value_bytes,
            page_buffers: None,
            moves: RelocationMode::Together,
            victims: GcPolicy::Fewest,
            validity: LivenessTracking::Marked,
            wear: None,
            read_cache: 0,
            write_cache: 0,
            write_buffer: 0,
            write_buffer_changes: None,
            write_buffer_ticks: None,
            eviction: Eviction::All,
            checkpoints: None,
            mapping_bytes: 1024,
            leaves: None,
            folds: Folds::Share,
            rebalances: false,
            keep_pages: None,
            verify: false,
            fanout: None,
            arena_bytes: None,
            journal_pages: None,
            commit_step: None,
            shrink_percent: None,
            journal_values: None,
        }
    }

    /// Sets [`page_buffers`](Self#structfield.page_buffers).
    #[must_use]
    pub const fn page_buffers(mut self, buffers: usize) -> Self {
        self.page_buffers = Some(buffers);
        self
    }

    /// Sets [`moves`](Self#structfield.moves).
    #[must_use]
    pub const fn moves(mut self, moves: RelocationMode) -> Self {
        self.moves = moves;
        self
    }

    /// Sets [`victims`](Self#structfield.victims).
    #[must_use]
    pub const fn victims(mut self, victims: GcPolicy) -> Self {
        self.victims = victims;
        self
    }

    /// Sets [`validity`](Self#structfield.validity).
    #[must_use]
    pub const fn validity(mut self, validity: LivenessTracking) -> Self {
        self.validity = validity;
        self
    }

    /// Sets [`wear`](Self#structfield.wear).
    #[must_use]
    pub const fn wear(mut self, wear: WearPolicy) -> Self {
        self.wear = Some(wear);
        self
    }

    /// Sets [`read_cache`](Self#structfield.read_cache).
    #[must_use]
    pub const fn read_cache(mut self, pages: usize) -> Self {
        self.read_cache = pages;
        self
    }

    /// Sets [`write_cache`](Self#structfield.write_cache).
    #[must_use]
    pub const fn write_cache(mut self, pages: usize) -> Self {
        self.write_cache = pages;
        self
    }

    /// Sets [`write_buffer`](Self#structfield.write_buffer).
    #[must_use]
    pub const fn write_buffer(mut self, pages: usize) -> Self {
        self.write_buffer = pages;
        self
    }

    /// Sets [`write_buffer_changes`](Self#structfield.write_buffer_changes).
    #[must_use]
    pub const fn write_buffer_changes(mut self, changes: u32) -> Self {
        self.write_buffer_changes = Some(changes);
        self
    }

    /// Sets [`write_buffer_ticks`](Self#structfield.write_buffer_ticks).
    #[must_use]
    pub const fn write_buffer_ticks(mut self, ticks: u32) -> Self {
        self.write_buffer_ticks = Some(ticks);
        self
    }

    /// Sets [`eviction`](Self#structfield.eviction).
    #[must_use]
    pub const fn eviction(mut self, eviction: Eviction) -> Self {
        self.eviction = eviction;
        self
    }

    /// Sets [`checkpoints`](Self#structfield.checkpoints).
    #[must_use]
    pub const fn checkpoints(mut self, blocks: u32) -> Self {
        self.checkpoints = Some(blocks);
        self
    }

    /// Sets [`mapping_bytes`](Self#structfield.mapping_bytes).
    #[must_use]
    pub const fn mapping_bytes(mut self, bytes: usize) -> Self {
        self.mapping_bytes = bytes;
        self
    }

    /// Sets [`leaves`](Self#structfield.leaves).
    #[must_use]
    pub const fn leaves(mut self, leaves: u32) -> Self {
        self.leaves = Some(leaves);
        self
    }

    /// Sets [`flushes_mappings`](Self#structfield.folds).
    #[must_use]
    pub const fn folds(mut self, folds: Folds) -> Self {
        self.folds = folds;
        self
    }

    /// Sets [`rebalances`](Self#structfield.rebalances).
    #[must_use]
    pub const fn rebalances(mut self) -> Self {
        self.rebalances = true;
        self
    }

    /// Sets [`keep_pages`](Self#structfield.keep_pages).
    #[must_use]
    pub const fn keep_pages(mut self, keep: bool) -> Self {
        self.keep_pages = Some(keep);
        self
    }

    /// Sets [`verify`](Self#structfield.verify).
    #[must_use]
    pub const fn verify(mut self) -> Self {
        self.verify = true;
        self
    }

    /// Sets [`fanout`](Self#structfield.fanout).
    #[must_use]
    pub const fn fanout(mut self, children: u16) -> Self {
        self.fanout = Some(children);
        self
    }

    /// Sets [`arena_bytes`](Self#structfield.arena_bytes).
    #[must_use]
    pub const fn arena_bytes(mut self, bytes: usize) -> Self {
        self.arena_bytes = Some(bytes);
        self
    }

    /// Sets [`journal_pages`](Self#structfield.journal_pages).
    #[must_use]
    pub const fn journal_pages(mut self, pages: u32) -> Self {
        self.journal_pages = Some(pages);
        self
    }

    /// Sets [`commit_step`](Self#structfield.commit_step).
    #[must_use]
    pub const fn commit_step(mut self, pages: u32) -> Self {
        self.commit_step = Some(pages);
        self
    }

    /// Sets [`shrink_percent`](Self#structfield.shrink_percent).
    #[must_use]
    pub const fn shrink_percent(mut self, percent: u8) -> Self {
        self.shrink_percent = Some(percent);
        self
    }

    /// Sets [`journal_values`](Self#structfield.journal_values).
    #[must_use]
    pub const fn journal_values(mut self, in_journal: bool) -> Self {
        self.journal_values = Some(in_journal);
        self
    }
}
