//! What RAM knows of the index beside the directory, and whether it is true.
//!
//! Nothing is read or written here.

/// The counts of an index, and how far RAM can be trusted.
pub(super) struct State {
    /// An operation is running or failed half way: RAM may differ from the chip.
    in_doubt: bool,
    records: u32,
    moved_pages: u32,
    /// A checkpoint was written since the mount.
    replaced: bool,
    /// The mount made the checkpoints unusable.
    voided: bool,
    /// Where the search for two leaves to merge continues.
    sparse: u32,
}

impl State {
    /// Before a mount.
    pub const UNKNOWN: Self = Self {
        in_doubt: true,
        records: 0,
        moved_pages: 0,
        replaced: false,
        voided: false,
        sparse: 0,
    };

    /// Whether RAM may differ from the chip.
    pub const fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// From now on RAM may differ from the chip: an operation begins, or has failed.
    pub const fn doubt(&mut self) {
        self.in_doubt = true;
    }

    /// An operation ended, and RAM is as the chip is.
    pub const fn trust(&mut self) {
        self.in_doubt = false;
    }

    /// An operation ended. RAM is as the chip is, unless it `failed`.
    pub const fn end_doubt(&mut self, failed: bool) {
        self.in_doubt = failed;
    }

    /// The number of records.
    pub const fn records(&self) -> u32 {
        self.records
    }

    /// There are this many records from now on.
    pub const fn note_records(&mut self, records: u32) {
        self.records = records;
    }

    /// Leaves that garbage collection moved.
    pub const fn moved_pages(&self) -> u32 {
        self.moved_pages
    }

    /// Garbage collection moves a leaf.
    pub const fn note_move(&mut self) {
        self.moved_pages = self.moved_pages.saturating_add(1);
    }

    /// Whether a checkpoint was written since the mount.
    pub const fn has_checkpoint(&self) -> bool {
        self.replaced
    }

    /// A mount begins: no checkpoint was written since.
    pub const fn begin_mount(&mut self) {
        (self.replaced, self.voided) = (false, false);
    }

    /// The checkpoints on the chip are made unusable.
    pub const fn note_void(&mut self) {
        self.voided = true;
    }

    /// Whether the mount made the checkpoints unusable and wrote none since.
    pub const fn lacks_checkpoint(&self) -> bool {
        self.voided && !self.replaced
    }

    /// Notes whether a checkpoint was written.
    pub fn note_checkpoint(&mut self, written: bool) {
        self.replaced |= written;
    }

    /// Where the search for two leaves to merge continues.
    pub const fn sparse(&self) -> usize {
        self.sparse as usize
    }

    /// The search for two leaves to merge found some at this rank.
    pub const fn note_sparse(&mut self, rank: usize) {
        self.sparse = rank as u32;
    }
}
